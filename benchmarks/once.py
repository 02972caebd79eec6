"""A new process that does one thing once, for the time of the whole process.

    python -m benchmarks.once NAME THREADS [arrays | WORKLOAD FILE [before]]

Without more the implementation is imported, nothing else; with `arrays` its array functions, too.
FILE has the inputs of the workload, pickled: to draw them would take longer than some steps; with
`before` they are read, and nothing is called.  Only what is asked for is loaded.
"""

import importlib
import sys

from . import implementations


def run(name, lib, wanted, file, before=None):
    """Prepares the workload, calls it once and waits for the result; with `before`, no call."""
    workload = importlib.import_module("benchmarks.workload")
    found = importlib.import_module("benchmarks.workloads").find(wanted)
    implementation = implementations.IMPLEMENTATIONS[name]
    case = workload.prepared(found, implementation.style, lib,
                             implementations.converter(name, lib), implementation.finish,
                             workload.read(file))
    if not before:
        case.function(*case.args)


def main():
    name, threads, *wanted = sys.argv[1:]
    implementations.hold_to(int(threads))
    lib = implementations.IMPLEMENTATIONS[name].load(arrays=wanted != [])
    if wanted not in ([], ["arrays"]):
        run(name, lib, *wanted)


if __name__ == "__main__":
    main()
