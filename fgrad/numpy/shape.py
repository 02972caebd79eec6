"""Shapes and order: reshape, transpose, move axes, broadcast, tile, repeat, flip, roll.

Nothing is computed here, and in compiled code nothing is moved either.  Relies on `promotion`.
"""

from __future__ import annotations

import operator

from .. import ops
from ..arguments import lifted
from ..core import Tracer, as_value
from ..errors import ArgumentError, AxisError, ShapeError
from ..types import I32, I64
from .axes import (
    axes_in_order, axes_of, axis_of, count_of, shape_of, size_of, text_of, typed)
from .indexing import around
from .promotion import broadcast_to as spread
from .promotion import cast, same, same_shape


# ------------------------------------------------------------ one array, another shape

def shape(a):
    """The shape of a, as a tuple of ints.

    >>> import fgrad.numpy as fnp
    >>> fnp.shape([[1, 2, 3]])
    (1, 3)
    """
    return as_value(a).shape


def ndim(a):
    """The number of axes of a.

    >>> import fgrad.numpy as fnp
    >>> fnp.ndim([[1, 2, 3]])
    2
    """
    return as_value(a).ndim


def size(a, axis=None):
    """The number of elements of a, or its size along an axis.

    >>> import fgrad.numpy as fnp
    >>> fnp.size([[1, 2, 3]]), fnp.size([[1, 2, 3]], axis=0)
    (3, 1)
    """
    x = as_value(a)
    return x.size if axis is None else x.shape[axis_of(axis, x.ndim, "size")]


def reshape(a, shape, order="C"):
    """The elements, in row-major order, in another shape; one size may be -1 and is filled in.

    n[*s] → n[*shape].  order: "F" reads and fills in column-major order.
    Raises ShapeError when the elements do not fill the shape.

    >>> reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
    x = lifted(a)
    wanted = shape if hasattr(shape, "__iter__") and getattr(shape, "shape",
                                                             None) != () else (shape,)
    full = completed(x, tuple([size_of(n, shape, "reshape") for n in wanted]))
    if order != "C":
        check_order(order, "reshape")
        return transpose(reshape(transpose(x), full[::-1]))
    return ops.reshape(x, shape=full)


def check_order(order, name):
    """Raises ArgumentError unless the order of elements is one of NumPy's that does not depend on
    how they lie in memory.
    """
    if order not in ("C", "F"):
        raise ArgumentError(f"{name} knows row-major and column-major order.",
                            given=f"order={order!r}", expected='"C" or "F"')


def completed(x, shape):
    """The shape with -1 filled in."""
    if -1 not in shape:
        full = shape
    else:
        rest = 1
        for n in shape:
            rest *= n if n != -1 else 1
        k = shape.index(-1)
        full = (*shape[:k], x.size // rest if rest > 0 else 0, *shape[k + 1:])
    count = 1
    for n in full:
        count *= n
    if min(full, default=0) < 0 or count != x.size:
        raise ShapeError(f"reshape cannot make {text_of(shape)} of {text_of(x.shape)}.",
                         given=typed(x),
                         expected=f"a shape with {x.size} elements; one size may be -1")
    return full


def ravel(a, order="C"):
    """The elements in a row, in row-major order; "F": in column-major.   n[*s] → n[size]

    >>> import fgrad.numpy as fnp
    >>> fnp.ravel([[1, 2], [3, 4]])
    Array([1, 2, 3, 4], i32[4])
    """
    x = lifted(a)
    if order != "C":
        return reshape(x, -1, order)
    return ops.reshape(x, shape=(x.size,))


def transpose(a, axes=None):
    """The axes in another order, reversed by default: axis k of the result is axis axes[k] of a.

    >>> import fgrad.numpy as fnp
    >>> fnp.transpose([[1, 2, 3], [4, 5, 6]])
    Array([[1, 4],
           [2, 5],
           [3, 6]], i32[3,2])
    >>> fnp.transpose(fnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = lifted(a)
    if axes is None:
        return ops.transpose(x, perm=tuple(range(x.ndim))[::-1])
    perm = axes_in_order(axes, x.ndim, "transpose")
    if len(perm) != x.ndim:
        raise AxisError("transpose needs every axis once.", given=[typed(x), f"axes={axes}"])
    return ops.transpose(x, perm=perm)


permute_dims = transpose


def matrix_transpose(x, /):
    """Every matrix transposed.   n[…,a,b] → n[…,b,a]

    >>> import fgrad.numpy as fnp
    >>> fnp.matrix_transpose(fnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    return swapaxes(x, -1, -2)


def swapaxes(a, axis1, axis2):
    """Two axes exchanged.

    >>> import fgrad.numpy as fnp
    >>> fnp.swapaxes(fnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = lifted(a)
    first, second = axis_of(axis1, x.ndim, "swapaxes"), axis_of(axis2, x.ndim, "swapaxes")
    perm = list(range(x.ndim))
    perm[first], perm[second] = second, first
    return ops.transpose(x, perm=tuple(perm))


def moveaxis(a, source, destination):
    """Axes moved to other places; the others keep their order.

    >>> import fgrad.numpy as fnp
    >>> fnp.moveaxis(fnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = lifted(a)
    from_, to = [axes_in_order(s, x.ndim, "moveaxis") for s in (source, destination)]
    if len(from_) != len(to):
        raise AxisError("moveaxis needs as many sources as destinations.",
                        given=f"{source} and {destination}")
    perm = [k for k in range(x.ndim) if k not in from_]
    for place, k in sorted(zip(to, from_)):
        perm.insert(place, k)
    return ops.transpose(x, perm=tuple(perm))


def rollaxis(a, axis, start=0):
    """An axis moved back until it stands before `start`.

    >>> import fgrad.numpy as fnp
    >>> fnp.rollaxis(fnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = lifted(a)
    k = axis_of(axis, x.ndim, "rollaxis")
    place = start + x.ndim if start < 0 else start
    return moveaxis(x, k, place - (k < place))


def expand_dims(a, axis):
    """New axes of size 1 at these places of the result.

    >>> expand_dims([1, 2], 0).shape
    (1, 2)
    """
    x = lifted(a)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    try:
        axes = axes_of(axis, x.ndim + count, "expand_dims")
    except AxisError as error:
        error.given = [f"axis={axis}", typed(x)]
        error.sentence = error.sentence.replace("an array of", "a result of")
        raise
    sizes = iter(x.shape)
    wide = tuple(1 if k in axes else next(sizes) for k in range(x.ndim + count))
    return ops.reshape(x, shape=wide)


def squeeze(a, axis=None):
    """Axes of size 1 taken away: all of them, or those given.

    Raises ShapeError for another size.

    >>> import fgrad.numpy as fnp
    >>> fnp.squeeze(fnp.ones((1, 3, 1))).shape, fnp.squeeze(fnp.ones((1, 3, 1)), axis=0).shape
    ((3,), (3, 1))
    """
    x = lifted(a)
    axes = tuple(k for k, n in enumerate(x.shape) if n == 1) if axis is None else axes_of(axis,
                                                                                          x.ndim,
                                                                                          "squeeze")
    if any(x.shape[k] != 1 for k in axes):
        raise ShapeError("squeeze needs axes of size 1.", given=[typed(x), f"axis={axis}"])
    return ops.reshape(x, shape=tuple(n for k, n in enumerate(x.shape) if k not in axes))


def broadcast_to(array, shape):
    """The array repeated to `shape`: axes of size 1 stretch, new axes come in front.

    Raises ShapeError when the shapes do not fit.

    >>> broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return spread(array, shape_of(shape, "broadcast_to"))


def broadcast_arrays(*args):
    """The arrays broadcast to one shape, each of its own dtype.

    >>> import fgrad.numpy as fnp
    >>> [x.shape for x in fnp.broadcast_arrays([1, 2], [[1], [2], [3]])]
    [(3, 2), (3, 2)]
    """
    return same_shape(*map(lifted, args))


def atleast_1d(*arys):
    """The arrays with at least one axis; several give a list.

    >>> import fgrad.numpy as fnp
    >>> fnp.atleast_1d(5).shape
    (1,)
    """
    return each(lambda x: ops.reshape(x, shape=(1,)) if x.ndim == 0 else x, arys)


def atleast_2d(*arys):
    """The arrays with at least two axes, new ones in front; several give a list.

    >>> import fgrad.numpy as fnp
    >>> fnp.atleast_2d([1, 2]).shape
    (1, 2)
    """
    return each(lambda x: ops.reshape(x, shape=(1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x,
                arys)


def atleast_3d(*arys):
    """The arrays with at least three axes, as NumPy places them; several give a list.

    >>> import fgrad.numpy as fnp
    >>> fnp.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    shapes = {0: lambda s: (1, 1, 1), 1: lambda s: (1, *s, 1), 2: lambda s: (*s, 1)}
    return each(lambda x: ops.reshape(x, shape=shapes[x.ndim](x.shape)) if x.ndim < 3 else x, arys)


def each(function, arys):
    """function of the one array, or the list of it of several."""
    out = [function(lifted(x)) for x in arys]
    return out[0] if len(out) == 1 else out


# ---------------------------------------------------------------------------- repeating, turning

def tile(A, reps):
    """The array repeated reps[k] times along axis k.

    >>> import fgrad.numpy as fnp
    >>> fnp.tile([1, 2], 2), fnp.tile([1, 2], (3, 1)).shape
    (Array([1, 2, 1, 2], i32[4]), (3, 2))
    """
    x = lifted(A)
    reps = tuple(reps) if hasattr(reps, "__iter__") else (reps,)
    ndim = max(x.ndim, len(reps))
    reps = (1,) * (ndim - len(reps)) + tuple([count_of(r, "tile", "repeats")
                                                for r in reps])
    sizes = (1,) * (ndim - x.ndim) + x.shape
    wide = tuple(n for pair in zip(reps, sizes) for n in pair)
    x = ops.broadcast(ops.reshape(x, shape=sizes), shape=wide, axes=tuple(range(0, 2 * ndim, 2)))
    return ops.reshape(x, shape=tuple(r * n for r, n in zip(reps, sizes)))


def repeat(a, repeats, axis=None, *, total_repeat_length=None):
    """Every element repeated, `repeats` times or each as often as it says; None: the flat array.

    total_repeat_length: the size of the result along the axis, with which `repeats` may be known
    only when compiled code runs; more is cut off, and of less the last element fills it up.

    >>> import fgrad.numpy as fnp
    >>> fnp.repeat([1, 2], 2), fnp.repeat([[1], [2]], 2, axis=1).shape
    (Array([1, 1, 2, 2], i32[4]), (2, 2))
    """
    x = as_value(a)
    if axis is None:
        x, axis = ravel(x), 0
    k = axis_of(axis, x.ndim, "repeat")
    if total_repeat_length is not None:
        return repeat_to(x, repeats, k, count_of(total_repeat_length, "repeat",
                                                 "total_repeat_length"))
    if hasattr(repeats, "__iter__") and getattr(repeats, "shape", None) != ():
        return repeat_each(x, [count_of(r, "repeat", "repeats") for r in repeats], k)
    times = count_of(repeats, "repeat", "repeats")
    wide = (*x.shape[:k + 1], times, *x.shape[k + 1:])
    out = ops.broadcast(x, shape=wide, axes=(k + 1,))
    return ops.reshape(out, shape=(*x.shape[:k], x.shape[k] * times, *x.shape[k + 1:]))


def repeat_to(x, times, k, size):
    """Row j of axis k repeated times[j] times, in `size` rows."""
    n, times = x.shape[k], spread(as_value(times), (x.shape[k],))
    if size and not n:
        raise ShapeError("repeat has nothing to fill total_repeat_length with.", given=typed(x))
    starts = same(ops.sub, ops.cumsum(times, axis=0, reverse=False), times)
    begun = ops.full(shape=(size,), value=0, dtype=I32).at[starts].add(1, mode="drop")
    rows = same(ops.sub, ops.cumsum(begun, axis=0, reverse=False), 1)
    return x[(slice(None),) * k + (rows,)]


def repeat_each(x, times, k):
    """Row j of axis k repeated times[j] times."""
    if len(times) == 1:
        return repeat(x, times[0], k)
    if len(times) != x.shape[k]:
        raise ShapeError(f"repeat needs one number for each of the {x.shape[k]} elements of axis "
                         f"{k}.",
                         given=f"{len(times)} numbers")
    rows = [j for j, n in enumerate(times) for _ in range(n)]
    return x[(slice(None),) * k + (rows,)]


def flip(m, axis=None):
    """The order of elements along the axes reversed.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.flip([1, 2, 3])
    Array([3, 2, 1], i32[3])
    """
    x = lifted(m)
    return ops.rev(x, axes=axes_of(axis, x.ndim, "flip"))


def flipud(m):
    """flip along axis 0.

    >>> import fgrad.numpy as fnp
    >>> fnp.flipud([[1, 2], [3, 4]])
    Array([[3, 4],
           [1, 2]], i32[2,2])
    """
    return flip(m, 0)


def fliplr(m):
    """flip along axis 1.

    >>> import fgrad.numpy as fnp
    >>> fnp.fliplr([[1, 2], [3, 4]])
    Array([[2, 1],
           [4, 3]], i32[2,2])
    """
    return flip(m, 1)


def rot90(m, k=1, axes=(0, 1)):
    """The plane of two axes turned by k quarters, from the first towards the second.

    >>> import fgrad.numpy as fnp
    >>> fnp.rot90([[1, 2], [3, 4]])
    Array([[2, 4],
           [1, 3]], i32[2,2])
    """
    x = lifted(m)
    first, second = axes_in_order(axes, x.ndim, "rot90")
    if k % 4 == 0:
        return x
    if k % 4 == 2:
        return flip(x, (first, second))
    if k % 4 == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


def roll(a, shift, axis=None):
    """Elements moved along axes; what leaves at one end enters at the other.   n[*s] → n[*s]

    shift: ints that may be known at run time only; one for all axes, or one for each.  Without an
    axis the flat array is moved.  Raises ShapeError for another number of shifts, ArgumentError
    for what is no int.

    >>> roll([1, 2, 3], 1).tolist()
    [3, 1, 2]
    """
    x = lifted(a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = axes_in_order(axis, x.ndim, "roll")
    many = hasattr(shift, "__iter__") and getattr(shift, "shape", None) != ()
    shifts = tuple(shift) if many else (shift,)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ShapeError(f"roll has {len(shifts)} shifts for {len(axes)} axes.",
                         expected="one shift for all axes, or one for each")
    for k, by in zip(axes if len(axes) > 1 else axes * len(shifts),
                     shifts if len(shifts) > 1 else shifts * len(axes)):
        x = rolled(x, by, k)
    return x


def rolled(x, by, k):
    """x rolled along axis k: two parts of x, or one of x beside x where they are not known."""
    n = x.shape[k]
    if isinstance(by, Tracer):
        if by.shape or by.dtype.kind not in "iu":
            raise not_a_shift(typed(by))
        if n < 2:
            return x
        starts = [as_value(0)] * x.ndim
        starts[k] = same(ops.sub, n, cast(around(cast(by, I64), n), I32))
        return ops.dynamic_slice(ops.concatenate(x, x, axis=k), *starts, sizes=x.shape)
    try:
        cut = n - operator.index(by) % n if n else 0
    except TypeError:
        raise not_a_shift(repr(by)) from None
    if cut == n or n == 0:
        return x
    return ops.concatenate(ops.reduce.rows(x, cut, n, k), ops.reduce.rows(x, 0, cut, k), axis=k)


def not_a_shift(given):
    """The error for a shift that is no int."""
    return ArgumentError("roll needs ints for shifts.", given=f"shift={given}")
