"""fnp.float32 and its kin: names of dtypes that make arrays, of traced values too."""

import copy
import pickle

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp

NAMES = ("bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
         "complex64 complex128").split()


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_makes_arrays_under_every_transformation(name):
    make, x = getattr(fnp, name), fnp.array([0.0, 1.0, 2.5])
    want = x.astype(make)
    for run in (make, fgrad.jit(make), fgrad.vmap(make)):
        got = run(x)
        assert got.dtype == make and got.dtype == want.dtype
        np.testing.assert_array_equal(got.astype("complex64"), want.astype("complex64"))
    assert make().shape == () and make().item() == 0
    assert make(1).dtype == make and make([1, 0]).tolist() == [1, 0]


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_is_equal_to_its_other_names(name):
    ours = getattr(fnp, name)
    others = [ours.dtype, ours.dtype.name] if name == "bfloat16" else \
        [ours.dtype, ours.dtype.name, getattr(np, name), copy.copy(ours)]
    for other in [*others, pickle.loads(pickle.dumps(ours))]:
        assert ours == other and other == ours and not ours != other
    assert ours != getattr(fnp, NAMES[NAMES.index(name) - 1])
    assert fnp.zeros(2, ours).dtype == ours and repr(ours) == ours.dtype.name
    assert {ours: 1}[getattr(fnp, name)] == 1


def test_numpy_takes_them_for_dtypes():
    assert np.zeros(2, fnp.int16).dtype == np.int16 and np.dtype(fnp.float64) == np.float64
    assert np.issubdtype(fnp.float32, np.floating) and fnp.issubdtype(np.int8, fnp.int8)
    assert fnp.issubdtype(fnp.bfloat16, np.floating) and np.finfo(fnp.float32).eps > 0
    assert fnp.isdtype(fnp.bool_, "bool") and fnp.finfo(fnp.bfloat16).bits == 16
    assert {np.float32: 1}[fnp.float32] == 1


def test_a_derivative_goes_through_a_dtype():
    assert fgrad.grad(lambda x: fnp.float32(fnp.float16(x) * 2))(3.0) == 2.0
    assert fgrad.jit(lambda x: fnp.int32(x > 1).sum())(fnp.arange(4)) == 2


def test_no_name_of_a_dtype_is_none():
    assert fnp.float64 != None and fnp.float32 != None                               # noqa: E711
    assert fnp.float64 == "float64" and fnp.float64 == np.float64
