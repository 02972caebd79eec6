"""Division by a constant, compiled as a product: every bit of the quotient."""

from fractions import Fraction

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.backends.llvm import reciprocal
from fgrad.inspect import show
from fgrad.jitted import jit

SIGNIFICANDS = np.arange(1 << 23, 1 << 24, dtype=np.uint32).astype(np.float32)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-30], np.float32)


@pytest.mark.parametrize("c", [3, 7, 10, 255, 1000, 0.1, 1e-3, np.pi, -9.25, 5.656854, 2.0 ** 99])
def test_all_significands_divide_as_numpy_divides_them(c):
    c = np.float32(c)
    f = jit(lambda x: x / float(c))
    np.testing.assert_array_equal(np.asarray(f(fnp.asarray(SIGNIFICANDS))), SIGNIFICANDS / c)


@pytest.mark.parametrize("c", [3.0, -3.0, 0.3, -0.3, 1e-20, -1e20])
def test_zeros_infinities_and_what_overflows(c):
    with np.errstate(over="ignore"):
        want = SPECIAL / np.float32(c)
    assert np.asarray(jit(lambda x: x / c)(SPECIAL)).tobytes() == want.tobytes()


def test_small_quotients_are_within_the_last_bit():
    x = (SIGNIFICANDS[::97] * np.float32(2.0 ** -140)).astype(np.float32)
    got, want = np.asarray(jit(lambda x: x / 3.0)(x)), x / np.float32(3)
    assert abs(got.view(np.int32) - want.view(np.int32)).max() <= 1


@pytest.mark.parametrize("seed", range(5))
def test_f64_by_many_constants(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=2000) * 10.0 ** rng.integers(-30, 30, 2000)
    for c in [*rng.normal(size=4), float(rng.integers(3, 1000)), 10.0 ** rng.integers(-20, 20)]:
        np.testing.assert_array_equal(np.asarray(jit(lambda x, c=float(c): x / c)(x)), x / c)


@pytest.mark.parametrize("c", [0.0, 1.0, -0.5, 4.0, 1e38, 1e-40, np.inf, np.nan])
def test_what_is_divided_by(c):
    assert reciprocal.factors(float(np.float32(c)), "f32") is None


def test_constants_whose_product_would_round_wrongly_are_divided_by():
    c = next(c for c in map(float, (SIGNIFICANDS[1003::1003] / np.float32(1 << 18)))
             if not reciprocal.factors(c, "f32"))
    assert "fdiv" in show(jit(lambda x: x / c), np.float32(1), stage="llvm")
    high, low = (reciprocal.rounded(part, 24) for part in parts(c))
    assert any(reciprocal.quotient(Fraction(int(x)), high, low, 24)
               != reciprocal.rounded(Fraction(int(x)) / Fraction(c), 24)
               for x in reciprocal.near_middles(odd_part(c), 24))
    got = np.asarray(jit(lambda x: x / c)(fnp.asarray(SIGNIFICANDS)))
    np.testing.assert_array_equal(got, SIGNIFICANDS / np.float32(c))


def parts(c):
    high = reciprocal.rounded(1 / Fraction(c), 24, cut=True)
    return high, 1 / Fraction(c) - high


def odd_part(c):
    n = Fraction(c).numerator
    return n // (n & -n)


def test_rounding_of_fractions_is_that_of_floats():
    rng = np.random.default_rng(0)
    for a, b in rng.integers(1, 1 << 40, (500, 2)):
        exact = Fraction(int(a), int(b))
        assert float(reciprocal.rounded(exact, 53)) == float(exact)
        assert float(reciprocal.rounded(-exact, 53)) == float(-exact)


# ---------------------------------------------------------------------------- what a loop keeps

def by_rows(x, d):
    """x divided by the largest of each row of d: known when the program runs, in front of a loop"""
    return x / fnp.max(d, axis=1, keepdims=True)


def divided(x, d):
    """(what the compiled `by_rows` gives, what NumPy gives) for a divisor of each row."""
    with np.errstate(all="ignore"):
        want = x / d[:, None]
    return np.asarray(jit(by_rows)(fnp.asarray(x), fnp.asarray(np.stack([d, d], 1)))), want


def assert_equal_but_for_tiny_last_bits(got, want):
    """Equal f32, but for the last bit of what is no normal number."""
    tiny = abs(want) < 2.0 ** -126
    np.testing.assert_array_equal(got[~tiny], want[~tiny])
    np.testing.assert_allclose(got[tiny], want[tiny], rtol=0, atol=2.0 ** -149)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [64, 65, 500, 1000])
def test_rows_divide_as_numpy_divides_them_but_for_few_last_bits(dtype, columns):
    rng = np.random.default_rng(columns)
    x = (rng.normal(size=(300, columns)) * 10.0 ** rng.integers(-9, 9, (300, columns)))
    d = (rng.normal(size=300) * 10.0 ** rng.integers(-9, 9, 300)).astype(dtype)
    got, want = divided(x.astype(dtype), d)
    bits = np.int32 if dtype is np.float32 else np.int64
    off = abs(got.view(bits) - want.view(bits))
    assert off.max() <= 1 and (off > 0).mean() < 1e-5


def test_divisors_of_all_kinds_of_rows():
    kinds = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4e38, -3.4e38, 1, -2.5,
                        1e-30, 1e30, 2, 0.5, 1e-38, 2.0 ** 100, 2.0 ** -100, 2.0 ** 101, 7])
    got, want = divided(np.tile(kinds, (len(kinds), 8)), kinds)
    numbers = ~np.isnan(want)
    assert_equal_but_for_tiny_last_bits(got, want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("power", range(-150, 120, 10))
def test_divisors_of_all_sizes(power):
    d = (np.float32(1.7) * np.float32(2.0) ** np.arange(power, power + 10, dtype=np.float32))
    x = SIGNIFICANDS[::1 << 14][:, None] * np.float32(2.0) ** np.float32([-100, -20, 0, 40, 100])
    got, want = divided(np.tile(x.reshape(-1), (10, 1)), d)
    ordered = got.view(np.int32).astype(np.int64), want.view(np.int32).astype(np.int64)
    assert abs(ordered[0] - ordered[1]).max() <= 1


def test_vectors_are_not_divided_where_a_reciprocal_does():
    shapes = [fgrad.ArrayType("float32", s) for s in [(64, 1024), (64, 2)]]
    text = show(by_rows, *shapes, stage="llvm")
    assert "fdiv <" not in text and "fdiv float 1.0" in text
    short = show(by_rows, fgrad.ArrayType("float32", (64, 8)), shapes[1], stage="llvm")
    assert "fdiv float 1.0" not in short


# ---------------------------------------------------------------------------- what a kernel keeps

KINDS = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -2.5, 1e-30, 7, 2.0 ** -101])


def by_one(x, s):
    return x / (1.0 - s)


@pytest.mark.parametrize("s", KINDS)
def test_elements_divided_by_a_number(s):
    x = np.float32(np.random.default_rng(0).normal(size=5000))
    with np.errstate(all="ignore"):
        want = x / (np.float32(1) - s), x / s
    for f, found in zip((by_one, lambda x, s: x / s), want):
        got = np.asarray(jit(f)(fnp.asarray(x), fnp.asarray(s)))
        assert_equal_but_for_tiny_last_bits(got, found)
    text = show(by_one, *[fgrad.ArrayType("float32", shape) for shape in [(5000,), ()]],
                stage="llvm")
    assert text.count("fdiv <") <= 1 and "fdiv float 1.0" in text          # in the tail alone


@pytest.mark.parametrize("s", KINDS)
def test_products_divided_by_a_number(s):
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(70, 70)).astype("f") for _ in range(2))

    def f(a, b, s):
        return (a @ b) / s, fnp.tanh(a @ b) / (1.0 - s)
    got = [np.asarray(y) for y in jit(f)(fnp.asarray(a), fnp.asarray(b), fnp.asarray(s))]
    with np.errstate(all="ignore"):
        plain = [np.asarray(y) for y in jit(lambda a, b: (a @ b, fnp.tanh(a @ b)))(
            fnp.asarray(a), fnp.asarray(b))]
        want = plain[0] / s, plain[1] / (np.float32(1) - s)
    for x, y in zip(got, want):
        np.testing.assert_allclose(x, y, rtol=1e-6)
