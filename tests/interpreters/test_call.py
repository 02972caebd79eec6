"""The call operation: Programs made from Programs, and inlining."""

import numpy as np

import fgrad.numpy as fnp
from fgrad.core import as_value
from fgrad.interpreters.batch import Axis
from fgrad.interpreters.call import (
    batch_program, call, inline, jvp_program, split, transposed_program, vjp_program)
from fgrad.interpreters.stage import evaluate, stage
from fgrad.ir_text import all_programs
from fgrad.transforms import grad, linearize, make_ir
from fgrad.types import F64, ArrayType
from tests.interpreters.staged import near, staged

x, y = as_value(np.array([0.5, 1.0, 2.0])), as_value(np.array([3.0, -1.0, 2.0]))


def program_of(f, *args):
    return stage(f, [a.type for a in args], name="f", names=["x", "y"]).program.check()


def test_derived_programs_are_made_once():
    p = program_of(lambda x, y: fnp.sin(x) * y, x, y)
    assert p.derive(jvp_program, (True, False)) is p.derive(jvp_program, (True, False))


def test_jvp_program_gives_results_and_tangents():
    p = jvp_program(program_of(lambda x, y: (fnp.sin(x) * y, y), x, y), (True, False)).check()
    _, _, t, zero = evaluate(p, [x, y, x])
    near(t, np.cos(x) * y * x)
    near(zero, np.zeros(3))


def test_vjp_program_splits_into_forward_and_backward():
    first, second = vjp_program(program_of(lambda x, y: fnp.sin(x) * y, x, y), (True, True))
    out, *residuals = evaluate(first.check(), [x, y])
    near(out, np.sin(x) * y)
    dx, dy = evaluate(second.check(), [*residuals, x])
    near(dx, np.cos(x) * y * x)
    near(dy, np.sin(x) * x)


def test_transposed_program_of_a_linear_program():
    back = transposed_program(program_of(lambda x, y: fnp.sin(x) * y, x, y), (False, True)).check()
    near(evaluate(back, [x, y])[0], np.sin(x) * y)


def test_batch_program_puts_the_axis_in_front():
    p = batch_program(program_of(lambda x, y: x + y, x, y), (None, 1), Axis(2)).check()
    (out,) = evaluate(p, [x, as_value(np.ones((3, 2)))])
    near(out, np.broadcast_to(np.array(x) + 1, (2, 3)))


def test_split_passes_what_the_second_part_reads():
    p = program_of(lambda x, y: (fnp.sin(x), fnp.cos(x) * y), x, y)
    first, second = split(p, 1, 1)
    assert [v.type for v in first.outputs] == [ArrayType(F64, (3,))] * 2
    assert len(first.check().eqns) == 2 and len(second.check().eqns) == 1


def test_inline_replaces_calls_all_the_way_down():
    c = fnp.array(np.arange(3.0))
    inner = staged(lambda v: fnp.sin(v) * c)
    p = make_ir(grad(lambda x: fnp.sum(staged(lambda v: inner(v) + inner(v) * c)(x))))(x)
    flat = inline(p).check()
    assert len(all_programs(p)) > 1 and len(all_programs(flat)) == 1
    near(evaluate(flat, [x])[0], evaluate(p, [x])[0])
    assert [a for _, a in flat.hidden].count(c) == 1


def test_inline_of_a_call_that_returns_its_input():
    p = program_of(lambda x, y: staged(lambda a: (a, a))(x), x, y)
    assert inline(p).check().outputs == (p.inputs[0], p.inputs[0])


def test_linearize_transposes_calls():
    f = staged(lambda v: fnp.tanh(v) * v)
    _, push = linearize(f, x)
    _, plain = linearize(lambda v: fnp.tanh(v) * v, x)
    near(push(y), plain(y))


def test_a_call_without_arguments_or_results():
    p = program_of(lambda: ())
    assert call(program=p) == ()
