"""Sorting by bytes, in machine code: NumPy's stable order, whatever the rows and the threads."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrad import config
from fgrad.backends.llvm import host, quick_text, radix

DTYPES = ["f4", "i4", "u4", "f8", "i8", "u8"]
SHAPES = [(1, 1), (1, 2), (3, 1), (5, 17), (2, 65), (2, 200), (2, 257), (1, 1001), (7, 300),
          (3, 4099)]


@pytest.fixture(params=["counts", "compresses", "orders"], autouse=True)
def way(request, monkeypatch):
    """Counting bytes, and comparing vectors: long ones, which every processor can compress, if
    slowly, and short ones, whose lanes AVX2 has an instruction to bring in order.
    """
    if request.param == "orders" and radix.HOST.vector_bytes < radix.LEAST:
        pytest.skip("has no AVX2")
    anew(monkeypatch, request.param)
    return request.param


def anew(monkeypatch, way):
    """Machine code is made for this test; that of other tests stays."""
    monkeypatch.setattr(radix, "COMPARES", frozenset(radix.KINDS if way != "counts" else ()))
    monkeypatch.setattr(radix, "VECTOR", radix.LEAST if way == "orders" else quick_text.COMPRESSES)
    for name in ("text", "loaded", "function"):
        monkeypatch.setattr(radix, name, functools.cache(getattr(radix, name).__wrapped__))


def drawn(rng, shape, dtype, spread):
    """Numbers without NaN or -0.0: all bytes differ, or all but one are the same, or all are."""
    x = {"wide": rng.normal(size=shape) * 3e8, "narrow": rng.integers(0, 200, shape),
         "same": np.full(shape, 77), "tied": rng.integers(0, 3, shape) * 10**6}[spread]
    return np.ascontiguousarray(np.abs(x) if dtype[0] == "u" else x - 50).astype(dtype)


def sorted_by_bytes(x):
    out = np.full_like(x, 7)
    radix.values(x, out)
    return out


def ordered(x, given):
    """What NumPy makes of places in the stable order of what lies at them."""
    order = np.argsort(np.take_along_axis(x, given, -1), -1, kind="stable")
    return np.take_along_axis(given, order, -1)


@pytest.mark.parametrize("threads", [1, 2, 3, 40])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_sorted_as_numpy_sorts_them(monkeypatch, dtype, threads):
    monkeypatch.setattr(config, "threads", lambda: threads)
    monkeypatch.setattr(radix, "MANY", 100)      # so that short rows are cut
    rng = np.random.default_rng(threads)
    for shape in SHAPES:
        for spread in ("wide", "narrow", "same", "tied"):
            x = drawn(rng, shape, dtype, spread)
            before = x.copy()
            np.testing.assert_array_equal(sorted_by_bytes(x), np.sort(x, -1))
            np.testing.assert_array_equal(x, before)
            if x.itemsize == 4:
                mixed = np.argsort(rng.random(shape), -1)
                np.testing.assert_array_equal(radix.places(x), np.argsort(x, -1, kind="stable"))
                np.testing.assert_array_equal(radix.places(x, mixed), ordered(x, mixed))


@pytest.mark.parametrize("threads", [1, 2])
def test_of_floats_nan_and_zeros_are_equal_to_themselves(monkeypatch, threads):
    monkeypatch.setattr(config, "threads", lambda: threads)
    monkeypatch.setattr(radix, "MANY", 100)
    rng = np.random.default_rng(3)
    odd = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 2.0], "f4")
    for shape in SHAPES:
        x = rng.choice(odd, shape)
        np.testing.assert_array_equal(radix.places(x), np.argsort(x, -1, kind="stable"))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_values_are_in_the_order_of_all_bits(dtype):
    x = np.array([[np.nan, -0.0, 0.0, -np.nan, -np.inf, np.inf, -1.0, 1.0]], dtype)
    out = sorted_by_bytes(x)
    np.testing.assert_array_equal(np.signbit(out[0]), [1, 1, 1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(out[0], [np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan])


@given(st.lists(st.integers(-2**63, 2**63 - 1), min_size=1, max_size=70))
def test_integers_of_any_bytes(numbers):
    x = np.array([numbers], np.int64)
    np.testing.assert_array_equal(sorted_by_bytes(x), np.sort(x, -1))
    x = x.astype(np.int32)
    np.testing.assert_array_equal(radix.places(x), np.argsort(x, -1, kind="stable"))


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_bad_pivots_end_in_the_radix_sort(monkeypatch, way, dtype):
    """With no depth left after the first pivot every row ends there."""
    monkeypatch.setattr(quick_text, "DEPTH", 0)
    anew(monkeypatch, way)
    rng = np.random.default_rng(5)
    for n in (128, 129, 5000):
        for spread in ("wide", "narrow", "same"):
            x = drawn(rng, (2, n), dtype, spread)
            np.testing.assert_array_equal(sorted_by_bytes(x), np.sort(x, -1))


@pytest.mark.parametrize("shape", [lambda n: np.arange(n), lambda n: np.arange(n)[::-1],
                                   lambda n: np.abs(np.arange(n) - n // 2),
                                   lambda n: np.arange(n) % 2, lambda n: np.arange(n) * 7919 % n,
                                   lambda n: np.where(np.arange(n) % (n // 16) < 9, 0, n)])
def test_rows_in_some_order(shape):
    for dtype in ("i4", "u4", "u8"):
        x = np.stack([shape(70_000), shape(70_000) // 5]).astype(dtype)
        np.testing.assert_array_equal(sorted_by_bytes(x), np.sort(x, -1))


def test_one_thread_leaves_values_to_numpy_where_that_is_as_quick(monkeypatch, way):
    """Where it compares vectors, all but many elements of 32 bits in vectors of 64 bytes."""
    x = np.empty((3, 2 * radix.MANY), "f4")
    alone = way in ("counts", "compresses")
    for threads in (1, 2):
        monkeypatch.setattr(config, "threads", lambda: threads)
        assert radix.is_faster(x) == (alone or threads == 2)
        assert radix.is_faster(x.view("f8")) == (way == "counts" or threads == 2)
        assert radix.is_faster(x[:1, :-1]) == alone
        assert radix.is_faster(x[:1, :radix.ALONE - 1]) == (way == "counts")


def test_memory_is_kept_for_the_next_sort_but_not_much_of_it(monkeypatch):
    monkeypatch.setattr(radix, "_spare", [])
    x = np.arange(1000, dtype="i4")[None, ::-1].copy()
    sorted_by_bytes(x)
    assert [m.size for m in radix._spare] == [4000]
    sorted_by_bytes(x[:, :10].copy())
    assert [m.size for m in radix._spare] == [4000]
    monkeypatch.setattr(radix, "KEPT", 100)
    sorted_by_bytes(x)
    assert radix._spare == []


def test_processors_compare_where_counting_is_slower():
    def kinds(cpu, vector_bytes):
        return radix.compared(host.Host(cpu, "", "", vector_bytes, 32, ""))
    assert kinds("sapphirerapids", 64) == frozenset(radix.KINDS)
    assert kinds("znver5", 64) == {"short", "long"}
    assert kinds("znver3", 32) == kinds("haswell", 32) == {"short", "long"}
    assert kinds("znver4", 64) == kinds("nehalem", 16) == frozenset()
