"""Opening files, and writing them whole or not at all.

Relies on the standard library only; every format here and in `fgrad.data` relies on it.
"""

from __future__ import annotations

import os
import secrets

from ..errors import DataError, MissingFileError


def open_file(path):
    """The file, open for reading bytes.  Raises MissingFileError and, for a folder, DataError."""
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder, not a file.", fix="give the path of one file in it")
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise MissingFileError(f"{path} does not exist.", given=f"working folder {os.getcwd()}",
                               fix="check the path") from None


def write_whole(path, parts):
    """Writes a file from parts of bytes; a failure at any moment leaves what was there before.

    The parts go to a new file in the same folder, which reaches the disk and then takes the name;
    a process killed in between leaves that file, `.name.*.new`, which nothing reads.
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
