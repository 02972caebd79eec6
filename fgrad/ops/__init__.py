"""The operations: one block each, with six rules.  `python -m fgrad.ops` prints the table of them.

`move` comes first: it and the next two refer to each other.
"""

import typing as _typing

from .. import later as _later
from .move import (
    as_array, behind, broadcast, concatenate, full, full_like, iota, pad, plus, reshape, rev,
    size_of, slice, to_front, transpose, weave, zeros_like)
from .elementwise import (
    abs, acos, add, and_, asin, atan, atan2, cbrt, ceil, clamp, convert, cos, cosh, div, eq, erf,
    exp, expm1, floor, ge, gt, hypot, integer_pow, is_finite, le, log, log1p, logaddexp, logistic,
    lt, max, min, mul, ne, neg, nextafter, not_, or_, pow, rem, round, rsqrt, select, share, shl,
    shr, sign, sin, sinh, sqrt, square, sub, tan, tanh, xor)
from .reduce import (
    argmax, argmin, cummax, cummin, cumprod, cumsum, recurrence, reduce_and, reduce_max, reduce_min,
    reduce_or, reduce_prod, reduce_sum)
from .contract import dot_general
from .index import (
    dynamic_slice, dynamic_update_slice, gather, scatter, scatter_add, scatter_max, scatter_min,
    scatter_mul, scatter_set, take_along, update_slice)
from .complex import complex, imag, real
from .sort import order, sort, top_k

if _typing.TYPE_CHECKING:                        # for editors; at run time see _NAMES
    from . import collective
    from .bits import bitcast
    from .convolve import conv_general
    from .fourier import fft, irfft, rfft
    from .linalg import (
        cholesky, eigh, eigvalsh, lu, pinv, pivots_to_permutation, qr, slogdet, solve, svd,
        svdvals, triangular_solve)
    from .eigen import eig
    from .random import random_bits, random_fold_in, random_split
    from .special import (
        acosh, asinh, bessel_i0e, bessel_i1e, digamma, erf_inv, erfc, lgamma, log_ndtr, ndtri,
        spence, zeta)
    from .incomplete import betainc, gamma_number, gamma_shift, gammainc, gammaincc
    from .integrals import cosine_integral, expi, expint, sine_integral
    from .window import (
        reduce_window_max, reduce_window_min, reduce_window_sum, window_argmax,
        window_argmin, window_put, window_spread, window_take)

_NAMES = {                 # module → what it gives; all of it is loaded at first use
    "collective": "",
    "bits": "bitcast",
    "convolve": "conv_general",
    "fourier": "fft irfft rfft",
    "linalg": "cholesky eigh eigvalsh lu pinv pivots_to_permutation qr slogdet solve svd svdvals "
              "triangular_solve",
    "eigen": "eig",
    "random": "random_bits random_fold_in random_split",
    "special": """acosh asinh bessel_i0e bessel_i1e digamma erf_inv erfc lgamma log_ndtr ndtri
        spence zeta""",
    "incomplete": "betainc gamma_number gamma_shift gammainc gammaincc",
    "integrals": "cosine_integral expi expint sine_integral",
    "window": """reduce_window_max reduce_window_min reduce_window_sum window_argmax
        window_argmin window_put window_spread window_take""",
}
_USERS = {".segments": "segment_max segment_min segment_prod segment_sum"}     # as in jax.ops
if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _later.names(__name__, _NAMES, also=_USERS)
