"""Reductions over axes, positions of extremes, and running reductions.

`Reduce` holds what they share; each says how it combines, and its derivative.  Derivatives of
products and of running reductions are written as trees of the two-argument operation, so they are
exact at zeros and for every higher derivative.
"""

from __future__ import annotations

from math import prod

import numpy as np

from .. import scalar
from ..core import Primitive
from ..errors import DtypeError, ShapeError
from ..types import ARITHMETIC, BOOL, DTYPES, F32, F64, I32, NUMBERS, SHORT, computed
from . import elementwise, move
from .silence import quiet, silence


class Reduce(Primitive):
    """x reduced over `axes`.   n[*s] → n[s without axes]; axes sorted, distinct

    how: a row of scalar.REDUCTIONS.  ufunc: of NumPy.  f16 accumulates in f32 and rounds once.
    """

    def __init__(self, name, how, ufunc, dtypes):
        super().__init__(name)
        self.how, self.ufunc, self.dtypes = how, ufunc, dtypes

    def type(self, x, /, *, axes):
        move.check_axes(self.name, axes, x.ndim)
        if x.dtype not in self.dtypes:
            raise DtypeError(f"{self.name} is not defined for {SHORT[x.dtype]}.", given=str(x),
                             expected=" ".join(map(SHORT.get, self.dtypes)),
                             fix="convert with astype first")
        return x.without(axes)

    def numpy(self, x, /, *, axes):
        axes = None if len(axes) == x.ndim else axes              # None: 1 µs less
        if x.dtype in (F32, F64) and x.size:
            return silence().run(self.ufunc.reduce, x, axes)
        return self.begun(x, axes)

    @quiet
    def begun(self, x, axes):
        """The value, begun with what an empty one is, and in a wider dtype for f16."""
        if x.dtype not in self.dtypes:
            raise TypeError("not a dtype of this reduction")      # `type` says it better
        start = scalar.REDUCTIONS[self.how][1](x.dtype)
        return self.ufunc.reduce(x, axes, computed(x.dtype), initial=start).astype(x.dtype)

    def batch(self, dims, x, /, *, axes):
        (d,) = dims
        moved = move.behind(axes, d)
        return self(x, axes=moved), d - sum(a < d for a in moved)

    def pull(self, x, /, *, axes):
        extents = [x.shape[a] for a in axes]
        return lambda i: scalar.reduce(self.how, extents, lambda r: x(move.weave(i, r, axes)))


class ReduceSum(Reduce):
    """Sum over `axes`.   n[*s] → n[s without axes]"""
    linear_in = (0,)

    def transpose(self, ct, i, x, /, *, axes):
        return move.broadcast(ct, shape=x.shape, axes=axes)


class ReduceExtreme(Reduce):
    """The largest or smallest element over `axes`; NaN if there is one.

    n[*s] → n[s without axes]; the derivative is shared by ties.
    """

    def jvp(self, out, args, tangents, /, *, axes):
        (x,), (t,) = args, tangents
        if x.size == 0:
            return None
        hit = elementwise.hit(x, move.broadcast(out, shape=x.shape, axes=axes))
        count = reduce_sum(hit, axes=axes)
        return elementwise.div(reduce_sum(elementwise.mul(t, hit), axes=axes), count)


class ReduceProd(Reduce):
    """The product over `axes`.   n[*s] → n[s without axes]"""

    def jvp(self, out, args, tangents, /, *, axes):
        """A tree of two-argument products: exact at zeros, and for higher derivatives."""
        if args[0].size == 0:
            return None
        kept = tuple(a for a in range(args[0].ndim) if a not in axes)
        count = prod(args[0].shape[a] for a in axes)
        x, t = [move.reshape(move.transpose(v, perm=axes + kept), shape=(count, *out.shape))
                for v in (args[0], tangents[0])]
        while x.shape[0] > 1:
            half = x.shape[0] // 2
            (a, b, rest), (ta, tb, t_rest) = thirds(x, half), thirds(t, half)
            x = elementwise.mul(a, b)
            t = elementwise.add(elementwise.mul(ta, b), elementwise.mul(a, tb))
            if rest is not None:
                x, t = [move.concatenate(*pair, axis=0) for pair in ((x, rest), (t, t_rest))]
        return move.reshape(t, shape=out.shape)


def thirds(x, half):
    """Rows [0, half), [half, 2 half), and the row that may be left, or None."""
    rest = rows(x, 2 * half, x.shape[0]) if x.shape[0] % 2 else None
    return rows(x, 0, half), rows(x, half, 2 * half), rest


def rows(x, start, stop, axis=0):
    """x[start:stop] along an axis."""
    return move.slice(x, start=tuple(start if a == axis else 0 for a in range(x.ndim)),
                      stop=tuple(stop if a == axis else n for a, n in enumerate(x.shape)),
                      stride=(1,) * x.ndim)


# ---------------------------------------------------------------------------- positions

class ArgExtreme(Primitive):
    """The position of the first largest or smallest element along `axis`; the first NaN wins.

    n[*s] → i32[s without axis]
    """
    differentiable = False
    compares = 2

    def __init__(self, name, how, function):
        super().__init__(name)
        self.how, self.function = how, function

    def type(self, x, /, *, axis):
        move.check_axes(self.name, (axis,), x.ndim)
        if x.dtype.kind == "c":
            raise DtypeError(f"{self.name} is not defined for {SHORT[x.dtype]}.", given=str(x),
                             fix="of abs(x), or of its real part")
        if x.shape[axis] == 0:
            raise ShapeError(f"{self.name} needs at least one element along axis {axis}.",
                             given=str(x))
        return x.without((axis,)).with_dtype(I32)

    def numpy(self, x, /, *, axis):
        if x.dtype.kind == "c":
            raise TypeError("complex numbers have no order")      # `type` says it better
        return self.function(x, axis=axis).astype(I32)

    def batch(self, dims, x, /, *, axis):
        (d,) = dims
        (moved,) = move.behind((axis,), d)
        return self(x, axis=moved), d - (moved < d)

    def pull(self, x, /, *, axis):
        n = x.shape[axis]

        def position(i):
            at = lambda r: elementwise.exact_element(x, move.weave(i, r, (axis,)), x.dtype)
            best = scalar.reduce(self.how, [n], at)

            def place_if_best(r):
                value = at(r)
                is_best, is_nan = scalar.apply("eq", value, best), scalar.apply("ne", value, value)
                place, nowhere = scalar.index_value(r[0], I32), scalar.const(n, I32)
                return scalar.apply("select", scalar.apply("or", is_best, is_nan), place, nowhere)
            return scalar.reduce("min", [n], place_if_best)
        return position


# ---------------------------------------------------------------------------- running

class Running(Primitive):
    """Each element combined with all before it along `axis`; from the end if `reverse`.

    n[*s] → n[*s].  It has no pull: `scan` tells compiled code which serial loop to write.
    """

    def __init__(self, name, how, step, accumulate, dtypes):
        super().__init__(name)
        self.how, self.step, self.accumulate, self.dtypes = how, step, accumulate, dtypes

    def type(self, x, /, *, axis, reverse):
        move.check_axes(self.name, (axis,), x.ndim)
        if x.dtype not in self.dtypes:
            raise DtypeError(f"{self.name} is not defined for {SHORT[x.dtype]}.", given=str(x),
                             fix="convert with astype first")
        return x

    def scan(self, *, axis, reverse):
        """(how, axis, reverse) of the serial loop."""
        return self.how, axis, reverse

    @quiet
    def numpy(self, x, /, *, axis, reverse):
        if reverse:
            x = np.flip(x, axis)
        wide = computed(x.dtype)
        out = self.accumulate(x, axis, wide).astype(x.dtype, copy=False)
        return np.flip(out, axis) if reverse else out

    def batch(self, dims, x, /, *, axis, reverse):
        (d,) = dims
        return self(x, axis=move.behind((axis,), d)[0], reverse=reverse), d


class RunningSum(Running):
    """Sums of each element and all before it along `axis`; from the end if `reverse`."""
    linear_in = (0,)

    def transpose(self, ct, i, x, /, *, axis, reverse):
        return self(ct, axis=axis, reverse=not reverse)


class RunningStep(Running):
    """x combined by `step` with all elements before it along `axis`; from the end if `reverse`."""

    def jvp(self, out, args, tangents, /, *, axis, reverse):
        """log₂ n steps: each combines every element with the one 1, 2, 4, … places before it."""
        (x,), (t,) = args, tangents
        start = scalar.REDUCTIONS[self.how][1](x.dtype)
        distance = 1
        while distance < x.shape[axis]:
            before = shifted(x, distance, start, axis, reverse)
            t_before = shifted(t, distance, 0.0, axis, reverse)
            both = self.step(before, x)
            t = self.step.jvp(both, (before, x), (t_before, t))
            x, distance = both, 2 * distance
        return t


def shifted(x, distance, fill, axis, reverse):
    """x moved by `distance` places away from where the running reduction starts."""
    n = x.shape[axis]
    part = rows(x, distance, n, axis) if reverse else rows(x, 0, n - distance, axis)
    here = tuple(distance if a == axis else 0 for a in range(x.ndim))
    none = (0,) * x.ndim
    low, high = (none, here) if reverse else (here, none)
    return move.pad(part, float(fill), low=low, high=high, interior=none)


reduce_sum = ReduceSum("reduce_sum", "sum", np.add, ARITHMETIC)
reduce_prod = ReduceProd("reduce_prod", "prod", np.multiply, ARITHMETIC)
reduce_max = ReduceExtreme("reduce_max", "max", np.maximum, DTYPES)
reduce_min = ReduceExtreme("reduce_min", "min", np.minimum, DTYPES)
reduce_and = Reduce("reduce_and", "and", np.logical_and, (BOOL,))
reduce_or = Reduce("reduce_or", "or", np.logical_or, (BOOL,))
reduce_and.differentiable = reduce_or.differentiable = False
argmax = ArgExtreme("argmax", "max", np.argmax)
argmin = ArgExtreme("argmin", "min", np.argmin)
cumsum = RunningSum("cumsum", "sum", elementwise.add, np.add.accumulate, ARITHMETIC)
cumprod = RunningStep("cumprod", "prod", elementwise.mul, np.multiply.accumulate, ARITHMETIC)
cummax = RunningStep("cummax", "max", elementwise.max, np.maximum.accumulate, NUMBERS)
cummin = RunningStep("cummin", "min", elementwise.min, np.minimum.accumulate, NUMBERS)
