"""Linear algebra under SciPy's names.

Options that only steer SciPy's memory and checks (overwrite_a, check_finite) are not taken.
"""

from __future__ import annotations

import math

import numpy as np

from .. import numpy as fnp
from .. import ops
from ..control import cond, scan
from ..core import as_value
from ..errors import ArgumentError, ShapeError, bound
from ..numpy import linalg
from ..numpy.axes import typed
from ..numpy.factorisations import back, beside, matrices
from ..numpy.linalg import det, inv
from ..numpy.matrices import matrix
from ..numpy.promotion import as_float, cast, join
from ..types import F32, F64, part_of

__all__ = ["block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "expm", "hilbert",
           "inv", "lu", "lu_factor", "lu_solve", "qr", "solve", "solve_triangular", "svd",
           "toeplitz", "tril", "triu"]
__dir__ = __all__.copy     # dir() lists these and nothing else

# dtype → (degree, norm up to which Padé's approximation is exact to the last place): N. Higham,
# "The scaling and squaring method for the matrix exponential revisited" (2005)
DEGREES = {F32: (7, 3.925724783138660), F64: (13, 5.371920351148152)}
SQUARINGS = 16             # at most


def cholesky(a, lower=False):
    """R, upper triangular, with Rᴴ @ R = a; lower: L with L @ Lᴴ = a.   f[…,n,n] → f[…,n,n]"""
    return linalg.cholesky(a, upper=not lower)


def cho_factor(a, lower=False):
    """(factor, lower), for cho_solve."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower, b):
    """x with a @ x = b, for (factor, lower) of a.   f[n,n] f[n] or f[n,k] → that of b"""
    c, lower = c_and_lower
    if lower:
        return solve_triangular(c, solve_triangular(c, b, lower=True), trans=2, lower=True)
    return solve_triangular(c, solve_triangular(c, b, trans=2))


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False):
    """x with a @ x = b, where only the upper (lower) triangle of a is read.

    f[…,n,n] f[n] or f[…,n,k] → that of b.  trans: 1 or "T" solves with the transpose of a, 2 or
    "C" with its conjugate transpose.  unit_diagonal: ones are taken for the diagonal.

    >>> solve_triangular(fnp.array([[2.0, 1.0], [0.0, 4.0]]), fnp.array([4.0, 4.0])).tolist()
    [1.5, 1.0]
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ArgumentError(f"solve_triangular has no trans={trans!r}.",
                            expected="0, 1, 2, N, T or C")
    x, y = matrices(a, "solve_triangular"), as_float(b)
    dtype = join([x.dtype, y.dtype])
    x, y = cast(x, dtype), cast(y, dtype)
    if trans not in (0, "N"):
        x, lower = fnp.matrix_transpose(x), not lower
    if trans in (2, "C"):
        x = fnp.conj(x)
    column = y.ndim == 1
    y = ops.reshape(y, shape=(*y.shape, 1)) if column else y
    if y.ndim < 2 or y.shape[-2] != x.shape[-1]:
        raise ShapeError("solve_triangular needs as many rows on the right as the matrix has.",
                         given=[f"a: {typed(x)}", f"b: {typed(y)}"])
    out = ops.triangular_solve(*beside(x, y), lower=lower, unit=unit_diagonal)
    return ops.reshape(out, shape=out.shape[:-1]) if column else out


def solve(a, b, lower=False, assume_a="gen"):
    """x with a @ x = b; assume_a="pos": by Cholesky's factor.   f[n,n] f[n] → f[n]"""
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ArgumentError(f"solve knows no assume_a={assume_a!r}.", expected="gen, sym or pos")
    return cho_solve(cho_factor(a, lower), b) if assume_a == "pos" else linalg.solve(a, b)


def lu_factor(a):
    """(LU, piv), for lu_solve: L below the diagonal, where it has ones, else U; piv: row k was
    exchanged with row piv[k], in this order.   f[…,n,n] → f[…,n,n], i32[…,n]
    """
    factors, pivots = ops.lu(matrices(a, "lu_factor"))
    return back(factors, a), pivots


def lu_solve(lu_and_piv, b, trans=0):
    """x with a @ x = b, for lu_factor(a); trans: 1 or "T" solves with the transpose of a, 2 or "C"
    with its conjugate transpose.

    f[…,n,n] i32[…,n], f[n] or f[…,n,k] → that of b.  Raises ShapeError for other sizes, DtypeError
    for pivots of another dtype.

    >>> lu_solve(lu_factor(fnp.array([[0.0, 2.0], [4.0, 0.0]])), fnp.array([2.0, 4.0])).tolist()
    [1.0, 1.0]
    """
    factors, pivots, y = matrices(lu_and_piv[0], "lu_solve"), as_value(lu_and_piv[1]), as_float(b)
    ops.pivots_to_permutation.type(pivots.type)              # NumPy would say it in its own words
    rows = y.shape[max(-2, -y.ndim)] if y.ndim else None
    if not rows == pivots.shape[-1] == factors.shape[-1]:
        raise ShapeError("lu_solve needs as many pivots, and rows on the right, as the matrix has.",
                         given=[f"lu: {typed(factors)}", f"piv: {typed(pivots)}", f"b: {typed(y)}"])
    order = ops.pivots_to_permutation(pivots)
    column = y.ndim == 1
    y = y[:, None] if column else y
    if trans in (0, "N"):
        y = solve_triangular(factors, in_order(y, order), lower=True, unit_diagonal=True)
        out = solve_triangular(factors, y)
    else:
        y = solve_triangular(factors, y, trans=trans)
        y = solve_triangular(factors, y, trans=trans, lower=True, unit_diagonal=True)
        out = in_order(y, fnp.argsort(order, -1))
    return out[..., 0] if column else out


def in_order(y, order):
    """The rows of matrices in another order."""
    lead = fnp.broadcast_shapes(y.shape[:-2], order.shape[:-1])
    y = fnp.broadcast_to(y, (*lead, *y.shape[-2:]))
    order = fnp.broadcast_to(order, (*lead, order.shape[-1]))
    return fnp.take_along_axis(y, order[..., None], axis=-2)


def lu(a, permute_l=False):
    """(P, L, U) with P @ L @ U = a; permute_l: (P @ L, U).   f[…,n,n] → f[…,n,n], …

    P exchanges rows, L is lower triangular with ones on the diagonal, U upper triangular.

    >>> lu(fnp.array([[0.0, 2.0], [4.0, 0.0]]))[2].tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    factors, pivots = ops.lu(matrices(a, "lu"))
    n = factors.shape[-1]
    order = ops.pivots_to_permutation(pivots)
    one = fnp.eye(n, dtype=factors.dtype)
    exchanges = fnp.matrix_transpose(one[order])
    lower, upper = back(fnp.tril(factors, -1) + one, a), back(fnp.triu(factors), a)
    exchanges = back(exchanges, a)
    return (fnp.matmul(exchanges, lower), upper) if permute_l else (exchanges, lower, upper)


def eigh(a, lower=True, eigvals_only=False):
    """(eigenvalues, eigenvectors) of the symmetric part, ascending; or the first alone."""
    out = linalg.eigh(a, "L" if lower else "U")
    return out[0] if eigvals_only else tuple(out)


def svd(a, full_matrices=True, compute_uv=True):
    """(U, s, Vᵀ), or s alone, as numpy.linalg.svd."""
    out = linalg.svd(a, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


def qr(a, mode="full"):
    """(Q, R); mode: "full", "economic", or "r" for (R,)."""
    modes = {"full": "complete", "economic": "reduced", "r": "r"}
    if mode not in modes:
        raise ArgumentError(f"qr has no mode {mode!r}.", expected="full, economic or r")
    out = linalg.qr(a, modes[mode])
    return (out,) if mode == "r" else tuple(out)


def expm(A):
    """The exponential of square matrices, Σ Aᵏ / k!.   f[…,n,n] → f[…,n,n]

    Padé's approximation of A / 2ˢ, squared s times; each matrix takes the s it needs, up to 16.

    >>> expm(fnp.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = matrices(A, "expm")
    degree, most = DEGREES[part_of(x.dtype) if x.dtype.kind == "c" else x.dtype]
    size = fnp.max(fnp.sum(fnp.abs(x), -2), -1, initial=0.0)
    squarings = fnp.clip(fnp.ceil(fnp.log2(fnp.maximum(size, 1e-30) / most)), 0, SQUARINGS)

    def squared(out, k):
        more = squarings > k
        return cond(fnp.any(more), lambda x: fnp.where(
            fnp.broadcast_to(more[..., None, None], x.shape), fnp.matmul(x, x), x),
            lambda x: x, out), None
    halved = x * (2.0 ** -squarings)[..., None, None]
    out, _ = scan(squared, pade(halved, degree), fnp.arange(SQUARINGS))
    return back(out, A)


def pade(x, degree):
    """q(x)⁻¹ p(x), where q(x) = p(-x): p = even + odd powers.  degree: 7 or 13."""
    b = [math.comb(degree, j) / math.perm(2 * degree, j) for j in range(degree + 1)]
    x2 = fnp.matmul(x, x)
    x4 = fnp.matmul(x2, x2)
    x6 = fnp.matmul(x4, x2)
    one = fnp.broadcast_to(fnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    powers = one, x2, x4, x6
    even, odd = (sum(b[2 * k + n] * power for k, power in enumerate(powers)) for n in (0, 1))
    if degree == 13:
        even, odd = (low + fnp.matmul(x6, sum(b[2 * k + n] * power for k, power in
                                              zip((4, 5, 6), powers[1:])))
                     for low, n in ((even, 0), (odd, 1)))
    odd = fnp.matmul(x, odd)
    return ops.solve(even - odd, even + odd)


def block_diag(*arrs):
    """A matrix with the matrices on its diagonal, and zeros elsewhere; vectors are rows."""
    blocks = [fnp.atleast_2d(x) for x in arrs]
    width = sum(x.shape[1] for x in blocks)
    before, rows = 0, []
    for x in blocks:
        rows.append(fnp.pad(x, ((0, 0), (before, width - before - x.shape[1]))))
        before += x.shape[1]
    return fnp.concatenate(rows)


def toeplitz(c, r=None):
    """The matrix with constant diagonals, first column c and first row r.   n[a] n[b] → n[a,b]"""
    c = fnp.ravel(c)
    r = c if r is None else fnp.ravel(r)
    n, m = c.shape[0], r.shape[0]
    values = fnp.concatenate([fnp.flip(c), r[1:]])
    places = np.arange(m)[None, :] - np.arange(n)[:, None] + n - 1
    return fnp.take(values, places.astype("int32"))


def hilbert(n):
    """The matrix of 1 / (i + j + 1).   → f32[n,n]"""
    row = fnp.arange(1.0, n + 1.0)
    return 1.0 / (row[:, None] + row[None, :] - 1.0)


def tril(m, k=0):
    """The matrix with zeros above diagonal k."""
    return fnp.tril(matrix(m, "tril"), k)


def triu(m, k=0):
    """The matrix with zeros below diagonal k."""
    return fnp.triu(matrix(m, "triu"), k)


bound(globals())
