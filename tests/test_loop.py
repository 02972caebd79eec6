"""Loop IR: hand-written kernels print, check and run; malformed ones are refused."""

import numpy as np
import pytest

from fgrad import scalar
from fgrad.backends.reference import run_plan
from fgrad.errors import CheckError
from fgrad.index import Space, combine, divide, of, plus
from fgrad.loop import Accumulate, Buffer, For, Kernel, Let, Plan, Start, Store, Turns
from fgrad.loop_check import check_kernel, check_plan, limits, tried
from fgrad.loop_key import Known, key
from fgrad.records import replace
from fgrad.types import F32, F64, ArrayType


def row_sums(m, n, letter="i", exponential=False):
    """y[i] = sum of row i, by hand."""
    x, y = Buffer("x", ArrayType(F32, (m, n)), "input"), Buffer("y", ArrayType(F32, (m,)), "output")
    space = Space()
    with space:
        i, j = space.variable(m, letter), space.variable(n, "j")
        read = scalar.load(x, combine([(of(i), n), (of(j), 1)]))
        read = scalar.apply("exp", read) if exponential else read
        total = scalar.name("s", F32, i.bit)
        inner = For(j, [Accumulate("s", "sum", read)], "reduce", 8, 4)
        body = [For(i, [Start("s", "sum", F32), inner, Store(y, of(i), total)], "parallel")]
    return Kernel("rows", [x], [y], [], body, space)


def test_a_kernel_prints_as_it_is_read():
    assert str(row_sums(3, 40)) == """\
kernel rows(x: f32[3,40]) -> y: f32[3]
  parallel i in 0..3
    s: f32 = 0.0
    reduce j in 0..40 (8 lanes, 4 at once)
      s += x[i,j]
    y[i] = s"""


def test_a_hand_written_plan_runs():
    kernel = row_sums(3, 5)
    plan = check_plan(Plan("f", kernel.params, kernel.outputs, [], [kernel]))
    x = np.arange(15, dtype=F32).reshape(3, 5)
    (y,) = run_plan(plan, [x])
    np.testing.assert_array_equal(y, x.sum(1))


def broken(change):
    kernel = row_sums(3, 5)
    with kernel.space:
        change(kernel, kernel.body[0])
    return kernel


def store_a_double(kernel, loop):
    loop.body[-1].expr = scalar.const(1, F64)


def read_out_of_bounds(kernel, loop):
    loop.body[-1].expr = scalar.load(kernel.params[0], plus(of(loop.var), 13))


def read_another_name(kernel, loop):
    loop.body[-1].expr = scalar.name("t", F32, loop.var.bit)


def leave_the_loop(kernel, loop):
    kernel.body.insert(0, Store(kernel.outputs[0], of(loop.var), scalar.const(0, F32)))


def store_to_an_input(kernel, loop):
    loop.body[-1].buffer = kernel.params[0]


def follow_the_parallel_loop(kernel, loop):
    kernel.body.append(Let("t", scalar.const(0, F32)))


def name_two_loops_alike(kernel, loop):
    loop.body = [For(kernel.space.variable(2, loop.var.name), loop.body, "serial")]


def feed_by_other_lanes(kernel, loop):
    start, feeding, *rest = loop.body
    again = [feeding, replace(feeding, width=4)]
    loop.body = [start, For(kernel.space.variable(2, "k"), again, "reduce"), *rest]


@pytest.mark.parametrize("change, words", [
    (feed_by_other_lanes, "fed by 4 and 8 lanes"),
    (name_two_loops_alike, "named as something around"),
    (store_a_double, "float64 is stored"), (read_out_of_bounds, "reaches 13..15"),
    (read_another_name, "t is read"), (leave_the_loop, "not open"),
    (store_to_an_input, "no output"), (follow_the_parallel_loop, "follow the parallel loop")],
    ids=lambda c: getattr(c, "__name__", None))
def test_malformed_kernels_are_refused(change, words):
    with pytest.raises(CheckError, match=words):
        check_kernel(broken(change))


def test_a_result_that_nothing_writes_is_refused():
    y = Buffer("y", ArrayType(F32, (3,)), "output")
    with pytest.raises(CheckError, match="nothing writes"):
        check_plan(Plan("f", [], [y], [], []))


def test_overlapping_temporaries_are_refused():
    first, second = row_sums(3, 5), row_sums(3, 5)
    for k in (first, second):
        k.outputs[0].kind = "temporary"
    second.params.append(first.outputs[0])
    a, b = first.outputs[0], second.outputs[0]
    plan = Plan("f", [first.params[0], second.params[0]], [], [], [first, second], {a: 0, b: 0}, 64)
    with pytest.raises(CheckError, match="overlap"):
        check_plan(plan)


def test_ranges_narrow_what_an_index_can_be():
    with Space() as space:
        i, j = space.variable(10, "i"), space.variable(10, "j")
        both = combine([(of(i), 1), (of(j), 1)])
        assert limits(both, ()) == (0, 18)
        assert limits(both, ((of(i), 2, 5),)) == (2, 13)
        assert limits(combine([(both, 3)], 1), ((both, 4, 7),)) == (13, 19)


def test_quotients_of_sums_are_tried_where_ranges_narrow_them_together():
    with Space() as space:
        i, k, j = (space.variable(n, name) for n, name in ((10, "i"), (5, "k"), (2, "l")))
        half = divide(combine([(of(j), 1)], 1), 2)[0]
        x = combine([(divide(combine([(half, 1), (of(k), 1)], 4), 5)[0], 1), (of(i), 1)], -1)
        behind = combine([(of(i), 10), (of(k), 2), (of(j), 1)], -1), 0, 99
        assert limits(x, (behind,))[0] < 0 and tried(x, (behind,)) == (0, 9)
        assert tried(x, ()) == (-1, 9) and tried(x, ((of(i), 3, 3),)) == (0, -1)
        large = [space.variable(1000), space.variable(1000)]
        assert tried(combine([(of(v), 1) for v in large]), ()) is None


def test_kernels_equal_up_to_names_have_one_key():
    assert key(row_sums(3, 5)) == key(row_sums(3, 5, letter="q"))
    assert key(row_sums(3, 5)) != key(row_sums(3, 6))
    assert key(row_sums(3, 5)) != key(row_sums(3, 5, exponential=True))
    other = row_sums(3, 5)
    other.body[0].body[1].width = 4
    assert key(other) != key(row_sums(3, 5))
    other = row_sums(3, 5)
    other.turns = Turns(3, 1, ("a", "b"))
    assert key(other) != key(row_sums(3, 5))


def test_what_is_made_for_kernels_is_made_once_for_equal_ones():
    known, made = Known(), []

    def make(kernel):
        made.append(kernel)
        return len(made)
    kernels = [row_sums(3, 5), row_sums(3, 6), row_sums(3, 5, letter="q"),
               row_sums(3, 5, exponential=True), row_sums(3, 5), row_sums(3, 5, exponential=True)]
    assert [known.get(kernel, make) for kernel in kernels] == [1, 2, 1, 3, 1, 3]
    assert made == [kernels[0], kernels[1], kernels[3]]
