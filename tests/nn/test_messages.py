"""Mistakes with layers and losses: errors of fgrad that name what was given, and the fix."""

import inspect
import re
import traceback

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, random, train
from fgrad.errors import FgradError

X, IMAGES = fnp.ones((2, 3)), fnp.ones((1, 8, 8, 3))
OUT, Y = fnp.ones((4, 1)), fnp.ones(4)
EYE, LABELS = fnp.eye(4), fnp.arange(4)


def key():
    return random.key(0)


def started(layer, x=X):
    return layer.init(key(), x)[0]


def report(function):
    """The whole message of what the call raises, from fgrad."""
    with pytest.raises(FgradError) as caught:
        function()
    return str(caught.value)


ELEMENTWISE = [nn.squared_error, nn.mean_squared_error, nn.absolute_error, nn.mean_absolute_error,
               nn.huber, nn.log_cosh, nn.hinge, nn.sigmoid_binary_cross_entropy, nn.sigmoid_focal,
               nn.poisson_nll, nn.kl_divergence, nn.cosine_distance,
               lambda a, b: nn.triplet(a, a, b), lambda a, b: nn.triplet(a, b, b)]


@pytest.mark.parametrize("loss", ELEMENTWISE)
def test_a_loss_of_a_column_and_a_vector_is_refused(loss):
    each = fgrad.vmap(loss)
    for run in (loss, fgrad.jit(loss), lambda a, b: each(a[None], b[None])):
        said = report(lambda: run(OUT, Y))
        assert "need one shape, and have (4, 1) and (4,)" in said
        assert re.search(r"fix +\w+\[:, None\], or \w+\[:, 0\]", said)
    assert "need one shape" in report(lambda: loss(fnp.ones((2, 3)), fnp.ones((2, 4))))
    said = report(lambda: loss(Y, fnp.ones((2, 4))))
    assert re.search(r"fnp.broadcast_to\(\w+, \w+.shape\), where that is meant", said)


def test_a_number_is_a_target_for_all():
    assert float(nn.mean_squared_error(OUT, 0.0)) == 1.0
    assert nn.huber(OUT, fnp.array(0.0)).shape == OUT.shape


def test_similarities_of_every_pair_are_meant():
    a, b = fnp.ones((2, 5)), fnp.ones((3, 5))
    assert nn.cosine_similarity(a[:, None], b).shape == (2, 3)
    assert "need one shape" in report(lambda: nn.cosine_similarity(OUT, Y))


@pytest.mark.parametrize("measure", [
    nn.accuracy, train.correct, nn.nll, nn.softmax_cross_entropy_with_integer_labels])
def test_labels_of_another_shape_than_the_rows_are_refused(measure):
    assert "fix        labels[:, 0]" in report(lambda: measure(EYE, LABELS[:, None]))
    said = report(lambda: measure(EYE, EYE))
    assert "expected   labels of shape (4,), numbers of classes" in said and "one-hot" in said
    assert "one label per row" in report(lambda: measure(EYE, LABELS[:3]))
    assert "need integers" in report(lambda: measure(EYE, Y))
    assert np.isfinite(measure(EYE, LABELS)).all()


def test_fit_refuses_targets_of_another_shape_than_the_outputs():
    said = report(lambda: train.fit(nn.Dense(1), (np.ones((8, 3), "f4"), np.ones(8, "f4")),
                                    loss=nn.squared_error, optimizer=fgrad.optim.sgd(0.1),
                                    progress=False))
    assert said.startswith("predictions and targets need one shape, and have (8, 1) and (8,).")


FOUND = "leave out the size of the input: it is found at init"
MISUSED = [                # program, what its message says
    (lambda: nn.BatchNorm(64), "BatchNorm: nothing can be given without a name", FOUND),
    (lambda: nn.LayerNorm(64), "LayerNorm(epsilon=, affine=)", FOUND),
    (lambda: nn.RMSNorm(64), "RMSNorm(epsilon=, affine=)", FOUND),
    (lambda: nn.InstanceNorm(64), "InstanceNorm(64)", FOUND),
    (lambda: nn.GroupNorm(2, 64), "GroupNorm: only groups can be given", FOUND),
    (lambda: nn.Dense(784, 10), "Dense: only units can be given", "nn.Linear(inputs, outputs)"),
    (lambda: nn.Conv(3, 16, 3), "Conv: only features and kernel can be given", "nn.Conv2d(inputs"),
    (lambda: nn.LSTM(8, 16), "LSTM: only units can be given", FOUND),
    (lambda: nn.GRU(8, 16), "GRU: only units can be given", FOUND),
    (lambda: nn.MultiHeadAttention(512, 8), "only heads can be given", FOUND),
    (lambda: nn.Dense(4.0), "Dense: units is a whole number of 1 or more.", "units=4.0"),
    (lambda: nn.Dense(4, bias=10), "Dense: bias is True or False.", "bias=10"),
    (lambda: nn.Dropout("0.5"), "Dropout: rate is a number.", "rate='0.5'"),
    (lambda: nn.AdaptiveAvgPool(1), "the sizes are a tuple", "sizes=1"),
    (lambda: nn.ChannelsFirst(nn.Conv), "ChannelsFirst: layer is a layer.", "class"),
    (lambda: nn.Bidirectional(4), "a recurrent layer", "Bidirectional(GRU(64))"),
    (lambda: nn.Conv(8, 3, padding="full"), "there is no padding 'full'", '"SAME" or "VALID"'),
    (lambda: nn.Conv(8, 3, groups=3), "Conv: 3 groups do not divide 8 features.", "3"),
    (lambda: nn.MaxPool((2, 2), 1.5), "stride is a number, or one for each axis", "stride=1.5"),
    (lambda: nn.GroupNorm(3).init(key(), fnp.ones((1, 4))), "3 groups do not divide 4 channels",
     "not of channels"),
    (lambda: nn.Dense(4)(X), "a layer holds no parameters", "layer.apply(params, state, x)"),
    (lambda: nn.Sequential([nn.Dense(4)]), "not of a list", "Sequential(*layers)"),
    (lambda: nn.Sequential(nn.Dense), "not of the class Dense", "Dense(…), with its arguments"),
    (lambda: nn.Dense(4).init(key(), (2, 3)), "dense: the input is an array, or its type, and not "
     "a tuple.", "fix        fnp.ones((2, 3))"),
    (lambda: nn.summary(nn.Sequential(nn.Dense(4)), (1, 2)), "not a tuple.", "fnp.ones((1, 2))"),
    (lambda: nn.Dense(4).init(key(), [[1.0, 2.0]]), "not a list.", "fnp.asarray(x)"),
    (lambda: nn.Dense(4).init(key(), None), "not None.", "x: None"),
    (lambda: nn.Dense(4).init(key(), 3.0), "the input is a scalar", "x: 3.0"),
    (lambda: nn.Dense(4).init(key(), fnp.ones((2, 3), "uint8")), "parameters are floats",
     "x.astype('float32') / 255"),
    (lambda: nn.BatchNorm().init(key(), LABELS[None]), "batchnorm: parameters are", "x: i32[1,4]"),
    (lambda: nn.Dense(4).init(0, X), "dense: init expects a key", "init(random.key(0), x)"),
    (lambda: nn.Sequential(nn.Dense(4)).init(None, X), "sequential: init expects a key", "None"),
    (lambda: nn.BatchNorm().apply(started(nn.BatchNorm()), {}, X),
     "batchnorm: the state has no 'mean'.", "params, state = layer.init(key, x)"),
    (lambda: nn.Sequential(nn.Dense(3), nn.Dense(3)).apply({"dense1": started(nn.Dense(3))}, {}, X),
     "in layer 'dense2': dense: the parameters have no 'w'.", "given      nothing"),
    (lambda: nn.Sequential(nn.Dense(3)).apply(({}, {}), {}, X), "not a tuple", "fix"),
    (lambda: nn.BatchNorm().apply(*nn.BatchNorm().init(key(), X), fnp.ones((4, 1))),
     "batchnorm: 'mean' has the shape (3,), and (1,) is needed.", "mean: f32[3]"),
    (lambda: nn.RMSNorm().apply(started(nn.RMSNorm()), {}, fnp.ones((4, 1))),
     "rmsnorm: 'scale' has the shape (3,), and (1,) is needed.", "init anew"),
    (lambda: nn.Dense(4).apply(started(nn.Dense(4)), {}, np.ones((2, 5), "f4")),
     "the input has 5 features", "x: f32[2,5]"),
    (lambda: nn.Conv(8, (9, 9), padding="VALID").init(key(), IMAGES),
     "Conv: a window of 9 places does not fit into 8 along axis 1.", 'padding="SAME"'),
    (lambda: nn.MaxPool((9, 9)).apply({}, {}, IMAGES), "does not fit into 8", 'padding="SAME"'),
    (lambda: nn.Conv(4, 3).apply(started(nn.Conv(4, 3), IMAGES), {}, fnp.ones((1, 3, 8, 8))),
     "channels last: [batch, …, channels]", "nn.ChannelsFirst(model)"),
    (lambda: nn.Conv2d(3, 4, 3).init(key(), fnp.ones((1, 3, 8, 8))),
     "channels last: [batch, …, channels]", "fnp.moveaxis(x, 1, -1)"),
]


@pytest.mark.parametrize("program, sentence, detail", MISUSED)
def test_a_mistake_says_what_was_given_and_what_to_do(program, sentence, detail):
    said = report(program)
    assert sentence in said and detail in said, said


@pytest.mark.parametrize("make", [lambda: nn.Dropout(1.5), lambda: nn.MaxPool(3, 2),
                                  lambda: nn.Dense(), lambda: nn.Parallel(join="sum")])
def test_tracebacks_of_constructors_show_the_frames_of_the_user_only(make):
    with pytest.raises(TypeError) as caught:
        make()
    files = {entry.filename for entry in traceback.extract_tb(caught.value.__traceback__)}
    assert files <= {__file__, fgrad.errors.__file__}     # before Python 3.11 the first stays


def test_layers_keep_their_signatures_for_help_and_editors():
    assert list(inspect.signature(nn.GroupNorm).parameters) == ["groups", "epsilon", "affine"]
    assert nn.GroupNorm(8).groups == 8 and nn.Dropout(0.1).rate == 0.1


def test_layers_of_the_user_take_what_they_like():
    class Scale(nn.Layer):
        def __init__(self, by, times=1):
            self.by, self.times = by, times

        def apply(self, params, state, x, *, train=False, key=None):
            return x["a"] * self.by + x["b"], state
    assert Scale(2.0).init(key(), (2, 3)) == ({}, {})
    model = nn.Sequential(Scale(2.0, 0), nn.Dense(1))
    params, state = model.init(key(), {"a": X, "b": 1.0})
    assert model.apply(params, state, {"a": X, "b": 1.0})[0].shape == (2, 1)
