"""The reader for CIFAR-10's binary files, plain or packed with gzip.

A file is records of 3,073 bytes: one byte label, then 1,024 red, 1,024 green and 1,024 blue bytes,
each plane 32×32 row by row (https://www.cs.toronto.edu/~kriz/cifar.html).  Relies on `idx.py` for
unpacking.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from ..errors import DataError, MissingFileError, bound
from . import idx
from .mnist import contents
from .split import Split

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
RECORD = 1 + 3 * 32 * 32   # bytes
TRAIN = re.compile(r"data_batch_(\d+)\.bin(\.gz)?")
TEST = re.compile(r"test_batch.*\.bin(\.gz)?")


def read(path):
    """(images u8[n,32,32,3], labels u8[n]) of one binary file; gzip is seen from the content.

    Raises MissingFileError, and DataError for a file that is empty, cut off, corrupt, or has labels
    other than 0 … 9, as files of another kind do.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "data_batch_1.bin")
    ...     _ = path.write_bytes(bytes([7]) + bytes(3072))
    ...     images, labels = read(path)
    >>> images.shape, CLASSES[labels[0]]
    ((1, 32, 32, 3), 'horse')
    """
    data = idx.unpacked(path, lambda stream, limit: idx.read_at_most(stream, limit + 1))
    if not data:
        raise DataError(f"{path} is empty.", expected=f"records of {RECORD} bytes",
                        fix="fetch the file again")
    records, over = divmod(len(data), RECORD)
    strange = bytes(data[:records * RECORD:RECORD]).strip(bytes(range(len(CLASSES))))
    if strange or not records:
        raise DataError(f"{path} is not a CIFAR-10 binary file.", given=idx.look(bytes(data[:64])),
                        expected=f"records of {RECORD} bytes that begin with a label 0 … 9",
                        fix="give data_batch_1.bin or the like, of the binary version")
    if over:
        raise DataError(f"{path} is cut off.", given=f"{records} records and {over} bytes",
                        expected=f"whole records of {RECORD} bytes", fix="fetch the file again")
    rows = np.frombuffer(data, np.uint8).reshape(records, RECORD)
    images = rows[:, 1:].reshape(records, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), rows[:, 0].copy()


def load(folder, name="CIFAR-10"):
    """The Split of the files data_batch_*.bin and test_batch*.bin in a folder, each plain or .gz.

    train_images u8[n,32,32,3], train_labels u8[n], and likewise for testing.
    Raises MissingFileError when there is none of either kind, and what `read` raises.

    >>> load("no/such/folder")                                   # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fgrad.MissingFileError: no/such/folder does not hold data_batch_*.bin...
    """
    names = os.listdir(folder) if os.path.isdir(folder) else []
    parts = []
    for pattern, text in ((TRAIN, "data_batch_*.bin"), (TEST, "test_batch*.bin")):
        found = sorted(n for n in names if pattern.fullmatch(n))
        plain = [n for n in found                                    # each file once
                 if not (n.endswith(".gz") and n[:-3] in found)]
        if not plain:
            raise MissingFileError(f"{folder} does not hold {text}.", given=contents(folder),
                                   expected="data_batch_1.bin …, test_batch.bin, each plain or .gz",
                                   fix="give the folder of the binary version")
        pairs = [read(Path(folder, n)) for n in plain]
        parts += [np.concatenate(column) for column in zip(*pairs)]
    return Split(name, *parts)


bound(globals())
