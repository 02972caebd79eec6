"""Window functions of NumPy: symmetric, with 1 for a single point."""

from __future__ import annotations

import math

from .. import ops
from ..errors import ShapeError
from ..types import default_float
from .axes import shape_of
from .promotion import as_float, binary, same, together


def places(M, name):
    """0, 1, …, M - 1 over M - 1, of the default float; 0 for one point."""
    (n,) = shape_of(M, name)
    return same(ops.div, ops.iota(shape=(n,), axis=0, dtype=default_float()), float(max(n - 1, 1)))


def cosines(M, name, *weights):
    """Σ wₖ cos 2πkx over the window; 1 for one point."""
    x = places(M, name)
    if x.size == 1:
        return ops.full_like(x, 1.0)
    out = ops.full_like(x, weights[0])
    for k, w in enumerate(weights[1:], 1):
        part = ops.cos(same(ops.mul, x, 2 * math.pi * k))
        out = same(ops.add, out, same(ops.mul, part, w))
    return out


def hanning(M):
    """0.5 - 0.5 cos 2πx.   → f32[M]

    >>> import fgrad.numpy as fnp
    >>> fnp.hanning(3)
    Array([0., 1., 0.], f32[3])
    """
    return cosines(M, "hanning", 0.5, -0.5)


def hamming(M):
    """0.54 - 0.46 cos 2πx.   → f32[M]

    >>> import fgrad.numpy as fnp
    >>> fnp.hamming(3).shape
    (3,)
    """
    return cosines(M, "hamming", 0.54, -0.46)


def blackman(M):
    """0.42 - 0.5 cos 2πx + 0.08 cos 4πx.   → f32[M]

    >>> import fgrad.numpy as fnp
    >>> fnp.blackman(3).shape
    (3,)
    """
    return cosines(M, "blackman", 0.42, -0.5, 0.08)


def bartlett(M):
    """A triangle: 1 - |2x - 1|.   → f32[M]

    >>> import fgrad.numpy as fnp
    >>> fnp.bartlett(3)
    Array([0., 1., 0.], f32[3])
    """
    x = places(M, "bartlett")
    if x.size == 1:
        return ops.full_like(x, 1.0)
    return same(ops.sub, 1.0, ops.abs(same(ops.sub, same(ops.mul, x, 2.0), 1.0)))


def kaiser(M, beta):
    """I₀(β √(1 - (2x - 1)²)) / I₀(β).   → f32[M].  Raises ShapeError unless beta is a scalar.

    >>> import fgrad.numpy as fnp
    >>> fnp.kaiser(3, 5.0).shape
    (3,)
    """
    x, beta = places(M, "kaiser"), as_float(beta)
    if beta.shape:
        raise ShapeError("kaiser needs one number for beta.", given=str(beta.type))
    if x.size == 1:
        return ops.full_like(x, 1.0)
    far = same(ops.sub, same(ops.mul, x, 2.0), 1.0)
    height = ops.sqrt(same(ops.max, same(ops.sub, 1.0, ops.square(far)), 0.0))
    inner, outer = [ops.abs(v) for v in together(binary(ops.mul, height, beta), beta)]
    ratio = same(ops.div, ops.bessel_i0e(inner), ops.bessel_i0e(outer))
    return same(ops.mul, ops.exp(same(ops.sub, inner, outer)), ratio)    # i0 itself overflows


def i0(x):
    """I₀(x), the modified Bessel function of order 0.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.round(fnp.i0(1.0), 3)
    Array(1.266, f32[])
    """
    x = as_float(x)
    return same(ops.mul, ops.exp(ops.abs(x)), ops.bessel_i0e(x))
