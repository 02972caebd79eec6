"""Transformations inside of transformations: every value belongs to the one that made it."""

import asyncio
import threading

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad.numpy import exp, sin, tanh
from fgrad.transforms import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from tests.interpreters.staged import differences, near, staged

rng = np.random.default_rng(0)
X, W, V = rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
one = np.float64(1.0)


def d(f):
    """The derivative by jvp."""
    return lambda x: jvp(f, (x,), (one,))[1]


def loss(w, x):
    h = tanh(x @ w)
    return fnp.mean(h * h * exp(h))


@pytest.mark.parametrize("outer", [d, grad])
@pytest.mark.parametrize("inner", [d, grad])
def test_perturbations_of_nested_derivatives_are_not_confused(outer, inner):
    near(outer(lambda x: x * inner(lambda y: x + y)(one))(one), 1.0)
    near(outer(lambda x: x * inner(lambda y: x * y)(one))(one), 2.0)
    near(outer(lambda x: x * inner(lambda y: x * x * y * y)(x))(one), 8.0)          # 2x⁴ → 8x³


def test_fourth_derivatives_agree_in_every_mixture():
    for f in (d(d(d(d(sin)))), grad(grad(grad(grad(sin)))), d(grad(d(grad(sin)))),
              grad(d(grad(d(staged(sin)))))):
        near(f(one), np.sin(1.0))


def test_a_value_of_the_outer_transformation_is_an_argument_of_the_inner():
    f = lambda x: grad(lambda y: sin(y) * x)(x * x)                                  # cos(x²) x
    for g in (grad(f), d(f), grad(staged(f)), staged(grad(f)), staged(d(staged(f)))):
        near(g(one), np.cos(1) - 2 * np.sin(1))


def test_an_inner_function_may_return_a_value_of_the_outer_transformation():
    near(grad(lambda x: grad(lambda y: x * 1.0)(one) + x)(one), 1.0)
    near(vmap(lambda x: vmap(lambda y: x)(V))(V), np.repeat(V[:, None], 3, 1))
    _, pull = vjp(lambda x: (x, 2.0 * x, one), one)
    near(pull((one, one, one))[0], 3.0)


def test_vmap_of_grad_equals_a_loop_of_grads():
    each = vmap(lambda x: grad(loss)(W, x))(X)
    near(each, np.stack([grad(loss)(W, x) for x in X]))
    near(grad(lambda w: fnp.sum(vmap(lambda x: loss(w, x))(X)))(W), np.asarray(each).sum(0))


def test_vmap_of_grad_of_vmap_equals_a_loop():
    per = lambda x: grad(lambda v: fnp.sum(vmap(lambda row: tanh(fnp.sum(row * v)))(X)))(x)
    near(vmap(per)(X), np.stack([per(x) for x in X]))


def test_grad_of_vmap_of_grad_agrees_with_differences():
    outer = lambda s: fnp.sum(vmap(grad(lambda v: fnp.sum(sin(v * s) * v)))(X))
    near(grad(outer)(one), differences(outer, one).reshape(()), 1e-5)


def test_staging_anywhere_in_vmap_of_grad_changes_nothing():
    each = vmap(grad(loss), (None, 0))(W, X)
    for f in (vmap(staged(grad(loss)), (None, 0)), staged(vmap(grad(loss), (None, 0))),
              staged(vmap(staged(grad(staged(loss))), (None, 0)))):
        near(f(W, X), each)


def test_nested_vmaps_with_different_axes():
    near(vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(V, V), np.outer(V, V))
    near(vmap(lambda a: a @ W, 0)(X), X @ W)
    near(vmap(lambda a: W @ a, 1)(X.T), (W @ X.T).T)


def test_staged_functions_inside_and_outside_of_grad():
    wanted = grad(loss)(W, X)
    near(staged(loss)(W, X), loss(W, X))
    near(staged(grad(staged(loss)))(W, X), wanted)
    near(grad(staged(loss))(W, X), wanted)


def test_second_derivatives_through_staged_functions():
    square = lambda g: fnp.sum(g * g)
    wanted = grad(lambda w: square(grad(loss)(w, X)))(W)
    near(grad(lambda w: square(grad(staged(loss))(w, X)))(W), wanted)
    near(staged(grad(lambda w: square(staged(grad(staged(loss)))(w, X))))(W), wanted)


def test_a_staged_function_closes_over_values_of_grad_and_vmap():
    near(grad(lambda x: staged(lambda y: x * y * y)(x))(2 * one), 12.0)
    shared = lambda x: [g := staged(lambda y: x * y), g(x) + g(2.0 * x)][1]
    near(grad(shared)(one), 6.0)
    near(vmap(lambda x: staged(lambda y: x * y)(2.0 * one))(V), 2 * V)


def test_staged_functions_with_several_results():
    near(jvp(staged(loss), (W, X), (W, X))[1], jvp(loss, (W, X), (W, X))[1])
    two = staged(lambda a, b: (a * b, a + b))
    near(grad(lambda a: two(a, one)[0])(one), 1.0)
    near(grad(lambda a: two(a, a)[0] * two(a, one)[1])(one), 5.0)


def test_jvp_inside_of_vmap_with_a_tangent_closed_over():
    def f(s):
        return fnp.sum(vmap(lambda row: jvp(lambda r: tanh(r * s), (row,), (row * s,))[1])(X))
    wanted = differences(f, one).reshape(())
    for g in (d(f), grad(f), staged(grad(f))):
        near(g(one), wanted, 1e-5)


def test_a_pull_function_works_under_other_transformations():
    f = lambda v: tanh(W @ v) * 2.0
    _, pull = vjp(f, V)
    near(vmap(lambda ct: pull(ct)[0])(np.eye(3)), jacfwd(f)(V))
    near(grad(lambda ct: fnp.sum(pull(ct)[0]))(V), np.asarray(jacfwd(f)(V)).sum(1))


def test_jacobians_and_hessians_agree_with_differences_and_each_other():
    f = lambda v: tanh(W @ v) * exp(v)
    near(jacrev(f)(V), differences(f, V))
    near(jacfwd(f)(V), differences(f, V))
    near(jacfwd(jacrev(f))(V), jacrev(jacfwd(f))(V))
    near(jacrev(jacrev(f))(V), jacrev(jacfwd(f))(V))
    scalar = lambda w: loss(w, X)
    near(hessian(scalar)(W), differences(grad(scalar), W), 1e-5)
    near(staged(hessian(staged(scalar)))(W), hessian(scalar)(W))


INDEX = np.array([2, 0, 2], "i4")
FUNCTIONS = {
    "max": lambda x: fnp.max(x, 1) @ V[[0, 1, 2, 0]],
    "rows": lambda x: fnp.sum(x[1] * x[-1]),
    "gather": lambda x: fnp.sum(tanh(x[INDEX])),
    "maximum": lambda x: fnp.sum(fnp.maximum(x, x * x)),
    "where": lambda x: fnp.sum(fnp.where(x > 0.1, exp(x), x * x)),
    "div": lambda x: fnp.sum(x / (2.0 + sin(x))),
    "mean": lambda x: fnp.sum(fnp.mean(x, 0) * V + x),
    "reshape": lambda x: fnp.sum(fnp.reshape(x, (12,)) ** 3),
    "matmul": lambda x: fnp.sum(tanh(x.T @ x)),
    "numbers": lambda x: fnp.sum(1.0 - 2.0 / (x * x + 1.0)),
    "stack": lambda x: fnp.sum(fnp.stack([x[0], x[1] * x[2]])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_grad_jvp_vmap_hessian_and_staging_agree_for(name):
    f = FUNCTIONS[name]
    near(grad(f)(X), differences(f, X), 1e-5)
    near(grad(staged(f))(X), differences(f, X), 1e-5)
    near(vmap(grad(f))(np.stack([X, X * 2])), np.stack([grad(f)(X), grad(f)(X * 2)]))
    near(jvp(f, (X,), (X,))[1], (np.asarray(grad(f)(X)) * X).sum())
    near(hessian(f)(X), differences(grad(f), X), 1e-4)


def test_threads_transform_at_the_same_time():
    wrong = []

    def work(k):
        for _ in range(10):
            total = lambda x: fnp.sum(vmap(lambda r: loss(W, r) * x)(X)) * float(k)
            got = np.asarray(grad(total)(one))
            if abs(got - k * np.asarray(vmap(lambda r: loss(W, r))(X)).sum()) > 1e-9:
                wrong.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_task_that_outlives_its_transformation_computes_normally():
    async def later():
        await asyncio.sleep(0)
        return fnp.sin(fnp.array(1.0)) * 2.0

    async def main():
        tasks = []

        def f(x):
            # copies the context
            tasks.append(asyncio.get_running_loop().create_task(later()))
            return x * x
        for transform in (grad, staged, d, lambda f: lambda x: vmap(f)(np.ones(2))):
            transform(f)(one)
        return [float(await t) for t in tasks]
    near(asyncio.run(main()), [2 * np.sin(1.0)] * 4)
