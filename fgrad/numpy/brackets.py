"""What is written in brackets: the coordinates of grids, and arrays joined.

    x, y = fnp.mgrid[0:3, 0:4];  features = fnp.c_[fnp.ones(5), x];  line = fnp.r_[0:1:5j, 2, 3]
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..arguments import lifted
from ..core import array_in
from ..errors import ArgumentError
from ..types import SCALARS, default_float, default_int
from .joining import concatenate
from .promotion import of_one_dtype
from .ranges import arange, linspace

s_, index_exp = np.s_, np.index_exp


class Grid:
    """The coordinates of the places that slices name: `mgrid[0:2, 0:3]`; of `ogrid`, each along its
    own axis only.

    A step such as 5j is a number of points, and then the end counts.  Whole numbers give i32,
    others f32.

    >>> import fgrad.numpy as fnp
    >>> fnp.mgrid[0:2, 0:3].shape, fnp.mgrid[0:1:3j]
    ((2, 2, 3), Array([0. , 0.5, 1. ], f32[3]))
    >>> [x.shape for x in fnp.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """

    def __init__(self, made):
        self.made = made

    def __getitem__(self, slices):
        found = self.made[slices]
        return [usual(x) for x in found] if isinstance(found, (tuple, list)) else usual(found)

    def __repr__(self):
        return type(self.made).__name__


def usual(x):
    """The ndarray as an Array of the default dtype of its kind."""
    return array_in(x, default_float() if x.dtype.kind == "f" else default_int())


class Joined:
    """Arrays, numbers and ranges joined: `r_[x, 0, 1:3]` along the first axis, `c_[x, y]` along the
    last one, where vectors are columns.

    A slice is a range, and a step such as 5j in it a number of points, of which the end is one.
    Text in front is the axis along which they are joined, the axes that each has at least, and
    where those it has begin: `c_[…]` is `r_["-1,2,0", …]`.

    >>> import fgrad.numpy as fnp
    >>> fnp.r_[fnp.array([1, 2]), 0, 5:7]
    Array([1, 2, 0, 5, 6], i32[5])
    >>> fnp.c_[fnp.ones(2), fnp.arange(2.0)].tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """

    def __init__(self, name, axis, least, at):
        self.name, self.usual = name, (axis, least, at)

    def __getitem__(self, parts):
        given = parts if isinstance(parts, tuple) else (parts,)
        parts, words = list(given), self.usual
        if parts and isinstance(parts[0], str):
            words = self.directive(parts.pop(0))
        if not parts or any(isinstance(x, str) for x in parts):
            raise ArgumentError(f"{self.name} joins arrays, numbers and slices.",
                                given=f"{self.name}[{', '.join(map(repr, given)):.60}]",
                                expected=f"at least one of them: {self.name}[x, y]")
        axis, least, at = words
        values = of_one_dtype(*[in_brackets(x) for x in parts])
        return concatenate([with_axes(x, least, at) for x in values], axis)

    def directive(self, text):
        """(axis, least axes, where those of an array begin) of words such as "0,2,1"."""
        try:
            numbers = [int(word) for word in text.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ArgumentError(f"{self.name} does not know {text!r}.",
                                expected='up to three ints: "axis,axes,at"')
        return (*numbers, *self.usual[len(numbers):])

    def __repr__(self):
        return self.name


def in_brackets(x):
    """A part of `r_` or `c_` as an array, or a number."""
    if not isinstance(x, slice):
        return x if x.__class__ in SCALARS else lifted(x)
    start = 0 if x.start is None else x.start
    if isinstance(x.step, complex):
        return linspace(start, x.stop, int(abs(x.step)))
    return arange(start, x.stop, 1 if x.step is None else x.step)


def with_axes(x, least, at):
    """x with axes of one element put in, where it has fewer than `least`; its own begin at `at`,
    counted from behind where that is negative: -1 puts them last.
    """
    more = max(least - x.ndim, 0)
    front = min(max(at if at >= 0 else at + more + 1, 0), more)
    return ops.reshape(x, shape=(*(1,) * front, *x.shape, *(1,) * (more - front)))


mgrid, ogrid = Grid(np.mgrid), Grid(np.ogrid)
r_, c_ = Joined("r_", 0, 1, -1), Joined("c_", -1, 2, 0)
