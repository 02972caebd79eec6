"""Branches that cost less than to choose one are computed side by side."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import debug, jit, lax, vmap
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import Loop
from fgrad.passes.branches import flat_branches
from fgrad.types import BOOL, F32, I32, ArrayType
from tests.passes.checking import assert_plan_agrees

P, K, X, V = ArrayType(BOOL, ()), ArrayType(I32, ()), ArrayType(F32, ()), ArrayType(F32, (20,))


def loops(function, *types):
    """The loops and choices among the steps of a function's Plan."""
    plan = assert_plan_agrees(inline(stage(function, types).program))
    return [s.kind for s in plan.steps if isinstance(s, Loop)]


CHEAP = {
    "two": (lambda p, x: lax.cond(p, lambda x: x * 2.0, lambda x: -x, x), P, X),
    "vectors": (lambda p, x: lax.cond(p, lambda x: x[::-1] + 1.0, lambda x: x, x), P, V),
    "several results": (lambda p, x: lax.cond(
        p, lambda x: (x, x > 0, 1), lambda x: (x * x, True, 2), x), P, X),
    "an element": (lambda p, x: lax.cond(p, lambda x: x[3], lambda x: x[4] * x[0], x), P, V),
    "one within another": (lambda p, x: lax.cond(
        p, lambda x: lax.cond(x > 0, lambda x: x, lambda x: x * 3.0, x), lambda x: x + 1.0, x),
        P, X),
    "a quotient by zero": (lambda k, x: lax.cond(
        k != 0, lambda x: x // k, lambda x: x, x), K, K),
}
DEAR = {
    "a long sum": (lambda p, x: lax.cond(p, lambda x: x.sum(), lambda x: x[0], x), P, V),
    "functions": (lambda p, x: lax.cond(
        p, lambda x: fnp.tanh(fnp.exp(x)), lambda x: fnp.sin(x), x), P, X),
    "a large array": (lambda p, x: lax.cond(p, lambda x: x * 2.0, lambda x: -x, x), P,
                      ArrayType(F32, (1000,))),
    "a loop": (lambda p, x: lax.cond(p, lambda x: lax.fori_loop(
        0, 3, lambda k, x: x + 1.0, x), lambda x: x, x), P, X),
}


@pytest.mark.parametrize("what", CHEAP)
def test_cheap_branches_are_computed_side_by_side(what):
    function, *types = CHEAP[what]
    assert loops(function, *types) == []
    flat_branches(inline(stage(function, types).program)).check()


def test_a_choice_by_all_elements_is_the_same_for_each():
    """The choice had the shape of a number, and was then made for each element by itself."""
    def f(x):
        whole = x.astype("int32")
        some = lax.cond(fnp.any(whole), lambda x: fnp.sin(x), lambda x: x * 0.5, x)
        return fnp.outer(whole, whole), some
    x = np.linspace(-2, 2, 9, dtype=np.float32).reshape(9, 1)
    for device in ("cpu", "reference"):
        np.testing.assert_allclose(jit(f, device=device)(x)[1], np.sin(x), rtol=1e-6)


@pytest.mark.parametrize("what", DEAR)
def test_dear_branches_are_chosen(what):
    function, *types = DEAR[what]
    assert loops(function, *types) == ["cond"]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_an_index_out_of_range_counts_as_the_nearest(count):
    branches = [lambda x, c=c: x * c + (c == 2) for c in range(1, count + 1)]
    run = jit(lambda k, x: lax.switch(k, branches, x))
    for k in range(-2, count + 2):
        want = branches[min(max(k, 0), count - 1)](np.float32(3))
        assert run(fnp.asarray(np.int32(k)), np.float32(3)) == want
    if 1 < count < 7:
        assert loops(lambda k, x: lax.switch(k, branches, x), K, X) == []


def test_what_is_not_chosen_does_not_spoil_what_is():
    def safe(x):
        return lax.cond(x > 0, lambda x: 1.0 / x, lambda x: fnp.float32(0), x)
    xs = np.array([0.0, -1.0, 2.0, np.nan, np.inf], np.float32)
    want = np.array([0, 0, 0.5, 0, 0], np.float32)
    np.testing.assert_array_equal([float(jit(safe)(x)) for x in xs], want)
    np.testing.assert_array_equal(np.asarray(jit(vmap(safe))(xs)), want)


def test_an_effect_happens_only_where_it_is_chosen(capsys):
    def f(p, x):
        return lax.cond(p, lambda x: (debug.print("chosen {x}", x=x), x)[1], lambda x: -x, x)
    assert jit(f)(False, np.float32(2)) == -2 and capsys.readouterr().out == ""
    assert jit(f)(True, np.float32(2)) == 2
    assert "chosen" in capsys.readouterr().out


def test_a_scan_whose_steps_branch_is_one_kernel_a_step():
    def step(c, t):
        c = lax.cond(t > 0, lambda c: c * 0.5 + t, lambda c: c - t, c)
        return c, c
    plan = assert_plan_agrees(inline(stage(
        lambda x: lax.scan(step, fnp.float32(0), x), [V]).program))
    (loop,) = [s for s in plan.steps if isinstance(s, Loop)]
    assert len(loop.plans[0].steps) == 1
