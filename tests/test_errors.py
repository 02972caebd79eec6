"""Messages of errors, and where notices point."""

import pickle
import warnings

import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import errors

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
