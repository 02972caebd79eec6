"""Calls of a jitted function on an OpenCL device, with as little Python before a launch as can be.

A GPU takes a few microseconds for a small kernel, a call that is taken apart leaf by leaf fifty.
An entry compares what it is given with what it was made for, list by list, and hands the Buffers to
the executable; what it does not recognise goes to the function installed before it.  Relies on
`arrays` and `forms`; the executables of this backend rely on it.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from ... import tree
from ...bf16 import BF16
from ...core import Array, WordArray, give_away
from ...errors import boundary
from ..forms import NUMBERS, leaves, taker
from .arrays import DeviceArray, DeviceWords

CLASS, BUFFER, DEVICE = map(attrgetter, ("__class__", "buffer", "device"))
TYPE = attrgetter("_dtype", "_shape")            # the slots themselves: `type` is Python's


def entry(executable, types, forms, constants, structure, fallback, name, donate):
    """A function of the forms' arguments that runs an executable.

    types: of the inputs; constants: Arrays that they are followed by; structure: of the result;
    donate: positions of the inputs that are used no more.
    """
    take, assemble = taker(forms), tree.written_out(structure)
    inputs = Inputs(types, [kind for form in forms for kind in leaves(form)], executable)
    own = [c if is_on(c, executable.device) else DeviceArray(executable.written(c), c.type)
           for c in constants]

    @boundary
    def called(*args, **kwargs):
        given = None if kwargs else take(args)
        buffers = None if given is None else inputs.buffers(given)
        if buffers is None:
            return fallback(*args, **kwargs)
        try:
            return assemble(executable.results(buffers + list(map(BUFFER, own))))
        finally:
            give_away([given[k] for k in donate])
    called.__name__ = called.__qualname__ = name
    return called


HERE = DeviceArray, DeviceWords


def is_on(x, device):
    """Does an Array lie on this device?"""
    return x.__class__ in HERE and x.buffer.device is device


class Inputs:
    """What the inputs of an entry must be: Arrays of these types on its device, or on the host."""

    def __init__(self, types, kinds, executable):
        self.types, self.kinds, self.executable = types, kinds, executable
        self.classes = [DeviceWords if t.dtype is BF16 else DeviceArray for t in types]
        self.found = [(t.dtype, t.shape) for t in types]
        self.devices = [executable.device] * len(types)

    def buffers(self, given):
        """The Buffers of what is given, or None where it is not what it must be."""
        if list(map(CLASS, given)) != self.classes:
            return self.with_those_of_the_host(given)
        if list(map(TYPE, given)) != self.found:
            return None
        buffers = list(map(BUFFER, given))
        return buffers if list(map(DEVICE, buffers)) == self.devices else None

    def with_those_of_the_host(self, given):
        """The same where some lie on the host; where all do, another device may be meant."""
        if not any(x.__class__ in HERE for x in given):
            return None
        found = []
        for x, type, kind in zip(given, self.types, self.kinds):
            buffer = self.buffer(x, type, kind)
            if buffer is None:
                return None
            found.append(buffer)
        return found

    def buffer(self, x, type, kind):
        """The Buffer of one input, written if it lies on the host, or None."""
        if kind in NUMBERS:
            return self.number(x, type)
        if x.__class__ in HERE:
            same = x.type is type and is_on(x, self.executable.device)
            return x.buffer if same else None
        if x.__class__ is np.ndarray and x.dtype is type.dtype:
            x = Array(x)
        if x.__class__ in (Array, WordArray) and x.type is type:
            return self.executable.written(x)
        return None

    def number(self, x, type):
        """The Buffer of a Python number, or None of an int beyond 64 bits."""
        try:
            return self.executable.written(Array(np.asarray(x, type.dtype)))
        except OverflowError:
            return None
