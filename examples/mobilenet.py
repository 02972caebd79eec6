"""MobileNet's block: a convolution taken apart into one over places and one over channels.

    python examples/mobilenet.py                  drawn digits in colour (not CIFAR-10)
    python examples/mobilenet.py --data DIR       CIFAR-10's binary files in DIR, gz or plain

What you learn: `groups` makes a convolution see one channel at a time (depthwise); with one of size
1×1 behind it, it does nearly what an ordinary one does with an eighth of the parameters and
products; a model is a value, so that two of them can be built, counted and timed side by side.
Answers: CS231n (efficient networks), the MobileNet labs, Howard et al. 2017, table 4.
"""

import argparse
import time

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim, random


def ordinary(inputs, features, stride):
    """A convolution over places and channels at once, with norm and relu."""
    return [nn.Conv(features, (3, 3), stride=stride, bias=False), nn.BatchNorm(), nn.relu]


def separable(inputs, features, stride):
    """MobileNet's: over places within each channel, then over channels at each place."""
    return [nn.Conv(inputs, (3, 3), stride=stride, groups=inputs, bias=False),
            nn.BatchNorm(), nn.relu,
            nn.Conv(features, (1, 1), bias=False), nn.BatchNorm(), nn.relu]


def network(block, widths):
    """A first convolution, then two blocks for each width, the first of them with stride 2."""
    layers, inputs = [nn.Conv(16, (3, 3), bias=False), nn.BatchNorm(), nn.relu], 16
    for width in widths:
        layers += block(inputs, width, 2) + block(width, width, 1)
        inputs = width
    return nn.Sequential(*layers, nn.GlobalAvgPool(), nn.Dense(10))


def loss_and_rest(model, params, state, images, labels, train):
    """(mean cross-entropy, (state after it, share of right answers)): u8[n,32,32,3], u8[n]"""
    x = images.astype("float32") / 128.0 - 1.0
    logits, state = model.apply(params, state, x, train=train)
    loss = fnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, labels))
    return loss, (state, nn.accuracy(logits, labels))


def train(model, split, epochs, batch=64, seed=0):
    """(test accuracy, parameters, milliseconds a step)"""
    params, state = model.init(random.key(seed), fnp.zeros((1, 32, 32, 3)))
    optimizer = optim.adam(optim.cosine_decay_schedule(
        3e-3, epochs * (len(split.train_images) // batch)))
    memory, times = optimizer.init(params), []

    @fgrad.jit
    def step(params, state, memory, images, labels):
        of_params = lambda p: loss_and_rest(model, p, state, images, labels, True)
        (loss, (after, _)), grads = fgrad.value_and_grad(of_params, has_aux=True)(params)
        updates, memory = optimizer.update(grads, memory, params)
        return optim.apply_updates(params, updates), after, memory, loss

    for epoch in range(epochs):
        for x, y in data.batches(split.train_images, split.train_labels, size=batch,
                                 seed=(seed, epoch)):
            start = time.perf_counter()
            params, state, memory, loss = step(params, state, memory, x, y)
            times.append(time.perf_counter() - start)
        print(f"  epoch {epoch + 1}/{epochs}  loss {float(loss):.3f}")
    evaluate = fgrad.jit(lambda x, y: loss_and_rest(model, params, state, x, y, False)[1][1])
    right = [float(evaluate(x, y)) for x, y in data.batches(
        split.test_images, split.test_labels, size=100, shuffle=False)]
    return np.mean(right), nn.count_params(params), 1e3 * np.median(times)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="folder of CIFAR-10's binary files")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--short", action="store_true", help="a small data set and one epoch")
    args = parser.parse_args(argv)
    split = data.cifar.load(args.data) if args.data else data.digits.in_colour(
        data.digits.drawn(*(192, 100) if args.short else (6000, 1000)))
    print(split)
    results = []
    for block in (separable, ordinary):
        model = network(block, (32,) if args.short else (32, 64, 128))
        table = nn.summary(model, fnp.zeros((1, 32, 32, 3))).splitlines()
        print(f"{block.__name__}:", table[0], table[-1], sep="\n")    # of one image
        tested, count, ms = train(model, split, 1 if args.short else args.epochs)
        print(f"  {ms:.1f} ms a step of 64")
        results.append(f"{tested:.4f} with {count:,} parameters ({block.__name__})")
    if args.short:
        print("too short to learn: run it without --short")
    print("test accuracy:", ", ".join(results))


if __name__ == "__main__":
    main()
