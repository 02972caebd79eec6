"""Operations along an axis that vmap has named: sums, maxima, and exchange between its elements.

    psum[axis_name=i size=8] x

Inside of vmap(axis_name="i") each element of the axis has its own x.  The vmap of that name claims
the operation and makes ordinary ones of it, along its axis; every other transformation treats it
like any operation.  `fgrad.collectives` gives them their public names.
"""

from __future__ import annotations

import numpy as np

from ..core import Primitive, as_value
from ..errors import AxisNameError
from ..types import I32, ArrayType, without
from . import elementwise, index, move
from .reduce import reduce_max, reduce_min, reduce_sum


class Collective(Primitive):
    """An operation along the axis `axis_name` of `size` elements.

    `over(axis, d, x, **params)` is what the vmap of that name makes of it: (out, dim).
    """

    def axis_names(self, params):
        return (params["axis_name"],)

    def numpy(self, *args, axis_name, size, **params):
        raise AxisNameError(f"{self.name} was run outside of the vmap that names its axis.",
                            given=f"axis_name={axis_name!r}")

    def batch_over(self, axis, dims, args, params):
        if axis.name != params["axis_name"]:
            return self.batch(dims, *args, **params)
        params = {k: v for k, v in params.items() if k not in ("axis_name", "size")}
        return self.over(axis.size, *dims, *args, **params)


class AxisIndex(Collective):
    """The position along the axis: 0, …, size - 1.   → i32[]"""
    differentiable = False

    def type(self, *, axis_name, size):
        return ArrayType(I32, ())

    def over(self, n):
        return move.iota(shape=(n,), axis=0, dtype=I32), 0


class Psum(Collective):
    """The sum over the axis, the same for all of its elements.   n[*s] → n[*s]"""
    linear_in = (0,)

    def type(self, x, /, *, axis_name, size):
        return x

    def transpose(self, ct, i, x, /, **params):
        return self(ct, **params)

    def batch(self, dims, x, /, **params):
        return self(x, **params), dims[0]

    def over(self, n, d, x):
        if d is not None:
            return reduce_sum(x, axes=(d,)), None
        whole = x.dtype.kind in "iu"             # their sums wrap around, and so does n
        return elementwise.mul(x, int(np.array(n).astype(x.dtype)) if whole else n), None


class Extreme(Collective):
    """The largest (smallest) over the axis.   n[*s] → n[*s]; the derivative is shared by ties."""

    def __init__(self, name, reduce):
        super().__init__(name)
        self.reduce = reduce

    def type(self, x, /, *, axis_name, size):
        return x

    def jvp(self, out, args, tangents, /, **params):
        hit = elementwise.hit(args[0], out)
        return elementwise.div(psum(elementwise.mul(tangents[0], hit), **params),
                               psum(hit, **params))

    def batch(self, dims, x, /, **params):
        return self(x, **params), dims[0]

    def over(self, n, d, x):
        return (x if d is None else self.reduce(x, axes=(d,))), None


class AllGather(Collective):
    """The x of every element, along a new axis at `axis`.   n[*s] → n[…, size, …]"""
    linear_in = (0,)

    def type(self, x, /, *, axis_name, size, axis):
        return x.with_shape((*x.shape[:axis], size, *x.shape[axis:]))

    def transpose(self, ct, i, x, /, **params):
        return psum_scatter(ct, **params)

    def batch(self, dims, x, /, *, axis, **params):
        (d,) = dims
        at = axis + (axis > d)
        return self(x, axis=at, **params), d + (at <= d)

    def over(self, n, d, x, *, axis):
        return moved(move.to_front(x, d, n), 0, axis), None


class PsumScatter(Collective):
    """Of the sum over the axis, each element's own part along `axis`.   n[…, size, …] → n[*rest]"""
    linear_in = (0,)

    def type(self, x, /, *, axis_name, size, axis):
        move.check_axes(self.name, (axis,), x.ndim)
        return x.with_shape(without(x.shape, (axis,)))

    def transpose(self, ct, i, x, /, **params):
        return all_gather(ct, **params)

    def batch(self, dims, x, /, *, axis, **params):
        (d,) = dims
        at = axis + (axis >= d)
        return self(x, axis=at, **params), d - (at < d)

    def over(self, n, d, x, *, axis):
        total, _ = psum.over(n, d, x)
        return total, axis


class AllToAll(Collective):
    """Part k of x along `split` goes to element k, which has what it gets along `concat`.

    n[…, size at split, …] → n[…, size at concat, …]; the other axes keep their order.
    """
    linear_in = (0,)

    def type(self, x, /, *, axis_name, size, split, concat):
        move.check_axes(self.name, (split,), x.ndim)
        rest = without(x.shape, (split,))
        return x.with_shape((*rest[:concat], size, *rest[concat:]))

    def transpose(self, ct, i, x, /, *, split, concat, **params):
        return self(ct, split=concat, concat=split, **params)

    def batch(self, dims, x, /, *, split, concat, **params):
        x = moved(x, dims[0], x.ndim - 1)        # behind all, so that no axis shifts
        return self(x, split=split, concat=concat, **params), x.ndim - 1

    def over(self, n, d, x, *, split, concat):
        x = move.to_front(x, d, n)
        rest = [a for a in range(1, x.ndim) if a != split + 1]
        perm = (split + 1, *rest[:concat], 0, *rest[concat:])
        return move.transpose(x, perm=perm), 0


class Ppermute(Collective):
    """The x of the element that sends to this one; zeros where none does.   n[*s] → n[*s]

    perm: pairs (source, destination).
    """
    linear_in = (0,)

    def type(self, x, /, *, axis_name, size, perm):
        return x

    def transpose(self, ct, i, x, /, *, perm, **params):
        return self(ct, perm=tuple([(b, a) for a, b in perm]), **params)

    def batch(self, dims, x, /, **params):
        return self(x, **params), dims[0]

    def over(self, n, d, x, *, perm):
        senders = np.full(n, -1, np.int32)
        for source, destination in perm:
            senders[destination] = source
        x = move.to_front(x, d, n)
        fill = False if x.dtype.kind == "b" else 0
        return index.gather(x, as_value(senders), axes=(0,), mode="fill", fill=fill), 0


def moved(x, d, to):
    """x with its axis d at position `to`."""
    order = [a for a in range(x.ndim) if a != d]
    order.insert(to, d)
    return x if d == to else move.transpose(x, perm=tuple(order))


axis_index = AxisIndex("axis_index")
psum = Psum("psum")
pmax = Extreme("pmax", reduce_max)
pmin = Extreme("pmin", reduce_min)
all_gather = AllGather("all_gather")
psum_scatter = PsumScatter("psum_scatter")
all_to_all = AllToAll("all_to_all")
ppermute = Ppermute("ppermute")
