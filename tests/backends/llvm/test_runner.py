"""The native runner finds out whether one thread runs a plan of short kernels more quickly."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import passes
from fgrad.backends import base
from fgrad.backends.llvm import module, runner, threads

CALLS = runner.CALLS                             # words of a plan
SHARED, ALONE = CALLS + 1, CALLS + 2


def compiled(function, *args):
    types = [fgrad.ArrayType(x.dtype.name, x.shape) for x in args]
    plan = passes.plan(fgrad.make_ir(function)(*types), module.host_target(), ())
    return base.find("cpu").compile(plan, "cpu")


needs_threads = pytest.mark.skipif(threads.pool().size < 2, reason="one processor")


@needs_threads
def test_a_plan_of_short_kernels_is_tried_both_ways_now_and_again(monkeypatch):
    x = fnp.ones(300_000)
    run = compiled(lambda x: fnp.tanh(x) * 2, x)
    want, words = np.asarray(run([x])[0]), run.table.words
    assert words[0] == 1 and words[CALLS] == 1 and words[SHARED] > 0 == words[ALONE]
    for _ in range(2 * runner.TRIED - 1):
        np.testing.assert_array_equal(np.asarray(run([x])[0]), want)
    assert words[CALLS] == 2 * runner.TRIED and words[ALONE] > 0
    times = words[SHARED:].tolist()
    for _ in range(runner.EACH - 2 * runner.TRIED):
        assert words[CALLS] and words[SHARED:].tolist() == times
        np.testing.assert_array_equal(np.asarray(run([x])[0]), want)
    assert words[CALLS] == 0                     # it is tried again
    words[SHARED] = words[ALONE] = 1
    run([x])
    assert words[SHARED] > 1 == words[ALONE]     # what was measured before is forgotten


@needs_threads
@pytest.mark.parametrize("function, shape", [
    (lambda x: x + 1, (8,)),                     # runs no kernel in parts
    (lambda x: x @ x, (1500, 1500))])            # nor a short one
def test_other_plans_are_not_tried(function, shape):
    x = fnp.ones(shape)
    run = compiled(function, x)
    run([x])
    assert run.table.words[0] == run.table.words[CALLS] == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")
@pytest.mark.parametrize("shared, alone, works", [(1000, 874, False), (1000, 876, True),
                                                  (1000, 2000, True)])
def test_one_thread_runs_what_it_ran_more_quickly(shared, alone, works):
    """Where all threads took an eighth longer, and only there, a worker has nothing to do."""
    program = f"""
        import os, sys, time
        import fgrad.numpy as fnp
        from tests.backends.llvm.test_runner import ALONE, CALLS, SHARED, compiled

        before, x = set(os.listdir("/proc/self/task")), fnp.ones(300_000)
        run = compiled(lambda x: fnp.tanh(x) * 2, x)
        for _ in range(20):
            run([x])
        words = run.table.words

        def ticks(task):
            try:
                stat = open(f"/proc/self/task/{{task}}/stat").read()
            except FileNotFoundError:            # it compiled, and has ended
                return 0
            return int(stat.rsplit(")")[-1].split()[11])
        workers = set(os.listdir("/proc/self/task")) - before
        for attempt in range(10):                # on a crowded machine a worker may be late
            start = {{task: ticks(task) for task in workers}}
            until = time.perf_counter() + 0.3
            while time.perf_counter() < until:
                words[CALLS], words[SHARED], words[ALONE] = 100, {shared}, {alone}
                run([x])
            worked = max(ticks(task) - start[task] for task in workers)
            if {works} == (worked > 4):
                sys.exit()
        sys.exit(f"a worker took {{worked}} ticks")
    """
    environment = os.environ | {"FGRAD_THREADS": "2"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60,
                   env=environment)
