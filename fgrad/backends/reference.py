"""The two oracles: a Program by NumPy rules, and a Plan one element at a time in plain Python.

Everything that a compiled backend gives is compared with these.  They are slow, and say exactly
what the two IRs mean.
"""

from __future__ import annotations

import itertools

import numpy as np

from .. import index
from ..bf16 import BF16, values_of, words_of
from ..core import array_in, array_of, memory_of, numpy_rule
from ..ir import Var
from ..loop import (
    Accumulate, Call, Contract, For, Kernel, Let, Loop, Start, Store, of_columns, of_elements,
    turns_of)
from ..scalar import INSTRUCTIONS, REDUCTIONS
from ..passes.target import CPU
from ..types import BOOL, computed, held_as
from .base import Backend


def run_program(program, arrays):
    """The results of a Program, by the NumPy rule of each operation.

    arrays: NumPy arrays for the inputs, in order.
    """
    values = dict(zip(program.inputs, map(np.asarray, arrays)))
    values.update((v, np.asarray(memory_of(x))) for v, x in program.hidden)
    with np.errstate(all="ignore"):
        for eqn in program.eqns:
            args = [values[a] if a.__class__ is Var else a for a in eqn.args]
            types = [a.type if a.__class__ is Var else None for a in (*eqn.args, *eqn.outs)]
            for v, x in zip(eqn.outs, value_of(eqn.op, args, types, eqn.params)):
                values[v] = np.asarray(x).reshape(v.shape).astype(held_as(v.dtype), copy=False)
    return [values[v] for v in program.outputs]


def value_of(op, args, types, params):
    """The results of an operation on memory, as a tuple; numbers become arrays."""
    # The last, since a condition of select comes first.
    if op.nested:
        found = op.steps(*[array_of(a, t.dtype) for a, t in zip(args, types)], **params)
        return [memory_of(x) for x in found]
    like = next((t for t in reversed(types[:len(args)]) if t is not None), None)
    types = [like if t is None else t for t in types]
    args = [a if isinstance(a, np.ndarray) else number(a, like) for a in args]
    return numpy_rule(op, args, types, params)


def number(x, like):
    """A Python number beside a value of type `like`, in memory."""
    return memory_of(array_in(x, like.dtype)) if like is not None else np.asarray(x)


# ---------------------------------------------------------------------------- the backend

class Executable:
    """Runs a Plan in plain Python."""

    def __init__(self, plan):
        self.plan, self.arena = plan, plan.arena

    def __call__(self, values):
        n = len(self.plan.inputs)
        arrays = [np.asarray(memory_of(v)) for v in values]
        found = run_plan(self.plan, arrays[:n], arrays[n:])
        return [array_of(x, b.type.dtype) for x, b in zip(found, self.plan.outputs)]


class Reference(Backend):
    """The device "reference": each statement of the loop IR run by Python, element by element."""

    def target(self, device):
        return CPU

    def compile(self, plan, device):
        return Executable(plan)

    def stages(self, plan, device):
        return {}

    def devices(self):
        return [("reference", "plain Python, one element at a time")]


# ---------------------------------------------------------------------------- plans

def run_plan(plan, arrays, constants=None):
    """The results of a Plan, by running its statements one element at a time.

    arrays: NumPy arrays for its inputs, words for those of bf16; constants: for its constants, if
    not its own.
    """
    if constants is None:
        constants = [memory_of(c) for _, c in plan.constants]
    buffers = [*plan.inputs, *(b for b, _ in (*plan.constants, *plan.tables))]
    tables = [memory_of(x) for _, x in plan.tables]
    values = zip(buffers, [*arrays, *constants, *tables])
    memory = {b: np.array(x, held_as(b.type.dtype)).reshape(-1) for b, x in values}
    memory.update(arena_views(plan))
    memory.update((b, memory[a]) for b, a in plan.origins.items() if a.kind == "input")
    with np.errstate(all="ignore"):
        run_steps(plan, memory)
    return [view(memory, b) for b in plan.outputs]


def run_steps(plan, memory):
    """Runs the steps of a Plan on memory: Buffer → its flat array."""
    for turns, steps in itertools.groupby(plan.steps, key=turns_of):
        if turns is not None:
            run_turns(plan, turns, list(steps), memory)
            continue
        for step in steps:
            RUN[type(step)](step, memory)


def run_turns(plan, turns, kernels, memory):
    """Runs kernels share by share, the last one first; what they alone need is new in each."""
    own = [b for kernel in kernels for b in kernel.outputs if b in plan.shares]
    for k in reversed(range(turns.count)):
        for b in own:
            memory.pop(b, None)
        for kernel in kernels:
            run_kernel(kernel, memory, (k, turns.count))


def run_loop(loop, memory):
    """Runs a Loop: its inner Plans on arrays of their own, as the Plan lays them out."""
    given = [view(memory, b) for b in loop.consts]
    carry = [np.array(view(memory, b)) for b in loop.starts]
    rows = {b: place(memory, b).reshape(b.type.shape) for b in loop.ys}
    if loop.kind in ("cond", "call"):
        k = 0 if loop.index is None else int(view(memory, loop.index))
        k = min(max(k, 0), len(loop.plans) - 1)
        for b, x in zip(loop.ys, run_plan(loop.plans[k], given)):
            rows[b][...] = x
    elif loop.kind == "while":
        while run_plan(loop.plans[0], [*given, *carry])[0]:
            carry = run_plan(loop.plans[1], [*given, *carry])
    else:
        for k in range(loop.length)[::-1 if loop.reverse else 1]:
            xs = [np.int32(k) if b is None else view(memory, b)[k] for b in loop.xs]
            out = run_plan(loop.plans[0], [*given, *carry, *xs])
            carry = [np.array(x) for x in out[:len(carry)]]
            for b, x in zip(loop.ys, out[len(carry):]):
                rows[b][k] = x
    for b, x in zip(loop.ends, carry):
        place(memory, b)[:] = x.reshape(-1)


def place(memory, b):
    """The flat array of a buffer, made where there is none."""
    return memory.setdefault(b, np.empty(b.type.size, held_as(b.type.dtype)))


def arena_views(plan):
    """The temporaries of a Plan as views of one block of bytes, where the Plan places them."""
    arena = np.full(plan.arena, 0xA5, np.uint8)
    return {b: arena[at:at + b.type.nbytes].view(held_as(b.type.dtype))
            for b, at in plan.offsets.items() if b not in plan.shares}


def view(memory, b):
    """The array of a buffer; one without elements need not have been written."""
    if b not in memory:
        assert b.type.size == 0, f"{b.name} was never written"
        memory[b] = np.zeros(0, held_as(b.type.dtype))
    return memory[b].reshape(b.type.shape)


def run_call(step, memory):
    args = [view(memory, a) if hasattr(a, "type") else a for a in step.params]
    types = [getattr(a, "type", None) for a in (*step.params, *step.outputs)]
    for b, x in zip(step.outputs, value_of(step.op, args, types, step.op_params)):
        found = place(memory, b)
        found[:] = np.asarray(x, found.dtype).reshape(-1)


def run_kernel(kernel, memory, share=None):
    """Runs the statements of a kernel, in parts where a loop may be cut, or its share k of so many.

    Memory of its own holds a sentinel first, to be noticed.  The last part runs first: none may
    rely on what another one does.
    """
    for b in (*kernel.outputs, *kernel.scratch):
        if b not in memory or b in kernel.scratch:
            dtype = held_as(b.type.dtype)
            memory[b] = np.full(b.type.size, sentinel(dtype), dtype)
    for b in kernel.params:
        view(memory, b)
    cut = any(isinstance(s, For) and s.kind == "parallel" for s in kernel.body)
    for each in [share] if share else [(1, 2), (0, 2)] if cut else [(0, 1)]:
        Run(memory, each).body(kernel.body, {})


RUN = {Call: run_call, Kernel: run_kernel, Loop: run_loop}


def sentinel(dtype):
    """A value that stands out where it was not meant to be read."""
    return {"f": np.nan, "b": True}.get(dtype.kind, 113)


def places(at, loops):
    """`at` with each value of some loop variables, the last one moving fastest."""
    for place in itertools.product(*[range(v.extent) for v in loops]):
        yield at | dict(zip(loops, place))


class Run:
    """The state of one kernel: memory, named values, and scalars computed since a loop moved on.

    share: (k, count), which of so many equal shares of the outermost loop, or of the batch, to run.
    """

    def __init__(self, memory, share):
        self.memory, self.names, self.share = memory, {}, share

    def mine(self, places):
        """The share of some places."""
        k, count = self.share
        return places[len(places) * k // count:len(places) * (k + 1) // count]

    def body(self, statements, at):
        """Runs statements with the loop variables `at`."""
        known = {}
        for s in statements:
            match s:
                case For():
                    every = range(0, s.var.extent, s.step)
                    for k in self.mine(every) if s.kind == "parallel" and not at else every:
                        self.body(s.body, at | {s.var: k})
                    known = {}
                case Contract():
                    self.contract(s, at)
                case Start():
                    self.names[s.name] = s.dtype.type(REDUCTIONS[s.how][1](s.dtype))
                case Let():
                    self.names[s.name] = self.value(s.expr, at, known)
                case Accumulate():
                    old = self.names[s.name]
                    new = self.value(s.expr, at, known)
                    self.names[s.name] = combined(s.how, old, new, old.dtype)
                    known = {}
                case Store():
                    self.store(s, at, known)
                    known = {}

    def store(self, s, at, known):
        if not all(lo <= self.index(x, at, known) < hi for x, lo, hi in s.when):
            return
        out, k = self.memory[s.buffer], self.index(s.index, at, known)
        assert 0 <= k < out.size, f"{s.buffer.name}[{k}] is outside of {s.buffer.type}"
        value, dtype = self.value(s.expr, at, known), s.buffer.type.dtype
        if s.how:
            value = combined(s.how, element(out[k], dtype), value, s.expr.dtype)
        out[k] = words_of(value) if dtype is BF16 else value

    def contract(self, s, at):
        batches = self.mine(list(places(at, s.batch)))
        for column in [c for batch in batches for c in places(batch, s.columns)]:
            self.names |= dict.fromkeys(s.sums, s.dtype.type(0))
            for here in places(column, s.rows):
                product = total = s.dtype.type(0)
                for there in places(here, s.k):
                    known = {}
                    b = self.value(s.b, there, known)
                    product = s.dtype.type(product + self.value(s.a, there, known) * b)
                    total = s.dtype.type(total + b)
                self.names |= {s.name: product, s.total: total}
                self.body(of_elements(s), here)
            self.body(of_columns(s, s.of_column), column)

    def index(self, x, at, known):
        """The value of an Ix."""
        total = x.const
        for a, c in x.terms:
            match a:
                case index.Var():
                    total += c * at[a]
                case index.Dynamic():
                    total += c * int(self.value(a.node, at, known))
                case _:
                    k = self.index(a.ix, at, known)
                    total += c * (k // a.n if a.op == "/" else k % a.n)
        return total

    def value(self, root, at, known):
        """The value of a scalar expression; only the side of a guard that holds is computed."""
        stack = [root]
        while stack:
            n = stack[-1]
            if n in known:
                stack.pop()
                continue
            wanted = self.wanted(n, at, known)
            missing = [a for a in wanted if a not in known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            known[n] = self.scalar(n, wanted, at, known)
        return known[root]

    def wanted(self, n, at, known):
        if n.op != "guard":
            return n.args
        inside = all(lo <= self.index(x, at, known) < hi for x, lo, hi in n.data)
        return (n.args[0 if inside else 1],)

    def scalar(self, n, wanted, at, known):
        match n.op:
            case "const":
                return n.dtype.type(n.data)
            case "name":
                return self.names[n.data]
            case "index":
                return n.dtype.type(self.index(n.data, at, known))
            case "load":
                return self.load(*n.data, at, known)
            case "guard":
                return known[wanted[0]]
            case "cast":
                return cast(known[wanted[0]], n.dtype)
            case "bits":
                return known[wanted[0]].view(n.dtype)
        out = INSTRUCTIONS[n.op].numpy(*[known[a] for a in n.args])
        return n.dtype.type(out)

    def load(self, buffer, x, at, known):
        k, held = self.index(x, at, known), self.memory[buffer]
        assert 0 <= k < held.size, f"{buffer.name}[{k}] is outside of {buffer.type}"
        return element(held[k], buffer.type.dtype)


def element(held, dtype):
    """One element as it is computed with: f16 and bf16 become f32."""
    return values_of(held) if dtype is BF16 else computed(dtype).type(held)


def cast(x, dtype):
    """x as another dtype; to bool it is x != 0."""
    return np.bool_(x != 0) if dtype == BOOL else np.asarray(x).astype(dtype)[()]


def combined(how, old, new, dtype):
    """old how= new"""
    return dtype.type(INSTRUCTIONS[REDUCTIONS[how][0]].numpy(old, new))
