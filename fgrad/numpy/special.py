"""Special functions that NumPy lacks: erf and its inverse.

Relies on `ops`; `random`, `lax` and `scipy.special` rely on it.
"""

from __future__ import annotations

from .. import ops
from .promotion import floating


def erf(x, /):
    """The error function, 2/√π ∫₀ˣ exp(-t²) dt.   f[*s] → f[*s]"""
    return floating(ops.erf, x)


def erf_inv(x, /):
    """The inverse of erf; ±inf at ±1, NaN outside.   f[*s] → f[*s]

    f16 is computed in f32.

    >>> abs(erf(erf_inv(0.5)).item() - 0.5) < 1e-6
    True
    """
    return floating(ops.erf_inv, x)
