"""Histograms, differences, slopes, running sums, correlation, partial order.

Shapes are known before values are: of histograms by `bins`.  Relies on `numerics`, `sorting` and
`reductions`; `sorting.py` has median and quantiles, `reductions.py` mean, std and var.
"""

from __future__ import annotations

import builtins
import math

from .. import ops
from ..arguments import lifted
from ..core import as_value
from ..errors import ArgumentError, ShapeError
from ..types import default_float, default_int
from .axes import axes_in_order, axis_of, typed
from .compare import searchsorted
from .complex import conjugate
from .contract import numbers
from .elementwise import remainder, where
from .joining import concatenate
from .numerics import convolve
from .promotion import as_float, binary, cast, in_dtype, of_one_dtype, same
from .ranges import linspace
from .reductions import cumprod, cumsum, diff, max, min
from .shape import moveaxis, ravel
from .sorting import argsort, sort

EVERY = range(1 << 20)     # `range` is an argument of histograms


# ---------------------------------------------------------------------------- histograms

def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges between `bins` equal parts of the range of a, or `bins` itself if it is an array.

    → f[bins+1]

    >>> import fgrad.numpy as fnp
    >>> fnp.histogram_bin_edges([0.0, 4.0], bins=2)
    Array([0., 2., 4.], f32[3])
    """
    if not isinstance(bins, int):
        if isinstance(bins, str):
            raise ArgumentError("histogram chooses no number of bins by itself.",
                                given=f"bins={bins!r}", fix="give the number of bins, or edges")
        return lifted(bins)
    x = as_float(ravel(a))
    if range is not None:
        low, high = [in_dtype(v, x.dtype) for v in range]
    elif x.size:
        low, high = min(x), max(x)
    else:
        low, high = ops.full(shape=(), value=0.0, dtype=x.dtype), ops.full(
            shape=(), value=1.0, dtype=x.dtype)
    flat = same(ops.eq, low, high)                           # one value: half of 1 to either side
    low = ops.select(flat, same(ops.sub, low, 0.5), low)
    high = ops.select(flat, same(ops.add, high, 0.5), high)
    return linspace(low, high, bins + 1)


def histogram(a, bins=10, range=None, density=None, weights=None):
    """(how many elements lie in each bin, edges); the last bin holds its upper edge too.

    → f[bins], f[bins+1].  weights: added up instead of ones.  density: divided by the total,
    and by the width.

    >>> histogram([1.0, 2.0, 1.0], bins=[0, 1, 2, 3])[0].tolist()
    [0.0, 2.0, 1.0]
    """
    x = as_float(ravel(a))
    edges = as_float(histogram_bin_edges(x, bins, range))
    counts = counted([x], [edges], weights)
    return normed(counts, [edges], density), edges


def counted(xs, edges, weights):
    """The sum of weights, 1 each by default, per cell of a grid."""
    shape = tuple(e.size - 1 for e in edges)
    places, inside = [], None
    for x, e in zip(xs, edges):
        place = same(ops.sub, searchsorted(e, x, side="right"), 1)
        last = binary(ops.eq, x, e[-1])
        place = ops.select(last, e.size - 2, place)
        here = same(ops.and_, same(ops.ge, place, 0), same(ops.lt, place, e.size - 1))
        inside = here if inside is None else same(ops.and_, inside, here)
        places.append(place)
    dtype = default_float() if weights is None else as_value(weights).dtype
    each = (ops.full(shape=xs[0].shape, value=1.0, dtype=dtype) if weights is None
            else ravel(weights))
    zeros = ops.full(shape=shape, value=0, dtype=dtype)
    places[0] = ops.select(inside, places[0], shape[0])      # outside: dropped
    return ops.scatter(zeros, *places, each, axes=tuple(EVERY[:len(edges)]), mode="drop",
                       how="add")


def normed(counts, edges, density):
    """The counts, or their density over the cells."""
    if not density:
        return counts
    total = ops.reduce_sum(counts, axes=tuple(EVERY[:counts.ndim]))
    out = binary(ops.div, as_float(counts), as_float(total))
    for k, e in enumerate(edges):
        sizes = tuple([e.size - 1 if a == k else 1 for a in EVERY[:out.ndim]])
        out = binary(ops.div, out, ops.reshape(diff(e), shape=sizes))
    return out


def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """(counts per cell of a grid, edges of each axis) of points.   f[n,d] → f[*bins], d edges

    >>> import fgrad.numpy as fnp
    >>> fnp.histogramdd(fnp.array([[0.0, 1.0], [1.0, 0.0]]), bins=2)[0]
    Array([[0, 1],
           [1, 0]], i32[2,2])
    """
    x = as_float(sample)
    if x.ndim != 2:
        raise ShapeError("histogramdd needs a matrix: points by coordinates.", given=typed(x))
    d = x.shape[1]
    each = list(bins) if isinstance(bins, (tuple, list)) else [bins] * d
    ranges = [None] * d if range is None else list(range)
    if len(each) != d or len(ranges) != d:
        raise ShapeError("histogramdd needs bins, and ranges, for each coordinate.",
                         given=f"{d} coordinates, {len(each)} bins, {len(ranges)} ranges")
    columns = [x[:, k] for k in EVERY[:d]]
    edges = [as_float(histogram_bin_edges(c, b, r)) for c, b, r in zip(columns, each, ranges)]
    counts = counted(columns, edges, weights)
    counts = cast(counts, default_int()) if weights is None and not density else counts
    return normed(counts, edges, density), edges


def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """(counts, edges of x, edges of y) of points in the plane.   f[n] f[n] → f[*bins], …

    >>> import fgrad.numpy as fnp
    >>> fnp.histogram2d([0.0, 1.0], [0.0, 1.0], bins=2)[0]
    Array([[1, 0],
           [0, 1]], i32[2,2])
    """
    points = ops.transpose(concatenate([as_float(v)[None] for v in (x, y)]), perm=(1, 0))
    counts, (first, second) = histogramdd(points, bins, range, density, weights)
    return counts, first, second


def digitize(x, bins, right=False):
    """The number of the bin of each element: bins[i - 1] <= x < bins[i].   n[*s] n[k] → i32[*s]

    right: the upper edge belongs to the bin.  bins may ascend or descend.

    >>> import fgrad.numpy as fnp
    >>> fnp.digitize([0.5, 2.5], [0.0, 1.0, 2.0])
    Array([1, 3], i32[2])
    """
    edges = as_value(bins)
    if edges.ndim != 1:
        raise ShapeError("digitize needs a vector of bins.", given=typed(edges))
    side = "left" if right else "right"
    if edges.size < 2:
        return searchsorted(edges, x, side=side)
    up = searchsorted(edges, x, side=side)
    backwards = searchsorted(ops.rev(edges, axes=(0,)), x, side=side)
    down = same(ops.sub, edges.size, backwards)
    return where(same(ops.ge, edges[-1], edges[0]), up, down)


# ---------------------------------------------------------------------------- differences

def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours of the flat array, with more before and behind.

    >>> import fgrad.numpy as fnp
    >>> fnp.ediff1d([1, 4, 9])
    Array([3, 5], i32[2])
    """
    parts = [v for v in (to_begin, diff(ravel(ary)), to_end) if v is not None]
    return concatenate([ravel(v) for v in of_one_dtype(*parts)])


def gradient(f, *varargs, axis=None, edge_order=None):
    """The slope along each axis, from the neighbours on both sides; at the ends from one.

    f[*s] → f[*s] per axis, in a list unless there is one axis.  varargs: the distance between
    elements, one for all or one per axis, or the coordinates of an axis.
    Raises ArgumentError for edge_order=2.

    >>> import fgrad.numpy as fnp
    >>> fnp.gradient([1.0, 2.0, 4.0, 7.0])
    Array([1. , 1.5, 2.5, 3. ], f32[4])
    """
    if edge_order not in (None, 1):
        raise ArgumentError("gradient knows ends of first order only.",
                            given=f"edge_order={edge_order}")
    x = as_float(f)
    axes = EVERY[:x.ndim] if axis is None else axes_in_order(axis, x.ndim, "gradient")
    steps = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if len(steps) != len(axes):
        raise ArgumentError("gradient needs one distance, or one for each axis.",
                            given=f"{len(steps)} distances, {len(axes)} axes")
    out = [slope(x, h, k) for h, k in zip(steps, axes)]
    return out[0] if len(out) == 1 else out


def slope(x, h, k):
    """The slope along axis k; h: a distance, or coordinates."""
    n = x.shape[k]
    if n < 2:
        raise ShapeError("gradient needs at least two elements along an axis.", given=typed(x))
    x, h = [as_float(v) for v in of_one_dtype(moveaxis(x, k, 0), h)]
    steps = diff(h) if h.ndim else h
    column = lambda v: ops.reshape(v, shape=(v.size,) + (1,) * (x.ndim - 1)) if v.ndim else v
    d = binary(ops.div, diff(x, axis=0), column(steps))      # slopes between neighbours
    if h.ndim:
        before, after = column(steps[:-1]), column(steps[1:])
        inner = (d[:-1] * after + d[1:] * before) / (before + after)
    else:
        inner = (d[:-1] + d[1:]) * 0.5
    return moveaxis(concatenate([d[:1], inner, d[-1:]]), 0, k)


def unwrap(p, discont=None, axis=-1, *, period=2 * math.pi):
    """Angles without jumps of more than half a period along an axis.   f[*s] → f[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.round(fnp.unwrap([0.0, 6.0]), 3)
    Array([ 0.   , -0.283], f32[2])
    """
    x = as_float(p)
    k = axis_of(axis, x.ndim, "unwrap")
    step = diff(x, axis=k)
    half = period / 2
    moved = remainder(step + half, period) - half
    moved = where((moved == -half) & (step > 0), half, moved)
    fix = moved - step
    fix = where(ops.abs(step) < (half if discont is None else discont), 0.0, fix)
    first = ops.zeros_like(ops.reduce.rows(x, 0, 1 if x.shape[k] else 0, k))
    return x + concatenate([first, cumsum(fix, k)], axis=k)


# ---------------------------------------------------------------------------- running, correlation

def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sums along an axis; include_initial: with a 0 before them.

    >>> import fgrad.numpy as fnp
    >>> fnp.cumulative_sum([1, 2, 3], include_initial=True)
    Array([0, 1, 3, 6], i32[4])
    """
    return cumulative(cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running products along an axis; include_initial: with a 1 before them.

    >>> import fgrad.numpy as fnp
    >>> fnp.cumulative_prod([1, 2, 3])
    Array([1, 2, 6], i32[3])
    """
    return cumulative(cumprod, x, axis, dtype, include_initial, 1)


def cumulative(running, x, axis, dtype, include_initial, first):
    """running, maybe with a first element."""
    x = as_value(x)
    if axis is None and x.ndim != 1:
        raise ShapeError("the axis can be left out for vectors only.", given=typed(x), fix="axis=0")
    k = axis_of(-1 if axis is None else axis, x.ndim, "cumulative")
    out = running(x, k, dtype)
    if not include_initial:
        return out
    sizes = tuple(1 if a == k else n for a, n in enumerate(x.shape))
    return concatenate([ops.full(shape=sizes, value=first, dtype=out.dtype), out], axis=k)


def correlate(a, v, mode="valid"):
    """Σ a[n + k] v*[n] of vectors: the convolution with v* backwards.   n[a] n[v] → as convolve

    >>> import fgrad.numpy as fnp
    >>> fnp.correlate([1, 2, 3], [0, 1])
    Array([2, 3], i32[2])
    """
    x, y = numbers(a, v)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError("correlate needs vectors.", given=[typed(x), typed(y)])
    out = convolve(x, ops.rev(conjugate(y), axes=(0,)), "full")
    n, m = x.size, y.size
    small, cut = builtins.min(n, m), builtins.max(n, m)
    start = {"full": 0, "valid": small - 1, "same": (small - 1) // 2 if n >= m else small // 2}
    size = {"full": n + m - 1, "valid": cut - small + 1, "same": cut}
    if mode not in start:
        raise ArgumentError(f"correlate has no mode {mode!r}.", expected="full, same or valid")
    return out[start[mode]:start[mode] + size[mode]]


# ---------------------------------------------------------------------------- partial order

def partition(a, kth, axis=-1):
    """An array whose element kth along the axis is where sorting puts it: here all of them are.

    >>> import fgrad.numpy as fnp
    >>> fnp.partition([3, 1, 2], 1)
    Array([1, 2, 3], i32[3])
    """
    return sort(a, axis)


def argpartition(a, kth, axis=-1):
    """The places of the elements of `partition`.   n[*s] → i32[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.argpartition([3, 1, 2], 1).shape
    (3,)
    """
    return argsort(a, axis)


def lexsort(keys, axis=-1):
    """The places of elements in order of the last key, equal ones in order of the one before, ….

    k[*s] keys → i32[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.lexsort([[2, 1, 1], [0, 0, 1]])
    Array([1, 0, 2], i32[3])
    """
    values = [as_value(k) for k in keys]
    if not values:
        raise ShapeError("lexsort needs at least one key.")
    k = axis_of(axis, values[0].ndim, "lexsort")
    return ops.order(*values[::-1], axis=k)
