"""Jitted functions as CPython builtins: checks, allocation and the kernel call in machine code.

One generic function, `fg.call`, serves every signature: it is a builtin's METH_FASTCALL entry and
reads a table (`Call`) that the builtin carries as its `__self__`.  The table names, per argument,
the dtype object, the extents and the NumPy scalar class; anything that does not match exactly (a
dtype, a shape, strides, a subclass, a keyword, the number of arguments) calls the Python function
`fallback` with the same arguments, so no meaning depends on this file.  Addresses enter through
tables only, never the text, so the function is compiled once per machine and kept on disk.

It relies on CPython's calling convention and on the layout of ndarrays, NumPy scalars, slots and
ctypes structures; `probe` compares each with what this process shows.  Where something differs (a
debug or free-threaded build, another interpreter) or FGRAD_NATIVE_CALL=0, the backend's executables
make no such entry, and calls begin in Python.  Relies on `target.py`; executables rely on it.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import types

import numpy as np

from ... import aligned, config, slots
from ...types import F32, F64
from .. import cache
from ..forms import ARRAY, BOOL, FLOAT, FLOAT64, INT, NUMBERS, Attributes, Same
from . import heap, host, objects, target
from .native_results import FUNCTIONS, OWNER, fields
from .native_text import TEXT

METHOD = 0x80 | 0x02                             # METH_FASTCALL | METH_KEYWORDS
CONTIGUOUS_ALIGNED = 0x0101                      # of an ndarray's flags
DATA, NDIM, DIMS, BASE, DESCR, FLAGS = 16, 24, 32, 48, 56, 64      # offsets in an ndarray, bytes
OWNS_DATA = 4                                    # of its flags
ARRAY_TYPE, PYARRAY_NEW, SET_BASE = 2, 93, 282   # slots of NumPy's C interface
WORD = ctypes.c_void_p
GENERAL_VECTORCALL = hasattr(ctypes.pythonapi, "PyObject_Vectorcall")   # CPython 3.11 and later


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""
    _fields_ = [("name", ctypes.c_char_p), ("entry", WORD), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


class Interface(ctypes.Structure):
    """`@fg.interface` of the text: what it calls in CPython and NumPy."""
    _fields_ = [(name, WORD) for name in FUNCTIONS]


def like(record):
    """The fields of the text's record of this name."""
    return [(name, {"ptr": WORD, "i64": ctypes.c_int64}[kind]) for kind, name in fields(record)]


class Form(ctypes.Structure):
    """%Box: the class of boxes, and where their slots are."""
    _fields_ = like("Box")


class Argument(ctypes.Structure):
    """%Argument: what one argument must be.  `scalar` is null unless it has no axes."""
    _fields_ = like("Argument")


class Node(ctypes.Structure):
    """%Node: the form of an argument or of what is returned, or of a part of one; the parts of a
    container follow it."""
    _fields_ = like("Node")


class Result(ctypes.Structure):
    """%Result: what one result will be."""
    _fields_ = like("Result")


class Call(ctypes.Structure):
    """%Call: everything one builtin knows.  Its attribute `keep` holds the objects it points to."""
    _fields_ = [("form", Form), *like("Call")[len(like("Box")):]]


# ---------------------------------------------------------------------------- making builtins


def entry(kernel_address, inputs, outputs, fallback, box, name, *, forms=None, returned=None,
         assemble=None, constants=(), unlocks=False, keep=(), uses=None, taken=None, gone=None):
    """A builtin that runs a kernel; `probe` must hold.

    inputs, outputs: records with `dtype` and `shape`, one per positional argument and result.
    kernel_address: void(ptr *data, ptr *constants); data are those of inputs, outputs and constants
    in this order, and the second argument points to the first constant's.
    fallback: called with the same arguments whenever they are not exactly what `inputs` says.
    box: the class of arrays, with slots `np`, `shape` and `dtype`.  Each input may be given as a
    box, an ndarray or a NumPy scalar, but a float64; each result is a box of a read-only ndarray.
    Options: `forms`, one per positional argument, where these are not the inputs themselves: ARRAY,
    FLOAT or FLOAT64 (a float of Python or NumPy for an f32 or f64 input without axes), INT or BOOL
    (an int for an i64, a bool for a bool input without axes), Same(object), or a tuple, named
    tuple, list, dict with string keys or Attributes of forms, whose ARRAYs and numbers are the
    inputs in order; `returned`, the form of what is returned, ARRAY or containers of ARRAYs as in
    `forms` (without it: the one result, or the tuple of several); `assemble`, a callable that is
    given the tuple of results and makes what is returned, where that has no such form; `constants`,
    ndarrays;
    `unlocks`, for kernels that give up the interpreter's lock while they run, and may leave an
    exception set; `keep`, any objects that must live as long as the callable.  Where inputs are
    donated: `uses` of each, see native_donation; `taken`, for each result the input whose memory it
    is, or None for memory of its own (data has none for the others); `gone`, the class that a box
    gets which has given its memory away.
    """
    fallback, assemble = callable_natively(fallback), callable_natively(assemble)
    arguments = (Argument * len(inputs))(*map(argument, inputs, uses or [0] * len(inputs)))
    results = (Result * len(outputs))(*map(result, outputs, taken or [None] * len(outputs)))
    data = (WORD * len(constants))(*(array.ctypes.data for array in constants))
    forms = (ARRAY,) * len(inputs) if forms is None else tuple(forms)
    returned = shape_of(outputs) if returned is None else returned
    keys = []
    table, made = nodes(forms, inputs, keys), nodes([returned], outputs, keys)
    call = Call(Form(id(box), *slots_of(box)), kernel_address, id(fallback),
                None if assemble is None else id(assemble), unlocks,
                len(inputs), len(outputs), len(constants),
                ctypes.addressof(arguments), ctypes.addressof(results), ctypes.addressof(data),
                len(forms), ctypes.addressof(table), ctypes.addressof(made),
                None if gone is None else id(gone))
    call.keep = (tuple(inputs), tuple(outputs), fallback, assemble, box, tuple(constants),
                 arguments, results, data, forms, returned, table, made, keys, keep, gone)
    return builtin(ctypes.addressof(method(name)), call, None)


def shape_of(outputs):
    """The form of what is returned where nothing else is said."""
    return ARRAY if len(outputs) == 1 else (ARRAY,) * len(outputs)


def nodes(forms, types, keys):
    """The Node table of some forms; `keys` gets what it points to."""
    rows, remaining = [], iter(types)
    for form in forms:
        add_nodes(form, remaining, rows, keys)
    return (Node * len(rows))(*rows)


def add_nodes(form, types, rows, keys):
    """Appends the Node rows of a form, and to `keys` the arrays of keys they point to."""
    if form == ARRAY:
        next(types)
        rows.append(Node(kind=0))
    elif form in (FLOAT, FLOAT64):
        type = next(types)
        assert type.shape == () and type.dtype in (F32, F64), f"no {type} for a float"
        rows.append(Node(1, type.dtype.itemsize, id(NUMBERS[form])))
    elif form in (INT, BOOL):
        next(types)
        rows.append(Node(7, 0, id(NUMBERS[form])))
    elif isinstance(form, Same):
        rows.append(Node(2, 0, id(form.object)))
    elif isinstance(form, Attributes):
        add_container(6, form.cls, form.parts, types, rows, keys)
    else:
        add_container(container_kind(form), form.__class__, form, types, rows, keys)


def add_container(kind, cls, form, types, rows, keys):
    """The same for the Node of a container, and of its parts: a dict of them, or a sequence."""
    names = (WORD * len(form))(*map(id, form)) if isinstance(form, dict) else None
    keys.append(names)
    address = None if names is None else ctypes.addressof(names)
    rows.append(Node(kind, len(form), id(cls), address))
    for part in form.values() if isinstance(form, dict) else form:
        add_nodes(part, types, rows, keys)


def container_kind(form):
    """The kind of a container's Node."""
    for kind, number in ((tuple, 3), (list, 4), (dict, 5)):
        if isinstance(form, kind):
            return number
    raise AssertionError(f"{form!r} is not a form of arguments")


def callable_natively(thing):
    """The callable as one that `fg.call` can call: CPython 3.10 has a way for functions only."""
    if GENERAL_VECTORCALL or thing is None or isinstance(thing, types.FunctionType):
        return thing
    return lambda *args, **keywords: thing(*args, **keywords)


def argument(type, use):
    """The Argument row of a type that is used so."""
    scalar = None if type.shape else id(type.dtype.type)
    dims = extents(tuple(type.shape))
    return Argument(id(type.dtype), scalar, len(type.shape), ctypes.addressof(dims), use)


def result(type, taken):
    """The Result row of a type; the shape that results carry is the one `extents` keeps.

    taken: the input whose memory it is, or None.
    """
    dims = extents(tuple(type.shape))
    nbytes = type.dtype.itemsize * math.prod(type.shape)
    return Result(id(type.dtype), id(dims.shape), len(type.shape), ctypes.addressof(dims),
                  type.dtype.num, nbytes, 0 if taken is None else 1 + taken)


def kept(function):
    """The function of one argument, which keeps what it made for each: builtins hold addresses of
    it.  Threads that come at once all get what one of them made.
    """
    made = {}

    @functools.wraps(function)
    def called(key):
        found = made.get(key)
        return made.setdefault(key, function(key)) if found is None else found
    return called


@kept
def extents(shape):
    """The extents as an array of C integers, kept for the process, and so is the shape."""
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    dims.shape = shape
    return dims


@kept
def method(name):
    """The method record of builtins called `name`; kept, since builtins point to it for life."""
    return MethodDef(name.encode(), native().address("fg.call"), METHOD, b"A compiled function.")


def builtin(*arguments):
    """CPython's PyCFunction_NewEx(method, self, module)."""
    new = ctypes.PYFUNCTYPE(ctypes.py_object, WORD, ctypes.py_object, WORD)
    return new(("PyCFunction_NewEx", ctypes.pythonapi))(*arguments)


@functools.cache
def native():
    """The loaded library with `fg.call`, its interface filled in; copies have memory of it, too."""
    library = loaded(TEXT)
    aligned.heap = functools.partial(array, ctypes.PYFUNCTYPE(
        ctypes.py_object, WORD, ctypes.c_int64)(library.address("fg.array")))
    return library


def bring_heap():
    """Loads it for arrays that are made before anything is compiled, if the disk has its code."""
    texts = (heap.text(), for_host(TEXT))
    if probe() and all(cache.disk().get(objects.key_of(text)) is not None for text in texts):
        native()


def array(new, shape, dtype):
    """An ndarray whose memory is the heap's; new: `@fg.array` of the text."""
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    row = Result(ndim=len(shape), dims=ctypes.addressof(dims), number=dtype.num)
    return new(ctypes.addressof(row), dtype.itemsize * math.prod(shape))


def loaded(text):
    """The loaded library of a text that builds on native_results.TEXT, its interface filled in."""
    heap.library()
    [built] = objects.of([for_host(text)])
    library = target.load(built)
    table = numpy_interface()
    special = {"ndarray": id(np.ndarray), "float64": id(np.float64),
               "PyArray_New": table[PYARRAY_NEW], "PyArray_SetBaseObject": table[SET_BASE]}
    if not GENERAL_VECTORCALL:
        special["PyObject_Vectorcall"] = target.address_in_python("_PyFunction_Vectorcall")
    held = Interface.from_address(library.address("fg.interface"))
    for name, _ in Interface._fields_:
        setattr(held, name, special.get(name) or target.address_in_python(name))
    return library


def for_host(text):
    """The whole module of a text."""
    return f'target triple = "{host.HOST.triple}"\n{text}'


def numpy_interface():
    """NumPy's table of C functions."""
    module = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get(
        "numpy.core._multiarray_umath")
    get = ctypes.PYFUNCTYPE(WORD, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
    return (WORD * (SET_BASE + 1)).from_address(get(module._ARRAY_API, None))


def owns(base):
    """Is the base of an ndarray one of the capsules that own the memory of results?"""
    return bool(is_capsule()(base, OWNER.encode()))


@functools.cache
def is_capsule():
    """CPython's PyCapsule_IsValid(object, name)."""
    return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_IsValid", ctypes.pythonapi))


# ---------------------------------------------------------------------------- probing layouts


def probe():
    """Do builtins work in this process, and does nobody want them off?"""
    return config.native_call() and layouts_hold()


@functools.cache
def layouts_hold():
    """Are CPython, NumPy and ctypes laid out as `fg.call` expects?"""
    standard = (sys.implementation.name == "cpython" and ctypes.sizeof(WORD) == 8
                and not hasattr(sys, "gettotalrefcount")
                and object.__basicsize__ == 16)          # 32 where there is no interpreter lock
    return (standard and array_layout_holds() and scalar_layout_holds() and table_layout_holds()
            and container_layout_holds())


def word(thing, offset, type=WORD):
    """What an object's memory holds at an offset."""
    return type.from_address(id(thing) + offset).value


def array_layout_holds():
    """Do the offsets of ndarrays, its flags and NumPy's C interface hold?"""
    x = np.zeros((3, 5), np.float32)
    y = x[:, ::-1]
    x.flags.writeable = False
    [_, *twice], count = [x] * 3, ctypes.c_int
    before = word(x, 0, count)
    del twice[:]
    expected = [
        word(x, 0, count) == before - 2, word(x, BASE) is None, word(y, BASE) == id(x),
        word(x, FLAGS, count) & OWNS_DATA, not word(y, FLAGS, count) & OWNS_DATA,
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


def container_layout_holds():
    """Do floats, tuples and lists hold their value, length and items where they are looked for?"""
    items, value = ((), object()), 0.1
    row = list(items)
    return (ctypes.c_double.from_address(id(value) + 16).value == value
            and word(items, 16) == word(row, 16) == 2
            and [word(items, 24), word(items, 32)] == [id(x) for x in items]
            and list((WORD * 2).from_address(word(row, 24))) == [id(x) for x in items])


def table_layout_holds():
    """Does a ctypes structure point to its memory right behind its head?"""
    call = Call()
    return word(call, 16) == ctypes.addressof(call)


@functools.cache
def slots_of(box):
    """The offsets of the slots `np`, `_shape` and `_dtype` in a box, or None where it has none."""
    members = [getattr(box, name, None) for name in ("np", "_shape", "_dtype")]
    if not all(isinstance(x, types.MemberDescriptorType) for x in members):
        return None
    found = tuple(slots.offset(box, x) for x in members)
    return None if None in found else found
