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
