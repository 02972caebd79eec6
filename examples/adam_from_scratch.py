"""Adam in twelve lines, beside the one in `fgrad.optim`: the same steps, up to rounding.

    python examples/adam_from_scratch.py
    python examples/adam_from_scratch.py --picture paths.svg     the paths down a bent valley

What you learn: an optimizer is two pure functions, `init(params)` and `update(grads, state,
params)`; moments are trees like the parameters, and bias correction undoes that they begin at zero.
What you write that way can stand wherever fgrad's own can: in `chain`, in `multi_transform`, under
`jit`.
Answers: CS231n assignment 2 (update rules), d2l chapter 12 (momentum … Adam), TinyTorch optimizers.
"""

import argparse
from typing import NamedTuple

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import optim, tree, viz

START = {"x": fnp.array(-1.5), "y": fnp.array(2.0)}


class AdamState(NamedTuple):
    """The number of steps, and the running means of the gradients and of their squares."""
    count: object
    mean: object
    square: object


def adam(rate, b1=0.9, b2=0.999, eps=1e-8):
    """Adam (Kingma and Ba 2015, algorithm 1)."""
    def init(params):
        zeros = tree.map(fnp.zeros_like, params)
        return AdamState(fnp.array(0), zeros, zeros)

    def update(grads, state, params=None):
        count = state.count + 1
        mean = tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mean, grads)
        square = tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state.square, grads)
        m_scale, v_scale = 1 / (1 - b1 ** count), 1 / (1 - b2 ** count)
        updates = tree.map(lambda m, v: -rate * m * m_scale / (fnp.sqrt(v * v_scale) + eps),
                           mean, square)
        return updates, AdamState(count, mean, square)
    return optim.GradientTransformation(init, update)


def valley(p):
    """Rosenbrock's bent valley: least, 0, at (1, 1)."""
    return (1 - p["x"]) ** 2 + 20 * (p["y"] - p["x"] ** 2) ** 2


def descend(optimizer, steps):
    """The path f32[steps,2] of the parameters, all steps in one compiled scan."""
    def step(carry, _):
        params, state = carry
        updates, state = optimizer.update(fgrad.grad(valley)(params), state, params)
        params = optim.apply_updates(params, updates)
        return (params, state), params

    @fgrad.jit
    def run(params):
        return fgrad.lax.scan(step, (params, optimizer.init(params)), length=steps)[1]

    path = run(START)
    return np.stack([path["x"], path["y"]], axis=1)


def picture(file, paths):
    """The valley's height as shades, and the path of each optimizer."""
    x, y = np.meshgrid(np.linspace(-2, 2, 160), np.linspace(3, -1, 160))
    height = np.log1p(valley({"x": x, "y": y}))
    plot = viz.Plot("down a bent valley", x="x", y="y", size=(480, 420))
    plot.image(1 - 0.6 * height / height.max(), -2, 2, -1, 3)
    for name, path in paths.items():
        plot.line(*path.T, name)
    plot.points([1], [1], colour="black").save(file)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--picture", metavar="FILE", help="write the paths as SVG")
    parser.add_argument("--short", action="store_true", help="200 steps")
    args = parser.parse_args(argv)
    steps = 200 if args.short else args.steps
    paths = {"sgd": descend(optim.sgd(0.002), steps),
             "momentum": descend(optim.sgd(0.002, momentum=0.9), steps),
             "rmsprop": descend(optim.rmsprop(0.02), steps),
             "optim.adam": descend(optim.adam(0.05), steps),
             "adam, from scratch": descend(adam(0.05), steps)}
    for name, path in paths.items():
        x, y = path[-1]
        print(f"{name:20} after {steps} steps at ({x:.4f}, {y:.4f}), "
              f"height {valley({'x': x, 'y': y}):.2e}")
    if args.picture:
        picture(args.picture, paths)
    apart = np.abs(paths["adam, from scratch"] - paths["optim.adam"]).max()
    print(f"largest difference from optim.adam: {apart:.1e}")


if __name__ == "__main__":
    main()
