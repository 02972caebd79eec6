"""The autotuner: FGRAD_TUNE=n times up to n other Schedules of every hot kernel on the device.

    tuned: heavy=4 (0.712 ms) over the default (0.834 ms), heavy=1 (0.905 ms)

A Schedule decides the order of work, so values change by rounding at most.  What is chosen is kept
on disk under the kernel's text, the device and n, and used again wherever FGRAD_TUNE=n is set;
without the variable every kernel has its default.  It relies on the passes for Schedules and on
cache.py; a backend whose kernels are worth it gives `tuner` its executables.
"""

from __future__ import annotations

import json
import time
from math import prod

import numpy as np

from .. import config, loop_key
from ..core import array_of
from ..errors import ArgumentError
from ..loop import Contract, For, Plan
from ..passes.names import loops_of
from ..passes.parts import cost_of
from ..passes.schedule import Choice, arranged
from ..records import frozen, replace
from ..types import held_as
from . import cache

SHARE = 0.9                # of a Plan's estimated time that is tuned
LEAST = 5e-6               # estimated seconds of a kernel that is worth tuning
MOST = 1 << 30             # bytes of buffers that a trial may take
GAIN = 0.97                # of the default's time that a choice must stay below: the rest is noise
ROUNDS = 9                 # each candidate once in every round; the best round counts
ROUND = 1e-3               # seconds that a candidate runs for in a round, at least
SPEED = 1e10               # additions a second: for the estimate alone
PRODUCT_SPEED = 5e10       # multiply-adds of a contraction a second: for the estimate alone
BANDWIDTH = 1e10           # bytes a second: for the estimate alone
KNOWN = {}                 # key → Tried, of this process


def wanted():
    """How many other Schedules FGRAD_TUNE asks to try.  Raises ArgumentError where it is no count.
    """
    text = config.tune()
    if not (text.isascii() and text.isdigit()):
        raise ArgumentError("FGRAD_TUNE is not a count.", given=f"FGRAD_TUNE={text}",
                            expected="how many schedules of a hot kernel are tried: 0, 1, 2, …",
                            fix="unset FGRAD_TUNE, or FGRAD_TUNE=4", where=None)
    return int(text)


def tuner(executable, described, identity):
    """kernels, how → {kernel: Choice}; None where nothing is to be tuned.

    executable(plan) → a function of Arrays that runs the Plan.  described(kernel) → words where
    its loops do not say how it is run.  identity: what times depend on.
    """
    count = wanted()
    if not count:
        return None

    def choose(kernels, how):
        return {k: tried(k, how, executable, described, count, identity).choice(how)
                for k in hot(kernels)}
    return choose


# ---------------------------------------------------------------------------- what was tried

@frozen
class Tried:
    """The changes to a Schedule that were tried, their seconds, and words; the first is no change.
    """
    changes: tuple
    seconds: tuple
    described: tuple

    @property
    def best(self):
        """The position of the fastest, 0 where none beats the default clearly."""
        at = min(range(len(self.seconds)), key=self.seconds.__getitem__)
        return at if self.seconds[at] < GAIN * self.seconds[0] else 0

    def choice(self, how):
        """The Choice of a kernel whose default is `how`."""
        order = sorted(range(len(self.seconds)), key=self.seconds.__getitem__)
        words = [self.words(k) for k in order if k != self.best]
        over = f" over {', '.join(words)}" if words else ": nothing else to try"
        note = f"tuned: {self.words(self.best)}{over}"
        return Choice(replace(how, **self.changes[self.best]), note)

    def words(self, k):
        """`heavy=4 (0.712 ms)`"""
        what = ", ".join(f"{name}={value}" for name, value in self.changes[k].items())
        words = f"; {self.described[k]}" if self.described[k] else ""
        return f"{what or 'the default'} ({self.seconds[k] * 1e3:.3g} ms{words})"

    def stored(self):
        return json.dumps([self.changes, self.seconds, self.described]).encode()


def restored(data):
    """The Tried of bytes that `stored` made."""
    return Tried(*map(tuple, json.loads(data)))


def tried(kernel, how, executable, described, count, identity):
    """What was found for a kernel: known to this process, to the disk, or measured now."""
    with kernel.space:
        text = loop_key.key(kernel)
    key = cache.key("tune", text, repr(how), count, *identity, cache.sources())
    if key not in KNOWN:
        data = cache.disk().get(key)
        KNOWN[key] = (restored(data) if data is not None else
                      measured(kernel, how, executable, described, count))
        if data is None:
            cache.disk().put(key, KNOWN[key].stored())
    return KNOWN[key]


# ---------------------------------------------------------------------------- which kernels

def hot(kernels):
    """The kernels that make up most of the estimated time, the slowest first."""
    seconds = {k: estimate(k) for k in kernels}
    rest, found = SHARE * sum(seconds.values()), []
    for k in sorted(kernels, key=lambda k: -seconds[k]):
        if rest <= 0 or seconds[k] < LEAST:
            break
        rest -= seconds[k]
        if size(k) <= MOST:
            found.append(k)
    return found


def size(kernel):
    """Bytes of the buffers of a kernel."""
    return sum(b.type.nbytes for b in (*kernel.params, *kernel.outputs))


def estimate(kernel):
    """About how many seconds a kernel takes."""
    loops = [s for s in kernel.body if isinstance(s, For)]
    products = [prod(v.extent for v in (*s.batch, *s.rows, *s.columns, *s.k))
                for s in kernel.body if isinstance(s, Contract)]
    work = cost_of(loops) / SPEED + sum(products) / PRODUCT_SPEED
    return work + size(kernel) / BANDWIDTH


# ---------------------------------------------------------------------------- trials

def neighbours(how):
    """Changes of a Schedule, the most promising first, without end."""
    steps = [("heavy", 2), ("side", 0.5), ("light", 0.5), ("grain", 2), ("rows", 2), ("tile", 2),
             ("heavy", 0.5), ("side", 2), ("light", 2), ("lanes", 0.5), ("rows", 0.5),
             ("tile", 0.5), ("grain", 8)]
    for name, factor in steps:
        value = int(getattr(how, name) * factor)
        if value:
            yield {name: value}
    for rank in range(1, 64):
        yield {"rank": rank}


def candidates(kernel, how, count):
    """The changes of the default, none, and of up to `count` Schedules that give other loops."""
    changes, texts = [{}], {arranged_text(kernel, how)}
    holds_product = any(isinstance(s, Contract) for s in kernel.body)
    for change in neighbours(how):
        text = arranged_text(kernel, replace(how, **change))
        if len(changes) > count or "rank" in change and not holds_product:
            break
        if text not in texts:
            texts.add(text)
            changes.append(change)
    return changes


def arranged_text(kernel, how):
    """What tells the arrangements of a kernel apart."""
    with kernel.space:
        return "\n\n".join(loop_key.key(k) for k in trial(kernel, how))


def trial(kernel, how):
    """The kernels of a Schedule, whatever was tried before."""
    forget(kernel)
    return arranged(kernel, how)


def forget(kernel):
    """Takes back what an arrangement told the kernel's loop variables."""
    for v in loops_of(kernel.body):
        v.go_by(1)


def measured(kernel, how, executable, described, count):
    """The Tried of a kernel: every candidate in every round, the best round of each."""
    changes = candidates(kernel, how, count)
    buffers = [*kernel.params, *kernel.outputs]
    values = [benign(b.type) for b in buffers]
    runs = [executable(Plan(kernel.name, buffers, [], [], trial(kernel, replace(how, **change))))
            for change in changes]
    words = [described(trial(kernel, replace(how, **change))[0]) for change in changes]
    forget(kernel)
    best = [timed(run, values, 1) for run in runs]
    repeats = max(1, int(ROUND / min(best)))
    for _ in range(ROUNDS):
        best = [min(b, timed(run, values, repeats)) for b, run in zip(best, runs)]
    return Tried(tuple(changes), tuple(best), tuple(words))


def timed(run, values, repeats):
    """Seconds of one run, the mean of some in a row."""
    start = time.perf_counter()
    for _ in range(repeats):
        run(values)
    return (time.perf_counter() - start) / repeats


def benign(type):
    """An Array of a type that no operation stumbles over: floats within 0.5 … 1, zeros elsewhere.

    Zeros are indices of every array.
    """
    if type.dtype in (np.float32, np.float64):
        drawn = np.random.default_rng(0).random(type.shape, held_as(type.dtype))
        return array_of(np.asarray(0.5 + drawn / 2, held_as(type.dtype)), type.dtype)
    return array_of(np.zeros(type.shape, held_as(type.dtype)), type.dtype)
