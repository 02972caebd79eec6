"""Elementwise operations: one row each, with the partial derivatives of a calculus book.

`Elementwise` derives type, jvp, batch and pull from the row.  NumPy rules come from
`scalar.INSTRUCTIONS` unless the row states one.  Relies on `core` and `scalar`; nearly every other
rule relies on these operations.  Rules call operations directly, not operators: it is faster, and
operators are attached later, by `fgrad.numpy`.
"""

from __future__ import annotations

import builtins
import math

import numpy as np

from .. import scalar
from ..bf16 import BF16
from ..core import NOTHING, Array, Primitive, _current
from ..errors import ArgumentError, DtypeError, RangeError, ShapeError, shorten
from ..types import (
    ARITHMETIC, BOOL, DTYPES, EVERY, F16, F32, F64, FLOATS, INEXACT, INEXACT_KINDS, INTS, NUMBERS,
    SCALARS, SHORT, ArrayType)
from . import move
from .silence import quiet

LITERALS = {}              # (class, number, dtype) → 0-d array; written by `literal`, at most 4096


def literal(value, dtype):
    """The Python number as a 0-d array: NumPy takes 0.5 µs longer over a Python number.

    Raises RangeError when an int does not fit, DtypeError for a float beside integers.
    """
    key = value.__class__, value, dtype          # with the class, since 1 == 1.0 == True
    found = LITERALS.get(key)
    if found is None:
        check_number(value, dtype)
        found = number_array(value, dtype)
        if value != 0 and len(LITERALS) < 4096:  # 0.0 == -0.0: these two must not share an entry
            LITERALS[key] = found
    return found


@quiet
def number_array(value, dtype):
    """value as a 0-d array of dtype."""
    try:
        return np.array(value, F32 if dtype is BF16 else dtype)
    except OverflowError:
        raise RangeError(
            f"the Python number {value} does not fit into {SHORT[dtype]}.",
            fix="convert the array to a wider dtype first") from None


def check_number(value, dtype):
    """Raises DtypeError when a Python number of this kind cannot stand beside dtype."""
    kinds = {bool: "biufc", int: "iufc", float: "fc"}[value.__class__]
    if dtype.kind not in kinds:
        raise DtypeError(
            f"the Python number {value!r} cannot stand beside an array of {SHORT[dtype]}.",
            fix="convert the array first, for example x.astype(float)")


ALIKE = "Element by element, without promotion: arrays have one shape and dtype"
TAKEN = ";\n    a Python number beside them takes both"


class Elementwise(Primitive):
    """A row: result element = function of the elements at the same index.

    doc: what is true of the result.  dtypes: of the arguments, which have equal types; a Python
    number may stand for an argument, and takes the shape and the dtype of the others.  numpy: by
    default the instruction's.  scalar: the instruction, or a function of nodes.  partials: per
    argument a function of (out, *args), the literal 1 or -1, or None where the derivative is zero.
    result: the result's dtype, if not the arguments'.
    """
    numbers = True

    def __init__(self, name, dtypes, doc=None, *, numpy=None, scalar=None, partials=None,
                 result=None):
        super().__init__(name)
        if doc is not None:
            self.__doc__ = f"{doc}\n\n    {ALIKE}{TAKEN if self.numbers else ''}.\n    "
        self.dtypes, self.partials, self.result = dtypes, partials, result
        self.kinds = "".join({d.kind for d in dtypes})
        self.scalar = scalar or name
        self.numpy = numpy or numpy_of(self.scalar, self.kinds)
        floats = None if numpy else floats_of(self.scalar)
        self.rules = {d: floats if floats and d.kind in INEXACT_KINDS else self.numpy
                      for d in dtypes if d is not BF16}
        self.differentiable = partials is not None

    def __call__(self, *args):                   # a row has no parameters: 0.1 µs less
        try:
            return _current.get().process(self, args, NOTHING)
        except BaseException as error:           # users call rows by their names in lax
            shorten(error)
            raise

    def evaluate(self, args, params):
        """The value.  Types are compared here, since NumPy would promote and broadcast."""
        if len(args) == 1:
            (x,) = args
            a = x.np
            if x.dtype not in self.rules:
                self.type(x.type)
            return Array(self.rules[x.dtype](a))
        if len(args) == 2:
            x, y = args
            if x.__class__ is y.__class__:
                a, b = x.np, y.np
            elif y.__class__ in SCALARS:
                a, b, y = x.np, literal(y, x.dtype), x
            elif x.__class__ in SCALARS:
                a, b, x = literal(x, y.dtype), y.np, y
            else:
                a, b = x.np, y.np
            if x.shape != y.shape or x.dtype != y.dtype or x.dtype not in self.rules:
                self.type(x.type, y.type)
            return Array(self.rules[x.dtype](a, b))
        return self.evaluate_many(args)

    def evaluate_many(self, args):
        """The value for three arguments or more; the type's rule refuses a number that is wrong."""
        self.type(*[a if a.__class__ in SCALARS else a.type for a in args])
        like = next(a for a in args if a.__class__ not in SCALARS)
        values = [literal(a, like.dtype) if a.__class__ in SCALARS else a.np for a in args]
        return Array(self.numpy(*[np.broadcast_to(v, like.shape) for v in values]))

    def type(self, *types):
        arrays = [t for t in types if t.__class__ is ArrayType]
        if not arrays:
            raise ArgumentError(f"{self.name} needs at least one array.")
        first = arrays[0]
        for t in arrays:
            if t is not first:
                raise self.disagreement(types)
        if first.dtype.kind not in self.kinds:
            raise DtypeError(f"{self.name} is not defined for {SHORT[first.dtype]}.",
                             given=str(first), expected=" ".join(SHORT[d] for d in self.dtypes),
                             fix="convert with astype first")
        for t in types:
            if t.__class__ is not ArrayType:
                literal(t, first.dtype)
        return ArrayType(self.result or first.dtype, first.shape)

    def disagreement(self, types):
        """The error for arguments of different types."""
        shapes = {t.shape for t in types if t.__class__ is ArrayType}
        given = [f"argument {k + 1}: {t}" for k, t in enumerate(types)]
        if len(shapes) > 1:
            return ShapeError(f"{self.name} needs arguments of one shape.", given=given,
                              expected="equal shapes: operations do not broadcast by themselves",
                              fix="use fgrad.numpy, or broadcast first")
        return DtypeError(f"{self.name} needs arguments of one dtype.", given=given,
                          fix="convert with astype first")

    def scale(self, t, i, out, args):
        """t times the partial derivative by argument i; None where that is zero."""
        partial = self.partials[i]
        if partial is None:
            return None
        if partial.__class__ is int:
            return t if partial == 1 else neg(t)
        return _current.get().process(mul, (t, partial(out, *args)), NOTHING)

    def jvp(self, out, args, tangents):
        total = None
        for i, t in enumerate(tangents):
            if t is not None:
                total = move.plus(total, self.scale(t, i, out, args))
        return total

    def pullback(self, ct, out, args, active, params):
        """Per argument its cotangent, or None."""
        if len(args) == 1:
            return (self.scale(ct, 0, out, args),)
        return [None if row < 0 else self.scale(ct, i, out, args) for i, row in enumerate(active)]

    def batch(self, dims, *args):
        d = next(d for d in dims if d is not None)
        if all(e == d or a.__class__ in SCALARS for e, a in zip(dims, args)):
            return self(*args), d
        n = move.size_of(args, dims)
        return self(*[a if a.__class__ in SCALARS else move.to_front(a, d, n)
                      for a, d in zip(args, dims)]), 0

    def pull(self, *args):
        dtype = next(a.dtype for a in args if a.__class__ not in SCALARS)
        build = self.scalar if callable(self.scalar) else instruction(self.scalar)
        read = element if self.result is None else exact_element
        return lambda i: build(*[read(a, i, dtype) for a in args])


def element(a, i, dtype):
    """The node of an argument at an index; a Python number is a constant."""
    return scalar.const(a, dtype) if a.__class__ in SCALARS else a(i)


def exact_element(a, i, dtype):
    """The same, as it is outside of its dtype: what is computed in more digits is rounded."""
    return scalar.cast(element(a, i, dtype), dtype)


def instruction(name):
    """The function of nodes that applies an instruction."""
    return lambda *nodes: scalar.apply(name, *nodes)


def numpy_of(name, kinds):
    """The NumPy function of an instruction; quiet where floats make inf and NaN."""
    function = scalar.INSTRUCTIONS[name].numpy
    return quiet(function) if "f" in kinds and not scalar.INSTRUCTIONS[name].logical else function


def floats_of(name):
    """The NumPy function of an instruction for arrays of floats, where that is another; quiet."""
    own = scalar.INSTRUCTIONS[name].floats
    return own and quiet(own)


# ---------------------------------------------------------------------------- parts of derivatives

def reciprocal(y):
    """1 / y, for a Python number too."""
    if y.__class__ in SCALARS:
        return 1 / y if y else math.copysign(math.inf, y)
    return div(1.0, y)


def hit(x, out):
    """1 where x is the result, else 0."""
    return convert(eq(x, out), dtype=out.dtype)


def share_numpy(x, y):
    """How much of the larger of x and y is x: 1, 0, or a half where they tie."""
    return np.where(x > y, 1.0, np.where(x == y, 0.5, 0.0)).astype(np.result_type(x, y))


def share_node(x, y):
    """The same of nodes."""
    apply = scalar.apply
    none, half, whole = [scalar.const(v, x.dtype) for v in (0, 0.5, 1)]
    tie = apply("select", apply("eq", x, y), half, none)
    return apply("select", apply("gt", x, y), whole, tie)


def one_where(condition, like):
    """1 where the condition holds, else 0, in the dtype of `like`."""
    return convert(condition, dtype=like.dtype)


def pow_by_x(out, x, y):
    """y xʸ⁻¹, which is 0 and not 0 · inf for y = 0."""
    if y.__class__ in SCALARS:
        return mul(y, pow(x, y - 1)) if y else 0.0
    return mul(y, pow(x, select(eq(y, 0.0), 1.0, sub(y, 1.0))))


def pow_by_y(out, x, y):
    """xʸ log x, which is 0 where x is 0, and NaN for negative x: no real y varies there."""
    if x.__class__ in SCALARS:
        return mul(out, math.log(x) if x > 0 else 0.0 if x == 0 else math.nan)
    return mul(out, log(select(eq(x, 0.0), 1.0, x)))


def over_root(x):
    """1 / √(1 - x²), of a complex number on the side of its cuts that the signs of zeros tell."""
    if x.dtype.kind != "c":
        return rsqrt(sub(1.0, square(x)))
    return div(1.0, mul(*[sqrt(neg(sub(y, 1.0))) for y in (x, neg(x))]))


def negative_truncated_quotient(out, x, y):
    """-trunc(x / y), since rem(x, y) = x - y trunc(x / y)."""
    q = div(x, y)
    return neg(mul(sign(q), floor(abs(q))))


def squared_length(x, y):
    """x² + y²; one of them may be a Python number."""
    squares = [float(v) ** 2 if v.__class__ in SCALARS else square(v) for v in (x, y)]
    return add(*squares)


def logistic_of_difference(x, y):
    """exp(x) / (exp(x) + exp(y)): a half where they are equal, infinite ones too.

    Only those are replaced by a constant: elsewhere the difference has a derivative.
    """
    apart = sub(x, y)
    return logistic(select(and_(eq(x, y), not_(is_finite(apart))), 0.0, apart))


def larger_and_rest(x, y):
    """The node of max(x, y) + log(1 + exp(-|x - y|)), where equal ones have the difference 0."""
    apply = scalar.apply
    apart = apply("neg", apply("abs", apply("sub", x, y)))
    apart = apply("select", apply("eq", x, y), scalar.const(0, x.dtype), apart)
    return apply("add", apply("max", x, y), apply("log1p", apply("exp", apart)))


def scaled_length(x, y):
    """The node of √(x² + y²), of numbers times a power of two where squares overflow or vanish."""
    apply, dtype = scalar.apply, x.dtype
    far, near, power = (500, -450, 600) if dtype == F64 else (60, -50, 90)
    size, inf = [apply("abs", v) for v in (x, y)], scalar.const(math.inf, dtype)
    most = apply("max", *size)

    def factor(power):
        numbers = [scalar.const(2.0**k, dtype) for k in (far, near, -power, power, 0)]
        above, below = (apply(how, most, c) for how, c in zip(("gt", "lt"), numbers))
        return apply("select", above, numbers[2], apply("select", below, *numbers[3:]))
    squares = [apply("mul", v, v) for v in (apply("mul", v, factor(power)) for v in size)]
    out = apply("mul", apply("sqrt", apply("add", *squares)), factor(-power))
    infinite = apply("or", *[apply("eq", v, inf) for v in size])
    return apply("select", infinite, inf, out)


def signed_root(x):
    """The node of the cube root: that of |x|, with the sign of x.

    A power r = |x|^(1/3) is as wrong as 1/3 is, times the exponent; a step of Newton's method, to
    r + (|x| / r² - r) / 3, mends it.  0 and infinity have no such step.
    """
    third, size = scalar.const(1 / 3, x.dtype), scalar.apply("abs", x)
    root = scalar.apply("pow", size, third)
    quotient = scalar.apply("div", size, scalar.apply("mul", root, root))
    step = scalar.apply("mul", scalar.apply("sub", quotient, root), third)
    better = scalar.apply("add", root, step)
    finite = scalar.apply("eq", step, step)
    return scalar.apply("mul", scalar.apply("sign", x),
                        scalar.apply("select", finite, better, root))


def of_length(out, x):
    """x / out, which is 0 where both are."""
    return div(x, select(eq(out, 0.0), 1.0, out))


def compare(name, sign, dtypes=DTYPES):
    """The row of a comparison."""
    made = Elementwise(name, dtypes, f"x {sign} y, as bools.", result=BOOL)
    made.compares = 1
    return made


# ---------------------------------------------------------------------------- arithmetic

add = Elementwise("add", EVERY, "x + y; of bools, or.", partials=[1, 1])
sub = Elementwise("sub", ARITHMETIC, "x - y.", partials=[1, -1])
mul = Elementwise("mul", EVERY, "x y; of bools, and.",
                  partials=[lambda out, x, y: y,
                            lambda out, x, y: x])
div = Elementwise("div", ARITHMETIC, "x / y; of integers, towards zero.",
                  partials=[lambda out, x, y: reciprocal(y),
                            lambda out, x, y: neg(mul(out, reciprocal(y)))])
rem = Elementwise("rem", NUMBERS, "The remainder of x / y, with the sign of x.",
                  partials=[1, negative_truncated_quotient])
neg = Elementwise("neg", ARITHMETIC, "-x.", partials=[-1])
abs = Elementwise("abs", NUMBERS, "|x|.", partials=[lambda out, x: sign(x)])
sign = Elementwise("sign", NUMBERS, "-1, 0 or 1, as x is negative, zero or positive.",
                   partials=[None])
share = Elementwise("share", FLOATS, numpy=share_numpy, scalar=share_node,
                    partials=[None, None])
share.compares = 1
max = Elementwise("max", DTYPES, "The larger of x and y, or NaN; ties share the derivative.",
                  partials=[lambda out, x, y: share(x, y),
                            lambda out, x, y: share(y, x)])
min = Elementwise("min", DTYPES, "The smaller of x and y, or NaN; ties share the derivative.",
                  partials=[lambda out, x, y: share(y, x),
                            lambda out, x, y: share(x, y)])
floor = Elementwise("floor", FLOATS, "The nearest whole number that is not above x.",
                    partials=[None])
ceil = Elementwise("ceil", FLOATS, "The nearest whole number that is not below x.", partials=[None])
round = Elementwise("round", FLOATS, "The nearest whole number; halves go to the even one.",
                    partials=[None])
square = Elementwise("square", ARITHMETIC, "x².", numpy=quiet(np.square),
                     scalar=lambda x: scalar.apply("mul", x, x),
                     partials=[lambda out, x: add(x, x)])
clamp = Elementwise("clamp", NUMBERS, "x, held between lo and hi.",     # (lo, x, hi)
                    numpy=lambda lo, x, hi: np.minimum(np.maximum(x, lo), hi),
                    scalar=lambda lo, x, hi: scalar.apply("min", scalar.apply("max", x, lo), hi),
                    partials=[lambda out, lo, x, hi: one_where(and_(lt(x, lo), le(lo, hi)), out),
                              lambda out, lo, x, hi: one_where(and_(le(lo, x), le(x, hi)), out),
                              lambda out, lo, x, hi: one_where(or_(gt(x, hi), gt(lo, hi)), out)])

# ---------------------------------------------------------------------------- powers, exponentials

sqrt = Elementwise("sqrt", INEXACT, "The square root; NaN for negative x.",
                   partials=[lambda out, x: div(0.5, out)])
hypot = Elementwise("hypot", FLOATS, "√(x² + y²), without overflow.",
                    numpy=quiet(np.hypot), scalar=scaled_length,
                    partials=[lambda out, x, y: of_length(out, x),
                              lambda out, x, y: of_length(out, y)])
cbrt = Elementwise("cbrt", FLOATS, "The cube root, of negative numbers too.",
                   numpy=quiet(np.cbrt), scalar=signed_root,
                   partials=[lambda out, x: div(1 / 3, square(out))])
rsqrt = Elementwise("rsqrt", INEXACT, "1 / √x.", partials=[lambda out, x: mul(-0.5, div(out, x))])
exp = Elementwise("exp", INEXACT, "eˣ.", partials=[lambda out, x: out])
expm1 = Elementwise("expm1", INEXACT, "eˣ - 1, accurate near 0.",
                    partials=[lambda out, x: add(out, 1.0)])
log = Elementwise("log", INEXACT, "The natural logarithm; -inf at 0, NaN below.",
                  partials=[lambda out, x: div(1.0, x)])
log1p = Elementwise("log1p", INEXACT, "log(1 + x), accurate near 0.",
                    partials=[lambda out, x: div(1.0, add(x, 1.0))])
pow = Elementwise("pow", INEXACT, "xʸ; NaN for negative x unless y is whole.",
                  partials=[pow_by_x, pow_by_y])
logistic = Elementwise("logistic", INEXACT, "1 / (1 + e⁻ˣ).",
                       partials=[lambda out, x: mul(out, sub(1.0, out))])
logaddexp = Elementwise("logaddexp", FLOATS, "log(eˣ + eʸ), without overflow.",
                        numpy=quiet(np.logaddexp), scalar=larger_and_rest,
                        partials=[lambda out, x, y: logistic_of_difference(x, y),
                                  lambda out, x, y: logistic_of_difference(y, x)])
erf = Elementwise("erf", FLOATS, "The error function, 2/√π ∫₀ˣ exp(-t²) dt.",
                  partials=[lambda out, x: mul(2 / math.sqrt(math.pi), exp(neg(square(x))))])

# ---------------------------------------------------------------------------- circle and hyperbola

sin = Elementwise("sin", INEXACT, "The sine of x in radians.", partials=[lambda out, x: cos(x)])
cos = Elementwise("cos", INEXACT, "The cosine of x in radians.",
                  partials=[lambda out, x: neg(sin(x))])
tan = Elementwise("tan", INEXACT, "The tangent of x in radians.",
                  partials=[lambda out, x: add(1.0, square(out))])
asin = Elementwise("asin", INEXACT, "The angle whose sine is x; NaN outside of [-1, 1].",
                   partials=[lambda out, x: over_root(x)])
acos = Elementwise("acos", INEXACT, "The angle whose cosine is x; NaN outside of [-1, 1].",
                   partials=[lambda out, x: neg(over_root(x))])
atan = Elementwise("atan", INEXACT, "The angle whose tangent is x.",
                   partials=[lambda out, x: div(1.0, add(1.0, square(x)))])
atan2 = Elementwise("atan2", FLOATS, "The angle of the point (x, y), given y and x, in radians.",
                    partials=[lambda out, y, x: div(x, squared_length(x, y)),
                              lambda out, y, x: neg(div(y, squared_length(x, y)))])
sinh = Elementwise("sinh", INEXACT, "The hyperbolic sine.", partials=[lambda out, x: cosh(x)])
cosh = Elementwise("cosh", INEXACT, "The hyperbolic cosine.", partials=[lambda out, x: sinh(x)])
tanh = Elementwise("tanh", INEXACT, "The hyperbolic tangent.",
                   partials=[lambda out, x: sub(1.0, square(out))])

# ---------------------------------------------------------------------------- truth and bits

eq, ne = compare("eq", "==", EVERY), compare("ne", "!=", EVERY)
lt, le, gt, ge = map(compare, ("lt", "le", "gt", "ge"), ("<", "<=", ">", ">="))
is_finite = Elementwise("is_finite", INEXACT, "Is x neither infinite nor NaN?", result=BOOL)
nextafter = Elementwise("nextafter", (F16, F32, F64), "The next number after x towards y.",
                        numpy=quiet(np.nextafter), scalar="add")
nextafter.pull = None                    # compiled code calls the NumPy rule
and_ = Elementwise("and", (BOOL, *INTS), "And, bit by bit; of integers or bools.")
or_ = Elementwise("or", (BOOL, *INTS), "Or, bit by bit; of integers or bools.")
xor = Elementwise("xor", (BOOL, *INTS), "Exclusive or, bit by bit; of integers or bools.")
not_ = Elementwise("not", (BOOL, *INTS), "Every bit turned around; of bools, not.")
shl = Elementwise("shl", INTS, "x · 2ʸ, of integers.")
shr = Elementwise("shr", INTS, "⌊x / 2ʸ⌋, of integers.")


# ---------------------------------------------------------------------------- rows with structure

class Convert(Primitive):
    """x in another dtype: number to bool x != 0.   n[*s] → dtype[*s]

    Float to int goes towards zero; what does not fit gives the nearest integer, NaN gives 0.  Of
    complex numbers a real dtype keeps the real part.
    """
    linear_in = (0,)

    def type(self, x, /, *, dtype):
        return x.with_dtype(dtype)

    @quiet
    def numpy(self, x, /, *, dtype):
        if x.dtype.kind == "c" and dtype.kind not in "cb":
            x = x.real
        whole = x.dtype.kind == "f" and dtype.kind in "iu"
        return saturated(x, dtype) if whole else x.astype(dtype)

    def jvp(self, out, args, tangents, /, *, dtype):
        return self(tangents[0], dtype=dtype) if dtype.kind in INEXACT_KINDS else None

    def transpose(self, ct, i, x, /, *, dtype):
        return self(ct, dtype=x.dtype)

    def batch(self, dims, x, /, *, dtype):
        return self(x, dtype=dtype), dims[0]

    def pull(self, x, /, *, dtype):
        return lambda i: scalar.cast(exact_element(x, i, x.dtype), dtype)


def saturated(x, dtype):
    """Floats as integers: towards zero, the nearest that fits, and 0 for NaN.

    NumPy leaves the last two open.
    """
    info, out = np.iinfo(dtype), x.astype(dtype)
    below, above = x < float(info.min), x >= float(info.max + 1)
    if not (below | above | (x != x)).any():
        return out
    out = np.where(below, dtype.type(info.min), np.where(above, dtype.type(info.max), out))
    return np.where(x != x, dtype.type(0), out)


class IntegerPow(Primitive):
    """xⁿ for a known integer n, by repeated squaring; integers need n >= 0.   n[*s] → n[*s]"""
    dtypes = ARITHMETIC

    def type(self, x, /, *, n):
        if x.dtype not in ARITHMETIC or (n < 0 and x.dtype.kind not in INEXACT_KINDS):
            raise DtypeError(f"integer_pow[n={n}] is not defined for {SHORT[x.dtype]}.",
                             given=str(x), fix="convert with astype first")
        return x

    @quiet
    def numpy(self, x, /, *, n):
        if n < 0 and x.dtype.kind not in INEXACT_KINDS:
            self.type(ArrayType(x.dtype, x.shape), n=n)
        power = repeated_squaring(x, builtins.abs(n), np.multiply)
        power = np.ones_like(x) if power is None else power if n != 1 else x.copy()
        return 1 / power if n < 0 else power

    def jvp(self, out, args, tangents, /, *, n):
        (x,), (t,) = args, tangents
        return mul(t, mul(float(n), self(x, n=n - 1))) if n else None

    def batch(self, dims, x, /, *, n):
        return self(x, n=n), dims[0]

    def pull(self, x, /, *, n):
        def element(i):
            one = scalar.const(1, x.dtype)
            power = repeated_squaring(x(i), builtins.abs(n), instruction("mul")) or one
            return scalar.apply("div", one, power) if n < 0 else power
        return element


def repeated_squaring(x, n, multiply):
    """xⁿ with about 2 log₂ n multiplications, or None for n = 0."""
    out = None
    while n:
        if n & 1:
            out = x if out is None else multiply(out, x)
        n >>= 1
        x = multiply(x, x) if n else x
    return out


class Select(Primitive):
    """x where c holds, else y.   bool[*s] n[*s] n[*s] → n[*s]; x or y may be a Python number"""
    linear_in = (1, 2)
    numbers = True
    dtypes = (BOOL,)

    def evaluate(self, args, params):
        c, x, y = args
        if y.__class__ in SCALARS:
            values, like, other = (c.np, x.np, literal(y, x.dtype)), x, x
        elif x.__class__ in SCALARS:
            values, like, other = (c.np, literal(x, y.dtype), y.np), y, y
        else:
            values, like, other = (c.np, x.np, y.np), x, y
        one_shape = c.shape == like.shape == other.shape
        if not (one_shape and like.dtype == other.dtype and c.dtype == BOOL):
            self.type(*[a if a.__class__ in SCALARS else a.type for a in args])
        return Array(np.where(*values))

    def type(self, c, x, y, /):
        arrays = [t for t in (x, y) if t.__class__ is ArrayType]
        problem = self.mismatch(c, arrays)
        if problem:
            kind, sentence, fix = problem
            given = [f"argument {k + 1}: {t}" for k, t in enumerate((c, x, y))]
            raise kind(sentence, given=given, fix=fix)
        for t in (x, y):
            if t.__class__ is not ArrayType:
                literal(t, arrays[0].dtype)
        return arrays[0]

    def mismatch(self, c, arrays):
        """(error class, sentence, fix) of what does not fit together, or None."""
        if c.__class__ is not ArrayType or c.dtype != BOOL:
            return DtypeError, "select needs a condition of dtype bool.", "compare with 0 first"
        if not arrays:
            return ArgumentError, "select needs at least one array to choose from.", None
        if any(t.shape != c.shape for t in arrays):
            return ShapeError, "select needs arguments of one shape.", "use fgrad.numpy.where"
        if any(t.dtype != arrays[0].dtype for t in arrays):
            return DtypeError, "select needs x and y of one dtype.", "use fgrad.numpy.where"
        return None

    def numpy(self, c, x, y, /):
        return np.where(c, x, y)

    def jvp(self, out, args, tangents, /):
        x, y = tangents[1:]
        return self(args[0], 0.0 if x is None else x, 0.0 if y is None else y)

    def transpose(self, ct, i, c, x, y, /):
        return self(c, ct, 0.0) if i == 1 else self(c, 0.0, ct)

    batch = Elementwise.batch

    def pull(self, c, x, y, /):
        dtype = y.dtype if x.__class__ in SCALARS else x.dtype
        return lambda i: scalar.apply("select", c(i), element(x, i, dtype), element(y, i, dtype))


convert = Convert("convert")
integer_pow = IntegerPow("integer_pow")
select = Select("select")
