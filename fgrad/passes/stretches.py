"""Long sums by stretches, whose sums are added up: rounding errors stay those of a short sum.

    acc = 0.0                                 acc = 0.0
    reduce i in 0..16777216                   reduce i in 0..1024
      acc += x[i]                      →        t = 0.0
                                                reduce j in 0..16384
                                                  t += x[16384*i+j]
                                                acc += t

A sum that grows by one element after another loses what is small beside it: the error of n additions
grows like the root of n, and like n where all are alike.  In stretches it grows like the root of the
longest chain (blocked summation: Higham, "The accuracy of floating point summation", SIAM J. Sci.
Comput. 14, 1993); many stretches are stretches of stretches.  A nest of loops is cut where a stretch
has about so many elements.  On a GPU the work-items of a group share a sum as it is.  Relies on
parts.py for substitution; schedule.py calls `in_stretches`, for what comes out of it again.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from .. import index, scalar
from ..loop import Accumulate, For, Let, Start
from .parts import substituted

STRETCH = 1 << 14          # elements of a stretch; several hundred for each lane of an accumulator
LONG = 2 * STRETCH         # elements of a sum from which it is cut
MANY = 32                  # stretches that become a longer one


def in_stretches(loop, space, words):
    """The statements in place of a loop: itself, or its stretches and what is left behind them.

    words: the kernel's names.
    """
    nest = nest_of(loop)
    total = prod(s.var.extent for s in nest)
    if not nest or total < LONG or not any(
            isinstance(s, Accumulate) and s.how == "sum" and s.expr.dtype.kind == "f"
            for s in nest[-1].body):
        return [loop]
    wanted = STRETCH
    while 2 * MANY * wanted <= total:
        wanted *= MANY
    sizes = [prod(s.var.extent for s in nest[k + 1:]) for k in range(len(nest))]
    k = next(k for k, size in enumerate(sizes) if size < wanted)
    around = sum(s.var.bit for s in nest[:k])
    found = cut(nest[k], wanted // sizes[k], nest[-1].body, around, space, words)
    for outer in reversed(nest[:k]):
        found = [replace(outer, body=[*outer.body[:-1], *found])]
    return found


def nest_of(loop):
    """The reductions that hold, but for names, each the next one, the last no loop; else none."""
    found = []
    while isinstance(loop, For) and loop.kind == "reduce" and loop.step == 1:
        found.append(loop)
        *before, loop = loop.body
        if not all(isinstance(s, Let) or isinstance(s, Accumulate) and not isinstance(loop, For)
                   for s in before):
            return []
    return found if isinstance(loop, (Let, Accumulate)) else []


def cut(loop, size, feeds, around, space, words):
    """The loop in stretches of `size` iterations, each with accumulators of its own.

    feeds: statements of which some feed accumulators.  around: mask of the variables of the nest
    around the loop.
    """
    n, v = loop.var.extent, loop.var
    outer, inner = space.variable(n // size), space.variable(size)
    own = {s.name: (words.unique(f"{s.name}_part"), s) for s in feeds if isinstance(s, Accumulate)}
    at = index.combine([(index.of(outer), size), (index.of(inner), 1)])
    body = fed(substituted(loop.body, {v: at}), {name: mine for name, (mine, _) in own.items()})
    known = around | index.of(outer).free
    stretch = [*[Start(mine, s.how, s.expr.dtype) for mine, s in own.values()],
               For(inner, body, "reduce"),
               *[Accumulate(name, s.how, scalar.name(mine, s.expr.dtype, known), s.source)
                 for name, (mine, s) in own.items()]]
    out = [For(outer, stretch, "reduce")]
    if n % size:
        rest = space.variable(n % size)
        behind = index.plus(index.of(rest), n // size * size)
        out.append(For(rest, substituted(loop.body, {v: behind}), "reduce"))
    return out


def fed(body, names):
    """The statements, which feed accumulators of other names."""
    out = []
    for s in body:
        if isinstance(s, For):
            s = replace(s, body=fed(s.body, names))
        elif isinstance(s, Accumulate):
            s = replace(s, name=names[s.name])
        out.append(s)
    return out
