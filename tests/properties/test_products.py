"""Random products of views, and random convolutions: compiled they give what they give at once.

So do their gradients, and vmap gives what a loop does.  An operand is an array that is transposed,
cut, reversed, padded, broadcast, put together from parts or made of windows, then scaled or
rectified; a product gets a bias, sums, or a mask.  Sizes lie around those of tiles.
"""

import random

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp
from fgrad import lax, tree

from tests.strategies import examples
from tests.tolerance import EPS

SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 48, 64, 65, 97, 100, 128, 130, 200)
NARROW = ("float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32")
NAMES = {"fnp": fnp, "lax": lax}


# -- operands: the text of a matrix of m rows and n columns, of arrays that `draw` adds ------------

def plain(draw, m, n):
    return draw.array(m, n)


def transposed(draw, m, n):
    return draw.array(n, m) + ".T"


def cut(draw, m, n):
    rows, columns, first = draw.one((1, 2, 3)), draw.one((1, 1, 2)), draw.one((0, 1, 2))
    whole = draw.array(m * rows + first, n * columns + first)
    return f"{whole}[{first}::{rows}, {first}::{columns}][:{m}, :{n}]"


def reversed_(draw, m, n):
    return f"{draw.array(m, n)}[::-1{draw.one(('', ', ::-1'))}]"


def padded(draw, m, n):
    above, before = (draw.number(0, k // 2) for k in (min(m, 4), min(n, 4)))
    inside = draw.array(m - 2 * above, n - before) if m > 2 * above and n > before else None
    return inside and f"fnp.pad({inside}, (({above}, {above}), (0, {before})))"


def broadcast(draw, m, n):
    return f"fnp.broadcast_to({draw.array(*draw.one(((1, n), (m, 1))))}, ({m}, {n}))"


def merged(draw, m, n):
    p = next(p for p in (4, 3, 2, 1) if m % p == 0)
    return f"fnp.reshape(fnp.swapaxes({draw.array(p, n, m // p)}, 1, 2), ({m}, {n}))"


def interleaved(draw, m, n):
    p = next(p for p in (4, 3, 2, 1) if n % p == 0)
    x = f"fnp.reshape({draw.array(m, n)}, ({m}, {p}, {n // p}))"
    return f"fnp.reshape(fnp.swapaxes({x}, 1, 2), ({m}, {n}))"


def joined(draw, m, n):
    first = draw.number(0, n)
    return f"fnp.concatenate([{draw.array(m, first)}, {draw.array(m, n - first)}], 1)"


def windows(draw, m, n):
    k = next(k for k in (3, 2, 1) if n % k == 0)
    return f"fnp.concatenate([{draw.array(m + k - 1, n // k)}[i:i + {m}] for i in range({k})], 1)"


VIEWS = (plain, transposed, cut, reversed_, padded, broadcast, merged, interleaved, joined, windows)


class Draw:
    """Random choices, and the shapes of the arrays x0, x1, … that were asked for."""

    def __init__(self, seed):
        self.random, self.shapes = random.Random(seed), []

    def one(self, options):
        return self.random.choice(options)

    def number(self, low, high):
        return self.random.randint(low, high)

    def array(self, *shape):
        self.shapes.append(shape)
        return f"x{len(self.shapes) - 1}"

    def operand(self, m, n):
        x = self.one(VIEWS)(self, m, n) or plain(self, m, n)
        scaled = self.one((None, None, "fnp.maximum({}, 0)", "({} * 2 + 1)", "columns"))
        if scaled == "columns":
            return f"({x} * {self.array(1, n)})"
        return scaled.format(x) if scaled else x

    def product(self):
        m, k, n = (self.one(SIZES) for _ in range(3))
        a = self.operand(m, k)
        n, b = (m, f"({a}).T") if self.number(0, 5) == 0 else (n, self.operand(k, n))
        c = f"({a} @ {b})"
        match self.number(0, 8):
            case 0: return f"fnp.tanh({c} + {self.array(n)})"
            case 1: return f"{c} + {self.array(m, n)}"
            case 2: return f"fnp.sum({c}, 0) * (fnp.arange({n}) % 7 - 3)"
            case 3: return f"fnp.sum({c}, 1)"
            case 4: return f"{c}.T"
            case 5: return f"fnp.where(fnp.arange({n}) <= fnp.arange({m})[:, None], {c}, -1.0)"
            case 6: return f"(lambda h: (h, fnp.sum(h, 0), fnp.sum(h * h, 0)))({c} + 1)"
            case 7: return f"(fnp.stack([{a}, 2 * {a}, -{a}]) @ {b})[:2]"
        return c

    def convolution(self):
        axes = "HW"[:self.number(1, 2)]
        inputs, outputs = self.one((1, 2, 3, 4, 8)), self.one((1, 2, 3, 8, 16))
        groups = self.one((1, 1, 1, inputs))
        sizes, kernel = ([self.one(of) for _ in axes]
                         for of in ((5, 7, 8, 9, 12, 17), (1, 2, 3, 5)))
        stride, spacing, dilation = ([self.one(of) for _ in axes]
                                     for of in ((1, 1, 2, 3), (1, 1, 1, 2), (1, 1, 2)))
        pairs = [(self.number(0, 2) + k * d, self.number(0, 2)) if n <= (k - 1) * d else
                 (self.number(0, 2), self.number(0, 2))
                 for n, k, d in zip(sizes, kernel, dilation)]
        x = self.array(self.one((1, 2, 3, 6)), *sizes, inputs)
        w = self.array(*kernel, inputs // groups, outputs * groups)
        labels = f"N{axes}C", f"{axes}IO", f"N{axes}C"
        return (f"lax.conv_general_dilated({x}, {w}, {stride}, {pairs}, {spacing}, {dilation}, "
                f"{labels}, {groups})")


# -- laws ------------------------------------------------------------------------------------------

def assert_near(got, want, rtol):
    for x, y in zip(tree.leaves(got), tree.leaves(want), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype.kind in "iub":
            np.testing.assert_array_equal(x, y)
        else:
            np.testing.assert_allclose(x, y, rtol=rtol,
                                       atol=rtol * max(1, np.abs(y).max(initial=0)))


def laws_hold(draw, text):
    """Compiled as at once: the value, the gradient, or vmap, of arrays of quarters."""
    names = ", ".join(f"x{k}" for k in range(len(draw.shapes)))
    source = f"lambda {names}: {text}"
    f, dtype = eval(source, NAMES), draw.one(("float32", "float64"))
    rng = np.random.default_rng(draw.number(0, 99))
    args = [fnp.asarray(rng.integers(-3, 4, s) * 0.25, dtype) for s in draw.shapes]
    rtol = 1e-4 if dtype == "float32" else 1e-11
    note(f"{source}\n{dtype} {draw.shapes}")

    def loss(*args):
        outs = [fnp.ravel(x) for x in tree.leaves(f(*args))]
        return sum(fnp.sum(x * fnp.sin(1.0 + fnp.arange(x.size, dtype=dtype))) for x in outs)
    derived = fgrad.grad(loss, tuple(range(len(args))))
    assert_near(fgrad.jit(f)(*args), f(*args), rtol)
    assert_near(fgrad.jit(derived)(*args), derived(*args), 10 * rtol)
    if draw.number(0, 3) == 0:
        many = [fnp.stack([x, 1 - x]) for x in args]
        each = [f(*[x[k] for x in many]) for k in range(2)]
        want = tree.map(lambda *parts: fnp.stack(parts), *each)
        assert_near(fgrad.jit(fgrad.vmap(f))(*many), want, 10 * rtol)


def narrow_laws_hold(draw, text):
    """Compiled as at once, and with vmap as one by one, of narrow floats and of integers."""
    names = ", ".join(f"x{k}" for k in range(len(draw.shapes)))
    source = f"lambda {names}: {text}"
    f, dtype = eval(source, NAMES), draw.one(NARROW)
    low, unit = (0 if dtype.startswith("u") else -3), (0.25 if "float" in dtype else 1)
    rng = np.random.default_rng(draw.number(0, 99))
    args = [fnp.asarray(rng.integers(low, 4, s) * unit, dtype) for s in draw.shapes]
    rtol = 8 * EPS[dtype] if "float" in dtype else 1e-5      # integers become f32 in some programs
    note(f"{source}\n{dtype} {draw.shapes}")
    many = [fnp.stack([x, x[::-1]]) for x in args]
    each = [f(*[x[k] for x in many]) for k in range(2)]
    assert_near(fgrad.jit(f)(*args), each[0], rtol)
    assert_near(fgrad.jit(fgrad.vmap(f))(*many),
                tree.map(lambda *parts: fnp.stack(parts), *each), rtol)


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_products_of_views(seed):
    draw = Draw(seed)
    laws_hold(draw, draw.product())


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_products_of_views_of_narrow_dtypes(seed):
    draw = Draw(seed)
    narrow_laws_hold(draw, draw.product())


@examples(25)
@given(st.integers(0, 2**32 - 1))
def test_convolutions(seed):
    draw = Draw(seed)
    laws_hold(draw, draw.convolution())
