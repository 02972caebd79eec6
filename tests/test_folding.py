"""lax.reduce: any associative function, over any axes, beside loops."""

import functools
import operator

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax
from fgrad.errors import AxisError, ShapeError

X = np.random.default_rng(5).standard_normal((3, 4, 5))


def affine(f, g):
    """First x → f₀ x + f₁, then g: associative, and the order matters."""
    return g[0] * f[0], g[0] * f[1] + g[1]


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_neighbours_are_combined_in_their_order(n):
    a, b = X.reshape(6, 10)[0][:n], X.reshape(6, 10)[1][:n]
    want = functools.reduce(affine, zip(a, b), (1.0, 0.5))
    for made in (lax.reduce, fgrad.jit(lax.reduce, static_argnums=(2, 3))):
        got = made((a, b), (1.0, 0.5), affine, (0,))
        np.testing.assert_allclose([float(x) for x in got], want)


@pytest.mark.parametrize("dimensions", [(), (0,), (1,), (2, 0), (0, 1, 2), (-1,)])
@pytest.mark.parametrize("known, plain, ufunc", [
    (lax.add, operator.add, np.add), (lax.mul, operator.mul, np.multiply),
    (fnp.maximum, lambda a, b: fnp.where(a > b, a, b), np.maximum),
    (lax.min, lambda a, b: fnp.where(a < b, a, b), np.minimum)])
def test_known_functions_are_reductions_and_others_agree(dimensions, known, plain, ufunc):
    want = ufunc(ufunc.reduce(X, dimensions), 0.5) if dimensions else ufunc(X, 0.5)
    for computation in (known, plain):
        np.testing.assert_allclose(lax.reduce(X, 0.5, computation, dimensions), want)
    program = fgrad.make_ir(lambda x: lax.reduce(x, 0.5, known, dimensions))(X)
    assert "concatenate" not in str(program)


def test_it_has_derivatives_and_maps():
    def smooth(x):
        return lax.reduce(x, 1.0, lambda a, b: a * b + a + b, (0,))
    fgrad.check_grads(smooth, (X[0],))
    np.testing.assert_allclose(fgrad.vmap(smooth)(X), [smooth(x) for x in X])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="one shape"):
        lax.reduce((X, X[0]), (0.0, 0.0), affine, (0,))
    with pytest.raises(AxisError):
        lax.reduce(X, 0.0, lax.add, (3,))
