"""Arrays on an OpenCL device: results of jitted functions, read back when NumPy wants them.

A DeviceArray is an Array like any other; its `np` waits for the device once and keeps what it read.
Relies on `device.py` for buffers; the OpenCL executables make them and take them without a copy.
"""

from __future__ import annotations

from ...bf16 import BF16, WORD
from ...core import Array, Words


class DeviceArray(Array):
    """An Array whose elements lie in a Buffer of an OpenCL device."""

    __slots__ = ("buffer", "read")
    memory = ("buffer", "read")

    def __init__(self, buffer, type):
        self.buffer, self.read = buffer, None
        self._shape, self._dtype = type.shape, type.dtype

    @property
    def np(self):
        """The elements as a read-only ndarray; the first time it waits and reads them."""
        if self.read is None:
            self.read = self.fetched(self.dtype)
        return self.read

    def fetched(self, dtype):
        """What the buffer holds, as a read-only ndarray."""
        found = self.buffer.device.read(self.buffer, self.shape, dtype)
        found.flags.writeable = False
        return found

    @property
    def device(self):
        """The device that holds the array: "opencl:0"."""
        return f"opencl:{self.buffer.device.record.index}"

    def duplicate(self):
        """An array of the same elements in a Buffer of its own."""
        device, nbytes = self.buffer.device, self.buffer.nbytes
        made = device.allocate(nbytes)
        device.copy(made, self.buffer, nbytes)
        return array_on_device(made, self.type)

    def block_until_ready(self):
        """The array itself, once the device has computed it."""
        self.buffer.device.sync()
        return self


class DeviceWords(Words, DeviceArray):
    """An Array of bf16 whose words lie in a Buffer of an OpenCL device."""
    __slots__ = ()

    @property
    def np(self):
        """There is none: see core.Words."""
        raise AttributeError("np")

    @property
    def words(self):
        """The words as a read-only ndarray; the first time it waits and reads them."""
        if self.read is None:
            self.read = self.fetched(WORD)
        return self.read


def array_on_device(buffer, type):
    """The Array of a type whose elements a Buffer holds."""
    return (DeviceWords if type.dtype is BF16 else DeviceArray)(buffer, type)
