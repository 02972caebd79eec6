"""The table of places: where the runs of a bordered operand begin, or a run of zeros instead.

A window over an array with a border reads rows that lie in the array, and zeros: what an indirect
convolution keeps (Dukhan 2019), so that nobody copies an array to put a border around it.  Entry
(q, i) is the address of run q of row i of a block; where rows of a tile have one place, as those of
one pixel of many images, it is that of their first, and a run of zeros is kept for each of them, as
far apart as they are.  Places and numbers of rows are worked out one by one; those of runs are
added, and compared with the limits, for eight rows at once.

    zeros[run]   place[256]  number[256] …   entry[kc / run, 256]

Runs that are zero in all rows of a tile are left out, unless B holds an infinity or NaN, which zero
does not make zero.  Relies on `contract`, `text` and `tiles`; `strips` and `contract_emit` rely on
it.
"""

from __future__ import annotations

from .contract import BLOCK_ROWS
from .text import BYTES, constant, vector
from .tiles import FLOATS, added, multiply_add

LANES = 8                  # entries that are written at once
JUDGED = 256               # rows of a part from which looking for infinities pays
WIDE, BITS = vector("i64", LANES), vector("i1", LANES)


def finite(fn, plan, panels, count):
    """Is zero times each of B's packed elements zero?  An i1."""
    p, lanes = plan, plan.tile.lanes
    v = vector(p.type, lanes)
    with fn.loop(0, count, p.width, [(v, "zeroinitializer")] * p.tile.vectors) as at:
        for q, total in enumerate(at.values):
            b = fn.gep(p.type, panels, fn.add(at.index, q * lanes))
            b = fn.vector_load(p.type, lanes, b)
            at.next[q] = multiply_add(fn, p.type, lanes, b, "zeroinitializer", total)
    total, *others = at.values
    for other in others:
        total = added(fn, p.type, lanes, total, other)
    odd = fn.op(f"fcmp uno {v} {total}, zeroinitializer")
    bits = fn.op(f"bitcast {vector('i1', lanes)} {odd} to i{lanes}")
    return fn.compare("eq", bits, 0, f"i{lanes}")


class Places:
    """Writes the table of one block of a Plan whose A is Bordered.

    skipped: the place of zeros, as i64, or 0 where no run may be left out.
    """
    stride = BLOCK_ROWS        # entries from a run to the next

    def __init__(self, plan, product):
        self.plan, self.product = plan, product
        self.run_bytes = -(-plan.a.run * BYTES[plan.type] // 64) * 64
        self.zeros_bytes = -(-plan.gap(plan.run) // 64) * 64 + self.run_bytes

    @property
    def columns(self):
        """Of a row: its place and its numbers."""
        return 1 + len(self.plan.a.limits)

    @property
    def bytes(self):
        entries = self.columns + -(-self.plan.kc // self.plan.a.run)
        return self.zeros_bytes + 8 * self.stride * entries

    def begin(self, fn, memory):
        """Divides `bytes` of a part's memory, and writes the run of zeros, of each row of one
        place."""
        self.zeros, self.rows = memory, fn.gep("i8", memory, self.zeros_bytes)
        self.entries = fn.gep("i64", self.rows, self.columns * self.stride)
        for row in range(self.plan.run):
            zeros = fn.gep("i8", self.zeros, self.plan.gap(row + 1))
            with fn.loop(0, self.run_bytes // 8, LANES) as at:
                fn.store(WIDE, "zeroinitializer", fn.gep("i64", zeros, at.index), 8)

    def judge(self, fn, panels, count):
        """Decides by B's packed panels, so many elements, whether runs may be left out.

        What lies beside the rows of a narrow last panel is looked at too: it can only forbid it.
        """
        p, place = self.plan, fn.op(f"ptrtoint ptr {self.zeros} to i64")
        if p.type not in FLOATS or not p.pack_b or p.part_rows < JUDGED:
            self.skipped = 0 if p.type in FLOATS else place
            return
        self.skipped = fn.select(finite(fn, p, panels, count), "i64", place, 0)

    def write(self, fn, block):
        """The table of a block."""
        step = self.plan.run
        with fn.loop(0, block.rows, step) as row:
            found = self.product.row_places(fn, block.b, fn.add(block.i, row.index))
            for column, value in enumerate(found):
                at = self.at(fn, self.rows, column, fn.div(row.index, step))
                fn.store("i64", value, at)
        rows = fn.div(fn.add(block.rows, step - 1), step)
        zeros = fn.splat("i64", LANES, fn.op(f"ptrtoint ptr {self.zeros} to i64"))
        run = self.plan.a.run
        with fn.loop(0, fn.div(block.depth, run)) as q:
            k = fn.add(block.k, fn.mul(q.index, run))
            shifts = [fn.splat("i64", LANES, s) for s in self.product.run_places(fn, k)]
            with fn.loop(0, rows, LANES) as row:
                to = self.at(fn, self.entries, q.index, row.index)
                fn.store(WIDE, self.entry(fn, row.index, shifts, zeros), to, 64)

    def entry(self, fn, row, shifts, zeros):
        """Neighbouring rows' entries for one run."""
        place, *numbers = [
            fn.op(f"add {WIDE} {fn.load(WIDE, self.at(fn, self.rows, column, row), 64)}, {shift}")
            for column, shift in enumerate(shifts)]
        inside = [fn.op(f"icmp ult {WIDE} {n}, {constant('i64', [limit] * LANES)}")
                  for n, limit in zip(numbers, self.plan.a.limits)]
        for other in inside[1:]:
            inside[0] = fn.op(f"and {BITS} {inside[0]}, {other}")
        return fn.op(f"select {BITS} {inside[0]}, {WIDE} {place}, {WIDE} {zeros}")

    def at(self, fn, table, line, row):
        """The address of an element of lines of `stride`."""
        return fn.gep("i64", table, fn.add(fn.mul(line, self.stride), row))

    def of(self, fn, i):
        """The address of the entries of row i of the block, for its first run."""
        return fn.gep("i64", self.entries, fn.div(i, self.plan.run))
