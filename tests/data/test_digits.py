"""The drawn digits: form, repeatability, variety."""

import numpy as np
import pytest

from fgrad.data import digits
from fgrad.errors import RangeError


@pytest.fixture(scope="module")
def data():
    return digits.drawn(n_train=1005, n_test=100, seed=0)


def test_form_and_name_say_what_it_is(data):
    assert data.name == "drawn digits" and "not MNIST" in digits.drawn.__doc__
    assert data.train_images.shape == (1005, 28, 28) and data.train_images.dtype == np.uint8
    assert data.train_labels.shape == (1005,) and data.train_labels.dtype == np.uint8
    assert data.test_images.shape == (100, 28, 28)


def test_classes_are_equally_frequent(data):
    assert np.ptp(np.bincount(data.train_labels, minlength=10)) <= 1
    assert np.bincount(data.test_labels).tolist() == [10] * 10


def test_every_image_has_ink_and_paper_and_stays_inside(data):
    images = data.train_images / 255
    assert images.max((1, 2)).min() > 0.5 and (np.median(images, (1, 2)) < 0.2).mean() > 0.99
    border = np.concatenate([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], 1)
    assert border.mean() < 0.05


def test_all_images_differ(data):
    everything = np.concatenate([data.train_images, data.test_images])
    assert len(np.unique(everything.reshape(len(everything), -1), axis=0)) == len(everything)


def test_a_seed_gives_the_same_images_and_another_seed_others(data):
    again, other = (digits.drawn(n_train=10, n_test=100, seed=s) for s in (0, 1))
    assert np.array_equal(again.test_images, data.test_images)
    assert not np.array_equal(other.test_images, data.test_images)


def test_digits_can_be_told_apart_but_not_by_their_mean(data):
    flat = lambda images: images.reshape(len(images), -1) / 255.0
    train, test = flat(data.train_images), flat(data.test_images)
    means = np.stack([train[data.train_labels == k].mean(0) for k in range(10)])
    guess = ((test[:, None] - means)**2).sum(-1).argmin(1)
    assert 0.4 < (guess == data.test_labels).mean() < 0.95


@pytest.mark.parametrize("n", [0, 1, 7])
def test_any_number_of_images_can_be_drawn(n):
    out = digits.drawn(n_train=n, n_test=0)
    assert out.train_images.shape == (n, 28, 28) and out.test_labels.shape == (0,)


def test_a_negative_number_is_refused():
    with pytest.raises(RangeError):
        digits.drawn(n_train=-1)


@pytest.mark.parametrize("digit", range(10))
def test_a_skeleton_runs_through_its_control_points(digit):
    for variant in range(len(digits.SKELETONS[digit])):
        controls, matrix, stroke = digits.skeleton(digit, variant)
        assert np.allclose(matrix.sum(1), 1)                     # moving all points moves the curve
        curve = matrix @ controls
        nearest = np.hypot(*(curve[None] - controls[:, None]).T).min(0)
        assert nearest.max() < 0.06 and len(stroke) == digits.POINTS


@pytest.mark.parametrize("n", [0, 1, 7])
def test_digits_in_colour_are_a_split_of_the_same_labels(n):
    grey = digits.drawn(n, 3, seed=1)
    coloured = digits.in_colour(grey, seed=1)
    assert coloured.train_images.shape == (n, 32, 32, 3) and "in colour" in repr(coloured)
    np.testing.assert_array_equal(coloured.test_labels, grey.test_labels)
    again = digits.in_colour(grey, seed=1)
    np.testing.assert_array_equal(coloured.train_images, again.train_images)


def test_ink_and_paper_of_a_digit_in_colour_differ():
    images = digits.in_colour(digits.drawn(50, 10)).train_images.astype(int)
    spread = images.max(axis=(1, 2)) - images.min(axis=(1, 2))
    assert (spread.max(axis=1) > 40).all()
