"""Learn XOR: micrograd's first demo, un-jitted and jitted, with the decision boundary as ASCII.

What you learn: gradients of a Python function of a pytree, and the same training step compiled.
Answers: micrograd's first network, the perceptron exercise of every course, TinyTorch milestone 2.
"""

import argparse
import time

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim

X = fnp.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = fnp.array([0.0, 1.0, 1.0, 0.0])
MODEL = nn.Sequential(nn.Dense(8), nn.tanh, nn.Dense(1))
OPTIMIZER = optim.adam(0.05)


def logits(params, x):
    """f32[n,2] → f32[n]"""
    return MODEL.apply(params, {}, x)[0][:, 0]


def loss(params):
    return fnp.mean(nn.sigmoid_binary_cross_entropy(logits(params, X), Y))


def step(params, state):
    value, grads = fgrad.value_and_grad(loss)(params)
    updates, state = OPTIMIZER.update(grads, state, params)
    return optim.apply_updates(params, updates), state, value


def train(step, steps):
    """(params, first loss, last loss, seconds)"""
    params, _ = MODEL.init(fgrad.random.key(0), X)
    state, losses, start = OPTIMIZER.init(params), [], time.perf_counter()
    for _ in range(steps):
        params, state, value = step(params, state)
        losses.append(float(value))
    return params, losses[0], losses[-1], time.perf_counter() - start


def picture(params, size=24):
    """The decision boundary over the square [-0.5, 1.5]², as text."""
    axis = fnp.linspace(-0.5, 1.5, size)
    rows, columns = fnp.meshgrid(axis[::-1], axis, indexing="ij")
    values = logits(params, fnp.stack([columns.ravel(), rows.ravel()], axis=-1)).reshape(size, size)
    shades = " ·+#"
    rows = nn.sigmoid(values).tolist()
    return "\n".join("".join(2 * shades[min(3, int(4 * p))] for p in row) for row in rows)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--short", action="store_true", help="as it is: the whole takes seconds")
    args = parser.parse_args(argv)
    params, first, last, eager = train(step, args.steps)
    print(f"un-jitted: loss {first:.4f} -> {last:.4f} in {args.steps} steps, {1e3 * eager:.0f} ms")
    params, first, last, compiled = train(fgrad.jit(step), args.steps)
    print(f"jitted:    loss {first:.4f} -> {last:.4f} in {args.steps} steps, "
          f"{1e3 * compiled:.0f} ms with compiling")
    print(picture(params))
    right = int(fnp.sum((logits(params, X) > 0) == (Y > 0.5)))
    print(f"right answers: {right} of 4")


if __name__ == "__main__":
    main()
