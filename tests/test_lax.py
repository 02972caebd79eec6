"""fgrad.lax: the explicit operations by JAX's names, against NumPy."""

import functools

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax
from fgrad.errors import ArgumentError, AxisError, ShapeError
from fgrad.gradient_check import check_grads
from fgrad.jitted import jit
from fgrad.transforms import grad, make_ir, vmap
from fgrad.types import ArrayType
from tests.messages import message
from tests.tolerance import assert_close

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4)).astype(np.float32)
Y = RNG.normal(size=(3, 4)).astype(np.float32)
N = np.array([-7, 0, 5, 2**31 - 1, -2**31], np.int32)

HALVES = np.array([-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, 0.3, -0.7, np.inf, np.nan], np.float32)


def same(got, want, length=1):
    assert_close(np.asarray(got), np.asarray(want), length)


# name → (function of lax, the same in NumPy, arguments)
ROWS = {
    "add": (lax.add, np.add, (X, Y)),
    "sub": (lax.sub, np.subtract, (X, Y)),
    "atan2": (lax.atan2, np.arctan2, (X, Y)),
    "reciprocal": (lax.reciprocal, np.reciprocal, (X,)),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x), (np.abs(X),)),
    "exp2": (lax.exp2, np.exp2, (X,)),
    "cbrt": (lax.cbrt, np.cbrt, (X,)),
    "round": (lax.round, lambda x: np.trunc(x + np.copysign(0.5, x)), (X * 3,)),
    "round of halves": (lax.round, lambda x: np.trunc(x + np.copysign(0.5, x)), (HALVES,)),
    "round to even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.round,
                      (HALVES,)),
    "bitwise_and": (lax.bitwise_and, np.bitwise_and, (N, N[::-1].copy())),
    "bitwise_not": (lax.bitwise_not, np.invert, (N,)),
    "shift_left": (lambda x: lax.shift_left(x, 3), lambda x: x << 3, (N,)),
    "shift_right_arithmetic": (lambda x: lax.shift_right_arithmetic(x, 3), lambda x: x >> 3, (N,)),
    "shift_right_logical": (lambda x: lax.shift_right_logical(x, 3),
                            lambda x: (x.view(np.uint32) >> 3).view(np.int32), (N,)),
    "clamp": (lambda x: lax.clamp(-0.5, x, 0.5), lambda x: np.clip(x, -0.5, 0.5), (X,)),
    "clamp by scalar arrays": (lambda x, a: lax.clamp(a, x, 0.5), lambda x, a: np.clip(x, a, 0.5),
                               (X, np.float32(-1))),
    "select": (lambda x, y: lax.select(lax.gt(x, y), x, y), np.maximum, (X, Y)),
    "select_n": (lambda x, y: lax.select_n(lax.gt(x, y), x, y), np.minimum, (X, Y)),
    "select_n of three": (lambda k: lax.select_n(k, *[lax.full_like(k, v) for v in (5, 6, 7)]),
                          lambda k: k + 5, (np.array([2, 0, 1], np.int32),)),
    "convert_element_type": (lambda x: lax.convert_element_type(x, "int32"),
                             lambda x: x.astype(np.int32), (X,)),
    "full": (lambda: lax.full((2, 0), 1.5), lambda: np.full((2, 0), 1.5, np.float32), ()),
    "full_like": (lambda x: lax.full_like(x, 2), lambda x: np.full_like(x, 2), (X,)),
    "iota": (lambda: lax.iota("int32", 5), lambda: np.arange(5, dtype=np.int32), ()),
    "broadcasted_iota": (lambda: lax.broadcasted_iota("float32", (2, 3), 1),
                         lambda: np.tile(np.arange(3, dtype=np.float32), (2, 1)), ()),
    "broadcast": (lambda x: lax.broadcast(x, (2,)), lambda x: np.stack([x, x]), (X,)),
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x[:, :1], (3, 5, 4), (0, 2)),
                         lambda x: np.broadcast_to(x[:, None, :1], (3, 5, 4)), (X,)),
    "reshape": (lambda x: lax.reshape(x, (2, -1)), lambda x: x.reshape(2, -1), (X,)),
    "reshape of a transpose": (lambda x: lax.reshape(x, (12,), (1, 0)),
                               lambda x: x.T.ravel(), (X,)),
    "rev": (lambda x: lax.rev(x, (-1,)), lambda x: x[:, ::-1], (X,)),
    "concatenate": (lambda x, y: lax.concatenate([x, y], 1),
                    lambda x, y: np.hstack([x, y]), (X, Y)),
    "expand_dims": (lambda x: lax.expand_dims(x, (0, -1)), lambda x: x[None, ..., None], (X,)),
    "squeeze": (lambda x: lax.squeeze(x[:1], (0,)), lambda x: x[0], (X,)),
    "collapse": (lambda x: lax.collapse(x, 0), np.ravel, (X,)),
    "pad": (lambda x: lax.pad(x, 9.0, [(1, -1, 0), (0, 2, 1)]), lambda x: np.concatenate(
        [np.full((1, 9), 9, np.float32), np.insert(
            np.pad(x, ((0, 0), (0, 2)), constant_values=9), [1, 2, 3], 9, 1)[:-1]]), (X,)),
    "slice": (lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), lambda x: x[1:3, ::2], (X,)),
    "slice_in_dim": (lambda x: lax.slice_in_dim(x, -3, None, 2, 1), lambda x: x[:, -3::2], (X,)),
    "index_in_dim": (lambda x: lax.index_in_dim(x, -1, 1, False), lambda x: x[:, -1], (X,)),
    "dynamic_slice": (lambda x, k: lax.dynamic_slice(x, (k, 1), (2, 2)), lambda x, k: x[1:3, 1:3],
                      (X, np.int32(5))),
    "dynamic_slice_in_dim": (lambda x, k: lax.dynamic_slice_in_dim(x, k, 2, 1),
                             lambda x, k: x[:, 2:4], (X, np.int32(-2))),
    "dynamic_index_in_dim": (lambda x, k: lax.dynamic_index_in_dim(x, k, 0, False),
                             lambda x, k: x[2], (X, np.int32(-1))),
    "dot": (lax.dot, np.dot, (X, Y.T.copy())),
    "batch_matmul": (lax.batch_matmul, np.matmul, (np.stack([X, Y]), np.stack([Y.T, X.T]))),
    "dot_general": (lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
                    lambda x, y: np.einsum("bij,bjk->bik", x, y),
                    (np.stack([X, Y]), np.stack([Y.T, X.T]))),
    "reduce_sum": (lambda x: lax.reduce_sum(x, (1,)), lambda x: x.sum(1), (X,)),
    "reduce_max": (lambda x: lax.reduce_max(x, (0, -1)), np.max, (X,)),
    "reduce_prod": (lambda x: lax.reduce_prod(x, (0,)), lambda x: x.prod(0), (X,)),
    "argmax": (lambda x: lax.argmax(x, 1, "int32"), lambda x: x.argmax(1).astype(np.int32), (X,)),
    "argmin": (lambda x: lax.argmin(x, 0, "int64"), lambda x: x.argmin(0), (X,)),
    "cumsum": (lambda x: lax.cumsum(x, 1, reverse=True),
               lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1], (X,)),
    "cumprod": (lambda x: lax.cumprod(x), lambda x: np.cumprod(x, 0), (X,)),
    "cummax": (lambda x: lax.cummax(x, 1), lambda x: np.maximum.accumulate(x, 1), (X,)),
    "cummin": (lambda x: lax.cummin(x, -1), lambda x: np.minimum.accumulate(x, 1), (X,)),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), lambda x: np.log(np.cumsum(np.exp(x), 1)),
                     (X,)),
    "sort": (lambda x: lax.sort(x, 0), lambda x: np.sort(x, 0), (X,)),
    "top_k": (lambda x: lax.top_k(x, 2)[0], lambda x: -np.sort(-x)[:, :2], (X,)),
}


@pytest.mark.parametrize("name", ROWS)
def test_it_is_what_numpy_gives_at_once_and_compiled(name):
    f, reference, args = ROWS[name]
    same(f(*args), reference(*args), 8)
    same(jit(f)(*args), reference(*args), 8)


def test_updates_write_a_block_and_a_row():
    row = np.arange(4, dtype=np.float32)
    want = X.copy()
    want[2] = row
    same(lax.dynamic_update_index_in_dim(X, row, -1, 0), want)
    same(jit(lambda k: lax.dynamic_update_slice_in_dim(X, row[None], k, 0))(np.int32(2)), want)
    same(lax.dynamic_update_slice(X, row[None], (np.int32(2), 0)), want)


def test_top_k_gives_the_first_of_equal_elements_first():
    values, places = lax.top_k(np.array([1.0, 3.0, 3.0, 2.0], np.float32), 3)
    assert values.tolist() == [3.0, 3.0, 2.0] and places.tolist() == [1, 2, 3]
    assert lax.top_k(np.ones((2, 3), np.float32), 0)[0].shape == (2, 0)


def test_sort_key_val_moves_values_with_their_keys():
    keys, values = lax.sort_key_val(np.array([3, 1, 2]), np.array([30.0, 10.0, 20.0]))
    assert keys.tolist() == [1, 2, 3] and values.tolist() == [10.0, 20.0, 30.0]


@pytest.mark.parametrize("axis", [0, 1])
def test_several_arrays_are_sorted_by_the_first_of_them(axis):
    rng = np.random.default_rng(0)
    a, b, c = [rng.integers(0, 3, (6, 5)).astype("float32") for _ in range(3)]
    for keys in (1, 2, 3):
        order = np.lexsort((a, b, c)[:keys][::-1], axis)
        want = [np.take_along_axis(x, order, axis) for x in (a, b, c)]
        sort = lambda a, b, c: lax.sort((a, b, c), axis, num_keys=keys)
        for f in (sort, jit(sort)):
            for got, x in zip(f(a, b, c), want, strict=True):
                same(got, x)
        stacked = vmap(sort, (None, None, 0))(a, b, np.stack([c, c + 1]))
        same(stacked[2], np.stack([sort(a, b, x)[2] for x in (c, c + 1)]))
    check_grads(lambda c: lax.sort((a, b, c), axis)[2], (c,), order=2)
    assert len(lax.sort((a,), axis)) == 1


def test_cumlogsumexp_has_infinities_and_derivatives():
    x = np.array([-np.inf, 0.0, 1000.0, np.inf], np.float32)
    same(lax.cumlogsumexp(x), np.array([-np.inf, 0.0, 1000.0, np.inf], np.float32))
    check_grads(lambda x: lax.cumlogsumexp(x), (np.array([0.3, -1.0, 2.0]),), order=2)


def test_the_functions_transform():
    def f(x):
        return lax.reduce_sum(lax.mul(lax.tanh(x), lax.dynamic_slice(x, (0, 0), x.shape)), (0, 1))
    x = fnp.array(X)
    want = np.tanh(X) + X * (1 - np.tanh(X) ** 2)
    same(grad(f)(x), want.astype(np.float32), 4)
    same(jit(vmap(grad(f)))(fnp.stack([x, x]))[1], want.astype(np.float32), 4)


def test_control_flow_is_there_by_name():
    assert lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0).item() == 3
    assert lax.fori_loop(0, 3, lambda i, x: x + i, 0).item() == 3
    assert lax.cond(True, lambda: 1.0, lambda: 2.0).item() == 1.0
    assert lax.switch(1, [lambda: 1.0, lambda: 2.0]).item() == 2.0
    assert lax.scan(lambda c, x: (c + x, c), 0, fnp.arange(3))[0].item() == 3
    assert lax.map(lambda x: x + 1, fnp.arange(3)).tolist() == [1, 2, 3]
    assert lax.associative_scan(lambda a, b: a + b, fnp.arange(3)).tolist() == [0, 1, 3]
    assert lax.stop_gradient(2.0).item() == lax.optimization_barrier(fnp.array(2.0)).item() == 2.0


def test_broadcast_in_dim_puts_each_axis_where_it_is_told_to():
    x = fnp.arange(6.0).reshape(2, 3)
    assert lax.broadcast_in_dim(x, (3, 2), (1, 0)).tolist() == x.T.tolist()
    assert lax.broadcast_in_dim(x[:, :1], (4, 2), (1, 0)).tolist() == [[0, 3]] * 4
    assert "given twice" in message(AxisError, lax.broadcast_in_dim, x, (2, 3), (1, 1))
    assert "axis 5" in message(AxisError, lax.broadcast_in_dim, x, (2, 3), (0, 5))


@pytest.mark.parametrize("how", [jit, lambda f: f])
def test_an_index_of_few_bits_reaches_every_element(how):
    x = fnp.arange(200)
    at = how(lambda i: lax.dynamic_slice(x, (i,), (2,)))
    assert at(np.int8(-1)).tolist() == [198, 199]
    assert at(np.int8(-100)).tolist() == [100, 101]
    got = how(vmap(lambda i: lax.dynamic_slice(fnp.arange(300), (i,), (2,))))
    assert got(np.array([0, 255], np.uint8)).tolist() == [[0, 1], [255, 256]]


def test_index_in_dim_says_which_index_is_out_of_range():
    assert lax.index_in_dim(X, -1, 1, keepdims=False).tolist() == X[:, -1].tolist()
    assert "index 4 is out of range for an axis of size 4" in message(
        IndexError, lax.index_in_dim, X, 4, 1)


def test_dimension_numbers_that_are_none_are_refused():
    for numbers in (((1, 0), (0,)), (((1, 0), (0,)), ((), ())), (((1,), (0,)),)):
        assert "as many dimensions of lhs as of rhs" in message(
            ArgumentError, lax.dot_general, X, Y.T, numbers)


def test_channels_in_another_place_are_named_in_the_fix():
    x, w = np.ones((1, 28, 28, 3), np.float32), np.ones((3, 3, 3, 8), np.float32)
    labels = ("NHWC", "HWIO", "NHWC")
    assert f"dimension_numbers={labels}" in message(
        ShapeError, lax.conv_general_dilated, x, w, (1, 1), "SAME")
    assert "x.transpose(0, 2, 3, 1), since channels are axis 3" in message(
        ShapeError, lambda: lax.conv_general_dilated(
            x.transpose(0, 3, 1, 2), w, (1, 1), "SAME", dimension_numbers=labels))


def test_logaddexp_is_that_of_numpy_where_both_are_infinite():
    for x in (np.inf, -np.inf):
        assert [g.item() for g in grad(lax.logaddexp, (0, 1))(x, x)] == [0.5, 0.5]


def test_operations_neither_broadcast_nor_promote():
    assert "shape" in message(ShapeError, lax.add, X, Y[:1])
    assert message(ShapeError, lax.squeeze, X, (0,)).startswith(
        "squeeze removes axes of size 1 only.")
    assert message(AxisError, lax.rev, X, (2,)).startswith(
        "rev: axis 2 is out of range for an array of 2 axes.")
    assert message(ShapeError, lax.broadcast_in_dim, X, (3, 5), (0, 1)).startswith(
        "broadcast_in_dim needs a dimension of the result for each of x, of its size.")
    assert message(ArgumentError, lax.round, X, 2).startswith(
        "round takes halves away from zero, or to even numbers.")
    assert message(ShapeError, lax.top_k, X, 5).startswith("top_k cannot take 5 of the last axis.")
    assert message(ShapeError, lax.sort, (X, X[:1])).startswith("sort needs operands of one shape.")
    assert message(ArgumentError, lambda: lax.sort((X, X), num_keys=3)).startswith(
        "sort(…, num_keys=3) needs between 1 and 2 keys.")


@pytest.mark.parametrize("computation, init, plain", [
    (lax.max, -np.inf, np.max), (lax.add, 1.0, lambda w: np.sum(w) + 1), (fnp.minimum, 0.5, None),
    (lax.add, np.float32(1), lambda w: np.sum(w) + 1)])
def test_reduce_window_starts_every_window_and_pads_with_init_value(computation, init, plain):
    plain = plain or (lambda w: np.minimum(np.min(w), 0.5))
    for pads in ("SAME", "VALID", ((2, 0), (0, 1))):
        got = lax.reduce_window(X, init, computation, (2, 3), (1, 2), pads)
        pairs = {"VALID": ((0, 0), (0, 0)), "SAME": ((0, 1), (0, 1))}.get(pads, pads)
        padded = np.pad(X, pairs, constant_values=init)
        rows, columns = padded.shape[0] - 1, (padded.shape[1] - 3) // 2 + 1
        if computation is lax.add:
            padded = np.where(np.pad(np.ones_like(X), pairs) > 0, padded, init)
        want = [[plain(padded[i:i + 2, 2 * j:2 * j + 3]) for j in range(columns)]
                for i in range(rows)]
        same(got, np.array(want, np.float32), 6)


@pytest.mark.parametrize("computation, init", [
    (lax.max, -float("inf")), (lax.min, np.float32(np.inf)), (lax.add, 0), (lax.add, 0.0)])
def test_a_neutral_init_value_of_reduce_window_computes_nothing(computation, init):
    def equations(init):
        return len(make_ir(lambda x: lax.reduce_window(
            x, init, computation, (2, 2), (1, 1), "VALID"))(X).eqns)
    assert equations(init) == equations(0.5) - 1


def test_windows_of_bools():
    x = np.random.default_rng(0).random((6, 7)) < 0.2
    some = lax.reduce_window(x, False, lax.bitwise_or, (1, 5), (1, 1), "SAME")
    every = lax.reduce_window(x, True, lax.bitwise_and, (1, 2), (1, 1), "VALID")
    want = [[x[i, max(0, j - 2):j + 3].any() for j in range(7)] for i in range(6)]
    np.testing.assert_array_equal(some, want)
    np.testing.assert_array_equal(every, x[:, 1:] & x[:, :-1])


@pytest.mark.parametrize("window", range(1, 8))
@pytest.mark.parametrize("step, apart, pads", [(1, 1, (0, 0)), (2, 1, (1, 2)), (3, 2, (0, 3))])
def test_windows_are_reduced_by_any_associative_function(window, step, apart, pads):
    def after(f, g):                             # x → f(g(x)) of affine functions: not commutative
        return f[0] * g[0], f[0] * g[1] + f[1]
    rng = np.random.default_rng(window)
    a, b = rng.integers(-3, 4, (2, 3, 9))
    start = np.int64(2), np.int64(-1)
    run = lambda a, b: lax.reduce_window((a, b), start, after, (1, window), (1, step),
                                         ((0, 0), pads), None, (1, apart))
    padded = [np.pad(x, ((0, 0), pads), constant_values=v) for x, v in zip((a, b), start)]
    count = max(0, (9 + sum(pads) - (window - 1) * apart - 1) // step + 1)
    want = [[functools.reduce(after, [start, *[
        tuple(x[i, step * j + apart * k] for x in padded) for k in range(window)]])
        for j in range(count)] for i in range(3)]
    want = np.array(want).reshape(3, count, 2)
    for got in (run(a, b), jit(run)(a, b)):
        np.testing.assert_array_equal(np.stack(got, -1), want)


def test_windows_of_products_have_gradients_and_rows():
    product = lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 3), (1, 2), "SAME")
    check_grads(product, (X,))
    same(vmap(product)(np.stack([X, X + 1])), np.stack([product(X), product(X + 1)]), 6)
    assert message(ShapeError, lambda: lax.reduce_window(
        (X, X[1:]), (0.0, 0.0), max, (1, 1), (1, 1), "VALID")).startswith(
        "reduce_window needs operands of one shape.")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
def test_leading_zeros_are_those_of_the_binary_digits(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 5, 100, info.max, info.min], dtype)
    bits = 8 * x.dtype.itemsize
    digits = [format(int(v) % 2 ** bits, f"0{bits}b") for v in x]
    want = [len(d) - len(d.lstrip("0")) for d in digits]
    assert lax.clz(x).tolist() == jit(lax.clz)(x).tolist() == want
    assert lax.population_count(x).tolist() == [d.count("1") for d in digits]
    assert lax.clz(x).dtype == dtype


def test_split_gives_parts_of_the_sizes_and_refuses_others():
    x = np.arange(12.0).reshape(3, 4)
    parts = lax.split(x, (1, 0, 3), axis=-1)
    for got, want in zip(parts, np.split(x, [1, 1], axis=1), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ShapeError, match="add up"):
        lax.split(x, (1, 1), axis=0)


def test_conv_is_conv_general_dilated_without_dilation():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 2, 5, 5)), rng.standard_normal((3, 2, 2, 2))
    want = lax.conv_general_dilated(x, w, (1, 2), "SAME")
    np.testing.assert_array_equal(lax.conv(x, w, (1, 2), "SAME"), want)
    dilated = lax.conv_with_general_padding(x, w, (1, 1), [(0, 0)] * 2, None, (2, 2))
    np.testing.assert_array_equal(dilated, lax.conv_general_dilated(
        x, w, (1, 1), [(0, 0)] * 2, rhs_dilation=(2, 2)))


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, -1)]])
@pytest.mark.parametrize("labels", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NWHC")])
def test_patches_contracted_with_a_kernel_are_the_convolution(padding, labels):
    x = RNG.normal(size=(2, 3, 8, 9))
    w = RNG.normal(size=(4, 3, 3, 2))
    steps = dict(lhs_dilation=(2, 3), rhs_dilation=(2, 1), dimension_numbers=labels)
    x = x.transpose(["NCHW".index(c) for c in labels[0]])
    seen = lax.conv_general_dilated_patches(x, (3, 2), (2, 1), padding, **steps)
    kernel = w.transpose(["OIHW".index(c) for c in labels[1]])
    want = lax.conv_general_dilated(x, kernel, (2, 1), padding, **steps)
    channel = labels[2].index("C")
    got = np.moveaxis(np.tensordot(np.asarray(seen), w.reshape(4, 18), (channel, 1)), -1, channel)
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_patches_keep_infinities_to_themselves_and_have_derivatives():
    x = np.array([[[1.0, np.inf, 2.0, 3.0]]])
    seen = lax.conv_general_dilated_patches(x, (2,), (2,), "VALID")
    np.testing.assert_array_equal(seen, [[[1, 2], [np.inf, 3]]])
    check_grads(lambda x: lax.conv_general_dilated_patches(x, (3,), (2,), "SAME"), (x[..., 2:],))
    large = ArrayType("float32", (1, 1, 40, 48))         # a slice for each element took 20 s
    ir = make_ir(lambda x: lax.conv_general_dilated_patches(x, (8, 8), (2, 2), "VALID"))(large)
    assert ir.out_types[0].shape == (1, 64, 17, 21) and len(ir.eqns) < 40
    with pytest.raises(ShapeError, match="axes"):
        lax.conv_general_dilated_patches(x[0], (2, 2), (1, 1), "SAME",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC"))


@pytest.mark.parametrize("channels, groups", [(3, 1), (8, 1), (9, 3), (16, 16)])
@pytest.mark.parametrize("labels", [None, ("NCHW", "HWIO", "NHWC"), ("CNHW", "OIHW", "NHCW"),
                                    ("NHWC", "OIHW", "NCHW")])
def test_the_order_of_axes_changes_no_convolution(channels, groups, labels):
    rng = np.random.default_rng(channels)
    x = rng.normal(size=(2, 7, 6, channels))
    w = rng.normal(size=(3, 2, channels // groups, 2 * channels))
    plain = "NHWC", "HWIO", "NHWC"
    found = labels or ("NCHW", "OIHW", "NCHW")
    orders = [[a.index(c) for c in b] for a, b in zip(plain, found)]

    def convolved(x, w, labels):
        return lax.conv_general_dilated(x, w, (2, 1), "SAME", (1, 2), (1, 2), labels, groups)
    want = np.asarray(convolved(x, w, plain))
    ours = [x.transpose(orders[0]), w.transpose(orders[1])]
    for compute in (convolved, jit(convolved, static_argnums=2)):
        got = np.asarray(compute(*ours, labels))
        np.testing.assert_allclose(got, want.transpose(orders[2]), rtol=1e-9, atol=1e-9)
    slopes = grad(lambda *a: (convolved(*a, labels) ** 2).sum(), (0, 1))(*ours)
    wanted = grad(lambda *a: (convolved(*a, plain) ** 2).sum(), (0, 1))(x, w)
    for a, b, order in zip(slopes, wanted, orders):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b).transpose(order), rtol=1e-9,
                                   atol=1e-8)


@pytest.mark.parametrize("f, match", [
    (lambda x: lax.dynamic_slice(x, (0,), (5,)), "a block that fits"),
    (lambda x: lax.dynamic_slice_in_dim(x, 0, 4), "a block that fits"),
    (lambda x: lax.slice(x, (0,), (5,)), "does not fit"),
    (lambda x: lax.dynamic_update_slice(x, fnp.ones(2, "int32"), (0,)), "one dtype"),
    (lambda x: lax.dynamic_update_slice(x, fnp.ones(4), (0,)), "a block that fits"),
    (lambda x: lax.dynamic_slice(x[None], (0,), (1, 2)), "an index for each axis"),
    (lambda x: lax.dynamic_update_slice(x[None], x[None], (0,)), "an index for each axis")])
@pytest.mark.parametrize("how", [lambda f: f, fgrad.jit], ids=["eager", "jit"])
def test_blocks_that_do_not_fit_are_refused(f, match, how):
    """Outside of jit they were cut off."""
    with pytest.raises(fgrad.FgradError, match=match):
        how(f)(fnp.array([1.0, 2.0, 3.0]))


def test_optimization_barrier_takes_pytrees():
    x = fnp.array([1.0, 2.0])
    for how in (lambda f: f, fgrad.jit):
        a, b = how(lambda x: lax.optimization_barrier((x, {"n": x[:1]})))(x)
        assert a.tolist() == [1, 2] and b["n"].tolist() == [1]


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_top_k_along_any_axis(axis):
    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
    values, places = fgrad.lax.top_k(x, 2, axis=axis)
    np.testing.assert_array_equal(values, np.flip(np.sort(x, axis), axis).take([0, 1], axis))
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), axis), values)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int64"])
def test_shifts_move_in_the_first_bit_or_zeros(dtype):
    x = np.array([-1, -128, 5], "int64").astype(dtype)
    bits = 8 * x.dtype.itemsize
    signed, unsigned = x.view(f"i{bits // 8}"), x.view(f"u{bits // 8}")
    one = fnp.array([1, 1, 1], dtype)
    np.testing.assert_array_equal(lax.shift_right_arithmetic(x, one), (signed >> 1).view(dtype))
    np.testing.assert_array_equal(lax.shift_right_logical(x, one), (unsigned >> 1).view(dtype))
