"""NumPy's functions for fgrad: `import fgrad.numpy as fnp`.

Names and signatures are NumPy's; arrays are immutable, Python floats are f32 and ints i32 unless a
dtype says otherwise, and everything can be differentiated, batched and compiled.
"""

import typing as _typing

from .. import blas as _blas, later as _later     # blas: the first that imports NumPy
from ..errors import bound as _bound, public as _public
from . import methods, native_operators, protocols
from .axes import broadcast_shapes
from .complex import (
    angle, conjugate, imag, iscomplex, iscomplexobj, isreal, isrealobj, real, real_if_close)
from .contract import (
    cross, dot, inner, kron, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat)
from .creation import (
    array, asarray, ascontiguousarray, copy, empty, empty_like, full, full_like, ones, ones_like,
    zeros, zeros_like)
from .dtypes import (
    bfloat16, bool_, can_cast, complex64, complex128, dtype, e, euler_gamma, finfo, float16,
    float32, float64, iinfo, inf, int8, int16, int32, int64, isdtype, issubdtype, nan, newaxis, pi,
    promote_types, uint8, uint16, uint32, uint64)
from .einsum import einsum
from .elementwise import (
    absolute, cbrt, ceil, clip, copysign, deg2rad, divmod, fabs, float_power, floor, floor_divide,
    fmax, fmin, fmod, heaviside,
    hypot, isfinite, isinf, isnan, isneginf, isposinf, logical_not, nan_to_num, positive, power,
    rad2deg, reciprocal,
    remainder, rint, round, signbit, sinc, trunc, where)
from .indexing import take, take_along_axis
from .joining import (
    append, array_split, column_stack, concat, concatenate, dstack, hsplit, hstack, split, stack,
    unstack, vsplit, vstack)
from .matrices import diag, diagflat, diagonal, eye, identity, trace, tri, tril, triu
from .places import argwhere, compress, flatnonzero, nonzero
from .promotion import result_type
from .ranges import arange, geomspace, indices, linspace, logspace, meshgrid
from .reductions import (
    all, amax, amin, any, argmax, argmin, average, count_nonzero, cumprod, cumsum, diff, max, mean,
    min, prod, ptp, std, sum, var)
from .shape import (
    atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_to, expand_dims, flip, fliplr,
    flipud,
    matrix_transpose, moveaxis, ndim, permute_dims, ravel, repeat, reshape, roll, rollaxis, rot90,
    shape, size, squeeze,
    swapaxes, tile, transpose)
from .sorting import argsort, median, percentile, quantile, sort
from .ufuncs import (
    add, arccos, arcsin, arctan, arctan2, bitwise_and, bitwise_or, bitwise_xor, cos, cosh, divide,
    equal, exp, expm1,
    greater, greater_equal, invert, left_shift, less, less_equal, log, log1p, logical_and,
    logical_or,
    logical_xor, maximum, minimum, multiply, negative, not_equal, right_shift, sign, sin,
    sinh, sqrt, square,
    subtract, tan, tanh)

conj, bitwise_invert = conjugate, invert
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
abs, fix, mod, pow, true_divide, bitwise_not = absolute, trunc, remainder, power, divide, invert
acos, asin, atan, atan2 = arccos, arcsin, arctan, arctan2
degrees, radians, around = rad2deg, deg2rad, round

if _typing.TYPE_CHECKING:                        # for editors; at run time see _NAMES
    from . import fft, linalg
    from .bits import (
        bitwise_count, frexp, gcd, isscalar, lcm, ldexp, modf, nextafter, packbits, spacing,
        unpackbits)
    from .brackets import c_, index_exp, mgrid, ogrid, r_, s_
    from .compare import allclose, array_equal, interp, isclose, searchsorted, select
    from .dtypes import bool_ as bool
    from .dtypes import (
        complexfloating, double, floating, generic, inexact, integer, ndarray, number,
        signedinteger, single, unsignedinteger)
    from .exponentials import arccosh, arcsinh, arctanh, exp2, log2, log10, logaddexp, logaddexp2
    from .functional import (
        apply_along_axis, apply_over_axes, block, choose, fromfunction, piecewise,
        vectorize)
    from .missing import (
        nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmedian, nanmin,
        nanpercentile, nanprod, nanquantile, nanstd, nansum, nanvar)
    from .numerics import (
        bincount, convolve, corrcoef, cov, polyval, trapezoid, tril_indices, triu_indices,
        unravel_index)
    from .padding import pad
    from .placement import (
        array_equiv, astype, delete, diag_indices, diag_indices_from, extract,
        fill_diagonal, insert, ix_, mask_indices, place, put, put_along_axis,
        ravel_multi_index, resize, tril_indices_from, triu_indices_from)
    from .polynomials import (
        poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, roots,
        trim_zeros, vander)
    from .sets import (
        intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts,
        unique_inverse, unique_values)
    from .statistics import (
        argpartition, correlate, cumulative_prod, cumulative_sum, digitize, ediff1d,
        gradient, histogram, histogram2d, histogram_bin_edges, histogramdd, lexsort,
        partition, unwrap)
    from .windows import bartlett, blackman, hamming, hanning, i0, kaiser
    from .exponentials import arccosh as acosh
    from .exponentials import arcsinh as asinh
    from .exponentials import arctanh as atanh

_NAMES = {                 # module → what it gives; all of it is loaded at first use
    "fft": "", "linalg": "",
    "bits": "bitwise_count frexp gcd isscalar lcm ldexp modf nextafter packbits spacing unpackbits",
    "brackets": "c_ index_exp mgrid ogrid r_ s_",
    "compare": "allclose array_equal interp isclose searchsorted select",
    "dtypes": """bool=bool_ complexfloating double floating generic inexact integer ndarray number
        signedinteger single unsignedinteger""",
    "exponentials": """arccosh arcsinh arctanh exp2 log2 log10 logaddexp logaddexp2
        acosh=arccosh asinh=arcsinh atanh=arctanh""",
    "functional": "apply_along_axis apply_over_axes block choose fromfunction piecewise vectorize",
    "missing": """nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
        nanpercentile nanprod nanquantile nanstd nansum nanvar""",
    "numerics": """bincount convolve corrcoef cov polyval trapezoid tril_indices triu_indices
        unravel_index""",
    "padding": "pad",
    "placement": """array_equiv astype delete diag_indices diag_indices_from extract
        fill_diagonal insert ix_ mask_indices place put put_along_axis ravel_multi_index resize
        tril_indices_from triu_indices_from""",
    "polynomials": """poly polyadd polyder polydiv polyfit polyint polymul polysub roots
        trim_zeros vander""",
    "sets": """intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts
        unique_inverse unique_values""",
    "statistics": """argpartition correlate cumulative_prod cumulative_sum digitize ediff1d
        gradient histogram histogram2d histogram_bin_edges histogramdd lexsort partition unwrap""",
    "windows": "bartlett blackman hamming hanning i0 kaiser",
}
_bound(globals(), {name for name in globals() if name[0] != "_"})
if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _later.names(__name__, _NAMES, made=_public)
