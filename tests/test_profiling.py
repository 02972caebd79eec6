"""Profiles: marks change no value, every step is measured once a run, and what is counted is so."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import compile as driver
from fgrad import lax, profiling, tree
from fgrad.backends import base
from fgrad.backends.llvm import limits
from fgrad.backends.llvm.limits import Known
from fgrad.errors import ArgumentError, ConcretizationError
from tests.messages import COLUMNS

DEVICES = ["cpu", "opencl", "reference"]
RNG = np.random.default_rng(0)


def array(*shape):
    return fnp.asarray(RNG.standard_normal(shape).astype(np.float32))


CLOSED_OVER = array(3)


def net(w, x):
    return fnp.sum(fnp.tanh(x @ w), axis=0)


def scanned(w, x):
    """Too much work in a step for one function."""
    return lax.scan(lambda h, row: (fnp.tanh(h @ w + row), fnp.sum(h)), x[0] * 0, x)


def counted_down(x):
    return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] * 1.5), (5, x))[1]


def chosen(x):
    def one(x):
        return fnp.sort(x) * 2

    def other(x):
        return fnp.exp(x)
    return lax.cond(fnp.sum(x) > 0, one, other, x)


def attention(q, k, v):
    return fgrad.nn.softmax(q @ fnp.swapaxes(k, 1, 2)) @ v


PROGRAMS = {
    "net": (net, lambda: (array(5, 7), array(4, 5))),
    "gradient": (fgrad.grad(lambda w, x: fnp.sum(net(w, x))), lambda: (array(5, 7), array(4, 5))),
    "scan": (scanned, lambda: (array(64, 64), array(6, 64))),
    "while": (counted_down, lambda: (array(3),)),
    "cond": (chosen, lambda: (array(9),)),
    "sort": (lambda x: fnp.sort(x) + fnp.argsort(x), lambda: (array(17),)),
    "turns": (attention, lambda: [array(16, 64, 32) for _ in range(3)]),
    "closed over": (lambda x: x * CLOSED_OVER, lambda: (array(3),)),
    "nothing to do": (lambda x: x, lambda: (array(3),)),
    "no elements": (lambda x: x + 1, lambda: (array(0, 3),)),
}


LARGE = {"scan", "turns"}         # for the reference, which takes its time
EVERYWHERE = [(name, device) for name in PROGRAMS for device in DEVICES
              if name not in LARGE or device != "reference"]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(profiling, "SECONDS", 0.0)


@pytest.mark.parametrize("name, device", EVERYWHERE)
def test_a_program_with_marks_has_the_same_values(name, device):
    function, make = PROGRAMS[name]
    args = make()
    jitted = fgrad.jit(function, device=device)
    apart, trace = jitted.found(args, {})
    program, backend = driver.inlined(trace.program), base.find(device)
    clock = profiling.Clock(lambda: backend.wait(device), backend.is_whole)
    made = driver.built(program, device, (), clock.marked)
    run = profiling.function_of(driver.of_values(made, program), program, name, device)
    noted = []
    for _ in range(2):
        with clock:
            found = trace.results(list(run(*apart.values)))
        noted.append([k for k, _ in clock.noted])
        for x, y in zip(tree.leaves(found), tree.leaves(jitted(*args)), strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    assert noted[0] == noted[1] and noted[0][:2] == [None, None]


@pytest.mark.parametrize("name, device", EVERYWHERE)
def test_every_step_is_measured(name, device):
    function, make = PROGRAMS[name]
    found = fgrad.jit(function, device=device).profile(*make())
    assert found.calls == profiling.FEWEST and found.seconds > 0
    assert all(step.seconds >= 0 and step.runs >= 1 for step in found.steps)
    assert bool(found.steps) == (name not in ("nothing to do", "no elements"))


def test_complex_values():
    found = fgrad.profile(lambda x: x * (1 + 2j), array(3).astype("complex64"))
    assert len(found.steps) == 1


def test_operations_and_bytes_of_a_product():
    found = fgrad.profile(lambda x, y: x @ y + 1.0, array(30, 20), array(20, 10))
    (step,) = found.steps
    assert step.operations == 30 * 10 * (2 * 20 + 1) and step.runs == 1
    assert step.bytes == 4 * (30 * 20 + 20 * 10 + 30 * 10)


def test_operations_of_what_is_computed_of_a_factor_are_those_of_its_elements():
    (step,) = fgrad.profile(lambda x, y: (x + 1.0) @ y, array(30, 20), array(20, 10)).steps
    assert step.operations == 30 * 20 + 30 * 10 * 2 * 20


def test_operations_of_loops():
    (step,) = fgrad.profile(lambda x: fnp.sum(fnp.exp(x) * 2.0), array(1000)).steps
    assert step.operations == 3 * 1000 and step.bytes == 4 * 1001


def test_steps_within_a_scan_run_as_often_as_it_goes_round():
    found = fgrad.jit(scanned).profile(array(64, 64), array(6, 64))
    runs = {step.runs for step in found.steps}
    assert 6 in runs and all("/" in step.name for step in found.steps if step.runs == 6)
    product = max(found.steps, key=lambda step: step.operations)
    assert product.operations >= 6 * 2 * 64 * 64


def test_a_loop_that_is_one_function_is_one_step():
    def f(x):
        return lax.fori_loop(0, 100, lambda k, x: x * 0.5 + k, x)
    step = fgrad.profile(f, 1.0).steps[-1]
    assert "100 times" in step.name and step.operations >= 200 and step.runs == 1


def test_what_was_not_chosen_is_not_listed():
    x = fnp.ones(9)
    first, second = ({step.where for step in fgrad.profile(chosen, y).steps} for y in (x, -x))
    assert first - second and second - first


def test_what_numpy_runs_is_named():
    names = [step.name for step in fgrad.profile(fnp.linalg.eigvalsh, fnp.eye(3)).steps]
    assert any("not fused" in name for name in names)


@pytest.mark.parametrize("device", DEVICES)
def test_donated_arguments_stay_what_they_were(device):
    x = array(4096)
    before = np.array(x)
    f = fgrad.jit(lambda x, y: (x * 2, y), donate_argnums=0, device=device)
    f.profile(x, {"a": x})
    np.testing.assert_array_equal(x, before)


def test_steps_name_the_lines_they_compute():
    def f(x):
        y = fnp.tanh(x)
        return fnp.sum(y)
    line = f.__code__.co_firstlineno
    words = "   tanh" if COLUMNS else ""
    (step,) = fgrad.profile(f, array(8)).steps
    assert step.where == f"test_profiling.py:{line + 2}" + "   sum" * COLUMNS
    (step,) = fgrad.profile(fgrad.grad(f), array(8)).steps
    assert step.where == f"test_profiling.py:{line + 1}{words}, ∂ :{line + 1}"


def test_it_prints_the_slowest_first_and_names_the_unit():
    found = profiling.Profile("f", "cpu", 2e-3, 10, [
        profiling.Step("f0", 4e-4, 1, 4e5, 8e5, 3e-4, "a.py:1   tanh"),
        profiling.Step("f1", 1.5e-3, 1000, 0, 0, None, ""),
        profiling.Step("f2", 1e-7, 3, 10, 10, 1e-7, "")], [])
    assert str(found).splitlines() == [
        "f on cpu: 2 ms a call, median of 10 calls",
        "    us     %  GFLOP/s  GB/s  limit   runs  step",
        "1500.0  75.0                        1,000  f1",
        " 400.0  20.0      1.0   2.0    75%      1  f0   a.py:1   tanh",
        "   0.1   0.0                            3  1 short step",
        "  99.9   5.0                               outside of the steps"]


@pytest.mark.parametrize("device", DEVICES)
def test_of_kernels_on_the_processor_the_least_time_is_known(device):
    x = array(64, 64)
    found = fgrad.jit(scanned, device=device).profile(x, array(6, 64))
    kernels = [step for step in found.steps if step.operations and "times" not in step.name]
    assert kernels and all((step.least is not None) == (device == "cpu") for step in kernels)
    (called,) = [s for s in fgrad.profile(fnp.linalg.eigvalsh, fnp.eye(30)).steps
                 if "not fused" in s.name]
    assert called.least is None


class Machine(Known):
    """One that computes 1e9 numbers a second, reads 4e8 bytes, and copies 2e8 past the cache."""

    def __init__(self, threads):
        self.peak = 1e9

    def bytes_per_second(self, name, size):
        return {"read": 4e8, "copy_past": 2e8}.get(name, 1e8)


@pytest.mark.parametrize("dtype, words", [("float32", 1), ("float64", 2)])
def test_the_least_time_is_of_operations_or_of_bytes(monkeypatch, dtype, words):
    monkeypatch.setattr(profiling, "limits", lambda: SimpleNamespace(known=Machine))
    x = array(300, 300).astype(dtype)
    (step,) = fgrad.profile(lambda x: x @ x, x).steps
    assert step.least == step.operations * words / 1e9 > step.bytes / 1e8
    (step,) = fgrad.profile(lambda x: -x, x).steps
    assert step.least == 2 * x.nbytes / 2e8
    (step,) = fgrad.profile(lambda x: fnp.max(x, axis=1), x).steps
    written = 300 * 4 * words
    assert step.least == 2 * written / 2e8 + (x.nbytes - written) / 4e8


def test_a_machine_is_measured_once(monkeypatch):
    made = []
    monkeypatch.setattr(limits, "Known", lambda threads: made.append(threads) or object())
    limits.known.cache_clear()
    assert limits.known(1) is limits.known(1) and limits.known(2) and made == [1, 2]
    limits.known.cache_clear()


def test_a_size_is_measured_once(monkeypatch):
    asked = []
    monkeypatch.setattr(limits, "compiled", dict)
    monkeypatch.setattr(limits, "WARMING", 0)
    monkeypatch.setattr(limits.Machine, "flops_per_second", lambda self: asked.append(0) or 1e9)
    monkeypatch.setattr(limits.Machine, "bytes_per_second",
                        lambda self, name, size: asked.append((name, size)) or 1e8)
    machine = limits.Known(1)
    assert machine.seconds(1e9, 0, 0) == machine.seconds(1e9, 0, 0) == 1 and asked == [0]
    for size in (1_000_000, 900_000, 10**9, 10**10):
        assert machine.seconds(0, size, 0) == size / 1e8
    assert asked[1:] == [("read", 2**20), ("read", 2**limits.LARGEST)]


def test_a_saved_trace_has_an_event_for_every_run(tmp_path):
    found = fgrad.jit(scanned).profile(array(64, 64), array(6, 64))
    found.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == sum(step.runs for step in found.steps)
    starts = [e["ts"] for e in events]
    assert starts == sorted(starts) and all(e["ph"] == "X" and e["dur"] >= 0 for e in events)


def test_what_cannot_be_run_is_refused():
    f = fgrad.jit(lambda x: x * 2)
    with pytest.raises(ConcretizationError, match="there are no values"):
        f.profile(fgrad.ArrayType("float32", (3,)))
    with pytest.raises(ConcretizationError, match="there are no values"):
        fgrad.grad(lambda x: f.profile(x) and x)(1.0)
    with pytest.raises(ConcretizationError, match="there are no values"):
        fgrad.jit(lambda x: f.profile(x) and x)(1.0)
    with pytest.raises(ArgumentError):
        fgrad.profile(3)


def test_what_a_step_raises_is_raised():
    def refuse(x):
        raise ValueError("not today")
    f = fgrad.jit(lambda x: fgrad.pure_callback(refuse, fgrad.ArrayType("float32", (3,)), x) + 1)
    with pytest.raises(ValueError, match="not today"):
        f.profile(array(3))
