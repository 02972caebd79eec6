"""Reductions of the rows that share a segment: sums over the edges of a graph, over groups.

They are in `fgrad.ops`, too, where JAX has them.  Relies on `numpy` and its `.at`.
"""

from __future__ import annotations

from . import numpy as fnp
from .core import Tracer, as_value
from .errors import ArgumentError, DtypeError, ShapeError, boundary
from .numpy.axes import count_of
from .ops.index import roomy
from .scalar import REDUCTIONS
from .types import SHORT


@boundary
def segment_sum(data, segment_ids, num_segments=None, indices_are_sorted=False,
                unique_indices=False, bucket_size=None, mode=None):
    """The sums of the rows of data that have the same id.   n[k,*s] i[k] → n[num_segments,*s]

    num_segments: by default as many as the ids of known values need.  Rows whose id is not in
    [0, num_segments) do not count, so padding has an id outside; a segment of no row is 0 here, 1
    for segment_prod, the lowest number for segment_max, the highest for segment_min.  The last four
    arguments are JAX's and change nothing.

    Raises ShapeError when there is not one id per row, DtypeError for ids that are no integers,
    ArgumentError where num_segments is missing and the ids are not known, RangeError for a negative
    one.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> edges, targets = fnp.array([1.0, 2.0, 4.0]), fnp.array([1, 0, 1])
    >>> segment_sum(edges, targets, num_segments=3)
    Array([2., 5., 0.], f32[3])
    >>> fgrad.grad(lambda e: segment_sum(e, targets, 3)[1] ** 2)(edges)
    Array([10.,  0., 10.], f32[3])
    """
    return reduced("sum", data, segment_ids, num_segments)


@boundary
def segment_prod(data, segment_ids, num_segments=None, indices_are_sorted=False,
                 unique_indices=False, bucket_size=None, mode=None):
    """The products of the rows of data that have the same id: see segment_sum.

    >>> segment_prod(fnp.array([1.0, 2.0, 4.0]), fnp.array([1, 0, 1]))
    Array([2., 4.], f32[2])
    """
    return reduced("prod", data, segment_ids, num_segments)


@boundary
def segment_max(data, segment_ids, num_segments=None, indices_are_sorted=False,
                unique_indices=False, bucket_size=None, mode=None):
    """The largest of the rows of data that have the same id: see segment_sum.

    >>> segment_max(fnp.array([1.0, 2.0, 4.0]), fnp.array([1, 0, 1]), num_segments=3)
    Array([  2.,   4., -inf], f32[3])
    """
    return reduced("max", data, segment_ids, num_segments)


@boundary
def segment_min(data, segment_ids, num_segments=None, indices_are_sorted=False,
                unique_indices=False, bucket_size=None, mode=None):
    """The smallest of the rows of data that have the same id: see segment_sum.

    >>> segment_min(fnp.array([1.0, 2.0, 4.0]), fnp.array([1, 0, 1]), num_segments=3)
    Array([ 2.,  1., inf], f32[3])
    """
    return reduced("min", data, segment_ids, num_segments)


WAYS = {"sum": "add", "prod": "multiply", "max": "max", "min": "min"}


def reduced(how, data, ids, count):
    """The reductions of the rows with the same id."""
    data, ids = as_value(data), roomy(as_value(ids))
    if ids.dtype.kind not in "iu":
        raise DtypeError(f"segment_{how} takes ids that are integers, not {SHORT[ids.dtype]}.",
                         given=repr(ids.type), fix="segment_ids.astype(int)")
    if ids.ndim > data.ndim or data.shape[:ids.ndim] != ids.shape:
        raise ShapeError(f"segment_{how} takes one id for each row of data.",
                         given=f"data {data.type}, ids {ids.type}")
    count = known_count(how, ids) if count is None else count_of(
        count, f"segment_{how}", "num_segments")
    ids = fnp.where(ids < 0, count, ids)         # outside, not from the end
    start = fnp.full((count, *data.shape[ids.ndim:]), REDUCTIONS[how][1](data.dtype), data.dtype)
    return getattr(start.at[ids], WAYS[how])(data, mode="drop")


def known_count(how, ids):
    """As many segments as the largest id needs."""
    if isinstance(ids, Tracer) and ids.known() is None:
        raise ArgumentError(f"segment_{how} needs the number of segments here, since the ids are "
                            "not known before the compiled function runs.",
                            fix="num_segments=n")
    return int(fnp.max(ids)) + 1 if ids.size else 0
