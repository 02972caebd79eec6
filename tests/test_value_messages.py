"""What is said where Python asks for a value while compiling: who asked, and what to do instead."""

import numpy as np
import pytest

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
