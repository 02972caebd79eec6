"""Messages of errors, and where notices point."""

import pickle
import traceback
import warnings

import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import errors, nn, optim

CLASSES = [c for n, c in vars(errors).items()
           if n[0] != "_" and isinstance(c, type) and issubclass(c, (Exception, Warning))]


def shape_error():
    with pytest.raises(fgrad.ShapeError) as caught:
        fnp.ones(3) + fnp.ones(4)
    return caught.value


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_an_error_is_found_under_the_name_it_prints(kind):
    assert getattr(fgrad, kind.__name__) is kind and kind.__module__ == "fgrad"


def test_an_error_is_a_builtin_error_too():
    assert isinstance(shape_error(), TypeError)


def test_a_message_says_the_users_line_and_the_fix():
    text = str(shape_error())
    assert "test_errors.py:" in text and "fnp.ones(3) + fnp.ones(4)" in text and "\n  fix  " in text


def test_an_error_may_cross_processes():
    error = shape_error()
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def test_a_notice_points_at_the_users_line():
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        fgrad.grad(lambda x: x * float(x))(2.0)          # the line that is meant
    (notice,) = notices
    assert notice.filename == __file__
    line = open(__file__, encoding="utf8").read().splitlines()[notice.lineno - 1]
    assert "the line that is meant" in line


# ---------------------------------------------------------------------------- tracebacks

def zero_division(x):
    return 1 // 0


OPTIMIZER = optim.adam(1e-3)
FAILING = {
    "an activation": lambda: nn.softmax(fnp.ones(3), axis=4),
    "an optimizer": lambda: OPTIMIZER.update({"b": 1.0}, OPTIMIZER.init({"a": fnp.ones(3)})),
    "a layer": lambda: nn.Dense(3).apply({"w": fnp.ones((2, 3))}, {}, fnp.ones((2, 4))),
    "the user's own function in a layer": lambda: nn.Lambda(zero_division).apply({}, {}, 1.0),
    "too few arguments in jit": lambda: fgrad.jit(lambda x, y: x)(1),
    "too few arguments in grad": lambda: fgrad.grad(lambda x, y: x)(1.0),
    "too few arguments in scan": lambda: fgrad.lax.scan(lambda c: c, 0.0, fnp.ones(3)),
    "too few arguments": lambda: fnp.sum(),
    "a file": lambda: fgrad.io.load("there is no such file"),
    "a data set": lambda: fgrad.data.mnist.load("no such folder"),
    "a table": lambda: fgrad.data.tables.read_csv("no such file"),
    "a tokenizer": lambda: fgrad.data.text.CharTokenizer("ab").encode("c"),
    "a saved tokenizer": lambda: fgrad.data.text.CharTokenizer.load("no such file"),
    "a split": lambda: fgrad.data.Split("x", *[fnp.ones(n) for n in (1, 2, 3, 4)]),
    "a checkpointer": lambda: fgrad.io.Checkpointer("somewhere", keep=0),
    "a plot": lambda: fgrad.viz.Plot("x").line([1.0], [1.0, 2.0]),
    "show": lambda: fgrad.show(fnp.sin, 1.0, stage="none"),
    "a method": lambda: fnp.ones(3).sum(axis=4),
    "float": lambda: float(fnp.ones(3)),
    "bool": lambda: bool(fnp.ones(3)),
    "item": lambda: fnp.ones(3).item(),
    "len": lambda: len(fnp.float32(1)),
    "iteration": lambda: list(fnp.float32(1)),
    "scipy": lambda: fgrad.scipy.linalg.cho_solve((fnp.ones((2, 3)), True), fnp.ones(2)),
    "an operation": lambda: fgrad.lax.add(fnp.ones(3), fnp.float32(1)),
    "a compiled operation": lambda: fgrad.jit(fgrad.lax.add)(fnp.ones(3), fnp.float32(1)),
    "full of no shape": lambda: fgrad.lax.full("x", 1.0),
    "a collective": lambda: fgrad.lax.psum(fnp.ones(3), "i"),
    "a schedule": lambda: optim.join_schedules([], [1]),
    "random": lambda: fgrad.random.gamma(3, 1.0),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_traceback_shows_the_users_frames_only(name):
    with pytest.raises(Exception) as found:
        FAILING[name]()
    files = [frame.filename for frame in traceback.extract_tb(found.value.__traceback__)]
    assert set(files) == {__file__}


def test_the_line_that_makes_a_layer_is_named():
    with pytest.raises(fgrad.ArgumentError) as found:
        nn.Dropout(1.5)
    assert "test_errors.py" in str(found.value) and "<string>" not in str(found.value)
