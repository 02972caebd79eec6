"""Where things run: the device of a block, and arrays that are moved to a device.

A jitted function runs where `jit(device=…)` says, else where its arguments are, else on the device
of the block around the call, else on that of FGRAD_DEVICE.  Operations outside of jit are NumPy's,
on the CPU.  Relies on `compile` and `jitted`.
"""

from __future__ import annotations

import functools

import numpy as np

from . import config, tree
from .arguments import is_array
from .blocks import block
from .compile import device_name
from .core import Value
from .errors import ArgumentError, boundary
from .jitted import jit
from .text import noun_of
from .types import other_rules


@block
def device(name):
    """Within the block jitted functions run on this device, unless told or given otherwise.

    name: "cpu", "opencl", "opencl:0", …, or one of `fgrad.devices()`.  What `jit(device=…)` says
    and where arguments lie comes before it.  Other threads are not concerned.
    Raises DeviceError when there is no such device.

    >>> import fgrad
    >>> with device("cpu"):
    ...     fgrad.jit(lambda x: x + 1)(2.0).device
    'cpu'
    """
    with other_rules(config.CHOSEN_DEVICE, device_name(name), True):
        yield


def block_until_ready(x):
    """The pytree, once its arrays are computed: those of an OpenCL device are waited for.

    On the CPU a call has finished when it returns.

    >>> import fgrad.numpy as fnp
    >>> block_until_ready({"w": fnp.ones(2)})
    {'w': Array([1., 1.], f32[2])}
    """
    for leaf in tree.leaves(x):
        if isinstance(leaf, Value):
            leaf.block_until_ready()
    return x


@boundary
def device_get(x):
    """The pytree with its arrays as NumPy's, which cannot be written to; other leaves stay.

    Raises ConcretizationError for values that are not known yet.

    >>> import fgrad.numpy as fnp
    >>> device_get({"n": 3, "w": fnp.ones(2)})
    {'n': 3, 'w': array([1., 1.], dtype=float32)}
    """
    return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Value) else leaf, x)


@boundary
def device_put(x, device=None):
    """The pytree with its arrays on a device: functions that are given them run there.

    device: as for `fgrad.device`; None is the device where jitted functions run by default.
    Numbers and NumPy arrays become arrays.  Under a transformation it moves what is computed.
    Raises DeviceError when there is no such device, ArgumentError for a leaf that is no array.

    >>> import numpy as np
    >>> device_put({"w": np.ones(2, "f4")}, "cpu")
    {'w': Array([1., 1.], f32[2])}
    """
    name = config.device() if device is None else device_name(device)
    pairs, structure = tree.flatten_with_path(x)
    for path, leaf in pairs:
        if not is_array(leaf):
            raise ArgumentError(f"{tree.path_text('x', path)} is {noun_of(leaf)}, and only "
                                "arrays are moved.", given=f"{leaf!r:.60}")
    leaves = [leaf for _, leaf in pairs]
    move = moving(name, tuple([(getattr(x, "dtype", type(x)), np.shape(x)) for x in leaves]))
    return tree.unflatten(structure, list(move(*leaves)) if leaves else [])


@functools.lru_cache(maxsize=256)
def moving(name, kinds):
    """The function that moves values of these dtypes and shapes to a device.

    One for each, so that moving arrays of many shapes is not taken for retracing.
    """
    return jit(lambda *leaves: leaves, device=name)
