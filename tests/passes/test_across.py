"""Loops with vectors that hold loops: sums and softmaxes over an axis that is not the last."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, jit, lax, linear_transpose
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.loop import For
from fgrad.nn import softmax
from fgrad.passes.target import Target
from fgrad.scipy.special import logsumexp
from fgrad.types import ArrayType
from tests.passes.checking import assert_compiled_agrees, assert_plan_agrees

ACROSS = Target(vector_bytes=64, across=True)
IN_PARTS = Target(vector_bytes=32, threads=3, region_cost=50, across=True)
F32, F64 = np.dtype("f4"), np.dtype("f8")


def normalized(x):
    d = x - fnp.mean(x, axis=1, keepdims=True)
    return d / fnp.sqrt(fnp.mean(d * d, axis=1, keepdims=True) + 1e-5)


COLUMNS = {
    "sum": lambda x: fnp.sum(x, axis=1),
    "position": lambda x: fnp.argmax(x, axis=1),
    "sum and largest": lambda x: (fnp.sum(x * x, axis=1), fnp.max(x, axis=1)),
    "softmax": lambda x: softmax(x, axis=1),
    "softmax with gradient": grad(lambda x: fnp.sum(softmax(x, axis=1) ** 2)),
    "logsumexp": lambda x: logsumexp(x, axis=1),
    "normalized": normalized,
    "normalized with gradient": grad(lambda x: fnp.sum(normalized(x) ** 3)),
    "running sum": lambda x: fnp.cumsum(x, axis=1),
    "running product": lambda x: lax.cumprod(fnp.sin(x), axis=1, reverse=True),
    "running counts": lambda x: fnp.cumsum(x[..., :1] == fnp.arange(x.shape[2]), axis=1),
    "weighed": lambda x: fnp.sum(x * fnp.arange(x.shape[1], dtype=x.dtype)[:, None], axis=1),
    "of two axes": lambda x: fnp.sum(fnp.exp(x.reshape(2, -1, x.shape[1], x.shape[2])), (1, 2)),
}
SHAPES = [(2, 1, 8), (4, 2, 9), (2, 9, 16), (6, 12, 33), (4, 33, 66), (2, 20, 130), (4, 17, 64)]


@pytest.mark.parametrize("target", [ACROSS, IN_PARTS], ids=["serial", "parts"])
@pytest.mark.parametrize("shape", SHAPES[2:5])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_agree_with_the_oracle(name, shape, target):
    program = inline(stage(COLUMNS[name], [ArrayType(F64, shape)]).program)
    assert_plan_agrees(program, target)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i1"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_compiled_as_they_are_computed(name, shape, dtype):
    if dtype[0] == "i" and ("grad" in name or "soft" in name):
        pytest.skip("integers have no gradient")
    assert_compiled_agrees(COLUMNS[name], shape, dtype, 3)


def loops(body):
    for s in body:
        if isinstance(s, For):
            yield s
            yield from loops(s.body)


@pytest.mark.parametrize("name", ["softmax", "normalized", "logsumexp"])
def test_columns_of_a_row_are_one_kernel_with_vectors_across(name):
    program = inline(stage(COLUMNS[name], [ArrayType(F32, (4, 20, 64))]).program)
    (kernel,) = assert_plan_agrees(program, ACROSS).steps
    (across,) = [s for s in loops(kernel.body) if s.width > 1]
    assert across.width == 64 and list(loops(across.body))


def test_windows_between_zeros_have_vectors_across():
    """The gradient of images of one channel: each window was a loop of three steps, 6 times slower.
    """
    def back(ct, w):
        (x,) = linear_transpose(lambda x: lax.conv_general_dilated(x, w, (1, 1), "VALID"),
                                ArrayType(F32, (4, 1, 9, 28)))(ct)
        return x
    program = inline(stage(back, [ArrayType(F32, (4, 6, 7, 26)), ArrayType(F32, (6, 1, 3, 3))]
                           ).program)
    (kernel,) = assert_plan_agrees(program, ACROSS).steps
    (across,) = [s for s in loops(kernel.body) if s.width > 1]
    assert across.var.extent == 28 and len([*loops(across.body)]) == 3


def test_running_counts_of_classes_have_vectors_across():
    """Nothing is read along the classes; each count was a loop of its own, 24 times slower."""
    def counts(x):
        return fnp.cumsum(x[:, None] == fnp.arange(16), axis=0)
    program = inline(stage(counts, [ArrayType(F32, (60,))]).program)
    (kernel,) = assert_plan_agrees(program, ACROSS).steps
    (across,) = [s for s in loops(kernel.body) if s.width > 1]
    assert across.var.extent == 16 and len([*loops(across.body)]) == 1


def test_sums_of_one_vector_are_several_in_turn():
    program = inline(stage(COLUMNS["sum"], [ArrayType(F32, (4, 20, 16))]).program)
    (kernel,) = assert_plan_agrees(program, ACROSS).steps
    assert [s.unroll for s in loops(kernel.body)] == [1, 1, 4]


def test_what_does_not_lie_side_by_side_keeps_its_vectors_inside():
    def f(x, y):
        return fnp.sum(fnp.abs(x[:, None] - y[None]), axis=1)
    program = inline(stage(f, [ArrayType(F32, (20,)), ArrayType(F32, (40,))]).program)
    for s in assert_plan_agrees(program, ACROSS).steps:
        assert all(not list(loops(t.body)) for t in loops(s.body) if t.width > 1)


@pytest.mark.parametrize("shape, axis", [((3, 5), 1), ((40, 3), 1), ((2, 3, 40), 1), ((3, 9), 0)])
def test_a_sum_of_negative_zeros_is_zero_however_short(shape, axis):
    """Short loops that are written out began with their first element, so it was -0.0."""
    x = np.full(shape, -0.0, "f4")
    for f in (lambda x: fnp.sum(x, axis=axis), lambda x: jit(fnp.sum, static_argnums=1)(x, axis)):
        assert not np.signbit(np.asarray(f(x))).any() and not np.signbit(x.sum(axis)).any()


@pytest.mark.parametrize("points", [300, 600])
def test_of_many_elements_each_is_counted_in_a_lane(points):
    """How many bounds are below each of many numbers: a sum of lanes for each took 4 times."""
    def f(bounds, x):
        return fnp.sum(bounds <= x[:, None], axis=1)
    program = inline(stage(f, [ArrayType(F32, (20,)), ArrayType(F32, (points,))]).program)
    (kernel,) = assert_plan_agrees(program, ACROSS).steps
    assert any(list(loops(s.body)) for s in loops(kernel.body) if s.width > 1) == (points > 512)
