"""Convolution: a contraction that slides along some axes.

    conv_general[nhwc,hwio->nhwo] x w      out[n,h,w,o] = sum i,a,b: x[n, h+a, w+b, i] * w[a,b,i,o]

Axes are labelled as in `dot_general`; the labels in `window` slide.  There is no padding and no
dilation of x: those are a `pad` before it, which costs no memory in compiled code unless the padded
array is read many times.  Both gradients are convolutions again; that of a strided window is cut
into phases (`spread`), so that no zeros are multiplied.  Groups are a label that all three arrays
have.  In compiled code products go to the contraction engine; a depthwise convolution has no
columns, and is written out over its window.
"""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import index, scalar
from ..core import Primitive
from ..errors import DtypeError, ShapeError
from ..types import ARITHMETIC, ArrayType, computed
from . import contract, move
from .silence import quiet

WRITTEN_OUT = 36           # elements of a window up to which they are written out one by one


class ConvGeneral(Primitive):
    """Products of x's windows with w, summed over the window and over the labels that `to` lacks.

    n[*lhs] n[*rhs] → n[*to]; along a label of `window`, with stride s and dilation d,
    out[i] = sum a: x[i·s + a·d] · w[a], as many i as fit.  f16 accumulates in f32 and rounds once.
    A label of `window` is in all three arrays, any other in two of them at least.
    Raises ShapeError where sizes do not agree, DtypeError for different dtypes.
    """
    linear_in = (0, 1)
    dtypes = ARITHMETIC

    def type(self, x, w, /, *, lhs, rhs, to, window, stride, dilation):
        if x.dtype != w.dtype or x.dtype not in ARITHMETIC:
            raise DtypeError("conv_general needs two arrays of numbers of one dtype.",
                             given=[f"x: {x}", f"w: {w}"], fix="convert with astype first")
        check_labels(x, w, lhs, rhs, to, window, stride, dilation)
        sizes = {}
        for label, n in (*zip(lhs, x.shape), *zip(rhs, w.shape)):
            if label not in window and sizes.setdefault(label, n) != n:
                raise ShapeError(f"a convolution cannot contract sizes {sizes[label]} and {n}.",
                                 given=[f"x: {x}", f"w: {w}"],
                                 expected=f"equal sizes for label {label} in [{lhs},{rhs}->{to}]")
        for label, s, d in zip(window, stride, dilation):
            n, k = x.shape[lhs.index(label)], w.shape[rhs.index(label)]
            sizes[label] = places(n, k, s, d)
        return ArrayType(x.dtype, tuple(sizes[label] for label in to))

    @quiet
    def numpy(self, x, w, /, *, lhs, rhs, to, window, stride, dilation):
        if x.dtype != w.dtype:
            raise TypeError("operands of two dtypes")            # `type` says it better
        wide = computed(x.dtype)
        taps = fresh(lhs + rhs + to, len(window))
        windows = sliding(x.astype(wide), lhs, w.shape, rhs, window, stride, dilation)
        renamed = rhs.translate(str.maketrans(window, taps))
        product = contract.contraction(lhs + taps, renamed, to)
        return product(windows, w.astype(wide)).astype(x.dtype)

    def transpose(self, ct, i, x, w, /, *, lhs, rhs, to, window, stride, dilation):
        aval = (x, w)[i]
        if ct.size == 0 or aval.size == 0:
            return move.zeros_like(aval)
        if i == 0:
            out = spread(ct, w, to, rhs, lhs, window, stride, dilation)
            sizes = [x.shape[lhs.index(c)] for c in window]
            return fitted(out, [lhs.index(c) for c in window], [0] * len(window), sizes)
        used = tuple((ct.shape[to.index(c)] - 1) * stride[window.index(c)]
                     + (w.shape[rhs.index(c)] - 1) * dilation[window.index(c)] + 1
                     if c in window else n for c, n in zip(lhs, x.shape))
        x = x if used == x.shape else part(x, used)
        return self(x, ct, lhs=lhs, rhs=to, to=rhs, window=window, stride=dilation, dilation=stride)

    def batch(self, dims, x, w, /, *, lhs, rhs, to, **params):
        label = fresh(lhs + rhs + to, 1)
        lhs, rhs = [s if d is None else move.put(s, d, label) for s, d in zip((lhs, rhs), dims)]
        return self(x, w, lhs="".join(lhs), rhs="".join(rhs), to=label + to, **params), 0

    def pull(self, x, w, /, *, lhs, rhs, to, window, stride, dilation):
        sizes = {c: n for c, n in zip(rhs, w.shape) if c in window or c not in to}
        steps = {c: (s, d) for c, s, d in zip(window, stride, dilation)}

        def read(c, at, r):
            if c not in steps:
                return r[c] if c in r else at[c]
            s, d = steps[c]
            return index.combine([(at[c], s), (r[c], d)])

        def total(i):
            def product(r):
                at, r = dict(zip(to, i)), dict(zip(sizes, r))
                return scalar.apply("mul", x(tuple(read(c, at, r) for c in lhs)),
                                    w(tuple(r[c] if c in r else at[c] for c in rhs)))
            return over("sum", [*sizes.values()], product, lean)
        lean = not is_product(dict(zip(rhs, w.shape)), lhs, to, window)
        return total


def is_product(sizes, lhs, to, window):
    """Is it worth the contraction engine?  sizes: of w's labels.

    Not without columns, and not when each of many groups has one channel (depthwise).
    """
    columns = prod(n for c, n in sizes.items() if c in to and c not in lhs)
    summed = prod(n for c, n in sizes.items() if c not in to)
    groups = prod(n for c, n in sizes.items() if c in to and c in lhs and c not in window)
    return columns > 1 and not (summed == 1 and groups >= 8)


def over(how, extents, body, written_out=True):
    """body(indices) reduced: by name where there are few indices, else as a loop."""
    if not written_out or not 0 < prod(extents) <= WRITTEN_OUT:
        return scalar.reduce(how, extents, body)
    terms = [body(tuple(map(index.of, r))) for r in itertools.product(*map(range, extents))]
    out = terms[0]
    for term in terms[1:]:
        out = scalar.apply(scalar.REDUCTIONS[how][0], out, term)
    return out


# ---------------------------------------------------------------------------- sizes and labels

def extent(k, d):
    """The elements that k elements, d apart, stretch over."""
    return (k - 1) * d + 1 if k else 0


def places(n, k, s, d):
    """How many windows of k elements, d apart, there are s apart in n elements."""
    return max(0, (n - extent(k, d)) // s + 1)


def fresh(labels, count):
    """`count` labels that are not among `labels`."""
    free = (c for c in contract.SPARE if c not in labels)
    return "".join(itertools.islice(free, count))


def check_labels(x, w, lhs, rhs, to, window, stride, dilation):
    """Raises ShapeError unless the labels fit the axes, and each is where it has a meaning."""
    text = f"conv_general[{lhs},{rhs}->{to}]"
    for name, a, labels in (("x", x, lhs), ("w", w, rhs)):
        if len(labels) != a.ndim or len(set(labels)) != len(labels):
            raise ShapeError(f"{text} needs one label per axis of {name}, each once.",
                             given=[f"x: {x}", f"w: {w}"])
    alone = [c for c in {*lhs, *rhs, *to} if (c in lhs) + (c in rhs) + (c in to) < 2]
    everywhere = set(lhs) & set(rhs) & set(to)
    if alone or len(set(to)) != len(to) or set(window) - everywhere:
        raise ShapeError(f"{text} needs labels of its window in three arrays, others in two.",
                         given=f"window={window!r}")
    if not len(window) == len(stride) == len(dilation) or any(n < 1 for n in (*stride, *dilation)):
        raise ShapeError(f"{text} needs a stride and a dilation of at least 1 per window label.",
                         given=f"stride={stride} dilation={dilation}")
    if any(w.shape[rhs.index(c)] == 0 for c in window):
        raise ShapeError("a convolution needs a window of at least one element.", given=f"w: {w}")


def sliding(x, lhs, shape, rhs, window, stride, dilation):
    """A view of x with its windows: window axes hold places, and one axis per tap stands behind."""
    sizes, steps, taps, tap_steps = list(x.shape), list(x.strides), [], []
    for c, s, d in zip(window, stride, dilation):
        a, k = lhs.index(c), shape[rhs.index(c)]
        taps.append(k)
        tap_steps.append(x.strides[a] * d)
        sizes[a], steps[a] = places(x.shape[a], k, s, d), x.strides[a] * s
    if 0 in sizes:
        return np.zeros((*sizes, *taps), x.dtype)
    return as_strided(x, (*sizes, *taps), (*steps, *tap_steps), writeable=False)


# ---------------------------------------------------------------------------- the other direction

def spread(x, w, lhs, rhs, to, window, stride, dilation, inside=""):
    """out[i·s + a·d] += x[i] · w[a] along each label of `window`: the transposed convolution.

    n[*lhs] n[*rhs] → n[*to], of extent (n - 1)·s + (k - 1)·d + 1.
    With stride 1 it slides the reversed window over x between zeros; along labels of `inside`, x
    has these zeros already.  With stride s and dilation 1, a = s·t + p gives
    out[s·i + p] = sum t: x[i - t] · w[s·t + p]: a window of its own for each phase p.  Where s
    divides k, all have k/s elements, and the phase is an axis of w, and next to i an axis of the
    result; elsewhere there is a convolution `for_each_phase`.  With both, x gets zeros between its
    elements.
    """
    phases, wanted = {}, {}
    for c, s, d in zip(window, stride, dilation):            # before w is cut into other phases
        if s > 1 and d == 1 and w.shape[rhs.index(c)] % s:
            return for_each_phase(c, s, x, w, lhs, rhs, to, window, stride, dilation, inside)
    for c, s, d in zip(window, stride, dilation):
        k, n = w.shape[rhs.index(c)], x.shape[lhs.index(c)]
        wanted[c] = places(n, k, 1, d) if c in inside else (n - 1) * s + extent(k, d)
        if s > 1 and d == 1:
            phases[c] = fresh(lhs + rhs + to + "".join(phases.values()), 1)
            w, rhs = in_phases(w, rhs, c, s, phases[c])
    w = move.rev(w, axes=tuple(sorted(rhs.index(c) for c in window)))
    around = {c: (w.shape[rhs.index(c)] - 1) * d for c, d in zip(window, dilation)
              if c not in inside}
    between = {c: s - 1 for c, s, d in zip(window, stride, dilation) if s > 1 and d > 1}
    x = padded(x, [around.get(c, 0) for c in lhs], [between.get(c, 0) for c in lhs])
    order = "".join(c + phases.get(c, "") for c in to)
    out = conv_general(x, w, lhs=lhs, rhs=rhs, to=order, window=window,
                       stride=(1,) * len(window), dilation=dilation)
    if phases:
        merged = [n * (out.shape[order.index(phases[c])] if c in phases else 1)
                  for c, n in zip(order, out.shape) if c not in phases.values()]
        out = move.reshape(out, shape=tuple(merged))
    return fitted(out, [to.index(c) for c in window], [0] * len(window),
                  [wanted[c] for c in window])


def for_each_phase(c, s, x, w, lhs, rhs, to, window, stride, dilation, inside):
    """`spread` with stride s along c, which does not divide the window: one product per phase.

    Phase p has t = ⌈(k - p)/s⌉ elements of the window; all phases see x between the zeros of the
    longest.  Phases without elements are zeros.
    """
    a, b, o = lhs.index(c), rhs.index(c), to.index(c)
    n, k = x.shape[a], w.shape[b]
    most = -(-k // s)
    x = padded(x, [(most - 1) * (label == c) for label in lhs], [0] * x.ndim)
    stride = tuple(1 if label == c else v for label, v in zip(window, stride))
    phases = []
    for p in range(min(s, k)):
        t = -(-(k - p) // s)
        out = spread(along(x, a, most - t), along(w, b, p, s), lhs, rhs, to, window, stride,
                     dilation, inside + c)
        phases.append(move.reshape(out, shape=(*out.shape[:o + 1], 1, *out.shape[o + 1:])))
    out = move.concatenate(*phases, axis=o + 1)
    out = fitted(out, [o + 1], [0], [s])
    out = move.reshape(out, shape=(*out.shape[:o], out.shape[o] * s, *out.shape[o + 2:]))
    return fitted(out, [o], [0], [(n - 1) * s + k])


def along(x, axis, start, step=1):
    """x from `start` on along an axis, every step-th element."""
    if start == 0 and step == 1:
        return x
    starts, steps = [0] * x.ndim, [1] * x.ndim
    starts[axis], steps[axis] = start, step
    return move.slice(x, start=tuple(starts), stop=x.shape, stride=tuple(steps))


def in_phases(w, rhs, c, s, phase):
    """w with its axis c cut in two: every s-th element, and where they start."""
    a = rhs.index(c)
    shape = (*w.shape[:a], w.shape[a] // s, s, *w.shape[a + 1:])
    return move.reshape(w, shape=shape), rhs[:a + 1] + phase + rhs[a + 1:]


def padded(x, around, between):
    """x with zeros on both sides of each axis, and between its elements."""
    if not any(around) and not any(between):
        return x
    return move.pad(x, 0, low=tuple(around), high=tuple(around), interior=tuple(between))


def part(x, sizes):
    """The first elements of x along each axis."""
    return move.slice(x, start=(0,) * x.ndim, stop=tuple(sizes), stride=(1,) * x.ndim)


def fitted(x, axes, starts, sizes, value=0):
    """x along `axes` from `start` on, `size` elements; where x has none, the value."""
    low, start, stop, high = [0] * x.ndim, [0] * x.ndim, list(x.shape), [0] * x.ndim
    for a, first, n in zip(axes, starts, sizes):
        low[a], start[a] = max(0, min(-first, n)), min(max(0, first), x.shape[a])
        stop[a] = max(start[a], min(x.shape[a], first + n))
        high[a] = n - low[a] - (stop[a] - start[a])
    if start != [0] * x.ndim or tuple(stop) != x.shape:
        x = move.slice(x, start=tuple(start), stop=tuple(stop), stride=(1,) * x.ndim)
    if any(low) or any(high):
        x = move.pad(x, value, low=tuple(low), high=tuple(high), interior=(0,) * x.ndim)
    return x


conv_general = ConvGeneral("conv_general")
