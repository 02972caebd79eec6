"""Jitted functions as CPython builtins: checks, allocation and the kernel call in machine code.

One generic function, `fg.call`, serves every signature: it is a builtin's METH_FASTCALL entry and
reads a table (`Call`) that the builtin carries as its `__self__`.  The table names, per argument,
the dtype object, the extents and the NumPy scalar class; anything that does not match exactly (a
dtype, a shape, strides, a subclass, a keyword, the number of arguments) calls the Python function
`fallback` with the same arguments, so no meaning depends on this file.  Addresses enter through
tables only, never the text, so the function is compiled once per machine and kept on disk.

It relies on CPython's calling convention and on the layout of ndarrays, NumPy scalars, slots and
ctypes structures; `probe` compares each with what this process shows.  Where something differs (a
debug or free-threaded build, another interpreter) or FGRAD_NATIVE_CALL=0, `entry` makes the twin in
Python, with the same meaning.  Relies on `target.py`; the backend's executables rely on it.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import sysconfig
import types

import numpy as np

from ... import config
from . import target
from .native_text import TEXT

METHOD = 0x80 | 0x02                             # METH_FASTCALL | METH_KEYWORDS
CONTIGUOUS_ALIGNED = 0x0101                      # of an ndarray's flags
DATA, NDIM, DIMS, DESCR, FLAGS = 16, 24, 32, 56, 64      # offsets in an ndarray, bytes
ARRAY_TYPE, PYARRAY_NEW, SET_BASE = 2, 93, 282   # slots of NumPy's C interface
WORD = ctypes.c_void_p
GENERAL_VECTORCALL = hasattr(ctypes.pythonapi, "PyObject_Vectorcall")        # CPython 3.11 and later


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""
    _fields_ = [("name", ctypes.c_char_p), ("entry", WORD), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


class Interface(ctypes.Structure):
    """%Interface of the text: what it calls in CPython and NumPy."""
    _fields_ = [(name, WORD) for name in (
        "ndarray", "PyArray_New", "PyArray_SetBaseObject", "Py_IncRef", "Py_DecRef",
        "PyEval_SaveThread", "PyEval_RestoreThread", "PyTuple_New", "PyTuple_SetItem",
        "PyObject_Vectorcall", "PyType_GenericAlloc", "PyCapsule_New", "PyCapsule_GetPointer",
        "PyMem_RawMalloc", "PyMem_RawFree", "PyErr_NoMemory")]


class Argument(ctypes.Structure):
    """%Argument: what one argument must be.  `scalar` is null unless it has no axes."""
    _fields_ = [("dtype", WORD), ("scalar", WORD), ("ndim", ctypes.c_int64), ("dims", WORD)]


class Result(ctypes.Structure):
    """%Result: what one result will be."""
    _fields_ = [("dtype", WORD), ("shape", WORD), ("ndim", ctypes.c_int64), ("dims", WORD),
                ("number", ctypes.c_int64), ("nbytes", ctypes.c_int64)]


class Call(ctypes.Structure):
    """%Call: everything one builtin knows.  Its attribute `keep` holds the objects it points to."""
    _fields_ = [("box", WORD), ("np_offset", ctypes.c_int64), ("shape_offset", ctypes.c_int64),
                ("dtype_offset", ctypes.c_int64), ("kernel", WORD), ("fallback", WORD),
                ("assemble", WORD), ("release_gil", ctypes.c_int64), ("inputs", ctypes.c_int64),
                ("outputs", ctypes.c_int64), ("constants", ctypes.c_int64), ("arguments", WORD),
                ("results", WORD), ("constant_data", WORD)]


# ---------------------------------------------------------------------------- making builtins


def entry(kernel_address, inputs, outputs, fallback, box, name, **options):
    """A callable that runs a kernel: a builtin where `probe` allows it, else its Python twin.

    inputs, outputs: records with `dtype` and `shape`, one per positional argument and result.
    kernel_address: void(ptr *data, ptr *constants); data are those of inputs, outputs and constants
    in this order, and the second argument points to the first constant's.
    fallback: called with the same arguments whenever they are not exactly what `inputs` says.
    box: the class of arrays, with slots `np`, `shape` and `dtype`.  Each argument may be a box, an
    ndarray or a NumPy scalar; each result is a box of a read-only ndarray.
    Options: `assemble`, a callable that is given the tuple of results and makes what is returned
    (without it: the one result, or the tuple of several); `constants`, ndarrays; `release_gil`, for
    kernels that run long; `keep`, any objects that must live as long as the callable.
    """
    chosen = make if probe() and slots_of(box) else make_python
    return chosen(kernel_address, inputs, outputs, fallback, box, name, **options)


def make(kernel_address, inputs, outputs, fallback, box, name, *, assemble=None, constants=(),
         release_gil=False, keep=()):
    """The builtin function that `entry` describes; `probe` must hold."""
    fallback, assemble = callable_natively(fallback), callable_natively(assemble)
    arguments = (Argument * len(inputs))(*map(argument, inputs))
    results = (Result * len(outputs))(*map(result, outputs))
    data = (WORD * len(constants))(*(array.ctypes.data for array in constants))
    call = Call(id(box), *slots_of(box), kernel_address, id(fallback),
                None if assemble is None else id(assemble), release_gil,
                len(inputs), len(outputs), len(constants),
                ctypes.addressof(arguments), ctypes.addressof(results), ctypes.addressof(data))
    call.keep = (tuple(inputs), tuple(outputs), fallback, assemble, box, tuple(constants),
                 arguments, results, data, keep)
    return builtin(ctypes.addressof(method(name)), call, None)


def callable_natively(thing):
    """The callable as one that `fg.call` can call: CPython 3.10 exports a way for functions only."""
    if GENERAL_VECTORCALL or thing is None or isinstance(thing, types.FunctionType):
        return thing
    return lambda *args, **keywords: thing(*args, **keywords)


def argument(type):
    """The Argument row of a type."""
    scalar = None if type.shape else id(type.dtype.type)
    return Argument(id(type.dtype), scalar, len(type.shape), ctypes.addressof(extents(tuple(type.shape))))


def result(type):
    """The Result row of a type; the shape that results carry is the one `extents` keeps."""
    dims = extents(tuple(type.shape))
    nbytes = type.dtype.itemsize * math.prod(type.shape)
    return Result(id(type.dtype), id(dims.shape), len(type.shape), ctypes.addressof(dims),
                  type.dtype.num, nbytes)


@functools.cache
def extents(shape):
    """The extents as an array of C integers, kept for the process as are the shape and the array."""
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    dims.shape = shape
    return dims


@functools.cache
def method(name):
    """The method record of builtins called `name`; kept, since a builtin points to it to its end."""
    return MethodDef(name.encode(), native().address("fg.call"), METHOD, b"A compiled function.")


def builtin(*arguments):
    """CPython's PyCFunction_NewEx(method, self, module)."""
    new = ctypes.PYFUNCTYPE(ctypes.py_object, WORD, ctypes.py_object, WORD)
    return new(("PyCFunction_NewEx", ctypes.pythonapi))(*arguments)


@functools.cache
def native():
    """The loaded library with `fg.call`, its interface filled in."""
    [built] = target.objects([f'target triple = "{target.HOST.triple}"\n{TEXT}'])
    library = target.load(built)
    table = numpy_interface()
    special = {"ndarray": id(np.ndarray), "PyArray_New": table[PYARRAY_NEW],
               "PyArray_SetBaseObject": table[SET_BASE]}
    if not GENERAL_VECTORCALL:
        special["PyObject_Vectorcall"] = address_of("_PyFunction_Vectorcall")
    held = Interface.from_address(library.address("fg.interface"))
    for name, _ in Interface._fields_:
        setattr(held, name, special.get(name) or address_of(name))
    return library


def address_of(name):
    """The address of a function of CPython's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), WORD).value


def numpy_interface():
    """NumPy's table of C functions."""
    module = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get(
        "numpy.core._multiarray_umath")
    get = ctypes.PYFUNCTYPE(WORD, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
    return (WORD * (SET_BASE + 1)).from_address(get(module._ARRAY_API, None))


# ---------------------------------------------------------------------------- probing layouts


def probe():
    """Do builtins work in this process, and does nobody want them off?"""
    return config.native_call() and layouts_hold()


@functools.cache
def layouts_hold():
    """Are CPython, NumPy and ctypes laid out as `fg.call` expects?"""
    standard = (sys.implementation.name == "cpython" and ctypes.sizeof(WORD) == 8
                and not hasattr(sys, "gettotalrefcount")
                and not sysconfig.get_config_var("Py_GIL_DISABLED"))
    return standard and array_layout_holds() and scalar_layout_holds() and table_layout_holds()


def word(thing, offset, type=WORD):
    """What an object's memory holds at an offset."""
    return type.from_address(id(thing) + offset).value


def array_layout_holds():
    """Do the offsets of ndarrays, its flags and NumPy's C interface hold?"""
    x = np.zeros((3, 5), np.float32)
    y = x[:, ::-1]
    x.flags.writeable = False
    expected = [
        word(x, 8) == id(np.ndarray), word(x, DATA) == x.__array_interface__["data"][0],
        word(x, NDIM, ctypes.c_int) == 2, word(x, DESCR) == id(x.dtype) == id(np.dtype("f4")),
        word(x, FLAGS, ctypes.c_int) & 0x0501 == CONTIGUOUS_ALIGNED,
        word(y, FLAGS, ctypes.c_int) & 0x0501 == 0x0500]
    return (all(expected) and tuple((ctypes.c_int64 * 2).from_address(word(x, DIMS))) == (3, 5)
            and numpy_interface()[ARRAY_TYPE] == id(np.ndarray))


def scalar_layout_holds():
    """Do NumPy's scalars hold their value right behind the object's head?"""
    scalars = [np.dtype(c).type(1) for c in "?bhilqBHILQefd"]
    return all(ctypes.string_at(id(s) + 16, s.dtype.itemsize) == s.tobytes() for s in scalars)


def table_layout_holds():
    """Does a ctypes structure point to its memory right behind its head?"""
    call = Call()
    return word(call, 16) == ctypes.addressof(call)


@functools.cache
def slots_of(box):
    """The offsets of the slots `np`, `shape` and `dtype` in a box; None where it has no such slots."""
    example, marks = object.__new__(box), [object(), object(), object()]
    for name, mark in zip(("np", "shape", "dtype"), marks):
        member = getattr(box, name, None)
        if not isinstance(member, types.MemberDescriptorType):
            return None
        member.__set__(example, mark)
    places = {word(example, at): at for at in range(16, box.__basicsize__, 8)}
    found = tuple(places.get(id(mark)) for mark in marks)
    return None if None in found else found


# ---------------------------------------------------------------------------- the Python twin


def make_python(kernel_address, inputs, outputs, fallback, box, name, *, assemble=None,
                constants=(), release_gil=False, keep=()):
    """What `entry` describes, in Python."""
    kind = ctypes.CFUNCTYPE if release_gil else ctypes.PYFUNCTYPE
    kernel = kind(None, WORD, WORD)(kernel_address)
    constant_data = [array.ctypes.data for array in constants]
    shapes = [tuple(type.shape) for type in outputs]

    def call(*args, **keywords):
        held = arrays_of(args, inputs, box)
        if keywords or held is None:
            return fallback(*args, **keywords)
        made = [np.empty(shape, type.dtype) for type, shape in zip(outputs, shapes)]
        data = [array.__array_interface__["data"][0] for array in (*held, *made)]
        pointers = (WORD * (len(data) + len(constant_data)))(*data, *constant_data)
        start = ctypes.addressof(pointers)
        kernel(start, start + ctypes.sizeof(WORD) * len(data))
        for array in made:
            array.flags.writeable = False
        boxes = tuple(map(boxed, made, shapes))
        if assemble is not None:
            return assemble(boxes)
        return boxes[0] if len(boxes) == 1 else boxes

    def boxed(array, shape):
        new = object.__new__(box)
        new.np, new.shape, new.dtype = array, shape, array.dtype
        return new

    call.__name__ = call.__qualname__ = name
    call.keep = keep, tuple(constants)
    return call


def arrays_of(args, types, box):
    """The ndarrays that the arguments hold, or None where one is not what its type says."""
    if len(args) != len(types):
        return None
    held = []
    for arg, type in zip(args, types):
        x = getattr(arg, "np", None) if arg.__class__ is box else arg
        if x.__class__ is type.dtype.type and type.shape == ():
            x = np.asarray(x)
        if not (x.__class__ is np.ndarray and x.dtype is type.dtype and x.shape == tuple(type.shape)
                and x.flags.c_contiguous and x.flags.aligned):
            return None
        held.append(x)
    return held
