"""The compile driver: a Program becomes an executable of a device, once.

    inline calls → passes → backend.compile

Programs with one canonical text share an executable, and closed-over arrays are arguments of it,
never part of the text.  `call` operations met outside of any transformation run here too.  Relies
on the passes and the backends; jit relies on it.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections import OrderedDict, namedtuple
from contextlib import contextmanager

from . import config, denormals, passes
from .backends import base
from .core import Array
from .errors import ArgumentError, DeviceError
from .interpreters import call as calls
from .ir import has_complex
from .ir_text import all_programs, canonical
from .later import lazily
from .text import noun_of

pairs = lazily("fgrad.passes.pairs")            # what is real does without
EXECUTABLES = OrderedDict()          # (text, inputs, device, donated inputs, tuning) → executable
LIMIT = 1024                         # executables kept; the least used goes first
WRITTEN_BY = {"llvm": "cpu", "asm": "cpu", "opencl": "opencl"}       # stage → a device that has it
_lock = threading.Lock()
_resting = []                        # per compilation that runs: was the collector on before it?


class Compiled:
    """A Program together with its executable: compiled(values) → list of Arrays."""

    def __init__(self, program, device, donate=()):
        self.program, self.device = program, device
        self.executable = executable(program, device, donate)
        self.constants = [array for _, array in program.hidden]

    def __call__(self, values):
        return self.executable([*values, *self.constants])


def executable(program, device, donate=()):
    """The executable of an inlined Program; made once for all Programs of one text."""
    inputs = tuple([len(p.inputs) for p in all_programs(program)])   # without closed-over arrays
    key = canonical(program), inputs, device, donate, config.tune()
    with _lock:
        found = EXECUTABLES.get(key)
        if found is not None:
            EXECUTABLES.move_to_end(key)
            return found
    backend = base.find(device)
    made = backend.kept(key)
    if made is None:
        made = built(program, device, donate)
        backend.keep(key, made)
    made = of_values(made, program)
    with _lock:
        EXECUTABLES[key] = made
        while len(EXECUTABLES) > LIMIT:
            EXECUTABLES.popitem(last=False)
    return made


def built(program, device, donate=(), change=lambda plan: plan):
    """A new executable of real arrays for an inlined Program.  change(plan): what is compiled."""
    backend, donate = base.find(device), () if program.derive(has_complex) else donate
    with uncollected(), denormals.kept():
        backend.begin(device)
        plan = passes.plan(pairs().expanded(program), backend.target(device), donate,
                           backend.tuner(device))
        return backend.compile(change(plan), device)


@contextmanager
def uncollected():
    """Python's garbage collector rests while something is traced or compiles, in whatever thread.

    Both make many small records that stay alive together; looking through them for cycles again and
    again takes a third of their time.
    """
    with _lock:
        _resting.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            if _resting.pop() and not _resting:
                gc.enable()


def of_values(executable, program):
    """An executable of real arrays as one of the Program's values, which may be complex."""
    is_complex = program.derive(has_complex)
    return OfComplex(executable, program.out_types) if is_complex else executable


class OfComplex:
    """An executable of real arrays, called with complex ones and giving them: the same memory."""

    def __init__(self, executable, types):
        self.executable, self.types = executable, types

    @property
    def arena(self):
        return self.executable.arena

    def __call__(self, values):
        out = self.executable([pairs().to_memory(x) for x in values])
        return [pairs().from_memory(x, t) for x, t in zip(out, self.types)]

    def native(self, types, forms, constants, structure, fallback, name, donate=()):
        """A builtin as the executable has: complex numbers and their parts have the same memory."""
        if donate or not hasattr(self.executable, "native"):
            return None
        constants = [pairs().to_memory(x) for x in constants]
        return self.executable.native(types, forms, constants, structure, fallback, name,
                                      made=self.types)


def inlined(program):
    """The Program with its nested calls replaced by their equations, made once; itself if flat."""
    return program if program.derive(calls.is_flat) else program.derive(calls.inline)


def compiled(program, device, donate=()):
    """The Compiled of a Program, made once per device."""
    return inlined(program).derive(Compiled, device, donate)


def temporaries(program):
    """Bytes for temporaries of a Program that has been compiled, for whatever device; else None."""
    for (how, _), made in list(inlined(program).derived.items()):
        if how is Compiled:
            return made.executable.arena
    return None


def clear_caches():
    """Forgets every executable in memory; files on disk stay, and are loaded when they are needed.

    >>> import fgrad
    >>> double = fgrad.jit(lambda x: 2 * x)
    >>> double(3.0)
    Array(6., f32[])
    >>> fgrad.clear_caches()
    """
    with _lock:
        EXECUTABLES.clear()


def device_of(values, wanted=None):
    """The device to run on: that asked for, else one that holds an argument, else the default."""
    if wanted is None:
        for x in values:
            if x.__class__ is not Array and isinstance(x, Array) and x.device != "cpu":
                return x.device
    name = wanted or config.device()
    return name if name == "cpu" else canonical_name(name)


@functools.lru_cache(maxsize=64)
def canonical_name(device):
    """The one name of a device: what is compiled for "gpu" is there for "opencl:0", too."""
    return base.find(device).canonical(device)


def device_name(device):
    """The name of a device, given by name or as one of `devices()`.

    Raises DeviceError when there is none of this name, ArgumentError for anything else.
    """
    name = device.name if isinstance(device, Device) else device
    if not isinstance(name, str):
        raise ArgumentError(f"a device is named by a string, not by {noun_of(device)}.",
                            given=f"{device!r:.60}", expected='"cpu", "opencl", "opencl:0", …',
                            fix="fgrad.devices() lists the devices of this machine")
    base.find(name).target(name)
    return name


def text(program, stage, device):
    """The text of a Program at a stage of its compilation for a device.

    Code that the device's backend does not write is shown as the backend that does would write it.
    Raises ArgumentError for an unknown stage.
    """
    if stage == "ir":
        return str(program)
    flat, backend = pairs().expanded(inlined(program)), base.find(device)
    target, tuner = backend.target(device), backend.tuner(device)
    found = passes.stages(flat, target, tuner)
    if stage not in found:
        found = backend.stages(passes.plan(flat, target, tuner=tuner), device)
    if stage not in found and WRITTEN_BY.get(stage, device) != device:
        return text(program, stage, WRITTEN_BY[stage])
    if stage not in found:
        known = "ir, simplified, fused, loops, schedule, memory, "
        raise ArgumentError(f"there is no stage {stage!r} on {device}.",
                            expected=known + ", ".join(found))
    made = found[stage]
    return made if isinstance(made, str) else str(made())


def devices():
    """The devices of this machine: a printable list of their names and what they are.

    >>> devices()[0].name
    'cpu'
    """
    out = DeviceList()
    for word in ("cpu", "opencl"):
        try:
            out += [Device(name, what) for name, what in base.find(word).devices()]
        except DeviceError as error:
            out.missing.append((word, error))
    return out


class Device(namedtuple("Device", "name description")):
    """A device's name, as `jit(device=…)` and FGRAD_DEVICE take it, and what it is."""
    __slots__ = ()


class DeviceList(list):
    """Devices; printing it also says why a kind of device is missing."""

    def __init__(self):
        super().__init__()
        self.missing = []

    def __repr__(self):
        rows = [f"{d.name:12} {d.description}" for d in self]
        rows += [f"{word:12} not available: {error.sentence}" for word, error in self.missing]
        return "\n".join(rows)


def run_call(args, params):
    """The value of a `call` operation on Arrays: its Program, compiled."""
    program, device = params["program"], params.get("device")
    return tuple(compiled(program, device_of(args, device))(args))


calls.call.run = run_call            # outside of transformations a call runs compiled
