"""NumPy's LAPACK, in the precision of its arrays; NaN for matrices that it finds no answer for.

numpy.linalg computes f32 in f64, which takes twice the time and more.  The ufuncs behind it have
loops of f32 and complex64 as well, but no public names: where one is missing, or lacks such a loop,
the public function is called.  Large matrices of real numbers go to LAPACK itself where it is
found (`fortran`).  Each routine takes stacks of matrices [..., m, n] and returns an array or a
tuple of arrays.  Relies on NumPy and threads (`rows`); `linalg` and `eigen` rely on it.
"""

from __future__ import annotations

import math

import numpy as np

from .. import config
from . import fortran
from .blas_threads import one_thread
from .rows import in_rows
from .silence import quiet

STRIP = 32                 # columns that are eliminated before the others see it
MANY = 2048                # elements of a stack that a thread has at least
SLOW = 4096, 1 << 20       # elements of a matrix for which threads of BLAS cost more than they give
NARROW = 250               # … if it has no more rows, or columns, than these
LOCKED = 500               # rows' elements below which a ufunc of one result keeps Python's lock


def routine(name, loop, public):
    """The ufunc of this name behind numpy.linalg, if it has the loop, else the public function."""
    ufunc = getattr(getattr(np.linalg, "_umath_linalg", None), name, None)
    if loop not in getattr(ufunc, "types", ()):
        return lambda *stacks: per_matrix(public, *stacks)
    return quiet(lambda *stacks: ufunc(*stacks))


def per_matrix(public, *stacks):
    """public(*stacks), and NaN for the matrices that it raises for."""
    try:
        with np.errstate(all="ignore"):
            return plain(public(*stacks))
    except np.linalg.LinAlgError:
        if stacks[0].ndim == 2:
            return missing(public, *stacks)
    parts = [per_matrix(public, *each) for each in zip(*stacks)]
    if isinstance(parts[0], tuple):
        return tuple(np.stack(x) for x in zip(*parts))
    return np.stack(parts)


def plain(result):
    """A tuple for numpy.linalg's named ones."""
    return tuple(result) if isinstance(result, tuple) else result


def missing(public, *matrices):
    """NaN in the shapes of what the function gives for the identity."""
    n, m = matrices[0].shape
    like = plain(public(np.eye(n, m, dtype=matrices[0].dtype), *matrices[1:]))
    if isinstance(like, tuple):
        return tuple(np.full_like(x, np.nan) for x in like)
    return np.full_like(like, np.nan)


cholesky_factors = routine("cholesky_lo", "f->f", np.linalg.cholesky)
eigen = routine("eig", "f->FF", np.linalg.eig)
eigen_hermitian = routine("eigh_lo", "f->ff", np.linalg.eigh)
eigenvalues = routine("eigvalsh_lo", "f->f", np.linalg.eigvalsh)
logdets = routine("slogdet", "f->ff", np.linalg.slogdet)
solutions = routine("solve", "ff->f", np.linalg.solve)
singular_values = routine("svd", "f->f", lambda x: np.linalg.svd(x, compute_uv=False))
svd_full = routine("svd_f", "f->fff", np.linalg.svd)
svd_reduced = routine("svd_s", "f->fff", lambda x: np.linalg.svd(x, full_matrices=False))


def shared(function, x, many=MANY, faster=True):
    """function(x): a stack's matrices shared out to threads, each of which has `many` elements, if
    they are not so large that BLAS keeps all threads busy with each.

    Then BLAS works on one thread, and so it does on a matrix of middle size, if that is faster.
    """
    m, n = x.shape[-2:]
    middle = m * n <= SLOW[1] and min(m, n) <= NARROW
    if x.ndim > 2 and x.size >= 2 * many:
        threads = config.threads()
        if threads > 1 and (middle or math.prod(x.shape[:-2]) >= threads):
            with one_thread:
                return in_rows(function, x, (-2, -1), many)
    if not (faster and middle and m * n >= SLOW[0]):
        return function(x)
    with one_thread:
        return function(x)


def cholesky(x):
    """The lower factors."""
    if in_fortran(x, fortran.CHOLESKY):
        return stacked(fortran.cholesky, x)
    return cholesky_factors(x)


def solve(a, b):
    """y with a y = b"""
    if in_fortran(a, fortran.LU) and b.size:
        return stacked(fortran.solve, a, b)
    return solutions(a, b)


@quiet
def slogdet(x):
    """(sign, log |det|)"""
    if in_fortran(x, fortran.LU):
        return stacked(fortran.slogdet, x)
    return logdets(x)


def qr(x, full):
    """(Q, R)"""
    if math.prod(x.shape[-2:]) >= fortran.QR and in_fortran(x, 1):
        return shared(lambda part: stacked(lambda one: fortran.qr(one, full), part), x, 8 * MANY)
    return tuple(np.linalg.qr(x, "complete" if full else "reduced"))


def eig(x):
    """(w, V)"""
    return shared(eigen, x)


def eigh(x):
    """(w, V)"""
    return shared(eigen_hermitian, x, 2 * MANY, x.dtype.kind == "c")


def eigvalsh(x):
    """w"""
    return shared(eigenvalues, x, max(2 * MANY, LOCKED * x.shape[-1]), x.dtype.kind == "c")


def lu(x):
    """(LU, pivots)"""
    return stacked(fortran.lu if in_fortran(x, 1) else eliminated, x)


def in_fortran(x, least):
    """Are these matrices that LAPACK itself takes, and large enough?"""
    return x.dtype.char in fortran.PRECISIONS and min(x.shape[-2:]) >= least and fortran.found()


def stacked(function, *stacks):
    """The arrays that a function of single matrices gives, an array or a tuple, for stacks."""
    if stacks[0].ndim == 2:
        return function(*stacks)
    lead = stacks[0].shape[:-2]
    found = [function(*each) for each in zip(*[
        x.reshape(math.prod(lead), *x.shape[-2:]) for x in stacks])]
    like = found[0] if found else function(*[np.eye(*x.shape[-2:], dtype=x.dtype) for x in stacks])
    if not isinstance(like, tuple):
        return np.array(found, like.dtype).reshape(*lead, *like.shape)
    return tuple(np.array([each[k] for each in found], one.dtype).reshape(*lead, *one.shape)
                 for k, one in enumerate(like))


def svd(x, full):
    """(U, s, Vᴴ)"""
    return shared(svd_full if full else svd_reduced, x)


def svdvals(x):
    """s alone; of wide matrices that of the transposed ones, which takes less time."""
    m, n = x.shape[-2:]
    x = x if m >= n else np.swapaxes(x, -1, -2)
    return shared(singular_values, x, max(MANY, LOCKED * max(m, n)))


@quiet
def pinv(x, rtol):
    """The pseudo-inverse: singular values up to rtol times the largest count as 0."""
    u, s, vt = svd(x.conj(), False)
    large = s > rtol * s.max(axis=-1, keepdims=True, initial=0)
    inverse = np.where(large, 1 / s, 0).astype(s.dtype)
    return np.swapaxes(vt, -1, -2) @ (inverse[..., None] * np.swapaxes(u, -1, -2))


@quiet
def eliminated(x):
    """(LU, pivots) of one matrix by Gaussian elimination, STRIP columns at once."""
    a, n = np.array(x), len(x)
    pivots = np.empty(n, np.int32)
    for start in range(0, n, STRIP):
        stop = min(start + STRIP, n)
        for k in range(start, stop):
            p = pivots[k] = k + np.argmax(np.abs(a[k:, k]))
            if p != k:
                a[[k, p]] = a[[p, k]]
            if a[k, k] != 0:
                a[k + 1:, k] /= a[k, k]
            a[k + 1:, k + 1:stop] -= np.outer(a[k + 1:, k], a[k, k + 1:stop])
        if stop < n:
            lower = np.tril(a[start:stop, start:stop], -1) + np.eye(stop - start, dtype=a.dtype)
            a[start:stop, stop:] = solve(lower, a[start:stop, stop:])
            a[stop:, stop:] -= a[stop:, start:stop] @ a[start:stop, stop:]
    return a, pivots
