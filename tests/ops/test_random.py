"""Threefry streams against values that jax 0.10 printed (jax_threefry_partitionable=True)."""

import numpy as np
import pytest

from fgrad import ops
from fgrad.core import Array
from fgrad.errors import RandomKeyError

KEY = Array(np.array([0, 42], np.uint32))            # jax.random.key(42)

JAX_BITS = [
    ('uint8', (5,), [162, 217, 249, 215, 21]),
    ('uint16', (3,), [5026, 12505, 63993]),
    ('uint32', (2, 2), [[2098992034, 2919706841], [2646866425, 2409546199]]),
    ('uint64', (3,), [7871734211187709741, 276886910877598708, 10591095138341673235]),
    ('uint32', (), 2098992034),
]
JAX_SPLIT = [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]]
JAX_FOLD_IN_7 = [2547012911, 1371500959]


@pytest.mark.parametrize("dtype, shape, want", JAX_BITS)
def test_random_bits_are_those_of_jax(dtype, shape, want):
    got = ops.random_bits(KEY, shape=shape, dtype=np.dtype(dtype))
    assert got.dtype == dtype and got.np.tolist() == want


def test_split_and_fold_in_are_those_of_jax():
    assert ops.random_split(KEY, shape=(3,)).np.tolist() == JAX_SPLIT
    assert ops.random_fold_in(KEY, Array(np.uint32(7))).np.tolist() == JAX_FOLD_IN_7


def test_the_counter_continues_beyond_32_bits():
    x0, x1 = ops.random.hashed(KEY.np, np.array([0, 2**32], np.uint64))
    assert x0[0] != x0[1] and x1[0] != x1[1]


def test_long_results_continue_over_blocks():
    n = ops.random.BLOCK
    whole = ops.random_bits(KEY, shape=(2 * n + 1,)).np
    x0, x1 = ops.random.hashed(KEY.np, np.array([0, n - 1, n, 2 * n], np.uint64))
    np.testing.assert_array_equal(whole[[0, n - 1, n, 2 * n]], x0 ^ x1)


def test_a_float_is_no_key():
    with pytest.raises(RandomKeyError, match="random_bits needs a random key"):
        ops.random_bits(Array(np.ones(2)), shape=())
