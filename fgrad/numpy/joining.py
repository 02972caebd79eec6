"""Joining arrays, and splitting them."""

from __future__ import annotations

import operator

from .. import ops
from ..arguments import lifted
from ..core import as_value
from ..errors import ArgumentError, RangeError, ShapeError
from ..text import noun_of
from ..types import as_dtype, without
from .axes import axis_of, refuse_array, typed
from .promotion import as_value_or_number, in_dtype, join, kind
from .shape import atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel, transpose


def parts_of(arrays, name):
    """The arrays of a list, or the rows of one array; Python numbers stay."""
    if hasattr(arrays, "shape"):
        x = lifted(arrays)
        return [x[k] for k in range(len(x))]
    if not hasattr(arrays, "__iter__"):
        raise ArgumentError(f"{name} takes a list of arrays, not {noun_of(arrays)}.",
                            given=f"{name}({arrays!r:.60})", fix=f"{name}([x, y])")
    arrays = list(arrays)
    parts = [as_value_or_number(x) for x in arrays] if len(arrays) > 1 else [*map(lifted, arrays)]
    if not parts:
        raise ArgumentError(f"{name} needs at least one array.")
    return parts


def concatenate(arrays, axis=0, dtype=None):
    """The arrays one after the other along an axis; None: all of them flat.

    n[a,*s] n[b,*s] … → n[a+b+…,*s]

    Raises ShapeError when they differ along another axis.

    >>> concatenate([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """
    refuse_array(axis, "concatenate")
    parts = alike(parts_of(arrays, "concatenate"), dtype)
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    if parts[0].ndim == 0:
        raise ShapeError("concatenate needs arrays of at least one axis.", given=typed(parts[0]),
                         fix="stack joins scalars along a new axis")
    k = axis_of(axis, parts[0].ndim, "concatenate")
    check_joined(parts, k)
    return parts[0] if len(parts) == 1 else ops.concatenate(*parts, axis=k)


concat = concatenate


def check_joined(parts, axis):
    """Raises ShapeError unless the arrays differ along `axis` only."""
    first = parts[0].shape
    for k, x in enumerate(parts):
        if len(x.shape) != len(first) or without(x.shape, (axis,)) != without(first, (axis,)):
            raise ShapeError(f"concatenate needs arrays that differ along axis {axis} only.",
                             given=[f"array 0: {typed(parts[0])}", f"array {k}: {typed(x)}"])


def alike(parts, dtype):
    """The values in one dtype."""
    dtype = join([kind(x) for x in parts]) if dtype is None else as_dtype(dtype)
    return [in_dtype(x, dtype) for x in parts]


def stack(arrays, axis=0, dtype=None):
    """The arrays along a new axis.   n[*s] n[*s] … → n[count,*s], the new axis at `axis`

    Raises ShapeError when their shapes differ.

    >>> stack([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    refuse_array(axis, "stack")
    parts = alike(parts_of(arrays, "stack"), dtype)
    shapes = [x.shape for x in parts]
    for k, s in enumerate(shapes):
        if s != shapes[0]:
            raise ShapeError("stack needs arrays of one shape.",
                             given=[f"array 0: {typed(parts[0])}", f"array {k}: {typed(parts[k])}"],
                             fix="concatenate joins arrays along an axis that they have")
    k = axis_of(axis, len(shapes[0]) + 1, "stack")
    wide = (*shapes[0][:k], 1, *shapes[0][k:])
    return ops.concatenate(*[ops.reshape(x, shape=wide) for x in parts], axis=k)


def vstack(tup, dtype=None):
    """The arrays below each other: along axis 0, vectors as rows.

    >>> import fgrad.numpy as fnp
    >>> fnp.vstack([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], i32[2,2])
    """
    return concatenate([atleast_2d(x) for x in parts_of(tup, "vstack")], 0, dtype)


def hstack(tup, dtype=None):
    """The arrays beside each other: along axis 1, vectors along axis 0.

    >>> import fgrad.numpy as fnp
    >>> fnp.hstack([[1, 2], [3]])
    Array([1, 2, 3], i32[3])
    """
    parts = [atleast_1d(x) for x in parts_of(tup, "hstack")]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype)


def dstack(tup, dtype=None):
    """The arrays behind each other, along axis 2.

    >>> import fgrad.numpy as fnp
    >>> fnp.dstack([[1, 2], [3, 4]]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in parts_of(tup, "dstack")], 2, dtype)


def column_stack(tup):
    """Vectors as the columns of a matrix; matrices are put beside each other.

    >>> import fgrad.numpy as fnp
    >>> fnp.column_stack([[1, 2], [3, 4]])
    Array([[1, 3],
           [2, 4]], i32[2,2])
    """
    parts = [as_value(x) for x in parts_of(tup, "column_stack")]
    return concatenate([transpose(atleast_2d(x)) if x.ndim < 2 else x for x in parts], 1)


def append(arr, values, axis=None):
    """values after arr along an axis; None: both flat.

    >>> import fgrad.numpy as fnp
    >>> fnp.append([1, 2], 3)
    Array([1, 2, 3], i32[3])
    """
    return concatenate([arr, values], axis)


# ---------------------------------------------------------------------------- splitting

def split(ary, indices_or_sections, axis=0):
    """The array in equal parts, or cut before the indices given: a list.

    Raises ShapeError when it does not divide into that many equal parts.

    >>> import fgrad.numpy as fnp
    >>> fnp.split([1, 2, 3, 4], 2)
    [Array([1, 2], i32[2]), Array([3, 4], i32[2])]
    >>> [x.shape for x in fnp.split(fnp.ones(4), [3])]
    [(3,), (1,)]
    """
    x = lifted(ary)
    n = x.shape[axis_of(axis, x.ndim, "split")]
    if not is_list(indices_or_sections) and n % max(operator.index(indices_or_sections), 1):
        raise ShapeError(f"split cannot divide {n} elements into "
                         f"{indices_or_sections} equal parts.",
                         given=typed(x), fix="array_split makes parts of nearly equal size")
    return array_split(x, indices_or_sections, axis)


def is_list(x):
    """Is it a list, or an array with axes, and no number?"""
    return hasattr(x, "__iter__") and getattr(x, "shape", None) != ()


def array_split(ary, indices_or_sections, axis=0):
    """The array in parts of nearly equal size, the first larger, or cut before the indices.

    >>> import fgrad.numpy as fnp
    >>> fnp.array_split([1, 2, 3], 2)
    [Array([1, 2], i32[2]), Array([3], i32[1])]
    """
    x = lifted(ary)
    k = axis_of(axis, x.ndim, "array_split")
    n = x.shape[k]
    if is_list(indices_or_sections):
        given = [operator.index(c) for c in indices_or_sections]
        cuts = [0, *[min(max(c + n if c < 0 else c, 0), n) for c in given], n]
    else:
        count = operator.index(indices_or_sections)
        if count < 1:
            raise RangeError(f"an array cannot be split into {count} parts.")
        cuts = [j * (n // count) + min(j, n % count) for j in range(count + 1)]
    return [ops.reduce.rows(x, a, max(a, b), k) for a, b in zip(cuts, cuts[1:])]


def vsplit(ary, indices_or_sections):
    """split along axis 0.

    >>> import fgrad.numpy as fnp
    >>> [x.shape for x in fnp.vsplit(fnp.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return split(ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    """split along axis 1; along axis 0 of a vector.

    >>> import fgrad.numpy as fnp
    >>> [x.shape for x in fnp.hsplit(fnp.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    return split(ary, indices_or_sections, 1 if as_value(ary).ndim > 1 else 0)


def unstack(x, /, axis=0):
    """The parts of an array along an axis, which they lose: a tuple.

    >>> import fgrad.numpy as fnp
    >>> fnp.unstack([[1, 2], [3, 4]])
    (Array([1, 2], i32[2]), Array([3, 4], i32[2]))
    """
    x = moveaxis(x, axis, 0)
    return tuple(x[k] for k in range(x.shape[0]))
