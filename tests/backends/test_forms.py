"""Forms of arguments: what `taker` takes is what flattening gives, and nothing of another form."""

from collections import OrderedDict, defaultdict

from hypothesis import given, strategies as st

from fgrad import tree
from fgrad.backends.forms import ARRAY, FLOAT, Attributes, Same, leaves, taker
from fgrad.native_entry import forms_of
from fgrad.types import F32, ArrayType


@tree.pytree
class Pair:
    a: object
    b: object


class Apart:
    """A call, as far as forms are made of it."""

    def __init__(self, args, key):
        leaves, self.structure = tree.flatten((args, {}))
        self.keys = [key] * len(leaves)


def containers(inner):
    names = st.sampled_from(["w", "b", "a long name", "it's"])
    numbered = st.dictionaries(st.sampled_from([0, 1, 7, -2]), inner, max_size=3)
    named = st.dictionaries(names, inner, max_size=3)
    return st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
                     named, numbered, named.map(OrderedDict), st.builds(Pair, inner, inner),
                     named.map(lambda d: defaultdict(list, d)))


NODES = list, tuple, dict, OrderedDict, defaultdict, Pair, type(None)
trees = st.recursive(st.one_of(st.none(), st.integers(0, 99)), containers, max_leaves=12)


@given(st.lists(trees, max_size=3), st.lists(trees, max_size=3))
def test_what_is_taken_is_what_flattening_gives(args, others):
    forms = forms_of(Apart(tuple(args), ArrayType(F32, ())), args)
    take = taker(forms)
    assert take(tuple(args)) == tree.leaves(args)
    assert len(tree.leaves(args)) == len([leaf for form in forms for leaf in leaves(form)])
    if tree.structure(others) != tree.structure(args):
        found = take(tuple(others))              # a container may stand where an array is expected
        assert found is None or any(type(x) in NODES for x in found)


def test_floats_and_fixed_objects_are_compared_at_once():
    take = taker([FLOAT, Same("sum"), Attributes(Pair, {"a": ARRAY, "b": Same(None)})])
    assert take((0.5, "sum", Pair(1, None))) == [0.5, 1]
    for other in [(1, "sum", Pair(1, None)), (0.5, "mean", Pair(1, None)), (0.5, "sum"),
                  (0.5, "sum", Pair(1, 2)), (0.5, "sum", (1, None))]:
        assert take(other) is None


def test_what_may_equal_is_compared_through_and_through():
    take = taker([Same((1, (0.0, "a")), or_equal=True), ARRAY])
    assert take(((1, (0.0, "".join(["a"]))), 5)) == [5]
    for other in ((True, (0.0, "a")), (1, (-0.0, "a")), (1, (0, "a")), [1, (0.0, "a")], 1):
        assert take((other, 5)) is None
    assert taker([Same((1, 2)), ARRAY])((tuple([1, 2]), 5)) is None


def test_the_order_of_an_ordered_dict_and_the_factory_of_another_belong_to_the_form():
    a, b = OrderedDict(x=1, y=2), OrderedDict(y=2, x=1)
    take = taker(forms_of(Apart((a,), ArrayType(F32, ())), (a,)))
    assert take((a,)) == [1, 2] and take((b,)) is None and take(({"x": 1, "y": 2},)) is None
    d = defaultdict(list, y=2, x=1)
    take = taker(forms_of(Apart((d,), ArrayType(F32, ())), (d,)))
    assert take((defaultdict(list, x=1, y=2),)) == [1, 2]
    assert take((defaultdict(dict, x=1, y=2),)) is None


def test_keys_and_attributes_that_are_gone_are_another_form():
    pair = Pair(1, 2)
    del pair.a
    assert taker([{"w": ARRAY}])(({"v": 1},)) is None
    assert taker([Attributes(Pair, {"a": ARRAY, "b": ARRAY})])((pair,)) is None
