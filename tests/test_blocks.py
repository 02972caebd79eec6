"""Blocks that `with` enters: devices, default dtypes and other rules."""

import threading
import traceback
import warnings

import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import errors
from fgrad.blocks import block


@pytest.mark.parametrize("name, arguments", [
    ("default_dtype", ["float64"]), ("strict_promotion", []), ("disable_jit", []),
    ("device", ["cpu"]), ("flush_denormals", [])])
def test_a_block_that_nobody_enters_is_noticed(name, arguments):
    errors.NOTICED.clear()
    with pytest.warns(fgrad.FgradWarning, match=f"write `with fgrad.{name}") as found:
        getattr(fgrad, name)(*arguments)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with getattr(fgrad, name)(*arguments):
            pass


@pytest.mark.parametrize("wrong", [
    lambda: fgrad.device("cuda:0"), lambda: fgrad.default_dtype("int32")])
def test_what_a_block_cannot_be_shows_the_users_line_alone(wrong):
    with pytest.raises(fgrad.FgradError) as error:
        with wrong():
            pass
    files = {frame.filename for frame in traceback.extract_tb(error.value.__traceback__)}
    assert files == {__file__}


def test_wrong_arguments_are_refused_where_they_are_given():
    with pytest.raises(TypeError):
        fgrad.default_dtype()


def test_a_block_decorates_functions_and_may_be_entered_again_within_itself():
    seen = []

    @block
    def counted(start):
        seen.append(start)
        yield len(seen)
        seen.append(-start)

    @counted(1)
    def f(n):
        return n if n == 0 else f(n - 1)

    assert f(2) == 0 and seen == [1, 1, 1, -1, -1, -1]
    twice = counted(2)
    with twice as first, twice as second:
        assert (first, second) == (7, 8)
    assert seen[6:] == [2, 2, -2, -2]


def test_a_decorated_function_runs_in_many_threads():
    @fgrad.default_dtype("float64")
    def work(out):
        for _ in range(200):
            out.append(fnp.ones(1).dtype)

    outs = [[] for _ in range(4)]
    threads = [threading.Thread(target=work, args=(out,)) for out in outs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(len(out) == 200 and set(out) == {fnp.dtype("float64")} for out in outs)
    assert fnp.ones(1).dtype == "float32"
