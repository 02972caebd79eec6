"""What every optimizer is made of: a pair of pure functions, optax's convention word for word.

    init(params)                       → state
    update(updates, state, params)     → (updates, state)
    apply_updates(params, updates)     → params

Updates begin as gradients and are transformed one step after the other; those of an optimizer are
added to the parameters.  States are named tuples of pytrees of arrays, so they can be saved, passed
through jit and carried by scan; every leaf of a state keeps its dtype.  All of `fgrad.optim` relies
on this file.
"""

from __future__ import annotations

import math
from typing import Callable, NamedTuple

from .. import numpy as fnp
from .. import tree
from ..errors import ArgumentError, boundary


class Pair(NamedTuple):
    """What a GradientTransformation is, whose functions show the user's frames only."""
    init: Callable
    update: Callable


class GradientTransformation(Pair):
    """A pair of pure functions.

    init(params) → state;   update(updates, state, params=None) → (updates, state)
    """
    __slots__ = ()

    def __new__(cls, init, update):
        return super().__new__(cls, boundary(init), boundary(update))


class GradientTransformationExtraArgs(GradientTransformation):
    """One whose update takes further arguments by name, `value=` for example, or ignores them."""


class EmptyState(NamedTuple):
    """The state of a transformation that keeps none."""


class ScheduleState(NamedTuple):
    """The number of updates made so far: i32[]."""
    count: object


def with_extra_args_support(transformation):
    """The transformation; arguments by name that its update does not know are dropped."""
    plain = (isinstance(transformation, GradientTransformation)
             and not isinstance(transformation, GradientTransformationExtraArgs))
    if not plain:
        return transformation

    def update(updates, state, params=None, **extra):
        return transformation.update(updates, state, params)
    return GradientTransformationExtraArgs(transformation.init, update)


def stateless(function):
    """A transformation made of a function: function(updates, params) → updates.

    >>> half = stateless(lambda updates, params: tree.map(lambda u: u / 2, updates))
    >>> half.update(fnp.array([1.0]), half.init(None))
    (Array([0.5], f32[1]), EmptyState())
    """
    def update(updates, state, params=None):
        return function(updates, params), state
    return GradientTransformation(lambda params: EmptyState(), update)


def apply_updates(params, updates):
    """params + updates, leaf by leaf; parameters keep their dtypes.

    Raises TreeError where the two trees differ.

    >>> apply_updates({"w": fnp.array([1.0])}, {"w": fnp.array([0.5])})
    {'w': Array([1.5], f32[1])}
    """
    return tree.map(lambda p, u: keep(p, p + u), params, updates)


def given(params, name):
    """The parameters.  Raises ArgumentError where update() was called without."""
    if params is None:
        raise ArgumentError(f"{name} needs the parameters.",
                            fix="optimizer.update(grads, state, params)")
    return params


# ---------------------------------------------------------------------------- dtypes

def keep(old, x):
    """x in the dtype of `old`, the leaf it replaces."""
    dtype = getattr(old, "dtype", None)
    return x if dtype is None or dtype == getattr(x, "dtype", None) else fnp.asarray(x, dtype=dtype)


def keep_all(old, updated):
    """The tree `updated` in the dtypes of the tree `old`, which it replaces."""
    return tree.map(keep, old, updated)


def times(factor, updates):
    """Updates times a number or a scalar array, in the dtypes of the updates."""
    return tree.map(lambda u: fitting(factor, u) * u, updates)


def fitting(factor, x):
    """A scalar in the dtype of x; a Python number as it is, since it fits everything."""
    return keep(x, factor) if hasattr(factor, "dtype") else factor


def widened(x):
    """x in f32 where its dtype is shorter: squares of f16 overflow beyond 256."""
    return x.astype("float32") if x.dtype.itemsize < 4 else x


def zeros(params, dtype=None):
    """Zeros like the parameters, in another dtype if one is given."""
    return tree.map(lambda p: fnp.zeros_like(p, dtype=dtype), params)


def full(params, value):
    """A number, for each element of the parameters."""
    return tree.map(lambda p: fnp.full_like(p, value), params)


def start():
    """The count of a new state: i32[]."""
    return fnp.zeros((), "int32")


# ---------------------------------------------------------------------------- moments

def mean_of(values, means, decay):
    """decay · mean + (1 - decay) · value: running means, not yet in the dtypes of the state."""
    return tree.map(lambda v, m: normal(decay * m + (1 - decay) * v), values, means)


def normal(x):
    """x, with 0 for what is next to zero: below the least normal number, 1.2e-38 in f32.

    Where gradients stay zero momenta fade, 0.9 ** 830 in 830 steps, and would stay denormal for
    good: 0.9 times the least of all numbers is rounded to that.  Processors compute with such
    numbers some hundred times slower.  (f16 has normal numbers from 6e-5 on, and keeps the others.)
    """
    if x.dtype.itemsize < 4:
        return x
    return fnp.where(fnp.abs(x) < fnp.finfo(x.dtype).tiny, 0, x)


def square(updates):
    """The squares of the updates."""
    return tree.map(fnp.square, updates)


def log(x):
    """The natural logarithm of a number in (0, 1], exact in f64, or of an array."""
    return fnp.log(x) if hasattr(x, "dtype") else math.log(x) if x > 0 else -math.inf


def weight(decay, count, dtype):
    """1 - decay^count, the weight of a running mean that began at zero: f[].

    By expm1: 1 - 0.999 in f32 has only five correct digits.
    """
    dtype = dtype if dtype.itemsize >= 4 else "float32"
    return -fnp.expm1(count.astype(dtype) * log(decay))


def unbiased(means, decay, count):
    """Running means that began at zero, divided by the weight they hold after `count` steps."""
    weights = {}

    def divided(m):
        if m.dtype not in weights:
            weights[m.dtype] = weight(decay, count, m.dtype).astype(m.dtype)
        return m / weights[m.dtype]
    return tree.map(divided, means)


# ---------------------------------------------------------------------------- norms

def norm(x):
    """The Euclidean norm of one leaf: f[], in f32 or better."""
    return fnp.sqrt(fnp.sum(fnp.square(widened(x))))


def root_mean_square(x):
    """The root of the mean of the squares of one leaf: f[], 0 for a leaf without elements."""
    return norm(x) / math.sqrt(max(x.size, 1))


def global_norm(updates):
    """The Euclidean norm of all leaves together: f[].

    >>> global_norm({"a": fnp.array([3.0]), "b": fnp.array([4.0])})
    Array(5., f32[])
    """
    return fnp.sqrt(sum(fnp.sum(fnp.square(widened(u))) for u in tree.leaves(updates)))


def all_finite(updates):
    """Is every element of every leaf finite?   → bool[]"""
    finite = fnp.array(True)
    for u in tree.leaves(updates):
        finite = finite & fnp.all(fnp.isfinite(u))
    return finite


def choose(wanted, chosen, other):
    """The tree `chosen` where the scalar `wanted` holds, else `other`, in the dtypes of `other`."""
    return tree.map(lambda a, b: keep(b, fnp.where(wanted, a, b)), chosen, other)
