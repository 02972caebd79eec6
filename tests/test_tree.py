"""Pytrees: a structure written out makes what `unflatten` makes."""

import enum
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArgumentError, TreeError, tree

Pair = namedtuple("Pair", "first second")


class Part(enum.IntEnum):
    BODY = 1
    HEAD = 2


@fgrad.pytree
class Layer:
    w: object
    b: object


def nested(n):
    return 0 if n == 0 else [nested(n - 1), n]


@pytest.mark.parametrize("x", [
    1, (), [], {}, None, (1,), [1, (2, [3])], {"b": 1, "a": {"c'\\": 2}}, {2: 1, 1: (2, None)},
    {"a": 1, 2: 3}, {Part.HEAD: 1, Part.BODY: [2]}, {(1, Part.BODY): 3},
    Pair(1, [2, 3]), OrderedDict(b=1, a=2), defaultdict(list, a=1),
    Layer(1, (2, {"x": 3})), [Pair(Layer(1, 2), None)] * 3, nested(40), nested(210)],
    ids=lambda x: type(x).__name__)
def test_a_structure_written_out_makes_what_unflatten_makes(x):
    leaves, structure = tree.flatten(x)
    numbers = tuple(range(100, 100 + len(leaves)))
    made, again = tree.written_out(structure)(numbers), tree.unflatten(structure, numbers)
    assert tree.flatten(made) == (list(numbers), structure)
    assert type(made) is type(again) and tree.flatten(again) == tree.flatten(made)


def test_members_of_an_enum_are_keys_in_the_order_of_their_definition():
    Color = enum.Enum("Color", "RED GREEN")
    params = {Color.GREEN: fnp.ones(2), Color.RED: fnp.zeros(3)}
    assert [x.shape for x in tree.leaves(params)] == [(3,), (2,)]
    def twice(p):
        return tree.map(lambda x: x * 2, p)
    for f in (twice, fgrad.jit(twice), fgrad.grad(lambda p: fnp.sum(p[Color.RED]))):
        assert list(f(params)) == [Color.RED, Color.GREEN]


def test_keys_without_an_order_are_refused():
    with pytest.raises(TreeError, match="have no order") as found:
        tree.leaves({object(): 1, object(): 2})
    assert "keys of object" in str(found.value)


def test_dictionaries_keep_the_order_that_unflatten_gives():
    structure = tree.structure({"b": 1, "a": 2})
    assert list(tree.written_out(structure)((1, 2))) == list(tree.unflatten(structure, (1, 2)))


def test_a_compiled_function_gives_dictionaries_of_any_keys():
    """Keys that Python does not read as they print ended the second call."""
    f = fgrad.jit(lambda x: {Part.BODY: x + 1, Part.HEAD: (x,)})
    for _ in range(3):
        out = f(1.0)
        assert out[Part.BODY] == 2 and out[Part.HEAD][0] == 1


def test_a_pytree_whose_fields_are_not_declared_is_refused():
    with pytest.raises(ArgumentError, match="finds no fields in Layer") as error:
        @fgrad.pytree
        class Layer:
            def __init__(self, w):
                self.w = w
    assert "`w: object`" in str(error.value)


def test_a_pytree_without_fields_is_one_without_leaves():
    @fgrad.pytree
    class Nothing:
        pass

    assert tree.leaves(Nothing()) == []


def test_a_structure_makes_trees_and_takes_others_apart():
    shape = tree.structure({"a": 0, "b": (0, 0)})
    assert shape.unflatten([1, 2, 3]) == {"a": 1, "b": (2, 3)}
    assert shape.flatten_up_to({"a": [1, 2], "b": (3, {"c": 4})}) == [[1, 2], 3, {"c": 4}]


def test_structures_of_equal_parts_of_other_types_differ():
    x = object()
    assert tree.structure({1: x}) == tree.structure({1: x})
    assert tree.structure({1: x}) != tree.structure({True: x})
    f = fgrad.jit(lambda d: d)
    assert [type(k) for key in (1, True, 1) for k in f({key: 2.0})] == [int, bool, int]


def test_a_namedtuple_that_two_threads_flatten_first_has_one_kind():
    late = namedtuple("late", "x")
    assert tree.register_namedtuple(late) is tree.register_namedtuple(late)
    assert tree.leaves(late(1)) == [1]


def test_map_without_a_function_says_so():
    with pytest.raises(ArgumentError, match="applies a function, not a dict"):
        tree.map({"w": 1}, abs)


def test_what_a_node_keeps_beside_its_leaves_may_be_a_dict():
    """It has no hash, and was refused; JAX's documentation shows classes that do so."""
    @fgrad.tree_util.register_pytree_node_class
    class Scaled:
        def __init__(self, x, **options):
            self.x, self.options = x, options

        def tree_flatten(self):
            return (self.x,), self.options

        @classmethod
        def tree_unflatten(cls, options, children):
            return cls(*children, **options)

    calls = []

    @fgrad.jit
    def f(s):
        calls.append(s)
        return fgrad.tree.map(lambda x: x * s.options["by"][0], s)
    x = fnp.ones(2)
    assert [f(Scaled(x, by=[by])).x.tolist()[0] for by in (2, 3, 2, 3)] == [2, 3, 2, 3]
    assert len(calls) == 2
    assert tree.structure(Scaled(x, a=1, b={2})) == tree.structure(Scaled(x, b={2}, a=1))
    for other in (1.0, True, [1], {1}, {"a": 1}, 2):
        assert tree.structure(Scaled(x, a=1, b={2})) != tree.structure(Scaled(x, a=other, b={2}))
    changed = Scaled(x, by=[2])
    f(changed)
    changed.options["by"][0] = 5
    assert f(changed).x.tolist() == [5, 5] and f(Scaled(x, by=[2])).x.tolist() == [2, 2]
    with pytest.raises(ArgumentError, match="Scaled keeps a ndarray beside its leaves"):
        f(Scaled(x, by=np.ones(2)))
