"""Matrices with a pattern: identity, triangles, diagonals.

They are made by comparing row and column numbers, so that compiled code stores none of them.
"""

from __future__ import annotations

from .. import ops
from ..arguments import lifted
from ..core import as_value
from ..errors import ArgumentError, ShapeError
from ..types import I32, as_dtype, default_float
from .axes import axis_of, int_of, shape_of, typed
from .promotion import cast, same
from .reductions import sum as total


def eye(N, M=None, k=0, dtype=None):
    """Ones on diagonal k, zeros elsewhere.   → f32[N,M]

    >>> eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    dtype = default_float() if dtype is None else as_dtype(dtype)
    return cast(compared(ops.eq, (N, N if M is None else M), k), dtype)


def identity(n, dtype=None):
    """The identity matrix.   → f32[n,n]

    >>> import fgrad.numpy as fnp
    >>> fnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], f32[2,2])
    """
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """Ones at and below diagonal k, zeros above.   → f32[N,M]

    >>> import fgrad.numpy as fnp
    >>> fnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], f32[2,3])
    """
    dtype = default_float() if dtype is None else as_dtype(dtype)
    return cast(compared(ops.ge, (N, N if M is None else M), k), dtype)


def compared(op, shape, k):
    """op(row + k, column) at every place of a matrix."""
    shape = shape_of(shape, "a matrix")
    k = int_of(k, lambda: ArgumentError("k, the number of a diagonal, must be an int.",
                                        given=f"k={k!r:.60}"))
    rows, columns = [ops.iota(shape=shape, axis=a, dtype=I32) for a in (0, 1)]
    return same(op, same(ops.add, rows, k) if k else rows, columns)


def tril(m, k=0):
    """The matrix with zeros above diagonal k.   n[…,a,b] → n[…,a,b]

    >>> import fgrad.numpy as fnp
    >>> fnp.tril([[1, 2], [3, 4]])
    Array([[1, 0],
           [3, 4]], i32[2,2])
    """
    return triangle(m, k, ops.ge, "tril")


def triu(m, k=0):
    """The matrix with zeros below diagonal k.   n[…,a,b] → n[…,a,b]

    >>> import fgrad.numpy as fnp
    >>> fnp.triu([[1, 2], [3, 4]])
    Array([[1, 2],
           [0, 4]], i32[2,2])
    """
    return triangle(m, k, ops.le, "triu")


def triangle(m, k, op, name):
    """The elements where op(row + k, column), zeros elsewhere."""
    x = matrix(m, name)
    keep = ops.broadcast(compared(op, x.shape[-2:], k), shape=x.shape,
                         axes=tuple(range(x.ndim - 2)))
    return ops.select(keep, x, ops.move.zero_of(x.dtype))


def matrix(m, name):
    """m as a value of at least two axes."""
    x = lifted(m)
    if x.ndim < 2:
        raise ShapeError(f"{name} needs a matrix.", given=typed(x))
    return x


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The elements a[…, i, …, i + offset, …], along a new last axis.

    n[a,b,*s] → n[*s,min(a,b)]

    >>> import fgrad.numpy as fnp
    >>> fnp.diagonal([[1, 2], [3, 4]])
    Array([1, 4], i32[2])
    """
    return diagonal_for("diagonal", a, offset, axis1, axis2)


def diagonal_for(name, a, offset, axis1, axis2):
    """The diagonal, for the function `name`."""
    x = matrix(a, name)
    first, second = axis_of(axis1, x.ndim, name), axis_of(axis2, x.ndim, name)
    if first == second:
        raise ShapeError(f"{name} needs two different axes.", given=f"axis1={axis1} axis2={axis2}")
    rest = tuple(a for a in range(x.ndim) if a not in (first, second))
    x = ops.transpose(x, perm=(*rest, first, second))
    rows, columns = x.shape[-2:]
    low, left = max(0, -offset), max(0, offset)
    n = max(0, min(rows - low, columns - left))
    return main_diagonal(window(x, min(low, rows), min(left, columns), n))


def window(x, row, column, n):
    """The square of size n of each matrix that starts at (row, column)."""
    start = (0,) * (x.ndim - 2) + (row, column)
    stop = (*x.shape[:-2], row + n, column + n)
    return ops.slice(x, start=start, stop=stop, stride=(1,) * x.ndim)


def main_diagonal(x):
    """The diagonal of square matrices: of n² elements in a row, every (n + 1)-th."""
    *lead, n, _ = x.shape
    if n == 0:
        return ops.reshape(x, shape=(*lead, 0))
    flat = ops.reshape(x, shape=(*lead, n * n))
    zeros = (0,) * len(lead)
    return ops.slice(flat, start=(*zeros, 0), stop=(*lead, n * n),
                     stride=(*(1 for _ in lead), n + 1))


def diag(v, k=0):
    """A matrix with the vector on diagonal k, or diagonal k of a matrix.

    n[a] → n[a,a]; n[a,b] → n[c]

    >>> import fgrad.numpy as fnp
    >>> fnp.diag([1, 2]), fnp.diag([[1, 2], [3, 4]])
    (Array([[1, 0],
           [0, 2]], i32[2,2]), Array([1, 4], i32[2]))
    """
    x = lifted(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError("diag needs a vector or a matrix.", given=typed(x))
    n, k = x.shape[0], k.__index__()
    size, before = n + abs(k), max(0, -k)
    wide = ops.pad(x, ops.move.zero_of(x.dtype), low=(before,), high=(size - n - before,),
                   interior=(0,))
    rows = ops.broadcast(wide, shape=(size, size), axes=(1,))
    return ops.select(compared(ops.eq, (size, size), k), rows, ops.move.zero_of(x.dtype))


def diagflat(v, k=0):
    """A matrix with the elements of v, in a row, on diagonal k.

    >>> import fgrad.numpy as fnp
    >>> fnp.diagflat([1, 2])
    Array([[1, 0],
           [0, 2]], i32[2,2])
    """
    x = as_value(v)
    return diag(ops.reshape(x, shape=(x.size,)), k)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of a diagonal.   n[a,b,*s] → n[*s]"""
    return total(diagonal_for("trace", a, offset, axis1, axis2), axis=-1, dtype=dtype)
