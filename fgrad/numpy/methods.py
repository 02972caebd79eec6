"""The operators and methods of values.

`core` defines values without them, so that operations can be defined first; they are attached here,
to arrays and tracers alike.  The first branches of an operator are its fast paths: two arrays of
equal type that nothing but evaluation looks at, then a Python number or a value of equal type, with
nothing to promote.
"""

from __future__ import annotations

import ast
import builtins
import sys

import numpy as np

from .. import ops, source
from ..bf16 import BF16
from ..core import EVALUATE, NOTHING, Array, Value, _current
from ..errors import ArgumentError, DtypeError, MutationError, boundary, shorten
from ..later import lazily
from ..types import F64, I64, INEXACT_KINDS, SCALARS, as_dtype
from . import (
    complex, contract, elementwise, indexing, matrices, places, reductions, shape, sorting, ufuncs)
from .promotion import binary, binary_float, cast, in_dtype, is_number, kind
from .updates import At

OTHERS = (np.ndarray, np.generic, builtins.complex)
KNOWN = (Value, *OTHERS)
device_put = lazily("fgrad.placing", "device_put")


# ---------------------------------------------------------------------------- operators

def operator(op, slow=binary, kinds="fiuc", swap=False, others=OTHERS):
    """The method of an operator that is one operation; `kinds` of dtype need no conversion.

    others: classes that are made arrays; what is none of them is left to Python.
    """
    rules = {} if swap else {d: rule for d, rule in op.rules.items() if d.kind in kinds}

    def method(x, y):
        try:
            cls = y.__class__
            if cls is Array and x.__class__ is Array and _current.get() is EVALUATE:
                if x.shape == y.shape and x.dtype is y.dtype and x.dtype in rules:
                    return Array(rules[x.dtype](x.np, y.np))
            if cls is float or cls is int:
                kind = x.dtype.kind
                if kind in INEXACT_KINDS or cls is int and kind in kinds:
                    return _current.get().process(op, (y, x) if swap else (x, y), NOTHING)
            elif isinstance(y, Value):
                if x.shape == y.shape and x.dtype is y.dtype and x.dtype.kind in kinds:
                    return _current.get().process(op, (y, x) if swap else (x, y), NOTHING)
            elif cls is not bool and not isinstance(y, others) and not hasattr(y, "__array__"):
                return NotImplemented                # so that [0] * n repeats the list
            return slow(op, y, x) if swap else slow(op, x, y)
        except BaseException as error:           # written out: a wrapper would cost every operator
            shorten(error)
            raise
    return method


def operator_of(function, swap=False):
    """The method of an operator that is a function of two arguments."""
    def method(x, y):
        try:
            if not (isinstance(y, KNOWN) or y.__class__ in SCALARS or hasattr(y, "__array__")):
                return NotImplemented
            return function(y, x) if swap else function(x, y)
        except BaseException as error:
            shorten(error)
            raise
    return method


def as_in_python(function):
    """The function; of two Python numbers that jit traces it is the number that Python computes."""
    def chosen(x, y):
        if not (is_number(x) and is_number(y)):
            return function(x, y)
        dtype = F64 if float in (kind(x), kind(y)) else I64
        return function(in_dtype(x, dtype), in_dtype(y, dtype)).as_number()
    return chosen


def power_operator(x, y):
    """x ** y."""
    if y.__class__ is int and y == 2 and x.dtype.kind != "b":
        return _current.get().process(ops.square, (x,), NOTHING)
    return slow_power(x, y)


slow_power = operator_of(elementwise.power)

ONE_OPERATION = {"add": ops.add, "sub": ops.sub, "mul": ops.mul}
COMPARISONS = {"eq": ops.eq, "ne": ops.ne, "lt": ops.lt, "le": ops.le, "gt": ops.gt, "ge": ops.ge}
BITS = {"and": ops.and_, "or": ops.or_, "xor": ops.xor, "lshift": ops.shl, "rshift": ops.shr}
FUNCTIONS = {"floordiv": as_in_python(elementwise.floor_divide),
             "mod": as_in_python(elementwise.remainder),
             "divmod": lambda x, y: (x // y, x % y), "matmul": contract.matmul}


def attach_operators():
    """Gives Value its operators."""
    for name, op in ONE_OPERATION.items():
        put(f"__{name}__", operator(op))
        put(f"__r{name}__", operator(op, swap=True))
    put("__truediv__", operator(ops.div, binary_float, "f"))
    put("__rtruediv__", operator(ops.div, binary_float, "f", swap=True))
    for name, op in COMPARISONS.items():
        put(f"__{name}__", operator(op, others=(*OTHERS, list, tuple)))
    for name, op in BITS.items():
        put(f"__{name}__", operator(op, kinds="biu"))
        put(f"__r{name}__", operator(op, kinds="biu", swap=True))
    for name, function in FUNCTIONS.items():
        put(f"__{name}__", operator_of(function))
        put(f"__r{name}__", operator_of(function, swap=True))
    put("__pow__", boundary(power_operator))
    put("__rpow__", operator_of(elementwise.power, swap=True))


def put(name, method):
    """Attaches a method to Value, under its name."""
    method.__name__, method.__qualname__ = name, f"Value.{name}"
    setattr(Value, name, method)


# ---------------------------------------------------------------------------- methods

class Methods:
    """Methods whose arguments differ from the functions'; copied to Value, never used itself."""

    def __neg__(x):
        return _current.get().process(ops.neg, (x,), NOTHING)

    def __pos__(x):
        return x

    def __abs__(x):
        return _current.get().process(ops.abs, (x,), NOTHING) if x.is_number else (
            elementwise.absolute(x))

    def __invert__(x):
        return _current.get().process(ops.not_, (x,), NOTHING)

    def __round__(x, ndigits=0):
        return elementwise.round(x, ndigits or 0)

    def __contains__(x, y):
        return bool(reductions.any(ufuncs.equal(x, y)))

    def __getitem__(x, index):
        return indexing.getitem(x, index)

    def __setitem__(x, index, values):
        raise immutable()

    def __delitem__(x, index):
        raise MutationError("fgrad arrays are immutable: elements cannot be deleted.",
                            fix="choose the elements to keep: x[x > 0]")

    @property
    def at(x):
        """Updated copies: x.at[i].set(1), .add, .multiply, .min, .max, .get, .apply."""
        return At(x)

    @property
    def T(x):
        """The axes reversed."""
        return shape.transpose(x)

    @property
    def mT(x):
        """Every matrix transposed."""
        return shape.matrix_transpose(x)

    @property
    def itemsize(x):
        """Bytes of one element."""
        return x.dtype.itemsize

    @property
    def nbytes(x):
        """Bytes of all elements."""
        return x.type.nbytes

    @property
    def flat(x):
        """The elements, one after the other."""
        return iter(shape.ravel(x))

    @property
    def real(x):
        """The real part: of a real array, itself."""
        return complex.real(x)

    @property
    def imag(x):
        """The imaginary part: of a real array, zeros."""
        return complex.imag(x)

    def conj(x):
        """x with the sign of its imaginary part changed."""
        return complex.conjugate(x)

    conjugate = conj

    def reshape(x, *sizes, order="C"):
        """The elements in another shape: x.reshape(2, -1), or x.reshape((2, -1))."""
        return shape.reshape(x, sizes[0] if len(sizes) == 1 else sizes, order)

    def transpose(x, *axes):
        """The axes in another order, reversed by default."""
        return shape.transpose(x, (axes[0] if len(axes) == 1 else axes) or None)

    def flatten(x, order="C"):
        """The elements in a row."""
        return shape.ravel(x, order)

    def astype(x, dtype, copy=True):
        """x in another dtype: float to int towards zero, number to bool x != 0."""
        return cast(x, as_dtype(dtype))

    def copy(x):
        """The same elements in memory of their own, which outlive a donation of x."""
        return x.duplicate() if isinstance(x, Array) else x

    def to_device(x, device, /, *, stream=None):
        """The array on a device, as `fgrad.device_put`.   n[*s] → n[*s]

        Raises ArgumentError for a stream: each device has one queue.
        """
        if stream is not None:
            raise ArgumentError("to_device takes no stream: each device has one queue.",
                                given=f"stream={stream!r:.60}")
        return device_put()(x, device)

    def block_until_ready(x):
        """x itself: its value is known already."""
        return x

    def __array_namespace__(x, api_version=None):
        """The module fgrad.numpy."""
        return sys.modules[__package__]

    def __copy__(x):
        return x.copy()

    def __deepcopy__(x, memo):
        return x.copy()


FROM_FUNCTIONS = (
    reductions.sum, reductions.prod, reductions.mean, reductions.var, reductions.std,
    reductions.max,
    reductions.min, reductions.all, reductions.any, reductions.argmax, reductions.argmin,
    reductions.cumsum,
    reductions.cumprod, reductions.ptp, shape.ravel, shape.squeeze, shape.swapaxes, shape.repeat,
    elementwise.round, elementwise.clip, contract.dot, indexing.take, places.nonzero,
    sorting.argsort,
    sorting.sort, matrices.diagonal, matrices.trace)


def attach_methods():
    """Gives Value its methods."""
    for name, member in vars(Methods).items():
        if callable(member) or isinstance(member, property):
            bounded = boundary(member) if callable(member) else property(boundary(member.fget))
            setattr(Value, name, bounded)
    for function in FROM_FUNCTIONS:
        setattr(Value, function.__name__, boundary(function))


# ---------------------------------------------------------------------------- immutability

OPERATIONS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
              ast.Pow: "power"}


def immutable():
    """The error for x[i] = y, with the user's own names where the source is known."""
    place = source.place(source.here())
    line = rewritten(place.text) if place is not None else None
    return MutationError(f"fgrad arrays are immutable; write {line or 'x = x.at[i].set(y)'}")


def rewritten(text):
    """The assignment `x[i] = y` as `x = x.at[i].set(y)`, or None for another line."""
    try:
        statement = ast.parse(text).body[0]
    except (SyntaxError, IndexError):
        return None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, method = statement.targets[0], "set"
    elif isinstance(statement, ast.AugAssign) and type(statement.op) in OPERATIONS:
        target, method = statement.target, OPERATIONS[type(statement.op)]
    else:
        return None
    found = base_and_index(target)
    if found is None:
        return None
    base, index = found
    at = ast.Subscript(ast.Attribute(base, "at"), index)
    return f"{ast.unparse(base)} = {ast.unparse(at)}.{method}({ast.unparse(statement.value)})"


def base_and_index(target):
    """(the array, its index) of `params["w"][0][1]`, as syntax: `params["w"]` and `0, 1`.

    None where the array is no variable, or attribute, or part of one that can be assigned.
    """
    indices = []
    while isinstance(target, ast.Subscript):
        indices.insert(0, target.slice)
        target = target.value
    base, value = target, source.value_of(target)
    while isinstance(value, (dict, list)) and len(indices) > 1:
        try:
            value = value[ast.literal_eval(indices[0])]
        except (ValueError, TypeError, LookupError):
            return None
        base = ast.Subscript(base, indices.pop(0))
    if not isinstance(value, Value) or not indices:
        return None
    if len(indices) == 1:
        return base, indices[0]
    if any(isinstance(part, (ast.Slice, ast.Tuple)) for part in indices[:-1]):
        return None                              # x[1:][0] is not x[1:, 0]
    last = indices.pop()
    return base, ast.Tuple(indices + (last.elts if isinstance(last, ast.Tuple) else [last]))


# ---------------------------------------------------------------------------- arrays alone

def as_numpy(x, dtype=None, copy=None):
    """A read-only view of the elements; a copy when `copy`, or when the dtype differs."""
    out = np.asarray(x.value_for("NumPy"))
    if copy or dtype is not None and np.dtype(dtype) != out.dtype:
        if copy is False:
            raise ValueError(f"an array of {out.dtype} cannot become {np.dtype(dtype)} without a "
                             "copy")
        return out.astype(out.dtype if dtype is None else dtype)
    out = out.view()
    out.flags.writeable = False
    return out


def to_dlpack(x, copy=None, **options):
    """A DLPack capsule of a copy, since consumers are known to write to memory marked read-only.

    copy=False shares the memory: then nothing may write to it.
    """
    if x.dtype is BF16:
        raise DtypeError("an array of bf16 cannot be given away through DLPack.",
                         given=f"an array {x.type}",
                         fix=["x.astype(\"float32\") gives an array that can",
                              "np.asarray(x) gives the numbers as float32"])
    memory = np.asarray(x.np) if copy is False else np.array(x.np)
    return memory.__dlpack__(**{k: v for k, v in options.items() if v is not None})


def dlpack_device(x):
    """(1, 0): the memory of the CPU."""
    return np.zeros(0).__dlpack_device__()


def repr_html(x):
    """The elements of vectors and matrices as a table, for notebooks."""
    title = f"<code>Array {x.type}</code>"
    if not 1 <= x.ndim <= 2 or not x.size:
        return f"{title}<pre>{x}</pre>"
    rows = np.atleast_2d(np.asarray(x))
    shown = ["".join(f"<td>{v:.6g}</td>" if v.dtype.kind == "f" else f"<td>{v}</td>"
                     for v in row[:20])
             + ("<td>…</td>" if rows.shape[1] > 20 else "") for row in rows[:20]]
    body = "".join(f"<tr>{row}</tr>" for row in shown) + ("<tr><td>⋮</td></tr>"
                                                          if len(rows) > 20 else "")
    return f"{title}<table>{body}</table>"


def attach_to_arrays():
    """Gives Array what tracers lack: its elements to other libraries, and a form in notebooks."""
    for name, method in [("__array__", as_numpy), ("__dlpack__", to_dlpack),
                         ("__dlpack_device__", dlpack_device),
                         ("_repr_html_", repr_html)]:
        setattr(Array, name, boundary(method))


attach_operators()
attach_methods()
attach_to_arrays()
