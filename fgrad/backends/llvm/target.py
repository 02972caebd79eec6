"""From text to addresses: objects for LLVM texts, and libraries for objects.

Objects come from the disk cache, else from `codegen.py`; an object is loaded into a library of its
own, so that many libraries may define the same names, by `link.py` or, where that does not know the
platform, by LLVM.  llvmlite is imported when something is compiled, or loaded by LLVM, not before:
a process that finds everything on disk does without.  The other modules of this folder rely on it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import deque

import numpy as np

from ...later import lazily
from .. import cache
from . import link
from .host import IDENTITY

loading = threading.RLock()          # guards the import of codegen, and what is loaded, see below
orc = lazily("fgrad.backends.llvm.orc")       # imports llvmlite; called while `loading` is held

at_fork = []                         # of codegen, (before, after): appended while `loading` is held


def before_fork():
    """Waits until no other thread loads or compiles, and keeps it so: a child inherits locks."""
    loading.acquire()
    for before, _ in at_fork:
        before()


def after_fork():
    """In parent and child: gives back what before_fork took."""
    for _, after in at_fork:
        after()
    loading.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=after_fork)


def codegen(find=lazily("fgrad.backends.llvm.codegen")):
    """The module `codegen`, which imports llvmlite; no fork happens while it is imported."""
    with loading:
        return find()


def compile_text(text):
    """The object that LLVM makes of a module's text; see codegen.compile_text."""
    return codegen().compile_text(text)


def assembly(text):
    """The target's assembly for a module's text."""
    return codegen().assembly(text)


def object_key(text):
    """The key on disk of the object of a text."""
    return cache.key(IDENTITY, text)


def objects(texts, keys=None, soon=()):
    """The objects of several texts, from the disk cache where it has them under these keys.

    soon: texts whose objects will be asked for; they are made beside the others if any are.
    """
    keys = keys or [object_key(text) for text in texts]
    found = {key: _early.pop(key, None) or cache.disk().get(key) for key in keys}
    missing = {key: text for key, text in zip(keys, texts) if found[key] is None}
    if missing:
        others = {object_key(text): text for text in soon}
        others = {key: text for key, text in others.items() if cache.disk().get(key) is None}
        wanted = missing | others
        for key, data in zip(wanted, codegen().compile_texts(list(wanted.values()))):
            cache.disk().put(key, data)
            (found if key in missing else _early)[key] = data
    return [found[key] for key in keys]


_early = {}                                      # key → an object made before it was asked for
_symbols = {}                                    # name → address, see add_symbol
_loaded = set()                                  # Libraries: code stays until it is closed
_unused = deque()                                # Libraries that the next `load` closes


class Library:
    """A loaded object.  Its code stays in memory until `close`, however many addresses are held."""

    def __init__(self, loaded):
        self.loaded = loaded                     # a link.Library or an orc.Library

    def address(self, symbol):
        """The address of a function or variable that the object defines.

        Raises CheckError where it does not.
        """
        with loading:
            return self.loaded.address(symbol)

    def close(self):
        """Frees the code.  Nobody may hold an address of it, or be running it."""
        with loading:
            if self in _loaded:
                _loaded.remove(self)
                self.loaded.close()


def load(data, symbols=None):
    """The Library of an object.

    What the object does not define is taken from `symbols` (name → address) and `add_symbol`, then
    from the process.  Raises CheckError for a name that nobody defines (from LLVM's loader: when
    the first address is asked for).
    """
    with loading:
        while _unused:
            _unused.popleft().close()
        known = {**_symbols, **(symbols or {})}
        if link.loads(data):
            loaded = link.Library(data, lambda name: known.get(name) or link.in_process(name))
        else:
            loaded = orc().Library(data, known)
        library = Library(loaded)
        _loaded.add(library)
        return library


def close_behind(owner, libraries):
    """Has Libraries closed when another is loaded after the owner is gone.

    Whoever runs their code holds the owner: an ndarray, which the garbage collector does not see,
    so that it goes last of what it is part of, behind every `__del__` that may still call the code.
    Nothing happens then but this note: it may be anywhere, and the owner's dealloc takes no lock.
    """
    assert owner.__class__ is np.ndarray, "an owner is an ndarray"
    weakref.finalize(owner, _unused.extend, libraries).atexit = False


def address_in_python(name):
    """The address of a function of CPython's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


def add_symbol(name, address):
    """Makes the address known under a name to every object that is loaded from now on."""
    with loading:
        _symbols[name] = address
