"""Programs as text: print, parse, compare."""

import re
import sys
import time

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import ops
from fgrad.errors import ParseError
from fgrad.interpreters.stage import evaluate
from fgrad.ir import Equation, Program, Var
from fgrad.ir_text import canonical, parse, same, show
from fgrad.transforms import grad, hessian, jvp, make_ir, vmap
from fgrad.types import F64, ArrayType
from tests.interpreters.staged import near, staged
from tests.messages import message


def loss(w, b, x, y):
    h = fnp.tanh(x @ w + b)
    return fnp.sum((h - y) ** 2)


ARGS = [np.ones(s, "f4") for s in ((3, 2), (2,), (8, 3), (8, 2))]


def lines_as_n(text):
    return re.sub(r":\d+ ", ":N ", text)


def left(program):
    """The text without the right column."""
    return "\n".join(line.partition("│")[0].rstrip() for line in show(program).split("\n"))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before 3.11 code has no columns")
def test_names_and_lines_of_the_user_are_printed():
    assert lines_as_n(str(make_ir(loss)(*ARGS))) == """\
loss(w: f32[3,2], b: f32[2], x: f32[8,3], y: f32[8,2]) -> f32[]
  a: f32[8,2] = dot_general[ij,jk->ik] x w         │ test_ir_text.py:N   x @ w
  c: f32[8,2] = broadcast[shape=(8,2) axes=(0,)] b │                :N   + b
  d: f32[8,2] = add a c                            │
  h: f32[8,2] = tanh d                             │                :N   tanh
  e: f32[8,2] = sub h y                            │                :N   h - y
  f: f32[8,2] = square e                           │                :N   ** 2
  g: f32[]    = reduce_sum[axes=(0,1)] f           │                :N   sum
  return g"""


def test_derivatives_are_marked_with_the_line_they_come_from():
    text = str(make_ir(grad(loss))(*ARGS))
    marked = [line for line in text.split("\n") if "∂" in line]
    assert marked and all(re.search(r"│ ∂ +(test_ir_text.py)?:\d+", line) for line in marked)
    assert text.startswith("grad_loss(w: f32[3,2], b: f32[2], x: f32[8,3], y: f32[8,2]) "
                           "-> f32[3,2]")


def test_forward_derivatives_are_marked_too():
    def f(x):
        y = fnp.sin(x)
        return y * x
    text = str(make_ir(lambda x: jvp(f, (x,), (x,)))(np.float32(1.0)))
    assert [line.split("=")[1].split()[0] for line in text.split("\n") if "∂" in line] == ["cos",
                                                                                           "mul"]
    assert "y: f32[]  = sin x" in text


def test_names_that_a_loop_repeats_are_numbered():
    def f(x):
        for _ in range(3):
            x = fnp.sin(x)
        return x
    assert left(make_ir(f)(np.float32(1.0))) == """\
f(x: f32[]) -> f32[]
  x2: f32[] = sin x
  x3: f32[] = sin x2
  x4: f32[] = sin x3
  return x4"""


PROGRAMS = {
    "loss": lambda: make_ir(loss)(*ARGS),
    "grad": lambda: make_ir(grad(loss))(*ARGS),
    "hessian": lambda: make_ir(hessian(lambda w: loss(w, *ARGS[1:])))(ARGS[0]),
    "calls": lambda: make_ir(grad(
        lambda x: staged(lambda y: staged(fnp.sin)(y) * staged(fnp.sin)(x))(x)))(1.0),
    "vmap": lambda: make_ir(vmap(grad(loss), (None, None, 0, 0)))(
        *ARGS[:2], np.ones((5, 8, 3)), np.ones((5, 8, 2))),
    "several": lambda: make_ir(
        lambda x: (fnp.sort(x), x[1:], fnp.where(x > 0, x, -1e-30), x * float("inf")))(ARGS[1]),
    "nothing": lambda: make_ir(lambda: ())(),
    "hidden": lambda: make_ir(lambda x: x * fnp.array([1.0, 2.0]))(ARGS[1]),
    "converted": lambda: make_ir(lambda x: x.astype("int32") + 3)(ARGS[1]),
    "reserved": lambda: make_ir(lambda inf, f32: inf + f32)(1.0, 2.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parse_reads_what_show_prints(name):
    program = PROGRAMS[name]()
    again = parse(str(program)).check()
    assert left(again) == left(program)
    assert same(again, program)


def test_a_parsed_program_computes_the_same():
    program = make_ir(grad(lambda w: loss(w, *ARGS[1:])))(ARGS[0])
    again = parse(str(program))
    hidden = [a for _, a in program.hidden]
    near(evaluate(again, [fnp.array(ARGS[0]), *hidden])[0],
         evaluate(program, [fnp.array(ARGS[0])])[0])


def test_special_numbers_are_read_back():
    x = Var(ArrayType(F64, ()), "x")
    outs = [Var(x.type) for _ in range(6)]
    numbers = [float("inf"), -float("inf"), -0.0, 1e-300, 3, True]
    eqns = [Equation(ops.mul, (x, n), {}, (out,)) for n, out in zip(numbers, outs)]
    again = parse(str(Program("f", [x], eqns, outs)))
    assert [repr(e.args[1]) for e in again.eqns] == [repr(n) for n in numbers]


def test_canonical_text_ignores_names_and_sources_only():
    def f(x):
        y = fnp.sin(x)
        return y * 2.0

    def g(a):
        return fnp.sin(a) * 2.0
    p, q = make_ir(f)(ARGS[0]), make_ir(g)(ARGS[0])
    assert canonical(p) == canonical(q)
    assert canonical(p) != canonical(make_ir(f)(ARGS[1]))
    for other in (lambda x: fnp.sin(x) * 2.5, lambda x: fnp.cos(x) * 2.0, lambda x: fnp.sin(x) * x,
                  lambda x: (fnp.sin(x) * 2.0, x)):
        assert not same(p, make_ir(other)(ARGS[0]))


def test_canonical_text_tells_equal_numbers_of_different_kinds_apart():
    x = Var(ArrayType(F64, ()), "x")

    def program(n):
        out = Var(x.type)
        return Program("f", [x], [Equation(ops.mul, (x, n), {}, (out,))], [out])

    def filled(n):
        out = Var(x.type)
        return Program("f", [],
                       [Equation(ops.full, (), dict(shape=(), value=n, dtype=F64), (out,))], [out])
    for make in (program, filled):
        assert len({canonical(make(n)) for n in (0.0, -0.0, 0, False, 1, 1.0, True)}) == 7


def test_canonical_text_takes_microseconds_per_equation():
    def f(x):
        for _ in range(500):
            x = fnp.sin(x) * 2.0 + fnp.reshape(x, (3, 2))
        return x
    program = make_ir(f)(ARGS[0])
    best = min(timed(canonical, program) for _ in range(5))
    assert best / len(program.eqns) < 20e-6


def timed(function, *args):
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


BAD = {
    "": "there is no program in this text.",
    "f(x: f32[]) -> f32[]\n  y: f32[] = nope x\n  return y":
        "line 2 cannot be read: there is no operation nope.",
    "f(x: f32[]) -> f32[]\n  y: f32[] = sin z\n  return y":
        "line 2 cannot be read: z is not defined above.",
    "f(x: f32[]) -> f32[]\n  y: f64[] = sin x\n  return y":
        "line 2 cannot be read: sin gives f32[] here.",
    "f(x: q32[]) -> f32[]\n  return x": "line 1 cannot be read: there is no dtype q32.",
    "f(x: f32[]) -> f32[]\n  y = sin x\n  return y":
        "line 2 cannot be read: a variable stands as name: dtype[shape].",
    "f(x: f32[]) -> f32[]\n  y: f32[] = sin x":
        "line 2 cannot be read: a program ends with return.",
    "f(x: f32[]) -> f64[]\n  return x": "line 2 cannot be read: its results are not f64[].",
    "hello": "line 1 cannot be read: it is no part of a program.",
    "f(x: f32[2]) -> f32[]\n  y: f32[] = reduce_sum[axes=(0] x\n  return y":
        "line 2 cannot be read: nothing is no value.",
}


@pytest.mark.parametrize("text", BAD)
def test_text_that_is_no_program_names_the_line(text):
    assert message(ParseError, parse, text).split("\n")[0] == BAD[text]


def test_whole_message_of_a_line_that_cannot_be_read():
    text = "f(x: f32[]) -> f32[]\n  y: f32[] = nope x\n  return y"
    assert message(ParseError, parse, text) == """\
line 2 cannot be read: there is no operation nope.

  given      y: f32[] = nope x"""
