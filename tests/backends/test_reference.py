"""The two oracles agree with each other, and notice what is out of bounds or was never written."""

import numpy as np
import pytest

from fgrad import passes
from fgrad.backends import base, reference
from fgrad.core import Array, array_in, memory_of
from fgrad.index import of, plus
from fgrad.loop import Store
from fgrad import scalar
from fgrad.types import BOOL, DTYPES, F32, computed, held_as
from tests.passes import programs
from tests.passes.programs import Build, arrays_for


def test_programs_are_run_by_numpy_rules():
    program = programs.softmax(3, 4)
    (x,) = arrays_for(program)
    (y,) = reference.run_program(program, [x])
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "logsumexp", "layernorm", "layernorm_gradient"])
def test_plans_are_run_one_element_at_a_time(name):
    program = getattr(programs, name)(4, 5)
    arrays = arrays_for(program)
    plan = passes.plan(program)
    for got, want in zip(reference.run_plan(plan, arrays), reference.run_program(program, arrays)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions_are_numpys(dtype, to):
    p = Build("f")
    x = p.input("x", 6, dtype=dtype)
    program = p.done(p.convert(x, dtype=to))
    values = np.array([0, 1, 2, 1, 0, 3]).astype(computed(dtype))
    memory = memory_of(array_in(values, dtype))
    (got,) = reference.run_plan(passes.plan(program), [memory])
    (want,) = reference.run_program(program, [memory])
    assert got.dtype == want.dtype == held_as(to)
    np.testing.assert_array_equal(got, want)
    if to == BOOL:
        np.testing.assert_array_equal(got, values != 0)


def test_a_store_out_of_bounds_is_noticed():
    plan = passes.plan(programs.chain(2, size=4))
    (loop,) = plan.steps[0].body
    with plan.steps[0].space:
        s = loop.body[0]
        loop.body[0] = Store(s.buffer, plus(of(loop.var), 1), scalar.const(0, F32))
    with pytest.raises(AssertionError, match="outside"):
        reference.run_plan(plan, [np.zeros(4, F32)])


def test_it_is_a_device_like_any_other():
    backend = base.find("reference")
    plan = passes.plan(programs.softmax(2, 3), backend.target("reference"))
    (x,) = arrays_for(programs.softmax(2, 3))
    (y,) = backend.compile(plan, "reference")([Array(x)])
    np.testing.assert_allclose(y.np.sum(1), 1, rtol=1e-6)
    assert backend.devices()[0][0] == "reference"
