"""Where buffers live.  The reference backend runs Plans in their arena, so overlaps would show."""

import random

import pytest

import fgrad.numpy as fnp
from fgrad import grad, passes
from fgrad.interpreters.stage import stage
from fgrad.loop import Buffer
from fgrad.passes import memory
from fgrad.passes.memory import aligned, first_fit
from fgrad.types import F32, F64, ArrayType
from tests.passes import programs
from tests.passes.checking import THREADS, assert_plan_agrees
from tests.passes.programs import Build


def some(n):
    return Buffer("b", ArrayType(F32, (n,)))


def fitted(spans):
    return first_fit(spans, {b: b.type.nbytes for b in spans})


def test_what_is_never_alive_together_shares_memory():
    a, b, c = some(16), some(16), some(16)
    place, total = fitted({a: (0, 1), b: (1, 2), c: (2, 3)})
    assert place[a] == place[c] == 0 and place[b] == 64 and total == 128


def test_offsets_are_aligned():
    a, b = some(3), some(5)
    place, total = fitted({a: (0, 1), b: (0, 1)})
    assert {place[a], place[b]} == {0, 64} and total == 128 and aligned(65) == 128


@pytest.mark.parametrize("seed", range(20))
def test_each_is_put_at_the_lowest_place_that_is_free_while_it_lives(seed):
    rng = random.Random(seed)
    births = sorted(rng.randrange(30) for _ in range(40))
    spans = {Buffer(f"b{k}", ArrayType(F32, (rng.choice([0, 1, 16, 17, 40, 100]),))):
             (first, first + rng.randrange(8)) for k, first in enumerate(births)}
    place, total = fitted(spans)
    ends = {b: place[b] + aligned(b.type.nbytes) for b in spans}
    assert total == max(ends.values())
    for k, (b, (first, _)) in enumerate(spans.items()):
        others = [c for c in list(spans)[:k] if spans[c][1] >= first and ends[c] > place[c]]
        free = [at for at in (0, *(ends[c] for c in others)) if all(
            at + aligned(b.type.nbytes) <= place[c] or ends[c] <= at for c in others)]
        assert place[b] == min(free) or b.type.size == 0         # what is empty may be anywhere


def test_the_arena_of_a_deep_model_does_not_grow_with_its_depth():
    short, long = (passes.plan(programs.blocks(n)) for n in (100, 400))
    assert long.arena <= 2 * short.arena


def test_an_elementwise_result_takes_the_place_of_a_donated_argument():
    p = Build("f")
    x, y = p.input("x", 9), p.input("y", 9)
    plan = assert_plan_agrees(p.done(p.add(p.mul(x, 2.0), y)), donate=(0, 1))
    assert list(plan.donated.values()) in ([plan.inputs[0]], [plan.inputs[1]])


def test_a_transposed_read_is_never_in_place():
    p = Build("f")
    x = p.input("x", 4, 4)
    plan = assert_plan_agrees(p.done(p.add(x, p.transpose(x, perm=(1, 0)))), donate=(0,))
    assert not plan.donated


def test_what_is_read_later_is_not_overwritten():
    p = Build("f")
    x = p.input("x", 40)
    y = p.mul(x, 2.0)
    s = p.reduce_sum(y, axes=(0,))
    z = p.mul(x, p.broadcast(s, shape=(40,), axes=(0,)))
    plan = assert_plan_agrees(p.done(z, y), donate=(0,))
    assert len(plan.donated) <= 1


def test_an_input_that_is_a_result_is_not_given_away():
    p = Build("f")
    x = p.input("x", 5)
    assert not assert_plan_agrees(p.done(x, p.mul(x, 2.0)), donate=(0,)).donated


def test_what_every_part_of_a_kernel_stores_takes_the_place_of_nothing():
    """A part that began late read a sum where another one had stored its mean already."""
    def f(x):
        means = fnp.mean(x, axis=0, keepdims=True)
        size = fnp.abs(x)
        spread = fnp.var(fnp.where(size > means, size, means * 0.3))
        return fnp.sum((size + size - means) / (1 + spread * spread)
                       * fnp.cos(fnp.arange(x.size, dtype=x.dtype).reshape(x.shape)))
    plans = [assert_plan_agrees(stage(grad(f), [ArrayType(F64, (n, n))]).program, THREADS)
             for n in (17, 33)]
    cut = 0
    for kernel in [step for plan in plans for step in plan.steps]:
        before = [s for s in kernel.body if not memory.is_cut(s)]
        if len(before) < len(kernel.body):
            stored = {s.buffer for s in memory.stores_of(before)}
            cut += bool(stored)
            assert not stored & {out for out, _ in kernel.aliases}, kernel.name
    assert cut
