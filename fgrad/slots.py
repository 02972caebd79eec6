"""Slots that are read under one name and written under another.

A slot is read in a few nanoseconds, but anybody may assign to it; a property may not be assigned
to, and takes ten times as long.  CPython's own descriptors can be made for a slot that is only
read: `read_only` makes them through its C interface, or properties where there is none.  Relies on
nothing; `core` gives arrays their shape and dtype so.
"""

from __future__ import annotations

import operator

try:
    import ctypes
    NEW_MEMBER = ctypes.pythonapi.PyDescr_NewMember
except (ImportError, AttributeError):            # another Python, or one without libffi
    NEW_MEMBER = None

OBJECT, READONLY = 16, 1                         # T_OBJECT_EX and READONLY of structmember.h
KEPT = []                                        # the records that descriptors point to


def read_only(cls, *names):
    """Gives the slots `_name` of a class these names, under which they cannot be assigned.

    >>> class Point:
    ...     __slots__ = ("_x",)
    >>> read_only(Point, "x")
    >>> p = Point()
    >>> p._x = 3
    >>> p.x
    3
    >>> p.x = 4
    Traceback (most recent call last):
    AttributeError: readonly attribute
    """
    for name in names:
        at = None if NEW_MEMBER is None else offset(cls, getattr(cls, f"_{name}"))
        found = property(operator.attrgetter(f"_{name}")) if at is None else member(cls, name, at)
        setattr(cls, name, found)


def offset(cls, slot):
    """Where an object of a class holds what the descriptor of a slot stores, or None."""
    example, mark = object.__new__(cls), object()
    slot.__set__(example, mark)
    for at in range(object.__basicsize__, cls.__basicsize__, ctypes.sizeof(ctypes.c_void_p)):
        if ctypes.c_void_p.from_address(id(example) + at).value == id(mark):
            return at
    return None


def member(cls, name, at):
    """A descriptor that reads the object at an offset."""
    class Member(ctypes.Structure):              # PyMemberDef
        _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int),
                    ("offset", ctypes.c_ssize_t), ("flags", ctypes.c_int),
                    ("doc", ctypes.c_char_p)]

    record = Member(name.encode(), OBJECT, at, READONLY, None)
    KEPT.append(record)
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        ("PyDescr_NewMember", ctypes.pythonapi))(cls, ctypes.addressof(record))
