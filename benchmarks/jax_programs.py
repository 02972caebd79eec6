"""Runs random programs on fgrad and on jax: values, dtypes, gradients.

    python -m benchmarks.jax_programs [number of programs] [first seed]

The programs are those of the property tests (`tests/strategies.py`).  Prints those that differ.
"""

import sys
import warnings
from types import SimpleNamespace

import numpy as np

from tests.strategies import Writer

DTYPES = "float32", "float32", "int32", "bool"
STEPS = 10
RELATIVE = 2e-3            # of gradients, to their largest magnitude


def main(count=100, first=0):
    """Compares programs, and says how many agree."""
    warnings.simplefilter("ignore")
    import fgrad
    import jax
    names, bad = jax_names(jax), 0
    for seed in range(first, first + count):
        program = Writer(seed, DTYPES).program(STEPS)
        space = dict(names)
        exec(compile(program.source, "<random program>", "exec"), space)
        problem = difference(program, (fgrad, program.function), (jax, space["f"]))
        if problem:
            bad += 1
            print(f"seed {seed}: {problem}{program!r}\n", flush=True)
    print(f"{count - bad} of {count} programs agree")


def jax_names(jax):
    """What the source of a random program calls, as jax has it."""
    fnp, lax = jax.numpy, jax.lax

    def inside(starts):                          # jax counts negative ones from the end
        return [fnp.maximum(i, 0) for i in starts]

    def while_loop(condition, body, state, max_steps):
        for _ in range(max_steps):
            on = condition(state)
            state = jax.tree.map(lambda new, old: fnp.where(on, new, old), body(state), state)
        return state

    def reduce_window(x, how, *window):
        start, operation = {"max": (-np.inf, lax.max), "min": (np.inf, lax.min),
                            "sum": (0, lax.add)}[how]
        return lax.reduce_window(x, np.array(start, x.dtype)[()], operation, *window)
    ops = SimpleNamespace(
        exp=fnp.exp, logistic=jax.nn.sigmoid, erf=jax.scipy.special.erf,
        cummax=lambda x, axis, reverse: lax.cummax(x, axis, reverse),
        cummin=lambda x, axis, reverse: lax.cummin(x, axis, reverse),
        cumsum=lambda x, axis, reverse: lax.cumsum(x, axis, reverse),
        pad=lambda x, value, **sides: lax.pad(x, np.array(value, x.dtype), list(
            zip(sides["low"], sides["high"], sides["interior"]))),
        dynamic_slice=lambda x, *starts, sizes: lax.dynamic_slice(x, inside(starts), sizes),
        dynamic_update_slice=lambda x, part, *starts: lax.dynamic_update_slice(
            x, part, inside(starts)))
    return {"fnp": fnp, "np": np, "ops": ops, "checkpoint": jax.checkpoint,
            "lax": SimpleNamespace(**{**vars(lax), "while_loop": while_loop}),
            "reduce_window": reduce_window, "logsumexp": jax.nn.logsumexp}


def difference(program, ours, theirs):
    """How the results differ, or the gradients by the floats; "" where they agree."""
    got, want = [[np.asarray(x) for x in f(*map(m.numpy.asarray, program.arrays))]
                 for m, f in (ours, theirs)]
    for k, (x, y, error) in enumerate(zip(got, want, program.errors, strict=True)):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"result {k} is {x.dtype}{list(x.shape)}, not {y.dtype}{list(y.shape)}"
        if not np.allclose(x, y, rtol=0, atol=16 * error):
            return f"result {k} has other values"
    places = [k for k, a in enumerate(program.arrays) if a.dtype.kind == "f"]
    if not places or all(x.dtype.kind != "f" for x in want):
        return ""
    try:
        slopes = gradient(*theirs, program.arrays, places)
    except NotImplementedError:                  # of a product of elements at equal indices
        return ""
    for x, y in zip(gradient(*ours, program.arrays, places), slopes, strict=True):
        if not np.allclose(x, y, rtol=RELATIVE, atol=RELATIVE * np.abs(y).max(initial=1)):
            return "the gradient has other values"
    return ""


def gradient(module, function, arrays, places):
    """By the arrays at these places, of all float results, weighted."""
    fnp = module.numpy

    def weighted(*xs):
        return sum(fnp.sum(x * fnp.cos(fnp.arange(x.size, dtype=x.dtype)).reshape(x.shape))
                   for x in function(*xs) if x.dtype.kind == "f")
    return [np.asarray(x) for x in module.grad(weighted, tuple(places))(
        *map(fnp.asarray, arrays))]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
