"""Sorting in machine code: words by their bytes, rows of them or one vector by several threads.

It takes a tenth to a third of the time of NumPy's stable argsort, and a fifth of that of its sort
of values, but where that is quick: with AVX2, and with AVX-512 on Intel's processors and on Zen 5.
There what need not be stable is sorted by comparing vectors: values, by several threads or, of 32
bits with AVX-512, by one (else NumPy is as quick), and on Intel's with AVX-512, where counting
bytes is slow, elements with their places, of which no two are equal.  How this becomes NumPy's
order, and when it is worth loading, `ops/radix.py` knows, which relies on it.  Relies on
`radix_text.py` for the code, and on the pool.

    values(rows, out)      # each row sorted by the order of all bits: -nan … -0.0 0.0 … nan
    places(rows, given)    # of 32-bit elements: the places that those of a sorted row come from
"""

from __future__ import annotations

import ctypes
import functools
from contextlib import contextmanager, suppress

import numpy as np

from ... import config
from ...aligned import empty
from .. import cache
from . import native_call, objects, quick_text, radix_text, target, threads
from .host import HOST
from .radix_text import KINDS, NUMBERS, POINTERS, SIDES

MANY = 1 << 16             # elements that are worth a thread of their own
ALONE = 1 << 16            # elements that one thread sorts faster than NumPy by comparing vectors
SAMPLES = 64               # elements looked at, for each side, to cut a vector into sides
KEPT = 1 << 25             # bytes of memory that are kept for the next sort
LEAST = 32                 # bytes of vectors that are worth comparing


def compared(host):
    """The kinds of words that a processor sorts by comparing vectors, not by counting bytes."""
    if host.vector_bytes < LEAST or host.cpu == "znver4":
        return frozenset()
    return frozenset(KINDS if host.intel else ("short", "long"))


COMPARES, VECTOR = compared(HOST), HOST.vector_bytes


class Job(ctypes.Structure):
    """%Job"""
    _fields_ = ([(name, ctypes.c_void_p) for name in POINTERS]
                + [(name, ctypes.c_int64) for name in NUMBERS])


def values(rows, out):
    """Sorts the rows of a matrix of floats or integers of 32 or 64 bits, by all bits, to `out`.

    Both are contiguous.
    """
    name = "short" if rows.itemsize == 4 else "long"
    if not is_cut(rows):
        whole(name, rows, out, *mapped(rows.dtype))
        return
    with workspace(rows[0].nbytes) as work:
        for row, to in zip(rows, out):
            cut(name, row, to, work, *mapped(rows.dtype))


def places(rows, given=None):
    """The places, i64, in the order of the elements; of equal ones the first comes first.

    rows: a contiguous matrix of f32, i32 or u32.  NaN are equal and last, zeros are equal.
    given: places that the elements are looked at in, each row's in a row: this order decides where
    elements are equal.
    """
    form = "float" if rows.dtype.kind == "f" else "integer"
    mask, top = mapped(rows.dtype)
    out, parts = empty(rows.shape, np.int64), parts_of(rows.size)
    name = "pairs" if "places" in COMPARES and given is None else "places"
    words = job("places", source=rows, given=given, rows=len(rows), n=rows.shape[1], mask=mask,
                top=top)
    if not is_cut(rows):
        words(f"words.{form}", parts, target=out)
        whole(name, out, out)
        return out
    with workspace(out.nbytes) as made:
        made = made.view(np.int64).reshape(rows.shape)
        words(f"words.{form}", parts, target=made)
        for row, to in zip(made, out):
            cut(name, row, to, row)
    return out


def mapped(dtype):
    """(mask, top) of elements: see radix_text."""
    bits = 8 * dtype.itemsize
    top = 0 if dtype.kind == "u" else 1 << bits - 1
    return (top - 1 if dtype.kind == "f" else 0), top


def is_faster(x):
    """Are the values along the last axis of an array sorted faster than NumPy does it?"""
    if "short" not in COMPARES or parts_of(x.size) > 1:
        return True
    alone = VECTOR >= quick_text.COMPRESSES
    return alone and x.itemsize == 4 and x.size >= ALONE


def is_cut(rows):
    """Is each row worth several threads, and are there too few rows for all of them?"""
    return rows.shape[1] >= 2 * MANY and len(rows) < config.threads()


def parts_of(size):
    """Among how many threads so many elements are shared."""
    return min(config.threads(), size // MANY) if size >= 2 * MANY else 1


def whole(name, rows, out, mask=0, top=0):
    """Sorts rows, each by one thread, into `out`, which may be the rows themselves."""
    count, n = rows.shape
    parts = min(parts_of(rows.size), count)
    with workspace(parts * n * rows.itemsize) as work:
        job(name, source=rows, target=out, work=work, counts=counts_of(name, parts), rows=count,
            n=n, mask=mask, top=top, last_mask=mask, last_top=top)("rows", parts)


def cut(name, row, out, work, mask=0, top=0):
    """Sorts a vector into `out` by several threads; `work` may be the vector."""
    parts = parts_of(row.size)
    counts = np.zeros((parts, SIDES), np.int64)
    moving = job(name, source=row, target=out, work=work, counts=counts, n=row.size, mask=mask,
                 top=top, splitters=splitters(name, row, mask, top))
    moving("count", parts)
    given = counts.copy()
    ends = counts.T.cumsum().reshape(SIDES, parts)
    first = np.concatenate([[0], ends[:, -1]])
    counts[...] = ends.T - counts
    moving("move", parts, given=given)           # from now on they are words
    job(name, target=out, work=work, counts=counts_of(name, SIDES), given=first,
        last_mask=mask, last_top=top)("side", SIDES)


def splitters(name, row, mask, top):
    """Words that cut a vector into sides of about one size, by what it has at some places.

    The last is the greatest, which none is above.
    """
    bits, unsigned = 8 * row.itemsize, np.dtype(f"u{row.itemsize}")
    sample = row[::max(1, row.size // (SAMPLES * SIDES))].view(f"i{row.itemsize}")
    words = sample ^ (sample >> bits - 1 & sample.dtype.type(mask))
    words = np.sort(words.view(unsigned) ^ unsigned.type(top))
    if name == "places":
        words |= unsigned.type(0xFFFFFFFF)       # equal elements are of one side
    found = words[[k * len(words) // SIDES for k in range(1, SIDES)]]
    return np.append(found, ~unsigned.type(0))


def counts_of(name, parts):
    """Room for the counts of so many rows at once."""
    return np.empty(parts * KINDS[name].digits * 256, np.int64)


EMPTY = np.empty(0, np.uint8)
_spare = []                # memory of an earlier sort; new pages take a third of a sort's time


@contextmanager
def workspace(size):
    """So many bytes to work in, within the block."""
    memory = EMPTY
    with suppress(IndexError):                   # another thread may have it
        memory = _spare.pop()
    if memory.size < size:
        memory = empty((size,), np.uint8, 1)
    yield memory[:size]
    if size <= KEPT and not _spare:
        _spare.append(memory)


def job(kind, **fields):
    """A function that runs (what, parts) with these arrays and numbers, and more of them."""
    def run(what, parts, **more):
        made = Job(parts=parts, **{name: address(x) for name, x in {**fields, **more}.items()})
        name = what if "." in what else f"{what}.{kind}"
        library = "places" if kind == "pairs" else kind           # one has both, see radix_text
        threads.pool().run(function(name, library), ctypes.addressof(made), parts)
    return run


def address(x):
    """Where an array lies; a number as it is."""
    return x.ctypes.data if isinstance(x, np.ndarray) else x


@functools.cache
def function(name, kind):
    """The address of a function."""
    return library(kind).address(name)


@functools.cache
def text(kind):
    """The whole module for a kind of words."""
    return native_call.for_host(radix_text.text(kind, VECTOR if kind in COMPARES else 0))


def is_kept(kind):
    """Is the machine code on disk, so that it need not be compiled?"""
    return cache.disk().get(objects.key_of(text(kind))) is not None


def begin(kind):
    """Another thread begins to compile the machine code, where it is not on disk."""
    objects.begin([text(kind)])


def library(kind):
    """The loaded machine code.  Raises CheckError where the system allows no code of our own."""
    with target.loading:
        return loaded(kind)


@functools.cache
def loaded(kind):
    [built] = objects.of([text(kind)])
    return target.load(built)
