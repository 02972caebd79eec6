"""What stands around an optimizer: accumulation, lookahead, hyperparameters, care."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArgumentError, RangeError, optim
from tests.optim.runs import GRADS, START, arrays, run, same_tree


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_multi_steps_is_one_step_with_the_gradients_of_k(k, mean):
    grads = GRADS[:6]
    parts = [grads[i:i + k] for i in range(0, 6, k)]
    joined = [{n: sum(g[n] for g in part) / (k if mean else 1) for n in START} for part in parts]
    want, _ = run(optim.adam(0.01), grads=joined)
    for jitted in (False, True):
        got, state = run(optim.MultiSteps(optim.adam(0.01), k, mean), jitted, grads=grads)
        for n in START:
            np.testing.assert_allclose(got[n], want[n], rtol=1e-5, atol=1e-6)
        assert int(state.gradient_step) == 6 // k and int(state.mini_step) == 0


def test_multi_steps_does_not_move_in_between():
    opt = optim.MultiSteps(optim.sgd(1.0, momentum=0.9), 3)
    got, state = run(opt, grads=GRADS[:2])
    same_tree(got, arrays(START, "float32"))
    assert not bool(opt.has_updated(state))


def test_multi_steps_may_gather_more_as_time_goes_on():
    opt = optim.MultiSteps(optim.sgd(1.0), lambda done: 1 + done)
    ones = [{"w": np.ones(1)}] * 6                         # 1, then 2, then 3 of them
    for jitted in (False, True):
        got, state = run(opt, jitted, start={"w": np.zeros(1)}, grads=ones)
        assert float(got["w"][0]) == pytest.approx(-3.0)
        assert int(state.gradient_step) == 3


def test_multi_steps_of_none_is_refused():
    with pytest.raises(RangeError):
        optim.MultiSteps(optim.sgd(1.0), 0)


@pytest.mark.parametrize("reset", [False, True])
def test_lookahead_moves_the_slow_towards_the_fast(reset):
    opt = optim.lookahead(optim.sgd(0.1, momentum=0.9), 3, 0.5, reset)
    params = optim.LookaheadParams.init_synced({"w": fnp.asarray(START["w"], dtype="float32")})
    state, step = opt.init(params), fgrad.jit(opt.update)
    fast, slow, moved = START["w"], START["w"], 0
    for t, g in enumerate(GRADS, 1):
        updates, state = step({"w": fnp.asarray(g["w"], dtype="float32")}, state, params)
        params = optim.apply_updates(params, updates)
        moved = g["w"] + 0.9 * moved
        fast = fast - 0.1 * moved
        if t % 3 == 0:
            fast = slow = slow + 0.5 * (fast - slow)
            moved = 0 if reset else moved
        np.testing.assert_allclose(params.fast["w"], fast, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(params.slow["w"], slow, rtol=1e-5, atol=1e-6)


def test_lookahead_needs_both_kinds_of_parameters():
    opt = optim.lookahead(optim.sgd(0.1), 2, 0.5)
    with pytest.raises(ArgumentError, match="LookaheadParams"):
        opt.init(fnp.ones(1))
    with pytest.raises(RangeError):
        optim.lookahead(optim.sgd(0.1), 0, 0.5)


def test_apply_if_finite_skips_bad_gradients_and_lets_too_many_through():
    opt = optim.apply_if_finite(optim.sgd(1.0, momentum=0.5), 2)
    good, bad = fnp.ones(2), fnp.array([1.0, fnp.inf])
    for update in (opt.update, fgrad.jit(opt.update)):
        state = opt.init(good)
        _, state = update(good, state)
        before = state.inner_state
        for k in (1, 2):
            out, state = update(bad, state)
            np.testing.assert_array_equal(out, [0.0, 0.0])
            assert int(state.notfinite_count) == k and not bool(state.last_finite)
        same_tree(state.inner_state, before)
        assert np.isinf(np.asarray(update(bad, state)[0])).any()
        out, state = update(good, state)
        np.testing.assert_allclose(out, [-1.5, -1.5])
        assert int(state.notfinite_count) == 0 and int(state.total_notfinite) == 2


def test_injected_hyperparameters_can_be_changed_without_compiling_again():
    opt = optim.inject_hyperparams(optim.adamw)(0.01, weight_decay=0.1)
    update = fgrad.jit(opt.update)
    params = fnp.ones(3)
    state = opt.init(params)
    for rate in (0.01, 0.5):
        state.hyperparams["learning_rate"] = fnp.array(rate)
        found, _ = update(fnp.ones(3), state, params)
        plain = optim.adamw(rate, weight_decay=0.1)
        want, _ = plain.update(fnp.ones(3), plain.init(params), params)
        np.testing.assert_allclose(found, want, rtol=1e-5)
    assert update.cache_info().misses == 1


def test_injected_schedules_show_their_value():
    opt = optim.inject_hyperparams(optim.sgd)(optim.linear_schedule(1.0, 0.0, 4), momentum=0.5)
    state = opt.init(fnp.zeros(1))
    for want in (1.0, 0.75, 0.5):
        _, state = opt.update(fnp.ones(1), state)
        assert float(state.hyperparams["learning_rate"]) == want
    assert sorted(state.hyperparams) == ["learning_rate", "momentum"]


@pytest.mark.parametrize("name", ["adam", "radam", "yogi", "amsgrad", "lion", "rmsprop", "adagrad",
                                  "lamb", "novograd", "adabelief", "adamax", "adan"])
def test_every_number_of_an_optimizer_may_be_injected(name):
    make = getattr(optim, name)
    want, _ = run(make(0.01))
    got, _ = run(optim.inject_hyperparams(make)(0.01), jitted=True)
    for n in START:
        np.testing.assert_allclose(got[n], want[n], rtol=1e-3, atol=1e-3)


def test_static_arguments_must_exist():
    with pytest.raises(ArgumentError, match="no such parameters"):
        optim.inject_hyperparams(optim.sgd, static_args="speed")
