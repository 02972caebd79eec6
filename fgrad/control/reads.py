"""What a function reads besides its arguments, where that can be told, and is the same again.

A loop may take the Program of an earlier call with its function only if staging it anew would read
the same.  That can be told of a function of plain parts: arrays, numbers, text, the modules and
functions of the library, of NumPy and of Python, and other functions of such parts.  A list, an
object or a module of the user's may have changed inside: then nothing is told, and the function is
staged again.  Relies on `source`; `bodies` relies on it.

>>> import fgrad.numpy as fnp
>>> w = fnp.ones(2)
>>> def scaled(factor):
...     return lambda x: fnp.sin(x) * w * factor
>>> same(read_by(scaled(2)), read_by(scaled(2))), same(read_by(scaled(2)), read_by(scaled(2.0)))
(True, False)
>>> read_by(scaled([2])) is None
True
"""

from __future__ import annotations

import dis
import functools
import sys
import types

import numpy as np

from .. import source, tree
from ..core import Array, Primitive

BY_VALUE = (bool, int, float, complex, str, bytes, type(None), type(...))
BY_IDENTITY = (np.dtype, np.ufunc, Primitive, types.BuiltinFunctionType)
IMPORT = dis.opmap["IMPORT_NAME"]


def same(a, b):
    """Have two lists of `read_by` equal parts?"""
    return len(a) == len(b) and all(
        x is y or x.__class__ in BY_VALUE and tree.alike(x, y) for x, y in zip(a, b))


def read_by(function):
    """What the function reads, as a list of parts, or None where that cannot be told."""
    parts = []
    return parts if add(function, parts, set()) else None


def add(x, parts, seen):
    """Adds the parts of something that is read; False where they cannot be told."""
    kind = x.__class__
    if kind is types.FunctionType and (x.__closure__ or not is_known(x)):
        return x in seen or add_function(x, parts, seen)
    if kind is tuple:
        parts.append(len(x))
        return all(add(e, parts, seen) for e in x)
    if not (kind in BY_VALUE or isinstance(x, (Array, *BY_IDENTITY)) or is_known(x)):
        return False
    parts.append(x)
    return True


def add_function(f, parts, seen):
    """Adds its code, its defaults, and what its cells, and the globals that it names, hold.

    The globals and attributes of functions of the library stay what they are.
    """
    seen.add(f)
    code, found = f.__code__, []
    if not is_known(f):
        names = named_in(code)
        if names is None or vars(f):
            return False
        found = [f.__globals__[name] for name in names if name in f.__globals__]
    parts.append(code)
    defaults = tuple((f.__kwdefaults__ or {}).items())
    held = [cell.cell_contents for cell in f.__closure__ or () if cell != EMPTY]
    return all(add(x, parts, seen) for x in (f.__defaults__, defaults, *held, *found))


EMPTY = types.CellType()


@source.cached_by_identity
def named_in(code):
    """The names that code, and the code inside it, may read of its module; None if it imports."""
    if IMPORT in code.co_code[::2]:
        return None
    inner = [named_in(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    if None in inner:
        return None
    return tuple(dict.fromkeys([*code.co_names, *[n for names in inner for n in names]]))


def is_known(x):
    """Is it a module, class or function of the library, of NumPy or of Python?"""
    if isinstance(x, types.ModuleType):
        name = x.__name__
    elif isinstance(x, (type, types.FunctionType)):
        name = x.__module__ or ""
    else:
        return False
    return is_trusted(name.partition(".")[0])


@functools.cache
def is_trusted(package):
    """Do the modules of a package keep what they say?"""
    return package in ("fgrad", "numpy", *sys.builtin_module_names) or (
        package in sys.stdlib_module_names and package != "__main__")
