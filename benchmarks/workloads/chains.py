"""Chains of ten elementwise operations, from what fits a cache to what does not."""

from ..workload import Workload

SIZES = {"1e3": 10**3, "1e5": 10**5, "1e7": 10**7}


def cheap(x, maximum):
    """Ten operations of one instruction each."""
    y = maximum(x * 1.01 + 0.5, -1.0)
    y = maximum(y * 0.99 + 0.25, x)
    y = maximum(y * 0.5 + x, 0.125)
    return y * 1.5


def costly(x, np):
    """Ten operations, exp, log and tanh twice each."""
    y = np.tanh(np.log(np.exp(x * 0.5) + 1.0))
    return np.tanh(np.log(np.exp(y * 0.5) + 1.0))



def torch_maximum(torch):
    """clamp for a number, maximum for a tensor: torch.maximum takes no numbers."""
    return lambda a, b: torch.maximum(a, b) if isinstance(b, torch.Tensor) else a.clamp(min=b)


CHEAP = {"jax":   lambda lib, x: (lib.jit(lambda x: cheap(x, lib.numpy.maximum)), x),
         "tinygrad": lambda lib, x: (lambda x: cheap(x, lib.Tensor.maximum).realize(), x),
         "torch": lambda lib, x: (lambda x: cheap(x, torch_maximum(lib)), x),
         "numpy": lambda lib, x: (lambda x: cheap(x, lib.maximum), x)}

COSTLY = {"jax":   lambda lib, x: (lib.jit(lambda x: costly(x, lib.numpy)), x),
          "tinygrad": lambda lib, x: (lambda x: costly(x, lib.Tensor).realize(), x),
          "torch": lambda lib, x: (lambda x: costly(x, lib), x),
          "numpy": lambda lib, x: (lambda x: costly(x, lib), x)}


def vector(n):
    return lambda rng: (rng.standard_normal(n, "float32"),)


WORKLOADS = [Workload(f"{name}_{size}", makers, vector(n), reads=4 * n, writes=4 * n)
             for name, makers in (("chain", CHEAP), ("chain_math", COSTLY))
             for size, n in SIZES.items()]
