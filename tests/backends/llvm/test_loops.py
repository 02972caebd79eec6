"""Loops of little work a step are one native function, and do what the same loops do eagerly."""

import re

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import ArrayType, jit, lax, show
from fgrad.backends.llvm import loops
from fgrad.tree_util import tree_leaves

LENGTHS = [0, 1, 2, 3, 10, 33]


@pytest.fixture(params=[1 << 18, 7], ids=["seldom", "at every step"])
def stretch(request, monkeypatch):
    """How many statements run between two looks at the clock."""
    monkeypatch.setattr(loops, "STRETCH", request.param)
    monkeypatch.setenv("FGRAD_CACHE", "0")


def drawn(n, dtype="float32"):
    return fnp.asarray(np.random.default_rng(n).integers(1, 9, n)).astype(dtype)


def agree(f, *args):
    """The compiled function gives what NumPy's rules give."""
    found = jit(f, device="cpu")(*args)
    for got, want in zip(tree_leaves(found), tree_leaves(f(*args)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


def functions(f, *args):
    """The functions of the compiled f that are called from outside."""
    return re.findall(r"^define \w+ @(k\.\w+)", show(f, *args, stage="llvm", device="cpu"), re.M)


def fading(c, x):
    c = 0.5 * c + x
    return c, c


def exchange(c, x):
    a, b, kept = c
    return (b + x, a * kept, kept), a


def chosen(c, x):
    return lax.cond(x > 4, lambda c: fnp.sin(c) @ fnp.cos(c), lambda c: fnp.sum(c * c) + 1.0,
                    fnp.stack([c, x, c + x])), c


def of_rows(c, x):
    """A scan in a scan."""
    inner = lax.scan(lambda d, y: (d * 0.5 + y, d), x, fnp.arange(3.0) + c)
    return inner[0], inner[1]


def of_steps(c, x):
    """A loop that counts, backwards too, and one that keeps its carry where it is."""
    up = lax.fori_loop(0, 4, lambda k, v: v + k * x, c)
    return up, lax.scan(lambda d, k: (d.at[k].set(up), d[k]), fnp.zeros(4), fnp.arange(4),
                        reverse=True)


def in_a_table(c, x):
    return c.at[(7 * x).astype("int32") % 5].add(x), c[2]


def of_coordinates(c, x):
    """What is written over is read before: the sum, by both results."""
    p, v = c
    a = fnp.stack([v[1], -fnp.sin(p[0]) - v[1] * x, p[2] * p.sum()])
    return (p * 0.5 + v, (v + a) / (1 + fnp.sum(p * p))), (p.sum(), p @ v, fnp.max(v))


def of_matrices(c, x):
    """A Kalman filter's step: products of small matrices."""
    m, P = c
    F, H = fnp.array([[1.0, 0.1], [0.0, 1.0]]), fnp.array([[1.0, 0.0]])
    m, P = F @ m, F @ P @ F.T + 0.1 * fnp.eye(2)
    K = P @ H.T / (H @ P @ H.T + 0.5)
    return (m + K @ (x - H @ m), P - K @ H @ P), m


def running_sums(c, x):
    """A loop within two short ones, which are written out."""
    c = 0.1 * fnp.cumsum(c + x, axis=-1)
    return c, c[0, 1, :3]


SCANS = {"fading": (fading, lambda: 0.0), "exchange": (exchange, lambda: (1.0, 2.0, 0.5)),
         "chosen": (chosen, lambda: 0.5), "of rows": (of_rows, lambda: 1.0),
         "of steps": (of_steps, lambda: 1.0), "in a table": (in_a_table, lambda: fnp.zeros(5)),
         "in a long table": (in_a_table, lambda: fnp.zeros(200)),
         "of coordinates": (of_coordinates, lambda: (fnp.arange(3.0), fnp.ones(3))),
         "of matrices": (of_matrices, lambda: (fnp.zeros(2), fnp.eye(2))),
         "running sums": (running_sums, lambda: fnp.ones((2, 2, 20))),
         "nothing": (lambda c, x: (c, x), lambda: 3.0)}


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SCANS)
def test_a_scan_is_the_loop(name, reverse, n, stretch):
    step, start = SCANS[name]
    agree(lambda xs: lax.scan(step, start(), xs, reverse=reverse), drawn(n))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "uint8", "bool"])
def test_carries_of_every_dtype(dtype, stretch):
    def step(c, x):
        return (c[1], (c[0] + x).astype(dtype)), c[0]
    agree(lambda xs: lax.scan(step, (xs[0], xs[1]), xs), drawn(20, dtype))


@pytest.mark.parametrize("n", [0, 1, 6, 7, 8, 50])
def test_a_while_is_the_loop(n, stretch):
    def halved(x, limit):
        return lax.while_loop(lambda s: (s[1] < limit) & (s[0].sum() > 0),
                              lambda s: (s[0] * 0.75, s[1] + 1), (x, 0))
    agree(halved, drawn(5), np.int32(n))


def test_a_loop_goes_on_where_it_was_after_a_look_at_the_clock():
    """Some million steps are more than one stretch; the last one is shorter."""
    steps = 3_000_017

    def counted(k):
        return lax.fori_loop(0, steps, lambda i, c: (c[0] + 1, c[1] ^ i), (k, k))

    def halting(k):
        return lax.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, c[1] ^ c[0]), (k, k))
    want = np.bitwise_xor.reduce(np.arange(steps))
    for f in counted, halting:
        assert [int(v) for v in jit(f)(np.int32(0))] == [steps, want]


def test_one_function_holds_the_loop():
    xs, start = ArrayType("float32", (1000,)), ArrayType("float32", ())
    for step in (fading, of_rows, of_steps):
        found = functions(lambda c, xs: lax.scan(step, c, xs), start, xs)
        assert len(found) == 1, step


def test_short_loops_in_a_loop_are_straight_lines():
    """The matrices of a Kalman filter are variables, and the one loop is that over steps."""
    c = ArrayType("float32", (2,)), ArrayType("float32", (2, 2))
    text = show(lambda c, xs: lax.scan(of_matrices, c, xs), c, ArrayType("float32", (100,)),
                stage="llvm", device="cpu")
    inner = re.findall(r"^define internal void @fg.*?^}", text, re.M | re.S)
    assert inner and not any("phi" in f for f in inner)


def test_short_loops_around_vectors_are_written_out():
    """The rows of a small state are variables, too."""
    def layers(c, w, xs):
        return lax.scan(lambda c, x: (fnp.tanh(c @ w) * x, None), c, xs)[0]
    c, w = (ArrayType("float32", s) for s in [(4, 8), (8, 8)])
    text = show(layers, c, w, ArrayType("float32", (100,)), stage="llvm", device="cpu")
    inner = re.findall(r"^define internal void @fg.*?^}", text, re.M | re.S)
    assert inner and not any("phi" in f for f in inner)


def test_steps_of_much_work_are_called_one_by_one():
    def run(w, xs):
        return lax.scan(lambda c, x: (fnp.tanh(c * w + x), c.sum()), w, xs)
    few = functions(run, ArrayType("float32", (16,)), ArrayType("float32", (100, 16)))
    wide = ArrayType("float32", (9000,)), ArrayType("float32", (100, 9000))
    assert len(few) == 1 and "scan" in show(run, *wide, stage="schedule")
    assert not any("call void @fg." in line for line in
                   show(run, *wide, stage="llvm", device="cpu").splitlines())


def test_variables_are_kept_in_registers():
    """What a step hands to the next one is neither stored nor loaded in the loop."""
    text = show(lambda xs: lax.scan(lambda c, x: (0.5 * c + x, None), 0.0, xs)[0],
                ArrayType("float32", (1000,)), stage="asm", device="cpu")
    if "xmm" not in text:
        pytest.skip("reads x86 instructions")
    loop = text[text.index("vmulss") if "vmulss" in text else text.index("mulss"):]
    loop = loop[:re.search(r"\tj\w+\t", loop).start()]
    assert not re.search(r"movss\s+%xmm\d+, .*\(", loop), loop


def test_updates_in_place_are_in_the_function():
    """The copy that an update begins with is nothing, however long the array is."""
    def crossed_out(c):
        return lax.fori_loop(2, 100, lambda i, c: lax.fori_loop(
            0, 50, lambda j, d: d.at[i * j].set(0.0), c), c)
    assert len(functions(crossed_out, ArrayType("float32", (100_000,)))) == 1
    agree(crossed_out, fnp.ones(5000))
