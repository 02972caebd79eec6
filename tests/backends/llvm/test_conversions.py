"""Floats as integers, in vectors and one by one: towards zero, saturating, NaN as 0."""

import math

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def values(kind, integer):
    """What lies around the integers' ends and around zero, and everywhere between."""
    info = np.iinfo(integer)
    ends = [float(x) * sign for x in (info.max, info.max + 1, info.min) for sign in (1, -1)]
    edges = np.array([*ends, 0, 0.5, 1, 1.5, 2.5, 127.5, 255.5, 1e9, 1e30], kind)
    near = [np.nextafter(edges, kind(d * np.inf)) for d in (-1, 1)]
    random = np.random.default_rng(0).normal(size=300) * 10.0 ** np.arange(300) ** 0.5
    found = np.concatenate([edges, *near, random.astype(kind)])
    return np.concatenate([found, -found, np.array([math.inf, -math.inf, math.nan], kind)])


def expected(x, integer):
    """The integer of a float, by Python."""
    info = np.iinfo(integer)
    if math.isnan(x):
        return 0
    return min(max(int(x) if math.isfinite(x) else x, info.min), info.max)


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_vectors_are_converted_as_one_by_one(kind, integer):
    x = values(np.float32, integer) if kind is np.float16 else values(kind, integer)
    with np.errstate(over="ignore"):
        x = x.astype(kind)
    want = np.array([expected(float(v), integer) for v in x], object)
    convert = fgrad.jit(lambda x: x.astype(integer))
    found = np.asarray(convert(fnp.array(x)))
    assert found.dtype == integer and (found == want.astype(integer)).all()
    for k in range(0, len(x), 7):
        assert int(convert(fnp.array(x[k]))) == want[k]


def test_no_lane_is_converted_alone():
    f = fgrad.jit(lambda x: x.astype("uint8"))
    text = fgrad.show(f, fnp.ones(1000), stage="llvm")
    assert "fptosi <" in text and ".sat." not in text
