"""The workloads, in the order of the tables."""

from fnmatch import fnmatchcase

from . import (
    calls, chains, convolutions, derivatives, growth, images, models, products, random,
    recurrent, rows, sequences)

MODULES = (calls, chains, rows, products, models, images, convolutions, sequences, recurrent,
           derivatives, random)
ALL = [workload for module in MODULES for workload in module.WORKLOADS]


def matches(name, patterns):
    """Does one of the patterns (`matmul_*`) fit the name?  No patterns fit every name."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def find(name):
    """The workload of that name, those of the plots over sizes included, which are in no table."""
    return next(workload for workload in (*ALL, *growth.WORKLOADS) if workload.name == name)


def select(patterns, full):
    """The workloads that were asked for."""
    return [w for w in ALL if matches(w.name, patterns) and (full or not w.full)]
