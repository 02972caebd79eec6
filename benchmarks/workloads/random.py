"""Ten million random numbers."""

from ..workload import Workload

N = 10**7


def compiled(name):
    """jit of lib.random.name from a key."""
    def make(lib):
        draw = getattr(lib.random, name)
        return lib.jit(lambda key: draw(key, (N,))), lib.random.key(0)
    return make


def generator(name):
    """NumPy's method of a Generator."""
    return lambda np: (getattr(np.random.default_rng(0), name), N, "float32")


UNIFORM = {"jax":   compiled("uniform"),
           "torch": lambda torch: (torch.rand, N),
           "numpy": generator("random")}

NORMAL = {"jax":   compiled("normal"),
          "torch": lambda torch: (torch.randn, N),
          "numpy": generator("standard_normal")}

WORKLOADS = [Workload("uniform_1e7", UNIFORM, writes=4 * N, tolerance=3e-3, draws=True),
             Workload("normal_1e7", NORMAL, writes=4 * N, tolerance=3e-3, draws=True)]
