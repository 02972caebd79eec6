"""Optimizers step as their papers say; each is compared with a plain NumPy loop in float64."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import optim, tree
from fgrad.optim.moments import sample_length
from tests.optim.runs import GRADS, START, check, run


def adam_like(rule, lr=0.01, decay=0.0):
    """The loop of Adam, with rule(t, g, m, v) → (step, m, v) in place of its middle."""
    def reference(p, gs):
        m, v = np.zeros_like(p), np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            step, m, v = rule(t, g, m, v)
            p = p - lr * (step + decay * p)
        return p
    return reference


def adam_rule(t, g, m, v, b1=0.9, b2=0.999, root=0.0, nesterov=False):
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    ahead = m / (1 - b1 ** t)
    if nesterov:
        ahead = b1 * m / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1 ** t)
    return ahead / (np.sqrt(v / (1 - b2 ** t) + root) + 1e-8), m, v


# ---------------------------------------------------------------------------- gradient descent

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


def test_sign_sgd():
    check(optim.sign_sgd(0.1), lambda p, gs: p - 0.1 * sum(map(np.sign, gs)))


def test_signum_takes_the_sign_of_the_running_mean():
    def reference(p, gs):
        m = np.zeros_like(p)
        for g in gs:
            m = 0.9 * m + 0.1 * g
            p = p - 0.1 * np.sign(m)
        return p
    check(optim.signum(0.1), reference)


# ---------------------------------------------------------------------------- Adam and relatives

@pytest.mark.parametrize("root", [0.0, 1e-3])
@pytest.mark.parametrize("nesterov", [False, True])
def test_adam_and_nadam(root, nesterov):
    check(optim.adam(0.01, eps_root=root, nesterov=nesterov),
          adam_like(lambda *a: adam_rule(*a, root=root, nesterov=nesterov)))


def test_nadam_is_adam_with_nesterov_momentum():
    check(optim.nadam(0.01), adam_like(lambda *a: adam_rule(*a, nesterov=True)))
    check(optim.nadamw(0.01, weight_decay=0.1),
          adam_like(lambda *a: adam_rule(*a, nesterov=True), decay=0.1))


def tiny_adam(t, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-12), m, v


def test_adam_stays_exact_after_many_steps_of_tiny_gradients():
    grads = [{"w": np.full(2, 1e-6)}] * 50
    check(optim.adam(0.01, eps=1e-12), adam_like(tiny_adam), start={"w": np.zeros(2)}, grads=grads)


def test_adamw_decays_weights_apart_from_the_gradient():
    check(optim.adamw(0.01, weight_decay=0.1), adam_like(adam_rule, decay=0.1))


def test_adamw_decays_only_where_the_mask_is_true():
    mask = {"w": True, "b": False, "s": False, "k": True}
    for given in (mask, lambda params: tree.map(lambda p: p.ndim > 1, params)):
        got, _ = run(optim.adamw(0.01, weight_decay=0.1, mask=given))
        for name in START:
            reference = adam_like(adam_rule, decay=0.1 if mask[name] else 0.0)
            want = reference(START[name], [g[name] for g in GRADS])
            np.testing.assert_allclose(got[name], want, rtol=2e-5, atol=2e-6)


def test_radam_takes_plain_momentum_until_the_variance_is_known():
    def rule(t, g, m, v):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        limit = 2 / (1 - 0.999) - 1
        rho = limit - 2 * t * 0.999 ** t / (1 - 0.999 ** t)
        first = m / (1 - 0.9 ** t)
        if rho < 5:
            return first, m, v
        r = np.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))
        return r * first / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v
    check(optim.radam(0.01), adam_like(rule))


@pytest.mark.parametrize("decay, t", [(0.999, 1), (0.999, 5), (0.999, 6), (0.999, 499),
                                      (0.999, 501), (0.9, 3), (0.9, 200), (0.99999, 7)])
def test_the_sample_length_of_radam_loses_no_digits(decay, t):
    count = fnp.array(float(t))
    limit = 2 / (1 - decay) - 1
    want = limit - 2 * t * decay ** t / (1 - decay ** t)
    assert float(sample_length(decay, count)) == pytest.approx(want, rel=2e-6)


@pytest.mark.parametrize("corrected", [True, False])
def test_amsgrad_divides_by_the_largest_second_moment(corrected):
    def reference(p, gs):
        m, v, most = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            m, v = 0.9 * m + 0.1 * g, 0.9 * v + 0.1 * g * g
            most = np.maximum(most, v / (1 - 0.9 ** t) if corrected else v)
            p = p - 0.01 * (m / (1 - 0.9 ** t)) / (np.sqrt(most) + 1e-8)
        return p
    check(optim.amsgrad(0.01, b2=0.9, bias_correction_nu=corrected), reference)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adamax_divides_by_a_decaying_maximum(decay):
    def rule(t, g, m, u):
        m, u = 0.9 * m + 0.1 * g, np.maximum(0.9 * u, np.abs(g) + 1e-8)
        return m / (1 - 0.9 ** t) / u, m, u
    opt = optim.adamaxw(0.01, b2=0.9, weight_decay=decay) if decay else optim.adamax(0.01, b2=0.9)
    check(opt, adam_like(rule, decay=decay))


def test_adabelief_divides_by_the_deviation_from_the_mean():
    def rule(t, g, m, s):
        m = 0.9 * m + 0.1 * g
        s = 0.999 * s + 0.001 * (g - m) ** 2 + 1e-16
        return (m / (1 - 0.9 ** t)) / (np.sqrt(s / (1 - 0.999 ** t)) + 1e-16), m, s
    check(optim.adabelief(0.01), adam_like(rule))


def test_yogi_moves_the_second_moment_by_steps_of_the_square():
    def reference(p, gs):
        m, v = np.full_like(p, 1e-6), np.full_like(p, 1e-6)
        for t, g in enumerate(gs, 1):
            m = 0.9 * m + 0.1 * g
            v = v - 0.001 * np.sign(v - g * g) * g * g
            p = p - 0.01 * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-3)
        return p
    check(optim.yogi(0.01), reference)


def test_adan_adds_the_change_of_the_gradient():
    def reference(p, gs):
        m, v, n, before = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p), gs[0]
        for t, g in enumerate(gs, 1):
            d, before = g - before, g
            m, v = 0.98 * m + 0.02 * g, 0.92 * v + 0.08 * d
            n = 0.99 * n + 0.01 * (g + 0.08 * d) ** 2
            first = m / (1 - 0.98 ** t) + 0.08 * v / (1 - 0.92 ** t)
            p = p - 0.01 * (first / (np.sqrt(n / (1 - 0.99 ** t) + 1e-8) + 1e-8) + 0.1 * p)
        return p
    check(optim.adan(0.01, weight_decay=0.1), reference)


def test_lion_takes_signs_by_one_mean_and_keeps_another():
    def reference(p, gs):
        m = np.zeros_like(p)
        for g in gs:
            p = p - 0.01 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * p)
            m = 0.99 * m + 0.01 * g
        return p
    check(optim.lion(0.01, weight_decay=0.1), reference)


# ---------------------------------------------------------------------------- sums of squares

@pytest.mark.parametrize("centered, inside, corrected", [
    (False, False, False), (False, False, True), (False, True, False), (False, True, True),
    (True, False, False), (True, True, False), (True, True, True)])
def test_rmsprop(centered, inside, corrected):
    def reference(p, gs):
        m, v, moved = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            m, v = 0.9 * m + 0.1 * g, 0.9 * v + 0.1 * g * g
            weight = 1 - 0.9 ** t if corrected else 1
            q = v / weight - (m / weight) ** 2 if centered else v / weight
            step = g / np.sqrt(q + 1e-2) if inside else g / (np.sqrt(q) + 1e-2)
            moved = -0.01 * step + 0.8 * moved
            p = p + moved
        return p
    check(optim.rmsprop(0.01, eps=1e-2, centered=centered, eps_in_sqrt=inside, momentum=0.8,
                        bias_correction=corrected), reference)


def test_adagrad_divides_by_the_root_of_the_sum():
    def reference(p, gs):
        total = np.full_like(p, 0.1)
        for g in gs:
            total = total + g * g
            p = p - 0.1 * g / np.sqrt(total + 1e-7)
        return p
    check(optim.adagrad(0.1), reference)


def test_adagrad_does_not_move_what_never_had_a_gradient():
    params, _ = run(optim.adagrad(0.1, initial_accumulator_value=0.0), start={"w": np.ones(2)},
                    grads=[{"w": np.array([1.0, 0.0])}])
    np.testing.assert_allclose(params["w"], [0.9, 1.0], rtol=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adadelta(decay):
    def reference(p, gs):
        v, x = np.zeros_like(p), np.zeros_like(p)
        for g in gs:
            g = g + decay * p
            v = 0.9 * v + 0.1 * g * g
            step = g * np.sqrt(x + 1e-6) / np.sqrt(v + 1e-6)
            x = 0.9 * x + 0.1 * step * step
            p = p - 0.5 * step
        return p
    check(optim.adadelta(0.5, weight_decay=decay), reference)


def test_adafactor_without_factors():
    def reference(p, gs):
        v = np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            b = 1 - t ** -0.8
            v = b * v + (1 - b) * (g * g + 1e-30)
            u = g / np.sqrt(v)
            u = u / max(1.0, np.sqrt(np.mean(u * u)))
            p = p - 0.1 * u * max(1e-3, np.sqrt(np.mean(p * p)))
        return p
    check(optim.adafactor(0.1), reference)


def test_adafactor_keeps_means_of_rows_and_columns_for_matrices():
    def reference(p, gs):
        r, c, m = np.zeros(5), np.zeros(4), np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            b = 1 - t ** -0.8
            r = b * r + (1 - b) * np.mean(g * g + 1e-30, axis=1)
            c = b * c + (1 - b) * np.mean(g * g + 1e-30, axis=0)
            u = g / np.sqrt(np.outer(r, c) / np.mean(r))
            u = 0.1 * u / max(1.0, np.sqrt(np.mean(u * u)))
            m = 0.9 * m + 0.1 * u * max(1e-3, np.sqrt(np.mean(p * p)))
            p = p - m - 0.01 * p
        return p
    rng = np.random.default_rng(1)
    opt = optim.adafactor(0.1, min_dim_size_to_factor=4, momentum=0.9, weight_decay_rate=0.01,
                          dtype_momentum=None)
    check(opt, reference, {"w": rng.normal(size=(5, 4))},
          [{"w": rng.normal(size=(5, 4))} for _ in range(5)])
    state = opt.init({"w": fnp.zeros((5, 4))})[0]
    assert [x["w"].shape for x in (state.v_row, state.v_col, state.v)] == [(4,), (5,), (1,)]


def test_sm3_keeps_the_largest_sum_of_each_row_and_column():
    def reference(p, gs):
        vectors, m = [np.zeros(n) for n in p.shape], np.zeros_like(p)
        for g in gs:
            wide = [v.reshape([-1 if a == k else 1 for a in range(p.ndim)])
                    for k, v in enumerate(vectors)]
            s = g * g + np.minimum.reduce(np.broadcast_arrays(*wide))
            vectors = [s.max(axis=tuple(a for a in range(p.ndim) if a != k))
                       for k in range(p.ndim)]
            m = 0.9 * m + 0.1 * g / np.sqrt(s + 1e-8)
            p = p - 0.1 * m
        return p
    start = {k: v for k, v in START.items() if v.ndim}
    check(optim.sm3(0.1), reference, start, [{k: g[k] for k in start} for g in GRADS])


def test_sm3_of_a_scalar_is_adagrad():
    params, _ = run(optim.sm3(0.1, momentum=0.0), start={"s": np.array(1.0)},
                    grads=[{"s": np.array(3.0)}, {"s": np.array(4.0)}])
    assert float(params["s"]) == pytest.approx(1 - 0.1 - 0.1 * 4 / 5)


# ---------------------------------------------------------------------------- layer by layer

def length(x):
    return np.sqrt(np.sum(x * x))


def test_lars_scales_by_the_ratio_of_norms():
    def reference(p, gs):
        moved = np.zeros_like(p)
        for g in gs:
            g = g + 0.1 * p
            moved = -0.5 * 0.001 * length(p) / length(g) * g + 0.9 * moved
            p = p + moved
        return p
    check(optim.lars(0.5, weight_decay=0.1), reference)


def test_lars_leaves_masked_leaves_to_momentum():
    params, _ = run(optim.lars(0.5, trust_ratio_mask={"w": True, "b": False, "s": True, "k": True}),
                    grads=GRADS[:1])
    np.testing.assert_allclose(params["b"], START["b"] - 0.5 * GRADS[0]["b"], rtol=1e-5)


def test_lamb_scales_adam_by_the_ratio_of_norms():
    def reference(p, gs):
        m, v = np.zeros_like(p), np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            u = (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-6) + 0.1 * p
            p = p - 0.01 * length(p) / length(u) * u
        return p
    check(optim.lamb(0.01, weight_decay=0.1), reference)


def test_a_trust_ratio_with_a_zero_norm_is_one():
    for params, grads in ((np.zeros(2), np.ones(2)), (np.ones(2), np.zeros(2))):
        got, _ = run(optim.chain(optim.scale_by_trust_ratio(), optim.scale(-1.0)),
                     start={"w": params}, grads=[{"w": grads}])
        np.testing.assert_array_equal(got["w"], params - grads)


def test_novograd_divides_by_the_running_norm_of_the_layer():
    def reference(p, gs):
        m, v = np.zeros_like(p), None
        for g in gs:
            q = np.sum(g * g)
            v = q if v is None else 0.25 * v + 0.75 * q
            m = 0.9 * m + g / (np.sqrt(v) + 1e-6) + 0.1 * p
            p = p - 0.01 * m
        return p
    check(optim.novograd(0.01, weight_decay=0.1), reference)


def newton_schulz(x):
    x = x.T if x.shape[0] > x.shape[1] else x
    x = x / (length(x) + 1e-8)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x


def test_muon_orthogonalizes_matrices_and_gives_the_rest_to_adam():
    def reference(p, gs):
        if p.ndim != 2:
            return adam_like(lambda *a: adam_rule(*a, nesterov=True), lr=0.02)(p, gs)
        m = np.zeros_like(p)
        for t, g in enumerate(gs, 1):
            m = 0.95 * m + 0.05 * g
            ahead = 0.95 * m / (1 - 0.95 ** (t + 1)) + 0.05 * g / (1 - 0.95 ** t)
            u = newton_schulz(ahead)
            u = u.T if u.shape != p.shape else u
            p = p - 0.02 * (np.sqrt(max(1, p.shape[1] / p.shape[0])) * u + 0.1 * p)
        return p
    rng = np.random.default_rng(2)
    shapes = {"tall": (5, 3), "wide": (3, 5), "b": (4,), "k": (2, 3, 2)}
    start, *grads = [{k: rng.normal(size=s) for k, s in shapes.items()} for _ in range(5)]
    check(optim.muon(0.02, weight_decay=0.1), reference, start, grads, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3), (1, 1)])
def test_orthogonalize_brings_singular_values_near_one(shape):
    x = np.random.default_rng(3).normal(size=shape)
    singular = np.linalg.svd(np.asarray(optim.orthogonalize(fnp.asarray(x))))[1]
    assert singular.min() > 0.3 and singular.max() < 1.3


def test_complex_numbers_are_measured_by_their_size():
    assert optim.global_norm([fnp.array([3j, 4.0])]).item() == 5.0
    opt, p = optim.adam(0.1), fnp.array([3 + 4j, -1j])
    state = opt.init(p)
    for _ in range(200):
        grads = fgrad.grad(lambda z: (fnp.abs(z) ** 2).sum())(p).conj()
        updates, state = opt.update(grads, state, p)
        p = optim.apply_updates(p, updates)
    assert float(fnp.abs(p).max()) < 0.1


@pytest.mark.parametrize("name", ["adadelta", "adafactor"])
def test_optimizers_that_need_no_rate_descend(name):
    opt, p = getattr(optim, name)(), fnp.array([1.0, -2.0])
    state, first = opt.init(p), fnp.abs(p)
    for _ in range(50):
        updates, state = opt.update(2 * p, state, p)
        p = optim.apply_updates(p, updates)
    assert (fnp.abs(p) < first).all()


def turned(optimizer, start, gradients, turn):
    """The updates of parameters and gradients that are turned in the complex plane."""
    params, out = fnp.array(start * turn), []
    state = optimizer.init(params)
    for g in gradients:
        updates, state = optimizer.update(fnp.array(g * turn), state, params)
        params = optim.apply_updates(params, updates)
        out.append(np.asarray(updates) / turn)
    return np.array(out)


@pytest.mark.parametrize("name", """adabelief adadelta adafactor adagrad adam adamax adamaxw adamw
    adan amsgrad lamb nadam novograd radam rmsprop sgd sm3""".split())
def test_complex_numbers_step_along_their_gradients(name):
    """The squares are those of sizes: g² has a direction of its own, and max none at all."""
    start, gradients = np.array([0.5, -2.0]), [np.array([1.0, 3.0]), np.array([0.5, -1.0])]
    optimizer, turn = getattr(optim, name)(0.1), (3 + 4j) / 5
    real = turned(optimizer, start, gradients, 1.0)
    found = turned(optimizer, start + 0j, gradients, turn)
    np.testing.assert_allclose(found, real, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("corrected", [False, True])
def test_a_centred_spread_is_not_negative(corrected):
    """v̂ - m̂² of one gradient is 0 but for rounding."""
    optimizer = optim.rmsprop(0.1, centered=True, bias_correction=corrected)
    gradient = fnp.linspace(0.1, 3.0, 1000, dtype="float32")
    updates, _ = optimizer.update(gradient, optimizer.init(gradient), gradient)
    assert np.isfinite(np.asarray(updates)).all()


def test_gathered_gradients_keep_imaginary_parts():
    optimizer = optim.MultiSteps(optim.sgd(1.0), 2)
    state = optimizer.init(fnp.zeros(1, "complex64"))
    for g in (2 + 1j, 4 + 3j):
        updates, state = optimizer.update(fnp.array([g], "complex64"), state)
    assert updates == np.array([-3 - 2j], "complex64")
