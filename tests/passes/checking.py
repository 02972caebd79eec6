"""Running Plans through the oracles: the Program by NumPy rules, the Plan one element at a time."""

import numpy as np

import fgrad.numpy  # noqa: F401  (gives Arrays their methods)
from fgrad import passes
from fgrad.backends import reference
from fgrad.core import array_of
from fgrad.jitted import jit
from fgrad.loop_check import check_plan
from fgrad.passes import Target
from tests.passes.programs import arrays_for
from tests.tolerance import assert_close

SERIAL = Target()
THREADS = Target(threads=3, region_cost=50)
GPU = Target(kind="gpu", parts=8, region_cost=50)
TARGETS = (SERIAL, THREADS, GPU)


def assert_compiled_agrees(f, shape, dtype, scale):
    """A function of an array gives compiled what it gives operation by operation."""
    x = (np.random.default_rng(0).standard_normal(shape) * scale).astype(dtype)
    for got, want in zip(*[y if isinstance(y, tuple) else (y,) for y in (jit(f)(x), f(x))]):
        assert got.dtype == want.dtype
        assert_close(np.asarray(got), np.asarray(want), 64, 8, np.dtype(
            dtype if dtype[0] == "f" else "f4"))


def assert_plan_agrees(program, target=SERIAL, donate=(), seed=0, length=64, slack=4):
    """The Plan is well formed and gives what the Program gives; returns the Plan."""
    plan = check_plan(passes.plan(program, target, donate=donate))
    arrays = arrays_for(program, seed)
    results = zip(program.outputs, reference.run_plan(plan, arrays),
                  reference.run_program(program, arrays))
    for v, got, want in results:
        got, want = [np.asarray(array_of(x, v.dtype)) for x in (got, want)]
        assert_close(got, want, length, slack, v.dtype)
    return plan
