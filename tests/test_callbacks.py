"""Python functions called from inside: their values, their order, their errors, on every path."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.backends.base import find
from fgrad.callbacks import effect_callback, io_callback, pure_callback
from fgrad.types import F32, I32, ArrayType

X = np.array([1.0, 2.0, 3.0], "float32")
WAYS = {"eager": lambda f: f, "jit": fgrad.jit,
        "reference": lambda f: fgrad.jit(f, device="reference"),
        "jit in jit": lambda f: fgrad.jit(lambda x: fgrad.jit(f)(x))}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def cosh(x):
    return pure_callback(np.cosh, x, x)


@ways
def test_pure_callback_gives_what_the_function_gives(way):
    np.testing.assert_allclose(way(lambda x: cosh(x) + 1)(X), np.cosh(X) + 1, rtol=1e-6)


@ways
def test_pytrees_of_arguments_and_results(way):
    def split(d, scale):
        assert d["name"] == "w" and isinstance(d["x"], np.ndarray)
        return {"half": d["x"] / 2, "whole": (d["x"] * scale).astype("int32")}

    def f(x):
        types = {"half": x, "whole": ArrayType(I32, x.shape)}
        return pure_callback(split, types, {"x": x, "name": "w"}, scale=2)
    out = way(f)(X)
    assert np.allclose(out["half"], X / 2) and out["whole"].tolist() == [2, 4, 6]


@pytest.mark.parametrize("size", [0, 1, 3])
@ways
def test_vmap_calls_once_per_element_or_once_for_all(way, size):
    seen = []

    def f(x, shift):
        seen.append(np.shape(x))
        return np.asarray(x + shift, "float32")
    x = fnp.arange(size, dtype="float32")
    for vectorized, shapes in ((False, [()] * size), (True, [(size,)])):
        seen.clear()
        out = way(fgrad.vmap(lambda x: pure_callback(f, ArrayType(F32, ()), x, fnp.array(1.0),
                                                     vectorized=vectorized)))(x)
        assert out.tolist() == [k + 1 for k in range(size)] and seen == shapes


@pytest.mark.parametrize("method, calls", [("sequential", 3), ("broadcast_all", 1),
                                           ("expand_dims", 1), (None, 3)])
def test_vmap_method_says_the_same_in_the_words_of_jax(method, calls):
    seen = []

    def f(x, y):
        seen.append(x)
        return x + y
    out = fgrad.vmap(lambda x: pure_callback(f, ArrayType(F32, ()), x, fnp.array(1.0),
                                             vmap_method=method))(X)
    assert out.tolist() == [2, 3, 4] and len(seen) == calls
    with pytest.raises(fgrad.ArgumentError, match="this vmap_method") as found:
        pure_callback(f, X, X, vmap_method="legacy_vectorized")
    assert "sequential, sequential_unrolled, broadcast_all, expand_dims" in str(found.value)


def test_vmap_of_vmap_calls_once_per_element():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    out = fgrad.vmap(fgrad.vmap(lambda a: pure_callback(np.sqrt, ArrayType(F32, ()), a), 0), 1)(x)
    np.testing.assert_allclose(out, np.sqrt(x).T)


@pytest.mark.parametrize("change", [fgrad.grad, lambda f: lambda x: fgrad.jvp(f, (x,), (x,)),
                                    lambda f: fgrad.jit(fgrad.grad(f)),
                                    lambda f: fgrad.grad(fgrad.jit(f))])
def test_a_derivative_of_a_callback_is_refused_with_the_fix(change):
    with pytest.raises(fgrad.GradientError, match="custom_jvp"):
        change(lambda x: cosh(x).sum())(X)


def test_custom_jvp_gives_a_callback_its_derivative():
    f = fgrad.custom_jvp(cosh)

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), pure_callback(np.sinh, X, *primals) * tangents[0]
    for g in (fgrad.grad(lambda x: f(x).sum()), fgrad.jit(fgrad.grad(lambda x: f(x).sum()))):
        np.testing.assert_allclose(g(X), np.sinh(X), rtol=1e-6)


def test_integer_results_and_stopped_arguments_need_no_derivative():
    def f(x):
        rank = pure_callback(lambda a: np.argsort(a).astype("int32"), ArrayType(I32, (3,)), x)
        return (x * rank).sum() + cosh(fgrad.stop_gradient(x)).sum()
    for g in (fgrad.grad(f), fgrad.jit(fgrad.grad(f))):
        assert g(X).tolist() == [0, 1, 2]


@ways
def test_effects_happen_once_each_and_in_order(way):
    seen = []

    def f(x):
        effect_callback(lambda a: seen.append(("first", a.sum())), x)
        effect_callback(lambda a: seen.append(("first", a.sum())), x)
        n = io_callback(lambda: np.int32(len(seen)), ArrayType(I32, ()))
        effect_callback(lambda n, a: seen.append(("last", int(n), float(a))), n, x.sum() * 2)
        return x * 2
    for _ in range(2):
        seen.clear()
        way(f)(X)
        assert seen == [("first", 6), ("first", 6), ("last", 2, 12)]


@ways
@pytest.mark.parametrize("looped", [False, True])
def test_effects_keep_their_order_around_an_array_that_is_overwritten(way, looped):
    seen = []

    def say(x):
        effect_callback(lambda v: seen.append(float(v[1])), x)

    def f(x, z, k):
        t = fnp.cumsum(x)
        y = t.at[k].set(5.0)                     # in place, behind what still reads t
        say(y)
        if looped:
            fgrad.lax.fori_loop(0, 1, lambda i, c: say(z) or c, 0)
        else:
            say(z)
        return y, fnp.cumsum(t)
    way(lambda x: f(x, 7 * x, x[0].astype(int)))(X)
    assert seen == [5.0, 14.0]


@pytest.mark.parametrize("change", [fgrad.grad, lambda f: fgrad.jit(fgrad.grad(f)),
                                    lambda f: fgrad.grad(fgrad.jit(f)), fgrad.hessian,
                                    lambda f: lambda x: fgrad.jvp(f, (x,), (x,))])
def test_derivatives_pass_effects_by(change):
    seen = []

    def f(x):
        effect_callback(lambda a: seen.append(a.tolist()), x * 2)
        return fnp.sum(x ** 3)
    change(f)(X)
    assert seen[0] == [2, 4, 6]


@ways
def test_what_depends_on_an_effect_is_another_value_in_every_step_of_a_scan(way):
    count = iter(range(1, 100))

    def f(w):
        def step(c, _):
            drawn = io_callback(lambda v: v * 0 + next(count), stopped, stopped)
            return c + fnp.sqrt(w) * fnp.square(fnp.exp(drawn)), None
        stopped = fgrad.stop_gradient(w)
        return fgrad.lax.scan(step, fnp.float32(0), None, length=3)[0]
    value, slope = way(fgrad.value_and_grad(f))(fnp.float32(1))
    assert next(count) == 4
    np.testing.assert_allclose([value, 2 * slope], np.exp([2.0, 4.0, 6.0]).sum(), rtol=1e-5)


def test_effects_under_vmap_happen_once_per_element():
    seen = []

    def f(x, y):
        effect_callback(lambda a, b: seen.append((float(a), float(b))), x, y)
        effect_callback(lambda b: seen.append(float(b)), y)
        return x
    fgrad.jit(fgrad.vmap(f, (0, None)))(X, fnp.array(5.0))
    assert seen == [(1, 5), (2, 5), (3, 5), 5]


@ways
def test_what_a_callback_raises_reaches_the_user_and_stops_the_run(way):
    seen, broken = [], [True]

    def check(x):
        if broken:
            raise KeyError("mine") from ZeroDivisionError()

    def f(x):
        effect_callback(check, x)
        effect_callback(lambda a: seen.append(1), x)
        return x + 1
    g = way(f)
    with pytest.raises(KeyError, match="mine") as caught:
        g(X)
    assert isinstance(caught.value.__cause__, ZeroDivisionError) and not seen
    broken.clear()
    assert g(X).tolist() == [2, 3, 4] and seen == [1]


@ways
def test_an_interrupt_in_a_callback_is_no_loss(way):
    def stop():
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        way(lambda x: (effect_callback(stop), x + 1)[1])(X)
    assert fgrad.jit(lambda x: x + 1)(X).tolist() == [2, 3, 4]


@ways
def test_a_callback_may_run_compiled_functions(way):
    inner = fgrad.jit(lambda x: fnp.sort(x)[::-1])
    assert way(lambda x: pure_callback(inner, X, x) + 1)(X).tolist() == [4, 3, 2]


@ways
def test_a_callback_may_keep_and_change_its_arguments(way):
    kept = []

    def change(a):
        kept.append(a)
        a[:] = 0
        return a
    f = way(lambda x: pure_callback(change, X, x) + x)
    assert f(X).tolist() == f(X).tolist() == [1, 2, 3] and kept[0].tolist() == [0, 0, 0]


def test_results_other_than_promised():
    for result, kind in ((np.zeros(2, "float32"), fgrad.ShapeError), ((X, X), fgrad.TreeError),
                         (X.astype(complex), fgrad.DtypeError)):
        with pytest.raises(kind, match="callback `f`"):
            def f(x):
                return result
            pure_callback(f, X, X)
    for run in (lambda f: f, fgrad.jit):
        with pytest.raises(fgrad.ShapeError, match=r"test_callbacks.py:\d+"):
            run(lambda x: pure_callback(lambda x: x[:1], X, x))(X)
    assert pure_callback(lambda x: x.astype("float64"), X, X).dtype == F32


def test_result_types_must_be_types():
    with pytest.raises(fgrad.ArgumentError, match="types of the results"):
        pure_callback(np.sin, (3,), X)


def test_the_program_shows_callbacks_by_name():
    def report(x):
        pass
    text = fgrad.show(lambda x: (effect_callback(report, x), cosh(x))[1], X)
    assert "\n  effect_callback[function=<report> types=()] x" in text
    assert "= pure_callback[function=<cosh> types=(f32[3],) vectorized=False] x" in text


def test_callbacks_on_an_opencl_device():
    try:
        find("opencl").devices()
    except fgrad.DeviceError as error:
        pytest.skip(str(error))
    seen = []

    def f(x):
        effect_callback(lambda a: seen.append(a.tolist()), x * 2)
        return cosh(x) + 1
    np.testing.assert_allclose(fgrad.jit(f, device="opencl")(X), np.cosh(X) + 1, rtol=1e-6)
    assert seen == [[2, 4, 6]]
