"""Shuffled batches of arrays that fit in memory, as NumPy arrays.

Relies on NumPy only; what comes out is what a jitted train step takes.
"""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError, RangeError, ShapeError


class Batches:
    """The iterator that `batches` gives; `len` is the number of batches."""

    def __init__(self, arrays, size, seed, shuffle, drop_last):
        self.arrays, self.size, self.seed, self.shuffle = arrays, size, seed, shuffle
        self.rows = len(arrays[0])
        self.count = self.rows // size if drop_last else -(-self.rows // size)

    def __len__(self):
        return self.count

    def __iter__(self):
        order = np.random.default_rng(self.seed).permutation(self.rows) if self.shuffle else None
        for start in range(0, self.count * self.size, self.size):
            stop = min(start + self.size, self.rows)
            rows = slice(start, stop) if order is None else order[start:stop]
            yield tuple([a[rows] for a in self.arrays])


def batches(*arrays, size, seed=None, shuffle=True, drop_last=True):
    """Tuples of `size` rows of each array, every row once, in an order drawn from `seed`.

    arrays: n[rows,*s] each  →  tuples of n[size,*s]: copies; views with shuffle=False.
    seed: whatever np.random.default_rng takes: an int, or a tuple such as (seed, epoch).  One seed
    is one order, so give another to each epoch; None draws afresh each time.
    drop_last: leave out the rows behind the last full batch, so that all shapes are equal.
    Raises ShapeError for arrays of unequal length, RangeError when not even one batch can be made.

    >>> x, y = np.arange(10), np.arange(10) * 10
    >>> [b.tolist() for _, b in batches(x, y, size=4, shuffle=False)]
    [[0, 10, 20, 30], [40, 50, 60, 70]]
    >>> len(batches(x, y, size=4, seed=(0, 1), drop_last=False))
    3
    """
    if not arrays:
        raise ArgumentError("batches needs an array.", fix="batches(images, labels, size=64)")
    arrays = [np.asarray(a) for a in arrays]
    check_lengths(arrays)
    check_size(size, len(arrays[0]), drop_last)
    return Batches(arrays, int(size), seed, shuffle, drop_last)


def check_lengths(arrays):
    """Raises ShapeError unless all arrays have an equal first axis."""
    shapes = [f"array {k}: shape {a.shape}" for k, a in enumerate(arrays)]
    if any(a.ndim == 0 for a in arrays):
        raise ShapeError("batches cannot take rows of an array without axes.", given=shapes,
                         expected="one row per example along the first axis of each")
    if len({len(a) for a in arrays}) > 1:
        raise ShapeError("batches needs arrays of equal length.", given=shapes,
                         expected="equal first axes")


def check_size(size, rows, drop_last):
    """Raises unless batches of `size` can be made of so many rows."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
        raise ArgumentError("the size of a batch is a whole number.", given=f"size={size!r}")
    if size < 1:
        raise RangeError("a batch has at least one row.", given=f"size={size}")
    if drop_last and size > rows:
        raise RangeError(f"{rows} rows do not fill one batch of {size}.",
                         fix=["a smaller size", "drop_last=False, for one short batch"])
