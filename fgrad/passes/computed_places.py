"""Places of updates are worked out with vectors, for some updates at once; these follow in turn.

    serial i in 0..6400                        serial b in 0..100
      at: i32 = min(i32(x[i] * 64.0), 63)        serial i in 0..64 (8 lanes)
      y[<at>] += 1                      →          row[i] = min(i32(x[64*b+i] * 64.0), 63)
                                                 serial j in 0..64
                                                   y[<row[j]>] += 1

Histograms of what is computed, particles put into cells: two updates may meet at one element, so
they have no vectors themselves.  What is added is worked out so, too.  Relies on parts.py for
blocks and substitution; schedule.py calls `in_blocks`.
"""

from __future__ import annotations

from .. import index, scalar
from ..loop import Buffer, For, Let, Store, nodes_of
from ..records import replace
from ..types import ArrayType
from .names import names_used
from .parts import blocks_of, substituted

BLOCK = 64                 # updates at once
FEWEST, MORE = 16, 24      # updates from which vectors gain; operations on a place of less than two
                           # blocks
WORK = 6                   # operations on a place, and on what is added, from which vectors gain:
CAST = 4                   # as many as a float that becomes an integer takes
ROWS = 6                   # values that are kept of an update, at most
AT_HAND = ("load", "name", "const")
FREE = (*AT_HAND, "index")


def in_blocks(loop, space, words, vectorised):
    """The loops in place of one over updates; the loop alone where vectors would not gain.

    words: names of the kernel, for what is kept.  vectorised(loop): with vectors.
    """
    n = loop.var.extent
    if loop.step != 1 or n < FEWEST or not all(
            isinstance(s, (Let, Store)) for s in loop.body):
        return [loop]
    made, updates = parts_of(loop.body, words)
    written = {s.buffer for s in updates}
    nodes = nodes_of(made)
    if any(m.op == "load" and m.data[0] in written for m in nodes) or (
            sum(map(weight, nodes)) < (WORK if n >= 2 * BLOCK else MORE)):
        return [loop]
    used = names_used(updates)
    kept = [s for s in made if s.name in used and s.expr.op != "load"]
    if len(kept) > ROWS:
        return [loop]
    size = n if n < 2 * BLOCK else BLOCK
    rows = {s.name: Buffer(words.unique(f"{s.name}_row"), ArrayType(s.expr.dtype, (size,)),
                           "local") for s in kept}
    return blocks_of(loop, size, space, lambda start, size: of_block(
        loop.var, start, size, made, updates, rows, space, vectorised))


def weight(n):
    """About how many operations a scalar node is, of one number."""
    if n.op == "cast":
        return CAST if n.dtype.kind in "iu" and n.args[0].dtype.kind == "f" else 0
    return 0 if n.op in FREE else max(n.cost, 1)


def parts_of(body, words):
    """(Lets of all that the updates need, the updates): what is computed for them has a name."""
    made, updates = [], []
    for s in body:
        if isinstance(s, Store) and s.expr.op not in AT_HAND:
            made.append(Let(words.unique("value"), s.expr, s.source))
            s = replace(s, expr=scalar.name(made[-1].name, s.expr.dtype, s.expr.free))
        (made if isinstance(s, Let) else updates).append(s)
    return made, updates


def of_block(v, start, size, made, updates, rows, space, vectorised):
    """Two loops, over what `size` updates from `start` on need, and over these."""
    i, j = space.variable(size), space.variable(size)
    keep = [Store(row, index.of(i), scalar.name(name, row.type.dtype, index.of(i).free))
            for name, row in rows.items()]
    to = {v: index.plus(start, index.of(j))}
    known = {s.name: scalar.rewrite(s.expr, to, {}, {}) for s in made if s.expr.op == "load"}
    known.update((name, scalar.load(row, index.of(j))) for name, row in rows.items())
    made = substituted(made, {v: index.plus(start, index.of(i))})
    return [vectorised(For(i, made + keep, "serial")),
            For(j, substituted(updates, to, known), "serial")]
