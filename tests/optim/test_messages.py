"""Mistakes with optimizers: errors of fgrad that name the leaf, what was given, and the fix."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, train
from fgrad.errors import FgradError

PARAMS, WRONG = {"a": {"w": fnp.ones(3)}}, {"a": {"w": fnp.ones((3, 3))}}
ADAM, MOMENTUM = optim.adam(1e-3), optim.sgd(0.1, momentum=0.9)
STATE = ADAM.init(PARAMS)
DATA = np.ones((8, 3), "f4"), np.ones((8, 1), "f4")


def report(function):
    """The whole message of what the call raises, from fgrad."""
    with pytest.raises(FgradError) as caught:
        function()
    return str(caught.value)


def fit(**options):
    given = {"loss": nn.squared_error, "optimizer": ADAM, "progress": False, **options}
    return train.fit(nn.Dense(1), DATA, **given)


@pytest.mark.parametrize("run", [lambda f: f, fgrad.jit])
def test_updates_of_another_shape_than_the_parameters_are_refused(run):
    said = report(lambda: run(optim.apply_updates)(PARAMS, WRONG))
    assert said.startswith("the updates differ from the params in shape.")
    assert "params['a']['w']: f32[3]\n" in said and "updates['a']['w']: f32[3,3]" in said


STATELESS = {"noisy_sgd", "sgd", "sign_sgd"}     # their updates are caught by apply_updates


@pytest.mark.parametrize("name", [
    "adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "adan",
    "amsgrad", "lamb", "lars", "lion", "nadam", "nadamw", "novograd", "radam", "rmsprop", "signum",
    "sm3", "yogi", *sorted(STATELESS)])
def test_gradients_of_another_shape_than_the_parameters_are_refused(name):
    opt = getattr(optim, name)(0.1)
    state = opt.init(PARAMS)

    def step(grads):
        updates, _ = opt.update(grads, state, PARAMS)
        assert name in STATELESS
        optim.apply_updates(PARAMS, updates)
    said = report(lambda: step(WRONG))
    assert "differ from the" in said and "['a']['w']" in said


def test_gradients_that_decay_would_broadcast_are_refused():
    opt = optim.chain(optim.add_decayed_weights(0.1), optim.sgd(0.1))
    said = report(lambda: opt.update(PARAMS, opt.init(WRONG), WRONG))
    assert "gradients['a']['w']: f32[3]" in said and "params['a']['w']: f32[3,3]" in said


def test_updates_are_not_truncated_to_integers():
    said = report(lambda: optim.apply_updates({"n": fnp.arange(3)}, {"n": fnp.full(3, 0.5)}))
    assert said.startswith("the updates would be truncated") and "params['n']: i32[3]" in said
    moved = optim.apply_updates({"n": fnp.arange(3)}, {"n": fnp.arange(3)})
    assert moved["n"].tolist() == [0, 2, 4]


@pytest.mark.parametrize("params", [PARAMS, fnp.ones(3), (fnp.ones(3), fnp.ones(3))])
def test_a_pair_that_was_not_unpacked_is_explained(params):
    found = ADAM.update(params, ADAM.init(params), params)
    said = report(lambda: optim.apply_updates(params, found))
    assert "not a tuple of 2" in said and "updates, state = optimizer.update(" in said
    said = report(lambda: ADAM.update((fnp.array(1.0), params), ADAM.init(params)))
    assert "not a tuple of 2" in said and "value, grads = value_and_grad(" in said


FOREIGN = [                # program, what the message says of the state
    (lambda: MOMENTUM.update(PARAMS, STATE), "state: a ScaleByAdamState"),
    (lambda: ADAM.update(PARAMS, MOMENTUM.init(PARAMS)), "state: a TraceState"),
    (lambda: optim.adam(lambda n: 0.1).update(PARAMS, STATE), "state: an EmptyState"),
    (lambda: ADAM.update(PARAMS, None), "state: None"),
    (lambda: ADAM.update(PARAMS, PARAMS), "state: a dict"),
    (lambda: optim.scale_by_adam().update(PARAMS, state=None), "state: None"),
    (lambda: optim.MultiSteps(ADAM, 2).update(PARAMS, STATE), "state: a tuple"),
    (lambda: optim.lookahead(ADAM, 2, 0.5).update(
        PARAMS, STATE, optim.LookaheadParams.init_synced(PARAMS)), "state: a tuple"),
]


@pytest.mark.parametrize("program, given", FOREIGN)
def test_the_state_of_another_optimizer_is_refused(program, given):
    said = report(program)
    assert said.startswith("the state was not made by this")
    assert given in said and "state = optimizer.init(params)" in said


def test_an_attribute_error_of_the_user_stays_what_it_is():
    opt = optim.stateless(lambda updates, params: updates.missing)
    with pytest.raises(AttributeError, match="missing"):
        opt.update(fnp.ones(3), opt.init(None))


MISUSED = [                # program, what its message says
    (lambda: optim.adam(1e-3, b1=1.5), "b1 is a share of what was before", "b1=1.5"),
    (lambda: optim.rmsprop(0.1, decay=-1), "not in [0, 1)", "decay=-1"),
    (lambda: optim.sgd(0.1, momentum="0.9"), "decay is no number", "decay='0.9'"),
    (lambda: optim.adam("1e-3"), "learning_rate is no number", "or a schedule"),
    (lambda: optim.chain(optim.adam), "not a function", "adam(…), with a learning rate"),
    (lambda: optim.multi_transform({"a": "adam"}, {"w": "a"}), "not a str", "'adam'"),
    (lambda: optim.MultiSteps("adam", 2), "MultiSteps takes an optimizer, not a str", "as optim"),
    (lambda: optim.lookahead("adam", 2, 0.5), "lookahead takes an optimizer, not a str", "as opt"),
    (lambda: fit(optimizer="adam"), "fit takes an optimizer, not a str.", "as optim.adam(1e-3)"),
    (lambda: fit(optimizer=optim.adam), "not a function", "adam(…), with a learning rate"),
    (lambda: fit(loss="mse"), "fit: loss must be a function", "nn.squared_error"),
    (lambda: optim.minimize_newton_cg(3.0, fnp.ones(3)), "fun must be a function", "float"),
]


@pytest.mark.parametrize("program, sentence, detail", MISUSED)
def test_a_mistake_says_what_was_given_and_what_to_do(program, sentence, detail):
    said = report(program)
    assert sentence in said and detail in said, said


def test_minimisers_speak_of_the_function_they_were_given():
    def residuals(x):
        return x - 1
    said = report(lambda: optim.minimize_lbfgs(residuals, fnp.ones(3)))
    assert "`residuals` returned f32[3]" in said and "jacrev(residuals)" in said
