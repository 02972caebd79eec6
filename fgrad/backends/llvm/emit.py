"""Loop IR as LLVM text: explicit vectors along the innermost loop.

A read of unit stride is a vector load, of stride 0 a splat, anything else is gathered by lanes; the
tail of a loop is one masked vector; reductions carry several vector accumulators through their whole
nest.  Index arithmetic is written into the loop it belongs to, and an address is row pointer + offset
+ constant, so that neither loop-invariant code motion nor loop strength reduction is needed.

`Emitter` writes scalar expressions and statements into one `text.Function`; the contraction engine
uses it for packing and epilogues.  Names made here hold a dot, so they never collide with a user's.
"""

from __future__ import annotations

from contextlib import contextmanager

from ... import index
from ...index import Dynamic, Quot, Var
from ...loop import Accumulate, For, Let, Start, Store
from ...scalar import REDUCTIONS
from ...types import BOOL, I64
from .instructions import Instructions, element, number, stored, type_text
from .text import Function, constant, mangled, vector


class Scope:
    """An open loop: the variables known in it, where lines before it go, and what it has computed."""

    def __init__(self, mask, before):
        self.mask, self.before, self.memo, self.pointers = mask, before, {}, {}


class Emitter:
    """Writes expressions and statements into one LLVM function.

    `pointers`: Buffer → its pointer.  `env`: Var → (name or None, constant), their sum is its value.
    Values are (name, is it a vector); `vec` is (Var, lanes) inside of a vector loop.
    """

    def __init__(self, fn, pointers, env=None):
        self.fn, self.pointers, self.env = fn, pointers, dict(env or {})
        self.instructions = Instructions(self.op)
        self.names, self.slots, self.started = {}, {}, {}
        self.vec, self.count, self.mask, self.copy = None, 0, None, 0
        self.part = None                         # (name, parts) while a parallel loop is still to come
        known = 0
        for v in self.env:
            known |= v.bit
        self.out = fn.lines
        self.scopes = [Scope(known, self.out)]

    # -- writing --------------------------------------------------------------------------------

    def op(self, text, out=None):
        name = self.fn.fresh()
        (self.fn.lines if out is None else out).append(f"  {name} = {text}")
        return name

    @property
    def lanes(self):
        return self.vec[1] if self.vec else 1

    # -- indices --------------------------------------------------------------------------------

    def split(self, x):
        """(depth of x's innermost loop, the part known outside of it, the rest, where to write)."""
        depth = next(d for d, s in enumerate(self.scopes) if not x.free & ~s.mask)
        outside = self.scopes[depth - 1].mask if depth else 0
        outer = {a: c for a, c in x.terms if not a.free & ~outside} if depth else {}
        inner = [(a, c) for a, c in x.terms if a not in outer]
        last = depth == len(self.scopes) - 1
        plain = not any(at_run_time(a) for a, _ in x.terms)
        out = self.fn.lines if last or not plain else self.scopes[depth + 1].before
        return depth if plain else len(self.scopes) - 1, index.ix(outer), inner, out

    def index(self, x):
        """x as an i64, computed in the scope of its innermost variable."""
        if not x.terms:
            return str(x.const)
        depth, outer, inner, out = self.split(x)
        memo = self.scopes[depth].memo
        key = x, self.mask if any(at_run_time(a) for a, _ in x.terms) else None
        if key not in memo:
            const, total = x.const, self.index(outer)
            for a, c in inner:
                name, k = self.atom(a, out)
                const += c * k
                if name is not None:
                    scaled = name if c == 1 else self.op(f"mul nsw i64 {name}, {c}", out)
                    total = self.plus(total, scaled, out)
            memo[key] = self.plus(total, str(const), out)
        return memo[key]

    def plus(self, a, b, out):
        return b if a == "0" else a if b == "0" else self.op(f"add nsw i64 {a}, {b}", out)

    def atom(self, a, out):
        """An atom as (name or None, constant)."""
        if isinstance(a, Var):
            return self.env[a]
        if isinstance(a, Dynamic):
            name, wide = self.value(a.node)
            assert not wide, "a run-time index that differs by lane is read lane by lane"
            return self.instructions.cast(name, a.node.dtype, I64, 1), 0
        return self.op(f"{'udiv' if a.op == '/' else 'urem'} i64 {self.index(a.ix)}, {a.n}", out), 0

    def address(self, buffer, x):
        """Row pointer made outside of the loop + offset in it + constant."""
        pointer, const, out = self.pointers[buffer], x.const, self.fn.lines
        t = stored(buffer.type.dtype)
        if x.terms:
            depth, outer, inner, out = self.split(x)
            if outer.terms:
                pointer = self.address(buffer, outer)
            for a, c in inner:
                name, k = self.atom(a, out)
                const += c * k
                if name is not None:
                    pointer = self.offset(depth, t, pointer, name, c, out)
        return self.op(f"getelementptr inbounds {t}, ptr {pointer}, i64 {const}", out) if const else pointer

    def offset(self, depth, t, pointer, name, coefficient, out):
        """pointer + coefficient · name elements, made once in a scope."""
        memo, key = self.scopes[depth].pointers, (t, pointer, name, coefficient)
        if key not in memo:
            step = name if coefficient == 1 else self.op(f"mul nsw i64 {name}, {coefficient}", out)
            memo[key] = self.op(f"getelementptr inbounds {t}, ptr {pointer}, i64 {step}", out)
        return memo[key]

    def at_lane(self, x, k):
        """x at lane k, as an i64: the loop variable moves on by k, run-time indices give their lane."""
        if not self.vec or not x.free & self.vec[0].bit:
            return self.index(x)
        total, const = "0", x.const
        for a, c in x.terms:
            name, j = self.atom_at_lane(a, k)
            const += c * j
            if name is not None:
                scaled = name if c == 1 else self.op(f"mul nsw i64 {name}, {c}")
                total = self.plus(total, scaled, self.fn.lines)
        return self.plus(total, str(const), self.fn.lines)

    def atom_at_lane(self, a, k):
        v = self.vec[0]
        if not a.free & v.bit or isinstance(a, Var):
            name, const = self.atom(a, self.fn.lines)
            return name, const + (k if a is v else 0)
        if isinstance(a, Dynamic):
            name, wide = self.value(a.node)
            if wide:
                t = type_text(a.node.dtype, self.lanes)
                name = self.op(f"extractelement {t} {name}, i64 {k}")
            return self.instructions.cast(name, a.node.dtype, I64, 1), 0
        return self.op(f"{'udiv' if a.op == '/' else 'urem'} i64 {self.at_lane(a.ix, k)}, {a.n}"), 0

    # -- values ---------------------------------------------------------------------------------

    def splat(self, value, dtype):
        """A value as a vector, where there is a vector loop."""
        name, wide = value
        if wide or not self.vec:
            return name
        if name[0] not in "%":
            return f"splat ({element(dtype)} {name})"
        t = type_text(dtype, self.lanes)
        one = self.op(f"insertelement {t} poison, {element(dtype)} {name}, i64 0")
        return self.op(f"shufflevector {t} {one}, {t} poison, {vector('i32', self.lanes)} zeroinitializer")

    def value(self, n):
        """(name, is it a vector) of a scalar node, computed once per scope and guard."""
        memo, key = self.scopes[-1].memo, (n, self.mask, self.vec)
        if key not in memo:
            for a in self.pending(n, memo):      # deep expressions: arguments first, no recursion
                memo[a, self.mask, self.vec] = self.compute(a)
        return memo[key]

    def pending(self, root, memo):
        """The nodes that `root` needs and `memo` lacks, arguments first; what a guard hides is left to it."""
        order, seen, stack = [], set(), [(root, False)]
        while stack:
            n, done = stack.pop()
            if done:
                order.append(n)
            elif n not in seen and (n, self.mask, self.vec) not in memo:
                seen.add(n)
                stack.append((n, True))
                if n.op != "guard":
                    stack.extend((a, False) for a in reversed(n.args))
        return order

    def compute(self, n):
        match n.op:
            case "const":
                return number(n.data, n.dtype, 1), False
            case "name":
                return self.names[n.data]
            case "load":
                return self.load(*n.data)
            case "index":
                return self.index_value(n)
            case "guard":
                return self.guard(n)
        got = [self.value(a) for a in n.args]
        wide = any(w for _, w in got)
        lanes = self.lanes if wide else 1
        args = [self.splat(v, a.dtype) if wide else v[0] for v, a in zip(got, n.args)]
        if n.op == "cast":
            return self.instructions.cast(args[0], n.args[0].dtype, n.dtype, lanes), wide
        return self.instructions.apply(n.op, args, n.args[-1].dtype, lanes), wide

    def index_value(self, n):
        """An index as a number of the node's dtype."""
        x = n.data
        if not self.vec or not x.free & self.vec[0].bit:
            return self.instructions.cast(self.index(x), I64, n.dtype, 1), False
        v, w = self.vec
        if index.is_affine(x, v):
            wide = self.splat((self.index(x), False), I64)
            steps = constant("i64", [k * index.stride(x, v) for k in range(w)])
            at = self.op(f"add {vector('i64', w)} {wide}, {steps}")
        else:
            at = self.by_lane(lambda k: self.at_lane(x, k), I64)
        return self.instructions.cast(at, I64, n.dtype, w), True

    def by_lane(self, one, dtype, count=None):
        """The vector of one(k) for each lane; lanes from `count` on are zero."""
        t, out = type_text(dtype, self.lanes), "zeroinitializer"
        for k in range(self.count if count is None else count):
            out = self.op(f"insertelement {t} {out}, {element(dtype)} {one(k)}, i64 {k}")
        return out

    # -- loads and guards -----------------------------------------------------------------------

    def lane_mask(self):
        """The lanes that may be read and written here: a partial last vector, a guard, both, or None."""
        parts = [self.mask] if self.mask else []
        if self.vec and self.count < self.lanes:
            parts.append(constant("i1", [str(int(k < self.count)) for k in range(self.lanes)]))
        if len(parts) == 2:
            return self.op(f"and {vector('i1', self.lanes)} {parts[0]}, {parts[1]}")
        return parts[0] if parts else None

    def load(self, buffer, x):
        """The element of a buffer at x, or the vector of them."""
        dtype = buffer.type.dtype
        t, align = stored(dtype), dtype.itemsize
        if not self.vec or not x.free & self.vec[0].bit:
            p = self.safe(buffer, self.address(buffer, x), None)
            return self.loaded(self.op(f"load {t}, ptr {p}, align {align}"), dtype, 1), False
        if index.is_affine(x, self.vec[0]) and index.stride(x, self.vec[0]) == 1:
            return self.loaded(self.vector_load(buffer, x), dtype, self.lanes), True
        return self.by_lane(lambda k: self.lane_load(buffer, x, k), dtype), True

    def loaded(self, name, dtype, lanes):
        """What memory holds as a value: bools are i1."""
        if dtype != BOOL:
            return name
        return self.op(f"trunc {vector('i8', lanes) if lanes > 1 else 'i8'} {name} to {type_text(BOOL, lanes)}")

    def vector_load(self, buffer, x):
        w, dtype = self.lanes, buffer.type.dtype
        t, p, mask = vector(stored(dtype), w), self.address(buffer, x), self.lane_mask()
        if not mask:
            return self.op(f"load {t}, ptr {p}, align {dtype.itemsize}")
        return self.op(f"call {t} @llvm.masked.load.{mangled(stored(dtype), w)}.p0(ptr {p}, "
                       f"i32 {dtype.itemsize}, {vector('i1', w)} {mask}, {t} zeroinitializer)")

    def lane_pointer(self, buffer, x, k):
        """The address of the element that lane k reads or writes."""
        if index.is_affine(x, self.vec[0]):
            moved = index.plus(x, k * index.stride(x, self.vec[0]))
            return self.address(buffer, moved)
        t = stored(buffer.type.dtype)
        return self.op(f"getelementptr inbounds {t}, ptr {self.pointers[buffer]}, i64 {self.at_lane(x, k)}")

    def lane_load(self, buffer, x, k):
        dtype = buffer.type.dtype
        p = self.safe(buffer, self.lane_pointer(buffer, x, k), k)
        return self.loaded(self.op(f"load {stored(dtype)}, ptr {p}, align {dtype.itemsize}"), dtype, 1)

    def safe(self, buffer, p, lane):
        """p, or where the guard is false the buffer's first element."""
        if not self.mask:
            return p
        inside = self.mask
        if self.vec:
            t = vector("i1", self.lanes)
            inside = self.op(f"extractelement {t} {inside}, i64 {lane}" if lane is not None else
                             f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({t} {inside})")
        return self.op(f"select i1 {inside}, ptr {p}, ptr {self.pointers[buffer]}")

    def ranges(self, ranges, test=None):
        """The i1, or vector of i1, that all ranges and `test` hold."""
        t = type_text(BOOL, self.lanes)
        for x, lo, hi in ranges:
            c = self.inside(index.plus(x, -lo), hi - lo)
            test = c if test is None else self.op(f"and {t} {test}, {c}")
        return test

    def guard(self, n):
        if self.vec and not n.free & self.vec[0].bit:
            return self.guard_of_all_lanes(n)
        outer = self.mask
        test = self.mask = self.ranges(n.data, outer)
        a = self.splat(self.value(n.args[0]), n.dtype)
        self.mask = outer
        b = self.splat(self.value(n.args[1]), n.dtype)
        return self.instructions.select(test, a, b, n.dtype, self.lanes), bool(self.vec)

    def guard_of_all_lanes(self, n):
        """A guard that is the same in every lane, as one value."""
        outer, vec = self.mask, self.vec
        t = vector("i1", self.lanes)
        any_lane = outer and self.op(
            f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({t} {outer})")
        self.mask, self.vec = any_lane, None
        name = self.value(n)
        self.mask, self.vec = outer, vec
        return name

    def inside(self, x, n):
        """0 <= x < n, in every lane."""
        if not self.vec:
            return self.op(f"icmp ult i64 {self.index(x)}, {n}")
        v, w = self.vec
        if not index.is_affine(x, v):
            at = self.by_lane(lambda k: self.at_lane(x, k), I64)
            return self.op(f"icmp ult {vector('i64', w)} {at}, splat (i64 {n})")
        t = "i32" if max(abs(x.lo), abs(x.hi), n) < 2 ** 31 - 64 * w else "i64"
        base = self.index(x)
        if t == "i32":
            base = base if base[0] != "%" else self.op(f"trunc i64 {base} to i32")
        wide = f"splat ({t} {base})" if base[0] != "%" else self.fn.splat(t, w, base)
        steps = constant(t, [k * index.stride(x, v) for k in range(w)])
        at = self.op(f"add {vector(t, w)} {wide}, {steps}")
        return self.op(f"icmp ult {vector(t, w)} {at}, splat ({t} {n})")

    # -- statements -----------------------------------------------------------------------------

    def body(self, statements):
        for s in statements:
            match s:
                case Let():
                    self.names[s.name] = self.value(s.expr)
                case Start():
                    self.started[s.name] = s
                    self.names[s.name] = number(REDUCTIONS[s.how][1](s.dtype), s.dtype, 1), False
                case Accumulate():
                    self.accumulate(s)
                case Store():
                    self.store(s)
                case For():
                    self.loop(s)

    def store(self, s):
        """buffer[index] = expr, lane by lane where lanes do not lie side by side."""
        by_lane = bool(self.vec) and bool(s.index.free & self.vec[0].bit)
        outer = self.mask
        if s.when:
            self.mask = self.ranges(s.when, outer)
            by_lane = by_lane or bool(self.vec)
        value = self.value(s.expr)
        if not by_lane:
            self.store_one(s, value[0], self.address(s.buffer, s.index), self.mask)
        elif (index.is_affine(s.index, self.vec[0]) and index.stride(s.index, self.vec[0]) == 1
              and not self.miscompiled(s.buffer.type.dtype)):
            self.store_vector(s, self.splat(value, s.expr.dtype))
        else:
            self.store_lanes(s, self.splat(value, s.expr.dtype))
        self.mask = outer

    def miscompiled(self, dtype):
        """Would LLVM write too much?

        Of a narrowed integer vector, a masked store of one lane stores the wide integer on x86 (seen
        in LLVM 22); a guard's mask may turn out to have one lane.
        """
        return dtype.kind in "iu" and (self.count == 1 < self.lanes or bool(self.mask))

    def store_one(self, s, value, pointer, mask):
        """One element; where `mask` is off nothing is touched."""
        dtype = s.buffer.type.dtype
        if mask:
            with self.fn.if_(mask):
                self.store_one(s, value, pointer, None)
            return
        t, align = stored(dtype), dtype.itemsize
        if s.how:
            old = self.loaded(self.op(f"load {t}, ptr {pointer}, align {align}"), dtype, 1)
            value = self.instructions.apply(REDUCTIONS[s.how][0], [old, value], dtype, 1)
        self.fn.do(f"store {t} {self.kept(value, dtype, 1)}, ptr {pointer}, align {align}")

    def kept(self, value, dtype, lanes):
        """A value as memory holds it: a bool is a byte."""
        if dtype != BOOL:
            return value
        return self.op(f"zext {type_text(BOOL, lanes)} {value} to {vector('i8', lanes) if lanes > 1 else 'i8'}")

    def store_vector(self, s, value):
        dtype, w = s.buffer.type.dtype, self.lanes
        if s.how:
            old = self.loaded(self.vector_load(s.buffer, s.index), dtype, w)
            value = self.instructions.apply(REDUCTIONS[s.how][0], [old, value], dtype, w)
        t, p, mask = vector(stored(dtype), w), self.address(s.buffer, s.index), self.lane_mask()
        value = self.kept(value, dtype, w)
        if not mask:
            self.fn.do(f"store {t} {value}, ptr {p}, align {dtype.itemsize}")
        else:
            self.fn.do(f"call void @llvm.masked.store.{mangled(stored(dtype), w)}.p0({t} {value}, ptr {p}, "
                       f"i32 {dtype.itemsize}, {vector('i1', w)} {mask})")

    def store_lanes(self, s, value):
        """Each lane in order, so that lanes which meet at one element add up."""
        t = type_text(s.expr.dtype, self.lanes)
        for k in range(self.count):
            one = self.op(f"extractelement {t} {value}, i64 {k}")
            mask = self.mask and self.op(f"extractelement {vector('i1', self.lanes)} {self.mask}, i64 {k}")
            self.store_one(s, one, self.lane_pointer(s.buffer, s.index, k), mask)

    # -- reductions -----------------------------------------------------------------------------

    def accumulate(self, s):
        """name how= expr, into the accumulator of this copy of the body."""
        value = self.value(s.expr)
        how, identity = REDUCTIONS[s.how]
        dtype, slots = s.expr.dtype, self.slots.get(s.name)
        if slots is None:                        # outside of any loop
            value = value[0], self.names[s.name][0]
            self.names[s.name] = self.instructions.apply(how, value, dtype, 1), False
            return
        k = self.copy % len(slots)
        name = self.splat(value, dtype)
        if self.vec and self.count < self.lanes:                         # idle lanes add nothing
            keep = constant("i1", [str(int(j < self.count)) for j in range(self.lanes)])
            name = self.instructions.select(keep, name, number(identity(dtype), dtype, self.lanes), dtype, self.lanes)
        slots[k] = self.instructions.apply(how, [slots[k], name], dtype, self.lanes)
        if not self.vec:
            self.names[s.name] = slots[k], False

    def accumulators(self, loop):
        """Those that start outside of the loop and accumulate in it: name → the For around the statement."""
        found, stack, inner = {}, [(loop, s) for s in loop.body], set()
        while stack:
            around, s = stack.pop()
            match s:
                case Start():
                    inner.add(s.name)
                case Accumulate():
                    found[s.name] = around
                case For():
                    stack.extend((s, t) for t in s.body)
        return {name: around for name, around in found.items() if name not in inner}

    def loop(self, s):
        """A For, and after it the values of the accumulators it carried."""
        new = {n: f for n, f in self.accumulators(s).items() if n not in self.slots}
        for name, around in sorted(new.items()):
            lanes = around.width
            copies = min(around.unroll, max(1, around.var.extent // lanes)) if lanes > 1 else 1
            start = self.started[name]
            first = self.names[name][0]
            identity = number(REDUCTIONS[start.how][1](start.dtype), start.dtype, lanes)
            self.slots[name] = [identity if lanes > 1 else first] + [identity] * (copies - 1)
        self.run(s)
        for name, around in sorted(new.items()):
            self.finish(name, around)

    def finish(self, name, around):
        """The accumulators of one name as one scalar."""
        start, parts, lanes = self.started[name], self.slots.pop(name), around.width
        how = REDUCTIONS[start.how][0]
        while len(parts) > 1:
            pairs = [parts[k:k + 2] for k in range(0, len(parts), 2)]
            parts = [self.instructions.apply(how, p, start.dtype, lanes) if len(p) == 2 else p[0] for p in pairs]
        total = self.fold(parts[0], how, start.dtype, lanes)
        if lanes > 1 and self.names[name][0] != number(REDUCTIONS[start.how][1](start.dtype), start.dtype, 1):
            total = self.instructions.apply(how, [self.names[name][0], total], start.dtype, 1)
        self.names[name] = total, False

    def fold(self, v, how, dtype, lanes):
        """The lanes of a vector combined, half onto half."""
        if lanes == 1:
            return v
        t, w = type_text(dtype, lanes), lanes
        while w > 1:
            w //= 2
            picks = ", ".join(f"i32 {w + k if k < w else 'poison'}" for k in range(lanes))
            half = self.op(f"shufflevector {t} {v}, {t} poison, {vector('i32', lanes)} <{picks}>")
            v = self.instructions.apply(how, [v, half], dtype, lanes)
        return self.op(f"extractelement {t} {v}, i64 0")

    # -- loops ----------------------------------------------------------------------------------

    def run(self, s):
        """The loop: vectors while they last, single vectors, and one masked vector for the tail."""
        n, w = s.var.extent, s.width
        if s.kind == "parallel" and self.part:
            self.run_part(s)
        elif w == 1:
            self.counted(s, "0", str(n), s.step, 1)
        else:
            self.run_vectors(s, "0", str(n // (w * s.unroll) * (w * s.unroll)))
            self.run_tail(s)

    def run_part(self, s):
        """This part's share of a parallel loop: whole blocks; the tail belongs to the last part."""
        part, parts = self.part
        self.part = None                         # loops inside of it are whole
        block = s.width * s.unroll if s.width > 1 else s.step
        blocks = s.var.extent // block if s.width > 1 else -(-s.var.extent // block)
        lo, hi = (self.op(f"mul nsw i64 {self.share(p, blocks, parts)}, {block}")
                  for p in (part, self.op(f"add nsw i64 {part}, 1")))
        if s.width == 1:
            last = s.var.extent if s.var.extent % block else None
            if last is not None:
                over = self.op(f"icmp sgt i64 {hi}, {last}")
                hi = self.op(f"select i1 {over}, i64 {last}, i64 {hi}")
            self.counted(s, lo, hi, s.step, 1)
        else:
            self.run_vectors(s, lo, hi)
            if s.var.extent % block:
                mine = self.op(f"icmp eq i64 {part}, {parts - 1}")
                with self.fn.if_(mine), self.branch():
                    self.run_tail(s)
        self.part = part, parts

    @contextmanager
    def branch(self):
        """What is computed in a branch is not known behind it."""
        kept = [(scope, dict(scope.memo), dict(scope.pointers)) for scope in self.scopes]
        yield
        for scope, scope.memo, scope.pointers in kept:
            pass

    def share(self, part, blocks, parts):
        """part · blocks / parts, the first block of a part."""
        scaled = self.op(f"mul nsw i64 {part}, {blocks}")
        return scaled if parts == 1 else self.op(f"udiv i64 {scaled}, {parts}")

    def run_vectors(self, s, lo, hi):
        self.vec, self.count = (s.var, s.width), s.width
        if hi != "0":
            self.counted(s, lo, hi, s.width * s.unroll, s.unroll)
        self.vec = None

    def run_tail(self, s):
        """What the unrolled vectors leave: whole vectors, then a masked one."""
        n, w = s.var.extent, s.width
        main = n // (w * s.unroll) * (w * s.unroll)
        self.vec, self.count = (s.var, w), w
        whole = (n - main) // w
        for k in range(whole):
            self.straight(s, main + k * w, k)
        if n % w:
            self.count = n % w
            self.straight(s, main + whole * w, whole)
        self.vec = None

    def straight(self, s, at, copy):
        """The body once, at a constant."""
        self.copy, self.env[s.var] = copy, (None, at)
        self.scopes.append(Scope(self.scopes[-1].mask | s.var.bit, self.fn.lines))
        self.body(s.body)
        self.scopes.pop()

    def counted(self, s, lo, hi, step, copies):
        """for var in lo..hi step: `copies` copies of the body, carrying the accumulators it adds to."""
        fn, before, phis = self.fn, [], []
        fn.count += 1
        k, carried = fn.count, sorted(set(self.accumulators(s)) & set(self.slots))
        fn.lines.append(before)                                          # lines that leave the loop
        fn.do(f"br label %head.{k}")
        entry, i = fn.block, f"%i.{k}"
        fn.label(f"head.{k}")
        fn.lines.append(phis)
        fn.do(f"%more.{k} = icmp slt i64 {i}, {hi}")
        fn.do(f"br i1 %more.{k}, label %body.{k}, label %done.{k}")
        fn.label(f"body.{k}")
        first, around = {name: self.slots[name] for name in carried}, self.accumulators(s)
        heads = {name: [f"%acc.{k}.{j}.{c}" for c in range(len(first[name]))] for j, name in enumerate(carried)}
        self.carry(heads, around)
        outer, names = self.scopes, dict(self.names)
        pointers = {}
        for c in range(copies):
            self.copy, self.env[s.var] = c, (i, c * s.width)
            scope = Scope(outer[-1].mask | s.var.bit, before)
            scope.pointers = pointers
            self.scopes = [*outer, scope]
            self.body(s.body)
        self.scopes, last = outer, {name: self.slots[name] for name in carried}
        fn.do(f"%next.{k} = add nsw i64 {i}, {step}")
        fn.do(f"br label %head.{k}")
        phis.append(f"  {i} = phi i64 [ {lo}, %{entry} ], [ %next.{k}, %{fn.block} ]")
        for name in carried:
            t = type_text(self.started[name].dtype, around[name].width)
            phis += [f"  {h} = phi {t} [ {a}, %{entry} ], [ {b}, %{fn.block} ]"
                     for h, a, b in zip(heads[name], first[name], last[name])]
        self.names = names
        self.carry(heads, around)
        fn.label(f"done.{k}")

    def carry(self, heads, around):
        """The accumulators are now what the loop's head holds; scalar ones can be read by name."""
        for name, slots in heads.items():
            self.slots[name] = list(slots)
            if around[name].width == 1:
                self.names[name] = slots[0], False


def at_run_time(a):
    """Does the atom contain a value computed at run time?"""
    return isinstance(a, Dynamic) or isinstance(a, Quot) and any(at_run_time(b) for b, _ in a.ix.terms)


def flattened(lines):
    """The lines of nested lists, in order, without recursion."""
    stack, out = [iter(lines)], []
    while stack:
        for x in stack[-1]:
            if isinstance(x, str):
                out.append(x)
            else:
                stack.append(iter(x))
                break
        else:
            stack.pop()
    return out


# ---------------------------------------------------------------------------- kernels

def function(name, kernel, parts=1):
    """(Function, vmath functions it uses): void @name(ptr %buffers, i64 %part) runs one part of a kernel.

    %buffers points to the pointers of the kernel's params, then of its outputs.
    """
    fn = Function(name, "ptr noalias readonly %buffers, i64 %part")
    pointers = {}
    for k, buffer in enumerate([*kernel.params, *kernel.outputs]):
        pointers[buffer] = fn.load("ptr", fn.gep("ptr", "%buffers", k))
    for local in kernel.scratch:
        pointers[local] = fn.alloca(f"[{max(1, local.type.size)} x {stored(local.type.dtype)}]")
    with kernel.space:
        emitter = Emitter(fn, pointers)
        emitter.part = "%part", parts
        emitter.body(kernel.body)
    fn.ret()
    fn.lines = flattened(fn.lines)
    return fn, emitter.instructions.used
