"""Random programs under random nestings of jit, grad, jvp and vmap."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import fgrad.numpy as fnp
from fgrad.core import Array
from fgrad.jitted import jit
from fgrad.transforms import grad, jvp, linearize, vjp, vmap

from tests.strategies import SOME, WIDE, examples, programs

F64 = ("float64",)
SMOOTH = programs(dtypes=F64, sizes=SOME, steps=8)


def values(p):
    return [Array(a) for a in p.arrays]


def close(got, want, tol=1e-9):
    """Equal shapes and dtypes; values within `tol` of the largest, absolute and relative."""
    for x, y in zip(got, want, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        top = np.abs(y.astype(float)).max(initial=1)
        np.testing.assert_allclose(x.astype(float), y.astype(float), rtol=tol, atol=tol * top)


def direction(arrays, seed):
    """Random tangents for float arrays."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, np.shape(a)).astype(np.asarray(a).dtype) for a in arrays]


def floats(p):
    """The program, giving only its float results; assumes that there are some."""
    def function(*xs):
        return tuple(x for x in p(*xs) if x.dtype.kind == "f")
    assume(function(*values(p)))
    return function


# ---------------------------------------------------------------------------- vmap

@st.composite
def batched(draw, **options):
    """(program, per argument the mapped axis or None, number of lanes, the stacked arrays)."""
    p = draw(programs(**options))
    n = draw(st.sampled_from((1, 2, 3)))
    axes = [draw(st.sampled_from((None, *range(a.ndim + 1)))) for a in p.arrays]
    if all(axis is None for axis in axes):
        axes[0] = 0
    seed = draw(st.integers(0, 9))
    stacked = [a if d is None else np.stack([other(a, seed + k) for k in range(n)], d)
               for a, d in zip(p.arrays, axes)]
    return p, axes, n, stacked


def other(a, seed):
    """The elements of an array in another order."""
    return np.random.default_rng(seed).permutation(a.reshape(-1)).reshape(a.shape)


def loop(p, axes, n, stacked):
    """What vmap gives, by a Python loop."""
    lanes = [
        p(*[Array(a if d is None else np.array(np.take(a, k, d))) for a, d in zip(stacked, axes)])
        for k in range(n)
    ]
    return [np.stack([np.asarray(lane[k]) for lane in lanes]) for k in range(len(lanes[0]))]


@examples(80)
@given(batched(dtypes=("float64", "float64", "int32", "bool"), steps=8))
def test_vmap_gives_what_a_loop_gives(drawn):
    p, axes, _, stacked = drawn
    want = loop(*drawn)
    assume(all(np.isfinite(x).all() and np.abs(x.astype(float)).max(initial=0) < 1e6 for x in want))
    close(vmap(p.function, tuple(axes))(*map(Array, stacked)), want)


@examples(30)
@given(batched(dtypes=("float64", "int32", "bool"), steps=6))
def test_jit_of_vmap_and_vmap_of_jit_give_what_vmap_gives(drawn):
    p, axes, _, stacked = drawn
    want = vmap(p.function, tuple(axes))(*map(Array, stacked))
    assume(
        all(
            np.isfinite(x).all() and np.abs(np.asarray(x).astype(float)).max(initial=0) < 1e6
            for x in want
        )
    )
    close(jit(vmap(p.function, tuple(axes)))(*map(Array, stacked)), want)
    close(vmap(jit(p.function), tuple(axes))(*map(Array, stacked)), want)


# ---------------------------------------------------------------------------- derivatives

@examples(120)
@given(SMOOTH, st.integers(0, 9))
def test_both_derivatives_agree_with_differences_and_are_adjoint(p, seed):
    f, xs, h = floats(p), values(p), 1e-6
    ts = direction(xs, seed)
    out, tangents = jvp(f, tuple(xs), tuple(ts))
    up, down = [
        f(*[Array(np.asarray(a + s * h * t)) for a, t in zip(p.arrays, ts)]) for s in (1, -1)
    ]
    differences = [(np.asarray(a) - np.asarray(b)) / (2 * h) for a, b in zip(up, down)]
    close(tangents, differences, 1e-5)
    cts = direction(out, seed + 1)
    _, pull = vjp(f, *xs)
    back = pull(tuple(map(Array, cts)))
    left = sum(np.sum(np.asarray(a, float) * b) for a, b in zip(cts, tangents))
    right = sum(np.sum(np.asarray(a, float) * b) for a, b in zip(ts, back))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    linear_out, push = linearize(f, *xs)
    close(linear_out, out)
    close(push(*ts), tangents)


# ---------------------------------------------------------------------------- nestings

def weighted(out):
    """One number of all results."""
    return sum(
        fnp.sum(x * fnp.cos(fnp.arange(x.size, dtype=x.dtype)).reshape(x.shape)) for x in out
    )


def into_grad(f):
    """xs ↦ the gradient of the weighted sum of f's results."""
    return lambda *xs: grad(lambda ys: weighted(f(*ys)))(xs)


def into_jvp(f):
    """xs ↦ the derivative of f at xs along xs."""
    return lambda *xs: jvp(f, xs, xs)[1]


def into_vmap(f):
    """xs ↦ the sum of f over xs and a little less."""
    return lambda *xs: tuple(
        fnp.sum(y, axis=0) for y in vmap(f)(*[fnp.stack([x, x * 0.875]) for x in xs])
    )


WRAP = {"grad": into_grad, "jvp": into_jvp, "vmap": into_vmap, "jit": jit}


def nested(f, words):
    for word in words:
        f = WRAP[word](f)
    return f


@examples(60)
@given(
    programs(dtypes=F64, sizes=SOME, steps=6, host=False),
    st.lists(st.sampled_from(sorted(WRAP)), min_size=1, max_size=5),
)
def test_jit_anywhere_in_a_nesting_changes_nothing(p, words):
    assume(sum(word != "jit" for word in words) <= 3)
    f, xs = floats(p), values(p)
    want = nested(f, [w for w in words if w != "jit"])(*xs)
    assume(all(np.abs(np.asarray(x).astype(float)).max(initial=0) < 1e6 for x in want))
    close(nested(f, words)(*xs), want, 1e-8)
    close(jit(nested(f, words))(*xs), want, 1e-8)


@examples(30)
@given(st.sampled_from((4, 17)).flatmap(lambda n: programs(dtypes=F64, sizes=(n,), steps=12)))
def test_compiled_gradients_where_all_axes_have_one_size(p):
    """Loops of one extent must not be taken for each other."""
    derived, xs = into_grad(floats(p)), values(p)
    close(jit(derived)(*xs), derived(*xs), 1e-8)


@examples(30)
@given(
    programs(dtypes=F64, sizes=WIDE, steps=8, most=20_000),
    st.sampled_from(("grad", "jvp", "vmap", "grad jvp", "jvp grad", "vmap grad")),
)
def test_compiled_derivatives_of_wider_arrays(p, words):
    derived, xs = nested(floats(p), words.split()), values(p)
    want = derived(*xs)
    assume(all(np.abs(np.asarray(x).astype(float)).max(initial=0) < 1e6 for x in want))
    close(jit(derived)(*xs), want, 1e-8)


@examples(40)
@given(
    programs(dtypes=F64, sizes=SOME, steps=5, host=False),
    st.lists(st.sampled_from(("grad", "jvp", "vmap")), max_size=2),
    st.integers(0, 9),
)
def test_derivatives_of_nestings_agree_with_differences(p, words, seed):
    f, xs, h = nested(floats(p), words), values(p), 1e-5
    ts = direction(xs, seed)
    _, tangents = jvp(f, tuple(xs), tuple(ts))
    up, down = [
        f(*[Array(np.asarray(a + s * h * t)) for a, t in zip(p.arrays, ts)]) for s in (1, -1)
    ]
    differences = [(np.asarray(a) - np.asarray(b)) / (2 * h) for a, b in zip(up, down)]
    assume(all(np.abs(d).max(initial=0) < 1e4 for d in differences))
    close(tangents, differences, 1e-4)
