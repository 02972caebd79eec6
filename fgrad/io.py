"""Saving and loading of pytrees as safetensors files: no pickle, whole or not at all, all checked.

The format (https://github.com/huggingface/safetensors): eight little-endian bytes, the length of
the header; the header, JSON padded with spaces, name → dtype, shape and place; then the elements,
little-endian, without gaps.  Larger element types come first, so every leaf is aligned.  Relies on
`tree.py` for names and structures; `data/mnist.py` relies on its whole-or-nothing writing.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from math import prod

import numpy as np

from . import tree as pytree
from .errors import ArgumentError, DataError, MissingFileError
from .types import SCALARS, SHORT, default_float, default_int

NAMES = {dtype: short.upper() for dtype, short in SHORT.items()}       # F32, I64, BOOL, …
DTYPES = {name: dtype for dtype, name in NAMES.items()}
MAX_HEADER = 100_000_000   # bytes; the format's own limit
ALIGNMENT = 8              # bytes
MAX_AXES = 32              # NumPy 1 has no more


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

    Leaves are arrays of bool, integers, f16, f32 or f64, or Python numbers, which become 0-d arrays
    of the default dtypes (i32, f32).  Their names are their paths: `layers/0/w`.
    Raises ArgumentError for a leaf of another kind, and for two leaves with one name;
    MissingFileError when the folder does not exist.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "params.safetensors")
    ...     save(path, {"dense": {"w": np.ones((2, 3), np.float32)}, "steps": 7})
    ...     load(path)["dense"]["w"].shape, load(path)["steps"]
    ((2, 3), array(7, dtype=int32))
    """
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


def named_arrays(tree):
    """The leaves as NumPy arrays, by name."""
    out = {}
    for path, leaf in pytree.flatten_with_path(tree)[0]:
        name = name_of(path)
        if name in out or name == "__metadata__":
            where = pytree.path_text("tree", path)
            raise ArgumentError(f"the name {name!r} cannot be given to {where}.",
                                given="another leaf with this name" if name in out
                                else "a name of the format's own", fix="rename the key")
        out[name] = as_array(leaf, path)
    return out


def name_of(path):
    """The name of a leaf in the file: the keys of its path.

    >>> name_of(("layers", 0, ".w"))
    'layers/0/w'
    """
    for key in path:
        if not isinstance(key, (str, int)):
            raise ArgumentError(f"a key of type {type(key).__name__} has no name in a file.",
                                given=pytree.path_text("tree", path), expected="str and int keys")
    return "/".join(str(key).removeprefix(".") for key in path)


def as_array(leaf, path):
    """A leaf as a NumPy array of a dtype that the format has."""
    try:
        a = np.asarray(leaf, number_dtype(leaf))
    except OverflowError:
        raise ArgumentError(f"{pytree.path_text('tree', path)} is too large for {default_int()}.",
                            given=str(leaf), fix="np.int64(…) around it") from None
    if a.dtype.newbyteorder("=") not in NAMES:
        raise ArgumentError(f"{pytree.path_text('tree', path)} cannot be saved.",
                            given=f"a {type(leaf).__name__} of dtype {a.dtype}",
                            expected="bool, integers, float16, float32 or float64")
    return a


def number_dtype(leaf):
    """The dtype in which a Python number is stored; None for anything else."""
    if type(leaf) not in SCALARS:
        return None
    return {bool: np.dtype(bool), int: default_int(), float: default_float()}[type(leaf)]


def little_endian(a):
    """The elements as bytes, row by row, little-endian; no copy where none is needed."""
    return np.ascontiguousarray(a, a.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data


def write_whole(path, parts):
    """Writes a file from parts of bytes; a failure at any moment leaves what was there before.

    The parts go to a new file in the same folder, which reaches the disk and then takes the name.
    Raises MissingFileError when the folder does not exist.
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise MissingFileError(f"the folder {folder} does not exist.", given=f"file name {name}",
                               fix="make the folder first")
    new = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.new")
    try:
        with open(new, "xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        if os.path.exists(new):
            os.remove(new)
        raise


# ---------------------------------------------------------------------------- load

def load(path, like=None):
    """The pytree in a safetensors file, with NumPy arrays for leaves.

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
    try:
        file = open(path, "rb")
    except FileNotFoundError:
        raise MissingFileError(f"{path} does not exist.", given=f"working folder {os.getcwd()}",
                               fix="check the path") from None
    with file:
        entries = read_header(file, path)
        if like is not None:
            pairs, structure = pytree.flatten_with_path(like)
            check_fits(path, entries, {name_of(p): leaf for p, leaf in pairs})
        arrays = {e.name: read_leaf(file, path, e) for e in entries}
    if like is None:
        return nested(path, arrays)
    return pytree.unflatten(structure, [as_like(arrays[name_of(p)], leaf) for p, leaf in pairs])


def read_leaf(file, path, entry):
    """The elements of one leaf; the file stands at their first byte."""
    data = bytearray(entry.stop - entry.start)
    if file.readinto(data) != len(data):
        raise DataError(f"{path} was changed while it was read.", given=f"leaf {entry.name!r}")
    raw = np.frombuffer(data, entry.dtype.newbyteorder("<")) if data else np.empty(0, entry.dtype)
    if entry.dtype == bool and raw.view(np.uint8).max(initial=0) > 1:
        raise damaged(path, f"the leaf {entry.name!r} holds bools other than 0 and 1")
    return raw.astype(entry.dtype, copy=False).reshape(entry.shape)


def nested(path, arrays):
    """Nested dicts, from names split at "/"; the array itself when its name is empty."""
    if list(arrays) == [""]:
        return arrays[""]
    out = {}
    for name, a in arrays.items():
        *outer, last = name.split("/")
        at = out
        for key in outer:
            at = at.setdefault(key, {})
            if not isinstance(at, dict):
                break
        if not isinstance(at, dict) or last in at:
            raise DataError(f"{path} has a leaf {name!r} in the place of another one.",
                            fix="load with like=, which does not split names")
        at[last] = a
    return out


def as_like(a, leaf):
    """The array, or a Python number where `leaf` is one."""
    return a.item() if type(leaf) in SCALARS else a


def check_fits(path, entries, leaves):
    """Raises DataError unless the file holds just these leaves, by name, shape and dtype."""
    found = {e.name: (NAMES[e.dtype], e.shape) for e in entries}
    wanted = {name: kind_of(leaf) for name, leaf in leaves.items()}
    missing = [f"missing   {name}: {text(k)}" for name, k in wanted.items() if name not in found]
    extra = [f"extra     {name}: {text(k)}" for name, k in found.items() if name not in wanted]
    unlike = [f"different {name}: {text(found[name])}, like has {text(k)}"
              for name, k in wanted.items() if name in found and found[name] != k]
    problems = missing + extra + unlike
    if problems:
        raise DataError(f"{path} does not fit `like`: {len(missing)} leaves are missing, "
                        f"{len(extra)} extra, {len(unlike)} different.",
                        given=shortened(problems, 20),
                        fix="build `like` with the configuration that was saved")


def shortened(lines, n):
    """The first n lines, and how many more there are."""
    return lines if len(lines) <= n else [*lines[:n], f"… and {len(lines) - n} more"]


def kind_of(leaf):
    """(dtype, shape) of a leaf of `like`."""
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        dtype = np.dtype(leaf.dtype)
        return NAMES.get(dtype, str(dtype)), tuple(leaf.shape)
    if type(leaf) in SCALARS:
        return NAMES[number_dtype(leaf)], ()
    a = np.asarray(leaf)
    return NAMES.get(a.dtype, str(a.dtype)), a.shape


def text(kind):
    """A (dtype, shape) pair as f32[8,3]."""
    return f"{kind[0].lower()}[{','.join(map(str, kind[1]))}]"


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
