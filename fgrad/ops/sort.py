"""Sorting several arrays together.  It has no pull: compiled code calls the NumPy rule."""

from __future__ import annotations

import numpy as np

from ..core import Primitive
from ..errors import ArgumentError, ShapeError
from ..types import I32
from . import move
from .index import take_along


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
        if len(xs) == 1:
            return (np.sort(xs[0], axis, kind="stable"),)
        order = np.lexsort(xs[keys - 1::-1] if keys > 1 else (xs[0],), axis)
        return tuple(np.take_along_axis(x, order, axis) for x in xs)

    def jvp(self, out, args, tangents, /, *, axis, keys):
        """Tangents move with their elements."""
        places = move.iota(shape=args[0].shape, axis=axis, dtype=I32)
        order = self(*args[:keys], places, axis=axis, keys=keys)[-1]
        return tuple(None if t is None else take_along(t, order, axis) for t in tangents)

    def batch(self, dims, *xs, axis, keys):
        n = move.size_of(xs, dims)
        xs = [move.to_front(x, d, n) for x, d in zip(xs, dims)]
        return self(*xs, axis=axis + 1, keys=keys), 0


sort = Sort("sort")
