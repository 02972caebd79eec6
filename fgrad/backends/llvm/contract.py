"""The contraction engine: out[b, i, j] = epilogue(Σ_k A(b, i, k) · B(b, k, j)).

`plan` turns static sizes and the forms of the operands into a Plan: the register tile, the blocks,
what is packed and what is read in place, and how the work is cut into parts.  `emit` turns a Plan
and the callbacks of a `Product` into LLVM text.  Indices are flat: b, i, j and k each stand for any
number of axes, and what an index means is the callbacks' business.  The order of the loops is that
of Goto and van de Geijn (2008): a panel of B stays in the first cache, a block of A in the second.

    plan(64, 256, 784, "float", Strided(784, 1), Strided(256, 1), out=Strided(256, 1), …)

Relies on `operands`, `tiles` and `contract_cost`; the plan emitter of this package relies on it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import gcd

from ...records import frozen, replace
from . import streams, winograd
from .contract_cost import DISPATCH, PAGE, cycles, held_first, held_second
from .dots import lanes_of_sums, shape
from .operands import Bordered, Offset, Pieced, Pulled, Strided, Strips
from .text import BYTES
from .tiles import AHEAD, ONE_STREAM, Machine, Tile, shapes

SHORT_ROWS = 48, 144, 272   # strides of packed rows of A, in elements, where they are short
WINDOW_ROWS = 10         # the most rows of a tile read through tables: of 14, 8 % slower on Zen 4
TABLE_ROWS = 8           # addresses of such a tile: each holds a register
RUN_ROWS = 10            # the same of one read by runs, which are loaded once for two steps
GAP = 1 << 18            # bytes that the rows of one place may lie apart
WINDOW_STEPS = 832       # the most steps of a block that is read through tables: sums wait less
AWAITED_ROWS = 128       # rows from which on the wait for B is short beside multiplying
SEEN_PAGES = 32          # pages in which a processor sees what is read next: a block of B has so
SEEN_ROWS = 32           # many for so many rows; for more, four times as many
BY_PAGE = 1 << 17        # the most bytes of B that a page of a row of A is multiplied by
COPIED_STEPS = 256       # the most steps of a block whose columns of A are copied
STRIP_STEPS = 80, 140    # the fewest, and the most steps of a block that is read by strips
BLOCK_ROWS = 256         # the most rows of a block that is read through a table of runs
SHARE = 2                # of the second cache, that a block of A may fill
COPIED_SHARE = 16        # where its rows are copied beside B: more would drive B out
PANELS = 2 << 20         # bytes of a block of B; a quarter where A is read again for each
PAGES = 8 << 20          # bytes of B of whose pages a processor has the addresses at hand
NEAR_PAGES = 64          # pages whose addresses it has nearest, of which it has 64 to 96
FEWEST_STEPS = 64        # of a block for whose pages there is no room there
WIDE_PANEL = 256         # bytes of a row of panels; of half that, blocks of runs are twice as deep
ADDED_ALONE = 1 << 14    # elements of a result whose depths one thread adds up
SHALLOW = 32             # depth up to which a product is as long as its result takes to be written
LARGE = 1 << 25          # multiply-adds of a part that is worth having for balance alone
IN_PLACE = 256           # rows up to which B may be read where it lies
ROW_STEPS = 8            # steps of a tile, at least, for each row of the result that it fetches
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
    def fetches_rows(self):
        """Whether tiles fetch a large result's rows one by one between their steps: what they fetch
        before all of them, what they multiply has to wait for, if the third cache is slow."""
        return (self.machine.slow_third and not (self.tables or self.dots)
                and (self.keeps_sums or not self.staged)
                and self.columns > ONE_STREAM * self.width
                and self.rows * self.columns * BYTES[self.type] >= self.machine.l2 // 2
                and min(self.kc, self.depth) >= ROW_STEPS * self.tile.rows)

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


# -- planning --------------------------------------------------------------------------------------

@lru_cache(maxsize=4096)
def plan(rows, columns, depth, type, a, b, *, machine, batch=1, out=None, epilogue=False,
         threads=1, rank=0, total=False, sums=0, windows=None, moved=0):
    """The cheapest Plan by estimated cycles of its slowest part, or that of a rank behind it.

    a: Strided, Pulled or, for more than one column, Offset, Bordered or Strips; b: Strided, Pulled
    or, for more than one column, Pieced; out: Strided or None; epilogue: whether `Product.epilogue`
    stores; total: whether `Product.total` does, of one batch; sums: how many sums over the rows of
    one batch the epilogue feeds; windows: A as Windows, if it is that too.
    Raises ValueError for a stride that is not 1 on either axis.
    """
    a, b = settled_a(a, rows, depth), settled_b(b, depth, columns)
    by_columns = total or sums
    swapped = not by_columns and columns == 1 and rows > 1 and (out is None or out.first == 1)
    if swapped:
        rows, columns, a, b = columns, rows, turned(b), turned(a)
        out = out and Strided(columns, 1)
    start = Plan(batch, rows, columns, depth, a, b, out, epilogue, machine, None, None, 0, 0, 0,
                 False, False, swapped=swapped, total=total, sums=sums, moved=moved)
    best = ranked(candidates(start, type, 1, windows), rank, threads)
    if threads > 1 and (rank or cycles(best, threads) > DISPATCH):      # parts may be worth it
        best = ranked(candidates(start, type, threads, windows), rank, threads)
    return ranked([best, *finer(best, threads)], 0, threads)


def candidates(start, type, threads, windows):
    """The plans to choose from."""
    yield from blocked(start, type, threads)
    if windows:
        yield from winograd.plans(start.but(windows=windows), type, threads)
    if not (start.total or start.sums):
        yield from dotted(start, type, threads)


def ranked(plans, rank, threads):
    """The cheapest of some plans, or that of a rank behind it, where there are so many."""
    def key(p):
        return cycles(p, threads)
    if rank == 0:
        return min(plans, key=key)
    different = sorted(dict.fromkeys(plans), key=key)
    return different[min(rank, len(different) - 1)]


def turned(operand):
    """The form of an operand whose two indices change places."""
    if isinstance(operand, Strided):
        return Strided(operand.second, operand.first)
    return replace(operand, along={"k": "k", "m": "n", "n": "m"}[operand.along])


def blocked(start, type, threads):
    """Plans with tiles of outer products."""
    machine, columns = start.machine, start.columns
    lanes = min(machine.lanes(type), 1 << max(1, (columns - 1).bit_length()))
    for tile in tiles_for(start.height, columns, type, lanes, machine):
        p = start.but(tile=tile)
        if p.tables and tile.rows > most_rows(p):
            continue
        for grid in grids(p, threads):
            yield from with_packing(p, grid)
        if threads > 1 and p.depth >= 512 * threads and not p.sums and not p.bordered:
            yield from with_packing(p, (1, 1, 1, threads))


def most_rows(p):
    """The most rows of a tile that is read through tables."""
    if p.strips:
        return p.height
    return min(WINDOW_ROWS, (RUN_ROWS if p.bordered else TABLE_ROWS) * p.run)


def dotted(start, type, threads):
    """Plans with tiles of dot products, where both operands are read along k."""
    ends = isinstance(start.a, Strided) and isinstance(start.b, Strided) and (
        start.a.second == 1 and start.b.first == 1)
    if not ends or start.depth < 2 or start.rows > 16:
        return
    machine = start.machine
    tile = Tile(type, machine.lanes(type), *shape(start.rows, start.columns, machine))
    p = start.but(tile=tile, kc=start.depth, mc=start.rows, nc=start.columns, dots=True)
    for grid in grids(p, threads):
        yield p.but(grid=grid)


def finer(best, threads):
    """The plan in more parts than threads, if they are large: a balance against other load.

    Not where the result is most of the work: its lines are best written by one thread after each
    other.
    """
    work = best.batch * best.rows * best.columns * best.depth
    for parts in (2 * threads, 4 * threads):
        large = work >= parts * LARGE and best.depth > SHALLOW
        if best.parts > 1 and large and not (best.split or best.windows):
            for grid in list(grids(best, parts))[1:]:
                yield from [best.but(grid=grid)] if best.dots else with_packing(best, grid)


def settled_a(a, rows, depth):
    if isinstance(a, (Pulled, Offset, Bordered, Strips)) or depth == 0:
        return a if depth else Strided(0, 1)
    if a.second == 1 or depth == 1:
        return Strided(a.first if rows > 1 else 0, 1)
    if a.first == 1 or rows == 1:
        return Strided(1, a.second)
    raise ValueError(f"A is strided by {a.first} and {a.second}; one of them must be 1")


def settled_b(b, depth, columns):
    if isinstance(b, (Pulled, Pieced)) or depth == 0:
        return b if depth else Strided(0, 1)
    if b.second == 1 or columns == 1:
        return Strided(b.first, 1)
    if b.first == 1 or depth == 1:
        return Strided(1, b.second)
    raise ValueError(f"B is strided by {b.first} and {b.second}; one of them must be 1")


def depth_limit(machine):
    """The most steps of a block.

    Measured best with AVX-512, and as good as any with AVX2 (Zen 3): the second cache hands a panel
    over fast enough.  Elsewhere a panel of two vectors then is two thirds of the first cache.
    """
    return 512 if machine.vector_bytes >= 32 else 384


def depth_block(depth, lanes, limit):
    """Blocks of equal depth, whole vectors, none shorter than a vector."""
    if depth <= limit + limit // 4:
        return up(max(depth, 1), 2 * lanes)
    step = 2 * lanes
    kc = up(-(-depth // -(-depth // limit)), step)
    lengths = (*range(kc, 0, -step), *range(kc + step, depth + step, step))
    return next(n for n in lengths if not 0 < depth % n < lanes)


def run_block(depth, run, limit):
    """Blocks of whole runs or strips, of about equal depth."""
    limit = max(limit // run, 1) * run
    return up(-(-depth // -(-depth // limit)), run)


def strip_limit(p):
    """The most steps of a block of strips: so many that the first cache holds a window of A and
    all of B, unless they are too few."""
    fewest, most = STRIP_STEPS
    near = p.machine.l1 // ((p.a.period + p.columns) * BYTES[p.type])
    return near if fewest <= near <= most else most


def block_depth(p, limit):
    """The depth of the blocks of a plan that has its grid."""
    if p.strips:
        return run_block(p.part_depth, p.a.steps, min(limit, strip_limit(p)))
    if p.bordered:
        return run_block(p.depth, p.a.run, limit)
    return depth_block(-(-p.depth // p.grid[3]), p.depth_lanes, limit)


def tiles_for(rows, columns, type, lanes, machine):
    """Tiles to choose from; wide ones only for products of few rows."""
    vectors = -(-columns // lanes)
    found = {(min(r, rows), min(v, vectors)) for r, v in shapes(machine) if v <= 4 or rows <= r}
    return [Tile(type, lanes, r, v) for r, v in sorted(found, reverse=True)]


def row_tiles(p):
    return -(-p.rows // p.row_step)


def column_tiles(p):
    return -(-p.columns // p.width)


def grids(p, parts):
    """Ways to cut batch, rows and columns: not at all, or into so many parts."""
    yield 1, 1, 1, 1
    if p.batch > 1 and parts > 1:
        yield min(p.batch, parts), 1, 1, 1
    for r in range(1, parts + 1):
        if parts > 1 and parts % r == 0 and r <= row_tiles(p) and parts // r <= column_tiles(p):
            yield 1, r, parts // r, 1


def with_packing(p, grid):
    """The plans cut by a grid, with their blocks, and what is packed."""
    rows = up(-(-p.rows // grid[1]), p.row_step)
    columns = up(-(-p.columns // grid[2]), p.tile.width)
    cut = p.but(grid=grid)
    for a, b in product(packs_a(p), packs_b(p, rows)):
        made = cut.but(pack_a=a, pack_b=b)
        for steps in block_steps(made):
            kc = block_depth(made, steps)
            size = kc * BYTES[p.type]
            for nc in block_columns(made, size, columns):
                blocks = made.but(kc=kc, nc=nc)
                yield blocks.but(mc=rows if p.strips else min(block_rows(blocks, size), rows))


def block_columns(p, size, columns):
    """The columns of a block of B, of so many bytes each, to choose from: where A is copied, again
    for each block, and the third cache is slow, also so few that rows of tiles are finished; all,
    where the first tiles wait for whole rows of B.
    """
    few, many = [min(max(most // size // p.tile.width, 1) * p.tile.width, columns)
                 for most in (PANELS // 4, PANELS)]
    if p.tables:
        return [many]
    if not p.pack_a:
        return [columns if p.waits_for_b else few]
    return [many, few] if few < many and p.machine.slow_third else [many]


def block_steps(p):
    """The most steps of a block to choose from: also fewer where the second cache then holds the
    next block, columns of A and rows of B that lie in one piece, or where columns of A are copied:
    fewer times, if blocks then have more columns.
    """
    most = most_steps(p)
    if p.pack_a and not (p.a_by_rows or p.tables) and p.depth > most and p.machine.slow_third:
        return sorted({most, COPIED_STEPS, COPIED_STEPS // 2})
    if p.pack_a or p.tables or p.a_by_rows or min(most, p.depth) <= COPIED_STEPS:
        return [most]
    fewer = p.machine.vector_bytes == 64 and streams.is_large(p) and streams.in_pieces(p)
    return [most, COPIED_STEPS] if fewer else [most]


def block_rows(p, size):
    """The rows of a block of A, of so many bytes each, in a plan that has its other blocks."""
    copied = p.pack_a and p.a_by_rows and p.rows_first
    most = p.machine.l2 // (COPIED_SHARE if copied else SHARE) // size
    most = min(most, BLOCK_ROWS) if p.bordered else most
    return max(p.tile.rows, most // p.tile.rows * p.tile.rows)


def most_steps(p):
    """The most steps of a block of a plan that has its grid, and knows what it packs.

    Beside few columns rows of A are read a page at a time.  Rows of B that are read far off stay in
    the second cache; where one row of tiles reads them, in pages whose addresses a processor has
    nearest; where few do, in no more than those in which it sees what is read next.  Columns of A
    are copied in blocks half as deep, which leave room to B, where that cache holds all of a part's
    columns of B so, or its result, which is added to more often.
    """
    limit = WINDOW_STEPS if p.tables else depth_limit(p.machine)
    if p.reads_pages:
        limit = max(limit, PAGE // BYTES[p.type])
    if p.bordered and 2 * p.width * BYTES[p.type] <= WIDE_PANEL:
        limit *= 2
    if p.pack_a and not p.a_by_rows:
        rows, columns = p.rows / p.grid[1], p.columns / p.grid[2]
        if min(rows, 2 * COPIED_STEPS) * columns * BYTES[p.type] <= p.machine.l2:
            limit = min(limit, COPIED_STEPS)
    if p.waits_for_b:
        pages = SEEN_PAGES * (1 if p.rows <= SEEN_ROWS else 4)
        limit = min(limit, max(pages * PAGE // p.b_apart, SEEN_PAGES))
    if p.pack_b or not p.large_b:
        return limit
    if p.rows <= p.tile.rows and p.b_apart:
        limit = min(limit, max(NEAR_PAGES * PAGE // p.b_apart, FEWEST_STEPS))
    return min(limit, held_second(p.b_apart, p.machine))


def packs_a(p):
    """Whether A may be packed, and may not be.  Rows are read in place: copies gain nothing."""
    if p.tables or p.depth == 0:
        return [False]
    if isinstance(p.a, Pulled):
        return [True]
    return [False] if p.a.second == 1 else [False, True]


def packs_b(p, rows):
    """Whether B may be packed, and may not be, for so many rows.

    Panels are copied too if many rows read them, since their lines may be split: arrays of NumPy
    begin anywhere in a line of the cache, and a vector across two lines takes two reads.
    """
    if p.depth == 0:
        return [False]
    if p.strips:
        return [True]                            # what is copied is looked at for infinities
    ragged = p.columns % p.tile.lanes > 0 and not p.machine.masks
    if not isinstance(p.b, Strided) or p.b.second != 1 or ragged:
        return [True]
    if p.b.first == p.tile.width:
        return [rows > 16 * p.tile.rows]
    return [True] * (rows > p.tile.rows) + [False] * (rows <= IN_PLACE)
