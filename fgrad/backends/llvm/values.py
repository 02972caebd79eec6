"""Scalar expressions of loop IR as LLVM values: scalars, and explicit vectors along a loop.

A read of unit stride is a vector load, of stride 0 a splat, of a small stride what is picked from
the vectors that hold it; anything else is gathered, by an instruction or lane by lane.  Lanes
behind the end and reads under a guard are masked.  Relies on `addresses` and `instructions`; `emit`
builds on it.
"""

from __future__ import annotations

from ... import index
from ...aligned import LINE
from ...passes.short_loops import is_picked
from ...scalar import walk
from ...types import BOOL, F64, I64, SHORT, computed
from ..expressions import Expressions
from . import reciprocal
from .addresses import Addresses, short
from .fetches import PAGE, USUAL, is_large_row, row_of, step_of
from .host import HOST
from .instructions import element, number, stored, type_text
from .text import constant, mangled, vector

FEW = 4                    # vectors of a loop that a reciprocal is worth while for
NEAR = 1 << 18             # bytes of a row that it holds with the next one
HELD = 1 << 13             # bytes of rows from which the first cache loses them unread


class Values(Expressions, Addresses):
    """Writes the values of scalar nodes: (name, is it a vector).

    `names`: the names of Lets and accumulators → their values.  `fetchers`: which loop
    fetches a row, `rows_ahead`: which rows of a loop are, see `fetches`.  `inner`: the loop at
    hand.  `beside`: how many rows run at once.  `outside`: values known in front of the innermost
    loop.  `given`: param → its place in %buffers.  `fetching`: how far ahead is fetched.
    """

    def __init__(self, fn, pointers, env=None):
        super().__init__(fn, pointers, env)
        self.names, self.fetchers, self.rows_ahead, self.inner = {}, {}, {}, None
        self.outside, self.given, self.beside = frozenset(), {}, 1
        self.fetching = USUAL

    def splat(self, value, dtype, known=False):
        """A value as a vector, where there is a vector loop; made in front of the innermost loop
        where it is `known` there.
        """
        name, wide = value
        if wide or not self.vec:
            return name
        if name[0] not in "%":
            return f"splat ({element(dtype)} {name})"
        front = self.scopes[-1].before
        if front is None or not (known or name in self.outside):
            return self.spread(name, dtype)
        return self.made_once((id(front), name, self.lanes),
                             lambda: self.spread(name, dtype, front))

    def spread(self, name, dtype, out=None):
        """A vector of one value; its lines go to `out`, or where lines go now."""
        t = type_text(dtype, self.lanes)
        one = self.op(f"insertelement {t} poison, {element(dtype)} {name}, i64 0", out)
        return self.op(f"shufflevector {t} {one}, {t} poison, "
                       f"{vector('i32', self.lanes)} zeroinitializer", out)

    def made_once(self, key, make):
        """What `make` gives, once for a key: it is written in front of a loop, or of the kernel."""
        if key not in self.fn.made_once:
            self.fn.made_once[key] = make()
        return self.fn.made_once[key]

    def value(self, n):
        """(name, is it a vector) of a scalar node, computed once per scope and guard."""
        memo, key = self.scopes[-1].memo, (n, self.mask, self.vec)
        if key not in memo:
            for a in self.pending(n):            # deep expressions: arguments first, no recursion
                memo[a, self.mask, self.vec] = self.compute(a)
        return memo[key]

    def compute(self, n):
        found = self.quotient(n) if n.op == "div" and n.dtype.kind == "f" else None
        return found or super().compute(n)

    # -- quotients ------------------------------------------------------------------------------

    def quotient(self, n):
        """A quotient as a product, see `reciprocal`; None where it is to be divided."""
        x, d = n.args
        x, wide = self.value(x)
        if d.op == "const":
            found = reciprocal.factors(float(n.dtype.type(d.data)), SHORT[n.dtype])
            lanes = self.lanes if wide else 1
            parts = [number(part, n.dtype, lanes) for part in found or ()]
            return (self.scaled(x, *parts, n.dtype, lanes), wide) if found else None
        found = self.reciprocal_in_front(d) if wide else None
        if found is None:
            return None
        high, low, scale = (self.splat((part, False), n.dtype, known=True) for part in found)
        product = self.scaled(x, high, low, n.dtype, self.lanes)
        return self.instructions.plain("mul", (product, scale), n.dtype, self.lanes), True

    def scaled(self, x, high, low, dtype, lanes):
        """x times a reciprocal in two parts."""
        rest = self.instructions.plain("mul", (x, low), dtype, lanes)
        return self.instructions.intrinsic("fma", (x, high, rest), dtype, lanes)

    def reciprocal_in_front(self, d):
        """The `reciprocal.parts` of a divisor that is known in front of the vector loop around, if
        that has several vectors, or of the whole kernel; else None.
        """
        before = self.scopes[-1].before
        if d.op == "name":
            name, wide = self.names[d.data]
            worth = (before is not None and not wide and name in self.outside
                     and self.vec[0].extent >= FEW * self.lanes)
            return self.made_once((id(before), d), lambda: reciprocal.parts(
                lambda text: self.op(text, before), name, SHORT[d.dtype])) if worth else None
        return self.made_once((None, d), lambda: self.at_entry(d)) if self.is_of_kernel(d) else None

    def is_of_kernel(self, n):
        """Does a value depend on parameters without axes alone?"""
        return n.free == 0 and self.given and all(
            m.op not in ("name", "guard", "index") and (
                m.op != "load" or m.data[0] in self.given and m.data[0].type.size == 1)
            for m in walk(n))

    def at_entry(self, d):
        """The `reciprocal.parts` of a value of the kernel, found where it begins."""
        with self.fn.at_entry():
            pointers = {b: self.fn.load("ptr", self.fn.gep("ptr", "%buffers", self.given[b]))
                        for b in dict.fromkeys(m.data[0] for m in walk(d) if m.op == "load")}
            values = type(self)(self.fn, pointers)
            found = reciprocal.parts(self.fn.op, values.value(d)[0], SHORT[d.dtype])
        self.instructions.used |= values.instructions.used
        return found

    # -- leaves ---------------------------------------------------------------------------------

    def known(self, n):
        return self.scopes[-1].memo.get((n, self.mask, self.vec))

    def number(self, n):
        return number(n.data, n.dtype, 1)

    def named(self, n):
        return self.names[n.data]

    def index_value(self, n):
        """An index as a number of the node's dtype."""
        x = n.data
        if not self.vec or not x.free & self.vec[0].bit:
            return self.instructions.cast(self.index(x), I64, n.dtype, 1), False
        v, w = self.vec
        if index.is_affine(x, v):
            wide = self.splat((self.index(x), False), I64)
            steps = constant("i64", [k * index.stride(x, v) for k in range(w)])
            at = self.op(f"add {vector('i64', w)} {wide}, {steps}")
        else:
            at = self.hidden(self.by_lane(lambda k: self.at_lane(x, k), "i64"))
        return self.instructions.cast(at, I64, n.dtype, w), True

    def hidden(self, at):
        """A vector of i64 of which LLVM does not see what its lanes are; no instruction.

        Where it knew that lanes of two of them are equal (the idle ones), and their comparison
        became a number, LLVM 22 aborted with AVX-512.
        """
        ints, doubles = type_text(I64, self.lanes), type_text(F64, self.lanes)
        seen = self.op(f"bitcast {ints} {at} to {doubles}")
        kept = self.op(f"call {doubles} @llvm.arithmetic.fence.{mangled('double', self.lanes)}"
                       f"({doubles} {seen})")
        return self.op(f"bitcast {doubles} {kept} to {ints}")

    def by_lane(self, one, t):
        """The vector of one(k), of LLVM type t, for each lane in use; the others are zero."""
        out = "zeroinitializer"
        for k in range(self.count):
            out = self.op(f"insertelement {vector(t, self.lanes)} {out}, {t} {one(k)}, i64 {k}")
        return out

    # -- loads and guards -----------------------------------------------------------------------

    def lane_mask(self):
        """The lanes that may be used here, by a partial last vector or a guard; None for all."""
        parts = [self.mask] if self.mask else []
        if self.vec and self.count < self.lanes:
            parts.append(constant("i1", [str(int(k < self.count)) for k in range(self.lanes)]))
        if len(parts) == 2:
            return self.op(f"and {vector('i1', self.lanes)} {parts[0]}, {parts[1]}")
        return parts[0] if parts else None

    def load(self, n):
        """The element of a buffer at an index, or the vector of them."""
        buffer, x = n.data
        dtype = buffer.type.dtype
        t, align = stored(dtype), dtype.itemsize
        if not self.vec or not x.free & self.vec[0].bit:
            p = self.safe(self.address(buffer, x), None)
            return self.loaded(self.op(f"load {t}, ptr {p}, align {align}"), dtype, 1), False
        if index.is_affine(x, self.vec[0]) and index.stride(x, self.vec[0]) == 1:
            return self.loaded(self.vector_load(buffer, x), dtype, self.lanes), True
        picked = self.picked(buffer, x)
        if picked is not None:
            return self.loaded(picked, dtype, self.lanes), True
        bits = self.gathered(buffer, x) or self.by_lane(lambda k: self.lane_load(buffer, x, k), t)
        return self.loaded(bits, dtype, self.lanes), True

    def loaded(self, name, dtype, lanes):
        """What memory holds as a value: bools are i1, f16 and bf16 become f32."""
        if computed(dtype) is not dtype:
            return self.instructions.widened(name, dtype, lanes)
        if dtype != BOOL:
            return name
        byte = vector("i8", lanes) if lanes > 1 else "i8"
        return self.op(f"trunc {byte} {name} to {type_text(BOOL, lanes)}")

    def vector_load(self, buffer, x):
        """The vector that begins at x, as memory holds it."""
        w, dtype = self.lanes, buffer.type.dtype
        t, p, mask = vector(stored(dtype), w), self.address(buffer, x), self.lane_mask()
        if not mask or self.rows_ahead:
            self.fetch_ahead(buffer, x, p)
        if not mask:
            return self.op(f"load {t}, ptr {p}, align {dtype.itemsize}")
        p = self.safe(p, None)
        return self.op(f"call {t} @llvm.masked.load.{mangled(stored(dtype), w)}.p0(ptr {p}, "
                       f"i32 {dtype.itemsize}, {vector('i1', w)} {mask}, {t} zeroinitializer)")

    def picked(self, buffer, x):
        """The vector from x on in small steps, or backwards, picked from the vectors that hold it,
        which are read once for all that begin between two steps; None where that cannot be.

        An array of whole steps holds all of them; what a kernel writes is not read like this.
        """
        v, w = self.vec
        if self.lane_mask() or buffer not in self.given or not is_picked(buffer, x, v):
            return None
        step = index.stride(x, v)
        every = abs(step)
        offset = x.const % every
        first = index.plus(x, min(0, (w - 1) * step) - offset)
        return self.every_so_many(buffer, first, every, offset, step < 0)

    def every_so_many(self, buffer, first, every, offset, backwards):
        """The vector of what lies at first + offset, and every so many elements behind that.

        One register is read as a whole.  Of several, halves are taken as long as there are any: the
        even elements of each two, or the odd ones, each once for all vectors that are made of it.
        """
        dtype, w, t = buffer.type.dtype, self.lanes, stored(buffer.type.dtype)
        one = every in (1, 3) or w * every * dtype.itemsize <= HOST.vector_bytes
        count, size = (1, w * every) if one else (every, w)
        memo, key = self.scopes[-1].memo, (buffer, first, every, self.vec)
        if key not in memo:
            p, load = self.address(buffer, first), f"load {vector(t, size)}, ptr"
            memo[key] = [self.op(f"{load} {self.fn.gep(t, p, k * size)}, align {dtype.itemsize}")
                         for k in range(count)]
        parts, way = memo[key], -1 if backwards else 1
        if one:
            return self.fn.shuffle(t, size, *parts, "poison", range(offset, size, every)[::way])
        while len(parts) > 1:
            odd, offset = offset % 2, offset // 2
            picks = range(odd, 2 * w, 2)[::way if len(parts) == 2 else 1]
            key = *key, picks
            if key not in memo:
                memo[key] = [self.fn.shuffle(t, w, *two, picks)
                             for two in zip(parts[::2], parts[1::2])]
            parts = memo[key]
        return parts[0]

    def gathered(self, buffer, x):
        """The vector of what lies at places known at run time, or each in a line of its own, by the
        instruction that looks them up at once; None where that takes longer than lane by lane.
        """
        (v, w), dtype, step = self.vec, buffer.type.dtype, index.stride(x, self.vec[0])
        parts = {a: c for a, c in x.terms if a.free & v.bit and not isinstance(a, index.Var)}
        apart = parts or abs(step) * dtype.itemsize >= LINE
        if not (HOST.gathers and apart and dtype.itemsize >= 4
                and buffer.type.size < 2 ** 31 and short(index.ix(parts), w * abs(step))):
            return None
        front = index.ix({a: c for a, c in x.terms if a not in parts}, x.const)
        pointer, at = self.address(buffer, front), self.at_lanes(index.ix(parts), step)
        t, mask = stored(dtype), self.lane_mask() or "splat (i1 true)"
        places = self.op(f"getelementptr {t}, ptr {pointer}, {vector('i32', w)} {at}")
        return self.op(f"call {vector(t, w)} @llvm.masked.gather.{mangled(t, w)}.v{w}p0("
                       f"{vector('ptr', w)} {places}, i32 {dtype.itemsize}, {vector('i1', w)} "
                       f"{mask}, {vector(t, w)} zeroinitializer)")

    def fetch_ahead(self, buffer, x, pointer, write=False):
        """Fetches what lies some bytes behind a vector of a large array, for the first of several
        uses in a loop's body: into the second cache where the first one would lose it unread.
        """
        if not is_large_row(buffer, x, self.fetching.least) or write and not self.fetching.stores:
            return
        fetched, size = self.scopes[-1].fetched, self.lanes * buffer.type.dtype.itemsize
        several = any(b is buffer for b, _ in self.rows_ahead)
        beside = None if several else self.rows_beside(buffer, x)
        key = (buffer, x) if several or beside else buffer
        if key in fetched:
            return
        fetched.add(key)
        if self.copy * size % LINE == 0:
            if several:
                first = self.rows_ahead.get(key)
            elif beside:
                first, place = beside
                pointer = self.address(buffer, place) if first else pointer
            else:
                first = self.ahead(buffer, row_of(x, self.vec[0]))
            held = len({b for b, _ in self.fetchers} if beside else self.fetchers)
            near = write or first is None or first * held < HELD
            for line in range(first, first + size, LINE) if first else ():
                self.fn.prefetch(self.fn.gep("i8", pointer, line), write, near)

    def rows_beside(self, buffer, x):
        """(bytes, index they count from) of what to fetch for a vector of one of several short
        rows that run at once, where another loop fetches (None, x); None for other rows.

        A page has several of them, so that the processor sees no stream.  All of the next rows are
        fetched, in the order in which they lie in memory.
        """
        v, row = self.vec[0], row_of(x, self.vec[0])
        step = step_of(row)
        length, size = step // self.beside, step * buffer.type.dtype.itemsize
        if self.beside == 1 or not 0 < size < self.beside * PAGE:
            return None
        _, fetcher = self.fetchers.get((buffer, row), (None, self.inner))
        if self.inner is not fetcher:
            return None, x
        if length == v.extent:                   # the k-th row's vectors: every k-th one of all
            k = row.const // length % self.beside
            x = index.combine([(row, 1), (index.of(v), self.beside)], k * (self.lanes - length))
        return -(-PAGE // size) * size, x

    def ahead(self, buffer, row):
        """How many bytes behind a vector of a row it is worth to fetch, or None.

        Processors look ahead by themselves, but not into the next page: so a page and a half.  Of
        rows longer than a page the first cache holds a part, so the first loop fetches as far.
        """
        first, fetcher = self.fetchers.get((buffer, row), (self.inner, self.inner))
        if any(isinstance(a, index.Var) and a.step > 1 for a, _ in row.terms):
            return None                          # several rows at once, which it looks ahead in
        size = step_of(row) * buffer.type.dtype.itemsize
        if not 0 < size <= NEAR:                 # no later loop finds it in the cache
            return self.fetching.ahead
        if size > PAGE and self.inner is fetcher is not first:
            return size
        is_first = self.inner is (first if size > PAGE else fetcher)
        return self.fetching.ahead if is_first else None

    def lane_pointer(self, buffer, x, k):
        """The address of the element that lane k reads or writes."""
        if index.is_affine(x, self.vec[0]):
            moved = index.plus(x, k * index.stride(x, self.vec[0]))
            return self.address(buffer, moved)
        t, at = stored(buffer.type.dtype), self.at_lane(x, k)
        return self.op(f"getelementptr inbounds {t}, ptr {self.pointers[buffer]}, i64 {at}")

    def lane_load(self, buffer, x, k):
        """The element that lane k reads, as memory holds it."""
        dtype = buffer.type.dtype
        p = self.safe(self.lane_pointer(buffer, x, k), k)
        return self.op(f"load {stored(dtype)}, ptr {p}, align {dtype.itemsize}")

    def safe(self, p, lane):
        """p, or where the guard is false some zeros: the first element of an array of which only a
        share is in memory would lie anywhere.
        """
        if not self.mask:
            return p
        inside = self.mask
        if self.vec:
            t = vector("i1", self.lanes)
            inside = self.op(f"extractelement {t} {inside}, i64 {lane}" if lane is not None else
                             f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({t} {inside})")
        return self.op(f"select i1 {inside}, ptr {p}, ptr {self.fn.zeros()}")

    def ranges(self, ranges, test=None):
        """The i1, or vector of i1, that all ranges and `test` hold."""
        t = type_text(BOOL, self.lanes)
        for x, lo, hi in ranges:
            c = self.inside(index.plus(x, -lo), hi - lo)
            test = c if test is None else self.op(f"and {t} {test}, {c}")
        return test

    def guard(self, n):
        """The inside where the ranges hold, else the outside; the inside's reads are masked."""
        if self.vec and not n.free & self.vec[0].bit:
            return self.guard_of_all_lanes(n)
        outer = self.mask
        test = self.mask = self.ranges(n.data, outer)
        a = self.splat(self.value(n.args[0]), n.dtype)
        self.mask = outer
        b = self.splat(self.value(n.args[1]), n.dtype)
        return self.instructions.select(test, a, b, n.dtype, self.lanes), bool(self.vec)

    def guard_of_all_lanes(self, n):
        """A guard that is the same in every lane, as one value."""
        outer, vec = self.mask, self.vec
        t = vector("i1", self.lanes)
        any_lane = outer and self.op(
            f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({t} {outer})")
        self.mask, self.vec = any_lane, None
        name = self.value(n)
        self.mask, self.vec = outer, vec
        return name

    def inside(self, x, n):
        """0 <= x < n, in every lane."""
        if not self.vec:
            return self.op(f"icmp ult i64 {self.index(x)}, {n}")
        v, w = self.vec
        if not index.is_affine(x, v):
            at = self.by_lane(lambda k: self.at_lane(x, k), "i64")
            return self.op(f"icmp ult {vector('i64', w)} {at}, splat (i64 {n})")
        t = "i32" if max(abs(x.lo), abs(x.hi), n) < 2 ** 31 - 64 * w else "i64"
        base = self.index(x)
        if t == "i32":
            base = base if base[0] != "%" else self.op(f"trunc i64 {base} to i32")
        wide = f"splat ({t} {base})" if base[0] != "%" else self.fn.splat(t, w, base)
        steps = constant(t, [k * index.stride(x, v) for k in range(w)])
        at = self.op(f"add {vector(t, w)} {wide}, {steps}")
        return self.op(f"icmp ult {vector(t, w)} {at}, splat ({t} {n})")
