"""Names that are loaded at first use: which there are, and what a process loads before it."""

import ast
import importlib
import pickle
import subprocess
import sys

import pytest

from tests.test_floors import FILES, PUBLIC, ROOT

LATE = [file for file in FILES if "later.names(" in file.read_text(encoding="utf-8")
        and file.name != "later.py"]
PARTS = """data debug flatten_util io lax nn numpy optim random scipy tree_util train tree
    viz""".split()


def module_of(file):
    """The dotted name of a file of the package."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def shown(file):
    """name → (module, its name there) of what a file imports for editors, in `if TYPE_CHECKING`."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tests = "TYPE_CHECKING", "typing.TYPE_CHECKING", "_typing.TYPE_CHECKING"
    blocks = [s for s in tree.body if isinstance(s, ast.If) and ast.unparse(s.test) in tests]
    for node in (n for block in blocks for n in block.body):
        for alias in node.names:
            yield alias.asname or alias.name, (node.module or alias.name, alias.name)


def table(file):
    """name → (module, its name there) of what the file loads at first use."""
    module = importlib.import_module(module_of(file))
    for source, words in getattr(module, "_NAMES", getattr(module, "NAMES", {})).items():
        for word in words.split() or [source]:
            name, _, theirs = word.partition("=")
            yield name, (source, theirs or name)


def run(script):
    """Runs a script in a process of its own."""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


@pytest.mark.parametrize("file", LATE, ids=module_of)
def test_editors_are_shown_what_is_loaded(file):
    want = dict(shown(file))
    assert dict(table(file)) == want or not want


@pytest.mark.parametrize("file", LATE, ids=module_of)
def test_every_name_is_there_is_listed_and_is_loaded_once(file):
    module = importlib.import_module(module_of(file))
    for name in module.__all__:
        assert name in dir(module) and getattr(module, name) is getattr(module, name)


def test_two_names_of_one_function_stay_one():
    fnp = importlib.import_module("fgrad.numpy")
    assert fnp.acosh is fnp.arccosh and fnp.abs is fnp.absolute
    assert fnp.arccosh.__module__ == fnp.sum.__module__ == "fgrad.numpy"


def test_a_star_gives_all_names_of_a_package():
    run("from fgrad.numpy import *; assert tanh and nanmean and linalg.norm")
    run("from fgrad import *; assert grad and ShapeError and nn.Dense and numpy.pi")


def test_a_star_gives_no_modules_that_nobody_named():
    fgrad, nn = (importlib.import_module(name) for name in ("fgrad", "fgrad.nn"))
    assert {"errors", "later", "transforms", "TYPE_CHECKING"}.isdisjoint(fgrad.__all__)
    assert {"init", "initializers", "Dense"} <= {*nn.__all__} and "layers" not in nn.__all__


def test_importing_fgrad_loads_nothing_else():
    run("import sys, fgrad; assert not {'numpy', 'typing', 'fgrad.core'} & sys.modules.keys()")


def test_what_is_not_there_is_an_attribute_error_and_loads_nothing():
    run("import sys, fgrad; assert not hasattr(fgrad, 'newral') and 'numpy' not in sys.modules")


@pytest.mark.parametrize("part", PARTS)
def test_arrays_have_their_operators_whichever_part_is_imported(part):
    run(f"import sys, fgrad.{part}\n"
        "assert 'fgrad.core' not in sys.modules or 'fgrad.numpy.methods' in sys.modules")


def test_a_first_gradient_loads_neither_the_compiler_nor_operations_it_does_not_use():
    run("""if True:
        import sys, fgrad, fgrad.numpy as fnp
        fgrad.grad(lambda x: fnp.sum(fnp.tanh(x @ x)))(fnp.ones((2, 2)))
        late = {"ops.linalg", "ops.window", "numpy.fft", "numpy.sets", "control", "random",
                "jitted", "compile", "passes", "backends", "ir_text", "placing", "callbacks"}
        assert not {f"fgrad.{name}" for name in late} & sys.modules.keys()
        assert not {"dataclasses", "numpy.fft", "numpy.random"} & sys.modules.keys()""")


def test_a_function_of_nn_loads_no_layers():
    run("import sys; from fgrad import nn; nn.softmax\n"
        "assert not {'fgrad.nn.layers', 'fgrad.random', 'dataclasses'} & sys.modules.keys()")


def test_operations_that_are_not_loaded_are_found_by_name():
    run("""if True:
        import pickle, sys, fgrad.numpy
        from fgrad.core import PRIMITIVES
        from fgrad.ir_text import parse
        assert "fgrad.ops.linalg" not in sys.modules
        assert PRIMITIVES["cholesky"].name == "cholesky" and "while" in PRIMITIVES
        assert len(str(parse("f(x: f32[2]) -> f32[2]\\n  a: f32[2] = lgamma x\\n  return a"))) > 40
        assert pickle.loads(pickle.dumps(PRIMITIVES["lgamma"])) is PRIMITIVES["lgamma"]
        try:
            PRIMITIVES["newral"]
        except KeyError:
            sys.exit(0)
        sys.exit(1)""")


def test_first_uses_in_many_threads_at_once_do_not_meet_half_loaded_modules():
    run("""if True:
        import sys, threading, fgrad
        import fgrad.numpy as fnp
        sys.setswitchinterval(1e-5)
        x = fnp.ones((3, 3))
        uses = [lambda: fgrad.grad(lambda x: (x * x).sum())(x), lambda: fnp.linalg.norm(x),
                lambda: fgrad.jit(lambda x: x + 1)(x), lambda: fgrad.nn.softmax(x),
                lambda: fgrad.random.key(0), lambda: fgrad.show(lambda x: x, x),
                lambda: fnp.nanmean(x), lambda: fgrad.lax.scan(lambda c, a: (c, a), 0.0, x)]
        together, finished = threading.Barrier(len(uses)), []

        def run(use):
            together.wait()
            use()
            finished.append(use)
        threads = [threading.Thread(target=run, args=(use,)) for use in uses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(finished) == len(uses)""")


def test_functions_that_are_loaded_later_can_be_pickled():
    fnp = importlib.import_module("fgrad.numpy")
    for function in (fnp.nanmean, fnp.sum, fnp.linalg.norm):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("name", ["lax", "tree", "viz"])
def test_dir_and_star_give_what_is_for_users(name):
    module = importlib.import_module(f"fgrad.{name}")
    assert set(dir(module)) == set(module.__all__)
    internal = {"as_value", "annotations", "axes_of", "lifted", "wide", "COLOURS", "np"}
    assert internal.isdisjoint(dir(module))


def test_what_lax_loads_later_is_listed():
    lax = importlib.import_module("fgrad.lax")
    words = " ".join(lax.NAMES.values()).split()
    assert {word.partition("=")[0] for word in words} <= set(lax.__all__)


@pytest.mark.parametrize("name", PUBLIC.split())
def test_dir_lists_what_is_public_and_nothing_else(name):
    """What a user sees behind the dot: nothing that the module itself imports from within."""
    module = importlib.import_module(name)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, each) and each[0] != "_" for each in module.__all__)
    assert {"ArgumentError", "bound", "ops", "math", "typed"} & {*module.__all__} <= (
        {"ArgumentError"} if name == "fgrad" else set())
