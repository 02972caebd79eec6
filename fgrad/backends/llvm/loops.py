"""Loops of little work a step as one native function, into which their kernels are inlined.

The runner takes some ten nanoseconds to begin a kernel, and what a step hands to the next goes
through memory.  Here the loop is code: small carries and temporaries are variables of the function,
which LLVM keeps in registers, and slices are addresses.  Every so many steps, a millisecond or so,
the function lets the runner look at the clock and hear signals, and returns true if it is to end:

    i1 loop(ptr %buffers, ptr %watch)

Relies on `text`; `module.py` asks it which loops are written so, and `steps.py` calls them.
"""

from __future__ import annotations

from contextlib import contextmanager

from ...loop import Contract, For, Kernel, Loop, is_idle
from .text import KERNEL, Function

SMALL = 256                # bytes up to which a carry or temporary is a variable of the function
BUSY = 4096                # statements run in a step, from which its kernels are called one by one
KERNELS = 64               # of a function, at most
WRITTEN = 32               # iterations of short loops in it that are written out
LOOK = "declare i1 @fg.look(ptr)"                # of the runner
STRETCH = 1 << 18          # statements run between two looks at the clock, about


def fits(loop, parts_of):
    """Is a Loop written as one function?  parts_of(kernel): into how many parts it is cut."""
    if loop.kind in ("cond", "call") or not is_plain(loop) or work(loop.plans) > BUSY:
        return False
    kernels = [k for p in loop.plans for k in kernels_of(p)]
    return len(kernels) <= KERNELS and all(
        k is not None and k.turns is None and parts_of(k) == 1 and
        not any(isinstance(s, Contract) for s in k.body) for k in kernels)


def is_plain(loop):
    """Is no carry that needs two buffers too long for variables, and is it run at all?"""
    return (loop.kind != "scan" or loop.length > 0) and all(
        b.type.nbytes <= SMALL for b in loop.others.values())


def kernels_of(plan):
    """The kernels of a Plan, those of the loops in it too, and None for what is not written."""
    for step in plan.steps:
        if isinstance(step, Loop) and is_plain(step):
            for p in step.plans:
                yield from kernels_of(p)
        elif not is_idle(step):
            yield step if isinstance(step, Kernel) else None


def work(plans):
    """About how many statements the steps of some Plans run."""
    steps = [s for p in plans for s in p.steps if not is_idle(s)]
    return sum(repeats(s.body) for s in steps if isinstance(s, Kernel)) + sum(
        max(1, s.length) * work(s.plans) for s in steps if isinstance(s, Loop))


def repeats(body):
    """How many statements run, those of loops each time."""
    return sum(s.var.extent * repeats(s.body) if isinstance(s, For) else 1 for s in body)


def function(loop, inlined):
    """(Function, the Buffers it is given) of a Loop that fits.

    inlined(kernel): the name of a kernel's function, which is inlined.
    """
    writer = Writer(inlined)
    buffers = writer.write(loop)
    return writer.fn, buffers


class Writer:
    """Writes Plans into one function.  `at`: Buffer → its pointer."""

    def __init__(self, inlined):
        self.fn = Function("kernel", "ptr noalias readonly %buffers, ptr %watch", result="i1",
                           attributes=KERNEL)
        self.inlined, self.at, self.looks = inlined, {}, False

    def write(self, loop):
        """The function of a Loop; the Buffers that it is given."""
        fn, groups = self.fn, (loop.consts, loop.starts, loop.ends, loop.xs, loop.ys, [loop.block])
        buffers = list(dict.fromkeys(b for group in groups for b in group if b is not None))
        for k, b in enumerate(buffers):
            self.at[b] = fn.load("ptr", fn.gep("ptr", "%buffers", k))
        self.loop(loop)
        fn.ret("false")
        if self.looks:
            fn.label("stopped")
            fn.ret("true")
        return buffers

    # -- memory ---------------------------------------------------------------------------------

    def of(self, b):
        """The pointer to a buffer; one without elements is written and read by nobody."""
        assert b in self.at or b.type.size == 0, f"{b.name} has no memory"
        return self.at.get(b, "null")

    def variable(self, size):
        """Memory of the function's own."""
        return self.fn.alloca(f"[{max(1, size)} x i8]")

    def copy(self, to, source, b):
        """Copies as much as b holds from pointer to pointer."""
        if to != source and b.type.nbytes:
            self.fn.call("llvm.memcpy.p0.p0.i64", ("ptr", to), ("ptr", source),
                         ("i64", b.type.nbytes), ("i1", "false"))

    def bind(self, inner, outer):
        """Buffers of an inner Plan are the outer ones."""
        self.at.update((a, self.of(b)) for a, b in zip(inner, outer))

    def temporaries(self, plan, block):
        """Variables for the temporaries of a Plan; long ones lie in the block."""
        origins = plan.origins
        for b, offset in plan.offsets.items():
            root = origins.get(b, b)
            if root.type.nbytes > SMALL:
                self.at[root] = self.fn.gep("i8", self.at[block], offset)
            elif b is root:
                self.at[root] = self.variable(root.type.nbytes)
        for b, origin in origins.items():
            self.at[b] = self.of(origin)

    # -- steps ----------------------------------------------------------------------------------

    def steps(self, plan, block):
        """The steps of a Plan, whose temporaries lie in the block."""
        self.temporaries(plan, block)
        for step in plan.steps:
            if isinstance(step, Kernel):
                self.kernel(step)
            elif step.kind == "cond":
                self.cond(step)
            elif step.kind == "call":
                self.call(step)
            else:
                for start, end in zip(step.starts, step.ends):
                    self.copy(self.of(end), self.of(start), end)
                self.loop(step)

    def kernel(self, kernel):
        """A kernel's function, given a table of its own."""
        if is_idle(kernel):
            return
        buffers = [*kernel.params, *kernel.outputs]
        table = self.fn.alloca(f"[{max(1, len(buffers))} x ptr]")
        for k, b in enumerate(buffers):
            self.fn.store("ptr", self.of(b), self.fn.gep("ptr", table, k))
        self.fn.call(self.inlined(kernel), ("ptr", table), ("i64", 0))

    def call(self, loop):
        """A Plan, once."""
        (plan,) = loop.plans
        self.bind(plan.inputs, loop.consts)
        self.bind(plan.outputs, loop.ys)
        self.steps(plan, loop.block)

    def cond(self, loop):
        """One of several Plans."""
        fn, last = self.fn, len(loop.plans) - 1
        k = fn.op(f"sext i32 {fn.load('i32', self.of(loop.index))} to i64")
        k = fn.max(fn.min(k, last), 0)
        fn.count += 1
        n = fn.count
        others = " ".join(f"i64 {j}, label %branch.{n}.{j}" for j in range(last))
        fn.do(f"switch i64 {k}, label %branch.{n}.{last} [ {others} ]")
        for j, plan in enumerate(loop.plans):
            fn.label(f"branch.{n}.{j}")
            self.bind(plan.inputs, loop.consts)
            self.bind(plan.outputs, loop.ys)
            self.steps(plan, loop.block)
            fn.do(f"br label %joined.{n}")
        fn.label(f"joined.{n}")

    def loop(self, loop):
        """A scan or while, whose carries are where it ends; looks at the clock now and then."""
        fn, most = self.fn, max(1, STRETCH // max(1, work(loop.plans)))
        with self.carried(loop) as after:
            if loop.kind == "while":
                self.while_(loop, most, after)
            elif loop.length <= most:
                self.scan(loop, 0, loop.length, after)
            else:
                with fn.loop(0, loop.length, most) as stretch:
                    last = fn.min(fn.add(stretch.index, most), loop.length)
                    self.scan(loop, stretch.index, last, after)
                    self.look()

    def look(self):
        """Ends the function if a signal's handler raised."""
        fn, self.looks = self.fn, True
        stopped = fn.call("fg.look", ("ptr", "%watch"), result="i1")
        going = fn.fresh("going")[1:]
        fn.do(f"br i1 {stopped}, label %stopped, label %{going}")
        fn.label(going)

    def scan(self, loop, first, last, after):
        """The steps of a scan from the first up to the last one; `after` ends each."""
        fn, (body,) = self.fn, loop.plans
        at, n = len(loop.consts) + len(loop.starts), len(loop.ends)
        slices = [*zip(body.inputs[at:], loop.xs), *zip(body.outputs[n:], loop.ys)]
        counter = self.variable(4)
        with fn.loop(first, last) as steps:
            k = fn.sub(loop.length - 1, steps.index) if loop.reverse else steps.index
            fn.store("i32", fn.op(f"trunc i64 {k} to i32"), counter)
            for b, x in slices:
                self.at[b] = counter if x is None else fn.gep(
                    "i8", self.of(x), fn.mul(k, b.type.nbytes))
            self.steps(body, loop.block)
            after()

    def while_(self, loop, most, after):
        """The steps of a while, so many between two looks."""
        fn, (test, body), at = self.fn, loop.plans, len(loop.consts)
        flag = self.at[test.outputs[0]] = self.variable(1)
        self.bind(test.inputs, loop.consts)
        fn.count += 1
        n = fn.count
        fn.do(f"br label %on.{n}")
        fn.label(f"on.{n}")
        with fn.loop(0, most):
            self.bind(test.inputs[at:], body.inputs[at:])
            self.steps(test, loop.block)
            more = fn.op(f"icmp ne i8 {fn.load('i8', flag)}, 0")
            fn.do(f"br i1 {more}, label %more.{n}, label %ended.{n}")
            fn.label(f"more.{n}")
            self.steps(body, loop.block)
            after()
        self.look()
        fn.do(f"br label %on.{n}")
        fn.label(f"ended.{n}")

    @contextmanager
    def carried(self, loop):
        """Around a loop: its carries, short ones in variables; gives what ends a step."""
        body, at, variables = loop.plans[-1], len(loop.consts), []
        self.bind(body.inputs, loop.consts)
        for start, end, carry, out in zip(loop.starts, loop.ends, body.inputs[at:], body.outputs):
            if carry is out:
                self.at[carry] = self.of(start)
            elif end.type.nbytes > SMALL:
                self.at[carry] = self.at[out] = self.at[end]
            else:
                size = end.type.nbytes
                mine = self.at[carry] = self.variable(size)
                self.at[out] = mine if body.donated.get(out) is carry else self.variable(size)
                self.copy(mine, self.of(end), end)
                variables.append((carry, out, end))

        def after():
            for carry, out, _ in variables:
                self.copy(self.at[carry], self.at[out], out)
        yield after
        for carry, _, end in variables:
            self.copy(self.of(end), self.at[carry], end)
