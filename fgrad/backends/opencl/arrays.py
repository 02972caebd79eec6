"""Arrays on an OpenCL device: results of jitted functions, read back when NumPy wants them.

A DeviceArray is an Array like any other; its `np` waits for the device once and keeps what it read.
Relies on `device.py` for buffers; the OpenCL executables make them and take them without a copy.
"""

from __future__ import annotations

from ...core import Array


class DeviceArray(Array):
    """An Array whose elements lie in a Buffer of an OpenCL device."""

    __slots__ = ("buffer", "read")
    memory = ("buffer", "read")

    def __init__(self, buffer, type):
        self.buffer, self.read = buffer, None
        self.shape, self.dtype = type.shape, type.dtype

    @property
    def np(self):
        """The elements as a read-only ndarray; the first time it waits and reads them."""
        if self.read is None:
            found = self.buffer.device.read(self.buffer, self.shape, self.dtype)
            found.flags.writeable = False
            self.read = found
        return self.read

    @property
    def device(self):
        """The device that holds the array: "opencl:0"."""
        return f"opencl:{self.buffer.device.record.index}"

    def block_until_ready(self):
        """The array itself, once the device has computed it."""
        self.buffer.device.sync()
        return self
