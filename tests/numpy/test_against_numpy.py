"""Functions whose law is NumPy: a row per call, at once and compiled, with dtypes of 64 bits."""

import itertools

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ArgumentError, RangeError, ShapeError

RNG = np.random.default_rng(0)
V = RNG.standard_normal(7)
M = RNG.standard_normal((4, 5))
I = np.array([3, 1, 2, 3, 1, 0])
J = np.array([4, 6, 9, 10, 15, 0])
P, Q = np.array([1.0, -2.0, 3.0]), np.array([2.0, 1.0])
R = np.array([1.0, np.inf, np.inf])
BYTES = np.array([[3, 200], [255, 1]], "uint8")

CALLS = [
    ("bartlett", 5), ("blackman", 6), ("hamming", 5), ("hanning", 1), ("kaiser", 6, 8.6),
    ("polyadd", P, Q), ("polysub", Q, P), ("polymul", P, Q), ("polyder", P), ("polyder", P, 2),
    ("polyint", P), ("polyint", P, 2), ("poly", P), ("vander", V, 3),
    ("polyfit", V, M[0, :1] + V ** 2, 2), ("polyfit", V, np.stack([V, V ** 2], 1), 3),
    ("isin", I, [1, 5]), ("digitize", V, np.array([-1.0, 0.0, 1.0])),
    ("digitize", V, np.array([1.0, 0.0, -1.0])), ("digitize", I, np.array([1, 2, 3]), True),
    ("digitize", I, np.array([3, 2, 1]), True),
    ("histogram", V, 4), ("histogram", V, np.array([-1.0, 0.0, 2.0])),
    ("histogram", V, 3, (-1.0, 1.0)),
    ("histogram", np.ones(3), 2), ("histogram_bin_edges", V, 4),
    ("histogram2d", V, V ** 2, 3), ("ediff1d", M), ("ediff1d", V, [7.0], [8.0]),
    ("gradient", V), ("gradient", M), ("gradient", M, 0.5), ("gradient", V, np.cumsum(np.abs(V))),
    ("unwrap", 5 * V), ("unwrap", 5 * M), ("cumulative_sum", V), ("cumulative_prod", V),
    ("correlate", V, P, "full"), ("correlate", V, P, "same"), ("correlate", V, P),
    ("correlate", Q, V, "full"), ("correlate", Q, V, "same"), ("correlate", P, V, "same"),
    ("lexsort", (V[:6], I)),
    ("resize", I, (4, 3)), ("ravel_multi_index", (I, I), (4, 5)), ("diag_indices", 3),
    ("tril_indices_from", M), ("triu_indices_from", M, 1), ("ix_", I, J),
    ("gcd", I, J), ("lcm", I, J), ("gcd", -J, 6), ("bitwise_count", J),
    ("packbits", BYTES > 2), ("packbits", BYTES, 1), ("unpackbits", BYTES),
    ("unpackbits", BYTES, 1), ("modf", 3 * V), ("ldexp", V, I[:1]), ("frexp", 100 * V),
    ("frexp", np.array([0.0, np.inf, -4.0, 1e-310])), ("angle", V), ("isreal", V),
    ("real", V), ("conjugate", V), ("block", [[M, M], [M, M]]), ("block", [1.0, V]),
    ("array_equiv", V, V), ("choose", np.array([0, 1, 1]), [np.arange(3), np.arange(3) + 5]),
    ("median", R), ("nanmedian", R), ("round", np.array([123456789, 25, -35]), -1),
    ("linspace", -5, 5, 4, True, False, "int32"), ("linspace", 0, 99, 100, True, False, "int64"),
    ("ldexp", np.array([2.0 ** -149, 0.0, 1.0], "f4"), np.array([270, 1000, -5])),
    ("kaiser", 5, 100.0), ("array_equiv", [1, 2], [1.5, 2.5]),
    ("i0", V), ("extract", np.array([True, False]), np.array([1.0, 2.0])),
]
DYNAMIC = {"extract", "diag_indices", "tril_indices_from", "triu_indices_from", "bartlett",
           "blackman", "hamming", "hanning", "kaiser"}


def parts(x):
    return [part for p in x for part in parts(p)] if isinstance(x, (tuple, list)) else [x]


def agree(got, want):
    for x, y in zip(parts(got), parts(want), strict=True):
        np.testing.assert_allclose(np.asarray(x, float), np.asarray(y, float), rtol=2e-6, atol=1e-7)
        assert np.shape(x) == np.shape(y)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_at_once_and_compiled_it_is_what_numpy_gives(call):
    name, *args = call
    want = getattr(np, name)(*args)
    agree(getattr(fnp, name)(*args), want)
    arrays = [k for k, a in enumerate(args) if isinstance(a, np.ndarray)]

    def function(*xs):
        found = dict(zip(arrays, xs))
        return getattr(fnp, name)(*[found.get(k, a) for k, a in enumerate(args)])
    if name not in DYNAMIC:
        agree(fgrad.jit(function)(*[args[k] for k in arrays]), want)


@pytest.mark.parametrize("obj", [1, -1, [0, 2], slice(1, 3), np.array([True, False, True, False])])
@pytest.mark.parametrize("axis", [0, 1])
def test_elements_are_left_out_as_in_numpy(obj, axis):
    x = np.arange(16.0).reshape(4, 4)
    agree(fnp.delete(x, obj, axis), np.delete(x, obj, axis))
    agree(fgrad.jit(lambda x: fnp.delete(x, obj, axis))(x), np.delete(x, obj, axis))


@pytest.mark.parametrize("obj, values", [(1, 9.0), (1, [1.0, 2.0, 3.0, 4.0]), ([0, 2], 9.0),
                                         ([1, 1], [[1.0], [2.0]]), (slice(0, 2), 5.0)])
def test_elements_are_put_in_as_in_numpy(obj, values):
    x = np.arange(16.0).reshape(4, 4)
    agree(fnp.insert(x, obj, values, axis=0), np.insert(x, obj, values, axis=0))
    agree(fnp.insert(np.arange(4.0), [1, 3], [8.0, 9.0]), np.insert(np.arange(4.0), [1, 3], [8, 9]))


def test_places_are_written_in_a_new_array():
    x = np.arange(6.0).reshape(2, 3)
    changed = {"put": (np.array([0, 5]), np.array([8.0, 9.0])),
               "place": (x > 2, np.array([7.0, 8.0])),
               "fill_diagonal": (5.0,), "put_along_axis": (np.array([[1], [2]]), 7.0, 1)}
    for name, args in changed.items():
        want = x.copy()
        getattr(np, name)(want, *args)
        agree(getattr(fnp, name)(x, *args), want)
        with pytest.raises(ArgumentError):
            getattr(fnp, name)(x, *args, inplace=True)


def test_unique_elements_of_a_known_number_compile():
    full = fnp.unique(I, True, True, True)
    fixed = fgrad.jit(lambda x: fnp.unique(x, True, True, True, size=6, fill_value=9))(I)
    assert fixed[0].tolist() == [0, 1, 2, 3, 9, 9] and fixed[3].tolist() == [1, 2, 1, 2, 0, 0]
    assert fixed[1][:4].tolist() == full[1].tolist() and fixed[2].tolist() == full[2].tolist()
    assert fnp.unique(I, size=2).tolist() == [0, 1]
    assert fnp.unique(np.array([[1, 2], [1, 2]]), axis=0).tolist() == [[1, 2]]
    assert fnp.unique_counts(I).counts.tolist() == [1, 2, 1, 2]
    assert fnp.union1d(I, J, size=4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name, fill", [
    ("intersect1d", None), ("setdiff1d", 0), ("setxor1d", None), ("union1d", None)])
@pytest.mark.parametrize("sizes", [(0, 0), (0, 4), (5, 0), (1, 1), (6, 9), (40, 17)])
def test_sets_of_a_known_size_compile(name, fill, sizes):
    """They are what NumPy gives, cut or filled up: by the smallest, a difference by 0."""
    rng = np.random.default_rng(sum(sizes))
    x, y = [rng.integers(0, 20, n).astype("int32") for n in sizes]
    whole = getattr(np, name)(x, y)
    smallest = fill if fill is not None or not whole.size else whole[0]
    for size, given in itertools.product((0, 1, 3, whole.size, 30), ({}, {"fill_value": -7})):
        function = lambda x, y: getattr(fnp, name)(x, y, size=size, **given)
        filling = given.get("fill_value", smallest if whole.size else 0)
        want = np.append(whole, np.full(30, filling, "int32"))[:size]
        for got in (function(x, y), fgrad.jit(function)(x, y)):
            assert got.dtype == "int32"
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["intersect1d", "setdiff1d", "setxor1d"])
def test_what_sets_are_filled_up_with_may_be_traced(name):
    function = fgrad.jit(lambda x, y, fill: getattr(fnp, name)(x, y, size=9, fill_value=fill))
    whole = getattr(np, name)(I, J)
    got = function(I, J, np.int64(-3))
    np.testing.assert_array_equal(got, np.append(whole, [-3] * 9)[:9])


def test_places_of_a_known_size_are_filled_up_with_the_number_of_elements():
    x, y = np.array([5, 3, 3, 9, 1]), np.array([3, 7, 1, 1])
    got = fgrad.jit(lambda x, y: fnp.intersect1d(x, y, size=4, return_indices=True))(x, y)
    assert [v.tolist() for v in got] == [[1, 3, 1, 1], [4, 1, 5, 5], [2, 0, 4, 4]]


@pytest.mark.parametrize("name", ["intersect1d", "setdiff1d", "setxor1d", "union1d"])
def test_sets_are_numpys(name):
    agree(getattr(fnp, name)(I, J), getattr(np, name)(I, J))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rows_along_an_axis_are_given_to_the_function(axis):
    for function in (lambda r: r.sum(), lambda r: r[:2] * 2):
        agree(fnp.apply_along_axis(function, axis, M), np.apply_along_axis(function, axis, M))
    agree(fnp.apply_over_axes(fnp.sum, M, (0, 1)), np.apply_over_axes(np.sum, M, (0, 1)))


def test_vectorize_maps_over_what_broadcasts():
    dot = fnp.vectorize(lambda a, b: (a * b).sum(), signature="(n),(n)->()")
    agree(dot(M, M[0]), M @ M[0])
    agree(fnp.vectorize(lambda x, n: x ** n, excluded={1})(V, 2), V ** 2)
    agree(fgrad.grad(lambda v: fnp.vectorize(fnp.sin)(v).sum())(V), np.cos(V))
    with pytest.raises(ArgumentError):
        fnp.vectorize(lambda a: a, signature="n->")


def test_piecewise_takes_functions_and_numbers():
    args = [V < 0, V > 1], [lambda x: -x, 5.0, lambda x: x * 2]
    agree(fnp.piecewise(V, *args), np.piecewise(V, *args))
    agree(fnp.fromfunction(lambda i, j: i + j, (2, 3)), np.fromfunction(lambda i, j: i + j, (2, 3)))


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax",
                                  "nanmin", "nanmedian"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_is_left_out_as_in_numpy(name):
    x = RNG.standard_normal((3, 4, 5))
    x[RNG.random(x.shape) < 0.3] = np.nan
    x[:, 0, 0] = np.nan
    for axis in (None, 0, (0, 2)):
        for keepdims in (False, True):
            agree(getattr(fnp, name)(x, axis=axis, keepdims=keepdims),
                  getattr(np, name)(x, axis=axis, keepdims=keepdims))
    agree(fnp.nanquantile(x, [0.0, 0.3, 1.0], axis=1), np.nanquantile(x, [0.0, 0.3, 1.0], axis=1))
    agree(fnp.nancumsum(x, 1), np.nancumsum(x, 1))


def test_the_quotient_of_polynomials_times_the_divisor_and_the_rest_is_the_dividend():
    quotient, rest = fnp.polydiv(P, Q)
    agree(fnp.polyadd(fnp.polymul(quotient, Q), rest), P)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "all", "any"])
def test_where_says_which_elements_count(name):
    agree(getattr(fnp, name)(M, axis=1, where=M > 0), getattr(np, name)(M, axis=1, where=M > 0))


def test_initial_is_one_more_element():
    assert fnp.max(fnp.zeros(0), initial=3.0) == 3 and fnp.sum([1, 2], initial=5) == 8
    agree(fnp.min(M, axis=0, where=M > 0, initial=0.5), np.min(M, axis=0, where=M > 0, initial=0.5))
    with pytest.raises(ShapeError):
        fnp.max(M, where=M > 0)


def test_there_are_at_least_250_of_numpys_functions():
    names = [n for n in vars(np) if callable(getattr(np, n))
             and not isinstance(getattr(np, n), type)]
    assert len([n for n in names if callable(getattr(fnp, n, None))]) >= 250


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("n", [0, 1, 2, 47, 48, 49, 63, 64, 65, 1000])
def test_places_in_sorted_arrays(n, dtype, side):
    rng = np.random.default_rng(n)
    a, v = rng.integers(0, 60, n).astype(dtype), rng.integers(0, 66, (7, 9)).astype(dtype)
    if dtype[0] == "f":
        a[-3:], v.reshape(-1)[:3] = np.nan, [np.nan, np.inf, -np.inf]
    a.sort()
    want = np.searchsorted(a, v, side)
    for search in (fnp.searchsorted, fgrad.jit(fnp.searchsorted)):
        np.testing.assert_array_equal(np.asarray(search(a, v, side=side)), want)
    rows = fgrad.vmap(lambda a, v: fnp.searchsorted(a, v, side))(np.stack([a, a]), v[:2])
    np.testing.assert_array_equal(np.asarray(rows), want[:2])
    assert fnp.searchsorted(a, v[0, 0], side) == want[0, 0]


def test_places_of_many_numbers_in_a_large_array_take_little_memory():
    a, v = np.arange(300_000.0), np.linspace(-1, 300_001, 200_000)
    np.testing.assert_array_equal(np.asarray(fnp.searchsorted(a, v)), np.searchsorted(a, v))


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
@pytest.mark.parametrize("n, m", [(1, 1), (5, 3), (3, 5), (4, 4), (7, 1), (64, 33), (100, 17)])
def test_convolutions_of_vectors(n, m, dtype):
    rng = np.random.default_rng(n)
    a, v = (rng.integers(-9, 9, k).astype(dtype) for k in (n, m))
    a = a * (1 - 2j) if dtype == "complex64" else a
    for name in ("convolve", "correlate"):
        for mode in ("full", "same", "valid"):
            want = getattr(np, name)(a, v, mode)
            for compute in (getattr(fnp, name), fgrad.jit(getattr(fnp, name))):
                found = np.asarray(compute(a, v, mode=mode))
                np.testing.assert_array_equal(found, want.astype(found.dtype))


def test_one_nan_stands_for_all_where_the_number_of_elements_is_known():
    nan = np.nan
    assert str(fnp.unique([nan, nan, 1.0], size=3)) == "[ 1. nan  1.]"
    assert fnp.unique_counts(fnp.array([nan, nan, 1.0]), size=3).counts.tolist() == [1, 1, 1]
    rows = fnp.unique(fnp.array([[1.0, nan], [0.0, nan], [1.0, nan]]), axis=0, size=2)
    assert str(rows.tolist()) == "[[0.0, nan], [1.0, nan]]"


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("size", [2, 25])
def test_slices_that_differ_are_found_where_their_number_is_known(axis, size):
    x = np.random.default_rng(0).integers(0, 3, (20, 2, 3))
    want = np.unique(x, True, True, True, axis=axis)
    n = min(size, len(want[1]))

    def find(x):
        return fnp.unique(x, True, True, True, axis, size=size, fill_value=-1)
    for function in (find, fgrad.jit(find)):
        values, first, inverse, counts = map(np.asarray, function(x))
        values, wanted = np.moveaxis(values, axis, 0), np.moveaxis(want[0], axis, 0)
        np.testing.assert_array_equal(values[:n], wanted[:n])
        assert len(values) == size and (values[n:] == -1).all()
        np.testing.assert_array_equal(first[:n], want[1][:n])
        np.testing.assert_array_equal(counts[:n], want[3][:n])
        if n == len(want[1]):
            np.testing.assert_array_equal(inverse, want[2].reshape(-1))


@pytest.mark.parametrize("period", [360.0, -360.0, 100.0])
def test_interpolation_that_repeats(period):
    rng = np.random.default_rng(0)
    x, xp, fp = rng.uniform(-900, 900, (5, 40)), rng.uniform(-300, 300, 9), rng.normal(size=9)
    want = np.interp(x, xp, fp, period=period)
    for function in (fnp.interp, fgrad.jit(fnp.interp)):
        found = function(*map(fnp.array, (x, xp, fp)), period=period)
        np.testing.assert_allclose(np.asarray(found), want, atol=2e-3)
    with pytest.raises(ArgumentError, match="no period"):
        fnp.interp(x, xp, fp, period=0)


def test_shares_outside_of_0_and_1_are_refused_with_nan_too():
    with pytest.raises(RangeError, match="between 0 and 1"):
        fnp.nanquantile([1.0, 2.0, 3.0], 1.5)


def test_quantiles_among_infinities_are_infinite_and_of_nothing_nan():
    for q, method in ((1.0, "linear"), (0.75, "linear"), (0.6, "higher"), (0.5, "midpoint")):
        assert fnp.quantile(R, q, method=method).item() == np.inf
        assert fnp.nanquantile(R, q, method=method).item() == np.inf
    assert fnp.quantile(R, 0.3, method="lower").item() == 1
    assert np.isnan(fnp.nanmedian(np.zeros(0)).item())


def test_the_middle_of_ties_shares_the_derivative_by_its_weights():
    slope = fgrad.grad(lambda x: fnp.quantile(x, 0.375))(fnp.array([1.0, 1.0, 1.0]))
    assert slope.tolist() == [0.25, 0.75, 0.0]


def test_floats_that_no_int_holds_are_refused_alone_and_in_a_list():
    for given in (3e10, [3e10], [np.nan], np.inf, 3000000000):
        with pytest.raises(RangeError, match="does not fit into i32") as found:
            fnp.array(given, dtype="int32")
        assert "int64" in str(found.value) or given is np.inf
    assert fnp.array([1.7, -1.7], dtype="int32").tolist() == [1, -1]


def test_a_fraction_of_an_element_is_no_padding():
    with pytest.raises(ShapeError, match="whole numbers"):
        fnp.pad(np.ones(2), 1.5)


def test_constants_of_a_padding_are_one_pair_for_each_axis():
    with pytest.raises(ShapeError, match="one pair .before, after. per axis") as found:
        fnp.pad(np.ones((2, 2)), 1, constant_values=[1, 2, 3])
    assert "constant_values: f64[3]" in str(found.value)


def test_differences_are_taken_a_positive_number_of_times():
    with pytest.raises(RangeError, match="n times"):
        fnp.diff(np.ones(3), n=-1)


def test_the_fourth_derivative_of_sinc_at_0():
    f = fnp.sinc
    for _ in range(4):
        f = fgrad.grad(f)
    assert np.isclose(f(0.0).item(), np.pi ** 4 / 5, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int32"])
@pytest.mark.parametrize("bounds", [(64, 0, -1), (9, 2, -3), (5, 0, -1000), (0, 5, 1000),
                                    (0, 0, -1), (100, -1, -50), (3, 9, -1)])
def test_unsigned_numbers_are_counted_down(bounds, dtype):
    """A step of -1 did not fit into u32, though all numbers of the range do."""
    got = fnp.arange(*bounds, dtype=dtype)
    agree(got, np.arange(*bounds))
    agree(fgrad.jit(lambda: fnp.arange(*bounds, dtype=dtype))(), np.arange(*bounds))
    assert got.dtype == dtype
