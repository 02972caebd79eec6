"""The workloads, in the order of the tables; a module of them is loaded when one is asked for."""

import functools
import importlib
from fnmatch import fnmatchcase

MODULES = ("calls", "chains", "rows", "products", "models", "images", "convolutions", "sequences",
           "recurrent", "derivatives", "random")
CURVES = "growth"          # the module of the plots over sizes, whose workloads are in no table
PROGRAMS = "programs"      # the module of random programs, which have numbers


def of(module):
    """The workloads of a module."""
    return importlib.import_module(f"{__name__}.{module}").WORKLOADS


@functools.cache
def tabled():
    """All workloads of the tables."""
    return [workload for module in MODULES for workload in of(module)]


def matches(name, patterns):
    """Does one of the patterns (`matmul_*`) fit the name?  No patterns fit every name."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def find(name):
    """The workload of that name, those of the plots included.

    "models.mlp_step_64" is looked for in `models` alone, which spares a process all others;
    "programs.17" is a random program.
    """
    module, _, own = name.rpartition(".")
    if module == PROGRAMS:
        return importlib.import_module(f"{__name__}.{module}").named(own)
    known = of(module) if module else [*tabled(), *of(CURVES)]
    return next(workload for workload in known if workload.name == own)


def select(patterns, full):
    """The workloads that were asked for."""
    return [w for w in tabled() if matches(w.name, patterns) and (full or not w.full)]
