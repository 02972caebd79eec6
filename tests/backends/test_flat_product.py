"""A product over four flat indices: along which of them an operand is read."""

import pytest

import fgrad.numpy as fnp
from fgrad import passes
from fgrad.backends.flat_product import FlatProduct
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import Contract
from fgrad.types import F32, ArrayType


@pytest.mark.parametrize("step", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_an_operand_is_read_along_its_smaller_steps(step, transposed):
    """Where neither step was 1, it was gathered along whatever came second."""
    def f(x, y):
        y = y[:, ::step]
        return fnp.matmul(x, (y + 1).T if transposed else y + 1)
    shapes = (40, 50), ((30, 50 * step) if transposed else (50, 30 * step))
    program = inline(stage(f, [ArrayType(F32, s) for s in shapes]).program)
    plan = passes.plan(program)
    (kernel,) = [k for k in plan.steps if any(isinstance(s, Contract) for s in k.body)]
    statement = next(s for s in kernel.body if isinstance(s, Contract))
    with kernel.space:
        product = FlatProduct(statement)
        read_rows = product.unit(product.b, product.depth, product.columns)
    assert read_rows == transposed
