"""Names of other libraries that fgrad has not: what the error proposes."""

import importlib
import re

import pytest

import fgrad
import fgrad.numpy as fnp                                                            # noqa: F401
from fgrad import absent, lax, nn, optim                                             # noqa: F401

EVERY = [(module, name) for module, names in absent.INSTEAD.items() for name in names]


@pytest.mark.parametrize("module, name", EVERY)
def test_a_peers_name_is_answered_with_what_to_write(module, name):
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    said = f"module {module!r} has no attribute {name!r}: "
    assert str(caught.value) == said + absent.INSTEAD[module][name] + "."


@pytest.mark.parametrize("module, name", EVERY)
def test_what_is_proposed_is_there(module, name):
    for found in re.findall(r"\b(?:fgrad|nn|np)\.[\w.]*\w", absent.instead(module, name)):
        assert eval(found, {"fgrad": fgrad, "nn": nn, "np": __import__("numpy")})


@pytest.mark.parametrize("module, name, near", [
    (fgrad, "hessain", "hessian"), (fnp, "lnspace", "linspace"), (nn, "Dens", "Dense"),
    (lax, "fori_lop", "fori_loop")])
def test_python_proposes_a_similar_name(module, name, near):
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert (caught.value.name, caught.value.obj) == (name, module) and near in dir(module)


def test_the_traceback_shows_the_users_line_alone():
    with pytest.raises(AttributeError) as caught:
        fgrad.pmap                                                                  # noqa: B018
    assert {entry.path.name for entry in caught.traceback} == {"test_absent.py"}
