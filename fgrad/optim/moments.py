"""Updates scaled by their moments: Adam and its relatives.

m and v are running means of the gradients g and of their squares; m̂ and v̂ are those divided by
1 - decay^count.  Each states its rule and source.  Relies on `base.py`; `optimizers.py` on it.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import numpy as fnp
from .. import tree
from .base import (GradientTransformation, check_shares, counted, full, given, keep, keep_all, log,
                   mean_of, norm, normal, sizes, square, start, unbiased, zeros)


class ScaleByAdamState(NamedTuple):
    """The number of updates i32[], and the running means m and v, like params."""
    count: object
    mu: object
    nu: object


def looked_ahead(updates, mu, decay, count, nesterov):
    """m̂, or Nesterov's: decay · m̂ of the next step + (1 - decay) · ĝ (Dozat 2016)."""
    if not nesterov:
        return unbiased(mu, decay, count)
    return tree.map(lambda m, g: decay * m + (1 - decay) * g,
                    unbiased(mu, decay, count + 1), unbiased(updates, decay, count))


def quotient(mu, nu, eps, eps_root=0.0):
    """m / (√(v + eps_root) + eps)"""
    return tree.map(lambda m, v: m / (fnp.sqrt(v + eps_root) + eps), mu, nu)


def adam_like(init_mu, init_nu, step):
    """A transformation with ScaleByAdamState; step(updates, mu, nu, count) → (out, mu, nu)."""
    def init(params):
        return ScaleByAdamState(start(), init_mu(params), init_nu(params))

    def update(updates, state, params=None):
        count = counted(state) + 1
        out, mu, nu = step(updates, state.mu, state.nu, count)
        after = ScaleByAdamState(count, keep_all(state.mu, mu), keep_all(state.nu, nu))
        return keep_all(updates, out), after
    return GradientTransformation(init, update)


def scale_by_adam(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, *, nesterov=False):
    """m̂ / (√(v̂ + eps_root) + eps): Adam (Kingma and Ba 2015), NAdam with `nesterov` (Dozat 2016).

    mu_dtype: that of m, the parameters' if None.

    >>> opt = scale_by_adam()
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])))[0]
    Array([1.], f32[1])
    """
    check_shares(b1=b1, b2=b2)
    def step(updates, mu, nu, count):
        mu, nu = mean_of(updates, mu, b1), mean_of(square(updates), nu, b2)
        ahead = looked_ahead(updates, mu, b1, count, nesterov)
        return quotient(ahead, unbiased(nu, b2, count), eps, eps_root), mu, nu
    return adam_like(lambda p: zeros(p, mu_dtype), sizes, step)


def scale_by_adamax(b1=0.9, b2=0.999, eps=1e-8):
    """m̂ / u, u = max(b2 · u, |g| + eps) being a decaying maximum (Kingma and Ba 2015, section 7).

    >>> opt = scale_by_adamax()
    >>> opt.update(fnp.array([-5.0]), opt.init(fnp.array([0.0])))[0]
    Array([-1.], f32[1])
    """
    check_shares(b1=b1, b2=b2)
    def step(updates, mu, nu, count):
        mu = mean_of(updates, mu, b1)
        nu = tree.map(lambda g, u: fnp.maximum(fnp.abs(g) + eps, b2 * u), updates, nu)
        return tree.map(lambda m, u: m / u, unbiased(mu, b1, count), nu), mu, nu
    return adam_like(zeros, sizes, step)


def scale_by_belief(b1=0.9, b2=0.999, eps=1e-16, eps_root=1e-16, *, nesterov=False):
    """m̂ / (√ŝ + eps), s the running mean of (g - m)² (AdaBelief; Zhuang et al. 2020).

    eps_root is added to s at each step.

    >>> opt = scale_by_belief(b1=0.5)
    >>> opt.update(fnp.array([4.0]), opt.init(fnp.array([0.0])))[0]
    Array([2.], f32[1])
    """
    check_shares(b1=b1, b2=b2)
    def step(updates, mu, nu, count):
        mu = mean_of(updates, mu, b1)
        surprise = tree.map(lambda g, m: g - m, updates, mu)
        nu = tree.map(lambda v: v + eps_root, mean_of(square(surprise), nu, b2))
        ahead = looked_ahead(updates, mu, b1, count, nesterov)
        return quotient(ahead, unbiased(nu, b2, count), eps), mu, nu
    return adam_like(zeros, sizes, step)


def scale_by_yogi(b1=0.9, b2=0.999, eps=1e-3, eps_root=0.0, initial_accumulator_value=1e-6):
    """Adam with v ← v - (1 - b2) · sign(v - g²) · g²: v grows slowly (Yogi; Zaheer et al. 2018).

    >>> opt = scale_by_yogi(b1=0.0, eps=0.0)
    >>> opt.update(fnp.array([2.0]), opt.init(fnp.array([0.0])))[0].round(4)
    Array([0.9999], f32[1])
    """
    check_shares(b1=b1, b2=b2)
    def step(updates, mu, nu, count):
        mu = mean_of(updates, mu, b1)
        nu = tree.map(lambda q, v: v - (1 - b2) * fnp.sign(v - q) * q, square(updates), nu)
        return quotient(unbiased(mu, b1, count), unbiased(nu, b2, count), eps, eps_root), mu, nu

    value = initial_accumulator_value
    return adam_like(lambda p: full(p, value), lambda p: sizes(p, value), step)


def scale_by_radam(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, threshold=5.0, *, nesterov=False):
    """Adam times its variance correction; just m̂ while that is uncertain (RAdam; Liu et al. 2020).

    >>> opt = scale_by_radam()
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])))[0]
    Array([5.], f32[1])
    """
    check_shares(b1=b1, b2=b2)
    limit = 2 / (1 - b2) - 1

    def step(updates, mu, nu, count):
        mu, nu = mean_of(updates, mu, b1), mean_of(square(updates), nu, b2)
        ahead = looked_ahead(updates, mu, b1, count, nesterov)
        length = sample_length(b2, count.astype("float32"))
        sure = length >= threshold
        safe = fnp.where(sure, length, threshold)
        factor = fnp.sqrt((safe - 4) * (safe - 2) * limit / ((limit - 4) * (limit - 2) * safe))
        scaled = quotient(ahead, unbiased(nu, b2, count), eps, eps_root)
        out = tree.map(lambda u, m: fnp.where(sure, factor.astype(u.dtype) * u, m), scaled, ahead)
        return out, mu, nu
    return adam_like(zeros, sizes, step)


def sample_length(decay, t):
    """ρ = 2 / (1 - decay) - 1 - 2 t decay^t / (1 - decay^t) of RAdam: f32[]

    Written so, two numbers near 2000 are subtracted.  With l = -log(decay) and z = t l it is
    (2 / l) (1 - z / (e^z - 1)) + a constant, and the bracket has a series for small z.
    """
    l = -log(decay)
    z = t * l
    series = z * (1 / 2 - z * (1 / 12 - z * z * (1 / 720 - z * z / 30240)))
    bracket = fnp.where(z < 0.5, series, 1 - z / fnp.expm1(fnp.maximum(z, 0.5)))
    return 2 / l * bracket + (2 / (1 - decay) - 1 - 2 / l)


class ScaleByAmsgradState(NamedTuple):
    """The number of updates i32[], the running means m and v, and the largest v, like params."""
    count: object
    mu: object
    nu: object
    nu_max: object


def scale_by_amsgrad(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None,
                     bias_correction_mu=True, bias_correction_nu=True):
    """Adam by the largest v̂ so far (AMSGrad; Reddi et al. 2018).

    bias_correction_nu=False compares v before its correction, as the paper does.

    >>> opt = scale_by_amsgrad()
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])))[0]
    Array([1.], f32[1])
    """
    check_shares(b1=b1, b2=b2)
    def init(params):
        return ScaleByAmsgradState(start(), zeros(params, mu_dtype), sizes(params), sizes(params))

    def update(updates, state, params=None):
        count = counted(state) + 1
        mu, nu = mean_of(updates, state.mu, b1), mean_of(square(updates), state.nu, b2)
        first = unbiased(mu, b1, count) if bias_correction_mu else mu
        second = unbiased(nu, b2, count) if bias_correction_nu else nu
        most = tree.map(fnp.maximum, state.nu_max, second)
        after = ScaleByAmsgradState(count, keep_all(state.mu, mu), keep_all(state.nu, nu),
                                    keep_all(state.nu_max, most))
        return keep_all(updates, quotient(first, most, eps, eps_root)), after
    return GradientTransformation(init, update)


class ScaleByAdanState(NamedTuple):
    """The running means of g, of its change, of the squares; the gradient before; the count."""
    m: object
    v: object
    n: object
    g: object
    t: object


def scale_by_adan(b1=0.98, b2=0.92, b3=0.99, eps=1e-8, eps_root=0.0):
    """(m̂ + (1 - b2) v̂) / (√(n̂ + eps_root) + eps) (Adan; Xie et al. 2022, by optax's decays).

    m, v: running means of g and of its change d;  n: that of (g + (1 - b2) d)².

    >>> opt = scale_by_adan()
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])))[0].round(4)
    Array([1.], f32[1])
    """
    check_shares(b1=b1, b2=b2, b3=b3)
    def update(g, state, params=None):
        t = state.t + 1
        change = tree.map(lambda a, b: fnp.where(state.t == 0, 0.0, a - b), g, state.g)
        ahead = tree.map(lambda a, d: a + (1 - b2) * d, g, change)
        m, v = mean_of(g, state.m, b1), mean_of(change, state.v, b2)
        n = mean_of(square(ahead), state.n, b3)
        first = tree.map(lambda a, d: a + (1 - b2) * d, unbiased(m, b1, t), unbiased(v, b2, t))
        after = ScaleByAdanState(*map(keep_all, state[:4], (m, v, n, g)), t)
        return keep_all(g, quotient(first, unbiased(n, b3, t), eps, eps_root)), after
    return GradientTransformation(
        lambda p: ScaleByAdanState(zeros(p), zeros(p), sizes(p), zeros(p), start()), update)


class ScaleByLionState(NamedTuple):
    """The number of updates i32[], and the running mean m, like params."""
    count: object
    mu: object


def scale_by_lion(b1=0.9, b2=0.99, mu_dtype=None):
    """sign(b1 · m + (1 - b1) · g), then m ← b2 · m + (1 - b2) · g (Lion; Chen et al. 2023).

    >>> opt = scale_by_lion()
    >>> opt.update(fnp.array([-5.0]), opt.init(fnp.array([0.0])))[0]
    Array([-1.], f32[1])
    """
    check_shares(b1=b1, b2=b2)
    def update(updates, state, params=None):
        out = tree.map(fnp.sign, mean_of(updates, state.mu, b1))
        mu = keep_all(state.mu, mean_of(updates, state.mu, b2))
        return keep_all(updates, out), ScaleByLionState(state.count + 1, mu)
    return GradientTransformation(
        lambda params: ScaleByLionState(start(), zeros(params, mu_dtype)), update)


class ScaleByNovogradState(NamedTuple):
    """The number of updates i32[], m like params, and a running mean of ‖g‖² for each leaf."""
    count: object
    mu: object
    nu: object


def scale_by_novograd(b1=0.9, b2=0.25, eps=1e-8, eps_root=0.0, weight_decay=0.0, mu_dtype=None):
    """m ← b1 · m + g / (√(v + eps_root) + eps) + weight_decay · params, v a number for each leaf.

    v is the running mean of ‖g‖², which begins at the first one (NovoGrad; Ginsburg et al. 2019).

    >>> opt = scale_by_novograd()
    >>> opt.update(fnp.array([3.0, 4.0]), opt.init(fnp.zeros(2)), fnp.zeros(2))[0]
    Array([0.6, 0.8], f32[2])
    """
    check_shares(b1=b1, b2=b2)
    def mean_norm(g, v, first):
        q = fnp.square(norm(g))
        return keep(v, fnp.where(first, q, b2 * v + (1 - b2) * q))

    def moved(m, g, v, p):
        return normal(b1 * m + g / (fnp.sqrt(v + eps_root) + eps) + weight_decay * p)

    def update(updates, state, params=None):
        params = given(params, "scale_by_novograd", updates)
        nu = tree.map(lambda g, v: mean_norm(g, v, state.count == 0), updates, state.nu)
        mu = tree.map(moved, state.mu, updates, nu, params)
        after = ScaleByNovogradState(state.count + 1, keep_all(state.mu, mu), nu)
        return keep_all(updates, mu), after

    def init(params):
        return ScaleByNovogradState(start(), zeros(params, mu_dtype),
                                    tree.map(lambda p: fnp.zeros((), p.dtype), params))
    return GradientTransformation(init, update)
