"""Every second, third or fourth element, and backwards, are picked from whole vectors."""

import re

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import ArrayType, jit, show

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "bool"]


def drawn(shape, dtype):
    x = np.random.default_rng(3).integers(-50, 50, shape)
    return fnp.asarray(x).astype(dtype)


def agree(f, *args):
    """The compiled function gives what NumPy's rules give."""
    for got, want in zip(jit(f, device="cpu")(*args), f(*args), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", [2, 3, 4, 5, -1, -2, -3, -4, -5])
@pytest.mark.parametrize("n", [1, 16, 33, 100])
def test_every_so_many(dtype, step, n):
    k = abs(step)
    agree(lambda x: [x[j::k][:n][::1 if step > 0 else -1] for j in range(k)],
          drawn(n * k, dtype))


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
@pytest.mark.parametrize("rows", [1, 15, 64, 70])
def test_columns_of_rows(rows, columns):
    """The last row is the end of the array."""
    def f(x):
        parts = [x[:, j] for j in range(columns)]
        return parts[0] - parts[-1], sum(p * p for p in parts), x[::-1, 1], x[:, ::-1] + x
    agree(f, drawn((rows, columns), "float32"))


def test_an_array_that_is_not_whole_steps_is_not_read_over_its_end():
    for n in range(60, 72):
        agree(lambda x: (x[::3] * 2, x[1::2] + 1, x[3::4], x[2::-1], x[::-3]),
              drawn(n, "float32"))


def test_pixels_in_a_border():
    x = drawn((1, 12, 70, 3), "float32")
    agree(lambda x: (fnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))[:, ::2, ::2, 1],), x)


def test_the_vectors_are_read_once_for_all_columns():
    def f(x):
        return x[:, 0] * x[:, 1] + x[:, 2]
    text = show(f, ArrayType("float32", (1000, 3)), stage="llvm", device="cpu")
    (size,) = {int(n) for n in re.findall(r"= load <(\d+) x float>", text)}
    assert size % 3 == 0
    assert text.count(f"= shufflevector <{size} x ") == 3 * text.count(f"= load <{size} x ") > 0
