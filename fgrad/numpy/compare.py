"""Comparing whole arrays, and choosing by them."""

from __future__ import annotations

from .. import ops
from ..control import fori_loop
from ..core import as_value
from ..errors import ArgumentError, ShapeError
from ..types import BOOL, I32
from .axes import typed
from .contract import numbers
from .elementwise import absolute, isnan, remainder, where
from .joining import concatenate
from .promotion import as_float, binary, floating_together, of_one_dtype, same, together
from .reductions import all as all_of


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|a - b| <= atol + rtol |b|, elementwise; equal infinities are close.

    n[*a] n[*b] → bool[*broadcast]

    >>> import fgrad.numpy as fnp
    >>> fnp.isclose([1.0, 1.1], 1.0), fnp.isclose(1.0, 1.1, atol=0.2)
    (Array([ True, False], bool[2]), Array(True, bool[]))
    """
    x, y = floating_together(a, b)
    apart, size = absolute(same(ops.sub, x, y)), absolute(y)
    near = same(ops.le, apart, same(ops.add, same(ops.mul, size, float(rtol)), float(atol)))
    near = same(ops.and_, near, ops.is_finite(y))
    near = same(ops.or_, near, same(ops.eq, x, y))
    if equal_nan:
        near = same(ops.or_, near, same(ops.and_, isnan(x), isnan(y)))
    return near


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements close?   → bool[]

    >>> import fgrad.numpy as fnp
    >>> fnp.allclose([1.0, 2.0], [1.0, 2.0 + 1e-6])
    Array(True, bool[])
    """
    return all_of(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2, equal_nan=False):
    """Do both have one shape, and equal elements?   → bool[]

    >>> import fgrad.numpy as fnp
    >>> fnp.array_equal([1, 2], [1, 2]), fnp.array_equal([1, 2], [1, 2, 3])
    (Array(True, bool[]), Array(False, bool[]))
    """
    x, y = as_value(a1), as_value(a2)
    if x.shape != y.shape:
        return ops.full(shape=(), value=False, dtype=BOOL)
    found = binary(ops.eq, x, y)
    if equal_nan:
        found = same(ops.or_, found, same(ops.and_, isnan(x), isnan(y)))
    return all_of(found)


def select(condlist, choicelist, default=0):
    """Per element the choice of the first condition that holds, else `default`.

    Raises ShapeError when there are not as many choices as conditions.

    >>> import fgrad.numpy as fnp
    >>> fnp.select([[True, False], [True, True]], [[1, 2], [3, 4]])
    Array([1, 4], i32[2])
    """
    if len(condlist) != len(choicelist):
        raise ShapeError("select needs one choice for each condition.",
                         given=f"{len(condlist)} conditions, {len(choicelist)} choices")
    *choices, out = of_one_dtype(*choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1]):
        out = where(condition, choice, out)
    return out


def interp(x, xp, fp, left=None, right=None, period=None):
    """The piecewise linear function through the points (xp, fp) at x; xp ascending.

    f[*s] f[n] f[n] → f[*s]

    Outside it is the value at the end, or `left` and `right`.  period: the function repeats after
    so much; xp is in any order then, and `left` and `right` are not used.
    Raises ShapeError for points that are no two rows, ArgumentError for a period of 0.

    >>> import fgrad.numpy as fnp
    >>> fnp.interp([0.5, 3.0], [0.0, 1.0], [0.0, 10.0])
    Array([ 5., 10.], f32[2])
    >>> fnp.interp([-90.0, 315.0], [0.0, 180.0], [0.0, 1.0], period=360.0)
    Array([0.5 , 0.25], f32[2])
    """
    fp = as_float(fp)
    x, xp = [as_float(v) for v in of_one_dtype(x, xp)]
    if xp.ndim != 1 or fp.shape != xp.shape or not xp.size:
        raise ShapeError("interp needs points of one axis, at least one.",
                         given=[typed(xp), typed(fp)])
    if period is not None:
        return interp(*repeated(x, xp, fp, period))
    inside = ops.gather(fp, ops.full(shape=x.shape, value=0, dtype=I32), axes=(0,))
    if xp.size > 1:
        inside = on_segment(x, xp, fp)
    ends = [end_of(v, j) for v in (xp, fp) for j in (0, xp.size - 1)]
    x, low, high, start, end = together(x, *ends)
    out = where(same(ops.lt, x, low), start if left is None else left, inside)
    return where(same(ops.gt, x, high), end if right is None else right, out)


def repeated(x, xp, fp, period):
    """(x, xp, fp) within one period, in order, with a point beyond either end."""
    if isinstance(period, (int, float)) and period == 0:
        raise ArgumentError("interp(…, period=0) has no period.", expected="a number that is not 0")
    x, xp = remainder(x, period), remainder(xp, period)
    order, period = ops.order(xp, axis=0), absolute(period)
    xp, fp = (ops.gather(v, order, axes=(0,)) for v in (xp, fp))
    xp = concatenate([binary(ops.sub, xp[-1:], period), xp, binary(ops.add, xp[:1], period)])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]])


def on_segment(x, xp, fp):
    """The line through the two points around x."""
    right = ops.clamp(1, searchsorted(xp, x, side="right"), xp.size - 1)
    left = same(ops.sub, right, 1)
    points = [ops.gather(v, i, axes=(0,)) for v in (xp, fp) for i in (left, right)]
    x, x0, x1, y0, y1 = together(x, *points)
    share = same(ops.div, same(ops.sub, x, x0), same(ops.sub, x1, x0))
    return same(ops.add, y0, same(ops.mul, share, same(ops.sub, y1, y0)))


def end_of(x, k):
    """Element k of a vector."""
    return ops.reshape(ops.reduce.rows(x, k, k + 1), shape=())


FEW = 48                   # elements up to which each is compared with all of them


def searchsorted(a, v, side="left", *, method=None):
    """Where v would be inserted into the ascending a, before ("left") or behind equal elements.

    n[k] n[*v] → i32[*v]; NaN is last, as in a sorted array.

    Raises ShapeError for an a that is no row.  `method`, which JAX asks for, changes nothing.
    The halves of what is left are compared, log₂ k times; of a few elements all, in one loop.

    >>> import fgrad.numpy as fnp
    >>> fnp.searchsorted([1, 3, 5], [0, 3, 9])
    Array([0, 1, 3], i32[3])
    """
    x, y = numbers(a, v)
    if x.ndim != 1:
        raise ShapeError("searchsorted needs one row of sorted elements.", given=f"a: {typed(x)}",
                         expected="an array of one axis",
                         fix="vmap(searchsorted), for a row each")
    n = x.shape[0]
    if n > FEW:
        return halved(x, y, side)
    wide = (*y.shape, n)
    rows = ops.broadcast(x, shape=wide, axes=tuple(range(y.ndim)))
    values = ops.broadcast(y, shape=wide, axes=(y.ndim,))
    return ops.reduce_sum(ops.convert(before(rows, values, side), dtype=I32), axes=(y.ndim,))


def before(x, v, side):
    """Does x stand before the place of v, elementwise?   → bool[…]"""
    found = same(ops.lt if side == "left" else ops.le, x, v)
    if v.dtype.kind != "f":
        return found
    last = isnan(v)
    if side == "left":
        last = same(ops.and_, last, ops.not_(isnan(x)))
    return same(ops.or_, found, last)


def halved(x, y, side):
    """searchsorted by powers of two: a step forward where all elements up to there stand before."""
    n = x.shape[0]
    steps = n.bit_length()

    def step(k, place):
        ahead = place + ops.convert(1 << (steps - 1 - k), dtype=I32)
        moves = (ahead <= n) & before(ops.gather(x, ahead - 1, axes=(0,)), y, side)
        return ops.select(moves, ahead, place)
    return fori_loop(0, steps, step, ops.full(shape=y.shape, value=0, dtype=I32))
