"""Programs of many operations: no recursion, and memory that grows as they do."""

import gc

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from benchmarks.long_programs import chain, megabytes
from fgrad import passes
from fgrad.backends.llvm import module
from fgrad.compile import uncollected


pytestmark = pytest.mark.filterwarnings("ignore:a Python loop was unrolled")


def test_twenty_thousand_operations_are_traced_differentiated_and_evaluated():
    f, x = chain(20_000), fnp.ones(3)
    program = fgrad.make_ir(f)(x)
    assert len(program.eqns) == 20_001
    value, tangent = fgrad.jvp(f, (x,), (x,))
    grad = fgrad.grad(f)(x)
    np.testing.assert_allclose(np.sum(np.asarray(grad)), tangent, rtol=1e-3)
    np.testing.assert_allclose(fgrad.vmap(f)(x[None]), [value], rtol=1e-6)
    assert len(fgrad.make_ir(fgrad.grad(f))(x).eqns) < 5 * 20_000


def test_a_compiled_chain_of_two_thousand_operations_agrees_with_the_eager_one():
    f, x = chain(2_000), fnp.linspace(0.1, 1, 5)
    np.testing.assert_allclose(fgrad.jit(fgrad.grad(f))(x), fgrad.grad(f)(x), rtol=1e-3, atol=1e-6)


def test_memory_of_traces_and_gradients_is_linear_in_their_length():
    x = fnp.ones(3)
    for transform in (fgrad.make_ir, fgrad.grad):
        short, long = (megabytes(transform(chain(n)), x) for n in (2_000, 8_000))
        assert long < 8 * short                  # four times as long; squared it would be 16


def test_compiling_leaves_nothing_to_the_garbage_collector():
    program = fgrad.make_ir(fgrad.grad(chain(50)))(fnp.ones(3))
    module.Module(passes.plan(program, module.host_target()))
    gc.collect()
    with uncollected():
        module.Module(passes.plan(program, module.host_target()))
        assert gc.collect() == 0
