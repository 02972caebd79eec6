"""Layers made of layers: around a sum, side by side, with channels first, a function by name.

Relies on `layers`, whose Sequential is the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from .. import numpy as fnp
from .. import random
from ..errors import ArgumentError, ShapeError
from .layers import (
    Layer, Sequential, as_layer, explained, filled, output_type, run, started)


@dataclass(frozen=True, init=False)
class Residual(Layer):
    """layer(x) + shortcut(x); without a shortcut, layer(x) + x (He et al. 2016).

    Raises ShapeError where the two have different shapes.

    >>> from fgrad.nn import Dense
    >>> block, x = Residual(Dense(3)), fnp.ones((2, 3))
    >>> params, state = block.init(random.key(0), x)
    >>> sorted(params), block.apply(params, state, x)[0].shape
    (['layer'], (2, 3))
    """
    layer: Layer
    shortcut: Layer | None = None

    def __init__(self, layer, shortcut=None):
        object.__setattr__(self, "layer", as_layer(layer))
        object.__setattr__(self, "shortcut", None if shortcut is None else as_layer(shortcut))

    @property
    def parts(self):
        """name → layer."""
        return filled({"layer": self.layer, "shortcut": self.shortcut})

    def init(self, key, x):
        keys = random.split(key)
        found = {name: started(name, layer, k, x)
                 for (name, layer), k in zip(self.parts.items(), keys)}
        return (filled({name: params for name, (params, _) in found.items()}),
                filled({name: state for name, (_, state) in found.items()}))

    def apply(self, params, state, x, *, train=False, key=None):
        keys = (None, None) if key is None else random.split(key)
        after, outs = {}, {"shortcut": x}
        for (name, layer), k in zip(self.parts.items(), keys):
            outs[name], after[name] = run(name, layer, params, state, x, train, k)
        y, side = outs["layer"], outs["shortcut"]
        if y.shape != side.shape:
            raise ShapeError("Residual: the layer and the shortcut give different shapes.",
                             given=[f"layer: {y.type}", f"shortcut: {side.type}"],
                             fix="Residual(layer, shortcut=…) with a layer that gives this shape")
        return y + side, filled(after)


JOINS = {"concatenate": lambda ys: fnp.concatenate(ys, axis=-1), "add": sum,
         "stack": lambda ys: fnp.stack(ys, axis=-1), "tuple": tuple}


class Parallel(Sequential):
    """Layers side by side, each with the same input; what they give is joined.

    join: "concatenate" along the last axis, "add", "stack" on a new last axis, or "tuple".

    >>> from fgrad.nn import Dense
    >>> model, x = Parallel(Dense(2), Dense(3)), fnp.ones((1, 4))
    >>> params, state = model.init(random.key(0), x)
    >>> sorted(params), model.apply(params, state, x)[0].shape
    (['dense1', 'dense2'], (1, 5))
    """

    def __init__(self, *layers, join="concatenate"):
        super().__init__(*layers)
        if join not in JOINS or not layers:
            raise ArgumentError("Parallel needs layers, and a way to join what they give.",
                                given=f"{len(layers)} layers, join={join!r}",
                                expected=f"join is one of {', '.join(JOINS)}")
        self.join = join

    def __eq__(self, other):
        return super().__eq__(other) and self.join == other.join

    __hash__ = Sequential.__hash__

    def init(self, key, x):
        keys = random.split(key, len(self.layers))
        found = [started(name, layer, k, x)
                 for layer, name, k in zip(self.layers, self.names, keys)]
        params, states = zip(*found)
        return filled(dict(zip(self.names, params))), filled(dict(zip(self.names, states)))

    def apply(self, params, state, x, *, train=False, key=None):
        count = len(self.layers)
        keys = [None] * count if key is None else random.split(key, count)
        outs, after = [], {}
        for layer, name, k in zip(self.layers, self.names, keys):
            y, after[name] = run(name, layer, params, state, x, train, k)
            outs.append(y)
        return JOINS[self.join](outs), filled(after)


@explained
@dataclass(frozen=True)
class Lambda(Layer):
    """A function of the input, by a name of your own: Lambda(lambda x: x[:, 0], "first").

    >>> Lambda(lambda x: x[:, 0], "first").apply({}, {}, fnp.ones((2, 3)))[0].shape
    (2,)
    """
    function: Callable
    word: str = "lambda"

    @property
    def name(self):
        return self.word

    def apply(self, params, state, x, *, train=False, key=None):
        return self.function(x), state


@explained
@dataclass(frozen=True)
class ChannelsFirst(Layer):
    """A layer, or a whole model, for images with channels first: f[n,c,*s] → f[n,d,*t].

    Inside, channels are last, as everywhere; parameters are the same.  A result of two axes is left
    as it is.

    >>> from fgrad.nn import Conv
    >>> layer, x = ChannelsFirst(Conv(8, (3, 3))), fnp.ones((1, 2, 6, 5))
    >>> params, state = layer.init(random.key(0), x)
    >>> params["w"].shape, layer.apply(params, state, x)[0].shape
    ((3, 3, 2, 8), (1, 8, 6, 5))
    """
    layer: Layer

    @property
    def name(self):
        return self.layer.name

    def init(self, key, x):
        return self.layer.init(key, output_type("layout", Lambda(channels_last), {}, {}, x))

    def apply(self, params, state, x, *, train=False, key=None):
        y, state = self.layer.apply(params, state, channels_last(x), train=train, key=key)
        return (fnp.moveaxis(y, -1, 1) if y.ndim > 2 else y), state


def channels_last(x):
    return fnp.moveaxis(x, 1, -1)
