"""Loops behind each other that read the same are one."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import index, jit, passes, scalar
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import Buffer, For, Let, Store
from fgrad.passes.join_loops import PLACES, joined
from fgrad.passes.names import Words
from fgrad.passes.target import Target
from fgrad.types import F32, ArrayType
from tests.passes.checking import assert_plan_agrees

TARGETS = [Target(vector_bytes=32), Target(vector_bytes=64, threads=3, region_cost=50)]


def walsh_hadamard(x):
    """The transform of the last axis, whose length is a power of 2, step by step."""
    h = 1
    while h < x.shape[-1]:
        y = x.reshape(*x.shape[:-1], -1, 2, h)
        a, b = y[..., 0, :], y[..., 1, :]
        x = fnp.stack([a + b, a - b], -2).reshape(x.shape)
        h *= 2
    return x


READ_THE_SAME = {
    "sums and differences": (lambda x: fnp.concatenate([x + 1.0, x - 1.0, x * x]), (300,)),
    "rows that are stacked": (lambda x: fnp.stack([x[:40] + x[40:], x[:40] - x[40:]]), (80, 30)),
    "values with names": (lambda x: (lambda y: y * y + y)(
        fnp.concatenate([x, fnp.tanh(x)])), (3000,)),
    "a long butterfly": (walsh_hadamard, (1024,)),
}


@pytest.mark.parametrize("what", READ_THE_SAME)
@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads"])
def test_no_two_loops_behind_each_other_read_the_same(what, target):
    function, shape = READ_THE_SAME[what]
    program = inline(stage(function, [ArrayType("float32", shape)]).program)
    plan = assert_plan_agrees(program, target, length=400)
    assert " if " not in str(plan)
    for kernel in plan.steps:
        read = [loads(s) for s in kernel.body if isinstance(s, For)]
        assert all(not a & b for a, b in zip(read, read[1:])), str(plan)


def loads(loop):
    return {n.data[0] for s in loop.body if isinstance(s, (Let, Store))
            for n in scalar.walk(s.expr) if n.op == "load"}


@pytest.mark.parametrize("length", [1, 2, 8, 64, 256, 2048])
@pytest.mark.parametrize("rows", [(), (3,)])
def test_butterflies_are_products_with_a_matrix_of_signs(rows, length):
    rng = np.random.default_rng(length)
    x = rng.standard_normal((*rows, length)).astype("f4")
    signs = np.array([[(-1.0) ** (i & j).bit_count() for j in range(length)]
                      for i in range(length)])
    np.testing.assert_allclose(jit(walsh_hadamard)(x), x @ signs, rtol=1e-4, atol=1e-4)


def loops_of(*bodies, extent=40, kind="serial"):
    """Loops over the same extent; a body makes statements of the loop's variable."""
    out = []
    for body in bodies:
        v = index.space().variable(extent)
        out.append(For(v, body(index.of(v)), kind))
    return out


@pytest.fixture
def space():
    with index.Space() as space:
        yield space


def buffers(*names, size=400):
    return [Buffer(name, ArrayType(F32, (size,))) for name in names]


def copied(to, source, shift=0):
    return lambda i: [Store(to, i, scalar.load(source, index.plus(i, shift)))]


def test_a_loop_that_reads_what_one_before_it_writes_stays_behind_it(space):
    x, y, z = buffers("x", "y", "z")

    def both(i):
        return [Store(z, i, scalar.apply("add", scalar.load(x, i), scalar.load(y, i)))]
    for loops in (loops_of(copied(y, x), both), loops_of(both, copied(y, x))):
        assert len(joined(loops, 50, Words(set()))) == 2
    assert len(joined(loops_of(copied(y, x), copied(z, x)), 50, Words(set()))) == 1


def test_loops_that_share_little_stay_apart(space):
    x, y, z, w = buffers("x", "y", "z", "w")
    for loops in (loops_of(copied(y, x), copied(z, w)), loops_of(copied(y, x), copied(z, x, 3)),
                  loops_of(copied(y, x)) + loops_of(copied(z, x), extent=41)):
        assert len(joined(loops, 50, Words(set()))) == 2


def test_a_loop_has_no_more_streams_than_the_first_cache_has_room_for(space):
    x, *many = buffers("x", *[f"y{k}" for k in range(PLACES + 5)])
    made = joined(loops_of(*[copied(y, x) for y in many]), 50, Words(set()))
    assert [len(loop.body) for loop in made] == [PLACES - 1, 6]


def test_names_stay_apart_and_parts_are_as_large_as_others(space):
    x, y, z = buffers("x", "y", "z")

    def named(to, how):
        return lambda i: [Let("t", scalar.apply(how, scalar.load(x, i), scalar.load(x, i))),
                          Store(to, i, scalar.name("t", F32, i.free))]
    [loop] = joined(loops_of(named(y, "add"), named(z, "mul"), kind="parallel"), 50,
                    Words({"t"}))
    names = [s.name for s in loop.body if isinstance(s, Let)]
    assert len(set(names)) == 2 and loop.grain > 1
    stored = {s.buffer: s.expr.data for s in loop.body if isinstance(s, Store)}
    assert [stored[y], stored[z]] == names


def test_plans_of_such_loops_print_no_kernel_twice():
    plan = passes.plan(stage(lambda x: fnp.concatenate([x + 1.0, x - 1.0]),
                             [ArrayType(F32, (5000,))]).program,
                       Target(threads=2, region_cost=50, vector_bytes=64))
    assert len(plan.steps) == 1, str(plan)


@pytest.mark.parametrize("shift, extent, expected", [
    (0, 40, 1), (40, 40, 1), (-40, 40, 1), (39, 40, 2), (-39, 40, 1), (-1, 40, 1), (1, 40, 2)])
def test_what_is_written_twice_ends_as_the_second_loop_leaves_it(space, shift, extent, expected):
    """Loop one writes at i, loop two at i + shift: joined, one must not write over two's."""
    x, y = buffers("x", "y")

    def second(i):
        return [Store(y, index.plus(i, 100 + shift), scalar.load(x, i))]

    def first(i):
        return [Store(y, index.plus(i, 100), scalar.load(x, i))]
    assert len(joined(loops_of(first, second, extent=extent), 50, Words(set()))) == expected
