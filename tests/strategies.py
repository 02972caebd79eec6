"""Random programs for the property tests: source of a function, arrays for it, error bounds.

A program is drawn step by step and run as it grows, so that every step is well typed and its values
are small.  For every value a bound on its rounding error is carried along; steps that jump
(comparisons, rounding, positions) only read values without error.  What is drawn is source text: a
failing example prints as a function that can be pasted into a file.
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
from fgrad import ops
from fgrad.core import Array
from fgrad.transforms import eval_shape

from tests.tolerance import EPS

FUZZ = int(os.environ.get("FGRAD_FUZZ", "0"))
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 9, 17)
SOME = SIZES[1:]
MIXED = ("float32", "float32", "float32", "float64", "float16", "int32", "bool")
WIDE = (1, 16, 31, 33, 64, 65, 100, 129)
LARGEST, MOST = 20, 500            # magnitude and number of elements of a value
WORD = re.compile(r"\b[vx]\d+\b")
NAMESPACE = {"fnp": fnp, "ops": ops, "np": np}


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
        return self.value.dtype.kind

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
        rows = [
            f"    # x{k}: {a.dtype}{list(a.shape)} = {a.reshape(-1).tolist()!r:.300}"
            for k, a in enumerate(self.arrays)
        ]
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
        self.arrays = [
            self.array(self.one(shapes), self.one(dtypes)) for _ in range(self.number(1, 3))
        ]
        self.values = [Known(f"x{i}", a, 0.0) for i, a in enumerate(self.arrays)]
        self.inputs = len(self.values)

    def array(self, shape, dtype):
        """Distinct floats in [-2, 2), integers in [-4, 5), or bools, in a drawn order."""
        n, dtype = math.prod(shape), np.dtype(dtype)
        rng = np.random.default_rng(self.number(0, 99))
        if dtype.kind == "b":
            return rng.random(shape) < 0.5
        if dtype.kind == "i":
            return rng.integers(-4, 5, shape).astype(dtype)
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
        return RandomProgram(
            "\n".join(lines),
            self.arrays,
            [v.error for v in wanted],
            compiled_source("\n".join(lines)),
        )

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
        if value.size > self.most or not top <= LARGEST or not np.isfinite(top):
            return
        error = 0.0
        if value.dtype.kind == "f":
            read = max([a.top * (1 + a.value.size) ** 0.5 for a in args], default=0)
            error = gain * sum(a.error for a in args) + EPS[value.dtype.name] * (top + read + 1e-3)
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
        found = [
            v
            for v in self.values
            if v.kind in kinds and len(v.shape) >= ndim and not (exact and v.error)
        ]
        if not found:
            return None
        return self.one(found[-4:] if self.coin() else found)

    def partner(self, x, kinds="fib", exact=False):
        """A value that broadcasts with x; at least x itself."""
        return self.one(
            [
                v
                for v in self.values
                if v.kind in kinds
                and self.broadcastable(v.shape, x.shape)
                and not (exact and v.error)
            ]
            or [x]
        )

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


# ---------------------------------------------------------------------------- moves

SMOOTH = ("fnp.tanh({})", "fnp.sin({})", "fnp.cos({})", "fnp.exp(fnp.tanh({}))",
          "fnp.log1p({0} * {0})", "fnp.sqrt({0} * {0} + 1)", "fnp.arctan({})",
          "fnp.expm1(fnp.tanh({}))", "ops.logistic({})", "ops.erf({})", "-{}", "abs({})",
          "1 / ({0} * {0} + 1)", "fnp.log({0} * {0} + 0.5)", "{} * 0.5", "{} + 1", "2 - {}",
          "fnp.maximum({}, 0)", "fnp.clip({}, -1, 1)", "fnp.sinh(fnp.sin({}))",
          "fnp.arcsin(0.9 * fnp.sin({}))", "fnp.positive({})", "fnp.logaddexp({}, 0.0)")
POWERS = ("{} ** 2", "{} ** 3", "{0} * {0}")
JUMPS = ("fnp.floor({})", "fnp.ceil({})", "fnp.round({})", "fnp.sign({})", "{} > 0", "{} <= 1",
         "{} == {}", "{} != 0", "{}.astype('int32')", "fnp.trunc({})", "fnp.isfinite({})",
         "fnp.signbit({})", "{} // 1")
INTEGERS = ("{} + 3", "{} * -2", "{} // 2", "{} % 3", "{} & 5", "{} | 1", "{} ^ 6", "{} << 1",
            "{} >> 1", "-{}", "abs({})", "~{}", "fnp.clip({}, -2, 2)", "{} > 0", "{} == 1",
            "{}.astype('bool')", "{} ** 2", "{}.astype('{float}') * 0.25", "{}.astype('int16')",
            "{}.astype('uint8')", "fnp.sign({})")
RING = ("{} + {}", "{} - {}", "{} * {}", "fnp.maximum({}, {})", "fnp.minimum({}, {})")
FIELD = ("{0} / ({1} * {1} + 1)", "fnp.arctan2({0}, {1} * {1} + 1)", "{0} * 0.5 + {1} * 0.5",
         "fnp.logaddexp({}, {})", "fnp.hypot({}, {})")
BOOLS = ("~{}", "{}.astype('int32')", "{}.astype('{float}')", "{} & True", "{} * 2")


def smooth(w):
    x = w.any("f")
    return x and (w.one(SMOOTH).format(x.name), [x])


def power(w):
    x = w.any("f")
    return x and (w.one(POWERS).format(x.name), [x], 3 * (1 + x.top) ** 2)


def jump(w):
    x = w.any("f", exact=True)
    return x and (w.one(JUMPS).format(x.name, x.name), [x])


def whole(w):
    x = w.any("i")
    return x and (w.one(INTEGERS).format(x.name, float=w.float), [x])


def logical(w):
    x = w.any("b")
    return x and (w.one(BOOLS).format(x.name, float=w.float), [x])


def binary(w):
    x = w.any("fi")
    if x is None:
        return None
    y = w.partner(x, "fi")
    how = w.one(RING if x.kind == y.kind == "i" else RING + FIELD)
    return how.format(x.name, y.name), [x, y], 2 + x.top + y.top


def compared(w):
    x = w.any("fib", exact=True)
    if x is None:
        return None
    y = w.partner(x, exact=True)
    return w.one(("{} < {}", "{} >= {}", "{} == {}", "{} != {}")).format(x.name, y.name), [x, y]


def bits(w):
    x = w.any("ib")
    if x is None:
        return None
    y = w.partner(x, x.kind)
    return w.one(("{} & {}", "{} | {}", "{} ^ {}", "fnp.maximum({}, {})")).format(x.name, y.name), [
        x,
        y,
    ]


def chosen(w):
    x, c = w.any("fi"), w.any("b")
    if x is None or c is None or not w.broadcastable(x.shape, c.shape):
        return None
    y = w.partner(x, "fi")
    if not w.broadcastable(np.broadcast_shapes(x.shape, y.shape), c.shape):
        return None
    if w.coin():
        return f"fnp.where({c.name}, {x.name}, {y.name})", [x, y]
    number = w.one(("0", "1.0", "-1") if x.kind == "f" else ("0", "1"))
    return f"fnp.where({c.name}, {x.name}, {number})", [x]


def converted(w):
    x = w.any("f")
    return x and (
        f"{x.name}.astype('{w.one([d for d in w.dtypes if d.startswith('float')])}')",
        [x],
        1.0,
    )


def reduced(w):
    x = w.any("f")
    if x is None:
        return None
    how = w.one(("sum", "sum", "mean", "max", "min", "var"))
    axes = w.axes(x)
    if how in ("max", "min", "mean", "var") and 0 in x.shape:
        return None
    gain = {"sum": max(x.value.size, 1), "var": 8 * (1 + x.top)}.get(how, 2)
    return f"fnp.{how}({x.name}, axis={axes}, keepdims={w.coin()})", [x], gain


def reduced_whole(w):
    x = w.any("ib")
    if x is None or 0 in x.shape:
        return None
    how = w.one(("sum", "prod", "max", "min", "any", "all", "count_nonzero"))
    return f"fnp.{how}({x.name}, axis={w.axes(x)})", [x]


def product_of(w):
    x = w.any("f")
    return x and (f"fnp.prod({x.name} * 0.5 + 1, axis={w.axes(x)})", [x], 40 * x.value.size + 1)


def position(w):
    x = w.any("fi", 1, exact=True)
    if x is None or 0 in x.shape:
        return None
    return f"fnp.{w.one(['argmax', 'argmin'])}({x.name}, axis={w.axis(x)})", [x]


def running(w):
    x = w.any("fi", 1)
    if x is None:
        return None
    axis, n = w.axis(x), max(x.value.size, 1)
    how = w.one(
        (
            "fnp.cumsum({}, axis={})",
            "fnp.cumprod({} * 0.25 + 1, axis={})",
            "ops.cummax({}, axis={}, reverse=False)",
            "ops.cumsum({}, axis={}, reverse=True)",
            "ops.cummin({}, axis={}, reverse=True)",
        )
    )
    if x.kind == "i" and "prod" in how or x.kind == "f" and "cumm" in how and 0 in x.shape:
        return None
    return how.format(x.name, axis), [x], 10 * n


def softmax(w):
    x = w.any("f", 1)
    if x is None or 0 in x.shape:
        return None
    a = w.axis(x)
    e = f"ops.exp({x.name} - fnp.max({x.name}, axis={a}, keepdims=True))"
    return f"{e} / fnp.sum({e}, axis={a}, keepdims=True)", [x], 6


def moved(w):
    x = w.any("fib", 1)
    if x is None:
        return None
    perm = w.random.sample(range(len(x.shape)), len(x.shape))
    how = w.one(
        (
            f"fnp.transpose({x.name}, {tuple(perm)})",
            f"{x.name}.T",
            f"fnp.flip({x.name}, {w.axis(x)})",
            f"{x.name}.reshape(-1)",
            f"fnp.roll({x.name}, {w.number(-2, 3)}, {w.axis(x)})",
            f"{x.name}[..., None]",
            f"fnp.squeeze({x.name})",
            f"fnp.moveaxis({x.name}, 0, -1)",
            f"fnp.concatenate([{x.name}, {x.name}[::-1]], axis={w.axis(x)})",
            f"fnp.stack([{x.name}, {x.name}])",
            f"fnp.tile({x.name}, 2)",
            f"fnp.repeat({x.name}, 2, axis={w.axis(x)})",
            f"fnp.broadcast_to({x.name}, (2, *{x.name}.shape))",
            f"fnp.expand_dims({x.name}, 0)",
        )
    )
    return how, [x], 1.0


def reshaped(w):
    x = w.any("fib")
    n = x.value.size
    d = w.one([d for d in range(1, n + 1) if n % d == 0] or [1])
    return f"{x.name}.reshape({d}, {n // d})", [x], 1.0


def sliced(w):
    x = w.any("fib", 1)
    if x is None:
        return None
    parts = []
    for n in x.shape:
        a = w.number(0, n)
        b = w.number(a, n)
        parts.append(
            w.one(
                (
                    ":",
                    f"{a}:{b}",
                    f"{a}:{b}:2",
                    "::-1",
                    "::2",
                    *([str(w.number(-n, n - 1))] if n else []),
                )
            )
        )
    return f"{x.name}[{', '.join(parts)}]", [x], 1.0


def padded(w):
    x = w.any("f", 1)
    if x is None:
        return None
    triples = [(w.number(0, 2), w.number(0, 2), w.number(0, 1)) for n in x.shape]
    low, high, interior = (tuple(t[k] for t in triples) for k in range(3))
    return (
        f"ops.pad({x.name}, {w.one([0, 1, 2.5])}, low={low}, high={high}, interior={interior})",
        [x],
        1.0,
    )


def triangle(w):
    x = w.any("f", 2)
    return x and (f"fnp.{w.one(['tril', 'triu'])}({x.name}, {w.number(-1, 1)})", [x], 1.0)


def taken(w):
    """Rows by constant or computed positions."""
    x = w.any("fib", 1)
    if x is None or 0 in x.shape:
        return None
    i = w.any("i")
    n = x.shape[0]
    if i is not None and w.coin():
        return f"{x.name}[fnp.clip({i.name}, {-n}, {n - 1})]", [x], 1.0
    where = [w.number(-n, n - 1) for _ in range(w.number(0, 4))]
    return f"{x.name}[np.array({where}, 'int32')]", [x], 1.0


def taken_along(w):
    x = w.any("fi", 1, exact=True)
    if x is None or 0 in x.shape or not w.host:
        return None
    a = w.axis(x)
    return f"fnp.take_along_axis({x.name}, fnp.argsort({x.name}, axis={a}), axis={a})", [x], 1.0


def ordered(w):
    x = w.any("fi", 1)
    return x and w.host and (f"fnp.sort({x.name}, axis={w.axis(x)})", [x], 1.0) or None


def updated(w):
    x = w.any("f", 1)
    if x is None or x.shape[0] == 0:
        return None
    n = x.shape[0]
    where = [w.number(-n, n - 1) for _ in range(w.number(1, 3))]
    at = w.one((f"[{where[0]}]", f"[np.array({where}, 'int32')]", "[::2]", "[1:]"))
    how = w.one(("set", "add", "multiply", "min", "max"))
    value = w.one(("0.5", f"{x.name}{at}", "-1"))
    return f"{x.name}.at{at}.{how}({value})", [x], 2 + 3 * x.top


def block(w):
    """A slice at a computed place, or an update there."""
    x, i = w.any("f", 1), w.any("i")
    if x is None or i is None or 0 in x.shape or i.value.size == 0:
        return None
    starts = ", ".join(f"fnp.ravel({i.name})[0]" for _ in x.shape)
    sizes = tuple(w.number(1, n) for n in x.shape)
    if w.coin():
        return f"ops.dynamic_slice({x.name}, {starts}, sizes={sizes})", [x], 1.0
    part = ", ".join(f":{n}" for n in sizes)
    return f"ops.dynamic_update_slice({x.name}, -{x.name}[{part}], {starts})", [x], 1.0


def matrix_product(w):
    x = w.any("f", 1)
    if x is None:
        return None
    pairs = [y for y in w.values if y.kind == "f" and fits(w, x.shape, y.shape)]
    if not pairs:
        return (
            (
                f"{x.name} @ fnp.swapaxes({x.name}, -1, -2)"
                if len(x.shape) > 1
                else f"fnp.outer({x.name}, {x.name})"
            ),
            [x],
            4 * (1 + x.top) * max(x.value.size, 1),
        )
    y = w.one(pairs)
    gain = (1 + x.top + y.top) * max(x.value.size, 1)
    return f"{x.name} @ {y.name}", [x, y], gain


def fits(w, a, b):
    """May matmul multiply these shapes?"""
    if not a or not b or a[-1] != b[max(len(b) - 2, 0)]:
        return False
    return w.broadcastable(a[:-2], b[:-2])


def contraction(w):
    """A product summed over the axes that two labellings share."""
    x = w.any("f", 2)
    if x is None or len(x.shape) != 2:
        return None
    y = w.one([v for v in w.values if v.kind == "f" and v.shape == x.shape])
    how = w.one(
        (
            "ij,ij->i",
            "ij,ij->j",
            "ij,ij->",
            "ij,kj->ik",
            "ij,ik->kj",
            "ij,ik->jk",
            "ij,kj->ki",
            "ij,ij->ji",
            "ij,kl->ijkl",
        )
    )
    return (
        f"fnp.einsum('{how}', {x.name}, {y.name})",
        [x, y],
        (1 + x.top + y.top) * max(x.value.size, 1),
    )


def tensor(w):
    x = w.any("f", 1)
    if x is None:
        return None
    y = w.one([v for v in w.values if v.kind == "f" and v.shape == x.shape])
    axes = w.number(0, len(x.shape))
    if axes and x.shape[len(x.shape) - axes:] != y.shape[:axes]:
        return None
    return (
        f"fnp.tensordot({x.name}, {y.name}, {axes})",
        [x, y],
        (1 + x.top + y.top) * max(x.value.size, 1),
    )


def ramp(w):
    n, dtype = w.number(0, 5), w.float
    return (
        w.one(
            (
                f"fnp.arange({n})",
                f"fnp.linspace(0, 1, {n}, dtype='{dtype}')",
                f"fnp.ones(({n}, 2), '{dtype}')",
                f"fnp.eye({n}, dtype='{dtype}')",
            )
        ),
        [],
        1.0,
    )


MOVES = (
    smooth,
    smooth,
    smooth,
    power,
    jump,
    whole,
    whole,
    logical,
    binary,
    binary,
    binary,
    compared,
    bits,
    chosen,
    chosen,
    converted,
    reduced,
    reduced,
    reduced,
    reduced_whole,
    product_of,
    position,
    running,
    softmax,
    moved,
    moved,
    moved,
    reshaped,
    sliced,
    sliced,
    padded,
    triangle,
    taken,
    taken,
    taken_along,
    ordered,
    updated,
    block,
    matrix_product,
    matrix_product,
    contraction,
    contraction,
    tensor,
    ramp,
)
