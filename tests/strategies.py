"""Random programs for the property tests: source of a function, arrays for it, error bounds.

A program is drawn step by step and run as it grows, so that every step is well typed and its values
are small.  For every value a bound on its rounding error is carried along; steps that jump
(comparisons, rounding, positions) only read values without error.  What is drawn is source text: a
failing example prints as a function that can be pasted into a file.  What a step can be is in
`moves_elementwise.py`, `moves_sums.py`, `moves_places.py`, `moves_windows.py` and
`moves_control.py`.
"""

import math
import os
import random
import re
from dataclasses import dataclass, field

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import fgrad.numpy as fnp
from fgrad import checkpoint, lax, ops
from fgrad.convolution import reduce_window
from fgrad.core import Array
from fgrad.nn import logsumexp
from fgrad.transforms import eval_shape

from tests.moves_control import branched, looped, recomputed, repeated, scanned
from tests.moves_elementwise import (
    binary, bits, chosen, compared, converted, jump, logical, power, smooth, whole)
from tests.moves_places import (
    block, folded, moved, neighbours, ordered, padded, ramp, reshaped, sliced, taken, taken_along,
    triangle, updated, woven)
from tests.moves_sums import (
    contraction, matrix_product, position, product_of, products_of_batch, reduced, reduced_whole,
    running, softmax, tensor)
from tests.moves_windows import (
    composed, convolved, largest, log_of_sum, normalized, pooled, recurrent, segments)
from tests.tolerance import EPS

FUZZ = int(os.environ.get("FGRAD_FUZZ", "0"))
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 9, 17)
SOME = SIZES[1:]
MIXED = ("float32", "float32", "float32", "float64", "float16", "int32", "int16", "uint8", "bool")
NARROW = ("float32", "float16", "int8", "int8", "uint8", "uint8", "int16", "uint16", "bool")
WIDE = (1, 16, 31, 33, 64, 65, 100, 129)
LARGEST, MOST = 20, 500            # magnitude of floats, and number of elements of a value
LARGEST_WHOLE = 2**15              # magnitude of integers, which are exact
WORD = re.compile(r"\b[vx]\d+\b")
NAMESPACE = {"fnp": fnp, "ops": ops, "np": np, "lax": lax, "checkpoint": checkpoint,
             "reduce_window": reduce_window, "logsumexp": logsumexp}
MOVES = (
    smooth, smooth, smooth, power, jump, whole, whole, logical, binary, binary, binary, compared,
    bits, chosen, chosen, converted, reduced, reduced, reduced, reduced_whole, product_of, position,
    running, softmax, moved, moved, moved, reshaped, folded, woven, sliced, sliced, padded,
    triangle, taken, taken, neighbours, taken_along, ordered, updated, block, matrix_product,
    matrix_product, contraction, contraction, tensor, ramp, scanned, looped, repeated, branched,
    recomputed, convolved, convolved, pooled, normalized, log_of_sum, segments, products_of_batch,
    composed, recurrent, largest)
# one that is here twice is drawn twice as often


def examples(n):
    """Settings for n random examples; FGRAD_FUZZ=k for k n."""
    return settings(max_examples=n * max(1, FUZZ))


# ---------------------------------------------------------------------------- programs

@dataclass
class Known:
    """A value so far: its name, NumPy value, and a bound on the error of its elements."""
    name: str
    value: np.ndarray
    error: float

    @property
    def shape(self):
        return self.value.shape

    @property
    def kind(self):
        """f, i (signed or not) or b."""
        return "i" if self.unsigned else self.value.dtype.kind

    @property
    def unsigned(self):
        return self.value.dtype.kind == "u"

    @property
    def top(self):
        """The largest magnitude."""
        return float(np.abs(self.value.astype(float)).max(initial=0))


@dataclass
class RandomProgram:
    """`function(*arrays)` gives a tuple; `errors` bounds the rounding error of each result."""
    source: str
    arrays: list
    errors: list
    function: object = field(repr=False)

    def _repr_pretty_(self, printer, cycle):
        printer.text(repr(self))

    def __repr__(self):
        rows = [f"    # x{k}: {a.dtype}{list(a.shape)} = {a.reshape(-1).tolist()!r:.300}"
                for k, a in enumerate(self.arrays)]
        return "\n".join(["", *rows, self.source])

    def __call__(self, *arrays):
        return self.function(*arrays)


def compiled_source(source):
    """The function of its source text."""
    names = dict(NAMESPACE)
    exec(compile(source, "<random program>", "exec"), names)
    return names["f"]


def programs(dtypes=MIXED, sizes=SIZES, steps=14, host=True, most=MOST):
    """RandomPrograms of one to three arguments.

    dtypes: of the arguments.  host: may NumPy be called by compiled code (sort)?
    most: elements of a value.
    Hypothesis draws a seed and the number of steps, so that what fails shrinks to fewer steps.
    """
    return st.builds(lambda seed, n: Writer(seed, dtypes, sizes, host, most).program(n),
                     st.integers(0, 2**32 - 1), st.integers(1, steps))


class Writer:
    """Draws a program: `step` adds a line, if what it makes is small and known well enough."""

    def __init__(self, seed, dtypes=MIXED, sizes=SIZES, host=True, most=MOST):
        self.random, self.dtypes, self.host, self.most = random.Random(seed), dtypes, host, most
        self.lines = []
        self.float = self.one([d for d in dtypes if d.startswith("float")])
        m, n, k = [self.one(sizes) for _ in range(3)]
        shapes = [(m, n), (n,), (n, k), (), (m, n, 2), (m, 1), (2, k, n)]
        self.arrays = [self.array(self.one(shapes), self.one(dtypes))
                       for _ in range(self.number(1, 3))]
        self.values = [Known(f"x{i}", a, 0.0) for i, a in enumerate(self.arrays)]
        self.inputs = len(self.values)

    def array(self, shape, dtype):
        """Distinct floats in [-2, 2), integers in [-4, 5) or [0, 9), or bools, in a drawn order."""
        n, dtype = math.prod(shape), np.dtype(dtype)
        rng = np.random.default_rng(self.number(0, 99))
        if dtype.kind == "b":
            return rng.random(shape) < 0.5
        if dtype.kind == "i":
            return rng.integers(-4, 5, shape).astype(dtype)
        if dtype.kind == "u":
            return rng.integers(0, 9, shape).astype(dtype)
        steps = (np.arange(n) - n / 2 + rng.uniform(0.1, 0.8, n)) * (4 / max(n, 4))
        return rng.permutation(steps).astype(dtype).reshape(shape)

    def program(self, steps):
        """The RandomProgram of so many lines; its results are values that no line reads."""
        for _ in range(4 * steps):
            if len(self.lines) < steps:
                self.step()
        read = set(WORD.findall(" ".join(line.partition("=")[2] for line in self.lines)))
        made = self.values[self.inputs:] or self.values
        wanted = [v for v in made if v.name not in read][-4:]
        names = ", ".join(v.name for v in wanted)
        head = ", ".join(v.name for v in self.values[:self.inputs])
        lines = [f"def f({head}):", *needed(self.lines, names), f"    return ({names},)"]
        source = "\n".join(lines)
        errors = [v.error for v in wanted]
        return RandomProgram(source, self.arrays, errors, compiled_source(source))

    def step(self):
        """One more line."""
        made = self.one(MOVES)(self)
        if made is not None:
            self.add(*made)

    def add(self, text, args, gain=2.0):
        """v = text, unless v would be too large; the errors of args grow by `gain` at most."""
        known = {**NAMESPACE, **{v.name: Array(v.value) for v in self.values}}
        if self.most > MOST and eval_shape(lambda: eval(text, known)).size > self.most:
            return
        value = np.asarray(eval(text, known).np)
        top = float(np.abs(value.astype(float)).max(initial=0))
        largest = LARGEST if value.dtype.kind == "f" else LARGEST_WHOLE
        if value.size > self.most or not top <= largest or not np.isfinite(top):
            return
        error = 0.0
        if value.dtype.kind == "f":
            read = max([a.top * (1 + a.value.size) ** 0.5 for a in args], default=0)
            eps = max(EPS[v.dtype.name] for v in (value, *[a.value for a in args])
                      if v.dtype.kind == "f")    # a line may round in the narrowest of its dtypes
            error = gain * sum(a.error for a in args) + eps * (top + read + 1e-3)
            if not error <= 0.02 * (1 + top):
                return
        elif any(a.error for a in args):
            return
        name = f"v{len(self.values)}"
        self.lines.append(f"    {name} = {text}")
        self.values.append(Known(name, value, error))

    # -- choices --------------------------------------------------------------------------------

    def one(self, options):
        return self.random.choice(list(options))

    def number(self, low, high):
        return self.random.randint(low, high)

    def coin(self):
        return self.random.random() < 0.5

    def any(self, kinds="fib", ndim=0, exact=False):
        """A value of these kinds with at least so many axes, or None; the latest are preferred."""
        found = [v for v in self.values
                 if v.kind in kinds and len(v.shape) >= ndim and not (exact and v.error)]
        if not found:
            return None
        return self.one(found[-4:] if self.coin() else found)

    def partner(self, x, kinds="fib", exact=False):
        """A value that broadcasts with x; at least x itself."""
        found = [v for v in self.values if v.kind in kinds and not (exact and v.error)
                 and self.broadcastable(v.shape, x.shape)]
        return self.one(found or [x])

    def broadcastable(self, a, b):
        """Do the shapes broadcast, to something not too large?"""
        try:
            return math.prod(np.broadcast_shapes(a, b)) <= self.most
        except ValueError:
            return False

    def axis(self, x):
        return self.number(0, len(x.shape) - 1)

    def axes(self, x):
        """None, one axis, or a tuple of them."""
        if not x.shape or self.number(0, 4) == 0:
            return None
        chosen = [a for a in range(len(x.shape)) if self.coin()]
        return tuple(chosen) if len(chosen) != 1 else chosen[0]


def needed(lines, names):
    """The lines that the names are made from."""
    kept, wanted = [], set(WORD.findall(names))
    for line in reversed(lines):
        name, _, text = line.partition("=")
        if name.strip() in wanted:
            kept.append(line)
            wanted |= set(WORD.findall(text))
    return kept[::-1]
