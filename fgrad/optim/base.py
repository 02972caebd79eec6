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
from functools import wraps
from numbers import Real
from typing import Callable, NamedTuple

from .. import numpy as fnp
from .. import tree
from ..arguments import name_of, text_of
from ..errors import ArgumentError, DtypeError, RangeError, ShapeError, boundary
from ..numpy.complex import squared
from ..text import noun_of
from ..types import as_dtype, complex_of, part_of


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
        return super().__new__(cls, boundary(init), guarded(update))


class GradientTransformationExtraArgs(GradientTransformation):
    """One whose update takes further arguments by name, `value=` for example, or ignores them."""


def guarded(update):
    """update(…), which says so where its state was made by another transformation."""
    if getattr(update, "is_boundary", False):
        return update

    @wraps(update)
    def checked(*args, **rest):
        try:
            return update(*args, **rest)
        except AttributeError as error:
            state, known = error.obj, [*args, *rest.values()]
            kind = isinstance(state, (tuple, dict, type(None)))
            if not kind or all(x is not state for x in known):
                raise
            raise ArgumentError("the state was not made by this optimizer.",
                                given=f"state: {noun_of(state)}",
                                expected=f"one that has {error.name!r}",
                                fix="state = optimizer.init(params)") from None
    return boundary(checked)


class EmptyState(NamedTuple):
    """The state of a transformation that keeps none."""


class ScheduleState(NamedTuple):
    """The number of updates made so far: i32[]."""
    count: object


def check_transformation(x, what):
    """Raises ArgumentError, which begins with `what`, unless x has init and update."""
    if isinstance(x, type) or not hasattr(x, "init") or not hasattr(x, "update"):
        raise ArgumentError(f"{what}, not {noun_of(x)}.", given=f"{x!r:.60}",
                            fix=f"{name_of(x)}(…), with a learning rate" if callable(x)
                            else "as optim.adam(1e-3)")


def with_extra_args_support(transformation, what="an optimizer is wanted"):
    """The transformation; arguments by name that its update does not know are dropped.

    Raises ArgumentError, which begins with `what`, for what is none.
    """
    check_transformation(transformation, what)
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

    Raises TreeError where the two trees differ, ShapeError, naming the leaf, where two shapes do,
    and DtypeError where an update would lose its fraction in integers.

    >>> apply_updates({"w": fnp.array([1.0])}, {"w": fnp.array([0.5])})
    {'w': Array([1.5], f32[1])}
    """
    leaves, others, structure = matched(params, updates, "params", "updates", exact=True)
    return tree.unflatten(structure, [keep(p, p + u) for p, u in zip(leaves, others)])


RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}       # of kinds of dtypes: what can hold what
UNPACK = ["updates, state = optimizer.update(grads, state, params)",
          "value, grads = value_and_grad(loss)(params)"]


def matched(first, second, a, b, exact=False):
    """(leaves of the first tree, those of the second, their structure); they are called a and b.

    Raises ShapeError, naming the leaf, where two differ in shape: nothing is broadcast here.
    exact: DtypeError where one of the second does not fit into the dtype of the first, too.
    Raises TreeError for two structures, ArgumentError for a tuple that was not unpacked.
    """
    leaves, structure = tree.flatten(first)
    is_tuple = type(second) is tuple and structure != tree.structure(second)
    if is_tuple and structure in map(tree.structure, second):
        raise ArgumentError(f"the {b} are one tree like the {a}, not a tuple of {len(second)}.",
                            given=f"a tuple with {b} in it", fix=UNPACK)
    others = tree.flatten_up_to(structure, second)
    for k, (x, y) in enumerate(zip(leaves, others)):
        same = getattr(x, "shape", ()) == getattr(y, "shape", ())
        if not same or exact and rank(y) > rank(x) and hasattr(x, "dtype"):
            raise misfit(x, y, a, b, tree.paths(structure)[k], same)
    return leaves, others, structure


def misfit(x, y, a, b, path, same):
    """The error for leaves of two trees that do not fit, in dtype if they are the same in shape."""
    given = [f"{tree.path_text(name, path)}: {text_of(leaf)}" for name, leaf in ((a, x), (b, y))]
    if same:
        return DtypeError(f"the {b} would be truncated to the dtype of the {a}.", given=given,
                          fix=["parameters of floats: x.astype('float32')",
                               "nn.split(params, …) takes apart what is trained and what is not"])
    return ShapeError(f"the {b} differ from the {a} in shape.", given=given,
                      expected="equal shapes: nothing is broadcast here",
                      fix="state = optimizer.init(params), of these parameters"
                      if a == "state" else "grad(loss)(params) has the shapes of params")


def rank(x):
    """The entry of RANKS for an array or a number."""
    return RANKS[x.dtype.kind if hasattr(x, "dtype") else "f" if isinstance(x, float) else "b"]


def given(params, name, updates):
    """The parameters.  Raises ArgumentError where update() was called without, and as `matched`."""
    if params is None:
        raise ArgumentError(f"{name} needs the parameters.",
                            fix="optimizer.update(grads, state, params)")
    matched(params, updates, "params", "gradients")
    return params


def check_shares(**shares):
    """Raises RangeError for a number outside [0, 1), ArgumentError for what is none."""
    for name, x in shares.items():
        check_number(name, x)
        if isinstance(x, Real) and not 0 <= x < 1:
            raise RangeError(f"{name} is a share of what was before, and not in [0, 1).",
                             given=f"{name}={x!r}")


def check_number(name, x, expected="a number, or an array of one"):
    """Raises ArgumentError unless x is a number or an array."""
    if not isinstance(x, Real) and not hasattr(x, "dtype"):
        raise ArgumentError(f"{name} is no number.", given=f"{name}={x!r:.60}", expected=expected)


# ---------------------------------------------------------------------------- dtypes

def keep(old, x):
    """x in the dtype of `old`, the leaf it replaces."""
    dtype = getattr(old, "dtype", None)
    return x if dtype is None or dtype == getattr(x, "dtype", None) else fnp.asarray(x, dtype=dtype)


def keep_all(old, updated):
    """The tree `updated` in the dtypes of the tree `old`, which it replaces.

    Raises ShapeError, naming the leaf, where the two differ: gradients broadcast to no state.
    """
    leaves, others, structure = matched(old, updated, "state", "updates")
    return tree.unflatten(structure, list(map(keep, leaves, others)))


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
    """Zeros like the parameters, in another dtype if one is given: that of the parts, of complex.
    """
    def zero(p):
        pairs = dtype is not None and p.dtype.kind == "c" and as_dtype(dtype).kind != "c"
        return fnp.zeros_like(p, dtype=complex_of(as_dtype(dtype)) if pairs else dtype)
    return tree.map(zero, params)


def sizes(params, value=0.0):
    """A number for the size of each element of the parameters: real ones for complex."""
    return tree.map(lambda p: fnp.full_like(p, value, dtype=size_dtype(p)), params)


def size_dtype(p):
    """The dtype of |p|."""
    return part_of(p.dtype) if p.dtype.kind == "c" else p.dtype


def full(params, value):
    """A number, for each element of the parameters."""
    return tree.map(lambda p: fnp.full_like(p, value), params)


def start():
    """The count of a new state: i32[]."""
    return fnp.zeros((), "int32")


def counted(state):
    """The number of updates made, `state.count`: of a tuple without, that would be a method."""
    if "count" not in getattr(state, "_fields", ()):
        raise AttributeError("no count", name="count", obj=state)
    return state.count


# ---------------------------------------------------------------------------- moments

def mean_of(values, means, decay):
    """decay · mean + (1 - decay) · value: running means, not yet in the dtypes of the state."""
    old, found, structure = matched(means, values, "state", "gradients")
    return tree.unflatten(structure, [normal(decay * m + (1 - decay) * v)
                                      for m, v in zip(old, found)])


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
    """The squares of the updates, of complex ones those of their sizes."""
    return tree.map(squared, updates)


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
    return fnp.sqrt(fnp.sum(squared(widened(x))))


def root_mean_square(x):
    """The root of the mean of the squares of one leaf: f[], 0 for a leaf without elements."""
    return norm(x) / math.sqrt(max(x.size, 1))


def global_norm(updates):
    """The Euclidean norm of all leaves together: f[].

    >>> global_norm({"a": fnp.array([3.0]), "b": fnp.array([4.0])})
    Array(5., f32[])
    """
    return fnp.sqrt(sum(fnp.sum(squared(widened(u))) for u in tree.leaves(updates)))


def all_finite(updates):
    """Is every element of every leaf finite?   → bool[]"""
    finite = fnp.array(True)
    for u in tree.leaves(updates):
        finite = finite & fnp.all(fnp.isfinite(u))
    return finite


def choose(wanted, chosen, other):
    """The tree `chosen` where the scalar `wanted` holds, else `other`, in the dtypes of `other`."""
    return tree.map(lambda a, b: keep(b, fnp.where(wanted, a, b)), chosen, other)
