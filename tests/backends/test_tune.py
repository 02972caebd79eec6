"""FGRAD_TUNE: other schedules are tried, the choice is kept and shown, values stay."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp
from fgrad import compile as driver
from fgrad import config
from fgrad.backends import cache, tune
from fgrad.core import Array
from fgrad.passes import schedule
from fgrad.records import replace
from tests.properties.test_compiled import assert_within, together
from tests.strategies import WIDE, examples, programs

DEFAULT = schedule.Schedule()

SAMPLES = [lambda np, x: np.tanh(x) * 2, lambda np, x: x.sum(0), lambda np, x: (x * x).sum(),
           lambda np, x: x.T + 1, lambda np, x: np.maximum(x @ x.T, 1), lambda np, x: x.max(1),
           lambda np, x: np.cumsum(x, 1), lambda np, x: np.exp(x).sum(0) + x.mean(0)]


@pytest.fixture
def eager():
    """Tunes every kernel, however small, with few rounds, and forgets what it knows."""
    with pytest.MonkeyPatch.context() as patch:
        tune_all(patch)
        yield patch
    driver.clear_caches()


def tune_all(patch):
    patch.setenv("FGRAD_TUNE", "3")
    patch.setenv("FGRAD_CACHE", "0")
    patch.setattr(tune, "LEAST", 0.0)
    patch.setattr(tune, "ROUNDS", 1)
    patch.setattr(tune, "ROUND", 0.0)
    patch.setattr(tune, "KNOWN", {})
    driver.clear_caches()


def prefer_the_last(patch):
    """Lets every trial take less time than the one before it."""
    times = iter(1 / k for k in range(1, 1_000_000))
    patch.setattr(tune, "timed", lambda run, values, repeats: (run(values), next(times))[1])


@pytest.mark.parametrize("said", ["x", "-1", "1.5", "²"])
def test_a_bad_count_is_an_error(monkeypatch, said):
    monkeypatch.setenv("FGRAD_TUNE", said)
    with pytest.raises(fgrad.ArgumentError, match="FGRAD_TUNE is not a count"):
        fgrad.show(lambda x: x + 1, np.ones(3), stage="schedule")


@pytest.mark.parametrize("said", ["", "0", None])
def test_unset_and_zero_tune_nothing(monkeypatch, said):
    monkeypatch.delenv("FGRAD_TUNE", raising=False)
    if said is not None:
        monkeypatch.setenv("FGRAD_TUNE", said)
    assert tune.tuner(None, None, ()) is None


@examples(12)
@given(st.lists(programs(sizes=WIDE, most=5_000), min_size=1, max_size=2))
def test_tuned_programs_give_what_untuned_ones_give(batch):
    function, arrays, errors = together(batch)
    want = function(*[Array(a) for a in arrays])
    with pytest.MonkeyPatch.context() as patch:
        tune_all(patch)
        prefer_the_last(patch)
        got = fgrad.jit(function)(*arrays)
        assert all(found.best == len(found.changes) - 1 for found in tune.KNOWN.values())
    driver.clear_caches()
    assert_within(got, want, errors, "tuned")


@pytest.mark.parametrize("change", [{"heavy": 4}, {"heavy": 1}, {"light": 8}, {"rows": 8},
                                    {"tile": 8}, {"tile": 32}, {"lanes": 2}, {"grain": 8},
                                    {"side": 1}, {"rank": 2}, {"rank": 1000}], ids=str)
def test_every_neighbour_computes_the_same(eager, change):
    eager.setattr(tune, "neighbours", lambda how: iter([change]))
    prefer_the_last(eager)
    x = np.random.default_rng(0).random((64, 97), np.float32)
    shown = []
    for f in SAMPLES:
        want = f(np, x.astype(np.float64))
        np.testing.assert_allclose(fgrad.jit(lambda x: f(fnp, x))(x), want, rtol=2e-5)
        shown.append(fgrad.show(lambda x: f(fnp, x), x, stage="schedule"))
    (name, value), = change.items()
    possible = name != "grain" or config.threads() > 1
    assert (f"tuned: {name}={value} (" in "".join(shown)) == possible


def test_the_schedule_shows_the_choice_and_what_it_was_chosen_over(eager):
    prefer_the_last(eager)
    text = fgrad.show(lambda x: fnp.tanh(x) * 2, np.ones(5000, np.float32), stage="schedule")
    (line,) = [line for line in text.splitlines() if "tuned" in line]
    assert line.startswith("  tuned: ") and " ms) over " in line and "the default (" in line
    assert not line.startswith("  tuned: the default")


def test_a_choice_is_kept_on_disk_and_not_measured_again(eager, tmp_path):
    eager.setenv("FGRAD_CACHE", str(tmp_path / "cache"))
    x = np.random.default_rng(1).random((30, 40), np.float32)

    def f(x):
        return fnp.exp(x) @ x.T
    shown, first = fgrad.show(f, x, stage="schedule"), np.asarray(fgrad.jit(f)(x))
    assert "tuned" in shown
    tune.KNOWN.clear()
    driver.clear_caches()
    eager.setattr(tune, "measured", None)
    assert fgrad.show(f, x, stage="schedule") == shown
    np.testing.assert_array_equal(fgrad.jit(lambda x: f(x))(x), first)


def test_another_count_is_another_search(eager):
    x = np.ones(5000, np.float32)
    shown = []
    for count in ("1", "2"):
        eager.setenv("FGRAD_TUNE", count)
        text = fgrad.show(lambda x: fnp.tanh(x) * 2, x, stage="schedule")
        shown.append(text.count(" ms)"))
    assert shown == [2, 3]


def test_what_does_not_beat_the_default_clearly_is_not_chosen():
    close = tune.Tried(({}, {"heavy": 4}), (1.0, 0.98), ("", ""))
    assert close.choice(DEFAULT).how == DEFAULT
    clear = tune.Tried(({}, {"heavy": 4}), (1.0, 0.9), ("", ""))
    assert clear.choice(DEFAULT).how == replace(DEFAULT, heavy=4)
    assert clear.choice(DEFAULT).note == "tuned: heavy=4 (900 ms) over the default (1e+03 ms)"


def test_what_was_tried_survives_the_disk():
    found = tune.Tried(({}, {"heavy": 4}), (1.0, 0.9), ("", ""))
    assert tune.restored(found.stored()) == found


def test_untuned_kernels_ignore_what_is_stored(eager, tmp_path):
    eager.setenv("FGRAD_CACHE", str(tmp_path / "cache"))
    x = np.ones(5000, np.float32)
    fgrad.show(lambda x: fnp.tanh(x) * 2, x, stage="schedule")
    assert cache.disk().entries()
    eager.delenv("FGRAD_TUNE")
    assert "tuned" not in fgrad.show(lambda x: fnp.tanh(x) * 2, x, stage="schedule")


def test_loops_without_elements_are_tuned_too(eager):
    out = fgrad.jit(lambda x: (fnp.tanh(x).sum(0), x @ x.T))(np.ones((0, 3), np.float32))
    assert [o.shape for o in out] == [(3,), (0, 0)]
