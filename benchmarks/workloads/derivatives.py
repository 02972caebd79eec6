"""Whole derivative matrices of a function of 32 numbers."""

from ..workload import Workload


def inputs(rng):
    return rng.standard_normal(32, "float32"), rng.standard_normal((32, 32), "float32") / 4


def vector(np):
    """A function of a vector and a matrix that gives a vector."""
    return lambda x, w: np.tanh(w @ x) * x


def scalar(np):
    """The same, summed in squares."""
    return lambda x, w: np.sum(vector(np)(x, w)**2)


def compiled(transform, function):
    """jit(lib.transform(function)) for fgrad and jax."""
    return lambda lib, x, w: (lib.jit(getattr(lib, transform)(function(lib.numpy))), x, w)


def functional(transform, function):
    """torch.func.transform(function)."""
    return lambda torch, x, w: (getattr(torch.func, transform)(function(torch)), x, w)


def eager(transform, function):
    """autograd.transform(function)."""
    return lambda lib, x, w: (getattr(lib, transform)(function(lib.numpy)), x, w)


JACFWD = {"jax": compiled("jacfwd", vector), "torch": functional("jacfwd", vector)}

JACREV = {"jax":      compiled("jacrev", vector),
          "torch":    functional("jacrev", vector),
          "autograd": eager("jacobian", vector)}

HESSIAN = {"jax":      compiled("hessian", scalar),
           "torch":    functional("hessian", scalar),
           "autograd": eager("hessian", scalar)}

WORKLOADS = [Workload("jacfwd_32", JACFWD, inputs),
             Workload("jacrev_32", JACREV, inputs),
             Workload("hessian_32", HESSIAN, inputs, tolerance=1e-3)]
