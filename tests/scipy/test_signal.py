"""fgrad.scipy.signal beside sums that are written out."""

import numpy as np
import pytest

import fgrad
from fgrad.errors import ArgumentError, ShapeError
from fgrad.scipy import signal

RNG = np.random.default_rng(0)


def written_out(x, y):
    out = np.zeros([n + m - 1 for n, m in zip(x.shape, y.shape)], np.result_type(x, y))
    for i in np.ndindex(y.shape):
        out[tuple(slice(k, k + n) for k, n in zip(i, x.shape))] += y[i] * x
    return out


@pytest.mark.parametrize("a, b", [((5,), (3,)), ((1,), (1,)), ((3,), (8,)), ((4, 5), (2, 3)),
                                  ((2, 3, 4), (1, 3, 2))])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_the_convolution_by_transforms_is_the_sum(a, b, dtype):
    x, y = RNG.standard_normal(a).astype(dtype), RNG.standard_normal(b).astype(dtype)
    want = written_out(x, y)
    for made in (signal.fftconvolve, fgrad.jit(signal.fftconvolve)):
        got = made(x, y)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, want, atol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("mode", ["same", "valid"])
def test_modes_are_those_of_numpy(mode):
    for n, m in ((7, 3), (7, 4), (6, 6)):
        x, y = RNG.standard_normal(n), RNG.standard_normal(m)
        np.testing.assert_allclose(signal.fftconvolve(x, y, mode), np.convolve(x, y, mode),
                                   atol=1e-12)


def test_it_has_derivatives():
    x, y = RNG.standard_normal((3, 4)), RNG.standard_normal((2, 2))
    fgrad.check_grads(lambda x, y: signal.fftconvolve(x, y, "same"), (x, y))


def test_what_does_not_fit_is_refused():
    for args in ((np.ones(3), np.ones((2, 2))), (np.ones(0), np.ones(2)),
                 (np.ones((2, 5)), np.ones((3, 2)), "valid")):
        with pytest.raises(ShapeError):
            signal.fftconvolve(*args)
    with pytest.raises(ArgumentError, match="mode"):
        signal.fftconvolve(np.ones(3), np.ones(2), "half")


@pytest.mark.parametrize("a, b", [((5,), (3,)), ((1,), (1,)), ((3,), (8,)), ((), ()),
                                  ((4, 5), (2, 3)), ((2, 3, 4), (1, 3, 2))])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_the_direct_convolution_is_the_one_by_transforms(a, b, dtype):
    x, y = RNG.standard_normal(a).astype(dtype), RNG.standard_normal(b).astype(dtype)
    for mode in ("full", "same", "valid"):
        want = signal.convolve(x, y, mode, "fft")
        got = signal.convolve(x, y, mode, "direct")
        assert got.dtype == dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=1e-5 if dtype == "float32" else 1e-12)
    np.testing.assert_allclose(signal.convolve(x, y, method="direct"), written_out(x, y), atol=1e-5)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_the_correlation_is_that_of_numpy(mode):
    for n, m in ((7, 3), (7, 4), (6, 6)):
        x, y = [RNG.standard_normal(k) + 1j * RNG.standard_normal(k) for k in (n, m)]
        want = np.convolve(x, y[::-1].conj(), mode)
        np.testing.assert_allclose(signal.correlate(x, y, mode), want, atol=1e-12)


def test_a_convolution_of_matrices_takes_matrices_only():
    x, y = RNG.standard_normal((4, 5)), RNG.standard_normal((2, 2))
    np.testing.assert_allclose(signal.convolve2d(x, y), written_out(x, y), atol=1e-12)
    np.testing.assert_allclose(signal.correlate2d(x, y), written_out(x, y[::-1, ::-1]), atol=1e-12)
    np.testing.assert_allclose(signal.correlate2d(x, y, "same"),      # as SciPy: one place later
                               written_out(x, y[::-1, ::-1])[1:5, 1:6], atol=1e-12)
    for function in (signal.convolve2d, signal.correlate2d):
        with pytest.raises(ShapeError, match="matrices"):
            function(x[0], y[0])


def test_long_signals_are_convolved_by_transforms_unless_told_otherwise():
    assert "fft" in str(fgrad.make_ir(signal.convolve)(np.ones(600), np.ones(600)))
    direct = fgrad.make_ir(lambda x: signal.convolve(x, x, method="direct"))(np.ones(600))
    assert "fft" not in str(direct)
    with pytest.raises(ArgumentError, match="method"):
        signal.convolve(np.ones(3), np.ones(2), method="slow")


def test_the_direct_convolution_has_derivatives_and_maps():
    x, y = RNG.standard_normal((3, 4)), RNG.standard_normal((2, 2))
    fgrad.check_grads(lambda x, y: signal.correlate(x, y, "same"), (x, y))
    mapped = fgrad.vmap(lambda row: signal.convolve(row, y[0]))(x)
    np.testing.assert_allclose(mapped, [np.convolve(row, y[0]) for row in x], atol=1e-12)
