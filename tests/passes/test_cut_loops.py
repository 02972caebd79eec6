"""Loops that indices cut are taken apart."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, jit
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import For
from fgrad.passes.cut_loops import by_cuts, cuts
from fgrad.passes.fuse import fuse
from fgrad.passes.lower import lower
from fgrad.passes.target import Target
from fgrad.records import replace
from fgrad.types import F32, ArrayType
from tests.passes.checking import GPU, assert_plan_agrees

TARGETS = [Target(vector_bytes=64), Target(vector_bytes=32, threads=3, region_cost=50)]
TAKEN_APART = {
    "a Kronecker product": (lambda x: fnp.kron(x[:, :5], x), (6, 20)),
    "tiles": (lambda x: fnp.tile(x, (2, 3)), (5, 20)),
    "a row again and again": (lambda x: fnp.tile(x, 7), (20,)),
    "repeated elements": (lambda x: fnp.repeat(x, 5), (60,)),
    "every fifth element twice": (lambda x: fnp.repeat(x[::5], 2), (200,)),
    "elements twice": (lambda x: fnp.repeat(x, 2) * 2.0, (60,)),
    "an outer product, flat": (lambda x: (x[:, None] * x).reshape(-1), (20,)),
    "patches": (lambda x: x.reshape(2, 3, 4, 6, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(
        2, 18, 48), (2, 12, 24, 3)),
}


@pytest.mark.parametrize("what", TAKEN_APART)
@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads"])
def test_no_vector_reads_at_a_cut_index(what, target):
    function, shape = TAKEN_APART[what]
    program = inline(stage(function, [ArrayType("float32", shape)]).program)
    plan = assert_plan_agrees(program, target)
    found = [loop for kernel in plan.steps for loop in loops(kernel.body) if loop.width > 1]
    assert found and not any(cuts(loop.body, loop.var) for loop in found), str(plan)


@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads"])
def test_a_sum_over_a_reshaped_array_goes_row_by_row(target):
    """Its guards on rows and columns were decided by dividing, for each element."""
    def inner_product(x):
        y = fnp.pad(x, 1)
        return fnp.vdot(x, 4.0 * x - y[2:, 1:-1] - y[1:-1, :-2])
    program = inline(stage(inner_product, [ArrayType("float32", (12, 35))]).program)
    plan = assert_plan_agrees(program, target, length=500)
    found = [loop for kernel in plan.steps for loop in loops(kernel.body)]
    assert any(loop.kind == "reduce" for loop in found)
    assert not any(cuts(loop.body, loop.var) for loop in found), str(plan)


def rotated(x):
    """Pairs of neighbours turned, and pairs of the two halves of a row."""
    a, b = x[..., ::2], x[..., 1::2]
    half = x.shape[-1] // 2
    halves = fnp.concatenate([-x[..., half:], x[..., :half]], -1)
    return fnp.stack([a - b, a + b], -1).reshape(x.shape), 2 * x + halves


@pytest.mark.parametrize("shape", [(7, 32), (3, 5, 64), (32,)])
@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads"])
def test_what_is_cut_elsewhere_has_a_loop_of_its_own(target, shape):
    """The halves were in the loop of the pairs, lane by lane: eight times as long."""
    program = inline(stage(rotated, [ArrayType("float32", shape)]).program)
    plan = assert_plan_agrees(program, target)
    innermost = [loop for kernel in plan.steps for loop in loops(kernel.body)
                 if not any(isinstance(s, For) for s in loop.body)]
    assert len(innermost) > 1 and all(loop.width > 2 for loop in innermost), str(plan)


def test_stores_to_one_array_keep_their_order():
    program = inline(stage(rotated, [ArrayType("float32", (7, 32))]).program)
    (kernel,) = lower(fuse(program, TARGETS[0]), TARGETS[0])
    with kernel.space:
        *_, loop = loops(kernel.body)
        first, second = loop.body
        assert [len(part.body) for part in by_cuts(loop)] == [1, 1]
        alike = replace(loop, body=[first, replace(second, buffer=first.buffer)])
        assert by_cuts(alike) == [alike]


def loops(body):
    for s in body:
        if isinstance(s, For):
            yield s
            yield from loops(s.body)


@pytest.mark.parametrize("what", TAKEN_APART)
def test_compiled_code_and_gradients_agree(what):
    function, shape = TAKEN_APART[what]
    x = fnp.asarray(np.random.default_rng(5).uniform(0.5, 1.5, shape))

    def loss(x):
        return fnp.sum(fnp.sin(function(x)))
    np.testing.assert_allclose(jit(function, device="cpu")(x), function(x), rtol=1e-12)
    np.testing.assert_allclose(jit(grad(loss), device="cpu")(x), grad(loss)(x), rtol=1e-9)


def test_what_is_cut_in_two_ways_stays_whole():
    """Sevenths of a row that is no whole number of them."""
    x = fnp.asarray(np.arange(60.0))
    for f in (lambda x: fnp.tile(x, 3).reshape(9, 20)[:, :19] * 1.0,
              lambda x: fnp.repeat(x, 7)[:100],
              lambda x: fnp.tile(fnp.repeat(x[:6], 5), 4)):
        np.testing.assert_array_equal(jit(f, device="cpu")(x), f(x))


TURNS = {
    "rows": lambda x: fnp.stack([x * 2, x + 1], 1).reshape(-1, x.shape[1]),
    "upsampled": lambda x: upsampled(upsampled(x, 0), 1),
    "three": lambda x: fnp.stack([x, -x, x * x], 1).reshape(-1, x.shape[1]) * 2,
}


def upsampled(x, axis):
    """Twice as many elements along an axis, with weights of a quarter and three quarters."""
    n, whole = x.shape[axis], [slice(None)] * x.ndim

    def at(*ends):
        return tuple([*whole[:axis], slice(*ends), *whole[axis + 1:]])
    a = fnp.concatenate([x[at(0, 1)], x, x[at(n - 1, n)]], axis)
    y = fnp.stack([.25 * a[at(0, n)] + .75 * x, .75 * x + .25 * a[at(2, n + 2)]], axis + 1)
    return y.reshape(*x.shape[:axis], 2 * n, *x.shape[axis + 1:])


@pytest.mark.parametrize("what", TURNS)
@pytest.mark.parametrize("target", [*TARGETS, GPU], ids=["serial", "threads", "gpu"])
def test_rows_that_are_stacked_in_turns_are_told_apart_by_loops(what, target):
    """Every vector of them asked which row it was of; an upsampled image was stored twice."""
    shape = (10, 12, 16) if what == "upsampled" else (24, 16)
    program = inline(stage(TURNS[what], [ArrayType(F32, shape)]).program)
    plan = assert_plan_agrees(program, target)
    assert {str(b.type) for k in plan.steps for b in k.outputs} == {str(program.outputs[0].type)}
    if target.kind == "cpu":
        assert "%" not in str(plan), str(plan)
        assert what == "upsampled" or " if " not in str(plan).replace("│", "\n"), str(plan)
