"""The table of segments: where the strips of an operand in a border of zeros lie in the array.

The gradient of a convolution's kernel multiplies, for each window and row of an image, a strip of
pixels by the gradients there.  Of a strip one stretch lies in the array; the rest is zero, and left
out unless B holds an infinity or NaN, which zero does not make zero.  A window's segments stand one
after the other, as many as there are:

    zeros[strip]   number[window]   (place, step, steps)[window, kc / steps · 3 + 1]

Relies on `text`, `places` and `tiles`; `contract_emit` relies on it.
"""

from __future__ import annotations

from .places import finite
from .text import BYTES
from .tiles import FLOATS, Segments


class SegmentTable:
    """Writes the table of one block of a Plan whose A is Strips."""

    def __init__(self, plan, product):
        self.plan, self.product = plan, product
        a = plan.a
        zeros = (abs(a.step) * (a.steps - 1) + a.period) * BYTES[plan.type]
        self.zeros_bytes = -(-zeros // 64) * 64
        self.windows = plan.mc // a.period
        self.line = Segments.words * (3 * (plan.kc // a.steps) + 1)    # i64 of a window's segments

    @property
    def bytes(self):
        return self.zeros_bytes + -(-8 * self.windows * (1 + self.line) // 64) * 64

    def begin(self, fn, memory):
        """Divides `bytes` of a part's memory."""
        self.zeros, self.numbers = memory, fn.gep("i8", memory, self.zeros_bytes)
        self.segments = fn.gep("i64", self.numbers, self.windows)

    def judge(self, fn, panels, count):
        """Decides by B's packed panels, so many elements, whether zeros are multiplied; if so,
        writes them."""
        self.skips = "true"
        if self.plan.type in FLOATS:
            self.skips = finite(fn, self.plan, panels, count)
            with fn.if_(fn.op(f"xor i1 {self.skips}, true")):
                with fn.loop(0, self.zeros_bytes // 8) as at:
                    fn.store("i64", 0, fn.gep("i64", self.zeros, at.index))

    def write(self, fn, block):
        """The table of a block."""
        period = self.plan.a.period
        with fn.loop(0, fn.div(block.rows, period)) as window:
            row = fn.add(block.i, fn.mul(window.index, period))
            start = self.of(fn, window.index)
            with fn.loop(0, block.depth, self.plan.a.steps, [("ptr", start)]) as k:
                k.next = [self.strip(fn, block, row, k.index, *k.values)]
            begin, end = (fn.op(f"ptrtoint ptr {at} to i64") for at in (start, *k.values))
            count = fn.div(fn.sub(end, begin), 8 * Segments.words)
            fn.store("i64", count, fn.gep("i64", self.numbers, window.index))

    def strip(self, fn, block, row, k, to):
        """Appends what a window has of the strip from step k of the block on; gives the next
        place."""
        place, first, count = self.product.strip(fn, block.b, row, fn.add(block.k, k))
        stop = fn.add(first, count)
        to = self.outside(fn, to, k, first)
        to = self.append(fn, to, place, fn.add(k, first), count)
        return self.outside(fn, to, fn.add(k, stop), fn.sub(self.plan.a.steps, stop))

    def outside(self, fn, to, step, count):
        """Appends zeros, if they are multiplied."""
        if self.skips == "true":
            return to
        zeros = fn.op(f"ptrtoint ptr {self.zeros} to i64")
        return self.append(fn, to, zeros, step, fn.select(self.skips, "i64", 0, count))

    def append(self, fn, to, *segment):
        """Appends a segment that is not empty."""
        for word, value in enumerate(segment):
            fn.store("i64", value, fn.gep("i64", to, word))
        some = fn.compare("sgt", segment[-1], 0)
        return fn.gep("i64", to, fn.select(some, "i64", Segments.words, 0))

    def of(self, fn, window):
        """The address of a window's segments."""
        return fn.gep("i64", self.segments, fn.mul(window, self.line))

    def operand(self, fn, i):
        """(address, stride, depth) of A for the kernel of a tile whose first row of the block is
        i."""
        window = fn.div(i, self.plan.a.period)
        count = fn.load("i64", fn.gep("i64", self.numbers, window))
        return self.of(fn, window), fn.rem(i, self.plan.a.period), count
