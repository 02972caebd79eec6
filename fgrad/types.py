"""Types of values: a dtype and a shape, the dtypes there are, and which dtype two of them make.

`ArrayType` is interned: equal types are one object, so types are compared with `is`.  Promotion is
a lattice: int with float gives that float, f16 with bf16 gives f32, arrays are never weak.
f16 and bf16 are dtypes of memory only: what is computed is f32, which `computed` says.
Relied on by everything above; relies on NumPy's dtypes and `bf16`.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from operator import index

import numpy as np

from . import config, slots
from .bf16 import BF16, LIMITS, WORD
from .blocks import block
from .errors import DtypeError, ShapeError

BOOL = np.dtype("bool")
I8, I16, I32, I64 = map(np.dtype, ("int8", "int16", "int32", "int64"))
U8, U16, U32, U64 = map(np.dtype, ("uint8", "uint16", "uint32", "uint64"))
F16, F32, F64 = map(np.dtype, ("float16", "float32", "float64"))

C64, C128 = map(np.dtype, ("complex64", "complex128"))

FLOATS = (F16, F32, F64, BF16)           # BF16 last: NumPy takes 1 µs to compare with it
SIGNED = (I8, I16, I32, I64)
UNSIGNED = (U8, U16, U32, U64)
UNSIGNED_OF = {8 * d.itemsize: d for d in UNSIGNED}          # bits → dtype
INTS = SIGNED + UNSIGNED
NUMBERS = INTS + FLOATS
DTYPES = (BOOL, *NUMBERS)
COMPLEX = (C64, C128)
INEXACT = FLOATS + COMPLEX
ARITHMETIC = NUMBERS + COMPLEX
EVERY = DTYPES + COMPLEX
INEXACT_KINDS = "fc"       # kinds of dtypes that have a derivative

SHORT = {d: d.kind + str(8 * d.itemsize) for d in ARITHMETIC} | {BOOL: "bool", BF16: "bf16"}
LONG = {short: d for d, short in SHORT.items()}
SCALARS = frozenset((bool, int, float))          # Python numbers that may stand for an argument
WIDE = "wide"              # what `is_number` says of NumPy's float64, which is a number, too


class ArrayType:
    """A dtype and a shape, printed `f32[8,3]`.  Equal types are one object.

    >>> ArrayType(F32, (8, 3))
    f32[8,3]
    >>> ArrayType("float32", (8, 3)) is ArrayType(F32, (8, 3))
    True
    """
    __slots__ = ("_dtype", "_shape")
    known = {}

    def __new__(cls, dtype, shape):
        try:
            found = cls.known.get((dtype, shape))
        except TypeError:                        # a list
            found = None
        if found is None:
            made = object.__new__(cls)
            known = isinstance(dtype, np.dtype) or dtype is BF16
            made._dtype = dtype if known else as_dtype(dtype)
            made._shape = sizes(shape)
            found = cls.known.setdefault((made.dtype, made.shape), made)
        return found

    def __reduce__(self):
        return ArrayType, (self.dtype, self.shape)

    def __repr__(self):
        return f"{SHORT[self.dtype]}[{','.join(map(str, self.shape))}]"

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        """Elements."""
        return prod(self.shape)

    @property
    def nbytes(self):
        """Bytes."""
        return self.dtype.itemsize * self.size

    def without(self, axes):
        """The type with `axes` gone."""
        return ArrayType(self.dtype, without(self.shape, axes))

    def with_shape(self, shape):
        """The type with another shape."""
        return ArrayType(self.dtype, tuple(shape))

    def with_dtype(self, dtype):
        """The type with another dtype."""
        return ArrayType(dtype, self.shape)


def ShapeDtypeStruct(shape, dtype):
    """The ArrayType of this shape and dtype: JAX's name for it, and JAX's order of the arguments.

    >>> ShapeDtypeStruct((8, 3), "float32")
    f32[8,3]
    """
    return ArrayType(dtype, shape)


slots.read_only(ArrayType, "dtype", "shape")


def sizes(shape):
    """A shape as a tuple of Python ints.  Raises ShapeError for what is none."""
    try:
        return tuple([int(index(n)) for n in shape])
    except TypeError:
        raise ShapeError("a shape is a tuple of whole numbers.", given=f"{shape!r:.60}",
                         fix="(n,) for one axis, () for none") from None


def without(shape, axes):
    """The shape with `axes` gone."""
    return tuple(n for a, n in enumerate(shape) if a not in axes)


# ---------------------------------------------------------------------------- defaults

_wide = ContextVar("fgrad_default_is_64_bit", default=False)
_strict = ContextVar("fgrad_strict_promotion", default=None)    # None: as FGRAD_STRICT says
CHANGED = []               # functions called when rules other than the usual begin; jit adds one
_blocks = []               # one item per open block with other rules, in any thread
CHOICES = [_wide, _strict, config.CHOSEN_DEVICE]     # what such blocks set; jit adds one


def default_float():
    """The dtype of Python floats: f32, or f64 under default_dtype("float64")."""
    return F64 if _wide.get() else F32


def default_complex():
    """The dtype of Python's complex numbers: c64, or c128 under default_dtype("float64")."""
    return C128 if _wide.get() else C64


def default_int():
    """The dtype of Python ints: i32, or i64 under default_dtype("float64")."""
    return I64 if _wide.get() else I32


@block
def default_dtype(dtype):
    """Within the block Python numbers and creation functions give 64-bit, or 32-bit, values.

    Raises DtypeError for anything but float32 and float64.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> with fgrad.default_dtype("float64"):
    ...     fnp.array(0.5), fnp.arange(2)
    (Array(0.5, f64[]), Array([0, 1], i64[2]))
    """
    dtype = as_dtype(dtype)
    if dtype not in (F32, F64):
        raise DtypeError(f"the default dtype can be float32 or float64, not {dtype}.")
    with other_rules(_wide, dtype == F64, dtype == F64):
        yield


@block
def strict_promotion(on=True):
    """Within the block arrays of two dtypes do not mix: a DtypeError names both, and the line.

    Python numbers take the dtype of the array beside them as ever.  `strict_promotion(False)` is
    for a block that may mix where FGRAD_STRICT=1 says that nothing else does.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> x, wide = fnp.ones(2), fnp.ones(2, dtype="float64")
    >>> with fgrad.strict_promotion():
    ...     try:
    ...         x + wide
    ...     except fgrad.DtypeError:
    ...         x + wide.astype("float32")
    Array([2., 2.], f32[2])
    """
    with other_rules(_strict, bool(on), True):
        yield


def is_strict():
    """Do arrays of two dtypes not mix here?"""
    chosen = _strict.get()
    return config.strict_promotion() if chosen is None else chosen


@contextmanager
def other_rules(variable, value, unusual):
    """A block in which a variable has this value; whoever compiled for the usual ones is told."""
    token = variable.set(value)
    if unusual:
        _blocks.append(variable)
        for changed in CHANGED:
            changed()
    try:
        yield
    finally:
        if unusual:
            _blocks.pop()
        variable.reset(token)


def other_rules_in_use():
    """Has any thread 64-bit defaults, or a strictness of its own, at the moment?"""
    return bool(_blocks)


def circumstances(but=None):
    """A function of nothing: what the blocks around a call have chosen, one variable apart."""
    getters = [variable.get for variable in CHOICES if variable is not but]
    return lambda: [get() for get in getters]


def rules():
    """What a trace depends on besides its arguments: the default float, and a strictness chosen."""
    chosen = _strict.get()
    return default_float() if chosen is None else (default_float(), chosen)


def default_for(dtype, is_number=True):
    """What a Python number of this dtype becomes when it settles: f32 or i32, bool stays.

    is_number: WIDE for one of NumPy, whose floats stay f64.
    """
    if is_number == WIDE and dtype == F64:
        return F64
    defaults = {"f": default_float(), "i": default_int(), "c": default_complex()}
    return defaults.get(dtype.kind, dtype)


def dtype_of_scalar(x):
    """The dtype that a Python number has by itself."""
    return BOOL if x.__class__ is bool else default_int() if x.__class__ is int else default_float()


@functools.lru_cache(maxsize=None)
def _dtype(x):
    name = LONG.get(x) if isinstance(x, str) else None
    if name is not None:
        return name
    if x == BF16:
        return BF16
    dtype = np.dtype(x)
    return BF16 if dtype == BF16 else dtype


def as_dtype(x):
    """x as one of fgrad's dtypes; "f32", "float32", np.float32 and float are all understood;
    None is the default float, as in NumPy.

    Raises DtypeError for a dtype fgrad does not have.
    """
    if x is int:
        return default_int()
    if x is float or x is None:
        return default_float()
    if x is complex:
        return default_complex()
    try:
        dtype = _dtype(x)
    except TypeError:
        dtype = None
    if dtype not in SHORT:
        raise DtypeError(f"{x!r} is not a dtype of fgrad.", expected=" ".join(SHORT.values()),
                         fix="a shape of several axes is one tuple: (2, 3), not 2, 3"
                         if x.__class__ is int else None)
    return dtype


# ---------------------------------------------------------------------------- memory and registers

COMPUTED = {F16: F32, BF16: F32}


def computed(dtype):
    """The dtype in which values of a dtype are computed: memory rounds them, at stores.

    >>> computed(F16), computed(I8)
    (dtype('float32'), dtype('int8'))
    """
    return COMPUTED.get(dtype, dtype)


def held_as(dtype):
    """The NumPy dtype of the memory that holds values of a dtype: 16-bit words for bf16."""
    return WORD if dtype is BF16 else dtype


def is_known(dtype):
    """Is a dtype of a NumPy array one of fgrad's, another package's bfloat16 included?"""
    return dtype in SHORT or dtype == BF16


def is_exact(dtype, to):
    """Is every value of a dtype one of the other, too?

    >>> is_exact(F16, F32), is_exact(I32, F32)
    (True, False)
    """
    if BF16 in (dtype, to):
        return dtype is to or dtype is BF16 and to in (F32, F64) or dtype in (BOOL, I8, U8)
    return np.can_cast(dtype, to, "safe")


def finfo(dtype):
    """NumPy's finfo, for every dtype of floats."""
    return LIMITS if dtype is BF16 else np.finfo(dtype)


# ---------------------------------------------------------------------------- complex numbers

def complex_of(dtype):
    """The dtype of complex numbers whose parts are of a dtype; of integers, the default.

    >>> complex_of(F64), complex_of(F16)
    (dtype('complex128'), dtype('complex64'))
    """
    if dtype.kind != "f":
        return default_complex()
    return C128 if dtype == F64 else C64


def part_of(dtype):
    """The dtype of the parts of complex numbers.

    >>> part_of(C64)
    dtype('float32')
    """
    return F64 if dtype == C128 else F32


# ---------------------------------------------------------------------------- promotion

def promote(a, b):
    """The dtype of array with array: int with float gives that float; otherwise the wider kind.

    >>> promote(I32, F16), promote(I64, F32), promote(U8, I8)
    (dtype('float16'), dtype('float32'), dtype('int16'))
    """
    if a == b:
        return a
    if a.kind in INEXACT_KINDS and b.kind not in INEXACT_KINDS:
        return a
    if b.kind in INEXACT_KINDS and a.kind not in INEXACT_KINDS:
        return b
    both = {a, b}
    if U64 in both and any(d in SIGNED for d in both):
        return default_float()
    return np.promote_types(computed(a), computed(b)) if BF16 in both else np.promote_types(a, b)


def promote_number(kind, dtype):
    """The dtype of a Python number of class `kind` beside an array of `dtype`.

    NumPy's float64 is a Python float by its class, with 64 bits where no array of floats decides.

    >>> promote_number(int, F16), promote_number(float, I32), promote_number(bool, U8)
    (dtype('float16'), dtype('float32'), dtype('uint8'))
    """
    if kind is complex:
        return dtype if dtype.kind == "c" else complex_of(dtype)
    if kind in (float, np.float64) and dtype.kind not in INEXACT_KINDS:
        return default_float() if kind is float else F64
    if kind is int and dtype == BOOL:
        return default_int()
    return dtype
