"""x.at[index]: a new array in which some elements differ.

    x.at[0].set(1)    x.at[:, 1].add(y)    x.at[i].max(y)    x.at[::2].apply(fnp.exp)

The basic part of an index is written by padding: the update stands in an array of x's shape, with
the operation's neutral element around it.  Integer arrays are one scatter.  Values may be traced; x
is never changed.  A known index out of range raises PositionError, and one known only at run time
is not written, unless a mode says what it means: x.at[i].add(y, mode="drop").
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .. import ops
from ..core import as_value
from ..errors import DtypeError, MutationError, ShapeError, boundary
from ..types import BOOL, SCALARS, SHORT
from .axes import text_of
from .elementwise import power
from .indexing import index_of
from .promotion import binary_float, broadcast_to, cast, full_scalar, kind, join, same


class At:
    """`x.at`: index it to say which elements are meant."""
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return Part(self.x, index)

    def __setitem__(self, index, values):
        raise MutationError("x.at[i] says which elements are meant, and cannot be assigned to.",
                            fix="y = x.at[i].set(values) is a changed copy")

    def __repr__(self):
        return f"{self.x!r}.at"


class Part:
    """Some elements of x; each method gives a new array, with these elements changed.

    mode: what becomes of an index out of range: "drop" writes nothing there, "clip" the nearest
    element, "wrap" the one as many places around.  Without one a known index out of range raises
    PositionError, and one known only at run time is dropped.  indices_are_sorted, unique_indices:
    promises that JAX makes use of; results and speed are the same here.
    """
    __slots__ = ("x", "key")

    def __init__(self, x, key):
        self.x, self.key = x, key

    def get(self, mode=None, fill_value=None, indices_are_sorted=False, unique_indices=False):
        """The elements; mode "fill" reads `fill_value` where an index is out of range, by default
        NaN, of integers the smallest, of unsigned ones the largest, True.

        Without a mode an index known only at run time is clipped.
        """
        return index_of(self.x.shape, self.key, mode).read(self.x, fill_value)

    def set(self, values, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with these elements replaced; of equal indices the last one wins.

        Raises ShapeError when the values do not broadcast to the elements, DtypeError when x cannot
        hold them.

        >>> import fgrad.numpy as fnp
        >>> fnp.zeros(3).at[0].set(1.0).tolist()
        [1.0, 0.0, 0.0]
        """
        return self.update("set", values, mode)

    def add(self, values, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with the values added to these elements; equal indices add up."""
        return self.update("add", values, mode)

    def subtract(self, values, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with the values subtracted from these elements."""
        return self.update("add", values, mode, ops.neg)

    def multiply(self, values, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with these elements multiplied; `mul` is the same."""
        return self.update("mul", values, mode)

    mul = multiply

    def divide(self, values, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with these elements divided, by each of the values of equal indices; of floats only."""
        return self.by_all(partial(binary_float, ops.div), values, mode)

    def power(self, values, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with these elements raised to a power, to the product of those of equal indices."""
        return self.by_all(power, values, mode)

    def min(self, values, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with these elements, or the values where those are smaller."""
        return self.update("min", values, mode)

    def max(self, values, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with these elements, or the values where those are larger."""
        return self.update("max", values, mode)

    def apply(self, function, mode=None, indices_are_sorted=False, unique_indices=False):
        """x with function(elements) in their place."""
        return self.set(function(self.get(mode, 1)), mode)

    def by_all(self, operation, values, mode):
        """x with operation(elements, values) in their place, of equal indices all values' product.
        """
        if index_of(self.x.shape, self.key, mode).arrays:
            one = ops.full_like(self.x.settled(), 1)
            values = Part(Part(one, self.key).multiply(values, mode), self.key).get(mode, 1)
        return self.set(operation(self.get(mode, 1), values), mode)

    # -- how --------------------------------------------------------------------------------------

    def update(self, how, values, mode, change=None):
        """x with the values, or what `change` makes of them, combined by `how` with these elements.
        """
        index, x = index_of(self.x.shape, self.key, mode), self.x.settled()
        values = self.fitting(values, index)
        values = values if change is None else change(values)
        if not index.arrays:
            return written(x, index, values, how)
        if x.dtype == BOOL:
            how = {"add": "max", "mul": "min"}.get(how, how)
        y = ops.scatter(index.basic(x), *index.arrays, index.from_place(values), axes=index.axes,
                        mode="clip" if index.mode == "clip" else "drop", how=how)
        return y if index.is_whole and y.shape == x.shape else written(x, index, y, "set")

    def fitting(self, values, index):
        """The values in x's dtype and the shape of the elements."""
        dtype = self.x.settled().dtype
        number = values.__class__ in SCALARS
        made = join([kind(values) if number else kind(values := as_value(values)), dtype])
        if RANK[made.kind] > RANK[dtype.kind]:
            raise DtypeError(f"an array of {SHORT[dtype]} cannot hold {SHORT[made]}.",
                             fix=f"convert the array first: x.astype(\"{made}\")")
        values = full_scalar(values, dtype) if number else cast(values, dtype)
        if len(values.shape) > len(index.result):       # as NumPy, drop leading axes of size 1
            extra = len(values.shape) - len(index.result)
            if set(values.shape[:extra]) == {1}:
                values = ops.reshape(values, shape=values.shape[extra:])
        try:
            return broadcast_to(values, index.result)
        except ShapeError:
            raise ShapeError(f"values of shape {text_of(values.shape)} do not fit into elements "
                             "of shape "
                             f"{text_of(index.result)}.",
                             expected=f"a shape that broadcasts to {text_of(index.result)}",
                             ) from None


for _name, _method in list(vars(Part).items()):
    if callable(_method) and not _name.startswith("_"):
        setattr(Part, _name, boundary(_method))


RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
COMBINE = {"add": ops.add, "mul": ops.mul, "min": ops.min, "max": ops.max}


def written(x, index, values, how):
    """x with the basic part of an index combined with values of its shape."""
    values = ops.reshape(values, shape=index.cut)
    if index.turned:
        values = ops.rev(values, axes=tuple(index.turned))
    if 0 in index.cut:
        return x
    if index.is_whole:
        return values if how == "set" else same(COMBINE[how], x, values)
    if how == "set" and max(index.stride) == 1:
        partial = [a for a, (n, m) in enumerate(zip(x.shape, index.cut)) if n != m]
        if len(partial) == 1:
            return replaced(x, values, partial[0], index.start[partial[0]])
    around = dict(low=index.start,
                  high=tuple(n - a - max(0, (m - 1) * s + 1)
                             for n, a, m, s in zip(x.shape, index.start, index.cut, index.stride)),
                  interior=tuple(s - 1 for s in index.stride))
    padded = ops.pad(values, neutral(how, x.dtype), **around)
    if how != "set":
        return same(COMBINE[how], x, padded)
    inside = ops.pad(ops.full(shape=index.cut, value=True, dtype=BOOL), False, **around)
    return ops.select(inside, padded, x)


def replaced(x, values, axis, start):
    """x with what follows `start` along an axis replaced by the values."""
    stop = start + values.shape[axis]
    parts = [ops.reduce.rows(x, 0, start, axis), values,
             ops.reduce.rows(x, stop, x.shape[axis], axis)]
    return ops.concatenate(*[p for p in parts if p.shape[axis]], axis=axis)


def neutral(how, dtype):
    """The Python number that changes nothing when combined by `how`."""
    if dtype == BOOL:
        return how in ("mul", "min")
    if how in ("set", "add", "mul"):
        return (1 if how == "mul" else 0) * (1.0 if dtype.kind == "f" else 1)
    if dtype.kind == "f":
        return float("inf") if how == "min" else -float("inf")
    limits = np.iinfo(dtype)
    return int(limits.max if how == "min" else limits.min)
