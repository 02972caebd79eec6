"""Polynomials, convolution, integration, covariance and counting agree with NumPy."""

import warnings

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import jit

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(3, 7))
COUNTS = np.array([1, 2, 3, 1, 1, 2, 1])
V, W = RANDOM.normal(size=6), RANDOM.normal(size=3)

SAME = {
    "polyval": lambda n: n.polyval(W, X),
    "polyval_one": lambda n: n.polyval(W[:1], V),
    "cov": lambda n: n.cov(X),
    "cov_columns": lambda n: n.cov(X, rowvar=False),
    "cov_of_two": lambda n: n.cov(X, V[:1] * X[:1], bias=True),
    "cov_of_a_vector": lambda n: n.cov(V),
    "cov_weighted": lambda n: n.cov(X, aweights=X[0] ** 2, fweights=COUNTS),
    "cov_counted": lambda n: n.cov(X, fweights=COUNTS, ddof=0),
    "cov_counting": lambda n: n.cov(X, aweights=X[0] ** 2),
    "corrcoef": lambda n: n.corrcoef(X),
    "corrcoef_of_two": lambda n: n.corrcoef(X[0], X[1]),
    "corrcoef_of_a_vector": lambda n: n.corrcoef(V),
    "full": lambda n: n.convolve(V, W),
    "same": lambda n: n.convolve(V, W, "same"),
    "valid": lambda n: n.convolve(W, V, "valid"),
    "same_even": lambda n: n.convolve(V, V[:4], "same"),
    "one": lambda n: n.convolve(V[:1], W[:1])}


@pytest.mark.parametrize("name", SAME)
def test_values_agree_with_numpy(name):
    ours, theirs = SAME[name](fnp), SAME[name](np)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-12, atol=1e-12)


def test_integrals_of_lines_are_exact():
    x = np.array([0.0, 1.0, 3.0])
    assert fnp.trapezoid(2 * x, x).item() == 9.0
    assert fnp.trapezoid([1.0, 1.0, 1.0], dx=0.5).item() == 1.0
    assert fnp.trapezoid(np.ones((2, 3)), x, axis=1).tolist() == [3.0, 3.0]


def test_counts_agree_with_numpy():
    x = np.array([0, 3, 1, 3])
    assert fnp.bincount(x).tolist() == [1, 1, 0, 2]
    assert fnp.bincount(x, minlength=6).tolist() == [1, 1, 0, 2, 0, 0]
    assert fnp.bincount(x, [1.0, 2.0, 3.0, 4.0]).tolist() == [1.0, 3.0, 0.0, 6.0]
    assert jit(lambda x: fnp.bincount(x, length=3))(x).tolist() == [1, 1, 0]
    with pytest.raises(TypeError, match="bincount needs the largest element"):
        jit(lambda x: fnp.bincount(x))(x)


def test_different_elements_agree_with_numpy():
    x = np.array([3, 1, 3, 2])
    assert fnp.unique(x).tolist() == [1, 2, 3]
    ours, theirs = [n.unique(x, True, True, True) for n in (fnp, np)]
    for a, b in zip(ours, theirs):
        np.testing.assert_array_equal(np.asarray(a), b)
    with pytest.raises(TypeError, match="unique needs values"):
        jit(fnp.unique)(x)


def test_places_of_triangles_and_flat_indices_agree_with_numpy():
    for name, args in [("tril_indices", (3,)), ("triu_indices", (3, 1, 4)),
                       ("unravel_index", (np.array([0, 5, 23]), (2, 3, 4)))]:
        for ours, theirs in zip(getattr(fnp, name)(*args), getattr(np, name)(*args)):
            np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_polynomials_may_have_coefficients_of_their_own_for_each_point():
    p, x = np.arange(12.0).reshape(4, 3), np.array([0.5, -1, 2])
    np.testing.assert_allclose(fnp.polyval(p, x), np.polyval(p, x))


@pytest.mark.parametrize("a, b, axis", [((5, 2), (5, 2), -1), ((2, 4), (2, 4), 0),
                                        ((5, 3), (3,), -1), ((5, 2), (5, 3), -1),
                                        ((3, 4), (2, 4), 0), ((2, 4, 3), (4, 3), -1),
                                        ((2,), (3, 3), -1)])
def test_cross_products_in_space_and_in_the_plane(a, b, axis):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(a), rng.standard_normal(b)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")            # NumPy's, of vectors in the plane
        want = np.cross(x, y, axis=axis)
    np.testing.assert_allclose(fnp.cross(x, y, axis=axis), want)
