"""Stores of loop IR as LLVM text: one element, vectors side by side, whole steps, lane by lane.

Lanes behind the end of a loop, or under a guard, are masked.  Relies on `values` for what is
stored and on `addresses` for where; `emit` builds on it.
"""

from __future__ import annotations

from ... import index
from ...bf16 import BF16
from ...loop import Store
from ...passes.short_loops import whole_steps
from ...records import replace
from ...scalar import REDUCTIONS
from ...types import BOOL, computed
from .instructions import stored, type_text
from .text import PAST_CACHES, Mask, vector
from .values import Values


class Stores(Values):
    """Writes Store statements into one LLVM function.

    `past`: the buffers that the loop at hand writes past the caches, and at multiples of how many
    bytes each of its vectors begins.
    """

    def __init__(self, fn, pointers, env=None):
        super().__init__(fn, pointers, env)
        self.past = {}

    def store(self, s):
        """buffer[index] = expr, lane by lane where lanes do not lie side by side."""
        by_lane = bool(self.vec) and bool(s.index.free & self.vec[0].bit)
        outer = self.mask
        if by_lane and s.when and not outer and not any(
                x.free & self.vec[0].bit for x, _, _ in s.when):
            return self.store_in_all_lanes(s)
        if s.when:
            self.mask = self.ranges(s.when, outer)
            by_lane = by_lane or bool(self.vec)
        value = self.value(s.expr)
        if not by_lane:
            self.store_one(s, value[0], self.address(s.buffer, s.index), self.mask)
        elif (index.is_affine(s.index, self.vec[0]) and index.stride(s.index, self.vec[0]) == 1
              and not self.miscompiled(s.buffer.type.dtype)):
            self.store_vector(s, self.splat(value, s.expr.dtype))
        else:
            self.store_lanes(s, self.splat(value, s.expr.dtype))
        self.mask = outer

    def store_in_all_lanes(self, s):
        """A store whose guard is the same in every lane, as a branch."""
        vec, self.vec = self.vec, None
        test = self.ranges(s.when)
        self.vec = vec
        with self.fn.if_(test), self.branch():
            self.store(replace(s, when=()))

    def miscompiled(self, dtype):
        """Would LLVM write too much?

        Of a narrowed integer vector, a masked store of one lane stores the wide integer on x86
        (seen in LLVM 22); a guard's mask may turn out to have one lane.
        """
        whole = dtype.kind in "iu" or dtype is BF16
        return whole and (self.count == 1 < self.lanes or bool(self.mask))

    def store_one(self, s, value, pointer, mask):
        """One element; where `mask` is off nothing is touched."""
        dtype = s.buffer.type.dtype
        if mask:
            with self.fn.if_(mask):
                self.store_one(s, value, pointer, None)
            return
        t, align = stored(dtype), dtype.itemsize
        if s.how:
            old = self.loaded(self.op(f"load {t}, ptr {pointer}, align {align}"), dtype, 1)
            value = self.instructions.apply(REDUCTIONS[s.how][0], [old, value], s.expr.dtype, 1)
        self.fn.do(f"store {t} {self.kept(value, dtype, 1)}, ptr {pointer}, align {align}")

    def kept(self, value, dtype, lanes):
        """A value as memory holds it: a bool is a byte, f16 and bf16 are rounded."""
        if computed(dtype) is not dtype:
            return self.instructions.narrowed(value, dtype, lanes)
        if dtype != BOOL:
            return value
        byte = vector("i8", lanes) if lanes > 1 else "i8"
        return self.op(f"zext {type_text(BOOL, lanes)} {value} to {byte}")

    def store_vector(self, s, value):
        """Elements side by side, those of the lanes in use."""
        dtype, w = s.buffer.type.dtype, self.lanes
        if s.how:
            old = self.loaded(self.vector_load(s.buffer, s.index), dtype, w)
            value = self.instructions.apply(REDUCTIONS[s.how][0], [old, value], s.expr.dtype, w)
        t, p, mask = vector(stored(dtype), w), self.address(s.buffer, s.index), self.lane_mask()
        value = self.kept(value, dtype, w)
        if not mask and s.buffer in self.past:
            self.fn.do(f"store {t} {value}, ptr {p}, align {self.past[s.buffer]}{PAST_CACHES}")
        elif not mask:
            self.fetch_ahead(s.buffer, s.index, p, write=True)
            self.fn.do(f"store {t} {value}, ptr {p}, align {dtype.itemsize}")
        else:
            some = Mask(mask) if self.mask else self.count
            self.fn.vector_store(stored(dtype), w, value, p, some)

    def whole_steps(self, statements):
        """Lists of stores that together write all elements between two steps of the vector loop."""
        if not self.vec or self.lane_mask() or sum(isinstance(s, Store) for s in statements) < 2:
            return []
        return whole_steps(statements, self.vec[0])

    def store_steps(self, stores):
        """Vectors of every so many elements as one, that holds them all in order."""
        dtype, how = stores[0].buffer.type.dtype, stores[0].how
        w, step = self.lanes, len(stores)
        values = [self.kept(self.splat(self.value(s.expr), s.expr.dtype), dtype, w) for s in stores]
        t, p = stored(dtype), self.address(stores[0].buffer, stores[0].index)
        mixed = (self.joined if step & (step - 1) else self.interleaved)(values, t)
        size = w * step // len(mixed)
        for k, value in enumerate(mixed):
            at, wide = self.fn.gep(t, p, k * size), vector(t, size)
            if how:
                old = self.op(f"load {wide}, ptr {at}, align {dtype.itemsize}")
                value = self.instructions.apply(REDUCTIONS[how][0], [old, value], dtype, size)
            self.fn.do(f"store {wide} {value}, ptr {at}, align {dtype.itemsize}")

    def interleaved(self, values, t):
        """The elements of 2, 4, 8, … vectors in turns, in as many vectors.

        As many as have lanes, or several times as many, are squares that are transposed.  Of fewer,
        the elements of one half stand between those of the other, round by round.
        """
        w, n = self.lanes, len(values)
        if n >= w:
            squares = [self.transposed(values[k:k + w], t) for k in range(0, n, w)]
            return [row for rows in zip(*squares) for row in rows]
        low = [lane for k in range(w // 2) for lane in (k, k + w)]
        for _ in range(n.bit_length() - 1):
            values = [self.fn.shuffle(t, w, a, b, [lane + first for lane in low])
                      for a, b in zip(values[:n // 2], values[n // 2:]) for first in (0, w // 2)]
        return values

    def transposed(self, rows, t):
        """The columns of a square of vectors: rows that lie `side` apart exchange squares of that
        side, of 1, 2, 4, … lanes.  The smaller ones stay within what the processor moves at once.
        """
        w, side = self.lanes, 1
        while side < w:
            low = [lane + (w - side if lane & side else 0) for lane in range(w)]
            high = [lane + (w if lane & side else side) for lane in range(w)]
            pairs = {k: (rows[k], rows[k + side]) for k in range(w) if not k & side}
            rows = [self.fn.shuffle(t, w, *pairs[k & ~side], high if k & side else low)
                    for k in range(w)]
            side *= 2
        return rows

    def joined(self, values, t):
        """The same of any number of vectors, as one."""
        w, step, size = self.lanes, len(values), self.lanes
        while len(values) > 1:                   # pairs, the last one with nothing
            values = [self.fn.shuffle(t, size, a, b, range(2 * size))
                      for a, b in zip(values[::2], [*values[1::2], "poison"])]
            size *= 2
        picks = [k * w + j for j in range(w) for k in range(step)]
        return [self.fn.shuffle(t, size, values[0], "poison", picks)]

    def store_lanes(self, s, value):
        """Each lane in order, so that lanes which meet at one element add up."""
        t, bits = type_text(s.expr.dtype, self.lanes), vector("i1", self.lanes)
        for k in range(self.count):
            one = self.op(f"extractelement {t} {value}, i64 {k}")
            mask = self.mask and self.op(f"extractelement {bits} {self.mask}, i64 {k}")
            self.store_one(s, one, self.lane_pointer(s.buffer, s.index, k), mask)
