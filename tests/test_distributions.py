"""Distributions: the numbers that jax.random draws, moments, compiled and batched forms."""

import math

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import random
from fgrad.errors import GradientError, ShapeError
from tests.messages import message

# (name, arguments behind the key, what jax 0.10 draws with key(1))
DRAWS = [
    ("gamma", (2.0, (3,)), [1.164797, 1.350592, 3.702108]),
    ("gamma", (0.3, (3,)), [0.001680774, 0.3261961, 0.0002114963]),
    ("loggamma", (0.3, (3,)), [-6.388501, -1.120256, -8.461303]),
    ("beta", (2.0, 3.0, (3,)), [0.09734996, 0.1864439, 0.7683221]),
    ("poisson", (3.0, (4,)), [4, 2, 1, 2]),
    ("poisson", (50.0, (4,)), [48, 51, 44, 42]),
    ("t", (3.0, (3,)), [0.837351, -0.6574837, 2.733644]),
    ("f", (3.0, 4.0, (3,)), [4.26084, 2.934563, 0.07806991]),
    ("chisquare", (3.0, (3,)), [1.512538, 1.811553, 5.924829]),
    ("cauchy", ((3,),), [-0.1952162, 0.1064373, -0.1715564]),
    ("logistic", ((3,),), [-0.2467139, 0.1352173, -0.2171763]),
    ("pareto", (2.0, (3,)), [1.334678, 1.464509, 1.343424]),
    ("weibull_min", (2.0, 3.0, (3,)), [1.665394, 1.827591, 1.677861]),
    ("rayleigh", (2.0, (3,)), [2.567634, 2.241111, 2.541841]),
    ("wald", (2.0, (3,)), [0.9584576, 0.7487457, 0.597461]),
    ("maxwell", ((3,),), [0.2225238, 1.284708, 2.382421]),
    ("double_sided_maxwell", (1.0, 2.0, (3,)), [3.55251, -4.169679, 2.5741]),
    ("geometric", (0.3, (4,)), [3, 2, 3, 3]),
    ("lognormal", (1.0, (3,)), [0.8568973, 1.088398, 0.8728597]),
    ("triangular", (0.0, 1.0, 3.0, (3,)), [1.164733, 1.327432, 1.176682]),
    ("generalized_normal", (3.0, (3,)), [0.3592144, -0.2310944, 0.2299002]),
    ("ball", (3,), [-0.1512913, 0.456546, 0.636299]),
    ("orthogonal", (2,), [-0.7505308, 0.6608353, -0.6608353, -0.7505309]),
]


@pytest.mark.parametrize("name, args, want", DRAWS)
def test_the_numbers_are_those_of_jax(name, args, want):
    got = getattr(random, name)(random.key(1), *args)
    np.testing.assert_allclose(np.ravel(got), want, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("name, args, want", DRAWS)
def test_compiled_they_are_the_same(name, args, want):
    got = fgrad.jit(lambda key: getattr(random, name)(key, *args))(random.key(1))
    np.testing.assert_allclose(np.ravel(got), want, rtol=3e-5, atol=1e-6)


N = 20_000
# name: (arguments behind the key, mean, standard deviation)
MOMENTS = {
    "gamma": ((2.5, (N,)), 2.5, 2.5 ** 0.5),
    "beta": ((2.0, 3.0, (N,)), 0.4, 0.2),
    "poisson": ((3.0, (N,)), 3.0, 3.0 ** 0.5),
    "binomial": ((12.0, 0.3, (N,)), 3.6, 2.52 ** 0.5),
    "t": ((9.0, (N,)), 0.0, (9 / 7) ** 0.5),
    "chisquare": ((4.0, (N,)), 4.0, 8.0 ** 0.5),
    "logistic": (((N,),), 0.0, np.pi / 3 ** 0.5),
    "rayleigh": ((2.0, (N,)), 2 * (np.pi / 2) ** 0.5, (4 - np.pi) ** 0.5 * 2 ** 0.5),
    "maxwell": (((N,),), 2 * (2 / np.pi) ** 0.5, (3 - 8 / np.pi) ** 0.5),
    "wald": ((2.0, (N,)), 2.0, 8.0 ** 0.5),
    "geometric": ((0.3, (N,)), 1 / 0.3, 0.7 ** 0.5 / 0.3),
    "triangular": ((0.0, 1.0, 3.0, (N,)), 4 / 3, (7 / 18) ** 0.5),
    "weibull_min": ((2.0, 1.0, (N,)), 2.0, 2.0),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_mean_and_deviation_are_those_of_the_distribution(name):
    args, mean, deviation = MOMENTS[name]
    x = np.asarray(getattr(random, name)(random.key(7), *args), float)
    assert abs(x.mean() - mean) < 5 * deviation / N ** 0.5
    assert abs(x.std() / deviation - 1) < 0.08


def test_counts_of_classes_add_up_to_the_tries():
    p = fnp.array([0.2, 0.3, 0.5])
    x = np.stack([random.multinomial(random.key(k), 100, p) for k in range(20)])
    assert (x.sum(1) == 100).all() and (x >= 0).all()
    np.testing.assert_allclose(x.mean(0), [20, 30, 50], atol=5)


def test_the_limits_of_binomial_are_exact():
    x = random.binomial(random.key(0), fnp.array([5.0, 5.0, 0.0, -1.0]),
                        fnp.array([0.0, 1.0, 0.5, 0.5]))
    assert x[:3].tolist() == [0, 5, 0] and np.isnan(x[3])


def test_shares_of_dirichlet_add_up_to_one():
    x = random.dirichlet(random.key(0), fnp.array([0.5, 1.0, 4.0]), (6,))
    assert x.shape == (6, 3)
    np.testing.assert_allclose(np.sum(x, -1), 1, rtol=1e-6)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_normal_vectors_have_their_covariance(method):
    cov = np.array([[2.0, 0.6], [0.6, 1.0]], "float32")
    x = random.multivariate_normal(random.key(3), fnp.array([1.0, -1.0]), cov, (N,), method=method)
    np.testing.assert_allclose(np.cov(np.asarray(x).T), cov, atol=0.08)


def test_orthogonal_matrices_are_orthogonal():
    for n, m in ((3, 3), (4, 2), (2, 4)):
        x = np.asarray(random.orthogonal(random.key(0), n, (2,), m=m))
        product = x @ x.mT if n < m else x.mT @ x
        np.testing.assert_allclose(product, np.stack([np.eye(min(n, m))] * 2), atol=1e-5)


def test_points_of_a_ball_lie_in_it():
    x = np.asarray(random.ball(random.key(0), 3, shape=(100,)))
    assert (np.linalg.norm(x, axis=-1) <= 1).all()


def test_batches_of_keys_draw_what_each_key_draws():
    keys = random.split(random.key(0), 3)
    for draw in (lambda k: random.gamma(k, 2.0, (2,)), lambda k: random.poisson(k, 4.0, (2,))):
        each = [draw(random.clone(keys[k])) for k in range(3)]
        np.testing.assert_allclose(fgrad.vmap(draw)(keys), np.stack(each), rtol=1e-5)


# Derivatives at 2.0 with key(3), by jax.
@pytest.mark.parametrize("draw, want", [
    (random.gamma, 0.5755578), (lambda k, a: random.beta(k, a, 2.0), 0.161294),
    (random.t, 0.1886519),
    (lambda k, a: random.dirichlet(k, a * fnp.ones(3))[0], 0.04306706)])
@pytest.mark.parametrize("wrap", [lambda f: f, fgrad.jit])
def test_gamma_numbers_move_with_their_parameter(draw, want, wrap):
    slope = wrap(fgrad.grad(lambda a: draw(random.key(3), a)))
    np.testing.assert_allclose(slope(2.0), want, rtol=2e-4)


def test_the_derivative_of_a_tiny_gamma_number_is_that_of_its_logarithm():
    a = np.float32(1e-3)                             # x = u^(1/a) underflows, log x does not
    x, slope = fgrad.value_and_grad(lambda a: random.loggamma(random.key(3), a))(a)
    np.testing.assert_allclose(slope, -x / a, rtol=0.01)


@pytest.mark.parametrize("wrap", [lambda f: f, fgrad.jit])
def test_a_derivative_through_rejection_is_refused(wrap):
    f = wrap(fgrad.grad(lambda p: random.binomial(random.key(0), 5.0, p / 4)))
    assert message(GradientError, f, 2.0) == """\
random.binomial draws by rejection: there is no derivative by its parameters.

    messages.py:N    function(*args, **kwargs)

  fix        fgrad.stop_gradient(a) holds a parameter constant
             the derivative of a mean E[f(x)] is that of mean(stop_gradient(f(x)) · logpdf(x, a)), \
with x held constant"""


def test_numbers_drawn_by_rejection_are_constants_where_no_derivative_is_wanted():
    draw = lambda a: random.gamma(random.key(0), fgrad.stop_gradient(a)) * a
    assert fgrad.grad(draw)(2.0) == random.gamma(random.key(0), 2.0)
    assert fgrad.grad(lambda a: a * a + 0 * random.poisson(random.key(0), a))(2.0) == 4.0
    assert fgrad.grad(lambda a: a if random.gamma(random.key(0), a) > 0 else 0 * a)(2.0) == 1.0
    assert np.isfinite(fgrad.grad(lambda s: random.rayleigh(random.key(0), s))(2.0))


def test_parameters_that_do_not_fit_the_shape_are_refused():
    with pytest.raises(ShapeError, match="gamma"):
        random.gamma(random.key(0), fnp.ones(3), (2,))
    assert random.gamma(random.key(0), fnp.ones(0)).shape == (0,)


@pytest.mark.parametrize("n, p, dtype", [
    (1e8, 0.5, "float32"), (1.7e7, 0.5, "float32"), (1e12, 1e-11, "float32"),
    (5000, 0.5, "float16"), (3000, 0.5, "float16"), (1000, 0.3, "bfloat16"),
    (300, 0.5, "bfloat16"), (1000, 0.995, "float32"), (40, 0.25, "float64")])
def test_many_tries_are_counted_exactly_whatever_the_dtype(n, p, dtype):
    """They were counted one by one, in the dtype: f16 ends at 2048, and 1e8 took for ever."""
    found = np.asarray(random.binomial(random.key(0), n, p, (4000,), dtype)).astype("float64")
    spread = np.sqrt(n * p * (1 - p))
    digits = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}[dtype]
    assert abs(found.mean() - n * p) < 5 * spread / np.sqrt(4000) + n * p / 2 ** digits
    assert abs(found.std() / spread - 1) < 0.06


@pytest.mark.parametrize("n, p", [(25, 0.4), (30, 0.5), (200, 0.1), (19, 0.5), (60, 0.9)])
def test_each_number_of_successes_is_as_frequent_as_it_should_be(n, p):
    found = np.bincount(np.asarray(random.binomial(random.key(5), n, p, (100_000,))).astype(int),
                        minlength=n + 1)
    want = np.array([math.comb(n, k) * p ** k * (1 - p) ** (n - k) for k in range(n + 1)]) * 1e5
    often = want > 10
    assert ((found - want)[often] ** 2 / want[often]).sum() < 2 * often.sum()
