"""Calls of jitted functions on an OpenCL device that begin with little Python."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.backends.opencl import device as devices
from fgrad.backends.opencl.arrays import array_on_device
from fgrad.errors import DonationError
from fgrad.types import ArrayType
from tests.at_once import at_once
from tests.tolerance import assert_close


@pytest.fixture(autouse=True)
def on(device):
    """The device, in its own words."""
    return f"opencl:{device.record.index}"


def put(x, on="opencl"):
    return fgrad.device_put(x, on)


def practised(function, *args):
    """The function, jitted and called until it has an entry for these arguments."""
    f = fgrad.jit(function)
    f(*args), f(*args)
    assert has_entry(f)
    return f


def has_entry(f):
    return type(f).__call__ is not type(f).call


def ones(*shape):
    return np.ones(shape, np.float32)


def test_the_third_call_is_taken_apart_no_more(on, monkeypatch):
    f = practised(lambda x: x * 2 + 1, put(ones(3)))
    monkeypatch.setattr(f, "found", lambda *args: pytest.fail("taken apart"))
    y = f(put(ones(3)))
    assert y.device == on
    assert_close(f(y), 7 * ones(3))


def test_trees_go_in_and_out():
    def step(params, state, rate, name):
        new = {k: [a - rate * a for a in v] for k, v in params.items()}
        return new, (state[0] + 1, None), {"norm": fnp.sum(new["w"][0])}
    params = {"w": [put(2 * ones(2, 3)), put(ones(1))], "b": [put(ones(3))]}
    f = practised(step, params, (put(ones()), None), 0.5, "adam")
    for rate in (0.5, 0.25):
        new, (count, none), more = f(params, (put(ones()), None), rate, "adam")
        assert none is None and float(count) == 2 and float(more["norm"]) == 12 * (1 - rate)
        assert_close(new["b"][0], (1 - rate) * ones(3))
        params = {"w": new["w"], "b": params["b"]} if rate == 0.25 else params
    assert_close(f(params, (put(ones()), None), 0.5, "sgd")[0]["w"][1], 0.375 * ones(1))
    assert len(f(params | {"more": [put(ones(2))]}, (put(ones()), None), 0.5, "adam")[0]) == 3


def test_arrays_of_the_host_beside_those_of_the_device_are_copied():
    f = practised(lambda w, x: w @ x, put(2 * ones(2, 2)), ones(2, 2))
    x = ones(2, 2)
    y = f(put(ones(2, 2)), x)
    x[:] = 99
    assert_close(y, 2 * ones(2, 2))
    assert_close(f(put(ones(2, 2)), fnp.asarray(3 * ones(2, 2))), 6 * ones(2, 2))
    assert f(put(ones(2, 2)), np.ones((2, 2))).dtype == np.float64       # traced anew


def test_other_shapes_dtypes_and_devices_are_another_signature(on):
    f = practised(lambda x: x + 1, put(ones(3)))
    for x in (ones(4), np.arange(3, dtype=np.int32), ones()):
        y = f(put(x))
        assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, on)
        assert_close(y, x + 1)
    for _ in range(3):
        assert f(ones(3)).device == "cpu" and f(put(ones(3))).device == on
    assert f(x=put(ones(3))).device == on and f(1.5) == 2.5


def test_an_entry_is_there_within_a_block_of_the_device_and_keeps_to_its_arguments(on):
    f = fgrad.jit(lambda x: x + 1)
    for _ in range(2):
        with fgrad.device("opencl"):
            y = f(f(f(put(ones(3)))))
            assert y.device == on and has_entry(f) and f(ones(3)).device == on
    assert f(put(ones(3))).device == on and f(ones(3)).device == "cpu"
    with fgrad.default_dtype("float64"):
        for _ in range(3):
            assert f(put(np.arange(3))).dtype == np.int64 and f(put(ones(3))).device == on
    half = practised(lambda x: x / 2, put(np.arange(3)))
    for _ in range(3):
        with fgrad.default_dtype("float64"):
            assert half(put(np.arange(3))).dtype == np.float64
        assert half(put(np.arange(3))).dtype == np.float32


def test_transformations_see_the_function(on):
    f = practised(lambda x: fnp.sum(x * x), put(ones(3)))
    assert_close(fgrad.grad(f)(put(ones(3))), 2 * ones(3))
    assert_close(fgrad.vmap(f)(put(ones(4, 3))), 3 * ones(4))
    assert_close(fgrad.jit(lambda x: f(x) + f(x))(put(ones(3))), 6 * ones())


def test_what_was_given_away_is_refused():
    f = practised(lambda x: x + 1, put(ones(3)))
    x = put(ones(3))
    give = fgrad.jit(lambda x: x * 2, donate_argnums=0)
    give(x)
    with pytest.raises(DonationError, match="had been donated"):
        f(x)


def test_closed_over_arrays_of_host_and_device():
    here, there = fnp.asarray(2 * ones(3)), put(3 * ones(3))
    f = practised(lambda x: x * here + there, put(ones(3)))
    assert_close(f(put(2 * ones(3))), 7 * ones(3))
    fgrad.jit(lambda x: x * 100, donate_argnums=0)(there)
    with pytest.raises(DonationError):
        f(put(ones(3)))


def test_closed_over_arrays_and_arguments_of_another_device_are_copied(device):
    other = devices.Device(device.record)
    there = array_on_device(other.write(3 * ones(3)), ArrayType("float32", (3,)))
    f = practised(lambda x: x + there, put(ones(3)))
    assert_close(f(put(2 * ones(3))), 5 * ones(3))
    assert_close(f(there), 6 * ones(3))


def test_bf16_and_results_that_are_arguments():
    x = put(fnp.ones(3, "bfloat16"))
    f = practised(lambda x, y: (x * 2, y, y), x, put(ones(2)))
    doubled, one, other = f(x, put(ones(2)))
    assert doubled.dtype == fnp.bfloat16 and one is not other
    assert_close(np.asarray(doubled.astype("float32")), 2 * ones(3))
    assert_close(one, other)


def test_programs_without_arguments_or_with_complex_numbers_have_none():
    f = fgrad.jit(lambda: fnp.ones(2), device="opencl")
    f(), f()
    g = fgrad.jit(lambda x: x * 1j)
    x = put(ones(2))
    for _ in range(3):
        assert_close(g(g(x)), (-ones(2)).astype("complex64"))
    assert not has_entry(f)


def test_memory_that_is_out_is_an_error_with_the_users_line(device, monkeypatch):
    f = practised(lambda x: x + 1, put(ones(3)))

    def none_left(nbytes):
        raise device.out_of_memory(f"{nbytes} bytes")
    monkeypatch.setattr(device, "allocate", none_left)
    with pytest.raises(devices.DeviceError, match="out of memory"):
        f(put(ones(3)))


@pytest.mark.filterwarnings("ignore::fgrad.errors.FgradWarning")
def test_threads_that_read_at_once_leave_each_other_what_is_still_used():
    """They read numbers of memory that had been freed."""
    f, wrong = fgrad.jit(lambda x, s: {"a": x * s + 1, "x": x}), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(500):
            v, n = int(rng.integers(1, 50)), int(rng.integers(1, 4))
            x = np.full(n, v, np.float32)
            out = f(put(x) if rng.random() < 0.7 else x, v)
            if out["a"].tolist() != [v * v + 1] * n or out["x"].tolist() != [v] * n:
                wrong.append((out, v, n))
    at_once(work, *[(k,) for k in range(6)])
    assert wrong == []


def test_a_copy_stays_on_the_device_and_lasts_when_the_original_is_donated():
    double = fgrad.jit(lambda a: a + a, donate_argnums=0, device="opencl")
    for dtype in ("float32", "bfloat16"):
        x = put(fnp.ones(5, dtype=dtype))
        y = x.copy()
        assert y.device == x.device
        assert double(x).tolist() == [2] * 5 and y.tolist() == [1] * 5
