"""The one contraction: sums of products over labelled axes.

    dot_general[ij,jk->ik] a b        a @ b
    dot_general[bij,bkj->bik] a b     per batch, a @ b.T

A label is one character.  In both operands and in the result: batch.  In both operands only:
summed.  In one operand and in the result: kept.  In one operand only: summed before.  Transposes
only swap labels, so they move no data.  In compiled code every product goes to the contraction
engine.
"""

from __future__ import annotations

import functools
from math import prod

import numpy as np

from .. import scalar
from ..core import Primitive, _current
from ..errors import DtypeError, ShapeError
from ..types import ARITHMETIC, F16, F32, SHORT, ArrayType
from . import move
from .silence import quiet, silence

SPARE = "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA"


class DotGeneral(Primitive):
    """Sum of products over the labels that `to` lacks: dot_general[ij,jk->ik] is a @ b.

    n[*lhs] n[*rhs] → n[*to]      f16 products accumulate in f32 and round once.
    Raises ShapeError where one label has two sizes, DtypeError for different dtypes.
    """
    linear_in = (0, 1)
    dtypes = ARITHMETIC

    def type(self, a, b, /, *, lhs, rhs, to):
        text = f"[{lhs},{rhs}->{to}]"
        if a.dtype != b.dtype or a.dtype not in ARITHMETIC:
            raise DtypeError(f"dot_general needs two arrays of numbers of one dtype, "
                             f"not {SHORT[a.dtype]} and {SHORT[b.dtype]}.",
                             given=[f"a: {a}", f"b: {b}"], fix="convert with astype first")
        check_labels(a, b, lhs, rhs, to, text)
        sizes = dict(zip(lhs, a.shape))
        for label, n in zip(rhs, b.shape):
            if sizes.setdefault(label, n) != n:
                raise ShapeError(
                    f"dot_general cannot contract axes of size {sizes[label]} and {n}.",
                    given=[f"a: {a}", f"b: {b}"],
                    expected=f"equal sizes for label {label} in {text}",
                    fix=fixes(a, b, lhs, rhs, label))
        return ArrayType(a.dtype, tuple(sizes[label] for label in to))

    def numpy(self, a, b, /, *, lhs, rhs, to):
        if a.dtype != b.dtype:
            raise TypeError("operands of two dtypes")        # `type` says it better
        if a.dtype == F16:
            return contraction(lhs, rhs, to)(a.astype(F32), b.astype(F32)).astype(F16)
        return contraction(lhs, rhs, to)(a, b)

    def transpose(self, ct, i, a, b, /, *, lhs, rhs, to):
        params = labels_of_transpose(i, lhs, rhs, to)
        if i == 0:
            return spread(_current.get().process(self, (ct, b), params), lhs, params, a.shape)
        return spread(_current.get().process(self, (a, ct), params), rhs, params, b.shape)

    def batch(self, dims, a, b, /, *, lhs, rhs, to):
        label = next(c for c in SPARE if c not in lhs + rhs)
        lhs, rhs = [s if d is None else s[:d] + label + s[d:] for s, d in zip((lhs, rhs), dims)]
        return self(a, b, lhs=lhs, rhs=rhs, to=label + to), 0

    def pull(self, a, b, /, *, lhs, rhs, to):
        summed = "".join(sorted(set(lhs + rhs) - set(to)))
        sizes = dict(zip(lhs + rhs, a.shape + b.shape))

        def total(i):
            def product(r):
                at = dict(zip(to + summed, (*i, *r)))
                return scalar.apply("mul", a(tuple(at[c] for c in lhs)),
                                    b(tuple(at[c] for c in rhs)))
            return scalar.reduce("sum", [sizes[c] for c in summed], product)
        return total


@functools.lru_cache(maxsize=4096)
def labels_of_transpose(i, lhs, rhs, to):
    """The parameters of the product that gives the cotangent of operand i."""
    if i == 0:
        return {"lhs": to, "rhs": rhs, "to": "".join(c for c in lhs if c in to + rhs)}
    return {"lhs": lhs, "rhs": to, "to": "".join(c for c in rhs if c in to + lhs)}


def spread(ct, labels, params, shape):
    """The cotangent with all `labels`; it repeats along those that were summed alone."""
    kept = params["to"]
    if kept == labels:
        return ct
    axes = tuple(a for a, c in enumerate(labels) if c not in kept)
    return move.broadcast(ct, shape=shape, axes=axes)


def check_labels(a, b, lhs, rhs, to, text):
    """Raises ShapeError unless each axis has one label, none comes twice, and none is made up."""
    for name, x, labels in (("a", a, lhs), ("b", b, rhs)):
        if len(labels) != x.ndim or len(set(labels)) != len(labels):
            raise ShapeError(f"dot_general{text} needs one label per axis of {name}, each once.",
                             given=[f"a: {a}", f"b: {b}"])
    if len(set(to)) != len(to) or set(to) - set(lhs + rhs):
        raise ShapeError(
            f"dot_general{text} has labels in its result that its operands lack, or one twice.")


def fixes(a, b, lhs, rhs, label):
    """Likely mends of a mismatch: another size of b, or a transposed operand."""
    n = a.shape[lhs.index(label)]
    shape = tuple(n if c == label else k for c, k in zip(rhs, b.shape))
    out = f"b of shape {shape}"
    return out + ", or transpose b" if b.ndim == 2 and n in b.shape else out


# ---------------------------------------------------------------------------- the value, by NumPy

def dot(a, b):
    """NumPy's dot, silent about inf and NaN; the method has half of np.dot's overhead."""
    return silence().run(np.ndarray.dot, a, b)


FORMS = {          # is the summed label last in a, and first in b?
    (True, True): dot,
    (True, False): lambda a, b: dot(a, b.T),
    (False, True): lambda a, b: dot(a.T, b),
    (False, False): lambda a, b: dot(a.T, b.T)}


@functools.lru_cache(maxsize=4096)
def contraction(lhs, rhs, to):
    """The NumPy function for these labels, silent about inf and NaN.

    Two matrices: `dot` of them, transposed as needed.
    """
    summed = set(lhs) & set(rhs) - set(to)
    if len(lhs) == len(rhs) == len(to) == 2 and len(summed) == 1:
        k = summed.pop()
        product = FORMS[lhs[1] == k, rhs[0] == k]
        straight = to == lhs.replace(k, "") + rhs.replace(k, "")
        return product if straight else lambda a, b: product(a, b).T
    if lhs[-1:] == rhs[:1] == rhs and len(rhs) == 1 and to == lhs[:-1]:
        return dot                                           # matrix or vector times vector
    if len(lhs) == 1 and len(rhs) == 2 and len(to) == 1 and len(summed) == 1:
        return dot if rhs[0] == lhs else lambda a, b: dot(b, a)
    return quiet(general(lhs, rhs, to))


def general(lhs, rhs, to):
    """Operands brought to [batch, rows, summed] and [batch, summed, columns], then one matmul."""
    both = set(lhs) & set(rhs)
    batch = "".join(c for c in to if c in both)
    summed = "".join(c for c in lhs if c in both and c not in to)
    rows = "".join(c for c in to if c in lhs and c not in both)
    columns = "".join(c for c in to if c in rhs and c not in both)
    order = batch + rows + columns
    back = tuple(order.index(c) for c in to)

    def contract(a, b):
        a, b = alone(a, lhs, batch + rows + summed), alone(b, rhs, batch + summed + columns)
        sizes = dict(zip(batch + rows + summed, a.shape))
        sizes |= dict(zip(batch + summed + columns, b.shape))
        count = lambda labels: prod(sizes[c] for c in labels)
        left = a.reshape(count(batch), count(rows), count(summed))
        right = b.reshape(count(batch), count(summed), count(columns))
        out = np.matmul(left, right)
        return out.reshape([sizes[c] for c in order]).transpose(back)
    return contract


def alone(x, labels, wanted):
    """x with its axes as `wanted`; labels that are not wanted are summed away."""
    axes = tuple(a for a, c in enumerate(labels) if c not in wanted)
    if axes:
        x = np.add.reduce(x, axes, x.dtype)
        labels = "".join(c for c in labels if c in wanted)
    return x.transpose([labels.index(c) for c in wanted])


dot_general = DotGeneral("dot_general")
