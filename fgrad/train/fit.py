"""The training loop: epochs of shuffled batches through one compiled step.

All that the next step depends on is in one tree, `run`, and in the numbers of the epoch and the
batch; both go into checkpoints, so a run that was ended at any batch goes on as if it had not been.
Relies on `data.batches`, `optim`'s convention and `io.Checkpointer`.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field, replace

import numpy as np

from .. import random
from .. import numpy as fnp
from ..arguments import check_function
from ..data import batches
from ..errors import ArgumentError, DataError, RangeError
from ..io import Checkpointer, write_whole
from ..jitted import jit
from ..optim import apply_updates
from ..optim.base import check_transformation
from ..transforms import value_and_grad
from .curves import save_curves
from .evaluate import check_metrics, each, evaluator
from .progress import Progress

LOG = "history.json"       # beside the checkpoints: what was shown until each of them


@dataclass
class Trained:
    """What `fit` gives: the state of the run, the history, and why it ended.

    run: {"params", "state", "optimizer"} of a model, or what a step function made of `start`.
    history: per epoch {"loss": …, other metrics, "validation loss": …}, as Python floats.
    ended: "done", "early" (no better for `patience` epochs) or "interrupted" (Ctrl-C).
    """
    run: object
    history: list = field(default_factory=list)
    ended: str = "done"

    @property
    def params(self):
        """The parameters of a model."""
        return self.run["params"]

    @property
    def state(self):
        """The state of a model, such as running means."""
        return self.run["state"]


def fit(model, data, *, epochs=1, size=64, seed=0, loss=None, optimizer=None, metrics=None,
        params=None, state=None, start=None, validation=None, patience=None, monitor=None,
        checkpoints=None, every=None, curves=None, transforms=(), prefetch=2, progress=True,
        device=None):
    """Trains a model, or runs a step function, over epochs of batches, and gives a Trained.

    model: a layer with init and apply, trained with `loss`: (outputs, targets) → one number per
    example, and `optimizer` (of fgrad.optim); or a function step(run, batch, key) → (run, {name:
    number}), which is compiled, with `start` as its first run.
    data: the arrays (x, y), n[rows,*s]; each batch is `size` rows of them, in an order by `seed`
    (an int or a random key) and epoch.  transforms, prefetch: as for `data.batches`.
    metrics: name → (outputs, targets) → one number per example.
    params, state: where to begin, in place of model.init; `optimizer` begins anew.
    validation: (x, y), measured after each epoch; for a step function run → {name: number}.
    patience: ends after so many epochs in which `monitor`, a name in the history ("validation loss"
    by default, or "loss"), did not fall below its least; the run is then that of the best epoch.
    checkpoints: a folder or Checkpointer; saved after each epoch, on Ctrl-C, and after each `every`
    batches.  A run that is there is gone on with, bit for bit, given the same arguments.
    curves: path of an SVG file, drawn anew after each epoch.
    progress: a bar on a terminal and a line per epoch, on stderr; False for silence.
    Ctrl-C saves and ends; what was trained is returned.
    Raises ArgumentError, RangeError or ShapeError before anything runs for what cannot be trained;
    DataError for a checkpoint that does not fit.

    >>> from fgrad import nn, optim
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> done = fit(nn.Dense(1), (x, 3 * x + 1), epochs=30, size=8, optimizer=optim.sgd(0.1),
    ...            loss=lambda outputs, y: (outputs - y) ** 2, progress=False)
    >>> bool(done.history[-1]["loss"] < 1e-3), done.params["w"].shape
    (True, (1, 1))
    """
    data = as_arrays(data)
    check_numbers(epochs=epochs, size=size, patience=patience, every=every)
    key = seed if isinstance(seed, random.Key) else random.key(seed)
    if hasattr(model, "apply"):
        step, run = model_step(model, loss, optimizer, metrics or {}, data, params, state, key)
        measure = model_measure(model, loss, metrics or {}, validation, size, device)
    else:
        unused = loss, optimizer, metrics, params, state
        step, run, measure = own_step(model, start, validation, *unused)
    loop = Loop(jit(step, device=device), run, key, data, min(size, len(data[0])), measure)
    loop.options(epochs, patience, monitor, every, curves, transforms, prefetch, progress)
    if checkpoints is not None:
        known = isinstance(checkpoints, Checkpointer)
        loop.use(checkpoints if known else Checkpointer(checkpoints))
    return loop.go()


# ---------------------------------------------------------------------------- arguments

def as_arrays(data):
    """The arrays of a data set as a tuple.  Raises ArgumentError for anything else."""
    if not isinstance(data, (tuple, list)) or not data:
        raise ArgumentError("the data are arrays of equal length.", given=type(data).__name__,
                            fix="fit(model, (images, labels), …)")
    return tuple(map(np.asarray, data))


def check_numbers(**options):
    """Raises RangeError for an option that is no whole number of 1 or more; None is left out."""
    for name, value in options.items():
        if value is None and name not in ("epochs", "size"):
            continue
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or value < 1:
            raise RangeError(f"{name} is a whole number of 1 or more.", given=f"{name}={value!r}")


def model_step(model, loss, optimizer, metrics, data, params, state, key):
    """(step, first run) for a model: gradients of the mean loss, one update."""
    if loss is None or optimizer is None or len(data) != 2:
        raise ArgumentError("training a model takes (x, y), a loss and an optimizer.",
                            given=[f"{len(data)} arrays", f"loss={loss!r}"[:100],
                                   f"optimizer={optimizer!r}"[:100]],
                            fix="fit(model, (x, y), loss=…, optimizer=optim.adam(1e-3))")
    check_function(loss, "fit", "loss", "loss=nn.squared_error, or another of fgrad.nn")
    check_transformation(optimizer, "fit takes an optimizer")
    check_metrics(metrics)
    if params is None:
        params, fresh = model.init(random.fold_in(key, 2**32 - 1), data[0][:1])
        state = fresh if state is None else state
    run = {"params": params, "state": state or {}, "optimizer": optimizer.init(params)}

    def step(run, batch, key):
        x, y = batch

        def mean_loss(params):
            outputs, state = model.apply(params, run["state"], x, train=True, key=key)
            value = fnp.mean(each("loss", loss(outputs, y), len(x)))
            shown = {name: fnp.mean(each(name, f(outputs, y), len(x)))
                     for name, f in metrics.items()}
            return value, (state, {"loss": value, **shown})
        (_, (state, shown)), grads = value_and_grad(mean_loss, has_aux=True)(run["params"])
        updates, after = optimizer.update(grads, run["optimizer"], run["params"])
        params = apply_updates(run["params"], updates)
        return {"params": params, "state": state, "optimizer": after}, shown
    return step, run


def model_measure(model, loss, metrics, validation, size, device):
    """run → {name: number} over the validation data, or None."""
    if validation is None:
        return None
    x, y = as_arrays(validation)
    means = evaluator(model, {"loss": loss, **metrics}, size=max(size, 256), device=device)
    return lambda run: means(run["params"], run["state"], x, y)


def own_step(step, start, validation, *others):
    """(step, first run, measure) for a step function; ArgumentError for a model's arguments."""
    if not callable(step) or start is None or any(other is not None for other in others):
        raise ArgumentError(
            "fit takes a model, with loss and optimizer, or a step function, with start.",
            given=repr(step)[:200],
            fix="fit(step, data, start=run) with step(run, batch, key) → (run, {name: number})")
    if validation is not None and not callable(validation):
        raise ArgumentError("validation of a step function is a function run → {name: number}.",
                            given=type(validation).__name__)
    return step, start, validation


# ---------------------------------------------------------------------------- the loop

@dataclass(frozen=True)
class Point:
    """Where a run is: replaced whole, so that Ctrl-C finds the one before or the one after a step.

    batch: batches of this epoch that are done; sums: totals of what they have shown; best: the run
    at the end of the epoch that `monitor` names.
    """
    run: object
    best: object
    history: tuple = ()
    batch: int = 0
    sums: dict = field(default_factory=dict)

    def means(self):
        """The means of what the steps of this epoch have shown."""
        return {name: total / self.batch for name, total in self.sums.items()}


class Loop:
    """One run of `fit`; `at`, its Point, is changed by `advance`, `close` and `use` alone."""

    def __init__(self, step, run, key, data, size, measure):
        self.step, self.key, self.data, self.size, self.measure = step, key, data, size, measure
        self.at = Point(run, run)
        self.checkpoints = None

    def options(self, epochs, patience, monitor, every, curves, transforms, prefetch, progress):
        """Takes over the options."""
        self.epochs, self.patience, self.every = epochs, patience, every
        self.monitor = monitor or ("loss" if self.measure is None else "validation loss")
        self.curves, self.progress = curves, progress
        self.transforms, self.prefetch = transforms, prefetch
        self.steps = len(self.batches_of(0))

    def batches_of(self, epoch):
        """The batches of an epoch, in the order that belongs to it."""
        words = np.asarray(random.key_data(self.key)).tolist()
        return batches(*self.data, size=self.size, seed=(*words, epoch), transforms=self.transforms,
                       prefetch=self.prefetch)

    def go(self):
        """Trains to the end, and gives the Trained."""
        ended = "early" if self.no_better() else "done"
        try:
            while len(self.at.history) < self.epochs and ended == "done":
                self.epoch()
                ended = "early" if self.no_better() else "done"
        except KeyboardInterrupt:
            ended = "interrupted"
            self.save()
        run = self.at.best if ended == "early" else self.at.run
        return Trained(run, list(self.at.history), ended)

    def epoch(self):
        """One epoch, or what is left of it: its batches, then validation, a line, a checkpoint."""
        title = f"epoch {len(self.at.history) + 1}/{self.epochs}"
        line = Progress(title, self.steps, self.size) if self.progress else None
        try:
            self.batches(line)
            measured = self.measure(self.at.run) if self.measure else {}
        finally:
            if line:
                line.clear()
        measured = {f"validation {name}": float(v) for name, v in measured.items()}
        self.close({**self.at.means(), **measured})
        if line:
            line.done(self.at.history[-1])
        self.save()
        if self.curves:
            save_curves(self.curves, self.at.history)

    def batches(self, line):
        """The batches of the epoch that are still to come, a step each."""
        epoch, done = len(self.at.history), self.at.batch
        for k, batch in enumerate(self.batches_of(epoch)):
            if k < done:
                continue
            self.advance(batch, epoch * self.steps + k)
            if line:
                line.show(self.at.batch, self.at.means())
            if self.every and self.at.batch % self.every == 0 and self.at.batch < self.steps:
                self.save()

    def advance(self, batch, number):
        """One step."""
        at = self.at
        run, shown = self.step(at.run, batch, random.fold_in(self.key, number))
        names = sorted(shown, key=lambda name: name != "loss")           # the loss first
        sums = {name: at.sums.get(name, 0.0) + float(shown[name]) for name in names}
        self.at = replace(at, run=run, sums=sums, batch=at.batch + 1)

    def close(self, row):
        """Ends an epoch with this row of the history."""
        at = self.at
        if self.patience and self.monitor not in row:
            raise ArgumentError(f"there is no {self.monitor!r} in the history.",
                                given=", ".join(row), fix="monitor= one of these")
        history = (*at.history, row)
        best = at.run if best_epoch(history, self.monitor) == len(history) - 1 else at.best
        self.at = Point(at.run, best, history)

    def no_better(self):
        """Has `patience` run out?"""
        history = self.at.history
        if not self.patience or not history:
            return False
        return len(history) - 1 - best_epoch(history, self.monitor) >= self.patience

    # ------------------------------------------------------------------------ checkpoints

    def tree(self):
        """What a checkpoint holds."""
        best = {"best": self.at.best} if self.patience else {}
        return {"run": self.at.run, "key": self.key, **best}

    def save(self):
        """Writes the log, then the checkpoint: a log without its checkpoint does no harm."""
        if self.checkpoints is None:
            return
        at, kept = self.at, self.checkpoints.steps()
        number = len(at.history) * self.steps + at.batch
        log = {k: row for k, row in self.read_log().items() if int(k) in kept}
        log[str(number)] = {"history": at.history, "batch": at.batch, "sums": at.sums,
                            "steps": self.steps}
        write_whole(os.path.join(self.checkpoints.folder, LOG), [json.dumps(log).encode()])
        self.checkpoints.save(number, self.tree())

    def read_log(self):
        """number of a checkpoint, as text → {"history", "batch", "sums", "steps"}."""
        path = os.path.join(self.checkpoints.folder, LOG)
        if not os.path.exists(path):
            return {}
        try:
            with open(path, encoding="utf8") as file:
                return dict(json.load(file))
        except (ValueError, TypeError) as error:
            raise DataError(f"{path} is not a history: {error}.",
                            fix="begin anew in another folder") from None

    def use(self, checkpoints):
        """Goes on from the latest checkpoint, where there is one."""
        self.checkpoints, number = checkpoints, checkpoints.latest()
        if number is None:
            return
        log = self.read_log().get(str(number))
        if log is None or log["steps"] != self.steps:
            given = "no history of it" if log is None else f"{log['steps']} batches an epoch"
            raise DataError(
                f"the checkpoint of step {number} in {checkpoints.folder} is of another run.",
                given=given, expected=f"{self.steps} batches an epoch",
                fix="give the same data and size, or another folder")
        found = checkpoints.restore(like=self.tree(), step=number)
        self.key = found["key"]
        self.at = Point(found["run"], found.get("best", found["run"]), tuple(log["history"]),
                        log["batch"], log["sums"])


def best_epoch(history, monitor):
    """The index of the first row in which `monitor` is least; NaN is never least.

    >>> best_epoch([{"loss": 2.0}, {"loss": 1.0}, {"loss": 1.0}, {"loss": math.nan}], "loss")
    1
    """
    values = [row.get(monitor, math.inf) for row in history]
    return min(range(len(values)), key=lambda k: math.inf if math.isnan(values[k]) else values[k])
