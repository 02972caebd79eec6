"""Convolution against a plain sum: strides, padding, dilations, groups, layouts, both gradients."""

import itertools

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import convolution, ops
from fgrad.convolution import conv, conv_general_dilated, conv_transpose
from fgrad.errors import ArgumentError, ShapeError
from tests.tolerance import assert_close

NHWC = ("NHWC", "HWIO", "NHWC")


def dilated(x, spacing):
    """x[n,h,w,c] with zeros between its elements."""
    n, h, w, c = x.shape
    out = np.zeros((n, (h - 1) * spacing[0] + 1 if h else 0, (w - 1) * spacing[1] + 1 if w else 0,
                    c), x.dtype)
    out[:, ::spacing[0], ::spacing[1]] = x
    return out


def by_loops(x, w, stride, pairs, spacing=(1, 1), dilation=(1, 1), groups=1, batch_groups=1):
    """The convolution of x[n,h,w,c] with w[a,b,i,o], window by window."""
    if batch_groups > 1:
        parts = zip(np.split(x, batch_groups, 0), np.split(w, batch_groups, 3))
        return np.concatenate([by_loops(a, b, stride, pairs, spacing, dilation) for a, b in parts],
                              -1)
    if groups > 1:
        parts = zip(np.split(x, groups, 3), np.split(w, groups, 3))
        return np.concatenate([by_loops(a, b, stride, pairs, spacing, dilation) for a, b in parts],
                              -1)
    x = np.pad(dilated(x, spacing), ((0, 0), *pairs, (0, 0)))
    w = dilated(w.transpose(2, 0, 1, 3), dilation)
    w = w.transpose(1, 2, 0, 3)
    sizes = [max(0, (n - k) // s + 1) for n, k, s in zip(x.shape[1:3], w.shape, stride)]
    out = np.zeros((x.shape[0], *sizes, w.shape[3]), x.dtype)
    for i, j in np.ndindex(*sizes):
        part = x[:, i * stride[0]:i * stride[0] + w.shape[0],
                 j * stride[1]:j * stride[1] + w.shape[1]]
        out[:, i, j] = np.tensordot(part, w, 3)
    return out


def draw(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


COMBINATIONS = list(itertools.product(
    [(1, 1), (2, 3)], [((0, 0), (0, 0)), ((1, 2), (0, 1))], [(1, 1), (2, 1)], [(1, 1), (1, 2)],
    [(1, 1), (2, 1), (1, 2)]))


@pytest.mark.parametrize("stride,pairs,spacing,dilation,groups", COMBINATIONS)
def test_every_combination_agrees_with_a_loop_at_once_and_compiled(stride, pairs, spacing, dilation,
                                                                   groups):
    x, w = draw(2, 5, 6, 4), draw(2, 3, 4 // groups[0], 6)
    want = by_loops(x, w, stride, pairs, spacing, dilation, *groups)

    def function(x, w):
        return conv_general_dilated(x, w, stride, pairs, spacing, dilation, NHWC, *groups)
    assert_close(np.asarray(function(x, w)), want, length=24)
    assert_close(np.asarray(fgrad.jit(function)(x, w)), want, length=24)


@pytest.mark.parametrize("stride,pairs,spacing,dilation,groups", COMBINATIONS[::3])
def test_gradients_are_those_of_finite_differences_and_compile(stride, pairs, spacing, dilation,
                                                               groups):
    x, w = draw(2, 4, 4, 2).astype("f8"), draw(2, 3, 2 // groups[0], 2).astype("f8")

    def loss(x, w):
        return fnp.sum(fnp.sin(conv_general_dilated(x, w, stride, pairs, spacing, dilation, NHWC,
                                                    *groups)))
    fgrad.check_grads(loss, (x, w))
    at_once, compiled = fgrad.grad(loss, (0, 1))(x, w), fgrad.jit(fgrad.grad(loss, (0, 1)))(x, w)
    for a, b in zip(at_once, compiled):
        assert_close(np.asarray(b), np.asarray(a), length=64)


@pytest.mark.parametrize("shape,kernel",
                         [((1, 1, 1, 1), (1, 1)), ((1, 3, 3, 2), (5, 5)), ((0, 4, 4, 2), (3, 3)),
                                          ((2, 0, 4, 2), (1, 1)), ((3, 7, 1, 3), (3, 1))])
def test_small_odd_and_empty_sizes(shape, kernel):
    x, w = draw(*shape), draw(*kernel, shape[-1], 3)
    for padding in ("SAME", "VALID"):
        pairs = convolution.padding_pairs(padding, shape[1:3], kernel, (1, 1), (1, 1))
        want = by_loops(x, w, (1, 1), pairs)
        for function in (conv, fgrad.jit(conv, static_argnames="padding")):
            assert_close(np.asarray(function(x, w, padding=padding)), want, length=75)
    grads = fgrad.jit(fgrad.grad(lambda x, w: fnp.sum(conv(x, w)), (0, 1)))(x, w)
    assert [g.shape for g in grads] == [x.shape, w.shape]


def test_layouts_by_labels_agree():
    x, w = draw(2, 5, 4, 3), draw(3, 2, 3, 5)
    want = np.asarray(conv(x, w, padding="SAME"))
    first = conv_general_dilated(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (1, 1), "SAME")
    assert_close(np.asarray(first).transpose(0, 2, 3, 1), want, length=18)
    mixed = conv_general_dilated(x.transpose(1, 2, 0, 3), w, (1, 1), "SAME",
                                 dimension_numbers=("HWNC", "HWIO", "CWHN"))
    assert_close(np.asarray(mixed).transpose(3, 2, 1, 0), want, length=18)


def test_one_and_three_axes_agree_with_two():
    x, w = draw(2, 6, 3), draw(3, 3, 4)
    want = np.asarray(conv(x[:, :, None], w[:, None], padding=(1, 0)))[:, :, 0]
    assert_close(np.asarray(conv(x, w, padding=1)), want, length=9)
    deep = conv(x[:, None, :, None], w[None, :, None], padding=(0, 1, 0))
    assert_close(np.asarray(fgrad.jit(lambda: deep)())[:, 0, :, 0], want, length=9)


def test_vmap_over_either_and_both_arguments_is_a_loop():
    x, w = draw(3, 2, 5, 4, 2), draw(3, 3, 3, 2, 4)
    for axes in ((0, None), (None, 0), (0, 0)):
        got = fgrad.jit(fgrad.vmap(lambda x, w: conv(x, w, stride=2, padding=1), axes))(
            *[a if d == 0 else a[0] for a, d in zip((x, w), axes)])
        each = [conv(x[k] if axes[0] == 0 else x[0], w[k] if axes[1] == 0 else w[0], stride=2,
                     padding=1)
                for k in range(3)]
        assert_close(np.asarray(got), np.stack([np.asarray(y) for y in each]), length=18)


@pytest.mark.parametrize("stride,dilation", [*itertools.product((1, 2, 3), (1, 2))])
def test_conv_transpose_is_the_gradient_of_a_convolution(stride, dilation):
    x, w = draw(2, 11, 11, 3), draw(3, 3, 3, 4)
    y, back = fgrad.vjp(lambda x: conv(x, w, stride=stride, dilation=dilation), x)
    got = conv_transpose(y, w, stride, "VALID", dilation, transpose_kernel=True)
    want = np.asarray(back(y)[0])
    assert_close(np.asarray(got), want[:, :got.shape[1], :got.shape[2]], length=36)
    assert not want[:, got.shape[1]:].any()


def test_a_strided_gradient_multiplies_no_zeros():
    x = fgrad.ArrayType(np.dtype("f4"), (1, 9, 9, 2))
    w = fgrad.ArrayType(np.dtype("f4"), (3, 3, 2, 4))
    program = fgrad.make_ir(fgrad.grad(lambda x, w: fnp.sum(conv(x, w, stride=2) ** 2)))(x, w)
    assert "interior=(0,1,1,0)" not in str(program)


def test_groups_become_a_label_and_move_nothing():
    program = fgrad.make_ir(lambda x, w: conv(x, w, groups=2))(draw(1, 4, 4, 4), draw(3, 3, 2, 6))
    assert [e.op.name for e in program.eqns] == ["reshape", "reshape", "conv_general", "reshape"]


def test_f16_accumulates_in_f32():
    x, w = np.full((1, 1, 1, 4096), 1, "f2"), np.full((1, 1, 4096, 1), 1, "f2")
    assert float(conv(x, w)[0, 0, 0, 0]) == 4096 == float(fgrad.jit(conv)(x, w)[0, 0, 0, 0])


@pytest.mark.parametrize("channels, wanted, fix", [
    (4, 2, "feature_group_count=2"), (0, 2, None), (4, 0, None), (3, 2, None), (6, 2, None)])
def test_a_window_of_fewer_channels_may_be_one_of_groups(channels, wanted, fix):
    """Where x or w had none, the number of groups was a division by zero."""
    with pytest.raises(ShapeError, match=f"the window expects {wanted} channels") as error:
        conv(np.ones((1, 8, 8, channels), "f4"), np.ones((3, 3, wanted, 4), "f4"))
    assert ("feature_group_count" in str(error.value)) == (fix is not None)
    assert fix is None or fix in str(error.value)


def test_errors_say_what_does_not_fit():
    x, w = draw(1, 4, 4, 3), draw(3, 3, 2, 4)
    with pytest.raises(ShapeError, match="the window expects 2 channels, and x has 3"):
        conv(x, w)
    with pytest.raises(ShapeError, match="2 groups do not divide"):
        conv(x, w, groups=2)
    with pytest.raises(ShapeError, match="2 axes needs arrays of 4 axes"):
        conv(x[0], w)
    with pytest.raises(ArgumentError, match="there is no padding 'FULL'"):
        conv(x[..., :2], w, padding="FULL")
    with pytest.raises(ArgumentError, match="stride needs an int of at least 1, or 2 of them"):
        conv(x[..., :2], w, stride=(1, 2, 3))
    with pytest.raises(ShapeError, match="labels of its window in three arrays"):
        ops.conv_general(fnp.asarray(x), fnp.asarray(w), lhs="nhwi", rhs="hwio", to="nho",
                         window="hw", stride=(1, 1), dilation=(1, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("channels,features", [(1, 32), (3, 5), (16, 17)])
def test_products_in_parts_and_every_dtype_agree_with_the_reference(dtype, channels, features):
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 4, (4, 17, 15, channels)).astype(dtype)
    w = rng.integers(-3, 4, (3, 3, channels, features)).astype(dtype)
    function = lambda x, w: conv(x, w, stride=(1, 2), padding=1)
    y = function(x, w)
    assert_close(np.asarray(fgrad.jit(function)(x, w)), np.asarray(y), length=9 * channels)
    if dtype.startswith("float"):
        assert_compiled_agrees(function, x, w)


def assert_compiled_agrees(function, x, w):
    """The value and both gradients, compiled and not."""
    both = lambda x, w, y: (function(x, w), *fgrad.vjp(function, x, w)[1](y))
    y = function(x, w)
    for got, want in zip(fgrad.jit(both)(x, w, y), both(x, w, y), strict=True):
        assert_close(np.asarray(got), np.asarray(want), length=1000, slack=4)


@pytest.mark.parametrize("width,channels,features,stride", [
    (14, 4, 32, 1), (28, 6, 32, 1), (16, 12, 20, 1), (12, 8, 48, 1), (7, 3, 33, 1), (29, 5, 32, 2)])
def test_rows_of_tiles_that_lie_in_runs_of_any_length_agree(width, channels, features, stride):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((3, 9, width, channels), "float32")
    w = rng.standard_normal((3, 3, channels, features), "float32")
    function = lambda x, w: conv(x, w, stride=stride, padding=1)
    assert_compiled_agrees(function, x, w)


@pytest.mark.parametrize("channels,features,window,stride,dilation,pairs,groups", [
    (16, 32, 3, 1, 1, ((1, 1), (1, 1)), 1), (33, 20, 3, 1, 1, ((1, 1), (1, 1)), 1),
    (32, 17, 5, 2, 1, ((2, 1), (0, 3)), 1), (48, 64, 3, 1, 2, ((2, 2), (2, 2)), 1),
    (36, 8, 2, 3, 2, ((7, 0), (0, 9)), 2), (320, 16, 3, 1, 1, ((1, 1), (1, 1)), 1),
    (1031, 6, 1, 1, 1, ((1, 0), (0, 1)), 1), (64, 48, 3, 1, 1, ((0, 0), (4, 4)), 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_images_in_a_border_of_zeros_are_read_where_they_lie(channels, features, window, stride,
                                                             dilation, pairs, groups, dtype):
    rng = np.random.default_rng(11)
    x = rng.integers(-3, 4, (3, 7, 9, channels)).astype(dtype)
    w = rng.integers(-3, 4, (window, window, channels // groups, features)).astype(dtype)
    strides, dilations = (stride, stride), (dilation, dilation)

    def function(x, w):
        return fnp.maximum(conv_general_dilated(x, w, strides, pairs, None, dilations, NHWC,
                                                groups) + 1, 0)
    want = np.maximum(by_loops(x, w, strides, pairs, (1, 1), dilations, groups) + 1, 0)
    np.testing.assert_array_equal(np.asarray(fgrad.jit(function)(x, w)), want)
    if dtype == "float32":
        assert_compiled_agrees(function, x, w)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_zeros_of_a_border_times_what_is_not_finite_are_nan(value):
    x, w = draw(8, 12, 12, 32), draw(3, 3, 32, 32)
    w[0, 1, 5, 7] = value
    for features in (32, 20):
        function = lambda x: conv(x, w[..., :features], padding=1)
        assert_close(np.asarray(fgrad.jit(function)(x)), np.asarray(function(x)), length=288)


def by_windows(x, ct, window, stride, dilation, pairs, groups):
    """The gradient of a convolution's kernel, window by window."""
    x = np.pad(x, ((0, 0), *pairs, (0, 0)))
    height, width = ct.shape[1:3]
    out = []
    for i, j in np.ndindex(window, window):
        part = x[:, i * dilation:, j * dilation:][:, ::stride, ::stride][:, :height, :width]
        both = zip(np.split(part, groups, 3), np.split(ct, groups, 3))
        out.append(np.concatenate([np.tensordot(a, b, ((0, 1, 2),) * 2) for a, b in both], 1))
    return np.reshape(out, (window, window, *out[0].shape))


def grad_w(stride, dilation, pairs, groups):
    """(x, w, ct) → the gradient of the kernel, compiled."""
    def function(x, w, ct):
        def of(w):
            return conv_general_dilated(x, w, (stride,) * 2, pairs, None, (dilation,) * 2, NHWC,
                                        groups)
        return fgrad.vjp(of, w)[1](ct)[0]
    return function


@pytest.mark.parametrize("channels,features,window,stride,dilation,pairs,groups", [
    (16, 32, 3, 1, 1, ((1, 1), (1, 1)), 1), (33, 20, 3, 1, 1, ((1, 1), (1, 1)), 1),
    (32, 17, 5, 2, 1, ((2, 1), (0, 3)), 1), (48, 64, 3, 1, 2, ((2, 2), (2, 2)), 1),
    (36, 8, 2, 3, 2, ((7, 0), (0, 9)), 2), (13, 2, 3, 1, 1, ((9, 1), (11, 20)), 1),
    (64, 48, 3, 1, 1, ((0, 0), (4, 4)), 4), (12, 16, 2, 1, 3, ((2, 0), (0, 0)), 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernel_gradients_read_images_in_a_border_where_they_lie(channels, features, window, stride,
                                                                 dilation, pairs, groups, dtype):
    rng = np.random.default_rng(12)
    x = rng.integers(-3, 4, (3, 11, 17, channels)).astype(dtype)
    w = np.zeros((window, window, channels // groups, features), dtype)
    shape = conv_general_dilated(x, w, (stride,) * 2, pairs, None, (dilation,) * 2, NHWC,
                                 groups).shape
    ct = rng.integers(-3, 4, shape).astype(dtype)
    function = grad_w(stride, dilation, pairs, groups)
    want = by_windows(x, ct, window, stride, dilation, pairs, groups)
    np.testing.assert_array_equal(np.asarray(fgrad.jit(function)(x, w, ct)), want)


@pytest.mark.parametrize("width", [520, 263, 6])
@pytest.mark.parametrize("value", [0, np.inf])
def test_kernel_gradients_read_long_rows_of_an_image_strip_by_strip(width, value):
    rng = np.random.default_rng(width)
    x = rng.integers(-3, 4, (2, 3, width, 13)).astype("float32")
    ct = rng.integers(-3, 4, (2, 3, width, 5)).astype("float32")
    ct[1, 2, -1, 3] += value
    got = fgrad.jit(grad_w(1, 1, ((1, 1), (1, 1)), 1))(x, np.zeros((3, 3, 13, 5), "float32"), ct)
    with np.errstate(invalid="ignore"):
        want = by_windows(x, ct, 3, 1, 1, ((1, 1), (1, 1)), 1)
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("width, channels", [(9, 16), (4, 16), (12, 5), (7, 40)])
@pytest.mark.parametrize("stride", [1, 2])
def test_layers_in_borders_of_zeros_and_their_gradients_agree(width, channels, stride):
    x, first = draw(3, 8, width, channels), draw(3, 3, channels, channels)
    second = draw(3, 3, channels, 11)

    def loss(x, first, second):
        y = fnp.maximum(conv(x, first, padding=1) * 0.1, 0)
        return fnp.sum(fnp.tanh(conv(y, second, stride=stride, padding=1) * 0.1))
    function = fgrad.grad(loss, (0, 1, 2))
    for got, want in zip(fgrad.jit(function)(x, first, second), function(x, first, second)):
        assert_close(np.asarray(got), np.asarray(want), length=9 * channels)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_zeros_of_a_border_times_gradients_that_are_not_finite_are_nan(value):
    x, w, ct = draw(4, 12, 12, 32), draw(3, 3, 32, 20), draw(4, 12, 12, 20)
    ct[2, 0, 5, 7] = ct[3, 6, 11, 9] = value
    pairs = ((1, 1), (1, 1))
    got = np.asarray(fgrad.jit(grad_w(1, 1, pairs, 1))(x, w, ct))
    with np.errstate(invalid="ignore"):
        assert_close(got, by_windows(x, ct, 3, 1, 1, pairs, 1), length=576)


def test_what_lies_beside_an_image_is_not_read():
    x = np.full((3, 6, 6, 32), np.nan, "float32")
    x[1] = draw(6, 6, 32)
    w = draw(3, 3, 32, 16)
    function = fgrad.jit(lambda x: conv(x[1:2], w, padding=1))
    assert_close(np.asarray(function(x)), by_loops(x[1:2], w, (1, 1), ((1, 1), (1, 1))), length=288)


@pytest.mark.parametrize("height,width,channels,stride,window", [
    (7, 12, 33, 1, 3), (6, 9, 16, 1, 5), (8, 7, 8, 2, 3), (5, 1, 40, 1, 1), (9, 8, 17, 3, 4)])
def test_depthwise_gradients_of_any_size_agree(height, width, channels, stride, window):
    rng = np.random.default_rng(9)
    x = rng.standard_normal((3, height, width, channels), "float32")
    w = rng.standard_normal((window, window, 1, channels), "float32")
    function = lambda x, w: conv(x, w, stride=stride, padding=window // 2, groups=channels)
    assert_compiled_agrees(function, x, w)


@pytest.mark.parametrize("size,window,stride,padding", [
    (28, 3, 2, 1), (9, 3, 2, 1), (10, 5, 3, 2), (11, 4, 3, 0), (8, 2, 3, 1), (7, 5, 4, 3)])
def test_gradients_of_strided_convolutions_of_any_size_agree(size, window, stride, padding):
    rng = np.random.default_rng(10)
    x = rng.standard_normal((2, size, size + 1, 5), "float32")
    w = rng.standard_normal((window, window, 5, 9), "float32")
    function = lambda x, w: conv(x, w, stride=stride, padding=padding)
    assert_compiled_agrees(function, x, w)


@pytest.mark.parametrize("kernel,stride", [
    ((2, 3), (2, 2)), ((3, 2), (2, 2)), ((4, 3), (2, 2)), ((3, 5), (3, 2)), ((6, 4), (2, 3)),
    ((2, 3, 4), (2, 2, 2)), ((4, 3, 2), (2, 2, 2))])
def test_strides_that_divide_the_window_along_some_axes_only(kernel, stride):
    """A window of 2×3 in steps of 2 was cut into its phases along the rows twice."""
    x = draw(2, *[k + 2 * s for k, s in zip(kernel, stride)], 2).astype("f8")
    w = draw(*kernel, 2, 3).astype("f8")

    def loss(x, w):
        return fnp.sum(fnp.sin(conv(x, w, stride=stride)))
    fgrad.check_grads(loss, (x, w))
    at_once, compiled = fgrad.grad(loss, (0, 1))(x, w), fgrad.jit(fgrad.grad(loss, (0, 1)))(x, w)
    for a, b in zip(at_once, compiled):
        assert_close(np.asarray(b), np.asarray(a), length=64)
    if len(kernel) == 2:
        def spaced(x, w):
            return conv_general_dilated(x, w, (1, 3), ((1, 0), (0, 1)), stride, None, NHWC)
        want = by_loops(x, w, (1, 3), ((1, 0), (0, 1)), stride)
        for function in (spaced, fgrad.jit(spaced)):
            assert_close(np.asarray(function(x, w)), want, length=64)


@pytest.mark.parametrize("dtype, wanted", [("int8", "int32"), ("float16", "float32"),
                                           ("float32", "float64")])
def test_products_are_added_up_in_the_type_that_is_preferred(dtype, wanted):
    rng = np.random.default_rng(0)
    x, w = rng.integers(-100, 100, (2, 9, 16)).astype(dtype), rng.integers(-100, 100, (8, 16, 3))
    w = w.astype(dtype)
    run = lambda x, w: conv_general_dilated(x, w, (1,), "VALID", dimension_numbers=(
        "NWC", "OIW", "NWC"), preferred_element_type=wanted)
    want = sum(np.einsum("nwc,oc->nwo", x[:, k:k + 7].astype("f8"), w[..., k].astype("f8"))
               for k in range(3))
    for got in (run(x, w), fgrad.jit(run)(x, w)):
        assert got.dtype == wanted
        np.testing.assert_array_equal(np.asarray(got), want)
