"""Normalisation layers: subtract a mean, divide by a deviation, then scale and shift by parameters.

`params["scale"]` and `params["shift"]` are f[c], for the last axis.  BatchNorm keeps running
statistics in its state.  Of 16-bit floats statistics are f32, since squares of f16 overflow at 256.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .. import numpy as fnp
from ..arguments import text_of
from ..errors import ArgumentError, ShapeError
from ..numpy.promotion import as_float
from ..numpy.reductions import widened
from ..types import computed
from .layers import Layer, explained


def normalised(x, axes, epsilon):
    """(x - mean) / sqrt(variance + epsilon) over `axes`; and the mean and variance."""
    wide = widened(as_float(x))
    mean = fnp.mean(wide, axis=axes, keepdims=True)
    centred = wide - mean
    variance = fnp.mean(centred * centred, axis=axes, keepdims=True)
    return like(x, centred / fnp.sqrt(variance + epsilon)), mean, variance


def like(x, y):
    """y in the dtype of x, where that is a 16-bit float."""
    return y if computed(x.dtype) == x.dtype else fnp.astype(y, x.dtype)


@explained
@dataclass(frozen=True)
class Norm(Layer):
    """What normalising layers share.  affine: with scale and shift."""
    _: KW_ONLY
    epsilon: float = 1e-5
    affine: bool = True

    def init(self, key, x):
        if not self.affine:
            return {}, {}
        c, dtype = (self.inputs_of(x),), self.float_of(x)
        return {"scale": fnp.ones(c, dtype), "shift": fnp.zeros(c, dtype)}, {}

    def scaled(self, params, x):
        """x · scale + shift."""
        if not self.affine:
            return x
        scale, shift = (self.parameter(params, name, x.shape[-1:]) for name in ("scale", "shift"))
        return x * scale + shift


@explained
@dataclass(frozen=True)
class BatchNorm(Norm):
    """Normalises each channel over the batch and all axes between: f[n,*s,c] → f[n,*s,c].

    In training by the statistics of the batch, which also move `state["mean"]` and
    `state["variance"]` by 1 - momentum of the way (unbiased, as in torch); else by those.
    Source: Ioffe and Szegedy 2015.

    >>> layer, x = BatchNorm(), fnp.arange(6.0).reshape(3, 2)
    >>> params, state = layer.init(None, x)
    >>> y, after = layer.apply(params, state, x, train=True)
    >>> [round(float(v), 3) for v in after["mean"]]
    [0.2, 0.3]
    """
    _: KW_ONLY
    momentum: float = 0.9

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.momentum <= 1:
            raise ArgumentError(f"BatchNorm: the momentum {self.momentum} is not in [0, 1].",
                                fix="give the share of the old statistics that is kept, as 0.9")

    def init(self, key, x):
        params, _ = super().init(key, x)
        c, dtype = (self.inputs_of(x),), computed(self.float_of(x))
        return params, {"mean": fnp.zeros(c, dtype), "variance": fnp.ones(c, dtype)}

    def apply(self, params, state, x, *, train=False, key=None):
        c = (self.inputs_of(x),)
        old, spread = (self.parameter(state, name, c, "state has") for name in ("mean", "variance"))
        if not train:
            y = like(x, (x - old) / fnp.sqrt(spread + self.epsilon))
            return self.scaled(params, y), state
        y, mean, variance = normalised(x, tuple(range(x.ndim - 1)), self.epsilon)
        count = max(1, x.size // max(1, x.shape[-1]))
        unbiased = variance * (count / max(1, count - 1))
        after = {"mean": self.moved(old, mean), "variance": self.moved(spread, unbiased)}
        return self.scaled(params, y), after

    def moved(self, old, seen):
        """The running statistic after one more batch."""
        return old * self.momentum + fnp.reshape(seen, old.shape) * (1 - self.momentum)


@explained
@dataclass(frozen=True)
class LayerNorm(Norm):
    """Normalises over the last axis: f[*s,c] → f[*s,c].   Source: Ba et al. 2016.

    >>> layer, x = LayerNorm(), fnp.array([[1.0, 3.0]])
    >>> params, _ = layer.init(None, x)
    >>> [[round(float(v), 3) for v in row] for row in layer.apply(params, {}, x)[0]]
    [[-1.0, 1.0]]
    """

    def apply(self, params, state, x, *, train=False, key=None):
        return self.scaled(params, normalised(x, -1, self.epsilon)[0]), state


@explained
@dataclass(frozen=True)
class GroupNorm(Norm):
    """Normalises each of `groups` groups of channels over all axes but the batch.

    f[n,*s,c] → f[n,*s,c].  One group per channel normalises instances.  Source: Wu and He 2018.

    >>> layer, x = GroupNorm(2), fnp.ones((1, 3, 4))
    >>> params, _ = layer.init(None, x)
    >>> layer.apply(params, {}, x)[0].shape
    (1, 3, 4)
    """
    groups: int = 32

    def inputs_of(self, x):
        c = super().inputs_of(x)
        if c % self.groups:
            raise ShapeError(f"GroupNorm: {self.groups} groups do not divide {c} channels.",
                             given=f"x: {text_of(x)}",
                             fix="GroupNorm(groups) takes the number of groups, not of channels")
        return c

    def init(self, key, x):
        self.inputs_of(x)
        return super().init(key, x)

    def apply(self, params, state, x, *, train=False, key=None):
        c = self.inputs_of(x)
        grouped = fnp.reshape(x, (*x.shape[:-1], self.groups, c // self.groups))
        axes = (*range(1, x.ndim - 1), x.ndim)
        y = fnp.reshape(normalised(grouped, axes, self.epsilon)[0], x.shape)
        return self.scaled(params, y), state


@explained
@dataclass(frozen=True)
class InstanceNorm(Norm):
    """Normalises each channel of each example over the axes between: f[n,*s,c] → f[n,*s,c].

    Source: Ulyanov et al. 2016.

    >>> layer, x = InstanceNorm(), fnp.arange(4.0).reshape(1, 2, 2)
    >>> params, _ = layer.init(None, x)
    >>> layer.apply(params, {}, x)[0].round(2).tolist()
    [[[-1.0, -1.0], [1.0, 1.0]]]
    """

    def apply(self, params, state, x, *, train=False, key=None):
        axes = tuple(range(1, x.ndim - 1))
        return self.scaled(params, normalised(x, axes, self.epsilon)[0]), state


@explained
@dataclass(frozen=True)
class RMSNorm(Norm):
    """x over the root of the mean of its squares, over the last axis, times `params["scale"]`.

    f[*s,c] → f[*s,c].   Source: Zhang and Sennrich 2019.

    >>> layer, x = RMSNorm(epsilon=0.0), fnp.array([3.0, 3.0])
    >>> layer.apply({"scale": fnp.ones(2)}, {}, x)[0].tolist()
    [1.0, 1.0]
    """

    def init(self, key, x):
        params, state = super().init(key, x)
        return {k: v for k, v in params.items() if k == "scale"}, state

    def apply(self, params, state, x, *, train=False, key=None):
        wide = widened(as_float(x))
        y = wide / fnp.sqrt(fnp.mean(wide * wide, axis=-1, keepdims=True) + self.epsilon)
        y = like(x, y)
        return (y * self.parameter(params, "scale", x.shape[-1:]) if self.affine else y), state
