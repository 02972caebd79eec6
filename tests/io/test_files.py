"""Files are written under the name given, in the format that it tells, or not at all."""

import os

import numpy as np
import pytest

from fgrad import io, viz
from fgrad.errors import ArgumentError, FileError
from tests.messages import message

TREE = {"w": np.ones(2)}
PLOT = viz.Plot("x")


@pytest.mark.parametrize("name, save, fix", [
    ("x.npz", lambda path: io.save(path, TREE), "or io.save_npz(path, tree)"),
    ("x.pt", lambda path: io.save(path, TREE), "x.safetensors"),
    ("x.safetensors", lambda path: io.save_npz(path, TREE), "or io.save(path, tree)"),
    ("x.png", lambda path: PLOT.save(path), "x.svg"),
    ("x.SVG", lambda path: viz.save_png(path, np.zeros((2, 2))), "x.png"),
])
def test_a_name_that_tells_another_format_is_refused(tmp_path, name, save, fix):
    said = message(ArgumentError, save, tmp_path / name)
    assert f"the name {name} tells another format" in said and fix in said
    assert not os.listdir(tmp_path)


def test_a_name_that_tells_no_format_is_taken(tmp_path):
    for name in ("params", "params.v1.2"):
        io.save(tmp_path / name, TREE)
        assert io.load(tmp_path / name)["w"].tolist() == [1, 1]


def test_what_cannot_be_written_is_named_as_it_was_given(tmp_path, monkeypatch):
    assert message(FileError, io.save, tmp_path, TREE).startswith(
        f"{tmp_path} is a folder, not a file.")
    monkeypatch.chdir(tmp_path)
    long = "x" * 300 + ".safetensors"
    said = message(FileError, io.save, long, TREE)
    assert said.startswith(f"{long} cannot be written: File name too long.") and ".new" not in said
    (tmp_path / "file").write_bytes(b"")
    said = message(OSError, io.Checkpointer, tmp_path / "file" / "runs")
    assert said.startswith(f"the folder {tmp_path / 'file' / 'runs'} cannot be made")
