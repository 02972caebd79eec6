"""Loop IR as OpenCL C: the text of one kernel, and of the functions that contractions call.

On a CPU device a loop with lanes becomes explicit vectors (`float16`): a read of unit stride is a
vector load; what lies apart, is guarded or ends before the last lane is done lane by lane in a
short loop, so that nothing is read that is not there.  A parallel loop is cut into parts, one a
work-item; on a GPU every iteration of its nest is one.  Relies on `instructions` for expressions
and `names` for the user's words; `product` and `backend` rely on it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

from ... import index, scalar
from ...index import Dynamic, Var
from ...loop import Accumulate, For, Let, Start, Store, accumulators
from ...loop_text import note_text
from ...scalar import REDUCTIONS
from ...bf16 import BF16
from ...types import BOOL, F16, I32, I64
from ..expressions import Expressions
from .instructions import Instructions, number, stored, type_text
from .names import Names

LONG_TEXT = 60             # characters; a longer expression gets a name


class Emitter(Expressions):
    """Writes expressions and statements into one function.

    `pointers`: Buffer → name.  `env`: Var → (name or None, constant), their sum is its value.
    Values are (text, is it a vector); `vec` is (Var, lanes) inside of a vector loop, `lane` the
    name of the lane inside of a loop over lanes.
    """

    def __init__(self, pointers, names, instructions, *, env=None, wide_index=False):
        self.pointers, self.cnames, self.instructions = pointers, names, instructions
        self.env = dict(env or {})
        self.int = "long" if wide_index else "int"
        self.values, self.started, self.slots, self.words = {}, {}, {}, {}
        self.out, self.memo, self.shared, self.temporaries = [], [{}], set(), 0
        self.vec, self.count, self.lane, self.ranges, self.copy = None, 0, None, (), 0
        self.parts = None
        self.note = (None, None)

    # -- writing --------------------------------------------------------------------------------

    def line(self, text, source=None):
        note, self.note = note_text(source, self.note) if source else ("", self.note)
        self.out.append(f"{text:60} // {note}" if note else text)

    def fresh(self):
        self.temporaries += 1
        return f"t_{self.temporaries}"

    @contextmanager
    def block(self, head):
        """Braces; what is computed inside is not known behind them."""
        self.out.append(head + " {" if head else "{")
        outer, self.out = self.out, []
        self.memo.append({})
        yield
        self.memo.pop()
        outer += [self.out, "}"]
        self.out = outer

    @property
    def lanes(self):
        return self.vec[1] if self.vec else 1

    # -- indices --------------------------------------------------------------------------------

    def index(self, x):
        """x as an expression; in a vector loop that of its first lane."""
        const, parts = x.const, []
        for a, c in sorted(x.terms, key=lambda t: -t[1]):
            name, k = self.atom(a)
            const += c * k
            if name is not None:
                parts.append(name if c == 1 else f"{name} * {c}" if c > 0 else f"{name} * ({c})")
        if const or not parts:
            parts.append(str(const))
        return " + ".join(parts).replace("+ -", "- ")

    def atom(self, a):
        """An atom as (name or None, constant)."""
        if isinstance(a, Var):
            return self.env[a]
        if isinstance(a, Dynamic):
            text, wide = self.value(a.node)
            assert not wide, "a run-time index that differs by lane is read lane by lane"
            plain = text.isidentifier() and a.node.dtype == I32
            return (text if plain else f"({self.int})({text})"), 0
        return f"(({self.index(a.ix)}) {a.op} {a.n})", 0

    def varies(self, x):
        """Does an Ix, or a node, differ from lane to lane?"""
        return bool(self.vec) and bool(x.free & self.vec[0].bit)

    def unit(self, x):
        return index.is_affine(x, self.vec[0]) and index.stride(x, self.vec[0]) == 1

    def conditions(self, ranges):
        """The test that all ranges hold."""
        tests = []
        for x, lo, hi in ranges:
            at, low, high = self.index(x), x.lo < lo, x.hi >= hi
            if hi == lo + 1 and low and high:
                tests.append(f"{at} == {lo}")
            else:
                tests += [f"{at} >= {lo}"] * low + [f"{at} < {hi}"] * high
        return " && ".join(tests) or "1"

    # -- values ---------------------------------------------------------------------------------

    def splat(self, value, dtype):
        """A value as a vector, where there is a vector loop."""
        text, wide = value
        if wide or not self.vec:
            return text
        return f"({type_text(dtype, self.lanes)})({f'-(char)({text})' if dtype == BOOL else text})"

    def value(self, n):
        """(text, is it a vector) of a scalar node."""
        found = self.known(n)
        if found is None:
            for a in self.pending(n):            # deep expressions: arguments first, no recursion
                self.keep(a, *self.compute(a))
            found = self.known(n)
        return found

    def known(self, n):
        key = n, self.ranges
        return next((scope[key] for scope in reversed(self.memo) if key in scope), None)

    def keep(self, n, text, wide):
        """Remembers a value; one that is long or used again gets a name."""
        plain = n.op in ("const", "name") or text.replace("_", "a").isalnum()
        if not plain and (n in self.shared or len(text) > LONG_TEXT):
            name = self.fresh()
            self.line(f"const {type_text(n.dtype, self.lanes if wide else 1)} {name} = {text};")
            text = name
        self.memo[-1][n, self.ranges] = text, wide

    def number(self, n):
        return number(n.data, n.dtype)

    def named(self, n):
        text, wide = self.values[n.data]
        return (self.at_lane(text, n.dtype), False) if wide and self.lane else (text, wide)

    def at_lane(self, name, dtype):
        """The element of a vector variable at the current lane."""
        return f"((const {element_text(dtype)} *)&{name})[{self.lane}]"

    def index_value(self, n):
        """An index as a number of the node's dtype."""
        x, own = n.data, I64 if self.int == "long" else I32
        if not self.varies(x):
            return self.instructions.cast(f"({self.index(x)})", own, n.dtype, 1), False
        v, w = self.vec
        if not index.is_affine(x, v):
            return self.by_lane(n)
        steps = ", ".join(str(k * index.stride(x, v)) for k in range(w))
        t = type_text(own, w)
        at = f"(({t})({self.index(x)}) + ({t})({steps}))"
        return self.instructions.cast(at, own, n.dtype, w), True

    # -- loads and guards -----------------------------------------------------------------------

    def load(self, n):
        """The element of a buffer at x, or the vector of them."""
        buffer, x = n.data
        pointer, dtype = self.pointers[buffer], buffer.type.dtype
        safe = not self.ranges or 0 <= x.lo and x.hi < buffer.type.size
        if not self.varies(x) and safe:
            return self.element(buffer, self.index(x)), False
        if self.ranges or dtype == F16 or self.count < self.lanes or not self.unit(x):
            return self.by_lane(n)
        text = f"vload{self.lanes}(0, {pointer} + {self.index(x)})"
        if dtype == BOOL:
            text = f"({text} != (uchar{self.lanes})(0))"
        return self.instructions.widened(text, self.lanes) if dtype is BF16 else text, True

    def element(self, buffer, at):
        """The value of one element; f16 and bf16 become float."""
        pointer, dtype = self.pointers[buffer], buffer.type.dtype
        if dtype == F16:
            return f"vload_half({at}, {pointer})"
        return self.instructions.widened(f"{pointer}[{at}]", 1) if dtype is BF16 else \
            f"{pointer}[{at}]"

    def by_lane(self, n):
        """A vector made in a loop over its lanes; where a range fails, and at idle lanes, 0."""
        name, ranges = self.fresh(), self.ranges
        self.line(f"{type_text(n.dtype, self.lanes)} {name} = 0;")
        with self.lane_loop():
            test = self.conditions(ranges)
            with self.block(f"if ({test})") if test != "1" else nothing():
                text, _ = self.value(n)
                text = f"-(char)({text})" if n.dtype == BOOL else text
                self.line(f"(({element_text(n.dtype)} *)&{name})[{self.lane}] = {text};")
        return name, True

    @contextmanager
    def lane_loop(self):
        """for each lane in use: scalars, the loop variable standing at the lane."""
        v = self.vec[0]
        kept = self.vec, self.memo, self.ranges, self.env[v]
        base, const = self.env[v]
        with self.block(f"for (int l = 0; l < {self.count}; l++)"):
            self.vec, self.memo, self.ranges, self.lane = None, [{}], (), "l"
            self.env[v] = (f"({base} + l)" if base else "l"), const
            yield
            self.vec, self.memo, self.ranges, self.env[v] = kept
            self.lane = None

    def guard(self, n):
        """The inside where the ranges hold; its reads do not leave them."""
        fixed = tuple(r for r in n.data if not self.varies(r[0]))
        moving = tuple(r for r in n.data if self.varies(r[0]))
        if not moving:
            return self.branches(fixed, n, lambda: self.value(n.args[0]))
        if n.args[0].op in ("load", "const") and n.args[1].op == "const" and not self.ranges:
            return self.by_lane(n)
        if fixed:
            return self.branches(fixed, n, lambda: self.masked(n, moving))
        return self.masked(n, moving)

    def branches(self, ranges, n, inside):
        """`test ? inside : outside`, as statements where either needs statements."""
        test, wide = self.conditions(ranges), bool(self.vec) and self.varies(n)
        a_lines, a = self.apart(inside)
        b_lines, b = self.apart(lambda: self.value(n.args[1]))
        wide = wide or a[1] or b[1]
        a, b = (self.splat(v, n.dtype) if wide else v[0] for v in (a, b))
        if not a_lines and not b_lines:
            return (f"(({test}) ? {a} : {b})" if wide else
                    self.instructions.select(f"({test})", a, b, n.dtype, 1)), wide
        name = self.fresh()
        self.line(f"{type_text(n.dtype, self.lanes if wide else 1)} {name};")
        self.out += [f"if ({test}) {{", [*a_lines, f"{name} = {a};"],
                     "} else {", [*b_lines, f"{name} = {b};"], "}"]
        return name, wide

    def apart(self, make):
        """(the lines that `make` writes, what it returns)."""
        outer, self.out = self.out, []
        self.memo.append({})
        got = make()
        self.memo.pop()
        lines, self.out = self.out, outer
        return lines, got

    def masked(self, n, ranges):
        """A guard that lanes differ in: both sides as vectors, one chosen lane by lane."""
        outer = self.ranges
        mask = self.fresh()
        self.line(f"char{self.lanes} {mask} = 0;")
        with self.lane_loop():
            self.line(f"((char *)&{mask})[l] = -(char)({self.conditions((*outer, *ranges))});")
        self.ranges = (*outer, *ranges)
        a = self.splat(self.value(n.args[0]), n.dtype)
        self.ranges = outer
        b = self.splat(self.value(n.args[1]), n.dtype)
        return self.instructions.select(mask, a, b, n.dtype, self.lanes), True

    # -- statements -----------------------------------------------------------------------------

    def body(self, statements):
        for s in statements:
            if isinstance(s, For):
                self.loop(s)
                continue
            self.memo.append({})
            match s:
                case Let():
                    self.share(s)
                    self.let(s)
                case Start():
                    self.start(s)
                case Accumulate():
                    self.share(s)
                    self.accumulate(s)
                case Store():
                    self.share(s)
                    self.store(s)
            self.memo.pop()

    def share(self, s):
        """Notes which expressions of a statement are used more than once."""
        counts = Counter(a for n in scalar.walk(s.expr) for a in n.below)
        self.shared = {n for n, k in counts.items() if k > 1}

    def word(self, name):
        """The C name of a Let or an accumulator."""
        if name not in self.words:
            self.words[name] = self.cnames(name)
        return self.words[name]

    def let(self, s):
        text, wide = self.value(s.expr)
        name = self.word(s.name)
        t = type_text(s.expr.dtype, self.lanes if wide else 1)
        self.line(f"const {t} {name} = {text};", s.source)
        self.values[s.name] = name, wide

    def start(self, s):
        name = self.word(s.name)
        identity = number(REDUCTIONS[s.how][1](s.dtype), s.dtype)
        self.line(f"{type_text(s.dtype)} {name} = {identity};")
        self.started[s.name], self.values[s.name] = s, (name, False)

    def accumulate(self, s):
        """name how= expr, into the accumulator of this copy of the body."""
        value, (how, identity) = self.value(s.expr), REDUCTIONS[s.how]
        dtype, slots = s.expr.dtype, self.slots.get(s.name)
        if not slots:
            name = self.values[s.name][0]
            total = self.instructions.apply(how, [name, value[0]], dtype, 1)
            self.line(f"{name} = {total};", s.source)
            return
        text, w = self.splat(value, dtype), self.lanes
        if self.count < w:                                               # idle lanes add nothing
            keep = ", ".join("-1" if j < self.count else "0" for j in range(w))
            nothing_more = number(identity(dtype), dtype, w)
            text = self.instructions.select(f"(char{w})({keep})", text, nothing_more, dtype, w)
        name = slots[self.copy % len(slots)]
        self.line(f"{name} = {self.instructions.apply(how, [name, text], dtype, w)};", s.source)

    def store(self, s):
        """buffer[index] = expr; lane by lane where lanes do not lie side by side."""
        value = self.value(s.expr)
        if not self.vec or not self.varies(s.index) and not s.when:
            self.store_one(s, value[0])
            return
        half = s.buffer.type.dtype == F16
        if self.unit(s.index) and not s.when and not half and self.count == self.lanes:
            self.store_vector(s, self.splat(value, s.expr.dtype))
            return
        name = value[0]
        if value[1] and not name.isidentifier():
            name = self.fresh()
            self.line(f"const {type_text(s.expr.dtype, self.lanes)} {name} = {value[0]};")
        with self.lane_loop():
            self.store_one(s, self.at_lane(name, s.expr.dtype) if value[1] else name)

    def store_one(self, s, value):
        """One element; only where the ranges of `when` hold."""
        if s.when:
            with self.block(f"if ({self.conditions(s.when)})"):
                self.store_element(s, value)
        else:
            self.store_element(s, value)

    def store_element(self, s, value):
        pointer, at, dtype = self.pointers[s.buffer], self.index(s.index), s.buffer.type.dtype
        if s.how:
            old = self.element(s.buffer, at)
            value = self.instructions.apply(REDUCTIONS[s.how][0], [old, value], s.expr.dtype, 1)
        if dtype == F16:
            self.line(f"vstore_half({value}, {at}, {pointer});", s.source)
        else:
            value = self.instructions.narrowed(value, 1) if dtype is BF16 else value
            tail = " != 0" if dtype == BOOL and self.lane else ""
            self.line(f"{pointer}[{at}] = {value}{tail};", s.source)

    def store_vector(self, s, value):
        at = f"{self.pointers[s.buffer]} + {self.index(s.index)}"
        dtype, w = s.buffer.type.dtype, self.lanes
        if s.how:
            old = f"vload{w}(0, {at})"
            old = f"({old} != (uchar{w})(0))" if dtype == BOOL else old
            old = self.instructions.widened(old, w) if dtype is BF16 else old
            value = self.instructions.apply(REDUCTIONS[s.how][0], [old, value], s.expr.dtype, w)
        value = self.instructions.narrowed(value, w) if dtype is BF16 else value
        value = f"as_uchar{w}(-{value})" if dtype == BOOL else value
        self.line(f"vstore{w}({value}, 0, {at});", s.source)

    # -- loops ----------------------------------------------------------------------------------

    def loop(self, s):
        """A For, with the vector accumulators it carries before and their sums behind it."""
        new = {n: f for n, f in accumulators(s).items() if n not in self.slots and f.width > 1}
        for name, around in sorted(new.items()):
            self.open(name, around)
        name = self.cnames(s.var.name)
        self.run(s, name)
        self.cnames.release(name)
        for name, around in sorted(new.items()):
            self.close(name, around)

    def open(self, name, around):
        """Vector accumulators, one for each copy of the loop's body."""
        start, w = self.started[name], around.width
        copies = min(around.unroll, max(1, around.var.extent // w))
        self.slots[name] = [self.cnames(f"{self.word(name)}_{k}") for k in range(copies)]
        identity = number(REDUCTIONS[start.how][1](start.dtype), start.dtype, w)
        parts = ", ".join(f"{slot} = {identity}" for slot in self.slots[name])
        self.line(f"{type_text(start.dtype, w)} {parts};")

    def close(self, name, around):
        """The accumulators of one name become one number."""
        start, parts, w = self.started[name], self.slots.pop(name), around.width
        how, target = REDUCTIONS[start.how][0], self.word(name)
        while len(parts) > 1:
            pairs = [parts[k:k + 2] for k in range(0, len(parts), 2)]
            parts = [self.instructions.apply(how, p, start.dtype, w) if len(p) == 2 else p[0]
                     for p in pairs]
        total = self.instructions.fold(how, parts[0], start.dtype, w)
        self.line(f"{target} = {self.instructions.apply(how, [target, total], start.dtype, 1)};")

    def run(self, s, name):
        """The loop: vectors while they last, single vectors, and one in part idle for the tail."""
        if s.kind == "parallel" and self.parts:
            self.run_part(s, name)
        elif s.width == 1:
            self.counted(s, name, "0", str(s.var.extent), s.step, 1)
        else:
            block = s.width * s.unroll
            self.run_vectors(s, name, "0", str(s.var.extent // block * block))
            self.run_tail(s)

    def run_part(self, s, name):
        """This part's share of a parallel loop: whole blocks; the tail belongs to the last part."""
        parts, self.parts = self.parts, None
        n, w = s.var.extent, s.width
        block = w * s.unroll if w > 1 else s.step
        blocks = n // block if w > 1 else -(-n // block)
        lo, hi = self.cnames(f"{name}Lo"), self.cnames(f"{name}Hi")
        starts, ends = [f"({self.int})((long){part} * {blocks} / {parts}) * {block}"
                        for part in ("part", "(part + 1)")]
        if w == 1 and n % block:
            ends = f"min({ends}, ({self.int}){n})"
        self.line("const int part = get_global_id(0);")
        self.line(f"const {self.int} {lo} = {starts}, {hi} = {ends};")
        if w == 1:
            self.counted(s, name, lo, hi, s.step, 1)
            return
        self.run_vectors(s, name, lo, hi)
        if n % block:
            with self.block(f"if (part == {parts - 1})"):
                self.run_tail(s)

    def run_vectors(self, s, name, lo, hi):
        if hi == "0":
            return
        self.vec, self.count = (s.var, s.width), s.width
        self.counted(s, name, lo, hi, s.width * s.unroll, s.unroll)
        self.vec = None

    def run_tail(self, s):
        """What the unrolled vectors leave: whole vectors, then one with idle lanes."""
        n, w = s.var.extent, s.width
        main = n // (w * s.unroll) * (w * s.unroll)
        for k in range(-(-(n - main) // w)):
            at = main + k * w
            self.vec, self.count, self.copy = (s.var, w), min(w, n - at), k
            self.env[s.var] = None, at
            with self.block(""):
                self.body(s.body)
        self.vec, self.copy = None, 0

    def counted(self, s, name, lo, hi, step, copies):
        """for (name = lo; name < hi; name += step), with `copies` copies of the body."""
        with self.block(f"for ({self.int} {name} = {lo}; {name} < {hi}; {name} += {step})"):
            for c in range(copies):
                self.copy, self.env[s.var] = c, (name, c * s.width)
                if copies == 1:
                    self.body(s.body)
                    continue
                with self.block(""):
                    self.body(s.body)
        self.copy = 0


@contextmanager
def nothing():
    """No block."""
    yield


def element_text(dtype):
    """The C type of one lane of a vector."""
    return "char" if dtype == BOOL else type_text(dtype)


# ---------------------------------------------------------------------------- kernels

class Written:
    """A kernel's text: `global_size` work-items in groups of `local_size`, and what it calls.

    room: the type of an array that it needs in front of its arguments, for the kernel `then`, which
    runs behind it and has the same arguments, or None.
    """

    def __init__(self, name, text, global_size, local_size, functions=(), room=None, then=None):
        self.name, self.text, self.functions = name, text, dict(functions)
        self.global_size, self.local_size = global_size, local_size
        self.room, self.then = room, then


def needs_long(kernel):
    """Do indices need 64 bits?"""
    buffers = [*kernel.params, *kernel.outputs, *kernel.scratch]
    return any(b.type.size >= 2 ** 31 - 2 ** 16 for b in buffers)


def arguments(kernel, names):
    """(Buffer → name, the parameters of the kernel): params, then outputs."""
    shared = {b for pair in kernel.aliases for b in pair}
    pointers, texts = {}, []
    for b in (*kernel.params, *kernel.outputs):
        const = "const " if b in kernel.params else ""
        pointers[b] = names(b.name)
        own = "" if b in shared else "restrict "
        texts.append(f"__global {const}{stored(b.type.dtype)} *{own}{pointers[b]}")
    return pointers, ", ".join(texts)


def written(name, kernel, parts=1):
    """The Written of a kernel without a Contract, on a CPU: `parts` work-items, one for each part.
    """
    names, instructions = Names(("part",)), Instructions()
    pointers, params = arguments(kernel, names)
    pointers.update((b, names(b.name)) for b in kernel.scratch)
    emitter = Emitter(pointers, names, instructions, wide_index=needs_long(kernel))
    emitter.parts = parts
    for b in kernel.scratch:
        emitter.line(f"{type_text(b.type.dtype) if b.type.dtype != BOOL else 'uchar'} "
                     f"{pointers[b]}[{max(1, b.type.size)}];")
    with kernel.space:
        emitter.body(kernel.body)
    return Written(name, function_text(name, params, emitter.out, 1), parts, 1, instructions.used)


def function_text(name, params, lines, local):
    """The text of a kernel whose groups have `local` work-items."""
    inside = "\n".join(indented(lines, 1))
    return (f"__kernel __attribute__((reqd_work_group_size({local}, 1, 1)))\n"
            f"void {name}({params}) {{\n{inside}\n}}\n")


def indented(lines, depth):
    """Nested lists of lines as lines."""
    out = []
    for x in lines:
        if isinstance(x, str):
            out.append("  " * depth + x)
        else:
            out += indented(x, depth + 1)
    return out
