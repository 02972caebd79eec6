"""Updates made smaller when the loss no longer falls.

Relies on `base.py`; users put it at the end of a chain.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import numpy as fnp
from ..errors import ArgumentError, RangeError
from .base import GradientTransformationExtraArgs, counted, start, times


class ReduceLROnPlateauState(NamedTuple):
    """The factor f32[], the best value f32[], counts i32[], the mean of values gathered f32[]."""
    scale: object
    best_value: object
    plateau_count: object
    cooldown_count: object
    count: object
    avg_value: object


def reduce_on_plateau(factor=0.1, patience=10, rtol=1e-4, atol=0.0, cooldown=0,
                      accumulation_size=1, min_scale=0.0):
    """Updates times a factor that falls when the loss does not: update(…, value=loss).

    The factor is multiplied by `factor`, down to min_scale, after `patience` values in a row that
    were not below (1 - rtol) · best - atol; then `cooldown` values are not counted.  A value is the
    mean of accumulation_size losses.  Raises RangeError for a factor outside (0, 1) or tolerances
    that are negative or both zero, and ArgumentError for an update without `value`.

    >>> opt = reduce_on_plateau(factor=0.5, patience=1)
    >>> state = opt.init(None)
    >>> for loss in (1.0, 1.0):
    ...     updates, state = opt.update(fnp.ones(1), state, value=loss)
    >>> updates
    Array([0.5], f32[1])
    """
    if not 0 < factor < 1:
        raise RangeError("reduce_on_plateau needs a factor between 0 and 1.", given=str(factor))
    if not (0 <= rtol <= 1 and atol >= 0 and rtol + atol > 0):
        raise RangeError("reduce_on_plateau needs a tolerance above 0, rtol at most 1.",
                         given=f"rtol={rtol}, atol={atol}")

    def init(params):
        return ReduceLROnPlateauState(fnp.array(1.0, "float32"), fnp.array(fnp.inf, "float32"),
                                      start(), start(), start(), fnp.array(0.0, "float32"))

    def judged(s):
        """The state after a full mean."""
        better = s.avg_value < (1 - rtol) * s.best_value - atol
        waited = fnp.where(better, 0, s.plateau_count + 1)
        cooling = s.cooldown_count > 0
        fall = ~cooling & (waited == patience)
        return ReduceLROnPlateauState(
            fnp.where(cooling, s.scale,
                      fnp.maximum(fnp.where(fall, s.scale * factor, s.scale), min_scale)),
            fnp.where(better, s.avg_value, s.best_value),
            fnp.where(cooling | fall, 0, waited),
            fnp.where(cooling, s.cooldown_count - 1, fnp.where(fall, cooldown, 0)),
            fnp.zeros_like(s.count), fnp.zeros_like(s.avg_value))

    def update(updates, state, params=None, *, value=None, **extra):
        if value is None:
            raise ArgumentError("reduce_on_plateau needs the loss.",
                                fix="optimizer.update(grads, state, params, value=loss)")
        value, count = fnp.asarray(value).astype("float32"), counted(state) + 1
        mean = (state.count.astype("float32") * state.avg_value + value) / count.astype("float32")
        gathered = state._replace(avg_value=mean, count=count)
        full = count == accumulation_size
        after = ReduceLROnPlateauState(*[fnp.where(full, a, b)
                                         for a, b in zip(judged(gathered), gathered)])
        return times(after.scale, updates), after
    return GradientTransformationExtraArgs(init, update)
