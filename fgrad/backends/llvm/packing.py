"""Packing: blocks of an operand evaluated into the layout that kernels read.

A block of A becomes either rows (element (i, k) at i·stride + k) or panels of columns (element (i,
k) of a panel of `rows` rows at k·rows + i); a block of B becomes panels of `width` columns (element
(k, j) at k·width + j).  An operand is given as a function that writes the code of `lanes`
neighbouring elements: packing a strided array is a load, packing a fused expression computes it,
and nothing else differs.  Where the neighbours run across the panel, squares go through register
transposes.  Relies on `text`; `contract_emit` and `winograd_emit` rely on it.
"""

from __future__ import annotations

from math import lcm

from ...records import frozen
from .text import BYTES, Function, mangled

PANELS = 40                # panels of columns of A that are written together


@frozen
class Transpose:
    """A shareable function: lanes × lanes elements at `from` written transposed at `to`.

    Only `rows` rows of `depth` elements are read, `depth` rows are written, what was not read is
    zero.
    """
    type: str
    lanes: int
    rows: int
    depth: int

    @property
    def name(self):
        return f"fg.transpose.{mangled(self.type, self.lanes)}.{self.rows}x{self.depth}"

    def text(self):
        """void (from, from stride, to, to stride), strides in elements."""
        fn = Function(self.name, "ptr noalias readonly %from, i64 %fs, ptr noalias %to, i64 %ts",
                      linkage="internal", attributes="nounwind noinline")
        rows = []
        for r in range(self.rows):
            pointer = fn.gep(self.type, "%from", fn.mul("%fs", r))
            rows.append(fn.vector_load(self.type, self.lanes, pointer, self.depth))
        rows += ["zeroinitializer"] * (self.lanes - self.rows)
        for r, row in enumerate(transposed(fn, self.type, self.lanes, rows)[:self.depth]):
            fn.vector_store(self.type, self.lanes, row, fn.gep(self.type, "%to", fn.mul("%ts", r)))
        return fn.ret()


def transposed(fn, type, lanes, rows):
    """`lanes` vectors turned into their transpose by log2(lanes) stages of two-input shuffles.

    First squares of 16 bytes are transposed within themselves, then whole chunks of 16 bytes are:
    x86 has single instructions for shuffles of these two kinds only.
    """
    size = min(lanes, 16 // BYTES[type])
    columns = [within_chunks(fn, type, lanes, rows[r:r + size]) for r in range(0, lanes, size)]
    by_chunk = [among_chunks(fn, type, lanes, size, [c[j] for c in columns]) for j in range(size)]
    return [by_chunk[r % size][r // size] for r in range(lanes)]


def within_chunks(fn, type, lanes, rows):
    """n vectors in chunks of n elements: vector j of the result has element j of every chunk.

    The first stage interleaves elements of rows 2r and 2r+1, the next one pairs of elements of rows
    4r, 4r+1 and 4r+2, 4r+3, and so on.
    """
    n, unit = len(rows), 1
    while unit < n:
        halves = [[chunk + half + from_b + at + k
                   for chunk in range(0, lanes, n)
                   for at in range(0, n // 2, unit)
                   for from_b in (0, lanes)
                   for k in range(unit)]
                  for half in (0, n // 2)]
        pairs = [(a, a + unit) for a in range(n) if not a & unit]
        rows = [fn.shuffle(type, lanes, rows[a], rows[b], half)
                for a, b in pairs for half in halves]
        unit *= 2
    return rows


def among_chunks(fn, type, lanes, size, vectors):
    """R vectors of R chunks of `size` elements: vector c of the result has chunk c of each."""
    if len(vectors) == 1:
        return vectors
    chunks = range(0, 2 * lanes, size)
    picks = [[c + k for c in chunks[odd::2] for k in range(size)] for odd in (0, 1)]
    pairs = list(zip(vectors[::2], vectors[1::2]))
    even, odd = ([fn.shuffle(type, lanes, a, b, pick) for a, b in pairs] for pick in picks)
    even = among_chunks(fn, type, lanes, size, even)
    odd = among_chunks(fn, type, lanes, size, odd)
    return [v for both in zip(even, odd) for v in both]


class Packer:
    """Writes packing loops into a function.

    Blocks are multiples of the panel, save at the ends of the operand; `kernels` collects the
    shareable functions that are called, by name.  row_lanes: of the vectors of a row of A.
    """

    def __init__(self, fn, tile, kernels, row_lanes):
        self.fn, self.tile, self.kernels, self.row_lanes = fn, tile, kernels, row_lanes
        self.column_lanes = min(row_lanes, 1 << (tile.rows - 1).bit_length())
        self.square_lanes = min(tile.lanes, 32 // BYTES[tile.type])

    def store(self, value, to, index, lanes=None):
        type = self.tile.type
        self.fn.vector_store(type, lanes or self.tile.lanes, value, self.fn.gep(type, to, index))

    def rows(self, value, rows, depth, tail, to, stride):
        """A block of A as rows: value(i, k, count).

        tail: what the depth of the last block leaves over after whole vectors (a constant).  A row
        is written up to its next whole vector.
        """
        fn, lanes = self.fn, self.row_lanes
        whole = fn.sub(depth, fn.rem(depth, lanes)) if tail else depth
        with fn.loop(0, rows) as i:
            row = fn.gep(self.tile.type, to, fn.mul(i.index, stride))
            with fn.loop(0, whole, lanes) as k:
                self.store(value(i.index, k.index, None), row, k.index, lanes)
            if tail:
                with fn.if_(fn.compare("slt", whole, depth)):
                    self.store(value(i.index, whole, tail), row, whole, lanes)

    def columns(self, value, rows, left, depth, to, loads):
        """A block of A as panels of columns: value(i, k, count), a vector of `column_lanes`.

        left: how many rows of A are left from here.  loads: whether `value` is a load, of which
        many may be written.  A column is stored as whole vectors of `column_lanes`: what runs over
        is overwritten by the next one, and behind the last one there is room for it.
        """
        fn, step = self.fn, self.tile.rows
        span = -(-step // self.column_lanes) * self.column_lanes
        ends = fn.min(rows, fn.add(fn.sub(left, span), 1))
        whole = fn.mul(fn.div(fn.add(fn.max(ends, 0), step - 1), step), step)
        inside, several, count = (0, fn.min(whole, rows)), 0, self.together
        if loads and count > 1:
            several = fn.sub(depth, fn.rem(depth, count))
            self.column_panels(inside, (0, several, count), depth, lambda *at:
                               self.columns_together(value, count, to, *at))
        self.column_panels(inside, (several, depth), depth, lambda *at:
                           self.column(value, None, to, *at))
        self.column_panels((whole, rows), (0, depth), depth, lambda *at:
                           self.column(value, left, to, *at))

    @property
    def together(self):
        """How many columns fill whole vectors, where one fills no more than a half; else 1."""
        lanes, rows = self.tile.lanes, self.tile.rows
        return lcm(lanes, rows) // rows if 2 * self.column_lanes <= lanes else 1

    def column_panels(self, rows, columns, depth, write):
        """write(i, k, place) for the panels and columns of these ranges, several panels at once:
        their elements of one column share lines of the cache, and the next column's may be pages
        away.
        """
        fn, step, (start, stop) = self.fn, self.tile.rows, rows
        with fn.loop(start, stop, step * PANELS) as many, fn.loop(*columns) as k:
            end = fn.min(fn.add(many.index, step * PANELS), stop)
            with fn.loop(many.index, end, step) as i:
                place = fn.add(fn.mul(i.index, fn.add(depth, 1)), fn.mul(k.index, step))
                write(i.index, k.index, place)

    def column(self, value, left, to, i, k, place):
        """One column of a panel; `left` rows of A are left from the block's first, or None."""
        fn, lanes = self.fn, self.column_lanes
        for first in range(0, self.tile.rows, lanes):
            at = fn.add(i, first)
            count = None if left is None else fn.sub(left, at)
            self.store(value(at, k, count), to, fn.add(place, first), lanes)

    def columns_together(self, value, count, to, i, k, place):
        """So many columns of a panel, which fill whole vectors: a store takes as long for a part of
        one, and twice as long where it goes into a second line of the cache."""
        fn, type, lanes, rows = self.fn, self.tile.type, self.tile.lanes, self.tile.rows
        few = self.column_lanes
        columns = [fn.shuffle(type, few, value(i, fn.add(k, n), None), "poison",
                              [lane % few for lane in range(lanes)]) for n in range(count)]
        for start in range(0, count * rows, lanes):
            made = "poison"
            for n in range(start // rows, -(-(start + lanes) // rows)):
                before = n * rows - start                # lanes that earlier columns have filled
                made = fn.shuffle(type, lanes, made, columns[n], [
                    lane if lane < before else lanes + (lane - before) % rows
                    for lane in range(lanes)])
            self.store(made, to, fn.add(place, start))

    def panels(self, value, depth, columns, tail, to, by_panel=False):
        """A block of B as panels: value(k, j, count); tail: columns of B beyond whole panels.

        by_panel: one panel after the other, where a column's place takes long to work out, not one
        row of B.
        """
        fn, width, lanes = self.fn, self.tile.width, self.tile.lanes
        whole = fn.sub(columns, fn.rem(columns, width)) if tail else columns

        def panel(k, j, tail=0):
            to_row = fn.gep(self.tile.type, to, fn.add(fn.mul(k, width), fn.mul(j, depth)))
            for first in range(0, tail or width, lanes):
                count = tail - first if 0 < tail - first < lanes else None
                self.store(value(k, fn.add(j, first), count), to_row, first)

        if by_panel:
            with fn.loop(0, whole, width) as j, fn.loop(0, depth) as k:
                panel(k.index, j.index)
            if tail:
                with fn.if_(fn.compare("slt", whole, columns)), fn.loop(0, depth) as k:
                    panel(k.index, whole, tail)
            return
        with fn.loop(0, depth) as k:
            with fn.loop(0, whole, width) as j:
                panel(k.index, j.index)
            if tail:
                with fn.if_(fn.compare("slt", whole, columns)):
                    panel(k.index, whole, tail)

    def transposed_panels(self, source, depth, least, columns, tail, to):
        """A block of B as panels through transposes of squares of `square_lanes`.

        source(k, j, rows, depth): writes what makes rows of B's transpose addressable: the address
        of element (k, j) and the distance between columns.  `least`: the least depth of a block;
        `tail`: columns of B beyond whole squares.  The last square in the depth overlaps the one
        before.  Squares are of 32 bytes: two processor ports shuffle those, and they compile six
        times faster.
        """
        fn, lanes = self.fn, self.tile.lanes
        size = min(self.square_lanes, least)
        whole = fn.sub(columns, fn.rem(columns, self.square_lanes)) if tail else columns

        def steps():
            return fn.loop(0, depth, size)

        with fn.loop(0, whole, lanes) as j, steps() as k:
            stop = fn.min(fn.add(j.index, lanes), whole)
            with fn.loop(j.index, stop, self.square_lanes) as q:
                self.square(source, k.index, q.index, self.square_lanes, size, depth, to)
        if tail:
            with fn.if_(fn.compare("slt", whole, columns)), steps() as k:
                self.square(source, k.index, whole, tail, size, depth, to)

    def square(self, source, k, j, rows, size, depth, to):
        """One square of `rows` columns and `size` steps of B."""
        fn, tile = self.fn, self.tile
        kernel = Transpose(tile.type, self.square_lanes, rows, size)
        self.kernels[kernel.name] = kernel
        k = fn.min(k, fn.sub(depth, size))
        pointer, stride = source(k, j, rows, size)
        inside = fn.rem(j, tile.width)
        place = fn.add(fn.mul(fn.sub(j, inside), depth), fn.add(inside, fn.mul(k, tile.width)))
        fn.call(kernel.name, ("ptr", pointer), ("i64", stride),
                ("ptr", fn.gep(tile.type, to, place)), ("i64", tile.width))
