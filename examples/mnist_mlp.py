"""Train an MLP 784 → 256 → 128 → 10 on handwritten digits, with a compiled train step and Adam.

    python examples/mnist_mlp.py                      drawn digits (made here in seconds; not MNIST)
    python examples/mnist_mlp.py --data DIR           the four MNIST files in DIR
    python examples/mnist_mlp.py --show loops         print the compiled train step, and stop

What you learn: a model as a pytree of arrays, `value_and_grad` and an optimizer inside one `jit`,
and the same program at every stage of its compilation.
Answers: d2l chapter 5, CS231n assignment 1 (two-layer net), MiniTorch module 3, TinyTorch MLP.
"""

import argparse
import sys
import time

import fgrad
import fgrad.numpy as fnp
from fgrad import data, io, nn, optim

MODEL = nn.Sequential(nn.Flatten(), nn.Dense(256, kernel_init=nn.init.he_uniform()), nn.relu,
                      nn.Dense(128, kernel_init=nn.init.he_uniform()), nn.relu, nn.Dense(10))


def loss_and_accuracy(params, images, labels):
    """The mean cross-entropy, and the share of right answers: u8[n,28,28], u8[n] → f32[], f32[]."""
    logits, _ = MODEL.apply(params, {}, images.astype("float32") / 255.0)
    loss = fnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, labels))
    return loss, nn.accuracy(logits, labels)


def make_step(optimizer, device):
    """The compiled train step: params, state, batch → params, state, loss, accuracy."""
    @fgrad.jit(device=device)
    def train_step(params, state, images, labels):
        gradient = fgrad.value_and_grad(loss_and_accuracy, has_aux=True)
        (loss, accuracy), grads = gradient(params, images, labels)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, loss, accuracy
    return train_step


def test_accuracy(evaluate, params, images, labels, batch=1000):
    """The share of right answers over all images."""
    right = sum(float(evaluate(params, x, y)[1]) * len(x)
                for x, y in data.batches(images, labels, size=batch, shuffle=False,
                                         drop_last=False))
    return right / len(images)


class Progress:
    """One line on a terminal that is drawn over; in a log, one line an epoch."""

    def __init__(self, epoch, epochs, steps, batch):
        self.title, self.steps, self.batch = f"epoch {epoch}/{epochs}", steps, batch
        self.start, self.drawn, self.live = time.perf_counter(), 0.0, sys.stderr.isatty()

    def show(self, step, loss, accuracy, last=False):
        now = time.perf_counter()
        if self.live and (last or now - self.drawn > 0.1):
            self.drawn = now
            filled = 24 * step // self.steps
            rate = step * self.batch / (now - self.start)
            print(f"\r{self.title} [{'█' * filled}{'·' * (24 - filled)}] loss {loss:.4f}  "
                  f"accuracy {accuracy:.3f}  {rate:,.0f} images/s ", end="", file=sys.stderr,
                  flush=True)

    def done(self, loss, accuracy, tested):
        rate = self.steps * self.batch / (time.perf_counter() - self.start)
        if self.live:
            print("\r\033[K", end="", file=sys.stderr)
        print(f"{self.title}  loss {loss:.4f}  accuracy {accuracy:.4f}  test {tested:.4f}  "
              f"{rate:,.0f} images/s")


def load(args):
    """The images and labels to train and test on."""
    if args.download:
        return data.mnist.load(data.mnist.download())
    if args.data:
        return data.mnist.load(args.data)
    print("Training on drawn digits, made here from a seed; they are not MNIST "
          "(--data DIR or --download).")
    return data.digits.drawn(2000 if args.short else 12000, 500 if args.short else 2000,
                             seed=args.seed)


def train(args):
    """Trains, and returns the test accuracy."""
    split = load(args)
    key = fgrad.random.key(args.seed)
    params, _ = MODEL.init(key, fnp.zeros((1, 28, 28)))
    optimizer = optim.adam(args.rate)
    state, train_step = optimizer.init(params), make_step(optimizer, args.device)
    if args.show:
        print(fgrad.show(train_step, params, state, split.train_images[:args.batch],
                         split.train_labels[:args.batch], stage=args.show, device=args.device))
        return None
    evaluate = fgrad.jit(loss_and_accuracy, device=args.device)
    for epoch in range(1, args.epochs + 1):
        shuffled = data.batches(split.train_images, split.train_labels, size=args.batch,
                                seed=(args.seed, epoch))
        progress, total = Progress(epoch, args.epochs, len(shuffled), args.batch), [0.0, 0.0]
        for step, (images, labels) in enumerate(shuffled, 1):
            params, state, loss, accuracy = train_step(params, state, images, labels)
            if args.losses:
                print(f"step {step}  loss {float(loss):.6f}")
            total = [total[0] + float(loss), total[1] + float(accuracy)]
            progress.show(step, float(loss), float(accuracy), last=step == len(shuffled))
        tested = test_accuracy(evaluate, params, split.test_images, split.test_labels)
        progress.done(total[0] / len(shuffled), total[1] / len(shuffled), tested)
    if args.save:
        io.save(args.save, params)
        print(f"saved the parameters in {args.save}")
    return tested


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="folder of the four MNIST files, gz or plain")
    parser.add_argument("--download", action="store_true",
                        help="fetch MNIST, checked by SHA-256, into a cache")
    parser.add_argument("--device", help="cpu or opencl")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3, help="Adam's learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", metavar="STAGE",
                        help="ir, fused, loops, llvm, opencl or asm: print it and stop")
    parser.add_argument("--save", metavar="FILE", help="write the parameters as safetensors")
    parser.add_argument("--losses", action="store_true", help="print the loss of every step")
    parser.add_argument("--short", action="store_true",
                        help="a small data set and one epoch, for a quick check")
    args = parser.parse_args(argv)
    args.epochs = 1 if args.short else args.epochs
    tested = train(args)
    if tested is not None:
        print(f"test accuracy: {tested:.4f}")


if __name__ == "__main__":
    main()
