"""Calls of compiled functions: layouts of arguments, donated memory, closures, calls again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fgrad.numpy as fnp
from fgrad.core import Array
from fgrad.errors import DonationError
from fgrad.jitted import jit
from fgrad.transforms import grad

from tests.properties.test_compiled import assert_within
from tests.properties.test_transformed import close, floats, values, weighted
from tests.strategies import WIDE, examples, programs


@examples(60)
@given(programs(), st.data())
def test_donated_arguments_change_no_result(p, data):
    want = p(*values(p))
    donated = tuple(k for k in range(len(p.arrays)) if data.draw(st.booleans()))
    f = jit(p.function, donate_argnums=donated)
    for _ in range(4):                           # the third begins without Python
        args = [Array(a.copy()) for a in p.arrays]
        assert_within(f(*args), want, p.errors, f"donating {donated}")
        for k, (x, a) in enumerate(zip(args, p.arrays)):
            if k not in donated:
                np.testing.assert_array_equal(x, a)
            else:
                with pytest.raises(DonationError):
                    np.asarray(x)


@examples(40)
@given(programs())
def test_closed_over_arrays_and_arguments_are_alike(p):
    want = p(*values(p))
    assert_within(jit(lambda: p(*values(p)))(), want, p.errors, "all closed over")
    first, rest = values(p)[0], values(p)[1:]
    assert_within(jit(lambda x: p(x, *rest))(first), want, p.errors, "the rest closed over")


@examples(40)
@given(programs())
def test_calls_with_other_values_use_the_same_code(p):
    f = jit(p.function)
    f(*p.arrays)
    for k in range(2):
        others = [np.roll(a.reshape(-1), k + 1).reshape(a.shape) for a in p.arrays]
        with np.errstate(all="ignore"):
            want = [np.asarray(x) for x in p(*map(Array, others))]
        for x, y in zip(f(*others), want, strict=True):
            if y.dtype.kind != "f":
                np.testing.assert_array_equal(x, y)
    assert f.cache_info().misses == 1


@examples(25)
@given(programs(dtypes=("float64",), sizes=WIDE, steps=6, most=20_000, host=False))
def test_gradients_of_wider_arrays_are_the_same_compiled(p):
    f, xs = floats(p), values(p)
    derivative = grad(lambda xs: weighted(f(*xs)))
    close(jit(derivative)(xs), derivative(xs), 1e-8)


@examples(40)
@given(programs(dtypes=("float32", "float64", "int32", "bool"), steps=6, host=False))
def test_gradients_of_mixed_dtypes_are_the_same_compiled(p):
    f = floats(p)
    derivative = grad(lambda xs: weighted(f(*xs)), allow_int=True)
    close(jit(derivative)(values(p)), derivative(values(p)), 5e-3)


LAYOUTS = {
    "reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every second": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:]
    .view(x.dtype)
    .reshape(x.shape),
    "read only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "fgrad": lambda x: fnp.asarray(x),
    "a list": lambda x: fnp.array(x.tolist(), x.dtype),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_arguments_of_every_layout(layout, dtype):
    x = np.arange(35).reshape(5, 7).astype(dtype)
    given = LAYOUTS[layout](x)
    plain = np.array(np.asarray(given), dtype)
    f = jit(lambda x: (x + 1, fnp.sum(x, axis=0), x.T @ x, x))
    for _ in range(3):
        for got, want in zip(
            f(given), (plain + 1, plain.sum(0), plain.T @ plain, plain), strict=True
        ):
            np.testing.assert_array_equal(got, want)


@pytest.mark.filterwarnings("ignore::fgrad.errors.FgradWarning")
def test_scalars_of_every_kind_are_arguments():
    f = jit(lambda x: x * 2)
    for x in (
        1.5,
        3,
        True,
        np.float32(1.5),
        np.float64(1.5),
        np.int64(3),
        np.array(1.5),
        fnp.array(2),
        np.bool_(True),
    ):
        for _ in range(2):
            want, got = (
                Array(np.asarray(x)) * 2
                if isinstance(x, (np.generic, np.ndarray))
                else fnp.asarray(x) * 2
            ), f(x)
            assert (float(got), got.dtype) == (float(want), want.dtype)


def test_functions_without_arguments_or_results_and_with_constant_results():
    assert jit(lambda: None)() is None
    assert jit(lambda x: ())(1.0) == ()
    assert [float(x) for x in jit(lambda: (3, 2.5, fnp.ones(())))()] == [3, 2.5, 1]
    out = jit(lambda x: {"x": x, "again": x, "none": None, "n": 2})(fnp.ones(3))
    assert out["none"] is None and int(out["n"]) == 2
    np.testing.assert_array_equal(out["x"], out["again"])


def test_results_do_not_change_when_the_function_is_called_again():
    f = jit(lambda x: (x + 1, fnp.cumsum(x)))
    x = np.ones(1000, "f4")
    a, b = f(x)
    kept = np.array(a), np.array(b)
    for k in range(5):
        f(np.full(1000, k, "f4"))
    x[:] = 7
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(b, kept[1])
