"""Metrics of a model over a whole data set, in one compiled call.

The rows are cut into batches of one size; the last is filled up with copies of the first row, which
weigh nothing, so every batch has one shape and one compilation does for all.
"""

from __future__ import annotations

import numpy as np

from .. import lax
from .. import numpy as fnp
from ..data.batches import check_lengths, check_size
from ..errors import ArgumentError, ShapeError
from ..jitted import jit
from ..nn.losses import right


def correct(outputs, labels):
    """1 where the largest output is at the label, else 0: f[*s,classes], i[*s] → f32[*s].

    Raises ShapeError and DtypeError as `nn.accuracy` does.

    >>> correct(fnp.array([[0.1, 0.9], [0.8, 0.2]]), fnp.array([1, 1]))
    Array([1., 0.], f32[2])
    """
    return right("correct", outputs, labels)


def each(name, values, rows):
    """A metric as one number per row, means over all other axes; ShapeError without a row axis."""
    if fnp.shape(values)[:1] != (rows,):
        raise ShapeError(f"the metric {name!r} gives one number per example.",
                         given=f"shape {fnp.shape(values)} for {rows} examples",
                         expected=f"shape ({rows},) or ({rows}, …)",
                         fix="leave out the mean; it is taken over all examples here")
    values = values.astype("float32") if values.dtype.kind not in "fc" else values
    return fnp.mean(fnp.reshape(values, (rows, -1)), axis=1)


def check_metrics(metrics):
    """Raises ArgumentError unless these are functions by name."""
    if not isinstance(metrics, dict) or not all(map(callable, metrics.values())):
        raise ArgumentError(
            "metrics are functions (outputs, targets) → one number per example, by name.",
            given=repr(metrics)[:200], fix='metrics={"accuracy": fgrad.train.correct}')


def evaluator(model, metrics, *, size=256, device=None):
    """A function (params, state, x, y) → {name: mean over all rows}, compiled at its first call.

    model: anything with apply(params, state, x, *, train=False) → (outputs, state).
    metrics: name → function (outputs, targets) → f[rows], or f[rows,*s] whose mean is taken.
    x, y: n[rows,*s] of equal length.  size: rows at once.
    Raises ArgumentError for metrics that are no functions; when it is called, ShapeError for
    arrays of unequal length or a metric without an axis of rows, and RangeError for no rows.

    >>> from fgrad import nn
    >>> accuracy = evaluator(nn.Flatten(), {"accuracy": correct}, size=2)
    >>> accuracy({}, {}, np.eye(3, dtype=np.float32), np.array([0, 1, 1]))
    {'accuracy': 0.6666666666666666}
    """
    check_metrics(metrics)

    def batch_sums(params, state, x, y, weights):
        def one(part):
            x, y, weights = part
            outputs, _ = model.apply(params, state, x, train=False)
            values = {name: each(name, f(outputs, y), len(weights)) for name, f in metrics.items()}
            return {name: fnp.sum(fnp.where(weights > 0, v, 0.0)) for name, v in values.items()}
        return lax.map(one, (x, y, weights))

    compiled = jit(batch_sums, device=device)

    def means(params, state, x, y):
        x, y = np.asarray(x), np.asarray(y)
        check_lengths([x, y])
        check_size(1, len(x), True)
        rows = min(size, len(x))
        weights = np.ones(len(x), np.float32)
        parts = in_batches(x, rows), in_batches(y, rows), in_batches(weights, rows, 0)
        return {name: float(np.sum(np.asarray(sums), dtype=np.float64)) / len(x)
                for name, sums in compiled(params, state, *parts).items()}
    return means


def evaluate(model, params, state, x, y, metrics, *, size=256, device=None):
    """{name: mean over all rows} of metrics; `evaluator` says more, compiles once for many calls.

    >>> from fgrad import nn
    >>> evaluate(nn.Flatten(), {}, {}, np.eye(3), np.arange(3), {"accuracy": correct})
    {'accuracy': 1.0}
    """
    return evaluator(model, metrics, size=size, device=device)(params, state, x, y)


def in_batches(a, rows, fill=None):
    """n[batches,rows,*s] of n[n,*s]; what the last one lacks is `fill`, or copies of row 0."""
    missing = -len(a) % rows
    if missing:
        rest = a[:1] if fill is None else np.asarray(fill, a.dtype)
        rest = np.broadcast_to(rest, (missing, *a.shape[1:]))
        a = np.concatenate([a, rest])
    return a.reshape(-1, rows, *a.shape[1:])
