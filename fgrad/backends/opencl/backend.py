"""The OpenCL backend: a Plan becomes one program, and a list of launches on the device's queue.

Kernels that are equal up to names are one function.  Nothing waits but reading results: temporaries
are taken from the device's pool when they are born and handed back when they are dead, which the
queue's order makes safe.  Relies on `emit` and `product` for the text, on `device` for the rest.
"""

from __future__ import annotations

import numpy as np

from ... import loop_key, tree
from ...aligned import copied
from ...core import memory_of, numpy_rule
from ...errors import DeviceError
from ...loop import Buffer, Call, Contract, For, Kernel, Loop
from ...passes.target import Target
from ...passes.turns import contents
from ...records import frozen
from ...text import Names, identifier
from ...types import F64, held_as
from ..base import Backend
from . import device, emit, entry, groups, loops, product
from .arrays import DeviceArray, array_on_device
from .contract import PREAMBLE

PARTS = 256                # partial results of a large reduction on a GPU


class OpenCL(Backend):
    """OpenCL devices, by name: "opencl", "opencl:1", "opencl:text", "gpu"."""

    def target(self, name):
        return target_of(device.find(name).record)

    def canonical(self, name):
        return f"opencl:{device.find(name).record.index}"

    def compile(self, plan, name):
        return Executable(plan, device.find(name))

    def stages(self, plan, name):
        return {"opencl": Program(plan, device.find(name).record).text}

    def wait(self, name):
        device.find(name).sync()

    def devices(self):
        return [(f"opencl:{r.index}", f"{r.name} ({r.platform}, {r.kind}, {r.units} units)"
                 + device.doubts(r)) for r in device.devices()]


def target_of(record):
    """The passes' description of a device.

    A CPU device wants rows as loops of explicit vectors, one part a core: PoCL's vectors of math
    functions are ten times as fast as what it makes of scalar code or of neighbouring work-items.
    """
    if record.kind == "cpu":
        lanes = min(16, record.lanes)
        registers = 32 if lanes >= 16 else 16
        return Target("cpu", vector_bytes=4 * lanes, registers=registers, threads=record.units,
                      totals=False)
    return Target("gpu", vector_bytes=4, threads=record.units, region_cost=500, parts=PARTS,
                  scratch=record.local_memory // 2, totals=False)


# ---------------------------------------------------------------------------- text

@frozen
class Launch:
    """A step: the function `name`, or a loop.Call or loop.Loop, on buffers.

    global_size, local_size: work-items in all and in a group, one axis each; () of a call.
    inner: of a Loop, per inner Plan its Launches.
    """
    name: str
    call: object
    buffers: tuple
    global_size: tuple = ()
    local_size: tuple = ()
    inner: tuple = ()


class Program:
    """The text of all kernels of a Plan, and its Launches in order."""

    def __init__(self, plan, record):
        self.record = record
        self.for_gpu = target_of(record).kind == "gpu"
        self.made, self.functions, self.names = [], {}, Names()
        self.known = loop_key.Known()
        check_dtypes(plan, record)
        self.launches = self.all_launches(plan.steps)
        self.text = self.joined(plan)

    def all_launches(self, steps):
        return [launch for step in steps for launch in self.launched(step)]

    def launched(self, step):
        """The Launches of a step."""
        if isinstance(step, Loop):
            inner = tuple([self.all_launches(p.steps) for p in step.plans])
            return [Launch(step.name, step, (*step.params, *step.ends, *step.ys), inner=inner)]
        buffers = (*step.params, *step.outputs)
        if isinstance(step, Call):
            return [Launch(step.name, step, buffers)]
        made = self.known.get(step, self.written)
        if made.room:
            buffers = (Buffer(f"{made.name}Room", made.room), *buffers)
        return [Launch(k.name, None, buffers, (k.global_size,), (k.local_size,))
                for k in (made, made.then) if k and k.global_size]

    def written(self, kernel):
        """The text of a kernel, which is added to what was made."""
        name = self.names.unique(identifier(kernel.name) + "_k")
        contractions = [s for s in kernel.body if isinstance(s, Contract)]
        if contractions:
            made = product.written(name, kernel, contractions[0], self.record)
        else:
            made = (groups.written(name, kernel, self.record) if self.for_gpu else
                    emit.written(name, kernel, self.parts_of(kernel)))
        self.made.append(f"// {heading(kernel)}\n{made.text}")
        self.functions.update(made.functions)
        return made

    def parts_of(self, kernel):
        """The parts of the kernel's parallel loop: one a core, none smaller than its grain."""
        loops = [s for s in kernel.body if isinstance(s, For) and s.kind == "parallel"]
        assert len(loops) <= 1, f"{kernel.name} has {len(loops)} parallel loops"
        return max([min(self.record.units, s.var.extent // s.grain) for s in loops] or [1]) or 1

    def joined(self, plan):
        head = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if self.record.fp64 else ""
        return "\n".join([f"// {plan.name} on {self.record.name}\n{head}{PREAMBLE}",
                          *self.functions.values(), "", *self.made])


def heading(kernel):
    """The kernel with its types, as the loop IR prints it."""
    params, outputs = [", ".join(f"{b.name}: {b.type}" for b in buffers)
                       for buffers in (kernel.params, kernel.outputs)]
    return f"{kernel.name}({params}) -> {outputs}"


def check_dtypes(plan, record):
    """Raises DeviceError where the device lacks what a dtype of the Plan needs."""
    if record.fp64:
        return
    for inner in [p for s in plan.steps if isinstance(s, Loop) for p in s.plans]:
        check_dtypes(inner, record)
    inside = [b for s in plan.steps for b in (*s.params, *s.outputs) if is_buffer(b)]
    values = [n for s in plan.steps if isinstance(s, Kernel) for n in contents(s)[1]]
    if (any(b.type.dtype == F64 for b in (*plan.inputs, *plan.outputs, *inside))
            or any(n.dtype == F64 for n in values)):
        raise DeviceError(f"{record.name} has no double precision.",
                          given="values of dtype float64",
                          fix=["x.astype('float32')", "or device='cpu'"])


# ---------------------------------------------------------------------------- running

class Executable:
    """A compiled Plan: executable(values) → list of Arrays, most of them still being computed."""

    def __init__(self, plan, on):
        self.plan, self.arena, self.device = plan, plan.arena, on
        program = Program(plan, on.record)
        self.text = program.text
        self.external = [*plan.inputs, *(b for b, _ in plan.constants)]
        self.built = on.build(program.text) if program.made else None
        self.steps = ordered(program.launches, self.built, self.external, plan.outputs)
        self.taken = {*plan.donated.values()}
        self.constants = {}                      # number → (Array, Buffer) of the last call

    def __call__(self, values):
        return self.results([self.buffer(k, v) for k, v in enumerate(values)])

    def results(self, buffers):
        """The Arrays of the outputs, of the Buffers of the inputs and of the constants."""
        held = loops.Held(zip(self.external, buffers))
        others = set(map(id, buffers))
        if self.taken:
            others = {id(x) for b, x in held.items() if b not in self.taken}
            held.look()
        self.run(self.steps, held, self.place)
        return [self.result(b, held, others) for b in self.plan.outputs]

    def run(self, steps, held, place):
        """Runs prepared steps on held: loop.Buffer → Buffer.  place(b, held) makes what is born."""
        launch = self.device.launch
        for kernel, step, born, dead in steps:
            for b in born:
                held[b] = place(b, held)
            if isinstance(step.call, Loop):
                loops.run(self, step.call, kernel, held)
            elif kernel is None:
                self.call(step.call, held)
            else:
                launch(kernel, step.global_size, step.local_size,
                       *[held[b] for b in step.buffers])
            for b in dead:
                del held[b]

    def buffer(self, k, value):
        """The Buffer of an argument: its own if it is here, else a copy; constants keep theirs."""
        if isinstance(value, DeviceArray) and value.buffer.device is self.device:
            return value.buffer
        kept = self.constants.get(k)
        if kept is not None and kept[0] is value:
            return kept[1]
        made = self.written(value)
        if k >= len(self.plan.inputs):
            self.constants[k] = value, made
        return made

    def written(self, value):
        """A Buffer with the elements of an Array."""
        return self.device.write(settled(memory_of(value)))

    def place(self, b, held):
        """A Buffer for what a step makes: a donated one, where no other argument has it too."""
        given = held.get(self.plan.donated.get(b))
        if given is not None and given.host is None and id(given) not in held.shared:
            return given
        return self.device.allocate(b.type.nbytes)

    def result(self, b, held, others):
        """The Array of an output, in a Buffer of its own: each Array may be given away.

        others: ids of the Buffers that others have: arguments, constants and earlier results.
        """
        made = held.get(b)                       # None without elements: no step made it
        if made is None or id(made) in others:
            made = self.device.allocate(b.type.nbytes)
            self.device.copy(made, held.get(b), b.type.nbytes)
        others.add(id(made))
        return array_on_device(made, b.type)

    def call(self, step, held):
        """Runs the NumPy rule of a step on the host."""
        args = [self.device.read(held[a], a.type.shape, held_as(a.type.dtype)) if is_buffer(a)
                else a for a in step.params]
        types = [b.type if is_buffer(b) else None for b in (*step.params, *step.outputs)]
        out = numpy_rule(step.op, args, types, step.op_params)
        for b, x in zip(step.outputs, out):
            held[b] = self.device.write(np.array(x, held_as(b.type.dtype)))

    def native(self, types, forms, constants, structure, fallback, name, donate=(), made=None):
        """A function that runs this executable for these forms, or None where none can.

        donate: positions of the donated inputs; made: the types of the results where they are not
        this executable's own.
        """
        if made is not None or not types or not tree.shallow(structure, tree.DISPLAYED):
            return None
        return entry.entry(self, types, forms, constants, structure, fallback, name, donate)


def ordered(launches, built, given, outputs):
    """(kernel, launch, buffers born, buffers dead) of each step.

    A Loop has its inner steps, a list per inner Plan, in place of a kernel.
    """
    seen, dead, steps = {*given}, {*given, *outputs}, []
    for x in reversed(launches):
        last = [b for b in dict.fromkeys(x.buffers) if is_buffer(b) and b not in dead]
        dead.update(last)
        steps.append((x, last))
    made = []
    for x, last in reversed(steps):
        born = [b for b in dict.fromkeys(x.buffers) if is_buffer(b) and b not in seen]
        seen.update(born)
        if isinstance(x.call, Loop):
            kernel = [ordered(inner, built, p.inputs, p.outputs)
                      for inner, p in zip(x.inner, x.call.plans)]
        else:
            kernel = None if x.call is not None else built.kernel(x.name, [None] * len(x.buffers))
        made.append((kernel, x, born, last))
    return made


def is_buffer(x):
    """Is it a loop.Buffer, and not a number?"""
    return hasattr(x, "kind")


def settled(x):
    """The ndarray, copied if somebody might still write to it: the device reads it later."""
    x = np.asarray(x)
    return copied(x, least=0) if x.flags.writeable else x
