"""Train a small convolutional network on handwritten digits.

    python examples/mnist_cnn.py                          drawn digits (made here; not MNIST)
    python examples/mnist_cnn.py --data DIR               the four MNIST files in DIR
    python examples/mnist_cnn.py --picture filters.png    draw what the first layer learned

What you learn: layers with parameters and with state (the running statistics of batch
normalisation), random keys for dropout, all of it inside one compiled train step; and what a
convolution learns.
Answers: CS231n assignment 2 (CNN, batch norm, dropout), MiniTorch module 4, d2l 7.6 (LeNet).
"""

import argparse
import math
import time

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim, viz

MODEL = nn.Sequential(
    nn.Conv(32, (5, 5), bias=False), nn.BatchNorm(), nn.relu, nn.MaxPool((2, 2)),
    nn.Conv(64, (3, 3), bias=False), nn.BatchNorm(), nn.relu, nn.MaxPool((2, 2)),
    nn.Flatten(), nn.Dropout(0.3), nn.Dense(10))


def loss_and_rest(params, state, images, labels, key=None):
    """(mean cross-entropy, (state after it, share of right answers)); with a key: in training."""
    x = images.astype("float32")[..., None] / 255.0 - 0.13
    logits, state = MODEL.apply(params, state, x, train=key is not None, key=key)
    loss = fnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, labels))
    return loss, (state, nn.accuracy(logits, labels))


def make_step(optimizer, device):
    """The compiled train step: everything that changes goes in, and comes out."""
    @fgrad.jit(device=device)
    def train_step(params, state, memory, images, labels, key):
        gradient = fgrad.value_and_grad(loss_and_rest, has_aux=True)
        (loss, (state, accuracy)), grads = gradient(params, state, images, labels, key)
        updates, memory = optimizer.update(grads, memory, params)
        return optim.apply_updates(params, updates), state, memory, loss, accuracy
    return train_step


def cosine(peak, steps):
    """The learning rate at each step: half a cosine from `peak` down to 0."""
    return lambda step: 0.5 * peak * (1 + fnp.cos(math.pi / steps * step.astype("float32")))


def test_accuracy(evaluate, params, state, images, labels):
    """The share of right answers over all images."""
    right = sum(float(evaluate(params, state, x, y)[1][1]) * len(x)
                for x, y in data.batches(images, labels, size=500, shuffle=False, drop_last=False))
    return right / len(images)


def load(args):
    """The images and labels to train and test on."""
    if args.data:
        return data.mnist.load(args.data)
    print("Training on drawn digits, made here from a seed; they are not MNIST (--data DIR).")
    return data.digits.drawn(1500 if args.short else 12000, 500 if args.short else 2000,
                             seed=args.seed)


def train(args):
    """Trains; returns the parameters and the test accuracy."""
    split = load(args)
    key, model_key = fgrad.random.split(fgrad.random.key(args.seed))
    params, state = MODEL.init(model_key, fnp.zeros((1, 28, 28, 1)))
    optimizer = optim.adam(cosine(args.rate, args.epochs * (len(split.train_images) // args.batch)))
    memory, train_step = optimizer.init(params), make_step(optimizer, args.device)
    if args.show:
        batch = split.train_images[:args.batch], split.train_labels[:args.batch]
        print(fgrad.show(train_step, params, state, memory, *batch, key, stage=args.show,
                         device=args.device))
        return params, None
    evaluate = fgrad.jit(loss_and_rest, device=args.device)
    for epoch in range(1, args.epochs + 1):
        batches = data.batches(split.train_images, split.train_labels, size=args.batch,
                               seed=(args.seed, epoch))
        key, epoch_key = fgrad.random.split(key)
        keys, total, start = fgrad.random.split(epoch_key, len(batches)), [], time.perf_counter()
        for (images, labels), step_key in zip(batches, keys):
            params, state, memory, loss, accuracy = train_step(params, state, memory, images,
                                                               labels, step_key)
            total.append((loss, accuracy))
        loss, accuracy = np.mean([[float(a), float(b)] for a, b in total], axis=0)
        rate = len(batches) * args.batch / (time.perf_counter() - start)
        tested = test_accuracy(evaluate, params, state, split.test_images, split.test_labels)
        print(f"epoch {epoch}/{args.epochs}  loss {loss:.4f}  accuracy {accuracy:.4f}  "
              f"test {tested:.4f}  "
              f"{rate:,.0f} images/s")
    return params, tested


def filters_picture(file, weights):
    """The filters f[a,b,1,n] as a PNG picture: blue is negative, white zero, red positive."""
    filters = np.moveaxis(np.asarray(weights)[:, :, 0], 2, 0)
    filters = filters / np.abs(filters).max(axis=(1, 2), keepdims=True)
    viz.save_png(file, viz.tiles(viz.signed(filters), columns=8, scale=14, space=14))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="folder of the four MNIST files, gz or plain")
    parser.add_argument("--device", help="cpu or opencl")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=2e-3, help="Adam's learning rate, at first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", metavar="STAGE",
                        help="ir, fused, loops, llvm, opencl or asm: print it and stop")
    parser.add_argument("--picture", metavar="FILE",
                        help="write the filters of the first layer as PNG")
    parser.add_argument("--short", action="store_true",
                        help="a small data set and one epoch, for a quick check")
    args = parser.parse_args(argv)
    args.epochs = 1 if args.short else args.epochs
    params, tested = train(args)
    if args.picture:
        filters_picture(args.picture, params["conv1"]["w"])
        print(f"drew the filters of the first layer in {args.picture}")
    if tested is not None:
        print(f"test accuracy: {tested:.4f}")


if __name__ == "__main__":
    main()
