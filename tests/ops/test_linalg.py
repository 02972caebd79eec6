"""Factorisations and solutions: what the laws of the table do not say."""

import numpy as np
import pytest

import fgrad
from fgrad import ops
from fgrad.core import Array
from fgrad.errors import GradientError, ShapeError


def matrices(*shape, seed=0):
    return Array(np.random.default_rng(seed).standard_normal(shape))


def test_one_matrix_that_has_no_answer_leaves_the_others_of_a_stack_alone():
    good = np.array([[4.0, 2.0], [2.0, 5.0]])
    x = Array(np.stack([good, -good, good]))
    out = ops.cholesky(x).np
    assert np.isnan(out[1]).all()
    np.testing.assert_allclose(out[0] @ out[0].T, good)
    singular = Array(np.stack([good, 0 * good]))
    out = ops.solve(singular, Array(np.ones((2, 2, 1)))).np
    assert np.isfinite(out[0]).all() and np.isnan(out[1]).all()


def test_nan_in_a_matrix_gives_nan_for_it():
    bad = Array(np.full((2, 2), np.nan))
    for op in (ops.cholesky, ops.eigh):
        out = op(bad)
        assert np.isnan((out[0] if isinstance(out, tuple) else out).np).any()
    assert np.isnan(ops.svd(bad)[1].np).all()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("lower", [True, False])
def test_substitution_by_halves_solves_what_the_whole_triangle_says(n, lower):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) / n + np.eye(n)
    b = rng.standard_normal((n, 3))
    x = ops.triangular_solve(Array(a), Array(b), lower=lower, unit=False).np
    triangle = np.tril(a) if lower else np.triu(a)
    np.testing.assert_allclose(triangle @ x, b, atol=1e-11)


def test_qr_needs_rows():
    with pytest.raises(ShapeError):
        ops.qr(matrices(2, 3))


@pytest.mark.parametrize("op", [ops.qr, ops.svd])
def test_additional_columns_have_no_derivative(op):
    with pytest.raises(GradientError):
        fgrad.grad(lambda x: op(x, full=True)[0].sum())(matrices(3, 2))


def test_one_reverse_pass_through_solve_solves_once():
    program = fgrad.make_ir(fgrad.grad(lambda a, b: ops.solve(a, b).sum(), argnums=(0, 1)))(
        matrices(3, 3), matrices(3, 2))
    assert str(program).count("= solve ") == 2


def test_a_solution_under_vmap_and_jit_is_the_loop_of_it():
    a, b = matrices(4, 3, 3), matrices(3, 2, seed=1)
    each = [np.linalg.solve(x, b.np) for x in a.np]
    mapped = fgrad.jit(fgrad.vmap(ops.solve, in_axes=(0, None)))(a, b)
    np.testing.assert_allclose(mapped, np.stack(each), rtol=1e-10)
