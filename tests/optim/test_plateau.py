"""reduce_on_plateau beside a plain loop."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArgumentError, RangeError, optim

RNG = np.random.default_rng(0)
LOSSES = np.concatenate([np.linspace(3, 1, 10), 1 + 0.1 * RNG.random(20), np.linspace(1, 0.5, 6),
                         np.full(12, 0.5)])


def loop(values, factor, patience, rtol, atol, cooldown, least):
    """The factors, by Python numbers."""
    scale, best, bad, wait, out = 1.0, np.inf, 0, 0, []
    for value in values:
        better = value < (1 - rtol) * best - atol
        best = value if better else best
        bad = 0 if better else bad + 1
        if wait > 0:
            wait, bad = wait - 1, 0
        elif bad == patience:
            scale, bad, wait = max(scale * factor, least), 0, cooldown
        out.append(scale)
    return out


@pytest.mark.parametrize("options", [
    dict(factor=0.5, patience=3), dict(factor=0.5, patience=1, cooldown=2),
    dict(factor=0.1, patience=2, min_scale=0.05), dict(factor=0.5, patience=4, rtol=0.0, atol=0.2)])
def test_the_factor_falls_when_the_loss_does_not(options):
    full = dict(rtol=1e-4, atol=0.0, cooldown=0, min_scale=0.0) | options
    want = loop(LOSSES, full["factor"], full["patience"], full["rtol"], full["atol"],
                full["cooldown"], full["min_scale"])
    opt = optim.reduce_on_plateau(**options)
    for update in (opt.update, fgrad.jit(opt.update)):
        state, got = opt.init(fnp.ones(1)), []
        for value in LOSSES:
            updates, state = update(fnp.ones(1), state, value=fnp.array(value))
            got.append(float(updates[0]))
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_losses_may_be_averaged_first():
    opt = optim.reduce_on_plateau(0.5, patience=1, accumulation_size=2)
    state, got = opt.init(None), []
    for value in (2.0, 0.0, 0.0, 2.0, 0.0, 1.0):           # means 1, 1, 0.5
        updates, state = opt.update(fnp.ones(1), state, value=value)
        got.append(float(updates[0]))
    assert got == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5]


def test_bad_options_and_a_missing_loss_are_refused():
    for options in (dict(factor=1.0), dict(factor=0.0), dict(rtol=0.0), dict(rtol=-1.0),
                    dict(atol=-1.0), dict(rtol=2.0)):
        with pytest.raises(RangeError):
            optim.reduce_on_plateau(**options)
    opt = optim.reduce_on_plateau()
    with pytest.raises(ArgumentError, match="needs the loss"):
        opt.update(fnp.ones(1), opt.init(None))
