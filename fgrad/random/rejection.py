"""Distributions drawn by rejection: gamma, Poisson, and what follows from them, as in jax.random.

Loops run as while_loop, so they compile.  A gamma number moves with its parameter as its quantile
does, as in jax; binomial numbers have no derivative by their parameters: asking for it raises
GradientError.  Relies on `control` and `basic`.
"""

from __future__ import annotations

import math

from .. import numpy as fnp
from .. import ops
from ..control import while_loop
from ..core import Primitive
from ..custom import stop_gradient
from ..errors import GradientError
from ..numpy.axes import shape_of
from ..numpy.promotion import as_float, broadcast_to, cast, in_dtype, same
from ..ops import size_of, to_front
from ..transforms import vmap
from ..types import BOOL, F32, F64, as_dtype, default_int
from .basic import (
    between, consumed, exponential, float_dtype, normal, rademacher, revived, standard_normal)
from .distributions import pair, parameters


class Drawn(Primitive):
    """x, numbers that were drawn with the parameters behind it; GradientError when a derivative by
    those is asked for.   f[*s] f[*s]… → f[*s]
    """

    def type(self, x, /, *parameters, name):
        return x

    def numpy(self, x, /, *parameters, name):
        return x

    def jvp(self, out, args, tangents, /, *, name):
        if all(t is None for t in tangents[1:]):
            return tangents[0]
        raise GradientError(
            f"random.{name} draws by rejection: there is no derivative by its parameters.",
            fix=["fgrad.stop_gradient(a) holds a parameter constant",
                 "the derivative of a mean E[f(x)] is that of mean(stop_gradient(f(x)) · logpdf(x, "
                 "a)), with x held constant"])

    def batch(self, dims, *args, name):
        n = size_of(args, dims)
        return self(*[to_front(a, d, n) for a, d in zip(args, dims)], name=name), 0

    def pull(self, x, /, *parameters, name):
        return x


drawn = Drawn("drawn")


def unit_number(words, shape, dtype):
    """Uniform numbers in [0, 1)."""
    return between(words, shape, dtype, dtype.type(0), dtype.type(1))


def parts(words, n):
    """n keys made of one."""
    made = ops.random_split(words, shape=(n,))
    return [made[k] for k in range(n)]


# ---------------------------------------------------------------------------- gamma

def log_gamma_number(words, a):
    """log of one gamma number (G. Marsaglia and W. Tsang, 2000).   u32[2] f[] → f[]

    Below 1: that of a + 1, times u^(1/a).
    """
    dtype, large = a.dtype, same(ops.ge, a, 1.0)
    boosted = ops.select(large, a, same(ops.add, a, 1.0))
    d = boosted - 1 / 3
    c = (1 / 3) / ops.sqrt(d)
    key, last = parts(words, 2)
    one = ops.full_like(a, 1.0)
    state = key, ops.zeros_like(a), one, ops.full_like(a, 2.0)
    _, _, v, _ = while_loop(lambda s: rejected(s, d), lambda s: proposed(s, c), state)
    log_u = ops.log1p(ops.neg(unit_number(last, (), dtype)))
    boost = ops.select(same(ops.or_, large, same(ops.eq, log_u, 0.0)), 0.0, log_u / a)
    return ops.log(d) + ops.log(v) + boost


def rejected(state, d):
    """Is the proposal outside of the density?"""
    _, x, v, u = state
    squeezed = u >= 1 - 0.0331 * (x * x)
    return squeezed & (ops.log(u) >= x * 0.5 + d * ((1 - v) + ops.log(v)))


def proposed(state, c):
    """The next proposal: (key, z², (1 + cz)³, u), where 1 + cz > 0."""
    key, z_key, u_key = parts(state[0], 3)
    like = c

    def again(s):
        following, own = parts(s[0], 2)
        z = standard_normal(own, (), like.dtype)
        return following, z, 1 + z * c
    start = z_key, ops.zeros_like(like), ops.full_like(like, -1.0)
    _, z, v = while_loop(lambda s: s[2] <= 0, again, start)
    return key, z * z, v * v * v, unit_number(u_key, (), like.dtype)


def log_gamma_numbers(words, a):
    """log of gamma numbers, each with its own key, differentiable by a.   u32[2] f[*s] → f[*s]"""
    keys, known = ops.random_split(words, shape=(a.size,)), stop_gradient(a)
    out = vmap(log_gamma_number)(keys, ops.reshape(known, shape=(a.size,))) if a.size else known
    return ops.gamma_number(ops.reshape(out, shape=a.shape), a)


def loggamma(key, a, shape=None, dtype=None):
    """log of gamma numbers, which does not underflow for small a.   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.loggamma(fgrad.random.key(0), 2.0, (5,)).shape
    (5,)
    """
    dtype = float_dtype(dtype, "loggamma")
    (a,), _ = parameters("loggamma", shape, dtype, a)
    return log_gamma_numbers(consumed(key, "loggamma"), a)


def gamma(key, a, shape=None, dtype=None):
    """Numbers of the gamma distribution with density xᵃ⁻¹ e⁻ˣ / Γ(a).   → f[*shape]

    >>> from . import key
    >>> gamma(key(0), 2.0, (3,)).shape
    (3,)
    """
    return ops.exp(loggamma(key, a, shape, dtype))


def beta(key, a, b, shape=None, dtype=None):
    """Numbers of the beta distribution: x / (x + y) of gamma numbers.   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.beta(fgrad.random.key(0), 2.0, 3.0, (5,)).shape
    (5,)
    """
    dtype = float_dtype(dtype, "beta")
    (a, b), shape = parameters("beta", shape, dtype, a, b)
    first, second = pair(key, "beta")
    x, y = loggamma(first, a, shape, dtype), loggamma(second, b, shape, dtype)
    most = same(ops.max, x, y)
    x, y = ops.exp(x - most), ops.exp(y - most)
    return x / (x + y)


def dirichlet(key, alpha, shape=None, dtype=None):
    """Vectors of shares: gamma numbers over their sum.   f[…,n] → f[*shape,n]

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.random.dirichlet(fgrad.random.key(0), fnp.ones(3), (5,)).shape
    (5, 3)
    """
    dtype = float_dtype(dtype, "dirichlet")
    alpha = as_float(alpha)
    shape = alpha.shape[:-1] if shape is None else shape_of(shape, "dirichlet")
    x = loggamma(key, alpha, shape + alpha.shape[-1:], dtype)
    e = ops.exp(x - fnp.max(x, -1, keepdims=True))
    return e / fnp.sum(e, -1, keepdims=True)


def chisquare(key, df, shape=None, dtype=None):
    """Sums of df squares of normal numbers.   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.chisquare(fgrad.random.key(0), 3.0, shape=(5,)).shape
    (5,)
    """
    dtype = float_dtype(dtype, "chisquare")
    return 2 * ops.exp(loggamma(key, in_dtype(df, dtype) / 2, shape, dtype))


def f(key, dfnum, dfden, shape=None, dtype=None):
    """The quotient of two mean squares, of dfnum and dfden normal numbers.   → f[*shape]"""
    dtype = float_dtype(dtype, "f")
    (num, den), shape = parameters("f", shape, dtype, dfnum, dfden)
    below, above = pair(key, "f")
    return chisquare(above, num, shape, dtype) / num / (chisquare(below, den, shape, dtype) / den)


def t(key, df, shape=None, dtype=None):
    """Numbers of Student's distribution with df degrees of freedom.   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.t(fgrad.random.key(0), 3.0, (5,)).shape
    (5,)
    """
    dtype = float_dtype(dtype, "t")
    (df,), shape = parameters("t", shape, dtype, df)
    first, second = pair(key, "t")
    half = df / 2
    z = normal(first, shape, dtype)
    return z * ops.sqrt(half / gamma(second, half, shape, dtype))


def generalized_normal(key, p, shape=(), dtype=None):
    """Numbers with density proportional to exp(-|x|ᵖ).   → f[*shape]"""
    dtype, shape = float_dtype(dtype, "generalized_normal"), shape_of(shape, "generalized_normal")
    first, second = pair(key, "generalized_normal")
    size = gamma(first, 1 / p, shape, dtype)
    return rademacher(second, shape, dtype) * size ** (1 / p)


def ball(key, d, p=2, shape=(), dtype=None):
    """Points of the ball Σ |xᵢ|ᵖ <= 1 of d dimensions, evenly (Barthe et al. 2005).   → f[…,d]

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> x = fgrad.random.ball(fgrad.random.key(0), 3, shape=(5,))
    >>> x.shape, fnp.all(fnp.linalg.norm(x, axis=1) <= 1.0)
    ((5, 3), Array(True, bool[]))
    """
    dtype, shape = float_dtype(dtype, "ball"), shape_of(shape, "ball")
    first, second = pair(key, "ball")
    g = generalized_normal(first, p, (*shape, d), dtype)
    total = fnp.sum(ops.abs(g) ** p, -1) + exponential(second, shape, dtype)
    return g / (total ** (1 / p))[..., None]


# ---------------------------------------------------------------------------- Poisson

def poisson(key, lam, shape=None, dtype=None):
    """How many events happen where lam are expected.   → i32[*shape]

    Below 10 by products of uniform numbers (Knuth), above by transformed rejection (Hörmann 1993).

    >>> import fgrad
    >>> fgrad.random.poisson(fgrad.random.key(0), 3.0, (5,)).dtype
    dtype('int32')
    """
    dtype = default_int() if dtype is None else as_dtype(dtype)
    (lam,), shape = parameters("poisson", shape, F32, lam)
    return cast(poisson_numbers(consumed(key, "poisson"), lam), dtype)


def poisson_numbers(words, lam):
    """Poisson numbers as floats.   u32[2] f32[*s] → f32[*s]"""
    lam = stop_gradient(lam)                     # the numbers are integers
    few = ops.not_(same(ops.ge, lam, 10.0))
    small = by_products(words, ops.select(few, lam, 0.0))
    large = by_rejection(words, ops.select(few, 1e5, lam))
    return ops.select(same(ops.eq, lam, 0.0), 0.0, ops.select(few, small, large))


def by_products(words, lam):
    """How many uniform numbers can be multiplied until the product is below exp(-lam), less 1."""
    def step(state):
        count, words, log_product = state
        words, own = parts(words, 2)
        count = ops.select(log_product > -lam, count + 1, count)
        return count, words, log_product + ops.log(unit_number(own, lam.shape, F32))
    start = ops.zeros_like(lam), words, ops.zeros_like(lam)
    return while_loop(lambda s: fnp.any(s[2] > -lam), step, start)[0] - 1


def by_rejection(words, lam):
    """Hörmann's PTRS."""
    b = 0.931 + 2.53 * ops.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse, v_r = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def proposed(u, v):
        apart = 0.5 - ops.abs(u)
        k = ops.floor((2 * a / apart + b) * u + lam + 0.43)
        s = ops.log(v * inverse / (a / (apart * apart) + b))
        inside = s <= -lam + k * ops.log(lam) - ops.lgamma(k + 1)
        out = (k < 0) | ((apart < 0.013) & (v > apart))
        return k, ((apart >= 0.07) & (v <= v_r)) | (ops.not_(out) & inside)
    return first_accepted(words, lam, proposed)


# ---------------------------------------------------------------------------- counts

def binomial(key, n, p, shape=None, dtype=None):
    """How many of n tries succeed, each with probability p.   → f[*shape]; NaN for a wrong n or p

    Where fewer than 10 successes (or failures) are expected they are counted by geometric gaps
    (Devroye 1986, p. 525), else by transformed rejection (Hörmann 1993), in f64 for every dtype.

    >>> import fgrad
    >>> fgrad.random.binomial(fgrad.random.key(0), 10, 0.5, (3,)).shape
    (3,)
    """
    dtype = float_dtype(dtype, "binomial")
    (n, p), shape = parameters("binomial", shape, dtype, n, p)
    return binomial_numbers(consumed(key, "binomial"), n, p)


def binomial_numbers(words, n, p):
    """Binomial numbers.   u32[2] f[*s] f[*s] → f[*s]"""
    given, dtype = (n, p), n.dtype
    n, p = [cast(stop_gradient(x), F64) for x in given]
    bad = ops.not_((n >= 0) & (p >= 0) & (p <= 1) & ops.is_finite(n))
    n, p = ops.select(bad, 0.0, ops.floor(n)), ops.select(bad, 0.0, p)
    few = p < 0.5
    q = ops.select(few, p, 1 - p)
    many = n * q >= 10
    small = by_gaps(words, ops.select(many, 0.0, n), ops.select(many, 0.0, q))
    large = by_binomial_rejection(words, ops.select(many, n, 100.0), ops.select(many, q, 0.5))
    count = ops.select(many, large, small)
    out = ops.select(bad, math.nan, ops.select(few, count, n - count))
    return drawn(cast(out, dtype), *given, name="binomial")


def by_gaps(words, n, q):
    """How many successes of probability q come within n tries, from the tries between them."""
    log_failure = ops.log1p(-ops.select(q == 0, 0.5, q))

    def step(state):
        count, tries, words = state
        words, own = parts(words, 2)
        u = 1 - unit_number(own, n.shape, n.dtype)           # in (0, 1]
        tries = tries + ops.floor(ops.log(u) / log_failure) + 1
        return ops.select(tries <= n, count + 1, count), tries, words
    start = ops.zeros_like(n), ops.select(q == 0, n + 1, 0.0), words
    return while_loop(lambda s: fnp.any(s[1] <= n), step, start)[0]


def by_binomial_rejection(words, n, q):
    """Hörmann's BTRS, for q <= 1/2 and n q >= 10; densities are relative to that of the mode."""
    wide = ops.sqrt(n * q * (1 - q))
    b = 1.15 + 2.53 * wide
    a = -0.0873 + 0.0248 * b + 0.01 * q
    v_r, alpha = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * wide
    mode, log_odds = ops.floor((n + 1) * q), ops.log(q / (1 - q))

    def log_density(k):
        return k * log_odds - ops.lgamma(k + 1) - ops.lgamma(n - k + 1)
    highest = log_density(mode)

    def proposed(u, v):
        apart = 0.5 - ops.abs(u)
        k = ops.floor((2 * a / apart + b) * u + n * q + 0.5)
        inside = (k >= 0) & (k <= n)
        s = ops.log(v * alpha / (a / (apart * apart) + b))
        below = s <= log_density(ops.select(inside, k, mode)) - highest
        return k, ((apart >= 0.07) & (v <= v_r)) | (inside & below)
    return first_accepted(words, n, proposed)


def first_accepted(words, like, proposed):
    """The first number of proposed(u, v) → (number, is it accepted?) that is, for each element.

    u is uniform in [-1/2, 1/2), v in [0, 1).
    """
    def step(state):
        found, accepted, words = state
        words, first, second = parts(words, 3)
        k, accept = proposed(unit_number(first, like.shape, like.dtype) - 0.5,
                             unit_number(second, like.shape, like.dtype))
        return ops.select(accept, k, found), accepted | accept, words
    start = ops.full_like(like, -1.0), ops.full(shape=like.shape, value=False, dtype=BOOL), words
    return while_loop(lambda s: ops.not_(fnp.all(s[1])), step, start)[0]


def multinomial(key, n, p, *, shape=None, dtype=None):
    """How many of n tries fall into each class, with probabilities p.   f[…,k] → f[*shape,k]

    One class after the other is a binomial number of the tries that are left.
    """
    dtype = float_dtype(dtype, "multinomial")
    p = in_dtype(p, F64)
    lead = p.shape[:-1] if shape is None else shape_of(shape, "multinomial")[:-1]
    p = broadcast_to(p, (*lead, p.shape[-1]))
    left = broadcast_to(in_dtype(n, F64), lead)
    share = ops.full(shape=lead, value=1.0, dtype=F64)
    words, out = consumed(key, "multinomial"), []
    for k, own in enumerate(parts(words, max(p.shape[-1] - 1, 1))[:p.shape[-1] - 1]):
        ratio = fnp.clip(fnp.where(share > 0, p[..., k] / share, 0.0), 0.0, 1.0)
        out.append(binomial(revived(own), left, ratio, lead, F64))
        left, share = left - out[-1], share - p[..., k]
    return cast(fnp.stack([*out, left], -1), dtype)
