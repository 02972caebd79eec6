"""Ten million random numbers."""

from ..workload import Workload

N = 10**7


def compiled(name):
    """jit of lib.random.name from a key."""
    return lambda lib: (lib.jit(lambda key: getattr(lib.random, name)(key, (N,))), lib.random.key(0))


UNIFORM = {"jax":   compiled("uniform"),
           "torch": lambda torch: (torch.rand, N),
           "numpy": lambda np: (lambda rng: rng.random(N, "float32"), np.random.default_rng(0))}

NORMAL = {"jax":   compiled("normal"),
          "torch": lambda torch: (torch.randn, N),
          "numpy": lambda np: (lambda rng: rng.standard_normal(N, "float32"), np.random.default_rng(0))}

WORKLOADS = [Workload("uniform_1e7", UNIFORM, bytes=4 * N, tolerance=3e-3, draws=True),
             Workload("normal_1e7", NORMAL, bytes=4 * N, tolerance=3e-3, draws=True)]
