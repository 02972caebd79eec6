"""One implementation in a process of its own: prepares workloads and times them on request.

    python -m benchmarks.worker NAME THREADS CLOCK

Requests are lines of JSON on stdin, replies lines of JSON on stdout; what the libraries print goes
to stderr.  `run.py` starts the workers and gives them their turns.  The worker named `limit` runs
nothing: it measures what the machine could do at best, see `limits.py`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from itertools import repeat

from . import implementations, workload, workloads

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
BATCH = 0.001              # seconds that one reading of the clock should cover at least
WARM = 0.2                 # seconds of calls before the first measurement, where a call is shorter


class Worker:
    """An implementation and the workloads it has prepared so far."""

    def __init__(self, name, clock):
        self.name, self.clock = name, clock
        self.implementation = implementations.IMPLEMENTATIONS[name]
        self.lib = self.implementation.load()
        self.convert = implementations.converter(name, self.lib)
        self.cases = {}

    def versions(self):
        return implementations.versions(self.name)

    def prepare(self, name):
        """Compiles and runs a workload once, and short calls until they are as fast as they get:
        libraries look at what is called often.  Gives the answer.
        """
        case = self.cases[name] = workload.prepared(
            workloads.find(name), self.implementation.style, self.lib, self.convert,
            self.implementation.finish)
        answer = workload.answer(case.workload, case.first())
        run = runner(case)
        if timed(run, 1, self.clock) < BATCH:
            calls_in(run, WARM, self.clock)
        return answer

    def forget(self, name):
        """Frees a workload's arrays."""
        self.cases.pop(name, None)

    def measure(self, name, seconds):
        """Seconds a call, in the fastest of as many batches as fit into the time, three at least.

        The fastest, because all that other processes can do to a batch is to make it slower.
        """
        case = self.cases[name]
        run = runner(case)
        count = calls_in(run, BATCH, self.clock)
        samples, end = [], time.perf_counter() + seconds
        gc.disable()
        while len(samples) < 3 or time.perf_counter() < end:
            samples.append(timed(run, count, self.clock) / count)
        gc.enable()
        return min(samples)


def runner(case):
    """run(n) of a workload."""
    return stepper(case) if case.workload.carries else caller(case)


def caller(case):
    """run(n): n calls of the function."""
    function, args = case.function, case.args

    def run(n):
        for _ in repeat(None, n):
            function(*args)
    return run


def stepper(case):
    """run(n): n train steps, each from the state that the last one left.

    Every stepper begins anew: after thousands of steps on one batch the moments are subnormal.
    """
    state, *data = case.args

    def run(n):
        nonlocal state
        for _ in repeat(None, n):
            state, _loss = case.function(state, *data)
    return run


def timed(run, count, clock):
    start = clock()
    run(count)
    return clock() - start


def calls_in(run, seconds, clock):
    """How many calls take so long."""
    run(1)
    count = 1
    while (taken := timed(run, count, clock)) < seconds:
        count = max(2 * count, min(int(1.2 * count * seconds / max(taken, 1e-9)), 100 * count))
    return count


def limits(threads, clock):
    """The worker that runs nothing; its module needs what fgrad needs, which the others need not
    have."""
    return importlib.import_module(f"{__package__}.limits").LimitWorker(threads, clock)


def handle(worker, request):
    """The reply to one request; a workload that fails is a reply too."""
    try:
        return {"value": getattr(worker, request["do"])(*request["args"])}
    except Exception as error:                   # whatever a library raises belongs in the table
        sys.excepthook(*sys.exc_info())
        first = next(iter(str(error).strip().splitlines()), "")
        return {"error": f"{type(error).__name__}: {first}"}


def main():
    name, threads, clock = sys.argv[1], int(sys.argv[2]), CLOCKS[sys.argv[3]]
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    implementations.hold_to(threads)
    worker = limits(threads, clock) if name == "limit" else Worker(name, clock)
    if name.startswith("torch"):
        worker.lib.set_num_threads(threads)
    for line in sys.stdin:
        print(json.dumps(handle(worker, json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main()
