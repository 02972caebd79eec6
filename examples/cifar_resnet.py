"""A residual network on small colour images: augmentation, one-cycle rates, batches made ahead.

    python examples/cifar_resnet.py                   drawn digits in colour (not CIFAR-10)
    python examples/cifar_resnet.py --data DIR        CIFAR-10's binary files in DIR, gz or plain
    python examples/cifar_resnet.py --picture seen.png    what the network is shown

What you learn: layers are put together by plain functions; batches are cropped and flipped by a
background thread while the last step runs; weight decay that spares norms and biases; the one-cycle
schedule; and a shortcut makes depth trainable.
Answers: d2l 8.6 (ResNet) and 14.13 (CIFAR-10), CS231n assignment 2 (PyTorch on CIFAR-10).
"""

import argparse
import functools
import time

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim, random, tree, viz


def conv(features, size=3, stride=1):
    return nn.Conv(features, (size, size), stride=stride, bias=False,
                   kernel_init=nn.init.he_normal())


def block(features, stride=1):
    """[relu(body(x) + shortcut(x))]: the body learns what is to be changed (He et al. 2015).

    The shortcut is x itself, or a convolution of size 1 where the body changes the shape.
    """
    body = nn.Sequential(conv(features, stride=stride), nn.BatchNorm(), nn.relu,
                         conv(features), nn.BatchNorm())
    shortcut = nn.Sequential(conv(features, 1, stride), nn.BatchNorm()) if stride > 1 else None
    return [nn.Residual(body, shortcut), nn.relu]


def resnet(blocks, width=16):
    """The paper's network for CIFAR-10: three stages; 6 · blocks + 2 layers deep."""
    layers = [layer for s in range(3) for b in range(blocks)
              for layer in block(width * 2 ** s, stride=2 if s and not b else 1)]
    return nn.Sequential(conv(width), nn.BatchNorm(), nn.relu, *layers, nn.GlobalAvgPool(),
                         nn.Dense(10))


def loss_and_rest(model, params, state, images, labels, train):
    """(mean cross-entropy, (state after it, share of right answers))"""
    logits, state = model.apply(params, state, images, train=train)
    loss = fnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, labels))
    return loss, (state, nn.accuracy(logits, labels))


def one_cycle(args, steps):
    """Nesterov's momentum, its rate up and down once; weights decay, norms and biases do not."""
    rate = optim.cosine_onecycle_schedule(steps, args.rate, pct_start=0.25)
    weights = lambda params: tree.map(lambda p: p.ndim > 1, params)
    return optim.chain(optim.add_decayed_weights(5e-4, mask=weights),
                       optim.sgd(rate, momentum=0.9, nesterov=True))


def test_accuracy(evaluate, params, state, images, labels, normalise):
    right = sum(float(evaluate(params, state, normalise(x), y)[1][1]) * len(x)
                for x, y in data.batches(images, labels, size=500, shuffle=False, drop_last=False))
    return right / len(images)


def train(args, split):
    """Trains; returns the test accuracy and the seconds of the last epoch."""
    mean, std = data.augment.statistics(split.train_images)
    normalise = functools.partial(data.augment.normalise, mean=mean, std=std)
    flips = [data.augment.flip] if args.data else []              # a mirrored digit is none
    augment = data.augment.on(data.augment.crop, *flips, normalise)
    model = resnet(args.blocks)
    params, state = model.init(random.key(args.seed), fnp.zeros((1, 32, 32, 3)))
    optimizer = one_cycle(args, args.epochs * (len(split.train_images) // args.batch))
    memory = optimizer.init(params)
    print(f"{split}; {nn.count_params(params):,} parameters")

    @fgrad.jit
    def train_step(params, state, memory, images, labels):
        of_params = lambda p: loss_and_rest(model, p, state, images, labels, True)
        (loss, (after, accuracy)), grads = fgrad.value_and_grad(of_params, has_aux=True)(params)
        updates, memory = optimizer.update(grads, memory, params)
        return optim.apply_updates(params, updates), after, memory, loss, accuracy

    evaluate = fgrad.jit(lambda p, s, x, y: loss_and_rest(model, p, s, x, y, False))
    for epoch in range(1, args.epochs + 1):
        start, seen = time.perf_counter(), []
        for x, y in data.batches(split.train_images, split.train_labels, size=args.batch,
                                 seed=(args.seed, epoch), transforms=augment, prefetch=2):
            params, state, memory, loss, accuracy = train_step(params, state, memory, x, y)
            seen.append((float(loss), float(accuracy)))
        seconds, (loss, accuracy) = time.perf_counter() - start, np.mean(seen, axis=0)
        tested = test_accuracy(evaluate, params, state, split.test_images, split.test_labels,
                               normalise)
        print(f"epoch {epoch}/{args.epochs}  loss {loss:.4f}  accuracy {accuracy:.4f}  "
              f"test {tested:.4f}  {seconds:.1f} s")
    return tested, seconds


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="folder of CIFAR-10's binary files")
    parser.add_argument("--blocks", type=int, default=1, help="a stage: 1 is 8 layers deep")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.2, help="the highest learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", metavar="FILE", help="write 40 augmented images as PNG")
    parser.add_argument("--short", action="store_true", help="a small data set and one epoch")
    args = parser.parse_args(argv)
    args.epochs = 1 if args.short else args.epochs
    split = data.cifar.load(args.data) if args.data else data.digits.in_colour(
        data.digits.drawn(*(512, 200) if args.short else (5000, 1000)))
    if args.picture:
        seen = data.augment.crop(split.train_images[:40], 0)
        viz.save_png(args.picture, viz.tiles(seen, columns=10, scale=2))
    tested, seconds = train(args, split)
    if args.short:
        print("too short to learn: run it without --short")
    print(f"test accuracy: {tested:.4f}, {seconds:.1f} s an epoch of {len(split.train_labels)}")


if __name__ == "__main__":
    main()
