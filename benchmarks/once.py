"""A new process that does one thing once, for the time of the whole process.

    python -m benchmarks.once NAME THREADS [WORKLOAD]

Without a workload the implementation is imported, nothing else; so the workloads, which need NumPy,
are loaded only when one is asked for.
"""

import importlib
import sys

from . import implementations


def run(name, lib, wanted):
    """Prepares the workload, calls it once and waits for the result."""
    workload = importlib.import_module("benchmarks.workload")
    found = importlib.import_module("benchmarks.workloads").find(wanted)
    implementation = implementations.IMPLEMENTATIONS[name]
    case = workload.prepared(found, implementation.style, lib,
                             implementations.converter(name, lib), implementation.finish)
    case.function(*case.args)


def main():
    name, threads, *wanted = sys.argv[1:]
    implementations.hold_to(int(threads))
    lib = implementations.IMPLEMENTATIONS[name].load()
    for each in wanted:
        run(name, lib, each)


if __name__ == "__main__":
    main()
