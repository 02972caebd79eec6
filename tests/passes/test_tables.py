"""What depends on no argument is computed once, when the Program is compiled, if it is dear."""

import os
import subprocess
import sys

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArrayType, jit, lax, passes, show
from fgrad.backends.llvm.module import host_target
from fgrad.compile import inlined
from fgrad.core import Array
from fgrad.scipy.special import expi
from fgrad.passes.pairs import expanded
from fgrad.transforms import traced

X = np.random.default_rng(0).standard_normal((6, 64)).astype("float32")


def hann(x):
    return x * (0.5 - 0.5 * fnp.cos(2 * np.pi * fnp.arange(64) / 64))


def tables(f, *args):
    """The types of the tables of a function's Plan, as text, and the names of their operations."""
    return [str(b.type) for b, _ in plan_of(f, *args).tables]


def plan_of(f, *args):
    return passes.plan(expanded(inlined(traced(f, args, {}).program)), host_target())


def agree(f, *args, bound=1e-5):
    got, want = (fgrad.tree.leaves(g(*map(fnp.asarray, args))) for g in (jit(f, device="cpu"), f))
    assert [x.type for x in got] == [x.type for x in want]
    for x, y in zip(got, want):
        np.testing.assert_allclose(np.asarray(x, "f8"), np.asarray(y, "f8"), bound, bound)


def test_a_window_is_no_work():
    assert tables(hann, X) == ["f32[64]"]
    assert "cos((" not in show(hann, X, stage="schedule", device="cpu")
    agree(hann, X)


CASES = {
    "grid": (lambda x: x * fnp.sin(fnp.arange(6.0))[:, None] * fnp.cos(fnp.arange(64.0)),
             ["f32[6]", "f32[64]"]),
    "spread": (lambda x: x + fnp.broadcast_to(fnp.exp(-fnp.arange(64.0)), x.shape), ["f32[64]"]),
    "together": (lambda x: x * (fnp.exp(-fnp.arange(64.0)) + fnp.sqrt(fnp.arange(64.0))),
                 ["f32[64]"]),
    "turned": (lambda x: x + fnp.exp(-fnp.arange(384.0)).reshape(64, 6).T, ["f32[384]"]),
    "rows": (lambda x: [x[k] * fnp.exp(-fnp.arange(384.0).reshape(6, 64))[k] for k in range(6)],
             ["f32[6,64]"]),
    "summed": (lambda x: x / fnp.exp(-fnp.arange(64.0)).sum(), ["f32[]"]),
    "product": (lambda x: x @ (fnp.eye(64) @ fnp.tri(64)), ["f32[64,64]"]),
    "sorted": (lambda x: x[0] * fnp.sort(fnp.arange(64.0) * 7 % 64), ["f32[1,64]"]),
    "in a loop": (lambda x: lax.scan(lambda c, r: (c + r * fnp.cos(fnp.arange(64.0)), None),
                                     x[0], x)[0], ["f32[64]"]),
    "of f64": (lambda x: x.astype("float64") * fnp.cos(fnp.arange(64, dtype="float64")),
               ["f64[64]"]),
    "of f16": (lambda x: x.astype("float16") * fnp.cos(fnp.arange(64, dtype="float16")),
               ["f16[64]"]),
    "of bf16": (lambda x: x.astype("bfloat16") * fnp.cos(fnp.arange(64, dtype="bfloat16")),
                ["bf16[64]"]),
    "of ints": (lambda x: x[:, fnp.cumsum(fnp.arange(64)) % 61], ["i32[64]"]),
    "of bools": (lambda x: fnp.where(fnp.cos(fnp.arange(64.0)) > 0, x, 0), ["bool[64]"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_table_is_kept_where_it_is_smallest(case):
    f, types = CASES[case]
    assert tables(f, X) == types
    agree(f, X, bound=1e-2 if "f16" in case else 1e-5)


NONE = {
    "masks": lambda x: fnp.where(fnp.arange(6)[:, None] >= fnp.arange(64), x, -1.0),
    "numbers": lambda x: x / fnp.sqrt(fnp.float32(64)),
    "results": lambda x: (x + 1, fnp.cos(fnp.arange(64.0))),
    "arguments": lambda x: fnp.cos(x),
    "closed over": lambda x, y=Array(X): x + fnp.cos(y),
    "long": lambda x: x.sum() * fnp.cos(fnp.arange(300_000.0)),
}


@pytest.mark.parametrize("case", NONE)
def test_what_is_cheap_or_long_or_not_known_is_no_table(case):
    assert tables(NONE[case], X) == []
    agree(NONE[case], X)


def test_they_come_behind_what_is_closed_over():
    y, z = Array(X), Array(2 * X)
    f = jit(lambda x: (x + y, hann(x) * z, z), device="cpu")
    for x in (X, 3 * X, X):
        got = f(x)
        np.testing.assert_allclose(got[0], x + X, 1e-6)
        np.testing.assert_allclose(got[1], np.asarray(hann(x)) * 2 * X, 1e-5, 1e-5)
        np.testing.assert_array_equal(got[2], 2 * X)


def test_there_is_room_for_so_many():
    def f(x):
        return sum(x[0, 0] * fnp.cos(fnp.arange(2.0 ** 18) * k) for k in range(1, 7))
    assert tables(f, X) == ["f32[262144]"] * 4


def test_the_roots_of_a_fourier_transform_are_tables():
    f = lambda x: fnp.fft.irfft(fnp.fft.rfft(x) * 2)
    text = show(f, X, stage="schedule", device="cpu")
    assert tables(f, X) and "cos(" not in text and "sin(" not in text
    agree(f, X)


def test_numbers_that_are_equal_are_computed_in_the_dtype():
    """1 / 121.0 beside an array of floats is no division of integers."""
    agree(lambda x: expi(x - 3), np.linspace(0.1, 12, 256), bound=1e-12)


def test_another_process_has_them_from_disk(tmp_path):
    script = """import numpy as np, fgrad, fgrad.numpy as fnp
f = fgrad.jit(lambda x: (x * fnp.cos(fnp.arange(5.0) ** 2), x.astype("bfloat16")
                         * fnp.exp(fnp.arange(20, dtype="bfloat16") / 20)[:5]), device="cpu")
for k in range(3):
    print(*[np.asarray(y, "f4").tolist() for y in f(np.full(5, k, "f"))])
import sys
print("fgrad.passes.tables" in sys.modules)"""
    env = os.environ | {"FGRAD_CACHE": str(tmp_path)}
    first, second = (subprocess.run([sys.executable, "-c", script], env=env, check=True, text=True,
                                    capture_output=True).stdout.splitlines() for _ in range(2))
    assert first[:3] == second[:3] and (first[3], second[3]) == ("True", "False")


def test_gradients_and_batches_have_them():
    f = fgrad.vmap(fgrad.grad(lambda x: (hann(x) ** 2).sum()))
    agree(f, X)
    assert tables(f, X) == ["f32[64]"]
    assert ArrayType("float32", (64,)) == jit(f)(X)[0].type
