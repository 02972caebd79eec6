"""Memory at lines of the cache: of any shape, dtype and layout, and who has it."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import aligned
from fgrad.bf16 import BF16
from fgrad.core import memory_of
from fgrad.jitted import jit


def at_a_line(x):
    return x.__array_interface__["data"][0] % aligned.LINE == 0


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float32, np.complex128])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (7, 5), (129, 257), (3, 1, 40001)])
def test_copies_are_equal_contiguous_and_writable(dtype, shape):
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    for given in (x, np.asfortranarray(x), x[..., ::-1]) if shape else (x,):
        y = aligned.copied(given)
        assert y.flags.c_contiguous and y.flags.writeable and not np.shares_memory(y, given)
        assert (y.dtype, y.shape) == (x.dtype, shape)
        np.testing.assert_array_equal(y, given)
        assert at_a_line(y) or y.nbytes < aligned.LEAST
        assert at_a_line(aligned.copied(given, least=0)) or not y.nbytes


@pytest.mark.parametrize("size", [3, 20000])
def test_nobody_writes_to_an_array_of_fgrad(size):
    double = jit(lambda x: x * 2)
    x = fnp.array(np.ones(size, np.float32))
    for y in (x, *[double(x) for _ in range(4)]):           # the later ones are native calls
        with pytest.raises(ValueError, match="WRITEABLE"):
            np.asarray(y).flags.writeable = True


@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_large_arrays_and_the_results_of_compiled_functions_begin_at_a_line(dtype):
    for size in (17001, 20000, 123457):
        x = fnp.array(np.ones(size, np.float32)).astype(dtype)
        double = jit(lambda x: x * 2)
        made = [double(x) for _ in range(4)]
        if dtype is np.float32:
            made += [x, fnp.array(np.ones((size, 2), np.float32)[:, 0])]
        for y in made:
            assert at_a_line(memory_of(y)), size
        np.testing.assert_array_equal(np.asarray(made[1].astype("float32")), 2)
