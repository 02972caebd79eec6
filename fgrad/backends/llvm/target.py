"""What LLVM makes of a text, and libraries for objects, which have addresses.

An object is loaded into a library of its own, so that many libraries may define the same names, by
`link.py` or, where that does not know the platform, by LLVM.  llvmlite is imported when something
is compiled, or loaded by LLVM, not before: a process that finds everything on disk does without.
`objects.py` and the other modules of this folder rely on it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import deque

import numpy as np

from ...later import lazily
from . import link

loading = threading.RLock()          # guards the import of codegen, and what is loaded, see below
orc = lazily("fgrad.backends.llvm.orc")       # imports llvmlite; called while `loading` is held

at_fork = []       # of modules, (before, after, in the child too): appended while `loading` is held


def before_fork():
    """Waits until no other thread loads or compiles, and keeps it so: a child inherits locks."""
    loading.acquire()
    for before, _, _ in at_fork:
        before()


def after_fork():
    """In parent and child: gives back what before_fork took."""
    for _, after, _ in at_fork:
        after()
    loading.release()


def in_child():
    for _, _, forget in at_fork:
        forget()
    after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=in_child)


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
