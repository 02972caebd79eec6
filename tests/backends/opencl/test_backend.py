"""OpenCL as a device of jit: arrays that stay there, donation, host calls, errors, programs."""

import copy
import pickle

import numpy as np
import pytest

import fgrad
from fgrad import ops
from fgrad import compile as driver
from fgrad.backends import base
from fgrad.backends.opencl import backend, device as devices
from fgrad.backends.opencl.arrays import DeviceArray
from fgrad.core import Array
from fgrad.errors import DeviceError, DonationError
from fgrad.records import replace
from tests.tolerance import assert_close


@pytest.fixture(scope="module")
def device():
    try:
        return devices.find("opencl")
    except DeviceError as error:
        pytest.skip(str(error))


def frozen(x):
    x.flags.writeable = False
    return Array(x)


def uniform(seed, *shape):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("f4")


def softmax(x):
    e = ops.exp(ops.sub(x, ops.broadcast(ops.reduce_max(x, axes=(1,)), shape=x.shape, axes=(1,))))
    return ops.div(e, ops.broadcast(ops.reduce_sum(e, axes=(1,)), shape=x.shape, axes=(1,)))


def normalised(x, scale):
    def mean(v):
        total = ops.reduce_sum(v, axes=(1,))
        return ops.broadcast(ops.div(total, v.shape[1]), shape=v.shape, axes=(1,))
    centred = ops.sub(x, mean(x))
    spread = ops.add(mean(ops.mul(centred, centred)), 1e-5)
    scaled = ops.broadcast(scale, shape=x.shape, axes=(0,))
    return ops.mul(ops.mul(centred, ops.rsqrt(spread)), scaled)


def loss(params, x, y):
    for k, (w, b) in enumerate(params):
        x = ops.dot_general(x, w, lhs="ij", rhs="jk", to="ik")
        x = ops.add(x, ops.broadcast(b, shape=x.shape, axes=(0,)))
        if k + 1 < len(params):
            x = ops.tanh(x)
    return ops.neg(ops.reduce_sum(ops.mul(y, ops.log(softmax(x))), axes=(0, 1)))


# ---------------------------------------------------------------------------- arrays

def test_results_stay_on_the_device_until_they_are_read(device, monkeypatch):
    f = fgrad.jit(lambda x: ops.add(ops.mul(x, x), 1.0), device="opencl")
    x = uniform(0, 5, 3)
    reads = []
    read = devices.Device.read
    monkeypatch.setattr(device, "read", lambda *a: reads.append(a) or read(device, *a))
    y = f(f(x))
    assert y.__class__ is DeviceArray and y.device == f"opencl:{device.record.index}" and not reads
    assert (y.shape, y.dtype) == ((5, 3), np.float32)
    assert_close(y.np, (x * x + 1) ** 2 + 1)
    assert y.np is y.np and len(reads) == 1 and not y.np.flags.writeable


def test_a_device_array_is_an_array_everywhere(device):
    x = uniform(1, 4)
    y = fgrad.jit(ops.exp, device="opencl")(x)
    want = np.exp(x)
    assert_close(np.asarray(y), want)
    assert repr(y).startswith("Array([") and repr(y).endswith("f32[4])")
    assert_close(ops.add(y, y).np, 2 * want)
    assert_close(pickle.loads(pickle.dumps(y)).np, want)
    assert_close(copy.deepcopy(y).np, want)
    assert len(y.tolist()) == 4
    assert y.block_until_ready() is y


def test_native_code_takes_device_arrays(device):
    x = uniform(2, 6)
    y = fgrad.jit(ops.exp, device="opencl")(x)
    g = fgrad.jit(ops.log, device="cpu")
    for argument in (Array(x + 2), y, y, Array(x + 2)):
        out = g(argument)
        assert out.__class__ is Array
        assert_close(out.np, np.log(argument.np), slack=2)


def test_the_device_of_an_argument_runs_the_function(device):
    y = fgrad.jit(ops.exp, device="opencl")(uniform(3, 6))
    assert fgrad.jit(ops.neg)(y).__class__ is DeviceArray


def test_a_device_of_several_names_is_compiled_for_once(device):
    f = fgrad.jit(lambda x: x + 1)
    with fgrad.device("opencl"):
        y = f(uniform(0, 3))                     # named by the block, then by where y is
    with fgrad.device(f"opencl:{device.record.index}"):
        assert f(uniform(1, 3)).device == f(y).device == y.device
    assert f.cache_info().misses == 1


def test_the_environment_chooses_the_default_device(device, monkeypatch):
    monkeypatch.setenv("FGRAD_DEVICE", "opencl")
    assert fgrad.jit(ops.neg)(uniform(4, 6)).__class__ is DeviceArray


def test_an_argument_that_the_caller_changes_later_was_copied(device):
    f = fgrad.jit(lambda x: ops.mul(x, 2.0), device="opencl")
    x = np.ones(1 << 16, "f4")
    y = f(x)
    x[:] = 7
    assert (y.np == 2).all()


def test_an_argument_may_be_a_result_and_results_may_be_one_value(device):
    def function(x, y):
        z = ops.add(x, y)
        return x, z, z, y
    x, y = frozen(uniform(5, 3)), fgrad.jit(ops.exp, device="opencl")(uniform(6, 3))
    a, b, c, d = fgrad.jit(function, device="opencl")(x, y)
    assert_close(a.np, x.np)
    assert_close(b.np, x.np + y.np)
    assert_close(c.np, b.np)
    assert_close(d.np, y.np)


def test_arrays_without_elements_are_made_without_a_launch(device):
    f = fgrad.jit(lambda x: (ops.exp(x), ops.reduce_sum(x, axes=(0,))), device="opencl")
    e, s = f(np.zeros((0, 3), "f4"))
    assert e.np.shape == (0, 3)
    assert s.np.tolist() == [0, 0, 0]


def test_a_donated_array_gives_its_memory_and_is_gone(device):
    f = fgrad.jit(lambda x, y: ops.add(ops.mul(x, 2.0), y), device="opencl", donate_argnums=0)
    first, other = [fgrad.jit(ops.exp, device="opencl")(uniform(k, 300)) for k in (7, 8)]
    want, memory = 2 * first.np + other.np, first.buffer
    out = f(first, other)
    assert_close(out.np, want)
    assert out.buffer is memory
    with pytest.raises(DonationError, match="donated"):
        first.np


def test_a_donated_array_that_is_also_another_argument_is_not_overwritten(device):
    f = fgrad.jit(lambda x, y: (ops.neg(x), ops.rev(y, axes=(0,))), device="opencl",
                  donate_argnums=0)
    x = fgrad.jit(ops.exp, device="opencl")(uniform(9, 50))
    want = x.np
    a, b = f(x, x)
    assert_close(a.np, -want)
    assert_close(b.np, want[::-1])


def test_a_donated_result_is_no_constant_no_argument_and_no_other_result(device):
    def function(x):
        return x + 1, x + 1, constant, x, fgrad.lax.cond(True, lambda v: v, lambda v: v + 1, x)
    constant = frozen(np.arange(4, dtype="f4")[1:])          # at no multiple of 64 bytes
    f = fgrad.jit(function, device="opencl")
    spend = fgrad.jit(lambda x: x * 10, device="opencl", donate_argnums=0)
    x = fgrad.jit(lambda x: x * 1, device="opencl")(np.ones(3, "f4"))
    want = [[2, 2, 2], [2, 2, 2], [1, 2, 3], [1, 1, 1], [1, 1, 1]]
    for k in range(5):
        out = f(x)
        spend(out[k])
        assert [y.np.tolist() for y in (*out[:k], *out[k + 1:])] == [*want[:k], *want[k + 1:]]
    assert [y.np.tolist() for y in f(x)] == want


# ---------------------------------------------------------------------------- programs

def test_sorting_runs_on_the_host_between_kernels(device):
    def function(x):
        s = ops.sort(ops.exp(x), axis=0)
        return ops.mul(s, 2.0)
    x = uniform(10, 33)
    assert_close(fgrad.jit(function, device="opencl")(x).np, np.sort(2 * np.exp(x)))


def test_softmax_and_layer_norm_agree_with_numpy(device):
    x, scale = uniform(11, 9, 37), uniform(12, 37)
    f = fgrad.jit(lambda x, s: (softmax(x), normalised(x, s)), device="opencl")
    for got, want in zip(f(x, scale), (softmax(Array(x)), normalised(Array(x), Array(scale)))):
        assert_close(got.np, want.np, length=37)


def test_the_gradient_of_a_network_agrees_with_the_cpu(device):
    sizes = (40, 32, 10)
    params = [(Array(uniform(k, *ab)), Array(uniform(k + 9, ab[1])))
              for k, ab in enumerate(zip(sizes, sizes[1:]))]
    x, y = uniform(13, 24, 40), np.eye(10, dtype="f4")[np.arange(24) % 10]
    here, there = [fgrad.jit(fgrad.value_and_grad(loss), device=d) for d in ("opencl", "cpu")]
    got, want = [fgrad.tree.leaves(f(params, x, y)) for f in (here, there)]
    assert len(got) == 5
    for a, b in zip(got, want):
        assert_close(a.np, b.np, length=24 * 40, slack=4)


def test_random_bits_and_scattered_sums_agree_with_numpy_rules(device):
    key, at = np.array([7, 9], "u4"), np.array([0, 3, 3, 8], "i4")

    def sums(x, at, updates):
        return ops.scatter_add(x, at, updates, axes=(0,), mode="clip")

    def bits(key):
        return ops.random_bits(key, shape=(37,), dtype=np.dtype("u4"))
    got = fgrad.jit(bits, device="opencl")(key)
    np.testing.assert_array_equal(got.np, bits(Array(key)).np)
    x, updates = uniform(14, 9), uniform(15, 4)
    want = sums(Array(x), Array(at), Array(updates))
    assert_close(fgrad.jit(sums, device="opencl")(x, at, updates).np, want.np)


# ---------------------------------------------------------------------------- devices and text

def test_devices_are_listed_with_what_they_are(device):
    rows = [d for d in driver.devices() if d.name == f"opencl:{device.record.index}"]
    assert len(rows) == 1 and device.record.platform in rows[0].description


def test_a_device_that_is_not_there_is_an_error_that_lists_the_others(device):
    with pytest.raises(DeviceError, match='no OpenCL device "opencl:99"') as caught:
        fgrad.jit(ops.exp, device="opencl:99")(uniform(16, 3))
    assert "opencl:0" in str(caught.value)


def test_a_device_without_doubles_refuses_them(device):
    def within(x):
        return (x.astype("float64") * 0.1).astype("float32")
    for function, x in ((ops.exp, np.zeros(3)), (within, np.zeros(3, "f4"))):
        plan = driver.passes.plan(fgrad.make_ir(function)(x), backend.target_of(device.record))
        with pytest.raises(DeviceError, match="no double precision") as caught:
            backend.Program(plan, replace(device.record, fp64=False))
        assert "float32" in str(caught.value) and "device='cpu'" in str(caught.value)


def test_the_text_of_a_program_can_be_printed(device):
    program = fgrad.make_ir(lambda x: ops.exp(ops.add(x, 1.0)))(np.zeros(40, "f4"))
    text = driver.text(program, "opencl", "opencl")
    assert "__kernel" in text and "exp(" in text and device.record.name in text
    assert base.find("opencl").__class__ is base.find("gpu").__class__ is backend.OpenCL


def test_equal_kernels_are_compiled_once(device):
    def function(a, b, c):
        return [ops.dot_general(x, x, lhs="ij", rhs="kj", to="ik") for x in (a, b, c)]
    program = fgrad.make_ir(function)(*[np.zeros((k, 50), "f4") for k in (40, 40, 41)])
    plan = driver.passes.plan(program, backend.target_of(device.record))
    written = backend.Program(plan, device.record)
    names = [x.name for x in written.launches]
    assert len(names) == 3
    assert names[0] == names[1] != names[2]
    assert len(written.made) == 2
