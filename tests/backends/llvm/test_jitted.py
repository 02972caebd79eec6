"""Jitted functions in hard places: foreign memory, forks, a shared or damaged disk, huge arrays."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import compile as driver
from fgrad import lax
from fgrad.backends import cache
from fgrad.backends.llvm.host import HOST
from tests.at_once import at_once


@pytest.fixture(params=["0", "1"], ids=["python", "native"])
def native_call(request, monkeypatch):
    monkeypatch.setenv("FGRAD_NATIVE_CALL", request.param)


# ---------------------------------------------------------------------------- memory of others


def at_offset(x, offset):
    """The values of x, `offset` bytes behind an aligned place."""
    memory = np.zeros(x.nbytes + 128, "u1")
    start = -memory.__array_interface__["data"][0] % 64 + offset
    moved = memory[start:start + x.nbytes].view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def mapped(x):
    """The values of x in a file in memory."""
    path = os.path.join(os.environ["FGRAD_CACHE"], "mapped.bin")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    x.tofile(path)
    return np.memmap(path, x.dtype, "r", shape=x.shape)


KINDS = {                                        # name: the same values in other memory
    "offset1":  lambda x: at_offset(x, 1),
    "offset3":  lambda x: at_offset(x, 3),
    "offset4":  lambda x: at_offset(x, 4),
    "offset20": lambda x: at_offset(x, 20),
    "fortran":  np.asfortranarray,
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "strided":  lambda x: np.repeat(x, 3, axis=1)[:, ::3],
    "swapped":  lambda x: x.astype(x.dtype.newbyteorder()),
    "frozen":   read_only,
    "bytes":    lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "mapped":   mapped,
}


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_in_foreign_memory_are_read_right(kind, native_call, monkeypatch, tmp_path):
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path))
    for dtype in ("float32", "float64", "int32", "int8"):
        x = np.arange(1, 13 * 37 + 1).reshape(13, 37).astype(dtype) % 11
        f = fgrad.jit(lambda a, b: (a * 2 + b, a.T @ b, b.sum(axis=0), lax.scan(
            lambda c, row: (c + row, c), b[0], a)))
        want = f(x, x)
        for args in ((KINDS[kind](x), x), (x, KINDS[kind](x)), (KINDS[kind](x),) * 2) * 2:
            got = f(*args)
            assert fgrad.tree.map(lambda a, b: np.array_equal(a, b), got, want) == (
                True, True, True, (True, True))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0, 2), (1,)])
def test_arrays_without_axes_or_elements_run_compiled(shape, native_call):
    def f(x, s):
        grown = lax.fori_loop(0, 3, lambda i, y: y * s + 1, x)
        stacked = lax.scan(lambda c, v: (c + 1, v * 2), s, fnp.broadcast_to(x, (2, *x.shape)))
        return grown, stacked, x.sum(), fnp.sort(x.ravel()), fnp.concatenate([x.ravel()] * 2)

    x = np.full(shape, 2, "float32")
    g = fgrad.jit(f)
    for given in (x, x, fgrad.core.Array(x), x[()]):
        got, want = g(given, 2.0), f(fgrad.core.Array(x), 2.0)
        assert fgrad.tree.structure(got) == fgrad.tree.structure(want)
        for a, b in zip(fgrad.tree.leaves(got), fgrad.tree.leaves(want)):
            assert a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b)


# ---------------------------------------------------------------------------- huge arrays


HUGE = 2**31 + 2**12                             # bytes of address space; few of them are touched


@pytest.mark.skipif(sys.maxsize < 2**32, reason="addresses have 32 bits")
def test_elements_beyond_2_to_the_31_are_found(native_call):
    x = np.zeros(HUGE, "int8")
    x[-3:], x[2**31 - 1], x[5] = [1, 2, 3], 7, 9
    wide = x.reshape(4, -1)
    i = HUGE - 2
    f = fgrad.jit(lambda x: (x[-3:] + 1, x[2**31 - 1] * 2, x[::-1][:2], x[5::2**31 - 6]))
    g = fgrad.jit(lambda x: (x[3, -3:].sum(), x.T[-1, 3], x[:, -1].max()))
    h = fgrad.jit(lambda x, i: (lax.dynamic_slice(x, (i,), (2,)), x[i]))
    for _ in range(3):
        assert [a.tolist() for a in f(x)] == [[2, 3, 4], 14, [3, 2], [9, 7]]
        assert [a.tolist() for a in g(wide)] == [6, 3, 3]
        assert [a.tolist() for a in h(x, np.int64(i))] == [[2, 3], 2]


@pytest.mark.skipif(sys.maxsize < 2**32, reason="addresses have 32 bits")
def test_counts_beyond_2_to_the_31_are_right():
    n = 2**31 + 10
    f = fgrad.jit(lambda start: lax.while_loop(lambda i: i < n, lambda i: i + 2**29, start))
    assert int(f(np.int64(3))) == 3 + 5 * 2**29
    last = fgrad.jit(lambda x: (fnp.broadcast_to(x, (n, 3))[n - 2:, 1]
                                + fnp.arange(n, dtype="int64")[n - 2:]))
    assert last(np.arange(3)).tolist() == [n - 1, n]


# ---------------------------------------------------------------------------- processes


PROGRAM = """
import os, sys, time
import numpy as np, fgrad, fgrad.numpy as fnp
from fgrad import lax

def loss(w, x):
    y = lax.fori_loop(0, 3, lambda i, y: fnp.tanh(y @ w), x)
    return (fnp.sort(y, axis=0) * fnp.arange(4.0)).sum()

f = fgrad.jit(fgrad.value_and_grad(loss))
w, x = np.linspace(-1, 1, 16, dtype="f").reshape(4, 4), np.ones((300, 4), "f")

def result():
    y, g = f(w, x)
    return [float(y), *g.ravel().tolist()]
"""


def started(program, folder, **env):
    env = {**os.environ, "FGRAD_CACHE": str(folder), **env}
    return subprocess.Popen([sys.executable, "-c", PROGRAM + program], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_eight_processes_may_compile_one_program_at_once(tmp_path):
    running = [started("print(result() == result(), result())", tmp_path / "cache")
               for _ in range(8)]
    ended = [p.communicate(timeout=100) for p in running]
    assert [p.returncode for p in running] == [0] * 8
    assert {err for _, err in ended} == {""}
    [printed] = {out for out, _ in ended}
    assert printed.startswith("True [")
    assert all(name.endswith(".entry") for name in os.listdir(tmp_path / "cache"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_runs_what_its_parent_compiled_and_compiles_its_own(tmp_path):
    child = started("""
want = result()
own = lambda: fgrad.jit(lambda x: fnp.cumsum(fnp.sort(x)) * 2)(np.ones(5, "f")).tolist()
child = os.fork()
if child == 0:
    os._exit(0 if result() == want and own() == [2, 4, 6, 8, 10] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert result() == want and own() == [2, 4, 6, 8, 10]
""", tmp_path / "cache", FGRAD_THREADS="2", PYTHONWARNINGS="ignore")
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err


@pytest.mark.parametrize("damage", ["truncate", "flip", "unwritable"])
def test_a_function_runs_whatever_has_become_of_the_disk_cache(damage, tmp_path, monkeypatch):
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path / "cache"))

    def run():
        driver.clear_caches()
        return fgrad.jit(lambda x: fnp.tanh(x * 3) + 0.125)(np.ones(5, "f")).tolist()

    def refuse(*args):
        raise OSError(30, "Read-only file system")

    want, disk = run(), cache.disk()
    before = {entry.key for entry in disk.entries()}
    assert before
    if damage == "unwritable":
        monkeypatch.setattr(cache, "write_whole", refuse)
        monkeypatch.setattr(os, "utime", refuse)
    for entry in disk.entries() if damage != "unwritable" else ():
        path = disk.path(entry.key)
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(content[:len(content) // 2] if damage == "truncate" else
                       content[:-1] + bytes([content[-1] ^ 1]))
    assert run() == want
    assert {e.key for e in disk.entries()} == before


def test_large_arrays_are_fetched_a_page_ahead_and_others_are_not():
    large, small = fgrad.ArrayType("f32", (1024, 1024)), fgrad.ArrayType("f32", (64, 64))
    fetches = lambda f, *types: "@llvm.prefetch" in fgrad.show(f, *types, stage="llvm")
    assert fetches(lambda x: fnp.sum(x, axis=1), large)
    assert not fetches(lambda x: fnp.sum(x, axis=0), large)      # four rows at once
    assert not fetches(lambda x: fnp.sum(x, axis=1), small)
    assert not fetches(lambda x, at: x[at], large, fgrad.ArrayType("i32", (64,)))


def test_lanes_that_are_all_idle_read_some_zeros():
    """Far from any memory each such read took a fault, which is not raised: 45 times as long; and
    the address of an array is such a place where only a share of it is in memory.
    """
    f = fgrad.jit(lambda x, y: (fnp.roll(x, 3, axis=0) * 2) @ y)
    types = fgrad.ArrayType("f32", (14, 1000)), fgrad.ArrayType("f32", (1000, 64))
    text = fgrad.show(f, *types, stage="llvm")
    pointers = re.findall(r"masked\.load\S*\(ptr (%[\w.]+), i32 4, <\d+ x i1> %", text)
    others = [re.search(rf"{p} = select i1 \S+ ptr \S+ ptr (\S+)", text)[1] for p in pointers]
    assert others and all(f"{zeros} = alloca" in text for zeros in others)
    x, y = np.arange(14_000).reshape(14, 1000) % 7.0, np.arange(64_000).reshape(1000, 64) % 5.0
    np.testing.assert_array_equal(f(x, y), (np.roll(x, 3, 0) * 2) @ y)


@pytest.mark.parametrize("rows, columns, ahead", [
    (64, 50_257, {6144, 4 * 50_257}), (512, 2048, {6144, 8192}), (1024, 1024, {6144}),
    (4, 1 << 20, {6144})])
def test_a_row_that_is_read_again_fetches_the_next_one(rows, columns, ahead):
    def logsumexp(x):
        top = fnp.max(x, axis=1, keepdims=True)
        return fnp.log(fnp.sum(fnp.exp(x - top), axis=1))
    text = fgrad.show(logsumexp, fgrad.ArrayType("float32", (rows, columns)), stage="llvm")
    offsets = re.findall(r"(%[\w.]+) = getelementptr inbounds i8, ptr %[\w.]+, i64 (\d+)\n"
                         r"  call void @llvm.prefetch.p0\(ptr (%[\w.]+)", text)
    assert offsets and all(name == fetched for name, _, fetched in offsets)
    found = sorted({int(at) for _, at, _ in offsets})
    assert {at for at in found if at in ahead} == ahead
    assert all(any(0 <= at - first < 1024 for first in ahead) for at in found)


@pytest.mark.parametrize("columns", [1, 5, 12, 64])
def test_rows_that_are_added_somewhere_are_all_there_or_none(columns):
    """One branch for a row, no mask for each vector of it: three times as fast with AVX2."""
    def add(x, places):
        return fnp.zeros((5, columns), "float32").at[places].add(x, mode="drop")
    x = np.random.default_rng(1).standard_normal((40, columns)).astype(np.float32)
    places = np.arange(40, dtype=np.int32) % 9 - 2
    want = np.zeros((5, columns), np.float32)
    inside = (places >= -5) & (places < 5)
    np.add.at(want, places[inside], x[inside])
    np.testing.assert_allclose(fgrad.jit(add, device="cpu")(x, places), want, rtol=1e-5, atol=1e-5)
    if columns == 64:
        assert "masked.store" not in fgrad.show(add, x, places, stage="llvm")


# ---------------------------------------------------------------------------- NumPy's rules

def test_a_step_of_numpy_reads_the_buffers_of_its_own_call():
    """It keeps the arrays over those of the latest, also where threads call at once."""
    f = fgrad.jit(lambda x: fnp.linalg.eigh(x)[0])
    rng, wrong = np.random.default_rng(0), []
    xs = [fnp.asarray(rng.standard_normal((5, 5)).astype("f4")) for _ in range(4)]
    want = [np.asarray(fnp.linalg.eigh(x)[0]) for x in xs]

    def work(k):
        for n in range(200):
            at = (k + n) % len(xs)
            if not np.allclose(np.asarray(f(xs[at])), want[at], atol=1e-5):
                wrong.append((k, n))
    work(0)
    at_once(work, (1,), (2,), (3,))
    assert not wrong


def dividends(dtype):
    """(x, y): all pairs of bytes; of wider integers many, and multiples, with their neighbours."""
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    if info.bits == 8:
        every = np.arange(info.min, info.max + 1)
        return np.repeat(every, 256).astype(dtype), np.tile(every, 256).astype(dtype)
    ends = np.array([info.min, info.min + 1, 0, 1, 2, 3, info.max // 2, info.max - 1, info.max])
    random = [rng.integers(info.min, info.max, 20_000, dtype, endpoint=True) for _ in range(2)]
    small = 1 + (random[1] >> rng.integers(0, info.bits - 1, 20_000).astype(dtype))
    multiples = random[0] // np.where(small == 0, 1, small) * small
    x = [np.repeat(ends, 9), random[0], random[0], multiples, multiples - 1, multiples + 1]
    y = [np.tile(ends, 9), random[1], small, small, small, small]
    return [np.concatenate([part.astype(dtype) for part in parts]) for parts in (x, y)]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_quotients_of_integers_are_exact(dtype, name):
    """By vectors of floats, up to 32 bits."""
    x, y = dividends(dtype)
    divide, step = getattr(fnp, name), getattr(np, name)
    with np.errstate(all="ignore"):
        expected = np.where(y == 0, np.asarray(divide(fnp.asarray(x), y)), step(x, y | (y == 0)))
        assert np.array_equal(fgrad.jit(divide)(x, y), expected)
        for one in y[::997]:
            if one:
                assert np.array_equal(fgrad.jit(divide)(x, one), step(x, one)), one


@pytest.mark.skipif(HOST.vector_bytes < 32, reason="vectors of floats are short")
def test_integers_are_divided_by_vectors():
    for dtype in ("int16", "uint32"):
        x = np.ones(100, dtype)
        text = fgrad.show(fgrad.jit(lambda x, y: x % y), x, x[0], stage="llvm")
        assert re.search(r"fdiv <\d+ x (float|double)>", text)


@pytest.mark.parametrize("function", [
    lambda x: fnp.cumsum(fnp.repeat(x, 2)), lambda x: fnp.cumsum(fnp.repeat(x, 3)) * 2 + 1,
    lambda x: fnp.cumprod(1 + 0.1 * x[(fnp.arange(14) + 2) // 2]),
    lambda x: fnp.cumsum(fnp.kron(x, fnp.array([1.0, 2.0]))),
    lambda x: fnp.cumsum(fnp.repeat(x, 2)[::-1])])
def test_sums_so_far_of_repeated_elements_are_read_behind_each_of_them(function):
    """Their loop is cut, and adds to one accumulator several times."""
    x = fnp.array(np.arange(1.0, 9.0, dtype=np.float32))
    found, expected = (np.asarray(f(x)) for f in (fgrad.jit(function), function))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
