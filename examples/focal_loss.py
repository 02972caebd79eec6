"""A loss with a derivative of its own: focal loss for a class that one example in fifty belongs to.

    python examples/focal_loss.py
    python examples/focal_loss.py --picture losses.svg     both losses over the score of an example

What you learn: any function you write is a loss; at a score of ±200 the derivative that follows
from the formula is NaN in f32, and `custom_jvp` says what is true instead; `check_grads` compares
it with finite differences; and what a loss that looks past easy examples does to rare ones.
Answers: d2l 3.6 and 4.6 (custom losses), CS231n (stable cross-entropy), Lin et al. 2017.
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, viz

GAMMA = 2.0
MODEL = nn.Dense(1)                 # too simple for the problem: what it learns depends on the loss


def by_formula(score):
    """-(1 - p)^γ · log p of p = sigmoid(score), as in the paper: right until p rounds to 0."""
    p = 1 / (1 + fnp.exp(-score))
    return -(1 - p) ** GAMMA * fnp.log(p)


@fgrad.custom_jvp
def focal(score):
    """The same without overflow: f[*s] → f[*s], for the score of the true class."""
    return nn.sigmoid(-score) ** GAMMA * nn.softplus(-score)


@focal.defjvp
def focal_jvp(primals, tangents):
    """d/ds q^γ L = -q^γ (γ (1 - q) L + q),  where q = 1 - p = sigmoid(-s) and L = -log p."""
    (score,), (t,) = primals, tangents
    q, loss = nn.sigmoid(-score), nn.softplus(-score)
    return q ** GAMMA * loss, -q ** GAMMA * (GAMMA * (1 - q) * loss + q) * t


def entropy(score):
    """-log p, the logistic loss: focal loss with γ = 0."""
    return nn.softplus(-score)


def clouds(n, seed):
    """Points f32[n,2] and ±1 f32[n]: one in fifty is positive, near the rim of the others."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.02, 1.0, -1.0)
    x = rng.standard_normal((n, 2)) * np.where(sign > 0, 0.4, 1.0)[:, None]
    x[:, 0] += np.where(sign > 0, 2.4, 0)
    return x.astype(np.float32), sign.astype(np.float32)


def scores(params, x):
    return MODEL.apply(params, {}, x)[0][:, 0]                   # f32[n,2] → f32[n]


def train(loss, x, sign, steps):
    """The parameters after full-batch steps of Adam, all of them in one compiled loop."""
    optimizer = optim.adam(0.02)

    def step(carry, _):
        params, state = carry
        grads = fgrad.grad(lambda p: fnp.mean(loss(sign * scores(p, x))))(params)
        updates, state = optimizer.update(grads, state, params)
        return (optim.apply_updates(params, updates), state), None

    params, _ = MODEL.init(fgrad.random.key(0), x)
    run = fgrad.jit(lambda p: fgrad.lax.scan(step, (p, optimizer.init(p)), length=steps)[0][0])
    return run(params)


def found(score, positive):
    """How many of the rare have a score above 0, and how many of those that have one are rare."""
    said = np.asarray(score) > 0
    right = np.sum(said & positive)
    return f"recall {right / positive.sum():.3f}, precision {right / max(said.sum(), 1):.3f}"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--picture", metavar="FILE", help="write both losses as SVG")
    parser.add_argument("--short", action="store_true", help="as it is: the whole takes a second")
    args = parser.parse_args(argv)
    ends = fnp.array([-200.0, -1.0, 0.0, 1.0, 200.0])
    print("score                 ", ends)
    print("slope, by the formula ", fgrad.vmap(fgrad.grad(by_formula))(ends))
    print("slope, by the rule    ", fgrad.vmap(fgrad.grad(focal))(ends))
    fgrad.check_grads(focal, (fnp.array([-3.0, -0.5, 0.0, 2.0]),), order=2)
    print("finite differences agree, twice over")
    if args.picture:
        s = np.linspace(-4, 4, 100)
        plot = viz.Plot("what a score of the true class costs", x="score", y="loss")
        plot.line(s, entropy(s), "cross-entropy").line(s, focal(s), f"focal, γ = {GAMMA:g}")
        plot.save(args.picture)
    x, sign = clouds(2000, seed=0)
    test_x, test_sign = clouds(20000, seed=1)
    results = []
    for name, loss in (("cross-entropy", entropy), ("focal", focal)):
        params = train(loss, x, sign, args.steps)
        results.append(f"{name}: {found(scores(params, test_x), test_sign > 0)}")
    print("rare class:", "; ".join(results))


if __name__ == "__main__":
    main()
