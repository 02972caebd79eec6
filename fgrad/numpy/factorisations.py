"""Solutions, determinants and factorisations of matrices under NumPy's names; `linalg` shows them.

Integers become floats first; f16 is computed in f32.  Singular matrices, and those that are not
positive definite, give NaN, inf or 0 for themselves alone and raise nothing, so that compiled and
batched code can go on.  Results are named tuples with NumPy's fields.  Relies on `ops.linalg`.
"""

from __future__ import annotations

import math
from collections import namedtuple

from .. import ops
from ..core import Array
from ..errors import ArgumentError, ShapeError
from ..types import COMPUTED, I32, computed, finfo
from . import contract, reductions
from .axes import broadcast_shapes, typed
from .complex import conjugate, squared
from .matrices import eye, tril, triu
from .promotion import as_float, binary, broadcast_to, cast, of_one_dtype, same
from .elementwise import absolute
from .shape import matrix_transpose, moveaxis

EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")
EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
QRResult = namedtuple("QRResult", "Q R")
SVDResult = namedtuple("SVDResult", "U S Vh")
SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")


def matrices(a, name, square=True):
    """The value of floats, f16 as f32.  Raises ShapeError unless there are (square) matrices."""
    x = as_float(a)
    if x.ndim < 2 or square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} needs {'square ' if square else ''}matrices in the last axes.",
                         given=typed(x))
    return cast(x, computed(x.dtype))


def back(x, like):
    """A result in the dtype of what the user gave, if that is a narrow one."""
    return narrowed(x, getattr(like, "dtype", None))


def narrowed(x, dtype):
    """x in a narrow dtype; as it is for others."""
    return cast(x, dtype) if dtype in COMPUTED else x


# ---------------------------------------------------------------------------- solutions

def solve(a, b):
    """x with a @ x = b; NaN where a is singular.   f[…,n,n] f[n] or f[…,n,k] → that of b

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).tolist()
    [1.0, 0.5]
    """
    x, y, dtype = both_sides(a, b, "solve")
    column, given = y.ndim == 1, [f"a: {typed(x)}", f"b: {typed(y)}"]
    y = ops.reshape(y, shape=(*y.shape, 1)) if column else y
    if y.ndim < 2 or y.shape[-2] != x.shape[-1]:
        raise ShapeError("solve needs as many rows on the right as the matrix has.", given=given)
    out = cast(ops.solve(*beside(x, y)), dtype)
    return ops.reshape(out, shape=out.shape[:-1]) if column else out


def both_sides(a, b, name, square=True):
    """(the matrices, what they are to give, the dtype of both); f16 as f32."""
    x, y = [as_float(v) for v in of_one_dtype(a, b)]
    return matrices(x, name, square), cast(y, computed(y.dtype)), y.dtype


def beside(x, y):
    """Both with the leading axes that they broadcast to."""
    lead = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return broadcast_to(x, lead + x.shape[-2:]), broadcast_to(y, lead + y.shape[-2:])


def inv(a):
    """The inverse of square matrices; NaN where there is none.   f[…,n,n] → f[…,n,n]

    >>> inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    x = matrices(a, "inv")
    one = eye(x.shape[-1], dtype=x.dtype)
    return back(ops.solve(x, broadcast_to(one, x.shape)), a)


def pinv(a, rcond=None, hermitian=False, *, rtol=None):
    """The pseudo-inverse.   f[…,m,n] → f[…,n,m]

    Singular values up to rtol times the largest count as 0; by default 10 max(m,n) ε, as in JAX.
    `hermitian` is taken for NumPy's sake; the result is the same.

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.pinv(fnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], f32[2,2])
    """
    x = matrices(a, "pinv", square=False)
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 10 * max(x.shape[-2:]) * float(finfo(x.dtype).eps)
    return back(ops.pinv(x, rtol=float(rtol)), a)


def lstsq(a, b, rcond=None):
    """(x, residuals, rank, s): x of least |a @ x - b|, and of least length among those.

    f[m,n] f[m] or f[m,k] → f[n] or f[n,k], f[k], i32[], f[min(m,n)]

    residuals: squared; without elements unless the rank is n and m > n, as known from shapes only.
    rcond: singular values up to it times the largest count as 0; max(m,n) ε by default.

    >>> import fgrad.numpy as fnp
    >>> a, b = fnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), fnp.array([1.0, 3.0, 5.0])
    >>> x, residuals, rank, s = fnp.linalg.lstsq(a, b)       # the line 1 + 2t
    >>> fnp.round(x, 3), rank
    (Array([1., 2.], f32[2]), Array(2, i32[]))
    """
    x, y, dtype = both_sides(a, b, "lstsq", square=False)
    m, n = x.shape[-2:]
    if x.ndim != 2 or y.ndim not in (1, 2) or y.shape[0] != m:
        raise ShapeError("lstsq needs a matrix, and as many rows on the right.",
                         given=[f"a: {typed(x)}", f"b: {typed(y)}"])
    rcond = max(m, n) * float(finfo(x.dtype).eps) if rcond is None else float(rcond)
    out = contract.matmul(ops.pinv(x, rtol=rcond), y)
    s = svdvals(x)
    apart = squared(same(ops.sub, contract.matmul(x, out), y))
    residuals = ops.reshape(ops.reduce_sum(apart, axes=(0,)), shape=y.shape[1:] or (1,))
    residuals = residuals if m > n else ops.full(shape=(0,), value=0.0, dtype=s.dtype)
    rank = rank_of(s, rcond)
    return narrowed(out, dtype), narrowed(residuals, dtype), rank, narrowed(s, dtype)


def tensorsolve(a, b, axes=None):
    """x with tensordot(a, x, x.ndim) = b; `axes` of a are moved to its end first.

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.tensorsolve(fnp.reshape(fnp.eye(4), (2, 2, 4)), fnp.ones((2, 2)))
    Array([1., 1., 1., 1.], f32[4])
    """
    x, y = as_float(a), as_float(b)
    if axes is not None:
        x = moveaxis(x, tuple(axes), tuple(range(x.ndim - len(axes), x.ndim)))
    shape = x.shape[y.ndim:]
    n = math.prod(shape)
    if n != y.size:
        raise ShapeError("tensorsolve needs as many unknowns as equations.",
                         given=[f"a: {typed(x)}", f"b: {typed(y)}"])
    out = solve(ops.reshape(x, shape=(n, n)), ops.reshape(y, shape=(n,)))
    return ops.reshape(out, shape=shape)


def tensorinv(a, ind=2):
    """The inverse of a for tensordot over its first `ind` axes.

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.tensorinv(fnp.reshape(fnp.eye(4), (2, 2, 4)), ind=2).shape
    (4, 2, 2)
    """
    x = as_float(a)
    n, m = math.prod(x.shape[:ind]), math.prod(x.shape[ind:])
    if ind <= 0 or n != m:
        raise ShapeError("tensorinv needs equal products of the first and of the other sizes.",
                         given=f"{typed(x)}, ind={ind}")
    return ops.reshape(inv(ops.reshape(x, shape=(n, n))), shape=x.shape[ind:] + x.shape[:ind])


# ---------------------------------------------------------------------------- determinants

def slogdet(a):
    """(sign, logabsdet): the determinant is sign · exp(logabsdet).   f[…,n,n] → f[…], f[…]

    >>> import fgrad.numpy as fnp
    >>> sign, logdet = fnp.linalg.slogdet(fnp.diag([-1.0, 1.0]))
    >>> sign, logdet
    (Array(-1., f32[]), Array(0., f32[]))
    """
    sign, size = ops.slogdet(matrices(a, "slogdet"))
    return SlogdetResult(back(sign, a), back(size, a))


def det(a):
    """The determinant.   f[…,n,n] → f[…]

    Up to n = 3 it is written out, so every derivative is exact; above, sign · exp(log |det|), whose
    derivative is NaN for a singular matrix.

    >>> det([[1.0, 2.0], [3.0, 4.0]]).item()
    -2.0
    """
    x = matrices(a, "det")
    n = x.shape[-1]
    if 1 <= n <= 3:
        return back(written_out(*[[x[..., i, j] for j in range(n)] for i in range(n)]), a)
    sign, size = ops.slogdet(x)
    return back(binary(ops.mul, sign, ops.exp(size)), a)


def written_out(first, *rest):
    """Expansion along the first row, given as lists of values."""
    if not rest:
        return first[0]
    out = None
    for k, x in enumerate(first):
        minor = written_out(*[row[:k] + row[k + 1:] for row in rest])
        part = same(ops.mul, x, minor)
        out = part if out is None else same(ops.sub if k % 2 else ops.add, out, part)
    return out


# ---------------------------------------------------------------------------- factorisations

def cholesky(a, /, *, upper=False):
    """L, lower triangular, with L @ Lᴴ = a; NaN unless a is positive definite.

    f[…,n,n] → f[…,n,n].  Of a matrix that is not symmetric, the symmetric part is taken.
    upper: Lᴴ, the conjugate transpose of L.

    >>> cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    out = back(ops.cholesky(matrices(a, "cholesky")), a)
    return matrix_transpose(conjugate(out)) if upper else out


def qr(a, mode="reduced"):
    """(Q, R): orthonormal columns, and an upper triangle, with Q @ R = a.

    f[…,m,n] → f[…,m,k], f[…,k,n]; k = min(m,n), or m for mode "complete"; mode "r" gives R alone.
    With "complete" and m > n there is no derivative.

    >>> import fgrad.numpy as fnp
    >>> q, r = fnp.linalg.qr(fnp.ones((3, 2)))
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    x = matrices(a, "qr", square=False)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr has no mode {mode!r}.", expected="reduced, complete or r")
    m, n = x.shape[-2:]
    if m < n:
        q, r = wide_qr(x)
    else:
        q, r = ops.qr(x, full=mode == "complete")
    q, r = back(q, a), back(r, a)
    return r if mode == "r" else QRResult(q, r)


def wide_qr(x):
    """Of the square in front: Q; the other columns of R are Qᵀ times those of x."""
    m = x.shape[-2]
    q, r = ops.qr(x[..., :m], full=False)
    rest = contract.matmul(conjugate(matrix_transpose(q)), x[..., m:])
    return q, ops.concatenate(r, rest, axis=x.ndim - 1)


def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """(U, s, Vᵀ) with U @ diag(s) @ Vᵀ = a; s descends.   f[…,m,n] → f[…,m,m], f[…,k], f[…,n,n]

    full_matrices=False: f[…,m,k], f[…,k], f[…,k,n], with k = min(m,n); otherwise only square
    matrices have derivatives.  compute_uv=False: s alone.  `hermitian` is taken for NumPy's sake.

    >>> import fgrad.numpy as fnp
    >>> u, s, vt = fnp.linalg.svd(fnp.ones((3, 2)), full_matrices=False)
    >>> u.shape, s.shape, vt.shape
    ((3, 2), (2,), (2, 2))
    """
    x = matrices(a, "svd", square=False)
    if not compute_uv:
        return svdvals(a)
    full = full_matrices and x.shape[-1] != x.shape[-2]
    return SVDResult(*[back(v, a) for v in ops.svd(x, full=full)])


def svdvals(x, /):
    """The singular values, descending.   f[…,m,n] → f[…,min(m,n)]

    >>> import fgrad.numpy as fnp
    >>> fnp.round(fnp.linalg.svdvals(fnp.diag([3.0, 4.0])), 4)
    Array([4., 3.], f32[2])
    """
    a = matrices(x, "svdvals", square=False)
    return back(ops.svdvals(a) if isinstance(a, Array) else ops.svd(a, full=False)[1], x)


def eigh(a, UPLO="L", symmetrize_input=True):
    """(eigenvalues, eigenvectors) of symmetric matrices, ascending; vectors in columns.

    f[…,n,n] → f[…,n], f[…,n,n].  The symmetric part is taken; without `symmetrize_input`, the
    triangle that UPLO names ("L" or "U") stands for both.  Vectors of equal eigenvalues have no
    derivative (inf or NaN); the eigenvalues do.

    >>> import fgrad.numpy as fnp
    >>> values, vectors = fnp.linalg.eigh(fnp.diag([3.0, 1.0]))
    >>> values, vectors.shape
    (Array([1., 3.], f32[2]), (2, 2))
    """
    x = symmetric(a, "eigh", UPLO, symmetrize_input)
    return EighResult(*[back(v, a) for v in ops.eigh(x)])


def symmetric(a, name, uplo, symmetrize):
    """The matrices of `name`: their triangle for both, unless they are to be symmetrized."""
    x = matrices(a, name)
    return x if symmetrize else mirrored(x, uplo)


def mirrored(x, uplo):
    """The matrices whose other triangle is the mirror of the one named."""
    if uplo not in ("L", "U"):
        raise ArgumentError(f"UPLO={uplo!r} names no triangle.", expected="'L' or 'U'")
    half = tril(x) if uplo == "L" else triu(x)
    strict = tril(x, -1) if uplo == "L" else triu(x, 1)
    return same(ops.add, half, conjugate(matrix_transpose(strict)))


def eigvalsh(a, UPLO="L", symmetrize_input=True):
    """The eigenvalues of symmetric matrices, ascending.   f[…,n,n] → f[…,n]

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.eigvalsh(fnp.diag([3.0, 1.0]))
    Array([1., 3.], f32[2])
    """
    x = symmetric(a, "eigvalsh", UPLO, symmetrize_input)
    return back(ops.eigvalsh(x) if isinstance(x, Array) else ops.eigh(x)[0], a)


def eig(a):
    """(eigenvalues, eigenvectors) of square matrices, complex, as LAPACK orders them; vectors are
    columns.

    n[…,n,n] → c[…,n], c[…,n,n].  Vectors of equal eigenvalues have no derivative.

    >>> eig([[0.0, 1.0], [-1.0, 0.0]]).eigenvalues.tolist()
    [1j, -1j]
    """
    return EigResult(*ops.eig(matrices(a, "eig")))


def eigvals(a):
    """The eigenvalues of square matrices, complex, in LAPACK's order.   n[…,n,n] → c[…,n]

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.eigvals(fnp.array([[0.0, -1.0], [1.0, 0.0]])).dtype
    dtype('complex64')
    """
    return eig(a)[0]


# ---------------------------------------------------------------------------- numbers of matrices

def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """How many singular values exceed tol, or rtol times the largest.   f[…,m,n] → i32[…]

    rtol is max(m,n) ε by default.  `hermitian` is taken for NumPy's sake.

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.matrix_rank(fnp.ones((3, 3)))
    Array(1, i32[])
    """
    x = matrices(A, "matrix_rank", square=False)
    s = svdvals(x)
    if tol is not None:
        return reductions.sum(cast(binary(ops.gt, s, tol), I32), -1)
    return rank_of(s, max(x.shape[-2:]) * float(finfo(x.dtype).eps) if rtol is None else rtol)


def rank_of(s, rtol):
    """How many exceed rtol times the largest."""
    if not s.shape[-1]:
        return ops.full(shape=s.shape[:-1], value=0, dtype=I32)
    limit = binary(ops.mul, reductions.max(s, -1, keepdims=True), rtol)
    return reductions.sum(cast(binary(ops.gt, s, limit), I32), -1)


def cond(x, p=None):
    """The norm of the matrix times that of its inverse; by singular values for p None, 2 or -2.

    f[…,n,n] → f[…]

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.cond(fnp.diag([4.0, 2.0]))
    Array(2., f32[])
    """
    if p in (None, 2, -2):
        s = svdvals(x)
        first, last = s[..., 0], s[..., -1]
        return same(ops.div, last, first) if p == -2 else same(ops.div, first, last)
    return binary(ops.mul, norm_of(matrices(x, "cond"), p), norm_of(inv(x), p))


def norm_of(x, p):
    """The norm of matrices, of which 1, -1, inf, -inf and "fro" are enough here."""
    if p == "fro":
        return ops.sqrt(reductions.sum(squared(x), (-2, -1)))
    if p not in (1, -1, math.inf, -math.inf):
        raise ArgumentError(f"cond has no order {p!r}.",
                            expected="None, 'fro', 1, -1, 2, -2, inf or -inf")
    sums = reductions.sum(absolute(x), -2 if abs(p) == 1 else -1)
    return reductions.max(sums, -1) if p > 0 else reductions.min(sums, -1)
