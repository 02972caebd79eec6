"""What is found by iteration compiles: loops over blocks give what NumPy's rules do, and end."""

import numpy as np
import pytest

import fgrad
from fgrad import passes
from fgrad.interpreters.stage import stage
from fgrad.loop import Call
from fgrad.ops import iterated
from fgrad.passes.series import BLOCK
from fgrad.passes.target import Target
from fgrad.scipy import special
from fgrad.types import ArrayType


def by_a(a, b, x):
    return fgrad.grad(lambda a: special.betainc(a, b, x).sum())(a)


def shift(a, b, x):
    return fgrad.grad(lambda a: special.gammainc(a, b).sum())(a)


FUNCTIONS = [special.betainc, by_a, shift,
             lambda a, b, x: special.gammainc(a, b), lambda a, b, x: special.gammaincc(a, b),
             lambda a, b, x: special.expi(b - 3), lambda a, b, x: special.expn(3, b)]
NAMES = ["betainc", "by_a", "shift", "gammainc", "gammaincc", "expi", "expn"]


def arguments(shape, dtype):
    """Parameters and a share, drawn from a fixed seed."""
    rng = np.random.default_rng(sum(shape))
    drawn = (rng.uniform(0.1, 12, shape), rng.uniform(0.1, 12, shape), rng.uniform(0, 1, shape))
    return [x.astype(dtype) for x in drawn]


@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
@pytest.mark.parametrize("dtype, bound", [("float64", 1e-12), ("float32", 1e-6), ("float16", 5e-3)])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 37), (BLOCK,), (BLOCK + 1,), (3, 2, 200)])
def test_compiled_it_is_what_the_rule_says(function, dtype, bound, shape):
    args = arguments(shape, dtype)
    want = function(*args)
    got = fgrad.jit(function)(*args)
    assert got.dtype == want.dtype and got.shape == want.shape
    got, want = np.asarray(got, "f8"), np.asarray(want, "f8")
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound)


@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_compiled_it_calls_nobody(function):
    types = [ArrayType("float32", (1000,))] * 3
    program = stage(function, types).program
    assert not calls(passes.plan(program, Target(native_loops=True)))
    assert calls(passes.plan(program, Target()))             # other devices have NumPy's rules


def calls(plan):
    """The calls of NumPy's rules in a Plan, those in loops too."""
    found = [step for step in plan.steps if isinstance(step, Call)]
    for step in plan.steps:
        found += [c for inner in getattr(step, "plans", ()) for c in calls(inner)]
    return found


@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_an_iteration_ends_when_the_last_element_has_converged(function, monkeypatch):
    """It went on to its limit of 20,000 steps where one of many factors stayed beside 1."""
    args = arguments((5000,), "float64")
    want = np.asarray(function(*args))
    monkeypatch.setattr(iterated, "STEPS", 120)
    np.testing.assert_array_equal(function(*args), want)


def test_elements_that_need_no_series_do_not_disturb_others():
    a, x = np.full((600,), 2.0), np.linspace(0.5, 9, 600)
    want = special.gammainc(a, x)
    odd = np.array([np.nan, np.inf, -1.0, 0.0, 1e300])
    a, x = np.concatenate([a, odd, np.full(5, 2.0)]), np.concatenate([x, np.full(5, 2.0), odd])
    for function in (special.gammainc, fgrad.jit(special.gammainc)):
        got = np.asarray(function(a, x))
        np.testing.assert_allclose(got[:600], want, rtol=1e-13)
        np.testing.assert_array_equal(got[600:], [np.nan, np.nan, np.nan, np.nan, 0.0,
                                                  np.nan, 1.0, np.nan, 0.0, 1.0])
