"""Linearize and its transposition."""

import time

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import ops
from fgrad.core import as_value
from fgrad.errors import FgradWarning, GradientError
from fgrad.interpreters.backward import transposed
from fgrad.transforms import grad, jvp, vjp
from tests.interpreters.staged import near
from tests.messages import message


def chain(x, n):
    for _ in range(n):
        x = ops.sin(x)
    return x


def test_a_chain_of_100_000_operations_does_not_recurse():
    start = time.perf_counter()
    got = grad(lambda x: chain(x, 100_000))(np.float64(1.0))
    assert 0 < float(got) < 1e-3
    assert time.perf_counter() - start < 60


def test_unused_inputs_and_constant_results_have_zero_gradients():
    near(grad(lambda x: fnp.sum(fnp.zeros(3)))(np.ones((2, 0))), np.zeros((2, 0)))
    near(grad(lambda x: 1.0)(np.ones(2)), np.zeros(2))
    near(vjp(lambda x, y: x, 1.0, 2.0)[1](1.0)[1], 0.0)


def test_a_value_used_twice_adds_its_cotangents():
    near(grad(lambda x: x * x + x)(3.0), 7.0)


def test_gradients_stop_at_integers():
    near(grad(lambda x: fnp.sum(x * x.astype("int32").astype("float32")))(np.float32([1.5, 2.5])),
         [1.0, 2.0])


def test_operations_with_several_results_have_gradients():
    values, order = fnp.array([3.0, 1.0, 2.0]), fnp.array([1.0, 10.0, 100.0])
    near(grad(lambda x: fnp.sum(fnp.sort(x) * order))(values), [100.0, 1.0, 10.0])


def test_transposing_what_is_not_linear_is_an_error():
    x = as_value(1.0)
    assert message(GradientError, lambda: transposed(lambda t: [t * t], [x], [x])).startswith(
        "a derivative rule is not linear in its tangents, so it has no reverse.")


def test_float_under_grad_works_with_one_notice_per_line():
    def f(x):
        return x * float(x)
    words = (r"float\(\) takes the number out of a value that is being differentiated: "
             r"no gradient flows through it \(test_backward.py:\d+\)")
    with pytest.warns(FgradWarning, match=words) as seen:
        near(grad(f)(3.0), 3.0)
        near(grad(f)(3.0), 3.0)
        near(jvp(f, (3.0,), (1.0,))[1], 3.0)
    assert len(seen) == 1
