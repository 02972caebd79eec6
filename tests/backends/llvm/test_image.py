"""Images: what a second process takes from disk instead of compiling."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given

import fgrad.numpy as fnp
from fgrad import compile as driver
from fgrad import lax
from fgrad.backends import base, cache
from fgrad.core import Array
from fgrad.errors import DonationError
from fgrad.jitted import jit
from fgrad.transforms import grad
from tests.strategies import examples, programs

PROGRAM = """
import sys, numpy as np, fgrad, fgrad.numpy as fnp
from fgrad import lax
def loss(w, x):
    return (fnp.tanh(x @ w) ** 2).sum() + lax.fori_loop(0, 3, lambda i, s: s * w[0, 0], 1.0)
f = fgrad.jit(fgrad.value_and_grad(loss))
y, g = f(np.ones((3, 2), "f"), np.ones((4, 3), "f"))
print(*(name in sys.modules for name in ("fgrad.passes.pipeline", "fgrad.backends.llvm.emit",
                                         "fgrad.backends.llvm.codegen", "llvmlite")))
print(float(y), g.tolist())
"""


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path / "cache"))
    driver.clear_caches()
    yield tmp_path / "cache"
    driver.clear_caches()


def plans(monkeypatch):
    """A list that gets an element for every Plan that is made from now on."""
    found, plan = [], driver.passes.plan
    monkeypatch.setattr(driver.passes, "plan",
                        lambda *a, **k: found.append(1) or plan(*a, **k), raising=False)
    return found


def run(disk, **env):
    env = {**os.environ, "FGRAD_CACHE": str(disk), **env}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True,
                          check=True).stdout.splitlines()


def test_a_second_process_neither_plans_nor_writes_code_nor_imports_llvm(disk):
    first, second = run(disk), run(disk)
    assert first[0] == "True True True True" and second[0] == "False False False False"
    assert first[1] == second[1]


def test_another_number_of_threads_is_another_image(disk):
    run(disk, FGRAD_THREADS="1")
    assert run(disk, FGRAD_THREADS="3")[0].startswith("True True")


@examples(60)
@given(programs())
def test_a_kept_program_gives_what_the_compiled_gave(p):
    values = [Array(x) for x in p.arrays]
    driver.clear_caches()
    first = jit(p.function)(*values)
    driver.clear_caches()
    second = jit(p.function)(*values)
    for a, b in zip(leaves(first), leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)


def leaves(tree):
    return [np.asarray(x) for x in (tree if isinstance(tree, (tuple, list)) else [tree])]


def again(function, *args):
    """(the result, the result of the same function traced and looked up anew)"""
    first = function()(*args)
    driver.clear_caches()
    return first, function()(*args)


@pytest.mark.parametrize("function", [
    lambda: jit(lambda x: (x, x + 1, x)),                               # an argument is a result
    lambda: jit(lambda x: (fnp.array([1.0, 2.0, 4.0]), x[:0], x.sum())),
    lambda: jit(lambda x: lax.scan(lambda c, y: (c * y, c), 1.0, x)),
    lambda: jit(grad(lambda x: (fnp.exp(1j * x).real ** 2).sum())),
    lambda: jit(lambda x: x.astype("bfloat16") * 2),
    lambda: jit(lambda x: x * np.arange(3, dtype="f") + np.arange(3, dtype="f"))])
def test_images_of_every_form(disk, monkeypatch, function):
    made = plans(monkeypatch)
    first, second = again(function, fnp.array([1.0, 2.0, 3.0]))
    assert len(made) == 1
    for a, b in zip(leaves(first), leaves(second), strict=True):
        np.testing.assert_array_equal(a.view("u2") if a.dtype.kind == "V" else a,
                                      b.view("u2") if b.dtype.kind == "V" else b)


def test_a_donated_argument_is_taken_over_from_the_image_too(disk, monkeypatch):
    made = plans(monkeypatch)
    for _ in range(2):
        driver.clear_caches()
        x = fnp.ones(1000)
        y = jit(lambda x: x * 2, donate_argnums=0)(x)
        np.testing.assert_array_equal(y, np.full(1000, 2.0))
        with pytest.raises(DonationError):
            x + 1
    assert len(made) == 1


def test_what_numpy_runs_is_compiled_in_every_process(disk, monkeypatch):
    made = plans(monkeypatch)
    x = fnp.array([[3.0, 1.0], [1.0, 2.0]])
    first, second = again(lambda: jit(fnp.linalg.pinv), x)
    assert len(made) == 2
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("which", ["image", "object"])
def test_a_damaged_entry_is_made_anew(disk, monkeypatch, which):
    made = plans(monkeypatch)
    x = fnp.arange(5.0)
    first = jit(lambda x: fnp.sin(x) + 1)(x)
    for file in disk.iterdir():
        data = file.read_bytes()
        is_object = data[cache.HEADER.size:].startswith(b"\x7fELF")
        if is_object == (which == "object"):
            file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    driver.clear_caches()
    np.testing.assert_array_equal(jit(lambda x: fnp.sin(x) + 1)(x), first)
    assert len(made) == 2


def test_a_backend_keeps_nothing_unless_it_says_so():
    assert base.Backend().kept(("text",)) is None


@pytest.mark.parametrize("n", [1000, 1 << 19, 3 << 19])
def test_temporaries_of_any_size_are_used_again(disk, n):
    f = jit(lambda x: fnp.sort(fnp.cumsum(fnp.sort(x * 2)) - x))     # NumPy runs the sorting
    x = np.arange(n, dtype="f")[::-1] / n
    want = np.sort(np.cumsum(np.sort(x * 2), dtype="f") - x)
    for _ in range(3):
        np.testing.assert_allclose(f(x), want, rtol=1e-3, atol=1e-2)
