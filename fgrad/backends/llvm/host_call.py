"""A step of a Plan that NumPy runs: the operation's own rule, on the buffers of the running call.

Operations without a pull (sorting, linear algebra, callbacks) become such steps.  The native runner
calls them with Python's lock; one that raises ends the run.
"""

from __future__ import annotations

import ctypes

import numpy as np

from ...core import numpy_rule
from ...types import BF16, held_as


def function(step):
    """A function that runs the step, given the address of the pointers to its buffers."""
    op, params, n = step.op, step.op_params, len(step.params)
    types = [b.type for b in (*step.params, *step.outputs)]
    into = None if any(t.dtype is BF16 for t in types) else op.into
    if op.prepare is not None:
        op.prepare(*types[:n], **params)
    size, latest = ctypes.sizeof(ctypes.c_void_p) * len(types), [(None, None, None)]
    views = [viewer(t) for t in types]

    def run(buffers):
        known, args, outs = latest[0]
        pointers = ctypes.string_at(buffers, size)
        if known != pointers:                    # steps of a loop have the same buffers each time
            arrays = [view(p) for p, view in zip(memoryview(pointers).cast("N"), views)]
            args, outs = arrays[:n], arrays[n:]
            latest[0] = pointers, args, outs
        if into is not None:
            into(outs, *args, **params)
            return
        for out, value in zip(outs, numpy_rule(op, args, types, params)):
            out[...] = value

    return run


def viewer(type):
    """A function that gives the ndarray over an address; nothing is read for a size of 0."""
    shape, dtype, memory = type.shape, held_as(type.dtype), ctypes.c_char * type.nbytes
    if type.nbytes == 0:
        return lambda address: np.empty(shape, dtype)
    return lambda address: np.ndarray(shape, dtype, memory.from_address(address))
