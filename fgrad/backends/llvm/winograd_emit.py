"""LLVM text of windows by Winograd's algorithms: additions around the tiles of the engine.

A part works through its tiles of the images share by share:

    images   [point, tile, channel]      of a share: B d
    windows  [point, channel, column]    of all parts, in panels: G g
    products [point, tile, column]       of a share and a panel; then A of them, and the epilogue

For the gradient of the kernel, Aᵀ ȳ [point, tile, column] stands beside the images, and products
[point, channel, column] are added up over the shares, and over the parts in a second phase.  Rows
between points lie an odd number of lines apart, so that they do not meet in the cache.  Relies on
`winograd` for the coefficients and on `contract_emit`, whose Writer this is one of.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod

from ...aligned import LINE
from .. import cache
from .contract_emit import PARAMETERS, Block, Writer, written
from .contract_plan import Emitted, up
from .operands import Pulled, Strided
from .packing import Transpose
from .text import BYTES, KERNEL, Function, vector
from .tiles import KERNEL_TYPES, Columns, Kernel, Rows, Tile, added, multiply_add
from .winograd import HALF, SIDE, transposed



class WindowWriter(Writer):
    """Writes one contraction whose Plan has windows."""

    def __init__(self, plan, product, name):
        self.plan, self.product, self.name = plan, product, name
        self.kernels, self.table = {}, None
        w = self.windows = plan.windows
        self.b, self.g, self.a = zip(*w.algorithms)
        self.lanes, self.vector = plan.tile.lanes, vector(plan.type, plan.tile.lanes)
        self.square_lanes = min(self.lanes, 32 // BYTES[plan.type])
        self.image_row = up(w.channels, self.lanes)
        self.image_point = self.apart(up(plan.mc, plan.tile.rows) * self.image_row)
        self.width = self.apart(up(plan.columns, plan.tile.width))
        self.panels_width = up(plan.columns, plan.tile.width)
        tiles = plan.mc * self.width if w.turned else up(plan.mc, plan.tile.rows) * plan.tile.width
        self.tile_point = self.apart(tiles)

    def apart(self, elements):
        """So many elements, or a few more: an odd number of lines."""
        line = LINE // BYTES[self.plan.type]
        return (-(-elements // line) | 1) * line

    def emitted(self):
        """The finished Emitted."""
        p, w = self.plan, self.windows
        plain = self.plain_sum()
        self.plainly = f"fg.plain.{cache.key(str(plain))[:16]}"
        others = min(p.parts, w.channels)
        phases = ([(self.multiply(), p.parts), (self.add_up(others), others)] if w.turned else
                  [(self.bring_windows(others), others), (self.multiply(), p.parts)])
        if p.sums:
            phases.append((self.add_sums(), 1))
        functions = {f.name: str(f) for f, _ in phases}
        functions[self.plainly] = str(plain).replace("@plain(", f"@{self.plainly}(")
        functions.update((name, written(kernel)) for name, kernel in self.kernels.items())
        return Emitted(functions, tuple((f.name, parts) for f, parts in phases),
                       self.part_bytes() * p.parts + self.partial_bytes())

    # -- memory: per part images, tiles, zeros and sums of columns; behind all parts the windows, or
    # -- the products of each part

    def size(self, elements):
        return up(elements * BYTES[self.plan.type], LINE)

    def a_bytes(self):
        return self.size(self.windows.points * self.image_point)

    def b_bytes(self):
        return self.size(self.windows.points * self.tile_point)

    def sums_bytes(self):
        return self.size(self.image_row)

    def product_elements(self):
        """Of the products of a part, where they are the gradient of the kernel."""
        return self.windows.points * self.windows.channels * self.width

    def partial_bytes(self):
        w = self.windows
        return self.size(self.product_elements() * self.plan.parts if w.turned else
                         w.points * w.channels * self.panels_width)

    def place(self, memory, *at):
        """The address of an element: (index, how far apart) pairs."""
        offset = 0
        for n, step in at:
            offset = self.fn.add(offset, self.fn.mul(n, step))
        return self.fn.gep(self.plan.type, memory, offset)

    # -- coefficients ------------------------------------------------------------------------------

    def applied(self, matrices, values):
        """Vectors, in order of an index for each axis, times a matrix along each axis."""
        sizes = [len(m[0]) for m in matrices]
        for axis, matrix in enumerate(matrices):
            behind = prod(sizes[axis + 1:])
            found = []
            for outer in range(prod(sizes[:axis])):
                for row in matrix:
                    for inner in range(behind):
                        start = outer * sizes[axis] * behind + inner
                        found.append(self.combined(row, values[start::behind][:sizes[axis]]))
            sizes[axis], values = len(matrix), found
        return values

    def combined(self, row, values):
        """Σ coefficient · vector; the halves are added up first."""
        fn, v = self.fn, self.vector
        terms = sorted([(c, x) for c, x in zip(row, values) if c], key=lambda t: (abs(t[0]), -t[0]))
        halves = sum(abs(c) == HALF for c, _ in terms)
        (first, total), *others = terms
        if first < 0:
            total = fn.op(f"fneg {v} {total}")
        for done, (c, x) in enumerate([*others, (None, None)], 1):
            if done == halves:
                half = fn.splat(self.plan.type, self.lanes, "5.0e-01")
                total = fn.op(f"fmul {v} {total}, {half}")
            if c:
                total = fn.op(f"{'fadd' if c > 0 else 'fsub'} {v} {total}, {x}")
        return total

    # -- places ------------------------------------------------------------------------------------

    def tile_of(self, tile):
        """(image, its first place along each axis) of a tile."""
        fn, w, found = self.fn, self.windows, []
        for n, d in reversed(list(zip(w.tiled, w.dilations))):
            at, tile = fn.rem(tile, n), fn.div(tile, n)
            found.append(fn.add(fn.mul(fn.div(at, d), SIDE * d), fn.rem(at, d)))
        return tile, found[::-1]

    def results(self, at):
        """(its flat place, whether the image has it) for each result of a tile."""
        fn, w = self.fn, self.windows
        flat, firsts = at
        found = [(flat, "true")]
        for first, size, apart in zip(firsts, w.sizes, w.dilations):
            places = [fn.add(first, step * apart) for step in range(SIDE)]
            known = [fn.compare("slt", place, size) if size % (SIDE * apart) else "true"
                     for place in places]
            found = [(fn.add(fn.mul(flat, size), place), self.both(one, other))
                     for flat, one in found for place, other in zip(places, known)]
        return found

    def both(self, one, other):
        if "true" in (one, other):
            return other if one == "true" else one
        return self.fn.op(f"and i1 {one}, {other}")

    def columns(self, write):
        """write(first column, how many or None for all lanes) for all columns, by vectors."""
        self.by_vectors(0, self.plan.columns, write)

    def b_vector(self, k, j, count):
        """A vector of B along its columns."""
        fn, p = self.fn, self.plan
        if isinstance(p.b, Strided) and p.b.second == 1:
            return fn.vector_load(p.type, self.lanes, self.element(self.bases[1], p.b, k, j), count)
        return self.product.pack_b(fn, 0, k, j, self.lanes, "n", count)

    def begin(self, name):
        """A function of this contraction, whose memory is located."""
        self.fn = Function(name, PARAMETERS, attributes=KERNEL)
        part = "%part" if self.plan.parts > 1 else 0
        self.locate(part)
        self.bases = self.pointers(0)
        return part

    def pointers(self, b):
        p, fn = self.plan, self.fn
        b_ = self.product.b_pointer(fn, b) if isinstance(p.b, Strided) else "null"
        out = self.product.out_pointer(fn, b) if p.out and not p.epilogue else "null"
        return "null", b_, out

    # -- the first phase, of windows ---------------------------------------------------------------

    def bring_windows(self, parts):
        """The function that brings the windows to their points, some channels of them."""
        p, w = self.plan, self.windows
        self.begin(self.name + ".windows")
        fn, step = self.fn, 1 if p.b_by_rows else self.square_lanes
        channels, _ = self.cut("%part" if parts > 1 else 0, w.channels, step, parts)
        if p.b_by_rows:
            with fn.loop(*channels) as c:
                self.columns(lambda j, count: self.bring_window(c.index, j, count))
            return fn.ret()
        self.square = fn.alloca(p.type, w.points * step * step)
        whole = w.channels - w.channels % step
        with fn.loop(channels[0], fn.min(channels[1], whole), step) as c:
            self.bring_squares(c.index, step)
        if whole < w.channels:
            last = "true" if parts == 1 else fn.compare("eq", channels[1], w.channels)
            with fn.if_(last):
                self.bring_squares(whole, w.channels - whole)
        return fn.ret()

    def bring_window(self, c, j, count):
        """One vector of columns of a channel."""
        fn, w = self.fn, self.windows
        taps = [self.b_vector(fn.add(tap * w.channels, c), j, count) for tap in self.taps()]
        self.spread(self.applied(self.g, taps), self.window_place(c, j),
                    w.channels * self.panels_width)

    def taps(self):
        return range(prod(self.windows.taps))

    def spread(self, values, first, apart):
        """Stores vectors at one place of every point."""
        fn, type = self.fn, self.plan.type
        for z, value in enumerate(values):
            fn.vector_store(type, self.lanes, value, fn.gep(type, first, z * apart))

    def window_place(self, c, j):
        """The address, at the first point, of an element of the panels."""
        fn, width = self.fn, self.plan.tile.width
        inside = fn.rem(j, width)
        return self.place(self.partial, (fn.sub(j, inside), self.windows.channels), (c, width),
                          (inside, 1))

    def bring_squares(self, c, depth):
        """All columns of so many channels, which lie along channels: by squares, transposed."""
        p, fn, size = self.plan, self.fn, self.square_lanes
        left = p.columns % size
        with fn.loop(0, p.columns - left, size) as j:
            self.bring_square(c, depth, j.index, size)
        if left:
            self.bring_square(c, depth, p.columns - left, left)
        for j in range(up(p.columns, size), up(p.columns, self.lanes), size):
            self.bring_square(c, depth, j, 0)

    def bring_square(self, c, depth, j, columns):
        fn, p, w, size = self.fn, self.plan, self.windows, self.square_lanes
        kernel = Transpose(p.type, size, columns, depth)
        self.kernels[kernel.name] = kernel
        with self.vectors_of_lanes(size), fn.loop(0, columns) as column:
            taps = [self.b_channels(fn.add(tap * w.channels, c), fn.add(j, column.index), depth)
                    for tap in self.taps()]
            to = fn.gep(p.type, self.square, fn.mul(column.index, size))
            self.spread(self.applied(self.g, taps), to, size * size)
        place = self.window_place(c, j)
        with fn.loop(0, w.points) as z:
            of, to = (self.place(at, (z.index, apart)) for at, apart in (
                (self.square, size * size), (place, w.channels * self.panels_width)))
            fn.call(kernel.name, ("ptr", of), ("i64", size), ("ptr", to), ("i64", p.tile.width))

    @contextmanager
    def vectors_of_lanes(self, lanes):
        """Within, vectors have so many lanes."""
        before = self.lanes, self.vector
        self.lanes, self.vector = lanes, vector(self.plan.type, lanes)
        yield
        self.lanes, self.vector = before

    def b_channels(self, k, j, count):
        """A vector of B along its steps, which so many lie behind each other."""
        fn, p = self.fn, self.plan
        if isinstance(p.b, Pulled):
            return self.product.pack_b(fn, 0, k, j, self.lanes, "k", count)
        return fn.vector_load(p.type, self.lanes, self.b_place(0, k, j), count)

    # -- images ------------------------------------------------------------------------------------

    def bring_images(self, first, count):
        """The tiles of a share brought to their points."""
        fn, w = self.fn, self.windows
        with fn.loop(0, count) as slot:
            at = self.tile_of(fn.add(first, slot.index))
            places = self.product.window_places(fn, *at, self.zeros)
            row = self.place(self.a_pack, (slot.index, self.image_row))
            whole = w.channels - w.channels % self.lanes
            if whole:
                with fn.loop(0, whole, self.lanes) as c:
                    self.bring_image(places, row, c.index, None)
            if whole < w.channels:
                self.bring_image(places, row, whole, w.channels - whole)

    def bring_image(self, places, row, c, count):
        fn, p = self.fn, self.plan
        values = [fn.vector_load(p.type, self.lanes, fn.gep(p.type, place, c), count)
                  for place in places]
        self.spread(self.applied(self.b, values), fn.gep(p.type, row, c), self.image_point)

    # -- a part ------------------------------------------------------------------------------------

    def multiply(self):
        """The function of one part of the tiles."""
        p, w = self.plan, self.windows
        part = self.begin(self.name)
        fn = self.fn
        self.zeros = self.sums
        self.clear([self.zeros], self.image_row)
        self.clear([self.totals] * p.total + self.row_sums, p.columns)
        if w.turned:
            self.products = self.place(self.partial, (part, self.product_elements()))
        tiles, _ = self.cut(part, w.tiles, 1 if w.turned else p.tile.rows, p.parts)
        with fn.loop(*tiles, p.mc) as share:
            count = fn.min(fn.sub(tiles[1], share.index), p.mc)
            self.bring_images(share.index, count)
            if w.turned:
                self.bring_gradients(share.index, count)
                self.add_products(count, fn.compare("ne", share.index, tiles[0]))
            else:
                self.panels(Block(0, 0, 0, 0, 0, p.columns, 0), lambda j, vectors, tail:
                            self.panel(share.index, count, j, vectors, tail))
        return fn.ret()

    def call(self, kernel, *values):
        self.kernels[kernel.name] = kernel
        self.fn.call(kernel.name, *zip(KERNEL_TYPES, values))

    def panel(self, first, count, j, vectors, tail):
        """The products of a share's images and a panel of the windows, and what becomes of them."""
        fn, p, w = self.fn, self.plan, self.windows
        width, rows = p.tile.width, p.tile.rows
        tile = Tile(p.type, self.lanes, rows, vectors)
        form, apart = Rows.of(tile, self.image_row)
        kernel = Kernel(tile, form, odd=w.channels % 2 == 1)
        with fn.loop(0, w.points) as z, fn.loop(0, count, rows) as i:
            image = self.place(self.a_pack, (z.index, self.image_point), (i.index, self.image_row))
            panel = self.place(self.partial, (z.index, w.channels * self.panels_width),
                               (j, w.channels))
            to = self.place(self.b_pack, (z.index, self.tile_point), (i.index, width))
            self.call(kernel, w.channels, image, apart, panel, width, to, width, "false")
        places = self.sum_places(j, tail)
        with fn.loop(0, count, carried=self.loaded(places)) as slot:
            row = self.place(self.b_pack, (slot.index, width))
            found = [self.applied(self.a, [
                fn.vector_load(p.type, self.lanes, fn.gep(
                    p.type, row, z * self.tile_point + q * self.lanes))
                for z in range(w.points)]) for q in range(self.vectors_of(tail))]
            at, sums = self.tile_of(fn.add(first, slot.index)), list(slot.values)
            for n, (i, inside) in enumerate(self.results(at)):
                with fn.if_(inside, [(self.vector, s) for s in sums]) as branch:
                    values = self.checked(i, j, [ys[n] for ys in found])
                    branch.next = list(self.store_row(0, i, j, values, tail, branch.values))
                sums = branch.values
            slot.next = sums
        self.keep(slot.values, places)

    # -- the gradient of the kernel ----------------------------------------------------------------

    def bring_gradients(self, first, count):
        """The gradients of a share's tiles brought to the points, and added to the total."""
        fn, p = self.fn, self.plan

        def write(j, columns):
            zero, values = (self.vector, "zeroinitializer"), []
            for k, inside in self.results(at):
                with fn.if_(inside, [zero]) as branch:
                    branch.next = [self.b_vector(k, j, columns)]
                values += branch.values
            to = self.place(self.b_pack, (slot.index, self.width), (j, 1))
            self.spread(self.applied([transposed(m) for m in self.a], values), to, self.tile_point)
            if p.total:
                total = fn.gep(p.type, self.totals, j)
                for value in [fn.vector_load(p.type, self.lanes, total), *values[1:]]:
                    values[0] = added(fn, p.type, self.lanes, values[0], value)
                fn.vector_store(p.type, self.lanes, values[0], total)
        with fn.loop(0, count) as slot:
            at = self.tile_of(fn.add(first, slot.index))
            self.columns(write)

    def add_products(self, count, add):
        """The products of a share's images and gradients added to those of this part."""
        fn, p, w = self.fn, self.plan, self.windows

        def write(z, i, height, j, vectors):
            kernel = Kernel(Tile(p.type, self.lanes, height, vectors), Columns(), adds=True,
                            odd=True)
            image = self.place(self.a_pack, (z, self.image_point), (i, 1))
            gradient = self.place(self.b_pack, (z, self.tile_point), (j, 1))
            to = self.place(self.products, (z, w.channels * self.width), (i, self.width), (j, 1))
            self.call(kernel, count, image, self.image_row, gradient, self.width, to, self.width,
                      add)
        tail = w.channels % p.tile.rows
        with fn.loop(0, w.points) as z:
            def panel(j, vectors, _):
                with fn.loop(0, w.channels - tail, p.tile.rows) as i:
                    write(z.index, i.index, p.tile.rows, j, vectors)
                if tail:
                    write(z.index, w.channels - tail, tail, j, vectors)
            self.panels(Block(0, 0, 0, 0, 0, p.columns, 0), panel)

    def add_up(self, parts):
        """The function of the second phase: the products of all parts, as the kernel's gradient."""
        p, w = self.plan, self.windows
        self.begin(self.name + ".sum")
        fn = self.fn
        channels, _ = self.cut("%part" if parts > 1 else 0, w.channels, 1, parts)
        self.first_row = channels[0]
        if p.total:
            self.store_totals(0, p.columns)
        with fn.loop(*channels) as c:
            self.columns(lambda j, count: self.add_up_at(c.index, j, count))
        return fn.ret()

    def add_up_at(self, c, j, count):
        fn, p, w = self.fn, self.plan, self.windows
        first, values = self.place(self.partial, (c, self.width), (j, 1)), []
        for z in range(w.points):
            total = None
            for part in range(p.parts):
                at = part * self.product_elements() + z * w.channels * self.width
                value = fn.vector_load(p.type, self.lanes, fn.gep(p.type, first, at))
                total = value if total is None else added(fn, p.type, self.lanes, total, value)
            values.append(total)
        places = [fn.gep(p.type, row, j) for row in self.row_sums]
        sums = [value for _, value in self.loaded(places)]
        for tap, value in enumerate(self.applied([transposed(m) for m in self.g], values)):
            i = fn.add(tap * w.channels, c)
            sums = self.store_row(0, i, j, self.checked(i, j, [value]), count, sums)
        self.keep(sums, places)

    # -- what is not finite ------------------------------------------------------------------------

    def checked(self, i, j, values):
        """The vectors of a row from column j on, or their plain sums if any is not finite."""
        fn, v = self.fn, self.vector
        total = None
        for value in values:
            zero = fn.op(f"fsub {v} {value}, {value}")
            total = zero if total is None else added(fn, self.plan.type, self.lanes, total, zero)
        odd = fn.op(f"fcmp uno {v} {total}, zeroinitializer")
        bits = fn.op(f"bitcast {vector('i1', self.lanes)} {odd} to i{self.lanes}")
        odd = fn.compare("ne", bits, 0, f"i{self.lanes}")
        with fn.if_(odd, [(v, value) for value in values]) as branch:
            branch.next = [
                fn.call(self.plainly, ("ptr", "%buffers"), ("i64", i),
                        ("i64", fn.add(j, q * self.lanes)), result=v)
                for q in range(len(values))]
        return branch.values

    def plain_sum(self):
        """The function (buffers, row, column) that gives a vector of plain sums of products.

        Of idle lanes behind the last column of a panel nothing is asked.
        """
        p, v = self.plan, self.vector
        fn = self.fn = Function("plain", "ptr %buffers, i64 %i, i64 %j", result=v,
                                linkage="internal", attributes=KERNEL + " noinline cold")
        self.bases = self.pointers(0)
        ragged = p.columns % self.lanes > 0
        left = fn.min(fn.sub(p.columns, "%j"), self.lanes)
        count = fn.mask(self.lanes, fn.max(left, 0)) if ragged else None
        with fn.loop(0, p.depth, carried=[(v, "zeroinitializer")]) as k:
            x = self.product.a_element(fn, 0, "%i", k.index)
            x = fn.splat(p.type, self.lanes, x)
            y = self.b_vector(k.index, "%j", count)
            k.next = [multiply_add(fn, p.type, self.lanes, x, y, *k.values)]
        return fn.ret(*k.values)
