"""Where elements are not 0: NumPy's answer, and with a size the same under jit."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import jit, vmap
from fgrad.errors import ArgumentError, ConcretizationError

SHAPES = [(0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4)]


def drawn(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 2, shape) * 3


def padded(x, size, fill):
    """NumPy's places, cut or filled to a size."""
    return [np.concatenate([p[:size], np.full(max(size - len(p), 0), f)])
            for p, f in zip(np.nonzero(x), fill)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [0, 1, 5, 30])
def test_places_of_a_size_are_numpys_cut_or_filled(shape, size):
    x, fill = drawn(shape), tuple(range(-1, -1 - len(shape), -1))
    want = padded(x, size, fill)
    for run in (fnp.nonzero, jit(fnp.nonzero, static_argnames=("size", "fill_value")),
                fnp.where):
        got = run(fnp.array(x), size=size, fill_value=fill)
        assert all(g.dtype == np.int32 for g in got)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(fnp.argwhere(x, size=size, fill_value=-7), np.stack(
        padded(x, size, (-7,) * x.ndim), -1))
    np.testing.assert_array_equal(fnp.flatnonzero(x, size=size, fill_value=4),
                                  padded(x.ravel(), size, (4,))[0])


def test_places_agree_with_numpy():
    x = np.arange(24).reshape(4, 6)[:, ::-1]
    for ours, theirs in zip(fnp.nonzero(x > 5), np.nonzero(x > 5)):
        np.testing.assert_array_equal(np.asarray(ours), theirs)
    np.testing.assert_array_equal(np.asarray(fnp.argwhere(x > 20)), np.argwhere(x > 20))
    assert fnp.flatnonzero([0, 3, 0, 4]).tolist() == [1, 3]


def test_places_of_a_batch_are_those_of_each():
    xs = drawn((5, 3, 4))
    got = jit(vmap(lambda x: fnp.argwhere(x, size=6)))(fnp.array(xs))
    for x, places in zip(xs, got):
        np.testing.assert_array_equal(places, fnp.argwhere(x, size=6))


def test_where_of_a_condition_alone_gives_the_places():
    x = np.arange(6).reshape(2, 3)
    for ours, theirs in zip(fnp.where(x > 2), np.where(x > 2), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ArgumentError, match="needs a condition, and both values"):
        fnp.where(x > 2, x)
    with pytest.raises(ArgumentError, match="for a condition alone"):
        fnp.where(x > 2, x, 0, size=3)


def test_elements_that_are_picked_are_moved_together_with_a_size():
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    pick = jit(lambda keep, x: fnp.compress(keep, x, 1, size=3, fill_value=-1.0))
    np.testing.assert_array_equal(pick(fnp.array([True, False, True]), x),
                                  [[1, 3, -1], [4, 6, -1]])
    np.testing.assert_array_equal(fnp.compress([0, 1, 0, 1], x, size=3), [2, 4, 0])
    gradient = fgrad.grad(lambda x: fnp.sum(pick(fnp.array([False, True, True]), x) ** 2))(x)
    np.testing.assert_array_equal(gradient, [[0, 4, 6], [0, 10, 12]])


def test_without_a_size_the_message_tells_of_it():
    with pytest.raises(ConcretizationError) as caught:
        jit(fnp.nonzero)(fnp.ones(3))
    assert "give size=" in str(caught.value)
    with pytest.raises(ArgumentError, match="1 fill value for an array of 2 axes"):
        fnp.nonzero(np.eye(2), size=2, fill_value=(0,))
