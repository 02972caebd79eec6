"""OpenCL devices: find them, allocate and copy, build programs, launch kernels.

A `Device` owns a context, one in-order queue, a pool of buffers and the programs in use.
Everything is asynchronous; only `read` and `sync` wait.  That one queue is what makes the pool
safe: whatever reuses a buffer is enqueued behind the kernels that still read it.  Relies on
pyopencl, which is imported at first use, and on `errors.py`; the OpenCL executables rely on it.

Measured with PoCL 3.0 on 2 cores: a launch takes 2 µs of host time, its arguments included, and 16
when it is waited for; a program takes 90 ms to build and 30 ms more at a kernel's first launch, or
20 ms where PoCL has it on disk: so many kernels in one program, and no wait between launches.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import re
import threading
import warnings
from collections import defaultdict, deque
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import numpy as np

from ...aligned import LINE
from ...errors import DeviceError

SMALLEST = 256             # bytes of the smallest bucket
RETIRED = 256 << 20        # bytes of host memory that may wait for the queue before `write` waits

# What PoCL calls a processor that its compiler does not know; on x86 it then rejects all programs.
UNKNOWN_PROCESSOR = re.compile(r"PoCL.*-x86_64-.*-generic$")

INSTALL = ["the OpenCL driver of your GPU, or",
           'pip install "pyopencl[pocl]", which runs OpenCL on the CPU']


def load():
    """The pyopencl module, imported at first use; it takes 0.1 to 0.3 s."""
    try:
        return importlib.import_module("pyopencl")
    except ImportError as error:
        raise DeviceError("The OpenCL backend needs pyopencl, which cannot be imported.",
                          given=str(error), fix='pip install "fgrad[opencl]"') from error


# ---- which devices there are ---------------------------------------------------------------------

@dataclass(frozen=True)
class Record:
    """What is known of one device.  Memory in bytes; `lanes` is float32 values per vector."""

    index: int
    platform: str
    name: str
    kind: str                                   # "gpu", "cpu", "accelerator" or "other"
    units: int
    local_memory: int
    global_memory: int
    largest_buffer: int
    max_group: int                              # work-items in a work-group
    lanes: int
    fp64: bool
    fp16: bool
    host_memory: bool                           # does it share the host's memory?
    version: str
    driver: str
    handle: object = field(repr=False, compare=False)

    def __str__(self):
        return f"opencl:{self.index}  {self.name} ({self.platform}, {self.kind})"


def devices():
    """Every OpenCL device of this machine, as Records, GPUs first.

    Raises DeviceError when pyopencl or an OpenCL platform is missing, or in a forked child of a
    process that has asked before: the threads of the drivers do not survive a fork.
    """
    cl = load()
    if ASKED and os.getpid() not in ASKED:
        raise forked(f"process {os.getpid()}, forked from process {min(ASKED)}")
    ASKED.add(os.getpid())
    try:
        handles = [d for platform in cl.get_platforms() for d in available(cl, platform)]
    except cl.Error:                            # PLATFORM_NOT_FOUND_KHR
        handles = []
    if not handles:
        raise DeviceError("No OpenCL device was found: pyopencl is here, but no platform is.",
                          fix=INSTALL)
    handles.sort(key=lambda d: not d.type & cl.device_type.GPU)
    return [record(cl, index, handle) for index, handle in enumerate(handles)]


ASKED = set()              # process ids that asked for devices: this one, or the parent of a fork


def forked(given):
    """The error of a child that was forked after OpenCL was used."""
    return DeviceError("OpenCL cannot be used in a forked process once its parent has used it.",
                       given=given, fix='multiprocessing.set_start_method("spawn"), or use OpenCL '
                                        "in the children only")


def available(cl, platform):
    """The platform's devices; none where it has a driver but no hardware."""
    try:
        return platform.get_devices()
    except cl.Error:                            # DEVICE_NOT_FOUND
        return []


def record(cl, index, d):
    """The Record of a pyopencl device."""
    kinds = [("gpu", cl.device_type.GPU), ("cpu", cl.device_type.CPU),
             ("accelerator", cl.device_type.ACCELERATOR)]
    kind = next((name for name, bit in kinds if d.type & bit), "other")
    extensions = d.extensions.split()
    return Record(
        index=index, platform=d.platform.name.strip(), name=d.name.strip(), kind=kind,
        units=d.max_compute_units, local_memory=d.local_mem_size, global_memory=d.global_mem_size,
        largest_buffer=d.max_mem_alloc_size, max_group=d.max_work_group_size,
        lanes=widest(d.native_vector_width_float, d.version), fp64="cl_khr_fp64" in extensions,
        fp16="cl_khr_fp16" in extensions, host_memory=bool(d.host_unified_memory),
        version=d.version.strip(), driver=d.driver_version.strip(), handle=d)


def widest(lanes, version):
    """How many float32 values a vector may have, of what a device says.

    PoCL asks the processor for its instructions, but names it to its compiler: one that is older
    than a Zen with 512 bits takes it for a Zen 3, and aborts the process where it meets a vector
    wider than that one's.

    >>> widest(16, "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-znver3")
    8
    >>> widest(16, "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-skylake-avx512")
    16
    """
    zen = re.search(r"PoCL.*-znver[123]$", version.strip())
    return max(1, min(lanes, 8) if zen else lanes)


def doubts(record):
    """What is to be said behind a device in a list: "", or why programs will not compile."""
    old = UNKNOWN_PROCESSOR.search(record.version)
    return f"; its driver, {record.driver}, is older than this processor" if old else ""


OPENED = {}                # Record index -> Device; owned by `find`
OPENING = threading.Lock()


def find(name="opencl"):
    """The Device of this name: one object per physical device and process.

    "opencl" is the first device, "opencl:1" the second, "opencl:text" the first whose name,
    platform or kind holds the text, and "gpu" the first GPU.  DeviceError when there is none.
    """
    found = devices()
    head, _, wanted = name.partition(":")
    if head == "gpu" and not wanted:
        matching = [r for r in found if r.kind == "gpu"]
    elif head != "opencl":
        matching = []
    elif wanted.isdigit():
        matching = found[int(wanted):int(wanted) + 1]
    else:
        matching = [r for r in found if wanted.lower() in f"{r.platform} {r.name} {r.kind}".lower()]
    if not matching:
        raise DeviceError(f'There is no OpenCL device "{name}".',
                          expected=["one of these:"] + [str(r) for r in found],
                          fix='"opencl" takes the first, "opencl:0" one by number, '
                              '"opencl:text" one by a part of its name')
    with OPENING:
        if matching[0].index not in OPENED:
            OPENED[matching[0].index] = Device(matching[0])
        return OPENED[matching[0].index]


INHERITED = []             # queues of the parent process, kept so that they are never released here


def forget_queues():
    """In a forked child the threads behind a queue are gone: takes it, so that its use raises."""
    for device in OPENED.values():
        INHERITED.append(device.__dict__.pop("queue", None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_queues)


# ---- one device ----------------------------------------------------------------------------------

class Buffer:
    """Memory of a device.  When its last reference goes, the memory returns to the device's pool.

    `memory` is the pyopencl buffer, `nbytes` what was asked for; `host` is the array it lies in, if
    it uses the host's memory in place: then kernels may read it, but not write.
    """

    __slots__ = ("device", "memory", "nbytes", "bucket", "host", "__weakref__")

    def __init__(self, device, memory, nbytes, bucket=0, host=None):
        self.device, self.memory, self.nbytes = device, memory, nbytes
        self.bucket, self.host = bucket, host

    def __del__(self):
        self.device.release(self)

    def __repr__(self):
        return f"<Buffer {self.nbytes} bytes on {self.device.record.name}>"


class Program:
    """A built program; `kernel` makes one launchable kernel per call site."""

    def __init__(self, cl, built):
        self.cl, self.built = cl, built

    def kernel(self, name, arguments):
        """The kernel `name`; `arguments` holds None for a buffer, a NumPy dtype for a scalar.

        Arguments belong to the kernel object, so every call site wants its own.
        """
        kernel = self.cl.Kernel(self.built, name)
        kernel.set_scalar_arg_dtypes([None if a is None else np.dtype(a) for a in arguments])
        return kernel


class Device:
    """A physical device: memory, programs, and one asynchronous in-order queue.

    >>> from fgrad.backends.opencl.device import find
    >>> device = find("opencl")                                           # doctest: +SKIP
    >>> device.read(device.write(np.arange(3)), (3,), "int64")            # doctest: +SKIP
    array([0, 1, 2])
    """

    def __init__(self, record):
        self.cl = cl = load()
        self.record = record
        self.context = cl.Context([record.handle])
        self.queue = cl.CommandQueue(self.context)
        self.pool = defaultdict(deque)          # bucket in bytes -> pyopencl buffers
        self.retired = deque()                  # (number, what the queue may still use), in order
        self.retired_count, self.retired_bytes = itertools.count(), 0
        self.programs = WeakValueDictionary()   # source -> Program, while somebody holds it
        self.building, self.dropping = threading.Lock(), threading.Lock()
        self.launching = threading.Lock()       # a kernel's arguments and its launch are one step

    def __repr__(self):
        return f"<Device {self.record}>"

    def __getattr__(self, name):
        if name != "queue":
            raise AttributeError(name)
        raise forked(str(self.record))

    # ---- memory

    def allocate(self, nbytes):
        """A Buffer of at least nbytes, its content undefined.

        Raises DeviceError naming the limits when there is no memory left, the pool's included.
        """
        bucket = bucket_of(nbytes)
        try:
            memory = self.pool[bucket].pop()
        except IndexError:
            memory = self.retrying(lambda: self.create(bucket), f"{nbytes} bytes")
        return Buffer(self, memory, nbytes, bucket)

    def create(self, nbytes):
        if nbytes > self.record.global_memory:   # some drivers only notice when it is used
            self.trim()
            raise self.out_of_memory(f"{nbytes} bytes")
        return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, nbytes)

    def release(self, buffer):
        """Takes back the memory of a Buffer that nobody holds any more.

        Runs inside the garbage collector, in any thread: it takes no lock and calls no OpenCL.
        """
        if buffer.host is not None:
            self.retire(buffer.nbytes, buffer.memory, buffer.host)
        else:
            self.pool[buffer.bucket].append(buffer.memory)

    def trim(self):
        """Waits, and gives the pool's memory back to the device."""
        self.sync()
        for bucket in list(self.pool):
            self.pool[bucket].clear()

    @property
    def pooled(self):
        """Bytes that lie in the pool."""
        return sum(bucket * len(free) for bucket, free in list(self.pool.items()))

    def retrying(self, action, what):
        """action(); when memory is short, once more with the pool emptied."""
        try:
            return action()
        except self.cl.Error as error:
            if not self.short_of_memory(error):
                raise
        self.trim()
        try:
            return action()
        except self.cl.Error as error:
            if not self.short_of_memory(error):
                raise
            raise self.out_of_memory(what) from error

    def out_of_memory(self, what):
        """The error of memory that could not be had, with the device's limits."""
        r = self.record
        return DeviceError(
            f"{r.name} is out of memory: {what} could not be had.",
            given=f"largest buffer {r.largest_buffer} bytes, memory {r.global_memory} bytes, "
                  f"in the pool {self.pooled} bytes",
            fix="smaller arrays or batches, fewer arrays kept alive, or donate_argnums")

    def short_of_memory(self, error):
        """Is this what pyopencl raises for too large a buffer, or for memory that is used up?"""
        too_large = self.cl.status_code.INVALID_BUFFER_SIZE
        return isinstance(error, self.cl.MemoryError) or error.code == too_large

    # ---- copies

    def write(self, array):
        """A Buffer with the array's elements in row-major order.

        Where the device shares the host's memory and the array is contiguous and aligned to 64
        bytes, the Buffer is the array itself.  In any case the array must not change while the
        Buffer lives, nor before the next wait.
        """
        array = np.ascontiguousarray(array)
        if self.retired_bytes > RETIRED:
            self.sync()
        if self.fits_in_place(array):
            flags = self.cl.mem_flags.READ_ONLY | self.cl.mem_flags.USE_HOST_PTR
            memory = self.cl.Buffer(self.context, flags, hostbuf=array)
            return Buffer(self, memory, array.nbytes, host=array)
        buffer = self.allocate(array.nbytes)
        if array.nbytes:
            event = self.retrying(lambda: self.cl.enqueue_copy(
                self.queue, buffer.memory, array, is_blocking=False), f"{array.nbytes} bytes")
            self.retire(array.nbytes, event, array)
        return buffer

    def fits_in_place(self, array):
        """May kernels read the host's own array?"""
        return (self.record.host_memory and array.nbytes > 0
                and array.ctypes.data % LINE == 0)

    def retire(self, nbytes, *kept):
        """Keeps objects alive until the queue has passed this point."""
        self.retired.append((next(self.retired_count), kept))
        self.retired_bytes += nbytes            # a lost update in a race only delays a wait

    def read(self, buffer, shape, dtype):
        """The Buffer's first elements as a new ndarray; waits for everything enqueued before."""
        out = np.empty(shape, dtype)
        if out.nbytes:
            settled = self.last_retired()
            self.cl.enqueue_copy(self.queue, out, buffer.memory, is_blocking=True)
            self.drop(settled)
        return out

    def copy(self, target, source, nbytes, target_offset=0, source_offset=0):
        """Copies nbytes from one Buffer to another; offsets in bytes."""
        if nbytes:
            self.cl.enqueue_copy(self.queue, target.memory, source.memory, byte_count=nbytes,
                                 src_offset=source_offset, dst_offset=target_offset)

    def sync(self):
        """Waits until everything enqueued is done."""
        settled = self.last_retired()
        self.queue.finish()
        self.drop(settled)

    def last_retired(self):
        """The number of what was retired last, -1 if nothing is.

        What has a lower number was enqueued before: a number is taken behind the queue's call.
        """
        try:
            return self.retired[-1][0]
        except IndexError:
            return -1

    def drop(self, settled):
        """Lets go of what was retired up to that number: the queue has passed it.

        Of several threads that wait each drops what it has waited for, and no more.
        """
        with self.dropping:
            while self.retired and self.retired[0][0] <= settled:
                self.retired.popleft()
        self.retired_bytes = 0

    # ---- programs and launches

    def build(self, source):
        """The Program of this text, built once per device as long as somebody holds it.

        Raises DeviceError with the compiler's log and the numbered text when it does not compile.
        """
        with self.building:
            program = self.programs.get(source)
            if program is None:
                program = self.programs[source] = Program(self.cl, self.compiled(source))
            return program

    def compiled(self, source):
        program = self.cl.Program(self.context, source)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self.cl.CompilerWarning)
                program.build(options=["-w"], cache_dir=False)   # drivers keep a cache
        except self.cl.RuntimeError as error:
            log = program.get_build_info(self.record.handle, self.cl.program_build_info.LOG)
            raise self.rejected(source, log.strip()) from error
        return program

    def rejected(self, source, log):
        """The error of a program that the driver's compiler does not take."""
        r = self.record
        if "unknown target CPU" in log:
            return DeviceError(
                f"{r.name} cannot be used through OpenCL: the compiler of {r.platform} {r.driver} "
                "is older than this processor.", given=log.splitlines(),
                fix=["device='cpu', for which fgrad has a compiler of its own",
                     "or a newer PoCL: your system's packages may have one (pocl-opencl-icd)"])
        return DeviceError(
            f"The OpenCL compiler of {r.platform} rejects a generated program.",
            given=log.splitlines() + ["source:"] + numbered(source),
            fix="this is a mistake in fgrad or in the driver: please report the text above")

    def launch(self, kernel, global_size, local_size, *args):
        """Enqueues the kernel on Buffers and numbers; returns its pyopencl event, without waiting.

        Raises DeviceError when the device has no memory left for it.
        """
        plain = [a.memory if type(a) is Buffer else a for a in args]
        with self.launching:
            kernel.set_args(*plain)
            try:
                return self.cl.enqueue_nd_range_kernel(self.queue, kernel, global_size, local_size)
            except self.cl.MemoryError:         # some drivers allocate at the first use
                return self.retrying(
                    lambda: self.cl.enqueue_nd_range_kernel(
                        self.queue, kernel, global_size, local_size),
                    f"the memory of kernel {kernel.function_name}")


@functools.lru_cache(maxsize=4096)
def bucket_of(nbytes):
    """nbytes rounded up, so that at most a quarter is wasted and there are few sizes."""
    wanted = max(SMALLEST, nbytes)
    step = max(SMALLEST, 1 << (wanted.bit_length() - 3))
    return -(-wanted // step) * step


def numbered(source):
    """The lines of a text, with their numbers."""
    return [f"{n:4} | {line}" for n, line in enumerate(source.splitlines(), 1)]
