"""Loops that write their rows one row late: which ones, and with the values of those in time."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, passes
from fgrad.backends.base import find
from fgrad.backends.llvm import emit, host, late_rows, module
from fgrad.backends.llvm.host import HOST

LANES = HOST.vector_bytes // 4
LENGTHS = [4096, 4099, 5003, 4096 + 3 * LANES, 7937]


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """Arrays of 4 KB are large; what else is known of the machine stays."""
    module.host_target()
    monkeypatch.setattr(host, "last_cache", lambda: 4096)


def by_sum(x):
    return x / (1 + fnp.sum(x * x, axis=1, keepdims=True))


def standardised(x):
    return (x - fnp.mean(x, axis=1, keepdims=True)) / fnp.std(x, axis=1, keepdims=True)


def two_results(x):
    return x - fnp.max(x, axis=1, keepdims=True), x * fnp.sum(x, axis=1, keepdims=True)


def with_places(x):
    rows, columns = (fnp.arange(n, dtype=x.dtype) for n in x.shape)
    return by_sum(x) + rows[:, None] * columns


def with_column_sums(x):
    y = by_sum(x)
    return y, fnp.sum(y, axis=0)


def above_mean(x):
    return x > fnp.mean(x, axis=1, keepdims=True)


def of_power(x):
    return fgrad.grad(lambda x: fnp.sum(nn.softmax(x) ** 2))(x)


ROWS = [nn.softmax, nn.log_softmax, by_sum, standardised, two_results, with_places, above_mean,
        of_power]


def draw(rows, columns, dtype="float32"):
    x = np.random.default_rng(columns).standard_normal((rows, columns))
    return (x * 4).astype(dtype)


def counted(monkeypatch):
    """A list that grows by one for each loop whose rows are late."""
    found, original = [], emit.late_rows

    def counting(*arguments):
        late = original(*arguments)
        if late is not None:
            found.append(late)
        return late
    monkeypatch.setattr(emit, "late_rows", counting)
    return found


def results(function, x):
    """What a function gives, compiled anew."""
    executable = find("cpu").compile(planned(function, x), "cpu")
    return [np.asarray(y) for y in executable([fnp.array(x)])]


def planned(function, x):
    ir = fgrad.make_ir(function)(fgrad.ArrayType(x.dtype.name, x.shape))
    return passes.plan(ir, module.host_target())


def in_time(monkeypatch, function, x):
    """The same where no row is late."""
    with monkeypatch.context() as patch:
        patch.setattr(emit, "late_rows", lambda *arguments: None)
        return results(function, x)


@pytest.mark.parametrize("function", [*ROWS, with_column_sums], ids=lambda f: f.__name__)
@pytest.mark.parametrize("columns", LENGTHS)
def test_the_values_are_those_of_rows_in_time(monkeypatch, function, columns):
    """Bit by bit: the same formulas, and sums in the same order."""
    for rows in (1, 2, 7):
        x = draw(rows, columns)
        for late, timely in zip(results(function, x), in_time(monkeypatch, function, x)):
            np.testing.assert_array_equal(late, timely)


@pytest.mark.parametrize("function", ROWS, ids=lambda f: f.__name__)
def test_long_rows_of_large_results_are_late(monkeypatch, function):
    monkeypatch.setattr(late_rows, "LEAST", 1 << 10)
    found = counted(monkeypatch)
    results(function, draw(5, 4096))
    assert len(found) == 1


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int8", "bool"])
def test_rows_of_any_dtype(monkeypatch, dtype):
    """Short elements begin at places of a line where longer ones do not."""
    monkeypatch.setattr(late_rows, "LEAST", 1 << 10)
    found = counted(monkeypatch)

    def function(x):
        y = x * 100 / fnp.max(abs(x), axis=1, keepdims=True)
        return (y > 0.5) if dtype == "bool" else y.astype(dtype)
    for columns in (4096, 4096 + LANES, 4098 + LANES, 5003):
        x = draw(5, columns)
        (late,), (timely,) = results(function, x), in_time(monkeypatch, function, x)
        np.testing.assert_array_equal(late, timely)
    assert len(found) == 4


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_each_part_ends_with_its_last_row(monkeypatch, parts):
    """However few the rows of a part are."""
    monkeypatch.setattr(module, "parts_of", lambda *arguments: parts)
    for rows in (3, 4, 8):
        x = draw(rows, 5003)
        for late, timely in zip(results(nn.softmax, x), in_time(monkeypatch, nn.softmax, x)):
            np.testing.assert_array_equal(late, timely)


def test_rows_are_in_time_where_it_gains_nothing(monkeypatch):
    found = counted(monkeypatch)
    results(nn.softmax, draw(40, 1024))                  # short rows
    results(nn.softmax, draw(2, 1 << 17))                # rows that the second cache does not hold
    results(lambda x: x * 2, draw(9, 4096))              # nothing else to do
    results(lambda x: fnp.exp(-fnp.sum(x, axis=1, keepdims=True) - x), draw(9, 4096))  # much to do
    monkeypatch.setattr(host, "last_cache", lambda: 1 << 30)
    results(nn.softmax, draw(9, 4096))                   # a cache holds the result
    assert not found


def test_memory_of_scratch_rows_is_bounded():
    """Threads of some systems have stacks of 512 KB."""
    x = draw(3, 1 << 16)
    with pytest.MonkeyPatch.context() as patch:
        found = counted(patch)
        results(nn.softmax, x)
        assert not found
        results(nn.softmax, x[:, :50257])
        assert len(found) == 1
