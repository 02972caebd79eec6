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
    for x, dtype in ((X, "bool"), (X > 0, "int8"), (X, "complex64"), (X, "bfloat16")):
        with pytest.raises(DtypeError, match="bits"):
            lax.bitcast_convert_type(x, dtype)
