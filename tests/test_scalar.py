"""Scalar expressions: sharing, ranges of guards, rewriting, and what each instruction computes."""

import math

import numpy as np
import pytest

from fgrad import affine, index, scalar
from fgrad.index import Space, of, plus
from fgrad.loop import Buffer
from fgrad.scalar import (
    apply, cast, const, guard, held, index_value, load, name, node, reduce, rewrite, walk)
from fgrad.types import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, ArrayType

X = Buffer("x", ArrayType(F32, (4, 5)), "input")


def test_equal_expressions_are_one_node():
    with Space() as space:
        i = of(space.variable(20))
        assert apply("add", load(X, i), const(1, F32)) is apply("add", load(X, i), const(1.0, F32))


def test_constants_are_told_apart_by_bits():
    with Space():
        assert const(0.0, F32) is not const(-0.0, F32)
        assert const(math.nan, F32) is const(math.nan, F32)
        assert const(1, F32) is not const(1, F64)
        assert const(0.1, BF16) is const(0.10009765625, F32)


def test_names_of_one_spelling_at_two_levels_are_two_nodes():
    with Space() as space:
        i = space.variable(3)
        assert name("t", F32, 0).free == 0 and name("t", F32, i.bit).free == i.bit


def test_a_guard_that_always_or_never_holds_is_gone():
    with Space() as space:
        i = of(space.variable(5))
        inside, outside = load(X, i), const(0, F32)
        assert guard([(i, 0, 5)], inside, outside) is inside
        assert guard([(i, 5, 9)], inside, outside) is outside
        assert guard([(i, 0, 0)], inside, outside) is outside
        assert guard([(i, 1, 5)], inside, outside).op == "guard"


def test_reductions_bind_their_variables():
    with Space() as space:
        i = space.variable(4)
        s = reduce("sum", [5], lambda r: load(X, plus(r[0], index.combine([(of(i), 5)]))))
        assert s.op == "reduce" and s.free == i.bit


def test_reductions_over_nothing_are_identities_and_over_one_element_are_it():
    with Space():
        assert reduce("sum", [0], lambda r: load(X, r[0])) is const(0, F32)
        assert reduce("max", [3, 0], lambda r: load(X, r[0])) is const(-math.inf, F32)
        assert reduce("sum", [1], lambda r: load(X, r[0])) is load(X, of(0))


def test_f16_and_bf16_are_dtypes_of_memory_only():
    for dtype in (F16, BF16):
        half = Buffer("h", ArrayType(dtype, (5,)), "input")
        with Space():
            s = reduce("sum", [5], lambda r: load(half, r[0]))
            assert (s.op, s.dtype, s.args[0].dtype) == ("reduce", F32, F32)
            rounded = cast(s, dtype)
            assert rounded.dtype == F32 and rounded.args == (s,)
            assert held(rounded, dtype) is s and held(rounded, F32) is rounded


def test_rewriting_substitutes_indices_and_keeps_origins():
    with Space() as space:
        i, j = space.variable(20, "i"), space.variable(4, "j")
        n = apply("exp", load(X, of(i)))
        n.origin = "v"
        out = rewrite(n, {i: index.combine([(of(j), 5)])}, {}, {})
        assert repr(out) == "exp(x[j,0])" and out.origin == "v"


def test_rewriting_keeps_the_variables_of_reductions_apart():
    with Space() as space:
        i, j = space.variable(5, "i"), space.variable(5, "j")
        at = index.combine([(of(i), 5), (of(j), 1)])
        row = node("reduce", (load(X, at),), ("sum", (j,)), F32)
        moved = rewrite(row, {i: of(j)}, {}, {})         # j of the outside is not that of the sum
        (k,) = moved.data[1]
        assert k is not j and moved.free == j.bit
        assert moved.args[0] is load(X, index.combine([(of(j), 5), (of(k), 1)]))
        all_rows = node("reduce", (row,), ("sum", (i,)), F32)
        out = rewrite(apply("add", row, all_rows), {i: index.of(2)}, {}, {})
        assert out.args[1] is all_rows and out.free == 0


def test_rewriting_moves_the_masks_of_names():
    with Space() as space:
        i, j = space.variable(20), space.variable(4)
        assert rewrite(name("t", F32, i.bit), {i: of(j)}, {}, {}).free == j.bit


def test_walks_are_iterative_and_give_arguments_first():
    with Space():
        n = load(X, of(3))
        for _ in range(20000):
            n = apply("neg", n)
        order = list(walk(n))
        assert len(order) == 20001 and order[0].op == "load" and order[-1] is n
        assert rewrite(n, {}, {order[0]: const(1, F32)}, {}).free == 0


def test_run_time_indices_are_arguments():
    where = Buffer("i", ArrayType(I32, (3,)), "input")
    with Space() as space:
        at = affine.clamped(load(where, of(space.variable(3))), 20)
        n = load(X, at)
        assert (at.lo, at.hi) == (0, 19)
        assert any(m.op == "load" and m.data[0] is where for m in walk(n))


def test_the_text_of_what_is_used_many_times_fits_into_memory():
    x, k = Buffer("x", ArrayType("float32", (8,))), Buffer("k", ArrayType("int32", (8,)))
    with Space():
        at = scalar.load(k, of(Space().variable(8, "i")))
        for _ in range(80):
            at = scalar.apply("add", at, at)
        text = scalar.text(scalar.load(x, index.dynamic(at, 8)))
        assert len(text) < 2 * scalar.LONGEST_TEXT and "operations)" in text
        place = scalar.load(k, index.dynamic(scalar.load(k, index.ix({})), 8))
        for _ in range(80):                      # indices of indices, each in two places
            place = scalar.load(k, index.dynamic(scalar.apply("mul", place, place), 8))
        assert len(scalar.text(place)) < 2 * scalar.LONGEST_TEXT


def test_a_cast_to_the_same_dtype_is_nothing():
    with Space():
        x = load(X, of(0))
        assert cast(x, F32) is x and cast(x, BOOL).dtype == BOOL


@pytest.mark.parametrize("name, args, want", [
    ("div", (np.int32([7, -7, 7, 5]), np.int32([2, 2, -2, 0])), [3, -3, -3, 0]),
    ("rem", (np.int32([7, -7, 7, 5]), np.int32([2, 2, -2, 0])), [1, -1, 1, 0]),
    ("shl", (np.array([1, 1, 1], I8), np.array([3, 8, -1], I8)), [8, 0, 0]),
    ("shr", (np.array([-8, -8, 8], I8), np.array([1, 9, 9], I8)), [-4, -1, 0]),
    ("shr", (np.array([200], U8), np.array([1], U8)), [100]),
    ("max", (np.float32([np.nan, 1]), np.float32([1, np.nan])), [np.nan, np.nan]),
])
def test_instructions_at_their_edges(name, args, want):
    np.testing.assert_array_equal(scalar.INSTRUCTIONS[name].numpy(*args), want)


def test_a_sum_of_indices_is_an_index():
    """What is clamped, numbers and loop variables, as long as the dtype holds the sum."""
    with Space() as space:
        i, s = of(space.variable(20)), Buffer("s", ArrayType(I32, ()), "input")
        start = load(s, index.ix({}))
        low = apply("min", apply("max", start, const(0, I32)), const(7, I32))
        at = index.plus(i, 2)
        assert affine.index_of(index_value(at, I32)) is at
        assert affine.index_of(cast(index_value(at, I32), I64)) is at
        both = affine.index_of(apply("add", low, index_value(i, I32)))
        assert (both.lo, both.hi) == (0, 7 + 19) and both.nodes == (low,)
        less = apply("sub", index_value(i, I32), const(3, I32))
        assert affine.index_of(less) is index.plus(i, -3)
        assert affine.index_of(start) is None and affine.index_of(apply("mul", low, low)) is None
        wide = index_value(of(space.variable(200)), U8)
        assert affine.index_of(apply("add", wide, wide)) is None           # it would wrap
        assert affine.index_of(index_value(i, F32)) is None
        share = apply("min", apply("max", const(0.5, F32), const(0, F32)), const(1, F32))
        assert affine.index_of(apply("select", apply("lt", share, const(1, F32)), low, low)) is None
        twice = start
        for _ in range(60):                                              # in 60 steps, not in 2^60
            twice = apply("add", twice, twice)
        assert affine.index_of(twice) is None
        assert affine.clamped(apply("add", low, index_value(i, I32)), 27) is both
        assert affine.clamped(apply("add", low, index_value(i, I32)), 26) is not both


def test_of_a_guard_the_side_that_is_chosen_is_rewritten():
    with Space() as space:
        i, j = space.variable(10), space.variable(4)
        parts = guard(((of(i), 0, 4),), load(X, of(i)), guard(((of(i), 4, 10),), load(
            X, plus(of(i), 6)), const(0, F32)))
        memo = {}
        assert rewrite(parts, {i: of(j)}, {}, memo) is load(X, of(j))
        assert len(memo) == 2                                            # none of the other side
        assert rewrite(parts, {i: plus(of(j), 4)}, {}, {}) is load(X, plus(of(j), 10))


def test_zeros_that_change_nothing_are_not_added():
    """Of 0.0 and -0.0 the sum is 0.0; a second zero adds nothing to it, nor one to a number."""
    with Space() as space:
        x, zero, minus = load(X, of(space.variable(5))), const(0, F32), const(-0.0, F32)
        once = apply("add", x, zero)
        assert once is not x
        assert apply("add", once, zero) is once and apply("add", zero, once) is once
        assert apply("add", apply("add", x, minus), zero).op == "add"
        assert apply("add", zero, zero) is zero and apply("add", minus, zero).op == "add"
        assert apply("add", apply("add", const(2, F32), x), zero).args == (const(2, F32), x)
        whole = load(Buffer("n", ArrayType(I32, (4,)), "input"), of(space.variable(4)))
        assert apply("add", whole, const(0, I32)) is whole
