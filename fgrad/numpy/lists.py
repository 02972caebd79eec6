"""Arrays from nested lists of numbers, and of values that are stacked.

Python numbers in a list are weak: what has a dtype decides, and without it they are f32 and i32.  A
list that is no array is searched for the first element that does not fit, and the error names it.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..bf16 import BF16
from ..core import Value, array_in, as_value, frozen_array
from ..errors import DtypeError, RangeError, ShapeError
from ..text import noun_of
from ..types import SCALARS, SHORT, computed, default_float
from .axes import text_of
from .promotion import WEAK, in_dtype, in_kind, join, kind


WIDER = ["give a wider dtype, for example dtype=\"int64\"", "or a float one"]


def from_list(x, dtype):
    """A nested list as a Value; lists that hold values are stacked."""
    leaves, shape = set(), shape_of_list(x)
    collect(x, leaves)
    if not any(issubclass(k, Value) for k in leaves if isinstance(k, type)):
        words = dtype is BF16
        found = numbers_of(x, leaves, computed(dtype) if words else dtype, shape)
        return array_in(found, BF16) if words else frozen_array(found)
    kinds = set()
    collect_kinds(x, kinds)
    return stacked(x, dtype or join(list(kinds)), shape)


def collect(x, leaves):
    """Adds the classes of the elements of a nested list to the set."""
    classes = set(map(type, x))
    for cls in classes:
        if issubclass(cls, (list, tuple)):
            for part in x:
                if isinstance(part, cls):
                    collect(part, leaves)
        else:
            leaves.add(cls)


def collect_kinds(x, kinds):
    """Adds dtypes, and classes of Python numbers, of the elements of a nested list to the set."""
    for part in x:
        if isinstance(part, (list, tuple)):
            collect_kinds(part, kinds)
        elif isinstance(part, Value) or part.__class__ in WEAK:
            kinds.add(kind(part))
        else:
            kinds.add(as_value(part).dtype)


def shape_of_list(x):
    """The shape of a nested list, by its first elements."""
    shape = []
    while isinstance(x, (list, tuple)):
        shape.append(len(x))
        if not x:
            return tuple(shape)
        x = x[0]
    return (*shape, *getattr(x, "shape", ()))


def numbers_of(x, leaves, dtype, shape):
    """A nested list without values as a NumPy array."""
    plain = leaves <= SCALARS
    if plain and dtype is None and leaves:
        dtype = join(list(leaves))
    elif not leaves:
        dtype = dtype or default_float()
    if plain and dtype is not None and dtype.kind in "iu":
        return whole_numbers(x, dtype, shape)
    try:
        out = np.array(x) if dtype is None else np.array(x, dtype=dtype)
    except (ValueError, TypeError) as error:
        raise not_rectangular(x, shape, error) from None
    if plain or dtype is not None:
        return native(out)
    if out.dtype == object or out.dtype.kind in "US":
        raise not_rectangular(x, shape, None)
    kinds = set()
    collect_kinds(x, kinds)
    return native(out).astype(join(list(kinds)), copy=False)


def whole_numbers(x, dtype, shape):
    """A nested list of numbers as ints.  Raises RangeError when one does not fit."""
    try:
        out = np.array(x)
    except (ValueError, OverflowError) as error:
        raise not_rectangular(x, shape, error) from None
    limits, kind = np.iinfo(dtype), "an int" if out.dtype.kind in "biuO" else "a float"
    least, largest = [np.asarray(v).item() for v in (out.min(), out.max())] if out.size else (0, 0)
    if not limits.min <= least <= largest <= limits.max:
        raise RangeError(
            f"the list holds {kind} that does not fit into {SHORT[dtype]}.",
            fix=WIDER) from None
    return out.astype(dtype)


def not_rectangular(x, shape, error):
    """The error for a list that is no array: ragged, or with other things in it."""
    found = odd_one(x, shape, ())
    if found is None:
        return DtypeError("the list does not hold numbers only.",
                          given=str(error) if error else shortened(x))
    path, part = found
    where = "".join(f"[{k}]" for k in path)
    if isinstance(part, (list, tuple)) or np.ndim(part):
        return ShapeError(
            f"the rows of the list differ in length: element {where} has shape "
            f"{text_of(np_shape(part))}.",
            given=shortened(x), expected=f"shape {text_of(shape[len(path):])} there, as in the "
                                         "first row",
            fix="pad the rows to one length")
    if len(path) < len(shape):
        return ShapeError(f"the rows of the list differ in depth: element {where} is "
                          f"{shortened(part)}.",
                          given=shortened(x),
                          expected=f"a list of shape {text_of(shape[len(path):])} there")
    return DtypeError(f"element {where} of the list is no number but {noun_of(part)}: "
                      f"{shortened(part)}.",
                      expected="numbers")


def np_shape(x):
    """The shape of a list by its first elements, or of an array."""
    return shape_of_list(x) if isinstance(x, (list, tuple)) else np.shape(x)


def odd_one(x, shape, path):
    """(path, element) of the first element that does not fit `shape` or is no number, or None."""
    if isinstance(x, Value) or isinstance(x, (np.ndarray, np.generic)):
        return None if x.shape == shape else (path, x)
    if not isinstance(x, (list, tuple)):
        fits = not shape and isinstance(x, (bool, int, float))
        return None if fits else (path, x)
    if not shape or len(x) != shape[0]:
        return path, x
    for k, part in enumerate(x):
        found = odd_one(part, shape[1:], (*path, k))
        if found is not None:
            return found
    return None


def stacked(x, dtype, shape):
    """A nested list with values in it, along new first axes."""
    found = odd_one(x, shape, ())
    if found is not None:
        raise not_rectangular(x, shape, None)
    if not isinstance(x, (list, tuple)):
        return number(x, dtype) if x.__class__ in SCALARS else in_dtype(x, dtype)
    rows = [stacked(part, dtype, shape[1:]) for part in x]
    return ops.concatenate(*[ops.reshape(r, shape=(1, *r.shape)) for r in rows], axis=0)


# ---------------------------------------------------------------------------- elements

def number(x, dtype):
    """A Python number as an array without axes."""
    dtype = dtype or join([x.__class__])
    if dtype.kind in "iu" and x.__class__ is not complex:
        try:
            x = in_kind(x, dtype)
        except RangeError as error:
            error.fix = WIDER
            raise
    return array_in(np.array(x), dtype)


def native(x):
    """The NumPy array in this machine's byte order.

    Raises DtypeError for dtypes fgrad does not have.
    """
    if x.dtype in SHORT:
        return x
    if x.dtype.newbyteorder("=") in SHORT:
        return x.astype(x.dtype.newbyteorder("="))
    raise DtypeError(f"fgrad has no arrays of dtype {x.dtype}.",
                     given=f"an array of shape {text_of(x.shape)}",
                     expected=" ".join(SHORT.values()), fix="convert it with astype first")


def shortened(x):
    """repr(x), at most 60 characters."""
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."
