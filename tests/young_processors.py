"""Lets the PoCL that tests install compile on processors that are younger than it.

PoCL calls a processor that its compiler does not know "generic", and for x86 its compiler rejects
that name with every program: PoCL 3.0, the one of the package index, on AMD processors since Zen 5.
No variable of the environment says another name, so it is put where PoCL keeps it.  Users get an
error that says so (`device.rejected`); conftest.py calls `named`.
"""

import struct

from fgrad.backends.opencl import device

DESCRIBED = 4096           # bytes from the start of a device's description in which the name is
UNKNOWN = b"generic\0"
KNOWN = {16: b"icelake-server\0", 8: b"haswell\0"}   # by lanes; no longer than the smallest malloc


def named():
    """From now on fgrad finds devices of PoCL with a name of the processor that it knows."""
    found = device.available

    def available(cl, platform):
        handles = found(cl, platform)
        for handle in handles:
            if device.UNKNOWN_PROCESSOR.search(handle.version.strip()):
                rename(handle)
        return handles
    device.available = available


def rename(handle):
    """Writes another name over the processor's, or leaves everything as it is.

    Memory is read and written as a file, so that what is no address is an error and no crash.
    """
    name = KNOWN[16 if handle.native_vector_width_float >= 16 else 8]
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        described = bytes_at(memory, handle.int_ptr, DESCRIBED)
        for (place,) in struct.iter_unpack("Q", described[:len(described) // 8 * 8]):
            if bytes_at(memory, place, len(UNKNOWN)) == UNKNOWN:
                memory.seek(place)
                memory.write(name)


def bytes_at(memory, place, count):
    """The bytes at an address; none if it is no address."""
    try:
        memory.seek(place)
        return memory.read(count)
    except (OSError, ValueError, OverflowError):
        return b""
