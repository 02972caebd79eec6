"""Putting elements in, leaving them out, and indices of places: delete, insert, resize.

Arrays are immutable: what NumPy does in place (put, fill_diagonal) gives the new array back.
"""

from __future__ import annotations

import builtins
import math

import numpy as np

from .. import ops
from ..arguments import lifted
from ..core import Array, as_value
from ..errors import ArgumentError, ShapeError
from ..types import I32, as_dtype
from .axes import axis_of, broadcast_shapes, shape_of, text_of, typed
from .elementwise import where
from .indexing import around, known_value, take
from .joining import concatenate
from .numerics import tril_indices, triu_indices
from .places import compress, nonzero
from .promotion import as_bool, binary, broadcast_to, cast, in_dtype, same
from .shape import moveaxis, ravel

STATIC = "needs to know the places, which decide the shape."


# ---------------------------------------------------------------------------- in and out

def delete(arr, obj, axis=None):
    """The array without the elements at the places along an axis; None: of the flat array.

    The places must be known: an int, a slice, a list of ints, or a mask.

    >>> import fgrad.numpy as fnp
    >>> fnp.delete([1, 2, 3], 1)
    Array([1, 3], i32[2])
    """
    x = as_value(arr)
    x, k = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim, "delete"))
    kept = np.delete(np.arange(x.shape[k]), known(obj, "delete"))
    return take(x, Array(kept.astype(I32)), k)


def known(obj, name):
    """The places as NumPy takes them."""
    if isinstance(obj, (int, slice)):
        return obj
    if isinstance(obj, (list, tuple)) and not obj:
        return np.zeros(0, np.int64)
    return known_value(as_value(obj), f"{name} {STATIC}", fix="where keeps the shape")


def insert(arr, obj, values, axis=None):
    """The array with values before the places along an axis; None: of the flat array.

    The places must be known: an int, a slice, or a list of ints.

    >>> import fgrad.numpy as fnp
    >>> fnp.insert([1, 3], 1, 2)
    Array([1, 2, 3], i32[3])
    """
    x = as_value(arr)
    x, k = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim, "insert"))
    n, places = x.shape[k], known(obj, "insert")
    x = moveaxis(x, k, 0)
    values = in_dtype(values, x.dtype)
    one = np.ndim(places) == 0 and not isinstance(places, slice)
    if not one and values.ndim > 1:              # before one place: the first axis counts the new
        values = moveaxis(values, k, 0)
    size = (values.shape[0] if values.ndim == x.ndim else 1) if one else (
        len(np.arange(n)[places]) if isinstance(places, slice) else len(places))
    values = broadcast_to(values, (size, *x.shape[1:]) if values.ndim != 1 or x.ndim == 1
                          else x.shape[1:])
    values = broadcast_to(values, (size, *x.shape[1:]))
    marks = np.insert(np.arange(n), np.repeat(places, size) if one else places,
                      n + np.arange(size))
    return moveaxis(take(concatenate([x, values]), Array(marks.astype(I32)), 0), 0, k)


def resize(a, new_shape):
    """The elements, over and over, in another shape; zeros for none.   n[*s] → n[*shape]

    >>> import fgrad.numpy as fnp
    >>> fnp.resize([1, 2, 3], (2, 2))
    Array([[1, 2],
           [3, 1]], i32[2,2])
    """
    x, shape = ravel(a), shape_of(new_shape, "resize")
    size = math.prod(shape)
    if not x.size:
        return ops.full(shape=shape, value=0, dtype=x.dtype)
    copies = concatenate([x] * -(-size // x.size)) if size else x
    return ops.reshape(copies[:size], shape=shape)


def put_along_axis(arr, indices, values, axis, *, inplace=False):
    """The array with values at one place of each row along an axis, as take_along_axis reads them.

    Raises ArgumentError for inplace=True: arrays are immutable.

    >>> import fgrad.numpy as fnp
    >>> fnp.put_along_axis(fnp.zeros((2, 2)), fnp.array([[1], [0]]), 5.0, axis=1, inplace=False)
    Array([[0., 5.],
           [5., 0.]], f32[2,2])
    """
    refuse_in_place(inplace, "put_along_axis")
    x, places = as_value(arr), as_value(indices)
    k = axis_of(axis, x.ndim, "put_along_axis")
    shape = broadcast_shapes(places.shape, tuple(1 if a == k else n for a, n in enumerate(x.shape)))
    shape = (*shape[:k], places.shape[k], *shape[k + 1:])
    grid = [broadcast_to(places, shape) if a == k else ops.iota(shape=shape, axis=a, dtype=I32)
            for a in range(x.ndim)]
    index = tuple(cast(i, I32) for i in grid)
    return x.at[index].set(broadcast_to(in_dtype(values, x.dtype), shape))


def refuse_in_place(inplace, name):
    """Raises ArgumentError for inplace=True."""
    if inplace:
        raise ArgumentError(f"{name} cannot change an array in place.",
                            fix=f"a = {name}(a, …) takes the new one")


def put(a, ind, v, mode="clip", *, inplace=False):
    """The array with values v, over and over, at places of the flat array.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.put(fnp.zeros(3), fnp.array([0, 2]), 5.0, inplace=False)
    Array([5., 0., 5.], f32[3])
    """
    refuse_in_place(inplace, "put")
    x, places = as_value(a), ravel(ind)
    values = resize(in_dtype(v, x.dtype), places.shape)
    if mode == "wrap":
        places = around(places, x.size)
    elif mode != "clip":
        raise ArgumentError(f"put has no mode {mode!r}.", expected="clip or wrap")
    flat = ops.scatter(ravel(x), places, values, axes=(0,), mode="clip")
    return ops.reshape(flat, shape=x.shape)


def place(arr, mask, vals, *, inplace=False):
    """The array with the first values, over and over, where the mask is true.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.place(fnp.zeros(3), fnp.array([True, False, True]), 5.0, inplace=False)
    Array([5., 0., 5.], f32[3])
    """
    refuse_in_place(inplace, "place")
    x, mask = as_value(arr), as_bool(mask)
    values = ravel(in_dtype(vals, x.dtype))
    number = ops.cumsum(cast(ravel(mask), I32), axis=0, reverse=False)
    turn = same(ops.rem, same(ops.max, same(ops.sub, number, 1), 0), values.size)
    return where(mask, ops.reshape(ops.gather(values, turn, axes=(0,)), shape=x.shape), x)


def fill_diagonal(a, val, wrap=False, *, inplace=False):
    """The array with val on its main diagonal; a vector gives one element each.   n[*s] → n[*s]

    Raises ArgumentError for inplace=True or wrap=True.

    >>> import fgrad.numpy as fnp
    >>> fnp.fill_diagonal(fnp.zeros((2, 2)), 5.0, inplace=False)
    Array([[5., 0.],
           [0., 5.]], f32[2,2])
    """
    refuse_in_place(inplace, "fill_diagonal")
    x = as_value(a)
    if wrap or x.ndim < 2 or x.ndim > 2 and len(set(x.shape)) > 1:
        raise ArgumentError("fill_diagonal needs a matrix, or an array of equal sizes.",
                            given=f"{typed(x)}, wrap={wrap}")
    n = builtins.min(x.shape)
    values = resize(in_dtype(val, x.dtype), (n,))
    index = Array(np.arange(n, dtype=I32))
    return x.at[(index,) * x.ndim].set(values)


def extract(condition, arr, *, size=None, fill_value=0):
    """The elements where the condition holds, as a vector; `size` makes the shape known.

    Without size the condition must be known.

    >>> import fgrad.numpy as fnp
    >>> fnp.extract([True, False, True], [1, 2, 3])
    Array([1, 3], i32[2])
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


# ---------------------------------------------------------------------------- indices

def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """The flat indices of index arrays, one per axis of `dims`, in row-major order (C) or not (F).

    mode: "clip" or "wrap" for indices out of range; "raise" takes them as they are.

    >>> import fgrad.numpy as fnp
    >>> fnp.ravel_multi_index((1, 2), (2, 3))
    Array(5, i32[])
    """
    if mode not in ("raise", "clip", "wrap"):
        raise ArgumentError(f"ravel_multi_index has no mode {mode!r}.",
                            expected="'raise', 'clip' or 'wrap'")
    dims = shape_of(dims, "ravel_multi_index")
    if len(multi_index) != len(dims) or order not in ("C", "F"):
        raise ArgumentError(
            "ravel_multi_index needs an index array for each axis, and an order C or F.",
            given=f"{len(multi_index)} arrays for dims {text_of(dims)}, order={order}")
    parts = list(zip(map(lifted, multi_index), dims))
    out = None
    for index, n in parts if order == "C" else parts[::-1]:
        if mode == "clip":
            index = ops.clamp(0, index, n - 1)
        elif mode == "wrap":
            index = around(index, n)
        out = index if out is None else same(ops.add, same(ops.mul, out, n), index)
    return out


def diag_indices(n, ndim=2):
    """Index arrays of the main diagonal.   → i32[n] each

    >>> import fgrad.numpy as fnp
    >>> fnp.diag_indices(2)
    (Array([0, 1], i32[2]), Array([0, 1], i32[2]))
    """
    index = ops.iota(shape=(n,), axis=0, dtype=I32)
    return (index,) * ndim


def diag_indices_from(arr):
    """diag_indices for an array of equal sizes.

    >>> import fgrad.numpy as fnp
    >>> fnp.diag_indices_from(fnp.ones((2, 2)))
    (Array([0, 1], i32[2]), Array([0, 1], i32[2]))
    """
    x = as_value(arr)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError("diag_indices_from needs an array of equal sizes.", given=typed(x))
    return diag_indices(x.shape[0], x.ndim)


def tril_indices_from(arr, k=0):
    """The places at and below diagonal k of a matrix.

    >>> import fgrad.numpy as fnp
    >>> fnp.tril_indices_from(fnp.ones((2, 2)))
    (Array([0, 1, 1], i32[3]), Array([0, 0, 1], i32[3]))
    """
    return triangle_of(arr, k, tril_indices, "tril_indices_from")


def triu_indices_from(arr, k=0):
    """The places at and above diagonal k of a matrix.

    >>> import fgrad.numpy as fnp
    >>> fnp.triu_indices_from(fnp.ones((2, 2)))
    (Array([0, 0, 1], i32[3]), Array([0, 1, 1], i32[3]))
    """
    return triangle_of(arr, k, triu_indices, "triu_indices_from")


def triangle_of(arr, k, places, name):
    """The places of a matrix of such a shape, by `places`; its values play no role."""
    x = as_value(arr)
    if x.ndim != 2:
        raise ShapeError(f"{name} needs a matrix.", given=typed(x))
    return places(x.shape[0], k, x.shape[1])


def mask_indices(n, mask_func, k=0):
    """The places of an n by n matrix that mask_func(ones, k) leaves different from 0."""
    return nonzero(mask_func(ops.full(shape=(n, n), value=1, dtype=I32), k))


def ix_(*args):
    """Index arrays that pick the product of the places in each.   i[n] i[m] → i[n,1], i[1,m]

    >>> import fgrad.numpy as fnp
    >>> [x.shape for x in fnp.ix_([0, 2], [1])]
    [(2, 1), (1, 1)]
    """
    out = []
    for k, part in enumerate(args):
        x = lifted(part)
        if x.ndim != 1:
            raise ShapeError("ix_ needs vectors.", given=typed(x))
        x = nonzero(x)[0] if x.dtype.kind == "b" else x
        out.append(ops.reshape(x, shape=(1,) * k + (x.size,) + (1,) * (len(args) - k - 1)))
    return tuple(out)


def astype(x, dtype, /, *, copy=True):
    """The array in another dtype: float to int towards zero.   n[*s] → dtype[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.astype(fnp.array([1.7, -1.7]), "int32")
    Array([ 1, -1], i32[2])
    """
    return in_dtype(lifted(x) if isinstance(x, np.ndarray) else x, as_dtype(dtype))


def array_equiv(a1, a2):
    """Are both equal, once broadcast?   → bool[]

    >>> import fgrad.numpy as fnp
    >>> fnp.array_equiv([1, 1], [[1, 1], [1, 1]])
    Array(True, bool[])
    """
    x, y = as_value(a1), as_value(a2)
    try:
        shape = broadcast_shapes(x.shape, y.shape)
    except ShapeError:
        return ops.full(shape=(), value=False, dtype=np.dtype(bool))
    return ops.reduce_and(binary(ops.eq, x, y), axes=tuple(range(len(shape))))
