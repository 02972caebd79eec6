"""No file imports what it does not use, and no function names a value that it does not use.

`# noqa: F401` marks imports that are there for others; so does `__all__`, and every import of an
`__init__.py`.  A local name that begins with _ says that its value is not wanted.
"""

import ast

import pytest

from tests.test_floors import ROOT, SOURCES

FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
CASES = {   # source: names that it does not use
    "import a, b.c as d\nfrom e import f as g, h\nprint(a, g)": ["d", "h"],
    "from a import (  # noqa: F401\n    b, c)": [],
    "from __future__ import annotations\nfrom a import b, c\n__all__ = ['b']": ["c"],
    "def f():\n    x, y = 1, 2\n    _, *z = 3, 4\n    return y": ["x", "z"],
    "def f():\n    x = 1\n    return lambda: x": [],
    "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    return g": [],
    "def f(x):\n    y = x\n    y += 1": [],
    "def f():\n    class A:\n        b = 1\n    return A": [],
    "def f(x):\n    with x as y, x as z:\n        print(z)\n    x.a = x[0] = 1": ["y"],
}


def used(tree):
    """The names that are read, deleted, added to, or shared with another scope."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names


def exported(tree):
    """The names in `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            yield from (n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant))


def imported(tree, lines):
    """(line, name) of what is imported for use in this file."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        marked = any("noqa: F401" in line for line in lines[node.lineno - 1:node.end_lineno])
        if not marked and getattr(node, "module", "") != "__future__":
            yield from ((node.lineno, (alias.asname or alias.name).partition(".")[0])
                        for alias in node.names)


def bound(node):
    """(line, name) of what a function binds by = and `with`; a class body has names of its own."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            continue
        targets = child.targets if isinstance(child, ast.Assign) else []
        if isinstance(child, ast.withitem) and child.optional_vars:
            targets = [child.optional_vars]
        for name in (n for target in targets for n in ast.walk(target)):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                yield name.lineno, name.id
        yield from bound(child)


def unused(source, imports=True):
    """(line, name) of the imports and local names of a file that nothing in it uses."""
    tree = ast.parse(source)
    known = {*used(tree), *exported(tree)}
    if imports:
        yield from (found for found in imported(tree, source.splitlines()) if found[1] not in known)
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    inner = {n for f in functions for n in ast.walk(f) if n is not f and isinstance(n, FUNCTIONS)}
    for function in (f for f in functions if f not in inner):
        known = set(used(function))
        yield from (found for found in bound(function)
                    if found[1] not in known and not found[1].startswith("_"))


@pytest.mark.parametrize("source", CASES)
def test_what_is_not_used_is_found(source):
    assert [name for _, name in unused(source)] == CASES[source]


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: str(f.relative_to(ROOT)))
def test_everything_that_a_file_names_is_used(file):
    assert [*unused(file.read_text(encoding="utf-8"), file.name != "__init__.py")] == []


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: str(f.relative_to(ROOT)))
def test_nothing_is_defined_twice(file):
    """A rebase had left a function twice in a row."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    names = [s.name for s in body if isinstance(s, (ast.FunctionDef, ast.ClassDef))]
    assert sorted(set(names)) == sorted(names)
