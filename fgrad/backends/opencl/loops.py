"""Loops on an OpenCL device: the host runs the inner steps again and again.

A slice of xs is copied out and a row of ys copied in, on the device; carries are handed on without
a copy.  The host waits for the device where it must know: a while's flag at every step, a cond's
index. Relies on the Executable that calls it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...types import BOOL, I32


class Held(dict):
    """The Buffers of a run: loop.Buffer → Buffer.  shared: ids of those that several have."""
    shared = frozenset()

    def look(self):
        """Finds out which are shared."""
        counts = Counter(map(id, self.values()))
        self.shared = {key for key, count in counts.items() if count > 1}


def run(executable, loop, inner, held):
    """Runs a Loop on what is Held; its results are there afterwards."""
    run = Run(executable, loop, inner, held)
    {"scan": run.scan, "while": run.while_, "cond": run.cond}[loop.kind]()


class Run:
    """One run of a loop."""

    def __init__(self, executable, loop, inner, held):
        self.executable, self.device, self.loop = executable, executable.device, loop
        self.inner, self.held = inner, held
        self.consts = [held[b] for b in loop.consts]
        self.carry = [held[b] for b in loop.starts]

    def place(self, b, held):
        return self.device.allocate(b.type.nbytes)

    def step(self, k, given):
        """The Buffers of the results of inner Plan k."""
        plan = self.loop.plans[k]
        held = Held(zip(plan.inputs, given))
        self.executable.run(self.inner[k], held, self.place)
        for b in plan.outputs:
            if b not in held:                    # without elements, so that no step made it
                held[b] = self.place(b, held)
        return [held[b] for b in plan.outputs]

    def scan(self):
        loop, n = self.loop, len(self.loop.ends)
        for k in range(loop.length)[::-1 if loop.reverse else 1]:
            out = self.step(0, [*self.consts, *self.carry, *[self.slice(b, k) for b in loop.xs]])
            self.carry = out[:n]
            for b, y in zip(loop.ys, out[n:]):
                size = b.type.nbytes // loop.length
                if size:
                    self.device.copy(self.held[b], y, size, k * size, 0)
        self.finish()

    def slice(self, b, k):
        """A Buffer with element k of xs, or with the number k."""
        if b is None:
            return self.device.write(np.array(k, I32))
        size = b.type.nbytes // self.loop.length
        part = self.device.allocate(size)
        if size:
            self.device.copy(part, self.held[b], size, 0, k * size)
        return part

    def while_(self):
        while self.device.read(self.step(0, [*self.consts, *self.carry])[0], (), BOOL):
            self.carry = self.step(1, [*self.consts, *self.carry])
        self.finish()

    def finish(self):
        """The carry becomes the results; a Buffer that somebody else holds is copied."""
        others = {id(x) for b, x in self.held.items() if b not in self.loop.ends}
        for b, x in zip(self.loop.ends, self.carry):
            if id(x) not in others:
                self.held[b] = x
                others.add(id(x))
            elif b.type.nbytes:
                self.device.copy(self.held[b], x, b.type.nbytes)

    def cond(self):
        index = int(self.device.read(self.held[self.loop.index], (), I32))
        k = min(max(index, 0), len(self.loop.plans) - 1)
        for b, x in zip(self.loop.ys, self.step(k, self.consts)):
            self.held[b] = x
        self.held.look()                         # a result may be what the branch was given
