"""Compiled code writes its results, and not one byte around them."""

import ctypes

import numpy as np
import pytest
from hypothesis import given

from fgrad import compile as driver
from fgrad.core import Array
from fgrad.interpreters.stage import stage

from tests.strategies import WIDE, examples, programs

PAD, MARK = 64, 0xAB
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64",
          "bool")


def guarded(type):
    """(block of marked bytes, the array of this type in its middle)."""
    block = np.full(type.nbytes + 3 * PAD, MARK, np.uint8)
    start = PAD + -block.ctypes.data % PAD
    return block, block[start:start + type.nbytes].view(type.dtype).reshape(type.shape)


def written_around(function, arrays):
    """The results whose surroundings were written to, when the function runs compiled."""
    values = [Array(a) for a in arrays]
    compiled = driver.compiled(stage(function, [v.type for v in values]).program, "cpu")
    run = compiled.executable
    if run.image.overwritten or run.calls:
        return []
    made = [guarded(t) for t in run.made]
    given = [np.array(v.np, order="C") for v in values]
    held = [np.array(c.np, order="C") for c in compiled.constants]
    data = [*given, *[a for _, a in made], run.table.words, *held, *run.image.tables]
    pointers = (ctypes.c_void_p * len(data))(*[a.ctypes.data for a in data])
    at = ctypes.addressof(pointers)
    run.run(at, at + 8 * (len(given) + len(made)))
    return [str(t) for t, (block, a) in zip(run.made, made) if around(block, a) != {MARK}]


def around(block, array):
    """The bytes in front of the array and behind it."""
    start = array.ctypes.data - block.ctypes.data
    return {*block[:start].tolist(), *block[start + array.nbytes:].tolist()}


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 9, 17, 18, 31, 33, 34, 65])
def test_conversions_write_their_elements_only(n):
    arrays = [np.ones(n, t) for t in DTYPES]
    assert not written_around(lambda *xs: [x.astype(t) for x in xs for t in DTYPES], arrays)


@examples(150)
@given(programs(dtypes=("float32", "float16", "int32", "bool", "float64"), host=False))
def test_random_programs_write_their_results_only(p):
    assert not written_around(p.function, p.arrays)


@examples(30)
@given(programs(sizes=WIDE, most=20_000, host=False))
def test_random_programs_over_wider_arrays_write_their_results_only(p):
    assert not written_around(p.function, p.arrays)
