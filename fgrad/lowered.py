"""What can be seen of a compiled function: one signature of it, as text at every stage.

`Jitted.lower` makes a Lowered; `show` prints one.  Relies on the compile driver; jit relies on it.
"""

from __future__ import annotations

from . import compile as driver
from .core import as_value
from .errors import ArgumentError
from .text import counted


class Lowered:
    """One signature of a function, printable at every stage: ir, fused, loops, llvm, asm, opencl.

    `str()` is the program; `text(stage)` any stage, and so is an attribute of its name;
    `compile()` the compiled function of its leaves.
    """

    def __init__(self, trace, device):
        self.trace, self.device = trace, device

    @property
    def ir(self):
        """The array Program."""
        return self.trace.program

    def __str__(self):
        return str(self.ir)

    __repr__ = __str__

    def text(self, stage="ir"):
        """The text of a stage.  Raises ArgumentError for one that the device does not have."""
        return driver.text(self.ir, stage, self.device)

    def __getattr__(self, stage):
        if stage.startswith("_"):
            raise AttributeError(stage)
        try:
            return self.text(stage)
        except ArgumentError as error:
            raise AttributeError(str(error)) from None

    def compile(self):
        """A function of the flat list of arrays that runs the compiled code."""
        compiled = driver.compiled(self.ir, self.device)
        return lambda *values: self.trace.results(compiled([as_value(v) for v in values]))


def summary(program):
    """A Program's name, its length, and, where it is compiled, the memory that it needs."""
    needed = driver.temporaries(program)
    memory = "" if needed is None else f", {needed:,} bytes of temporaries"
    return f"{program.name}: {counted(len(program.eqns), 'operation')}{memory}"
