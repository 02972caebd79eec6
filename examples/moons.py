"""Two moons: micrograd's classifier demo with a max-margin loss, and its decision boundary as SVG.

What it shows: any loss you can write is one you can train with; the train step is compiled once.
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim

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


def svg(params, x, y, size=60):
    """The decision boundary and the points as the text of an SVG picture."""
    columns, rows = np.meshgrid(np.linspace(-1.5, 2.5, size), np.linspace(-1, 1.5, size))
    grid = np.stack([columns.ravel(), rows.ravel()], 1).astype(np.float32)
    inside = np.asarray(scores(params, grid)).reshape(size, size) > 0
    width, height = 400 / size, 250 / size
    shapes = [f'<rect x="{c * width:.1f}" y="{250 - (r + 1) * height:.1f}" '
              f'width="{width + .5:.1f}" '
              f'height="{height + .5:.1f}" fill="{"#cfe3ff" if inside[r, c] else "#ffe0cc"}"/>'
              for r in range(size) for c in range(size)]
    shapes += [f'<circle cx="{100 * (a + 1.5):.1f}" cy="{250 - 100 * (b + 1):.1f}" r="3" '
               f'fill="{"#1f5fbf" if k > 0 else "#d9541e"}"/>' for (a, b), k in zip(x, y)]
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 250">{"".join(shapes)}</svg>'


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--svg", metavar="FILE", help="write the decision boundary as a picture")
    parser.add_argument("--short", action="store_true", help="100 steps only")
    args = parser.parse_args(argv)
    x, y = moons(200, seed=0)
    params, _ = MODEL.init(fgrad.random.key(0), x)
    state = OPTIMIZER.init(params)
    for k in range(100 if args.short else args.steps):
        params, state, value = step(params, state, x, y)
        if k % 100 == 0:
            print(f"step {k:4}  loss {float(value):.4f}")
    if args.svg:
        with open(args.svg, "w") as file:
            file.write(svg(params, x, y))
        print(f"drew {args.svg}")
    print(fgrad.explain(step))
    test_x, test_y = moons(1000, seed=1)
    right = float(fnp.mean((scores(params, test_x) > 0) == (test_y > 0)))
    print(f"test accuracy: {right:.4f}")


if __name__ == "__main__":
    main()
