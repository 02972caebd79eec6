"""Arrays in other sizes: weights by their formulas, sums that keep constants, errors."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import check_grads, image, jit, vmap
from fgrad.errors import ArgumentError, ShapeError

METHODS = ["linear", "cubic", "lanczos3", "lanczos5"]


def along(x, m, method, antialias):
    """x[n] with m elements, each by itself."""
    n, kernel = len(x), image.KERNELS[method]
    scale = max(n / m, 1) if antialias else 1
    out = []
    for o in range(m):
        w = [kernel(abs((o + 0.5) * n / m - 0.5 - i) / scale) for i in range(n)]
        out.append(np.dot(w, x) / sum(w))
    return np.array(out)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("n, m", [(1, 4), (4, 1), (7, 7), (7, 3), (3, 7), (5, 12), (12, 5)])
@pytest.mark.parametrize("method", METHODS)
def test_each_element_is_a_weighted_mean(method, n, m, antialias):
    x = np.random.default_rng(0).standard_normal((n, 2)).astype("f4")
    got = image.resize(x, (m, 2), method, antialias)
    want = x if n == m else np.stack([along(c, m, method, antialias) for c in x.T], 1)
    assert got.dtype == "f4"
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["nearest", *METHODS])
def test_compiled_batched_and_of_all_axes_it_is_the_same(method):
    x = np.random.default_rng(0).standard_normal((3, 5, 8, 2)).astype("f4")

    def f(x):
        return image.resize(x, (10, 3, 2), method)
    each = np.stack([f(one) for one in x])
    np.testing.assert_allclose(vmap(f)(x), each, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jit(vmap(f))(x), each, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(f(np.ones((5, 8, 2), "f4")), np.ones((10, 3, 2)), rtol=1e-5)
    check_grads(f, (x[0],), order=1)


def test_nearest_takes_elements_and_keeps_their_dtype():
    x = np.arange(6, dtype="u1").reshape(2, 3)
    np.testing.assert_array_equal(image.resize(x, (4, 6), "nearest"), x.repeat(2, 0).repeat(2, 1))
    assert image.resize(x, (4, 6), "nearest").dtype == "u1"
    assert image.resize(x, (4, 6), "linear").dtype == "f4"
    assert image.resize(fnp.ones((2, 3), "f8"), (4, 6), "linear").dtype == "f8"


def test_sizes_of_zero():
    assert image.resize(fnp.ones((3, 2)), (0, 2), "linear").shape == (0, 2)
    assert image.resize(fnp.ones((0, 2)), (0, 4), "nearest").shape == (0, 4)
    with pytest.raises(ShapeError, match="elements to begin with"):
        image.resize(fnp.ones((0, 2)), (3, 2), "linear")


def test_what_it_refuses():
    with pytest.raises(ArgumentError, match="(?s)no method 'quadratic'.*nearest, linear"):
        image.resize(fnp.ones((3, 2)), (6, 4), "quadratic")
    with pytest.raises(ShapeError, match="a size for each axis"):
        image.resize(fnp.ones((3, 2, 1)), (6, 4), "linear")
    with pytest.raises(ShapeError, match="negative"):
        image.resize(fnp.ones((3, 2)), (6, -4), "linear")
    assert fgrad.image is image
