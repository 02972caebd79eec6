"""Linear algebra under NumPy's names: norms, powers; factorisations come from `factorisations`.

Real dtypes only.  Everything works on stacks of matrices in the last two axes.
"""

from __future__ import annotations

import math

from .. import ops
from ..core import as_value
from ..errors import ArgumentError, ShapeError, bound
from . import contract, reductions
from .axes import axes_in_order, axes_of, int_of, typed
from .complex import squared
from .contract import cross, matmul, multi_dot, outer, tensordot, vecdot
from .elementwise import absolute, power
from .factorisations import (
    cholesky, cond, det, eig, eigh, eigvals, eigvalsh, inv, lstsq, matrix_rank, pinv, qr, slogdet,
    solve, svd, svdvals, tensorinv, tensorsolve)
from . import matrices
from .matrices import eye
from .promotion import as_float, binary, cast
from .shape import matrix_transpose, moveaxis

__all__ = ["cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
           "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
           "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve",
           "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
           "vector_norm"]
__dir__ = __all__.copy     # dir() lists these and nothing else


def diagonal(x, /, *, offset=0):
    """The diagonals of matrices.   n[…,a,b] → n[…,min(a,b)]

    >>> diagonal([[[1, 2], [3, 4]]])
    Array([[1, 4]], i32[1,2])
    """
    return matrices.diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of matrices.   n[…,a,b] → n[…]

    >>> trace([[[1, 2], [3, 4]]])
    Array([5], i32[1])
    """
    return matrices.trace(x, offset, -2, -1, dtype)


def norm(x, ord=None, axis=None, keepdims=False):
    """The length of vectors along an axis, or the norm of matrices along two; None: of all.

    f[*s] → f[s without axes].  ord: 2 (the default), 1, inf, -inf, 0, or a number for vectors;
    "fro", "nuc", 1, -1, 2, -2, inf, -inf for matrices.  The derivative of the length at 0 is NaN: 0
    has no direction.

    >>> norm([3.0, 4.0]).item()
    5.0
    """
    x = as_float(x)
    axes = axes_of(axis, x.ndim, "norm")
    if ord is None or ord == "fro":
        return root_of_squares(x, axes, keepdims)
    if axis is None and x.ndim > 2:
        raise ArgumentError("norm with an order needs the axis.", given=typed(x))
    if len(axes) == 2:
        first, second = axes_in_order((0, 1) if axis is None else axis, x.ndim, "norm")
        return matrix_order(x, ord, first, second, keepdims)
    return vector_order(x, ord, axes, keepdims)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The length of vectors along `axis`; None: of all elements.

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.vector_norm(fnp.array([3.0, 4.0]))
    Array(5., f32[])
    """
    x = as_float(x)
    return vector_order(x, ord, axes_of(axis, x.ndim, "vector_norm"), keepdims)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of the matrices in the last two axes.

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.matrix_norm(fnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., f32[])
    """
    return norm(x, ord, (-2, -1), keepdims)


def root_of_squares(x, axes, keepdims):
    """√(Σ x²)"""
    return ops.sqrt(reductions.reduced(ops.reduce_sum, squared(x), axes, keepdims, "norm"))


def vector_order(x, ord, axes, keepdims):
    """(Σ |x|ᵖ)^(1/p), or its limit for p = ±inf, or the count of what is not 0 for p = 0."""
    if ord == 2:
        return root_of_squares(x, axes, keepdims)
    size = absolute(x)
    if ord == math.inf:
        return reductions.max(size, axes, keepdims=keepdims)
    if ord == -math.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return cast(reductions.count_nonzero(x, axes, keepdims=keepdims), size.dtype)
    if isinstance(ord, str):
        raise ArgumentError(f"norm has no order {ord!r} for vectors.",
                            expected="a number, inf or -inf")
    total = reductions.sum(power(size, ord), axes, keepdims=keepdims)
    return total if ord == 1 else binary(ops.pow, total, 1.0 / ord)


def matrix_order(x, ord, rows, columns, keepdims):
    """A norm of matrices whose rows and columns are numbered by two axes."""
    if ord in (2, -2, "nuc"):
        out = singular(moveaxis(x, (rows, columns), (-2, -1)), ord)
        return out if not keepdims else ops.reshape(out, shape=tuple(
            1 if k in (rows, columns) else n for k, n in enumerate(x.shape)))
    if ord not in (1, -1, math.inf, -math.inf):
        raise ArgumentError(f"norm has no order {ord!r} for matrices.",
                            expected="'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = reductions.sum(absolute(x), summed, keepdims=True)
    extreme = reductions.max if ord > 0 else reductions.min
    out = extreme(sums, other, keepdims=True)
    return out if keepdims else ops.reshape(out, shape=tuple(
        n for k, n in enumerate(out.shape) if k not in (rows, columns)))


def singular(x, ord):
    """The largest (2), smallest (-2) or the sum ("nuc") of the singular values."""
    reduction = {2: reductions.max, -2: reductions.min, "nuc": reductions.sum}[ord]
    return reduction(svdvals(x), -1)


def matrix_power(a, n):
    """The product of n times the square matrix, by repeated squaring; of its inverse for n < 0.

    n[…,a,a] → n[…,a,a]

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.matrix_power(fnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], i32[2,2])
    """
    x = as_value(a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError("matrix_power needs square matrices.", given=typed(x))
    n = int_of(n, lambda: ArgumentError("matrix_power needs an int for the power.",
                                        given=f"n={n!r:.60}", expected="an int"))
    x, n = (inv(x), -n) if n < 0 else (x, n)
    out = None
    while n:
        if n & 1:
            out = x if out is None else contract.matmul(out, x)
        n >>= 1
        x = contract.matmul(x, x) if n else x
    if out is None:
        one = eye(x.shape[-1], dtype=x.dtype)
        return ops.broadcast(one, shape=x.shape, axes=tuple(range(x.ndim - 2)))
    return out


bound(globals(), __all__)
