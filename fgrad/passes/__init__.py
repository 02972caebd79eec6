"""The passes of the compiler's middle: a Program becomes a Plan.

What `pipeline` offers is imported when it is asked for: a process that finds its compiled programs
on disk runs no pass.
"""

import importlib

from .target import CPU, Target

LATE = ("PIPELINE", "plan", "stages")


def __getattr__(name):
    if name not in LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(".pipeline", __name__), name)
