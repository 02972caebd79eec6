"""LLVM text of a planned contraction: the loops over blocks, packing, tiles and epilogue.

`emit` writes one function per phase, void (ptr %buffers, i64 %part), and lists the shareable
functions that it calls.  Relies on `contract_plan`; `product` relies on it.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import lru_cache

from ...records import frozen
from .contract_plan import Emitted, Product, up
from .dots import Dots
from .late_tiles import LateTiles, is_late
from .operands import Pieced, Pulled, Strided
from .packing import Packer
from .places import Places
from .streams import streams_of
from .strips import SegmentTable
from .text import BYTES, KERNEL, Function, vector
from .tiles import (FLOATS, KERNEL_TYPES, Columns, Kernel, Offsets, Rows, Runs, Segments, Steps,
                    Tile, added)


def emit(plan, product, name):
    """The functions of a contraction called `name`."""
    return Writer(plan, Swapped(product) if plan.swapped else product, name).emitted()


class Swapped(Product):
    """A Product seen from the other side: a and b, rows and columns have changed places."""

    def __init__(self, product):
        self.product = product
        self.workspace, self.out_pointer = product.workspace, product.out_pointer
        self.a_pointer, self.b_pointer = product.b_pointer, product.a_pointer

    def pack_a(self, fn, b, i, k, lanes, along, count):
        return self.product.pack_b(fn, b, k, i, lanes, {"k": "k", "m": "n"}[along], count)

    def pack_b(self, fn, b, k, j, lanes, along, count):
        return self.product.pack_a(fn, b, j, k, lanes, {"k": "k", "n": "m"}[along], count)

    def epilogue(self, fn, b, i, j, lanes, values, count, along, sums):
        return self.product.epilogue(fn, b, j, i, lanes, values, count, "m", sums)


PARAMETERS = "ptr %buffers, i64 %part"


@lru_cache(maxsize=512)
def written(kernel):
    """The text of a shareable function: products of many sizes call it."""
    return str(kernel.text())


@frozen
class Block:
    """A block of the product: batch b, its first row i, column j and step k, and its extents."""
    b: object
    i: object
    j: object
    k: object
    rows: object
    columns: object
    depth: object


class Writer:
    """Writes one contraction.  `kernels` has the shareable functions that it calls, by name."""

    def __init__(self, plan, product, name):
        self.plan, self.product, self.name = plan, product, name
        self.kernels = {}
        self.table = None                  # what tells where A lies, if it is not Offset
        if plan.bordered or plan.strips:
            self.table = (Places if plan.bordered else SegmentTable)(plan, product)

    def emitted(self):
        """The finished Emitted."""
        p = self.plan
        phases = [(self.multiply(), p.parts)]
        if p.split:
            phases.append((self.add_up(), p.sum_parts))
        if p.sums:
            phases.append((self.add_sums(), 1))
        functions = {f.name: str(f) for f, _ in phases}
        functions.update((name, written(kernel)) for name, kernel in self.kernels.items())
        return Emitted(functions, tuple((f.name, parts) for f, parts in phases),
                       self.part_bytes() * p.parts // p.turns + self.partial_bytes())

    # -- memory: per part blocks of A and B, sums of tiles and of columns; behind all parts the
    # -- partial products

    def a_bytes(self):
        p = self.plan
        if self.table:
            return self.table.bytes
        if p.tables:
            return up(8 * (p.mc + p.kc), 64)
        if not p.pack_a:
            return 0
        panels = up(p.mc, p.tile.rows) * (p.kc + 1) + p.machine.vector_bytes
        elements = p.mc * p.a_stride if p.a_by_rows else panels
        return up(elements * BYTES[p.type], 64) + 64

    def b_bytes(self):
        p = self.plan
        return up(up(p.nc, p.tile.width) * p.kc * BYTES[p.type], 64) + 64 if p.pack_b else 0

    def sums_bytes(self):
        p = self.plan
        return up(p.part_rows * self.sums_stride() * BYTES[p.type], 64) if p.keeps_sums else 0

    def sums_stride(self):
        return up(self.plan.nc, self.plan.tile.width)

    def row_bytes(self):
        """Of one row as long as all columns."""
        return up(self.partial_stride() * BYTES[self.plan.type], 64)

    def total_bytes(self):
        """Of the total and the sums over the rows."""
        return (self.plan.total + self.plan.sums) * self.row_bytes()

    def part_bytes(self):
        return self.a_bytes() + self.b_bytes() + self.sums_bytes() + self.total_bytes()

    def stage_stride(self):
        return up(self.plan.width, self.plan.sum_lanes)

    def partial_stride(self):
        return up(self.plan.columns, self.plan.tile.width)

    def partial_bytes(self):
        p = self.plan
        rows = p.grid[3] * p.batch * p.rows if p.split else 0
        return rows * self.partial_stride() * BYTES[p.type]

    def locate(self, part):
        """Addresses of the part's memory."""
        fn = self.fn
        self.row_sums = []
        if not self.part_bytes() and not self.partial_bytes():
            return
        start = self.product.workspace(fn)
        own = fn.gep("i8", start, fn.mul(fn.div(part, self.plan.turns), self.part_bytes()))
        self.a_pack = own
        self.offsets = fn.gep("ptr", own, self.plan.mc)
        self.b_pack = fn.gep("i8", own, self.a_bytes())
        self.sums = fn.gep("i8", own, self.a_bytes() + self.b_bytes())
        self.totals = fn.gep("i8", own, self.part_bytes() - self.total_bytes())
        self.row_sums = [fn.gep("i8", self.totals, (self.plan.total + n) * self.row_bytes())
                         for n in range(self.plan.sums)]
        self.partial = fn.gep("i8", start, self.part_bytes() * self.plan.parts)

    # -- the loops ---------------------------------------------------------------------------------

    def multiply(self):
        """The function of the first phase: one part of the product."""
        p = self.plan
        fn = self.fn = Function(self.name, PARAMETERS, attributes=KERNEL)
        self.packer = Packer(fn, p.tile, self.kernels, p.row_lanes)
        part = "%part" if p.parts > 1 else 0
        self.locate(part)
        if self.table:
            self.table.begin(fn, self.a_pack)
        self.late = LateTiles(self) if is_late(p) else None
        if self.late:
            self.product.hold_pointers(fn)
        if p.staged and not (p.split or p.keeps_sums or p.single or self.late):
            self.stage = fn.alloca(p.type, p.tile.rows * self.stage_stride())
        batches, rest = self.cut(part, p.batch, 1, p.grid[0])
        rows, rest = self.cut(rest, p.rows, p.row_step, p.grid[1])
        columns, rest = self.cut(rest, p.columns, p.width, p.grid[2])
        self.depth_part = rest
        self.streams = streams_of(fn, p, self.product)
        self.clear(self.row_sums, p.columns)
        with fn.loop(*batches) as b:
            self.blocks(b.index, rows, columns, self.depth_range(rest))
        return fn.ret()

    def cut(self, part, size, step, parts):
        """((start, stop), rest): what the part gets of `size`, in whole steps, and its other
        digits."""
        fn = self.fn
        if parts == 1:
            return (0, size), part
        steps, digit = -(-size // step), fn.rem(part, parts)
        start = fn.mul(fn.div(fn.mul(digit, steps), parts), step)
        stop = fn.mul(fn.div(fn.mul(fn.add(digit, 1), steps), parts), step)
        return (start, fn.min(stop, size)), fn.div(part, parts)

    def depth_range(self, part):
        fn, p = self.fn, self.plan
        if not p.split:
            return 0, p.depth
        start = fn.mul(part, p.part_depth)
        return start, fn.min(fn.add(start, p.part_depth), p.depth)

    def blocks(self, b, rows, columns, depth):
        """One batch of one part; a product without depth has one empty block."""
        fn, p = self.fn, self.plan
        self.bases = self.pointers(b)
        if self.streams:
            self.streams.begin(b)
        self.first_row, self.first_step = rows[0], depth[0]
        with fn.loop(*columns, p.nc) as j:
            width = fn.min(fn.sub(columns[1], j.index), p.nc)
            with fn.loop(depth[0], depth[1] if p.depth else 1, p.kc) as k:
                steps = fn.min(fn.sub(depth[1], k.index), p.kc)
                panels = Block(b, 0, j.index, k.index, 0, width, steps)
                self.pack_b(panels)
                if self.table:
                    self.table.judge(fn, self.b_pack, self.panel_elements(panels))
                if p.total:
                    self.sum_columns(panels)
                if p.tables and not self.table:
                    self.product.step_offsets(fn, k.index, steps, self.offsets)
                with fn.loop(*rows, p.mc) as i:
                    height = fn.min(fn.sub(rows[1], i.index), p.mc)
                    block = Block(b, i.index, j.index, k.index, height, width, steps)
                    self.pack_a(block)
                    self.tiles(block)
                    if p.keeps_sums and not self.late:
                        self.finish_block(block)
            if p.total and not p.split:
                self.store_totals(j.index, fn.add(j.index, width))

    def pointers(self, b):
        p, fn, product = self.plan, self.fn, self.product
        a = product.a_pointer(fn, b) if isinstance(p.a, Strided) and p.depth else "null"
        b_ = product.b_pointer(fn, b) if isinstance(p.b, Strided) and p.depth else "null"
        out = product.out_pointer(fn, b) if p.out and not p.epilogue and not p.split else "null"
        return a, b_, out

    # -- packing -----------------------------------------------------------------------------------

    def element(self, pointer, strides, first, second):
        """The address of an element of a Strided operand."""
        fn = self.fn
        at = fn.add(fn.mul(first, strides.first), fn.mul(second, strides.second))
        return fn.gep(self.plan.type, pointer, at)

    def pack_a(self, block):
        p, fn = self.plan, self.fn
        if self.table:
            self.table.write(fn, block)
        elif p.tables:
            self.product.row_addresses(fn, block.b, block.i, block.rows, self.a_pack)
        if not p.pack_a:
            return

        def value(i, k, count):
            i, k = fn.add(block.i, i), fn.add(block.k, k)
            if isinstance(p.a, Pulled):
                return self.product.pack_a(fn, block.b, i, k, lanes, p.a.along, count)
            return fn.vector_load(p.type, lanes, self.element(self.bases[0], p.a, i, k), count)

        lanes = p.row_lanes if p.a_by_rows else self.packer.column_lanes

        if p.a_by_rows:
            tail = p.depth % p.row_lanes
            self.packer.rows(value, block.rows, block.depth, tail, self.a_pack, p.a_stride)
        else:
            left = fn.sub(p.rows, block.i)
            self.packer.columns(value, block.rows, left, block.depth, self.a_pack,
                                loads=isinstance(p.a, Strided))

    def pack_b(self, block):
        p, fn = self.plan, self.fn
        if not p.pack_b or p.packs_along:
            return

        def value(k, j, count):
            k, j = fn.add(block.k, k), fn.add(block.j, j)
            if isinstance(p.b, Pulled):
                return self.product.pack_b(fn, block.b, k, j, p.tile.lanes, "n", count)
            return fn.vector_load(p.type, p.tile.lanes, self.b_place(block.b, k, j), count)

        if p.b_by_rows:
            self.packer.panels(value, block.depth, block.columns, p.column_tail, self.b_pack,
                               isinstance(p.b, Pulled) and p.b.by_panel)
        else:
            tail = p.columns % self.packer.square_lanes
            self.packer.transposed_panels(self.square(block), block.depth, p.least_depth,
                                          block.columns, tail, self.b_pack)

    def b_place(self, b, k, j):
        """The address of an element of B that lies in memory."""
        p = self.plan
        if isinstance(p.b, Pieced):
            return self.product.b_place(self.fn, b, k, j)
        return self.element(self.bases[1], p.b, k, j)

    def square(self, block):
        """What gives the transpose kernels rows of B's transpose: its own memory, or computed
        ones."""
        p, fn = self.plan, self.fn

        def copied(k, j, rows, depth):
            stride = p.b.second if isinstance(p.b, Strided) else p.b.stride
            return self.b_place(block.b, fn.add(block.k, k), fn.add(block.j, j)), stride

        def computed(k, j, rows, depth):
            count = None if depth == lanes else depth
            with fn.loop(0, rows) as r:
                column = fn.add(fn.add(block.j, j), r.index)
                step = fn.add(block.k, k)
                row = self.product.pack_b(fn, block.b, step, column, lanes, "k", count)
                place = fn.gep(p.type, buffer, fn.mul(r.index, lanes))
                fn.vector_store(p.type, lanes, row, place)
            return buffer, lanes

        if not isinstance(p.b, Pulled):
            return copied
        lanes = self.packer.square_lanes
        buffer = fn.alloca(p.type, lanes * lanes)
        return computed

    # -- tiles -------------------------------------------------------------------------------------

    def tiles(self, block):
        """All tiles of a block, panel by panel of B, or, where B is small, row by row of A."""
        p = self.plan
        if p.single:
            return self.panels(block, lambda *panel: self.written_out(block, *panel))
        if not p.rows_first:
            return self.panels(block, lambda *panel: self.rows_of_panel(block, panel))
        if self.late is None:
            return self.rows_of_tiles(block)
        with self.fn.if_(self.is_last(block)):
            self.late.write(block)
        if p.blocks > 1:
            with self.fn.if_(self.is_last(block, "slt")):
                self.rows_of_tiles(block)
        return None

    def rows_of_tiles(self, block):
        with self.rows(block) as (i, left):
            self.panels(block, lambda *panel: self.tile_at(block, i, left, *panel))

    def rows_of_panel(self, block, panel):
        with self.rows(block) as (i, left):
            self.tile_at(block, i, left, *panel)

    @contextmanager
    def rows(self, block):
        """A loop over the rows of tiles: (the first row, how many there are)."""
        fn, p = self.fn, self.plan
        if p.strips:
            with fn.loop(0, block.rows, p.height) as w, fn.loop(0, p.height, p.tile.rows) as i:
                yield fn.add(w.index, i.index), fn.min(fn.sub(p.height, i.index), p.tile.rows)
            return
        with fn.loop(0, block.rows, p.tile.rows) as i:
            yield i.index, fn.min(fn.sub(block.rows, i.index), p.tile.rows)

    def panels(self, block, write):
        """write(first column, vectors, tail) for the panels of a block."""
        fn, p = self.fn, self.plan
        width, tail = p.width, p.column_tail
        whole = fn.sub(block.columns, fn.rem(block.columns, width)) if tail else block.columns
        if p.columns >= width:
            with fn.loop(0, whole, width) as j:
                ragged = width % p.sum_lanes > 0
                write(j.index, p.tile.vectors, width if ragged else None)
        if tail:
            with fn.if_(fn.compare("slt", whole, block.columns)):
                write(whole, tail if p.dots else -(-tail // p.tile.lanes), tail)

    def tile_at(self, block, i, left, j, vectors, tail, late=None):
        """One tile, of as many rows as are left; late: what writes it, where rows wait."""
        fn, p = self.fn, self.plan
        heights = [p.tile.rows] * (p.height >= p.tile.rows) + [p.row_tail] * (p.row_tail > 0)
        c, stride = self.target(block, i, j)
        for height in heights:
            alone = len(heights) == 1
            with fn.if_("true" if alone else fn.compare("eq", left, height)):
                tile = Tile(p.type, p.tile.lanes, height, vectors)
                for packs, when in self.kinds(block, i, height):
                    with fn.if_(when):
                        if late and tile == p.tile and not packs:
                            late.tile(block, i, j, c)
                        else:
                            self.tile(block, i, j, tile, tail, c, stride, packs)
        self.finish(block, i, j, left, tail, c, stride)

    def kinds(self, block, i, height):
        """(whether it packs B, when) of the kernels for a tile of this height at i."""
        fn, p = self.fn, self.plan
        if not p.packs_along or height < p.tile.rows:
            return [(False, "true")]
        row = fn.add(block.i, i)
        return [(packs, fn.compare("eq" if packs else "ne", row, self.first_row))
                for packs in (True, False)]

    def target(self, block, i, j):
        """Where a tile's sums go, and the stride of their rows."""
        fn, p = self.fn, self.plan
        if self.late and not p.keeps_sums:
            return fn.gep(p.type, self.late.own, j), self.late.stride
        row, column = fn.add(block.i, i), fn.add(block.j, j)
        if p.split:
            row = fn.add(fn.mul(fn.add(fn.mul(self.depth_part, p.batch), block.b), p.rows), row)
            stride = self.partial_stride()
            return fn.gep(p.type, self.partial, fn.add(fn.mul(row, stride), column)), stride
        if p.keeps_sums:
            stride = self.sums_stride()
            row = fn.sub(row, self.first_row)
            return fn.gep(p.type, self.sums, fn.add(fn.mul(row, stride), j)), stride
        if p.staged:
            return self.stage, self.stage_stride()
        return self.element(self.bases[2], p.out, row, column), p.out.first

    def operands(self, block, tile, i, j):
        """(A's form, depth, address, stride; B's address, stride) for a tile at (i, j) of a block.
        """
        fn, p, depth = self.fn, self.plan, block.depth
        if p.strips:
            form, (a, stride, depth) = Segments(p.a.step), self.table.operand(fn, i)
        elif p.bordered:
            a, form = self.table.of(fn, i), Runs(p.a.run, self.table.stride, p.run, p.a.step)
            stride = self.table.skipped
        elif p.tables:
            a, form = fn.gep("ptr", self.a_pack, i), Offsets(p.run, p.a.step)
            stride = fn.op(f"ptrtoint ptr {self.offsets} to i64")
        elif not p.pack_a:
            a = self.element(self.bases[0], p.a, fn.add(block.i, i), block.k) if p.depth else "null"
            form, stride = Rows.of(tile, p.a.first) if p.a_by_rows else (Columns(), p.a.second)
        elif p.a_by_rows:
            a = fn.gep(p.type, self.a_pack, fn.mul(i, p.a_stride))
            form, stride = Rows.of(tile, p.a_stride)
        else:
            a = fn.gep(p.type, self.a_pack, fn.mul(i, fn.add(block.depth, 1)))
            form = Columns()
            stride = p.tile.rows
        return form, depth, a, stride, *self.b_operand(block, j)

    def b_operand(self, block, j):
        """(B's address, stride) for the panel at j of a block."""
        fn, p = self.fn, self.plan
        if p.pack_b:
            return fn.gep(p.type, self.b_pack, fn.mul(j, block.depth)), p.tile.width
        return self.b_in_place(block, j) if p.depth else ("null", p.b.first)

    def b_in_place(self, block, j):
        """The same where B lies."""
        return self.b_place(block.b, block.k, self.fn.add(block.j, j)), self.plan.b.first

    def panel_elements(self, block):
        """How many elements a block's packed panels have."""
        fn, width = self.fn, self.plan.width
        whole = fn.div(fn.add(block.columns, width - 1), width)
        return fn.mul(fn.mul(whole, width), block.depth)

    def valid_lanes(self, tail):
        """How many lanes of the last vector are valid, or None if all may be read and written."""
        p = self.plan
        if tail is None or tail % p.tile.lanes == 0 or not p.machine.masks:
            return None
        return tail % p.tile.lanes

    def read_lanes(self, tail):
        """How many lanes of the last vector of B are read; None where all may be, since the copy of
        a row ends in zeros: those of vectors longer than the squares of a transpose may not.
        """
        p = self.plan
        filled = p.pack_b and p.tile.lanes <= self.packer.square_lanes
        return None if filled else self.valid_lanes(tail)

    def tile(self, block, i, j, tile, tail, c, stride, packs):
        """The call of one kernel; packs: it reads B where it lies, and packs it."""
        fn, p = self.fn, self.plan
        form, depth, a, a_stride, b, b_stride = self.operands(block, tile, i, j)
        more = []                          # what some kernels are called with besides
        if p.dots:
            kernel = Dots(p.type, tile.lanes, tile.rows, tile.vectors, p.depth % tile.lanes,
                          not p.staged and tile.vectors % p.sum_lanes > 0)
            a_stride, b_stride = p.a.first, p.b.second
        else:
            streams = self.streams if tile.rows == p.tile.rows else None
            count = self.valid_lanes(tail)
            kernel = Kernel(tile, form, count if packs else self.read_lanes(tail),
                            None if p.staged else count, p.blocks > 1, p.odd and not p.strips,
                            p.fetches_b or packs, p.tile.width * packs,
                            streams.count if streams else 0)
            if streams:
                streams.of_tile(fn.add(block.i, i), fn.add(block.j, j), block.k)
                more = [("ptr", streams.table)]
        if packs:
            more = [("ptr", b), *more]
            b, b_stride = self.b_in_place(block, j)
        self.kernels[kernel.name] = kernel
        add = fn.compare("ne", block.k, self.first_step)
        values = depth, a, a_stride, b, b_stride, c, stride, add
        fn.call(kernel.name, *zip(KERNEL_TYPES, values), *more)

    def written_out(self, block, j, vectors, tail):
        """A product of one tile, without a call and without memory between sums and epilogue."""
        fn, p = self.fn, self.plan
        tile = Tile(p.type, p.tile.lanes, p.rows, vectors)
        form, depth, a, a_stride, b, b_stride = self.operands(block, tile, 0, j)
        steps = Steps(fn, tile, form, a_stride, b_stride, self.read_lanes(tail))
        sums = steps.run(a, b, depth, p.odd)
        for r in range(p.rows):
            row = sums[r * vectors:(r + 1) * vectors]
            self.store_row(block.b, r, fn.add(block.j, j), row, tail)

    # -- the sums of B's columns -------------------------------------------------------------------

    @contextmanager
    def first_rows(self):
        """Code for the parts that hold the first row: each column is in one of them."""
        fn = self.fn
        with fn.if_("true" if self.first_row == 0 else fn.compare("eq", self.first_row, 0)):
            yield

    def sum_columns(self, panels):
        """B's panels as the product with a row of ones."""
        fn, p = self.fn, self.plan
        one = fn.alloca(p.type, 1)
        fn.store(p.type, "1.0" if p.type in FLOATS else "1", one)

        def write(j, vectors, tail):
            kernel = Kernel(Tile(p.type, p.tile.lanes, 1, vectors), Columns(),
                            self.read_lanes(tail), None, True, p.odd, p.fetches_b)
            self.kernels[kernel.name] = kernel
            to = fn.gep(p.type, self.totals, fn.add(panels.j, j))
            add = fn.compare("ne", panels.k, self.first_step)
            values = panels.depth, one, 0, *self.b_operand(panels, j), to, 0, add
            fn.call(kernel.name, *zip(KERNEL_TYPES, values))
        with self.first_rows():
            self.panels(panels, write)

    def store_totals(self, start, stop):
        """What becomes of the sums of these columns, which are whole vectors or end with the last.
        """
        with self.first_rows():
            self.by_vectors(start, stop, self.store_total)

    def by_vectors(self, start, stop, write):
        """write(first column, how many or None for all lanes) for these columns, by vectors."""
        fn, p, lanes = self.fn, self.plan, self.plan.tile.lanes
        whole = p.columns - p.columns % lanes
        if whole:
            with fn.loop(start, fn.min(stop, whole), lanes) as j:
                write(j.index, None)
        if whole < p.columns:
            with fn.if_("true" if stop == p.columns else fn.compare("eq", stop, p.columns)):
                write(whole, p.columns - whole)

    def store_total(self, j, count):
        """One vector of them, added up over the parts of the depth."""
        fn, p = self.fn, self.plan
        total = self.over_parts(fn.gep(p.type, self.totals, j), p.grid[3])
        self.product.total(fn, j, p.tile.lanes, total, count)

    def over_parts(self, first, parts):
        """The sum of the vectors that these parts have at the place which the first has here."""
        fn, p, total = self.fn, self.plan, None
        for part in range(parts):
            place = fn.gep("i8", first, part * self.part_bytes())
            value = fn.vector_load(p.type, p.tile.lanes, place)
            total = value if part == 0 else added(fn, p.type, p.tile.lanes, total, value)
        return total

    # -- sums over the rows ------------------------------------------------------------------------

    def clear(self, rows, elements):
        """Zeros in so many elements of these rows of this part's."""
        fn, p = self.fn, self.plan
        for row in rows:
            with fn.loop(0, elements, p.tile.lanes) as j:
                fn.vector_store(p.type, p.tile.lanes, "zeroinitializer",
                                fn.gep(p.type, row, j.index))

    def vectors_of(self, tail):
        """How many vectors a row of a tile has."""
        return -(-(tail or self.plan.width) // self.plan.sum_lanes)

    def sum_places(self, j, tail):
        """Where the sums over the rows are kept, vector by vector, for a tile's columns from j."""
        return [self.fn.gep(self.plan.type, row, self.fn.add(j, q * self.plan.sum_lanes))
                for q in range(self.vectors_of(tail)) for row in self.row_sums]

    def loaded(self, places):
        """(type, value) of the vectors at some places."""
        type, lanes = self.plan.type, self.plan.sum_lanes
        return [(vector(type, lanes), self.fn.vector_load(type, lanes, at)) for at in places]

    def keep(self, values, places):
        for value, place in zip(values, places):
            self.fn.vector_store(self.plan.type, self.plan.sum_lanes, value, place)

    def add_sums(self):
        """The function of the last phase: the sums of all parts added, and stored."""
        p = self.plan
        fn = self.fn = Function(self.name + ".columns", PARAMETERS, attributes=KERNEL)
        self.locate(0)
        self.by_vectors(0, p.columns, self.store_sums)
        return fn.ret()

    def store_sums(self, j, count):
        """One vector of each of them."""
        fn, p = self.fn, self.plan
        firsts = [fn.gep(p.type, row, j) for row in self.row_sums]
        values = [self.over_parts(first, p.parts) for first in firsts]
        self.product.sums(fn, j, p.tile.lanes, values, count)

    # -- what becomes of the sums ------------------------------------------------------------------

    def finish(self, block, i, j, left, tail, c, stride):
        """Store the rows of a staged tile, when its last block is done."""
        fn, p = self.fn, self.plan
        if not p.staged or p.split or p.keeps_sums or self.late:
            return
        places = self.sum_places(fn.add(block.j, j), tail)
        with fn.loop(0, left, carried=self.loaded(places)) as r:
            row = fn.gep(p.type, c, fn.mul(r.index, stride))
            r.next = self.finish_row(block, fn.add(i, r.index), j, row, tail, r.values)
        self.keep(r.values, places)

    def finish_row(self, block, i, j, row, tail, sums):
        """Store a row of a tile; gives the sums over the rows with it.

        Lanes that hold no sum are zero: with what lies in memory there, functions that are called
        of it could take a hundred times as long.
        """
        fn, p = self.fn, self.plan
        last, count = self.vectors_of(tail) - 1, None if p.dots else self.valid_lanes(tail)
        values = [fn.vector_load(p.type, p.sum_lanes, fn.gep(p.type, row, q * p.sum_lanes),
                                 count if q == last else None) for q in range(last + 1)]
        return self.store_row(block.b, fn.add(block.i, i), fn.add(block.j, j), values, tail, sums)

    def finish_piece(self, block, i, j, tail):
        """Store a row of a tile, whose sums have waited for the last block."""
        places = self.sum_places(self.fn.add(block.j, j), tail)
        sums = [value for _, value in self.loaded(places)]
        row, _ = self.target(block, i, j)
        self.keep(self.finish_row(block, i, j, row, tail, sums), places)

    def is_last(self, block, how="sge"):
        """Is it the last block of the depth?  With "slt": is it not?"""
        if self.plan.blocks == 1:
            return "true"
        return self.fn.compare(how, self.fn.add(block.k, self.plan.kc), self.plan.depth)

    def finish_block(self, block):
        """Store the rows of a block, one after the other, when its last depth is done."""
        fn = self.fn
        with fn.if_(self.is_last(block)), fn.loop(0, block.rows) as r:
            self.panels(block, lambda j, vectors, tail: self.finish_piece(block, r.index, j, tail))

    def store_row(self, b, i, j, values, count, sums=()):
        """Store vectors of a row, or what becomes of them; gives the sums over the rows with it."""
        fn, p = self.fn, self.plan
        if p.epilogue or p.out is None:
            return self.product.epilogue(fn, b, i, j, p.sum_lanes, values, count, "n", sums)
        row, lanes = self.element(self.bases[2], p.out, i, j), p.sum_lanes
        for q, value in enumerate(values):
            left = None if count is None else min(lanes, count - q * lanes)
            fn.vector_store(p.type, lanes, value, fn.gep(p.type, row, q * lanes), left)
        return sums

    def add_up(self):
        """The function of the second phase: the partial products of all depths added, and
        stored."""
        p, lanes = self.plan, self.plan.tile.lanes
        fn = self.fn = Function(self.name + ".sum", PARAMETERS, attributes=KERNEL)
        self.locate(0)
        whole = p.columns - p.columns % lanes
        rows, _ = self.cut("%part" if p.sum_parts > 1 else 0, p.rows, 1, p.sum_parts)
        if p.total:
            self.first_row = rows[0]
            self.store_totals(0, p.columns)
        with fn.loop(0, p.batch) as b:
            out = self.product.out_pointer(fn, b.index) if p.out and not p.epilogue else "null"
            self.bases = "null", "null", out
            with fn.loop(*rows) as i:
                if whole:
                    with fn.loop(0, whole, lanes) as j:
                        self.add_up_at(b.index, i.index, j.index, None)
                if whole < p.columns:
                    self.add_up_at(b.index, i.index, whole, p.columns % lanes)
        return fn.ret()

    def add_up_at(self, b, i, j, count):
        fn, p = self.fn, self.plan
        stride, tile = self.partial_stride(), p.tile
        row = fn.add(fn.mul(b, p.rows), i)
        first = fn.gep(p.type, self.partial, fn.add(fn.mul(row, stride), j))
        total, valid = None, count if p.machine.masks else None
        for part in range(p.grid[3]):
            place = fn.gep(p.type, first, part * p.batch * p.rows * stride)
            value = fn.vector_load(p.type, tile.lanes, place, valid)
            total = value if part == 0 else added(fn, p.type, tile.lanes, total, value)
        self.store_row(b, i, j, [total], count)
