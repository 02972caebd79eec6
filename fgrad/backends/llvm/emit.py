"""Statements of loop IR as LLVM text: reductions, and loops with explicit vectors.

The tail of a loop is one masked vector; reductions carry several vector accumulators through their
whole nest.  Relies on `stores`, on `values` for expressions and on `addresses` for indices; the
contraction engine uses the Emitter for packing and epilogues.  Names made here hold a dot, so they
never collide with a user's.
"""

from __future__ import annotations

from ... import index
from ...aligned import LINE
from ...loop import Accumulate, Buffer, For, Let, Start, Store, accumulators, statements
from ...scalar import REDUCTIONS, Node, walk
from ...passes.jam import together
from ...records import replace
from ...types import BOOL, F64
from .addresses import Scope
from .fetches import fetchers, row_of, rows_ahead, used_by
from .instructions import number, stored, type_text
from .late_rows import LATE, LateRows, late_rows
from .past_caches import by_lines, lines_of, not_held, ragged, within_lines
from .stores import Stores
from .text import KERNEL, PAST_CACHES, Function, constant


class Emitter(Stores):
    """Writes statements into one LLVM function.

    `slots`: the accumulators of the loops around, name → one value per copy of the body; `copy` is
    the copy at hand.  `across`: those of loops within a vector loop, one for each lane.  `part` is
    (name, parts) while a parallel loop is still to come.  `room`: the iterations of short loops,
    of all within one another, that are written out.  `rows`: (buffer, k) → the scratch row that the
    k-th of the rows which run at once has in place of it.  `large`: buffers that no cache holds;
    `late`: the LateRows around; `guest`: the same while its last loop runs beside the one at hand.
    `asked`: the names whose values were asked for.
    """

    def __init__(self, fn, pointers, env=None):
        super().__init__(fn, pointers, env)
        self.slots, self.started, self.across, self.asked = {}, {}, set(), set()
        self.copy, self.part, self.room, self.rows = 0, None, 0, {}
        self.large = frozenset()
        self.late = self.guest = None

    # -- statements -----------------------------------------------------------------------------

    def body(self, statements):
        """Writes statements in order; stores that write whole steps together, with their last."""
        together = {}
        for stores in self.whole_steps(statements):
            last = max(stores, key=statements.index)
            together.update((s, stores if s is last else ()) for s in stores)
        for s in statements:
            match s:
                case Store() if s in together:
                    if together[s]:
                        self.store_steps(together[s])
                case Let():
                    self.names[s.name] = self.value(s.expr)
                case Start():
                    self.started[s.name] = s
                    (self.across.add if self.vec else self.across.discard)(s.name)
                    self.names[s.name] = number(REDUCTIONS[s.how][1](s.dtype), s.dtype, 1), False
                case Accumulate():
                    self.accumulate(s)
                case Store():
                    self.store(s)
                case For():
                    self.loop(s)
                case LateRows():
                    self.late_row(s)
            self.forget(s)

    def named(self, n):
        self.asked.add(n.data)
        return super().named(n)

    def forget(self, s):
        """What a scratch row held is not known behind what writes it: another row may use it too.
        Nor is an accumulator that has been read, behind what adds to it once more.
        """
        inside = list(statements([s]))
        changed = {t.buffer for t in inside if isinstance(t, Store) and t.buffer.kind == "local"}
        changed |= {t.name for t in inside if isinstance(t, Accumulate)} & self.asked
        for scope in self.scopes if changed else ():
            for key in [key for key in scope.memo if reads(key[0], changed)]:
                del scope.memo[key]

    # -- reductions -----------------------------------------------------------------------------

    def accumulate(self, s):
        """name how= expr, into the accumulator of this copy of the body."""
        value = self.value(s.expr)
        how, identity = REDUCTIONS[s.how]
        dtype, slots = s.expr.dtype, self.slots.get(s.name)
        if slots is None:                        # outside of any loop
            before, wide = self.names[s.name], bool(self.vec)
            pair = [self.splat(x, dtype) for x in (value, before)]
            lanes = self.lanes if wide else 1
            self.names[s.name] = self.instructions.apply(how, pair, dtype, lanes), wide
            return
        k = self.copy % len(slots)
        name = self.splat(value, dtype)
        if self.vec and s.name not in self.across and self.count < self.lanes:   # idle: add nothing
            keep = constant("i1", [str(int(j < self.count)) for j in range(self.lanes)])
            none = number(identity(dtype), dtype, self.lanes)
            name = self.instructions.select(keep, name, none, dtype, self.lanes)
        slots[k] = self.instructions.apply(how, [slots[k], name], dtype, self.lanes)
        if not self.vec or s.name in self.across:
            self.names[s.name] = slots[k], bool(self.vec)

    def loop(self, s):
        """A For, and after it the values of the accumulators it carried."""
        new = {n: f for n, f in accumulators(s).items() if n not in self.slots}
        for name, around in sorted(new.items()):
            start, lanes = self.started[name], around.width
            none, copies = REDUCTIONS[start.how][1](start.dtype), around.unroll
            if self.vec:                         # a loop within a vector loop
                identity = number(none, start.dtype, self.lanes)
                first = self.splat(self.names[name], start.dtype)
            else:
                copies = min(copies, max(1, around.var.extent // lanes)) if lanes > 1 else 1
                identity = number(none, start.dtype, lanes)
                first = identity if lanes > 1 else self.names[name][0]
            self.slots[name] = [first] + [identity] * (copies - 1)
        self.run(s)
        alike = {}
        for name, around in sorted(new.items()):
            if self.vec:
                self.names[name] = self.together(name, self.lanes), True
            else:
                start = self.started[name]
                alike.setdefault((start.how, start.dtype, around.width), []).append(name)
        for (how, dtype, lanes), found in alike.items():
            self.finish(found, how, dtype, lanes)

    def finish(self, found, how, dtype, lanes):
        """The accumulators of each name as one scalar."""
        combine, identity = REDUCTIONS[how]
        totals = self.folded([self.together(name, lanes) for name in found], combine, dtype, lanes)
        for name, total in zip(found, totals):
            first = self.names[name][0]
            if lanes > 1 and first != number(identity(dtype), dtype, 1):
                total = self.instructions.apply(combine, [first, total], dtype, 1)
            self.names[name] = total, False

    def together(self, name, lanes):
        """The accumulators of one name as one vector."""
        start, parts = self.started[name], self.slots.pop(name)
        how = REDUCTIONS[start.how][0]
        while len(parts) > 1:
            pairs = [parts[k:k + 2] for k in range(0, len(parts), 2)]
            parts = [self.instructions.apply(how, p, start.dtype, lanes) if len(p) == 2 else p[0]
                     for p in pairs]
        return parts[0]

    def folded(self, vectors, how, dtype, lanes):
        """The lanes of each vector combined, half onto half, as one number.

        Of two vectors the halves of both come into one; the last one becomes half as long instead.
        Lanes of bools are bits, of which LLVM combines all at once.
        """
        most = lanes if dtype != BOOL else 1
        if lanes == 1:
            return vectors
        if len(vectors) > most:
            return [t for k in range(0, len(vectors), most)
                    for t in self.folded(vectors[k:k + most], how, dtype, lanes)]
        parts, width, share = vectors, lanes, lanes          # share: lanes of a part for one vector
        while share > 1:
            pairs = [[*parts[k:k + 2], "poison"][:2] for k in range(0, len(parts), 2)]
            groups, half = range(0, width * min(2, len(parts)), share), share // 2
            picks = [[g + k + far for g in groups for k in range(half)] for far in (0, half)]
            if len(groups) * half == 1:          # two numbers would be compared by a branch
                picks = [[0, "poison"], [1, "poison"]]
            t = type_text(dtype, 1)
            halves = [[self.fn.shuffle(t, width, a, b, p) for p in picks] for a, b in pairs]
            width, share = len(picks[0]), half
            parts = [self.instructions.apply(how, two, dtype, width) for two in halves]
        return [self.lane(parts[0], k, dtype, width) for k in range(len(vectors))]

    def lane(self, name, k, dtype, lanes):
        """Lane k of a vector, as a number.

        LLVM must not see that it is lane 1 of a vector of f64: where one lane of eight is compared
        with its splat, LLVM 22 reads lane 0 (VPERMPD becomes VPERMILPD, whose index is bit 1).
        """
        one = self.op(f"extractelement {type_text(dtype, lanes)} {name}, i64 {k}")
        if dtype != F64 or k != 1:
            return one
        return self.op(f"call double @llvm.arithmetic.fence.f64(double {one})")

    # -- loops ----------------------------------------------------------------------------------

    def run(self, s):
        """The loop: vectors while they last, single vectors, and one masked vector for the tail."""
        n, w = s.var.extent, s.width
        self.inner, self.rows_ahead = s, rows_ahead(s) if w > 1 else {}
        if s.kind == "parallel" and self.part:
            self.run_part(s)
        elif w == 1 and s.step == 1 and n <= self.room:
            room, self.room = self.room, self.room // n
            for k in range(n):
                self.straight(s, k, 0)
            self.room = room
        elif s.rows > 1:
            self.run_rows(s, "0", str(n // s.rows))
            self.run_other_rows(s)
        elif w == 1 and s.unroll > 1:
            main = n // s.unroll * s.unroll
            self.counted(s, "0", str(main), s.unroll, s.unroll)
            for k in range(main, n):
                self.straight(s, k, k - main)
        elif w == 1:
            self.run_each(s, "0", str(n))
        else:
            main = n // (w * s.unroll) * (w * s.unroll)
            if self.room and main == w * s.unroll:
                main = 0                         # which runs once
            stores = ragged(s, self.large)
            if self.late and s is self.late.host:
                self.run_host(s, main)
            elif stores:
                self.run_from_lines(s, stores, main)
            else:
                self.run_whole(s, main)

    def run_part(self, s):
        """This part's share of a parallel loop: whole blocks; the tail belongs to the last part."""
        part, parts = self.part
        self.part = None                         # loops inside of it are whole
        n, block = s.var.extent, s.block
        whole = s.width > 1 or s.rows > 1
        blocks = n // block if whole else -(-n // block)
        lo, hi = (self.share(p, blocks, parts) for p in (part, self.op(f"add nsw i64 {part}, 1")))
        if s.rows > 1:
            self.run_rows(s, lo, hi)
        else:
            lo, hi = (self.op(f"mul nsw i64 {end}, {block}") for end in (lo, hi))
            if whole:
                self.run_vectors(s, lo, hi)
            else:
                self.run_each(s, lo, self.at_most(hi, n) if n % block else hi)
        if whole and n % block:
            mine = self.op(f"icmp eq i64 {part}, {parts - 1}")
            with self.fn.if_(mine), self.branch():
                if s.rows > 1:
                    self.run_other_rows(s)
                else:
                    self.run_tail(s, n // block * block)
        self.part = part, parts

    def run_each(self, s, lo, hi):
        """A loop's iterations from lo to hi, one after another, or as `late_rows` says."""
        late = late_rows(s, self.large, self.another)
        if late is None:
            self.counted(s, lo, hi, s.step, 1)
            return
        memory = {n: self.fn.alloca(type_text(dtype, 1)) for n, dtype in late.kept.items()}
        late = replace(late, ends=(lo, hi), memory=memory)
        self.fetchers = self.fetchers | {(b, row_of(x, late.last.var)): (None, None)
                                         for b, x in used_by(late.last.body)}
        self.counted(replace(s, body=[late]), lo, self.op(f"add nsw i64 {hi}, 1"), 1, 1)

    def late_row(self, late):
        """What is done for a row, and for the row before what is left of it; each if there is one.
        """
        fn, (i, _), (lo, hi), pointers = self.fn, self.env[late.v], late.ends, dict(self.pointers)
        self.env[late.before] = i, -1
        self.scopes[-1].mask |= late.before.bit
        odd = self.op(f"trunc i64 {i} to i1")
        for row, other in late.scratch.items():
            for b, c in ((row, other), (other, row)):
                self.pointers[b] = fn.select(odd, "ptr", pointers[b], pointers[c])
        for name, dtype in late.kept.items():
            found = self.op(f"load {type_text(dtype, 1)}, ptr {late.memory[name]}")
            self.names[name + LATE] = found, False
        before, now = fn.compare("sgt", i, lo), fn.compare("slt", i, hi)
        self.late = self.begun(late, self.op(f"and i1 {before}, {now}"))
        with fn.if_(now), self.branch():
            self.body(late.first)
            for name, dtype in late.kept.items():
                value, _ = self.names[name]
                fn.do(f"store {type_text(dtype, 1)} {value}, ptr {late.memory[name]}")
        late, self.late = self.late, None
        with fn.if_(before), self.branch():
            self.run_rest(late)
        self.pointers = pointers

    def begun(self, late, both):
        """The LateRows with the place where its last loop begins to run beside its host, and how
        far: where there are `both` rows, and the stores can pass the caches.
        """
        s, step = late.last, max(late.host.block, late.last.block)
        if late.stores:
            off, start = self.first_line(s, late.stores)
            room = within_lines(s, late.stores)
        else:
            off, start, room = self.off_lines(late.past), 0, s.var.extent
        with_host = self.op(f"and i1 {both}, {self.fn.compare('eq', off, 0)}")
        taken = min(room, late.host.var.extent) // step * step
        return replace(late, off=off, start=start,
                       taken=self.fn.select(with_host, "i64", taken, 0))

    def run_host(self, s, main):
        """The loop beside which the last one of the row before runs."""
        late, self.vec, self.count = self.late, (s.var, s.width), s.width
        self.guest = late
        self.counted(s, "0", late.taken, s.width * s.unroll, s.unroll)
        self.guest = None
        self.counted(s, late.taken, str(main), s.width * s.unroll, s.unroll)
        self.vec = None
        self.run_tail(s, main)

    def run_beside(self, late, i, k, before):
        """The body of the last loop of the row before, for its vector k elements behind i."""
        vec, scopes, s = self.vec, self.scopes, late.last
        self.vec, self.past = (s.var, self.lanes), lines_of(s, late.past)
        self.env[s.var] = self.fn.add(i, late.start), k
        self.scopes = [*scopes[:-1], Scope(scopes[-2].mask | s.var.bit, before)]
        self.body(s.body)
        self.vec, self.past, self.scopes = vec, {}, scopes

    def run_rest(self, late):
        """What did not run beside the next row."""
        s, n, step = late.last, late.last.var.extent, late.last.block
        if not late.stores:
            self.run_vectors(s, late.taken, str(n // step * step))
            self.run_tail(s, n // step * step)
            return
        with self.fn.if_(self.fn.compare("eq", late.off, 0)), self.branch():
            self.run_lines(s, late.stores, late.start, late.taken)
        with self.fn.if_(self.fn.compare("ne", late.off, 0)), self.branch():
            self.run_whole(s, n // step * step)

    def at_most(self, i, last):
        over = self.op(f"icmp sgt i64 {i}, {last}")
        return self.op(f"select i1 {over}, i64 {last}, i64 {i}")

    def run_rows(self, s, lo, hi):
        """Rows that run at once, from block lo to block hi."""
        v = index.space().variable(s.var.extent // s.rows)
        body = together(s, index.combine([(index.of(v), s.rows)]), s.rows, self.another)
        self.fetchers, self.beside = self.fetchers | fetchers(body), s.rows
        self.counted(replace(s, var=v, body=body, rows=1), lo, hi, 1, 1)
        self.beside = 1

    def run_other_rows(self, s):
        """The rows that are left over behind all blocks."""
        left = s.var.extent % s.rows
        if left:
            start = index.of(s.var.extent - left)
            self.scopes.append(Scope(self.scopes[-1].mask))
            self.body(together(s, start, left, self.another))
            self.scopes.pop()

    def another(self, buffer, k):
        """A scratch row like this one, for the k-th of the rows that run at once."""
        if (buffer, k) not in self.rows:
            row = self.rows[buffer, k] = Buffer(buffer.name, buffer.type, "local")
            self.pointers[row] = room_of(self.fn, row)
        return self.rows[buffer, k]

    def share(self, part, blocks, parts):
        """part · blocks / parts, the first block of a part."""
        scaled = self.op(f"mul nsw i64 {part}, {blocks}")
        return scaled if parts == 1 else self.op(f"udiv i64 {scaled}, {parts}")

    def run_vectors(self, s, lo, hi):
        """Whole unrolled vectors from lo to hi."""
        self.vec, self.count = (s.var, s.width), s.width
        past = by_lines(s, self.large)
        if past and hi != "0":
            self.run_past(s, lo, hi, past)
        elif hi != "0":
            self.counted(s, lo, hi, s.width * s.unroll, s.unroll)
        self.vec = None

    def run_past(self, s, lo, hi, past):
        """The loop, which writes these buffers past the caches if they begin at lines."""
        bits = self.off_lines(past)
        for how, self.past in (("eq", lines_of(s, past)), ("ne", {})):
            with self.fn.if_(self.fn.compare(how, bits, 0)), self.branch():
                self.counted(s, lo, hi, s.width * s.unroll, s.unroll)

    def off_lines(self, buffers):
        """0 if all these buffers begin at lines."""
        bits = "0"
        for buffer in buffers:
            start = self.op(f"ptrtoint ptr {self.pointers[buffer]} to i64")
            bits = self.op(f"or i64 {bits}, {start}")
        return self.op(f"and i64 {bits}, {LINE - 1}")

    def run_whole(self, s, main):
        """All of a loop: whole unrolled vectors up to `main`, and what is left."""
        self.run_vectors(s, "0", str(main))
        self.run_tail(s, main)

    def run_from_lines(self, s, stores, main):
        """The loop over rows that begin anywhere: what lies in whole lines passes the caches, if
        all these stores' rows begin at the same place of a line.
        """
        off, start = self.first_line(s, stores)
        with self.fn.if_(self.fn.compare("eq", off, 0)), self.branch():
            self.run_lines(s, stores, start, 0)
        with self.fn.if_(self.fn.compare("ne", off, 0)), self.branch():
            self.run_whole(s, main)

    def run_lines(self, s, stores, start, taken):
        """The loop, which writes whole lines past the caches from `start` on, but for so many
        elements there, which are written.

        The vectors before and behind hold no line that passed: it would come back from memory.
        """
        fn, n, w, step = self.fn, s.var.extent, s.width, s.width * s.unroll
        end = fn.add(start, within_lines(s, stores) // step * step)
        self.vec, self.count = (s.var, w), w
        self.straight(s, 0, 0)
        self.counted(s, fn.sub(start, w), start, w, 1)
        self.past = lines_of(s, [t.buffer for t in stores])
        self.counted(s, fn.add(start, taken), end, step, s.unroll)
        self.past = {}
        self.counted(s, end, str(n - w), w, 1)
        self.straight(s, n - w, 0)
        self.vec = None

    def first_line(self, s, stores):
        """(0 if the rows of all stores begin alike, where behind their first vector a line begins).
        """
        size = stores[0].buffer.type.dtype.itemsize
        line = lines_of(s, [stores[0].buffer])[stores[0].buffer]
        before = [self.to_line(t, s, line) for t in stores]
        bits = self.op(f"and i64 {before[0]}, {size - 1}")
        for other in before[1:]:
            bits = self.op(f"or i64 {bits}, {self.op(f'xor i64 {other}, {before[0]}')}")
        return bits, self.fn.add(self.fn.div(before[0], size), s.width)

    def to_line(self, t, s, line):
        """The bytes from where a store's row begins to the next line, of so many bytes."""
        start = self.op(f"ptrtoint ptr {self.address(t.buffer, row_of(t.index, s.var))} to i64")
        return self.op(f"and i64 {self.op(f'sub i64 0, {start}')}, {line - 1}")

    def run_tail(self, s, main):
        """What the unrolled vectors leave from `main` on: whole vectors, then a masked one."""
        n, w = s.var.extent, s.width
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
        self.scopes.append(Scope(self.scopes[-1].mask | s.var.bit))
        self.body(s.body)
        self.scopes.pop()

    def counted(self, s, lo, hi, step, copies):
        """for var in lo..hi step: `copies` copies of the body, which carry its accumulators."""
        fn, before, phis = self.fn, [], []
        fn.count += 1
        k, carried = fn.count, sorted(set(accumulators(s)) & set(self.slots))
        fn.lines.append(before)                  # lines that leave the loop
        fn.do(f"br label %head.{k}")
        entry, i = fn.block, f"%i.{k}"
        fn.label(f"head.{k}")
        fn.lines.append(phis)
        fn.do(f"%more.{k} = icmp slt i64 {i}, {hi}")
        fn.do(f"br i1 %more.{k}, label %body.{k}, label %done.{k}")
        fn.label(f"body.{k}")
        first, around = {name: self.slots[name] for name in carried}, accumulators(s)
        heads = {name: [f"%acc.{k}.{j}.{c}" for c in range(len(first[name]))]
                 for j, name in enumerate(carried)}
        self.carry(heads, around)
        names, around_it = dict(self.names), self.outside
        self.outside = {value for n, (value, _) in names.items() if n not in carried}
        self.copies(s, i, copies, before)
        self.outside = around_it
        last = {name: self.slots[name] for name in carried}
        fn.do(f"%next.{k} = add nsw i64 {i}, {step}")
        fn.do(f"br label %head.{k}")
        phis.append(f"  {i} = phi i64 [ {lo}, %{entry} ], [ %next.{k}, %{fn.block} ]")
        for name in carried:
            lanes = self.lanes if self.vec else around[name].width
            t = type_text(self.started[name].dtype, lanes)
            phis += [f"  {h} = phi {t} [ {a}, %{entry} ], [ {b}, %{fn.block} ]"
                     for h, a, b in zip(heads[name], first[name], last[name])]
        self.names = names
        self.carry(heads, around)
        fn.label(f"done.{k}")

    def copies(self, s, i, count, before):
        """The loop's body `count` times, from i on; what leaves the loop is written to `before`."""
        outer, pointers = self.scopes, {}
        for c in range(count):
            self.copy, self.env[s.var] = c, (i, c * s.width)
            scope = Scope(outer[-1].mask | s.var.bit, before)
            scope.pointers = pointers
            self.scopes = [*outer, scope]
            self.body(s.body)
            if self.guest:
                self.run_beside(self.guest, i, c * s.width, before)
        self.scopes = outer

    def carry(self, heads, around):
        """The accumulators are now what the loop's head holds; scalar ones can be read by name."""
        for name, slots in heads.items():
            self.slots[name] = list(slots)
            if around[name].width == 1:
                self.names[name] = slots[0], bool(self.vec)


def reads(known, changed):
    """Does a node, or an index, read one of these buffers and accumulators?  What is known of a
    buffer itself stays known: it is one of those that no kernel writes.
    """
    match known:
        case Buffer():
            return False
        case Node():
            roots = known,
        case _:
            roots = known.nodes
    return any(m.op == "load" and m.data[0] in changed or m.op == "name" and m.data in changed
               for n in roots for m in walk(n))


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

def room_of(fn, row):
    """Memory for a scratch row."""
    return fn.alloca(f"[{max(1, row.type.size)} x {stored(row.type.dtype)}]")


def function(name, kernel, parts=1, room=0, cache=None):
    """(Function, vmath functions it uses): void @name(ptr %buffers, i64 %part) runs one part.

    room: see Emitter.  cache: bytes of the last one; results that it does not hold are written
    past it.
    %buffers points to the pointers of the kernel's params, then of its outputs.
    """
    fn = Function(name, "ptr noalias readonly %buffers, i64 %part")
    pointers = {}
    for k, buffer in enumerate([*kernel.params, *kernel.outputs]):
        pointers[buffer] = fn.load("ptr", fn.gep("ptr", "%buffers", k))
    for local in kernel.scratch:
        pointers[local] = room_of(fn, local)
    with kernel.space:
        emitter = Emitter(fn, pointers)
        emitter.fetchers = fetchers(kernel.body)
        emitter.given = {b: k for k, b in enumerate(kernel.params)}
        emitter.part = ("%part", parts) if parts > 1 else None
        emitter.room = room
        emitter.large = not_held(kernel, cache) if cache else frozenset()
        emitter.body(kernel.body)
    fn.lines = flattened(fn.lines)
    if any(PAST_CACHES in line for line in fn.lines):
        fn.do("fence seq_cst")                   # other cores are to see what passed the caches
    fn.ret()
    if emitter.instructions.used:
        fn.attributes = KERNEL
    return fn, emitter.instructions.used
