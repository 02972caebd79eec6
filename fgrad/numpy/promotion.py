"""From what users write to what operations take: values of one dtype and one shape.

Operations never promote or broadcast; `binary`, `floating` and `together` do it before.  A Python
number, traced by jit or not, takes the dtype of the array beside it.  Relies on `core` and `ops`;
everything in `fgrad.numpy` relies on it.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import ops, source
from ..arguments import lifted
from ..core import NOTHING, Array, Tracer, Value, _current, as_value
from ..errors import DtypeError, RangeError, ShapeError, notice
from ..types import (
    BOOL, F32, F64, INEXACT_KINDS, SCALARS, SHORT, WIDE, as_dtype, default_complex, default_float,
    default_int, dtype_of_scalar, is_strict, promote, promote_number)
from .axes import broadcast_shapes, text_of

KIND_OF_NUMBER = {"b": bool, "i": int, "f": float}
WEAK = SCALARS | {complex, np.float64}   # classes of numbers of Python: arrays decide their dtype


# ---------------------------------------------------------------------------- dtypes

def is_number(x):
    """Is it a Python number, traced or not?"""
    return x.__class__ in WEAK or isinstance(x, Value) and x.is_number


def kind(x):
    """What decides about promotion: the class of a Python number, traced or not, else the dtype."""
    if x.__class__ in WEAK:
        return x.__class__
    if x.is_number == WIDE and x.dtype == F64:
        return np.float64
    return KIND_OF_NUMBER[x.dtype.kind] if x.is_number else x.dtype


def join(kinds):
    """The dtype that arrays of these dtypes, and Python numbers of these classes, make together.

    Raises DtypeError where promotion is strict and two dtypes differ.  Optimizers may mix: theirs
    are counts and moments of f32 beside parameters of any dtype, which keep theirs.
    """
    arrays = dict.fromkeys(k for k in kinds if k not in WEAK)
    if len(arrays) > 1 and is_strict() and not source.called_from("optim"):
        raise too_strict(*list(arrays)[:2], joined(kinds))
    return joined(kinds)


def too_strict(first, second, both):
    """The error for arrays of two dtypes where promotion is strict."""
    a, b, both = SHORT[first], SHORT[second], SHORT[both]
    wanted = f"{a} becomes {b}" if both == b else f"{b} becomes {a}" if both == a else \
        f"both become {both}"
    return DtypeError(f"an array of {a} meets one of {b}, and promotion is strict.",
                      expected="arrays of one dtype; Python numbers fit beside any",
                      fix=[f"x.astype(\"{both}\"), so that {wanted}",
                           "with fgrad.strict_promotion(False): …, where they may mix"])


def joined(kinds):
    """What `join` gives, where promotion is not strict."""
    dtypes = [k for k in kinds if k not in WEAK]
    numbers = [k for k in kinds if k in WEAK]
    if not dtypes and complex in numbers:
        return default_complex()
    if not dtypes and np.float64 in numbers:
        return F64
    if not dtypes:
        return dtype_of_scalar(1.0 if float in numbers else 1 if int in numbers else True)
    return functools.reduce(lambda d, number: promote_number(number, d), numbers,
                            functools.reduce(promote, dtypes))


def result_type(*args):
    """The dtype that these arrays, dtypes and Python numbers make together.

    Integers with floats give that float; Python numbers are weak.

    >>> result_type("int32", "float16"), result_type("float16", 2.0)
    (dtype('float16'), dtype('float16'))
    """
    return joined([kind(a) if a.__class__ in WEAK or isinstance(a, Value)
                   else a.dtype if hasattr(a, "dtype") and not isinstance(a, type) else as_dtype(a)
                   for a in args])


def cast(x, dtype):
    """The value in another dtype; a traced Python number becomes an array of it."""
    if x.dtype == dtype and not x.is_number:
        return x
    return _current.get().process(ops.convert, (x,), {"dtype": dtype})


def beside_others(x, dtype):
    """The value in the dtype that it takes because of the arrays beside it.

    One notice is given where parameters of f32 are drawn into the f64 of data.
    """
    if dtype == F64 and x.dtype == F32 and isinstance(x, Tracer) and x.owner.derives:
        notice("f32 meets f64",
               "f32 values that are differentiated meet an array of f64: from here on all is "
               "computed in f64, which is slower; x.astype(\"float32\") of the data keeps f32")
    return cast(x, dtype)


def as_float(x):
    """x as a value of floats or complex numbers: others become the default float."""
    x = as_value(x)
    return x if x.dtype.kind in INEXACT_KINDS else cast(x, default_float())


def as_bool(x):
    """x as a value of bools: true where it is not 0."""
    x = x if isinstance(x, Value) else as_value(x)
    return cast(x if x.dtype == BOOL else _current.get().process(ops.ne, (x, 0), NOTHING), BOOL)


def mask_of(x, name="where"):
    """x as bools that say what counts.

    Raises DtypeError for floats: they may be meant to be added.
    """
    x = as_value(x)
    if x.dtype.kind not in "biu":
        raise DtypeError(f"{name}= is a mask of bools, True for what counts.",
                         given=f"{name}: {x.type}", expected="bool",
                         fix=[f"{name}={name} != 0, for ones and zeros",
                              f"{name}={name} == 0, for zeros and -inf, which are to be added",
                              "bias= of an attention adds to its scores"])
    return as_bool(x)


def as_number(x):
    """x as a value of numbers: bools become the default int."""
    x = as_value(x)
    return cast(x, default_int()) if x.dtype == BOOL else x


# ---------------------------------------------------------------------------- shapes

def broadcast_to(array, shape):
    """The array repeated to `shape`: axes of size 1 stretch, and new axes come in front.

    n[*s] → n[*shape].  Raises ShapeError when the shapes do not fit.

    >>> broadcast_to(as_float(1.5), (2,)).tolist()
    [1.5, 1.5]
    """
    x = lifted(array)
    if x.shape == shape:
        return x
    kept, axes = stretching(x.shape, tuple(shape))
    if kept != x.shape:
        x = ops.reshape(x, shape=kept)
    return ops.broadcast(x, shape=tuple(shape), axes=axes)


@functools.lru_cache(maxsize=4096)
def stretching(shape, to):
    """(the shape without the axes that stretch, the axes of `to` along which it is repeated)."""
    lead = len(to) - len(shape)
    if lead < 0 or any(n not in (1, to[lead + a]) for a, n in enumerate(shape)):
        raise ShapeError(f"an array of shape {text_of(shape)} cannot be broadcast to "
                         f"{text_of(to)}.",
                         expected="equal sizes, or 1, at every axis counted from the end")
    stretched = tuple(lead + a for a, n in enumerate(shape) if n == 1 != to[lead + a])
    return tuple(n for a, n in enumerate(shape) if lead + a not in stretched), (*range(lead),
                                                                                *stretched)


def of_one_dtype(*xs, dtype=None):
    """Values of one dtype; `dtype` None is what they make together."""
    values = [as_value_or_number(x) for x in xs]
    dtype = dtype or join(list(map(kind, values)))
    return [beside_others(in_dtype(x, dtype) if is_number(x) else x, dtype) for x in values]


def together(*xs, dtype=None):
    """Values of one dtype and one shape; `dtype` None is what they make together."""
    values = of_one_dtype(*xs, dtype=dtype)
    shape = broadcast_shapes(*[x.shape for x in values])
    return [broadcast_to(x, shape) for x in values]


def floating_together(*xs):
    """Values of one shape and one dtype of floats; integers alone make the default float.

    Raises DtypeError where promotion is strict and two dtypes differ.
    """
    return [as_float(x) for x in together(*xs)]


def in_dtype(x, dtype):
    """x as a value of a dtype; of a Python number, traced or not, no digit is lost before."""
    return full_scalar(x, dtype) if x.__class__ in WEAK else cast(as_value_or_number(x), dtype)


def full_scalar(x, dtype):
    """A Python number as a value without axes.  Raises RangeError when it does not fit."""
    if dtype.kind == "c":
        return Array(np.array(x, dtype))
    return ops.full(shape=(), value=in_kind(x, dtype), dtype=dtype)


def in_kind(value, dtype):
    """A Python number as the Python number that an element of dtype is."""
    if dtype.kind in INEXACT_KINDS:
        return float(value)
    if dtype.kind == "b":
        return bool(value)
    if value.__class__ is float and not math.isfinite(value):
        raise RangeError(f"{value} does not fit into {SHORT[dtype]}.", fix="use a dtype of floats")
    ops.elementwise.literal(int(value), dtype)
    return int(value)


def same_shape(*xs):
    """Values broadcast to one shape, each of its own dtype."""
    values = [as_value(x) for x in xs]
    shape = broadcast_shapes(*[x.shape for x in values])
    return [broadcast_to(x, shape) for x in values]


# ---------------------------------------------------------------------------- application

def binary(op, x, y):
    """op(x, y): Python numbers stay numbers where they may, other differences are removed first."""
    scalar_x, scalar_y = x.__class__ in WEAK, y.__class__ in WEAK
    if scalar_x and scalar_y or x.__class__ is complex or y.__class__ is complex:
        x, y = together(x, y)
    elif scalar_y:
        x, y = beside(as_value_or_number(x), y.__class__), of_python(y)
    elif scalar_x:
        x, y = of_python(x), beside(as_value_or_number(y), x.__class__)
    else:
        x, y = as_value_or_number(x), as_value_or_number(y)
        if x.is_number and y.is_number:          # staging knows what Python would compute
            return _current.get().process(op, (x, y), NOTHING)
        if x.dtype is not y.dtype or x.is_number != y.is_number:
            dtype = join([kind(x), kind(y)])
            x, y = beside_others(x, dtype), beside_others(y, dtype)
        if x.shape != y.shape:
            shape = broadcast_shapes(x.shape, y.shape)
            x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    return _current.get().process(op, (x, y), NOTHING)


def as_value_or_number(x):
    """x as a Value; a Python number, traced or not, stays one."""
    return x if isinstance(x, Value) or x.__class__ in WEAK else as_value(x)


def of_python(number):
    """A number of Python, or NumPy's float64, as operations take it."""
    return float(number) if number.__class__ is np.float64 else number


def beside(x, kind_of_number):
    """The value, in the dtype it has beside a Python number of that class."""
    if x.is_number:
        return x.beside_wide() if kind_of_number is np.float64 else x
    real = x.dtype.kind not in INEXACT_KINDS
    if kind_of_number in (float, np.float64) and real or kind_of_number is int and x.dtype == BOOL:
        return cast(x, promote_number(kind_of_number, x.dtype))
    return x


def binary_float(op, x, y):
    """op(x, y) of floats: integers and bools become the default float first."""
    if x.__class__ in SCALARS and y.__class__ in SCALARS:
        return binary(op, float(x), float(y))
    if x.__class__ is complex or y.__class__ is complex:
        return binary(op, *together(x, y))
    x = float(x) if x.__class__ in SCALARS else as_value_or_number(x)
    y = float(y) if y.__class__ in SCALARS else as_value_or_number(y)
    kinds = {"f" if v.__class__ is float else v.dtype.kind for v in (x, y)}
    if not kinds & set(INEXACT_KINDS):
        join([kind(x), kind(y)])                 # refuses where promotion is strict
        x, y = as_float(x), as_float(y)
    return binary(op, x, y)


def floating(op, x):
    """op(x) of floats or complex numbers: others become the default float first."""
    if not isinstance(x, Value) or x.dtype.kind not in INEXACT_KINDS:
        x = as_float(x)
    return _current.get().process(op, (x,), NOTHING)


def unary(op, x):
    """op(x), the dtype kept."""
    if not isinstance(x, Value) or x.is_number:
        x = as_value(x)
    return _current.get().process(op, (x,), NOTHING)


def same(op, x, y):
    """op(x, y) of values that have one dtype and one shape already."""
    return _current.get().process(op, (x, y), NOTHING)
