"""Streaming work and products over sizes, for the plots of `growth.py`."""

from ..workload import Workload
from .chains import CHEAP, COSTLY, vector
from .products import matmul
from .rows import LAYERNORM, SOFTMAX, normal

LENGTHS = [10**k // d for k in range(2, 8) for d in (4, 2, 1)]
WIDTHS = [16, 31, 32, 48, 64, 96, 100, 128, 192, 255, 256, 257, 384, 512, 640, 768, 1000, 1024,
          1280, 1536]
ROWS = [2**k for k in range(4, 13)]


def streams(name, makers):
    """A chain over vectors of growing length."""
    return [Workload(f"{name}_{n}", makers, vector(n), reads=4 * n, writes=4 * n) for n in LENGTHS]


def squares(name, makers, others):
    """An operation along the rows of growing square matrices."""
    return [Workload(f"{name}_{n}", makers, normal((n, n), *[n] * others), reads=4 * n * n,
                     writes=4 * n * n) for n in ROWS]


# name → (workloads from small to large, their sizes, unit)
CURVES = {
    "chain": (streams("growth_chain", CHEAP), LENGTHS, "GB/s"),
    "chain_math": (streams("growth_chain_math", COSTLY), LENGTHS, "GB/s"),
    "softmax": (squares("growth_softmax", SOFTMAX, 0), ROWS, "GB/s"),
    "layernorm": (squares("growth_layernorm", LAYERNORM, 2), ROWS, "GB/s"),
    "matmul": ([matmul(f"growth_{n}", n, n, n) for n in WIDTHS], WIDTHS, "GFLOP/s"),
}
WORKLOADS = [workload for curve, _, _ in CURVES.values() for workload in curve]
