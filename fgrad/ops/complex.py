"""Complex numbers of two real ones, and back: what no other operation can do.

    z = complex x y;   x = real z;   y = imag z

NumPy computes complex numbers where it evaluates; in compiled code they are pairs of real ones,
which `passes/pairs.py` makes of them.  Derivatives are linear in the two parts; cotangents follow
JAX: that of a real function f(x + iy) is ∂f/∂x - i ∂f/∂y.
"""

from __future__ import annotations

import numpy as np

from ..core import PRIMITIVES, Primitive
from ..errors import DtypeError, ShapeError
from ..types import COMPLEX, F32, F64, SHORT, ArrayType, complex_of, part_of
from . import elementwise, move


class Part(Primitive):
    """The real or the imaginary part.   c[*s] → f[*s]"""
    linear_in = (0,)
    dtypes = COMPLEX

    def type(self, z, /):
        if z.dtype.kind != "c":
            raise DtypeError(f"{self.name} is not defined for {SHORT[z.dtype]}.", given=str(z),
                             expected=" ".join(SHORT[d] for d in COMPLEX))
        return z.with_dtype(part_of(z.dtype))

    def batch(self, dims, z, /):
        return self(z), dims[0]


class Real(Part):
    """The real part.   c[*s] → f[*s]"""

    def numpy(self, z, /):
        return np.real(z)

    def transpose(self, ct, i, z, /):
        return PRIMITIVES["complex"](ct, move.zeros_like(ct))


class Imag(Part):
    """The imaginary part.   c[*s] → f[*s]"""

    def numpy(self, z, /):
        return np.imag(z)

    def transpose(self, ct, i, z, /):
        return PRIMITIVES["complex"](move.zeros_like(ct), elementwise.neg(ct))


class Complex(Primitive):
    """x + iy.   f[*s] f[*s] → c[*s]   Of f32 or f64."""
    linear_in = (0, 1)
    dtypes = (F32, F64)

    def type(self, x, y, /):
        if x.dtype != y.dtype or x.dtype not in self.dtypes:
            raise DtypeError("complex needs two arrays of f32, or two of f64.",
                             given=[f"x: {x}", f"y: {y}"], fix="convert with astype first")
        if x.shape != y.shape:
            raise ShapeError("complex needs two arrays of one shape.",
                             given=[f"x: {x}", f"y: {y}"], fix="broadcast first")
        return ArrayType(complex_of(x.dtype), x.shape)

    def numpy(self, x, y, /):
        out = np.empty(x.shape, complex_of(x.dtype))
        out.real, out.imag = x, y
        return out

    def jvp(self, out, args, tangents, /):
        x, y = (move.zeros_like(a) if t is None else t for a, t in zip(args, tangents))
        return self(x, y)

    def transpose(self, ct, i, x, y, /):
        return elementwise.neg(imag(ct)) if i else real(ct)

    batch = elementwise.Elementwise.batch


real = Real("real")
imag = Imag("imag")
real.__doc__ = "The real part of each complex number.   c[*s] → f[*s]"
imag.__doc__ = "The imaginary part of each complex number.   c[*s] → f[*s]"
complex = Complex("complex")
