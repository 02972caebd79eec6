"""Checkpoints: bit for bit, the newest kept, and whole ones only, whenever a process is killed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fgrad
from fgrad import optim, tree
from fgrad.errors import ArgumentError, DataError, MissingFileError, RangeError
from fgrad.io import Checkpointer


def run_state(seed=0):
    w = np.random.default_rng(seed).normal(size=(3, 2)).astype("f4")
    params = {"dense": {"w": w, "b": np.zeros(2, "f4")}}
    return {"params": params, "state": optim.adam(0.1).init(params), "key": fgrad.random.key(seed),
            "epoch": seed, "rate": 0.1 * seed, "best": float("inf")}


def same(first, second):
    assert tree.structure(first) == tree.structure(second)
    for a, b in zip(tree.leaves(first), tree.leaves(second)):
        assert type(a) is type(b) or hasattr(a, "dtype") and hasattr(b, "dtype")
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_params_optimizer_state_key_and_numbers_come_back_bit_for_bit(tmp_path):
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(5, run_state(3))
    found = checkpoints.restore(like=run_state(0))
    same(found, run_state(3))
    draw = fgrad.random.normal(found["key"], (4,))
    assert np.array_equal(draw, fgrad.random.normal(fgrad.random.key(3), (4,)))


def test_a_python_float_and_a_long_int_lose_nothing(tmp_path):
    checkpoints = Checkpointer(tmp_path)
    run = {"n": 2**62 + 1, "x": 0.1, "on": True}
    checkpoints.save(0, run)
    assert checkpoints.restore(like={"n": 0, "x": 0.0, "on": False}) == run


def test_an_int_of_more_than_64_bits_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ArgumentError, match="has 64 bits"):
        Checkpointer(tmp_path).save(0, {"n": 2**64})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("keep, left", [
    (1, [4]), (2, [3, 4]), (9, [0, 1, 2, 3, 4]), (None, [0, 1, 2, 3, 4])])
def test_the_newest_are_kept(tmp_path, keep, left):
    checkpoints = Checkpointer(tmp_path, keep=keep)
    for k in range(5):
        checkpoints.save(k, {"k": k})
    assert checkpoints.steps() == left and checkpoints.latest() == 4
    assert [checkpoints.restore(like={"k": 0}, step=k)["k"] for k in left] == left


def test_what_was_just_saved_is_never_removed(tmp_path):
    checkpoints = Checkpointer(tmp_path, keep=1)
    checkpoints.save(9, {"k": 9})
    checkpoints.save(2, {"k": 2})                          # as after going back
    assert checkpoints.steps() == [2]


def test_a_half_written_file_is_ignored_and_removed_by_the_next_save(tmp_path):
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(1, {"k": 1})
    left = tmp_path / ".step-000000000002.safetensors.0a1b2c.new"
    left.write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    assert checkpoints.latest() == 1 and left.exists()
    checkpoints.save(2, {"k": 2})
    assert not left.exists() and (tmp_path / "notes.txt").exists()


def test_an_empty_folder_says_so(tmp_path):
    checkpoints = Checkpointer(tmp_path / "new")
    assert checkpoints.latest() is None and checkpoints.steps() == []
    with pytest.raises(MissingFileError) as caught:
        checkpoints.restore(like={})
    assert str(caught.value).startswith(f"{tmp_path / 'new'} does not hold a checkpoint.\n")
    assert "  given      steps []\n" in str(caught.value)


def test_a_step_that_is_not_there_lists_those_that_are(tmp_path):
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(3, {"k": 1})
    words = r"does not hold the checkpoint of step 4\.[^$]*steps \[3\]"
    with pytest.raises(MissingFileError, match=words):
        checkpoints.restore(like={"k": 0}, step=4)


def test_a_checkpoint_that_does_not_fit_names_the_leaves(tmp_path):
    Checkpointer(tmp_path).save(1, run_state())
    other = run_state()
    other["params"]["dense"]["w"] = np.zeros((2, 2), "f4")
    words = r"different params/dense/w: f32\[3,2\], like has f32\[2,2\]"
    with pytest.raises(DataError, match=words):
        Checkpointer(tmp_path).restore(like=other)


@pytest.mark.parametrize("bad", [0, -1])
def test_keeping_none_at_all_is_refused(tmp_path, bad):
    with pytest.raises(RangeError, match="at least one"):
        Checkpointer(tmp_path, keep=bad)


def test_a_negative_step_is_refused(tmp_path):
    with pytest.raises(RangeError, match="not negative"):
        Checkpointer(tmp_path).save(-1, {})


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_checkpoints_as_they_were(tmp_path, monkeypatch, step):
    def fail(*args):
        raise OSError("disk full")
    checkpoints = Checkpointer(tmp_path, keep=1)
    checkpoints.save(1, {"k": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="disk full"):
            checkpoints.save(2, {"k": 2})
    assert os.listdir(tmp_path) == ["step-000000000001.safetensors"]
    assert checkpoints.restore(like={"k": 0}) == {"k": 1}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_fifty_kills_at_random_moments_lose_nothing_and_change_no_bit(tmp_path):
    script = Path(__file__).with_name("killed_writer.py")
    root = str(Path(__file__).parent.parent.parent)
    done = subprocess.run([sys.executable, str(script), str(tmp_path), "50", "1"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": root})
    assert done.returncode == 0, done.stderr
    half_written, steps, equal = done.stdout.split()
    assert equal == "True" and int(steps) > 50 and int(half_written) > 0
