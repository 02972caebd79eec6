"""When the operators of arrays become machine code: once a process has used so many that it pays.

A process starts with methods that count; they run the operators in Python.  After LOADING of them
the machine code is loaded where it is on disk, after COMPILING it is compiled where it was not, so
a short script pays for neither.  Where it cannot be had, or FGRAD_NATIVE_CALL=0, the methods in
Python remain, and count no more.  Relies on `methods`, and on `backends.llvm.operators` when the
time has come.
"""

from __future__ import annotations

import functools
import itertools

from ..core import EVALUATE, Array, _current
from ..errors import FgradError, notice, shorten
from ..later import lazily

LOADING = 10_000           # operators; each takes 0.5 µs more in Python, and loading 6 to 8 ms
COMPILING = 50_000         # operators; with the import of llvmlite it takes 0.2 s, once per machine
BINARY = [f"__{name}__" for name in (
    "add radd sub rsub mul rmul truediv rtruediv eq ne lt le gt ge").split()]
PYTHON = {name: getattr(Array, name) for name in [*BINARY, "__neg__"]}     # that Array inherits

machine = lazily("fgrad.backends.llvm.operators")


def count_operators():
    """Gives arrays methods that count what they run: those of two operands, together."""
    later = itertools.repeat(None, COMPILING - LOADING - 1)
    tick = itertools.chain(
        itertools.repeat(None, LOADING - 1), [False], later, [True], itertools.repeat(None))
    for name in BINARY:
        setattr(Array, name, counting(PYTHON[name], tick.__next__))


def counting(method, tick):
    """The method; it also counts, and acts when there were enough."""
    def counted(x, y):
        try:
            compile = tick()
            if compile is not None:
                take_over(compile)
            return method(x, y)
        except BaseException as error:           # written out: a wrapper would cost every operator
            shorten(error)
            raise
    return functools.wraps(method)(counted)


def take_over(compile):
    """Puts the machine code in place; where it is not on disk, only if it may be compiled."""
    try:
        if not machine().possible(Array):
            return leave()
        if compile or machine().is_kept():
            machine().attach(Array, PYTHON, _current, EVALUATE)
    except (FgradError, ImportError, OSError, MemoryError) as error:
        notice("operators", f"operators of arrays run in Python, not as machine code: {error}")
        leave()


def leave():
    """Arrays have the operators they inherit."""
    for name in PYTHON:
        if name in vars(Array):
            delattr(Array, name)


count_operators()
