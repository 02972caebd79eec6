"""Denormal numbers: kept, as NumPy keeps them, or within a block flushed to zero.

A float below the least normal one (1.2e-38 in f32, 2.2e-308 in f64) is held with fewer and fewer
digits.  Processors compute with such numbers in microcode, some hundred times slower.  Whether they
do is a mode of each thread; the pool's workers take that of the thread that called.  Relies on the
pool; `compile` relies on it, so that no constant is folded in another mode.
"""

from __future__ import annotations

from contextlib import contextmanager
from ctypes import c_int64

import numpy as np

from .blocks import block
from .errors import DeviceError
from .later import lazily

threads = lazily("fgrad.backends.llvm.threads")
used = False               # has any thread flushed them?  Those that it started would go on


@block
def flush_denormals():
    """Within the block the CPU takes denormal numbers for zero, in this thread and those it starts.

    That goes for compiled functions, on all their threads, and for what NumPy and Python compute;
    functions need not be compiled again.  Gradients and momenta that fade away (0.9 ** 900 of an
    Adam step's, of a unit that is dead) are computed with at full speed then.  What such numbers
    would have made of others is lost: 1e-39 * 1e30 is 0.  An OpenCL device has rules of its own.

    Raises DeviceError for a processor on which fgrad cannot do so (neither x86-64 nor 64-bit ARM).

    >>> import fgrad.numpy as fnp
    >>> x = fnp.array([1e-38, 1.0])
    >>> with flush_denormals():
    ...     flushed = (x * 0.5).tolist()
    >>> flushed, (x * 0.5).tolist()[0] > 0
    ([0.0, 0.5], True)
    """
    global used
    if not threads().float_mode()[1]:
        raise DeviceError("it is not known how this processor flushes denormal numbers.",
                          expected="x86-64, or 64-bit ARM")
    for dtype in "efd":
        np.finfo(dtype)                          # kept by NumPy, which asks the processor
    used = True
    with switched(True):
        yield


@contextmanager
def kept():
    """Within the block denormal numbers are kept, even if a block around it flushes them."""
    if not used:
        yield
        return
    with switched(False):
        yield


@contextmanager
def switched(flushed):
    """The mode of this thread changed, within the block."""
    pool, bits = threads().pool(), threads().float_mode()[1]
    mode, change = pool.function("mode", 0, c_int64), pool.function("set.mode", 1)
    before = mode() & bits
    change(mode() & ~bits | flushed * bits)
    try:
        yield
    finally:
        change(mode() & ~bits | before)
