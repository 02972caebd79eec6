"""A neural network as the right side of a differential equation, learned from points of a spiral.

    python examples/neural_ode.py
    python examples/neural_ode.py --picture spiral.svg     the true spiral and the learned one

What you learn: a solver is a `scan`, and the gradient runs through it as through any loop, compiled
once for any number of steps; `vmap` starts it from many points at a time; and a model learned from
short pieces of a path holds for much longer ones.
Answers: Chen et al. 2018 (the spiral), the Runge-Kutta exercise of numerical courses.
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, viz

MODEL = nn.Sequential(nn.Dense(50), nn.tanh, nn.Dense(2))
TURN = fnp.array([[-0.1, 2.0], [-2.0, -0.1]])
STEP, PIECE = 0.025, 10                                          # seconds a step, steps a piece


def spiral(y):
    """The truth: dy/dt = y³ @ turn.   f32[2] → f32[2]"""
    return y ** 3 @ TURN


def learned(params):
    """The model: dy/dt = net(y³), as in the paper."""
    return lambda y: MODEL.apply(params, {}, y[None] ** 3)[0][0]


def path(slope, start, steps, h=STEP):
    """The points f32[steps,2] after `start`, by Runge and Kutta's method of fourth order."""
    def step(y, _):
        a = slope(y)
        b = slope(y + h / 2 * a)
        c = slope(y + h / 2 * b)
        d = slope(y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
        return y, y
    return fgrad.lax.scan(step, start, length=steps)[1]


def loss(params, starts, pieces):
    """The mean squared distance between pieces of the path and the model's.

    f32[n,2], f32[n,k,2] → f32[]
    """
    found = fgrad.vmap(lambda y: path(learned(params), y, PIECE))(starts)
    return nn.mean_squared_error(found, pieces)


def train(points, steps, batch=64, seed=0):
    """The parameters after steps of Adam on random pieces of the path."""
    optimizer = optim.adam(optim.cosine_decay_schedule(0.01, steps))

    @fgrad.jit
    def step(params, state, first):
        rows = first[:, None] + fnp.arange(PIECE + 1)            # i32[batch,piece+1]
        pieces = points[rows]
        value, grads = fgrad.value_and_grad(loss)(params, pieces[:, 0], pieces[:, 1:])
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    params, _ = MODEL.init(fgrad.random.key(seed), points[:1])
    state, rng = optimizer.init(params), np.random.default_rng(seed)
    for k in range(steps):
        first = rng.integers(len(points) - PIECE, size=batch).astype("int32")
        params, state, value = step(params, state, first)
        if k % 1000 == 0 or k == steps - 1:
            print(f"step {k:4d}  loss {float(value):.2e}")
    return params


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--picture", metavar="FILE", help="write both spirals as SVG")
    parser.add_argument("--short", action="store_true", help="200 steps")
    args = parser.parse_args(argv)
    start = fnp.array([2.0, 0.0])
    true = fgrad.jit(lambda y: path(spiral, y, 1000))(start)      # 25 seconds of it
    params = train(true, 200 if args.short else args.steps)
    found = fgrad.jit(lambda p: path(learned(p), start, 1000))(params)
    if args.picture:
        plot = viz.Plot("25 seconds of a spiral", x="y₁", y="y₂", size=(420, 420))
        plot.points(*np.asarray(true).T, "data", radius=2).line(*np.asarray(found).T, "learned")
        plot.save(args.picture)
    apart = float(fnp.mean(fnp.abs(found - true)))
    print(f"learned from pieces of {STEP * PIECE:g} s; mean distance over {1000 * STEP:g} s: "
          f"{apart:.4f}")


if __name__ == "__main__":
    main()
