"""Reductions agree with NumPy over shapes, axes and dtypes."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp

RANDOM = np.random.default_rng(1)
NAMES = "sum prod mean var std max min ptp all any count_nonzero median".split()
DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool"]


def sample(shape, dtype):
    return RANDOM.uniform(0 if dtype[0] == "u" else -2, 2, shape).astype(dtype)


def close(ours, theirs, rtol=2e-6):
    assert ours.shape == np.shape(theirs)
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=rtol,
                               atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_reductions_agree_with_numpy(name, dtype):
    if name == "ptp" and dtype == "bool":
        pytest.skip("NumPy does not subtract bools")
    for shape in [(), (1,), (5,), (2, 3), (2, 1, 4)]:
        x = sample(shape, dtype)
        wide = x if dtype == "bool" else x.astype(float)
        for axis in [None, *range(-len(shape), len(shape))]:
            for keepdims in (False, True):
                ours = getattr(fnp, name)(x, axis=axis, keepdims=keepdims)
                close(ours, getattr(np, name)(wide, axis=axis, keepdims=keepdims))


def test_several_axes_are_reduced_together():
    x = sample((2, 3, 4), "float32")
    for axis in [(0, 2), (-1, 0), (1,), (), (0, 1, 2)]:
        for name in ("sum", "mean", "max", "any", "var", "median"):
            close(getattr(fnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis))


def test_sums_keep_the_dtype_of_32_bits_and_more():
    kept = {d: str(fnp.sum(np.ones(2, d)).dtype) for d in
            ("float16", "float32", "float64", "int32", "int64", "uint32", "bool", "int8", "uint16")}
    assert kept == {"float16": "float16", "float32": "float32", "float64": "float64",
                    "int32": "int32",
                    "int64": "int64", "uint32": "uint32", "bool": "int32", "int8": "int32",
                    "uint16": "uint32"}
    assert fnp.mean([1, 2]).dtype == np.float32
    assert fnp.sum([1, 2], dtype="float64").dtype == np.float64


def test_lists_are_accepted():
    assert fnp.sum([1, 2, 3]).item() == 6
    assert fnp.max([[1.0, 5.0], [2.0, 3.0]], axis=0).tolist() == [2.0, 5.0]


def test_sums_of_nothing():
    empty = np.zeros((0, 3), np.float32)
    assert fnp.sum(empty, 0).tolist() == [0, 0, 0]
    assert fnp.prod(empty).item() == 1
    assert fnp.all(empty).item() and not fnp.any(empty).item()
    assert np.isnan(fnp.mean(empty).item())
    with pytest.raises(TypeError, match="max of no elements is not defined"):
        fnp.max(empty)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_agree_with_numpy(name):
    x = RANDOM.integers(0, 4, (3, 4, 5))
    for axis in [None, 0, 1, -1]:
        for keepdims in (False, True):
            ours = getattr(fnp, name)(x, axis, keepdims=keepdims)
            np.testing.assert_array_equal(np.asarray(ours),
                                          getattr(np, name)(x, axis, keepdims=keepdims))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_reductions_agree_with_numpy(name):
    for shape in [(0,), (1,), (5,), (2, 3)]:
        x = sample(shape, "float32")
        for axis in [None, *range(-len(shape), len(shape))]:
            close(getattr(fnp, name)(x, axis), getattr(np, name)(x, axis))


def test_nan_is_left_out_on_request():
    x = np.array([[1.0, np.nan, 3.0], [np.nan] * 3], np.float32)
    close(fnp.nansum(x, 1), np.nansum(x, 1))
    np.testing.assert_array_equal(np.asarray(fnp.nanmean(x, 1)), [2.0, np.nan])
    np.testing.assert_array_equal(np.asarray(fnp.nanmax(x, 1)), [3.0, np.nan])
    np.testing.assert_array_equal(np.asarray(fnp.nanmin(x, 1)), [1.0, np.nan])


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.3, np.array([0.0, 0.1, 1.0], "float32")], ids=["one", "several"])
def test_the_share_of_a_quantile_may_be_traced(method, q):
    x = sample((5, 3), "float32")
    of = lambda x, q: fnp.quantile(x, q, 0, method=method)
    assert fgrad.jit(of)(x, q).tolist() == of(x, q).tolist()
    assert fgrad.jit(lambda x, q: fnp.percentile(x, q, 0, True, method=method))(
        x, 100 * q).tolist() == fnp.percentile(x, 100 * q, 0, True, method=method).tolist()
    assert fgrad.vmap(lambda q: of(x, q))(np.ravel(q)).tolist() == of(x, np.ravel(q)).tolist()


def test_a_quantile_has_a_derivative_by_its_share_which_is_held_where_it_is_traced():
    of = lambda q: fnp.quantile(fnp.array([1.0, 3.0, 9.0]), q)
    assert fgrad.vmap(fgrad.grad(of))(np.float32([0.25, 0.75])).tolist() == [4.0, 12.0]
    assert fgrad.jit(of)(np.float32([-1.0, 2.0])).tolist() == [1.0, 9.0]


def test_averages_quantiles_and_differences_agree_with_numpy():
    x = RANDOM.normal(size=(4, 5)).astype("float32")
    w = RANDOM.uniform(1, 2, 5).astype("float32")
    close(fnp.average(x, 1, w), np.average(x, 1, w))
    close(fnp.average(x), np.average(x))
    close(fnp.var(x, 0, ddof=1), np.var(x, 0, ddof=1))
    for q in [0.0, 0.3, [0.1, 0.9]]:
        for axis in [None, 0, 1]:
            close(fnp.quantile(x, q, axis), np.quantile(x.astype(float), q, axis))
            close(fnp.quantile(x, q, axis, True),
                  np.quantile(x.astype(float), q, axis, keepdims=True))
    close(fnp.percentile(x, 25), np.percentile(x, 25))
    close(fnp.diff(x, 2, 0), np.diff(x, 2, 0))
    assert np.isnan(fnp.median([1.0, np.nan]).item())


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_methods_of_quantiles_agree_with_numpy(method, axis):
    x = RANDOM.normal(size=(4, 5)).astype("float32")
    gone = np.where(x > 1, np.nan, x)
    for q in [0.0, 0.5, 1.0, [0.3, 0.25, 0.77]]:
        close(fnp.quantile(x, q, axis, method=method),
              np.quantile(x.astype(float), q, axis, method=method))
        close(fnp.nanquantile(gone, q, axis, method=method),
              np.nanquantile(gone.astype(float), q, axis, method=method))
    close(fnp.percentile(x, 30, axis, method=method),
          np.percentile(x.astype(float), 30, axis, method=method))
    close(fnp.nanpercentile(gone, 30, axis, method=method),
          np.nanpercentile(gone.astype(float), 30, axis, method=method))


def test_ends_of_differences_and_corrections_agree_with_numpy():
    x = RANDOM.normal(size=(4, 5)).astype("float32")
    close(fnp.diff(x, prepend=0), np.diff(x, prepend=0))
    close(fnp.diff(x, append=x[:, :2]), np.diff(x, append=x[:, :2]))
    close(fnp.diff(x, 2, 0, 1.5, x[:1]), np.diff(x, 2, 0, 1.5, x[:1]))
    assert fnp.diff(fnp.ones(3, "float16"), prepend=0.5).dtype == np.float16
    close(fnp.var(x, 0, correction=1), np.var(x, 0, ddof=1))
    close(fnp.std(x, correction=2), np.std(x, ddof=2))


def test_sorting_agrees_with_numpy():
    x = RANDOM.integers(0, 5, (3, 6))
    for axis in [None, 0, -1]:
        np.testing.assert_array_equal(np.asarray(fnp.sort(x, axis)), np.sort(x, axis))
        np.testing.assert_array_equal(np.asarray(fnp.argsort(x, axis)),
                                      np.argsort(x, axis, kind="stable"))
    for kind in (None, "stable", "quicksort"):
        np.testing.assert_array_equal(fnp.sort(x, kind=kind, stable=True), np.sort(x))
        np.testing.assert_array_equal(np.argsort(fnp.array(x), kind=kind),
                                      np.argsort(x, kind="stable"))
    down = fnp.argsort(x, descending=True)
    np.testing.assert_array_equal(np.asarray(fnp.take_along_axis(x, down, -1)), -np.sort(-x))
    np.testing.assert_array_equal(np.asarray(down), np.argsort(-x, kind="stable"))


def test_a_deviation_in_half_precision_whose_square_is_too_large():
    assert fnp.std(np.array([0, 1000], "float16")).item() == 500
