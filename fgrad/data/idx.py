"""The IDX reader: arrays in the file format of MNIST, plain or packed with gzip.

An IDX file is two zero bytes, a byte for the element type, a byte for the number of axes, one
big-endian 32-bit size per axis, then the elements, big-endian, last axis fastest
(http://yann.lecun.com/exdb/mnist).  Nothing in a file is believed before it is checked: memory is
taken as bytes arrive, never because a header asks for it.  Relied on by `mnist.py` and `cifar.py`.
"""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass
from math import prod

import numpy as np

from ..errors import DataError, bound
from ..io.files import open_file

DTYPES = {
    0x08: np.dtype("u1"),
    0x09: np.dtype("i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}

LOOKS = (                  # how files of other kinds begin
    (b"\x1f\x8b",           "gzip data (packed twice?)"),
    (b"\x89PNG",            "a PNG image"),
    (b"\xff\xd8\xff",       "a JPEG image"),
    (b"GIF8",               "a GIF image"),
    (b"PK\x03\x04",         "a zip archive"),
    (b"BZh",                "bzip2 data"),
    (b"\xfd7zXZ",           "xz data"),
    (b"\x28\xb5\x2f\xfd",   "zstandard data"),
    (b"%PDF",               "a PDF document"),
    (b"\x93NUMPY",          "a NumPy file"),
    (b"\x80\x02",           "a Python pickle"),
    (b"\x80\x03",           "a Python pickle"),
    (b"\x80\x04",           "a Python pickle"),
    (b"\x80\x05",           "a Python pickle"),
    (b"version https://git-lfs", "a Git LFS pointer: the file itself was never fetched"),
    (b"<!doctype html",     "an HTML page, as servers send in place of a missing file"),
    (b"<html",              "an HTML page, as servers send in place of a missing file"),
)

MAX_AXES = 32              # NumPy 1 has no more
MAX_PACKED = 1032          # deflate packs at most 1032 bytes into one
CHUNK = 1 << 20            # bytes read at once


@dataclass(frozen=True)
class Header:
    """What an IDX file says it holds; `start` is its own length in bytes."""
    dtype: np.dtype
    shape: tuple
    start: int

    @property
    def nbytes(self):
        """Bytes of the elements."""
        return self.dtype.itemsize * prod(self.shape)

    def __str__(self):
        sizes = ",".join(map(str, self.shape))
        return f"{self.dtype.name}[{sizes}], {self.nbytes} bytes of elements"


def read(path):
    """The array in an IDX file, in the machine's byte order; gzip is seen from the content.

    u8, i8, i16, i32, f32 or f64, of any shape; the array is writable and owned by the caller.
    Raises MissingFileError, and DataError for a file that is empty, of another kind, cut off, too
    long, corrupt, or whose header asks for more elements than it can hold.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    ...     read(path)
    array([7, 2, 1], dtype=uint8)
    """
    return unpacked(path, lambda stream, limit: read_array(stream, path, limit))


def unpacked(path, take):
    """take(stream, limit) of a file, unpacked where it is packed; it gives at most `limit` bytes.

    Raises MissingFileError, and DataError for a folder or a damaged gzip file.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        try:
            if packed:
                with gzip.GzipFile(fileobj=file) as stream:
                    return take(stream, MAX_PACKED * size)
            return take(file, size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{path} is a damaged gzip file: {error}.", given=f"{size} bytes",
                            fix="fetch the file again") from error


def read_array(stream, path, limit):
    """The array in a stream that can give at most `limit` bytes."""
    header = read_header(stream, path)
    check_room(header, path, limit)
    data = read_at_most(stream, header.nbytes + 1)
    if len(data) < header.nbytes:
        raise DataError(f"{path} is cut off.", given=f"{len(data)} bytes of elements",
                        expected=str(header), fix="fetch the file again")
    if len(data) > header.nbytes:
        raise DataError(f"{path} goes on behind its last element.",
                        given=f"more than {header.nbytes} bytes of elements", expected=str(header),
                        fix="fetch the file again, or check who wrote its header")
    array = np.frombuffer(data, header.dtype).reshape(header.shape)
    return array.astype(header.dtype.newbyteorder("="), copy=False)


def read_header(stream, path):
    """The Header at the beginning of a stream."""
    first = stream.read(4)
    if not first:
        raise DataError(f"{path} is empty.", expected="an IDX file", fix="fetch the file again")
    if len(first) < 4 or first[:2] != b"\0\0" or first[2] not in DTYPES:
        raise foreign(path, first + stream.read(60))
    dtype, axes = DTYPES[first[2]], first[3]
    if axes > MAX_AXES:
        raise DataError(f"{path} says that it has {axes} axes.", expected=f"at most {MAX_AXES}",
                        fix="check who wrote its header")
    sizes = stream.read(4 * axes)
    if len(sizes) < 4 * axes:
        raise DataError(f"{path} is cut off in its header.", given=f"{4 + len(sizes)} bytes",
                        expected=f"{4 + 4 * axes} bytes of header for {axes} axes",
                        fix="fetch the file again")
    return Header(dtype, tuple(np.frombuffer(sizes, ">u4").tolist()), 4 + len(sizes))


def check_room(header, path, limit):
    """Raises DataError when the elements cannot lie in `limit` bytes, or in any memory."""
    if header.start + header.nbytes > limit:
        raise DataError(f"{path} is too small for what its header asks for.",
                        given=f"room for at most {max(limit - header.start, 0)} bytes of elements",
                        expected=str(header),
                        fix="fetch the file again: it is cut off, or its header is wrong")
    if header.dtype.itemsize * prod(max(n, 1) for n in header.shape) >= 2**63:
        raise DataError(f"{path} has a shape that no array can have.", given=str(header),
                        fix="check who wrote its header")


def read_at_most(stream, n):
    """Up to n bytes; memory grows with what arrives."""
    data = bytearray()
    while len(data) < n:
        part = stream.read(min(CHUNK, n - len(data)))
        if not part:
            break
        data += part
    return data


def foreign(path, start):
    """The error for a file that is no IDX file, saying what it looks like."""
    return DataError(f"{path} is not an IDX file.", given=look(start),
                     expected="00 00, an element type (08 09 0b 0c 0d 0e), the number of axes",
                     fix="give an IDX file, plain or packed with gzip")


def look(start):
    """In words, what a file with these first bytes seems to be.

    >>> look(b"<!DOCTYPE html><title>404")
    'an HTML page, as servers send in place of a missing file'
    >>> look(bytes([0, 0, 3, 8]))
    'bytes 00 00 03 08'
    """
    bare = start.lstrip().lower()
    for signature, name in LOOKS:
        if start.startswith(signature) or bare.startswith(signature):
            return name
    if len(start) >= 8 and all(32 <= b < 127 or b in b"\t\r\n" for b in start):
        return f"text: {start[:40].decode('ascii')!r}"
    return "bytes " + start[:8].hex(" ")


bound(globals())
