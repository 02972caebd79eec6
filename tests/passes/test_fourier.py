"""Fourier transforms are compiled as stages of sums and products, to rounding the same."""

import warnings
from math import prod

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import jit, lax, vmap
from fgrad.errors import NOTICED, FgradWarning
from fgrad.gradient_check import check_grads
from fgrad.interpreters import stage
from fgrad.passes.fourier import is_faster, radices

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 27, 30, 32, 48, 49, 62, 64, 77, 100, 121, 125,
           256, 352, 360]
SIDES = [((), ()), ((3,), ()), ((2,), (5,)), ((), (20,))]


def drawn(shape, complex=True, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if complex else x


def assert_close(got, want, dtype):
    """To a few ulp of the largest element."""
    kind = np.result_type(dtype, "complex64") if np.iscomplexobj(want) else dtype
    assert got.shape == want.shape and got.dtype == kind
    error = np.abs(np.asarray(got) - want).max()
    assert error <= 8 * np.finfo(dtype).eps * max(np.abs(want).max(), 1e-30)


def calls(f, *args):
    """How often the compiled function calls NumPy."""
    return fgrad.show(f, *args, stage="schedule", device="cpu").count("\ncall ")


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("before,behind", SIDES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transforms_are_those_of_numpy(n, before, behind, dtype):
    if dtype == "float64" and (before or behind):
        before, behind = behind, before
    axis, double = len(before), np.complex128
    kind = np.result_type(dtype, "complex64")
    z = drawn((*before, n, *behind)).astype(kind)
    half = drawn((*before, n // 2 + 1, *behind)).astype(kind)
    for name, x in (("fft", z), ("ifft", z), ("rfft", z.real.copy())):
        got = jit(lambda x, name=name: getattr(fnp.fft, name)(x, axis=axis))(x)
        exact = x.astype(double) if name != "rfft" else x.astype("float64")
        assert_close(got, getattr(np.fft, name)(exact, axis=axis), dtype)
    got = jit(lambda x: fnp.fft.irfft(x, n, axis=axis))(half)
    assert_close(got, np.fft.irfft(half.astype(double), n, axis=axis), dtype)


def test_what_irfft_does_not_read_may_be_anything():
    half = drawn(5).astype("complex64")
    other = half.copy()
    other.imag[[0, 4]] = np.inf, np.nan
    f = jit(lambda x: fnp.fft.irfft(x, 8))
    np.testing.assert_array_equal(f(half), f(other))


@pytest.mark.parametrize("n", [1, 6, 9])
def test_derivatives(n):
    x, y = drawn((2, n), complex=False)
    u, v = drawn((2, n // 2 + 1), complex=False)
    check_grads(jit(lambda x, y: fnp.abs(fnp.fft.fft(x + 1j * y) * (1 + 2j))**2), (x, y), order=2)
    check_grads(jit(lambda x: fnp.real(fnp.fft.rfft(x)**2)), (x,), order=2)
    check_grads(jit(lambda u, v: fnp.sin(fnp.fft.irfft(u + 1j * v, n))), (u, v), order=2)


def test_only_transforms_with_large_primes_call_numpy():
    def of(n, rows=1):
        z = np.zeros((rows, n), "complex64")
        return calls(fnp.fft.fft, z)
    assert of(64) == of(4096) == of(100, 128) == of(7 * 32 * 1000) == of(61 * 240) == 0
    assert of(61) == of(67 * 64) == of(2 * 127, 64) == 1
    assert not is_faster((0, 8), axis=1) and is_faster((3, 5), axis=1, n=8)
    assert is_faster((1 << 29,), axis=0) and not is_faster((1 << 30,), axis=0)


def test_the_factors_of_the_stages():
    assert all(prod(radices(n, behind)) == n for behind in (1, 2)
               for n in (*range(1, 1100), 67 * 71 * 8, 1_000_003))
    assert [radices(n, 1) for n in (256, 1024, 96, 2048)] == [
        [4, 8, 8], [4, 4, 8, 8], [4, 3, 8], [8, 4, 4, 4, 4]]
    assert [radices(n) for n in (360, 61 * 32, 1, 2, 100, 48, 4096)] == [
        [8, 3, 3, 5], [8, 4, 61], [], [2], [5, 5, 4], [4, 3, 4], [4] * 6]


def diffused(u):
    """A hundred steps of the equation of heat with a wind, of which each goes to the spectrum."""
    k = fnp.fft.rfftfreq(u.shape[-1])
    factor = fnp.exp(-k * k - 0.3j * k)
    return lax.fori_loop(0, 100, lambda i, u: fnp.fft.irfft(
        fnp.fft.rfft(u) * factor, u.shape[-1]), u)


def test_transforms_in_a_loop():
    u = drawn(32, complex=False).astype("float32")
    want = diffused(fnp.array(u))
    np.testing.assert_allclose(jit(diffused)(u), want, atol=1e-5)
    assert calls(diffused, u) == 0
    many = drawn((3, 32), complex=False).astype("float32")
    for x, got in zip(many, jit(vmap(diffused))(many)):
        np.testing.assert_allclose(got, diffused(fnp.array(x)), atol=1e-5)


def test_what_a_transform_becomes_is_no_loop_of_the_users(monkeypatch):
    """Many transforms of one line gave the notice of a Python loop that was unrolled."""
    monkeypatch.setattr(stage, "UNROLLED", 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FgradWarning)
        jit(lambda x: fnp.fft.rfft(x))(fnp.ones(84))
    NOTICED.clear()
    with pytest.warns(FgradWarning, match="a Python loop was unrolled"):
        jit(lambda x: sum(x * k for k in range(30)))(fnp.ones(3))
