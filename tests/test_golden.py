"""Printed programs and loops of well-known functions, in tests/golden; parsed back and run."""

import sys

import numpy as np
import pytest

from fgrad import make_ir, passes, tree
from fgrad.backends.reference import run_plan, run_program
from fgrad.interpreters.call import inline
from fgrad.ir_text import canonical, parse

from tests import golden_programs
from tests.passes.golden import assert_golden

W = {"w1": (4, 5), "b1": (5,), "w2": (5, 2), "b2": (2,)}
SHAPES = {
    "loss":          [(3, 2), (2,), (8, 3), (8, 2)],
    "loss_gradient": [(3, 2), (2,), (8, 3), (8, 2)],
    "softmax":       [(6, 10)],
    "logsumexp":     [(6, 10)],
    "layernorm":     [(6, 10), (10,), (10,)],
    "mlp_gradient":  [W, (8, 4), (8, 2)],
    "attention":     [(2, 5, 4), (2, 7, 4), (2, 7, 3)],
}
COLUMNS = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 does not know where in a line an operation is"
)
TARGET = passes.Target(vector_bytes=32, threads=2)


def arguments(name):
    rng = np.random.default_rng(1)
    return [
        tree.map(
            lambda s: rng.standard_normal(s).astype("f4"),
            shape,
            is_leaf=lambda s: isinstance(s, tuple),
        )
        for shape in SHAPES[name]
    ]


@pytest.mark.parametrize("name", SHAPES)
def test_the_printed_program_parses_back_and_runs(name):
    function, args = getattr(golden_programs, name), arguments(name)
    program = make_ir(function)(*args).check()
    again = parse(str(program)).check()
    assert canonical(again) == canonical(program)
    flat = [np.asarray(a) for a in tree.leaves(args)]
    want = [np.asarray(x) for x in tree.leaves(function(*args))]
    for found in (run_program(again, flat), run_plan(passes.plan(inline(program), TARGET), flat)):
        for x, y in zip(found, want, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


@COLUMNS
@pytest.mark.parametrize("name", SHAPES)
def test_the_program_is_printed(name):
    assert_golden(f"{name}.ir", str(make_ir(getattr(golden_programs, name))(*arguments(name))))


@COLUMNS
@pytest.mark.parametrize("name", [name for name in SHAPES if name != "mlp_gradient"])     # 53 lines
def test_the_loops_are_printed(name):
    program = inline(make_ir(getattr(golden_programs, name))(*arguments(name)))
    assert_golden(f"{name}.small.loops", str(passes.plan(program, TARGET)))
