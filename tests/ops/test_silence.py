"""Rules that are silent about inf and NaN, and leave NumPy as the user has set it."""

import warnings
from concurrent.futures import ThreadPoolExecutor

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


def test_threads_compute_silently_at_once():
    large = np.full(200_000, 3e38, "float32")            # NumPy lets other threads run meanwhile
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error")
        outs = list(pool.map(lambda _: quiet(np.add)(large, large), range(40)))
    assert all(np.isinf(out).all() for out in outs)
