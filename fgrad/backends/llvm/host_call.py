"""A step of a Plan that NumPy runs: the operation's own rule, on the buffers of the running call.

Operations without a pull (sorting, linear algebra) become such steps.  The native runner calls them
like any kernel; what one raises is kept, and raised when the run is over, and no later one of the
run is called.
"""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from ...core import numpy_rule
from ...types import BF16, held_as

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
RAISED = threading.local()           # `error`: what a step of the run on this thread has raised


class HostCall:
    """`address` is a function void(ptr %buffers, i64 %part) that runs the step."""

    def __init__(self, step):
        self.step = step
        self.inputs, self.outputs = [b.type for b in step.params], [b.type for b in step.outputs]
        self.narrow = any(b.type.dtype is BF16 for b in [*step.params, *step.outputs])
        self.callback = CALLBACK(self.run)
        self.address = ctypes.cast(self.callback, ctypes.c_void_p).value

    def run(self, buffers, part):
        if getattr(RAISED, "error", None) is not None:
            return
        types = [*self.inputs, *self.outputs]
        pointers = (ctypes.c_void_p * len(types)).from_address(buffers)
        arrays = [view(p, t) for p, t in zip(pointers, types)]
        try:
            self.write(arrays[len(self.inputs):], arrays[:len(self.inputs)], types)
        except BaseException as error:           # a callback cannot raise through native code
            RAISED.error = error

    def write(self, outs, args, types):
        """Fills the results."""
        op, params = self.step.op, self.step.op_params
        if op.into is not None and not self.narrow:
            op.into(outs, *args, **params)
            return
        for out, value in zip(outs, numpy_rule(op, args, types, params)):
            out[...] = value


def check():
    """Raises what a step of the last run on this thread raised."""
    error = getattr(RAISED, "error", None)
    if error is not None:
        RAISED.error = None
        raise error


def view(pointer, type):
    """The ndarray over memory; nothing is read for a size of 0."""
    if type.nbytes == 0:
        return np.empty(type.shape, held_as(type.dtype))
    memory = (ctypes.c_char * type.nbytes).from_address(pointer)
    return np.frombuffer(memory, held_as(type.dtype)).reshape(type.shape)
