"""What tiles fetch into the second cache while they multiply: what later ones read, each a share.

Where a row of A ends and the next begins elsewhere, or the next of small matrices, a processor sees
no stream: it would wait for the first lines of each, where the second cache lacks them.  Relies on
a Plan of `contract_plan` and on `tiles`; `contract_cost` and `contract_emit` rely on it.
"""

from __future__ import annotations

from ...aligned import LINE
from .operands import Strided
from .text import BYTES
from .tiles import STREAM

DELAY = 1000               # cycles after which lines have come from memory
LONG = 64                  # steps of a row of A that are worth a stream
ROW_WORK = 4               # multiply-adds of a step beside which it fetches of a row,
COLUMN_WORK = 8            # and of a column, whose lines are in pages of their own
APART = 256                # bytes from line to line of a column, where they are no stream


def streams_of(fn, plan, product):
    """Those of a product, or None."""
    kind = kind_of(plan)
    return kind and kind(fn, plan, product)


def kind_of(plan):
    """The class of a plan's streams, or None."""
    if not (isinstance(plan.a, Strided) and is_large(plan)):
        return None
    if plan.dots or plan.single or plan.swapped or plan.windows:
        return None
    return next((kind for kind in (NextBatch, NextSteps, LaterColumns, LaterRows)
                 if kind.serves(plan)), None)


def is_large(p):
    """Does the second cache not hold the operands of all batches?"""
    return bytes_of(p, p.rows + p.columns, p.depth) * p.batch > p.machine.l2


def tiles_of(p):
    return -(-p.rows // p.tile.rows) * -(-p.columns // p.width)


def in_pieces(p):
    """Does each operand lie in one piece, so that it can be cut into shares?"""
    ends = [(p.a, p.rows, p.depth), (p.b, p.depth, p.columns)]
    return all(isinstance(x, Strided) and (x.first, x.second) in ((n, 1), (1, m))
               for x, m, n in ends)


def bytes_of(p, rows, steps):
    return rows * steps * BYTES[p.type]


class Streams:
    """The streams of a product's tiles.  `table`: what a kernel reads, see `tiles.Kernel`."""
    count = 2

    def __init__(self, fn, plan, product):
        self.fn, self.plan, self.product = fn, plan, product
        self.table = fn.alloca("i64", STREAM * self.count)

    def rates(self, rates):
        """Writes how many bytes a step goes of each."""
        for n, rate in enumerate(rates):
            self.fn.store("i64", rate, self.fn.gep("i64", self.table, STREAM * n + 1))

    def starts(self, places):
        """Writes where the shares of a tile begin."""
        for n, place in enumerate(places):
            self.fn.store("ptr", place, self.fn.gep("i64", self.table, STREAM * n))


class Shares(Streams):
    """A and B of what comes next, of which each tile has a share."""

    def __init__(self, fn, plan, product):
        super().__init__(fn, plan, product)
        self.steps = min(plan.kc, plan.depth)
        self.shares = shares(plan, self.steps)

    def begin(self, b):
        """Of batch b."""
        fn, product, b = self.fn, self.product, self.batch(b)
        self.firsts = [product.a_pointer(fn, b), product.b_pointer(fn, b)]
        self.rates([-(-share // self.steps) for share in self.shares])

    def of_tile(self, i, j, k):
        """Of the tile at row i, column j; its steps are from the k-th on."""
        fn, p = self.fn, self.plan
        row = fn.mul(fn.div(i, p.tile.rows), -(-p.columns // p.width))
        tile = fn.add(row, fn.div(j, p.width))
        self.starts([fn.gep("i8", first, fn.mul(tile, share))
                     for first, share in zip(self.places(k), self.shares)])


def shares(p, steps):
    """Bytes that each tile fetches of A and of B, whole lines, of so many steps."""
    return [-(-bytes_of(p, n, steps) // tiles_of(p) // LINE) * LINE for n in (p.rows, p.columns)]


class NextBatch(Shares):
    """Those of the next batch; the last one is its own next."""

    @staticmethod
    def serves(p):
        """Where all batches are more than the second cache holds, and two of them are not."""
        return (p.batch > 1 and p.grid == (p.grid[0], 1, 1, 1) and p.turns == 1 and p.blocks == 1
                and bytes_of(p, p.rows + p.columns, p.depth) <= p.machine.l2 // 2 and in_pieces(p))

    def batch(self, b):
        return self.fn.min(self.fn.add(b, 1), self.plan.batch - 1)

    def places(self, k):
        return self.firsts


class NextSteps(Shares):
    """Those of the next block of steps."""

    @staticmethod
    def serves(p):
        """Where the second cache holds two blocks, whose steps lie behind each other."""
        return (p.grid[1:3] == (1, 1) and not p.a_by_rows and p.b_by_rows and p.nc >= p.columns
                and bytes_of(p, p.rows + p.columns, p.kc) <= p.machine.l2 // 2
                and bytes_of(p, p.rows + p.columns, p.depth) > p.machine.l2
                and p.blocks > 1 and in_pieces(p) and max(shares(p, p.kc)) <= p.kc // 2 * LINE)

    def batch(self, b):
        return b

    def places(self, k):
        fn, p = self.fn, self.plan
        k = fn.add(k, p.kc)
        return [fn.gep(p.type, first, fn.mul(k, n))
                for first, n in zip(self.firsts, (p.rows, p.columns))]


class LaterColumns(Streams):
    """The lines of columns of A that tiles read soon, of which a step has one: for the last rows,
    those of the first columns in the next block.

    Two streams, as a kernel fetches at every second step.
    """

    @staticmethod
    def serves(p):
        """Where tiles read columns where they lie, their lines far apart, and the second cache does
        not hold all.
        """
        return (not p.a_by_rows and not p.pack_a and p.rows_first
                and bytes_of(p, p.a.second, 1) >= APART
                and bytes_of(p, p.rows, p.depth) > p.machine.l2
                and p.tile.rows * p.tile.vectors >= 2 * COLUMN_WORK)

    def begin(self, b):
        """Of batch b."""
        p = self.plan
        self.first = self.product.a_pointer(self.fn, b)
        self.rates([bytes_of(p, p.a.second, 1)] * 2)

    def of_tile(self, i, j, k):
        """Of the tile at row i, column j; its steps are from the k-th on."""
        fn, p = self.fn, self.plan
        later = fn.add(i, LINE // BYTES[p.type])
        last = fn.compare("sge", later, p.rows)
        row = fn.select(last, "i64", fn.sub(later, p.rows), later)
        step = fn.select(last, "i64", fn.add(k, p.kc), k)
        at = fn.add(fn.mul(step, p.a.second), row)
        self.starts([fn.gep(p.type, self.first, e) for e in (at, fn.add(at, p.a.second))])


class LaterRows(Streams):
    """The rows of A that later tiles read, each from this block's first step on."""

    @staticmethod
    def serves(p):
        """Where tiles read long rows where they lie, and the second cache does not hold all: on
        Intel's processors with AVX-512 it costs a twentieth of the time.
        """
        return (not p.machine.slow_third
                and p.a_by_rows and not p.pack_a and p.rows_first and min(p.kc, p.depth) >= LONG
                and bytes_of(p, p.rows, p.depth) > p.machine.l2
                and p.tile.rows * p.tile.vectors >= ROW_WORK * rows_each(p))

    def __init__(self, fn, plan, product):
        self.count = rows_each(plan)
        super().__init__(fn, plan, product)
        lanes = plan.tile.rows * plan.columns // plan.tile.lanes
        self.ahead = plan.tile.rows * -(-DELAY // (lanes * min(plan.kc, plan.depth) // 2))

    def begin(self, b):
        """Of batch b."""
        self.first = self.product.a_pointer(self.fn, b)
        self.rates([BYTES[self.plan.type]] * self.count)

    def of_tile(self, i, j, k):
        """Of the tile at row i, column j; its steps are from the k-th on."""
        fn, p = self.fn, self.plan
        row = fn.add(fn.add(i, self.ahead), fn.mul(fn.div(j, p.width), self.count))
        elements = [fn.add(fn.mul(fn.add(row, n), p.a.first), k) for n in range(self.count)]
        self.starts([fn.gep(p.type, self.first, e) for e in elements])


def rows_each(p):
    """How many rows each tile of a row of tiles fetches."""
    return -(-p.tile.rows // -(-p.columns // p.width))
