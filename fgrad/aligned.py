"""NumPy arrays whose memory begins at a line of the processor's cache.

NumPy's own begins anywhere: where a vector lies across two lines, reading it takes two accesses.
Where compiled code has a heap of large pages, large arrays have their memory from there.  And
copies of arrays in another order, a line at a time.  Relies on NumPy alone.

    copied(x)                  # x, in memory of its own
    lies_well(x)               # or is a copy worth it, for what is read again and again?
    fill(out, x)               # out[...] = x
"""

from __future__ import annotations

from math import prod

import numpy as np

LINE = 64                  # bytes
LEAST = 1 << 15            # bytes from which it is worth while
LARGE = 1 << 17            # bytes from which memory is the heap's: malloc asks the system, too
HUGE = 1 << 22             # bytes from which NumPy asks for large pages itself
COLLIDING = 1 << 9         # bytes: of lines so far apart a cache holds but a few

heap = None                # heap(shape, dtype): a large array; set when compiled code brings one
bring = None               # bring(): sets it, if nothing must be compiled for it; is called once


def empty(shape, dtype, least=LEAST):
    """np.empty, at a line of the cache where the array has `least` bytes."""
    dtype = np.dtype(dtype)
    size = prod(shape) * dtype.itemsize
    if size < max(least, 1):
        return np.empty(shape, dtype)
    if size >= LARGE and dtype.kind in "biufc" and dtype.isnative and has_heap():
        return heap(shape, dtype)
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % LINE
    out = memory[start:start + size].view(dtype).reshape(shape)
    memory.flags.writeable = False               # so that nobody undoes that of `out`
    return out


def has_heap():
    """Is there one?  It is brought, where that takes no time."""
    global bring
    asked, bring = bring, None                   # another thread may have asked meanwhile
    if heap is None and asked is not None:
        asked()
    return heap is not None


def lies_well(x):
    """Is an array's memory, which is no part of another's, where that of a copy would be?

    >>> bool(lies_well(np.zeros(9))), bool(lies_well(copied(np.zeros(20000))))
    (True, True)
    """
    theirs = x.base is None or isinstance(x.base, np.ndarray)        # NumPy's, not the heap's
    if not theirs or not LEAST <= x.nbytes < HUGE:
        return True
    if x.nbytes >= LARGE and has_heap():
        return False
    return x.__array_interface__["data"][0] % LINE == 0


def copied(x, least=LEAST):
    """A contiguous copy of an array.

    >>> x = np.arange(20000.0)
    >>> y = copied(x)
    >>> bool((x == y).all()), y.__array_interface__["data"][0] % 64
    (True, 0)
    """
    out = empty(x.shape, x.dtype, least)
    fill(out, x)
    return out


def fill(out, x):
    """out[...] = x, of one shape and dtype.

    Of a transposed matrix NumPy copies row by row, and each element is in another line: lines that
    lie some KiB apart push each other out of the cache before the next row needs them.  The
    elements of a line from all rows, then those of the next line, take a half to a fourth of the
    time.
    """
    if is_turned(out, x):
        axis = out.strides.index(out.itemsize)
        out, x = np.moveaxis(out, axis, -1), np.moveaxis(x, axis, -1)
    if not is_turned(x, out):
        out[...] = x
        return
    step = LINE // x.itemsize
    for k in range(0, x.shape[-1], step):
        out[..., k:k + step] = x[..., k:k + step]


def is_turned(x, y):
    """Is x a large array whose elements in a row are in lines that collide, and y in order?"""
    if x.ndim < 2 or x.nbytes < LEAST or y.strides[-1] != y.itemsize:
        return False
    far = x.strides[-1]
    return far != 0 and far % COLLIDING == 0 and x.itemsize in x.strides
