"""Updates in place: what a loop changes a part of is not copied; what is read is read before."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import jit, lax, show
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import Loop, copied, is_idle
from fgrad.types import F32, I32, ArrayType
from tests.passes.checking import THREADS, assert_plan_agrees

X, A, K = ArrayType(F32, (9,)), ArrayType(F32, (7, 5)), ArrayType(I32, ())


def plan_of(function, *types, donate=()):
    return assert_plan_agrees(inline(stage(function, types).program), donate=donate)


def body_of(function, *types):
    """The Plan of the body of the one loop of a function."""
    (loop,) = [s for s in plan_of(function, *types).steps if isinstance(s, Loop)]
    return loop, loop.plans[-1]


def copies(plan):
    """(how many kernels only copy, how many of these have anything to do)."""
    found = [s for s in plan.steps if copied(s) is not None]
    return len(found), len([s for s in found if not is_idle(s)])


LOOPS = {
    "an element": (lambda k, c: c.at[k].set(1.0), X),
    "an element computed from its neighbour": (lambda k, c: c.at[k].set(c[k - 1] * 2.0), X),
    "a sum is added to an element": (lambda k, c: c.at[k].add(c.sum()), X),
    "two elements change places": (lambda k, c: c.at[k].set(c[k + 1]).at[k + 1].set(c[k]), X),
    "a row computed from the one before": (lambda k, c: c.at[k].set(c[k - 1] * 0.5 + c[k]), A),
    "a column": (lambda k, c: c.at[:, k].set(c[:, 0] + 1.0), A),
    "a block": (lambda k, c: lax.dynamic_update_slice(c, c[2:4] * 2.0, (k,)), X),
    "a block, and one into that": (lambda k, c: lax.dynamic_update_slice(
        lax.dynamic_update_slice(c, c[:1, :2], (k, 0)), c[1:2, 1:2], (0, k)), A),
    "a loop in the loop": (lambda k, c: lax.fori_loop(
        0, 3, lambda j, d: d.at[j].set(d[k] + 1.0), c), X),
}


@pytest.mark.parametrize("what", LOOPS)
def test_a_loop_that_changes_a_part_copies_nothing(what):
    body, kind = LOOPS[what]
    loop, plan = body_of(lambda x: lax.fori_loop(0, 4, body, x), kind)
    assert not loop.others and len(plan.donated) == 1
    number, busy = copies(plan)
    assert busy == 0 and (number or any(isinstance(s, Loop) for s in plan.steps))


def test_a_row_of_results_from_the_old_array_is_read_before_it_is_overwritten():
    def step(c, k):
        d = c.at[k].set(5.0)
        return d, c[k] + c.sum()
    loop, plan = body_of(lambda x: lax.scan(step, x, fnp.arange(6)), X)
    assert not loop.others and copies(plan) == (1, 0)


def test_what_is_needed_old_and_new_at_once_is_copied():
    def step(c, k):
        d = c.at[k].set(5.0)
        return d, d[::-1] * c
    loop, plan = body_of(lambda x: lax.scan(step, x, fnp.arange(6)), X)
    assert loop.others and copies(plan) == (1, 1)


def test_an_array_that_takes_the_place_of_another_is_copied():
    def step(k, c):
        a, b = c
        return b.at[k].set(1.0), a
    loop, _ = body_of(lambda a, b: lax.fori_loop(0, 3, step, (a, b)), X, X)
    assert loop.others


def test_an_array_that_has_no_arguments_is_changed_where_it_is():
    """The gradient of reads at some indices: zeros, which a kernel of their own stored."""
    def f(x, k):
        zeros = fnp.zeros(9)
        return zeros.at[fnp.stack([k, k + 1])].add(x[:2]), zeros
    assert copies(plan_of(f, X, K)) == (1, 1)


@pytest.mark.parametrize("donate", [(), (0,)])
def test_a_donated_array_is_changed_where_it_is_and_no_other(donate):
    plan = plan_of(lambda x, k: x.at[k].set(x[0] + 1.0), X, K, donate=donate)
    assert copies(plan) == (1, 0 if donate else 1)
    plan = plan_of(lambda x, k: lax.dynamic_update_slice(x, x[:2], (k,)), X, K, donate=donate)
    assert copies(plan) == ((1, 0) if donate else (0, 0))     # in one pass with the copy


def test_a_block_nearly_as_large_as_the_array_is_written_with_the_rest():
    _, plan = body_of(lambda x: lax.fori_loop(
        0, 3, lambda k, c: lax.dynamic_update_slice(c, c[1:7], (k,)), x), X)
    assert copies(plan) == (0, 0)


def test_a_plan_of_threads_and_its_printed_form_say_what_is_not_copied():
    def f(x):
        return lax.fori_loop(0, 3, lambda k, c: c.at[k].set(c[k + 1]), x)
    assert_plan_agrees(inline(stage(f, [ArrayType(F32, (400,))]).program), THREADS)
    assert "in place: nothing to copy" in show(f, np.ones(9, np.float32), stage="schedule")


def test_a_donated_cache_is_written_where_it_lies():
    @jit(donate_argnums=0)
    def write(cache, row, k):
        return lax.dynamic_update_slice(cache, row[None], (k, 0))
    cache = write(fnp.zeros((100, 64)), fnp.full(64, 1.0), 0)
    for k in (3, 99, 200):
        before = np.asarray(cache).ctypes.data
        cache = write(cache, fnp.full(64, float(k)), k)
        assert np.asarray(cache).ctypes.data == before
    want = np.zeros((100, 64), np.float32)
    want[0], want[3], want[99] = 1.0, 3.0, 200.0
    np.testing.assert_array_equal(np.asarray(cache), want)


def test_the_start_of_an_update_is_computed_like_any_other_kernel():
    """Rows that an update began with divided by their first element anew for each element."""
    text = str(plan_of(lambda x, k: (x * (2.0 / x[:, :1])).at[k].set(0.0), A, K))
    assert [line for line in text.splitlines() if "(2.0 / " in line and ": f32 = " in line]
