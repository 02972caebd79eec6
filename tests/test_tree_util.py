"""JAX's names for pytrees."""

from dataclasses import dataclass

import pytest

import fgrad
from fgrad import tree_util
from fgrad.errors import ArgumentError, TreeError


def test_the_names_are_functions_of_tree():
    tree = {"b": [1, 2], "a": 3}
    leaves, structure = tree_util.tree_flatten(tree)
    assert leaves == tree_util.tree_leaves(tree) == [3, 1, 2]
    assert tree_util.tree_unflatten(structure, leaves) == tree
    assert tree_util.tree_map(lambda x: -x, tree) == {"b": [-1, -2], "a": -3}
    assert tree_util.tree_leaves_with_path(tree) == [(("a",), 3), (("b", 0), 1), (("b", 1), 2)]
    assert tree_util.tree_map_with_path(lambda p, x: len(p) * x, tree) == {"b": [2, 4], "a": 3}
    assert tree_util.tree_map_with_path(lambda p, x, y: (p[0].key, x + y), tree, tree) == {
        "b": [("b", 2), ("b", 4)], "a": ("a", 6)}
    assert tree_util.tree_all({"x": 1, "y": True}) and tree_util.tree_reduce(max, tree) == 3


def test_structures_are_taken_apart_and_put_together():
    parts = [tree_util.tree_structure(x) for x in (1, [2, 3])]
    whole = tree_util.treedef_tuple(parts)
    assert whole == tree_util.tree_structure((0, [0, 0]))
    assert tree_util.treedef_children(whole) == parts
    assert [tree_util.treedef_is_leaf(p) for p in parts] == [True, False]


def test_a_prefix_is_spread_over_the_tree_below_it():
    assert tree_util.tree_broadcast((1, 2), (0, [0, 0])) == (1, [2, 2])
    with pytest.raises(TreeError):
        tree_util.tree_broadcast((1, 2), (0,))


def test_a_partial_function_differentiates_by_its_arguments():
    f = tree_util.Partial(lambda w, x: w * x, 3.0)
    out = fgrad.grad(lambda f: f(2.0))(f)
    assert isinstance(out, tree_util.Partial) and out.args == (2.0,)


@dataclass
class Layer:
    w: float
    name: str


def test_a_dataclass_is_registered_by_lists_of_fields():
    with pytest.raises(ArgumentError):
        tree_util.register_dataclass(Layer, ["w"], [])
    tree_util.register_dataclass(Layer, ["w"], ["name"])
    assert tree_util.tree_map(lambda x: 2 * x, Layer(1.5, "dense")) == Layer(3.0, "dense")
    assert tree_util.tree_leaves_with_path(Layer(1.5, "dense")) == [((".w",), 1.5)]


def test_keys_given_at_registration_are_the_paths():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b
    tree_util.register_pytree_with_keys(
        Pair, lambda p: ([("left", p.a), ("right", p.b)], None), lambda _, ab: Pair(*ab))
    paths = [p for p, _ in tree_util.tree_leaves_with_path([Pair(1, 2)])]
    assert paths == [(0, "left"), (0, "right")]
    assert tree_util.keystr(paths[0]) == "[0]['left']"


def test_static_objects_have_no_leaves():
    @tree_util.register_static
    class Mode:
        pass
    assert tree_util.tree_leaves([Mode(), 1]) == [1]
    assert tree_util.all_leaves([1, 2]) and not tree_util.all_leaves([[1]])
