"""States: they keep their types, go through scan and vmap, and come back from files."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ShapeError, io, lax, optim, random, tree
from tests.optim.runs import GRADS, arrays, run, same_tree

SHAPES = {"w": (3, 2), "b": (2,), "k": (2, 1, 3)}
ALL = {
    **{name: getattr(optim, name)(0.01) for name in (
        "sgd", "sign_sgd", "signum", "noisy_sgd", "adam", "adamw", "nadam", "nadamw", "radam",
        "amsgrad", "adamax", "adamaxw", "adabelief", "yogi", "adan", "lion", "rmsprop", "adagrad",
        "adadelta", "adafactor", "sm3", "lars", "lamb", "novograd", "muon")},
    "momentum": optim.sgd(0.01, 0.9, True, accumulator_dtype="float32"),
    "adam in f16": optim.adam(0.01, mu_dtype="float16"),
    "rmsprop, all of it": optim.rmsprop(0.01, centered=True, momentum=0.9, bias_correction=True),
    "adafactor, factored": optim.adafactor(0.01, min_dim_size_to_factor=2, momentum=0.9),
    "schedule": optim.adamw(optim.warmup_cosine_decay_schedule(0.0, 0.1, 2, 9), weight_decay=0.1),
    "clipped": optim.chain(optim.adaptive_grad_clip(0.1), optim.clip_by_block_norm(1.0),
                           optim.adam(0.01), optim.params_ema(0.9)),
    "groups": optim.multi_transform({"a": optim.adam(0.01), "b": optim.set_to_zero()},
                                    {"w": "a", "b": "b", "k": "a"}),
    "thawing": optim.unfreeze_at(optim.adam(0.01), 2),
    "gathering": optim.MultiSteps(optim.adam(0.01), 2),
    "careful": optim.apply_if_finite(optim.adam(0.01), 3),
    "injected": optim.inject_hyperparams(optim.adamw)(0.01),
    "injected schedule": optim.inject_hyperparams(optim.adam)(optim.linear_schedule(0.1, 0.0, 9)),
}


def kinds(values):
    """The structure, and the shape and dtype of each leaf."""
    return tree.structure(values), [(x.shape, x.dtype) for x in tree.leaves(values)]


def ones(dtype, shapes=SHAPES):
    return {k: fnp.ones(s, dtype) for k, s in shapes.items()}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ALL)
def test_states_and_parameters_keep_their_types(name, dtype):
    opt, params, state = ALL[name], ones(dtype), ALL[name].init(ones(dtype))
    updates, after = opt.update(ones(dtype), state, params)
    assert kinds(after) == kinds(state)
    assert kinds(updates) == kinds(params)
    assert kinds(optim.apply_updates(params, updates)) == kinds(params)


@pytest.mark.parametrize("name", ALL)
def test_states_come_back_from_files(name, tmp_path):
    opt, params = ALL[name], ones("float32")
    _, state = opt.update(ones("float32"), opt.init(params), params)
    io.save(tmp_path / "state.safetensors", state)
    found = io.load(tmp_path / "state.safetensors", like=opt.init(params))
    same_tree(found, state)
    same_tree(opt.update(params, found, params)[0], opt.update(params, state, params)[0])


@pytest.mark.parametrize("name", ALL)
def test_scan_carries_states(name):
    opt = ALL[name]

    def step(carry, grads):
        params, state = carry
        updates, state = opt.update(grads, state, params)
        return (optim.apply_updates(params, updates), state), None

    grads = [{k: g[k] for k in SHAPES} for g in GRADS[:3]]
    start = {k: np.ones(s) for k, s in SHAPES.items()}
    params = arrays(start, "float32")
    xs = tree.map(lambda *rows: fnp.stack(rows), *[arrays(g, "float32") for g in grads])
    (got, _), _ = fgrad.jit(lambda c, xs: lax.scan(step, c, xs))((params, opt.init(params)), xs)
    want, _ = run(opt, start=start, grads=grads)
    for k in SHAPES:
        np.testing.assert_allclose(got[k], want[k], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ALL)
def test_leaves_without_elements_and_of_one(name):
    shapes = {"w": (0, 2), "b": (1,), "k": (1, 0, 1)}
    params = ones("float32", shapes)
    updates, _ = ALL[name].update(params, ALL[name].init(params), params)
    assert kinds(updates) == kinds(params)
    assert np.isfinite(np.asarray(updates["b"])).all()


@pytest.mark.parametrize("name", ["sgd", "adam", "adafactor", "muon", "gathering"])
def test_a_tree_without_leaves(name):
    updates, _ = ALL[name].update({}, ALL[name].init({}), {})
    assert updates == {}


def test_optimizers_run_for_many_rates_at_once():
    opt = optim.inject_hyperparams(optim.adam)(0.0)

    def moved(rate):
        state = opt.init(fnp.ones(2))
        state.hyperparams["learning_rate"] = rate
        return opt.update(fnp.ones(2), state)[0]

    rates = fnp.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(fgrad.vmap(moved)(rates), -np.outer(rates, [1, 1]), rtol=1e-5)


def test_a_rate_has_a_gradient_through_the_steps():
    def loss(rate):
        opt, x = optim.sgd(rate, momentum=0.5), fnp.array(1.0)
        state = opt.init(x)
        for _ in range(3):
            updates, state = opt.update(2 * x, state)
            x = optim.apply_updates(x, updates)
        return x * x
    fgrad.check_grads(loss, (fnp.array(0.1, "float64"),))


def test_an_optimizer_learns():
    key = random.key(0)
    x = random.normal(key, (64, 3))
    y = x @ fnp.array([1.0, -2.0, 0.5]) + 0.3

    def loss(p):
        return fnp.mean((x @ p["w"] + p["b"] - y) ** 2)

    params = {"w": fnp.zeros(3), "b": fnp.zeros(())}
    opt = optim.chain(optim.clip_by_global_norm(10.0), optim.adam(0.1))
    state = opt.init(params)

    @fgrad.jit
    def step(params, state):
        updates, state = opt.update(fgrad.grad(loss)(params), state, params)
        return optim.apply_updates(params, updates), state

    for _ in range(300):
        params, state = step(params, state)
    np.testing.assert_allclose(params["w"], [1, -2, 0.5], atol=1e-3)


def test_muon_given_a_vector_says_what_it_needs():
    opt = optim.scale_by_muon()
    with pytest.raises(ShapeError, match="only matrices"):
        opt.update(fnp.ones(3), opt.init(fnp.ones(3)))


@pytest.mark.parametrize("scale", [1.0, 1e-18])
@pytest.mark.parametrize("name", ALL)
def test_states_hold_no_denormal_numbers_where_gradients_stay_zero(name, scale):
    opt, params, zeros = ALL[name], ones("float32"), tree.map(fnp.zeros_like, ones("float32"))
    first = tree.map(lambda p: p * scale, params)
    state = opt.update(first, opt.init(params), params)[1]
    step = fgrad.jit(lambda state: lax.fori_loop(
        0, 1200, lambda _, s: opt.update(zeros, s, params)[1], state))
    for now in (state, step(state)):
        for x in map(np.asarray, tree.leaves(now)):
            if x.dtype == "float32":
                assert not ((x != 0) & (np.abs(x) < np.finfo("float32").tiny)).any()


def test_what_fades_in_f16_is_kept_and_gradients_flow_through():
    opt = optim.trace(0.5)

    def faded(momentum):
        state = opt.init(momentum)._replace(trace=momentum)
        return opt.update(fnp.zeros_like(momentum), state)[0]
    assert faded(fnp.full((3,), 2.0 ** -23, "float16")).tolist() == [2.0 ** -24] * 3
    momentum = fnp.array([2e-38, 1.0])
    assert faded(momentum).tolist() == [0.0, 0.5]
    assert fgrad.jvp(faded, [momentum], [fnp.ones(2)])[1].tolist() == [0.0, 0.5]
