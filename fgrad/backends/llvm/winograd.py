"""Windows by fewer products: the algorithms of Winograd, and plans of the engine that use them.

Two neighbouring sums of three products each take four products instead of six:

    y₀ = d₀g₀ + d₁g₁ + d₂g₂      m = (d₀ - d₂) g₀,  (d₁ + d₂) (g₀ + g₁ + g₂)/2,
    y₁ = d₁g₀ + d₂g₁ + d₃g₂          (d₂ - d₁) (g₀ - g₁ + g₂)/2,  (d₁ - d₃) g₂
                                 y = m₀ + m₁ + m₂,  m₁ - m₂ - m₃

that is y = A [(G g) ⊙ (B d)], and along two axes 16 products instead of 36.  Products over channels
become matrix products, one for each of the points of m, and these the tiles of the engine compute;
around them additions bring the images to the points, and back.  The gradient of g is Gᵀ [(Aᵀ ȳ) ⊙
(B d)].  A window of two takes 3 products instead of 4, one of more is cut into twos and threes, and
one that moves on by several elements into those of its taps that read the same elements.  With
gaps between taps, the two sums of a tile are as far apart.

The coefficients are 0, ±1 and ½.  Measured in f32 with windows of 2 to 7: half to all of the error
of plain sums, which are longer, and one to two times it in gradients of kernels.  An infinity or
NaN would spread over a tile: what is not finite is computed plainly instead.

Sources: S. Winograd, Arithmetic Complexity of Computations (1980); A. Lavin and S. Gray, Fast
Algorithms for Convolutional Neural Networks (2016).  Relies on `tiles`; `contract` chooses between
these plans and others, `winograd_emit` writes them.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import product
from math import prod

from ... import index
from ...records import frozen
from .text import BYTES
from .tiles import Tile, shapes, step_cycles

SIDE = 2                   # results of a tile along an axis
LONGEST = 7                # elements of a window along an axis
MOST = 100                 # points
FEWEST = 8                 # channels, and columns
HALF = 0.5
NEAR = 1 << 19             # bytes of the images, and of the products, of a share of tiles
MOVED = 2.4                # cycles of a vector at a point that is written, or read, and added
AROUND = 12                # cycles of a tile's vector beside its points
TRANSPOSED = 6             # cycles of a vector at a point that is transposed
FAR, LARGE = 0.5, 8 << 20  # cycles of a byte of windows, or of their products, so many of which
                           # the caches do not hold
UNLIKE = 1.1               # times the estimate: where little is gained, sums stay plain
STARTED = 30, 2            # cycles of a tile of the engine, and of one of its sums


# ---------------------------------------------------------------------------- along one axis

# taps: (B, G, A), rows of coefficients
SHORT = {
    1: (((1, 0), (0, 1)), ((1,), (1,)), ((1, 0), (0, 1))),
    2: (((1, -1, 0), (0, 1, 0), (0, 1, -1)),
        ((1, 0), (1, 1), (0, 1)),
        ((1, 1, 0), (0, 1, -1))),
    3: (((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        ((1, 0, 0), (HALF, HALF, HALF), (HALF, -HALF, HALF), (0, 0, 1)),
        ((1, 1, 1, 0), (0, 1, -1, -1))),
}


@lru_cache(maxsize=None)
def algorithm(taps, stride=1):
    """(B, G, A) for windows of so many elements: y = A [(G g) ⊙ (B d)], two sums of `taps`, of
    which the second begins `stride` elements behind the first.

    >>> [len(algorithm(taps)[0]) for taps in range(2, 8)]
    [3, 4, 6, 7, 8, 10]
    >>> len(algorithm(3, stride=2)[0])
    5
    """
    if stride > 1:
        elements = stride * (SIDE - 1) + taps
        parts = [range(first, taps, stride) for first in range(min(stride, taps))]
        return joined([algorithm(len(part)) for part in parts], taps, elements,
                      parts, [range(part[0], elements, stride) for part in parts])
    if taps in SHORT:
        return SHORT[taps]
    first = 2 if taps == 4 else 3
    cuts = range(first), range(first, taps)
    return joined([SHORT[first], algorithm(taps - first)], taps, taps + SIDE - 1, cuts,
                  [range(cut[0], cut[-1] + SIDE) for cut in cuts])


def joined(algorithms, taps, elements, of_taps, of_elements):
    """The algorithm for all of some taps and elements from those for these parts of them."""
    def spread(rows, places, length):
        return tuple(tuple(dict(zip(places, row)).get(n, 0) for n in range(length)) for row in rows)
    b, g, a = zip(*algorithms)
    return (sum([spread(m, places, elements) for m, places in zip(b, of_elements)], ()),
            sum([spread(m, places, taps) for m, places in zip(g, of_taps)], ()),
            tuple(sum(rows, ()) for rows in zip(*a)))


def transposed(matrix):
    """The transpose of rows of coefficients."""
    return tuple(zip(*matrix))


# ---------------------------------------------------------------------------- plans

@frozen
class Windows:
    """An operand A that is a window over images: its element is known by place + tap, channel.

    A place is (one of `outer` images, a position within `sizes`), a tap a position within `taps`.
    Along an axis the element of an image is known by stride · place + dilation · tap, of which one
    number is 1.  Rows are places and steps (taps, channel), or, `turned`, the other way round: the
    gradient of the kernel.
    """
    outer: int
    sizes: tuple
    taps: tuple
    channels: int
    turned: bool
    strides: tuple
    dilations: tuple

    @cached_property
    def tiled(self):
        """How many tiles an image has along each axis."""
        return tuple(d * -(-n // (SIDE * d)) for n, d in zip(self.sizes, self.dilations))

    @property
    def tiles(self):
        return self.outer * prod(self.tiled)

    @property
    def last_firsts(self):
        """The first place of the last tile along each axis."""
        return [SIDE * (n - d) + d - 1 for n, d in zip(self.tiled, self.dilations)]

    @property
    def algorithms(self):
        """Of each axis."""
        return [algorithm(r, s) for r, s in zip(self.taps, self.strides)]

    @cached_property
    def points(self):
        return prod(len(b) for b, _, _ in self.algorithms)

    @property
    def fewer(self):
        """Are there fewer points than products in a tile, and few to write out?"""
        return self.points < prod(SIDE * r for r in self.taps) and self.points <= MOST

    @cached_property
    def elements(self):
        """How many elements of an image a tile reads along each axis."""
        return tuple(len(b[0]) for b, _, _ in self.algorithms)

    def read_by_places(self, firsts, steps):
        """Ranges (index, 0, stop) in which some place reads the element that is so many steps
        behind a tile's first one, whose place is an index, along each axis."""
        return [(index.combine([(first, s)], step * d), 0, s * (size - 1) + d * (taps - 1) + 1)
                for first, step, s, d, size, taps in zip(
                    firsts, steps, self.strides, self.dilations, self.sizes, self.taps)]


def plans(start, type, threads):
    """Plans of a product whose A is Windows."""
    w, columns, machine = start.windows, start.columns, start.machine
    lanes = machine.lanes(type)
    ragged = w.channels % lanes or columns % lanes
    few = min(w.channels, columns) < FEWEST
    if few or ragged and not machine.masks or not w.fewer:
        return
    rows, vectors = w.channels if w.turned else w.tiles, -(-columns // lanes)
    for r, v in sorted({(min(r, rows), min(v, vectors)) for r, v in shapes(machine)}):
        tile = Tile(type, lanes, r, v)
        step = 1 if w.turned else r
        parts = min(threads, -(-w.tiles // r))
        grid = (1, 1, 1, parts) if w.turned else (1, parts, 1, 1)
        share = -(--(-w.tiles // parts) // step) * step
        other = columns if w.turned else tile.width
        most = NEAR // (w.points * (w.channels + other) * BYTES[type])
        share = min(share, max(most // step, 1) * step)
        yield start.but(tile=tile, grid=grid, kc=w.channels, mc=share, nc=columns,
                        pack_a=False, pack_b=False)


def part_cycles(p):
    """Estimated cycles of the slowest part of such a plan."""
    w, lanes = p.windows, p.tile.lanes
    tiles = -(-w.tiles // p.parts)
    channels, columns = -(-w.channels // lanes), -(-p.columns // lanes)
    around = tiles * (channels + columns) * (w.points * MOVED + AROUND)
    each = MOVED if w.turned or p.b_by_rows else MOVED + TRANSPOSED
    elements = w.channels * columns * (w.points * each + prod(w.taps)) / p.parts
    size = w.points * w.channels * p.columns * BYTES[p.type]
    far = size * FAR / p.parts if size > LARGE else 0
    return UNLIKE * (tiles_of_engine(p, tiles) * w.points + around + elements + far)


def tiles_of_engine(p, tiles):
    """Cycles of the engine's tiles of one point."""
    w, tile = p.windows, p.tile
    depth, rows = (tiles, w.channels) if w.turned else (w.channels, tiles)
    blocks = -(-tiles // p.mc) if w.turned else 1
    heights = [(tile.rows, rows // tile.rows)]
    heights += [(rows % tile.rows, 1)] if w.turned else [(tile.rows, rows % tile.rows > 0)]
    widths = [(tile.vectors, p.columns // tile.width),
              (-(-p.column_tail // tile.lanes), p.column_tail > 0)]
    each, sums = STARTED
    return sum(n * m * (depth * step_cycles(r, v) + blocks * (each + sums * r * v))
               for (r, n), (v, m) in product(heights, widths) if r and n and m)
