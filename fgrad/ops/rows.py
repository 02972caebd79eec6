"""NumPy's work on rows, cut among threads: it lets go of Python's lock meanwhile.

Relies on the number of threads (`config`); sorting and Fourier transforms rely on it.
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


def in_rows(work, x, axis, many, threads=None):
    """work(x), which goes along an axis of x, its rows cut among threads.

    threads: all there are where None, but each gets `many` elements at least.
    → the results along the axis that was cut, None if they are
    """
    if threads is None:
        threads = min(config.threads(), x.size // many)
    others = [a for a in range(x.ndim) if a != axis % x.ndim]
    if threads < 2 or not others:
        return work(x)
    cut = max(others, key=lambda a: x.shape[a])
    parts = np.array_split(x, [x.shape[cut] * (threads // 2) // threads], cut)
    found = both(lambda: in_rows(work, parts[0], axis, many, threads // 2),
                 lambda: in_rows(work, parts[1], axis, many, threads - threads // 2))
    return None if found[0] is None else np.concatenate(found, cut)
