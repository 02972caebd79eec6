"""The CPU backend: a Plan becomes native functions, one per distinct kernel, and a table of steps.

Kernels equal up to names and buffers have one text, so they are compiled once; objects are kept on
disk.  An executable is called through the native runner, and from jit through a builtin.  Relies on
`emit` and `product` for the text, `target` for LLVM, `threads` for the pool.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import sys
from math import prod

import numpy as np

from ... import tree
from ...bf16 import BF16
from ...core import Array, array_of, memory_of
from ...loop import Call, Contract, For, Kernel, Loop
from ...passes.target import Target
from ...types import held_as
from ..base import Backend
from . import emit, host_call, native_call, product, runner, steps, target, threads, vmath
from .steps import WORKSPACE, taken
from .text import intrinsics

LONG = 20_000              # scalar operations from which the interpreter's lock is released


class Llvm(Backend):
    """Native code for the host's processor."""

    def target(self, device):
        return host_target()

    def compile(self, plan, device):
        return Executable(plan)

    def stages(self, plan, device):
        written = Module(plan)
        return {"llvm": written.text(), "asm": lambda: target.assembly(written.text())}

    def devices(self):
        return [("cpu", f"{target.HOST.cpu}, {8 * target.HOST.vector_bytes}-bit vectors, "
                        f"{threads.pool().size} threads")]


@functools.cache
def host_target():
    """The passes' description of this processor."""
    return Target("cpu", vector_bytes=target.HOST.vector_bytes, registers=target.HOST.registers,
                  threads=threads.pool().size, side=4 if target.HOST.registers >= 32 else 2)


# ---------------------------------------------------------------------------- text


class Module:
    """The functions of a Plan's kernels.

    `functions`: name → text.  `steps`: (name, parts, buffers), in order.
    """

    def __init__(self, plan):
        self.functions, self.used, self.workspace = {}, set(), 0
        self.steps = self.steps_of(plan)

    def steps_of(self, plan):
        """The steps of a Plan; those of a Loop are (Loop, the steps of each of its Plans)."""
        out = []
        for step in plan.steps:
            if isinstance(step, Loop):
                out.append((step, [self.steps_of(p) for p in step.plans]))
                continue
            buffers = [*step.params, *step.outputs]
            out += [(step, 1, buffers)] if isinstance(step, Call) else self.added(step, buffers)
        return out

    def added(self, kernel, buffers):
        """The steps of one kernel, whose functions are added."""
        contractions = [s for s in kernel.body if isinstance(s, Contract)]
        if not contractions:
            parts = parts_of(kernel)
            fn, used = emit.function("kernel", kernel, parts)
            self.used |= used
            return [(self.named({"kernel": str(fn)})["kernel"], parts, buffers)]
        (statement,) = contractions
        made, used = product.emitted("kernel", kernel, statement, host_target())
        self.used |= used
        names = self.named(made.functions)
        work = [WORKSPACE] if made.workspace else []
        self.workspace = max(self.workspace, made.workspace)
        return [(names[name], parts, buffers + work) for name, parts in made.phases]

    def named(self, functions):
        """The functions, added under names that depend on text alone: equal kernels are one."""
        names = {}
        for name, text in functions.items():
            if name.startswith("kernel"):
                digest = hashlib.sha256("\0".join(functions.values()).encode()).hexdigest()[:16]
                names[name] = f"k.{digest}{name[len('kernel'):]}"
        for name, text in functions.items():
            for old, new in sorted(names.items(), reverse=True):
                text = text.replace(f"@{old}(", f"@{new}(")
            self.functions[names.get(name, name)] = text
        return {name: names.get(name, name) for name in functions}

    def text(self):
        """One module with every function."""
        return module_text(self.functions, self.used)

    def texts(self, count):
        """At most `count` modules of about equal length, to compile at once: (names, text)."""
        own = {n: t for n, t in self.functions.items() if n.startswith("k.")}
        shared = {n: t for n, t in self.functions.items() if n not in own}
        count = min(count, max(1, sum(map(len, own.values())) // 20_000))
        bins = [{} for _ in range(count)]
        for name, text in sorted(own.items(), key=lambda item: -len(item[1])):
            least = min(bins, key=lambda b: sum(map(len, b.values())))
            least[name] = text
        return [(list(b), module_text(b | called(b, shared), self.used)) for b in bins if b]


def called(functions, shared):
    """The shared functions that these call."""
    return {name: text for name, text in shared.items()
            if any(f"@{name}(" in body for body in functions.values())}


def module_text(functions, used):
    """The text of a module: declarations, vector math, functions; shared ones are internal."""
    bodies = [text if name.startswith("k.") else
              text.replace("define void", "define internal void", 1)
              for name, text in functions.items()]
    math = "\n\n".join(vmath.definition(*key) for key in needed(used, "\n".join(bodies)))
    body = "\n\n".join([math, *bodies])
    declared = "\n".join(intrinsics(body))
    return f'target triple = "{target.HOST.triple}"\n\n{declared}\n\n{body}\n'


def needed(used, text):
    """The vector math functions that the text calls, and those that they call."""
    found, todo = {}, [key for key in sorted(used) if vmath.symbol(*key) + "(" in text]
    while todo:
        name, dtype, lanes = key = todo.pop()
        if key not in found:
            found[key] = None
            todo += [(n, dtype, lanes) for n in vmath.needs(name, dtype)]
    return list(found)


def parts_of(kernel):
    """Into how many parts a kernel's parallel loop is cut: one a thread, none below its grain."""
    loops = [s for s in kernel.body if isinstance(s, For) and s.kind == "parallel"]
    assert len(loops) <= 1, f"{kernel.name} has {len(loops)} parallel loops"
    parts = [min(host_target().threads, loop.var.extent // loop.grain) for loop in loops]
    return max([1, *parts])


# ---------------------------------------------------------------------------- running


class Executable:
    """A compiled Plan: executable(values) → list of Arrays."""

    def __init__(self, plan):
        self.plan = plan
        written = Module(plan)
        addresses = load(written)
        self.made = [b for b in unique(plan.outputs)
                     if b.kind == "output" and b not in plan.donated]
        overwritten = {*plan.donated.values(), *taken(plan).values()}
        self.donated = sorted({plan.inputs.index(b) for b in overwritten
                               if b.kind == "input"})
        constants = [b for b, _ in plan.constants]
        external = [*plan.inputs, *self.made, None, *constants]
        self.calls = {}                          # Call step → its native callback, kept alive
        layout = steps.Layout(plan, external)
        words = steps.Words(layout, functools.partial(self.address, addresses))
        made = words.steps(written.steps)
        self.table = runner.PlanTable(made, layout.places, plan.arena + written.workspace,
                                      len(external), words.most, arena_free())
        self.release_gil = work(plan) > LONG
        self.run = (run_unlocked if self.release_gil else run_locked)()

    def address(self, addresses, step):
        """The address of a step's function."""
        if isinstance(step, str):
            return addresses[step]
        self.calls[step] = host_call.HostCall(step)
        return self.calls[step].address

    def __call__(self, values):
        arrays = [contiguous(memory_of(v)) for v in values]
        for k in self.donated:
            arrays[k] = given_away(values[k], arrays[k])
        made = [np.empty(b.type.shape, held_as(b.type.dtype)) for b in self.made]
        n = len(self.plan.inputs)
        data = [*arrays[:n], *made, self.table.words, *arrays[n:]]
        pointers = (ctypes.c_void_p * len(data))(*[a.__array_interface__["data"][0] for a in data])
        at = ctypes.addressof(pointers)
        self.run(at, at + 8 * (n + len(made)))
        if self.calls:
            host_call.check()
        return self.results(values, arrays, made)

    def results(self, values, arrays, made):
        """The Arrays of the outputs; an output that is an input or a constant is that value."""
        known = dict(zip(self.made, made))
        for out, b in self.plan.donated.items():
            known[out] = arrays[self.plan.inputs.index(b)]
        given = dict(zip([*self.plan.inputs, *[b for b, _ in self.plan.constants]], values))
        out = []
        for buffer in self.plan.outputs:
            if buffer in known:
                known[buffer].flags.writeable = False
                out.append(array_of(known[buffer], buffer.type.dtype))
            else:
                out.append(array_of(memory_of(given[buffer]), buffer.type.dtype))
        return out

    def native(self, types, forms, constants, structure, fallback, name):
        """A builtin that runs this executable for these forms, or None where none can."""
        simple = [b for b in self.plan.outputs] == self.made and not self.calls
        words = any(t.dtype is BF16 for t in [*types, *[b.type for b in self.made]])
        if not simple or words or not native_call.probe():
            return None
        assemble = assembler(structure)
        fixed = [contiguous(memory_of(c)) for c in constants]
        return native_call.entry(
            run_address(), types, [b.type for b in self.made], fallback, Array, name, forms=forms,
            assemble=assemble, constants=[self.table.words, *fixed], release_gil=self.release_gil,
            keep=self)


def given_away(value, array):
    """The memory of a donated argument: its own where nobody else can see it, else a copy."""
    own = array is memory_of(value) and sys.getrefcount(array) <= unseen()
    return array if own else np.array(array, order="C")


@functools.cache
def unseen():
    """The reference count, in `given_away`, of memory that only its Array and the call hold."""
    def count(value, array):
        return array is memory_of(value) and sys.getrefcount(array)
    values = [Array(np.zeros(1))]
    arrays = [v.np for v in values]
    return count(values[0], arrays[0])


def assembler(structure):
    """What puts the flat results together, or None where the native call's own form is right."""
    if structure.kind is None:
        return None
    flat = all(c.kind is None for c in structure.children)
    if structure.kind.cls is tuple and flat and structure.count > 1:
        return None
    return functools.partial(tree.unflatten, structure)


def unique(buffers):
    """The buffers, each once, in order."""
    return list(dict.fromkeys(buffers))


def contiguous(x):
    """x as an aligned C-contiguous ndarray."""
    x = np.asarray(x)
    return x if x.flags.c_contiguous and x.flags.aligned else np.array(x, order="C")


def load(written):
    """The addresses of a Module's functions."""
    texts = written.texts(2)
    built = target.objects([text for _, text in texts])
    addresses = {}
    for (names, _), data in zip(texts, built):
        library = target.load(data)
        addresses.update({name: library.address(name) for name in names})
    return addresses


def work(plan):
    """About how many scalar operations a Plan runs."""
    total = 0
    for step in plan.steps:
        if isinstance(step, Kernel):
            total += max([prod(b.type.shape) for b in (*step.params, *step.outputs)], default=0) * 4
        else:
            total += LONG + 1
    return total


@functools.cache
def native_runner():
    """The loaded library of `fg.run`."""
    threads.pool()
    [built] = target.objects([f'target triple = "{target.HOST.triple}"\n{runner.IR}'])
    return target.load(built)


@functools.cache
def run_address():
    """The address of `fg.run`."""
    return native_runner().address("fg.run")


@functools.cache
def run_unlocked():
    """`fg.run`, called without the interpreter's lock."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(run_address())


@functools.cache
def run_locked():
    """`fg.run`, called with the interpreter's lock held."""
    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(run_address())


@functools.cache
def arena_free():
    """The function that frees a plan's arena."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native_runner().address("arena.free"))
