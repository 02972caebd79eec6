"""Ranges of numbers and grids of them.

Whole ranges are counted by an operation, so that compiled code needs no memory for them.
"""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..core import Tracer, Value, array_in, as_value
from ..errors import ArgumentError, RangeError
from ..types import BOOL, F32, F64, SCALARS, as_dtype, default_int
from .axes import axis_of, count_of, shape_of
from .promotion import (
    as_float, binary, cast, floating_together, in_kind, join, kind, of_one_dtype, same)

WHOLE = 1 << 24            # numbers up to this that are whole are exact in f32


def arange(start, stop=None, step=None, dtype=None):
    """start, start + step, … below stop, as in NumPy; whole numbers give i32.   → n[count]

    Raises RangeError for a step of 0.  The bounds decide the shape, so they cannot be traced
    arrays.

    >>> arange(3).tolist(), arange(1.0, 2.0, 0.5).tolist()
    ([0, 1, 2], [1.0, 1.5])
    """
    if stop is None:
        start, stop = 0, start
    numbers = [known(x, "arange") for x in (start, stop, 1 if step is None else step)]
    others = [x for x in numbers if not isinstance(x, (int, float))]
    if others:
        raise ArgumentError("arange counts with numbers.", given=[f"{x!r:.60}" for x in others],
                            expected="ints or floats: start, stop, step")
    if numbers[2] == 0:
        raise RangeError("arange needs a step that is not 0.")
    kinds = [kind(x) if x.__class__ in SCALARS or isinstance(x, Value) else x.dtype
             for x in (start, stop, step) if x is not None and x.__class__ is not bool]
    dtype = as_dtype(dtype) if dtype is not None else join(kinds or [int])
    if all(x.__class__ is int for x in numbers) and dtype != BOOL:
        return whole_range(*numbers, dtype)
    if dtype in (F32, F64) and all(x == x // 1 and abs(x) <= WHOLE for x in numbers):
        return whole_range(*map(int, numbers), dtype)
    return array_in(np.arange(*numbers), dtype)


def whole_range(start, stop, step, dtype):
    """The range of ints, counted by an operation: compiled code needs no memory for it."""
    count = max(0, -(-(stop - start) // step))
    if count:
        in_kind(start, dtype), in_kind(start + (count - 1) * step, dtype)
    out = ops.iota(shape=(count,), axis=0, dtype=dtype)
    if count <= 1:
        step = 1                                 # whatever it is, it need not fit
    if step < 0 and dtype.kind == "u":
        return same(ops.sub, start, out if step == -1 else same(ops.mul, out, -step))
    out = out if step == 1 else same(ops.mul, out, step)
    return out if start == 0 else same(ops.add, out, start)


def known(x, name):
    """x as a Python number; asks a traced Python number for its value."""
    if isinstance(x, Tracer):
        x = x.value_for(name)
    return x.item() if getattr(x, "size", None) == 1 else x


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """`num` evenly spaced numbers from start to stop, which is left out unless `endpoint`.

    f[*s] f[*s] → f[num,*s], the new axis at `axis`.  retstep: also the step.

    >>> linspace(0.0, 1.0, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    num = count_of(num, "linspace", "samples")
    parts = num - 1 if endpoint else num
    x, y = floating_together(start, stop)
    whole = dtype is not None and as_dtype(dtype).kind in "iu"
    if whole:                                    # rounded down, as in NumPy, from enough digits
        x, y = cast(x, F64), cast(y, F64)
    width = same(ops.sub, y, x)
    shape, rest = (num, *x.shape), tuple(range(1, x.ndim + 1))
    place, last = ops.iota(shape=shape, axis=0, dtype=x.dtype), float(max(parts, 1))
    share = same(ops.div, place, last)
    x, y, wide = [ops.broadcast(v, shape=shape, axes=(0,)) for v in (x, y, width)]
    added = same(ops.mul, place, same(ops.div, wide, last)) if whole else same(ops.mul, wide, share)
    out = same(ops.add, x, added)
    if endpoint and num > 1:                                 # the last one exactly
        out = ops.select(same(ops.eq, share, 1.0), y, out)
    perm = list(rest)
    perm.insert(axis_of(axis, len(shape), "linspace"), 0)
    out = out if axis == 0 else ops.transpose(out, perm=tuple(perm))
    out = out if dtype is None else cast(ops.floor(out) if whole else out, as_dtype(dtype))
    step = same(ops.div, width, float(parts)) if parts else same(ops.mul, width, math.nan)
    return (out, step) if retstep else out


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None):
    """base to the power of evenly spaced numbers.   → f[num]

    >>> import fgrad.numpy as fnp
    >>> fnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], f32[3])
    """
    out = same(ops.pow, float(base), linspace(start, stop, num, endpoint))
    return out if dtype is None else cast(out, as_dtype(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None):
    """Numbers from start to stop, each the same multiple of the one before.   → f[num]

    >>> import fgrad.numpy as fnp
    >>> fnp.round(fnp.geomspace(1, 100, 3), 3)
    Array([  1.,  10., 100.], f32[3])
    """
    ends = [as_float(v) for v in of_one_dtype(start, stop)]
    sign = ops.sign(ends[0])
    logs = linspace(*[ops.log(ops.abs(v)) for v in ends], num, endpoint)
    out = binary(ops.mul, ops.exp(logs), sign)
    return out if dtype is None else cast(out, as_dtype(dtype))


def meshgrid(*xi, indexing="xy"):
    """Coordinate arrays of a grid: one array per argument, each of the shape of the whole grid.

    n[a] n[b] → n[b,a] each; for indexing="ij", n[a,b] each.

    >>> import fgrad.numpy as fnp
    >>> xs, ys = fnp.meshgrid([1, 2, 3], [10, 20])
    >>> xs, ys[:, 0]
    (Array([[1, 2, 3],
           [1, 2, 3]], i32[2,3]), Array([10, 20], i32[2]))
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid needs indexing 'xy' or 'ij', not {indexing!r}.")
    values = [ops.reshape(v, shape=(v.size,)) for v in map(as_value, xi)]
    order = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(values[k].size for k in order)
    return [ops.broadcast(v, shape=shape, axes=tuple(a for a in range(len(shape)) if order[a] != k))
            for k, v in enumerate(values)]


def indices(dimensions, dtype=None):
    """The index of every place of a grid along each axis.   → i32[ndim,*dimensions]

    >>> import fgrad.numpy as fnp
    >>> fnp.indices((2, 3)).shape
    (2, 2, 3)
    """
    shape = shape_of(dimensions, "indices")
    dtype = default_int() if dtype is None else as_dtype(dtype)
    parts = [ops.iota(shape=(1, *shape), axis=a + 1, dtype=dtype) for a in range(len(shape))]
    return ops.concatenate(*parts, axis=0) if parts else ops.full(shape=(0,), value=0, dtype=dtype)
