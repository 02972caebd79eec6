"""`quiet`: rules during which NumPy is silent about inf and NaN, which are values like others.

`np.errstate` works its value out anew in every call, 0.4 µs.  What it sets is one context variable,
found here, so that setting and resetting it takes 0.15 µs.  Rules of operations rely on it.
"""

from __future__ import annotations

import functools
from contextvars import copy_context

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


def quiet(function):
    """The function; while it runs, NumPy is silent about inf and NaN.  A ufunc takes arrays alone.

    >>> quiet(np.log)(0.0)
    np.float64(-inf)
    """
    enter, leave = ERROR_STATE.set, ERROR_STATE.reset

    def silent(*args):
        before = enter(SILENCE)
        try:
            return function(*args)
        finally:
            leave(before)

    def silent_rule(*args, **params):
        before = enter(SILENCE)
        try:
            return function(*args, **params)
        finally:
            leave(before)
    return functools.wraps(function)(silent if isinstance(function, np.ufunc) else silent_rule)
