"""Indexing and updates agree with NumPy, over every kind of index."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import jit

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
INDICES = [
    0, -1, (0, 1), (0, 1, 2), slice(None), slice(1, None), (slice(None), slice(None, None, -1)),
    (slice(None), slice(None), slice(3, 0, -2)), (slice(None), slice(1, 1)), (..., 0), (0, ...),
    (Ellipsis,), None,
    (None, 0, None), (slice(None), None, 1), (..., None), np.array([0, 1, 1]), [0, -1],
    (slice(None), [0, 2]),
    ([0, 1], [1, 2]), ([0, 1], slice(None), [1, 2]), (0, slice(None), [1, 2]),
    (slice(None), 0, [1, 2]),
    (slice(None), [[0, 1], [2, 0]], [[0], [1]]), ([1], slice(1, 3)), (None, [0, 1], 0),
    (slice(None), [0, 1], None),
    X > 11, X[:, :, 0] > 3, (slice(None), np.array([True, False, True])),
    (0, np.array([True, False, True])),
    (np.array([True, False]), [1, 2, 0]), np.zeros(0, int), [], (slice(None), np.array(1)),
    (np.int64(1), slice(0, 2)),
    (slice(5, 9), 0), (slice(-2, None), slice(-9, 9)),
    (slice(None), slice(None), np.array([0, 3], np.uint8)), (),
    (slice(None), [0, 1], slice(None, None, -1))]
UPDATES = {"set": lambda x, i, v: x.__setitem__(i, v),
           "add": lambda x, i, v: np.add.at(x, i, v),
           "multiply": lambda x, i, v: np.multiply.at(x, i, v),
           "min": lambda x, i, v: np.minimum.at(x, i, v),
           "max": lambda x, i, v: np.maximum.at(x, i, v)}


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading_agrees_with_numpy(index):
    ours, theirs = fnp.array(X)[index], X[index]
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("how", UPDATES)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writing_agrees_with_numpy(index, how):
    values = np.random.default_rng(0).normal(size=X[index].shape).astype(np.float32) * 20
    values = values[:1] if values.ndim and len(values) else values
    expected = X.copy()
    UPDATES[how](expected, index, values)
    x = fnp.array(X)
    np.testing.assert_allclose(np.asarray(getattr(x.at[index], how)(values)), expected, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(x), X)


def test_other_updates():
    x = fnp.arange(4.0)
    assert x.at[1:3].divide(2.0).tolist() == [0, 0.5, 1, 3]
    assert x.at[1].subtract(5).tolist() == [0, -4, 2, 3]
    assert x.at[2:].power(2).tolist() == [0, 1, 4, 9]
    assert x.at[::2].apply(lambda v: v + 10).tolist() == [10, 1, 12, 3]
    assert x.at[1:].get().tolist() == [1, 2, 3]
    assert x.at[[0, 0]].add(1.0).tolist() == [2, 1, 2, 3]
    assert fnp.arange(3).at[0].set(7).dtype == np.int32
    assert fnp.array([True, True]).at[0].set(False).tolist() == [False, True]
    assert fnp.zeros(3, "int32").at[1].max(4).at[0].min(-4).tolist() == [-4, 4, 0]


def test_take_agrees_with_numpy():
    i = np.array([[0, 2], [1, 0]])
    np.testing.assert_array_equal(np.asarray(fnp.take(X, i, 1)), np.take(X, i, 1))
    np.testing.assert_array_equal(np.asarray(fnp.take(X, i)), np.take(X, i))
    order = np.argsort(-X, axis=1)
    np.testing.assert_array_equal(np.asarray(fnp.take_along_axis(X, order, 1)),
                                  np.take_along_axis(X, order, 1))
    np.testing.assert_array_equal(np.asarray(fnp.compress([True, False, True], X, 1)),
                                  np.compress([True, False, True], X, 1))


def test_places_agree_with_numpy():
    for ours, theirs in zip(fnp.nonzero(X > 5), np.nonzero(X > 5)):
        np.testing.assert_array_equal(np.asarray(ours), theirs)
    np.testing.assert_array_equal(np.asarray(fnp.argwhere(X > 20)), np.argwhere(X > 20))
    assert fnp.flatnonzero([0, 3, 0, 4]).tolist() == [1, 3]


def test_indices_of_8_bits_reach_the_end_of_long_axes():
    x = fnp.arange(300)
    assert x[np.array([-1, 5], np.int8)].tolist() == [299, 5]
    assert x[np.array([255], np.uint8)].tolist() == [255]
    assert jit(lambda i: x[i])(np.array([-1], np.int8)).tolist() == [299]


def test_iteration_and_membership():
    x = fnp.array([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    a, b = fnp.array([1.0, 2.0])
    assert (a.item(), b.item()) == (1.0, 2.0)
    assert 3 in x and 5 not in x


@pytest.mark.parametrize("index, error", [(3, IndexError), ((0, 0, 0, 0), IndexError),
                                          ([0, 9], IndexError),
                                          (1.0, IndexError), ("a", IndexError),
                                          (np.ones(3, bool), IndexError),
                                          ((..., ...), TypeError),
                                          (slice(None, None, 0), TypeError)], ids=str)
def test_wrong_indices_are_refused(index, error):
    for read in (lambda x: x[index], lambda x: x.at[index].set(0.0)):
        with pytest.raises(error):
            read(fnp.array(X))
