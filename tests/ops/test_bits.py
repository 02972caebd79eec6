"""The bits of numbers as other numbers: as by NumPy's view, mapped, compiled; what is refused."""

import numpy as np
import pytest

import fgrad
from fgrad import lax
from fgrad.errors import DtypeError, ShapeError

X = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")


@pytest.mark.parametrize("dtype", ["uint32", "int32", "float32", "uint8", "float16"])
@pytest.mark.parametrize("x", [X, X[0, 0], X[:0], X[:, :1]], ids=lambda x: str(x.shape))
def test_bits_are_those_of_numpys_view_and_come_back(x, dtype):
    want = np.frombuffer(x.tobytes(), dtype)
    for function in (lax.bitcast_convert_type, fgrad.jit(lax.bitcast_convert_type,
                                                         static_argnums=1)):
        got = function(x, dtype)
        assert got.shape[:x.ndim] == x.shape and got.dtype == dtype
        assert np.asarray(got).tobytes() == want.tobytes()
        np.testing.assert_array_equal(function(got, "float32"), x)


def test_bits_of_bfloat16_are_the_upper_half_of_those_of_float32():
    words = np.arange(1 << 16, dtype="uint16")
    number = ~np.isnan((words.astype("uint32") << 16).view("float32"))
    for function in (lax.bitcast_convert_type, fgrad.jit(lax.bitcast_convert_type,
                                                         static_argnums=1)):
        found = function(words, "bfloat16")
        wide = np.asarray(found.astype("float32"))
        assert found.dtype == "bfloat16" and (np.isnan(wide) == ~number).all()
        np.testing.assert_array_equal(wide.view("uint32")[number] >> 16, words[number])
        np.testing.assert_array_equal(np.asarray(function(found, "uint16"))[number], words[number])
        parts = function(found, "uint8")
        assert parts.shape == (1 << 16, 2)
        np.testing.assert_array_equal(np.asarray(function(parts, "bfloat16"))[number],
                                      np.asarray(found)[number])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_mapped_bits_are_those_of_each_row(axis, dtype):
    got = fgrad.vmap(lambda row: lax.bitcast_convert_type(row, dtype), in_axes=axis)(X)
    rows = np.moveaxis(X, axis, 0)
    np.testing.assert_array_equal(got, [lax.bitcast_convert_type(row, dtype) for row in rows])
    back = fgrad.vmap(lambda row: lax.bitcast_convert_type(row, "float32"))(got)
    np.testing.assert_array_equal(back, rows)


def test_the_derivative_of_bits_is_zero():
    def f(x):
        return lax.bitcast_convert_type(lax.bitcast_convert_type(x, "int32"), "float32") * x
    assert fgrad.grad(f)(np.float32(3.0)).item() == 3.0


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="4 elements"):
        lax.bitcast_convert_type(np.zeros((4, 3), "uint8"), "float32")
    for x, dtype in ((X, "bool"), (X > 0, "int8"), (X, "complex64")):
        with pytest.raises(DtypeError, match="bits"):
            lax.bitcast_convert_type(x, dtype)


WORDS = np.array([0, 1, 0x80000000, 0x7F800000, 0x7FC00001, 0xFF8FFFFF, 0x3F800000, 12345],
                 "uint32")


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "int16", "uint64", "float64"])
def test_bits_are_read_within_a_kernel(dtype):
    """They were a step of their own, on the host: denormals and NaNs of all kinds come through."""
    words = WORDS.reshape(4, 2)

    def f(x):
        return lax.bitcast_convert_type(lax.bitcast_convert_type(x ^ 5, dtype), "uint32") + 1
    assert np.array_equal(fgrad.jit(f)(words), (words ^ 5) + 1)
    assert "call" not in fgrad.show(f, words, stage="loops")
    assert np.array_equal(f(words), (words ^ 5) + 1)


def test_the_bits_of_floats_make_random_numbers_in_a_loop():
    def step(s, _):
        s = s * np.uint32(1664525) + np.uint32(1013904223)
        return s, lax.bitcast_convert_type((s >> 9) | np.uint32(0x3F800000), "float32") - 1.0
    compiled = fgrad.jit(lambda s: lax.scan(step, s, None, length=5))
    with fgrad.disable_jit():
        want = lax.scan(step, fgrad.numpy.asarray(WORDS), None, length=5)
    for got, x in zip(compiled(WORDS), want):
        np.testing.assert_array_equal(got, x)
    assert 0 <= np.min(want[1]) and np.max(want[1]) < 1
