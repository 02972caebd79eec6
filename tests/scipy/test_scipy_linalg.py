"""fgrad.scipy.linalg against NumPy and known results."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import check_grads
from fgrad.errors import ArgumentError, DtypeError, ShapeError
from fgrad.scipy import linalg

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 4))
POSITIVE = X @ X.T + np.eye(4)
B = RNG.standard_normal((4, 2))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, "T"])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles_are_solved(lower, trans, unit):
    a = np.tril(X) if lower else np.triu(X)
    if unit:
        a = a - np.diag(np.diag(a)) + np.eye(4)
    a = a if trans == 0 else a.T
    for b in (B, B[:, 0]):
        got = linalg.solve_triangular(X, b, trans, lower, unit)
        np.testing.assert_allclose(got, np.linalg.solve(a, b), rtol=1e-9)


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_factors_solve(lower):
    factor = linalg.cho_factor(POSITIVE, lower)
    np.testing.assert_allclose(linalg.cho_solve(factor, B), np.linalg.solve(POSITIVE, B))
    np.testing.assert_allclose(linalg.solve(POSITIVE, B, assume_a="pos"),
                               np.linalg.solve(POSITIVE, B))
    c = np.asarray(factor[0])
    np.testing.assert_allclose(c @ c.T if lower else c.T @ c, POSITIVE)


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_the_exponential_of_a_symmetric_matrix_is_that_of_its_eigenvalues(size):
    s = size * (X + X.T) / 4
    w, v = np.linalg.eigh(s)
    np.testing.assert_allclose(linalg.expm(s), (v * np.exp(w)) @ v.T, rtol=1e-11, atol=1e-11)


def test_the_exponential_of_a_stack_scales_each_matrix_by_itself():
    stack = np.stack([0.01 * X, 5 * X])
    each = [linalg.expm(x) for x in stack]
    np.testing.assert_allclose(linalg.expm(stack), np.stack(each), rtol=1e-12)
    np.testing.assert_allclose(fgrad.jit(linalg.expm)(stack), np.stack(each), rtol=1e-9)


def test_derivatives_agree_with_finite_differences():
    fgrad.check_grads(linalg.expm, (X,))
    fgrad.check_grads(lambda a, b: linalg.solve_triangular(a, b), (np.triu(X) + 3 * np.eye(4), B))


def test_structured_matrices_are_made():
    np.testing.assert_array_equal(linalg.toeplitz(np.array([1, 2, 3]), np.array([1, 8, 9])),
                                  [[1, 8, 9], [2, 1, 8], [3, 2, 1]])
    np.testing.assert_array_equal(linalg.block_diag(np.ones((1, 2)), np.array([[2.0]])),
                                  [[1, 1, 0], [0, 0, 2]])
    np.testing.assert_allclose(linalg.hilbert(2), [[1, 1 / 2], [1 / 2, 1 / 3]], rtol=1e-6)


def test_unknown_options_are_refused():
    with pytest.raises(ArgumentError):
        linalg.solve_triangular(X, B, trans="X")
    with pytest.raises(ArgumentError):
        linalg.qr(X, mode="raw")
    with pytest.raises(ShapeError):
        linalg.solve_triangular(X, B[:3])


def exchanged(n, *lead, dtype="float64"):
    """Matrices whose elimination exchanges rows."""
    rng = np.random.default_rng(n)
    return rng.standard_normal((*lead, n, n)).astype(dtype)


@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
@pytest.mark.parametrize("n", [1, 2, 5, 31, 32, 33, 70])
def test_lu_puts_the_matrix_together_again(n, lead):
    a = exchanged(n, *lead)
    p, l, u = linalg.lu(a)
    np.testing.assert_allclose(p @ l @ u, a, atol=1e-12)
    np.testing.assert_array_equal(fnp.tril(l), l)
    np.testing.assert_array_equal(fnp.triu(u), u)
    assert np.abs(l).max() <= 1 and (np.asarray(p).sum(-1) == 1).all()
    moved, u = linalg.lu(a, permute_l=True)
    np.testing.assert_allclose(moved @ u, a, atol=1e-12)


@pytest.mark.parametrize("trans", [0, 1, "T"])
@pytest.mark.parametrize("lead", [(), (3,)])
@pytest.mark.parametrize("columns", [None, 1, 4])
def test_lu_solve_solves(lead, columns, trans):
    if lead and columns is None:
        lead = ()
    a = exchanged(6, *lead)
    b = np.random.default_rng(0).standard_normal((*lead, 6) if columns is None
                                                 else (*lead, 6, columns))
    x = linalg.lu_solve(linalg.lu_factor(a), b, trans)
    whole = a if trans == 0 else np.swapaxes(a, -1, -2)
    np.testing.assert_allclose(whole @ np.asarray(x), b, atol=1e-10)


def test_the_exchanges_of_lu_are_those_of_lapack():
    """Row 0 with 2, then row 1 with 2 again: rows 2, 0, 1 of the matrix."""
    a = np.array([[1.0, 2, 3], [2, 1, 1], [4, 1, 1]])
    lu, pivots = linalg.lu_factor(a)
    assert pivots.tolist() == [2, 2, 2] and pivots.dtype == "int32"
    np.testing.assert_allclose(lu, [[4, 1, 1], [0.25, 1.75, 2.75], [0.5, 2 / 7, -2 / 7]])


def test_derivatives_of_lu():
    a, b = exchanged(4), np.ones(4)
    check_grads(lambda a: linalg.lu_factor(a)[0], (a,), order=2)
    check_grads(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), (a, b), order=1)
    f = fgrad.grad(lambda a: fnp.sum(linalg.lu_solve(linalg.lu_factor(a), b)**2))
    g = fgrad.grad(lambda a: fnp.sum(fnp.linalg.solve(a, b)**2))
    np.testing.assert_allclose(f(fnp.array(a)), g(fnp.array(a)), rtol=1e-9)


def test_lu_says_what_is_wrong():
    with pytest.raises(ShapeError):
        linalg.lu_factor(np.ones((2, 3)))
    with pytest.raises(ShapeError):
        linalg.lu_solve(linalg.lu_factor(np.eye(3)), np.ones(2))
    with pytest.raises(ShapeError):
        linalg.lu_solve((np.eye(3), np.int32([0, 1])), np.ones(3))
    with pytest.raises(DtypeError):
        linalg.lu_solve((np.eye(3), np.ones(3)), np.ones(3))


Z = (X + 1j * X[::-1] + 4 * np.eye(4)).astype("complex128")
ZB = B + 1j * B[::-1]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans, turned", [("N", lambda a: a), (1, lambda a: a.T),
                                           (2, lambda a: a.conj().T), ("C", lambda a: a.conj().T)])
def test_complex_systems_are_solved_by_triangles(lower, trans, turned):
    """trans=2 was taken for 1, and so every Hermitian system was solved wrong."""
    a = np.tril(Z) if lower else np.triu(Z)
    got = linalg.solve_triangular(Z, ZB, trans, lower)
    np.testing.assert_allclose(got, np.linalg.solve(turned(a), ZB), rtol=1e-9)
    got = linalg.lu_solve(linalg.lu_factor(Z), ZB, trans)
    np.testing.assert_allclose(got, np.linalg.solve(turned(Z), ZB), rtol=1e-9)
    hermitian = Z @ Z.conj().T
    factor = linalg.cho_factor(hermitian, lower)
    np.testing.assert_allclose(linalg.cho_solve(factor, ZB), np.linalg.solve(hermitian, ZB))
    np.testing.assert_allclose(factor[0], np.linalg.cholesky(hermitian) if lower
                               else np.linalg.cholesky(hermitian).conj().T, rtol=1e-9)


def test_the_exponential_of_a_complex_matrix():
    w, v = np.linalg.eig(Z)
    want = (v * np.exp(w)) @ np.linalg.inv(v)
    np.testing.assert_allclose(linalg.expm(Z), want, rtol=1e-10)
    np.testing.assert_allclose(linalg.expm(Z.astype("complex64")), want, rtol=1e-4)
