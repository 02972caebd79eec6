"""fgrad.numpy.linalg against NumPy's, its derivatives, and under transformations."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((2, 4, 4))
TALL = RNG.standard_normal((5, 3))
POSITIVE = SQUARE @ np.swapaxes(SQUARE, -1, -2) + np.eye(4)


def parts(x):
    return list(x) if isinstance(x, tuple) else [x]


def agree(got, want, rtol=1e-9):
    for x, y in zip(parts(got), parts(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)


ONE = [("det", SQUARE), ("inv", SQUARE), ("slogdet", SQUARE), ("pinv", TALL), ("pinv", TALL.T),
       ("cond", SQUARE), ("matrix_rank", TALL), ("matrix_rank", np.ones((3, 3))), ("qr", TALL),
       ("qr", TALL.T), ("svd", TALL), ("svd", TALL.T), ("eigvalsh", POSITIVE), ("eigh", POSITIVE),
       ("cholesky", POSITIVE), ("det", np.ones((1, 1))), ("det", np.zeros((0, 0))),
       ("inv", np.zeros((0, 0))), ("det", SQUARE[0, :3, :3]), ("slogdet", np.zeros((2, 2)))]


@pytest.mark.parametrize("name, x", ONE)
def test_at_once_and_compiled_it_is_what_numpy_gives(name, x):
    want = getattr(np.linalg, name)(x)
    agree(getattr(fnp.linalg, name)(x), want)
    agree(fgrad.jit(getattr(fnp.linalg, name))(x), want)


@pytest.mark.parametrize("name", ["det", "inv", "slogdet", "pinv", "qr", "eigvalsh", "cholesky"])
def test_numpys_own_function_of_a_value_is_ours(name):
    out = getattr(np.linalg, name)(fnp.asarray(POSITIVE))
    assert all(isinstance(x, fgrad.Array) for x in parts(out))


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_every_norm_of_matrices_is_numpys(ord, keepdims):
    got = fnp.linalg.norm(SQUARE, ord, (0, 2), keepdims)
    agree(got, np.linalg.norm(SQUARE, ord, (0, 2), keepdims))
    agree(fnp.linalg.norm(TALL, ord), np.linalg.norm(TALL, ord))


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, "fro", np.inf, -np.inf])
def test_every_condition_number_is_numpys(p):
    agree(fnp.linalg.cond(SQUARE, p), np.linalg.cond(SQUARE, p))


@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 4, 3), (1, 4, 1)])
def test_solve_takes_vectors_and_stacks(shape):
    b = RNG.standard_normal(shape)
    agree(fnp.linalg.solve(SQUARE, b), np.linalg.solve(SQUARE, b))


def test_least_squares_gives_what_numpy_gives():
    b = RNG.standard_normal((5, 2))
    agree(fnp.linalg.lstsq(TALL, b), np.linalg.lstsq(TALL, b))
    agree(fnp.linalg.lstsq(TALL, b[:, 0]), np.linalg.lstsq(TALL, b[:, 0]))
    agree(fnp.linalg.lstsq(TALL.T, b[:3])[0], np.linalg.lstsq(TALL.T, b[:3])[0])


def test_tensor_equations_are_solved_as_numpy_does():
    a, b = RNG.standard_normal((2, 3, 6)), RNG.standard_normal((2, 3))
    agree(fnp.linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b))
    a = RNG.standard_normal((4, 6, 8, 3))
    agree(fnp.linalg.tensorinv(a), np.linalg.tensorinv(a))


def test_matrix_power_inverts_for_negative_powers():
    agree(fnp.linalg.matrix_power(SQUARE, -2), np.linalg.matrix_power(SQUARE, -2))


DERIVATIVES = {
    "det": (fnp.linalg.det, SQUARE),
    "small det": (fnp.linalg.det, np.array([[1.0, 2.0], [2.0, 4.0]])),
    "slogdet": (lambda x: fnp.linalg.slogdet(x)[1], SQUARE),
    "inv": (fnp.linalg.inv, SQUARE),
    "pinv": (fnp.linalg.pinv, TALL),
    "wide qr": (fnp.linalg.qr, TALL.T),
    "svdvals": (fnp.linalg.svdvals, TALL),
    "eigh": (fnp.linalg.eigvalsh, POSITIVE),
    "cholesky": (fnp.linalg.cholesky, POSITIVE),
    "nuclear": (lambda x: fnp.linalg.norm(x, "nuc"), TALL),
    "lstsq": (lambda x: fnp.linalg.lstsq(x, TALL[:, 0])[0], TALL),
    "cond": (fnp.linalg.cond, SQUARE),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_agree_with_finite_differences(name):
    function, x = DERIVATIVES[name]
    fgrad.check_grads(function, (x,))


def test_the_trace_of_equal_eigenvalues_has_its_derivative():
    out = fgrad.grad(lambda x: fnp.linalg.eigvalsh(x).sum())(np.eye(3))
    np.testing.assert_array_equal(out, np.eye(3))


def test_half_precision_is_computed_in_single():
    out = fnp.linalg.inv(np.eye(2, dtype="float16") * 2)
    assert out.dtype == np.float16 and out.tolist() == [[0.5, 0], [0, 0.5]]


def test_the_other_triangle_is_read_where_asked():
    x = np.array([[2.0, 9.0], [1.0, 3.0]])
    agree(fnp.linalg.eigh(x, symmetrize_input=False)[0], np.linalg.eigh(x)[0])
    agree(fnp.linalg.eigvalsh(x, "U", False), np.linalg.eigvalsh(x, "U"))


def test_what_is_no_square_is_refused_by_name():
    for name in ("det", "inv", "cholesky", "eigh", "slogdet"):
        with pytest.raises(ShapeError, match=name):
            getattr(fnp.linalg, name)(TALL)
    with pytest.raises(ArgumentError):
        fnp.linalg.qr(TALL, "raw")


def test_eigenvalues_of_any_matrix_are_those_of_numpy():
    x = np.random.default_rng(3).standard_normal((2, 4, 4))
    w, v = fnp.linalg.eig(x)
    assert w.dtype == v.dtype == "complex128"
    np.testing.assert_allclose(np.asarray(x @ v), np.asarray(v * w[:, None, :]), atol=1e-12)
    want = np.linalg.eigvals(x)
    for made in (fnp.linalg.eigvals, fgrad.jit(fnp.linalg.eigvals), fgrad.vmap(fnp.linalg.eigvals)):
        np.testing.assert_allclose(made(x), want, rtol=1e-12)
    spread = lambda x: fnp.sum(fnp.abs(fnp.linalg.eigvals(x)) ** 2)
    fgrad.check_grads(spread, (x[0],), order=1)


def test_roots_are_where_the_polynomial_is_zero():
    for p in ([2.0, -3.0, 1.0, 5.0], [0.0, 1.0, 0.0, 1.0, 0.0, 0.0], [3.0], [0.0], [1.0, 0.0]):
        got = np.sort_complex(np.asarray(fnp.roots(np.array(p))))
        np.testing.assert_allclose(got, np.sort_complex(np.roots(p)), rtol=1e-12, atol=1e-12)
    plain = fgrad.jit(lambda p: fnp.roots(p, strip_zeros=False))
    np.testing.assert_allclose(plain(np.array([1.0, 2.0, 5.0])), np.roots([1.0, 2.0, 5.0]))


def test_half_precision_is_kept_by_solutions():
    a, b = fnp.array([[2, 1], [1, 3]], dtype="float16"), fnp.array([3, 4], dtype="float16")
    assert fnp.linalg.solve(a, b).dtype == np.float16
    x, residuals, _, s = fnp.linalg.lstsq(a, b)
    assert {v.dtype for v in (x, residuals, s)} == {np.dtype("float16")}
    assert np.allclose(np.asarray(x, float), [1, 1], atol=1e-2)


@pytest.mark.parametrize("shape", [(2, 3, 3), (3, 4), (2, 5, 4, 3), (2, 0, 3)])
@pytest.mark.parametrize("offset", [0, 1, -1])
def test_diagonals_of_stacks_are_those_of_their_matrices(shape, offset):
    """Of the last two axes, in linalg; they were np.diagonal's, of the first two."""
    x = np.arange(float(np.prod(shape))).reshape(shape)
    for name in ("diagonal", "trace"):
        want = getattr(np.linalg, name)(x, offset=offset)
        np.testing.assert_array_equal(getattr(fnp.linalg, name)(x, offset=offset), want)
        np.testing.assert_array_equal(getattr(np.linalg, name)(fnp.array(x), offset=offset), want)
