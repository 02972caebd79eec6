"""Arguments of the wrong kind raise errors of fgrad, which say what was given, and to what."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax, nn, optim
from fgrad.errors import FgradError

ROOT = Path(__file__).parent.parent
X, KEY = fnp.ones(3), fgrad.random.key(0)
same = lambda x: x

CALLS = [
    (lambda: lax.reshape(X, (1.0, 3)), "reshape needs ints for new_sizes, not a float"),
    (lambda: lax.slice(X, ("a",), (2,)), "slice needs ints for start_indices, not a str"),
    (lambda: lax.split(X, (1, None)), "split needs ints for sizes, not None"),
    (lambda: lax.dynamic_slice(X, (0,), ("a",)), "dynamic_slice needs ints for slice_sizes"),
    (lambda: lax.index_in_dim(X, 1.0), "index_in_dim needs ints for index, not a float"),
    (lambda: lax.integer_pow(X, 2.5), "integer_pow needs ints for y, not a float"),
    (lambda: lax.concatenate([X], "a"), "concatenate needs an int for an axis"),
    (lambda: fgrad.segment_sum(X, [0, 1, 1], "a"), "segment_sum needs an int for num_segments"),
    (lambda: fgrad.jit(same, static_argnums="x"), "jit: static_argnums is a position"),
    (lambda: fgrad.jit(same, static_argnums=1.5), "jit: static_argnums is a position"),
    (lambda: fgrad.jit(same, static_argnames=3), "jit: static_argnames is a name"),
    (lambda: fgrad.jit(same, donate_argnums="x"), "jit: donate_argnums is a position"),
    (lambda: fgrad.jit(same, static_argnums=3), "has 1 positional parameter."),
    (lambda: fgrad.jit(lambda *xs: xs, static_argnums=-1), "has 0 positional parameters."),
    (lambda: fgrad.checkpoint(same, static_argnums=(5,)), "has 1 positional parameter."),
    (lambda: fgrad.checkpoint(same, static_argnums="x"), "checkpoint: static_argnums is a pos"),
    (lambda: lax.map(same, X, batch_size=0), "map needs a whole number for batch_size, 1 or more"),
    (lambda: lax.associative_scan(fnp.add, X, axis=None), "needs a whole number for axis"),
    (lambda: lax.associative_scan(fnp.add, X, axis=0.0), "needs a whole number for axis"),
    (lambda: lax.associative_scan(fnp.less, X), "must return what it combines"),
    (lambda: lax.associative_scan(fnp.less, fnp.ones(20)), "must return what it combines"),
    (lambda: lax.scan(lambda c, _: (c, c), 0, length=2.7), "needs a whole number for length"),
    (lambda: lax.scan(lambda c, _: (c, c), 0, length=True), "needs a whole number for length"),
    (lambda: lax.scan(lambda c, _: (c, c), 0, length=-1), "a whole number for length, 0 or more"),
    (lambda: lax.while_loop(lambda c: c < 5, same, 9, max_steps=2.5), "number for max_steps"),
    (lambda: fnp.reshape(X, (3.0, 1)), "reshape needs a shape of ints"),
    (lambda: fnp.linspace(0, 1, num=2.5), "linspace needs an int for samples, not a float"),
    (lambda: fnp.repeat(X, -1), "repeat needs a number of repeats that is not negative"),
    (lambda: fnp.repeat(X, [1, -1, 2]), "repeat needs a number of repeats that is not negative"),
    (lambda: fnp.tile(X, -1), "tile needs a number of repeats that is not negative"),
    (lambda: fnp.stack(1), "stack takes a list of arrays, not an int"),
    (lambda: fnp.concatenate(1.0), "concatenate takes a list of arrays, not a float"),
    (lambda: fnp.expand_dims(fnp.ones(2), 5), "axis 5 is out of range for a result of 2 axes"),
    (lambda: fnp.eye(3.0), "a matrix needs a shape of ints"),
    (lambda: fnp.tri(3, k="a"), "k, the number of a diagonal, must be an int"),
    (lambda: fnp.arange("3"), "arange counts with numbers"),
    (lambda: fnp.arange(fnp.ones(3)), "arange counts with numbers"),
    (lambda: lax.argmax(X, None), "argmax needs an int for an axis, not None"),
    (lambda: lax.reduce_sum(X, "a"), "reduce_sum needs an int for an axis, not 'a'"),
    (lambda: lax.pad(X, 0.0, [(1, 1)]), "pad needs (low, high, interior) for each axis"),
    (lambda: lax.concatenate([fnp.ones((2, 2)), X], 0), "concatenate needs arrays that differ"),
    (lambda: lax.dot_general(X, X, (((1,), (0,)), ((), ()))), "dot_general: an operand lacks"),
    (lambda: fnp.tensordot(fnp.ones((2, 3)), X, 3), "tensordot cannot sum over 3 axes"),
    (lambda: fnp.tensordot(X, X, -1), "tensordot needs a number of axes that is not negative"),
    (lambda: lax.map(1, X), "map: f must be a function, not an int"),
    (lambda: lax.top_k(X, 1.5), "top_k needs an int for k, not a float"),
    (lambda: lax.iota("int32", "a"), "iota needs a shape of ints"),
    (lambda: fgrad.random.permutation(fgrad.random.key(1), 2.5),
     "an array, or how many numbers from 0 on"),
    (lambda: nn.Dense(4).init(KEY, fnp.array(1.0)), "dense: the input is a scalar"),
    (lambda: nn.Dense(4).apply({}, {}, X), "dense: the parameters have no 'w'"),
    (lambda: nn.Conv(4, (3,)).apply({}, {}, fnp.ones((1, 5, 2))), "have no 'w'"),
    (lambda: nn.Dense(4)(X), "dense: a layer holds no parameters"),
    (lambda: nn.Sequential(nn.Dense, 4), "not of the class Dense"),
    (lambda: nn.Sequential(4), "not of an int"),
    (lambda: nn.Sequential([nn.Dense(4)]), "not of a list"),
    (lambda: optim.chain(1, 2), "chain takes transformations of gradients, not an int"),
    (lambda: fgrad.explain(same), "explain takes a function that jit has compiled"),
    (lambda: fgrad.pytree(int), "pytree makes a node of a class of your own")]


@pytest.mark.parametrize("call, said", CALLS, ids=[said for _, said in CALLS])
def test_an_argument_of_the_wrong_kind(call, said):
    with pytest.raises(FgradError) as caught:
        call()
    assert said in caught.value.sentence and caught.value.given or "positional" in said
    assert "test_raw_errors.py" in str(caught.value)


def test_an_axis_that_is_no_int_is_shown():
    with pytest.raises(FgradError) as caught:
        fnp.sum(X, axis=1.5)
    assert caught.value.given == "axis=1.5" and caught.value.expected == "an int"


@pytest.mark.parametrize("call, dtype", [
    (lambda: fgrad.jit(same)(10 ** 30), "i64"),
    (lambda: lax.fori_loop(0, 2 ** 40, lambda i, x: x, 1.0), "i32")])
def test_an_int_that_does_not_fit_is_shown(call, dtype):
    with pytest.raises(fgrad.RangeError, match=f"the Python number 1.* does not fit into {dtype}"):
        call()


def test_an_operation_without_an_array_says_so():
    """It raised StopIteration."""
    with pytest.raises(FgradError, match="sin needs at least one array"):
        lax.sin()


def test_what_is_given_for_one_axis_may_be_a_number():
    assert lax.reduce_sum(X, 0).item() == 3 and lax.dynamic_slice(X, 1, 2).shape == (2,)
    assert lax.broadcast_in_dim(1.0, 3, ()).shape == lax.iota("int32", 3).shape == (3,)
    assert fnp.fft.fftn(X, 2).shape == (2,) and lax.select(True, 1, 2).item() == 1


def test_positions_may_be_of_any_sequence_and_of_numpy():
    for numbers in (range(1), [0], np.arange(1), {0}, np.int64(0)):
        assert fgrad.jit(lambda n: np.arange(n).sum(), static_argnums=numbers)(3) == 3


def test_errors_are_fgrads_own_where_the_working_folder_has_been_removed(tmp_path):
    """The user's line is looked for by absolute paths, for which Python asks for the folder."""
    program = ("import os, fgrad, fgrad.numpy as fnp; os.rmdir(os.getcwd())\n"
               "print(fgrad.grad(lambda x: x * x)(3.0).item())\n"
               "exec(compile('fnp.ones(2) + fnp.ones(3)', 'cell.py', 'exec'))")
    (tmp_path / "gone").mkdir()
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "gone", text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    assert done.stdout == "6.0\n" and "ShapeError" in done.stderr, done.stderr
    assert "FileNotFoundError" not in done.stderr
