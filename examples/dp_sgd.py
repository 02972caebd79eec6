"""Training with differential privacy: each example's gradient is clipped, and noise hides the rest.

    python examples/dp_sgd.py                     drawn digits (made here; not MNIST)
    python examples/dp_sgd.py --data DIR          the four MNIST files in DIR

What you learn: the gradient of every example is `vmap(grad(loss))`, in one compiled step: what
takes a loop elsewhere is one word here, at a few times the cost of the mean gradient; and how much
accuracy a promise of privacy costs.
Answers: Abadi et al. 2016 (DP-SGD, algorithm 1), JAX's DP-SGD example, the privacy labs of courses.
"""

import argparse
import functools
import math
import time

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim, random, tree

MODEL = nn.Sequential(nn.Flatten(), nn.Dense(64), nn.relu, nn.Dense(10))
OPTIMIZER = optim.sgd(0.25, momentum=0.9)


def loss(params, image, label):
    """The cross-entropy of one example: u8[28,28], u8[] → f32[]"""
    logits, _ = MODEL.apply(params, {}, image[None].astype("float32") / 255.0)
    return nn.softmax_cross_entropy_with_integer_labels(logits[0], label)


def clipped(grads, most):
    """The gradient of one example, no longer than `most`."""
    return tree.map(lambda g: g * fnp.minimum(1.0, most / optim.global_norm(grads)), grads)


def private_gradient(params, images, labels, key, most, noise):
    """The sum of clipped gradients, with normal noise of deviation noise · most, over the count."""
    one = lambda image, label: clipped(fgrad.grad(loss)(params, image, label), most)
    sums = tree.map(lambda g: fnp.sum(g, axis=0), fgrad.vmap(one)(images, labels))
    leaves, structure = tree.flatten(sums)
    noisy = [(g + noise * most * random.normal(k, g.shape)) / len(labels)
             for g, k in zip(leaves, random.split(key, len(leaves)))]
    return tree.unflatten(structure, noisy)


def mean_gradient(params, images, labels, key):
    """The ordinary gradient, of the mean loss."""
    return fgrad.grad(lambda p: fnp.mean(fgrad.vmap(loss, (None, 0, 0))(p, images, labels)))(params)


def train(gradient, split, args):
    """(parameters, milliseconds a step)"""
    @fgrad.jit
    def step(params, state, images, labels, key):
        updates, state = OPTIMIZER.update(gradient(params, images, labels, key), state, params)
        return optim.apply_updates(params, updates), state

    key, model_key = random.split(random.key(args.seed))
    params, _ = MODEL.init(model_key, fnp.zeros((1, 28, 28)))
    state, count, start = OPTIMIZER.init(params), 0, None
    for epoch in range(args.epochs):
        for images, labels in data.batches(split.train_images, split.train_labels,
                                           size=args.batch, seed=(args.seed, epoch)):
            params, state = step(params, state, images, labels, random.fold_in(key, count))
            start, count = start or time.perf_counter(), count + 1      # the first one compiles
    return params, 1e3 * (time.perf_counter() - start) / max(count - 1, 1)


def epsilon(share, steps, noise, delta):
    """ε of the promise (ε, δ), in the limit of many steps (Bu et al. 2020, corollary 5.4).

    It takes each example into each batch with probability `share`; shuffling comes close to that.
    """
    mu = share * math.sqrt(steps * math.expm1(1 / noise ** 2))
    below = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
    low, high = 0.0, 50.0
    for _ in range(60):
        eps = (low + high) / 2
        missed = below(mu / 2 - eps / mu) - math.exp(eps) * below(-mu / 2 - eps / mu)
        low, high = (eps, high) if missed > delta else (low, eps)
    return eps


def test_accuracy(params, split):
    logits, _ = MODEL.apply(params, {}, split.test_images.astype("float32") / 255.0)
    return float(nn.accuracy(logits, split.test_labels))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="folder of the four MNIST files, gz or plain")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--most", type=float, default=1.0, help="longest gradient of an example")
    parser.add_argument("--noise", type=float, default=1.1, help="deviation of the noise, in these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="a small data set, few epochs")
    args = parser.parse_args(argv)
    split = (data.mnist.load(args.data) if args.data else
             data.digits.drawn(*(1500, 500) if args.short else (12000, 2000), seed=args.seed))
    args.epochs = 8 if args.short else args.epochs
    print(split)
    hidden = functools.partial(private_gradient, most=args.most, noise=args.noise)
    params, slow = train(hidden, split, args)
    plain, fast = train(mean_gradient, split, args)
    print(f"{args.batch} examples: {slow:.1f} ms a step one by one, {fast:.1f} ms by their mean")
    n, delta = len(split.train_labels), 1e-5
    eps = epsilon(args.batch / n, args.epochs * (n // args.batch), args.noise, delta)
    print(f"test accuracy: {test_accuracy(params, split):.4f} with (ε={eps:.2f}, δ={delta:g}) "
          f"privacy, {test_accuracy(plain, split):.4f} without")


if __name__ == "__main__":
    main()
