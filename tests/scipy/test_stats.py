"""fgrad.scipy.stats against values by another implementation."""

import numpy as np
import pytest

import fgrad
from fgrad.errors import ArgumentError
from fgrad.scipy import stats

# (name, (x, *shapes, loc, scale), logpdf, cdf)
CONTINUOUS = [
    ("norm", (0.3, -1.0, 2.0), -1.8233357137646178, 0.7421538891941353),
    ("uniform", (0.3, 0.0, 2.0), -0.6931471805599453, 0.15),
    ("expon", (1.3, 0.5, 2.0), -1.0931471805599453, 0.3296799539643607),
    ("laplace", (-0.4, 0.0, 2.0), -1.5862943611198905, 0.4093653765389909),
    ("logistic", (0.7, 0.0, 2.0), -2.1099114913974995, 0.5866175789173301),
    ("cauchy", (0.7, 0.1, 2.0), -1.9240547626503979, 0.5927735790777424),
    ("gamma", (1.3, 2.5, 0.1, 2.0), -2.3440684866818504, 0.05512263499787808),
    ("chi2", (1.3, 3.0, 0.0, 2.0), -2.152477171810845, 0.1151034660411136),
    ("beta", (0.3, 2.5, 1.5, 0.0, 1.0), -0.3564378420678893, 0.08894372317066562),
    ("t", (0.7, 3.5, 0.0, 2.0), -1.7600239819334451, 0.626817235495846),
    ("pareto", (2.7, 1.5, 0.0, 1.5), -1.4694666622552977, 0.5859133375000389),
]
DISCRETE = [
    ("bernoulli", (1, 0.3), -1.2039728043259361, 1.0),
    ("bernoulli", (0, 0.3), -0.35667494393873245, 0.7),
    ("poisson", (3, 2.5), -1.5428872736055896, 0.7575761331330662),
    ("geom", (4, 0.3), -2.2739976361421332, 0.7598999999999999),
    ("binom", (3, 7, 0.4), -1.2368266291970138, 0.710208),
]


def exact(args):
    return [np.array(float(x)) for x in args]


@pytest.mark.parametrize("name, args, density, share", CONTINUOUS)
def test_density_and_distribution_are_those_stored(name, args, density, share):
    d = getattr(stats, name)
    np.testing.assert_allclose(d.logpdf(*exact(args)), density, rtol=1e-12)
    np.testing.assert_allclose(d.pdf(*exact(args)), np.exp(density), rtol=1e-12)
    np.testing.assert_allclose(d.cdf(*exact(args)), share, rtol=1e-12)
    np.testing.assert_allclose(d.sf(*exact(args)), 1 - share, rtol=1e-12)
    np.testing.assert_allclose(d.logcdf(*exact(args)), np.log(share), rtol=1e-12)
    np.testing.assert_allclose(fgrad.jit(d.logpdf)(*exact(args)), density, rtol=1e-12)


@pytest.mark.parametrize("name, args, mass, share", DISCRETE)
def test_probabilities_of_whole_numbers_are_those_stored(name, args, mass, share):
    d = getattr(stats, name)
    np.testing.assert_allclose(d.logpmf(*exact(args)), mass, rtol=1e-12)
    np.testing.assert_allclose(d.pmf(*exact(args)), np.exp(mass), rtol=1e-12)
    if name != "binom":
        np.testing.assert_allclose(d.cdf(*exact(args)), share, rtol=1e-12)


@pytest.mark.parametrize("name", ["norm", "uniform", "expon", "laplace", "logistic", "cauchy"])
def test_the_quantile_is_the_inverse_of_the_distribution(name):
    d, q = getattr(stats, name), np.array([0.01, 0.3, 0.5, 0.9])
    np.testing.assert_allclose(d.cdf(d.ppf(q, 1.0, 2.0), 1.0, 2.0), q, rtol=1e-12)


@pytest.mark.parametrize("name, args, density, share", CONTINUOUS)
def test_the_density_is_the_derivative_of_the_distribution(name, args, density, share):
    d, (x, *rest) = getattr(stats, name), exact(args)
    np.testing.assert_allclose(fgrad.grad(lambda x: d.cdf(x, *rest))(x), np.exp(density), rtol=1e-9)


@pytest.mark.parametrize("name", ["expon", "gamma", "beta", "uniform", "pareto"])
def test_outside_of_the_support_there_is_nothing_and_no_nan(name):
    d = getattr(stats, name)
    shapes = [2.5] * len(d.shapes)
    assert d.pdf(-1.0, *shapes) == 0 and d.logpdf(-1.0, *shapes) == -np.inf
    assert d.cdf(-1.0, *shapes) == 0
    assert fgrad.grad(lambda x: d.pdf(x, *shapes))(-1.0) == 0
    assert np.isnan(d.logpdf(np.nan, *shapes))


def test_what_is_no_whole_number_has_no_probability():
    assert stats.poisson.pmf(np.array([1.5, -1.0]), 2.0).tolist() == [0, 0]
    assert stats.bernoulli.pmf(2, 0.5) == 0


def test_far_tails_keep_their_digits():
    np.testing.assert_allclose(stats.norm.logcdf(np.array(-40.0)), -804.6084420137538, rtol=1e-13)
    np.testing.assert_allclose(stats.norm.logsf(np.array(40.0)), -804.6084420137538, rtol=1e-13)
    np.testing.assert_allclose(stats.norm.isf(np.array(0.1)), 1.2815515655446004, rtol=1e-13)


def test_normal_vectors_and_shares_are_those_stored():
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    x, mean = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(x, mean, cov), -2.689113531805628,
                               rtol=1e-12)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(x, mean, np.array(2.0)),
                               stats.multivariate_normal.logpdf(x, mean, 2 * np.eye(2)), rtol=1e-12)
    fgrad.check_grads(lambda c: stats.multivariate_normal.logpdf(x, mean, c @ c.T), (cov,))
    np.testing.assert_allclose(
        stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), np.array([1.5, 2.0, 3.0])),
        1.695210995269564, rtol=1e-12)


def test_arguments_go_by_name_and_missing_ones_are_named():
    assert stats.norm.pdf(0.0, scale=2.0, loc=0.0) == stats.norm.pdf(0.0, 0.0, 2.0)
    with pytest.raises(ArgumentError, match="gamma takes the arguments x, a, loc, scale"):
        stats.gamma.pdf(1.0)
    with pytest.raises(ArgumentError, match="no ppf"):
        stats.gamma.ppf(0.5, 2.0)
