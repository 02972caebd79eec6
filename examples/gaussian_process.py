"""A Gaussian process whose length, height and noise are learned by the gradient of the evidence.

    python examples/gaussian_process.py
    python examples/gaussian_process.py --picture gp.svg     the fit and how sure it is

What you learn: a loss may hold a Cholesky factorisation, and its gradient still comes out;
positive parameters are learned as logarithms; `optim.minimize_lbfgs` suits a loss without noise;
and a kernel is a function of two points, of which two `vmap`s make a matrix.
Answers: d2l chapter 18 (Gaussian processes), Rasmussen and Williams 2006, algorithm 2.1.
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import optim, viz

START = {"log_length": np.float64(0), "log_height": np.float64(0), "log_noise": np.float64(-1)}
NOISE = 0.15                                                     # of the data made here


def kernel(params, a, b):
    """How much two points have to do with each other: height² · exp(-½ (distance / length)²)."""
    distance = (a - b) / fnp.exp(params["log_length"])
    return fnp.exp(2 * params["log_height"] - 0.5 * distance ** 2)


def matrix(params, xs, ys):
    """The kernel of every pair: f[n], f[m] → f[n,m]."""
    return fgrad.vmap(fgrad.vmap(kernel, (None, None, 0)), (None, 0, None))(params, xs, ys)


def factored(params, x, y):
    """(L, α): the Cholesky factor of K + noise², and what it makes of y: (K + noise²)⁻¹ y."""
    noisy = matrix(params, x, x) + fnp.exp(2 * params["log_noise"]) * fnp.eye(len(x), dtype=x.dtype)
    lower = fnp.linalg.cholesky(noisy)
    solve = fgrad.scipy.linalg.solve_triangular
    return lower, solve(lower, solve(lower, y, lower=True), trans=1, lower=True)


def loss(params, x, y):
    """-log p(y | x), with every function that fits integrated out.  f64[]"""
    lower, alpha = factored(params, x, y)
    return (0.5 * y @ alpha + fnp.sum(fnp.log(fnp.diagonal(lower)))
            + 0.5 * len(x) * fnp.log(2 * np.pi))


@fgrad.jit
def predict(params, x, y, at):
    """(mean, standard deviation) of the function at new points: f[m], f[m]."""
    lower, alpha = factored(params, x, y)
    across = matrix(params, x, at)                               # f[n,m]
    half = fgrad.scipy.linalg.solve_triangular(lower, across, lower=True)
    variance = fnp.exp(2 * params["log_height"]) - fnp.sum(half ** 2, axis=0)
    return across.T @ alpha, fnp.sqrt(fnp.maximum(variance, 0.0))


def truth(x):
    return np.sin(3 * x) + 0.3 * x


def data(n, seed=0):
    """n noisy points of a curve, none of them between 0.5 and 1.5: f64[n], f64[n]."""
    rng = np.random.default_rng(seed)
    x = np.sort(np.where(rng.random(n) < 0.6, rng.uniform(-3, 0.5, n), rng.uniform(1.5, 3, n)))
    return x, truth(x) + NOISE * rng.standard_normal(n)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--picture", metavar="FILE", help="write the fit as SVG")
    parser.add_argument("--short", action="store_true", help="as it is: the whole takes seconds")
    args = parser.parse_args(argv)
    x, y = data(args.points)
    found = optim.minimize_lbfgs(lambda p: loss(p, x, y), START)
    print(f"-log evidence {float(loss(START, x, y)):.2f} -> {float(found.value):.2f} "
          f"in {int(found.steps)} steps of L-BFGS")
    for name, value in found.params.items():
        print(f"  {name.removeprefix('log_'):7} {float(np.exp(value)):.3f}")
    at = np.linspace(-3.5, 3.5, 200)
    mean, deviation = predict(found.params, x, y, at)
    if args.picture:
        plot = viz.Plot("a Gaussian process", x="x", y="y", size=(640, 360))
        plot.band(at, mean - 2 * deviation, mean + 2 * deviation, "± 2 deviations")
        plot.line(at, mean, "mean").line(at, truth(at), "truth").points(x, y, "data")
        plot.save(args.picture)
    inside = np.mean(np.abs(np.asarray(mean) - truth(at)) < 2 * np.asarray(deviation))
    print(f"noise {float(np.exp(found.params['log_noise'])):.3f} (true {NOISE}); "
          f"the truth is within 2 deviations at {inside:.0%} of the places")


if __name__ == "__main__":
    main()
