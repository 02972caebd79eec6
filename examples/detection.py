"""Finding shapes: a small one-stage detector, in the manner of YOLO, on images drawn as it trains.

    python examples/detection.py --picture found.png     test images with true and found boxes

What you learn: a convolutional network whose result is a grid of answers: is there a shape whose
middle is in this cell, where exactly, how large, of which kind; a loss of several parts, of which
some count in some cells only (a mask); and what decoding, suppression and mAP are.
Answers: d2l chapter 14 (boxes, detection), CS231n (detection), Redmon et al. 2016 (YOLO).
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, random, viz

SIDE, CELLS, KINDS = 48, 6, ("disc", "box", "cross")
MODEL = nn.Sequential(
    *[layer for n in (16, 32, 64) for layer in (
        nn.Conv(n, (3, 3), bias=False), nn.BatchNorm(), nn.relu, nn.MaxPool((2, 2)))],
    nn.Conv(64, (3, 3), bias=False), nn.BatchNorm(), nn.relu, nn.Conv(5 + len(KINDS), (1, 1)))


def draw(rng, n):
    """Images f32[n,48,48,3] and answers f32[n,6,6,6]: per cell there, x, y, width, height, kind.

    x and y are those of the middle in its cell, from 0 to 1; sizes are parts of the image.
    """
    images = rng.uniform(0, 0.3, (n, SIDE, SIDE, 3)) + rng.uniform(0, 0.4, (n, 1, 1, 3))
    answers, (down, across) = np.zeros((n, CELLS, CELLS, 6)), np.mgrid[:SIDE, :SIDE] + 0.5
    for image, answer in zip(images, answers):
        for _ in range(rng.integers(1, 4)):
            kind, half = rng.integers(3), rng.uniform(4, 9, 2)
            x, y = rng.uniform(half, SIDE - half)
            (row, v), (column, u) = divmod(y * CELLS / SIDE, 1), divmod(x * CELLS / SIDE, 1)
            if answer[int(row), int(column), 0]:
                continue                                       # one shape a cell
            answer[int(row), int(column)] = 1, u, v, *2 * half / SIDE, kind
            u, v = np.abs(across - x) / half[0], np.abs(down - y) / half[1]
            inside = (u * u + v * v < 1, np.maximum(u, v) < 1,
                      (np.maximum(u, v) < 1) & (np.minimum(u, v) < 0.35))[kind]
            image[inside] = rng.uniform(0.5, 1, 3)
    return images.astype(np.float32), answers.astype(np.float32)


def loss_and_state(params, state, images, answers):
    """What is missed, summed over cells, a mean over images; and the state after it."""
    out, state = MODEL.apply(params, state, images, train=True)
    there, place, size = answers[..., 0], answers[..., 1:3], answers[..., 3:5]
    apart = [nn.sigmoid(out[..., 1:3]) - place, out[..., 3:5] - fnp.log(4 * size + 1e-6)]
    kind = nn.softmax_cross_entropy_with_integer_labels(out[..., 5:], answers[..., 5].astype(int))
    wrong = (nn.sigmoid_binary_cross_entropy(out[..., 0], there)
             + there * (kind + 5 * fnp.sum(fnp.concatenate(apart, axis=-1) ** 2, axis=-1)))
    return fnp.mean(fnp.sum(wrong, axis=(1, 2))), state


def train(steps, batch=32, seed=0):
    """(parameters, state) after steps of Adam, each on new images."""
    rng = np.random.default_rng(seed)
    optimizer = optim.adam(optim.cosine_decay_schedule(3e-3, steps))

    @fgrad.jit
    def step(params, state, memory, images, answers):
        gradient = fgrad.value_and_grad(loss_and_state, has_aux=True)
        (value, state), grads = gradient(params, state, images, answers)
        updates, memory = optimizer.update(grads, memory, params)
        return optim.apply_updates(params, updates), state, memory, value

    params, state = MODEL.init(random.key(seed), fnp.zeros((1, SIDE, SIDE, 3)))
    memory = optimizer.init(params)
    for k in range(steps):
        params, state, memory, value = step(params, state, memory, *draw(rng, batch))
        if k % 100 == 0 or k == steps - 1:
            print(f"step {k:4d}  loss {float(value):.3f}")
    return params, state


def boxes(answer):
    """[score, left, top, right, bottom, kind] of the cells with a shape: f[k,6], best first."""
    row, column = np.nonzero(answer[..., 0] > 0.05)
    score, x, y, width, height, kind = answer[row, column].T
    x, y, w, h = SIDE * np.stack([(column + x) / CELLS, (row + y) / CELLS, width / 2, height / 2])
    return np.stack([score, x - w, y - h, x + w, y + h, kind], axis=1)[np.argsort(-score)]


def decoded(out):
    """The boxes of one image's f[6,6,8], less those that a better one of its kind covers."""
    kind, kept = out[..., 5:].argmax(axis=-1)[..., None], []
    parts = 1 / (1 + np.exp(-out[..., :3])), np.exp(out[..., 3:5]) / 4, kind
    for box in boxes(np.concatenate(parts, axis=-1)):
        if all(box[5] != other[5] or overlap(box, other) < 0.45 for other in kept):
            kept.append(box)
    return kept


def overlap(a, b):
    """Intersection over union."""
    both = np.prod(np.maximum(np.minimum(a[3:5], b[3:5]) - np.maximum(a[1:3], b[1:3]), 0))
    return both / (np.prod(a[3:5] - a[1:3]) + np.prod(b[3:5] - b[1:3]) - both)


def average_precision(true, found, kind):
    """The area under precision over recall; right is what first covers half of a true box."""
    left = [[b for b in image if b[5] == kind] for image in true]
    total, right = sum(map(len, left)), []
    mine = [(k, b) for k, image in enumerate(found) for b in image if b[5] == kind]
    for k, box in sorted(mine, key=lambda row: -row[1][0]):
        best = max(range(len(left[k])), key=lambda i: overlap(left[k][i], box), default=None)
        right.append(best is not None and overlap(left[k][best], box) >= 0.5)
        if right[-1]:
            left[k].pop(best)
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return np.sum(np.maximum.accumulate(precision[::-1])[::-1][np.array(right, bool)]) / total


def picture(file, images, true, found):
    """Images, three times as large, with the true boxes in white and those found in red."""
    large = images.repeat(3, axis=1).repeat(3, axis=2)
    for image, *both in zip(large, true, found):
        for chosen, colour in zip(both, ((1, 1, 1), (1, 0, 0))):
            for box in (b for b in chosen if b[0] > 0.5):
                l, t, r, b = np.clip(3 * box[1:5], 0, 3 * SIDE - 1).astype(int)
                image[[t, b], l:r + 1] = image[t:b + 1, [l, r]] = colour
    viz.save_png(file, viz.tiles(large))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--picture", metavar="FILE", help="write 16 test images as PNG")
    parser.add_argument("--short", action="store_true", help="30 steps")
    args = parser.parse_args(argv)
    params, state = train(30 if args.short else args.steps)
    images, answers = draw(np.random.default_rng(99), 200)
    out = fgrad.jit(lambda x: MODEL.apply(params, state, x)[0])(images)
    true, found = [boxes(a) for a in answers], [decoded(o) for o in np.asarray(out)]
    if args.picture:
        picture(args.picture, images[:16], true, found)
    each = [round(float(average_precision(true, found, k)), 3) for k in range(len(KINDS))]
    if args.short:
        print("too short to learn: run it without --short")
    print(f"mAP at half overlap: {np.mean(each):.3f}, {dict(zip(KINDS, each))}")


if __name__ == "__main__":
    main()
