"""scan: a loop over the leading axis of arrays, that hands a carry on from step to step.

    carry, ys = scan(step, init, xs)          step(carry, x) → (carry, y)

One operation, `scan`, whose body is a Program.  Its derivatives are scans too:

    jvp       consts dconsts, carry dcarry, xs dxs          → carry dcarry, ys dys
    forward   consts, carry, xs                             → carry, ys residuals
    backward  invariant residuals, cts of the carry and of  → the same, cts of xs
              consts so far, residuals xs cts of ys           in reverse order

Residuals that no step changes are not stacked.  Relies on `bodies.py`; `loops.py`, `sequences.py`
and users rely on it.
"""

from __future__ import annotations

import numpy as np

from .. import text, tree
from ..arguments import check_function, place_of, tree_text
from ..core import array_of, memory_of
from ..errors import ArgumentError, ShapeError, boundary
from ..interpreters.call import (
    batched, chosen, ct_names, dependent, derived, merged, names_of, part, prefixed, vjp_program)
from ..interpreters.forward import filled, push
from ..interpreters.stage import evaluate
from ..ops import add, to_front, zeros_like
from ..types import INEXACT_KINDS, held_as
from .bodies import (
    Control, body_of, carried, check_carry, closed, leaves_of, moved, reached,
    whole)


# ---------------------------------------------------------------------------- what users call

@boundary
def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """(last carry, ys stacked): f(carry, x) → (carry, y), for each x along the leading axis of xs.

    init: a pytree; f returns the carry with the same tree, shapes and dtypes.  xs: a pytree of
    arrays of one leading size, or None with `length`.  ys: as the y of f, with one more axis in
    front. reverse: from the last x to the first; ys stand where their x stands.  unroll: accepted,
    and has no effect: a compiled step costs some nanoseconds.

    f is traced at most once per call, whatever the length.  Raises TreeError when the carry changes
    its tree or types, ShapeError when the leading sizes differ, ArgumentError when f returns no
    pair.

    >>> import fgrad.numpy as fnp
    >>> scan(lambda total, x: (total + x, total), 0.0, fnp.array([1.0, 2.0, 3.0]))
    (Array(6., f32[]), Array([0., 1., 3.], f32[3]))
    """
    check_function(f, "scan", "f")
    return scanned("scan", f, f, init, xs, length, reverse)


def scanned(what, f, step, init, xs, length=None, reverse=False):
    """(last carry, ys stacked); step: what is scanned, made of the user's f."""
    carry, carry_types, carry_tree = leaves_of(init, "init_val" if what == "fori_loop" else "init")
    leaves, types, xs_tree = leaves_of(xs, "xs")
    length = length_of(what, f, types, tree.paths(xs_tree), length)
    structure = tree.structure((tree.unflatten(carry_tree, carry), tree.unflatten(xs_tree, leaves)))
    body = body_of(what, f, structure,
                   (*carry_types, *[t.with_shape(t.shape[1:]) for t in types]), step)
    if body.out.kind is None or body.out.kind.cls not in (tuple, list) or len(
            body.out.children) != 2:
        raise ArgumentError(
            f"{what}: {place_of(f)} must return (carry, y), but it returned "
            f"{tree_text(tree.unflatten(body.out, body.types))}.",
            expected="a tuple of two",
            fix=["return carry, y", "return carry, None without results"])
    out_tree, y_tree = body.out.children
    check_carry(body, carry_tree, carry_types, out_tree, body.types[:out_tree.count], what)
    found = scan_loop(*body.consts, *carry, *leaves, body=body.program, n_consts=len(body.consts),
                      n_carry=len(carry), length=length, reverse=bool(reverse))
    return (tree.unflatten(carry_tree, found[:len(carry)]),
            tree.unflatten(y_tree, found[len(carry):]))


def length_of(what, f, types, paths, length):
    """The one leading size.  Raises ShapeError with a table when there are several."""
    sizes = {t.shape[0] if t.shape else None for t in types}
    if length is not None:
        length = whole(what, "length", length, 0)
        sizes.add(length)
    if len(sizes) == 1 and None not in sizes:
        return sizes.pop()
    if not sizes:
        raise ArgumentError(f"{what} of {place_of(f)} has neither xs nor length.",
                            fix="scan(f, init, xs), or scan(f, init, length=n)")
    rows = [(tree.path_text("xs", p) + ":", str(t), f"  leading size {t.shape[0]}" if t.shape
             else "  no axis") for p, t in zip(paths, types)]
    table = text.columns(rows) + ([f"length={length}"] if length is not None else [])
    raise ShapeError(f"{what} of {place_of(f)} goes over arrays of different leading sizes.",
                     given=table, expected="one leading size",
                     fix="let the function close over what is the same in every step")


# ---------------------------------------------------------------------------- the operation

class Scan(Control):
    """The body, once per element of xs.   consts, carry, xs → carry, ys

    body: consts, carry, x → carry, y.  xs and ys have one more axis, of `length`, in front.
    """
    loop = "scan"

    def programs(self, params):
        return (params["body"],)

    def replaced(self, params, programs, more=0):
        return {**params, "body": programs[0], "n_consts": params["n_consts"] + more}

    def type(self, *types, body, n_consts, n_carry, length, reverse):
        return (*body.out_types[:n_carry], *stacked(body.out_types[n_carry:], length))

    def steps(self, *args, body, n_consts, n_carry, length, reverse):
        at = n_consts + n_carry
        consts, carry, rows = args[:n_consts], args[n_consts:at], []
        for k in range(length)[::-1 if reverse else 1]:
            xs = [array_of(memory_of(x)[k], x.dtype) for x in args[at:]]
            out = evaluate(body, [*consts, *carry, *xs])
            carry = out[:n_carry]
            rows.append([memory_of(y) for y in out[n_carry:]])
        if reverse:
            rows.reverse()
        ys = [np.array([row[k] for row in rows], held_as(t.dtype)).reshape(length, *t.shape)
              for k, t in enumerate(body.out_types[n_carry:])]
        return (*carry, *[array_of(y, t.dtype) for y, t in zip(ys, body.out_types[n_carry:])])

    def forward(self, args, tangents, params):
        parts = Parts(params)
        mask = tuple([t is not None for t in tangents])
        body, arrays, active, live = params["body"].derive(
            jvp_body, mask, params["n_consts"], params["n_carry"])
        (consts, carry, xs), (dc, dk, dx) = parts.split(args), parts.split(tangents)
        dk = [t if t is not None else zeros_like(x) for x, t, a in zip(carry, dk, active) if a]
        first = (*arrays, *consts, *[t for t in dc if t is not None])
        out = self(*first, *carry, *dk, *xs, *[t for t in dx if t is not None], body=body,
                   n_consts=len(first), n_carry=len(carry) + len(dk), length=params["length"],
                   reverse=params["reverse"])
        return unwoven(out, len(carry), active, live)

    def depends(self, mask, params):
        body, (consts, carry, xs) = params["body"], Parts(params).split(mask)
        carry = carried(body, consts, carry, xs, dependent)
        return *carry, *dependent(body, (*consts, *carry, *xs))[params["n_carry"]:]

    def vjp_programs(self, mask, params):
        return params["body"].derive(scan_vjp, mask, *[params[k] for k in (
            "n_consts", "n_carry", "length", "reverse")])

    def batch_over(self, axis, dims, args, params):
        parts, n_carry = Parts(params), params["n_carry"]
        consts, carry, xs = parts.split(args)
        dc, dk, dx = parts.split(dims)
        xs = [x if d is None else moved(x, d, 1) for x, d in zip(xs, dx)]
        mask = tuple([d is not None for d in dk])
        program, arrays, carried, out_mask = params["body"].derive(
            batch_body, dc, mask, tuple([None if d is None else 0 for d in dx]), axis)
        carry = [to_front(x, d, axis.size) if m else x for x, d, m in zip(carry, dk, carried)]
        out = self(*arrays, *consts, *carry, *xs, **self.replaced(params, [program], len(arrays)))
        return out, tuple([None if not m else 0 if k < n_carry else 1
                           for k, m in enumerate(out_mask)])


scan_loop = Scan("scan")


class Parts:
    """Where consts, carry and xs are among the arguments."""

    def __init__(self, params):
        self.n_consts, self.n_carry = params["n_consts"], params["n_carry"]

    def split(self, values):
        """(those of consts, of the carry, of xs)."""
        at = self.n_consts + self.n_carry
        return values[:self.n_consts], values[self.n_consts:at], values[at:]


def stacked(types, length):
    """The types with one more axis in front."""
    return [t.with_shape((length, *t.shape)) for t in types]


# ---------------------------------------------------------------------------- forward derivative

def jvp_body(body, mask, n_consts, n_carry):
    """(Program, arrays, active, live): the body with tangents.

    consts dconsts, carry dcarry, xs dxs → carry dcarry, ys dys.  `arrays` are its first consts.
    active: which carries have a tangent.  live: which ys have one.
    """
    at = n_consts + n_carry
    active = carried_mask(body, mask, n_consts, n_carry)
    full = (*mask[:n_consts], *active, *mask[at:])
    live = reached(body, full)[n_carry:]
    groups = (slice(n_consts), slice(n_consts, at), slice(at, None))
    types, names = body.in_types, names_of(body)

    def pushed(*args):
        args, primals, tangents = iter(args), [], []
        for group in groups:
            mine = full[group]
            primals += [next(args) for _ in mine]
            tangents += [next(args) if m else None for m in mine]
        outs, ts = push(lambda *xs: evaluate(body, xs), primals, tangents)
        ts = filled(outs, ts)
        return (*outs[:n_carry], *chosen(ts[:n_carry], active),
                *outs[n_carry:], *chosen(ts[n_carry:], live))
    program = derived(
        body, "jvp", pushed,
        [t for g in groups for t in (*types[g], *chosen(types[g], full[g]))],
        [x for g in groups for x in (*names[g], *prefixed("d", chosen(names[g], full[g])))])
    return *closed(program), active, live


def carried_mask(body, mask, n_consts, n_carry):
    """Which carries depend on what the mask says is differentiated."""
    at = n_consts + n_carry
    start = tuple([m and v.dtype.kind in INEXACT_KINDS
                   for m, v in zip(mask[n_consts:at], body.inputs[n_consts:at])])
    return carried(body, mask[:n_consts], start, mask[at:])


def unwoven(out, n_carry, active, live):
    """(results, tangents or None) of carry dcarry, ys dys."""
    out = iter(out)
    carry = [next(out) for _ in range(n_carry)]
    dcarry = [next(out) if a else None for a in active]
    ys = [next(out) for _ in live]
    return [*carry, *ys], [*dcarry, *[next(out) if a else None for a in live]]


# ---------------------------------------------------------------------------- reverse derivative

def scan_vjp(body, mask, n_consts, n_carry, length, reverse):
    """(forward, backward) of the whole scan, as of a `call`."""
    at, m = n_consts + n_carry, len(body.outputs)
    active = carried_mask(body, mask, n_consts, n_carry)
    full = (*mask[:n_consts], *active, *mask[at:])
    live = reached(body, full)
    first, second = body.derive(vjp_program, full)
    kinds = residual_kinds(first, n_consts, n_carry, m)
    scans = dict(n_carry=n_carry, length=length)
    types = [*body.in_types[:at], *stacked(body.in_types[at:], length)]

    # residuals that each step has anew become further ys
    own = [v for v, kind in kinds if kind == "step"]
    step, arrays = closed(part(first, first.inputs, first.eqns, (*first.outputs[:m], *own)))
    fixed = [v for v, kind in kinds if kind == "fixed"]
    invariant = part(first, first.inputs[:n_consts], fixed_equations(first, n_consts), fixed)

    def forwards(*args):
        out = scan_loop(*arrays, *args, body=step, n_consts=n_consts + len(arrays), reverse=reverse,
                        **scans)
        ys, more = iter(out[m:]), iter(evaluate(invariant, args[:n_consts]))
        place = dict(zip(first.inputs, args))
        kept = {"step": lambda v: next(ys), "fixed": lambda v: next(more)}
        return *out[:m], *[kept.get(kind, place.get)(v) for v, kind in kinds]
    forward = derived(body, "scan", forwards, types, names_of(body))

    shared = [kind in ("fixed", "const") for _, kind in kinds]
    back, more = backward_body(body, second, shared, full, active, live, n_consts, n_carry)

    def backwards(*args):
        kept, cts = args[:len(kinds)], args[len(kinds):]
        start = [zeros_like(v) for v in chosen(body.inputs[:n_consts], mask[:n_consts])]
        consts = [*more, *chosen(kept, shared)]
        carry = [*chosen(cts[:n_carry], active), *start]
        rows = [*chosen(kept, [not s for s in shared]), *chosen(cts[n_carry:], live[n_carry:])]
        out = scan_loop(*consts, *carry, *rows, body=back, n_consts=len(consts),
                        n_carry=len(carry), length=length, reverse=not reverse)
        of_carry = merged([None] * n_carry, out, active)
        k = sum(active)
        return (*out[k:len(carry)], *chosen(of_carry, mask[n_consts:at]), *out[len(carry):])
    kept_types = [v.type if s else stacked([v.type], length)[0] for (v, _), s in zip(kinds, shared)]
    cts = stage_types(body, n_carry, length)
    backward = derived(body, "scan_back", backwards, [*kept_types, *cts],
                       [*[None] * len(kinds), *ct_names(body)])
    return forward, backward


def stage_types(body, n_carry, length):
    """The types of a scan's results."""
    return [*body.out_types[:n_carry], *stacked(body.out_types[n_carry:], length)]


def residual_kinds(first, n_consts, n_carry, m):
    """(variable, kind) of each residual of the body.

    "const": an argument that is a const; "xs": one of xs; "fixed": computed from consts alone;
    "step": each step has its own, so it is stacked.
    """
    place = {v: k for k, v in enumerate(first.inputs)}
    fixed = {v for eqn in fixed_equations(first, n_consts) for v in eqn.outs}
    out = []
    for v in first.outputs[m:]:
        k = place.get(v)
        if k is None:
            out.append((v, "fixed" if v in fixed else "step"))
        else:
            out.append((v, "const" if k < n_consts else "step" if k < n_consts + n_carry else "xs"))
    return out


def fixed_equations(program, n_consts):
    """The equations that compute from consts, and closed-over arrays, alone.

    What has an effect may give another result in every step.
    """
    changing = set(program.inputs[n_consts:])
    out = []
    for eqn in program.eqns:
        if eqn.effect or any(v in changing for v in eqn.variables):
            changing.update(eqn.outs)
        else:
            out.append(eqn)
    return out


def backward_body(body, second, shared, full, active, live, n_consts, n_carry):
    """(Program, arrays): one step of the backward scan.

    shared residuals, cts of the active carry, cts of the masked consts so far, other residuals, cts
    of the live ys  →  cts of the active carry, of the masked consts, of the masked xs
    """
    at, n = n_consts + n_carry, len(shared)
    types, own = second.in_types[:n], [not s for s in shared]
    consts = chosen(body.in_types[:n_consts], full[:n_consts])
    carry = chosen(body.in_types[n_consts:at], active)
    ys = chosen(body.out_types[n_carry:], live[n_carry:])
    sizes = [sum(shared), len(carry), len(consts), sum(own), len(ys)]

    def step(*args):
        args = iter(args)
        fixed, of_carry, so_far, rows, of_ys = [[next(args) for _ in range(k)] for k in sizes]
        residuals = merged(merged([None] * n, fixed, shared), rows, own)
        cts = merged([None] * len(body.outputs), [*of_carry, *of_ys],
                     [*active, *live[n_carry:]])
        found = evaluate(second, [*residuals, *filled(body.outputs, cts)])
        k = len(consts)
        total = [add(a, b) for a, b in zip(so_far, found[:k])]
        return (*found[k:k + len(carry)], *total, *found[k + len(carry):])
    program = derived(body, "back", step, [*chosen(types, shared), *carry, *consts,
                                           *chosen(types, own), *ys], [])
    return closed(program)


# ---------------------------------------------------------------------------- batch

def batch_body(body, const_dims, carry_mask, x_dims, axis):
    """(Program, arrays, carried, results): the body over one more Axis.

    carried: which carries are batched, at least those of carry_mask.  results: which results are.
    The batch axis of carries and results is in front.
    """
    n_carry = len(carry_mask)
    while True:
        dims = (*const_dims, *[0 if m else None for m in carry_mask], *x_dims)
        program, found = batched(body, dims, axis, carry_mask)
        grown = tuple([a or b for a, b in zip(carry_mask, found)])
        if grown == carry_mask:
            return *closed(program), carry_mask, (*carry_mask, *found[n_carry:])
        carry_mask = grown
