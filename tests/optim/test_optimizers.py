"""Optimizers step as their papers say; each is compared with a plain NumPy loop in float64."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import optim, tree

RNG = np.random.default_rng(0)
START = {"w": RNG.normal(size=(3, 2)), "b": RNG.normal(size=2)}
GRADS = [{"w": RNG.normal(size=(3, 2)), "b": RNG.normal(size=2)} for _ in range(5)]


def run(optimizer, jitted=False):
    """The parameters after the five gradients."""
    params = tree.map(fnp.asarray, START)
    state = optimizer.init(params)
    step = lambda p, s, g: (lambda u, s: (optim.apply_updates(p, u), s))(*optimizer.update(g, s, p))
    step = fgrad.jit(step) if jitted else step
    for g in GRADS:
        params, state = step(params, state, tree.map(fnp.asarray, g))
    return params


def check(optimizer, reference):
    """`reference(p, grads)` gives the parameters after these gradients, one leaf at a time."""
    for jitted in (False, True):
        got = run(optimizer, jitted)
        for name in START:
            want = reference(START[name].copy(), [g[name] for g in GRADS])
            np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-7)


def test_sgd():
    check(optim.sgd(0.1), lambda p, gs: p - 0.1 * sum(gs))


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_with_momentum(nesterov):
    def reference(p, gs):
        v = np.zeros_like(p)
        for g in gs:
            v = g + 0.9 * v
            p = p - 0.1 * (g + 0.9 * v if nesterov else v)
        return p
    check(optim.sgd(0.1, momentum=0.9, nesterov=nesterov), reference)


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_adam_and_adamw(decay):
    def reference(p, gs):
        m, v = np.zeros_like(p), np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            step = (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8)
            p = p - 0.01 * (step + decay * p)
        return p
    check(optim.adamw(0.01, weight_decay=decay) if decay else optim.adam(0.01), reference)


def test_clip_by_global_norm_scales_all_leaves_together():
    updates = {"a": fnp.array([3.0]), "b": fnp.array([4.0])}
    clip = optim.clip_by_global_norm(1.0)
    out, _ = clip.update(updates, clip.init(updates))
    np.testing.assert_allclose([out["a"][0], out["b"][0]], [0.6, 0.8], rtol=1e-6)
    small = tree.map(lambda u: u / 100, updates)
    np.testing.assert_allclose(clip.update(small, ())[0]["a"], [0.03], rtol=1e-6)


def test_clipping_zero_updates_gives_zero():
    clip = optim.clip_by_global_norm(1.0)
    np.testing.assert_array_equal(clip.update(fnp.zeros(3), ())[0], np.zeros(3))


def test_a_schedule_sees_the_number_of_updates():
    opt = optim.sgd(lambda count: 0.1 / (1.0 + count))
    check(opt, lambda p, gs: p - sum(0.1 / (1 + k) * g for k, g in enumerate(gs)))


def test_chain_applies_in_order():
    opt = optim.chain(optim.clip_by_global_norm(1.0), optim.scale(-0.5))
    out, _ = opt.update(fnp.array([3.0, 4.0]), opt.init(fnp.zeros(2)))
    np.testing.assert_allclose(out, [-0.3, -0.4], rtol=1e-6)


def test_parameters_keep_their_dtypes():
    params = {"h": fnp.ones(2, "float16"), "d": fnp.ones(2, "float64")}
    out = optim.apply_updates(params, {"h": fnp.ones(2), "d": fnp.ones(2)})
    assert out["h"].dtype == np.float16 and out["d"].dtype == np.float64
