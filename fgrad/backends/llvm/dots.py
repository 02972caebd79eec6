"""Products of few rows whose two operands both run along k: sums of products of whole vectors.

For a matrix times a vector, or a few rows times a transposed matrix, packing would cost more than
the product.  A tile of r rows and c columns keeps r·c vectors of partial sums along k, loads r + c
vectors a step, and adds the lanes up at the end.  Relies on `text`
and `tiles`; `contract` and `contract_emit` rely on it.
"""

from __future__ import annotations

from ...records import frozen
from .text import BYTES, Function, mangled, vector
from .tiles import KERNEL_PARAMETERS, added, multiply_add


def lanes_of_sums(type):
    """Sums come in vectors of 16 bytes: cheap to add up, and to compile."""
    return 16 // BYTES[type]


def shape(rows, columns, machine):
    """(rows, columns) of a tile."""
    most = 12 if machine.registers == 16 else 24
    r = min(rows, 4)
    c = next(c for c in (8, 4, 2, 1) if r * c <= most)
    return r, min(c, columns)


@frozen
class Dots:
    """A shareable function that computes a tile of `rows` × `columns` dot products.

    It is called like a `tiles.Kernel`: the strides are those of the rows of A, of the columns of B
    and of the rows of the result.  left: what the depth leaves over after whole vectors.  Rows of
    the result are whole vectors of sums unless `exact`.
    """
    type: str
    lanes: int
    rows: int
    columns: int
    left: int
    exact: bool

    @property
    def name(self):
        flags = (f".left{self.left}" if self.left else "") + ".exact" * self.exact
        return f"fg.dots.{mangled(self.type, self.lanes)}.{self.rows}x{self.columns}{flags}"

    @property
    def unroll(self):
        """Steps an iteration, so that eight sums hide the latency of an addition."""
        return max(1, 8 // (self.rows * self.columns))

    def text(self):
        """The kernel as a Function."""
        fn = Function(self.name, KERNEL_PARAMETERS, linkage="internal",
                      attributes="nounwind noinline")
        sums = self.run(fn)
        lanes = lanes_of_sums(self.type)
        for r in range(self.rows):
            row = fn.gep(self.type, "%c", fn.mul("%cs", r))
            for first in range(0, self.columns, lanes):
                some = sums[r * self.columns:(r + 1) * self.columns][first:first + lanes]
                value = add_lanes(fn, self.type, self.lanes, some)
                count = len(some) if self.exact else None
                fn.vector_store(self.type, lanes, value, fn.gep(self.type, row, first), count)
        return fn.ret()

    def run(self, fn):
        """The vectors of sums, row by row."""
        v, many = vector(self.type, self.lanes), self.rows * self.columns
        step = self.lanes * self.unroll
        whole, most = fn.sub("%depth", self.left), fn.sub("%depth", fn.rem("%depth", step))
        zeros = [(v, "zeroinitializer")] * (many * self.unroll)
        with fn.loop(0, most, step, zeros) as loop:
            for u in range(self.unroll):
                at = fn.add(loop.index, u * self.lanes)
                part = slice(u * many, (u + 1) * many)
                loop.next[part] = self.step(fn, at, loop.values[part])
        sums = loop.values[:many]
        for u in range(1, self.unroll):
            more = loop.values[u * many:(u + 1) * many]
            sums = [added(fn, self.type, self.lanes, x, y) for x, y in zip(sums, more)]
        if self.unroll > 1:
            with fn.loop(most, whole, self.lanes, [(v, s) for s in sums]) as loop:
                loop.next = self.step(fn, loop.index, loop.values)
            sums = loop.values
        return self.step(fn, whole, sums, self.left) if self.left else sums

    def step(self, fn, k, sums, count=None):
        """The sums with the products of one vector along k added."""
        rows = [self.read(fn, "%a", fn.mul("%as", r), k, count) for r in range(self.rows)]
        sums = list(sums)
        for c in range(self.columns):
            column = self.read(fn, "%b", fn.mul("%bs", c), k, count)
            for r, row in enumerate(rows):
                at = r * self.columns + c
                sums[at] = multiply_add(fn, self.type, self.lanes, row, column, sums[at])
        return sums

    def read(self, fn, pointer, start, k, count):
        place = fn.gep(self.type, fn.gep(self.type, pointer, start), k)
        return fn.vector_load(self.type, self.lanes, place, count)


def add_lanes(fn, type, lanes, vectors):
    """One vector of 16 bytes: lane j is the sum of the lanes of vectors[j]; zero behind them."""
    size = lanes_of_sums(type)
    short = [folded(fn, type, lanes, v, size) for v in vectors]
    short += ["zeroinitializer"] * (size - len(short))
    groups = 1                                   # sums that share a vector so far
    while len(short) > 1:
        half = size // groups // 2
        low = [g + k for g in range(0, 2 * size, 2 * half) for k in range(half)]
        high = [p + half for p in low]
        short = [added(fn, type, size, fn.shuffle(type, size, a, b, low),
                       fn.shuffle(type, size, a, b, high))
                 for a, b in zip(short[::2], short[1::2])]
        groups *= 2
    return short[0]


def folded(fn, type, lanes, value, size):
    """A vector added to itself by halves until `size` lanes are left."""
    while lanes > size:
        lanes //= 2
        low = fn.shuffle(type, 2 * lanes, value, "poison", range(lanes))
        high = fn.shuffle(type, 2 * lanes, value, "poison", range(lanes, 2 * lanes))
        value = added(fn, type, lanes, low, high)
    return value
