"""What is computed from the sums of short rows has vectors of its own, for many rows at once."""

import re

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, index, jit, lax, make_ir, passes, random, scalar, vmap
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import Buffer
from fgrad.passes.recompute import tree_size
from fgrad.passes.target import Target
from fgrad.scalar import walk
from fgrad.types import ArrayType
from tests.passes.checking import assert_plan_agrees

VECTORS = Target(vector_bytes=64)
THREADS = Target(vector_bytes=64, threads=3, region_cost=500)


def layer(w, h, u, x):
    return fnp.tanh(w @ h + u @ x)


def gates(w, h, u, x):
    """Three sums of a row, an exponential of one in that of another."""
    a = fnp.concatenate([w @ h, u @ x])
    z, r = 1 / (1 + fnp.exp(-a[:len(h)])), fnp.exp(-fnp.max(w * h, axis=1))
    return z * h + (1 - z) * fnp.tanh(r * (w @ h)), z


def logsumexp(w, h, u, x):
    m = fnp.max(w, axis=1)
    return m + fnp.log(fnp.sum(fnp.exp(w - m[:, None]), axis=1))


def rows_of_rows(w, h, u, x):
    return fnp.sin(fnp.sum(fnp.abs(w[:, None] - w[None, :9]), axis=2)) * h[:, None]


def in_front(w, h, u, x):
    """What is dear of each row is multiplied by a row, and added up."""
    return u.T @ fnp.log1p(fnp.exp(h) * fnp.abs(fnp.sin(h)))


def between(w, h, u, x):
    """The sum of a short row decides what the whole row becomes."""
    return u * (fnp.exp(fnp.sin(fnp.sum(u, axis=1)) - 1) * fnp.log1p(h * h))[:, None]


def places(h):
    """Ints that take many operations, but no elementary function."""
    t = h
    for k in range(12):
        t = fnp.where(t > 0, (t - 0.1 * k) * (h + k), fnp.minimum(t * t, 1.0 - k * h))
    return fnp.clip(t * 3, 0, len(h) - 1).astype("int32")


def looked_up(w, h, u, x):
    return u[:, :3][places(h)], u[:, 3:6][places(h)]


def put(w, h, u, x):
    """Where something is stored, and whether at all, takes many operations: bits are counted."""
    count = fnp.bitwise_count((h * 1e6).astype("int32")).astype("int32")
    return fnp.zeros((9, 9), u.dtype).at[count].add(u, mode="drop")


def behind(w, h, u, x):
    """Many operations on a sum of few, none of them elementary."""
    s = t = fnp.sum(u, axis=1)
    for k in range(12):
        t = fnp.where(t > 0, (t - 0.1 * k) * (s + k), fnp.minimum(t * t, 1.0 - k * s))
    return t


def added(w, h, u, x):
    """The length of a pair of sums, the mean of what it is off, and what that does to both."""
    a, b = u @ x, u @ x[::-1]
    big = fnp.maximum(abs(a), abs(b))
    unit = fnp.where(big > 1e18, 1e-27, fnp.where(big < 1e-15, 1e27, 1.0))
    size = fnp.where((abs(a) == fnp.inf) | (abs(b) == fnp.inf), fnp.inf,
                     fnp.sqrt((a * unit) ** 2 + (b * unit) ** 2) / unit)
    off = size * size - 1
    back = off * size / fnp.where(size == 0, 1, size) / len(h)
    return fnp.mean(off * off), a * back + a * off, b * back - b * off


FUNCTIONS = [layer, gates, logsumexp, rows_of_rows, in_front, between, looked_up, put, behind,
             added]


def given(n, dtype="float32"):
    shapes = (n, n), (n,), (n, 9), (9,)
    return [ArrayType(dtype, s) for s in shapes]


def plan_of(function, types, target=VECTORS):
    return assert_plan_agrees(inline(stage(function, types).program), target)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("n", [9, 16, 63, 64, 65, 100, 131])
@pytest.mark.parametrize("target", [VECTORS, THREADS], ids=["one thread", "threads"])
def test_the_plan_gives_what_numpy_gives(function, n, target):
    if n > 64 and function is rows_of_rows:
        n //= 2
    text = str(plan_of(function, given(n), target))
    few = n < 20 and function in (in_front, looked_up, put, behind, added)     # for a thread
    few |= function is added and "part[i,0]" in text             # 65 rows are five parts of 13
    assert "_row[" in text or few


@pytest.mark.parametrize("function, named", [(in_front, "log1p("), (between, "log1p("),
                                             (looked_up, "* 3.0"), (behind, "- 1.1"),
                                             (added, "1e+18")])
def test_stretches_that_loops_follow_have_vectors(function, named):
    text = str(plan_of(function, given(100)))
    loop = text[:text.index(named)].rindex("serial")
    assert re.match(r"serial \w+ in 0..\d+ \((16|32) lanes", text[loop:])


def test_elementary_functions_have_vectors():
    text = str(plan_of(layer, given(48)))
    loop = text[:text.index("tanh(")].rindex("serial")
    assert re.match(r"serial \w+ in 0..48 \(16 lanes", text[loop:])


@pytest.mark.parametrize("what, function", {
    "sums alone": lambda w, h, u, x: w @ h + u @ x,
    "long rows": lambda w, h, u, x: fnp.tanh(fnp.sum(fnp.abs(h[:, None] + fnp.arange(3000.0)), 1)),
    "what the next row reads": lambda w, h, u, x: lax.fori_loop(
        0, 20, lambda i, c: c.at[i].set(fnp.tanh(w[i] @ c)), h),
}.items())
def test_others_are_kept(what, function):
    assert "_row[" not in str(plan_of(function, given(20)))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("n", [1, 3, 9, 40, 129])
def test_compiled_code_and_gradients(function, n):
    draw = np.random.default_rng(n)
    args = [fnp.asarray(draw.uniform(-0.3, 0.3, t.shape)) for t in given(n, "float64")]

    def loss(*args):
        out = function(*args)
        return sum(fnp.sum(y * y) for y in (out if isinstance(out, tuple) else (out,)))
    np.testing.assert_allclose(jit(loss, device="cpu")(*args), loss(*args), rtol=1e-12)
    for got, want in zip(jit(grad(loss, (0, 1)), device="cpu")(*args), grad(loss, (0, 1))(*args),
                         strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", [
    lambda k: fnp.sum(random.normal(k, (40, 2)), axis=1),
    lambda k: vmap(lambda k: random.uniform(k, (2,)))(random.split(k, 40))])
def test_what_is_used_more_than_once_has_a_name(function):
    """Random bits, written out for two columns, would be 2^60 words without names."""
    plan = passes.plan(inline(make_ir(function)(random.key(0))), VECTORS)
    todo = [s for k in plan.steps for s in k.body]
    while todo:
        s = todo.pop()
        todo += getattr(s, "body", ())
        if hasattr(s, "expr"):
            assert tree_size(walk(s.expr)) < 1000


def test_rows_that_are_left_beside_those_with_vectors_are_one_loop():
    """Normal numbers for points of three: three lanes of four, in 40 loops."""
    def f(key):
        one, other = random.split(key)
        return random.normal(one, (400,)), random.normal(other, (400, 3))
    text = str(passes.plan(inline(make_ir(f)(random.key(0))), VECTORS))
    assert not re.search(r"in 0\.\.3\b", text) and "lanes" in text, text


def test_the_indices_of_an_expression_count():
    """An index that is computed is printed as well: a doubled one sixty times is not."""
    x, k = Buffer("x", ArrayType("float32", (8,))), Buffer("k", ArrayType("int32", ()))
    with index.Space():
        at = scalar.load(k, index.ix({}))
        for _ in range(60):
            at = scalar.apply("add", at, at)
        assert tree_size(walk(scalar.load(x, index.dynamic(at, 8)))) > 2 ** 60
