"""Scalar instructions as LLVM text: for every instruction and dtype, scalar or vector.

`Instructions.apply` writes what computes an instruction of its arguments and gives the result's
name; `lanes` is 1 for a scalar.  Values of bool are i1, and i8 in memory; f16 and bf16 are dtypes
of memory only, f32 when loaded (`widened`) and rounded when stored (`narrowed`).  Relies on `vmath`
for the elementary functions; the emitter relies on it.
"""

from __future__ import annotations

import struct

import numpy as np

from ...bf16 import BF16
from ...types import BOOL, F16, F32, F64, I32, SHORT
from . import vmath
from .host import HOST
from .text import mangled, vector

ELEMENT = {"bool": "i1", "i8": "i8", "u8": "i8", "i16": "i16", "u16": "i16",
           "i32": "i32", "u32": "i32", "i64": "i64", "u64": "i64",
           "f16": "half", "bf16": "i16", "f32": "float", "f64": "double"}


def element(dtype):
    """The LLVM type of one value."""
    return ELEMENT[SHORT[dtype]]


def stored(dtype):
    """The LLVM type of one value in memory: a bool takes a byte."""
    return "i8" if dtype == BOOL else element(dtype)


def type_text(dtype, lanes):
    """The LLVM type of a value of `lanes` elements."""
    return element(dtype) if lanes == 1 else vector(element(dtype), lanes)


def vector_or_one(t, lanes):
    """The LLVM type of `lanes` elements of type t."""
    return t if lanes == 1 else vector(t, lanes)


def literal(value, dtype):
    """A number as LLVM spells it; floats by their bits, exactly."""
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype.kind != "f":
        return str(int(np.array(value).astype(dtype))) if dtype.kind == "u" else str(int(value))
    exact = dtype.type(value)
    return "0x%016X" % struct.unpack("<Q", struct.pack("<d", float(exact)))[0]


def number(value, dtype, lanes):
    """A number as an operand of `lanes` elements."""
    text = literal(value, dtype)
    return text if lanes == 1 else f"splat ({element(dtype)} {text})"


def constant_of(text):
    """The value of an operand that `number` wrote for a float, or None of any other."""
    _, found, digits = text.rpartition("0x")
    return struct.unpack("<d", struct.pack("<Q", int(digits.rstrip(")"), 16)))[0] if found else None


class Instructions:
    """Writes instructions through `op(text) → name`; `used` collects the vmath functions called."""

    def __init__(self, op):
        self.op = op
        self.used = set()                        # (name, "f32" | "f64", lanes)

    def apply(self, name, args, dtype, lanes):
        """The instruction on operands of `dtype` (select: the dtype of the two values)."""
        structured = STRUCTURED.get(name)
        if structured is not None:
            return structured(self, args, dtype, lanes)
        if name in vmath.NAMES and dtype.kind == "f":
            return self.elementary(name, args, dtype, lanes)
        return self.plain(name, args, dtype, lanes)

    def plain(self, name, args, dtype, lanes):
        """An instruction that is one LLVM instruction."""
        table = FLOAT if dtype.kind == "f" else LOGICAL if dtype == BOOL else INTEGER
        sign, right = "u" if dtype.kind in "ub" else "s", "l" if dtype.kind == "u" else "a"
        opcode = table[name].format(s=sign, r=right)
        return self.op(f"{opcode} {type_text(dtype, lanes)} {', '.join(args)}")

    def elementary(self, name, args, dtype, lanes):
        """A call of vector math; powers of a constant in place, where its logarithm is one, too."""
        self.used.add((name, SHORT[dtype], lanes))
        t = type_text(dtype, lanes)
        symbol, given = vmath.symbol(name, SHORT[dtype], lanes), ", ".join(f"{t} {a}" for a in args)
        inline = " alwaysinline" if name == "pow" and constant_of(args[0]) is not None else ""
        return self.op(f"call {t} {symbol}({given}){inline}")

    def intrinsic(self, name, args, dtype, lanes):
        """A call of @llvm.name on floats."""
        t = type_text(dtype, lanes)
        suffix = mangled(element(dtype), None if lanes == 1 else lanes)
        return self.op(f"call {t} @llvm.{name}.{suffix}({', '.join(f'{t} {a}' for a in args)})")

    def select(self, condition, x, y, dtype, lanes):
        bits, t = type_text(BOOL, lanes), type_text(dtype, lanes)
        return self.op(f"select {bits} {condition}, {t} {x}, {t} {y}")

    def compare(self, how, x, y, dtype, lanes):
        return self.plain(how, (x, y), dtype, lanes)

    # -- instructions with structure ------------------------------------------------------------

    def chosen(self, args, dtype, lanes):
        return self.select(*args, dtype, lanes)

    def larger(self, args, dtype, lanes):
        """The larger; NaN of either side stays, of equal ones the second."""
        return self.extreme(args, "gt", dtype, lanes)

    def smaller(self, args, dtype, lanes):
        """The smaller; NaN of either side stays, of equal ones the second."""
        return self.extreme(args, "lt", dtype, lanes)

    def extreme(self, args, how, dtype, lanes):
        """One or two machine instructions with a constant, three without.

        x86 has "x > y ? x : y" as one, so that a NaN in y stays by itself, and one in x if y is a
        number.  A NaN that is found in x is replaced by a constant one: by x itself, LLVM would
        make one select of two comparisons.
        """
        x, y = args
        if dtype == BOOL:
            return self.plain("or" if how == "gt" else "and", args, dtype, lanes)
        if dtype.kind == "f" and (value := constant_of(y)) is not None and value == value:
            other = {"gt": "lt", "lt": "gt"}[how] if value else {"gt": "le", "lt": "ge"}[how]
            return self.select(self.compare(other, x, y, dtype, lanes), y, x, dtype, lanes)
        first = self.select(self.compare(how, x, y, dtype, lanes), x, y, dtype, lanes)
        value = constant_of(x) if dtype.kind == "f" else 0.0
        if value is not None and value == value:
            return first
        nan = self.op(f"fcmp uno {type_text(dtype, lanes)} {x}, {x}")
        return self.select(nan, number(np.nan, dtype, lanes), first, dtype, lanes)

    def negative(self, args, dtype, lanes):
        t = type_text(dtype, lanes)
        if dtype.kind == "f":
            return self.op(f"fneg {t} {args[0]}")
        return self.op(f"sub {t} {number(0, dtype, lanes)}, {args[0]}")

    def absolute(self, args, dtype, lanes):
        (x,) = args
        if dtype.kind == "f":
            return self.intrinsic("fabs", args, dtype, lanes)
        if dtype.kind != "i":
            return x
        negative = self.compare("lt", x, number(0, dtype, lanes), dtype, lanes)
        return self.select(negative, self.negative(args, dtype, lanes), x, dtype, lanes)

    def sign(self, args, dtype, lanes):
        (x,) = args
        zero, one = number(0, dtype, lanes), number(1, dtype, lanes)
        if dtype.kind == "f":
            unit = self.intrinsic("copysign", (one, x), dtype, lanes)
            other = self.op(f"fcmp one {type_text(dtype, lanes)} {x}, {zero}")
            # -0.0 becomes 0.0
            zero_or_nan = self.op(f"fadd {type_text(dtype, lanes)} {x}, {zero}")
            return self.select(other, unit, zero_or_nan, dtype, lanes)
        positive = self.compare("gt", x, zero, dtype, lanes)
        below = zero
        if dtype.kind == "i":
            negative = self.compare("lt", x, zero, dtype, lanes)
            below = self.select(negative, number(-1, dtype, lanes), zero, dtype, lanes)
        return self.select(positive, one, below, dtype, lanes)

    def floor(self, args, dtype, lanes):
        return self.rounded("floor", args, dtype, lanes)

    def ceil(self, args, dtype, lanes):
        return self.rounded("ceil", args, dtype, lanes)

    def nearest(self, args, dtype, lanes):
        return self.rounded("rint", args, dtype, lanes)

    def rounded(self, name, args, dtype, lanes):
        return self.intrinsic(name, args, dtype, lanes) if dtype.kind == "f" else args[0]

    def root(self, args, dtype, lanes):
        return self.intrinsic("sqrt", args, dtype, lanes)

    def inverse_root(self, args, dtype, lanes):
        root = self.intrinsic("sqrt", args, dtype, lanes)
        return self.op(f"fdiv {type_text(dtype, lanes)} {number(1, dtype, lanes)}, {root}")

    def is_finite(self, args, dtype, lanes):
        if dtype.kind != "f":
            return number(True, BOOL, lanes)
        size = self.intrinsic("fabs", args, dtype, lanes)
        return self.op(f"fcmp one {type_text(dtype, lanes)} {size}, {number(np.inf, dtype, lanes)}")

    def inverted(self, args, dtype, lanes):
        ones = number(True, BOOL, lanes) if dtype == BOOL else self.ones(dtype, lanes)
        return self.op(f"xor {type_text(dtype, lanes)} {args[0]}, {ones}")

    def ones(self, dtype, lanes):
        return "-1" if lanes == 1 else f"splat ({element(dtype)} -1)"

    def quotient(self, args, dtype, lanes):
        """Floats divide; integers round towards zero, and x / 0 is 0."""
        return self.divided("div", args, dtype, lanes)

    def remainder(self, args, dtype, lanes):
        """The remainder with the sign of x; of integers, x % 0 is 0."""
        return self.divided("rem", args, dtype, lanes)

    def divided(self, name, args, dtype, lanes):
        if dtype.kind == "f":
            if name == "rem":
                return self.elementary(name, args, dtype, lanes)
            return self.plain(name, args, dtype, lanes)
        x, y = args
        zero, one = number(0, dtype, lanes), number(1, dtype, lanes)
        bad = self.compare("eq", y, zero, dtype, lanes)
        unsafe = bad
        if dtype.kind == "i":                    # the smallest integer by -1 overflows, and traps
            minus = self.compare("eq", y, self.ones(dtype, lanes), dtype, lanes)
            unsafe = self.op(f"or {type_text(BOOL, lanes)} {bad}, {minus}")
        safe = self.select(unsafe, one, y, dtype, lanes)
        known = y.startswith("splat")            # LLVM multiplies by its inverse
        floats = lanes > 1 and HOST.vector_bytes >= 32 and dtype.itemsize <= 4 and not known
        divide = self.divided_as_floats if floats else self.plain
        out = divide(name, (x, safe), dtype, lanes)
        if dtype.kind == "i" and name == "div":
            out = self.select(minus, self.negative((x,), dtype, lanes), out, dtype, lanes)
        return self.select(bad, zero, out, dtype, lanes)

    def divided_as_floats(self, name, args, dtype, lanes):
        """Integers divided by vectors of floats, where processors divide integers one by one.

        x is multiplied by a little more than 1 / y, so that no quotient is cut below an integer;
        from the next one it is 1 / y away, and of so many bits none comes as near as that.
        """
        wide, more = (F64, 1 + 2.0 ** -50) if dtype.itemsize == 4 else (F32, 1 + 2.0 ** -21)
        how = f"{'u' if dtype.kind == 'u' else 's'}itofp {type_text(dtype, lanes)}"
        x, y = (self.op(f"{how} {a} to {type_text(wide, lanes)}") for a in args)
        inverse = self.plain("div", (number(more, wide, lanes), y), wide, lanes)
        quotient = self.plain("mul", (x, inverse), wide, lanes)
        quotient = self.truncated(quotient, wide, dtype, lanes)
        if name == "div":
            return quotient
        whole = self.plain("mul", (quotient, args[1]), dtype, lanes)
        return self.plain("sub", (args[0], whole), dtype, lanes)

    def shifted_left(self, args, dtype, lanes):
        return self.shifted("shl", args, dtype, lanes)

    def shifted_right(self, args, dtype, lanes):
        return self.shifted("shr", args, dtype, lanes)

    def shifted(self, name, args, dtype, lanes):
        """x shifted by n; outside of 0..width it is 0, or the sign where the sign is kept."""
        x, n = args
        width = 8 * dtype.itemsize
        if name == "shr" and dtype.kind == "i":
            n = self.bounded(n, width - 1, dtype, lanes)
            return self.plain(name, (x, n), dtype, lanes)
        inside = self.op(f"icmp ult {type_text(dtype, lanes)} {n}, {number(width, dtype, lanes)}")
        safe = self.select(inside, n, number(0, dtype, lanes), dtype, lanes)
        moved = self.plain(name, (x, safe), dtype, lanes)
        return self.select(inside, moved, number(0, dtype, lanes), dtype, lanes)

    def bounded(self, n, most, dtype, lanes):
        """n, or `most` where n is negative or larger."""
        limit = number(most, dtype, lanes)
        small = self.op(f"icmp ult {type_text(dtype, lanes)} {n}, {limit}")
        return self.select(small, n, limit, dtype, lanes)

    # -- casts ----------------------------------------------------------------------------------

    def cast(self, x, old, new, lanes):
        """x of dtype `old` as `new`; floats to integers round towards zero and saturate."""
        if old == new:
            return x
        a, b = type_text(old, lanes), type_text(new, lanes)
        if new == BOOL:
            how = "fcmp une" if old.kind == "f" else "icmp ne"
            return self.op(f"{how} {a} {x}, {number(0, old, lanes)}")
        if old.kind == "f" and new.kind == "f":
            how = "fpext" if new.itemsize > old.itemsize else "fptrunc"
        elif old.kind == "f":
            return self.to_integer(x, old, new, lanes)
        elif new.kind == "f":
            how = "uitofp" if old.kind in "ub" else "sitofp"
        elif element(old) == element(new):
            return x
        elif old != BOOL and new.itemsize < old.itemsize:
            how = "trunc"
        else:
            how = "zext" if old.kind in "ub" else "sext"
        return self.op(f"{how} {a} {x} to {b}")

    def bits(self, x, old, new, lanes):
        """The bits of x as another dtype of the same size."""
        a, b = type_text(old, lanes), type_text(new, lanes)
        return x if a == b else self.op(f"bitcast {a} {x} to {b}")

    # -- f16 and bf16 ---------------------------------------------------------------------------

    def widened(self, x, dtype, lanes):
        """f16 or bf16, as memory holds it, as f32: exact."""
        if dtype == F16:
            if not HOST.converts_f16:
                return self.f16_by_bits(x, lanes)
            return self.op(f"fpext {vector_or_one('half', lanes)} {x} to {type_text(F32, lanes)}")
        t = type_text(I32, lanes)
        bits = self.op(f"zext {vector_or_one('i16', lanes)} {x} to {t}")
        high = self.op(f"shl {t} {bits}, {number(16, I32, lanes)}")
        return self.op(f"bitcast {t} {high} to {type_text(F32, lanes)}")

    def narrowed(self, x, dtype, lanes):
        """An f32 as memory holds it as f16 or bf16: the nearest, ties to even; NaN stays NaN."""
        f, t = type_text(F32, lanes), type_text(I32, lanes)
        if dtype == F16:
            if not HOST.converts_f16:
                return self.bits_of_f16(x, lanes)
            return self.op(f"fptrunc {f} {x} to {vector_or_one('half', lanes)}")
        bits = self.op(f"bitcast {f} {x} to {t}")
        high = self.op(f"lshr {t} {bits}, {number(16, I32, lanes)}")
        odd = self.op(f"and {t} {high}, {number(1, I32, lanes)}")
        more = self.op(f"add {t} {odd}, {number(0x7FFF, I32, lanes)}")
        near = self.op(f"add {t} {bits}, {more}")
        near = self.op(f"lshr {t} {near}, {number(16, I32, lanes)}")
        quiet = self.op(f"or {t} {high}, {number(0x40, I32, lanes)}")
        nan = self.op(f"fcmp uno {f} {x}, {x}")
        out = self.select(nan, quiet, near, I32, lanes)
        return self.op(f"trunc {t} {out} to {vector_or_one('i16', lanes)}")

    def f16_by_bits(self, x, lanes):
        """f16 as f32 where the processor has no instruction for it."""
        halves, t, f = vector_or_one("i16", lanes), type_text(I32, lanes), type_text(F32, lanes)
        bits = self.op(f"bitcast {vector_or_one('half', lanes)} {x} to {halves}")
        bits = self.op(f"zext {halves} {bits} to {t}")

        def step(opcode, a, n):
            return self.op(f"{opcode} {t} {a}, {number(n, I32, lanes)}")
        size, sign = step("and", bits, 0x7FFF), step("shl", step("and", bits, 0x8000), 16)
        usual = step("add", step("shl", size, 13), 112 << 23)      # the exponents' biases differ
        outside = step("icmp ugt", size, 0x7BFF)                    # infinity or NaN
        usual = self.select(outside, step("add", usual, 112 << 23), usual, I32, lanes)
        tiny = self.op(f"sitofp {t} {size} to {f}")
        tiny = self.op(f"fmul {f} {tiny}, {number(2.0 ** -24, F32, lanes)}")
        tiny = self.op(f"bitcast {f} {tiny} to {t}")
        found = self.select(step("icmp ult", size, 0x0400), tiny, usual, I32, lanes)
        return self.op(f"bitcast {t} {self.op(f'or {t} {found}, {sign}')} to {f}")

    def bits_of_f16(self, x, lanes):
        """An f32 as the nearest f16 where the processor has no instruction for it."""
        halves, t, f = vector_or_one("i16", lanes), type_text(I32, lanes), type_text(F32, lanes)
        bits = self.op(f"bitcast {f} {x} to {t}")

        def step(opcode, a, n):
            return self.op(f"{opcode} {t} {a}, {number(n, I32, lanes)}")
        size, sign = step("and", bits, 0x7FFFFFFF), step("and", step("lshr", bits, 16), 0x8000)
        odd = step("and", step("lshr", size, 13), 1)
        near = self.op(f"add {t} {step('add', size, 0xFFF - (112 << 23))}, {odd}")
        near = step("lshr", near, 13)
        near = self.select(step("icmp ugt", size, 0x477FEFFF), number(0x7C00, I32, lanes), near,
                           I32, lanes)                              # from 65520 on infinity
        quiet = step("or", step("and", step("lshr", size, 13), 0x3FF), 0x7E00)
        near = self.select(step("icmp ugt", size, 0x7F800000), quiet, near, I32, lanes)
        small = self.op(f"bitcast {t} {size} to {f}")               # 1/2 has steps of 2^-24, too
        small = self.op(f"fadd {f} {small}, {number(0.5, F32, lanes)}")
        small = step("sub", self.op(f"bitcast {f} {small} to {t}"), 0x3F000000)
        found = self.select(step("icmp ult", size, 0x38800000), small, near, I32, lanes)
        found = self.op(f"trunc {t} {self.op(f'or {t} {found}, {sign}')} to {halves}")
        return self.op(f"bitcast {halves} {found} to {vector_or_one('half', lanes)}")

    def nearest_f16(self, args, dtype, lanes):
        return self.widened(self.narrowed(args[0], F16, lanes), F16, lanes)

    def nearest_bf16(self, args, dtype, lanes):
        return self.widened(self.narrowed(args[0], BF16, lanes), BF16, lanes)

    def to_integer(self, x, old, new, lanes):
        """A float as an integer, by what saturates; of vectors LLVM would take each lane apart."""
        a, b = type_text(old, lanes), type_text(new, lanes)
        if lanes == 1:
            name = f"llvm.fpto{'u' if new.kind == 'u' else 's'}i.sat"
            kinds = f"{mangled(element(new), None)}.{mangled(element(old), None)}"
            return self.op(f"call {b} @{name}.{kinds}({a} {x})")
        # in 8 and 16 bits, and in fewer than the float has, the last integer is one of the floats
        near = new.itemsize < 4 or new.itemsize < old.itemsize
        out = (self.of_clamped if near else self.clamped)(x, old, new, lanes)
        if new.kind == "u":                                      # NaN is not more than 0
            return out
        known = self.op(f"fcmp ord {a} {x}, {x}")
        return self.select(known, out, number(0, new, lanes), new, lanes)

    def of_clamped(self, x, old, new, lanes):
        """Floats as integers, moved into range before; NaN becomes the least."""
        least, most = (number(end, old, lanes) for end in (np.iinfo(new).min, np.iinfo(new).max))
        x = self.select(self.compare("gt", x, least, old, lanes), x, least, old, lanes)
        x = self.select(self.compare("lt", x, most, old, lanes), x, most, old, lanes)
        wide = new if new.itemsize >= 4 else I32
        return self.cast(self.truncated(x, old, wide, lanes), wide, new, lanes)

    def clamped(self, x, old, new, lanes):
        """Floats as integers, those out of range replaced behind; NaN becomes the least."""
        info, out = np.iinfo(new), self.truncated(x, old, new, lanes)
        less = self.compare("lt", x, number(info.max + 1, old, lanes), old, lanes)
        out = self.select(less, out, number(info.max, new, lanes), new, lanes)
        more = self.compare("ge", x, number(info.min, old, lanes), old, lanes)
        return self.select(more, out, number(info.min, new, lanes), new, lanes)

    def truncated(self, x, old, new, lanes):
        """Floats that are in range as integers."""
        how = "fptoui" if new.kind == "u" else "fptosi"
        return self.op(f"{how} {type_text(old, lanes)} {x} to {type_text(new, lanes)}")


#   instruction   what writes it, where that is more than one LLVM instruction
STRUCTURED = {
    "select": Instructions.chosen,
    "max": Instructions.larger,
    "min": Instructions.smaller,
    "neg": Instructions.negative,
    "abs": Instructions.absolute,
    "sign": Instructions.sign,
    "floor": Instructions.floor,
    "ceil": Instructions.ceil,
    "round": Instructions.nearest,
    "sqrt": Instructions.root,
    "rsqrt": Instructions.inverse_root,
    "is_finite": Instructions.is_finite,
    "round_f16": Instructions.nearest_f16,
    "round_bf16": Instructions.nearest_bf16,
    "not": Instructions.inverted,
    "div": Instructions.quotient,
    "rem": Instructions.remainder,
    "shl": Instructions.shifted_left,
    "shr": Instructions.shifted_right,
}

#   instruction   LLVM
FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv",
         "eq": "fcmp oeq", "ne": "fcmp une", "lt": "fcmp olt", "le": "fcmp ole", "gt": "fcmp ogt",
         "ge": "fcmp oge"}
INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "div": "{s}div", "rem": "{s}rem",
           "and": "and", "or": "or", "xor": "xor", "shl": "shl", "shr": "{r}shr",
           "eq": "icmp eq", "ne": "icmp ne", "lt": "icmp {s}lt", "le": "icmp {s}le",
           "gt": "icmp {s}gt", "ge": "icmp {s}ge"}
LOGICAL = {"add": "or", "mul": "and", "and": "and", "or": "or", "xor": "xor", "sub": "xor",
           "eq": "icmp eq", "ne": "icmp ne", "lt": "icmp ult", "le": "icmp ule", "gt": "icmp ugt",
           "ge": "icmp uge"}
