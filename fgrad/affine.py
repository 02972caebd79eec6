"""Integer scalars that are affine in the loop variables, as indices.

    x[hop * i + j]  for  i = arange(frames), j = arange(length)      is read like a slice of x
    x[(i + 3) % n],  x[jnp.clip(i - 1, 0, n - 1)] where i > 0,  lax.dynamic_slice under vmap

An index that a program computes from counters (`arange`, a loop's step) is often a sum of loop
variables and numbers, once what is known of their ranges has decided its comparisons.  Then it is
an Ix, and no run-time index: what it reads lies side by side, and loops can be cut and merged by
it.  `pull` rules of gathers, scatters and slices ask here; nothing wraps around, by check.
"""

from __future__ import annotations

import numpy as np

from . import index
from .scalar import apply, cast, const, walk
from .types import BOOL, I32, I64

FOLLOWED = frozenset("""cast neg abs add sub mul div rem min max select not and or lt gt le ge eq ne
    """.split())               # instructions that the arguments may decide


def clamped(x, extent):
    """An integer node as an Ix, clamped to [0, extent)."""
    known = index_of(x)
    if known is not None and 0 <= known.lo and known.hi < extent:
        return known
    x = cast(x, I64) if x.dtype not in (I32, I64) else x
    low = apply("max", x, const(0, x.dtype))
    return index.dynamic(apply("min", low, const(max(extent - 1, 0), x.dtype)), extent)


def index_of(x):
    """The Ix that an integer node is: a sum of indices, numbers and what lies in 0..n; or None."""
    return found(x) if x.dtype.kind in "iu" else None


def decided(x):
    """Does a condition on integers that are affine always hold, or never?  True, False; or None."""
    return found(x) if x.dtype == BOOL else None


def found(x):
    """The Ix of an integer node, what is decided of a condition; arguments first, each once."""
    table = index.space().table
    if ("affine", x) not in table:
        missing = lambda n: n.args if n.op in FOLLOWED and ("affine", n) not in table else ()
        for n in walk(x, below=missing):
            if ("affine", n) not in table:
                table["affine", n] = truth(n) if n.dtype == BOOL else within(form(n), n.dtype)
    return table["affine", x]


def form(x):
    """The Ix of an integer node, whether or not the dtype holds all its values; or None."""
    match x.op:
        case "const":
            return index.ix({}, x.data)
        case "index":
            return x.data if x.dtype.kind in "iu" else None
        case "cast" if x.args[0].dtype == BOOL:
            known = decided(x.args[0])
            return None if known is None else index.ix({}, int(known))
        case "cast":
            return index_of(x.args[0])
        case "add" | "sub" | "mul" | "div" | "rem":
            a, b = map(index_of, x.args)
            return None if a is None or b is None else combined(x.op, a, b)
        case "neg" | "abs":
            a = index_of(x.args[0])
            if a is None or x.op == "abs" and a.lo < 0 < a.hi:
                return None
            return a if x.op == "abs" and a.lo >= 0 else index.combine([(a, -1)])
        case "min" | "max":
            return extreme(x)
        case "select":
            known = decided(x.args[0])
            return None if known is None else index_of(x.args[1 if known else 2])
    return None


def combined(op, a, b):
    """A sum, a difference, or a product, quotient or remainder by a number; or None."""
    if op in ("add", "sub"):
        return index.combine([(a, 1), (b, 1 if op == "add" else -1)])
    if op == "mul":
        a, b = (b, a) if not a.terms else (a, b)
        return index.combine([(a, b.const)]) if not b.terms else None
    if b.terms or b.const <= 0 or a.lo < 0:              # elsewhere they round towards zero
        return None
    return index.divide(a, b.const)[op == "rem"]


def extreme(x):
    """The larger or the smaller of two, where ranges tell which; or what is clamped to 0..n."""
    a, b = map(index_of, x.args)
    if a is not None and b is not None:
        apart = index.combine([(a, 1), (b, -1)])
        if apart.lo >= 0 or apart.hi <= 0:
            return a if (apart.lo >= 0) == (x.op == "max") else b
    low = x.args[0]
    if x.op == "min" and low.op == "max" and low.args[1].op == x.args[1].op == "const" and (
            low.args[1].data == 0 <= x.args[1].data):
        return index.dynamic(x, x.args[1].data + 1)
    return None


def truth(x):
    """Whether a condition always holds, or never; or None."""
    match x.op:
        case "const":
            return bool(x.data)
        case "not":
            known = decided(x.args[0])
            return None if known is None else not known
        case "and" | "or":
            known, last = {decided(a) for a in x.args}, x.op == "or"    # what settles it
            return last if last in known else None if None in known else not last
        case "lt" | "gt" | "le" | "ge" | "eq" | "ne":
            return compared(x.op, *x.args)
    return None


def compared(op, a, b):
    """The same of a comparison of two nodes."""
    match op:
        case "gt" | "le":
            known = compared("lt", b, a)                 # a > b is b < a, a <= b is its opposite
            return known if op == "gt" or known is None else not known
        case "ge" | "ne":
            known = compared("lt" if op == "ge" else "eq", a, b)
            return None if known is None else not known
    if a.dtype == BOOL:
        both = {decided(a), decided(b)}
        return None if op == "lt" or None in both else len(both) == 1
    x, y = index_of(a), index_of(b)
    if x is None or y is None:
        return None
    apart = index.combine([(x, 1), (y, -1)])
    if op == "lt":
        return True if apart.hi < 0 else False if apart.lo >= 0 else None
    return False if apart.lo > 0 or apart.hi < 0 else True if apart.lo == apart.hi else None


def within(at, dtype):
    """An Ix whose values an integer dtype holds, all of them; or None."""
    if at is None or dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype)
    return at if limits.min <= at.lo and at.hi <= limits.max else None
