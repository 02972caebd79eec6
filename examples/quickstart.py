"""fgrad in one screen: derivatives, batches, compiled code, and the program behind them.

What you learn: `grad`, `vmap` and `jit` take a plain function and give another; they compose; and
what they make can be printed at every stage.
Answers: the quickstarts of JAX and of d2l chapter 2 (automatic differentiation).
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp


def predict(params, x):
    """A layer of two neurons: f32[3] → f32[2]."""
    return fnp.tanh(x @ params["w"] + params["b"])


def loss(params, x, y):
    """The squared error of one example."""
    return fnp.sum((predict(params, x) - y) ** 2)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="as it is: the whole takes a second")
    parser.parse_args(argv)
    rng = fgrad.random.Generator(0)
    params = {"w": rng.normal((3, 2)), "b": fnp.zeros(2)}
    x, y = rng.normal((8, 3)), rng.normal((8, 2))

    print("1. The gradient of a function is a function:")
    print("   grad(x³) at 2 =", fgrad.grad(lambda v: v ** 3)(2.0), "  and again:",
          fgrad.grad(fgrad.grad(lambda v: v ** 3))(2.0))
    print("   plain NumPy calls trace too: tanh'(0.5) =", fgrad.grad(np.tanh)(0.5))

    print("2. vmap runs it over a batch; here, one gradient per example:")
    per_example = fgrad.vmap(fgrad.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    print("   gradients of w:", per_example["w"].shape)

    print("3. jit compiles any of them; the result is the same:")
    batch_loss = lambda p: fnp.mean(fgrad.vmap(loss, in_axes=(None, 0, 0))(p, x, y))
    gradient = fgrad.grad(batch_loss)
    step = fgrad.jit(lambda p: fgrad.tree.map(lambda a, g: a - 0.1 * g, p, gradient(p)))
    before = float(batch_loss(params))
    for _ in range(100):
        params = step(params)
    print(f"   loss {before:.4f} -> {float(batch_loss(params)):.4f} after 100 steps")

    print("4. And this is the program of the loss, with your names and your lines:")
    print(fgrad.show(loss, params, x[0], y[0]))
    print("5. Fused into one kernel:")
    print(fgrad.show(loss, params, x[0], y[0], stage="loops"))


if __name__ == "__main__":
    main()
