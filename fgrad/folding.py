"""Reductions by a function that the user gives: `lax.reduce` and `lax.reduce_window`.

Functions that are reductions of their own become those; another one is applied to all neighbours at
once, again and again.  Relies on `ops`, `vmap` and the functions of `lax`, which gives its names.
"""

from __future__ import annotations

import math

import numpy as np

from . import convolution, lax, ops, tree
from . import numpy as fnp
from .core import as_value
from .errors import ShapeError
from .numpy.axes import axis_of
from .scalar import REDUCTIONS
from .transforms import vmap
from .types import BOOL, SCALARS

MONOIDS = {
    ops.add: ops.reduce_sum, ops.mul: ops.reduce_prod,
    ops.max: ops.reduce_max, ops.min: ops.reduce_min,
    fnp.add: ops.reduce_sum, fnp.multiply: ops.reduce_prod,
    fnp.maximum: ops.reduce_max, fnp.minimum: ops.reduce_min}
WINDOWS = {ops.add: "sum", ops.max: "max", ops.min: "min", fnp.add: "sum", fnp.maximum: "max",
           fnp.minimum: "min"}
OF_BOOLS = {ops.or_: "max", ops.and_: "min", fnp.logical_or: "max", fnp.logical_and: "min"}


def reduce(operands, init_values, computation, dimensions):
    """What computation(a, b) makes of init_values and all elements along the dimensions.

    n[*s] n[] → n[s without dimensions].  Operands may be a tree of arrays of one shape; then so are
    init_values, a and b.  The computation is one of numbers, and associative.  lax.add, mul, max
    and min are reductions; another one is applied to all neighbours at once, ⌈log₂(n + 1)⌉ times.
    Raises ShapeError for operands of several shapes, AxisError for a dimension that is not there.

    >>> reduce(fnp.array([3, 4, 5]), 2, lambda a, b: a * b % 7, (0,)).item()
    1
    """
    xs, starts = tree.map(as_value, operands), tree.map(as_value, init_values)
    leaves = of_one_shape(xs, "reduce")
    ndim = leaves[0].ndim
    axes = tuple(sorted(axis_of(k, ndim, "reduce") for k in dimensions))
    if computation in MONOIDS and xs is leaves[0]:
        out = MONOIDS[computation](xs, axes=axes)
        return computation(spread(starts, out), out)
    out = folded(vmap(computation), tree.map(lambda x, a: rows(x, a, axes), xs, starts))
    shape = tuple(n for k, n in enumerate(leaves[0].shape) if k not in axes)
    return tree.map(lambda x: ops.reshape(x, shape=shape), out)


def of_one_shape(xs, name):
    """The arrays of a tree.  Raises ShapeError unless they have one shape."""
    leaves = tree.leaves(xs)
    if len({x.shape for x in leaves}) != 1:
        raise ShapeError(f"{name} needs operands of one shape.", given=[
            str(x.type) for x in leaves])
    return leaves


def spread(start, like):
    """A number as an array of the dtype and shape of another."""
    start = ops.convert(start, dtype=like.dtype)
    return ops.broadcast(start, shape=like.shape, axes=tuple(range(like.ndim)))


def rows(x, start, axes):
    """n[1 + count, columns]: the number `start`, then the elements along the axes, in order."""
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    count, columns = [math.prod(x.shape[k] for k in part) for part in (axes, rest)]
    x = ops.reshape(ops.transpose(x, perm=(*axes, *rest)), shape=(count, columns))
    first = ops.full(shape=(1, columns), value=0, dtype=x.dtype)
    return ops.concatenate(spread(start, first), x, axis=0)


def folded(computation, xs):
    """All rows made one by a computation of vectors: neighbours first, in their order."""
    count, columns = tree.leaves(xs)[0].shape
    while count > 1:
        pairs = count // 2
        even, odd = [tree.map(lambda x: taken(x, first, 2 * pairs, 2), xs) for first in (0, 1)]
        made = computation(*[tree.map(flat, part) for part in (even, odd)])
        made = tree.map(lambda x: ops.reshape(x, shape=(pairs, columns)), made)
        xs = tree.map(lambda x, new: ops.concatenate(new, taken(x, 2 * pairs, count, 1), axis=0),
                      xs, made)
        count -= pairs
    return xs


def taken(x, start, stop, step):
    """Rows of a matrix."""
    return ops.slice(x, start=(start, 0), stop=(stop, x.shape[1]), stride=(step, 1))


def flat(x):
    """The elements of an array as a vector."""
    return ops.reshape(x, shape=(x.size,))


# ---------------------------------------------------------------------------- windows

def reduce_window(operand, init_value, computation, window_dimensions, window_strides, padding,
                  base_dilation=None, window_dilation=None):
    """What computation(a, b) makes of init_value and all elements of each sliding window.

    Every window begins with init_value, and padding counts as init_value.  window_dimensions and
    window_strides have an entry for each axis; padding is "SAME", "VALID" or pairs (low, high);
    base_dilation puts elements of init_value between those of the operand.  The computation is
    associative; operand may be a tree of arrays of one shape, and then so are init_value, a and b.
    lax.add, max and min, and of bools lax.bitwise_or and bitwise_and, are operations of their own;
    another computation is applied to all windows of 1, 2, 4 … elements of an axis at once.
    Raises ShapeError for operands of several shapes.

    >>> reduce_window(fnp.arange(5.0), -float("inf"), lax.max, (2,), (2,), "VALID").tolist()
    [1.0, 3.0]
    >>> reduce_window(fnp.arange(1.0, 6.0), 1.0, lax.mul, (3,), (1,), "VALID").tolist()
    [6.0, 24.0, 60.0]
    """
    xs = tree.map(as_value, operand)
    first, *_ = of_one_shape(xs, "reduce_window")
    alone = xs is first
    window, stride, dilation, base = (
        convolution.per_axis(1 if value is None else value, first.ndim, name) for value, name in (
            (window_dimensions, "window_dimensions"), (window_strides, "window_strides"),
            (window_dilation, "window_dilation"), (base_dilation, "base_dilation")))
    sizes = [max(0, (n - 1) * d + 1) for n, d in zip(first.shape, base)]
    pairs = convolution.padding_pairs(padding, sizes, window, stride, dilation)
    pads = [(low, high, d - 1) for (low, high), d in zip(pairs, base)]
    if any(n for config in pads for n in config):
        xs = tree.map(lambda x, start: lax.pad(x, start, pads), xs, init_value)
    known = {**WINDOWS, **OF_BOOLS} if first.dtype == BOOL else WINDOWS
    how = known.get(computation) if alone else None
    if how is None:
        out = over_windows(computation, xs, window, stride, dilation)
        return computation(tree.map(lax.wide, init_value, out), out)
    out = convolution.reduce_window(xs, how, window, stride, "VALID", dilation)
    number = isinstance(init_value, (*SCALARS, np.generic))
    neutral = number and init_value == REDUCTIONS[how][1](first.dtype)
    return out if neutral else computation(out, lax.wide(init_value, out))


def over_windows(computation, xs, window, stride, dilation):
    """All windows of each axis, one axis after another."""
    for axis, (n, step, apart) in enumerate(zip(window, stride, dilation)):
        if n > 1 or step > 1:
            xs = along(computation, xs, axis, n, step, apart)
    return xs


def along(computation, xs, axis, n, step, apart):
    """Windows of n elements of an axis, so far apart, of which each step-th is wanted.

    A window is one for each bit of n: of 1, 2, 4 … elements, in their order.
    """
    def part(xs, start, stop, step=1):
        return tree.map(lambda x: lax.slice_in_dim(x, start, stop, step, axis), xs)

    size = tree.leaves(xs)[0].shape[axis]
    count = max(0, size - (n - 1) * apart)
    if not count:
        return part(xs, 0, 0)
    out, done, width = None, 0, 1                # xs: the windows of `width` elements
    while True:
        if n & width:
            here = part(xs, done * apart, done * apart + count)
            out = here if out is None else computation(out, here)
            done += width
        if done == n:
            return part(out, 0, count, step)
        size -= width * apart
        xs = computation(part(xs, 0, size), part(xs, width * apart, width * apart + size))
        width *= 2
