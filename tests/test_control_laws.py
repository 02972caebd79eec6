"""The laws of every operation of control flow: type, oracles, derivatives, batch."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax
from fgrad.core import PRIMITIVES
from fgrad.errors import GradientError

RNG = np.random.default_rng(9)
X, Y = RNG.uniform(0.2, 1.2, (2, 3, 2))


@fgrad.custom_jvp
def squared(x):
    return x * x


squared.defjvp(lambda primals, tangents: (squared(primals[0]), 2 * primals[0] * tangents[0]))


@fgrad.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x * x * ct,))


def rows(x, y):
    """A scan whose carry is read by what each step gives."""
    last, seen = lax.scan(lambda c, r: (fnp.sin(c) + r, c * r), y[0], x)
    return last, seen


# name of the operation → functions of two f64[3,2] that use it
EXAMPLES = {
    "cond": [lambda x, y: lax.cond(fnp.sum(x) > 1, lambda a, b: a * b, lambda a, b: a - b, x, y),
             lambda x, y: lax.switch(fnp.argmax(x[0]) + 1, [fnp.sin, fnp.cos, fnp.exp], x * y)],
    "scan": [rows, lambda x, y: lax.fori_loop(0, 3, lambda k, a: fnp.sin(a) * y + k, x),
             lambda x, y: lax.map(lambda r: fnp.sum(r) * y, x),
             lambda x, y: lax.scan(lambda c, _: (c * y, c), x, length=0)],
    "while": [lambda x, y: lax.while_loop(lambda a: fnp.sum(a) < 20, lambda a: a * (1 + y), x,
                                          max_steps=30),
              lambda x, y: lax.while_loop(lambda a: fnp.sum(a) < 20, lambda a: a * (1 + y), x)],
    "checkpoint": [lambda x, y: fgrad.checkpoint(lambda a, b: fnp.tanh(a) * b)(x, y)],
    "custom_jvp": [lambda x, y: squared(x) * y],
    "custom_vjp": [lambda x, y: cubed(x) * y],
    "call": [lambda x, y: fgrad.jit(lambda a, b: fnp.exp(a) * b)(x, y)],
    "associative_scan": [lambda x, y: lax.associative_scan(lambda a, b: a * b + a, x * y)],
}
CASES = [pytest.param(f, id=f"{name}{k}") for name, fs in EXAMPLES.items()
         for k, f in enumerate(fs)]
# No reverse derivative without a bound on the trips: what they would need is not kept.
FORWARD_ONLY = [EXAMPLES["while"][1]]


def leaves(out):
    return [np.asarray(x) for x in fgrad.tree.leaves(out)]


def same(got, want, tol=1e-10):
    for a, b in zip(leaves(got), leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def test_every_operation_of_control_flow_has_an_example():
    PRIMITIVES.load()
    own = {name for name, op in PRIMITIVES.items()
           if type(op).__module__.startswith("fgrad.control") and op.nested}
    assert own <= set(EXAMPLES), own


@pytest.mark.parametrize("function", CASES)
def test_types_are_those_of_the_values_and_programs_are_well_formed(function):
    program = fgrad.make_ir(function)(X, Y).check()
    out = fgrad.tree.leaves(function(fnp.asarray(X), fnp.asarray(Y)))
    assert [v.type for v in program.outputs] == [x.type for x in out]


@pytest.mark.parametrize("device", ["cpu", "opencl", "reference"])
@pytest.mark.parametrize("function", CASES)
def test_compiled_code_gives_what_python_gives(function, device):
    same(fgrad.jit(function, device=device)(X, Y), function(X, Y))


@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 2)])
@pytest.mark.parametrize("function", CASES)
def test_batched_it_is_a_loop(function, axes):
    n = 2
    xs = [a if d is None else np.stack([a, a[::-1]], d) for a, d in zip((X, Y), axes)]
    lanes = [leaves(function(*[x if d is None else np.take(x, k, d) for x, d in zip(xs, axes)]))
             for k in range(n)]
    want = [np.stack(parts) for parts in zip(*lanes)]
    same(fgrad.tree.leaves(fgrad.vmap(function, axes)(*xs)), want)
    same(fgrad.tree.leaves(fgrad.jit(fgrad.vmap(function, axes))(*xs)), want)


@pytest.mark.parametrize("function", CASES)
def test_forward_derivatives_are_differences(function):
    tx, ty, h = RNG.standard_normal(X.shape), RNG.standard_normal(X.shape), 1e-6
    _, tangent = fgrad.jvp(function, (X, Y), (tx, ty))
    up, down = (leaves(function(X + s * h * tx, Y + s * h * ty)) for s in (1, -1))
    for got, a, b in zip(leaves(tangent), up, down):
        np.testing.assert_allclose(got, (a - b) / (2 * h), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("function", CASES)
def test_reverse_derivatives_are_the_adjoint_of_differences(function):
    if function in FORWARD_ONLY:
        with pytest.raises(GradientError):
            fgrad.vjp(function, X, Y)[1](function(X, Y))
        return
    out, pull = fgrad.vjp(function, X, Y)
    cts = fgrad.tree.map(lambda x: fnp.asarray(np.cos(np.arange(x.size)).reshape(x.shape)), out)
    gx, gy = pull(cts)
    tx, ty, h = RNG.standard_normal(X.shape), RNG.standard_normal(X.shape), 1e-6
    up, down = (leaves(function(X + s * h * tx, Y + s * h * ty)) for s in (1, -1))
    left = sum(np.sum(np.asarray(c) * (a - b) / (2 * h)) for c, a, b in zip(leaves(cts), up, down))
    right = np.sum(np.asarray(gx) * tx) + np.sum(np.asarray(gy) * ty)
    np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-6)
    jitted = fgrad.jit(lambda x, y, c: fgrad.vjp(function, x, y)[1](c))(X, Y, cts)
    same(jitted, (gx, gy), 1e-9)
