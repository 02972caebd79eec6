"""Two moons: micrograd's classifier demo with a max-margin loss, and its decision boundary drawn.

What you learn: any loss you can write is one you can train with; the train step is compiled once.
Answers: micrograd's demo notebook, MiniTorch module 1, CS231n (SVM loss).
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, viz

MODEL = nn.Sequential(nn.Dense(16), nn.relu, nn.Dense(16), nn.relu, nn.Dense(1))
OPTIMIZER = optim.adam(0.01)


def moons(n, seed):
    """Two interleaving half circles with noise: f32[n,2], and labels ±1 f32[n]."""
    rng = np.random.default_rng(seed)
    angle, upper = np.pi * rng.random(n), np.arange(n) % 2 == 0
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    points = np.stack([x, y], axis=1) + 0.1 * rng.standard_normal((n, 2))
    return points.astype(np.float32), np.where(upper, 1, -1).astype(np.float32)


def scores(params, x):
    """f32[n,2] → f32[n]; its sign is the answer."""
    return MODEL.apply(params, {}, x)[0][:, 0]


def loss(params, x, y):
    """The hinge loss and a small weight penalty, as in micrograd's demo."""
    margin = fnp.mean(nn.relu(1.0 - y * scores(params, x)))
    penalty = sum(fnp.sum(p * p) for p in fgrad.tree.leaves(params))
    return margin + 1e-4 * penalty


@fgrad.jit
def step(params, state, x, y):
    value, grads = fgrad.value_and_grad(loss)(params, x, y)
    updates, state = OPTIMIZER.update(grads, state, params)
    return optim.apply_updates(params, updates), state, value


def picture(file, params, x, y, size=120):
    """The decision boundary over [-1.5, 2.5] × [-1, 1.5], and the points, as SVG."""
    columns, rows = np.meshgrid(np.linspace(-1.5, 2.5, size), np.linspace(1.5, -1, size))
    grid = np.stack([columns.ravel(), rows.ravel()], axis=1).astype(np.float32)
    inside = np.asarray(scores(params, grid)).reshape(size, size, 1) > 0
    plot = viz.Plot("two moons", size=(480, 340))
    plot.image(np.where(inside, [0.81, 0.89, 1.0], [1.0, 0.88, 0.8]), -1.5, 2.5, -1, 1.5)
    for sign in (1, -1):
        plot.points(*x[y == sign].T)
    plot.save(file)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--picture", metavar="FILE", help="write the decision boundary as SVG")
    parser.add_argument("--short", action="store_true", help="100 steps only")
    args = parser.parse_args(argv)
    x, y = moons(200, seed=0)
    params, _ = MODEL.init(fgrad.random.key(0), x)
    state = OPTIMIZER.init(params)
    for k in range(100 if args.short else args.steps):
        params, state, value = step(params, state, x, y)
        if k % 100 == 0:
            print(f"step {k:4}  loss {float(value):.4f}")
    if args.picture:
        picture(args.picture, params, x, y)
    print(fgrad.explain(step))
    test_x, test_y = moons(1000, seed=1)
    right = float(fnp.mean((scores(params, test_x) > 0) == (test_y > 0)))
    print(f"test accuracy: {right:.4f}")


if __name__ == "__main__":
    main()
