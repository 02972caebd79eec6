"""Elementwise functions that are one operation each: a row per function.

A row makes a function of NumPy's name from an operation, a sentence and an example: `floats`
converts integers first, `keeps` keeps the dtype, `pairs` and `float_pairs` promote and broadcast
two arguments.  What needs several operations is in `elementwise.py`.
"""

from __future__ import annotations

from .. import ops
from ..core import NOTHING, Value, _current, as_value
from ..types import INEXACT_KINDS
from .complex import direction, is_complex
from .promotion import as_bool, as_number, binary, binary_float, floating, unary


def named(function, name, doc, example):
    """The function, with its public name and docstring; example: a call and what it prints, or ().
    """
    function.__name__ = function.__qualname__ = name
    if example:
        call, printed = example
        doc += f"\n    >>> import fgrad.numpy as fnp\n    >>> {call}\n    {printed}\n"
    function.__doc__ = f"{doc}    "
    return function


FLOATS_FIRST = "Integers and bools become floats first."
TOGETHER = """The arguments are promoted to one dtype and broadcast to one shape.
    Raises ShapeError when they do not fit."""


def floats(name, op, doc, *example):
    """A function of one argument on floats; integers and bools become floats first."""
    def function(x, /):
        if isinstance(x, Value) and x.dtype.kind in INEXACT_KINDS:
            return _current.get().process(op, (x,), NOTHING)
        return floating(op, x)
    return named(function, name, f"{doc}   f[*s] → f[*s]\n\n    {FLOATS_FIRST}\n", example)


def keeps(name, op, doc, *example):
    """A function of one argument that keeps the dtype."""
    def function(x, /):
        return unary(op, x)
    return named(function, name, f"{doc}   n[*s] → n[*s]\n", example)


def pairs(name, op, doc, *example):
    """A function of two arguments that promotes and broadcasts them."""
    def function(x1, x2, /):
        return binary(op, x1, x2)
    return named(function, name, f"{doc}   n[*a] n[*b] → n[*broadcast]\n\n    {TOGETHER}\n",
                 example)


def float_pairs(name, op, doc, *example):
    """Like `pairs`, on floats: integers and bools become floats first."""
    def function(x1, x2, /):
        return binary_float(op, x1, x2)
    return named(function, name, f"{doc}   f[*a] f[*b] → f[*broadcast]\n\n    {TOGETHER}\n",
                 example)


def truths(name, op, doc, *example):
    """A function of two arguments taken as bools: true where they are not 0."""
    def function(x1, x2, /):
        return binary(op, as_bool(x1), as_bool(x2))
    return named(function, name, f"{doc}   n[*a] n[*b] → bool[*broadcast]\n", example)


# ---------------------------------------------------------------------------- arithmetic

add = pairs("add", ops.add, "x1 + x2; of bools, or.",
            "fnp.add([1, 2], [[10], [20]]).tolist()", "[[11, 12], [21, 22]]")
subtract = pairs("subtract", ops.sub, "x1 - x2; not defined for bools.",
                 "fnp.subtract([3, 4], 1)", "Array([2, 3], i32[2])")
multiply = pairs("multiply", ops.mul, "x1 x2; of bools, and.",
                 "fnp.multiply([1, 2], 0.5)", "Array([0.5, 1. ], f32[2])")
divide = float_pairs("divide", ops.div, "x1 / x2, always of floats.",
                     "fnp.divide([3, 4], 2)", "Array([1.5, 2. ], f32[2])")
maximum = pairs("maximum", ops.max, "The larger one, or NaN; ties share the derivative.",
                "fnp.maximum([1.0, 5.0], 3.0)", "Array([3., 5.], f32[2])")
minimum = pairs("minimum", ops.min, "The smaller one, or NaN; ties share the derivative.",
                "fnp.minimum([1.0, 5.0], 3.0)", "Array([1., 3.], f32[2])")
arctan2 = float_pairs("arctan2", ops.atan2, "The angle of the point (x2, x1), in radians.",
                      "fnp.arctan2(1.0, -1.0) / fnp.pi", "Array(0.75, f32[])")
negative = keeps("negative", ops.neg, "-x.",
                 "fnp.negative([1, -2])", "Array([-1,  2], i32[2])")


def square(x, /):
    """x²; bools become ints.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.square([-3, 2])
    Array([9, 4], i32[2])
    """
    known = isinstance(x, Value) and x.dtype.kind != "b"
    return unary(ops.square, x if known else as_number(x))


def sign(x, /):
    """-1, 0 or 1, as x is negative, zero or positive; if complex x / |x|.   n[*s] → n[*s]

    >>> import fgrad.numpy as fnp
    >>> fnp.sign([-3.0, 0.0, 2.0])
    Array([-1.,  0.,  1.], f32[3])
    """
    x = as_value(x)
    return direction(x) if is_complex(x) else unary(ops.sign, x)


# ---------------------------------------------------------------------------- floats

sqrt = floats("sqrt", ops.sqrt, "The square root; NaN for negative x.",
              "fnp.sqrt([4, 9])", "Array([2., 3.], f32[2])")
exp = floats("exp", ops.exp, "eˣ.",
             "fnp.exp([0.0, -fnp.inf])", "Array([1., 0.], f32[2])")
expm1 = floats("expm1", ops.expm1, "eˣ - 1, accurate near 0.",
               "fnp.expm1([0.0, -fnp.inf])", "Array([ 0., -1.], f32[2])")
log = floats("log", ops.log, "The natural logarithm; -inf at 0, NaN below.",
             "fnp.log([1, 0])", "Array([  0., -inf], f32[2])")
log1p = floats("log1p", ops.log1p, "log(1 + x), accurate near 0.",
               "fnp.log1p([0.0, -1.0])", "Array([  0., -inf], f32[2])")
sin = floats("sin", ops.sin, "The sine of x in radians.",
             "fnp.sin(0.0)", "Array(0., f32[])")
cos = floats("cos", ops.cos, "The cosine of x in radians.",
             "fnp.cos(0.0)", "Array(1., f32[])")
tan = floats("tan", ops.tan, "The tangent of x in radians.",
             "fnp.tan(0.0)", "Array(0., f32[])")
arcsin = floats("arcsin", ops.asin, "The angle whose sine is x; NaN outside of [-1, 1].",
                "fnp.arcsin([0.0, 2.0])", "Array([ 0., nan], f32[2])")
arccos = floats("arccos", ops.acos, "The angle whose cosine is x; NaN outside of [-1, 1].",
                "fnp.arccos([1.0, 2.0])", "Array([ 0., nan], f32[2])")
arctan = floats("arctan", ops.atan, "The angle whose tangent is x.",
                "fnp.arctan(fnp.inf) / fnp.pi", "Array(0.5, f32[])")
sinh = floats("sinh", ops.sinh, "The hyperbolic sine.",
              "fnp.sinh(0.0)", "Array(0., f32[])")
cosh = floats("cosh", ops.cosh, "The hyperbolic cosine.",
              "fnp.cosh(0.0)", "Array(1., f32[])")
tanh = floats("tanh", ops.tanh, "The hyperbolic tangent.",
              "fnp.tanh([0.0, 100.0])", "Array([0., 1.], f32[2])")

# ---------------------------------------------------------------------------- truth and bits

equal = pairs("equal", ops.eq, "x1 == x2, as bools.",
              "fnp.equal([1, 2], 2)", "Array([False,  True], bool[2])")
not_equal = pairs("not_equal", ops.ne, "x1 != x2, as bools.",
                  "fnp.not_equal([1, 2], 2)", "Array([ True, False], bool[2])")
less = pairs("less", ops.lt, "x1 < x2, as bools.",
             "fnp.less([1, 2], 2)", "Array([ True, False], bool[2])")
less_equal = pairs("less_equal", ops.le, "x1 <= x2, as bools.",
                   "fnp.less_equal([1, 2], 2)", "Array([ True,  True], bool[2])")
greater = pairs("greater", ops.gt, "x1 > x2, as bools.",
                "fnp.greater([1, 2], 1)", "Array([False,  True], bool[2])")
greater_equal = pairs("greater_equal", ops.ge, "x1 >= x2, as bools.",
                      "fnp.greater_equal([1, 2], 2)", "Array([False,  True], bool[2])")
logical_and = truths("logical_and", ops.and_, "Are both true?",
                     "fnp.logical_and([0, 1, 2], 3)", "Array([False,  True,  True], bool[3])")
logical_or = truths("logical_or", ops.or_, "Is one of them true?",
                    "fnp.logical_or([0, 1], 0)", "Array([False,  True], bool[2])")
logical_xor = truths("logical_xor", ops.xor, "Is exactly one of them true?",
                     "fnp.logical_xor([0, 1], 2)", "Array([ True, False], bool[2])")
bitwise_and = pairs("bitwise_and", ops.and_, "And, bit by bit; of integers or bools.",
                    "fnp.bitwise_and(6, 3)", "Array(2, i32[])")
bitwise_or = pairs("bitwise_or", ops.or_, "Or, bit by bit; of integers or bools.",
                   "fnp.bitwise_or(6, 3)", "Array(7, i32[])")
bitwise_xor = pairs("bitwise_xor", ops.xor, "Exclusive or, bit by bit; of integers or bools.",
                    "fnp.bitwise_xor(6, 3)", "Array(5, i32[])")
left_shift = pairs("left_shift", ops.shl, "x1 · 2^x2, of integers.",
                   "fnp.left_shift(3, 2)", "Array(12, i32[])")
right_shift = pairs("right_shift", ops.shr, "⌊x1 / 2^x2⌋, of integers.",
                    "fnp.right_shift(-5, 1)", "Array(-3, i32[])")
invert = keeps("invert", ops.not_, "Every bit turned around; of bools, not.",
               "fnp.invert([0, 5])", "Array([-1, -6], i32[2])")
