"""Activations and losses: values, stability at large logits, gradients."""

import math

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn
from fgrad.errors import ArgumentError, DtypeError, PositionError, ShapeError

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(5, 4)).astype(np.float32)
LABELS = np.array([0, 3, 1, 1, 2], np.int32)


def test_softmax_cross_entropy_agrees_with_its_definition():
    p = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    want = -np.log(p[np.arange(5), LABELS])
    np.testing.assert_allclose(nn.softmax_cross_entropy_with_integer_labels(LOGITS, LABELS), want,
                               rtol=1e-5)
    one_hot = nn.one_hot(LABELS, 4)
    np.testing.assert_allclose(nn.softmax_cross_entropy(LOGITS, one_hot), want, rtol=1e-5)
    np.testing.assert_allclose(nn.log_softmax(LOGITS), np.log(p), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_cross_entropy_is_softmax_minus_one_hot():
    loss = lambda x: fnp.sum(nn.softmax_cross_entropy_with_integer_labels(x, LABELS))
    want = np.asarray(nn.softmax(LOGITS)) - np.eye(4)[LABELS]
    np.testing.assert_allclose(fgrad.grad(loss)(LOGITS), want, atol=1e-6)
    np.testing.assert_allclose(fgrad.jit(fgrad.grad(loss))(LOGITS), want, atol=1e-6)


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_losses_are_stable_for_large_logits(size):
    logits, labels = fnp.array([[size, -size]]), fnp.array([1])
    for loss in (lambda x: fnp.sum(nn.softmax_cross_entropy_with_integer_labels(x, labels)),
                 lambda x: fnp.sum(nn.sigmoid_binary_cross_entropy(x, fnp.array([[0.0, 1.0]])))):
        assert float(loss(logits)) == pytest.approx(2 * size)
        assert np.isfinite(np.asarray(fgrad.grad(loss)(logits))).all()


def test_logsumexp_of_nothing_but_minus_infinity():
    assert float(nn.logsumexp(fnp.array([-math.inf, -math.inf]))) == -math.inf
    assert nn.logsumexp(LOGITS, axis=1).shape == (5,)
    assert nn.logsumexp(LOGITS, axis=0, keepdims=True).shape == (1, 4)


def test_wrong_shapes_are_explained():
    with pytest.raises(ShapeError, match="one label per row"):
        nn.softmax_cross_entropy_with_integer_labels(LOGITS, LABELS[:3])
    with pytest.raises(ShapeError, match="one probability per logit"):
        nn.softmax_cross_entropy(LOGITS, LABELS)


BY_LABEL = [nn.softmax_cross_entropy_with_integer_labels, nn.nll,
            lambda x, labels: nn.smoothed(labels, 4, 0.1).sum(axis=-1)]


@pytest.mark.parametrize("loss", BY_LABEL)
@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_label_out_of_range_is_refused_where_it_is_known_and_nan_where_it_is_not(loss, wrong):
    labels = fnp.array([0, wrong, 1, 1, 2])
    with pytest.raises(PositionError, match=f"label {wrong} is out of range"):
        loss(LOGITS, labels)
    with pytest.raises(PositionError):
        fgrad.grad(lambda x: fnp.sum(loss(x, labels)))(LOGITS)
    for compiled in (fgrad.jit(loss), fgrad.vmap(loss)):
        assert np.isnan(compiled(LOGITS, labels)).tolist() == [False, True, False, False, False]
        assert not np.isnan(compiled(LOGITS, LABELS.astype(np.int8))).any()


@pytest.mark.parametrize("loss", BY_LABEL)
def test_float_labels_are_refused(loss):
    with pytest.raises(DtypeError, match="labels are numbers of classes"):
        loss(LOGITS, LABELS.astype(np.float32))


def test_a_row_that_is_ignored_may_have_any_label():
    labels = np.array([0, -1, 1, 1, 2])
    loss = lambda x, labels: nn.softmax_cross_entropy_with_integer_labels(x, labels, ignore=-1)
    for run in (loss, fgrad.jit(loss)):
        assert float(run(LOGITS, labels)[1]) == 0
        slope = fgrad.grad(lambda x: fnp.sum(run(x, labels)))(LOGITS)
        assert np.isfinite(slope).all() and not np.asarray(slope)[1].any()


def test_accuracy_counts_the_largest_logit():
    logits = np.eye(4, dtype=np.float32)
    assert float(nn.accuracy(logits, np.array([0, 1, 2, 0]))) == 0.75


@pytest.mark.parametrize("name",
                         ["relu", "leaky_relu", "sigmoid", "tanh", "silu", "softplus", "elu",
                          "gelu"])
def test_activations_have_right_gradients_and_no_nan(name):
    f = getattr(nn, name)
    x = fnp.array([-3.0, -0.5, 0.7, 2.0], "float64")
    fgrad.check_grads(f, (x,), order=2)
    extreme = fnp.array([-1e4, 1e4])
    assert np.isfinite(np.asarray(f(extreme))).all()
    assert np.isfinite(np.asarray(fgrad.grad(lambda v: fnp.sum(f(v)))(extreme))).all()


def test_relu_is_flat_at_zero():
    assert float(fgrad.grad(nn.relu)(0.0)) == 0.0


def test_gelu_without_approximation():
    want = [0.5 * v * (1 + math.erf(v / 2 ** 0.5)) for v in (-1.0, 0.0, 2.0)]
    np.testing.assert_allclose(nn.gelu(fnp.array([-1.0, 0.0, 2.0]), approximate=False), want,
                               rtol=1e-5, atol=1e-6)


def test_class_weights_and_an_ignored_label():
    weights = fnp.array([1.0, 0.5, 2.0, 0.0])
    plain = np.asarray(nn.softmax_cross_entropy_with_integer_labels(LOGITS, LABELS))
    weighted = nn.softmax_cross_entropy_with_integer_labels(LOGITS, LABELS, ignore=0,
                                                            weights=weights)
    np.testing.assert_allclose(weighted, plain * [0, 0, 0.5, 0.5, 2], rtol=1e-6)
    with pytest.raises(ShapeError, match="one weight for each of the 4 classes"):
        nn.softmax_cross_entropy_with_integer_labels(LOGITS, LABELS, weights=weights[:2])


def test_a_class_that_cannot_be_does_not_spoil_the_others():
    logits, labels = fnp.array([[0.0, -math.inf, 0.0]]), fnp.array([2])
    loss = lambda x: fnp.sum(nn.softmax_cross_entropy_with_integer_labels(x, labels))
    assert float(loss(logits)) == pytest.approx(math.log(2))
    np.testing.assert_allclose(fgrad.grad(loss)(logits), [[0.5, 0, -0.5]], atol=1e-6)
    soft = nn.softmax_cross_entropy(logits, fnp.array([[0.5, 0.0, 0.5]]))
    assert float(soft[0]) == pytest.approx(math.log(2))


def test_what_apply_returns_is_not_taken_for_predictions():
    """TypeError: unsupported operand type(s) for -: 'tuple' and 'Array'."""
    model = nn.Dense(4)
    params, state = model.init(fgrad.random.key(0), fnp.ones((2, 3)))
    returned = model.apply(params, state, fnp.ones((2, 3)))
    for loss, target in ((nn.squared_error, fnp.ones((2, 4))),
                         (nn.softmax_cross_entropy_with_integer_labels, fnp.zeros(2, "int32")),
                         (nn.huber, fnp.ones((2, 4)))):
        with pytest.raises(ArgumentError, match="is a tuple of an array and a state"):
            loss(returned, target)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_the_focal_loss_of_what_is_sure_has_a_gradient(gamma, label):
    """1 - p was 0 in f32 from a logit of 17 on, and its root has no derivative there."""
    slope, sign = fgrad.grad(lambda x: nn.sigmoid_focal(x, fnp.array(label), gamma)), 2 * label - 1
    sure = -(1 + gamma) * np.exp(-20 * (1 + gamma))
    assert slope(20.0 * sign) * sign == pytest.approx(sure, 1e-3)
    assert slope(-20.0 * sign) * sign == pytest.approx(-1, 1e-3)
    assert np.isfinite(slope(200.0 * sign))


def test_ctc_of_empty_targets_is_that_of_blanks():
    empty, none = fnp.zeros((2, 0), "int32"), fnp.array([0, 0])
    found = nn.ctc(fnp.zeros((2, 3, 4)), empty, fnp.array([3, 2]), none)
    np.testing.assert_allclose(found, [3 * np.log(4), 2 * np.log(4)], rtol=1e-6)
