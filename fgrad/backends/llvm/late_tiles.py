"""What becomes of a row of tiles, some vectors at a time, while the next row is multiplied.

    for each row of tiles                            for each row of tiles
      for each tile                                    for each tile
        sums ← multiply                                  sums ← multiply; between its steps
        for each of its vectors                              the next vectors of the row before
          store what becomes of it           →           stage ← sums
                                                     the vectors of the last row

The step of an optimizer behind the gradient of a weight reads and writes several arrays, which
takes as long as multiplying does.  A processor does both at once if the instructions of both lie
within some hundred of each other.  Relies on a Plan of `contract_plan`, on `tiles` and `fetches`;
`contract_emit` and `product` rely on it.
"""

from __future__ import annotations

from .fetches import USUAL, Fetching
from .text import BYTES
from .tiles import Steps, added

MOVED = 1 << 20            # bytes read and written, from which on it takes long,
SEVERAL = 4                # and how often those of the result, where sums wait in memory already
EACH = 8                   # steps of a tile between which vectors of the row before are stored,
MOST = 4                   # and how many, at most
SPARE = 8                  # registers, beside the sums of a tile, for what becomes of a vector
STAGE = 1 << 14            # bytes of the sums of a row of tiles; there are two such rows
NEXT = 1 << 10             # bytes behind a vector that are fetched beside steps of tiles,
LEAST = 1 << 17            # of arrays of so many bytes,
FROM_MEMORY = 1 << 26      # and where so many are moved, where it is written, too


def is_late(p):
    """Does a row of tiles of this Plan wait for the next one?"""
    whole = (p.staged and p.rows_first and p.nc >= p.columns
             and not (p.split or p.dots or p.single or p.swapped or p.tables or p.total or p.sums))
    size = p.rows * p.columns * BYTES[p.type]
    moved = MOVED if p.blocks == 1 else max(MOVED, SEVERAL * size)
    return (whole and p.moved >= moved and p.rows > p.tile.rows
            and p.tile.rows * p.tile.vectors + SPARE <= p.machine.registers
            and p.columns % p.tile.lanes == 0
            and (p.keeps_sums or p.tile.rows * p.columns * BYTES[p.type] <= STAGE)
            and 2 * MOST * chances(p) >= vectors(p))


def vectors(p):
    """Of a row of tiles."""
    return p.tile.rows * p.columns // p.tile.lanes


def chances(p):
    """How often vectors can be stored in a row of tiles."""
    return p.columns // p.width * (last_depth(p) // EACH)


def last_depth(p):
    """The steps of the last block."""
    return p.depth - (p.blocks - 1) * p.kc


def fetching(p):
    """How far ahead is fetched what becomes of the sums of this Plan, which reads and writes rows.

    Where the third cache is slow, fetching takes what tiles need of it.  Tiles beside each other go
    through rows in pieces, of which a page and a half is elsewhere: nothing is fetched.
    """
    if not p.machine.slow_third or p.tables or p.windows or p.dots:
        return USUAL
    if is_late(p):
        return Fetching(NEXT, p.moved >= FROM_MEMORY, LEAST)
    return USUAL if p.keeps_sums or p.columns <= p.width else Fetching(0)


class LateTiles:
    """Writes the tiles of the last blocks of a Writer.

    Where sums wait for them in its own memory (`keeps_sums`) a row of tiles waits there, too, else
    in one of two stages.
    """

    def __init__(self, writer):
        self.writer, self.fn, self.plan = writer, writer.fn, writer.plan
        p = self.plan
        self.vectors, self.of_row = vectors(p), p.columns // p.tile.lanes
        counts = [n for n in range(1, MOST + 1) if self.of_row % n == 0]
        self.count = next((n for n in counts if n * chances(p) >= self.vectors), counts[-1])
        self.stride = writer.sums_stride() if p.keeps_sums else p.columns
        self.size = p.tile.rows * self.stride
        self.stages = None if p.keeps_sums else self.fn.alloca(p.type, 2 * self.size)
        self.stored = self.fn.alloca("i64")              # how many vectors of the row before are

    def write(self, block):
        """All tiles of a block."""
        fn, rows = self.fn, self.plan.tile.rows
        fn.store("i64", self.vectors, self.stored)       # no row is before the first
        with self.writer.rows(block) as (i, left):
            own, before = self.own, self.before = self.places_of(block, i)
            self.writer.panels(block, lambda *panel: self.writer.tile_at(block, i, left, *panel,
                                                                         late=self))
            is_last = fn.compare("sge", fn.add(i, rows), block.rows)
            with fn.loop(0, fn.select(is_last, "i64", 2, 1)) as turn:
                earlier = fn.compare("eq", turn.index, 0)
                row = fn.select(earlier, "i64", fn.sub(i, rows), i)
                place = fn.select(earlier, "ptr", before, own)
                end = fn.select(earlier, "i64", self.vectors, fn.mul(left, self.of_row))
                with fn.loop(fn.load("i64", self.stored), end) as n:
                    self.store(block, row, place, n.index, 1)
                fn.store("i64", 0, self.stored)

    def places_of(self, block, i):
        """Where the sums of the row of tiles at i go, and where those of the row before are."""
        fn, p = self.fn, self.plan
        if p.keeps_sums:
            row = fn.sub(fn.add(block.i, i), self.writer.first_row)
            return [fn.gep(p.type, self.writer.sums, fn.mul(fn.sub(row, before), self.stride))
                    for before in (0, p.tile.rows)]
        own = fn.mul(fn.rem(fn.div(i, p.tile.rows), 2), self.size)
        return [fn.gep(p.type, self.stages, at) for at in (own, fn.sub(self.size, own))]

    def tile(self, block, i, j, c):
        """A whole tile, whose steps are written in place; it stores vectors of the row before."""
        fn, p = self.fn, self.plan
        form, _, a, a_stride, b, b_stride = self.writer.operands(block, p.tile, i, j)
        steps = Steps(fn, p.tile, form, a_stride, b_stride, far=p.fetches_b)
        sums = steps.run_beside(a, b, last_depth(p), EACH,
                                lambda: self.store_next(block, fn.sub(i, p.tile.rows)))
        for n, value in enumerate(sums):
            r, q = divmod(n, p.tile.vectors)
            place = fn.gep(p.type, c, r * self.stride + q * p.tile.lanes)
            if p.keeps_sums:
                kept = fn.vector_load(p.type, p.tile.lanes, place)
                value = added(fn, p.type, p.tile.lanes, kept, value)
            fn.vector_store(p.type, p.tile.lanes, value, place)

    def store_next(self, block, i):
        """Stores the next vectors of the row of tiles at i, if some are left."""
        fn = self.fn
        stored = fn.load("i64", self.stored)
        with fn.if_(fn.compare("slt", stored, self.vectors)):
            self.store(block, i, self.before, stored, self.count)
            fn.store("i64", fn.add(stored, self.count), self.stored)

    def store(self, block, i, place, n, count):
        """Stores what becomes of so many vectors from the n-th on, all in one row, of the row of
        tiles at i, whose sums are at `place`."""
        fn, p, lanes = self.fn, self.plan, self.plan.tile.lanes
        row, column = fn.div(n, self.of_row), fn.mul(fn.rem(n, self.of_row), lanes)
        first = fn.gep(p.type, place, fn.add(fn.mul(row, self.stride), column))
        values = [fn.vector_load(p.type, lanes, fn.gep(p.type, first, q * lanes))
                  for q in range(count)]
        row, column = fn.add(fn.add(block.i, i), row), fn.add(block.j, column)
        self.writer.store_row(block.b, row, column, values, None)
