"""Drawn digits: a data set of images like MNIST's that needs no file and no network.

Each digit is a few skeletons of strokes, given by control points.  An image is one skeleton, its
points wobbled, bent by a smooth wave, turned, stretched, slanted and moved, then drawn with a round
brush of random thickness, blurred, and sprinkled with noise.  Everything is NumPy over a batch of
images: the points of a curve are a fixed matrix times its control points, and the sum of the
brush's marks is a product of two small matrices per image, since a Gaussian brush is separable.
"""

from __future__ import annotations

import functools

import numpy as np

from ..errors import RangeError, bound
from .split import Split

# Skeletons, by digit.  A stroke is its control points "x,y" in per cent of a box, y downwards; the
# curve through them is smooth, save at points marked * where it has a corner.
SKELETONS = {
    0: (["50,2 20,15 8,50 20,85 50,98 80,85 92,50 80,15 50,2"],
        ["60,4 28,12 12,45 18,82 45,98 75,80 88,45 78,14 52,6"],
        ["45,5 22,28 20,65 42,97 68,88 82,52 72,15 40,8"]),
    1: (["52,2 50,50 48,98"],
        ["30,22 54,2* 52,50 50,98"],
        ["66,2 50,50 34,98"],
        ["28,24 54,3* 52,96*", "28,97 76,96"]),
    2: (["14,26 30,6 62,4 82,24 66,54 36,78 12,96* 50,94 90,95"],
        ["16,20 42,2 76,12 76,40 46,72 16,92 14,78 34,74 62,92 90,92"],
        ["20,14 58,4 80,26 58,58 14,94* 86,94"]),
    3: (["16,12 48,2 78,16 72,38 42,47* 78,58 82,82 50,98 14,86"],
        ["16,5 80,5* 44,40* 76,52 82,80 52,98 16,88"],
        ["20,16 50,3 74,20 60,42 34,48 68,54 82,74 60,95 24,94 14,82"]),
    4: (["58,2 34,34 10,66* 90,66", "66,38 64,98"],
        ["22,4 16,52* 84,50", "78,2 74,50 70,98"],
        ["70,98 70,2* 10,68* 92,68"],
        ["24,6 20,40 40,54 74,46", "78,4 72,50 66,98"]),
    5: (["82,5 26,5* 20,44* 52,38 82,56 80,84 48,98 14,88"],
        ["26,6 22,46 58,42 82,66 62,94 16,92", "26,6 84,4"],
        ["80,8 34,8* 26,42* 62,46 78,70 56,95 20,90"]),
    6: (["68,3 36,24 14,62 26,94 60,97 80,76 64,54 34,58 18,74"],
        ["54,2 28,40 20,76 42,98 72,88 72,62 46,54 24,70"],
        ["82,10 48,8 20,40 16,78 44,98 78,86 78,60 50,50 20,66"]),
    7: (["12,6 86,6* 60,46 42,98"],
        ["14,14 46,8 86,8* 58,50 38,98", "32,52 74,50"],
        ["14,22 16,6* 84,8* 64,40 54,98"],
        ["18,8 78,5 76,26 52,60 42,98"]),
    8: (["76,14 48,2 22,18 36,40 68,58 80,82 50,98 20,82 32,58 64,40 78,16"],
        ["50,48 22,30 28,8 54,2 78,18 70,38 50,48 24,66 20,88 50,98 80,86 74,62 50,48"],
        ["80,10 46,4 26,22 52,46 76,68 62,95 32,92 28,70 54,46 80,8"]),
    9: (["78,20 50,2 22,18 24,42 50,50 74,36 80,18* 76,60 66,98"],
        ["76,26 56,4 26,10 20,36 44,48 72,34 78,10* 74,70 50,97 22,90"],
        ["72,12 38,6 20,32 40,50 70,36 76,12 70,56 56,98"]),
}

SIDE = 28                  # pixels
POINTS = 64                # points that a skeleton is drawn with
CHUNK = 1000               # images drawn at once
MARGIN = 4.0               # pixels around an undistorted digit

WOBBLE = 0.035             # standard deviation of a control point, in boxes
WAVE = 0.05                # largest shift by the smooth wave, in boxes
TURN = 0.22                # radians, either way
STRETCH = (0.78, 1.1)      # of height; width is this times 0.6 … 1
SLANT = 0.3                # sideways per unit of height, either way
MOVE = 2.0                 # pixels, either way
BRUSH = (0.7, 1.1)         # standard deviation of the brush in pixels
INK = (1.0, 2.6)           # how far its middle is past full black, which makes the stroke wide
NOISE = 0.06               # standard deviation of a pixel, of full black


def drawn(n_train=12000, n_test=2000, seed=0):
    """A Split of digits drawn by this module: not MNIST, not handwriting, only of that form.

    A perceptron 784-256-128-10 gets 0.98 to 0.99 of the test images right after five epochs.
    train_images u8[n_train,28,28], train_labels u8[n_train], and likewise for testing; 0 is paper,
    255 is ink; classes are equally frequent.  The test images do not depend on n_train.  1000
    images take about 0.1 s.  Raises RangeError for a negative number.

    >>> data = drawn(n_train=20, n_test=10, seed=1)
    >>> data
    Split(drawn digits: 20 training and 10 test images of 28×28)
    >>> np.bincount(data.train_labels)
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """
    if n_train < 0 or n_test < 0:
        raise RangeError("a number of images is at least 0.", given=f"{n_train} and {n_test}")
    return Split("drawn digits", *draw(n_train, np.random.default_rng((seed, 0))),
                 *draw(n_test, np.random.default_rng((seed, 1))))


def in_colour(split, seed=0):
    """A Split of digits as colour images of CIFAR-10's size: u8[n,32,32,3].

    Each has two colours of its own, for paper and ink, and stands anywhere in the image: what
    networks for small photographs can be tried on, where there are none.

    >>> in_colour(drawn(n_train=10, n_test=10))
    Split(drawn digits in colour: 10 training and 10 test images of 32×32)
    """
    def coloured(images, rng):
        n, place = len(images), rng.integers(5, size=(len(images), 2))
        paper, ink = rng.uniform(0, 1, (2, n, 1, 1, 3)).astype(np.float32)
        ink = np.where(np.abs(ink - paper).max(axis=-1, keepdims=True) < 0.35, 1 - paper, ink)
        amount = np.zeros((n, 32, 32, 1), np.float32)
        for k, (top, left) in enumerate(place):
            amount[k, top:top + SIDE, left:left + SIDE, 0] = images[k] / np.float32(255)
        return (255 * (paper + (ink - paper) * amount) + 0.5).astype(np.uint8)
    return Split(f"{split.name} in colour",
                 coloured(split.train_images, np.random.default_rng((seed, 2))), split.train_labels,
                 coloured(split.test_images, np.random.default_rng((seed, 3))), split.test_labels)


def draw(n, rng):
    """(images u8[n,28,28], labels u8[n])."""
    labels = rng.permutation(np.arange(n) % 10).astype(np.uint8)
    images = np.empty((n, SIDE, SIDE), np.uint8)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        points, weights = skeletons(labels[part], rng)
        images[part] = paint(distort(points, rng), weights, rng)
    return images, labels


# ---------------------------------------------------------------------------- curves

def parse(stroke):
    """(control points f64[c,2] in boxes, indices of the corners, the two ends among them)."""
    words = stroke.split()
    points = np.array([[float(v) for v in w.rstrip("*").split(",")] for w in words]) / 100
    corners = [k for k, w in enumerate(words) if w.endswith("*")]
    return points, sorted({0, *corners, len(words) - 1})


def curve(count, corners, n):
    """The matrix f64[n,count] that takes control points to n points along the curve through them.

    Catmull-Rom (https://en.wikipedia.org/wiki/Catmull-Rom_spline): through each point the curve
    runs parallel to the line between its neighbours; at ends and corners the missing neighbour is
    the point itself.
    """
    out = np.zeros((n, count))
    for row, at in enumerate(np.linspace(0, count - 1, n)):
        k = min(int(at), count - 2)
        t = at - k
        before = k if k in corners else k - 1
        behind = k + 1 if k + 1 in corners else k + 2
        out[row, before] += (-t + 2 * t**2 - t**3) / 2
        out[row, k] += (2 - 5 * t**2 + 3 * t**3) / 2
        out[row, k + 1] += (t + 4 * t**2 - 3 * t**3) / 2
        out[row, behind] += (t**3 - t**2) / 2
    return out


@functools.cache
def skeleton(digit, variant):
    """(control points f64[c,2], matrix f64[POINTS,c], index of each point's stroke)."""
    strokes = [parse(s) for s in SKELETONS[digit][variant]]
    lengths = [np.hypot(*np.diff(points, axis=0).T).sum() for points, _ in strokes]
    shares = np.maximum(np.round(np.array(lengths) / sum(lengths) * POINTS).astype(int), 4)
    shares[0] += POINTS - shares.sum()
    matrix = np.zeros((POINTS, sum(len(points) for points, _ in strokes)))
    row = column = 0
    for (points, corners), n in zip(strokes, shares):
        matrix[row:row + n, column:column + len(points)] = curve(len(points), corners, n)
        row, column = row + n, column + len(points)
    controls = np.concatenate([points for points, _ in strokes])
    return controls, matrix, np.repeat(np.arange(len(shares)), shares)


def skeletons(labels, rng):
    """(points f32[n,POINTS,2] in boxes, weights f32[n,POINTS]: the length each stands for)."""
    points = np.empty((len(labels), POINTS, 2), np.float32)
    same = np.empty((len(labels), POINTS - 1), bool)       # is the next point of the same stroke?
    chosen = rng.random(len(labels))
    for digit, variants in SKELETONS.items():
        for variant in range(len(variants)):
            mine = (labels == digit) & ((chosen * len(variants)).astype(int) == variant)
            controls, matrix, stroke = skeleton(digit, variant)
            wobbled = controls + rng.normal(0, WOBBLE, (mine.sum(), *controls.shape))
            points[mine] = matrix @ wobbled
            same[mine] = np.diff(stroke) == 0
    steps = np.hypot(*np.moveaxis(np.diff(points, axis=1), -1, 0)) * same
    weights = np.zeros(points.shape[:2], np.float32)
    weights[:, 1:] += steps / 2
    weights[:, :-1] += steps / 2
    return points, weights


# ---------------------------------------------------------------------------- distortion

def distort(points, rng):
    """The points f32[n,POINTS,2] in pixels, bent, turned, stretched, slanted and moved."""
    n = len(points)

    def each(low, high):
        return rng.uniform(low, high, (n, 1)).astype(np.float32)

    x, y = points[..., 0] - 0.5, points[..., 1] - 0.5
    x, y = (x + each(0, WAVE) * np.sin(each(3, 7) * y + each(0, 6.3)),
            y + each(0, WAVE) * np.sin(each(3, 7) * x + each(0, 6.3)))
    height, angle = each(*STRETCH), each(-TURN, TURN)
    x, y = x * height * each(0.6, 1.0), y * height
    x = x - each(-SLANT, SLANT) * y
    x, y = x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)
    size, middle = SIDE - 2 * MARGIN, (SIDE - 1) / 2
    across, down = middle + each(-MOVE, MOVE), middle + each(-MOVE, MOVE)
    return np.stack([x * size + across, y * size + down], axis=-1)


def paint(points, weights, rng):
    """u8[n,28,28]: the points drawn with a Gaussian brush, saturated, with noise.

    amount[y,x] = Σ_p weight_p · exp(-(y-y_p)²/2σ²) · exp(-(x-x_p)²/2σ²), a matrix product for each
    image; along a straight stroke the sum is √2π σ times the brush's profile across it.
    """
    n = len(points)
    brush = rng.uniform(*BRUSH, (n, 1, 1)).astype(np.float32)
    ink = rng.uniform(*INK, (n, 1, 1)).astype(np.float32)
    pixels = np.arange(SIDE, dtype=np.float32)
    across = np.exp(-((points[..., :1] - pixels) / brush)**2 / 2)    # f32[n,POINTS,28]
    down = np.exp(-((points[..., 1:] - pixels) / brush)**2 / 2) * weights[..., None]
    amount = np.matmul(down.transpose(0, 2, 1), across)
    amount *= ink * (SIDE - 2 * MARGIN) / (np.float32(2.5066) * brush)
    dark = 1 - np.exp(-amount)
    dark += rng.standard_normal(dark.shape, np.float32) * np.float32(NOISE)
    return (np.clip(dark, 0, 1) * 255 + 0.5).astype(np.uint8)


bound(globals())
