"""Donated arrays in native calls: what loses its memory, what keeps it, and that nothing leaks."""

import gc
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import jit
from fgrad.callbacks import effect_callback
from fgrad.core import Array, donated
from fgrad.errors import DonationError
from tests.at_once import at_once

N = 100


def fresh(value=1.0):
    """An Array of memory of its own."""
    return fnp.array(np.full(N, value, np.float32))


def practised(f, *makes):
    """The function after calls that make it native; not where native calls are switched off."""
    for _ in range(3):
        f(*[make() for make in makes])
    return f


def pointer(x):
    return x.np.__array_interface__["data"][0]


@pytest.fixture(params=["native", "python"], autouse=True)
def way(request, monkeypatch):
    """Donation means the same with and without native calls."""
    if request.param == "python":
        monkeypatch.setenv("FGRAD_NATIVE_CALL", "0")
        fgrad.clear_caches()
    yield request.param
    fgrad.clear_caches()


def is_builtin(f):
    return isinstance(type(f).__call__, types.BuiltinFunctionType)


def test_a_tree_that_is_donated_is_taken_apart_by_machine_code(way):
    def step(state, x):
        return {"w": state["w"] * 2, "n": state["n"] + 1}, (x + state["w"], [x * 2])
    f = practised(jit(step, donate_argnums=0), lambda: {"w": fresh(), "n": fnp.array(0)}, fresh)
    assert is_builtin(f) == (way == "native")
    state, x = {"w": fresh(3), "n": fnp.array(7)}, fresh(5)
    at, before = pointer(state["w"]), state
    state, (sums, [twice]) = f(state, x)
    assert at in map(pointer, (state["w"], sums, twice))
    for got, want in ((state["w"], 6), (state["n"], 8), (sums, 8), (twice, 10), (x, 5)):
        np.testing.assert_array_equal(np.asarray(got), want)
    for gone in before.values():
        with pytest.raises(DonationError, match="after its memory had been donated"):
            gone + 1
        assert gone.shape in ((N,), ()) and type(gone) is donated(Array)


@pytest.mark.parametrize("position", [0, 1])
def test_an_array_that_is_read_too_is_copied_and_gone(position):
    f = practised(jit(lambda x, y: (x * 2, y * 3), donate_argnums=position), fresh, fresh)
    x = fresh()
    two, three = f(x, x)
    np.testing.assert_array_equal(np.asarray(two), 2)
    np.testing.assert_array_equal(np.asarray(three), 3)
    with pytest.raises(DonationError):
        x + 1


def test_an_array_donated_in_two_places_serves_both_results():
    f = practised(jit(lambda t: [a * k for k, a in enumerate(t, 2)], donate_argnums=0),
                  lambda: [fresh(), fresh(), fresh()])
    x, y = fresh(), fresh(5)
    outs = f([x, y, x])
    for out, want in zip(outs, (2, 15, 4)):
        np.testing.assert_array_equal(np.asarray(out), want)
    assert len({pointer(out) for out in outs}) == 3
    for gone in (x, y):
        with pytest.raises(DonationError):
            gone + 1


def test_where_one_array_cannot_be_written_to_the_others_are_as_they_were():
    """The first lost its memory before the second was looked at; then all goes the other way."""
    f = practised(jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1)), fresh, fresh)
    a, b = fresh(), fresh()
    seen = np.asarray(b)
    for out in f(a, b):
        np.testing.assert_array_equal(np.asarray(out), 2)
    np.testing.assert_array_equal(seen, 1)
    mine = np.ones(N, np.float32)
    for out in f(fresh(), mine):
        np.testing.assert_array_equal(np.asarray(out), 2)
    np.testing.assert_array_equal(mine, 1)
    gone, kept = f(fresh(), fresh())[0], fresh()
    f(gone, fresh())
    for given in ((kept, gone), (gone, kept)):
        with pytest.raises(DonationError):
            f(*given)
        np.testing.assert_array_equal(np.asarray(kept), 1)


def test_memory_that_no_result_takes_over_is_freed():
    f = practised(jit(lambda x: x.sum(), donate_argnums=0), fresh)
    for _ in range(3):
        x = fresh()
        memory = weakref.ref(x.np)
        assert float(f(x)) == N
        assert memory() is None
        with pytest.raises(DonationError):
            x + 1
    mine = np.ones(N, np.float32)
    assert float(f(mine)) == N and mine.sum() == N


def test_no_reference_is_lost_or_kept():
    shape, dtype = (N,), np.dtype(np.float32)

    def step(t, x):
        return {"a": t["a"] + x, "b": t["b"] * 2}, t["c"].sum()
    f = practised(jit(step, donate_argnums=0), lambda: dict(a=fresh(), b=fresh(), c=fresh()), fresh)
    x, seen = fresh(), []

    def run():
        t = dict(a=fresh(), b=fresh(), c=fresh())
        for k in range(100):
            t, _ = f({**t, "c": fresh()}, x)
            seen[:] = [np.asarray(t["b"])] if k % 10 == 0 else []
            if k % 7 == 0:
                one = fresh()
                f(dict(a=one, b=one, c=one), x)
        with pytest.raises(DonationError):
            for _ in range(2):
                f({**t, "c": fresh()}, x)
        seen.clear()

    def counts():
        gc.collect()
        return [sys.getrefcount(c) for c in (Array, donated(Array), dtype, x, x.np)]
    run()
    before, blocks = counts(), []
    for _ in range(4):
        run()
        blocks.append(sys.getallocatedblocks())
    assert np.abs(np.subtract(counts(), before)).max() <= 2
    assert np.diff(blocks).min() < 50 and x.shape == shape


def test_of_threads_that_give_away_one_array_one_has_its_memory(way):
    f = practised(jit(lambda x: fnp.sin(x) * 2, donate_argnums=0),
                  lambda: fnp.array(np.ones(200_000, np.float32)))
    for _ in range(20):
        x, outs, refused = fnp.array(np.ones(200_000, np.float32)), [], []
        barrier = threading.Barrier(4)

        def work(_):
            barrier.wait()
            try:
                outs.append(f(x))
            except DonationError:
                refused.append(1)
        at_once(work, *[(k,) for k in range(4)])
        assert len(outs) + len(refused) == 4 and len({pointer(out) for out in outs}) == len(outs)
        for out in outs if way == "native" else ():          # else two may have read it meanwhile
            np.testing.assert_allclose(np.asarray(out), 2 * np.sin(1), rtol=1e-6)


def test_what_was_donated_to_a_native_call_that_raised_is_gone():
    wanted = []

    def look(x):
        if wanted:
            raise KeyError("mine")

    def function(x, y):
        effect_callback(look, x)
        return x + 1, y.sum()
    f = practised(jit(function, donate_argnums=(0, 1)), fresh, fresh)
    wanted.append(1)
    for _ in range(3):
        x, y = fresh(), fresh()
        memory = weakref.ref(x.np), weakref.ref(y.np)
        with pytest.raises(KeyError, match="mine"):
            f(x, y)
        for gone in (x, y):
            with pytest.raises(DonationError):
                gone + 1
        gc.collect()
        assert [m() for m in memory] == [None, None]
