"""Pytrees in .npz files, NumPy's zip of .npy files: for exchange with programs that read NumPy's.

Leaves have the names they have in safetensors files.  Headers are checked against the sizes in the
zip before memory is taken, and nothing is ever unpickled.  Relies on `leaves.py` and `files.py`.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from math import prod

import numpy as np

from ..bf16 import BF16
from ..errors import ArgumentError, DataError
from .files import check_suffix, open_file, write_whole
from .leaves import MAX_AXES, NAMES, check_fits, fitted, named_arrays, nested

MAX_PACKED = 1032          # deflate packs at most 1032 bytes into one
NPY_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0,
               (2, 0): np.lib.format.read_array_header_2_0}


def save_npz(path, tree, *, compress=False):
    """Writes the leaves of a pytree to an .npz file, whole, or leaves it as it was.

    Leaves and their names are those of `save`: `layers/0/w`.  compress: deflate them.
    Raises ArgumentError for a leaf that is no array of numbers or bools, and for a path that tells
    another format; MissingFileError when the folder does not exist, FileError when the file cannot
    be written.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "params.npz")
    ...     save_npz(path, {"dense": {"w": np.ones((2, 3), np.float32)}})
    ...     np.load(path)["dense/w"].shape
    (2, 3)
    """
    check_suffix(path, ".npz")
    packed = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, a in named_arrays(tree).items():
            if a.dtype is BF16:
                raise ArgumentError(f"the leaf {name!r} cannot be saved: NumPy has no bfloat16.",
                                    given=str(a.type),
                                    fix=["fgrad.io.save writes safetensors, which have it",
                                         "astype(\"float32\") loses nothing"])
            with archive.open(name + ".npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(a), allow_pickle=False)
    write_whole(path, [packed.getbuffer()])


def load_npz(path, like=None):
    """The pytree in an .npz file, with NumPy arrays for leaves.

    As `load` does: nested dicts by the "/" in names, or, with `like`, its structure.
    Raises MissingFileError; DataError for a file that is empty, no zip, damaged, or holds anything
    but arrays of numbers and bools, and for one that does not fit `like`.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "params.npz")
    ...     save_npz(path, [np.zeros(2), 0.5])
    ...     load_npz(path, like=[np.empty(2), 0.0])
    [array([0., 0.]), 0.5]
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                arrays = read_members(archive, path, size)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise damaged(path, str(error) or "it is cut off", given=f"{size} bytes",
                          expected="a zip of .npy files", fix="fetch or write it again") from None
    if like is None:
        return nested(path, arrays)
    check_fits(path, {name: (NAMES[a.dtype], a.shape) for name, a in arrays.items()}, like)
    return fitted(arrays, like)


def damaged(path, how, **rows):
    """The error for a file that is no sound .npz file."""
    return DataError(f"{path} is not a sound npz file: {how.rstrip('.')}.", **rows)


def read_members(archive, path, size):
    """The arrays in a zip file of `size` bytes, by name without .npy."""
    arrays = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in arrays:
            raise damaged(path, f"{member.filename!r} is no array, or is there twice")
        known = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if member.flag_bits & 1 or not known:
            raise damaged(path, f"{member.filename!r} is encrypted, or packed in an unknown way",
                          expected="members stored or deflated")
        if member.file_size > MAX_PACKED * min(member.compress_size, size):
            raise damaged(path, f"{member.filename!r} is said to be larger than it can be",
                          given=f"{member.file_size} bytes out of {member.compress_size}")
        with archive.open(member) as file:
            arrays[name] = read_npy(file, path, member)
    return arrays


def read_npy(file, path, member):
    """The array in one member, in the machine's byte order."""
    try:
        header = NPY_HEADERS[np.lib.format.read_magic(file)]
        shape, by_column, dtype = header(file)
    except (ValueError, KeyError) as error:
        raise damaged(path, f"{member.filename!r} is no .npy file", given=str(error)[:200],
                      expected="format 1.0 or 2.0") from None
    native = dtype.newbyteorder("=")
    if native not in NAMES:
        raise DataError(f"{path} has a leaf of a dtype that is not supported.",
                        given=f"{member.filename}: {dtype}", expected=", ".join(map(str, NAMES)))
    room = member.file_size - file.tell()
    if len(shape) > MAX_AXES or min(shape, default=0) < 0 or dtype.itemsize * prod(shape) != room:
        raise damaged(path, f"the header of {member.filename!r} does not fit its size",
                      given=f"shape {str(shape)[:200]} of {dtype}", expected=f"{room} bytes")
    raw = np.frombuffer(bytearray(file.read()), dtype)
    return raw.astype(native, copy=False).reshape(shape, order="F" if by_column else "C")
