"""MNIST: the four IDX files in a folder, and a checked download of them.

Nothing is fetched unless `download` is called, and nothing fetched is kept unless its SHA-256 is
that of the published file.  Any data set in MNIST's layout (Fashion-MNIST, KMNIST) loads as well.
Relies on `idx.py` for reading and on `io/files.py` for whole-or-nothing writing.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from pathlib import Path

from ..errors import DownloadError, MissingFileError, bound
from ..io.files import write_whole
from . import idx
from .split import Split

FILES = {                  # part → name; found with and without .gz, with "-" or "." before "idx"
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images":  "t10k-images-idx3-ubyte",
    "test_labels":  "t10k-labels-idx1-ubyte",
}

PUBLISHED = {              # name → (bytes, SHA-256)
    "train-images-idx3-ubyte.gz":
        (9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    "train-labels-idx1-ubyte.gz":
        (28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    "t10k-images-idx3-ubyte.gz":
        (1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    "t10k-labels-idx1-ubyte.gz":
        (4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
}

MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
)

TIMEOUT = 20               # seconds without a byte


def load(folder, name="MNIST"):
    """The Split in a folder that holds the four IDX files, each packed with gzip or plain.

    For MNIST: train_images u8[60000,28,28], train_labels u8[60000], test_images u8[10000,28,28],
    test_labels u8[10000].
    Raises MissingFileError, naming the files expected and found, and DataError for a file that does
    not hold what it should.

    >>> load("no/such/folder")                                   # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    fgrad.MissingFileError: no/such/folder does not hold train-images-idx3-ubyte, ...
    """
    paths = {part: find(folder, file) for part, file in FILES.items()}
    missing = [FILES[part] for part, path in paths.items() if path is None]
    if missing:
        raise MissingFileError(f"{folder} does not hold {', '.join(missing)}.",
                               given=contents(folder),
                               expected=[f"{file} (or {file}.gz)" for file in FILES.values()],
                               fix="give the folder that holds the four files, or download them")
    return Split(name, **{part: idx.read(path) for part, path in paths.items()})


def find(folder, file):
    """The path of a file of this name, as it may be spelt, or None."""
    for spelling in (file, file.replace("-idx", ".idx")):
        for ending in (".gz", ""):
            path = Path(folder, spelling + ending)
            if path.is_file():
                return path
    return None


def contents(folder):
    """In words, what is in a folder: its first ten names."""
    if not os.path.isdir(folder):
        return f"{folder} is no folder (working folder {os.getcwd()})"
    names = sorted(os.listdir(folder))
    if not names:
        return "an empty folder"
    return "a folder with " + ", ".join(names[:10]) + (", …" if len(names) > 10 else "")


# ---------------------------------------------------------------------------- download

def download(folder=None, *, report=None):
    """The folder, after the four files of MNIST have been fetched into it (11.6 MB).

    folder: None is `cache_folder()`.  Files that are there and have the right SHA-256 are kept.
    report: called with one line of text per file fetched.
    Raises DownloadError, saying what every mirror answered, when a file cannot be had.
    """
    folder = Path(cache_folder() if folder is None else folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (size, sha256) in PUBLISHED.items():
        path = folder / name
        if not (path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256):
            if report is not None:
                report(f"fetching {name} ({size / 1e6:.2f} MB)")
            write_whole(path, [fetch(name, size, sha256)])
    return folder


def cache_folder():
    """Where downloads are kept: fgrad/mnist in XDG_CACHE_HOME, or in ~/.cache."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "fgrad", "mnist")


def fetch(name, size, sha256):
    """The bytes of a published file, from the first mirror that has them."""
    answers = []
    for mirror in MIRRORS:
        try:
            data = get(mirror + name, size)
        except (OSError, http.client.HTTPException) as error:  # URLError and timeouts are OSErrors
            answers.append(f"{mirror + name}: {error or type(error).__name__}")
            continue
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
        answers.append(f"{mirror + name}: {wrong(data, size)}")
    raise DownloadError(f"{name} could not be fetched.", given=answers,
                        expected=f"{size} bytes with SHA-256 {sha256}",
                        fix=["check the network and its proxy",
                             "or fetch the four files by hand and load their folder"])


def get(url, size):
    """What a URL answers, at most one byte more than `size`."""
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        return bytes(idx.read_at_most(answer, size + 1))


def wrong(data, size):
    """In words, why these bytes are not the file."""
    if len(data) == size:
        return "the right size, but another SHA-256"
    length = f"{len(data)} bytes" if len(data) < size else f"more than {size} bytes"
    return f"{length}, {idx.look(data[:60])}"


bound(globals())
