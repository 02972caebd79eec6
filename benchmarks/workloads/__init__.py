"""The workloads, in the order of the tables."""

from fnmatch import fnmatchcase

from . import calls, chains, derivatives, models, products, random, rows

ALL = [*calls.WORKLOADS, *chains.WORKLOADS, *rows.WORKLOADS, *products.WORKLOADS, *models.WORKLOADS,
       *derivatives.WORKLOADS, *random.WORKLOADS]


def matches(name, patterns):
    """Does one of the patterns (`matmul_*`) fit the name?  No patterns fit every name."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def find(name):
    """The workload of that name."""
    return next(workload for workload in ALL if workload.name == name)


def select(patterns, full):
    """The workloads that were asked for."""
    return [w for w in ALL if matches(w.name, patterns) and (full or not w.full)]
