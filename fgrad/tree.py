"""Pytrees: nested containers of leaves, taken apart and put together again.

A node is a dict, list, tuple, namedtuple, OrderedDict, defaultdict, None, or an instance of a class
registered with `@fgrad.pytree` or `register_node`; everything else is a leaf.  A `Structure` is
what remains when the leaves are gone: hashable and comparable, so it can be part of a cache key.

>>> leaves, structure = flatten({"w": [1, 2], "b": 3})
>>> leaves
[3, 1, 2]
>>> structure
{'b': *, 'w': [*, *]}
>>> unflatten(structure, [30, 10, 20])
{'b': 30, 'w': [10, 20]}
"""

from __future__ import annotations

import builtins
import functools
from collections import OrderedDict, defaultdict
from enum import Enum
from operator import is_

from .errors import ArgumentError, TreeError, boundary
from .later import lazily
from .text import noun_of

__all__ = [
    "Kind", "Structure", "all", "flatten", "flatten_up_to", "flatten_with_path", "leaves",
    "leaves_with_path", "map", "map_with_path", "path_text", "paths", "pytree", "reduce",
    "register_node", "static", "structure", "transpose", "unflatten"
]
__dir__ = __all__.copy     # dir() lists these and nothing else

dataclasses = lazily("dataclasses")              # as long to import as all that stands here
each = builtins.map        # `map` is that of trees, below
DISPLAYED = 40             # nodes within nodes up to which Python surely reads an expression


class Kind:
    """How nodes of one class come apart: `parts(node) → (children, meta)`, `make(meta, children)`.

    `keys(meta, n)` names the children in paths; `sign` prints them.  `fields`: where these are
    attributes, (the names of the children, the names of what makes the meta).  `mapped`: like make,
    of what a function of the user's made of the children.
    """
    __slots__ = ("cls", "parts", "make", "keys", "sign", "fields", "mapped")

    def __init__(self, cls, parts, make, keys, sign, fields, mapped=None):
        self.cls, self.parts, self.make, self.keys, self.sign = cls, parts, make, keys, sign
        self.fields, self.mapped = fields, mapped or make


class Structure:
    """The shape of a pytree.  `kind` is None for a leaf."""
    __slots__ = ("kind", "meta", "children", "count", "_hash")

    def __init__(self, kind, meta, children):
        self.kind, self.meta, self.children = kind, meta, children
        self.count = 1 if kind is None else sum(c.count for c in children)
        try:
            self._hash = hash((kind and kind.cls, meta, children))
        except TypeError:
            self._hash = hash((kind.cls, fixed_hash(meta, kind.cls), children))

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        return (isinstance(other, Structure) and self._hash == other._hash
                and self.kind is other.kind and alike(self.meta, other.meta)
                and self.children == other.children)

    def __repr__(self):
        if self.kind is None:
            return "*"
        return self.kind.sign(self.meta, [repr(c) for c in self.children])

    @property
    def num_leaves(self):
        """The number of leaves."""
        return self.count

    def unflatten(self, leaves):
        """The tree of this structure with these leaves, as `tree.unflatten`."""
        return unflatten(self, leaves)

    def flatten_up_to(self, tree):
        """The parts of a tree that stand where this structure has leaves, as `tree.flatten_up_to`.
        """
        return flatten_up_to(self, tree)


def fixed_hash(x, cls):
    """A hash of what a node of the class keeps beside its leaves: of dicts, lists and sets, too.

    Raises ArgumentError for anything else that has none.
    """
    if isinstance(x, dict):
        return hash(frozenset((key, fixed_hash(value, cls)) for key, value in x.items()))
    if isinstance(x, (list, tuple)):
        return hash(tuple(fixed_hash(a, cls) for a in x))
    if isinstance(x, set):
        return hash(frozenset(x))
    try:
        return hash(x)
    except TypeError:
        raise ArgumentError(f"{cls.__name__} keeps {noun_of(x)} beside its leaves, which cannot "
                            "be told from others by a hash.", given=type(x).__name__,
                            fix="make it one of the children") from None


def alike(a, b):
    """Are two fixed values equal, and of the same types through and through?

    >>> alike((1, "a"), (1, "a")), alike((1, "a"), (True, "a")), alike(0.0, -0.0)
    (True, False, False)
    """
    if a is b:
        return True
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and (False not in each(is_, a, b) or False not in each(alike, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and builtins.all(alike(x, b[key]) for key, x in a.items())
    if isinstance(a, (frozenset, set)):
        return {(x.__class__, x) for x in a} == {(x.__class__, x) for x in b}
    parts = getattr(a, "__dataclass_fields__", ())
    return bool(a == b) and False not in [
        alike(getattr(a, name), getattr(b, name)) for name in parts if parts[name].compare]


LEAF = Structure(None, None, ())
KINDS = {}                 # class → Kind; written by the next two functions only


def register_node(cls, parts, make, keys=None, sign=None, fields=None, mapped=None):
    """Instances of `cls` are nodes.

    parts(node) → (children, meta);   make(meta, children) → node; meta must be hashable, or dicts,
    lists and sets of what is.  keys(meta, n) names the children in paths, sign(meta, printed
    children) prints them.  fields: the names of attributes, (those of the children, those of the
    meta), if that is all that parts(node) reads.  mapped(meta, children): what `map` makes of such
    a node, of one child, when that is not always one again; beside anything else, `map` gives such
    nodes whole.
    Raises ArgumentError when the class is registered already.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
    >>> leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    if cls in KINDS:
        raise ArgumentError(f"{cls.__name__} is registered as a pytree already.")
    keys = keys or (lambda meta, n: tuple(range(n)))
    KINDS[cls] = Kind(cls, parts, make, keys, sign or sign_of(cls), fields, mapped)


def sign_of(cls):
    """How nodes of a class print."""
    return lambda meta, parts: f"{cls.__name__}({', '.join(parts)})"


def order(key):
    """Dictionary keys sort by type, then value, so that mixed keys work; members of an Enum as they
    are defined.
    """
    return type(key).__name__, list(type(key)).index(key) if isinstance(key, Enum) else key


def sorted_keys(node):
    """The keys of a dictionary in their order.  Raises TreeError where they have none."""
    try:
        return tuple(sorted(node))
    except TypeError:
        pass
    try:
        return tuple(sorted(node, key=order))
    except TypeError:
        kinds = {type(k).__name__: None for k in node}
        raise TreeError("the keys of a dictionary have no order, so its leaves have none.",
                        given=f"keys of {' and '.join(kinds)}",
                        fix="use strings or numbers as keys, or an OrderedDict.") from None


def dict_sign(meta, parts):
    return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(meta, parts)) + "}"


def dict_parts(node):
    keys = sorted_keys(node)
    return [node[k] for k in keys], keys


register_node(dict, dict_parts, lambda keys, xs: dict(zip(keys, xs)), lambda meta, n: meta,
              dict_sign)
register_node(list, lambda x: (x, None), lambda _, xs: list(xs), None,
              lambda _, parts: "[" + ", ".join(parts) + "]")
register_node(tuple, lambda x: (x, None), lambda _, xs: tuple(xs), None,
              lambda _, parts: "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")")
register_node(type(None), lambda x: ((), None), lambda _, xs: None, None, lambda _, parts: "None")
register_node(OrderedDict, lambda x: (list(x.values()), tuple(x)),
              lambda keys, xs: OrderedDict(zip(keys, xs)), lambda meta, n: meta, dict_sign)
register_node(defaultdict, lambda x: (dict_parts(x)[0], (x.default_factory, sorted_keys(x))),
              lambda meta, xs: defaultdict(meta[0], zip(meta[1], xs)), lambda meta, n: meta[1],
              lambda meta, parts: dict_sign(meta[1], parts))


def register_namedtuple(cls):
    """The Kind of a namedtuple: the first one, where several threads come here at once."""
    return KINDS.setdefault(cls, Kind(
        cls, lambda x: (tuple(x), None), lambda _, xs: cls(*xs),
        lambda meta, n: tuple(f".{f}" for f in cls._fields), sign_of(cls), None))


def kind_of(x):
    """The Kind of a node, or None for a leaf."""
    found = KINDS.get(x.__class__)
    if found is None and isinstance(x, tuple) and hasattr(x, "_fields"):
        found = register_namedtuple(x.__class__)
    return found


def static(**options):
    """A dataclass field that belongs to the structure, not to the leaves; hashable.

    >>> import fgrad
    >>> @fgrad.pytree
    ... class Scaled:
    ...     x: float
    ...     times: int = fgrad.static(default=2)
    >>> fgrad.tree.leaves(Scaled(1.5))
    [1.5]
    """
    return dataclasses().field(metadata={"static": True}, **options)


def pytree(cls):
    """The class, made a dataclass (if it is none), and its instances nodes.

    Fields that are `static()` belong to the structure.

    >>> import fgrad
    >>> @fgrad.pytree
    ... class Layer:
    ...     w: float
    ...     name: str = fgrad.static(default="dense")
    >>> fgrad.tree.map(lambda x: 2 * x, Layer(1.5))
    Layer(w=3.0, name='dense')
    """
    if not isinstance(cls, type) or cls.__module__ == "builtins":
        raise ArgumentError("pytree makes a node of a class of your own.", given=f"{cls!r:.60}",
                            fix="@fgrad.pytree in front of a class with annotated fields")
    own = "__init__" in vars(cls)
    if not dataclasses().is_dataclass(cls):
        cls = dataclasses().dataclass(cls)
        if own and not dataclasses().fields(cls):
            raise ArgumentError(f"pytree finds no fields in {cls.__name__}: what its __init__ "
                                "stores would be lost.", expected="annotated fields",
                                fix="name what it holds in the class, such as `w: object`")
    fields = dataclasses().fields(cls)
    dynamic = tuple(f.name for f in fields if not f.metadata.get("static"))
    fixed = tuple(f.name for f in fields if f.metadata.get("static"))
    register_fields(cls, dynamic, fixed)
    return cls


def register_fields(cls, dynamic, fixed):
    """Makes instances of a class nodes: children by the names `dynamic`, structure by `fixed`."""
    def parts(x):
        return [getattr(x, n) for n in dynamic], tuple(getattr(x, n) for n in fixed)

    def make(meta, children):
        out = object.__new__(cls)
        for name, value in (*zip(dynamic, children), *zip(fixed, meta)):
            object.__setattr__(out, name, value)
        return out

    register_node(cls, parts, make, lambda meta, n: tuple(f".{name}" for name in dynamic),
                  fields=(dynamic, fixed))


# ---------------------------------------------------------------------------- flatten, unflatten

def flatten(tree, is_leaf=None):
    """(leaves, Structure).  `is_leaf(x)` true makes x a leaf though it is a container."""
    out = []
    return out, _flatten(tree, out, is_leaf)


def _flatten(x, out, is_leaf):
    kind = KINDS.get(x.__class__)
    if kind is None and isinstance(x, tuple):
        kind = kind_of(x)
    if kind is None or is_leaf is not None and is_leaf(x):
        out.append(x)
        return LEAF
    children, meta = kind.parts(x)
    return Structure(kind, meta, tuple([_flatten(c, out, is_leaf) for c in children]))


def unflatten(structure, leaves):
    """The tree of this structure with these leaves.  Raises TreeError for a wrong number."""
    leaves = list(leaves)
    if len(leaves) != structure.count:
        raise TreeError(f"a tree of {structure.count} leaves cannot be made from {len(leaves)}.",
                        expected=repr(structure))
    return _unflatten(structure, iter(leaves))


def _unflatten(structure, leaves):
    if structure.kind is None:
        return next(leaves)
    return structure.kind.make(structure.meta, [_unflatten(c, leaves) for c in structure.children])


def written_out(structure):
    """`unflatten` for one structure, as a function of a sequence of leaves: one expression of
    Python, six times as fast where a tree is made at every call.

    >>> written_out(structure([0, (0, {"b": 0})]))((1, 2, 3))
    [1, (2, {'b': 3})]
    """
    if not shallow(structure, DISPLAYED):
        return functools.partial(unflatten, structure)
    names, places = {}, iter(range(structure.count))
    text = display(structure, places, names)
    return eval(f"lambda x: {text}", names)


def shallow(structure, levels):
    """Has the structure at most so many nodes within nodes?"""
    if structure.kind is None or levels == 0:
        return structure.kind is None
    return False not in [shallow(c, levels - 1) for c in structure.children]


def display(structure, places, names):
    """The expression of a structure; `names` gets what it calls."""
    kind, meta = structure.kind, structure.meta
    if kind is None:
        return f"x[{next(places)}]"
    parts = [display(c, places, names) for c in structure.children]
    if kind.cls is tuple:
        return f"({''.join(part + ', ' for part in parts)})"
    if kind.cls is list:
        return f"[{', '.join(parts)}]"
    if kind.cls is dict and {key.__class__ for key in meta} <= {str}:
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(meta, parts))}}}"
    n = len(names)
    names[f"make{n}"], names[f"meta{n}"] = kind.make, meta
    return f"make{n}(meta{n}, [{', '.join(parts)}])"


def leaves(tree, is_leaf=None):
    """The leaves, left to right; dictionaries by sorted key.

    >>> leaves([1, {"b": 2, "a": 3}, None])
    [1, 3, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree, is_leaf=None):
    """The Structure of a tree."""
    return flatten(tree, is_leaf)[1]


def flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), …], Structure); a path is a tuple of keys, indices and ".field" names.

    >>> flatten_with_path({"w": [1, 2]})[0]
    [(('w', 0), 1), (('w', 1), 2)]
    """
    out = []

    def visit(x, path):
        kind = kind_of(x)
        if kind is None or is_leaf is not None and is_leaf(x):
            out.append((path, x))
            return LEAF
        children, meta = kind.parts(x)
        children = list(children)
        keys = kind.keys(meta, len(children))
        return Structure(kind, meta, tuple([visit(c, (*path, k)) for c, k in zip(children, keys)]))
    return out, visit(tree, ())


def paths(structure):
    """The path of each leaf of a Structure."""
    if structure.kind is None:
        return [()]
    keys = structure.kind.keys(structure.meta, len(structure.children))
    return [(k, *p) for k, c in zip(keys, structure.children) for p in paths(c)]


def path_text(root, path):
    """A path as the user would write it.

    >>> path_text("params", ("dense", 0, ".w"))
    "params['dense'][0].w"
    """
    return root + "".join(k if isinstance(k, str) and k.startswith(".") else f"[{k!r}]"
                          for k in path)


# ---------------------------------------------------------------------------- map and friends

@boundary
def map(function, tree, *rest, is_leaf=None):
    """The tree with `function` applied to each leaf, and to the leaves at its place in `rest`.

    The leaf of a random key is its words, and a result of such is a key; a key is given whole when
    something else stands beside it.
    Raises TreeError, naming the place, when a tree of `rest` is built differently.

    >>> map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]})
    {'x': 11, 'y': [22]}
    """
    if not callable(function):
        raise ArgumentError(f"tree.map applies a function, not {noun_of(function)}.",
                            fix="map(function, tree)")
    if not rest:
        return _map_one(function, tree, is_leaf)
    first, shape = flatten(tree, is_leaf)
    try:
        others = [flatten_up_to(shape, r) for r in rest]
    except TreeError:
        first, whole = flatten(tree, lambda x: is_one(x) or is_leaf is not None and is_leaf(x))
        if whole == shape:
            raise
        shape, others = whole, [flatten_up_to(whole, r) for r in rest]
    return _mapped(shape, iter([function(*xs) for xs in zip(first, *others)]))


def _map_one(function, x, is_leaf):
    kind = kind_of(x)
    if kind is None or is_leaf is not None and is_leaf(x):
        return function(x)
    children, meta = kind.parts(x)
    return kind.mapped(meta, [_map_one(function, c, is_leaf) for c in children])


def is_one(x):
    """Is the node one value to its user, as a random key is?"""
    kind = KINDS.get(x.__class__)
    return kind is not None and kind.mapped is not kind.make


def _mapped(structure, leaves):
    if structure.kind is None:
        return next(leaves)
    return structure.kind.mapped(structure.meta, [_mapped(c, leaves) for c in structure.children])


@boundary
def map_with_path(function, tree, *rest, is_leaf=None):
    """Like map, with the path as the first argument of `function`."""
    pairs, shape = flatten_with_path(tree, is_leaf)
    others = [flatten_up_to(shape, r) for r in rest]
    return _mapped(shape, iter([function(p, x, *xs) for (p, x), *xs in zip(pairs, *others)]))


def leaves_with_path(tree, is_leaf=None):
    """[(path, leaf), …]; a path is a tuple of keys, indices and ".field" names.

    >>> leaves_with_path({"w": [1, 2]})
    [(('w', 0), 1), (('w', 1), 2)]
    """
    return flatten_with_path(tree, is_leaf)[0]


def flatten_up_to(shape, tree, sides=("in the first", "in the second")):
    """The parts of `tree` that stand where `shape` has leaves.

    sides: what is said of `shape` and of `tree` in messages.  Raises TreeError when it has no such
    places.
    """
    out = []
    _up_to(shape, tree, (), out, sides)
    return out


def _up_to(shape, x, path, out, sides):
    if shape.kind is None:
        out.append(x)
        return
    kind = kind_of(x)
    if kind is not shape.kind:
        wanted = "None" if shape.kind.cls is type(None) else f"a {shape.kind.cls.__name__}"
        found = "an array" if x is LEAF else noun_of(x)
        raise differ(path, f"{wanted} {sides[0]}, {found} {sides[1]}")
    children, meta = kind.parts(x)
    children = list(children)
    if meta != shape.meta or len(children) != len(shape.children):
        raise differ(path, difference(shape, meta, len(children), sides))
    keys = shape.kind.keys(meta, len(children))
    for child, part, key in zip(shape.children, children, keys):
        _up_to(child, part, (*path, key), out, sides)


def difference(shape, meta, n, sides):
    """In words, how one node of two trees differs."""
    one, other = sides
    if shape.kind.cls in (dict, OrderedDict):
        first = [k for k in shape.meta if k not in meta]
        second = [k for k in meta if k not in shape.meta]
        return f"keys only {one} {first}, only {other} {second}"
    if len(shape.children) != n:
        return f"{len(shape.children)} parts {one}, {n} {other}"
    return f"{shape.meta!r} {one}, {meta!r} {other}"


def differ(path, how):
    return TreeError(f"trees differ at {path_text('', path) or 'their root'}: {how}.",
                     fix="give trees of one structure; fgrad.tree.structure(t) shows it")


def check_same(wanted, given, what):
    """Raises TreeError, naming the place, unless both Structures are equal."""
    if wanted != given:
        try:
            flatten_up_to(wanted, unflatten(given, [LEAF] * given.count), ("expected", "given"))
            flatten_up_to(given, unflatten(wanted, [LEAF] * wanted.count), ("given", "expected"))
        except TreeError as error:
            error.sentence = f"{what}: {error.sentence}"
            raise


def reduce(function, tree, *initial, is_leaf=None):
    """functools.reduce over the leaves.

    >>> reduce(lambda a, b: a + b, {"x": 1, "y": [2, 3]})
    6
    """
    from_leaves = iter(leaves(tree, is_leaf))
    total = initial[0] if initial else next(from_leaves)
    for x in from_leaves:
        total = function(total, x)
    return total


def all(tree, is_leaf=None):
    """Are all leaves true?"""
    return not [x for x in leaves(tree, is_leaf) if not x]


def transpose(outer, inner, tree):
    """A tree of `outer` whose leaves are trees of `inner`, turned inside out.

    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    rows = [flatten_up_to(inner, part) for part in flatten_up_to(outer, tree)]
    return unflatten(inner, [unflatten(outer, column) for column in zip(*rows)])
