"""SciPy's names for fgrad, as far as examples use them: linalg, signal, special, stats."""

import importlib as _importlib


def __getattr__(name):
    """`linalg`, `signal`, `special` and `stats`, loaded at first use."""
    if name in ("linalg", "signal", "special", "stats"):
        return _importlib.import_module(f"fgrad.scipy.{name}")
    raise AttributeError(f"module 'fgrad.scipy' has no attribute {name!r}")
