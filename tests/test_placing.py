"""Where functions run: jit(device=), arguments on a device, the block around, the environment."""

import threading

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ArgumentError, DeviceError
from tests.messages import message


@pytest.fixture(scope="module", autouse=True)
def opencl():
    try:
        fgrad.jit(lambda: fnp.zeros(1), device="opencl")()
    except DeviceError as error:
        pytest.skip(str(error))


X = fnp.array([1.0, 2.0, 3.0])


def test_a_block_chooses_where_jitted_functions_run():
    f = fgrad.jit(lambda x: x * 2)
    for _ in range(3):                           # from the second call on, natively
        assert f(X).device == "cpu"
    with fgrad.device("opencl"):
        assert f(X).device == "opencl:0" and f(X).tolist() == [2.0, 4.0, 6.0]
        with fgrad.device("cpu"):
            assert f(X).device == "cpu"
        assert fgrad.jit(fgrad.grad(lambda x: fnp.sum(x ** 3)))(X).device == "opencl:0"
        assert fgrad.jit(lambda x: x, device="cpu")(X).device == "cpu"
        assert fgrad.grad(lambda x: fnp.sum(f(x)))(X).tolist() == [2.0, 2.0, 2.0]
        assert (X + 1).device == "cpu"           # without jit it is NumPy that computes
        assert "__kernel" in fgrad.show(f, X, stage="opencl")
    assert f(X).device == "cpu"


def test_the_block_of_a_thread_is_its_own_and_ends_with_an_exception():
    f, found = fgrad.jit(lambda x: x + 1), []
    with pytest.raises(ZeroDivisionError), fgrad.device("opencl"):
        thread = threading.Thread(target=lambda: found.append(f(X).device))
        thread.start()
        thread.join()
        raise ZeroDivisionError
    assert found == ["cpu"] == [f(X).device]


def test_a_device_is_named_or_taken_from_the_list():
    record = next(d for d in fgrad.devices() if d.name.startswith("opencl"))
    with fgrad.device(record):
        assert fgrad.jit(fnp.sin)(X).device == "opencl:0"
    assert fgrad.jit(fnp.sin, device=record)(X).device == "opencl:0"
    assert fgrad.device_put(X, record).device == "opencl:0"


@pytest.mark.parametrize("name", ["opencl:99", "tpu"])
def test_a_device_that_is_not_there_is_refused_before_anything_runs(name):
    with pytest.raises(DeviceError), fgrad.device(name):
        raise AssertionError("the block was entered")
    with pytest.raises(DeviceError):
        fgrad.device_put(X, name)


def test_the_message_for_what_names_no_device():
    assert message(ArgumentError, lambda: fgrad.device_put(X, 0)) == """\
a device is named by a string, not by an int.

    test_placing.py:N    assert message(ArgumentError, lambda: fgrad.device_put(X, 0)) == \"\"\"\\

  given      0
  expected   "cpu", "opencl", "opencl:0", …
  fix        fgrad.devices() lists the devices of this machine"""


def test_arrays_that_were_put_on_a_device_are_computed_with_there():
    params = {"w": X, "n": np.arange(2, dtype="i4"), "b": fnp.ones(2, "bfloat16"), "s": 2.0}
    there = fgrad.device_put(params, "opencl")
    assert {x.device for x in fgrad.tree.leaves(there)} == {"opencl:0"}
    dtypes = [x.dtype for x in fgrad.tree.leaves(there)]
    assert dtypes == ["bfloat16", "int32", "float32", "float32"]
    f = fgrad.jit(lambda p: p["w"] * p["s"])
    with fgrad.device("cpu"):
        assert f(there).device == "opencl:0" and f(there).tolist() == [2.0, 4.0, 6.0]
    back = fgrad.device_put(there, "cpu")
    assert {x.device for x in fgrad.tree.leaves(back)} == {"cpu"}
    assert back["w"].tolist() == X.tolist() and back["b"].tolist() == [1.0, 1.0]
    assert there["w"].to_device("cpu").device == "cpu"
    assert fgrad.device_put([], "cpu") == [] and fgrad.device_put(None) is None


def test_without_a_name_it_is_the_device_of_the_block():
    assert fgrad.device_put(X).device == "cpu"
    with fgrad.device("opencl"):
        assert fgrad.device_put(X).device == "opencl:0"


def test_arrays_of_many_shapes_are_moved_without_a_notice_of_retracing(recwarn):
    for n in range(9):
        moved = fgrad.device_put([np.ones(n, "f4"), n], "cpu")
        assert moved[0].shape == (n,) and moved[1].item() == n
    assert not recwarn.list


def test_moving_is_linear():
    f = lambda x: fnp.sum(fgrad.device_put(x, "opencl") ** 2)
    assert fgrad.grad(f)(X).tolist() == fgrad.jit(fgrad.grad(f))(X).tolist() == [2.0, 4.0, 6.0]
    assert fgrad.vmap(f)(fnp.stack([X, X])).tolist() == [14.0, 14.0]


def test_the_message_for_a_leaf_that_is_no_array():
    put = lambda: fgrad.device_put({"name": "a"}, "cpu")
    assert message(ArgumentError, put) == """\
x['name'] is a str, and only arrays are moved.

    test_placing.py:N    put = lambda: fgrad.device_put({"name": "a"}, "cpu")

  given      'a'"""


def test_results_are_waited_for_and_fetched():
    found = fgrad.jit(lambda x: {"y": x * 2, "n": 3}, device="opencl")(X)
    assert fgrad.block_until_ready(found) is found
    got = fgrad.device_get(found)
    assert type(got["y"]) is np.ndarray and got["y"].tolist() == [2.0, 4.0, 6.0]
    assert not got["y"].flags.writeable


def test_a_device_that_the_environment_names_and_nobody_has_is_said_to_be_named_there(monkeypatch):
    monkeypatch.setenv("FGRAD_DEVICE", "foo")
    with pytest.raises(fgrad.DeviceError, match="there is no device 'foo'") as error:
        fgrad.jit(lambda x: x + 1)(fnp.ones(2))
    assert "FGRAD_DEVICE=foo" in str(error.value)
    with pytest.raises(fgrad.DeviceError) as error:
        fgrad.jit(lambda x: x + 1, device="bar")(fnp.ones(2))
    assert "FGRAD_DEVICE" not in str(error.value)
