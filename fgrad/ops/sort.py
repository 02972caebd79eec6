"""Sorting: values, the order of the elements, and the largest of them.

Neither has a pull: compiled code calls the rule, which is NumPy's for short rows, and machine code
for long ones (`radix.py`).
"""

from __future__ import annotations

import numpy as np

from ..core import Primitive
from ..errors import ShapeError
from ..types import I32, ArrayType
from . import move, radix
from .index import take_along
from .rows import in_rows


class Sort(Primitive):
    """The elements along `axis` in order.   n[*s] → n[*s]      stable; NaN is last, as in NumPy."""

    def type(self, x, /, *, axis):
        move.check_axes("sort", (axis,), x.ndim)
        return x

    def numpy(self, x, /, *, axis):
        out = np.empty(x.shape, x.dtype)
        self.into((out,), x, axis=axis)
        return out

    def into(self, outs, x, /, *, axis):
        sort_into(last(outs[0], axis), last(x, axis))

    def prepare(self, x, /, *, axis, ahead=False):
        if x.shape[axis] >= radix.VALUES and radix.kind_of(x):
            radix.prepare(radix.kind_of(x), ahead)

    def jvp(self, out, args, tangents, /, *, axis):
        """Tangents move with their elements."""
        return take_along(tangents[0], order(*args, axis=axis), axis)

    def batch(self, dims, x, /, *, axis):
        return self(move.to_front(x, dims[0]), axis=axis + 1), 0


class Order(Primitive):
    """The places of the elements along `axis` in the order of the keys, the first deciding first.

    m[*s] n[*s] … → i32[*s]      stable; NaN is last, as in NumPy.
    """
    differentiable = False

    def type(self, *keys, axis):
        move.check_axes("order", (axis,), keys[0].ndim)
        if any(x.shape != keys[0].shape for x in keys):
            raise ShapeError("order needs keys of one shape.",
                             given=[f"key {k + 1}: {x}" for k, x in enumerate(keys)])
        return keys[0].with_dtype(I32)

    def numpy(self, *keys, axis):
        out = np.empty(keys[0].shape, I32)
        self.into((out,), *keys, axis=axis)
        return out

    def into(self, outs, *keys, axis):
        order = None
        for x in keys[::-1]:
            order = stable_order(last(x, axis), order)
        last(outs[0], axis)[...] = order

    def prepare(self, *keys, axis, ahead=False):
        if keys[0].shape[axis] >= radix.PLACES and any(map(radix.kind_of, keys)):
            radix.prepare("places", ahead)

    def batch(self, dims, *keys, axis):
        n = move.size_of(keys, dims)
        return self(*[move.to_front(x, d, n) for x, d in zip(keys, dims)], axis=axis + 1), 0


class TopK(Primitive):
    """The k largest elements along the last axis and their places, the largest first.

    n[*s,m] → n[*s,k], i32[*s,k]      of equal ones the first comes first; NaN is the largest
    """
    multiple = True

    def type(self, x, *, k):
        if not x.ndim or not 0 <= k <= x.shape[-1]:
            raise ShapeError(f"top_k cannot take {k} of the last axis.", given=f"operand: {x}")
        shape = (*x.shape[:-1], k)
        return x.with_shape(shape), ArrayType(I32, shape)

    def numpy(self, x, *, k):
        places = in_rows(lambda rows: largest(rows, k), x, -1, MANY).astype(np.int32)
        return np.take_along_axis(x, places, -1), places

    def jvp(self, out, args, tangents, /, *, k):
        """Tangents move with their elements."""
        return take_along(tangents[0], out[1], args[0].ndim - 1), None

    def batch(self, dims, x, *, k):
        return self(move.to_front(x, dims[0]), k=k), 0


sort, order, top_k = Sort("sort"), Order("order"), TopK("top_k")


# ---------------------------------------------------------------------------- the NumPy rule

FEW = 256                  # elements up to which NumPy's stable argsort is the fastest
MANY = 1 << 17             # elements that are worth a thread of their own


def last(x, axis):
    """The array with this axis as its last; NumPy takes 3 µs where it is already."""
    return x if axis == x.ndim - 1 else np.moveaxis(x, axis, -1)


def sort_into(out, x):
    """Writes x, sorted stably along its last axis, to `out`.

    NumPy 2.4 sorts f16 wrongly where there are NaN and vectors of 16 bits (AVX-512).
    """
    if x.dtype == np.float16:
        wide = np.empty(x.shape, np.float32)
        sort_into(wide, x.astype(np.float32))
        out[...] = wide
        return
    if radix.values(out, x):
        return
    out[...] = x
    if x.ndim == 1 and x.dtype.kind == "f":
        out.sort()
        radix.mend_zeros(out, x)
        return
    kind = kind_for(out)
    in_rows(lambda rows: rows.sort(-1, kind), out, -1, MANY)


def kind_for(x):
    """NumPy's fastest algorithm that nobody can tell from a stable one by the sorted elements.

    Equal integers are the same; of floats only zeros of both signs are equal and not the same.
    """
    if x.dtype.kind != "f":
        return "stable" if x.dtype.kind in "bc" or x.dtype.itemsize == 1 else "quicksort"
    words = x.view(f"i{x.dtype.itemsize}")
    least = np.iinfo(words.dtype).min               # the word of -0.0
    signs = words.min(initial=0) == least and not words.all()
    return "stable" if signs else "quicksort"


def stable_order(x, given=None):
    """np.argsort(x, kind="stable"); with `given`, the places in the order of what lies at them.
    """
    order = radix.places(x, given)
    if order is not None:
        return order
    if given is None:
        return order_by_numpy(x)
    return np.take_along_axis(given, order_by_numpy(np.take_along_axis(x, given, -1)), -1)


def order_by_numpy(x):
    """np.argsort(x, kind="stable"), faster: the places are sorted as part of the keys.

    A 64-bit word holds an element's rank above and its place below; no two are equal, so any
    algorithm is stable, and NumPy sorts words with vector instructions.
    """
    n = x.shape[-1]
    short = x.dtype.kind in "biu" and x.dtype.itemsize <= 2
    if x.size <= FEW or n >= 2**32 or x.dtype.kind == "c" or short:
        return np.argsort(x, -1, kind="stable")
    if x.dtype.itemsize == 8:
        places = np.argsort(x, -1)
        words = with_places(tied_ranks(np.take_along_axis(x, places, -1)), places)
    else:
        words = with_places(ranks(x), np.arange(n))
    in_rows(lambda rows: rows.sort(-1), words, -1, MANY)
    words &= 0xFFFFFFFF
    return words


def largest(x, k):
    """The places of the k largest along the last axis, the largest and the first of them first."""
    n = x.shape[-1]
    if n >= 2**31 or x.dtype.itemsize > 4:
        return n - 1 - stable_order(x[..., ::-1])[..., ::-1][..., :k]
    words = with_places(ranks(x), np.arange(n - 1, -1, -1))
    if 0 < k < n:
        words.partition(n - k, -1)
    words = words[..., n - k:]
    words.sort(-1)
    return n - 1 - (words[..., ::-1] & 0xFFFFFFFF)


def with_places(ranks, places):
    """Words of 64 bits, the rank above and the place below, in the memory of the ranks."""
    ranks <<= 32
    ranks |= places
    return ranks


def ranks(x):
    """Numbers i64 of 32 bits, ordered and equal as elements of at most 32 bits; NaN is last."""
    if x.dtype.kind != "f":
        return x.astype(np.int64) - (2**31 if x.dtype.kind == "u" else 0)
    found = np.add(x, x.dtype.type(0), dtype=np.float32)     # -0.0 + 0.0 is 0.0
    words = found.view(np.int32)
    last = np.isnan(found)
    signs = words >> 31
    signs &= 0x7FFFFFFF
    words ^= signs
    if last.any():
        words[last] = 2**31 - 1
    return words.astype(np.int64)


def tied_ranks(ordered):
    """For sorted elements the number of different ones before each; all NaN are one."""
    before, after = ordered[..., :-1], ordered[..., 1:]
    new = (before != after) & ~((before != before) & (after != after))
    return np.concatenate([np.zeros_like(ordered[..., :1], np.int64), np.cumsum(new, -1)], -1)
