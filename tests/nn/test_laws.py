"""Laws that every layer, activation, loss and initialiser keeps; all are found by themselves."""

import inspect

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, random, tree
from fgrad.errors import ArgumentError
from fgrad.nn import activations
from fgrad.nn.layers import Layer
from fgrad.nn.norm import Norm
from fgrad.nn.pool import Pool
from fgrad.nn.recurrent import Recurrent

RNG = np.random.default_rng(5)
IMAGES, SEQUENCE = (2, 6, 6, 4), (2, 5, 6)

# name → (the layer, shape of its inputs)
LAYERS = {
    "Activation": (nn.Activation(fnp.tanh), (2, 3)),
    "AdaptiveAvgPool": (nn.AdaptiveAvgPool((2, 3)), IMAGES),
    "AdaptiveMaxPool": (nn.AdaptiveMaxPool((4, 5)), IMAGES),
    "AvgPool": (nn.AvgPool((2, 2), padding="SAME", count_padding=False), (2, 5, 5, 4)),
    "BatchNorm": (nn.BatchNorm(), IMAGES), "LayerNorm": (nn.LayerNorm(), SEQUENCE),
    "Bidirectional": (nn.Bidirectional(nn.GRU(3)), SEQUENCE),
    "ChannelsFirst": (nn.ChannelsFirst(nn.Conv(3, (3, 3))), (2, 4, 5, 6)),
    "Conv": (nn.Conv(3, (3, 3), stride=2), IMAGES),
    "ConvTranspose": (nn.ConvTranspose(3, (3, 3), stride=2), IMAGES),
    "Dense": (nn.Dense(3), SEQUENCE), "Dropout": (nn.Dropout(0.3, spatial=True), IMAGES),
    "Flatten": (nn.Flatten(), IMAGES), "GRU": (nn.GRU(3), SEQUENCE),
    "GlobalAvgPool": (nn.GlobalAvgPool(), IMAGES), "GlobalMaxPool": (nn.GlobalMaxPool(), IMAGES),
    "GroupNorm": (nn.GroupNorm(groups=2), IMAGES), "InstanceNorm": (nn.InstanceNorm(), IMAGES),
    "LSTM": (nn.LSTM(3, sequence=False, backwards=True), SEQUENCE),
    "Lambda": (nn.Lambda(lambda x: x[:, 0]), SEQUENCE), "MaxPool": (nn.MaxPool((2, 2)), IMAGES),
    "MultiHeadAttention": (nn.MultiHeadAttention(2, groups=1, is_causal=True), (2, 5, 8)),
    "Parallel": (nn.Parallel(nn.Dense(2), nn.BatchNorm(), fnp.tanh), SEQUENCE),
    "Positions": (nn.Positions(7), SEQUENCE), "RMSNorm": (nn.RMSNorm(), SEQUENCE),
    "RNN": (nn.RNN(3), SEQUENCE),
    "Residual": (nn.Residual(nn.Dense(3), nn.Dense(3, bias=False)), SEQUENCE),
    "Sequential": (nn.Sequential(nn.Dense(4), nn.BatchNorm(), nn.relu, nn.Dropout(0.5)), (4, 3)),
    "TransformerBlock": (nn.TransformerBlock(2, width=8, rotary=True, dropout=0.1), (2, 5, 8)),
}
ABSTRACT = {Layer, Norm, Pool, Recurrent}
# Embedding takes numbers of rows, which have no gradient: it has tests of its own.
EXEMPT = {"Embedding", "Layer"}


def prepared(name):
    """(layer, params, state, x)."""
    layer, shape = LAYERS[name]
    x = fnp.asarray(RNG.standard_normal(shape).astype("float32"))
    return layer, *layer.init(random.key(3), x), x


def test_every_layer_is_in_the_table():
    found = {n for n in nn.__all__ if inspect.isclass(c := getattr(nn, n)) and issubclass(c, Layer)}
    assert found - EXEMPT == set(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_compiled_and_eager_layers_agree(name):
    layer, params, state, x = prepared(name)
    for train in (False, True):
        def apply(params, state, x, key, train=train):
            return layer.apply(params, state, x, train=train, key=key)
        eager = apply(params, state, x, random.key(0))
        compiled = fgrad.jit(apply)(params, state, x, random.key(0))
        assert tree.structure(eager) == tree.structure(compiled)
        for a, b in zip(tree.leaves(eager), tree.leaves(compiled)):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers_are_those_of_finite_differences(name):
    layer, params, state, x = prepared(name)
    wide = tree.map(lambda a: a.astype("float64"), (params, state, x))

    def loss(params, x):
        y, _ = layer.apply(params, wide[1], x)
        return fnp.sum(fnp.sin(y) * fnp.arange(y.size).reshape(y.shape))
    fgrad.check_grads(loss, (wide[0], wide[2]), order=1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", LAYERS)
def test_evaluation_takes_examples_one_by_one(name):
    layer, params, state, x = prepared(name)
    together, after = layer.apply(params, state, x)
    alone = fgrad.vmap(lambda row: layer.apply(params, state, row[None])[0][0])(x)
    np.testing.assert_allclose(together, alone, rtol=2e-5, atol=2e-5)
    assert tree.structure(after) == tree.structure(state)


@pytest.mark.parametrize("name", LAYERS)
def test_init_needs_a_type_only_and_keeps_the_dtype(name):
    layer, params, _, x = prepared(name)
    again, _ = layer.init(random.key(3), fgrad.ArrayType(x.dtype, x.shape))
    for a, b in zip(tree.leaves(params), tree.leaves(again)):
        np.testing.assert_array_equal(a, b)
    half, half_state = layer.init(random.key(3), x.astype("float16"))
    y, _ = layer.apply(half, half_state, x.astype("float16"))
    assert {leaf.dtype.name for leaf in tree.leaves((half, y))} == {"float16"}


# ---------------------------------------------------------------------------- activations, losses

ACTIVATIONS = [name for name in nn.__all__
               if getattr(vars(activations).get(name), "__module__", "") == "fgrad.nn.activations"
               and name not in ("log1mexp", "one_hot", "prelu", "standardize")]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_gradients_stay_finite_at_large_inputs(name):
    function = getattr(nn, name)
    for dtype in ("float32", "float64"):
        x = fnp.array([-1e4, -30.0, -1.0, 0.0, 1.0, 30.0, 1e4, 0.5], dtype)
        y = function(x)
        grad = fgrad.grad(lambda x: fnp.sum(function(x)))(x)
        assert np.isfinite(np.asarray(y)).all() and np.isfinite(np.asarray(grad)).all()
        assert y.dtype == x.dtype == grad.dtype


def test_there_are_twenty_activations_and_twelve_initialisers():
    assert len(set(ACTIVATIONS)) >= 20
    made = [n for n, f in vars(nn.init).items()
            if getattr(f, "__module__", "") == nn.init.__name__]
    assert len(made) >= 12


PAIRS = ("absolute_error", "hinge", "huber", "log_cosh", "sigmoid_binary_cross_entropy",
         "sigmoid_focal", "squared_error")


@pytest.mark.parametrize("size, dtype",
                         [(1.0, "float32"), (1e4, "float32"), (1e4, "float16")])
def test_losses_of_logits_are_finite_with_finite_gradients(size, dtype):
    x = fnp.asarray(np.clip(RNG.standard_normal((4, 6)), -1, 1) * size).astype(dtype)
    labels, ones = fnp.array([0, 5, 2, 2]), (fnp.ones((4, 6)) / 6).astype(dtype)
    losses = {
        "integer": lambda x: nn.softmax_cross_entropy_with_integer_labels(x, labels, 0.1, ignore=2),
        "soft": lambda x: nn.softmax_cross_entropy(x, ones),
        "nll": lambda x: nn.nll(nn.log_softmax(x), labels),
        "kl": lambda x: nn.kl_divergence(nn.log_softmax(x), ones),
        "cosine": lambda x: nn.cosine_distance(x, x[::-1]),
        "triplet": lambda x: nn.triplet(x, x, x[::-1]),
        "ctc": lambda x: nn.ctc(x[None], fnp.array([[1, 2]]), fnp.array([4]), fnp.array([2])),
    } | {name: lambda x, name=name: getattr(nn, name)(x, ones) for name in PAIRS}
    if dtype == "float16":
        del losses["squared_error"]              # a square of 1e4 is beyond 16 bits
    for name, loss in losses.items():
        assert np.isfinite(np.asarray(loss(x))).all() and loss(x).dtype == dtype, name
        grad = fgrad.jit(fgrad.grad(lambda x, loss=loss: fnp.sum(loss(x))))(x)
        assert np.isfinite(np.asarray(grad)).all(), name


def test_cosine_and_triplet_have_gradients_at_zero():
    zero = fnp.zeros(3)
    for loss in (lambda x: nn.cosine_distance(x, fnp.ones(3)), lambda x: nn.triplet(x, x, zero)):
        assert np.isfinite(np.asarray(fgrad.grad(loss)(zero))).all()


# ---------------------------------------------------------------------------- initialisers

WIDE = {"zeros": (0, 0), "ones": (1, 0), "constant": (2, 0), "normal": (0, 0.01),
        "uniform": (0.005, 0.01 / 12**0.5), "truncated_normal": (0, 0.0088),
        "glorot_uniform": (0, (2 / 300)**0.5), "glorot_normal": (0, (2 / 300)**0.5),
        "he_uniform": (0, (2 / 200)**0.5), "he_normal": (0, (2 / 200)**0.5),
        "lecun_uniform": (0, (1 / 200)**0.5), "lecun_normal": (0, (1 / 200)**0.5),
        "orthogonal": (0, (1 / 200)**0.5)}


@pytest.mark.parametrize("name", WIDE)
def test_initialisers_have_the_mean_and_deviation_they_promise(name):
    function = getattr(nn.init, name)
    draw = {"zeros": function, "ones": function}.get(name) or (
        function(2.0) if name == "constant" else function())
    w = np.asarray(draw(random.key(1), (200, 100), "float32"))
    mean, deviation = WIDE[name]
    assert w.shape == (200, 100) and w.dtype == "float32"
    assert abs(w.mean() - mean) <= 0.05 * deviation + 1e-3 and abs(w.std() - deviation) <= (
        0.03 * deviation)


def test_orthogonal_weights_keep_lengths_and_delta_sits_in_the_middle():
    w = np.asarray(nn.init.orthogonal(2.0)(random.key(0), (3, 3, 4, 8), "float64"), "f8")
    flat = w.reshape(36, 8)
    np.testing.assert_allclose(flat.T @ flat, 4 * np.eye(8), atol=1e-5)
    w = np.asarray(nn.init.delta_orthogonal()(random.key(0), (3, 3, 4, 8)))
    np.testing.assert_allclose(w[1, 1] @ w[1, 1].T, np.eye(4), atol=1e-5)
    assert np.abs(w).sum() == pytest.approx(np.abs(w[1, 1]).sum())


def test_a_convolution_with_the_identity_gives_its_input():
    layer, x = nn.Conv(4, (3, 3), kernel_init=nn.init.identity()), fnp.asarray(
        RNG.standard_normal(IMAGES).astype("float32"))
    params, state = layer.init(random.key(0), x)
    np.testing.assert_allclose(layer.apply(params, state, x)[0], x, atol=1e-6)


# what jax.nn.initializers (jax 0.10) draw for key 3 and the shape (3, 2)
DRAWN = {
    "he_normal": ({}, [-1.225178, 1.293141, 0.338146, 1.563824, -0.517846, 0.18542]),
    "glorot_uniform": ({}, [-0.933204, 0.959926, 0.326348, 1.042033, -0.48555, 0.181708]),
    "lecun_normal": ({"in_axis": 0, "out_axis": 1},
                     [-0.866332, 0.914389, 0.239105, 1.10579, -0.366173, 0.131112]),
    "orthogonal": ({"scale": 2.0},
                   [-1.799642, 0.560673, 0.47597, 1.915173, -0.731261, -0.133257]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_initialisers_draw_the_numbers_of_jax(name):
    options, want = DRAWN[name]
    w = getattr(nn.initializers, name)(**options)(random.key(3), (3, 2))
    np.testing.assert_allclose(np.asarray(w).ravel(), want, atol=3e-6)
    assert nn.initializers is nn.init and w.dtype == "float32"


def test_an_unknown_way_to_scale_is_explained():
    with pytest.raises(ArgumentError, match="needs a mode and a distribution"):
        nn.init.variance_scaling(1.0, "in", "normal")
