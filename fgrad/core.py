"""The heart: values, operations, and interpreters that give operations a meaning.

    bind is  current().process(op, args, params)

The rules of an interpreter:
1.  A tracer belongs to the interpreter that made it; only `a.owner is self` is asked, no levels.
2.  Any other value, tracers of others included, is a constant, and goes to `below` as it is.
3.  `process` never looks at the current interpreter.  Rules run while `below` is current.
4.  A tracer has leaked when Evaluate meets it, or Stage captures it and its owner is not below.
5.  A trace that captured a tracer is not kept in jit's table.
6.  An interpreter that has finished hands everything below (a copied context may still hold it).

Operators and methods of values are attached by `fgrad.numpy`; `ops/` defines the operations.
"""

from __future__ import annotations

import dis
import functools
from contextvars import ContextVar

import numpy as np

from . import slots, source
from .aligned import copied
from .errors import (
    ArgumentError, ConcretizationError, DonationError, FgradError, LeakError, MissingRuleError,
    NumpyError, RangeError, boundary, notice)
from .bf16 import BF16, values_of, words_of
from .ir import OPERATIONS as PRIMITIVES
from .ir import operation
from .later import lazily
from .types import (
    DTYPES, F32, INEXACT_KINDS, SCALARS, SHORT, ArrayType, default_complex, default_for,
    dtype_of_scalar)

NOTHING = {}               # the parameters of an operation that has none; never written to
ATTACHED = {}              # functions of fgrad.numpy, by name; set there


# ---------------------------------------------------------------------------- values

class Value:
    """An immutable array of NumPy's methods and operators, made by `fgrad.numpy.array`.

    It has shape, dtype, ndim, size and T; x[i] and x.at[i].set(y), which gives a changed copy; the
    methods of ndarray; item, tolist and numpy.asarray(x) give it to Python and NumPy.  Values that
    are traced, differentiated or batched are arrays too.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> x = fnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, x.dtype, x.T.tolist(), isinstance(x, fgrad.Array)
    ((2, 2), dtype('float32'), [[1.0, 3.0], [2.0, 4.0]], True)
    >>> x.at[0, 1].set(9.0), x.sum(axis=0)
    (Array([[1., 9.],
           [3., 4.]], f32[2,2]), Array([4., 6.], f32[2]))
    """
    __slots__ = ()                               # an Array, or a tracer; has `shape` and `dtype`

    def __init_subclass__(cls):
        cls.__name__ = "Array"                   # Python's own messages name the class

    __hash__ = object.__hash__
    is_number = False          # does it stand for a Python number that jit traces?  WIDE: of NumPy

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

    def settled(self):
        """The value, no longer mixing like a Python number."""
        return self

    def value_for(self, what):
        """The NumPy value; `what` says what Python wants it for.  Raises where there is none."""
        raise NotImplementedError

    @boundary
    def __bool__(self):
        if (x := self.value_for("bool")).size != 1:
            raise RangeError(f"{self.type} has no truth value: it has {x.size} elements.",
                             fix="x.any() or x.all()")
        return bool(x)

    @boundary
    def __float__(self):
        return float(scalar_of(self, "float"))

    @boundary
    def __complex__(self):
        return complex(scalar_of(self, "complex"))

    @boundary
    def __int__(self):
        return int(scalar_of(self, "int"))

    @boundary
    def __index__(self):
        if self.dtype.kind not in "iu":
            raise ArgumentError("an index is an int.", given=repr(self.type), fix="int(x)")
        return int(scalar_of(self, "index"))

    @boundary
    def item(self, *index):
        """The Python number of an array of one element, or of the one at an index, as in NumPy.

        Raises RangeError for an array of more elements without an index.
        """
        return item_of(self.value_for("item()"), self, index)

    @boundary
    def tolist(self):
        """The elements as nested lists of Python numbers."""
        return self.value_for("tolist()").tolist()

    @boundary
    def __len__(self):
        if not self.shape:
            raise ArgumentError("a scalar has no len().", given=repr(self.type))
        return self.shape[0]

    @boundary
    def __iter__(self):                          # without it, Python would index until IndexError
        if not self.shape:
            raise ArgumentError("a scalar cannot be iterated over.", given=repr(self.type),
                                fix="x[None] is an array of one element")
        return map(self.__getitem__, range(len(self)))

    @boundary
    def __array_ufunc__(self, ufunc, method, *args, out=None, **rest):
        found = ATTACHED["namesake"](ufunc)
        if method != "__call__" or out is not None or rest or found is None:
            name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise refusal()(name, traced_in(args), out, rest,
                            method == "__call__" and found is not None)
        return found(*args)

    @boundary
    def __array_function__(self, function, types, args, kwargs):
        found = ATTACHED["namesake"](function)
        if found is None or kwargs.get("out") is not None:
            raise refusal()(function.__name__, traced_in((self, *args)), kwargs.get("out"))
        return found(*args, **kwargs)


Value.__name__ = "Array"                         # fgrad.Array, for isinstance and help
refusal = lazily("fgrad.refusals", "refusal")


def traced_in(args):
    """Those of some arguments that are being traced."""
    return [a for a in args if isinstance(a, Tracer)]


def item_of(value, x, index):
    """An element of the value of the array x.  Raises RangeError for several without an index."""
    if not index and value.size != 1:
        raise RangeError("item() takes an array of one element.", given=repr(x.type),
                         fix=["x.tolist(), or index it first", "x.item(k)"])
    return value.item(*index)


def scalar_of(x, what):
    """The value of an array of no axes.  Raises ArgumentError for any other."""
    return without_axes(x.value_for(what), x, what)


def without_axes(value, x, what):
    """The value of the array x.  Raises ArgumentError where it has axes."""
    if value.ndim == 0:
        return value
    raise ArgumentError(f"{what} takes an array of no axes.", given=repr(x.type),
                        fix=["x.item() of an array of one element", "x.sum(), or index it"])


class Array(Value):
    """An immutable array in memory.  `np` is an ndarray or NumPy scalar that nobody writes to.

    `memory` names the attributes that hold the elements.  `shape` and `dtype` are read only: with
    others, compiled code would read what is not the array's.
    """
    __slots__ = ("np", "_shape", "_dtype")
    memory = ("np",)

    def __init__(self, np_value):
        self.np = np_value
        self._shape = np_value.shape
        self._dtype = np_value.dtype

    def value_for(self, what):
        """The NumPy value."""
        return self.np

    @boundary
    def __repr__(self):
        return f"Array({array_text(self)}, {self.type})"

    @boundary
    def __str__(self):
        return str(self.np)

    @boundary
    def __format__(self, form):
        if form and self.shape:
            raise ArgumentError(f"an array of several elements has no format {form!r}.",
                                given=repr(self.type),
                                fix=["x.item() of an array of one element",
                                     'f"{x}", maybe of x.round(2)'])
        return format(self.item() if form else str(self), form)

    @property
    def device(self):
        """The device that holds the array."""
        return "cpu"

    @boundary
    def __reduce__(self):
        return frozen_array, (np.asarray(memory_of(self)), self.dtype)

    def duplicate(self):
        """An Array of the same elements in memory of its own, which outlives a donation of this."""
        return frozen_array(copied(np.asarray(memory_of(self))), self.dtype)

    def give_away(self):
        """Lets go of the memory, which a compiled function has taken over: it is used no more."""
        for name in self.memory:
            delattr(self, name)
        self.__class__ = donated(type(self))


slots.read_only(Array, "shape", "dtype")


def give_away(given, results=()):
    """Marks what was donated, where it is an Array and no result: it must not be used again."""
    gone, kept = donated(Array), {id(x) for x in results}
    for x in given:
        if kept and id(x) in kept:
            continue
        if x.__class__ is Array:                 # what x.give_away() does, in half the time
            del x.np
            x.__class__ = gone
        elif isinstance(x, Array):
            x.give_away()


def expect_memory(given):
    """Raises DonationError where one of them has given its memory away."""
    for x in given:
        if isinstance(x, Array):
            for name in x.memory:
                getattr(x, name)


@functools.cache
def donated(cls):
    """The class of Arrays of class `cls` whose memory has been given away."""
    gone = dict.fromkeys(("np", *cls.memory), property(boundary(refuse_donated)))
    return type(f"Donated{cls.__name__}", (cls,), {
        "__slots__": (), "__module__": cls.__module__, "give_away": lambda self: None, **gone})


def refuse_donated(array):
    """The elements of an Array that has none.  Raises DonationError."""
    raise DonationError(
        "an array was used after its memory had been donated to a compiled function.",
        given=f"an array {array.type}",
        fix=["use the function's result instead", "or x.copy() before, which lasts",
             "or leave it out of donate_argnums"])


def array_text(x, separator=", ", prefix="Array("):
    """The elements, in NumPy's form."""
    forms = {"float_kind": shortest_bf16} if x.dtype is BF16 else None
    return np.array2string(np.asarray(x.value_for("printing")), separator=separator, prefix=prefix,
                           threshold=1000, formatter=forms)


def shortest_bf16(x):
    """The fewest digits that are rounded to this number of bf16, in NumPy's form."""
    texts = [f"{float(x):.{digits}g}" for digits in (1, 2, 3, 4)]
    text = next((t for t in texts if words_of(float(t)) == words_of(x)), texts[-1])
    return text if set(text) & set(".en") else text + "."


def frozen_array(x, dtype=None):
    """An Array of a NumPy array that is the caller's to give away; it is made read-only."""
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    return array_of(x, dtype)


# ---------------------------------------------------------------------------- bf16

class Words:
    """What Arrays of bf16 share: `words` are their elements, and there is no `np`.

    So the NumPy rule of an operation fails on them at once, and Evaluate computes in f32.
    """
    __slots__ = ()

    def value_for(self, what):
        """The elements as f32."""
        return values_of(self.words)

    def __str__(self):
        return array_text(self, " ", "")


class WordArray(Words, Array):
    """An Array of bf16 in the memory of the CPU."""
    __slots__ = ("words",)
    memory = ("words",)

    def __init__(self, words):
        self.words, self._shape, self._dtype = words, words.shape, BF16


def memory_of(x):
    """The NumPy array that holds the elements of an Array: of bf16 the words."""
    return x.words if x.dtype is BF16 else x.np


def memory_in_order(x):
    """The memory of an Array as compiled code reads it: contiguous, row by row, and aligned.

    Where it lies otherwise a copy takes its place in the Array, so that only the first call with it
    copies; what repeats elements (np.broadcast_to) is copied each time, and stays small.
    """
    memory = np.asarray(memory_of(x))
    if memory.flags.c_contiguous and memory.flags.aligned:
        return memory
    made = copied(memory)
    made.flags.writeable = False
    if not any(step == 0 and n > 1 for step, n in zip(memory.strides, memory.shape)):
        [name] = x.memory
        setattr(x, name, made)
    return made


def array_of(memory, dtype):
    """The Array whose elements NumPy's array holds: of bf16 the words."""
    return WordArray(memory) if dtype is BF16 else Array(memory)


def array_in(x, dtype):
    """An Array of a dtype, of numbers."""
    return WordArray(words_of(x)) if dtype is BF16 else Array(np.asarray(x, dtype))


def numpy_rule(op, args, types, params):
    """The results of an operation's NumPy rule on memory, in a tuple.

    args: NumPy arrays, words where they are bf16, and numbers; types: of the arguments and of the
    results, None for numbers.
    """
    narrow = [t is not None and t.dtype is BF16 for t in types]
    if True not in narrow:
        out = op.numpy(*args, **params)
        return tuple(out) if op.multiple else (out,)
    wide = [values_of(a) if words else a for a, words in zip(args, narrow)]
    out = op.numpy(*wide, **widened(params))
    outs = out if op.multiple else (out,)
    return tuple([words_of(x) if words else x for x, words in zip(outs, narrow[len(args):])])


def widened(v):
    """A parameter, or a dict of them, with f32 wherever bf16 is named."""
    if v is BF16:
        return F32
    if v.__class__ is ArrayType:
        return v.with_dtype(F32) if v.dtype is BF16 else v
    if v.__class__ is tuple:
        return tuple(map(widened, v))
    return {k: widened(x) for k, x in v.items()} if v.__class__ is dict else v


class Tracer(Value):
    """A value inside of a transformation; `owner` is the interpreter that made it."""
    __slots__ = ("owner",)

    def settled(self):
        if not self.is_number:
            return self
        return PRIMITIVES["convert"](self, dtype=default_for(self.dtype, self.is_number))

    def as_number(self):
        """The value as a Python number where jit traces it, else in the dtype it settles to."""
        return PRIMITIVES["convert"](self, dtype=default_for(self.dtype))

    def beside_wide(self):
        """A number as the one that it is when it meets NumPy's float64: that is, WIDE under jit."""
        return self

    def known(self):
        """The value behind it that is no tracer: grad and jvp know it; None under jit and vmap."""
        return None

    def describe(self):
        """What is printed where there is no value: the type and the transformation."""
        return f"{self.type}<{self.owner.title}>"

    @boundary
    def __repr__(self):
        known = self.known()
        return self.describe() if known is None else repr(known)

    @boundary
    def __str__(self):
        known = self.known()
        return self.printed() if known is None else str(known)

    @boundary
    def __format__(self, form):
        known = self.known()
        return self.printed() if known is None else format(known, form)

    def printed(self):
        """`describe`, with one notice per line that there is no value to print."""
        place = source.place(source.here())
        where = (place.file, place.line) if place is not None else None
        notice(("printed", where),
               f"printed while {self.owner.title} traces: there are types only; "
               "fgrad.debug.print(\"{x}\", x=x) prints the values of every run")
        return self.describe()

    @boundary
    def __float__(self):
        return float(without_axes(self.number_for("float()"), self, "float"))

    @boundary
    def item(self, *index):
        """The Python number of an element; no gradient flows through it."""
        return item_of(self.number_for("item()"), self, index)

    @boundary
    def tolist(self):
        """The elements as nested lists of Python numbers; no gradient flows through them."""
        return self.number_for("tolist()").tolist()

    def number_for(self, what):
        """The value, with one notice per line that its derivative is lost there.

        NumPy's `A[0, 0] = x` asks for a float, and would keep a constant: that is refused.
        """
        frame = source.user_frame()
        if stores_into_array(frame):
            self.__array__()
        value = self.value_for(what)
        if self.dtype.kind in INEXACT_KINDS:
            line = frame.f_code.co_filename, frame.f_lineno
            notice(("constant", *line), f"{what} takes the number out of a value that is being "
                   "differentiated: no gradient flows through it")
        return value

    @boundary
    def __array__(self, dtype=None, copy=None):
        """Never: under grad the value is known, but its derivative would be lost without a word."""
        self.owner.refuse_numpy(self)
        if any(is_numpy_random(function) for function in source.called()):
            raise NumpyError("np.random cannot take a value that is being traced.",
                             fix="draw with fgrad.random: fgrad.random.normal(key, shape) * scale")
        last = ("or fgrad.pure_callback(function, result_type, x), to call NumPy when it runs"
                if self.known() is None else "or pass fgrad.stop_gradient(x)")
        raise NumpyError(
            "NumPy cannot hold a value that is being traced.",
            fix=["build with fgrad.numpy.array([…]) or stack", "set elements with a.at[i].set(x)",
                 last])

    @boundary
    def __hash__(self):
        raise ConcretizationError(
            f"hash() needs a value, but inside of {self.owner.title} there may be many or none.",
            given=self.describe(),
            fix=["a Python value for the key of a dict or the element of a set",
                 "static_argnames, if it is one"])

    def __copy__(self):
        return self                              # a copied owner would no longer be the owner

    def __deepcopy__(self, memo):
        return self

    @boundary
    def __reduce__(self):
        raise FgradError("a value that is being traced cannot be pickled.",
                         fix="return it from the function, and pickle the result")

    def origin(self):
        """Where it was made, in words, or None."""
        return None

    def leaked(self):
        """The error for using this value outside of its transformation."""
        name, kept = self.owner.title, source.holder(self)
        given = [str(self.type), self.origin(), kept and f"kept in {kept}"]
        call = name.removeprefix("a ")
        return LeakError(f"a value of {name} was used outside of the {call} call it belongs to.",
                         given=[*filter(None, given)],
                         fix="return it from the function instead of storing it")


def is_numpy_random(function):
    """Is the function one of np.random, or a method of one of its generators?"""
    home = getattr(function, "__self__", None)
    return (type(home).__module__ or "").startswith("numpy.random")


def stores_into_array(frame):
    """Is the frame executing `a[i] = x`?  NumPy then asks for a float: the derivative is lost."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "STORE_SUBSCR"


# ---------------------------------------------------------------------------- interpreters

class Interpreter:
    """Gives operations a meaning.  `process` may be called whichever interpreter is current.

    An interpreter knows its own tracers by identity (`a.owner is self`).  Every other value,
    tracers of other interpreters included, is a constant to it and is handed to `below` as it is.
    """
    below = None
    title = "a transformation"       # the user's word for it
    notes = False                    # does it note the user's lines?
    derives = False                  # are its tracers values that have a derivative?

    def process(self, op, args, params):
        """The result of the operation, as this interpreter sees it."""
        raise NotImplementedError

    def refuse_numpy(self, tracer):
        """Called before NumPy is refused the value of a tracer: the place to ask for a retrace."""

    def finish(self):
        """From now on everything goes below: a copied context may still hold this interpreter."""
        self.process = self.below.process

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
        except ValueError as error:
            # NumPy wraps what `__float__` raises in A[0, 0] = x
            if isinstance(error.__cause__, FgradError):
                raise error.__cause__ from None
            raise
        finally:
            _current.reset(token)


class Evaluate(Interpreter):
    """The bottom: NumPy, at once.

    It tries the operation's NumPy rule, and diagnoses only on failure.
    """
    title = "evaluation"

    def process(self, op, args, params):
        try:
            return op.evaluate(args, params)
        except AttributeError:
            return self.again(op, args, params)
        except FgradError:
            raise
        except (ValueError, TypeError, IndexError) as error:
            if any(p is BF16 for p in params.values()):
                return self.in_f32(op, args, params)
            better = self.diagnosed(error, op, args, params)
            if better is error:
                raise
            raise better from None

    def diagnosed(self, error, op, args, params):
        """What the type rule says of the arguments; NumPy's own error where that finds no fault."""
        try:
            op.type(*[a if a.__class__ in SCALARS else a.type for a in args], **params)
        except FgradError as better:
            return better
        return error

    def again(self, op, args, params):
        """The operation on arguments that were not Arrays; a tracer among them has leaked."""
        for a in args:
            if isinstance(a, Tracer):
                raise a.leaked() from None
        if any(getattr(a, "dtype", None) is BF16 for a in args):
            return self.in_f32(op, args, params)
        if all(isinstance(a, Array) for a in args):
            raise
        numbers = SCALARS if any(a.__class__ not in SCALARS for a in args) else ()
        values = [a if a.__class__ in numbers else as_value(a) for a in args]
        return op.evaluate(values, params)

    def in_f32(self, op, args, params):
        """The operation where bf16 takes part: computed in f32, and what is bf16 rounded."""
        args = [a if a.__class__ in SCALARS else as_value(a) for a in args]
        types = op.type(*[a if a.__class__ in SCALARS else a.type for a in args], **params)
        narrow = any(a.dtype is BF16 for a in args if a.__class__ not in SCALARS)
        wide = [BF16.type(a).item() if narrow and a.__class__ is float else
                Array(a.value_for(op.name)) if getattr(a, "dtype", None) is BF16 else a
                for a in args]
        out = op.evaluate(wide, widened(params))
        if not op.multiple:
            return array_in(out.np, BF16) if types.dtype is BF16 else out
        return tuple([array_in(x.np, BF16) if t.dtype is BF16 else x for x, t in zip(out, types)])


EVALUATE = Evaluate()
_current = ContextVar("fgrad_interpreter", default=EVALUATE)
current = _current.get
_axes = ContextVar("fgrad_axes", default=NOTHING)
bound_axes = _axes.get     # the names that vmap has bound: name → size


def with_axes(axes, function, *args):
    """function(*args) while these axis names, name → size, are bound."""
    token = _axes.set(axes)
    try:
        return function(*args)
    finally:
        _axes.reset(token)


def as_value(x):
    """x as a Value, without a copy where NumPy allows it: for arguments of operations.

    Python numbers settle to the default dtypes.  Raises ArgumentError for anything else.
    """
    if isinstance(x, Value):
        return x.settled() if x.is_number else x
    if x.__class__ in SCALARS:
        try:
            return Array(np.array(x, dtype_of_scalar(x)))
        except OverflowError:
            raise too_large(x, dtype_of_scalar(x)) from None
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype in SHORT:
        return Array(x)
    if x.__class__ is complex:
        return Array(np.array(x, default_complex()))
    return ATTACHED["array"](x)


def too_large(x, dtype):
    """The error for a Python number that a dtype does not hold."""
    return RangeError(f"the Python number {x} does not fit into {SHORT[dtype]}.")


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
    settles = True          # makes arrays of traced Python numbers
    transparent = False     # means the Program of its parameter `program`
    compares = 0            # compiled, it compares its arguments (1), or one with itself (2)
    keeps = False           # compiled, its results are in memory, even if they are read but once
    nested = False          # has Programs among its parameters, which it runs by itself
    effect = False          # does more than give its results: programs keep it, in its place
    pullback = None         # derived, see interpreters/backward.py
    pull = None             # without one, compiled code calls the NumPy rule
    into = None             # into(outs, *args, **params): the NumPy rule, written to given memory
    prepare = None          # prepare(*types, ahead=False, **params): before compiled code calls it;
                            # ahead: another thread may begin
    dtypes = DTYPES         # what its (first) argument may be; used by the law tests

    def __init__(self, name):
        self.name = self.__name__ = name
        PRIMITIVES[name] = self

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return operation, (self.name,)

    def __call__(self, *args, **params):
        return _current.get().process(self, args, params)

    def evaluate(self, args, params):
        """The value, by the `numpy` rule."""
        if self.multiple:
            return tuple([Array(x) for x in self.numpy(*[a.np for a in args], **params)])
        if len(args) == 1:                       # written out: a comprehension costs 0.2 µs
            return Array(self.numpy(args[0].np, **params))
        if len(args) == 2:
            return Array(self.numpy(args[0].np, args[1].np, **params))
        return Array(self.numpy(*[a.np for a in args], **params))

    def jvp(self, out, args, tangents, /, **params):
        """The tangent of `out`; a tangent None is zero.

        Here: of an operation that is linear in each of `linear_in`.
        Raises MissingRuleError for one that is linear in none.
        """
        if not self.linear_in:
            raise MissingRuleError(
                f"{self.name} has no derivative: it states neither jvp nor linear_in.",
                fix=["give it a rule jvp(self, out, args, tangents, /, **params)",
                     "or differentiable = False, if its derivative is zero"])
        total = None
        for i, t in enumerate(tangents):
            if t is not None and i in self.linear_in:
                part = self(*args[:i], t, *args[i + 1:], **params)
                total = part if total is None else PRIMITIVES["add"](total, part)
        return total

    def batch(self, dims, /, *args, **params):
        """(out, its batch axis).  Here: MissingRuleError."""
        raise MissingRuleError(f"{self.name} has no rule for vmap: it does not state batch.",
                               fix="give it a rule batch(self, dims, *args, **params)")

    def forward(self, args, tangents, params):
        """(out, tangent): by `jvp`, unless the operation needs both together."""
        out = self(*args, **params)
        return out, self.jvp(out, args, tangents, **params)

    def linearize(self, below, args, active, params):
        """(outs, row) of an operation with several results; see interpreters/partial.py."""
        outs = below.process(self, args, params)
        return outs, (self, outs, args, params, active)

    depends = None             # (mask, params) → per result: can it depend on the masked arguments?
    reversible = True          # has each of its results a reverse derivative?

    def axis_names(self, params):
        """The names of mapped axes that it, or a Program in its parameters, speaks of."""
        return ()

    def batch_over(self, axis, dims, args, params):
        """(out, dims) over `axis`, an interpreters.batch.Axis: by `batch`, unless its name matters.

        Every entry of dims may be None where `axis_names` has the name of the axis.
        """
        return self.batch(dims, *args, **params)

    def record(self, outs, args, active, params):
        """The row of an operation met where it must be linear; see interpreters/backward.py."""
        return self, outs, args, params, active
