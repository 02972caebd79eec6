"""Transformations around an optimizer: accumulation, lookahead, hyperparameters in the state, care.

What a step does not want is computed and left out, since a choice between arrays compiles to less
than a branch.  Relies on `base.py`; users rely on it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import NamedTuple

from .. import numpy as fnp
from .. import tree
from ..errors import ArgumentError, RangeError
from .base import (GradientTransformation, GradientTransformationExtraArgs, all_finite,
                   check_transformation, choose, counted, guarded, keep_all, start,
                   with_extra_args_support, zeros)


# ---------------------------------------------------------------------------- accumulation

class MultiStepsState(NamedTuple):
    """Gradients gathered i32[], updates made i32[], the inner state, and the gathered gradients."""
    mini_step: object
    gradient_step: object
    inner_opt_state: object
    acc_grads: object


class MultiSteps:
    """One update for every k gradients, from their mean (or sum); zero updates in between.

    every_k_schedule: k, or a function of the number of updates made.  The gradients are gathered in
    `accumulator_dtype`.

    >>> from fgrad.optim import sgd
    >>> opt = MultiSteps(sgd(1.0), every_k_schedule=2)
    >>> state = opt.init(fnp.zeros(1))
    >>> first, state = opt.update(fnp.array([1.0]), state)
    >>> second, state = opt.update(fnp.array([3.0]), state)
    >>> first, second, bool(opt.has_updated(state))
    (Array([0.], f32[1]), Array([-2.], f32[1]), True)
    """

    def __init__(self, opt, every_k_schedule, use_grad_mean=True, *, accumulator_dtype="float32"):
        if not callable(every_k_schedule) and every_k_schedule < 1:
            raise RangeError("MultiSteps gathers one gradient or more.",
                             given=f"every_k_schedule={every_k_schedule}")
        self._opt = with_extra_args_support(opt, "MultiSteps takes an optimizer")
        self._every, self._mean, self._dtype = every_k_schedule, use_grad_mean, accumulator_dtype

    def init(self, params):
        """The state before the first gradient."""
        return MultiStepsState(start(), start(), self._opt.init(params),
                               zeros(params, self._dtype))

    @guarded
    def update(self, updates, state, params=None, **extra):
        """(updates, state); the updates are zero unless this was the last of k gradients."""
        k = self._every(state.gradient_step) if callable(self._every) else self._every
        last = state.mini_step >= k - 1
        gathered = keep_all(state.acc_grads, tree.map(
            lambda u, a: self._added(u, a, state.mini_step), updates, state.acc_grads))
        found, inner = self._opt.update(keep_all(updates, gathered), state.inner_opt_state, params,
                                        **extra)
        after = MultiStepsState(fnp.where(last, 0, state.mini_step + 1),
                                state.gradient_step + last.astype("int32"),
                                choose(last, inner, state.inner_opt_state),
                                choose(last, zeros(gathered), gathered))
        return choose(last, found, zeros(found)), after

    def _added(self, u, gathered, n):
        return gathered + (u - gathered) / (n + 1).astype(gathered.dtype) if self._mean \
            else gathered + u

    def has_updated(self, state):
        """Was the last gradient one that led to an update?   → bool[]"""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self):
        """The same as a GradientTransformation."""
        return GradientTransformationExtraArgs(self.init, self.update)


# ---------------------------------------------------------------------------- lookahead

class LookaheadState(NamedTuple):
    """The state of the fast optimizer, and its steps since the last synchronisation: i32[]."""
    fast_state: object
    steps_since_sync: object


class LookaheadParams(NamedTuple):
    """Parameters that the fast optimizer moves, and those that follow slowly; test with `slow`."""
    fast: object
    slow: object

    @classmethod
    def init_synced(cls, params):
        """Both equal: the start."""
        return cls(fast=params, slow=params)


def lookahead(fast_optimizer, sync_period, slow_step_size, reset_state=False):
    """k fast steps, then slow ← slow + slow_step_size · (fast - slow), and fast ← slow.

    Its params and updates are LookaheadParams; gradients are those of the fast parameters.
    reset_state: the fast optimizer begins anew then.  Zhang et al. 2019.

    >>> from fgrad.optim import apply_updates, sgd
    >>> opt = lookahead(sgd(1.0), sync_period=1, slow_step_size=0.5)
    >>> params = LookaheadParams.init_synced(fnp.array([0.0]))
    >>> updates, state = opt.update(fnp.array([-1.0]), opt.init(params), params)
    >>> apply_updates(params, updates).slow
    Array([0.5], f32[1])
    """
    check_transformation(fast_optimizer, "lookahead takes an optimizer")
    if sync_period < 1:
        raise RangeError("lookahead synchronises after one step or more.",
                         given=f"sync_period={sync_period}")

    def init(params):
        return LookaheadState(fast_optimizer.init(synced(params).fast), start())

    def update(updates, state, params=None):
        params = synced(params)
        updates, inner = fast_optimizer.update(updates, state.fast_state, params.fast)
        sync = state.steps_since_sync == sync_period - 1
        ahead = tree.map(lambda f, u, s: f + u - s, params.fast, updates, params.slow)
        slow = choose(sync, tree.map(lambda d: slow_step_size * d, ahead), zeros(ahead))
        back = tree.map(lambda u, d: u - (1 - slow_step_size) * d, updates, ahead)
        if reset_state:
            inner = choose(sync, fast_optimizer.init(params.fast), inner)
        after = LookaheadState(inner, fnp.where(sync, 0, state.steps_since_sync + 1))
        return LookaheadParams(choose(sync, back, updates), slow), after
    return GradientTransformation(init, update)


def synced(params):
    """The LookaheadParams.  Raises ArgumentError for others."""
    if not isinstance(params, LookaheadParams):
        raise ArgumentError("lookahead needs LookaheadParams.", given=type(params).__name__,
                            fix="params = LookaheadParams.init_synced(params)")
    return params


# ---------------------------------------------------------------------------- care

class ApplyIfFiniteState(NamedTuple):
    """Bad updates in a row i32[], was the last good bool[], all bad ones i32[], the inner state."""
    notfinite_count: object
    last_finite: object
    total_notfinite: object
    inner_state: object


def apply_if_finite(inner, max_consecutive_errors):
    """`inner`, but zero updates and the state as it was where a NaN or an infinity comes in.

    More than max_consecutive_errors of these in a row are let through, so that they are seen.

    >>> from fgrad.optim import sgd
    >>> opt = apply_if_finite(sgd(1.0), 3)
    >>> opt.update(fnp.array([fnp.nan]), opt.init(fnp.zeros(1)))[0]
    Array([0.], f32[1])
    """
    inner = with_extra_args_support(inner, "apply_if_finite takes an optimizer")

    def init(params):
        return ApplyIfFiniteState(start(), fnp.array(True), start(), inner.init(params))

    def update(updates, state, params=None, **extra):
        good = all_finite(updates)
        bad = fnp.where(good, 0, state.notfinite_count + 1)
        found, after = inner.update(updates, state.inner_state, params, **extra)
        use = good | (bad > max_consecutive_errors)
        total = state.total_notfinite + (~good).astype("int32")
        return choose(use, found, zeros(found)), ApplyIfFiniteState(
            bad, good, total, choose(use, after, state.inner_state))
    return GradientTransformationExtraArgs(init, update)


class UnfreezeState(NamedTuple):
    """The number of updates so far i32[], and the state of the inner transformation."""
    count: object
    inner_state: object


def unfreeze_at(inner, step):
    """`inner` from update number `step` on; zero updates, and its state untouched, before.

    In `multi_transform`, one for each group with its own step: progressive unfreezing (Howard and
    Ruder 2018).

    >>> from fgrad.optim import sgd
    >>> opt = unfreeze_at(sgd(1.0), 1)
    >>> first, state = opt.update(fnp.ones(1), opt.init(fnp.ones(1)))
    >>> first, opt.update(fnp.ones(1), state)[0]
    (Array([0.], f32[1]), Array([-1.], f32[1]))
    """
    inner = with_extra_args_support(inner, "unfreeze_at takes an optimizer")

    def update(updates, state, params=None, **extra):
        free = counted(state) >= step
        found, after = inner.update(updates, state.inner_state, params, **extra)
        kept = choose(free, after, state.inner_state)
        return choose(free, found, zeros(found)), UnfreezeState(state.count + 1, kept)
    return GradientTransformationExtraArgs(lambda p: UnfreezeState(start(), inner.init(p)), update)


# ---------------------------------------------------------------------------- hyperparameters

class InjectHyperparamsState(NamedTuple):
    """The number of updates i32[], {name: value} of the hyperparameters, and the inner state."""
    count: object
    hyperparams: object
    inner_state: object


def inject_hyperparams(inner_factory, static_args=(), hyperparam_dtype=None):
    """The factory of an optimizer, its numbers moved into the state, where they can be changed.

    Numbers and arrays become `state.hyperparams[name]`, of hyperparam_dtype (f32 if None); a
    schedule is evaluated anew at each update, and its value stands there.  bools, None and
    static_args stay as given.  Raises ArgumentError for static_args that the factory lacks.

    >>> from fgrad.optim import sgd
    >>> opt = inject_hyperparams(sgd)(learning_rate=1.0)
    >>> state = opt.init(fnp.zeros(1))
    >>> state.hyperparams["learning_rate"] = fnp.array(0.5)
    >>> opt.update(fnp.ones(1), state)[0]
    Array([-0.5], f32[1])
    """
    static = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = inspect.signature(inner_factory)
    unknown = static - set(signature.parameters)
    if unknown:
        raise ArgumentError("the optimizer has no such parameters.",
                            given=", ".join(sorted(unknown)),
                            expected=", ".join(signature.parameters))

    @wraps(inner_factory)
    def factory(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return injected(inner_factory, *sorted_out(bound.arguments, static), hyperparam_dtype)
    return factory


def sorted_out(arguments, static):
    """(numbers, schedules, others): the arguments of a factory by what becomes of them."""
    numbers, schedules, others = {}, {}, {}
    for name, value in arguments.items():
        if name in static or value is None or isinstance(value, (bool, str)):
            others[name] = value
        elif callable(value):
            schedules[name] = value
        elif isinstance(value, (int, float)) or hasattr(value, "dtype"):
            numbers[name] = value
        else:
            others[name] = value
    return numbers, schedules, others


def injected(factory, numbers, schedules, others, dtype):
    """The transformation of `inject_hyperparams`."""
    def array(value):
        value = fnp.asarray(value)
        return value.astype(dtype) if dtype is not None and value.dtype.kind == "f" else value

    def scheduled(count):
        return {name: array(schedule(count)) for name, schedule in schedules.items()}

    def init(params):
        values = {name: array(x) for name, x in numbers.items()} | scheduled(start())
        return InjectHyperparamsState(start(), values, factory(**others, **values).init(params))

    def update(updates, state, params=None, **extra):
        values = {name: state.hyperparams[name] for name in numbers} | scheduled(counted(state))
        inner = with_extra_args_support(factory(**others, **values))
        updates, after = inner.update(updates, state.inner_state, params, **extra)
        return updates, InjectHyperparamsState(state.count + 1, values, after)
    return GradientTransformationExtraArgs(init, update)
