"""Schedules: functions of the number of updates so far, i32[] or int, that give a number, f32[].

They trace, so one compiled step serves a whole training.  Names, arguments and values are optax's.
Relies on `fgrad.numpy`; `scale_by_learning_rate` takes them, and every optimizer does through it.
"""

from __future__ import annotations

import math

from .. import numpy as fnp
from ..errors import ArgumentError, RangeError, bound

__all__ = ["constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule",
           "exponential_decay", "join_schedules", "linear_onecycle_schedule", "linear_schedule",
           "piecewise_constant_schedule", "piecewise_interpolate_schedule", "polynomial_schedule",
           "sgdr_schedule", "warmup_constant_schedule", "warmup_cosine_decay_schedule",
           "warmup_exponential_decay_schedule"]
__dir__ = __all__.copy     # dir() lists these and nothing else


def constant_schedule(value):
    """The same number at every step.

    >>> constant_schedule(0.1)(7)
    0.1
    """
    return lambda count: value


def steps_of(count):
    """The count as f32[]."""
    return fnp.asarray(count).astype("float32")


def positive(name, **steps):
    """Raises RangeError where a number of steps is not above zero."""
    for key, value in steps.items():
        if value <= 0:
            raise RangeError(f"{name} needs a positive number of steps.", given=f"{key}={value}")


# ---------------------------------------------------------------------------- decay

def polynomial_schedule(init_value, end_value, power, transition_steps, transition_begin=0):
    """From init_value to end_value by (1 - t)^power, t growing from 0 to 1 in transition_steps.

    The transition begins after transition_begin steps.  No steps: init_value for ever, as in optax.

    >>> polynomial_schedule(1.0, 0.0, 2, transition_steps=4)(2)
    Array(0.25, f32[])
    """
    if transition_steps <= 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count):
        left = 1 - fnp.clip(steps_of(count) - begin, 0.0, transition_steps) / transition_steps
        return (init_value - end_value) * left ** power + end_value
    return schedule


def linear_schedule(init_value, end_value, transition_steps, transition_begin=0):
    """From init_value to end_value along a line.

    >>> linear_schedule(1.0, 0.0, transition_steps=4)(1)
    Array(0.75, f32[])
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def exponential_decay(init_value, transition_steps, decay_rate, transition_begin=0,
                      staircase=False, end_value=None):
    """init_value · decay_rate^(step / transition_steps), not beyond end_value.

    staircase: the exponent is rounded down, which makes steps.

    >>> exponential_decay(1.0, transition_steps=10, decay_rate=0.5, staircase=True)(19)
    Array(0.5, f32[])
    """
    if transition_steps <= 0 or decay_rate == 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count):
        exponent = fnp.maximum(steps_of(count) - begin, 0.0) / transition_steps
        exponent = fnp.floor(exponent) if staircase else exponent
        out = init_value * fnp.power(decay_rate, exponent)
        if end_value is None:
            return out
        return (fnp.maximum if decay_rate < 1 else fnp.minimum)(out, end_value)
    return schedule


def cosine_decay_schedule(init_value, decay_steps, alpha=0.0, exponent=1.0):
    """From init_value to alpha · init_value along half a cosine (Loshchilov and Hutter 2017).

    exponent: of the cosine's part.  Raises RangeError unless decay_steps > 0.

    >>> cosine_decay_schedule(1.0, decay_steps=10, alpha=0.5)(5)
    Array(0.75, f32[])
    """
    positive("cosine_decay_schedule", decay_steps=decay_steps)

    def schedule(count):
        part = fnp.minimum(steps_of(count), decay_steps) / decay_steps
        cosine = 0.5 * (1 + fnp.cos(math.pi * part))
        return init_value * ((1 - alpha) * fnp.maximum(cosine, 0.0) ** exponent + alpha)
    return schedule


# ---------------------------------------------------------------------------- pieces

def join_schedules(schedules, boundaries):
    """The first schedule before boundaries[0], then the next, each counting from its boundary.

    Raises ArgumentError unless there is one boundary between every two schedules.

    >>> join = join_schedules([constant_schedule(1.0), linear_schedule(2.0, 0.0, 4)], [10])
    >>> join(9), join(11)
    (Array(1., f32[]), Array(1.5, f32[]))
    """
    schedules, boundaries = list(schedules), list(boundaries)
    if len(boundaries) != len(schedules) - 1:
        raise ArgumentError("join_schedules needs one boundary between every two schedules.",
                            given=f"{len(schedules)} schedules, {len(boundaries)} boundaries")

    def joined(count):
        out = schedules[0](count)
        for boundary, schedule in zip(boundaries, schedules[1:]):
            out = fnp.where(fnp.asarray(count) < boundary, out, schedule(count - boundary))
        return out
    return joined


def scales_of(name, boundaries_and_scales):
    """The boundaries in order, with their scales.  Raises RangeError for a negative scale."""
    rows = sorted((boundaries_and_scales or {}).items())
    for boundary, scale in rows:
        if scale < 0:
            raise RangeError(f"{name} needs scales of 0 or more.", given=f"{boundary}: {scale}")
    return rows


def piecewise_constant_schedule(init_value, boundaries_and_scales=None):
    """init_value, times the scale of each boundary that the step has reached.

    >>> piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.1})(10)
    Array(0.5, f32[])
    """
    rows = scales_of("piecewise_constant_schedule", boundaries_and_scales)

    def schedule(count):
        out = fnp.asarray(init_value)
        for boundary, scale in rows:
            out = fnp.where(fnp.asarray(count) < boundary, out, out * scale)
        return out
    return schedule


INTERPOLATIONS = {
    "linear": lambda start, end, part: start + (end - start) * part,
    "cosine": lambda start, end, part: end + (start - end) / 2 * (fnp.cos(math.pi * part) + 1),
}


def piecewise_interpolate_schedule(interpolate_type, init_value, boundaries_and_scales=None):
    """Through init_value at 0 and, at each boundary, the value before it times its scale.

    interpolate_type: "linear" or "cosine"; after the last boundary the value stays.  Raises
    ArgumentError for another, RangeError for a negative scale.

    >>> piecewise_interpolate_schedule("linear", 1.0, {10: 3.0, 20: 0.0})(5)
    Array(2., f32[])
    """
    if interpolate_type not in INTERPOLATIONS:
        raise ArgumentError("there is no such interpolation.", given=repr(interpolate_type),
                            expected='"linear" or "cosine"')
    between = INTERPOLATIONS[interpolate_type]
    bounds, values = [0], [init_value]
    for boundary, scale in scales_of("piecewise_interpolate_schedule", boundaries_and_scales):
        bounds.append(boundary)
        values.append(values[-1] * scale)

    def schedule(count):
        step, out = steps_of(count), fnp.asarray(values[-1])
        for k in reversed(range(len(bounds) - 1)):
            part = (step - bounds[k]) / max(bounds[k + 1] - bounds[k], 1)
            out = fnp.where(step < bounds[k + 1], between(values[k], values[k + 1], part), out)
        return out
    return schedule


def linear_onecycle_schedule(transition_steps, peak_value, pct_start=0.3, pct_final=0.85,
                             div_factor=25.0, final_div_factor=1e4):
    """Up to peak_value, down again, and further down, along lines (Smith and Topin 2018).

    From peak / div_factor, to the peak at pct_start, back at pct_final, to that / final_div_factor
    at the end.  Raises RangeError unless transition_steps > 0.

    >>> linear_onecycle_schedule(100, 1.0)(30)
    Array(1., f32[])
    """
    positive("linear_onecycle_schedule", transition_steps=transition_steps)
    return piecewise_interpolate_schedule("linear", peak_value / div_factor, {
        int(pct_start * transition_steps): div_factor,
        int(pct_final * transition_steps): 1 / div_factor,
        transition_steps: 1 / final_div_factor})


def cosine_onecycle_schedule(transition_steps, peak_value, pct_start=0.3, div_factor=25.0,
                             final_div_factor=1e4):
    """Up to peak_value and down to nearly nothing, along half cosines (Smith and Topin 2018).

    From peak / div_factor, to the peak at pct_start, to peak / (div_factor · final_div_factor).
    Raises RangeError unless transition_steps > 0.

    >>> cosine_onecycle_schedule(100, 1.0)(30)
    Array(1., f32[])
    """
    positive("cosine_onecycle_schedule", transition_steps=transition_steps)
    return piecewise_interpolate_schedule("cosine", peak_value / div_factor, {
        int(pct_start * transition_steps): div_factor,
        transition_steps: 1 / (div_factor * final_div_factor)})


# ---------------------------------------------------------------------------- with warm-up

def warmup_constant_schedule(init_value, peak_value, warmup_steps):
    """From init_value to peak_value along a line, then constant.

    >>> warmup_constant_schedule(0.0, 1.0, 10)(5)
    Array(0.5, f32[])
    """
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(init_value, peak_value, warmup_steps, decay_steps, end_value=0.0,
                                 exponent=1.0):
    """To peak_value along a line, then to end_value along half a cosine.

    decay_steps: of the whole, warm-up included.  Raises RangeError unless it is above warmup_steps.

    >>> warmup_cosine_decay_schedule(0.0, 1.0, 10, 30)(10)
    Array(1., f32[])
    """
    positive("warmup_cosine_decay_schedule",
             **{"decay_steps - warmup_steps": decay_steps - warmup_steps})
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps),
         cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)],
        [warmup_steps])


def warmup_exponential_decay_schedule(init_value, peak_value, warmup_steps, transition_steps,
                                      decay_rate, transition_begin=0, staircase=False,
                                      end_value=None):
    """To peak_value along a line, then `exponential_decay`.

    >>> warmup_exponential_decay_schedule(0.0, 1.0, 10, 10, 0.5)(20)
    Array(0.5, f32[])
    """
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps),
         exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase,
                           end_value)],
        [warmup_steps])


def sgdr_schedule(cosine_kwargs):
    """Cosine decays with warm restarts, one after the other (SGDR; Loshchilov and Hutter 2017).

    cosine_kwargs: the arguments of `warmup_cosine_decay_schedule` for each, as dictionaries.

    >>> cycle = dict(init_value=1.0, peak_value=1.0, warmup_steps=0, decay_steps=10)
    >>> sgdr_schedule([cycle, cycle])(10)
    Array(1., f32[])
    """
    cycles = list(cosine_kwargs)
    ends = [sum(c["decay_steps"] for c in cycles[:k]) for k in range(1, len(cycles))]
    return join_schedules([warmup_cosine_decay_schedule(**c) for c in cycles], ends)


bound(globals())
