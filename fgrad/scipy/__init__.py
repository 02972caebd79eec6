"""SciPy's names for fgrad, as far as examples of the field use them: special, stats, linalg."""

import importlib as _importlib


def __getattr__(name):
    """`linalg`, `special` and `stats`, loaded at first use."""
    if name in ("linalg", "special", "stats"):
        return _importlib.import_module(f"fgrad.scipy.{name}")
    raise AttributeError(f"module 'fgrad.scipy' has no attribute {name!r}")
