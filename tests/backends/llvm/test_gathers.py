"""Vectors of what lies at places known at run time: by one instruction, and lane by lane."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax, passes, show
from fgrad.backends import base
from fgrad.backends.llvm import host, module
from fgrad.types import ArrayType

FUNCTIONS = {
    "one place": lambda x, y, i, j: y[0][i] + 1,
    "two places": lambda x, y, i, j: x[i % 20, j % 30] * 2,
    "a place and a step": lambda x, y, i, j: x[(i % 20)[:, None], fnp.arange(30)[::-1] // 2].sum(1),
    "places of a place": lambda x, y, i, j: y[0][i[j]],
    "a row's places": lambda x, y, i, j: fnp.take_along_axis(y, (i + j)[None] % y.shape[1], 1),
    "repeated": lambda x, y, i, j: fnp.repeat(y[0], 3) + fnp.tile(y[1], 3),
    "turned": lambda x, y, i, j: x.T + x.T[::-1],
    "guarded": lambda x, y, i, j: fnp.pad(y[0], (3, 5))[i] + 1,
    "filled": lambda x, y, i, j: fnp.take(y[0], i * 2, mode="fill", fill_value=7),
    "of a slice": lambda x, y, i, j: lax.dynamic_slice(x, (i[0], j[0]), (7, 9))[:, ::-2].T,
    "chosen": lambda x, y, i, j: fnp.where(i > 5, y[0][(i - 5) % y.shape[1]], y[1][j]),
}


def arguments(n, dtype):
    rng = np.random.default_rng(n)
    x, y = (rng.integers(0, 100, s).astype(dtype) for s in ((20, 30), (2, n)))
    return x, y, *(rng.integers(0, n, n).astype("i4") for _ in range(2))


def ran(function, *args):
    """What the function gives, compiled anew."""
    types = [ArrayType(x.dtype.name, x.shape) for x in args]
    plan = passes.plan(fgrad.make_ir(function)(*types), module.host_target(), ())
    return np.asarray(base.find("cpu").compile(plan, "cpu")([fnp.array(x) for x in args])[0])


@pytest.mark.parametrize("gathers", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "f2", "i1", "?"])
@pytest.mark.parametrize("n", [1, 5, 16, 53, 200])
def test_what_is_looked_up(monkeypatch, gathers, dtype, n):
    monkeypatch.setattr(host.Host, "gathers", gathers)
    args = arguments(n, dtype)
    for name, function in FUNCTIONS.items():
        want = np.asarray(function(*map(fnp.array, args)))
        np.testing.assert_array_equal(ran(function, *args), want, err_msg=name)


@pytest.mark.parametrize("gathers", [False, True])
@pytest.mark.parametrize("name", ["one place", "two places", "turned"])
def test_where_an_instruction_does_it(monkeypatch, name, gathers):
    """Elements of one or two bytes, and those of one line, are read one by one."""
    monkeypatch.setattr(host.Host, "gathers", gathers)
    for dtype in ("f4", "f2"):
        x, y, i, j = arguments(64, dtype)
        text = str(show(FUNCTIONS[name], x, y, i, j, stage="llvm"))
        assert ("masked.gather" in text) == (gathers and dtype == "f4")
    few = str(show(lambda x: x.T + 1, np.ones((50, 5), "f4"), stage="llvm"))
    assert "masked.gather" not in few


@pytest.mark.parametrize("function, few, many", [
    (lambda x, i: x[i, i] + 1, (2**16 - 1, 2**15), (2**16, 2**15)),
    (lambda x, i: fnp.repeat(x[0], 7)[:-5] * 2.5, (1, 2**28), (1, 2**30))],
    ids=["places", "repeated"])
def test_numbers_beyond_31_bits_are_looked_up_one_by_one(monkeypatch, function, few, many):
    """Of an array, or of the places for each of its elements, which are divided."""
    monkeypatch.setattr(host.Host, "gathers", True)
    program = fgrad.make_ir(function)
    for shape, by_instruction in ((few, True), (many, False)):
        types = ArrayType("f4", shape), ArrayType("i4", (64,))
        plan = passes.plan(program(*types), module.host_target(), ())
        text = "\n".join(text for _, text in module.Module(plan).texts)
        assert ("masked.gather" in text) == by_instruction
