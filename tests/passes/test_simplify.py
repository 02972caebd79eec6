from math import inf

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import grad, jit, lax, ops, vmap
from fgrad.backends.reference import run_program
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.passes.share import share
from fgrad.passes.simplify import COMBINED, simplify
from fgrad.scalar import highest, lowest
from fgrad.types import BF16, BOOL, F16, F32, I8, I32, ArrayType
from tests.passes.programs import Build, Random, arrays_for
from tests.tolerance import assert_close


def names(program):
    return [eqn.op.name for eqn in program.eqns]


def simplified(write, *shape, dtype=F32):
    p = Build("f")
    x = p.input("x", *shape, dtype=dtype)
    return simplify(p.done(write(p, x))).check()


def column(p, x, k):
    return p.slice(x, start=(0, k), stop=(2, k + 1), stride=(1, 1))


@pytest.mark.parametrize("write, left", [
    (lambda p, x: p.mul(x, 1), []),
    (lambda p, x: p.sub(x, 0), []),
    (lambda p, x: p.div(x, 1), []),
    (lambda p, x: p.neg(p.neg(x)), []),
    (lambda p, x: p.max(x, -inf), []),
    (lambda p, x: p.min(inf, x), []),
    (lambda p, x: p.max(x, inf), ["max"]),
    (lambda p, x: p.mul(x, -1), ["neg"]),
    (lambda p, x: p.add(x, p.neg(x)), ["sub"]),
    (lambda p, x: p.sub(x, p.neg(x)), ["add"]),
    (lambda p, x: p.div(x, 4), ["mul"]),
    (lambda p, x: p.div(x, 3), ["div"]),
    (lambda p, x: p.integer_pow(x, n=2), ["mul"]),
    (lambda p, x: p.transpose(p.transpose(x, perm=(1, 0)), perm=(1, 0)), []),
    (lambda p, x: p.reshape(p.reshape(x, shape=(6,)), shape=(2, 3)), []),
    (lambda p, x: p.broadcast(p.broadcast(x, shape=(2, 3, 4), axes=(2,)),
                              shape=(5, 2, 3, 4), axes=(0,)),
     ["broadcast"]),
    (lambda p, x: p.rev(p.rev(x, axes=(0,)), axes=(0,)), []),
    (lambda p, x: p.reduce_sum(x, axes=()), []),
    (lambda p, x: p.slice(x, start=(0, 0), stop=(2, 3), stride=(1, 1)), []),
    (lambda p, x: p.concatenate(x, axis=0), []),
    (lambda p, x: p.concatenate(column(p, x, 0), column(p, x, 1), column(p, x, 2), axis=1), []),
    (lambda p, x: p.concatenate(column(p, x, 1), column(p, x, 2), axis=1), ["slice"]),
    (lambda p, x: p.concatenate(column(p, x, 1), column(p, x, 0), axis=1),
     ["slice", "slice", "concatenate"]),
    (lambda p, x: p.concatenate(column(p, x, 0), column(p, x, 1), axis=0),
     ["slice", "slice", "concatenate"]),
    (lambda p, x: p.add(x, p.exp(p.full(shape=(2, 3), value=0.0, dtype=F32))), ["full", "add"]),
    (lambda p, x: p.add(x, p.reshape(p.full(shape=(6,), value=2.0, dtype=F32), shape=(2, 3))),
     ["full", "add"]),
])
def test_identities_are_applied(write, left):
    assert names(simplified(write, 2, 3)) == left


@pytest.mark.parametrize("write", [
    lambda p, x: p.add(x, 0.0),              # -0.0 + 0.0 is 0.0
    lambda p, x: p.mul(x, 0.0),              # NaN * 0.0 is NaN
    lambda p, x: p.sub(0.0, x),              # 0.0 - 0.0 is 0.0, -0.0 would be wrong
    lambda p, x: p.div(x, 1e-45),            # its inverse is infinite
])
def test_what_does_not_hold_for_every_float_is_left_alone(write):
    assert len(simplified(write, 3).eqns) == 1


def test_what_is_broadcast_alike_is_computed_before():
    def spread(p, x):
        return p.broadcast(x, shape=(5, 2, 3), axes=(0,))
    one = simplified(lambda p, x: p.div(1.0, p.sqrt(spread(p, x))), 2, 3)
    two = simplified(lambda p, x: p.add(spread(p, x), spread(p, p.exp(x))), 2, 3)
    other = simplified(lambda p, x: p.add(p.broadcast(x, shape=(3, 3), axes=(0,)),
                                          p.broadcast(x, shape=(3, 3), axes=(1,))), 3)
    assert names(one) == ["sqrt", "div", "broadcast"] and one.eqns[1].outs[0].shape == (2, 3)
    assert names(two) == ["exp", "add", "broadcast"]
    assert names(other) == ["broadcast", "broadcast", "add"]


def test_integers_may_lose_their_zeros():
    assert names(simplified(lambda p, x: p.add(x, 0), 3, dtype=I32)) == []
    assert names(simplified(lambda p, x: p.div(x, 4), 3, dtype=I32)) == ["div"]


@pytest.mark.parametrize("dtype", [I32, BOOL, np.dtype("u1"), np.dtype("f8")])
def test_the_least_and_the_greatest_number_bound_nothing(dtype):
    low, high = lowest(dtype), highest(dtype)
    assert names(simplified(lambda p, x: p.max(p.min(x, high), low), 3, dtype=dtype)) == []
    assert names(simplified(lambda p, x: p.min(p.max(x, high), low), 3, dtype=dtype)) == [
        "max", "min"]


def test_dead_equations_go():
    p = Build("f")
    x = p.input("x", 3)
    p.exp(p.sin(x))
    assert names(simplify(p.done(p.cos(x)))) == ["cos"]


def test_a_widening_conversion_in_between_goes_and_a_narrowing_one_stays():
    def there_and_back(start, between):
        return simplified(lambda p, x: p.convert(p.convert(x, dtype=between), dtype=start),
                          3, dtype=start)
    assert names(there_and_back(F16, F32)) == []
    assert names(there_and_back(F32, F16)) == ["convert", "convert"]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_values(seed):
    program = Random(seed, (F32, I32, F16)[seed % 3]).program()
    arrays = arrays_for(program, seed)
    smaller = share(simplify(program)).check()
    assert len(smaller.eqns) <= len(program.eqns)
    for got, want in zip(run_program(smaller, arrays), run_program(program, arrays)):
        np.testing.assert_array_equal(got, want)


def test_a_long_chain_is_simplified_without_recursion():
    p = Build("f")
    x = a = p.input("x", 3)
    for _ in range(5000):
        a = p.neg(p.add(a, x))
    assert len(simplify(p.done(a)).eqns) > 5000


def whole(p, x, start, stop):
    return p.slice(x, start=start, stop=stop, stride=(1,) * len(start))


def interleaved(p, x, y):
    """Elements of x and y [2,3,4] in turn along the middle axis: [2,6,4]."""
    x, y = (p.reshape(a, shape=(2, 3, 1, 4)) for a in (x, y))
    return p.reshape(p.concatenate(x, y, axis=2), shape=(2, 6, 4))


@pytest.mark.parametrize("write, left", [
    (lambda p, x: whole(p, whole(p, x, (0, 1, 0), (2, 3, 4)), (1, 0, 1), (2, 1, 3)), ["slice"]),
    (lambda p, x: whole(p, p.pad(x, 7.0, low=(0, 1, 2), high=(0, 3, 0), interior=(0, 0, 0)),
                        (1, 0, 3), (2, 3, 6)), ["slice", "pad"]),
    (lambda p, x: whole(p, p.pad(x, 7.0, low=(0, 2, 0), high=(0, 0, 0), interior=(0, 0, 0)),
                        (0, 0, 0), (2, 2, 4)), ["full"]),
    (lambda p, x: whole(p, p.concatenate(x, p.neg(x), p.exp(x), axis=1), (0, 4, 1), (2, 8, 3)),
     ["neg", "slice", "exp", "slice", "concatenate"]),
    (lambda p, x: whole(p, p.concatenate(x, p.neg(x), axis=1), (0, 3, 0), (2, 5, 4)),
     ["neg", "slice"]),
    (lambda p, x: whole(p, interleaved(p, x, p.neg(x)), (0, 1, 0), (2, 5, 4)),
     ["neg", "slice", "slice", "reshape", "reshape", "concatenate", "reshape"]),
    (lambda p, x: whole(p, interleaved(p, x, p.neg(x)), (0, 2, 1), (2, 6, 2)),
     ["neg", "slice", "slice", "reshape", "reshape", "concatenate", "reshape"]),
])
def test_parts_of_what_is_moved_are_parts_of_what_it_is_made_of(write, left):
    p = Build("f")
    program = p.done(write(p, p.input("x", 2, 3, 4)))
    smaller = simplify(program).check()
    assert sorted(names(smaller)) == sorted(left)
    (x,) = arrays_for(program, 0)
    np.testing.assert_array_equal(run_program(smaller, [x])[0], run_program(program, [x])[0])


@pytest.mark.parametrize("shifts, stacks", [(1, 1), (2, 2), (3, 1)])
def test_a_stack_that_windows_slide_over_is_put_together_once(shifts, stacks):
    """Each window was a stack of its own, of which 15 were stored: 27 ms for 10."""
    def f(x):
        rows = fnp.stack([x * x, x + 1.0, fnp.exp(x)])
        return sum(rows[:, k:len(x) - 2 + k] for k in range(shifts))
    program = inline(stage(f, [ArrayType("float32", (9,))]).program)
    smaller = simplify(program).check()
    assert names(smaller).count("concatenate") == stacks
    (x,) = arrays_for(program, 0)
    np.testing.assert_array_equal(run_program(smaller, [x])[0], run_program(program, [x])[0])


def crossed(y):
    """Elements in turn with zeros, and a part that begins between two."""
    wide = fnp.stack([y, fnp.zeros_like(y)], 2).reshape(1, 12, *y.shape[2:])
    return wide[:, 1:9]


@pytest.mark.parametrize("read, rows", [
    (lambda y: y[:, 1:4], [3]), (lambda y: (y[:, :1], y[:, 4:, 1:]), [1, 2]),
    (lambda y: y[:, 1:] - y[:, :-1], [6]), (lambda y: y[:, 1:].reshape(1, -1)[:, 3:], [5]),
    (lambda y: (y[:, 1:3], y), [6]), (crossed, [4])])
def test_parts_of_a_convolution_are_no_more_than_all_of_it(read, rows):
    """Each of the parts was a convolution, even of neighbours: that was four times the work."""
    def f(x, w):
        return read(lax.conv_general_dilated(x, w, (1, 1), "SAME",
                                             dimension_numbers=("NHWC", "HWIO", "NHWC")))
    x, w = [np.random.default_rng(0).standard_normal(s).astype("f4")
            for s in ((1, 6, 40, 8), (3, 3, 8, 4))]
    program = simplify(inline(stage(f, [ArrayType(F32, v.shape) for v in (x, w)]).program)).check()
    assert [e.outs[0].shape[1] for e in program.eqns if e.op.name == "conv_general"] == rows
    for got, want in zip(fgrad.tree.leaves(jit(f)(x, w)), fgrad.tree.leaves(f(x, w)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_random_parts_of_interleaved_arrays_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    p = Build("f")
    x = p.input("x", 2, 3, 4)
    y = interleaved(p, x, p.exp(x))
    for _ in range(3):
        start = [int(rng.integers(0, n)) for n in y.shape]
        stop = [int(rng.integers(a + 1, n + 1)) for a, n in zip(start, y.shape)]
        y = whole(p, y, tuple(start), tuple(stop))
        if rng.integers(2):
            y = p.pad(y, 1.5, low=(0, int(rng.integers(3)), 0), high=(1, 0, int(rng.integers(2))),
                      interior=(0, 0, 0))
    program = p.done(y)
    (a,) = arrays_for(program, seed)
    smaller = simplify(program).check()
    np.testing.assert_array_equal(run_program(smaller, [a])[0], run_program(program, [a])[0])


# ---------------------------------------------------------------------------- reductions of stacks

def stacked(p, parts, axis):
    """Arrays along a new axis."""
    def wide(x):
        shape = x.type.shape
        return p.reshape(x, shape=(*shape[:axis], 1, *shape[axis:]))
    return p.concatenate(*map(wide, parts), axis=axis)


def three(p, x):
    return x, p.abs(x), p.mul(x, x)


@pytest.mark.parametrize("write, left", [
    (lambda p, x: p.reduce_max(stacked(p, three(p, x), 0), axes=(0,)), ["max", "max"]),
    (lambda p, x: p.reduce_min(stacked(p, three(p, x), 2), axes=(2,)), ["min", "min"]),
    (lambda p, x: p.reduce_prod(stacked(p, three(p, x), 1), axes=(1,)), ["mul", "mul"]),
    (lambda p, x: p.reduce_max(stacked(p, three(p, x), 1), axes=(0, 1, 2)),
     ["max", "max", "reduce_max"]),
    (lambda p, x: p.reduce_prod(stacked(p, three(p, x), 0), axes=(0, 2)),
     ["mul", "mul", "reduce_prod"]),
    (lambda p, x: p.reduce_max(stacked(p, three(p, x), 1), axes=(2,)),
     ["reshape", "reshape", "reshape", "concatenate", "reduce_max"]),
    (lambda p, x: p.reduce_max(p.concatenate(*three(p, x), axis=0), axes=(0,)),
     ["concatenate", "reduce_max"]),
])
@pytest.mark.parametrize("dtype", [F32, I32])
def test_reductions_of_stacks_combine_their_parts(write, left, dtype):
    p = Build("f")
    program = p.done(write(p, p.input("x", 2, 3, dtype=dtype)))
    smaller = simplify(program).check()
    assert sorted(names(smaller)) == sorted(["abs", "mul", *left])
    (x,) = arrays_for(program, 0)
    np.testing.assert_allclose(run_program(smaller, [x])[0], run_program(program, [x])[0], 1e-6)


@pytest.mark.parametrize("dtype, adds", [(F32, 3), (I32, 2)])
def test_sums_of_stacks_begin_with_zero(dtype, adds):
    def total(*axes):
        return names(simplified(lambda p, x: p.reduce_sum(stacked(p, three(p, x), 1), axes=axes),
                                2, 3, dtype=dtype))
    assert total(1) == ["abs", "mul"] + ["add"] * adds
    assert total(1, 2) == ["abs", "mul", "add", "add", "reduce_sum"]
    zeros = np.full(4, -0.0, np.float32)
    assert not np.signbit(jit(lambda x: fnp.sum(fnp.stack([x, x + x]), axis=0))(zeros)).any()


def test_stacks_of_many_parts_are_reduced_as_they_are():
    def total(count):
        return simplified(lambda p, x: p.reduce_sum(stacked(p, [x, p.abs(x)] * (count // 2), 0),
                                                    axes=(0,)), 3)
    assert names(total(COMBINED)).count("add") == COMBINED
    assert names(total(COMBINED + 2)).count("reduce_sum") == 1


def test_stacks_that_others_than_reductions_read_are_reduced_as_they_are():
    def apart(p, x):
        s = stacked(p, three(p, x), 0)
        wide = p.broadcast(p.reduce_max(s, axes=(0,)), shape=(3, 2, 3), axes=(0,))
        return p.reduce_sum(p.sub(s, wide), axes=(0,))

    def span(p, x):
        s = stacked(p, three(p, x), 0)
        return p.sub(p.reduce_max(s, axes=(0,)), p.reduce_min(s, axes=(0,)))
    assert "reduce_max" in names(simplified(apart, 2, 3))
    assert names(simplified(span, 2, 3)) == ["abs", "mul", "max", "max", "min", "min", "sub"]


def test_short_floats_are_summed_with_one_rounding():
    def reduced(name, dtype):
        return names(simplified(
            lambda p, x: getattr(p, name)(stacked(p, [x, p.neg(x)], 0), axes=(0,)), 3, dtype=dtype))
    for dtype in (F16, BF16):
        assert "reduce_sum" in reduced("reduce_sum", dtype)
        assert "reduce_prod" in reduced("reduce_prod", dtype)
        assert reduced("reduce_max", dtype) == ["neg", "max"]


NAN = [[1.0, np.nan, -np.inf, 4.0], [np.nan, 2.0, -np.inf, 0.5], [3.0, -1.0, -np.inf, np.inf]]


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod", "mean", "any", "all", "var"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 1), None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_stacks_reduce_to_what_numpy_has(name, dtype, axis, keepdims):
    rows = [np.array(r, np.float32) for r in NAN]
    if dtype != "float32":
        rows = [np.nan_to_num(r, posinf=7, neginf=-7).astype(dtype) for r in rows]

    def f(n, *rows):
        return getattr(n, name)(n.stack(rows), axis=axis, keepdims=keepdims)
    with np.errstate(invalid="ignore"):
        want = f(np, *rows)
    got = jit(lambda *rows: f(fnp, *rows))(*rows)
    assert_close(got, np.asarray(want, got.dtype), 12)


@pytest.mark.parametrize("name", ["max", "sum", "prod", "mean", "var"])
def test_gradients_go_through_reductions_of_stacks(name):
    x = np.array([[0.3, -1.0, 2.0], [0.3, 0.7, -0.5]], np.float32)

    def f(x):
        parts = fnp.stack([x, fnp.sin(x), x[::-1], x * 0.3], axis=1)
        return fnp.sum(fnp.sin(getattr(fnp, name)(parts, axis=1)))

    def twice(x):
        return fnp.sum(fnp.square(grad(f)(x)))
    assert_close(jit(grad(f))(x), grad(f)(x), 8)
    assert_close(jit(grad(twice))(x), grad(twice)(x), 64)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("length", [2, 7, 8])
def test_the_gradient_of_every_other_element_is_a_stack(axis, length):
    """It was gathered from arrays with zeros in between: 5 times as long."""
    shape = tuple(length if a == axis else 3 for a in range(3))
    x = np.random.default_rng(0).normal(size=shape).astype("f4")

    def f(x):
        x = fnp.moveaxis(x, axis, 0)
        even, odd = x[::2], x[1::2]
        return fnp.sum(fnp.sin(even[:len(odd)] * odd) * -0.0 + odd) + fnp.sum(even)
    got, want = np.asarray(jit(grad(f))(x)), np.asarray(grad(f)(x))
    assert_close(got, want, 8)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    assert ("pad" in jit(grad(f)).lower(x).text("simplified")) == (length % 2 > 0)


def test_a_product_that_is_read_transposed_only_is_one_with_its_axes_in_that_order():
    x, y = [np.random.default_rng(k).normal(size=s).astype("f4")
            for k, s in enumerate(((3, 4), (4, 5)))]

    def text(f):
        assert_close(jit(f)(x, y), f(x, y), 16)
        return jit(f).lower(x, y).text("simplified")
    assert "transpose" not in text(lambda x, y: fnp.tanh((x @ y).T))
    assert "transpose" in text(lambda x, y: (x @ y).T @ (x @ y))


ONE_EACH = {
    "places of rows": lambda y, u: fnp.zeros((6, 9)).at[fnp.arange(6), y].add(u),
    "of columns": lambda y, u: fnp.zeros((9, 6)).at[y, fnp.arange(6)].set(u),
    "of other numbers": lambda y, u: fnp.full((6, 9), 2.5).at[fnp.arange(6), y].set(u),
    "of lanes": lambda y, u: vmap(lambda k, v: fnp.zeros(9).at[k].add(v))(y, u),
    "dropped": lambda y, u: fnp.zeros((6, 3)).at[fnp.arange(6), y].add(u, mode="drop"),
    "clipped": lambda y, u: fnp.zeros((6, 3)).at[fnp.arange(6), y].add(u, mode="clip"),
    "flags": lambda y, u: fnp.zeros((6, 9), bool).at[fnp.arange(6), y].set(True),
    "a gradient": lambda y, u: grad(lambda x: fnp.sum(
        fnp.take_along_axis(fnp.sin(x), y[:, None], 1)[:, 0] * u))(fnp.ones((6, 9))),
}


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("what", ONE_EACH)
def test_one_update_of_each_row_is_a_comparison(what, dtype):
    """It was an array of zeros, written to, and read again: in a loss of words three times all."""
    f, y = ONE_EACH[what], np.array([0, 8, -1, 3, -9, 5]).astype(dtype)
    if what in ("dropped", "clipped"):
        y = np.array([0, 3, -1, 2, -4, 100]).astype(dtype)
    u = np.array([1.5, -0.0, 2, 3, 4, 5], "float32")
    types = [ArrayType(dtype, (6,)), ArrayType(F32, (6,))]
    program = simplify(inline(stage(f, types).program))
    assert not any(eqn.op.name.startswith("scatter") for eqn in program.eqns), str(program)
    want = np.asarray(f(fnp.array(y), fnp.array(u)))
    got = np.asarray(jit(f)(fnp.array(y), fnp.array(u)))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("f", [
    lambda y, u: fnp.zeros((6, 9)).at[fnp.arange(6) % 3, y].add(u),
    lambda y, u: fnp.zeros((6, 9)).at[fnp.arange(6)[::-1], y].add(u),
    lambda y, u: fnp.zeros((7, 9)).at[fnp.arange(6), y].add(u),
    lambda y, u: fnp.zeros(9).at[y].add(u)])
def test_other_updates_stay(f):
    program = simplify(inline(stage(f, [ArrayType("int32", (6,)), ArrayType(F32, (6,))]).program))
    assert any(eqn.op.name == "scatter_add" for eqn in program.eqns)
    y, u = fnp.array([0, 8, 1, 1, 2, 0]), fnp.ones(6)
    np.testing.assert_array_equal(np.asarray(jit(f)(y, u)), np.asarray(f(y, u)))


def test_numbers_of_8_bits_do_not_count_200_rows():
    """They begin again at -128, and so their rows are clipped to the first."""
    def f(y, u):
        rows = ops.iota(shape=(200,), axis=0, dtype=I8)
        return ops.scatter_add(fnp.zeros((200, 9)), rows, y, u, axes=(0, 1))
    y, u = fnp.arange(200) % 9, fnp.ones(200)
    np.testing.assert_array_equal(np.asarray(jit(f)(y, u)), np.asarray(f(y, u)))


@pytest.mark.parametrize("position", [fnp.argmax, fnp.argmin])
def test_the_position_in_an_axis_of_one_asks_for_nothing(position):
    program = simplify(inline(stage(lambda x: position(fnp.tanh(x), axis=1),
                                    [ArrayType(F32, (7, 1, 5))]).program))
    assert "tanh" not in str(program) and not program.eqns[0].args
    np.testing.assert_array_equal(jit(lambda x: position(x, axis=1))(np.ones((7, 1, 5), "f4")),
                                  np.zeros((7, 5), "i4"))


def test_a_choice_between_a_value_and_itself_without_derivative_is_the_value():
    made = simplify(stage(lambda x, m: ops.select(m, x, fgrad.stop_gradient(x)),
                          [ArrayType(F32, (3,)), ArrayType(BOOL, (3,))]).program)
    assert not made.eqns and made.outputs == made.inputs[:1]


@pytest.mark.parametrize("dtype, n", [("bfloat16", 1000), ("float16", 5000)])
def test_gradients_of_rows_of_16_bits_add_up_in_32(dtype, n):
    """They stopped at 256 of bf16, at 2048 of f16, where one more is rounded away."""
    i = np.zeros(n, np.int32)
    slope = grad(lambda t: fnp.sum(t[i]))
    table = fnp.ones((3, 2), dtype)
    for run in (slope, jit(slope)):
        found = run(table)
        assert found.dtype == table.dtype and found.tolist() == [[n, n], [0, 0], [0, 0]]


def test_a_part_of_a_result_is_read_there():
    """A part of a part is one of the whole; but where the first is a result, it is stored anyway,
    and the whole is computed: each element of it was, again.
    """
    p = Build("f")
    x = p.input("x", 6)
    whole = p.exp(x)
    first = p.slice(whole, start=(1,), stop=(5,), stride=(1,))
    second = p.slice(first, start=(1,), stop=(3,), stride=(1,))
    found = simplify(p.done(first, second)).check()
    assert found.eqns[-1].args[0] is found.outputs[0]
    assert simplify(p.done(second)).check().eqns[-1].args[0] is whole
