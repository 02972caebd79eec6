"""Array programs for the tests of the passes: a builder, the usual suspects, and random ones."""

import random

import numpy as np

from fgrad import ir, ops  # noqa: F401  (ops registers the operations)
from fgrad.core import PRIMITIVES, array_in, memory_of
from fgrad.types import F32, FLOATS, I32, ArrayType


class Build:
    """Writes a Program: Build("f").input("x", 3), then any operation by name."""

    def __init__(self, name):
        self.name, self.inputs, self.eqns = name, [], []

    def input(self, name, *shape, dtype=F32):
        v = ir.Var(ArrayType(dtype, shape), name)
        self.inputs.append(v)
        return v

    def __getattr__(self, op):
        primitive = PRIMITIVES[op]

        def apply(*args, **params):
            outs = [ir.Var(t) for t in ir.evaluate_types(primitive, args, params)]
            self.eqns.append(ir.Equation(primitive, args, params, outs))
            return outs if primitive.multiple else outs[0]
        return apply

    def rows(self, x, shape):
        """[m] → [m,n]"""
        return self.broadcast(x, shape=shape, axes=(1,))

    def columns(self, x, shape):
        """[n] → [m,n]"""
        return self.broadcast(x, shape=shape, axes=(0,))

    def dot(self, a, b):
        return self.dot_general(a, b, lhs="ij", rhs="jk", to="ik")

    def done(self, *outputs):
        return ir.Program(self.name, self.inputs, self.eqns, outputs).check()


def softmax(m, n):
    p = Build("softmax")
    x = p.input("x", m, n)
    e = p.exp(p.sub(x, p.rows(p.reduce_max(x, axes=(1,)), (m, n))))
    return p.done(p.div(e, p.rows(p.reduce_sum(e, axes=(1,)), (m, n))))


def logsumexp(m, n):
    p = Build("logsumexp")
    x = p.input("x", m, n)
    top = p.reduce_max(x, axes=(1,))
    e = p.exp(p.sub(x, p.rows(top, (m, n))))
    return p.done(p.add(p.log(p.reduce_sum(e, axes=(1,))), top))


def normalised(p, x, m, n):
    """(x - mean) / deviation per row, and 1 / deviation."""
    mean = p.mul(p.reduce_sum(x, axes=(1,)), 1 / n)
    c = p.sub(x, p.rows(mean, (m, n)))
    r = p.rsqrt(p.add(p.mul(p.reduce_sum(p.mul(c, c), axes=(1,)), 1 / n), 1e-5))
    return p.mul(c, p.rows(r, (m, n))), r


def layernorm(m, n):
    p = Build("layernorm")
    x, g, b = p.input("x", m, n), p.input("g", n), p.input("b", n)
    y, _ = normalised(p, x, m, n)
    return p.done(p.add(p.mul(y, p.columns(g, (m, n))), p.columns(b, (m, n))))


def layernorm_gradient(m, n):
    p = Build("layernorm_gradient")
    x, g, dy = p.input("x", m, n), p.input("g", n), p.input("dy", m, n)
    y, r = normalised(p, x, m, n)
    dg, db = p.reduce_sum(p.mul(dy, y), axes=(0,)), p.reduce_sum(dy, axes=(0,))
    d = p.mul(dy, p.columns(g, (m, n)))
    m1 = p.mul(p.reduce_sum(d, axes=(1,)), 1 / n)
    m2 = p.mul(p.reduce_sum(p.mul(d, y), axes=(1,)), 1 / n)
    t = p.sub(p.sub(d, p.rows(m1, (m, n))), p.mul(y, p.rows(m2, (m, n))))
    return p.done(p.mul(t, p.rows(r, (m, n))), dg, db)


def reduction(shape, axes, op="reduce_sum", dtype=F32):
    p = Build("reduction")
    x = p.input("x", *shape, dtype=dtype)
    return p.done(getattr(p, op)(p.mul(x, x), axes=axes))


def transposed_add(m, n):
    p = Build("transposed_add")
    x, y = p.input("x", m, n), p.input("y", n, m)
    return p.done(p.add(x, p.transpose(y, perm=(1, 0))))


def linear_tanh(m, k, n, dtype=F32):
    p = Build("linear_tanh")
    x, w, b = (p.input(name, *shape, dtype=dtype)
               for name, shape in (("x", (m, k)), ("w", (k, n)), ("b", (n,))))
    return p.done(p.tanh(p.add(p.dot(x, w), p.columns(b, (m, n)))))


def adam(m, k, n):
    """A weight's gradient as a product, and Adam's update of it: three results at one index."""
    p = Build("adam")
    x, dy, w = p.input("x", m, k), p.input("dy", m, n), p.input("w", k, n)
    mean, square = p.input("mean", k, n), p.input("square", k, n)
    g = p.dot_general(x, dy, lhs="ij", rhs="ik", to="jk")
    mean2 = p.add(p.mul(mean, 0.9), p.mul(g, 0.1))
    square2 = p.add(p.mul(square, 0.999), p.mul(p.mul(g, g), 0.001))
    step = p.div(mean2, p.add(p.sqrt(p.abs(square2)), 1e-8))
    return p.done(p.sub(w, p.mul(step, 0.01)), mean2, square2)


def chain(n, size=64):
    """n cheap equations in a row."""
    p = Build("chain")
    x = p.input("x", size)
    a = x
    for k in range(n):
        a = (p.add, p.mul, p.sub, p.max)[k % 4](a, x)
    return p.done(a)


def blocks(n, m=8, d=16):
    """Stacked layernorm and residual, n equations or a few more."""
    p = Build("blocks")
    h = p.input("h", m, d)
    while len(p.eqns) < n:
        y, _ = normalised(p, h, m, d)
        h = p.add(h, p.tanh(y))
    return p.done(h)


def arrays_for(program, seed=0):
    """Random NumPy arrays for the inputs: small integers, floats around 0, bools."""
    rng = np.random.default_rng(seed)
    return [some(rng, v) for v in program.inputs]


def some(rng, v):
    if v.dtype.kind == "f":
        return np.asarray(memory_of(array_in(rng.standard_normal(v.shape), v.dtype)))
    if v.dtype.kind == "b":
        return rng.random(v.shape) < 0.5
    return rng.integers(0 if v.dtype.kind == "u" else -5, 6, v.shape).astype(v.dtype)


# ---------------------------------------------------------------------------- random programs

SIZES = (0, 1, 1, 2, 3, 4, 5, 8, 9, 16, 17)


class Random:
    """One random program: movement, elementwise, reductions, products, running sums, scatters."""

    def __init__(self, seed, dtype=F32, sizes=SIZES):
        self.rng, self.p, self.dtype = random.Random(seed), Build("random"), dtype
        m, n, k = (self.rng.choice(sizes) for _ in range(3))
        shapes = [(m, n), (m, n), (n,), (n, k), ()]
        self.values = [self.p.input(f"a{i}", *s, dtype=dtype) for i, s in enumerate(shapes)]

    def program(self):
        for _ in range(self.rng.randint(3, 16)):
            recent = self.values[-6:] if self.rng.random() < 0.7 else self.values
            made = self.rng.choice(self.moves)(self, self.rng.choice(recent))
            if made is not None and made.type.size < 2000:
                self.values.append(made)
        new = self.values[5:] or [self.p.neg(self.values[0])]
        outs = self.rng.sample(new, min(self.rng.randint(1, 3), len(new)))
        return self.p.done(*outs)

    def axes(self, x):
        count = self.rng.randint(1, len(x.shape))
        return tuple(sorted(self.rng.sample(range(len(x.shape)), count)))

    def binary(self, x):
        y = self.rng.choice([v for v in self.values if v.type is x.type])
        return getattr(self.p, self.rng.choice(["add", "sub", "mul", "max", "min"]))(x, y)

    def with_number(self, x):
        name = self.rng.choice(["add", "mul", "sub"])
        return getattr(self.p, name)(x, self.rng.choice([0, 1, 2]))

    def unary(self, x):
        bounded = self.p.tanh(x) if self.dtype in FLOATS else self.p.clamp(-3, x, 3)
        return self.p.exp(self.p.mul(bounded, 0.5)) if self.dtype in FLOATS else bounded

    def compared(self, x):
        return self.p.select(self.p.gt(x, 0), x, self.p.neg(x))

    def reduced(self, x):
        if not x.shape:
            return None
        axes = self.axes(x)
        how = self.rng.choice(["reduce_sum", "reduce_sum", "reduce_max", "reduce_min"])
        s = getattr(self.p, how)(self.p.clamp(-5, x, 5), axes=axes)
        if self.rng.random() < 0.4 or how != "reduce_sum":
            return s
        return self.p.sub(x, self.p.broadcast(s, shape=x.shape, axes=axes))

    def transposed(self, x):
        perm = list(range(len(x.shape)))
        self.rng.shuffle(perm)
        return self.p.transpose(x, perm=tuple(perm))

    def reshaped(self, x):
        n = x.type.size
        divisors = [d for d in range(1, n + 1) if n % d == 0] or [1]
        d = self.rng.choice(divisors)
        return self.p.reshape(x, shape=(d, n // d))

    def sliced(self, x):
        start = tuple(self.rng.randint(0, n) for n in x.shape)
        stop = tuple(self.rng.randint(a, n) for a, n in zip(start, x.shape))
        return self.p.slice(x, start=start, stop=stop,
                            stride=tuple(self.rng.choice([1, 1, 2]) for _ in x.shape))

    def padded(self, x):
        one = lambda top: tuple(self.rng.randint(0, top) for _ in x.shape)
        return self.p.pad(x, 2, low=one(2), high=one(2), interior=one(1))

    def reversed(self, x):
        return self.p.rev(x, axes=self.axes(x)) if x.shape else None

    def joined(self, x):
        if not x.shape:
            return None
        axis = self.rng.randrange(len(x.shape))
        return self.p.concatenate(x, self.p.rev(x, axes=(axis,)), axis=axis)

    def spread(self, x):
        if len(x.shape) > 2:
            return None
        axis, n = self.rng.randint(0, len(x.shape)), self.rng.choice([1, 2, 5])
        return self.p.broadcast(x, shape=(*x.shape[:axis], n, *x.shape[axis:]), axes=(axis,))

    def product(self, x):
        pairs = [y for y in self.values if len(y.shape) == 2]
        if len(x.shape) != 2:
            return None
        y = self.rng.choice(pairs)
        x, y = self.p.clamp(-2, x, 2), self.p.clamp(-2, y, 2)
        if x.shape[1] == y.shape[0]:
            return self.p.dot(x, y)
        if x.shape[1] == y.shape[1]:
            return self.p.dot_general(x, y, lhs="ij", rhs="kj", to="ik")
        if x.shape[0] == y.shape[0]:
            return self.p.dot_general(x, y, lhs="ji", rhs="jk", to="ik")
        return None

    def running(self, x):
        if not x.shape:
            return None
        return self.p.cumsum(self.p.clamp(-2, x, 2), axis=self.rng.randrange(len(x.shape)),
                             reverse=self.rng.random() < 0.5)

    def gathered(self, x):
        if not x.shape or x.shape[0] == 0:
            return None
        i = self.p.iota(shape=(4,), axis=0, dtype=I32)
        return self.p.gather(x, self.p.sub(i, 1), axes=(0,), mode=self.rng.choice(["clip", "fill"]))

    def scattered(self, x):
        if not x.shape or x.shape[0] == 0:
            return None
        i = self.p.sub(self.p.iota(shape=(3,), axis=0, dtype=I32), 1)
        u = self.p.gather(x, i, axes=(0,), mode="clip")
        return getattr(self.p, self.rng.choice(["scatter_add", "scatter_set"]))(
            x, i, u, axes=(0,), mode=self.rng.choice(["clip", "drop"]))

    moves = (binary, binary, binary, with_number, unary, compared, reduced, reduced, transposed,
             reshaped, sliced, padded, reversed, joined, spread, product, running, gathered,
             scattered)
