"""Optimizers: chains of gradient transformations, with optax's names and defaults.

learning_rate is a number, a scalar array, or a schedule: a function of the number of updates made.
Where an optimizer decays weights or measures parameters, its update() needs them; `mask` and
`weight_decay_mask` say which are decayed, as in `masked`.  Relies on all of `fgrad.optim`.
"""

from __future__ import annotations

from .. import tree
from .clipping import clip_by_block_rms
from .combine import chain, multi_transform
from .masking import masked
from .moments import (
    scale_by_adam, scale_by_adamax, scale_by_adan, scale_by_amsgrad, scale_by_belief, scale_by_lion,
    scale_by_novograd, scale_by_radam, scale_by_yogi)
from .orthogonal import COEFFICIENTS, scale_by_muon, scale_by_shape
from .squares import (
    scale_by_adadelta, scale_by_factored_rms, scale_by_rms, scale_by_rss, scale_by_sm3,
    scale_by_stddev)
from .transformations import (
    add_decayed_weights, add_noise, ema, identity, scale, scale_by_learning_rate,
    scale_by_param_block_rms, scale_by_sign, scale_by_trust_ratio, trace)


def sgd(learning_rate, momentum=None, nesterov=False, accumulator_dtype=None):
    """Gradient descent, with momentum if it is given (Sutskever et al. 2013).

    accumulator_dtype: that of the momentum, the parameters' if None.

    >>> import fgrad.numpy as fnp
    >>> opt = sgd(0.1)
    >>> updates, state = opt.update(fnp.array([1.0]), opt.init(fnp.array([2.0])))
    >>> updates
    Array([-0.1], f32[1])
    """
    first = identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype)
    return chain(first, scale_by_learning_rate(learning_rate))


def noisy_sgd(learning_rate, eta=0.01, gamma=0.55, key=0):
    """Gradient descent with noise that fades (Neelakantan et al. 2015); see `add_noise`.

    >>> import fgrad.numpy as fnp
    >>> opt = noisy_sgd(0.1, key=1)
    >>> opt.update(fnp.zeros(2), opt.init(fnp.zeros(2)))[0].shape
    (2,)
    """
    return chain(add_noise(eta, gamma, key), scale_by_learning_rate(learning_rate))


def sign_sgd(learning_rate):
    """Gradient descent by the signs of the gradients (Bernstein et al. 2018).

    >>> import fgrad.numpy as fnp
    >>> opt = sign_sgd(0.1)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.1], f32[1])
    """
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


def signum(learning_rate, beta=0.9, accumulator_dtype=None):
    """Gradient descent by the signs of the momentum (Bernstein et al. 2018).

    >>> import fgrad.numpy as fnp
    >>> opt = signum(0.1)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.1], f32[1])
    """
    return chain(ema(beta, False, accumulator_dtype), scale_by_sign(),
                 scale_by_learning_rate(learning_rate))


# ---------------------------------------------------------------------------- Adam and relatives

def adam(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None, *,
         nesterov=False):
    """Adam (Kingma and Ba 2015).

    eps_root is added under the root, which keeps gradients through the update finite; mu_dtype is
    the dtype of the first moment, the parameters' if None.

    >>> import fgrad.numpy as fnp
    >>> opt = adam(0.1)
    >>> updates, state = opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))
    >>> round(float(updates[0]), 4)
    -0.1
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
                 scale_by_learning_rate(learning_rate))


def adamw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None,
          weight_decay=1e-4, mask=None, *, nesterov=False):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019); update() needs the parameters.

    mask: what is decayed, `lambda params: tree.map(lambda p: p.ndim > 1, params)` for example.

    >>> import fgrad.numpy as fnp
    >>> opt = adamw(0.1, weight_decay=0.5)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([0.0]), opt.init(params), params)[0]
    Array([-0.1], f32[1])
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
                 add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))


def nadam(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None):
    """Adam with Nesterov momentum (Dozat 2016); arguments as of `adam`.

    >>> import fgrad.numpy as fnp
    >>> opt = nadam(0.1, b1=0.5)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0].round(4)
    Array([-0.1333], f32[1])
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=True)


def nadamw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None,
           weight_decay=1e-4, mask=None):
    """AdamW with Nesterov momentum (Dozat 2016); arguments as of `adamw`.

    >>> import fgrad.numpy as fnp
    >>> opt = nadamw(0.1, weight_decay=0.5)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([0.0]), opt.init(params), params)[0]
    Array([-0.1], f32[1])
    """
    return adamw(learning_rate, b1, b2, eps, eps_root, mu_dtype, weight_decay, mask, nesterov=True)


def radam(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, threshold=5.0, *,
          nesterov=False):
    """Adam that waits until it knows the variance (Liu et al. 2020).

    >>> import fgrad.numpy as fnp
    >>> opt = radam(0.1)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.5], f32[1])
    """
    return chain(scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
                 scale_by_learning_rate(learning_rate))


def amsgrad(learning_rate, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, mu_dtype=None,
            bias_correction_mu=True, bias_correction_nu=True):
    """Adam by the largest second moment so far (Reddi et al. 2018).

    >>> import fgrad.numpy as fnp
    >>> opt = amsgrad(0.1)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.1], f32[1])
    """
    return chain(scale_by_amsgrad(b1, b2, eps, eps_root, mu_dtype, bias_correction_mu,
                                  bias_correction_nu),
                 scale_by_learning_rate(learning_rate))


def adamax(learning_rate, b1=0.9, b2=0.999, eps=1e-8):
    """Adam by the infinity norm (Kingma and Ba 2015, section 7).

    >>> import fgrad.numpy as fnp
    >>> opt = adamax(0.1)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.1], f32[1])
    """
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adamaxw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-4, mask=None):
    """Adamax with decoupled weight decay.

    >>> import fgrad.numpy as fnp
    >>> opt = adamaxw(0.1, weight_decay=0.5)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([5.0]), opt.init(params), params)[0]
    Array([-0.2], f32[1])
    """
    return chain(scale_by_adamax(b1, b2, eps), add_decayed_weights(weight_decay, mask),
                 scale_by_learning_rate(learning_rate))


def adabelief(learning_rate, b1=0.9, b2=0.999, eps=1e-16, eps_root=1e-16, *, nesterov=False):
    """Adam by how far gradients are from their mean (Zhuang et al. 2020).

    >>> import fgrad.numpy as fnp
    >>> opt = adabelief(0.1, b1=0.5)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.2], f32[1])
    """
    return chain(scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov),
                 scale_by_learning_rate(learning_rate))


def yogi(learning_rate, b1=0.9, b2=0.999, eps=1e-3):
    """Adam whose second moment grows slowly (Zaheer et al. 2018).

    >>> import fgrad.numpy as fnp
    >>> opt = yogi(0.1)
    >>> round(float(opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0][0]), 3)
    -0.1
    """
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adan(learning_rate, b1=0.98, b2=0.92, b3=0.99, eps=1e-8, eps_root=1e-8, weight_decay=0.0,
         mask=None):
    """Nesterov momentum by the change of gradients (Xie et al. 2022); needs the parameters.

    >>> import fgrad.numpy as fnp
    >>> opt = adan(0.1)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([5.0]), opt.init(params), params)[0].round(4)
    Array([-0.1], f32[1])
    """
    return chain(scale_by_adan(b1, b2, b3, eps, eps_root), add_decayed_weights(weight_decay, mask),
                 scale_by_learning_rate(learning_rate))


def lion(learning_rate, b1=0.9, b2=0.99, mu_dtype=None, weight_decay=1e-3, mask=None):
    """Signs of the momentum (Chen et al. 2023); update() needs the parameters.

    >>> import fgrad.numpy as fnp
    >>> opt = lion(0.1, weight_decay=0.5)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([5.0]), opt.init(params), params)[0]
    Array([-0.2], f32[1])
    """
    return chain(scale_by_lion(b1, b2, mu_dtype), add_decayed_weights(weight_decay, mask),
                 scale_by_learning_rate(learning_rate))


# ---------------------------------------------------------------------------- sums of squares

def rmsprop(learning_rate, decay=0.9, eps=1e-8, initial_scale=0.0, eps_in_sqrt=True,
            centered=False, momentum=None, nesterov=False, bias_correction=False):
    """Gradients divided by the root of their mean square (Tieleman and Hinton 2012).

    centered: the variance in place of the mean square (Graves 2013).  momentum: of the updates.
    torch's rmsprop is eps_in_sqrt=False.

    >>> import fgrad.numpy as fnp
    >>> opt = rmsprop(0.1, decay=0.75)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.2], f32[1])
    """
    by = scale_by_stddev if centered else scale_by_rms
    last = identity() if momentum is None else trace(momentum, nesterov)
    return chain(by(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
                 scale_by_learning_rate(learning_rate), last)


def adagrad(learning_rate, initial_accumulator_value=0.1, eps=1e-7):
    """Gradients divided by the root of the sum of their squares (Duchi et al. 2011).

    >>> import fgrad.numpy as fnp
    >>> opt = adagrad(0.1, initial_accumulator_value=0.0)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.1], f32[1])
    """
    return chain(scale_by_rss(initial_accumulator_value, eps),
                 scale_by_learning_rate(learning_rate))


def adadelta(learning_rate=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, weight_decay_mask=None):
    """Steps of the size of earlier steps (Zeiler 2012); update() needs the parameters.

    learning_rate: 1 as in the paper; with None, as optax has it, updates are not even negated.

    >>> import fgrad.numpy as fnp
    >>> opt = adadelta(1.0, rho=0.75)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([5.0]), opt.init(params), params)[0]
    Array([-0.002], f32[1])
    """
    return chain(add_decayed_weights(weight_decay, weight_decay_mask), scale_by_adadelta(rho, eps),
                 scale_by_learning_rate(learning_rate))


def adafactor(learning_rate=None, min_dim_size_to_factor=128, decay_rate=0.8, decay_offset=0,
              multiply_by_parameter_scale=True, clipping_threshold=1.0, momentum=None,
              dtype_momentum="float32", weight_decay_rate=None, eps=1e-30, factored=True,
              weight_decay_mask=None):
    """Adam's second moment by rows and columns (Shazeer and Stern 2018); needs the parameters.

    A matrix [m, n] with both of min_dim_size_to_factor or more keeps m + n numbers.  Updates are
    clipped to a root mean square of clipping_threshold, and scaled by that of the parameters.

    >>> import fgrad.numpy as fnp
    >>> opt = adafactor(0.1)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([5.0]), opt.init(params), params)[0]
    Array([-0.2], f32[1])
    """
    steps = [scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)]
    if clipping_threshold is not None:
        steps.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        steps.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        steps.append(scale_by_param_block_rms())
    if momentum is not None:
        steps.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
    if weight_decay_rate is not None:
        steps.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return chain(*steps, scale(-1.0))


def sm3(learning_rate, momentum=0.9):
    """Adagrad with a number for each row and column (Anil et al. 2019).

    >>> import fgrad.numpy as fnp
    >>> opt = sm3(0.1, momentum=0.0)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))[0]
    Array([-0.1], f32[1])
    """
    return chain(scale_by_sm3(momentum), scale_by_learning_rate(learning_rate))


# ---------------------------------------------------------------------------- layer by layer

def lars(learning_rate, weight_decay=0.0, weight_decay_mask=True, trust_coefficient=0.001, eps=0.0,
         trust_ratio_mask=True, momentum=0.9, nesterov=False):
    """Momentum with rates in proportion to the size of each layer (You et al. 2017).

    The masks say where weights are decayed and rates adapted.  update() needs the parameters.

    >>> import fgrad.numpy as fnp
    >>> opt = lars(1.0)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([5.0]), opt.init(params), params)[0]
    Array([-0.002], f32[1])
    """
    ratio = scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps)
    return chain(add_decayed_weights(weight_decay, weight_decay_mask),
                 masked(ratio, trust_ratio_mask), scale_by_learning_rate(learning_rate),
                 trace(momentum, nesterov))


def lamb(learning_rate, b1=0.9, b2=0.999, eps=1e-6, eps_root=0.0, weight_decay=0.0, mask=None):
    """AdamW with rates in proportion to the size of each layer (You et al. 2020).

    update() needs the parameters.

    >>> import fgrad.numpy as fnp
    >>> opt = lamb(0.1)
    >>> params = fnp.array([2.0])
    >>> opt.update(fnp.array([5.0]), opt.init(params), params)[0]
    Array([-0.2], f32[1])
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root), add_decayed_weights(weight_decay, mask),
                 scale_by_trust_ratio(), scale_by_learning_rate(learning_rate))


def novograd(learning_rate, b1=0.9, b2=0.25, eps=1e-6, eps_root=0.0, weight_decay=0.0):
    """Momentum of gradients divided by the norms of their layers (Ginsburg et al. 2019).

    update() needs the parameters.

    >>> import fgrad.numpy as fnp
    >>> opt = novograd(0.1)
    >>> params = fnp.zeros(2)
    >>> opt.update(fnp.array([3.0, 4.0]), opt.init(params), params)[0].round(4)
    Array([-0.06, -0.08], f32[2])
    """
    return chain(scale_by_novograd(b1, b2, eps, eps_root, weight_decay),
                 scale_by_learning_rate(learning_rate))


def muon(learning_rate, ns_coeffs=COEFFICIENTS, ns_steps=5, beta=0.95, eps=1e-8, weight_decay=0.0,
         weight_decay_mask=None, mu_dtype=None, *, nesterov=True, adaptive=False, adam_b1=0.9,
         adam_b2=0.999, adam_eps_root=0.0, adam_weight_decay=0.0, adam_learning_rate=None,
         param_labels=None, consistent_rms=None):
    """Orthogonalized momentum for matrices f[in,out], AdamW for all else (Jordan et al. 2024).

    param_labels: "muon" or "adam" for each leaf, as in `multi_transform`; if None, by two axes.
    adam_learning_rate: learning_rate if None.  update() needs the parameters.

    >>> import fgrad.numpy as fnp
    >>> opt = muon(0.1)
    >>> params = {"w": fnp.eye(2), "b": fnp.zeros(1)}
    >>> updates, state = opt.update({"w": fnp.eye(2), "b": fnp.ones(1)}, opt.init(params), params)
    >>> updates["b"].round(4)
    Array([-0.1474], f32[1])
    """
    def by_axes(params):
        return tree.map(lambda p: "muon" if p.ndim == 2 else "adam", params)

    matrices = chain(scale_by_muon(ns_coeffs, ns_steps, beta, eps, mu_dtype, nesterov=nesterov,
                                   adaptive=adaptive),
                     scale_by_shape(consistent_rms),
                     add_decayed_weights(weight_decay, weight_decay_mask),
                     scale_by_learning_rate(learning_rate))
    others = adamw(learning_rate if adam_learning_rate is None else adam_learning_rate,
                   adam_b1, adam_b2, eps, adam_eps_root, mu_dtype, adam_weight_decay,
                   nesterov=nesterov)
    return multi_transform({"muon": matrices, "adam": others}, param_labels or by_axes)
