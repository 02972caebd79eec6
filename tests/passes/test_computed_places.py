"""Places of updates are worked out with vectors: as many as there are, wherever they lie."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, jit, vmap
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.passes import computed_places
from fgrad.passes.target import Target
from fgrad.types import F32, I32, ArrayType
from tests.passes.checking import assert_plan_agrees

TARGETS = [Target(vector_bytes=32), Target(vector_bytes=64, threads=3, region_cost=50)]


def cells(x, count):
    return fnp.clip((x * count).astype("int32"), 0, count - 1)


COMPUTED = {
    "a histogram": lambda x, y: fnp.zeros(30, "int32").at[cells(x, 30)].add(1),
    "two axes": lambda x, y: fnp.zeros((7, 9)).at[cells(x, 7), cells(y, 9)].add(1.0),
    "weights": lambda x, y: fnp.zeros(30).at[cells(x, 30)].add(x * y + 1.0),
    "the largest": lambda x, y: fnp.zeros(30).at[cells(x, 30)].max(y * y * 3.0 - x),
    "what lies outside is dropped": lambda x, y: fnp.zeros(9).at[
        (x * 12.0).astype("int32") * 2 - 4].add(y, mode="drop"),
    "two sums": lambda x, y: (fnp.zeros(30).at[cells(x, 30)].add(x * y),
                              fnp.zeros(30).at[cells(x, 30)].add(x + y)),
}


@pytest.mark.parametrize("what", COMPUTED)
@pytest.mark.parametrize("count", [1, 15, 16, 40, 127, 128, 129, 200])
@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads"])
def test_updates_at_computed_places(what, count, target):
    x, y = (np.random.default_rng(k).random(count).astype("f4") for k in (0, 1))
    program = inline(stage(COMPUTED[what], [ArrayType(F32, (count,))] * 2).program)
    assert_plan_agrees(program, target, length=count)
    for got, want in zip(*[np.atleast_1d(f(COMPUTED[what])(x, y)) for f in (jit, lambda f: f)]):
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("what", COMPUTED)
def test_many_updates_have_their_places_in_rows(what):
    program = inline(stage(COMPUTED[what], [ArrayType(F32, (1000,))] * 2).program)
    text = str(assert_plan_agrees(program, TARGETS[0], length=1000))
    assert "_row[" in text and f"in 0..{computed_places.BLOCK} (8 lanes" in text, text


@pytest.mark.parametrize("count, rows", [(15, False), (16, True), (40, True), (127, True)])
def test_few_updates_are_one_block(count, rows):
    def function(x, y):
        for _ in range(4):                       # worth it where a place takes many operations
            x, y = 4 * x * (1 - x) * 0.9 + y * 0.05, fnp.abs(x - y) * 0.5 + x * y * 0.25
        return fnp.zeros(30).at[cells(x, 30)].add(x * y + 1.0)
    program = inline(stage(function, [ArrayType(F32, (count,))] * 2).program)
    text = str(assert_plan_agrees(program, TARGETS[0], length=count))
    assert ("_row[" in text) == rows and f"in 0..{computed_places.BLOCK} " not in text, text


@pytest.mark.parametrize("function", [
    lambda x, i: fnp.zeros(30).at[i].add(x),
    lambda x, i: fnp.bincount(i, length=30),
    lambda x, i: fnp.zeros(30).at[i].set(x, mode="drop")])
def test_places_that_are_at_hand_have_no_rows(function):
    program = inline(stage(function, [ArrayType(F32, (1000,)), ArrayType(I32, (1000,))]).program)
    assert "_row[" not in str(assert_plan_agrees(program, TARGETS[0], length=1000))


def test_gradients_and_batches_of_weighted_histograms():
    x = np.random.default_rng(0).random((3, 300)).astype("f4")

    def weighted(x):
        return fnp.sum(fnp.zeros(16).at[cells(x, 16)].add(fnp.sin(x) * x) ** 2)
    np.testing.assert_allclose(jit(vmap(grad(weighted)))(x),
                               np.stack([grad(weighted)(row) for row in x]), rtol=2e-5)
