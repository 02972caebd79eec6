"""Workloads that are whole processes: import, first gradient, first train step and what is
before it.

Their time is that of a new process from start to end, Python itself included; the limit is a
process that does nothing.  `run.py` gives them their turns like the others.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import workload, workloads
from .implementations import IMPLEMENTATIONS, environment


@dataclass(frozen=True)
class Start:
    """What a new process does: import, or one call of `workload`, a name led by its module.

    `cold`: with an empty cache of compiled code; otherwise with what an earlier process compiled.
    "arrays" for a workload: the library and its functions of arrays are imported.
    `calls`: if not, it ends where it has imported everything and read the inputs.
    """
    name: str
    workload: str | None
    styles: tuple[str, ...]
    cold: bool = False
    calls: bool = True


ROOT = Path(__file__).parent.parent
DERIVATIVES = ("jax", "torch", "autograd")

ALL = [
    Start("import", None, (*DERIVATIVES, "numpy")),
    Start("import_arrays", "arrays", (*DERIVATIVES, "numpy")),
    Start("first_grad", "calls.eager_grad_tanh_matmul", DERIVATIVES),
    Start("first_grad_cold", "calls.eager_grad_tanh_matmul", DERIVATIVES, cold=True),
    *[Start(kind.format(name), workload, ("jax", "torch"), cold, calls)
      for name, workload in (("mlp_step", "models.mlp_step_64"),
                             ("cnn_step", "images.cnn_step_64"),
                             ("transformer_step", "sequences.transformer_step"))
      for kind, cold, calls in (("before_{}", False, False), ("compile_{}_cold", True, True),
                                ("compile_{}_warm", False, True))],
]


class Starter:
    """Starts processes for one implementation; answers like a worker of `run.py`."""

    def __init__(self, name, python, threads, folder):
        self.name, self.python, self.threads = name, python, threads
        self.cache = tempfile.mkdtemp(dir=folder)

    def prepare(self, name):
        """Writes its inputs, and runs it once, which fills the cache of compiled code."""
        wanted = start(name)
        if wanted.workload not in (None, "arrays"):
            inputs = workload.drawn(workloads.find(wanted.workload))
            workload.write(inputs, self.inputs(wanted))
        self.run(wanted, self.cache)

    def inputs(self, wanted):
        """The file that has the inputs of its workload."""
        return os.path.join(self.cache, f"{wanted.workload}.inputs")

    def measure(self, name, seconds):
        """Seconds of one whole process; `seconds` is not for something that happens once."""
        wanted = start(name)
        if not wanted.cold:
            return self.run(wanted, self.cache)
        empty = tempfile.mkdtemp(dir=self.cache)
        try:
            return self.run(wanted, empty)
        finally:
            shutil.rmtree(empty)

    def run(self, wanted, cache):
        begin = time.perf_counter()
        done = subprocess.run(self.command(wanted), env=environment(self.threads, cache), cwd=ROOT,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        taken = time.perf_counter() - begin
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["the process failed"])[-1])
        return taken

    def command(self, wanted):
        if self.name == "limit":
            return [self.python, "-c", "pass"]
        rest = {None: [], "arrays": ["arrays"]}.get(wanted.workload, [
            wanted.workload, self.inputs(wanted), *["before"] * (not wanted.calls)])
        return [self.python, "-m", "benchmarks.once", self.name, str(self.threads), *rest]


def start(name):
    """The Start of that name."""
    return next(each for each in ALL if each.name == name)


def runs(wanted, name):
    """Has an implementation (or the limit) something to do there?"""
    return name == "limit" or IMPLEMENTATIONS[name].style in wanted.styles


def pythons(chosen, names):
    """name → interpreter: what --python chose for it, else this one."""
    return {name: chosen.get(name, sys.executable) for name in names}
