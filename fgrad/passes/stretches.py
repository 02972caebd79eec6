"""Long sums by stretches, whose sums are added up: rounding errors stay those of a short sum.

    acc = 0.0                                 acc = 0.0
    reduce i in 0..16777216                   reduce i in 0..1024
      acc += x[i]                      →        t = 0.0
                                                reduce j in 0..16384
                                                  t += x[16384*i+j]
                                                acc += t

A sum that grows by one element after another loses what is small beside it: the error of n
additions grows like the root of n, and like n where all are alike.  In stretches it grows like the
root of the longest chain (blocked summation: Higham, "The accuracy of floating point summation",
SIAM J. Sci. Comput. 14, 1993); many stretches are stretches of stretches.  A nest of loops is cut
where a stretch has about so many elements.  On a GPU the work-items of a group share a sum as it
is.  Relies on parts.py for substitution; schedule.py calls `in_stretches`, for what comes out of it
again.

Where memory hands several rows over faster than one, a stretch is read as so many parts side by
side, each with accumulators of its own.
"""

from __future__ import annotations

from math import prod

from .. import index, scalar
from ..loop import Accumulate, For, Let, Start, nodes_of
from ..records import replace
from ..scalar import EXPENSIVE
from .jam import CHAINS, renamed
from .parts import substituted

STRETCH = 1 << 14          # elements of a stretch; several hundred for each lane of an accumulator
LONG = 8 * STRETCH         # elements of a sum from which it is cut; up to there it loses little
MANY = 32                  # stretches that become a longer one
NODES = 12                 # of what is computed for an element where streams are read side by side


def in_stretches(loop, how, space, words):
    """The statements in place of a loop: itself, or its stretches and what is left behind them.

    how: the Schedule.  words: the kernel's names.
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
    size = wanted // sizes[k]
    side = streams_of(nest[k], size, how) if wanted == STRETCH else 1
    found = cut(nest[k], size, side, nest, space, words)
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


def cut(loop, size, streams, nest, space, words):
    """The loop in stretches of `size` iterations, each with accumulators of its own.

    streams: parts of a stretch that are read side by side.  nest: the loops around, and in it.
    """
    n, outer, share = loop.var.extent, space.variable(loop.var.extent // size), size // streams
    around = [s.var for s in nest[:nest.index(loop)]]
    firsts = [index.combine([(index.of(outer), size)], k * share) for k in range(streams)]
    out = [For(outer, stretch(loop, firsts, share, [outer, *around], nest, space, words), "reduce")]
    rest = n % size
    if rest and around:                # beside those of the others, which add numbers, no vectors
        out += stretch(loop, [index.ix({}, n - rest)], rest, around, nest, space, words)
    elif rest:
        last = space.variable(rest)
        behind = index.plus(index.of(last), n - rest)
        out.append(For(last, substituted(loop.body, {loop.var: behind}), "reduce"))
    return out


def stretch(loop, firsts, count, around, nest, space, words):
    """The statements of a stretch: `count` iterations from each of some first ones on, side by
    side, and their sums, which are added.

    around: the variables of the loops that hold it.  nest: those around the loop, and in it.
    """
    known, inner = sum(v.bit for v in around), space.variable(count)
    feeds = {s.name: s for s in nest[-1].body if isinstance(s, Accumulate)}.values()
    named = [s.name for each in nest[nest.index(loop):] for s in each.body
             if isinstance(s, (Let, Accumulate))]
    starts, bodies, parts = [], [], {s.name: [] for s in feeds}
    for first in firsts:
        to = {name: words.numbered("t") for name in dict.fromkeys(named)}
        at = index.combine([(first, 1), (index.of(inner), 1)])
        bodies += renamed(substituted(loop.body, {loop.var: at}), to)
        starts += [Start(to[s.name], s.how, s.expr.dtype) for s in feeds]
        for s in feeds:
            parts[s.name].append(scalar.name(to[s.name], s.expr.dtype, known))
    added = [Accumulate(s.name, s.how, scalar.pairwise(s.how, parts[s.name]), s.source)
             for s in feeds]
    return [*starts, For(inner, bodies, "reduce"), *added]


def streams_of(loop, size, how):
    """How many parts of a stretch are read side by side: one but where it comes from memory, and
    little is done with it.
    """
    if any(isinstance(s, For) for s in loop.body):
        return 1
    nodes = nodes_of(loop.body)
    read = {n.data[0] for n in nodes if n.op == "load"}
    feeds = sum(isinstance(s, Accumulate) for s in loop.body)
    if (sum(b.type.nbytes for b in read) <= how.jam or size % how.streams
            or feeds * how.streams > CHAINS or len(nodes) > NODES
            or any(n.cost >= EXPENSIVE for n in nodes)):
        return 1
    return how.streams
