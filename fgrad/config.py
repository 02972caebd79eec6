"""Switches read from the environment where they are needed: FGRAD_DEVICE, FGRAD_THREADS, …

Each switch is a function, so that tests can change the environment and nothing is read at import.
What a switch cannot be is said once, and stands for its default.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from . import later

__getattr__, __dir__ = later.names(__name__, {})               # for what JAX has here

CHOSEN_DEVICE = ContextVar("fgrad_device", default=None)      # set by fgrad.device
notice = later.lazily("fgrad.errors", "notice")
ON, OFF = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def asked(name, default, fits, expected):
    """The text that a variable of the environment holds, or its default where that is not what is
    expected, which is said once.
    """
    text = os.environ.get(name, "").strip()
    if text and not fits(text):
        notice()(("switch", name, text),
                 f"{name}={text} is not {expected}: it is taken for {default or 'unset'}.")
        return default
    return text or default


def is_on(name, default):
    """Is a switch on: "1", "true", "yes" or "on", or their opposites, in letters of any size?"""
    if name not in os.environ:                   # asked for in every operation
        return default == "1"
    return asked(name, default, lambda text: text.lower() in ON | OFF, "0 or 1").lower() in ON


def is_number(text):
    try:
        return float(text) >= 0
    except ValueError:
        return False


def device():
    """The default device's name: that of the block, or FGRAD_DEVICE, or "cpu"."""
    return CHOSEN_DEVICE.get() or os.environ.get("FGRAD_DEVICE", "").strip() or "cpu"


def named_by(device):
    """Who names this device: "FGRAD_DEVICE=…" where the environment does, else None."""
    text = os.environ.get("FGRAD_DEVICE", "").strip()
    return f"FGRAD_DEVICE={text}" if device == text and not CHOSEN_DEVICE.get() else None


def full_traceback():
    """Are the library's own frames shown in tracebacks?  FGRAD_TRACEBACK=full."""
    return asked("FGRAD_TRACEBACK", "", {"full"}.__contains__, "full") == "full"


def nans():
    """Are transformed functions watched for NaN and inf?  FGRAD_NANS=1."""
    return is_on("FGRAD_NANS", "0")


def strict_promotion():
    """Is an array never converted to the dtype of another without being asked?  FGRAD_STRICT=1."""
    return is_on("FGRAD_STRICT", "0")


def native_call():
    """May jitted functions and operators begin in machine code?  FGRAD_NATIVE_CALL=0: no."""
    return is_on("FGRAD_NATIVE_CALL", "1")


def cache_folder():
    """The folder for compiled code, None for no folder: FGRAD_CACHE=0|DIR, or the user's cache."""
    chosen = os.environ.get("FGRAD_CACHE", "").strip()
    if chosen == "0":
        return None
    base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
    return chosen or (os.path.join(base, "fgrad") if os.path.isabs(base) else None)


def cache_megabytes():
    """How much compiled code is kept on disk: FGRAD_CACHE_MB, 512 where it is not a number."""
    return float(asked("FGRAD_CACHE_MB", "512", is_number, "a number of megabytes"))


def tune():
    """What FGRAD_TUNE says, as text: how many schedules of a hot kernel are tried; "0" unset."""
    return os.environ.get("FGRAD_TUNE", "").strip() or "0"


def threads():
    """Threads for compiled code: FGRAD_THREADS, or as many as this process may run at once."""
    chosen = asked("FGRAD_THREADS", "", lambda text: text.isdigit() and int(text) > 0,
                   "a number of threads")
    return int(chosen) if chosen else processors()


def processors():
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
