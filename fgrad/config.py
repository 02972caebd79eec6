"""Switches read from the environment, once each: FGRAD_DEVICE, FGRAD_THREADS, FGRAD_CACHE, …

Each switch is a function, so that tests can change the environment and nothing is read at import.
"""

from __future__ import annotations

import os
from contextvars import ContextVar


CHOSEN_DEVICE = ContextVar("fgrad_device", default=None)      # set by fgrad.device


def device():
    """The default device's name: that of the block, or FGRAD_DEVICE, or "cpu"."""
    return CHOSEN_DEVICE.get() or os.environ.get("FGRAD_DEVICE", "").strip() or "cpu"


def full_traceback():
    """Are the library's own frames shown in tracebacks?  FGRAD_TRACEBACK=full."""
    return os.environ.get("FGRAD_TRACEBACK", "") == "full"


def nans():
    """Are transformed functions watched for NaN and inf?  FGRAD_NANS=1."""
    return os.environ.get("FGRAD_NANS", "") == "1"


def strict_promotion():
    """Is an array never converted to the dtype of another without being asked?  FGRAD_STRICT=1."""
    return os.environ.get("FGRAD_STRICT", "") == "1"


def native_call():
    """May jitted functions and operators begin in machine code?  FGRAD_NATIVE_CALL=0: no."""
    return os.environ.get("FGRAD_NATIVE_CALL", "1") != "0"


def cache_folder():
    """The folder for compiled code, None for no folder: FGRAD_CACHE=0|DIR, or the user's cache."""
    chosen = os.environ.get("FGRAD_CACHE", "").strip()
    if chosen == "0":
        return None
    base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
    return chosen or (os.path.join(base, "fgrad") if os.path.isabs(base) else None)


def cache_megabytes():
    """How much compiled code is kept on disk: FGRAD_CACHE_MB, 512 where it is not a number."""
    try:
        return float(os.environ.get("FGRAD_CACHE_MB", "512"))
    except ValueError:
        return 512.0


def tune():
    """What FGRAD_TUNE says, as text: how many schedules of a hot kernel are tried; "0" unset."""
    return os.environ.get("FGRAD_TUNE", "").strip() or "0"


def threads():
    """Threads for compiled code: FGRAD_THREADS, or as many as this process may run at once."""
    asked = os.environ.get("FGRAD_THREADS", "").strip()
    return int(asked) if asked.isdigit() and int(asked) > 0 else processors()


def processors():
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
