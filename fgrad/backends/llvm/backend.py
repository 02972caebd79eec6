"""The CPU backend: a Plan becomes native code, which is called without Python where it can be.

What a Plan becomes is an `Image`, plain data with the keys of its objects; it is kept on disk, so a
second process only loads and runs.  Relies on `module` (writing) when there is none, on `image` and
`executable` always.
"""

from __future__ import annotations

from ... import config
from ...later import lazily
from ..base import Backend
from . import host, image, objects, target, threads
from .executable import Executable, not_loaded

loops = lazily("fgrad.backends.llvm.loops")
module = lazily("fgrad.backends.llvm.module")    # imported when something is to be written
tune = lazily("fgrad.backends.tune")


class Llvm(Backend):
    """Native code for the host's processor."""

    def begin(self, device):
        objects.begin(not_loaded())

    def target(self, device):
        return module().host_target()

    def tuner(self, device):
        if config.tune() == "0":
            return None
        return tune().tuner(lambda plan: self.compile(plan, device), module().described,
                            (host.IDENTITY, threads.pool().size))

    def compile(self, plan, device):
        return Executable(*module().compiled(plan))

    def kept(self, program):
        found = image.kept(program)
        return found and Executable(*found, {})

    def keep(self, program, executable):
        if not executable.calls:                 # what NumPy runs has parameters of any kind
            image.keep(program, executable.image)

    def stages(self, plan, device):
        written = module().Module(plan)
        return {"llvm": written.text(), "asm": lambda: target.assembly(written.text())}

    def is_whole(self, loop):
        return loops().fits(loop, module().parts_of)

    def devices(self):
        return [("cpu", f"{host.HOST.cpu}, {8 * host.HOST.vector_bytes}-bit vectors, "
                        f"{threads.pool().size} threads")]
