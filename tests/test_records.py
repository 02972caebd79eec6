"""Records: their fields, defaults, equality, and what they refuse."""

import pytest

from fgrad.records import frozen, new, record, replace


@record
class Step:
    name: str
    after: list = new(list)
    cost: int = 1


@frozen
class Tile:
    rows: int
    columns: int = 2


@frozen
class Nothing:
    pass


def test_fields_are_given_in_order_or_by_name():
    step = Step("run", cost=3)
    assert (step.name, step.after, step.cost) == ("run", [], 3)
    with pytest.raises(TypeError, match="Step.__init__"):
        Step()
    with pytest.raises(TypeError, match="color"):
        Tile(1, color=2)


def test_each_record_has_a_new_default_of_its_own():
    one, other = Step("a"), Step("b")
    one.after.append(other)
    assert other.after == [] and Step("c").after == []


def test_a_record_is_equal_to_itself_alone():
    one = Step("a")
    assert one == one and one != Step("a") and len({one, Step("a")}) == 2
    one.name = "b"
    assert one.name == "b"


def test_what_is_frozen_is_compared_by_its_fields():
    assert Tile(4) == Tile(4, 2) and hash(Tile(4)) == hash(Tile(4, 2))
    assert Tile(4) != Tile(5) and Tile(4) != (4, 2)
    assert Nothing() == Nothing() and Nothing() != Tile(1)
    with pytest.raises(AttributeError, match=r"replace\(tile, rows=…\)"):
        Tile(4).rows = 5


def test_replace_gives_another_and_knows_the_fields():
    assert replace(Tile(4, 3), rows=5) == Tile(5, 3)
    step = Step("a")
    assert replace(step, cost=2).after is step.after
    with pytest.raises(TypeError, match="color"):
        replace(step, color=2)


def test_records_are_shown_with_their_fields():
    assert repr(Step("a", cost=2)) == "Step(name='a', after=[], cost=2)"
    assert repr(Nothing()) == "Nothing()"
    match Tile(3):
        case Tile(rows, columns):
            assert (rows, columns) == (3, 2)
