"""The OpenCL text of a contraction: out[b,m,n] = sum over k of A(b,m,k) · B(b,k,n), in tiles.

The operands and the result are C texts over the names `b m n k` (and `x`, the finished sum), put in
where an element is read or stored: so transposes, windows of a convolution, casts, prologues and
epilogues are the same kernel with other texts.  Every other name of the text holds an underscore.
Sizes are constants; a bound is checked only where a tile does not divide a size.  Relies on
`contraction` and `tiles`, and on the Record of a device for `choose`; `product` relies on it.

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

from math import prod

import numpy as np

from ...records import replace
from . import tiles
from .contraction import (
    C_TYPES, Contraction, Tile, beyond, corner, extent, grid_of, header, indented, local_bytes,
    within)

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


def source(name, sizes, load_a, load_b, store, arguments, *, dtype, scheme, tile,
           unit_a="k", unit_b="n", wide=None, store_vector=""):
    """The text of kernel `name`, its global size and its local size; PREAMBLE goes before it.

    sizes: (batch, M, N, K).  load_a, load_b: expressions over `b m k` and `b k n`; store: a
    statement over `b m n x`; arguments: the kernel's parameters.  store_vector: the same for a
    vector x of columns n, n + 1, …, used by a scheme that has vectors.  Sums have `dtype`, to which
    operands are converted as they are read.  unit_a is "k" or "m", unit_b "n" or "k".  Indices have
    32 bits unless an operand is larger than that, or `wide` says so.  A global size of 0 means:
    nothing to launch.  The kernels of `sliced`, the second of which `tiles.adding` makes, have one
    more argument in front: room for tile.slices times as many sums as there are results.

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
    return text, (spec.batch * prod(grid_of(spec.M, spec.N, tile)),), (1,)


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


# ---- plain and team: little work, few rows, few columns ------------------------------------------

def plain_source(name, spec, tile):
    """rows x columns sums for each work-item, `depth` terms at a time, read directly.

    With `lanes` partial sums along k everything is unrolled, and the sums become registers;
    without, the longer of rows and columns is a loop that a CPU's compiler turns into vectors.
    """
    t, R, C, L = spec.ctype, tile.rows, tile.columns, tile.lanes
    items = spec.batch * prod(grid_of(spec.M, spec.N, tile))
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


SCHEMES = {"thread": thread_source, "group": tiles.group_source, "sliced": tiles.sliced_source,
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
    while (batch * prod(grid_of(M, N, tile)) < 2 * record.units
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
    tile = tiles.cheapest(record, M, N, K, batch, size)
    if tile is None:
        return plain
    return "sliced" if tile.slices > 1 else "group", tile
