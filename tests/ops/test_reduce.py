"""Reductions: ties, zeros, NaN, and precision."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ops
from fgrad.core import Array
from fgrad.errors import DtypeError, ShapeError
from fgrad.interpreters.forward import push
from tests.ops import scalars


def A(values, dtype=np.float64):
    return Array(np.asarray(values, dtype))


def gradient(op, values, **params):
    """The derivative of a scalar result by each element, one jvp each."""
    x = A(values)
    out = op(x, **params)
    return [float(op.jvp(out, (x,), [A(row)], **params).np) for row in np.eye(len(values))]


def test_gradient_of_reduce_max_is_shared_by_ties():
    assert gradient(ops.reduce_max, [1.0, 3.0, 3.0, 0.0], axes=(0,)) == [0, 0.5, 0.5, 0]
    assert gradient(ops.reduce_min, [2.0, 2.0, 2.0, 2.0], axes=(0,)) == [0.25] * 4


def test_gradient_of_reduce_prod_is_right_with_zeros():
    assert gradient(ops.reduce_prod, [2.0, 0.0, 5.0], axes=(0,)) == [0, 10, 0]
    assert gradient(ops.reduce_prod, [0.0, 0.0, 5.0], axes=(0,)) == [0, 0, 0]
    assert gradient(ops.reduce_prod, [2.0, 3.0, 4.0, 5.0], axes=(0,)) == [60, 40, 30, 24]
    assert gradient(ops.reduce_prod, [2.0, 3.0, 4.0], axes=(0,)) == [12, 8, 6]


def test_second_derivative_of_a_product_is_right_at_two_zeros():
    by_x = lambda *v: gradient(ops.reduce_prod, v, axes=(0,))[0]
    assert by_x(0.0, 1.0, 3.0) - by_x(0.0, 0.0, 3.0) == 3.0        # ∂²(xyz)/∂x∂y = z
    product = lambda x: ops.reduce_prod(x, axes=(0,))
    x, t, s = A([0.0, 0.0, 3.0]), A([1.0, 0.0, 0.0]), A([0.0, 1.0, 0.0])
    first = lambda *values: push(lambda v: [product(v)], values, [t])[1]
    assert push(first, [x], [s])[1][0].np == 3.0


def test_extremes_of_nothing_are_the_identity():
    assert ops.reduce_max(A([]), axes=(0,)).np == -np.inf
    assert ops.reduce_min(A([], np.int32), axes=(0,)).np == np.iinfo(np.int32).max
    assert ops.reduce_sum(A([]), axes=(0,)).np == 0


@pytest.mark.parametrize("op, want", [(ops.argmax, 1), (ops.argmin, 1)])
def test_the_first_nan_is_the_extreme(op, want):
    x = np.array([1.0, np.nan, 5.0, np.nan, -5.0], np.float32)
    assert op(A(x, np.float32), axis=0).np == want
    assert scalars.pull(op, [x], dict(axis=0), ()) == want


def test_nan_stays_in_reduce_max():
    x = np.array([1.0, np.nan, 5.0], np.float32)
    assert np.isnan(ops.reduce_max(A(x, np.float32), axes=(0,)).np)
    assert np.isnan(scalars.pull(ops.reduce_max, [x], dict(axes=(0,)), ()))


def test_sums_of_f16_accumulate_in_f32():
    x = np.full(4099, 1.0, np.float16)                   # f16 counts by ones to 2048 only
    assert ops.reduce_sum(A(x, np.float16), axes=(0,)).np == np.float16(4099)
    assert ops.cumsum(A(x, np.float16), axis=0, reverse=False).np[-1] == np.float16(4099)


def test_small_integers_keep_their_dtype_and_wrap():
    out = ops.reduce_sum(A([100, 100], np.int8), axes=(0,))
    assert out.dtype == np.int8 and out.np == -56


def test_running_products_have_exact_derivatives_at_zeros():
    x, t = A([2.0, 0.0, 3.0, 0.0, 1.0]), A([1.0, 1.0, 1.0, 1.0, 1.0])
    out = ops.cumprod(x, axis=0, reverse=False)
    got = ops.cumprod.jvp(out, (x,), [t], axis=0, reverse=False)
    np.testing.assert_array_equal(got.np, [1, 2, 6, 0, 0])


def test_reductions_refuse_what_they_are_not_defined_for():
    with pytest.raises(DtypeError, match="reduce_sum is not defined for bool"):
        ops.reduce_sum(A([True], bool), axes=(0,))
    with pytest.raises(ShapeError, match="argmax needs at least one element"):
        ops.argmax(A([]), axis=0)
    with pytest.raises(ShapeError, match="axes below 1"):
        ops.reduce_sum.type(A([1.0]).type, axes=(1,))


def by_loop(x, w, reverse, late):
    """The recurrence, element by element."""
    out, order = np.zeros_like(x), range(len(x))[::-1 if reverse else 1]
    for before, k in zip([None, *order], order):
        out[k] = x[k]
        if before is not None:
            out[k] += (w[before] if late else w[k]) * out[before]
    return out


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape, axis", [((1,), 0), ((6,), 0), ((40, 7), 0), ((3, 50), 1),
                                         ((3, 5), 0), ((17, 2), 1), ((1, 6), 0)])
def test_recurrences_are_what_a_loop_computes(shape, axis, reverse, late):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, *shape))
    want = np.moveaxis(by_loop(*[np.moveaxis(a, axis, 0) for a in (x, w)], reverse, late), 0, axis)

    def f(x, w):
        return ops.recurrence(x, w, axis=axis, reverse=reverse, late=late)
    for function in (f, fgrad.jit(f)):
        np.testing.assert_allclose(np.asarray(function(A(x), A(w))), want, rtol=1e-12, atol=1e-12)
    fgrad.check_grads(f, (A(x), A(w)), order=2)


def test_gradients_of_running_products_take_a_loop():
    """Not log₂ n steps, each over the whole array; and they are exact at zeros."""
    def f(x):
        return fnp.cumprod(x).sum()
    text = str(fgrad.show(fgrad.grad(f), A(np.ones(500))))
    assert "recurrence" in text and text.count("=") < 30
    x = A([2.0, 0.0, 3.0, 0.0, 5.0])
    np.testing.assert_array_equal(np.asarray(fgrad.jit(fgrad.grad(f))(x)), [1, 8, 0, 0, 0])
    np.testing.assert_array_equal(np.asarray(fgrad.hessian(f)(x))[1], [4, 0, 2, 36, 0])


@pytest.mark.parametrize("name, x, expected", [
    ("cummax", [2, 2, 1, 3], [2, 1, 0, 1]), ("cummin", [2, 2, 3, 1], [2, 1, 0, 1]),
    ("cummax", [1, 0, 0], [3, 0, 0]), ("cummin", [5], [1])])
def test_gradients_of_running_extremes_take_a_loop(name, x, expected):
    """One equation each way, not one for each power of two: 25 times as fast for 68224 elements."""
    def total(x):
        return fnp.sum(getattr(fgrad.lax, name)(x))
    x = fnp.asarray(np.asarray(x, np.float32))
    derivative = fgrad.grad(total)
    for function in (derivative, fgrad.jit(derivative)):
        np.testing.assert_array_equal(function(x), expected)
    np.testing.assert_array_equal(
        fgrad.grad(lambda x: fnp.sum(getattr(fgrad.lax, name)(x, reverse=True)))(x[::-1]),
        expected[::-1])
    text = str(fgrad.make_ir(derivative)(fnp.zeros(5000, "float32")))
    assert text.count("recurrence") == 1
