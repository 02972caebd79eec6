"""Floats as integers, in vectors and one by one: towards zero, saturating, NaN as 0; f16."""

import math
import re

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.backends.llvm import instructions

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


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16"])
def test_lanes_that_are_gathered_are_converted_at_once(dtype):
    """Each bool went into a mask register, and each f16 was widened, alone: four times the time."""
    rng = np.random.default_rng(0)
    x, i = fnp.array(rng.integers(0, 2, 1000)).astype(dtype), rng.integers(0, 1000, 1000, "int32")
    f = lambda x, i: fnp.where(x[i ^ 1] > 0, 2, 3) + i
    text = fgrad.show(f, x, i, stage="llvm")
    of_lanes = re.findall(r"insertelement (<\d+ x \w+>)", text)
    assert of_lanes and not any(t.endswith((" i1>", " float>")) for t in of_lanes)
    want = np.where(np.asarray(x)[i ^ 1] > 0, 2, 3) + i
    np.testing.assert_array_equal(fgrad.jit(f)(x, i), want)


@pytest.fixture
def old_processor(monkeypatch):
    """One of x86 from before 2012, without instructions for f16."""
    old = instructions.HOST._replace(triple="x86_64-unknown-linux-gnu", features="+sse4.2")
    assert not old.converts_f16
    monkeypatch.setattr(instructions, "HOST", old)


def test_every_f16_is_widened_without_an_instruction_for_it(old_processor):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    found = np.asarray(fgrad.jit(lambda x: x.astype("float32"))(halves))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, halves.astype(np.float32))
    assert "fpext" not in fgrad.show(lambda x: x.astype("float32"), halves, stage="llvm")


def test_f32_is_narrowed_without_an_instruction_for_it(old_processor):
    """Those in the middle of two f16 and beside it, too large and too small ones, and any."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = np.append((halves[:-1] + halves[1:]) / 2, [np.float32(65520), 1e-8, np.inf, np.nan])
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    near = [np.nextafter(middles, np.float32(to)) for to in (-np.inf, np.inf)]
    with np.errstate(all="ignore"):
        x = np.concatenate([halves, middles, *near, bits.view(np.float32)]).astype(np.float32)
        x = np.concatenate([x, -x])
        want = x.astype(np.float16)
    found = np.asarray(fgrad.jit(lambda x: x.astype("float16"))(x))
    np.testing.assert_array_equal(found, want)
    zeros = want == 0
    assert (np.signbit(found) == np.signbit(want))[zeros].all()
