"""Images, or any arrays, in other sizes: `resize`.

    x[i] at the middles of n elements  →  y[o] = Σᵢ w[i,o] x[i] at the middles of m in their place

The weights are a kernel's, a function of the distance, divided by their sum; they are known before
anything runs, so that each axis is one product.  Relies on `fgrad.numpy`.

Sources: R. Keys, "Cubic convolution interpolation for digital image processing" (1981), with
a = -1/2; C. Duchon, "Lanczos filtering in one and two dimensions" (1979).
"""

from __future__ import annotations

import numpy as np

from . import numpy as fnp
from .core import as_value
from .errors import ArgumentError, ShapeError
from .numpy.axes import shape_of, typed
from .numpy.promotion import as_float

__all__ = ["resize"]
__dir__ = __all__.copy     # dir() lists these and nothing else

LEAST = 1e-4               # sum of a kernel below which there is no value


def triangle(x):
    return np.maximum(0, 1 - x)


def cubic(x):
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def lanczos3(x):
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


def lanczos5(x):
    return np.where(x < 5, np.sinc(x) * np.sinc(x / 5), 0)


KERNELS = {"linear": triangle, "bilinear": triangle, "trilinear": triangle, "triangle": triangle,
           "cubic": cubic, "bicubic": cubic, "tricubic": cubic,
           "lanczos3": lanczos3, "lanczos5": lanczos5}


def resize(image, shape, method, antialias=True):
    """The array in another shape of as many axes.   n[*s] → f[*shape]

    method: "nearest" takes the nearest element, and keeps the dtype; "linear" (also "bilinear",
    "trilinear", "triangle"), "cubic" (also "bicubic", "tricubic"), "lanczos3" and "lanczos5" weigh
    those around, as far as there are some.  antialias: where an axis becomes shorter, weigh all
    that come to lie in one.
    Raises ArgumentError for another method, ShapeError for another number of axes or for elements
    where there were none.

    >>> resize([[0.0, 4.0]], (2, 4), "linear").tolist()
    [[0.0, 1.0, 3.0, 4.0], [0.0, 1.0, 3.0, 4.0]]
    >>> resize([1, 2, 3, 4], (2,), "nearest").tolist()
    [2, 4]
    """
    x = as_value(image) if method == "nearest" else as_float(image)
    if method != "nearest" and method not in KERNELS:
        raise ArgumentError(f"resize has no method {method!r}.",
                            expected="nearest, " + ", ".join(KERNELS))
    shape = shape_of(shape, "resize")
    if len(shape) != x.ndim or any(m > 0 == n for n, m in zip(x.shape, shape)):
        raise ShapeError("resize needs a size for each axis, and elements to begin with.",
                         given=[typed(x), f"shape {list(shape)}"],
                         fix="name the axes that stay, too: (*x.shape[:-2], 64, 64)")
    changed = [axis for axis, (n, m) in enumerate(zip(x.shape, shape)) if n != m]
    for axis in sorted(changed, key=lambda a: shape[a] / max(1, x.shape[a])):
        n, m = x.shape[axis], shape[axis]
        if method == "nearest":
            x = fnp.take(x, ((2 * np.arange(m) + 1) * n // (2 * max(1, m))).astype("int32"), axis)
        else:
            w = weights(n, m, KERNELS[method], antialias).astype(x.dtype)
            x = fnp.moveaxis(fnp.tensordot(x, w, ((axis,), (0,))), -1, axis)
    return x


def weights(n, m, kernel, antialias):
    """What each of n elements weighs in each of m in their place, in double precision.   [n,m]"""
    scale = n / max(1, m)
    middles = (np.arange(m) + 0.5) * scale - 0.5
    far = np.abs(middles - np.arange(n)[:, None])
    w = kernel(far / max(scale, 1) if antialias else far)
    total = w.sum(0)
    return np.where(np.abs(total) > LEAST, w / np.where(total == 0, 1, total), 0)
