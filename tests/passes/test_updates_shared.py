"""Many updates of a small result: each thread makes its part of them in a copy of its own."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import passes
from fgrad.backends import base
from fgrad.backends.llvm import module, threads
from fgrad.passes import lower

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few updates are many."""
    for name in ("EACH", "UPDATES", "REGIONS"):
        monkeypatch.setattr(lower, name, 0)


def planned(function, *args):
    types = [fgrad.ArrayType(x.dtype.name, x.shape) for x in args]
    return passes.plan(fgrad.make_ir(function)(*types), module.host_target(), ())


def check(function, *args, shared=True):
    """The values of one operation after the other, by kernels with copies or without."""
    plan = planned(function, *args)
    names = [step.name for step in plan.steps]
    assert any(name.endswith("_sum") for name in names) == (shared and threads.pool().size > 1)
    (found,) = base.find("cpu").compile(plan, "cpu")([fnp.array(x) for x in args])
    want = np.asarray(function(*map(fnp.array, args)))
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(np.signbit(np.asarray(found)), np.signbit(want))


@pytest.mark.parametrize("how", ["add", "multiply", "max", "min"])
@pytest.mark.parametrize("n", [2, 3, 64, 1001])
@pytest.mark.parametrize("shape", [(1,), (5,), (7, 3), (2, 33, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_updates_of_all_kinds(how, n, shape, dtype):
    """Zeros that nothing is added to keep their signs; indices may be out of range, or negative."""
    x = (RNG.integers(-3, 4, shape) * np.float64(-1)).astype(dtype)
    at = RNG.integers(-shape[0] - 2, shape[0] + 2, n).astype("int32")
    value = RNG.choice([-1, 1] if how == "multiply" else [1, 2], (n, *shape[1:])).astype(dtype)
    check(lambda x, at, value: getattr(x.at[at], how)(value, mode="drop"), x, at, value)


@pytest.mark.parametrize("n", [1, 2, 65])
def test_rows_of_computed_values(n):
    x, at = RNG.standard_normal((n, 4)).astype("float32"), RNG.integers(0, 6, n).astype("int32")
    check(lambda x, at: fnp.zeros((6, 4)).at[at].add(fnp.tanh(x) * x), x, at, shared=n > 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool"])
def test_narrow_results_are_one_threads(dtype):
    """A copy would round what is added so far once more."""
    at = RNG.integers(0, 6, 100).astype("int32")
    function = lambda at: fnp.zeros(6, dtype).at[at].max(fnp.ones(100, dtype))
    names = [step.name for step in planned(function, at).steps]
    assert not any(name.endswith("_sum") for name in names)


def test_few_updates_large_results_and_little_work_are_one_threads(monkeypatch):
    def is_shared(n, size):
        at = np.zeros(n, "int32")
        plan = planned(lambda at: fnp.zeros(size).at[at].add(1.0), at)
        return any(step.name.endswith("_sum") for step in plan.steps)
    monkeypatch.undo()
    many = threads.pool().size > 1
    assert is_shared(500_000, 100) == many
    assert not is_shared(5_000, 100)                       # work of less than some regions
    assert not is_shared(500_000, 100_000)                 # as many elements as updates
    assert not is_shared(5_000_000, 200_000)               # a copy is too large
