"""Names of dtypes, of kinds of them and of the class of arrays; their limits, and constants."""

from __future__ import annotations

import numpy as np

from ..core import Value
from ..errors import DtypeError, boundary
from .. import types
from ..bf16 import BF16
from ..types import SHORT, as_dtype, is_exact, promote
from .creation import array


class Scalar:
    """The name of a dtype, which makes arrays of it too.

    It equals NumPy's class of scalars and the dtype, and stands wherever they do; but a value that
    is being differentiated, batched or compiled can be given to it.

    >>> import fgrad.numpy as fnp
    >>> fnp.zeros(2, fnp.int32).dtype == fnp.int32, fnp.int32 == np.int32
    (True, True)
    >>> fnp.int32([1.5, 2.5])
    Array([1, 2], i32[2])
    """

    def __init__(self, dtype):
        self.dtype = as_dtype(dtype)
        self.__doc__ = f"The dtype {self}, and x as an array of it."

    @boundary
    def __call__(self, x=0):
        """x as an array of this dtype.   any[*s] → self[*s]"""
        return array(x, self.dtype)

    def __eq__(self, other):
        if isinstance(other, Scalar):
            return self.dtype == other.dtype
        return other is not None and self.dtype == other         # np.dtype(None) is float64

    def __hash__(self):
        return hash(self.dtype if self.dtype is BF16 else self.dtype.type)

    def __repr__(self):
        return self.dtype.name

    def __reduce__(self):
        return Scalar, (self.dtype.name,)


bool_ = Scalar("bool")
int8, int16, int32, int64 = map(Scalar, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(Scalar, ("uint8", "uint16", "uint32", "uint64"))
float16, bfloat16, float32, float64 = map(Scalar, ("float16", "bfloat16", "float32", "float64"))
complex64, complex128 = map(Scalar, ("complex64", "complex128"))
single, double = float32, float64
dtype = np.dtype
generic, number, inexact, floating = np.generic, np.number, np.inexact, np.floating
complexfloating, integer = np.complexfloating, np.integer
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
ndarray = Value            # the class of arrays, as fgrad.Array

pi, e, euler_gamma, inf, nan = np.pi, np.e, np.euler_gamma, np.inf, np.nan
newaxis = None


def finfo(dtype):
    """The limits of a dtype of floats, or of an array's: eps, max, min, tiny, …"""
    dtype = dtype_of(dtype)
    if dtype.kind == "c":
        dtype = types.part_of(dtype)
    if dtype.kind != "f":
        raise DtypeError(f"finfo is for floats, not {SHORT[dtype]}.",
                         fix="iinfo gives the limits of integers")
    return types.finfo(dtype)


def iinfo(dtype):
    """The limits of a dtype of integers, or of an array's: min, max."""
    dtype = dtype_of(dtype)
    if dtype.kind not in "iu":
        raise DtypeError(f"iinfo is for integers, not {SHORT[dtype]}.",
                         fix="finfo gives the limits of floats")
    return np.iinfo(dtype)


def dtype_of(x):
    """The dtype of an array, or the dtype itself."""
    return x.dtype if isinstance(x, (Value, np.ndarray, np.generic)) else as_dtype(x)


KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
         "real floating": "f",
         "complex floating": "c", "numeric": "iufc"}


def issubdtype(dtype, kind):
    """Is the dtype of that kind?  As NumPy: issubdtype(x.dtype, np.floating).

    >>> import fgrad.numpy as fnp
    >>> fnp.issubdtype("float32", fnp.float32)
    True
    """
    if dtype_is_bf16(dtype):
        return kind == BF16 or kind in (np.floating, np.inexact, np.number, np.generic)
    return kind != BF16 and bool(np.issubdtype(dtype, kind))


def isdtype(dtype, kind):
    """Is the dtype the one given, or of a kind such as "integral" or "real floating"?

    >>> import fgrad.numpy as fnp
    >>> fnp.isdtype("float32", "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    dtype = as_dtype(dtype)
    return dtype.kind in KINDS[kind] if isinstance(kind, str) and kind in KINDS else \
        dtype == as_dtype(kind)


def promote_types(type1, type2):
    """The dtype that arrays of both make together.

    >>> promote_types("int32", "float16")
    dtype('float16')
    """
    return promote(as_dtype(type1), as_dtype(type2))


def can_cast(from_, to, casting="safe"):
    """Can one dtype become the other without loss?  By NumPy's rules.

    >>> import fgrad.numpy as fnp
    >>> fnp.can_cast("int32", "float64"), fnp.can_cast("float64", "float32")
    (True, False)
    """
    given = from_.dtype if isinstance(from_, Value) else from_
    if not (dtype_is_bf16(given) or dtype_is_bf16(to)):
        return np.can_cast(given, to, casting)
    given, to = as_dtype(given), as_dtype(to)
    loose = casting == "unsafe" or casting == "same_kind" and (given.kind != "f" or to.kind == "f")
    return given is to or loose or casting != "no" and is_exact(given, to)


def dtype_is_bf16(x):
    """Is it a name of bf16?"""
    return x is BF16 or isinstance(x, (str, Scalar)) and x == BF16
