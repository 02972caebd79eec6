"""Elementwise functions made of several operations: remainders, powers, choices, special values.

Relies on `ufuncs` and `promotion`.  Numerical forms avoid overflow and keep derivatives right;
where that takes a trick it stands beside the formula.
"""

from __future__ import annotations

import math

from .. import ops
from ..arguments import lifted
from ..core import NOTHING, Tracer, _current, as_value
from ..errors import ArgumentError, RangeError
from ..types import BOOL, F64, INEXACT_KINDS, SCALARS, finfo
from .complex import modulus
from .places import nonzero
from .promotion import (
    WEAK, as_bool, as_float, as_number, as_value_or_number, beside, binary_float, cast, floating,
    floating_together, is_number, same, same_shape, together, unary)

INTEGER_POWERS = 64        # of known exponents up to here, by multiplication


# ---------------------------------------------------------------------------- quotients and powers

def remainder(x1, x2, /):
    """x1 - x2 ⌊x1 / x2⌋: the remainder with the sign of x2, as Python's `%`.

    n[*a] n[*b] → n[*broadcast]; integers give 0 where x2 is 0, floats NaN.

    >>> remainder(-7, 3).item()
    2
    """
    x, y = [as_number(v) for v in together(x1, x2)]
    rest = same(ops.rem, x, y)
    below = same(ops.lt, rest, 0)
    wrong = same(ops.and_, same(ops.ne, rest, 0), same(ops.ne, below, same(ops.lt, y, 0)))
    return ops.select(wrong, same(ops.add, rest, y), rest)


def fmod(x1, x2, /):
    """The remainder with the sign of x1, as in C.   n[*a] n[*b] → n[*broadcast]

    >>> import fgrad.numpy as fnp
    >>> fnp.fmod(-7, 3)
    Array(-1, i32[])
    """
    return same(ops.rem, *[as_number(v) for v in together(x1, x2)])


def floor_divide(x1, x2, /):
    """⌊x1 / x2⌋, as Python's `//`.   n[*a] n[*b] → n[*broadcast]; the derivative is zero

    Integers give 0 where x2 is 0, floats inf or NaN.

    >>> floor_divide(-7, 2).item()
    -4
    """
    x, y = [as_number(v) for v in together(x1, x2)]
    rest = same(ops.rem, x, y)
    differ = same(ops.ne, same(ops.lt, x, 0), same(ops.lt, y, 0))
    below = cast(same(ops.and_, same(ops.ne, rest, 0), differ), x.dtype)
    if x.dtype.kind != "f":
        return same(ops.sub, same(ops.div, x, y), below)
    whole = ops.round(same(ops.div, same(ops.sub, x, rest),
                           y))    # a multiple of y, but for rounding
    return ops.select(same(ops.eq, y, 0.0), ops.floor(same(ops.div, x, y)),
                      same(ops.sub, whole, below))


def divmod(x1, x2, /):
    """(floor_divide(x1, x2), remainder(x1, x2)).

    >>> import fgrad.numpy as fnp
    >>> fnp.divmod(-7, 3)
    (Array(-3, i32[]), Array(2, i32[]))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


def power(x1, x2, /):
    """x1 to the power of x2.   n[*a] n[*b] → n[*broadcast]

    A whole Python number as the exponent is done by multiplication, with its exact derivative.
    Integers to negative powers in an array: 0, save for 1 and -1.  Raises RangeError for integers
    to the power of a negative Python number.

    >>> power([1.0, 2.0, 3.0], 2).tolist()
    [1.0, 4.0, 9.0]
    """
    x, y = as_value_or_number(x1), as_value_or_number(x2)
    if y.__class__ in SCALARS:
        known = known_power(x if isinstance(x, Tracer) and x.is_number else as_number(x), y)
        if known is not None:
            return known
    if not (is_number(x) or is_number(y)):
        x, y = together(x, y)
    kinds = [type(v).__name__[0] if v.__class__ in WEAK else v.dtype.kind for v in (x, y)]
    if "f" in kinds or "c" in kinds:
        return binary_float(ops.pow, x, y)
    return whole_power(*[as_number(v) for v in together(x, y)])


def known_power(x, n):
    """x to the power of a Python number by multiplication or a root, or None where neither does."""
    if x.dtype.kind not in INEXACT_KINDS and n.__class__ is float:
        return None
    if x.is_number and (n < 0 or n.__class__ is float or x.dtype.kind == "f"):
        return ops.pow(x, n)                     # a Python number again
    if n == 2:
        return ops.square(x)
    if x.dtype.kind in INEXACT_KINDS and n == 0.5:
        return ops.sqrt(x)
    if n == int_or_none(n) and abs(n) <= INTEGER_POWERS:
        if n < 0 and x.dtype.kind not in INEXACT_KINDS:
            raise RangeError("integers cannot be raised to negative powers.",
                             given=f"{x.type} ** {n}",
                             fix="use a float: x.astype(float) ** n")
        return ops.integer_pow(x, n=int(n))
    return None


def int_or_none(n):
    """The int that a finite Python number stands for, or None."""
    return int(n) if math.isfinite(n) else None


def whole_power(x, y):
    """x to the power of y, of integers: squares of x where y has a bit.

    A negative y: 0, save for 1 and -1, of which the lowest bit of y tells the power.
    """
    bits = 8 * y.dtype.itemsize - (y.dtype.kind == "i")
    base, out = x, ops.full_like(x, 1)
    for k in range(bits):
        odd = same(ops.ne, same(ops.and_, y, 1 << k), 0)
        out = same(ops.mul, out, ops.select(odd, x, 1))
        x = same(ops.mul, x, x)
    if y.dtype.kind == "u":
        return out
    none = ops.and_(same(ops.lt, y, 0), same(ops.ne, ops.abs(base), 1))
    return ops.select(none, 0, out)


def float_power(x1, x2, /):
    """x1 to the power of x2, always of floats.

    >>> import fgrad.numpy as fnp
    >>> fnp.float_power(2, [-1, 3])
    Array([0.5, 8. ], f32[2])
    """
    if not is_number(x2):
        x1, x2 = floating_together(x1, x2)
    return power(as_float(x1), x2)


def reciprocal(x, /):
    """1 / x, of floats.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.reciprocal([2.0, 4.0])
    Array([0.5 , 0.25], f32[2])
    """
    return same(ops.div, 1.0, as_float(x))


def positive(x, /):
    """x itself.

    >>> import fgrad.numpy as fnp
    >>> fnp.positive([-2, 3])
    Array([-2,  3], i32[2])
    """
    return lifted(x)


def absolute(x, /):
    """|x|; its derivative at 0 is 0.   n[*s] → n[*s], c[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.absolute([-2, 3])
    Array([2, 3], i32[2])
    """
    x = as_value(x)
    if x.dtype.kind == "c":
        return modulus(x)
    return x if x.dtype == BOOL else _current.get().process(ops.abs, (x,), NOTHING)


def fabs(x, /):
    """|x| of floats.

    >>> import fgrad.numpy as fnp
    >>> fnp.fabs([-2, 3])
    Array([2., 3.], f32[2])
    """
    return floating(ops.abs, x)


def cbrt(x, /):
    """The cube root, of negative numbers too.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.cbrt(-8.0)
    Array(-2., f32[])
    """
    return floating(ops.cbrt, x)


def hypot(x1, x2, /):
    """√(x1² + x2²) without overflow; its derivatives at 0 are 0.   f[*a] f[*b] → f[*broadcast]

    >>> import fgrad.numpy as fnp
    >>> fnp.hypot(3.0, 4.0)
    Array(5., f32[])
    """
    return same(ops.hypot, *floating_together(x1, x2))


# ---------------------------------------------------------------------------- rounding, angles

def floor(x, /):
    """The largest integer not above x; integers stay.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.floor([-1.5, 1.5])
    Array([-2.,  1.], f32[2])
    """
    return whole(ops.floor, x)


def ceil(x, /):
    """The smallest integer not below x; integers stay.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.ceil([-1.5, 1.5])
    Array([-1.,  2.], f32[2])
    """
    return whole(ops.ceil, x)


def trunc(x, /):
    """x rounded towards zero; integers stay.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.trunc([-1.5, 1.5])
    Array([-1.,  1.], f32[2])
    """
    x = lifted(x)
    if x.dtype.kind in "biu":
        return x
    return ops.select(same(ops.lt, x, 0.0), ops.ceil(x), ops.floor(x))


def whole(op, x):
    """op(x) for floats, x for integers."""
    x = lifted(x)
    return x if x.dtype.kind in "biu" else unary(op, x)


def round(a, decimals=0):
    """a rounded to `decimals`, halves to even.   n[*s] → n[*s]; integers stay for decimals >= 0

    >>> import fgrad.numpy as fnp
    >>> fnp.round([0.5, 1.5, 2.46]), fnp.round(2.46, 1)
    (Array([0., 2., 2.], f32[3]), Array(2.5, f32[]))
    """
    x = lifted(a)
    if x.dtype.kind == "c":
        return ops.complex(round(ops.real(x), decimals), round(ops.imag(x), decimals))
    if x.dtype.kind != "f":
        if decimals >= 0:
            return x
        return cast(round(cast(x, F64), decimals), x.dtype)
    if decimals == 0:
        return ops.round(x)
    factor = 10.0 ** abs(decimals)
    there, back = (ops.mul, ops.div) if decimals > 0 else (ops.div, ops.mul)
    return same(back, ops.round(same(there, x, factor)), factor)


def rint(x, /):
    """The nearest integer, as a float; halves go to the even one.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.rint([0.5, 1.5, -1.2])
    Array([ 0.,  2., -1.], f32[3])
    """
    return round(as_float(x))


def deg2rad(x, /):
    """Degrees as radians.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.deg2rad(180.0)
    Array(3.1415927, f32[])
    """
    return same(ops.mul, as_float(x), math.pi / 180)


def rad2deg(x, /):
    """Radians as degrees.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.rad2deg(fnp.pi)
    Array(180., f32[])
    """
    return same(ops.mul, as_float(x), 180 / math.pi)


def sinc(x, /):
    """sin(πx) / (πx), which is 1 at 0.   f[*s] → f[*s]

    Near 0 it is the series to the power of 6, so that its derivatives at 0 are right too.

    >>> import fgrad.numpy as fnp
    >>> fnp.round(fnp.sinc([0.0, 0.5]), 3)
    Array([1.   , 0.637], f32[2])
    """
    x = same(ops.mul, as_float(x), math.pi)
    near = same(ops.lt, absolute(x), 1e-3)
    safe, series = ops.select(near, 1.0, x), 1.0
    for power in (42.0, 20.0, 6.0):              # 1 - x²/6 (1 - x²/20 (1 - x²/42))
        series = 1.0 - ops.square(x) / power * series
    return ops.select(near, series, same(ops.div, ops.sin(safe), safe))


# ---------------------------------------------------------------------------- special values

def isnan(x, /):
    """Is x not a number?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.isnan([0.0, fnp.nan])
    Array([False,  True], bool[2])
    """
    x = as_value(x)
    return same(ops.ne, x, x)


def isinf(x, /):
    """Is x infinite?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.isinf([0.0, -fnp.inf])
    Array([False,  True], bool[2])
    """
    x = as_value(x)
    if x.dtype.kind == "c":
        return same(ops.or_, isinf(ops.real(x)), isinf(ops.imag(x)))
    if x.dtype.kind != "f":
        return ops.full(shape=x.shape, value=False, dtype=BOOL)
    return same(ops.eq, ops.abs(x), math.inf)


def isfinite(x, /):
    """Is x a finite number?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.isfinite([0.0, fnp.inf, fnp.nan])
    Array([ True, False, False], bool[3])
    """
    x = as_value(x)
    if x.dtype.kind not in INEXACT_KINDS:
        return ops.full(shape=x.shape, value=True, dtype=BOOL)
    return ops.is_finite(x)


def isposinf(x, /):
    """Is x +inf?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.isposinf([fnp.inf, -fnp.inf])
    Array([ True, False], bool[2])
    """
    return same(ops.eq, as_float(x), math.inf)


def isneginf(x, /):
    """Is x -inf?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.isneginf([fnp.inf, -fnp.inf])
    Array([False,  True], bool[2])
    """
    return same(ops.eq, as_float(x), -math.inf)


def signbit(x, /):
    """Is x negative, or -0.0?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.signbit([-0.0, 0.0])
    Array([ True, False], bool[2])
    """
    x = as_number(x)
    if x.dtype.kind != "f":
        return same(ops.lt, x, 0)
    zero = same(ops.and_, same(ops.eq, x, 0.0), same(ops.lt, same(ops.div, 1.0, x), 0.0))
    return same(ops.or_, same(ops.lt, x, 0.0), zero)


def copysign(x1, x2, /):
    """|x1| with the sign of x2.   f[*a] f[*b] → f[*broadcast]

    >>> import fgrad.numpy as fnp
    >>> fnp.copysign(3.0, [-0.0, 1.0])
    Array([-3.,  3.], f32[2])
    """
    x, y = floating_together(x1, x2)
    size = ops.abs(x)
    return ops.select(signbit(y), ops.neg(size), size)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """x with NaN replaced by `nan`, and infinities by the extreme finite numbers, or as given.

    >>> import fgrad.numpy as fnp
    >>> fnp.nan_to_num([1.0, fnp.nan])
    Array([1., 0.], f32[2])
    """
    x = lifted(x)
    if x.dtype.kind == "c":
        parts = ops.real(x), ops.imag(x)
        return ops.complex(*[nan_to_num(part, nan, posinf, neginf) for part in parts])
    if x.dtype.kind != "f":
        return x
    largest = float(finfo(x.dtype).max)
    x = ops.select(isnan(x), float(nan), x)
    x = ops.select(same(ops.eq, x, math.inf), largest if posinf is None else float(posinf), x)
    return ops.select(same(ops.eq, x, -math.inf), -largest if neginf is None else float(neginf), x)


def fmax(x1, x2, /):
    """The larger one; a NaN loses.   n[*a] n[*b] → n[*broadcast]

    >>> import fgrad.numpy as fnp
    >>> fnp.fmax([1.0, fnp.nan], 2.0)
    Array([2., 2.], f32[2])
    """
    x, y = together(x1, x2)
    return ops.select(isnan(x), y, ops.select(isnan(y), x, same(ops.max, x, y)))


def fmin(x1, x2, /):
    """The smaller one; a NaN loses.   n[*a] n[*b] → n[*broadcast]

    >>> import fgrad.numpy as fnp
    >>> fnp.fmin([1.0, fnp.nan], 2.0)
    Array([1., 2.], f32[2])
    """
    x, y = together(x1, x2)
    return ops.select(isnan(x), y, ops.select(isnan(y), x, same(ops.min, x, y)))


def heaviside(x1, x2, /):
    """0 where x1 < 0, x2 where it is 0, 1 above.   f[*a] f[*b] → f[*broadcast]

    >>> import fgrad.numpy as fnp
    >>> fnp.heaviside([-1.0, 0.0, 2.0], 0.5)
    Array([0. , 0.5, 1. ], f32[3])
    """
    x, y = floating_together(x1, x2)
    step = cast(same(ops.gt, x, 0.0), x.dtype)
    return ops.select(isnan(x), x, ops.select(same(ops.eq, x, 0.0), y, step))


# ---------------------------------------------------------------------------- choices

def logical_not(x, /):
    """Is x false, or 0?   n[*s] → bool[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.logical_not([0, 3])
    Array([ True, False], bool[2])
    """
    return ops.not_(as_bool(x))


def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """x where the condition holds, else y.   bool[*a] n[*b] n[*c] → n[*broadcast]

    The derivative flows to the chosen one only.  If the other is inf or NaN its derivative may
    still spoil the result: write `where(ok, f(where(ok, x, 1.0)), 0.0)`.

    Without x and y: the places where it holds, as `nonzero` gives them, which has size and
    fill_value.  Raises ArgumentError for one of them alone.

    >>> where([True, False], 1.0, 2.0).tolist()
    [1.0, 2.0]
    >>> where([False, True])
    (Array([1], i32[1]),)
    """
    if x is None and y is None:
        return nonzero(as_bool(condition), size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentError("where needs a condition, and both values to choose from.",
                            fix="fgrad.numpy.nonzero(condition) gives the places where it holds")
    if size is not None or fill_value is not None:
        raise ArgumentError("size and fill_value of where are for a condition alone.",
                            fix="leave them out: the result has the shape of the arguments")
    c = as_bool(condition)
    if c.shape == () or (x.__class__ in SCALARS) == (y.__class__ in SCALARS):
        x, y = together(x, y)
    return choose(c, x, y)


def choose(c, x, y):
    """where, once a Python number stands on one side at most."""
    if x.__class__ in SCALARS or y.__class__ in SCALARS:
        number = x if x.__class__ in SCALARS else y
        array = as_value(y if number is x else x)
        array = beside(array, number.__class__)
        c, array = same_shape(c, array)
        return ops.select(c, number, array) if number is x else ops.select(c, array, number)
    return ops.select(*same_shape(c, x, y))


def clip(a, min=None, max=None):
    """a, but not below `min` and not above `max`; None leaves that side open.

    n[*s] → n[*broadcast]

    The derivative is 1 inside and at the limits, and 0 outside.

    >>> import fgrad.numpy as fnp
    >>> fnp.clip([-3, 0, 9], 0, 5)
    Array([0, 0, 5], i32[3])
    """
    x = a
    if min is not None and max is not None:
        lo, x, hi = together(min, x, max)
        if x.dtype != BOOL:
            return ops.clamp(lo, x, hi)
    if min is not None:
        x = keep_at_limit(ops.ge, x, min)
    return lifted(x) if max is None else keep_at_limit(ops.le, x, max)


def keep_at_limit(inside, x, limit):
    """x where it is inside of the limit, else the limit."""
    x, limit = together(x, limit)
    keep = same(ops.or_, same(inside, x, limit), isnan(x))
    return ops.select(keep, x, limit)
