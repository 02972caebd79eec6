"""gather and scatter of windows, by the dimension numbers that jax.lax has for them.

A window of the operand starts at each vector of `start_indices` (its last axis).  Both are index
arrays for every axis of the operand, and then `ops.gather` or `ops.scatter`.  Relies on `ops`;
`lax` gives them to users.
"""

from __future__ import annotations

import enum
import functools
from typing import NamedTuple

from . import ops
from .core import as_value
from .errors import ArgumentError, ShapeError
from .numpy.indexing import fill_for, word_of
from .types import I64

FILL, CLIP = "fill", "clip"


class GatherDimensionNumbers(NamedTuple):
    """Where the axes of a gather stand, as in jax.lax."""
    offset_dims: tuple
    collapsed_slice_dims: tuple
    start_index_map: tuple
    operand_batching_dims: tuple = ()
    start_indices_batching_dims: tuple = ()


class ScatterDimensionNumbers(NamedTuple):
    """Where the axes of a scatter stand, as in jax.lax."""
    update_window_dims: tuple
    inserted_window_dims: tuple
    scatter_dims_to_operand_dims: tuple
    operand_batching_dims: tuple = ()
    scatter_indices_batching_dims: tuple = ()


class GatherScatterMode(enum.Enum):
    """What becomes of windows that are not inside of the operand."""
    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"


MODES = {"fill": FILL, "drop": FILL, "clip": CLIP, "promise_in_bounds": CLIP,
         "one_hot": FILL}


def mode_of(mode, default):
    """FILL or CLIP; `default` for None.  Raises ArgumentError for another."""
    mode = word_of(mode)
    if mode is None:
        return default
    if mode not in MODES:
        raise ArgumentError(f"gather and scatter have no mode {mode!r}.",
                            expected="fill, clip, promise_in_bounds")
    return MODES[mode]


def places(x, starts, numbers, sizes, shape, mode):
    """Per axis of x an index array of this shape; -1 in windows that mode "fill" leaves out."""
    offset, gone, index_map, x_batch, starts_batch = numbers
    if starts.shape[-1:] != (len(index_map),) or len(sizes) != x.ndim:
        raise ShapeError("gather and scatter need a start for each mapped axis, and a size for "
                         "each axis.", given=[f"operand: {x.type}", f"indices: {starts.type}",
                                              f"sizes={tuple(sizes)}"])
    starts = ops.convert(starts, dtype=I64)
    lead, kept = starts.shape[:-1], sorted(offset)
    window = iter(kept)
    firsts, inside = [], []
    for d, (n, size) in enumerate(zip(x.shape, sizes)):
        first = first_of(d, starts, index_map, x_batch, starts_batch, lead)
        if mode == CLIP:
            first = ops.clamp(0, first, max(n - size, 0))
        else:
            inside.append(ops.and_(ops.ge(first, 0), ops.le(first, n - size)))
        firsts.append((first, None if d in gone or d in x_batch else next(window)))
    ok = functools.reduce(ops.and_, inside) if inside else None

    def spread(v):
        return ops.broadcast(v, shape=shape, axes=tuple(kept)) if kept else v
    if tuple(n for a, n in enumerate(shape) if a not in kept) != lead:
        raise ShapeError("scatter needs updates with the axes of its indices and of a window.",
                         given=[f"indices: {starts.type}", f"updates of shape {shape}"])
    out = []
    for first, axis in firsts:
        at = spread(first)
        if axis is not None:
            at = ops.add(at, ops.iota(shape=shape, axis=axis, dtype=I64))
        out.append(at if ok is None else ops.select(spread(ok), at, -1))
    return out


def first_of(d, starts, index_map, x_batch, starts_batch, lead):
    """Where windows start along axis d of the operand."""
    if d in index_map:
        k, last = index_map.index(d), starts.ndim - 1
        stop = (*lead, k + 1)
        part = ops.slice(starts, start=(0,) * last + (k,), stop=stop, stride=(1,) * starts.ndim)
        return ops.reshape(part, shape=lead)
    if d in x_batch:
        return ops.iota(shape=lead, axis=starts_batch[x_batch.index(d)], dtype=I64)
    return ops.full(shape=lead, value=0, dtype=I64)


def gather(operand, start_indices, dimension_numbers, slice_sizes, *, unique_indices=False,
           indices_are_sorted=False, mode=None, fill_value=None):
    """Windows of `slice_sizes` of the operand, one at each vector of start_indices.

    mode: "clip" (a window that is not inside is moved there; the default), "fill" (it is
    fill_value, NaN if not given), "promise_in_bounds".  Raises ShapeError where sizes do
    not fit, ArgumentError for another mode.

    >>> import fgrad.numpy as fnp
    >>> rows = GatherDimensionNumbers((1,), (0,), (0,))
    >>> gather(fnp.arange(6.0).reshape(3, 2), fnp.array([[2], [0]]), rows, (1, 2))
    Array([[4., 5.],
           [0., 1.]], f32[2,2])
    """
    x, starts = as_value(operand), as_value(start_indices)
    numbers, mode = [tuple(n) for n in dimension_numbers], mode_of(mode, CLIP)
    offset, gone, _, x_batch, _ = numbers
    window = [n for d, n in enumerate(slice_sizes) if d not in gone and d not in x_batch]
    rest, windows = iter(starts.shape[:-1]), iter(window)
    ndim = starts.ndim - 1 + len(window)
    shape = tuple([next(windows) if a in offset else next(rest) for a in range(ndim)])
    found = places(x, starts, numbers, slice_sizes, shape, mode)
    if not x.ndim:
        return ops.broadcast(x, shape=shape, axes=tuple(range(len(shape))))
    fill = fill_for(x.dtype, fill_value) if mode == FILL else 0
    return ops.gather(x, *found, axes=tuple(range(x.ndim)), mode=mode, fill=fill)


def scatters(name, how, what):
    """The lax function that combines by `how`."""
    def function(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                 unique_indices=False, mode=None):
        x, starts, u = [as_value(v) for v in (operand, scatter_indices, updates)]
        numbers, mode = [tuple(n) for n in dimension_numbers], mode_of(mode, FILL)
        offset, gone, _, x_batch, _ = numbers
        window = iter([u.shape[a] for a in sorted(offset)])
        sizes = [1 if d in gone or d in x_batch else next(window) for d in range(x.ndim)]
        found = places(x, starts, numbers, sizes, u.shape, mode)
        return ops.scatter(x, *found, u, axes=tuple(range(x.ndim)), how=how,
                           mode="drop" if mode == FILL else CLIP)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"The operand with windows of updates {what}, one at each vector of "
                        "scatter_indices.\n\n    mode: \"fill\" (a window that is not inside is "
                        "dropped; the default), \"clip\", \"promise_in_bounds\".")
    return function


scatter = scatters("scatter", "set", "written")
scatter_add = scatters("scatter_add", "add", "added")
scatter_mul = scatters("scatter_mul", "mul", "multiplied in")
scatter_min = scatters("scatter_min", "min", "combined by min")
scatter_max = scatters("scatter_max", "max", "combined by max")
