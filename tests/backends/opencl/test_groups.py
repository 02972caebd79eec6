"""Kernels for GPUs: who runs which iterations, and that PoCL gives NumPy's results with them."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import nn
from fgrad.backends.opencl import backend, groups
from fgrad.backends.opencl.device import Record
from fgrad.backends.opencl.groups import Team
from fgrad.core import Array
from fgrad.records import replace
from tests.backends.opencl.running import GPU, check, planned

RECORD = Record(0, "p", "n", "gpu", 132, 48 << 10, 1 << 34, 1 << 32, 1024, 1, True, True, False,
                "", "", None)
F = np.float32


def kernels(function, *shapes, record=RECORD):
    """The kernels of a function of f32 arrays, and the text of its program."""
    arrays = [Array(np.zeros(shape, F)) for shape in shapes]
    plan, _ = planned(function, arrays, backend.target_of(record))
    return plan.steps, backend.Program(plan, record).text


def teams(function, *shapes, record=RECORD):
    return [groups.team_of(k, record) for k in kernels(function, *shapes, record=record)[0]]


# ---- who runs what -------------------------------------------------------------------------------

def test_the_lanes_of_a_team_share_the_loops_of_a_row():
    (kernel,), text = kernels(nn.softmax, (64, 50257))
    assert groups.team_of(kernel, RECORD) == Team(1, 1024)
    assert text.count("for (int j = lane; j < 50257; j += 1024)") == 3
    assert "for (int reach = 512; reach > 0; reach /= 2)" in text


def test_few_rows_have_more_lanes_than_many_and_short_ones_share_a_group():
    assert teams(nn.softmax, (100_000, 1000)) == [Team(1, 256)]
    assert teams(lambda x: x.sum(1), (100_000, 16)) == [Team(8, 16)]
    assert teams(lambda x: x.sum(1), (100_000, 4)) == [None]


def test_columns_are_summed_by_teams_side_by_side():
    assert teams(lambda x: x.sum(0), (4096, 4096)) == [Team(32, 32, side=True)]
    _, text = kernels(lambda x: x.sum(0), (4096, 4096))
    assert "const int team = get_local_id(0) % 32;" in text


def test_what_has_work_for_every_item_has_no_team():
    assert teams(lambda x: fnp.tanh(x) + 1, (1000, 1000)) == [None]
    assert teams(lambda x: x.sum(0), (50, 1 << 20)) == [None]


def test_a_large_sum_has_parts_and_a_small_one_is_a_team():
    parts, last = teams(fnp.sum, (4096, 4096))
    assert parts.size >= 256 and last == Team(1, 256)
    assert teams(fnp.sum, (1000,)) == [Team(1, 512)]


def test_little_local_memory_means_fewer_lanes():
    small = replace(RECORD, local_memory=2048)
    assert teams(lambda x: x.sum(1), (64, 50257), record=small) == [Team(1, 256)]


def test_running_sums_are_not_shared():
    assert teams(lambda x: fnp.cumsum(x, axis=1), (64, 1000)) == [None]


# ---- values --------------------------------------------------------------------------------------

def layer_norm(x):
    centred = x - x.mean(1, keepdims=True)
    return centred / fnp.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5)


def whitened(x):
    mean = x.mean((0, 1))
    return (x - mean) / fnp.sqrt(((x - mean) ** 2).mean((0, 1)) + 1e-5)


MATRICES = {
    "softmax": nn.softmax, "columns": lambda x: nn.softmax(x, axis=0), "layer_norm": layer_norm,
    "sums": lambda x: (x.sum(0), x.sum(1), x.sum(), x.mean()),
    "extremes": lambda x: (x.max(1), x.min(0), fnp.argmax(x, axis=1), fnp.argmin(x)),
    "products": lambda x: (x.prod(1), (x > 0).all(1), (x > 2).any(0)),
    "running": lambda x: (fnp.cumsum(x, axis=1), fnp.cumsum(x, axis=1).sum(0)),
    "norm": lambda x: x / fnp.sqrt((x * x).sum()),
    "whole": lambda x: fnp.sum(fnp.round(x * 9).astype("int32"), axis=1),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("units", [1, 132])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1000), (64, 33), (100, 16), (1000, 8), (8, 4096)],
                         ids=str)
def test_teams_give_what_numpy_gives(device, monkeypatch, name, shape, units):
    gpu = replace(device.record, units=units)
    monkeypatch.setattr(backend, "target_of", lambda record: GPU)
    monkeypatch.setattr(device, "record", gpu)
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(F)
    check(device, MATRICES[name], x, length=x.size, slack=4)


@pytest.mark.parametrize("shape", [(4, 9, 16), (2, 300, 3), (5, 7, 64)], ids=str)
def test_nests_of_loops_are_dealt_out_as_one(device, monkeypatch, shape):
    monkeypatch.setattr(backend, "target_of", lambda record: GPU)
    x = np.random.default_rng(1).standard_normal(shape).astype(F)
    check(device, whitened, x, length=x.size, slack=16)
    check(device, lambda x: x.sum((0, 2)), x, length=x.size)


def back_and_forth(x):
    e = fnp.exp(x - x.max())
    return (e / e.sum())[::-1] + e


@pytest.mark.parametrize("n", [20, 200, 1000])
def test_what_stands_before_the_work_items_is_shared_by_all_of_them(device, monkeypatch, n):
    (kernel, *_), text = kernels(back_and_forth, (20,))
    assert "__local float" in text and groups.team_of(kernel, RECORD) is None
    monkeypatch.setattr(backend, "target_of", lambda record: GPU)
    check(device, back_and_forth, np.random.default_rng(2).standard_normal(n).astype(F), length=n)


def test_nan_goes_through_a_team(device, monkeypatch):
    monkeypatch.setattr(backend, "target_of", lambda record: GPU)
    x = np.zeros((3, 1000), F)
    x[1, 777], x[2, 5] = np.nan, np.inf
    check(device, lambda x: (x.max(1), x.sum(1), x.min(1)), x)


# ---- items with several iterations, and items that look for theirs together ---------------------

@pytest.mark.parametrize("n", [2047, 4096, 5000, 8192, 10_000, 20_001])
def test_items_of_large_kernels_take_turns(device, monkeypatch, n):
    """2048 items are a unit's fill: behind that each has up to four iterations."""
    record = replace(device.record, units=1)
    monkeypatch.setattr(backend, "target_of", lambda record: GPU)
    monkeypatch.setattr(device, "record", record)
    x = np.random.default_rng(n).standard_normal(n).astype(F)
    check(device, lambda x: (fnp.tanh(x) * x + 1, x[::-1] - x), x)
    check(device, lambda x: fnp.sort(x) * 2 + x, x)
    matrix = np.resize(x, (n // 7, 7))
    check(device, lambda x: (x.T + 1, x.sum(1)), matrix, length=7)


def test_how_many_turns_items_take():
    for n, turns in ((100_000, 1), (132 * 4096, 2), (1 << 24, 4)):
        _, text = kernels(lambda x: x * 2 + 1, (n,))
        assert (f"turn < {turns};" in text) == (turns > 1)


def scattered(rows, values):
    return fnp.zeros((50, *values.shape[1:]), F).at[rows].add(values)


@pytest.mark.parametrize("rows, columns, group", [
    (100, 64, 64), (1000, 256, 256), (33, 100, 100), (300, 3 * 97, 97), (17, 10, 0), (500, 0, 0)])
def test_items_look_for_their_places_together(device, monkeypatch, rows, columns, group):
    """Each item went through all rows, of which few are its own."""
    rng = np.random.default_rng(rows)
    places = rng.integers(-50, 50, rows).astype(np.int32)
    values = rng.integers(-9, 9, (rows, columns)).astype(F)
    monkeypatch.setattr(backend, "target_of", lambda record: GPU)
    plan, _ = planned(scattered, [Array(places), Array(values)], GPU)
    text = backend.Program(plan, replace(RECORD, kind="gpu")).text
    assert ("atomic_or" in text) == bool(group) and f"reqd_work_group_size({group}," in text \
        or not group
    check(device, scattered, places, values)
    check(device, lambda p, v: fnp.ones((columns, 50), F).at[:, p].max(v.T), places, values)
