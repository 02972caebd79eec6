"""Slots that are read only: what holds an array's shape and dtype."""

import pickle

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import slots


def arrays():
    """Arrays of every class that a CPU has, and what traces see."""
    x = fnp.arange(4.0)
    return [x, x.astype("bfloat16"), fgrad.jit(lambda x: x + 1)(x),
            pickle.loads(pickle.dumps(x)), fnp.asarray(np.float32(2))]


@pytest.mark.parametrize("name, value", [("shape", (10**9,)), ("dtype", np.dtype("int32"))])
def test_shape_and_dtype_of_an_array_cannot_be_assigned(name, value):
    for x in arrays():
        before = x.shape, x.dtype
        with pytest.raises(AttributeError):
            setattr(x, name, value)
        with pytest.raises(AttributeError):
            delattr(x, name)
        assert (x.shape, x.dtype) == before


def test_a_traced_value_has_no_other_shape_either():
    def f(x):
        x.shape = (2, 2)
        return x.sum()

    for transform in (fgrad.jit, fgrad.grad, fgrad.vmap):
        with pytest.raises(AttributeError):
            transform(f)(fnp.ones((4,)))


class Point:
    __slots__ = ("_x", "_y")

    def __init__(self, x, y):
        self._x, self._y = x, y


@pytest.mark.parametrize("with_c", [True, False])
def test_slots_are_read_and_not_written(with_c, monkeypatch):
    if not with_c:
        monkeypatch.setattr(slots, "NEW_MEMBER", None)
    made = type("Point", (Point,), {"__slots__": ("_z",)})
    slots.read_only(made, "x", "y", "z")
    p = made(1, [2])
    p._z = None
    assert (p.x, p.y, p.z) == (1, [2], None)
    p._x = 5
    assert p.x == 5
    for name in "xyz":
        with pytest.raises(AttributeError):
            setattr(p, name, 3)


def test_a_slot_that_holds_nothing_is_an_attribute_error():
    made = type("Point", (Point,), {"__slots__": ()})
    slots.read_only(made, "x")
    with pytest.raises(AttributeError):
        object.__new__(made).x
