"""Activations: functions of one array, element by element unless an axis is named.

Names, arguments, values and dtypes are those of jax.nn; a NaN stays a NaN.
"""

from __future__ import annotations

import math

from .. import numpy as fnp
from .. import ops
from ..custom import stop_gradient
from ..errors import ArgumentError, ShapeError
from ..numpy.axes import axes_of
from ..numpy.promotion import as_float, floating, mask_of
from ..numpy.reductions import widened
from ..numpy.special import erf
from ..numpy.exponentials import logsumexp
from ..numpy.exponentials import softmax as softmax_of_all

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def relu(x):
    """max(x, 0); its derivative at 0 is 0.   A NaN stays one, integers stay integers.

    >>> relu(fnp.array([-1.0, 0.0, 2.0]))
    Array([0., 0., 2.], f32[3])
    """
    return fnp.where(x <= 0, 0, x)


def leaky_relu(x, negative_slope=0.01):
    """x where x >= 0, else negative_slope · x (Maas et al. 2013).

    >>> leaky_relu(fnp.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], f32[2])
    """
    return fnp.where(x >= 0, x, negative_slope * x)


def prelu(x, slopes):
    """x where x >= 0, else slopes · x, a slope per channel that is learned (He et al. 2015).

    x: f[*s,c], slopes: f[c] or a number → f[*s,c].

    >>> prelu(fnp.array([-1.0, -1.0]), fnp.array([0.5, 0.25]))
    Array([-0.5 , -0.25], f32[2])
    """
    return leaky_relu(x, slopes)


def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow.

    >>> sigmoid(fnp.array([0.0]))
    Array([0.5], f32[1])
    """
    return floating(ops.logistic, x)


def tanh(x):
    """The hyperbolic tangent.

    >>> tanh(fnp.array([0.0]))
    Array([0.], f32[1])
    """
    return fnp.tanh(x)


def silu(x):
    """x · sigmoid(x) (Elfwing et al. 2018), also called swish.

    >>> silu(fnp.array([0.0]))
    Array([0.], f32[1])
    """
    return x * floating(ops.logistic, x)


swish = silu


def softplus(x):
    """log(1 + exp(x)), without overflow.

    >>> softplus(fnp.array([-1000.0, 1000.0]))
    Array([   0., 1000.], f32[2])
    """
    return fnp.logaddexp(x, 0.0)


def log_sigmoid(x):
    """log(sigmoid(x)), without overflow or cancellation.

    >>> log_sigmoid(fnp.array([-1000.0, 1000.0])) + 0.0
    Array([-1000.,     0.], f32[2])
    """
    return -softplus(-x)


def mish(x):
    """x · tanh(softplus(x)) (Misra 2019).

    >>> mish(fnp.array([0.0]))
    Array([0.], f32[1])
    """
    return x * fnp.tanh(softplus(x))


def soft_sign(x):
    """x / (1 + |x|).

    >>> soft_sign(fnp.array([-1.0, 3.0]))
    Array([-0.5 ,  0.75], f32[2])
    """
    return x / (fnp.abs(x) + 1.0)


def squareplus(x, b=4.0):
    """(x + √(x² + b)) / 2: a softplus without exponentials (Barron 2021); x² does not overflow.

    >>> squareplus(fnp.array([0.0, 1.5]))
    Array([1., 2.], f32[2])
    """
    return (x + fnp.hypot(x, b**0.5)) / 2.0


def relu6(x):
    """x held between 0 and 6; its derivative at 0 and at 6 is 0 (Krizhevsky 2010).

    >>> relu6(fnp.array([-1.0, 3.0, 9.0]))
    Array([0., 3., 6.], f32[3])
    """
    return fnp.where(x <= 0, 0.0, fnp.where(x >= 6, 6.0, x))


def hard_sigmoid(x):
    """relu6(x + 3) / 6: straight lines for a sigmoid (Howard et al. 2019).

    >>> hard_sigmoid(fnp.array([-3.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], f32[3])
    """
    return relu6(x + 3.0) / 6.0


def hard_silu(x):
    """x · hard_sigmoid(x), also called hard swish (Howard et al. 2019).

    >>> hard_silu(fnp.array([0.0, 1.5, 3.0]))
    Array([0.   , 1.125, 3.   ], f32[3])
    """
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def hard_tanh(x):
    """x held between -1 and 1.

    >>> hard_tanh(fnp.array([-3.0, 0.5, 3.0]))
    Array([-1. ,  0.5,  1. ], f32[3])
    """
    return fnp.where(x > 1, 1, fnp.where(x < -1, -1, x))


def sparse_plus(x):
    """0 below -1, x above 1, (x + 1)² / 4 between (Martins and Astudillo 2016).

    >>> sparse_plus(fnp.array([-3.0, 0.0, 3.0]))
    Array([0.  , 0.25, 3.  ], f32[3])
    """
    inside = fnp.clip(x, -1.0, 1.0) + 1.0        # a square outside could overflow
    return fnp.where(x <= -1, 0.0, fnp.where(x >= 1, x, inside * inside / 4.0))


def sparse_sigmoid(x):
    """The derivative of sparse_plus: (x + 1) / 2 held between 0 and 1.

    >>> sparse_sigmoid(fnp.array([-3.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], f32[3])
    """
    return 0.5 * fnp.clip(x + 1.0, 0.0, 2.0)


def log1mexp(x):
    """log(1 - exp(-x)) for x > 0, without cancellation (Mächler 2012).

    >>> log1mexp(fnp.array([1e-10, 100.0]))
    Array([-2.302585e+01, -3.783506e-44], f32[2])
    """
    small = x < math.log(2)
    near, far = fnp.where(small, x, 1.0), fnp.where(small, 1.0, x)
    return fnp.where(small, fnp.log(-fnp.expm1(-near)), fnp.log1p(-fnp.exp(-far)))


def tanh_shrink(x):
    """x - tanh(x).

    >>> tanh_shrink(fnp.array([0.0]))
    Array([0.], f32[1])
    """
    return x - fnp.tanh(x)


def hard_shrink(x, threshold=0.5):
    """x, and 0 within the threshold.

    >>> hard_shrink(fnp.array([-1.0, 0.25]))
    Array([-1.,  0.], f32[2])
    """
    return fnp.where(fnp.abs(x) <= threshold, 0.0, x)


def soft_shrink(x, threshold=0.5):
    """x moved towards 0 by the threshold, and 0 within it.

    >>> soft_shrink(fnp.array([-1.0, 0.25]))
    Array([-0.5,  0. ], f32[2])
    """
    return fnp.where(fnp.abs(x) <= threshold, 0.0, x - threshold * fnp.sign(x))


def identity(x):
    """x itself.

    >>> identity(fnp.array([1.0]))
    Array([1.], f32[1])
    """
    return fnp.asarray(x)


def elu(x, alpha=1.0):
    """x where x > 0, else alpha · (exp(x) - 1) (Clevert et al. 2016).

    >>> elu(fnp.array([0.0, 2.0]))
    Array([0., 2.], f32[2])
    """
    return fnp.where(x > 0, x, alpha * fnp.expm1(fnp.where(x > 0, 0.0, x)))


def celu(x, alpha=1.0):
    """max(x, 0) + alpha · (exp(min(x, 0) / alpha) - 1) (Barron 2017).

    >>> celu(fnp.array([0.0, 2.0]))
    Array([0., 2.], f32[2])
    """
    return fnp.maximum(x, 0.0) + alpha * fnp.expm1(fnp.minimum(x, 0.0) / alpha)


def selu(x):
    """elu with the two constants that keep mean 0 and variance 1 (Klambauer et al. 2017).

    >>> selu(fnp.array([0.0, 1.0]))
    Array([0.      , 1.050701], f32[2])
    """
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
    """x · Φ(x) (Hendrycks and Gimpel 2016); `approximate` uses their tanh form.

    >>> gelu(fnp.array([0.0]))
    Array([0.], f32[1])
    """
    if approximate:
        return 0.5 * x * (1.0 + fnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2)))


def masked(x, where, value):
    """x, and the value where not `where`; a mask of None takes all."""
    return x if where is None else fnp.where(mask_of(where), x, value)


def logmeanexp(x, axis=None, where=None, keepdims=False):
    """log(mean(exp(x))) over `axis`, without overflow; where: a mask of the elements that count.

    >>> logmeanexp(fnp.array([1000.0, 1000.0]))
    Array(1000., f32[])
    """
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    ones = fnp.ones(fnp.shape(x), total.dtype)
    return total - fnp.log(fnp.sum(ones, axis=axis, keepdims=keepdims, where=where))


def softmax(x, axis=-1, where=None):
    """exp(x) over its sum along `axis`, without overflow.

    where: a mask of the elements that count; the others are 0, also where none counts.

    >>> softmax(fnp.array([0.0, 0.0]))
    Array([0.5, 0.5], f32[2])
    """
    if where is None:
        return softmax_of_all(x, axis)
    counting = masked(x, where, -math.inf)
    axes_of(axis, fnp.ndim(counting), "softmax")
    if not fnp.size(counting):
        return as_float(counting)
    most = stop_gradient(fnp.max(counting, axis=axis, keepdims=True))
    # exp sees 0 where the mask is False: an overflow there would spoil the gradient
    e = masked(fnp.exp(masked(x - fnp.where(fnp.isfinite(most), most, 0.0), where, 0.0)), where,
               0.0)
    total = fnp.sum(e, axis=axis, keepdims=True)
    return e * (1 / fnp.where(total == 0, 1.0, total))


def log_softmax(x, axis=-1, where=None):
    """log(softmax(x)) along `axis`, without overflow or cancellation; -inf where the mask is False.

    >>> log_softmax(fnp.array([0.0, 1000.0]))
    Array([-1000.,     0.], f32[2])
    """
    counting = masked(x, where, -math.inf)
    axes_of(axis, fnp.ndim(counting), "log_softmax")
    if not fnp.size(counting):
        return as_float(counting)
    most = stop_gradient(fnp.max(counting, axis=axis, keepdims=True))
    shifted = masked(x - most, where, 0.0)
    total = fnp.sum(masked(fnp.exp(shifted), where, 0.0), axis=axis, keepdims=True)
    total = total if where is None else fnp.where(total == 0, 1.0, total)
    return masked(shifted - fnp.log(total), where, -math.inf)


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *,
                algorithm="stable"):
    """(x - mean) / √(variance + epsilon) along `axis`; statistics that are not given are x's own.

    where: a mask of the elements that count for them.  algorithm: "stable" takes the mean of
    (x - mean)², "fast" that of x² less mean².  Raises ArgumentError for another one.

    >>> standardize(fnp.array([-1.0, 1.0]), epsilon=0.0)
    Array([-1.,  1.], f32[2])
    """
    if algorithm not in ("stable", "fast"):
        raise ArgumentError(f"standardize has no algorithm {algorithm!r}.",
                            expected='"stable" or "fast"')
    x = as_float(x)
    wide = widened(x)
    if mean is None:
        mean = fnp.mean(wide, axis=axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        variance = fnp.mean(fnp.square(wide - mean), axis=axis, keepdims=True, where=where)
    elif variance is None:
        squares = fnp.mean(fnp.square(wide), axis=axis, keepdims=True, where=where)
        variance = fnp.maximum(squares - fnp.square(mean), 0.0)
    out = (wide - mean) / fnp.sqrt(variance + epsilon)
    return out if wide is x else out.astype(x.dtype)


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    """A 1 at the label: i[*s] → f[*s,num_classes]; a label out of range gives zeros.

    dtype: the default float unless given.  axis: where the axis of the classes goes.

    >>> one_hot(fnp.array([1, 0]), 3)
    Array([[0., 1., 0.],
           [1., 0., 0.]], f32[2,3])
    """
    x, every = fnp.asarray(x), fnp.arange(num_classes)
    together = fnp.result_type(x, every)         # labels may be of any integer dtype
    hot = (x[..., None].astype(together) == every.astype(together)).astype(dtype)
    return hot if axis in (-1, x.ndim) else fnp.moveaxis(hot, -1, axis)
