"""Reductions: sums, means, extremes, their positions, and running ones.

`axis` is None (all axes), an int, or several; `keepdims` leaves reduced axes with size 1.  Sums
keep the dtype, but bools and integers below 32 bits are summed as the default int.  Lists are
accepted.  `where`, bools that broadcast to the array, says which elements count; `initial` is one
more element.  Without NaN: `missing`.
"""

from __future__ import annotations

import builtins
from math import prod as product_of

from .. import ops
from ..arguments import lifted
from ..core import _current, as_value
from ..errors import ArgumentError, DtypeError, RangeError, ShapeError
from ..types import (
    BOOL, I64, INEXACT_KINDS, SCALARS, SHORT, U32, U64, as_dtype, computed, default_int, part_of)
from .axes import axes_of, axis_of, typed
from .complex import modulus
from .elementwise import where as choose
from .joining import concatenate
from .promotion import (
    as_bool, as_float, binary, broadcast_to, cast, in_dtype, mask_of, same)


def reduced(op, x, axis, keepdims, name):
    """op over the axes."""
    axes = axes_of(axis, len(x.shape), name)
    out = _current.get().process(op, (x,), {"axes": axes})
    return kept(out, x, axes) if keepdims else out


def kept(out, x, axes):
    """The result with the reduced axes of size 1."""
    return ops.reshape(out, shape=tuple(1 if a in axes else n for a, n in enumerate(x.shape)))


def summable(a, dtype):
    """The value in the dtype in which it is summed."""
    x = as_value(a)
    if dtype is not None:
        return cast(x, as_dtype(dtype))
    if x.dtype.kind in "bi" and x.dtype.itemsize < 4:
        return cast(x, default_int())
    if x.dtype.kind == "u" and x.dtype.itemsize < 4:
        return cast(x, U64 if default_int() == I64 else U32)
    return x


def counted(x, where, value):
    """x, with `value` in place of the elements that do not count."""
    return x if where is None else choose(broadcast_to(mask_of(where), x.shape), x, value)


def begun(out, op, initial):
    """op(out, initial), where there is an initial value."""
    return out if initial is None else cast(binary(op, out, initial), out.dtype)


def count(x, axes):
    """How many elements are reduced into one."""
    return product_of(x.shape[a] for a in axes)


# ---------------------------------------------------------------------------- sums, means

def sum(a, axis=None, dtype=None, keepdims=False, *, initial=None, where=None):
    """The sum over `axis`; 0 of no elements.   n[*s] → n[s without axes]

    Raises AxisError for an axis out of range.

    >>> sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]
    """
    x = summable(a, dtype)
    if where is not None:
        x = counted(x, where, 0)
    out = reduced(ops.reduce_sum, x, axis, keepdims, "sum")
    return out if initial is None else begun(out, ops.add, initial)


def prod(a, axis=None, dtype=None, keepdims=False, *, initial=None, where=None):
    """The product over `axis`; 1 of no elements.   n[*s] → n[s without axes]

    >>> import fgrad.numpy as fnp
    >>> fnp.prod([[1, 2], [3, 4]], axis=1)
    Array([ 2, 12], i32[2])
    """
    x = counted(summable(a, dtype), where, 1)
    return begun(reduced(ops.reduce_prod, x, axis, keepdims, "prod"), ops.mul, initial)


def mean(a, axis=None, dtype=None, keepdims=False, *, where=None):
    """The arithmetic mean over `axis`, of floats; NaN of no elements.   f[*s] → f[s without axes]

    >>> mean([1.0, 2.0, 6.0]).item()
    3.0
    """
    x = as_float(a) if dtype is None else in_dtype(a, as_dtype(dtype))
    axes = axes_of(axis, len(x.shape), "mean")
    if where is not None:
        total = reduced(ops.reduce_sum, counted(widened(x), where, 0), axes, keepdims, "mean")
        return cast(binary(ops.div, total, size_of(x, axes, keepdims, where)), x.dtype)
    total = _current.get().process(ops.reduce_sum, (widened(x),), {"axes": axes})
    out = cast(binary(ops.div, total, float(count(x, axes))), x.dtype)
    return kept(out, x, axes) if keepdims else out


def size_of(x, axes, keepdims, where):
    """How many elements count, as floats."""
    wide = computed(x.dtype) if x.dtype.kind == "f" else part_of(x.dtype)
    there = cast(broadcast_to(mask_of(where), x.shape), wide)
    return reduced(ops.reduce_sum, there, axes, keepdims, "mean")


def widened(x):
    """f16 and bf16 as f32, in which sums of it do not overflow."""
    return cast(x, computed(x.dtype))


def average(a, axis=None, weights=None, returned=False, keepdims=False):
    """The mean with weights of the shape of `a`, or of its one `axis`.

    f[*s] → f[s without axes]

    >>> import fgrad.numpy as fnp
    >>> fnp.average([1.0, 4.0], weights=[2.0, 1.0])
    Array(2., f32[])
    """
    x = as_float(a)
    axes = axes_of(axis, x.ndim, "average")
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        total = broadcast_to(as_value(float(count(x, axes))), out.shape)
        return (out, cast(total, out.dtype)) if returned else out
    w = as_float(weights)
    if w.shape != x.shape:
        w = along(w, x, axes)
    total = reduced(ops.reduce_sum, w, axis, keepdims, "average")
    out = binary(ops.div, sum(binary(ops.mul, x, w), axis, keepdims=keepdims), total)
    return (out, total) if returned else out


def along(w, x, axes):
    """Weights of one axis, spread over the others."""
    if len(axes) != 1 or w.shape != (x.shape[axes[0]],):
        raise ShapeError("average needs weights of the shape of the array, or of its one axis.",
                         given=[f"array: {typed(x)}", f"weights: {typed(w)}"])
    return ops.broadcast(w, shape=x.shape, axes=tuple(a for a in range(x.ndim) if a not in axes))


def var(a, axis=None, dtype=None, ddof=0, keepdims=False, *, where=None, correction=None):
    """The mean squared distance from the mean, divided by n - ddof.   f[*s] → f[s without axes]

    correction: the array API's name of ddof.

    >>> import fgrad.numpy as fnp
    >>> fnp.var([1.0, 2.0, 3.0]), fnp.var([1.0, 2.0, 3.0], ddof=1)
    (Array(0.6666667, f32[]), Array(1., f32[]))
    """
    x = floats_of(a, dtype, "var")
    out = wide_var(x, axis, ddof, keepdims, where, correction)
    return out if x.dtype.kind == "c" else cast(out, x.dtype)


def floats_of(a, dtype, name):
    """The value in a dtype, of floats if None.  Raises DtypeError for a dtype of integers."""
    if dtype is None:
        return as_float(a)
    dtype = as_dtype(dtype)
    if dtype.kind not in INEXACT_KINDS:
        raise DtypeError(f"{name} is computed with floats.", given=f"dtype={SHORT[dtype]}",
                         fix="leave out dtype=, and convert the result with astype")
    return in_dtype(a, dtype)


def wide_var(x, axis, ddof, keepdims, where, correction):
    """The variance, not yet rounded to f16 or bf16."""
    if correction is not None:
        if ddof:
            raise ArgumentError("ddof and correction say the same; give one of them.",
                                given=f"ddof={ddof!r}, correction={correction!r}")
        ddof = correction
    axes, wide = axes_of(axis, x.ndim, "var"), widened(x)
    centre = broadcast_to(mean(wide, axes, keepdims=True, where=where), x.shape)
    apart = same(ops.sub, wide, centre)
    if apart.dtype.kind == "c":
        apart = modulus(apart)
    squares = counted(ops.square(apart), where, 0)
    total = reduced(ops.reduce_sum, squares, axes, keepdims, "var")
    if where is None:
        divisor = float(builtins.max(count(x, axes) - ddof, 0))
    else:
        divisor = binary(ops.max, binary(ops.sub, size_of(x, axes, keepdims, where), ddof), 0.0)
    return binary(ops.div, total, divisor)


def std(a, axis=None, dtype=None, ddof=0, keepdims=False, *, where=None, correction=None):
    """The square root of the variance; its derivative is infinite where all elements are equal.

    >>> import fgrad.numpy as fnp
    >>> fnp.std([[1.0, 5.0], [3.0, 3.0]], axis=1)
    Array([2., 0.], f32[2])
    """
    x = floats_of(a, dtype, "std")
    out = ops.sqrt(wide_var(x, axis, ddof, keepdims, where, correction))
    return out if x.dtype.kind == "c" else cast(out, x.dtype)


def count_nonzero(a, axis=None, keepdims=False):
    """How many elements are not 0.   n[*s] → i32[s without axes]

    >>> import fgrad.numpy as fnp
    >>> fnp.count_nonzero([0, 3, 5])
    Array(2, i32[])
    """
    return reduced(ops.reduce_sum, cast(as_bool(a), default_int()), axis, keepdims, "count_nonzero")


# ---------------------------------------------------------------------------- extremes

def extreme(op, a, axis, keepdims, name, pair, initial, where):
    """op over axes that hold at least one element, or start with one."""
    x = as_value(a)
    axes = axes_of(axis, x.ndim, name)
    if initial is None and (where is not None or not count(x, axes)):
        raise ShapeError(f"{name} of no elements is not defined.", given=typed(x),
                         fix=["give initial=, which also where= needs",
                              "reduce over axes that are not empty, or check x.size first"])
    x = x if where is None else choose(broadcast_to(mask_of(where), x.shape), x, initial)
    out = _current.get().process(op, (x,), {"axes": axes})
    return begun(kept(out, x, axes) if keepdims else out, pair, initial)


def max(a, axis=None, keepdims=False, *, initial=None, where=None):
    """The largest element over `axis`; NaN if there is one.   n[*s] → n[s without axes]

    Ties share the derivative.  Raises ShapeError for no elements, unless there is an `initial`.

    >>> import fgrad.numpy as fnp
    >>> fnp.amax([[1, 5], [7, 2]], axis=1)
    Array([5, 7], i32[2])
    """
    return extreme(ops.reduce_max, a, axis, keepdims, "max", ops.max, initial, where)


def min(a, axis=None, keepdims=False, *, initial=None, where=None):
    """The smallest element over `axis`; NaN if there is one.   n[*s] → n[s without axes]

    Ties share the derivative.  Raises ShapeError for no elements, unless there is an `initial`.

    >>> import fgrad.numpy as fnp
    >>> fnp.min([[1, 5], [7, 2]], axis=1, keepdims=True)
    Array([[1],
           [2]], i32[2,1])
    """
    return extreme(ops.reduce_min, a, axis, keepdims, "min", ops.min, initial, where)


amax, amin = max, min


def ptp(a, axis=None, keepdims=False):
    """The largest minus the smallest element.   n[*s] → n[s without axes]

    >>> import fgrad.numpy as fnp
    >>> fnp.ptp([3, 1, 8])
    Array(7, i32[])
    """
    return same(ops.sub, max(a, axis, keepdims), min(a, axis, keepdims))


def all(a, axis=None, keepdims=False, *, where=None):
    """Are all elements true, or not 0?   n[*s] → bool[s without axes]

    >>> import fgrad.numpy as fnp
    >>> fnp.all([[True, False], [True, True]], axis=1)
    Array([False,  True], bool[2])
    """
    return reduced(ops.reduce_and, counted(as_bool(a), where, True), axis, keepdims, "all")


def any(a, axis=None, keepdims=False, *, where=None):
    """Is one of the elements true, or not 0?   n[*s] → bool[s without axes]

    >>> import fgrad.numpy as fnp
    >>> fnp.any([[True, False], [False, False]], axis=1)
    Array([ True, False], bool[2])
    """
    return reduced(ops.reduce_or, counted(as_bool(a), where, False), axis, keepdims, "any")


def position(op, a, axis, keepdims, name):
    """op along one axis; along the flat array for None."""
    x = as_value(a)
    k = None if axis is None else axis_of(axis, x.ndim, name)
    if not (x.size if k is None else x.shape[k]):
        raise ShapeError(f"{name} of no elements is not defined.", given=typed(x))
    if k is None:
        out = op(ops.reshape(x, shape=(x.size,)), axis=0)
        return ops.reshape(out, shape=(1,) * x.ndim) if keepdims else out
    out = op(x, axis=k)
    return kept(out, x, (k,)) if keepdims else out


def argmax(a, axis=None, keepdims=False):
    """The position of the first largest element along `axis`; None: in the flat array.   → i32

    Raises ShapeError for no elements.

    >>> import fgrad.numpy as fnp
    >>> fnp.argmax([3, 7, 7]), fnp.argmax([[1, 5], [7, 2]], axis=1)
    (Array(1, i32[]), Array([1, 0], i32[2]))
    """
    return position(ops.argmax, a, axis, keepdims, "argmax")


def argmin(a, axis=None, keepdims=False):
    """The position of the first smallest element along `axis`; None: in the flat array.   → i32

    >>> import fgrad.numpy as fnp
    >>> fnp.argmin([3, 1, 1]), fnp.argmin([[1, 5], [7, 2]], axis=1)
    (Array(1, i32[]), Array([0, 1], i32[2]))
    """
    return position(ops.argmin, a, axis, keepdims, "argmin")


# ---------------------------------------------------------------------------- running

def running(op, a, axis, dtype, name):
    """op along one axis; along the flat array for None."""
    x = summable(a, dtype)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    return op(x, axis=axis_of(axis, x.ndim, name), reverse=False)


def cumsum(a, axis=None, dtype=None):
    """Sums of each element and all before it along `axis`; None: of the flat array.

    n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.cumsum([1, 2, 3])
    Array([1, 3, 6], i32[3])
    """
    return running(ops.cumsum, a, axis, dtype, "cumsum")


def cumprod(a, axis=None, dtype=None):
    """Products of each element and all before it along `axis`; None: of the flat array.

    n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.cumprod([[1, 2], [3, 4]], axis=0)
    Array([[1, 2],
           [3, 8]], i32[2,2])
    """
    return running(ops.cumprod, a, axis, dtype, "cumprod")


def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along `axis`, n times.   n[…,k,…] → n[…,k-n,…]

    prepend, append: what comes before and behind a along the axis; a number counts as one element.

    >>> import fgrad.numpy as fnp
    >>> fnp.diff([1, 4, 9])
    Array([3, 5], i32[2])
    """
    if n < 0:
        raise RangeError("diff takes differences n times.", given=f"n={n}", expected="n >= 0")
    x = as_value(a) if n else lifted(a)
    k = axis_of(axis, x.ndim, "diff")
    ends = [end_of(part, x, k) for part in (prepend, append) if part is not None]
    if ends:
        x = concatenate([*ends[:prepend is not None], x, *ends[prepend is not None:]], k)
    for _ in range(n):
        size = x.shape[k]
        op = ops.ne if x.dtype == BOOL else ops.sub
        x = same(op, ops.reduce.rows(x, builtins.min(1, size), size, k),
                 ops.reduce.rows(x, 0, builtins.max(size - 1, 0), k))
    return x


def end_of(part, x, k):
    """What `diff` puts at an end of x along axis k: a number is one element wide."""
    if part.__class__ not in SCALARS and as_value(part).ndim:
        return as_value(part)
    shape = (*x.shape[:k], 1, *x.shape[k + 1:])
    return binary(ops.add, ops.full(shape=shape, value=0, dtype=x.dtype), part)

