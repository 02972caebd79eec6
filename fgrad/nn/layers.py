"""Layers: frozen configuration with two pure functions.

    init(key, x)                                          → (params, state)
    apply(params, state, x, *, train=False, key=None)     → (y, state)

Every layer has both, with these signatures, so there is one rule to remember.  `params` and `state`
are nested dicts with readable names; a layer without parameters has {}.  In `init`, x may be an
array or its type (`fgrad.ArrayType`): only shapes are looked at.

What defines a layer is given by position, its options by name.  All layers check what they are
given in one way: the arguments of a layer by `explained`, those of init and apply by `guarded`, and
what stands in params and state by `Layer.parameter`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import wraps
from numbers import Integral, Real
from typing import Callable

from .. import numpy as fnp
from .. import random, tree
from ..arguments import text_of
from ..errors import ArgumentError, DtypeError, FgradError, RandomKeyError, ShapeError, boundary
from ..text import noun_of
from ..transforms import eval_shape
from ..types import INEXACT_KINDS, SCALARS
from .initializers import glorot_uniform, zeros


WATCHER = ContextVar("watcher", default=None)    # is told of every layer that runs, by `run`


# ---------------------------------------------------------------------------- arguments

def is_whole(x):
    number = x.__class__ is int or isinstance(x, Integral) and not isinstance(x, bool)
    return number and x > 0


WHOLE = "a whole number of 1 or more"
KINDS = {                  # annotation of a field → (is it one?, what it is in words)
    "int":        (is_whole, WHOLE),
    "int | None": (lambda x: x is None or is_whole(x), WHOLE),
    "float":      (lambda x: x.__class__ is float or isinstance(x, Real) or hasattr(x, "dtype"),
                   "a number"),
    "bool":       (lambda x: x.__class__ is bool, "True or False"),
    "Callable":   (callable, "a function"),
    "Layer":      (lambda x: isinstance(x, Layer), "a layer"),
}


def explained(cls):
    """The dataclass of a layer; what is given to it by position, and of which kind, is checked."""
    made, names = cls.__init__, cls.__match_args__
    cls.checks = {f.name: KINDS[f.type] for f in fields(cls) if f.type in KINDS}
    options = [f"{f.name}=" for f in fields(cls) if f.kw_only and f.repr]

    @wraps(made)
    def __init__(self, *args, **rest):
        if len(args) > len(names):
            word = type(self).__name__
            only = f"only {' and '.join(names)} can" if names else "nothing can"
            raise ArgumentError(
                f"{word}: {only} be given without a name.",
                given=f"{word}({', '.join(f'{x!r:.20}' for x in args)})",
                expected=f"{word}({', '.join([*names, *options])})",
                fix=["leave out the size of the input: it is found at init", *cls.torch])
        made(self, *args, **rest)
    cls.__init__ = boundary(__init__)
    return cls


def check_input(layer, x):
    """Raises ArgumentError where x holds numbers of Python in place of arrays: a shape, a list."""
    if not isinstance(x, (tuple, list)) and x is not None:
        return
    leaves = tree.leaves(x)
    if not all(leaf.__class__ in SCALARS for leaf in leaves):
        return
    is_shape = x is not None and all(isinstance(n, int) for n in x)
    raise ArgumentError(
        f"{layer.name}: the input is an array, or its type, and not {noun_of(x)}.",
        given=f"x: {x!r:.60}", expected="as fnp.ones((8, 3))",
        fix=[f"fnp.ones({x})", f'or fgrad.ArrayType("float32", {x})'] if is_shape
        else None if x is None else "fnp.asarray(x)")


def guarded(method):
    """init or apply of a layer, which say what is wrong with an input or a key."""
    @wraps(method)
    def checked(self, *args, **rest):
        if method.__name__ == "apply":
            check_input(self, args[2] if len(args) > 2 else rest.get("x", self))
            return method(self, *args, **rest)
        check_input(self, args[1] if len(args) > 1 else rest.get("x", self))
        try:
            return method(self, *args, **rest)
        except RandomKeyError as error:
            key = args[0] if args else rest.get("key")
            if not isinstance(key, random.Key):
                error.sentence = f"{self.name}: init expects a key; use random.key(0)."
                error.fix = "params, state = layer.init(random.key(0), x)"
            raise
    return boundary(checked)


class Layer:
    """What all layers share."""

    checks = {}            # name of a field → the entry of KINDS for it
    torch = ()             # what takes torch's arguments, in words

    def __init_subclass__(cls):
        guard = guarded if cls.__module__.startswith("fgrad.") else boundary     # x may be anything
        made = {"init": guard, "apply": guard, "__init__": boundary, "__post_init__": boundary}
        for name in made.keys() & vars(cls).keys():
            setattr(cls, name, made[name](vars(cls)[name]))

    def __post_init__(self):
        given = vars(self)
        for name, (fits, words) in self.checks.items():
            if not fits(given[name]):
                raise ArgumentError(f"{type(self).__name__}: {name} is {words}.",
                                    given=f"{name}={given[name]!r:.60}")

    @property
    def name(self):
        """The word for this layer in the names of parameters."""
        return type(self).__name__.lower()

    def init(self, key, x):
        """(params, state) for inputs like x; nothing is drawn for a layer without parameters."""
        return {}, {}

    @boundary
    def __call__(self, *args, **rest):
        raise ArgumentError(
            f"{self.name}: a layer holds no parameters, so it is not called by itself.",
            given=f"{type(self).__name__}(…)(…)",
            fix=["params, state = layer.init(key, x)",
                 "y, state = layer.apply(params, state, x)"])

    def inputs_of(self, x):
        """The size of the last axis of the input.  Raises ShapeError for a scalar."""
        if not getattr(x, "shape", ()):
            raise ShapeError(f"{self.name}: the input is a scalar, and needs an axis of features.",
                             given=f"x: {x}", expected="f[*s,features]",
                             fix="x[None] is an array of one feature")
        return x.shape[-1]

    def float_of(self, x):
        """The dtype of the input, which parameters have, too.  Raises DtypeError for integers."""
        if x.dtype.kind not in INEXACT_KINDS:
            raise DtypeError(f"{self.name}: parameters are floats, of the dtype of the input.",
                             given=f"x: {text_of(x)}",
                             fix=["x.astype('float32')",
                                  "x.astype('float32') / 255, for the bytes of an image"])
        return x.dtype

    def parameter(self, params, name, shape=None, holder="parameters have"):
        """params[name], of this shape if one is given; holder="state has": an entry of the state.

        Raises ArgumentError where there is none of that name, ShapeError for another shape.
        """
        is_dict = isinstance(params, Mapping)
        found = params.get(name) if is_dict else None
        if found is None:
            held = ", ".join(map(repr, params)) or "nothing" if is_dict else noun_of(params)
            raise ArgumentError(f"{self.name}: the {holder} no {name!r}.", given=held,
                                fix="params, state = layer.init(key, x)")
        if shape is not None and getattr(found, "shape", shape) != shape:
            raise ShapeError(f"{self.name}: {name!r} has the shape {found.shape}, and {shape} is "
                             "needed.", given=f"{name}: {text_of(found)}",
                             fix="give an input like that of init, or init anew for this one")
        return found


@explained
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
    _: KW_ONLY
    bias: bool = True
    kernel_init: Callable = field(default=glorot_uniform(), repr=False)
    bias_init: Callable = field(default=zeros, repr=False)

    torch = ("nn.Linear(inputs, outputs) takes it, as in torch",)

    def init(self, key, x):
        inputs, dtype = self.inputs_of(x), self.float_of(x)
        w_key, b_key = random.split(key)
        params = {"w": self.kernel_init(w_key, (inputs, self.units), dtype)}
        if self.bias:
            params["b"] = self.bias_init(b_key, (self.units,), dtype)
        return params, {}

    def apply(self, params, state, x, *, train=False, key=None):
        w = self.parameter(params, "w")
        if self.inputs_of(x) != w.shape[0]:
            raise ShapeError(f"{self.name}: the input has {x.shape[-1]} features, the weight "
                             f"expects {w.shape[0]}.",
                             given=[f"x: {text_of(x)}", f"w: {text_of(w)}"])
        b = self.parameter(params, "b", w.shape[1:]) if self.bias else None
        y = x @ w
        return (y if b is None else y + b), state


def Linear(inputs, outputs, bias=True):
    """Dense(outputs) with torch's arguments.

    The number of inputs is checked when it is initialised.

    >>> Linear(3, 2).init(random.key(0), fnp.ones((1, 3)))[0]["w"].shape
    (3, 2)
    """
    return CheckedDense(outputs, bias=bias, inputs=inputs)


@explained
@dataclass(frozen=True)
class CheckedDense(Dense):
    """Dense that knows its number of inputs."""
    _: KW_ONLY
    inputs: int

    @property
    def name(self):
        return "linear"

    def init(self, key, x):
        if self.inputs_of(x) != self.inputs:
            raise ShapeError(
                f"Linear({self.inputs}, {self.units}): the input has {x.shape[-1]} features.")
        return super().init(key, x)


@explained
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


@explained
@dataclass(frozen=True)
class Flatten(Layer):
    """All axes but the first become one: f[n,*s] → f[n,size of s].

    >>> Flatten().apply({}, {}, fnp.ones((8, 4, 4, 2)))[0].shape
    (8, 32)
    """

    def apply(self, params, state, x, *, train=False, key=None):
        return fnp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), state


@explained
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
    _: KW_ONLY
    spatial: bool = False

    def __post_init__(self):
        super().__post_init__()
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

    An error names the layer; whoever watches is told.
    """
    own, mine = part_of(params, name, "parameters"), part_of(state, name, "state")
    watcher = WATCHER.get()
    if watcher is None:
        return named(name, layer.apply, own, mine, x, train=train, key=key)
    with watcher.inside(name, layer, own, mine, x) as done:
        found = named(name, layer.apply, own, mine, x, train=train, key=key)
        done(found[0])
    return found


def part_of(whole, name, what):
    """What stands under the name of a layer; {} where there is nothing.

    Raises ArgumentError where the whole is no dict.
    """
    if not isinstance(whole, Mapping):
        raise ArgumentError(f"the {what} of layers within another are a dict by their names, "
                            f"not {noun_of(whole)}.", given=f"{whole!r:.60}",
                            fix="params, state = layer.init(key, x)")
    return whole.get(name, {})


def named(name, function, *args, **rest):
    """function(…); an error in it says in which layer it arose."""
    try:
        return function(*args, **rest)
    except FgradError as error:
        error.sentence = f"in layer {name!r}: {error.sentence}"
        raise
