"""Attention, and what transformers put around it: embeddings, positions, blocks, a cache.

    y, state = MultiHeadAttention(heads=8).apply(params, state, x, mask=causal(128))

A layer that is given a cache as its state attends to what the cache holds, and returns the cache
with its own keys and values in it: generation sees one token at a time.  Sequences are
f[batch,time,features].  Source: Vaswani et al. 2017.
"""

from __future__ import annotations

import functools
import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Callable

from .. import numpy as fnp
from .. import random
from ..arguments import text_of
from ..core import as_value
from ..custom import stop_gradient
from ..errors import ArgumentError, ShapeError
from ..lax import dynamic_slice_in_dim, dynamic_update_slice
from ..numpy.promotion import mask_of
from ..numpy.reductions import widened
from .activations import gelu, logsumexp, softmax
from .initializers import glorot_uniform, normal
from .layers import Dense, Dropout, Layer, explained
from .norm import LayerNorm


def dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, is_causal=False,
                          query_seq_lengths=None, key_value_seq_lengths=None,
                          local_window_size=None, return_residual=False):
    """softmax(query · keyᵀ · scale + bias) · value, per head; jax.nn's function of that name.

    query: f[*s,time,heads,size], key, value: f[*s,seen,groups,size] → f[*s,time,heads,size].
    bias: added to the scores f[*s,heads,time,seen]; mask: True where a score counts.  scale:
    1 / √size unless given.  is_causal: query t sees the keys up to t.  …_seq_lengths: i[*s], how
    many positions are there; queries beyond give zeros.  local_window_size: how far a query sees
    to the left and right, a pair or a number.  return_residual: also the logarithms of the sums of
    exponentials, f[*s,time,heads], which have no gradient.  A query that may see nothing gives
    zeros.  Scores of 16-bit inputs are f32.  Fewer groups than heads share keys among heads
    (Ainslie et al. 2023).
    Raises ShapeError where the heads do not come out even.

    >>> q = fnp.ones((1, 3, 2, 4))
    >>> dot_product_attention(q, q, q, is_causal=True).shape
    (1, 3, 2, 4)
    """
    (time, heads, size), (seen, groups, _) = fnp.shape(query)[-3:], fnp.shape(key)[-3:]
    if groups == 0 or heads % groups or fnp.shape(value)[-2] != groups:
        raise ShapeError(f"{heads} heads cannot share {groups} groups of keys and "
                         f"{fnp.shape(value)[-2]} of values.",
                         given=[f"query of shape {fnp.shape(query)}",
                                f"key of shape {fnp.shape(key)}"])
    if groups != heads:
        key, value = (fnp.repeat(a, heads // groups, axis=-2) for a in (key, value))
    scores = fnp.einsum("...thd,...shd->...hts", widened(as_value(query)), widened(as_value(key)))
    scores = scores * (1 / math.sqrt(size) if scale is None else scale)
    scores = scores if bias is None else scores + bias
    present = lasting(query_seq_lengths, time)
    rules = [None if mask is None else mask_of(mask, "mask"),
             causal(time, seen) if is_causal else None, window(time, seen, local_window_size),
             None if present is None else present[..., None, :, None],
             None if key_value_seq_lengths is None
             else lasting(key_value_seq_lengths, seen)[..., None, None, :]]
    visible = functools.reduce(fnp.logical_and, [r for r in rules if r is not None] or [True])
    visible = None if visible is True else visible
    shares = softmax(scores, where=visible)
    out = fnp.einsum("...hts,...shd->...thd", shares.astype(value.dtype), value)
    if not return_residual:
        return out
    sums = stop_gradient(logsumexp(scores, axis=-1, where=visible)).astype(query.dtype)
    return out, fnp.swapaxes(sums, -1, -2)


def lasting(lengths, time):
    """b[*s,time]: True for positions below the lengths i[*s]; None where there are none."""
    return None if lengths is None else fnp.arange(time) < fnp.asarray(lengths)[..., None]


def causal(time, seen=None):
    """A mask b[time,seen]: True where a query may see a key, which is not behind it.

    Query 0 and key 0 are at one place, as in jax and torch.

    >>> causal(2).tolist()
    [[True, False], [True, True]]
    """
    return fnp.arange(time if seen is None else seen) <= fnp.arange(time)[:, None]


def window(time, seen, size):
    """A mask b[time,seen]: True at most `size` places to the left and right; None for no size."""
    if size is None:
        return None
    left, right = (size, size) if isinstance(size, int) else size
    apart = fnp.arange(seen) - fnp.arange(time)[:, None]
    return (apart >= -left) & (apart <= right)


# ---------------------------------------------------------------------------- positions

def sinusoidal_positions(time, features, base=10_000.0):
    """f32[time,features]: sines in the first half of the features, cosines in the second.

    Wavelengths grow from 2π to base · 2π (Vaswani et al. 2017).  Raises ShapeError for an odd
    number of features.

    >>> sinusoidal_positions(2, 4).round(3).tolist()[0]
    [0.0, 0.0, 1.0, 1.0]
    """
    angles = angles_of(fnp.arange(time), features, base)
    return fnp.concatenate([fnp.sin(angles), fnp.cos(angles)], axis=-1)


def angles_of(positions, features, base):
    """f32[*s,features/2]: each position in turns of each wavelength."""
    if features % 2:
        raise ShapeError(f"positions need an even number of features, not {features}.")
    rates = base ** (-fnp.arange(features // 2) / (features // 2))
    return positions[..., None].astype("float32") * rates


def rotary(x, positions=None, base=10_000.0):
    """x with pairs of features turned by their position (RoPE, Su et al. 2021).

    x: f[*s,time,heads,size]; positions: i[time], 0, 1, … unless given.  Feature k is paired with
    k + size/2.  A product of two turned vectors depends on the difference of their positions only.

    >>> x = fnp.ones((1, 2, 1, 4))
    >>> bool((rotary(x)[0, 0] == x[0, 0]).all())
    True
    """
    time, _, size = fnp.shape(x)[-3:]
    positions = fnp.arange(time) if positions is None else fnp.asarray(positions)
    angles = angles_of(positions, size, base)[..., None, :]
    cos, sin = fnp.cos(angles).astype(x.dtype), fnp.sin(angles).astype(x.dtype)
    a, b = fnp.split(x, 2, axis=-1)
    return fnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


# ---------------------------------------------------------------------------- layers

@explained
@dataclass(frozen=True)
class Embedding(Layer):
    """Rows of a table: i[*s] → f[*s,features].   `params["table"]` is f[words,features].

    Numbers below 0 count from the end, -1 is the last row.  Others outside 0..words give an
    IndexError where they are known, and the nearest row in compiled code.  Raises ArgumentError for
    inputs that are not integers.

    >>> layer = Embedding(10, 4)
    >>> params, state = layer.init(random.key(0), fnp.array([1, 2]))
    >>> layer.apply(params, state, fnp.array([[1, 2, 3]]))[0].shape
    (1, 3, 4)
    """
    words: int
    features: int
    _: KW_ONLY
    table_init: Callable = field(default=normal(1.0), repr=False)

    def init(self, key, x):
        return {"table": self.table_init(key, (self.words, self.features), "float32")}, {}

    def apply(self, params, state, x, *, train=False, key=None):
        if x.dtype.kind not in "iu":
            raise ArgumentError("Embedding: the input is numbers of rows, and needs integers.",
                                given=f"x: {text_of(x)}", fix="tokens.astype('int32')")
        return self.parameter(params, "table")[x], state

    def attend(self, params, x):
        """Scores of all words, by the same table: f[*s,features] → f[*s,words]."""
        return x @ self.parameter(params, "table").T


@explained
@dataclass(frozen=True)
class Positions(Layer):
    """Adds a learned vector to each position: f[n,time,features] → the same.

    `params["positions"]` is f[most,features]; raises ShapeError for more than `most` positions.

    >>> layer = Positions(8)
    >>> params, _ = layer.init(random.key(0), fnp.ones((1, 5, 4)))
    >>> params["positions"].shape
    (8, 4)
    """
    most: int
    _: KW_ONLY
    init_positions: Callable = field(default=normal(0.02), repr=False)

    def init(self, key, x):
        shape = self.most, self.inputs_of(x)
        return {"positions": self.init_positions(key, shape, self.float_of(x))}, {}

    def cache(self, batch, time, x):
        """A state for `apply` that counts the positions seen, so that one can follow another."""
        return {"seen": fnp.zeros((), "int32")}

    def apply(self, params, state, x, *, train=False, key=None):
        time, vectors = x.shape[-2], self.parameter(params, "positions", (self.most, x.shape[-1]))
        if time > self.most:
            raise ShapeError(f"Positions: {time} positions, and there are {self.most}.",
                             given=f"x: {text_of(x)}")
        if "seen" not in state:
            return x + vectors[:time], state
        seen = state["seen"]
        rows = dynamic_slice_in_dim(vectors, seen, time, 0)
        fits = seen + time <= self.most          # beyond, compiled code cannot raise: NaN
        return x + fnp.where(fits, rows, math.nan), {"seen": seen + time}


@explained
@dataclass(frozen=True)
class MultiHeadAttention(Layer):
    """Attention with several heads: f[n,time,in] → f[n,time,features].

    Keys and values come from the sequence itself, or from `memory` (cross-attention).  features: as
    the input has, unless given; groups: of heads that share keys and values.  rotary: positions by
    turning queries and keys.  With a state made by `cache`, keys and values are kept there.
    Parameters: "query", "key", "value", "out", each a Dense.

    >>> layer, x = MultiHeadAttention(heads=2, is_causal=True), fnp.ones((1, 3, 8))
    >>> params, state = layer.init(random.key(0), x)
    >>> layer.apply(params, state, x)[0].shape
    (1, 3, 8)
    """
    heads: int
    _: KW_ONLY
    features: int | None = None
    groups: int | None = None
    is_causal: bool = False
    rotary: bool = False
    bias: bool = True
    dropout: float = 0.0
    kernel_init: Callable = field(default=glorot_uniform(), repr=False)

    def sizes(self, x):
        """(features, of them per head, groups)."""
        features = self.features or x.shape[-1]
        groups = self.groups or self.heads
        if features % self.heads or self.heads % groups:
            raise ShapeError(f"MultiHeadAttention: {self.heads} heads do not divide {features} "
                             f"features, or {groups} groups not the heads.")
        return features, features // self.heads, groups

    def parts(self, x):
        """name → the Dense of that name."""
        features, size, groups = self.sizes(x)
        units = {"query": features, "key": groups * size, "value": groups * size, "out": features}
        return {name: Dense(n, bias=self.bias, kernel_init=self.kernel_init)
                for name, n in units.items()}

    def init(self, key, x):
        features, _, _ = self.sizes(x)
        params = {}
        for (name, dense), k in zip(self.parts(x).items(), random.split(key, 4)):
            inner = fnp.zeros((1, features), x.dtype) if name == "out" else x
            params[name] = dense.init(k, inner)[0]
        return params, {}

    def cache(self, batch, time, x):
        """An empty cache for `time` positions, as state for `apply`; x: any input, for its type.

        >>> layer, x = MultiHeadAttention(heads=2, is_causal=True), fnp.ones((1, 1, 8))
        >>> sorted(layer.cache(1, 16, x))
        ['key', 'seen', 'value']

        Raises ArgumentError for a layer that is not causal.
        """
        if not self.is_causal:
            raise ArgumentError("MultiHeadAttention: what has been seen can be kept only where no "
                                "position sees a later one.", fix="is_causal=True")
        _, size, groups = self.sizes(x)
        empty = fnp.zeros((batch, time, groups, size), x.dtype)
        return {"key": empty, "value": empty, "seen": fnp.zeros((), "int32")}

    def apply(self, params, state, x, *, train=False, key=None, memory=None, mask=None):
        _, size, groups = self.sizes(x)
        parts, source = self.parts(x), x if memory is None else memory

        def heads(name, given, count):
            y, _ = parts[name].apply(self.parameter(params, name), {}, given)
            return fnp.reshape(y, (*y.shape[:-1], count, size))
        q = heads("query", x, self.heads)
        k, v = heads("key", source, groups), heads("value", source, groups)
        start = state["seen"] if "seen" in state else 0
        if self.rotary:
            q = rotary(q, start + fnp.arange(q.shape[1]))
            k = rotary(k, start + fnp.arange(k.shape[1]))
        if "seen" in state:
            k, v, visible, state = with_cache(k, v, state, q.shape[1])
            mask = visible if mask is None else mask_of(mask, "mask") & visible
        causal_here = self.is_causal and "seen" not in state
        y = dot_product_attention(q, k, v, mask=mask, is_causal=causal_here)
        out = self.parameter(params, "out")
        y, _ = parts["out"].apply(out, {}, fnp.reshape(y, (*y.shape[:-2], self.heads * size)))
        return Dropout(self.dropout).apply({}, {}, y, train=train, key=key)[0], state


def with_cache(k, v, state, time):
    """(all keys, all values, a mask b[time,positions], the cache with these in it).

    Raises ShapeError for more positions at once than the cache has; where the sum of all becomes
    more than that, which compiled code cannot raise, results are NaN.
    """
    seen, places = state["seen"], state["key"].shape[1]
    if time > places:
        raise ShapeError(f"MultiHeadAttention: {time} positions, and the cache has {places}.",
                         given=f"cache: {state['key'].type}",
                         fix=f"cache(batch, time, x) for at least {time} positions")
    k, v = (dynamic_update_slice(state[name], new.astype(state[name].dtype), (0, seen, 0, 0))
            for name, new in (("key", k), ("value", v)))
    visible = fnp.arange(places) <= (seen + fnp.arange(time))[:, None]
    fits = seen + time <= places
    return k, fnp.where(fits, v, math.nan), visible, {"key": k, "value": v, "seen": seen + time}


@explained
@dataclass(frozen=True)
class TransformerBlock(Layer):
    """x + attention(norm(x)), then that plus a dense pair of `width` features: pre-norm.

    f[n,time,features] → the same.  A state made by `cache` makes it generate.  Dropout at both
    sums.  Source: Vaswani et al. 2017; the norm goes first as in Xiong et al. 2020.

    >>> layer, x = TransformerBlock(heads=2), fnp.ones((1, 3, 8))
    >>> params, state = layer.init(random.key(0), x)
    >>> sorted(params), layer.apply(params, state, x)[0].shape
    (['attention', 'down', 'norm1', 'norm2', 'up'], (1, 3, 8))
    """
    heads: int
    _: KW_ONLY
    width: int | None = None
    is_causal: bool = True
    rotary: bool = False
    groups: int | None = None
    dropout: float = 0.0
    activation: Callable = gelu

    @property
    def attention(self):
        """The layer of attention."""
        return MultiHeadAttention(self.heads, groups=self.groups, is_causal=self.is_causal,
                                  rotary=self.rotary)

    def parts(self, x):
        """name → layer."""
        features = x.shape[-1]
        return {"norm1": LayerNorm(), "attention": self.attention, "norm2": LayerNorm(),
                "up": Dense(self.width or 4 * features), "down": Dense(features)}

    def init(self, key, x):
        params, keys = {}, random.split(key, 5)
        wide = fnp.zeros((1, self.width or 4 * x.shape[-1]), x.dtype)
        for (name, layer), k in zip(self.parts(x).items(), keys):
            params[name] = layer.init(k, wide if name == "down" else x)[0]
        return params, {}

    def cache(self, batch, time, x):
        """An empty cache, as state for `apply`."""
        return self.attention.cache(batch, time, x)

    def apply(self, params, state, x, *, train=False, key=None, mask=None):
        parts, drop = self.parts(x), Dropout(self.dropout)
        keys = (None, None) if key is None else random.split(key)

        def run(name, y):
            return parts[name].apply(self.parameter(params, name), {}, y)[0]
        attended = self.parameter(params, "attention")
        y, state = parts["attention"].apply(attended, state, run("norm1", x), mask=mask)
        x = x + drop.apply({}, {}, y, train=train, key=keys[0])[0]
        y = run("down", self.activation(run("up", run("norm2", x))))
        return x + drop.apply({}, {}, y, train=train, key=keys[1])[0], state
