"""Distributions that are a formula of uniform or normal numbers, as in jax.random.

Parameters broadcast to `shape`, whose default is the shape they have together.  Derivatives by
parameters go through the formula.  Relies on `basic`.
"""

from __future__ import annotations

import math

from .. import numpy as fnp
from .. import ops
from ..errors import ArgumentError, ShapeError
from ..numpy import linalg
from ..numpy.axes import broadcast_shapes, shape_of, text_of
from ..numpy.promotion import as_float, broadcast_to, cast, in_dtype, join, same
from ..types import as_dtype, default_int, finfo
from .basic import (
    between, consumed, exponential, float_dtype, normal, rademacher, revived, uniform)


def parameters(name, shape, dtype, *xs):
    """(parameters of the dtype, broadcast; the shape).  Raises ShapeError where they do not fit."""
    values = [in_dtype(x, dtype) for x in xs]
    own = broadcast_shapes(*[v.shape for v in values])
    shape = own if shape is None else shape_of(shape, name)
    if broadcast_shapes(own, shape) != shape:
        raise ShapeError(f"{name} cannot draw the shape {text_of(shape)} with parameters of shape "
                         f"{text_of(own)}.", fix="leave the shape out, or put more axes in front")
    return [broadcast_to(v, shape) for v in values], shape


def pair(key, name):
    """Two keys made of one, which is used by that."""
    words = ops.random_split(consumed(key, name), shape=(2,))
    return revived(words[0]), revived(words[1])


def cauchy(key, shape=(), dtype=None):
    """Numbers of the Cauchy distribution: tan π(u - 1/2).   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.cauchy(fgrad.random.key(0), (5,)).shape
    (5,)
    """
    dtype = float_dtype(dtype, "cauchy")
    u = between(consumed(key, "cauchy"), shape_of(shape, "cauchy"), dtype, finfo(dtype).eps,
                dtype.type(1))
    return ops.tan(same(ops.mul, same(ops.sub, u, 0.5), math.pi))


def logistic(key, shape=(), dtype=None):
    """Numbers of the logistic distribution: log(u / (1 - u)).   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.logistic(fgrad.random.key(0), (5,)).shape
    (5,)
    """
    dtype = float_dtype(dtype, "logistic")
    u = between(consumed(key, "logistic"), shape_of(shape, "logistic"), dtype,
                finfo(dtype).tiny, dtype.type(1))
    return same(ops.sub, ops.log(u), ops.log1p(ops.neg(u)))


def lognormal(key, sigma=1.0, shape=None, dtype=None):
    """exp(σ z) of normal z.   → f[*shape]"""
    dtype = float_dtype(dtype, "lognormal")
    (sigma,), shape = parameters("lognormal", shape, dtype, sigma)
    return ops.exp(same(ops.mul, normal(key, shape, dtype), sigma))


def pareto(key, b, shape=None, dtype=None):
    """Numbers of the Pareto distribution with density b x⁻ᵇ⁻¹ from 1 on.   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.pareto(fgrad.random.key(0), 3.0, (5,)).shape
    (5,)
    """
    dtype = float_dtype(dtype, "pareto")
    (b,), shape = parameters("pareto", shape, dtype, b)
    return ops.exp(same(ops.div, exponential(key, shape, dtype), b))


def rayleigh(key, scale, shape=None, dtype=None):
    """The length of a vector of two normal numbers, times scale.   → f[*shape]"""
    dtype = float_dtype(dtype, "rayleigh")
    (scale,), shape = parameters("rayleigh", shape, dtype, scale)
    u = uniform(key, shape, dtype)
    return same(ops.mul, scale, ops.sqrt(same(ops.mul, ops.log(u), -2.0)))


def maxwell(key, shape=(), dtype=None):
    """The length of a vector of three normal numbers.   → f[*shape]"""
    shape = shape_of(shape, "maxwell")
    return linalg.norm(normal(key, (*shape, 3), dtype), axis=-1)


def double_sided_maxwell(key, loc, scale, shape=(), dtype=None):
    """loc ± scale times a Maxwell number.   → f[*shape, *parameters]"""
    dtype = float_dtype(dtype, "double_sided_maxwell")
    (loc, scale), own = parameters("double_sided_maxwell", None, dtype, loc, scale)
    shape = (shape_of(shape, "double_sided_maxwell") or own) + own
    first, second = pair(key, "double_sided_maxwell")
    sign = rademacher(second, shape, dtype)
    return sign * maxwell(first, shape, dtype) * scale + loc


def weibull_min(key, scale, concentration, shape=None, dtype=None):
    """scale (-log(1 - u))^(1 / concentration).   → f[*shape]"""
    dtype = float_dtype(dtype, "weibull_min")
    (scale, k), shape = parameters("weibull_min", shape, dtype, scale, concentration)
    u = uniform(key, shape, dtype)
    return ops.neg(ops.log1p(ops.neg(u))) ** (1.0 / k) * scale


def wald(key, mean, shape=None, dtype=None):
    """Numbers of the inverse Gaussian distribution with scale 1 (Michael et al. 1976).   → f[…]"""
    dtype = float_dtype(dtype, "wald")
    (mean,), shape = parameters("wald", shape, dtype, mean)
    first, second = pair(key, "wald")
    y = ops.square(normal(first, shape, dtype))
    z = uniform(second, shape, dtype)
    squared = mean * mean
    x = mean + squared * y / 2 - mean / 2 * ops.sqrt(4 * mean * y + squared * y * y)
    return fnp.where(z <= mean / (mean + x), x, squared / x)


def geometric(key, p, shape=None, dtype=None):
    """How many tries until the first success, each with probability p.   → i32[*shape]

    >>> import fgrad
    >>> fgrad.random.geometric(fgrad.random.key(0), 0.5, (3,)).shape
    (3,)
    """
    dtype = default_int() if dtype is None else as_dtype(dtype)
    p = as_float(p)
    (p,), shape = parameters("geometric", shape, p.dtype, p)
    u = uniform(key, shape, p.dtype)
    u = ops.select(same(ops.eq, u, 0.0), 1.0, u)
    tries = ops.floor(same(ops.div, ops.log(u), ops.log1p(ops.neg(p))))
    return cast(same(ops.add, tries, 1.0), dtype)


def triangular(key, left, mode, right, shape=None, dtype=None):
    """Numbers whose density rises from left to mode, and falls to right.   → f[*shape]"""
    dtype = float_dtype(dtype, "triangular")
    (left, mode, right), shape = parameters("triangular", shape, dtype, left, mode, right)
    u, width = uniform(key, shape, dtype), right - left
    rising = left + ops.sqrt(u * width * (mode - left))
    falling = right - ops.sqrt((1 - u) * width * (right - mode))
    return fnp.where(u < (mode - left) / width, rising, falling)


def multivariate_normal(key, mean, cov, shape=None, dtype=None, method="cholesky"):
    """Normal vectors with these means and this covariance.   f[…,n] f[…,n,n] → f[*shape,n]

    method: how the root of cov is found: "cholesky", or "eigh" or "svd" for a singular one.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> cov = fnp.array([[2.0, 1.0], [1.0, 2.0]])
    >>> fgrad.random.multivariate_normal(fgrad.random.key(0), fnp.zeros(2), cov, (5,)).shape
    (5, 2)
    """
    mean, cov = as_float(mean), as_float(cov)
    mean, cov = [cast(v, join([mean.dtype, cov.dtype])) for v in (mean, cov)]
    if not mean.shape or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ShapeError("multivariate_normal needs means f[…,n] and a covariance f[…,n,n].",
                         given=[f"mean: {mean.type}", f"cov: {cov.type}"])
    own = broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    shape = own if shape is None else shape_of(shape, "multivariate_normal")
    z = normal(key, shape + mean.shape[-1:], mean.dtype if dtype is None else dtype)
    return mean + fnp.matmul(root_of(cov, method), z[..., None])[..., 0]


def root_of(cov, method):
    """R with R Rᵀ = cov."""
    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "eigh":
        w, v = linalg.eigh(cov)
        return v * ops.sqrt(w)[..., None, :]
    if method == "svd":
        u, s, _ = linalg.svd(cov)
        return u * ops.sqrt(s)[..., None, :]
    raise ArgumentError(f"multivariate_normal has no method {method!r}.",
                        expected="cholesky, eigh or svd")


def orthogonal(key, n, shape=(), dtype=None, m=None):
    """Matrices with orthonormal columns (rows, if m > n), each as likely as every other.

    → f[*shape,n,m]; m is n by default

    >>> import fgrad
    >>> fgrad.random.orthogonal(fgrad.random.key(0), 3).shape
    (3, 3)
    """
    dtype, m = float_dtype(dtype, "orthogonal"), n if m is None else m
    z = normal(key, (*shape_of(shape, "orthogonal"), max(n, m), min(n, m)), dtype)
    q, r = linalg.qr(z)
    out = q * ops.sign(fnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return fnp.matrix_transpose(out) if n < m else out
