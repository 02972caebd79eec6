"""The bits of numbers as other numbers."""

from __future__ import annotations

import numpy as np

from .. import index, scalar
from ..bf16 import BF16
from ..core import Primitive, current
from ..errors import DtypeError, ShapeError
from ..types import DTYPES, F16, F32, SHORT, U16, U32, UNSIGNED_OF, ArrayType
from . import elementwise, move


class Bitcast(Primitive):
    """The memory of x read as another dtype.

    n[*s] → m[*s] of equal sizes; → m[*s,k] where an element of n is as large as k of m; n[*s,k] →
    m[*s] the other way round.  The first of k holds the lowest bits.
    """
    differentiable = False
    dtypes = tuple([d for d in DTYPES if d.kind in "iuf" and d is not BF16])

    def __call__(self, x, /, *, dtype):
        if x.dtype is BF16 or dtype is BF16:
            return x if x.dtype is dtype else self.by_words(x, dtype)
        op = bitcast_f16 if F16 in (x.dtype, dtype) else bitcast
        return current().process(op, (x,), {"dtype": dtype})

    def by_words(self, x, dtype):
        """The same of bf16, whose word is half of an f32; a NaN may become a quiet one."""
        if dtype is BF16:
            word = x if x.dtype == U16 else self(x, dtype=U16)
            wide = elementwise.shl(elementwise.convert(word, dtype=U32), 16)
            return elementwise.convert(self(wide, dtype=F32), dtype=BF16)
        wide = self(elementwise.convert(x, dtype=F32), dtype=U32)
        word = elementwise.convert(elementwise.shr(wide, 16), dtype=U16)
        return word if dtype == U16 else self(word, dtype=dtype)

    def type(self, x, /, *, dtype):
        for each in (x.dtype, dtype):
            if each not in self.dtypes:
                raise DtypeError("bits are those of integers and floats.",
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


class BitcastOfWords(Bitcast):
    """The same of what expressions compute with: f16 is f32 there."""
    dtypes = tuple([d for d in Bitcast.dtypes if d is not F16])

    def pull(self, x, /, *, dtype):
        size, most = sorted(8 * d.itemsize for d in (x.dtype, dtype))
        part, whole = UNSIGNED_OF[size], UNSIGNED_OF[most]

        def one_of(i):
            low = scalar.index_value(index.combine([(i[-1], size)]), whole)
            moved = scalar.apply("shr", scalar.bits(x(i[:-1]), whole), low)
            return scalar.bits(scalar.cast(moved, part), dtype)

        def together(i):
            out = None
            for k in range(x.shape[-1]):
                word = scalar.cast(scalar.bits(x((*i, index.of(k))), part), whole)
                if k:
                    word = scalar.apply("shl", word, scalar.const(k * size, whole))
                out = word if out is None else scalar.apply("or", out, word)
            return scalar.bits(out, dtype)
        if size == most:
            return lambda i: scalar.bits(x(i), dtype)
        return together if x.dtype.itemsize < dtype.itemsize else one_of


bitcast = BitcastOfWords("bitcast")
bitcast_f16 = Bitcast("bitcast_f16")
