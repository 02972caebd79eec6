"""The examples run, in their short form, and end as they promise."""

import os
import re
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


PROMISES = {                                                # how the last line begins
    "adam_from_scratch.py": "largest difference from optim.adam: ",
    "char_transformer.py": "validation loss: ",
    "cifar_resnet.py": "test accuracy: ",
    "detection.py": "mAP at half overlap: ",
    "maml.py": "squared error on new waves, before -> after one step: meta-learned ",
    "micrograd.py": "gradients: x1 -1.5000, x2 0.5000, w1 1.0000, w2 0.0000, b 0.5000",
    "neural_ode.py": "learned from pieces of 0.25 s; mean distance over 25 s: 0.",
    "newton_laplace.py": "slope 34.270 ± 2.912 (Bliss 1935: 34.270 ± 2.912)",
    "xor.py": "right answers: 4 of 4",
}


TOO_SHORT = {"cifar_resnet.py", "detection.py", "mobilenet.py", "transfer.py"}


@pytest.mark.parametrize("name", sorted(f.name for f in EXAMPLES.glob("*.py")))
def test_every_example_runs_in_its_short_form(name, tmp_path):
    """It ends as it promises; those that can draw also draw."""
    draws = '"--picture"' in (EXAMPLES / name).read_text(encoding="utf8")
    file = tmp_path / "picture"
    lines = run(name, "--short", *(["--picture", str(file)] if draws else []))
    assert lines[-1].startswith(PROMISES.get(name, "")) and lines[-1].strip()
    assert not draws or pictured(file)
    assert ("too short to learn: run it without --short" in lines) == (name in TOO_SHORT)
    if name == "char_transformer.py":
        assert "the same text without a cache: True" in lines


@pytest.mark.parametrize("name", sorted(f.name for f in EXAMPLES.glob("*.py")))
def test_every_example_is_short_and_says_what_it_shows(name):
    text = (EXAMPLES / name).read_text(encoding="utf8")
    assert len(text.splitlines()) < 150 and "RawDescriptionHelpFormatter" in text
    assert "What you learn: " in text and "\nAnswers: " in text


def test_the_page_of_examples_names_each_once():
    page = (EXAMPLES / "README.md").read_text(encoding="utf8")
    named = re.findall(r"^\| \[\w+\]\((\w+\.py)\)", page, re.M)
    assert sorted(named) == sorted(f.name for f in EXAMPLES.glob("*.py"))


def test_a_missing_data_folder_is_explained():
    done = started("mnist_mlp.py", "--data", "no_such_folder")
    assert done.returncode != 0 and "no_such_folder" in done.stderr


def test_the_parameters_can_be_saved(tmp_path):
    file = tmp_path / "mlp.safetensors"
    run("mnist_mlp.py", "--short", "--save", str(file))
    assert file.stat().st_size > 4 * 784 * 256
