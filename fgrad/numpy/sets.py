"""Sets as sorted vectors: unique elements, membership, union, intersection.

How many elements a result has depends on values: without `size` these need them, so that they do
not compile; with `size` the result has that many, cut or filled up with `fill_value` (by default
its smallest element, of a difference 0), as in JAX.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .. import ops
from ..core import Array, array_in, as_value
from ..types import I32, default_int
from .axes import axis_of
from .contract import numbers
from .elementwise import isnan
from .indexing import known_value
from .joining import concatenate
from .places import compress
from .promotion import binary, broadcast_to, cast, of_one_dtype, same
from .reductions import any as any_of
from .reductions import cumsum
from .reductions import min as least
from .shape import moveaxis, ravel

UniqueAllResult = namedtuple("UniqueAllResult", "values indices inverse_indices counts")
UniqueCountsResult = namedtuple("UniqueCountsResult", "values counts")
UniqueInverseResult = namedtuple("UniqueInverseResult", "values inverse_indices")
UNKNOWN = "needs values, which are not known while tracing."


# ---------------------------------------------------------------------------- unique

def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *,
           equal_nan=True, size=None, fill_value=None):
    """The different elements of an array, in order; also their first places, and so on.

    axis: the different slices along it instead.  size: so many, as for the other functions here;
    then it compiles.

    >>> unique([3, 1, 3]).tolist(), unique([3, 1, 3], size=3).tolist()
    ([1, 3], [1, 3, 1])
    """
    x = as_value(ar)
    wanted = (return_index, return_inverse, return_counts)
    if size is not None:
        shape, k = x.shape, axis
        if axis is None:
            x, k = ops.reshape(x, shape=(x.size,)), 0
        else:
            k = axis_of(axis, x.ndim, "unique")
            shape = shape[k:k + 1]
        values, *out = of_size(moveaxis(x, k, 0), size, fill_value, shape, equal_nan)
        found = (moveaxis(values, 0, k), *[v for v, want in zip(out, wanted) if want])
        return found if any(wanted) else found[0]
    value = known_value(x, f"unique {UNKNOWN}", fix=["give size=", "sort keeps the shape"])
    axis = None if axis is None else axis_of(axis, x.ndim, "unique")
    out = np.unique(value, *wanted, axis=axis, equal_nan=equal_nan)
    if not isinstance(out, tuple):
        return array_in(out, x.dtype)
    counts = [cast(Array(np.asarray(i)), default_int()) for i in out[1:]]
    return (array_in(out[0], x.dtype), *counts)


def of_size(x, size, fill, shape, equal_nan):
    """(values, first places, inverse, counts) of what lies along axis 0, `size` of each but the
    inverse."""
    if not x.size:
        empty = ops.full(shape=(size,), value=0, dtype=I32)
        values = ops.full(shape=(size, *x.shape[1:]), value=fill or 0, dtype=x.dtype)
        return values, empty, ops.full(shape=shape, value=0, dtype=I32), empty
    columns = ops.reshape(x, shape=(x.shape[0], x.size // x.shape[0]))
    places = ops.iota(shape=x.shape[:1], axis=0, dtype=I32)
    order = ops.order(*[columns[:, j] for j in range(columns.shape[1])], axis=0)
    ordered = ops.gather(columns, order, axes=(0,))
    differs = same(ops.ne, ordered[1:], ordered[:-1])
    if equal_nan:
        alike = same(ops.and_, isnan(ordered[1:]), isnan(ordered[:-1]))
        differs = same(ops.and_, differs, ops.not_(alike))
    differs = ops.reduce_or(differs, axes=(1,))
    first = concatenate([ops.full(shape=(1,), value=True, dtype=np.dtype(bool)), differs])
    number = same(ops.sub, cumsum(cast(first, I32)), 1)      # which different element each is
    slots = ops.full(shape=(size,), value=0, dtype=I32)
    count = ops.scatter(slots, number, ops.full_like(number, 1), axes=(0,), mode="drop", how="add")
    start = ops.scatter(ops.full_like(slots, x.shape[0]), number, places, axes=(0,), mode="drop",
                        how="min")
    there = same(ops.gt, count, 0)
    picked = ops.select(there, start, 0)
    values, indices = [ops.gather(v, picked, axes=(0,)) for v in (ordered, order)]
    values = ops.reshape(values, shape=(size, *x.shape[1:]))
    if fill is not None:
        there = ops.broadcast(there, shape=values.shape, axes=tuple(range(1, x.ndim)))
        values = ops.select(there, values, cast(binary(ops.add, ops.zeros_like(values), fill),
                                                values.dtype))
    inverse = ops.scatter(ops.full_like(order, 0), order, number, axes=(0,), mode="drop")
    return values, indices, ops.reshape(inverse, shape=shape), count


def unique_values(x, /, *, size=None, fill_value=None):
    """The different elements.

    >>> import fgrad.numpy as fnp
    >>> fnp.unique_values([3, 1, 3])
    Array([1, 3], i32[2])
    """
    return unique(x, size=size, fill_value=fill_value, equal_nan=False)


def unique_counts(x, /, *, size=None, fill_value=None):
    """(values, counts)

    >>> import fgrad.numpy as fnp
    >>> values, counts = fnp.unique_counts([3, 1, 3])
    >>> values, counts
    (Array([1, 3], i32[2]), Array([1, 2], i32[2]))
    """
    return UniqueCountsResult(*unique(x, return_counts=True, size=size, fill_value=fill_value,
                                      equal_nan=False))


def unique_inverse(x, /, *, size=None, fill_value=None):
    """(values, inverse_indices)

    >>> import fgrad.numpy as fnp
    >>> values, inverse = fnp.unique_inverse([3, 1, 3])
    >>> values, inverse
    (Array([1, 3], i32[2]), Array([1, 0, 1], i32[3]))
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, size=size, fill_value=fill_value,
                                       equal_nan=False))


def unique_all(x, /, *, size=None, fill_value=None):
    """(values, indices, inverse_indices, counts)

    >>> import fgrad.numpy as fnp
    >>> fnp.unique_all([3, 1, 3]).counts
    Array([1, 2], i32[2])
    """
    return UniqueAllResult(*unique(x, True, True, True, size=size, fill_value=fill_value,
                                   equal_nan=False))


# ---------------------------------------------------------------------------- membership

def isin(element, test_elements, assume_unique=False, invert=False):
    """Is each element among test_elements?   n[*s] n[*t] → bool[*s]

    One comparison with every test element, which compiled code fuses into one loop.

    >>> isin([1, 2, 3], [3, 1]).tolist()
    [True, False, True]
    """
    x, y = numbers(element, test_elements)
    y = ops.reshape(y, shape=(y.size,))
    wide = (*x.shape, y.size)
    equal = same(ops.eq, ops.broadcast(x, shape=wide, axes=(x.ndim,)),
                 ops.broadcast(y, shape=wide, axes=tuple(range(x.ndim))))
    found = any_of(equal, -1)
    return ops.not_(found) if invert else found


def union1d(ar1, ar2, *, size=None, fill_value=None):
    """The different elements of both, in order.

    >>> import fgrad.numpy as fnp
    >>> fnp.union1d([1, 2], [2, 3])
    Array([1, 2, 3], i32[3])
    """
    both = concatenate([ravel(x) for x in numbers(ar1, ar2)])
    return unique(both, size=size, fill_value=fill_value)


def known(name, *arrays):
    """(the NumPy values of arrays, the dtype that they make together)."""
    values = of_one_dtype(*arrays)
    return [known_value(x, f"{name} {UNKNOWN}", fix="isin keeps the shape")
            for x in values], values[0].dtype


def different(x):
    """(the different elements of a row, in order, their first places, which of them there are):
    as many of each as the row has.
    """
    values, places, _, count = of_size(x, x.size, None, x.shape, True)
    return values, places, same(ops.gt, count, 0)


def kept(keep, values, size, fill):
    """The first `size` of the values that are to be kept, filled up; by the first where fill is
    None.
    """
    found, count = compress(keep, values, size=size), ops.reduce_sum(cast(keep, I32), axes=(0,))
    fill = found[:1] if fill is None else cast(as_value(fill), found.dtype)
    there = same(ops.lt, ops.iota(shape=(size,), axis=0, dtype=I32), broadcast_to(count, (size,)))
    return ops.select(there, found, broadcast_to(fill, (size,)))


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False, *, size=None,
                fill_value=None):
    """The different elements that are in both, in order; also their first places in each.

    Places are filled up with the number of elements of the array.

    >>> import fgrad.numpy as fnp
    >>> fnp.intersect1d([1, 2], [2, 3])
    Array([2], i32[1])
    """
    if size is not None:
        x, y = [ravel(v) for v in numbers(ar1, ar2)]
        values, first, there = different(x)
        keep = same(ops.and_, there, isin(values, y))
        pairs = x.size, y.size
        equal = same(ops.eq, broadcast_to(values[:, None], pairs), broadcast_to(y, pairs))
        places = ops.iota(shape=pairs, axis=1, dtype=I32)
        second = least(ops.select(equal, places, y.size), 1, initial=y.size)
        found = kept(keep, values, size, fill_value)
        if not return_indices:
            return found
        return found, kept(keep, first, size, x.size), kept(keep, second, size, y.size)
    values, dtype = known("intersect1d", ar1, ar2)
    out = np.intersect1d(*values, assume_unique, return_indices)
    if not return_indices:
        return array_in(out, dtype)
    return tuple([array_in(out[0], dtype), *[cast(Array(i), default_int()) for i in out[1:]]])


def setdiff1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    """The different elements of the first that the second lacks, in order.

    >>> import fgrad.numpy as fnp
    >>> fnp.setdiff1d([1, 2], [2, 3])
    Array([1], i32[1])
    """
    if size is not None:
        x, y = [ravel(v) for v in numbers(ar1, ar2)]
        values, _, there = different(x)
        keep = same(ops.and_, there, isin(values, y, invert=True))
        return kept(keep, values, size, 0 if fill_value is None else fill_value)
    values, dtype = known("setdiff1d", ar1, ar2)
    return array_in(np.setdiff1d(*values, assume_unique), dtype)


def setxor1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    """The different elements that are in exactly one of both, in order.

    >>> import fgrad.numpy as fnp
    >>> fnp.setxor1d([1, 2], [2, 3])
    Array([1, 3], i32[2])
    """
    if size is not None:
        x, y = [ravel(v) for v in numbers(ar1, ar2)]
        values, _, there = different(concatenate([x, y]))
        both = same(ops.and_, isin(values, x), isin(values, y))
        return kept(same(ops.and_, there, ops.not_(both)), values, size, fill_value)
    values, dtype = known("setxor1d", ar1, ar2)
    return array_in(np.setxor1d(*values, assume_unique), dtype)
