"""Pytrees by JAX's names: the functions of `fgrad.tree` for code that says jax.tree_util."""

from __future__ import annotations

import functools

from . import tree
from .tree import pytree, register_fields, register_node
from .errors import ArgumentError

__all__ = ["DictKey", "GetAttrKey", "Partial", "SequenceKey", "all_leaves", "build_tree", "keystr",
           "register_dataclass", "register_pytree_node", "register_pytree_node_class",
           "register_pytree_with_keys", "register_static", "tree_all", "tree_broadcast",
           "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path",
           "tree_map", "tree_map_with_path", "tree_reduce", "tree_structure", "tree_transpose",
           "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple"]
__dir__ = __all__.copy     # dir() lists these and nothing else

tree_all = tree.all
tree_flatten = tree.flatten
tree_leaves = tree.leaves
tree_map = tree.map
tree_reduce = tree.reduce
tree_structure = tree.structure
tree_transpose = tree.transpose
tree_unflatten = tree.unflatten


def tree_broadcast(prefix, full, is_leaf=None):
    """The tree `full` with, for each leaf, the leaf of `prefix` that stands above it.

    >>> tree_broadcast([1, 2], ["a", {"b": 0, "c": 0}])
    [1, {'b': 2, 'c': 2}]
    """
    first, shape = tree.flatten(prefix, is_leaf)
    parts = tree.flatten_up_to(shape, full)
    spread = [tree.map(lambda _, x=x: x, part, is_leaf=is_leaf) for x, part in zip(first, parts)]
    return tree.unflatten(shape, spread)


class DictKey(str):
    """A key of a dictionary in a path: a string that has itself as `key`."""
    __slots__ = ()

    @property
    def key(self):
        return str(self)


class SequenceKey(int):
    """A place in a list or tuple in a path, or a number as a key: an int, `idx` and `key` too."""
    __slots__ = ()

    @property
    def idx(self):
        return int(self)
    key = idx


class GetAttrKey(str):
    """A field in a path, ".w": a string that has "w" as `name`."""
    __slots__ = ()

    @property
    def name(self):
        return self[1:]


def with_names(path):
    """A path whose parts say by JAX's names what they are."""
    def part(k):
        if type(k) is str:
            return GetAttrKey(k) if k.startswith(".") else DictKey(k)
        return SequenceKey(k) if type(k) is int else k
    return tuple([part(k) for k in path])


def tree_flatten_with_path(tree_, is_leaf=None):
    """([(path, leaf), …], Structure) of a tree; a path is a tuple of `DictKey`, `SequenceKey` …

    >>> [(path, _)], _ = tree_flatten_with_path({"w": [1.0]})
    >>> path, path[0].key, path[1].idx
    (('w', 0), 'w', 0)
    """
    pairs, shape = tree.flatten_with_path(tree_, is_leaf)
    return [(with_names(p), x) for p, x in pairs], shape


def tree_leaves_with_path(tree_, is_leaf=None):
    """[(path, leaf), …] of a tree, as of `tree_flatten_with_path`."""
    return tree_flatten_with_path(tree_, is_leaf)[0]


def tree_map_with_path(f, tree_, *rest, is_leaf=None):
    """The tree of f(path, leaf, leaves of the rest …); paths as of `tree_flatten_with_path`.

    >>> tree_map_with_path(lambda path, x: 0.0 if path[-1].key == "bias" else x,
    ...                    {"bias": 1.0, "w": 2.0})
    {'bias': 0.0, 'w': 2.0}
    """
    return tree.map_with_path(lambda path, *xs: f(with_names(path), *xs), tree_, *rest,
                              is_leaf=is_leaf)


def keystr(keys, *, simple=False, separator=""):
    """A path as the user would write it; simple: its parts alone, with a separator between them.

    >>> keystr(("dense", 0, ".w")), keystr(("dense", 0, ".w"), simple=True, separator="/")
    ("['dense'][0].w", 'dense/0/w')
    """
    if simple:
        return separator.join([str(k).removeprefix(".") for k in keys])
    return tree.path_text("", keys)


def all_leaves(iterable, is_leaf=None):
    """Is none of the elements a container?

    >>> all_leaves([1, 2.0]), all_leaves([1, [2]])
    (True, False)
    """
    return all(tree.structure(x, is_leaf).kind is None for x in iterable)


def build_tree(treedef, xs):
    """The tree of this structure with these leaves."""
    return tree.unflatten(treedef, xs)


def treedef_children(treedef):
    """The structures of the parts of a node."""
    return list(treedef.children)


def treedef_is_leaf(treedef):
    """Is it the structure of one leaf?"""
    return treedef.kind is None


def treedef_tuple(treedefs):
    """The structure of a tuple whose parts have these structures."""
    return tree.structure(tuple(tree.unflatten(t, range(t.count)) for t in treedefs))


# ---------------------------------------------------------------------------- registration

def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Instances of nodetype are nodes: flatten_func(x) → (children, aux), and back.

    Raises ArgumentError when the class is registered already.
    """
    keys = None
    if flatten_with_keys_func is not None:
        keys = key_names(nodetype, flatten_with_keys_func)
    register_node(nodetype, flatten_func, unflatten_func, keys)


def key_names(nodetype, flatten_with_keys):
    """The names of the children in paths, asked of an instance made of their numbers."""
    def keys(meta, n):
        made = tree.KINDS[nodetype].make(meta, list(range(n)))
        return tuple(name_of(k) for k, _ in flatten_with_keys(made)[0])
    return keys


def name_of(key):
    """A key of JAX's kinds (with .key, .idx or .name) or of ours, as paths hold it."""
    for attribute in ("key", "idx"):
        if hasattr(key, attribute):
            return getattr(key, attribute)
    return "." + key.name if hasattr(key, "name") else key


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """register_pytree_node, where flatten_with_keys(x) → ([(key, child), …], aux)."""
    def plain(x):
        pairs, meta = flatten_with_keys(x)
        return [child for _, child in pairs], meta
    register_pytree_node(nodetype, flatten_func or plain, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls):
    """Registers a class by its methods tree_flatten() and tree_unflatten(aux, children).

    >>> @register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    ...     def tree_flatten(self): return (self.a, self.b), None
    ...     @classmethod
    ...     def tree_unflatten(cls, _, parts): return cls(*parts)
    >>> tree_leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    register_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_dataclass(nodetype, data_fields=None, meta_fields=None):
    """Instances of a dataclass are nodes; the values of meta_fields belong to the structure.

    Without lists of fields, those made by `fgrad.static()` are meta.  Raises ArgumentError when the
    lists do not name each field once.
    """
    if data_fields is None and meta_fields is None:
        return pytree(nodetype)
    data, meta = tuple(data_fields or ()), tuple(meta_fields or ())
    names = tuple(getattr(nodetype, "__dataclass_fields__", (*data, *meta)))
    if sorted((*data, *meta)) != sorted(names):
        raise ArgumentError(f"register_dataclass needs each field of {nodetype.__name__} once.",
                            given=f"data_fields={list(data)} meta_fields={list(meta)}",
                            expected=", ".join(names))
    register_fields(nodetype, data, meta)
    return nodetype


def register_static(cls):
    """Instances of the class, which must be hashable, are nodes without leaves."""
    register_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


class Partial(functools.partial):
    """functools.partial as a node: its arguments are children, its function is structure.

    >>> tree_leaves(Partial(max, 1, key=2))
    [1, 2]
    """


register_node(Partial, lambda p: ((p.args, p.keywords), p.func),
              lambda function, parts: Partial(function, *parts[0], **parts[1]),
              lambda function, n: (".args", ".keywords"))
