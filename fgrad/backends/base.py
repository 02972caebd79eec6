"""What a backend is: devices, their target for the compiler, and `compile(plan) → executable`.

A backend of one's own is one class and a call of `register`; see docs/architecture.md.  The passes
know a backend only by its `target`; `jit` knows it only by this class.
"""

from __future__ import annotations

import threading

from .. import config
from ..errors import DeviceError
from ..later import lazily


class Backend:
    """Runs Plans on the devices of one kind."""

    def target(self, device):
        """The passes' description of a device, by name."""
        raise NotImplementedError

    def canonical(self, device):
        """The one name of a device that has several."""
        return device

    def tuner(self, device):
        """What chooses the Schedules of hot kernels (passes/schedule.py); None: nothing does."""
        return None

    def begin(self, device):
        """Called before a plan is made, for what can be done while it is; nothing has to be."""

    def compile(self, plan, device):
        """An executable: executable(values) → list of Arrays; `arena`: bytes that it works in.

        values: the inputs of the plan, then its constants, as fgrad Arrays of the right types.  It
        may have `native(types, forms, constants, structure, fallback, name, donate)`, which makes a
        function for the calls of one signature (native_entry.py), or None.
        """
        raise NotImplementedError

    def kept(self, program):
        """The executable that a process before this one has kept for a program, or None.

        program: a tuple of strings and numbers that determine it.
        """
        return None

    def keep(self, program, executable):
        """Keeps an executable for later processes, where the backend can."""

    def stages(self, plan, device):
        """Printable forms of the code for a plan: stage name → text."""
        raise NotImplementedError

    def wait(self, device):
        """Returns when everything that was started on a device has ended: here, at once."""

    def is_whole(self, loop):
        """Is a Loop one piece of code, into which no step of the host can be put?"""
        return False

    def devices(self):
        """Records of the devices there are, each with `name` and `description`.

        Raises DeviceError where there can be none.
        """
        raise NotImplementedError


def backend(module, name):
    """() → Backend: imports its class when called, so llvmlite and pyopencl load at first use."""
    find = lazily(f"fgrad.backends.{module}", name)

    def make():
        try:
            return find()()
        except ImportError as error:
            raise DeviceError(f"this kind of device cannot be used: {error}.",
                              fix="python -m fgrad doctor shows what is installed") from error
    return make


BACKENDS = {               # the word before ":" in a device's name → () → Backend
    "cpu": backend("llvm.backend", "Llvm"),
    "opencl": backend("opencl.backend", "OpenCL"),
    "gpu": backend("opencl.backend", "OpenCL"),
    "reference": backend("reference", "Reference"),
}
INSTANCES = {}             # the same → Backend, made at first use
_lock = threading.Lock()


def register(name, make):
    """Devices called `name` or `name:…` are run by the backend that `make()` gives.

    It is made at first use.
    """
    with _lock:
        BACKENDS[name] = make
        INSTANCES.pop(name, None)


def find(device):
    """The Backend of a device's name.  Raises DeviceError for a name nobody registered."""
    word = device.partition(":")[0]
    found = INSTANCES.get(word)
    if found is None:
        with _lock:
            make = BACKENDS.get(word)
            if make is None:
                raise DeviceError(f"there is no device {device!r}.", given=config.named_by(device),
                                  expected=", ".join(sorted(BACKENDS)),
                                  fix="fgrad.devices() lists the devices of this machine")
            found = INSTANCES[word] = make()
    return found
