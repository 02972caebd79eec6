"""Shuffled batches of arrays that fit in memory, as NumPy arrays, made ahead by a thread if wanted.

Relies on NumPy, and on `fgrad.random` for its keys; what comes out is what a train step takes.
"""

from __future__ import annotations

import contextvars
import queue
import threading

import numpy as np

from ..errors import ArgumentError, RangeError, ShapeError, bound
from ..random import Key, key_data


class Batches:
    """The iterable that `batches` gives; `len` is the number of batches."""

    def __init__(self, arrays, size, seed, shuffle, drop_last, transforms, prefetch):
        self.arrays, self.size, self.seed, self.shuffle = arrays, size, seed, shuffle
        self.transforms, self.prefetch = transforms, prefetch
        self.rows = len(arrays[0])
        self.count = self.rows // size if drop_last else -(-self.rows // size)

    def __len__(self):
        return self.count

    def __iter__(self):
        return ahead(self.made(), self.prefetch) if self.prefetch else self.made()

    def made(self):
        """The batches, one by one."""
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(self.rows) if self.shuffle else None
        base = int(rng.integers(2**63)) if self.transforms else None
        for k, start in enumerate(range(0, self.count * self.size, self.size)):
            stop = min(start + self.size, self.rows)
            rows = slice(start, stop) if order is None else order[start:stop]
            batch = tuple([a[rows] for a in self.arrays])
            if self.transforms:
                batch = transformed(batch, self.transforms, np.random.default_rng((base, k)))
            yield batch


def batches(*arrays, size, seed=None, shuffle=True, drop_last=True, transforms=(), prefetch=0):
    """Tuples of `size` rows of each array, every row once, in an order drawn from `seed`.

    arrays: n[rows,*s] each  →  tuples of n[size,*s]: copies; views with shuffle=False.
    seed: whatever np.random.default_rng takes: an int, or a tuple such as (seed, epoch); or a
    random key.  One seed is one order, so give another to each epoch; None draws afresh.
    drop_last: leave out the rows behind the last full batch, so that all shapes are equal.
    transforms: functions (batch, rng) → batch, in order; batch is the tuple of arrays, and rng
    a Generator that depends on the seed and the batch's number only (`data.augment.on`).
    prefetch: how many batches a background thread makes ahead; they are the same batches.  What a
    transform raises is raised here; the thread ends with the loop, however that ends.
    Raises ShapeError for arrays of unequal length, RangeError when not even one batch can be made.

    >>> x, y = np.arange(10), np.arange(10) * 10
    >>> [b.tolist() for _, b in batches(x, y, size=4, shuffle=False)]
    [[0, 10, 20, 30], [40, 50, 60, 70]]
    >>> len(batches(x, y, size=4, seed=(0, 1), drop_last=False))
    3
    >>> [b.tolist() for _, b in batches(x, y, size=5, shuffle=False, prefetch=2,
    ...                                 transforms=[lambda batch, rng: (batch[0], batch[1] + 1)])]
    [[1, 11, 21, 31, 41], [51, 61, 71, 81, 91]]
    """
    if not arrays:
        raise ArgumentError("batches needs an array.", fix="batches(images, labels, size=64)")
    arrays = [np.asarray(a) for a in arrays]
    check_lengths(arrays)
    check_size(size, len(arrays[0]), drop_last)
    return Batches(arrays, int(size), entropy(seed), shuffle, drop_last, functions(transforms),
                   depth(prefetch))


def entropy(seed):
    """What NumPy's generator takes: the words of a random key, anything else as it is."""
    if not isinstance(seed, Key):
        return seed
    if seed.shape:
        raise ArgumentError("batches needs one key.", fix="keys[0]",
                            given=f"an array of keys of shape {seed.shape}")
    return np.asarray(key_data(seed)).tolist()


def functions(transforms):
    """The transforms as a tuple; one function stands for itself."""
    listed = (transforms,) if callable(transforms) else tuple(transforms)
    strange = [f for f in listed if not callable(f)]
    if strange:
        raise ArgumentError("a transform is a function (batch, rng) → batch.",
                            given=repr(strange[0])[:200])
    return listed


def depth(prefetch):
    """The number of batches ahead.  Raises unless it is a whole number of 0 or more."""
    if isinstance(prefetch, bool) or not isinstance(prefetch, (int, np.integer)) or prefetch < 0:
        raise ArgumentError("prefetch is a number of batches.", given=f"prefetch={prefetch!r}",
                            fix="prefetch=2, or 0 for no thread")
    return int(prefetch)


def transformed(batch, transforms, rng):
    """The batch after all transforms.  Raises ArgumentError for one that gives no tuple."""
    for transform in transforms:
        batch = transform(batch, rng)
        if not isinstance(batch, tuple):
            raise ArgumentError("a transform gives a batch: a tuple of arrays.",
                                given=f"{getattr(transform, '__name__', transform)} gave a "
                                      f"{type(batch).__name__}",
                                fix="return (images, labels)")
    return batch


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


# ---------------------------------------------------------------------------- ahead of time

def ahead(items, n):
    """The items, of which a thread makes up to n ahead of those asked for.

    The thread starts with the first item asked for and has ended when this generator has: at the
    last item, at an exception, which is raised here, or when it is closed before.

    >>> list(ahead(iter(range(5)), 2))
    [0, 1, 2, 3, 4]
    """
    room, ready, stop = threading.Semaphore(n), queue.SimpleQueue(), threading.Event()
    work = contextvars.copy_context().run          # default dtypes and the like hold there too
    thread = threading.Thread(target=work, args=(fill, items, room, ready, stop), daemon=True,
                              name="fgrad prefetch")
    thread.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            room.release()
            yield value
    finally:
        stop.set()
        room.release()
        thread.join()


def fill(items, room, ready, stop):
    """Puts the items into `ready` as there is room, then how they ended; what the thread does."""
    try:
        for item in items:
            room.acquire()
            if stop.is_set():
                return
            ready.put(("item", item))
        ready.put(("end", None))
    except BaseException as error:
        ready.put(("error", error))


bound(globals())
