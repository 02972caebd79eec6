"""Discrete Fourier transforms under NumPy's names: numpy.fft.

n and s cut the array, or append zeros, before it is transformed; norm says where the factor 1 / N
stands: "backward" at the inverse (the default), "forward" at the other, "ortho" 1 / √N at both.
Integers become the default float, f16 becomes f32; f32 gives c64 and f64 gives c128.  Every
transform is differentiable, linear, and one call of `ops.fourier` for each axis.
"""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..arguments import lifted
from ..errors import ArgumentError, ShapeError, bound
from ..types import COMPUTED, F32, default_float
from .axes import axis_of, typed
from .complex import as_complex, conjugate
from .creation import array, zeros_like
from .joining import concatenate
from .promotion import as_float, cast, same
from .shape import roll

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn",
           "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]
__dir__ = __all__.copy     # dir() lists these and nothing else

SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


# ---------------------------------------------------------------------------- parts

def working(x):
    """x as floats or complex numbers that are transformed."""
    x = as_float(x)
    return cast(x, F32) if x.dtype in COMPUTED else x


def factor(n, norm, inverse):
    """What a transform of n elements is multiplied by.  Raises ArgumentError for another norm."""
    if norm not in SWAPPED:
        raise ArgumentError(f"there is no norm={norm!r}.", expected="backward, ortho or forward")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse == (norm != "forward") else 1.0


def scaled(x, by):
    return x if by == 1.0 else same(ops.mul, x, by)


def fitted(x, n, axis):
    """The first n elements along an axis, or all and zeros behind.  Raises ShapeError for n < 1."""
    size = x.shape[axis]
    if n < 1:
        raise ShapeError("a Fourier transform needs at least one element.", given=typed(x),
                         fix="n=1 or more")
    if n > size:
        shape = (*x.shape[:axis], n - size, *x.shape[axis + 1:])
        return concatenate([x, zeros_like(x, shape=shape)], axis=axis)
    return x[(slice(None),) * axis + (slice(0, n),)] if n < size else x


def along(x, n, axis, norm, inverse):
    """The complex transform along one axis, n None for its size."""
    x = fitted(x, x.shape[axis] if n is None else n, axis)
    return scaled(ops.fft(x, axis=axis, inverse=inverse), factor(x.shape[axis], norm, inverse))


def real_along(x, n, axis, norm):
    """The first half of the transform of real numbers along one axis."""
    if x.dtype.kind == "c":
        raise ArgumentError("rfft needs real numbers.", given=typed(x), fix="fft, or x.real")
    x = fitted(x, x.shape[axis] if n is None else n, axis)
    return scaled(ops.rfft(x, axis=axis), factor(x.shape[axis], norm, False))


def real_from(x, n, axis, norm):
    """The n real numbers of half a transform along one axis."""
    n = 2 * (x.shape[axis] - 1) if n is None else n
    x = fitted(x, n // 2 + 1 if n > 0 else 0, axis)
    return scaled(ops.irfft(x, axis=axis, n=n), factor(n, norm, True))


def places(x, s, axes, name):
    """[(axis, n or None)] of a transform along several axes; -1 stands for the size.

    Raises ShapeError where s and axes differ in number.
    """
    s, axes = [(given,) if isinstance(given, int) else given for given in (s, axes)]
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = [axis_of(a, x.ndim, name) for a in axes]
    s = [None] * len(axes) if s is None else s
    if len(s) != len(axes):
        raise ShapeError(f"{name} needs as many sizes as axes.", given=f"s={s}, axes={axes}")
    return [(a, x.shape[a] if n == -1 else n) for a, n in zip(axes, s)]


# ---------------------------------------------------------------------------- one axis

def fft(a, n=None, axis=-1, norm=None):
    """Σ a[m] exp(-2πi km / N) along an axis.   n[…,m,…] → c[…,n,…]

    Raises ShapeError for no elements, ArgumentError for another norm.

    >>> fft([1.0, 0.0, 0.0, 0.0]).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    x = as_complex(working(a))
    return along(x, n, axis_of(axis, x.ndim, "fft"), norm, False)


def ifft(a, n=None, axis=-1, norm=None):
    """The inverse of fft: Σ a[k] exp(2πi km / N) / N.   n[…,m,…] → c[…,n,…]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.ifft(fnp.fft.fft([1.0, 2.0])).real
    Array([1., 2.], f32[2])
    """
    x = as_complex(working(a))
    return along(x, n, axis_of(axis, x.ndim, "ifft"), norm, True)


def rfft(a, n=None, axis=-1, norm=None):
    """The first n // 2 + 1 values of fft, of real numbers.   f[…,m,…] → c[…,n//2+1,…]

    >>> rfft([1.0, 2.0, 3.0]).shape
    (2,)
    """
    x = working(a)
    return real_along(x, n, axis_of(axis, x.ndim, "rfft"), norm)


def irfft(a, n=None, axis=-1, norm=None):
    """The inverse of rfft, n = 2 (m - 1) by default.   n[…,m,…] → f[…,n,…]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.irfft(fnp.fft.rfft([1.0, 2.0, 3.0, 4.0]))
    Array([1., 2., 3., 4.], f32[4])
    """
    x = as_complex(working(a))
    return real_from(x, n, axis_of(axis, x.ndim, "irfft"), norm)


def hfft(a, n=None, axis=-1, norm=None):
    """fft of what is a Hermitian sequence, given by its half: real.   n[…,m,…] → f[…,n,…]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.hfft(fnp.ones(3)).shape
    (4,)
    """
    x = conjugate(as_complex(working(a)))
    return real_from(x, n, axis_of(axis, x.ndim, "hfft"), SWAPPED.get(norm, norm))


def ihfft(a, n=None, axis=-1, norm=None):
    """The inverse of hfft.   f[…,m,…] → c[…,n//2+1,…]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.ihfft(fnp.ones(4)).shape
    (3,)
    """
    x = working(a)
    return conjugate(real_along(x, n, axis_of(axis, x.ndim, "ihfft"), SWAPPED.get(norm, norm)))


# ---------------------------------------------------------------------------- several axes

def fftn(a, s=None, axes=None, norm=None):
    """fft along several axes, by default all.   n[*m] → c[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.fftn(fnp.ones((2, 2)))[0, 0].item()
    (4+0j)
    """
    x = as_complex(working(a))
    for axis, n in places(x, s, axes, "fftn"):
        x = along(x, n, axis, norm, False)
    return x


def ifftn(a, s=None, axes=None, norm=None):
    """The inverse of fftn.   n[*m] → c[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.ifftn(fnp.ones((2, 2)))[0, 0].item()
    (1+0j)
    """
    x = as_complex(working(a))
    for axis, n in places(x, s, axes, "ifftn"):
        x = along(x, n, axis, norm, True)
    return x


def rfftn(a, s=None, axes=None, norm=None):
    """rfft along the last of the axes, then fft along the others.   f[*m] → c[…,s//2+1]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.rfftn(fnp.ones((4, 4))).shape
    (4, 3)
    """
    x = working(a)
    *others, (last, n) = at_least_one(places(x, s, axes, "rfftn"), "rfftn")
    x = real_along(x, n, last, norm)
    for axis, n in others:
        x = along(x, n, axis, norm, False)
    return x


def irfftn(a, s=None, axes=None, norm=None):
    """The inverse of rfftn.   n[*m] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.irfftn(fnp.ones((4, 3))).shape
    (4, 4)
    """
    x = as_complex(working(a))
    *others, (last, n) = at_least_one(places(x, s, axes, "irfftn"), "irfftn")
    for axis, size in others:
        x = along(x, size, axis, norm, True)
    return real_from(x, n, last, norm)


def at_least_one(found, name):
    """The axes.  Raises ShapeError where there are none."""
    if not found:
        raise ShapeError(f"{name} needs at least one axis.")
    return found


def fft2(a, s=None, axes=(-2, -1), norm=None):
    """fft along two axes.   n[…,m,k] → c[…,*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.fft2(fnp.ones((5, 4, 4))).shape
    (5, 4, 4)
    """
    return fftn(a, s, axes, norm)


def ifft2(a, s=None, axes=(-2, -1), norm=None):
    """The inverse of fft2.   n[…,m,k] → c[…,*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.ifft2(fnp.ones((5, 4, 4))).shape
    (5, 4, 4)
    """
    return ifftn(a, s, axes, norm)


def rfft2(a, s=None, axes=(-2, -1), norm=None):
    """rfftn along two axes.   f[…,m,k] → c[…,m,k//2+1]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.rfft2(fnp.ones((5, 4, 4))).shape
    (5, 4, 3)
    """
    return rfftn(a, s, axes, norm)


def irfft2(a, s=None, axes=(-2, -1), norm=None):
    """The inverse of rfft2.   n[…,m,k] → f[…,*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.irfft2(fnp.ones((5, 4, 3))).shape
    (5, 4, 4)
    """
    return irfftn(a, s, axes, norm)


# ---------------------------------------------------------------------------- frequencies

def fftfreq(n, d=1.0, dtype=None):
    """The frequencies of fft, in cycles per unit of d: 0, 1, …, -1, over n d.   → f[n]

    >>> fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    k = np.arange(n)
    k = np.where(k < (n + 1) // 2, k, k - n)
    return array(k / (n * d), dtype=default_float() if dtype is None else dtype)


def rfftfreq(n, d=1.0, dtype=None):
    """The frequencies of rfft: 0, 1, …, n // 2, over n d.   → f[n//2+1]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], f32[3])
    """
    k = np.arange(n // 2 + 1)
    return array(k / (n * d), dtype=default_float() if dtype is None else dtype)


def fftshift(x, axes=None):
    """x with frequency 0 in the middle along axes, by default all.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.fftshift(fnp.fft.fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], f32[4])
    """
    return shifted(x, axes, lambda n: n // 2)


def ifftshift(x, axes=None):
    """The inverse of fftshift.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.fft.ifftshift(fnp.fft.fftshift(fnp.arange(4)))
    Array([0, 1, 2, 3], i32[4])
    """
    return shifted(x, axes, lambda n: -(n // 2))


def shifted(x, axes, by):
    """x rolled along axes, by by(size) each."""
    x = lifted(x)
    axes = range(x.ndim) if axes is None else [axes] if axes.__class__ is int else axes
    axes = [axis_of(a, x.ndim, "fftshift") for a in axes]
    return roll(x, tuple(by(x.shape[a]) for a in axes), tuple(axes)) if axes else x


bound(globals(), __all__)
