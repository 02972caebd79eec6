"""Python numbers beside arrays: they lose no digit and decide no dtype, traced by jit or not."""

import warnings

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import grad, jit, lax, random, tree

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
NUMBERS = [2, 0.1, True, 3.0, -1]
PAIRS = """
    add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide divmod dot equal float_power
    floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot inner isclose kron lcm
    ldexp left_shift less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor
    maximum minimum mod multiply nextafter not_equal outer polyadd polymul polysub polyval power
    remainder right_shift searchsorted subtract
""".split()
CHOICES = {
    "where": lambda x, n: fnp.where(x > 1, x, n),
    "where with a number": lambda x, n: fnp.where(x > 1, n, 0),
    "clip above": lambda x, n: fnp.clip(x, None, n),
    "clip": lambda x, n: fnp.clip(x, 0, n),
    "select": lambda x, n: fnp.select([x > 1, x < 3], [n, x]),
    "full_like": lambda x, n: fnp.full_like(x, n),
    "append": lambda x, n: fnp.append(x, n),
    "a list": lambda x, n: fnp.array([x[0], n]),
    "an absolute number": lambda x, n: abs(n) * x,
    "a square": lambda x, n: x * n ** 2,
    "a remainder": lambda x, n: x + (n % 2) + (7 % n),
    "a quotient": lambda x, n: x + (n // 2) + divmod(7, n)[0],
    "an inverse": lambda x, n: x * n ** -1,
    "lax.mul": lambda x, n: lax.mul(x, n),
    "lax.select": lambda x, n: lax.select(x > 1, x, n),
    "lax.clamp": lambda x, n: lax.clamp(0, x, n),
    "isin": lambda x, n: fnp.isin(x, n),
    "diff": lambda x, n: fnp.diff(x, append=n),
}


def check_alike(got, want):
    for a, b in zip(tree.leaves(got), tree.leaves(want), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        digits = {"float16": 2e-3, "float32": 1e-6}.get(a.dtype.name, 1e-14)
        np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=digits)


@pytest.mark.parametrize("name", [*PAIRS, *CHOICES])
def test_a_number_that_jit_traces_gives_the_dtype_and_value_of_one_that_is_known(name):
    given = CHOICES.get(name) or getattr(fnp, name)
    swapped = [lambda x, n: given(n, x)] if name in PAIRS else []
    for f in (given, *swapped):
        compiled = jit(f)
        for x in [fnp.array([1, 0, 1] if d == "bool" else [3, 1, 2], dtype=d) for d in DTYPES]:
            for n in NUMBERS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        want = f(x, n)
                    except (TypeError, ValueError, ArithmeticError):
                        continue                 # i8 ** -1, float % of bits: there is no value
                    check_alike(compiled(x, n), want)


def test_a_large_number_that_jit_traces_is_not_cut():
    x = fnp.array([1], dtype="int64")
    assert jit(lambda x, n: fnp.where(x < 0, x, n))(x, 2**40).tolist() == [2**40]
    assert jit(lambda x, n: fnp.clip(x * 2**50, 0, n))(x, 2**40).tolist() == [2**40]
    assert jit(lambda n: fnp.array(n, dtype="int64"))(2**40).item() == 2**40
    assert jit(lambda n: fnp.full((), n, dtype="float64"))(0.1).item() == 0.1
    assert jit(lambda n: -n)(True).item() == -1
    assert jit(lambda x, n: x + n // 2 + n % 2**35)(x, 2**40 + 5).tolist() == [2**39 + 8]
    assert grad(jit(lambda x: x % 2.0))(5.5).item() == 1.0
    assert jit(grad(lambda x: x % 2.0))(5.5).item() == 1.0


@pytest.mark.parametrize("seed", [0, 5, -5, 2**31, -2**31 - 1, 2**40 + 3])
def test_a_seed_that_jit_traces_gives_the_same_key(seed):
    assert jit(lambda s: random.key_data(random.key(s)))(seed).tolist() == \
        random.key_data(random.key(seed)).tolist()


@pytest.mark.parametrize("low, high, dtype", [(-2**31, 2**31, "int32"), (0, 10, "int32"),
                                              (0, 2**40, "int64"), (0, 2**32, "uint32"),
                                              (-500, 500, "int32"), (5, 5, "int32")])
def test_bounds_that_jit_traces_draw_the_same_ints(low, high, dtype):
    draw = lambda k, a, b: random.randint(k, (9,), a, b, dtype)
    assert jit(draw)(random.key(0), low, high).tolist() == \
        draw(random.key(0), low, high).tolist()
    assert len(set(draw(random.key(0), low, high).tolist())) > 1 or low == high


def test_derivatives_at_a_number_that_jit_traces():
    out, t = jit(lambda s: fgrad.jvp(fnp.sin, (s,), (1.0,)))(0.5)
    assert (out.item(), t.item()) == (fnp.sin(0.5).item(), fnp.cos(0.5).item())
    assert jit(lambda s: fgrad.linearize(fnp.sin, s)[1](1.0))(0.5).item() == t.item()
    assert jit(lambda s: fgrad.linear_transpose(lambda x: 2 * x, s)(1.0))(0.5)[0].item() == 2.0
    assert jit(grad(fnp.sin))(0.5).item() == t.item()


HALVES = fnp.array([1.0, 2.0], dtype="float16")


@pytest.mark.parametrize("name", ["dot", "outer", "inner", "kron", "polyval", "polyadd", "polymul",
                                  "append", "float_power", "ediff1d", "gradient", "geomspace",
                                  "vecdot"])
def test_a_number_takes_the_dtype_of_the_array(name):
    assert getattr(fnp, name)(HALVES, 2.0).dtype == np.float16


def test_a_number_beside_double_precision_keeps_its_digits():
    x = fnp.array([0.1, 1.0], dtype="float64")
    assert fnp.isin(x, 0.1).tolist() == [True, False]
    assert fnp.searchsorted(x, 0.1).item() == 0
    assert fnp.insert(x, 0, 0.3).tolist() == [0.3, 0.1, 1.0]
    assert fnp.choose([0, 1], [x, 0.3]).tolist() == [0.1, 0.3]
    assert fnp.polyval(x, 0.3).item() == np.polyval([0.1, 1.0], 0.3)
    assert fnp.interp(0.1, x, x).item() == 0.1
    assert fnp.interp(0.0, x, x, left=0.3).item() == 0.3
    assert fnp.digitize(0.1, x).item() == 1
    assert fnp.piecewise(x, [x < 0.5], [0.3, 0.7]).tolist() == [0.3, 0.7]
    assert fnp.gradient(x, 0.1).tolist() == np.gradient([0.1, 1.0], 0.1).tolist()
    assert fnp.setdiff1d(x, 0.1).tolist() == [1.0]
    assert (2 ** fnp.array([3], dtype="int8")).dtype == np.int8


def test_a_number_that_fills_complex_arrays_keeps_its_fraction():
    assert fnp.full(1, 2.5, dtype="complex64").tolist() == [2.5]
    assert fnp.full((), 0.1 + 0.1j, dtype="complex128").item() == 0.1 + 0.1j
    one = fnp.ones(1, "complex64")
    assert fnp.full_like(one, 2.5).tolist() == [2.5]
    assert fnp.pad(one, 1, constant_values=0.5).tolist() == [0.5, 1, 0.5]


def test_a_choice_that_there_is_not_is_nan_or_0():
    assert fnp.choose([0, 3], [[1, 2], [3, 4]]).tolist() == [1, 0]
    assert np.isnan(fnp.choose([0, 3], [[1.0, 2.0], [3.0, 4.0]])[1].item())


def test_places_are_found_where_ints_are_long_by_default():
    x = np.sort(np.random.default_rng(0).integers(0, 900, 50))
    with fgrad.default_dtype("float64"):
        for function in (fnp.searchsorted, jit(fnp.searchsorted)):
            got = function(x, np.arange(900))
            assert got.dtype == "int32"
            np.testing.assert_array_equal(got, np.searchsorted(x, np.arange(900)))
