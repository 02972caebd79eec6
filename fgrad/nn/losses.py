"""Losses, one number per example; take their mean.  Stable for logits of any size."""

from __future__ import annotations

from .. import numpy as fnp
from ..errors import ShapeError
from .activations import log_softmax, logsumexp, one_hot


def softmax_cross_entropy(logits, probabilities):
    """-Σ p · log softmax(logits) over the last axis.

    logits, probabilities: f[*s,classes]  →  f[*s].  Raises ShapeError when they differ.

    >>> softmax_cross_entropy(fnp.array([[0.0, 0.0]]), fnp.array([[1.0, 0.0]]))
    Array([0.6931472], f32[1])
    """
    if fnp.shape(logits) != fnp.shape(probabilities):
        raise ShapeError("softmax_cross_entropy needs one probability per logit.",
                         given=[f"logits of shape {fnp.shape(logits)}",
                                f"probabilities of shape {fnp.shape(probabilities)}"],
                         fix="use softmax_cross_entropy_with_integer_labels for labels")
    return -fnp.sum(probabilities * log_softmax(logits), axis=-1)


def softmax_cross_entropy_with_integer_labels(logits, labels):
    """-log softmax(logits)[label] over the last axis.

    logits: f[*s,classes], labels: i[*s]  →  f[*s].  Raises ShapeError when they do not fit.

    >>> softmax_cross_entropy_with_integer_labels(fnp.array([[0.0, 0.0]]), fnp.array([1]))
    Array([0.6931472], f32[1])
    """
    if fnp.shape(logits)[:-1] != fnp.shape(labels):
        raise ShapeError("there must be one label per row of logits.",
                         given=[f"logits of shape {fnp.shape(logits)}",
                                f"labels of shape {fnp.shape(labels)}"],
                         expected=f"labels of shape {fnp.shape(logits)[:-1]}")
    hit = one_hot(labels, fnp.shape(logits)[-1], logits.dtype)
    return logsumexp(logits, axis=-1) - fnp.sum(hit * logits, axis=-1)


def sigmoid_binary_cross_entropy(logits, labels):
    """-(y · log σ(x) + (1 - y) · log(1 - σ(x))), element by element, for labels between 0 and 1."""
    return fnp.logaddexp(logits, 0.0) - logits * labels


def squared_error(predictions, targets):
    """(predictions - targets)², element by element; its mean is the MSE."""
    return fnp.square(predictions - targets)


def mean_squared_error(predictions, targets):
    """The mean of the squared errors over all elements.

    >>> mean_squared_error(fnp.array([1.0, 3.0]), fnp.array([1.0, 1.0]))
    Array(2., f32[])
    """
    return fnp.mean(squared_error(predictions, targets))


def accuracy(logits, labels):
    """The share of rows whose largest logit is at the label: f[*s,classes], i[*s] → f32[]."""
    return fnp.mean((fnp.argmax(logits, axis=-1) == labels).astype("float32"))
