"""LAPACK's own routines, where the library that NumPy brings has them.

NumPy has no LU, computes QR of f32 in f64, and copies what is factorised to the order of Fortran
and back by single columns, which takes longer than the work.  The names are those of OpenBLAS with
64-bit integers, of NumPy's wheels; another LAPACK has others, and `found` is False.  Matrices are
single ones, with elements, of real numbers.  Relies on NumPy; `lapack` relies on it.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from ..aligned import copied

NAMES = ("scipy_{}_64_", "{}_64_")
ROUTINES = ("getrf", "getrs", "potrf", "geqrf", "orgqr")
PRECISIONS = {"f": "s", "d": "d"}      # NumPy's letter → LAPACK's
BLOCK = 64                 # columns that LAPACK's QR likes to work on at once
CHOLESKY, LU = 64, 64      # rows from which they are faster than what NumPy does
QR = 4096                  # elements from which it is
KEPT = 1024                # rows up to which triangles of ones are kept


@functools.cache
def found():
    """Are there such routines, and do they do what they should?"""
    if None in [routine(name, letter) for name in ROUTINES for letter in PRECISIONS]:
        return False
    factors, pivots = lu(np.array([[2.0, 1.0], [4.0, 3.0]]))
    return factors.tolist() == [[4, 3], [0.5, -0.5]] and pivots.tolist() == [1, 1]


@functools.cache
def routine(name, letter):
    """The routine of some name for the elements that a letter of NumPy's means, or None."""
    library = loaded()
    for form in NAMES:
        with_letter = form.format(PRECISIONS[letter] + name)
        if library is not None and hasattr(library, with_letter):
            return getattr(library, with_letter)
    return None


@functools.cache
def loaded():
    """NumPy's linear algebra, by which its LAPACK is found; None where that is no shared library.
    """
    try:
        return ctypes.CDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return None


def lu(x):
    """(LU, pivots): see `linalg.Lu`."""
    a, pivots = turned(x), np.empty(len(x), np.int64)
    run("getrf", x.dtype, len(x), len(x), a, len(x), pivots)
    return turned(a), (pivots - 1).astype(np.int32)


def solve(a, b):
    """y with a y = b; NaN where a is singular.  Fortran reads the transposed matrix, and solves
    with that transposed: so it is not copied by columns.
    """
    factors, pivots, y = np.array(a), np.empty(len(a), np.int64), turned(b)
    if run("getrf", a.dtype, len(a), len(a), factors, len(a), pivots):
        return np.full_like(b, np.nan)
    run("getrs", a.dtype, "T", len(a), len(y), factors, len(a), pivots, y, len(a))
    return turned(y)


def slogdet(x):
    """(sign, log |det|), which are the transposed matrix's too; (0, -inf) where x is singular."""
    factors, pivots = np.array(x), np.empty(len(x), np.int64)
    one = x.dtype.type
    if run("getrf", x.dtype, len(x), len(x), factors, len(x), pivots):
        return one(0), one(-np.inf)
    diagonal = np.diagonal(factors)
    exchanges = np.count_nonzero(pivots - 1 != np.arange(len(x)))
    return one((-1) ** exchanges) * np.sign(diagonal).prod(), np.log(np.abs(diagonal)).sum()


def cholesky(x):
    """The lower factor of a symmetric matrix, NaN where that is not positive definite."""
    a = np.array(x)                              # its rows are Fortran's columns
    if run("potrf", x.dtype, "U", len(x), a, len(x)):
        return np.full_like(a, np.nan)
    if len(x) > KEPT:
        return np.tril(a)
    a *= triangle(len(x), x.dtype)               # np.tril asks every element: 15 times as long
    return a


@functools.lru_cache(maxsize=8)
def triangle(n, dtype):
    """Ones on and below the diagonal, zeros above it."""
    return np.tri(n, dtype=dtype)


def qr(x, full):
    """(Q, R): see `linalg.Qr`."""
    (m, n), k = x.shape, min(x.shape)
    a, scales = np.empty((max(n, m) if full else n, m), x.dtype), np.empty(k, x.dtype)
    a[:n] = turned(x)
    size = BLOCK * len(a)
    work = np.empty(size, x.dtype)
    run("geqrf", x.dtype, m, n, a, m, scales, work, size)
    columns = m if full else k
    r = turned(a[:n, :columns])
    clear_below(r)
    run("orgqr", x.dtype, m, columns, k, a, m, scales, work, size)
    return turned(a[:columns]), r


def clear_below(x):
    """Zeros below the diagonal; np.triu, which makes its mask anew, takes longer."""
    if max(x.shape) <= KEPT:
        np.copyto(x, 0, where=below(*x.shape))
        return
    for row in range(1, len(x)):
        x[row, :row] = 0


@functools.lru_cache(maxsize=8)
def below(m, n):
    """The mask of what is below the diagonal."""
    return np.tri(m, n, -1, dtype=bool)


def run(name, dtype, *given):
    """Calls a routine, which gets everything by address; → what it says of an error behind all."""
    def address(x):
        match x:
            case str():
                return ctypes.c_char_p(x.encode())
            case int():
                return ctypes.byref(ctypes.c_int64(x))
        return ctypes.byref(ctypes.c_char.from_buffer(x))        # x.ctypes.data takes 1 µs
    info = ctypes.c_int64()
    routine(name, dtype.char)(*map(address, given), ctypes.byref(info))
    return info.value


def turned(x):
    """The transposed matrix, a copy of its own."""
    return copied(x.T)
