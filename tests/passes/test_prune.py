"""What loops and branches carry or store for nobody is dropped; what has an effect stays."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import debug, grad, jit
from fgrad.lax import cond, fori_loop, scan, while_loop
from tests.tolerance import assert_close

X = np.linspace(-1, 1, 5, dtype=np.float32)


def simplified(f, *args):
    return jit(f).lower(*args).text("simplified")


def the_loop(text, name):
    """The line of the first loop of that name, and its results."""
    (line, *_) = [line for line in text.splitlines() if f"= {name}[" in line]
    return line, line.split("=")[0].count(":")


def test_stacked_results_that_nobody_reads_are_not_stored():
    def f(x):
        return scan(lambda c, t: ((c * 0.5 + t,) * 2), 0.0, x)[0]
    _, results = the_loop(simplified(f, X), "scan")
    assert results == 1
    assert_close(jit(f)(X), f(X))


def test_carries_that_only_feed_themselves_and_each_other_go():
    def step(c, t):
        a, b, d, e = c
        return (a + t, b * d, d + fnp.sin(b), e + a), (fnp.cos(t), e)

    def f(x):
        return scan(step, (0.0, 1.0, 2.0, 3.0), x)[0][0]

    def both(x):
        return scan(step, (0.0, 1.0, 2.0, 3.0), x)[1][1]
    one, two = simplified(f, X), simplified(both, X)
    assert "n_carry=1" in one and "sin" not in one and "cos" not in one
    assert "n_carry=2" in two and "sin" not in two and "cos" not in two
    for g in (f, both):
        assert_close(jit(g)(X), g(X))


def test_arrays_that_only_dropped_parts_read_are_no_arguments():
    def f(w, x, y):
        return scan(lambda c, t: (c + t[0], fnp.dot(w, w) * t[1]), 0.0, (x, y))[0]
    line, _ = the_loop(simplified(f, X, X, X), "scan")
    assert "n_consts=0" in line and " w" not in line.split("]")[-1] and " y" not in line


def test_carries_of_while_loops_that_neither_test_nor_body_needs_go():
    def f(x):
        return while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * x, c[2] + c[1]),
                          (0, x, x))[0]
    line, results = the_loop(simplified(f, X), "while")
    assert results == 1 and "n_consts=0" in line and jit(f)(X) == 9


def test_loops_within_loops_lose_what_the_outer_one_does_not_read():
    def f(x):
        def body(c, t):
            d, ys = scan(lambda d, u: (d + u * t, fnp.sin(d)), c, x[:4])
            return d, ys
        return scan(body, 0.0, x)[0]
    assert "sin" not in simplified(f, X)
    assert_close(jit(f)(X), f(X), 8)
    assert_close(jit(grad(f))(X), grad(f)(X), 8)


def seen_by(f, *args):
    """The result of a jitted function of a callback, and what was seen on the way."""
    seen = []

    def see(x):
        debug.callback(lambda v: seen.append(float(v)), x)
    return jit(lambda *a: f(see, *a))(*args), seen


def test_effects_stay_and_keep_what_they_read():
    def f(see, x):
        def step(c, t):
            see(c[1])
            return (c[0] + t, c[1] * 2, fnp.sin(c[2])), fnp.cos(t)
        return scan(step, (0.0, 1.0, 2.0), x)[0][0]
    out, seen = seen_by(f, X)
    assert_close(out, np.float32(X.sum()), 5)
    assert seen == [1, 2, 4, 8, 16]
    text = simplified(lambda x: f(lambda v: debug.print("{}", v), x), X)
    line, results = the_loop(text, "scan")
    assert results == 2 and "n_carry=2" in line and "sin" not in text and "cos" not in text


def test_loops_of_effects_alone_run():
    def scanned(see, x):
        scan(lambda c, t: (c + (see(t), t)[1], c), 0.0, x)
        return x[0]

    def repeated(see, x):
        fori_loop(0, 3, lambda i, c: (see(i), c * 2)[1], x)
        return x[0]

    def until(see, x):
        while_loop(lambda c: c[0] < 3, lambda c: (see(c[0]), (c[0] + 1, c[1] * 2))[1], (0, x))
        return x[0]

    def chosen(see, x):
        cond(x[0] > 0, lambda x: fnp.sin(x), lambda x: (see(x[0]), x * 2)[1], x)
        return x[0]
    for f, want in ((scanned, X), (repeated, [0, 1, 2]), (until, [0, 1, 2]), (chosen, X[:1])):
        out, seen = seen_by(f, X)
        assert out == X[0]
        np.testing.assert_array_equal(np.float32(seen), want)


@pytest.mark.parametrize("keep", range(8))
def test_any_results_of_a_loop_may_be_dropped(keep):
    def f(x):
        (a, b), ys = scan(lambda c, t: ((c[0] + t, c[1] * c[0]), c[1] - t), (0.5, 1.5), x)
        return [v for k, v in enumerate((a, b, ys)) if keep >> k & 1]

    def g(x):
        a, b, c = fori_loop(0, 4, lambda i, c: (c[0] + x, c[1] * c[0], c[2] - c[1]), (x, x, x))
        return [v for k, v in enumerate((a, b, c)) if keep >> k & 1]
    for h in (f, g):
        for got, want in zip(jit(h)(X), h(X), strict=True):
            assert_close(got, want, 8)


def test_values_alone_are_computed_without_vectors():
    x = np.random.default_rng(0).standard_normal((3, 4, 6)).astype("float32")
    s = np.linalg.svd(x, compute_uv=False)
    for f, name, want in ((fnp.linalg.svdvals, "svdvals", s),
                          (lambda x: fnp.linalg.svd(x)[1], "svdvals", s),
                          (lambda x: fnp.linalg.norm(x, "nuc", (1, 2)), "svdvals", s.sum(-1)),
                          (lambda x: fnp.linalg.eigh(x @ x.mT)[0], "eigvalsh", s[:, ::-1] ** 2)):
        text = simplified(f, x)
        assert f"= {name} " in text and "svd[" not in text and "eigh " not in text
        assert_close(jit(f)(x), want.astype("float32"), slack=50)
        assert_close(f(x), want.astype("float32"), slack=50)
    assert "= svdvals " not in simplified(lambda x: fnp.linalg.svd(x)[0], x)
    assert "= svdvals " not in simplified(grad(lambda x: fnp.linalg.svdvals(x).sum()), x)
