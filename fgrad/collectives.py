"""Sums, maxima and exchange along an axis that vmap has named.

    vmap(lambda x: x / psum(x, "i"), axis_name="i")

Arguments are pytrees; `axis_name` is a name, or a tuple of names where that is said: then the axes
are one, the last name varying fastest.  Relies on `ops.collective`; `lax` gives them to users.
"""

from __future__ import annotations

import math
import operator

from . import tree
from .arguments import is_array, lifted
from .core import bound_axes
from .errors import ArgumentError, AxisNameError, ShapeError
from .numpy.axes import axis_of
from .ops import add, collective, convert, div, mul, reshape
from .types import BOOL, INEXACT_KINDS, SCALARS, default_float, default_int


def size_of(name, what):
    """The size of the axis of this name.  Raises AxisNameError where no vmap around names it."""
    bound = bound_axes()
    try:
        return bound[name]
    except (KeyError, TypeError):
        given = ", ".join(f"{n!r} of size {size}" for n, size in bound.items()) or "none"
        raise AxisNameError(
            f"{what} along the axis {name!r}, which no vmap around it names.",
            given=f"the named axes here: {given}",
            fix=[f"vmap(f, axis_name={name!r}) around the function",
                 "or one of the names above"][:1 + bool(bound)]) from None


def names_of(axis_name, what):
    """A name, or a tuple of names, as [(name, size)]."""
    names = axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)
    return [(n, size_of(n, what)) for n in names]


def axis_size(axis_name):
    """The number of elements of the named axis, an int; of several axes, their product.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: x * axis_size("i"), axis_name="i")(fnp.array([1.0, 2.0]))
    Array([2., 4.], f32[2])
    """
    return math.prod(size for _, size in names_of(axis_name, "axis_size"))


def axis_index(axis_name):
    """The position of this element along the named axis, i32[]; of several axes, along all.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: axis_index("i"), axis_name="i")(fnp.zeros(3))
    Array([0, 1, 2], i32[3])
    """
    at = None
    for name, size in names_of(axis_name, "axis_index"):
        k = collective.axis_index(axis_name=name, size=size)
        at = k if at is None else add(mul(at, size), k)
    return at


def leaf(x, what):
    """A leaf as a Value; bools count as integers.  Raises ArgumentError for what is no array."""
    if not is_array(x):
        raise ArgumentError(f"{what} needs arrays, not a {type(x).__name__}.", given=f"{x!r:.60}")
    return lifted(x).settled()


def psum(x, axis_name):
    """The sum of x over the named axis, or axes, the same for all elements; bools are counted.

    The psum of a Python number is that number times the size of the axis, a Python number.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: x / psum(x, "i"), axis_name="i")(fnp.array([1.0, 3.0]))
    Array([0.25, 0.75], f32[2])
    """
    axes = names_of(axis_name, "psum")

    def total(v):
        if v.__class__ in SCALARS:
            return v * math.prod(size for _, size in axes)
        v = leaf(v, "psum")
        v = convert(v, dtype=default_int()) if v.dtype == BOOL else v
        for name, size in axes:
            v = collective.psum(v, axis_name=name, size=size)
        return v
    return tree.map(total, x)


def pmean(x, axis_name):
    """The mean of x over the named axis, or axes, the same for all elements.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(fnp.array([1.0, 3.0]))
    Array([-1.,  1.], f32[2])
    """
    n = axis_size(axis_name)

    def mean(v):
        v = psum(leaf(v, "pmean"), axis_name)
        return div(v if v.dtype.kind in INEXACT_KINDS else convert(v, dtype=default_float()),
                   float(n))
    return tree.map(mean, x)


def extreme(operation, x, axis_name):
    axes = names_of(axis_name, operation.name)

    def along(v):
        v = leaf(v, operation.name)
        for name, size in axes:
            v = operation(v, axis_name=name, size=size)
        return v
    return tree.map(along, x)


def pmax(x, axis_name):
    """The largest x over the named axis, or axes; its derivative is shared by ties.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: x / pmax(x, "i"), axis_name="i")(fnp.array([1.0, 4.0]))
    Array([0.25, 1.  ], f32[2])
    """
    return extreme(collective.pmax, x, axis_name)


def pmin(x, axis_name):
    """The smallest x over the named axis, or axes; its derivative is shared by ties.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: x - pmin(x, "i"), axis_name="i")(fnp.array([1.0, 4.0]))
    Array([0., 3.], f32[2])
    """
    return extreme(collective.pmin, x, axis_name)


# ---------------------------------------------------------------------------- exchange

def all_gather(x, axis_name, *, axis=0, tiled=False):
    """The x of every element, the same for all: along a new axis, or, tiled, one behind the other.

    Of a tuple of names the last varies fastest.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: all_gather(x, "i"), axis_name="i")(fnp.array([1.0, 2.0]))
    Array([[1., 2.],
           [1., 2.]], f32[2,2])
    """
    axes = names_of(axis_name, "all_gather")

    def gathered(v):
        v = leaf(v, "all_gather")
        at, shape = axis_of(axis, v.ndim + (not tiled), "all_gather"), v.shape
        for name, size in reversed(axes):
            v = collective.all_gather(v, axis_name=name, size=size, axis=at)
        n = math.prod(size for _, size in axes)
        rest = (n * shape[at], *shape[at + 1:]) if tiled else (n, *shape[at:])
        return reshape(v, shape=(*shape[:at], *rest))
    return tree.map(gathered, x)


def psum_scatter(x, axis_name, *, scatter_dimension=0, tiled=False):
    """Of psum(x) this element's part along scatter_dimension, whose size is that of the axis.

    tiled: the size is a multiple of it, and the dimension stays.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(fnp.array([[1., 2.], [3., 4.]]))
    Array([4., 6.], f32[2])
    """
    axes = names_of(axis_name, "psum_scatter")
    n = math.prod(size for _, size in axes)

    def scattered(v):
        v = leaf(v, "psum_scatter")
        at = axis_of(scatter_dimension, v.ndim, "psum_scatter")
        parts = [size for _, size in axes]
        part = check_parts("psum_scatter", v, at, n, tiled)
        rest = ([part] if tiled else []) + [*v.shape[at + 1:]]
        v = reshape(v, shape=(*v.shape[:at], *parts, *rest))
        for name, size in axes:
            v = collective.psum_scatter(v, axis_name=name, size=size, axis=at)
        return v
    return tree.map(scattered, x)


def check_parts(what, x, axis, n, tiled):
    """How long the part of each of n elements is.  Raises ShapeError where x has no such parts."""
    size = x.shape[axis]
    if size % n if tiled else size != n:
        raise ShapeError(f"{what} cannot give each of {n} elements its part.", given=str(x.type),
                         expected=f"{'a multiple of ' if tiled else ''}{n} at axis {axis}",
                         fix=None if tiled or size % n else "tiled=True gives each several")
    return size // n


def all_to_all(x, axis_name, split_axis, concat_axis, *, tiled=False):
    """Part k of x along split_axis goes to element k; what it gets stands along concat_axis.

    The size at split_axis is that of the axis, and that axis moves to concat_axis.  tiled: it is a
    multiple of it, the axis stays with its part, and what is got is concatenated.

    >>> import fgrad, fgrad.numpy as fnp
    >>> x = fnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> fgrad.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(x)
    Array([[1., 3.],
           [2., 4.]], f32[2,2])
    """
    n = size_of(axis_name, "all_to_all")

    def exchanged(v):
        v = leaf(v, "all_to_all")
        split, concat = [axis_of(a, v.ndim, "all_to_all") for a in (split_axis, concat_axis)]
        part = check_parts("all_to_all", v, split, n, tiled)
        if not tiled:
            return collective.all_to_all(v, axis_name=axis_name, size=n, split=split, concat=concat)
        v = reshape(v, shape=(*v.shape[:split], n, part, *v.shape[split + 1:]))
        v = collective.all_to_all(v, axis_name=axis_name, size=n, split=split, concat=concat)
        return reshape(v, shape=(*v.shape[:concat], n * v.shape[concat + 1], *v.shape[concat + 2:]))
    return tree.map(exchanged, x)


def ppermute(x, axis_name, perm):
    """The x of the element that sends to this one: perm has pairs (source, destination).

    Zeros where none sends.  Raises ArgumentError where two send to one, or one twice.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: ppermute(x, "i", [(0, 1)]), axis_name="i")(fnp.array([5.0, 6.0]))
    Array([0., 5.], f32[2])
    """
    n = size_of(axis_name, "ppermute")
    pairs = pairs_of(perm)
    once = all(len(set(ends)) == len(ends) for ends in zip(*pairs))
    if not once or not all(0 <= k < n for pair in pairs for k in pair):
        raise ArgumentError("ppermute needs pairs (source, destination), each element once in each "
                            "place.", given=f"perm={list(pairs)}", expected=f"from 0 to {n - 1}")
    return tree.map(lambda v: collective.ppermute(leaf(v, "ppermute"), axis_name=axis_name, size=n,
                                                  perm=pairs), x)


def pairs_of(perm):
    """perm as pairs of ints.  Raises ArgumentError for what has none."""
    try:
        return tuple([(operator.index(a), operator.index(b)) for a, b in perm])
    except (TypeError, ValueError):
        raise ArgumentError("ppermute needs pairs (source, destination).",
                            given=f"perm={perm!r:.60}", expected="pairs of ints") from None


def pshuffle(x, axis_name, perm):
    """The x of element perm[k] for element k.

    >>> import fgrad, fgrad.numpy as fnp
    >>> fgrad.vmap(lambda x: pshuffle(x, "i", [1, 0]), axis_name="i")(fnp.array([5.0, 6.0]))
    Array([6., 5.], f32[2])
    """
    n = size_of(axis_name, "pshuffle")
    if sorted(perm) != list(range(n)):
        raise ArgumentError("pshuffle needs each element once.", given=f"perm={list(perm)}",
                            expected=f"an order of 0 to {n - 1}")
    return ppermute(x, axis_name, [(source, k) for k, source in enumerate(perm)])


def pswapaxes(x, axis_name, axis):
    """x with the named axis and its own `axis`, of equal size, exchanged.

    >>> import fgrad, fgrad.numpy as fnp
    >>> x = fnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> fgrad.vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")(x)
    Array([[1., 3.],
           [2., 4.]], f32[2,2])
    """
    return all_to_all(x, axis_name, axis, axis)
