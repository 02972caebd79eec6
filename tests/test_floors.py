"""The floors of the house: a file imports only from floors below it, or from its own."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fgrad"
WIDTH = 100                # characters a line
LENGTH = 60                # lines a function

#   floor   modules and packages
FLOORS = {
    0: "errors blocks source config text later absent blas aligned slots records "
       "refusals",
    1: "bf16 types tree",
    2: "ir ir_text ir_parse index scalar affine piecewise loop loop_text loop_check loop_key",
    3: "core",
    4: "ops",
    5: "interpreters",
    6: "arguments transforms gradient_check control custom callbacks",
    7: "passes",
    8: "backends",
    9: "signature denormals compile history lowered native_entry jitted "
       "profiling",
    10: "numpy scipy tree_util flatten_util windowed_index folding collectives dynamic_slices lax "
        "lax_linalg lax_reductions segments convolution placing random image inspect io debug "
        "viz",
    11: "nn optim data",
    12: "train bench",
    13: "__init__ __main__",
}
PUBLIC = """fgrad fgrad.numpy fgrad.random fgrad.scipy.special fgrad.scipy.stats fgrad.scipy.linalg
            fgrad.scipy.ndimage fgrad.scipy.signal fgrad.image fgrad.lax fgrad.debug
            fgrad.numpy.linalg fgrad.numpy.fft
            fgrad.tree fgrad.tree_util fgrad.nn fgrad.nn.initializers fgrad.optim
            fgrad.optim.schedules fgrad.data fgrad.io fgrad.train fgrad.viz"""
FLOOR_OF = {name: floor for floor, names in FLOORS.items() for name in names.split()}
FILES = sorted(PACKAGE.rglob("*.py"))
SOURCES = sorted(file for folder in ("fgrad", "tests", "examples", "benchmarks")
                 for file in (ROOT / folder).rglob("*.py"))


def part(file):
    """The module or package right below fgrad that a file belongs to."""
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(file):
    """The modules or packages right below fgrad that a file imports, relative imports resolved."""
    depth = len(file.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            up = depth - node.level
            here = list(file.relative_to(PACKAGE).parts[:up])
            path = here + (node.module.split(".") if node.module else [])
            if path:
                yield path[0]
            else:
                yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_a_file_imports_only_from_its_floor_or_below(file):
    assert part(file) in FLOOR_OF, f"{part(file)} has no floor"
    for name in imported(file):
        assert FLOOR_OF[name] <= FLOOR_OF[part(file)], f"{part(file)} imports {name} from above"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_no_function_imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = [n for n in ast.walk(node) if isinstance(n, (ast.Import, ast.ImportFrom))]
            assert not inside, f"{node.name} imports in line {inside[0].lineno}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_every_module_says_what_it_is_for(file):
    assert ast.get_docstring(ast.parse(file.read_text())), "no docstring"


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: str(f.relative_to(ROOT)))
def test_no_line_is_too_long(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [k for k, line in enumerate(lines, 1) if len(line) > WIDTH] == []


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_no_function_is_too_long(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            assert length <= LENGTH, f"{node.name} has {length} lines"


def test_importing_fgrad_loads_neither_llvmlite_nor_pyopencl():
    script = "import sys, fgrad; print([m for m in ('llvmlite', 'pyopencl') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_first_gradient_loads_only_the_parts_it_needs():
    script = """if True:
        import sys, fgrad, fgrad.numpy as fnp
        assert fgrad.grad(lambda x: fnp.sum(fnp.tanh(x @ x)))(fnp.ones((2, 2))).shape == (2, 2)
        later = "data debug io lax nn optim scipy train viz".split()
        assert not {f"fgrad.{part}" for part in later} & sys.modules.keys()
        assert not {"pdb", "fractions", "llvmlite", "pyopencl"} & sys.modules.keys()
        assert set(later) <= set(dir(fgrad))
        from fgrad import nn
        assert fgrad.nn is nn and fgrad.optim.adam and "fgrad.train" not in sys.modules"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_name_that_the_package_lacks_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'fgrad' has no attribute 'newral'"):
        importlib.import_module("fgrad").newral


def test_public_names_have_docstrings():
    for module in PUBLIC.split():
        found = importlib.import_module(module)
        public = [n for n in vars(found) if not n.startswith("_")]
        for name in getattr(found, "__all__", public):
            value = getattr(found, name)
            if callable(value) and (getattr(value, "__module__", "") or "").startswith("fgrad"):
                of_class = None if isinstance(value, type) else type(value).__doc__
                assert value.__doc__ not in (None, "", of_class), f"{module}.{name} has none"
