"""The loops that operators of arrays run, as LLVM text.

One for each operator, dtype and form of the operands, two arrays or an array and a number:

    void add.float.arrays(float *out, float *x, float *y, i64 n)

It does vectors, then what is left one by one.  `operators_text.py` builds on it.
"""

from __future__ import annotations

KINDS = {"float": 4, "double": 8, "i32": 4}      # LLVM's type → bytes; the order is `operators`'
VECTOR = 32                # bytes

ARRAYS, NUMBER = "arrays", "number"              # the forms of operands
# name → instruction of floats, of integers (None: left to Python); LLVM's order of comparison
ARITHMETIC = {"add": ("fadd", "add"), "sub": ("fsub", "sub"), "mul": ("fmul", "mul"),
              "truediv": ("fdiv", None)}
COMPARISONS = {"eq": ("oeq", "eq"), "ne": ("une", "ne"), "lt": ("olt", "slt"),
               "le": ("ole", "sle"), "gt": ("ogt", "sgt"), "ge": ("oge", "sge")}
REFLECTED = {f"r{name}": name for name in ARITHMETIC}        # those of a number and an array
COMMUTED = {"radd": "add", "rmul": "mul"}        # that need no loops of their own
OPERATORS = (*ARITHMETIC, *REFLECTED, "neg", *COMPARISONS)


def is_float(kind):
    """Is an LLVM type one of floats?"""
    return kind in ("float", "double")


LOOP = """
define internal void @{name}(ptr noalias %out, ptr %x, ptr %y, i64 %n) nounwind {{
entry:
{before}
  %whole = and i64 %n, -{lanes}
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %body ]
  %more = icmp ult i64 %i, %whole
  br i1 %more, label %body, label %rest
body:
{vectors}
  %i1 = add i64 %i, {lanes}
  br label %head
rest:
  %j = phi i64 [ %i, %head ], [ %j1, %one ]
  %left = icmp ult i64 %j, %n
  br i1 %left, label %one, label %done
one:
{elements}
  %j1 = add i64 %j, 1
  br label %rest
done:
  ret void
}}
"""


def loop(name, kind, form):
    """The loop of an operator for one dtype and one form."""
    lanes = VECTOR // KINDS[kind]
    vector = f"<{lanes} x {kind}>"
    before = [] if form == ARRAYS else [
        f"  %s = load {kind}, ptr %y",
        f"  %s.0 = insertelement {vector} poison, {kind} %s, i64 0",
        f"  %s.v = shufflevector {vector} %s.0, {vector} poison, <{lanes} x i32> zeroinitializer"]
    return LOOP.format(name=loop_name(name, kind, form), lanes=lanes, before="\n".join(before),
                       vectors=step(name, kind, form, "v", "i", lanes),
                       elements=step(name, kind, form, "e", "j", 1))


def loop_name(name, kind, form):
    """The name of the loop of an operator."""
    return f"{COMMUTED.get(name, name)}.{kind}.{form}"


def step(name, kind, form, mark, at, lanes):
    """The lines of one step at an index; names end in `mark`."""
    y, stored = f"%y.{mark}", "i8" if name in COMPARISONS else kind
    if form == NUMBER:
        y = "%s" if lanes == 1 else "%s.v"
    lines = [*read("x", kind, mark, at, lanes),
             *(read("y", kind, mark, at, lanes) if form == ARRAYS and name != "neg" else []),
             *computed(name, kind, f"%x.{mark}", y, mark, lanes),
             f"  %o.p{mark} = getelementptr {stored}, ptr %out, i64 %{at}",
             f"  store {wide(stored, lanes)} %r.{mark}, ptr %o.p{mark}, "
             f"align {KINDS.get(stored, 1)}"]
    return "\n".join(lines)


def wide(scalar, lanes):
    """The type of some elements."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def read(source, kind, mark, at, lanes):
    """The lines that read elements of an operand."""
    return [f"  %{source}.p{mark} = getelementptr {kind}, ptr %{source}, i64 %{at}",
            f"  %{source}.{mark} = load {wide(kind, lanes)}, ptr %{source}.p{mark}, "
            f"align {KINDS[kind]}"]


def computed(name, kind, x, y, mark, lanes):
    """The lines that compute the result `%r`, of bytes where it is one of truth."""
    t = wide(kind, lanes)
    if name == "neg":
        negated = f"fneg {t}" if is_float(kind) else f"sub {t} zeroinitializer,"
        return [f"  %r.{mark} = {negated} {x}"]
    x, y = (y, x) if name in REFLECTED else (x, y)
    line = f"{instruction_of(name, kind)} {t} {x}, {y}"
    if name not in COMPARISONS:
        return [f"  %r.{mark} = {line}"]
    return [f"  %c.{mark} = {line}",
            f"  %r.{mark} = zext {wide('i1', lanes)} %c.{mark} to {wide('i8', lanes)}"]


def instruction_of(name, kind):
    """LLVM's instruction for an operator, or None where integers have none."""
    if name in COMPARISONS:
        ordered, signed = COMPARISONS[name]
        return f"fcmp {ordered}" if is_float(kind) else f"icmp {signed}"
    floats, integers = ARITHMETIC[REFLECTED.get(name, name)]
    return floats if is_float(kind) else integers


def has_loop(name, kind, form):
    """Is there a loop for the operator on this dtype and form?"""
    if name == "neg":
        return form == ARRAYS
    return instruction_of(name, kind) is not None


def text():
    """The text of all loops."""
    return "".join(loop(name, kind, form) for name in OPERATORS if name not in COMMUTED
                   for form in (ARRAYS, NUMBER) for kind in KINDS if has_loop(name, kind, form))
