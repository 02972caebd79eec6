"""Opening files, and writing them whole or not at all.

Relies on the standard library only; every format here and in `fgrad.data` relies on it.
"""

from __future__ import annotations

import os
import secrets

from ..errors import ArgumentError, DataError, FileError, MissingFileError

WRITERS = {                # suffix that tells a format → what writes it here
    ".safetensors": "io.save(path, tree)", ".npz": "io.save_npz(path, tree)",
    ".png": "viz.save_png(path, pixels)", ".svg": "viz.Plot.save(path)",
    **dict.fromkeys([".npy", ".pt", ".pth", ".pkl", ".pickle", ".h5", ".hdf5", ".onnx", ".jpg",
                     ".jpeg", ".gif", ".pdf"])}


def check_suffix(path, own):
    """Raises ArgumentError where the name of a file tells another format than that of `own`."""
    stem, suffix = os.path.splitext(os.fspath(path))
    if suffix.lower() not in {*WRITERS} - {own}:
        return
    writer = WRITERS[suffix.lower()]
    raise ArgumentError(f"the name {os.path.basename(path)} tells another format than the file "
                        f"would have, which is that of {own}.", given=f"path: {path}",
                        fix=[f"{stem}{own}", *([f"or {writer}"] if writer else [])])


def open_file(path):
    """The file, open for reading bytes.

    Raises MissingFileError, DataError for a folder, and FileError for one that may not be read.
    """
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder, not a file.", fix="give the path of one file in it")
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise MissingFileError(f"{path} does not exist.", given=f"working folder {os.getcwd()}",
                               fix="check the path") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from None


def write_whole(path, parts):
    """Writes a file from parts of bytes; a failure at any moment leaves what was there before.

    The parts go to a new file in the same folder, which reaches the disk and then takes the name;
    a process killed in between leaves that file, `.name.*.new`, which nothing reads.
    Raises MissingFileError when the folder does not exist, FileError when it may not be written in,
    is full, or holds a folder of that name.
    """
    whole = os.path.realpath(path)
    folder, name = os.path.split(whole)
    if not os.path.isdir(folder):
        raise MissingFileError(f"the folder {folder} does not exist.", given=f"file name {name}",
                               fix="make the folder first")
    if os.path.isdir(whole):
        raise FileError(f"{path} is a folder, not a file.", fix="give the path of a file in it")
    try:
        replace(whole, folder, name, parts)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.",
                        fix="choose another folder") from None


def replace(path, folder, name, parts):
    """The file of that path, made anew from parts of bytes."""
    new = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.new")
    try:
        with open(new, "xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        sync_folder(folder)
    except BaseException:
        if os.path.exists(new):
            os.remove(new)
        raise


def sync_folder(folder):
    """Makes a new name in a folder outlive a power cut, where the system can sync a folder."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
