"""Reductions over windows: values, ties, overlaps, gradients, at once and compiled."""

import functools
import itertools

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ops
from fgrad.convolution import reduce_window
from fgrad.errors import ArgumentError, ShapeError
from tests.tolerance import assert_close

REDUCE = {"max": np.max, "min": np.min, "sum": np.sum}
IDENTITY = {"max": -np.inf, "min": np.inf, "sum": 0}


def by_loops(x, how, window, stride, padding, dilation):
    """x[h,w] reduced window by window."""
    x = np.pad(x, padding, constant_values=IDENTITY[how])
    sizes = [max(0, (n - (k - 1) * d - 1) // s + 1)
             for n, k, s, d in zip(x.shape, window, stride, dilation)]
    out = np.empty(sizes, x.dtype)
    for i, j in np.ndindex(*sizes):
        part = x[i * stride[0]:, j * stride[1]:][:(window[0] - 1) * dilation[0] + 1:dilation[0],
                                                 :(window[1] - 1) * dilation[1] + 1:dilation[1]]
        out[i, j] = REDUCE[how](part)
    return out


COMBINATIONS = list(itertools.product(
    ["max", "min", "sum"], [(2, 2), (3, 1), (7, 7)], [(1, 1), (2, 3)],
    [((0, 0), (0, 0)), ((1, 0), (2, 1))],
    [(1, 1), (1, 2)]))


@pytest.mark.parametrize("how,window,stride,padding,dilation", COMBINATIONS)
def test_values_and_gradients_agree_with_a_loop_and_finite_differences(how, window, stride, padding,
                                                                       dilation):
    x = np.random.default_rng(3).permutation(99).reshape(9, 11) / 100

    def function(x):
        return reduce_window(x, how, window, stride, padding, dilation)

    want = by_loops(x, how, window, stride, padding, dilation)
    assert_close(np.asarray(function(x)), want, length=49)
    assert_close(np.asarray(fgrad.jit(function)(x)), want, length=49)

    def loss(x):
        y = function(x)                      # windows that hold padding only have no gradient
        return fnp.sum(fnp.sin(fnp.where(fnp.isfinite(y), y, 0.0)))
    fgrad.check_grads(loss, (x,))
    assert_close(np.asarray(fgrad.jit(fgrad.grad(loss))(x)), np.asarray(fgrad.grad(loss)(x)),
                 length=49)


@pytest.mark.parametrize("how", ["max", "min"])
def test_the_gradient_of_an_extreme_goes_to_the_first_of_ties(how):
    for function in (fgrad.grad, lambda f: fgrad.jit(fgrad.grad(f))):
        got = function(lambda x: fnp.sum(reduce_window(x, how, (2, 2), 2)))(fnp.ones((4, 4)))
        assert np.asarray(got).tolist() == [[1, 0, 1, 0], [0] * 4, [1, 0, 1, 0], [0] * 4]


def test_overlapping_windows_add_their_gradients():
    gradient = fgrad.grad(lambda x: fnp.sum(reduce_window(x, "max", (3,))))
    got = fgrad.jit(gradient)(fnp.array([0.0, 1, 5, 2, 3]))
    assert got.tolist() == [0, 0, 3, 0, 0]


def test_nan_is_the_extreme_of_its_windows():
    x = fnp.array([1.0, np.nan, 2, 3])
    for function in (reduce_window, fgrad.jit(reduce_window, static_argnames=("how", "window"))):
        assert np.isnan(function(x, "max", (2,))).tolist() == [True, True, False]
    got = fgrad.grad(lambda x: fnp.sum(reduce_window(x, "max", (2,))))(x)
    assert got.tolist() == [0, 2, 0, 1]


@pytest.mark.parametrize("shape,window", [((0,), (2,)), ((1,), (2,)), ((1,), (1,)), ((3,), (3,))])
def test_small_sizes(shape, window):
    x = np.ones(shape, "f4")
    for how in REDUCE:
        loss = lambda x: fnp.sum(reduce_window(x, how, window))
        count = max(0, shape[0] - window[0] + 1)
        assert reduce_window(x, how, window).shape == (count,) == fgrad.jit(
            lambda x: reduce_window(x, how, window))(x).shape
        assert fgrad.jit(fgrad.grad(loss))(x).shape == shape


def test_overlapping_windows_after_each_other_stay_small_programs():
    def deep(x):
        for _ in range(6):
            x = reduce_window(fnp.tanh(x), "sum", (3, 3), padding=1) / 9
        return x
    x = np.random.default_rng(0).standard_normal((8, 9)).astype("f4")
    assert_close(np.asarray(fgrad.jit(deep)(x)), np.asarray(deep(x)), length=60)
    assert len(fgrad.show(deep, x, stage="loops")) < 20_000


def test_vmap_is_a_loop():
    x = np.random.default_rng(1).standard_normal((3, 6, 5)).astype("f4")
    function = lambda x: fgrad.grad(lambda x: fnp.sum(reduce_window(x, "max", (2, 3), 2) ** 2))(x)
    got = fgrad.jit(fgrad.vmap(function))(x)
    assert_close(np.asarray(got), np.stack([np.asarray(function(row)) for row in x]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "bool"])
def test_windows_of_integers_may_be_padded(dtype):
    x = np.random.default_rng(2).integers(0, 2 if dtype == "bool" else 100, (6, 5)).astype(dtype)
    x = x if dtype[0] in "ub" else -x
    limits = (False, True) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for how, value in zip(("max", "min"), limits):
        wide = np.pad(x, 1, constant_values=value)
        seen = np.lib.stride_tricks.sliding_window_view(wide, (3, 2))[::2]
        f = functools.partial(reduce_window, how=how, window=(3, 2), stride=(2, 1), padding=1)
        for got in (f(x), fgrad.jit(f)(x)):
            assert_close(np.asarray(got), getattr(seen, how)((2, 3)))


def test_errors_say_what_does_not_fit():
    with pytest.raises(ArgumentError, match="reduce_window has no 'mean'"):
        reduce_window(fnp.ones(3), "mean", (2,))
    with pytest.raises(ArgumentError, match="window needs an int of at least 1, or 2 of them"):
        reduce_window(fnp.ones((3, 3)), "sum", (2,))
    with pytest.raises(ArgumentError, match="stride needs an int of at least 1"):
        reduce_window(fnp.ones(3), "sum", (2,), 0)
    with pytest.raises(ShapeError, match="one element per window"):
        ops.window_spread(fnp.ones(3), shape=(3,), window=(2,), stride=(1,), dilation=(1,))
