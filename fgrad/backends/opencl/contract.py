"""The OpenCL text of a contraction: out[b,m,n] = sum over k of A(b,m,k) · B(b,k,n), in tiles.

The operands and the result are C texts over the names `b m n k` (and `x`, the finished sum), put in
where an element is read or stored: so transposes, windows of a convolution, casts, prologues and
epilogues are the same kernel with other texts.  Every other name of the text holds an underscore.
Sizes are constants; a bound is checked only where a tile does not divide a size.  Relies on nothing
but the Record of a device, for `choose`; the OpenCL emitter relies on it.

Five schemes, one grid dimension each:

  thread   a CPU core per work-item: panels of A and B packed into the cache (local memory), then
           row_step x column_step sums in vector registers
  group    a GPU work-group per tile: panels in local memory, row_step x column_step sums for each
           work-item
  sliced   the same for few tiles of many terms: a group per slice of a tile's terms, whose sums
           a second kernel adds up
  plain    a work-item for a few sums, read directly: little work, few rows, or few columns
  team     a GPU work-group for one sum: partial sums along k, added in a tree

A few facts of PoCL shape the text: `fma`, `vload` and `vstore` are calls that are not inlined (3 to
7 times slower), so sums are written `c + a * b`, which the compiler contracts, and vectors are read
through vector pointers; and 512-bit registers want WIDE, since its compiler prefers 256 bits.  On 2
cores with 512-bit registers this gives 290–310 GFLOP/s in float32 from 512 to 1536, 0.9–1.0 of
NumPy's OpenBLAS, 0.8 where B is transposed, and 70 times one sum per work-item.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

C_TYPES = {"float32": "float", "float64": "double", "int8": "char",
           "int16": "short", "int32": "int", "int64": "long", "uint8": "uchar",
           "uint16": "ushort", "uint32": "uint", "uint64": "ulong"}

PREAMBLE = """\
#ifdef __clang__
#if __has_attribute(min_vector_width)
#define WIDE(bits) __attribute__((min_vector_width(bits)))
#endif
#endif
#ifndef WIDE
#define WIDE(bits)
#endif
"""


SLICE, SLICES = 128, 8     # terms of a slice at least; how often terms are halved at most
UNROLLED = 4               # terms of a group's tile that are written out: more take long to compile
LATENCY, SECOND = 450, 14_000    # cycles of a GPU: until a panel is there; of one more kernel


@dataclass(frozen=True)
class Tile:
    """How a scheme cuts a contraction.

    rows x columns outputs and `depth` terms at a time belong to one work-group; row_step x
    column_step sums to one register block.  `lanes` is the vector width (thread), the number of
    partial sums along k (plain), or the number of work-items (team).  In plain, rows x columns
    belong to one work-item, and row_step is the number of work-items in a group.  slices: into how
    many the terms are cut (sliced).
    """

    rows: int
    columns: int
    depth: int
    row_step: int
    column_step: int
    lanes: int
    slices: int = 1


# Tiles of work-groups on a GPU → the share of the multiply-adds' peak that they reach at best,
# measured on an H200.
GPU_TILES = {Tile(128, 128, 8, 8, 8, 1): 0.66, Tile(128, 64, 16, 8, 4, 1): 0.64,
             Tile(64, 64, 16, 8, 4, 1): 0.61, Tile(32, 32, 32, 4, 4, 1): 0.42,
             Tile(16, 16, 16, 2, 2, 1): 0.2}


@dataclass(frozen=True)
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


def source(name, sizes, load_a, load_b, store, arguments, *, dtype, scheme, tile,
           unit_a="k", unit_b="n", wide=None, store_vector=""):
    """The text of kernel `name`, its global size and its local size; PREAMBLE goes before it.

    sizes: (batch, M, N, K).  load_a, load_b: expressions over `b m k` and `b k n`; store: a
    statement over `b m n x`; arguments: the kernel's parameters.  store_vector: the same for a
    vector x of columns n, n + 1, …, used by a scheme that has vectors.  Sums have `dtype`, to which
    operands are converted as they are read.  unit_a is "k" or "m", unit_b "n" or "k".  Indices have
    32 bits unless an operand is larger than that, or `wide` says so.  A global size of 0 means:
    nothing to launch.  The kernels of `sliced`, the second of which is `adding`'s, have one more
    argument in front: room for tile.slices times as many sums as there are results.

    >>> source("f", (1, 4, 4, 4), "A[m * 4 + k]", "B[k * 4 + n]", "C[m * 4 + n] = x;",
    ...        "__global float *C, __global const float *A, __global const float *B",
    ...        dtype="float32", scheme="plain", tile=Tile(2, 4, 4, 1, 1, 1))[1:]
    ((2,), (1,))
    """
    batch, M, N, K = sizes
    if wide is None:
        wide = batch * max(M * K, K * N, M * N) >= 2**31 - 2**16
    dtype = np.dtype(dtype)
    spec = Contraction(batch, M, N, K, load_a, load_b, store, store_vector, arguments,
                       C_TYPES[dtype.name], dtype.itemsize * 8, "long" if wide else "int",
                       unit_a, unit_b)
    return SCHEMES[scheme](name, spec, tile)


# ---- pieces of text ------------------------------------------------------------------------------

def tiles(M, N, tile):
    """How many tiles lie along M and along N."""
    return -(-M // tile.rows), -(-N // tile.columns)


def corner(spec, tile, number):
    """Statements that set b, m0 and n0 from the number of the tile."""
    down, across = [max(1, count) for count in tiles(spec.M, spec.N, tile)]
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


# ---- thread: a core per work-item ----------------------------------------------------------------

def thread_source(name, spec, tile):
    """Panels packed into cache, sums in vector registers; each group is one work-item."""
    t, V = spec.ctype, tile.lanes
    passes = max(1, -(-spec.K // tile.depth))
    kept = 1 if passes == 1 else tile.rows * tile.columns // (tile.row_step * tile.column_step)
    vector = t if V == 1 else f"{t}{V}"
    bits = V * spec.bits
    text = f"""\
{header(name, spec, 1, f"WIDE({bits}) " if bits > 256 else "")} {{
  __local {vector} Av_[{-(-tile.rows * tile.depth // V)}], Bv_[{tile.columns * tile.depth // V}];
  __local {vector} Cv_[{kept * tile.row_step * tile.column_step // V}];
  __local {t} *As_ = (__local {t} *)Av_, *Bs_ = (__local {t} *)Bv_;
  {corner(spec, tile, "(int)get_group_id(0)")}
  const int rows_ = {extent(spec.M, tile.rows, "m0_")};
  const int columns_ = {extent(spec.N, tile.columns, "n0_")};
  for ({spec.index} k0_ = 0; k0_ < {max(1, spec.K)}; k0_ += {tile.depth}) {{
    const int depth_ = {extent(spec.K, tile.depth, "k0_")};
    {indented(pack_b(spec, tile), 4)}
    {indented(pack_a(spec, tile), 4)}
    for (int jn_ = 0; jn_ * {tile.column_step} < columns_; jn_++)
      for (int im_ = 0; im_ * {tile.row_step} < rows_; im_++) {{
        {indented(micro_kernel(spec, tile, vector, passes), 8)}
        {indented(thread_store(spec, tile, passes), 8)}
      }}
  }}
}}
"""
    return text, (spec.batch * prod(tiles(spec.M, spec.N, tile)),), (1,)


def pack_b(spec, tile):
    """B as panels [column panel][k][column_step]; columns past the end are 0."""
    NR = tile.column_step
    panels = f"for (int jn_ = 0; jn_ * {NR} < columns_; jn_++)"
    terms = "for (int kk_ = 0; kk_ < depth_; kk_++)"
    inside = f"for (int j_ = 0; j_ < {NR}; j_++)"
    order = (terms, panels, inside) if spec.unit_b == "n" else (panels, inside, terms)
    value = within(spec.N, NR, f"n < {spec.N}", spec.load_b)
    return f"""\
{order[0]}
  {order[1]}
    {order[2]} {{
      const {spec.index} k = k0_ + kk_, n = n0_ + jn_ * {NR} + j_;
      Bs_[(jn_ * {tile.depth} + kk_) * {NR} + j_] = {value};
    }}"""


def pack_a(spec, tile):
    """A as rows [m][k] where k is adjacent in memory, else as panels [row panel][k][row_step]."""
    MR = tile.row_step
    value = within(spec.M, MR, f"m < {spec.M}", spec.load_a)
    if spec.unit_a == "k":
        return f"""\
for (int i_ = 0; i_ < (rows_ + {MR - 1}) / {MR} * {MR}; i_++)
  for (int kk_ = 0; kk_ < depth_; kk_++) {{
    const {spec.index} m = m0_ + i_, k = k0_ + kk_;
    As_[i_ * {tile.depth} + kk_] = {value};
  }}"""
    return f"""\
for (int im_ = 0; im_ * {MR} < rows_; im_++)
  for (int kk_ = 0; kk_ < depth_; kk_++)
    for (int i_ = 0; i_ < {MR}; i_++) {{
      const {spec.index} m = m0_ + im_ * {MR} + i_, k = k0_ + kk_;
      As_[(im_ * {tile.depth} + kk_) * {MR} + i_] = {value};
    }}"""


def micro_kernel(spec, tile, vector, passes):
    """row_step x column_step sums in registers over one depth of packed panels."""
    MR, NR, V = tile.row_step, tile.column_step, tile.lanes
    across = range(NR // V)
    ahead, step = (f" * {tile.depth}", 1) if spec.unit_a == "k" else ("", MR)
    where = "Cv_" if passes == 1 else f"Cv_ + (im_ * {tile.columns // NR} + jn_) * {MR * NR // V}"
    cells = [(i, j) for i in range(MR) for j in across]
    start = (lambda at: f"({vector})(0)") if passes == 1 else \
            (lambda at: f"k0_ ? C_[{at}] : ({vector})(0)")
    lines = [f"__local {vector} *C_ = {where};",
             f"__local const {spec.ctype} *ap_ = As_ + im_ * {MR * tile.depth};",
             f"__local const {vector} *bp_ = Bv_ + jn_ * {tile.depth * NR // V};"]
    lines += [f"{vector} c_{i}_{j} = {start(i * len(across) + j)};" for i, j in cells]
    lines += [f"for (int kk_ = 0; kk_ < depth_; kk_++, ap_ += {step}, bp_ += {NR // V}) {{"]
    lines += [f"  const {vector} b_{j} = bp_[{j}];" for j in across]
    lines += [f"  {{ const {vector} a_ = ap_[{i}{ahead}]; "
              + " ".join(f"c_{i}_{j} = c_{i}_{j} + a_ * b_{j};" for j in across) + " }"
              for i in range(MR)]
    lines += ["}"]
    lines += [f"C_[{i * len(across) + j}] = c_{i}_{j};" for i, j in cells]
    return "\n".join(lines)


def thread_store(spec, tile, passes):
    """The epilogue of one register block, after the last pass over k."""
    MR, NR = tile.row_step, tile.column_step
    last = "" if passes == 1 else f"if (k0_ + {tile.depth} >= {spec.K})\n  "
    return f"""\
{last}for (int i_ = 0; i_ < {extent(spec.M, MR, f"m0_ + im_ * {MR}")}; i_++) {{
    const int width_ = {extent(spec.N, NR, f"n0_ + jn_ * {NR}")};
    int j_ = 0;
    {vector_store(spec, tile)}for (; j_ < width_; j_++) {{
      const {spec.index} m = m0_ + im_ * {MR} + i_, n = n0_ + jn_ * {NR} + j_;
      const {spec.ctype} x = ((__local const {spec.ctype} *)C_)[i_ * {NR} + j_];
      {spec.store}
    }}
  }}"""


def vector_store(spec, tile):
    """The loop over whole vectors of a row of a register block, if there is a text for them."""
    V, MR, NR = tile.lanes, tile.row_step, tile.column_step
    if not spec.store_vector or V == 1:
        return ""
    return f"""\
for (; j_ + {V} <= width_; j_ += {V}) {{
      const {spec.index} m = m0_ + im_ * {MR} + i_, n = n0_ + jn_ * {NR} + j_;
      const {spec.ctype}{V} x = C_[(i_ * {NR} + j_) / {V}];
      {spec.store_vector}
    }}
    """


# ---- group: a work-group per tile ----------------------------------------------------------------

def group_source(name, spec, tile):
    """Panels in local memory, shared by the work-items of a group; for GPUs.

    The next panels are on their way to registers while the sums take the terms of these; what a
    work-item reads of them are whole vectors.
    """
    t, TM, TN, V = spec.ctype, tile.row_step, tile.column_step, vector_of(spec, tile)
    LX, LY = tile.columns // TN, tile.rows // TM
    local, groups = LX * LY, spec.batch * prod(tiles(spec.M, spec.N, tile))
    own, number, first, end = slice_text(spec, tile, groups)
    fetched = {side: indented(fetch(spec, tile, side, local), 6) for side in "AB"}
    kept = {side: indented(keep(spec, tile, side, local), 4) for side in "AB"}
    text = f"""\
{header(name, spec, local)} {{
  __local {t} As_[{tile.depth}][{tile.rows + V}] __attribute__((aligned(16)));
  __local {t} Bs_[{tile.depth}][{tile.columns + V}] __attribute__((aligned(16)));
  const int id_ = get_local_id(0), tx_ = id_ % {LX}, ty_ = id_ / {LX};
  {own}{corner(spec, tile, number)}
  {t} c_[{TM}][{TN}], ra_[{TM}], rb_[{TN}];
  {t} pa_[{tile.rows * tile.depth // local}], pb_[{tile.columns * tile.depth // local}];
  for (int i_ = 0; i_ < {TM}; i_++)
    for (int j_ = 0; j_ < {TN}; j_++) c_[i_][j_] = 0;
  for ({spec.index} k0_ = {first}; ; k0_ += {tile.depth}) {{
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
  {indented(group_store(spec, tile, LX, LY, V), 2)}
}}
"""
    return text, (groups * slices_of(spec.K, tile) * local,), (local,)


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
    """What a work-item reads of one panel for one term."""
    item, to = ("ty_", "ra_") if side == "A" else ("tx_", "rb_")
    if V == 1:
        return (f"for (int i_ = 0; i_ < {steps}; i_++) "
                f"{to}[i_] = {side}s_[kk_][{item} + i_ * {items}];")
    lines = []
    for k in range(steps // V):
        lines += [f"const {spec.ctype}{V} {to}{k} = *(__local const {spec.ctype}{V} *)"
                  f"&{side}s_[kk_][{k * items * V} + {item} * {V}];"]
        lines += [" ".join(f"{to}[{k * V + c}] = {to}{k}.s{c};" for c in range(V))]
    return "\n".join(lines)


def slice_length(K, tile):
    """The terms of a slice, a multiple of the depth of a panel."""
    return -(-K // (tile.slices * tile.depth)) * tile.depth


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
    value = within(spec.K, tile.depth, f"k < {spec.K}", load)
    value = within(size, step, f"{axis} < {size}", value)
    return f"""\
{head}
  const {spec.index} {axis} = {axis}0_ + p_, k = k0_ + kk_;
  p{side.lower()}_[i_] = {value};
}}"""


def keep(spec, tile, side, local):
    """They write it into local memory."""
    head = panel(spec, tile, side, local)[2]
    return f"""\
{head}
  {side}s_[kk_][p_] = p{side.lower()}_[i_];
}}"""


# ---- plain and team: little work, few rows, few columns ------------------------------------------

def plain_source(name, spec, tile):
    """rows x columns sums for each work-item, `depth` terms at a time, read directly.

    With `lanes` partial sums along k everything is unrolled, and the sums become registers;
    without, the longer of rows and columns is a loop that a CPU's compiler turns into vectors.
    """
    t, R, C, L = spec.ctype, tile.rows, tile.columns, tile.lanes
    items = spec.batch * prod(tiles(spec.M, spec.N, tile))
    local = max(1, min(tile.row_step, items))
    text = f"""\
{header(name, spec, local)} {{
  const {spec.index} item_ = get_global_id(0);{beyond(items, local)}
  {corner(spec, tile, "item_")}
  const int rows_ = {extent(spec.M, R, "m0_")}, columns_ = {extent(spec.N, C, "n0_")};
  {t} c_[{R * C * L}];
  for (int i_ = 0; i_ < {R * C * L}; i_++) c_[i_] = 0;
  {indented(plain_sums(spec, tile), 2)}
  for (int i_ = 0; i_ < rows_; i_++)
    for (int j_ = 0; j_ < columns_; j_++) {{
      const {spec.index} m = m0_ + i_, n = n0_ + j_;
      {t} sum_ = c_[(i_ * {C} + j_) * {L}];
      for (int l_ = 1; l_ < {L}; l_++) sum_ += c_[(i_ * {C} + j_) * {L} + l_];
      const {t} x = sum_;
      {spec.store}
    }}
}}
"""
    return text, (-(-items // local) * local,), (local,)


def beyond(items, local):
    """Ends the work-items that only fill up the last group."""
    return f"\n  if (item_ >= {items}) return;" if items % local else ""


def plain_sums(spec, tile):
    """All terms of a work-item's sums; bounds are constant, as compilers want, in a whole tile."""
    whole = plain_loops(spec, tile, tile.rows, tile.columns)
    if spec.M % tile.rows == 0 and spec.N % tile.columns == 0:
        return whole
    return (f"if (rows_ == {tile.rows} && columns_ == {tile.columns}) {{\n  {indented(whole, 2)}\n"
            f"}} else {{\n  {indented(plain_loops(spec, tile, 'rows_', 'columns_'), 2)}\n}}")


def plain_loops(spec, tile, rows, columns):
    """The loop over k in steps of `depth`, and the terms that are left."""
    whole = spec.K // tile.depth * tile.depth
    steps = (f"for ({spec.index} k0_ = 0; k0_ < {whole}; k0_ += {tile.depth}) {{\n"
             f"  {indented(plain_terms(spec, tile, rows, columns, tile.depth), 2)}\n}}")
    if whole == spec.K:
        return steps
    left = plain_terms(spec, tile, rows, columns, spec.K - whole)
    return f"{steps}\n{{\n  const {spec.index} k0_ = {whole};\n  {indented(left, 2)}\n}}"


def plain_terms(spec, tile, rows, columns, depth):
    """c += A · B for rows x columns sums and `depth` terms."""
    unroll = "#pragma unroll\n"
    loops = [f"for (int i_ = 0; i_ < {rows}; i_++)\n", f"for (int j_ = 0; j_ < {columns}; j_++)\n"]
    if tile.rows > tile.columns and tile.lanes == 1:
        loops.reverse()
    if tile.lanes > 1 and rows == tile.rows:
        loops = [unroll + loop for loop in loops]
    lane = "l_" if tile.lanes > 1 else "0"
    return f"""\
{"".join(loops)}{unroll}for (int l_ = 0; l_ < {depth}; l_++) {{
  const {spec.index} m = m0_ + i_, n = n0_ + j_, k = k0_ + l_;
  const {spec.ctype} p_ = {spec.load_a}, q_ = {spec.load_b};
  c_[(i_ * {tile.columns} + j_) * {tile.lanes} + {lane}] += p_ * q_;
}}"""


def team_source(name, spec, tile):
    """One sum for each work-group: `lanes` work-items walk along k, and a tree adds their parts."""
    t, L, M, N = spec.ctype, tile.lanes, max(1, spec.M), max(1, spec.N)
    text = f"""\
{header(name, spec, L)} {{
  __local {t} part_[{L}];
  const int id_ = get_local_id(0);
  const {spec.index} group_ = get_group_id(0);
  const {spec.index} b = group_ / {M * N}, m = group_ / {N} % {M}, n = group_ % {N};
  {t} c_ = 0;
  for ({spec.index} k = id_; k < {spec.K}; k += {L}) {{
    const {t} p_ = {spec.load_a}, q_ = {spec.load_b};
    c_ = c_ + p_ * q_;
  }}
  part_[id_] = c_;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach_ = {L // 2}; reach_ > 0; reach_ /= 2) {{
    if (id_ < reach_) part_[id_] += part_[id_ + reach_];
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  if (id_ == 0) {{ const {t} x = part_[0]; {spec.store} }}
}}
"""
    return text, (spec.batch * spec.M * spec.N * L,), (L,)


SCHEMES = {"thread": thread_source, "group": group_source, "sliced": sliced_source,
           "plain": plain_source, "team": team_source}


# ---- the choice ----------------------------------------------------------------------------------

def choose(record, M, N, K, batch=1, *, dtype="float32", unit_a="k", unit_b="n"):
    """The scheme and Tile for these sizes on the device of this Record."""
    M, N, size = max(1, M), max(1, N), np.dtype(dtype).itemsize
    if record.kind == "cpu":
        return choose_cpu(record, M, N, K, batch, size, unit_a, unit_b)
    return choose_gpu(record, M, N, K, batch, size)


def choose_cpu(record, M, N, K, batch, size, unit_a, unit_b):
    """Packed panels where there is work to pay for them; at least two tiles for each core."""
    V = max(1, min(16, record.lanes * 4 // size))
    if min(M, N) < 4 or K < 4 or M * N * K < 2048:
        return "plain", plain_cpu(M, N, K, V, size, unit_a, unit_b)
    MR, NR = rows_in_registers(M, V), V if N <= V else 2 * V
    tile = Tile(balanced(M, 256, MR), balanced(N, 512, NR), balanced(K, 1024 // size, 1), MR, NR, V)
    room = min(record.local_memory, 1 << 20)
    while local_bytes("thread", tile, K, size) > room:
        tile = halved(tile, M, N) or replace(tile, depth=tile.depth // 2)
    while (batch * prod(tiles(M, N, tile)) < 2 * record.units
           and max(tile.rows, tile.columns) >= 128):
        tile = halved(tile, M, N)
    return "thread", tile


def halved(tile, M, N):
    """The tile with its longer side cut in two; None if it is one register block."""
    if tile.columns >= tile.rows and tile.columns > tile.column_step:
        columns = balanced(N, max(tile.column_step, tile.columns // 2), tile.column_step)
        return replace(tile, columns=min(columns, tile.columns - tile.column_step))
    if tile.rows > tile.row_step:
        rows = balanced(M, max(tile.row_step, tile.rows // 2), tile.row_step)
        return replace(tile, rows=min(rows, tile.rows - tile.row_step))
    return None


def rows_in_registers(M, V):
    """Rows of a register block two vectors wide: of those that fill the registers, what fits M."""
    most = 14 if V >= 16 else 6
    if M <= most:
        return M
    good = (8, 14, 12, 10) if V >= 16 else (6, 5, 4)
    return min(good, key=lambda r: -(-M // r) * r / M + 0.2 / r)


def balanced(size, most, step):
    """A multiple of step, at most about `most`, that cuts the size in nearly equal parts."""
    pieces = -(-size // most)
    return -(-(-(-size // pieces)) // step) * step


def plain_cpu(M, N, K, V, size, unit_a, unit_b):
    """Vectors along the index in which the larger operand is adjacent."""
    lanes = 64 // size
    if K >= 4 * lanes and unit_a == "k" and (unit_b == "k" or N < 4):
        most = 8 if V * size >= 64 else 4
        return Tile(min(M, most), 1 if M >= most else min(N, most // M), lanes, 1, 1, lanes)
    depth = max(1, min(8, K))
    if N >= M or unit_a == "k":
        return Tile(min(M, 2), min(N, max(4 * V, min(512, N // 4))), depth, 1, 1, 1)
    return Tile(min(M, max(4 * V, min(512, M // 4))), min(N, 2), depth, 1, 1, 1)


def choose_gpu(record, M, N, K, batch, size):
    """A tile per group if there are enough of them; one sum per group where k is all the work."""
    plain = "plain", Tile(1, 1, 1, min(64, record.max_group), 1, 1)
    few = batch * M * N < record.units * 256
    if K >= 256 and (few and min(M, N) < 16 or min(M, N) == 1):
        return "team", Tile(1, 1, 0, 1, 1, min(128, 1 << (record.max_group.bit_length() - 1)))
    if min(M, N) < 8 or K < 4 or M * N < 256:
        return plain
    ways = [replace(tile, slices=1 << k) for tile in GPU_TILES for k in range(SLICES)
            if tile.rows * tile.columns // (tile.row_step * tile.column_step) <= record.max_group
            and local_bytes("group", tile, K, size) <= record.local_memory
            and (k == 0 or K >> k >= SLICE)]
    if not ways:
        return plain
    tile = min(ways, key=lambda tile: gpu_cost(tile, M, N, K, batch, record.units))
    return "sliced" if tile.slices > 1 else "group", tile


def gpu_cost(tile, M, N, K, batch, units):
    """About how many cycles a group scheme takes, its launches not counted but for a second one.

    A unit multiplies and adds 128 times a cycle; for its first group it waits for the panels.
    """
    groups = batch * prod(tiles(M, N, tile)) * tile.slices
    step = tile.rows * tile.columns * tile.depth / (128 * GPU_TILES[replace(tile, slices=1)])
    steps = max(1, slice_length(K, tile) // tile.depth)
    sums = tile.slices * batch * M * N           # written, and read again, 5 a cycle
    second = SECOND + 2 * sums / (5 * units) if tile.slices > 1 else 0
    return steps * max(step + LATENCY, -(-groups // units) * step) + second


def local_bytes(scheme, tile, K, size):
    """The local memory that a scheme takes."""
    match scheme:
        case "thread":
            kept = tile.rows * tile.columns if K > tile.depth else tile.row_step * tile.column_step
            return (tile.depth * (tile.rows + tile.columns) + kept + tile.lanes) * size
        case "group" | "sliced":
            return tile.depth * (tile.rows + tile.columns + 8) * size
        case "team":
            return tile.lanes * size
    return 0
