"""The operators of arrays as CPython's method descriptors, in machine code.

An operator of two small arrays of one dtype, or of an array and a Python number, takes three to ten
times as long in Python as NumPy takes to compute it.  `attach` gives the class of arrays methods
that do these in machine code: IEEE arithmetic and comparisons on f32 and f64, wrapping arithmetic
on i32, with the bits that NumPy gives; the shapes may differ where one is spread over the other.
Everything else (other classes and dtypes, strides, large arrays, an interpreter that watches) calls
the method in Python with the same operands, so no meaning depends on this file.

Relies on `native_call.py` for layouts and their probe, and `operators_text.py` for the code;
`fgrad.numpy` calls it when a process has used so many operators that it pays.
"""

from __future__ import annotations

import ctypes
import functools

from ...types import BOOL, F32, F64, I32
from .. import cache
from . import native_call, objects, operators_text
from .native_call import WORD, Form, MethodDef, like
from .operators_text import NAMES

METH_NOARGS, METH_O = 0x04, 0x08


class Kind(ctypes.Structure):
    """%Kind: a dtype."""
    _fields_ = like("Kind")


class Operators(ctypes.Structure):
    """%Operators: what the functions know of this process."""
    _fields_ = [("form", Form), ("variable", WORD), ("value", WORD), ("float", WORD),
                ("int", WORD), ("kinds", Kind * 4), ("fallbacks", WORD * len(NAMES))]


def possible(box):
    """Can this class of arrays have operators in machine code here, and does nobody want them off?

    box: as for `native_call.entry`.
    """
    return native_call.probe() and native_call.slots_of(box) is not None


def attach(box, methods, variable, value):
    """Gives the class of arrays its operators in machine code; they must be `possible`.

    methods: name, one for each of NAMES → the method in Python.  Machine code runs while the
    context variable has the value.  Raises CheckError where the system allows no code of our own.
    """
    library = native_call.loaded(text())
    plain = [native_call.callable_natively(methods[name]) for name in NAMES]
    held = Operators.from_address(library.address("fg.operators"))
    held.form = Form(id(box), *native_call.slots_of(box))
    held.variable, held.value, held.float, held.int = map(id, (variable, value, float, int))
    held.kinds = (Kind * 4)(*map(kind, (F32, F64, I32, BOOL)))
    held.fallbacks = (WORD * len(NAMES))(*map(id, plain))
    entries = {name: MethodDef(name.encode(), library.address(f"fg.{name}"),
                               METH_NOARGS if name == "__neg__" else METH_O, doc(name).encode())
               for name in NAMES}
    keep(box, plain, variable, value, entries)
    for name, entry in entries.items():
        setattr(box, name, descriptor(box, ctypes.addressof(entry)))


def keep(*things):
    """Things that machine code points to: they stay even where Python ends and clears modules."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(things))


def kind(dtype):
    """The Kind of a dtype."""
    return Kind(id(dtype), id(dtype.type), dtype.num, dtype.itemsize)


def doc(name):
    """The docstring of an operator, with the signature that `inspect` reads."""
    given = "$self" if name == "__neg__" else "$self, value"
    return f"{name}({given}, /)\n--\n\nThe operator {name.strip('_')}, element by element."


def descriptor(cls, method):
    """CPython's PyDescr_NewMethod(type, method)."""
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, WORD)
    return new(("PyDescr_NewMethod", ctypes.pythonapi))(cls, method)


@functools.cache
def text():
    """The text of the operators."""
    return operators_text.text()


def is_kept():
    """Is the machine code on disk, so that it need not be compiled?"""
    return cache.disk().get(objects.key_of(native_call.for_host(text()))) is not None
