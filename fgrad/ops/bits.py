"""The bits of numbers as other numbers.  It has no pull: compiled code calls the NumPy rule."""

from __future__ import annotations

import numpy as np

from ..bf16 import BF16
from ..core import Primitive
from ..errors import DtypeError, ShapeError
from ..types import DTYPES, SHORT, ArrayType
from . import move


class Bitcast(Primitive):
    """The memory of x read as another dtype.

    n[*s] → m[*s] of equal sizes; → m[*s,k] where an element of n is as large as k of m; n[*s,k] →
    m[*s] the other way round.  The first of k holds the lowest bits.
    """
    differentiable = False
    dtypes = tuple([d for d in DTYPES if d.kind in "iuf" and d is not BF16])

    def type(self, x, /, *, dtype):
        for each in (x.dtype, dtype):
            if each not in self.dtypes:
                raise DtypeError("bits are those of integers and of f16, f32 or f64.",
                                 given=[f"x: {x}", f"dtype={SHORT[dtype]}"])
        k = x.dtype.itemsize // dtype.itemsize
        if k:
            return ArrayType(dtype, (*x.shape, k) if k > 1 else x.shape)
        k = dtype.itemsize // x.dtype.itemsize
        if x.shape[-1:] != (k,):
            raise ShapeError(f"{SHORT[dtype]} is made of {k} elements of {SHORT[x.dtype]}.",
                             given=f"x: {x}", expected=f"{k} along the last axis")
        return ArrayType(dtype, x.shape[:-1])

    def numpy(self, x, /, *, dtype):
        out = self.type(ArrayType(x.dtype, x.shape), dtype=dtype)
        return np.ascontiguousarray(x).reshape(-1).view(dtype).reshape(out.shape)

    def batch(self, dims, x, /, *, dtype):
        (d,) = dims
        if d == x.ndim - 1:
            x, d = move.transpose(x, perm=(d, *range(d))), 0
        return self(x, dtype=dtype), d


bitcast = Bitcast("bitcast")
