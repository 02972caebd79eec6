"""while_loop and fori_loop.

    state = while_loop(test, body, state)          state = fori_loop(0, 100, body, state)

A fori_loop whose bounds are known is a scan, so it has both derivatives; others are while loops.  A
while loop has a forward derivative; with max_steps it is a scan of scans over conds, which has
both: the steps within one segment are recomputed, so that it keeps about 2·sqrt(max_steps) states.
Relies on `scan.py`, `cond.py` and `checkpoint.py`; users rely on it.
"""

from __future__ import annotations

import math

import numpy as np

from .. import source, tree
from ..arguments import check_function, check_takes, is_array, place_of, tree_text
from ..core import EVALUATE, Array, Tracer, as_value, current
from ..errors import ArgumentError, GradientError, boundary
from ..interpreters.call import chosen, dependent, derived, names_of, prefixed
from ..interpreters.forward import filled, push
from ..interpreters.stage import evaluate
from ..ops import (
    add, and_, convert, iota, lt, reduce_or, select, to_front, zeros_like)
from ..types import BOOL, INEXACT_KINDS, INTS, ArrayType, promote
from .bodies import (
    Control, Opened, body_of, carried, check_carry, closed, in_common, leaves_of, spread,
    whole)
from .checkpoint import checkpoint
from .cond import cond
from .scan import batched, scan, scanned


# ---------------------------------------------------------------------------- what users call

@boundary
def while_loop(cond_fun, body_fun, init_val, *, max_steps=None):
    """body_fun applied to init_val again and again, while cond_fun of it holds.

    cond_fun(val) → a scalar bool; body_fun(val) → a val of the same tree, shapes and dtypes.
    max_steps: at most so many steps are made, and the loop has a reverse derivative; each step is
    then computed twice.  A loop that wants more of them ends there, unfinished.  Raises
    ArgumentError for another cond_fun, TreeError when the val changes its tree or types; and
    GradientError, in reverse without max_steps.

    >>> while_loop(lambda x: x < 100.0, lambda x: 2 * x, 3.0)
    Array(192., f32[])
    """
    check_function(cond_fun, "while_loop", "cond_fun")
    check_function(body_fun, "while_loop", "body_fun")
    if max_steps is not None:
        return bounded(cond_fun, body_fun, init_val,
                       whole("while_loop", "max_steps", max_steps, 0))
    return looped("while_loop", cond_fun, body_fun, body_fun, init_val)


def looped(what, cond_fun, body_fun, step, init_val):
    """The end of a while loop; step: its body, made of the user's body_fun."""
    values, types, structure = leaves_of(init_val, "init_val")
    one = tree.structure((init_val,))
    test = body_of(what, cond_fun, one, types)
    body = body_of(what, body_fun, one, types, step)
    if test.out.kind is not None or test.types[0].shape or test.types[0].dtype != BOOL:
        returned = tree_text(tree.unflatten(test.out, test.types))
        raise ArgumentError(f"{what}: {place_of(cond_fun)} must return one bool, but it returned "
                            f"{returned}.", expected="bool[]", fix=["compare: return x < limit",
                                                    "reduce with .any() or .all()"])
    if what == "fori_loop":                      # behind the number and its end
        check_carry(body, structure.children[2], types[2:], body.out.children[2], body.types[2:],
                    what)
    else:
        check_carry(body, structure, types, body.out, body.types, what)
    programs, consts = in_common([test, body])
    found = while_steps(*consts, *values, cond=programs[0], body=programs[1], n_consts=len(consts))
    return tree.unflatten(structure, found)


def bounded(cond_fun, body_fun, init, n):
    """At most n steps, as segments of about sqrt(n) steps that are recomputed in reverse."""
    values, _, structure = leaves_of(init, "init_val")
    init = tree.unflatten(structure, values)
    inner = max(1, math.isqrt(max(n, 1)))
    outer = -(-n // inner)

    def goes_on(state):
        k, value = state
        return and_(lt(k, n), cond_fun(value))

    def step(state):
        k, value = state
        return add(k, 1), body_fun(value)

    def skip(state):
        return state

    def one(state, _):
        return cond(goes_on(state), step, skip, state), None

    def segment(state):
        return scan(one, state, length=inner)[0]

    def several(state, _):
        return cond(goes_on(state), checkpoint(segment), skip, state), None
    return scan(several, (np.int32(0), init), length=outer)[0][1]


@boundary
def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """val, after val = body_fun(i, val) for i from lower to upper - 1.

    Bounds that are Python ints, or known arrays under grad, make it a scan: it has both
    derivatives. Other bounds make it a while_loop.  unroll: accepted, and has no effect.  Raises
    ArgumentError for bounds that are no integers, TreeError when the val changes its tree or types.

    >>> fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, i32[])
    """
    check_function(body_fun, "fori_loop", "body_fun")
    check_takes(body_fun, 2, "fori_loop")
    for name, bound in (("lower", lower), ("upper", upper)):
        if not is_array(bound) or as_value(bound).shape or as_value(bound).dtype not in INTS:
            given = tree_text(bound)
            raise ArgumentError(f"fori_loop needs whole numbers for bounds, not {given}.",
                                given=f"{name}={given}", expected="an int, or i32[]")
    dtype = promote(as_value(lower).dtype, as_value(upper).dtype)
    if known(lower) and known(upper):
        return counted(int(lower), int(upper), dtype, body_fun, init_val)
    bounds = [convert(as_value(x), dtype=dtype) for x in (lower, upper)]
    leaves_of(init_val, "init_val")
    return looped("fori_loop", below, body_fun, next_number(body_fun),
                  (*bounds, init_val))[2]


def below(state):
    """Is there one more number?"""
    return lt(state[0], state[1])


def next_number(body_fun):
    """The body of a while loop over numbers."""
    def step(state):
        i, stop, value = state
        return add(i, 1), stop, body_fun(i, value)
    return step


def known(bound):
    """Is the number of steps known while the loop is traced, and worth a program of its own?"""
    if isinstance(bound, Tracer):
        return isinstance(bound.known(), Array)
    return not isinstance(bound, Array) or current() is not EVALUATE


def counted(lower, upper, dtype, body_fun, init_val):
    """A fori_loop as a scan over its numbers."""
    numbers = iota(shape=(max(0, upper - lower),), axis=0, dtype=dtype)
    return scanned("fori_loop", body_fun, each_number(body_fun, lower), init_val, numbers)[0]


def each_number(body_fun, lower):
    """The body of a scan over numbers that begin with 0."""
    def step(value, i):
        return body_fun(i if lower == 0 else add(i, lower), value), None
    return step


# ---------------------------------------------------------------------------- the operation

class While(Control):
    """The carry, after body while cond of it holds.   consts, carry → carry

    cond: consts, carry → bool[].   body: consts, carry → carry.
    """
    loop = "while"
    reversible = False

    def programs(self, params):
        return params["cond"], params["body"]

    def replaced(self, params, programs, more=0):
        return dict(cond=programs[0], body=programs[1], n_consts=params["n_consts"] + more)

    def type(self, *types, cond, body, n_consts):
        return tuple(types[n_consts:])

    def steps(self, *args, cond, body, n_consts):
        consts, carry = args[:n_consts], args[n_consts:]
        while evaluate(cond, [*consts, *carry])[0].np:
            carry = evaluate(body, [*consts, *carry])
        return carry

    def forward(self, args, tangents, params):
        n, body = params["n_consts"], params["body"]
        mask = tuple([t is not None for t in tangents])
        active = body.derive(while_active, mask, n)
        test, pushed = [params["cond"].derive(with_tangents, body, mask[:n], active, pushes)
                        for pushes in (False, True)]
        consts = [*args[:n], *[t for t in tangents[:n] if t is not None]]
        ts = [t if t is not None else zeros_like(x)
              for x, t, a in zip(args[n:], tangents[n:], active) if a]
        out = bound(test, pushed, consts, [*args[n:], *ts])
        m = len(args) - n
        found = iter(out[m:])
        return out[:m], [next(found) if a else None for a in active]

    def depends(self, mask, params):
        n, body = params["n_consts"], params["body"]
        carry = carried(body, mask[:n], mask[n:], (), dependent)
        ends, = params["cond"].derive(dependent, (*mask[:n], *carry))
        return tuple([ends or c for c in carry])

    def linearize(self, below, args, active, params):
        outs = below.process(self, args, params)
        return outs, self.record(outs, args, active, params)

    def record(self, outs, args, active, params):
        mask = tuple([node >= 0 for node in active])
        moving = params["body"].derive(while_active, mask, params["n_consts"])
        return self, outs, args, {"moving": moving, "where": source.here()}, active

    def pullback(self, cts, outs, args, active, params):
        if any(ct is not None and moves for ct, moves in zip(cts, params["moving"])):
            raise GradientError(
                "while_loop has no reverse derivative, nor fori_loop with traced bounds: how many "
                "steps they make is not known before.", where=params["where"],
                fix=["while_loop(…, max_steps=n), if n steps are enough",
                     "fori_loop with Python ints for bounds, or scan",
                     "stop_gradient of its result, where that counts as a constant",
                     "jvp or jacfwd, for the forward derivative"])
        return [None] * len(active)

    def batch_over(self, axis, dims, args, params):
        n_consts, cond, body = params["n_consts"], params["cond"], params["body"]
        dc, mask = dims[:n_consts], tuple([d is not None for d in dims[n_consts:]])
        test, step, mask, lanes = body.derive(batch_while, cond, dc, mask, axis)
        carry = [to_front(x, d, axis.size) if m else x
                 for x, d, m in zip(args[n_consts:], dims[n_consts:], mask)]
        consts = args[:n_consts]
        if not lanes:
            out = bound(test, step, consts, carry)
        else:
            alive = call_one(cond.derive(batched, (*dc, *[0] * len(carry)), axis, (True,))[0],
                             [*consts, *carry])
            out = bound(test, step, consts, [alive, *carry])[1:]
        return out, tuple([0 if m else None for m in mask])


while_steps = While("while")


def call_one(program, args):
    """The only result of a Program."""
    (out,) = evaluate(program, args)
    return out


def bound(test, step, consts, carry):
    """The operation with Programs that may close over arrays: those become consts."""
    (test, step), more = in_common([Opened(*closed(test)), Opened(*closed(step))])
    return while_steps(*more, *consts, *carry, cond=test, body=step,
                       n_consts=len(more) + len(consts))


# ---------------------------------------------------------------------------- forward derivative

def while_active(body, mask, n):
    """Which carries have a tangent."""
    start = tuple([m and v.dtype.kind in INEXACT_KINDS for m, v in zip(mask[n:], body.inputs[n:])])
    return carried(body, mask[:n], start)


def with_tangents(test, body, const_mask, active, pushes):
    """consts dconsts, carry dcarry → what cond says of them, or carry dcarry."""
    n, mask = len(const_mask), (*const_mask, *active)
    types, names = body.in_types, names_of(body)
    sizes = [n, sum(const_mask), len(active), sum(active)]

    def function(*args):
        args = iter(args)
        consts, dconsts, carry, dcarry = [[next(args) for _ in range(k)] for k in sizes]
        if not pushes:
            return evaluate(test, [*consts, *carry])
        ts = iter([*dconsts, *dcarry])
        outs, out_ts = push(lambda *xs: evaluate(body, xs), [*consts, *carry],
                            [next(ts) if m else None for m in mask])
        return *outs, *chosen(filled(outs, out_ts), active)

    def group(xs, change):
        return [*xs[:n], *change(chosen(xs[:n], const_mask)), *xs[n:],
                *change(chosen(xs[n:], active))]
    return derived(body if pushes else test, "jvp", function, group(types, list),
                   group(names, lambda xs: prefixed("d", xs)))


# ---------------------------------------------------------------------------- batch

def batch_while(body, test, const_dims, carry_mask, axis):
    """(cond, body, which carries are batched, has each lane an end of its own?) over one more axis.

    With lanes of their own, all carries are batched, and a bool per lane goes in front of them: the
    loop runs while one is alive, and what a finished lane carries is held fixed.
    """
    while True:
        dims = (*const_dims, *[0 if m else None for m in carry_mask])
        step, found = batched(body, dims, axis, carry_mask)
        grown = tuple([a or b for a, b in zip(carry_mask, found)])
        if grown != carry_mask:
            carry_mask = grown
            continue
        one, (lanes,) = batched(test, dims, axis)
        if not lanes:
            return one, step, carry_mask, False
        if all(carry_mask):
            return *frozen(body, one, step, len(const_dims), axis.size), carry_mask, True
        carry_mask = (True,) * len(carry_mask)


def frozen(body, test, step, n_consts, n):
    """(cond, body) with a bool per lane as their first carry."""
    types = [*test.in_types[:n_consts], ArrayType(BOOL, (n,)), *test.in_types[n_consts:]]
    names = [*names_of(test)[:n_consts], "alive", *names_of(test)[n_consts:]]

    def some(*args):
        return reduce_or(args[n_consts], axes=(0,))

    def function(*args):
        consts, mask, carry = args[:n_consts], args[n_consts], args[n_consts + 1:]
        held = [select(spread(mask, x), new, x)
                for x, new in zip(carry, evaluate(step, [*consts, *carry]))]
        return and_(mask, call_one(test, [*consts, *held])), *held
    return derived(test, "some", some, types, names), derived(body, "lanes", function, types, names)
