"""Products and sums of products: matmul, dot, inner, outer, tensordot, kron, cross, multi_dot.

All but cross are `dot_general`, whose labels say which axes are summed; nothing is transposed or
copied to fit.  Of bools, sums are or and products and, as in NumPy.  Relies on `promotion`;
`einsum.py` has sums by letters.
"""

from __future__ import annotations

import ast
import functools

from .. import ops, source
from ..core import Value, _current, as_value
from ..errors import ShapeError
from ..types import BOOL, F32, as_dtype, default_int
from .axes import axes_in_order, axis_of, broadcast_shapes, count_of, typed
from .complex import conjugate
from .promotion import binary, broadcast_to, cast, of_one_dtype, same

LETTERS = "ijklmnopqrstuvwxyzabcdefghABCDEFGHIJKLMNOPQRSTUVWXYZ"
MATMUL = {(2, 2): dict(lhs="ij", rhs="jk", to="ik"), (1, 2): dict(lhs="j", rhs="jk", to="k"),
          (2, 1): dict(lhs="ij", rhs="j", to="i"), (1, 1): dict(lhs="j", rhs="j", to="")}


def matmul(x1, x2, /, *, preferred_element_type=None):
    """The matrix product of the last two axes; a vector is a row left, a column right.

    n[…,i,j] n[…,j,k] → n[…,i,k]; the axes before them broadcast.  preferred_element_type: the dtype
    of the products and of the result, such as "float32" of bf16.  Raises ShapeError when inner
    sizes differ.

    >>> matmul([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    if preferred_element_type is not None:
        x1, x2 = in_type(preferred_element_type, x1, x2)
    if not (isinstance(x1, Value) and isinstance(x2, Value) and x1.dtype is x2.dtype
            and x1.dtype.kind != "b"):
        x1, x2 = factors(x1, x2)
        if x1.dtype == BOOL:
            return of_bools(matmul, x1, x2)
    a, b = x1.shape, x2.shape
    params = MATMUL.get((len(a), len(b)))
    if params is None:
        return stacked_matmul(x1, x2)
    if a[-1] != b[-2 if len(b) == 2 else 0]:
        raise inner_mismatch(x1, x2)
    return _current.get().process(ops.dot_general, (x1, x2), params)


def in_type(dtype, *xs):
    """The operands in the dtype that their product is wanted in, where there is one."""
    return xs if dtype is None else [cast(as_value(x), as_dtype(dtype)) for x in xs]


def numbers(*xs):
    """Values of one dtype of numbers: bools take that of the others, or the default int."""
    values = of_one_dtype(*xs)
    return values if values[0].dtype != BOOL else [cast(x, default_int()) for x in values]


def factors(*xs):
    """Values of one dtype: that of `numbers`, or of bools."""
    values = [as_value(x) for x in xs]
    return numbers(*xs) if any(x.dtype != BOOL for x in values) else values


def product(x, y, **labels):
    """The dot_general of two factors; of bools it tells whether any product is true."""
    if x.dtype == BOOL:
        return of_bools(ops.dot_general, x, y, **labels)
    return ops.dot_general(x, y, **labels)


def of_bools(function, *xs, **params):
    """Is the sum of products of bools true?  It is one of f32: these do not come back to 0."""
    return same(ops.ne, function(*[cast(x, F32) for x in xs], **params), 0.0)


def inner_mismatch(x, y):
    """The error for a product whose summed sizes differ, with the sizes in brackets."""
    a, b = x.shape, y.shape
    left = "(" + ",".join([*map(str, a[:-1]), f"[{a[-1]}]"]) + ")"
    inner = max(len(b) - 2, 0)
    right = "(" + ",".join(f"[{n}]" if k == inner else str(n) for k, n in enumerate(b)) + ")"
    where = source.here()
    names = source.operands(where, ast.MatMult, ("matmul",))
    fixes = transposing(a, b, inner, names)
    return ShapeError(f"inner sizes differ: {left} @ {right}.", where=where,
                      given=[f"{n}: {typed(v)}" for n, v in
                             zip(names or ("argument 1", "argument 2"), (x, y))],
                      expected="equal sizes in brackets",
                      fix=f"did you mean {' or '.join(fixes)}?" if fixes else None)


def transposing(a, b, inner, names):
    """Products of these shapes with one transposed that would fit, in the user's names."""
    right, left = len(b) >= 2 and b[-1] == a[-1], len(a) >= 2 and a[-2] == b[inner]
    if not names:
        return right * ["to transpose argument 2"] + left * ["to transpose argument 1"]
    x, y = names
    return (right * [f"{x} @ {y}.{'T' if len(b) == 2 else 'mT'}"]
            + left * [f"{x}.{'T' if len(a) == 2 else 'mT'} @ {y}"])


def stacked_matmul(x, y):
    """matmul of arrays with more than two axes."""
    if not x.shape or not y.shape:
        raise ShapeError("matmul is not defined for scalars.",
                         given=[f"x: {typed(x)}", f"y: {typed(y)}"],
                         fix="multiply with *")
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise inner_mismatch(x, y)
    left, right = x.shape[:-2], y.shape[:-2]
    if left and right and left != right:
        lead = broadcast_shapes(left, right)
        x, y = broadcast_to(x, lead + x.shape[-2:]), broadcast_to(y, lead + y.shape[-2:])
        left = right = lead
    batch = LETTERS[3:3 + max(len(left), len(right))]
    ends = MATMUL[min(x.ndim, 2), min(y.ndim, 2)]
    return product(x, y, lhs=(batch if left else "") + ends["lhs"],
                   rhs=(batch if right else "") + ends["rhs"], to=batch + ends["to"])


def dot(a, b, *, preferred_element_type=None):
    """The sum of products over the last axis of a and the last but one of b; scalars multiply.

    preferred_element_type: as for `matmul`.

    >>> import fgrad.numpy as fnp
    >>> fnp.dot([[1, 2], [3, 4]], [1, 1])
    Array([3, 7], i32[2])
    """
    x, y = factors(*in_type(preferred_element_type, a, b))
    if not x.shape or not y.shape:
        return binary(ops.mul, x, y)
    return contracted(x, y, (x.ndim - 1,), (max(y.ndim - 2, 0),), "dot")


def vdot(a, b):
    """The sum of products of all elements, both taken flat; a is conjugated.

    >>> import fgrad.numpy as fnp
    >>> fnp.vdot([1, 2], [3, 4])
    Array(11, i32[])
    """
    x, y = factors(conjugate(a), b)
    flat = [ops.reshape(v, shape=(v.size,)) for v in (x, y)]
    return matmul(*flat)


def vecdot(x1, x2, /, axis=-1):
    """The sum of products along one axis, the others broadcast; x1 is conjugated.

    >>> import fgrad.numpy as fnp
    >>> fnp.vecdot([[1, 2], [3, 4]], [1, 1])
    Array([3, 7], i32[2])
    """
    products = binary(ops.mul, *factors(conjugate(x1), x2))
    total = ops.reduce_or if products.dtype == BOOL else ops.reduce_sum
    return total(products, axes=(axis_of(axis, products.ndim, "vecdot"),))


def matvec(x1, x2, /):
    """Matrices times vectors.   n[…,i,j] n[…,j] → n[…,i]

    >>> import fgrad.numpy as fnp
    >>> fnp.matvec([[1, 2], [3, 4]], [1, 1])
    Array([3, 7], i32[2])
    """
    return matmul(x1, as_value(x2)[..., None])[..., 0]


def vecmat(x1, x2, /):
    """Vectors, of complex numbers conjugated, times matrices.   n[…,i] n[…,i,j] → n[…,j]

    >>> import fgrad.numpy as fnp
    >>> fnp.vecmat([1, 1], [[1, 2], [3, 4]])
    Array([4, 6], i32[2])
    """
    return matmul(conjugate(as_value(x1))[..., None, :], x2)[..., 0, :]


def inner(a, b):
    """The sum of products over the last axes.   n[*a,k] n[*b,k] → n[*a,*b]

    >>> import fgrad.numpy as fnp
    >>> fnp.inner([1, 2], [3, 4])
    Array(11, i32[])
    """
    x, y = factors(a, b)
    if not x.shape or not y.shape:
        return binary(ops.mul, x, y)
    return contracted(x, y, (x.ndim - 1,), (y.ndim - 1,), "inner")


def outer(a, b):
    """All products of elements.   n[a] n[b] → n[a,b]

    >>> import fgrad.numpy as fnp
    >>> fnp.outer([1, 2], [1, 10, 100])
    Array([[  1,  10, 100],
           [  2,  20, 200]], i32[2,3])
    """
    x, y = factors(a, b)
    x, y = [ops.reshape(v, shape=(v.size,)) for v in (x, y)]
    return product(x, y, lhs="i", rhs="j", to="ij")


def kron(a, b):
    """The Kronecker product of matrices.   n[a,b] n[c,d] → n[ac,bd]

    >>> import fgrad.numpy as fnp
    >>> fnp.kron([[1, 2]], [[1, 1]])
    Array([[1, 1, 2, 2]], i32[1,4])
    """
    x, y = factors(a, b)
    ndim = max(x.ndim, y.ndim)
    x, y = [ops.reshape(v, shape=(1,) * (ndim - v.ndim) + v.shape) for v in (x, y)]
    first, second = LETTERS[:ndim], LETTERS[ndim:2 * ndim]
    together = "".join(p + q for p, q in zip(first, second))
    out = product(x, y, lhs=first, rhs=second, to=together)
    return ops.reshape(out, shape=tuple(n * m for n, m in zip(x.shape, y.shape)))


def cross(a, b, axis=-1):
    """The cross product of vectors along an axis.   n[…,3] n[…,3] → n[…,3],  n[…,2] n[…,2] → n[…]

    Of vectors in the plane, the third element, which is all there is of it.

    >>> import fgrad.numpy as fnp
    >>> fnp.cross([1, 0, 0], [0, 1, 0])
    Array([0, 0, 1], i32[3])
    """
    x, y = numbers(a, b)
    for v in (x, y):
        if not v.shape or v.shape[axis_of(axis, v.ndim, "cross")] not in (2, 3):
            raise ShapeError(f"cross needs vectors of 3 or 2 elements along axis {axis}.",
                             given=typed(v))
    (x0, x1, *x2), (y0, y1, *y2) = [elements(v, axis_of(axis, v.ndim, "cross")) for v in (x, y)]
    third = difference(x0, y1, x1, y0)
    if not x2 and not y2:
        return third
    x2, y2 = (*x2, ops.full_like(x0, 0))[0], (*y2, ops.full_like(y0, 0))[0]
    rest = difference(x1, y2, x2, y1), difference(x2, y0, x0, y2)
    k = axis_of(axis, third.ndim + 1, "cross")
    shape = (*third.shape[:k], 1, *third.shape[k:])
    return ops.concatenate(*[ops.reshape(v, shape=shape) for v in (*rest, third)], axis=k)


def elements(v, axis):
    """The elements of vectors along an axis, each without it."""
    return [v[(slice(None),) * axis + (k,)] for k in range(v.shape[axis])]


def difference(a, b, c, d):
    """a b - c d."""
    return binary(ops.sub, binary(ops.mul, a, b), binary(ops.mul, c, d))


def tensordot(a, b, axes=2, *, preferred_element_type=None):
    """The sum of products over pairs of axes: the last `axes` of a, the first of b; or as listed.

    preferred_element_type: as for `matmul`.  Raises ShapeError when the sizes of a pair differ.

    >>> import fgrad.numpy as fnp
    >>> fnp.tensordot(fnp.ones((2, 3, 4)), fnp.ones((3, 4, 5))).shape
    (2, 5)
    """
    x, y = factors(*in_type(preferred_element_type, a, b))
    if hasattr(axes, "__iter__"):
        left, right = [axes_in_order(part, v.ndim, "tensordot") for part, v in zip(axes, (x, y))]
    else:
        count = count_of(axes, "tensordot", "axes")
        if count > min(x.ndim, y.ndim):
            raise ShapeError(f"tensordot cannot sum over {count} axes.",
                             given=[f"a: {typed(x)}", f"b: {typed(y)}"])
        left, right = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    return contracted(x, y, left, right, "tensordot")


def contracted(x, y, left, right, name):
    """The sum of products over pairs of axes, for the function `name`."""
    if len(left) != len(right) or any(x.shape[p] != y.shape[q] for p, q in zip(left, right)):
        raise ShapeError(f"{name} needs pairs of axes of equal size.",
                         given=[f"a: {typed(x)}, axes {left}", f"b: {typed(y)}, axes {right}"])
    lhs = LETTERS[:x.ndim]
    rhs = list(LETTERS[x.ndim:x.ndim + y.ndim])
    for p, q in zip(left, right):
        rhs[q] = lhs[p]
    to = "".join(c for k, c in enumerate(lhs) if k not in left)
    to += "".join(c for k, c in enumerate(rhs) if k not in right)
    return product(x, y, lhs=lhs, rhs="".join(rhs), to=to)


def multi_dot(arrays):
    """The matrix product of several arrays, left to right.

    >>> import fgrad.numpy as fnp
    >>> fnp.linalg.multi_dot([fnp.ones((2, 3)), fnp.ones((3, 4)), fnp.ones((4, 1))]).shape
    (2, 1)
    """
    return functools.reduce(matmul, arrays)
