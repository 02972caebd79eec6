"""NumPy's LAPACK, in the precision of its arrays; NaN for matrices that it finds no answer for.

numpy.linalg computes f32 in f64, which takes twice the time and more.  The ufuncs behind it have
loops of f32 and complex64 as well, but no public names: where one is missing, or lacks such a loop,
the public function is called.  Each routine takes stacks of matrices [..., m, n] and returns an
array or a tuple of arrays.  Relies on NumPy; `linalg` and `eigen` rely on it.
"""

from __future__ import annotations

import numpy as np

from .silence import quiet


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


cholesky = routine("cholesky_lo", "f->f", np.linalg.cholesky)
eig = routine("eig", "f->FF", np.linalg.eig)
eigh = routine("eigh_lo", "f->ff", np.linalg.eigh)
slogdet = routine("slogdet", "f->ff", np.linalg.slogdet)
solve = routine("solve", "ff->f", np.linalg.solve)
svd_full = routine("svd_f", "f->fff", np.linalg.svd)
svd_reduced = routine("svd_s", "f->fff", lambda x: np.linalg.svd(x, full_matrices=False))


def svd(x, full):
    """(U, s, Vᴴ)"""
    return svd_full(x) if full else svd_reduced(x)


@quiet
def pinv(x, rtol):
    """The pseudo-inverse: singular values up to rtol times the largest count as 0."""
    u, s, vt = svd_reduced(x.conj())
    large = s > rtol * s.max(axis=-1, keepdims=True, initial=0)
    inverse = np.where(large, 1 / s, 0).astype(s.dtype)
    return np.swapaxes(vt, -1, -2) @ (inverse[..., None] * np.swapaxes(u, -1, -2))
