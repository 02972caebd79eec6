"""cond and switch: one of several functions, chosen when the program runs.

    y = cond(x > 0, f, g, x)          y = switch(k, [f, g, h], x)

One operation, `cond`, with a Program per branch.  All branches take all operands.  Where the choice
is known (outside of jit and vmap) the branch is just run.  Under vmap a choice that differs from
element to element runs every branch, and selects.  In reverse the branches' residuals share places
of equal types. Relies on `bodies.py`; `loops.py` and users rely on it.
"""

from __future__ import annotations

import numpy as np

from .. import tree
from ..arguments import check_function, is_array, text_of, tree_text
from ..core import Array, Tracer, as_value
from ..custom import STOP
from ..errors import ArgumentError, boundary
from ..interpreters.call import (
    batch_program, call, chosen, ct_names, dependent, derived, jvp_program, names_of, vjp_program)
from ..interpreters.stage import evaluate
from ..ops import clamp, convert, eq, ge, le, select, to_front, zeros_like
from ..types import BOOL, I32, INEXACT_KINDS, INTS, ArrayType
from .bodies import Control, Opened, body_of, check_trees, closed, in_common, leaves_of, spread
from .scan import batched


# ---------------------------------------------------------------------------- what users call

@boundary
def cond(pred, true_fun, false_fun, *operands):
    """true_fun(*operands) where pred holds, else false_fun(*operands).

    pred: a scalar bool (or number, then pred != 0).  Both functions return one tree of one list of
    types.  Both are traced at every call; only the chosen one runs, save under a vmap over pred.
    Raises ArgumentError for another pred, and TreeError when the functions return different trees
    or types.

    >>> import fgrad.numpy as fnp
    >>> cond(fnp.array(True), lambda x: 2 * x, lambda x: -x, 3.0)
    Array(6., f32[])
    """
    if not is_array(pred) or as_value(pred).shape != ():
        raise ArgumentError(f"cond needs one bool to choose by, not {described(pred)}.",
                            expected="bool[]",
                            fix=["reduce it with .any() or .all()",
                                 "fgrad.numpy.where(pred, a, b) chooses element by element"])
    for name, f in (("true_fun", true_fun), ("false_fun", false_fun)):
        check_function(f, "cond", name, ["cond(pred, lambda: a, lambda: b)",
                                         "or fgrad.numpy.where(pred, a, b)"])
    pred = as_value(pred)
    index = convert(pred if pred.dtype == BOOL else convert(pred, dtype=BOOL), dtype=I32)
    return branched("cond", index, [false_fun, true_fun], operands,
                    {1: "true_fun", 0: "false_fun"})


@boundary
def switch(index, branches, *operands):
    """branches[index](*operands); an index out of range counts as the nearest.

    index: a scalar integer.  All branches return one tree of one list of types.  Raises
    ArgumentError for another index or without branches, and TreeError when results differ.

    >>> switch(1, [lambda x: x, lambda x: x * x], 3.0)
    Array(9., f32[])
    """
    branches = list(branches)
    if index.__class__ is int:
        index = min(max(index, 0), len(branches) - 1)
    if not is_array(index) or as_value(index).shape != () or as_value(index).dtype not in INTS:
        raise ArgumentError(f"switch needs one integer to choose by, not {described(index)}.",
                            expected="i32[]")
    if not branches:
        raise ArgumentError("switch has no branches.", fix="give a list of functions")
    for k, f in enumerate(branches):
        check_function(f, "switch", f"branches[{k}]")
    index = as_value(index)
    last = min(len(branches) - 1, np.iinfo(index.dtype).max)
    index = convert(clamp(0, index, last), dtype=I32)
    return branched("switch", index, branches, operands,
                    {k: f"branches[{k}]" for k in range(len(branches))})


def described(x):
    """An argument in a message."""
    return text_of(x) if not tree.kind_of(x) else tree_text(x)


def branched(what, index, functions, operands, names):
    """The result of the branch; `names` in messages of branches by number, in their order."""
    values, types, structure = leaves_of(tuple(operands), "operands")
    bodies = [body_of(what, f, structure, types) for f in functions]
    check_trees([bodies[k] for k in names], what, list(names.values()))
    known = index.known() if isinstance(index, Tracer) else index
    if isinstance(known, Array):
        body = bodies[int(known.np)]
        found = evaluate(body.program, [*body.consts, *values])
    else:
        programs, consts = in_common(bodies)
        found = cond_branches(index, *consts, *values, branches=tuple(programs))
    return tree.unflatten(bodies[0].out, found)


# ---------------------------------------------------------------------------- the operation

class Cond(Control):
    """The results of branches[index].   i32[], operands → results

    branches: Programs of one list of input and output types; index is moved into their range.
    """
    loop = "cond"
    first_const = 1

    def programs(self, params):
        return params["branches"]

    def replaced(self, params, programs, more=0):
        return {"branches": tuple(programs)}

    def type(self, index, *types, branches):
        return tuple(branches[0].out_types)

    def steps(self, index, *args, branches):
        return evaluate(branches[min(max(int(index), 0), len(branches) - 1)], args)

    def forward(self, args, tangents, params):
        branches = params["branches"]
        mask = tuple([t is not None for t in tangents[1:]])
        pushed = tuple([b.derive(jvp_program, mask) for b in branches])
        out = bound(args[0], pushed, [*args[1:], *[t for t in tangents[1:] if t is not None]])
        m = len(out) // 2
        return out[:m], out[m:]

    def depends(self, mask, params):
        found = [b.derive(dependent, mask[1:]) for b in params["branches"]]
        return tuple([mask[0] or any(each) for each in zip(*found)])

    def vjp_programs(self, mask, params):
        branches = params["branches"]
        return branches[0].derive(cond_vjp, branches, mask[1:])

    def batch_over(self, axis, dims, args, params):
        (index, *args), branches = args, params["branches"]
        if dims[0] is not None:
            index = to_front(index, dims[0])
            outs = []
            for k, b in enumerate(branches):
                taken = mine(index, k, len(branches))
                found = [shielded(taken, x, d) for x, d in zip(args, dims[1:])]
                own, at = zip(*found) if found else ((), ())
                outs.append(call(*own, program=b.derive(batch_program, at, axis)))
            return selected(index, outs), 0
        masks = [b.derive(batched, dims[1:], axis)[1] for b in branches]
        forced = tuple([any(m) for m in zip(*masks)])
        made = [b.derive(batched, dims[1:], axis, forced)[0] for b in branches]
        return bound(index, made, args), tuple([0 if f else None for f in forced])


cond_branches = Cond("cond")
INDEX = ArrayType(I32, ())


def bound(index, programs, args):
    """The operation with Programs that may close over arrays: those become operands."""
    programs, consts = in_common([Opened(*closed(p)) for p in programs])
    return cond_branches(index, *consts, *args, branches=tuple(programs))


def mine(index, k, n):
    """Which lanes take branch k of n: their index is moved into the range."""
    return le(index, k) if k == 0 else ge(index, k) if k == n - 1 else eq(index, k)


def shielded(taken, x, d):
    """(x, its batch axis), without a derivative in the lanes that do not take the branch.

    All lanes run all branches.  A derivative that is infinite there, times the cotangent 0 of what
    was not taken, would be NaN; selected here, it is 0.  An Array has no derivative at all.
    """
    if x.dtype.kind not in INEXACT_KINDS or isinstance(x, Array):
        return x, d
    x = to_front(x, d, taken.shape[0])
    return select(spread(taken, x), x, STOP(x)), 0


def selected(index, outs):
    """Per result the one of the branch that the lane's index says, which is moved into their range.
    """
    found = list(outs[-1])
    for k in reversed(range(len(outs) - 1)):
        own = le(index, k)
        found = [select(spread(own, x), x, y) for x, y in zip(outs[k], found)]
    return tuple(found)


# ---------------------------------------------------------------------------- reverse derivative

def cond_vjp(home, branches, mask):
    """(forward, backward) of the whole operation, as of a `call`.

    Residuals: the index, the operands that a branch reads again, and the slots: places that the
    branches' own residuals share, by type; a branch leaves zeros in those it does not need.
    """
    made = [b.derive(vjp_program, mask) for b in branches]
    m, n = len(home.outputs), len(home.inputs)
    slots, taken = slots_of(made, m)
    wanted = [any(first.inputs[k] in first.outputs[m:] for first, _ in made) for k in range(n)]
    firsts = [forward_branch(first, m, taken[k], slots) for k, (first, _) in enumerate(made)]
    seconds = [backward_branch(home, made[k], m, taken[k], slots, wanted) for k in range(len(made))]

    def forwards(index, *args):
        out = bound(index, firsts, args)
        return *out[:m], index, *chosen(args, wanted), *out[m:]

    def backwards(index, *args):
        return bound(index, seconds, args)
    types = [INDEX, *home.in_types]
    kept = [INDEX, *chosen(home.in_types, wanted), *slots]
    return (derived(home, "cond", forwards, types, ["index", *names_of(home)]),
            derived(home, "cond_back", backwards, [*kept, *home.out_types],
                    ["index", *chosen(names_of(home), wanted), *[None] * len(slots),
                     *ct_names(home)]))


def own_residuals(first, m):
    """The residuals that are no arguments, each once."""
    given = set(first.inputs)
    return [v for v in first.outputs[m:] if v not in given]


def slots_of(made, m):
    """(types of the slots, per branch {residual: slot})."""
    slots, taken = [], []
    for first, _ in made:
        free, mine = list(range(len(slots))), {}
        for v in own_residuals(first, m):
            k = next((k for k in free if slots[k] is v.type), None)
            if k is None:
                slots.append(v.type)
                k = len(slots) - 1
            else:
                free.remove(k)
            mine[v] = k
        taken.append(mine)
    return slots, taken


def forward_branch(first, m, mine, slots):
    """arguments → results, slots"""
    own = own_residuals(first, m)

    def function(*args):
        out = evaluate(first, args)
        kept = dict(zip(first.outputs[m:], out[m:]))
        places = {mine[v]: kept[v] for v in own}
        return *out[:m], *[places[k] if k in places else zeros_like(t) for k, t in enumerate(slots)]
    return derived(first, "branch", function, first.in_types, names_of(first))


def backward_branch(home, both, m, mine, slots, wanted):
    """kept arguments, slots, cotangents → cotangents of the masked arguments"""
    first, second = both
    place = {v: k for k, v in enumerate(chosen(first.inputs, wanted))}
    n = len(place)
    place.update({v: n + k for v, k in mine.items()})

    def function(*args):
        residuals = [args[place[v]] for v in first.outputs[m:]]
        return evaluate(second, [*residuals, *args[n + len(slots):]])
    types = [*chosen(home.in_types, wanted), *slots, *home.out_types]
    return derived(second, "branch_back", function, types, [])
