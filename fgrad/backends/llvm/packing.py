"""Packing: blocks of an operand evaluated into the layout that kernels read.

A block of A becomes either rows (element (i, k) at i·stride + k) or panels of columns (element (i, k)
of a panel of `rows` rows at k·rows + i); a block of B becomes panels of `width` columns (element (k, j)
at k·width + j).  An operand is given as a function that writes the code of `lanes` neighbouring
elements: packing a strided array is a load, packing a fused expression computes it, and nothing else
differs.  Where the neighbours run across the panel, squares go through register transposes.  Relies
on `text` and `tiles`; `contract` relies on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .text import Function, mangled


@dataclass(frozen=True)
class Transpose:
    """A shareable function: lanes × lanes elements at `from` written transposed at `to`.

    Only `rows` rows of `depth` elements are read, `depth` rows are written, what was not read is zero.
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

    Stage d exchanges the off-diagonal d × d blocks of every 2d × 2d block.
    """
    d = 1
    while d < lanes:
        low = [i + lanes - d if i & d else i for i in range(lanes)]
        high = [i + lanes if i & d else i + d for i in range(lanes)]
        rows = list(rows)
        for i in range(lanes):
            if not i & d:
                a, b = rows[i], rows[i + d]
                rows[i] = fn.shuffle(type, lanes, a, b, low)
                rows[i + d] = fn.shuffle(type, lanes, a, b, high)
        d *= 2
    return rows


class Packer:
    """Writes packing loops into a function.

    Blocks are multiples of the panel, save at the ends of the operand; `kernels` collects the
    shareable functions that are called, by name.
    """

    def __init__(self, fn, tile, kernels):
        self.fn, self.tile, self.kernels = fn, tile, kernels

    def store(self, value, to, index):
        tile = self.tile
        self.fn.vector_store(tile.type, tile.lanes, value, self.fn.gep(tile.type, to, index))

    def rows(self, value, rows, depth, tail, to, stride):
        """A block of A as rows: value(i, k, count).

        tail: what the depth of the last block leaves over after whole vectors (a constant).  A row is
        written up to its next whole vector.
        """
        fn, lanes = self.fn, self.tile.lanes
        whole = fn.sub(depth, fn.rem(depth, lanes)) if tail else depth
        with fn.loop(0, rows) as i:
            row = fn.gep(self.tile.type, to, fn.mul(i.index, stride))
            with fn.loop(0, whole, lanes) as k:
                self.store(value(i.index, k.index, None), row, k.index)
            if tail:
                with fn.if_(fn.compare("slt", whole, depth)):
                    self.store(value(i.index, whole, tail), row, whole)

    def columns(self, value, rows, left, depth, to):
        """A block of A as panels of columns: value(i, k, count); `left` rows of A are left from here.

        A column is stored as whole vectors: what runs over is overwritten by the next one.
        """
        fn, step = self.fn, self.tile.rows
        span = -(-step // self.tile.lanes) * self.tile.lanes
        ends = fn.min(rows, fn.add(fn.sub(left, span), 1))
        whole = fn.mul(fn.div(fn.add(fn.max(ends, 0), step - 1), step), step)
        self.column_panels(value, 0, fn.min(whole, rows), None, depth, to)
        self.column_panels(value, whole, rows, left, depth, to)

    def column_panels(self, value, start, stop, left, depth, to):
        fn, step, lanes = self.fn, self.tile.rows, self.tile.lanes
        with fn.loop(start, stop, step) as i, fn.loop(0, depth) as k:
            place = fn.add(fn.mul(i.index, depth), fn.mul(k.index, step))
            for first in range(0, step, lanes):
                at = fn.add(i.index, first)
                count = None if left is None else fn.sub(left, at)
                self.store(value(at, k.index, count), to, fn.add(place, first))

    def panels(self, value, depth, columns, tail, to):
        """A block of B as panels: value(k, j, count); tail: columns of B beyond whole panels."""
        fn, width, lanes = self.fn, self.tile.width, self.tile.lanes
        whole = fn.sub(columns, fn.rem(columns, width)) if tail else columns
        with fn.loop(0, depth) as k:
            row = fn.gep(self.tile.type, to, fn.mul(k.index, width))
            with fn.loop(0, whole, width) as j:
                place = fn.mul(j.index, depth)
                for first in range(0, width, lanes):
                    part = value(k.index, fn.add(j.index, first), None)
                    self.store(part, row, fn.add(place, first))
            if tail:
                with fn.if_(fn.compare("slt", whole, columns)):
                    place = fn.mul(whole, depth)
                    for first in range(0, tail, lanes):
                        count = tail - first if tail - first < lanes else None
                        part = value(k.index, fn.add(whole, first), count)
                        self.store(part, row, fn.add(place, first))

    def transposed_panels(self, square, depth, least, columns, tail, to):
        """A block of B as panels through transposes of lanes × lanes squares.

        square(k, j, rows, depth): writes what makes rows of B's transpose addressable: the address of
        element (k, j) and the distance between columns.  `least`: the least depth of a block; `tail`:
        columns of B beyond whole vectors.  The last square in the depth overlaps the one before.
        """
        fn, lanes = self.fn, self.tile.lanes
        whole = fn.sub(columns, fn.rem(columns, lanes)) if tail else columns
        with fn.loop(0, whole, lanes) as j:
            self.squares(square, j.index, lanes, depth, least, to)
        if tail:
            with fn.if_(fn.compare("slt", whole, columns)):
                self.squares(square, whole, tail, depth, least, to)

    def squares(self, square, j, rows, depth, least, to):
        fn, tile = self.fn, self.tile
        size = min(tile.lanes, least)
        kernel = Transpose(tile.type, tile.lanes, rows, size)
        self.kernels.setdefault(kernel.name, kernel.text)
        inside = fn.rem(j, tile.width)
        panel = fn.add(fn.mul(fn.sub(j, inside), depth), inside)
        with fn.loop(0, depth, size) as loop:
            k = fn.min(loop.index, fn.sub(depth, size))
            pointer, stride = square(k, j, rows, size)
            place = fn.gep(tile.type, to, fn.add(panel, fn.mul(k, tile.width)))
            fn.call(kernel.name, ("ptr", pointer), ("i64", stride), ("ptr", place),
                    ("i64", tile.width), declare=False)
