"""Reductions by a function that the user gives: `lax.reduce`.

Functions that are reductions of their own become those; another one is applied to all neighbours at
once, again and again.  Relies on `ops` and `vmap`; `fgrad.lax` relies on it.
"""

from __future__ import annotations

import math

from . import numpy as fnp
from . import ops, tree
from .core import as_value
from .errors import ShapeError
from .numpy.axes import axis_of
from .transforms import vmap

MONOIDS = {
    ops.add: ops.reduce_sum, ops.mul: ops.reduce_prod,
    ops.max: ops.reduce_max, ops.min: ops.reduce_min,
    fnp.add: ops.reduce_sum, fnp.multiply: ops.reduce_prod,
    fnp.maximum: ops.reduce_max, fnp.minimum: ops.reduce_min}


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
    leaves = tree.leaves(xs)
    if len({x.shape for x in leaves}) != 1:
        raise ShapeError("reduce needs operands of one shape.", given=[str(x.type) for x in leaves])
    ndim = leaves[0].ndim
    axes = tuple(sorted(axis_of(k, ndim, "reduce") for k in dimensions))
    if computation in MONOIDS and xs is leaves[0]:
        out = MONOIDS[computation](xs, axes=axes)
        return computation(spread(starts, out), out)
    out = folded(vmap(computation), tree.map(lambda x, a: rows(x, a, axes), xs, starts))
    shape = tuple(n for k, n in enumerate(leaves[0].shape) if k not in axes)
    return tree.map(lambda x: ops.reshape(x, shape=shape), out)


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
