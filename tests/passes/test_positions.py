"""Positions of the largest and smallest along every axis, whatever the dtype."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import passes
from fgrad.interpreters.stage import stage
from fgrad.passes.parts import cost_of
from fgrad.passes.simplify import simplify
from fgrad.types import F32, ArrayType

DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_they_are_numpys_along_every_axis(dtype, name):
    rng = np.random.default_rng(0)
    for shape in [(5, 7), (40, 3), (3, 4, 5), (1, 6), (33, 1)]:
        x = rng.integers(-4, 5, shape)
        x = np.abs(x).astype(dtype) if dtype[0] in "ub" else x.astype(dtype)
        if dtype[0] == "f":
            x[0, 0], x.reshape(-1)[-1] = -np.inf, np.nan
        for axis in range(x.ndim):
            find = fgrad.jit(lambda x: getattr(fnp, name)(x, axis))
            np.testing.assert_array_equal(np.asarray(find(x)), getattr(np, name)(x, axis))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_rounded_is_found_again(dtype):
    x = fnp.array(np.random.default_rng(0).normal(size=(50, 7))).astype(dtype)
    f = lambda x: fnp.argmax(fnp.sin(x) * x / 3, 0)
    found = np.asarray(fgrad.jit(f)(x))
    assert (found < 50).all()
    scores = np.asarray((fnp.sin(x) * x / 3).astype("float32"))
    np.testing.assert_allclose(scores[found, np.arange(7)], scores.max(0), rtol=1e-2)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_work_grows_as_the_number_of_elements(axis):
    """Along the first axis the best of each column was found again for each of its elements."""
    def work(n):
        program = stage(lambda x: fnp.argmax(x, axis), [ArrayType(F32, (n, n, n))]).program
        return sum(cost_of(kernel.body) for kernel in passes.plan(program).steps)
    assert work(32) < 10 * work(16)


@pytest.mark.parametrize("find", [fnp.argmax, fnp.argmin])
def test_along_the_columns_of_what_is_turned_the_best_is_found_first(find):
    """For each element of a column its best was looked for again: ninety times as slow."""
    for f in (lambda x: find(x.T, 1), lambda x: find(x.T * 2 + 1, 1), lambda x: find(x, 0)):
        plan = passes.plan(simplify(stage(f, [ArrayType(F32, (60, 500))]).program), passes.Target())
        assert sum(cost_of(k.body) for k in plan.steps) < 20 * 60 * 500, str(plan)
        x = np.random.default_rng(0).normal(size=(60, 500)).astype("float32")
        np.testing.assert_array_equal(np.asarray(fgrad.jit(f)(x)), np.asarray(f(fnp.array(x))))
