"""NaN, infinities and -0.0 go where NumPy sends them, compiled and at once."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad.core import Array
from fgrad.jitted import jit
from fgrad.transforms import vmap

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 3e38, 1e-45, -2e-40, 7.0], "float32"
)
UNARY = ("abs", "negative", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "tanh",
         "sinh", "cosh", "arcsin", "arccos", "arctan", "sign", "floor", "ceil", "rint", "trunc",
         "square", "isnan", "isinf", "isfinite", "signbit", "exp2", "log2", "log10", "reciprocal")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "arctan2",
          "fmod", "remainder", "fmax", "fmin", "less", "less_equal", "greater", "equal",
          "not_equal", "copysign", "hypot", "logaddexp", "floor_divide", "heaviside")
REDUCTIONS = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin", "cumsum",
              "cumprod", "nansum", "nanmax", "nanmin")

ZEROS = ("remainder", "floor_divide", "cumsum")    # whose zeros have a sign of their own in NumPy


def same(got, want, name):
    """Equal within rounding; NaN, infinities and the sign of zeros alike."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and (got.dtype.kind == want.dtype.kind), name
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-44, err_msg=name)
    zero = (want == 0) & (name not in ZEROS)
    np.testing.assert_array_equal(
        np.signbit(got[zero]), np.signbit(want[zero]), err_msg=f"the sign of zero: {name}"
    )


def numpy_says(names, *args):
    with np.errstate(all="ignore"):
        return [getattr(np, name)(*args) for name in names]


def both(names, *args):
    """(by fgrad at once, by fgrad compiled): the results of these functions, in one compilation."""
    function = lambda *xs: [getattr(fnp, name)(*xs) for name in names]
    with np.errstate(all="ignore"):
        return function(*map(Array, args)), jit(function)(*args)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_functions_of_one_argument_treat_special_values_as_numpy(dtype):
    with np.errstate(over="ignore"):
        x = SPECIAL.astype(dtype)
    for found in both(UNARY, x):
        for name, got, want in zip(UNARY, found, numpy_says(UNARY, x), strict=True):
            if dtype == "float16" and want.dtype.kind == "f":
                np.testing.assert_allclose(
                    np.asarray(got), want, rtol=4e-3, atol=1e-6, err_msg=name
                )
            else:
                same(got, want, name)


def test_functions_of_two_arguments_treat_special_values_as_numpy():
    x, y = [
        np.ascontiguousarray(a) for a in np.broadcast_arrays(SPECIAL[:, None], SPECIAL[None, :])
    ]
    for found in both(BINARY, x, y):
        for name, got, want in zip(BINARY, found, numpy_says(BINARY, x, y), strict=True):
            same(got, want, name)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
@pytest.mark.parametrize(
    "shape, axis", [((5, 37), 1), ((5, 37), 0), ((300,), 0), ((0, 3), 1), ((2, 3, 9), 1)]
)
def test_reductions_treat_special_values_as_numpy(special, shape, axis):
    x = (
        np.full(shape, -0.0, "float32")
        if special == 0
        else np.linspace(0.5, 1.5, np.prod(shape), dtype="f4").reshape(shape)
    )
    x.reshape(-1)[::7] = special
    x.reshape(-1)[3::29] = np.nan if special == np.inf else special
    names = [n for n in REDUCTIONS if x.shape[axis] or n in ("sum", "prod")]
    function = lambda x: [getattr(fnp, name)(x, axis=axis) for name in names]
    with np.errstate(all="ignore"):
        want = [getattr(np, name)(x, axis=axis) for name in names]
        for found in (function(Array(x)), jit(function)(x)):
            for name, got, y in zip(names, found, want, strict=True):
                same(got, y, name)


def test_where_does_not_let_special_values_through_from_the_other_side():
    x = SPECIAL
    f = lambda x: (
        fnp.where(fnp.isfinite(x), x, 1.0),
        fnp.where(x > 0, fnp.log(x), -1.0),
        fnp.where(x == 0, x, 2.0),
    )
    with np.errstate(all="ignore"):
        want = (
            np.where(np.isfinite(x), x, 1),
            np.where(x > 0, np.log(x), -1),
            np.where(x == 0, x, 2),
        )
        for found in (f(Array(x)), jit(f)(x), vmap(f)(x)):
            for k, (got, y) in enumerate(zip(found, want, strict=True)):
                same(got, y.astype("f4"), f"result {k}")


def test_a_chain_of_operations_keeps_the_sign_of_zero():
    x = np.array([0.0, -0.0, 1.0, -1.0], "float32")
    f = lambda x: (
        x + 0.0,
        x - 0.0,
        0.0 - x,
        -x,
        x * 1.0,
        x * -1.0,
        x / 1.0,
        x * 0.0,
        fnp.maximum(x, -0.0) * 1.0,
        0.0 + x,
        -(-x),
        x - x,
        fnp.where(x > 5, x, x),
        abs(-x),
    )
    with np.errstate(all="ignore"):
        want = (
            x + 0.0,
            x - 0.0,
            0.0 - x,
            -x,
            x * 1,
            x * -1,
            x / 1,
            x * 0,
            np.maximum(x, np.float32(-0.0)) * 1,
            0.0 + x,
            x,
            x - x,
            x,
            abs(x),
        )
    for found in (f(Array(x)), jit(f)(x)):
        for k, (got, y) in enumerate(zip(found, want, strict=True)):
            if k != 8:  # which zero maximum(0.0, -0.0) gives is open, in IEEE 754 too
                same(got, y, f"result {k}")


def test_products_of_matrices_propagate_nan_and_infinities():
    a, b = np.ones((9, 17), "f4"), np.ones((17, 8), "f4")
    a[2, 3], a[4, 5], b[6, 1] = np.nan, np.inf, -np.inf
    f = lambda a, b: (a @ b, b.T @ a.T, fnp.tanh(a @ b) + 1)
    with np.errstate(all="ignore"):
        want = a @ b, b.T @ a.T, np.tanh(a @ b) + 1
        for found in (f(Array(a), Array(b)), jit(f)(a, b)):
            for k, (got, y) in enumerate(zip(found, want, strict=True)):
                same(got, y, f"result {k}")


def test_floats_that_do_not_fit_become_the_nearest_integer_and_nan_becomes_0():
    x = np.array(
        [
            np.nan,
            np.inf,
            -np.inf,
            1e20,
            -1e20,
            300.7,
            -300.7,
            2.0**31,
            2147483520.0,
            -(2.0**31),
            -0.9,
        ],
        "f4",
    )
    f = lambda x: [x.astype(t) for t in ("int8", "uint8", "int32", "uint32", "int64", "uint64")]
    found = f(Array(x)), jit(f)(x)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert found[0][0].tolist() == [0, 127, -128, 127, -128, 127, -128, 127, 127, -128, 0]
    assert found[0][1].tolist() == [0, 255, 0, 255, 0, 255, 0, 255, 255, 0, 0]
    assert found[0][2].tolist() == [
        0,
        2**31 - 1,
        -(2**31),
        2**31 - 1,
        -(2**31),
        300,
        -300,
        2**31 - 1,
        2147483520,
        -(2**31),
        0,
    ]


@pytest.mark.parametrize("apply", [lambda f: f, jit])
def test_python_ints_that_do_not_fit_are_refused_compiled_too(apply):
    for f in (
        lambda x: x + 2**31,
        lambda x: fnp.where(x > 0, x, -(2**40)),
        lambda x: fnp.maximum(2**31, x),
    ):
        with pytest.raises(OverflowError, match="does not fit into i32"):
            apply(f)(fnp.ones(2, "int32"))


def test_means_of_f16_do_not_overflow_on_the_way():
    x = np.full(4000, 20.0, "f2")
    x[::2] = 30
    f = lambda x: (fnp.mean(x), fnp.var(x), fnp.std(x))
    for found in (f(Array(x)), jit(f)(x)):
        assert [(float(y), y.dtype) for y in found] == [
            (25, np.float16),
            (25, np.float16),
            (5, np.float16),
        ]
