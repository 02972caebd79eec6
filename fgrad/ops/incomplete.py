"""Incomplete gamma and beta functions: elementwise, by series that run until they have converged.

How long that takes depends on the values, so there is no pull: compiled code calls the NumPy rule.
All dtypes are computed in f64 and rounded once; for parameters up to 100 the error is below 2e-12,
relative in f64.  The derivative by a parameter (a, b) raises GradientError; that by x is a formula.
Sources: Cephes (S. Moshier, igam.c, incbet.c); W. Press et al., "Numerical Recipes", 6.2 and 6.4,
for the continued fractions by Lentz' method.
"""

from __future__ import annotations

import numpy as np

from ..errors import GradientError
from ..types import F64, FLOATS
from .elementwise import Elementwise, add, exp, log, log1p, mul, neg, quiet, sub
from .special import OF_ARRAYS, lgamma, lgamma_of

STEPS = 20_000             # of a series at most; about 10 √a are needed
TINY = 1e-300


class Iterated(Elementwise):
    """A row whose value is found by iteration; it has no derivative by arguments `constant_in`."""
    pull = None
    numbers = False

    def __init__(self, name, value, partials):
        self.constant_in = tuple(range(len(partials) - 1))
        wanted = [lambda *args, k=k: self.refuse(k) for k in self.constant_in]
        super().__init__(name, FLOATS, numpy=in_double(value), scalar="add",
                         partials=[*wanted, partials[-1]])

    def refuse(self, k):
        """Raises GradientError: the derivative by argument k is not known."""
        raise GradientError(f"{self.name} has no derivative by its argument {k + 1}.",
                            fix="fgrad.stop_gradient(a) holds it constant")


def in_double(value):
    """The function of arrays of any float dtype that computes in f64."""
    @quiet
    def numpy(*args):
        dtype = np.asarray(args[0]).dtype
        wide = np.broadcast_arrays(*[np.asarray(x, F64) for x in args])
        flat = [x.ravel() for x in wide]
        return value(*flat).reshape(wide[0].shape).astype(dtype)
    return numpy


def log_gamma(x):
    """log Γ(x) of an f64 array."""
    return lgamma_of(OF_ARRAYS, x)


# ---------------------------------------------------------------------------- gamma

def lower_gamma(a, x):
    """P(a, x): by its series below max(a, 1), else 1 - Q."""
    return gamma_share(a, x, upper=False)


def upper_gamma(a, x):
    """Q(a, x) = 1 - P(a, x): by its continued fraction above max(a, 1)."""
    return gamma_share(a, x, upper=True)


def gamma_share(a, x, upper):
    """Q if upper, else P; NaN for a <= 0 or x < 0, as the limits say at 0 and infinity."""
    out = np.full_like(x, np.nan)
    good = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    low = good & ((x <= 1) | (x <= a))
    high = good & ~low
    front = np.exp(a * np.log(x) - x - log_gamma(a))
    series = front[low] * gamma_series(a[low], x[low])
    fraction = front[high] * gamma_fraction(a[high], x[high])
    out[low] = 1 - series if upper else series
    out[high] = fraction if upper else 1 - fraction
    out[(a > 0) & (x == 0)] = 1.0 if upper else 0.0
    out[(a > 0) & np.isfinite(a) & (x == np.inf)] = 0.0 if upper else 1.0
    return out


def gamma_series(a, x):
    """Σ xⁿ / (a (a + 1) … (a + n))"""
    term = 1 / a
    total = term.copy()
    for n in range(1, STEPS):
        term = term * (x / (a + n))
        total += term
        if not (term > total * 1e-17).any():
            break
    return total


def gamma_fraction(a, x):
    """1 / (x + 1 - a - (1 - a) / (x + 3 - a - …))"""
    b = x + 1 - a
    above, below = np.full_like(x, 1 / TINY), 1 / b
    total = below
    for n in range(1, STEPS):
        by = -n * (n - a)
        b = b + 2
        total, above, below, change = lentz(total, above, below, by, b)
        if not (np.abs(change - 1) > 1e-16).any():
            break
    return total


def lentz(total, above, below, a, b):
    """One step of a continued fraction … a / (b + …): (total, above, below, factor)."""
    below = 1 / not_zero(b + a * below)
    above = not_zero(b + a / above)
    change = above * below
    return total * change, above, below, change


def not_zero(x):
    """x, or something tiny for 0."""
    return np.where(np.abs(x) < TINY, TINY, x)


# ---------------------------------------------------------------------------- beta

def beta_share(a, b, x):
    """I_x(a, b): the continued fraction converges below (a + 1) / (a + b + 2), else by symmetry."""
    out = np.full_like(x, np.nan)
    good = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    swap = x > (a + 1) / (a + b + 2)
    p, q, y = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, 1 - x, x)
    log_front = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * np.log(x) + b * np.log1p(-x)
    p, q, y, front = [v[good] for v in (p, q, y, np.exp(log_front))]
    found = front * beta_fraction(p, q, y) / p
    out[good] = np.where(swap[good], 1 - found, found)
    out[(a > 0) & (b > 0) & (x == 0)] = 0.0
    out[(a > 0) & (b > 0) & (x == 1)] = 1.0
    return out


def beta_fraction(a, b, x):
    """1 / (1 + d₁ / (1 + d₂ / …)), with the even and the odd dₙ of Numerical Recipes 6.4."""
    below = 1 / not_zero(1 - (a + b) * x / (a + 1))
    above, total = np.ones_like(x), below
    for n in range(1, STEPS):
        even = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n))
        odd = -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1))
        total, above, below, _ = lentz(total, above, below, even, 1.0)
        total, above, below, change = lentz(total, above, below, odd, 1.0)
        if not (np.abs(change - 1) > 1e-16).any():
            break
    return total


# ---------------------------------------------------------------------------- derivatives

def gamma_density(out, a, x):
    """dP/dx = xᵃ⁻¹ e⁻ˣ / Γ(a)"""
    return exp(sub(sub(mul(sub(a, 1.0), log(x)), x), lgamma(a)))


def beta_density(out, a, b, x):
    """dI/dx = xᵃ⁻¹ (1 - x)ᵇ⁻¹ Γ(a + b) / (Γ(a) Γ(b))"""
    powers = add(mul(sub(a, 1.0), log(x)), mul(sub(b, 1.0), log1p(neg(x))))
    return exp(add(powers, sub(lgamma(add(a, b)), add(lgamma(a), lgamma(b)))))


gammainc = Iterated("gammainc", lower_gamma, [None, gamma_density])
gammaincc = Iterated("gammaincc", upper_gamma, [None, lambda *args: neg(gamma_density(*args))])
betainc = Iterated("betainc", beta_share, [None, None, beta_density])
