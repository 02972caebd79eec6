"""x[...]: what an index means, and reading by it.

`Index` takes an index apart once: a basic part (slices, ints, new axes), which is slice, rev and
reshape, and an advanced part (integer arrays), which is one gather.  `updates.py` writes by the
same Index.  An index that is known must be in range, and one that is only known at run time is
clipped, unless a mode says what one out of range means.
"""

from __future__ import annotations

import functools
import operator

import numpy as np

from .. import ops
from ..arguments import lifted
from ..core import Array, Tracer, Value, as_value
from ..errors import ArgumentError, ConcretizationError, PositionError, ShapeError
from ..ops.index import roomy
from ..text import counted
from ..types import BOOL, I32, INEXACT_KINDS, SHORT
from .axes import axis_of, broadcast_shapes, text_of, typed
from .promotion import broadcast_to, same


class Index:
    """An index of an array of `shape`, taken apart.

    mode: None, where an index that is known must be in range; "clip", "fill" or "wrap".
    Basic part, per axis of the array: start, stop, stride; `turned` are the axes read backwards,
    `plain` is the shape after ints are gone and new axes have come.  Advanced part: `arrays`, of
    one shape, index the axes `axes` of the basic result; their own axes come at `place`.
    """
    __slots__ = ("shape", "mode", "start", "stop", "stride", "turned", "plain", "arrays", "axes",
                 "place", "is_whole")

    def __init__(self, shape, index, mode=None):
        self.shape, self.mode = shape, mode_of(mode)
        self.start, self.stop, self.stride = [], [], []
        self.turned, self.plain, self.arrays, self.axes = [], [], [], []
        entries = expanded(index, shape)
        self.place = place_of_arrays(entries)
        for entry in entries:
            self.take(entry)
        self.join_arrays()
        self.start, self.stop, self.stride = map(tuple, (self.start, self.stop, self.stride))
        dense = max(self.stride, default=1) == 1
        whole = dense and self.start == (0,) * len(shape) and self.stop == shape
        self.is_whole = whole and not self.turned

    def take(self, entry):
        """One entry: the next axis of the array, or a new one."""
        axis = len(self.start)
        if entry is None:
            self.plain.append(1)
        elif isinstance(entry, slice):
            self.take_slice(entry, axis, self.shape[axis])
        elif isinstance(entry, Value):
            self.part(0, self.shape[axis], 1)
            self.arrays.append(in_range(entry, axis, self.shape, self.mode))
            self.axes.append(len(self.plain))
            self.plain.append(self.shape[axis])
        else:
            self.take_int(entry, axis, self.shape[axis])

    def take_int(self, entry, axis, n):
        """An int; one out of range becomes one in range, or an index array to be filled."""
        if not -n <= entry < n:
            if self.mode is None or n == 0 and self.mode != "fill":
                raise outside(entry, n, axis, self.shape)
            if self.mode == "fill":
                return self.take(Array(np.array(n, I32)))
            if self.mode == "clip":
                entry = min(max(entry, 0), n - 1)
        self.part(entry % n, entry % n + 1, 1)

    def take_slice(self, entry, axis, n):
        """A slice; a negative step reads backwards what the positive one reads."""
        try:
            start, stop, step = entry.indices(n)
        except ValueError:
            raise ArgumentError("the step of a slice cannot be 0.") from None
        count = len(range(start, stop, step))
        if step < 0:
            self.turned.append(axis)
            start, step = start + (count - 1) * step, -step
        start = start if count else 0
        self.part(start, start + (count - 1) * step + 1 if count else start, step if count else 1)
        self.plain.append(count)

    def part(self, start, stop, stride):
        self.start.append(start)
        self.stop.append(stop)
        self.stride.append(stride)

    def join_arrays(self):
        """Broadcasts the index arrays to one shape."""
        if self.arrays:
            shape = broadcast_shapes(*[i.shape for i in self.arrays])
            self.arrays = [broadcast_to(i, shape) for i in self.arrays]
        self.axes, self.plain = tuple(self.axes), tuple(self.plain)

    @property
    def cut(self):
        """The shape after slicing, ints still with size 1."""
        return tuple(-(-(b - a) // s) for a, b, s in zip(self.start, self.stop, self.stride))

    def basic(self, x):
        """The basic part of x."""
        if not self.is_whole:
            x = ops.slice(x, start=self.start, stop=self.stop, stride=self.stride)
        if self.turned:
            x = ops.rev(x, axes=tuple(self.turned))
        return x if x.shape == self.plain else ops.reshape(x, shape=self.plain)

    def read(self, x, fill=None):
        """x at this index; fill: what mode "fill" reads out of range, None as in `fill_for`."""
        x = self.basic(x)
        if not self.arrays:
            return x
        mode = "fill" if self.mode == "fill" else "clip"
        fill = fill_for(x.dtype, fill) if mode == "fill" else 0
        out = ops.gather(x, *self.arrays, axes=self.axes, mode=mode, fill=fill)
        return self.to_place(out)

    def to_place(self, out):
        """The axes of the index arrays moved from the front to where NumPy has them."""
        k, p = self.arrays[0].ndim, self.place
        if p == 0 or k == 0:
            return out
        rest = tuple(range(k, out.ndim))
        return ops.transpose(out, perm=(*rest[:p], *range(k), *rest[p:]))

    def from_place(self, u):
        """The opposite of to_place."""
        k, p = self.arrays[0].ndim, self.place
        if p == 0 or k == 0:
            return u
        rest = [a for a in range(u.ndim) if not p <= a < p + k]
        return ops.transpose(u, perm=(*range(p, p + k), *rest))

    @property
    def result(self):
        """The shape of what is read."""
        if not self.arrays:
            return self.plain
        rest = [n for a, n in enumerate(self.plain) if a not in self.axes]
        return (*rest[:self.place], *self.arrays[0].shape, *rest[self.place:])


# ---------------------------------------------------------------------------- taking apart

def expanded(index, shape):
    """One entry per axis: an int, a slice, a Value of ints, or None for a new axis."""
    index = index if isinstance(index, tuple) else (index,)
    entries = [entry for part in index for entry in entries_of(part)]
    used = sum(e is not None and e is not Ellipsis for e in entries)
    if used > len(shape):
        raise PositionError(f"{used} indices are too many for an array of "
                            f"{counted(len(shape), 'axis', 'axes')}.",
                            given=f"shape {text_of(shape)}")
    dots = [k for k, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise ArgumentError("an index can hold one ellipsis (...) only.")
    at = dots[0] if dots else len(entries)
    rest = [slice(None)] * (len(shape) - used)
    entries = entries[:at] + rest + entries[at + 1:]
    check_masks(index, shape)
    return [whole_slice(e) for e in entries]


def whole_slice(e):
    """The entry, bounds of a slice as ints."""
    if not isinstance(e, slice):
        return e
    try:
        return slice(*[None if v is None else operator.index(v) for v in (e.start, e.stop, e.step)])
    except ConcretizationError as error:
        rest = error.fix[1:] if isinstance(error.fix, list) else []
        error.fix = ["fgrad.lax.dynamic_slice reads a block of fixed size from any place", *rest]
        raise


def entries_of(part):
    """An entry as a list of entries: a mask becomes one integer array per axis it covers."""
    if part is None or part is Ellipsis or isinstance(part, slice) or part.__class__ is int:
        return [part]
    if isinstance(part, (bool, np.bool_)):
        raise ArgumentError(f"{part} is not an index.", fix="x[None] adds an axis")
    if isinstance(part, (float, str)) or part.__class__.__module__ == "builtins" and not isinstance(
            part, (list, int)):
        raise not_an_index(part)
    if isinstance(part, (int, np.integer)):
        return [int(part)]
    value = Array(np.zeros(0, I32)) if isinstance(part, list) and not part else as_value(part)
    if value.dtype == BOOL:
        return [Array(i) for i in np.nonzero(known_mask(value))]
    if value.dtype.kind not in "iu":
        raise not_an_index(value)
    return [int(value.np) if isinstance(value, Array) and value.shape == () else value]


def not_an_index(part):
    """The error for an index that is neither int, slice, nor array of ints or bools."""
    what = SHORT[part.dtype] if isinstance(part, Value) else f"{type(part).__name__} {part!r}"
    fix = ("convert it with astype(int)" if isinstance(part, Value) else
           "a // b divides ints to an int" if isinstance(part, float) else None)
    return PositionError(f"an index cannot be {what}.", fix=fix,
                         expected="ints, slices, None, ..., or arrays of ints or bools")


def known_mask(mask):
    """The NumPy value of a bool index: how many elements it picks decides the shape."""
    return known_value(
        mask, "a bool index picks a number of elements that is not known while tracing.",
        fix=["where(mask, x, 0) keeps the shape", "where(mask, new, x) writes by a mask"])


def known_value(x, sentence, fix):
    """The NumPy value of x.  Raises ConcretizationError with the sentence where there is none."""
    known = x if isinstance(x, Array) else x.known()
    if known is None:
        raise ConcretizationError(sentence, given=typed(x), fix=fix)
    return np.asarray(known.value_for("the value"))


def check_masks(index, shape):
    """Raises PositionError unless every bool index has the sizes of the axes that it covers."""
    axis = 0
    for k, part in enumerate(index):
        if part is Ellipsis:
            after = sum(covers(p) for p in index[k + 1:])
            axis = len(shape) - after
            continue
        count = covers(part)
        if is_mask(part):
            sizes = np.shape(part) if not isinstance(part, Value) else part.shape
            if tuple(sizes) != shape[axis:axis + count]:
                raise PositionError(f"a bool index of shape {text_of(sizes)} does not fit axes of "
                                    "shape "
                                    f"{text_of(shape[axis:axis + count])}.",
                                    expected="equal shapes")
        axis += count


def is_mask(part):
    """Is the part of an index an array, or list, of bools?"""
    if isinstance(part, list):
        return bool(part) and np.asarray([getattr(p, "np", p) for p in part]).dtype == BOOL
    return getattr(part, "dtype", None) == BOOL and np.ndim(getattr(part, "np", part)) > 0


def covers(part):
    """How many axes the part of an index uses up."""
    if part is None or part is Ellipsis:
        return 0
    if is_mask(part):
        return np.ndim(part) if not isinstance(part, Value) else part.ndim
    return 1


def place_of_arrays(entries):
    """Where the axes of index arrays go: where they and ints stand together, else in front."""
    if not any(isinstance(e, Value) for e in entries):
        return 0
    advanced = [k for k, e in enumerate(entries) if isinstance(e, (Value, int))]
    if advanced[-1] - advanced[0] + 1 != len(advanced):
        return 0
    return advanced[0]


# ---------------------------------------------------------------------------- range

MODES = {None: None, "raise": None, "clip": "clip", "promise_in_bounds": "clip", "fill": "fill",
         "drop": "fill", "wrap": "wrap"}


def word_of(mode):
    """A mode as a string, also a lax.GatherScatterMode."""
    return getattr(mode, "value", mode)


def mode_of(mode):
    """What an index out of range means: of the names for one thing the first in MODES."""
    mode = word_of(mode)
    if mode not in MODES:
        raise ArgumentError(f"an index has no mode {mode!r}.",
                            expected=", ".join(repr(name) for name in MODES))
    return MODES[mode]


def fill_for(dtype, fill_value):
    """What is read outside: NaN, the smallest of signed and the largest of other integers."""
    if fill_value is not None:
        return fill_value
    if dtype.kind in INEXACT_KINDS:
        return float("nan")
    if dtype.kind == "b":
        return True
    limits = np.iinfo(dtype)
    return limits.min if dtype.kind == "i" else limits.max


def in_range(i, axis, shape, mode=None):
    """The index array with negative ones counted from the end, in mode "wrap" all of them around.

    Raises PositionError if one is known to be out and there is no mode.
    """
    n = shape[axis]
    i = roomy(i)
    if mode == "wrap":
        return around(i, n)
    if mode is not None:
        return i if i.dtype.kind == "u" else wrapped(i, n)
    known = i if isinstance(i, Array) else i.known() if isinstance(i, Tracer) else None
    if known is not None and isinstance(known, Array):
        value = np.asarray(known.np)
        wrong = (value < -n) | (value >= n) if value.dtype.kind == "i" else value >= n
        if wrong.any():
            raise outside(value[wrong].flat[0], n, axis, shape)
        if value.dtype.kind == "u" or not (value < 0).any():
            return i
        if isinstance(i, Array):
            return Array(np.where(value < 0, value + value.dtype.type(n), value))
    return i if i.dtype.kind == "u" else wrapped(i, n)


def wrapped(i, n):
    """i + n where i is negative."""
    i = i.settled()
    return ops.select(same(ops.lt, i, 0), same(ops.add, i, n), i)


def around(i, n):
    """i modulo n, from 0 to n - 1."""
    return same(ops.rem, same(ops.add, same(ops.rem, i, n), n), n)


def outside(i, n, axis, shape):
    """The error for an index that is out of range."""
    return PositionError(f"index {i} is out of range for axis {axis} of size {n}.",
                         given=f"an array of shape {text_of(shape)}",
                         expected=f"an index from {-n} to {n - 1}" if n
                         else "no index: the axis is empty")


def getitem(x, index):
    """x[index], as in NumPy: ints, slices, None, ..., integer arrays, and known bool arrays.

    Raises PositionError for an index known to be out of range; one known only at run time is
    clipped.
    """
    return index_of(x.shape, index).read(x)


def index_of(shape, index, mode=None):
    """The Index; one of ints, slices, None and ... only is taken apart once."""
    key = []
    for part in index if index.__class__ is tuple else (index,):
        cls = part.__class__
        if cls is slice:
            part = part.start, part.stop, part.step
            if any(v.__class__ is not int and v is not None for v in part):
                return Index(shape, index, mode)
        elif cls is not int and part is not None and part is not Ellipsis:
            return Index(shape, index, mode)
        key.append(part)
    return plain_index(shape, tuple(key), mode)


@functools.lru_cache(maxsize=4096)
def plain_index(shape, key, mode):
    """The Index of a key in which slices are tuples."""
    key = tuple([slice(*part) if part.__class__ is tuple else part for part in key])
    return Index(shape, key, mode)


# ---------------------------------------------------------------------------- functions

def take(a, indices, axis=None, mode=None, fill_value=None):
    """Elements along an axis at integer indices; None: of the flat array.

    n[…,k,…] i[*s] → n[…,*s,…]

    mode: what an index out of range reads: "clip" the nearest element, "wrap" the one as many
    places around, "fill" `fill_value`, by default NaN, of integers the smallest, of unsigned ones
    the largest, True.  Without one a known index out of range raises PositionError, and one known
    only at run time is clipped.  Negative indices count from the end; "clip" reads the first there.

    >>> take([1, 2, 3], [0, 4], mode="wrap").tolist()
    [1, 2]
    """
    x = lifted(a)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    k = axis_of(axis, x.ndim, "take")
    index = as_value(indices)
    if index.dtype.kind not in "iu":
        raise not_an_index(index)
    if word_of(mode) == "clip" and index.dtype.kind == "i":
        index = same(ops.max, index, ops.full_like(index, 0))
    return Index(x.shape, (slice(None),) * k + (index,), mode).read(x, fill_value)


def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None):
    """arr[…, indices[…], …]: indices of the shape of arr, except along `axis`; modes as in take.

    >>> import fgrad.numpy as fnp
    >>> x = fnp.array([[3, 1], [2, 9]])
    >>> fnp.take_along_axis(x, fnp.argsort(x, axis=1), axis=1)
    Array([[1, 3],
           [2, 9]], i32[2,2])
    """
    x, i = lifted(arr), as_value(indices)
    if axis is None:
        x, i, axis = ops.reshape(x, shape=(x.size,)), ops.reshape(i, shape=(i.size,)), 0
    k = axis_of(axis, x.ndim, "take_along_axis")
    if i.ndim != x.ndim:
        raise ShapeError("take_along_axis needs as many axes in both.", given=[typed(x), typed(i)])
    shape = broadcast_shapes((*x.shape[:k], 1, *x.shape[k + 1:]),
                             (*i.shape[:k], 1, *i.shape[k + 1:]))
    x = broadcast_to(x, (*shape[:k], x.shape[k], *shape[k + 1:]))
    i = broadcast_to(i, (*shape[:k], i.shape[k], *shape[k + 1:]))
    mode = mode_of(mode)
    i = in_range(i, k, x.shape, mode)
    fill = fill_for(x.dtype, fill_value) if mode == "fill" else 0
    return ops.take_along(x, i, k, "fill" if mode == "fill" else "clip", fill)
