"""What derivatives say of arguments: integers, keys, argnums that choose nothing, other results."""

import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ArgumentError, GradientError
from tests.messages import message


def energy(x):
    return fnp.sum(x * x)


@pytest.mark.parametrize("transform", [fgrad.jacfwd, fgrad.jacrev, fgrad.hessian])
def test_allow_int_is_proposed_where_there_is_such_an_option(transform):
    said = message(GradientError, transform(energy), fnp.arange(3))
    assert said.startswith(f"{transform.__name__} needs float arguments")
    assert "allow_int" not in said
    assert "allow_int" in message(GradientError, fgrad.grad(energy), fnp.arange(3))


def test_a_gradient_by_a_random_key_is_told_to_choose_other_arguments():
    for keys in (fgrad.random.key(0), {"noise": fgrad.random.key(0)}):
        said = message(GradientError, fgrad.grad(lambda k, x: x), keys, 1.0)
        assert "is a random key" in said and "argnums=" in said and "astype" not in said


def test_hvp_and_hessian_speak_of_themselves():
    x, i = fnp.ones(3), fnp.arange(3)
    assert message(GradientError, fgrad.hvp, energy, (i,), (i,)).startswith("hvp needs float")
    assert message(TypeError, fgrad.hvp, energy, (x,), (fnp.ones(2),)).startswith(
        "hvp: `the tangent of x` must have the shape of `x`")
    assert message(ArgumentError, fgrad.hvp, energy, x, x).startswith("hvp: primals must be")
    assert message(ArgumentError, fgrad.hvp, 3, (x,), (x,)).startswith("hvp takes a function")
    assert message(ArgumentError, fgrad.hessian, 3).startswith("hessian takes a function")
    assert "`energy` has 1 positional parameter: x" in message(
        ArgumentError, fgrad.hessian(energy, argnums=3), x)


@pytest.mark.parametrize("argnums", [1.0, None, {0}])
def test_argnums_that_choose_nothing(argnums):
    said = message(ArgumentError, fgrad.grad, energy, argnums=argnums)
    assert said.startswith("grad: argnums is a position, a name, or a tuple of them.")


def test_a_result_that_is_no_array():
    said = message(GradientError, fgrad.grad(lambda x: "loss"), 1.0)
    assert said.startswith("grad needs a float result, but `<lambda>` returned str.")
