"""Arrays between their elements, under SciPy's name.

Relies on `fgrad.numpy`.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from operator import and_, mul

from .. import numpy as fnp
from ..core import as_value
from ..errors import ArgumentError, ShapeError
from ..numpy.axes import typed
from ..numpy.promotion import as_float

__all__ = ["map_coordinates"]
__dir__ = __all__.copy     # dir() lists these and nothing else


def mirrored(i, n):
    """0 … n-1 … 0 …, as between mirrors on the first and the last element."""
    return fnp.abs((i + n - 1) % (2 * n - 2) - (n - 1)) if n > 1 else fnp.zeros_like(i)


PLACES = {                 # mode → where an index is, of n elements
    "constant": lambda i, n: fnp.clip(i, 0, n - 1),
    "nearest": lambda i, n: fnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": mirrored,
    "reflect": lambda i, n: (mirrored(2 * i + 1, 2 * n + 1) - 1) // 2,
}


def map_coordinates(input, coordinates, order, mode="constant", cval=0.0):
    """The array at any places.   n[*a] (f[*s], one an axis) → n[*s]

    order: 0 takes the nearest element, 1 is linear between them along each axis.  mode: what is
    outside: "constant", the number cval; "nearest", the last element; "wrap", the array again;
    "mirror", the array in reverse, its last element once; "reflect", its last element twice.
    Integers are rounded.  Differentiable, of order 1 with respect to the coordinates too.
    Raises ArgumentError for another order or mode, ShapeError for other coordinates or an array
    without elements.

    >>> map_coordinates([[1.0, 3.0], [5.0, 7.0]], [[0.0, 0.5, 2.0], [0.5, 0.5, 0.0]], 1).tolist()
    [2.0, 4.0, 0.0]
    """
    x, coordinates = as_value(input), [as_float(c) for c in coordinates]
    if order not in (0, 1):
        raise ArgumentError(f"map_coordinates has no order {order!r}.",
                            expected="0, the nearest element, or 1, linear")
    if mode not in PLACES:
        raise ArgumentError(f"map_coordinates has no mode {mode!r}.", expected=", ".join(PLACES))
    shapes = {c.shape for c in coordinates}
    if len(coordinates) != x.ndim or len(shapes) != 1 or not x.size:
        raise ShapeError("map_coordinates needs an array of elements, and for each of its axes the "
                         "coordinates of all places.",
                         given=[typed(x), *[typed(c) for c in coordinates]])
    around = [ends(c, order) for c in coordinates]
    total = 0
    for corner in product(*around):
        value = x[tuple([PLACES[mode](i, n) for (i, _), n in zip(corner, x.shape)])]
        if mode == "constant":
            inside = reduce(and_, [(i >= 0) & (i < n) for (i, _), n in zip(corner, x.shape)])
            value = fnp.where(inside, value, fnp.asarray(cval, x.dtype))
        total = total + reduce(mul, [w for _, w in corner]) * value
    if x.dtype.kind in "iu":
        total = fnp.round(total)
    return total.astype(x.dtype)


def ends(c, order):
    """The elements around some coordinates: (index, weight) of each."""
    if order == 0:
        return [((fnp.sign(c) * fnp.floor(fnp.abs(c) + 0.5)).astype("int32"), 1)]
    low = fnp.floor(c)
    i, share = low.astype("int32"), c - low
    return [(i, 1 - share), (i + 1, share)]
