"""The disk cache: bytes under a key, kept between processes.

Compiled objects are machine code, so the folder must belong to the user and be writable by nobody
else; any other folder is ignored with a notice.  An entry is a header (magic, format, length,
BLAKE2) and the bytes; it is written to a temporary file and renamed, so that many processes may
share a folder and a reader never sees half an entry.  An entry that does not verify is removed and
counts as missing.  A cache that cannot be written costs time, not a result.  Relies on `config.py`
for FGRAD_CACHE and FGRAD_CACHE_MB; the backends and `python -m fgrad cache` rely on it.
"""

from __future__ import annotations

import functools
import importlib
import os
import struct
import threading
import time
from contextlib import suppress

from .. import config
from ..errors import notice

MAGIC = b"fgrad\x00cc"
FORMAT = 2
HEADER = struct.Struct("<8sQQ32s")               # magic, format, bytes that follow, their digest
SUFFIX = ".entry"
TOUCH = 3600                                     # seconds between two marks of use of an entry
STALE = 3600                                     # seconds after which a temporary file is an orphan
TRIM_EVERY = 64                                  # writes between two looks at the folder's size
ELSEWHERE = {"data", "io", "nn", "numpy", "optim", "scipy", "train",     # they make Programs only
             "__pycache__"}
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def blake2():
    """BLAKE2b of 32 bytes, as Python has it without `hashlib`, whose OpenSSL takes longer to load
    than all that is hashed.
    """
    for module in ("_blake2", "hashlib"):                    # in CPython, anywhere
        with suppress(ImportError):
            return functools.partial(importlib.import_module(module).blake2b, digest_size=32)


digest_of = blake2()


def key(*parts):
    """The hexadecimal name of what these parts, strings, bytes or numbers, determine together.

    What is stored must be a function of the parts alone: pass the text that was compiled, the
    options, and `host.IDENTITY`; where the parts do not hold the generated text, `sources()` too.

    >>> key("ab", "c") != key("a", "bc")
    True
    """
    digest = digest_of()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:40]


@functools.cache
def sources():
    """A fingerprint of fgrad's own files (path, size, time of change): it stands for the version.

    A change of the code that generates text makes another fingerprint, with or without a release.
    What only makes Programs is left out: the text of a Program is part of keys itself.
    """
    rows, folders = [], [PACKAGE]
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as found:   # what may vanish meanwhile
            for item in found:
                if item.name.endswith(".py"):
                    at = item.stat()
                    rows.append((item.path[len(PACKAGE):], at.st_size, at.st_mtime_ns))
                elif "." not in item.name and item.name not in ELSEWHERE and item.is_dir():
                    folders.append(item.path)
    return key(repr(sorted(rows)))


class Entry:
    """One stored value: its key, its bytes on disk, and when it was last used (seconds)."""

    def __init__(self, key, size, used):
        self.key, self.size, self.used = key, size, used


class DiskCache:
    """Bytes under keys in `folder`, at most `megabytes` of them; folder None stores nothing.

    It is safe for threads and processes.  Its mutable state is the count of writes and whether the
    folder has been found private; both may be wrong by a race without harm.
    """

    def __init__(self, folder, megabytes=512):
        self.folder = None if folder is None else os.path.abspath(os.path.expanduser(folder))
        self.limit = int(megabytes * 1e6)        # bytes
        self.writes = 0
        self.private = None                      # unknown until the folder exists

    def get(self, key):
        """The bytes stored under key, or None."""
        if not self.usable():
            return None
        path = self.path(key)
        try:
            with open(path, "rb") as file:
                content = file.read()
                used = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        data = verified(content)
        with suppress(OSError):
            if data is None:
                os.unlink(path)
            elif time.time() - used > TOUCH:
                os.utime(path)
        return data

    def put(self, key, data):
        """Stores the bytes under key, if the disk allows it."""
        if self.folder is None:
            return
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if self.usable():
                write_whole(self.path(key), sealed(data))
                self.trim_sometimes()
        except OSError as error:
            notice(("cache unwritable", self.folder), "compiled code is not kept: the cache folder "
                   f"{self.folder} cannot be written ({error.strerror or error}).", where=None)

    def entries(self):
        """What is stored, the least recently used first."""
        found = []
        for item in self.files(SUFFIX):
            with suppress(OSError):
                status = item.stat()
                found.append(Entry(item.name[:-len(SUFFIX)], status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: entry.used)

    @property
    def size(self):
        """Bytes on disk."""
        return sum(entry.size for entry in self.entries())

    def clear(self):
        """Removes everything that is stored."""
        for entry in self.entries():
            self.remove(entry)

    def trim(self):
        """Removes entries, the least recently used first, until a fifth of the limit is free."""
        entries = self.entries()
        size = sum(entry.size for entry in entries)
        if size > self.limit:
            for entry in entries:
                if size <= 0.8 * self.limit:
                    break
                self.remove(entry)
                size -= entry.size
        for item in self.files(".part"):
            with suppress(OSError):
                if time.time() - item.stat().st_mtime > STALE:
                    os.unlink(item.path)

    def trim_sometimes(self):
        if self.writes % TRIM_EVERY == 0:
            self.trim()
        self.writes += 1

    def remove(self, entry):
        with suppress(OSError):
            os.unlink(self.path(entry.key))

    def path(self, key):
        return os.path.join(self.folder, key + SUFFIX)

    def files(self, suffix):
        if not self.usable():
            return []
        try:
            with os.scandir(self.folder) as found:
                return [item for item in found if item.name.endswith(suffix)]
        except OSError:
            return []

    def usable(self):
        """Is there a folder, and is it the user's alone?"""
        if self.private is None and self.folder is not None:
            self.private = private(self.folder)
            if self.private is False:
                notice(("cache not private", self.folder), "compiled code is not kept: the cache "
                       f"folder {self.folder} belongs to another user or others may write to it "
                       "(chmod 700, or another folder in FGRAD_CACHE).", where=None)
        return self.private is True


def private(folder):
    """Is the folder the user's, and writable by nobody else?  None where there is no folder yet."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    if not hasattr(os, "getuid"):
        return True                              # Windows: folders of a profile are private
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def sealed(data):
    """The content of an entry: header and data."""
    return HEADER.pack(MAGIC, FORMAT, len(data), digest_of(data).digest()) + data


def verified(content):
    """The data of an entry's content, or None where the content is not an intact entry."""
    if len(content) < HEADER.size:
        return None
    magic, format, length, digest = HEADER.unpack_from(content)
    data = content[HEADER.size:]
    intact = (magic == MAGIC and format == FORMAT and length == len(data)
              and digest == digest_of(data).digest())
    return data if intact else None


def write_whole(path, content):
    """Writes the file so that readers see the old content or the new, never a part."""
    part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"      # of this thread alone
    try:
        with open(part, "wb", opener=for_the_user) as file:
            file.write(content)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def for_the_user(path, flags):
    """The file opened so that nobody else may read or write it."""
    return os.open(path, flags, 0o600)


@functools.cache
def opened(folder, megabytes):
    return DiskCache(folder, megabytes)


def disk():
    """The cache that FGRAD_CACHE and FGRAD_CACHE_MB ask for now; one per folder and process."""
    return opened(config.cache_folder(), config.cache_megabytes())
