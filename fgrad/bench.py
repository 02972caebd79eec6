"""What this machine does at best, and how near programs come to it: `python -m fgrad bench`.

Every program is profiled for a second, on the CPU.  How fast other libraries are is measured by the
folder benchmarks of the sources.  Relies on the profiler, and on nn and optim for a training step;
the command line relies on it.
"""

from __future__ import annotations

import time
from statistics import median

from . import config, lax, nn, optim, random
from . import numpy as fnp
from .jitted import jit
from .later import lazily
from .profiling import in_words, of_limit, profile, rate
from .text import counted
from .transforms import value_and_grad
from .types import F32

CALLS = 10_000             # of the function that does next to nothing
MEMORY = 1 << 28           # bytes that no cache holds
known = lazily("fgrad.backends.llvm.limits", "known")
MODEL = nn.Sequential(nn.Dense(512), nn.relu, nn.Dense(10))


def programs():
    """(what it is, the function, its arguments) of each."""
    x = fnp.linspace(-1.0, 1.0, 10_000_000)
    yield "x * y + z, 10,000,000 elements", lambda x, y, z: x * y + z, (x, x + 1, x - 1)
    x = random.normal(random.key(0), (1024, 1024))
    yield "softmax of 1024 rows of 1024", nn.softmax, (x,)
    yield "sum of 1024 rows of 1024", lambda x: fnp.sum(x, axis=1), (x,)
    yield "x @ y, 1024 by 1024", fnp.matmul, (x, x)
    x, w = fnp.ones((32, 32, 32, 32)), fnp.ones((32, 32, 3, 3))
    yield "convolution 3 by 3, 32 images of 32 by 32, 32 channels", convolved, (x, w)
    yield "sort, 1,000,000 elements", fnp.sort, (random.normal(random.key(1), (1_000_000,)),)
    yield "training step, 784-512-10, 64 examples, Adam", *training()


def convolved(x, w):
    return lax.conv(x, w, (1, 1), "SAME")


def training():
    """(a training step, its arguments)"""
    optimizer, x = optim.adam(1e-3), random.normal(random.key(2), (64, 784))
    labels = fnp.arange(64) % 10
    params, _ = MODEL.init(random.key(3), x)

    def loss(params):
        logits, _ = MODEL.apply(params, {}, x)
        return fnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, labels))

    def step(params, state):
        value, grads = value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value
    return step, (params, optimizer.init(params))


def bench(options):
    """The lines that the command prints, one after the other."""
    limits = known()(config.threads())
    copied = max(limits.bytes_per_second(name, MEMORY) for name in ("copy", "copy_past"))
    yield (f"{counted(config.threads(), 'thread')}: {limits.peak / 1e9:.0f} GFLOP/s of f32 "
           f"multiply-adds, {copied / 1e9:.0f} GB/s of copies in memory")
    yield ""
    yield row(("time", "GFLOP/s", "GB/s", "limit"), "")
    yield row((in_words(call()), "", "", ""), "a call of a compiled function of one array")
    for what, function, args in programs():
        found = profile(jit(function, device="cpu"), args, {})
        done, moved = [sum(n) for n in zip(*[(s.operations, s.bytes) for s in found.steps])]
        least = [s.least for s in found.steps]
        whole = found.steps[0]._replace(
            seconds=found.seconds, least=None if None in least else sum(least))
        yield row((in_words(found.seconds), rate(done, found.seconds),
                   rate(moved, found.seconds), of_limit(whole)), what)


def row(numbers, what):
    return " ".join([*(f"{n:>8}" for n in numbers), f"  {what}"]).rstrip()


def call():
    """Seconds of one call."""
    add, x, times = jit(lambda x: x + 1, device="cpu"), fnp.zeros(1, F32), []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(CALLS):
            add(x)
        times.append((time.perf_counter() - start) / CALLS)
    return median(times)
