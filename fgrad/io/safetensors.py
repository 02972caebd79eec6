"""Pytrees in safetensors files: no pickle, whole or not at all, all checked.

The format (https://github.com/huggingface/safetensors): eight little-endian bytes, the length of
the header; the header, JSON padded with spaces, name → dtype, shape and place; then the elements,
little-endian, without gaps.  Larger element types come first, so every leaf is aligned.  Relies on
`leaves.py` for names and structures and on `files.py` for writing; `checkpoint.py` relies on it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from math import prod

import numpy as np

from ..bf16 import BF16
from ..core import frozen_array
from ..errors import DataError
from ..types import held_as
from .files import check_suffix, open_file, write_whole
from .leaves import DTYPES, MAX_AXES, NAMES, check_fits, fitted, named_arrays, nested, text

MAX_HEADER = 100_000_000   # bytes; the format's own limit
ALIGNMENT = 8              # bytes


@dataclass(frozen=True)
class Entry:
    """What the header says of one leaf; the elements are bytes start … stop behind the header."""
    name: str
    dtype: np.dtype
    shape: tuple
    start: int
    stop: int


# ---------------------------------------------------------------------------- save

def save(path, tree):
    """Writes the leaves of a pytree to a safetensors file, whole, or leaves it as it was.

    Leaves are arrays of bool, integers, f16, bf16, f32 or f64, or Python numbers, which become 0-d
    arrays of the default dtypes (i32, f32).  Their names are their paths: `layers/0/w`.
    Raises ArgumentError for a leaf of another kind, for two leaves with one name, and for a path
    that tells another format; MissingFileError when the folder does not exist, FileError when the
    file cannot be written.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "params.safetensors")
    ...     save(path, {"dense": {"w": np.ones((2, 3), np.float32)}, "steps": 7})
    ...     load(path)["dense"]["w"].shape, load(path)["steps"]
    ((2, 3), array(7, dtype=int32))
    """
    check_suffix(path, ".safetensors")
    arrays = named_arrays(tree)
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    entries, end = {}, 0
    for name in names:
        a = arrays[name]
        entries[name] = {"dtype": NAMES[a.dtype.newbyteorder("=")], "shape": list(a.shape),
                         "data_offsets": [end, end + a.nbytes]}
        end += a.nbytes
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % ALIGNMENT)
    start = [len(header).to_bytes(8, "little"), header]
    write_whole(path, start + [little_endian(arrays[name]) for name in names])


def little_endian(a):
    """The elements as bytes, row by row, little-endian; no copy where none is needed."""
    a = a.words if a.dtype is BF16 else a
    return np.ascontiguousarray(a, a.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data


# ---------------------------------------------------------------------------- load

def load(path, like=None):
    """The pytree in a safetensors file, with NumPy arrays for leaves, Arrays of fgrad for bf16.

    Without `like` names are split at "/" into nested dicts (lists come back as dicts with the keys
    "0", "1", …; empty containers and None are gone).  With `like`, a pytree of arrays, numbers or
    anything with shape and dtype, its structure comes back, with Python numbers where it has some.
    Raises MissingFileError; DataError for a damaged file, and for one that does not fit `like`,
    naming every leaf that is missing, extra, or of another shape or dtype.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "params.safetensors")
    ...     save(path, [np.zeros(2), (np.ones(1),)])
    ...     load(path, like=[np.empty(2), (np.empty(1),)])
    [array([0., 0.]), (array([1.]),)]
    """
    with open_file(path) as file:
        entries = read_header(file, path)
        if like is not None:
            check_fits(path, {e.name: (NAMES[e.dtype], e.shape) for e in entries}, like)
        arrays = {e.name: read_leaf(file, path, e) for e in entries}
    return nested(path, arrays) if like is None else fitted(arrays, like)


def read_leaf(file, path, entry):
    """The elements of one leaf; the file stands at their first byte."""
    data = bytearray(entry.stop - entry.start)
    if file.readinto(data) != len(data):
        raise DataError(f"{path} was changed while it was read.", given=f"leaf {entry.name!r}")
    dtype = held_as(entry.dtype)
    raw = np.frombuffer(data, dtype.newbyteorder("<")) if data else np.empty(0, dtype)
    if entry.dtype == bool and raw.view(np.uint8).max(initial=0) > 1:
        raise damaged(path, f"the leaf {entry.name!r} holds bools other than 0 and 1")
    out = raw.astype(dtype, copy=False).reshape(entry.shape)
    return frozen_array(out, BF16) if entry.dtype is BF16 else out


# ---------------------------------------------------------------------------- the header

def damaged(path, how, **rows):
    """The error for a file that breaks the format's rules."""
    return DataError(f"{path} is not a sound safetensors file: {how}.", **rows)


def read_header(file, path):
    """The Entries of a file in the order of their bytes; the file then stands at the first leaf."""
    size = os.fstat(file.fileno()).st_size
    if size < 8:
        raise damaged(path, "it is cut off", given=f"{size} bytes", expected="8 bytes or more")
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, MAX_HEADER):
        raise damaged(path, "the header is longer than the file, or than the format allows",
                      given=f"{length} bytes of header in a file of {size}",
                      expected=f"at most {min(size - 8, MAX_HEADER)}",
                      fix="fetch the file again, or check that it is a safetensors file")
    header = parse(path, file.read(length))
    header.pop("__metadata__", None)
    entries = [entry(path, name, row) for name, row in header.items()]
    entries.sort(key=lambda e: (e.start, e.stop))
    check_places(path, entries, size - 8 - length)
    return entries


def parse(path, data):
    """The header's JSON object."""
    def distinct(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name stands twice")
        return dict(pairs)

    try:
        header = json.loads(data.decode("utf-8"), object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"the header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise damaged(path, "the header is not a JSON object", given=type(header).__name__)
    return header


def entry(path, name, row):
    """The checked Entry of one row of the header."""
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        raise damaged(path, f"the row of {name!r} lacks a part", given=str(row)[:200],
                      expected="dtype, shape, data_offsets")
    if not isinstance(row["dtype"], str) or row["dtype"] not in DTYPES:
        raise DataError(f"{path} has a leaf of a dtype that is not supported.",
                        given=f"{name}: {row['dtype']!r}", expected=", ".join(DTYPES))
    dtype, shape = DTYPES[row["dtype"]], sizes(path, name, row["shape"])
    places = sizes(path, name, row["data_offsets"])
    if len(shape) > MAX_AXES or prod(max(n, 1) for n in shape) >= 2**60:
        raise damaged(path, f"{name!r} has a shape that no array has", given=str(shape)[:200])
    nbytes = dtype.itemsize * prod(shape)
    if len(places) != 2 or places[1] - places[0] != nbytes:
        raise damaged(path, f"the place of {name!r} does not fit its shape",
                      given=f"bytes {list(places)}",
                      expected=f"{nbytes} bytes for {text((row['dtype'], shape))}")
    return Entry(name, dtype, shape, *places)


def sizes(path, name, values):
    """A JSON list of sizes, in elements or bytes, as a tuple."""
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 2**63 for v in values):
        raise damaged(path, f"the row of {name!r} has sizes that are none", given=str(values)[:200],
                      expected="a list of whole numbers")
    return tuple(values)


def check_places(path, entries, room):
    """Raises DataError unless the leaves fill the file from its first to its last byte."""
    end = 0
    for e in entries:
        if e.start != end:
            how = "overlaps the leaf before it" if e.start < end else "leaves a gap before it"
            raise damaged(path, f"{e.name!r} {how}", given=f"bytes {[e.start, e.stop]}",
                          expected=f"a start at {end}")
        end = e.stop
    if end != room:
        raise damaged(path, "it is cut off" if end > room else "it goes on behind its last leaf",
                      given=f"{room} bytes of elements", expected=f"{end}")
