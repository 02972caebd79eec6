"""Exponential, sine and cosine integrals: elementwise, by series and one continued fraction.

The error is below 2e-14, relative to max(|f|, 1) for expi and the cosine integral, which have
zeros, else to |f|.  Those of sine and cosine are computed by complex numbers, and compiled code
calls NumPy's rule.  Relies on `iterated`; `fgrad.scipy.special` relies on it.
Source: W. Press et al., "Numerical Recipes", 6.3 and 6.8.
"""

from __future__ import annotations

import math

import numpy as np

from .elementwise import add, cos, div, eq, exp, max, neg, select, sin, square, sub
from .iterated import TINY, Iterated, fraction, lentz
from .special import digamma_of

EULER = 0.57721566490153286
FAR = 40.0                 # from here on Ei is its asymptotic series


def power_series(m, z, needed):
    """Σ zᵏ / (k k!) from k = 1: Ei(z) - γ - log z, for a complex z too."""
    def step(n, state, fixed):
        (total, power), (z,) = state, fixed
        power = power * (z * (1 / (n + 1)))
        total = total + power * (1 / (n + 1))
        return (total, power), m.felt(power, total)
    return m.limit(step, (z, z), (z,), needed)


def asymptotic_series(m, x, needed):
    """Σ k! / xᵏ: Ei(x) x exp(-x) for an x so large that the terms shrink to nothing."""
    def step(n, state, fixed):
        (total, term), (x,) = state, fixed
        term = term * (n / x)
        total = total + term
        return (total, term), m.felt(term, total)
    one = m.full(x, 1.0)
    return m.limit(step, (one, one), (x,), needed)


def exponential_fraction(m, n, z, needed):
    """Eₙ(z) exp(z) = 1 / (z + n - n / (z + n + 2 - 2 (n + 1) / …)), for a complex z too."""
    def step(k, state, fixed):
        start, n = fixed
        return lentz(*state, -k * (n - 1 + k), start + 2 * k)
    start = z + n
    return fraction(m, start, 1 / TINY, step, (start, n), needed)


def expint_near(m, n, x, needed):
    """Eₙ(x) for 0 < x <= 1 and n >= 1: its power series, with a logarithm in the term n - 1."""
    def step(k, state, fixed):
        (total, power), (x, last, psi) = state, fixed
        power = power * (x * (-1 / k))
        here = last == k
        term = power * m.where(here, psi, 1 / m.where(here, 1.0, last - k))
        total = total + term
        return (total, power), m.felt(power, total)
    last, psi = n - 1, digamma_of(m, n) - m.log(x)
    first = m.where(last == 0, psi, 1 / m.where(last == 0, 1.0, last))
    return m.limit(step, (first, m.full(x, 1.0)), (x, last, psi), needed)


def expint_of(m, n, x):
    """Eₙ(x) = ∫ exp(-xt) / tⁿ over t > 1; NaN for x < 0 and where n is no integer from 0 on."""
    inside = (n > 0) & (n == m.floor(n)) & (x > 0) & (x < math.inf)
    near = expint_near(m, n, x, inside & (x <= 1))
    far = exponential_fraction(m, n, x, inside & (x > 1)) * m.exp(-x)
    out = m.where(n == 0, m.exp(-x) / x, m.where(x <= 1, near, far))
    out = m.where((n > 0) & (x == 0), 1 / (n - 1), out)
    out = m.where(x == math.inf, 0.0, out)
    return m.where((n >= 0) & (n == m.floor(n)) & (x >= 0), out, math.nan)


def expi_of(m, x):
    """Ei(x), the principal value of ∫ exp(t) / t over t < x; -inf at 0."""
    below = -expint_of(m, m.full(x, 1.0), m.where(x < 0, -x, math.nan))
    near = EULER + m.log(x) + power_series(m, x, (x > 0) & (x <= FAR))
    far = m.exp(x) / x * asymptotic_series(m, x, (x > FAR) & (x < math.inf))
    out = m.where(x < 0, below, m.where(x <= FAR, near, far))
    return m.where(x == 0, -math.inf, m.where(x == math.inf, math.inf, out))


def trigonometric(m, x):
    """Ci |x| + i Si |x|, from E₁(ix) = -Ci x + i (Si x - π / 2)."""
    t = np.abs(x)
    z = 1j * t
    near = EULER + m.log(t) + power_series(m, z, (t > 0) & (t <= 2))
    far = exponential_fraction(m, np.ones_like(t), z, (t > 2) & np.isfinite(t)) * np.exp(-z)
    out = np.where(t <= 2, near, 1j * np.pi / 2 - np.conj(far))
    out = np.where(t == 0, -np.inf + 0j, np.where(t == np.inf, 1j * np.pi / 2, out))
    return np.where(np.isnan(t), complex(np.nan, np.nan), out)


def expint_by_x(out, n, x):
    """-Eₙ₋₁(x), where E₋₁(x) = exp(-x) (1 + x) / x²."""
    below = div(exp(neg(x)), div(square(x), add(x, 1.0)))
    return neg(select(eq(n, 0.0), below, expint(max(sub(n, 1.0), 0.0), x)))


def sine_by_x(out, x):
    """sin x / x, 1 at 0"""
    zero = eq(x, 0.0)
    x = select(zero, 1.0, x)
    return select(zero, 1.0, div(sin(x), x))


expint = Iterated("expint", expint_of, [None, expint_by_x])
expi = Iterated("expi", expi_of, [lambda out, x: div(exp(x), x)])
sine_integral = Iterated("sine_integral", lambda m, x: np.copysign(trigonometric(m, x).imag, x),
                         [sine_by_x], compiles=False)
cosine_integral = Iterated("cosine_integral", lambda m, x: trigonometric(m, x).real,
                           [lambda out, x: div(cos(x), x)], compiles=False)
