"""Complex numbers: their parts, length and angle, and what of them real arrays have."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..arguments import lifted
from ..core import Array, as_value
from ..types import complex_of
from .promotion import as_float, cast, same, together


def is_complex(x):
    """Is the value's dtype complex?"""
    return x.dtype.kind == "c"


def real(val, /):
    """The real part: of a real array, itself.   n[*s] → n[*s]

    >>> real(1 + 2j).item()
    1.0
    """
    x = lifted(val)
    return ops.real(x) if is_complex(x) else x


def imag(val, /):
    """The imaginary part: of a real array, zeros.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.imag(1 + 2j)
    Array(2., f32[])
    """
    x = as_value(val)
    return ops.imag(x) if is_complex(x) else ops.zeros_like(x)


def conjugate(x, /):
    """x with the sign of its imaginary part changed: a real array itself.   n[*s] → n[*s]

    >>> conjugate(1 + 2j).item()
    (1-2j)
    """
    x = lifted(x)
    return ops.complex(ops.real(x), ops.neg(ops.imag(x))) if is_complex(x) else x


def complex_from(x, y):
    """x + iy.   f[*a] f[*b] → c[*broadcast]"""
    x, y = together(as_float(x), as_float(y))
    part = np.dtype("float64") if x.dtype == np.dtype("float64") else np.dtype("float32")
    return ops.complex(cast(x, part), cast(y, part))


def modulus(z):
    """|z| without overflow; its derivative at 0 is 0.   c[*s] → f[*s]"""
    return same(ops.hypot, ops.real(z), ops.imag(z))


def squared(x):
    """|x|², which has a derivative everywhere.   n[*s] → n[*s], c[*s] → f[*s]"""
    if not is_complex(x):
        return ops.square(x)
    return same(ops.add, ops.square(ops.real(x)), ops.square(ops.imag(x)))


def direction(z):
    """z / |z|, and 0 for 0.   c[*s] → c[*s]"""
    size = modulus(z)
    safe = ops.select(same(ops.eq, size, 0.0), 1.0, size)
    return ops.complex(same(ops.div, ops.real(z), safe), same(ops.div, ops.imag(z), safe))


def angle(z, deg=False):
    """The angle of a number in the complex plane, in radians, or degrees with `deg`.

    n[*s] → f[*s]; of a real number 0, or π for negative ones.

    >>> angle(1j, deg=True).item()
    90.0
    """
    x = as_float(z)
    if is_complex(x):
        out = same(ops.atan2, ops.imag(x), ops.real(x))
        return same(ops.mul, out, 180 / math.pi) if deg else out
    half = ops.full(shape=x.shape, value=180.0 if deg else math.pi, dtype=x.dtype)
    out = ops.select(same(ops.lt, x, 0.0), half, ops.zeros_like(x))
    return ops.select(same(ops.ne, x, x), x, out)


def isreal(x):
    """Has the element no imaginary part?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.isreal([1 + 0j, 1j])
    Array([ True, False], bool[2])
    """
    x = as_value(x)
    return same(ops.eq, imag(x), 0 if x.dtype.kind != "b" else False)


def iscomplex(x):
    """Has the element an imaginary part?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.iscomplex([1 + 0j, 1j])
    Array([False,  True], bool[2])
    """
    return ops.not_(isreal(x))


def iscomplexobj(x):
    """Is the dtype complex?

    >>> import fgrad.numpy as fnp
    >>> fnp.iscomplexobj([1j])
    True
    """
    return is_complex(as_value(x))


def isrealobj(x):
    """Is the dtype real?

    >>> import fgrad.numpy as fnp
    >>> fnp.isrealobj([1.0])
    True
    """
    return not iscomplexobj(x)


def real_if_close(a, tol=100):
    """The real part, where all imaginary parts are within `tol` eps of zero; for values only.

    >>> real_if_close(1 + 0j).item()
    1.0
    """
    x = lifted(a)
    return Array(np.real_if_close(x.value_for("real_if_close"), tol)) if is_complex(x) else x


def as_complex(x):
    """x as complex numbers, whose parts are as wide as x."""
    x = as_value(x)
    return x if is_complex(x) else cast(x, complex_of(x.dtype))
