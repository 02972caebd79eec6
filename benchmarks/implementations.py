"""The libraries that are compared: how each is loaded, fed and waited for.

Another one is a row in IMPLEMENTATIONS, and a maker of its style in the workloads it is to run.
Relied on by `worker.py` and `once.py`, which run inside the implementation's own process, where
the time of imports is measured: so it imports little itself.
"""

from __future__ import annotations

import importlib
import os
import sys


class Implementation:
    """A library: the style of workload it runs, what is imported, whose versions count.

    `finish(lib, function)` is what is called instead of a workload's function: compiled, or made to
    wait for its result.
    """

    def __init__(self, style, modules, packages, finish=lambda lib, function: function):
        self.style, self.modules, self.packages = style, modules, packages
        self.finish = finish

    def load(self, arrays=True):
        """The library itself: the first of its modules, with the others imported too, or alone."""
        modules = self.modules if arrays else self.modules[:1]
        return [importlib.import_module(name) for name in modules][0]


def blocking(jax, function):
    """jax computes behind the caller's back: one that waits for its result."""
    def run(*args):
        out = function(*args)
        if hasattr(out, "block_until_ready"):
            return out.block_until_ready()
        return jax.block_until_ready(out)
    return run


def compiled(torch, function):
    """torch.compile; the first call compiles.

    What it has compiled before is forgotten: of one function with many shapes it would soon compile
    no more.
    """
    torch.compiler.reset()
    return torch.compile(function, dynamic=False)


def jitted(tinygrad, function):
    """A TinyJit, which records with its second call, made to wait for its device."""
    device = tinygrad.Device[tinygrad.Device.DEFAULT]
    recorded = tinygrad.TinyJit(function)

    def run(*args):
        out = recorded(*args)
        device.synchronize()
        return out
    return run


IMPLEMENTATIONS = {
    "fgrad":    Implementation("jax", ("fgrad", "fgrad.numpy"),
                               ("fgrad", "llvmlite", "numpy")),
    "jax":      Implementation("jax", ("jax", "jax.numpy"), ("jax", "jaxlib"), blocking),
    "torch":    Implementation("torch", ("torch",), ("torch",)),
    "torch_compile": Implementation("torch", ("torch",), ("torch",), compiled),
    "tinygrad": Implementation("tinygrad", ("tinygrad", "tinygrad.nn.optim"), ("tinygrad",),
                               jitted),
    "autograd": Implementation("autograd", ("autograd", "autograd.numpy"), ("autograd", "numpy")),
    "numpy":    Implementation("numpy", ("numpy",), ("numpy",)),
}
DEFAULT = ("fgrad", "jax", "torch", "autograd", "numpy")


def converter(name, lib):
    """convert(NumPy array) → the library's own array."""
    match IMPLEMENTATIONS[name].style:
        case "torch":
            return lib.from_numpy
        case "tinygrad":
            return lambda a: lib.Tensor(a).realize()
        case "autograd" | "numpy":
            return lambda a: a
        case _:
            return lib.numpy.array


def environment(threads, cache):
    """Variables that hold every library to so many threads, and its compiled code to a folder.

    Bytecode is written, so that what runs from its sources starts like what has been installed.
    """
    count = str(threads)
    variables = {f"{prefix}_THREADS": count
                 for prefix in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "FGRAD")}
    variables |= {"FGRAD_CACHE": cache,
                  "JAX_COMPILATION_CACHE_DIR": cache, "JAX_PLATFORMS": "cpu",
                  "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                  "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    if threads == 1:
        variables["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | variables


def hold_to(threads):
    """Lets this process run on so many processors only; before any library is loaded."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def versions(name):
    """package → version of an implementation, and of Python."""
    metadata = importlib.import_module("importlib.metadata")
    found = {"python": sys.version.split()[0]}
    for package in IMPLEMENTATIONS[name].packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:                # run from its sources
            found[package] = getattr(importlib.import_module(package), "__version__", "unknown")
    return found
