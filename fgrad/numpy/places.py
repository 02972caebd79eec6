"""Where elements are not 0.

How many there are is known of known values only; while tracing with jit a `size` says how many
places are given, and `fill_value` what stands behind them where there are fewer.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..core import Array, as_value
from ..errors import ArgumentError, ShapeError
from ..text import counted
from ..types import BOOL, I32
from .axes import axis_of, typed
from .indexing import known_value, take
from .promotion import broadcast_to, cast, same


def nonzero(a, *, size=None, fill_value=None):
    """The places of elements that are not 0, one index array per axis.   n[*s] → i32[k] …

    size: so many places; then it compiles.  Behind the last one stands `fill_value` (0), or one
    for each axis.  Raises ConcretizationError while tracing with jit without a size.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fnp.nonzero(fnp.array([0, 3, 5]))
    (Array([1, 2], i32[2]),)
    >>> fgrad.jit(lambda x: fnp.nonzero(x, size=3, fill_value=-1))(fnp.array([0, 3, 5]))
    (Array([ 1,  2, -1], i32[3]),)
    """
    x = as_value(a)
    if not x.ndim:
        raise ShapeError("nonzero needs an array of at least one axis.", given=typed(x),
                         fix="x[None], an array of one element")
    mask = x if x.dtype == BOOL else same(ops.ne, x, 0)
    if size is not None:
        return first_places(mask, int(size), fills(fill_value, x.ndim))
    value = known_value(mask, "how many elements are not 0 is not known while tracing.",
                        fix=["give size=, so many places", "where(mask, x, 0) keeps the shape"])
    return tuple([Array(i.astype(I32)) for i in np.nonzero(value)])


def fills(fill_value, ndim):
    """What stands behind the places, for each axis."""
    if not isinstance(fill_value, tuple):
        return (fill_value or 0,) * ndim
    if len(fill_value) != ndim:
        raise ArgumentError(f"{counted(len(fill_value), 'fill value')} for an array of "
                            f"{counted(ndim, 'axis', 'axes')}.",
                            expected="a number, or one for each axis")
    return fill_value


def first_places(mask, size, fills):
    """The first `size` places where the mask holds, in order, an index array per axis.

    Each finds its slot by how many are before it; all others are dropped.
    """
    flat = ops.reshape(mask, shape=(mask.size,))
    before = ops.cumsum(cast(flat, I32), axis=0, reverse=False)
    slot = ops.select(flat, same(ops.sub, before, 1), ops.full_like(before, size))
    empty = ops.full(shape=(size,), value=0, dtype=I32)
    rest = ops.scatter(empty, slot, ops.iota(shape=flat.shape, axis=0, dtype=I32), axes=(0,),
                       mode="drop")
    count = ops.reduce_sum(cast(flat, I32), axes=(0,))
    there = ops.lt(ops.iota(shape=(size,), axis=0, dtype=I32), broadcast_to(count, (size,)))
    out = []
    for n, fill in zip(reversed(mask.shape), reversed(fills)):
        n = max(n, 1)
        out.append(ops.select(there, same(ops.rem, rest, n), ops.full_like(rest, fill)))
        rest = same(ops.div, rest, n)
    return tuple(out[::-1])


def flatnonzero(a, *, size=None, fill_value=None):
    """The places of elements that are not 0 in the flat array; `size` as for nonzero.

    >>> import fgrad.numpy as fnp
    >>> fnp.flatnonzero([0, 3, 5])
    Array([1, 2], i32[2])
    """
    x = as_value(a)
    return nonzero(ops.reshape(x, shape=(x.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a, *, size=None, fill_value=None):
    """The places of elements that are not 0, one row each; `size` as for nonzero.

    >>> import fgrad.numpy as fnp
    >>> fnp.argwhere([[0, 3], [5, 0]])
    Array([[0, 1],
           [1, 0]], i32[2,2])
    """
    x = as_value(a)
    if not x.ndim:
        return ops.full(shape=(int(bool(x)) if size is None else int(size), 0), value=0, dtype=I32)
    columns = [ops.reshape(p, shape=(p.size, 1))
               for p in nonzero(x, size=size, fill_value=fill_value)]
    return ops.concatenate(*columns, axis=1)


def compress(condition, a, axis=None, *, size=None, fill_value=0):
    """The elements along an axis where the condition holds; so many with a `size`, as for nonzero.

    The condition is known while tracing, or there is a size.

    >>> import fgrad.numpy as fnp
    >>> fnp.compress([True, False, True], [1, 2, 3])
    Array([1, 3], i32[2])
    >>> fnp.compress([True, False, True], [1, 2, 3], size=4, fill_value=9)
    Array([1, 3, 9, 9], i32[4])
    """
    if size is None:
        return take(a, flatnonzero(condition), axis)
    x = as_value(a)
    outside = x.size if axis is None else x.shape[axis_of(axis, x.ndim, "compress")]
    return take(x, flatnonzero(condition, size=size, fill_value=outside), axis, "fill", fill_value)
