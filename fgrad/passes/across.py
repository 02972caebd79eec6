"""Vectors across: a loop has the vectors, and the loops inside of it run for all lanes at once.

    serial l in 0..96                                serial b in 0..2
      t: f32 = 0.0                                     serial l in 0..64 (64 lanes)
      reduce j in 0..85                                  t: f32 = 0.0
        t += x[96*j+l]                           →       reduce j in 0..85
      y[l] = t                                             t += x[96*j+64*b+l]
                                                         y[64*b+l] = t

For sums and softmaxes over an axis that is not the last, and running sums: what they read lies side
by side along the outer loop.  Scratch rows hold a vector for each element then.  Relies on parts.py
for substitution; schedule.py calls it where the target has loops within loops of vectors.
"""

from __future__ import annotations

from .. import index, scalar
from ..loop import Accumulate, Buffer, For, Let, Start, Store, accumulators, nodes_of
from ..records import replace
from ..types import ArrayType
from .parts import substituted

VECTORS = 4                # side by side: sums wait for each other's additions less
BLOCKS = 16                # of a parallel loop, if they are not one vector
ROOM = 1 << 18             # bytes of all scratch rows of a block, if it is not one vector
LEAST, LONG = 8, 512       # iterations of a loop that vectors are worth while for, always or if
                           # nothing is read side by side along it and a loop inside


def is_across(loop):
    """Is everything in a loop that holds loops read and written in vectors along it?

    What varies along it and along a loop inside must lie side by side, and nothing is read that is
    written.  Some, read or stored, must vary along both; or the loop is long, and a reduction
    inside of it needs no sum of lanes then.
    """
    v = loop.var
    if loop.kind == "reduce" or loop.step != 1 or v.extent < LEAST or accumulators(loop):
        return False
    statements, inner = list(within(loop.body)), 0
    if not all(fits(s, v) for s in statements):
        return False
    for s in statements:
        inner |= s.var.bit if isinstance(s, For) else 0
    nodes = nodes_of(loop.body)
    stores = [s for s in statements if isinstance(s, Store) and s.buffer.kind != "local"]
    reads = [n.data for n in nodes if n.op == "load"]
    written, places = {s.buffer for s in stores}, [x for _, x in reads]
    if not all(is_side_by_side(x, v) and b not in written for b, x in reads):
        return False
    if v.extent >= LONG and any(x.free & v.bit for x in places):
        return True
    return any(x.free & v.bit and x.free & inner for x in (*places, *[s.index for s in stores]))


def within(body):
    """All statements within some, loops with them."""
    for s in body:
        yield s
        if isinstance(s, For):
            yield from within(s.body)


def fits(s, v):
    """Can a statement run for a vector of v?"""
    match s:
        case For():
            return s.step == 1 and s.kind != "parallel"
        case Store() if s.buffer.kind == "local":
            return not s.how and not s.when and not s.index.nodes and not s.index.free & v.bit
        case Store():
            return not s.when and s.index.free & v.bit and is_side_by_side(s.index, v)
        case Let() | Start() | Accumulate():
            return True
    return False


def is_side_by_side(x, v):
    """Does an index step through v by one, or not at all?"""
    if not x.free & v.bit:
        return True
    return index.is_affine(x, v) and index.stride(x, v) == 1


def in_blocks(loop, lanes, space, words):
    """The loop in blocks of vectors, and a last block for what is left over.

    A parallel one without scratch rows is no more than vectors, of which threads take their share.
    """
    n, width, out = loop.var.extent, lanes_of(loop, lanes), []
    while loop.kind == "parallel" and width > lanes and n < BLOCKS * width:
        width //= 2
    rows = any(isinstance(s, Store) and s.buffer.kind == "local" for s in within(loop.body))
    if loop.kind == "parallel" and not rows:
        body, grain = with_copies(loop.body, VECTORS * lanes // width), -(-loop.grain // width)
        return [replace(loop, body=body, width=width, grain=grain * width)]
    for first, count, size in (0, n // width, width), (n // width * width, 1, n % width):
        if count * size:
            b, v = space.variable(count), space.variable(size)
            wide = max(2, 1 << (size - 1).bit_length())
            at = index.plus(index.combine([(index.of(b), width), (index.of(v), 1)]), first)
            body = with_wide_rows(substituted(loop.body, {loop.var: at}), v, wide, words)
            body = with_copies(body, VECTORS * lanes // wide)
            block = For(v, body, "serial", width=wide)
            out.append(For(b, [block], loop.kind, grain=-(-loop.grain // width)))
    return out


def lanes_of(loop, lanes):
    """The lanes of a block: several vectors of the widest dtype in it, of which rows have room."""
    widest, rows = 4, {}
    for s in within(loop.body):
        if not isinstance(s, For):
            widest = max(widest, (s if isinstance(s, Start) else s.expr).dtype.itemsize)
        if isinstance(s, Store) and s.buffer.kind == "local":
            rows[s.buffer] = s.buffer.type.nbytes
    vectors = VECTORS
    while vectors > 1 and sum(rows.values()) * 4 * lanes // widest * vectors > ROOM:
        vectors //= 2
    return vectors * max(1, 4 * lanes // widest)


def with_copies(body, copies):
    """The statements with so many sums in turn, in loops that hold nothing else."""
    out = []
    for s in body:
        if isinstance(s, For):
            s = replace(s, body=with_copies(s.body, copies))
            plain = s.kind == "reduce" and not any(isinstance(t, (For, Store)) for t in s.body)
            if plain and 1 < copies <= s.var.extent:
                s = replace(s, unroll=min(copies, VECTORS))
        out.append(s)
    return out


def with_wide_rows(body, v, wide, words):
    """The statements with scratch rows that hold a vector along v for each element."""
    rows = {}
    for s in within(body):
        if isinstance(s, Store) and s.buffer.kind == "local" and s.buffer not in rows:
            t = s.buffer.type
            rows[s.buffer] = Buffer(words.unique(s.buffer.name), ArrayType(t.dtype, (
                t.size, wide)), "local")
    return widened(body, rows, v, wide) if rows else body


def widened(body, rows, v, wide):
    """The same, of the rows known to hold vectors: row → what replaces it."""
    def place(x):
        return index.combine([(x, wide), (index.of(v), 1)])
    to = {n: scalar.load(rows[n.data[0]], place(n.data[1])) for n in nodes_of(body)
          if n.op == "load" and n.data[0] in rows}
    out = []
    for s in body:
        match s:
            case For():
                out.append(replace(s, body=widened(s.body, rows, v, wide)))
            case Start():
                out.append(s)
            case Store() if s.buffer in rows:
                out.append(replace(s, buffer=rows[s.buffer], index=place(s.index),
                                   expr=scalar.rewrite(s.expr, {}, to, {})))
            case _:
                out.append(replace(s, expr=scalar.rewrite(s.expr, {}, to, {})))
    return out
