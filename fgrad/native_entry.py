"""The native entries of a jitted function: each runs one signature, on the CPU without Python.

A jitted function's own class has the latest entry for its `__call__`; what an entry does not
recognise goes to the one installed before it, and at last to `Jitted.call`, so nothing depends on
them but speed.  Relies on the executables' `native`, where they have one; jit relies on it.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, defaultdict
from enum import Enum
from types import MemberDescriptorType

import numpy as np

from . import config, types
from .backends.forms import ARRAY, NUMBERS, STRIDED, Attributes, Mapping, Same, missed
from .errors import DonationError
from .signature import Static
from .types import ArrayType

CHAIN = 32                 # entries per function; passing one that does not know a call: 0.1 µs
CHAINS = weakref.WeakSet()
_lock = threading.Lock()   # guards CHAINS


class Chain:
    """The entries of one function, latest last.  It changes under the lock of its owner only.

    made_for: the trace of each.  careful: how many, from the first on, look at what the blocks
    around a call have chosen; those behind know the usual rules only.
    """

    def __init__(self, owner):
        self.owner = owner
        self.entries, self.made_for, self.careful = [], [], 0
        self.hopeless = weakref.WeakSet()        # traces that can have no entry
        with _lock:
            CHAINS.add(self)

    def add(self, apart, trace, compiled, args, kwargs):
        """Puts an entry for calls of this very signature in front, where there can be one."""
        if trace in self.made_for or trace in self.hopeless or len(self.entries) == CHAIN:
            return
        before = self.entries[-1] if self.entries else self.owner.call
        entry = entry_of(apart, trace, compiled, args, kwargs, before, self.owner.__name__)
        if entry is None:
            self.hopeless.add(trace)
            return
        on_cpu = compiled.device == "cpu"        # elsewhere arguments say on which device they are
        if not on_cpu or types.other_rules_in_use():
            now = types.circumstances(None if on_cpu else config.CHOSEN_DEVICE)
            entry = within(entry, now, before)
            self.careful += self.careful == len(self.entries)
        self.entries.append(entry)
        self.made_for.append(trace)
        type(self.owner).__call__ = staticmethod(entry)

    def cut(self, count):
        """Takes all entries off but the first ones."""
        del self.entries[count:], self.made_for[count:]
        self.careful = min(self.careful, count)
        cls = type(self.owner)
        cls.__call__ = staticmethod(self.entries[-1]) if self.entries else cls.call


def entry_of(apart, trace, compiled, args, kwargs, before, name):
    """A function that runs what was compiled for calls of this signature, and else calls `before`;
    None where there can be none.
    """
    native = getattr(compiled.executable, "native", None)
    names = sorted(kwargs)
    forms = forms_of(apart, (*args, *[kwargs[name] for name in names]))
    if native is None or forms is None:
        return None
    try:
        entry = native(trace.program.in_types, forms, compiled.constants, trace.out,
                       missed if names else before, name, donate=trace.donate)
    except DonationError:                        # what it closes over has been given away
        return None
    return entry and (with_names(entry, len(args), names, before) if names else entry)


def within(entry, now, before):
    """A function that calls an entry in the circumstances of now, and another function in others.
    """
    then = now()

    def called(*args, **kwargs):
        return (entry if now() == then else before)(*args, **kwargs)
    return called


def with_names(entry, count, names, before):
    """A function of so many arguments by position, and some by name, which calls an entry with all
    of them by position.
    """
    def called(*args, **kwargs):
        if len(args) == count and len(kwargs) == len(names):
            try:
                given = [kwargs[name] for name in names]
            except KeyError:
                return before(*args, **kwargs)
            out = entry(*args, *given)
            if out is not missed:
                return out
        return before(*args, **kwargs)
    return called


def forms_of(apart, given):
    """What an entry expects of each argument, by position and then by name; None where it could
    not tell.

    The structure of the call is that of (args, kwargs); a leaf is an array, a Python float, or one
    object.
    """
    keys = iter(apart.keys)
    structures = [s for part in apart.structure.children for s in part.children]
    found = [form_of(s, x, keys) for s, x in zip(structures, given)]
    return None if None in found else found


def form_of(structure, given, keys):
    """The form of one argument, or of a part of it, whose leaves have the next of the keys."""
    if structure.kind is None:
        return leaf_form(next(keys), given)
    cls, names, children = structure.kind.cls, structure.meta, structure.children
    if cls is type(None):
        return Same(None)
    if issubclass(cls, dict):
        return form_of_dict(structure, given, keys)
    if structure.kind.fields:
        return form_of_fields(structure, given, keys)
    if not issubclass(cls, (tuple, list)):
        return None
    parts = [form_of(s, x, keys) for s, x in zip(children, given)]
    return None if None in parts else structure.kind.make(names, parts)


def form_of_dict(structure, given, keys):
    """The form of a dict, an OrderedDict or a defaultdict, with keys that can be written out."""
    cls, names = structure.kind.cls, structure.meta
    factory, names = names if cls is defaultdict else (None, names)
    if cls not in (dict, OrderedDict, defaultdict) or not all(map(is_plain, names)):
        return None
    parts = {name: form_of(s, given[name], keys) for name, s in zip(names, structure.children)}
    if None in parts.values() or cls is defaultdict and factory is None:
        return None
    return parts if cls is dict else Mapping(cls, parts, factory)


def is_plain(key):
    """Is a key what its printed form says?"""
    return key.__class__ in (str, int) or key.__class__ is tuple and all(map(is_plain, key))


def form_of_fields(structure, given, keys):
    """The form of an instance whose attributes are its parts, if it holds them itself."""
    cls, (names, fixed) = structure.kind.cls, structure.kind.fields
    parts = {name: form_of(s, getattr(given, name), keys)
             for name, s in zip(names, structure.children)}
    held = cls.__getattribute__ is object.__getattribute__ and all(
        is_held(getattr(cls, name, None)) for name in names)
    if not held or None in parts.values():
        return None
    return Attributes(cls, parts | {name: Same(getattr(given, name)) for name in fixed})


def is_held(found):
    """Is an attribute that a class has so the instance's own: a slot, or a field's default?"""
    return isinstance(found, MemberDescriptorType) or not hasattr(type(found), "__get__")


def leaf_form(key, given):
    """The form of a leaf."""
    if isinstance(key, ArrayType):
        in_order = given.__class__ is not np.ndarray or given.flags.c_contiguous
        return ARRAY if in_order else STRIDED
    if key in NUMBERS.values():
        return key.__name__
    return Same(given, has_equals(given)) if isinstance(key, Static) else None


def has_equals(x):
    """May there be another object that equals it, as of tuples, strings and frozen dataclasses?"""
    alone = isinstance(x, (type, Enum, np.dtype)) or type(x).__eq__ is object.__eq__
    return not alone


def uninstall_all():
    """Takes every entry off that knows the usual rules only, and those in front of it."""
    with _lock:
        chains = list(CHAINS)
    for chain in chains:
        chain.owner.leave_native()


types.CHANGED.append(uninstall_all)
