"""What is said where NumPy is given values of fgrad: only what works is proposed."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import NumpyError
from tests.messages import message

ONES = fnp.ones(3)


def save(x):
    np.savetxt("x.txt", x)


def test_a_value_that_is_traced_is_not_sent_through_asarray():
    assert "np.savetxt(np.asarray(x)) computes" in message(NumpyError, save, ONES)
    assert "np.asarray(fgrad.stop_gradient(x))" in message(NumpyError, fgrad.grad(save), ONES)
    compiled = message(NumpyError, fgrad.jit(save), ONES)
    assert "asarray" not in compiled and "fgrad.pure_callback(np.savetxt" in compiled


def test_an_option_that_is_not_taken_is_named():
    said = message(NumpyError, np.exp, ONES, dtype="float32")
    assert "np.exp of values of fgrad takes no dtype=." in said and "astype" in said
    assert "none of that name" not in said


def test_a_reduction_of_a_ufunc_names_the_function_that_does_it():
    assert "fgrad.numpy.sum(x, axis=0)" in message(NumpyError, np.add.reduce, ONES)
    assert "none of that name" not in message(NumpyError, np.add.outer, ONES, ONES)


@pytest.mark.parametrize("transform", [fgrad.grad, fgrad.jit])
def test_np_random_is_blamed_only_where_it_is_called(transform):
    key, generator = fgrad.random.key(0), np.random.default_rng(0)
    both = lambda x: np.array([x, fgrad.random.normal(key)]).sum()
    assert "NumPy cannot hold" in message(NumpyError, transform(both), fnp.array(1.0))
    drawn = lambda x: generator.normal(x, 1.0, size=2)
    assert "np.random cannot take" in message(NumpyError, fgrad.jit(drawn), fnp.ones(2))


def test_stop_gradient_is_proposed_only_where_there_is_a_value():
    held = lambda x: np.array([x, 1.0]).sum()
    assert "stop_gradient" in message(NumpyError, fgrad.grad(held), 1.0)
    assert "stop_gradient" not in message(NumpyError, fgrad.jit(held), fnp.array(1.0))
