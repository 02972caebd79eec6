"""lax.linalg: the arguments and the order of results that JAX has, and the laws of each."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import check_grads, jit, lax, vmap
from fgrad.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
A = RNG.standard_normal((2, 4, 4)) + 3 * np.eye(4)
S = A @ np.swapaxes(A, -1, -2)


def turned(x):
    return np.swapaxes(np.asarray(x), -1, -2)


@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles_on_either_side(left_side, lower, transpose_a, unit):
    b = RNG.standard_normal((2, 4, 3) if left_side else (2, 3, 4))
    x = lax.linalg.triangular_solve(A, b, left_side=left_side, lower=lower,
                                    transpose_a=transpose_a, unit_diagonal=unit)
    t = np.tril(A) if lower else np.triu(A)
    if unit:
        t = t - t * np.eye(4) + np.eye(4)
    t = turned(t) if transpose_a else t
    np.testing.assert_allclose(t @ x if left_side else x @ t, b, atol=1e-12)


def test_conjugates():
    a, b = A[0] + 1j * np.tril(A[1]), np.ones((4, 1)) + 0j
    x = lax.linalg.triangular_solve(a, b, left_side=True, lower=True, conjugate_a=True)
    np.testing.assert_allclose(np.conj(np.tril(a)) @ np.asarray(x), b, atol=1e-12)


def test_factors_put_the_matrix_together_again():
    l = np.asarray(lax.linalg.cholesky(S))
    np.testing.assert_allclose(l @ turned(l), S)
    half = np.where(np.tri(4, dtype=bool), S, np.nan)
    np.testing.assert_allclose(lax.linalg.cholesky(half, symmetrize_input=False), l)
    v, w = map(np.asarray, lax.linalg.eigh(S))
    np.testing.assert_allclose((v * w[:, None]) @ turned(v), S)
    for lower, triangle in ((True, np.tril), (False, np.triu)):
        v, w2 = map(np.asarray, lax.linalg.eigh(triangle(S), lower=lower, symmetrize_input=False))
        np.testing.assert_allclose(w2, w)
    q, r = map(np.asarray, lax.linalg.qr(A[..., :2]))
    assert q.shape == (2, 4, 4) and r.shape == (2, 4, 2)
    np.testing.assert_allclose(q @ r, A[..., :2], atol=1e-12)
    assert lax.linalg.qr(A[..., :2], full_matrices=False)[0].shape == (2, 4, 2)
    u, s, vt = map(np.asarray, lax.linalg.svd(A))
    np.testing.assert_allclose((u * s[:, None]) @ vt, A)
    np.testing.assert_allclose(lax.linalg.svd(A, compute_uv=False), s)


def test_elimination_and_its_order():
    lu, pivots, order = map(np.asarray, lax.linalg.lu(A[:, ::-1]))
    l, u = np.tril(lu, -1) + np.eye(4), np.triu(lu)
    for k in range(2):
        np.testing.assert_allclose(l[k] @ u[k], A[k, ::-1][order[k]], atol=1e-12)
    np.testing.assert_array_equal(lax.linalg.lu_pivots_to_permutation(pivots, 4), order)
    assert lax.linalg.lu_pivots_to_permutation(np.int32([2, 1]), 4).tolist() == [2, 1, 0, 3]
    found = jit(lax.linalg.lu)(A[:, ::-1])
    np.testing.assert_allclose(found[0], lu, atol=1e-12)
    np.testing.assert_array_equal(found[2], order)


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError):
        lax.linalg.triangular_solve(A, np.ones((2, 3, 3)))
    with pytest.raises(ArgumentError):
        lax.linalg.triangular_solve(A, np.ones((2, 3, 4), "float32"))
    with pytest.raises(ShapeError):
        lax.linalg.lu_pivots_to_permutation(np.int32([0, 1]), 1)
    with pytest.raises(ShapeError):
        lax.linalg.cholesky(fnp.ones((2, 3)))
    with pytest.raises(DtypeError):
        lax.linalg.lu_pivots_to_permutation(np.float32([0, 1]), 2)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 17])
@pytest.mark.parametrize("stack, columns", [((), 1), ((3,), 2), ((2, 0), 1), ((2, 1), 0)])
def test_three_diagonals_are_solved(n, stack, columns):
    rng = np.random.default_rng(n)
    below, on, above = rng.standard_normal((3, *stack, n))     # rows have to change places
    b = rng.standard_normal((*stack, n, columns))
    x = lax.linalg.tridiagonal_solve(below, on, above, b)
    t = np.zeros((*stack, n, n))
    for k in range(n):
        t[..., k, k] = on[..., k]
    for k in range(1, n):
        t[..., k, k - 1], t[..., k - 1, k] = below[..., k], above[..., k - 1]
    np.testing.assert_allclose(t @ np.asarray(x), b, atol=1e-9)


def test_three_diagonals_have_derivatives_and_are_mapped():
    rng = np.random.default_rng(3)
    args = [rng.standard_normal((5, 6)) for _ in range(3)] + [rng.standard_normal((5, 6, 2))]
    args[1] += 4
    solve = lax.linalg.tridiagonal_solve
    np.testing.assert_allclose(vmap(solve)(*args), solve(*args), rtol=1e-12)
    np.testing.assert_allclose(jit(solve)(*args), solve(*args), rtol=1e-12)
    check_grads(solve, [a[0] for a in args], order=2)
    zero = np.zeros_like(args[0])                # what is not read
    moved = [args[0] + (np.arange(6) == 0), args[1], args[2] + (np.arange(6) == 5), args[3]]
    np.testing.assert_array_equal(solve(*moved), solve(*args))
    with np.errstate(all="ignore"):
        assert not np.isfinite(solve(zero, zero, zero, args[3])).any()


@pytest.mark.parametrize("shapes, error, words", [
    (((3,), (3,), (2,), (3, 1)), ShapeError, "as long as b has rows"),
    (((3,), (3,), (3,), (4, 1)), ShapeError, "as long as b has rows"),
    (((3,), (3,), (3,), (3,)), ShapeError, "matrices in the last axes")])
def test_three_diagonals_of_other_shapes_are_refused(shapes, error, words):
    with pytest.raises(error, match=words):
        lax.linalg.tridiagonal_solve(*map(np.ones, shapes))


def test_three_diagonals_of_other_dtypes_are_refused():
    x = np.ones(3, "float32")
    with pytest.raises(ArgumentError, match="of one dtype"):
        lax.linalg.tridiagonal_solve(x, x, x, np.ones((3, 1)))
