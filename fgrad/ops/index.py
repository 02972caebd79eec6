"""Reading and writing at indices known only at run time.

    gather[axes=(0,)] x i             rows x[i]
    scatter_add[axes=(0,)] x i u      x with u added to rows i; transpose of gather

`axes` are the indexed axes of x; there is one integer index array for each, all of one shape `s`;
the other axes are `rest`.  Results of gather, and updates of scatter, have the shape s + rest.  An
index out of range is clipped, or (mode "fill", "drop") reads the fill value and writes nothing.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from .. import index, scalar
from ..core import Primitive
from ..errors import ArgumentError, DtypeError, ShapeError
from ..later import lazily
from ..types import (
    ARITHMETIC, DTYPES, EVERY, F16, F32, I32, I64, INTS, NUMBERS, SHORT, U32, U64, ArrayType,
    without)
from . import elementwise, move
from .silence import quiet

PARTS = 4                  # of a gather's indices together, each read on its own
affine, piecewise = lazily("fgrad.affine"), lazily("fgrad.piecewise")      # for pull rules only


# ---------------------------------------------------------------------------- small functions

def check_indices(name, x, indices, axes, mode, modes):
    """The shape of the index arrays; raises where they do not fit x."""
    move.check_axes(name, axes, x.ndim)
    if mode not in modes:
        raise ArgumentError(f"{name} has no mode {mode!r}.", expected=" or ".join(map(repr, modes)))
    problem = mismatch(name, x, indices, axes, mode)
    if problem:
        kind, sentence, fix = problem
        given = [f"x: {x}", *(f"index {k}: {i}" for k, i in enumerate(indices))]
        raise kind(sentence, given=given, fix=fix)
    return indices[0].shape


def mismatch(name, x, indices, axes, mode):
    """(error class, sentence, fix) of what does not fit, or None."""
    if len(indices) != len(axes) or not axes:
        return ShapeError, f"{name} needs one index array for each of the axes {axes}.", None
    for i in indices:
        if i.dtype not in INTS:
            return (DtypeError, f"{name} needs integer indices, not {SHORT[i.dtype]}.",
                    "convert with astype(int)")
        if i.shape != indices[0].shape:
            return ShapeError, f"{name} needs index arrays of one shape.", "broadcast them first"
    if mode == "clip" and indices[0].size and 0 in [x.shape[a] for a in axes]:
        return ShapeError, f"{name} cannot read or write an axis of size 0.", None
    return None


def clipped(indices, x, axes):
    """NumPy index arrays moved into range, and where they already were."""
    sizes = [x.shape[a] for a in axes]
    wide = [np.asarray(i).astype(I64) for i in indices]
    inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(wide, sizes)])
    return tuple(np.clip(i, 0, max(n - 1, 0)) for i, n in zip(wide, sizes)), inside


def flat(indices, sizes):
    """Indices of several axes, moved into range, as one index of all that lie along these axes."""
    at = np.zeros(indices[0].shape, I64)
    for i, n in zip(indices, sizes):
        at *= n
        inside = i.min(initial=0) >= 0 and i.max(initial=0) < n      # NumPy is slow to clip i64
        i = i.astype(I64, copy=False)
        at += i if inside else np.clip(i, 0, max(n - 1, 0))
    return at


def in_front(x, axes):
    """The permutation that brings `axes` to the front."""
    return (*axes, *(a for a in range(x.ndim) if a not in axes))


def with_lanes(indices, dims, n, axes):
    """Indices and axes for a batched x with its batch in front: lane k reads its own k."""
    indices = [move.to_front(i, d, n) for i, d in zip(indices, dims)]
    lanes = move.iota(shape=indices[0].shape, axis=0, dtype=I32)
    return [lanes, *indices], (0, *(a + 1 for a in axes))


def moved_to(x, d, k, n):
    """x with its batch axis d at k; repeated n times where d is None."""
    x = move.to_front(x, d, n)
    return move.transpose(x, perm=(*range(1, k + 1), 0, *range(k + 1, x.ndim)))


def at_index(node, n):
    """(Ix, range): an index that may be out of range, and the range in which it is not."""
    known = affine().index_of(node)
    if known is not None:
        return known, (known, 0, n)
    small = node.dtype.itemsize <= 4 and n < 1 << 31
    signed, unsigned = (I32, U32) if small else (I64, U64)
    node = scalar.cast(scalar.cast(node, signed), unsigned)          # what is negative is large
    node = scalar.apply("min", node, scalar.const(n, unsigned))
    at = index.dynamic(scalar.cast(node, signed), n + 1)
    return at, (at, 0, n)


def take_along(x, i, axis, mode="clip", fill=0):
    """x[…, i[…], …] along one axis: i has x's shape except along `axis`.   n[*s] i32[*r] → n[*r]"""
    indices = [i if a == axis else move.iota(shape=i.shape, axis=a, dtype=I32)
               for a in range(x.ndim)]
    return gather(x, *indices, axes=tuple(range(x.ndim)), mode=mode, fill=fill)


def in_parts(node, n):
    """An index clamped to [0, n), as [(range, Ix)], see `piecewise.pieces`; of one without a range,
    if it is a sum of loop variables, or known at run time only.
    """
    whole = affine().clamped(node, n)
    plain = all(isinstance(a, index.Var) for a, _ in whole.terms)
    return [(None, whole)] if plain else piecewise().pieces(node, n) or [(None, whole)]


def one_of(parts, element, dtype):
    """element(Ixs) of those parts of each index whose ranges hold.  parts: of each index."""
    out = scalar.const(0, dtype)
    for some in reversed([*itertools.product(*parts)]):
        ranges = tuple(r for r, _ in some if r is not None)
        out = scalar.guard(ranges, element([at for _, at in some]), out)
    return out


# ---------------------------------------------------------------------------- gather

class Gather(Primitive):
    """Elements of x at indices.   n[…] i[*s] … → n[*s, *rest]

    mode: "clip", or "fill": the number `fill` where an index is out of range.
    """
    linear_in = (0,)

    def type(self, x, /, *indices, axes, mode="clip", fill=0):
        shape = check_indices(self.name, x, indices, axes, mode, ("clip", "fill"))
        return x.with_shape(shape + without(x.shape, axes))

    def numpy(self, x, /, *indices, axes, mode="clip", fill=0):
        if mode == "clip" and len(axes) == 1:
            return np.take(x.transpose(in_front(x, axes)), indices[0], 0, mode="clip")
        if mode == "clip" and x.flags.c_contiguous and axes == tuple(range(len(axes))):
            rows = x.reshape(math.prod(x.shape[:len(axes)]), *x.shape[len(axes):])
            return np.take(rows, flat(indices, x.shape), 0)          # twice as fast
        at, inside = clipped(indices, x, axes)
        rest = without(x.shape, axes)
        if mode == "fill" and not inside.all():
            out = np.full(inside.shape + rest, fill, x.dtype)
            out[inside] = x.transpose(in_front(x, axes))[tuple(i[inside] for i in at)]
            return out
        return x.transpose(in_front(x, axes))[at]

    def jvp(self, out, args, tangents, /, *, axes, mode="clip", fill=0):
        return self(tangents[0], *args[1:], axes=axes, mode=mode)

    def transpose(self, ct, k, x, /, *indices, axes, mode="clip", fill=0):
        zeros = move.full(shape=x.shape, value=0, dtype=ct.dtype)
        return scatter_add(zeros, *indices, ct, axes=axes, mode="drop" if mode == "fill" else mode)

    def batch(self, dims, x, /, *indices, axes, **params):
        d, *index_dims = dims
        if all(e is None for e in index_dims):                # the batch is one of the rest
            axes = move.behind(axes, d)
            place = indices[0].ndim + d - sum(a < d for a in axes)
            return self(x, *indices, axes=axes, **params), place
        n = move.size_of((x, *indices), dims)
        if d is None:
            indices = [move.to_front(i, e, n) for i, e in zip(indices, index_dims)]
            return self(x, *indices, axes=axes, **params), 0
        indices, axes = with_lanes(indices, index_dims, n, axes)
        return self(move.to_front(x, d), *indices, axes=axes, **params), 0

    def pull(self, x, /, *indices, axes, mode="clip", fill=0):
        k = len(indices[0].shape)
        sizes = [x.shape[a] for a in axes]

        def element(i):
            nodes = [at(i[:k]) for at in indices]
            if mode == "clip":
                parts = [in_parts(v, n) for v, n in zip(nodes, sizes)]
                if math.prod(map(len, parts)) > PARTS:
                    parts = [[(None, affine().clamped(v, n))] for v, n in zip(nodes, sizes)]
                return one_of(parts, lambda at: x(move.weave(i[k:], at, axes)), x.dtype)
            found, ranges = zip(*[at_index(v, n) for v, n in zip(nodes, sizes)])
            inside = x(move.weave(i[k:], found, axes))
            return scalar.guard(ranges, inside, scalar.const(fill, x.dtype))
        return element


# ---------------------------------------------------------------------------- scatter

class Scatter(Primitive):
    """x with updates written at indices.   n[…] i[*s] … n[*s, *rest] → n[…]; mode "clip" or "drop"

    It has no pull: `push` tells compiled code where each update goes.  how: "set" or a row of
    scalar.REDUCTIONS, by which an update is combined with what is there.
    """

    def __init__(self, name, how, ufunc, dtypes):
        super().__init__(name)
        self.how, self.ufunc, self.dtypes = how, ufunc, dtypes
        self.kinds = {d.kind for d in dtypes}

    def type(self, x, /, *rest, axes, mode="clip"):
        *indices, updates = rest
        shape = check_indices(self.name, x, indices, axes, mode, ("clip", "drop"))
        expected = x.with_shape(shape + without(x.shape, axes))
        if updates is not expected:
            raise ShapeError(f"{self.name} needs updates of the shape that gather would read.",
                             given=[f"x: {x}", f"updates: {updates}"], expected=str(expected))
        if x.dtype not in self.dtypes:
            raise DtypeError(f"{self.name} is not defined for {SHORT[x.dtype]}.", given=str(x))
        return x

    @quiet
    def numpy(self, x, /, *rest, axes, mode="clip"):
        if x.dtype.kind not in self.kinds:
            raise TypeError("not a dtype of this operation")      # `type` says it better
        *indices, updates = rest
        at, inside = clipped(indices, x, axes)
        if mode == "drop" and not inside.all():
            at, updates = tuple(i[inside] for i in at), updates[inside]
        out = np.array(x, order="C")
        view = out.transpose(in_front(x, axes))
        if self.ufunc is None:
            view[at] = updates
        else:
            self.ufunc.at(view, at, updates)
        return out

    def batch(self, dims, x, /, *rest, axes, mode="clip"):
        *indices, updates = rest
        d, *index_dims, e = dims
        n = move.size_of((x, *rest), dims)
        x = move.to_front(x, d, n)
        if all(k is None for k in index_dims):                # the batch is one of the rest
            updates = moved_to(updates, e, indices[0].ndim, n)
            return self(x, *indices, updates, axes=tuple(a + 1 for a in axes), mode=mode), 0
        indices, axes = with_lanes(indices, index_dims, n, axes)
        return self(x, *indices, move.to_front(updates, e, n), axes=axes, mode=mode), 0

    def push(self, x, /, *rest, axes, mode="clip"):
        """The shape of the updates, and a function from the index of one to (index into the
        result, ranges, value).

        The result starts as x; where every range holds, value is combined by `how` with what is at
        the index.  "set" keeps the last update in row-major order.
        """
        *indices, updates = rest
        k = len(indices[0].shape)
        sizes = [x.shape[a] for a in axes]

        def target(i):
            nodes = [at(i[:k]) for at in indices]
            if mode == "clip":
                found, ranges = [affine().clamped(v, n) for v, n in zip(nodes, sizes)], ()
            else:
                found, ranges = zip(*[at_index(v, n) for v, n in zip(nodes, sizes)])
            return move.weave(i[k:], found, axes), ranges, updates(i)
        return updates.shape, target


class ScatterAdd(Scatter):
    """x with updates added at indices; equal indices add up, those of f16 in f32."""
    linear_in = move.EVERY

    def numpy(self, x, /, *rest, **params):
        if x.dtype != F16:
            return super().numpy(x, *rest, **params)
        *indices, u = rest
        wide = super().numpy(x.astype(F32), *indices, u.astype(F32), **params)
        with np.errstate(over="ignore"):
            return wide.astype(F16)

    def jvp(self, out, args, tangents, /, **params):
        x, u = tangents[0], tangents[-1]
        if u is None:
            return x
        return self(move.zeros_like(out) if x is None else x, *args[1:-1], u, **params)

    def transpose(self, ct, k, x, /, *rest, axes, mode="clip"):
        return ct if k == 0 else read(ct, rest[:-1], axes, mode)


class ScatterSet(Scatter):
    """x with updates written at indices; of equal indices the last wins."""
    linear_in = move.EVERY

    def jvp(self, out, args, tangents, /, **params):
        x, u = [move.zeros_like(a) if t is None else t
                for a, t in ((args[0], tangents[0]), (args[-1], tangents[-1]))]
        return self(x, *args[1:-1], u, **params)

    def transpose(self, ct, k, x, /, *rest, axes, mode="clip"):
        *indices, updates = rest
        if k == 0:
            zeros = move.full(shape=updates.shape, value=0, dtype=ct.dtype)
            return self(ct, *indices, zeros, axes=axes, mode=mode)
        won = move.broadcast(last_writer(x, indices, axes, mode), shape=updates.shape,
                             axes=tuple(range(indices[0].ndim, len(updates.shape))))
        return elementwise.select(won, read(ct, indices, axes, mode), 0)


def read(x, indices, axes, mode):
    """x at the places that scatter writes, 0 where it drops."""
    return gather(x, *indices, axes=axes, mode="fill" if mode == "drop" else mode)


def last_writer(x, indices, axes, mode):
    """Per index: is its update the last one written there?   bool[*s]"""
    shape = indices[0].shape
    count = ArrayType(I32, shape).size
    number = move.reshape(move.iota(shape=(count,), axis=0, dtype=I32), shape=shape)
    board = move.full(shape=tuple(x.shape[a] for a in axes), value=-1, dtype=I32)
    every = tuple(range(len(axes)))
    board = scatter_set(board, *indices, number, axes=every, mode=mode)
    return elementwise.eq(read(board, indices, every, mode), number)


class ScatterMul(Scatter):
    """x with updates multiplied in at indices."""

    def jvp(self, out, args, tangents, /, *, axes, mode="clip"):
        x, *indices, u = args
        t, tu = tangents[0], tangents[-1]
        total = None
        if t is not None:
            factor = self(move.full_like(x, 1), *indices, u, axes=axes, mode=mode)
            total = elementwise.mul(t, factor)
        if tu is not None:
            part = elementwise.mul(tu, self.others(x, indices, u, axes, mode))
            part = scatter_add(move.zeros_like(x), *indices, part, axes=axes, mode=mode)
            total = move.plus(total, part)
        return total

    def others(self, x, indices, u, axes, mode):
        """Per update: the product of x and the other updates there.

        Zeros are counted, and multiplied in, apart: a single other zero keeps its own derivative,
        so this is right for second derivatives; of several zeros the third derivative is lost.
        """
        def of_others(values):
            total = scatter_add(move.zeros_like(x), *indices, values, axes=axes, mode=mode)
            return elementwise.sub(read(total, indices, axes, mode), values)

        is_zero = elementwise.eq(u, 0.0)
        safe = elementwise.select(is_zero, 1.0, u)
        product = read(self(x, *indices, safe, axes=axes, mode=mode), indices, axes, mode)
        product = elementwise.div(product, safe)
        zeros = of_others(elementwise.one_where(is_zero, x))
        the_zero = of_others(elementwise.select(is_zero, u, 0.0))
        with_zeros = elementwise.select(elementwise.eq(zeros, 1.0), the_zero, 0.0)
        factor = elementwise.select(elementwise.eq(zeros, 0.0), 1.0, with_zeros)
        return elementwise.mul(product, factor)


class ScatterExtreme(Scatter):
    """x, or an update where that is larger (smaller).  The derivative is shared by ties."""

    def jvp(self, out, args, tangents, /, *, axes, mode="clip"):
        x, *indices, u = args
        t, tu = tangents[0], tangents[-1]
        hit_x = elementwise.hit(x, out)
        hit_u = elementwise.hit(u, read(out, indices, axes, mode))
        add = lambda start, values: scatter_add(start, *indices, values, axes=axes, mode=mode)
        count = add(hit_x, hit_u)
        total = move.zeros_like(x) if t is None else elementwise.mul(t, hit_x)
        if tu is not None:
            total = add(total, elementwise.mul(tu, hit_u))
        return elementwise.div(total, count)


def scatter(x, *rest, axes, mode="clip", how="set"):
    """The scatter operation that combines by `how`: set, add, mul, min or max."""
    if how not in SCATTERS:
        raise ArgumentError(f"scatter cannot combine by {how!r}.", expected=" ".join(SCATTERS))
    return SCATTERS[how](x, *rest, axes=axes, mode=mode)


# ---------------------------------------------------------------------------- run-time blocks

class DynamicSlice(Primitive):
    """The block of size `sizes` of x that starts at scalar indices, moved inside if need be.

    n[*s] i[] … → n[*sizes]
    """
    linear_in = (0,)

    def type(self, x, /, *starts, sizes):
        check_starts(self.name, x, starts, sizes)
        return x.with_shape(sizes)

    def numpy(self, x, /, *starts, sizes):
        return x[block(starts, sizes, x.shape)]

    def transpose(self, ct, k, x, /, *starts, sizes):
        zeros = move.full(shape=x.shape, value=0, dtype=ct.dtype)
        return dynamic_update_slice(zeros, ct, *starts)

    def batch(self, dims, x, /, *starts, sizes):
        d, *start_dims = dims
        if all(e is None for e in start_dims):
            zero = move.full(shape=(), value=0, dtype=I32)
            return self(x, *move.put(starts, d, zero), sizes=move.put(sizes, d, x.shape[d])), d
        n = move.size_of((x, *starts), dims)
        cut, order, places = block_indices(starts, start_dims, n, sizes, without(x.shape, (d,)))
        if not cut:
            return move.to_front(x, d, n), 0
        out, _ = gather.batch((d, *(0,) * len(cut)), x, *places, axes=cut)
        return move.transpose(out, perm=tuple(map(order.index, range(len(order))))), 0

    def pull(self, x, /, *starts, sizes):
        def element(i):
            return x(tuple(index.plus(v, start_index(s, n, m))
                           for v, s, n, m in zip(i, starts, x.shape, sizes)))
        return element


class DynamicUpdateSlice(Primitive):
    """x with the block that starts at scalar indices replaced by `update`.

    n[*s] n[*m] i[] … → n[*s]; the block is moved inside if need be.
    """
    linear_in = (0, 1)

    def type(self, x, update, /, *starts):
        check_starts(self.name, x, starts, update.shape)
        if update.dtype != x.dtype:
            raise DtypeError(f"{self.name} needs x and update of one dtype.",
                             given=[f"x: {x}", f"update: {update}"],
                             fix="update.astype(x.dtype)")
        return x

    def numpy(self, x, update, /, *starts):
        out = np.array(x, order="C")
        out[block(starts, update.shape, x.shape)] = update
        return out

    def jvp(self, out, args, tangents, /):
        x, update = [move.zeros_like(a) if t is None else t for a, t in zip(args[:2], tangents[:2])]
        return self(x, update, *args[2:])

    def transpose(self, ct, k, x, update, /, *starts):
        if k == 1:
            return dynamic_slice(ct, *starts, sizes=update.shape)
        return self(ct, move.full(shape=update.shape, value=0, dtype=ct.dtype), *starts)

    def batch(self, dims, x, update, /, *starts):
        d, e, *start_dims = dims
        n = move.size_of((x, update, *starts), dims)
        x, update = move.to_front(x, d, n), move.to_front(update, e, n)
        if all(k is None for k in start_dims):
            return self(x, update, move.full(shape=(), value=0, dtype=I32), *starts), 0
        cut, order, places = block_indices(starts, start_dims, n, update.shape[1:], x.shape[1:])
        if not cut:
            return update, 0
        lanes = move.iota(shape=places[0].shape, axis=0, dtype=I32)
        update = move.transpose(update, perm=order)
        return scatter_set(x, lanes, *places, update, axes=(0, *[a + 1 for a in cut])), 0

    def pull(self, x, update, /, *starts):
        def element(i):
            inner = tuple(index.combine([(v, 1), (start_index(s, n, m), -1)])
                          for v, s, n, m in zip(i, starts, x.shape, update.shape))
            ranges = [(v, 0, m) for v, m in zip(inner, update.shape)]
            return scalar.guard(ranges, update(inner), x(i))
        return element


class UpdateSlice(DynamicUpdateSlice):
    """dynamic_update_slice where nobody needs x any more: compiled code writes the block into it.

    n[*s] n[*m] i[] … → n[*s]
    """
    pull, how = None, "set"

    def push(self, x, update, /, *starts):
        """The block's shape, and where its elements go: see Scatter."""
        def target(i):
            at = tuple(index.plus(v, start_index(s, n, m))
                       for v, s, n, m in zip(i, starts, x.shape, update.shape))
            return at, (), update(i)
        return update.shape, target


def check_starts(name, x, starts, sizes):
    """Raises unless there is one scalar integer start per axis of x, and sizes fit."""
    starting = [f"start {k}: {s}" for k, s in enumerate(starts)]
    if len(starts) != x.ndim or any(s.shape != () or s.dtype not in INTS for s in starts):
        raise ShapeError(f"{name} needs one scalar integer start for each axis of x.",
                         given=[f"x: {x}", *starting, f"sizes: {tuple(sizes)}"])
    if len(sizes) != x.ndim or any(not 0 <= m <= n for m, n in zip(sizes, x.shape)):
        raise ShapeError(f"{name} needs a block that fits into x.",
                         given=[f"x: {x}", f"sizes of the block: {tuple(sizes)}"],
                         expected=f"one size for each axis, at most {tuple(x.shape)}")


def block(starts, sizes, shape):
    """The Python slices of a block, moved inside."""
    starts = [min(max(int(s), 0), n - m) for s, m, n in zip(starts, sizes, shape)]
    return tuple(slice(s, s + m) for s, m in zip(starts, sizes))


def start_index(start, n, m):
    """The Ix of a start, moved inside: n is the size of x, m that of the block."""
    return affine().clamped(start(()), n - m + 1)


def roomy(i):
    """An index of 8 or 16 bits as i32, since it cannot hold the size of an axis; others as they
    are.
    """
    return elementwise.convert(i, dtype=I32) if i.dtype.itemsize < 4 else i


def block_indices(starts, dims, n, sizes, shape):
    """Of blocks with one start per lane: (the axes that they do not fill; the lanes, these axes and
    the others, counted with the lanes in front; per such axis its index array, i32[n, *sizes]).
    """
    cut = tuple([a for a, (m, size) in enumerate(zip(sizes, shape)) if m != size])
    lead, out = (n, *[sizes[a] for a in cut]), []
    for place, a in enumerate(cut, 1):
        start = elementwise.clamp(0, roomy(move.to_front(starts[a], dims[a], n)),
                                  shape[a] - sizes[a])
        start = elementwise.convert(start, dtype=I32)
        first = move.broadcast(start, shape=lead, axes=tuple(range(1, len(lead))))
        out.append(elementwise.add(first, move.iota(shape=lead, axis=place, dtype=I32)))
    order = (0, *[a + 1 for a in cut], *[a + 1 for a in range(len(shape)) if a not in cut])
    return cut, order, out


gather = Gather("gather")
scatter_set = ScatterSet("scatter_set", "set", None, EVERY)
scatter_add = ScatterAdd("scatter_add", "sum", np.add, ARITHMETIC)
scatter_mul = ScatterMul("scatter_mul", "prod", np.multiply, NUMBERS)
scatter_max = ScatterExtreme("scatter_max", "max", np.maximum, DTYPES)
scatter_min = ScatterExtreme("scatter_min", "min", np.minimum, DTYPES)
SCATTERS = {"set": scatter_set, "add": scatter_add, "mul": scatter_mul,
            "min": scatter_min, "max": scatter_max}
dynamic_slice = DynamicSlice("dynamic_slice")
dynamic_update_slice = DynamicUpdateSlice("dynamic_update_slice")
update_slice = UpdateSlice("update_slice")
