"""NumPy's BLAS on one thread, for work that its threads slow down.

OpenBLAS cuts a product with a vector of more than about 10,000 elements among threads, and LAPACK's
factorisations make one for each column: waking threads takes longer than the product.  Its number
of threads is one for the whole process; matrices of other threads meanwhile take longer, and are
the same.  Names are OpenBLAS's; with another library nothing changes.  Relies on `fortran`.
"""

from __future__ import annotations

import functools
import threading

from . import fortran

NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_",
         "openblas_{}_num_threads")


@functools.cache
def library():
    """(a function that gives OpenBLAS's number of threads, one that sets it), or None."""
    loaded = fortran.loaded()
    for form in NAMES:
        names = [form.format(what) for what in ("get", "set")]
        if loaded is not None and all(hasattr(loaded, name) for name in names):
            return [getattr(loaded, name) for name in names]
    return None


class OneThread:
    """While any thread is inside, OpenBLAS computes on one thread; then on as many as before.

    >>> with one_thread, one_thread:
    ...     one_thread.inside
    2
    """

    def __init__(self):
        self.lock, self.inside, self.before = threading.Lock(), 0, 1

    def __enter__(self):
        with self.lock:
            if not self.inside and library() is not None:
                get, put = library()
                self.before = get()
                put(1)
            self.inside += 1

    def __exit__(self, *raised):
        with self.lock:
            self.inside -= 1
            if not self.inside and library() is not None:
                library()[1](self.before)


one_thread = OneThread()
