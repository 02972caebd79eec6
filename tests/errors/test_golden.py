"""All that a user sees of an error, traceback and message: from a file, a notebook, and -c.

One program each in programs/; what it prints to its error output stands in golden/, renewed by
`pytest --update-golden` and read before it is kept.
"""

import ast
import io
import linecache
import os
import re
import subprocess
import sys
import traceback
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from fgrad import errors, grad, jit, vmap
from fgrad import numpy as fnp
from fgrad.core import PRIMITIVES, Primitive
from tests.messages import COLUMNS, without_columns, without_entrance

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
UPDATE = os.environ.get("FGRAD_UPDATE_GOLDEN") == "1"          # set by --update-golden
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)


def run(code, filename):
    """What the program prints to its error output when its code runs under this file name."""
    errors.NOTICED.clear()
    said = []
    with warnings.catch_warnings(record=True) as notices, redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            exec(compile(code, filename, "exec"), {"__name__": "__main__"})
        except Exception as error:
            error.__traceback__ = error.__traceback__.tb_next          # without this function
            said.append("".join(traceback.format_exception(error)))
    said += [f"{type(n.message).__name__}: {n.message}\n" for n in notices]
    return "".join(said)


def told(text, filename):
    """The text as it is kept: file names without folders, no underlining by Python itself."""
    text = text.replace(f'"{filename}"', '"program.py"').replace(Path(filename).name, "program.py")
    text = re.sub(r'(  File .*\n(?:    \S.*\n)?) +[\^~]+\n', r"\1", text)
    return text if COLUMNS else without_columns(without_entrance(text))


@programs
def test_from_a_file(program, tmp_path):
    file = tmp_path / "program.py"
    code = program.read_text(encoding="utf8")
    file.write_text(code, encoding="utf8")
    said = told(run(code, str(file)), str(file))
    golden = HERE / "golden" / f"{program.stem}.txt"
    if UPDATE:
        golden.write_text(said, encoding="utf8")
    expected = golden.read_text(encoding="utf8")
    assert said == (expected if COLUMNS else without_columns(expected))
    assert "/fgrad/" not in said, "a frame of the library"


@programs
def test_from_a_cell_of_a_notebook(program):
    code = program.read_text(encoding="utf8")
    name = f"<ipython-input-{program.stem}>"
    linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
    said = told(run(code, name), name)
    expected = (HERE / "golden" / f"{program.stem}.txt").read_text(encoding="utf8")
    assert aligned(said) == aligned(expected if COLUMNS else without_columns(expected))


def aligned(text):
    """The text without the blanks before carets: they follow the length of the file's name."""
    return re.sub(r"\n +(?=\^)", "\n", text)


def one(name):
    return next(p for p in PROGRAMS if p.stem == name)


# Their sentences quote the user's line, which is not there; they say it in general words then.
READS_THE_LINE = ("assignment", "bool_of_a_traced_value", "numpy_random_of_a_traced_value",
                  "size_from_a_traced_array", "trip_count_while_compiling")


@programs
def test_without_lines_to_show_the_message_says_the_same(program):
    """As `python -c` runs it: a name that stands for no file, here in this process."""
    linecache.cache.pop("<string>", None)
    said = told(run(program.read_text(encoding="utf8"), "<string>"), "<string>")
    expected = (HERE / "golden" / f"{program.stem}.txt").read_text(encoding="utf8")
    for line in expected.splitlines():
        if line.startswith(("fgrad.", "FgradWarning")) and "program.py" not in line:
            assert (line.split(":")[0] if program.stem in READS_THE_LINE else line) in said
    assert "/fgrad/" not in said, "a frame of the library"


@pytest.mark.parametrize("name", ["shapes_of_a_product", "leaked_from_jit", "mistake_of_the_user"])
def test_from_the_command_line(name):
    """`python -c` has no lines to show before Python 3.13: the message stands without them."""
    done = subprocess.run([sys.executable, "-c", one(name).read_text(encoding="utf8")],
                          capture_output=True, text=True)
    expected = (HERE / "golden" / f"{name}.txt").read_text(encoding="utf8")
    head = next(line for line in expected.splitlines() if line.startswith(("fgrad.", "KeyError")))
    assert head in done.stderr and "/fgrad/" not in without_entrance(done.stderr)


@pytest.mark.parametrize("name", ["shapes_of_a_product", "mistake_of_the_user"])
def test_full_tracebacks_on_demand(name, monkeypatch):
    monkeypatch.setenv("FGRAD_TRACEBACK", "full")
    assert "/fgrad/" in run(one(name).read_text(encoding="utf8"), "program.py")


def test_the_cause_of_an_exception_stays():
    @jit
    def f(x):
        try:
            return {}["w"]
        except KeyError as error:
            raise ValueError("no weights") from error
    with pytest.raises(ValueError) as caught:
        f(1.0)
    assert isinstance(caught.value.__cause__, KeyError)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames][-1] == "f"


def test_recursion_without_end_shows_the_frames_of_the_user_only():
    @jit
    def power(x):
        return x * power(x)
    with pytest.raises(RecursionError) as caught:
        power(2.0)
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert __file__ in files
    assert not COLUMNS or not any("/fgrad/" in file for file in files)


@pytest.fixture
def double():
    """An operation with a value and a type, and no other rule."""
    class Double(Primitive):
        """Twice x."""

        def type(self, x, /):
            return x

        def numpy(self, x, /):
            return 2 * x

    yield Double("double")
    del PRIMITIVES["double"]


def test_an_operation_without_a_derivative_is_not_taken_for_constant(double):
    for transformed in (grad(lambda x: double(x)), jit(grad(lambda x: double(x)))):
        with pytest.raises(errors.MissingRuleError, match="double has no derivative"):
            transformed(3.0)


def test_an_operation_without_a_batch_rule_says_so(double):
    with pytest.raises(errors.MissingRuleError, match="double has no rule for vmap"):
        vmap(double)(fnp.ones(3))


OURS = re.compile(r"\b(tracers?|avals?|Staged|jaxpr|abstract value|interpreter)\b", re.IGNORECASE)


def test_messages_have_none_of_our_own_words():
    """In every golden text, and in every message of the sources that ends up in an error."""
    for golden in (HERE / "golden").glob("*.txt"):
        assert not OURS.search(golden.read_text(encoding="utf8")), golden.stem
    for file in Path(errors.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for part in ast.walk(node.exc):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        assert not OURS.search(part.value), f"{file.name}:{part.lineno}"
