"""Programs that random testing found to be wrong once, each in its smallest form."""

import numpy as np

import fgrad.numpy as fnp
from fgrad import lax, ops
from fgrad.interpreters.call import inline
from fgrad.jitted import jit
from fgrad.loop_check import check_plan
from fgrad.passes import plan
from fgrad.transforms import grad, make_ir


def agree(f, *args):
    """Compiled and at once, f gives the same."""
    want, got = f(*map(fnp.asarray, args)), jit(f)(*args)
    for x, y in zip(
        got if isinstance(got, tuple) else (got,),
        want if isinstance(want, tuple) else (want,),
        strict=True,
    ):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6, atol=1e-6)


X = np.linspace(-1, 1, 4, dtype="f4").reshape(4, 1)


def test_padding_a_constant_is_no_constant():
    agree(lambda x: x.at[::2].set(-1), X)
    agree(lambda x: x + ops.pad(fnp.ones(1), 0, low=(1,), high=(2,), interior=(0,)), X)


def test_a_computed_array_without_elements_can_be_sorted():
    agree(lambda x: fnp.sort(fnp.sin(x), axis=0), np.zeros((0, 0), "f4"))


def test_a_place_known_at_run_time_may_be_part_of_an_index_known_outside_of_the_loop():
    def f(x, i):
        y = fnp.sin(x).reshape(12, 2)
        return ops.dynamic_update_slice(y, -y[:8, :1], i, i)
    agree(f, np.linspace(0, 1, 24, dtype="f4").reshape(3, 2, 2, 2), np.int32(1))


def test_arrays_without_elements_have_an_extent_when_they_are_joined():
    agree(lambda x: fnp.stack([x, x]), np.zeros((0,), "f4"))


def test_rows_that_were_gathered_are_convolved_along_their_length():
    """As words of a text are: their vectors are gathered, and the next layer is a convolution."""
    table = np.linspace(-1, 1, 50 * 8, dtype="f4").reshape(50, 8)
    words = np.random.default_rng(0).integers(0, 50, (3, 12))

    def f(table, words):
        kernel = fnp.arange(4 * 8 * 16, dtype="float32").reshape(4, 8, 16) % 5 * 0.25
        return lax.conv_general_dilated(table[words], kernel, (1,), "SAME",
                                        dimension_numbers=("NLC", "LIO", "NLC"))
    agree(f, table, words)
    agree(lambda t, w: grad(lambda t: fnp.mean(f(t, w) ** 2))(t), table, words)
    agree(lambda x: lax.conv_general_dilated(
        x[np.array([-3, 1, 2, 2])], fnp.ones((3, 2, 16)), (1,), [(0, -1)],
        dimension_numbers=("NLC", "LIO", "NLC")), np.resize(table, (4, 7, 2)))


def test_what_stands_under_contradicting_guards_is_never_read():
    x = np.linspace(0.5, 1.5, 63, dtype="f8").reshape(9, 7)
    f = grad(lambda x: fnp.sum(fnp.prod(x, axis=1)))
    check_plan(plan(inline(make_ir(f)(x))))
    agree(f, x)


def test_a_place_read_under_a_guard_is_one_place_for_all_lanes():
    def f(x):
        y = fnp.stack([x, x])
        z = fnp.concatenate([y, y[::-1]], axis=1)
        return z[fnp.clip(z, -2, 1)]
    agree(f, np.array([3, 1], "i4"))
    agree(f, np.arange(9, dtype="i4") - 4)


def test_a_sum_of_one_value_goes_through_all_loops_that_another_result_joins():
    def f(x):
        y = fnp.logaddexp(x @ x.T, 0.0)
        return y[None], fnp.var(y, axis=(0, 1), keepdims=True)
    agree(f, np.zeros((3, 0), "f4"))


def test_closing_over_an_array_and_taking_it_as_an_argument_are_compiled_apart():
    y = fnp.arange(3.0) + 5
    for k in range(3):
        x = fnp.arange(3.0) + k
        closed, taken = jit(lambda: y - 2 * x), jit(lambda x: y - 2 * x)
        for j in range(3):                       # later calls are native
            np.testing.assert_array_equal(closed(), [5 - 2 * k, 4 - 2 * k, 3 - 2 * k])
            np.testing.assert_array_equal(taken(x + j), np.asarray(closed()) - 2 * j)


def test_indices_of_short_rows_that_are_compared_become_numbers():
    """LLVM 22 aborted with AVX-512: it knew that both are 0 in the idle lanes of a vector."""
    def f(x):
        rows = fnp.tile(fnp.arange(5), 2)[fnp.arange(10).reshape(2, 5)]
        return (fnp.arange(5)[x.swapaxes(1, 2)] == rows[:, None, :]).astype("float32")
    agree(f, np.random.default_rng(0).integers(0, 5, (2, 5, 5)).astype("i4"))
