"""Reductions over sliding windows, and where the elements of their gradients go.

    reduce_window_max[window=(1,2,2,1) stride=(1,2,2,1)] x      max pooling of NHWC images

`window`, `stride` and `dilation` have an entry for each axis of x; there is no padding: that is a
`pad` with the identity before it.  The sum's transpose is `window_spread`.  The derivative of an
extreme goes to the first extreme element of each window, in row-major order: `window_argmax` finds
it, `window_take` reads there, and `window_put`, its transpose, is written as a pull: each element
looks at the windows that contain it.  Small windows are written out element by element, so that
compiled code runs its lanes along the last axis.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import index, scalar
from ..core import Primitive
from ..errors import DtypeError, ShapeError
from ..types import DTYPES, I32, NUMBERS, SHORT, computed
from . import move
from .convolve import extent, over, places
from .elementwise import exact_element
from .silence import quiet


class Windowed(Primitive):
    """What operations over the windows of x share.   n[*s] → n[places of a window]"""

    def type(self, x, /, *, window, stride, dilation):
        if x.dtype not in self.dtypes:
            raise DtypeError(f"{self.name} is not defined for {SHORT[x.dtype]}.", given=str(x),
                             expected=" ".join(map(SHORT.get, self.dtypes)),
                             fix="convert with astype first")
        return x.with_shape(shape_of(self.name, x.shape, window, stride, dilation))

    def batch(self, dims, x, /, **params):
        (d,) = dims
        return self(x, **with_axis(d, **params)), d


def shape_of(name, shape, window, stride, dilation):
    """The places of a window along each axis; raises ShapeError unless each has its entry."""
    params = (window, stride, dilation)
    if any(len(p) != len(shape) or any(n < 1 for n in p) for p in params):
        raise ShapeError(f"{name} needs a window, stride and dilation of at least 1 per axis.",
                         given=[f"an array of shape {shape}",
                                f"window={window} stride={stride} dilation={dilation}"])
    return tuple(map(places, shape, window, stride, dilation))


def with_axis(d, *, window, stride, dilation, **rest):
    """The parameters with an axis at d, along which windows have one element."""
    params = dict(window=window, stride=stride, dilation=dilation)
    return {**{k: move.put(p, d, 1) for k, p in params.items()}, **rest}


def windows_of(x, window, stride, dilation):
    """A view of x: its places, then its windows."""
    sizes = tuple(map(places, x.shape, window, stride, dilation))
    if 0 in sizes:
        return np.zeros((*sizes, *window), x.dtype)
    steps = [a * s for a, s in zip(x.strides, stride)], [a * d for a, d in zip(x.strides, dilation)]
    return as_strided(x, (*sizes, *window), (*steps[0], *steps[1]), writeable=False)


def flat_windows(x, window, stride, dilation):
    """The elements of x in windows: the places, and one axis for a window in row-major order."""
    found = windows_of(x, window, stride, dilation)
    return found.reshape(*found.shape[:x.ndim], prod(window))


def inside(i, r, stride, dilation):
    """The index of element r of the window at i."""
    return tuple(index.combine([(v, s), (k, d)]) for v, k, s, d in zip(i, r, stride, dilation))


def dense(window):
    """The extents of a window without axes of one element, and what puts those back."""
    axes = [a for a, k in enumerate(window) if k > 1]
    zero = index.of(0)

    def whole(r):
        r = dict(zip(axes, r))
        return tuple(r.get(a, zero) for a in range(len(window)))
    return [window[a] for a in axes], whole


# ---------------------------------------------------------------------------- reductions

class ReduceWindow(Windowed):
    """x reduced over each of its windows.   n[*s] → n[places]; f16 sums accumulate in f32

    how: a row of scalar.REDUCTIONS.  ufunc: of NumPy.
    """

    def __init__(self, name, how, ufunc, dtypes):
        super().__init__(name)
        self.how, self.ufunc, self.dtypes = how, ufunc, dtypes

    @quiet
    def numpy(self, x, /, *, window, stride, dilation):
        if x.dtype not in self.dtypes:
            raise TypeError("not a dtype of this reduction")      # `type` says it better
        wide = computed(x.dtype)
        found = flat_windows(x.astype(wide), window, stride, dilation)
        return self.ufunc.reduce(found, -1, wide).astype(x.dtype)

    def pull(self, x, /, *, window, stride, dilation):
        extents, whole = dense(window)

        def reduced(i):
            return over(self.how, extents, lambda r: x(inside(i, whole(r), stride, dilation)))
        return reduced


class WindowSum(ReduceWindow):
    """The sum over each window of x.   n[*s] → n[places]"""
    linear_in = (0,)

    def transpose(self, ct, i, x, /, **params):
        return window_spread(ct, shape=x.shape, **params)


class WindowExtreme(ReduceWindow):
    """The largest or smallest element of each window; NaN if there is one.   n[*s] → n[places]

    The derivative is that of the first such element in row-major order.
    """

    def jvp(self, out, args, tangents, /, **params):
        (x,), (t,) = args, tangents
        place = (window_argmax if self.how == "max" else window_argmin)(x, **params)
        return window_take(t, place, **params)


# ---------------------------------------------------------------------------- positions

class WindowPosition(Windowed):
    """Where each window has its first extreme element, in row-major order; the first NaN wins.

    n[*s] → i32[places]
    """
    differentiable = False
    compares = 2
    dtypes = DTYPES

    def __init__(self, name, how, function):
        super().__init__(name)
        self.how, self.function = how, function

    def type(self, x, /, **params):
        return super().type(x, **params).with_dtype(I32)

    def numpy(self, x, /, **params):
        return self.function(flat_windows(x, **params), axis=-1).astype(I32)

    def pull(self, x, /, *, window, stride, dilation):
        extents, whole = dense(window)
        count = prod(window)

        def first(i):
            at = lambda r: exact_element(x, inside(i, whole(r), stride, dilation), x.dtype)
            best = over(self.how, extents, at)

            def place_if_best(r):
                value = at(r)
                hit = scalar.apply("or", scalar.apply("eq", value, best),
                                   scalar.apply("ne", value, value))
                place = scalar.index_value(index.flat(r, extents), I32)
                return scalar.apply("select", hit, place, scalar.const(count, I32))
            return over("min", extents, place_if_best)
        return first


class WindowTake(Windowed):
    """The element of each window at a position.   n[*s] i32[places] → n[places]"""
    linear_in = (0,)
    dtypes = NUMBERS

    def type(self, x, place, /, **params):
        out = super().type(x, **params)
        if place is not out.with_dtype(I32):
            raise ShapeError("window_take needs one i32 position per window.",
                             given=[f"x: {x}", f"place: {place}"],
                             expected=str(out.with_dtype(I32)))
        return out

    def numpy(self, x, place, /, **params):
        return np.take_along_axis(flat_windows(x, **params), place[..., None], -1)[..., 0]

    def transpose(self, ct, i, x, place, /, **params):
        return window_put(ct, place, shape=x.shape, **params)

    def batch(self, dims, x, place, /, **params):
        n = move.size_of((x, place), dims)
        x, place = move.to_front(x, dims[0], n), move.to_front(place, dims[1], n)
        return self(x, place, **with_axis(0, **params)), 0

    def pull(self, x, place, /, *, window, stride, dilation):
        extents, whole = dense(window)

        def taken(i):
            position = place(i)

            def if_here(r):
                here = scalar.apply("eq", position, scalar.index_value(index.flat(r, extents), I32))
                value = x(inside(i, whole(r), stride, dilation))
                return scalar.apply("select", here, value, scalar.const(0, x.dtype))
            if not extents:
                return x(inside(i, whole(()), stride, dilation))
            return over("sum", extents, if_here)
        return taken


# ---------------------------------------------------------------------------- transposes

class WindowPut(Primitive):
    """x's elements added into zeros of `shape`, at the positions in their windows.

    n[places] i32[places] → n[*shape]; each element sums over the windows that contain it.
    """
    linear_in = (0,)
    dtypes = NUMBERS

    def type(self, x, place, /, *, shape, **params):
        check_places(self.name, x, shape, **params)
        if place is not x.with_dtype(I32):
            raise ShapeError("window_put needs one i32 position per window.",
                             given=[f"x: {x}", f"place: {place}"])
        return x.with_shape(shape)

    @quiet
    def numpy(self, x, place, /, *, shape, window, stride, dilation):
        out = np.zeros(shape, computed(x.dtype))
        taps = np.unravel_index(place, window)
        at = tuple(i * s + r * d for i, r, s, d in zip(np.indices(x.shape), taps, stride, dilation))
        np.add.at(out, at, x)
        return out.astype(x.dtype)

    def transpose(self, ct, i, x, place, /, *, shape, **params):
        return window_take(ct, place, **params)

    def batch(self, dims, x, place, /, *, shape, **params):
        n = move.size_of((x, place), dims)
        x, place = move.to_front(x, dims[0], n), move.to_front(place, dims[1], n)
        return self(x, place, shape=(n, *shape), **with_axis(0, **params)), 0

    def pull(self, x, place, /, *, shape, window, stride, dilation):
        def element(at, r):
            here = scalar.apply("eq", place(at), scalar.index_value(index.flat(r, window), I32))
            return scalar.apply("select", here, x(at), scalar.const(0, x.dtype))
        return from_windows(x, element, window, stride, dilation)


class WindowSpread(Primitive):
    """Each element is the sum of x over the windows that contain it.   n[places] → n[*shape]"""
    linear_in = (0,)
    dtypes = NUMBERS

    def type(self, x, /, *, shape, **params):
        check_places(self.name, x, shape, **params)
        return x.with_shape(shape)

    @quiet
    def numpy(self, x, /, *, shape, window, stride, dilation):
        out = np.zeros(shape, computed(x.dtype))
        for r in np.ndindex(*window):
            where = tuple(slice(k * d, k * d + extent(n, s), s)
                          for k, n, s, d in zip(r, x.shape, stride, dilation))
            if x.size:
                out[where] += x
        return out.astype(x.dtype)

    def transpose(self, ct, i, x, /, *, shape, **params):
        return reduce_window_sum(ct, **params)

    def batch(self, dims, x, /, *, shape, **params):
        (d,) = dims
        return self(x, shape=move.put(shape, d, x.shape[d]), **with_axis(d, **params)), d

    def pull(self, x, /, *, shape, window, stride, dilation):
        return from_windows(x, lambda at, r: x(at), window, stride, dilation)


def check_places(name, x, shape, **params):
    """Raises ShapeError unless x has one element per place of the window in `shape`."""
    if shape_of(name, shape, **params) != x.shape:
        raise ShapeError(f"{name} needs one element per window.", given=str(x),
                         expected=f"shape {shape_of(name, shape, **params)}")


def from_windows(x, element, window, stride, dilation):
    """The pull of a sum over the windows that contain an element.

    The window at i has the element u at a where u = i·s + a·d.  With d = 1 these are i = u//s - t
    and a = u%s + t·s for t below ⌈k/s⌉, where a < k.  Else i = (u - a·d)/s for each a for which
    that is whole.
    """
    counts = [-(-k // s) if d == 1 else k for k, s, d in zip(window, stride, dilation)]
    extents, whole = dense(counts)

    def place(u, t, n, k, s, d):
        if d == 1:
            q, rest = index.divide(u, s)
            at, a = index.combine([(q, 1), (t, -1)]), index.combine([(rest, 1), (t, s)])
            return at, a, [(at, 0, n), (a, 0, k)]
        at, rest = index.divide(index.combine([(u, 1), (t, -d)]), s)
        return at, t, [(at, 0, n), (rest, 0, 1)]

    def total(i):
        def body(t):
            found = [place(*row) for row in zip(i, whole(t), x.shape, window, stride, dilation)]
            value = element(tuple(at for at, _, _ in found), tuple(a for _, a, _ in found))
            ranges = [r for _, _, ranges in found for r in ranges]
            return scalar.guard(ranges, value, scalar.const(0, x.dtype))
        return over("sum", extents, body)
    return total


reduce_window_sum = WindowSum("reduce_window_sum", "sum", np.add, NUMBERS)
reduce_window_max = WindowExtreme("reduce_window_max", "max", np.maximum, DTYPES)
reduce_window_min = WindowExtreme("reduce_window_min", "min", np.minimum, DTYPES)
window_argmax = WindowPosition("window_argmax", "max", np.argmax)
window_argmin = WindowPosition("window_argmin", "min", np.argmin)
window_take = WindowTake("window_take")
window_put = WindowPut("window_put")
window_spread = WindowSpread("window_spread")
