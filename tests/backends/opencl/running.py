"""Running functions on the OpenCL device, and comparing with NumPy's rules."""

import warnings

import numpy as np

from fgrad import compile as driver
from fgrad import passes
from fgrad.backends.opencl import backend
from fgrad.core import Array
from fgrad.interpreters.stage import stage
from fgrad.passes.target import Target
from fgrad.types import ArrayType
from tests.tolerance import assert_close

GPU = Target("gpu", vector_bytes=4, threads=4, parts=8, totals=False)


def planned(function, arrays, target, names=()):
    """(Plan, constants) of a function of arrays."""
    staged = stage(function, [ArrayType(a.dtype, a.shape) for a in arrays], names=names)
    program = driver.inlined(staged.program)
    return passes.plan(program, target), [x for _, x in program.hidden]


def listed(out):
    return list(out) if isinstance(out, (tuple, list)) else [out]


def check(device, function, *arrays, length=1, slack=1):
    """Runs the function compiled and by NumPy's rules, and compares every result."""
    values = [a if isinstance(a, Array) else Array(np.asarray(a)) for a in arrays]
    plan, constants = planned(function, values, backend.target_of(device.record))
    got = backend.Executable(plan, device)([*values, *constants])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        want = listed(function(*values))
    assert len(got) == len(want)
    for x, y in zip(got, want):
        assert x.type is y.type
        assert_close(x, y, length, slack, y.dtype)
