"""The contraction engine against NumPy: forms of the operands, sizes, types, threads, epilogues."""

import ctypes

import numpy as np
import pytest

from fgrad import index
from fgrad.backends.llvm import host, streams, target, threads
from fgrad.backends.llvm.contract import plan
from fgrad.backends.llvm.contract_emit import emit
from fgrad.backends.llvm.contract_plan import Product, up
from fgrad.backends.llvm.operands import Bordered, Pieced, Pulled, Strided, Strips
from fgrad.backends.llvm.product import outside, steps_of
from fgrad.backends.llvm.text import BYTES, declarations, vector
from fgrad.backends.llvm.tiles import FLOATS, Machine
from fgrad.records import replace

MACHINE = Machine(host.HOST.vector_bytes, host.HOST.registers)
TYPES = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64",
         "int8": "i8", "int16": "i16"}
A, B, OUT, BIAS, WORKSPACE = range(5)                # places in the table of buffers
SIZES = (1, 2, 3, 5, 17, 31, 64, 100, 129)


class Buffers(Product):
    """Operands that are buffers; `sizes` are the elements of one batch of a, b and out."""

    def __init__(self, type, sizes, bias_columns=None):
        self.type, self.sizes, self.bias_columns = type, sizes, bias_columns

    def pointer(self, fn, place, b=0):
        buffer = fn.load("ptr", fn.gep("ptr", "%buffers", place))
        return fn.gep(self.type, buffer, fn.mul(b, self.sizes[place]) if place < BIAS else 0)

    def a_pointer(self, fn, b):
        return self.pointer(fn, A, b)

    def b_pointer(self, fn, b):
        return self.pointer(fn, B, b)

    def out_pointer(self, fn, b):
        return self.pointer(fn, OUT, b)

    def hold_pointers(self, fn):
        pass                               # they are loaded where they are used

    def workspace(self, fn):
        return self.pointer(fn, WORKSPACE)

    def epilogue(self, fn, b, i, j, lanes, values, count, along, sums):
        """relu(sum + bias); over the rows these, and their squares, are summed.

        What is no sum is zero, where a machine has masks: else functions of it may take long.
        """
        row = fn.gep(self.type, self.pointer(fn, OUT, b), fn.add(fn.mul(i, self.bias_columns), j))
        bias = fn.gep(self.type, self.pointer(fn, BIAS), j if along == "n" else 0)
        v, added = vector(self.type, lanes), []
        for q, value in enumerate(values):
            left = None if count is None else min(lanes, count - q * lanes)
            if left is not None and left < lanes and along == "n" and MACHINE.masks:
                value = self.checked(fn, value, lanes, left)
            more = self.bias(fn, bias, q * lanes, lanes, left, along)
            value = fn.op(f"fadd {v} {value}, {more}")
            positive = fn.op(f"fcmp ogt {v} {value}, zeroinitializer")
            mask = f"{vector('i1', lanes)} {positive}"
            value = fn.op(f"select {mask}, {v} {value}, {v} zeroinitializer")
            fn.vector_store(self.type, lanes, value, fn.gep(self.type, row, q * lanes), left)
            for x in (value, fn.op(f"fmul {v} {value}, {value}"))[:len(sums) // len(values)]:
                added.append(fn.op(f"fadd {v} {sums[len(added)]}, {x}"))
        return added

    def checked(self, fn, value, lanes, left):
        """The value, or NaN where the lane behind the sums is not zero."""
        idle = fn.op(f"extractelement {vector(self.type, lanes)} {value}, i32 {left}")
        wrong = fn.op(f"fcmp une {self.type} {idle}, 0.0")
        nan = fn.op(f"select i1 {wrong}, {self.type} 0x7FF8000000000000, {self.type} 0.0")
        return fn.op(f"fadd {vector(self.type, lanes)} {value}, {fn.splat(self.type, lanes, nan)}")

    def sums(self, fn, j, lanes, values, count):
        for n, value in enumerate(values):
            place = fn.gep(self.type, self.pointer(fn, BIAS), fn.add(j, n * self.bias_columns))
            fn.vector_store(self.type, lanes, value, place, count)

    def total(self, fn, j, lanes, value, count):
        place = fn.gep(self.type, self.pointer(fn, BIAS), j)
        fn.vector_store(self.type, lanes, value, place, count)

    def bias(self, fn, start, first, lanes, count, along):
        if along == "m":
            return fn.splat(self.type, lanes, fn.load(self.type, start))
        return fn.vector_load(self.type, lanes, fn.gep(self.type, start, first), count)


class Doubled(Buffers):
    """The same operands, pulled: every element is read and doubled where it is packed."""

    def __init__(self, type, sizes, a, b, columns):
        super().__init__(type, sizes, columns)
        self.strides = {A: a, B: b}

    def pulled(self, fn, place, b, first, second, lanes, count):
        strides = self.strides[place]
        at = fn.add(fn.mul(first, strides.first), fn.mul(second, strides.second))
        value = fn.vector_load(self.type, lanes, fn.gep(self.type, self.pointer(fn, place, b), at),
                               count)
        add = "fadd" if self.type in FLOATS else "add"
        return fn.op(f"{add} {vector(self.type, lanes)} {value}, {value}")

    def pack_a(self, fn, b, i, k, lanes, along, count):
        return self.pulled(fn, A, b, i, k, lanes, count)

    def pack_b(self, fn, b, k, j, lanes, along, count):
        return self.pulled(fn, B, b, k, j, lanes, count)


class Shifted(Buffers):
    """A is a window of three rows over (rows, channels) arrays between rows of zeros.

    Neighbours are the same row of each of the arrays.
    """

    def __init__(self, type, rows, channels, arrays=1):
        super().__init__(type, (0, 0, 0))
        self.rows, self.channels, self.arrays = rows, channels, arrays
        self.form = Bordered(arrays * rows * channels, 3 * channels, channels, (rows,), arrays,
                             rows * channels)

    def row_places(self, fn, b, i):
        start = fn.op(f"ptrtoint ptr {self.pointer(fn, A)} to i64")
        before = fn.sub(fn.div(i, self.arrays), 1)
        row = fn.add(fn.mul(fn.rem(i, self.arrays), self.rows), before)
        return fn.add(start, fn.mul(row, self.channels * BYTES[self.type])), before

    def run_places(self, fn, k):
        return fn.mul(k, BYTES[self.type]), fn.div(k, self.channels)


class Pieces(Buffers):
    """B is kept piece by piece, each of so many steps ("k") or columns ("n")."""

    def __init__(self, type, along, piece, other):
        super().__init__(type, (0, 0, 0))
        self.along, self.piece, self.other = along, piece, other
        self.form = Pieced(along, piece if along == "k" else 0)

    def b_place(self, fn, b, k, j):
        at, across = (k, j) if self.along == "k" else (j, k)
        first = fn.add(fn.mul(fn.div(at, self.piece), self.other), across)
        element = fn.add(fn.mul(first, self.piece), fn.rem(at, self.piece))
        return fn.gep(self.type, self.pointer(fn, B), element)


class Windows(Buffers):
    """Row (w, c) and step (y, x) of A are element (y, s·x + w - 1, c) of an array, or zero."""

    def __init__(self, type, width, channels, steps, stride):
        super().__init__(type, (0, 0, 0))
        self.width, self.channels, self.steps, self.stride = width, channels, steps, stride
        size = width * channels
        self.form = Strips(4 * channels, size, channels, steps, stride * channels)

    def strip(self, fn, b, i, k):
        left = fn.sub(fn.div(i, self.channels), 1)
        ahead = fn.add(fn.max(fn.sub(0, left), 0), self.stride - 1)
        first = fn.min(fn.div(ahead, self.stride), self.steps)
        inside = fn.add(fn.max(fn.sub(self.width, left), 0), self.stride - 1)
        stop = fn.min(fn.div(inside, self.stride), self.steps)
        at = fn.add(fn.mul(fn.div(k, self.steps), self.width),
                    fn.add(fn.mul(first, self.stride), left))
        start = fn.op(f"ptrtoint ptr {self.pointer(fn, A)} to i64")
        place = fn.add(start, fn.mul(at, self.channels * BYTES[self.type]))
        return place, first, fn.max(fn.sub(stop, first), 0)


def whole(functions, triple=host.HOST.triple):
    """The text of a module of functions."""
    body = "\n\n".join(functions)
    return "\n".join([f'target triple = "{triple}"', *declarations(body), body])


def run(planned, product, arrays):
    """Compile and run all phases."""
    emitted = emit(planned, product, "product")
    library = target.load(target.compile_text(whole(emitted.functions.values())))
    room = np.full(emitted.workspace + 64, 255, np.uint8)             # NaN, and no address
    pointers = [array.ctypes.data for array in arrays] + [room.ctypes.data + -room.ctypes.data % 64]
    buffers = (ctypes.c_void_p * len(pointers))(*pointers)
    for name, parts in emitted.phases:
        threads.pool().run(library.address(name), ctypes.addressof(buffers), parts)
    library.close()


def drawn(rng, dtype, *shape):
    if dtype.startswith("int"):
        return rng.integers(-99, 99, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def strides(form, first, second):
    """Strides of a first × second operand, stored as it is ("n") or transposed ("t")."""
    return Strided(second, 1) if form == "n" else Strided(1, first)


def stored(array, form):
    return np.ascontiguousarray(array if form == "n" else np.swapaxes(array, -1, -2))


def check(m, n, k, forms="nn", dtype="float32", *, batch=1, workers=1, epilogue=False, pulled=False,
          total=False, sums=0, machine=MACHINE, change=lambda planned: planned):
    """One product against NumPy."""
    rng = np.random.default_rng(m * 10007 + n * 101 + k)
    a, b = drawn(rng, dtype, batch, m, k), drawn(rng, dtype, batch, k, n)
    bias = drawn(rng, dtype, 2 * n)
    expected = np.matmul(a, b) * (4 if pulled else 1)
    if epilogue:
        expected = np.maximum(expected + bias[:n], 0)
    a_form, b_form = strides(forms[0], m, k), strides(forms[1], k, n)
    sizes, type = (m * k, k * n, m * n), TYPES[dtype]
    product = Buffers(type, sizes, n)
    if pulled:
        product = Doubled(type, sizes, a_form, b_form, n)
        a_form = Pulled("k" if forms[0] == "n" else "m")
        b_form = Pulled("n" if forms[1] == "n" else "k")
    planned = change(plan(m, n, k, type, a_form, b_form, machine=machine, batch=batch,
                          out=Strided(n, 1), epilogue=epilogue, threads=workers,
                          total=total, sums=sums))
    out = np.full((batch, m, n), 77, dtype)
    run(planned, product, [stored(a, forms[0]), stored(b, forms[1]), out, bias])
    if total:
        total = b[0].sum(0) * (2 if pulled else 1)
        np.testing.assert_allclose(bias[:n], total, rtol=1e-4, atol=1e-4)
    for power, found in zip(range(1, sums + 1), (bias[:n], bias[n:])):
        np.testing.assert_allclose(found, (expected[0] ** power).sum(0), rtol=1e-4, atol=1e-4)
    if dtype.startswith("int"):
        np.testing.assert_array_equal(out, expected)
    else:
        tolerance = 8 * np.finfo(dtype).eps * max(k, 1) ** 0.5 * (4 if pulled else 1)
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance * 4)
    return planned


@pytest.mark.parametrize("forms", ["nn", "nt", "tn", "tt"])
def test_products_of_all_sizes_agree_with_numpy(forms):
    for at, m in enumerate(SIZES):
        check(m, SIZES[(at * 4 + 1) % 9], SIZES[(at * 5 + 3) % 9], forms)


@pytest.mark.parametrize("dtype", ["float64", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("forms", ["nn", "nt", "tn", "tt"])
def test_products_of_every_type_agree_with_numpy(dtype, forms):
    check(31, 45, 17, forms, dtype)


@pytest.mark.parametrize("m, n", [(1, 100), (100, 1), (1, 1), (129, 3), (3, 129)])
def test_matrix_times_vector_agrees_with_numpy(m, n):
    for forms in ("nn", "nt", "tn", "tt"):
        check(m, n, 70, forms)


@pytest.mark.parametrize("forms", ["nn", "nt", "tn"])
def test_long_sums_go_through_several_blocks(forms):
    planned = check(30, 33, 1301, forms)
    assert planned.blocks > 1
    check(30, 33, 1301, forms, epilogue=True)


@pytest.mark.parametrize("forms", ["nn", "nt", "tn", "tt"])
def test_two_threads_give_the_same_product(forms):
    assert check(150, 131, 260, forms, workers=2).parts == 2
    assert check(700, 40, 100, forms, workers=2, epilogue=True).parts == 2


@pytest.mark.parametrize("m, n", [(4, 4), (3, 17)])
def test_long_sums_of_few_results_are_cut_in_the_depth(m, n):
    planned = check(m, n, 20011, workers=2)
    assert planned.split
    check(m, n, 20011, "tn", workers=2, epilogue=True)
    check(m, n, 20011, "nt", "float64", workers=2, batch=3)


def test_batches_share_the_work():
    check(17, 31, 40, batch=5)
    assert check(64, 64, 64, "nt", batch=8, workers=2).grid[0] == 2
    check(100, 64, 64, "tn", batch=3, workers=2, epilogue=True)


def test_an_empty_sum_is_zero():
    for workers in (1, 2):
        check(5, 9, 0, workers=workers)
        check(40, 90, 0, workers=workers, epilogue=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, n, k", [(5, 7, 9), (64, 100, 33), (129, 31, 64)])
def test_the_epilogue_sees_every_sum_once(m, n, k, dtype):
    check(m, n, k, dtype=dtype, epilogue=True)


@pytest.mark.parametrize("forms", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("m, n, k", [(3, 5, 7), (31, 129, 17), (100, 64, 700)])
def test_operands_are_computed_where_they_are_packed(m, n, k, forms):
    check(m, n, k, forms, pulled=True)
    check(m, n, k, forms, "int32", pulled=True, workers=2, batch=2)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("m, n, k", [
    (1, 1, 1), (3, 2, 0), (5, 17, 3), (100, 130, 65), (4, 64, 5000), (300, 33, 700), (40, 1000, 9),
    (70, 400, 300)])
def test_the_columns_of_an_operand_are_summed_beside_its_product(m, n, k, workers):
    check(m, n, k, total=True, workers=workers)
    check(m, n, k, "tt", pulled=True, total=True, workers=workers)
    check(m, n, k, "tn", "int32", total=True, workers=workers)
    check(m, n, k, "nt", "float64", total=True, workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("m, n, k", [
    (1, 1, 1), (3, 2, 0), (5, 17, 3), (100, 130, 65), (4, 64, 5000), (300, 33, 700), (40, 1000, 9),
    (70, 400, 300), (1, 40, 7), (900, 1, 12)])
def test_what_the_epilogue_feeds_is_summed_over_the_rows(m, n, k, workers):
    for sums in (1, 2):
        check(m, n, k, epilogue=True, sums=sums, workers=workers)
    check(m, n, k, "tt", "float64", epilogue=True, sums=2, workers=workers)


@pytest.mark.parametrize("arrays, rows, channels, columns", [
    (1, 50, 64, 64), (1, 7, 17, 5), (1, 1, 32, 100), (1, 301, 256, 33), (16, 9, 32, 32),
    (4, 7, 17, 65), (3, 5, 16, 8)])
@pytest.mark.parametrize("dtype, odd", [("float32", 0), ("float32", np.inf), ("float64", 0),
                                        ("int64", 0)])
@pytest.mark.parametrize("workers", [1, 2])
def test_runs_between_zeros_are_read_where_they_lie(arrays, rows, channels, columns, dtype, odd,
                                                    workers):
    rng = np.random.default_rng(rows)
    a, b = drawn(rng, dtype, arrays, rows, channels), drawn(rng, dtype, 3 * channels, columns)
    b[0, 3] += odd
    padded = np.pad(a, ((0, 0), (1, 1), (0, 0)))
    windows = np.concatenate([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]], 2)
    with np.errstate(invalid="ignore"):
        expected = (windows.swapaxes(0, 1) @ b).reshape(rows * arrays, columns)
    product = Shifted(TYPES[dtype], rows, channels, arrays)
    out = np.full((rows * arrays, columns), 77, dtype)
    planned = plan(rows * arrays, columns, 3 * channels, product.type, product.form,
                   Strided(columns, 1), machine=MACHINE, out=Strided(columns, 1), threads=workers)
    run(planned, product, [a, b, out, b])
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_rows_of_one_place_share_an_address():
    planned = plan(16 * 784, 32, 1600, "float", Bordered(800_000, 7488, 64, (28, 28), 16, 50176),
                   Strided(32, 1), machine=Machine(64, 32), out=Strided(32, 1))
    assert (planned.tile.rows, planned.run) == (10, 2)
    alone = plan(16 * 784, 32, 1600, "float", Bordered(800_000, 7488, 64, (28, 28)),
                 Strided(32, 1), machine=Machine(64, 32), out=Strided(32, 1))
    assert (alone.tile.rows, alone.run) == (10, 1)


@pytest.mark.parametrize("along, piece", [("k", 16), ("k", 64), ("n", 16), ("n", 48)])
@pytest.mark.parametrize("m, n, k", [(5, 48, 64), (40, 96, 192), (33, 144, 960)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_operand_in_pieces_is_copied_piece_by_piece(m, n, k, along, piece, dtype):
    rng = np.random.default_rng(m)
    n = n if along == "n" else n + 1
    a, b = drawn(rng, dtype, m, k), drawn(rng, dtype, k, n)
    product = Pieces(TYPES[dtype], along, piece, n if along == "k" else k)
    kept = b.reshape(-1, piece, n).swapaxes(1, 2) if along == "k" else (
        b.reshape(k, -1, piece).swapaxes(0, 1))
    out = np.full((m, n), 77, dtype)
    planned = plan(m, n, k, product.type, Strided(k, 1), product.form, machine=MACHINE,
                   out=Strided(n, 1))
    run(planned, product, [a, np.ascontiguousarray(kept), out, b])
    np.testing.assert_allclose(out, a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("height, width, channels, columns, stride", [
    (40, 28, 32, 64, 1), (61, 15, 17, 5, 2), (1, 12, 8, 100, 1), (9, 260, 33, 33, 3),
    (22, 7, 8, 8, 1)])
@pytest.mark.parametrize("dtype, odd", [("float32", 0), ("float32", np.inf), ("float64", np.nan),
                                        ("float64", 0), ("int64", 0)])
@pytest.mark.parametrize("workers", [1, 2])
def test_strips_between_zeros_are_read_where_they_lie(height, width, channels, columns, stride,
                                                      dtype, odd, workers):
    """And the columns of the other operand are summed, in blocks of an odd depth, too."""
    rng = np.random.default_rng(height)
    steps = -(-width // stride)
    a, b = drawn(rng, dtype, height, width, channels), drawn(rng, dtype, height * steps, columns)
    b[[0, -1], 3] += odd
    padded = np.pad(a, ((0, 0), (1, 2 + stride), (0, 0)))
    views = [padded[:, w:w + steps * stride:stride] for w in range(4)]
    with np.errstate(invalid="ignore"):
        expected = np.einsum("wyxc,yxj->wcj", views, b.reshape(height, steps, columns))
    product = Windows(TYPES[dtype], width, channels, steps, stride)
    for total in (False, True):
        out, totals = np.full((4 * channels, columns), 77, dtype), np.full(columns, 77, dtype)
        planned = plan(4 * channels, columns, height * steps, product.type, product.form,
                       Strided(columns, 1), machine=MACHINE, out=Strided(columns, 1),
                       threads=workers, total=total)
        assert planned.strips
        run(planned, product, [a, b, out, totals])
        np.testing.assert_allclose(out, expected.reshape(out.shape), rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(totals, b.sum(0) if total else 77, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("channels, columns, steps, expected", [
    (32, 64, 28, 112), (64, 64, 28, 84), (64, 64, 16, 96), (64, 128, 14, 140), (32, 32, 28, 140)])
def test_blocks_of_whole_strips_stay_in_the_first_cache(channels, columns, steps, expected):
    planned = plan(9 * channels, columns, 448 * steps, "float",
                   Strips(3 * channels, 448 * steps * channels, channels, steps, channels),
                   Strided(columns, 1), machine=Machine(64, 32), out=Strided(columns, 1))
    assert planned.kc == expected


@pytest.mark.parametrize("bytes, columns, steps, packed", [
    (32, 256, 512, True), (32, 256, 64, False), (32, 10, 256, False),
    (64, 256, 512, False), (64, 256, 64, False), (64, 10, 256, False)])
def test_columns_far_apart_are_copied_or_fetched_where_many_tiles_read_them(
        bytes, columns, steps, packed):
    planned = plan(784, columns, steps, "float", Strided(1, 784), Strided(columns, 1),
                   machine=Machine(bytes, 32), out=Strided(columns, 1))
    fetched = streams.kind_of(planned) is streams.LaterColumns
    assert planned.pack_a == packed and (packed or fetched or steps * columns < 1 << 15)


def test_an_operand_without_a_unit_stride_is_refused():
    with pytest.raises(ValueError, match="one of them must be 1"):
        plan(4, 4, 4, "float", Strided(8, 2), Strided(4, 1), machine=MACHINE)


@pytest.mark.parametrize("bytes", [32, 64])
def test_columns_that_meet_in_few_lines_of_the_cache_are_packed(bytes):
    packs = lambda m, n, k: plan(m, n, k, "float", Strided(1, m), Strided(n, 1), threads=2,
                                 out=Strided(n, 1), machine=Machine(bytes, 32)).pack_a
    assert packs(256, 1024, 1024) and packs(512, 512, 512) and packs(2048, 2048, 2048)
    assert packs(1024, 256, 1024) == (bytes == 32)       # vectors of 64 bytes fetch them in time
    assert not packs(784, 256, 64) and not packs(6, 4096, 512)


def test_the_parts_of_a_product_with_an_epilogue_are_whole_rows():
    machine = Machine(64, 32)
    for m, n, k in ((784, 256, 64), (1024, 1024, 256)):
        planned = plan(m, n, k, "float", Strided(1, m), Strided(n, 1), machine=machine, threads=2,
                       out=Strided(n, 1), epilogue=True)
        assert planned.grid[1] > 1 and planned.grid[2] == 1


SOME_TILES = (16, 31) if MACHINE.vector_bytes == 64 else (8, 12)      # rows


@pytest.mark.parametrize("m, n, k", [
    (SOME_TILES[0], 4096, 200), (10, 1024, 400), (SOME_TILES[1], 2048, 330)])
def test_few_rows_read_a_large_matrix_where_it_lies(m, n, k):
    for epilogue in (True, False):
        planned = check(m, n, k, workers=2, epilogue=epilogue)
        assert not planned.pack_b and planned.blocks > 1


PACKED = {"change": lambda planned: planned.but(pack_b=True)}    # what may be read where it lies


@pytest.mark.parametrize("m, n, k, change", [
    (501, 75, 303, {}), (640, 130, 501, {}), (400, 33, 77, {}),
    (101, 75, 303, PACKED), (64, 130, 1501, PACKED), (200, 33, 77, PACKED)])
def test_the_first_tiles_pack_what_they_read(m, n, k, change):
    for forms, workers, epilogue in [("nn", 1, False), ("tn", 2, True), ("nn", 2, True)]:
        assert check(m, n, k, forms, workers=workers, epilogue=epilogue, **change).packs_along
    assert check(m, n, k, batch=3, workers=2, **change).packs_along
    assert check(40, 1030, 300, **PACKED).packs_along
    assert not check(24, 1030, 300, **PACKED).packs_along


@pytest.mark.parametrize("m, n, k, fetches", [
    (16, 512, 512, True), (64, 256, 784, True), (40, 1030, 300, True),
    (64, 1024, 256, False),                        # whose rows meet in few sets of the first cache
    (512, 256, 784, False), (64, 64, 64, False)])
def test_few_rows_fetch_a_matrix_where_it_lies(m, n, k, fetches):
    planned = plan(m, n, k, "float", Strided(k, 1), Strided(n, 1), out=Strided(n, 1),
                   machine=Machine(64, 32))
    assert planned.fetches_b == fetches and planned.pack_b == (not fetches)
    check(m, n, k)


@pytest.mark.parametrize("m, n, k, steps", [
    (12, 1024, 1024, 32), (16, 516, 2048, 64), (33, 1024, 1000, 128), (100, 520, 600, 224)])
def test_few_rows_read_whole_rows_of_a_matrix_that_is_far_away(m, n, k, steps):
    """In blocks of 32 pages, in which a processor sees what comes next: 16 rows by a square of 1024
    that no cache holds took twice as long in blocks of 256 steps and half of the columns."""
    for sees in (True, False):
        planned = plan(m, n, k, "float", Strided(k, 1), Strided(n, 1), out=Strided(n, 1),
                       machine=Machine(64, 32, sees))
        assert planned.waits_for_b == sees
        assert (planned.nc >= n and planned.kc == steps) == sees
    for epilogue in (True, False):
        check(m, n, k, workers=2, epilogue=epilogue, machine=replace(MACHINE, slow_third=True))


def test_a_row_that_stands_for_all_rows_is_near():
    planned = plan(16, 1024, 1024, "float", Strided(1024, 1), Strided(0, 1), out=Strided(1024, 1),
                   machine=Machine(64, 32, True))
    assert not planned.waits_for_b


@pytest.mark.parametrize("m, n, k, grid", [
    (8, 1024, 1024, (1, 1, 1, 2)), (32, 512, 2048, (1, 1, 1, 2)), (8, 4096, 1024, (1, 1, 2, 1))])
def test_threads_share_the_rows_of_a_matrix_that_are_shorter_than_two_pages(m, n, k, grid):
    """Each would read half a page of every row: 8 rows by a square of 1024 took 1.4 times as long.
    """
    planned = plan(m, n, k, "float", Strided(k, 1), Strided(n, 1), out=Strided(n, 1),
                   machine=Machine(64, 32, True), threads=2)
    assert planned.grid == grid


@pytest.mark.parametrize("m, n, k, packed", [
    (96, 1024, 1024, True), (32, 1024, 256, True), (48, 512, 784, True), (96, 256, 784, True),
    (8, 1024, 1024, False), (16, 768, 784, False), (24, 1000, 784, False), (6, 2048, 512, False)])
def test_a_matrix_whose_rows_the_first_cache_loses_is_packed_for_more_than_a_few_rows(
        m, n, k, packed):
    """With AVX2 96 rows by a square of 1024 took three times as long where it lies."""
    planned = plan(m, n, k, "float", Strided(k, 1), Strided(n, 1), out=Strided(n, 1),
                   machine=Machine(32, 16))
    assert planned.pack_b == packed
    assert not (planned.fetches_b and n == 1024)   # of these rows eight are in one set, of eight


@pytest.mark.parametrize("batch, m, n, k", [
    (24, 128, 64, 128), (40, 33, 130, 101), (33, 96, 40, 97)])
def test_tiles_fetch_the_operands_of_the_next_batch(batch, m, n, k):
    for forms, workers, epilogue in [("nn", 1, False), ("tn", 2, True), ("nt", 3, False)]:
        planned = check(m, n, k, forms, batch=batch, workers=workers, epilogue=epilogue)
        assert streams.kind_of(planned) is streams.NextBatch and planned.grid[0] == workers


@pytest.mark.parametrize("m, n, k, forms, kind", [
    (2600, 128, 128, "nn", streams.LaterRows), (1300, 130, 301, "nt", streams.LaterRows),
    (1001, 260, 1030, "nn", streams.LaterRows),
    (64, 64, 5001, "tn", streams.NextSteps), (33, 30, 12000, "tn", streams.NextSteps),
    (300, 400, 2001, "tn", streams.LaterColumns), (1001, 100, 513, "tn", streams.LaterColumns)])
def test_tiles_fetch_what_later_ones_read(m, n, k, forms, kind):
    planned = plan(m, n, k, "float", Strided(1, m) if forms[0] == "t" else Strided(k, 1),
                   Strided(1, k) if forms[1] == "t" else Strided(n, 1), out=Strided(n, 1),
                   machine=Machine(64, 32))
    assert streams.kind_of(planned) is kind
    for workers, epilogue in ((1, True), (3, False)):
        check(m, n, k, forms, workers=workers, epilogue=epilogue)


@pytest.mark.parametrize("sees", [False, True])
def test_rows_of_a_large_result_are_finished_where_writing_below_each_other_is_slow(sees):
    """A copied operand is copied again for each block of columns: that costs less."""
    machine = Machine(64, 32, sees)
    for out, epilogue in ((Strided(1024, 1), False), (None, True)):
        planned = plan(1024, 1024, 256, "float", Pulled("k", 2.0), Strided(1024, 1),
                       out=out, epilogue=epilogue, machine=machine)
        assert planned.pack_a and planned.rows_first == sees


@pytest.mark.parametrize("forms", ["nn", "tn"])
@pytest.mark.parametrize("workers, epilogue", [(1, False), (1, True), (2, True)])
def test_what_is_copied_for_each_block_of_columns_is_copied_whole(forms, workers, epilogue):
    machine = replace(MACHINE, slow_third=True)
    planned = check(601, 1030, 300, forms, pulled=True, workers=workers, epilogue=epilogue,
                    machine=machine)
    assert planned.pack_a


def test_columns_are_copied_where_they_are_not_there_in_time():
    for sees in (False, True):
        planned = plan(1024, 256, 1024, "float", Strided(1, 1024), Strided(256, 1),
                       out=Strided(256, 1), machine=Machine(64, 32, sees))
        assert planned.pack_a == sees


@pytest.mark.parametrize("type, columns, slow, steps", [
    ("float", 32, True, 1024), ("float", 9, True, 1024), ("double", 32, True, 512),
    ("float", 33, True, 512), ("float", 32, False, 512)])
def test_few_columns_are_multiplied_by_whole_pages_of_rows(type, columns, slow, steps):
    planned = plan(64, columns, 1 << 14, type, Strided(1 << 14, 1), Strided(columns, 1),
                   out=Strided(columns, 1), machine=Machine(64, 32, slow))
    assert planned.kc == steps


def test_products_by_whole_pages_of_rows_agree_with_numpy():
    for rows, columns, depth in ((7, 32, 4097), (40, 9, 2050)):
        for workers, epilogue in ((1, True), (3, False)):
            check(rows, columns, depth, workers=workers, epilogue=epilogue,
                  machine=replace(MACHINE, slow_third=True))


def test_rows_that_a_processor_sees_are_not_fetched():
    for sees, kind in ((False, streams.LaterRows), (True, None)):
        planned = plan(1024, 1024, 1024, "float", Strided(1024, 1), Strided(1024, 1),
                       out=Strided(1024, 1), machine=Machine(64, 32, sees))
        assert streams.kind_of(planned) is kind


@pytest.mark.parametrize("batch, m, n, k", [
    (3, 64, 64, 64),                               # the second cache holds all batches
    (3, 512, 512, 512),                            # it does not hold two of them
    (1, 1024, 1024, 64)])
def test_other_tiles_fetch_no_batch(batch, m, n, k):
    planned = plan(m, n, k, "float", Strided(k, 1), Strided(n, 1), out=Strided(n, 1),
                   machine=Machine(64, 32), batch=batch)
    assert streams.kind_of(planned) is not streams.NextBatch


@pytest.mark.parametrize("m, n, k, forms", [
    (1024, 1024, 64, "nn"),                        # the second cache holds A
    (20000, 64, 20, "nn"),                         # a tile is too short
    (16384, 32, 32, "nn"),                         # and has too little work
    (784, 10, 2048, "tn"), (9, 64, 100000, "tn")])  # the lines of a column are a stream
def test_other_tiles_fetch_nothing(m, n, k, forms):
    planned = plan(m, n, k, "float", Strided(1, m) if forms[0] == "t" else Strided(k, 1),
                   Strided(n, 1), out=Strided(n, 1), machine=Machine(64, 32))
    assert streams.kind_of(planned) is None


class Numbers:
    """A Function that computes what it would write, of addresses where A is at 0."""

    def __init__(self):
        self.memory = {}

    def alloca(self, type, count):
        return 10**12

    def gep(self, type, pointer, n):
        return pointer + n * (1 if type == "i8" else BYTES[type])

    def store(self, type, value, place):
        self.memory[place - 10**12] = value

    def compare(self, how, x, y):
        return x >= y if how == "sge" else 1 / 0

    def select(self, condition, type, x, y):
        return x if condition else y

    def add(self, x, y):
        return x + y

    def sub(self, x, y):
        return x - y

    def mul(self, x, y):
        return x * y

    def div(self, x, y):
        return x // y

    def min(self, x, y):
        return min(x, y)


@pytest.mark.parametrize("m, n, k, a", [
    (2600, 128, 128, (128, 1)), (1300, 130, 301, (301, 1)), (1300, 130, 301, (304, 1)),
    (1001, 260, 1030, (1030, 1)), (300, 400, 2001, (1, 300)), (1001, 100, 513, (1, 1001)),
    (64, 64, 5001, (1, 64)), (33, 30, 12000, (1, 33))])
def test_a_line_of_a_is_fetched_before_it_is_read(m, n, k, a):
    """All but the first ones are, and few are that no tile reads."""
    planned = plan(m, n, k, "float", Strided(*a), Strided(n, 1), out=Strided(n, 1),
                   machine=Machine(64, 32))
    fn, product = Numbers(), Product()
    product.a_pointer, product.b_pointer = lambda fn, b: 0, lambda fn, b: 10**9
    found = streams.kind_of(planned)(fn, planned, product)
    found.begin(0)
    fetched, late, all_read = set(), 0, set()
    for first in range(0, k, planned.kc):
        steps = min(planned.kc, k - first)
        for i in range(0, m, planned.tile.rows):
            rows = range(i, min(i + planned.tile.rows, m))
            read = {4 * (row * a[0] + step * a[1]) // 64
                    for row in rows for step in range(first, first + steps)}
            late += len(read - fetched - all_read)
            all_read |= read
            for j in range(0, n, planned.width):
                found.of_tile(i, j, first)
                starts = [(fn.memory[16 * s], fn.memory[16 * s + 8]) for s in range(found.count)]
                fetched |= {(start + step * rate) // 64 for start, rate in starts
                            for step in range(0, steps, 2)}
    within = {line for line in fetched if line < min(10**9, 4 * m * k) // 64}
    assert late <= 0.15 * len(all_read) and len(within - all_read) <= 0.1 * len(all_read)


def test_shares_of_tiles_are_all_of_an_operand():
    planned = plan(130, 200, 96, "float", Strided(96, 1), Strided(1, 96), out=Strided(200, 1),
                   machine=Machine(64, 32), batch=99)
    tiles = streams.tiles_of(planned)
    for share, size in zip(streams.shares(planned, 96), (130 * 96 * 4, 96 * 200 * 4)):
        assert share % 64 == 0 and size <= share * tiles < size + 64 * tiles


def test_copied_columns_of_a_leave_room_to_b():
    for bytes, m, n, k in ((64, 512, 512, 512), (64, 256, 1024, 1024), (32, 1024, 256, 1024)):
        planned = plan(m, n, k, "float", Strided(1, m), Strided(n, 1), machine=Machine(bytes, 32),
                       threads=2, out=Strided(n, 1))
        assert planned.pack_a and planned.kc == 256 and planned.packs_along


@pytest.mark.parametrize("forms", ["tn", "tt"])
@pytest.mark.parametrize("size", [512, 640, 768, 1024])
def test_of_columns_that_are_copied_no_thread_copies_all(forms, size):
    """With parts of columns both copied all of A: up to 1.06 times as long on an Intel Xeon."""
    planned = plan(size, size, size, "float", Strided(1, size), strides(forms[1], size, size),
                   out=Strided(size, 1), machine=Machine(64, 32, True), threads=2)
    assert planned.pack_a and planned.grid == (1, 2, 1, 1) and planned.kc == 128


def test_a_result_as_large_as_the_second_cache_is_written_row_by_row():
    """Panel by panel one thread of an Intel Xeon took 1.025 times as long."""
    planned = plan(256, 1024, 1024, "float", Strided(1, 256), Strided(1024, 1),
                   out=Strided(1024, 1), machine=Machine(64, 32, True))
    assert planned.rows_first and planned.kc == 128


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 8])
def test_columns_that_are_copied_together_agree_with_numpy(rows, dtype):
    for k in (1, 2, 7, 8, 9, 15, 16, 33, 130):
        for m in (rows, 3 * rows + 1, 60):
            check(m, 70, k, "tn", dtype, change=lambda p: p.but(
                tile=replace(p.tile, rows=rows), pack_a=True, dots=False,
                mc=up(m, rows), grid=(1, 1, 1, 1)))


def test_columns_are_copied_once_where_blocks_of_fewer_steps_have_all_columns():
    for size in (768, 1024):
        planned = plan(size, size, size, "float", Strided(1, size), Strided(size, 1),
                       out=Strided(size, 1), machine=Machine(64, 32, True))
        assert planned.pack_a and (planned.kc, planned.nc) == (128, size) and planned.rows_first
        check(size, size, size, "tn", machine=replace(MACHINE, slow_third=True))


def test_a_tall_product_reads_few_rows_at_once():
    for m, rows in ((16384, 8), (512, 14)):
        planned = plan(m, 32, 32, "float", Strided(32, 1), Strided(32, 1), machine=Machine(64, 32),
                       out=Strided(32, 1), threads=1)
        assert planned.tile.rows == rows


def test_the_result_of_a_shallow_product_is_written_row_by_row():
    planned = plan(2048, 2048, 8, "float", Strided(8, 1), Strided(2048, 1), out=Strided(2048, 1),
                   machine=Machine(64, 32), threads=2)
    assert planned.grid == (1, 2, 1, 1) and planned.rows_first and planned.nc == 2048


def test_equal_tiles_are_one_function():
    product = Buffers("float", (0, 0, 0))
    make = lambda name, m: emit(plan(m, 128, 256, "float", Strided(256, 1), Strided(128, 1),
                                     machine=MACHINE, out=Strided(128, 1)), product, name).functions
    first, second = make("first", 480), make("second", 960)
    shared = set(first) & set(second)
    assert shared and all(first[name] == second[name] for name in shared)
    assert set(first) - shared == {"first"}


@pytest.mark.parametrize("triple, bytes, registers", [
    ("x86_64-unknown-linux-gnu", 16, 16), ("aarch64-unknown-linux-gnu", 16, 32),
    ("x86_64-unknown-linux-gnu", 32, 16), ("x86_64-unknown-linux-gnu", 64, 32)])
def test_plans_for_other_machines_compile(triple, bytes, registers):
    compile_for = other_machine(triple, bytes)
    machine = Machine(bytes, registers)
    for forms in ("nn", "tt"):
        product = Buffers("float", (0, 0, 0), 45)
        planned = plan(70, 45, 61, "float", strides(forms[0], 70, 61), strides(forms[1], 61, 45),
                       machine=machine, out=Strided(45, 1), epilogue=forms == "tt")
        emitted = emit(planned, product, "product")
        assert "product" in compile_for(whole(emitted.functions.values(), triple))
    for product, rows, depth in ((Shifted("float", 70, 32), 70, 96),
                                 (Windows("float", 13, 9, 13, 1), 36, 91)):
        emitted = emit(plan(rows, 45, depth, "float", product.form, Strided(45, 1), machine=machine,
                            out=Strided(45, 1)), product, "product")
        assert "product" in compile_for(whole(emitted.functions.values(), triple))


def other_machine(triple, bytes):
    """What compiles text for another machine, to assembly."""
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = {16: "", 32: "+avx2,+fma", 64: "+avx512f,+avx512vl,+avx512dq,+avx512bw,+fma"}[bytes]
    try:
        machine = llvm.Target.from_triple(triple).create_target_machine(features=features)
    except RuntimeError as error:
        pytest.skip(f"this LLVM has no {triple}: {error}")

    def compile_for(text):
        parsed = llvm.parse_assembly(text)
        parsed.verify()
        return machine.emit_assembly(parsed)
    return compile_for


def test_steps_between_rows_are_read_off_an_index():
    with index.Space():
        i = index.Var("i", 2 * 14 * 28, 1)
        x = index.combine([(index.divide(index.of(i), 28)[1], 64),
                           (index.divide(index.divide(index.of(i), 28)[0], 14)[1], 1920),
                           (index.divide(index.of(i), 28 * 14)[0], 57600)], 5)
        assert steps_of(x, i) == (28, 64)
        assert steps_of(index.of(i), i) == (2 * 14 * 28, 1)
        y = index.combine([(index.divide(index.plus(index.of(i), 1), 28)[1], 64)])
        assert steps_of(y, i) == (1, 0)


def test_the_share_of_steps_in_a_border_is_counted():
    with index.Space() as space:
        i, j, m = space.variable(28), space.variable(9), space.variable(3)
        x = index.combine([(index.of(i), 1), (index.of(m), 1)], -1)
        y = index.combine([(index.of(j), 2), (index.of(m), 1)])
        assert outside(((x, 0, 28),)) == pytest.approx(2 / 84)
        assert outside(((x, 0, 28), (y, 0, 18))) == pytest.approx(1 - 82 / 84 * 26 / 27)
        long = index.combine([(index.of(space.variable(10**6)), 1), (index.of(m), 1)], -1)
        assert outside(((long, 0, 10**6),)) == 0
