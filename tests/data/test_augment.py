"""Augmentations: shapes, dtypes, determinism, and what each does to known images."""

import functools

import numpy as np
import pytest

from fgrad.data import augment
from fgrad.errors import ArgumentError, DtypeError, RangeError, ShapeError

DRAWN = [augment.flip, augment.crop, augment.jitter, augment.rotate, augment.cutout]
SHAPES = [(0, 6, 5), (1, 1, 1), (3, 7, 5), (4, 6, 6, 3), (2, 5, 8, 1), (3, 0, 4)]


def images(shape, dtype="u1", seed=0):
    values = np.random.default_rng(seed).uniform(0, 255, shape)
    return values.astype(dtype)


@pytest.mark.parametrize("function", DRAWN)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_shape_and_dtype_stay_and_one_seed_is_one_result(function, shape, dtype):
    x = images(shape, dtype)
    before = x.copy()
    first, again = function(x, 3), function(x, np.random.default_rng(3))
    assert first.shape == shape and first.dtype == x.dtype
    assert np.array_equal(first, again) and np.array_equal(x, before)


@pytest.mark.parametrize("function", DRAWN)
def test_another_seed_is_another_result(function):
    x = images((8, 16, 16))
    assert not np.array_equal(function(x, 1), function(x, 2))


@pytest.mark.parametrize("axis", [1, 2])
def test_flip_mirrors_all_or_none_by_p(axis):
    x = images((5, 4, 3, 2))
    assert np.array_equal(augment.flip(x, 0, p=1, axis=axis), np.flip(x, axis))
    assert np.array_equal(augment.flip(x, 0, p=0), x)
    half = augment.flip(images((400, 2, 2)), 0)
    assert 150 < sum(np.array_equal(a, b) for a, b in zip(half, images((400, 2, 2)))) < 250


def test_crop_gives_windows_of_the_padded_image():
    x = images((50, 4, 5))
    padded = np.pad(x, [(0, 0), (2, 2), (2, 2)], constant_values=9)
    places = set()
    for a, p in zip(augment.crop(x, 0, padding=2, fill=9), padded):
        found = [(i, j) for i in range(5) for j in range(5)
                 if np.array_equal(p[i:i + 4, j:j + 5], a)]
        assert found
        places.update(found)
    assert len(places) > 15


def test_crop_to_a_size():
    x = images((3, 8, 8, 3))
    assert augment.crop(x, 0, padding=0, size=(5, 6)).shape == (3, 5, 6, 3)
    assert np.array_equal(augment.crop(x, 0, padding=0), x)
    with pytest.raises(RangeError, match="a window of 9×9, images of 8×8"):
        augment.crop(x, 0, padding=0, size=(9, 9))


def test_rotating_by_a_right_angle_turns_the_array(monkeypatch):
    x = images((1, 6, 6, 3), "f8")
    monkeypatch.setattr(np.random, "default_rng", lambda rng: rng)

    class Always:
        def uniform(self, low, high, n):
            return np.full(n, high)
    assert np.allclose(augment.rotate(x, Always(), degrees=90), np.rot90(x, -1, (1, 2)))


def test_rotating_by_nothing_is_exact_and_corners_become_fill():
    x = images((2, 7, 5, 2))
    assert np.array_equal(augment.rotate(x, 0, degrees=0), x)
    turned = augment.rotate(np.full((1, 20, 20), 200, np.uint8), 5, degrees=45, fill=7)
    assert turned[0, 0, 0] == 7 and turned[0, 10, 10] == 200


def test_jitter_scales_about_the_mean_and_stays_in_range():
    x = images((20, 8, 8)) // 2 + 1
    brighter = augment.jitter(x.astype("f8"), 1, brightness=0.5, contrast=0)
    ratio = (brighter / x).reshape(20, -1)
    assert np.allclose(ratio[:, :1], ratio[:, 1:2]) and 0.5 <= ratio.min()
    flat = augment.jitter(x.astype("f8"), 1, brightness=0, contrast=0.9)
    assert np.allclose(flat.mean(axis=(1, 2)), x.mean(axis=(1, 2)))
    assert augment.jitter(np.full((9, 2, 2), 255, np.uint8), 0, brightness=1).max() == 255


def test_cutout_sets_one_square():
    out = augment.cutout(np.ones((30, 12, 12, 3), np.float32), 0, size=4, fill=0)
    holes = (out == 0).all(-1)
    for hole in holes:
        rows, columns = np.flatnonzero(hole.any(1)), np.flatnonzero(hole.any(0))
        assert 2 <= len(rows) <= 4 and 2 <= len(columns) <= 4
        assert hole.sum() == len(rows) * len(columns)


def test_normalise_by_its_own_statistics_has_mean_0_and_deviation_1():
    x = images((6, 5, 5, 3))
    mean, std = augment.statistics(x)
    out = augment.normalise(x, mean=mean, std=std)
    assert out.dtype == np.float32 and np.allclose(out.mean((0, 1, 2)), 0, atol=1e-5)
    assert np.allclose(out.std((0, 1, 2)), 1, atol=1e-5)
    with pytest.raises(RangeError, match="std is positive"):
        augment.normalise(x, mean=0, std=[1, 0, 1])


def test_on_chains_functions_for_one_array_of_a_batch():
    x, y = images((3, 4, 4)), np.arange(3)
    flip = functools.partial(augment.flip, p=1)
    change = augment.on(flip, functools.partial(flip, axis=1))
    out, labels = change((x, y), np.random.default_rng(0))
    assert np.array_equal(out, x[:, ::-1, ::-1]) and labels is y
    with pytest.raises(ArgumentError, match="no array 2 in a batch of 2"):
        augment.on(augment.flip, at=2)((x, y), np.random.default_rng(0))


@pytest.mark.parametrize("function", DRAWN)
def test_what_is_no_batch_of_images_is_refused(function):
    with pytest.raises(ShapeError, match="takes a batch of images"):
        function(np.zeros((4, 4)), 0)
    with pytest.raises(DtypeError, match="uint8 or floats"):
        function(np.zeros((1, 4, 4), int), 0)


@pytest.mark.parametrize("function, options", [
    (augment.flip, {"p": 2}), (augment.flip, {"axis": 0}), (augment.crop, {"padding": -1}),
    (augment.jitter, {"contrast": -1}), (augment.rotate, {"degrees": -1}),
    (augment.cutout, {"size": -1})])
def test_options_out_of_range_are_refused(function, options):
    with pytest.raises(RangeError, match=function.__name__):
        function(images((1, 4, 4)), 0, **options)
