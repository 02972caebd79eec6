"""Schedules: their values at and around every boundary, from int, array and inside jit."""

import math

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArgumentError, RangeError, optim


def check(schedule, **values):
    """values: s0=…, s10=…: what the schedule is at these steps, given as int, i32[] and in jit."""
    compiled = fgrad.jit(schedule)
    for name, want in values.items():
        step = int(name[1:])
        for got in (schedule(step), schedule(fnp.array(step)), compiled(fnp.array(step))):
            assert float(got) == pytest.approx(want, rel=2e-6, abs=2e-7), name
            assert getattr(got, "shape", ()) == ()


def test_constant():
    check(optim.constant_schedule(0.3), s0=0.3, s1000000=0.3)


def test_linear_begins_late_and_ends():
    check(optim.linear_schedule(1.0, 0.2, 8, transition_begin=2), s0=1.0, s2=1.0, s3=0.9, s10=0.2,
          s11=0.2, s2000000=0.2)


@pytest.mark.parametrize("power", [0.5, 1, 2, 3.0])
def test_polynomial(power):
    check(optim.polynomial_schedule(1.0, 0.1, power, 4), s0=1.0, s1=0.9 * 0.75 ** power + 0.1,
          s4=0.1, s5=0.1)


def test_a_transition_of_no_steps_is_constant():
    check(optim.polynomial_schedule(1.0, 0.1, 2, 0), s0=1.0, s5=1.0)
    check(optim.exponential_decay(1.0, 0, 0.5), s0=1.0, s5=1.0)


def test_exponential_decay():
    check(optim.exponential_decay(2.0, 10, 0.5), s0=2.0, s5=2 * 0.5 ** 0.5, s10=1.0, s30=0.25)
    check(optim.exponential_decay(2.0, 10, 0.5, 3, staircase=True), s0=2.0, s12=2.0, s13=1.0,
          s22=1.0, s23=0.5)
    check(optim.exponential_decay(2.0, 10, 0.5, end_value=0.7), s10=1.0, s20=0.7)
    check(optim.exponential_decay(2.0, 10, 2.0, end_value=5.0), s10=4.0, s20=5.0)


def test_cosine_decay():
    check(optim.cosine_decay_schedule(2.0, 10, alpha=0.1), s0=2.0, s5=2 * (0.9 * 0.5 + 0.1),
          s10=0.2, s11=0.2)
    check(optim.cosine_decay_schedule(1.0, 10, exponent=2.0),
          s3=(0.5 * (1 + math.cos(0.3 * math.pi))) ** 2, s10=0.0)


def test_piecewise_constant_changes_at_the_boundary():
    check(optim.piecewise_constant_schedule(1.0, {5: 0.1, 2: 0.5}), s0=1.0, s1=1.0, s2=0.5, s4=0.5,
          s5=0.05, s100=0.05)
    check(optim.piecewise_constant_schedule(1.0), s0=1.0, s9=1.0)


def test_piecewise_interpolation():
    check(optim.piecewise_interpolate_schedule("linear", 1.0, {4: 2.0, 8: 0.25}), s0=1.0, s2=1.5,
          s4=2.0, s6=1.25, s8=0.5, s9=0.5)
    check(optim.piecewise_interpolate_schedule("cosine", 1.0, {4: 2.0}), s0=1.0,
          s1=2 - 0.5 * (math.cos(math.pi / 4) + 1), s2=1.5, s4=2.0, s5=2.0)
    check(optim.piecewise_interpolate_schedule("linear", 0.5), s0=0.5, s7=0.5)


def test_onecycle():
    check(optim.linear_onecycle_schedule(100, 1.0), s0=0.04, s30=1.0, s85=0.04, s100=4e-6,
          s101=4e-6)
    check(optim.cosine_onecycle_schedule(100, 1.0), s0=0.04, s15=0.52, s30=1.0, s65=0.500002,
          s100=4e-6, s200=4e-6)


def test_join_lets_each_count_from_its_boundary():
    join = optim.join_schedules([optim.constant_schedule(1.0), optim.linear_schedule(2.0, 0.0, 4),
                                 optim.constant_schedule(9.0)], [3, 5])
    check(join, s0=1.0, s2=1.0, s3=2.0, s4=1.5, s5=9.0)


def test_warmups():
    check(optim.warmup_constant_schedule(0.0, 1.0, 4), s0=0.0, s3=0.75, s4=1.0, s99=1.0)
    check(optim.warmup_cosine_decay_schedule(0.0, 1.0, 4, 12, end_value=0.2), s0=0.0, s3=0.75,
          s4=1.0, s8=0.6, s12=0.2, s99=0.2)
    check(optim.warmup_cosine_decay_schedule(1.0, 1.0, 0, 10), s0=1.0, s5=0.5)
    check(optim.warmup_exponential_decay_schedule(0.0, 1.0, 4, 2, 0.5), s3=0.75, s4=1.0, s6=0.5)


def test_sgdr_begins_anew():
    cycles = [dict(init_value=0.0, peak_value=p, warmup_steps=2, decay_steps=n)
              for p, n in ((1.0, 6), (0.5, 10))]
    check(optim.sgdr_schedule(cycles), s0=0.0, s2=1.0, s4=0.5, s6=0.0, s8=0.5, s12=0.25, s16=0.0)


def test_a_schedule_is_part_of_one_compiled_step():
    opt = optim.sgd(optim.warmup_cosine_decay_schedule(0.0, 1.0, 2, 6))
    update, state, seen = fgrad.jit(opt.update), opt.init(fnp.ones(1)), []
    for _ in range(7):
        updates, state = update(fnp.ones(1), state)
        seen.append(-float(updates[0]))
    want = [0, 0.5, 1, *[0.5 * (1 + math.cos(math.pi * k / 4)) for k in (1, 2, 3, 4)]]
    np.testing.assert_allclose(seen, want, atol=1e-6)


@pytest.mark.parametrize("make", [
    lambda: optim.cosine_decay_schedule(1.0, 0), lambda: optim.linear_onecycle_schedule(0, 1.0),
    lambda: optim.cosine_onecycle_schedule(-1, 1.0),
    lambda: optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 10),
    lambda: optim.piecewise_constant_schedule(1.0, {3: -1.0}),
    lambda: optim.piecewise_interpolate_schedule("linear", 1.0, {3: -1.0})])
def test_numbers_that_make_no_sense_are_refused(make):
    with pytest.raises(RangeError):
        make()


def test_unknown_interpolations_and_missing_boundaries_are_refused():
    with pytest.raises(ArgumentError, match="no such interpolation"):
        optim.piecewise_interpolate_schedule("cubic", 1.0)
    with pytest.raises(ArgumentError, match="one boundary"):
        optim.join_schedules([optim.constant_schedule(1.0)], [1])
