"""Simple transformations of updates: scaling, momentum, running means, noise, norms of layers.

Sources are named at each.  Relies on `base.py`; the optimizers are chains of these.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import numpy as fnp
from .. import random, tree
from .base import (GradientTransformation, ScheduleState, check_number, check_shares, counted,
                   fitting, given, global_norm, keep, keep_all, mean_of, norm, normal,
                   root_mean_square, start, stateless, times, unbiased, zeros)
from .masking import masked


def identity():
    """Updates as they are.

    >>> identity().update(fnp.array([1.0]), ())[0]
    Array([1.], f32[1])
    """
    return stateless(lambda updates, params: updates)


def set_to_zero():
    """Updates zero, so that parameters stay.

    >>> set_to_zero().update(fnp.array([1.0]), ())[0]
    Array([0.], f32[1])
    """
    return stateless(lambda updates, params: zeros(updates))


# ---------------------------------------------------------------------------- scaling

def scale(step_size):
    """Updates times a number.

    >>> scale(-0.5).update(fnp.array([1.0]), ())[0]
    Array([-0.5], f32[1])
    """
    check_number("step_size", step_size)
    return stateless(lambda updates, params: times(step_size, updates))


def scale_by_schedule(schedule):
    """Updates times schedule(count), count being the number of updates so far: i32[].

    >>> opt = scale_by_schedule(lambda count: 1 / (1 + count))
    >>> opt.update(fnp.array([3.0]), opt.init(None)._replace(count=fnp.array(1)))[0]
    Array([1.5], f32[1])
    """
    def update(updates, state, params=None):
        count = counted(state)
        return times(schedule(count), updates), ScheduleState(count + 1)
    return GradientTransformation(lambda params: ScheduleState(start()), update)


def scale_by_learning_rate(learning_rate, *, flip_sign=True):
    """Updates times -learning_rate: a number, a scalar array, or a schedule.

    None stands for no scaling; flip_sign=False keeps the sign.

    >>> scale_by_learning_rate(0.5).update(fnp.array([1.0]), ())[0]
    Array([-0.5], f32[1])
    """
    sign = -1 if flip_sign else 1
    if learning_rate is None:
        return identity()
    if callable(learning_rate):
        return scale_by_schedule(lambda count: sign * learning_rate(count))
    check_number("learning_rate", learning_rate, "a number, an array of one, or a schedule")
    return scale(sign * learning_rate)


def scale_by_sign():
    """The signs of the updates (signSGD; Bernstein et al. 2018).

    >>> scale_by_sign().update(fnp.array([3.0, -0.1, 0.0]), ())[0]
    Array([ 1., -1.,  0.], f32[3])
    """
    return stateless(lambda updates, params: tree.map(fnp.sign, updates))


def centralize():
    """Updates of two or more axes less their mean over all axes but the first.

    Gradient centralization (Yong et al. 2020).

    >>> centralize().update(fnp.array([[1.0, 3.0]]), ())[0]
    Array([[-1.,  1.]], f32[1,2])
    """
    def centred(u):
        return u - u.mean(tuple(range(1, u.ndim)), keepdims=True) if u.ndim > 1 else u
    return stateless(lambda updates, params: tree.map(centred, updates))


# ---------------------------------------------------------------------------- running means

class TraceState(NamedTuple):
    """The accumulated updates, like params."""
    trace: object


def trace(decay, nesterov=False, accumulator_dtype=None):
    """Momentum: t ← u + decay · t.  The update is t; with `nesterov` it is u + decay · t.

    accumulator_dtype: that of t, the parameters' if None.  Sutskever et al. 2013.

    >>> opt = trace(0.5)
    >>> opt.update(fnp.array([1.0]), TraceState(fnp.array([2.0])))[0]
    Array([2.], f32[1])
    """
    check_shares(decay=decay)
    def update(updates, state, params=None):
        after = tree.map(lambda u, t: normal(u + decay * t), updates, state.trace)
        out = tree.map(lambda u, t: u + decay * t, updates, after) if nesterov else after
        return keep_all(updates, out), TraceState(keep_all(state.trace, after))
    return GradientTransformation(lambda params: TraceState(zeros(params, accumulator_dtype)),
                                  update)


class EmaState(NamedTuple):
    """The number of updates i32[], and their running mean, like params."""
    count: object
    ema: object


def ema(decay, debias=True, accumulator_dtype=None):
    """The exponential running mean of the updates; with `debias` divided by 1 - decay^count.

    >>> opt = ema(0.5)
    >>> opt.update(fnp.array([1.0]), opt.init(fnp.array([0.0])))[0]
    Array([1.], f32[1])
    """
    check_shares(decay=decay)
    def update(updates, state, params=None):
        count, mean = counted(state) + 1, mean_of(updates, state.ema, decay)
        out = unbiased(mean, decay, count) if debias else mean
        return keep_all(updates, out), EmaState(count, keep_all(state.ema, mean))
    def init(params):
        return EmaState(start(), zeros(params, accumulator_dtype))
    return GradientTransformation(init, update)


class ParamsEmaState(NamedTuple):
    """The running mean of the parameters, like params."""
    ema: object


def params_ema(decay):
    """Updates as they are; the state holds a running mean of the parameters they lead to.

    Last in a chain: `state[-1].ema` then are the averaged parameters (Polyak and Juditsky 1992).
    The mean begins at the parameters, so it needs no correction.

    >>> opt = params_ema(0.5)
    >>> p = fnp.array([1.0])
    >>> opt.update(fnp.array([1.0]), opt.init(p), p)[1].ema
    Array([1.5], f32[1])
    """
    check_shares(decay=decay)
    def update(updates, state, params=None):
        after = tree.map(lambda p, u: p + u, given(params, "params_ema", updates), updates)
        return updates, ParamsEmaState(keep_all(state.ema, mean_of(after, state.ema, decay)))
    return GradientTransformation(lambda params: ParamsEmaState(tree.map(fnp.asarray, params)),
                                  update)


# ---------------------------------------------------------------------------- noise

class AddNoiseState(NamedTuple):
    """The number of updates i32[], and the random key of the next."""
    count: object
    rng_key: object


def add_noise(eta, gamma, key):
    """Updates + normal noise of variance eta / (1 + t)^gamma, t the number of updates so far.

    key: a random key, or an int as its seed.  Neelakantan et al. 2015.

    >>> opt = add_noise(0.01, 0.55, key=0)
    >>> updates, state = opt.update(fnp.zeros(3), opt.init(fnp.zeros(3)))
    >>> bool(fnp.any(updates != 0))
    True
    """
    def init(params):
        first = random.key(key) if isinstance(key, int) else random.clone(key)
        return AddNoiseState(start(), first)

    def update(updates, state, params=None):
        count = counted(state) + 1
        deviation = fnp.sqrt(eta / count.astype("float32") ** gamma)
        after, mine = random.split(state.rng_key)
        leaves, structure = tree.flatten(updates)
        drawn = [random.normal(k, u.shape, u.dtype)
                 for k, u in zip(random.split(mine, len(leaves)), leaves)]
        out = [u + fitting(deviation, u) * n for u, n in zip(leaves, drawn)]
        return tree.unflatten(structure, out), AddNoiseState(count, after)
    return GradientTransformation(init, update)


# ---------------------------------------------------------------------------- decay and layers

def add_decayed_weights(weight_decay=0.0, mask=None):
    """Updates + weight_decay · params; weight_decay is a number or a schedule.

    mask: only where it is true, as in `masked`.  Raises ArgumentError without params.  Decoupled
    weight decay, where it stands behind the scaling by moments (Loshchilov and Hutter 2019).

    >>> add_decayed_weights(0.1).update(fnp.array([1.0]), (), fnp.array([5.0]))[0]
    Array([1.5], f32[1])
    """
    def decayed(rate, updates, params):
        params = given(params, "add_decayed_weights", updates)
        return tree.map(lambda u, p: keep(u, u + fitting(rate, p) * p), updates, params)

    def update(updates, state, params=None):
        count = counted(state)
        return decayed(weight_decay(count), updates, params), ScheduleState(count + 1)

    plain = stateless(lambda updates, params: decayed(weight_decay, updates, params))
    scheduled = GradientTransformation(lambda params: ScheduleState(start()), update)
    chosen = scheduled if callable(weight_decay) else plain
    return chosen if mask is None else masked(chosen, mask)


def scale_by_trust_ratio(min_norm=0.0, trust_coefficient=1.0, eps=0.0):
    """Each leaf times trust_coefficient · ‖param‖ / (‖update‖ + eps); as it is where one is zero.

    min_norm: norms below count as this.  You, Gitman and Ginsburg 2017 (LARS).

    >>> scale_by_trust_ratio().update(fnp.array([2.0]), (), fnp.array([3.0]))[0]
    Array([3.], f32[1])
    """
    def scaled(u, p):
        of_param, of_update = [fnp.maximum(norm(x), min_norm) for x in (p, u)]
        zero = (of_param == 0) | (of_update == 0)
        ratio = trust_coefficient * of_param / fnp.where(zero, 1.0, of_update + eps)
        return fitting(fnp.where(zero, 1.0, ratio), u) * u
    return stateless(lambda updates, params: tree.map(
        scaled, updates, given(params, "scale_by_trust_ratio", updates)))


def scale_by_param_block_norm(min_scale=1e-3):
    """Each leaf times the norm of its parameters, or min_scale where that is larger.

    >>> scale_by_param_block_norm().update(fnp.array([1.0]), (), fnp.array([-3.0]))[0]
    Array([3.], f32[1])
    """
    return stateless(lambda updates, params: tree.map(
        lambda u, p: fitting(fnp.maximum(norm(p), min_scale), u) * u, updates,
        given(params, "scale_by_param_block_norm", updates)))


def scale_by_param_block_rms(min_scale=1e-3):
    """Each leaf times the root mean square of its parameters, or min_scale where that is larger.

    >>> scale_by_param_block_rms().update(fnp.array([1.0, 1.0]), (), fnp.array([3.0, -3.0]))[0]
    Array([3., 3.], f32[2])
    """
    return stateless(lambda updates, params: tree.map(
        lambda u, p: fitting(fnp.maximum(root_mean_square(p), min_scale), u) * u, updates,
        given(params, "scale_by_param_block_rms", updates)))


def normalize_by_update_norm(scale_factor=1.0, eps=1e-6):
    """Updates divided by their global norm, times scale_factor.

    >>> normalize_by_update_norm(eps=0.0).update(fnp.array([3.0, 4.0]), ())[0]
    Array([0.6, 0.8], f32[2])
    """
    return stateless(lambda updates, params: times(
        scale_factor / (global_norm(updates) + eps), updates))
