"""Parallel kernels are right with any number of threads, and threads may share functions."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad.core import Array
from fgrad.jitted import jit
from fgrad.transforms import grad, vmap

from tests.properties.test_compiled import assert_within
from tests.strategies import FUZZ, Writer
from tests.tolerance import EPS

LARGE = {  # name: (function, shapes of its f32 arguments, terms in a sum)
    "rows": (lambda xp, x: xp.sum(xp.exp(x), axis=1), [(300, 500)], 500),
    "columns": (lambda xp, x: xp.sum(x * x, axis=0), [(300, 500)], 300),
    "everything": (lambda xp, x: xp.sum(xp.tanh(x)), [(300, 500)], 150_000),
    "odd": (lambda xp, x: xp.max(x, axis=1) - xp.min(x, axis=1), [(1031, 67)], 1),
    "middle": (lambda xp, x: xp.sum(x, axis=1), [(17, 300, 33)], 300),
    "outer": (lambda xp, x: xp.sum(x, axis=(0, 2)), [(17, 300, 33)], 561),
    "chain": (lambda xp, x: xp.maximum(x * 2 + 1, x) * x - x, [(100_003,)], 1),
    "softmax": (
        lambda xp, x: xp.exp(x - xp.max(x, axis=1, keepdims=True))
        / xp.sum(xp.exp(x - xp.max(x, axis=1, keepdims=True)), axis=1, keepdims=True),
        [(257, 301)],
        301,
    ),
    "both": (
        lambda xp, x, g: xp.concatenate(
            [xp.sum(x * g, axis=0), xp.sum(x, axis=1), xp.ravel(x * g)]
        ),
        [(401, 303), (303,)],
        401,
    ),
    "product": (lambda xp, a, b: a @ b + 1, [(203, 301), (301, 107)], 301),
    "thin": (lambda xp, a, b: xp.tanh(a @ b), [(1, 700), (700, 513)], 700),
    "transposed": (lambda xp, a, b: a.T @ b, [(301, 120), (301, 90)], 301),
    "moved": (lambda xp, x, y: x + y.T, [(500, 300), (300, 500)], 1),
    "cumulative": (lambda xp, x: xp.cumsum(x, axis=1), [(200, 300)], 300),
    "vector": (lambda xp, a, x: a @ x, [(700, 501), (501,)], 501),
}


def arguments(shapes):
    rng = np.random.default_rng(3)
    return [rng.uniform(-1, 1, s).astype("f4") for s in shapes]


def every_result():
    """All of LARGE by one compiled function, as NumPy arrays."""
    made = {name: arguments(shapes) for name, (_, shapes, _) in LARGE.items()}
    compiled = jit(lambda args: {name: f(fnp, *args[name]) for name, (f, _, _) in LARGE.items()})
    return {name: np.asarray(x) for name, x in compiled(made).items()}


def in_process(threads, path):
    """every_result, with so many threads, by a process of its own."""
    script = ("import sys, numpy as np; from tests.properties.test_threads import every_result;"
              "np.savez(sys.argv[1], **every_result())")
    env = {
        **os.environ,
        "FGRAD_THREADS": str(threads),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    subprocess.run([sys.executable, "-c", script, str(path)], env=env, check=True, timeout=300)
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_kernels_are_right_with_any_number_of_threads(threads, tmp_path):
    found = in_process(threads, tmp_path / "results.npz")
    for name, (f, shapes, terms) in LARGE.items():
        want = f(np, *[a.astype("f8") for a in arguments(shapes)])
        got = found[name]
        assert got.shape == want.shape and got.dtype == np.float32, name
        top = np.abs(want).max()
        np.testing.assert_allclose(
            got, want, rtol=0, atol=16 * EPS["float32"] * terms**0.5 * max(1.0, top), err_msg=name
        )


def random_programs():
    """A few random programs over arrays that are large enough for several threads."""
    return [
        Writer(
            seed, dtypes=("float32", "float32", "int32"), sizes=(100, 257, 300, 511), most=200_000
        ).program(12)
        for seed in range(12 * max(1, FUZZ))
    ]


def compare_random_programs():
    """Compiled and at once, each gives the same."""
    for p in random_programs():
        want = p(*map(Array, p.arrays))
        assert_within(jit(p.function)(*p.arrays), want, p.errors, repr(p))


def test_random_programs_over_large_arrays_are_right_with_three_threads():
    script = "import tests.properties.test_threads as t; t.compare_random_programs()"
    env = {**os.environ, "FGRAD_THREADS": "3", "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", script], env=env, check=True, timeout=600)


def run_in_threads(n, work):
    """work(k) in n threads that start together; raises what one of them raised."""
    start, errors = threading.Barrier(n), []

    def target(k):
        start.wait()
        try:
            work(k)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=target, args=(k,)) for k in range(n)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    if errors:
        raise errors[0]


def test_two_threads_may_call_one_function_that_runs_parallel_kernels():
    f = jit(lambda x: fnp.sum(fnp.exp(x), axis=1) + x @ fnp.ones(500))
    xs = [np.full((300, 500), k / 10, "f4") for k in range(2)]
    f(xs[0])

    def work(k):
        for _ in range(20):
            np.testing.assert_allclose(f(xs[k]), 500 * np.exp(k / 10) + 50 * k, rtol=1e-5)
    run_in_threads(2, work)


@pytest.mark.filterwarnings("ignore::fgrad.errors.FgradWarning")
def test_eight_threads_compile_one_function_for_shapes_of_their_own():
    f = jit(lambda x: (fnp.sum(x * x), x @ x.T))

    def work(k):
        x = np.arange(3 * (k + 1), dtype="f4").reshape(3, k + 1) / 8
        for _ in range(3):
            total, product = f(x)
            np.testing.assert_allclose(total, (x * x).sum(), rtol=1e-5)
            np.testing.assert_allclose(product, x @ x.T, rtol=1e-5)
    run_in_threads(8, work)


def test_eight_threads_nest_transformations():
    shared = jit(lambda w, x: fnp.tanh(fnp.sum(w * x)))
    xs = np.linspace(-1, 1, 12).reshape(4, 3)

    def work(k):
        scale = k / 4
        inner = lambda w: fnp.sum(vmap(lambda x: shared(w, x) * scale)(xs))
        for _ in range(4):
            found = [
                grad(inner)(np.ones(3)),
                jit(grad(inner))(np.ones(3)),
                grad(jit(inner))(np.ones(3)),
            ]
            t = np.tanh(xs.sum(1))
            want = ((1 - t * t)[:, None] * xs).sum(0) * scale
            for x in found:
                np.testing.assert_allclose(x, want, rtol=1e-9, atol=1e-12)
    run_in_threads(8, work)
