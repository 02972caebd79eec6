"""Vector math: the elementary functions as LLVM text, at every dtype and width.

`definition` is the text of one function; the backend puts those it calls into a module, each once.
What is seldom takes a branch that is as precise: angles beyond 1e5 (f32) or 2^30 (f64), powers of e
of less than -66 or more than 21 (f32; -532 and 177 in f64), logarithms of what is no positive
normal number, and remainders whose quotient is beyond 3e6 (f32) or 1e15, which loop.  They call
nothing outside the module, and use only `llvm.fma`, `rint`, `trunc`, `sqrt`, `fabs` and `copysign`,
and on x86 a permutation: single instructions where there is hardware fma.  NaN, infinities, signs
of zeros and denormals are those of IEEE 754 and C.  Relies on `vmath_exponential` and
`vmath_circular` for the formulas; the scalar instructions rely on it.

    symbol("exp", "f32", 16)           # @fg.exp.v16f32
"""

from __future__ import annotations

from functools import cache

from . import vmath_circular as circular
from . import vmath_exponential as exponential
from .vmath_values import Body, literal

#   name       function               arguments, and bounds on the error in f32 and f64, in ulp:
#                                     as measured over 3e6 arguments of all sizes, and a little more
FUNCTIONS = {
    "exp":      (exponential.exp,      1, 1.2, 1.0),
    "expm1":    (exponential.expm1,    1, 1.3, 1.3),
    "log":      (exponential.log,      1, 0.9, 0.9),
    "log1p":    (exponential.log1p,    1, 1.5, 1.5),
    "tanh":     (exponential.tanh,     1, 4.0, 1.8),
    "logistic": (exponential.logistic, 1, 2.7, 2.4),
    "sinh":     (exponential.sinh,     1, 2.3, 2.3),
    "cosh":     (exponential.cosh,     1, 1.7, 1.5),
    "erf":      (exponential.erf,      1, 3.6, 1.7),
    "pow":      (exponential.pow,      2, 0.6, 1.0),
    "sin":      (circular.sin,         1, 1.6, 1.6),
    "cos":      (circular.cos,         1, 1.6, 1.6),
    "tan":      (circular.tan,         1, 3.2, 3.2),
    "asin":     (circular.asin,        1, 2.0, 2.1),
    "acos":     (circular.acos,        1, 1.2, 1.2),
    "atan":     (circular.atan,        1, 1.5, 1.6),
    "atan2":    (circular.atan2,       2, 1.6, 1.6),
    "rem":      (circular.rem,         2, 0.0, 0.0),
}
NAMES = tuple(FUNCTIONS)
SELDOM = {"any_power": (exponential.any_power, 1)}          # called in branches of the others
IN_PLACE = {"exp", "logistic", "tanh", "erf"}     # faster inside of a loop; others lack registers
ULP = {(name, dtype): row[column] for name, row in FUNCTIONS.items()
       for dtype, column in (("f32", 2), ("f64", 3))}


def symbol(name, dtype, lanes):
    """The name of a function in LLVM text.

    >>> symbol("exp", "f64", 1)
    '@fg.exp.f64'
    """
    return f"@fg.{name}.{Body(lanes).suffix(dtype)}"


@cache
def definition(name, dtype, lanes):
    """The LLVM text of an internal function T name(T x) or T name(T x, T y), T of `lanes` elements.

    dtype: "f32" or "f64".  lanes: 1 for a scalar.  Functions that `needs` names must be defined
    beside it.
    """
    if name == "quadrant":
        return quadrant(dtype, lanes)
    body, arguments, result = written(name, dtype, lanes)
    attributes = f"nounwind{' noinline cold' if name in SELDOM else ''} memory(none)"
    t = body.type(dtype)
    return function(f"{t} {symbol(name, dtype, lanes)}", t, arguments, attributes,
                    [*body.lines, f"  ret {t} {result.name}"])


@cache
def needs(name, dtype):
    """Names, in NAMES or not, of the functions that one calls at its own dtype and width."""
    return () if name == "quadrant" else tuple(written(name, dtype, 1)[0].calls)


def written(name, dtype, lanes):
    """(body, arguments, result) of a function."""
    formula, count = (FUNCTIONS.get(name) or SELDOM[name])[:2]
    body = Body(lanes)
    arguments = [body.argument(dtype) for _ in range(count)]
    return body, arguments, formula(*arguments)


def quadrant(dtype, lanes):
    """The reduction of large angles and its table: {T, T} quadrant(T x), seldom called."""
    body = Body(lanes)
    x = body.argument(dtype)
    results = circular.quadrant(x)
    t = body.type(dtype)
    pair = f"{{{t}, {t}}}"
    for i, (value, into) in enumerate(zip(results, ("poison", "%pair0"))):
        body.do(f"%pair{i} = insertvalue {pair} {into}, {t} {value.name}, {i}")
    count = circular.CHUNKS[dtype]
    values = ", ".join(f"double {literal(chunk, 'f64')}" for chunk in circular.chunks(count))
    table = circular.table_name(body, dtype)
    head = f"{pair} {symbol('quadrant', dtype, lanes)}"
    lines = [*body.lines, f"  ret {pair} %pair1"]
    return (f"{table} = internal constant [{count} x double] [{values}]\n\n"
            + function(head, t, [x], "nounwind noinline cold", lines))


def function(head, t, arguments, attributes, lines):
    parameters = ", ".join(f"{t} {a.name}" for a in arguments)
    head = f"define internal {head}({parameters}) {attributes} {{"
    return "\n".join([head, "entry:", *lines, "}"])
