"""Random programs give compiled what they give at once, and what both oracles say."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrad import compile as driver
from fgrad import config, passes
from fgrad.backends.llvm import module
from fgrad.backends.reference import run_plan, run_program
from fgrad.core import Array
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.jitted import jit

from tests.strategies import NARROW, WIDE, examples, programs

OPENCL = any(d.name.startswith("opencl") for d in driver.devices())


def together(batch):
    """(function, arrays, errors) of several programs, so that they are compiled at once."""
    arrays = [a for p in batch for a in p.arrays]

    def function(*values):
        values = iter(values)
        return tuple(x for p in batch for x in p(*[next(values) for _ in p.arrays]))
    return function, arrays, [e for p in batch for e in p.errors]


def assert_within(got, want, errors, what):
    """Equal shapes and dtypes; floats apart by a few times their bound."""
    assert len(got) == len(want)
    for k, (x, y, error) in enumerate(zip(got, want, errors)):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype), f"{what}: result {k}"
        if y.dtype.kind == "f":
            np.testing.assert_allclose(x.astype(float), y.astype(float), rtol=0, atol=16 * error,
                                       err_msg=f"{what}: result {k}")
        else:
            np.testing.assert_array_equal(x, y, err_msg=f"{what}: result {k}")


@examples(120)
@given(st.lists(programs(), min_size=1, max_size=4))
def test_jit_gives_what_the_function_gives(batch):
    function, arrays, errors = together(batch)
    want = function(*[Array(a) for a in arrays])
    f = jit(function)
    assert_within(f(*arrays), want, errors, "jit")
    assert_within(f(*map(Array, arrays)), want, errors, "the second call of jit")


@examples(60)
@given(programs(sizes=WIDE, most=20_000))
def test_jit_gives_what_the_function_gives_for_wider_arrays(p):
    f = jit(p.function)
    assert_within(f(*p.arrays), p(*map(Array, p.arrays)), p.errors, "jit")


@examples(60)
@given(programs(dtypes=NARROW, sizes=WIDE, most=20_000))
def test_jit_gives_what_the_function_gives_for_narrow_dtypes(p):
    assert_within(jit(p.function)(*p.arrays), p(*map(Array, p.arrays)), p.errors, "jit")


@examples(40)
@given(st.lists(programs(host=False), min_size=2, max_size=5))
def test_jit_gives_what_the_function_gives_with_a_module_for_each_kernel(batch):
    """What kernels share is defined in one of the modules, and found by the others."""
    function, arrays, errors = together(batch)
    want = function(*map(Array, arrays))
    driver.clear_caches()
    with (patch.object(module, "BATCH", 0), patch.object(config, "processors", lambda: 3),
          patch.dict("os.environ", FGRAD_CACHE="0")):
        got = jit(function)(*arrays)
    assert_within(got, want, errors, "jit")


@pytest.mark.skipif(not OPENCL, reason="no OpenCL device")
@examples(15)
@given(st.lists(programs(host=False), min_size=2, max_size=4))
def test_on_opencl_jit_gives_what_the_function_gives(batch):
    function, arrays, errors = together(batch)
    want = function(*map(Array, arrays))
    assert_within(jit(function, device="opencl")(*arrays), want, errors, "OpenCL")


@examples(150)
@given(programs(steps=8))
def test_both_oracles_give_what_the_function_gives(p):
    want = p(*[Array(a) for a in p.arrays])
    program = inline(stage(p, [Array(a).type for a in p.arrays]).program.check())
    assert_within(run_program(program, p.arrays), want, p.errors, "the Program")
    assert_within(run_plan(passes.plan(program), p.arrays), want, p.errors, "the Plan")
