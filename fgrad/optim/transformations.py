"""Gradient transformations, optax's convention:

    init(params)                       → state
    update(updates, state, params)     → (updates, state)
    apply_updates(params, updates)     → params

States are named tuples of pytrees like `params`, so they can be saved, and passed through jit.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

from .. import numpy as fnp
from .. import tree


class GradientTransformation(NamedTuple):
    """A pair of pure functions.

    init(params) → state;   update(updates, state, params) → (updates, state)
    """
    init: Callable
    update: Callable


class EmptyState(NamedTuple):
    """The state of a transformation that keeps none."""


def stateless(function):
    """A transformation of `function(updates, params) → updates`."""
    return GradientTransformation(lambda params: EmptyState(),
                                  lambda updates, state, params=None:
                                  (function(updates, params), state))


def apply_updates(params, updates):
    """params + updates, leaf by leaf; parameters keep their dtypes.

    >>> apply_updates({"w": fnp.array([1.0])}, {"w": fnp.array([0.5])})
    {'w': Array([1.5], f32[1])}
    """
    def moved(p, u):
        return (p + u).astype(p.dtype) if hasattr(p, "dtype") else p + u
    return tree.map(moved, params, updates)


def chain(*transformations):
    """The transformations one after the other; its state is the tuple of theirs."""
    def init(params):
        return tuple(t.init(params) for t in transformations)

    def update(updates, state, params=None):
        after = []
        for t, s in zip(transformations, state):
            updates, s = t.update(updates, s, params)
            after.append(s)
        return updates, tuple(after)
    return GradientTransformation(init, update)


def identity():
    """Updates as they are."""
    return stateless(lambda updates, params: updates)


def scale(factor):
    """Updates times a number."""
    return stateless(lambda updates, params: tree.map(lambda u: factor * u, updates))


class ScheduleState(NamedTuple):
    """The number of updates made so far: i32[]."""
    count: object


def scale_by_learning_rate(rate):
    """Updates times -rate.

    rate: a number, or a schedule: a function of the number of updates so far.
    """
    if not callable(rate):
        return scale(-rate)

    def update(updates, state, params=None):
        factor = -rate(state.count)
        return tree.map(lambda u: factor * u, updates), ScheduleState(state.count + 1)
    return GradientTransformation(lambda params: ScheduleState(fnp.zeros((), "int32")), update)


def global_norm(updates):
    """The Euclidean norm of all leaves together: f[].

    >>> global_norm({"a": fnp.array([3.0]), "b": fnp.array([4.0])})
    Array(5., f32[])
    """
    return fnp.sqrt(sum(fnp.sum(fnp.square(u)) for u in tree.leaves(updates)))


def clip_by_global_norm(most):
    """Updates scaled down together where their norm is above `most` (Pascanu et al. 2013)."""
    def clip(updates, params):
        norm = global_norm(updates)
        factor = fnp.where(norm < most, 1.0, most / fnp.maximum(norm, 1e-38))
        return tree.map(lambda u: u * factor, updates)
    return stateless(clip)


def add_decayed_weights(decay):
    """Updates + decay · params."""
    return stateless(lambda updates, params: tree.map(lambda u, p: u + decay * p, updates, params))


class TraceState(NamedTuple):
    """The accumulated updates, like params."""
    trace: object


def trace(decay, nesterov=False):
    """Momentum: t ← u + decay · t; the update is t, or u + decay · t for Nesterov.

    Source: Sutskever et al. 2013.
    """
    def update(updates, state, params=None):
        after = tree.map(lambda u, t: u + decay * t, updates, state.trace)
        out = tree.map(lambda u, t: u + decay * t, updates, after) if nesterov else after
        return out, TraceState(after)
    return GradientTransformation(lambda params: TraceState(tree.map(fnp.zeros_like, params)),
                                  update)


class AdamState(NamedTuple):
    """The number of updates i32[]; like params, running means of gradients and of their squares."""
    count: object
    mu: object
    nu: object


def scale_by_adam(b1=0.9, b2=0.999, eps=1e-8):
    """m̂ / (√v̂ + eps), with bias-corrected running means (Kingma and Ba 2015)."""
    def init(params):
        return AdamState(fnp.zeros((), "int32"), tree.map(fnp.zeros_like, params),
                         tree.map(fnp.zeros_like, params))

    def update(updates, state, params=None):
        count = state.count + 1
        mu = tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, updates)
        nu = tree.map(lambda v, g: b2 * v + (1 - b2) * (g * g), state.nu, updates)
        steps = count.astype("float32")
        first, second = 1 - b1 ** steps, 1 - b2 ** steps
        out = tree.map(lambda m, v: (m / first.astype(m.dtype))
                       / (fnp.sqrt(v / second.astype(v.dtype)) + eps), mu, nu)
        return out, AdamState(count, mu, nu)
    return GradientTransformation(init, update)
