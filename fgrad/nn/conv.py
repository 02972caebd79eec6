"""Convolution layers, channels last: f[n,*s,in] → f[n,*places,features].

The weight is f[*kernel,in/groups,features].  `Conv2d(in, out, kernel, …)` and its like take torch's
arguments.  Relies on `fgrad.convolution`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Callable

from .. import convolution, random
from .. import numpy as fnp
from ..arguments import text_of
from ..errors import ArgumentError, ShapeError
from ..ops.convolve import extent
from .initializers import he_uniform, zeros
from .layers import Layer, Sequential, explained


# ---------------------------------------------------------------------------- windows

def check_windows(layer, window, what):
    """Raises ArgumentError unless the sizes of the window, stride, padding and dilation fit."""
    name = type(layer).__name__
    if not convolution.is_window(window):
        raise ArgumentError(f"{name}: the {what} is a tuple of sizes.", given=f"{what}={window!r}",
                            expected="(3,), (3, 3) or (3, 3, 3), by axis")
    for option in ("stride", "padding", "dilation"):
        value = getattr(layer, option)
        if not isinstance(value, (int, str, tuple, list, type(None))):
            raise ArgumentError(f"{name}: {option} is a number, or one for each axis.",
                                given=f"{option}={value!r:.60}")
        if option != "padding" and value is not None:
            convolution.per_axis(value, len(window), option)
    ones = (1,) * len(window)
    convolution.padding_pairs(layer.padding, window, window, ones, ones)


def pairs_around(layer, x, window, stride):
    """The padding around x, a pair per axis.  Raises ShapeError where a window fits nowhere."""
    sizes, count = x.shape[1:-1], len(window)
    stride = convolution.per_axis(stride, count, "stride")
    dilation = convolution.per_axis(layer.dilation, count, "dilation")
    pairs = convolution.padding_pairs(layer.padding, sizes, window, stride, dilation)
    for axis, (n, k, d, pair) in enumerate(zip(sizes, window, dilation, pairs), 1):
        if 0 < n and n + sum(pair) < extent(k, d):
            raise ShapeError(f"{type(layer).__name__}: a window of {extent(k, d)} places does not "
                             f"fit into {n + sum(pair)} along axis {axis}.",
                             given=[f"x: {text_of(x)}", f"padding={layer.padding!r}"],
                             fix=['padding="SAME"', "or a smaller window"])
    return pairs


# ---------------------------------------------------------------------------- layers

@explained
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
    kernel: object
    _: KW_ONLY
    stride: object = 1
    padding: object = "SAME"
    dilation: object = 1
    groups: int = 1
    bias: bool = True
    kernel_init: Callable = field(default=he_uniform(), repr=False)
    bias_init: Callable = field(default=zeros, repr=False)

    torch = ("nn.Conv2d(inputs, features, kernel) takes it, as in torch",)

    def __post_init__(self):
        super().__post_init__()
        if type(self.kernel) is int:             # of an image, as most kernels are
            object.__setattr__(self, "kernel", (self.kernel, self.kernel))
        check_windows(self, self.kernel, "kernel")
        if self.features % self.groups:
            raise ArgumentError(f"{type(self).__name__}: {self.groups} groups do not divide "
                                f"{self.features} features.")

    def check(self, x):
        """Raises ShapeError unless x is a batch with channels, whose groups come out even."""
        name, ndim = type(self).__name__, len(self.kernel) + 2
        if len(x.shape) != ndim:
            raise ShapeError(f"{name}: {len(self.kernel)} axes with a batch and channels around "
                             f"them are {ndim} axes, and the input has {len(x.shape)}.",
                             given=f"x: {text_of(x)}",
                             expected="[batch, …, channels]")
        if x.shape[-1] % self.groups:
            raise ShapeError(f"{name}: {self.groups} groups do not divide {x.shape[-1]} channels.",
                             given=f"x: {text_of(x)}", expected="channels last")
        self.check_places(x)

    def check_places(self, x):
        """Raises ShapeError where the kernel fits nowhere."""
        pairs_around(self, x, self.kernel, self.stride)

    def init(self, key, x):
        self.check(x)
        dtype = self.float_of(x)
        w_key, b_key = random.split(key)
        params = {"w": self.kernel_init(w_key, self.weight_shape(x.shape[-1]), dtype)}
        if self.bias:
            params["b"] = self.bias_init(b_key, (self.features,), dtype)
        return params, {}

    def weight_shape(self, channels):
        """The shape of the weight."""
        return (*self.kernel, channels // self.groups, self.features)

    def apply(self, params, state, x, *, train=False, key=None):
        self.check(x)
        w = self.parameter(params, "w")
        if w.shape != self.weight_shape(x.shape[-1]):
            name, c = type(self).__name__, w.shape[-2] * self.groups
            raise other_channels(f"{name}: the input has {x.shape[-1]} channels, the weight "
                                 f"expects {c}.", x, c, f"w: {text_of(w)}")
        b = self.parameter(params, "b", (self.features,)) if self.bias else None
        y = self.convolved(x, w)
        return (y if b is None else y + b), state

    def convolved(self, x, w):
        """The convolution itself."""
        return convolution.conv(x, w, stride=self.stride, padding=self.padding,
                                dilation=self.dilation, groups=self.groups)


def other_channels(sentence, x, channels, *given):
    """The ShapeError for an input of another number of channels."""
    moved = "fnp.moveaxis(x, 1, -1), or nn.ChannelsFirst(model), for channels first"
    return ShapeError(sentence, given=[f"x: {text_of(x)}", *given],
                      expected="channels last: [batch, …, channels]",
                      fix=moved if x.shape[1] == channels else None)


@explained
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

    torch = ()

    def check_places(self, x):
        """Its kernel fits everywhere."""

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


@explained
@dataclass(frozen=True)
class CheckedConv(Conv):
    """Conv that knows its number of channels."""
    _: KW_ONLY
    inputs: int

    @property
    def name(self):
        return f"conv{len(self.kernel)}d_"

    def init(self, key, x):
        if x.shape[-1] != self.inputs:
            name = f"Conv{len(self.kernel)}d({self.inputs}, {self.features})"
            raise other_channels(f"{name}: the input has {x.shape[-1]} channels.", x, self.inputs)
        return super().init(key, x)


def torch_like(count):
    """The function of torch's arguments that makes a Conv over `count` axes."""
    def conv(inputs, outputs, kernel, stride=1, padding=0, dilation=1, groups=1, bias=True):
        kernel = convolution.per_axis(kernel, count, "kernel")
        if isinstance(padding, str):
            padding = padding.upper()
        return CheckedConv(outputs, kernel, stride=stride, padding=padding, dilation=dilation,
                           groups=groups, bias=bias, inputs=inputs)
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
    depthwise = Conv(inputs, kernel, stride=stride, padding=padding, groups=inputs, bias=False)
    return Sequential(depthwise, Conv(features, ones))
