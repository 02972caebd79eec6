"""Sorting: stable, several keys, NaN last, and tangents that move along."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ops
from fgrad.core import Array
from fgrad.interpreters.backward import pullback
from fgrad.types import LONG


def A(values, dtype=np.float64):
    return Array(np.asarray(values, dtype))


def test_equal_keys_keep_their_order():
    assert ops.order(A([1, 0, 1, 0], np.int32), axis=0).np.tolist() == [1, 3, 0, 2]


def test_the_first_key_decides_first():
    places = ops.order(A([1, 0, 1, 0], np.int32), A([5.0, 8.0, 3.0, 2.0]), axis=0)
    assert places.np.tolist() == [3, 1, 2, 0]


def test_nan_is_last():
    out = ops.sort(A([np.nan, 1.0, -np.inf]), axis=0)
    np.testing.assert_array_equal(out.np, [-np.inf, 1, np.nan])


def test_cotangents_go_back_to_where_the_elements_were():
    x = A([3.0, 1.0, 2.0])
    out = ops.sort(x, axis=0)
    (ct,) = pullback(ops.sort, A([10.0, 20.0, 30.0]), out, (x,), (0,), dict(axis=0))
    assert ct.np.tolist() == [30, 10, 20]


ZEROS = [0.0, -0.0, 1.0, -0.0, 0.0, np.nan, -1.0]
SAMPLES = {
    "f16": [*ZEROS, np.inf, -np.inf], "f32": [*ZEROS, np.inf, -np.inf, 1e-45, -1e-45, -np.nan],
    "f64": [*ZEROS, 1e-320], "i8": [-128, 127, 0], "i16": [-2**15, 5], "u16": [0, 2**16 - 1],
    "i32": [-2**31, 2**31 - 1, 0, 7], "u32": [0, 2**32 - 1, 2**31], "bool": [False, True],
    "i64": [-2**63, 2**63 - 1, 0, 2**32], "u64": [0, 2**64 - 1, 2**63],
    "c64": [0.0, -0.0, 1 + 1j, 1 - 1j, complex(np.nan, 0), complex(0, np.nan)]}


@pytest.mark.parametrize("dtype", SAMPLES)
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (1001,), (3, 300), (300, 1), (40, 3, 9)])
def test_values_and_places_are_those_of_numpys_stable_sort(dtype, shape):
    rng = np.random.default_rng(1)
    x = rng.choice(np.array(SAMPLES[dtype], LONG[dtype]), shape)
    for axis in range(x.ndim):
        order = ops.order.numpy(x, axis=axis)
        np.testing.assert_array_equal(order, np.argsort(x, axis, kind="stable"))
        out, want = ops.sort.numpy(x, axis=axis), np.sort(x, axis, kind="stable")
        np.testing.assert_array_equal(out, want)
        if x.dtype.kind == "f":
            signed = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(out)[signed], np.signbit(want)[signed])


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64", "u64"])
def test_a_large_vector_is_sorted_stably(dtype):
    x = (np.random.default_rng(2).standard_normal(5001) * 40).astype(LONG[dtype])
    distinct = np.arange(5001)[::-1].astype(x.dtype)
    for keys in (x, distinct):
        order = ops.order.numpy(keys, axis=0)
        np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


def test_three_keys_order_as_numpys_lexsort():
    rng = np.random.default_rng(3)
    a, b, c = [rng.integers(0, 4, (5, 400)).astype(t) for t in ("f4", "i8", "f2")]
    for keys in ((a,), (a, b), (a, b, c)):
        order = ops.order.numpy(*keys, axis=1)
        np.testing.assert_array_equal(order, np.lexsort(keys[::-1], 1))


def test_compiled_sorts_give_the_same():
    x = A(np.random.default_rng(4).standard_normal((4, 501)), np.float32)

    def both(x):
        return fnp.sort(x, 1), fnp.argsort(x, 0)
    for got, want in zip(fgrad.jit(both)(x), both(x)):
        np.testing.assert_array_equal(got.np, want.np)


# ---------------------------------------------------------------------------- short ones, compiled

VALUES = {"f": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5],
          "i": [-2**31, -3, 0, 3, 2**31 - 1]}


@pytest.mark.parametrize("shape, axis", [
    ((1,), 0), ((2,), 0), ((8,), 0), ((33,), 0), ((64,), 0), ((65,), 0), ((3, 9), 1), ((9, 3), 0),
    ((40, 5), 1), ((40, 8), 1), ((17, 22), 1), ((17, 23), 1), ((2, 3, 7), 2), ((0, 4), 1),
    ((1, 4), 0), ((5, 2, 3), 0), ((5, 2, 3), 1), ((22, 40), 0), ((8, 3, 40), 0), ((40, 1, 3), 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_short_sorts_are_stable_and_those_of_numpy(dtype, shape, axis):
    """Compiled, each element goes where as many are before it; NaN is last."""
    rng = np.random.default_rng(sum(shape))
    x = np.asarray(rng.choice(VALUES[np.dtype(dtype).kind], shape)).astype(dtype)
    order = np.argsort(x, axis, kind="stable")
    got = fgrad.jit(lambda x: (fnp.sort(x, axis), fnp.argsort(x, axis)))(x)
    np.testing.assert_array_equal(np.asarray(got[1]), order)
    want = np.take_along_axis(x, order, axis)
    np.testing.assert_array_equal(np.asarray(got[0]), want)
    np.testing.assert_array_equal(np.signbit(got[0]), np.signbit(want))


def test_short_sorts_carry_other_arrays_and_tangents_along():
    x = fnp.array(np.random.default_rng(0).permutation(12).reshape(2, 6), "float32")
    weights, other = fnp.arange(1.0, 7.0), fnp.arange(12).reshape(2, 6)
    sort = lambda x: fgrad.lax.sort_key_val(x, other)
    for got, want in zip(fgrad.jit(sort)(x), sort(x)):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    slope = fgrad.grad(lambda x: (fnp.sort(x) * weights).sum())
    np.testing.assert_array_equal(np.asarray(fgrad.jit(slope)(x)), np.asarray(slope(x)))


def test_ranks_in_a_loop():
    def step(c, _):
        return c + fnp.argsort(fnp.argsort(c)) * 0.01, fnp.sort(c)[:3]

    def run(x):
        return fgrad.lax.scan(step, x, None, length=20)
    x = np.random.default_rng(0).standard_normal(20).astype("float32")
    for got, want in zip(fgrad.jit(run)(x), run(x)):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zeros_keep_their_signs(dtype):
    """With AVX2 NumPy 2.4 sorts the first zero of these nine to a positive one."""
    few = [-0.0, 1.0, -1.0, -1.0, 0.0, 0.0, -1.0, -1.0, 0.0]
    for n in (9, 40, 300, 3000):
        x = np.resize(np.array(few, dtype), n)
        want = np.sort(x, kind="stable")
        for sort in (fnp.sort, fgrad.jit(fnp.sort)):
            np.testing.assert_array_equal(np.signbit(sort(fnp.asarray(x))), np.signbit(want))
