"""fgrad.optim beside optax and torch.optim, step by step, on the same gradients.

    python -m benchmarks.compare_optim

Needs jax, optax and torch (benchmarks/requirements.txt) in one environment with fgrad.  Prints, for
each optimizer, wrapper and schedule, the largest difference of parameters (or of values) after any
step, divided by their size where that is above 1; "–" where a library has no such thing.  The exit
status is 1 where a difference is above 1e-5.
"""

import sys

import jax
import numpy as np
import optax
import torch

import fgrad
import fgrad.numpy as fnp
from fgrad import optim, tree

LIMIT, STEPS, RNG = 1e-5, 20, np.random.default_rng(0)
SHAPES = {"w": (6, 4), "b": (4,), "k": (2, 3, 3, 2)}


def drawn(scale):
    """A tree of normal numbers: f32."""
    return {k: scale * RNG.normal(size=s).astype("float32") for k, s in SHAPES.items()}


START, GRADS = drawn(1.0), [drawn(0.5) for _ in range(STEPS)]
VALUES = np.float32([3, 2, 2.1, 2.2, 2.3, 1, 1.1, 1.2, 1.3, 1.4] * 2)
DECAYED = {"w": True, "b": False, "k": True}
LABELS = {"w": "fast", "b": "slow", "k": "still"}


# ---------------------------------------------------------------------------- the three libraries

def with_fgrad(optimizer, **extra):
    """The parameters after each step."""
    def step(params, state, grads, extra):
        updates, state = optimizer.update(grads, state, params, **extra)
        return optim.apply_updates(params, updates), state
    return stepped(fgrad.jit(step), optimizer.init, tree.map(fnp.asarray, START), extra)


def with_optax(optimizer, **extra):
    """The parameters after each step."""
    def step(params, state, grads, extra):
        updates, state = optimizer.update(grads, state, params, **extra)
        return optax.apply_updates(params, updates), state
    return stepped(jax.jit(step), optimizer.init, jax.tree.map(jax.numpy.asarray, START), extra)


def stepped(step, init, params, extra):
    out, state = [], init(params)
    for k, grads in enumerate(GRADS):
        params, state = step(params, state, grads, {name: xs[k] for name, xs in extra.items()})
        out.append({k: np.asarray(v) for k, v in params.items()})
    return out


def with_torch(make, prepare=lambda ps: None):
    """The parameters after each step; `prepare` sees the parameters before it."""
    params = {k: torch.tensor(v, requires_grad=True) for k, v in START.items()}
    optimizer, out = make(list(params.values())), []
    for grads in GRADS:
        for k, p in params.items():
            p.grad = torch.tensor(grads[k])
        prepare(list(params.values()))
        optimizer.step()
        out.append({k: p.detach().numpy().copy() for k, p in params.items()})
    return out


def in_lookahead(module, optimizer):
    """The lookahead of a module, taking and giving plain parameters: the fast ones."""
    inner = module.lookahead(optimizer, 3, 0.5)

    def init(params):
        synced = module.LookaheadParams.init_synced(params)
        return inner.init(synced), synced.slow

    def update(updates, state, params):
        both = module.LookaheadParams(fast=params, slow=state[1])
        updates, after = inner.update(updates, state[0], both)
        return updates.fast, (after, module.apply_updates(both.slow, updates.slow))
    return module.GradientTransformation(init, update)


# ---------------------------------------------------------------------------- optimizers

T = torch.optim


def clipped(kind, most):
    """An SGD behind one of torch's clippings."""
    clip = getattr(torch.nn.utils, f"clip_grad_{kind}_")
    return lambda: with_torch(lambda ps: T.SGD(ps, lr=0.1), lambda ps: clip(ps, most))


def once(make):
    """The run of a torch optimizer, or None."""
    return None if make is None else lambda: with_torch(make)


def by_name(name, make_torch=None, /, *args, **options):
    """A row for an optimizer that fgrad and optax call alike."""
    return (lambda m: getattr(m, name)(*args, **options)), once(make_torch)


def before_sgd(name, *args, torch_run=None):
    """A row for a transformation in front of gradient descent."""
    return (lambda m: m.chain(getattr(m, name)(*args), m.sgd(0.1))), torch_run


OPTIMIZERS = {
    "sgd": by_name("sgd", lambda ps: T.SGD(ps, lr=0.1), 0.1),
    "sgd momentum": by_name("sgd", lambda ps: T.SGD(ps, lr=0.1, momentum=0.9), 0.1, 0.9),
    "sgd nesterov": by_name("sgd", lambda ps: T.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
                            0.1, 0.9, True),
    "sign_sgd": by_name("sign_sgd", None, 0.1),
    "signum": by_name("signum", None, 0.1),
    "noisy_sgd": by_name("noisy_sgd", None, 0.1, 0.01, 0.55, 7),
    "adam": by_name("adam", lambda ps: T.Adam(ps, lr=0.01), 0.01),
    "adam eps_root": by_name("adam", None, 0.01, eps_root=1e-3),
    "adam mu_dtype": by_name("adam", None, 0.01, mu_dtype="float16"),
    "adamw": by_name("adamw", lambda ps: T.AdamW(ps, lr=0.01, weight_decay=0.1), 0.01,
                     weight_decay=0.1),
    "adamw mask": by_name("adamw", None, 0.01, weight_decay=0.1, mask=DECAYED),
    "nadam": by_name("nadam", None, 0.01),
    "nadamw": by_name("nadamw", None, 0.01, weight_decay=0.1),
    # optax subtracts two numbers near 2000 in f32 for the length of radam's sample, which costs it
    # 1e-3 of a step (torch does that in f64): hence the small rate
    "radam": by_name("radam", lambda ps: T.RAdam(ps, lr=1e-3), 1e-3),
    "amsgrad": by_name("amsgrad", None, 0.01),
    "adamax": by_name("adamax", lambda ps: T.Adamax(ps, lr=0.01), 0.01),
    "adamaxw": by_name("adamaxw", None, 0.01, weight_decay=0.1),
    "adabelief": by_name("adabelief", None, 0.01),
    "yogi": by_name("yogi", None, 0.01),
    "adan": by_name("adan", None, 0.01, weight_decay=0.1),
    "lion": by_name("lion", None, 0.01, weight_decay=0.1),
    "rmsprop": by_name("rmsprop", lambda ps: T.RMSprop(ps, lr=0.01, alpha=0.9), 0.01,
                       eps_in_sqrt=False),
    "rmsprop centered": by_name(
        "rmsprop", lambda ps: T.RMSprop(ps, lr=0.01, alpha=0.9, centered=True, momentum=0.9,
                                        eps=1e-3),
        0.01, centered=True, momentum=0.9, eps_in_sqrt=False, eps=1e-3),
    "rmsprop corrected": by_name("rmsprop", None, 0.01, bias_correction=True),
    "adagrad": by_name(
        "adagrad", lambda ps: T.Adagrad(ps, lr=0.1, initial_accumulator_value=0.1), 0.1, eps=1e-10),
    "adadelta": by_name("adadelta", lambda ps: T.Adadelta(ps, lr=1.0), 1.0),
    "adafactor": by_name("adafactor", None, 0.1),
    "adafactor factored": by_name("adafactor", None, 0.1, min_dim_size_to_factor=2, momentum=0.9,
                                  weight_decay_rate=0.01),
    "sm3": by_name("sm3", None, 0.1),
    "lars": by_name("lars", None, 1.0, weight_decay=0.1),
    "lamb": by_name("lamb", None, 0.01, weight_decay=0.1),
    "novograd": by_name("novograd", None, 0.01, weight_decay=0.1),
    "muon": ((lambda m: (m.muon if m is optim else optax.contrib.muon)(0.01, weight_decay=0.1)),
             None),
    "clip": before_sgd("clip", 0.3, torch_run=clipped("value", 0.3)),
    "clip_by_global_norm": before_sgd("clip_by_global_norm", 1.0, torch_run=clipped("norm", 1.0)),
    "clip_by_block_rms": before_sgd("clip_by_block_rms", 0.3),
    "adaptive_grad_clip": before_sgd("adaptive_grad_clip", 0.1),
    "centralize": before_sgd("centralize"),
    "normalize_by_update_norm": before_sgd("normalize_by_update_norm"),
    "ema": before_sgd("ema", 0.9),
    "scale_by_param_block_norm": before_sgd("scale_by_param_block_norm"),
    "masked": ((lambda m: m.masked(m.adam(0.01), DECAYED)), None),
    "multi_transform": ((lambda m: m.partition(
        {"fast": m.adam(0.1), "slow": m.sgd(0.01), "still": m.set_to_zero()}, LABELS)), None),
    "MultiSteps": ((lambda m: m.MultiSteps(m.adam(0.01), 3)), None),
    "lookahead": ((lambda m: in_lookahead(m, m.adam(0.01))), None),
    "apply_if_finite": ((lambda m: m.apply_if_finite(m.adam(0.01), 2)), None),
    "inject_hyperparams": ((lambda m: m.inject_hyperparams(m.adamw)(
        m.linear_schedule(0.1, 0.0, 15), b1=0.8)), None),
}


# ---------------------------------------------------------------------------- schedules

S = torch.optim.lr_scheduler


def torch_rates(make, steps):
    """The rates of a torch scheduler that begins at 1."""
    optimizer = T.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler, out = make(optimizer), []
    for _ in range(steps):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(out)


CYCLES = [dict(init_value=1.0, peak_value=1.0, warmup_steps=0, decay_steps=n) for n in (10, 20, 40)]

#   name: (schedule of a module, steps, torch's)
SCHEDULES = {
    "polynomial": (lambda m: m.polynomial_schedule(1.0, 0.0, 2.0, 40), 60,
                   lambda o: S.PolynomialLR(o, 40, 2.0)),
    "linear": (lambda m: m.linear_schedule(1.0, 0.1, 40), 60,
               lambda o: S.LinearLR(o, 1.0, 0.1, 40)),
    "exponential": (lambda m: m.exponential_decay(1.0, 1, 0.9), 60,
                    lambda o: S.ExponentialLR(o, 0.9)),
    "exponential staircase": (lambda m: m.exponential_decay(1.0, 7, 0.5, staircase=True), 60,
                              lambda o: S.StepLR(o, 7, 0.5)),
    "exponential with an end": (lambda m: m.exponential_decay(1.0, 7, 0.5, 5, end_value=0.2), 60,
                                None),
    "piecewise constant": (lambda m: m.piecewise_constant_schedule(1.0, {10: 0.1, 20: 0.1}), 40,
                           lambda o: S.MultiStepLR(o, [10, 20], 0.1)),
    "piecewise linear": (lambda m: m.piecewise_interpolate_schedule(
        "linear", 1.0, {10: 3.0, 20: 0.1}), 40, None),
    "piecewise cosine": (lambda m: m.piecewise_interpolate_schedule(
        "cosine", 1.0, {10: 3.0, 20: 0.1}), 40, None),
    "cosine": (lambda m: m.cosine_decay_schedule(1.0, 50), 51,
               lambda o: S.CosineAnnealingLR(o, 50)),
    "cosine with exponent": (lambda m: m.cosine_decay_schedule(1.0, 50, 0.1, 1.5), 80, None),
    "sgdr": (lambda m: m.sgdr_schedule(CYCLES), 70,
             lambda o: S.CosineAnnealingWarmRestarts(o, 10, 2)),
    "warmup constant": (lambda m: m.warmup_constant_schedule(0.1, 1.0, 10), 30,
                        lambda o: S.LinearLR(o, 0.1, 1.0, 10)),
    "warmup cosine": (lambda m: m.warmup_cosine_decay_schedule(0.1, 1.0, 10, 50, 0.01), 70, None),
    "warmup exponential": (lambda m: m.warmup_exponential_decay_schedule(0.1, 1.0, 10, 5, 0.5), 70,
                           None),
    "linear onecycle": (lambda m: m.linear_onecycle_schedule(50, 1.0), 70, None),
    "cosine onecycle": (lambda m: m.cosine_onecycle_schedule(50, 1.0), 70, None),
}


def rates(schedule, steps, jit, asarray):
    """The values of a schedule at the first steps."""
    schedule = jit(schedule)
    return np.array([float(schedule(asarray(k, "int32"))) for k in range(steps)])


def plateau_runs():
    """(fgrad, optax, torch): the rates under a loss that falls now and then."""
    options = dict(factor=0.5, patience=3)
    ours = with_fgrad(optim.chain(optim.sgd(0.1), optim.reduce_on_plateau(**options)),
                      value=VALUES)
    theirs = with_optax(optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(**options)),
                        value=VALUES)
    params = {k: torch.tensor(v, requires_grad=True) for k, v in START.items()}
    optimizer, out = T.SGD(list(params.values()), lr=0.1), []
    scheduler = S.ReduceLROnPlateau(optimizer, factor=0.5, patience=2, eps=0.0)
    for grads, value in zip(GRADS, VALUES):
        for k, p in params.items():
            p.grad = torch.tensor(grads[k])
        scheduler.step(value)
        optimizer.step()
        out.append({k: p.detach().numpy().copy() for k, p in params.items()})
    return ours, theirs, out


# ---------------------------------------------------------------------------- the table

def difference(ours, theirs):
    """The largest difference, relative where values are above 1; inf where one is not a number."""
    worst = 0.0
    for a, b in zip(tree.leaves(ours), tree.leaves(theirs)):
        off = np.abs(a - b) / np.maximum(np.abs(b), 1.0)
        worst = max(worst, float(np.max(np.where(np.isfinite(off), off, np.inf))))
    return worst


def rows():
    """(name, difference from optax, difference from torch or None), one after the other."""
    for name, (make, torch_run) in OPTIMIZERS.items():
        ours = with_fgrad(make(optim))
        yield (name, difference(ours, with_optax(make(optax))),
               difference(ours, torch_run()) if torch_run else None)
    ours, theirs, torchs = plateau_runs()
    yield "reduce_on_plateau", difference(ours, theirs), difference(ours, torchs)
    for name, (make, steps, make_torch) in SCHEDULES.items():
        ours = rates(make(optim), steps, fgrad.jit, fnp.asarray)
        yield (f"{name} schedule",
               difference([ours], [rates(make(optax), steps, jax.jit, jax.numpy.asarray)]),
               difference([ours], [torch_rates(make_torch, steps)]) if make_torch else None)


def main():
    """Prints the table; the exit status."""
    print(f"{'':34}{'optax':>10}{'torch':>10}")
    failed = 0
    for name, *found in rows():
        cells = "".join(f"{'–' if d is None else f'{d:.1e}':>10}" for d in found)
        wrong = any(d is not None and d > LIMIT for d in found)
        failed += wrong
        print(f"{name:34}{cells}{'   above ' + str(LIMIT) if wrong else ''}")
    print(f"{failed} above {LIMIT}, after {STEPS} steps in f32")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
