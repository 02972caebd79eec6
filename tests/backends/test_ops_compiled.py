"""Every operation, in every dtype, gives compiled what its NumPy rule gives."""

import numpy as np
import pytest

from fgrad import compile as driver
from fgrad.interpreters.stage import stage
from fgrad.types import SCALARS
from tests.test_ops_table import NAMES, OPERATIONS, drawn, dtypes, outputs, skipped, wrapped
from tests.tolerance import assert_close


def every_case(name):
    """(case, arguments) of an operation in each of its dtypes."""
    return [(case, args) for dtype in dtypes(name) for case, args in drawn(name, dtype)
            if not skipped(name, case, args)]


def all_in_one(op, cases):
    """(function of all arrays, the arrays): one program, so one compilation serves all cases."""
    arrays = wrapped([a for _, args in cases for a in args if a.__class__ not in SCALARS])

    def function(*values):
        values = iter(values)
        return [op(*[a if a.__class__ in SCALARS else next(values) for a in args], **case.params)
                for case, args in cases]
    return function, arrays


def compiled(op, cases, device):
    """The results of all cases, compiled in one program: a flat list of NumPy arrays."""
    function, arrays = all_in_one(op, cases)
    program = stage(function, [a.type for a in arrays], name=op.name).program
    return driver.compiled(program, device)(arrays)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_for_the_cpu_every_operation_agrees_with_numpy(name):
    op, cases = OPERATIONS[name], every_case(name)
    got = compiled(op, cases, "cpu")
    want = [(case, args, x) for case, args in cases
            for x in outputs(op(*wrapped(args), **case.params))]
    assert len(got) == len(want)
    for x, (case, args, y) in zip(got, want):
        assert x.type is y.type
        assert_close(x, y, length=max([np.size(a) for a in args], default=1), dtype=y.dtype)
