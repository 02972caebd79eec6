"""The larger and the smaller of two: of NaN, of zeros, with and without constants."""

import itertools

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp

SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, -3e38)
PAIRS = np.array(list(itertools.product(SPECIAL, SPECIAL)))


def same_floats(got, want):
    """Equal with the signs of zeros; any NaN is as another."""
    got, want = np.asarray(got), np.asarray(want)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


def chosen(how, x, y):
    """x or y by NumPy's rule: NaN of either side, of equal ones the second."""
    first = x > y if how == "maximum" else x < y
    return np.where(first | np.isnan(x), x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("how", ["maximum", "minimum"])
@pytest.mark.parametrize("count", [1, 7, 16, 121])
def test_of_two_arrays(how, dtype, count):
    x, y = PAIRS.astype(dtype).T
    f = fgrad.jit(getattr(fnp, how))
    for start in range(0, len(x) - count + 1, count):
        a, b = x[start:start + count], y[start:start + count]
        same_floats(f(a, b), chosen(how, a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("how", ["maximum", "minimum"])
@pytest.mark.parametrize("number", SPECIAL)
def test_of_a_constant(how, dtype, number):
    x, c = np.resize(np.array(SPECIAL, dtype), 37), np.array(number, dtype)
    op = getattr(fnp, how)
    same_floats(fgrad.jit(lambda x: op(x, number))(x), chosen(how, x, c))
    same_floats(fgrad.jit(lambda x: op(number, x))(x), chosen(how, c, x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 9, 17, 33])
@pytest.mark.parametrize("rows", [1, 8, 17])
def test_where_rows_reach_their_largest(rows, columns, dtype):
    """The last vector has one element, which is compared with one lane of eight rows' largest."""
    x = np.arange(rows * columns, dtype=dtype).reshape(rows, columns)
    largest = fgrad.jit(lambda x: x == fnp.max(x, axis=1, keepdims=True))(x)
    np.testing.assert_array_equal(largest, x == x.max(1, keepdims=True))
    place = fgrad.jit(lambda x: fnp.argmax(fnp.where(x < 0, -fnp.inf, x), axis=1))(x)
    np.testing.assert_array_equal(place, np.full(rows, columns - 1))


@pytest.mark.parametrize("function, comparisons", [
    (lambda x, y: fnp.maximum(x, 0.5), 1), (lambda x, y: fnp.minimum(-2.0, x), 1),
    (lambda x, y: fnp.maximum(x, 0.0), 1),
    (lambda x, y: fnp.clip(x, -1.0, 1.0), 2),
    (lambda x, y: fnp.maximum(x, y), 2)])
def test_a_constant_is_compared_once(function, comparisons):
    """What a NaN in x asks for costs nothing where y is a number."""
    text = fgrad.show(function, fnp.zeros(4), fnp.zeros(4), stage="llvm")
    assert text.count("fcmp") == comparisons, text
