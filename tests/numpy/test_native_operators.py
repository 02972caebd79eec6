"""Operators become machine code when a process has used enough of them, and not before."""

import subprocess
import sys
import types

import pytest

from fgrad import numpy as fnp
from fgrad.backends.llvm import operators
from fgrad.backends.llvm.operators_text import NAMES
from fgrad.core import Array
from fgrad.errors import CheckError, FgradWarning
from fgrad.numpy import native_operators as counted

WHETHER = """if True:
    import sys
    import fgrad.numpy as fnp
    from fgrad.core import Array
    from fgrad.numpy import native_operators
    native_operators.LOADING, native_operators.COMPILING = {first}, {second}
    native_operators.count_operators()
    x = fnp.ones(3)
    for k in range(19):
        x = x * 1.0
    before = type(Array.__add__).__name__
    assert {first} < 20 or "fgrad.backends.llvm.operators" not in sys.modules
    x = x + x
    assert (x - 1).tolist() == [1.0, 1.0, 1.0]
    print(before, type(Array.__add__).__name__, "llvmlite" in sys.modules)"""


@pytest.fixture
def restored():
    """After the test arrays have the operators they had."""
    before = {name: vars(Array).get(name) for name in NAMES}
    yield
    counted.leave()
    for name, method in before.items():
        if method is not None:
            setattr(Array, name, method)


def run(first, second, monkeypatch, **environment):
    """What WHETHER prints in a process of its own, with these numbers of operators."""
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    script = WHETHER.format(first=first, second=second)
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return out.stdout.split()


def test_both_lists_of_operators_are_one():
    assert sorted(counted.PYTHON) == sorted(NAMES)


def test_machine_code_is_compiled_late_and_loaded_early(monkeypatch, tmp_path):
    if not operators.possible(Array):
        pytest.skip("this interpreter's layouts are not known")
    folder = str(tmp_path / "cache")
    assert run(20, 1000, monkeypatch, FGRAD_CACHE=folder)[:2] == ["function", "function"]
    assert run(5, 20, monkeypatch) == ["function", "method_descriptor", "True"]
    assert run(20, 1000, monkeypatch) == ["function", "method_descriptor", "False"]
    assert run(20, 1000, monkeypatch, FGRAD_NATIVE_CALL="0")[:2] == ["function", "function"]


def test_where_it_cannot_be_had_arrays_count_no_more(restored, monkeypatch):
    monkeypatch.setattr(operators, "possible", lambda box: False)
    counted.count_operators()
    counted.take_over(compile=True)
    assert Array.__add__ is counted.PYTHON["__add__"] and "__add__" not in vars(Array)


def test_where_the_system_refuses_a_notice_says_so(restored, monkeypatch):
    def refuse(*args):
        raise CheckError("the system does not let this process run code", where=None)

    monkeypatch.setattr(counted, "machine", lambda: types.SimpleNamespace(
        possible=lambda box: True, is_kept=lambda: False, attach=refuse))
    counted.count_operators()
    counted.take_over(compile=False)
    assert "__add__" in vars(Array)
    with pytest.warns(FgradWarning, match="operators of arrays run in Python"):
        counted.take_over(compile=True)
    assert "__add__" not in vars(Array) and (fnp.ones(2) + 1).tolist() == [2.0, 2.0]


def test_counting_methods_raise_what_the_methods_raise(restored):
    counted.count_operators()
    with pytest.raises(TypeError, match="unsupported operand"):
        fnp.ones(3) + object()
    with pytest.raises(TypeError, match="shape") as caught:
        fnp.ones(3) - fnp.ones(4)
    files = [entry.path.name for entry in caught.traceback]
    assert files[0] == "test_native_operators.py"
    assert files[1:] == [] or sys.version_info < (3, 11)
    assert (3.0 - fnp.ones(2)).tolist() == [2.0, 2.0]
