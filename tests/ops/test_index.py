"""Run-time indices: out of range, repeated, and in blocks."""

import numpy as np
import pytest

from fgrad import ops
from fgrad.core import Array
from fgrad.errors import ArgumentError, DtypeError, ShapeError
from fgrad.interpreters.backward import pullback


def A(values, dtype=np.float64):
    return Array(np.asarray(values, dtype))


def I(values):
    return A(values, np.int32)


def test_indices_out_of_range_are_clipped_or_filled():
    x = A([10.0, 20.0, 30.0])
    np.testing.assert_array_equal(ops.gather(x, I([-5, 1, 9]), axes=(0,)).np, [10, 20, 30])
    filled = ops.gather(x, I([-5, 1, 9]), axes=(0,), mode="fill", fill=np.nan)
    np.testing.assert_array_equal(filled.np, [np.nan, 20, np.nan])


def test_dropped_updates_are_not_written():
    out = ops.scatter(A([1.0, 2.0]), I([-1, 1, 2]), A([7.0, 8.0, 9.0]), axes=(0,), mode="drop")
    np.testing.assert_array_equal(out.np, [1, 8])


def test_repeated_indices_add_up_in_scatter_add():
    out = ops.scatter(A([0.0, 0.0]), I([1, 1, 1]), A([1.0, 2.0, 4.0]), axes=(0,), how="add")
    np.testing.assert_array_equal(out.np, [0, 7])


def test_of_repeated_indices_the_last_is_set_and_has_the_gradient():
    x, i, u = A([0.0, 0.0]), I([1, 0, 1]), A([1.0, 2.0, 4.0])
    out = ops.scatter_set(x, i, u, axes=(0,))
    np.testing.assert_array_equal(out.np, [2, 4])
    cts = pullback(ops.scatter_set, A([10.0, 20.0]), out, (x, i, u), (0, -1, 1), dict(axes=(0,)))
    np.testing.assert_array_equal(cts[0].np, [0, 0])
    np.testing.assert_array_equal(cts[2].np, [0, 10, 20])


def test_gradient_of_scatter_max_is_shared_by_ties():
    x, i, u = A([3.0, 0.0]), I([0, 0, 1]), A([3.0, 1.0, 5.0])
    out = ops.scatter_max(x, i, u, axes=(0,))
    cts = pullback(ops.scatter_max, A([1.0, 1.0]), out, (x, i, u), (0, -1, 1), dict(axes=(0,)))
    np.testing.assert_array_equal(cts[0].np, [0.5, 0])
    np.testing.assert_array_equal(cts[2].np, [0.5, 0, 1])


def test_take_along_reads_along_one_axis():
    x = A([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    order = np.argsort(x.np, 1)
    np.testing.assert_array_equal(ops.take_along(x, I(order), 1).np, np.sort(x.np, 1))


def test_blocks_are_moved_inside():
    x = A([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ops.dynamic_slice(x, I(3), sizes=(2,)).np, [2, 3])
    updated = ops.dynamic_update_slice(x, A([9.0, 9.0]), I(-7))
    np.testing.assert_array_equal(updated.np, [9, 9, 2, 3])


def test_gather_refuses_what_does_not_index():
    with pytest.raises(DtypeError, match="integer indices, not f64"):
        ops.gather(A([1.0]), A([0.0]), axes=(0,))
    with pytest.raises(ShapeError, match="axis of size 0"):
        ops.gather(A([]), I([0]), axes=(0,))
    with pytest.raises(ShapeError, match="one index array for each of the axes"):
        ops.gather.type(A([[1.0]]).type, I([0]).type, axes=(0, 1))
    with pytest.raises(ArgumentError, match="no mode 'wrap'"):
        ops.gather.type(A([1.0]).type, I([0]).type, axes=(0,), mode="wrap")
    with pytest.raises(ArgumentError, match="cannot combine by 'sub'"):
        ops.scatter(A([1.0]), I([0]), A([1.0]), axes=(0,), how="sub")
