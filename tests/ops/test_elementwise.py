"""Rows of the elementwise table: edges that the laws do not draw."""

import math

import numpy as np
import pytest

from fgrad import jvp, ops
from fgrad.core import Array
from fgrad.errors import ArgumentError, DtypeError, RangeError, ShapeError
from fgrad.types import F16, F32, F64, I32, U8


def A(values, dtype=np.float64):
    return Array(np.asarray(values, dtype))


def tangent(op, args, i, **params):
    """The derivative of an elementwise operation by argument i, elementwise."""
    args = tuple(A(a) if isinstance(a, list) else a for a in args)
    ones = [A(np.ones(len(a.np))) if k == i else None for k, a in enumerate(args)]
    return op.jvp(op(*args, **params), args, ones, **params)


def test_derivative_of_max_and_min_splits_ties_evenly():
    for op, first in ((ops.max, [0.0, 0.5, 1.0]), (ops.min, [1.0, 0.5, 0.0])):
        x, y = [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]
        np.testing.assert_array_equal(tangent(op, (x, y), 0).np, first)
        np.testing.assert_array_equal(tangent(op, (x, y), 1).np, 1 - np.array(first))


def test_derivative_of_pow_is_finite_at_zero():
    np.testing.assert_array_equal(tangent(ops.pow, ([0.0, 0.0], [0.0, 2.0]), 0).np, [0.0, 0.0])
    np.testing.assert_array_equal(tangent(ops.pow, ([0.0], [2.0]), 1).np, [0.0])
    np.testing.assert_array_equal(tangent(ops.pow, ([0.0, 3.0], 2.0), 0).np, [0.0, 6.0])
    assert np.isnan(tangent(ops.pow, ([-1.0], [2.0]), 1).np)


def test_derivative_of_division_by_the_number_zero_is_infinite():
    assert np.isinf(tangent(ops.div, ([1.0], 0.0), 0).np)


def test_derivative_of_clamp_is_one_inside_and_belongs_to_a_bound_outside():
    x = [-1.0, 0.0, 0.5, 1.0, 2.0]
    lo, hi = [0.0] * 5, [1.0] * 5
    np.testing.assert_array_equal(tangent(ops.clamp, (lo, x, hi), 1).np, [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(tangent(ops.clamp, (lo, x, hi), 0).np, [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(tangent(ops.clamp, (lo, x, hi), 2).np, [0, 0, 0, 0, 1])


def test_steps_have_no_derivative():
    for op in (ops.sign, ops.floor, ops.ceil, ops.round):
        assert op.jvp(op(A([1.5])), (A([1.5]),), [A([1.0])]) is None


def test_erf_is_within_three_ulp_of_the_c_library():
    x = np.concatenate([np.linspace(-7, 7, 20001), [0.0, -0.0, np.inf, -np.inf, 1e-300]])
    want = np.array([math.erf(v) for v in x])
    got = ops.erf(A(x)).np
    assert np.max(np.abs(got - want) / np.spacing(np.abs(want))) <= 3
    assert np.isnan(ops.erf(A(np.nan)).np) and np.signbit(ops.erf(A(-0.0)).np)


def test_integer_division_rounds_towards_zero_and_by_zero_gives_zero():
    x, y = A([7, -7, 7, -7, 5], I32), A([2, 2, -2, -2, 0], I32)
    np.testing.assert_array_equal(ops.div(x, y).np, [3, -3, -3, 3, 0])
    np.testing.assert_array_equal(ops.rem(x, y).np, [1, -1, 1, -1, 0])


def test_shifts_beyond_the_width_give_zero_or_the_sign():
    x, n = A([1, -8, 1], I32), A([31, 40, -1], I32)
    np.testing.assert_array_equal(ops.shl(x, n).np, [-2**31, 0, 0])
    np.testing.assert_array_equal(ops.shr(x, n).np, [0, -1, 0])


def test_integer_pow_takes_negative_powers_of_floats_only():
    np.testing.assert_allclose(ops.integer_pow(A([2.0, -4.0]), n=-2).np, [0.25, 0.0625])
    np.testing.assert_allclose(tangent(ops.integer_pow, ([2.0],), 0, n=-2).np, [-0.25])
    with pytest.raises(DtypeError, match="integer_pow"):
        ops.integer_pow(A([2], I32), n=-2)


@pytest.mark.parametrize("dtype", [F16, F32, F64])
def test_a_python_number_takes_the_dtype_of_the_array_beside_it(dtype):
    assert ops.add(A([1.0], dtype), 2).dtype == dtype
    assert ops.div(1.0, A([2.0], dtype)).dtype == dtype


def test_negative_zero_and_zero_are_two_numbers():
    assert np.signbit(ops.mul(A([1.0]), -0.0).np).all()
    assert not np.signbit(ops.mul(A([1.0]), 0.0).np).any()


def test_python_numbers_alone_settle_to_the_default_dtype():
    assert ops.add(1.0, 2.0).dtype == F32 and ops.max(1, 2).dtype == I32


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(RangeError, match="300 does not fit into u8"):
        ops.add(A([1], U8), 300)
    with pytest.raises(DtypeError, match="2.5 cannot stand beside an array of i32"):
        ops.add(A([1], I32), 2.5)
    ops.max(A([True], bool), True)                       # 1 == True, but it is another number
    with pytest.raises(DtypeError, match="1 cannot stand beside an array of bool"):
        ops.max(A([True], bool), 1)


def test_different_types_are_refused_at_once():
    with pytest.raises(ShapeError, match="add needs arguments of one shape"):
        ops.add(A([1.0]), A([1.0, 2.0]))
    with pytest.raises(DtypeError, match="add needs arguments of one dtype"):
        ops.add(A([1.0]), A([1.0], F32))
    with pytest.raises(DtypeError, match="exp is not defined for i32"):
        ops.exp(A([1], I32))
    with pytest.raises(DtypeError, match="condition of dtype bool"):
        ops.select(A([1.0]), A([1.0]), A([1.0]))
    with pytest.raises(ArgumentError, match="at least one array"):
        ops.add.type(1.0, 2.0)


def test_conversion_to_an_integer_has_no_derivative():
    assert ops.convert.jvp(None, (A([1.5]),), [A([1.0])], dtype=I32) is None


def test_second_derivative_of_logaddexp_is_a_quarter_where_the_arguments_are_equal():
    x = A([0.0, -3.0, 1e4])
    slope = lambda a: tangent(ops.logaddexp, (a, [0.0, -3.0, 1e4]), 0)
    second = jvp(lambda a: ops.logaddexp.partials[0](None, a, x), (x,), (A([1.0] * 3),))[1]
    np.testing.assert_array_equal(slope(x).np, [0.5] * 3)
    np.testing.assert_array_equal(second.np, [0.25] * 3)


def test_derivative_of_logaddexp_of_infinite_arguments_is_a_share():
    x, y = [np.inf, -np.inf, np.inf, -np.inf, 1.0], [np.inf, -np.inf, -np.inf, np.inf, np.inf]
    np.testing.assert_array_equal(tangent(ops.logaddexp, (x, y), 0).np, [0.5, 0.5, 1, 0, 0])


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "complex64"])
def test_arrays_and_numpy_scalars_are_divided_alike_in_every_dtype(dtype):
    x, y = np.array([7, -7, 5], dtype), np.array([2, 2, 0], dtype)
    whole = ops.div(x, y)
    assert whole.dtype == dtype
    for k in range(3):
        np.testing.assert_array_equal(np.asarray(ops.div(x[k], y[k])), np.asarray(whole)[k])
    np.testing.assert_array_equal(np.asarray(whole), ops.div.numpy(x, y))
