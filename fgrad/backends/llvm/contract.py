"""The contraction engine: out[b, i, j] = epilogue(Σ_k A(b, i, k) · B(b, k, j)).

`plan` turns static sizes and the forms of the operands into a Plan: the register tile, the blocks,
what is packed and what is read in place, and how the work is cut into parts.  `contract_emit` turns
it and the callbacks of a Product into LLVM text.  The order of the loops is that of Goto and van de
Geijn (2008): a panel of B stays in the first cache, a block of A in the second.

    plan(64, 256, 784, "float", Strided(784, 1), Strided(256, 1), out=Strided(256, 1), …)

Relies on `contract_plan` for what a Plan is, on `contract_cost` for what it costs, on `operands`
and `tiles`; `product` relies on it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from ...records import replace
from . import streams, winograd
from .contract_cost import DISPATCH, PAGE, cycles, held_second
from .contract_plan import Plan, depth_limit, up
from .dots import shape
from .operands import Bordered, Offset, Pieced, Pulled, Strided, Strips
from .text import BYTES
from .tiles import Tile, shapes

WINDOW_ROWS = 10         # the most rows of a tile read through tables: of 14, 8 % slower on Zen 4
TABLE_ROWS = 8           # addresses of such a tile: each holds a register
RUN_ROWS = 10            # the same of one read by runs, which are loaded once for two steps
WINDOW_STEPS = 832       # the most steps of a block that is read through tables: sums wait less
SEEN_PAGES = 32          # pages in which a processor sees what is read next: a block of B has so
SEEN_ROWS = 32           # many for so many rows; for more, four times as many
COPIED_STEPS = 256       # the most steps of a block whose columns of A are copied
STRIP_STEPS = 80, 140    # the fewest, and the most steps of a block that is read by strips
BLOCK_ROWS = 256         # the most rows of a block that is read through a table of runs
SHARE = 2                # of the second cache, that a block of A may fill
COPIED_SHARE = 16        # where its rows are copied beside B: more would drive B out
PANELS = 2 << 20         # bytes of a block of B; a quarter where A is read again for each
NEAR_PAGES = 64          # pages whose addresses a processor has nearest, which has 64 to 96
FEWEST_STEPS = 64        # of a block for whose pages there is no room there
WIDE_PANEL = 256         # bytes of a row of panels; of half that, blocks of runs are twice as deep
SHALLOW = 32             # depth up to which a product is as long as its result takes to be written
LARGE = 1 << 25          # multiply-adds of a part that is worth having for balance alone
IN_PLACE = 256           # rows up to which B may be read where it lies


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
