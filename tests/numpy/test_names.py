"""A message names the function that was called, not the one that it is made of."""

import pytest

import fgrad.numpy as fnp
from fgrad import nn
from fgrad.errors import FgradError

X, M = fnp.ones(3), fnp.ones((2, 3))


@pytest.mark.parametrize("call, name", [
    (lambda: fnp.dot(M, M), "dot needs"),
    (lambda: fnp.inner(M, fnp.ones(2)), "inner needs"),
    (lambda: fnp.tensordot(M, M, 1), "tensordot needs"),
    (lambda: nn.softmax(X, axis=4), "softmax: axis 4"),
    (lambda: nn.softmax(X, axis=4, where=X > 0), "softmax: axis 4"),
    (lambda: nn.log_softmax(X, axis=4), "log_softmax: axis 4"),
    (lambda: nn.logsumexp(X, axis=4), "logsumexp: axis 4"),
    (lambda: fnp.trace(X), "trace needs a matrix"),
    (lambda: fnp.trace(M, axis1=5), "trace: axis 5"),
    (lambda: fnp.diagonal(X), "diagonal needs a matrix"),
    (lambda: fnp.searchsorted(M, 1.0), "searchsorted needs one row"),
    (lambda: X[0, 0], "2 indices are too many for an array of 1 axis.")])
def test_the_function_that_was_called_is_named(call, name):
    with pytest.raises(FgradError) as caught:
        call()
    assert caught.value.sentence.startswith(name)
