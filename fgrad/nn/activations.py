"""Activations: functions of one array, element by element unless an axis is named."""

from __future__ import annotations

import math

from .. import numpy as fnp
from .. import ops
from ..custom import stop_gradient
from ..errors import ShapeError
from ..numpy.promotion import floating
from ..numpy.special import erf

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


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


def log_sigmoid(x):
    """log(sigmoid(x)), without overflow."""
    return -softplus(-x)


def mish(x):
    """x · tanh(softplus(x)) (Misra 2019)."""
    return x * fnp.tanh(softplus(x))


def soft_sign(x):
    """x / (1 + |x|)."""
    return x / (fnp.abs(x) + 1.0)


def squareplus(x, b=4.0):
    """(x + √(x² + b)) / 2: a softplus without exponentials (Barron 2021)."""
    return (x + fnp.sqrt(fnp.square(x) + b)) / 2.0


def relu6(x):
    """x held between 0 and 6 (Krizhevsky 2010).

    >>> relu6(fnp.array([-1.0, 3.0, 9.0]))
    Array([0., 3., 6.], f32[3])
    """
    return fnp.minimum(relu(x), 6.0)


def hard_sigmoid(x):
    """relu6(x + 3) / 6: straight lines for a sigmoid (Howard et al. 2019)."""
    return relu6(x + 3.0) / 6.0


def hard_silu(x):
    """x · hard_sigmoid(x), also called hard swish (Howard et al. 2019)."""
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def hard_tanh(x):
    """x held between -1 and 1."""
    return fnp.where(x > 1, 1.0, fnp.where(x < -1, -1.0, x))


def sparse_plus(x):
    """0 below -1, x above 1, (x + 1)² / 4 between (Martins and Astudillo 2016)."""
    return fnp.where(x <= -1, 0.0, fnp.where(x >= 1, x, fnp.square(x + 1.0) / 4.0))


def sparse_sigmoid(x):
    """The derivative of sparse_plus: (x + 1) / 2 held between 0 and 1."""
    return 0.5 * fnp.clip(x + 1.0, 0.0, 2.0)


def tanh_shrink(x):
    """x - tanh(x)."""
    return x - fnp.tanh(x)


def soft_shrink(x, threshold=0.5):
    """x moved towards 0 by the threshold, and 0 within it."""
    return fnp.sign(x) * fnp.maximum(fnp.abs(x) - threshold, 0.0)


def identity(x):
    """x itself."""
    return x


def elu(x, alpha=1.0):
    """x where x > 0, else alpha · (exp(x) - 1) (Clevert et al. 2016)."""
    return fnp.where(x > 0, x, alpha * fnp.expm1(fnp.minimum(x, 0.0)))


def celu(x, alpha=1.0):
    """max(x, 0) + alpha · (exp(min(x, 0) / alpha) - 1) (Barron 2017)."""
    return fnp.maximum(x, 0.0) + alpha * fnp.expm1(fnp.minimum(x, 0.0) / alpha)


def selu(x):
    """elu with the two constants that keep mean 0 and variance 1 (Klambauer et al. 2017)."""
    return SELU_SCALE * elu(x, SELU_ALPHA)


def glu(x, axis=-1):
    """The first half of x along `axis` times the sigmoid of the second (Dauphin et al. 2017).

    Raises ShapeError for an odd number of elements.

    >>> glu(fnp.array([2.0, 0.0]))
    Array([1.], f32[1])
    """
    shape = fnp.shape(x)
    if shape[axis] % 2:
        raise ShapeError(f"glu halves an axis, and axis {axis} has {shape[axis]} elements.",
                         given=f"x of shape {shape}")
    value, gate = fnp.split(x, 2, axis)
    return value * sigmoid(gate)


def gelu(x, approximate=True):
    """x · Φ(x) (Hendrycks and Gimpel 2016); `approximate` uses their tanh form."""
    if approximate:
        return 0.5 * x * (1.0 + fnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2)))


def masked(x, where, value):
    """x, and the value where not `where`; a mask of None takes all."""
    return x if where is None else fnp.where(where, x, value)


def logsumexp(x, axis=None, keepdims=False, where=None):
    """log(sum(exp(x))) over `axis`, without overflow; -inf where all of x is -inf.

    where: a mask of the elements that count.
    The maximum is subtracted first; its gradient cancels, so it is held constant.

    >>> logsumexp(fnp.array([1000.0, 1000.0]))
    Array(1000.6932, f32[])
    """
    x = masked(x, where, -math.inf)
    most = stop_gradient(fnp.max(x, axis=axis, keepdims=True))
    most = fnp.where(fnp.isfinite(most), most, 0.0)
    out = fnp.log(fnp.sum(fnp.exp(x - most), axis=axis, keepdims=True)) + most
    return out if keepdims else fnp.squeeze(out, axis=axis)


def logmeanexp(x, axis=None, keepdims=False, where=None):
    """log(mean(exp(x))) over `axis`, without overflow."""
    counted = fnp.ones_like(x) if where is None else fnp.broadcast_to(where, fnp.shape(x))
    count = fnp.sum(counted.astype("float32"), axis=axis, keepdims=keepdims)
    return logsumexp(x, axis, keepdims, where) - fnp.log(count)


def softmax(x, axis=-1, where=None):
    """exp(x) over its sum along `axis`, without overflow.

    where: a mask of the elements that count; the others are 0, also where none counts.

    >>> softmax(fnp.array([0.0, 0.0]))
    Array([0.5, 0.5], f32[2])
    """
    if where is None:
        e = fnp.exp(x - stop_gradient(fnp.max(x, axis=axis, keepdims=True)))
        return e / fnp.sum(e, axis=axis, keepdims=True)
    most = stop_gradient(fnp.max(masked(x, where, -math.inf), axis=axis, keepdims=True))
    # exp sees 0 where the mask is False: an overflow there would spoil the gradient
    e = masked(fnp.exp(masked(x - fnp.where(fnp.isfinite(most), most, 0.0), where, 0.0)), where,
               0.0)
    total = fnp.sum(e, axis=axis, keepdims=True)
    return e / fnp.where(total == 0, 1.0, total)


def log_softmax(x, axis=-1, where=None):
    """log(softmax(x)) along `axis`, without overflow or cancellation; -inf where the mask is False.
    """
    shifted = x - stop_gradient(fnp.max(masked(x, where, -math.inf), axis=axis, keepdims=True))
    shifted = masked(shifted, where, 0.0)
    total = fnp.sum(masked(fnp.exp(shifted), where, 0.0), axis=axis, keepdims=True)
    return masked(shifted - fnp.log(total), where, -math.inf)


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None):
    """(x - mean) / √(variance + epsilon) along `axis`; statistics that are not given are x's own.

    >>> standardize(fnp.array([-1.0, 1.0]), epsilon=0.0)
    Array([-1.,  1.], f32[2])
    """
    if mean is None:
        mean = fnp.mean(x, axis=axis, keepdims=True, where=where)
    if variance is None:
        variance = fnp.mean(fnp.square(x - mean), axis=axis, keepdims=True, where=where)
    return (x - mean) / fnp.sqrt(variance + epsilon)


def one_hot(labels, classes, dtype=None, axis=-1):
    """A 1 at the label: i[*s] → f[*s,classes]; a label out of range gives zeros.

    axis: where the axis of the classes goes.

    >>> one_hot(fnp.array([1, 0]), 3)
    Array([[0., 1., 0.],
           [1., 0., 0.]], f32[2,3])
    """
    labels = fnp.asarray(labels)
    hot = (labels[..., None] == fnp.arange(classes)).astype(dtype)
    return hot if axis in (-1, labels.ndim) else fnp.moveaxis(hot, -1, axis)
