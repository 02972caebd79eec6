"""Slices that start at indices known when the program runs, by JAX's names.

    block = dynamic_slice(x, (row, 0), (4, x.shape[1]))

A start beyond the end is moved inside, and a negative one counts from the end.  Relies on `lax` for
what it has in common with other slices, and on `ops`; `lax` gives these names to users.
"""

from __future__ import annotations

from . import ops
from .arguments import lifted
from .core import as_value
from .errors import ShapeError, bound
from .lax import checked, expand_dims, ints_of, listed, squeeze
from .numpy.axes import axis_of
from .ops.index import roomy
from .types import I32, I64


def start_of(index, n):
    """An index that may be negative as a scalar that is not."""
    if type(index) is int:
        index = min(max(index + n if index < 0 else index, 0), n)
        return ops.full(shape=(), value=index, dtype=I32 if n < 1 << 31 else I64)
    index = roomy(as_value(index))
    if index.dtype.kind != "i":
        return index
    return ops.select(ops.lt(index, 0), ops.add(index, n), index)


def starts_of(x, indices, name):
    """An index for each axis as scalars that are not negative.  Raises ShapeError for another
    number of them.
    """
    indices = tuple(listed(indices))
    if len(indices) != x.ndim:
        raise ShapeError(f"{name} needs an index for each axis.", given=[
            f"x: {x.type}", f"start_indices: {len(indices)} of them"])
    return [start_of(i, n) for i, n in zip(indices, x.shape)]


def dynamic_slice(x, start_indices, slice_sizes):
    """The block of these sizes that starts at indices known when it runs, moved inside if need be.

    n[*s], an integer i[] for each axis → n[*slice_sizes].  Negative indices count from the end.
    Raises ShapeError for another number of indices, and for sizes beyond those of x.

    >>> dynamic_slice([0, 1, 2, 3, 4, 5], (4,), (3,)).tolist()
    [3, 4, 5]
    """
    x = lifted(x)
    starts = starts_of(x, start_indices, "dynamic_slice")
    sizes = ints_of(slice_sizes, "dynamic_slice", "slice_sizes")
    return checked(ops.dynamic_slice, x, *starts, sizes=sizes)


def dynamic_update_slice(x, update, start_indices):
    """x with `update` written at indices known when it runs, moved inside if need be.

    n[*s] n[*u], an integer i[] for each axis → n[*s].  Raises as dynamic_slice does.

    >>> dynamic_update_slice([0, 1, 2, 3, 4, 5], [8, 9], (1,)).tolist()
    [0, 8, 9, 3, 4, 5]
    """
    x = as_value(x)
    starts = starts_of(x, start_indices, "dynamic_update_slice")
    return checked(ops.dynamic_update_slice, x, as_value(update), *starts)


def along(x, index, axis, name):
    """(axis, starts): the index at one axis, 0 at the others."""
    axis = axis_of(axis, x.ndim, name)
    return axis, [index if a == axis else 0 for a in range(x.ndim)]


def dynamic_slice_in_dim(x, start_index, slice_size, axis=0):
    """dynamic_slice along one axis.   n[…,m,…] i[] → n[…,slice_size,…]

    >>> dynamic_slice_in_dim([[1, 2, 3]], 1, 2, axis=1).tolist()
    [[2, 3]]
    """
    x = lifted(x)
    axis, starts = along(x, start_index, axis, "dynamic_slice_in_dim")
    return dynamic_slice(x, starts, [slice_size if a == axis else n for a, n in enumerate(x.shape)])


def dynamic_index_in_dim(x, index, axis=0, keepdims=True):
    """x[index] along one axis, for an index known when it runs, moved inside if need be.

    n[…,m,…] i[] → n[…,1,…], or n[…,…] unless keepdims.

    >>> dynamic_index_in_dim([[1, 2], [3, 4]], 1, keepdims=False).tolist()
    [3, 4]
    """
    out = dynamic_slice_in_dim(x, index, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


def dynamic_update_slice_in_dim(x, update, start_index, axis):
    """dynamic_update_slice along one axis.   n[…,m,…] n[…,k,…] i[] → n[…,m,…]

    >>> dynamic_update_slice_in_dim([0, 1, 2, 3], [8, 9], 2, axis=0).tolist()
    [0, 1, 8, 9]
    """
    x = as_value(x)
    return dynamic_update_slice(x, update, along(x, start_index, axis,
                                                 "dynamic_update_slice_in_dim")[1])


def dynamic_update_index_in_dim(x, update, index, axis):
    """x with `update` as its row `index` along one axis; update may lack that axis.

    >>> dynamic_update_index_in_dim([0, 1, 2, 3], 9, 2, axis=0).tolist()
    [0, 1, 9, 3]
    """
    x, update = as_value(x), as_value(update)
    axis, starts = along(x, index, axis, "dynamic_update_index_in_dim")
    if update.ndim < x.ndim:
        update = expand_dims(update, (axis,))
    return dynamic_update_slice(x, update, starts)


bound(globals())
