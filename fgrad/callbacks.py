"""Calling Python from inside of transformed and compiled functions, with NumPy arrays.

    pure_callback    a function of its arguments alone: may be shared, dropped, called again
    io_callback      a function with effects: called once per run, in the order of the program
    effect_callback  the same without results: what `fgrad.debug` prints with

Each is an operation whose NumPy rule calls the function, so compiled code calls it on the host.
Programs keep what has an effect, whether or not a result of it is read.  Relies on core and
pytrees; `debug.py` and users rely on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import arguments, tree
from .core import EVALUATE, Primitive
from .errors import ArgumentError, DtypeError, GradientError, ShapeError
from .ops import size_of, to_front
from .types import INEXACT_KINDS, ArrayType


# ---------------------------------------------------------------------------- operations

class Callback(Primitive):
    """What `function` gives for the arguments: arrays of `types`.

    function takes NumPy arrays that are its own, and gives a list of NumPy arrays.  vectorized: it
    may be called once for a whole batch, which is then the first axis of all it takes and gives.
    """
    multiple = True

    def type(self, *args, function, types, vectorized=False):
        return types

    def numpy(self, *args, function, types, vectorized=False):
        return EVALUATE.run(called, function, [np.array(a) for a in args], types)

    def forward(self, args, tangents, params):
        self.refuse_derivative(params)
        out = self(*args, **params)
        return out, (None,) * len(out)

    def linearize(self, below, args, active, params):
        self.refuse_derivative(params)
        return super().linearize(below, args, active, params)

    def record(self, outs, args, active, params):
        raise no_derivative(params["function"])

    def refuse_derivative(self, params):
        """Raises GradientError where a result would have a derivative."""
        if any(t.dtype.kind in INEXACT_KINDS for t in params["types"]):
            raise no_derivative(params["function"])

    def batch(self, dims, *args, function, types, vectorized=False):
        n = size_of(args, dims)
        batched = tuple([t.with_shape((n, *t.shape)) for t in types])
        if vectorized:
            args = [to_front(a, d, n) for a, d in zip(args, dims)]
        else:
            function = Lanes(function, dims, batched)
        return self(*args, function=function, types=batched, vectorized=vectorized), 0


class Effect(Callback):
    """A Callback that is wanted for what it does: never dropped, shared, or moved past another."""
    effect = True


class Silent(Effect):
    """An Effect without results, which derivatives pass by: it sees values, not tangents."""
    differentiable = False

    def record(self, outs, args, active, params):
        raise GradientError(
            f"`{params['function'].__name__}` was given a tangent, which has no value in reverse.",
            fix="print what does not depend on the tangents, or use jvp")


pure = Callback("pure_callback")
io = Effect("io_callback")
silent = Silent("effect_callback")


def no_derivative(function):
    """The error for differentiating a callback."""
    return GradientError(
        f"the callback `{function.__name__}` has no derivative: it is a Python function.",
        fix=["wrap the call in a function with @fgrad.custom_jvp, and give its derivative by "
             "defjvp",
             "or hold its arguments constant with fgrad.stop_gradient"])


# ---------------------------------------------------------------------------- functions of arrays

@dataclass(frozen=True, eq=False)
class Host:
    """The user's function of pytrees, as a function of flat lists of NumPy arrays.

    `out`: the Structure of its result, None where it is not looked at.  Compared by identity.
    """
    function: object
    structure: object
    leaves: tuple              # those that are no arrays stand in it; None is where an array comes
    out: object

    @property
    def __name__(self):
        return arguments.name_of(self.function)

    def __repr__(self):
        return f"<{self.__name__}>"

    def __call__(self, *arrays):
        arrays = iter(arrays)
        leaves = [next(arrays) if x is None else x.value for x in self.leaves]
        args, kwargs = tree.unflatten(self.structure, leaves)
        result = self.function(*args, **kwargs)
        return [] if self.out is None else self.flat(result)

    def flat(self, result):
        """The leaves of the result, in a tree as promised."""
        found, structure = tree.flatten(result)
        tree.check_same(self.out, structure,
                        f"the callback `{self.__name__}` must return what was promised")
        return found

    def paths(self):
        """The names of the results, for messages."""
        return [tree.path_text("result", path) for path in tree.paths(self.out)]


def called(function, args, types):
    """The results of function(*args) as ndarrays of these types.

    Raises ShapeError or DtypeError where they are not what was promised.
    """
    found = [np.asarray(x) for x in function(*args)]
    for k, (x, wanted) in enumerate(zip(found, types)):
        kind = (ShapeError if x.shape != wanted.shape else None if
                np.can_cast(x.dtype, wanted.dtype, "same_kind") else DtypeError)
        if kind is not None:
            raise kind(f"the callback `{function.__name__}` returned something else than was "
                       "promised.",
                       given=f"{function.paths()[k]}: {x.dtype} of shape {x.shape}",
                       expected=str(wanted))
    return [np.array(x, t.dtype) for x, t in zip(found, types)]


@dataclass(frozen=True, eq=False)
class Kept:
    """A leaf that is no array: the callback sees it as it is."""
    value: object


@dataclass(frozen=True, eq=False)
class Lanes:
    """A function called once per lane of a batch; `dims` says where its arguments have the batch.

    types: of the results, with the batch in front.
    """
    function: object
    dims: tuple
    types: tuple

    @property
    def __name__(self):
        return self.function.__name__

    def __repr__(self):
        return f"<{self.__name__} for each lane>"

    def __call__(self, *args):
        n = next(a.shape[d] for a, d in zip(args, self.dims) if d is not None)
        outs = [np.empty(t.shape, t.dtype) for t in self.types]
        types = [t.with_shape(t.shape[1:]) for t in self.types]
        for k in range(n):
            lane = [a if d is None else np.take(a, k, d) for a, d in zip(args, self.dims)]
            for out, x in zip(outs, called(self.function, map(np.array, lane), types)):
                out[k] = x
        return outs

    def paths(self):
        return self.function.paths()


def bound(op, f, what, result_types, args, kwargs, **params):
    """The results of `op` that calls f, as the pytree of result_types (None: nothing)."""
    arguments.check_function(f, what)
    leaves, structure = tree.flatten((tuple(args), dict(kwargs)))
    arrays = [arguments.is_array(x) for x in leaves]
    kept = tuple([None if a else Kept(x) for x, a in zip(leaves, arrays)])
    types, out = ((), None) if result_types is None else promised(result_types, what)
    values = [arguments.lifted(x).settled() for x, a in zip(leaves, arrays) if a]
    found = op(*values, function=Host(f, structure, kept, out), types=types, **params)
    return None if out is None else tree.unflatten(out, found)


def promised(result_types, what):
    """(types, Structure) of a pytree of types.  Raises ArgumentError for a leaf without a type."""
    pairs, structure = tree.flatten_with_path(result_types)
    for path, x in pairs:
        if not (isinstance(x, ArrayType) or hasattr(x, "shape") and hasattr(x, "dtype")):
            raise ArgumentError(f"{what} needs the types of the results before it is called.",
                                given=f"{tree.path_text('result_types', path)}: {x!r:.60}",
                                expected="a pytree of types",
                                fix="fgrad.ArrayType('float32', (3,)), or an array like the result")
    return tuple([ArrayType(x.dtype, tuple(x.shape)) for _, x in pairs]), structure


# ---------------------------------------------------------------------------- what users call

WHOLE_BATCH = {None: False, "sequential": False, "sequential_unrolled": False,
               "broadcast_all": True, "expand_dims": True}       # of JAX's: is f called once?


def pure_callback(f, result_types, *args, vectorized=False, vmap_method=None, **kwargs):
    """f(*args), a Python function of NumPy arrays, at any place of a transformed function.

    result_types: a pytree of ArrayTypes (or of arrays like the results).  f has no effects: it may
    be called more often, or not at all where nothing reads its results.  Under vmap it is called
    once per element; with vectorized=True once, with the batch as first axis of every argument and
    result.  Results are converted to the promised dtypes within a kind; what f raises is raised.
    vmap_method: the same in JAX's words, "sequential" or "broadcast_all"; with "expand_dims" too
    every argument has the whole batch.

    Raises GradientError under a derivative (write one with custom_jvp), ShapeError, DtypeError or
    TreeError where the result is not what was promised.

    >>> from fgrad.types import F32
    >>> pure_callback(np.cosh, ArrayType(F32, (2,)), np.zeros(2, "float32"))
    Array([1., 1.], f32[2])
    """
    if vmap_method not in WHOLE_BATCH:
        raise ArgumentError("pure_callback does not know this vmap_method.",
                            given=f"vmap_method={vmap_method!r}",
                            expected="one of " + ", ".join(filter(None, WHOLE_BATCH)))
    return bound(pure, f, "pure_callback", result_types, args, kwargs,
                 vectorized=vectorized or WHOLE_BATCH[vmap_method])


def io_callback(f, result_types, *args, ordered=False, **kwargs):
    """f(*args), like pure_callback, for functions with effects: called once whenever it is reached.

    Calls happen in the order of the program, whatever `ordered` says.  Under vmap f is called once
    per element, in order.  result_types None: nothing is returned.

    >>> seen = []
    >>> io_callback(lambda x: seen.append(float(x)), None, 2.0)
    >>> seen
    [2.0]
    """
    return bound(io, f, "io_callback", result_types, args, kwargs)


def effect_callback(f, *args, **kwargs):
    """Calls f(*args, **kwargs) with NumPy arrays whenever it is reached; gives nothing.

    Derivatives pass it by: under grad and jvp it sees the values.
    """
    bound(silent, f, "debug.callback", None, args, kwargs)
