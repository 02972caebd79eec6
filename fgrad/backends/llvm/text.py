"""LLVM functions written as text, one instruction a line.

`Function` is a writer: every method that computes appends one instruction and returns the name of
its result.  An operand is an SSA name (`str`) or a constant (Python `int`), and index arithmetic on
constants is done at once, so that static sizes vanish from the text.  Text is used because building
`llvmlite.ir` objects costs some thirty times more Python time.  Relies on nothing; the scalar
emitter, the contraction engine, vector math and sorting write with it.

    f = Function("axpy", "ptr noalias %x, ptr noalias %y, i64 %n")
    with f.loop(0, "%n") as loop:
        x = f.load("float", f.gep("float", "%x", loop.index))
        ...
    f.ret()
    print(f)

All names the writer makes contain a dot, so that they never collide with a user's.
"""

from __future__ import annotations

import operator
import re
from contextlib import contextmanager
from functools import lru_cache

BYTES = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8,
         "ptr": 8}
PIECED = 32                # bytes of vectors, some of whose elements are stored in pieces
ZEROS = 64                 # bytes of zeros that reads of nothing read
KERNEL = "nounwind alignstack(64)"     # attributes of a kernel that keeps vectors over calls
COMPARE = {"eq": operator.eq, "ne": operator.ne, "slt": operator.lt, "sle": operator.le,
           "sgt": operator.gt, "sge": operator.ge}
PAST_CACHES = ", !nontemporal !0"       # of a store
SELDOM = ", !prof !1"      # of a branch that is taken seldom, to its first label
METADATA = {"!0": "!{i32 1}", "!1": '!{!"branch_weights", i32 1, i32 2000}'}
SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}   # of intrinsics


@lru_cache(maxsize=None)                         # of few types, asked for at every instruction
def vector(type, lanes):
    """The text of a vector type.

    >>> vector("float", 8)
    '<8 x float>'
    """
    return f"<{lanes} x {type}>"


@lru_cache(maxsize=None)
def mangled(type, lanes=None):
    """The part of an intrinsic's name that stands for a type.

    >>> mangled("float", 8), mangled("i64")
    ('v8f32', 'i64')
    """
    return f"{'' if lanes is None else f'v{lanes}'}{SUFFIX.get(type, type)}"


def constant(type, values):
    """A vector constant.

    >>> constant("i32", (0, 1))
    '<i32 0, i32 1>'
    """
    return "<" + ", ".join(f"{type} {v}" for v in values) + ">"


def iota(type, lanes):
    """The vector constant 0, 1, …"""
    return constant(type, range(lanes))


class Mask(str):
    """A vector of i1 that says which lanes are on; stands for a count of lanes where one is
    asked."""


class Loop:
    """What `Function.loop` hands to its body: `index`, the carried `values` as they now are, and
    `next`, the list the body fills with their values in the next one.  Afterwards `values` are the
    final ones."""

    def __init__(self, index, values):
        self.index, self.values, self.next = index, values, list(values)


class Branch:
    """What `Function.if_` hands to its body, which fills `next`; afterwards `values` are the joined
    ones."""

    def __init__(self, values):
        self.values, self.next = values, list(values)


class Function:
    """One LLVM function being written.

    `str(f)` is its text, without what declares the functions that it calls: see `declarations`.
    """

    def __init__(self, name, parameters="", *, result="void", attributes="nounwind", linkage=""):
        self.name, self.result = name, result
        before = f"define {linkage} {result}" if linkage else f"define {result}"
        self.head, self.attributes = f"{before} @{name}({parameters})", attributes
        self.allocas, self.prologue, self.lines = [], [], []
        self.spare = None                        # the address of zeros
        self.made_once = {}                  # see `values`
        self.count = 0
        self.block = "entry"                 # the label of the block being written

    def __str__(self):
        head = f"{self.head} {self.attributes} {{"
        return "\n".join([head, "entry:", *self.allocas, *self.prologue, *self.lines, "}"])

    # -- writing -------------------------------------------------------------------------------

    @contextmanager
    def at_entry(self):
        """The block's instructions, without labels, come in front of all others."""
        here, self.lines = self.lines, self.prologue
        yield
        self.lines = here

    def fresh(self, stem="v"):
        self.count += 1
        return f"%{stem}.{self.count}"

    def op(self, text):
        """Append an instruction that has a result; returns the result's name."""
        self.count += 1
        name = f"%v.{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text):
        """Append an instruction that has no result."""
        self.lines.append("  " + text)

    def label(self, name):
        self.lines.append(name + ":")
        self.block = name

    def ret(self, value=None):
        self.do("ret void" if value is None else f"ret {self.result} {value}")
        return self

    def call(self, name, *arguments, result="void"):
        """Call @name with (type, value) pairs."""
        text = f"call {result} @{name}({', '.join([f'{t} {v}' for t, v in arguments])})"
        return self.do(text) if result == "void" else self.op(text)

    # -- index arithmetic (i64; constants are folded) ------------------------------------------

    def add(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.op(f"add nsw i64 {a}, {b}")

    def sub(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.op(f"sub nsw i64 {a}, {b}")

    def mul(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.op(f"mul nsw i64 {a}, {b}")

    def div(self, a, b):
        """Quotient of numbers that are not negative."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        return a if b == 1 else self.op(f"udiv i64 {a}, {b}")

    def rem(self, a, b):
        """Remainder of numbers that are not negative."""
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        return 0 if b == 1 else self.op(f"urem i64 {a}, {b}")

    def min(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.select(self.compare("slt", a, b), "i64", a, b)

    def max(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.select(self.compare("sgt", a, b), "i64", a, b)

    def compare(self, how, a, b, type="i64"):
        """An i1; "true" or "false" for two constants (signed comparisons)."""
        if isinstance(a, int) and isinstance(b, int):
            return str(COMPARE[how](a, b)).lower()
        return self.op(f"icmp {how} {type} {a}, {b}")

    def select(self, condition, type, a, b):
        return self.op(f"select i1 {condition}, {type} {a}, {type} {b}")

    # -- memory --------------------------------------------------------------------------------

    def alloca(self, type, count=1, align=64):
        """Memory on the stack that lives as long as the call."""
        name = self.fresh("a")
        self.allocas.append(f"  {name} = alloca {type}, i64 {count}, align {align}")
        return name

    def zeros(self):
        """The address of a vector of zeros."""
        if self.spare is None:
            self.spare, v = self.alloca("i64", ZEROS // 8), f"<{ZEROS // 8} x i64>"
            self.allocas.append(f"  store {v} zeroinitializer, ptr {self.spare}, align {ZEROS}")
        return self.spare

    def gep(self, type, pointer, index):
        if index == 0 and isinstance(index, int):
            return pointer
        return self.op(f"getelementptr inbounds {type}, ptr {pointer}, i64 {index}")

    def load(self, type, pointer, align=None):
        return self.op(f"load {type}, ptr {pointer}, align {align or BYTES[type]}")

    def store(self, type, value, pointer, align=None):
        self.do(f"store {type} {value}, ptr {pointer}, align {align or BYTES[type]}")

    def prefetch(self, pointer, write=False, near=True):
        """Asks for a line of the cache, in the first one or, not `near`, in the second."""
        self.call("llvm.prefetch.p0", ("ptr", pointer), ("i32", int(write)), ("i32", 2 + near),
                  ("i32", 1))

    # -- vectors -------------------------------------------------------------------------------

    def splat(self, type, lanes, value):
        v = vector(type, lanes)
        one = self.op(f"insertelement {v} poison, {type} {value}, i32 0")
        return self.op(f"shufflevector {v} {one}, {v} poison, {vector('i32', lanes)} "
                       "zeroinitializer")

    def shuffle(self, type, lanes, a, b, picks):
        v, ints = vector(type, lanes), constant("i32", picks)
        return self.op(f"shufflevector {v} {a}, {v} {b}, {vector('i32', len(picks))} {ints}")

    def mask(self, lanes, count):
        """Lanes 0 … count-1 on.  A Mask is returned as it is."""
        if isinstance(count, Mask):
            return count
        if isinstance(count, int):
            on = ("true" if lane < count else "false" for lane in range(lanes))
            return Mask(constant("i1", on))
        wide = self.splat("i64", lanes, count)
        return Mask(self.op(f"icmp slt {vector('i64', lanes)} {iota('i64', lanes)}, {wide}"))

    def vector_load(self, type, lanes, pointer, count=None, align=None):
        """`lanes` elements; those from `count` on are zero and their memory is not touched."""
        v, align = vector(type, lanes), align or BYTES[type]
        if count is None or count == lanes:
            return self.load(v, pointer, align)
        mask = (vector("i1", lanes), self.mask(lanes, count))
        return self.call(f"llvm.masked.load.{mangled(type, lanes)}.p0", ("ptr", pointer),
                         ("i32", align), mask, (v, "zeroinitializer"), result=v)

    def vector_store(self, type, lanes, value, pointer, count=None, align=None):
        """The first `count` elements of a vector; the memory behind them is not touched.

        A number of them that is known is stored in pieces of 1, 2, 4, … elements, where vectors
        have 32 bytes or less: a masked store of those takes AMD's processors 12 cycles and more.
        """
        v, align = vector(type, lanes), align or BYTES[type]
        if count is None or count == lanes:
            self.store(v, value, pointer, align)
        elif count == 1:                         # LLVM stores too much, see Stores.miscompiled
            self.store(type, self.op(f"extractelement {v} {value}, i64 0"), pointer, align)
        elif isinstance(count, int) and lanes * BYTES[type] <= PIECED:
            for size in [1 << n for n in range(count.bit_length())[::-1] if count >> n & 1]:
                first = count & -2 * size
                piece = self.shuffle(type, lanes, value, "poison", range(first, first + size))
                place = self.gep(type, pointer, first)
                self.store(vector(type, size), piece, place, align)
        else:
            mask = (vector("i1", lanes), self.mask(lanes, count))
            self.call(f"llvm.masked.store.{mangled(type, lanes)}.p0", (v, value),
                      ("ptr", pointer), ("i32", align), mask)

    # -- control -------------------------------------------------------------------------------

    @contextmanager
    def loop(self, start, stop, step=1, carried=()):
        """for index in range(start, stop, step), with `carried` (type, first value) pairs.

        A loop that is known to run once becomes straight code.
        """
        if isinstance(start, int) and isinstance(stop, int) and start < stop <= start + step:
            loop = Loop(start, [value for _, value in carried])
            yield loop
            loop.values = loop.next
            return
        self.count += 1
        n, before = self.count, self.block
        loop = Loop(f"%i.{n}", [f"%c.{n}.{j}" for j in range(len(carried))])
        self.do(f"br label %head.{n}")
        self.label(f"head.{n}")
        phis = len(self.lines)
        more = self.compare("slt", loop.index, stop)
        self.do(f"br i1 {more}, label %body.{n}, label %done.{n}")
        self.label(f"body.{n}")
        yield loop
        last, after = self.block, self.op(f"add nsw i64 {loop.index}, {step}")
        self.do(f"br label %head.{n}")
        firsts = [("i64", start), *carried]
        names, nexts = [loop.index, *loop.values], [after, *loop.next]
        self.lines[phis:phis] = [
            f"  {name} = phi {type} [ {first}, %{before} ], [ {next}, %{last} ]"
            for name, (type, first), next in zip(names, firsts, nexts)]
        self.label(f"done.{n}")

    @contextmanager
    def if_(self, condition, carried=()):
        """The body runs where `condition` (i1) holds.

        `carried` are (type, value) pairs: the values that stand if it does not run.
        """
        if condition == "true":
            branch = Branch([value for _, value in carried])
            yield branch
            branch.values = branch.next
            return
        self.count += 1
        n, before = self.count, self.block
        branch = Branch([value for _, value in carried])
        self.do(f"br i1 {condition}, label %then.{n}, label %join.{n}")
        self.label(f"then.{n}")
        yield branch
        last = self.block
        self.do(f"br label %join.{n}")
        self.label(f"join.{n}")
        branch.values = [
            self.op(f"phi {type} [ {value}, %{before} ], [ {next}, %{last} ]")
            for (type, value), next in zip(carried, branch.next)]


INTRINSIC = re.compile(r"@llvm\.[\w.]+\(")
CALL = re.compile(r"call (<[^>]*>|\w+) (@[\w.]+)\((.*)\)$", re.M)
TYPE = re.compile(r"(<\d+ x \w+>|\w+) ")


def declarations(text):
    """The lines that a text of functions needs in its module: METADATA, and `declare` of the @llvm
    intrinsics, read off their calls.

    >>> declarations("%y = call double @llvm.fma.f64(double %x, double %x, double %x)")
    ['declare double @llvm.fma.f64(double, double, double)']
    """
    out = []
    for call in sorted(set(INTRINSIC.findall(text))):
        line = text.rfind("\n", 0, text.index(call)) + 1
        result, name, arguments = CALL.search(text, line).groups()
        out.append(f"declare {result} {name}({', '.join(types_of(arguments))})")
    return out + [f"{n} = {node}" for n, node in METADATA.items() if f" {n}\n" in text]


def types_of(arguments):
    """The types of a call's arguments."""
    depth, start, out = 0, 0, []
    for k, c in enumerate(arguments + ","):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            out.append(TYPE.match(arguments[start:k].strip()).group(1))
            start = k + 1
    return out
