"""Updates at places that are computed from counters become slices between zeros, and their sums.

    i = iota                                          a = pad 0 u[:n-1] behind one zero
    scatter_add zeros ((i + 1) % n) u        →        b = pad 0 u[n-1:] in front of n-1 zeros
                                                      zeros + a + b

Such is the gradient of neighbours, `x[(i + 1) % n]` or `x[clip(i - 1, 0, n - 1)]`.  Slices are read
where they are added up, by all threads and in vectors; updates are made one after the other.
Elements are added in the order of their updates.  The pipeline calls `in_slices`.
"""

from __future__ import annotations

import math
from functools import lru_cache

from .. import index, ops, piecewise
from ..interpreters.stage import stage
from ..ir import Var
from .matrices import in_place_of
from .pull import Graph, Puller

MOST = 6                   # slices of one array of updates


def in_slices(program):
    """The Program with such updates as slices; itself if there are none."""
    if all(eqn.op.name != "scatter_add" for eqn in program.eqns):
        return program
    graph = Graph(program)

    def rewritten(eqn):
        key = of_slices(graph, eqn) if eqn.op.name == "scatter_add" else None
        return [eqn] if key is None else in_place_of(eqn, traced, key)
    return program.rewritten(rewritten)


def of_slices(graph, eqn):
    """(the types, the axes, the Pieces of each axis of the updates) of an equation, or None."""
    x, *indices, u = eqn.args
    if u.__class__ is not Var or not is_zero(graph, x) or not graph.counted.issuperset(indices):
        return None
    axes = eqn.params["axes"]
    if 0 in (*x.shape, *u.shape) or len(indices[0].shape) != len(indices):
        return None
    found = [pieces(graph, i, x.shape[a], eqn.params.get("mode", "clip"))
             for i, a in zip(indices, axes)]
    if None in found or {axis for axis, _ in found} != {*range(len(found))}:
        return None
    slices = math.prod(len(parts) for _, parts in found)
    if slices > MOST or len(found) > 1 and not all(are_apart(parts) for _, parts in found):
        return None
    types = tuple([a.type for a in eqn.args])
    return types, axes, tuple([(axis, tuple(parts)) for axis, parts in found])


def is_zero(graph, x):
    """Is an array 0 everywhere, and not -0.0?"""
    eqn, _ = graph.makers.get(x, (None, 0))
    if eqn is None or eqn.op.name != "full":
        return False
    value = eqn.params["value"]
    return value == 0 and math.copysign(1, value) > 0


def pieces(graph, i, extent, mode):
    """(the axis of an index array along which it is affine in pieces, these), or None."""
    with index.Space() as space:
        at = [space.variable(n) for n in i.shape]
        element = Puller(graph, ())(i, tuple(map(index.of, at)))
        v = piecewise.variable(element)
        found = piecewise.clamped(element, extent) if mode == "clip" else piecewise.forms(element)
    if not found or v not in at:
        return None
    single = [p for part in found for p in ([part] if part.slope else one_by_one(part))]
    inside = all(0 <= p.at(k) < extent for p in single for k in (p.lo, p.hi - 1))
    return (at.index(v), single) if inside and len(single) <= MOST else None


def one_by_one(part):
    """A Piece in places of one element each."""
    return [part._replace(lo=k, hi=k + 1) for k in range(part.lo, min(part.hi, part.lo + MOST + 1))]


def are_apart(parts):
    """Do no two Pieces reach the same place?"""
    seen = set()
    for p in parts:
        reached = range(p.at(p.lo), p.at(p.hi), p.slope) if p.slope else [p.first]
        if not seen.isdisjoint(reached):
            return False
        seen.update(reached)
    return True


@lru_cache(maxsize=256)
def traced(types, axes, found):
    """The Program that adds updates to zeros by slices."""
    shape = types[0].shape

    def run(x, *rest):
        u = rest[-1]
        for (axis, parts), a in zip(found, axes):
            u = total(u, axis, parts, shape[a])
        behind = iter(range(len(found), len(shape)))
        at = dict(zip(axes, [axis for axis, _ in found]))
        perm = tuple([at[a] if a in at else next(behind) for a in range(len(shape))])
        return ops.add(x, u if perm == tuple(range(len(shape))) else ops.transpose(u, perm=perm))
    return stage(run, types, name="scatter_add").program


def total(u, axis, parts, extent):
    """The sum of parts of u, each where it belongs along an axis of this extent."""
    out = None
    for p in parts:
        part = placed(u, axis, p, extent)
        out = part if out is None else ops.add(out, part)
    return out


def placed(u, axis, p, extent):
    """One Piece of u between zeros."""
    ends = lambda value, rest: tuple(value if a == axis else n for a, n in enumerate(rest))
    zeros = (0,) * u.ndim
    u = ops.slice(u, start=ends(p.lo, zeros), stop=ends(p.hi, u.shape), stride=(1,) * u.ndim)
    first, last = sorted((p.at(p.lo), p.at(p.hi - 1)))
    if p.slope < 0:
        u = ops.rev(u, axes=(axis,))
    return ops.pad(u, 0, low=ends(first, zeros), high=ends(extent - 1 - last, zeros),
                   interior=ends(max(abs(p.slope), 1) - 1, zeros))
