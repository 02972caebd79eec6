"""The cost of a call: jitted and eager functions of a few elements."""

import operator

import numpy as np

from ..workload import Workload


def normal(*shape):
    """inputs(rng) of one f32 array."""
    return lambda rng: (rng.standard_normal(shape, "float32"),)


def increment(x):
    return x + 1


def tree_of_20(rng):
    return ({f"p{n}": rng.standard_normal(10, "float32") for n in range(20)},)


def jit_tree(lib, tree):
    return lib.jit(lambda t: lib.tree.map(increment, t)), tree


def plain_tree(lib, tree):
    return (lambda t: {name: a + 1 for name, a in t.items()}), tree


def jit_donated(lib, tree):
    """Each call is given what the one before it made, and may write over it."""
    step, state = lib.jit(lambda t: lib.tree.map(increment, t), donate_argnums=0), [tree]

    def call():
        state[0] = step(state[0])
        return state[0]
    return call,


def in_place(lib, tree):
    def call():
        for a in tree.values():
            a += 1
        return tree
    return call,


def scaled(x, *, by, n):
    return x * by + n


def by_name(lib, x):
    f = lib.jit(scaled)
    return lambda x: f(x, by=0.5, n=3), x


def plain_by_name(lib, x):
    return lambda x: scaled(x, by=0.5, n=3), x


def tanh_of_matmul(np):
    return lambda x, w: np.sum(np.tanh(x @ w))


def tanh_times_x(np):
    return lambda x: np.sum(np.tanh(x) * x)


def eager_grad(function):
    """grad of function(np), for fgrad, jax and autograd."""
    return lambda lib, *args: (lib.grad(function(lib.numpy)), *args)


def torch_grad(function):
    """The gradient of function(torch) with respect to its first argument."""
    def make(torch, x, *others):
        def gradient(x, *others):
            x = x.detach().requires_grad_()
            return torch.autograd.grad(function(torch)(x, *others), x)[0]
        return gradient, x, *others
    return make


def gradients(function):
    """The styles of an eager gradient."""
    return {"jax": eager_grad(function), "autograd": eager_grad(function),
            "torch": torch_grad(function)}


def two_squares(rng):
    return rng.standard_normal((8, 8), "float32"), rng.standard_normal((8, 8), "float32")


def eager(function):
    """The styles of a plain function of arrays."""
    return dict.fromkeys(("jax", "torch", "numpy"), lambda lib, *args: (function, *args))


def plain(function):
    return lambda lib, *args: (function, *args)


WORKLOADS = [
    Workload("jit_add1", {"jax": lambda lib, x: (lib.jit(increment), x),
                          "torch": plain(increment), "numpy": plain(increment)}, normal(1)),
    Workload("jit_tree20", {"jax": jit_tree, "torch": plain_tree, "numpy": plain_tree}, tree_of_20),
    Workload("jit_tree20_donated", {"jax": jit_donated, "torch": in_place, "numpy": in_place},
             tree_of_20),
    Workload("jit_by_name", {"jax": by_name, "torch": plain_by_name, "numpy": plain_by_name},
             normal(1)),
    Workload("eager_add", eager(operator.add),
             lambda rng: (np.ones(3, "float32"), np.ones(3, "float32"))),
    Workload("eager_grad_tanh_matmul", gradients(tanh_of_matmul), two_squares),
    Workload("eager_grad_tanh_times_x", gradients(tanh_times_x), normal(3)),
]
