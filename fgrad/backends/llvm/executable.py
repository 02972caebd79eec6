"""Running an Image: its objects are loaded, its words become a table that the native runner walks.

An executable is called through Python, and from jit through a builtin.  Relies on `image`,
`runner`, `target` and `threads`; `backend.py` relies on it.
"""

from __future__ import annotations

import ctypes
import functools
from sys import getrefcount

import numpy as np

from ... import tree
from ...aligned import copied, empty
from ...bf16 import BF16
from ...core import (
    Array, array_of, donated, frozen_array, give_away, memory_in_order, memory_of)
from ...later import lazily
from ...types import BOOL, ArrayType, held_as
from ..forms import ARRAY, missed, paths, taker
from . import host, objects, runner, target, threads

host_call = lazily("fgrad.backends.llvm.host_call")         # for steps that NumPy runs
native_call = lazily("fgrad.backends.llvm.native_call")     # for a second call


class Executable:
    """A compiled Plan: executable(values) → list of Arrays.

    image, objects: see image.py.  steps: name → the Call step that NumPy runs.
    """

    def __init__(self, image, objects, steps):
        self.image, self.arena, self.made = image, image.arena, image.made
        self.calls = {name: host_call().function(step) for name, step in steps.items()}
        addresses = {name: id(function) for name, function in self.calls.items()}
        run = native_runner()
        libraries = []
        for (names, _), data in zip(image.objects, objects):     # they call those before them
            libraries.append(target.load(data, addresses))
            addresses.update((name, libraries[-1].address(name)) for name in names)
        words = [addresses[w] if w.__class__ is str else w for w in image.words]
        outside = len(image.given) + len(image.made) + 1
        self.table = runner.PlanTable(words, image.places, image.arena, outside, image.most,
                                      arena_free())
        target.close_behind(self.table.words, libraries)
        self.address = run.address("fg.run.unlocked" if image.long else "fg.run")
        self.run = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self.address)

    def __call__(self, values):
        arrays = [memory_in_order(v) for v in values]
        for k in self.image.overwritten:
            arrays[k] = given_away(values[k], arrays[k])
        made = [empty(t.shape, held_as(t.dtype)) for t in self.made]
        n = self.image.inputs
        data = [*arrays[:n], *made, self.table.words, *arrays[n:]]
        pointers = (ctypes.c_void_p * len(data))(*[a.__array_interface__["data"][0] for a in data])
        at = ctypes.addressof(pointers)
        self.run(at, at + 8 * (n + len(made)))
        return [self.result(*of, values, arrays, made) for of in self.image.outputs]

    def result(self, of, k, values, arrays, made):
        """The Array of an output; one that is an input or a constant is that value."""
        if of == "made":
            x, type = made[k], self.made[k]
        elif of == "taken":
            x, type = arrays[k], self.image.given[k]
        else:
            return array_of(memory_of(values[k]), self.image.given[k].dtype)
        x.flags.writeable = False
        return array_of(x, type.dtype)

    def native(self, types, forms, constants, structure, fallback, name, donate=(), made=None):
        """A builtin that runs this executable for these forms, or None where none can.

        types, made: of arguments and results, as the caller knows them.  donate: positions of the
        inputs that are used no more.
        """
        own, made = made is None, made or self.made
        words = any(t.dtype is BF16 for t in [*types, *made])
        if words or not native_call().probe():
            return None
        fixed = [memory_in_order(c) for c in constants]

        def entry(fallback, **form):
            return native_call().entry(
                self.address, types, made, fallback, Array, name, forms=forms,
                constants=[self.table.words, *fixed], unlocks=self.image.long, keep=self, **form)
        if not donate and self.image.outputs == [("made", k) for k in range(len(made))]:
            form = returned(structure) if tree.shallow(structure, tree.DISPLAYED) else None
            return entry(fallback, returned=form,
                         assemble=tree.written_out(structure) if form is None else None)
        if not own or not donate and self.image.overwritten:
            return None
        if not made:
            made = [ArrayType(BOOL, ())]         # that nothing writes and nobody sees
        call = rearranged(entry, self.image.outputs, types, len(made), forms, constants,
                          tree.written_out(structure), missed if donate else fallback)
        return giving(call, taker(forms), donate, self.image.overwritten, fallback) if donate \
            else call


def rearranged(entry, outputs, types, count, forms, constants, assemble, fallback):
    """A function that calls an entry and puts together what is returned from its new arrays, of
    which there are `count`, arguments that are given back as they are or written to, and constants.

    No two results are one Array: each may be given away.
    """
    call, n = entry(missed), len(types)
    at = [path for k, form in enumerate(forms) for path in paths(form, f"args[{k}]")]
    names = {"held": held, "Array": Array}
    names.update((f"type{k}", t) for k, t in enumerate(types))
    names.update((f"constant{k}", memory_of(c)) for k, c in enumerate(constants))
    parts, seen = [], set()
    for of, k in outputs:
        made = "out" if count == 1 else f"out[{k}]"
        if of == "made":
            parts.append(f"Array({made}.np)" if k in seen else made)
            seen.add(k)
        elif of == "taken":
            parts.append(f"Array({at[k]}.np)")
        else:
            parts.append(f"held({at[k]}, type{k})" if k < n else f"Array(constant{k - n})")
    leaves = eval(f"lambda out, args: ({', '.join(parts)},)", names)

    def called(*args, **kwargs):
        out = call(*args, **kwargs)
        if out is missed:
            return fallback(*args, **kwargs)
        return assemble(leaves(out, args))
    return called


def giving(call, take, donate, overwritten, fallback):
    """A function that calls another one, after which the inputs at `donate` are used no more.

    Those that are overwritten must be Arrays whose memory nobody else can see.
    """
    own, gone = alone(), donated(Array)

    def called(*args, **kwargs):
        given = None if kwargs else take(args)
        if given is None:
            return fallback(*args, **kwargs)
        places = list(map(id, given))
        twice = len(set(places)) < len(places)
        for k in overwritten:
            x = given[k]
            if twice and places.count(id(x)) > 1:
                return fallback(*args)
            if x.__class__ is not Array or getrefcount(x.np) > own or not has_memory_alone(x.np):
                return fallback(*args)
        out = None
        try:
            out = call(*args)
        finally:                                 # a run that was stopped has written to them, too
            for k in donate if out is not missed else ():
                x = given[k]
                if x.__class__ is Array:
                    del x.np
                    x.__class__ = gone
                else:
                    give_away(x)
        return fallback(*args) if out is missed else out
    return called


@functools.cache
def alone():
    """The reference count, in `giving`, of memory that only its Array holds."""
    x = Array(np.zeros(1))
    return getrefcount(x.np)


def held(x, type):
    """An argument as a result: an Array of its memory, or of a copy of what is another's."""
    if x.__class__ is Array:
        return Array(x.np)
    if x.__class__ is np.ndarray:
        return frozen_array(copied(x))
    return Array(type.dtype.type(x))


def given_away(value, array):
    """The memory of a donated argument: its own where nobody else can see it, else a copy."""
    own = array is memory_of(value) and getrefcount(array) <= unseen()
    return array if own and has_memory_alone(array) else copied(array)


def has_memory_alone(array):
    """Is an ndarray's memory no one else's?  It may be a part of another array, or foreign."""
    if array.base is None:
        return array.flags.owndata
    if array.base.__class__ is np.ndarray:
        return array.base.flags.owndata and getrefcount(array.base) == 2
    return native_call().owns(array.base)


@functools.cache
def unseen():
    """The reference count, in `given_away`, of memory that only its Array and the call hold."""
    def count(value, array):
        return array is memory_of(value) and getrefcount(array)
    values = [Array(np.zeros(1))]
    arrays = [v.np for v in values]
    return count(values[0], arrays[0])


def returned(structure):
    """The form in which native calls give back results, or None where they cannot."""
    if structure.kind is None:
        return ARRAY
    cls, keys = structure.kind.cls, structure.meta
    parts = [returned(c) for c in structure.children]
    if None in parts or cls not in (tuple, list, dict):
        return None
    if cls is dict:
        return dict(zip(keys, parts)) if {key.__class__ for key in keys} <= {str} else None
    return cls(parts)


def not_loaded():
    """The texts of what every program needs, until it is loaded."""
    if native_runner.cache_info().currsize:
        return []
    return [threads.text(threads.pool().size), runner_text()]


def runner_text():
    """The runner's module for this machine."""
    return f'target triple = "{host.HOST.triple}"\n{runner.IR}'


@functools.cache
def native_runner():
    """The loaded library of `fg.run`, and that of the pool."""
    threads.pool().loaded()
    [built] = objects.of([runner_text()])
    made = target.load(built, {f: target.address_in_python(f) for f in runner.FROM_PYTHON})
    target.add_symbol("fg.look", made.address("fg.look"))
    return made


@functools.cache
def arena_free():
    """The function that frees a plan's arena."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native_runner().address("arena.free"))
