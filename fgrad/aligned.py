"""NumPy arrays whose memory begins at a line of the processor's cache.

NumPy's own begins anywhere: where a vector lies across two lines, reading it takes two accesses.
Relies on NumPy alone.

    copied(x)                  # x, in memory of its own
"""

from __future__ import annotations

from math import prod

import numpy as np

LINE = 64                  # bytes
LEAST = 1 << 15            # bytes from which it is worth while


def empty(shape, dtype, least=LEAST):
    """np.empty, at a line of the cache where the array has `least` bytes."""
    dtype = np.dtype(dtype)
    size = prod(shape) * dtype.itemsize
    if size < max(least, 1):
        return np.empty(shape, dtype)
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % LINE
    out = memory[start:start + size].view(dtype).reshape(shape)
    memory.flags.writeable = False               # so that nobody undoes that of `out`
    return out


def copied(x, least=LEAST):
    """A contiguous copy of an array.

    >>> x = np.arange(20000.0)
    >>> y = copied(x)
    >>> bool((x == y).all()), y.__array_interface__["data"][0] % 64
    (True, 0)
    """
    out = empty(x.shape, x.dtype, least)
    out[...] = x
    return out
