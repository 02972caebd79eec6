"""What the contraction engine is told, and what it has decided: a Product's callbacks, and a Plan.

Indices are flat: b, i, j and k each stand for any number of axes, and what an index means is the
callbacks' business.  Relies on `operands`, `tiles` and `contract_cost`; `contract`, which chooses
Plans, and `contract_emit`, which writes them out, rely on it.
"""

from __future__ import annotations

from math import gcd

from ...records import frozen
from . import winograd
from .contract_cost import PAGE, held_first
from .dots import lanes_of_sums
from .operands import Bordered, Offset, Pieced, Pulled, Strided, Strips
from .text import BYTES
from .tiles import AHEAD, Machine, Tile

SHORT_ROWS = 48, 144, 272   # strides of packed rows of A, in elements, where they are short
GAP = 1 << 18            # bytes that the rows of one place may lie apart
AWAITED_ROWS = 128       # rows from which on the wait for B is short beside multiplying
BY_PAGE = 1 << 17        # the most bytes of B that a page of a row of A is multiplied by
PAGES = 8 << 20          # bytes of B of whose pages a processor has the addresses at hand
ADDED_ALONE = 1 << 14    # elements of a result whose depths one thread adds up
FEW_ROWS = 36            # rows up to which B that the second cache lacks is not copied by tiles


class Product:
    """What a contraction is made of: the callbacks of `emit`.  Each writes code into `fn`.

    Indices are i64 operands.  A vector of a Pulled operand has the accumulators' type and starts at
    the given indices; from `count` (an operand, or None for all) its lanes are zero, and nothing
    that belongs to them is read.
    """

    def workspace(self, fn):
        """The address of `Plan.workspace` bytes, 64-byte aligned."""
        raise NotImplementedError

    def hold_pointers(self, fn):
        """Loads the addresses of what `epilogue` uses, for all that is written into fn from now on.
        """
        raise NotImplementedError

    def a_pointer(self, fn, b):
        """The address of A(b, 0, 0), when A is Strided."""
        raise NotImplementedError

    def a_element(self, fn, b, i, k):
        """A(b, i, k), when A is Windows."""
        raise NotImplementedError

    def window_places(self, fn, outer, firsts, zeros):
        """The address of the first channel of each element that a tile of an image reads, in order,
        when A is Windows; `zeros` where there is none.

        firsts: the tile's first place along each axis.
        """
        raise NotImplementedError

    def row_addresses(self, fn, b, i, count, to):
        """Writes the addresses of A(b, i, 0) and of `count` - 1 rows behind, when A is Offset."""
        raise NotImplementedError

    def step_offsets(self, fn, k, count, to):
        """Writes how far, in elements, A(b, i, k) and its `count` - 1 next are from A(b, i, 0)."""
        raise NotImplementedError

    def row_places(self, fn, b, i):
        """Where A(b, i, 0) would lie, an address as i64, and its numbers, when A is Bordered."""
        raise NotImplementedError

    def run_places(self, fn, k):
        """How far, in bytes, A(b, i, k) is from A(b, i, 0), and what k adds to the numbers."""
        raise NotImplementedError

    def strip(self, fn, b, i, k):
        """(the place of A(b, i, k + first), an address as i64, first, count), when A is Strips.

        Inside are `count` of the strip's steps, from the `first` on.
        """
        raise NotImplementedError

    def b_pointer(self, fn, b):
        """The address of B(b, 0, 0), when B is Strided."""
        raise NotImplementedError

    def b_place(self, fn, b, k, j):
        """The address of B(b, k, j), when B is Pieced."""
        raise NotImplementedError

    def out_pointer(self, fn, b):
        """The address of out(b, 0, 0), when out is Strided."""
        raise NotImplementedError

    def pack_a(self, fn, b, i, k, lanes, along, count):
        """A vector of `lanes` elements of A, when A is Pulled."""
        raise NotImplementedError

    def pack_b(self, fn, b, k, j, lanes, along, count):
        """A vector of `lanes` elements of B, when B is Pulled."""
        raise NotImplementedError

    def epilogue(self, fn, b, i, j, lanes, values, count, along, sums):
        """Store what becomes of neighbouring sums, given as vectors of `lanes`.

        They are (b, i, j), (b, i, j+1), … along "n", or (b, i, j), (b, i+1, j), … along "m", which
        occurs where there is one column.  count: how many there are (a constant), None if all
        lanes of all vectors.  sums: vector by vector the sums over the rows so far, to be returned
        with those of this row added; idle lanes may hold anything.
        """
        raise NotImplementedError

    def sums(self, fn, j, lanes, values, count):
        """Store what becomes of a vector of each sum over the rows, of columns from j on."""
        raise NotImplementedError

    def total(self, fn, j, lanes, value, count):
        """Store what becomes of a vector of Σ_k B(0, k, j), of which `count` (None: all) count."""
        raise NotImplementedError


@frozen
class Plan:
    """How a contraction is computed.  Everything `emit` needs, and nothing it decides.

    grid: parts over batch, rows, columns and depth.  kc, mc, nc: blocks.
    """
    batch: int
    rows: int
    columns: int
    depth: int
    a: Strided | Pulled | Offset | Bordered | Strips
    b: Strided | Pulled | Pieced
    out: Strided | None
    epilogue: bool
    machine: Machine
    tile: Tile
    grid: tuple
    kc: int
    mc: int
    nc: int
    pack_a: bool
    pack_b: bool
    dots: bool = False           # the tile is rows × vectors dot products along k
    swapped: bool = False        # a and b, rows and columns have changed places
    total: bool = False          # B's columns are summed too, as by one more row of A, of ones
    sums: int = 0                # sums over the rows, which the epilogue feeds
    turns: int = 1               # parts behind each other that one thread runs, in the same memory
    windows: winograd.Windows = None       # A, if it is brought to points
    moved: int = 0               # bytes that the epilogue reads and writes

    def but(self, **fields):
        """The plan with other values of some fields, as `replace` gives it in ten times the time.

        A product has dozens of plans to choose from.
        """
        made = object.__new__(Plan)
        vars(made).update(vars(self), **fields)
        return made

    @property
    def type(self):
        return self.tile.type

    @property
    def parts(self):
        b, r, c, k = self.grid
        return b * r * c * k

    @property
    def width(self):
        """Columns of a tile."""
        return self.tile.vectors if self.dots else self.tile.width

    @property
    def sum_lanes(self):
        """Lanes of the vectors that sums are stored as."""
        return lanes_of_sums(self.type) if self.dots else self.tile.lanes

    @property
    def row_tail(self):
        return self.height % self.tile.rows

    @property
    def height(self):
        """Rows whose tiles are cut from their first one on: a window's, or all."""
        return self.a.period if self.strips else self.rows

    @property
    def row_step(self):
        """The rows that parts are cut by."""
        return self.a.period if self.strips else self.tile.rows

    @property
    def column_tail(self):
        return self.columns % self.width

    @property
    def tables(self):
        """Whether A is read through tables."""
        return isinstance(self.a, (Offset, Bordered, Strips))

    @property
    def bordered(self):
        """Whether A is read through a table of runs."""
        return isinstance(self.a, Bordered)

    @property
    def strips(self):
        """Whether A is read through a table of segments."""
        return isinstance(self.a, Strips)

    @property
    def run(self):
        """Of how many rows of a tile that is read through tables one address is enough."""
        most = gcd(self.tile.rows, self.a.period)
        if not self.bordered:
            return most
        return max(n for n in range(1, most + 1) if most % n == 0 and self.gap(n) <= GAP)

    def gap(self, rows):
        """How many bytes the first and the last of so many rows of one place lie apart."""
        return (rows - 1) * self.a.step * BYTES[self.type]

    @property
    def a_by_rows(self):
        return self.a.along == "k" if isinstance(self.a, Pulled) else self.a.second == 1

    @property
    def b_by_rows(self):
        return self.b.second == 1 if isinstance(self.b, Strided) else self.b.along == "n"

    @property
    def row_lanes(self):
        """Lanes of the vectors that rows of A are copied in: whole ones, whatever a tile has."""
        return self.machine.lanes(self.type)

    @property
    def depth_lanes(self):
        """Steps that blocks and parts of the depth are multiples of twice."""
        return self.row_lanes if self.pack_a else self.tile.lanes

    @property
    def a_stride(self):
        """The row stride of a packed block of A: one of few, so that contractions share kernels,
        not a power of two, and no longer than rows of few steps need, which then lie in few pages.
        """
        longest = depth_limit(self.machine) * 5 // 4 + self.machine.vector_bytes // 2
        return next((n for n in SHORT_ROWS if self.kc <= n), longest)

    @property
    def part_rows(self):
        """The most rows a part has."""
        return up(-(-self.rows // self.grid[1]), self.row_step)

    @property
    def part_depth(self):
        """The depth of every part but the last."""
        step = self.a.steps if self.strips else 2 * self.depth_lanes
        return up(-(-self.depth // self.grid[3]), step) if self.split else self.depth

    @property
    def blocks(self):
        """How many blocks the depth of one part has."""
        return max(1, -(-self.part_depth // self.kc))

    @property
    def odd(self):
        """Whether a block may have an odd depth: the last one, or any of whole runs or strips."""
        inner = [self.part_depth] * self.split + [self.kc] * (self.blocks > 1)
        return any(n % 2 for n in (self.depth, *inner))

    @property
    def least_depth(self):
        """The least depth of a block."""
        parts = [self.part_depth, self.depth - (self.grid[3] - 1) * self.part_depth]
        return min((p - 1) % self.kc + 1 for p in parts) if self.depth else 0

    @property
    def split(self):
        """Whether the depth is cut among parts: a second phase then adds up."""
        return self.grid[3] > 1

    @property
    def sum_parts(self):
        """Into how many parts adding up the depths is cut: one where the result is small."""
        large = self.split and self.rows * self.columns >= ADDED_ALONE
        return min(self.grid[3], self.rows) if large else 1

    @property
    def staged(self):
        """Whether sums go to memory of our own before a row at a time is stored."""
        scalar_tail = self.column_tail % self.tile.lanes > 0 and not self.machine.masks
        scalar_tail = scalar_tail and not self.dots
        return self.epilogue or self.out is None or self.split or scalar_tail

    @property
    def keeps_sums(self):
        """Whether sums wait in memory of our own for the next block of the depth."""
        return self.staged and self.blocks > 1 and not self.split

    @property
    def fetches_b(self):
        """Whether tiles fetch the rows of B in advance: where they read them where they lie, unless
        the first cache holds all, or loses what it has fetched."""
        if self.pack_b or self.b_size <= 2 * self.machine.l1:
            return False
        held = held_first(self.b_apart, self.machine)
        return held >= 2 * AHEAD or self.large_b and held > AHEAD

    @property
    def waits_for_b(self):
        """Whether the first of few rows of tiles waits for B, which it reads where it lies, far
        away: on a processor whose third cache is slow.
        """
        return (self.fetches_b and not self.tables and self.machine.slow_third and self.b.first > 0
                and self.rows < AWAITED_ROWS and self.b_size > self.machine.l2 // 2)

    @property
    def reads_pages(self):
        """Is a row of A read page by page, since the third cache is slow and B has few columns?"""
        return (self.machine.slow_third and not (self.pack_a or self.tables) and self.a_by_rows
                and self.columns * PAGE <= BY_PAGE)

    @property
    def packs_along(self):
        """Whether the first tiles pack B as they read it: for many rows, where it is far away."""
        rows = self.rows / self.grid[1]
        return (self.pack_b and isinstance(self.b, Strided) and self.b.second == 1
                and not (self.tables or self.total or self.single)
                and self.b_size <= PAGES and self.block_size <= self.machine.l2
                and rows >= 2 * self.tile.rows and (rows > FEW_ROWS or not self.large_b))

    @property
    def b_apart(self):
        """Bytes from row to row of a B that is read where it lies."""
        return self.b.first * BYTES[self.type]

    @property
    def b_size(self):
        """Bytes of B."""
        return self.columns * self.depth * BYTES[self.type]

    @property
    def block_size(self):
        """Bytes of a block of B."""
        return min(self.kc, self.depth) * self.nc * BYTES[self.type]

    @property
    def large_b(self):
        """Whether the second cache does not hold B."""
        return self.b_size > self.machine.l2

    @property
    def rows_first(self):
        """Whether a row of tiles is finished before the next one: B stays in the second cache, and
        the result is written page by page."""
        return self.block_size <= self.machine.l2 // 2

    @property
    def single(self):
        """Whether a product is one tile, whose steps are then written in place."""
        return (self.rows <= self.tile.rows and self.columns <= self.tile.width
                and self.blocks == 1
                and not (self.split or self.dots or self.tables or self.total or self.sums))


@frozen
class Emitted:
    """The text of a contraction.

    functions: name → text; equal names are equal functions.  phases: (function, parts) to run one
    after the other, each void (ptr %buffers, i64 %part).  workspace: bytes.
    """
    functions: dict
    phases: tuple
    workspace: int


def up(n, step):
    return -(-n // step) * step


def depth_limit(machine):
    """The most steps of a block.

    Measured best with AVX-512, and as good as any with AVX2 (Zen 3): the second cache hands a panel
    over fast enough.  Elsewhere a panel of two vectors then is two thirds of the first cache.
    """
    return 512 if machine.vector_bytes >= 32 else 384
