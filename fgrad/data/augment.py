"""Random changes of batches of images, in NumPy: more data out of the same data.

Each function takes images u8 or f32 [n,height,width] or [n,height,width,channels] and a Generator
(or a seed), draws for every image on its own, and gives new images of the same shape and dtype.
`on` makes a transform for `data.batches` of several.
"""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError, DtypeError, RangeError, ShapeError, bound


def on(*functions, at=0):
    """A transform for `data.batches`: the functions, in order, on array `at` of the batch.

    functions: (images, rng) → images; options by functools.partial.

    >>> import functools
    >>> from fgrad.data import batches
    >>> images, labels = np.arange(32.0).reshape(2, 4, 4), np.arange(2)
    >>> change = on(flip, functools.partial(crop, padding=1))
    >>> for x, y in batches(images, labels, size=2, seed=0, transforms=change):
    ...     x.shape, y.shape
    ((2, 4, 4), (2,))
    """
    def transform(batch, rng):
        if at >= len(batch):
            raise ArgumentError(f"there is no array {at} in a batch of {len(batch)} arrays.")
        images = batch[at]
        for function in functions:
            images = function(images, rng)
        return (*batch[:at], images, *batch[at + 1:])
    return transform


def checked(images, name):
    """The images as an array.  Raises unless they are u8 or floats with 3 or 4 axes."""
    images = np.asarray(images)
    if images.ndim not in (3, 4):
        raise ShapeError(f"{name} takes a batch of images.", given=f"shape {images.shape}",
                         expected="[n,height,width] or [n,height,width,channels]",
                         fix="images[None] for a single one")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise DtypeError(f"{name} takes images of uint8 or floats.", given=str(images.dtype))
    return images


def nonnegative(name, **options):
    """Raises RangeError for an option below 0."""
    for option, value in options.items():
        if not value >= 0:
            raise RangeError(f"{name}: {option} is at least 0.", given=f"{option}={value!r}")


def spread(values, images):
    """One value per image, with axes to multiply images by."""
    return values.reshape(-1, *(1,) * (images.ndim - 1))


def as_kind(values, like):
    """Floats in the dtype of `like`; u8 is rounded and kept in 0 … 255."""
    if like.dtype == np.uint8:
        return np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return values.astype(like.dtype)


# ---------------------------------------------------------------------------- where pixels are

def flip(images, rng, p=0.5, axis=2):
    """Each image mirrored with probability p: left-right with axis 2, upside down with axis 1.

    Raises RangeError for a p outside of 0 … 1, or an axis other than 1 and 2.

    >>> flip(np.array([[[1.0, 2.0]]]), 0, p=1)
    array([[[2., 1.]]])
    """
    images = checked(images, "flip")
    if not 0 <= p <= 1 or axis not in (1, 2):
        raise RangeError("flip: p is a probability, axis is 1 or 2.",
                         given=f"p={p!r}, axis={axis!r}")
    chosen = np.random.default_rng(rng).random(len(images)) < p
    return np.where(spread(chosen, images), np.flip(images, axis), images)


def crop(images, rng, padding=4, size=None, fill=0):
    """A random window of each image, with `padding` pixels of `fill` put around it first.

    size: (height, width) of the windows; that of the images by default.
    Raises RangeError for a window larger than a padded image.

    >>> crop(np.ones((2, 8, 8, 3), np.uint8), 0, padding=2).shape
    (2, 8, 8, 3)
    """
    images = checked(images, "crop")
    nonnegative("crop", padding=padding)
    height, width = images.shape[1:3] if size is None else size
    around = [(0, 0), (padding, padding), (padding, padding), (0, 0)][:images.ndim]
    padded = np.pad(images, around, constant_values=fill)
    spare = padded.shape[1] - height, padded.shape[2] - width
    if min(*spare, height, width) < 0:
        raise RangeError("crop: the window does not fit into the padded images.",
                         given=f"a window of {height}×{width}, "
                               f"images of {padded.shape[1]}×{padded.shape[2]}")
    rng, n = np.random.default_rng(rng), len(images)
    down, right = (rng.integers(s + 1, size=n)[:, None, None] for s in spare)
    rows, columns = down + np.arange(height)[:, None], right + np.arange(width)
    return padded[np.arange(n)[:, None, None], rows, columns]


def rotate(images, rng, degrees=15.0, fill=0):
    """Each image turned about its middle by an angle drawn from -degrees … degrees.

    Pixels are read between their neighbours (bilinear); outside of the image is `fill`.

    >>> rotate(np.ones((1, 5, 5), np.float32), 0, degrees=0)[0, 2]
    array([1., 1., 1., 1., 1.], dtype=float32)
    """
    images = checked(images, "rotate")
    nonnegative("rotate", degrees=degrees)
    n, height, width = images.shape[:3]
    angle = np.radians(np.random.default_rng(rng).uniform(-degrees, degrees, n))[:, None, None]
    y = np.arange(height)[:, None] - (height - 1) / 2
    x = np.arange(width) - (width - 1) / 2
    down = np.cos(angle) * y - np.sin(angle) * x + (height - 1) / 2      # f64[n,height,width]
    right = np.sin(angle) * y + np.cos(angle) * x + (width - 1) / 2
    return as_kind(between(images, down, right, fill), images)


def between(images, down, right, fill):
    """The images read at fractional places f64[n,height,width], bilinear; outside is `fill`."""
    around = [(0, 0), (1, 1), (1, 1), (0, 0)][:images.ndim]
    padded = np.pad(images, around, constant_values=fill)
    limits = images.shape[1], images.shape[2]
    down, right = (np.clip(at + 1, 0, limit + 1) for at, limit in zip((down, right), limits))
    top = np.minimum(down.astype(int), limits[0])
    left = np.minimum(right.astype(int), limits[1])
    lower, further = down - top, right - left
    if images.ndim == 4:
        lower, further = lower[..., None], further[..., None]
    n = np.arange(len(images))[:, None, None]
    above = padded[n, top, left] * (1 - further) + padded[n, top, left + 1] * further
    below = padded[n, top + 1, left] * (1 - further) + padded[n, top + 1, left + 1] * further
    return above * (1 - lower) + below * lower


# ---------------------------------------------------------------------------- what pixels are

def jitter(images, rng, brightness=0.2, contrast=0.2):
    """Each image brighter or darker, and with more or less contrast about its mean.

    The factors are drawn from 1 - brightness … 1 + brightness, likewise for contrast; u8 stays in
    0 … 255, floats may leave their range.

    >>> jitter(np.full((1, 2, 2), 100, np.uint8), 0, brightness=0, contrast=0.5)[0, 0]
    array([100, 100], dtype=uint8)
    """
    images = checked(images, "jitter")
    nonnegative("jitter", brightness=brightness, contrast=contrast)
    rng, n = np.random.default_rng(rng), len(images)
    values = images.astype(np.float64 if images.dtype == np.float64 else np.float32)
    values *= spread(rng.uniform(1 - brightness, 1 + brightness, n), images)
    mean = values.mean(axis=tuple(range(1, images.ndim)), keepdims=True) if values.size else 0
    values = mean + (values - mean) * spread(rng.uniform(1 - contrast, 1 + contrast, n), images)
    return as_kind(values, images)


def cutout(images, rng, size=8, fill=0):
    """A square of `size` pixels of each image set to `fill`, its middle anywhere in the image.

    Source: DeVries and Taylor 2017; squares reach over the border, so fewer pixels may be set.

    >>> int(cutout(np.ones((1, 9, 9)), 0, size=3).sum()) < 81
    True
    """
    images = checked(images, "cutout")
    nonnegative("cutout", size=size)
    rng, (n, height, width) = np.random.default_rng(rng), images.shape[:3]
    top = rng.integers(max(height, 1), size=n)[:, None, None] - size // 2
    left = rng.integers(max(width, 1), size=n)[:, None, None] - size // 2
    y, x = np.arange(height)[:, None], np.arange(width)
    inside = (top <= y) & (y < top + size) & (left <= x) & (x < left + size)
    inside = inside[..., None] if images.ndim == 4 else inside
    return np.where(inside, np.asarray(fill, images.dtype), images)


def normalise(images, rng=None, *, mean, std):
    """(images - mean) / std as f32; mean and std are numbers, or one per channel.

    Nothing is drawn; `rng` is there so that it stands among the others.  `statistics` gives both.
    Raises RangeError for a std that is not positive.

    >>> normalise(np.array([[[0, 255]]], np.uint8), mean=127.5, std=127.5)
    array([[[-1.,  1.]]], dtype=float32)
    """
    images = checked(images, "normalise")
    mean, std = np.asarray(mean, np.float32), np.asarray(std, np.float32)
    if not (std > 0).all():
        raise RangeError("normalise: std is positive.", given=f"std={std}",
                         fix="leave out channels that are constant, or give them std 1")
    return (images.astype(np.float32) - mean) / std


def statistics(images):
    """(mean, standard deviation) of all pixels, per channel where there is a channel axis: f64.

    >>> statistics(np.array([[[0, 2]]], np.uint8))
    (1.0, 1.0)
    """
    images = checked(images, "statistics")
    values = images.astype(np.float64)
    mean, std = values.mean(axis=(0, 1, 2)), values.std(axis=(0, 1, 2))
    return (float(mean), float(std)) if images.ndim == 3 else (mean, std)


bound(globals())
