"""Loops cut where their guards change: joined arrays, borders, sums over both."""

import random
import re

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import index
from fgrad.convolution import conv_general_dilated, reduce_window
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.passes import Target, borders
from fgrad.types import F32, ArrayType
from tests.passes.checking import TARGETS, assert_plan_agrees

VECTORS = Target(vector_bytes=32)
TWO = Target(threads=2, region_cost=500, vector_bytes=32)
IDS = ["serial", "threads", "gpu"]


def program_of(function, *shapes):
    return inline(stage(function, [ArrayType(F32, shape) for shape in shapes]).program)


def guards(plan):
    return str(plan).replace("│", "\n").count(" if ")


def sizes(count, like=()):
    """Shapes of arrays of many lengths, 0 and 1 among them."""
    return [((7 * k) % 23, *like) for k in range(count)]


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
@pytest.mark.parametrize("count", [1, 2, 8, 9, 17, 40, 70])
def test_many_arrays_are_joined(count, target):
    """Each element asked every array whether it was of it: the time was that of their square."""
    program = program_of(lambda *xs: fnp.concatenate([x * 2 for x in xs]), *sizes(count))
    plan = assert_plan_agrees(program, target)
    if target.kind == "cpu":
        assert not guards(plan)


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
@pytest.mark.parametrize("count", [3, 20, 40])
@pytest.mark.parametrize("what", ["rows", "columns", "stack", "last"])
def test_many_matrices_are_joined(what, count, target):
    join = {"rows": fnp.concatenate, "columns": lambda xs: fnp.concatenate(xs, 1),
            "stack": fnp.stack, "last": lambda xs: fnp.stack(xs, -1)}[what]
    program = program_of(lambda *xs: join(xs), *[(5, 33)] * count)
    plan = assert_plan_agrees(program, target)
    if target.kind == "cpu" and what != "last":
        assert not guards(plan)


@pytest.mark.parametrize("target", [VECTORS, TWO], ids=["serial", "threads"])
def test_small_parts_follow_each_other_in_one_kernel(target):
    """A hundred arrays are not a hundred steps; a large one is shared out among threads."""
    program = program_of(lambda *xs: fnp.concatenate(xs), *[(50 + k,) for k in range(40)], (9000,))
    plan = assert_plan_agrees(program, target)
    assert len(plan.steps) <= 2


def test_a_last_axis_of_many_arrays_is_stacked_by_some_of_them():
    """Written in one loop over the arrays, each element asked all of them."""
    plan = assert_plan_agrees(program_of(lambda *xs: fnp.stack(xs, -1), *[(12, 40)] * 50), VECTORS)
    assert str(plan).count("0..480 ") == 4


READERS = {
    "a sum": lambda x, rows: fnp.sum(x * x),
    "rows": lambda x, rows: fnp.sum(x, 1),
    "columns": lambda x, rows: fnp.max(x, 0),
    "places": lambda x, rows: x[fnp.asarray(rows[:, 0] * 30, "int32")],
    "turned": lambda x, rows: x.T + 1,
    "backwards": lambda x, rows: x[::-1] * 2,
    "a product": lambda x, rows: x @ rows.T,
    "in another shape": lambda x, rows: x.reshape(-1, 4) + 1,
    "a gradient": lambda x, rows: fgrad.grad(lambda x: fnp.sum(x ** 3))(x),
}


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
@pytest.mark.parametrize("count", [3, 12, 30])
@pytest.mark.parametrize("what", READERS)
def test_what_is_joined_is_read(what, count, target):
    def f(rows, *xs):
        return READERS[what](fnp.concatenate(xs), rows)
    assert_plan_agrees(program_of(f, (9, 8), *[(5, 8)] * count), target, length=400)


@pytest.mark.parametrize("target", [VECTORS, TWO], ids=["serial", "threads"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_nothing_is_asked_in_a_sum_over_many_arrays(axis, target):
    """Two threads' shares of a sum lie where they like; what is joined is stored for them."""
    def f(*xs):
        return fnp.sum(fnp.concatenate(xs), axis)
    plan = assert_plan_agrees(program_of(f, *[(7, 80)] * 12), target, length=8000)
    assert not guards(plan)


def test_a_sum_of_both_parts_is_two_loops():
    plan = assert_plan_agrees(program_of(lambda x, y: fnp.sum(fnp.concatenate([x, y * y])),
                                         (80,), (300,)), VECTORS, length=400)
    assert len(plan.steps) == 1 and not guards(plan)


def test_sums_of_sums_over_borders():
    """Two loops within one fed the same accumulators, as vectors and as a number."""
    def f(x):
        return reduce_window(x, "max", (7, 7), 1, ((1, 0), (2, 1)), (1, 2))
    x = np.random.default_rng(3).permutation(99).reshape(9, 11) / 100
    np.testing.assert_array_equal(fgrad.jit(f)(x), f(x))


def edges(x):
    """The Laplacian, where the border repeats the edge."""
    p = fnp.pad(x, 1, mode="edge")
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 4), (40, 33)])
def test_the_gradient_of_a_border_agrees(shape, target):
    def f(x, y):
        return fgrad.grad(lambda x: fnp.sum(edges(x) * y))(x)
    assert_plan_agrees(program_of(f, shape, shape), target)


def test_the_middle_of_a_gradient_of_a_border_asks_nothing():
    """All pieces had too many nodes for each to be cut: eight times as slow."""
    def f(x, y):
        return fgrad.grad(lambda x: fnp.sum(edges(x) * y))(x)
    plan = assert_plan_agrees(program_of(f, (130, 128), (130, 128)), VECTORS)
    lines = str(plan).splitlines()
    middle = [line for loop, line in zip(lines, lines[1:]) if "serial" in loop and "0..126" in loop]
    assert middle and not any(" if " in line for line in middle)


def test_what_is_in_front_of_a_cut_loop_is_computed_once():
    """Every piece of a loop added up the sum in front of it again."""
    def f(x, y):
        return fnp.sum(x * y), fnp.exp(fnp.roll(x, 40))
    plan = assert_plan_agrees(program_of(f, (100,), (100,)), TWO, length=200)
    assert len(plan.steps) == 2 and str(plan).count("+=") == 1, str(plan)


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
def test_pieces_in_one_kernel_have_names_of_their_own(target):
    """The rows at both ends named what they use twice alike, and read each other's."""
    def f(x):
        near = sum(fnp.roll(fnp.roll(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1))
        return fnp.where(near > 4, near * near, -near)
    assert_plan_agrees(program_of(f, (9, 12)), target)
    x = np.random.default_rng(0).random((9, 12), "float32")
    np.testing.assert_allclose(np.asarray(fgrad.jit(f)(x)), np.asarray(f(fnp.array(x))), rtol=1e-6)


def test_single_places_are_added_to_row_by_row():
    """Each element of a large array asked for all places that something was added to."""
    def f(x, v):
        for k in range(20):
            x = x.at[3 * k, 2 * k].add(v[k])
        return x * 2
    program = program_of(f, (90, 64), (20,))
    plan = assert_plan_agrees(program, TWO)
    assert all(line.count(" if ") < 2 for line in str(plan).splitlines()), str(plan)
    x = np.full((90, 64), -0.0, "float32")
    for g in (f, fgrad.jit(f)):
        got = np.asarray(g(fnp.array(x), fnp.ones(20)))
        assert got.sum() == 40 and not np.signbit(got).any()


def test_a_scratch_row_is_read_again_for_the_next_row():
    """Of a row that was cut, one element of the row before was taken for its own: the pieces of
    both stand side by side, and read the same place of a scratch row.
    """
    def f(x):
        rows = fnp.stack([x, x * 0.875])
        shares = fnp.exp(rows - fnp.max(rows, 1, keepdims=True))
        shares = shares / fnp.sum(shares, 1, keepdims=True)
        one = rows[:, 22:23], ((0, 0), (22, 41))
        return shares * fnp.pad(*one, constant_values=2.0) + fnp.pad(*one)
    x = np.random.default_rng(1).uniform(-2, 2, 64).astype("float32")
    np.testing.assert_allclose(np.asarray(fgrad.jit(f)(x)), np.asarray(f(fnp.array(x))), rtol=1e-5)


@pytest.mark.parametrize("seed", range(60))
def test_guards_change_at_the_ends_of_pieces_alone(seed):
    """Of what is affine, of a quotient, of a rest, of a digit."""
    rng = random.Random(seed)
    with index.Space() as space:
        v = space.variable(rng.choice([7, 24, 40, 64]))
        x = index.combine([(index.of(v), rng.choice([1, 1, 2, -1]))], rng.randint(64, 70))
        n, m, form = rng.choice([2, 3, 4, 8, 16]), rng.choice([2, 3, 4]), rng.randint(0, 3)
        x = (x, *index.divide(x, n), index.divide(index.divide(x, n)[0], m)[1])[form]
        x = index.plus(x, rng.randint(-3, 3))
        lo = rng.randint(x.lo - 1, x.hi + 1)
        hi = rng.randint(lo, x.hi + 2)
        ends = sorted({0, v.extent, *borders.changes(x, lo, hi, v, 1)})
        for start, end in zip(ends, ends[1:]):
            assert len({lo <= borders.value(x, v, k) < hi for k in range(start, end)}) == 1


def test_quotients_that_step_often_cut_no_innermost_loop():
    with index.Space() as space:
        v = space.variable(64)
        parity = index.divide(index.of(v), 2)[1]
        assert borders.changes(parity, 0, 1, v, borders.RUN) == set()
        assert len(borders.changes(parity, 0, 1, v, 1)) == 65


@pytest.mark.parametrize("target", [VECTORS, TWO], ids=IDS[:2])
def test_one_guard_is_enough(target):
    """Neighbours on one side: every vector asked whether it was at the border."""
    def step(e, h):
        return h.at[:, :-1].add(-0.5 * (e[:, 1:] - e[:, :-1]))
    assert not guards(assert_plan_agrees(program_of(step, (30, 40), (30, 40)), target))


@pytest.mark.parametrize("target", [VECTORS, TWO], ids=IDS[:2])
def test_a_long_row_of_much_asks_at_its_ends_alone(target):
    """All pieces of a row that reads the borders of many had too many nodes for it to be cut."""
    def f(*xs):
        ends = [fnp.concatenate([2 * x[-1:], x, x[:1]]) for x in xs]
        return sum(fnp.exp(e[:-2] - e[2:]) * (e[2:] + e[:-2]) * e[1:-1] for e in ends)
    plan = assert_plan_agrees(program_of(f, *[(96,)] * 20), target, length=200)
    assert "0..94" in str(plan) and not guards(plan)


def test_a_row_of_pairs_asks_at_its_ends_alone():
    """Its two parts are a loop within: pieces of more than an innermost one were too large."""
    def f(x, last, first, e, w):
        near = fnp.roll(x, 1, 2) * w + fnp.roll(x, -1, 2) * fnp.conj(w)
        x = 2 * (e * x - fnp.roll(x, 1, 1) - fnp.roll(x, -1, 1) - near) / 6 - last
        return x, fnp.sum(fnp.conj(first) * x, (1, 2)).real
    many, column = [np.ones(s, "complex64") for s in ((4, 36, 36), (36, 1))]
    plan = fgrad.show(f, many, many, many, np.ones((36, 36), "float32"), column, stage="schedule")
    assert re.search(r"in 0\.\.34 \(\d+ lanes", plan), plan


def distances(x, y, points):
    """From places (x, y) to the closest stretch of a path, whose points lie in another order."""
    at, a = fnp.stack([x, y], -1), fnp.swapaxes(points, 0, 1).reshape(-1, 2)
    way, along = at[:, None] - a, fnp.roll(a, -1, 0) - a
    h = fnp.clip(fnp.sum(way * along, -1) / fnp.sum(along * along, -1), 0, 1)
    return fnp.min(fnp.sum((way - h[..., None] * along) ** 2, -1), 1)


@pytest.mark.parametrize("target", [VECTORS, TWO], ids=["serial", "threads"])
def test_a_short_sum_of_what_is_chosen_is_written_out(target):
    """Each of the two coordinates asked which one it was: 1.8 times the time."""
    shapes = (40,), (40,), (8, 11, 2)
    plan = assert_plan_agrees(program_of(distances, *shapes), target)
    assert not re.search(r"if 0 <= \w < 1 else", str(plan)), str(plan)
    rng = np.random.default_rng(0)
    args = [rng.normal(size=shape).astype("float32") for shape in shapes]
    np.testing.assert_allclose(fgrad.jit(distances)(*args), distances(*args), rtol=2e-5)


@pytest.mark.parametrize("columns", [2, 3, 4, 6])
def test_a_sum_of_differences_between_borders_has_no_lanes_and_single_elements(columns):
    """One of its pieces had lanes, and the accumulator, but not what was added before and after."""
    def f(r, count):
        one = fnp.ones((*r.shape[:2], 1))
        steps = fnp.concatenate([one, r, 0 * one], 2)
        steps = steps[..., :-1] - steps[..., 1:]
        dear = count * (1 / fnp.maximum(steps, 1e-3)) * fnp.where(steps > 1e-3, 1.0, 0.5)
        return fnp.sum((dear[..., 1:] - dear[..., :-1]) * r, (1, 2))
    shapes = (14, 15, columns), (14, 15, columns + 1)
    assert_plan_agrees(program_of(f, *shapes), VECTORS)
    rng = np.random.default_rng(0)
    args = [rng.random(shape, "float32") for shape in shapes]
    np.testing.assert_allclose(fgrad.jit(f)(*args), f(*args), rtol=1e-3)


def test_a_sum_within_a_piece_of_a_sum_has_lanes_like_the_other_pieces():
    """What one of them added one by one stood beside their lanes: LLVM refused the module."""
    def loss(x, w):
        y = conv_general_dilated(x, w, (1, 3), [(2, 2), (1, 0)], (2, 1), (1, 1),
                                 ("NHWC", "HWIO", "NHWC"), 2)
        return fnp.sum(y.reshape(-1) * fnp.sin(1.0 + fnp.arange(y.size, dtype="float32")))
    rng = np.random.default_rng(0)
    args = [rng.normal(size=shape).astype("float32") for shape in ((1, 5, 5, 2), (5, 5, 1, 2))]
    slopes = fgrad.grad(loss, (0, 1))
    for got, want in zip(fgrad.jit(slopes)(*args), slopes(*args)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
