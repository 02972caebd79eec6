"""Small numerical tools: a polynomial's value, convolution, integration, covariance, counting, and
the indices of triangles and of flattened arrays.

Each is a few lines over the other modules.  `polynomials.py` has the rest about polynomials.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..core import Array, as_value
from ..errors import ArgumentError, ShapeError
from ..types import I32, default_int
from .axes import axis_of, shape_of, typed
from .complex import conjugate, real
from .contract import numbers
from .indexing import known_value
from .joining import concatenate
from .promotion import as_float, binary, cast, same
from .reductions import mean
from .reductions import sum as sum_of


def polyval(p, x):
    """The polynomial with coefficients p, highest power first, at x, by Horner's scheme.

    n[k] n[*s] → n[*s].  Further axes of p have coefficients of their own for elements of x.

    >>> polyval([1.0, 0.0, 2.0], 3.0).item()
    11.0
    """
    coefficients, x = numbers(p, x)
    if not coefficients.ndim:
        raise ShapeError("polyval needs a vector of coefficients.", given=typed(coefficients))
    out = ops.full_like(x, 0)
    for c in [coefficients[k] for k in range(coefficients.shape[0])]:
        out = binary(ops.add, binary(ops.mul, out, x), c)
    return out


def convolve(a, v, mode="full"):
    """The convolution of two vectors.   n[a] n[v] → n[a+v-1]; "same" and "valid" as in NumPy

    Raises ArgumentError for another mode, ShapeError for what is no vector or empty.

    >>> import fgrad.numpy as fnp
    >>> fnp.convolve([1, 2, 3], [1, 1])
    Array([1, 3, 5, 3], i32[4])
    """
    x, y = numbers(a, v)
    for u in (x, y):
        if u.ndim != 1 or not u.size:
            raise ShapeError("convolve needs vectors with at least one element.", given=typed(u))
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"convolve has no mode {mode!r}.", expected="full, same or valid")
    x, y = (x, y) if x.size >= y.size else (y, x)
    m = y.size
    low = {"full": m - 1, "same": m // 2, "valid": 0}[mode]
    high = {"full": m - 1, "same": (m - 1) // 2, "valid": 0}[mode]
    wide = ops.pad(x, 0, low=(low,), high=(high,), interior=(0,))
    return ops.conv_general(wide, ops.rev(y, axes=(0,)), lhs="n", rhs="n", to="n", window="n",
                            stride=(1,), dilation=(1,))


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral of sampled values along an axis, by the trapezoidal rule.   f[…,n,…] → f[…]

    >>> import fgrad.numpy as fnp
    >>> fnp.trapezoid([0.0, 1.0, 4.0])
    Array(3., f32[])
    """
    y = as_float(y)
    k = axis_of(axis, y.ndim, "trapezoid")
    n = y.shape[k]
    left, right = ops.reduce.rows(y, 0, max(n - 1, 0), k), ops.reduce.rows(y, min(n, 1), n, k)
    middle = same(ops.mul, same(ops.add, left, right), 0.5)
    if x is None:
        return binary(ops.mul, sum_of(middle, k), dx)
    x = as_float(x)
    if x.ndim == 1:
        x = ops.broadcast(x, shape=y.shape, axes=tuple(a for a in range(y.ndim) if a != k))
    left, right = ops.reduce.rows(x, 0, max(n - 1, 0), k), ops.reduce.rows(x, min(n, 1), n, k)
    step = same(ops.sub, right, left)
    return sum_of(binary(ops.mul, middle, step), k)


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    """The covariance of variables, one per row (per column unless `rowvar`).   f[k,n] → f[k,k]

    A vector is one variable.  y: more variables.  The sum of products is divided by n - ddof, where
    ddof is 1, or 0 with `bias`.  fweights, aweights: how often an observation was made, and how
    much it counts.

    >>> import fgrad.numpy as fnp
    >>> fnp.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    Array([[ 1., -1.],
           [-1.,  1.]], f32[2,2])
    """
    x = variables(m, rowvar)
    if y is not None:
        x = concatenate([x, variables(y, rowvar)], 0)
    ddof = 1 - bool(bias) if ddof is None else ddof
    weights = [as_float(w) for w in (fweights, aweights) if w is not None]
    if any(w.shape != x.shape[1:] for w in weights):
        raise ShapeError("cov needs one weight for each observation.",
                         given=[f"variables: {typed(x)}",
                                *[f"weights: {typed(w)}" for w in weights]])
    if not weights:
        apart = scaled = x - mean(x, 1, keepdims=True)
        divisor = float(max(x.shape[1] - ddof, 0))
    else:
        w = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        total = sum_of(w)
        lost = 1.0 if aweights is None else sum_of(w * weights[-1]) / total
        apart = x - sum_of(x * w, 1, keepdims=True) / total
        scaled, divisor = apart * w, binary(ops.max, total - ddof * lost, 0.0)
    other = conjugate(cast(apart, scaled.dtype))
    out = binary(ops.div, ops.dot_general(scaled, other, lhs="ij", rhs="kj", to="ik"), divisor)
    return out if out.size > 1 else ops.reshape(out, shape=())


def variables(m, rowvar):
    """Variables by observations: a vector is one variable."""
    x = as_float(m)
    if x.ndim == 1:
        return ops.reshape(x, shape=(1, x.size))
    if x.ndim != 2:
        raise ShapeError("cov needs a matrix: variables by observations.", given=typed(x))
    return x if rowvar else ops.transpose(x, perm=(1, 0))


def corrcoef(x, y=None, rowvar=True):
    """The correlation of variables, of x and y: covariance over both deviations.

    f[k,n] → f[k,k]; 1 for one variable.

    >>> import fgrad.numpy as fnp
    >>> fnp.corrcoef([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    Array([[ 1., -1.],
           [-1.,  1.]], f32[2,2])
    """
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    n = c.shape[0]
    variance = ops.slice(ops.reshape(c, shape=(n * n,)), start=(0,), stop=(n * n,), stride=(n + 1,))
    size = ops.sqrt(real(variance))
    return binary(ops.div, c, ops.dot_general(size, size, lhs="i", rhs="j", to="ij"))


def bincount(x, weights=None, minlength=0, length=None):
    """How often each of 0, 1, 2, … occurs in x, or the sum of weights there.   i[n] → i32[length]

    length: the size of the result, with others left out; needed while tracing, else as in NumPy.

    >>> import fgrad.numpy as fnp
    >>> fnp.bincount([0, 2, 2])
    Array([1, 0, 2], i32[3])
    """
    x = as_value(x)
    if x.ndim != 1 or x.dtype.kind not in "iu":
        raise ShapeError("bincount needs a vector of integers.", given=typed(x))
    if length is None:
        value = known_value(
            x, "bincount needs the largest element, which is not known while tracing.",
            fix="give length=")
        length = max(int(value.max()) + 1 if value.size else 0, minlength)
    (length,) = shape_of(length, "bincount")
    one_each = ops.full(shape=x.shape, value=1, dtype=default_int())
    counted = one_each if weights is None else as_value(weights)
    zeros = ops.full(shape=(length,), value=0, dtype=counted.dtype)
    return ops.scatter(zeros, x, counted, axes=(0,), mode="drop", how="add")


def tril_indices(n, k=0, m=None):
    """The (rows, columns) of the places at and below diagonal k of a matrix.   → i32[count] each

    >>> import fgrad.numpy as fnp
    >>> fnp.tril_indices(2)
    (Array([0, 1, 1], i32[3]), Array([0, 0, 1], i32[3]))
    """
    return tuple(Array(i.astype(I32)) for i in np.tril_indices(n, k, m))


def triu_indices(n, k=0, m=None):
    """The (rows, columns) of the places at and above diagonal k of a matrix.   → i32[count] each

    >>> import fgrad.numpy as fnp
    >>> fnp.triu_indices(2)
    (Array([0, 0, 1], i32[3]), Array([0, 1, 1], i32[3]))
    """
    return tuple(Array(i.astype(I32)) for i in np.triu_indices(n, k, m))


def unravel_index(indices, shape):
    """Flat indices, in row-major order, as one index array per axis of `shape`.

    >>> import fgrad.numpy as fnp
    >>> fnp.unravel_index(5, (2, 3))
    (Array(1, i32[]), Array(2, i32[]))
    """
    rest, out = as_value(indices), []
    for n in reversed(shape_of(shape, "unravel_index")):
        out.append(same(ops.rem, rest, n))
        rest = same(ops.div, rest, n)
    return tuple(out[::-1])
