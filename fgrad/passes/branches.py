"""Branches that cost less than to choose one: all of them are computed, and the results selected.

    y = cond[…] (p, x)       →      a = sin x;  b = mul x 2;  y = select p a b

Choosing takes a jump in the list of steps, keeps a loop's body from being one kernel, and stores
what the branches read and give.  Only operations that give something for every argument, and do
nothing else, are computed though nobody may want them.  Relies on the operations of control flow.
"""

from __future__ import annotations

from .. import scalar
from ..ir import Equation, Var
from ..ops import broadcast, ge, select
from ..ops.elementwise import Elementwise
from ..types import BOOL, ArrayType
from .hoist import copied

LIMIT = 48                 # additions that all branches take together, in vectors of LANES
LANES = 16
MOVES = frozenset("""barrier bitcast broadcast concatenate convert dynamic_slice full gather iota
    pad reshape rev select slice transpose""".split())


def flat_branches(program):
    """The Program with cheap branches computed side by side; itself if there are none."""
    return program.rewritten(
        lambda eqn: selected(eqn) if eqn.op.nested and eqn.op.loop == "cond" else [eqn])


def selected(eqn):
    """The equations in place of a cond: itself, if its branches are not cheap."""
    branches = [b.derive(flat_branches) for b in eqn.params["branches"]]
    if eqn.effect or sum(map(cost, branches)) > LIMIT:
        return [eqn]
    index, out, results = eqn.args[0], [], None
    for k, branch in enumerate(branches):
        eqns, known = copied(branch.eqns, dict(zip(branch.inputs, eqn.args[1:])))
        out += eqns
        found = [known[v] for v in branch.outputs]
        if results is None:
            results = found
            continue
        chosen = Var(ArrayType(BOOL, ()))
        out.append(Equation(ge, (index, k), {}, (chosen,), eqn.source, eqn.mark))
        last = k == len(branches) - 1
        made = [v if last else Var(v.type) for v in eqn.outs]
        for x, y, v in zip(found, results, made):
            out += where(chosen, x, y, v, eqn)
        results = made
    return out if len(branches) > 1 else [eqn]


def where(chosen, x, y, v, eqn):
    """The equations of v = x where the bool holds, else y."""
    if v.shape == ():
        return [Equation(select, (chosen, x, y), {}, (v,), eqn.source, eqn.mark)]
    wide = Var(ArrayType(BOOL, v.shape))
    params = {"shape": v.shape, "axes": tuple(range(len(v.shape)))}
    return [Equation(broadcast, (chosen,), params, (wide,), eqn.source, eqn.mark),
            Equation(select, (wide, x, y), {}, (v,), eqn.source, eqn.mark)]


def cost(branch):
    """What a branch costs, with the choice of its results, in additions; more than LIMIT where an
    operation of it is dear, or does more than give a value.
    """
    total = sum(vectors(v) for v in branch.outputs)
    for eqn in branch.eqns:
        if isinstance(eqn.op, Elementwise) and isinstance(eqn.op.scalar, str):
            each = scalar.INSTRUCTIONS[eqn.op.scalar].cost
        elif eqn.op.name in MOVES:
            each = 1
        else:
            return LIMIT + 1
        total += each * sum(vectors(v) for v in eqn.outs)
    return total


def vectors(v):
    """How many vectors of LANES elements an array is."""
    return -(-v.type.size // LANES)
