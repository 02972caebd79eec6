"""Losses, one number per example or element.  Stable for logits of any size.

What is reduced stands in the first line of each: a loss over classes or features sums over the last
axis, the others work element by element; only `mean_…` and `accuracy` are means of everything.
Take the mean yourself: `fnp.mean(loss)`.

What is compared has one shape, or is one number: (n, 1) and (n,) would become all n² pairs, so they
raise ShapeError (`check_alike`); labels have the shape of the rows (`check_labels`).

Integer labels are classes from 0 to classes - 1.  Another label raises PositionError where it is
known, and makes its row NaN where it is not: in compiled code and under vmap.
"""

from __future__ import annotations

import math

import numpy as np

from .. import numpy as fnp
from ..control import scan
from ..core import Array, Tracer
from ..custom import stop_gradient
from ..errors import ArgumentError, DtypeError, PositionError, ShapeError
from .activations import log_softmax, logsumexp, one_hot, sigmoid


# ---------------------------------------------------------------------------- arguments

def check_output(name, x):
    """Raises ArgumentError for what `apply` of a model returns: its result, and the new state."""
    if isinstance(x, tuple) and len(x) == 2 and hasattr(x[0], "shape") and isinstance(
            x[1], (dict, list, tuple)):
        raise ArgumentError(f"{name} is a tuple of an array and a state.",
                            fix=f"{name}, state = model.apply(params, state, x) takes it apart")


def check_alike(**pair):
    """Raises ShapeError unless two arrays, by name, have one shape; a number stands for all."""
    for name, x in pair.items():
        check_output(name, x)
    s, t = [getattr(x, "shape", ()) for x in pair.values()]
    if s == t or not s or not t:
        return
    a, b = pair
    shorter, longer = sorted(pair, key=lambda name: len(pair[name].shape))
    narrow, wide = pair[shorter].shape, pair[longer].shape
    fix = None
    if wide == (*narrow, 1):
        every = ":" if len(wide) == 2 else "..."
        fix = f"{shorter}[{every}, None], or {longer}[{every}, 0]"
    elif wide[-len(narrow):] == narrow:
        fix = f"fnp.broadcast_to({shorter}, {longer}.shape), where that is meant"
    raise ShapeError(f"{a} and {b} need one shape, and have {s} and {t}.",
                     given=[f"{a} of shape {s}", f"{b} of shape {t}"], fix=fix)


def check_labels(logits, labels):
    """Raises ShapeError unless there is one label per row of logits."""
    check_output("logits", logits)
    shape, found = fnp.shape(logits), fnp.shape(labels)
    if shape and found == shape[:-1]:
        return
    fix = None
    if found == (*shape[:-1], 1):
        fix = "labels[:, 0]" if len(found) == 2 else "labels[..., 0]"
    elif found == shape:
        fix = ["fnp.argmax(labels, axis=-1), where they are one-hot",
               "or softmax_cross_entropy, for probabilities"]
    raise ShapeError("there must be one label per row of logits.",
                     given=[f"logits of shape {shape}", f"labels of shape {found}"],
                     expected=f"labels of shape {shape[:-1]}, numbers of classes", fix=fix)


def check_integers(what, labels):
    """The labels as an array.  Raises DtypeError unless they are integers."""
    labels = fnp.asarray(labels)
    if labels.dtype.kind not in "iub":
        raise DtypeError(f"{what}: labels are numbers of classes, and need integers.",
                         given=f"labels: {labels.type}",
                         fix=["labels.astype('int32')",
                              "softmax_cross_entropy takes probabilities instead of labels"])
    return labels


# ---------------------------------------------------------------------------- losses

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
    terms = fnp.where(probabilities == 0, 0.0, probabilities * log_softmax(logits))
    return -fnp.sum(terms, axis=-1)


def softmax_cross_entropy_with_integer_labels(logits, labels, smoothing=0.0, ignore=None,
                                              weights=None):
    """-log softmax(logits)[label] over the last axis.

    logits: f[*s,classes], labels: i[*s]  →  f[*s].  smoothing: the share of the probability that is
    spread over all classes (Szegedy et al. 2016).  Rows whose label is `ignore` give 0.
    weights: f[classes], how much a row with that label counts; torch's mean is Σ loss over
    Σ weights[labels].  A logit of -inf is a class that cannot be.
    Raises ShapeError when they do not fit, DtypeError for labels that are no integers, and
    PositionError for one that is out of range and not `ignore`; in compiled code its row is NaN.

    >>> softmax_cross_entropy_with_integer_labels(fnp.array([[0.0, 0.0]]), fnp.array([1]))
    Array([0.6931472], f32[1])
    """
    check_labels(logits, labels)
    classes = fnp.shape(logits)[-1]
    if weights is not None and fnp.shape(weights) != (classes,):
        raise ShapeError(f"there must be one weight for each of the {classes} classes.",
                         given=f"weights of shape {fnp.shape(weights)}")
    hit = one_hot(labels, classes, dtype=bool)
    expected = nan_outside("softmax_cross_entropy_with_integer_labels", labels, classes,
                           fnp.sum(fnp.where(hit, logits, 0.0), axis=-1), ignore)
    if smoothing:
        expected = (1 - smoothing) * expected + smoothing * fnp.mean(logits, axis=-1)
    loss = logsumexp(logits, axis=-1) - expected
    if weights is not None:
        loss = loss * fnp.sum(fnp.where(hit, weights, 0.0), axis=-1)
    return loss if ignore is None else fnp.where(labels == ignore, 0.0, loss)


def nan_outside(what, labels, classes, rows, ignore=None):
    """The rows, NaN where a label that is not known is none of the classes, and not `ignore`.

    Raises DtypeError unless labels are integers, PositionError where one is known to be outside.
    """
    labels = check_integers(what, labels)
    known = labels.known() if isinstance(labels, Tracer) else labels
    if not isinstance(known, Array):
        wide = labels.astype(fnp.result_type(labels, "int32"))   # i8 cannot count to classes
        fits = (wide >= 0) & (wide < classes)
        fits = fits if ignore is None else fits | (wide == ignore)
        return fnp.where(fits, rows, math.nan)
    values = np.asarray(known.np)
    wrong = values[(values < 0) | (values >= classes)]
    wrong = wrong if ignore is None else wrong[wrong != ignore]
    if wrong.size:
        raise PositionError(f"{what}: label {int(wrong[0])} is out of range.",
                            given=f"labels: {labels.type}, from {values.min()} to {values.max()}",
                            expected=f"labels from 0 to {classes - 1}, for {classes} classes",
                            fix="ignore=-1, where it marks rows that do not count"
                            if wrong[0] == -1 and "integer_labels" in what else None)
    return rows


def smoothed(labels, classes, smoothing, dtype="float32"):
    """Probabilities of integer labels: 1 - smoothing at the label, the rest over all classes.

    Raises DtypeError and PositionError for labels that are none; in compiled code a row is NaN.

    >>> smoothed(fnp.array([0]), 4, 0.2).round(2)
    Array([[0.85, 0.05, 0.05, 0.05]], f32[1,4])
    """
    hot = one_hot(labels, classes, dtype=dtype)
    shares = hot * (1 - smoothing) + smoothing / classes
    return nan_outside("smoothed", fnp.asarray(labels)[..., None], classes, shares)


def nll(log_probabilities, labels):
    """-log p[label]: f[*s,classes] of log-probabilities, i[*s] → f[*s].

    Raises ShapeError, DtypeError and PositionError for labels that are none; in compiled code a row
    is NaN.

    >>> nll(fnp.log(fnp.array([[0.25, 0.75]])), fnp.array([0]))
    Array([1.3862944], f32[1])
    """
    check_labels(log_probabilities, labels)
    classes = fnp.shape(log_probabilities)[-1]
    hit = one_hot(labels, classes, dtype=bool)
    found = fnp.sum(fnp.where(hit, log_probabilities, 0.0), axis=-1)
    return -nan_outside("nll", labels, classes, found)


def sigmoid_binary_cross_entropy(logits, labels):
    """-(y · log σ(x) + (1 - y) · log(1 - σ(x))), element by element, for labels between 0 and 1.

    >>> sigmoid_binary_cross_entropy(fnp.array([0.0, 1e4]), fnp.array([1.0, 1.0]))
    Array([0.6931472, 0.       ], f32[2])
    """
    check_alike(logits=logits, labels=labels)
    return fnp.logaddexp(logits, 0.0) - logits * labels


def squared_error(predictions, targets):
    """(predictions - targets)², element by element; its mean is the MSE.

    >>> squared_error(fnp.array([1.0, 3.0]), fnp.array([1.0, 1.0]))
    Array([0., 4.], f32[2])
    """
    check_alike(predictions=predictions, targets=targets)
    return fnp.square(predictions - targets)


def mean_squared_error(predictions, targets):
    """The mean of the squared errors over all elements.

    >>> mean_squared_error(fnp.array([1.0, 3.0]), fnp.array([1.0, 1.0]))
    Array(2., f32[])
    """
    return fnp.mean(squared_error(predictions, targets))


def accuracy(logits, labels):
    """The share of rows whose largest logit is at the label: f[*s,classes], i[*s] → f32[].

    Raises ShapeError for another shape, as of one-hot labels, DtypeError for labels of floats.

    >>> accuracy(fnp.array([[0.0, 1.0], [0.0, 1.0]]), fnp.array([1, 0]))
    Array(0.5, f32[])
    """
    return fnp.mean(right("accuracy", logits, labels))


def right(what, logits, labels):
    """1 where the largest logit is at the label, else 0: f[*s,classes], i[*s] → f32[*s]."""
    check_labels(logits, labels)
    labels, best = check_integers(what, labels), fnp.argmax(logits, axis=-1)
    together = fnp.result_type(labels, best)     # labels may be of any integer dtype
    return (best.astype(together) == labels.astype(together)).astype("float32")


def absolute_error(predictions, targets):
    """|predictions - targets|, element by element; its mean is the MAE.

    >>> absolute_error(fnp.array([1.0, 3.0]), fnp.array([1.0, 4.0]))
    Array([0., 1.], f32[2])
    """
    check_alike(predictions=predictions, targets=targets)
    return fnp.abs(predictions - targets)


def mean_absolute_error(predictions, targets):
    """The mean of the absolute errors over all elements.

    >>> mean_absolute_error(fnp.array([1.0, 3.0]), fnp.array([1.0, 4.0]))
    Array(0.5, f32[])
    """
    return fnp.mean(absolute_error(predictions, targets))


def huber(predictions, targets, delta=1.0):
    """Half the squared error up to `delta`, and a straight line beyond (Huber 1964).

    >>> huber(fnp.array([0.5, 3.0]), fnp.zeros(2))
    Array([0.125, 2.5  ], f32[2])
    """
    size = absolute_error(predictions, targets)
    near = fnp.minimum(size, delta)
    return 0.5 * near * near + delta * (size - near)


def log_cosh(predictions, targets):
    """log(cosh(predictions - targets)), element by element, without overflow.

    >>> log_cosh(fnp.array([1e4]), fnp.array([1e4]))
    Array([0.], f32[1])
    """
    size = absolute_error(predictions, targets)
    return size + fnp.log1p(fnp.exp(-2.0 * size)) - math.log(2.0)


def hinge(scores, labels):
    """max(0, 1 - score · label), element by element, for labels -1 and 1.

    >>> hinge(fnp.array([0.5, -2.0]), fnp.array([1.0, -1.0]))
    Array([0.5, 0. ], f32[2])
    """
    check_alike(scores=scores, labels=labels)
    return fnp.maximum(1.0 - scores * labels, 0.0)


def kl_divergence(log_probabilities, targets):
    """Σ t · (log t - log p) over the last axis: f[*s,classes] twice → f[*s]; 0 · log 0 is 0.

    >>> kl_divergence(fnp.log(fnp.array([0.5, 0.5])), fnp.array([0.5, 0.5]))
    Array(0., f32[])
    """
    check_alike(log_probabilities=log_probabilities, targets=targets)
    positive = targets > 0
    logs = fnp.log(fnp.where(positive, targets, 1.0))
    return fnp.sum(fnp.where(positive, targets * (logs - log_probabilities), 0.0), axis=-1)


def sigmoid_focal(logits, labels, gamma=2.0, alpha=None):
    """Binary cross-entropy times (1 - p of the right answer)^gamma (Lin et al. 2017).

    Element by element, for labels between 0 and 1; alpha: the weight of label 1, 1 - alpha that of
    label 0.

    >>> sigmoid_focal(fnp.array([0.0]), fnp.array([1.0])).round(4)
    Array([0.1733], f32[1])
    """
    plain = sigmoid_binary_cross_entropy(logits, labels)
    wrong = sigmoid(logits) * (1 - labels) + sigmoid(-logits) * labels
    some = wrong > 0                             # a root of 0 has an infinite derivative
    loss = plain * fnp.where(some, fnp.where(some, wrong, 1.0)**gamma, 0.0)
    return loss if alpha is None else loss * (alpha * labels + (1 - alpha) * (1 - labels))


def cosine_similarity(a, b, epsilon=1e-8):
    """a · b over the product of their lengths, along the last axis; lengths below epsilon are it.

    All axes but the last broadcast: a[:, None] and b give every pair.

    >>> cosine_similarity(fnp.array([1.0, 0.0]), fnp.array([2.0, 0.0]))
    Array(1., f32[])
    """
    if fnp.shape(a)[-1:] != fnp.shape(b)[-1:]:
        check_alike(a=a, b=b)
    a, b = [x / length(x, epsilon)[..., None] for x in (a, b)]
    return fnp.sum(a * b, axis=-1)


def length(x, epsilon=0.0):
    """The Euclidean length along the last axis, at least epsilon; its gradient at 0 is 0.

    x is scaled by its largest element, so that squares do not overflow in 16 bits.
    """
    most = stop_gradient(fnp.max(fnp.abs(x), axis=-1, keepdims=True, initial=0.0))
    inside = most > 0
    scaled = fnp.where(inside, x, 1.0) / fnp.where(inside, most, 1.0)
    root = fnp.sqrt(fnp.sum(scaled * scaled, axis=-1)) * most[..., 0]
    return fnp.maximum(fnp.where(inside[..., 0], root, 0.0), epsilon)


def cosine_distance(a, b, epsilon=1e-8):
    """1 - cosine_similarity(a, b), of a and b of one shape.

    >>> cosine_distance(fnp.array([1.0, 0.0]), fnp.array([0.0, 2.0]))
    Array(1., f32[])
    """
    check_alike(a=a, b=b)
    return 1.0 - cosine_similarity(a, b, epsilon)


def triplet(anchor, positive, negative, margin=1.0):
    """max(0, |anchor - positive| - |anchor - negative| + margin): f[*s,n] thrice → f[*s].

    Source: Schroff et al. 2015.

    >>> triplet(fnp.zeros(2), fnp.array([3.0, 4.0]), fnp.array([0.0, 2.0]))
    Array(4., f32[])
    """
    check_alike(anchor=anchor, positive=positive)
    check_alike(anchor=anchor, negative=negative)
    return fnp.maximum(length(anchor - positive) - length(anchor - negative) + margin, 0.0)


def poisson_nll(log_rates, counts):
    """exp(log rate) - count · log rate, element by element: Poisson's, without its constant.

    >>> poisson_nll(fnp.array([0.0]), fnp.array([3.0]))
    Array([1.], f32[1])
    """
    check_alike(log_rates=log_rates, counts=counts)
    return fnp.exp(log_rates) - counts * log_rates


def ctc(logits, labels, logit_lengths, label_lengths, blank=0):
    """-log p(labels | logits) over all alignments (Graves et al. 2006).

    logits: f[batch,time,classes], labels: i[batch,n], lengths: i[batch] → f[batch].  A label may
    stand for several steps, and any number of blanks between labels; equal neighbours need one.
    +inf, as far as the dtype goes, where the time is too short.

    >>> uniform = fnp.zeros((1, 2, 2))
    >>> ctc(uniform, fnp.array([[1]]), fnp.array([2]), fnp.array([1])).round(4)
    Array([0.2877], f32[1])
    """
    batch, time, _ = fnp.shape(logits)
    n = fnp.shape(labels)[1]
    if not len(labels) == len(logit_lengths) == len(label_lengths) == batch:
        raise ShapeError("ctc needs labels and lengths for each of the batch.",
                         given=[f"logits of shape {fnp.shape(logits)}",
                                f"labels of shape {fnp.shape(labels)}"])
    states = 2 * n + 1                           # blank, label, blank, label, …, blank
    ids = fnp.full((batch, states), blank, labels.dtype).at[:, 1::2].set(labels)
    least = -1e30 if logits.dtype != "float16" else -6e4
    scores = fnp.take_along_axis(log_softmax(logits), ids[:, None, :], axis=2)
    skips = fnp.zeros((batch, states), bool).at[:, 2:].set(
        (ids[:, 2:] != blank) & (ids[:, 2:] != ids[:, :-2]))
    start = fnp.where(fnp.arange(states) < 2, scores[:, 0], least)

    def step(alpha, xs):
        score, live = xs
        one = fnp.pad(alpha[:, :-1], ((0, 0), (1, 0)), constant_values=least)
        two = fnp.pad(one[:, :-1], ((0, 0), (1, 0)), constant_values=least)
        paths = fnp.stack([alpha, one, fnp.where(skips, two, least)])
        new = fnp.maximum(logsumexp(paths, axis=0) + score, least)
        return fnp.where(live[:, None], new, alpha), None
    live = fnp.arange(1, time)[:, None] < fnp.asarray(logit_lengths)[None, :]
    alpha, _ = scan(step, start, (fnp.moveaxis(scores, 1, 0)[1:], live))
    last = 2 * fnp.asarray(label_lengths)[:, None]
    ends = fnp.take_along_axis(alpha, fnp.concatenate([last, fnp.maximum(last - 1, 0)], axis=1), 1)
    both = fnp.where(last > 0, fnp.array([True, True]), fnp.array([True, False]))
    return -logsumexp(ends, axis=-1, where=both)
