"""Axes and shapes as users give them, made into the sorted tuples that operations take.

Relied on by every other module of `fgrad.numpy`; relies on errors only.
"""

from __future__ import annotations

import functools
import operator

from ..errors import ArgumentError, AxisError, FgradError, RangeError, ShapeError
from ..text import counted, noun_of
from ..types import ArrayType


def int_of(n, error):
    """n as an int.  Raises what error() gives unless it is one."""
    try:
        return operator.index(n)
    except TypeError as raised:
        if isinstance(raised, FgradError) and not isinstance(raised, ArgumentError):
            raise                                # it has no value while a function is compiled
        raise error() from None


def axis_of(axis, ndim, name):
    """One axis, counted from the front.  Raises AxisError when it is out of range."""
    refuse_array(axis, name)
    k = int_of(axis, lambda: ArgumentError(
        f"{name} needs an int for an axis, not {axis!r}.", given=f"axis={axis!r:.60}",
        expected="an int"))
    if not -ndim <= k < ndim:
        raise out_of_range(k, ndim, name)
    return k % ndim


PAIRED = {"max": "fgrad.numpy.maximum(a, b)", "min": "fgrad.numpy.minimum(a, b)", "sum": "a + b",
          "prod": "a * b", "all": "fgrad.numpy.logical_and(a, b)",
          "any": "fgrad.numpy.logical_or(a, b)", "concatenate": "concatenate([a, b])",
          "stack": "stack([a, b])"}      # function: what is meant by giving it two arrays


def refuse_array(axis, name):
    """Raises ArgumentError for an array in the place of an axis."""
    if axis.__class__ is not int and getattr(axis, "shape", ()) != ():
        raise ArgumentError(f"the second argument of {name} is the axis, not an array.",
                            given=f"axis: {typed(axis)}",
                            fix=PAIRED.get(name, "give one array, and axis= by name"))


def out_of_range(axis, ndim, name):
    """The error for an axis that an array lacks."""
    if ndim == 0:
        return AxisError(f"{name}: axis {axis} is out of range for a scalar, which has no axes.",
                         fix="leave the axis out")
    return AxisError(f"{name}: axis {axis} is out of range for an array of "
                     f"{counted(ndim, 'axis', 'axes')}.",
                     expected=f"an axis from {-ndim} to {ndim - 1}")


def axes_of(axis, ndim, name):
    """Sorted axes; None means all of them.

    Raises AxisError for one out of range or given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if axis.__class__ is int:
        return axis_of(axis, ndim, name),
    return tuple(sorted(axes_in_order(axis, ndim, name)))


def axes_in_order(axis, ndim, name):
    """Axes in the order given, an int for one.

    Raises AxisError for one out of range or given twice.
    """
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple([axis_of(a, ndim, name) for a in given])
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: an axis is given twice.", given=f"axis={axis}")
    return axes


def shape_of(shape, name):
    """A shape as a tuple of ints; an int is a shape of one axis.

    Raises ShapeError for negative sizes.
    """
    if hasattr(shape, "__iter__") and getattr(shape, "shape", None) != ():
        sizes = tuple([size_of(n, shape, name) for n in shape])
    else:
        sizes = size_of(shape, shape, name),
    if any(n < 0 for n in sizes):
        raise ShapeError(f"{name}: sizes cannot be negative.", given=f"shape {sizes}")
    return sizes


def size_of(n, shape, name):
    """One size as an int."""
    return int_of(n, lambda: ArgumentError(f"{name} needs a shape of ints.",
                                           given=f"shape={shape!r}"))


def count_of(n, name, what):
    """A number of things as an int.  Raises ArgumentError unless it is one, and not negative."""
    count = int_of(n, lambda: ArgumentError(
        f"{name} needs an int for {what}, not {noun_of(n)}.", given=f"{what}: {n!r:.60}",
        expected="an int"))
    if count < 0:
        raise RangeError(f"{name} needs a number of {what} that is not negative, not {count}.",
                         given=f"{what}: {count}", expected="0 or more")
    return count


@functools.lru_cache(maxsize=4096)
def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to: sizes agree, or are 1.

    Raises ShapeError, naming the axis, where they do not.

    >>> broadcast_shapes((8, 1), (3,))
    (8, 3)
    """
    ndim = max(map(len, shapes), default=0)
    out = []
    for a in range(-ndim, 0):
        sizes = {s[a] for s in shapes if len(s) >= -a} - {1}
        if len(sizes) > 1:
            raise mismatch(shapes, a)
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def mismatch(shapes, axis):
    """The error for shapes that do not broadcast; `axis` counts from the end."""
    sizes = list(dict.fromkeys(s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1))
    given = " and ".join(text_of(s) for s in dict.fromkeys(shapes))
    return ShapeError(
        f"shapes {given} do not broadcast: sizes {' and '.join(map(str, sizes))} meet at axis "
        f"{axis}.",
        expected="equal sizes, or 1, at every axis counted from the end", fix=hints(shapes))


def hints(shapes):
    """Likely mends, the likeliest first."""
    out = []
    if len(shapes) == 2:
        a, b = sorted(shapes, key=len)
        if len(a) == 1 and len(b) == 2 and a[0] == b[0]:
            out.append(f"x[:, None] makes a column of shape ({a[0]},1) of the array of shape "
                       f"{text_of(a)}")
        if len(a) == len(b) == 2 and a == b[::-1]:
            out.append("x.T transposes one of them")
    return out or "reshape one of them; x[:, None] adds an axis of size 1"


def text_of(shape):
    """A shape without spaces: (8,3)."""
    return "(" + ",".join(map(str, shape)) + (",)" if len(shape) == 1 else ")")


def typed(x):
    """The type of an array, for messages."""
    return str(ArrayType(x.dtype, x.shape))
