"""NumPy, loaded so that idle threads of its BLAS go to sleep as soon as those of fgrad do.

OpenBLAS starts its threads when NumPy is imported.  Each spins for 2**28 ticks (about 0.1 s) before
it sleeps, then and after every product, and takes a core from compiled code: a first training step
took 1.5 times as long.  With 2**17 ticks (about 50 us) NumPy's own products are as fast.  What the
user has set stays; so does a NumPy that was there before.  Relies on nothing; `fgrad.numpy` imports
it before all else.
"""

import importlib
import os

WAIT = "OPENBLAS_THREAD_TIMEOUT"       # how long, as a power of two; read while the library loads


def load():
    """Imports NumPy; the environment is as it was afterwards."""
    os.environ[WAIT] = "17"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[WAIT]


if WAIT not in os.environ:
    load()
