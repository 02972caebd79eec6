"""Sorting, and what follows from it: median, quantile.

Sorting is stable; NaN comes last.  The derivative of a sorted element flows to where it came from.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..core import Tracer, Value, array_in, as_value
from ..errors import ArgumentError, RangeError, ShapeError
from ..types import F64, I32
from .axes import axes_of, axis_of, typed
from .elementwise import isnan
from .promotion import as_float, cast, same
from .reductions import any as any_of


def flattened(a, axis, name):
    """(value, axis): of the flat array for None."""
    x = as_value(a)
    if axis is None:
        return ops.reshape(x, shape=(x.size,)), 0
    return x, axis_of(axis, x.ndim, name)


KINDS = (None, "stable", "mergesort", "quicksort", "heapsort")


def check_kind(kind, name):
    """Raises ArgumentError for a kind of sorting that NumPy does not know; each is stable here."""
    if kind not in KINDS:
        raise ArgumentError(f"{name} has no kind {kind!r}.", given=f"kind={kind!r}",
                            expected=", ".join(map(repr, KINDS[1:])))


def sort(a, axis=-1, descending=False, *, kind=None, stable=True):
    """The elements along `axis` in order; None: of the flat array.   n[*s] → n[*s]

    NaN is the largest: the last, or with `descending` the first.  kind, stable: as NumPy's; the
    order is stable whatever they say.

    >>> sort([3, 1, 2]).tolist()
    [1, 2, 3]
    """
    check_kind(kind, "sort")
    x, k = flattened(a, axis, "sort")
    out = ops.sort(x, axis=k)
    return ops.rev(out, axes=(k,)) if descending else out


def argsort(a, axis=-1, descending=False, *, kind=None, stable=True):
    """The places of the elements along `axis` in order; equal elements keep their order.

    n[*s] → i32[*s].  kind, stable: as for `sort`.

    >>> import fgrad.numpy as fnp
    >>> fnp.argsort([3.0, 1.0, 2.0])
    Array([1, 2, 0], i32[3])
    """
    check_kind(kind, "argsort")
    x, k = flattened(a, axis, "argsort")
    if descending:
        x = ops.rev(x, axes=(k,))
    out = ops.order(x, axis=k)
    if not descending:
        return out
    return same(ops.sub, x.shape[k] - 1, ops.rev(out, axes=(k,)))


def quantile(a, q, axis=None, keepdims=False, *, method="linear"):
    """The values below which a share q of the elements lies.

    f[*s] → f[*q, s without axes].  q is a number, or an array of numbers, in [0, 1]; one that is
    traced is held there, and has its derivative.  NaN makes NaN.  method: what lies between two
    elements: "linear", "lower", "higher", "midpoint", or "nearest", in the middle the one at an
    even place, as in NumPy.

    >>> import fgrad.numpy as fnp
    >>> fnp.quantile([1.0, 2.0, 4.0], 0.75)
    Array(3., f32[])
    """
    x = as_float(a)
    check_method(method, "quantile")
    axes = axes_of(axis, x.ndim, "quantile")
    share = in_f64(q) if isinstance(q, Tracer) else known_shares(q, "quantile")
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    flat = ops.transpose(x, perm=(*axes, *rest))
    flat = ops.reshape(flat, shape=(size_of(x, axes), *[x.shape[k] for k in rest]))
    if not flat.shape[0]:
        raise ShapeError("quantile of no elements is not defined.", given=typed(x))
    out = interpolated(sort(flat, 0), share, method)
    out = ops.select(broadcast(any_of(isnan(flat), 0), out), float("nan"), out)
    if not keepdims:
        return out
    sizes = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    return ops.reshape(out, shape=share.shape + sizes)


def in_f64(q):
    """A traced value or an array of NumPy, of f64: so places have the same digits with jit."""
    return ops.convert(q, dtype=F64) if isinstance(q, Tracer) else np.asarray(q, float)


def known_shares(q, name):
    """The shares as an array of NumPy.  Raises RangeError unless they lie between 0 and 1."""
    share = np.asarray(q.value_for(f"the share q of {name}") if isinstance(q, Value) else q, float)
    if not ((share >= 0) & (share <= 1)).all():
        raise RangeError(f"{name} needs shares between 0 and 1.", given=f"q={q}")
    return share


def size_of(x, axes):
    """The number of elements of these axes together."""
    return int(np.prod([x.shape[k] for k in axes], dtype=int))


def broadcast(x, like):
    """x repeated along the first axes of `like`."""
    return ops.broadcast(x, shape=like.shape, axes=tuple(range(like.ndim - x.ndim)))


PLACE = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}     # method → the place taken


def check_method(method, name):
    """Raises ArgumentError for a method that there is not."""
    if method not in ("linear", "midpoint", *PLACE):
        raise ArgumentError(f"{name} has no method {method!r}.", given=f"method={method!r}",
                            expected="linear, lower, higher, midpoint or nearest")


def interpolated(ordered, share, method):
    """Between the two elements around each share of the way through axis 0."""
    place = share * (ordered.shape[0] - 1.0)
    if method in PLACE:
        place = PLACE[method](place)
    low, high = np.floor(place), np.ceil(place)
    place = (low + high) / 2.0 if method == "midpoint" else place
    a, b = [ops.gather(ordered, as_value(i.astype(I32)), axes=(0,)) for i in (low, high)]
    if isinstance(share, Tracer):
        between = cast(place - low, ordered.dtype)
    elif (low == place).all():
        return a
    else:
        between = as_float(array_in(place - low, ordered.dtype))
    return weighted(a, b, ops.broadcast(between, shape=a.shape,
                                        axes=tuple(range(share.ndim, a.ndim))))


def weighted(a, b, t):
    """a + (b - a) t; a where t is 0, or where both are the same infinity.   f[*s] each → f[*s]"""
    alike = same(ops.and_, same(ops.eq, a, b), ops.not_(ops.is_finite(a)))
    apart = ops.select(alike, 0.0, same(ops.sub, b, a))
    return ops.select(same(ops.eq, t, 0.0), a, same(ops.add, a, same(ops.mul, apart, t)))


def median(a, axis=None, keepdims=False):
    """The middle element, or the mean of the two in the middle.   f[*s] → f[s without axes]

    >>> median([3.0, 1.0, 2.0]).item()
    2.0
    """
    return quantile(a, 0.5, axis, keepdims)


def percentile(a, q, axis=None, keepdims=False, *, method="linear"):
    """quantile with shares in percent.

    >>> import fgrad.numpy as fnp
    >>> fnp.percentile([1.0, 2.0, 4.0], 50)
    Array(2., f32[])
    """
    return quantile(a, in_f64(q) / 100.0, axis, keepdims, method=method)
