"""A variational autoencoder: digits from sixteen numbers, and new digits from random ones.

    python examples/vae.py --picture digits.png                 drawn digits (made here; not MNIST)
    python examples/vae.py --data DIR --picture digits.png      the four MNIST files in DIR

What you learn: two networks trained together by one loss; a random number inside of a loss, by a
key, with the gradient flowing around it (the reparameterisation trick); and that --plain, without
noise and prior, is an autoencoder, which remembers better but cannot invent.
Answers: d2l and CS231n's generative models (assignment 3), Kingma and Welling 2014.
"""

import argparse
import time

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim, random, viz

SIZE = 16                                                  # numbers per digit
ENCODER = nn.Sequential(nn.Flatten(), nn.Dense(256), nn.relu, nn.Dense(2 * SIZE))
DECODER = nn.Sequential(nn.Dense(256), nn.relu, nn.Dense(784))


def init(key):
    """The parameters of both."""
    first, second = random.split(key)
    return {"encoder": ENCODER.init(first, fnp.zeros((1, 28, 28)))[0],
            "decoder": DECODER.init(second, fnp.zeros((1, SIZE)))[0]}


def encode(params, images):
    """Mean and log variance of each code: u8[n,28,28] → f32[n,SIZE], f32[n,SIZE]."""
    out, _ = ENCODER.apply(params["encoder"], {}, images.astype("float32") / 255.0)
    return out[:, :SIZE], out[:, SIZE:]


def decode(params, codes):
    """How likely ink is at each pixel, as a score: f32[n,SIZE] → f32[n,784]."""
    return DECODER.apply(params["decoder"], {}, codes)[0]


def cross_entropy(scores, images):
    """-log p(image | code), ink taken as the probability of a black pixel.   f32[n]"""
    ink = fnp.reshape(images.astype("float32") / 255.0, (len(images), 784))
    return fnp.sum(nn.sigmoid_binary_cross_entropy(scores, ink), axis=1)


def loss(params, images, key):
    """-ELBO, in nats an image: what is lost, and how far the codes are from the prior N(0, 1)."""
    mean, log_variance = encode(params, images)
    noise = random.normal(key, mean.shape)
    codes = mean + fnp.exp(0.5 * log_variance) * noise
    divergence = 0.5 * fnp.sum(fnp.exp(log_variance) + mean ** 2 - 1 - log_variance, axis=1)
    return fnp.mean(cross_entropy(decode(params, codes), images) + divergence)


def plain_loss(params, images, key):
    """An autoencoder's: what is lost, with codes that are neither noisy nor near any prior."""
    return fnp.mean(cross_entropy(decode(params, encode(params, images)[0]), images))


def train(loss, split, epochs, batch=128, seed=0):
    """The parameters after Adam over so many epochs."""
    optimizer = optim.adam(1e-3)

    @fgrad.jit
    def step(params, state, images, key):
        value, grads = fgrad.value_and_grad(loss)(params, images, key)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    model_key, key = random.split(random.key(seed))
    params = init(model_key)
    state, count = optimizer.init(params), 0
    for epoch in range(1, epochs + 1):
        start, values = time.perf_counter(), []
        for (images,) in data.batches(split.train_images, size=batch, seed=(seed, epoch)):
            params, state, value = step(params, state, images, random.fold_in(key, count))
            values.append(value)
            count += 1
        print(f"epoch {epoch}/{epochs}  loss {np.mean([float(v) for v in values]):.2f} nats  "
              f"{time.perf_counter() - start:.1f} s")
    return params


def picture(file, params, images):
    """Sixteen digits, below each what its code remembers, and below these 32 new ones."""
    codes = random.normal(random.key(7), (32, SIZE))
    drawn = lambda codes: np.asarray(nn.sigmoid(decode(params, codes))).reshape(-1, 28, 28)
    rows = [images[:16] / 255.0, drawn(encode(params, images[:16])[0]), drawn(codes)]
    viz.save_png(file, 1 - viz.tiles(np.concatenate(rows), columns=16, scale=2) / 255.0)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="folder of the four MNIST files, gz or plain")
    parser.add_argument("--plain", action="store_true", help="an autoencoder: no noise, no prior")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--picture", metavar="FILE", help="write digits, old and new, as PNG")
    parser.add_argument("--short", action="store_true", help="a small data set, few epochs")
    args = parser.parse_args(argv)
    split = (data.mnist.load(args.data) if args.data else
             data.digits.drawn(*(1500, 500) if args.short else (12000, 2000)))
    print(split)
    chosen = plain_loss if args.plain else loss
    params = train(chosen, split, 8 if args.short else args.epochs)
    if args.picture:
        picture(args.picture, params, split.test_images)
    tested = float(fgrad.jit(chosen)(params, split.test_images, random.key(1)))
    ink = np.clip(split.train_images.mean(axis=0).reshape(784) / 255.0, 1e-4, 1 - 1e-4)
    blind = np.tile(np.log(ink / (1 - ink)).astype("f4"), (len(split.test_images), 1))
    mean = float(fnp.mean(cross_entropy(blind, split.test_images)))
    print(f"test: {tested:.2f} nats an image; the mean image alone: {mean:.2f}")


if __name__ == "__main__":
    main()
