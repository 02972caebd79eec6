"""Programs of 10,000 and 100,000 operations in a row: seconds and memory of what is done to them.

    python -m benchmarks.long_programs [LENGTH…]

Both grow as the programs do, and nothing recurses.  The last table compiles shorter ones: a chain
that is unrolled on purpose, where a loop of `fgrad.lax` would be compiled once.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
import warnings

import fgrad
import fgrad.numpy as fnp

WHAT = {
    "trace": lambda f, x: fgrad.make_ir(f)(x),
    "grad": lambda f, x: fgrad.grad(f)(x),
    "trace of grad": lambda f, x: fgrad.make_ir(fgrad.grad(f))(x),
    "jvp": lambda f, x: fgrad.jvp(f, (x,), (x,)),
    "vmap": lambda f, x: fgrad.vmap(f)(x[None]),
}


def chain(n):
    """A function of n operations in a row."""
    def run(x):
        for _ in range(n // 2):
            x = fnp.sin(x) * 1.0001
        return fnp.sum(x)
    return run


def seconds(function, *args):
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def megabytes(function, *args):
    tracemalloc.start()
    function(*args)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def main(argv):
    warnings.simplefilter("ignore", fgrad.FgradWarning)
    x = fnp.ones(3)
    for n in [int(text) for text in argv] or [10_000, 100_000]:
        for name, run in WHAT.items():
            print(f"{n:8,} {name:14} {seconds(run, chain(n), x):7.2f} s "
                  f"{megabytes(run, chain(n), x):7.1f} MB", flush=True)
    for n in (100, 1_000, 4_000, 10_000):
        print(f"{n:8,} {'jit of grad':14} {seconds(fgrad.jit(fgrad.grad(chain(n))), x):7.2f} s",
              flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
