"""The schemes of a GPU that have tiles: a work-group's share of a contraction, in local memory.

    group    a work-group per tile: its terms in panels, row_step x column_step sums for each item
    sliced   the same with the terms cut in slices; `adding` makes the kernel that adds their sums

Relies on `contraction`; `contract`, which chooses among these and others, relies on it.
"""

from __future__ import annotations

import functools
from math import prod

import numpy as np

from ...records import replace
from .contraction import (
    C_TYPES, Tile, beyond, corner, grid_of, header, indented, local_bytes, within)

SLICE, SLICES = 128, 8     # terms of a slice at least; how often terms are halved at most
TEAMS = 1, 2, 4, 8         # teams of a group
UNROLLED = 4               # terms of a group's tile that are written out: more take long to compile

# What a GPU does, in cycles, fitted to 300 products on an H200, within 14 % of what each took.
REACHED = {(8, 8): 0.65, (8, 4): 0.55, (4, 4): 0.38, (2, 2): 0.19}     # of the multiply-adds' peak,
                           # by the sums of a work-item
PEAK = 128                 # multiply-adds of a unit
ALONE = 0.75               # of a work-item that shares its unit with few others
LATENCY = 90               # until a panel is there, as far as nothing hides it
MEETING = 48               # of one more team, for each sum of a work-item
SECOND = 13_000            # of one more kernel
GPU_TILES = (Tile(128, 128, 8, 8, 8, 1), Tile(128, 64, 16, 8, 4, 1), Tile(64, 64, 16, 8, 4, 1),
             Tile(32, 64, 16, 4, 4, 1), Tile(32, 32, 16, 4, 4, 1), Tile(16, 32, 16, 4, 4, 1),
             Tile(16, 16, 16, 2, 2, 1))


def group_source(name, spec, tile):
    """Panels in local memory, shared by the work-items of a team; for GPUs.

    Each team of a group has panels of its own, for its share of the terms.  The next panels are on
    their way to registers while the sums take the terms of these; what a work-item reads of them
    are whole vectors.
    """
    t, TM, TN, V = spec.ctype, tile.row_step, tile.column_step, vector_of(spec, tile)
    LX, LY = tile.columns // TN, tile.rows // TM
    local, groups = LX * LY, spec.batch * prod(grid_of(spec.M, spec.N, tile))
    own, number, first, end = slice_text(spec, tile, groups)
    size, panels = local * tile.teams, f"{tile.teams}][{tile.depth}"
    fetched = {side: indented(fetch(spec, tile, side, local), 6) for side in "AB"}
    kept = {side: indented(keep(spec, tile, side, local), 4) for side in "AB"}
    text = f"""\
{header(name, spec, size)} {{
  __local {t} As_[{panels}][{tile.rows + V}] __attribute__((aligned(16)));
  __local {t} Bs_[{panels}][{tile.columns + V}] __attribute__((aligned(16)));
  const int id_ = get_local_id(0) % {local}, team_ = get_local_id(0) / {local};
  const int tx_ = id_ % {LX}, ty_ = id_ / {LX};
  {own}{corner(spec, tile, number)}
  {t} c_[{TM}][{TN}], ra_[{TM}], rb_[{TN}];
  {t} pa_[{tile.rows * tile.depth // local}], pb_[{tile.columns * tile.depth // local}];
  for (int i_ = 0; i_ < {TM}; i_++)
    for (int j_ = 0; j_ < {TN}; j_++) c_[i_][j_] = 0;
  for ({spec.index} k0_ = {first}; ; k0_ += {tile.depth * tile.teams}) {{
    if (k0_ < {end}) {{
      {fetched["A"]}
      {fetched["B"]}
    }}
    if (k0_ > {first}) {{
      {indented(group_terms(spec, tile, LX, LY, V), 6)}
      barrier(CLK_LOCAL_MEM_FENCE);
    }}
    if (k0_ >= {end}) break;
    {kept["A"]}
    {kept["B"]}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  {total(spec, tile, local)}{indented(group_store(spec, tile, LX, LY, V), 2)}
}}
"""
    return text, (groups * slices_of(spec.K, tile) * size,), (size,)


def total(spec, tile, local):
    """The sums of all teams become those of the first, one team's after the other's."""
    if tile.teams == 1:
        return ""
    each = f"""\
#pragma unroll
      for (int i_ = 0; i_ < {tile.row_step}; i_++)
        #pragma unroll
        for (int j_ = 0; j_ < {tile.column_step}; j_++)"""
    place = f"meet_[(i_ * {tile.column_step} + j_) * {local} + id_]"
    return f"""\
__local {spec.ctype} meet_[{tile.rows * tile.columns}];
  for (int t_ = 1; t_ < {tile.teams}; t_++) {{
    if (team_ == t_) {{
      {each} {place} = c_[i_][j_];
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
    if (team_ == 0) {{
      {each} c_[i_][j_] += {place};
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  if (team_) return;
  """


def slice_text(spec, tile, groups):
    """What a group says of its slice, the number of its tile, its first term and its last one."""
    if slices_of(spec.K, tile) == 1:
        return "", "(int)get_group_id(0)", 0, spec.K
    length = slice_length(spec.K, tile)
    own = (f"const {spec.index} s_ = get_group_id(0) / {groups}, "
           f"end_ = min(({spec.index}){spec.K}, (s_ + 1) * {length});\n  ")
    return own, f"(int)get_group_id(0) % {groups}", f"s_ * {length}", "end_"


def group_terms(spec, tile, LX, LY, V):
    """The terms of one pair of panels, added to a work-item's sums."""
    return f"""\
#pragma unroll {UNROLLED}
for (int kk_ = 0; kk_ < {tile.depth}; kk_++) {{
  {indented(vectors(spec, "A", tile.row_step, LY, V), 2)}
  {indented(vectors(spec, "B", tile.column_step, LX, V), 2)}
  #pragma unroll
  for (int i_ = 0; i_ < {tile.row_step}; i_++)
    #pragma unroll
    for (int j_ = 0; j_ < {tile.column_step}; j_++)
      c_[i_][j_] = c_[i_][j_] + ra_[i_] * rb_[j_];
}}"""


def group_store(spec, tile, LX, LY, V):
    """The epilogue of a work-item's sums."""
    inside = " && ".join([f"m < {spec.M}"] * (spec.M % tile.rows != 0)
                         + [f"n < {spec.N}"] * (spec.N % tile.columns != 0)) or "1"
    return f"""\
for (int i_ = 0; i_ < {tile.row_step}; i_++)
  for (int j_ = 0; j_ < {tile.column_step}; j_++) {{
    const {spec.index} m = m0_ + {place("i_", "ty_", LY, V)};
    const {spec.index} n = n0_ + {place("j_", "tx_", LX, V)};
    const {spec.ctype} x = c_[i_][j_];
    if ({inside}) {{ {spec.store} }}
  }}"""


def vector_of(spec, tile):
    """Elements of the vectors in which panels are read: 16 bytes, where steps allow it."""
    lanes = min(4, 128 // spec.bits)
    while tile.row_step % lanes or tile.column_step % lanes:
        lanes //= 2
    return lanes


def place(step, item, items, V):
    """Where in its tile a work-item's row or column number `step` lies."""
    if V == 1:
        return f"{item} + {step} * {items}"
    return f"{step} / {V} * {items * V} + {item} * {V} + {step} % {V}"


def vectors(spec, side, steps, items, V):
    """What a work-item reads of its team's panel for one term."""
    item, to = ("ty_", "ra_") if side == "A" else ("tx_", "rb_")
    if V == 1:
        return (f"for (int i_ = 0; i_ < {steps}; i_++) "
                f"{to}[i_] = {side}s_[team_][kk_][{item} + i_ * {items}];")
    lines = []
    for k in range(steps // V):
        lines += [f"const {spec.ctype}{V} {to}{k} = *(__local const {spec.ctype}{V} *)"
                  f"&{side}s_[team_][kk_][{k * items * V} + {item} * {V}];"]
        lines += [" ".join(f"{to}[{k * V + c}] = {to}{k}.s{c};" for c in range(V))]
    return "\n".join(lines)


def slice_length(K, tile):
    """The terms of a slice, a multiple of what the panels of a group hold."""
    depth = tile.depth * tile.teams
    return -(-K // (tile.slices * depth)) * depth


def slices_of(K, tile):
    """How many slices there are: no empty ones."""
    return max(1, -(-K // slice_length(K, tile))) if K else 1


def sliced_source(name, spec, tile):
    """The kernel of the slices' sums, for which the arguments begin with room."""
    s = "s_" if slices_of(spec.K, tile) > 1 else "0"
    at = f"(({s} * {max(1, spec.batch)} + b) * {spec.M} + m) * {spec.N} + n"
    return group_source(name, replace(
        spec, store=f"sums_[{at}] = x;",
        arguments=f"__global {spec.ctype} *restrict sums_, {spec.arguments}"), tile)


def adding(name, sizes, store, arguments, *, dtype, tile, wide=False):
    """The text and the sizes, as of `source`, of the kernel that adds up the sums of slices."""
    batch, M, N, K = sizes
    t, integer, items = C_TYPES[np.dtype(dtype).name], "long" if wide else "int", batch * M * N
    local = max(1, min(64, items))
    text = f"""\
__kernel __attribute__((reqd_work_group_size({local}, 1, 1)))
void {name}(__global const {t} *restrict sums_, {arguments}) {{
  const {integer} item_ = get_global_id(0);{beyond(items, local)}
  const {integer} b = item_ / {max(1, M * N)}, m = item_ / {max(1, N)} % {max(1, M)},
    n = item_ % {max(1, N)};
  {t} sum_ = 0;
  #pragma unroll 8
  for (int s_ = 0; s_ < {slices_of(K, tile)}; s_++) sum_ += sums_[({integer})s_ * {items} + item_];
  const {t} x = sum_;
  {store}
}}
"""
    return text, (-(-items // local) * local,), (local,)


def panel(spec, tile, side, local):
    """The head of a loop over the elements of a panel that a work-item brings, with their places.

    Neighbouring work-items bring what lies side by side.
    """
    axis, step, unit = ("m", tile.rows, spec.unit_a) if side == "A" else \
                       ("n", tile.columns, spec.unit_b)
    fast, slow = ("kk_", "p_") if unit == "k" else ("p_", "kk_")
    width = tile.depth if unit == "k" else step
    return axis, step, f"""\
#pragma unroll
for (int i_ = 0; i_ < {step * tile.depth // local}; i_++) {{
  const int e_ = id_ + i_ * {local}, {fast} = e_ % {width}, {slow} = e_ / {width};"""


def fetch(spec, tile, side, local):
    """All work-items of the group read one panel into registers."""
    axis, step, head = panel(spec, tile, side, local)
    size, load = (spec.M, spec.load_a) if side == "A" else (spec.N, spec.load_b)
    value = within(spec.K, tile.depth * tile.teams, f"k < {spec.K}", load)
    value = within(size, step, f"{axis} < {size}", value)
    first = f"team_ * {tile.depth} + " if tile.teams > 1 else ""
    return f"""\
{head}
  const {spec.index} {axis} = {axis}0_ + p_, k = k0_ + {first}kk_;
  p{side.lower()}_[i_] = {value};
}}"""


def keep(spec, tile, side, local):
    """They write it into local memory."""
    head = panel(spec, tile, side, local)[2]
    return f"""\
{head}
  {side}s_[team_][kk_][p_] = p{side.lower()}_[i_];
}}"""


# ---- the choice ----------------------------------------------------------------------------------

def cheapest(record, M, N, K, batch, size):
    """The Tile, its slices and teams, that takes the least time on a device; None if none fits."""
    fitting = [tile for tile in every_way()
               if items_of(tile) * tile.teams <= record.max_group
               and local_bytes("group", tile, K, size) <= record.local_memory
               and (tile.slices == 1 or K // tile.slices >= SLICE)
               and (tile.teams == 1 or K // (tile.slices * tile.teams) >= tile.depth)]
    return min(fitting, key=lambda tile: cost(tile, M, N, K, batch, record.units), default=None)


@functools.cache
def every_way():
    """All tiles of a GPU, with all numbers of slices and teams."""
    return [replace(tile, slices=1 << k, teams=teams)
            for tile in GPU_TILES for k in range(SLICES) for teams in TEAMS]


def items_of(tile):
    """The work-items of a team."""
    return tile.rows * tile.columns // (tile.row_step * tile.column_step)


def cost(tile, M, N, K, batch, units):
    """About how many cycles a group scheme takes, its launches not counted but for a second one.

    Either a unit's multiply-adds take them, all its groups' together, or each team's panels, one
    behind the other.
    """
    step = tile.rows * tile.columns * tile.depth / REACHED[tile.row_step, tile.column_step]
    steps = max(1, slice_length(K, tile) // (tile.depth * tile.teams))
    groups = batch * prod(grid_of(M, N, tile)) * tile.slices
    together = -(-groups // units) * tile.teams * step / PEAK
    alone = LATENCY + step / min(PEAK, ALONE * items_of(tile))
    meeting = MEETING * (tile.teams - 1) * tile.row_step * tile.column_step
    sums = tile.slices * batch * M * N           # written, and read again, 5 a cycle
    second = SECOND + 2 * sums / (5 * units) if tile.slices > 1 else 0
    return steps * max(together, alone) + meeting + second
