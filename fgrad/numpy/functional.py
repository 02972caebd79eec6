"""NumPy's functions of functions: vectorize, apply_along_axis, piecewise, and assembling by blocks.

vectorize and apply_along_axis are vmap.  Relies on `transforms`.
"""

from __future__ import annotations

import functools
import math
import re

from .. import ops
from ..arguments import lifted
from ..core import as_value
from ..errors import ArgumentError, ShapeError
from ..transforms import vmap
from ..tree import map as tree_map
from ..types import INEXACT_KINDS, as_dtype
from .axes import axes_of, axis_of, broadcast_shapes, shape_of, typed
from .elementwise import where
from .indexing import around
from .joining import concatenate
from .promotion import as_bool, broadcast_to, in_dtype, of_one_dtype, same
from .shape import expand_dims


# ---------------------------------------------------------------------------- along axes

def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """func1d of each row along an axis; what it returns stands where the axis was.

    n[*s,k,*t] → n[*s,*out,*t]

    >>> import fgrad.numpy as fnp
    >>> fnp.apply_along_axis(fnp.sum, 1, [[1, 2], [3, 4]])
    Array([3, 7], i32[2])
    """
    x = as_value(arr)
    k = axis_of(axis, x.ndim, "apply_along_axis")
    function = lambda row: func1d(row, *args, **kwargs)
    for _ in range(k):
        function = vmap(function)
    for _ in range(x.ndim - k - 1):
        function = vmap(function, in_axes=-1, out_axes=-1)
    return function(x)


def apply_over_axes(func, a, axes):
    """func(array, axis) for one axis after the other; a removed axis comes back with size 1.

    >>> import fgrad.numpy as fnp
    >>> fnp.apply_over_axes(fnp.sum, fnp.ones((2, 3, 4)), (0, 2)).shape
    (1, 3, 1)
    """
    x = as_value(a)
    for k in axes_of(axes, x.ndim, "apply_over_axes"):
        out = as_value(func(x, k))
        x = out if out.ndim == x.ndim else expand_dims(out, k)
        if x.ndim != as_value(a).ndim:
            raise ShapeError("apply_over_axes needs a function that keeps or removes one axis.",
                             given=typed(out))
    return x


def vectorize(pyfunc, *, excluded=frozenset(), signature=None):
    """The function for elements, on arrays that broadcast; by vmap, so it can be differentiated.

    excluded: positions and names of arguments that are given to the function as they are.
    signature: such as "(n),(n)->()": the last axes of each argument that the function gets whole.

    >>> vectorize(lambda x, y: x * y if x.shape == () else None)([1, 2], 3).tolist()
    [3, 6]
    """
    inputs = None if signature is None else core_axes(signature)

    @functools.wraps(pyfunc)
    def function(*args, **kwargs):
        places = [k for k in range(len(args)) if k not in excluded]
        given = [as_value(args[k]) for k in places]
        core = [0] * len(given) if inputs is None else inputs
        if len(core) != len(given):
            raise ArgumentError(f"vectorize has a signature for {len(core)} arguments.",
                                given=f"{len(given)} arguments, signature {signature}")

        def whole(*xs):
            found = dict(zip(places, xs))
            return pyfunc(*[found.get(k, a) for k, a in enumerate(args)], **kwargs)
        return mapped(whole, given, core)
    return function


def core_axes(signature):
    """How many axes of each argument a signature leaves to the function."""
    if not re.fullmatch(r"(\([\w, ]*\),?)*->(\([\w, ]*\),?)+", signature.replace(" ", "")):
        raise ArgumentError("vectorize cannot read the signature.", given=signature,
                            expected='such as "(n,m),(m)->(n)"')
    return [len([n for n in part.split(",") if n.strip()])
            for part in re.findall(r"\(([^)]*)\)", signature.split("->")[0])]


def mapped(function, args, core):
    """The function under a vmap per axis that the arguments have besides their last `core`."""
    lead = broadcast_shapes(*[x.shape[:x.ndim - c] for x, c in zip(args, core)])
    wide = [broadcast_to(x, lead + x.shape[x.ndim - c:]) for x, c in zip(args, core)]
    for _ in lead:
        function = vmap(function)
    return tree_map(as_value, function(*wide))


def fromfunction(function, shape, *, dtype=float, **kwargs):
    """function(*indices), where each index array has the shape.   → what it returns

    >>> import fgrad.numpy as fnp
    >>> fnp.fromfunction(lambda i, j: i + j, (2, 2))
    Array([[0., 1.],
           [1., 2.]], f32[2,2])
    """
    shape = shape_of(shape, "fromfunction")
    grids = [ops.iota(shape=shape, axis=k, dtype=as_dtype(dtype)) for k in range(len(shape))]
    return function(*grids, **kwargs)


# ---------------------------------------------------------------------------- choices

def piecewise(x, condlist, funclist, *args, **kw):
    """Per element the function (or number) of the last condition that holds, else one more.

    n[*s] → n[*s].  Every function is computed for every element.

    >>> import fgrad.numpy as fnp
    >>> fnp.piecewise(fnp.array([-2.0, 3.0]), [fnp.array([True, False])], [0.0, 1.0])
    Array([0., 1.], f32[2])
    """
    x = as_value(x)
    conditions = [as_bool(c) for c in (condlist if isinstance(condlist, (list, tuple))
                                       else [condlist])]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ShapeError("piecewise needs a function for each condition, and maybe one more.",
                         given=f"{len(conditions)} conditions, {len(functions)} functions")
    value = lambda f: in_dtype(f(x, *args, **kw) if callable(f) else f, x.dtype)
    out = value(0 if len(functions) == len(conditions) else functions[-1])
    for condition, function in zip(conditions, functions):
        out = where(condition, value(function), out)
    return broadcast_to(out, x.shape)


def choose(a, choices, mode="raise"):
    """Per element the choice with that number.   i[*s], choices of one shape → n[*s]

    mode: "wrap" or "clip" say what a number out of range means; "raise" gives NaN or 0 there.

    >>> import fgrad.numpy as fnp
    >>> fnp.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]])
    Array([ 1, 20,  3], i32[3])
    """
    index = as_value(a)
    choices = of_one_dtype(*choices)
    n = len(choices)
    if mode == "wrap":
        index = around(index, n)
    elif mode == "clip":
        index = ops.clamp(0, index, n - 1)
    nothing = math.nan if choices[0].dtype.kind in INEXACT_KINDS else 0
    out = in_dtype(nothing, choices[0].dtype)
    for k, choice in enumerate(choices):
        out = where(same(ops.eq, index, k), choice, out)
    return out


# ---------------------------------------------------------------------------- blocks

def block(arrays):
    """One array of nested lists of blocks: the innermost are joined along the last axis.

    >>> block([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    depth = depth_of(arrays)
    ndim = max(depth, most_axes(arrays))
    return joined(arrays, depth, ndim)


def depth_of(x):
    """How deep the lists are nested.  Raises ArgumentError when that differs, or for empty ones."""
    if not isinstance(x, list):
        return 0
    depths = {depth_of(part) for part in x}
    if len(depths) != 1:
        raise ArgumentError("block needs lists of one depth that are not empty.")
    return depths.pop() + 1


def most_axes(x):
    """The most axes of any block."""
    return max(map(most_axes, x)) if isinstance(x, list) else as_value(x).ndim


def joined(x, depth, ndim):
    """The blocks of one list along their axis, counted from the end by the depth."""
    if not depth:
        x = lifted(x)
        return ops.reshape(x, shape=(1,) * (ndim - x.ndim) + x.shape)
    return concatenate([joined(part, depth - 1, ndim) for part in x], axis=-depth)
