"""The largest elements: what a stable sort gives, whatever the dtype, on one thread or several."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32",
          "float64"]


def drawn(dtype, shape, ties):
    """Random elements, many of them equal; of floats NaN, infinities and zeros of each sign too."""
    rng = np.random.default_rng(len(shape) + ties)
    x = rng.integers(-5, 6, shape) if ties else rng.normal(size=shape) * 100
    with np.errstate(invalid="ignore"):
        x = np.abs(x).astype(dtype) if dtype[0] in "ub" else x.astype(dtype)
    if x.dtype.kind == "f" and x.size > 9:
        x.reshape(-1)[[1, 4, 5, 8]] = [np.nan, -np.inf, np.inf, -0.0]
        x.reshape(-1)[7] = -x.reshape(-1)[1]                  # a NaN with a sign
    return x


def expected(x, k):
    """The places by a stable sort of the elements backwards."""
    order = np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]
    return (x.shape[-1] - 1 - order)[..., :k]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_what_a_stable_sort_gives(dtype, ties):
    for shape, k in [((40,), 7), ((3, 33), 33), ((2, 3, 17), 1), ((4, 1), 1), ((3, 5), 0)]:
        x = drawn(dtype, shape, ties)
        want = expected(x, k)
        for found in (lax.top_k(x, k), fgrad.jit(lax.top_k, static_argnums=1)(x, k)):
            values, places = map(np.asarray, found)
            np.testing.assert_array_equal(places, want)
            np.testing.assert_array_equal(values, np.take_along_axis(x, want, -1))
            assert values.dtype == x.dtype and places.dtype == np.int32


def test_rows_are_cut_among_threads(monkeypatch):
    monkeypatch.setattr(fgrad.config, "threads", lambda: 3)
    x = drawn("float32", (5, 200_000), True)
    np.testing.assert_array_equal(np.asarray(lax.top_k(x, 4)[1]), expected(x, 4))
    np.testing.assert_array_equal(np.asarray(fnp.sort(x, 1)), np.sort(x, 1, kind="stable"))
    np.testing.assert_array_equal(np.asarray(fnp.sort(x.T, 0)), np.sort(x.T, 0, kind="stable"))
    np.testing.assert_array_equal(np.asarray(fnp.argsort(x, 1)), np.argsort(x, 1, kind="stable"))


def test_tangents_move_with_their_elements_and_rows_may_be_mapped():
    x = fnp.array(np.random.default_rng(0).normal(size=(4, 9)))
    weights = fnp.arange(1.0, 4.0)
    slope = fgrad.grad(lambda x: (lax.top_k(x, 3)[0] * weights).sum())(x)
    want = np.zeros((4, 9))
    np.put_along_axis(want, expected(np.asarray(x), 3), np.asarray(weights), 1)
    np.testing.assert_array_equal(np.asarray(slope), want)
    for ours, theirs in zip(fgrad.vmap(lambda row: lax.top_k(row, 3), in_axes=1)(x.T),
                            lax.top_k(x, 3)):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


SPECIAL = [np.nan, np.inf, -np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0, -1.0, np.nan]


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 9), (17, 5), (20, 33), (2, 3, 10), (40, 70)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_compiled_rows_are_as_those_of_numpy(shape, dtype):
    """By loops where these are faster; of what is all -inf, or NaN, the first come first."""
    rng = np.random.default_rng(sum(shape))
    with np.errstate(invalid="ignore"):
        few = rng.integers(-2, 3, shape).astype(dtype)
        special = np.asarray(rng.choice(SPECIAL, shape))
        special = (np.where(np.isfinite(special), special, np.iinfo("int32").min)
                   if dtype == "int32" else special).astype(dtype)
    for x in (few, special, rng.standard_normal(shape).astype(dtype)):
        for k in {1, min(4, shape[-1]), shape[-1]}:
            values, places = fgrad.jit(lambda x, k=k: lax.top_k(x, k))(x)
            wanted = lax.top_k(x, k)
            np.testing.assert_array_equal(np.asarray(places), np.asarray(wanted[1]))
            np.testing.assert_array_equal(np.asarray(values), np.asarray(wanted[0]))
            np.testing.assert_array_equal(np.signbit(values), np.signbit(wanted[0]))


def test_the_largest_in_a_loop():
    def beams(scores):
        def step(c, _):
            values, places = lax.top_k(c, 4)
            return c.at[places].add(-1.0), (values, places)
        return lax.scan(step, scores, None, length=20)
    x = np.random.default_rng(0).standard_normal(80).astype("float32")
    for got, want in zip(fgrad.tree.leaves(fgrad.jit(beams)(x)), fgrad.tree.leaves(beams(x))):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
