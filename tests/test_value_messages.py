"""What is said where Python asks for a value while compiling: who asked, and what to do instead."""

import pickle
import traceback

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import jit
from fgrad.errors import ArgumentError, ConcretizationError, LeakError
from tests.messages import COLUMNS, message

N = fnp.array(3)

ASKS = [(lambda n: [k for k in range(n)], "`range`", "fgrad.lax.fori_loop"),
        (lambda n: fnp.zeros((n, 3)), "a shape or size", "static_argnames='n'"),
        (lambda n: [1, 2, 3][n], "the index of a Python list", "fgrad.numpy.array(list)[i]"),
        (lambda n: max(n, 0), "`max`", "fgrad.numpy.maximum(a, b)"),
        (lambda n: min(n, 0), "`min`", "fgrad.numpy.minimum(a, b)"),
        (lambda n: sorted([n, n]), "`sorted`", "fgrad.numpy.sort(x)")]


@pytest.mark.skipif(not COLUMNS, reason="before Python 3.11 only the line is known")
@pytest.mark.parametrize("function, asked, fix", ASKS)
def test_what_asks_for_a_value_is_named_with_what_does_the_same(function, asked, fix):
    said = message(ConcretizationError, jit(function), N)
    assert said.startswith(f"{asked} needs a value, but while `<lambda>` is compiled")
    assert fix in said


@pytest.mark.parametrize("read", [float, int, bool, np.asarray, lambda x: x.item()])
def test_a_value_that_is_read_after_its_function_has_ended_was_kept(read):
    kept = []
    jit(kept.append)(fnp.array(1.0))
    said = message(LeakError, read, kept[0])
    assert "used outside of the jit call" in said


def test_a_result_that_is_no_array_shows_the_line_and_what_to_do():
    said = message(ArgumentError, jit(lambda x: {"name": "a"}), N)
    assert "`<lambda>` returned a str, which is no array." in said
    assert "messages.py:N" in said and "fix        return arrays" in said


def leaked(transform):
    """A value of a transformation that is over."""
    kept = []
    transform(lambda x: kept.append(x) or x.sum())(fnp.ones(3))
    return kept[0]


def donated():
    x = fnp.ones(300)
    fgrad.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x


def augmented(x):
    a = np.ones(3, "f4")
    a += x


@pytest.mark.parametrize("use", [
    float, int, bool, str, list, np.asarray, pickle.dumps, augmented, lambda x: x.tolist(),
    lambda x: x.item(), lambda x: x.T, lambda x: x.flat, lambda x: 5 in x, lambda x: round(x),
    lambda x: np.add(x, 1, out=np.ones(3)), lambda x: np.dot(x, x), lambda x: f"{x:.2f}",
    lambda x: [1, 2][x], lambda x: range(x), lambda x: x[0], lambda x: x + 1, lambda x: x < "a",
    lambda x: x.nothing, lambda x: x.block_until_ready(), lambda x: x._repr_html_(),
    lambda x: np.from_dlpack(x), lambda x: fnp.zeros((10**7, 10**7))])
@pytest.mark.parametrize("make", [lambda: leaked(fgrad.jit), lambda: leaked(fgrad.grad), donated,
                                  lambda: fnp.ones(3), lambda: fnp.array(1.5)],
                         ids=["jit", "grad", "donated", "array", "scalar"])
def test_whatever_asks_for_a_value_the_traceback_shows_no_line_of_the_library(use, make):
    x = make()
    try:
        use(x)
    except Exception as error:
        files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
        assert files == {__file__}


def test_a_format_of_numbers_is_for_one_number():
    assert f"{fnp.array(1.234):.1f} {fnp.ones(2)}" == "1.2 [1. 1.]"
    with pytest.raises(ArgumentError, match="several elements has no format '.2f'"):
        f"{fnp.ones(3):.2f}"


def test_a_float_is_no_index():
    assert [1, 2, 3][fnp.array(1)] == 2
    for x in (fnp.array(1.5), fnp.array(True)):
        with pytest.raises(ArgumentError, match="an index is an int"):
            [1, 2, 3][x]
