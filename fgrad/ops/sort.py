"""Sorting: several arrays together, and the largest elements.

Neither has a pull: compiled code calls the rule, which is NumPy's for short rows, and machine code
for long ones (`radix.py`).
"""

from __future__ import annotations

import numpy as np

from ..core import Primitive
from ..errors import ArgumentError, ShapeError
from ..types import I32, ArrayType
from . import move, radix
from .index import take_along
from .rows import in_rows


class Sort(Primitive):
    """The operands along `axis` in the order of the first `keys` of them, the first deciding first.

    m[*s] n[*s] … → m[*s], n[*s], …      stable; NaN is last, as in NumPy.
    """
    multiple = True

    def type(self, *xs, axis, keys):
        move.check_axes("sort", (axis,), xs[0].ndim)
        if any(x.shape != xs[0].shape for x in xs):
            raise ShapeError("sort needs operands of one shape.",
                             given=[f"operand {k + 1}: {x}" for k, x in enumerate(xs)])
        if not 1 <= keys <= len(xs):
            raise ArgumentError(f"sort[keys={keys}] needs between 1 and {len(xs)} keys.")
        return tuple(xs)

    def numpy(self, *xs, axis, keys):
        outs = tuple([np.empty(x.shape, x.dtype) for x in xs])
        self.into(outs, *xs, axis=axis, keys=keys)
        return outs

    def into(self, outs, *xs, axis, keys):
        if axis != xs[0].ndim - 1:
            outs, xs = [[np.moveaxis(x, axis, -1) for x in arrays] for arrays in (outs, xs)]
        if len(xs) == 1:
            sort_into(outs[0], xs[0])
            return
        order = None
        for x in xs[keys - 1::-1]:
            order = stable_order(x, order)
        for out, x in zip(outs, xs):
            if x.ndim == 1:
                np.take(x, order, out=out, mode="clip")
            else:
                out[...] = np.take_along_axis(x, order, -1)

    def prepare(self, *types, axis, keys):
        long = types[0].shape[axis] >= (radix.VALUES if len(types) == 1 else radix.PLACES)
        kinds = {radix.kind_of(x) for x in types[:keys]} - {None} if long else ()
        for kind in kinds:
            radix.prepare(kind if len(types) == 1 else "places")

    def jvp(self, out, args, tangents, /, *, axis, keys):
        """Tangents move with their elements."""
        places = move.iota(shape=args[0].shape, axis=axis, dtype=I32)
        order = self(*args[:keys], places, axis=axis, keys=keys)[-1]
        return tuple(None if t is None else take_along(t, order, axis) for t in tangents)

    def batch(self, dims, *xs, axis, keys):
        n = move.size_of(xs, dims)
        xs = [move.to_front(x, d, n) for x, d in zip(xs, dims)]
        return self(*xs, axis=axis + 1, keys=keys), 0


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


sort, top_k = Sort("sort"), TopK("top_k")


# ---------------------------------------------------------------------------- the NumPy rule

FEW = 256                  # elements up to which NumPy's stable argsort is the fastest
MANY = 1 << 17             # elements that are worth a thread of their own


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
