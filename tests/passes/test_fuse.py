"""What is stored, and which values share a kernel."""

import itertools
import re
import time

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, lax, ops, passes, show, vjp, vmap
from fgrad.convolution import conv
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.jitted import jit
from fgrad.loop import Contract, Kernel
from fgrad.nn import log_softmax, softmax
from fgrad.loop_check import check_plan
from fgrad.passes.fuse import Attempt, fuse
from fgrad.passes.nests import Nest
from fgrad.passes.pull import Puller
from fgrad.passes.target import Target
from fgrad.types import BOOL, F16, F32, F64, I32, ArrayType
from tests.passes import programs
from tests.passes.checking import GPU, SERIAL, TARGETS, THREADS, assert_plan_agrees
from tests.passes.programs import Build, Random

NHWC = ("NHWC", "HWIO", "NHWC")
ONE_KERNEL = [programs.softmax(5, 7), programs.logsumexp(5, 7), programs.layernorm(5, 7),
              programs.layernorm_gradient(5, 7), programs.transposed_add(5, 7), programs.chain(12)]


@pytest.mark.parametrize("program", ONE_KERNEL, ids=lambda p: p.name)
def test_row_programs_come_out_as_one_kernel(program):
    assert len(assert_plan_agrees(program).steps) == 1


@pytest.mark.parametrize("program", ONE_KERNEL, ids=lambda p: p.name)
@pytest.mark.parametrize("target", [THREADS, GPU], ids=["threads", "gpu"])
def test_row_programs_agree_on_every_target(program, target):
    assert_plan_agrees(program, target)


def contract_of(kernel):
    (statement,) = kernel.body
    assert isinstance(statement, Contract)
    return statement


def test_a_linear_layer_is_one_contraction_with_its_epilogue():
    (kernel,) = assert_plan_agrees(programs.linear_tanh(8, 9, 16)).steps
    statement = contract_of(kernel)
    assert [v.extent for v in (*statement.rows, *statement.columns, *statement.k)] == [8, 16, 9]
    assert [b.name for b in kernel.outputs] == [kernel.outputs[0].name] and len(kernel.outputs) == 1


@pytest.mark.parametrize("shape", [(4, 2, 3, 4), (96,), (2, 48), (1, 32, 3), (6, 16)])
@pytest.mark.parametrize("target", TARGETS)
def test_a_product_whose_result_changes_its_shape_is_one_kernel(shape, target):
    p = Build("f")
    out = p.reshape(p.dot(p.input("a", 8, 9), p.input("b", 9, 12)), shape=shape)
    weight = p.input("c", *shape)
    plan = assert_plan_agrees(p.done(out, p.tanh(p.add(out, weight))), target)
    assert len(plan.steps) == 1


@pytest.mark.parametrize("width, kernels", [(16, 1), (8, 1), (6, 2)])
def test_a_reshaped_product_reads_what_goes_along_its_vectors(width, kernels):
    p = Build("f")
    out = p.reshape(p.dot(p.input("a", 8, 9), p.input("b", 9, 48)), shape=(8, 48 // width, width))
    bias = p.broadcast(p.input("c", width), shape=(8, 48 // width, width), axes=(0, 1))
    assert len(assert_plan_agrees(p.done(p.add(out, bias)), THREADS).steps) == kernels


def test_a_gradient_and_its_optimizer_update_are_one_kernel_with_three_results():
    plan = assert_plan_agrees(programs.adam(9, 12, 8), donate=(2, 3, 4))
    (kernel,) = plan.steps
    assert len(kernel.outputs) == 3 and len(kernel.aliases) == 3 and len(plan.donated) == 3


def test_a_sum_of_broadcast_factors_is_a_contraction_too():
    p = Build("f")
    x, w = p.input("x", 8, 9), p.input("w", 9, 16)
    a = p.broadcast(x, shape=(8, 9, 16), axes=(2,))
    b = p.broadcast(w, shape=(8, 9, 16), axes=(0,))
    plan = assert_plan_agrees(p.done(p.mul(p.reduce_sum(p.mul(a, p.mul(b, 3.0)), axes=(1,)), 0.5)))
    contract_of(plan.steps[0])


@pytest.mark.parametrize("lhs, rhs, to, a, b", [
    ("ij", "jk", "ik", (8, 9), (9, 16)), ("ji", "jk", "ik", (9, 8), (9, 16)),
    ("ij", "kj", "ik", (8, 9), (16, 9)),
    ("ij", "jk", "ki", (8, 9), (9, 16)), ("bij", "bjk", "bik", (3, 8, 9), (3, 9, 8)),
    ("bij", "jk", "bik", (3, 8, 9), (9, 8)), ("ibj", "kbj", "bik", (8, 3, 9), (8, 3, 9)),
    ("ijk", "jkl", "il", (8, 3, 4), (3, 4, 8))])
@pytest.mark.parametrize("dtype", [F32, F64, F16, I32], ids=str)
def test_products_of_any_labels_are_contractions(lhs, rhs, to, a, b, dtype):
    p = Build("f")
    x, y = p.input("x", *a, dtype=dtype), p.input("y", *b, dtype=dtype)
    plan = assert_plan_agrees(p.done(p.dot_general(x, y, lhs=lhs, rhs=rhs, to=to)))
    contract_of(plan.steps[0])


@pytest.mark.parametrize("shape", [((1, 50), (50, 40)), ((40, 50), (50, 1)), ((2, 3), (3, 4))])
def test_small_products_and_products_with_a_vector_are_loops(shape):
    p = Build("f")
    x, y = p.input("x", *shape[0]), p.input("y", *shape[1])
    plan = assert_plan_agrees(p.done(p.dot(x, y)))
    assert not isinstance(plan.steps[0].body[0], Contract)


def test_a_dear_prologue_is_stored_and_a_cheap_one_packed():
    p = Build("f")
    x, w, u = p.input("x", 16, 8), p.input("w", 8, 600), p.input("u", 8, 600)
    cheap, dear = p.max(x, 0.0), p.exp(p.max(x, 0.0))
    plan = assert_plan_agrees(p.done(p.dot(cheap, w), p.dot(dear, u)))
    assert len(plan.steps) == 3 and plan.steps[-1].params[0].name != "x"


@pytest.mark.parametrize("m, n, k, both, rhs, stored", [
    (4, 5, 100, True, "jk", True), (4, 40, 100, False, "jk", True),
    (4, 40, 100, True, "jk", False),               # many columns, of which something is computed
    (4, 5, 100, True, "kj", False),                # read across, whatever is stored
    (4, 5, 50, True, "jk", False), (20, 5, 100, True, "jk", False)])
def test_operands_of_dot_products_are_there(m, n, k, both, rhs, stored):
    """Else they were packed, and turned: the covariance of 3 rows took four times as long."""
    p = Build("f")
    x, y = p.input("x", 3, m, k), p.input("y", 3, *((n, k) if rhs == "jk" else (k, n)))
    x, y = p.max(x, 0.0), p.max(y, 0.0) if both else y
    program = p.done(p.dot_general(x, y, lhs="bik", rhs="b" + rhs, to="bij"))
    *before, last = assert_plan_agrees(program).steps
    assert bool(before) == stored
    sides = contract_of(last).a, contract_of(last).b
    assert all(side.op == "load" for side in sides) == stored
    assert len(assert_plan_agrees(program, GPU).steps) == 1


def test_what_is_multiplied_with_itself_is_stored_once():
    p = Build("covariance")
    x = p.input("x", 3, 200)
    mean = p.div(p.reduce_sum(x, axes=(1,)), 200.0)
    less = p.sub(x, p.broadcast(mean, shape=x.shape, axes=(1,)))
    turned = p.transpose(less, perm=(1, 0))
    plan = assert_plan_agrees(p.done(p.dot_general(less, turned, lhs="ik", rhs="kj", to="ij")))
    *_, before, last = plan.steps
    made = contract_of(last)
    assert {side.data[0] for side in (made.a, made.b)} == set(before.outputs)


def test_attention_is_two_products_and_one_kernel_of_rows():
    p = Build("attention")
    q, k, v = (p.input(name, 6, 16, 8) for name in "qkv")
    s = p.dot_general(q, k, lhs="bij", rhs="bkj", to="bik")
    rows = lambda x: p.broadcast(x, shape=s.shape, axes=(2,))
    e = p.exp(p.sub(s, rows(p.reduce_max(s, axes=(2,)))))
    weights = p.div(e, rows(p.reduce_sum(e, axes=(2,))))
    out = p.dot_general(weights, v, lhs="bij", rhs="bjk", to="bik")
    first, middle, last = assert_plan_agrees(p.done(out)).steps
    contract_of(first), contract_of(last)
    assert len(middle.outputs) == 2


def test_a_reduction_that_a_loop_would_repeat_is_stored():
    p = Build("f")
    x = p.input("x", 6, 7)
    s = p.reduce_sum(x, axes=(0,))
    out = p.mul(x, p.broadcast(p.exp(s), shape=(6, 7), axes=(0,)))
    assert len(assert_plan_agrees(p.done(out)).steps) == 3     # sums, exp, product


def test_the_gradient_of_second_differences_computes_what_is_dear_once():
    """Each element was read at four places, half of them under a minus sign."""
    def loss(x):
        return fnp.sum(fnp.tanh(fnp.diff(x, n=2)) ** 2)
    plan = assert_plan_agrees(stage(grad(loss), [ArrayType(F32, (40,))]).program)
    assert str(plan).count("tanh(") <= 2


@pytest.mark.parametrize("function, shape", [
    (lambda x: fnp.sum(x / fnp.max(x, 2, keepdims=True), axis=(1, 2)), (5, 6, 7)),
    (lambda x: fnp.sum((x / fnp.max(x, 0)).reshape(12, 9), axis=0), (6, 2, 9)),
    (lambda x: fnp.sum(fnp.repeat(fnp.max(x, axis=1), 3)), (6, 7)),
    (lambda x: fnp.sum(fnp.take(fnp.max(x, 1), fnp.array([0, 1] * 9))), (6, 7))],
    ids=["of two axes", "reshaped", "repeated", "gathered"])
def test_what_some_of_the_loops_of_a_sum_know_is_computed_once(function, shape):
    """The maxima were found again for each element of a row: 40 times as long."""
    plan = assert_plan_agrees(stage(function, [ArrayType(F32, shape)]).program)
    assert len(plan.steps) == 2 and "max=" not in str(plan.steps[1])


def test_a_reduction_under_a_guard_is_stored_or_guarded_inside():
    p = Build("f")
    x = p.input("x", 6, 7)
    padded = p.pad(p.reduce_sum(x, axes=(1,)), 0.0, low=(2,), high=(1,), interior=(0,))
    top = p.pad(p.convert(p.argmax(x, axis=1), dtype=F32), 0.0, low=(0,), high=(3,), interior=(0,))
    assert_plan_agrees(p.done(p.mul(padded, top)))


def test_deep_chains_are_cut_and_need_no_recursion():
    started = time.perf_counter()
    plan = assert_plan_agrees(programs.chain(2000, size=1))
    assert 5 <= len(plan.steps) <= 60
    assert time.perf_counter() - started < 5


def test_a_caller_deep_in_pythons_stack_may_compile():
    def deep(n):
        return passes.plan(programs.chain(200)) if n == 0 else deep(n - 1)
    assert str(deep(500)) == str(deep(0))


def test_a_squared_chain_does_not_explode():
    p = Build("f")
    a = p.input("x", 3)
    for _ in range(60):
        a = p.mul(p.tanh(a), a)
    plan = assert_plan_agrees(p.done(p.pad(a, 0.0, low=(1,), high=(1,), interior=(0,))))
    assert len(str(plan)) < 20000


@pytest.mark.parametrize("n", [200, 1600])
def test_fusing_takes_linear_time(n):
    program = programs.blocks(n)
    started = time.process_time()
    fuse(program, SERIAL)
    assert time.process_time() - started < 1e-3 * len(program.eqns) + 0.1


def test_empty_results_need_no_kernel():
    p = Build("f")
    x = p.input("x", 0, 4)
    sums, tops = p.reduce_sum(x, axes=(0,)), p.reduce_max(x, axes=(0,))
    plan = assert_plan_agrees(p.done(p.exp(x), sums, tops))
    assert all(b.type.size for s in plan.steps for b in s.outputs)


def test_results_may_be_inputs_and_each_other():
    p = Build("f")
    x = p.input("x", 4)
    y = p.exp(x)
    plan = assert_plan_agrees(p.done(x, y, y))
    assert plan.outputs[0] is plan.inputs[0] and plan.outputs[1] is plan.outputs[2]


def test_every_value_is_stored_once():
    fused = fuse(programs.blocks(100), Target())
    made = [r.value for s in fused.steps if isinstance(s, Nest) for r in s.roots]
    assert len(made) == len(set(made))


@pytest.mark.parametrize("seed", range(240))
def test_random_programs_agree_with_numpy(seed):
    program = Random(seed, (F32, F64, I32, F16)[seed % 4]).program()
    donate = range(len(program.inputs)) if seed % 2 else ()
    plan = assert_plan_agrees(program, TARGETS[seed % 3], tuple(donate), seed, length=400, slack=20)
    assert all(isinstance(s, Kernel) for s in plan.steps)


def test_a_row_that_is_stored_and_summed_keeps_its_loops_apart():
    """Merging rows and columns around a sum over columns made each row's sum one element."""
    def f(x):
        h = fnp.sin(x)
        return h, h + fnp.sum(h, 1, keepdims=True)
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    for got, want in zip(jit(f)(x), f(x)):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_an_update_joins_the_product_that_gives_its_gradient():
    """The step's count, which comes late in the program, held the update back."""
    def step(w, m, count, x, y):
        grad = x.T @ y
        count = count + 1
        m = 0.9 * m + 0.1 * grad
        return w - m / (1 - 0.9 ** count), m, count
    shapes = [(48, 32), (48, 32), (), (64, 48), (64, 32)]
    fused = fuse(stage(step, [ArrayType(F32, s) for s in shapes]).program, Target())
    assert sorted(len(s.roots) for s in fused.steps) == [2, 2]
    arrays = [np.random.default_rng(1).random(s, np.float32) for s in shapes]
    for got, want in zip(jit(step)(*arrays), step(*arrays)):
        np.testing.assert_allclose(got, want, rtol=1e-4)


def test_a_border_of_zeros_is_not_stored_where_products_read_around_it():
    def padded(x, w):
        return conv(x, w, padding=1)
    borders = Target(borders=True)

    def kernels(function, *shapes, target=borders):
        program = stage(function, [ArrayType(F32, s) for s in shapes]).program
        return len(assert_plan_agrees(program, target).steps)
    assert kernels(padded, (2, 4, 5, 16), (3, 3, 16, 6)) == 1
    assert kernels(padded, (2, 4, 5, 16), (3, 3, 16, 6), target=Target()) == 2
    assert kernels(padded, (2, 4, 5, 3), (3, 3, 3, 6)) == 2, "runs of 3 steps are too short"
    assert kernels(lambda x, w: padded(fnp.maximum(x, 0), w), (2, 4, 5, 16), (3, 3, 16, 6)) == 2

    def of_kernel(x, w, ct):
        return vjp(lambda w: padded(x, w), w)[1](ct)[0]
    assert kernels(of_kernel, (2, 7, 9, 16), (3, 3, 16, 6), (2, 7, 9, 6)) == 1
    assert kernels(of_kernel, (2, 7, 9, 16), (3, 3, 16, 6), (2, 7, 9, 6), target=Target()) == 2
    assert kernels(of_kernel, (2, 7, 9, 3), (3, 3, 3, 6), (2, 7, 9, 6)) == 2, "too few channels"
    assert kernels(of_kernel, (2, 7, 4, 16), (3, 3, 16, 6), (2, 7, 4, 6)) == 2, "strips too short"


@pytest.mark.parametrize("width, stored", [(9, (2, 7, 9, 16)), (4, (2, 9, 6, 16))])
def test_what_products_read_around_a_border_is_stored_without_it(width, stored):
    def both(x, w, ct):
        y, pull_back = vjp(lambda w: conv(fnp.maximum(x, 0), w, padding=1), w)
        return y, pull_back(ct)[0]
    shapes = (2, 7, width, 16), (3, 3, 16, 6), (2, 7, width, 6)
    program = stage(both, [ArrayType(F32, s) for s in shapes]).program
    plan = assert_plan_agrees(program, Target(borders=True))
    outputs = [b.type.shape for step in plan.steps for b in step.outputs]
    assert outputs.count(stored) == 1 and len(outputs) == 3


@pytest.mark.parametrize("n, m, k", [(64, 48, 32), (2048, 31, 45), (7, 300, 2), (130, 9, 200)])
@pytest.mark.parametrize("bias_first", [True, False])
def test_a_bias_gradient_is_summed_with_the_product_that_reads_the_same(n, m, k, bias_first):
    def gradients(x, h, ct):
        ct = fnp.where(h > 0, ct, 0)
        if bias_first:
            bias = fnp.sum(ct * 0.5, axis=0)
            return x.T @ ct, bias
        return x.T @ ct, fnp.sum(ct, axis=0, keepdims=True)
    types = [ArrayType(F32, s) for s in [(n, m), (n, k), (n, k)]]
    program = stage(gradients, types).program
    small = n * m * k < 10_000               # the reference computes one element at a time
    made = assert_plan_agrees if small else lambda *args: check_plan(passes.plan(*args))
    (kernel,) = made(program, THREADS).steps
    assert contract_of(kernel).total == "total" and len(kernel.outputs) == 2
    assert len(made(program, Target(totals=False)).steps) > 1
    arrays = [np.random.default_rng(1).standard_normal(t.shape).astype(F32) for t in types]
    for got, want in zip(jit(gradients)(*arrays), gradients(*map(fnp.asarray, arrays))):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


SHAPES = [((64, 48), (48, 32)), ((5, 7), (7, 300)), ((2048, 9), (9, 31)), ((3, 30), (30, 40))]


@pytest.mark.parametrize("shapes", SHAPES)
def test_moments_of_a_product_are_summed_where_it_is_computed(shapes):
    def normed(x, w):
        y = x @ w
        mean = y.mean(0)
        return (y - mean) * 2, mean, fnp.sum(fnp.maximum(y, 0) * 3, axis=0)
    types = [ArrayType(F32, s) for s in shapes]
    program = stage(normed, types).program
    plan = assert_plan_agrees(program, THREADS)
    assert contract_of(plan.steps[0]).sums == ("sum1", "sum2")
    alone = assert_plan_agrees(program, Target(totals=False))
    assert all(not s.sums for k in alone.steps for s in k.body if isinstance(s, Contract))
    arrays = [np.random.default_rng(1).standard_normal(t.shape).astype(F32) for t in types]
    for got, want in zip(jit(normed)(*arrays), normed(*map(fnp.asarray, arrays))):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


def test_moments_of_a_convolution_and_of_its_gradient_are_summed_where_it_is_computed():
    """The sums of a batch norm, and of its gradient, read nothing that is not at hand."""
    def loss(x, w, v):
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)
        y = (y - y.mean((0, 1, 2))) / fnp.sqrt(y.var((0, 1, 2)) + 1e-5)
        y = lax.conv_general_dilated(fnp.maximum(y, 0), v, (1, 1), "SAME", dimension_numbers=NHWC)
        return fnp.sum(y * y)
    shapes = (2, 5, 6, 3), (3, 3, 3, 4), (3, 3, 4, 5)
    gradients = grad(loss, argnums=(0, 1, 2))
    program = stage(gradients, [ArrayType(F32, s) for s in shapes]).program
    contracts = [s for k in assert_plan_agrees(program).steps for s in k.body
                 if isinstance(s, Contract)]
    assert [len(s.sums) for s in contracts if s.sums] == [1, 2]
    arrays = [np.random.default_rng(1).standard_normal(s).astype(F32) for s in shapes]
    for got, want in zip(jit(gradients)(*arrays), gradients(*map(fnp.asarray, arrays))):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_a_sum_of_a_product_does_not_take_the_place_of_what_its_epilogue_reads():
    def f(x, y, bias):
        bias = fnp.exp(bias)
        z = x @ y + bias
        return z, fnp.sum(z, axis=0)
    types = [ArrayType(F32, s) for s in [(64, 48), (48, 32), (32,)]]
    plan = assert_plan_agrees(stage(f, types).program, THREADS)
    assert all(not k.aliases for k in plan.steps if isinstance(k.body[0], Contract))


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_a_sum_runs_through_its_operands_as_they_lie_in_memory(axes):
    """The order in which the axes are named made a product read rows that lie far apart."""
    def f(x, y):
        return fnp.tensordot(x, y, (axes, axes))
    types = [ArrayType(F32, s) for s in [(8, 16, 12), (8, 16, 20)]]
    (kernel,) = assert_plan_agrees(stage(f, types).program).steps
    assert [v.extent for v in contract_of(kernel).k] == [128]


def test_what_several_kernels_would_read_again_from_more_memory_is_stored():
    def f(x, y, z, w):
        v = x + y + z
        return v @ w, v.T @ w, v @ w.T
    types = [ArrayType(F32, (512, 512))] * 4
    first, *products = passes.plan(stage(f, types).program).steps
    assert len(first.params) == 3 and [len(k.params) for k in products] == [2, 2, 2]
    small = [ArrayType(F32, (64, 64))] * 4
    assert len(assert_plan_agrees(stage(f, small).program).steps) == 3
    arrays = [np.random.default_rng(1).standard_normal(t.shape).astype(F32) for t in types]
    for got, want in zip(jit(f)(*arrays), f(*map(fnp.asarray, arrays))):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("target", TARGETS)
def test_what_several_kernels_compute_by_much_work_is_stored(target):
    """A level of a pyramid was computed by all that reads it within other borders: ten times."""
    def down(x, w):
        return lax.conv_general_dilated(x, w, (2, 2), [(2, 2), (2, 2)])

    def up(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), [(2, 3), (2, 3)], lhs_dilation=(2, 2))

    def pyramid(x, w):
        level = down(x, w)
        return down(level, w), x - up(level, w)
    types = [ArrayType(F32, (1, 1, 96, 128)), ArrayType(F32, (1, 1, 5, 5))]
    plan = check_plan(passes.plan(inline(stage(pyramid, types).program), target))
    stored = [str(b.type) for k in plan.steps for b in k.outputs]
    assert any(t in stored for t in ("f32[1,1,48,64]", "f32[1,48,64,1]")), str(plan)
    assert str(plan).count("w[0,0,0,0]") <= 6, str(plan)


def test_what_several_updates_compute_by_much_work_is_stored():
    """The error of a table's interpolation was computed for each of the four places it reads."""
    def f(table, x):
        def loss(table):
            i = fnp.clip((x * 60).astype("int32"), 1, 60)
            t = x * 60 - i
            a, b, c, d = (table[i + k] for k in (-1, 0, 1, 2))
            y = ((((d - a + 3 * (b - c)) * t + 2 * a - 5 * b + 4 * c - d) * t + c - a) * t) / 2 + b
            return fnp.sum(y * y * (1 + y))
        return grad(loss)(table)
    types = [ArrayType(F32, (64,)), ArrayType(F32, (5000,))]
    plan = check_plan(passes.plan(inline(stage(f, types).program)))
    assert "f32[5000]" in [str(b.type) for k in plan.steps for b in k.outputs], str(plan)
    rng = np.random.default_rng(0)
    table, x = rng.standard_normal(64), rng.random(5000)
    np.testing.assert_allclose(jit(f)(table, x), f(*map(fnp.asarray, (table, x))), rtol=1e-9)


@pytest.mark.parametrize("target", TARGETS)
def test_patches_that_are_looked_up_are_stored_for_all_products(target):
    """Each element of a patch was looked up where a product packs it, for each product anew."""
    def convolved(x, w):
        row = fnp.clip(fnp.arange(8)[:, None] + fnp.arange(3) - 1, 0, 7)
        patches = x[:, row[:, None, :, None], row[None, :, None, :]].reshape(2, 8, 8, 45)
        return fnp.sum(fnp.tanh(patches @ w))
    types = [ArrayType(F32, (2, 8, 8, 5)), ArrayType(F32, (45, 6))]
    f = grad(convolved, 1)
    plan = assert_plan_agrees(inline(stage(f, types).program), target, length=1000)
    stored = [k for k in plan.steps if str(k.outputs[0].type) == "f32[2,8,8,3,3,5]"]
    assert len(stored) == 1 and str(plan).count("min(max(") == 2, str(plan)


@pytest.mark.parametrize("target", TARGETS)
def test_of_an_operand_that_is_looked_up_and_repeated_the_small_one_is_stored(target):
    def f(table, k, x):
        w = fnp.broadcast_to(table[k], (5, 9, 12))
        return lax.dot_general(x, w, (((2,), (1,)), ((0,), (0,))))
    types = [ArrayType(F32, (40,)), ArrayType(I32, (9, 12)), ArrayType(F32, (5, 8, 9))]
    plan = assert_plan_agrees(inline(stage(f, types).program), target)
    stored = [str(b.type) for k in plan.steps for b in k.outputs]
    assert stored == ["f32[9,12]", "f32[5,8,12]"], str(plan)


def test_of_a_deep_value_that_is_broadcast_the_small_one_is_stored():
    def f(x):
        row = fnp.sum(x, axis=-1, keepdims=True)
        for _ in range(60):
            row = fnp.sin(row)
        spread = fnp.broadcast_to(row, x.shape)
        return x * spread, fnp.sum(x + spread), fnp.cumsum(x - spread, axis=0)
    plan = assert_plan_agrees(stage(f, [ArrayType(F32, (64, 48))]).program)
    stored = [b.type.shape for kernel in plan.steps for b in kernel.outputs]
    assert stored.count((64, 48)) == 2 and (64,) in [tuple(n for n in s if n > 1) for s in stored]


@pytest.mark.parametrize("columns, kernels", [(128, 2), (1024, 1)])
def test_what_is_gathered_for_a_few_vectors_is_stored(columns, kernels):
    """A pooling flattened before a product of one row: four single reads for each row of w."""
    def dense(x, w):
        return lax.reduce_window(x, -np.inf, lax.max, (2, 2, 1), (2, 2, 1), "VALID").reshape(-1) @ w
    rng = np.random.default_rng(0)
    x, w = [rng.normal(size=s).astype("f4") for s in ((14, 14, 64), (3136, columns))]
    plan = passes.plan(stage(dense, [ArrayType(F32, a.shape) for a in (x, w)]).program, SERIAL)
    assert len(plan.steps) == kernels
    np.testing.assert_allclose(jit(dense)(x, w), dense(x, w), rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize("shape", [(64, 512), (5000, 20), (513, 65)])
def test_columns_are_added_up_as_they_lie_whatever_their_sums_are_broadcast_along(shape):
    """They were gathered, a column for each row of c: 60 times as long for 512 x 512."""
    def scaled(x, c):
        return c / fnp.sum(x, axis=0)[:, None] + fnp.max(x, axis=0)[:, None]
    rng = np.random.default_rng(0)
    x, c = [rng.uniform(0.5, 1.5, s).astype("f4") for s in (shape, (shape[1], 16))]
    text = jit(scaled).lower(x, c).text("loops")
    assert text.count("+=") == text.count("max=") == 1 and "reduce" not in text
    np.testing.assert_allclose(jit(scaled)(x, c), scaled(x, c), rtol=1e-5)


def planned(f, *shapes):
    """The loops of a function of normal numbers, which are compiled as they are computed."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype("f4") for s in shapes]
    np.testing.assert_allclose(jit(f)(*arrays), f(*map(fnp.asarray, arrays)), rtol=1e-4, atol=1e-5)
    return jit(f).lower(*arrays).text("loops")


def test_what_is_apart_along_a_sum_is_read_once_for_all_columns():
    """Σₖ of max(x[k,0] + v[j], 0) by j gathered a column of x for each j: 7 times as long."""
    text = planned(lambda x, v: fnp.sum(fnp.maximum(x[:, :1] + v, 0.0), axis=0), (200, 70), (90,))
    assert "reduce" not in text and text.count("+=") == 1


def test_in_squares_a_maximum_of_rows_does_not_join_as_one_of_columns():
    """That of the second softmax was joined to the first along the wrong axis, and gathered."""
    def divergence(x):
        a, b = log_softmax(x), log_softmax(2 * x)
        return fnp.sin(fnp.mean(fnp.sum(fnp.exp(a) * (a - b), axis=-1)))
    text = str(passes.plan(inline(stage(grad(divergence), [ArrayType(F32, (80, 80))]).program)))
    assert not re.search(r"\w+\[(\w+)\] max= .*a\[\1,", text) and "max=" in text


def test_a_root_is_not_taken_again_for_each_row():
    text = planned(lambda x: x / fnp.sqrt(fnp.sum(x * x, axis=0)), (200, 100))
    assert re.search(r"serial (\w+) in 0..100\n *\w+\[\1] = sqrt", text)


def test_two_gradients_of_biases_may_share_what_they_compute_from_a_total():
    """Their common factor was named, and looked for in every element of the product."""
    def f(x, y):
        return x.T @ y, fnp.sum(y * 0.3, axis=0), fnp.sum(0.3 * y, axis=0)
    types = [ArrayType(F32, s) for s in [(64, 48), (64, 32)]]
    (kernel,) = assert_plan_agrees(stage(f, types).program).steps
    assert contract_of(kernel).total == "total" and len(kernel.outputs) == 3
    arrays = [np.random.default_rng(1).standard_normal(t.shape).astype(F32) for t in types]
    for got, want in zip(jit(f)(*arrays), f(*map(fnp.asarray, arrays))):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_sums_that_only_look_like_those_of_an_operand_stay_their_own():
    def f(x, y):
        product = x.T @ y
        return product, fnp.sum(y * y, axis=0), fnp.max(y, axis=0), fnp.sum(y, axis=0) @ product.T
    types = [ArrayType(F32, s) for s in [(64, 48), (64, 32)]]
    contracts = [s for k in assert_plan_agrees(stage(f, types).program).steps for s in k.body
                 if isinstance(s, Contract)]
    assert [s.total for s in contracts if s.total] == ["total"]


def test_sums_over_the_rows_of_equal_arrays_share_a_kernel():
    """The gradients of a batch norm's shift and scale: the loops of the first were merged ones."""
    def f(ct, x):
        return fnp.sum(ct, axis=(0, 1, 2)), fnp.sum(ct * x, axis=(0, 1, 2)), fnp.sum(x, (0, 1, 2))
    types = [ArrayType(F32, (4, 6, 5, 8))] * 2
    assert len(assert_plan_agrees(stage(f, types).program).steps) == 1


def test_a_sum_joins_the_kernel_that_comes_to_read_the_same():
    """The shift's gradient of a layer norm comes first, and reads only the cotangent."""
    def f(x, gain, ct):
        centred = x - fnp.mean(x, axis=1, keepdims=True)
        shift = fnp.sum(ct, axis=0)
        normal = centred / fnp.sqrt(fnp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
        scale = fnp.sum(ct * normal, axis=0)
        return normal * gain * ct, scale, shift
    types = [ArrayType(F32, s) for s in [(30, 17), (17,), (30, 17)]]
    assert len(assert_plan_agrees(stage(f, types).program).steps) == 1
    assert_plan_agrees(stage(f, types).program, THREADS)


def test_a_sum_that_was_read_does_not_join_a_later_kernel():
    def f(x, y):
        total = fnp.sum(y, axis=0)
        rows = fnp.sum(fnp.exp(x - total), axis=1, keepdims=True)
        return x / rows, fnp.sum(x * y / rows, axis=0), total
    types = [ArrayType(F32, s) for s in [(30, 17), (30, 17)]]
    assert len(assert_plan_agrees(stage(f, types).program).steps) == 2


def test_a_total_does_not_take_the_place_of_an_array_that_its_product_reads():
    def f(x, y, bias):
        bias = fnp.exp(bias)
        return x.T @ y + bias, fnp.sum(y, axis=0)
    types = [ArrayType(F32, s) for s in [(64, 48), (64, 32), (32,)]]
    plan = assert_plan_agrees(stage(f, types).program, THREADS)
    assert all(not k.aliases for k in plan.steps if isinstance(k.body[0], Contract))


def test_what_every_row_would_compute_again_is_stored():
    """Batch norm divided by the square roots of its variances once per row."""
    def f(x, scale, var):
        return x * (scale / fnp.sqrt(var + 1e-5))
    types = [ArrayType(F32, s) for s in [(512, 64), (64,), (64,)]]
    plan = assert_plan_agrees(stage(f, types).program)
    assert [k.outputs[0].type.size for k in plan.steps] == [64, 512 * 64]
    few = [ArrayType(F32, s) for s in [(8, 64), (64,), (64,)]]
    assert len(assert_plan_agrees(stage(f, few).program).steps) == 1


@pytest.mark.parametrize("rows", [1, 2, 20, 70])
@pytest.mark.parametrize("columns", [1, 7, 33])
def test_a_sum_over_the_rows_of_a_kernel_is_not_run_inside_of_their_loop(rows, columns):
    """Every row of e is the same sum over rows; its loop took the name of the one around it."""
    def f(p):
        c = fnp.cos(fnp.arange(rows, dtype="float32"))
        e = fnp.broadcast_to(c, (rows, rows)) @ p
        return c, e
    assert_plan_agrees(stage(f, [ArrayType(F32, (rows, columns))]).program, THREADS)


@pytest.mark.parametrize("shape", [(2, 17), (20, 7), (200, 97)])
def test_the_gradient_of_column_sums_of_a_product(shape):
    def loss(p):
        return fnp.sum(fnp.sum(p @ p.T, 0) * fnp.cos(fnp.arange(len(p), dtype="float32")))
    p = fnp.asarray(np.random.default_rng(0).standard_normal(shape), "float32")
    np.testing.assert_allclose(jit(grad(loss))(p), grad(loss)(p), rtol=1e-4, atol=1e-4)


def rows_of_a_sum(x):
    """A sum over rows in a sum over rows, which was taken for one over columns of a square."""
    v = fnp.sum(x, axis=1)
    u = fnp.sum(v * fnp.sum(fnp.exp(v)))
    d = (v * u)[:, None] * x
    return d - fnp.sum(d, axis=1, keepdims=True)


def shares(x):
    v = fnp.var(x, axis=1)
    return v - fnp.log(fnp.sum(fnp.exp(v)))


def every_pair(x):
    c = fnp.sum(x, axis=1)
    return c, fnp.sum(fnp.sin(x[:, :, None] + c), axis=2)


@pytest.mark.parametrize("shape", [(5, 5), (20, 20), (5, 7), (1, 1)])
@pytest.mark.parametrize("f", [
    rows_of_a_sum, shares, every_pair, grad(lambda x: fnp.sum(shares(x)**2)),
    grad(lambda x: fnp.sum(rows_of_a_sum(x)**2))])
def test_sums_over_axes_of_one_size_are_kept_apart(f, shape):
    """jit(grad(…)) of a softmax of variances of a square was wrong."""
    assert_plan_agrees(stage(f, [ArrayType(F64, shape)]).program, THREADS)


@pytest.mark.parametrize("rows", [17, 16, 5])
def test_what_is_known_before_a_sum_in_parts_is_known_to_the_part_left_over(rows):
    """The kernel of the rows left over read names that only the other one bound."""
    def f(x, y):
        e = fnp.sum(fnp.maximum(x, y)) * 0.01
        e = fnp.exp(e) * fnp.exp(e) + e
        return fnp.sum(e * fnp.maximum(x, y), axis=0)
    types = [ArrayType(F32, s) for s in [(rows, 200), (200,)]]
    assert_plan_agrees(stage(f, types).program, THREADS)


def largest_mean(x):
    weights = fnp.cos(fnp.arange(x.size, dtype=x.dtype).reshape(x.shape))
    return fnp.max(fnp.mean(x, axis=1)) * 3 + fnp.sum(softmax(fnp.exp(-x * x), axis=0) * weights)


def larger_mean(x):
    return fnp.sum(fnp.maximum(fnp.mean(x, axis=0), fnp.mean(fnp.mean(x, axis=1))) ** 2)


@pytest.mark.parametrize("f", [largest_mean, larger_mean])
def test_what_is_compared_with_itself_is_computed_once(f):
    """The largest of some means, computed again in another order, was equal to none of them."""
    for seed in range(12):
        x = fnp.asarray(np.random.default_rng(seed).standard_normal((33, 33)))
        np.testing.assert_allclose(jit(grad(f))(x), grad(f)(x), rtol=1e-9, atol=1e-12)


NEAREST = {
    "sum": lambda x: fnp.sum(x * x, axis=1), "mean": lambda x: fnp.mean(x, axis=1),
    "prod": lambda x: fnp.prod(x, axis=1), "std": lambda x: fnp.std(x, axis=1),
    "matvec": lambda x: x @ x[0], "norm": lambda x: fnp.linalg.norm(x - x[0], axis=1)[1:],
    "quotient": lambda x: (x / fnp.sum(x, axis=1, keepdims=True))[:, 0],
}


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("name", NEAREST)
def test_the_position_of_an_extreme_is_one(name, columns):
    """The extreme of sums of short rows, computed again, was equal to none: argmin gave the size.
    """
    f = jit(lambda x: [g(NEAREST[name](x), axis=0) for g in (fnp.argmin, fnp.argmax)])
    for seed in range(20):
        x = np.random.default_rng(seed).standard_normal((64, columns)).astype(F32)
        values = NEAREST[name](fnp.asarray(x))
        for got, best in zip(f(x), (values.min(), values.max())):
            assert got < values.size
            np.testing.assert_allclose(values[int(got)], best, rtol=1e-5)


def test_quotients_that_are_compared_with_themselves_are_computed_once():
    """In the rest of a row they are divided, in its vectors multiplied: by the last bit another."""
    x = np.zeros((1, 96), F32)
    x[0, :3], x[0, 87] = float.fromhex("0x1.56ece0p+1"), float.fromhex("0x1.5fb2a8p+2")

    def hits(x):
        p = x / fnp.sum(x, axis=1, keepdims=True)
        return p == fnp.max(p, axis=1, keepdims=True)
    assert np.flatnonzero(jit(hits)(x)).tolist() == [87]


SCALED = {
    "matrix": lambda x: x * (1 / fnp.max(fnp.abs(x))),
    "quotient": lambda x: x / fnp.max(fnp.abs(x)),
    "rows": lambda x: x * (1 / fnp.max(fnp.abs(x), axis=1, keepdims=True)),
    "columns": lambda x: x * (1 / fnp.max(fnp.abs(x), axis=0, keepdims=True)),
    "negative": lambda x: -(x * (1 / fnp.max(fnp.abs(x)))),
}


@pytest.mark.parametrize("size", [1e25, 1e-25])
@pytest.mark.parametrize("name", [*SCALED, "constant"])
def test_what_is_scaled_before_a_product_stays_in_range(name, size):
    """Factors that do not know the sum were multiplied behind it: infinity times zero."""
    scaled = SCALED.get(name, lambda x: x * (1 / size))
    x = (np.random.default_rng(0).standard_normal((32, 32)) * size).astype(F32)
    for f in (lambda x: scaled(x) @ scaled(x).T,
              lambda x: fnp.einsum("bij,bkj->bik", *[scaled(x).reshape(2, 16, 32)] * 2)):
        want = f(fnp.asarray(x))
        assert np.isfinite(want).all() and fnp.max(fnp.abs(want)) > 0.1
        np.testing.assert_allclose(jit(f)(x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [5, 64])
def test_reductions_are_computed_once_where_several_passes_read_them(n):
    """A softmax of q @ K.T computed each product three times, one number at a time."""
    p = Build("f")
    q, k = p.input("q", 2, n), p.input("k", 2, 40, n)
    product = p.mul(p.broadcast(q, shape=(2, 40, n), axes=(1,)), k)
    scores = p.reduce_sum(product, axes=(2,))
    best = p.broadcast(p.reduce_max(scores, axes=(1,)), shape=(2, 40), axes=(1,))
    powers = p.exp(p.sub(scores, best))
    total = p.broadcast(p.reduce_sum(powers, axes=(1,)), shape=(2, 40), axes=(1,))
    program = p.done(p.div(powers, total))
    for target in TARGETS:
        plan = assert_plan_agrees(program, target)
        assert str(plan).count(" += (q[") == 1


def normalized(a, v):
    u = a @ v
    return u / fnp.sqrt(fnp.sum(u * u))


def steepest(a, v):
    u = a @ v
    s = v - u * (fnp.sum(v * v) / fnp.sum(v * u))
    return s, fnp.sum(s * s)


def spread(a, v):
    u = a @ v
    return fnp.sum((u - fnp.mean(u)) ** 2)


@pytest.mark.parametrize("f", [normalized, steepest, spread])
@pytest.mark.parametrize("n", [5, 40])
def test_a_product_with_a_vector_is_computed_once(f, n):
    """Each sum over it, and each part of what is divided by its norm, computed it again."""
    program = stage(f, [ArrayType(F64, (n, n)), ArrayType(F64, (n,))]).program
    for target in TARGETS:
        plan = assert_plan_agrees(inline(program), target)
        assert str(plan).count("(a[") == 1


def test_a_row_that_two_sums_read_is_computed_once():
    def f(x, y):
        d = fnp.sum((x[:, None] - y) ** 2, axis=2)
        return fnp.sum(d * 2.0, axis=1), fnp.sum(d * d, axis=1)
    program = stage(f, [ArrayType(F64, (3, 5)), ArrayType(F64, (40, 5))]).program
    for target in TARGETS:
        assert str(assert_plan_agrees(inline(program), target)).count("(a[") == 1


@pytest.mark.parametrize("differentiated", [False, True])
def test_what_is_read_at_ever_more_places_is_stored(differentiated, monkeypatch):
    """Halves of halves of halves: compiling a running sum took time exponential in their number."""
    def f(a, b):
        def step(p, q):
            return p[0] * q[0], p[1] * q[0] + q[1]
        return fnp.sum(lax.associative_scan(step, (fnp.tanh(a), b))[1] ** 2)
    pulls, inside = [], Puller.inside
    monkeypatch.setattr(Puller, "inside", lambda self, v, at: (pulls.append(v), inside(
        self, v, at))[1])
    function = grad(f, (0, 1)) if differentiated else f
    program = inline(stage(function, [ArrayType(F64, (128, 3))] * 2).program)
    passes.plan(program)
    assert len(pulls) < 30 * len(program.eqns)
    small = stage(function, [ArrayType(F64, (33,))] * 2).program
    assert_plan_agrees(inline(small))


def ops_of(plan, op):
    """How often an operation is written in a Plan without its sources."""
    lines = [line.split("│")[0] for line in str(plan).splitlines()]
    return sum(len(re.findall(rf"\b{op}\(", line)) for line in lines)


def forces(x, m):
    d = x[None] - x[:, None]
    r2 = fnp.sum(d * d, axis=-1) + 0.01
    return fnp.sum(m[None, :, None] * d * (r2 ** -1.5)[..., None], axis=1)


def forces_by_coordinate(x, m):
    d = x[:, None] - x[:, :, None]
    r2 = fnp.sum(d * d, axis=0) + 0.01
    return -fnp.sum(m * d / (r2 * fnp.sqrt(r2)), axis=-1)


@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads", "gpu"])
@pytest.mark.parametrize("n", [1, 2, 9, 40])
@pytest.mark.parametrize("f, transposed", [(forces, False), (forces_by_coordinate, True)])
@pytest.mark.parametrize("coordinates", [1, 2, 3, 4, 5])
def test_forces_between_points_take_their_distances_once(f, transposed, coordinates, n, target):
    """With the coordinates in the inner loop they were columns of 3, or distances were stored."""
    shape = (coordinates, n) if transposed else (n, coordinates)
    program = inline(stage(f, [ArrayType(F64, shape), ArrayType(F64, (n,))]).program)
    plan = assert_plan_agrees(program, target)
    if coordinates in (2, 3, 4) and n > 4:
        assert len(plan.steps) == 1
        assert sum(ops_of(plan, op) for op in ("pow", "sqrt")) == 1


@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads", "gpu"])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("rows", [1, 9, 200])
def test_a_few_columns_are_added_up_side_by_side(rows, columns, target):
    """Each row was added to what is no vector: 3 to 10 times as long."""
    def f(x, y):
        return fnp.sum(x, axis=0), fnp.max(x, axis=0), y @ x, fnp.var(x, axis=0)
    types = [ArrayType(F32, s) for s in [(rows, columns), (rows,)]]
    plan = assert_plan_agrees(inline(stage(f, types).program), target)
    if target is SERIAL and rows > 9 and columns in (2, 3, 4, 5, 7):
        assert "serial" not in str(plan)
    both = stage(lambda x: fnp.min(x, axis=(0, 1)), [ArrayType(F32, (rows, 2, columns))]).program
    assert_plan_agrees(both, target)


@pytest.mark.parametrize("shape, axes", [
    ((9, 6, 38), (0, 2)), ((4, 3, 5), (2, 0)), ((2, 3, 4), None)], ids=str)
def test_reductions_run_as_the_largest_array_lies_in_memory(shape, axes):
    """The maximum of a transposed array read one element of each row."""
    def f(x):
        return fnp.max(x.T, axis=axes), fnp.sum(x.T * 2, axis=axes)
    plan = assert_plan_agrees(stage(f, [ArrayType(F32, shape)]).program)
    for kernel in plan.steps:
        last = int(re.findall(r"(?:reduce|serial) \w in 0..(\d+)", str(kernel))[-1])
        assert last in (shape[-1], np.prod(shape))


@pytest.mark.parametrize("ways", [[(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)], [(1, 1), (0, -1)]])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (6, 5)])
def test_what_is_moved_to_many_places_is_computed_in_one(ways, shape):
    """Each part of each roll computed the collisions of a lattice gas, behind guards of its own."""
    def f(x, c):
        y = x - (x - fnp.sin(x) * c[:, None, None] * (1 + 3 * x + 4.5 * x * x)) / 0.6
        return fnp.stack([fnp.roll(y[k], way, (0, 1)) for k, way in enumerate(ways)])
    types = [ArrayType(F64, (len(ways), *shape)), ArrayType(F64, (len(ways),))]
    program = inline(stage(f, types).program)
    for target in TARGETS:
        plan = assert_plan_agrees(program, target)
        assert ops_of(plan, "sin") == 1


def test_a_stencil_of_a_stencil_stores_the_first():
    def laplace(u):
        near = fnp.roll(u, 1, 0) + fnp.roll(u, -1, 0) + fnp.roll(u, 1, 1) + fnp.roll(u, -1, 1)
        return u + 0.1 * (near - 4 * u) * u * (1 - u)
    program = inline(stage(lambda u: laplace(laplace(u)), [ArrayType(F64, (6, 7))]).program)
    for target in TARGETS:
        steps = assert_plan_agrees(program, target).steps
        assert len({kernel.name.split("_")[0] for kernel in steps}) == 2


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_the_gradient_of_a_stencil_within_a_border_computes_it_once(mode):
    """Sums of two of its nine moves were stored, and computed the stencil for each move again."""
    def sobel(x):
        p, (n, m) = fnp.pad(x, 1, mode), x.shape
        return sum(k * p[i:i + n, j:j + m] for i, a in enumerate((1, 2, 1))
                   for j, k in enumerate((a, 0, -a)))
    gradient = grad(lambda x: fnp.sum(sobel(x) ** 2))
    program = inline(stage(gradient, [ArrayType(F64, (9, 8))]).program)
    for target in TARGETS:
        plan = assert_plan_agrees(program, target)
        readers = {kernel.name.split("_")[0] for kernel in plan.steps
                   if plan.inputs[0] in kernel.params}
        assert len(readers) == 1


def normed(w, gain, bias, x):
    """A convolution, batch normalization, and the larger of that and 0."""
    y = conv(x, w, padding=1)
    centred = y - fnp.mean(y, axis=(0, 1, 2))
    variance = fnp.mean(centred * centred, axis=(0, 1, 2))
    return fnp.maximum(centred * (gain / fnp.sqrt(variance + 1e-5)) + bias, 0)


def test_what_a_batch_norm_gives_is_stored_once():
    """Of a large one, what the larger of it and 0 needs later is computed of the convolution."""
    def loss(first, second, gain, bias, x):
        return fnp.sum(conv(normed(first, gain, bias, x), second, padding=1) ** 2)
    kernel, vector = fnp.ones((3, 3, 32, 32)), fnp.ones(32)
    text = show(grad(loss, argnums=(0, 1, 2, 3)), kernel, kernel, vector, vector,
                fnp.ones((16, 32, 32, 32)), stage="loops")
    line = next(line for line in text.splitlines() if "max(" in line)
    owner = text[:text.index(line)].rpartition("\nkernel ")[2].splitlines()[0]
    assert owner.partition("->")[2].count("f32[16,32,32,32]") == 1, owner


def test_sums_of_columns_join_no_kernel_of_a_vector():
    """In its loop they would be added up one column after the other."""
    def f(x, v):
        scale = fnp.sqrt(v * v + 1.0)
        return scale, (fnp.exp(x) * scale).sum(0)
    text = show(f, fnp.ones((4096, 48)), fnp.ones(48), stage="loops")
    assert not re.search(r"(parallel|serial) \w+ in 0..48\n(    .*\n)*?    reduce", text), text


@pytest.mark.parametrize("how", ["maximum", "minimum"])
def test_ties_and_nan_share_as_they_did(how):
    x = np.array([1.0, 2.0, 2.0, np.nan, 1.0, np.inf, -0.0], np.float32)
    y = np.array([2.0, 1.0, 2.0, 1.0, np.nan, np.inf, 0.0], np.float32)
    want = [0, 1, 0.5, 0, 0, 0.5, 0.5] if how == "maximum" else [1, 0, 0.5, 0, 0, 0.5, 0.5]

    def left(x, y):
        return grad(lambda x: fnp.sum(getattr(fnp, how)(x, y)))(x)
    for f in (left, jit(left)):
        np.testing.assert_array_equal(np.asarray(f(x, y)), np.float32(want))
        np.testing.assert_array_equal(
            np.asarray(f(y, x)), np.where(np.isnan(x) | np.isnan(y), 0, 1 - np.float32(want)))


def test_what_ranges_say_of_quotients_of_sums_is_seen():
    """A running maximum of an outer product, whose gradient reads it where no interval proves that
    it may; found by a random program."""
    def f(x):
        products = fnp.tensordot(x, x, 0).reshape(-1)
        return fnp.sum(fnp.sin(ops.cummax(products, axis=0, reverse=False)))
    assert_plan_agrees(inline(stage(grad(f), [ArrayType(F64, (2, 2))]).program))


@pytest.mark.parametrize("sums", [
    lambda x, y: fnp.sum(x * x, 0), lambda x, y: fnp.tanh(fnp.sum(x, 0) - y[:, :2]),
    lambda x, y: fnp.sum(x, 0, keepdims=True) * y[:, 1:]])
@pytest.mark.parametrize("target", TARGETS)
def test_columns_go_on_behind_a_short_axis(sums, target):
    """Pairs were added up one by one, from places far from each other: four times as slow."""
    types = [ArrayType(F32, (60, 46, 2)), ArrayType(F32, (46, 3))]
    plan = assert_plan_agrees(inline(stage(sums, types).program), target)
    assert target.kind == "gpu" or "in 0..92" in str(plan), str(plan)


@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_of_sums_of_columns_adds_these_up_first(target):
    """In its loop they would be added up one column after the other: three times as slow."""
    def f(v, x, w):
        return fnp.maximum(v, 0.0) @ x @ w
    types = [ArrayType(F32, shape) for shape in ((3000,), (3000, 28), (28, 1))]
    plan = assert_plan_agrees(inline(stage(f, types).program), target)
    columns = [k for k in plan.steps if k.outputs[0].type.shape == (28,)]
    assert target.kind == "gpu" or len(columns) == 1, str(plan)


RANKS = 400                # nodes of a graph, in tests of what is gathered


def spread_over(i, j, x, y):
    """What a node has, shared out among its edges and added up where they lead to."""
    return fnp.zeros_like(x).at[j].add((x / fnp.maximum(y, 1))[i])


@pytest.mark.parametrize("function", [
    spread_over, lambda i, j, x, y: fnp.exp(x - y)[i] * fnp.sin(y[j]),
    lambda i, j, x, y: fnp.sum((x * y)[i])])
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_gathered_often_is_computed_once(function, target):
    """A quotient of two arrays was computed, from two places, for each edge of a graph."""
    edges, nodes = ArrayType(I32, (16384,)), ArrayType(F32, (RANKS,))
    program = inline(stage(function, [edges, edges, nodes, nodes]).program)
    plan = check_plan(passes.plan(program, target))
    assert any(b.type is nodes for k in plan.steps[:-1] for b in k.outputs), str(plan)
    few = [ArrayType(I32, (30,))] * 2 + [nodes] * 2
    assert_plan_agrees(inline(stage(function, few).program), target)


def pairs_of_rows(boxes, order):
    """What boxes, in some order, have in common with each other."""
    boxes = boxes[order]
    low = fnp.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = fnp.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    return fnp.prod(fnp.maximum(high - low, 0), axis=-1)


@pytest.mark.parametrize("n, lane_by_lane", [(200, False), (80, True)])
def test_rows_that_are_looked_up_for_each_other_one_are_stored(n, lane_by_lane):
    """Each pair looked both up: six times as long.  Of few pairs it takes less than one kernel."""
    types = [ArrayType(F32, (500, 4)), ArrayType(I32, (n,))]
    plan = check_plan(passes.plan(inline(stage(pairs_of_rows, types).program), SERIAL))
    assert ("<" in str(plan.steps[-1])) == lane_by_lane, str(plan)
    few = [ArrayType(F32, (9, 4)), ArrayType(I32, (5,))]
    assert_plan_agrees(inline(stage(pairs_of_rows, few).program), SERIAL)


def test_rows_of_vectors_that_are_looked_up_are_read_where_they_lie():
    """Vectors run along each row: nothing is looked up lane by lane."""
    def f(table, i, x):
        return fnp.sum(table[i][None] * x[:, None], -1)
    types = [ArrayType(F32, (500, 64)), ArrayType(I32, (200,)), ArrayType(F32, (200, 64))]
    plan = check_plan(passes.plan(inline(stage(f, types).program), SERIAL))
    assert not any(b.type.shape == (200, 64) for k in plan.steps for b in k.outputs), str(plan)


def test_few_elements_that_are_dear_to_find_are_stored_before_many_read_them():
    """x f[i] + (1 - x) f[i + 1], f made by irfft: the last stage was computed for each read."""
    def f(z, x, i):
        field = fnp.fft.irfft(z, 64)
        return x * field[i] + (1 - x) * field[(i + 1) % 64]
    rng = np.random.default_rng(0)
    z = (rng.standard_normal(33) + 1j * rng.standard_normal(33)).astype("complex64")
    x, i = rng.random(4000, "f4"), rng.integers(0, 63, 4000)
    assert not re.search(r"<t\d+>/", str(show(f, z, x, i, stage="loops")))
    np.testing.assert_allclose(jit(f)(z, x, i), f(z, x, i), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "symmetric"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_crop_of_a_padded_image_is_read_where_the_padding_is_stored(mode, target):
    """Each element chose among nine parts of the image: 20 times as long."""
    def crop(x, start):
        wide = fnp.pad(x, ((4, 4), (4, 4), (0, 0)), mode=mode)
        return lax.dynamic_slice(wide, (start[0], start[1], 0), (20, 20, 3))
    types = [ArrayType(F32, (5, 20, 20, 3)), ArrayType(I32, (5, 2))]
    program = inline(stage(lambda x, i: vmap(crop)(x, i), types).program)
    plan = assert_plan_agrees(program, target, length=1)
    stored = [b.type for k in plan.steps for b in k.outputs]
    assert (ArrayType(F32, (5, 28, 28, 3)) in stored) == (target.kind == "cpu"), str(plan)


@pytest.mark.parametrize("channels", [1, 3, 0])
def test_a_crop_that_is_mirrored_at_times_is_read_where_the_padding_is_stored(channels):
    """Three channels, a short loop, counted as places in common: each pixel tested eight borders.
    """
    def crop(x, start, mirrored):
        wide = fnp.pad(x, ((4, 4), (4, 4), (0, 0)))
        part = lax.dynamic_slice(wide, (start[0], start[1], 0), (26, 26, channels))
        return fnp.where(mirrored, part[:, ::-1], part)
    types = [ArrayType(F32, (4, 26, 26, channels)), ArrayType(I32, (4, 2)), ArrayType(BOOL, (4,))]
    program = inline(stage(lambda *xs: vmap(crop)(*xs), types).program)
    plan = assert_plan_agrees(program, length=1)
    stored = [b.type for k in plan.steps for b in k.outputs]
    assert (ArrayType(F32, (4, 34, 34, channels)) in stored) == (channels > 0), str(plan)


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_window_needs_at_all_its_places_is_stored(target):
    """Of one channel, no product: each of 81 places of a window computed its elements again."""
    def haar(x):
        a, b = x[:20], x[20:]
        return fnp.stack([a + b, a - b], 1).reshape(40, 30) * 0.5

    def blurred(x, w):
        return conv(haar(x)[None, :, :, None], w, padding="SAME")[0, :, :, 0]
    types = [ArrayType(F32, (40, 30)), ArrayType(F32, (9, 9, 1, 1))]
    plan = assert_plan_agrees(inline(stage(blurred, types).program), target, length=100)
    assert len(plan.steps) > 1 and plan.steps[0].outputs[0].type.size == 48 * 38, str(plan)


@pytest.mark.parametrize("size, kernels", [(1000, 1), (8000, 3)])
def test_a_sum_to_one_number_is_shared_out_by_what_it_costs(size, kernels):
    """Each part of the loop behind it computed all of it: 8000 elements alone are few."""
    def step(x, y):
        along = fnp.sum(y * (4.0 * y - fnp.pad(y, (1, 0))[:-1] - fnp.pad(y, (0, 1))[1:]))
        return x + y / along
    program = inline(stage(step, [ArrayType(F32, (size,))] * 2).program)
    plan = assert_plan_agrees(program, Target(threads=2), length=size)
    assert len(plan.steps) == kernels, str(plan)


def test_a_window_slides_over_what_has_been_gathered():
    """Each place of a window looked up the rows of all: a quarter of the speed."""
    def f(words, table, w):
        return conv(table[words], w, padding="SAME")
    types = [ArrayType(I32, (3, 20)), ArrayType(F32, (50, 8)), ArrayType(F32, (5, 8, 6))]
    plan = assert_plan_agrees(inline(stage(f, types).program), length=100)
    assert len(plan.steps) == 2 and str(plan.steps[0].outputs[0].type) == "f32[3,24,8]", str(plan)


def block(x, start):
    return lax.dynamic_slice(x, (start, 2), (4, 5))


@pytest.mark.parametrize("function", [
    lambda x, i: vmap(lambda s: block(x, s))(i),
    lambda x, i: vmap(block)(fnp.broadcast_to(x, (3, *x.shape)), i),
    lambda x, i: vmap(lambda s: x.at[s].get())(i),
    lambda x, i: fnp.broadcast_to(x, (3, *x.shape))[fnp.arange(3), i]])
def test_blocks_of_every_lane_are_read_in_a_row(function):
    """Their indices were clamped element by element, and looked up one by one."""
    types = [ArrayType(F32, (9, 12)), ArrayType(I32, (3,))]
    plan = assert_plan_agrees(inline(stage(function, types).program))
    assert "i32(" not in str(plan) and str(plan).count("min(max(") == 1, str(plan)


COUNTED = {
    "frames": lambda x, n: x[fnp.arange(5)[:, None] * (n // 8) + fnp.arange(n // 2)],
    "every second": lambda x, n: x[2 * fnp.arange(n // 2)] + x[2 * fnp.arange(n // 2) + 1],
    "from the end": lambda x, n: x[n - 1 - fnp.arange(n)],
    "quotients": lambda x, n: x[fnp.arange(2 * n) // 2] + x[fnp.arange(2 * n) % n],
    "around": lambda x, n: x[(fnp.arange(n) + 1) % n] - x[fnp.arange(n) - 1],
    "edges": lambda x, n: x[fnp.clip(fnp.arange(n) - 2, 0, n - 1)] * x[
        fnp.clip(fnp.arange(n) + 1, 0, n - 1)],
    "least and largest": lambda x, n: x[fnp.minimum(fnp.arange(n) + 1, n - 1)] - x[
        fnp.maximum(fnp.arange(n) - 1, 0)],
    "mirrored": lambda x, n: x[fnp.abs(fnp.arange(n + 3) - 3)],
    "chosen": lambda x, n: x[fnp.where(fnp.arange(n) < 3, fnp.arange(n) + 3, fnp.arange(n) - 3)],
    "both axes": lambda x, n: x.reshape(2, -1)[fnp.arange(2), fnp.arange(2) + 1],
    "blocks": lambda x, n: vmap(lambda i: lax.dynamic_slice(x, (i * 3,), (4,)))(fnp.arange(n // 4)),
}


@pytest.mark.parametrize("what", COUNTED)
@pytest.mark.parametrize("target", TARGETS)
def test_places_that_are_computed_from_counters_are_read_like_slices(what, target):
    """They were looked up one by one: an STFT's frames took twice as long, a stencil's rows six
    times.
    """
    program = inline(stage(lambda x: COUNTED[what](x, 64), [ArrayType(F32, (64,))]).program)
    text = re.sub("│.*", "", str(assert_plan_agrees(program, target)))
    assert not re.search(r"\[[^]]*<", text) and "i32" not in text, text


@pytest.mark.parametrize("what", COUNTED)
@pytest.mark.parametrize("n", [16, 33, 100])
def test_compiled_code_reads_places_that_are_computed_from_counters(what, n):
    n += n % 2 if what == "both axes" else 0
    x = fnp.asarray(np.random.default_rng(n).standard_normal(n))
    f = lambda x: COUNTED[what](x, n)
    np.testing.assert_array_equal(jit(f)(x), f(x))
    got, want = [how(grad(lambda x: fnp.sum(fnp.sin(f(x)))))(x) for how in (jit, lambda f: f)]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)


def test_an_index_at_the_end_of_a_long_chain_is_seen():
    """Behind twelve operations of a kernel one after the other a placeholder stood for it."""
    def f(x):
        i = fnp.arange(64)
        for _ in range(6):
            i = fnp.minimum(i + 1, 63) - 1
        x = x[i]
        for _ in range(10):
            x = x * x
        return x
    text = str(assert_plan_agrees(inline(stage(f, [ArrayType(F32, (64,))]).program)))
    assert not re.search(r"\[[^]]*<", text) and "i32" not in text, text


def test_updates_of_places_in_a_row_are_vectors():
    """x.at[arange] went through a table of places that were clamped."""
    def f(x, y):
        return x.at[fnp.arange(100) + 3].add(y)
    plan = assert_plan_agrees(inline(stage(f, [ArrayType(F32, (120,)),
                                               ArrayType(F32, (100,))]).program))
    assert "min(" not in str(plan) and "lanes" in str(plan.steps[-1]), str(plan)


@pytest.mark.parametrize("target", TARGETS)
def test_every_second_of_every_second_element_is_read_from_what_is_stored(target):
    """Six levels of sums of neighbours read every eighth element one by one."""
    def f(x):
        for _ in range(6):
            a, b = x[::2], x[1::2]
            x = fnp.concatenate([a + b, a - b])
        return x
    plan = assert_plan_agrees(inline(stage(f, [ArrayType(F32, (128,))]).program), target)
    assert not re.search(r"\b(4|8|16|32|64)\*", str(plan)), str(plan)


def running_sum(x):
    """Hillis and Steele's: each step adds what lies twice as far ahead as the step before."""
    d = 1
    while d < x.shape[0]:
        x = x + fnp.concatenate([fnp.zeros(d), x[:-d]])
        d *= 2
    return x


@pytest.mark.parametrize("target", TARGETS, ids=["serial", "threads", "gpu"])
def test_steps_that_meet_a_value_at_two_places_do_not_double_its_work(target):
    """Six steps were one kernel, which added 64 elements for each."""
    program = inline(stage(running_sum, [ArrayType(F32, (4096,))]).program)
    plan = assert_plan_agrees(program, target, length=4096, slack=40)
    longest = max(line.count("[") for line in str(plan).splitlines() if " = " in line)
    assert longest <= 40, str(plan)


@pytest.mark.parametrize("what, stored", [
    (lambda x: fnp.diff(fnp.tanh(x)), True),                       # at its place and the next
    (lambda x: fnp.roll(fnp.tanh(x), 1), False),                   # each at one place
    (lambda x: (lambda y: y[:1000] * y[1000:2000] + y[2000:])(fnp.tanh(x)), False)])
def test_what_is_dear_is_stored_where_elements_need_it_at_two_places(what, stored):
    program = inline(stage(what, [ArrayType(F32, (3000,))]).program)
    plan = assert_plan_agrees(program, SERIAL, length=3000)
    dear = [step for step in plan.steps if "tanh(" in str(step)]
    assert (len(dear) < len(plan.steps)) == stored, str(plan)
    assert not stored or str(plan).count("tanh(") == 1


def test_dear_sums_to_numbers_leave_a_kernel_of_numbers():
    """The gradient by a power was five sums in one thread, since a cheap one came first."""
    def power(mu, c, q):
        def loss(q):
            return fnp.sum(c * mu ** (2 - q) / (2 - q) - c * mu ** (1 - q)) / fnp.sum(c)
        return q - 0.1 * grad(loss)(q)
    two = Target(vector_bytes=64, threads=2, region_cost=2000)
    types = [ArrayType(F32, (5000,)), ArrayType(F32, (5000,)), ArrayType(F32, ())]
    plan = assert_plan_agrees(inline(stage(power, types).program), two)
    shared = [k for k in plan.steps if "pow(" in str(k)]
    assert len(shared) == 1 and "parallel" in str(shared[0])


def test_a_few_multiply_adds_beside_what_is_computed_are_no_product():
    """Each stencil of pairs times 2×2 matrices was a kernel of its own, packed and unpacked."""
    def f(x, a, b):
        near = fnp.roll(x, 1, 0) * 0.5 + fnp.roll(x, -1, 1)
        return near @ a + fnp.sin(x) @ b
    shapes = (20, 20, 2), (2, 2), (2, 2)
    program = inline(stage(f, [ArrayType(F32, s) for s in shapes]).program)
    plan = assert_plan_agrees(program, SERIAL)
    assert not any(isinstance(s, Contract) for k in plan.steps for s in k.body), str(plan)
    program = inline(stage(lambda x, a: x @ a, [ArrayType(F32, s) for s in shapes[:2]]).program)
    (kernel,) = assert_plan_agrees(program, SERIAL).steps
    assert isinstance(kernel.body[0], Contract)


@pytest.mark.parametrize("target", [SERIAL, THREADS], ids=["serial", "threads"])
def test_dear_factors_of_an_operand_are_stored_before_it(target):
    """Spectra were computed for each of the curves they are seen by: the product of a spectrum and
    a curve is no value of the program, and was taken for cheap.
    """
    def f(x, curves, filters):
        spectra = x
        for k in range(12):
            spectra = spectra * x + k
        return fnp.einsum("aw,dw,bw->adb", spectra, curves, filters)
    program = lambda *shapes: inline(stage(f, [ArrayType(F32, s) for s in shapes]).program)
    plan = check_plan(passes.plan(program((60, 160), (7, 160), (8, 160)), target))
    *before, last = plan.steps
    assert [b.type.shape for k in before for b in k.outputs] == [(60, 160)], str(plan)
    assert any(isinstance(s, Contract) for s in last.body)
    assert_plan_agrees(program((30, 19), (7, 19), (8, 19)), target)


def around_an_inverse(x, z, q):
    """`h` is found to be needed by each row of the last result, when all else is in its kernels."""
    gap, k = (x * z).sum(-1), q + z[:, :, None]
    h = (q @ x[..., None])[..., 0]
    return gap, fnp.linalg.inv(k) + h[:, None]


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_that_a_finding_joins_is_the_one_it_was(target):
    """`h` came with a loop of its own, `k` with that of the attempt before."""
    shapes = [(4, 5), (4, 5), (4, 5, 5)]
    program = inline(stage(around_an_inverse, [ArrayType(F32, s) for s in shapes]).program)
    assert_plan_agrees(program, target)


def test_kernels_that_no_finding_touches_are_not_made_again(monkeypatch):
    started, start = [], Attempt.start

    def noted(self, v):
        started.append(v)
        return start(self, v)
    monkeypatch.setattr(Attempt, "start", noted)
    shapes = [(4, 5), (4, 5), (4, 5, 5)]
    program = inline(stage(around_an_inverse, [ArrayType(F32, s) for s in shapes]).program)
    fused = fuse(program, THREADS)
    gap, out = program.outputs
    assert [started.count(v) for v in (gap, out)] == [2, 2]      # gap: also to see what it sums
    kernels = [[r.value for r in s.roots] for s in fused.steps if isinstance(s, Nest)]
    assert gap in kernels[0] and len(kernels[0]) == 3 and kernels[-1] == [out]


def matching(x, y, a):
    """A step of a game: `mean` is a result, and read by every row of a matrix that is small."""
    new = x * fnp.exp(y)
    mean = x + (new / new.sum() - x) / 3.0
    return mean, fnp.min(a @ mean)


def shrunk(x, y, a):
    """A value of a few operations, read by a hundred rows."""
    size = fnp.sqrt((x * x).reshape(-1, 4).sum(1, keepdims=True))
    new = (x.reshape(-1, 4) * fnp.maximum(1 - 0.1 / size, 0)).reshape(-1)
    return new, ((a @ new - y.sum())**2).sum()


@pytest.mark.parametrize("function, dear, times", [(matching, "exp", 2), (shrunk, "sqrt", 1)])
@pytest.mark.parametrize("target", TARGETS)
def test_what_each_row_of_a_small_matrix_reads_is_computed_once(function, dear, times, target):
    """It was computed for each row, where it was part of the kernel of the sums, or small."""
    sizes = [(40,), (40,), (100, 40)]
    program = inline(stage(function, [ArrayType(F32, s) for s in sizes]).program)
    plan = assert_plan_agrees(program, target)
    [line] = [line for line in str(plan).splitlines() if "+=" in line and "c[" in line]
    assert str(plan).count(f"{dear}(") <= times and dear not in line, str(plan)


def test_rows_read_what_their_own_kernel_would_compute_for_each_of_them():
    """The sums over `mean` were over the loop that stores it, so that they need not be read."""
    def play(a, q, mean, s):
        def step(state, k):
            q, mean = state
            new = q * fnp.exp(0.1 * (s @ a))
            q = new / new.sum()
            mean = mean + (q - mean) / (k + 1)
            return (q, mean), fnp.min(a @ mean)
        return lax.scan(step, (q, mean), fnp.arange(3, dtype="float32"))
    inputs = [np.ones(n, "float32") for n in ((50, 40), 40, 40, 50)]
    text = show(jit(play), *inputs, stage="schedule")
    [line] = [line for line in text.splitlines() if line.strip().endswith("a @ mean")]
    assert re.search(r"\+= \(a\[\w,\w\] \* mean\[\w\]\)", line), text


BYTES = {"int8": -128, "uint8": 255, "bool": 1}


@pytest.mark.parametrize("depth", [7, 258, 1024, 1025])
@pytest.mark.parametrize("left, right", [*itertools.product(BYTES, BYTES)])
def test_products_of_bytes_are_exact_and_of_floats_where_these_have_their_sums(left, right, depth):
    a, b = np.full((9, depth), BYTES[left], left), np.full((depth, 33), BYTES[right], right)
    a[1:, ::3], b[::5, 1:] = 1, 0
    multiply = jit(lambda a, b: a.astype("int32") @ b.astype("int32"))
    floats = depth * abs(BYTES[left] * BYTES[right]) <= 1 << 24
    assert np.array_equal(multiply(a, b), a.astype("int32") @ b.astype("int32"))
    assert ("acc: f32" in show(multiply, a, b, stage="schedule")) == floats


def test_bytes_below_zero_wrap_around_in_unsigned_products():
    a, b = np.full((9, 40), -1, "int8"), np.full((40, 33), 3, "uint8")
    multiply = jit(lambda a, b: a.astype("uint32") @ b.astype("uint32"))
    assert np.array_equal(multiply(a, b), a.astype("uint32") @ b.astype("uint32"))
    assert "acc: u32" in show(multiply, a, b, stage="schedule")
