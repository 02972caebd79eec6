"""What the schemes of a contraction have in common: its sizes and texts, its tile, pieces of text.

Relies on nothing; `contract` and `tiles` rely on it.
"""

from __future__ import annotations

from ...records import frozen


C_TYPES = {"float32": "float", "float64": "double", "int8": "char",
           "int16": "short", "int32": "int", "int64": "long", "uint8": "uchar",
           "uint16": "ushort", "uint32": "uint", "uint64": "ulong"}


@frozen
class Tile:
    """How a scheme cuts a contraction.

    rows x columns outputs and `depth` terms at a time belong to one work-group; row_step x
    column_step sums to one register block.  `lanes` is the vector width (thread), the number of
    partial sums along k (plain), or the number of work-items (team).  In plain, rows x columns
    belong to one work-item, and row_step is the number of work-items in a group.  slices: into how
    many the terms are cut (sliced).  teams: how many times the work-items of a tile a group has,
    each of them for its share of the terms (group, sliced).
    """

    rows: int
    columns: int
    depth: int
    row_step: int
    column_step: int
    lanes: int
    slices: int = 1
    teams: int = 1


@frozen
class Contraction:
    """What one kernel computes; unit_a and unit_b name the index along which memory is adjacent."""

    batch: int
    M: int
    N: int
    K: int
    load_a: str
    load_b: str
    store: str
    store_vector: str
    arguments: str
    ctype: str
    bits: int
    index: str
    unit_a: str
    unit_b: str


def grid_of(M, N, tile):
    """How many tiles lie along M and along N."""
    return -(-M // tile.rows), -(-N // tile.columns)


def corner(spec, tile, number):
    """Statements that set b, m0 and n0 from the number of the tile."""
    down, across = [max(1, count) for count in grid_of(spec.M, spec.N, tile)]
    row = f"{number} / {across} % {down}" if across > 1 else f"{number} % {down}"
    return (f"const {spec.index} b = {number} / {down * across}, "
            f"m0_ = {row if down > 1 else 0} * {tile.rows}, "
            f"n0_ = {f'{number} % {across}' if across > 1 else 0} * {tile.columns};")


def extent(size, step, start):
    """The part of a step that lies inside of the size: a constant where steps divide it."""
    return str(step) if size % step == 0 else f"min({step}, (int)({size} - ({start})))"


def within(size, step, condition, value):
    """The value, guarded only where steps do not divide the size."""
    return value if size % step == 0 else f"({condition}) ? ({value}) : 0"


def header(name, spec, local, attribute=""):
    return (f"__kernel {attribute}__attribute__((reqd_work_group_size({local}, 1, 1)))\n"
            f"void {name}({spec.arguments})")


def indented(text, by):
    return text.replace("\n", "\n" + " " * by)


def beyond(items, local):
    """Ends the work-items that only fill up the last group."""
    return f"\n  if (item_ >= {items}) return;" if items % local else ""


def local_bytes(scheme, tile, K, size):
    """The local memory that a scheme takes."""
    match scheme:
        case "thread":
            kept = tile.rows * tile.columns if K > tile.depth else tile.row_step * tile.column_step
            return (tile.depth * (tile.rows + tile.columns) + kept + tile.lanes) * size
        case "group" | "sliced":
            meet = tile.rows * tile.columns * (tile.teams > 1)
            return (tile.teams * tile.depth * (tile.rows + tile.columns + 8) + meet) * size
        case "team":
            return tile.lanes * size
    return 0
