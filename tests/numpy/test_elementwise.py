"""Elementwise functions agree with NumPy in value, and with fgrad's rules in dtype."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.core import Array

RANDOM = np.random.default_rng(0)
SHAPES = [(), (0,), (1,), (5,), (2, 3)]
ULPS = 8                   # of the functions made of several operations

UNARY = """
sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh
arccosh arctanh cbrt rint floor ceil trunc fix deg2rad rad2deg radians degrees sinc reciprocal
square absolute fabs sign negative positive isnan isinf isfinite isposinf isneginf signbit
nan_to_num
logical_not""".split()
PAIRS = """
add subtract multiply divide true_divide floor_divide remainder mod fmod power float_power maximum
minimum fmax fmin hypot arctan2 logaddexp logaddexp2 copysign heaviside equal not_equal less
less_equal greater greater_equal logical_and logical_or logical_xor""".split()
WHOLE_PAIRS = """
add subtract multiply floor_divide remainder fmod maximum minimum bitwise_and bitwise_or bitwise_xor
equal less""".split()


def close(ours, theirs, dtype=np.float32):
    assert isinstance(ours, Array)
    assert ours.shape == np.shape(theirs)
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float),
                               rtol=ULPS * np.finfo(dtype).eps,
                               atol=ULPS * np.finfo(dtype).tiny)


def sample(name, shape, dtype):
    x = RANDOM.uniform(0.05, 0.95, shape).astype(dtype)
    return x + dtype(1) if name == "arccosh" else x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument_agree_with_numpy(name, dtype):
    for shape in SHAPES:
        x = sample(name, shape, dtype)
        close(getattr(fnp, name)(x), getattr(np, name)(x), dtype)
        if name not in ("log", "log2", "log10", "log1p", "sqrt", "arccosh"):
            close(getattr(fnp, name)(-x), getattr(np, name)(-x), dtype)


@pytest.mark.parametrize("name", UNARY)
def test_special_values_agree_with_numpy(name):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        theirs = getattr(np, name)(x)
    np.testing.assert_allclose(np.asarray(getattr(fnp, name)(x)), theirs, rtol=1e-6)


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_arguments_broadcast_as_numpy(name):
    for a, b in [((), ()), ((3,), ()), ((0,), (1,)), ((2, 1), (3,)), ((4, 1, 2), (3, 1))]:
        x, y = sample(name, a, np.float32) * 5, sample(name, b, np.float32)
        close(getattr(fnp, name)(x, y), getattr(np, name)(x, y))
        close(getattr(fnp, name)(y, x), getattr(np, name)(y, x))


@pytest.mark.parametrize("name", PAIRS)
def test_special_values_of_two_arguments_agree_with_numpy(name):
    values = np.array([0.0, 1.0, -2.5, 3.0, np.inf, -np.inf, np.nan], np.float32)
    x, y = map(np.ravel, np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        theirs = getattr(np, name)(x, y)
    np.testing.assert_allclose(np.asarray(getattr(fnp, name)(x, y)), theirs, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32])
@pytest.mark.parametrize("name", WHOLE_PAIRS)
def test_functions_of_integers_agree_with_numpy(name, dtype):
    x, y = RANDOM.integers(0, 9, 50).astype(dtype), RANDOM.integers(1, 9, 50).astype(dtype)
    if np.dtype(dtype).kind == "i":
        x, y = x - dtype(4), y * RANDOM.choice(np.array([-1, 1], dtype), 50)
    ours, theirs = getattr(fnp, name)(x, y), getattr(np, name)(x, y)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_integers_become_the_default_float():
    assert fnp.sqrt(4).dtype == fnp.divide(1, 2).dtype == fnp.sin(np.arange(3)).dtype == np.float32


def test_arrays_promote_by_the_lattice_and_numbers_are_weak():
    f16, f64, i32 = fnp.ones(2, "float16"), fnp.ones(2, "float64"), fnp.ones(2, "int32")
    assert (f16 + i32).dtype == np.float16
    assert (f16 + 1.5).dtype == np.float16
    assert (f64 + fnp.ones(2)).dtype == np.float64
    assert (i32 + 1.5).dtype == np.float32
    assert (fnp.array([True]) + 1).dtype == np.int32
    assert fnp.power(i32, 2.0).dtype == np.float32


def test_numbers_that_do_not_fit_raise_overflow_error():
    with pytest.raises(OverflowError, match="the Python number 256 does not fit into u8"):
        fnp.ones(2, "uint8") + 256


def test_powers_agree_with_numpy():
    x = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    for n in [0, 1, 2, 3, -1, -2, 7, 0.5, 1.5, -0.5, 100]:
        with np.errstate(over="ignore"):
            close(fnp.array(x) ** n, x ** n)
    whole = np.arange(-3, 4)
    for n in [0, 1, 2, 3, 9]:
        np.testing.assert_array_equal(np.asarray(fnp.array(whole) ** n), whole ** n)
    np.testing.assert_array_equal(np.asarray(fnp.power(whole, np.arange(7))), whole ** np.arange(7))
    np.testing.assert_array_equal(np.asarray(2 ** fnp.arange(5)), 2 ** np.arange(5))


def test_integers_to_negative_powers_in_an_array_are_0_save_for_1_and_minus_1():
    got = fnp.power(fnp.array([2, 1, -1, -1, 0]), fnp.array([-1, -2, -3, -2, -1]))
    assert got.tolist() == [0, 1, -1, 1, 0]


def test_integers_to_a_negative_power_are_refused():
    with pytest.raises(ValueError, match="integers cannot be raised to negative powers"):
        fnp.arange(3) ** -1


def test_where_and_clip_broadcast_and_promote():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(fnp.where(x > 2, x, -1)), np.where(x > 2, x, -1))
    np.testing.assert_array_equal(np.asarray(fnp.where([True, False, True], 1, x)),
                                  np.where([True, False, True], 1, x))
    assert fnp.where(True, 1, 2.5).item() == 1.0
    assert fnp.where([True, False], 1, 2).tolist() == [1, 2]
    for lo, hi in [(1, 3), (None, 2.5), (2, None), (np.zeros(3), [1, 2, 3])]:
        np.testing.assert_array_equal(np.asarray(fnp.clip(x, lo, hi)), np.clip(x, lo, hi))
    with pytest.raises(TypeError, match="where needs a condition, and both values"):
        fnp.where(x > 2, x)


def test_round_agrees_with_numpy():
    x = np.array([0.5, 1.5, 2.25, -3.555, 1234.5], np.float64)
    for decimals in [0, 1, 2, -2]:
        np.testing.assert_allclose(np.asarray(fnp.round(x, decimals)), np.round(x, decimals))
    assert fnp.round(fnp.array([1251]), -2).tolist() == [1300]


def test_shifts_and_inversion_agree_with_numpy():
    x = np.arange(-4, 5)
    np.testing.assert_array_equal(np.asarray(fnp.array(x) << 2), x << 2)
    np.testing.assert_array_equal(np.asarray(fnp.array(x) >> 1), x >> 1)
    np.testing.assert_array_equal(np.asarray(~fnp.array(x)), ~x)
    assert (~fnp.array([True, False])).tolist() == [False, True]


def test_hypot_has_second_derivatives_where_its_arguments_are_equal():
    x, y = fnp.array([2.0, -1.0, 3.0], "float64"), fnp.array([2.0, 1.0, 4.0], "float64")
    fgrad.check_grads(fnp.hypot, (x, y), order=2)
    assert [float(g) for g in fgrad.grad(fnp.hypot, (0, 1))(0.0, 0.0)] == [0.0, 0.0]
    assert float(fnp.hypot(np.float32(3e30), np.float32(4e30))) == np.float32(5e30)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_neighbours_of_a_float_are_those_of_numpy(dtype):
    x = np.array([0.0, -0.0, 1.0, -3.0, 6e4, np.inf, np.nan], dtype)
    y = np.array([1.0, -1.0, 0.0, -9.0, np.inf, 0.0, 1.0], dtype)
    with np.errstate(all="ignore"):
        want, apart = np.nextafter(x, y), np.spacing(x)
    for made in (fnp.nextafter, fgrad.jit(fnp.nextafter), fgrad.vmap(fnp.nextafter)):
        np.testing.assert_array_equal(made(x, y), want)
    np.testing.assert_array_equal(np.abs(fnp.spacing(x)), np.abs(apart))   # f16 has no sign
    assert fgrad.grad(lambda v: fnp.nextafter(v, 2.0) * 3.0)(np.array(1.0)) == 0.0


def test_bf16_has_no_neighbours_yet():
    with pytest.raises(fgrad.errors.DtypeError, match="nextafter"):
        fnp.nextafter(fnp.array(1.0, "bfloat16"), 2.0)


def test_areas_of_large_numbers_keep_their_digits():
    x = np.array([9e7, 1.1e8, 1e9, 1e12, 1e300])
    np.testing.assert_allclose(fnp.arcsinh(x), np.arcsinh(x), rtol=1e-15)
    np.testing.assert_allclose(fnp.arccosh(x), np.arccosh(x), rtol=1e-15)


def test_areas_at_the_borders():
    """arccosh of a large negative number was -inf, and arcsinh of -0 was 0."""
    ends = np.array([-1e30, -1e6, -0.0, 1e30, np.inf, -np.inf, np.nan], "float32")
    for name in ("arcsinh", "arccosh"):
        with np.errstate(invalid="ignore"):
            want = getattr(np, name)(ends)
        for function in (getattr(fnp, name), fgrad.jit(getattr(fnp, name))):
            got = np.asarray(function(ends))
            np.testing.assert_allclose(got, want, rtol=1e-6)
            if name == "arcsinh":
                assert np.signbit(got[2])
    slopes = fgrad.vmap(fgrad.grad(fnp.arcsinh))(ends)
    np.testing.assert_allclose(slopes[:5], [1e-30, 1e-6, 1.0, 1e-30, 0.0], rtol=1e-6)
    assert np.isnan(fgrad.vmap(fgrad.grad(fnp.arccosh))(ends[:3])).all()


def test_the_fraction_of_modf_has_the_derivative_one_everywhere():
    slope = fgrad.vmap(fgrad.grad(lambda x: fnp.modf(x)[0]))
    assert slope(np.array([-1.5, -1.0, -0.0, 0.0, 0.25, 2.0])).tolist() == [1.0] * 6


def test_rint_rounds_complex_numbers_part_by_part():
    x = np.array([1.5 + 2.5j, -0.4 - 0.6j], "complex64")
    assert fnp.rint(x).tolist() == np.rint(x).tolist()
