"""Estimated cycles of a Plan of the contraction engine: what `contract.plan` chooses by.

A plan is as slow as its slowest part: its tiles, its operands as they are read from memory the
first time, and what is packed.  The numbers were fitted to measurements on AVX-512 (2 MB of second
cache, a large and slow third one), and where these differ most, on Zen 3 with AVX2.  Relies on
`tiles` for a tile's steps; `contract` and `contract_plan` rely on it.
"""

from __future__ import annotations

from math import gcd

from ...aligned import LINE
from . import winograd
from .streams import LaterColumns, NextSteps, kind_of
from .text import BYTES
from .tiles import AHEAD, step_cycles

DISPATCH = 8000          # cycles that handing parts to other threads costs
PART = 300               # cycles that taking one part costs
WAIT = 0.04              # of a part: the wait for the last one, when others want the processors
TABLE = 4                # cycles of an entry of a table
PLACE = 1.5              # cycles of an entry of a table of runs, and of reading it
SEGMENT = 30             # cycles of an entry of a table of segments
NEAR = 32                # bytes a cycle that a processor reads of what its second cache holds
FAR = 3.3                # the same, of what it lacks, a vector of each row at a time
FETCHED = 4              # the same, of rows that are fetched in advance
MOST_FAR = 10            # the same, of whole rows
MANY_FAR = 7.5           # the same, of more rows than BESIDE at once
COPIED = 4.5             # the same, where it is copied,
COPIED_TWICE = 3         # and columns of A by other parts, too, if the third cache is slow
ALONG = 11.5             # the same, where tiles copy it as they read it,
SHORT_ALONG = 5          # and where their vectors have 32 bytes or less
SCATTERED = 3            # the same, through tables
DRIVEN_OUT = 64          # the same, of copied columns that B drove out of the first cache
BESIDE = 8               # rows that a processor fetches ahead well
LOST = 1.2               # cycles of a step for a line of B that the first cache lost,
LOST_OF_FEW = 5          # and where it holds no more than two rows for each that is fetched ahead
BY_COLUMNS = 2, 11       # cycles of a step for a line of A that the first, and second, cache lost,
IN_TIME = 0.5, 1         # and where it was fetched in time: see `streams`,
LATE = 2, 3              # and where the third cache is slow, as Intel's with AVX-512 are
SOONER = 1.5             # times as fast is read what the block before has fetched
MUCH = 4                 # times as many columns as rows, for which to wait for B is longer
STRIDE = 2048            # bytes from step to step up to which a processor fetches columns ahead
PACK_ROW, PACK_COLUMN = 1.6, 4.5       # cycles of a vector of A that is packed, and of a column
PACK_PANEL, PACK_SQUARE = 3, 6         # cycles of a vector of B, as it lies and transposed
ACROSS = 0.04            # cycles of each pair of a step's vectors of B that are read where they lie
PIECE = 100              # cycles of what is in one page, of a result or of what an epilogue reads
WRITTEN = 4, 12          # cycles of a tile's row in a large result, behind the one before or not,
SLOWLY = 4, 72           # and where the third cache is slow
PAGE = 4096              # bytes


def cycles(p, threads):
    """Estimated cycles of a plan: of the rounds its parts take, and of the wait for the last."""
    one = winograd.part_cycles if p.windows else dot_cycles if p.dots else block_cycles
    part = -(-p.batch // p.grid[0]) * one(p)
    if p.parts == 1:
        return part
    if p.parts > threads and p.pack_b:
        part += p.kc * p.nc * BYTES[p.type] / MOST_FAR     # no cache holds each part's own memory
    return (part + PART) * (-(-p.parts // threads) + WAIT) + DISPATCH


def dot_cycles(p):
    """One step of a tile is as slow as its multiply-adds, its loads or its stream from memory."""
    r, c = p.tile.rows, p.tile.vectors
    step = max(4 if r * c < 8 else 0, r * c / 2, (r + c) / 2, c * p.machine.vector_bytes / 32)
    tiles = -(--(-p.rows // r) // p.grid[1]) * -(--(-p.columns // c) // p.grid[2])
    return tiles * (step * -(-p.depth // p.tile.lanes) + 3 * r * c + 20)


def block_cycles(p):
    """Cycles of a part of tiles."""
    depth = -(-p.depth // p.grid[3])
    rows = share(p.height, p.tile.rows, 1 if p.strips else p.grid[1])
    windows = -(-(p.rows // p.height) // p.grid[1]) if p.strips else 1
    columns = share(p.columns, p.tile.width, p.grid[2])
    height = windows * (rows[0] * p.tile.rows + rows[1])
    width = columns[0] * p.tile.width + columns[1]
    kind = in_time(p)
    total = (windows * tile_cycles(p, rows, columns, depth)
             + a_cycles(p, height, width, depth, kind) + b_cycles(p, height, width, depth, kind))
    if p.epilogue:
        total += piece_cycles(p, height, width)
    elif not p.split:
        total += write_cycles(p, height, width)
    if p.split:
        size = p.rows * p.columns
        total += read_cycles(p, size, size, MOST_FAR) * (p.parts + 2)
    return total


def share(size, step, parts):
    """(whole steps, elements of a last shorter one) of the slowest of the parts of `size`."""
    if parts == 1:
        return size // step, size % step
    return -(--(-size // step) // parts), 0


def tile_cycles(p, rows, columns, depth):
    """Cycles of the tiles, whose operands are at hand."""
    tile, total, fetches = p.tile, 0, p.fetches_b
    for r, times_r in ((tile.rows, rows[0]), (rows[1], bool(rows[1]))):
        for w, times_c in ((tile.width, columns[0]), (columns[1], bool(columns[1]))):
            if times_r and times_c:
                v = -(-w // tile.lanes)
                steps = depth * cycles_of_step(p, r, v, fetches)
                total += times_r * times_c * (steps + end_cycles(p, r * v))
    return total


def end_cycles(p, sums):
    """Cycles before and behind the steps of a tile, in all blocks: those behind the first, which
    add to its sums, take less on Intel's processors with AVX-512, where that was measured."""
    first = 30 + 2 * sums
    return first + (p.blocks - 1) * (20 + 1.25 * sums if p.machine.slow_third else first)


def cycles_of_step(p, rows, vectors, fetches):
    """Cycles of one step of a tile: what it fetches of B, it takes as the second cache gives it."""
    if p.pack_b:
        return step_cycles(rows, vectors)
    read = vectors * p.machine.vector_bytes / NEAR if fetches else 0
    return max(step_cycles(rows, vectors) + ACROSS * vectors ** 2, read)


def a_cycles(p, height, width, depth, kind):
    """Cycles of reading a part's rows of A, through tables, into a copy, or where they lie."""
    again, elements = -(-width // p.nc), height * depth
    if p.tables:
        whole = min(p.rows * p.depth, p.a.rows + p.a.depth)
        elements = min(elements, p.a.rows // p.grid[1] + p.a.depth // p.grid[3])
        if p.strips:
            segments = height // p.height * depth / p.a.steps * SEGMENT
            return read_cycles(p, elements, whole, SCATTERED) * again + segments
        tables = (height * p.blocks + depth) * TABLE
        if p.bordered:
            tables += height * depth / p.a.run * PLACE
        return read_cycles(p, elements, whole, SCATTERED) * again + tables
    far = a_rate(p) * (SOONER if kind is NextSteps else 1)
    read = read_cycles(p, elements, p.rows * p.depth, far) * again
    if p.pack_a:
        lanes = p.row_lanes
        each = PACK_ROW / lanes if p.a_by_rows else PACK_COLUMN / p.tile.rows
        copy = max(read, elements * (pull_cycles(p.a, lanes) + each) * again)
        return copy + driven_out_cycles(p, elements, width)
    if p.a_by_rows:
        if p.tile.rows <= held_first(p.a.first * BYTES[p.type], p.machine):
            return read
        return read + elements * BYTES[p.type] / NEAR * again      # rows drive each other out
    tiles = -(-height // p.tile.rows) * -(-width // p.tile.width)
    return max(read, tiles * depth * column_cycles(p, kind))


def a_rate(p):
    """Bytes a cycle that are read of an A which the second cache lacks."""
    if not p.pack_a:
        return MOST_FAR if p.tile.rows <= BESIDE else MANY_FAR
    by_others = p.grid[2] > 1 and not p.a_by_rows and p.machine.slow_third
    return COPIED_TWICE if by_others else COPIED


def driven_out_cycles(p, elements, width):
    """Cycles that tiles beside each other wait for copied columns of A, if a panel of B drives them
    out of the first cache in between: measured where the third cache is slow."""
    size = BYTES[p.type]
    held = min(p.kc, p.depth) * (p.tile.width + p.tile.rows) * size <= p.machine.l1
    if held or p.a_by_rows or not p.machine.slow_third:
        return 0
    return elements * size * -(-width // p.tile.width) / DRIVEN_OUT


def column_cycles(p, kind):
    """Cycles that a step waits for a column of A that is read in place, with these streams.

    The next tile finds the columns of a block again where they fit into the first cache, or into
    the second: steps that are multiples of large powers of two meet in few of their sets, and where
    they are not fetched ahead, B's panel takes its part of the first cache.
    """
    step, steps, machine = p.a.second * BYTES[p.type], min(p.kc, p.depth), p.machine
    near = held_first(step, machine)
    if step > STRIDE:
        near = min(near, machine.l1 // (2 * LINE + p.tile.width * BYTES[p.type]))
    if steps <= near:
        return 0
    held = steps <= held_second(step, machine)
    if kind is NextSteps or kind is LaterColumns and p.columns <= MUCH * p.rows:
        return (LATE if machine.slow_third else IN_TIME)[not held]
    return BY_COLUMNS[not held]


def in_time(p):
    """The streams of columns, where they are measured: with vectors of 64 bytes."""
    by_columns = not p.tables and not p.a_by_rows
    return kind_of(p) if by_columns and p.machine.vector_bytes == 64 else None


def held_first(step, machine):
    """How many lines, `step` bytes apart, the first cache holds."""
    return held(step, machine.l1, machine.l1 >> 12)


def held_second(step, machine):
    """How many the second one does."""
    return held(step, machine.l2, 16)


def held(step, size, ways):
    """How many lines, `step` bytes apart, a cache of this size and associativity holds."""
    sets = size // (LINE * ways)
    return sets // gcd(sets, step // LINE if step % LINE == 0 else 1) * ways


def b_cycles(p, height, width, depth, kind):
    """Cycles of reading, or packing, a part's columns of B; where they lie, each tile's rows read
    them anew."""
    elements, vectors = width * depth, p.tile.vectors
    whole = 2 * p.columns * p.depth                  # beside A and the result
    if p.pack_b:
        vector = PACK_PANEL if p.b_by_rows else PACK_SQUARE
        copy = elements * (vector / p.tile.lanes + pull_cycles(p.b, p.tile.lanes))
        along = ALONG if p.machine.vector_bytes == 64 else SHORT_ALONG
        far = along if p.packs_along else COPIED
        far = far * SOONER if kind is NextSteps else far
        read = read_cycles(p, elements, whole, far)
        if p.machine.slow_third and not p.b_by_rows:
            return max(read, copy)           # a processor shuffles while it waits
        return read + copy
    lines = -(-width // p.tile.width) * -(-vectors * p.machine.vector_bytes // LINE)
    tiles = -(-height // p.tile.rows) - 1            # rows of tiles behind the first
    lost = lost_cycles(p) * depth * lines * tiles
    if p.fetches_b:
        far = min(ALONG, FETCHED * vectors)
        return read_cycles(p, elements, whole, far) + lost + short_row_cycles(p, width, depth)
    again = elements * tiles * BYTES[p.type] / NEAR
    return read_cycles(p, elements, whole, min(MOST_FAR, FAR * vectors)) + again + lost


def short_row_cycles(p, width, depth):
    """Cycles of reading parts of rows of B that are shorter than a page, which the second cache
    lacks: whole rows lie behind each other."""
    if not (p.waits_for_b and p.large_b and p.grid[2] > 1):
        return 0
    return PIECE * depth * max(0, 1 - width * BYTES[p.type] / PAGE)


def lost_cycles(p):
    """Cycles that a step waits for a line of B that is read where it lies, if the first cache loses
    it before the next row of tiles: with AVX-512 it is there in time.
    """
    step = p.b_apart
    held = held_first(step, p.machine)
    room = p.machine.l1 // (p.tile.vectors * p.machine.vector_bytes + LINE * (step % LINE > 0))
    if p.machine.vector_bytes == 64 or min(held, room) >= min(p.kc, p.depth):
        return 0
    return LOST_OF_FEW if held <= 2 * AHEAD else LOST


def piece_cycles(p, height, width):
    """Cycles of an epilogue's pages: whole rows lie behind each other, parts of rows in pieces."""
    size = BYTES[p.type]
    if p.rows * p.columns * size < p.machine.l2 // 4:
        return 0
    pieces = PIECE * (height * width * size / PAGE + (height if p.grid[2] > 1 else 1))
    slow = p.machine.slow_third and p.rows * p.columns * size >= p.machine.l2
    return pieces + (row_cycles(p, height, width) if slow else 0)


def write_cycles(p, height, width):
    """Cycles of writing a result that the second cache lacks, a row of a tile at a time.

    Rows of tiles fill one line after the other, panels of tiles go from page to page.
    """
    if p.rows * p.columns * BYTES[p.type] < p.machine.l2:
        return 0
    pages = height if p.grid[2] > 1 else 0
    return row_cycles(p, height, width) + PIECE * pages


def row_cycles(p, height, width):
    """Cycles of writing the rows of tiles of such a result."""
    beside, below = SLOWLY if p.machine.slow_third else WRITTEN
    pieces = height * -(-width // p.tile.width) * p.blocks
    return pieces * (beside if p.rows_first else below)


def read_cycles(p, elements, whole, far):
    """Cycles of reading so many elements, of an array of `whole`, for the first time."""
    size = BYTES[p.type]
    return elements * size / (NEAR if whole * size < p.machine.l2 else far)


def pull_cycles(operand, lanes):
    """Cycles that an element costs beyond its copy, in vectors of so many lanes."""
    return (operand.cost - 1) / lanes
