"""Long sums are added up by stretches."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import jit, passes
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import Accumulate, For
from fgrad.passes import parts, stretches
from fgrad.passes.target import Target
from fgrad.types import ArrayType
from tests.passes.checking import assert_plan_agrees
from tests.passes.test_cut_loops import loops

TARGETS = [Target(vector_bytes=32), Target(vector_bytes=64, threads=3, region_cost=50),
           Target(vector_bytes=32, jam=1, streams=4), Target(kind="gpu", parts=8, region_cost=50)]
SUMS = {
    "a sum": lambda x: fnp.sum(x),
    "of squares": lambda x: fnp.sum(fnp.square(x - 1.0)),
    "a variance": lambda x: fnp.var(x),
    "with a maximum": lambda x: fnp.sum(fnp.exp(x - fnp.max(x))) + fnp.max(x),
    "along rows": lambda x: fnp.sum(x, axis=-1),
    "along columns": lambda x: fnp.sum(x, axis=0),
    "of a sum with a row": lambda x: fnp.sum(fnp.abs(x + x[:1])),
    "backwards": lambda x: fnp.sum(x[::-1] * x),
    "of rows' logarithms": lambda x: fnp.sum(fnp.log(fnp.sum(fnp.exp(x), axis=-1))),
    "of rows below their largest": lambda x: fnp.mean(x - fnp.max(x, axis=-1, keepdims=True)),
    "of squared products": lambda x: fnp.mean(
        fnp.square(x @ fnp.ones(x.shape[-1:], x.dtype) - 1.0)),
    "with those of columns": lambda x: fnp.sum(x * x[-1:]) + fnp.sum(x, axis=0),
    "of two in turns": lambda x: fnp.sum(
        2.0 * fnp.stack([x, x + 1.0], -1).reshape(*x.shape[:-1], 2 * x.shape[-1])),
    "of two halves": lambda x: fnp.sum(fnp.concatenate([x, x + 1.0], -1) * 2.0),
    "a product": lambda x: fnp.prod(1.0 + 0.01 * x),
}
SHAPES = [(0,), (1,), (31,), (32,), (33,), (100,), (7, 13), (40, 3), (3, 40), (2, 5, 9), (1, 64),
          (101, 4), (3, 11, 5)]


@pytest.mark.parametrize("what", SUMS)
@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads", "streams", "gpu"])
def test_plans_of_short_stretches_agree(what, target, monkeypatch):
    """Stretches of 16 elements, or of 3 rows: rows shorter and longer than one, and all that is
    left behind.
    """
    monkeypatch.setattr(stretches, "STRETCH", 16)
    monkeypatch.setattr(stretches, "LONG", 32)
    monkeypatch.setattr(parts, "ROWS", 3)
    for shape in SHAPES:
        if 0 in shape and ("maximum" in what or "largest" in what):
            continue
        program = inline(stage(SUMS[what], [ArrayType("float32", shape)]).program)
        assert_plan_agrees(program, target)


def test_a_long_sum_is_cut_and_a_short_one_is_not():
    """One that is a bit too long has a last element of its own."""
    for n, count in ((stretches.LONG - 1, 1), (stretches.LONG, 2), (stretches.LONG + 1, 3)):
        program = inline(stage(fnp.sum, [ArrayType("float32", (n,))]).program)
        plan = assert_plan_agrees(program, TARGETS[0])
        fed = [s for kernel in plan.steps for s in kernel.body if isinstance(s, Accumulate)]
        found = [loop for kernel in plan.steps for loop in loops(kernel.body)]
        assert len(found) + len(fed) == count, str(plan)


def test_largest_elements_are_found_in_one_loop():
    program = inline(stage(fnp.max, [ArrayType("float32", (2 * stretches.LONG,))]).program)
    plan = assert_plan_agrees(program, TARGETS[0])
    assert len([s for kernel in plan.steps for s in loops(kernel.body)]) == 1, str(plan)


@pytest.mark.parametrize("shape", [(1 << 22,), (1 << 11, 1 << 11), (3_000_017,), (150_001, 20)])
def test_the_error_of_a_long_sum_is_that_of_a_short_one(shape):
    """A chain of so many additions to one number is off by some 1e-4, one a lane by 2e-6."""
    x = np.random.default_rng(3).uniform(size=shape).astype(np.float32)
    y = fnp.asarray(x)
    wide = x.astype(np.float64)
    for f, want in ((fnp.sum, wide.sum()),
                    (lambda x: fnp.sum(x * x), np.square(wide).sum()),
                    (fnp.mean, wide.mean()), (fnp.var, wide.var())):
        for function in (f, jit(f, device="cpu")):
            assert abs(float(function(y)) / want - 1) < 3e-7


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("what", ["of rows' logarithms", "of rows below their largest",
                                  "of squared products", "of a sum with a row"])
def test_the_error_of_a_sum_of_many_rows_is_that_of_a_few(what, threads):
    """262144 rows one after another: the logarithms are off by 1e-4, rounded up every time."""
    x = np.random.default_rng(4).uniform(size=(1 << 18, 8))
    want = float(SUMS[what](fnp.asarray(x)))
    x = fnp.asarray(x.astype(np.float32))
    program = inline(stage(SUMS[what], [x.type]).program)
    plan = passes.plan(program, Target(vector_bytes=32, threads=threads))
    chains = [parts.additions(s) for kernel in plan.steps for s in outermost(kernel.body)]
    assert chains and max(chains) <= 4 * parts.ROWS, str(plan)
    assert abs(float(jit(SUMS[what], device="cpu")(x)) / want - 1) < 3e-7


def outermost(body):
    """The loops of a kernel, but for the parallel ones, whose iterations have sums of their own."""
    for s in body:
        if isinstance(s, For):
            yield from outermost(s.body) if s.kind == "parallel" else [s]


def test_what_is_left_behind_stretches_within_other_loops_is_compiled():
    """Its sums had vectors where those of the stretches were added as numbers, to one accumulator:
    a module that LLVM refused.
    """
    x, y = (np.arange(n, dtype="float32") / n for n in (680, 17 * 9 * 16))
    x, y = x.reshape(2, 20, 17), y.reshape(17, 9, 16)

    def f(x, y):
        product = fnp.einsum("fge,bad->fdageb", x, y)
        return fnp.exp(-product) + fnp.sum(product)
    want = np.einsum("fge,bad->fdageb", x.astype(float), y)
    np.testing.assert_allclose(jit(f)(x, y), np.exp(-want) + want.sum(), rtol=1e-6)
