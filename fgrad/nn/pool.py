"""Pooling layers over f[n,*s,c]: windows of `window`, a tuple with an entry per axis of s.

They have no parameters.  Relies on `fgrad.convolution`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from math import prod

from .. import convolution
from .. import numpy as fnp
from ..arguments import text_of
from ..errors import ArgumentError, ShapeError
from ..numpy.promotion import as_float
from ..numpy.reductions import widened
from .conv import check_windows, pairs_around
from .layers import Layer, explained
from .norm import like


@explained
@dataclass(frozen=True)
class Pool(Layer):
    """What pooling layers share.  stride: as `window` unless given."""
    window: tuple
    stride: object = None
    padding: object = "VALID"
    dilation: object = 1

    def __post_init__(self):
        super().__post_init__()
        check_windows(self, self.window, "window")

    def reduced(self, x, how):
        """x reduced over the windows."""
        count = len(self.window)
        if x.ndim != count + 2:
            raise ShapeError(f"{type(self).__name__}: a window of {count} axes needs {count + 2} "
                             f"axes, and the input has {x.ndim}.", given=f"x: {text_of(x)}",
                             expected="[batch, …, channels]")
        stride = self.window if self.stride is None else self.stride
        pairs = pairs_around(self, x, self.window, stride)
        stride = convolution.per_axis(stride, count, "stride")
        dilation = convolution.per_axis(self.dilation, count, "dilation")
        return convolution.reduce_window(x, how, (1, *self.window, 1), (1, *stride, 1),
                                         ((0, 0), *pairs, (0, 0)), (1, *dilation, 1))


class MaxPool(Pool):
    """The largest element of each window, per channel; the gradient goes to the first of them.

    >>> x = fnp.arange(16.0).reshape(1, 4, 4, 1)
    >>> MaxPool((2, 2)).apply({}, {}, x)[0].ravel().tolist()
    [5.0, 7.0, 13.0, 15.0]
    """

    def apply(self, params, state, x, *, train=False, key=None):
        return self.reduced(x, "max"), state


@explained
@dataclass(frozen=True)
class AvgPool(Pool):
    """The mean of each window, per channel.  count_padding: padding counts as zeros, as in torch.

    >>> x = fnp.arange(16.0).reshape(1, 4, 4, 1)
    >>> AvgPool((2, 2)).apply({}, {}, x)[0].ravel().tolist()
    [2.5, 4.5, 10.5, 12.5]
    """
    _: KW_ONLY
    count_padding: bool = True

    def apply(self, params, state, x, *, train=False, key=None):
        wide = widened(as_float(x))
        total = self.reduced(wide, "sum")
        ones = fnp.ones((1, *x.shape[1:-1], 1), wide.dtype)
        count = prod(self.window) if self.count_padding else self.reduced(ones, "sum")
        return like(x, total / count), state


class GlobalAvgPool(Layer):
    """The mean over all axes between batch and channels: f[n,*s,c] → f[n,c].

    >>> GlobalAvgPool().apply({}, {}, fnp.ones((2, 3, 3, 5)))[0].shape
    (2, 5)
    """

    def apply(self, params, state, x, *, train=False, key=None):
        return fnp.mean(x, axis=tuple(range(1, x.ndim - 1))), state


class GlobalMaxPool(Layer):
    """The largest element over all axes between batch and channels: f[n,*s,c] → f[n,c].

    >>> GlobalMaxPool().apply({}, {}, fnp.ones((2, 3, 3, 5)))[0].shape
    (2, 5)
    """

    def apply(self, params, state, x, *, train=False, key=None):
        return fnp.max(x, axis=tuple(range(1, x.ndim - 1))), state


@explained
@dataclass(frozen=True)
class AdaptivePool(Layer):
    """What adaptive pooling layers share.  sizes: how many windows along each axis of s.

    Of n places, window k of m goes from ⌊k n / m⌋ to ⌈(k + 1) n / m⌉, as in torch: all are equal
    where m divides n, else neighbours share a place.
    """
    sizes: tuple

    def __post_init__(self):
        super().__post_init__()
        if not convolution.is_window(self.sizes):
            raise ArgumentError(f"{type(self).__name__}: the sizes are a tuple, one for each axis.",
                                given=f"sizes={self.sizes!r}", expected="as (2, 2)")

    def pooled(self, x, reduce):
        """x with each axis between batch and channels reduced over its windows."""
        if x.ndim != len(self.sizes) + 2 or 0 in x.shape[1:-1]:
            raise ShapeError(f"{type(self).__name__}: {self.sizes} windows need "
                             f"{len(self.sizes) + 2} axes, with places in each.",
                             given=f"x: {text_of(x)}", expected="[batch, …, channels]")
        for axis, count in enumerate(self.sizes, 1):
            before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1:]
            if n % count == 0:
                x = reduce(fnp.reshape(x, (*before, count, n // count, *after)), axis=axis + 1)
                continue
            bounds = [(k * n // count, -(-(k + 1) * n // count)) for k in range(count)]
            every = (slice(None),) * axis
            x = fnp.stack([reduce(x[(*every, slice(*ends))], axis=axis) for ends in bounds], axis)
        return x


class AdaptiveAvgPool(AdaptivePool):
    """The mean of as many windows as `sizes` says: f[n,*s,c] → f[n,*sizes,c].

    >>> AdaptiveAvgPool((2, 2)).apply({}, {}, fnp.ones((1, 6, 5, 3)))[0].shape
    (1, 2, 2, 3)
    """

    def apply(self, params, state, x, *, train=False, key=None):
        return self.pooled(x, fnp.mean), state


class AdaptiveMaxPool(AdaptivePool):
    """The largest element of as many windows as `sizes` says: f[n,*s,c] → f[n,*sizes,c].

    >>> x = fnp.arange(5.0).reshape(1, 5, 1)
    >>> AdaptiveMaxPool((2,)).apply({}, {}, x)[0].ravel().tolist()
    [2.0, 4.0]
    """

    def apply(self, params, state, x, *, train=False, key=None):
        return self.pooled(x, fnp.max), state
