"""Activations: derivatives, extreme and special values; docs/jax-compat.md has jax.nn's values."""

import math

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, scipy
from fgrad.errors import ArgumentError, ShapeError

ALONE = """relu relu6 leaky_relu hard_tanh hard_sigmoid hard_silu hard_shrink soft_shrink
           sparse_sigmoid sparse_plus sigmoid tanh silu softplus log_sigmoid soft_sign squareplus
           tanh_shrink elu celu selu gelu mish identity softmax log_softmax glu""".split()


@pytest.mark.parametrize("name", ALONE)
def test_activations_have_right_gradients_and_no_nan(name):
    f = getattr(nn, name)
    fgrad.check_grads(f, (fnp.array([-3.4, -0.6, 0.7, 2.0], "float64"),), order=2)
    extreme = fnp.array([-1e4, 1e4])
    slope = fgrad.grad(lambda v: fnp.sum(f(v)))
    for run in (f, slope, fgrad.jit(f), fgrad.jit(slope)):
        assert np.isfinite(np.asarray(run(extreme))).all()


@pytest.mark.parametrize("name", ALONE)
def test_activations_keep_half_precision_and_nan(name):
    f = getattr(nn, name)
    assert f(fnp.array([0.5, -0.5], "float16")).dtype == np.float16
    assert np.isnan(np.asarray(f(fnp.array([math.nan, math.nan])))).all()


def test_relu_is_flat_at_zero_and_keeps_integers():
    assert float(fgrad.grad(nn.relu)(0.0)) == 0.0
    assert nn.relu(fnp.array([-1, 2])).dtype == np.int32


def test_prelu_learns_a_slope_per_channel():
    x, slopes = fnp.array([[-1.0, 2.0], [-3.0, -4.0]]), fnp.array([0.5, 0.25])
    assert nn.prelu(x, slopes).tolist() == [[-0.5, 2.0], [-1.5, -1.0]]
    slope = fgrad.grad(lambda s: fnp.sum(nn.prelu(x, s)))(slopes)
    assert slope.tolist() == [-4.0, -4.0]


def test_log1mexp_near_zero_and_far_away():
    x = np.array([1e-6, 0.1, math.log(2), 5.0, 30.0])
    want = [math.log(-math.expm1(-v)) if v < 1 else math.log1p(-math.exp(-v)) for v in x]
    np.testing.assert_allclose(nn.log1mexp(x), want, rtol=1e-12)
    slopes = fgrad.vmap(fgrad.grad(nn.log1mexp))(x)
    np.testing.assert_allclose(slopes, 1 / np.expm1(x), rtol=1e-9)


@pytest.mark.parametrize("f", [nn.softmax, nn.log_softmax, scipy.special.softmax,
                               scipy.special.log_softmax])
def test_a_softmax_over_no_elements_has_none(f):
    for x in (fnp.zeros((2, 0)), np.zeros((2, 0), "float32"), fnp.zeros((2, 0), "int32")):
        assert f(x, axis=1).shape == f(x, axis=0).shape == (2, 0)
        assert f(x, axis=1).dtype == np.float32
    if f in (nn.softmax, nn.log_softmax):
        assert f(x, where=np.zeros((2, 0), bool)).shape == (2, 0)


def test_a_softmax_of_nothing_is_zero():
    x, nothing = fnp.array([[1.0, 2.0]]), fnp.zeros((1, 2), bool)
    slope = fgrad.grad(lambda v: fnp.sum(nn.softmax(v, where=nothing)))
    assert nn.softmax(x, where=nothing).tolist() == [[0, 0]] == slope(x).tolist()
    assert nn.log_softmax(x, where=nothing).tolist() == [[-math.inf] * 2]


def test_what_does_not_fit_is_explained():
    with pytest.raises(ShapeError, match="axis -1 has 3 elements"):
        nn.glu(fnp.ones(3))
    with pytest.raises(ArgumentError, match="no algorithm 'best'"):
        nn.standardize(fnp.ones(3), algorithm="best")


def test_gelu_without_approximation():
    want = [0.5 * v * (1 + math.erf(v / 2 ** 0.5)) for v in (-1.0, 0.0, 2.0)]
    np.testing.assert_allclose(nn.gelu(fnp.array([-1.0, 0.0, 2.0]), approximate=False), want,
                               rtol=1e-5, atol=1e-6)
