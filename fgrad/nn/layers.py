"""Layers: frozen configuration with two pure functions.

    init(key, x)                                          → (params, state)
    apply(params, state, x, *, train=False, key=None)     → (y, state)

Every layer has both, with these signatures, so there is one rule to remember.  `params` and `state`
are nested dicts with readable names; a layer without parameters has {}.  In `init`, x may be an
array or its type (`fgrad.ArrayType`): only shapes are looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable

from .. import numpy as fnp
from .. import random
from ..errors import ArgumentError, ShapeError
from ..transforms import eval_shape
from .init import glorot_uniform, zeros


class Layer:
    """What all layers share."""

    @property
    def name(self):
        """The word for this layer in the names of parameters."""
        return type(self).__name__.lower()

    def init(self, key, x):
        """(params, state) for inputs like x; nothing is drawn for a layer without parameters."""
        return {}, {}


@dataclass(frozen=True)
class Dense(Layer):
    """x @ w + b over the last axis: f[*s,in] → f[*s,units].

    `params["w"]` is f[in,units], `params["b"]` f[units].

    >>> layer = Dense(2)
    >>> params, state = layer.init(random.key(0), fnp.ones((1, 3)))
    >>> layer.apply(params, state, fnp.ones((1, 3)))[0].shape
    (1, 2)
    """
    units: int
    bias: bool = True
    kernel_init: Callable = field(default=glorot_uniform(), repr=False)
    bias_init: Callable = field(default=zeros, repr=False)

    def init(self, key, x):
        w_key, b_key = random.split(key)
        params = {"w": self.kernel_init(w_key, (x.shape[-1], self.units), x.dtype)}
        if self.bias:
            params["b"] = self.bias_init(b_key, (self.units,), x.dtype)
        return params, {}

    def apply(self, params, state, x, *, train=False, key=None):
        w = params["w"]
        if x.shape[-1] != w.shape[0]:
            raise ShapeError(f"{self.name}: the input has {x.shape[-1]} features, the weight "
                             f"expects {w.shape[0]}.",
                             given=[f"x: {x.type}", f"w: {w.type}"])
        y = x @ w
        return (y + params["b"] if self.bias else y), state


def Linear(inputs, outputs, bias=True):
    """Dense(outputs) with torch's arguments.

    The number of inputs is checked when it is initialised.

    >>> Linear(3, 2).init(random.key(0), fnp.ones((1, 3)))[0]["w"].shape
    (3, 2)
    """
    return CheckedDense(outputs, bias, inputs=inputs)


@dataclass(frozen=True)
class CheckedDense(Dense):
    """Dense that knows its number of inputs."""
    inputs: int = 0

    @property
    def name(self):
        return "linear"

    def init(self, key, x):
        if x.shape[-1] != self.inputs:
            raise ShapeError(
                f"Linear({self.inputs}, {self.units}): the input has {x.shape[-1]} features.")
        return super().init(key, x)


@dataclass(frozen=True, repr=False)
class Activation(Layer):
    """A function of the input: Activation(nn.relu)."""
    function: Callable

    def __repr__(self):
        return self.name

    @property
    def name(self):
        return self.function.__name__

    def apply(self, params, state, x, *, train=False, key=None):
        return self.function(x), state


@dataclass(frozen=True)
class Flatten(Layer):
    """All axes but the first become one: f[n,*s] → f[n,size of s]."""

    def apply(self, params, state, x, *, train=False, key=None):
        return fnp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), state


@dataclass(frozen=True)
class Dropout(Layer):
    """In training, each element is 0 with probability `rate`, the others are x / (1 - rate).

    Source: Srivastava et al. 2014.  Raises ArgumentError when it trains without a key.
    """
    rate: float = 0.5

    def __post_init__(self):
        if not 0 <= self.rate < 1:
            raise ArgumentError(f"Dropout: the rate {self.rate} is not in [0, 1).")

    def apply(self, params, state, x, *, train=False, key=None):
        if not train or self.rate == 0:
            return x, state
        if key is None:
            raise ArgumentError("Dropout needs a random key in training.",
                                fix="pass key=fgrad.random.key(…) to apply, a new one each step")
        keep = random.bernoulli(key, 1 - self.rate, x.shape)
        return fnp.where(keep, x / (1 - self.rate), 0.0), state


class Sequential(Layer):
    """Layers one after the other.  A function stands for Activation(function).

    Its parameters are named by layer and number: `params["dense1"]["w"]`.

    >>> model = Sequential(Dense(4), fnp.tanh, Dense(1))
    >>> model
    Sequential(Dense(units=4, bias=True), tanh, Dense(units=1, bias=True))
    >>> params, state = model.init(random.key(0), fnp.ones((2, 3)))
    >>> sorted(params)
    ['dense1', 'dense2']
    >>> model.apply(params, state, fnp.ones((2, 3)))[0].shape
    (2, 1)
    """

    def __init__(self, *layers):
        self.layers = tuple(x if isinstance(x, Layer) else Activation(x) for x in layers)
        counts, names = Counter(), []
        for layer in self.layers:
            counts[layer.name] += 1
            names.append(f"{layer.name}{counts[layer.name]}")
        self.names = tuple(names)

    def __repr__(self):
        return f"Sequential({', '.join(map(repr, self.layers))})"

    def __eq__(self, other):
        return isinstance(other, Sequential) and self.layers == other.layers

    def __hash__(self):
        return hash(self.layers)

    def init(self, key, x):
        params, states = {}, {}
        keys = random.split(key, max(1, len(self.layers)))
        for layer, name, layer_key in zip(self.layers, self.names, keys):
            params[name], states[name] = layer.init(layer_key, x)
            x = named(name, eval_shape, lambda p, s, v, run=layer: run.apply(p, s, v)[0],
                      params[name], states[name], x)
        return {k: v for k, v in params.items() if v}, {k: v for k, v in states.items() if v}

    def apply(self, params, state, x, *, train=False, key=None):
        count = len(self.layers)
        keys = [None] * count if key is None else random.split(key, max(1, count))
        after = {}
        for layer, name, layer_key in zip(self.layers, self.names, keys):
            x, new = named(name, layer.apply, params.get(name, {}), state.get(name, {}), x,
                           train=train, key=layer_key)
            if new:
                after[name] = new
        return x, after


def named(name, function, *args, **rest):
    """function(…); a shape error in it says in which layer it arose."""
    try:
        return function(*args, **rest)
    except ShapeError as error:
        error.sentence = f"in layer {name!r}: {error.sentence}"
        raise
