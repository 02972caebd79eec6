"""A native run ends where Python raises in it or Ctrl-C comes, and the function works on.

What could hang runs in a process of its own, with a time limit.
"""

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax
from fgrad.callbacks import effect_callback, io_callback
from tests.at_once import at_once

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import fgrad, fgrad.numpy as fnp
from fgrad import lax
from fgrad.callbacks import effect_callback, pure_callback
from fgrad.types import BOOL, ArrayType

limit = [5.0]

def below(x):
    if x > limit[0]:
        raise KeyError("mine")
    return np.array(True)

def always(x):
    return pure_callback(below, ArrayType(BOOL, ()), x)

def raises(kind, f, *args):
    try:
        f(*args)
    except kind:
        return True

def interrupted(f, *args, after=0.3):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    assert raises(KeyboardInterrupt, f, *args)
    assert time.monotonic() - start < after + 3
"""


def in_a_process(program, native="1", size=1):
    """Runs a program that knows PRELUDE; fails if it fails or hangs."""
    environment = os.environ | {"FGRAD_THREADS": str(size), "FGRAD_NATIVE_CALL": native}
    subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(program)], check=True,
                   timeout=30, env=environment)


both_ways = pytest.mark.parametrize("native, size", [("1", 2), ("0", 1)])
needs_signals = pytest.mark.skipif(os.name != "posix", reason="no os.kill with SIGINT")


@both_ways
def test_a_condition_that_raises_ends_the_loop(native, size):
    in_a_process("""
        f = fgrad.jit(lambda x: lax.while_loop(lambda y: always(y.sum()), lambda y: y + 1, x))
        g = fgrad.jit(lambda x: lax.scan(lambda c, _: (f(c), c), x, None, length=3)[0])
        h = fgrad.jit(fgrad.vmap(lambda x: lax.while_loop(always, lambda y: y + 1, x)))
        for function in (f, g, h, f, g, h):
            assert raises(KeyError, function, fnp.zeros(3))
    """, native, size)


@pytest.fixture(params=["0", "1"], ids=["python", "native"])
def native_call(request, monkeypatch):
    monkeypatch.setenv("FGRAD_NATIVE_CALL", request.param)


LOOPS = {
    "while": lambda body, x: lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, body(s[1])),
                                            (0, x))[1],
    "fori":  lambda body, x: lax.fori_loop(0, 9, lambda i, y: body(y), x),
    "scan":  lambda body, x: lax.scan(lambda y, _: (body(y), y), x, None, length=9)[0],
    "inner": lambda body, x: lax.fori_loop(0, 3, lambda i, y: lax.scan(
        lambda z, _: (body(z), None), y, None, length=3)[0], x),
    "cond":  lambda body, x: lax.fori_loop(0, 9, lambda i, y: lax.cond(
        i < 9, body, lambda z: z, y), x),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_body_that_raises_ends_the_loop_at_once(loop, native_call):
    seen, limit = [], [4]

    def note(x):
        seen.append(float(x[0]))
        if seen[-1] >= limit[0]:
            raise KeyError("mine")

    def body(x):
        effect_callback(note, x)
        return x + 1

    f = fgrad.jit(lambda x: LOOPS[loop](body, x))
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f(np.zeros(2, "float32"))
        assert seen == [0, 1, 2, 3, 4]
        seen.clear()
    limit[0] = 100
    for _ in range(3):
        assert f(np.zeros(2, "float32")).tolist() == [9, 9]
    limit[0] = 4
    with pytest.raises(KeyError, match="mine"):
        f(np.zeros(2, "float32"))
    assert len(seen) == 3 * 9 + 5


def test_a_batched_or_differentiated_loop_that_raises_ends(native_call):
    def refuse(x):
        raise KeyError("mine")

    def f(x):
        def body(i, y):
            effect_callback(refuse, i)
            return fnp.sin(y)
        return lax.fori_loop(0, 5, body, x).sum()

    for g in (fgrad.vmap(f), fgrad.grad(f), fgrad.vmap(fgrad.grad(f))):
        g = fgrad.jit(g)
        for _ in range(2):
            with pytest.raises(KeyError, match="mine"):
                g(np.ones((3, 2), "float32"))


def test_nothing_runs_behind_a_step_that_raises(native_call):
    seen, broken = [], []

    def first(x):
        seen.append("first")
        if broken:
            raise broken[0]
        return x

    def f(x):
        y = io_callback(first, x, x)
        effect_callback(lambda a: seen.append("second"), fnp.sort(y))
        return y + 1

    g = fgrad.jit(f)
    for _ in range(3):
        assert g(np.ones(3, "float32")).tolist() == [2, 2, 2]
    seen.clear()
    for broken[:] in ([KeyError()], [KeyboardInterrupt()], [SystemExit(3)]):
        with pytest.raises(type(broken[0])):
            g(np.ones(3, "float32"))
    assert seen == ["first"] * 3


def test_a_run_within_a_run_may_raise_and_be_caught(native_call):
    def refuse(x):
        raise KeyError("mine")

    inner = fgrad.jit(lambda x: io_callback(refuse, x, x))

    def guarded(x):
        with pytest.raises(KeyError):
            inner(x)
        return x * 2

    f = fgrad.jit(lambda x: lax.fori_loop(0, 3, lambda i, y: io_callback(guarded, y, y) + 1, x))
    for _ in range(2):
        assert f(np.ones(2, "float32")).tolist() == [15, 15]


def test_nothing_leaks_where_a_step_raises(native_call):
    broken = []

    def check(x):
        if broken:
            raise KeyError("mine")

    @fgrad.jit
    def f(x, y):
        effect_callback(check, x)
        return fnp.sin(x) + y, fnp.sort(y)

    x, y = np.ones(20_000, "float32"), fgrad.core.Array(np.ones(20_000, "float32"))
    f(x, y), f(x, y)                             # native from here on
    broken.append(1)
    counts = []
    for _ in range(5):                           # what leaks does so each time; other threads may
        for _ in range(50):                      # keep something once
            with pytest.raises(KeyError):
                f(x, y)
        gc.collect()
        counts.append((sys.getallocatedblocks(), sys.getrefcount(x), sys.getrefcount(y.np)))
    assert all(count[1:] == counts[1][1:] for count in counts[2:])
    assert min(b[0] - a[0] for a, b in zip(counts[1:], counts[2:])) < 50


def test_what_was_donated_to_a_run_that_raised_is_gone(native_call):
    def refuse(x):
        raise KeyError("mine")

    def f(x):
        y = lax.fori_loop(0, 3, lambda i, y: y + 1, x)
        effect_callback(refuse, y)
        return y

    x = fnp.ones(4)
    with pytest.raises(KeyError, match="mine"):
        fgrad.jit(f, donate_argnums=0)(x)
    with pytest.raises(fgrad.DonationError):
        x + 1


def test_of_two_threads_one_raises_and_the_other_ends_well(native_call):
    def refuse(x):
        if x[0] > 5:
            raise KeyError("mine")

    def body(y):
        effect_callback(refuse, y)
        return y + 1

    f = fgrad.jit(lambda x, n: lax.while_loop(lambda s: s[0] < n, lambda s: (
        s[0] + 1, body(s[1])), (0, x))[1])
    start = np.zeros(3, "float32")
    f(start, 1), f(start, 1)
    results = {}

    def work(name, n):
        results[name] = []
        for _ in range(20):
            try:
                results[name].append(f(start, n).tolist())
            except KeyError:
                results[name].append("raised")

    at_once(work, *enumerate([5, 50, 4, 500]))
    assert results == {0: [[5] * 3] * 20, 1: ["raised"] * 20, 2: [[4] * 3] * 20,
                       3: ["raised"] * 20}


# ---------------------------------------------------------------------------- Ctrl-C


@needs_signals
@both_ways
def test_ctrl_c_ends_a_long_loop(native, size):
    in_a_process("""
        f = fgrad.jit(lambda x, n: lax.while_loop(lambda s: s[0] < n, lambda s: (
            s[0] + 1, s[1] * 0.5 + 1), (0.0, x))[1])
        g = fgrad.jit(lambda x, n: lax.fori_loop(0, n, lambda i, y: lax.fori_loop(
            0, n, lambda j, z: z * 0.5 + 1, y), x))
        x = fnp.zeros(3)
        for _ in range(2):
            assert f(x, 50.0).tolist() == [2, 2, 2]
            interrupted(f, x, 1e30)
        g(x, 2), g(x, 2)
        interrupted(g, x, 2**31 - 1)
        assert f(x, 50.0).tolist() == [2, 2, 2]
    """, native, size)


@needs_signals
def test_ctrl_c_ends_loops_of_slow_steps_and_of_steps_in_python():
    in_a_process("""
        slow = fgrad.jit(lambda x, n: lax.fori_loop(0, n, lambda i, y: fnp.tanh(y @ x), x))
        sort = fgrad.jit(lambda x, n: lax.fori_loop(0, n, lambda i, y: fnp.sort(y), x))
        for f, x in ((slow, fnp.zeros((700, 700))), (sort, fnp.zeros(20))):
            f(x, 1), f(x, 1)
            for after in (0.21, 0.22, 0.23):
                interrupted(f, x, 10**9, after=after)
    """, size=2)


@needs_signals
def test_a_signal_whose_handler_returns_does_not_end_a_loop():
    in_a_process("""
        seen = []
        signal.signal(signal.SIGINT, lambda *a: seen.append(time.monotonic()))
        f = fgrad.jit(lambda x: lax.scan(lambda c, _: (lax.fori_loop(
            0, 10**6, lambda i, y: y * 0.5 + 1, c), None), x, None, length=60)[0])
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        while not seen:
            assert f(fnp.zeros(3)).tolist() == [2, 2, 2]
        assert len(seen) == 1
    """)


@needs_signals
def test_ctrl_c_is_for_the_main_thread_alone():
    in_a_process("""
        done = []
        f = fgrad.jit(lambda x, n: lax.while_loop(lambda s: s[0] < n, lambda s: (
            s[0] + 1, s[1] * 0.5 + 1), (0, x))[1])
        x = fnp.zeros(3)
        f(x, 5), f(x, 5)
        worker = threading.Thread(target=lambda: done.append(f(x, 2 * 10**7).tolist()))
        worker.start()
        interrupted(f, x, 2**31 - 1)
        worker.join(20)
        assert done == [[2, 2, 2]]
    """)


def test_a_process_ends_while_a_daemon_thread_runs_a_loop():
    for condition in ("always", "lambda y: y < 1"):
        in_a_process(f"""
            limit[0] = 1e30
            f = fgrad.jit(lambda x: lax.while_loop({condition}, lambda y: y * 0.5, x))
            threading.Thread(target=f, args=(fnp.array(0.0),), daemon=True).start()
            time.sleep(0.4)
        """)


def test_a_run_without_memory_for_its_temporaries_raises():
    pytest.importorskip("resource")
    in_a_process("""
        import resource
        def f(x, n):
            table = fnp.broadcast_to(x[None], (n, x.size))
            return fnp.cumsum(table, axis=0)[::-1].sum(0)
        f, x = fgrad.jit(f, static_argnums=1), np.ones(50_000, "f4")
        small = f(x, 2)
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        for _ in range(3):
            assert raises(MemoryError, f, x, 50_000)
        assert small[0] == f(x, 2)[0] == 3
    """)
