"""Factorisations and solutions of matrices, by NumPy's routines (`lapack`).

Each works on the last two axes; axes before them are independent matrices.  None has a pull:
compiled code calls the NumPy rule on the host, or on the CPU runs loops of its own, for small
matrices and for triangles of real numbers (`passes.matrices`).  Where LAPACK finds no answer (a
singular matrix, one that is not positive definite, no convergence) the results for that matrix are
NaN: nothing is raised, so that the other matrices of a stack keep their results.

Sources of the derivatives: M. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008); M. Seeger et al.,
"Auto-differentiating linear algebra" (2017); G. Golub and V. Pereyra (1973) for the pseudo-inverse.
Relies on `lapack`, `dot_general` and the elementwise operations.
"""

from __future__ import annotations

import math

import numpy as np

from ..aligned import copied
from ..core import Primitive
from ..errors import DtypeError, GradientError, ShapeError
from ..types import COMPLEX, F32, F64, I32, SHORT, part_of
from . import lapack, move
from .complex import complex, imag, real
from .contract import dot_general
from .elementwise import add, convert, div, eq, ge, mul, ne, neg, select, sub
from .move import broadcast, iota, reshape, transpose, zeros_like
from .reduce import reduce_sum

BATCH = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MATRICES = (F32, F64, *COMPLEX)
BLOCK = 64                 # rows that one step of triangular substitution solves at once
NEAR = 4096                # elements up to which a transposed matrix is read as it lies


# ---------------------------------------------------------------------------- small functions

def product(a, b):
    """a @ b of matrices with equal leading axes."""
    lead = BATCH[:a.ndim - 2]
    return dot_general(a, b, lhs=lead + "ij", rhs=lead + "jk", to=lead + "ik")


def turned(x):
    """The transposed matrices."""
    return transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x):
    """The transposed matrices, of complex numbers conjugated."""
    return turned(complex(real(x), neg(imag(x))) if x.dtype.kind == "c" else x)


def hermitian(x):
    """(x + xᴴ) / 2 of a NumPy array."""
    across = x.swapaxes(-1, -2)
    out = x + (copied(across) if x.size > NEAR else across).conj()
    out *= 0.5
    return out


def real_part(x):
    """The real part; of real numbers, they themselves."""
    return real(x) if x.dtype.kind == "c" else x


def imaginary(x):
    """i times the imaginary part, as complex numbers."""
    part = imag(x)
    return complex(zeros_like(part), part)


def along_rows(v, like):
    """Matrices like `like` whose rows are all v: column j is scaled by v[j]."""
    return as_like(broadcast(v, shape=like.shape, axes=(like.ndim - 2,)), like)


def along_columns(v, like):
    """Matrices like `like` whose columns are all v: row i is scaled by v[i]."""
    return as_like(broadcast(v, shape=like.shape, axes=(like.ndim - 1,)), like)


def as_like(x, like):
    """x in the dtype of the other."""
    return x if x.dtype == like.dtype else convert(x, dtype=like.dtype)


def below(x, k):
    """Is the row at least k larger than the column?   bool[*s] of x's shape"""
    row, column = [iota(shape=x.shape, axis=x.ndim - a, dtype=I32) for a in (2, 1)]
    return ge(row, add(column, k))


def lower_part(x, k=0):
    """x where the row is at least k larger than the column, else 0."""
    return select(below(x, k), x, 0.0)


def diagonal_of(x):
    """The main diagonal of square matrices.   f[…,n,n] → f[…,n]"""
    row, column = [iota(shape=x.shape, axis=x.ndim - a, dtype=I32) for a in (2, 1)]
    return reduce_sum(select(eq(row, column), x, 0.0), axes=(x.ndim - 2,))


def on_diagonal(x):
    """x on the diagonal, else 0."""
    return sub(lower_part(x), lower_part(x, 1))


def half_lower(x):
    """Φ(x) of Giles: the lower triangle with half of the diagonal; x = xᵀ is Φ(x) + Φ(x)ᵀ."""
    return mul(0.5, add(lower_part(x), lower_part(x, 1)))


def one_over_differences(w):
    """1 / (w[j] - w[i]) off the diagonal, and 0 on it.   f[…,n] → f[…,n,n]"""
    shape = (*w.shape, w.shape[-1])
    column, row = [broadcast(w, shape=shape, axes=(w.ndim - a,)) for a in (1, 0)]
    apart = sub(column, row)
    indices = [iota(shape=shape, axis=w.ndim - a, dtype=I32) for a in (1, 0)]
    off = ne(*indices)
    return select(off, div(1.0, select(off, apart, 1.0)), 0.0)


def check_matrices(name, x, square=True):
    """Raises DtypeError for other dtypes, ShapeError unless there are (square) matrices."""
    if x.dtype not in MATRICES:
        raise DtypeError(f"{name} is not defined for {SHORT[x.dtype]}.", given=str(x),
                         expected=" ".join(SHORT[d] for d in MATRICES),
                         fix="convert with astype first")
    if x.ndim < 2 or square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} needs {'square ' if square else ''}matrices.", given=str(x),
                         expected="f[…,n,n]" if square else "f[…,m,n]")


class Factorisation(Primitive):
    """An operation on one stack of matrices; a batch is one more axis of the stack.

    alone: (position of a result, name of the operation that gives it alone, in less time), or None.
    """
    dtypes = MATRICES
    alone = None

    def batch(self, dims, x, /, **params):
        out = self(move.to_front(x, *dims), **params)
        return out, 0


# ---------------------------------------------------------------------------- factorisations

class Cholesky(Factorisation):
    """L, lower triangular, with L Lᴴ = (x + xᴴ) / 2.   f[…,n,n] → f[…,n,n]

    NaN unless positive definite.  ᴴ is ᵀ, and of complex numbers conjugated too.

    dL = L Φ(L⁻¹ dx L⁻ᴴ), where Φ takes the lower triangle and half of the diagonal: with
    M = L⁻¹ dL, which is lower triangular, dx = dL Lᴴ + L dLᴴ says M + Mᴴ = L⁻¹ dx L⁻ᴴ (Giles, 4.1).
    """

    def type(self, x, /):
        check_matrices(self.name, x)
        return x

    def numpy(self, x, /):
        return lapack.cholesky(hermitian(x))

    def jvp(self, out, args, tangents, /):
        (t,) = tangents
        t = mul(0.5, add(t, adjoint(t)))
        left = triangular_solve(out, t, lower=True, unit=False)            # L⁻¹ dx
        both = triangular_solve(out, adjoint(left), lower=True, unit=False)   # L⁻¹ dx L⁻ᴴ
        return product(out, half_lower(both))


class Eigh(Factorisation):
    """(w, V): eigenvalues, ascending and real, and vectors, in columns, of (x + xᴴ) / 2.

    f[…,n,n] → f[…,n], f[…,n,n]

    With E = Vᴴ dx V: dw = diag E, and dV = V (F ∘ E), Fᵢⱼ = 1 / (wⱼ - wᵢ) off the diagonal: the
    derivative of xV = V diag w, times Vᴴ (Giles, 3.1).  Vectors of equal eigenvalues have none.
    """
    multiple = True
    alone = 0, "eigvalsh"

    def type(self, x, /):
        check_matrices(self.name, x)
        return real_type(x.with_shape(x.shape[:-1])), x

    def numpy(self, x, /):
        return lapack.eigh(hermitian(x))

    def jvp(self, out, args, tangents, /):
        (w, v), (t,) = out, tangents
        t = mul(0.5, add(t, adjoint(t)))
        inside = product(adjoint(v), product(t, v))
        apart = as_like(one_over_differences(w), inside)
        return real_part(diagonal_of(inside)), product(v, mul(apart, inside))


class Eigvalsh(Factorisation):
    """The eigenvalues that `eigh` gives, alone.   f[…,n,n] → f[…,n]"""

    def type(self, x, /):
        return eigh.type(x)[0]

    def numpy(self, x, /):
        return lapack.eigvalsh(hermitian(x))

    def jvp(self, out, args, tangents, /):
        return eigh.jvp(eigh(*args), args, tangents)[0]


def real_type(x):
    """The type of the parts, of real numbers the type itself."""
    return x.with_dtype(part_of(x.dtype)) if x.dtype.kind == "c" else x


class Qr(Factorisation):
    """(Q, R) with x = Q R, Q of orthonormal columns, R upper triangular; m >= n.

    f[…,m,n] → f[…,m,n], f[…,n,n]; full: Q is f[…,m,m], and R f[…,m,n]

    With C = dx R⁻¹ and M = Qᴴ C: Qᴴ dQ = Ω is antihermitian and dR R⁻¹ = M - Ω upper triangular, of
    a real diagonal, so Ω = lower(M) - lower(M)ᴴ + i Im diag(M), dQ = C - Q (M - Ω), dR = (M - Ω) R
    (Seeger et al., 2017).
    """
    multiple = True

    def type(self, x, /, *, full=False):
        check_matrices(self.name, x, square=False)
        m, n = x.shape[-2:]
        if m < n and not full:
            raise ShapeError("qr needs at least as many rows as columns.", given=str(x))
        k = m if full else n
        return x.with_shape((*x.shape[:-2], m, k)), x.with_shape((*x.shape[:-2], k, n))

    def numpy(self, x, /, *, full=False):
        if x.shape[-2] < x.shape[-1] and not full:
            raise ValueError("more columns than rows")       # `type` says it better
        return lapack.qr(x, full)

    def jvp(self, out, args, tangents, /, *, full=False):
        (q, r), (t,) = out, tangents
        if full and q.shape[-1] != r.shape[-1]:
            raise no_derivative("qr", "mode='reduced'")
        c = turned(triangular_solve(turned(r), turned(t), lower=True, unit=False))
        m = product(adjoint(q), c)
        strict = lower_part(m, 1)
        rest = sub(m, sub(strict, adjoint(strict)))
        if m.dtype.kind == "c":
            rest = sub(rest, imaginary(on_diagonal(m)))
        return sub(c, product(q, rest)), product(rest, r)


class Svd(Factorisation):
    """(U, s, Vᴴ) with x = U diag(s) Vᴴ; s descends, and is real.

    f[…,m,n] → f[…,m,k], f[…,k], f[…,k,n], k = min(m,n); full: U is f[…,m,m], and Vᴴ f[…,n,n].

    With E = Uᴴ dx V: ds = diag E, dU = U (F ∘ (E S + S Eᴴ)), dV = V (F ∘ (S E + Eᴴ S)), where
    Fᵢⱼ = 1 / (sⱼ² - sᵢ²) off the diagonal; and, outside of the space of U, (I - U Uᴴ) dx V S⁻¹,
    likewise for V (Giles, 3.2).  Of complex numbers U turns by i Im(diag E) / s too.  Vectors of
    equal singular values have no derivative.
    """
    multiple = True
    alone = 1, "svdvals"

    def type(self, x, /, *, full=False):
        check_matrices(self.name, x, square=False)
        *lead, m, n = x.shape
        k = min(m, n)
        shapes = (m, m if full else k), (k,), (n if full else k, n)
        u, s, vt = (x.with_shape((*lead, *shape)) for shape in shapes)
        return u, real_type(s), vt

    def numpy(self, x, /, *, full=False):
        return lapack.svd(x, full)

    def jvp(self, out, args, tangents, /, *, full=False):
        (u, s, vt), (t,) = out, tangents
        if full and u.shape[-1] != vt.shape[-1]:
            raise no_derivative("svd", "full_matrices=False")
        v = adjoint(vt)
        moved = product(t, v)                                                # dx V
        inside = product(adjoint(u), moved)
        apart = as_like(one_over_differences(mul(s, s)), inside)
        by_columns = mul(inside, along_rows(s, inside))
        by_rows = mul(inside, along_columns(s, inside))
        within = mul(apart, add(by_columns, adjoint(by_columns)))
        if inside.dtype.kind == "c":
            within = add(within, div(imaginary(on_diagonal(inside)), along_rows(s, inside)))
        du = product(u, within)
        dv = product(v, mul(apart, add(by_rows, adjoint(by_rows))))
        if u.shape[-2] > u.shape[-1]:
            du = add(du, outside(u, moved, s))
        if v.shape[-2] > v.shape[-1]:
            dv = add(dv, outside(v, product(adjoint(t), u), s))
        return du, real_part(diagonal_of(inside)), adjoint(dv)


class Svdvals(Factorisation):
    """The singular values that `svd` gives, alone.   f[…,m,n] → f[…,min(m,n)]"""

    def type(self, x, /):
        return svd.type(x)[1]

    def numpy(self, x, /):
        return lapack.svdvals(x)

    def jvp(self, out, args, tangents, /):
        return svd.jvp(svd(*args), args, tangents)[1]


def outside(u, moved, s):
    """(I - U Uᴴ) of what moved, over s."""
    left = sub(moved, product(u, product(adjoint(u), moved)))
    return div(left, along_rows(s, left))


def no_derivative(name, fix):
    """The error for a derivative of vectors that are not determined."""
    return GradientError(f"{name} with additional columns has no derivative: "
                         "they are any that complete the basis.", fix=fix)


# ---------------------------------------------------------------------------- solutions

class Solution(Primitive):
    """y with a y = b; linear in b.   f[…,n,n] f[…,n,k] → f[…,n,k]

    dy = a⁻¹ (db - da y), from da y + a dy = db; so the cotangents are a⁻ᵀ ct for b, and for a that
    times -yᵀ.
    """
    dtypes = MATRICES

    def type(self, a, b, /, **params):
        check_matrices(self.name, a)
        if b.dtype != a.dtype or b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
            raise ShapeError(f"{self.name} needs a right-hand side with the dtype, the leading "
                             "axes and the rows of the matrix.", given=[f"a: {a}", f"b: {b}"])
        return b

    def jvp(self, out, args, tangents, /, **params):
        (a, _), (ta, tb) = args, tangents
        right = None if ta is None else neg(product(self.read(ta, **params), out))
        return self(a, move.plus(tb, right), **params)

    def pullback(self, ct, out, args, active, params):
        """(cotangent of a, or None; cotangent of b), by one solution."""
        back = self.transpose(ct, 1, *args, **params)
        if active[0] < 0:
            return None, back
        return neg(self.read(product(back, turned(out)), **params)), back

    def batch(self, dims, a, b, /, **params):
        if dims[0] is None:                      # one matrix, and more columns
            last = transpose(b, perm=(*[k for k in range(b.ndim) if k != dims[1]], dims[1]))
            columns = last.shape[-2] * last.shape[-1]
            out = self(a, reshape(last, shape=(*last.shape[:-2], columns)), **params)
            return reshape(out, shape=last.shape), last.ndim - 1
        n = move.size_of((a, b), dims)
        return self(*[move.to_front(x, d, n) for x, d in zip((a, b), dims)], **params), 0


class Solve(Solution):
    """y with a y = b; NaN where a is singular.   f[…,n,n] f[…,n,k] → f[…,n,k]"""
    linear_in = (1,)

    def numpy(self, a, b, /):
        return lapack.solve(a, b)

    def read(self, a):
        """What of the matrix decides the result: all of it."""
        return a

    def transpose(self, ct, i, a, b, /):
        return self(turned(a), ct)


class TriangularSolve(Solution):
    """y with a y = b for the lower (or upper) triangle of a; unit: with ones on its diagonal.

    f[…,n,n] f[…,n,k] → f[…,n,k]
    """
    linear_in = (1,)

    def numpy(self, a, b, /, *, lower, unit):
        a = np.tril(a, -1 if unit else 0) if lower else np.triu(a, 1 if unit else 0)
        if unit:
            a = a + np.eye(a.shape[-1], dtype=a.dtype)
        out = substituted(a, b, lower)
        out[(np.diagonal(a, axis1=-2, axis2=-1) == 0).any(-1)] = np.nan
        return out

    def read(self, a, /, *, lower, unit):
        """The triangle."""
        if lower:
            return lower_part(a, 1 if unit else 0)
        return turned(lower_part(turned(a), 1 if unit else 0))

    def transpose(self, ct, i, a, b, /, *, lower, unit):
        return self(turned(a), ct, lower=not lower, unit=unit)


def substituted(a, b, lower):
    """Substitution by halves: the first unknowns, then the others with those put in."""
    n = a.shape[-1]
    if n <= BLOCK:
        return lapack.solve(a, b)
    h = n // 2
    first, second = (slice(0, h), slice(h, n)) if lower else (slice(h, n), slice(0, h))
    out = np.empty_like(b)
    out[..., first, :] = substituted(a[..., first, first], b[..., first, :], lower)
    rest = b[..., second, :] - a[..., second, first] @ out[..., first, :]
    out[..., second, :] = substituted(a[..., second, second], rest, lower)
    return out


class Lu(Factorisation):
    """(LU, pivots): rows exchanged, x is L U; below the diagonal L, which has ones on it, else U.

    f[…,n,n] → f[…,n,n], i32[…,n]; row k was exchanged with row pivots[k] >= k, in this order.

    With P the exchanges and M = L⁻¹ P dx U⁻¹, dL = L strictly_lower(M) and dU = upper(M) U: L⁻¹ dL
    is strictly lower triangular, dU U⁻¹ upper triangular, and M their sum (Seeger et al., 2017).
    """
    multiple = True

    def type(self, x, /):
        check_matrices(self.name, x)
        return x, x.with_shape(x.shape[:-1]).with_dtype(I32)

    def numpy(self, x, /):
        return lapack.lu(x)

    def jvp(self, out, args, tangents, /):
        (lu, pivots), (t,) = out, tangents
        order = pivots_to_permutation(pivots)
        column = broadcast(order, shape=lu.shape, axes=(lu.ndim - 1,))
        chosen = eq(column, iota(shape=lu.shape, axis=lu.ndim - 1, dtype=I32))
        t = product(convert(chosen, dtype=lu.dtype), t)                     # P dx
        t = triangular_solve(lu, t, lower=True, unit=True)
        m = turned(triangular_solve(turned(lu), turned(t), lower=True, unit=False))
        strict, below_diagonal = lower_part(m, 1), lower_part(lu, 1)
        lower = add(strict, product(below_diagonal, strict))
        return add(lower, product(sub(m, strict), sub(lu, below_diagonal))), None


class PivotsToPermutation(Primitive):
    """The order of rows after exchanges: row k with row pivots[k], for k = 0, 1, ….

    i32[…,n] → i32[…,n]; pivots beyond the rows are the first or the last.
    """
    differentiable = False
    dtypes = (I32,)

    def type(self, pivots, /):
        if pivots.dtype != I32 or pivots.ndim < 1:
            raise DtypeError(f"{self.name} needs whole numbers.", given=str(pivots),
                             expected="i32[…,n]")
        return pivots

    def numpy(self, pivots, /):
        *lead, n = pivots.shape
        flat = np.clip(pivots, 0, n - 1).reshape(math.prod(lead), n)
        out = np.tile(np.arange(n, dtype=np.int32), (len(flat), 1))
        every = np.arange(len(flat))
        for k, p in enumerate(flat.T):
            out[every, k], out[every, p] = out[every, p], out[every, k]
        return out.reshape(pivots.shape)

    def batch(self, dims, pivots, /):
        return self(move.to_front(pivots, *dims)), 0


class Pinv(Factorisation):
    """P, the pseudo-inverse: singular values up to rtol times the largest count as 0.

    f[…,m,n] → f[…,n,m]

    dP = -P dx P + P Pᴴ dxᴴ (I - x P) + (I - P x) dxᴴ Pᴴ P, where the rank is constant (Golub,
    Pereyra).
    """

    def type(self, x, /, *, rtol):
        check_matrices(self.name, x, square=False)
        return x.with_shape((*x.shape[:-2], x.shape[-1], x.shape[-2]))

    def numpy(self, x, /, *, rtol):
        return lapack.pinv(x, rtol)

    def jvp(self, out, args, tangents, /, *, rtol):
        (x,), (t,) = args, tangents
        p, pt, tt = out, adjoint(out), adjoint(t)
        first = neg(product(p, product(t, p)))
        second = product(p, product(pt, tt))                                 # P Pᴴ dxᴴ
        second = sub(second, product(product(second, x), p))
        third = product(product(tt, pt), p)                                  # dxᴴ Pᴴ P
        third = sub(third, product(p, product(x, third)))
        return add(first, add(second, third))


class Slogdet(Factorisation):
    """(sign, log |det x|); (0, -inf) for a singular matrix.   f[…,n,n] → f[…], f[…]

    d log |det x| = Re tr(x⁻¹ dx) (Giles, 2.2.4); the sign is constant, and a complex one turns by
    the imaginary part.
    """
    multiple = True

    def type(self, x, /):
        check_matrices(self.name, x)
        out = x.with_shape(x.shape[:-2])
        return out, real_type(out)

    def numpy(self, x, /):
        return tuple(np.asarray(v) for v in lapack.slogdet(x))

    def jvp(self, out, args, tangents, /):
        (x,), (t,) = args, tangents
        inside = diagonal_of(solve(x, t))
        total = reduce_sum(inside, axes=(inside.ndim - 1,))
        turn = mul(imaginary(total), out[0]) if total.dtype.kind == "c" else None
        return turn, real_part(total)


cholesky = Cholesky("cholesky")
eigh = Eigh("eigh")
eigvalsh = Eigvalsh("eigvalsh")
qr = Qr("qr")
svd = Svd("svd")
svdvals = Svdvals("svdvals")
solve = Solve("solve")
triangular_solve = TriangularSolve("triangular_solve")
lu = Lu("lu")
pivots_to_permutation = PivotsToPermutation("pivots_to_permutation")
pinv = Pinv("pinv")
slogdet = Slogdet("slogdet")
