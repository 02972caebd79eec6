"""Lanes, tiles, parts: rewrites of For statements that keep every value."""

import pytest

from fgrad import passes
from fgrad.loop import For
from fgrad.passes import Target
from fgrad.types import F16, F64
from tests.passes import programs
from tests.passes.checking import assert_plan_agrees
from tests.passes.programs import Build

TWO = Target(threads=2, region_cost=50)


def loops(body):
    for s in body:
        if isinstance(s, For):
            yield s
            yield from loops(s.body)


def all_loops(plan):
    return [loop for k in plan.steps for loop in loops(k.body)]


@pytest.mark.parametrize("m, n", [(16, 16), (32, 48), (17, 16), (16, 33), (40, 40)])
@pytest.mark.parametrize("target", [Target(), TWO], ids=["serial", "threads"])
def test_transposed_reads_are_tiled_whatever_is_left_over(m, n, target):
    plan = assert_plan_agrees(programs.transposed_add(m, n), target)
    assert any(loop.var.extent == 16 for loop in all_loops(plan))


def test_adjacent_axes_become_one_loop():
    p = Build("f")
    x, y = p.input("x", 4, 5, 6), p.input("y", 4, 5, 6)
    (loop,) = all_loops(assert_plan_agrees(p.done(p.add(x, y))))
    assert loop.var.extent == 120 and loop.width == 8


def test_axes_that_an_access_tells_apart_stay():
    p = Build("f")
    x, y = p.input("x", 4, 5), p.input("y", 5)
    assert len(all_loops(assert_plan_agrees(p.done(p.add(x, p.columns(y, (4, 5))))))) == 2


@pytest.mark.parametrize("dtype, lanes", [(F64, 4), (F16, 8)])
def test_lanes_follow_the_widest_dtype(dtype, lanes):
    p = Build("f")
    x = p.input("x", 64, dtype=dtype)
    (loop,) = all_loops(assert_plan_agrees(p.done(p.add(x, x))))
    assert loop.width == lanes


@pytest.mark.parametrize("shape, axes", [
    ((64, 32), (0,)), ((4, 256), (0,)), ((97, 3), (0,)), ((1000,), (0,)), ((997,), (0,)),
    ((30, 40), (0, 1)), ((8, 3, 5), (0, 2))])
def test_large_sums_run_in_parallel(shape, axes):
    plan = assert_plan_agrees(programs.reduction(shape, axes), TWO)
    assert any(loop.kind == "parallel" for loop in all_loops(plan))


def test_small_kernels_stay_serial():
    plan = passes.plan(programs.softmax(4, 8), Target(threads=8))
    assert not any(loop.kind == "parallel" for loop in all_loops(plan))


def test_parts_are_whole_vectors_and_worth_their_while():
    plan = passes.plan(programs.chain(3, size=1_000_000), Target(threads=4))
    (loop,) = all_loops(plan)
    assert loop.kind == "parallel" and loop.grain > 1000
    assert loop.grain % (loop.width * loop.unroll) == 0


@pytest.mark.parametrize("target", [Target(), TWO], ids=["serial", "threads"])
def test_rows_and_columns_share_a_kernel(target):
    plan = assert_plan_agrees(programs.layernorm_gradient(13, 6), target)
    assert len(plan.steps[0].outputs) == 3


def test_loop_names_are_distinct_within_a_kernel():
    for kernel in passes.plan(programs.blocks(60), TWO).steps:
        names = {}
        for loop in loops(kernel.body):
            assert names.setdefault(loop.var.name, loop.var) is loop.var
