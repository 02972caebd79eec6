"""fgrad.numpy.fft beside numpy.fft: values, dtypes, derivatives, maps, compiled code."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ArgumentError, DeviceError, ShapeError
from fgrad.gradient_check import check_grads

NORMS = [None, "backward", "ortho", "forward"]
RNG = np.random.default_rng(0)


def numbers(shape, dtype="complex128"):
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape)).astype(dtype) if "c" in dtype else x.astype(dtype)


def assert_close(got, want):
    """Equal in dtype, and in value to a few √log n ulp of the largest element."""
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.size:
        scale = max(np.abs(want).max(), 1e-30)
        np.testing.assert_array_less(np.abs(np.asarray(got) - want),
                                     8 * np.finfo(want.dtype).eps * scale)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", NORMS)
def test_one_axis_is_that_of_numpy(name, norm):
    ours, theirs = getattr(fnp.fft, name), getattr(np.fft, name)
    real = name in ("rfft", "ihfft")
    for dtype in ("float32", "float64") if real else ("complex64", "complex128", "float32"):
        for size in (2, 3, 7, 16, 30, 97):
            x = numbers(size, dtype)
            for n in (None, 1, 5, size + 3):
                assert_close(ours(x, n, norm=norm), theirs(x, n, norm=norm))
        x = numbers((3, 4, 2), dtype)
        for axis in (0, 1, -1):
            assert_close(ours(x, axis=axis, norm=norm), theirs(x, axis=axis, norm=norm))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2",
                                  "irfft2"])
def test_several_axes_are_those_of_numpy(name):
    ours, theirs = getattr(fnp.fft, name), getattr(np.fft, name)
    x = numbers((3, 4, 5), "float64" if name.startswith("r") else "complex128")
    for given in ({}, {"axes": (0, 1)}, {"axes": (2, 0), "norm": "ortho"},
                  {"s": (4, 3), "axes": (1, 2)}, {"s": (2, -1), "axes": (0, 2)}):
        assert_close(ours(x, **given), theirs(x, **given))


def test_frequencies_and_shifts_are_those_of_numpy():
    for n in (1, 2, 5, 8):
        for name in ("fftfreq", "rfftfreq"):
            got = getattr(fnp.fft, name)(n, 0.1, dtype="float64")
            np.testing.assert_allclose(got, getattr(np.fft, name)(n, 0.1), rtol=1e-15)
    assert fnp.fft.fftfreq(4).dtype == "float32"
    x = numbers((4, 5), "float32")
    for axes in (None, 0, -1, (0, 1)):
        for name in ("fftshift", "ifftshift"):
            got = getattr(fnp.fft, name)(x, axes)
            np.testing.assert_array_equal(got, getattr(np.fft, name)(x, axes))


def test_integers_and_f16_are_transformed_in_f32():
    assert fnp.fft.fft(np.arange(4)).dtype == "complex64"
    assert fnp.fft.rfft(fnp.ones(4, "float16")).dtype == "complex64"


def spectrum(x):
    """A real function of real numbers through the transforms."""
    half = fnp.fft.rfft(x, axis=0)
    whole = fnp.fft.fft2(x) * fnp.fft.ifftn(x, norm="ortho")
    back = fnp.fft.irfft(half * (1 + 2j), x.shape[0], axis=0)
    return fnp.sum(fnp.abs(half) ** 2) + fnp.sum(whole.real * whole.imag) + fnp.sum(back ** 3)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 4), (6, 2)])
def test_derivatives_agree_with_finite_differences(shape):
    check_grads(spectrum, (numbers(shape, "float64"),), order=2)


def test_compiled_and_mapped_they_are_the_same():
    x = numbers((3, 6, 4), "float64")
    slope = fgrad.grad(spectrum)
    want = np.stack([slope(row) for row in x])
    for made in (fgrad.vmap(slope), fgrad.jit(fgrad.vmap(slope)), fgrad.vmap(fgrad.jit(slope))):
        np.testing.assert_allclose(made(x), want, rtol=1e-10, atol=1e-10)


def test_on_a_device_they_are_the_same():
    x = numbers((6, 4), "float32")
    try:
        got = fgrad.jit(fgrad.grad(spectrum), device="opencl")(x)
    except DeviceError as error:
        pytest.skip(str(error))
    np.testing.assert_allclose(got, fgrad.grad(spectrum)(x), rtol=1e-4, atol=1e-4)


def test_the_circular_convolution_is_a_product_of_transforms():
    x, y = numbers(9, "float64"), numbers(9, "float64")
    got = fnp.fft.irfft(fnp.fft.rfft(x) * fnp.fft.rfft(y), 9)
    want = [sum(x[m] * y[(k - m) % 9] for m in range(9)) for k in range(9)]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_the_functions_of_numpy_trace():
    x = numbers(6, "float64")
    energy = lambda v: fnp.sum(fnp.abs(np.fft.rfft(v)) ** 2)
    np.testing.assert_allclose(fgrad.grad(energy)(x), fgrad.jit(fgrad.grad(energy))(x), rtol=1e-12)
    check_grads(energy, (x,))
    assert np.fft.fftshift(fnp.arange(3)).tolist() == [2, 0, 1]


def test_what_cannot_be_transformed_is_refused():
    for call in (lambda: fnp.fft.fft(fnp.ones(0)), lambda: fnp.fft.fft(fnp.ones(3), 0),
                 lambda: fnp.fft.irfft(fnp.ones(1)), lambda: fnp.fft.rfftn(fnp.ones(3), axes=()),
                 lambda: fnp.fft.fftn(fnp.ones((2, 2)), s=(2,), axes=(0, 1))):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(ArgumentError, match="norm"):
        fnp.fft.fft(fnp.ones(3), norm="none")
    with pytest.raises(ArgumentError, match="real"):
        fnp.fft.rfft(fnp.ones(3) * 1j)
