"""Reductions, running ones, and orders under the names of `lax`.

    from fgrad import lax
    total = lax.reduce_sum(x, (0, 1));  so_far = lax.cumsum(x, 1);  best, where = lax.top_k(x, 5)

Each is an operation of `fgrad.ops` along axes that are checked here.  `lax` gives these names.
"""

from __future__ import annotations

from . import later, ops
from . import numpy as fnp
from .arguments import lifted
from .core import as_value
from .errors import ArgumentError, ShapeError
from .lax import axes_of
from .numpy.axes import axis_of, count_of
from .types import as_dtype, default_int

scan_by = later.lazily("fgrad.control", "associative_scan")


# ---------------------------------------------------------------------------- reductions

def reduction(name, given, out):
    """The lax function of a reduction; given, out: the example of its docstring."""
    operation = getattr(ops, name)

    def reduce(x, axes):
        x = as_value(x)
        return operation(x, axes=axes_of(axes, x.ndim, name))
    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = (
        f"{operation.__class__.__doc__.splitlines()[0]}   n[*s] → n[s without axes]\n\n"
        "    axes: an int, or ints, each once.  Raises AxisError for one that is not there.\n\n"
        f"    >>> {name}({given}, (1,)).tolist()\n    {out}\n    ")
    return reduce


reduce_sum = reduction("reduce_sum", "[[1, 2], [3, 4]]", "[3, 7]")
reduce_prod = reduction("reduce_prod", "[[1, 2], [3, 4]]", "[2, 12]")
reduce_max = reduction("reduce_max", "[[1, 2], [3, 4]]", "[2, 4]")
reduce_min = reduction("reduce_min", "[[1, 2], [3, 4]]", "[1, 3]")
reduce_and = reduction("reduce_and", "[[True, True], [True, False]]", "[True, False]")
reduce_or = reduction("reduce_or", "[[True, True], [False, False]]", "[True, False]")


def argmax(x, axis, index_dtype=None):
    """The position of the first largest element along an axis."""
    return position(ops.argmax, x, axis, index_dtype)


def argmin(x, axis, index_dtype=None):
    """The position of the first smallest element along an axis."""
    return position(ops.argmin, x, axis, index_dtype)


def position(operation, x, axis, index_dtype):
    x = as_value(x)
    out = operation(x, axis=axis_of(axis, x.ndim, operation.name))
    dtype = default_int() if index_dtype is None else as_dtype(index_dtype)
    return out if dtype == out.dtype else ops.convert(out, dtype=dtype)


def running(operation, x, axis, reverse):
    x = as_value(x)
    return operation(x, axis=axis_of(axis, x.ndim, operation.name), reverse=bool(reverse))


def cumsum(x, axis=0, reverse=False):
    """The sum of each element and those before it along an axis."""
    return running(ops.cumsum, x, axis, reverse)


def cumprod(x, axis=0, reverse=False):
    """The product of each element and those before it along an axis."""
    return running(ops.cumprod, x, axis, reverse)


def cummax(x, axis=0, reverse=False):
    """The largest of each element and those before it along an axis."""
    return running(ops.cummax, x, axis, reverse)


def cummin(x, axis=0, reverse=False):
    """The smallest of each element and those before it along an axis."""
    return running(ops.cummin, x, axis, reverse)


def cumlogsumexp(x, axis=0, reverse=False):
    """log(cumsum(exp(x))), without overflow."""
    return scan_by()(ops.logaddexp, lifted(x), reverse, axis)


# ---------------------------------------------------------------------------- order

def sort(operand, dimension=-1, is_stable=True, num_keys=1):
    """An array sorted along a dimension; of a tuple all, by the first num_keys of them."""
    several = isinstance(operand, (tuple, list))
    xs = [as_value(x) for x in (operand if several else (operand,))]
    axis = axis_of(dimension, xs[0].ndim, "sort")
    if any(x.shape != xs[0].shape for x in xs):
        raise ShapeError("sort needs operands of one shape.",
                         given=[f"operand {k + 1}: {x.type}" for k, x in enumerate(xs)])
    if not 1 <= num_keys <= len(xs):
        raise ArgumentError(f"sort(…, num_keys={num_keys}) needs between 1 and {len(xs)} keys.")
    if len(xs) == 1:
        out = ops.sort(xs[0], axis=axis)
        return (out,) if several else out
    order = ops.order(*xs[:num_keys], axis=axis)
    return tuple([ops.take_along(x, order, axis) for x in xs])


def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """(keys sorted, values in their order)."""
    return sort((keys, values), dimension)


def top_k(operand, k, *, axis=-1):
    """(the k largest elements along an axis, their positions), the largest first.

    n[*s,m] → n[*s,k], i32[*s,k]; of equal elements the first comes first, and NaN is the largest.
    Raises ShapeError where there are fewer than k.

    >>> [x.tolist() for x in top_k([1.0, 3.0, 3.0, 2.0], 3)]
    [[3.0, 3.0, 2.0], [1, 2, 3]]
    """
    x, k = as_value(operand), count_of(k, "top_k", "k")
    if axis not in (-1, x.ndim - 1):
        found = top_k(fnp.moveaxis(x, axis, -1), k)
        return tuple([fnp.moveaxis(part, -1, axis) for part in found])
    ops.top_k.type(x.type, k=k)                              # at once the NumPy rule would cut k
    return ops.top_k(x, k=k)
