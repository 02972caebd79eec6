"""Padding: an array in a larger one."""

from __future__ import annotations

import builtins

import numpy as np

from .. import ops
from ..core import Array, as_value
from ..errors import ArgumentError, ShapeError
from ..types import SCALARS
from .axes import typed
from .elementwise import rint
from .joining import concatenate
from .promotion import broadcast_to, cast, in_dtype, in_kind
from .ranges import linspace
from .reductions import max, mean, min
from .shape import flip
from .sorting import median

STATISTICS = {"maximum": max, "mean": mean, "median": median, "minimum": min}
MODES = ("constant", "edge", "empty", "linear_ramp", *STATISTICS, "reflect", "symmetric", "wrap")
PARTS = 9                  # of an axis that are put together; more are gathered


def pad(array, pad_width, mode="constant", constant_values=0, *, end_values=0, stat_length=None):
    """The array with pad_width = ((before, after), …) elements added along each axis.

    An int, or one pair, is taken for every axis.  mode: "constant", "edge", "empty" (zeros),
    "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric" or "wrap", as in
    NumPy.  constant_values: one number, one pair (before, after), or a pair for every axis, of
    which the last one has the corners; end_values: the same, what a linear ramp ends with;
    stat_length: the same, of how many elements at the edge the mean is, or another statistic, None
    for all.   n[*s] → n[s + before + after]

    Raises ShapeError for widths or numbers that do not fit the axes, ArgumentError for another
    mode.

    >>> pad([1, 2], 1).tolist()
    [0, 1, 2, 0]
    >>> pad([1, 2], (1, 2), constant_values=(8, 9)).tolist()
    [8, 1, 2, 9, 9]
    >>> pad([4.0, 8.0], 2, mode="linear_ramp").tolist()
    [0.0, 2.0, 4.0, 8.0, 4.0, 0.0]
    """
    x = as_value(array)
    widths = widths_of(pad_width, x)
    if mode not in MODES:
        raise ArgumentError(f"pad has no mode {mode!r}.", expected=" ".join(MODES))
    if mode in ("constant", "empty"):
        return pad_constant(x, widths, constant_values if mode == "constant" else 0)
    if mode in STATISTICS:
        return pad_statistic(x, widths, mode, lengths_of(stat_length, x))
    if mode == "linear_ramp":
        return pad_ramp(x, widths, sides_of(end_values, x, "end_values"))
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = extended(x, axis, places(x, axis, before, after, mode), before)
    return x


def widths_of(pad_width, x):
    """((before, after), …), one pair per axis."""
    try:
        given = np.asarray(pad_width)
        if given.size and given.dtype.kind not in "iu":
            raise ShapeError("pad needs whole numbers of elements.",
                             given=f"pad_width={pad_width}")
        widths = np.broadcast_to(given.astype(int), (x.ndim, 2))
    except ValueError:
        raise ShapeError("pad needs one pair (before, after) per axis.",
                         given=[typed(x), f"pad_width={pad_width}"],
                         fix="an int or one pair is taken for every axis") from None
    if (widths < 0).any():
        raise ShapeError("pad cannot add a negative number of elements.",
                         given=f"pad_width={pad_width}",
                         fix="slice the array to make it smaller")
    return [(int(a), int(b)) for a, b in widths]


def pad_constant(x, widths, value):
    """Padding with one value, or with one for each side of each axis."""
    if value.__class__ in SCALARS:
        return with_border(x, in_kind(value, x.dtype), widths)
    value = in_dtype(value, x.dtype)
    if value.shape == ():
        return with_border(x, value, widths)
    sides = sides_of(value, x, "constant_values")
    for axis, pair in enumerate(widths):
        for side, width in enumerate(pair):
            if width:
                alone = [(0, 0)] * x.ndim
                alone[axis] = (width, 0) if side == 0 else (0, width)
                x = with_border(x, sides[axis, side], alone)
    return x


def with_sides(x, widths, mode, sides):
    """x with the two that sides(x, axis, widths of the axis) gives around it, along each axis."""
    for axis, pair in enumerate(widths):
        if any(pair):
            refuse_empty(x, axis, mode)
            before, after = sides(x, axis, pair)
            x = concatenate([before, x, after], axis)
    return x


def pad_ramp(x, widths, ends):
    """Padding with numbers evenly spaced between an end value and the edge, along each axis."""
    def sides(x, axis, pair):
        edges = [x[(slice(None),) * axis + (k,)] for k in (0, -1)]
        before, after = [
            linspace(ends[axis, k], edges[k], pair[k], endpoint=False, dtype=x.dtype, axis=axis)
            for k in (0, 1)]
        return before, flip(after, axis)
    return with_sides(x, widths, "linear_ramp", sides)


def pad_statistic(x, widths, mode, lengths):
    """Padding with the mean, or another statistic, of so many elements at each edge."""
    def sides(x, axis, pair):
        n, around = x.shape[axis], (slice(None),) * axis
        first, last = [n if k is None else builtins.min(k, n) for k in lengths[axis]]
        edges = x[(*around, slice(0, first))], x[(*around, slice(n - last, n))]
        return [broadcast_to(statistic(edge, mode, axis),
                             (*x.shape[:axis], count, *x.shape[axis + 1:]))
                for edge, count in zip(edges, pair)]
    return with_sides(x, widths, mode, sides)


def statistic(x, mode, axis):
    """The mean of x, or another statistic, along an axis, in its dtype: whole if that is."""
    out = STATISTICS[mode](x, axis=axis, keepdims=True)
    whole = x.dtype.kind in "iu" and out.dtype.kind == "f"
    return cast(rint(out) if whole else out, x.dtype)


def lengths_of(stat_length, x):
    """Of how many elements a statistic is, a pair for each axis; None for all."""
    if stat_length is None:
        return [(None, None)] * x.ndim
    try:
        given = np.broadcast_to(np.asarray(stat_length), (x.ndim, 2))
        fits = given.dtype.kind in "iu" and (given > 0).all()
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError("pad needs a positive stat_length, or one pair (before, after) per axis.",
                         given=[typed(x), f"stat_length={stat_length}"],
                         fix="an int or one pair is taken for every axis, None for all elements")
    return [(int(a), int(b)) for a, b in given]


def sides_of(value, x, name):
    """A number for each side of each axis.   n[] or n[2] or n[ndim,2] → n[ndim,2]"""
    value = in_dtype(value, x.dtype)
    try:
        return broadcast_to(value, (x.ndim, 2))
    except ShapeError:
        raise ShapeError("pad needs one number, or one pair (before, after) per axis.",
                         given=[typed(x), f"{name}: {typed(value)}"],
                         fix="one number or one pair is taken for every axis") from None


def refuse_empty(x, axis, mode):
    """Raises ShapeError where an axis has no element that could be repeated."""
    if x.shape[axis] == 0:
        raise ShapeError(f"pad cannot extend axis {axis}, which is empty, in mode {mode!r}.",
                         given=typed(x))


def with_border(x, value, widths):
    """x with elements of one value around it."""
    low, high = tuple(a for a, _ in widths), tuple(b for _, b in widths)
    return ops.pad(x, value, low=low, high=high, interior=(0,) * x.ndim)


def places(x, axis, before, after, mode):
    """Where each element of the padded axis is read from."""
    refuse_empty(x, axis, mode)
    n = x.shape[axis]
    k = np.arange(-before, n + after)
    if mode == "edge":
        k = np.clip(k, 0, n - 1)
    elif mode == "wrap":
        k = k % n
    else:
        period = builtins.max(2 * (n - 1), 1) if mode == "reflect" else 2 * n
        k = k % period
        k = np.where(k < n, k, (period - (mode == "symmetric")) - k)
    return k


def extended(x, axis, k, before):
    """The elements k of an axis, of which those from `before` on are the axis itself."""
    around = (slice(None),) * axis
    stop = before + x.shape[axis]
    parts = [*runs(k[:before]), (0, 1, x.shape[axis]), *runs(k[stop:])]
    if len(parts) > PARTS:
        return x[(*around, Array(k.astype(np.int32)))]
    return concatenate([run_of(x, axis, *part) for part in parts], axis)


def runs(k):
    """(first, step, count) of each stretch of numbers that lie 1, -1 or 0 apart."""
    while len(k):
        step = k[1] - k[0] if len(k) > 1 and abs(k[1] - k[0]) <= 1 else 1
        count = 1 + int(np.argmin(np.append(np.diff(k) == step, False)))
        yield int(k[0]), int(step), count
        k = k[count:]


def run_of(x, axis, first, step, count):
    """A stretch of x along an axis."""
    around = (slice(None),) * axis
    low = first if step >= 0 else first - count + 1
    part = x[(*around, slice(low, low + (count if step else 1)))]
    if step == 0:
        return broadcast_to(part, (*x.shape[:axis], count, *x.shape[axis + 1:]))
    return part if step == 1 else flip(part, axis)
