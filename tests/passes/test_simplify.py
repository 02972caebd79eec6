import numpy as np
import pytest

from fgrad.backends.reference import run_program
from fgrad.passes.share import share
from fgrad.passes.simplify import simplify
from fgrad.types import F16, F32, I32
from tests.passes.programs import Build, Random, arrays_for


def names(program):
    return [eqn.op.name for eqn in program.eqns]


def simplified(write, *shape, dtype=F32):
    p = Build("f")
    x = p.input("x", *shape, dtype=dtype)
    return simplify(p.done(write(p, x))).check()


@pytest.mark.parametrize("write, left", [
    (lambda p, x: p.mul(x, 1), []),
    (lambda p, x: p.sub(x, 0), []),
    (lambda p, x: p.div(x, 1), []),
    (lambda p, x: p.neg(p.neg(x)), []),
    (lambda p, x: p.mul(x, -1), ["neg"]),
    (lambda p, x: p.add(x, p.neg(x)), ["sub"]),
    (lambda p, x: p.sub(x, p.neg(x)), ["add"]),
    (lambda p, x: p.div(x, 4), ["mul"]),
    (lambda p, x: p.div(x, 3), ["div"]),
    (lambda p, x: p.integer_pow(x, n=2), ["mul"]),
    (lambda p, x: p.transpose(p.transpose(x, perm=(1, 0)), perm=(1, 0)), []),
    (lambda p, x: p.reshape(p.reshape(x, shape=(6,)), shape=(2, 3)), []),
    (lambda p, x: p.broadcast(p.broadcast(x, shape=(2, 3, 4), axes=(2,)),
                              shape=(5, 2, 3, 4), axes=(0,)),
     ["broadcast"]),
    (lambda p, x: p.rev(p.rev(x, axes=(0,)), axes=(0,)), []),
    (lambda p, x: p.reduce_sum(x, axes=()), []),
    (lambda p, x: p.slice(x, start=(0, 0), stop=(2, 3), stride=(1, 1)), []),
    (lambda p, x: p.concatenate(x, axis=0), []),
    (lambda p, x: p.add(x, p.exp(p.full(shape=(2, 3), value=0.0, dtype=F32))), ["full", "add"]),
    (lambda p, x: p.add(x, p.reshape(p.full(shape=(6,), value=2.0, dtype=F32), shape=(2, 3))),
     ["full", "add"]),
])
def test_identities_are_applied(write, left):
    assert names(simplified(write, 2, 3)) == left


@pytest.mark.parametrize("write", [
    lambda p, x: p.add(x, 0.0),              # -0.0 + 0.0 is 0.0
    lambda p, x: p.mul(x, 0.0),              # NaN * 0.0 is NaN
    lambda p, x: p.sub(0.0, x),              # 0.0 - 0.0 is 0.0, -0.0 would be wrong
    lambda p, x: p.div(x, 1e-45),            # its inverse is infinite
])
def test_what_does_not_hold_for_every_float_is_left_alone(write):
    assert len(simplified(write, 3).eqns) == 1


def test_integers_may_lose_their_zeros():
    assert names(simplified(lambda p, x: p.add(x, 0), 3, dtype=I32)) == []
    assert names(simplified(lambda p, x: p.div(x, 4), 3, dtype=I32)) == ["div"]


def test_dead_equations_go():
    p = Build("f")
    x = p.input("x", 3)
    p.exp(p.sin(x))
    assert names(simplify(p.done(p.cos(x)))) == ["cos"]


def test_a_widening_conversion_in_between_goes_and_a_narrowing_one_stays():
    def there_and_back(start, between):
        return simplified(lambda p, x: p.convert(p.convert(x, dtype=between), dtype=start),
                          3, dtype=start)
    assert names(there_and_back(F16, F32)) == []
    assert names(there_and_back(F32, F16)) == ["convert", "convert"]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_values(seed):
    program = Random(seed, (F32, I32, F16)[seed % 3]).program()
    arrays = arrays_for(program, seed)
    smaller = share(simplify(program)).check()
    assert len(smaller.eqns) <= len(program.eqns)
    for got, want in zip(run_program(smaller, arrays), run_program(program, arrays)):
        np.testing.assert_array_equal(got, want)


def test_a_long_chain_is_simplified_without_recursion():
    p = Build("f")
    x = a = p.input("x", 3)
    for _ in range(5000):
        a = p.neg(p.add(a, x))
    assert len(simplify(p.done(a)).eqns) > 5000
