"""Index expressions: their values, ranges and simplifications, against plain integers."""

import itertools
import random

import pytest

from fgrad import index
from fgrad.index import Space, combine, divide, flat, of, reindex, stride, substitute, text, unflat


def value(x, at):
    """The value of an Ix for loop variables `at`."""
    total = x.const
    for a, c in x.terms:
        if isinstance(a, index.Var):
            total += c * at[a]
        else:
            k = value(a.ix, at)
            total += c * (k // a.n if a.op == "/" else k % a.n)
    return total


def everywhere(*variables):
    for place in itertools.product(*[range(v.extent) for v in variables]):
        yield dict(zip(variables, place))


def test_equal_indices_are_one_object():
    with Space() as space:
        i, j = space.variable(3), space.variable(4)
        assert combine([(of(i), 2), (of(j), 1)], 5) is combine([(of(j), 1), (of(i), 2)], 5)


def test_a_variable_of_extent_1_is_0():
    with Space() as space:
        assert of(space.variable(1)) is of(0)


@pytest.mark.parametrize("seed", range(200))
def test_division_has_the_right_value_and_range(seed):
    rng = random.Random(seed)
    with Space() as space:
        i, j = space.variable(rng.randint(1, 6)), space.variable(rng.randint(1, 6))
        x = combine([(of(i), rng.randint(0, 9)), (of(j), rng.randint(0, 9))], rng.randint(0, 9))
        for _ in range(3):
            n = rng.randint(1, 12)
            q, r = divide(x, n)
            for at in everywhere(i, j):
                k = value(x, at)
                assert (value(q, at), value(r, at)) == (k // n, k % n)
                assert q.lo <= k // n <= q.hi and r.lo <= k % n <= r.hi
            x = q if rng.random() < 0.5 else r


def test_reshapes_that_keep_axes_need_no_division():
    with Space() as space:
        at = tuple(of(space.variable(n, name)) for n, name in ((3, "i"), (4, "j"), (5, "k")))
        assert [text(x) for x in reindex(at, (3, 4, 5), (12, 5))] == ["4*i+j", "k"]
        assert [text(x) for x in reindex(at, (3, 4, 5), (3, 1, 20))] == ["i", "0", "5*j+k"]


@pytest.mark.parametrize("old, new", [
    ((6,), (2, 3)), ((2, 3), (3, 2)), ((1, 6), (6, 1)), ((4, 3), (2, 6)), ((), (1, 1)), ((1,), ()),
    ((2, 3, 4), (4, 6)), ((5, 1, 2), (10,))])
def test_reshaped_indices_read_the_same_element(old, new):
    with Space() as space:
        loops = [space.variable(n) for n in new]
        back = reindex(tuple(of(v) for v in loops), new, old)
        for at in everywhere(*loops):
            there = value(flat(tuple(of(v) for v in loops), new), at)
            assert value(flat(back, old), at) == there


def test_reshapes_of_nothing_are_harmless():
    with Space() as space:
        loops = tuple(of(space.variable(n)) for n in (0, 3))
        assert len(reindex(loops, (0, 3), (4, 0, 2))) == 3


def test_substitution_divides_again():
    with Space() as space:
        i, j = space.variable(12, "i"), space.variable(4, "j")
        q, _ = divide(combine([(of(i), 1)], 1), 3)
        inside = substitute(q, {i: combine([(of(j), 3)])}, lambda n: n)
        assert text(inside) == "j"
        assert stride(inside, j) == 1 and index.is_affine(inside, j) and not index.is_affine(q, i)


def test_unflat_undoes_flat():
    with Space() as space:
        at = tuple(of(space.variable(n)) for n in (3, 4, 5))
        assert unflat(flat(at, (3, 4, 5)), (3, 4, 5)) == at


def test_indices_print():
    with Space() as space:
        i, j = space.variable(9, "i"), space.variable(4, "j")
        x = combine([(of(i), 4), (of(j), -1)], 3)
        assert text(x) == "4*i-1*j+3"
        assert text(divide(of(i), 2)[1]) == "(i%2)"


@pytest.mark.parametrize("seed", range(300))
def test_sums_of_digits_have_the_right_value(seed):
    rng = random.Random(seed)
    with Space() as space:
        i, j = space.variable(rng.choice([2, 3, 8])), space.variable(rng.choice([4, 6, 16]))
        x = combine([(of(i), rng.choice([1, 4, 16])), (of(j), rng.choice([1, 2]))])
        parts, rest, unit = [], x, 1
        for _ in range(rng.randint(1, 3)):
            n = rng.choice([2, 3, 4, 8])
            rest, digit = divide(rest, n)
            parts.append((digit, unit * rng.choice([1, 1, 1, 2])))
            unit *= n
        parts.append((rest, unit))
        rng.shuffle(parts)
        k = rng.randint(0, 5)
        y = combine(parts, k)
        for at in everywhere(i, j):
            assert value(y, at) == k + sum(c * value(p, at) for p, c in parts)


def test_digits_have_one_form_however_they_are_taken():
    with Space() as space:
        x = of(space.variable(1000, "x"))
        assert divide(divide(x, 64)[1], 32)[1] is divide(x, 32)[1]
        assert divide(divide(x, 64)[1], 32)[0] is divide(divide(x, 32)[0], 2)[1]
        low, digit = divide(x, 32)[1], divide(divide(x, 32)[0], 2)[1]
        assert combine([(low, 1), (digit, 32)]) is divide(x, 64)[1]
        assert combine([(low, 3), (digit, 96), (divide(x, 64)[0], 192)]) is combine([(x, 3)])


def test_what_is_in_a_step_leaves_a_division():
    with Space() as space:
        i, j = of(space.variable(40, "i")), of(space.variable(16, "j"))
        x = combine([(i, 16), (j, 1)], 32)
        assert [text(y) for y in divide(x, 64)] == ["((i+2)/4)", "16*((i+2)%4)+j"]
        assert divide(x, 16) == (combine([(i, 1)], 2), j)
