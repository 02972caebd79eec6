"""Layers: shapes, names, errors that name the layer, training and evaluation."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, random
from fgrad.errors import ArgumentError, ShapeError


class Keys:
    """A new random key, the same in every run, each time it is asked for."""
    count = 0

    def __call__(self):
        self.count += 1
        return random.key(self.count)


key = Keys()


def test_dense_is_a_matrix_product_and_a_bias():
    layer, x = nn.Dense(2), fnp.arange(6.0).reshape(2, 3)
    params, state = layer.init(key(), x)
    params["b"] = fnp.array([1.0, 2.0])
    y, after = layer.apply(params, state, x)
    np.testing.assert_allclose(y, np.asarray(x) @ np.asarray(params["w"]) + [1, 2], rtol=1e-6)
    assert after == {} == state


def test_dense_without_bias_has_one_parameter():
    assert set(nn.Dense(2, bias=False).init(key(), fnp.ones((1, 3)))[0]) == {"w"}


def test_linear_takes_torch_arguments_and_checks_them():
    params, _ = nn.Linear(3, 2).init(key(), fnp.ones((1, 3)))
    assert params["w"].shape == (3, 2)
    with pytest.raises(ShapeError, match=r"Linear\(3, 2\): the input has 4 features"):
        nn.Linear(3, 2).init(key(), fnp.ones((1, 4)))


def test_sequential_names_its_parameters_and_takes_functions():
    model = nn.Sequential(nn.Flatten(), nn.Dense(4), nn.relu, nn.Dense(3), fnp.tanh)
    params, state = model.init(key(), fnp.ones((2, 2, 3)))
    assert sorted(params) == ["dense1", "dense2"]
    assert params["dense1"]["w"].shape == (6, 4) and params["dense2"]["b"].shape == (3,)
    assert model.apply(params, state, fnp.ones((5, 2, 3)))[0].shape == (5, 3)


def test_a_model_can_be_initialised_from_a_type_alone():
    x = fgrad.ArrayType(np.dtype("f4"), (1, 3))
    params, _ = nn.Sequential(nn.Dense(4), nn.Dense(1)).init(key(), x)
    assert params["dense2"]["w"].shape == (4, 1)


def test_a_wrong_input_names_the_layer_and_both_sizes():
    model = nn.Sequential(nn.Dense(4), nn.tanh, nn.Dense(2))
    params, state = model.init(key(), fnp.ones((1, 3)))
    with pytest.raises(ShapeError) as error:
        model.apply(params, state, fnp.ones((1, 5)))
    assert str(error.value).startswith(
        "in layer 'dense1': dense: the input has 5 features, the weight expects 3.")
    assert "x: f32[1,5]" in str(error.value) and "w: f32[3,4]" in str(error.value)


def test_dropout_scales_what_it_keeps_and_rests_in_evaluation():
    layer, x = nn.Dropout(0.25), fnp.ones(10_000)
    y = np.asarray(layer.apply({}, {}, x, train=True, key=key())[0])
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.75)}
    assert abs(y.mean() - 1) < 0.03
    assert layer.apply({}, {}, x)[0] is x


def test_dropout_without_a_key_or_with_a_wrong_rate_is_explained():
    with pytest.raises(ArgumentError, match="needs a random key in training"):
        nn.Dropout(0.5).apply({}, {}, fnp.ones(2), train=True)
    with pytest.raises(ArgumentError, match=r"the rate 1.5 is not in \[0, 1\)"):
        nn.Dropout(1.5)


def test_layers_are_static_arguments_of_jit():
    @fgrad.jit
    def run(model, params, x):
        return model.apply(params, {}, x)[0]
    model, x = nn.Sequential(nn.Dense(4), nn.relu, nn.Dense(2)), fnp.ones((3, 5))
    params, _ = model.init(key(), x)
    np.testing.assert_allclose(run(model, params, x), model.apply(params, {}, x)[0], rtol=1e-6)


@pytest.mark.parametrize("make, variance", [
    (nn.init.glorot_uniform, 2 / (300 + 200)), (nn.init.glorot_normal, 2 / (300 + 200)),
    (nn.init.he_uniform, 2 / 300), (nn.init.he_normal, 2 / 300),
    (nn.init.lecun_uniform, 1 / 300), (nn.init.lecun_normal, 1 / 300)])
def test_initialisers_have_the_stated_variance(make, variance):
    w = np.asarray(make()(key(), (300, 200)))
    assert abs(w.var() / variance - 1) < 0.05 and abs(w.mean()) < 3 * (variance / w.size) ** 0.5


def test_an_initialiser_needs_two_axes():
    with pytest.raises(ArgumentError, match="needs at least two axes"):
        nn.init.he_normal()(key(), (3,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("layer", [nn.LayerNorm(), nn.RMSNorm(), nn.BatchNorm(), nn.GroupNorm(1),
                                   nn.InstanceNorm()], ids=lambda layer: layer.name)
def test_statistics_of_16_bit_floats_do_not_overflow(layer, dtype):
    x = fnp.array([[[0.0, 1000.0], [500.0, -2000.0]]])
    params, state = layer.init(fgrad.random.key(0), x.astype(dtype))
    y, after = layer.apply(params, state, x.astype(dtype), train=True)
    wide, _ = layer.apply(params, state, x, train=True)
    assert y.dtype == dtype and {str(v.dtype) for v in after.values()} <= {"float32"}
    assert fnp.allclose(y.astype("float32"), wide, atol=0.02)
    if layer.name == "layernorm":
        assert fnp.allclose(nn.standardize(x.astype(dtype)).astype("float32"), wide, atol=0.02)


@pytest.mark.parametrize("padding", [True, False])
def test_means_of_windows_are_added_up_in_32_bits(padding):
    layer, wide = nn.AvgPool((2,), count_padding=padding), fnp.full((1, 2, 1), 4e4, "float16")
    plain = lambda x: layer.apply({}, {}, x)[0]
    for run in (plain, fgrad.jit(plain)):
        assert run(wide).dtype == "float16" and run(wide) == 4e4
        assert run(fnp.array([[[100], [200]]], "uint8")) == 150.0
        assert run(fnp.array([[[True], [False]]])) == 0.5


@pytest.mark.parametrize("layer", [nn.RNN(2), nn.GRU(2), nn.LSTM(2), nn.Bidirectional(nn.RNN(1))])
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4)])
def test_recurrent_layers_take_nothing(layer, shape):
    params, _ = layer.init(random.key(0), fnp.ones((1, 3, 4)))
    assert layer.apply(params, {}, fnp.ones(shape))[0].shape == (*shape[:2], 2)


def test_integers_are_not_squared_in_8_bits():
    assert (nn.RMSNorm(affine=False).apply({}, {}, fnp.array([[100, 100]], "int8"))[0] == 1).all()


@pytest.mark.parametrize("layer", [nn.RNN(2), nn.GRU(2), nn.LSTM(2)])
@pytest.mark.parametrize("narrow, wide", [("bfloat16", "float32"), ("float16", "float32"),
                                          ("float32", "float64"), ("float64", "float32")])
def test_recurrent_layers_take_inputs_of_another_dtype_than_their_weights(layer, narrow, wide):
    x = fnp.ones((1, 3, 4), wide)
    params, _ = layer.init(random.key(0), x)
    want = nn.Dense(2).apply(nn.Dense(2).init(random.key(0), x)[0], {}, x.astype(narrow))[0].dtype
    assert layer.apply(params, {}, x.astype(narrow))[0].dtype == want
