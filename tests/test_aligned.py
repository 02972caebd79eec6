"""Memory at lines of the cache: of any shape, dtype and layout, and who has it."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import aligned
from fgrad.bf16 import BF16
from fgrad.core import array_of, memory_of
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


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128])
@pytest.mark.parametrize("shape, order", [
    ((512, 512), (1, 0)), ((300, 700), (1, 0)), ((3, 200, 256), (0, 2, 1)), ((512, 1), (1, 0)),
    ((40, 30, 70), (2, 1, 0)), ((70, 2, 512), (1, 2, 0)), ((1000, 1, 128), (2, 1, 0))])
def test_arrays_in_another_order_are_copied_whole(dtype, shape, order):
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype).transpose(order)
    for given in (x, x[::-1], x[..., ::-1], x[..., 3:]):
        np.testing.assert_array_equal(aligned.copied(given), given)
        out = np.zeros(shape, dtype).transpose(order)[..., :given.shape[-1]]
        aligned.fill(out, np.ascontiguousarray(given))
        np.testing.assert_array_equal(out, given)


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


# ---------------------------------------------------------------------------- other orders

def numbers(dtype):
    return fnp.asarray(np.arange(24.0).reshape(2, 3, 4), dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int8", "bool"])
@pytest.mark.parametrize("other", [
    lambda x: x.T, lambda x: x[:, ::2, 1:], lambda x: x[::-1], lambda x: x.T[None],
    lambda x: x.swapaxes(0, 1)])
def test_what_lies_in_another_order_is_copied_once(dtype, other):
    x = numbers(dtype)
    y, f = array_of(other(memory_of(x)), x.dtype), fgrad.jit(lambda a: (a, a + a))
    want = np.array(y), np.array(y + y)
    assert not memory_of(y).flags.c_contiguous
    for _ in range(3):
        for got, right in zip(f(y), want):
            np.testing.assert_array_equal(np.array(got), right)
        assert memory_of(y).flags.c_contiguous and not memory_of(y).flags.writeable
    np.testing.assert_array_equal(np.array(x), np.array(numbers(dtype)))


def test_what_repeats_elements_stays_small():
    y = fgrad.core.Array(np.broadcast_to(np.float32(3), (1000, 1000)))
    assert fgrad.jit(fnp.sum)(y) == 3e6
    assert memory_of(y).strides == (0, 0)


def test_an_array_in_another_order_may_be_donated():
    given = np.arange(12.0, dtype="float32").reshape(3, 4)
    x = fnp.asarray(given)
    y = x.T
    out = fgrad.jit(lambda a: a + 1, donate_argnums=0)(y)
    np.testing.assert_array_equal(np.array(out), given.T + 1)
    np.testing.assert_array_equal(np.array(x), np.arange(12.0).reshape(3, 4))
