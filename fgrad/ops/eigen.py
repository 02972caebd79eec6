"""Eigenvalues and eigenvectors of any square matrix: complex, by NumPy, which calls LAPACK's geev.

Vectors have length 1 and a real largest element, which fixes what their derivative leaves open (M.
Giles, "An extended collection of matrix derivative results", 2008, 3.1).  Relies on `linalg`.
"""

from __future__ import annotations

from ..types import complex_of
from . import lapack
from .complex import complex, imag, real
from .elementwise import add, convert, div, eq, mul, square, sub
from .linalg import (
    Factorisation, check_matrices, diagonal_of, one_over_differences, product, solve)
from .move import broadcast
from .reduce import reduce_max, reduce_sum


class Eig(Factorisation):
    """(w, V): eigenvalues in LAPACK's order, and vectors in columns, with x V = V diag w.

    n[…,n,n] → c[…,n], c[…,n,n]

    With E = V⁻¹ dx V: dw = diag E, and dV = V (F ∘ E), Fᵢⱼ = 1 / (wⱼ - wᵢ) off the diagonal, less
    what changes the length and the phase of each column.  Vectors of equal eigenvalues have none.
    """
    multiple = True

    def type(self, x, /):
        check_matrices(self.name, x)
        v = x.with_dtype(wide(x.dtype))
        return v.with_shape(x.shape[:-1]), v

    def numpy(self, x, /):
        return tuple(a.astype(wide(x.dtype)) for a in lapack.eig(x))

    def jvp(self, out, args, tangents, /):
        (w, v), (t,) = out, tangents
        t = convert(t, dtype=v.dtype)
        inside = solve(v, product(t, v))
        moved = product(v, mul(one_over_differences(w), inside))
        return diagonal_of(inside), sub(moved, mul(v, along(turn(v, moved), v)))


def wide(dtype):
    """The dtype of complex numbers of a dtype."""
    return dtype if dtype.kind == "c" else complex_of(dtype)


def along(c, v):
    """One number for each column.   c[…,n] → c[…,n,n]"""
    return broadcast(c, shape=v.shape, axes=(v.ndim - 2,))


def turn(v, moved):
    """Per column, how moved lengthens it, and i times how it turns the largest element.

    c[…,n,n] c[…,n,n] → c[…,n]
    """
    rows = (v.ndim - 2,)
    size = add(square(real(v)), square(imag(v)))
    longer = reduce_sum(add(mul(real(v), real(moved)), mul(imag(v), imag(moved))), axes=rows)
    largest = broadcast(reduce_max(size, axes=rows), shape=v.shape, axes=rows)
    largest = convert(eq(size, largest), dtype=size.dtype)
    turned = sub(mul(real(v), imag(moved)), mul(imag(v), real(moved)))
    turned = reduce_sum(mul(largest, turned), axes=rows)
    return complex(longer, div(turned, reduce_sum(mul(largest, size), axes=rows)))


eig = Eig("eig")
