"""Kernels that take turns: who does, what they share, and that every value stays.

The reference backend runs the shares backwards, and gives each new memory for what nobody else
needs, so what one share would read of another shows.
"""

import random

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import lax, passes, vmap
from fgrad.backends.llvm import module
from fgrad.backends.llvm.executable import Executable
from fgrad.backends.llvm.steps import Workspace
from fgrad.core import Array
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import turns_of
from fgrad.loop_check import check_plan
from fgrad.passes import Target
from fgrad.passes.turns import shares
from fgrad.records import replace
from fgrad.types import F32, I32, ArrayType
from tests.passes.checking import assert_plan_agrees
from tests.passes.programs import Build, arrays_for

TURNS = Target(threads=2, region_cost=50, cache=2560)


def attention(batch, heads, length, width, also=()):
    """softmax(q · kᵀ) · v, head by head; `also`: which of the arrays between are results too."""
    p, made = Build("attention"), {}
    q, k, v = (p.input(name, batch, length, heads, width) for name in "qkv")
    scores = made["scores"] = p.dot_general(q, k, lhs="bthd", rhs="bshd", to="bhts")
    shape = scores.type.shape
    e = p.exp(p.sub(scores, p.broadcast(p.reduce_max(scores, axes=(3,)), shape=shape, axes=(3,))))
    sums = p.broadcast(p.reduce_sum(e, axes=(3,)), shape=shape, axes=(3,))
    shares = made["shares"] = p.div(e, sums)
    found = p.dot_general(shares, v, lhs="bhts", rhs="bshd", to="bthd")
    return p.done(found, *[made[name] for name in also])


def together(plan):
    """The names of kernels that take turns, and in how many shares."""
    found = dict.fromkeys(turns_of(step) for step in plan.steps)
    return [(turns.names, turns.count) for turns in found if turns is not None]


@pytest.mark.parametrize("also", [(), ("scores",), ("shares",), ("scores", "shares")])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_attention_runs_head_by_head(threads, also):
    plan = assert_plan_agrees(attention(4, 6, 8, 4, also), replace(TURNS, threads=threads))
    assert together(plan) == [(("attention0", "attention1", "attention2"), 24)]


def test_of_what_only_they_need_a_share_for_each_group_is_kept():
    plan = passes.plan(attention(4, 6, 8, 4), TURNS)
    (turns,) = {turns_of(step) for step in plan.steps}
    assert {b.type.nbytes // share for b, share in plan.shares.items()} == {turns.count}
    assert plan.arena < sum(b.type.nbytes for b in plan.shares) == 2 * 24 * 256
    kept = passes.plan(attention(4, 6, 8, 4, ("scores", "shares")), TURNS)
    assert together(kept) and not kept.shares


def test_small_arrays_take_no_turns():
    assert not together(passes.plan(attention(4, 6, 8, 4), replace(TURNS, cache=1 << 16)))


def test_shares_that_the_cache_cannot_hold_take_no_turns():
    assert not together(passes.plan(attention(1, 2, 32, 4), TURNS))


@pytest.mark.parametrize("heads, counts", [(5, []), (6, [18]), (7, [])])
def test_every_thread_has_as_many_shares(heads, counts):
    plan = assert_plan_agrees(attention(3, heads, 8, 4), TURNS)
    assert [count for _, count in together(plan)] == counts


def test_long_axes_are_cut_into_few_shares():
    assert max(shares(10 ** 9, 2)) <= 1024 and shares(12, 3) == [3, 6, 12]


def test_a_kernel_that_reads_all_of_the_one_before_waits_for_it():
    p = Build("f")
    x, y = p.input("x", 16, 8, 8), p.input("y", 16, 8, 8)
    first = p.dot_general(x, y, lhs="bij", rhs="bjk", to="bik")
    p_sum = p.broadcast(p.reduce_sum(first, axes=(0,)), shape=(16, 8, 8), axes=(0,))
    plan = assert_plan_agrees(p.done(p.dot_general(p_sum, y, lhs="bij", rhs="bjk", to="bik")),
                              replace(TURNS, cache=1 << 10))
    assert not any(len(names) == len(plan.steps) for names, _ in together(plan))


def test_a_kernel_that_reads_another_share_waits_for_it():
    p = Build("f")
    x, y = p.input("x", 16, 8, 8), p.input("y", 16, 8, 8)
    first = p.dot_general(x, y, lhs="bij", rhs="bjk", to="bik")
    turned = p.rev(first, axes=(0,))
    plan = assert_plan_agrees(p.done(p.dot_general(turned, y, lhs="bij", rhs="bjk", to="bik")),
                              replace(TURNS, cache=1 << 10))
    assert not together(plan)


@pytest.mark.parametrize("own", [True, False])
def test_a_place_that_is_computed_lies_in_its_own_share_or_not(own):
    """Crops of images, each at its own place, after a border of zeros; or of any image."""
    def crops(images, flips, y, x):
        def wide(image, flip):
            return fnp.pad(fnp.where(flip == 1, image[:, ::-1], image), ((2, 2), (2, 2), (0, 0)))
        made = vmap(wide)(images, flips)
        def crop(image, y, x):
            return lax.dynamic_slice(image, (y, x, 0), (8, 8, 3))
        if own:
            return made, vmap(crop)(made, y, x)
        return made, vmap(lambda k, y, x: crop(made[k], y, x))(flips, y, x)
    places = ArrayType(I32, (16,))
    types = [ArrayType(F32, (16, 8, 8, 3)), places, places, places]
    plan = assert_plan_agrees(inline(stage(crops, types).program), replace(TURNS, cache=1 << 13))
    assert len(plan.steps) > 1 and bool(together(plan)) == own


def test_an_argument_that_another_share_reads_is_not_written_over():
    p = Build("f")
    x, y = p.input("x", 16, 8, 8), p.input("y", 16, 8, 8)
    first = p.dot_general(p.rev(x, axes=(0,)), y, lhs="bij", rhs="bjk", to="bik")
    top = p.broadcast(p.reduce_max(first, axes=(2,)), shape=first.type.shape, axes=(2,))
    plan = assert_plan_agrees(p.done(p.add(p.exp(p.sub(first, top)), x)),
                              replace(TURNS, cache=1 << 11), donate=(0,))
    assert together(plan) and not plan.donated


def test_an_argument_that_another_share_has_yet_to_read_is_not_written_over():
    p = Build("f")
    x, y = p.input("x", 16, 8, 8), p.input("y", 16, 8, 8)
    first = p.dot_general(p.rev(x, axes=(0,)), y, lhs="bij", rhs="bjk", to="bik")
    plan = assert_plan_agrees(p.done(p.dot_general(first, y, lhs="bij", rhs="bjk", to="bik")),
                              replace(TURNS, cache=1 << 11), donate=(0,))
    assert together(plan) and not plan.donated


# ---------------------------------------------------------------------------- random programs

def shifted(p, x):
    """0, x[0], x[1], …: every share reads the one before."""
    low, high = (1, 0, 0), (0, 0, 0)
    found = p.pad(x, 0.0, low=low, high=high, interior=high)
    return p.slice(found, start=(0, 0, 0), stop=x.type.shape, stride=(1, 1, 1))


def batches(seed, steps=7):
    """Operations on arrays of matrices: within each of them, mostly, or across."""
    rng, p = random.Random(seed), Build("f")
    n = rng.choice([8, 8, 6, 5])
    shape = rng.choice([8, 12, 16]), n, n
    known = [p.input(name, *shape) for name in "xyz"]
    for _ in range(steps):
        x, y = rng.choices(known[-3:], k=2)
        kind = rng.randrange(10)
        if kind < 3:
            lhs, rhs = rng.choice(["bij", "bji"]), rng.choice(["bjk", "bkj"])
            known.append(p.mul(p.dot_general(x, y, lhs=lhs, rhs=rhs, to="bik"), 0.125))
        elif kind < 5:
            top = p.broadcast(p.reduce_max(x, axes=(2,)), shape=shape, axes=(2,))
            known.append(p.add(p.exp(p.sub(x, top)), y))
        elif kind < 7:
            known.append(p.tanh(p.sub(p.transpose(x, perm=(0, 2, 1)), y)))
        elif kind == 7:
            known.append(p.rev(x, axes=(0,)))
        elif kind == 8:
            known.append(p.add(shifted(p, x), y))
        else:
            total = p.reduce_sum(x, axes=(0,))
            known.append(p.add(p.broadcast(p.mul(total, 0.0625), shape=shape, axes=(0,)), y))
    outputs = {known[-1], *rng.sample(known[3:], rng.randrange(3))}
    return p.done(*[v for v in known if v in outputs])


TIGHT = replace(TURNS, cache=1 << 11)


def test_random_programs_take_turns():
    taken = [together(passes.plan(batches(seed), TIGHT)) for seed in range(40)]
    assert sum(map(bool, taken)) > 10


@pytest.mark.parametrize("seed", range(40))
def test_turns_keep_every_value(seed):
    assert_plan_agrees(batches(seed, steps=5), TIGHT, length=512)


def run(program, target, arrays):
    """The results of a Program, compiled for the machine as the target says."""
    found = Executable(*module.compiled(check_plan(passes.plan(program, target))))
    return [x.np for x in found([Array(a) for a in arrays])]


@pytest.mark.parametrize("seed", range(60))
def test_compiled_turns_keep_every_value(seed):
    program = batches(seed, steps=9)
    arrays, target = arrays_for(program, seed), module.host_target()
    tight = replace(target, region_cost=50, cache=1 << 11)
    got, want = run(program, tight, arrays), run(program, replace(tight, cache=0), arrays)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def two_threads():
    """This machine as if it had two threads, with a megabyte of cache each."""
    return replace(module.host_target(), threads=2, cache=1 << 20)


@pytest.mark.parametrize("also", [(), ("shares",)])
def test_compiled_attention_takes_turns(also):
    program, target = attention(8, 8, 128, 32, also), two_threads()
    assert together(passes.plan(program, target))
    arrays = arrays_for(program, 0)
    for a, b in zip(run(program, target, arrays), run(program, replace(target, cache=0), arrays)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_products_that_take_turns_work_in_different_places():
    plan = passes.plan(attention(8, 8, 128, 32), two_threads())
    ((_, calls),) = module.Module(plan).steps
    places = [b for _, _, buffers in calls for b in buffers if isinstance(b, Workspace)]
    assert len(set(places)) == len(places) == 2


def test_they_say_so():
    text = str(passes.plan(attention(4, 6, 8, 4), TURNS))
    assert text.count("in 24 turns: attention0, attention1, attention2") == 3


@pytest.mark.parametrize("n", [5, 8])
def test_compiled_shares_are_whole_blocks_of_lanes(n):
    p = Build("f")
    x, y, z = (p.input(name, 16, n, n) for name in "xyz")
    t = p.tanh(x)
    products = [p.dot_general(t, a, lhs="bij", rhs="bjk", to="bik") for a in (y, z)]
    program, target = p.done(*products, t), module.host_target()
    tight = replace(target, region_cost=50, threads=1, cache=1 << 11)
    assert together(passes.plan(program, tight))[0][0][0] == ("f0" if n == 8 else "f1")
    arrays = arrays_for(program, 0)
    for a, b in zip(run(program, tight, arrays), run(program, replace(tight, cache=0), arrays)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
