"""The worker that answers what the machine needs at least, as fgrad measures it."""

from __future__ import annotations

from fgrad.backends.llvm.limits import Machine

from . import workloads


class LimitWorker:
    """Answers like a `worker.Worker`; its times are what the machine needs at least."""

    def __init__(self, threads, clock):
        self.machine = Machine(threads, clock)

    def versions(self):
        return {}

    def prepare(self, name):
        return []

    def measure(self, name, seconds):
        found = workloads.find(name)
        return self.machine.seconds(found.flops, found.reads, found.writes)
