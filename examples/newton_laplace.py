"""Newton's method and Laplace's approximation: what the Hessian of a loss is good for.

    python examples/newton_laplace.py
    python examples/newton_laplace.py --picture beetles.svg     the fitted curve, and how sure it is

How many of 481 beetles a gas kills, by dose: the data of Bliss (1935), a classic of logistic
regression.

What you learn: `hessian` of a function of a pytree is a pytree; a Newton step solves one small
linear system and doubles the right digits each time; the inverse Hessian at the end is the
covariance of the parameters, so it says how sure the fit is, and how likely the data were.
Answers: d2l 12.3 (Newton), CS229 problem set 1 (Newton for logistic regression), MacKay chapter 27.
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, tree, viz
from fgrad.flatten_util import ravel_pytree

DOSE = np.array([1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839])    # log₁₀ mg/l
BEETLES = np.array([59, 60, 62, 56, 63, 59, 62, 60.0])
KILLED = np.array([6, 13, 18, 28, 52, 53, 61, 60.0])
MIDDLE = DOSE.mean()                                   # doses are counted from here: rounder valley
START = {"at_middle": np.float64(0), "slope": np.float64(0)}


def score(params, dose):
    return params["at_middle"] + params["slope"] * (dose - MIDDLE)


def loss(params):
    """-log probability of what was counted, each beetle by itself.  f64[]"""
    s = score(params, DOSE)
    return fnp.sum(KILLED * nn.softplus(-s) + (BEETLES - KILLED) * nn.softplus(s))


@fgrad.jit
def newton_step(params):
    """params - Hessian⁻¹ · gradient, in flat coordinates; and the gradient's size."""
    flat, back = ravel_pytree(params)
    of_flat = lambda x: loss(back(x))
    slope = fgrad.grad(of_flat)(flat)
    step = fnp.linalg.solve(fgrad.hessian(of_flat)(flat), slope)
    return back(flat - step), fnp.max(fnp.abs(slope))


def newton(params, tolerance=1e-10):
    """(the minimum, number of steps)"""
    for k in range(1, 30):
        params, size = newton_step(params)
        print(f"  step {k}  |gradient| {size:8.1e}  slope {params['slope']:.12f}")
        if size < tolerance:
            return params, k
    raise SystemExit("Newton's method did not settle")


def gradient_descent(params, least, tolerance=1e-6):
    """How many steps plain gradient descent takes to within `tolerance` of the least loss."""
    optimizer = optim.sgd(1e-2)

    def step(carry):
        params, state, k = carry
        updates, state = optimizer.update(fgrad.grad(loss)(params), state, params)
        return optim.apply_updates(params, updates), state, k + 1

    run = fgrad.jit(lambda p: fgrad.lax.while_loop(
        lambda carry: loss(carry[0]) > least + tolerance, step, (p, optimizer.init(p), 0))[2])
    return int(run(params))


def covariance(params):
    """Laplace's approximation: the posterior is a Gaussian whose covariance is Hessian⁻¹.  f64[2,2]

    The Hessian of a tree is a tree of trees: one row for each parameter.
    """
    rows = fgrad.hessian(loss)(params)
    return np.linalg.inv(np.stack([np.stack(tree.leaves(row)) for row in rows.values()]))


def log_evidence(params, cov):
    """log ∫ exp(-loss), by Laplace and by adding up a fine grid: how good is the Gaussian?"""
    laplace = -float(loss(params)) + np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(cov)[1]
    spread = np.sqrt(np.diag(cov))
    a, b = (center + s * np.linspace(-7, 7, 201) for center, s in zip(params.values(), spread))
    a, b = fnp.meshgrid(fnp.asarray(a), fnp.asarray(b))
    values = fgrad.vmap(fgrad.vmap(lambda a, b: loss({"at_middle": a, "slope": b})))(a, b)
    cell = np.prod(14 * spread / 200)
    return laplace, float(nn.logsumexp(-values, axis=(0, 1))) + np.log(cell)


def picture(file, params, cov):
    """The share killed by dose, and the curve with twice its standard error."""
    dose = np.linspace(1.66, 1.91, 100)
    middle = np.asarray(score(params, dose))
    jacobian = np.stack(tree.leaves(fgrad.vmap(fgrad.grad(score), (None, 0))(params, dose)), axis=1)
    error = 2 * np.sqrt(np.einsum("ni,ij,nj->n", jacobian, cov, jacobian))
    plot = viz.Plot("beetles killed by carbon disulphide", x="log₁₀ of the dose", y="share killed")
    plot.band(dose, nn.sigmoid(middle - error), nn.sigmoid(middle + error), "± 2 standard errors")
    plot.line(dose, nn.sigmoid(middle), "fit").points(DOSE, KILLED / BEETLES, "counted", radius=4)
    plot.save(file)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", metavar="FILE", help="write the fitted curve as SVG")
    parser.add_argument("--short", action="store_true", help="as it is: the whole takes a second")
    args = parser.parse_args(argv)
    print("Newton's method:")
    params, steps = newton(START)
    slow = gradient_descent(START, float(loss(params)))
    print(f"{steps} steps of Newton, {slow} of gradient descent for six digits of the loss")
    cov = covariance(params)
    laplace, exact = log_evidence(params, cov)
    print(f"log evidence: {laplace:.4f} by Laplace, {exact:.4f} by a grid")
    if args.picture:
        picture(args.picture, params, cov)
    deadly = MIDDLE - float(params["at_middle"] / params["slope"])
    error = np.sqrt(np.diag(cov))[1]
    print(f"slope {params['slope']:.3f} ± {error:.3f} (Bliss 1935: 34.270 ± 2.912); "
          f"half of them die at {deadly:.4f}")


if __name__ == "__main__":
    main()
