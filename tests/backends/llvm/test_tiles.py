"""Register tiles, transposes and dot products: shapes fit the registers, kernels compute what they
say."""

import ctypes
import re

import numpy as np
import pytest

from fgrad.backends.llvm import host, target
from fgrad.backends.llvm.dots import Dots, lanes_of_sums
from fgrad.backends.llvm.packing import Transpose, transposed
from fgrad.backends.llvm.text import Function
from fgrad.backends.llvm.tiles import Kernel, Machine, Rows, Tile, shapes
from tests.backends.llvm.test_contract import whole

llvm = pytest.importorskip("llvmlite.binding")
HOST = Machine(host.HOST.vector_bytes, host.HOST.registers)
TARGETS = {
    "sse": ("x86_64-unknown-linux-gnu", "", Machine(16, 16)),
    "avx2": ("x86_64-unknown-linux-gnu", "+avx2,+fma", Machine(32, 16)),
    "avx512": ("x86_64-unknown-linux-gnu", "+avx512f,+avx512vl,+fma", Machine(64, 32)),
    "neon": ("aarch64-unknown-linux-gnu", "", Machine(16, 32)),
}
SPILL = re.compile(r"[xyz]mm\d+, -?\d*\(%rsp\)|str\s+q\d+, \[sp")


def public(kernel):
    """The kernel's text, visible outside its module."""
    return whole([str(kernel.text()).replace("define internal", "define")])


def compiled(kernel, *arguments):
    """The kernel as a ctypes function; "p" is a pointer, "i" an i64, "b" an i1."""
    library = target.load(target.compile_text(public(kernel)))
    kinds = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "b": ctypes.c_bool}
    function = ctypes.CFUNCTYPE(None, *(kinds[a] for a in arguments))(library.address(kernel.name))
    function.library = library
    return function


def assembly(text, triple, features):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        machine = llvm.Target.from_triple(triple).create_target_machine(features=features)
    except RuntimeError as error:
        pytest.skip(f"this LLVM has no {triple}: {error}")
    return machine.emit_assembly(llvm.parse_assembly(text))


@pytest.mark.parametrize("name", TARGETS)
def test_wide_tiles_stay_in_registers_on_every_machine(name):
    triple, features, machine = TARGETS[name]
    lanes = machine.vector_bytes // 4
    for rows, vectors in [shape for shape in shapes(machine) if shape[1] > 1]:
        tile = Tile("float", lanes, rows, vectors)
        kernel = Kernel(tile, Rows.of(tile, 784)[0])
        text = public(kernel).replace(host.HOST.triple, triple)
        assert not SPILL.search(assembly(text, triple, features)), (rows, vectors)


@pytest.mark.parametrize("type, dtype", [("float", "f4"), ("double", "f8"), ("i32", "i4")])
@pytest.mark.parametrize("rows, vectors, depth", [(1, 1, 1), (3, 2, 5), (6, 2, 8), (9, 1, 4)])
def test_a_kernel_computes_its_tile_and_touches_nothing_else(type, dtype, rows, vectors, depth):
    rng = np.random.default_rng(depth)
    lanes = HOST.vector_bytes // np.dtype(dtype).itemsize
    width, valid = lanes * vectors, lanes * vectors - 1
    a = rng.integers(-9, 9, (rows, depth)).astype(dtype)
    b = rng.integers(-9, 9, (depth, width)).astype(dtype)
    c = np.full((rows + 1, width + 3), 5, dtype)
    tile = Tile(type, lanes, rows, vectors)
    form, stride = Rows.of(tile, depth)
    count = valid - (vectors - 1) * lanes if HOST.masks else None
    kernel = Kernel(tile, form, count, count, adds=True, odd=depth % 2 == 1)
    run = compiled(kernel, *"ipipipib")
    run(depth, a.ctypes.data, stride, b.ctypes.data, width, c.ctypes.data, width + 3, True)
    expected = np.full_like(c, 5)
    columns = valid if HOST.masks else width
    expected[:rows, :columns] += (a @ b)[:, :columns]
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("type, dtype", [("float", "f4"), ("double", "f8"), ("i16", "i2"),
                                         ("i8", "i1")])
@pytest.mark.parametrize("bytes", [16, 32, 64])
def test_some_elements_of_a_vector_are_stored_and_no_others(type, dtype, bytes):
    lanes = bytes // np.dtype(dtype).itemsize
    start, end = np.arange(1, lanes + 1, dtype=dtype), np.empty(lanes, dtype)
    for count in {*range(1, min(lanes, 9)), lanes // 2 + 1, lanes - 1, lanes}:
        fn = Function("some", "ptr %from, ptr %to")
        fn.vector_store(type, lanes, fn.vector_load(type, lanes, "%from"), "%to", count)
        library = target.load(target.compile_text(whole([str(fn.ret())])))
        end.fill(0)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address("some"))(
            start.ctypes.data, end.ctypes.data)
        np.testing.assert_array_equal(end, np.where(np.arange(lanes) < count, start, 0))


def test_ragged_tiles_of_avx2_store_without_masks():
    """A masked store takes AMD's processors 12 cycles and more: rows of 10 took four times as long.
    """
    triple, features, _ = TARGETS["avx2"]
    for type, lanes in (("float", 8), ("double", 4)):
        for count in range(1, lanes):
            tile = Tile(type, lanes, 4, 2)
            text = public(Kernel(tile, Rows.of(tile, 784)[0], None, count, adds=True))
            code = assembly(text.replace(host.HOST.triple, triple), triple, features)
            assert not re.search(r"vmaskmovp[sd]\s+%ymm\d+, %ymm\d+, ", code)


def test_rows_of_low_tiles_are_any_distance_apart():
    low, tall = Tile("float", 16, 8, 2), Tile("float", 16, 9, 2)
    assert Rows.of(low, 784) == (Rows(), 784) and Rows.of(low, 10)[0].name == "rows"
    assert Rows.of(tall, 784) == (Rows(784), 0) and Rows(784).name == "rows784"


class Symbolic(Function):
    """Shuffles of lists of names instead of text."""

    def shuffle(self, type, lanes, a, b, picks):
        both = [*a, *b]
        return [both[p] for p in picks]


@pytest.mark.parametrize("type, lanes", [("float", 2), ("float", 4), ("float", 8), ("float", 16),
                                         ("double", 2), ("double", 4), ("double", 8),
                                         ("i16", 8), ("i16", 16), ("i16", 32),
                                         ("i8", 8), ("i8", 16), ("i8", 32), ("i8", 64)])
def test_the_shuffles_transpose(type, lanes):
    rows = [[(r, c) for c in range(lanes)] for r in range(lanes)]
    columns = [[(c, r) for c in range(lanes)] for r in range(lanes)]
    assert transposed(Symbolic("f"), type, lanes, rows) == columns


@pytest.mark.parametrize("rows, depth", [(8, 8), (3, 8), (8, 5), (1, 1)])
def test_a_transpose_of_part_of_a_square_is_filled_with_zeros(rows, depth):
    start = np.arange(1, 81, dtype=np.float32).reshape(8, 10)
    end = np.full((9, 9), 7, np.float32)
    run = compiled(Transpose("float", 8, rows, depth), *"pipi")
    run(start.ctypes.data, 10, end.ctypes.data, 9)
    expected = np.full((9, 9), 7, np.float32)
    expected[:depth, :8] = 0
    expected[:depth, :rows] = start[:rows, :depth].T
    np.testing.assert_array_equal(end, expected)


@pytest.mark.parametrize("type, dtype", [("float", "f4"), ("double", "f8"), ("i64", "i8")])
@pytest.mark.parametrize("rows, columns", [(1, 1), (1, 8), (3, 5), (4, 4)])
def test_dot_products_of_every_length(type, dtype, rows, columns):
    rng = np.random.default_rng(rows * columns)
    lanes = HOST.vector_bytes // np.dtype(dtype).itemsize
    for depth in (lanes, 3 * lanes + 1, 20 * lanes + lanes // 2):
        a = rng.integers(-9, 9, (rows, depth)).astype(dtype)
        b = rng.integers(-9, 9, (columns, depth)).astype(dtype)
        c = np.full((rows + 1, columns), 5, dtype)
        kernel = Dots(type, lanes, rows, columns, depth % lanes, columns % lanes_of_sums(type) > 0)
        run = compiled(kernel, *"ipipipib")
        run(depth, a.ctypes.data, depth, b.ctypes.data, depth, c.ctypes.data, columns, False)
        np.testing.assert_array_equal(c[:rows], a @ b.T)
        assert (c[rows] == 5).all()
