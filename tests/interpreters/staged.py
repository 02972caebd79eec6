"""jit without a compiler: what the tests of interpreters use, and finite differences."""

import numpy as np

from fgrad import tree
from fgrad.core import as_value
from fgrad.interpreters.call import call
from fgrad.interpreters.stage import stage


def staged(f):
    """f as one `call` operation, staged anew at each call."""
    def function(*args):
        values = [as_value(a) for a in args]
        trace = stage(f, [v.type for v in values], name=getattr(f, "__name__", "f"))
        return tree.unflatten(trace.out, call(*values, *trace.captured, program=trace.program))
    return function


def near(a, b, tol=1e-6):
    """Equal shapes, and values within `tol`, absolute and relative."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, f"{a.shape} is not {b.shape}"
    np.testing.assert_allclose(a, b, atol=tol, rtol=tol)


def differences(f, x, h=1e-6):
    """The derivatives of f at x by central differences: [*result, *x]."""
    x = np.array(x, dtype="f8")
    out = []
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        out.append((np.asarray(f(up)) - np.asarray(f(down))) / (2 * h))
    return np.moveaxis(np.array(out).reshape(x.shape + out[0].shape), range(x.ndim),
                       range(out[0].ndim, out[0].ndim + x.ndim))
