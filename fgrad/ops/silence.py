"""`quiet`: rules during which NumPy is silent about inf and NaN, which are values like others.

`np.errstate` works its value out anew in every call, 0.4 µs.  What it sets is one context variable,
found here, so that setting and resetting it takes 0.12 µs.  A ufunc runs no Python, so it may run
in another context, where the variable is set for good: 0.04 µs.  Rules of operations rely on it.
"""

from __future__ import annotations

import functools
from contextvars import Context, copy_context

import numpy as np


def error_state():
    """(the context variable that np.errstate sets, its value for silence).

    >>> variable, silence = error_state()
    >>> with np.errstate(all="ignore"):
    ...     variable in copy_context()
    True
    """
    outside = copy_context()
    with np.errstate(all="ignore"):
        inside = copy_context()
    (found,) = [v for v in inside if outside.get(v) is not inside[v]]
    return found, inside[found]


ERROR_STATE, SILENCE = error_state()
SILENT = Context()         # nothing but the silence
SILENT.run(ERROR_STATE.set, SILENCE)

# silence().run(np.add, a, b): a function that runs no Python, silent.  Each run has a copy, since a
# context may be entered once at a time, and other threads compute while NumPy does.
silence = SILENT.copy


def quiet(function):
    """The function; while it runs, NumPy is silent about inf and NaN.  A ufunc takes arrays alone.

    >>> quiet(np.log)(0.0)
    np.float64(-inf)
    """
    if isinstance(function, np.ufunc):
        return functools.wraps(function)(quiet_ufunc(function))
    enter, leave = ERROR_STATE.set, ERROR_STATE.reset

    def silent(*args, **params):
        before = enter(SILENCE)
        try:
            return function(*args, **params)
        finally:
            leave(before)
    return functools.wraps(function)(silent)


def quiet_ufunc(function):
    """`quiet` of a ufunc of one or two arrays, which are named: *args would cost 0.05 µs."""
    if function.nin == 1:
        return lambda x: silence().run(function, x)
    return lambda x, y: silence().run(function, x, y)
