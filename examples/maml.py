"""Learning to learn: parameters from which one gradient step fits a new sine wave (MAML).

    python examples/maml.py
    python examples/maml.py --picture waves.svg     before and after one step on a new wave

What you learn: a gradient step is a function like any other, so the loss after it has a gradient as
well (grad through grad); `vmap` does that for 25 tasks at a time; and all of it is one compiled
step.  Parameters trained on all waves at once, without that, know the mean wave only.
Answers: Finn et al. 2017, section 5.1; the meta-learning exercise of CS330 and of JAX's cookbook.
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, random, tree, viz

MODEL = nn.Sequential(nn.Dense(40), nn.relu, nn.Dense(40), nn.relu, nn.Dense(1))
POINTS, TASKS, RATE = 10, 25, 0.02                         # points of a wave, waves a step


def loss(params, x, y):
    """f32[n], f32[n] → f32[]"""
    return nn.mean_squared_error(MODEL.apply(params, {}, x[:, None])[0][:, 0], y)


def adapted(params, x, y):
    """The parameters after one gradient step on a few points of one wave."""
    grads = fgrad.grad(loss)(params, x, y)
    return tree.map(lambda p, g: p - RATE * g, params, grads)


def loss_after(params, x, y, new_x, new_y):
    """How well the adapted parameters do on other points of that wave: what MAML makes small."""
    return loss(adapted(params, x, y), new_x, new_y)


def loss_before(params, x, y, new_x, new_y):
    """How well the parameters do without a step: what ordinary training makes small."""
    return loss(params, new_x, new_y)


def waves(key, n):
    """n tasks of two sets of points: x, y, new x, new y, each f32[n,POINTS]."""
    of_height, of_phase, of_x = random.split(key, 3)
    height = random.uniform(of_height, (n, 1), minval=0.1, maxval=5.0)
    phase = random.uniform(of_phase, (n, 1), maxval=np.pi)
    x = random.uniform(of_x, (2, n, POINTS), minval=-5.0, maxval=5.0)
    y = height * fnp.sin(x + phase)
    return x[0], y[0], x[1], y[1]


def mean_over_tasks(task_loss):
    """The mean of a task's loss over a batch of tasks."""
    return lambda params, *batch: fnp.mean(
        fgrad.vmap(task_loss, (None, 0, 0, 0, 0))(params, *batch))


def train(task_loss, steps, seed=0):
    """The parameters after steps of Adam, each on new waves; all steps in one compiled scan."""
    optimizer = optim.adam(1e-3)

    def step(carry, key):
        params, state = carry
        batch = waves(key, TASKS)
        value, grads = fgrad.value_and_grad(mean_over_tasks(task_loss))(params, *batch)
        updates, state = optimizer.update(grads, state, params)
        return (optim.apply_updates(params, updates), state), value

    @fgrad.jit
    def run(params, keys):
        (params, _), values = fgrad.lax.scan(step, (params, optimizer.init(params)), keys)
        return params, values

    model_key, key = random.split(random.key(seed))
    params, _ = MODEL.init(model_key, fnp.zeros((1, 1)))
    params, values = run(params, random.split(key, steps))
    first, last = (float(fnp.mean(part)) for part in (values[:50], values[-50:]))
    print(f"{task_loss.__name__}: {first:.3f} -> {last:.3f} in {steps} steps")
    return params


def picture(file, params, batch):
    """The first wave of a batch, and the model before and after one step on its points."""
    x, y = batch[0][0], batch[1][0]
    at = np.linspace(-5, 5, 200, dtype=np.float32)
    answer = lambda p: MODEL.apply(p, {}, fnp.asarray(at)[:, None])[0][:, 0]
    plot = viz.Plot("one step on ten points", x="x", y="y", size=(560, 340))
    plot.line(at, answer(params), "meta-learned").line(at, answer(adapted(params, x, y)), "adapted")
    plot.points(x, y, "points of a new wave", radius=4).save(file)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--picture", metavar="FILE", help="write one new wave as SVG")
    parser.add_argument("--short", action="store_true", help="1000 steps")
    args = parser.parse_args(argv)
    steps = 1000 if args.short else args.steps
    test, results = waves(random.key(99), 500), []
    for name, task_loss in (("meta-learned", loss_after), ("trained on all waves", loss_before)):
        params = train(task_loss, steps)
        before, after = (float(fgrad.jit(mean_over_tasks(f))(params, *test))
                         for f in (loss_before, loss_after))
        results.append(f"{name} {before:.3f} -> {after:.3f}")
        if args.picture and task_loss is loss_after:
            picture(args.picture, params, test)
    print("squared error on new waves, before -> after one step:", "; ".join(results))


if __name__ == "__main__":
    main()
