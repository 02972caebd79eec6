"""Factorisations and solutions of matrices under the names of `lax.linalg`.

    from fgrad import lax
    l = lax.linalg.cholesky(a);  y = lax.linalg.triangular_solve(l, b, left_side=True, lower=True)

Matrices are the last two axes; axes before them are stacks.  Each is an operation of `fgrad.ops`
with the arguments and the order of results that are usual there.  `lax` relies on it.
"""

from __future__ import annotations

import operator

from . import numpy as fnp
from . import ops
from .control.scan import scan
from .core import as_value
from .errors import ArgumentError, ShapeError, bound
from .numpy import linalg
from .numpy.axes import typed
from .numpy.factorisations import back, matrices, mirrored
from .numpy.promotion import as_float, cast
from .types import computed


def cholesky(x, *, symmetrize_input=True):
    """L, lower triangular, with L Lᵀ = x; NaN unless positive definite.   f[…,n,n] → f[…,n,n]

    symmetrize_input=False: only the lower triangle of x is read.  Raises ShapeError unless the
    matrices are square.

    >>> cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    if not symmetrize_input:
        x = back(mirrored(matrices(x, "cholesky"), "L"), x)
    return linalg.cholesky(x)


def eigh(x, *, lower=True, symmetrize_input=True):
    """(vectors, in columns, and eigenvalues, ascending) of a symmetric matrix.

    f[…,n,n] → f[…,n,n], f[…,n].  symmetrize_input=False: only the lower (upper) triangle is read.
    Raises ShapeError unless the matrices are square.

    >>> eigh([[3.0, 0.0], [0.0, 2.0]])[1].tolist()
    [2.0, 3.0]
    """
    values, vectors = linalg.eigh(x, "L" if lower else "U", symmetrize_input)
    return vectors, values


def lu(x):
    """(LU, pivots, permutation): x[permutation] is L U, of which L lies below the diagonal.

    f[…,n,n] → f[…,n,n], i32[…,n], i32[…,n].  Row k was exchanged with row pivots[k], in this order.

    >>> lu([[0.0, 2.0], [4.0, 0.0]])[2].tolist()
    [1, 0]
    """
    factors, pivots = ops.lu(matrices(x, "lu"))
    return back(factors, x), pivots, ops.pivots_to_permutation(pivots)


def lu_pivots_to_permutation(pivots, permutation_size):
    """The order of rows after exchanges: row k with row pivots[k], in this order.

    i32[…,k] → i32[…,n], n = permutation_size >= k.  Raises ShapeError for fewer, DtypeError for
    other dtypes.
    """
    pivots, n = as_value(pivots), operator.index(permutation_size)
    ops.pivots_to_permutation.type(pivots.type)              # NumPy would say it in its own words
    count = pivots.shape[-1]
    if n < count:
        raise ShapeError("lu_pivots_to_permutation needs no more pivots than rows.",
                         given=f"pivots: {typed(pivots)}, permutation_size={n}")
    rest = fnp.broadcast_to(fnp.arange(count, n, dtype=pivots.dtype),
                            (*pivots.shape[:-1], n - count))
    return ops.pivots_to_permutation(fnp.concatenate([pivots, rest], -1))


def qr(x, *, full_matrices=True):
    """(Q, R), Q of orthonormal columns, R upper triangular, with Q R = x.

    f[…,m,n] → f[…,m,k], f[…,k,n]; k = m, or min(m, n) unless full_matrices.  Raises ShapeError
    for a vector.

    >>> q, r = qr([[3.0, 1.0], [4.0, 2.0]])
    >>> abs(r[0, 0].item())
    5.0
    """
    return tuple(linalg.qr(x, "complete" if full_matrices else "reduced"))


def svd(x, *, full_matrices=True, compute_uv=True):
    """(U, s, Vᵀ) with x = U diag(s) Vᵀ, or s alone; s descends.

    f[…,m,n] → f[…,m,m], f[…,k], f[…,n,n] with k = min(m, n); unless full_matrices f[…,m,k], f[…,k],
    f[…,k,n].  Raises ShapeError for a vector.

    >>> svd([[3.0, 0.0], [0.0, 2.0]], compute_uv=False).tolist()
    [3.0, 2.0]
    """
    out = linalg.svd(x, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


def triangular_solve(a, b, *, left_side=False, lower=False, transpose_a=False, conjugate_a=False,
                     unit_diagonal=False):
    """x with x a = b, or with left_side a x = b, for the upper (lower) triangle of a.

    f[…,n,n] f[…,k,n] → f[…,k,n]; left_side: f[…,n,n] f[…,n,k] → f[…,n,k].  transpose_a,
    conjugate_a: of a.  unit_diagonal: ones are taken for the diagonal.  Raises ArgumentError for
    other dtypes or stacks, ShapeError for other sizes.

    >>> triangular_solve([[2.0, 1.0], [0.0, 4.0]], [[4.0, 4.0]]).tolist()
    [[2.0, 0.5]]
    """
    x, y = matrices(a, "triangular_solve"), matrices(b, "triangular_solve", square=False)
    if x.dtype != y.dtype or x.shape[:-2] != y.shape[:-2]:
        raise ArgumentError("triangular_solve needs matrices of one dtype, in equal stacks.",
                            given=[f"a: {typed(x)}", f"b: {typed(y)}"])
    if y.shape[-2 if left_side else -1] != x.shape[-1]:
        side = "rows" if left_side else "columns"
        raise ShapeError(f"triangular_solve needs as many {side} in b as the triangle has.",
                         given=[f"a: {typed(x)}", f"b: {typed(y)}"])
    if conjugate_a:
        x = fnp.conj(x)
    if transpose_a == left_side:                 # aᵀ: of x a = b, or of aᵀ x = b
        x, lower = fnp.matrix_transpose(x), not lower
    y = y if left_side else fnp.matrix_transpose(y)
    out = ops.triangular_solve(x, y, lower=lower, unit=unit_diagonal)
    return back(out if left_side else fnp.matrix_transpose(out), b)


def tridiagonal_solve(dl, d, du, b):
    """x with t x = b, for the matrix t that has dl below its diagonal d and du above it.

    f[…,n] f[…,n] f[…,n] f[…,n,k] → f[…,n,k]; dl[…,0] and du[…,n-1] are not read.  By elimination,
    where neighbouring rows change places (Golub and Van Loan, Matrix Computations, 4.3).  Raises
    ArgumentError for other dtypes, ShapeError for other shapes.

    >>> tridiagonal_solve([0.0, 1.0], [2.0, 2.0], [1.0, 0.0], [[4.0], [5.0]]).tolist()
    [[1.0], [2.0]]
    """
    y, *diagonals = matrices(b, "tridiagonal_solve", square=False), *map(as_float, (dl, d, du))
    given = [f"{name}: {typed(x)}" for name, x in zip(("dl", "d", "du"), diagonals)]
    if any(computed(x.dtype) != y.dtype for x in diagonals):
        raise ArgumentError("tridiagonal_solve needs arrays of one dtype.",
                            given=[*given, f"b: {typed(y)}"])
    if any(x.shape != y.shape[:-1] for x in diagonals):
        raise ShapeError("tridiagonal_solve needs diagonals as long as b has rows, in like stacks.",
                         given=[*given, f"b: {typed(y)}"])
    if y.shape[-2] == 0:
        return back(y, b)
    below, on, above = (fnp.moveaxis(cast(x, y.dtype), -1, 0)[..., None] for x in diagonals)
    above, y = fnp.concatenate([above[:-1], 0 * above[:1]]), fnp.moveaxis(y, -2, 0)

    def eliminated(row, below):
        """(what is left of the other row, the pivot's: each the first, the next, the one behind and
        the right side).
        """
        above = row[0], row[1], 0, row[2]
        swaps = abs(below[0]) > abs(row[0])
        pivot = [fnp.where(swaps, q, p) for p, q in zip(above, below)]
        other = [fnp.where(swaps, p, q) for p, q in zip(above, below)]
        share = other[0] / pivot[0]
        return tuple(q - share * p for p, q in zip(pivot[1:], other[1:])), tuple(pivot)

    def substituted(later, row):
        pivot, second, far, value = row
        x = (value - second * later[0] - far * later[1]) / pivot
        return (x, later[0]), x
    (pivot, _, value), rows = scan(eliminated, (on[0], above[0], y[0]),
                                   (below[1:], on[1:], above[1:], y[1:]))
    last = value / pivot
    _, before = scan(substituted, (last, fnp.zeros_like(last)), rows, reverse=True)
    return back(fnp.moveaxis(fnp.concatenate([before, last[None]]), 0, -2), b)


bound(globals())
