"""Polynomials, convolution, integration, covariance and counting agree with NumPy."""

import warnings

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, jit, vmap
from fgrad.errors import ArgumentError, DtypeError
from fgrad.scipy.special import logsumexp

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


def test_vectors_before_a_matrix_are_conjugated():
    v, m = np.array([[1j, 1], [2, 1 - 1j]]), np.array([[1.0, 2], [3, 4j]])
    np.testing.assert_allclose(fnp.vecmat(v, m), np.vecmat(v, m))
    np.testing.assert_allclose(np.vecmat(fnp.array(v), fnp.array(m)), np.vecmat(v, m))


@pytest.mark.parametrize("mode", ["bogus", ("clip", "wrap")])
def test_modes_of_flat_indices_are_three(mode):
    with pytest.raises(ArgumentError, match="ravel_multi_index has no mode"):
        fnp.ravel_multi_index((fnp.array([5]), fnp.array([7])), (2, 3), mode=mode)


@pytest.mark.parametrize("count", [None, 12, 8, 3, 0, -2])
def test_bits_beyond_the_bytes_are_zeros(count):
    x = np.array([[3, 129], [7, 0]], "uint8")
    for axis in (0, 1):
        np.testing.assert_array_equal(fnp.unpackbits(fnp.array(x), axis=axis, count=count),
                                      np.unpackbits(x, axis=axis, count=count))


@pytest.mark.parametrize("values", [np.arange(6.0).reshape(2, 3), np.arange(3.0).reshape(3, 1), 7.0,
                                    np.arange(3.0)])
def test_rows_before_one_place_are_as_many_as_there_are(values):
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(fnp.insert(x, 1, values, axis=1), np.insert(x, 1, values, axis=1))


def test_no_places_are_places():
    x = fnp.arange(3.0)
    assert fnp.array_equal(fnp.delete(x, []), x) and fnp.array_equal(fnp.insert(x, [], 5.0), x)


@pytest.mark.parametrize("name", ["tril_indices_from", "triu_indices_from"])
def test_places_of_a_triangle_are_known_by_the_shape(name):
    x = np.arange(12.0).reshape(3, 4)
    places = getattr(fnp, name)
    want = x[getattr(np, name)(x, 1)]
    np.testing.assert_array_equal(jit(lambda x: x[places(x, 1)])(x), want)
    np.testing.assert_array_equal(vmap(lambda x: x[places(x, 1)])(x[None])[0], want)


def test_setters_take_complex_numbers():
    x, i = fnp.zeros(3, "complex64"), fnp.array([0, 2, 0])
    for run in (lambda f: f, jit):
        found = run(lambda x: x.at[i].set(fnp.array([1 + 1j, 2, 3j])))(x)
        np.testing.assert_array_equal(found, np.array([3j, 0, 2]))
        filled = run(lambda m: fnp.fill_diagonal(m, 2j, inplace=False))
        found = filled(fnp.zeros((2, 2), "complex64"))
        np.testing.assert_array_equal(found, np.diag([2j, 2j]))
    slope = grad(lambda u: fnp.sum(fnp.abs(x.at[fnp.array([1, 2])].set(u * (1 + 2j))) ** 2))
    np.testing.assert_allclose(slope(fnp.array([1.0, 3.0])), [10, 30], rtol=1e-6)


def test_spread_of_too_few_is_nan_where_nan_is_left_out():
    x = np.array([[1.0, 2, np.nan, np.nan], [1, 2, 3, np.nan]])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ddof in (0, 2, 3, 5):
            for f in ("nanvar", "nanstd"):
                np.testing.assert_allclose(getattr(fnp, f)(x, axis=1, ddof=ddof),
                                           getattr(np, f)(x, axis=1, ddof=ddof))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cube_roots_are_right_to_the_last_place(dtype):
    """The error of 1/3, times the exponent: 118 units at 1e-300."""
    limits = np.finfo(dtype)
    x = np.geomspace(limits.tiny / 100, limits.max * 0.9, 2001).astype(dtype)
    x = np.concatenate([x, -x, np.array([0.0, np.inf, -np.inf], dtype)])
    found, want = np.asarray(jit(fnp.cbrt)(x)), np.cbrt(x)
    np.testing.assert_array_max_ulp(found[np.isfinite(x)], want[np.isfinite(x)], 2)
    np.testing.assert_array_equal(found[-3:], want[-3:])


def test_derivatives_of_polynomials_of_16_bits():
    assert fnp.polyder(fnp.ones(3, "bfloat16")).tolist() == [2, 1]
    assert fnp.polyint(fnp.ones(2, "bfloat16")).tolist() == [0.5, 1, 0]


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_a_spread_has_no_dtype_of_integers(name):
    with pytest.raises(DtypeError, match="is computed with floats"):
        getattr(fnp, name)(fnp.array([1.0, 2.0]), dtype="int8")


def test_logsumexp_takes_complex_numbers():
    x = np.array([1j, 800 + 2j, 799])
    want = 800 + np.log(np.exp(x - 800).sum())
    assert logsumexp(x) == pytest.approx(want) and jit(logsumexp)(x) == pytest.approx(want)
