"""The explicit layer, by JAX's names: control flow, and operations that never promote.

    from fgrad import lax
    carry, ys = lax.scan(step, init, xs)

Arguments of an operation have one shape and dtype; Python numbers fit everything.  Axes are called
dimensions, as there.  Thin: every function is an operation of `fgrad.ops`, of `fgrad.control`, or a
few of them.  Nothing relies on it.
"""

from __future__ import annotations

import builtins
import enum
import operator
import typing

import numpy as np

from . import convolution, later, ops, tree
from . import numpy as fnp
from .arguments import lifted
from .core import as_value
from .custom import stop_gradient                                                    # noqa: F401
from .errors import (
    ArgumentError, AxisError, DtypeError, PositionError, ShapeError, at_home, bound)
from .numpy import conjugate as conj                                                 # noqa: F401
from .numpy import cbrt, imag, real, stack, tile, unstack                            # noqa: F401
from .numpy.axes import axes_in_order, axis_of, int_of, shape_of
from .numpy.complex import complex_from as complex                                   # noqa: F401
from .numpy.contract import product
from .numpy.promotion import is_number
from .ops import (                                                                   # noqa: F401
    abs, acos, add, asin, atan, atan2, ceil, cos, cosh, div, eq, erf, exp, expm1, floor, ge, gt,
    is_finite, le, log, log1p, logaddexp, logistic, lt, max, min, mul, ne, neg, pow, rem, rsqrt,
    sign, sin, sinh, sqrt, square, sub, tan, tanh)
from .text import noun_of
from .types import SCALARS, ArrayType, as_dtype

if typing.TYPE_CHECKING:                         # for editors; at run time see NAMES
    from . import lax_linalg as linalg                                               # noqa: F401
    from .collectives import (                                                       # noqa: F401
        all_gather, all_to_all, axis_index, axis_size, pmax, pmean, pmin, ppermute, pshuffle,
        psum, psum_scatter, pswapaxes)
    from .control import (                                                           # noqa: F401
        associative_scan, barrier, cond, fori_loop, map, scan, switch, while_loop)
    from .convolution import (                                                       # noqa: F401
        conv_general_dilated, conv_general_dilated_patches, conv_transpose)
    from .dynamic_slices import (                                                    # noqa: F401
        dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_update_index_in_dim,
        dynamic_update_slice, dynamic_update_slice_in_dim)
    from .folding import reduce, reduce_window                                       # noqa: F401
    from .lax_reductions import (                                                    # noqa: F401
        argmax, argmin, cumlogsumexp, cummax, cummin, cumprod, cumsum, reduce_and, reduce_max,
        reduce_min, reduce_or, reduce_prod, reduce_sum, sort, sort_key_val, top_k)
    from .numpy import acosh, asinh, atanh, bitwise_count, broadcast_shapes, exp2    # noqa: F401
    from .numpy.bits import nextafter                                                # noqa: F401
    from .numpy.special import erf_inv                                               # noqa: F401
    from .ops import bessel_i0e, bessel_i1e, betainc, digamma, erfc, lgamma          # noqa: F401
    from .ops import gammainc as igamma                                              # noqa: F401
    from .ops import gammaincc as igammac                                            # noqa: F401
    from .windowed_index import (                                                    # noqa: F401
        GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather, scatter,
        scatter_add, scatter_max, scatter_min, scatter_mul)

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "RoundingMethod",
    "ScatterDimensionNumbers", "abs", "acos",
    "acosh", "add", "all_gather", "all_to_all", "argmax", "argmin", "asin", "asinh",
    "associative_scan", "atan", "atan2", "atanh", "axis_index", "axis_size", "barrier",
    "batch_matmul", "bessel_i0e", "bessel_i1e", "betainc", "bitcast_convert_type",
    "bitwise_and", "bitwise_count", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast",
    "broadcast_in_dim", "broadcast_shapes", "broadcasted_iota", "cbrt", "ceil", "clamp",
    "clz", "collapse",
    "complex", "concatenate", "cond", "conj", "conv", "conv_general_dilated",
    "conv_general_dilated_patches", "conv_transpose", "conv_with_general_padding",
    "convert_element_type", "cos", "cosh", "cumlogsumexp", "cummax", "cummin", "cumprod",
    "cumsum", "digamma", "div", "dot", "dot_general", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expand_dims",
    "expm1", "fft", "floor", "fori_loop", "full", "full_like", "gather", "ge", "gt", "igamma",
    "igammac", "imag", "index_in_dim", "integer_pow", "iota", "is_finite", "le", "lgamma",
    "linalg", "log", "log1p", "logaddexp", "logistic", "lt", "map", "max", "min", "mul", "ne",
    "neg", "nextafter", "optimization_barrier", "pad", "pmax", "pmean", "pmin",
    "population_count", "pow", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes",
    "real", "reciprocal", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or",
    "reduce_prod", "reduce_sum", "reduce_window", "rem", "reshape", "rev", "round", "rsqrt",
    "scan", "scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul", "select",
    "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin",
    "sinh", "slice", "slice_in_dim", "sort", "sort_key_val", "split", "sqrt", "square",
    "squeeze", "stack", "stop_gradient", "sub", "switch", "tan", "tanh", "tile", "top_k",
    "transpose", "unstack", "while_loop"
]

NAMES = {                  # module → what it gives; all of it is loaded at first use
    "collectives": """all_gather all_to_all axis_index axis_size pmax pmean pmin ppermute pshuffle
        psum psum_scatter pswapaxes""",
    "control": """associative_scan barrier cond fori_loop map scan switch while_loop""",
    "convolution": "conv_general_dilated conv_general_dilated_patches conv_transpose",
    "dynamic_slices": """dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim
        dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim""",
    "folding": "reduce reduce_window",
    "lax_linalg": "linalg=lax_linalg",
    "lax_reductions": """argmax argmin cumlogsumexp cummax cummin cumprod cumsum reduce_and
        reduce_max reduce_min reduce_or reduce_prod reduce_sum sort sort_key_val top_k""",
    "numpy": "acosh asinh atanh bitwise_count broadcast_shapes exp2",
    "numpy.bits": "nextafter",
    "numpy.special": "erf_inv",
    "ops": """bessel_i0e bessel_i1e betainc digamma erfc lgamma igamma=gammainc
        igammac=gammaincc""",
    "windowed_index": """GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers gather
        scatter scatter_add scatter_max scatter_min scatter_mul""",
}
if not typing.TYPE_CHECKING:
    __getattr__, __dir__ = later.names(__name__, NAMES, made=at_home)
barrier_of = later.lazily("fgrad.control", "barrier")

bitwise_and, bitwise_or, bitwise_xor, bitwise_not = ops.and_, ops.or_, ops.xor, ops.not_
shift_left = ops.shl
UNSIGNED = {"int8": "uint8", "int16": "uint16", "int32": "uint32", "int64": "uint64"}
SIGNED = {unsigned: signed for signed, unsigned in UNSIGNED.items()}


# ---------------------------------------------------------------------------- elementwise

def reciprocal(x):
    """1 / x"""
    return div(1.0, x)


def bitcast_convert_type(operand, new_dtype):
    """The bits of the elements as numbers of another dtype; its derivative is zero.

    n[*s] → m[*s]; where an element is as large as k of the new dtype, → m[*s,k]; where it takes k
    elements of the last axis, n[*s,k] → m[*s].

    >>> bitcast_convert_type(np.float32(1.0), "uint32").item() == 0x3F800000
    True
    """
    return ops.bitcast(lifted(operand), dtype=as_dtype(new_dtype))


def population_count(x):
    """How many bits of each element are 1, in its dtype; of negative ones in two's complement."""
    x = as_value(x)
    return ops.convert(fnp.bitwise_count(unsigned(x)), dtype=x.dtype)


def clz(x):
    """How many leading bits of each element are 0, in its dtype.   i[*s] → i[*s]

    Each bit is copied to all below it; the others are counted.

    >>> clz(np.array([1, 255, -1], "int32")).tolist()
    [31, 24, 0]
    """
    x = as_value(x)
    low, bits = unsigned(x), 8 * x.dtype.itemsize
    for k in range(bits.bit_length() - 1):
        low = ops.or_(low, ops.shr(low, 1 << k))
    return population_count(ops.convert(ops.not_(low), dtype=x.dtype))


def unsigned(x):
    """The same bits as an unsigned integer.  Raises DtypeError unless x is an integer."""
    if x.dtype.kind not in "iu":
        raise DtypeError("bits are counted of integers.", given=str(x.type))
    return ops.convert(x, dtype=np.dtype(UNSIGNED.get(x.dtype.name, x.dtype)))


def fft(x, fft_type, fft_lengths):
    """The Fourier transform of the last axes, one for each length; inverses have the factor 1 / N.

    fft_type: "fft", "ifft", "rfft" or "irfft", in any case.   c[…,*n] → c[…,*n]

    >>> fft(np.ones(4, "complex64"), "FFT", (4,)).tolist()
    [(4+0j), 0j, 0j, 0j]
    """
    kinds = {"fft": fnp.fft.fftn, "ifft": fnp.fft.ifftn, "rfft": fnp.fft.rfftn,
             "irfft": fnp.fft.irfftn}
    name = str(getattr(fft_type, "name", fft_type)).lower()
    if name not in kinds:
        raise ArgumentError(f"there is no fft_type={fft_type!r}.", expected=" ".join(kinds))
    lengths = tuple(listed(fft_lengths))
    return kinds[name](x, lengths, tuple(range(-len(lengths), 0)))


def integer_pow(x, y):
    """x to the power of the int y, by multiplication."""
    (n,) = ints_of(y, "integer_pow", "y")
    return ops.integer_pow(as_value(x), n=n)


class RoundingMethod(enum.IntEnum):
    """Where `round` takes halves."""
    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """x to the nearest whole number; halves away from zero, or to the even one of the two."""
    if rounding_method not in tuple(RoundingMethod):
        raise ArgumentError("round takes halves away from zero, or to even numbers.",
                            given=f"rounding_method={rounding_method!r}",
                            expected="lax.RoundingMethod.AWAY_FROM_ZERO or TO_NEAREST_EVEN")
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return ops.round(x)
    x = as_value(x)
    whole = ops.select(ops.lt(x, 0.0), ops.ceil(x), ops.floor(x))
    return ops.select(ops.ge(ops.abs(x - whole), 0.5), whole + ops.sign(x), whole)


def shift_right_arithmetic(x, y):
    """x >> y, the first bit moving in, whether it is a sign or not."""
    x = as_value(x)
    signed = SIGNED.get(str(x.dtype))
    return ops.shr(x, y) if signed is None else shifted_as(signed, x, y)


def shift_right_logical(x, y):
    """x >> y, zeros moving in."""
    x = as_value(x)
    unsigned = UNSIGNED.get(str(x.dtype))
    return ops.shr(x, y) if unsigned is None else shifted_as(unsigned, x, y)


def shifted_as(other, x, y):
    """x >> y, computed in another dtype of as many bits."""
    other = as_dtype(other)
    y = y if is_number(y) else ops.convert(as_value(y), dtype=other)
    return ops.convert(ops.shr(ops.convert(x, dtype=other), y), dtype=x.dtype)


def clamp(min, x, max):
    """x, held between min and max, which are of x's shape or scalars."""
    x = as_value(x)
    return ops.clamp(wide(min, x), x, wide(max, x))


def wide(value, like):
    """A scalar array as one of `like`'s shape; Python numbers and others as they are."""
    if is_number(value):
        return value
    value = as_value(value)
    if value.shape == () and like.shape:
        return ops.broadcast(value, shape=like.shape, axes=tuple(range(like.ndim)))
    return value


def select(pred, on_true, on_false):
    """on_true where pred, else on_false; pred may be a scalar."""
    if is_number(on_true) and is_number(on_false):
        on_true = as_value(on_true)
    like = as_value(on_false if is_number(on_true) else on_true)
    return ops.select(wide(as_value(pred), like), on_true, on_false)


def select_n(which, *cases):
    """cases[which], element by element; which: bool for two cases, i32, or a scalar of them."""
    which = as_value(which)
    if not cases:
        raise ArgumentError("select_n needs cases to select from.")
    if which.dtype.kind == "b":
        if len(cases) > 2:
            raise ArgumentError("select_n by a bool has two cases.", given=f"{len(cases)} cases")
        return select(which, cases[-1], cases[0])
    out = cases[-1]
    for k in reversed(range(len(cases) - 1)):
        out = select(le(which, k), cases[k], out)
    return out


def convert_element_type(x, new_dtype):
    """x in another dtype."""
    return ops.convert(lifted(x), dtype=as_dtype(new_dtype))


# ---------------------------------------------------------------------------- creation

def full(shape, fill_value, dtype=None):
    """An array filled with one number, or with a scalar array."""
    shape = shape_of(shape, "full")
    if fill_value.__class__ in SCALARS:
        dtype = as_value(fill_value).dtype if dtype is None else as_dtype(dtype)
        return ops.full(shape=shape, value=fill_value, dtype=dtype)
    value = as_value(fill_value)
    value = value if dtype is None else ops.convert(value, dtype=as_dtype(dtype))
    return ops.broadcast(value, shape=shape, axes=tuple(range(len(shape))))


def full_like(x, fill_value, dtype=None, shape=None):
    """An array like x, filled with one number."""
    x = x if isinstance(x, ArrayType) else as_value(x)
    return full(x.shape if shape is None else shape, fill_value, dtype or x.dtype)


def iota(dtype, size):
    """0, 1, …, size - 1"""
    return ops.iota(shape=shape_of(size, "iota"), axis=0, dtype=as_dtype(dtype))


def broadcasted_iota(dtype, shape, dimension):
    """0, 1, … along one dimension."""
    shape = shape_of(shape, "broadcasted_iota")
    axis = axis_of(dimension, len(shape), "broadcasted_iota")
    return ops.iota(shape=shape, axis=axis, dtype=as_dtype(dtype))


# ---------------------------------------------------------------------------- shapes

def ints_of(values, name, what):
    """Ints, or one of them, as a tuple.  Raises ArgumentError for what is none."""
    return tuple([int_of(n, lambda: ArgumentError(
        f"{name} needs ints for {what}, not {noun_of(n)}.", given=f"{what}: {values!r:.60}",
        expected="ints")) for n in listed(values)])


def axes_of(dimensions, ndim, name):
    """The dimensions, an int for one, as sorted axes."""
    return tuple(sorted(axes_in_order(tuple(listed(dimensions)), ndim, name)))


def broadcast(x, sizes):
    """x repeated along new leading axes."""
    x = lifted(x)
    sizes = shape_of(sizes, "broadcast")
    return ops.broadcast(x, shape=(*sizes, *x.shape), axes=tuple(range(len(sizes))))


def broadcast_in_dim(x, shape, broadcast_dimensions):
    """x of this shape; its axis k becomes axis broadcast_dimensions[k], where size 1 is repeated.

    n[*s] → n[*shape].  Raises ShapeError for sizes that do not fit, AxisError for a dimension that
    is not there, or given twice.

    >>> broadcast_in_dim(np.array([1.0, 2.0]), (2, 3), (0,)).tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    x, shape = lifted(x), shape_of(shape, "broadcast_in_dim")
    to = axes_in_order(tuple(listed(broadcast_dimensions)), len(shape), "broadcast_in_dim")
    if len(to) != x.ndim or any(n not in (1, shape[d]) for n, d in zip(x.shape, to)):
        raise ShapeError("broadcast_in_dim needs a dimension of the result for each of x, of its "
                         "size.", given=[f"x: {x.type}", f"shape={shape}",
                                f"broadcast_dimensions={to}"])
    x = ops.transpose(x, perm=tuple(sorted(range(x.ndim), key=to.__getitem__)))
    kept = [d for d, n in zip(sorted(to), x.shape) if n == shape[d]]
    x = ops.reshape(x, shape=tuple(shape[d] for d in kept))
    return ops.broadcast(x, shape=shape, axes=tuple(a for a in range(len(shape)) if a not in kept))


def reshape(x, new_sizes, dimensions=None):
    """The elements of x in another shape; -1 stands for what is left."""
    x = lifted(x)
    if dimensions is not None:
        x = transpose(x, dimensions)
    sizes = list(ints_of(new_sizes, "reshape", "new_sizes"))
    if -1 in sizes:
        rest = builtins.max(1, ArrayType(x.dtype, tuple(n for n in sizes if n != -1)).size)
        sizes[sizes.index(-1)] = x.size // rest
    return ops.reshape(x, shape=tuple(sizes))


def transpose(x, permutation):
    """x with its axes in another order."""
    x = lifted(x)
    return ops.transpose(x, perm=axes_in_order(tuple(listed(permutation)), x.ndim, "transpose"))


def rev(x, dimensions):
    """x backwards along the dimensions."""
    x = lifted(x)
    return ops.rev(x, axes=axes_of(dimensions, x.ndim, "rev"))


def concatenate(operands, dimension):
    """The arrays one after the other."""
    xs = [as_value(x) for x in operands]
    if not xs:
        raise ArgumentError("concatenate needs at least one array.")
    return ops.concatenate(*xs, axis=axis_of(dimension, xs[0].ndim, "concatenate"))


def split(operand, sizes, axis=0):
    """The parts of these sizes along an axis, a list.

    >>> import fgrad.numpy as fnp
    >>> split(fnp.array([1.0, 2.0, 3.0]), (1, 2))
    [Array([1.], f32[1]), Array([2., 3.], f32[2])]
    """
    x, sizes = lifted(operand), ints_of(sizes, "split", "sizes")
    axis = axis_of(axis, x.ndim, "split")
    if sum(sizes) != x.shape[axis]:
        raise ShapeError("split needs sizes that add up to the axis.", given=[
            f"operand: {x.type}", f"sizes={sizes}, axis={axis}"])
    stops = [sum(sizes[:k + 1]) for k in range(len(sizes))]
    return [slice_in_dim(x, stop - n, stop, 1, axis) for n, stop in zip(sizes, stops)]


def expand_dims(x, dimensions):
    """x with axes of size 1 at these positions of the result."""
    x, dimensions = lifted(x), listed(dimensions)
    ndim = x.ndim + len(dimensions)
    added, sizes = axes_of(dimensions, ndim, "expand_dims"), iter(x.shape)
    return ops.reshape(x, shape=tuple(1 if a in added else next(sizes) for a in range(ndim)))


def squeeze(x, dimensions):
    """x without these axes, which have size 1."""
    x = lifted(x)
    gone = axes_of(dimensions, x.ndim, "squeeze")
    if any(x.shape[a] != 1 for a in gone):
        raise ShapeError("squeeze removes axes of size 1 only.", given=f"x: {x.type}",
                         expected=f"size 1 at {gone}")
    return ops.reshape(x, shape=tuple(n for a, n in enumerate(x.shape) if a not in gone))


def collapse(x, start_dimension, stop_dimension=None):
    """x with the axes from start up to stop made one."""
    x = lifted(x)
    stop = x.ndim if stop_dimension is None else stop_dimension
    stop = stop + x.ndim if stop < 0 else stop
    start = axis_of(start_dimension, builtins.max(x.ndim, 1), "collapse")
    size = ArrayType(x.dtype, x.shape[start:stop]).size
    return ops.reshape(x, shape=(*x.shape[:start], size, *x.shape[stop:]))


def listed(x):
    """What is given for each axis; a thing that is none is one."""
    return x if hasattr(x, "__iter__") and getattr(x, "shape", None) != () else (x,)


def pad(x, padding_value, padding_config):
    """x with (low, high, interior) elements of the value per axis; a negative low or high cuts."""
    x, config = as_value(x), listed(padding_config)
    config = [ints_of(c, "pad", "padding_config") for c in config]
    if len(config) != x.ndim or any(len(c) != 3 for c in config):
        raise ShapeError("pad needs (low, high, interior) for each axis.", given=[
            f"x: {x.type}", f"padding_config={config}"])
    low, high, interior = zip(*config) if config else ((), (), ())
    out = ops.pad(x, padding_value, low=tuple(builtins.max(n, 0) for n in low),
                  high=tuple(builtins.max(n, 0) for n in high), interior=interior)
    if all(n >= 0 for n in (*low, *high)):
        return out
    return slice(out, [builtins.max(-n, 0) for n in low],
                 [n - builtins.max(-h, 0) for n, h in zip(out.shape, high)])


# ---------------------------------------------------------------------------- slices

def slice(x, start_indices, limit_indices, strides=None):
    """x[start:limit:stride] along every axis."""
    x = lifted(x)
    start, stop, stride = [ints_of(given, "slice", what) for given, what in (
        (start_indices, "start_indices"), (limit_indices, "limit_indices"),
        ((1,) * x.ndim if strides is None else strides, "strides"))]
    return checked(ops.slice, x, start=start, stop=stop, stride=stride)


def checked(op, *args, **params):
    """op(*args), its type first: NumPy would cut off what reaches beyond the array."""
    op.type(*[a.type for a in args], **params)
    return op(*args, **params)


def slice_in_dim(x, start_index, limit_index, stride=1, axis=0):
    """x[start:limit:stride] along one axis; None and negative indices as in Python.

    Raises AxisError for an axis that is not there.

    >>> slice_in_dim(np.arange(6), 1, None, 2).tolist()
    [1, 3, 5]
    """
    x = lifted(x)
    axis = axis_of(axis, x.ndim, "slice_in_dim")
    start, stop, _ = builtins.slice(start_index, limit_index).indices(x.shape[axis])
    starts, stops, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], stops[axis], strides[axis] = start, builtins.max(start, stop), stride
    return slice(x, starts, stops, strides)


def index_in_dim(x, index, axis=0, keepdims=True):
    """x[index] along one axis, which stays with size 1 or goes.

    n[…,m,…] → n[…,1,…], or n[…,…] unless keepdims.  Raises PositionError for an index out of range.

    >>> index_in_dim(np.array([[1, 2], [3, 4]]), -1, axis=1).tolist()
    [[2], [4]]
    """
    x = lifted(x)
    axis = axis_of(axis, x.ndim, "index_in_dim")
    n, (index,) = x.shape[axis], ints_of(index, "index_in_dim", "index")
    if not -n <= index < n:
        raise PositionError(f"index_in_dim: index {index} is out of range for an axis of size {n}.",
                            expected=f"from {-n} to {n - 1}")
    index %= n
    out = slice_in_dim(x, index, index + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


def optimization_barrier(operand):
    """A pytree of the same arrays, which the compiler takes for others: it shares nothing.

    >>> optimization_barrier({"a": fnp.ones(2)})
    {'a': Array([1., 1.], f32[2])}
    """
    return tree.map(lambda x: barrier_of()(lifted(x)), operand)


# ---------------------------------------------------------------------------- products

def dot_general(lhs, rhs, dimension_numbers, preferred_element_type=None):
    """Sum of products; dimension_numbers: ((summed of lhs, of rhs), (batch of lhs, of rhs)).

    The result has the batch axes, then the others of lhs, then those of rhs.
    Raises ArgumentError for dimension_numbers of another form, AxisError for axes that are not
    there, ShapeError where the sizes of two that belong together differ.

    >>> a, b = np.ones((2, 3), "float32"), np.ones((4, 3), "float32")
    >>> dot_general(a, b, (((1,), (1,)), ((), ()))).shape            # a @ b.T
    (2, 4)
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    if preferred_element_type is not None:
        lhs, rhs = [convert_element_type(x, preferred_element_type) for x in (lhs, rhs)]
    (of_lhs, of_rhs), (batch_lhs, batch_rhs) = pairs_of(dimension_numbers)
    for x, places in ((lhs, (*of_lhs, *batch_lhs)), (rhs, (*of_rhs, *batch_rhs))):
        if any(not 0 <= i < x.ndim for i in places):
            raise AxisError("dot_general: an operand lacks a dimension that is named.",
                            given=[f"lhs: {lhs.type}", f"rhs: {rhs.type}",
                                   f"dimension_numbers={dimension_numbers}"])
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    first, second = [None] * lhs.ndim, [None] * rhs.ndim
    for i, j in (*zip(batch_lhs, batch_rhs), *zip(of_lhs, of_rhs)):
        first[i] = second[j] = next(letters)
    summed = {first[i] for i in of_lhs}
    first = [c or next(letters) for c in first]
    second = [c or next(letters) for c in second]
    batch = [first[i] for i in batch_lhs]
    to = batch + [c for c in (*first, *second) if c not in summed and c not in batch]
    return product(lhs, rhs, lhs="".join(first), rhs="".join(second), to="".join(to))


def pairs_of(dimension_numbers):
    """The two pairs of dot_general.  Raises ArgumentError unless each has two lists of one length.
    """
    try:
        summed, batch = [[tuple([operator.index(i) for i in of]) for of in pair]
                         for pair in dimension_numbers]
        fits = all(len(of_lhs) == len(of_rhs) for of_lhs, of_rhs in (summed, batch))
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ArgumentError("dot_general needs as many dimensions of lhs as of rhs, to sum over "
                            "and for the batch.", given=f"dimension_numbers={dimension_numbers!r}",
                            expected="((summed of lhs, of rhs), (batch of lhs, of rhs))",
                            fix="(((1,), (0,)), ((), ())), for a product of matrices")
    return summed, batch


def conv(lhs, rhs, window_strides, padding):
    """conv_general_dilated without dilation, channels first.   n[N,C,*s] n[O,C,*k] → n[N,O,*t]

    >>> conv(np.ones((1, 1, 4), "float32"), np.ones((2, 1, 3), "float32"), (1,), "SAME").shape
    (1, 2, 4)
    """
    return convolution.conv_general_dilated(lhs, rhs, window_strides, padding)


def conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation=None,
                              rhs_dilation=None):
    """conv_general_dilated, channels first.   n[N,C,*s] n[O,C,*k] → n[N,O,*t]

    >>> x, w = np.ones((1, 1, 4), "float32"), np.ones((2, 1, 3), "float32")
    >>> conv_with_general_padding(x, w, (1,), [(2, 0)]).shape
    (1, 2, 4)
    """
    return convolution.conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation,
                                            rhs_dilation)


def dot(lhs, rhs):
    """The product of vectors and matrices: the last axis of lhs with the first of rhs.

    Raises ShapeError for more axes, and where the two sizes differ.

    >>> dot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    if not (1 <= lhs.ndim <= 2 and 1 <= rhs.ndim <= 2):
        raise ShapeError("dot multiplies vectors and matrices.",
                         given=[f"lhs: {lhs.type}", f"rhs: {rhs.type}"], fix="use dot_general")
    return dot_general(lhs, rhs, (((lhs.ndim - 1,), (0,)), ((), ())))


def batch_matmul(lhs, rhs):
    """Matrix products over equal leading axes.   n[*s,i,j] n[*s,j,k] → n[*s,i,k]

    >>> batch_matmul(np.ones((5, 2, 3), "float32"), np.ones((5, 3, 4), "float32")).shape
    (5, 2, 4)
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    batch = tuple(range(lhs.ndim - 2))
    return dot_general(lhs, rhs, (((lhs.ndim - 1,), (rhs.ndim - 2,)), (batch, batch)))


bound(globals())
