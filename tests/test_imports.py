"""What a file imports from the project is there, whether or not a test runs that line."""

import ast
import importlib.util

import pytest

from tests.test_floors import ROOT, SOURCES

PROJECT = "fgrad", "tests", "examples", "benchmarks"


def imported(file):
    """(module, name) of all that a file imports from the project by `from module import name`."""
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        above = package[:len(package) + 1 - node.level] if node.level else ()
        module = ".".join([*above, *([node.module] if node.module else [])])
        if module.partition(".")[0] in PROJECT:
            yield from ((module, alias.name) for alias in node.names if alias.name != "*")


def missing(module, name):
    """Whether neither the module nor a submodule of it has this name."""
    found = importlib.import_module(module)
    if hasattr(found, name):
        return False
    return not hasattr(found, "__path__") or importlib.util.find_spec(f"{module}.{name}") is None


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: str(f.relative_to(ROOT)))
def test_what_a_file_imports_from_the_project_is_there(file):
    """A name had moved, and a script that no quick test runs asked for it where it had been."""
    assert [where for where in imported(file) if missing(*where)] == []
