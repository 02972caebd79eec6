"""Random programs, each with a number: what a user might write, in sizes that nothing is tuned to.

A program is Python text in JAX style, drawn line by line: every kind of line takes a value that
is there already and makes another of it.  The text is what `cliffs.py` prints, so that a program
that is slow can be read, cut down and run by hand; it is compiled by jit, as it is or as the
gradient of its sum, or over a further axis by vmap.  Values stay about as large as the inputs are,
whatever is drawn, so that answers can be compared.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import NamedTuple

from ..workload import Workload

ELEMENTS = 1 << 20         # of the largest value
WORK = 1 << 29             # multiplications and additions of the largest product
FEWEST = 3                 # elements with a deviation: that of one or two is noise
UNARY = ("np.tanh({})", "np.sin({})", "np.exp(-np.abs({}))", "np.sqrt(np.abs({}) + 0.1)",
         "nn.sigmoid({})", "np.maximum({}, 0.1)", "np.where({0} > 0.2, {0}, 0.3 * {0})",
         "np.log1p(np.abs({}))", "{0} * {0} * 0.5", "np.clip({}, -0.5, 0.8)",
         "1.0 / (1.0 + np.abs({}))", "nn.gelu({})")
BINARY = ("{} * {}", "{} + {}", "{} - {}", "np.maximum({}, {})", "{0} / (1.0 + {1} * {1})",
          "np.where({0} > {1}, {0}, {1} * 0.5)")
REDUCTIONS = ("np.sum({}, {}) * 0.1", "np.mean({}, {})", "np.max({}, {})", "np.min({}, {})",
              "np.std({}, {})", "np.sum({0} * {0}, {1}) * 0.1", "nn.logsumexp({}, {})",
              "np.sum(np.exp({}), {}) * 0.1")
ROWS = ("nn.softmax({0}, axis={1})", "nn.log_softmax({0}, axis={1})",
        "({0} - np.mean({0}, axis={1}, keepdims=True))"
        " / np.sqrt(np.var({0}, axis={1}, keepdims=True) + 1e-3)",
        "{0} / (1e-3 + np.sum(np.abs({0}), axis={1}, keepdims=True))",
        "{0} - np.max({0}, axis={1}, keepdims=True)")
RUNNING = ("np.cumsum({0}, axis={1}) * 0.1", "np.cumprod(np.tanh({0}), axis={1})",
           "lax.cummax({0}, axis={1})")
FORMS = {"plain": 11, "gradient": 6, "vmap": 3}


class Kind(NamedTuple):
    """A kind of line: `write(draft, name)` gives text and shape of a value made of `name`'s, or
    None where that one has no such line."""
    write: Callable
    weight: int


KINDS = {}


def kind(weight=2):
    """Puts a function into KINDS under its own name."""
    def put(write):
        KINDS[write.__name__] = Kind(write, weight)
        return write
    return put


class Draft:
    """A program that is being written."""

    def __init__(self, seed, kinds):
        self.random = random.Random(seed)
        self.kinds = {name: KINDS[name] for name in kinds or KINDS}
        self.inputs, self.lines, self.shapes, self.read = {}, [], {}, set()
        self.written = []                              # the kinds of the lines
        self.form = self.choice(FORMS)
        first = self.fresh(self.shape())
        for _ in range(self.random.randint(2, 7)):
            self.line(first)
        self.results = [name for name in self.shapes if name not in self.read] or [first]

    def choice(self, weights):
        """One of the keys of {key: weight}."""
        return self.random.choices(list(weights), list(weights.values()))[0]

    def shape(self):
        """One to four axes, of about so many elements as a power of ten that is drawn."""
        rank = self.random.choice((1, 2, 2, 2, 3, 3, 4))
        elements = 10 ** self.random.uniform(0.5, 5.8)
        cuts = sorted(self.random.random() for _ in range(rank - 1))
        shares = [b - a for a, b in zip([0.0, *cuts], [*cuts, 1.0])]
        return tuple(max(1, round(elements ** share)) for share in shares)

    def axis(self, name):
        return self.random.randrange(len(self.shapes[name]))

    def fresh(self, shape, low=None):
        """Another input: of normal numbers, or of whole ones under `low`."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = shape, low
        if low is None:
            self.shapes[name] = shape
        return name

    def line(self, first):
        """Writes one more line, about the newest value mostly."""
        names = [name for name in self.shapes if name not in self.inputs] or [first]
        name = names[-1] if self.random.random() < 0.75 else self.random.choice(names)
        for _ in range(20):
            which = self.choice({key: kind.weight for key, kind in self.kinds.items()})
            found = self.kinds[which].write(self, name)
            if found and math.prod(found[1]) <= ELEMENTS:
                break
        else:
            return
        text, shape = found
        new = f"v{len(self.lines)}"
        self.lines.append(f"{new} = {text}")
        self.written.append(which)
        self.read |= {known for known in self.shapes if known in text}
        self.shapes[new] = shape

    def text(self):
        """The program: a function `program` of its inputs."""
        return "\n".join([f"def program({', '.join(self.inputs)}):",
                          *(f"    {line}" for line in self.lines),
                          f"    return {', '.join(self.results)}"])


# ------------------------------------------------------------------------ kinds of lines
@kind(weight=6)
def unary(draft, name):
    return draft.random.choice(UNARY).format(name), draft.shapes[name]


@kind(weight=5)
def binary(draft, name):
    """With a value of the same shape, or an input that is broadcast."""
    shape = draft.shapes[name]
    same = [other for other in draft.shapes if draft.shapes[other] == shape and other != name]
    if same and draft.random.random() < 0.6:
        return draft.random.choice(BINARY).format(name, draft.random.choice(same)), shape
    own = [1 if draft.random.random() < 0.4 else size for size in shape]
    own = tuple(own[draft.random.randint(0, len(own)):]) or (1,)
    return draft.random.choice(BINARY).format(name, draft.fresh(own)), shape


@kind(weight=4)
def reduction(draft, name):
    shape = draft.shapes[name]
    if len(shape) < 2 and draft.random.random() < 0.7:
        return None
    axes = tuple(sorted(draft.random.sample(range(len(shape)), draft.random.choice(
        (1, 1, 1, min(2, len(shape)))))))
    few = min(shape[k] for k in axes) < FEWEST
    form = draft.random.choice([form for form in REDUCTIONS if not (few and "std" in form)])
    keep = draft.random.random() < 0.3
    text = f"axis={axes if len(axes) > 1 else axes[0]}" + (", keepdims=True" if keep else "")
    left = tuple(1 if k in axes else size for k, size in enumerate(shape) if keep or k not in axes)
    return (form.format(name, text), left) if left else None


@kind(weight=3)
def rows(draft, name):
    axis = draft.axis(name)
    if draft.shapes[name][axis] < FEWEST:
        return None
    return draft.random.choice(ROWS).format(name, axis), draft.shapes[name]


@kind(weight=1)
def running(draft, name):
    return draft.random.choice(RUNNING).format(name, draft.axis(name)), draft.shapes[name]


@kind()
def transposed(draft, name):
    shape = draft.shapes[name]
    order = draft.random.sample(range(len(shape)), len(shape))
    return f"np.transpose({name}, {tuple(order)})", tuple(shape[k] for k in order)


@kind(weight=1)
def reshaped(draft, name):
    """Two axes become one, or one becomes two."""
    shape = draft.shapes[name]
    k = draft.axis(name)
    if k + 1 < len(shape):
        new = (*shape[:k], shape[k] * shape[k + 1], *shape[k + 2:])
    elif len(shape) < 4 and shape[k] % 2 == 0:
        new = (*shape[:k], shape[k] // 2, 2)
    else:
        return None
    return f"{name}.reshape({new})", new


@kind()
def moved(draft, name):
    """Slices, steps, flips, shifts, padding, repetition and differences of neighbours."""
    shape, k = draft.shapes[name], draft.axis(name)
    size, front = shape[k], ":, " * k

    def resized(new):
        return (*shape[:k], new, *shape[k + 1:])
    match draft.random.randrange(7):
        case 0:
            return f"np.flip({name}, axis={k})", shape
        case 1:
            return f"np.roll({name}, {draft.random.randint(1, 3)}, axis={k})", shape
        case 2 if size > 2:
            return f"{name}[{front}1:-1]", resized(size - 2)
        case 3 if size > 2:
            return f"{name}[{front}::2]", resized((size + 1) // 2)
        case 4:
            widths = [(0, 0)] * len(shape)
            widths[k] = (draft.random.randint(0, 2), 1)
            return f"np.pad({name}, {widths})", resized(size + sum(widths[k]))
        case 5:
            return f"np.repeat({name}, 2, axis={k})", resized(2 * size)
        case 6 if size > 2:
            return f"{name}[{front}1:] - {name}[{front}:-1]", resized(size - 1)


@kind()
def joined(draft, name):
    """Concatenated or stacked with something of its shape."""
    shape, k = draft.shapes[name], draft.axis(name)
    other = draft.random.choice(UNARY).format(name)
    if draft.random.random() < 0.3 and len(shape) < 4:
        return f"np.stack([{name}, {other}], axis={k})", (*shape[:k], 2, *shape[k:])
    return (f"np.concatenate([{name}, {other}], axis={k})",
            (*shape[:k], 2 * shape[k], *shape[k + 1:]))


@kind(weight=4)
def product(draft, name):
    """With weights, from the right or the left; batched with itself; outer differences."""
    shape = draft.shapes[name]
    columns = round(10 ** draft.random.uniform(0, 2.5))
    if math.prod(shape) * columns > WORK // 2:
        return None
    if len(shape) == 1:
        return f"{name} @ {draft.fresh((shape[0], columns))} * {scale(shape[0])}", (columns,)
    match draft.random.randrange(4):
        case 0 if math.prod(shape) * shape[-2] <= WORK // 2:
            return (f"{name} @ np.swapaxes({name}, -1, -2) * {scale(shape[-1])}",
                    (*shape[:-1], shape[-2]))
        case 1:
            weights = draft.fresh((columns, shape[-2]))
            return f"{weights} @ {name} * {scale(shape[-2])}", (*shape[:-2], columns, shape[-1])
        case 2:
            batched = draft.fresh((*shape[:-2], shape[-1], columns))
            return f"{name} @ {batched} * {scale(shape[-1])}", (*shape[:-1], columns)
    bias = f" + {draft.fresh((columns,))}" if draft.random.random() < 0.5 else ""
    weights = draft.fresh((shape[-1], columns))
    return f"{name} @ {weights} * {scale(shape[-1])}{bias}", (*shape[:-1], columns)


def scale(terms):
    """Keeps a sum of so many products as large as its terms."""
    return f"{terms ** -0.5:.3g}"


@kind()
def pairwise(draft, name):
    """All pairs of rows: distances, or a kernel of them."""
    shape = draft.shapes[name]
    if len(shape) != 2 or shape[0] ** 2 * shape[1] > 1 << 22:
        return None
    distances = f"np.sum(({name}[:, None, :] - {name}[None, :, :]) ** 2, axis=-1)"
    return (f"np.exp(-{distances})" if draft.random.random() < 0.6 else f"{distances} * 0.1",
            (shape[0], shape[0]))


@kind()
def convolution(draft, name):
    """Over the two axes between the first and the last of four."""
    shape = draft.shapes[name]
    if len(shape) != 4:
        return None
    width, channels = draft.random.choice((1, 3, 3, 5)), draft.random.choice((1, 4, 10, 16, 32))
    step = draft.random.choice((1, 1, 2))
    if math.prod(shape) * channels * width**2 > WORK // 2:
        return None
    weights = draft.fresh((width, width, shape[-1], channels))
    return (f"lax.conv_general_dilated({name}, {weights}, ({step}, {step}), 'SAME', "
            f"dimension_numbers=('NHWC', 'HWIO', 'NHWC')) * {scale(width**2 * shape[-1])}",
            (shape[0], -(-shape[1] // step), -(-shape[2] // step), channels))


@kind(weight=1)
def pooling(draft, name):
    shape = draft.shapes[name]
    if len(shape) != 4 or min(shape[1:3]) < 2:
        return None
    start, join = draft.random.choice((("-np.inf", "lax.max"), ("0.0", "lax.add")))
    return (f"lax.reduce_window({name}, {start}, {join}, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')"
            " * 0.5", (shape[0], shape[1] // 2, shape[2] // 2, shape[3]))


@kind()
def gathered(draft, name):
    """Rows by their numbers; sums of rows by number; one element of each row."""
    shape = draft.shapes[name]
    count = round(10 ** draft.random.uniform(0.3, 3.3))
    match draft.random.randrange(4):
        case 0 if len(shape) > 1:
            return f"{name}[{draft.fresh((count,), shape[0])}]", (count, *shape[1:])
        case 1 if len(shape) < 3:
            to, rows = draft.fresh(shape[:1], count), (count, *shape[1:])
            return f"np.zeros({rows}, 'float32').at[{to}].add({name})", rows
        case 2 if len(shape) == 2:
            return (f"np.take_along_axis({name}, {draft.fresh((shape[0], 1), shape[1])}, axis=1)",
                    (shape[0], 1))
        case 3 if len(shape) == 1:
            return f"np.sum(nn.one_hot({draft.fresh((30,), shape[0])}, {shape[0]}) * {name}, " \
                   "axis=1)", (30,)


@kind(weight=1)
def ordered(draft, name):
    """Sorted, or moved by an order."""
    shape, k = draft.shapes[name], draft.axis(name)
    if math.prod(shape) > 1 << 17:
        return None
    return f"np.sort({name}, axis={k})", shape


@kind(weight=1)
def extreme(draft, name):
    """The place of the largest, as a number to compute with."""
    shape, k = draft.shapes[name], draft.axis(name)
    if len(shape) < 2:
        return None
    return (f"np.argmax({name}, axis={k}).astype('float32') * {1 / shape[k]:.3g}",
            (*shape[:k], *shape[k + 1:]))


@kind()
def loop(draft, name):
    """A scan over the first axis, or some steps of a map."""
    shape = draft.shapes[name]
    if len(shape) < 2 or draft.random.random() < 0.4:
        steps = draft.random.choice((5, 20, 100))
        if math.prod(shape) * steps > 1 << 22:
            return None
        return (f"lax.fori_loop(0, {steps}, lambda i, c: 0.9 * c + 0.1 * np.sin(c + {name}), "
                f"{name})", shape)
    size = shape[-1]
    if shape[0] * math.prod(shape[1:]) * size > 1 << 26:
        return None
    weights = draft.fresh((size, size)) if draft.random.random() < 0.5 else None
    step = f"c @ {weights} * {scale(size)}" if weights else "0.9 * c"
    return (f"lax.scan(lambda c, x: (np.tanh({step} + x), np.tanh({step} + x)), {name}[0], "
            f"{name})[1]", shape)


@kind(weight=1)
def solved(draft, name):
    """A system of equations that is far from singular."""
    shape = draft.shapes[name]
    if len(shape) not in (2, 3) or shape[-2] > 64 or shape[-1] > 300:
        return None
    rows = shape[-2]
    matrix = f"{rows}.0 * np.eye({rows}) + {draft.fresh((rows, rows))}"
    if len(shape) == 3:
        matrix = f"np.broadcast_to({matrix}, {(shape[0], rows, rows)})"
    return f"np.linalg.solve({matrix}, {name}) * {rows}.0", shape


# ------------------------------------------------------------------------ as workloads
def program(seed, kinds=()):
    """The Draft of a number, of these kinds of lines only."""
    return Draft(seed, kinds)


def workload(seed, kinds=()):
    """The Workload of a number: the program compiled by jit, in its form."""
    draft = program(seed, kinds)

    def inputs(rng):
        more = (3,) if draft.form == "vmap" else ()
        return tuple(rng.normal(size=more + shape).astype("float32") if low is None
                     else rng.integers(0, low, more + shape).astype("int32")
                     for shape, low in draft.inputs.values())

    def maker(lib, *values):
        return (lib.jit(transformed(lib, draft)), *values)
    return Workload(name(seed, kinds), {"jax": maker}, inputs, tolerance=2e-3)


def name(seed, kinds=()):
    """What `workloads.find` knows it by."""
    return "-".join([f"programs.{seed}", *kinds])


def named(own):
    """The Workload of a name without its module."""
    seed, *kinds = own.split("-")
    return workload(int(seed), tuple(kinds))


def transformed(lib, draft):
    """The program of a library, as itself, as the gradient of a sum, or over a further axis."""
    scope = {"np": lib.numpy, "lax": lib.lax, "nn": lib.nn}
    exec(draft.text(), scope)
    run = scope["program"]
    if draft.form == "vmap":
        return lib.vmap(run)
    if draft.form == "plain":
        return run

    def total(*values):
        out = run(*values)
        return sum(lib.numpy.sum(v * v) for v in (out if isinstance(out, tuple) else (out,)))
    numbers = tuple(k for k, (_, low) in enumerate(draft.inputs.values()) if low is None)
    return lib.grad(total, numbers)
