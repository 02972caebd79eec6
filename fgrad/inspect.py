"""Looking inside: the program of a function at every stage of compilation, as text.

    ir          the array program, with the user's names and lines
    simplified  after simplification and sharing
    fused       what is stored, and in which kernel
    loops       the loops of every kernel, as they follow from it
    schedule    the same loops, arranged: what is parallel, in vectors, in blocks
    memory      where every buffer lives
    llvm asm    the generated code of the CPU backend
    opencl      the generated code of the OpenCL backend

`explain` says why it was traced, `profile` how long its kernels take.  Relies on jit; users rely on
it.
"""

from __future__ import annotations

from . import compile as driver
from .errors import ArgumentError
from .jitted import Jitted, jit

STAGES = ("ir", "simplified", "fused", "loops", "schedule", "memory", "llvm", "asm", "opencl")


def show(function, *args, stage="ir", device=None, **kwargs):
    """The text of a function's program for these arguments, at a stage.

    args: arrays, or their ArrayTypes.  stage: "ir" as traced, "simplified", "fused" into kernels,
    their "loops", the same after "schedule", "memory", or the generated code: "llvm", "asm" (of
    the CPU), "opencl".  device: for which device it is compiled, by default the one where the
    function would run; see `fgrad.devices()`, and "reference".  Nothing is run.
    Raises ArgumentError for an unknown stage.

    >>> import fgrad.numpy as fnp
    >>> def f(x):
    ...     return fnp.tanh(x) * 2.0
    >>> print(show(f, fnp.ones(3)).splitlines()[0])
    f(x: f32[3]) -> f32[3]
    """
    jitted = function if isinstance(function, Jitted) else jit(function)
    lowered = jitted.lower(*args, **kwargs)
    return driver.text(lowered.ir, stage, device or lowered.device)


def explain(function):
    """The text of `function.explain()`: its traces, and why each was made.

    Raises ArgumentError for a function that is not compiled.
    """
    if not hasattr(function, "explain"):
        raise ArgumentError("explain takes a function that jit has compiled.",
                            given=f"{function!r:.60}",
                            fix="g = fgrad.jit(f); g(x); fgrad.explain(g)")
    return function.explain()


def profile(function, *args, **kwargs):
    """Where the time of a call goes: `jit(function).profile(*args, **kwargs)`.

    Prints as a table of the compiled function's steps, the slowest first: microseconds, operations
    and bytes a second, and your lines that a step computes.  `save("trace.json")` writes a call for
    Perfetto or chrome://tracing.
    Raises ConcretizationError within transformations, and for types in place of arrays.

    >>> import fgrad.numpy as fnp
    >>> def f(x):
    ...     return fnp.tanh(x @ x)
    >>> print(profile(f, fnp.ones((8, 8))))       # doctest: +ELLIPSIS
    f on cpu: ... us a call, median of ... calls
    ...
    """
    jitted = function if isinstance(function, Jitted) else jit(function)
    return jitted.profile(*args, **kwargs)
