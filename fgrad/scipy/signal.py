"""Signals under SciPy's names: convolutions by Fourier transforms.  Relies on `fgrad.numpy.fft`."""

from __future__ import annotations

from .. import numpy as fnp
from ..errors import ArgumentError, ShapeError
from ..numpy.axes import typed
from ..numpy.promotion import as_float, cast, join


def fftconvolve(in1, in2, mode="full"):
    """The convolution of arrays along all axes, in O(N log N).   n[*a] n[*b] → n[*(a + b - 1)]

    mode: "full"; "same": the middle, in the shape of in1; "valid": where the smaller lies within
    the larger.  Raises ShapeError for other numbers of axes or empty arrays, ArgumentError for
    another mode.

    >>> fftconvolve([1.0, 2.0, 3.0], [0.0, 1.0, 0.5]).round(3).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    x, y = as_float(in1), as_float(in2)
    if x.ndim != y.ndim or not (x.size and y.size):
        raise ShapeError("fftconvolve needs arrays with elements and equally many axes.",
                         given=[typed(x), typed(y)])
    dtype = join([x.dtype, y.dtype])
    x, y = cast(x, dtype), cast(y, dtype)
    full = tuple(n + m - 1 for n, m in zip(x.shape, y.shape))
    if mode == "full":
        kept = full
    elif mode == "same":
        kept = x.shape
    elif mode == "valid":
        kept = tuple(abs(n - m) + 1 for n, m in zip(x.shape, y.shape))
        contained(x, y)
    else:
        raise ArgumentError(f"fftconvolve has no mode {mode!r}.", expected="full, same or valid")
    low = [(n - k) // 2 for n, k in zip(full, kept)]
    return product(x, y, full)[tuple(slice(a, a + k) for a, k in zip(low, kept))]


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
