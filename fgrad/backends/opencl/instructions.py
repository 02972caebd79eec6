"""Scalar instructions as OpenCL C: an expression each, for every dtype, scalar or vector.

`Instructions.apply(op, args, dtype, lanes)` gives the text of a value.  What does not fit in an
expression becomes a small function, named for what it does and kept in `used`: `max_f32x16(a, b)`.
A bool is a `bool`, and in a vector a `char` that is 0 or -1, as comparisons of vectors give it; in
memory it is a byte, 0 or 1.  f16 and bf16 are dtypes of memory only, halves and ushorts there and
floats when loaded, so that no device needs to compute with them.  Elementary functions are OpenCL's
own: its standard bounds their errors, and on PoCL all of them were measured within 3 ulp.
"""

from __future__ import annotations

import numpy as np

from ...types import BOOL, F32, I64, SHORT, U32, U64

MEMORY = {"bool": "uchar", "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort",
          "i32": "int", "u32": "uint", "i64": "long", "u64": "ulong",
          "f16": "half", "bf16": "ushort", "f32": "float", "f64": "double"}
MASK = {1: "char", 2: "short", 4: "int", 8: "long"}        # bytes → what comparing vectors gives
SUFFIX = {F32: "f", U32: "u", I64: "L", U64: "UL"}


def stored(dtype):
    """The C type of one element in memory."""
    return MEMORY[SHORT[dtype]]


def type_text(dtype, lanes=1):
    """The C type of a value of `lanes` elements."""
    if dtype == BOOL:
        return "bool" if lanes == 1 else f"char{lanes}"
    return MEMORY[SHORT[dtype]] + (str(lanes) if lanes > 1 else "")


def vector_suffix(lanes):
    """What follows the name of a type or function for `lanes` elements."""
    return str(lanes) if lanes > 1 else ""


def literal(value, dtype):
    """A number as C spells it, exactly."""
    if dtype == BOOL:
        return "1" if value else "0"
    if dtype.kind == "f":
        return float_literal(dtype.type(value), dtype)
    value = int(np.array(value).astype(dtype))
    if dtype.kind == "i" and value == np.iinfo(dtype).min:
        return f"({type_text(dtype)})({value + 1}{SUFFIX.get(dtype, '')} - 1)"
    text = f"{value}{SUFFIX.get(dtype, '')}"
    text = f"({text})" if value < 0 else text
    return f"({type_text(dtype)}){text}" if dtype.itemsize < 4 else text


def float_literal(value, dtype):
    kind = type_text(dtype)
    if np.isnan(value):
        return f"({kind})NAN"
    if np.isinf(value):
        return f"({kind})INFINITY" if value > 0 else f"(-({kind})INFINITY)"
    text = repr(float(value)) if dtype != F32 else str(value)
    text += "" if any(c in text for c in ".e") else ".0"
    text += SUFFIX.get(dtype, "")
    return f"({text})" if np.signbit(value) else text


def number(value, dtype, lanes=1):
    """A number as a value of `lanes` elements."""
    if lanes == 1:
        return literal(value, dtype)
    text = literal(value, dtype) if dtype != BOOL else "-1" if value else "0"
    return f"({type_text(dtype, lanes)})({text})"


INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
         "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
LOGICAL = {"add": "|", "or": "|", "max": "|", "mul": "&", "and": "&", "min": "&",
           "sub": "^", "xor": "^"}
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
MIRROR = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
BUILTIN = {name: name for name in "exp expm1 log log1p tanh sin cos tan asin acos atan atan2 sinh "
           "cosh erf pow sqrt floor ceil".split()} | {"rem": "fmod", "round": "rint", "abs": "fabs"}
LANE_BY_LANE = frozenset(("pow", "rem"))
REDUCED = frozenset(("sin", "cos", "tan"))


class Instructions:
    """Writes values; `used` holds the text of the functions that they call, in order."""

    def __init__(self):
        self.used = {}                           # name → text

    def apply(self, name, args, dtype, lanes):
        """The instruction on operands of `dtype` (select: the dtype of the two values)."""
        if name in COMPARISONS:
            return self.compare(name, args, dtype, lanes)
        structured = STRUCTURED.get(name)
        if structured is not None:
            return structured(self, args, dtype, lanes)
        if dtype == BOOL:
            return f"({args[0]} {LOGICAL[name]} {args[1]})"
        if dtype.kind == "f":
            if name in INFIX:
                return f"({args[0]} {INFIX[name]} {args[1]})"
            return self.builtin(name, args, dtype, lanes)
        return self.integer(name, args, dtype, lanes)

    def builtin(self, name, args, dtype, lanes):
        """OpenCL's own function.

        In PoCL's vectors a lane can spoil its neighbours: sin, cos and tan of float16 are off by
        0.01 beside an infinite or very large lane, pow and fmod of double8 beside 0/0.  There they
        are scalar.
        """
        if lanes == 1 or name not in LANE_BY_LANE | REDUCED:
            return f"{BUILTIN[name]}({', '.join(args)})"
        t, one = type_text(dtype, lanes), type_text(dtype)
        inner = ", ".join(f"((const {one} *)&{v})[l]" for v in "xy"[:len(args)])
        loop = (f"{t} r; for (int l = 0; l < {lanes}; l++) "
                f"(({one} *)&r)[l] = {BUILTIN[name]}({inner}); return r;")
        small = f"all(fabs(x) < {number(1e4, dtype, lanes)})"
        fast = f"if ({small}) return {name}(x); " if name in REDUCED else ""
        return self.call(name, args, dtype, lanes, fast + loop)

    def function(self, name, dtype, lanes, count, body, result=None):
        """The name of a small function of `count` values; `body` is what it returns, or its lines.

        In the body {t} stands for the type, {zero} and {one} for its numbers.
        """
        full = f"{name}_{SHORT[dtype]}" + (f"x{lanes}" if lanes > 1 else "")
        if full not in self.used:
            t = type_text(dtype, lanes)
            params = ", ".join(f"const {t} {v}" for v in "xyz"[:count])
            lines = body.format(t=t, zero=number(0, dtype, lanes), one=number(1, dtype, lanes))
            lines = lines if "return" in lines else f"return {lines};"
            self.used[full] = f"{result or t} {full}({params}) {{ {lines} }}"
        return full

    def call(self, name, args, dtype, lanes, body, result=None):
        """A call of a small function on these values."""
        return f"{self.function(name, dtype, lanes, len(args), body, result)}({', '.join(args)})"

    # -- comparing and choosing -----------------------------------------------------------------

    def compare(self, name, args, dtype, lanes):
        if lanes == 1:
            return f"({args[0]} {INFIX[name]} {args[1]})"
        if dtype == BOOL:                        # true is -1 in a vector
            name = MIRROR[name]
        text = f"({args[0]} {INFIX[name]} {args[1]})"
        return text if dtype.itemsize == 1 else f"convert_char{lanes}{text}"

    def chosen(self, args, dtype, lanes):
        return self.select(*args, dtype, lanes)

    def select(self, condition, x, y, dtype, lanes):
        if lanes == 1:
            return self.narrow(f"({condition} ? {x} : {y})", dtype, lanes)
        size = dtype.itemsize
        mask = condition if size == 1 else f"convert_{MASK[size]}{lanes}({condition})"
        return f"select({y}, {x}, {mask})"

    def larger(self, args, dtype, lanes):
        """The larger; NaN of either side stays."""
        return self.extreme("max", ">", args, dtype, lanes)

    def smaller(self, args, dtype, lanes):
        """The smaller; NaN of either side stays."""
        return self.extreme("min", "<", args, dtype, lanes)

    def extreme(self, name, sign, args, dtype, lanes):
        if dtype == BOOL:
            return f"({args[0]} {LOGICAL[name]} {args[1]})"
        if dtype.kind != "f":
            return f"{name}({', '.join(args)})"
        return self.call(name, args, dtype, lanes, f"((x {sign} y) | (x != x)) ? x : y")

    def inverted(self, args, dtype, lanes):
        if dtype == BOOL and lanes == 1:
            return f"(!{args[0]})"
        return self.narrow(f"(~{args[0]})", dtype, lanes)

    def is_finite(self, args, dtype, lanes):
        if dtype.kind != "f":
            return number(True, BOOL, lanes)
        limit = number(np.inf, dtype, lanes)
        return self.compare("lt", (f"fabs({args[0]})", limit), dtype, lanes)

    # -- arithmetic -----------------------------------------------------------------------------

    def narrow(self, text, dtype, lanes):
        """C computes small integers in int: back to their type."""
        promoted = lanes == 1 and dtype.itemsize < 4 and dtype != BOOL
        return f"({type_text(dtype)}){text}" if promoted else text

    def integer(self, name, args, dtype, lanes):
        """Integers wrap around: signed ones are computed as unsigned, for which C promises it."""
        if name in ("floor", "ceil", "round") or name == "abs" and dtype.kind == "u":
            return args[0]
        text = f"({args[0]} {INFIX[name]} {args[-1]})"
        if name == "mul" and dtype.kind == "u" and lanes == 1:
            text = text.replace("(", "((ulong)" if dtype.itemsize == 8 else "((uint)", 1)
        if dtype.kind == "u" or dtype.itemsize < 4 or name in ("and", "or", "xor"):
            return self.narrow(text, dtype, lanes)
        return self.wrapping(name, f"x {INFIX[name]} y", args, dtype, lanes)

    def wrapping(self, name, text, args, dtype, lanes):
        t = type_text(dtype, lanes)
        for v in "xy"[:len(args)]:
            text = text.replace(v, f"as_u{t}({v})")
        return self.call(name, args, dtype, lanes, f"as_{t}({text})")

    def negative(self, args, dtype, lanes):
        if dtype.kind == "i" and dtype.itemsize >= 4:
            return self.wrapping("neg", "-x", args, dtype, lanes)
        return self.narrow(f"(-{args[0]})", dtype, lanes)

    def absolute(self, args, dtype, lanes):
        if dtype.kind == "i":
            return f"as_{type_text(dtype, lanes)}(abs({args[0]}))"
        return f"fabs({args[0]})" if dtype.kind == "f" else args[0]

    def sign(self, args, dtype, lanes):
        t = type_text(dtype, lanes)
        if dtype.kind == "f":
            return self.call("sign", args, dtype, lanes,
                             "((x < {zero}) | (x > {zero})) ? copysign({one}, x) : x + {zero}")
        if lanes > 1:
            body = ("(x < {zero}) - (x > {zero})" if dtype.kind == "i" else
                    f"as_{t}(-(x > {{zero}}))")
        else:
            body = f"({t})((x > {{zero}}) - (x < {{zero}}))"
        return self.call("sign", args, dtype, lanes, body)

    def inverse_root(self, args, dtype, lanes):
        return f"({number(1, dtype, lanes)} / sqrt({args[0]}))"

    def logistic(self, args, dtype, lanes):
        return self.call("logistic", args, dtype, lanes, "{one} / ({one} + exp(-x))")

    def quotient(self, args, dtype, lanes):
        """Floats divide; integers round towards zero, and x / 0 is 0."""
        if dtype.kind == "f":
            return f"({args[0]} / {args[1]})"
        if dtype.kind == "u":
            return self.call("div", args, dtype, lanes,
                             "const {t} s = y == {zero} ? {one} : y; const {t} q = x / s; "
                             "return y == {zero} ? {zero} : q;")
        negated = self.negative(["x"], dtype, lanes)     # the smallest by -1 may trap
        return self.call("div", args, dtype, lanes,
                         "const {t} s = (y == {zero}) | (y == -{one}) ? {one} : y; "
                         "const {t} n = " + negated + "; const {t} q = y == -{one} ? n : x / s; "
                         "return y == {zero} ? {zero} : q;")

    def remainder(self, args, dtype, lanes):
        """The remainder with the sign of x; of integers, x % 0 is 0."""
        if dtype.kind == "f":
            return self.builtin("rem", args, dtype, lanes)
        unsafe = "y == {zero}" if dtype.kind == "u" else "(y == {zero}) | (y == -{one})"
        return self.call("rem", args, dtype, lanes,
                         f"const {{t}} s = {unsafe} ? {{one}} : y; return x % s;")

    def shifted_left(self, args, dtype, lanes):
        """Shifts by less than 0 or by at least the width give 0."""
        return self.shifted("shl", "<<", args, dtype, lanes)

    def shifted_right(self, args, dtype, lanes):
        """Shifts by less than 0 or by at least the width give 0, or the sign of a signed number."""
        return self.shifted("shr", ">>", args, dtype, lanes)

    def shifted(self, name, sign, args, dtype, lanes):
        width, t = 8 * dtype.itemsize, type_text(dtype, lanes)
        most = number(width - 1, dtype, lanes)
        outside = f"(y < {{zero}}) | (y > {most})" if dtype.kind == "i" else f"(y > {most})"
        if name == "shr" and dtype.kind == "i":
            body = f"const {{t}} n = ({outside}) ? {most} : y; return x >> n;"
        else:
            unsigned = dtype.kind == "i" and (lanes > 1 or width > 16)
            moved = f"as_{t}(as_u{t}(x) << as_u{t}(n))" if unsigned else f"({t})(x {sign} n)"
            body = (f"const {{t}} n = ({outside}) ? {{zero}} : y; const {{t}} m = {moved}; "
                    f"return ({outside}) ? {{zero}} : m;")
        return self.call(name, args, dtype, lanes, body)

    # -- f16 and bf16 ---------------------------------------------------------------------------

    def nearest_f16(self, args, dtype, lanes):
        """A float rounded to f16."""
        v = vector_suffix(lanes)
        return self.call("round_f16", args, dtype, lanes,
                         f"ushort{v} h; vstore_half{v}(x, 0, (half *)&h); "
                         f"return vload_half{v}(0, (half *)&h);")

    def nearest_bf16(self, args, dtype, lanes):
        """A float rounded to bf16."""
        return self.widened(self.narrowed(args[0], lanes), lanes)

    def widened(self, x, lanes):
        """bf16, as memory holds it, as a float."""
        v = vector_suffix(lanes)
        return f"as_float{v}(convert_uint{v}({x}) << 16)"

    def narrowed(self, x, lanes):
        """A float as memory holds it as bf16: the nearest, ties to even; NaN stays NaN."""
        v = vector_suffix(lanes)
        choose = "select(n, h | 64, x != x)" if v else "x != x ? h | 64 : n"
        return self.call("to_bf16", (x,), F32, lanes,
                         f"const uint{v} b = as_uint{v}(x), h = b >> 16; "
                         f"const uint{v} n = (b + (h & 1) + 32767) >> 16; "
                         f"return convert_ushort{v}({choose});", f"ushort{v}")

    # -- casts ----------------------------------------------------------------------------------

    def cast(self, x, old, new, lanes):
        """x of dtype `old` as `new`; floats to integers round towards zero and saturate."""
        if old == new:
            return x
        if new == BOOL:
            return self.compare("ne", (x, number(0, old, lanes)), old, lanes)
        t = type_text(new, lanes)
        if old == BOOL:
            return f"convert_{t}(-{x})" if lanes > 1 else f"({t}){x}"
        if old.kind == "f" and new.kind != "f":
            body = f"convert_{t}_sat((x == x) ? x : {{zero}})"           # PoCL does not make NaN 0
            return self.call(f"to_{SHORT[new]}", (x,), old, lanes, body, t)
        return f"convert_{t}({x})"

    def bits(self, x, old, new, lanes):
        """The bits of x as another dtype of the same size."""
        return f"as_{type_text(new, lanes)}({x})"

    def fold(self, name, x, dtype, lanes):
        """The lanes of a vector combined, half onto half."""
        full = f"{name}_all_{SHORT[dtype]}x{lanes}"
        if full not in self.used:
            lines, w, v = [], lanes, "x"
            while w > 1:
                w //= 2
                halves = (f"{v}.lo", f"{v}.hi") if w > 1 else (f"{v}.s0", f"{v}.s1")
                if dtype == BOOL and w == 1:
                    halves = tuple(f"({h} != 0)" for h in halves)
                total = self.apply(name, halves, dtype, w)
                lines.append(f"const {type_text(dtype, w)} v{w} = {total};")
                v = f"v{w}"
            self.used[full] = (f"{type_text(dtype)} {full}(const {type_text(dtype, lanes)} x) "
                               f"{{ {' '.join(lines)} return v1; }}")
        return f"{full}({x})"


#   instruction   what writes it, where that is more than an operator or OpenCL's function
STRUCTURED = {
    "select": Instructions.chosen,
    "max": Instructions.larger,
    "min": Instructions.smaller,
    "not": Instructions.inverted,
    "is_finite": Instructions.is_finite,
    "neg": Instructions.negative,
    "abs": Instructions.absolute,
    "sign": Instructions.sign,
    "rsqrt": Instructions.inverse_root,
    "round_f16": Instructions.nearest_f16,
    "round_bf16": Instructions.nearest_bf16,
    "logistic": Instructions.logistic,
    "div": Instructions.quotient,
    "rem": Instructions.remainder,
    "shl": Instructions.shifted_left,
    "shr": Instructions.shifted_right,
}
