"""Reductions over axes, positions of extremes, and running reductions.

`Reduce` holds what they share; each says how it combines, and its derivative.  Derivatives of
products and of running extremes are written as trees of the two-argument operation, that of a
running product as a linear recurrence, so they are exact at zeros and for every higher derivative.
"""

from __future__ import annotations

from math import prod

import numpy as np

from .. import scalar
from ..core import Primitive
from ..errors import DtypeError, ShapeError
from ..types import (
    ARITHMETIC, BOOL, DTYPES, F32, F64, FLOATS, I32, NUMBERS, SHORT, computed)
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
        self.kinds = {d.kind for d in dtypes}

    def type(self, x, /, *, axis, reverse):
        move.check_axes(self.name, (axis,), x.ndim)
        if x.dtype not in self.dtypes:
            raise DtypeError(f"{self.name} is not defined for {SHORT[x.dtype]}.", given=str(x),
                             fix="convert with astype first")
        return x

    def scan(self, *, axis, reverse):
        """(what is taken, when it is stored, axis, reverse) of the serial loop.

        At each place an accumulator takes elements of arguments, in the order of the pairs
        (which one, how); it is stored after so many of them.
        """
        return ((0, self.how),), 1, axis, reverse

    @quiet
    def numpy(self, x, /, *, axis, reverse):
        if x.dtype.kind not in self.kinds:
            raise TypeError("not a dtype of this operation")      # `type` says it better
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


class RunningProduct(Running):
    """The products of each element and all before it along `axis`; from the end if `reverse`."""

    def jvp(self, out, args, tangents, /, *, axis, reverse):
        """yᵢ = xᵢ yᵢ₋₁ has the derivative y'ᵢ = xᵢ y'ᵢ₋₁ + x'ᵢ yᵢ₋₁.  Complex ones by log₂ n steps.
        """
        (x,), (t,) = args, tangents
        if x.dtype.kind == "c":
            return self.in_steps(x, t, axis, reverse)
        before = shifted(out, 1, 1.0, axis, reverse)
        return recurrence(elementwise.mul(before, t), x, axis=axis, reverse=reverse, late=False)

    def in_steps(self, x, t, axis, reverse):
        """Each step combines every element with the one 1, 2, 4, … places before it."""
        distance = 1
        while distance < x.shape[axis]:
            before = shifted(x, distance, 1.0, axis, reverse)
            t_before = shifted(t, distance, 0.0, axis, reverse)
            both = self.step(before, x)
            t = self.step.jvp(both, (before, x), (t_before, t))
            x, distance = both, 2 * distance
        return t


class RunningExtreme(Running):
    """The extreme of each element and all before it along `axis`; from the end if `reverse`.

    Ties share the derivative: half of it is the element's own, half of it that of those before.
    """

    def jvp(self, out, args, tangents, /, *, axis, reverse):
        """yᵢ = max(yᵢ₋₁, xᵢ) has the derivative y'ᵢ = wᵢ y'ᵢ₋₁ + (1 - wᵢ) x'ᵢ."""
        (x,), (t,) = args, tangents
        before = shifted(out, 1, scalar.REDUCTIONS[self.how][1](x.dtype), axis, reverse)
        weight, own = [partial(out, before, x) for partial in self.step.partials]
        return recurrence(elementwise.mul(t, own), weight, axis=axis, reverse=reverse, late=False)


class Recurrence(Primitive):
    """yᵢ = xᵢ + wᵢ yᵢ₋₁ along `axis`, from 0; if `late`, wᵢ is what its own yᵢ is multiplied by:
    yᵢ = xᵢ + wᵢ₋₁ yᵢ₋₁.   From the end if `reverse`.

    f[*s] f[*s] → f[*s].  Linear in x: the transpose runs the other way, with late for not late.
    """
    linear_in = (0,)
    dtypes = FLOATS

    def type(self, x, w, /, *, axis, reverse, late):
        move.check_axes(self.name, (axis,), x.ndim)
        if x.shape != w.shape:
            raise ShapeError("recurrence needs two arrays of one shape.",
                             given=[f"x: {x}", f"w: {w}"], fix="broadcast_to first")
        if x.dtype != w.dtype or x.dtype not in FLOATS:
            raise DtypeError("recurrence needs two arrays of floats of one dtype.",
                             given=[f"x: {x}", f"w: {w}"], fix="convert with astype first")
        return x

    def scan(self, *, axis, reverse, late):
        """See Running.scan."""
        taken = ((0, "sum"), (1, "prod"))
        return (taken, 1, axis, reverse) if late else (taken[::-1], 2, axis, reverse)

    @quiet
    def numpy(self, x, w, /, *, axis, reverse, late):
        out = np.empty(x.shape, computed(x.dtype))
        rows, x_rows, w_rows = [np.moveaxis(a, axis, 0) for a in (out, x, w)]
        total = np.zeros(rows.shape[1:], out.dtype)
        for k in range(len(rows))[::-1 if reverse else 1]:
            if late:
                rows[k] = total + x_rows[k]
                total = rows[k] * w_rows[k]
            else:
                rows[k] = total = total * w_rows[k] + x_rows[k]
        return out.astype(x.dtype, copy=False)

    def jvp(self, out, args, tangents, /, *, axis, reverse, late):
        (_, w), (t, dw), total = args, tangents, None
        if dw is not None and late:
            total = shifted(elementwise.mul(dw, out), 1, 0.0, axis, reverse)
        elif dw is not None:
            total = elementwise.mul(dw, shifted(out, 1, 0.0, axis, reverse))
        if t is not None:
            total = t if total is None else elementwise.add(total, t)
        return total if total is None else self(total, w, axis=axis, reverse=reverse, late=late)

    def transpose(self, ct, i, x, w, /, *, axis, reverse, late):
        return self(ct, w, axis=axis, reverse=not reverse, late=not late)

    def pullback(self, ct, out, args, active, params):
        """(cotangent of x; cotangent of w, or None), by one recurrence the other way."""
        back, dw = self.transpose(ct, 0, *args, **params), None
        axis, reverse = params["axis"], params["reverse"]
        if active[1] >= 0 and params["late"]:
            dw = elementwise.mul(shifted(back, 1, 0.0, axis, not reverse), out)
        elif active[1] >= 0:
            dw = elementwise.mul(back, shifted(out, 1, 0.0, axis, reverse))
        return back, dw

    def batch(self, dims, x, w, /, *, axis, reverse, late):
        n = move.size_of((x, w), dims)
        x, w = [move.to_front(a, d, n) for a, d in zip((x, w), dims)]
        return self(x, w, axis=axis + 1, reverse=reverse, late=late), 0


def shifted(x, distance, fill, axis, reverse):
    """x moved by `distance` places away from where the running reduction starts."""
    n = x.shape[axis]
    distance = min(distance, n)
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
cumprod = RunningProduct("cumprod", "prod", elementwise.mul, np.multiply.accumulate, ARITHMETIC)
recurrence = Recurrence("recurrence")
cummax = RunningExtreme("cummax", "max", elementwise.max, np.maximum.accumulate, NUMBERS)
cummin = RunningExtreme("cummin", "min", elementwise.min, np.minimum.accumulate, NUMBERS)
