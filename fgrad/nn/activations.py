"""Activations: functions of one array, element by element unless an axis is named."""

from __future__ import annotations

import math

from .. import numpy as fnp
from .. import ops
from ..custom import stop_gradient
from ..numpy.promotion import floating
from ..numpy.special import erf


def relu(x):
    """max(x, 0); its derivative at 0 is 0.

    >>> relu(fnp.array([-1.0, 0.0, 2.0]))
    Array([0., 0., 2.], f32[3])
    """
    return fnp.where(x > 0, x, 0.0)


def leaky_relu(x, slope=0.01):
    """x where x > 0, else slope · x."""
    return fnp.where(x > 0, x, slope * x)


def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow.

    >>> sigmoid(fnp.array([0.0]))
    Array([0.5], f32[1])
    """
    return floating(ops.logistic, x)


def tanh(x):
    """The hyperbolic tangent."""
    return fnp.tanh(x)


def silu(x):
    """x · sigmoid(x) (Elfwing et al. 2018), also called swish."""
    return x * floating(ops.logistic, x)


swish = silu


def softplus(x):
    """log(1 + exp(x)), without overflow."""
    return fnp.logaddexp(x, 0.0)


def elu(x, alpha=1.0):
    """x where x > 0, else alpha · (exp(x) - 1) (Clevert et al. 2016)."""
    return fnp.where(x > 0, x, alpha * fnp.expm1(fnp.minimum(x, 0.0)))


def gelu(x, approximate=True):
    """x · Φ(x) (Hendrycks and Gimpel 2016); `approximate` uses their tanh form."""
    if approximate:
        return 0.5 * x * (1.0 + fnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2)))


def logsumexp(x, axis=None, keepdims=False):
    """log(sum(exp(x))) over `axis`, without overflow; -inf where all of x is -inf.

    The maximum is subtracted first; its gradient cancels, so it is held constant.

    >>> logsumexp(fnp.array([1000.0, 1000.0]))
    Array(1000.6932, f32[])
    """
    most = stop_gradient(fnp.max(x, axis=axis, keepdims=True))
    most = fnp.where(fnp.isfinite(most), most, 0.0)
    out = fnp.log(fnp.sum(fnp.exp(x - most), axis=axis, keepdims=True)) + most
    return out if keepdims else fnp.squeeze(out, axis=axis)


def softmax(x, axis=-1):
    """exp(x) over its sum along `axis`, without overflow.

    >>> softmax(fnp.array([0.0, 0.0]))
    Array([0.5, 0.5], f32[2])
    """
    e = fnp.exp(x - stop_gradient(fnp.max(x, axis=axis, keepdims=True)))
    return e / fnp.sum(e, axis=axis, keepdims=True)


def log_softmax(x, axis=-1):
    """log(softmax(x)) along `axis`, without overflow or cancellation."""
    shifted = x - stop_gradient(fnp.max(x, axis=axis, keepdims=True))
    return shifted - fnp.log(fnp.sum(fnp.exp(shifted), axis=axis, keepdims=True))


def one_hot(labels, classes, dtype="float32"):
    """Rows with a 1 at the label: i[*s] → f[*s,classes]; a label out of range gives zeros.

    >>> one_hot(fnp.array([1, 0]), 3)
    Array([[0., 1., 0.],
           [1., 0., 0.]], f32[2,3])
    """
    labels = fnp.asarray(labels)
    return (labels[..., None] == fnp.arange(classes)).astype(dtype)
