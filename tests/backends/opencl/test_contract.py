"""Contractions: every scheme against NumPy, on integers, where both are exact."""

from itertools import product

import numpy as np
import pytest

from fgrad.backends.opencl import tiles
from fgrad.backends.opencl.contract import PREAMBLE, choose, source
from fgrad.backends.opencl.contraction import C_TYPES, Tile, local_bytes
from fgrad.backends.opencl.device import Record
from fgrad.records import replace

SIZES = [1, 2, 3, 7, 17, 64, 65, 100]
TILES = {
    "thread": Tile(16, 16, 24, 4, 8, 4),
    "group": Tile(16, 16, 8, 4, 4, 1),
    "sliced": Tile(16, 8, 4, 2, 2, 1, slices=3),
    "group of teams": Tile(16, 16, 4, 4, 4, 1, teams=3),
    "sliced by teams": Tile(8, 16, 4, 2, 4, 1, slices=2, teams=2),
    "plain": Tile(2, 4, 3, 8, 1, 1),
    "team": Tile(1, 1, 0, 1, 1, 16),
}


def named(name):
    """The scheme and the Tile of this name: what stands behind the scheme's own says how."""
    return {"scheme": name.split()[0], "tile": TILES[name]}


def loads(M, N, K, unit_a, unit_b):
    """The texts that read A and B; A lies as [k][m] if unit_a is m, B as [n][k] if unit_b is k."""
    a = f"A[b * {M * K} + " + (f"m * {K} + k]" if unit_a == "k" else f"k * {M} + m]")
    b = f"B[b * {K * N} + " + (f"k * {N} + n]" if unit_b == "n" else f"n * {K} + k]")
    return a, b


class Case:
    """One product: its operands, the text of its kernel, and what NumPy says."""

    def __init__(self, number, sizes, dtype="float32", unit_a="k", unit_b="n", scheme=None,
                 tile=None, record=None, relu=False, **more):
        batch, M, N, K = sizes
        rng = np.random.default_rng(number)
        a, b = [rng.integers(-4, 5, s).astype(dtype) for s in ((batch, M, K), (batch, K, N))]
        bias = rng.integers(-4, 5, N).astype(dtype)
        if scheme is None:
            scheme, tile = choose(record, M, N, K, batch, dtype=dtype, unit_a=unit_a, unit_b=unit_b)
        ctype = C_TYPES[dtype]
        value = f"max(x + bias[n], ({ctype})0)" if relu else "x"
        store = f"C[(b * {M} + m) * {N} + n] = {value};"
        arguments = f"__global {ctype} *restrict C, " + ", ".join(
            f"__global const {ctype} *restrict {name}" for name in ("A", "B", "bias"))
        self.label = f"{scheme} {sizes} {dtype} {unit_a}{unit_b} {tile}"
        self.name = f"product{number}"
        self.text, self.size, self.local = source(
            self.name, sizes, *loads(M, N, K, unit_a, unit_b), store, arguments, dtype=dtype,
            scheme=scheme, tile=tile, unit_a=unit_a, unit_b=unit_b, **more)
        self.room = 0
        if scheme == "sliced":
            self.room = tile.slices * batch * M * N * np.dtype(dtype).itemsize
            text, *self.then = tiles.adding(f"{self.name}Sum", sizes, store, arguments,
                                               dtype=dtype, tile=tile, **more)
            self.text += text
        self.operands = [np.ascontiguousarray(a if unit_a == "k" else a.swapaxes(1, 2)),
                         np.ascontiguousarray(b if unit_b == "n" else b.swapaxes(1, 2)), bias]
        self.want = np.matmul(a, b)
        if relu:
            self.want = np.maximum(self.want + bias, 0)


def check(device, cases):
    """Builds all cases as one program, runs them, and compares."""
    program = device.build(PREAMBLE + "".join(c.text for c in cases))
    for c in cases:
        out = device.allocate(c.want.nbytes)
        device.copy(out, device.write(np.full(c.want.shape, 99, c.want.dtype)), c.want.nbytes)
        given = [out, *[device.write(x) for x in c.operands]]
        if c.room:
            given.insert(0, device.allocate(c.room))
        if c.size[0]:
            device.launch(program.kernel(c.name, [None] * len(given)), c.size, c.local, *given)
        if c.room:
            device.launch(program.kernel(f"{c.name}Sum", [None] * len(given)), *c.then, *given)
        assert np.array_equal(device.read(out, c.want.shape, c.want.dtype), c.want), c.label


@pytest.mark.parametrize("scheme", TILES)
def test_every_scheme_multiplies_sizes_that_tiles_divide_and_do_not(device, scheme):
    sizes = [(1, 1, 1, 1), (1, 2, 3, 7), (1, 7, 17, 2), (1, 17, 3, 65), (1, 65, 64, 17),
             (1, 64, 64, 48), (2, 16, 32, 24), (3, 5, 18, 25)]
    check(device, [Case(n, s, **named(scheme)) for n, s in enumerate(sizes)])


@pytest.mark.parametrize("scheme", TILES)
def test_every_scheme_reads_transposed_operands(device, scheme):
    units = product("km", "nk", [(1, 17, 19, 23), (2, 16, 16, 8)])
    check(device, [Case(n, s, unit_a=a, unit_b=b, **named(scheme))
                   for n, (a, b, s) in enumerate(units)])


@pytest.mark.parametrize("scheme", TILES)
def test_every_scheme_takes_every_dtype_an_epilogue_and_long_indices(device, scheme):
    dtypes = ["float32", "int32", "uint32", "int64"]
    dtypes += ["float64"] * device.record.fp64
    cases = [Case(n, (2, 9, 20, 33), dtype, **named(scheme), relu=dtype != "uint32")
             for n, dtype in enumerate(dtypes)]
    cases.append(Case(len(cases), (2, 9, 20, 33), **named(scheme), wide=True))
    check(device, cases)


def test_half_precision_operands_are_summed_in_float32(device):
    if not device.record.fp16:
        pytest.skip(f"{device.record.name} has no half precision")
    a, b = np.full((2, 4), 0.5, np.float16), np.full((4, 3), 2, np.float16)
    text, size, local = source("f", (1, 2, 3, 4), "A[m * 4 + k]", "B[k * 3 + n]",
                               "C[m * 3 + n] = x;", "__global float *C, __global const half *A, "
                               "__global const half *B", dtype="float32", scheme="plain",
                               tile=TILES["plain"])
    head = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
    kernel = device.build(head + PREAMBLE + text).kernel("f", [None] * 3)
    out = device.allocate(24)
    device.launch(kernel, size, local, out, device.write(a), device.write(b))
    assert (device.read(out, (2, 3), np.float32) == 4).all()


def test_what_the_device_chooses_is_right_at_all_sizes(device):
    rng = np.random.default_rng(0)
    sizes = [(1, n, n, n) for n in SIZES] + [(1, 1, 100, 65), (1, 100, 1, 65), (1, 1, 1, 100)]
    sizes += [(1 + n % 3, *rng.choice(SIZES, 3).tolist()) for n in range(10)]
    units = [("k", "n"), ("m", "n"), ("k", "k"), ("m", "k")]
    check(device, [Case(n, s, unit_a=units[n % 4][0], unit_b=units[n % 4][1], record=device.record)
                   for n, s in enumerate(sizes)])


def test_no_terms_give_zero_and_no_outputs_launch_nothing(device):
    sizes = [(2, 3, 5, 0), (1, 0, 4, 4), (1, 4, 0, 4), (0, 3, 3, 3)]
    check(device, [Case(n, s, record=device.record) for n, s in enumerate(sizes)])


def test_long_sums_take_several_passes(device):
    sizes = [(1, 65, 33, 1000), (1, 130, 70, 513)]
    check(device, [Case(n, s, record=device.record, relu=True) for n, s in enumerate(sizes)])


def test_names_of_the_caller_do_not_collide(device):
    """a, c, i, j, l, k0, rows, As … are free: the text keeps to names with an underscore."""
    for name in TILES:
        arguments = "__global float *i, __global const float *a, __global const float *c"
        store, more = "i[m * 6 + n] = x;", {"dtype": "float32", "tile": TILES[name]}
        text, size, local = source("f", (1, 5, 6, 7), "a[m * 7 + k]", "c[k * 6 + n]", store,
                                   arguments, scheme=name.split()[0], **more)
        out, ones = device.allocate(120), device.write(np.ones(42, np.float32))
        kernels, given = [("f", size, local)], [out, ones, ones]
        if name.startswith("sliced"):
            added, *sizes = tiles.adding("g", (1, 5, 6, 7), store, arguments, **more)
            text, given = text + added, [device.allocate(120 * TILES[name].slices), *given]
            kernels.append(("g", *sizes))
        program = device.build(PREAMBLE + text)
        for name, *sizes in kernels:
            device.launch(program.kernel(name, [None] * len(given)), *sizes, *given)
        assert (device.read(out, (5, 6), np.float32) == 7).all()


# ---- the choice, on devices that are not here ----------------------------------------------------

GPU = Record(0, "p", "n", "gpu", 80, 48 << 10, 1 << 34, 1 << 32, 1024, 1, True, True, False,
             "", "", None)
CPU = replace(GPU, kind="cpu", units=8, local_memory=256 << 10, lanes=8, host_memory=True)
SHAPES = [(1, 1, 1), (1, 1, 10**6), (2, 2, 9), (1, 4096, 4096), (4096, 1, 4096), (16, 16, 16),
          (10, 784, 1024), (300, 300, 300), (1024, 1024, 1024), (4000, 5000, 17), (5, 9, 0),
          (0, 3, 3)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("record", [
    GPU, replace(GPU, max_group=64), replace(GPU, local_memory=4096), CPU,
    replace(CPU, lanes=16, local_memory=2 << 20), replace(CPU, lanes=4, local_memory=32 << 10)])
def test_choices_fit_the_device(record, dtype):
    for (M, N, K), batch in product(SHAPES, (1, 50)):
        scheme, t = choose(record, M, N, K, batch, dtype=dtype)
        size = np.dtype(dtype).itemsize
        _, total, local = source("f", (batch, M, N, K), "A[0]", "B[0]", ";", "", dtype=dtype,
                                 scheme=scheme, tile=t)
        assert local[0] <= record.max_group and total[0] % local[0] == 0
        assert t.rows % t.row_step == 0 or scheme != "thread"
        assert local_bytes(scheme, t, K, size) <= record.local_memory, (scheme, t)


def test_gpus_tile_large_products_and_team_up_for_long_sums():
    assert choose(GPU, 1024, 1024, 1024)[0] == "group"
    assert choose(GPU, 576, 64, 50_000)[0] == choose(GPU, 32, 32, 65536)[0] == "sliced"
    assert choose(GPU, 1, 1, 10**6)[0] == "team"
    assert choose(GPU, 4096, 1, 4096)[0] == "team"
    assert choose(GPU, 3, 3, 3, 1000)[0] == "plain"


def test_cpus_pack_large_products_and_read_small_ones():
    assert choose(CPU, 1024, 1024, 1024)[0] == "thread"
    assert choose(CPU, 3, 3, 3)[0] == "plain"
    assert choose(CPU, 1, 4096, 4096)[0] == "plain"


def test_indices_are_long_only_for_large_operands():
    small = source("f", (1, 100, 100, 100), "A[0]", "B[0]", ";", "", dtype="float32",
                   scheme="plain", tile=TILES["plain"])[0]
    large = source("f", (1, 1 << 17, 1 << 15, 4), "A[0]", "B[0]", ";", "", dtype="float32",
                   scheme="plain", tile=TILES["plain"])[0]
    assert "const int m = " in small and "const long m = " in large
