"""Operations along axes that vmap names: against NumPy, under every transformation and loop."""

import itertools

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax

N, M = 3, 2
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3, 4))


def shared(value):
    """The same for every element of the axis."""
    return np.broadcast_to(value, (N, *np.shape(value)))


def permuted(x, perm):
    out = np.zeros_like(x)
    for source, destination in perm:
        out[destination] = x[source]
    return out


CASES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda x: shared(x.sum(0))),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda x: shared(x.mean(0))),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda x: shared(x.max(0))),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda x: shared(x.min(0))),
    "index": (lambda x: x * lax.axis_index("i"), lambda x: x * np.arange(N)[:, None, None]),
    "gather": (lambda x: lax.all_gather(x, "i", axis=1), lambda x: shared(np.moveaxis(x, 0, 1))),
    "gather_last": (lambda x: lax.all_gather(x, "i", axis=-1),
                    lambda x: shared(np.moveaxis(x, 0, -1))),
    "gather_tiled": (lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
                     lambda x: shared(np.concatenate(list(x), 1))),
    "scatter": (lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0)),
    "scatter_tiled": (lambda x: lax.psum_scatter(x, "i", tiled=True),
                      lambda x: x.sum(0)[:, None]),
    "to_all": (lambda x: lax.all_to_all(x, "i", 0, 1), lambda x: x.transpose(1, 2, 0)),
    "to_all_tiled": (lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
                     lambda x: np.stack([np.concatenate([y[k:k + 1] for y in x], 1)
                                         for k in range(N)])),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 2), (1, 0)]),
                 lambda x: permuted(x, [(0, 2), (1, 0)])),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 1]), lambda x: x[[2, 0, 1]]),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), lambda x: x.swapaxes(0, 1)),
}
each = pytest.mark.parametrize("name", CASES)


def mapped(f, **options):
    return fgrad.vmap(f, axis_name="i", **options)


def inside(f, where):
    """f in the body of a control operation, or a nested function, of this kind."""
    def in_while(x):
        like = fgrad.eval_shape(f, x)
        start = 0, fnp.zeros(like.shape, like.dtype)
        return lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(x)), start)[1]
    return {
        "jit": fgrad.jit(f),
        "checkpoint": fgrad.checkpoint(f),
        "scan": lambda x: lax.scan(lambda c, y: (c, f(y)), 0.0, x[None])[1][0],
        "map": lambda x: lax.map(f, x[None])[0],
        "cond": lambda x: lax.cond(fnp.sum(x * 0.0) == 0.0, f, lambda y: 2.0 * f(y), x),
        "while": in_while,
    }[where]


INSIDE = ("jit", "checkpoint", "scan", "map", "cond", "while")


@each
def test_each_collective_agrees_with_numpy_with_and_without_jit(name):
    f, oracle = CASES[name]
    for g in (mapped(f), fgrad.jit(mapped(f)), mapped(fgrad.jit(f))):
        np.testing.assert_allclose(g(X), oracle(X), rtol=1e-12)
    at_the_end = mapped(f, in_axes=2, out_axes=1)(np.moveaxis(X, 0, 2))
    np.testing.assert_allclose(at_the_end, np.moveaxis(oracle(X), 0, 1), rtol=1e-12)


@each
@pytest.mark.parametrize("where", INSIDE)
def test_the_name_is_known_in_every_body(name, where):
    f, oracle = CASES[name]
    np.testing.assert_allclose(mapped(inside(f, where))(X), oracle(X), rtol=1e-12)
    np.testing.assert_allclose(fgrad.jit(mapped(inside(f, where)))(X), oracle(X), rtol=1e-12)


@each
def test_a_further_axis_without_a_name_goes_through(name):
    f, oracle = CASES[name]
    several = np.stack([X, 2 * X, X - 1], 2)                 # inner axis of its own, at 1 of each
    inner = mapped(fgrad.vmap(f, in_axes=1, out_axes=0))(several)
    outer = fgrad.vmap(mapped(f), in_axes=2)(several)
    for k in range(3):
        np.testing.assert_allclose(inner[:, k], oracle(several[:, :, k]), rtol=1e-12)
        np.testing.assert_allclose(outer[k], oracle(several[:, :, k]), rtol=1e-12)


@each
def test_derivatives_of_the_mapped_function_agree_with_finite_differences(name):
    f, _ = CASES[name]
    fgrad.check_grads(lambda x: fnp.sum(fnp.sin(mapped(f)(x))), (X,), order=1)
    fgrad.check_grads(lambda x: fnp.sum(fnp.sin(mapped(inside(f, "scan"))(x))), (X,), order=1)


@each
def test_the_derivative_within_an_element_is_that_of_the_sum_over_all(name):
    """As jax has it: the losses of all elements count where an element's value goes."""
    f, _ = CASES[name]

    def loss(x):
        return fnp.sum(fnp.sin(f(x)))
    want = fgrad.grad(lambda x: fnp.sum(mapped(loss)(x)))(X)
    for g in (fgrad.grad(loss), fgrad.jit(fgrad.grad(loss)), fgrad.grad(fgrad.jit(loss)),
              fgrad.grad(fgrad.checkpoint(loss))):
        np.testing.assert_allclose(mapped(g)(X), want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("order", list(itertools.permutations("ij")))
def test_a_tuple_of_names_is_one_axis_whose_last_name_varies_fastest(order):
    x = RNG.standard_normal((N, M, 6))

    def both(f):
        return fgrad.vmap(fgrad.vmap(f, axis_name="j"), axis_name="i")(x)
    flat = (x if order == ("i", "j") else x.swapaxes(0, 1)).reshape(6, 6)
    place = np.arange(6).reshape((N, M) if order == ("i", "j") else (M, N))
    place = place if order == ("i", "j") else place.T
    np.testing.assert_array_equal(both(lambda x: lax.axis_index(order)), place)
    np.testing.assert_array_equal(both(lambda x: lax.all_gather(x, order))[1, 1], flat)
    np.testing.assert_allclose(both(lambda x: lax.psum(x, order))[0, 1], flat.sum(0))
    np.testing.assert_allclose(both(lambda x: lax.pmax(x, order))[0, 1], flat.max(0))
    np.testing.assert_allclose(both(lambda x: lax.psum_scatter(x, order)), flat.sum(0)[place])
    assert both(lambda x: x[0] * 0 + lax.axis_size(order))[0, 0] == 6


def test_the_innermost_axis_of_a_name_is_meant():
    x = np.arange(6.0).reshape(3, 2)
    got = mapped(mapped(lambda v: lax.psum(v, "i")))(x)
    np.testing.assert_array_equal(got, np.repeat(x.sum(1), 2).reshape(3, 2))


def test_what_is_constant_over_the_axis_counts_for_every_element():
    def f(x):
        one = lax.psum(1, "i")
        assert one == N and isinstance(one, int)
        return lax.psum(fnp.array(2.0), "i"), lax.psum(x[0, 0] > 0, "i"), lax.pmean(3, "i")
    total, count, mean = mapped(f)(X)
    np.testing.assert_array_equal(total, [6.0] * N)
    np.testing.assert_array_equal(count, [(X[:, 0, 0] > 0).sum()] * N)
    np.testing.assert_array_equal(mean, [3.0] * N)


def test_pytrees_go_through():
    out = mapped(lambda x: lax.pmean({"a": x, "b": (2 * x,)}, "i"))(X)
    np.testing.assert_allclose(out["b"][0][0], 2 * X.mean(0))


def test_one_jitted_function_serves_axes_of_several_sizes():
    f = fgrad.jit(lambda x: x + lax.psum(fnp.array(1.0), "i"))
    for n in (1, 2, 5):
        np.testing.assert_array_equal(mapped(f)(np.zeros(n)), [float(n)] * n)
    g = mapped(lambda x: lax.scan(lambda c, _: (c + lax.axis_size("i"), None), x, length=1)[0])
    np.testing.assert_array_equal(g(np.zeros(2)), [2.0, 2.0])
    np.testing.assert_array_equal(g(np.zeros(3)), [3.0, 3.0, 3.0])


def test_a_custom_derivative_may_speak_of_the_axis():
    @fgrad.custom_vjp
    def f(x):
        return x
    f.defvjp(lambda x: (x, None), lambda _, ct: (lax.pmean(ct, "i"),))
    x, weights = np.arange(3.0), np.array([1.0, 2.0, 6.0])
    inner = mapped(fgrad.grad(lambda x, w: w * f(x)))(x, weights)
    outer = fgrad.grad(lambda x: fnp.sum(weights * mapped(f)(x)))(x)
    np.testing.assert_array_equal(inner, [3.0] * 3)
    np.testing.assert_array_equal(outer, [3.0] * 3)


def test_gradients_of_shards_averaged_are_the_gradient_of_the_batch():
    w, x, y = RNG.standard_normal(4), RNG.standard_normal((8, 4)), RNG.standard_normal(8)

    def loss(w, x, y):
        return fnp.mean((x @ w - y) ** 2)

    def shard(x, y):
        return lax.pmean(fgrad.grad(loss)(w, x, y), "shard")
    each_ = fgrad.vmap(shard, axis_name="shard", out_axes=None)(x.reshape(4, 2, 4),
                                                               y.reshape(4, 2))
    np.testing.assert_allclose(each_, fgrad.grad(loss)(w, x, y), rtol=1e-12)


def test_a_lane_of_a_while_loop_ends_when_all_agree():
    def f(x):
        return lax.while_loop(lambda c: lax.pmax(c, "i") < 10.0, lambda c: c + 1.0, x)
    np.testing.assert_array_equal(mapped(f)(np.array([0.0, 4.0])), [6.0, 10.0])


def test_a_name_that_no_vmap_has_bound_is_an_error_that_lists_those_that_are():
    for f in (lambda x: lax.psum(x, "k"), lambda x: x * lax.axis_index("k"),
              fgrad.jit(lambda x: lax.all_gather(x, "k"))):
        with pytest.raises(fgrad.errors.AxisNameError, match="'k'") as caught:
            mapped(f)(X)
        assert "'i' of size 3" in str(caught.value) and isinstance(caught.value, NameError)
    with pytest.raises(NameError, match="none"):
        lax.psum(1.0, "i")


def test_parts_and_permutations_that_do_not_fit_are_refused():
    for f in (lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
              lambda x: lax.all_to_all(x, "i", 1, 0),
              lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]),
              lambda x: lax.ppermute(x, "i", [(0, 3)]),
              lambda x: lax.pshuffle(x, "i", [0, 0, 1])):
        with pytest.raises(fgrad.errors.FgradError):
            mapped(f)(X)


def test_the_sum_of_a_constant_wraps_around_like_the_sum_of_its_copies():
    got = fgrad.vmap(lambda x: lax.psum(np.int8(1), "i"), axis_name="i")(fnp.zeros(300))
    assert got.dtype == np.int8 and got[0].item() == np.ones(300, np.int8).sum(dtype=np.int8)


def test_the_mean_of_complex_numbers_is_complex():
    z = np.array([1 + 2j, 3j], np.complex64)
    got = fgrad.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(z)
    assert got.dtype == np.complex64 and got.tolist() == [0.5 + 2.5j] * 2
