"""Arrays between their elements: padded arrays say what lies outside."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import check_grads, jit, vmap
from fgrad.errors import ArgumentError, ShapeError
from fgrad.scipy.ndimage import map_coordinates

PADDED = {"constant": {"mode": "constant", "constant_values": 2.5}, "nearest": {"mode": "edge"},
          "wrap": {"mode": "wrap"}, "mirror": {"mode": "reflect"}, "reflect": {"mode": "symmetric"}}
FAR = 9                    # elements outside


def given(shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype("f4")
    return x, [rng.uniform(-6, n + 5, (4, 5)).astype("f4") for n in shape]


@pytest.mark.parametrize("mode", PADDED)
@pytest.mark.parametrize("shape", [(4, 7), (1, 3), (2, 1), (5,)])
def test_linear_between_the_elements_of_the_padded_array(mode, shape):
    x, places = given(shape)
    wide = np.pad(x, FAR, **PADDED[mode])
    want = 0
    for corner in np.ndindex(*[2] * x.ndim):
        i = [np.floor(c).astype(int) + k for c, k in zip(places, corner)]
        w = np.prod([1 - abs(c - j) for c, j in zip(places, i)], axis=0)
        want = want + w * wide[tuple(j + FAR for j in i)]
    got = map_coordinates(x, places, 1, mode, cval=2.5)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jit(map_coordinates, static_argnums=(2, 3))(x, places, 1, mode, 2.5),
                               want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", PADDED)
def test_the_nearest_element(mode):
    x, places = given((4, 7))
    wide = np.pad(x, FAR, **PADDED[mode])
    got = map_coordinates(x, places, 0, mode, cval=2.5)
    np.testing.assert_array_equal(got, wide[tuple(np.rint(c).astype(int) + FAR for c in places)])
    assert map_coordinates([1, 2], [[0.5, -0.5]], 0).tolist() == [2, 0]       # away from zero


def test_integers_are_rounded():
    x = np.array([[0, 10], [20, 31]], "u1")
    got = map_coordinates(x, [[0.5, 0.0], [0.5, 0.26]], 1)
    assert got.dtype == "u1" and got.tolist() == [15, 3]


def test_derivatives_and_batches():
    x, places = given((4, 7))
    check_grads(lambda x, *c: map_coordinates(x, c, 1, "nearest"), (x, *places), order=1)
    each = [map_coordinates(x, [c[k] for c in places], 1) for k in range(4)]
    np.testing.assert_allclose(vmap(lambda *c: map_coordinates(x, c, 1))(*places), np.stack(each),
                               rtol=1e-5, atol=1e-6)


def test_what_it_refuses():
    x, places = given((4, 7))
    with pytest.raises(ArgumentError, match="no order 3"):
        map_coordinates(x, places, 3)
    with pytest.raises(ArgumentError, match="no mode 'edge'"):
        map_coordinates(x, places, 1, "edge")
    for wrong in (places[:1], [places[0], places[1][:2]]):
        with pytest.raises(ShapeError, match="for each of its axes"):
            map_coordinates(x, wrong, 1)
    with pytest.raises(ShapeError, match="an array of elements"):
        map_coordinates(fnp.ones((0, 2)), places, 1)
