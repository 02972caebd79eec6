from fgrad.passes.share import share
from fgrad.types import F32
from tests.passes.programs import Build


def test_equal_equations_become_one():
    p = Build("f")
    x = p.input("x", 3)
    a, b = p.exp(p.mul(x, 2.0)), p.exp(p.mul(x, 2.0))
    program = share(p.done(p.add(a, b))).check()
    assert [eqn.op.name for eqn in program.eqns] == ["mul", "exp", "add"]
    assert program.eqns[-1].args[0] is program.eqns[-1].args[1]


def test_numbers_are_told_apart_by_class_and_sign():
    p = Build("f")
    x = p.input("x", 3)
    outs = [p.mul(x, n) for n in (1.0, 1, 0.0, -0.0)]
    assert len(share(p.done(*outs)).eqns) == 4


def test_parameters_are_told_apart():
    p = Build("f")
    x = p.input("x", 3, 3)
    outs = p.reduce_sum(x, axes=(0,)), p.reduce_sum(x, axes=(1,)), p.reduce_sum(x, axes=(0,))
    program = share(p.done(*outs)).check()
    assert len(program.eqns) == 2 and program.outputs[0] is program.outputs[2]


def test_constants_are_shared():
    p = Build("f")
    x = p.input("x", 3)
    full = [p.full(shape=(3,), value=1.5, dtype=F32) for _ in range(3)]
    a = x
    for f in full:
        a = p.add(a, f)
    assert len(share(p.done(a)).eqns) == 4
