"""Elementwise functions that are one operation each: a row per function.

A row makes a function of NumPy's name from an operation: `floats` converts integers first, `keeps`
keeps the dtype, `pairs` and `float_pairs` promote and broadcast two arguments.  What needs several
operations is in `elementwise.py`.
"""

from __future__ import annotations

from .. import ops
from ..core import NOTHING, Value, _current, as_value
from ..types import INEXACT_KINDS
from .complex import direction, is_complex
from .promotion import as_bool, binary, binary_float, floating, unary


def named(function, name, doc):
    """The function, with its public name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


FLOATS_FIRST = "Integers and bools become floats first."
TOGETHER = """The arguments are promoted to one dtype and broadcast to one shape.
    Raises ShapeError when they do not fit."""


def floats(name, op, doc):
    """A function of one argument on floats; integers and bools become floats first."""
    def function(x, /):
        if isinstance(x, Value) and x.dtype.kind in INEXACT_KINDS:
            return _current.get().process(op, (x,), NOTHING)
        return floating(op, x)
    return named(function, name, f"{doc}   f[*s] → f[*s]\n\n    {FLOATS_FIRST}\n    ")


def keeps(name, op, doc):
    """A function of one argument that keeps the dtype."""
    def function(x, /):
        return unary(op, x)
    return named(function, name, f"{doc}   n[*s] → n[*s]\n    ")


def pairs(name, op, doc):
    """A function of two arguments that promotes and broadcasts them."""
    def function(x1, x2, /):
        return binary(op, x1, x2)
    return named(function, name, f"{doc}   n[*a] n[*b] → n[*broadcast]\n\n    {TOGETHER}\n    ")


def float_pairs(name, op, doc):
    """Like `pairs`, on floats: integers and bools become floats first."""
    def function(x1, x2, /):
        return binary_float(op, x1, x2)
    return named(function, name, f"{doc}   f[*a] f[*b] → f[*broadcast]\n\n    {TOGETHER}\n    ")


def truths(name, op, doc):
    """A function of two arguments taken as bools: true where they are not 0."""
    def function(x1, x2, /):
        return binary(op, as_bool(x1), as_bool(x2))
    return named(function, name, f"{doc}   n[*a] n[*b] → bool[*broadcast]\n    ")


# ---------------------------------------------------------------------------- arithmetic

add = pairs("add", ops.add, "x1 + x2; of bools, or.")
subtract = pairs("subtract", ops.sub, "x1 - x2; not defined for bools.")
multiply = pairs("multiply", ops.mul, "x1 x2; of bools, and.")
divide = float_pairs("divide", ops.div, "x1 / x2, always of floats.")
maximum = pairs("maximum", ops.max, "The larger one, or NaN; ties share the derivative.")
minimum = pairs("minimum", ops.min, "The smaller one, or NaN; ties share the derivative.")
arctan2 = float_pairs("arctan2", ops.atan2, "The angle of the point (x2, x1), in radians.")
fmod = pairs("fmod", ops.rem, "The remainder with the sign of x1, as in C.")
negative = keeps("negative", ops.neg, "-x.")
square = keeps("square", ops.square, "x².")


def sign(x, /):
    """-1, 0 or 1, as x is negative, zero or positive; if complex x / |x|.   n[*s] → n[*s]"""
    x = as_value(x)
    return direction(x) if is_complex(x) else unary(ops.sign, x)


# ---------------------------------------------------------------------------- floats

sqrt = floats("sqrt", ops.sqrt, "The square root; NaN for negative x.")
exp = floats("exp", ops.exp, "eˣ.")
expm1 = floats("expm1", ops.expm1, "eˣ - 1, accurate near 0.")
log = floats("log", ops.log, "The natural logarithm; -inf at 0, NaN below.")
log1p = floats("log1p", ops.log1p, "log(1 + x), accurate near 0.")
sin = floats("sin", ops.sin, "The sine of x in radians.")
cos = floats("cos", ops.cos, "The cosine of x in radians.")
tan = floats("tan", ops.tan, "The tangent of x in radians.")
arcsin = floats("arcsin", ops.asin, "The angle whose sine is x; NaN outside of [-1, 1].")
arccos = floats("arccos", ops.acos, "The angle whose cosine is x; NaN outside of [-1, 1].")
arctan = floats("arctan", ops.atan, "The angle whose tangent is x.")
sinh = floats("sinh", ops.sinh, "The hyperbolic sine.")
cosh = floats("cosh", ops.cosh, "The hyperbolic cosine.")
tanh = floats("tanh", ops.tanh, "The hyperbolic tangent.")
rint = floats("rint", ops.round, "The nearest integer; halves go to the even one.")

# ---------------------------------------------------------------------------- truth and bits

equal = pairs("equal", ops.eq, "x1 == x2, as bools.")
not_equal = pairs("not_equal", ops.ne, "x1 != x2, as bools.")
less = pairs("less", ops.lt, "x1 < x2, as bools.")
less_equal = pairs("less_equal", ops.le, "x1 <= x2, as bools.")
greater = pairs("greater", ops.gt, "x1 > x2, as bools.")
greater_equal = pairs("greater_equal", ops.ge, "x1 >= x2, as bools.")
logical_and = truths("logical_and", ops.and_, "Are both true?")
logical_or = truths("logical_or", ops.or_, "Is one of them true?")
logical_xor = truths("logical_xor", ops.xor, "Is exactly one of them true?")
bitwise_and = pairs("bitwise_and", ops.and_, "And, bit by bit; of integers or bools.")
bitwise_or = pairs("bitwise_or", ops.or_, "Or, bit by bit; of integers or bools.")
bitwise_xor = pairs("bitwise_xor", ops.xor, "Exclusive or, bit by bit; of integers or bools.")
left_shift = pairs("left_shift", ops.shl, "x1 · 2^x2, of integers.")
right_shift = pairs("right_shift", ops.shr, "⌊x1 / 2^x2⌋, of integers.")
invert = keeps("invert", ops.not_, "Every bit turned around; of bools, not.")
