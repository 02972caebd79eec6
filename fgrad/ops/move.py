"""Operations that move elements and compute nothing, and the small functions rules are made of.

In compiled code they only rewrite indices, so they cost no memory.  Each is linear, and each is
another's transpose: broadcast ↔ reduce_sum, slice ↔ pad, reshape, transpose and rev ↔ themselves.
"""

from __future__ import annotations

import builtins
import itertools

import numpy as np

from .. import index, scalar
from ..core import Array, Primitive
from ..errors import DtypeError, ShapeError
from ..types import NUMBERS, SCALARS, ArrayType
from . import elementwise, reduce

EVERY = range(1 << 30)     # linear_in of operations with any number of arguments: all of them


# ---------------------------------------------------------------------------- small functions

def plus(x, y):
    """x + y, where None is zero."""
    return y if x is None else x if y is None else elementwise.add(x, y)


def full_like(x, value):
    """An array of x's shape and dtype, filled with a Python number."""
    return full(shape=x.shape, value=value, dtype=x.dtype)


def zeros_like(x):
    """Zeros of x's shape and dtype."""
    return full_like(x, False if x.dtype.kind == "b" else 0)


def as_array(x, like):
    """x, or the array of `like`'s type that the Python number x stands for."""
    return full_like(like, x) if x.__class__ in SCALARS else x


def size_of(args, dims):
    """The size of the batch axis."""
    return next(a.shape[d] for a, d in zip(args, dims) if d is not None)


def to_front(x, d, n=None):
    """x with its batch axis d in front; made by broadcasting to n where d is None."""
    if d is None:
        return broadcast(x, shape=(n, *x.shape), axes=(0,))
    return x if d == 0 else transpose(x, perm=(d, *(a for a in range(x.ndim) if a != d)))


def behind(axes, d):
    """`axes` of an array, once it has one more axis at d."""
    return tuple(a + (a >= d) for a in axes)


def weave(i, r, axes):
    """The index that has r at `axes`, and i at the others."""
    i, r = iter(i), iter(r)
    axes = set(axes)
    out = []
    for _ in range(len(axes)):
        while len(out) not in axes:
            out.append(next(i))
        out.append(next(r))
    return (*out, *i)


def put(values, at, what):
    """The tuple with `what` inserted at position `at`."""
    return (*values[:at], what, *values[at:])


def check_axes(name, axes, ndim):
    """Raises ShapeError unless axes are distinct, sorted, and below ndim."""
    if list(axes) != sorted(set(axes)) or (axes and not 0 <= axes[0] <= axes[-1] < ndim):
        raise ShapeError(f"{name} needs sorted, distinct axes below {ndim}.", given=f"axes={axes}")


# ---------------------------------------------------------------------------- shapes

class Broadcast(Primitive):
    """x repeated along the new axes `axes` of `shape`.   n[*s] → n[*shape]"""
    linear_in = (0,)

    def type(self, x, /, *, shape, axes):
        check_axes("broadcast", axes, len(shape))
        kept = tuple(n for a, n in enumerate(shape) if a not in axes)
        if kept != x.shape:
            raise ShapeError(
                f"broadcast cannot make {list(shape)} of {list(x.shape)} with new axes {axes}.",
                given=str(x), expected=f"shape {list(kept)}")
        return x.with_shape(shape)

    def numpy(self, x, /, *, shape, axes):
        out = np.empty(shape, x.dtype)
        if x.ndim == 0:
            out.fill(x)
        else:
            out[...] = x.reshape([1 if a in axes else n for a, n in enumerate(shape)])
        return out

    def transpose(self, ct, i, x, /, *, shape, axes):
        return reduce.reduce_sum(ct, axes=axes)

    def batch(self, dims, x, /, *, shape, axes):
        x = to_front(x, *dims)
        return self(x, shape=(x.shape[0], *shape), axes=tuple(a + 1 for a in axes)), 0

    def pull(self, x, /, *, shape, axes):
        return lambda i: x(tuple(v for a, v in enumerate(i) if a not in axes))


class Reshape(Primitive):
    """The elements of x, in row-major order, in another shape.   n[*s] → n[*shape]"""
    linear_in = (0,)

    def type(self, x, /, *, shape):
        if x.with_shape(shape).size != x.size:
            raise ShapeError(f"reshape cannot make {list(shape)} of {list(x.shape)}.", given=str(x),
                             expected=f"a shape with {x.size} elements")
        return x.with_shape(shape)

    def numpy(self, x, /, *, shape):
        return x.reshape(shape)

    def transpose(self, ct, i, x, /, *, shape):
        return self(ct, shape=x.shape)

    def batch(self, dims, x, /, *, shape):
        x = to_front(x, *dims)
        return self(x, shape=(x.shape[0], *shape)), 0

    def pull(self, x, /, *, shape):
        return lambda i: x(index.reindex(i, shape, x.shape))


class Transpose(Primitive):
    """The axes of x in another order: axis k of the result is axis perm[k] of x."""
    linear_in = (0,)

    def type(self, x, /, *, perm):
        if sorted(perm) != list(range(x.ndim)):
            raise ShapeError(f"transpose needs each axis of {x} once.", given=f"perm={perm}")
        return x.with_shape(x.shape[p] for p in perm)

    def numpy(self, x, /, *, perm):
        return x.transpose(perm)

    def transpose(self, ct, i, x, /, *, perm):
        return self(ct, perm=tuple(perm.index(k) for k in range(len(perm))))

    def batch(self, dims, x, /, *, perm):
        (d,) = dims
        return self(x, perm=(d, *behind(perm, d))), 0

    def pull(self, x, /, *, perm):
        back = [perm.index(k) for k in range(len(perm))]
        return lambda i: x(tuple(i[k] for k in back))


class Rev(Primitive):
    """x with the order of elements along `axes` reversed.   n[*s] → n[*s]"""
    linear_in = (0,)

    def type(self, x, /, *, axes):
        check_axes("rev", axes, x.ndim)
        return x

    def numpy(self, x, /, *, axes):
        return np.flip(x, axes)

    def transpose(self, ct, i, x, /, *, axes):
        return self(ct, axes=axes)

    def batch(self, dims, x, /, *, axes):
        (d,) = dims
        return self(x, axes=behind(axes, d)), d

    def pull(self, x, /, *, axes):
        def mirrored(v, n):
            return index.combine([(v, -1)], n - 1)
        return lambda i: x(tuple(mirrored(v, n) if a in axes else v
                                 for a, (v, n) in enumerate(zip(i, x.shape))))


# ---------------------------------------------------------------------------- parts

class Slice(Primitive):
    """Per axis the elements start, start + stride, … below stop.

    n[*s] → n[⌈(stop - start) / stride⌉, …]; 0 <= start <= stop <= size, stride > 0
    """
    linear_in = (0,)

    def type(self, x, /, *, start, stop, stride):
        parts = list(zip(start, stop, stride, x.shape))
        if not len(start) == len(stop) == len(stride) == x.ndim or any(
                not 0 <= a <= b <= n or s < 1 for a, b, s, n in parts):
            raise ShapeError(f"slice does not fit into {x}.",
                             given=f"start={start} stop={stop} stride={stride}",
                             expected="0 <= start <= stop <= size and stride > 0 for each axis")
        return x.with_shape(-(-(b - a) // s) for a, b, s, _ in parts)

    def numpy(self, x, /, *, start, stop, stride):
        return x[tuple(map(builtins.slice, start, stop, stride))]

    def transpose(self, ct, i, x, /, *, start, stop, stride):
        interior = tuple(s - 1 for s in stride)
        high = tuple(n - a - stretched(m, k)
                     for n, a, m, k in zip(x.shape, start, ct.shape, interior))
        return pad(ct, zero_of(ct.dtype), low=start, high=high, interior=interior)

    def batch(self, dims, x, /, *, start, stop, stride):
        (d,) = dims
        start, stop, stride = put(start, d, 0), put(stop, d, x.shape[d]), put(stride, d, 1)
        return self(x, start=start, stop=stop, stride=stride), d

    def pull(self, x, /, *, start, stop, stride):
        return lambda i: x(tuple(index.combine([(v, s)], a) for v, a, s in zip(i, start, stride)))


class Pad(Primitive):
    """x with `low` and `high` elements of the value around, and `interior` between its elements.

    n[*s] n[] → n[low + (size - 1)(interior + 1) + 1 + high, …]; the value may be a Python number.
    """
    linear_in = (0, 1)
    numbers = True

    def evaluate(self, args, params):
        x, value = args
        value = elementwise.literal(value, x.dtype) if value.__class__ in SCALARS else value.np
        return Array(self.numpy(x.np, value, **params))

    def type(self, x, value, /, *, low, high, interior):
        if not len(low) == len(high) == len(interior) == x.ndim or any(
                n < 0 for n in (*low, *high, *interior)):
            raise ShapeError(f"pad needs low, high and interior >= 0 for each axis of {x}.",
                             given=f"low={low} high={high} interior={interior}")
        if value.__class__ in SCALARS:
            elementwise.literal(value, x.dtype)
        elif value is not ArrayType(x.dtype, ()):
            raise DtypeError(f"pad needs a scalar value of the dtype of {x}.",
                             given=f"value: {value}")
        return x.with_shape(padded_shape(x.shape, low, high, interior))

    def numpy(self, x, value, /, *, low, high, interior):
        out = np.empty(padded_shape(x.shape, low, high, interior), x.dtype)
        out.fill(value)
        out[tuple(builtins.slice(a, a + stretched(n, k), k + 1)
                  for n, a, k in zip(x.shape, low, interior))] = x
        return out

    def jvp(self, out, args, tangents, /, **params):
        x, value = tangents
        return self(zeros_like(args[0]) if x is None else x,
                    zero_of(out.dtype) if value is None else value, **params)

    def transpose(self, ct, i, x, value, /, *, low, high, interior):
        stop = tuple(a + stretched(n, k) for n, a, k in zip(x.shape, low, interior))
        inner = slice(ct, start=low, stop=stop, stride=tuple(k + 1 for k in interior))
        if i == 0:
            return inner
        everything, own = [reduce.reduce_sum(v, axes=tuple(range(ct.ndim))) for v in (ct, inner)]
        return elementwise.sub(everything, own)

    def batch(self, dims, x, value, /, *, low, high, interior):
        d, e = dims
        if e is None:
            low, high, interior = put(low, d, 0), put(high, d, 0), put(interior, d, 0)
            return self(x, value, low=low, high=high, interior=interior), d
        x = to_front(x, d, size_of((x, value), dims))    # a value per lane: pad with 0, then choose
        params = dict(low=(0, *low), high=(0, *high), interior=(0, *interior))
        ones = full(shape=x.shape, value=True, dtype=np.dtype(bool))
        out = self(x, zero_of(x.dtype), **params)
        around = broadcast(value, shape=out.shape, axes=tuple(range(1, out.ndim)))
        return elementwise.select(self(ones, False, **params), out, around), 0

    def pull(self, x, value, /, *, low, high, interior):
        def padded(i):
            inner, ranges = [], []
            for v, n, a, k in zip(i, x.shape, low, interior):
                q, r = index.divide(index.plus(v, -a), k + 1)
                inner.append(q)
                ranges += [(q, 0, n), (r, 0, 1)]
            outside = scalar.const(value, x.dtype) if value.__class__ in SCALARS else value(())
            return scalar.guard(ranges, x(tuple(inner)), outside)
        return padded


def padded_shape(shape, low, high, interior):
    """The shape that `pad` gives."""
    return tuple(a + stretched(n, k) + b for n, a, b, k in zip(shape, low, high, interior))


def stretched(n, interior):
    """The size of n elements with `interior` more between each two."""
    return n + (n - 1) * interior if n else 0


def zero_of(dtype):
    """Zero as a Python number that may stand beside dtype."""
    return False if dtype.kind == "b" else 0


CHOICES = 8                # parts that are told apart by one test after the other


class Concatenate(Primitive):
    """The arguments one after the other along `axis`.   n[a,*s] n[b,*s] … → n[a+b+…,*s]"""
    linear_in = EVERY

    def type(self, *xs, axis):
        first = xs[0]
        check_axes("concatenate", (axis,), first.ndim)
        for x in xs:
            if x.ndim != first.ndim or x.without((axis,)) is not first.without((axis,)):
                raise ShapeError(f"concatenate needs arrays that differ along axis {axis} only.",
                                 given=[f"argument {k + 1}: {t}" for k, t in enumerate(xs)],
                                 expected="one dtype, and equal sizes of the other axes")
        total = sum(x.shape[axis] for x in xs)
        return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1:]))

    def numpy(self, *xs, axis):
        return np.concatenate(xs, axis)

    def jvp(self, out, args, tangents, /, *, axis):
        return self(*[zeros_like(x) if t is None else t for x, t in zip(args, tangents)], axis=axis)

    def transpose(self, ct, i, *xs, axis):
        before = sum(x.shape[axis] for x in xs[:i])
        start = tuple(before if a == axis else 0 for a in range(ct.ndim))
        stop = tuple(before + xs[i].shape[axis] if a == axis else n for a, n in enumerate(ct.shape))
        return slice(ct, start=start, stop=stop, stride=(1,) * ct.ndim)

    def batch(self, dims, *xs, axis):
        n = size_of(xs, dims)
        return self(*[to_front(x, d, n) for x, d in zip(xs, dims)], axis=axis + 1), 0

    def pull(self, *xs, axis):
        starts = [0, *itertools.accumulate(x.shape[axis] for x in xs)]
        parts = [p for p in zip(starts, starts[1:], xs) if p[0] < p[1]] or [(0, 0, xs[0])]

        def joined(i):
            def one_of(parts):
                if len(parts) == 1:
                    start, _, x = parts[0]
                    return x(put_at(i, axis, index.plus(i[axis], -start)))
                out, each = scalar.const(0, xs[0].dtype), -(-len(parts) // CHOICES)
                for k in reversed(range(0, len(parts), each)):
                    some = parts[k:k + each]
                    out = scalar.guard([(i[axis], some[0][0], some[-1][1])], one_of(some), out)
                return out
            return one_of(parts)
        return joined


def put_at(i, axis, v):
    """The index i with v at `axis`."""
    return (*i[:axis], v, *i[axis + 1:])


# ---------------------------------------------------------------------------- from nothing

class Full(Primitive):
    """An array filled with one Python number.   → dtype[*shape]"""
    differentiable = False
    batch = None               # it has no arguments, so none is ever batched

    def type(self, *, shape, value, dtype):
        return ArrayType(dtype, shape)

    def numpy(self, *, shape, value, dtype):
        if not value and "-" not in str(value):  # all bits are 0, unlike those of -0.0
            return np.zeros(shape, dtype)        # memory that the system clears at its first use
        out = np.empty(shape, dtype)
        out.fill(value)
        return out

    def pull(self, *, shape, value, dtype):
        return lambda i: scalar.const(value, dtype)


class Iota(Primitive):
    """0, 1, 2, … along `axis`, the same at every index of the other axes.   → dtype[*shape]"""
    differentiable = False
    batch = None               # it has no arguments, so none is ever batched

    def type(self, *, shape, axis, dtype):
        if dtype not in NUMBERS:
            raise DtypeError(f"iota is not defined for {dtype}.")
        check_axes("iota", (axis,), len(shape))
        return ArrayType(dtype, shape)

    def numpy(self, *, shape, axis, dtype):
        count = np.arange(shape[axis]).astype(dtype)
        out = np.empty(shape, dtype)
        out[...] = count.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        return out

    def pull(self, *, shape, axis, dtype):
        return lambda i: scalar.index_value(i[axis], dtype)


broadcast = Broadcast("broadcast")
reshape = Reshape("reshape")
transpose = Transpose("transpose")
rev = Rev("rev")
slice = Slice("slice")
pad = Pad("pad")
concatenate = Concatenate("concatenate")
full = Full("full")
iota = Iota("iota")
