"""Discrete Fourier transforms along one axis, without factors.

    fft:     X[k] = Σ x[n] exp(∓2πi kn / N)      complex to complex; `inverse` turns the sign
    rfft:    the first N // 2 + 1 of these, of real x
    irfft:   the real x whose rfft, times N, is X

Eager values are computed by NumPy's own transform (pocketfft: any length in O(N log N), f32 in
f32), which compiled code calls for lengths with large prime factors only (`passes.fourier`).  The
matrix of `fft` is symmetric, so it is its own transpose; those of the other two are each other, but
for what is real twice.  `fgrad.numpy.fft` relies on it.
"""

from __future__ import annotations

import numpy as np

from ..core import PRIMITIVES, Array, Primitive
from ..errors import DtypeError, ShapeError
from ..types import COMPLEX, F32, F64, SHORT, complex_of, part_of
from . import elementwise, move
from .complex import complex, imag, real
from .rows import in_rows

MANY = 1 << 15             # elements that are worth a thread of their own


class Transform(Primitive):
    """What the three have in common.  Raises ShapeError for no elements, DtypeError otherwise."""
    linear_in = (0,)

    def check(self, x, axis):
        move.check_axes(self.name, (axis,), x.ndim)
        if x.dtype not in self.dtypes:
            raise DtypeError(f"{self.name} is not defined for {SHORT[x.dtype]}.", given=str(x),
                             expected=" ".join(SHORT[d] for d in self.dtypes))

    def batch(self, dims, x, /, *, axis, **params):
        (d,) = dims
        return self(x, axis=axis + (axis >= d), **params), d


def resized(t, axis, n):
    """The type with n elements along an axis.  Raises ShapeError where n is below 1."""
    if n < 1:
        raise ShapeError("a Fourier transform needs at least one element.", given=str(t))
    return t.with_shape((*t.shape[:axis], n, *t.shape[axis + 1:]))


class FFT(Transform):
    """Σ x[n] exp(∓2πi kn / N) along an axis.   c[*s] → c[*s]"""
    dtypes = COMPLEX

    def type(self, x, /, *, axis, inverse):
        self.check(x, axis)
        return resized(x, axis, x.shape[axis])

    def numpy(self, x, /, *, axis, inverse):
        transform, norm = (np.fft.ifft, "forward") if inverse else (np.fft.fft, "backward")
        found = in_rows(lambda rows: transform(rows, axis=axis, norm=norm), x, axis, MANY)
        return found.astype(x.dtype, copy=False)

    def transpose(self, ct, i, x, /, *, axis, inverse):
        return self(ct, axis=axis, inverse=inverse)


class RFFT(Transform):
    """The first N // 2 + 1 values of fft, of real numbers.   f[…,N,…] → c[…,N//2+1,…]"""
    dtypes = (F32, F64)

    def type(self, x, /, *, axis):
        self.check(x, axis)
        n = x.shape[axis]
        return resized(x, axis, n // 2 + 1 if n else 0).with_dtype(complex_of(x.dtype))

    def numpy(self, x, /, *, axis):
        found = in_rows(lambda rows: np.fft.rfft(rows, axis=axis), x, axis, MANY)
        return found.astype(complex_of(x.dtype), copy=False)

    def transpose(self, ct, i, x, /, *, axis):
        """Re Σ ct[k] exp(-2πi kn / N), where ct beyond the first N // 2 + 1 is zero."""
        n = x.shape[axis]
        high = tuple(n - ct.shape[a] if a == axis else 0 for a in range(ct.ndim))
        none = (0,) * ct.ndim
        wide = move.pad(ct, 0, low=none, high=high, interior=none)
        return real(PRIMITIVES["fft"](wide, axis=axis, inverse=False))


class IRFFT(Transform):
    """The n real numbers whose rfft, times n, is X; the imaginary part of X[0], and for an even n
    of X[n/2], is not read.   c[…,n//2+1,…] → f[…,n,…]
    """
    dtypes = COMPLEX

    def type(self, x, /, *, axis, n):
        self.check(x, axis)
        out = resized(x, axis, n).with_dtype(part_of(x.dtype))
        if x.shape[axis] != n // 2 + 1:
            raise ShapeError(f"irfft to {n} elements needs {n // 2 + 1}.", given=str(x))
        return out

    def numpy(self, x, /, *, axis, n):
        found = in_rows(lambda rows: np.fft.irfft(rows, n, axis=axis, norm="forward"), x, axis,
                        MANY)
        return found.astype(part_of(x.dtype), copy=False)

    def transpose(self, ct, i, x, /, *, axis, n):
        """Σ ct[n] exp(2πi kn / N), twice where X[k] stands for X[N - k] too."""
        found = PRIMITIVES["rfft"](ct, axis=axis)
        k = np.arange(found.shape[axis])
        weight = np.where((k == 0) | (2 * k == n), 1.0, 2.0).astype(ct.dtype)
        weight = move.broadcast(Array(weight), shape=found.shape, axes=tuple(
            a for a in range(found.ndim) if a != axis))
        re, im = real(found), elementwise.neg(imag(found))
        return complex(elementwise.mul(re, weight), elementwise.mul(im, weight))


fft = FFT("fft")
rfft = RFFT("rfft")
irfft = IRFFT("irfft")
