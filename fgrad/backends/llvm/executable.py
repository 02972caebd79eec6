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
from ...aligned import copied, empty, lies_well
from ...bf16 import BF16
from ...core import (
    Array, WordArray, array_of, donated, frozen_array, give_away, memory_in_order, memory_of)
from ...later import lazily
from ...types import held_as
from ..forms import ARRAY, STRIDED, is_tabled, leaves, missed, takes_equals, taker
from . import heap, host, objects, runner, target, threads

host_call = lazily("fgrad.backends.llvm.host_call")         # for steps that NumPy runs
native_call = lazily("fgrad.backends.llvm.native_call")     # for a second call
native_donation = lazily("fgrad.backends.llvm.native_donation")


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
                                      image.tried, arena_free())
        target.close_behind(self.table.words, libraries)
        self.address = run.address("fg.run.unlocked" if image.long else "fg.run")
        self.run = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self.address)

    def __call__(self, values):
        arrays = [memory_in_order(v) for v in values]
        for k in self.image.overwritten:
            arrays[k] = given_away(values[k], arrays[k])
        made = [empty(t.shape, held_as(t.dtype)) for t in self.made]
        n = self.image.inputs
        data = [*arrays[:n], *made, self.table.words, *arrays[n:], *self.image.tables]
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
        if not native_call().probe():
            return None
        fixed = [*[memory_in_order(c) for c in constants], *self.image.tables]

        def entry(forms, fallback, results=made, **form):
            inputs, outputs = [[t.with_dtype(held_as(t.dtype)) for t in ts]
                               for ts in (types, results)]
            return native_call().entry(
                self.address, inputs, outputs, fallback, Array, name, forms=forms,
                constants=[self.table.words, *fixed], unlocks=self.image.long, keep=self, **form)
        rest = entry, types, made, forms, constants, structure, donate, fallback
        plain = self.image.outputs == [("made", k) for k in range(len(made))]
        if not own and (donate or not plain) or self.image.overwritten and not donate:
            return None
        words = any(t.dtype is BF16 for t in [*types, *made])
        kinds = [kind for form in forms for kind in leaves(form)]
        if not (plain or self.takes_over(kinds)) or words or not all(map(is_tabled, forms)):
            return self.by_leaves(*rest)
        if any(map(takes_equals, forms)):        # a table knows the very same object only
            fallback = self.by_leaves(*rest)
        form = returned(structure) if tree.shallow(structure, tree.DISPLAYED) else None
        given = self.donation(kinds, types, made, donate) if donate else {}
        return entry(forms, fallback, returned=form,
                     assemble=tree.written_out(structure) if form is None else None, **given)

    def takes_over(self, kinds):
        """Is each result new, in order, or the memory of an array that no other one takes over?"""
        outputs, overwritten = self.image.outputs, sorted(self.image.overwritten)
        made, taken = [[k for of, k in outputs if of == how] for how in ("made", "taken")]
        return (made == list(range(len(self.made))) and sorted(taken) == overwritten
                and len(made) + len(taken) == len(outputs)
                and all(kinds[k] == ARRAY for k in overwritten))

    def donation(self, kinds, types, made, donate):
        """What an entry is told where inputs are donated: of which types results are, whose memory
        they take over, and how each input is used.
        """
        use = native_donation()
        uses = [use.READ if kind == ARRAY else 0 for kind in kinds]
        for k in donate:
            uses[k] = uses[k] and use.DONATED
        for k in self.image.overwritten:
            uses[k] = use.WRITTEN
        taken = [k if of == "taken" else None for of, k in self.image.outputs]
        results = [made[k] if of == "made" else types[k] for of, k in self.image.outputs]
        return {"results": results, "uses": uses, "taken": taken, "gone": donated(Array)}

    def by_leaves(self, entry, types, made, forms, constants, structure, donate, fallback):
        """A function of the forms' arguments that calls an entry with their leaves, one by one.

        Its results are put together from new arrays, arguments that are given back or written to,
        and constants.  After it what is donated is used no more.
        """
        kinds = [leaf for form in forms for leaf in leaves(form)]
        call = entry([ARRAY if kind == STRIDED else kind for kind in kinds], missed)
        take, assemble = taker(forms), tree.written_out(structure)
        results = results_of(self.image.outputs, types, made, constants)
        words = [k for k, t in enumerate(types) if t.dtype is BF16]
        strided = [k for k, kind in enumerate(kinds) if kind == STRIDED]
        overwritten = self.image.overwritten

        def called(*args, **kwargs):
            given = None if kwargs else take(args)
            if given is None or overwritten and not seen_by_nobody(given, overwritten):
                return fallback(*args, **kwargs)
            held = memories(given, words, strided) if words or strided else given
            if held is None:
                return fallback(*args)
            out = None
            try:
                out = call(*held)
                if out is not missed:
                    out = assemble(results(out, given))
            finally:                             # a run that was stopped has written to them, too
                if out is not missed:
                    give_away([given[k] for k in donate])
            return fallback(*args) if out is missed else out
        return called


def results_of(outputs, types, made, constants):
    """A function of an entry's new arrays and the arguments that gives the list of results.

    No two results are one Array: each may be given away.
    """
    names = {"held": held, "Array": Array, "WordArray": WordArray}
    names.update((f"type{k}", t) for k, t in enumerate(types))
    names.update((f"constant{k}", memory_of(c)) for k, c in enumerate(constants))
    parts, seen, n = [], set(), len(types)
    for of, k in outputs:
        new = "out" if len(made) == 1 else f"out[{k}]"
        if of == "made":
            words = made[k].dtype is BF16
            again = f"{'WordArray' if words else 'Array'}({new}.np)"
            parts.append(again if words or k in seen else new)
            seen.add(k)
        elif of == "taken":
            parts.append(f"Array(given[{k}].np)")
        elif k < n:
            parts.append(f"held(given[{k}], type{k})")
        else:
            words = constants[k - n].dtype is BF16
            parts.append(f"{'WordArray' if words else 'Array'}(constant{k - n})")
    return eval(f"lambda out, given: [{', '.join(parts)}]", names)


def memories(given, words, strided):
    """The arguments, of Arrays of bf16 the words, of NumPy's arrays with strides a copy; None where
    one is no Array of bf16.
    """
    held = [*given]
    for k in words:
        if given[k].__class__ is not WordArray:
            return None
        held[k] = given[k].words
    for k in strided:
        if given[k].__class__ is np.ndarray:
            held[k] = np.ascontiguousarray(given[k])
    return held


def seen_by_nobody(given, places):
    """Are the arguments at some places Arrays whose memory nobody else can see?"""
    own, ids = alone(), list(map(id, given))
    twice = len(set(ids)) < len(ids)
    for k in places:
        x = given[k]
        if x.__class__ is not Array or getrefcount(x.np) > own or not has_memory_alone(x.np):
            return False
        if twice and ids.count(id(x)) > 1:
            return False
    return True


@functools.cache
def alone():
    """The reference count, in `seen_by_nobody`, of memory that only its Array holds."""
    x = Array(np.zeros(1))
    return getrefcount(x.np)


def held(x, type):
    """An argument as a result: an Array of its memory, or of a copy of what is another's."""
    if x.__class__ is Array:
        return Array(x.np)
    if x.__class__ is WordArray:
        return WordArray(x.words)
    if x.__class__ is np.ndarray:
        return frozen_array(copied(x))
    return Array(type.dtype.type(x))


def given_away(value, array):
    """The memory of a donated argument: its own where nobody else can see it, else a copy.

    So it is, too, where a copy lies better: what is given away is mostly given away again.
    """
    own = array is memory_of(value) and getrefcount(array) <= unseen()
    return array if own and has_memory_alone(array) and lies_well(array) else copied(array)


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
        return dict(zip(keys, parts))
    return cls(parts)


def not_loaded():
    """The texts of what every program needs, until it is loaded."""
    if native_runner.cache_info().currsize:
        return []
    return [threads.text(threads.pool().size), heap.text(), runner_text()]


def runner_text():
    """The runner's module for this machine."""
    return f'target triple = "{host.HOST.triple}"\n{runner.IR}'


@functools.cache
def native_runner():
    """The loaded library of `fg.run`, and those of the pool and of the heap."""
    threads.pool().loaded()
    heap.library()
    [built] = objects.of([runner_text()])
    made = target.load(built, {f: target.address_in_python(f) for f in runner.FROM_PYTHON})
    target.add_symbol("fg.look", made.address("fg.look"))
    return made


@functools.cache
def arena_free():
    """The function that frees a plan's arena."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native_runner().address("arena.free"))
