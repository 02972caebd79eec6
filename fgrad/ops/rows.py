"""NumPy's work on rows, cut among threads: it lets go of Python's lock meanwhile.

Relies on the number of threads (`config`); sorting, Fourier transforms and `lapack` rely on it.
"""

from __future__ import annotations

import threading

import numpy as np

from .. import config


def both(first, second):
    """What two functions give, at the same time; raises what either of them raises."""
    found, raised = [], []

    def run():
        try:
            found.append(second())
        except BaseException as error:
            raised.append(error)
    helper = threading.Thread(target=run)
    helper.start()
    try:
        found.insert(0, first())
    finally:
        helper.join()
    if raised:
        raise raised[0]
    return found


def in_rows(work, x, axes, many, threads=None):
    """work(x), which goes along axes of x, one or a tuple, its rows cut among threads.

    threads: all there are where None, but each gets `many` elements at least.
    → the results, an array or a tuple, along the axis that was cut, None if they are
    """
    kept = {a % x.ndim for a in (axes if isinstance(axes, tuple) else (axes,))}
    cut = max(set(range(x.ndim)) - kept, key=lambda a: x.shape[a], default=None)
    if threads is None:
        threads = min(config.threads(), x.size // many)
    if cut is None or min(threads, x.shape[cut]) < 2:
        return work(x)
    parts = np.array_split(x, [x.shape[cut] * (threads // 2) // threads], cut)
    found = both(lambda: in_rows(work, parts[0], axes, many, threads // 2),
                 lambda: in_rows(work, parts[1], axes, many, threads - threads // 2))
    if isinstance(found[0], tuple):
        return tuple(np.concatenate(pair, cut) for pair in zip(*found))
    return None if found[0] is None else np.concatenate(found, cut)
