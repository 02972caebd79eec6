"""Arrays from Python numbers, lists, NumPy arrays, and from nothing.

Python floats, ints and lists of them become f32 and i32 (`fgrad.default_dtype` changes that); what has a
dtype keeps it, 64-bit ones too.  Relies on `promotion`; `core.CONVERT` is set here, so that every
operation accepts what `array` accepts.
"""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..core import CONVERT, Array, Tracer, Value, as_value, frozen_array
from ..errors import ArgumentError, DtypeError, RangeError, ShapeError
from ..types import BOOL, SCALARS, SHORT, as_dtype, default_float, default_int
from .axes import shape_of, text_of
from .promotion import as_float, broadcast_to, cast, join, kind, same, together


# ---------------------------------------------------------------------------- from what there is

def array(object, dtype=None, copy=True, ndmin=0):
    """An array of a number, a list, a NumPy array, or a value: immutable, so NumPy arrays are copied.

    Lists may hold values that are being traced: they are stacked.  Python numbers give f32 and i32; whatever
    has a dtype keeps it.  Raises ShapeError for ragged lists, DtypeError for what holds no numbers.

    >>> array([1.0, 2.0])
    Array([1., 2.], f32[2])
    >>> array([1, 2]).dtype, array(np.ones(3)).dtype
    (dtype('int32'), dtype('float64'))
    """
    dtype = None if dtype is None else as_dtype(dtype)
    x = converted(object, dtype, copy)
    if x.dtype != dtype and dtype is not None:
        x = cast(x, dtype)
    if ndmin > len(x.shape):
        x = ops.reshape(x, shape=(1,) * (ndmin - len(x.shape)) + x.shape)
    return x


def asarray(a, dtype=None, copy=None):
    """Like array, without a copy where the dtype fits: the result then shares memory with a NumPy array.

    Writing to that NumPy array later changes the result too; use array() where that could happen.
    """
    return array(a, dtype, copy=bool(copy))


def ascontiguousarray(a, dtype=None):
    """The same as asarray: every array of fgrad may be taken for contiguous."""
    return asarray(a, dtype)


def copy(a):
    """An array of the same elements; since arrays are immutable it may be the same one."""
    return array(a)


def converted(x, dtype, copy):
    """x as a Value; `dtype` is what Python numbers should become."""
    if isinstance(x, Value):
        return x.settled()
    if x.__class__ in SCALARS:
        return number(x, dtype)
    if isinstance(x, (list, tuple)):
        return from_list(x, dtype)
    if not isinstance(x, (np.ndarray, np.generic)):
        x = from_protocol(x)
    x = native(x)
    return frozen_array(np.array(x)) if copy and isinstance(x, np.ndarray) else Array(x)


def number(x, dtype):
    """A Python number as an array without axes."""
    dtype = dtype or join([x.__class__])
    if dtype.kind in "iu" and x.__class__ is int:
        ops.elementwise.literal(x, dtype)                    # raises RangeError when it does not fit
    return Array(np.array(x).astype(dtype))


def native(x):
    """The NumPy array in this machine's byte order.  Raises DtypeError for dtypes fgrad does not have."""
    if x.dtype in SHORT:
        return x
    if x.dtype.newbyteorder("=") in SHORT:
        return x.astype(x.dtype.newbyteorder("="))
    raise DtypeError(f"fgrad has no arrays of dtype {x.dtype}.", given=f"an array of shape {text_of(x.shape)}",
                     expected=" ".join(SHORT.values()), fix="convert it with astype first")


def from_protocol(x):
    """A NumPy array of an object that offers one: __array__, __dlpack__, or the buffer protocol."""
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return np.asarray(x)
    if hasattr(x, "__dlpack__"):
        return np.from_dlpack(x)
    if isinstance(x, (range, memoryview, bytearray)):
        return np.asarray(x, dtype=default_int()) if isinstance(x, range) else np.asarray(x)
    raise ArgumentError(f"a {type(x).__name__} is not an array.", given=shortened(x),
                        expected="a number, a list of numbers, or an array",
                        fix="list(x) makes a list of an iterator" if hasattr(x, "__next__") else None)


def shortened(x):
    """repr(x), at most 60 characters."""
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


# ---------------------------------------------------------------------------- lists

def from_list(x, dtype):
    """A nested list as a Value; lists that hold values are stacked."""
    leaves, shape = set(), shape_of_list(x)
    collect(x, leaves)
    if not any(issubclass(k, Value) for k in leaves if isinstance(k, type)):
        return frozen_array(numbers_of(x, leaves, dtype, shape))
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
        elif isinstance(part, Value) or part.__class__ in SCALARS:
            kinds.add(kind(part))
        else:
            kinds.add(as_value(part).dtype)


def shape_of_list(x):
    """The shape of a nested list, by its first elements; what differs from it is found when it is filled."""
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
    if plain and dtype is not None and dtype.kind in "iu" and leaves <= {int, bool}:
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
    """A nested list of ints.  Raises RangeError when one does not fit."""
    try:
        return np.array(x, dtype=dtype)
    except OverflowError:
        raise RangeError(
            f"the list holds an int that does not fit into {SHORT[dtype]}.",
            fix=["give a wider dtype, for example dtype=\"int64\"", "or a float one"]) from None
    except ValueError as error:
        raise not_rectangular(x, shape, error) from None


def not_rectangular(x, shape, error):
    """The error for a list that NumPy could not fill an array from: ragged, or with other things in it."""
    found = odd_one(x, shape, ())
    if found is None:
        return DtypeError("the list does not hold numbers only.", given=str(error) if error else shortened(x))
    path, part = found
    where = "".join(f"[{k}]" for k in path)
    if isinstance(part, (list, tuple)) or np.ndim(part):
        return ShapeError(
            f"the rows of the list differ in length: element {where} has shape {text_of(np_shape(part))}.",
            given=shortened(x), expected=f"shape {text_of(shape[len(path):])} there, as in the first row",
            fix="pad the rows to one length")
    if len(path) < len(shape):
        return ShapeError(f"the rows of the list differ in depth: element {where} is {shortened(part)}.",
                          given=shortened(x), expected=f"a list of shape {text_of(shape[len(path):])} there")
    return DtypeError(f"element {where} of the list is no number but a {type(part).__name__}: {shortened(part)}.",
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
        return number(x, dtype) if x.__class__ in SCALARS else cast(converted(x, None, False), dtype)
    rows = [stacked(part, dtype, shape[1:]) for part in x]
    return ops.concatenate(*[ops.reshape(r, shape=(1, *r.shape)) for r in rows], axis=0)


CONVERT["array"] = array


# ---------------------------------------------------------------------------- from nothing

def zeros(shape, dtype=None):
    """Zeros.   → f32[*shape], or of the dtype given

    >>> zeros((2, 3)).shape
    (2, 3)
    """
    return filled(shape, 0, dtype, "zeros")


def ones(shape, dtype=None):
    """Ones.   → f32[*shape], or of the dtype given"""
    return filled(shape, 1, dtype, "ones")


def empty(shape, dtype=None):
    """Zeros: nothing else may be promised about the elements of an array that cannot be written to."""
    return filled(shape, 0, dtype, "empty")


def filled(shape, value, dtype, name):
    """A constant array of a Python number."""
    dtype = default_float() if dtype is None else as_dtype(dtype)
    return ops.full(shape=shape_of(shape, name), value=in_kind(value, dtype), dtype=dtype)


def in_kind(value, dtype):
    """A Python number as the Python number that an element of dtype is."""
    if dtype.kind == "f":
        return float(value)
    if dtype.kind == "b":
        return bool(value)
    if value.__class__ is float and not math.isfinite(value):
        raise RangeError(f"{value} does not fit into {SHORT[dtype]}.", fix="use a dtype of floats")
    ops.elementwise.literal(int(value), dtype)
    return int(value)


def full(shape, fill_value, dtype=None):
    """An array filled with a number, or with the broadcast value.   → n[*shape]"""
    shape = shape_of(shape, "full")
    if fill_value.__class__ in SCALARS:
        return filled(shape, fill_value, dtype or join([fill_value.__class__]), "full")
    value = as_value(fill_value)
    return broadcast_to(value if dtype is None else cast(value, as_dtype(dtype)), shape)


def zeros_like(a, dtype=None, shape=None):
    """Zeros of the shape and dtype of `a`."""
    return full_like(a, 0, dtype, shape)


def ones_like(a, dtype=None, shape=None):
    """Ones of the shape and dtype of `a`."""
    return full_like(a, 1, dtype, shape)


def empty_like(a, dtype=None, shape=None):
    """Zeros of the shape and dtype of `a`."""
    return full_like(a, 0, dtype, shape)


def full_like(a, fill_value, dtype=None, shape=None):
    """An array of the shape and dtype of `a`, filled with a number or the broadcast value."""
    x = as_value(a)
    return full(x.shape if shape is None else shape, fill_value, x.dtype if dtype is None else dtype)


# ---------------------------------------------------------------------------- ranges

def arange(start, stop=None, step=None, dtype=None):
    """start, start + step, … below stop, as in NumPy; whole numbers give i32.   → n[count]

    Raises RangeError for a step of 0.  The bounds decide the shape, so they cannot be traced arrays.

    >>> arange(3).tolist(), arange(1.0, 2.0, 0.5).tolist()
    ([0, 1, 2], [1.0, 1.5])
    """
    if stop is None:
        start, stop = 0, start
    numbers = [known(x, "arange") for x in (start, stop, 1 if step is None else step)]
    if numbers[2] == 0:
        raise RangeError("arange needs a step that is not 0.")
    kinds = [kind(x) if x.__class__ in SCALARS or isinstance(x, Value) else x.dtype
             for x in (start, stop, step) if x is not None and x.__class__ is not bool]
    dtype = as_dtype(dtype) if dtype is not None else join(kinds or [int])
    if all(x.__class__ is int for x in numbers) and dtype != BOOL:
        return whole_range(*numbers, dtype)
    return frozen_array(np.arange(*numbers).astype(dtype))


def whole_range(start, stop, step, dtype):
    """The range of ints, counted by an operation: compiled code needs no memory for it."""
    count = max(0, -(-(stop - start) // step))
    if count:
        in_kind(start, dtype), in_kind(start + (count - 1) * step, dtype)
    out = ops.iota(shape=(count,), axis=0, dtype=dtype)
    out = out if step == 1 else same(ops.mul, out, step)
    return out if start == 0 else same(ops.add, out, start)


def known(x, name):
    """x as a Python number; asks a traced Python number for its value."""
    if isinstance(x, Tracer):
        x = x.value_for(name)
    return x.item() if hasattr(x, "item") else x


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """`num` evenly spaced numbers from start to stop, which is left out unless `endpoint`.

    f[*s] f[*s] → f[num,*s], the new axis at `axis`.  retstep: also the step.

    >>> linspace(0.0, 1.0, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    num = num.__index__()
    if num < 0:
        raise RangeError(f"linspace needs a number of samples that is not negative, not {num}.")
    parts = num - 1 if endpoint else num
    x, y = together(as_float(start), as_float(stop))
    width = same(ops.sub, y, x)
    shape, rest = (num, *x.shape), tuple(range(1, x.ndim + 1))
    share = same(ops.div, ops.iota(shape=shape, axis=0, dtype=x.dtype), float(max(parts, 1)))
    x, y, wide = [ops.broadcast(v, shape=shape, axes=(0,)) for v in (x, y, width)]
    out = same(ops.add, x, same(ops.mul, wide, share))
    if endpoint and num > 1:                                 # the last one exactly
        out = ops.select(same(ops.eq, share, 1.0), y, out)
    perm = list(rest)
    perm.insert(axis % len(shape), 0)
    out = out if axis == 0 else ops.transpose(out, perm=tuple(perm))
    out = out if dtype is None else cast(out, as_dtype(dtype))
    step = same(ops.div, width, float(parts)) if parts else same(ops.mul, width, math.nan)
    return (out, step) if retstep else out


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None):
    """base to the power of evenly spaced numbers.   → f[num]"""
    out = same(ops.pow, float(base), linspace(start, stop, num, endpoint))
    return out if dtype is None else cast(out, as_dtype(dtype))


def meshgrid(*xi, indexing="xy"):
    """Coordinate arrays of a grid: one array per argument, each of the shape of the whole grid.

    n[a] n[b] → n[b,a] each; for indexing="ij", n[a,b] each.
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
    """The index of every place of a grid along each axis.   → i32[ndim,*dimensions]"""
    shape = shape_of(dimensions, "indices")
    dtype = default_int() if dtype is None else as_dtype(dtype)
    parts = [ops.iota(shape=(1, *shape), axis=a + 1, dtype=dtype) for a in range(len(shape))]
    return ops.concatenate(*parts, axis=0) if parts else zeros((0,), dtype)
