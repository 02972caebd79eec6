"""Exponential, sine and cosine integrals: elementwise, by series and one continued fraction.

As in `incomplete`, on which this relies, compiled code calls the NumPy rule, and all dtypes are
computed in f64; the error is below 2e-14, relative to max(|f|, 1) for expi and the cosine integral,
which have zeros, else to |f|.  `fgrad.scipy.special` relies on it.
Source: W. Press et al., "Numerical Recipes", 6.3 and 6.8.
"""

from __future__ import annotations

import numpy as np

from .elementwise import add, cos, div, eq, exp, max, neg, select, sin, square, sub
from .incomplete import STEPS, TINY, Iterated, lentz
from .special import OF_ARRAYS, digamma_of

EULER = 0.57721566490153286
FAR = 40.0                 # from here on Ei is its asymptotic series


def power_series(z):
    """Σ zᵏ / (k k!) from k = 1: Ei(z) - γ - log z, for a complex z too."""
    power = z.copy()
    total = z.copy()
    for k in range(2, STEPS):
        power = power * (z / k)
        total += power / k
        if not (np.abs(power) > np.abs(total) * 1e-17).any():
            break
    return total


def fraction(n, z):
    """Eₙ(z) exp(z) = 1 / (z + n - n / (z + n + 2 - 2 (n + 1) / …)), for a complex z too."""
    b = z + n
    above, below = np.full_like(b, 1 / TINY), 1 / b
    total = below
    for k in range(1, STEPS):
        b = b + 2
        total, above, below, change = lentz(total, above, below, -k * (n - 1 + k), b)
        if not (np.abs(change - 1) > 4e-16).any():
            break
    return total


def expint_near(n, x):
    """Eₙ(x) for 0 < x <= 1 and n >= 1: its power series, with a logarithm in the term n - 1."""
    last = n - 1
    psi = digamma_of(OF_ARRAYS, n) - np.log(x)
    total = np.where(last == 0, psi, 1 / np.where(last == 0, 1.0, last))
    power = np.ones_like(x)
    for k in range(1, 25):                                   # 1 / 25! is below 1e-25
        power = power * (-x / k)
        total += np.where(last == k, power * psi, -power / np.where(last == k, 1.0, k - last))
    return total


def expint_of(n, x):
    """Eₙ(x) = ∫ exp(-xt) / tⁿ over t > 1; NaN for x < 0 and where n is no integer from 0 on."""
    out = np.full_like(x, np.nan)
    good = (n >= 0) & (n == np.floor(n)) & (x >= 0)
    zero, inside = good & (n == 0), good & (n > 0) & (x > 0)
    out[zero] = np.exp(-x[zero]) / x[zero]
    out[good & (n > 0) & (x == 0)] = np.inf
    finite = good & (n > 1) & (x == 0)
    out[finite] = 1 / (n[finite] - 1)
    low, high = inside & (x <= 1), inside & (x > 1)
    out[low] = expint_near(n[low], x[low])
    out[high] = fraction(n[high], x[high]) * np.exp(-x[high])
    out[good & (x == np.inf)] = 0.0
    return out


def expi_of(x):
    """Ei(x), the principal value of ∫ exp(t) / t over t < x; -inf at 0."""
    out = np.where(x < 0, -expint_of(np.ones_like(x), np.abs(x)), np.where(x > 0, np.inf, np.nan))
    out[x == 0] = -np.inf
    near, far = (x > 0) & (x <= FAR), (x > FAR) & np.isfinite(x)
    out[near] = EULER + np.log(x[near]) + power_series(x[near])
    y = x[far]
    term = total = np.ones_like(y)
    for k in range(1, int(FAR)):                             # the terms shrink up to k = x
        term = term * (k / y)
        total = total + term
    out[far] = np.exp(y) / y * total
    return out


def trigonometric(x):
    """(Ci |x|, Si |x|), from E₁(ix) = -Ci x + i (Si x - π / 2)."""
    t = np.abs(x)
    nowhere = complex(np.nan, np.nan)
    out = np.where(np.isnan(t), nowhere, np.where(t == 0, -np.inf + 0j, 1j * np.pi / 2))
    near, far = (t > 0) & (t <= 2), (t > 2) & np.isfinite(t)
    out[near] = EULER + np.log(t[near]) + power_series(1j * t[near])
    z = 1j * t[far]
    out[far] = 1j * np.pi / 2 - np.conj(fraction(1.0, z) * np.exp(-z))
    return out.real, out.imag


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
sine_integral = Iterated("sine_integral", lambda x: np.copysign(trigonometric(x)[1], x),
                         [sine_by_x])
cosine_integral = Iterated("cosine_integral", lambda x: trigonometric(x)[0],
                           [lambda out, x: div(cos(x), x)])
