"""The loops that come out, as printed."""

import re

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, passes
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.passes import Target
from fgrad.types import DTYPES, F16, F32, I32, I64, NUMBERS, ArrayType
from tests.passes import programs
from tests.passes.checking import GPU, TARGETS, THREADS, assert_plan_agrees
from tests.passes.golden import assert_golden
from tests.passes.programs import Build, normalised


@pytest.mark.parametrize("program", [
    programs.softmax(1024, 1000), programs.layernorm(64, 768), programs.layernorm_gradient(64, 768),
    programs.linear_tanh(64, 784, 256)], ids=lambda p: p.name)
def test_printed_kernels(program):
    target = Target(vector_bytes=32, threads=2)
    assert_golden(f"{program.name}.loops", str(passes.plan(program, target)))


@pytest.mark.parametrize("name, dtype", [("add", d) for d in DTYPES] + [("mul", d) for d in DTYPES]
                         + [("div", d) for d in NUMBERS] + [("max", d) for d in DTYPES], ids=str)
def test_every_dtype_goes_through(name, dtype):
    p = Build("f")
    x, y = p.input("x", 3, 5, dtype=dtype), p.input("y", 3, 5, dtype=dtype)
    assert_plan_agrees(p.done(getattr(p, name)(x, y), p.convert(x, dtype=F32)))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_sums_of_every_dtype(dtype, axes):
    for target in TARGETS:
        assert_plan_agrees(programs.reduction((9, 7), axes, dtype=dtype), target)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op, dtype", [
    ("cumsum", F16), ("cumsum", I32), ("cumprod", F32), ("cummax", F32)])
def test_running_reductions(op, dtype, axis, reverse):
    p = Build("f")
    x = p.input("x", 4, 5, dtype=dtype)
    for target in TARGETS:
        assert_plan_agrees(p.done(getattr(p, op)(p.neg(x), axis=axis, reverse=reverse)), target)


@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("op", ["scatter_add", "scatter_set"])
def test_scatters_write_into_a_copy(op, mode):
    p = Build("f")
    x, u = p.input("x", 6, 5), p.input("u", 4, 5)
    i = p.input("i", 4, dtype=I64)
    written = getattr(p, op)(x, i, p.mul(u, 2.0), axes=(0,), mode=mode)
    program = p.done(written, p.gather(u, i, axes=(0,), mode="fill"))
    for target in TARGETS:
        assert_plan_agrees(program, target)
        assert_plan_agrees(program, target, donate=(0,))


def test_updates_that_may_meet_in_one_element_follow_each_other_on_a_gpu():
    p = Build("f")
    x, u, i = p.input("x", 3, 2), p.input("u", 4, 2), p.input("i", 4, dtype=I64)
    plan = assert_plan_agrees(p.done(p.scatter_add(x, i, u, axes=(0,), mode="drop")), GPU)
    (shares,) = plan.steps[-1].body
    (columns,) = shares.body
    (updates,) = columns.body
    assert [f.kind for f in (shares, columns, updates)] == ["parallel", "parallel", "serial"]
    assert [f.var.extent for f in (shares, columns, updates)] == [3, 2, 4]


@pytest.mark.parametrize("op", ["scatter_add", "scatter_set"])
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("places", [2, 5, 300])
def test_on_a_gpu_each_share_of_the_places_takes_the_updates_in_order(op, mode, places,
                                                                      monkeypatch):
    monkeypatch.setattr("fgrad.passes.lower.SHARES", 16)
    p = Build("f")
    x, u, v = p.input("x", places, 3), p.input("u", 40, 3), p.input("v", 40)
    i = p.input("i", 40, dtype=I64)
    written = getattr(p, op)(x, i, u, axes=(0,), mode=mode)
    flat = getattr(p, op)(p.input("y", places), i, v, axes=(0,), mode=mode)
    assert_plan_agrees(p.done(written, flat), GPU)


def test_what_has_no_pull_is_a_call_on_buffers():
    p = Build("f")
    x = p.input("x", 5)
    y = p.sort(p.mul(x, 2.0), axis=0)
    plan = assert_plan_agrees(p.done(p.add(y, 1.0)))
    assert [type(s).__name__ for s in plan.steps] == ["Kernel", "Call", "Kernel"]


def test_a_row_that_two_passes_compute_is_kept():
    (kernel,) = assert_plan_agrees(programs.softmax(3, 5)).steps
    assert [b.type.shape for b in kernel.scratch] == [(5,)]


def test_the_users_names_are_kept():
    def f(p, x):
        mean = p.mul(p.reduce_sum(x, axes=(1,)), 0.5)
        mean.name = "mean"
        return p.mul(x, p.rows(mean, (3, 4)))
    p = Build("f")
    plan = assert_plan_agrees(p.done(f(p, p.input("x", 3, 4))))
    assert "mean: f32 = " in str(plan)


def test_every_stage_is_printed():
    p = Build("f")
    x, g = p.input("x", 3, 4), p.input("g", 4)
    y, _ = normalised(p, x, 3, 4)
    found = passes.stages(p.done(p.mul(y, p.columns(g, (3, 4)))))
    assert list(found) == ["ir", "simplified", "fused", "loops", "schedule", "memory"]
    assert all(isinstance(t, str) and t for t in found.values())


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 1), (1, 1), (0, 3), ()])
def test_sizes_0_and_1_and_no_axes_at_all(shape):
    p = Build("f")
    x = p.input("x", *shape)
    total = p.reduce_sum(x, axes=tuple(range(len(shape))))
    program = p.done(p.tanh(x), total, p.broadcast(total, shape=(2,), axes=(0,)))
    for target in TARGETS:
        assert_plan_agrees(program, target)


def test_partial_sums_do_not_depend_on_anything_but_the_number_of_parts():
    program = programs.reduction((1000,), (0,))
    a, b = (passes.plan(program, Target(threads=4, region_cost=10)) for _ in range(2))
    assert str(a) == str(b)
    assert np.dtype(a.steps[0].outputs[0].type.dtype) == F32


@pytest.mark.parametrize("n", [1, 5, 16, 50, 64, 100])
@pytest.mark.parametrize("how", ["reduce_sum", "reduce_max"])
def test_no_two_threads_write_to_one_line_of_the_cache(n, how):
    """Rows of 50 sums shared a line: two threads took twice as long as one."""
    p = Build("f")
    x = p.input("x", 900, n)
    plan = assert_plan_agrees(p.done(getattr(p, how)(x, axes=(0,))), THREADS)
    rows = [b.type for k in plan.steps for b in k.outputs if b.kind == "temporary"]
    assert rows and all(n == 1 or t.shape[1] * t.dtype.itemsize % 128 == 0 for t in rows)


def temperature(x, t):
    """A gradient of each element, and one of a number that all of them know."""
    return grad(lambda x, t: fnp.sum(fnp.exp(-fnp.abs(x) * t)), argnums=(0, 1))(x, t)


@pytest.mark.parametrize("target", [*TARGETS, Target(vector_bytes=32)],
                         ids=["serial", "threads", "gpu", "vectors"])
@pytest.mark.parametrize("size", [1, 7, 40, 3000])
def test_a_sum_beside_what_is_stored_is_added_up_in_a_register(size, target):
    """It was added up in memory, one element after the other: a ninth of the speed."""
    program = inline(stage(temperature, [ArrayType(F32, (size,)), ArrayType(F32, ())]).program)
    plan = assert_plan_agrees(program, target, length=size)
    assert target.kind == "gpu" or not re.search(r"\] \+=", str(plan)), str(plan)
