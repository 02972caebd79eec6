"""Switches read from the environment, once each: FGRAD_DEVICE, FGRAD_THREADS, FGRAD_CACHE, …

Each switch is a function, so that tests can change the environment and nothing is read at import.
"""

from __future__ import annotations

import os


def device():
    """The default device's name: FGRAD_DEVICE, or "cpu"."""
    return os.environ.get("FGRAD_DEVICE", "").strip() or "cpu"


def full_traceback():
    """Are the library's own frames shown in tracebacks?  FGRAD_TRACEBACK=full."""
    return os.environ.get("FGRAD_TRACEBACK", "") == "full"


def native_call():
    """Are jitted functions called through a native entry?  FGRAD_NATIVE_CALL=0 switches it off."""
    return os.environ.get("FGRAD_NATIVE_CALL", "1") != "0"
