"""Recurrent layers: a cell that goes over the time of a sequence, compiled to one native loop.

f[n,time,in] → f[n,time,units], or the last step's f[n,units].  Parameters are named as torch's,
transposed: "wx" f[in,gates·units] and "wh" f[units,gates·units] with biases "bx", "bh".  The last
state can be given on: `apply(…, start=…)`, and comes back with `run`.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Callable

from .. import numpy as fnp
from .. import random
from ..arguments import text_of
from ..control import scan
from ..errors import ArgumentError, ShapeError
from .activations import sigmoid
from .layers import Layer, explained


def uniform_by_units(key, shape, dtype="float32"):
    """Uniform between ±1/√units, as torch draws all recurrent weights; shape: (…, units)."""
    limit = 1 / math.sqrt(max(1, shape[-1]))
    return random.uniform(key, shape, dtype, -limit, limit)


@explained
@dataclass(frozen=True)
class Recurrent(Layer):
    """What recurrent layers share.

    sequence: return every step, else the last one.  backwards: from the last step to the first.
    """
    units: int
    _: KW_ONLY
    sequence: bool = True
    backwards: bool = False
    weight_init: Callable = field(default=uniform_by_units, repr=False)

    gates = 1                                    # blocks of `units` columns in the weights

    def init(self, key, x):
        inputs, dtype = self.inputs_of(x), self.float_of(x)
        keys, blocks = random.split(key, 4), (self.gates, self.units)

        def drawn(k, *rows):
            w = self.weight_init(k, (*rows, *blocks), dtype)
            return fnp.reshape(w, (*rows, self.gates * self.units))
        return {"wx": drawn(keys[0], inputs), "wh": drawn(keys[1], self.units),
                "bx": drawn(keys[2]), "bh": drawn(keys[3])}, {}

    def begin(self, x):
        """The state before the first step, zeros, of the dtype of x."""
        return fnp.zeros((x.shape[0], self.units), x.dtype)

    def run(self, params, x, start=None):
        """(all outputs f[n,time,units], the last state)."""
        wx, wh, bx, bh = (self.parameter(params, name) for name in ("wx", "wh", "bx", "bh"))
        if x.ndim != 3 or x.shape[-1] != wx.shape[0]:
            raise ShapeError(f"{type(self).__name__}: the weight expects {wx.shape[0]} features.",
                             given=f"x: {text_of(x)}", expected=f"[batch, time, {wx.shape[0]}]")
        inputs = fnp.moveaxis(x @ wx + bx, 1, 0)

        def step(state, given):
            hidden = self.hidden(state) @ wh + bh
            state = self.cell(state, given, hidden)
            return state, self.hidden(state)
        start = self.begin(x.astype(inputs.dtype)) if start is None else start
        last, outputs = scan(step, start, inputs, reverse=self.backwards)
        return fnp.moveaxis(outputs, 0, 1), last

    def hidden(self, state):
        """What of the state is given out and enters the next step."""
        return state

    def apply(self, params, state, x, *, train=False, key=None, start=None):
        outputs, last = self.run(params, x, start)
        return (outputs if self.sequence else self.hidden(last)), state


@explained
@dataclass(frozen=True)
class RNN(Recurrent):
    """h ← activation(x · wx + bx + h · wh + bh)   (Elman 1990).

    >>> layer, x = RNN(4), fnp.ones((2, 5, 3))
    >>> params, state = layer.init(random.key(0), x)
    >>> layer.apply(params, state, x)[0].shape
    (2, 5, 4)
    """
    _: KW_ONLY
    activation: Callable = fnp.tanh

    def cell(self, state, given, hidden):
        return self.activation(given + hidden)


class GRU(Recurrent):
    """Gates r, z and a candidate n: h ← (1 - z) · n + z · h, with n = tanh(x_n + r · h_n).

    Source: Cho et al. 2014; the reset gate goes after the product, as in torch.

    >>> layer, x = GRU(4, sequence=False), fnp.ones((2, 5, 3))
    >>> params, state = layer.init(random.key(0), x)
    >>> layer.apply(params, state, x)[0].shape
    (2, 4)
    """
    gates = 3

    def cell(self, state, given, hidden):
        (xr, xz, xn), (hr, hz, hn) = fnp.split(given, 3, axis=-1), fnp.split(hidden, 3, axis=-1)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        return (1 - z) * fnp.tanh(xn + r * hn) + z * state


class LSTM(Recurrent):
    """Gates i, f, g, o in this order; c ← f · c + i · g, h = o · tanh(c); the state is (h, c).

    Source: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.

    >>> layer, x = LSTM(4), fnp.ones((2, 5, 3))
    >>> params, state = layer.init(random.key(0), x)
    >>> outputs, (h, c) = layer.run(params, x)
    >>> outputs.shape, c.shape
    ((2, 5, 4), (2, 4))
    """
    gates = 4

    def begin(self, x):
        zeros = super().begin(x)
        return zeros, zeros

    def hidden(self, state):
        return state[0]

    def cell(self, state, given, hidden):
        i, f, g, o = fnp.split(given + hidden, 4, axis=-1)
        c = sigmoid(f) * state[1] + sigmoid(i) * fnp.tanh(g)
        return sigmoid(o) * fnp.tanh(c), c


@explained
@dataclass(frozen=True)
class Bidirectional(Layer):
    """A recurrent layer and its mirror image, side by side: f[n,time,in] → f[n,time,2·units].

    >>> layer, x = Bidirectional(GRU(4)), fnp.ones((2, 5, 3))
    >>> params, state = layer.init(random.key(0), x)
    >>> sorted(params), layer.apply(params, state, x)[0].shape
    (['backwards', 'forwards'], (2, 5, 8))
    """
    layer: Recurrent

    def __post_init__(self):
        if not isinstance(self.layer, Recurrent):
            raise ArgumentError("Bidirectional goes both ways with a recurrent layer.",
                                given=f"{self.layer!r:.60}", fix="Bidirectional(GRU(64))")

    @property
    def directions(self):
        """name → layer."""
        mirrored = {**vars(self.layer), "backwards": not self.layer.backwards}
        return {"forwards": self.layer, "backwards": type(self.layer)(**mirrored)}

    def init(self, key, x):
        keys = random.split(key)
        return {name: layer.init(k, x)[0]
                for (name, layer), k in zip(self.directions.items(), keys)}, {}

    def apply(self, params, state, x, *, train=False, key=None):
        found = [layer.apply(self.parameter(params, name), {}, x)[0]
                 for name, layer in self.directions.items()]
        return fnp.concatenate(found, axis=-1), state
