"""What a workload is: one computation, written once in each style.

The style "jax" serves fgrad and jax alike: its code gets the library as an argument and uses only
what both have (`lib.numpy`, `lib.grad`, `lib.jit`, …).  Relies on NumPy only, because processes
whose whole time is measured import it; `workloads/` makes these records, `worker.py` and `once.py`
run them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SAMPLE = 4096              # elements of each result that are compared


class Workload(NamedTuple):
    """One computation, and what it has to move and to multiply.

    `makers` maps a style to maker(lib, *inputs) → (function, *args): a function to be called over
    and over, and its arguments.  `inputs(rng)` gives trees of NumPy arrays; a maker receives them
    as arrays of its library.  It `reads` and `writes` so many bytes at least; `flops` are
    multiplications and additions.  A workload that `carries` is a train step, function(state,
    *data) → (state, loss).  One that `draws` gives random numbers: its mean and deviation are
    compared.  `full`: only with --full.
    """
    name: str
    makers: dict[str, Callable]
    inputs: Callable = lambda rng: ()
    reads: int = 0
    writes: int = 0
    flops: int = 0
    tolerance: float = 1e-4
    carries: bool = False
    draws: bool = False
    full: bool = False


class Case(NamedTuple):
    """A workload as one implementation runs it."""
    workload: Workload
    function: Callable
    args: tuple

    def first(self):
        """What is compared between implementations: the result, or the losses of three steps."""
        if not self.workload.carries:
            return self.function(*self.args)
        state, *data = self.args
        losses = []
        for _ in range(3):
            state, loss = self.function(state, *data)
            losses.append(to_numpy(loss))
        return losses


def drawn(workload):
    """The inputs of a workload, the same ones every time."""
    return workload.inputs(np.random.default_rng(0))


def write(inputs, file):
    """Keeps inputs for another process."""
    with open(file, "wb") as out:
        pickle.dump(inputs, out, protocol=5)               # whose arrays are read without a copy


def read(file):
    """Inputs that another process has kept."""
    with open(file, "rb") as kept:
        return pickle.load(kept)


def prepared(workload, style, lib, convert, finish=lambda lib, function: function, given=None):
    """The Case of a workload in a style; `convert` makes the library's array of a NumPy array.

    given: what `drawn` gave; None: they are drawn here.
    """
    inputs = map_arrays(convert, drawn(workload) if given is None else given)
    function, *args = workload.makers[style](lib, *inputs)
    return Case(workload, finish(lib, function), tuple(args))


def map_arrays(function, tree):
    """The tree of tuples, lists and dicts with `function` applied to its leaves."""
    match tree:
        case dict():
            return {key: map_arrays(function, value) for key, value in tree.items()}
        case tuple() | list():
            return type(tree)(map_arrays(function, value) for value in tree)
        case _:
            return function(tree)


def leaves(tree):
    """The leaves of a tree of tuples, lists and dicts, in order."""
    match tree:
        case dict():
            return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
        case tuple() | list():
            return [leaf for value in tree for leaf in leaves(value)]
        case _:
            return [tree]


def to_numpy(array):
    """A library's array as a NumPy array of its own: the next call may overwrite the other."""
    if hasattr(array, "cpu"):                    # torch's, which may lie on a GPU
        array = array.cpu()
    return np.array(array.numpy() if hasattr(array, "numpy") else array)


def answer(workload, out):
    """What is sent to be compared: of each array in `out`, its shape and a sample of elements."""
    arrays = [to_numpy(leaf).astype("float64") for leaf in leaves(out)]
    if workload.draws:
        arrays = [np.array([a.mean(), a.std()]) for a in arrays]
    return [(list(a.shape), sample(a.ravel())) for a in arrays]


def sample(flat):
    """At most SAMPLE elements, evenly spaced, the first and the last among them."""
    places = np.linspace(0, max(flat.size - 1, 0), min(flat.size, SAMPLE)).astype(int)
    return flat[places].tolist()


def reference(workload):
    """The answer of the NumPy version on float64 inputs; None where there is no NumPy version."""
    if "numpy" not in workload.makers:
        return None

    def wide(a):
        return a.astype("float64") if a.dtype == "float32" else a
    return answer(workload, prepared(workload, "numpy", np, wide).first())


def disagreement(workload, got, want):
    """In words, how an answer differs from another; "" where it agrees.

    Shapes must be equal.  The largest difference is taken relative to the largest element.
    """
    if [shape for shape, _ in got] != [shape for shape, _ in want]:
        return f"shapes {[shape for shape, _ in got]} instead of {[shape for shape, _ in want]}"
    for (_, a), (_, b) in zip(got, want):
        a, b = np.array(a), np.array(b)
        error = np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(b), initial=0), 1e-30)
        if not error <= workload.tolerance:
            return f"off by {error:.1e} of the largest element"
    return ""
