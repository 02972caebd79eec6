"""Special functions under SciPy's names.

Integers become floats first, and arguments broadcast.  Everything has its derivative but where the
docstring says otherwise.  Relies on the rows of `ops.special` and `ops.incomplete`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from .. import numpy as fnp
from .. import ops
from ..custom import stop_gradient
from ..errors import ArgumentError, bound
from ..numpy.exponentials import logsumexp, softmax
from ..numpy.promotion import as_float, cast, floating_together, same
from ..numpy.special import erf
from ..numpy.special import erf_inv as erfinv
from ..numpy.ufuncs import floats
from ..numpy.windows import i0
from ..types import COMPUTED, F32

__all__ = ["bernoulli", "beta", "betainc", "betaln", "comb", "digamma", "entr", "erf", "erfc",
           "erfinv", "exp1", "expi", "expit", "expn", "factorial", "gamma", "gammainc", "gammaincc",
           "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax",
           "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "poch", "polygamma", "rel_entr",
           "sici", "softmax", "spence", "xlog1py", "xlogy", "zeta"]
__dir__ = __all__.copy     # dir() lists these and nothing else


# ---------------------------------------------------------------------------- gamma and its kin

gammaln = floats("gammaln", ops.lgamma, "log |Γ(x)|; inf at 0, -1, -2, ….")
digamma = floats("digamma", ops.digamma, "Γ'(x) / Γ(x); NaN at 0, -1, -2, ….")
erfc = floats("erfc", ops.erfc, "1 - erf(x), accurate where that is small.")
expit = floats("expit", ops.logistic, "1 / (1 + exp(-x)).")
ndtri = floats("ndtri", ops.ndtri, "The x below which a share of the normal distribution lies.")
log_ndtr = floats("log_ndtr", ops.log_ndtr, "log of the normal distribution, accurate in its tail.")
expi = floats("expi", ops.expi, "Ei(x), the integral of exp(t) / t up to x; -inf at 0.")
spence = floats("spence", ops.spence, "Li₂(1 - x), the integral of -log t / (t - 1) from 1 to x.")
i0e = floats("i0e", ops.bessel_i0e, "exp(-|x|) I₀(x), of the modified Bessel function.")
i1e = floats("i1e", ops.bessel_i1e, "exp(-|x|) I₁(x), of the modified Bessel function.")


def i1(x):
    """I₁(x), the modified Bessel function of order 1.   f[*s] → f[*s]"""
    x = as_float(x)
    return same(ops.mul, ops.exp(ops.abs(x)), ops.bessel_i1e(x))


def gammasgn(x):
    """The sign of Γ(x): it changes at 0, -1, -2, …, and is NaN there, but at 0 that of the zero."""
    x = as_float(x)
    low = ops.floor(x)
    odd = same(ops.ne, same(ops.rem, low, 2.0), 0.0)
    below = ops.select(same(ops.eq, low, x), math.nan, ops.select(odd, -1.0, ops.full_like(x, 1.0)))
    at_zero = ops.select(fnp.signbit(x), -1.0, ops.full_like(x, 1.0))
    out = ops.select(same(ops.gt, x, 0.0), 1.0, below)
    out = ops.select(same(ops.ne, x, x), math.nan, out)
    return ops.select(same(ops.eq, x, 0.0), at_zero, out)


def gamma(x):
    """Γ(x), by its logarithm.   f[*s] → f[*s]"""
    x = as_float(x)
    return same(ops.mul, gammasgn(x), ops.exp(ops.lgamma(x)))


def factorial(n, exact=False):
    """n! = Γ(n + 1) of floats; 0 for negative n.  Raises ArgumentError for exact=True."""
    if exact:
        raise ArgumentError("factorial has no exact form.", fix="math.factorial(n) of an int")
    n = as_float(n)
    return ops.select(same(ops.lt, n, 0.0), 0.0, gamma(same(ops.add, n, 1.0)))


def betaln(a, b):
    """log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|.   f[*a] f[*b] → f[*broadcast]"""
    a, b = floating_together(a, b)
    return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(same(ops.add, a, b))


def beta(a, b):
    """B(a, b) = Γ(a) Γ(b) / Γ(a + b).   f[*a] f[*b] → f[*broadcast]"""
    a, b = floating_together(a, b)
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    return sign * ops.exp(betaln(a, b))


def multigammaln(a, d):
    """log of the multivariate gamma function of dimension d, a Python int.   f[*s] → f[*s]"""
    a = as_float(a)
    out = ops.full_like(a, d * (d - 1) / 4 * math.log(math.pi))
    for k in range(d):
        out = out + ops.lgamma(a - k / 2)
    return out


def poch(z, m):
    """Γ(z + m) / Γ(z), for positive z.   f[*a] f[*b] → f[*broadcast]"""
    z, m = floating_together(z, m)
    return ops.select(same(ops.eq, m, 0.0), 1.0, ops.exp(ops.lgamma(z + m) - ops.lgamma(z)))


def zeta(x, q=1.0):
    """Hurwitz' zeta function Σ (q + k)⁻ˣ for x > 1, q > 0; Riemann's for q = 1.

    f[*a] f[*b] → f[*broadcast]; inf at x = 1, NaN for x < 1 and for q <= 0.
    """
    x, q = floating_together(x, q)
    if x.dtype in COMPUTED:
        return cast(zeta(cast(x, F32), cast(q, F32)), x.dtype)
    above = same(ops.gt, x, 1.0)
    out = ops.zeta(ops.select(above, x, 2.0), q)
    return ops.select(above, out, ops.select(same(ops.eq, x, 1.0), math.inf,
                                             ops.full_like(x, math.nan)))


def polygamma(n, x):
    """The n-th derivative of digamma, (-1)ⁿ⁺¹ n! ζ(n + 1, x); n = 0 is digamma.

    f[*a] f[*b] → f[*broadcast]; for n > 0, NaN unless x is positive.
    """
    n, x = floating_together(n, x)
    n = stop_gradient(n)
    whole = same(ops.eq, n, 0.0)
    order = ops.select(whole, 1.0, n)
    sign = ops.select(same(ops.eq, same(ops.rem, order, 2.0), 0.0), -1.0, ops.full_like(n, 1.0))
    size = ops.exp(ops.lgamma(order + 1.0)) * zeta(order + 1.0, x)
    known = ops.or_(whole, same(ops.gt, x, 0.0))
    size = ops.select(known, size, ops.select(known, 1.0, x) * math.nan)   # its slope is NaN, too
    return ops.select(whole, ops.digamma(x), sign * size)


def expn(n, x):
    """Eₙ(x), the integral of exp(-xt) / tⁿ over t > 1.   i[*a] f[*b] → f[*broadcast]

    NaN for x < 0 and for a negative n.  Not differentiable by n.

    >>> round(expn(1, 2.0).item(), 6)
    0.048901
    """
    n, x = floating_together(n, x)
    return ops.expint(stop_gradient(n), x)


def exp1(x):
    """E₁(x), the integral of exp(-t) / t from x on; NaN for x < 0.   f[*s] → f[*s]"""
    return expn(1, x)


def sici(x):
    """(Si(x), Ci(x)): the integrals of sin t / t up to x, and of cos t / t; Ci of |x|.

    f[*s] → f[*s], f[*s]

    >>> [round(v.item(), 6) for v in sici(1.0)]
    [0.946083, 0.337404]
    """
    x = as_float(x)
    return ops.sine_integral(x), ops.cosine_integral(x)


def comb(N, k, exact=False, repetition=False):
    """How many ways there are to choose k of N things; as floats, 0 outside of 0 <= k <= N.

    f[*a] f[*b] → f[*broadcast].  repetition: a thing may be chosen again.
    Raises ArgumentError for exact=True.

    >>> comb(5, 2).item()
    10.0
    """
    if exact:
        raise ArgumentError("comb has no exact form.", fix="math.comb(N, k) of ints")
    n, k = floating_together(N, k)
    if repetition:
        nothing = same(ops.and_, same(ops.eq, k, 0.0), same(ops.ge, n, 0.0))
        return ops.select(nothing, 1.0, comb(n + k - 1.0, k))
    inside = (k >= 0.0) & (k <= n)
    n, k = ops.select(inside, n, 0.0), ops.select(inside, k, 0.0)
    out = ops.exp(ops.lgamma(n + 1.0) - ops.lgamma(k + 1.0) - ops.lgamma(n - k + 1.0))
    whole = (ops.floor(n) == n) & (ops.floor(k) == k)
    return ops.select(inside, ops.select(whole, ops.round(out) + (out - stop_gradient(out)), out),
                      0.0)


def bernoulli(n):
    """Bernoulli's numbers B₀ to Bₙ, B₁ = -1/2, of a Python int n.   → f[n+1]

    By Σ (m + 1 over k) Bₖ = 0 over k <= m, in fractions.

    >>> bernoulli(4).tolist()[:3]
    [1.0, -0.5, 0.1666666716337204]
    """
    if n.__class__ is not int or n < 0:
        raise ArgumentError("bernoulli needs an int from 0 on.", given=f"n={n!r}")
    found = [Fraction(1)]
    for m in range(1, n + 1):
        total = sum(math.comb(m + 1, k) * b for k, b in enumerate(found) if b)
        found.append(-total / (m + 1))
    return fnp.array([float(b) for b in found])


def gammainc(a, x):
    """The regularised lower incomplete gamma function P(a, x).   f[*a] f[*b] → f[*broadcast]

    Differentiable by both; raises GradientError for the second derivative by a.

    >>> abs(gammainc(1.0, 2.0).item() + gammaincc(1.0, 2.0).item() - 1) < 1e-6
    True
    """
    return ops.gammainc(*floating_together(a, x))


def gammaincc(a, x):
    """The regularised upper incomplete gamma function 1 - P(a, x), accurate where it is small."""
    return ops.gammaincc(*floating_together(a, x))


def betainc(a, b, x):
    """The regularised incomplete beta function I_x(a, b).   f[*a] f[*b] f[*c] → f[*broadcast]

    Differentiable by all; raises GradientError for second derivatives by a and b.
    """
    return ops.betainc(*floating_together(a, b, x))


# -------------------------------------------------------------------- the normal distribution

def ndtr(x):
    """The normal distribution: the share below x.   f[*s] → f[*s]

    >>> ndtr(0.0).item()
    0.5
    """
    x = as_float(x)
    return same(ops.mul, ops.erfc(same(ops.mul, x, -math.sqrt(0.5))), 0.5)


# -------------------------------------------------------------------- x log y, and entropies

def xlogy(x, y):
    """x log y, and 0 where x is 0.   f[*a] f[*b] → f[*broadcast]"""
    return beside_zero(ops.log, 1.0, *floating_together(x, y))


def xlog1py(x, y):
    """x log(1 + y), and 0 where x is 0.   f[*a] f[*b] → f[*broadcast]"""
    return beside_zero(ops.log1p, 0.0, *floating_together(x, y))


def beside_zero(op, harmless, x, y):
    """x op(y), where a y of a zero x that op takes to infinity, or not at all, is replaced by
    something harmless, one above the least, whose derivative is finite.
    """
    beyond = same(ops.or_, same(ops.le, y, harmless - 1.0), same(ops.eq, y, math.inf))
    bad = same(ops.and_, same(ops.eq, x, 0.0), beyond)
    found = same(ops.mul, x, op(ops.select(bad, harmless, y)))
    return ops.select(bad, 0.0, found)


def entr(x):
    """-x log x; 0 at 0, -inf below.   f[*s] → f[*s]"""
    x = as_float(x)
    zero = same(ops.eq, x, 0.0)
    steep = ops.sqrt(ops.select(zero, x, 1.0))   # 0, of infinite derivative, as -x log x is there
    out = ops.select(zero, steep, ops.neg(xlogy(x, x)))
    return ops.select(same(ops.lt, x, 0.0), -math.inf, out)


def rel_entr(p, q):
    """p log(p / q); 0 for p = 0 and q >= 0, else inf.   f[*a] f[*b] → f[*broadcast]"""
    p, q = floating_together(p, q)
    both = same(ops.and_, same(ops.gt, p, 0.0), same(ops.gt, q, 0.0))
    zero = same(ops.and_, same(ops.eq, p, 0.0), same(ops.ge, q, 0.0))
    safe_p, safe_q = ops.select(both, p, 1.0), ops.select(both, q, 1.0)
    log = same(ops.sub, ops.log(safe_p), ops.log(safe_q))
    other = ops.select(zero, 0.0, ops.full_like(p, math.inf))
    return ops.select(both, same(ops.mul, safe_p, log), other)


def kl_div(p, q):
    """p log(p / q) - p + q.   f[*a] f[*b] → f[*broadcast]"""
    p, q = floating_together(p, q)
    return rel_entr(p, q) - p + q


def logit(x):
    """log(x / (1 - x)), the inverse of expit.   f[*s] → f[*s]"""
    x = as_float(x)
    return same(ops.sub, ops.log(x), ops.log1p(ops.neg(x)))


# -------------------------------------------------------------------- exponentials of arrays

def log_softmax(x, axis=None):
    """log(softmax(x)), without overflow or cancellation.   f[*s] → f[*s]"""
    x = as_float(x)
    if not x.size:
        return x
    shifted = x - stop_gradient(fnp.max(x, axis=axis, keepdims=True))
    return shifted - fnp.log(fnp.sum(fnp.exp(shifted), axis=axis, keepdims=True))


bound(globals())
