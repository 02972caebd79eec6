"""Probability distributions under SciPy's names: densities, distribution functions, quantiles.

    norm.logpdf(x, loc=0, scale=1)      gamma.cdf(x, a)      poisson.logpmf(k, mu)

A distribution is a row: its standard form, for loc 0 and scale 1, as functions of z and of its
shape parameters.  Arguments broadcast; integers become floats.  Outside of the support a density
is 0, and so is its derivative.  Relies on `scipy.special`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

from .. import numpy as fnp
from .. import ops
from ..errors import ArgumentError, bound
from ..numpy.promotion import same
from . import linalg, special
from .special import floating_together

__all__ = ["bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "geom",
           "laplace", "logistic", "multivariate_normal", "norm", "pareto", "poisson", "t",
           "uniform"]
__dir__ = __all__.copy     # dir() lists these and nothing else

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Continuous:
    """A distribution with a density.

    shapes: names of the shape parameters, which stand between x and loc in every call.
    density: (z, *shapes) → log of the standard density.  below, above: the distribution function
    and its complement; quantile: the inverse of below.  low, high: the support; safe: a z in it.
    """
    name: str
    density: Callable
    below: Callable = None
    above: Callable = None
    quantile: Callable = None
    shapes: tuple = ()
    low: float = -math.inf
    high: float = math.inf
    safe: float = 0.5

    def arguments(self, given, named):
        """(x, shape parameters, loc, scale), broadcast.  Raises ArgumentError for missing ones."""
        names = ("x", *self.shapes, "loc", "scale")
        if "q" in named:
            named["x"] = named.pop("q")
        found = dict(zip(names, given)) | named
        found = {"loc": 0.0, "scale": 1.0} | found
        if set(found) != set(names) or len(given) > len(names):
            raise ArgumentError(f"{self.name} takes the arguments {', '.join(names)}.",
                                given=", ".join(found))
        x, *shapes, loc, scale = floating_together(*[found[n] for n in names])
        return x, shapes, loc, scale

    def logpdf(self, *args, **named):
        """log of the density at x; -inf outside of the support."""
        x, shapes, loc, scale = self.arguments(args, named)
        z = (x - loc) / scale
        inside = same(ops.and_, same(ops.ge, z, self.low), same(ops.le, z, self.high))
        z = fnp.where(same(ops.or_, inside, fnp.isnan(z)), z, self.safe)
        out = self.density(z, *shapes) - fnp.log(scale)
        return fnp.where(same(ops.or_, inside, fnp.isnan(z)), out, -math.inf)

    def pdf(self, *args, **named):
        """The density at x; 0 outside of the support."""
        return fnp.exp(self.logpdf(*args, **named))

    def cdf(self, *args, **named):
        """The probability of a value up to x."""
        x, shapes, loc, scale = self.arguments(args, named)
        z = (x - loc) / scale
        return self.known(self.below, "cdf")(fnp.clip(z, self.low, self.high), *shapes)

    def sf(self, *args, **named):
        """The probability of a value above x."""
        x, shapes, loc, scale = self.arguments(args, named)
        z = fnp.clip((x - loc) / scale, self.low, self.high)
        if self.above is not None:
            return self.above(z, *shapes)
        return 1 - self.known(self.below, "sf")(z, *shapes)

    def logcdf(self, *args, **named):
        """log of cdf."""
        return fnp.log(self.cdf(*args, **named))

    def logsf(self, *args, **named):
        """log of sf."""
        return fnp.log(self.sf(*args, **named))

    def ppf(self, *args, **named):
        """The x up to which the probability is q: the inverse of cdf."""
        q, shapes, loc, scale = self.arguments(args, named)
        return self.known(self.quantile, "ppf")(q, *shapes) * scale + loc

    def known(self, function, what):
        """The function.  Raises ArgumentError where the distribution has none in closed form."""
        if function is None:
            raise ArgumentError(f"{self.name} has no {what} in closed form.")
        return function


class Normal(Continuous):
    """The normal distribution, whose tails keep their digits in the logarithm."""

    def logcdf(self, *args, **named):
        """log of cdf, accurate far below the mean."""
        x, _, loc, scale = self.arguments(args, named)
        return special.log_ndtr((x - loc) / scale)

    def logsf(self, *args, **named):
        """log of sf, accurate far above the mean."""
        x, _, loc, scale = self.arguments(args, named)
        return special.log_ndtr((loc - x) / scale)

    def isf(self, *args, **named):
        """The x above which the probability is q."""
        q, _, loc, scale = self.arguments(args, named)
        return loc - special.ndtri(q) * scale


def t_density(z, df):
    """log of Γ((ν + 1) / 2) / (√(νπ) Γ(ν / 2)) (1 + z² / ν)^(-(ν + 1) / 2)"""
    front = special.gammaln(0.5 * (df + 1)) - special.gammaln(0.5 * df)
    front = front - 0.5 * fnp.log(df * math.pi)
    return front - 0.5 * (df + 1) * fnp.log1p(z * z / df)


def t_below(z, df):
    """By the incomplete beta function of ν / (ν + z²)."""
    tail = 0.5 * special.betainc(0.5 * df, fnp.full_like(df, 0.5), df / (df + z * z))
    return fnp.where(z < 0, tail, 1 - tail)


norm = Normal("norm", lambda z: -0.5 * z * z - HALF_LOG_2PI, special.ndtr,
              lambda z: special.ndtr(-z), special.ndtri)
uniform = Continuous("uniform", lambda z: 0 * z, lambda z: z, lambda z: 1 - z, lambda q: q,
                     low=0.0, high=1.0)
expon = Continuous("expon", lambda z: -z, lambda z: -fnp.expm1(-z), lambda z: fnp.exp(-z),
                   lambda q: -fnp.log1p(-q), low=0.0)
laplace = Continuous("laplace", lambda z: -fnp.abs(z) - math.log(2),
                     lambda z: fnp.where(z < 0, 0.5 * fnp.exp(-fnp.abs(z)),
                                         1 - 0.5 * fnp.exp(-fnp.abs(z))),
                     quantile=lambda q: fnp.where(q < 0.5, fnp.log(2 * q), -fnp.log(2 * (1 - q))))
logistic = Continuous("logistic", lambda z: -fnp.logaddexp(z, 0.0) - fnp.logaddexp(-z, 0.0),
                      special.expit, lambda z: special.expit(-z), special.logit)
cauchy = Continuous("cauchy", lambda z: -math.log(math.pi) - fnp.log1p(z * z),
                    lambda z: 0.5 + fnp.arctan(z) / math.pi,
                    lambda z: fnp.arctan2(fnp.ones_like(z), z) / math.pi,
                    lambda q: fnp.tan(math.pi * (q - 0.5)))
gamma = Continuous("gamma", lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a),
                   lambda z, a: special.gammainc(a, z), lambda z, a: special.gammaincc(a, z),
                   shapes=("a",), low=0.0)
chi2 = Continuous("chi2", lambda z, df: (special.xlogy(0.5 * df - 1, z) - 0.5 * z
                                         - special.gammaln(0.5 * df) - 0.5 * math.log(2) * df),
                  lambda z, df: special.gammainc(0.5 * df, 0.5 * z),
                  lambda z, df: special.gammaincc(0.5 * df, 0.5 * z), shapes=("df",), low=0.0)
beta = Continuous("beta", lambda z, a, b: (special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z)
                                           - special.betaln(a, b)),
                  lambda z, a, b: special.betainc(a, b, z),
                  lambda z, a, b: special.betainc(b, a, 1 - z), shapes=("a", "b"),
                  low=0.0, high=1.0)
t = Continuous("t", t_density, t_below, lambda z, df: t_below(-z, df), shapes=("df",))
pareto = Continuous("pareto", lambda z, b: fnp.log(b) - (b + 1) * fnp.log(z),
                    lambda z, b: 1 - z ** -b, lambda z, b: z ** -b,
                    lambda q, b: (1 - q) ** (-1 / b), shapes=("b",), low=1.0, safe=2.0)


# ---------------------------------------------------------------------------- whole numbers

@dataclass(frozen=True)
class Discrete:
    """A distribution of whole numbers.

    mass: (k, *shapes) → log of the probability of k; below: (k, *shapes) → that of at most k.
    inside: (k, *shapes) → may k occur?
    """
    name: str
    shapes: tuple
    mass: Callable
    inside: Callable
    below: Callable = None

    def arguments(self, given, named):
        """(k - loc, shape parameters), broadcast.  Raises ArgumentError for missing ones."""
        names = ("k", *self.shapes, "loc")
        found = {"loc": 0.0} | dict(zip(names, given)) | named
        if set(found) != set(names) or len(given) > len(names):
            raise ArgumentError(f"{self.name} takes the arguments {', '.join(names)}.",
                                given=", ".join(found))
        k, *shapes, loc = floating_together(*[found[n] for n in names])
        return k - loc, shapes

    def logpmf(self, *args, **named):
        """log of the probability of k; -inf where k cannot occur."""
        k, shapes = self.arguments(args, named)
        inside = same(ops.and_, self.inside(k, *shapes), same(ops.eq, ops.floor(k), k))
        return fnp.where(inside, self.mass(fnp.where(inside, k, 1.0), *shapes), -math.inf)

    def pmf(self, *args, **named):
        """The probability of k."""
        return fnp.exp(self.logpmf(*args, **named))

    def cdf(self, *args, **named):
        """The probability of at most k.  Raises ArgumentError where that has no closed form."""
        if self.below is None:
            raise ArgumentError(f"{self.name} has no cdf in closed form.")
        k, shapes = self.arguments(args, named)
        return fnp.where(k < 0, 0.0, self.below(fnp.floor(fnp.maximum(k, 0.0)), *shapes))


def binom_mass(k, n, p):
    """log of n! / (k! (n - k)!) pᵏ (1 - p)ⁿ⁻ᵏ"""
    choose = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return choose + special.xlogy(k, p) + special.xlog1py(n - k, -p)


bernoulli = Discrete("bernoulli", ("p",),
                     lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
                     lambda k, p: (k >= 0) & (k <= 1), lambda k, p: fnp.where(k < 1, 1 - p, 1.0))
poisson = Discrete("poisson", ("mu",),
                   lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1) - mu,
                   lambda k, mu: k >= 0, lambda k, mu: special.gammaincc(k + 1, mu))
geom = Discrete("geom", ("p",), lambda k, p: special.xlog1py(k - 1, -p) + fnp.log(p),
                lambda k, p: k >= 1, lambda k, p: -fnp.expm1(special.xlog1py(k, -p)))
binom = Discrete("binom", ("n", "p"), binom_mass, lambda k, n, p: (k >= 0) & (k <= n))


# ---------------------------------------------------------------------------- several dimensions

class MultivariateNormal:
    """The normal distribution of vectors."""
    name = "multivariate_normal"

    def logpdf(self, x, mean, cov):
        """log of the density at vectors x.   f[…,n] f[…,n] f[…,n,n] → f[…]

        NaN unless cov is positive definite.  A number stands for cov times the identity.
        """
        x, mean = floating_together(x, mean)
        cov = fnp.asarray(cov, x.dtype) if not hasattr(cov, "dtype") else cov
        n = x.shape[-1] if x.ndim else 1
        if not cov.ndim:
            return fnp.sum(norm.logpdf(x, mean, fnp.sqrt(cov)), axis=-1 if x.ndim else None)
        factor = linalg.cholesky(cov, lower=True)
        apart = linalg.solve_triangular(factor, (x - mean)[..., None], lower=True)[..., 0]
        size = fnp.sum(fnp.log(fnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
        return -0.5 * fnp.sum(apart * apart, -1) - size - n * HALF_LOG_2PI

    def pdf(self, x, mean, cov):
        """The density at vectors x."""
        return fnp.exp(self.logpdf(x, mean, cov))


class Dirichlet:
    """The distribution of vectors of shares."""
    name = "dirichlet"

    def logpdf(self, x, alpha):
        """log of the density at shares x.   f[…,n] f[n] → f[…]"""
        x, alpha = floating_together(x, alpha)
        front = special.gammaln(fnp.sum(alpha, -1)) - fnp.sum(special.gammaln(alpha), -1)
        return fnp.sum(special.xlogy(alpha - 1, x), -1) + front

    def pdf(self, x, alpha):
        """The density at shares x."""
        return fnp.exp(self.logpdf(x, alpha))


multivariate_normal, dirichlet = MultivariateNormal(), Dirichlet()


bound(globals())
