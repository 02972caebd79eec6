"""L-BFGS and Newton-CG reach known minima, by the directions that the books give."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArgumentError, RangeError, optim
from fgrad.optim.full_batch import Pairs, newton_direction, two_loops, with_pair

BOTH = [optim.minimize_lbfgs, optim.minimize_newton_cg]
RNG = np.random.default_rng(0)


def rosenbrock(x):
    return fnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("minimize", BOTH)
@pytest.mark.parametrize("n", [2, 5, 20])
def test_the_valley_of_rosenbrock(minimize, n):
    start = fnp.full(n, -1.2, dtype="float64").at[1::2].set(1.0)
    for run in (minimize, fgrad.jit(lambda f, x: minimize(f, x, tolerance=1e-8), static_argnums=0)):
        found = run(rosenbrock, start)
        assert bool(found.converged)
        np.testing.assert_allclose(found.params, np.ones(n), atol=1e-4)
        assert int(found.evaluations) > int(found.steps)


@pytest.mark.parametrize("minimize", BOTH)
def test_least_squares_over_a_tree(minimize):
    a, b = RNG.normal(size=(30, 5)), RNG.normal(size=30)

    def loss(p):
        return fnp.mean((a @ p["w"] + p["rest"][0] - b) ** 2)

    found = minimize(loss, {"w": np.zeros(5), "rest": [np.zeros(())]}, tolerance=1e-9)
    want = np.linalg.lstsq(np.column_stack([a, np.ones(30)]), b, rcond=None)[0]
    np.testing.assert_allclose(found.params["w"], want[:5], atol=1e-7)
    np.testing.assert_allclose(found.params["rest"][0], want[5], atol=1e-7)
    np.testing.assert_allclose(found.gradient["w"], np.zeros(5), atol=1e-9)


@pytest.mark.parametrize("minimize", BOTH)
def test_logistic_regression_in_f32(minimize):
    x = RNG.normal(size=(50, 3)).astype("float32")
    y = np.sign(x @ [1.0, -1.0, 0.0] + RNG.normal(size=50)).astype("float32")

    def loss(w):
        return fnp.mean(fnp.logaddexp(0.0, -y * (x @ w))) + 0.01 * fnp.sum(w * w)

    found = minimize(loss, fnp.zeros(3), tolerance=1e-6)
    w = np.zeros(3)
    for _ in range(30):                                    # Newton's method, written out
        p = 1 / (1 + np.exp(y * (x @ w)))
        gradient = -(x.T @ (y * p)) / 50 + 0.02 * w
        hessian = (x.T * (p * (1 - p))) @ x / 50 + 0.02 * np.eye(3)
        w = w - np.linalg.solve(hessian, gradient)
    np.testing.assert_allclose(found.params, w, atol=2e-5)
    assert found.params.dtype == "float32"


@pytest.mark.parametrize("minimize", BOTH)
def test_a_saddle_is_left(minimize):
    found = minimize(lambda p: p[0] ** 2 - p[1] ** 2 + p[1] ** 4, fnp.array([1.0, 1e-3]))
    np.testing.assert_allclose(np.abs(found.params), [0.0, 0.5 ** 0.5], atol=1e-3)


@pytest.mark.parametrize("minimize", BOTH)
def test_a_minimum_is_left_as_it_is(minimize):
    found = minimize(lambda x: fnp.sum(x ** 2), fnp.zeros(3))
    assert int(found.steps) == 0 and bool(found.converged)


@pytest.mark.parametrize("minimize", BOTH)
def test_a_function_without_minimum_ends(minimize):
    found = minimize(lambda x: fnp.sum(x), fnp.zeros(2), max_steps=3)
    assert not bool(found.converged) and int(found.steps) <= 3


@pytest.mark.parametrize("minimize", BOTH)
def test_a_step_into_nan_is_shortened(minimize):
    found = minimize(lambda x: x - fnp.log(x), fnp.array(0.01, "float64"), tolerance=1e-7)
    assert float(found.params) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("minimize", BOTH)
def test_leaves_keep_their_dtypes(minimize):
    found = minimize(lambda p: fnp.sum((p["a"] - 1.0) ** 2) + fnp.sum((p["b"] - 2.0) ** 2),
                     {"a": fnp.zeros(2), "b": fnp.zeros(1, "float64")})
    assert (found.params["a"].dtype, found.params["b"].dtype) == ("float32", "float64")
    np.testing.assert_allclose(found.params["b"], [2.0], atol=1e-4)


def test_two_loops_are_the_product_with_the_inverse_of_bfgs():
    n = 6
    hessian = np.diag(np.arange(1.0, n + 1))
    rows = fnp.zeros((4, n), "float64")
    pairs = Pairs(rows, rows, rows[:, 0])
    changes = RNG.normal(size=(6, n))
    for s in changes:
        pairs = with_pair(pairs, fnp.asarray(s), fnp.asarray(hessian @ s))
    last = changes[-4:]
    y = hessian @ last[-1]
    inverse = (last[-1] @ y) / (y @ y) * np.eye(n)
    for s in last:
        y = hessian @ s
        v = np.eye(n) - np.outer(y, s) / (y @ s)
        inverse = v.T @ inverse @ v + np.outer(s, s) / (y @ s)
    g = RNG.normal(size=n)
    np.testing.assert_allclose(two_loops(fnp.asarray(g), pairs), inverse @ g, rtol=1e-10)


def test_a_pair_without_curvature_is_not_remembered():
    pairs = Pairs(fnp.ones((2, 3)), fnp.ones((2, 3)), fnp.ones(2))
    after = with_pair(pairs, fnp.ones(3), -fnp.ones(3))
    for a, b in zip(after, pairs):
        np.testing.assert_array_equal(a, b)


def test_the_direction_of_newton_solves_its_equation():
    a = RNG.normal(size=(5, 5))
    h = a @ a.T + np.eye(5)

    def quadratic(x):
        return 0.5 * x @ (h @ x)

    x = RNG.normal(size=5) * 1e-9                          # so that the tolerance is tight
    d = newton_direction(quadratic, fnp.asarray(x), fnp.asarray(h @ x), 50)
    np.testing.assert_allclose(np.asarray(d), -x, rtol=1e-2)


def test_newton_goes_downhill_where_the_curvature_is_negative():
    d = newton_direction(lambda x: -fnp.sum(x ** 2), fnp.ones(2), -2 * fnp.ones(2), 50)
    np.testing.assert_allclose(d, [2.0, 2.0])


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match="floats"):
        optim.minimize_lbfgs(lambda x: x, fnp.array([1, 2]))
    with pytest.raises(ArgumentError, match="floats"):
        optim.minimize_lbfgs(lambda x: 0.0, {})
    for options in (dict(memory_size=0), dict(tolerance=-1.0), dict(max_linesearch_steps=0)):
        with pytest.raises(RangeError):
            optim.minimize_lbfgs(lambda x: fnp.sum(x), fnp.ones(2), **options)
