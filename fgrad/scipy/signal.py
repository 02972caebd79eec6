"""Signals under SciPy's names: convolutions, directly and by Fourier transforms.

Relies on `fgrad.convolution` and `fgrad.numpy.fft`.
"""

from __future__ import annotations

from .. import numpy as fnp
from ..convolution import conv_general_dilated
from ..errors import ArgumentError, ShapeError, bound
from ..numpy.axes import typed
from ..numpy.promotion import as_float, cast, join

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]
__dir__ = __all__.copy     # dir() lists these and nothing else

SHORT = 512                # elements up to which products are cheaper than transforms


def fftconvolve(in1, in2, mode="full"):
    """The convolution of arrays along all axes, in O(N log N).   n[*a] n[*b] → n[*(a + b - 1)]

    mode: "full"; "same": the middle, in the shape of in1; "valid": where the smaller lies within
    the larger.  Raises ShapeError for other numbers of axes or empty arrays, ArgumentError for
    another mode.

    >>> fftconvolve([1.0, 2.0, 3.0], [0.0, 1.0, 0.5]).round(3).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    x, y = pair(in1, in2, "fftconvolve")
    full, kept, low = cut(x, y, mode, "fftconvolve")
    return product(x, y, full)[tuple(slice(a, a + k) for a, k in zip(low, kept))]


def convolve(in1, in2, mode="full", method="auto"):
    """The convolution of arrays along all axes.   n[*a] n[*b] → n[*(a + b - 1)]

    mode: as of `fftconvolve`.  method: "direct", a sum of products for each element; "fft", by
    `fftconvolve`; "auto": direct where the smaller array has at most SHORT elements.
    Raises as `fftconvolve`, and ArgumentError for another method.

    >>> convolve([1.0, 2.0, 3.0], [0.0, 1.0, 0.5]).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(f"convolve has no method {method!r}.", expected="auto, direct or fft")
    x, y = pair(in1, in2, "convolve")
    if method == "fft" or method == "auto" and min(x.size, y.size) > SHORT:
        return fftconvolve(x, y, mode)
    _, kept, low = cut(x, y, mode, "convolve")
    if x.ndim == 0:
        return x * y
    if mode == "valid" and y.size > x.size:
        x, y = y, x
    before = [m - 1 - a if mode != "valid" else 0 for a, m in zip(low, y.shape)]
    pads = [(b, k - (n - m + 1) - b) for b, k, n, m in zip(before, kept, x.shape, y.shape)]
    out = conv_general_dilated(x[None, None], fnp.flip(y)[None, None], (1,) * x.ndim, pads)
    return out[0, 0]


def correlate(in1, in2, mode="full", method="auto"):
    """The convolution of in1 with in2 in reverse along all axes, conjugated.

    n[*a] n[*b] → n[*(a + b - 1)].  mode, method: as of `convolve`, which raises the errors.

    >>> correlate([1.0, 2.0, 3.0], [0.0, 1.0, 0.5]).tolist()
    [0.5, 2.0, 3.5, 3.0, 0.0]
    """
    return convolve(in1, fnp.conj(fnp.flip(in2)), mode, method)


def convolve2d(in1, in2, mode="full"):
    """The convolution of matrices, directly; zeros lie around them.   n[a,b] n[c,d] → n[…,…]

    Raises as `convolve`, and ShapeError for other than matrices.
    """
    return convolve(flat(in1, "convolve2d"), flat(in2, "convolve2d"), mode, "direct")


def correlate2d(in1, in2, mode="full"):
    """The correlation of matrices, directly; zeros lie around them.   n[a,b] n[c,d] → n[…,…]

    mode: as of `convolve`; the middle that "same" keeps is, as in SciPy, that of the convolution of
    in1 in reverse.  Raises as `convolve`, and ShapeError for other than matrices.
    """
    x, y = flat(in1, "correlate2d"), flat(in2, "correlate2d")
    if mode == "same":
        return fnp.flip(convolve(fnp.flip(x), fnp.conj(y), mode, "direct"))
    return correlate(x, y, mode, "direct")


def flat(x, name):
    """A matrix as a value."""
    x = as_float(x)
    if x.ndim != 2:
        raise ShapeError(f"{name} needs matrices.", given=typed(x))
    return x


def pair(in1, in2, name):
    """Both as values of one dtype that is no integer."""
    x, y = as_float(in1), as_float(in2)
    if x.ndim != y.ndim or not (x.size and y.size):
        raise ShapeError(f"{name} needs arrays with elements and equally many axes.",
                         given=[typed(x), typed(y)])
    dtype = join([x.dtype, y.dtype])
    return cast(x, dtype), cast(y, dtype)


def cut(x, y, mode, name):
    """(the shape of the whole convolution, that of the result, where the result begins)."""
    full = tuple(n + m - 1 for n, m in zip(x.shape, y.shape))
    if mode == "full":
        kept = full
    elif mode == "same":
        kept = x.shape
    elif mode == "valid":
        kept = tuple(abs(n - m) + 1 for n, m in zip(x.shape, y.shape))
        contained(x, y)
    else:
        raise ArgumentError(f"{name} has no mode {mode!r}.", expected="full, same or valid")
    return full, kept, [(n - k) // 2 for n, k in zip(full, kept)]


def contained(x, y):
    """Raises ShapeError unless one array is at least as large as the other along every axis."""
    apart = [n - m for n, m in zip(x.shape, y.shape)]
    if min(apart, default=0) < 0 < max(apart, default=0):
        raise ShapeError("mode='valid' needs one array that contains the other.",
                         given=[typed(x), typed(y)])


def product(x, y, shape):
    """The convolution of a shape: the product of transforms, transformed back."""
    if not shape:
        return x * y
    axes = tuple(range(x.ndim))
    if x.dtype.kind == "c":
        return fnp.fft.ifftn(fnp.fft.fftn(x, shape) * fnp.fft.fftn(y, shape))
    made = fnp.fft.rfftn(x, shape, axes) * fnp.fft.rfftn(y, shape, axes)
    return cast(fnp.fft.irfftn(made, shape, axes), x.dtype)


bound(globals())
