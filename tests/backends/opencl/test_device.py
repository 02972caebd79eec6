"""Devices: names, memory, copies, programs, errors, threads and forks."""

import gc
import multiprocessing
import threading
from dataclasses import replace

import numpy as np
import pytest

import fgrad
from fgrad.backends.opencl import device as opencl
from fgrad.errors import DeviceError

SCALE = """
__kernel void scale(__global float *restrict y, __global const float *restrict x, const float by)
{ const int i = get_global_id(0); y[i] = x[i] * by; }
"""


def first():
    """The first device, or a skip that says why there is none."""
    try:
        return opencl.find("opencl")
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture
def device():
    return first()


def aligned(n, dtype):
    """Zeros that start at a multiple of 64 bytes."""
    raw = np.zeros(n * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + n * np.dtype(dtype).itemsize].view(dtype)


# ---- names ---------------------------------------------------------------------------------------

def test_every_spelling_of_a_name_gives_the_same_object(device):
    r = device.record
    assert opencl.find("opencl:0") is device
    assert opencl.find(f"opencl:{r.name}") is device
    assert opencl.find(f"opencl:{r.kind}") is opencl.find(f"opencl:{r.kind.upper()}")


def test_records_say_what_the_device_can_do(device):
    r = opencl.devices()[0]
    assert r.kind in ("gpu", "cpu", "accelerator", "other")
    assert r.units >= 1 and r.lanes >= 1 and r.local_memory > 0 and r.global_memory > 0
    assert str(r).startswith("opencl:0")


@pytest.mark.parametrize("name", ["opencl:99", "opencl:no such thing", "cuda", "gpu:3"])
def test_an_unknown_name_lists_the_devices_there_are(device, name):
    with pytest.raises(DeviceError) as caught:
        opencl.find(name)
    assert name in str(caught.value) and device.record.name in str(caught.value)


def test_threads_that_ask_at_once_get_one_object(device, monkeypatch):
    monkeypatch.setattr(opencl, "OPENED", {})
    found = []
    threads = [threading.Thread(target=lambda: found.append(opencl.find())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1


# ---- what is missing -----------------------------------------------------------------------------

def test_without_pyopencl_the_error_says_how_to_install_it(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")
    monkeypatch.setattr(opencl.importlib, "import_module", missing)
    with pytest.raises(DeviceError, match="needs pyopencl") as caught:
        opencl.devices()
    assert 'pip install "fgrad[opencl]"' in str(caught.value)


class NoPlatform:
    """Stands for a pyopencl that finds no platform."""

    class Error(Exception):
        pass

    class device_type:
        GPU = 4

    def get_platforms(self):
        raise self.Error("PLATFORM_NOT_FOUND_KHR")


def test_without_a_platform_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(opencl, "load", NoPlatform)
    with pytest.raises(DeviceError, match="no platform") as caught:
        opencl.devices()
    assert 'pip install "pyopencl[pocl]"' in str(caught.value)


# ---- memory --------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 3), (3, 0, 2)])
def test_what_is_written_is_read_back(device, shape, dtype):
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    assert np.array_equal(device.read(device.write(x), shape, dtype), x)


def test_strided_arrays_are_written_in_row_major_order(device):
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert np.array_equal(device.read(device.write(x.T), (4, 3), np.int32), x.T)


def test_memory_returns_to_the_pool_when_its_owner_goes(device):
    device.trim()
    buffer = device.allocate(5000)
    memory = buffer.memory
    del buffer
    gc.collect()
    assert device.pooled >= 5000
    assert device.allocate(4900).memory is memory


def test_buckets_waste_at_most_a_quarter_and_are_few():
    sizes = {opencl.bucket_of(n) for n in range(100_000)}
    assert all(n <= opencl.bucket_of(n) <= max(n + 255, 1.25 * n) for n in range(1, 100_000, 37))
    assert len(sizes) < 50


def test_trim_gives_the_pool_back(device):
    device.allocate(1 << 20)
    gc.collect()
    device.trim()
    assert device.pooled == 0


def test_too_large_a_buffer_names_the_limits(device):
    device.allocate(1 << 12)
    with pytest.raises(DeviceError, match="out of memory") as caught:
        device.allocate(1 << 50)
    assert str(device.record.largest_buffer) in str(caught.value)
    assert device.pooled == 0 and device.allocate(16).nbytes == 16


def test_aligned_arrays_are_used_in_place_where_memory_is_shared(device):
    x = aligned(64, np.float32)
    buffer = device.write(x)
    assert (buffer.host is x) == device.record.host_memory
    assert device.write(x[1:]).host is None


def test_read_only_arrays_are_written(device):
    x = aligned(65, np.float32)
    x[:] = np.arange(65)
    x.flags.writeable = False
    for part in (x, x[1:], x[::2]):
        assert np.array_equal(device.read(device.write(part), part.shape, np.float32), part)


def test_an_array_used_in_place_outlives_the_kernels_that_read_it(device):
    program = device.build(SCALE)
    kernel = program.kernel("scale", [None, None, np.float32])
    y = device.allocate(4 * 1000)
    for value in range(50):
        x = aligned(1000, np.float32)
        x[:] = value
        device.launch(kernel, (1000,), None, y, device.write(x), 2.0)
        del x
    assert np.array_equal(device.read(y, (1000,), np.float32), np.full(1000, 98, np.float32))
    assert not device.retired


def test_copy_touches_what_it_is_given(device):
    x, y = device.write(np.arange(8, dtype=np.int16)[::-1]), device.allocate(16)
    device.copy(y, device.write(np.full(8, 3, np.int16)), 16)
    device.copy(y, x, 4, target_offset=2, source_offset=6)
    assert device.read(y, (8,), np.int16).tolist() == [3, 4, 3, 3, 3, 3, 3, 3]


# ---- programs ------------------------------------------------------------------------------------

def test_a_program_is_built_once_per_text(device):
    held = device.build(SCALE)
    assert device.build(SCALE) is held


def test_programs_of_forgotten_functions_are_forgotten(device):
    def run(k):
        f = fgrad.jit(lambda x: x * (k + 0.5), device="opencl")
        assert f(np.ones(3, "f4")).tolist() == [k + 0.5] * 3
    run(0)
    fgrad.clear_caches()
    gc.collect()
    before = len(device.programs)
    for k in range(1, 4):
        run(k)
    fgrad.clear_caches()
    gc.collect()
    assert len(device.programs) <= before


def test_a_build_error_shows_the_log_and_the_numbered_source(device):
    with pytest.raises(DeviceError, match="rejects") as caught:
        device.build("__kernel void f(__global float *x)\n{ x[0] = missing_name; }")
    assert "2 | { x[0] = missing_name; }" in str(caught.value)


def test_a_compiler_older_than_the_processor_is_named(device):
    text = str(device.rejected(SCALE, "error: unknown target CPU 'generic'"))
    assert "older than this processor" in text and device.record.driver in text
    assert "device='cpu'" in text and "y[i] = x[i]" not in text


def test_a_list_of_devices_says_which_drivers_are_too_old(device):
    version = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-"
    old, known = [replace(device.record, version=version + p) for p in ("generic", "znver3")]
    assert "older than this processor" in opencl.doubts(old) and opencl.doubts(known) == ""


def test_two_kernel_objects_keep_their_own_arguments(device):
    program = device.build(SCALE)
    twice, thrice = [program.kernel("scale", [None, None, "float32"]) for _ in range(2)]
    x, y = device.write(np.ones(5, np.float32)), device.allocate(20)
    device.launch(twice, (5,), None, y, x, 2)
    device.launch(thrice, (5,), None, y, y, 3)
    assert device.read(y, (5,), np.float32).tolist() == [6] * 5


def test_threads_may_share_a_kernel(device):
    kernel = device.build(SCALE).kernel("scale", [None, None, np.float32])
    wrong = []

    def work(by):
        x = device.write(np.full(100, by, np.float32))
        for _ in range(50):
            y = device.allocate(400)
            device.launch(kernel, (100,), None, y, x, by)
            if not (device.read(y, (100,), np.float32) == by * by).all():
                wrong.append(by)

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- forks ---------------------------------------------------------------------------------------

def report(queue):
    """In a forked child: what using OpenCL says."""
    said = []
    for use in (lambda: opencl.find().sync(), opencl.devices):
        try:
            use()
            said.append("nothing")
        except DeviceError as error:
            said.append(str(error))
    queue.put(said)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_a_clear_error_and_the_parent_goes_on(device):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=report, args=(queue,))
    child.start()
    said = queue.get(timeout=20)
    child.join(20)
    assert all("forked process" in text and "spawn" in text for text in said)
    assert device.read(device.write(np.ones(3)), (3,), np.float64).tolist() == [1, 1, 1]


# ---- short of memory -----------------------------------------------------------------------------

def test_a_launch_that_runs_short_trims_the_pool_and_tries_once_more(device, monkeypatch):
    cl, calls, kernel = device.cl, [], device.build(SCALE).kernel("scale", [None, None, "float32"])
    x, y = device.write(np.ones(5, np.float32)), device.allocate(20)
    real = cl.enqueue_nd_range_kernel

    def short_once(*args):
        calls.append(args)
        if len(calls) == 1:
            raise cl.MemoryError("out of memory")
        return real(*args)

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", short_once)
    device.launch(kernel, (5,), None, y, x, 2)
    assert len(calls) == 2 and device.read(y, (5,), np.float32).tolist() == [2] * 5


# ---- threads -------------------------------------------------------------------------------------

def test_a_wait_lets_go_of_what_was_retired_before_it_and_of_no_more(device):
    """Two threads that waited at once dropped twice as much, which the queue still used."""
    device.sync()
    assert not device.retired and device.last_retired() == -1
    a, b = object(), object()
    device.retire(8, a)
    settled = device.last_retired()
    device.retire(8, b)
    for _ in range(2):
        device.drop(settled)
        assert [kept for _, kept in device.retired] == [(b,)]
    device.sync()
    assert not device.retired
