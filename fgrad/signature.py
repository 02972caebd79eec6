"""What jit knows of a call before tracing: which leaves are traced, which are static, and its key.

A call's arguments are flattened; each leaf is an array (keyed by its type), a Python number (keyed
by its class, traced), or static (keyed by its value: strings, functions, enums, frozen objects).
Two calls with equal keys share one trace.  `difference` says in words what changed between two
keys.  Relies on pytrees and values; `jitted`, `history` and `native_entry` rely on it.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np

from . import tree
from .arguments import is_fixed, name_of, positions, refuse, several
from .bf16 import BF16
from .core import Array, Tracer, Value, as_value, too_large
from .errors import ArgumentError
from .types import I64, SCALARS, SHORT, WIDE, ArrayType


class Static:
    """A leaf that is part of the key: compared by value, and by type through and through."""
    __slots__ = ("value", "_hash")

    def __init__(self, value):
        self.value, self._hash = value, hash((type(value), value))

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return isinstance(other, Static) and tree.alike(self.value, other.value)

    def __repr__(self):
        return getattr(self.value, "__name__", None) or repr(self.value)


NUMBER_DTYPE = {bool: np.bool_, int: np.int64, float: np.float64, np.float64: np.float64}


def number_value(x):
    """A Python number as an argument of compiled code, all its digits kept.

    Raises RangeError for an int beyond 64 bits.
    """
    try:
        return Array(NUMBER_DTYPE[x.__class__](x))
    except OverflowError:
        raise too_large(x, I64) from None


class Signature:
    """The parameters of a function, with the static and donated ones."""

    def __init__(self, function, static_argnums, static_argnames, donate_argnums, donate_argnames):
        self.function = function
        try:
            self.parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            self.parameters = []
        self.names = [p.name for p in self.parameters]
        self.positional = [p.name for p in self.parameters
                           if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.static = self.chosen("static", static_argnums, static_argnames)
        self.donated = self.chosen("donate", donate_argnums, donate_argnames)

    def chosen(self, what, argnums, argnames):
        """(positions, names) of parameters.  Raises ArgumentError for one that does not exist."""
        numbers = positions(self.function, "jit", f"{what}_argnums", argnums)
        names = several("jit", f"{what}_argnames", argnames, str, "a name, or a tuple of names")
        starred = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in self.parameters)
        for n in names if self.parameters and not starred else ():
            if n not in self.names:
                raise ArgumentError(f"{what}_argnames={n!r}: {name_of(self.function)} has no "
                                    "parameter of that name.", expected=", ".join(self.names))
        places = {*numbers, *(self.positional.index(n) for n in names if n in self.positional)}
        return frozenset(places), frozenset(names).union(
            self.positional[n] for n in places if n < len(self.positional))

    def wrapped(self, args, kwargs):
        """(args, kwargs) with the values of static parameters as Static leaves."""
        positions, names = self.static
        if positions:
            args = tuple(static(a, self.parameter_name(k)) if k in positions else a
                         for k, a in enumerate(args))
        if names and kwargs:
            kwargs = {n: static(a, n) if n in names else a for n, a in kwargs.items()}
        return args, kwargs

    def parameter_name(self, k):
        """The name of positional argument k."""
        if k < len(self.positional):
            return self.positional[k]
        starred = [p.name for p in self.parameters if p.kind is p.VAR_POSITIONAL]
        return f"{starred[0]}[{k - len(self.positional)}]" if starred else f"argument {k + 1}"

    def leaf_name(self, path):
        """A leaf of (args, kwargs) as the user would write it: `params['w']`."""
        part, which, *rest = path
        return tree.path_text(self.parameter_name(which) if part == 0 else which, rest)

    def donated_leaf(self, path):
        """Is the leaf of (args, kwargs) part of a donated argument?"""
        part, which, *_ = path
        return which in self.donated[part]


def static(value, name):
    """A value as a Static.  Raises ArgumentError when it cannot be hashed."""
    try:
        return Static(value)
    except TypeError:
        raise ArgumentError(
            f"the static argument {name} cannot be hashed, so no compiled version can be looked up "
            "by it.",
            given=f"{name}: {type(value).__name__} {value!r:.60}",
            fix=["pass a tuple instead of a list",
                 "or a frozen dataclass instead of a mutable object"]) from None


class Call:
    """One call, taken apart: a key per leaf, the traced values, and where each came from.

    values: of the traced leaves, as Values.  places: their leaf numbers.  traced: is one of them
    inside of a transformation?  device: where it runs, which jit knows.
    """
    device = None

    def __init__(self, structure, keys, values, places, leaves, traced):
        self.structure, self.keys, self.values = structure, keys, values
        self.places, self.leaves, self.traced = places, leaves, traced


def take_apart(args, kwargs, specialised, name):
    """The Call of (args, kwargs).

    specialised: structure → the leaves that are Python numbers and static by now.  name(k): the
    k-th leaf as the user writes it.  Raises ArgumentError for a leaf that cannot be an argument.
    """
    leaves, structure = tree.flatten((args, kwargs))
    keys, values, places = [], [], []
    fixed = specialised.get(structure, ())
    for k, x in enumerate(leaves):
        if x.__class__ is Array:
            key, value = x.type, x
        elif k in fixed and is_whole(x):
            key, value = Static(known_number(x)), None
        else:
            key, value = taken(x, functools.partial(name, k))
        keys.append(key)
        if value is not None:
            values.append(value)
            places.append(k)
    traced = any(isinstance(x, Tracer) for x in leaves)
    return Call(structure, tuple(keys), values, places, leaves, traced)


def taken(x, name):
    """(key, value) of a leaf; the value of a static one is None."""
    if x.__class__ in NUMBER_DTYPE:
        return x.__class__, number_value(x)
    if isinstance(x, ArrayType):                 # lower(), show(): a type stands for an array
        return x, x
    if isinstance(x, Tracer):
        return tracer_key(x), x
    if x.__class__ is Static:
        return x, None
    if isinstance(x, (np.ndarray, np.generic)):
        value = native_order(x, name)
        return value.type, value
    if isinstance(x, Value):
        return x.type, x
    if hasattr(x, "__array__") and not isinstance(x, type):
        value = as_value(x)
        return value.type, value
    if is_fixed(x):
        return static(x, name()), None
    raise refuse(x, name(), "name it in static_argnames")


def tracer_key(x):
    """A traced Python number is keyed like a Python number: it mixes like one."""
    return Number(x.type, x.is_number) if x.is_number else x.type


class Number:
    """The key of a Python number that an outer jit traces."""

    def __init__(self, type, is_number):
        self.type, self.is_number = type, is_number

    def __eq__(self, other):
        return (isinstance(other, Number) and self.type == other.type
                and self.is_number == other.is_number)

    def __hash__(self):
        return hash((Number, self.type, self.is_number))

    def __repr__(self):
        name = {"f": "float", "i": "int"}.get(self.type.dtype.kind, "bool")
        return f"{name}64 of NumPy" if self.is_number == WIDE else name


def is_whole(x):
    """Is it a Python int or bool, maybe one that an outer jit traces?"""
    if isinstance(x, Tracer):
        return x.is_number and x.dtype.kind in "ib"
    return x.__class__ in (int, bool)


def known_number(x):
    """The value of a whole number that is needed; an outer jit that traces it is to retrace."""
    if not isinstance(x, Tracer):
        return x
    return bool(x) if x.dtype.kind == "b" else int(x)


def native_order(x, name):
    """The Array of a NumPy array, in the byte order of this machine."""
    if x.dtype == BF16:
        return as_value(x)
    dtype = x.dtype.newbyteorder("=")
    if dtype not in SHORT:
        raise ArgumentError(
            f"{name()} is a NumPy array of dtype {x.dtype}, which cannot be compiled.",
            fix="convert it to numbers, or mark it static")
    return Array(x.astype(dtype, copy=False))


def number_of(key):
    """What `is_number` says of the leaf with this key."""
    if isinstance(key, Number):
        return key.is_number
    return WIDE if key is np.float64 else key in (bool, int, float)


def key_type(key):
    """The ArrayType of a traced leaf with this key."""
    if isinstance(key, ArrayType):
        return key
    return key.type if isinstance(key, Number) else ArrayType(np.dtype(NUMBER_DTYPE[key]), ())


def difference(old, new, old_paths, new_paths, name):
    """In words, the first thing that differs between two (structure, keys) pairs; None if equal."""
    if old[0] != new[0]:
        return f"the arguments changed structure from {old[0]} to {new[0]}"
    for path, a, b in zip(new_paths, old[1], new[1]):
        if a != b:
            return f"argument `{name(path)}` {change(a, b)}"
    return None


def change(a, b):
    """How one leaf's key differs from another."""
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        what = "shape" if a.dtype == b.dtype else "dtype"
        return f"changed {what} {a} -> {b}"
    if isinstance(a, Static) and isinstance(b, Static):
        kind = "function object" if callable(a.value) and callable(b.value) else "value"
        return f"changed {kind} {a} -> {b}"
    return f"changed from {kind_text(a)} to {kind_text(b)}"


def kind_text(key):
    """A leaf's key as a noun."""
    if isinstance(key, Static):
        return f"the static value {key}"
    if isinstance(key, type):
        return f"a Python {key.__name__}" if key in SCALARS else f"a {key.__name__} of NumPy"
    return str(key)
