"""Convolution layers, channels last: f[n,*s,in] → f[n,*places,features].

The weight is f[*kernel,in/groups,features].  `Conv2d(in, out, kernel, …)` and its like take torch's
arguments.  Relies on `fgrad.convolution`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable

from .. import convolution, random
from .. import numpy as fnp
from ..errors import ArgumentError, ShapeError
from .initializers import he_uniform, zeros
from .layers import Layer, Sequential


@dataclass(frozen=True)
class Conv(Layer):
    """A convolution over as many axes as `kernel` has, channels last, plus a bias; int k is (k, k).

    stride, dilation: an int, or one per axis.  padding: "SAME", "VALID", an int, or an int or pair
    (before, after) per axis.  groups: features in group g see the channels of group g only; as many
    groups as channels is a depthwise convolution.

    >>> import fgrad.numpy as fnp
    >>> layer = Conv(8, (3, 3), stride=2)
    >>> params, state = layer.init(random.key(0), fnp.ones((1, 6, 6, 2)))
    >>> params["w"].shape, layer.apply(params, state, fnp.ones((1, 6, 6, 2)))[0].shape
    ((3, 3, 2, 8), (1, 3, 3, 8))
    """
    features: int
    kernel: tuple
    stride: object = 1
    padding: object = "SAME"
    dilation: object = 1
    groups: int = 1
    bias: bool = True
    kernel_init: Callable = field(default=he_uniform(), repr=False)
    bias_init: Callable = field(default=zeros, repr=False)

    def __post_init__(self):
        if type(self.kernel) is int:             # of an image, as most kernels are
            object.__setattr__(self, "kernel", (self.kernel, self.kernel))
        if not convolution.is_window(self.kernel):
            raise ArgumentError(f"{type(self).__name__}: the kernel is a tuple of sizes.",
                                given=f"kernel={self.kernel!r}",
                                expected="(3,), (3, 3) or (3, 3, 3), by axis; 3 is (3, 3)")

    def check(self, x):
        """Raises ShapeError unless x is a batch with channels, whose groups come out even."""
        name, ndim = type(self).__name__, len(self.kernel) + 2
        if len(x.shape) != ndim:
            raise ShapeError(f"{name}: {len(self.kernel)} axes with a batch and channels around "
                             f"them are {ndim} axes, and the input has {len(x.shape)}.",
                             given=f"x: shape {tuple(x.shape)}",
                             expected="[batch, …, channels]")
        if x.shape[-1] % self.groups or self.features % self.groups:
            raise ShapeError(f"{name}: {self.groups} groups do not divide {x.shape[-1]} channels "
                             f"and {self.features} features.")

    def init(self, key, x):
        self.check(x)
        w_key, b_key = random.split(key)
        params = {"w": self.kernel_init(w_key, self.weight_shape(x.shape[-1]), x.dtype)}
        if self.bias:
            params["b"] = self.bias_init(b_key, (self.features,), x.dtype)
        return params, {}

    def weight_shape(self, channels):
        """The shape of the weight."""
        return (*self.kernel, channels // self.groups, self.features)

    def apply(self, params, state, x, *, train=False, key=None):
        self.check(x)
        w = self.parameter(params, "w")
        if w.shape != self.weight_shape(x.shape[-1]):
            raise ShapeError(f"{type(self).__name__}: the input has {x.shape[-1]} channels, the "
                             f"weight expects {w.shape[-2] * self.groups}.",
                             given=[f"x: {x.type}", f"w: {w.type}"])
        y = self.convolved(x, w)
        return (y + params["b"] if self.bias else y), state

    def convolved(self, x, w):
        """The convolution itself."""
        return convolution.conv(x, w, stride=self.stride, padding=self.padding,
                                dilation=self.dilation, groups=self.groups)


@dataclass(frozen=True)
class ConvTranspose(Conv):
    """The transposed convolution: its stride is between elements of the result.

    "SAME" gives size · stride places, "VALID" size · stride + max(0, extent - stride); a number p
    leaves away p of (size - 1) · stride + extent places on each side, as in torch.

    >>> import fgrad.numpy as fnp
    >>> layer = ConvTranspose(4, (2, 2), stride=2)
    >>> params, state = layer.init(random.key(0), fnp.ones((1, 3, 3, 2)))
    >>> layer.apply(params, state, fnp.ones((1, 3, 3, 2)))[0].shape
    (1, 6, 6, 4)
    """

    def convolved(self, x, w):
        padding, count = self.padding, len(self.kernel)
        dilation = convolution.per_axis(self.dilation, count, "dilation")
        if not isinstance(padding, str):
            pairs = convolution.padding_pairs(padding, self.kernel, self.kernel, dilation, dilation)
            extents = [(k - 1) * d for k, d in zip(self.kernel, dilation)]
            padding = [(e - a, e - b) for e, (a, b) in zip(extents, pairs)]
        parts = zip(fnp.split(x, self.groups, axis=-1), fnp.split(w, self.groups, axis=-1))
        return fnp.concatenate([convolution.conv_transpose(a, b, self.stride, padding, dilation)
                                for a, b in parts], axis=-1)


@dataclass(frozen=True)
class CheckedConv(Conv):
    """Conv that knows its number of channels."""
    inputs: int = 0

    @property
    def name(self):
        return f"conv{len(self.kernel)}d_"

    def init(self, key, x):
        if x.shape[-1] != self.inputs:
            name = f"Conv{len(self.kernel)}d({self.inputs}, {self.features})"
            raise ShapeError(f"{name}: the input has {x.shape[-1]} channels.",
                             given=f"x: shape {tuple(x.shape)}",
                             expected="channels last")
        return super().init(key, x)


def torch_like(count):
    """The function of torch's arguments that makes a Conv over `count` axes."""
    def conv(inputs, outputs, kernel, stride=1, padding=0, dilation=1, groups=1, bias=True):
        kernel = convolution.per_axis(kernel, count, "kernel")
        if isinstance(padding, str):
            padding = padding.upper()
        return CheckedConv(outputs, kernel, stride, padding, dilation, groups, bias, inputs=inputs)
    conv.__name__ = conv.__qualname__ = f"Conv{count}d"
    axes, shape = "one axis" if count == 1 else f"{count} axes", (1, *[5] * count, 3)
    conv.__doc__ = (f"""Conv over {axes} with torch's arguments; inputs are channels last.

    The number of channels is checked when it is initialised.  Raises ShapeError if it is another.

    >>> import fgrad.numpy as fnp
    >>> layer, x = Conv{count}d(3, 8, 3, stride=2, padding=1), fnp.ones({shape})
    >>> params, state = layer.init(random.key(0), x)
    >>> layer.apply(params, state, x)[0].shape
    {(1, *[3] * count, 8)}
    """)
    return conv


Conv1d, Conv2d, Conv3d = map(torch_like, (1, 2, 3))


def DepthwiseSeparable(inputs, features, kernel=(3, 3), stride=1, padding="SAME"):
    """A depthwise convolution, then one of size 1 that mixes channels (Howard et al. 2017).

    >>> import fgrad.numpy as fnp
    >>> params, _ = DepthwiseSeparable(4, 8).init(random.key(0), fnp.ones((1, 5, 5, 4)))
    >>> params["conv1"]["w"].shape, params["conv2"]["w"].shape
    ((3, 3, 1, 4), (1, 1, 4, 8))
    """
    ones = (1,) * len(kernel)
    depthwise = Conv(inputs, kernel, stride, padding, groups=inputs, bias=False)
    return Sequential(depthwise, Conv(features, ones))
