"""Random programs through the passes: values stay, forms are well formed, text parses back."""

import numpy as np
from hypothesis import given

from fgrad import passes
from fgrad.backends.reference import run_plan, run_program
from fgrad.core import Array
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.ir_text import canonical, parse
from fgrad.loop_check import check_plan
from fgrad.passes.share import share
from fgrad.passes.simplify import simplify
from fgrad.transforms import grad, make_ir

from tests.properties.test_transformed import floats, values, weighted
from tests.strategies import SOME, examples, programs


def program_of(p):
    """The inlined Program of a RandomProgram."""
    return inline(stage(p.function, [Array(a).type for a in p.arrays], name="f").program.check())


def same(got, want):
    """Equal in every bit, NaN with NaN."""
    for x, y in zip(got, want, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_array_equal(x, y)


@examples(60)
@given(programs())
def test_simplify_and_share_keep_every_value_and_are_done_after_one_round(p):
    program = program_of(p)
    want = run_program(program, p.arrays)
    simple = simplify(program).check()
    same(run_program(simple, p.arrays), want)
    assert canonical(simplify(simple)) == canonical(simple)
    shared = share(simple).check()
    same(run_program(shared, p.arrays), want)
    assert canonical(share(shared)) == canonical(shared)


@examples(60)
@given(programs())
def test_a_printed_program_parses_back_and_has_one_canonical_text(p):
    program = program_of(p)
    again = parse(str(program)).check()
    assert str(parse(str(again))) == str(again)
    assert canonical(again) == canonical(program)
    if not program.hidden:
        same(run_program(again, p.arrays), run_program(program, p.arrays))
    assert canonical(program_of(p)) == canonical(program)


@examples(30)
@given(programs(dtypes=("float64",), sizes=SOME, steps=5, host=False))
def test_gradients_go_through_the_passes_with_their_values(p):
    f, xs = floats(p), values(p)
    program = inline(make_ir(grad(lambda xs: weighted(f(*xs))))(xs).check())
    want = run_program(program, p.arrays)
    simple = share(simplify(program)).check()
    for x, y in zip(run_program(simple, p.arrays), want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * np.abs(y).max(initial=1))
    plan = passes.plan(program)
    check_plan(plan)
    for x, y in zip(run_plan(plan, p.arrays), want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * np.abs(y).max(initial=1))
