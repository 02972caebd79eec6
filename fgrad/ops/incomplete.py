"""Incomplete gamma and beta functions: elementwise, by series that run until they have converged.

How long that takes depends on the values, so there is no pull: compiled code calls the NumPy rule.
All dtypes are computed in f64 and rounded once; for parameters up to 100 the error is below 2e-12,
relative in f64.  Derivatives by x are formulas.  Those by a parameter (a, b) are operations too:
the same series are run on a + ih, whose imaginary part over h is the derivative, exact to rounding
for h = 1e-30 (W. Squire and G. Trapp, "Using complex variables to estimate derivatives", 1998); the
error is below 2e-13.  Second derivatives by parameters raise GradientError.
Sources: Cephes (S. Moshier, igam.c, incbet.c); W. Press et al., "Numerical Recipes", 6.2 and 6.4,
for the continued fractions by Lentz' method; M. Figurnov et al., "Implicit reparameterization
gradients" (2018), for numbers drawn from the gamma distribution.
"""

from __future__ import annotations

import numpy as np

from ..errors import GradientError
from ..types import F64, FLOATS
from .elementwise import (
    Elementwise, add, eq, exp, log, log1p, mul, neg, or_, select, sub)
from .silence import quiet
from .special import OF_ARRAYS, digamma, digamma_of, lgamma, lgamma_of

STEPS = 20_000             # of a series at most; about 10 √a are needed
TINY = 1e-300
H = 1e-30                  # of a + ih


class Iterated(Elementwise):
    """A row whose value is found by iteration; there is no derivative where a partial is None.

    once_in: arguments that it has a first derivative by, and no second.
    """
    pull = None
    numbers = False

    def __init__(self, name, value, partials, once_in=(), doc=None):
        self.once_in = once_in
        self.constant_in = tuple(k for k, partial in enumerate(partials) if partial is None)
        known = [partial or (lambda *args, k=k: self.refuse(k))
                 for k, partial in enumerate(partials)]
        super().__init__(name, FLOATS, doc, numpy=in_double(value), scalar="add", partials=known)

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
    """Σ xⁿ / (a (a + 1) … (a + n)), for a complex a too."""
    term = 1 / a
    total = term.copy()
    for n in range(1, STEPS):
        term = term * (x / (a + n))
        total += term
        if not (parts(term) > parts(total) * 1e-17).any():
            break
    return total


def parts(x):
    """The sizes of the real and of the imaginary part, stacked."""
    return np.abs([x.real, x.imag])


def converged(change):
    """Is the factor 1 everywhere, and its derivative, if it has one, 0 to rounding?"""
    return not ((np.abs(change.real - 1) > 1e-16) | (np.abs(change.imag) > 1e-14 * H)).any()


def gamma_fraction(a, x):
    """1 / (x + 1 - a - (1 - a) / (x + 3 - a - …)), for a complex a too."""
    b = x + 1 - a
    above, below = np.full_like(b, 1 / TINY), 1 / b
    total = below
    for n in range(1, STEPS):
        by = -n * (n - a)
        b = b + 2
        total, above, below, change = lentz(total, above, below, by, b)
        if converged(change):
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


def gamma_shift_of(a, log_x):
    """How log x moves with a where P(a, x) is held constant: -dP/da / (x dP/dx).

    P = f S below max(a, 1) and 1 - f F above, where x dP/dx = f = xᵃ e⁻ˣ / Γ(a): f, which may
    underflow, cancels.
    """
    out, x = np.full_like(a, np.nan), np.exp(log_x)
    good = (a > 0) & np.isfinite(a) & np.isfinite(x)
    low = good & ((x <= 1) | (x <= a))
    for where, share, sign in ((low, gamma_series, -1), (good & ~low, gamma_fraction, 1)):
        found = share(a[where] + 1j * H, x[where])
        rise = log_x[where] - digamma_of(OF_ARRAYS, a[where])        # d log f / da
        out[where] = sign * (found.imag / H + rise * found.real)
    return out


# ---------------------------------------------------------------------------- beta

def beta_share(a, b, x):
    """I_x(a, b): the continued fraction converges below (a + 1) / (a + b + 2), else by symmetry."""
    out = np.full_like(x, np.nan)
    good = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    swap = x > (a + 1) / (a + b + 2)
    p, q, y = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, 1 - x, x)
    p, q, y, front = [v[good] for v in (p, q, y, beta_front(a, b, x))]
    found = front * beta_fraction(p, q, y) / p
    out[good] = np.where(swap[good], 1 - found, found)
    out[(a > 0) & (b > 0) & (x == 0)] = 0.0
    out[(a > 0) & (b > 0) & (x == 1)] = 1.0
    return out


def beta_front(a, b, x):
    """xᵃ (1 - x)ᵇ Γ(a + b) / (Γ(a) Γ(b))"""
    logs = log_gamma(a + b) - log_gamma(a) - log_gamma(b)
    return np.exp(logs + a * np.log(x) + b * np.log1p(-x))


def beta_slope(a, b, x, by_b):
    """dI_x/da, or dI_x/db; NaN outside of 0 <= x <= 1 and of positive a, b."""
    good = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    out = np.where((a > 0) & (b > 0) & ((x == 0) | (x == 1)), 0.0, np.nan)
    a, b, x = a[good], b[good], x[good]
    swap = x > (a + 1) / (a + b + 2)
    moved = (a, b + 1j * H) if by_b else (a + 1j * H, b)
    p, q = np.where(swap, moved[::-1], moved)
    found = beta_fraction(p, q, np.where(swap, 1 - x, x)) / p
    psi = digamma_of(OF_ARRAYS, np.stack([a + b, b if by_b else a]))
    rise = psi[0] - psi[1] + (np.log1p(-x) if by_b else np.log(x))   # of the logarithm of front
    out[good] = np.where(swap, -1, 1) * beta_front(a, b, x) * (found.imag / H + rise * found.real)
    return out


def beta_fraction(a, b, x):
    """1 / (1 + d₁ / (1 + d₂ / …)), with the even and the odd dₙ of Numerical Recipes 6.4."""
    below = 1 / not_zero(1 - (a + b) * x / (a + 1))
    above, total = np.ones_like(below), below
    for n in range(1, STEPS):
        even = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n))
        odd = -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1))
        total, above, below, _ = lentz(total, above, below, even, 1.0)
        total, above, below, change = lentz(total, above, below, odd, 1.0)
        if converged(change):
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


def gamma_by_a(out, a, x):
    """dP/da = -x dP/dx · gamma_shift; 0 at 0 and infinity, where P stays 0 and 1."""
    still = or_(eq(x, 0.0), eq(x, np.inf))
    x = select(still, 1.0, x)
    log_x = log(x)
    front = exp(sub(sub(mul(a, log_x), x), lgamma(a)))
    return select(still, 0.0, neg(mul(front, gamma_shift(a, log_x))))


def shift_by_log_x(out, a, log_x):
    """d/d log x of -dP/da / f, where df/d log x = (a - x) f and df/da = (log x - ψ(a)) f."""
    by_front = mul(sub(a, exp(log_x)), out)
    return neg(add(sub(log_x, digamma(a)), by_front))


def beta_rise(a, b, x):
    """d log(dI/dx) / da = log x + ψ(a + b) - ψ(a)"""
    return add(log(x), sub(digamma(add(a, b)), digamma(a)))


gamma_shift = Iterated("gamma_shift", gamma_shift_of, [None, shift_by_log_x])
gammainc = Iterated("gammainc", lower_gamma, [gamma_by_a, gamma_density], once_in=(0,),
                    doc="P(a, x): the share of the gamma distribution of a that is below x.")
gammaincc = Iterated("gammaincc", upper_gamma, [lambda *args: neg(gamma_by_a(*args)),
                                                lambda *args: neg(gamma_density(*args))],
                     once_in=(0,),
                     doc="1 - P(a, x): the share of the gamma distribution of a above x.")
betainc_by_a = Iterated(
    "betainc_by_a", lambda a, b, x: beta_slope(a, b, x, by_b=False),
    [None, None, lambda out, a, b, x: mul(beta_density(out, a, b, x), beta_rise(a, b, x))])
betainc_by_b = Iterated(
    "betainc_by_b", lambda a, b, x: beta_slope(a, b, x, by_b=True),
    [None, None, lambda out, a, b, x: mul(beta_density(out, a, b, x),
                                          beta_rise(b, a, sub(1.0, x)))])
betainc = Iterated("betainc", beta_share, [lambda out, *args: betainc_by_a(*args),
                                           lambda out, *args: betainc_by_b(*args), beta_density],
                   once_in=(0, 1),
                   doc="The share of the beta distribution of a, b that is below x.")

# log of a number drawn from the gamma distribution of a, beside a: it moves with a as its quantile.
gamma_number = Elementwise("gamma_number", FLOATS,
                           numpy=lambda log_x, a: np.broadcast_arrays(log_x, a)[0].copy(),
                           scalar=lambda log_x, a: log_x,
                           partials=[1, lambda out, log_x, a: gamma_shift(a, log_x)])
gamma_number.constant_in = (1,)          # as a function of the two it is constant in a
