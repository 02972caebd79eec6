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
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Callable

from .. import numpy as fnp
from .. import random
from ..errors import ArgumentError, ShapeError, boundary
from ..text import noun_of
from ..transforms import eval_shape
from .initializers import glorot_uniform, zeros


WATCHER = ContextVar("watcher", default=None)    # is told of every layer that runs, by `run`


class Layer:
    """What all layers share."""

    def __init_subclass__(cls):
        for name in {"init", "apply", "__post_init__"} & vars(cls).keys():
            setattr(cls, name, boundary(vars(cls)[name]))

    @property
    def name(self):
        """The word for this layer in the names of parameters."""
        return type(self).__name__.lower()

    def init(self, key, x):
        """(params, state) for inputs like x; nothing is drawn for a layer without parameters."""
        return {}, {}

    def __call__(self, *args, **rest):
        raise ArgumentError(
            f"{self.name}: a layer holds no parameters, so it is not called by itself.",
            given=f"{type(self).__name__}(…)(…)",
            fix=["params, state = layer.init(key, x)",
                 "y, state = layer.apply(params, state, x)"])

    def inputs_of(self, x):
        """The size of the last axis of the input.  Raises ShapeError for a scalar."""
        if not x.shape:
            raise ShapeError(f"{self.name}: the input is a scalar, and needs an axis of features.",
                             given=f"x: {x}", expected="f[*s,features]",
                             fix="x[None] is an array of one feature")
        return x.shape[-1]

    def parameter(self, params, name):
        """params[name].  Raises ArgumentError where there is none of that name."""
        if name not in params:
            raise ArgumentError(f"{self.name}: the parameters have no {name!r}.",
                                given=f"params with {', '.join(map(repr, params)) or 'nothing'}",
                                fix="params, state = layer.init(key, x)")
        return params[name]


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
        params = {"w": self.kernel_init(w_key, (self.inputs_of(x), self.units), x.dtype)}
        if self.bias:
            params["b"] = self.bias_init(b_key, (self.units,), x.dtype)
        return params, {}

    def apply(self, params, state, x, *, train=False, key=None):
        w = self.parameter(params, "w")
        if self.inputs_of(x) != w.shape[0]:
            raise ShapeError(f"{self.name}: the input has {x.shape[-1]} features, the weight "
                             f"expects {w.shape[0]}.",
                             given=[f"x: {x.type}", f"w: {w.type}"])
        y = x @ w
        return (y + self.parameter(params, "b") if self.bias else y), state


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
        if self.inputs_of(x) != self.inputs:
            raise ShapeError(
                f"Linear({self.inputs}, {self.units}): the input has {x.shape[-1]} features.")
        return super().init(key, x)


@dataclass(frozen=True, repr=False)
class Activation(Layer):
    """A function of the input: Activation(nn.relu).

    >>> Activation(fnp.abs).apply({}, {}, fnp.array([-1.0, 2.0]))[0].tolist()
    [1.0, 2.0]
    """
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
    """All axes but the first become one: f[n,*s] → f[n,size of s].

    >>> Flatten().apply({}, {}, fnp.ones((8, 4, 4, 2)))[0].shape
    (8, 32)
    """

    def apply(self, params, state, x, *, train=False, key=None):
        return fnp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), state


@dataclass(frozen=True)
class Dropout(Layer):
    """In training, each element is 0 with probability `rate`, the others are x / (1 - rate).

    spatial: whole channels go at once, of f[n,*s,c] (Tompson et al. 2015).
    Source: Srivastava et al. 2014.  Raises ArgumentError when it trains without a key.

    >>> layer, x = Dropout(0.5), fnp.ones(4)
    >>> out, _ = layer.apply({}, {}, x, train=True, key=random.key(0))
    >>> sorted(set(out.tolist())), layer.apply({}, {}, x)[0].tolist()
    ([0.0, 2.0], [1.0, 1.0, 1.0, 1.0])
    """
    rate: float = 0.5
    spatial: bool = False

    def __post_init__(self):
        if not 0 <= self.rate < 1:
            raise ArgumentError(f"Dropout: the rate {self.rate} is not in [0, 1).")

    def apply(self, params, state, x, *, train=False, key=None):
        if not train or self.rate == 0:
            return x, state
        if key is None:
            raise ArgumentError("Dropout needs a random key in training.",
                                fix="pass key=fgrad.random.key(…) to apply, a new one each step")
        shape = x.shape
        if self.spatial:
            shape = (x.shape[0], *[1] * (x.ndim - 2), x.shape[-1])
        keep = random.bernoulli(key, 1 - self.rate, shape)
        return fnp.where(keep, x / (1 - self.rate), 0.0), state


def as_layer(x):
    """A layer; a function stands for Activation(function).

    Raises ArgumentError for what is neither.
    """
    if isinstance(x, Layer):
        return x
    is_class = isinstance(x, type) and issubclass(x, Layer)
    if is_class or not callable(x):
        several = isinstance(x, (list, tuple))
        what = f"the class {x.__name__}" if is_class else noun_of(x)
        fix = f"{x.__name__}(…), with its arguments" if is_class else None
        raise ArgumentError(f"a model is made of layers and functions, not of {what}.",
                            given=f"{x!r:.60}", expected="layers and functions",
                            fix="Sequential(*layers)" if several else fix)
    return Activation(x)


def numbered(layers):
    """A name for each layer: its word, and which of that word it is."""
    counts, names = Counter(), []
    for layer in layers:
        counts[layer.name] += 1
        names.append(f"{layer.name}{counts[layer.name]}")
    return tuple(names)


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
        self.layers = tuple(map(as_layer, layers))
        self.names = numbered(self.layers)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self.layers))})"

    def __eq__(self, other):
        return type(other) is type(self) and self.layers == other.layers

    def __hash__(self):
        return hash(self.layers)

    def init(self, key, x):
        params, states = {}, {}
        keys = random.split(key, max(1, len(self.layers)))
        for layer, name, layer_key in zip(self.layers, self.names, keys):
            params[name], states[name] = started(name, layer, layer_key, x)
            x = output_type(name, layer, params[name], states[name], x)
        return filled(params), filled(states)

    def apply(self, params, state, x, *, train=False, key=None):
        count = len(self.layers)
        keys = [None] * count if key is None else random.split(key, max(1, count))
        after = {}
        for layer, name, layer_key in zip(self.layers, self.names, keys):
            x, after[name] = run(name, layer, params, state, x, train, layer_key)
        return x, filled(after)


def filled(parts):
    """The entries that are not empty: layers without parameters, or without state, have none."""
    return {name: part for name, part in parts.items() if part}


def started(name, layer, key, x):
    """(params, state) of a layer within another."""
    return named(name, layer.init, key, x)


def output_type(name, layer, params, state, x):
    """The type of what a layer within another gives."""
    return named(name, eval_shape, lambda p, s, v: layer.apply(p, s, v)[0], params, state, x)


def run(name, layer, params, state, x, train, key):
    """(y, new state) of the layer called `name` within another, from the other's params and state.

    A shape error names the layer; whoever watches is told.
    """
    own, mine = params.get(name, {}), state.get(name, {})
    watcher = WATCHER.get()
    if watcher is None:
        return named(name, layer.apply, own, mine, x, train=train, key=key)
    with watcher.inside(name, layer, own, mine, x) as done:
        found = named(name, layer.apply, own, mine, x, train=train, key=key)
        done(found[0])
    return found


def named(name, function, *args, **rest):
    """function(…); a shape error in it says in which layer it arose."""
    try:
        return function(*args, **rest)
    except ShapeError as error:
        error.sentence = f"in layer {name!r}: {error.sentence}"
        raise
