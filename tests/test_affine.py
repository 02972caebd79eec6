"""Integer scalars as indices: affine as a whole, or in pieces; each by its values one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrad import affine, index, piecewise, scalar
from fgrad.index import Space, of
from fgrad.loop import Buffer
from fgrad.scalar import apply, cast, const, index_value, load
from fgrad.types import BOOL, F32, I8, I32, I64, U8, ArrayType

from tests.strategies import examples

COMPARISONS = "lt le gt ge eq ne".split()


@st.composite
def computed(draw):
    """(the extent of a loop, what makes an integer of its variable's node) by random operations."""
    steps = draw(st.lists(st.tuples(
        st.sampled_from("add sub mul div rem min max neg abs select cast twice truth".split()),
        st.integers(-9, 30), st.sampled_from(COMPARISONS), st.booleans()), max_size=5))

    def build(x):
        for op, k, comparison, flip in steps:
            number = const(k, x.dtype)
            if op in ("neg", "abs"):
                x = apply(op, x)
            elif op == "cast":
                x = cast(x, I64 if x.dtype == I32 else I32)
            elif op == "truth":                       # of a number: is it another than 0?
                x = apply("select", cast(x, BOOL), number, cast(cast(x, BOOL), x.dtype))
            elif op == "twice":
                x = apply("add", x, x)
            elif op == "select":
                test = apply(comparison, x, number)
                test = apply("not", test) if flip else test
                test = apply("and", test, apply("ne", test, const(False, BOOL)))
                x = apply("select", test, apply("add", x, const(7, x.dtype)), x)
            else:
                x = apply(op, *((number, x) if flip else (x, number)))
        return x
    return draw(st.integers(1, 24)), build


def values(x, v):
    """The values of an integer node at each place of a loop variable, by NumPy."""
    known = {}
    for n in scalar.walk(x):
        args = [known[a] for a in n.args]
        if n.op == "const":
            known[n] = np.full(v.extent, n.data, n.dtype)
        elif n.op == "index":
            known[n] = np.array([valued(n.data, v, k) for k in range(v.extent)], n.dtype)
        elif n.op == "cast":
            known[n] = args[0].astype(n.dtype)
        else:
            known[n] = scalar.INSTRUCTIONS[n.op].numpy(*args)
    return known[x]


def valued(at, v, k):
    """The value of an Ix where a variable is k."""
    out = index.substitute(at, {v: index.ix({}, k)})
    assert not out.terms
    return out.const


@given(computed(), st.integers(1, 40))
@examples(200)
def test_an_index_is_what_its_scalar_is(program, size):
    extent, build = program
    with Space() as space:
        v = space.variable(extent)
        x = build(index_value(of(v), I32))
        want = values(x, v)
        at = affine.index_of(x)
        if at is not None and not at.nodes:
            assert [valued(at, v, k) for k in range(extent)] == want.tolist()
        parts = piecewise.pieces(x, size)
        got = [[valued(at, v, k) for (t, lo, hi), at in parts if lo <= valued(t, v, k) < hi]
               for k in range(extent)] if parts else []
        assert parts is None or got == [[k] for k in np.clip(want, 0, size - 1).tolist()]


@given(computed(), st.sampled_from(COMPARISONS), st.integers(-9, 60))
@examples(200)
def test_what_is_decided_holds(program, comparison, number):
    extent, build = program
    with Space() as space:
        v = space.variable(extent)
        x = build(index_value(of(v), I32))
        test = apply(comparison, x, const(number, x.dtype))
        known = affine.decided(test)
        assert known is None or (values(test, v) == known).all()


def node(space, make, extent=12):
    """(a loop variable, make(its node)) of a loop of so many iterations."""
    v = space.variable(extent)
    return v, make(index_value(of(v), I32))


def number(k):
    return const(k, I32)


def wrapped(x, n):
    """x % n as Python has it: with the sign of n."""
    rest = apply("rem", x, number(n))
    other = apply("ne", apply("lt", rest, number(0)), const(False, BOOL))
    fix = apply("and", apply("ne", rest, number(0)), other)
    return apply("select", fix, apply("add", rest, number(n)), rest)


@pytest.mark.parametrize("make, want", [
    (lambda x: apply("mul", number(3), apply("add", x, number(2))), lambda v: ({v: 3}, 6)),
    (lambda x: apply("min", x, number(20)), lambda v: ({v: 1}, 0)),
    (lambda x: apply("select", apply("ge", x, number(0)), x, number(5)), lambda v: ({v: 1}, 0)),
    (lambda x: wrapped(x, 12), lambda v: ({v: 1}, 0)),
    (lambda x: cast(apply("lt", x, number(12)), I32), lambda v: ({}, 1)),
    (lambda x: apply("abs", apply("sub", x, number(11))), lambda v: ({v: -1}, 11)),
])
def test_what_is_affine(make, want):
    with Space() as space:
        v, x = node(space, make)
        assert affine.index_of(x) is index.ix(*want(v))


@pytest.mark.parametrize("make, want", [
    (lambda x: apply("sub", x, number(1)), [(0, 1, 0, 0), (1, 12, 1, -1)]),
    (lambda x: wrapped(apply("add", x, number(1)), 12), [(0, 11, 1, 1), (11, 12, 0, 0)]),
    (lambda x: apply("abs", apply("sub", x, number(3))), [(0, 4, -1, 3), (4, 12, 1, -3)]),
    (lambda x: apply("sub", x, number(5)), [(0, 6, 0, 0), (6, 12, 1, -5)]),
])
def test_what_is_affine_in_pieces(make, want):
    with Space() as space:
        v, x = node(space, make)
        assert piecewise.pieces(x, 12) == [
            ((of(v), lo, hi), index.ix({v: slope}, first)) for lo, hi, slope, first in want]


def test_what_is_neither():
    with Space() as space:
        v, i = node(space, lambda x: x)
        w = index_value(of(space.variable(5)), I32)
        s = load(Buffer("s", ArrayType(I32, ()), "input"), index.ix({}))
        many = apply("rem", apply("add", i, number(1)), number(2))
        small = index_value(of(space.variable(200)), U8)
        for x in (s, apply("mul", i, i), apply("add", i, s), apply("div", i, s), apply("xor", i, i),
                  apply("add", small, small), cast(index_value(of(v), F32), I32)):
            assert affine.index_of(x) is None and piecewise.pieces(x, 6) is None
        assert piecewise.pieces(many, 2) is None                 # six pieces are too many
        assert piecewise.pieces(apply("sub", i, w), 12) is None          # of two loops
        assert piecewise.pieces(apply("sub", i, number(1)), 0) is None
        low = index_value(of(space.variable(100)), I8)
        assert piecewise.pieces(apply("add", low, const(100, I8)), 12) is None     # it would wrap


def test_a_long_chain_takes_no_stack():
    with Space() as space:
        v, x = node(space, lambda x: x)
        for k in range(4000):
            x = apply("add" if k % 2 else "sub", x, number(1))
        assert affine.index_of(x) is of(v)
        test = apply("lt", x, number(12))
        for _ in range(60):                                      # in 60 steps, not in 2^60
            test = apply("and", test, test)
        assert affine.decided(test) is True
