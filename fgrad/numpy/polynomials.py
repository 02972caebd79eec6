"""Polynomials as vectors of coefficients, the highest power first, as in NumPy.

Relies on `numerics` and `factorisations`.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..arguments import lifted
from ..core import Array, as_value
from ..errors import ArgumentError, ShapeError
from ..types import I32, complex_of, finfo
from .axes import typed
from .contract import matmul, numbers
from .creation import asarray, ones_like, zeros, zeros_like
from .factorisations import eigvals, inv
from .indexing import known_value
from .joining import concatenate, stack
from .matrices import eye
from .numerics import convolve
from .padding import pad
from .promotion import as_float, binary, cast, in_dtype, same
from .reductions import sum as sum_of
from .shape import atleast_1d, reshape


def vector(p, name):
    """p as a vector."""
    x = atleast_1d(lifted(p))
    if x.ndim != 1:
        raise ShapeError(f"{name} needs a vector of coefficients.", given=typed(x))
    return x


def equally_long(a1, a2, name):
    """Both with leading zeros up to the longer one."""
    x, y = [vector(a, name) for a in numbers(a1, a2)]
    n = max(x.size, y.size)
    return pad(x, (n - x.size, 0)), pad(y, (n - y.size, 0))


def polyadd(a1, a2):
    """The sum of polynomials.   n[a] n[b] → n[max(a,b)]

    >>> import fgrad.numpy as fnp
    >>> fnp.polyadd([1, 2], [3])
    Array([1, 5], i32[2])
    """
    return same(ops.add, *equally_long(a1, a2, "polyadd"))


def polysub(a1, a2):
    """The difference of polynomials.   n[a] n[b] → n[max(a,b)]

    >>> import fgrad.numpy as fnp
    >>> fnp.polysub([1, 2], [3])
    Array([ 1, -1], i32[2])
    """
    return same(ops.sub, *equally_long(a1, a2, "polysub"))


def polymul(a1, a2):
    """The product of polynomials; leading zeros stay.   n[a] n[b] → n[a+b-1]

    >>> import fgrad.numpy as fnp
    >>> fnp.polymul([1, 1], [1, -1])
    Array([ 1,  0, -1], i32[3])
    """
    return convolve(*[vector(a, "polymul") for a in numbers(a1, a2)])


def polydiv(u, v):
    """(quotient, remainder) of polynomials; leading zeros of the remainder stay.

    f[a] f[b] → f[max(a-b+1,1)], f[a]

    >>> import fgrad.numpy as fnp
    >>> fnp.polydiv([1.0, 0.0, -1.0], [1.0, 1.0])
    (Array([ 1., -1.], f32[2]), Array([0., 0., 0.], f32[3]))
    """
    u, v = [as_float(vector(a, "polydiv")) for a in numbers(u, v)]
    n, m = u.size, v.size
    if n < m:
        return zeros_like(u[:1]), u
    quotient, rest = [], u
    for k in range(n - m + 1):
        q = same(ops.div, rest[k], v[0])
        quotient.append(q)
        rest = same(ops.sub, rest, pad(v * q, (k, n - m - k)))
    return stack(quotient), rest


def polyder(p, m=1):
    """The m-th derivative of a polynomial.   n[a] → n[a-m]

    >>> import fgrad.numpy as fnp
    >>> fnp.polyder([1, 2, 3])
    Array([2, 2], i32[2])
    """
    x = vector(p, "polyder")
    for _ in range(order(m, "polyder")):
        powers = np.arange(x.size - 1, 0, -1)
        x = binary(ops.mul, x[:-1], cast(Array(powers.astype(I32)), x.dtype))
    return x


def polyint(p, m=1, k=None):
    """The m-th integral of a polynomial, with the constants k, 0 by default.   f[a] → f[a+m]

    >>> import fgrad.numpy as fnp
    >>> fnp.polyint([2.0, 2.0])
    Array([1., 2., 0.], f32[3])
    """
    x = as_float(vector(p, "polyint"))
    m = order(m, "polyint")
    constants = zeros_like(x, shape=(m,)) if k is None else cast(vector(k, "polyint"), x.dtype)
    if constants.size == 1 and m > 1:
        constants = concatenate([constants] * m)
    if constants.size != m:
        raise ShapeError("polyint needs a constant for each integration.", given=f"m={m}, k={k}")
    for j in range(m):
        powers = cast(Array(np.arange(x.size, 0, -1, I32)), x.dtype)
        x = concatenate([binary(ops.div, x, powers), constants[j:j + 1]])
    return x


def order(m, name):
    """m as an int that is not negative."""
    if m.__index__() < 0:
        raise ArgumentError(f"{name} needs an order that is not negative.", given=f"m={m}")
    return m.__index__()


def poly(seq_of_zeros):
    """The polynomial with these zeros, and 1 as its first coefficient.

    f[a] → f[a+1].  Raises ShapeError for what is no vector.

    >>> import fgrad.numpy as fnp
    >>> fnp.poly([1.0, 2.0])
    Array([ 1., -3.,  2.], f32[3])
    """
    zeros = as_float(vector(seq_of_zeros, "poly"))
    out = ones_like(zeros, shape=(1,))
    for k in range(zeros.size):
        factor = stack([ones_like(zeros[k]), ops.neg(zeros[k])])
        out = convolve(out, factor)
    return out


def vander(x, N=None, increasing=False):
    """Powers of x in columns, the highest first.   n[a] → n[a,N]

    >>> import fgrad.numpy as fnp
    >>> fnp.vander([1, 2, 3], 2)
    Array([[1, 1],
           [2, 1],
           [3, 1]], i32[3,2])
    """
    x = as_value(x)
    if x.ndim != 1:
        raise ShapeError("vander needs a vector.", given=typed(x))
    n = x.size if N is None else N.__index__()
    powers = [ops.full_like(x, 1)]
    for _ in range(n - 1):
        powers.append(same(ops.mul, powers[-1], x))
    powers = powers[:n] if increasing else powers[:n][::-1]
    return stack(powers, 1) if n else zeros_like(x, shape=(x.size, 0))


def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The polynomial of degree `deg` of least squares through the points (x, y).

    f[n] f[n] or f[n,k] → f[deg+1] or f[deg+1,k].  w: weights of the residuals.  cov: also the
    covariance of the coefficients, scaled by the residuals; "unscaled": without.
    Raises ArgumentError for full=True.

    >>> import fgrad.numpy as fnp
    >>> fnp.round(fnp.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1), 3)
    Array([2., 1.], f32[2])
    """
    if full:
        raise ArgumentError("polyfit gives no diagnostics.", fix="numpy.linalg.lstsq gives them")
    x, y = numbers(as_float(asarray(x)), as_float(asarray(y)))
    if x.ndim != 1 or y.ndim not in (1, 2) or y.shape[0] != x.size:
        raise ShapeError("polyfit needs a vector x, and as many rows y.",
                         given=[f"x: {typed(x)}", f"y: {typed(y)}"])
    left, right = vander(x, deg.__index__() + 1), y
    if w is not None:
        w = in_dtype(w, x.dtype)
        left = left * w[:, None]
        right = right * (w if y.ndim == 1 else w[:, None])
    rcond = x.size * float(finfo(x.dtype).eps) if rcond is None else float(rcond)
    scale = ops.sqrt(sum_of(ops.square(left), 0))      # for columns of one length
    scaled = left / scale
    out = matmul(ops.pinv(scaled, rtol=rcond), right)
    out = out / (scale if y.ndim == 1 else scale[:, None])
    if not cov:
        return out
    spread = inv(matmul(scaled.T, scaled)) / (scale[:, None] * scale)
    if cov == "unscaled":
        return out, spread
    rest = sum_of(ops.square(right - matmul(left, out)), 0) / (x.size - left.shape[1])
    return out, spread * rest if y.ndim == 1 else spread[..., None] * rest


def roots(p, *, strip_zeros=True):
    """The numbers at which a polynomial is zero, complex: eigenvalues of its companion matrix.

    n[k+1] → c[k].  Zeros at both ends are taken off first, which needs values; strip_zeros=False:
    p[0] is not zero.

    >>> roots([1.0, 0.0, 1.0]).shape
    (2,)
    """
    x = vector(as_float(p), "roots")
    behind = 0
    if strip_zeros:
        x = trim_zeros(x, "f")
        behind, x = x.size, trim_zeros(x, "b")
        behind = behind - x.size
    k = max(x.size - 1, 0)
    found = zeros(behind, dtype=x.dtype if x.dtype.kind == "c" else complex_of(x.dtype))
    if k == 0:
        return found
    first = ops.neg(x[1:] / x[0])
    companion = concatenate([reshape(first, (1, k)), eye(k - 1, k, dtype=x.dtype)])
    return concatenate([eigvals(companion), found])


def trim_zeros(filt, trim="fb"):
    """The vector without zeros at the front ("f") and the back ("b"); it needs values.

    >>> import fgrad.numpy as fnp
    >>> fnp.trim_zeros([0, 1, 2, 0])
    Array([1, 2], i32[2])
    """
    x = vector(filt, "trim_zeros")
    value = known_value(x, "trim_zeros needs values, which are not known while tracing.",
                        fix="leading zeros do no harm to polyval")
    there = np.flatnonzero(value)
    if not there.size:
        return x[:0]
    first = there[0] if "f" in trim else 0
    last = there[-1] + 1 if "b" in trim else value.size
    return x[int(first):int(last)]
