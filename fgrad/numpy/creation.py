"""Arrays from Python numbers, lists, NumPy arrays, and from nothing.

Python floats, ints and lists of them become f32 and i32 (`fgrad.default_dtype` changes that); what
has a dtype keeps it, 64-bit ones too.  Relies on `promotion`; `core.ATTACHED` is set here, so that
every operation accepts what `array` accepts.
"""

from __future__ import annotations

import numpy as np

from .. import aligned, ops
from ..aligned import copied
from ..bf16 import BF16, foreign_words
from ..core import ATTACHED, Array, Value, array_of, as_value, frozen_array
from ..errors import ArgumentError, DtypeError
from ..later import lazily
from ..text import noun_of
from ..tree import kind_of
from ..types import SCALARS, SHORT, as_dtype, default_float, default_int
from .axes import shape_of, typed
from .lists import from_list, native, number, shortened
from .promotion import WEAK, broadcast_to, cast, in_dtype, in_kind, join

bring_heap = lazily("..backends.llvm.native_call", "bring_heap", __package__)
aligned.bring = lambda: bring_heap()()           # for arrays that are made before all compiling


# ---------------------------------------------------------------------------- from what there is

def array(object, dtype=None, copy=True, ndmin=0):
    """An array of a number, a list, an array (which is copied), or a value that is being traced.

    Lists may hold values that are being traced: they are stacked.  Python numbers give f32 and i32;
    whatever has a dtype keeps it.  Raises ShapeError for ragged lists, DtypeError for what holds no
    numbers.

    >>> array([1.0, 2.0])
    Array([1., 2.], f32[2])
    >>> import numpy as np
    >>> array([1, 2]).dtype, array(np.ones(3)).dtype
    (dtype('int32'), dtype('float64'))
    """
    dtype = None if dtype is None else as_dtype(dtype)
    x = converted(object, dtype, copy)
    if dtype is not None and (x.dtype != dtype or x.is_number):
        x = cast(x, dtype)
    if ndmin > len(x.shape):
        x = ops.reshape(x, shape=(1,) * (ndmin - len(x.shape)) + x.shape)
    return x


def asarray(a, dtype=None, copy=None):
    """Like array, without a copy where the dtype fits: it then shares memory with a NumPy array.

    Writing to that NumPy array later may change the result too; use array() where that could
    happen.  What lies in another order (x.T) is copied by the first compiled function it is given.

    >>> import fgrad.numpy as fnp
    >>> fnp.asarray([1, 2.5])
    Array([1. , 2.5], f32[2])
    """
    return array(a, dtype, copy=bool(copy))


def ascontiguousarray(a, dtype=None):
    """The same as asarray: every array of fgrad may be taken for contiguous.

    >>> import fgrad.numpy as fnp
    >>> fnp.ascontiguousarray([1, 2])
    Array([1, 2], i32[2])
    """
    return asarray(a, dtype)


def copy(a):
    """An array of the same elements in memory of its own, which outlives a donation of `a`.

    >>> import fgrad.numpy as fnp
    >>> fnp.copy([1, 2])
    Array([1, 2], i32[2])
    """
    return array(a)


def converted(x, dtype, copy):
    """x as a Value; `dtype` is what Python numbers should become."""
    if isinstance(x, Value):
        x = x if dtype is not None else x.settled()
        kept = dtype is None or dtype == x.dtype         # else the conversion is the copy
        return x.duplicate() if copy and kept and isinstance(x, Array) else x
    if x.__class__ in WEAK:
        return number(x, dtype)
    if isinstance(x, (list, tuple)):
        return from_list(x, dtype)
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind == "V":
        words = foreign_words(x)
        if words is not None:
            return frozen_array(copied(words), BF16) if copy else array_of(words, BF16)
        x = from_protocol(x)
    x = native(x)
    return frozen_array(copied(x)) if copy and isinstance(x, np.ndarray) else Array(x)


def from_protocol(x):
    """A NumPy array of an object that offers one: __array__, __dlpack__, or the buffer protocol."""
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return np.asarray(x)
    if hasattr(x, "__dlpack__"):
        return np.from_dlpack(x)
    if isinstance(x, (range, memoryview, bytearray)):
        return np.asarray(x, dtype=default_int()) if isinstance(x, range) else np.asarray(x)
    fix = "list(x) makes a list of an iterator" if hasattr(x, "__next__") else None
    if x is not None and kind_of(x) is not None:
        fix = "fgrad.tree.map(function, x, …) applies a function to the arrays in it"
    raise ArgumentError(f"{noun_of(x)} is not an array.", given=shortened(x),
                        expected="a number, a list of numbers, or an array", fix=fix)


ATTACHED["array"] = array


# ---------------------------------------------------------------------------- from nothing

def zeros(shape, dtype=None):
    """Zeros.   → f32[*shape], or of the dtype given

    >>> zeros((2, 3)).shape
    (2, 3)
    """
    return filled(shape, 0, dtype, "zeros")


def ones(shape, dtype=None):
    """Ones.   → f32[*shape], or of the dtype given

    >>> import fgrad.numpy as fnp
    >>> fnp.ones((2, 2)), fnp.ones(3, dtype="int32")
    (Array([[1., 1.],
           [1., 1.]], f32[2,2]), Array([1, 1, 1], i32[3]))
    """
    return filled(shape, 1, dtype, "ones")


def empty(shape, dtype=None):
    """Zeros: an array that cannot be written to had better hold something.

    >>> import fgrad.numpy as fnp
    >>> fnp.empty((2, 0)).shape
    (2, 0)
    """
    return filled(shape, 0, dtype, "empty")


def filled(shape, value, dtype, name):
    """A constant array of a Python number."""
    dtype = default_float() if dtype is None else as_dtype(dtype)
    return ops.full(shape=shape_of(shape, name), value=in_kind(value, dtype), dtype=dtype)


def full(shape, fill_value, dtype=None):
    """An array filled with a number, or with the broadcast value.   → n[*shape]

    >>> import fgrad.numpy as fnp
    >>> fnp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], i32[2,2])
    """
    shape = shape_of(shape, "full")
    if fill_value.__class__ in SCALARS:
        return filled(shape, fill_value, dtype or join([fill_value.__class__]), "full")
    value = as_value(fill_value)
    dtype = value.dtype if dtype is None else as_dtype(dtype)
    if value.dtype.kind == "c" != dtype.kind:
        raise DtypeError(f"an array of {SHORT[dtype]} cannot be filled with a complex number.",
                         given=f"fill_value: {typed(value)}", fix="fill_value.real")
    return broadcast_to(in_dtype(fill_value, dtype), shape)


def zeros_like(a, dtype=None, shape=None):
    """Zeros of the shape and dtype of `a`.

    >>> import fgrad.numpy as fnp
    >>> fnp.zeros_like(fnp.arange(3.0))
    Array([0., 0., 0.], f32[3])
    """
    return full_like(a, 0, dtype, shape)


def ones_like(a, dtype=None, shape=None):
    """Ones of the shape and dtype of `a`.

    >>> import fgrad.numpy as fnp
    >>> fnp.ones_like(fnp.arange(3))
    Array([1, 1, 1], i32[3])
    """
    return full_like(a, 1, dtype, shape)


def empty_like(a, dtype=None, shape=None):
    """Zeros of the shape and dtype of `a`.

    >>> import fgrad.numpy as fnp
    >>> fnp.empty_like(fnp.ones((2, 3))).shape
    (2, 3)
    """
    return full_like(a, 0, dtype, shape)


def full_like(a, fill_value, dtype=None, shape=None):
    """An array of the shape and dtype of `a`, filled with a number or the broadcast value.

    >>> import fgrad.numpy as fnp
    >>> fnp.full_like(fnp.arange(3), 7)
    Array([7, 7, 7], i32[3])
    """
    x = as_value(a)
    return full(x.shape if shape is None else shape, fill_value,
                x.dtype if dtype is None else dtype)
