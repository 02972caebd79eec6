"""Exponentials, logarithms, inverses of hyperbolic functions, in forms that do not overflow.

Where a branch is chosen elementwise, the other one is computed at a harmless place, so that
derivatives stay finite too.
"""

from __future__ import annotations

import math

from .. import ops
from ..custom import stop_gradient
from . import elementwise, reductions, ufuncs
from .axes import axes_of
from .complex import is_complex
from .promotion import as_float, floating, floating_together, mask_of, same
from .shape import squeeze


def exp2(x, /):
    """2ˣ.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.exp2([0, 3])
    Array([1., 8.], f32[2])
    """
    return same(ops.pow, 2.0, as_float(x))


def log2(x, /):
    """The logarithm to base 2.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.log2([1, 8])
    Array([0., 3.], f32[2])
    """
    return over(floating(ops.log, x), math.log(2))


def log10(x, /):
    """The logarithm to base 10.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.log10([1, 100])
    Array([0., 2.], f32[2])
    """
    return over(floating(ops.log, x), math.log(10))


def over(x, number):
    """x divided by a number, a complex x part by part: -inf + 0i stays."""
    if is_complex(x):
        return ops.complex(over(ops.real(x), number), over(ops.imag(x), number))
    return same(ops.div, x, number)


def logaddexp(x1, x2, /):
    """log(exp(x1) + exp(x2)) without overflow.   f[*a] f[*b] → f[*broadcast]

    Derivatives of every order exist, where x1 and x2 are equal too.

    >>> import fgrad.numpy as fnp
    >>> fnp.round(fnp.logaddexp(1000.0, 1000.0), 2)
    Array(1000.69, f32[])
    """
    return same(ops.logaddexp, *floating_together(x1, x2))


def logaddexp2(x1, x2, /):
    """log₂(2^x1 + 2^x2) without overflow.   f[*a] f[*b] → f[*broadcast]"""
    x, y = [same(ops.mul, as_float(x), math.log(2)) for x in floating_together(x1, x2)]
    return same(ops.div, logaddexp(x, y), math.log(2))


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """log(Σ b exp(a)) over `axis`, without overflow; -inf where all of a is.

    f[*s] → f[s without axes].  b: factors, 1 by default.  where: elements that count.
    return_sign: also the sign of the sum, whose size is then meant; without, a negative sum is NaN.
    The maximum is subtracted first; its gradient cancels, so it is held constant.

    >>> import fgrad.numpy as fnp
    >>> logsumexp(fnp.array([1000.0, 1000.0]))
    Array(1000.6932, f32[])
    """
    a = as_float(a)
    a, b = (a, None) if b is None else floating_together(a, b)
    if where is not None:
        a = elementwise.where(mask_of(where), a, -math.inf)
    if b is not None:
        a = elementwise.where(b == 0, -math.inf, a)
    axes_of(axis, a.ndim, "logsumexp")
    size = ops.real(a) if is_complex(a) else a
    most = stop_gradient(reductions.max(size, axis=axis, keepdims=True, initial=-math.inf))
    most = elementwise.where(elementwise.isfinite(most), most, 0.0)
    part = ufuncs.exp(a - most)
    total = reductions.sum(part if b is None else part * b, axis=axis, keepdims=True)
    sign = ufuncs.sign(total)
    total = elementwise.absolute(total) if return_sign else total
    out = ufuncs.log(total) + most
    out, sign = (out, sign) if keepdims else (squeeze(out, axis), squeeze(sign, axis))
    return (out, sign) if return_sign else out


# ---------------------------------------------------------------------------- hyperbolic inverses

def softmax(x, axis=None):
    """exp(x) over its sum along `axis`; None: of all elements.   f[*s] → f[*s]"""
    x = as_float(x)
    axes_of(axis, x.ndim, "softmax")
    if not x.size:
        return x
    e = ops.exp(x - stop_gradient(reductions.max(x, axis=axis, keepdims=True)))
    return e * (1 / reductions.sum(e, axis=axis, keepdims=True))


def arcsinh(x, /):
    """The inverse of sinh.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.arcsinh(0.0)
    Array(0., f32[])
    """
    x = as_float(x)
    if is_complex(x):
        return turned_back(ops.asin(turned(x)))
    return ops.asinh(x)


def arccosh(x, /):
    """The inverse of cosh; NaN below 1.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.arccosh(1.0)
    Array(0., f32[])
    """
    x = as_float(x)
    if is_complex(x):
        angle = ops.acos(x)
        below = elementwise.signbit(ops.imag(x))
        return ops.select(below, turned_back(angle), turned(angle))
    return ops.acosh(x)


def turned(z):
    """z times i."""
    return ops.complex(ops.neg(ops.imag(z)), ops.real(z))


def turned_back(z):
    """z over i."""
    return ops.complex(ops.imag(z), ops.neg(ops.real(z)))


def arctanh(x, /):
    """The inverse of tanh; NaN outside of [-1, 1].   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.arctanh([0.0, 1.0])
    Array([ 0., inf], f32[2])
    """
    x = as_float(x)
    if is_complex(x):
        return turned_back(ops.atan(turned(x)))
    return same(ops.mul, same(ops.sub, ops.log1p(x), ops.log1p(ops.neg(x))), 0.5)
