"""Optimizers: chains of gradient transformations, with optax's names and defaults."""

from __future__ import annotations

from .transformations import (add_decayed_weights, chain, identity, scale_by_adam,
                              scale_by_learning_rate, trace)


def sgd(learning_rate, momentum=None, nesterov=False):
    """Gradient descent, with momentum if it is given.

    learning_rate: a number, or a schedule (a function of the number of updates made).

    >>> import fgrad.numpy as fnp
    >>> opt = sgd(0.1)
    >>> updates, state = opt.update(fnp.array([1.0]), opt.init(fnp.array([2.0])))
    >>> updates
    Array([-0.1], f32[1])
    """
    first = identity() if momentum is None else trace(momentum, nesterov)
    return chain(first, scale_by_learning_rate(learning_rate))


def adam(learning_rate, b1=0.9, b2=0.999, eps=1e-8):
    """Adam (Kingma and Ba 2015).  learning_rate: a number, or a schedule.

    >>> import fgrad.numpy as fnp
    >>> opt = adam(0.1)
    >>> updates, state = opt.update(fnp.array([5.0]), opt.init(fnp.array([2.0])))
    >>> round(float(updates[0]), 4)
    -0.1
    """
    return chain(scale_by_adam(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adamw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-4):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Its update() needs the parameters.
    """
    return chain(scale_by_adam(b1, b2, eps), add_decayed_weights(weight_decay),
                 scale_by_learning_rate(learning_rate))
