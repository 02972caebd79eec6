"""Convolution, pooling and normalisation layers: shapes, values, state, the layer's errors."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, random
from fgrad.errors import ArgumentError, ShapeError
from tests.tolerance import assert_close


class Keys:
    """A new random key, the same in every run, each time it is asked for."""
    count = 0

    def __call__(self):
        self.count += 1
        return random.key(self.count)


key = Keys()


def draw(*shape):
    return fnp.array(np.random.default_rng(shape).standard_normal(shape).astype("float32"))


def applied(layer, x, **rest):
    """(y, params, state after) of a layer with fresh parameters."""
    params, state = layer.init(key(), x)
    y, after = layer.apply(params, state, x, **rest)
    return y, params, after


@pytest.mark.parametrize("kernel,stride,padding,want", [
    ((3,), 1, "SAME", (7,)), ((3, 2), 2, "SAME", (4, 3)), ((3, 3), 1, "VALID", (5, 4)),
    ((2, 2), (1, 3), 1, (8, 3)),
    ((2, 1, 3), 1, ((1, 0), 0, (2, 2)), (7, 6, 7)), ((7, 6), 1, "VALID", (1, 1))])
def test_conv_over_one_to_three_axes(kernel, stride, padding, want):
    x = draw(2, *(7, 6, 5)[:len(kernel)], 3)
    y, params, _ = applied(nn.Conv(4, kernel, stride=stride, padding=padding), x)
    assert y.shape == (2, *want, 4)
    assert params["w"].shape == (*kernel, 3, 4) and params["b"].shape == (4,)


def test_conv_of_size_one_is_dense():
    x = draw(2, 3, 5, 4)
    y, params, _ = applied(nn.Conv(6, (1, 1)), x)
    assert_close(y, np.asarray(x) @ np.asarray(params["w"])[0, 0], length=4)


def test_groups_see_their_own_channels():
    x = draw(1, 5, 5, 4)
    layer = nn.Conv(6, (3, 3), groups=2, bias=False)
    y, params, _ = applied(layer, x)
    assert params["w"].shape == (3, 3, 2, 6)
    halves = [nn.Conv(3, (3, 3), bias=False).apply({"w": params["w"][..., 3 * g:3 * g + 3]}, {},
                                                   x[..., 2 * g:2 * g + 2])[0]
              for g in (0, 1)]
    assert_close(y, np.concatenate([np.asarray(h) for h in halves], -1), length=18)


def test_torch_like_layers_check_their_channels():
    y, _, _ = applied(nn.Conv2d(3, 8, 3, stride=2, padding=1), draw(1, 8, 8, 3))
    assert y.shape == (1, 4, 4, 8)
    with pytest.raises(ShapeError, match=r"Conv2d\(3, 8\): the input has 4 channels"):
        nn.Conv2d(3, 8, 3).init(key(), draw(1, 8, 8, 4))


def test_conv_transpose_sizes_are_those_of_torch():
    options = (2, 2, 0, 1), (3, 2, 1, 1), (4, 3, 1, 1), (3, 2, 0, 2)
    for kernel, stride, padding, dilation in options:
        layer = nn.ConvTranspose(2, kernel, stride=stride, padding=padding, dilation=dilation)
        y, _, _ = applied(layer, draw(1, 5, 4, 3))
        want = [(n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 for n in (5, 4)]
        assert y.shape == (1, *want, 2)


def test_conv_transpose_spreads_its_kernel():
    x = fnp.zeros((1, 3, 1)).at[0, 1, 0].set(1.0)
    layer = nn.ConvTranspose(1, (3,), stride=2, padding=0, bias=False)
    y, _ = layer.apply({"w": fnp.array([[[1.0]], [[2.0]], [[3.0]]])}, {}, x)
    assert y.ravel().tolist() == [0, 0, 3, 2, 1, 0, 0]


def test_transposed_groups_see_their_own_channels():
    x = draw(1, 4, 3, 4)
    layer = nn.ConvTranspose(6, (3, 3), stride=2, groups=2, bias=False)
    y, params, _ = applied(layer, x)
    assert params["w"].shape == (3, 3, 2, 6)
    halves = [nn.ConvTranspose(3, (3, 3), stride=2, bias=False).apply(
        {"w": params["w"][..., 3 * g:3 * g + 3]}, {}, x[..., 2 * g:2 * g + 2])[0] for g in (0, 1)]
    assert_close(y, np.concatenate([np.asarray(h) for h in halves], -1), length=18)


def test_a_separable_convolution_mixes_channels_last():
    layer = nn.DepthwiseSeparable(4, 6, stride=2)
    y, params, _ = applied(layer, draw(2, 8, 8, 4))
    assert y.shape == (2, 4, 4, 6) and set(params) == {"conv1", "conv2"}


def test_wrong_inputs_name_the_layer():
    with pytest.raises(ShapeError,
                       match="Conv: 2 axes with a batch and channels around them are 4 axes"):
        nn.Conv(4, (3, 3)).init(key(), draw(8, 8, 3))
    with pytest.raises(ShapeError, match="Conv: 2 groups do not divide 3 channels"):
        nn.Conv(4, (3, 3), groups=2).init(key(), draw(1, 8, 8, 3))
    with pytest.raises(ArgumentError, match="Conv: the kernel is a tuple"):
        nn.Conv(4, 3.0)
    assert nn.Conv(4, 3) == nn.Conv(4, (3, 3)) and nn.ConvTranspose(4, 2).kernel == (2, 2)
    params, _ = nn.Conv(4, (3, 3)).init(key(), draw(1, 8, 8, 3))
    with pytest.raises(ShapeError, match="Conv: the input has 2 channels, the weight expects 3"):
        nn.Conv(4, (3, 3)).apply(params, {}, draw(1, 8, 8, 2))
    model = nn.Sequential(nn.Conv(4, (3, 3)))
    with pytest.raises(ShapeError, match="in layer 'conv1': Conv: the input has 2 channels"):
        model.apply({"conv1": params}, {}, draw(1, 8, 8, 2))


# ---------------------------------------------------------------------------- pooling

def test_pooling_by_hand():
    x = fnp.arange(16.0).reshape(1, 4, 4, 1)
    assert applied(nn.MaxPool((2, 2)), x)[0].ravel().tolist() == [5, 7, 13, 15]
    assert applied(nn.AvgPool((2, 2)), x)[0].ravel().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert applied(nn.MaxPool((3, 3), 2, 1), x)[0].ravel().tolist() == [5, 7, 13, 15]
    assert applied(nn.GlobalAvgPool(), x)[0].tolist() == [[7.5]]
    assert applied(nn.AdaptiveAvgPool((2, 1)), x)[0].ravel().tolist() == [3.5, 11.5]


def test_adaptive_windows_that_do_not_come_out_even_share_places():
    x = fnp.arange(7.0).reshape(1, 7, 1)
    mean, most = nn.AdaptiveAvgPool((3,)), nn.AdaptiveMaxPool((3,))
    assert applied(mean, x)[0].ravel().tolist() == [1, 3, 5]       # 0..3, 2..5, 4..7, as in torch
    assert applied(most, x)[0].ravel().tolist() == [2, 4, 6]
    assert applied(mean, fnp.ones((1, 2, 1)))[0].shape == (1, 3, 1)


def test_padding_counts_in_a_mean_or_not():
    x = fnp.ones((1, 2, 2, 1))
    assert applied(nn.AvgPool((2, 2), 1, 1), x)[0][0, :, :, 0].tolist() == [[0.25, 0.5, 0.25],
                                                                            [0.5, 1, 0.5],
                                                                            [0.25, 0.5, 0.25]]
    assert applied(nn.AvgPool((2, 2), 1, 1, count_padding=False), x)[0].ravel().tolist() == [1] * 9


def test_pooling_errors_name_the_layer():
    with pytest.raises(ShapeError, match="MaxPool: a window of 2 axes needs 4 axes"):
        applied(nn.MaxPool((2, 2)), draw(4, 4, 1))
    with pytest.raises(ArgumentError, match="AvgPool: the window is a tuple"):
        nn.AvgPool(2)
    with pytest.raises(ShapeError, match="windows need 4 axes"):
        applied(nn.AdaptiveAvgPool((2, 2)), draw(1, 3, 1))


# ---------------------------------------------------------------------------- normalisation

def test_batch_norm_normalises_and_moves_its_statistics():
    x = draw(4, 3, 5, 2) * 3 + 1
    y, _, after = applied(nn.BatchNorm(epsilon=0.0), x, train=True)
    np.testing.assert_allclose(np.mean(y, (0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(np.var(np.asarray(y), (0, 1, 2)), 1, rtol=1e-5)
    np.testing.assert_allclose(after["mean"], 0.1 * np.mean(x, (0, 1, 2)), rtol=1e-4)
    np.testing.assert_allclose(after["variance"],
                               0.9 + 0.1 * np.var(np.asarray(x), (0, 1, 2), ddof=1), rtol=1e-4)


def test_batch_norm_evaluates_by_its_running_statistics():
    layer, x = nn.BatchNorm(epsilon=0.0), draw(4, 2)
    params, _ = layer.init(key(), x)
    state = {"mean": fnp.array([1.0, 2.0]), "variance": fnp.array([4.0, 9.0])}
    y, after = layer.apply(params, state, x)
    np.testing.assert_allclose(y, (np.asarray(x) - [1, 2]) / [2, 3], rtol=1e-5)
    assert after is state


def test_a_batch_of_one_keeps_finite_statistics():
    _, _, after = applied(nn.BatchNorm(), draw(1, 3), train=True)
    assert np.isfinite(np.asarray(after["variance"])).all()


@pytest.mark.parametrize("layer,axes",
                         [(nn.LayerNorm(epsilon=0.0), (3,)),
                          (nn.GroupNorm(epsilon=0.0, groups=1), (1, 2, 3)),
                                        (nn.GroupNorm(epsilon=0.0, groups=4), (1, 2))])
def test_layer_and_group_norms_have_mean_zero_and_deviation_one(layer, axes):
    y, params, _ = applied(layer, draw(2, 3, 5, 4) * 2 + 3)
    np.testing.assert_allclose(np.mean(y, axes), 0, atol=1e-5)
    np.testing.assert_allclose(np.std(np.asarray(y), axes), 1, rtol=1e-4)
    assert params["scale"].shape == (4,)


def test_rms_norm_divides_by_the_root_of_the_mean_square():
    x = draw(2, 6)
    y, params, _ = applied(nn.RMSNorm(), x)
    squares = np.mean(np.asarray(x)**2, -1, keepdims=True)
    np.testing.assert_allclose(y, np.asarray(x) / np.sqrt(squares + 1e-5), rtol=1e-5)
    assert set(params) == {"scale"}


def test_norm_errors_name_the_layer():
    with pytest.raises(ShapeError, match="GroupNorm: 3 groups do not divide 4 channels"):
        applied(nn.GroupNorm(groups=3), draw(1, 2, 4))
    with pytest.raises(ArgumentError, match="the momentum 2 is not"):
        nn.BatchNorm(momentum=2)
    params, _ = nn.LayerNorm().init(key(), draw(1, 3))
    with pytest.raises(ShapeError, match="layernorm: 'scale' has the shape"):
        nn.LayerNorm().apply(params, {}, draw(1, 4))


def test_a_small_network_compiles_to_what_it_is_and_differentiates():
    model = nn.Sequential(nn.Conv(4, (3, 3), bias=False), nn.BatchNorm(), nn.relu,
                          nn.MaxPool((2, 2)), nn.Conv(6, (3, 3), stride=2),
                          nn.GroupNorm(groups=3), nn.relu, nn.GlobalAvgPool(), nn.Dense(3))
    x = draw(3, 9, 8, 2)
    params, state = model.init(key(), x)

    def loss(params, x):
        y, after = model.apply(params, state, x, train=True)
        return fnp.mean(fnp.sin(y)), after
    gradient = fgrad.value_and_grad(loss, has_aux=True)
    at_once, compiled = gradient(params, x), fgrad.jit(gradient)(params, x)
    for a, b in zip(fgrad.tree.leaves(at_once), fgrad.tree.leaves(compiled)):
        np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=2e-4, atol=2e-5)
    fgrad.check_grads(lambda p: loss(p, x.astype("float64"))[0], (params,), order=1)
