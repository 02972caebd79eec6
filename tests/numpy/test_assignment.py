"""What is proposed for `x[i] = y` is Python, and does what was meant."""

from types import SimpleNamespace

import pytest

import fgrad.numpy as fnp
from fgrad.errors import MutationError
from fgrad.numpy.methods import rewritten

CASES = [
    ("x[0, 1] = 1.0", "x = x.at[0, 1].set(1.0)"),
    ("x[:, 0] = 1.0", "x = x.at[:, 0].set(1.0)"),
    ("x[..., 1:2, None] += y", "x = x.at[..., 1:2, None].add(y)"),
    ("x[0][1] = 1", "x = x.at[0, 1].set(1)"),
    ("x[0][1:] = 1", "x = x.at[0, 1:].set(1)"),
    ("x[0] = 1, 2", "x = x.at[0].set((1, 2))"),
    ("p['w'][0][:, 1] *= 2", "p['w'] = p['w'].at[0, :, 1].multiply(2)"),
    ("rows[0][1] = 2", "rows[0] = rows[0].at[1].set(2)"),
    ("box.x[:, 0] = 1.0", "box.x = box.x.at[:, 0].set(1.0)"),
    ("x[1:][0] = 1", None),
    ("f()[0] = 1", None),
    ("x[0] = z = 1", None),
    ("x[0], z = 1, 2", None)]


@pytest.mark.parametrize("text, proposed", CASES)
def test_the_line_that_is_proposed_is_python(text, proposed):
    x, p, y = fnp.ones((2, 3)), {"w": fnp.ones((2, 3, 4))}, 1.0
    rows, box = [fnp.ones(2)], SimpleNamespace(x=x)
    assert (x, p, y, rows, box) and rewritten(text) == proposed
    if proposed is not None:
        compile(proposed, "proposed", "exec")


def test_where_no_line_can_be_written_the_form_is_shown():
    def f():
        return fnp.ones(2)
    with pytest.raises(MutationError, match=r"write x = x.at\[i\].set\(y\)"):
        f()[0] = 1
