"""Lanes, tiles, parts: rewrites of For statements that keep every value."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import passes, scalar
from fgrad.convolution import conv, reduce_window
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.jitted import jit
from fgrad.loop import For, Store
from fgrad.passes import Target
from fgrad.passes.simplify import simplify
from fgrad.transforms import grad
from fgrad.types import F16, F32, F64, ArrayType
from tests.passes import programs
from tests.passes.checking import TARGETS, assert_plan_agrees
from tests.passes.programs import Build

TWO = Target(threads=2, region_cost=50)


def loops(body):
    for s in body:
        if isinstance(s, For):
            yield s
            yield from loops(s.body)


def stores(body):
    for s in body:
        if isinstance(s, For):
            yield from stores(s.body)
        elif isinstance(s, Store):
            yield s


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


def shifted(p, x, move, axis):
    """x moved along an axis, zeros where it was: of the same shape."""
    around = tuple(abs(move) if a == axis else 0 for a in range(3))
    wide = p.pad(x, 0.0, low=around, high=around, interior=(0, 0, 0))
    start = tuple(abs(move) - move if a == axis else 0 for a in range(3))
    stop = tuple(a + n for a, n in zip(start, x.shape))
    return p.slice(wide, start=start, stop=stop, stride=(1, 1, 1))


@pytest.mark.parametrize("size, moves", [
    ((6, 7, 5), (1, -1, 2)), ((3, 9, 4), (2, 3, -2)), ((5, 2, 8), (-1, 1, 1)),
    ((4, 1, 3), (1, -1, 2)), ((8, 6, 33), (5, -5, 1))])
@pytest.mark.parametrize("target", [Target(), TWO], ids=["serial", "threads"])
def test_loops_are_cut_where_guards_change(size, moves, target):
    p = Build("f")
    x = out = p.input("x", *size)
    for axis in (0, 1):
        for move in moves:
            out = p.add(out, p.mul(x, shifted(p, x, move, axis)))
    assert_plan_agrees(p.done(out), target)


def test_a_window_with_padding_tests_nothing_in_its_middle():
    x, w = ArrayType(F32, (2, 9, 8, 16)), ArrayType(F32, (3, 3, 1, 16))
    program = stage(lambda x, w: conv(x, w, padding=1, groups=16), [x, w]).program
    (kernel,) = assert_plan_agrees(simplify(program)).steps
    counts = [sum(n.op == "guard" for n in scalar.walk(s.expr)) for s in stores(kernel.body)]
    middle = 4 + 2                               # of 8 places in a row, the borders on their own
    assert len(counts) == 3 * (1 + middle + 1) and not any(counts)


@pytest.mark.parametrize("width", [2, 3, 6, 7, 9])
def test_places_of_a_window_are_computed_together(width):
    """Neighbouring places read the weights, and two of three columns, once for all."""
    types = [ArrayType(F32, s) for s in [(2, 4, width, 20), (3, 3, 1, 20)]]
    program = simplify(stage(lambda x, w: conv(x, w, padding=1, groups=20), types).program)
    for target in (Target(), TWO):
        plan = assert_plan_agrees(program, target)
        most = max(len(loop.body) for loop in all_loops(plan) if isinstance(loop.body[0], Store))
        assert width < 6 or most == 4


def test_places_that_share_little_are_computed_one_by_one():
    types = [ArrayType(F32, (8, 9, 32))] * 7 + [ArrayType(F32, (32,))]
    program = stage(lambda *xs: sum(xs[1:], xs[0]), types).program
    assert all(len(loop.body) == 1 for loop in all_loops(assert_plan_agrees(program)))


def test_values_that_are_named_in_a_loop_stay_in_one():
    """The borders of a cut loop ran once, so their names met in the loop around."""
    def f(x):
        return grad(lambda x: fnp.sum(fnp.sin(reduce_window(x, "max", (2, 2), 1, [(1, 0), (2, 1)])))
                    )(x)
    x = np.random.default_rng(3).permutation(99).reshape(9, 11) / 100
    np.testing.assert_allclose(jit(f)(x), f(x), rtol=1e-12)


def test_a_loop_with_few_guards_stays_whole():
    p = Build("f")
    x = p.input("x", 6, 7, 5)
    plan = assert_plan_agrees(p.done(p.add(x, shifted(p, x, 1, 1))))
    assert len(all_loops(plan)) <= 3


def test_rows_of_a_sum_are_put_together_though_values_are_named():
    def f(x, i):
        y = fnp.maximum(x, 0.0)
        return fnp.sum(fnp.where(i[:, None] % 2 == 0, y * (1.0 - y), y), 0)
    program = stage(f, [ArrayType(F32, (64, 32)), ArrayType("int32", (64,))]).program
    plan = assert_plan_agrees(simplify(program), length=400)
    assert any(loop.step == 4 for loop in all_loops(plan))


def test_a_loop_that_names_its_values_is_cut_too():
    """The gradient of a concatenation computed both parts for every element."""
    def f(x, z):
        y = fnp.concatenate([x, fnp.tanh(z)])
        return y * y + y
    plan = passes.plan(stage(f, [ArrayType(F32, (3000,))] * 2).program,
                       Target(threads=2, region_cost=50, vector_bytes=64))
    assert len(plan.steps) == 2 and " if " not in str(plan), str(plan)


@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads", "gpu"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("join", ["concatenate", "stack"])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_the_parts_of_a_concatenation_are_loops_of_their_own(parts, join, axis, target):
    """They were one loop, in which each element asked what part it is of."""
    def f(*arrays):
        return getattr(fnp, join)([x * k for k, x in enumerate(arrays, 2)], axis=axis)
    program = inline(stage(f, [ArrayType(np.dtype("f4"), (9, 80))] * parts).program)
    plan = assert_plan_agrees(program, target)
    if target.kind == "cpu" and (join, axis) != ("stack", 1):
        assert " if " not in str(plan).replace("│", "\n")


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 11, 13, 26, 67])
@pytest.mark.parametrize("target", [Target(), TWO], ids=["serial", "threads"])
def test_rows_left_over_of_a_column_sum_follow(rows, target):
    """Of a prime number of rows each was read and written on its own: a quarter of the speed."""
    program = stage(lambda x: fnp.sum(x * x, 0), [ArrayType(F32, (rows, 13))]).program
    plan = assert_plan_agrees(simplify(program), target, length=rows)
    assert rows < 8 or target is TWO or any(loop.step == 4 for loop in all_loops(plan))


def test_a_loop_that_fills_a_row_for_another_kernel_sums_nothing_there():
    """What it also summed began in the first kernel alone."""
    def f(h, q):
        wide = fnp.concatenate([h[:1], h, h[-1:]])
        dt = 0.4 / fnp.max(fnp.sqrt(wide))
        flow = fnp.sqrt(wide[1:] + wide[:-1])
        h = fnp.maximum(h - dt * fnp.diff(flow), 0)
        q = q - dt * fnp.diff(flow * flow)
        q = fnp.where(h > 1e-3, q / (1 + dt * fnp.abs(q) * fnp.maximum(h, 1e-2) ** (7 / 3)), 0)
        return h, q, dt, fnp.count_nonzero(h > 1e-3)
    program = inline(stage(f, [ArrayType(F32, (403,))] * 2).program)
    for target in (TWO, Target(threads=2, region_cost=500, vector_bytes=64, side=4, borders=True)):
        assert_plan_agrees(program, target)
    rng = np.random.default_rng(0)
    h, q = abs(rng.standard_normal(403)).astype("f"), rng.standard_normal(403).astype("f")
    for got, want in zip(jit(f, device="cpu")(h, q), f(fnp.asarray(h), fnp.asarray(q))):
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)
