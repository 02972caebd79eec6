"""The text of a Plan: native functions, one per distinct kernel, and its steps as words.

Kernels equal up to names and buffers have one text, which is written and compiled once.  A process
that finds the Image of a program on disk never imports this module, nor the passes.  Relies on
`emit` and `product` for the text, on `steps` for the words; `backend.py` relies on it.
"""

from __future__ import annotations

import functools
import re
from itertools import groupby
from math import prod

from ... import config, loop_key
from ...core import memory_in_order
from ...loop import Call, Contract, For, Kernel, Loop, is_idle, turns_of
from ...passes.memory import aligned
from ...passes.parts import cost_of
from ...passes.short_loops import in_straight_lines
from ...passes.target import Target
from ...passes.work import moved, operations
from ...types import F32
from .. import cache
from . import emit, host, loops, objects, product, steps, threads, vmath
from .image import Image
from .runner import PYTHON
from .steps import Workspace
from .text import declarations
from .tiles import Machine

CALLED = re.compile(r"@(fg\.[-\w.]+)\(")         # functions that kernels share
FEW = 24                   # vectors of a function of vector math, up to which it is in place
LONG = 20_000              # scalar operations from which the interpreter's lock is released
FUSED, PLAIN = 16, 8       # operations of each lane in a nanosecond: of products, of other loops
MOVED = 96                 # bytes that a loop moves in a nanosecond
SHORT = 200                # us of a kernel whose data other threads may take longer to hand over
BATCH = 60_000             # characters of text that are compiled while more is written: some 40 ms


@functools.cache
def host_target():
    """The passes' description of this processor."""
    machine = Machine(host.HOST.vector_bytes, host.HOST.registers, host.HOST.intel)
    return Target("cpu", vector_bytes=machine.vector_bytes, registers=machine.registers,
                  threads=threads.pool().size, side=4 if machine.registers >= 32 else 2,
                  borders=True, cache=machine.l2, native_loops=True, across=True,
                  jam=host.last_cache(), streams=host.streams(), tables=True,
                  slow_third=machine.slow_third)


# ---------------------------------------------------------------------------- image

def described(kernel):
    """How a kernel is run, in words, where loops do not say it."""
    return product.described(kernel, host_target())


def compiled(plan):
    """(Image, its objects, name → Call step) of a Plan."""
    module, calls = Module(plan, objects.begin), {}

    def name(function):
        if isinstance(function, str):
            return function
        calls[f"call.{len(calls)}"] = function
        return f"call.{len(calls) - 1}"
    made = [b for b in unique(plan.outputs) if b.kind == "output" and b not in plan.donated]
    given = [*plan.inputs, *[b for b, _ in (*plan.constants, *plan.tables)]]
    n = len(plan.inputs)
    layout = steps.Layout(plan, [*plan.inputs, *made, None, *given[n:]], module.whole)
    words = steps.Words(layout, name)
    instructions = [w if isinstance(w, str) else int(w) for w in words.steps(module.steps)]
    keys = [objects.key_of(text) for _, text in module.texts]
    image = Image(
        [b.type for b in given], [b.type for b in made], n, origins(plan, given, made),
        overwritten(plan), instructions, layout.places, words.most,
        plan.arena + module.workspace, work(plan) > LONG, module.shares and has_short_kernels(plan),
        [(names, key) for (names, _), key in zip(module.texts, keys)],
        [memory_in_order(x) for _, x in plan.tables])
    return image, objects.of([text for _, text in module.texts], keys), calls


def origins(plan, given, made):
    """Per output what it is: see Image."""
    found = {b: ("given", k) for k, b in enumerate(given)}
    found.update((out, ("taken", plan.inputs.index(b))) for out, b in plan.donated.items())
    found.update((b, ("made", k)) for k, b in enumerate(made))
    return [found[b] for b in plan.outputs]


def overwritten(plan):
    """The positions of inputs that are written to."""
    return sorted({plan.inputs.index(b) for b in plan.origins.values() if b.kind == "input"})


def work(plan):
    """About how many scalar operations a Plan runs, of which vectors do some at once."""
    total = 0
    for step in plan.steps:
        if isinstance(step, Kernel):
            size = max([prod(b.type.shape) for b in (*step.params, *step.outputs)], default=0)
            total += max(4 * size, operations(step) // 4)
        else:
            total += LONG + 1
    return total


def unique(buffers):
    """The buffers, each once, in order."""
    return list(dict.fromkeys(buffers))


# ---------------------------------------------------------------------------- text

class Module:
    """The functions of a Plan's kernels.

    `functions`: name → text.  `steps`: (name, parts, buffers), in order, parts as `threads.told`
    has them; of those that take turns (Turns, their steps), of a loop that is one function (Loop,
    name, buffers).  `whole`: these loops.  `texts`: (names of what it defines, text) of LLVM
    modules that hold them, in order; what several call is defined in the first.  begin([text]) is
    called when one is written.
    """

    def __init__(self, plan, begin=None):
        self.functions, self.used, self.workspace = {}, set(), 0
        self.known, self.inside, self.whole = loop_key.Known(), loop_key.Known(), set()
        self.texts, self.open, self.shared, self.begin = [], {}, {}, begin
        self.called, self.shares = {}, False     # Plan of a call → its steps; has it parallel ones?
        self.plan = plan
        self.steps = self.steps_of(plan)
        self.close()

    @functools.cached_property
    def light(self):
        """Is all of the Plan so little work that no thread is woken for it?"""
        return alone_in(self.plan, threads.LIGHT) < threads.LIGHT

    def steps_of(self, plan):
        """The steps of a Plan; those of other Loops are (Loop, the steps of each of its Plans)."""
        out = []
        for turns, steps in groupby(plan.steps, key=turns_of):
            if turns is not None:
                out.append((turns, self.side_by_side(steps)))
                continue
            for step in steps:
                if isinstance(step, Loop) and loops.fits(step, parts_of):
                    out.append(self.in_one(step))
                elif isinstance(step, Loop) and step.kind == "call":
                    (plan,) = step.plans
                    if plan not in self.called:
                        self.called[plan] = self.steps_of(plan)
                    out.append((step, [self.called[plan]]))
                elif isinstance(step, Loop):
                    out.append((step, [self.steps_of(p) for p in step.plans]))
                elif isinstance(step, Call):
                    self.prepare(step)
                    out.append((step, PYTHON, [*step.params, *step.outputs]))
                elif not is_idle(step):
                    out += self.added(step)
        return out

    def prepare(self, call):
        """What a call needs is begun, too, where the texts are."""
        if self.begin is not None and call.op.prepare is not None:
            call.op.prepare(*[b.type for b in call.params], ahead=True, **call.op_params)

    def side_by_side(self, kernels):
        """The steps of kernels that take turns: each works in a place of its own."""
        out = self.added(next(kernels))
        for kernel in kernels:
            out += self.added(kernel, aligned(self.workspace))
        return out

    def added(self, kernel, place=0):
        """The steps of one kernel, whose functions are added.  place: where it may work."""
        phases, size = self.known.get(kernel, self.written)
        work = [Workspace(place)] if size else []
        self.workspace = max(self.workspace, place + size)
        buffers = [*kernel.params, *kernel.outputs, *work]
        self.shares |= any(parts > 1 for _, parts in phases)
        if kernel.turns or all(parts == 1 for _, parts in phases) or not self.light:
            return [(name, parts, buffers) for name, parts in phases]
        us = alone(kernel)
        return [(name, threads.told(parts, us) if parts > 1 else parts, buffers)
                for name, parts in phases]

    def written(self, kernel):
        """([(function, parts)] in order, bytes to work in) of a kernel whose functions are added.
        """
        contractions = [s for s in kernel.body if isinstance(s, Contract)]
        if not contractions:
            parts = parts_of(kernel)
            held = kernel.turns is not None      # its results are for the cache
            fn, used = emit.function("kernel", kernel, parts,
                                     cache=None if held else host.last_cache())
            self.used |= used
            return [(self.named({"kernel": str(fn)})["kernel"], parts)], 0
        (statement,) = contractions
        made, used = product.emitted("kernel", kernel, statement, host_target())
        self.used |= used
        names = self.named(made.functions)
        return [(names[name], parts) for name, parts in made.phases], made.workspace

    def in_one(self, loop):
        """The step of a Loop that is one function, which is added."""
        fn, buffers = loops.function(loop, lambda kernel: self.inside.get(kernel, self.inlined))
        self.whole.add(loop)
        return loop, self.named({"kernel": str(fn)})["kernel"], buffers

    def inlined(self, kernel):
        """The name of the function of a kernel that is inlined, which is added."""
        fn, used = emit.function("kernel", in_straight_lines(kernel), room=loops.WRITTEN)
        self.used |= used
        fn.attributes += " alwaysinline"
        text = str(fn)
        name = f"fg.{cache.key(text)[:16]}"
        self.functions[name] = text.replace("@kernel(", f"@{name}(", 1)
        return name

    def named(self, functions):
        """The functions, added under names that depend on text alone: equal kernels are one."""
        own = {name: text for name, text in functions.items() if name.startswith("kernel")}
        digest = cache.key(*own.values())[:16]
        names = {name: f"k.{digest}{name[len('kernel'):]}" for name in own}
        unknown = [name for name in names.values() if name not in self.functions]
        for name, text in functions.items():
            for old, new in sorted(names.items(), reverse=True) if name in own else ():
                text = text.replace(f"@{old}(", f"@{new}(")
            self.functions[names.get(name, name)] = text
        self.opened(unknown)
        return names

    def opened(self, names):
        """Puts functions into the module that is written, which is closed when it is long."""
        for name in names:
            text = self.functions[name]
            self.open |= {name: text, **called(text, self.functions)}
        new = [text for name, text in self.open.items() if name not in self.shared]
        if config.processors() > 1 and sum(map(len, new)) > BATCH:
            self.close()

    def close(self):
        """Ends the module that is written, if there is one."""
        if self.open:
            functions = {name: text for name, text in self.functions.items() if name in self.open}
            before = set(self.shared)
            text = module_text(functions, self.used, self.shared)
            defined = [name for name in functions if name.startswith("k.")]
            self.texts.append((defined + [n for n in self.shared if n not in before], text))
            self.open = {}
            if self.begin:
                self.begin([text])

    def text(self):
        """One module with every function."""
        return module_text(self.functions, self.used)


def called(body, functions):
    """Those of the functions that a function calls."""
    return {name: functions[name] for name in CALLED.findall(body) if name in functions}


def module_text(functions, used, shared=None):
    """The text of a module: declarations, vector math, functions.

    shared: name → declaration, of functions that modules before it define: here they are declared,
    and what is defined here is added.  None: the module stands alone.
    """
    bodies = [in_place(text, used) for name, text in functions.items() if name.startswith("k.")]
    for name, text in functions.items():
        if not name.startswith("k."):
            text = text.replace("define void", "define internal void", 1)
            bodies.append(as_shared(name, text, bodies, shared))
    math, todo = {}, [key for key in sorted(used) if any(called_as(key) in b for b in bodies)]
    while todo:
        name, dtype, lanes = key = todo.pop()
        if key not in math:
            found = vmath.definition(*key)
            math[key] = as_shared(vmath.symbol(*key)[1:], found, [*bodies, *math.values()], shared)
            if not math[key].startswith("declare"):
                todo += [(n, dtype, lanes) for n in vmath.needs(name, dtype)]
    body = "\n\n".join(["\n\n".join(math.values()), *bodies])
    declared = "\n".join([*declarations(body), *[loops.LOOK] * ("@fg.look(" in body)])
    return f'target triple = "{host.HOST.triple}"\n\n{declared}\n\n{body}\n'


def as_shared(name, text, bodies, shared):
    """A function that bodies call, internal where it is written in their place, else defined once.
    """
    if shared is None:
        return text
    head = re.search(rf"^define internal .*@{re.escape(name)}\(.*$", text, re.MULTILINE).group()
    calls = re.compile(rf"@{re.escape(name)}\(.* alwaysinline$", re.MULTILINE)
    if "alwaysinline" in head or any(map(calls.search, bodies)):
        return text
    if name not in shared:
        shared[name] = head.replace("define internal", "declare").removesuffix(" {")
        return text.replace(head, head.replace(" internal", ""))
    return shared[name]


def in_place(text, used):
    """A kernel with vector math written where it is called, if that gains, and calls are few."""
    for key in used:
        name, dtype, lanes = key
        vectors = -(-lanes * int(dtype[1:]) // (8 * host.HOST.vector_bytes))
        if name in vmath.IN_PLACE and text.count(called_as(key)) * vectors <= FEW:
            text = re.sub(rf"{re.escape(called_as(key))}.*", r"\g<0> alwaysinline", text)
    return text


def called_as(key):
    """How the text of a call begins."""
    return vmath.symbol(*key) + "("


def alone_in(plan, most):
    """About how many microseconds a Plan takes one thread; counted until they are `most`."""
    total = 0
    for step in plan.steps:
        if isinstance(step, Loop):
            total += max(1, step.length) * sum(alone_in(p, most) for p in step.plans)
        elif isinstance(step, Kernel) and not is_idle(step):
            total += alone(step)
        if total >= most:
            break
    return total


def has_short_kernels(plan):
    """Is a Plan tried on one thread, since its kernels take less than SHORT on average?"""
    most = SHORT * kernels_in(plan)
    return alone_in(plan, most) < most


def kernels_in(plan):
    """How many kernels a run of a Plan runs, each pass of a loop counted."""
    return sum(max(1, step.length) * sum(map(kernels_in, step.plans)) if isinstance(step, Loop)
               else isinstance(step, Kernel) and not is_idle(step) for step in plan.steps)


def alone(kernel):
    """About how many microseconds a kernel of one parallel loop, or a product, takes one thread."""
    target = host_target()
    lanes = target.lanes(F32)
    if any(isinstance(s, Contract) for s in kernel.body):
        work = operations(kernel) / (FUSED * lanes)
    else:
        work = cost_of(kernel.body) / (PLAIN * lanes)
    return max(work, sum(moved(kernel).values()) / MOVED) / 1000


def parts_of(kernel):
    """Into how many parts a kernel's parallel loop is cut: one a thread, none below its grain; or
    the shares of its turns."""
    if kernel.turns is not None:
        return kernel.turns.count
    loops = [s for s in kernel.body if isinstance(s, For) and s.kind == "parallel"]
    assert len(loops) <= 1, f"{kernel.name} has {len(loops)} parallel loops"
    parts = [min(host_target().threads, loop.var.extent // loop.grain) for loop in loops]
    return max([1, *parts])
