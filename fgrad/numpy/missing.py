"""Reductions that leave NaN out: nansum, nanmean, nanmedian and the like."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..core import Tracer, Value, array_in, as_value
from ..types import INEXACT_KINDS, computed
from .axes import axes_of
from .elementwise import isnan, where
from .promotion import as_float, binary, broadcast_to, cast, same
from .reductions import all as all_of
from .reductions import argmax, argmin, cumprod, cumsum, max, mean, min, prod, sum, var
from .shape import moveaxis
from .sorting import PLACE, check_method, known_shares, sort, weighted


def without(a, value):
    """a with `value` in place of NaN."""
    x = as_value(a)
    return where(isnan(x), value, x) if x.dtype.kind in INEXACT_KINDS else x


def there(x):
    """Where x is not NaN."""
    return ops.not_(isnan(x))


# ---------------------------------------------------------------------------- sums, means

def nansum(a, axis=None, dtype=None, keepdims=False, *, initial=None, where=None):
    """The sum over `axis`, NaN left out.

    >>> import fgrad.numpy as fnp
    >>> fnp.nansum([1.0, fnp.nan])
    Array(1., f32[])
    """
    return sum(without(a, 0), axis, dtype, keepdims, initial=initial, where=where)


def nanprod(a, axis=None, dtype=None, keepdims=False, *, initial=None, where=None):
    """The product over `axis`, NaN left out.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanprod([2.0, fnp.nan])
    Array(2., f32[])
    """
    return prod(without(a, 1), axis, dtype, keepdims, initial=initial, where=where)


def nanmean(a, axis=None, dtype=None, keepdims=False):
    """The mean over `axis`, NaN left out; NaN where there is nothing else.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanmean([1.0, fnp.nan, 3.0])
    Array(2., f32[])
    """
    x = as_float(a)
    return mean(without(x, 0), axis, dtype, keepdims, where=there(x))


def nanvar(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """The variance over `axis`, NaN left out; NaN where there is nothing else.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanvar([1.0, fnp.nan, 3.0])
    Array(1., f32[])
    """
    x = as_float(a)
    counts = there(x)
    out = var(without(x, 0), axis, dtype, ddof, keepdims, where=counts)
    few = same(ops.le, sum(counts, axis, keepdims=keepdims), ddof)
    return ops.select(few, math.nan, out)


def nanstd(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """The standard deviation over `axis`, NaN left out; NaN where there is nothing else.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanstd([1.0, fnp.nan, 3.0])
    Array(1., f32[])
    """
    return ops.sqrt(nanvar(a, axis, dtype, ddof, keepdims))


def nancumsum(a, axis=None, dtype=None):
    """Running sums along `axis`, NaN counted as 0.

    >>> import fgrad.numpy as fnp
    >>> fnp.nancumsum([1.0, fnp.nan, 3.0])
    Array([1., 1., 4.], f32[3])
    """
    return cumsum(without(a, 0), axis, dtype)


def nancumprod(a, axis=None, dtype=None):
    """Running products along `axis`, NaN counted as 1.

    >>> import fgrad.numpy as fnp
    >>> fnp.nancumprod([2.0, fnp.nan, 3.0])
    Array([2., 2., 6.], f32[3])
    """
    return cumprod(without(a, 1), axis, dtype)


# ---------------------------------------------------------------------------- extremes

def nanmax(a, axis=None, keepdims=False):
    """The largest element over `axis`, NaN left out; NaN where there is nothing else.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanmax([1.0, fnp.nan])
    Array(1., f32[])
    """
    return without_nan(max, a, axis, keepdims, -math.inf)


def nanmin(a, axis=None, keepdims=False):
    """The smallest element over `axis`, NaN left out; NaN where there is nothing else.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanmin([1.0, fnp.nan])
    Array(1., f32[])
    """
    return without_nan(min, a, axis, keepdims, math.inf)


def without_nan(extreme_of, a, axis, keepdims, worst):
    """The extreme of the elements that are numbers."""
    x = as_value(a)
    if x.dtype.kind != "f":
        return extreme_of(x, axis, keepdims)
    gone = isnan(x)
    out = extreme_of(ops.select(gone, worst, x), axis, keepdims)
    return ops.select(all_of(gone, axis, keepdims), math.nan, out)


def nanargmax(a, axis=None, keepdims=False):
    """The position of the largest element, NaN left out; -1 where there is none.   → i32

    >>> import fgrad.numpy as fnp
    >>> fnp.nanargmax([fnp.nan, 1.0, 3.0])
    Array(2, i32[])
    """
    return position_of(argmax, a, axis, keepdims, -math.inf)


def nanargmin(a, axis=None, keepdims=False):
    """The position of the smallest element, NaN left out; -1 where there is none.   → i32

    >>> import fgrad.numpy as fnp
    >>> fnp.nanargmin([fnp.nan, 1.0, 3.0])
    Array(1, i32[])
    """
    return position_of(argmin, a, axis, keepdims, math.inf)


def position_of(position, a, axis, keepdims, worst):
    """The position among the elements that are numbers."""
    x = as_value(a)
    if x.dtype.kind != "f":
        return position(x, axis, keepdims)
    out = position(without(x, worst), axis, keepdims)
    return ops.select(all_of(isnan(x), axis, keepdims), -1, out)


# ---------------------------------------------------------------------------- order statistics

def nanquantile(a, q, axis=None, keepdims=False, *, method="linear"):
    """The values below which a share q of the elements lies, NaN left out.

    f[*s] → f[*q, s without axes].  q is a number or an array in [0, 1].  Between two elements it is
    linear, or as `quantile` says of `method`; NaN where there is nothing else.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanquantile([1.0, fnp.nan, 3.0], 0.5)
    Array(2., f32[])
    """
    x = as_float(a)
    check_method(method, "nanquantile")
    share = q if isinstance(q, Tracer) else array_in(known_shares(q, "nanquantile"), x.dtype)
    if computed(x.dtype) is not x.dtype:
        return cast(nanquantile(cast(x, computed(x.dtype)), q, axis, keepdims, method=method),
                    x.dtype)
    axes = axes_of(axis, x.ndim, "nanquantile")
    rest = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    flat = moveaxis(x, axes, tuple(range(len(axes))))
    flat = sort(ops.reshape(flat, shape=(x.size // max_of_one(rest), *rest)), 0)
    size = sum(cast(there(flat), x.dtype), 0)
    shares = ops.reshape(cast(share, x.dtype), shape=share.shape + (1,) * len(rest))
    place = binary(ops.mul, shares, binary(ops.max, binary(ops.sub, size, 1.0), 0.0))
    out = between(flat, PLACE[method](place) if method in PLACE else place, method)
    if not flat.shape[0]:
        out = ops.full_like(out, math.nan)
    if not keepdims:
        return out
    sizes = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    return ops.reshape(out, shape=share.shape + sizes)


def max_of_one(shape):
    """The number of elements of a shape, at least 1."""
    return math.prod(shape) or 1


def between(ordered, place, method):
    """The elements around each place along axis 0, weighted.   f[n,*r] f[*q,*r] → f[*q,*r]"""
    low, high = ops.floor(place), ops.ceil(place)
    a, b = [picked(ordered, i) for i in (low, high)]
    t = same(ops.sub, place if method != "midpoint" else (low + high) / 2, low)
    return weighted(a, b, t)


def picked(ordered, places):
    """The element of each column at its place: the sum of those whose number is the place."""
    n, lead = ordered.shape[0], places.ndim - (ordered.ndim - 1)
    shape = (n, *places.shape)
    numbers = ops.iota(shape=shape, axis=0, dtype=ordered.dtype)
    hit = same(ops.eq, numbers, broadcast_to(places, shape))
    rows = ops.reshape(ordered, shape=(n, *(1,) * lead, *ordered.shape[1:]))
    return sum(ops.select(hit, broadcast_to(rows, shape), 0.0), 0)


def nanpercentile(a, q, axis=None, keepdims=False, *, method="linear"):
    """nanquantile with shares in percent.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanpercentile([1.0, fnp.nan, 3.0], 50)
    Array(2., f32[])
    """
    share = binary(ops.div, as_float(q), 100.0) if isinstance(q, Value) else np.asarray(q) / 100
    return nanquantile(a, share, axis, keepdims, method=method)


def nanmedian(a, axis=None, keepdims=False):
    """The median over `axis`, NaN left out; NaN where there is nothing else.

    >>> import fgrad.numpy as fnp
    >>> fnp.nanmedian([1.0, fnp.nan, 3.0])
    Array(2., f32[])
    """
    return nanquantile(a, 0.5, axis, keepdims)
