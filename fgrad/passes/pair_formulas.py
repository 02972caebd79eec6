"""The elementary functions of complex numbers, written with real ones: (re, im) → (re, im).

Chosen so that what is finite does not overflow on the way, and nothing cancels near the axes.
Branch cuts are NumPy's.  Source: Kahan, Branch cuts for complex elementary functions, 1987;
Abramowitz and Stegun 4.3 and 4.5.  `pairs` relies on it; it relies on the operations.
"""

from __future__ import annotations

import math

from .. import ops
from ..types import F64, SCALARS


def times(a, b, product):
    """The Pair of a bilinear operation; one of the arguments may be a Python number."""
    if b.__class__ in SCALARS:
        return type(a)(product(a.re, b), product(a.im, b))
    if a.__class__ in SCALARS:
        return type(b)(product(a, b.re), product(a, b.im))
    return type(a)(ops.sub(product(a.re, b.re), product(a.im, b.im)),
                   ops.add(product(a.re, b.im), product(a.im, b.re)))


def parts(z):
    """(re, im) of a pair or of a Python number."""
    return (z, 0.0) if z.__class__ in SCALARS else z


def multiplied(z, w):
    (a, b), (c, d) = z, w
    return ops.sub(ops.mul(a, c), ops.mul(b, d)), ops.add(ops.mul(a, d), ops.mul(b, c))


def scaled(z, factor):
    """z times a real number or array."""
    return ops.mul(z[0], factor), ops.mul(z[1], factor)


def divide(z, w):
    """z / w with the divisor scaled to about 1."""
    if w.__class__ in SCALARS:
        return ops.div(z[0], w), ops.div(z[1], w)
    c, d = w
    size = ops.max(ops.abs(c), ops.abs(d))
    size = ops.select(ops.or_(ops.eq(size, 0.0), ops.eq(size, math.inf)), 1.0, size)
    c, d = ops.div(c, size), ops.div(d, size)
    bottom = ops.mul(size, ops.add(ops.square(c), ops.square(d)))
    if z.__class__ in SCALARS:
        return ops.div(ops.mul(z, c), bottom), ops.div(ops.mul(-z, d), bottom)
    top = multiplied(z, (c, ops.neg(d)))
    return ops.div(top[0], bottom), ops.div(top[1], bottom)


def square(z):
    a, b = z
    both = ops.mul(a, b)
    return ops.mul(ops.sub(a, b), ops.add(a, b)), ops.add(both, both)


def integer_pow(z, *, n):
    """By repeated squaring."""
    out, left = None, abs(n)
    while left:
        if left & 1:
            out = z if out is None else multiplied(out, z)
        left >>= 1
        z = square(z) if left else z
    if out is None:
        one = ops.full(shape=z[0].shape, value=1.0, dtype=z[0].dtype)
        return one, ops.zeros_like(z[0])
    return divide(1.0, out) if n < 0 else out


def exp(z):
    """eᵃ (cos b + i sin b); the imaginary part of a real number's is 0, infinite ones too."""
    a, b = z
    size = ops.exp(a)
    return (ops.mul(size, ops.cos(b)),
            ops.select(ops.eq(b, 0.0), b, ops.mul(size, ops.sin(b))))


def expm1(z):
    """expm1(a) cos b - 2 sin²(b/2) + i eᵃ sin b."""
    a, b = z
    half = ops.square(ops.sin(ops.mul(b, 0.5)))
    return (ops.sub(ops.mul(ops.expm1(a), ops.cos(b)), ops.mul(2.0, half)), exp(z)[1])


def log(z):
    a, b = z
    return ops.log(ops.hypot(a, b)), ops.atan2(b, a)


def log1p(z):
    """½ log1p(a (2 + a) + b²) near 0, log|1 + z| elsewhere."""
    a, b = z
    far = ops.add(a, 1.0)
    near = ops.lt(ops.add(ops.abs(a), ops.abs(b)), 0.5)
    inner = ops.add(ops.mul(a, ops.add(a, 2.0)), ops.square(b))
    small = ops.mul(0.5, ops.log1p(ops.select(near, inner, 0.0)))
    return ops.select(near, small, ops.log(ops.hypot(far, b))), ops.atan2(b, far)


def sqrt(z):
    """√((|z| + |a|) / 2) is the larger part; the other is b over twice of it."""
    a, b = z
    # halves are added, since the sum of the largest numbers would overflow
    large = ops.sqrt(ops.add(ops.mul(0.5, ops.hypot(a, b)), ops.mul(0.5, ops.abs(a))))
    zero = ops.eq(large, 0.0)
    small = ops.div(ops.abs(b), ops.mul(2.0, ops.select(zero, 1.0, large)))
    right = ops.ge(a, 0.0)
    return ops.select(right, large, small), with_sign(ops.select(right, small, large), b)


def with_sign(size, like):
    """size ≥ 0 with the sign of `like`, of -0 too."""
    below = ops.or_(ops.lt(like, 0.0), ops.and_(ops.eq(like, 0.0),
                                                ops.lt(ops.div(1.0, like), 0.0)))
    return ops.select(below, ops.neg(size), size)


def rsqrt(z):
    return divide(1.0, sqrt(z))


def power(z, w):
    """exp(w log z); 0 to any power is 0, to the power 0 it is 1."""
    (a, b), (c, d) = parts(z), parts(w)
    like = a if a.__class__ not in SCALARS else c
    a, b, c, d = [ops.full(shape=like.shape, value=float(x), dtype=like.dtype)
                  if x.__class__ in SCALARS else x for x in (a, b, c, d)]
    zero = ops.and_(ops.eq(a, 0.0), ops.eq(b, 0.0))
    found = exp(multiplied((c, d), log((ops.select(zero, 1.0, a), b))))
    none = ops.and_(ops.eq(c, 0.0), ops.eq(d, 0.0))
    at_zero = ops.convert(none, dtype=like.dtype)
    return ops.select(zero, at_zero, found[0]), ops.select(zero, 0.0, found[1])


def logistic(z):
    """1 / (1 + e⁻ᶻ), by tanh(z/2)."""
    a, b = tanh(scaled(z, 0.5))
    return ops.mul(0.5, ops.add(a, 1.0)), ops.mul(0.5, b)


# ---------------------------------------------------------------------------- circle and hyperbola

def times_i(z):
    return ops.neg(z[1]), z[0]


def over_i(z):
    """z / i."""
    return z[1], ops.neg(z[0])


def sinh(z):
    a, b = z
    return ops.mul(ops.sinh(a), ops.cos(b)), ops.mul(ops.cosh(a), ops.sin(b))


def cosh(z):
    a, b = z
    return ops.mul(ops.cosh(a), ops.cos(b)), ops.mul(ops.sinh(a), ops.sin(b))


def tanh(z):
    """(sinh 2a + i sin 2b) / (cosh 2a + cos 2b); beyond `most`, tanh is ±1 in this dtype."""
    a, b = z
    most = 20.0 if a.dtype == F64 else 10.0
    a = ops.clamp(-most, a, most)
    two_a, two_b = ops.add(a, a), ops.add(b, b)
    # cosh 2a + cos 2b = 2 (sinh² a + cos² b)
    bottom = ops.mul(2.0, ops.add(ops.square(ops.sinh(a)), ops.square(ops.cos(b))))
    return ops.div(ops.sinh(two_a), bottom), ops.div(ops.sin(two_b), bottom)


def sin(z):
    return over_i(sinh(times_i(z)))


def cos(z):
    return cosh(times_i(z))


def tan(z):
    return over_i(tanh(times_i(z)))


LARGE = 1e10               # z² - 1 is z² from here on, and may overflow


def arc(z):
    """(√(1 - z), √(1 + z), Re z, Im asin z), the last by Kahan's asinh Im(√(1 - z̄) √(1 + z)).

    The two products in that, and in asin, have one sign, so that nothing cancels.  A large z is
    divided by 16 first, which leaves quotients as they are and takes log 16 from the result.
    Either part is off by 3 eps at most where it and the parts of z are no denormal numbers.
    """
    size = ops.max(ops.abs(z[0]), ops.abs(z[1]))
    large = ops.convert(ops.gt(size, LARGE), dtype=size.dtype)           # 1 or 0
    x, y = scaled(z, ops.sub(1.0, ops.mul(15 / 16, large)))
    (a, b), (c, d) = sqrt((ops.sub(1.0, x), ops.neg(y))), sqrt((ops.add(1.0, x), y))
    v = ops.asinh(ops.sub(ops.mul(a, d), ops.mul(b, c)))
    v = ops.add(v, with_sign(ops.mul(math.log(16), large), v))
    return (a, b), (c, d), x, v


def asin(z):
    """Kahan's atan(x / Re(√(1 - z) √(1 + z)))."""
    below, above, x, v = arc(z)
    return ops.atan2(x, multiplied(below, above)[0]), v


def acos(z):
    """Kahan's 2 atan(Re √(1 - z) / Re √(1 + z))."""
    below, above, _, v = arc(z)
    return ops.mul(2.0, ops.atan2(below[0], above[0])), ops.neg(v)


def atan(z):
    """(log(1 + iz) - log(1 - iz)) / 2i."""
    a, b = z
    first = log1p((ops.neg(b), a))
    second = log1p((b, ops.neg(a)))
    return (ops.mul(0.5, ops.sub(first[1], second[1])),
            ops.mul(0.5, ops.sub(second[0], first[0])))


FORMULAS = {
    "div": divide, "square": square, "integer_pow": integer_pow, "exp": exp, "expm1": expm1,
    "log": log, "log1p": log1p, "sqrt": sqrt, "rsqrt": rsqrt, "pow": power, "logistic": logistic,
    "sin": sin, "cos": cos, "tan": tan, "sinh": sinh, "cosh": cosh, "tanh": tanh, "asin": asin,
    "acos": acos, "atan": atan,
}
