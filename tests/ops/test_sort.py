"""Sorting: stable, several keys, NaN last, and tangents that move along."""

import numpy as np

from fgrad import ops
from fgrad.core import Array
from fgrad.interpreters.backward import pullback


def A(values, dtype=np.float64):
    return Array(np.asarray(values, dtype))


def test_equal_keys_keep_their_order():
    keys, places = ops.sort(A([1, 0, 1, 0], np.int32), A([0, 1, 2, 3], np.int32), axis=0, keys=1)
    assert keys.np.tolist() == [0, 0, 1, 1] and places.np.tolist() == [1, 3, 0, 2]


def test_the_first_key_decides_first():
    a, b = ops.sort(A([1, 0, 1, 0], np.int32), A([5.0, 8.0, 3.0, 2.0]), axis=0, keys=2)
    assert a.np.tolist() == [0, 0, 1, 1] and b.np.tolist() == [2, 8, 3, 5]


def test_nan_is_last():
    (out,) = ops.sort(A([np.nan, 1.0, -np.inf]), axis=0, keys=1)
    np.testing.assert_array_equal(out.np, [-np.inf, 1, np.nan])


def test_cotangents_go_back_to_where_the_elements_were():
    x = A([3.0, 1.0, 2.0])
    out = ops.sort(x, axis=0, keys=1)
    (ct,) = pullback(ops.sort, [A([10.0, 20.0, 30.0])], out, (x,), (0,), dict(axis=0, keys=1))
    assert ct.np.tolist() == [30, 10, 20]
