"""No name twice: the user's names of values, and the letters of loops."""

import fgrad.numpy as fnp
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.types import ArrayType
from tests.passes.checking import TARGETS, assert_plan_agrees


def test_loops_have_letters_that_no_value_of_the_user_has():
    def f(x, table):
        i = fnp.floor(x * 3).astype("int32")
        return fnp.take(table, i, mode="clip") * fnp.take(table, i + 1, mode="clip")
    program = inline(stage(f, [ArrayType("float32", (5, 3)), ArrayType("float32", (9,))]).program)
    for target in TARGETS:
        text = str(assert_plan_agrees(program, target))
        assert "i: i32 = " in text and " i in 0.." not in text, text
