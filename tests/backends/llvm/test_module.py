"""The text of a Plan: each distinct kernel is written once."""

import re
import threading

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import config, passes
from fgrad.backends.llvm import codegen, emit, executable, module, product, target, vmath


@pytest.fixture
def written(monkeypatch):
    """The names of the kernels whose text is written from now on."""
    names = []
    for where, name in ((emit, "function"), (product, "emitted")):
        def noted(prefix, kernel, *rest, real=getattr(where, name), **options):
            names.append(kernel.name)
            return real(prefix, kernel, *rest, **options)
        monkeypatch.setattr(where, name, noted)
    return names


def plan_of(function, *args):
    return passes.plan(fgrad.make_ir(function)(*args), module.host_target())


def layers(count, scales):
    """So many layers of one product and a row's norm; `scales` go round."""
    weights = [fnp.full((8, 8), 0.1 + 0.01 * k) for k in range(count)]

    def run(x):
        for k, w in enumerate(weights):
            x = fnp.tanh(x @ w)
            x = x * scales[k % len(scales)] / fnp.sum(x * x, axis=-1, keepdims=True)
        return x
    return run


def test_equal_kernels_are_written_once(written):
    x = fnp.ones((4, 8))
    few = len(module.Module(plan_of(layers(2, [3.0]), x)).functions)
    del written[:]
    plan = plan_of(layers(40, [3.0]), x)
    found = module.Module(plan)
    assert len(plan.steps) >= 40 and len(found.steps) >= 40
    assert len(written) <= 4 and len(found.functions) == few


def test_kernels_of_equal_types_that_compute_something_else_are_kept_apart(written):
    x = fnp.asarray(np.linspace(-1, 1, 32).reshape(4, 8), "float32")
    run = layers(6, [3.0, 5.0, 7.0])
    found = module.Module(plan_of(run, x))
    assert 3 <= len(written) < len(found.steps)
    np.testing.assert_allclose(fgrad.jit(run)(x), run(x), rtol=2e-6)


def many(x, weights):
    """A program of some hundred thousand characters: products of many sizes."""
    return [fnp.sum(fnp.tanh(x @ w) * k) for k, w in enumerate(weights)]


@pytest.mark.parametrize("processors", [1, 2, 8])
def test_each_kernel_is_in_one_of_the_modules_that_are_compiled_at_once(monkeypatch, processors):
    monkeypatch.setattr(config, "processors", lambda: processors)
    args, begun = (fnp.ones((30, 64)), [fnp.ones((64, 10 * k + 3)) for k in range(1, 13)]), []
    found = module.Module(plan_of(many, *args), begun.extend)
    own = sorted(name for name in found.functions if name.startswith("k."))
    defined = [name for names, _ in found.texts for name in names]
    assert sorted(name for name in defined if name.startswith("k.")) == own
    assert (processors == 1) == (len(found.texts) == 1)
    assert all(len(text) > module.BATCH for _, text in found.texts[:-1])
    assert begun == [text for _, text in found.texts]
    for names, text in found.texts:
        assert all(re.search(rf"^define (?!internal).*@{re.escape(name)}\(", text, re.MULTILINE)
                   for name in names)


def test_what_several_modules_call_is_defined_in_the_first_of_them(monkeypatch):
    monkeypatch.setattr(config, "processors", lambda: 2)
    args = fnp.ones((30, 64)), [fnp.ones((64, 10 * k + 3)) for k in range(1, 13)]
    known, called = set(), set()
    for names, text in module.Module(plan_of(many, *args)).texts:
        declared = set(re.findall(r"^declare .*@(fg\.[-\w.]+)\(", text, re.MULTILINE))
        assert declared <= known and not known & {*names}
        known, called = known | {*names}, called | declared
    assert any(name.startswith("fg.tile") for name in called)


@pytest.mark.parametrize("name", [*vmath.NAMES, "quadrant"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_vector_math_that_several_modules_call_is_defined_in_the_first_of_them(name, dtype):
    """What `sin` calls came with a table before its definition, and was lost."""
    shared, objects = {}, []
    symbol = vmath.symbol(name, dtype, 4)
    definition = vmath.definition(name, dtype, 4)
    head = next(line for line in definition.splitlines() if f"{symbol}(" in line)
    result = head.removeprefix("define internal ").partition(f" {symbol}")[0]
    parameters = head.partition("(")[2].partition(") ")[0]
    for k in range(2):
        calls = "".join(f"  %y{n} = call {result} {symbol}({parameters})\n"
                        for n in range(module.FEW + 1))      # too many to be in place
        body = f"define void @k.{k}({parameters}) {{\n{calls}  ret void\n}}"
        text = module.module_text({f"k.{k}": body}, {(name, dtype, 4)}, shared)
        assert (f"{symbol}(" in "".join(line for line in text.splitlines()
                                        if line.startswith("declare"))) == (k == 1)
        objects.append(target.compile_text(text))
    assert symbol[1:] in shared and len(objects[1]) < len(objects[0])


@pytest.mark.parametrize("processors", [1, 3, 8])
def test_modules_are_compiled_at_once_on_all_processors(monkeypatch, processors):
    """As many threads as there are processors, at the most, and the one that asked is of them."""
    executable.native_runner()                   # what is compiled beside the first program is not
    args = fnp.ones((30, 64)), [fnp.full((64, 10 * k + 3), 0.1) for k in range(1, 41)]
    compiled, at_once, compile_text = [], [0], codegen.compile_text

    def noted(text):
        at_once.append(at_once[-1] + 1)
        compiled.append(threading.get_ident())
        made = compile_text(text)
        at_once.append(at_once[-1] - 1)
        return made
    monkeypatch.setattr(codegen, "compile_text", noted)
    monkeypatch.setattr(config, "processors", lambda: processors)
    got = fgrad.jit(lambda *a: [x * processors for x in many(*a)])(*args)
    assert (processors == 1) == (len(compiled) == 1) and max(at_once) <= processors
    assert (processors == 1) == (set(compiled) == {threading.get_ident()})
    want = [x * processors for x in many(*args)]
    np.testing.assert_allclose(np.array(got), np.array(want), rtol=1e-5)


@pytest.mark.parametrize("cut", [
    lambda x: x[::-1, 26:30:2], lambda x: x[::-1, 1:],
    lambda x: x[::-2, ::-1], lambda x: x[:, ::-3]])
def test_products_of_what_is_read_backwards_are_complete(cut):
    """A shared kernel whose name has a minus was left out of its module."""
    def square(x):
        return cut(x) @ cut(x).T
    x = fnp.asarray(np.random.default_rng(0).standard_normal((100, 31)), "float32")
    np.testing.assert_allclose(fgrad.jit(square)(x), square(x), rtol=1e-4, atol=1e-4)


def test_vector_math_is_written_where_a_kernel_calls_it_but_not_everywhere():
    """Each kernel for itself: one that calls often does not take it from those that call seldom."""
    def rows(x):
        return fnp.sum(fnp.exp(x), axis=1)

    def often(x):
        for k in range(12):
            x = fnp.exp(x) * (0.1 * k)
        return x
    x = fnp.ones((50, 100))
    text = fgrad.show(lambda x, y: (rows(x), often(y)), x, fnp.ones(5000), stage="llvm")
    one, other = sorted(text.split("define void @k.")[1:], key=lambda part: part.count("@fg.exp."))
    assert one.count("@fg.exp.") == one.count(") alwaysinline") > 0
    assert other.count("@fg.exp.") >= 12 and "alwaysinline" not in other
    assert "fg.exp" not in fgrad.show(rows, x, stage="asm")
    assert "fg.exp" in fgrad.show(often, x, stage="asm")


def test_loops_over_what_no_array_holds_are_work_that_releases_the_interpreters_lock():
    def total(n):
        return lambda x: fnp.sum(fnp.sin(fnp.arange(n) * x))
    x = np.float32(1)
    assert module.work(plan_of(total(300), x)) < module.LONG
    assert module.work(plan_of(total(30_000_000), x)) > module.LONG
    w = np.ones((16, 16), "f4")
    assert module.work(plan_of(fnp.matmul, w, w)) < module.LONG
