"""Combinators, recurrent states, summaries, and parameters chosen by path."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, random, tree
from fgrad.errors import ArgumentError, ShapeError, TreeError

X = fnp.asarray(np.random.default_rng(4).standard_normal((3, 4)).astype("float32"))
MODEL = nn.Sequential(nn.Dense(5), nn.tanh, nn.Dense(2))


def test_a_residual_adds_its_input_or_its_shortcut():
    layer = nn.Residual(fnp.tanh)
    np.testing.assert_allclose(layer.apply({}, {}, X)[0], np.tanh(X) + np.asarray(X), rtol=1e-6)
    with pytest.raises(ShapeError, match="give different shapes"):
        wrong = nn.Residual(nn.Dense(3))
        wrong.apply(*wrong.init(random.key(0), X), X)


def test_a_wrong_shape_inside_of_layers_names_the_whole_path():
    model = nn.Sequential(nn.Residual(nn.Sequential(nn.Dense(4), nn.tanh)), nn.Dense(2))
    params, state = model.init(random.key(0), X)
    with pytest.raises(ShapeError, match="in layer 'residual1': in layer 'layer': in layer "
                                         "'dense1': dense: the input has 5 features"):
        model.apply(params, state, fnp.ones((1, 5)))


@pytest.mark.parametrize("join, shape", [("concatenate", (3, 8)), ("add", (3, 4)),
                                         ("stack", (3, 4, 2))])
def test_parallel_layers_are_joined(join, shape):
    model = nn.Parallel(fnp.tanh, nn.relu, join=join)
    assert model.apply({}, {}, X)[0].shape == shape


def test_parallel_says_what_joins_there_are():
    with pytest.raises(ArgumentError, match="a way to join"):
        nn.Parallel(nn.relu, join="sum")


def test_channels_first_is_the_same_layer_on_other_axes():
    layer, x = nn.Conv(3, (3, 3)), fnp.asarray(np.random.default_rng(0).random((2, 4, 5, 6), "f4"))
    first = nn.ChannelsFirst(layer)
    params, state = first.init(random.key(0), x)
    last, _ = layer.apply(params, state, fnp.moveaxis(x, 1, -1))
    np.testing.assert_allclose(first.apply(params, state, x)[0], fnp.moveaxis(last, -1, 1))


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_recurrent_layer_goes_on_from_its_last_state(kind):
    layer = kind(3)
    x = fnp.asarray(np.random.default_rng(1).standard_normal((2, 6, 4)).astype("float32"))
    params, _ = layer.init(random.key(0), x)
    whole, last = layer.run(params, x)
    first, middle = layer.run(params, x[:, :4])
    second, end = layer.run(params, x[:, 4:], middle)
    np.testing.assert_allclose(fnp.concatenate([first, second], axis=1), whole, rtol=1e-5)
    for a, b in zip(tree.leaves(last), tree.leaves(end)):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_recurrent_layer_names_what_it_expects():
    params, _ = nn.GRU(3).init(random.key(0), fnp.ones((1, 2, 4)))
    with pytest.raises(ShapeError, match="GRU: the weight expects 4 features"):
        nn.GRU(3).apply(params, {}, fnp.ones((1, 2, 5)))


# ---------------------------------------------------------------------------- summary

def test_a_summary_counts_parameters_and_multiply_adds():
    model = nn.Sequential(nn.Conv(8, (3, 3)), nn.relu, nn.Residual(nn.Conv(8, (3, 3))),
                          nn.GlobalAvgPool(), nn.Dense(10))
    text = nn.summary(model, fgrad.ArrayType("float32", (2, 16, 16, 3)))
    rows = {line.split()[0]: line.split() for line in text.splitlines()}
    assert rows["conv1"][3:] == ["224", f"{2 * 256 * 27 * 8:,}", "896"]
    assert rows["residual1/layer"][1:3] == ["conv", "f32[2,16,16,8]"]
    assert rows["total"][1] == str(nn.count_params(model.init(random.key(0), fnp.ones(
        (1, 16, 16, 3)))[0])) == "898"


def test_a_summary_of_a_loop_counts_its_trips():
    text = nn.summary(nn.RNN(4), fnp.ones((1, 7, 3)))
    assert f"{7 * (3 * 4 + 4 * 4)}" in text.splitlines()[1].split()


# ---------------------------------------------------------------------------- parameters by path

PARAMS, STATE = MODEL.init(random.key(0), X)


def test_split_and_merge_are_inverse():
    assert nn.paths(PARAMS) == ["dense1/b", "dense1/w", "dense2/b", "dense2/w"]
    for which in ("dense1/*", ["*/b"], lambda path, leaf: leaf.ndim == 2):
        rest, chosen = nn.split(PARAMS, which)
        assert len(tree.leaves(rest)) + len(tree.leaves(chosen)) == 4
        assert tree.structure(nn.merge(rest, chosen)) == tree.structure(PARAMS)
        assert tree.all(tree.map(lambda a, b: a is b, nn.merge(chosen, rest), PARAMS))


def test_a_gradient_of_the_chosen_part_leaves_the_others_alone():
    body, head = nn.split(PARAMS, "dense2/*")

    def loss(head):
        return fnp.sum(MODEL.apply(nn.merge(body, head), STATE, X)[0] ** 2)
    whole = fgrad.grad(lambda p: fnp.sum(MODEL.apply(p, STATE, X)[0] ** 2))(PARAMS)
    part = fgrad.jit(fgrad.grad(loss))(head)
    assert part["dense1"] == {"w": None, "b": None}
    np.testing.assert_allclose(part["dense2"]["w"], whole["dense2"]["w"], rtol=1e-5)


def test_a_mask_freezes_with_optim():
    labels = tree.map(lambda on: "train" if on else "freeze", nn.mask(PARAMS, "dense2/*"))
    opt = optim.multi_transform({"train": optim.sgd(0.1), "freeze": optim.set_to_zero()}, labels)
    updates, _ = opt.update(PARAMS, opt.init(PARAMS), PARAMS)
    assert not np.asarray(updates["dense1"]["w"]).any()
    assert np.asarray(updates["dense2"]["w"]).any()


def test_slips_with_paths_are_explained():
    with pytest.raises(ArgumentError, match="no parameter is chosen") as error:
        nn.split(PARAMS, "dence2/*")
    assert "dense1/b, dense1/w" in str(error.value)
    with pytest.raises(ArgumentError, match="chosen by patterns of paths"):
        nn.mask(PARAMS, [3])
    with pytest.raises(TreeError, match="2 trees have something at 'dense1/b'"):
        nn.merge(PARAMS, PARAMS)
