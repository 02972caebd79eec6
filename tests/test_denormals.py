"""Denormal numbers are kept, and within a block flushed to zero, on all threads alike."""

import math
import threading

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.backends.llvm import threads
from fgrad.errors import DeviceError
from tests.messages import message

DENORMALS = {"float32": 1e-39, "float64": 1e-310}
SIZES = [1, 17, 300_000]                         # the last one in parts, on all threads


@pytest.fixture(autouse=True)
def switchable():
    if not threads.float_mode()[1]:
        pytest.skip("neither x86-64 nor ARM")


def halves(dtype, n):
    """(a function, its arguments): half of the least normal number, and of others, n times."""
    x = np.full(n, np.finfo(dtype).tiny)
    x[::3] = 3.0
    return fgrad.jit(lambda x: x * 0.5), fnp.array(x.astype(dtype))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DENORMALS)
def test_within_the_block_they_are_zero_and_behind_it_kept(dtype, n):
    f, x = halves(dtype, n)
    kept = np.asarray(x) * x.dtype.type(0.5)
    flushed = np.where(kept < 1, 0, kept)
    for _ in range(4):                           # from the second call on, natively
        np.testing.assert_array_equal(np.asarray(f(x)), kept)
        with fgrad.flush_denormals():
            np.testing.assert_array_equal(np.asarray(f(x)), flushed)
            np.testing.assert_array_equal(np.asarray(x * 0.5), flushed)
    np.testing.assert_array_equal(np.asarray(f(x)), kept)


@pytest.mark.parametrize("dtype", DENORMALS)
def test_arguments_are_taken_for_zero(dtype):
    x = fnp.full(300_000, DENORMALS[dtype], dtype)
    scale = fgrad.jit(lambda x: x * 1e30)
    assert np.asarray(scale(x)).min() > 0
    with fgrad.flush_denormals():
        assert not np.asarray(scale(x)).any()


def test_blocks_nest_and_end_with_an_exception():
    f, x = halves("float32", 4)
    with pytest.raises(ZeroDivisionError), fgrad.flush_denormals():
        with fgrad.flush_denormals():
            assert f(x)[1] == 0
        assert f(x)[1] == 0
        raise ZeroDivisionError
    assert f(x)[1] > 0


def test_a_thread_that_runs_already_is_not_concerned():
    f, x = halves("float32", 300_000)
    found, entered = [], threading.Event()

    def other():
        entered.wait(60)
        found.append(np.asarray(f(x)).min())
    thread = threading.Thread(target=other)
    thread.start()
    with fgrad.flush_denormals():
        assert np.asarray(f(x)).min() == 0
        entered.set()
        thread.join()
        assert np.asarray(f(x)).min() == 0
    assert found[0] > 0


@pytest.mark.parametrize("threaded", [False, True])
def test_what_is_compiled_within_the_block_is_right_behind_it(threaded):
    """A thread that is started within the block flushes them too."""
    def f(x):
        small = fgrad.lax.full((), 1e-20, "float32")
        return x + small * small * (10 + threaded)       # 1e-39, if a pass computes it
    x, found = fnp.zeros(3), []
    compiled = fgrad.jit(f)

    def first_call():
        found.append(np.asarray(compiled(x)).any())
    with fgrad.flush_denormals():
        if threaded:
            thread = threading.Thread(target=first_call)
            thread.start()
            thread.join()
        else:
            first_call()
    assert found == [False]
    np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(f(x)))
    assert np.asarray(compiled(x)).all()


def test_other_results_have_the_same_bits():
    x = fnp.array(np.random.default_rng(0).normal(size=(70, 300)).astype("float32"))
    cost = fgrad.jit(fgrad.value_and_grad(lambda x: fnp.sum(fgrad.nn.softmax(x @ x.T) ** 2)))
    want = cost(x)
    with fgrad.flush_denormals():
        found = cost(x)
    tiny = np.finfo("float32").tiny
    for ours, theirs in zip(found, want):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=0, atol=tiny)


def test_without_a_warning_of_numpy(recwarn):
    with fgrad.flush_denormals():
        assert fnp.finfo("float32").smallest_subnormal.view(np.int32) == 1
        assert math.isclose(fnp.sqrt(fnp.array(4.0)).item(), 2.0)
    assert not recwarn.list


def test_a_processor_that_is_not_known_is_refused(monkeypatch):
    monkeypatch.setattr(threads, "MODES", {})

    def enter():
        with fgrad.flush_denormals():
            pass
    assert message(DeviceError, enter) == """\
it is not known how this processor flushes denormal numbers.

    test_denormals.py:N    with fgrad.flush_denormals():

  expected   x86-64, or 64-bit ARM"""
