"""The code blocks of the README and the docs run; what they print is what stands below them.

`--update-golden` writes what they print into the pages, to be read before it is kept.
"""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

from fgrad import nn, optim
from fgrad.backends import base
from fgrad.core import PRIMITIVES
from tests.messages import COLUMNS, without_columns
from tests.test_floors import FLOORS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
UPDATE = os.environ.get("FGRAD_UPDATE_GOLDEN") == "1"          # set by --update-golden
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FLOOR = re.compile(r"^\| (\d+) \| `([^`]*)` \|", re.M)


@pytest.fixture(autouse=True)
def registered():
    """What a page registers, a backend or an operation, is gone when it is done."""
    PRIMITIVES.load()
    tables = base.BACKENDS, base.INSTANCES, PRIMITIVES
    before = [set(table) for table in tables]
    yield
    for table, names in zip(tables, before):
        for name in set(table) - names:
            del table[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    """Python blocks share one namespace; a `text` block right after one is what it prints."""
    monkeypatch.chdir(tmp_path)
    content = page.read_text(encoding="utf8")
    space, printed = {"__name__": "page"}, None
    for k, (language, body) in enumerate(BLOCK.findall(content)):
        if language == "python":
            file = tmp_path / str(k) / f"{page.stem}.py"      # a file, so that lines can be shown
            file.parent.mkdir()
            file.write_text(body, encoding="utf8")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, str(file), "exec"), space)
            printed = out.getvalue()
        elif language == "text" and printed is not None:
            if UPDATE and lines(printed) != lines(body):
                new = "".join(line.rstrip() + "\n" for line in printed.splitlines())
                content = content.replace(f"```text\n{body}```", f"```text\n{new}```", 1)
                page.write_text(content, encoding="utf8")
            else:
                assert lines(printed) == lines(body), f"{page.name}: a block prints\n{printed}"
            printed = None


def test_the_floors_on_the_architecture_page_are_those_of_the_house():
    page = ROOT / "docs" / "architecture.md"
    content = page.read_text(encoding="utf8")
    real = FLOOR.sub(lambda m: f"| {m[1]} | `{FLOORS[int(m[1])]}` |", content)
    if UPDATE:
        page.write_text(real, encoding="utf8")
    else:
        assert content == real, "pytest --update-golden renews the page"
    assert len(FLOOR.findall(content)) == len(FLOORS)


def lines(text):
    """Without trailing blanks; the width of the right column depends on the file's name.

    Before Python 3.11 code has no columns, so the user's words are not known there.
    """
    column = " │ " if COLUMNS else ""
    rest = " +│ *" if column else " +│.*"
    text = text if COLUMNS else without_columns(text)
    return [re.sub(rest, column, line).rstrip() for line in text.strip().splitlines()]


def written_in(module, space):
    """The names of a space that are functions written in a module."""
    def home(value):
        return getattr(getattr(value, "__wrapped__", value), "__globals__", {}).get("__name__")
    return {name for name in dir(space) if home(getattr(space, name)) == module}


def test_the_page_about_training_names_every_layer_loss_and_optimizer():
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf8")
    named = set(re.findall(r"\w+", "".join(re.findall(r"^\|.*$", page, re.M))))
    layers = {name for name in dir(nn) if isinstance(getattr(nn, name), type)}
    losses = written_in("fgrad.nn.losses", nn)
    optimizers = written_in("fgrad.optim.optimizers", optim)
    assert len(layers) > 25 and len(losses) > 15 and len(optimizers) > 20
    assert (layers | losses | optimizers) - named == set()
