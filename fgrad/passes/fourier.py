"""Fourier transforms of some thousand elements as products with two matrices of roots of unity.

    X[k₁ + n₁ k₂] = Σ_{j₂} W_{n₂}^{j₂ k₂} W_n^{j₂ k₁} Σ_{j₁} W_{n₁}^{j₁ k₁} x[n₂ j₁ + j₂],
    n = n₁ n₂,  W_n = exp(∓2πi / n)

For n₁ and n₂ of some tens that is 8 n (n₁ + n₂) operations of the contraction engine, which take
less time than a call of NumPy's, and a loop with a transform in its body calls nobody.  Of real
numbers in or out half of it is not computed.  Other lengths stay NumPy's (`pairs.on_pairs`).

Source: D. Bailey, "FFTs in external or hierarchical memory" (1990).  `pairs` relies on it; it
relies on the operations, and works on pairs (re, im), of which im is None for real numbers.
"""

from __future__ import annotations

import math

from .. import ops
from ..types import I32

LARGEST, RATIO = 64, 16    # rows of a matrix of roots; their square over the length
MOST = 1 << 17             # elements up to which this is faster


def halves(n):
    """(n₁, n₂), n = n₁ n₂, as equal as can be."""
    n1 = max(d for d in range(1, math.isqrt(n) + 1) if n % d == 0)
    return n1, n // n1


def is_short(shape, *, axis, n=None, inverse=False):
    """Is the transform of an array of this shape, to n elements along an axis, so short?"""
    n = shape[axis] if n is None else n
    total = n * math.prod(shape[:axis]) * math.prod(shape[axis + 1:])
    rows = halves(n)[1] if 0 < total <= MOST else LARGEST + 1
    return rows <= LARGEST and rows * rows <= RATIO * n


# ---------------------------------------------------------------------------- roots of unity

def roots(n, rows, columns, sign, dtype):
    """The pair (cos, sin) of sign 2π j k / n for j < rows, k < columns.

    From an angle of at most π/2, which rounds least: 2π p / n is ±π/n times min(2p, 2n - 2p), and
    that is as far from 0 as n minus it from π.
    """
    row, column = [ops.iota(shape=(rows, columns), axis=a, dtype=I32) for a in (0, 1)]
    up = ops.mul(ops.rem(ops.mul(row, column), n), 2)
    down = ops.sub(2 * n, up)
    short = ops.min(up, down)
    other = ops.sub(n, short)
    angle = ops.mul(ops.convert(ops.min(short, other), dtype=dtype), math.pi / n)
    cos, sin = ops.cos(angle), ops.sin(angle)
    turned = ops.gt(up, down) if sign > 0 else ops.lt(up, down)
    return (ops.select(ops.gt(short, other), ops.neg(cos), cos),
            ops.select(turned, ops.neg(sin), sin))


# ---------------------------------------------------------------------------- pairs

def product(z, w, multiply, real_only=False):
    """The pair of a bilinear operation of z and w; an im of None is zero, and stays so."""
    (a, b), (c, d) = z, w
    re = multiply(a, c) if b is None else ops.sub(multiply(a, c), multiply(b, d))
    if real_only:
        return re, None
    im = multiply(a, d)
    return re, im if b is None else ops.add(im, multiply(b, c))


def moved(z, f, **params):
    """An operation that moves elements, on both parts."""
    return f(z[0], **params), None if z[1] is None else f(z[1], **params)


def transformed(z, n, sign, count, real_only=False):
    """The first `count` results along axis 1 of the transform of n elements, of pairs [a,m,s].

    Elements beyond the m that are given are zeros.
    """
    (a, m, s), dtype = z[0].shape, z[0].dtype
    n1, n2 = halves(n)
    given, wanted = -(-m // n2), -(-count // n1)             # rows of n₂, and of n₁
    none, high = (0,) * 3, (0, given * n2 - m, 0)
    if any(high):
        z = moved(z, lambda x: ops.pad(x, 0, low=none, high=high, interior=none))
    z = moved(z, ops.reshape, shape=(a, given, n2, s))
    z = product(z, roots(n1, n1, given, sign, dtype), lambda x, w: ops.dot_general(
        x, w, lhs="ajms", rhs="kj", to="akms"))
    shape = a, n1, n2, s
    turn = moved(roots(n, n1, n2, sign, dtype), ops.broadcast, shape=shape, axes=(0, 3))
    z = product(z, turn, ops.mul)
    z = product(z, roots(n2, wanted, n2, sign, dtype), lambda x, w: ops.dot_general(
        x, w, lhs="akms", rhs="lm", to="alks"), real_only)
    z = moved(z, ops.reshape, shape=(a, wanted * n1, s))
    if wanted * n1 == count:
        return z
    return moved(z, ops.slice, start=none, stop=(a, count, s), stride=(1, 1, 1))


# ---------------------------------------------------------------------------- the operations

def seen(z, axis, size):
    """(the pair as [before the axis, size, behind it], its shape with `size` along the axis)."""
    shape = z[0].shape
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
    return (moved(z, ops.reshape, shape=(before, shape[axis], behind)),
            (*shape[:axis], size, *shape[axis + 1:]))


def fft(z, *, axis, inverse):
    """The pair that `ops.fft` gives."""
    n = z[0].shape[axis]
    z, shape = seen(z, axis, n)
    return moved(transformed(z, n, 1 if inverse else -1, n), ops.reshape, shape=shape)


def rfft(x, *, axis):
    """The pair that `ops.rfft` gives, of a real array."""
    n = x.shape[axis]
    z, shape = seen((x, None), axis, n // 2 + 1)
    return moved(transformed(z, n, -1, n // 2 + 1), ops.reshape, shape=shape)


def irfft(z, *, axis, n):
    """The real array that `ops.irfft` gives: X[k] stands for X[n - k] too, but for the ends."""
    z, shape = seen(z, axis, n)
    k = ops.iota(shape=z[0].shape, axis=1, dtype=I32)
    once = ops.eq(k, 0) if n % 2 else ops.or_(ops.eq(k, 0), ops.eq(k, n // 2))
    z = ops.select(once, z[0], ops.mul(z[0], 2.0)), ops.select(once, 0.0, ops.mul(z[1], 2.0))
    return ops.reshape(transformed(z, n, 1, n, real_only=True)[0], shape=shape)


TRANSFORMS = {"fft": fft, "rfft": rfft, "irfft": irfft}
