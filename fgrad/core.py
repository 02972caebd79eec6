"""The heart: values, operations, and interpreters that give operations a meaning.

    bind is  current().process(op, args, params)

The rules of an interpreter:
1.  A tracer belongs to the interpreter that made it; only `a.owner is self` is asked, no levels.
2.  Any other value is a constant, and goes to `below` as it is, other interpreters' tracers included.
3.  `process` never looks at the current interpreter.  Rules run while `below` is current.
4.  Evaluate meets a tracer: it leaked.  Stage captures a tracer whose owner is not below it: it leaked.
5.  A trace that captured a tracer is not kept in jit's table.
6.  An interpreter that has finished hands everything below (a copied context may still hold it).

Operators and methods of values are attached by `fgrad.numpy`; `ops/` defines the operations.
"""

from __future__ import annotations

import dis
import sys
from contextvars import ContextVar

import numpy as np

from .errors import ArgumentError, FgradError, LeakError, NumpyError
from .types import SCALARS, SHORT, ArrayType, DTYPES

NOTHING = {}               # the parameters of an operation that has none; never written to
UFUNCS = {}                # NumPy ufunc → function of values; filled by fgrad.numpy
FUNCTIONS = {}             # NumPy function → function of values; filled by fgrad.numpy


# ---------------------------------------------------------------------------- values

class Value:
    """What operations take: an Array, or a tracer.  Has `shape` and `dtype`."""
    __slots__ = ()
    __hash__ = object.__hash__

    @property
    def type(self):
        """The ArrayType."""
        return ArrayType(self.dtype, self.shape)

    @property
    def ndim(self):
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """The number of elements."""
        return self.type.size

    def __array_ufunc__(self, ufunc, method, *args, out=None, **rest):
        found = UFUNCS.get(ufunc)
        if method != "__call__" or out is not None or rest or found is None:
            raise refuse(ufunc.__name__, out is not None)
        return found(*args)

    def __array_function__(self, function, types, args, kwargs):
        found = FUNCTIONS.get(function)
        if found is None or kwargs.get("out") is not None:
            raise refuse(function.__name__, kwargs.get("out") is not None)
        return found(*args, **kwargs)


def refuse(name, out=False):
    """The error for a NumPy call that has no counterpart here."""
    if out:
        return NumpyError(f"np.{name} cannot write into out=: a traced value has no storage yet.",
                          fix=f"use what np.{name} returns")
    return NumpyError(f"np.{name} cannot be traced.", fix=f"use fgrad.numpy.{name}, or other fgrad functions")


class Array(Value):
    """An immutable array.  `np` is an ndarray or NumPy scalar that nobody writes to."""
    __slots__ = ("np", "shape", "dtype")

    def __init__(self, np_value):
        self.np = np_value
        self.shape = np_value.shape
        self.dtype = np_value.dtype

    def value_for(self, what):
        """The NumPy value; `what` names what Python wants it for."""
        return self.np

    @property
    def device(self):
        """The device that holds the array."""
        return "cpu"

    def __reduce__(self):
        return frozen_array, (np.asarray(self.np),)


def frozen_array(x):
    """An Array of a NumPy array that is the caller's to give away; it is made read-only."""
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    return Array(x)


class Tracer(Value):
    """A value inside of a transformation; `owner` is the interpreter that made it."""
    __slots__ = ("owner",)

    def __array__(self, dtype=None, copy=None):
        """Never: under grad the value is known, but its derivative would be lost without a word."""
        self.owner.refuse_numpy(self)
        raise NumpyError(
            "NumPy cannot hold a value that is being traced.",
            fix=["build with fgrad.numpy.array([…]) or stack", "set elements with a.at[i].set(x)",
                 "or pass fgrad.stop_gradient(x)"])

    def __copy__(self):
        return self                              # a copied owner would no longer be the owner

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise FgradError("a value that is being traced cannot be pickled.",
                         fix="return it from the function, and pickle the result")

    def leaked(self):
        """The error for using this value outside of its transformation."""
        name = type(self.owner).title
        return LeakError(f"a value {SHORT[self.dtype]}{list(self.shape)} of {name} was used outside of the "
                         f"{name} call it belongs to.", fix="return it from the function instead of storing it")


def stores_into_array(frame):
    """Is the frame executing `a[i] = x`?  NumPy then asks x for a float and would drop its derivative."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "STORE_SUBSCR"


# ---------------------------------------------------------------------------- interpreters

class Interpreter:
    """Gives operations a meaning.  `process` may be called whichever interpreter is current.

    An interpreter knows its own tracers by identity (`a.owner is self`).  Every other value, tracers
    of other interpreters included, is a constant to it and is handed to `below` as it is.
    """
    below = None
    title = "a transformation"       # the user's word for it

    def process(self, op, args, params):
        """The result of the operation, as this interpreter sees it."""
        raise NotImplementedError

    def refuse_numpy(self, tracer):
        """Called before NumPy is refused the value of a tracer: the place to ask for a retrace."""

    def holds(self, interpreter):
        """Is `interpreter` this one, or somewhere under it?"""
        while self is not None and self is not interpreter:
            self = self.below
        return self is not None

    def run(self, function, *args):
        """function(*args) while this interpreter is current."""
        token = _current.set(self)
        try:
            return function(*args)
        except ValueError as error:              # NumPy wraps what `__float__` raises in A[0, 0] = x
            if isinstance(error.__cause__, FgradError):
                raise error.__cause__ from None
            raise
        finally:
            _current.reset(token)


class Evaluate(Interpreter):
    """The bottom: NumPy, at once.  It tries the operation's NumPy rule and diagnoses only on failure."""
    title = "evaluation"

    def process(self, op, args, params):
        try:
            return op.evaluate(args, params)
        except AttributeError:
            return self.again(op, args, params)

    def again(self, op, args, params):
        """The operation on arguments that were not Arrays; a tracer among them has leaked."""
        for a in args:
            if isinstance(a, Tracer):
                raise a.leaked() from None
        if all(isinstance(a, Array) for a in args):
            raise
        numbers = SCALARS if len(args) > 1 else ()
        values = [a if a.__class__ in numbers else as_value(a) for a in args]
        return op.evaluate(values, params)


EVALUATE = Evaluate()
_current = ContextVar("fgrad_interpreter", default=EVALUATE)
current = _current.get


def as_value(x):
    """x as a Value, without a copy where NumPy allows it: for arguments of operations.

    Python numbers settle to the default dtypes.  Raises ArgumentError for anything else.
    """
    if isinstance(x, Value):
        return x
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype in SHORT:
        return Array(x)
    convert = CONVERT.get("array")
    if convert is None:
        raise ArgumentError(f"a {type(x).__name__} is not an array.")
    return convert(x)


CONVERT = {}               # "array": fgrad.numpy's array(), set when that is imported


# ---------------------------------------------------------------------------- operations

class Primitive:
    """One operation: type, numpy, jvp, transpose, batch, pull.

    Rules take arrays by position and parameters by keyword.  What is not stated is derived from
    `linear_in` (jvp) or from `jvp` (the pullback).  Every Primitive is listed in PRIMITIVES.
    """
    linear_in = ()          # arguments in which it is linear, one at a time
    differentiable = True
    multiple = False        # returns a tuple
    numbers = False         # takes Python numbers for arguments
    pull = None             # without one, compiled code calls the NumPy rule
    dtypes = DTYPES         # what its (first) argument may be; used by the law tests

    def __init__(self, name):
        self.name = self.__name__ = name
        PRIMITIVES[name] = self

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return PRIMITIVES.__getitem__, (self.name,)

    def __call__(self, *args, **params):
        return _current.get().process(self, args, params)

    def evaluate(self, args, params):
        """The value, by the `numpy` rule."""
        if len(args) == 1:
            return Array(self.numpy(args[0].np, **params))
        return Array(self.numpy(*[a.np for a in args], **params))


PRIMITIVES = {}            # name → Primitive; written by Primitive only
