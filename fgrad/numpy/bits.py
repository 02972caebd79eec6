"""Whole numbers and bits, and the parts of floats."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..bf16 import BF16
from ..core import Value, as_value
from ..errors import ArgumentError, DtypeError
from ..types import COMPUTED, F16, F32, F64, I32, finfo
from .axes import axis_of, typed
from .creation import zeros_like
from .elementwise import signbit
from .joining import concatenate
from .padding import pad
from .promotion import (
    as_float, as_number, binary, broadcast_to, cast, floating_together, same, together)
from .shape import moveaxis, ravel

U8 = np.dtype("uint8")
REACH = {F16: 44, F64: 2100}   # powers of two from the least to the largest number; else 280


# ---------------------------------------------------------------------------- whole numbers

def whole(name, *xs):
    """Values of one dtype of integers and of one shape."""
    values = [as_number(x) for x in together(*xs)]
    if values[0].dtype.kind not in "iu":
        raise DtypeError(f"{name} is defined for integers.", given=str(values[0].type))
    return values


def gcd(x1, x2, /):
    """The greatest common divisor.   i[*a] i[*b] → i[*broadcast]

    Euclid's steps, as many as the dtype can need: 1.45 per bit.

    >>> import fgrad.numpy as fnp
    >>> fnp.gcd(12, 18)
    Array(6, i32[])
    """
    x, y = whole("gcd", x1, x2)
    bits = 8 * x.dtype.itemsize
    x, y = ops.abs(x), ops.abs(y)
    for _ in range(int(1.45 * bits) + 2):
        done = same(ops.eq, y, 0)
        x, y = ops.select(done, x, y), ops.select(done, y, same(ops.rem, x, y))
    return x


def lcm(x1, x2, /):
    """The least common multiple; 0 beside 0.   i[*a] i[*b] → i[*broadcast]

    >>> import fgrad.numpy as fnp
    >>> fnp.lcm(4, 6)
    Array(12, i32[])
    """
    x, y = whole("lcm", x1, x2)
    divisor = gcd(x, y)
    x, y = ops.abs(x), ops.abs(y)
    return same(ops.mul, same(ops.div, x, ops.select(same(ops.eq, divisor, 0), 1, divisor)), y)


def bitwise_count(x, /):
    """How many bits of |x| are 1.   i[*s] → u8[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.bitwise_count([1, 255])
    Array([1, 8], u8[2])
    """
    (x,) = whole("bitwise_count", x)
    x = ops.abs(x)
    out = ops.full(shape=x.shape, value=0, dtype=x.dtype)
    for k in range(8 * x.dtype.itemsize):
        out = same(ops.add, out, same(ops.and_, same(ops.shr, x, k), 1))
    return cast(out, U8)


def packbits(a, axis=None, bitorder="big"):
    """Bits, 8 to a byte along an axis, zeros behind; None: of the flat array.

    n[*s,k] → u8[*s,⌈k/8⌉]

    >>> import fgrad.numpy as fnp
    >>> fnp.packbits([1, 0, 0, 0, 0, 0, 1, 1])
    Array([131], u8[1])
    """
    x, k, powers = bitwise(a, axis, bitorder, "packbits")
    bit = cast(same(ops.ne, x, ops.zeros_like(x)), I32)
    bit = moveaxis(bit, k, -1)
    missing = -bit.shape[-1] % 8
    if missing:
        bit = concatenate([bit, zeros_like(bit, shape=(*bit.shape[:-1], missing))], axis=-1)
    groups = ops.reshape(bit, shape=(*bit.shape[:-1], bit.shape[-1] // 8, 8))
    total = ops.reduce_sum(binary(ops.mul, groups, powers), axes=(groups.ndim - 1,))
    return moveaxis(cast(total, U8), -1, k)


def unpackbits(a, axis=None, count=None, bitorder="big"):
    """The bits of bytes along an axis; None: of the flat array; `count` of them.

    u8[*s,k] → u8[*s,8k]

    >>> import fgrad.numpy as fnp
    >>> fnp.unpackbits(fnp.array([131], dtype="uint8"))
    Array([1, 0, 0, 0, 0, 0, 1, 1], u8[8])
    """
    x, k, powers = bitwise(a, axis, bitorder, "unpackbits")
    if x.dtype != U8:
        raise DtypeError("unpackbits needs bytes.", given=typed(x), expected="u8")
    x = moveaxis(cast(x, I32), k, -1)
    wide = ops.broadcast(x, shape=(*x.shape, 8), axes=(x.ndim,))
    bit = same(ops.ne, same(ops.and_, wide, broadcast_to(powers, wide.shape)), 0)
    out = ops.reshape(cast(bit, U8), shape=(*x.shape[:-1], 8 * x.shape[-1]))
    if count is not None:                        # beyond the bits there are, zeros
        more = max(0, count - out.shape[-1])
        out = pad(out, [(0, 0)] * (out.ndim - 1) + [(0, more)])[..., :count]
    return moveaxis(out, -1, k)


def bitwise(a, axis, bitorder, name):
    """(the array, its axis, the powers of 2 in the order of the bits)."""
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{name} has no bitorder {bitorder!r}.", expected="big or little")
    x = as_value(a)
    if x.dtype.kind not in "biu":
        raise DtypeError(f"{name} needs integers or bools.", given=typed(x))
    x, k = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim, name))
    powers = 1 << np.arange(8, dtype=I32)
    return x, k, as_value(powers[::-1] if bitorder == "big" else powers)


# ---------------------------------------------------------------------------- parts of floats

def modf(x, /):
    """(fraction, whole part), both with the sign of x.   f[*s] → f[*s], f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.modf(3.5)
    (Array(0.5, f32[]), Array(3., f32[]))
    """
    x = as_float(x)
    negative = signbit(x)
    signed = lambda v: ops.select(negative, ops.neg(v), v)
    size = signed(x)                             # not abs(x), whose derivative is 0 at 0
    low = ops.floor(size)
    part = ops.select(same(ops.eq, size, float("inf")), 0.0, same(ops.sub, size, low))
    return signed(part), signed(low)


def ldexp(x1, x2, /):
    """x1 · 2^x2.   f[*a] i[*b] → f[*broadcast]; by four factors, so that no power overflows

    >>> import fgrad.numpy as fnp
    >>> fnp.ldexp(0.5, 3)
    Array(4., f32[])
    """
    x, n = as_float(x1), as_value(x2)
    if n.dtype.kind not in "iu":
        raise DtypeError("ldexp needs integers for the power.", given=typed(n))
    reach = REACH.get(x.dtype, 280)
    n = ops.clamp(-reach, cast(n, I32), reach)
    part = same(ops.div, n, 4)
    factor, last = [ops.pow(2.0, cast(v, x.dtype)) for v in (part, same(ops.sub, n, 3 * part))]
    for power in (factor, factor, factor, last):
        x = binary(ops.mul, x, power)
    return x


def frexp(x, /):
    """(m, e) with x = m · 2ᵉ and 1/2 <= |m| < 1; (x, 0) for 0, inf and NaN.

    f[*s] → f[*s], i32[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.frexp(6.0)
    (Array(0.75, f32[]), Array(3, i32[]))
    """
    x = as_float(x)
    if x.dtype in COMPUTED:
        m, power = frexp(cast(x, F32))
        return cast(m, x.dtype), power
    plain = same(ops.and_, ops.is_finite(x), same(ops.ne, x, 0.0))
    size = ops.select(plain, ops.abs(x), 1.0)
    tiny = 2.0 ** 24 if x.dtype.itemsize == 4 else 2.0 ** 54
    small = same(ops.lt, size, float(finfo(x.dtype).tiny))
    size = ops.select(small, same(ops.mul, size, tiny), size)
    power = same(ops.add, ops.floor(same(ops.div, ops.log(size), float(np.log(2)))), 1.0)
    m = ldexp(size, cast(ops.neg(power), I32))
    power = ops.select(same(ops.lt, m, 0.5), same(ops.sub, power, 1.0),
                       ops.select(same(ops.ge, m, 1.0), same(ops.add, power, 1.0), power))
    m = ldexp(size, cast(ops.neg(power), I32))
    m = ops.select(same(ops.lt, x, 0.0), ops.neg(m), m)
    power = ops.select(small, same(ops.sub, power, float(np.log2(tiny))), power)
    return ops.select(plain, m, x), cast(ops.select(plain, power, 0.0), I32)


def nextafter(x1, x2, /):
    """The float beside x1 on the way to x2; the derivative is zero.   f[*a] f[*b] → f[*broadcast]

    Raises DtypeError for bf16.

    >>> nextafter(1.0, 2.0).item() - 1.0 == 2.0 ** -23
    True
    """
    x, y = floating_together(x1, x2)
    if x.dtype is BF16:
        raise DtypeError("nextafter is not defined for bf16.", given=typed(x), fix="convert to f32")
    return ops.nextafter(x, y)


def spacing(x, /):
    """How far the next float away from zero is, with the sign of x.   f[*s] → f[*s]"""
    x = as_float(x)
    away = ops.select(same(ops.lt, x, 0.0), -float("inf"), ops.full_like(x, float("inf")))
    out = same(ops.sub, nextafter(x, away), x)
    return ops.select(ops.is_finite(x), out, float("nan"))


# ---------------------------------------------------------------------------- numbers

def isscalar(element):
    """Is it a number, or an array without axes?

    >>> import fgrad.numpy as fnp
    >>> fnp.isscalar(3.0), fnp.isscalar([3.0])
    (True, False)
    """
    return element.shape == () if isinstance(element, Value) else np.isscalar(element)
