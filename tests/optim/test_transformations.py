"""Simple transformations, chains, masks and groups."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArgumentError, TreeError, optim, random, tree
from tests.optim.runs import GRADS, START, arrays, check, run


def only(transformation, updates, params=None):
    """The updates of the first step."""
    return transformation.update(updates, transformation.init(updates), params)[0]


# ---------------------------------------------------------------------------- rates and means

def test_a_schedule_sees_the_number_of_updates():
    opt = optim.sgd(lambda count: 0.1 / (1.0 + count))
    check(opt, lambda p, gs: p - sum(0.1 / (1 + k) * g for k, g in enumerate(gs)))


def test_weight_decay_may_follow_a_schedule():
    opt = optim.chain(optim.add_decayed_weights(lambda count: 0.1 * count), optim.scale(-0.1))

    def reference(p, gs):
        for k, g in enumerate(gs):
            p = p - 0.1 * (g + 0.1 * k * p)
        return p
    check(opt, reference)


def test_no_learning_rate_leaves_updates_as_they_are():
    np.testing.assert_array_equal(only(optim.scale_by_learning_rate(None), fnp.ones(2)), [1, 1])


@pytest.mark.parametrize("debias", [False, True])
def test_ema_is_the_running_mean_of_updates(debias):
    def reference(p, gs):
        m = np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            m = 0.9 * m + 0.1 * g
            p = p + (m / (1 - 0.9 ** t) if debias else m)
        return p
    check(optim.ema(0.9, debias), reference)


def test_params_ema_follows_the_parameters():
    opt = optim.chain(optim.sgd(0.1), optim.params_ema(0.9))
    for jitted in (False, True):
        got, state = run(opt, jitted)
        p, mean = START["w"], START["w"]
        for g in GRADS:
            p = p - 0.1 * g["w"]
            mean = 0.9 * mean + 0.1 * p
        np.testing.assert_allclose(got["w"], p, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state[-1].ema["w"], mean, rtol=1e-5, atol=1e-6)


def test_noise_has_the_variance_it_says():
    opt = optim.add_noise(0.25, 1.0, key=0)
    state = opt.init(fnp.zeros(20000))
    for step in (1, 2, 3):
        noise, state = fgrad.jit(opt.update)(fnp.zeros(20000), state)
        assert float(noise.std()) == pytest.approx(0.5 / step ** 0.5, rel=0.03)


def test_noise_is_the_same_for_the_same_key_and_not_for_another():
    first, again, other = [only(optim.add_noise(1.0, 0.5, k), fnp.zeros(4))
                           for k in (1, random.key(1), 2)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_centralize_takes_the_mean_of_each_output_away():
    out = only(optim.centralize(), arrays(START, "float32"))
    np.testing.assert_allclose(out["w"], START["w"] - START["w"].mean(1, keepdims=True), rtol=1e-5,
                               atol=1e-7)
    np.testing.assert_allclose(out["b"], START["b"], rtol=1e-6)


def test_scaling_by_norms_of_parameters():
    u, p = fnp.ones(4), fnp.array([3.0, 0.0, 4.0, 0.0])
    np.testing.assert_allclose(only(optim.scale_by_param_block_norm(), u, p), np.full(4, 5.0))
    np.testing.assert_allclose(only(optim.scale_by_param_block_rms(), u, p), np.full(4, 2.5))
    np.testing.assert_allclose(only(optim.scale_by_param_block_norm(), u, 0 * p), np.full(4, 1e-3))


@pytest.mark.parametrize("make", [
    optim.add_decayed_weights, optim.scale_by_trust_ratio, optim.scale_by_param_block_rms,
    optim.scale_by_param_block_norm, optim.scale_by_novograd, optim.scale_by_factored_rms,
    lambda: optim.params_ema(0.9)])
def test_what_needs_the_parameters_says_so(make):
    opt = make()
    with pytest.raises(ArgumentError, match="needs the parameters"):
        opt.update(fnp.ones(2), opt.init(fnp.ones(2)))


# ---------------------------------------------------------------------------- parameters

def test_parameters_keep_their_dtypes():
    params = {"h": fnp.ones(2, "float16"), "d": fnp.ones(2, "float64")}
    out = optim.apply_updates(params, {"h": fnp.ones(2), "d": fnp.ones(2)})
    assert out["h"].dtype == np.float16 and out["d"].dtype == np.float64


def test_updates_of_another_tree_name_the_place():
    with pytest.raises(TreeError, match="keys only in the first"):
        optim.apply_updates({"w": fnp.ones(2)}, {"b": fnp.ones(2)})


# ---------------------------------------------------------------------------- chains, masks, groups

def test_chain_applies_in_order():
    opt = optim.chain(optim.clip_by_global_norm(1.0), optim.scale(-0.5))
    np.testing.assert_allclose(only(opt, fnp.array([3.0, 4.0])), [-0.3, -0.4], rtol=1e-6)


def test_chain_passes_named_arguments_to_those_that_take_them():
    opt = optim.chain(optim.sgd(1.0), optim.reduce_on_plateau(0.5, patience=1))
    state = opt.init(fnp.ones(1))
    _, state = opt.update(fnp.ones(1), state, value=1.0)
    np.testing.assert_array_equal(opt.update(fnp.ones(1), state, value=1.0)[0], [-0.5])


def test_a_transformation_of_ones_own_needs_no_named_arguments():
    mine = optim.GradientTransformation(lambda params: (), lambda u, s, params=None: (2 * u, s))
    opt = optim.chain(mine, optim.reduce_on_plateau(0.5))
    np.testing.assert_array_equal(opt.update(fnp.ones(1), opt.init(None), value=1.0)[0], [2.0])


def test_the_state_of_another_chain_is_refused():
    with pytest.raises(ArgumentError, match="not made by this chain"):
        optim.adam(0.1).update(fnp.ones(1), optim.adamw(0.1).init(fnp.ones(1)))


def test_masked_leaves_have_no_state():
    opt = optim.masked(optim.trace(0.9), {"w": True, "b": False})
    state = opt.init({"w": fnp.zeros(2), "b": fnp.zeros(3)})
    assert [x.shape for x in tree.leaves(state)] == [(2,)]


def test_a_mask_may_be_a_prefix_or_a_function():
    updates = {"body": {"w": fnp.ones(1), "b": fnp.ones(1)}, "head": {"w": fnp.ones(1)}}
    out = only(optim.freeze({"body": True, "head": False}), updates)
    assert [float(x[0]) for x in tree.leaves(out)] == [0.0, 0.0, 1.0]

    def biases(params):
        return tree.map_with_path(lambda path, p: path[-1] == "b", params)
    out = only(optim.freeze(biases), updates)
    assert [float(x[0]) for x in tree.leaves(out)] == [0.0, 1.0, 1.0]


def test_groups_have_rates_of_their_own_and_may_be_frozen():
    opt = optim.multi_transform(
        {"fast": optim.sgd(1.0), "slow": optim.sgd(0.1), "still": optim.set_to_zero()},
        {"w": "fast", "b": "slow", "s": "still", "k": "slow"})
    for jitted in (False, True):
        got, _ = run(opt, jitted)
        for name, rate in (("w", 1.0), ("b", 0.1), ("s", 0.0), ("k", 0.1)):
            want = START[name] - rate * sum(g[name] for g in GRADS)
            np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-5)


def test_a_label_without_transformation_is_named():
    opt = optim.multi_transform({"a": optim.sgd(1.0)}, {"w": "a", "b": "frozen"})
    with pytest.raises(ArgumentError, match="no transformation") as error:
        opt.init({"w": fnp.ones(1), "b": fnp.ones(1)})
    assert "frozen" in str(error.value)


def test_groups_thaw_one_after_the_other():
    opt = optim.multi_transform({"head": optim.sgd(1.0),
                                 "body": optim.unfreeze_at(optim.sgd(1.0, momentum=0.5), 2)},
                                {"w": "body", "b": "head", "s": "head", "k": "head"})
    ones = [tree.map(np.ones_like, START)] * 4
    for jitted in (False, True):
        got, _ = run(opt, jitted, grads=ones)
        np.testing.assert_allclose(got["w"], START["w"] - 1.0 - 1.5, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got["b"], START["b"] - 4.0, rtol=1e-5, atol=1e-6)
