"""The examples run, in their short form, and end as they promise."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def started(name, *options):
    """An example that has run, with the package of this checkout."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run([sys.executable, str(EXAMPLES / name), *options],
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)


def run(name, *options):
    """The lines an example prints."""
    done = started(name, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def pictured(path):
    """Is the file a PNG or a well-formed SVG?"""
    content = path.read_bytes()
    return content[:4] == b"\x89PNG" or ElementTree.fromstring(content).tag.endswith("svg")


@pytest.mark.parametrize("name", sorted(f.name for f in EXAMPLES.glob("*.py")))
def test_every_example_runs_in_its_short_form(name, tmp_path):
    """Those that can draw also draw."""
    draws = '"--picture"' in (EXAMPLES / name).read_text(encoding="utf8")
    file = tmp_path / "picture"
    assert run(name, "--short", *(["--picture", str(file)] if draws else []))
    assert not draws or pictured(file)


@pytest.mark.parametrize("name", sorted(f.name for f in EXAMPLES.glob("*.py")))
def test_every_example_is_short_and_says_what_it_shows(name):
    text = (EXAMPLES / name).read_text(encoding="utf8")
    assert len(text.splitlines()) < 150 and "RawDescriptionHelpFormatter" in text
    assert "What you learn: " in text and "\nAnswers: " in text


@pytest.mark.parametrize("name, promise, far", [
    ("micrograd.py", "gradients: x1 -1.5000, x2 0.5000, w1 1.0000, w2 0.0000, b 0.5000", 0),
    ("newton_laplace.py", "slope 34.270 ± 2.912 (Bliss 1935: 34.270 ± 2.912)", 0),
    ("adam_from_scratch.py", "largest difference from optim.adam: ", 1e-4),
    ("neural_ode.py", "learned from pieces of 0.25 s; mean distance over 25 s: ", 1.0),
])
def test_examples_end_with_what_they_promise(name, promise, far):
    """The last line begins so; a number after it is at most `far`."""
    last = run(name, "--short")[-1]
    assert last.startswith(promise) and (not far or float(last.removeprefix(promise)) < far)


def test_the_mlp_learns_the_drawn_digits_and_says_so_last():
    lines = run("mnist_mlp.py", "--short")
    assert "not MNIST" in lines[0]
    word, accuracy = lines[-1].rsplit(" ", 1)
    assert word == "test accuracy:" and float(accuracy) > 0.6


def test_both_devices_take_the_same_steps():
    losses = []
    for device in ("cpu", "opencl"):
        lines = run("mnist_mlp.py", "--short", "--losses", "--device", device)
        steps = [line for line in lines if line.startswith("step ")][:50]
        losses.append([float(line.split()[-1]) for line in steps])
    assert len(losses[0]) > 20
    assert max(abs(a - b) for a, b in zip(*losses)) < 1e-3


@pytest.mark.parametrize("stage", ["ir", "fused", "loops", "llvm", "asm"])
def test_the_train_step_can_be_printed_at_every_stage(stage):
    text = "\n".join(run("mnist_mlp.py", "--short", "--show", stage))
    assert len(text) > 1000


def test_a_missing_data_folder_is_explained():
    done = started("mnist_mlp.py", "--data", "no_such_folder")
    assert done.returncode != 0 and "no_such_folder" in done.stderr


def test_the_parameters_can_be_saved(tmp_path):
    file = tmp_path / "mlp.safetensors"
    run("mnist_mlp.py", "--short", "--save", str(file))
    assert file.stat().st_size > 4 * 784 * 256
