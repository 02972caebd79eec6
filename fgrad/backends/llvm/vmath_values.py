"""Arithmetic on LLVM values, written with Python's operators.

A `Value` is the result of one instruction over all lanes of a vector (or a scalar, at one lane),
and `a * b + 1.0` appends a multiplication and an addition to the body it belongs to; Python numbers
are constants.  So the functions of vector math read as formulas, and are written once for every
dtype and width.  Relies on `text`, and on `host` for what registers can do; the `vmath_*` files
rely on it.

    body = Body(8)
    x = body.argument("f32")
    y = fma(x, x, 1.0)                 # %v2 = call <8 x float> @llvm.fma.v8f32(<8 x float> %x0, …
"""

from __future__ import annotations

import struct

from ...records import frozen
from .host import HOST
from .text import SELDOM, constant, mangled, vector

#   kind      LLVM        float and i1 kinds are as wide as the body; `index` and `flag` are scalars
ELEMENT = {"f32": "float", "f64": "double", "i32": "i32", "i64": "i64", "i1": "i1",
           "index": "i64", "flag": "i1"}
SCALAR = ("index", "flag")
REGISTER = 512             # bits of the widest vector register

#   bytes of a vector register to the instruction that picks its i32s by indices, where there is one
PICKS = {32: "llvm.x86.avx2.permd", 64: "llvm.x86.avx512.permvar.si.512"}
LOOKS_UP = HOST.vector_bytes in PICKS


@frozen
class Format:
    """A binary floating-point format.

    bits: the kind of integers as wide.  mantissa: bits of the fraction.  bias: of the exponent.
    """
    bits: str
    mantissa: int
    bias: int

    @property
    def width(self):
        return int(self.bits[1:])

    @property
    def epsilon(self):
        return 2.0 ** -self.mantissa

    @property
    def smallest(self):
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def magic(self):
        """Added to a small float, leaves its rounding to an integer in the low bits."""
        return 1.5 * 2.0 ** self.mantissa

    def pattern(self, x):
        """The bits of x as an integer."""
        codes = "<fI" if self.width == 32 else "<dQ"
        return struct.unpack(codes[0] + codes[2], struct.pack(codes[:2], x))[0]


FORMATS = {"f32": Format("i32", 23, 127), "f64": Format("i64", 52, 1023)}


class Body:
    """The body of one function, `lanes` wide.  `calls` are the other vmath functions it names."""

    def __init__(self, lanes):
        self.lanes, self.lines, self.calls = lanes, [], []
        self.count, self.block = 0, "entry"

    def type(self, kind):
        element = ELEMENT[kind]
        return element if self.lanes == 1 or kind in SCALAR else vector(element, self.lanes)

    def suffix(self, kind):
        """The part of an intrinsic's name that stands for values of a kind."""
        return mangled(ELEMENT[kind], None if self.lanes == 1 else self.lanes)

    def argument(self, kind):
        self.count += 1
        return Value(self, f"%x{self.count - 1}", kind)

    def op(self, kind, text):
        """Append an instruction; returns its result, of a kind."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return Value(self, f"%v{self.count}", kind)

    def do(self, text):
        self.lines.append("  " + text)

    def label(self, name):
        self.lines.append(name + ":")
        self.block = name

    def value(self, x, kind):
        """The operand x: a Value, or a number as a constant of a kind."""
        if isinstance(x, Value):
            return x
        if kind.startswith("f") and kind != "flag":
            number = literal(x, kind)
        else:
            number = str(int(x))
        if self.lanes == 1 or kind in SCALAR:
            return Value(self, number, kind)
        return Value(self, f"splat ({ELEMENT[kind]} {number})", kind)

    def call(self, kind, function, arguments):
        typed = ", ".join(f"{self.type(a.kind)} {a.name}" for a in arguments)
        return self.op(kind, f"call {self.type(kind)} @{function}({typed})")

    def splat(self, kind, name):
        """A scalar in every lane."""
        if self.lanes == 1:
            return Value(self, name, kind)
        t, zeros = self.type(kind), f"<{self.lanes} x i32> zeroinitializer"
        one = self.op(kind, f"insertelement {t} poison, {ELEMENT[kind]} {name}, i32 0")
        return self.op(kind, f"shufflevector {t} {one.name}, {t} poison, {zeros}")


def literal(x, kind):
    """A float as LLVM spells it: f32 too by the bits of a double.

    >>> literal(0.1, "f32")
    '0x3FB99999A0000000'
    """
    if kind == "f32":
        x = struct.unpack("<f", struct.pack("<f", x))[0]
    return f"0x{FORMATS['f64'].pattern(x):016X}"


class Value:
    """The result of an instruction in a body.  Comparisons with NaN are false; `>>` is logical."""
    __slots__ = ("body", "name", "kind")

    def __init__(self, body, name, kind):
        self.body, self.name, self.kind = body, name, kind

    @property
    def format(self):
        return FORMATS[self.kind]

    def binary(self, floating, integer, other, kind=None, swapped=False):
        """One instruction on self and other, the operands' kind or a given one."""
        a, b = self, self.body.value(other, self.kind)
        if swapped:
            a, b = b, a
        opcode = floating if self.kind in FORMATS else integer
        t = self.body.type(self.kind)
        return self.body.op(kind or self.kind, f"{opcode} {t} {a.name}, {b.name}")

    def __add__(self, other): return self.binary("fadd", "add", other)
    def __sub__(self, other): return self.binary("fsub", "sub", other)
    def __mul__(self, other): return self.binary("fmul", "mul", other)
    def __truediv__(self, other): return self.binary("fdiv", None, other)
    def __rsub__(self, other): return self.binary("fsub", "sub", other, swapped=True)
    def __rtruediv__(self, other): return self.binary("fdiv", None, other, swapped=True)
    __radd__, __rmul__ = __add__, __mul__

    def __and__(self, other): return self.binary(None, "and", other)
    def __or__(self, other): return self.binary(None, "or", other)
    def __xor__(self, other): return self.binary(None, "xor", other)
    def __lshift__(self, other): return self.binary(None, "shl", other)
    def __rshift__(self, other): return self.binary(None, "lshr", other)

    def __lt__(self, other): return self.binary("fcmp olt", "icmp slt", other, "i1")
    def __le__(self, other): return self.binary("fcmp ole", "icmp sle", other, "i1")
    def __gt__(self, other): return self.binary("fcmp ogt", "icmp sgt", other, "i1")
    def __ge__(self, other): return self.binary("fcmp oge", "icmp sge", other, "i1")
    def equals(self, other): return self.binary("fcmp oeq", "icmp eq", other, "i1")
    def differs(self, other): return self.binary("fcmp one", "icmp ne", other, "i1")
    def unordered(self, other): return self.binary("fcmp uno", None, other, "i1")

    def __neg__(self):
        return self.body.op(self.kind, f"fneg {self.body.type(self.kind)} {self.name}")

    def __invert__(self):
        return self ^ -1

    def convert(self, how, kind):
        """fpext, fptrunc, bitcast … to another kind."""
        types = self.body.type(self.kind), self.body.type(kind)
        return self.body.op(kind, f"{how} {types[0]} {self.name} to {types[1]}")

    def bits(self):
        """The bits of a float, as an integer."""
        return self.convert("bitcast", self.format.bits)

    def as_float(self):
        """The float that has these bits."""
        return self.convert("bitcast", "f32" if self.kind == "i32" else "f64")

    def wide(self):
        """As f64."""
        return self if self.kind == "f64" else self.convert("fpext", "f64")

    def narrow(self, kind):
        """An f64 rounded to a kind of float."""
        return self if kind == "f64" else self.convert("fptrunc", kind)


def intrinsic(name, *operands):
    """@llvm.name of floats, elementwise."""
    first = next(x for x in operands if isinstance(x, Value))
    values = [first.body.value(x, first.kind) for x in operands]
    return first.body.call(first.kind, f"llvm.{name}.{first.body.suffix(first.kind)}", values)


def fma(a, b, c):
    """a * b + c, rounded once."""
    return intrinsic("fma", a, b, c)


def absolute(x):
    return intrinsic("fabs", x)


def copysign(size, sign):
    return intrinsic("copysign", size, sign)


def select(condition, x, y, kind=None):
    """x in the lanes where the condition holds, y elsewhere; `kind` where both are numbers."""
    body = condition.body
    kind = kind or next(v.kind for v in (x, y) if isinstance(v, Value))
    x, y = body.value(x, kind), body.value(y, kind)
    t = body.type(kind)
    return body.op(kind, f"select {body.type('i1')} {condition.name}, {t} {x.name}, {t} {y.name}")


def at_most(x, high):
    """min(x, high), where NaN stays NaN: written as the machine's one instruction has it."""
    return select(x > high, high, x)


def at_least(x, low):
    """max(x, low), where NaN stays NaN."""
    return select(x < low, low, x)


def horner(x, coefficients):
    """c0 + c1 x + c2 x^2 + …"""
    *rest, total = coefficients
    for c in reversed(rest):
        total = fma(total, x, c)
    return total


def shuffled(body, kind, lanes, a, b, picks):
    """The name of a vector of these lanes of a and b, side by side; a and b have `lanes` each."""
    t, ints = vector(ELEMENT[kind], lanes), vector("i32", len(picks))
    return body.op(kind, f"shufflevector {t} {a}, {t} {b}, {ints} {constant('i32', picks)}").name


def lookup(table, index):
    """table[index mod 8] in each lane: eight i32s in a register, on processors where LOOKS_UP."""
    body, lanes, width = index.body, index.body.lanes, HOST.vector_bytes // 4
    t = vector("i32", width)
    numbers = constant("i32", table * (width // 8))

    def picked(name):
        return body.op("i32", f"call {t} @{PICKS[HOST.vector_bytes]}({t} {numbers}, {t} {name})")
    if lanes == 1:
        one = body.op("i32", f"insertelement {t} poison, i32 {index.name}, i32 0")
        return body.op("i32", f"extractelement {t} {picked(one.name).name}, i32 0")
    parts = [picked(shuffled(body, "i32", lanes, index.name, "poison",
                             [(start + n) % lanes for n in range(width)])).name
             for start in range(0, lanes, width)]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2] + ["poison"])
        parts = [shuffled(body, "i32", width, a, b, range(2 * width)) for a, b in pairs]
        width *= 2
    return Value(body, shuffled(body, "i32", width, parts[0], "poison", range(lanes)), "i32")


def any_lane(mask):
    """Whether the mask holds in any lane, as a flag."""
    body = mask.body
    if body.lanes == 1:
        return Value(body, mask.name, "flag")
    return body.call("flag", f"llvm.vector.reduce.or.v{body.lanes}i1", [mask])


def any_from(x, limit, unsigned=False):
    """Whether an i32 or i64 is `limit` or more in any lane, as a flag.

    Halves of the lanes are put onto each other, down to one register, and then there is one
    comparison: the larger of two; of unsigned ones, where limit is a power of two, all their bits.
    """
    body, lanes, name, element = x.body, x.body.lanes, x.name, ELEMENT[x.kind]
    t = body.type(x.kind)
    while lanes > REGISTER // int(element[1:]):
        a, b = [shuffled(body, x.kind, lanes, name, "poison", half)
                for half in (range(lanes // 2), range(lanes // 2, lanes))]
        lanes //= 2
        t = vector(element, lanes)
        name = body.op(x.kind, f"or {t} {a}, {b}" if unsigned else
                       f"call {t} @llvm.smax.{mangled(element, lanes)}({t} {a}, {t} {b})").name
    compared = f"icmp {'uge' if unsigned else 'sge'} {t} {name}"
    if lanes == 1:
        return body.op("flag", f"{compared}, {limit}")
    flags = vector("i1", lanes)
    found = body.op("i1", f"{compared}, splat ({element} {limit})").name
    return body.op("flag", f"call i1 @llvm.vector.reduce.or.v{lanes}i1({flags} {found})")


def where_any(mask, rare, values):
    """`values`, but in the lanes of the mask those of rare(), which runs only if there are any."""
    return instead_if(any_lane(mask), values, lambda: [
        select(mask, new, old) for new, old in zip(rare(), values)])


def instead_if(flag, values, rare):
    """`values`, or those of rare(), which runs if the flag is set: seldom."""
    body = flag.body
    before, n = body.block, body.count
    body.do(f"br i1 {flag.name}, label %rare{n}, label %join{n}{SELDOM}")
    body.label(f"rare{n}")
    others = rare()
    last = body.block
    body.do(f"br label %join{n}")
    body.label(f"join{n}")
    return [body.op(x.kind, f"phi {body.type(x.kind)} "
                            f"[ {x.name}, %{before} ], [ {y.name}, %{last} ]")
            for x, y in zip(values, others)]


def unless(flag, usual, general):
    """usual(), but general() if the flag is set: seldom."""
    body = flag.body
    n = body.count
    body.do(f"br i1 {flag.name}, label %general{n}, label %usual{n}{SELDOM}")
    found = []
    for label, formula in ((f"general{n}", general), (f"usual{n}", usual)):
        body.label(label)
        found.append((formula(), body.block))
        body.do(f"br label %after{n}")
    body.label(f"after{n}")
    (a, from_a), (b, from_b) = found
    return body.op(a.kind, f"phi {body.type(a.kind)} "
                           f"[ {a.name}, %{from_a} ], [ {b.name}, %{from_b} ]")


def seldom(name, x):
    """The value at x of another function of vector math, see `vmath.SELDOM`."""
    x.body.calls.append(name)
    return x.body.call(x.kind, f"fg.{name}.{x.body.suffix(x.kind)}", [x])


def repeat(body, values, step):
    """The values after `values, flag = step(values)`, run once and again while the flag holds."""
    before, n = body.block, body.count
    names = [Value(body, f"%loop{n}.{i}", x.kind) for i, x in enumerate(values)]
    body.do(f"br label %loop{n}")
    body.label(f"loop{n}")
    at = len(body.lines)
    after, again = step(names)
    last = body.block
    body.do(f"br i1 {again.name}, label %loop{n}, label %done{n}")
    body.lines[at:at] = [
        f"  {name.name} = phi {body.type(x.kind)} [ {x.name}, %{before} ], [ {y.name}, %{last} ]"
        for name, x, y in zip(names, values, after)]
    body.label(f"done{n}")
    return after
