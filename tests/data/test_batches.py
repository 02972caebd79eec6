"""Shuffled batches."""

import numpy as np
import pytest

from fgrad.data import batches
from fgrad.errors import ArgumentError, RangeError, ShapeError


@pytest.mark.parametrize("rows, size", [(1, 1), (7, 3), (12, 4), (5, 5), (64, 63)])
@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
def test_rows_stay_together_and_come_once(rows, size, drop_last, shuffle):
    x, y = np.arange(rows * 2).reshape(rows, 2), np.arange(rows)
    made = batches(x, y, size=size, seed=3, shuffle=shuffle, drop_last=drop_last)
    parts = list(made)
    assert len(parts) == len(made) == (rows // size if drop_last else -(-rows // size))
    seen = np.concatenate([b for _, b in parts])
    assert len(set(seen.tolist())) == len(seen) == (len(made) * size if drop_last else rows)
    assert all(np.array_equal(a[:, 0], 2 * b) for a, b in parts)
    assert shuffle or np.array_equal(seen, np.arange(len(seen)))


def test_one_seed_is_one_order_and_another_epoch_another():
    x = np.arange(100)
    epochs = [[b.tolist() for b, in batches(x, size=10, seed=(0, e))] for e in (0, 0, 1)]
    first, again, other = epochs
    assert first == again != other


def test_iterating_twice_gives_the_same_batches():
    made = batches(np.arange(20), size=5, seed=1)
    assert [b.tolist() for b, in made] == [b.tolist() for b, in made]


def test_without_shuffling_batches_are_views():
    x = np.arange(10)
    assert all(np.shares_memory(b, x) for b, in batches(x, size=3, shuffle=False))


def test_shuffled_batches_are_copies():
    x = np.arange(10)
    for b, in batches(x, size=5, seed=0):
        b[:] = -1
    assert x.tolist() == list(range(10))


def test_no_rows_make_no_short_batch():
    assert list(batches(np.empty((0, 3)), size=4, drop_last=False)) == []


def test_unequal_lengths_name_the_arrays():
    with pytest.raises(ShapeError) as caught:
        batches(np.empty((5, 2)), np.empty(4), size=2)
    assert "array 0: shape (5, 2)" in str(caught.value)
    assert "array 1: shape (4,)" in str(caught.value)


def test_an_array_without_axes_has_no_rows():
    with pytest.raises(ShapeError, match="without axes"):
        batches(np.float32(1), size=1)


@pytest.mark.parametrize("size, error", [(0, RangeError), (-1, RangeError), (6, RangeError),
                                         (2.0, ArgumentError), (True, ArgumentError)])
def test_a_size_that_gives_no_batch_is_refused(size, error):
    with pytest.raises(error):
        batches(np.arange(5), size=size)


def test_no_arrays_are_refused():
    with pytest.raises(ArgumentError, match="needs an array"):
        batches(size=3)
