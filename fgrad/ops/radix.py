"""Sorting by bytes, in machine code: where that is faster than NumPy, once it pays to load it.

A process that sorts little, or short rows, does without; a compiled function has it from the start.
Where it cannot be had, NumPy goes on.  Relies on `backends.llvm.radix` when the time has come;
`sort.py` relies on it, with arrays that are sorted along their last axis.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from ..aligned import copied, fill
from ..errors import FgradError, notice
from ..later import lazily

LOADING = 1 << 18          # elements; NumPy takes 8 ms for them, and so long takes loading
COMPILING = 1 << 21        # elements; with the import of llvmlite it takes 0.1 s, once per machine
VALUES, PLACES = 2048, 512           # elements of a row from which it is faster
LONG = 1 << 14             # of one in which -0.0 is sought sooner in what is sorted
HALF = np.uint64(32)

machine = lazily("fgrad.backends.llvm.radix")
_sorted = {}               # kind of words → elements that NumPy sorted, or whether it has a sort


def values(out, x):
    """Writes x, sorted stably, to `out`; False where NumPy is to do it."""
    kind = kind_of(x) if x.dtype.itemsize >= 4 and x.shape[-1] >= VALUES else None
    if kind is None or not x.size or not is_ready(kind, x.size) or not machine().is_faster(x):
        return False
    rows = in_rows(x)
    whole = out.flags.c_contiguous and out.flags.aligned
    to = out if whole else np.empty(x.shape, x.dtype)
    machine().values(rows, to.reshape(rows.shape))
    if x.dtype.kind == "f":
        mend(to.reshape(rows.shape), rows)
    if to is not out:
        fill(out, to)
    return True


def in_rows(x):
    """The contiguous matrix of the rows of an array."""
    whole = x.flags.c_contiguous and x.flags.aligned
    return (x if whole else copied(x)).reshape(-1, x.shape[-1])


def places(x, given):
    """np.argsort(x, kind="stable"), or of what lies at the places `given`; None where NumPy is to
    do it.
    """
    if kind_of(x) is None or x.shape[-1] < PLACES or not x.size or not is_ready("places", x.size):
        return None
    order = None if given is None else in_rows(given)
    for part in parts(x):
        order = machine().places(in_rows(part), order)
    return order.reshape(x.shape)


def kind_of(x):
    """The kind of words that hold elements, or None: of short integers NumPy does the same."""
    size = x.dtype.itemsize
    if x.dtype.kind not in ("iuf" if size >= 4 else "f") or x.shape[-1] >= 2**32:
        return None
    return "long" if size == 8 else "short"


def parts(x):
    """The elements as some of 32 bits: those that decide last are first."""
    if x.dtype.itemsize < 8:
        return [x if x.dtype.itemsize == 4 else x.astype(np.float32)]
    words = x.view(np.uint64)
    if x.dtype.kind == "f":
        found = x + 0.0                          # -0.0 + 0.0 is 0.0
        signed = found.view(np.int64)
        words = (signed ^ (signed >> 63 & 2**63 - 1)).view(np.uint64) ^ np.uint64(2**63)
        words[np.isnan(found)] = 2**64 - 1
    elif x.dtype.kind == "i":
        words = words ^ np.uint64(2**63)
    return [words.astype(np.uint32), (words >> HALF).astype(np.uint32)]


def mend(out, rows):
    """Rows that are sorted by all bits become rows that are sorted stably: all NaN are last, and
    zeros of both signs are equal.
    """
    for k in odd_rows(out, rows):
        row, to = rows[k], out[k]
        numbers = to[~np.isnan(to)]
        to[:numbers.size] = numbers
        to[numbers.size:] = row[np.isnan(row)]
        mend_zeros(to[:numbers.size], row)


def odd_rows(out, rows):
    """The numbers of those with NaN, which lie at the ends, or with -0.0."""
    if out.shape[1] >= LONG:
        return [k for k, row in enumerate(out)
                if row[0] != row[0] or row[-1] != row[-1] or has_negative_zero(row)]
    words = rows.view(f"i{rows.itemsize}")
    least = np.iinfo(words.dtype).min            # the word of -0.0
    odd = np.isnan(out[:, [0, -1]]).any(1)
    if words.min() == least:
        odd |= (words == least).any(1)
    return odd.nonzero()[0]


def has_negative_zero(row):
    """Has a row that is sorted by all bits a -0.0?  Then its first zero is one."""
    first = first_zero(row)
    return first is not None and bool(np.signbit(row[first]))


def mend_zeros(numbers, x):
    """The zeros among the sorted numbers of x in the order that they have in x.

    With AVX2 NumPy 2.4 gives some the other sign as it sorts.
    """
    first = first_zero(numbers)
    if first is not None:
        numbers[first:numbers.searchsorted(numbers[first], "right")] = x[x == 0]


def first_zero(numbers):
    """Where the first zero of either sign is among sorted numbers, None without one."""
    zero = numbers.dtype.type(0)
    first = numbers.searchsorted(zero)
    return first if first < numbers.size and numbers[first] == zero else None


def prepare(kind, ahead=False):
    """Loads the machine code for a kind of words, or compiles it where it is not on disk.

    ahead: another thread begins to compile it, if there is a processor for it.
    """
    if not ahead:
        is_ready(kind, COMPILING)
    elif not isinstance(_sorted.get(kind), bool):
        with suppress(FgradError, ImportError, OSError, MemoryError):       # `is_ready` says it
            machine().begin(kind)


def is_ready(kind, size):
    """Is there machine code for a kind of words?  If not, so many elements are NumPy's, and count.
    """
    count = _sorted.get(kind, 0)
    if count is True or count is False:
        return count
    _sorted[kind] = after = count + size
    try:
        if after >= COMPILING or count < LOADING <= after and machine().is_kept(kind):
            machine().library(kind)
            _sorted[kind] = True
    except (FgradError, ImportError, OSError, MemoryError) as error:
        notice("radix", f"NumPy sorts, not machine code: {error}")
        _sorted[kind] = False
    return _sorted[kind] is True
