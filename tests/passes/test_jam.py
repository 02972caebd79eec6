"""Rows side by side: sums that share what they read, and sums of short rows."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, index, lax, show
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import For
from fgrad.nn import softmax
from fgrad.passes.jam import together
from fgrad.passes.target import Target
from fgrad.types import ArrayType
from tests.passes.checking import assert_compiled_agrees, assert_plan_agrees

SERIAL = Target(vector_bytes=32, jam=1 << 20)
IN_PARTS = Target(vector_bytes=32, threads=3, region_cost=50, jam=1 << 20)
F32, F64 = np.dtype("f4"), np.dtype("f8")



def unit(x):
    """Rows of length 1 or so."""
    return x / fnp.sqrt(fnp.sum(x * x, axis=1, keepdims=True) + 0.5)


ROWS = {
    "by a column": lambda x: x @ fnp.sin(x[0]),
    "distances": lambda x: fnp.sum((x[:, None] - x[None]) ** 2, axis=-1),
    "largest": lambda x: fnp.max(x, axis=1),
    "place of the least": lambda x: fnp.argmin(x, axis=1),
    "sum and product": lambda x: (fnp.sum(x, axis=1), fnp.prod(fnp.cos(x), axis=1)),
    "variance": lambda x: fnp.var(x, axis=1),
    "all positive": lambda x: fnp.all(x > -2.5, axis=1),
    "length": lambda x: fnp.log1p(fnp.sqrt(fnp.sum(x * x, axis=1))),
    "length with gradient": grad(lambda x: fnp.sum(fnp.sqrt(fnp.sum(x * x, axis=1) + 1.0))),
    "weighed": lambda x: fnp.sum(fnp.exp(x) * fnp.arange(x.shape[1], dtype=x.dtype), axis=1),
    "softmax": lambda x: softmax(x, axis=1),
    "softmax with gradient": grad(lambda x: fnp.sum(softmax(x, axis=1)[:, 0])),
    "lower part": lambda x: fnp.sum(fnp.tril(x), axis=1),
    "columns of unit rows": lambda x: (unit(x), fnp.sum(unit(x), axis=0)),
    "running sum": lambda x: fnp.cumsum(x, axis=1),
    "running sum of squares from behind": lambda x: lax.cumsum(x * x, axis=1, reverse=True),
    "running largest, and products": lambda x: (lax.cummax(x, axis=1), lax.cumprod(x, axis=1)),
    "largest of each column": lambda x: (unit(x), fnp.max(unit(x) + 1.0, axis=0)),
}
FLOATS = ["f4", "f8", "f2"]
OF_FLOATS = [name for name in ROWS if "grad" in name or "column" in name] + ["weighed", "softmax"]
SHAPES = [(8, 1), (9, 16), (11, 20), (32, 33), (33, 64), (14, 130), (3, 40)]


@pytest.mark.parametrize("target", [SERIAL, IN_PARTS], ids=["serial", "parts"])
@pytest.mark.parametrize("shape", SHAPES[1:4])
@pytest.mark.parametrize("name", ROWS)
def test_rows_agree_with_the_oracle(name, shape, target):
    program = inline(stage(ROWS[name], [ArrayType(F64, shape)]).program)
    assert_plan_agrees(program, target)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name, dtype", [(name, t) for t in FLOATS for name in ROWS] + [
    (name, t) for t in ["i4", "i1"] for name in ROWS if name not in OF_FLOATS])
def test_rows_are_compiled_as_they_are_computed(name, shape, dtype):
    assert_compiled_agrees(ROWS[name], shape, dtype, 1.5)


@pytest.mark.parametrize("name", ["largest", "softmax", "variance", "length", "running sum"])
def test_the_rows_left_over_belong_to_the_last_thread(name):
    assert_compiled_agrees(ROWS[name], (5003, 20), "f4", 1.5)


def rows(shape, f=ROWS["distances"], target=SERIAL, least=2):
    """How many rows run at once in each loop of a program that has loops of `least` lanes."""
    program = inline(stage(f, [ArrayType(F32, shape)]).program)
    found, stack = [], [s for k in assert_plan_agrees(program, target).steps for s in k.body]
    while stack:
        s = stack.pop()
        inner = s.body if isinstance(s, For) else []
        found += [s.rows] if any(isinstance(t, For) and t.width >= least for t in inner) else []
        stack += inner
    return found


def test_rows_that_share_what_they_read_or_are_short_run_at_once():
    assert rows((32, 24)) == [8] and rows((33, 24)) == [8]
    assert rows((32, 400)) == [4]
    assert rows((32, 24), lambda x: fnp.max(x, axis=1)) == [8]
    assert rows((32, 400), lambda x: fnp.max(x, axis=1)) == [1]
    assert rows((32, 400), lambda x: x @ x[0]) == [4]
    assert rows((32, 24), lambda x: fnp.all(x > 0, axis=1)) == [1]
    assert rows((32, 24), lambda x: fnp.var(x, axis=1)) == [8]
    assert rows((7, 24), lambda x: fnp.var(x, axis=1)) == [1]
    assert rows((32, 24), target=Target(vector_bytes=32)) == [1]


def test_running_sums_of_four_rows_do_not_wait_for_each_other():
    """Each addition waits for the one before, so that a row alone took two to three times as long.
    """
    assert rows((9, 400), ROWS["running sum"], least=1) == [4]
    assert rows((9, 400), lambda x: lax.cumprod(fnp.sin(x), axis=1, reverse=True), least=1) == [4]
    assert rows((7, 400), ROWS["running sum"], least=1) == [1]


def test_rows_that_come_from_memory_run_at_once_where_much_is_computed():
    far = Target(vector_bytes=32, jam=4096)
    largest, norm = lambda x: fnp.max(x, axis=1), lambda x: x / fnp.sqrt(fnp.sum(x * x, 1)[:, None])
    assert rows((40, 24), largest, far) == [8] and rows((44, 24), largest, far) == [1]
    assert rows((20, 24), norm, far) == [8] and rows((22, 24), norm, far) == [1]
    assert rows((44, 400), lambda x: x @ x[0], far) == [1]
    assert rows((44, 24), softmax, far) == [4] and rows((44, 80), softmax, far) == [1]
    assert rows((44, 80), softmax) == [4] and rows((44, 200), softmax) == [1]


@pytest.mark.parametrize("name", ["columns of unit rows", "largest of each column"])
def test_what_rows_add_up_by_columns_is_added_at_once(name):
    """A column's sum is read and written once for all rows that run at once, behind the rest."""
    program = inline(stage(ROWS[name], [ArrayType(F32, (33, 24))]).program)
    kernel = assert_plan_agrees(program, SERIAL).steps[0]
    loop = kernel.body[-1]
    with kernel.space:
        columns = together(loop, index.of(0), loop.rows, None)[-1]
    assert loop.rows == 8 and len(loop.body[-1].body) == 3
    assert [bool(getattr(s, "how", None)) for s in columns.body] == [False] * 16 + [True]


def test_short_rows_of_elementary_functions_are_four():
    assert rows((34, 24), softmax) == [4]


def test_long_rows_of_elementary_functions_run_alone_whatever_they_share():
    """Four exponentials at once lacked registers: densities took twice as long."""
    def densities(x):
        return fnp.sum(fnp.exp(-(x[:, :1] - x[0]) ** 2), axis=1)
    assert rows((32, 400), densities) == [1] and rows((32, 24), densities) == [4]


def test_rows_of_elementary_functions_at_once_have_no_vectors_side_by_side():
    """They take the place of these; and a row is as long as before, whatever stands side by side.
    """
    def exp_of_rows(x):
        return fnp.sum(fnp.exp(x), axis=1)
    side = Target(vector_bytes=32, jam=1 << 20, side=4)
    for columns, at_once, width in [(190, 4, 8), (24, 4, 8), (200, 1, 16), (1000, 1, 16)]:
        program = inline(stage(exp_of_rows, [ArrayType(F32, (32, columns))]).program)
        [kernel] = assert_plan_agrees(program, side).steps
        [loop] = [s for s in kernel.body if isinstance(s, For)]
        [inner] = [s for s in loop.body if isinstance(s, For)]
        assert (loop.rows, inner.width) == (at_once, width)


def test_how_many_rows_run_at_once_is_printed():
    text = show(lambda x: fnp.max(x, axis=1), ArrayType(F32, (4000, 20)), stage="schedule")
    assert "(8 rows at once" in text
