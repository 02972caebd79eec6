"""Tails: what is computed from the sums of a row, with vectors, for many rows at once.

    serial i in 0..48                          serial i in 0..48
      t: f32 = 0.0                               t: f32 = 0.0
      reduce k in 0..16                          reduce k in 0..16
        t += w[i,k] * h[k]              →          t += w[i,k] * h[k]
      y[i] = tanh(t)                             row[i] = t
                                               serial j in 0..48 (16 lanes)
                                                 y[j] = tanh(row[j])

Worth it where the tail calls an elementary function and a row is short: of one number these take as
long as of a vector.  Long loops are cut into blocks, each with rows of its own.  Relies on parts.py
for substitution; schedule.py calls `apart`.
"""

from __future__ import annotations

from .. import index, scalar
from ..loop import Buffer, For, Let, Start, Store, accumulators, names, nodes_of
from ..scalar import EXPENSIVE
from ..types import ArrayType
from .memory import stores_of
from .parts import blocks_of, cost_of, substituted, with_values

LEAST = 4                  # rows from which vectors gain
WORK = 4096                # cost of a row up to which its tail counts
BLOCK, BLOCKS = 64, 8      # rows of a block; blocks that threads share at least


def apart(loop, space, words, vectorised):
    """The loops in place of one over rows whose tail has vectors of its own; else the loop alone.

    words: names of the kernel, for what a row hands to its tail.  vectorised(loop): with vectors.
    """
    ends = [k for k, s in enumerate(loop.body) if isinstance(s, For)]
    head, tail = loop.body[:ends[-1] + 1], loop.body[ends[-1] + 1:]
    if loop.step != 1 or loop.var.extent < LEAST or accumulators(loop) or not (
            are_rows(tail, loop.var) and is_dear(tail) and cost_of(head) <= WORK
            and is_separate(head, tail)):
        return [loop]
    n, serial = loop.var.extent, loop.kind == "serial"
    size = n if serial and n <= BLOCK else block_of(n, loop.kind)
    return blocks_of(loop, size, space, lambda start, size: of_block(
        loop.var, start, size, head, tail, space, words, vectorised))


def block_of(n, kind):
    """The rows of a block: as many as leave blocks for the threads, and no rest if that is near."""
    most = BLOCK
    while kind == "parallel" and most > 16 and n // most < BLOCKS:
        most //= 2
    whole = [k for k in range(most, most // 2, -8) if n % k == 0]
    return whole[0] if whole else min(most, n)


def is_dear(tail):
    """Does a tail call elementary functions?"""
    return any(n.cost >= EXPENSIVE for s in tail for n in scalar.walk(s.expr))


def are_rows(tail, v):
    """Does a tail only name values, and store one for each row?"""
    return all(isinstance(s, Let) or isinstance(s, Store) and not s.how and not s.when
               and not s.index.nodes and index.is_affine(s.index, v) and index.stride(s.index, v)
               for s in tail)


def is_separate(head, tail):
    """Does neither read what the other one writes?"""
    made, used = ({s.buffer for s in stores_of(part)} for part in (head, tail))
    return made.isdisjoint(read(tail)) and used.isdisjoint(read(head)) and made.isdisjoint(used)


def read(body):
    """The buffers that some statements read."""
    return {n.data[0] for n in nodes_of(body) if n.op == "load"}


def handed_over(head, tail):
    """The names that a tail uses and the head makes, with their dtypes."""
    made = {s.name: s.dtype if isinstance(s, Start) else s.expr.dtype
            for s in head if isinstance(s, (Start, Let))}
    used = set().union(*(names(s.expr) for s in tail))
    return {name: dtype for name, dtype in made.items() if name in used}


def of_block(v, start, size, head, tail, space, words, vectorised):
    """Two loops, over heads and tails of `size` rows from `start` on; v: the variable of rows."""
    i, j = space.variable(size), space.variable(size)
    keep, known = [], {}
    for name, dtype in handed_over(head, tail).items():
        row = Buffer(words.unique(f"{name}_row"), ArrayType(dtype, (size,)), "local")
        keep.append(Store(row, index.of(i), scalar.name(name, dtype, index.of(i).free)))
        known[name] = scalar.load(row, index.of(j))
    heads = substituted(head, {v: index.combine([(start, 1), (index.of(i), 1)])})
    tails = with_values(tail, {v: index.combine([(start, 1), (index.of(j), 1)])}, known)
    return [For(i, [*heads, *keep], "serial"),
            vectorised(For(j, tails, "serial"))]
