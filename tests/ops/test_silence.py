"""Rules that are silent about inf and NaN, and leave NumPy as the user has set it."""

import warnings

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.ops.silence import quiet


def test_operations_that_make_inf_and_nan_warn_of_nothing():
    zero = fnp.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isneginf(fnp.log(zero)).all() and np.isnan(zero / zero).all()
        assert np.isinf(fgrad.grad(lambda x: fnp.sum(fnp.sqrt(x)))(zero)).all()


def test_numpy_raises_as_the_user_chose_around_operations():
    with np.errstate(divide="raise"):
        assert np.isneginf(fnp.log(0.0))
        assert np.geterr()["divide"] == "raise"
        with pytest.raises(FloatingPointError):
            np.log(0.0)


def test_a_rule_that_raises_leaves_numpy_as_it_was():
    def broken():
        raise KeyError("broken")
    before = np.geterr()
    with pytest.raises(KeyError):
        quiet(broken)()
    assert np.geterr() == before != dict.fromkeys(before, "ignore")
