"""Arrays are immutable: nothing that a function gives shares memory with an array of NumPy."""

import copy
import warnings

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import jit, lax, tree

SHARING = {"asarray", "ascontiguousarray", "barrier"}     # as documented, and the bare operation
WAYS = [
    lambda x: (x,), lambda x: ([x],), lambda x: (x, (3, 1)), lambda x: (x, 0), lambda x: (x, 1),
    lambda x: (x, (3,)), lambda x: (x, 0.0, 9.0), lambda x: (x[None], 0), lambda x: (x, None, 9.0),
    lambda x: (True, x, x), lambda x: (x, "float32"), lambda x: (x, 1, 0), lambda x: ("i->i", x),
    lambda x: (x[None], 0, 0), lambda x: (x, (1,), (3,)), lambda x: (x, [1])]


def functions(module):
    names = [n for n in dir(module) if not n.startswith("_") and n not in SHARING]
    return [getattr(module, n) for n in names if callable(getattr(module, n))
            and not isinstance(getattr(module, n), type)]


@pytest.mark.parametrize("module", [fnp, lax, fnp.linalg, fnp.fft], ids=lambda m: m.__name__)
def test_no_result_shares_memory_with_an_array_of_numpy(module):
    for function in functions(module):
        for arguments in WAYS:
            x = np.ones(3, "f4")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    out = function(*arguments(x))
                except Exception:                # most functions take none of most arguments
                    continue
            for leaf in tree.leaves(out):
                if isinstance(leaf, fgrad.Array):
                    assert not np.shares_memory(np.asarray(leaf), x), function


def test_writing_to_an_array_of_numpy_changes_no_array_made_of_it():
    x = np.ones(3, "f4")
    y = fnp.reshape(x, (3, 1))
    x[:] = 9
    assert y.tolist() == [[1], [1], [1]]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("way", [
    fnp.copy, fnp.array, lambda x: x.copy(), lambda x: fnp.array(x, copy=True),
    lambda x: fnp.asarray(x, copy=True), copy.copy, copy.deepcopy, jit(lambda x: x.copy())])
def test_a_copy_lasts_when_the_original_is_donated_and_the_original_when_the_copy_is(way, dtype):
    """They were one array: training with donation gave away the best parameters so far."""
    double = jit(lambda a: a + a, donate_argnums=0)
    x = fnp.ones(5, dtype=dtype)
    assert double(way(x)).tolist() == [2] * 5 and x.tolist() == [1] * 5
    y = way(x)
    assert double(x).tolist() == [2] * 5 and y.tolist() == [1] * 5
