"""Matrices are solved and factorised by loops that compile, as NumPy's routines do it."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import check_grads, grad, jit, lax, ops, passes, source, vmap
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.ir_text import all_programs
from fgrad.loop import Call, Kernel, Loop
from fgrad.ops import fortran
from fgrad.passes.matrices import in_loops
from fgrad.passes.target import Target
from fgrad.scipy.linalg import lu_factor, solve_triangular
from fgrad.types import ArrayType

LOOPS = Target(native_loops=True)
LEADS = [(), (1,), (3,), (16,), (2, 9)]       # 16 matrices and more may be a stack


def lower_half(a, b):
    return solve_triangular(a, b, lower=True)


def upper_half(a, b):
    return solve_triangular(a, b, trans=1, lower=True)


def unit_half(a, b):
    return solve_triangular(a / 9, b, lower=False, unit_diagonal=True)


def positive(a, b):
    return fnp.linalg.cholesky(a @ fnp.matrix_transpose(a) + fnp.eye(a.shape[-1], dtype=a.dtype))


def inverse(a, b):
    return fnp.linalg.inv(a)


def volume(a, b):
    sign, log = fnp.linalg.slogdet(a)
    return fnp.stack([sign, log], -1)


def both_triangles(a, b):
    factors, pivots = lu_factor(a)
    return fnp.concatenate([factors, pivots[..., None]], -1)


def reflections(a, b):
    q, r = fnp.linalg.qr(fnp.concatenate([a, fnp.matrix_transpose(b)], -2))
    return fnp.concatenate([q, r], -2)


def all_reflections(a, b):
    q, r = fnp.linalg.qr(fnp.concatenate([a, b], -1), mode="complete")
    return fnp.concatenate([q, r], -1)


FUNCTIONS = [fnp.linalg.solve, lower_half, upper_half, unit_half, positive, inverse, volume,
             reflections, both_triangles]


def given(lead, n, columns=2, dtype="float32", seed=0):
    """Matrices whose rows have to be exchanged, far from singular, and right-hand sides."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((*lead, n, n)) / n + 3 * np.eye(n)
    if n > 1:
        a = np.where(rng.random((*lead, 1, 1)) < 0.5, a[..., ::-1, :], a)
    a = a + 2 * np.eye(n)
    return a.astype(dtype), rng.standard_normal((*lead, n, columns)).astype(dtype)


def steps_of(plan):
    """The steps of a Plan, those of its loops included."""
    for step in plan.steps:
        yield step
        if isinstance(step, Loop):
            for inner in step.plans:
                yield from steps_of(inner)


def calls(function, *types, target=LOOPS):
    """How many NumPy rules a Plan of the function calls."""
    plan = passes.plan(inline(stage(function, types).program), target)
    return sum(isinstance(s, Call) for s in steps_of(plan))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_compiled_code_gives_what_numpy_gives(function, lead, n):
    a, b = given(lead, n)
    np.testing.assert_allclose(jit(function)(a, b), function(fnp.array(a), b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", [lower_half, upper_half, unit_half, positive])
@pytest.mark.parametrize("lead", [(), (3,)], ids=str)
@pytest.mark.parametrize("n", [16, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_triangles_by_blocks(function, lead, n, dtype):
    a, b = given(lead, n, dtype=dtype)
    got, want = jit(function)(a, b), function(fnp.array(a), b)
    close = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(got, want, rtol=close, atol=close)


@pytest.mark.parametrize("n", [5, 40])
@pytest.mark.parametrize("at", [0, 3, -1])
def test_one_bad_pivot_makes_all_of_a_matrix_nan(n, at):
    a = 2 * np.eye(n, dtype="float32")
    b = np.ones((n, 2), "float32")
    for bad in (0.0, -1.0, np.nan):
        a[at, at] = bad
        assert np.isnan(jit(fnp.linalg.cholesky)(a)).all()
        if bad == 0.0:
            assert np.isnan(jit(lower_half)(a, b)).all() and np.isnan(jit(upper_half)(a, b)).all()


def test_only_the_triangle_is_read():
    for n in (6, 40):
        a, b = given((), n)
        other = np.where(np.tri(n, dtype=bool), a, np.nan)
        np.testing.assert_array_equal(jit(lower_half)(a, b), jit(lower_half)(other, b))
        np.testing.assert_array_equal(jit(upper_half)(a, b), jit(upper_half)(other, b))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_in_double_precision(function):
    a, b = given((20,), 6, dtype="float64")
    np.testing.assert_allclose(jit(function)(a, b), function(fnp.array(a), b), atol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_derivatives(function):
    a, b = given((2,), 3, dtype="float64")
    check_grads(jit(function), (a, b), order=2)


@pytest.mark.parametrize("function", [lower_half, positive])
def test_derivatives_by_blocks(function):
    a, b = given((), 18, dtype="float64")
    check_grads(jit(function), (a, b), order=1)


@pytest.mark.parametrize("lead", [(), (2,), (40,)], ids=str)
def test_matrices_without_an_answer_are_nan_and_leave_others_alone(lead):
    good = np.array([[0, 2, 1], [1, 0, 3], [2, 1, 0]], "float32")
    for bad in (np.zeros((3, 3)), np.diag([1, 2, 0]), np.diag([0, 1, 2]), np.diag([1, -1, 1]),
                [[1, 2, 3], [2, 4, 6], [1, 0, 1]]):
        a = np.broadcast_to(np.array(bad, "float32"), (*lead, 3, 3)).copy()
        if lead:
            a[1] = good @ good.T + np.eye(3)
        b = np.ones((*lead, 3, 2), "float32")
        for function in (fnp.linalg.solve, lower_half, upper_half, volume):
            np.testing.assert_allclose(jit(function)(a, b), function(fnp.array(a), b), atol=1e-5)
        made, want = jit(fnp.linalg.cholesky)(a), fnp.linalg.cholesky(fnp.array(a))
        np.testing.assert_allclose(made, want, atol=1e-5)


@pytest.mark.parametrize("found", [False, True])
def test_where_loops_are_native_and_faster_there_are_no_calls(monkeypatch, found):
    monkeypatch.setattr(fortran, "found", lambda: found)
    def of(n, *lead, dtype="float32"):
        return ArrayType(dtype, (*lead, n, n)), ArrayType(dtype, (*lead, n, 1))

    for function in FUNCTIONS:
        assert calls(function, *of(8)) == calls(function, *of(8, 100)) == 0
        assert calls(function, *of(8), target=Target()) == 1
    for function in (fnp.linalg.solve, inverse, volume, reflections):
        assert calls(function, *of(100)) == 1
    for function in (lower_half, positive):
        assert calls(function, *of(100)) == 0
    assert calls(both_triangles, *of(100)) == found
    assert calls(both_triangles, *of(48)) == 0
    assert calls(lower_half, *of(3000)) == 0
    assert calls(positive, *of(3000)) == calls(both_triangles, *of(3000)) == 1
    assert calls(positive, *of(100, 20)) == calls(fnp.linalg.solve, *of(30, 20)) == 0
    assert calls(fnp.linalg.solve, *of(4, dtype="complex64")) == 1
    assert calls(fnp.linalg.solve, *of(4, 0)) == 1


def kalman(zs, p):
    """States of a Kalman filter with three states, of which two are seen."""
    f, h = np.eye(3, k=1, dtype="float32") * 0.1 + np.eye(3, dtype="float32"), np.eye(2, 3)
    h = h.astype("float32")

    def step(carry, z):
        x, p = carry
        x, p = f @ x, f @ p @ f.T + 0.1 * np.eye(3, dtype="float32")
        gain = fnp.linalg.solve(h @ p @ h.T + np.eye(2, dtype="float32"), h @ p).T
        x, p = x + gain @ (z - h @ x), p - gain @ h @ p
        return (x, p), x
    return lax.scan(step, (fnp.zeros(3), p), zs)[1]


def test_a_loop_with_a_solution_in_it_is_the_eager_loop():
    zs = np.random.default_rng(0).standard_normal((50, 2)).astype("float32")
    p = np.eye(3, dtype="float32")
    np.testing.assert_allclose(jit(kalman)(zs, p), kalman(fnp.array(zs), p), rtol=1e-4, atol=1e-5)
    assert calls(kalman, ArrayType("float32", (50, 2)), ArrayType("float32", (3, 3))) == 0


def test_gradients_and_vmap_of_a_loop_with_a_solution():
    zs = np.random.default_rng(1).standard_normal((4, 12, 2)).astype("float32")
    p = np.eye(3, dtype="float32")
    loss = grad(lambda p, zs: fnp.sum(kalman(zs, p)**2))
    many = jit(vmap(loss, in_axes=(None, 0)))(p, zs)
    for z, got in zip(zs, many):
        np.testing.assert_allclose(got, loss(fnp.array(p), z), rtol=2e-4, atol=2e-4)


def test_the_array_ir_still_says_what_is_computed():
    a, b = given((), 4)
    assert " = solve " in fgrad.show(jit(fnp.linalg.solve), a, b, stage="ir")
    assert " = scan" in fgrad.show(jit(fnp.linalg.solve), a, b, stage="simplified")


@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_exchanges_in_order(lead, n):
    pivots = np.random.default_rng(n).integers(-1, n + 1, (*lead, n)).astype("int32")
    order = jit(ops.pivots_to_permutation)(pivots)
    np.testing.assert_array_equal(order, ops.pivots_to_permutation(fnp.array(pivots)))
    np.testing.assert_array_equal(np.sort(order, -1), np.broadcast_to(np.arange(n), order.shape))


def test_more_columns_than_rows():
    for n in (1, 4):
        for lead in LEADS:
            a, b = given(lead, n)
            np.testing.assert_allclose(jit(all_reflections)(a, b), all_reflections(fnp.array(a), b),
                                       atol=1e-5)


@pytest.mark.parametrize("a", [np.eye(3), np.zeros((3, 2)), np.diag([-1.0, 2, 3]),
                               1e30 * np.ones((3, 1)), 1e-30 * np.ones((3, 1))], ids=str)
def test_reflections_of_zeros_and_of_every_size(a):
    a = a.astype("float32")
    for got, want in zip(jit(fnp.linalg.qr)(a), np.linalg.qr(a)):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_a_factorisation_of_what_never_changes_moves_out_of_a_loop():
    def steps(a, b):
        return lax.fori_loop(0, 9, lambda i, b: lower_half(fnp.linalg.cholesky(a), b), b)
    text = fgrad.show(steps, ArrayType("float32", (3, 3)), ArrayType("float32", (3, 1)),
                      stage="simplified", device="reference")
    assert text.index("= cholesky") < text.index("= scan") < text.index("= triangular_solve")


def implicit_steps(a, b):
    """Euler's implicit steps: the matrix stays, the right-hand side does not."""
    return lax.fori_loop(0, 9, lambda i, b: fnp.linalg.solve(a, b) + b, b)


@pytest.mark.parametrize("n", [1, 4, 40, 80])
def test_a_matrix_that_stays_is_eliminated_once(n):
    a, b = given((), n)
    text = fgrad.show(implicit_steps, a, b[:, 0], stage="simplified", device="cpu")
    types = ArrayType("float32", a.shape), ArrayType("float32", (n,))
    called = n > 48 and fortran.found()          # LAPACK eliminates larger ones, before the loop
    assert "= solve" not in text and calls(implicit_steps, *types) == called
    np.testing.assert_allclose(jit(implicit_steps)(a, b[:, 0]),
                               implicit_steps(fnp.array(a), b[:, 0]), rtol=1e-3, atol=1e-4)
    both = jit(vmap(implicit_steps, in_axes=(None, 1)))(a, b)
    for k in range(2):
        np.testing.assert_allclose(both[k], implicit_steps(fnp.array(a), b[:, k]), rtol=1e-3,
                                   atol=1e-4)
    text = fgrad.show(vmap(implicit_steps, in_axes=(None, 1)), a, b, stage="simplified",
                      device="cpu")
    assert "= solve" not in text


def test_the_blocks_of_a_triangle_that_stays_are_inverted_once():
    """Each step of the loop substituted in the blocks, row by row, and filled the last one up."""
    def steps(a, b):
        return lax.fori_loop(0, 9, lambda i, b: lower_half(a, b) + b, b)
    types = ArrayType("float32", (40, 40)), ArrayType("float32", (40, 3))
    *before, outer = [s for s in passes.plan(inline(stage(steps, types).program), LOOPS).steps
                      if isinstance(s, Loop)]
    (body,) = outer.plans
    assert len(before) == 1 and sum(isinstance(s, Loop) for s in steps_of(body)) == 1
    assert all(b.type.shape != (48, 48) for s in steps_of(body) if isinstance(s, Kernel)
               for b in s.outputs)
    a, b = given((), 40)
    np.testing.assert_allclose(jit(steps)(a, b), steps(fnp.array(a), b), rtol=1e-4, atol=1e-4)


def test_results_are_those_of_a_stack_of_one():
    a, b = given((16,), 4)
    each = jit(ops.solve)
    np.testing.assert_allclose(each(a, b)[:1], each(a[:1], b[:1]), rtol=1e-5, atol=1e-6)


def test_the_equations_of_loops_have_the_line_of_the_operation():
    def f(x):
        return lax.top_k(x, 3)
    program = in_loops(inline(stage(f, [ArrayType("float32", (4, 64))]).program))
    places = [source.place(e.source) for p in all_programs(program) for e in p.eqns]
    assert len(places) > 20
    assert {p.line for p in places} == {f.__code__.co_firstlineno + 1}


@pytest.mark.parametrize("function, shape, expected", [
    (lambda x: fnp.sort(x, 1), (1000, 10), 0), (lambda x: fnp.sort(x, 1), (1000, 16), 1),
    (lambda x: fnp.sort(x, 1), (1, 64), 0), (lambda x: fnp.sort(x, 1), (1, 300), 1),
    (lambda x: fnp.sort(x, 0), (10, 1000), 0), (lambda x: fnp.argsort(x, 1), (1000, 32), 0),
    (lambda x: fnp.argsort(x, 1), (1000, 40), 1), (lambda x: lax.top_k(x, 16), (64, 50257), 0),
    (lambda x: lax.top_k(x, 17), (64, 50257), 1)])
def test_rows_are_sorted_by_loops_where_these_are_faster(function, shape, expected):
    assert calls(function, ArrayType("float32", shape)) == expected


@pytest.mark.parametrize("shape, axis", [((48,), 0), ((8, 40), 1), ((5, 7), 0), ((1,), 0),
                                         ((0, 3), 1), ((3, 4, 9), -1)])
@pytest.mark.parametrize("dtypes", [("float32", "float32", "int32"), ("int32", "float64")])
def test_rows_are_sorted_by_several_keys(shape, axis, dtypes):
    rng, keys = np.random.default_rng(0), []
    for dtype in dtypes:
        x = rng.integers(-2, 3, shape).astype(dtype)
        if x.dtype.kind == "f":
            x = np.where(x == 1, np.nan, np.where(rng.random(shape) < 0.5, x, -x))   # 0 and -0, too
        keys.append(x.astype(dtype))

    def order(*keys):
        return fnp.lexsort(keys, axis)
    assert calls(order, *[ArrayType(dtype, shape) for dtype in dtypes]) == (0 in shape)
    keys = [fnp.array(x, dtype=dtype) for x, dtype in zip(keys, dtypes)]
    want = np.lexsort([np.asarray(k) for k in keys], axis)
    np.testing.assert_array_equal(jit(order)(*keys), want)


@pytest.mark.parametrize("shape, axis", [((3, 70), 1), ((70, 3), 0), ((2, 33, 3), 1), ((1, 200), 1),
                                         ((200,), 0), ((40, 10), 1), ((5, 1), 1), ((5, 1), 0)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_rows_that_lie_side_by_side_are_sorted_as_numpy_sorts_them(shape, axis, dtype):
    rng = np.random.default_rng(len(shape))
    x = rng.integers(-9, 9, shape).astype(dtype)           # with many equal ones
    if dtype != "int32":
        x[rng.random(shape) < 0.1] = np.nan
    sort = jit(lambda x: (fnp.sort(x, axis), fnp.argsort(x, axis)))
    for got, want in zip(sort(x), (np.sort(x, axis), np.argsort(x, axis, kind="stable"))):
        np.testing.assert_array_equal(np.asarray(got), want)
