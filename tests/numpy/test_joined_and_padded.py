"""`r_` and `c_` join as NumPy's do; what is put around an array is what NumPy puts there."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ArgumentError, ShapeError

X, M = np.arange(3.0, dtype="float32"), np.ones((3, 2), "float32")
JOINED = ["r_[1, 2, 3]", "r_[x, 0, x]", "r_[0:5, 7.5]", "r_[0:1:5j, 2]", "r_[:3, x]", "r_[5:1:-2]",
          "c_[x, x * 2]", "c_[m, x]", "c_[0:3, x]", "c_[5]", "c_[[[1, 2, 3]], 0, 0, [[4, 5, 6]]]",
          "r_[m, m]", "r_['0,2', x, x]", "r_['1,2,0', x, x]", "r_['0,2,1', x, x]", "r_['-1', m, m]",
          "r_['1,3,0', x, x]", "r_['0,3,-2', x, x]", "r_[x]"]


@pytest.mark.parametrize("text", JOINED)
def test_what_stands_in_brackets_is_joined_as_numpy_does(text):
    want = eval(f"np.{text}", {"np": np, "x": X, "m": M})
    for x, m in ((X, M), (fnp.array(X), fnp.array(M))):
        got = eval(f"fnp.{text}", {"fnp": fnp, "x": x, "m": m})
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
        assert got.dtype.kind == want.dtype.kind
    compiled = fgrad.jit(lambda x, m: eval(f"fnp.{text}", {"fnp": fnp, "x": x, "m": m}))(X, M)
    np.testing.assert_array_equal(np.asarray(compiled), np.asarray(got))


def test_columns_have_derivatives():
    slope = fgrad.grad(lambda x: (fnp.c_[x, 2 * x] * fnp.array([1.0, 10.0])).sum())(X)
    assert slope.tolist() == [21.0] * 3


@pytest.mark.parametrize("made", [lambda: fnp.r_["rows", 1], lambda: fnp.c_["1"],
                                  lambda: fnp.r_[1, "0"], lambda: fnp.r_["1,2,3,4", X]])
def test_words_that_join_nothing_are_refused(made):
    with pytest.raises(ArgumentError, match="r_|c_"):
        made()


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 1, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("width", [0, 1, (2, 3), (0, 7)])
def test_a_ramp_is_that_of_numpy(shape, dtype, width):
    x = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    for end in (0, (1, 7), [(2, 3)] * len(shape)):
        want = np.pad(x, width, mode="linear_ramp", end_values=end)
        for f in (fnp.pad, fgrad.jit(fnp.pad, static_argnames=("pad_width", "mode"))):
            got = f(x, pad_width=width, mode="linear_ramp", end_values=end)
            assert got.dtype == x.dtype
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=1e-6)


def test_a_ramp_needs_an_edge_and_ends():
    with pytest.raises(ShapeError, match="empty"):
        fnp.pad(np.ones((0, 2)), 1, mode="linear_ramp")
    with pytest.raises(ShapeError, match="end_values: f64.3."):
        fnp.pad(np.ones((2, 2)), 1, mode="linear_ramp", end_values=np.ones(3))


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 1, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("mode", ["maximum", "mean", "median", "minimum"])
def test_a_statistic_around_is_that_of_numpy(shape, dtype, mode):
    x = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    for width in (0, 1, (2, 3), (0, 7)):
        for length in (None, 1, (2, 1), [(1, 2)] * len(shape), 50):
            want = np.pad(x, width, mode=mode, stat_length=length)
            got = fnp.pad(x, width, mode=mode, stat_length=length)
            assert got.dtype == x.dtype
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    compiled = fgrad.jit(lambda x: fnp.pad(x, 2, mode=mode, stat_length=3))(x)
    np.testing.assert_allclose(np.asarray(compiled), np.pad(x, 2, mode=mode, stat_length=3),
                               rtol=1e-6)


def test_a_statistic_needs_elements():
    for length in (0, -1, 1.5, (1, 2, 3)):
        with pytest.raises(ShapeError, match="stat_length"):
            fnp.pad(np.ones((2, 2)), 1, mode="mean", stat_length=length)
    with pytest.raises(ShapeError, match="empty"):
        fnp.pad(np.ones((0, 2)), 1, mode="maximum")


def test_an_empty_padding_is_of_zeros_and_other_modes_are_named():
    assert fnp.pad([1, 2], 1, mode="empty").tolist() == [0, 1, 2, 0]
    with pytest.raises(ArgumentError, match="mode 'mirror'"):
        fnp.pad([1, 2], 1, mode="mirror")
