"""A value used outside of its transformation is an error, wherever it is used."""

import copy
import pickle
import threading

import numpy as np
import pytest

from fgrad.errors import FgradError, LeakError
from fgrad.numpy import sin
from fgrad.transforms import grad, jvp, vmap

from tests.interpreters.staged import staged
from tests.messages import message

one, V = np.float64(1.0), np.ones(3)
MAKERS = {"grad": lambda keep: grad(lambda x: keep(x) or x * x)(one),
          "jvp": lambda keep: jvp(lambda x: keep(x) or x, (one,), (one,)),
          "vmap": lambda keep: vmap(lambda x: keep(x) or x)(V),
          "jit": lambda keep: staged(lambda x: keep(x) or x)(one)}
USES = {"eagerly": lambda x: x * 2.0,
        "in jit": lambda x: staged(lambda y: y * x)(one),
        "in grad": lambda x: grad(lambda y: y * x)(one),
        "in vmap": lambda x: vmap(lambda y: y * x)(V),
        "as an argument": lambda x: grad(lambda y: y * y)(x),
        "as an argument of jit": lambda x: staged(sin)(x)}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_leaked_value_is_caught(maker, use):
    kept = []
    MAKERS[maker](kept.append)
    with pytest.raises(LeakError, match=f"a value of {maker} was used outside"):
        USES[use](kept[0])


def test_the_message_of_a_leak():
    kept = []
    grad(lambda x: kept.append(x) or x * x)(one)

    def use():
        return kept[0] * 2.0
    assert message(LeakError, use) == """\
a value of grad was used outside of the grad call it belongs to.

    test_leaks.py:N    return kept[0] * 2.0

  given      f64[]
             kept in list `kept`
  fix        return it from the function instead of storing it"""


def test_the_message_of_a_leak_from_jit_names_where_the_value_was_made():
    kept = []

    def store(x):
        kept.append(x + 1.0)
        return x
    staged(store)(one)

    def use():
        return kept[0] * 2.0
    assert message(LeakError, use) == """\
a value of jit was used outside of the jit call it belongs to.

    test_leaks.py:N    return kept[0] * 2.0

  given      f64[]
             made at test_leaks.py:N: kept.append(x + 1.0)
             kept in list `kept`
  fix        return it from the function instead of storing it"""


def test_a_value_used_in_another_thread_is_a_leak():
    caught = []

    def in_thread(x):
        def work():
            try:
                x * 2.0
            except LeakError:
                caught.append(1)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x
    grad(in_thread)(one)
    assert caught


def test_copies_of_a_value_are_the_value_and_it_cannot_be_pickled():
    def f(x):
        assert copy.copy(x) is x and copy.deepcopy([x])[0] is x
        with pytest.raises(FgradError, match="cannot be pickled"):
            pickle.dumps(x)
        return x
    grad(f)(one)
