"""What the autotuner gains: `python -m benchmarks.tune [n]`, default and tuned side by side.

Every function is compiled with FGRAD_TUNE=0 and with FGRAD_TUNE=n (4 where n is not given), and
the two run in turn; a ratio above 1 says that the tuned one is faster.
"""

import os
import sys
import time

import numpy as np

import fgrad
import fgrad.numpy as fnp

ROUNDS = 20
FUNCTIONS = {
    "chain": lambda x: fnp.tanh(x * 2 + 1) * x - x * x,
    "softmax": lambda x: fgrad.nn.softmax(x),
    "column sum": lambda x: (x * x).sum(0),
    "transposed": lambda x: x.T + x,
    "matmul": lambda x: x @ x,
    "skinny matmul": lambda x: x @ x[:, :16],
}


def compiled(function, x, count):
    """The jitted function, compiled under FGRAD_TUNE=count."""
    os.environ["FGRAD_TUNE"] = str(count)
    jitted = fgrad.jit(lambda x: function(x))
    jitted(x)
    return jitted


def seconds(function, x):
    """Of one call."""
    start = time.perf_counter()
    function(x)
    return time.perf_counter() - start


def main(count):
    x = fnp.asarray(np.random.default_rng(0).random((1024, 1024), np.float32))
    print(f"{'':16}{'default':>10}{'tuned':>10}{'ratio':>8}")
    for name, function in FUNCTIONS.items():
        both = [compiled(function, x, n) for n in (0, count)]
        rounds = [[seconds(f, x) for f in both] for _ in range(ROUNDS)]
        default, tuned = (min(times) * 1e3 for times in zip(*rounds))
        print(f"{name:16}{default:7.3f} ms{tuned:7.3f} ms{default / tuned:8.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
