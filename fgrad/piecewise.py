"""Integer scalars that are affine in one loop variable piece by piece, as indices.

    x[max(i - 1, 0)]             x[0] for i in 0..1, x[i-1] for i in 1..n
    x[(i + 1) % n]               x[i+1] for i in 0..n-1, x[i+1-n] for i in n-1..n
    x[i - 1], where -1 is n - 1  x[n-1] for i in 0..1, x[i-1] for i in 1..n

Neighbours at the edges of a grid, periodic or not, mirrored signals.  Guards choose among the
pieces, and loops are cut by them: within each, what is read lies side by side.  `pull` rules of
gathers ask here where an index is not affine as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import index
from .scalar import walk
from .types import BOOL

MOST = 4                   # pieces
SIGNS = {"lt": (True, False, False), "le": (True, True, False), "gt": (False, False, True),
         "ge": (False, True, True), "eq": (False, True, False), "ne": (True, False, True)}


class Piece(NamedTuple):
    """slope * v + first for a variable v in lo..hi; of a condition, `first` says whether it holds.
    """
    lo: int
    hi: int
    slope: int
    first: int

    def at(self, v):
        return self.slope * v + self.first


def pieces(x, extent):
    """An integer node clamped to [0, extent), as [(range, Ix)], a range being (Ix, lo, hi) of which
    one always holds; or None.
    """
    found = clamped(x, extent) if extent else None
    if not found or len(found) > MOST:
        return None
    at = index.of(variable(x))
    return [((at, p.lo, p.hi), index.combine([(at, p.slope)], p.first) if p.hi - p.lo > 1 else
             index.ix({}, p.at(p.lo))) for p in found]


def clamped(x, extent):
    """The Pieces of an integer node clamped to [0, extent), or None."""
    found = forms(x)
    if found is None:
        return None
    low, high = [[Piece(0, found[-1].hi, 0, k)] for k in (0, extent - 1)]
    return joined(extremes(extremes(found, low, True), high, False))


def variable(x):
    """The one loop variable that a node knows, or None."""
    known = {a for n in walk(x) if n.op == "index" for a, _ in n.data.terms}
    (v,) = known if len(known) == 1 else (None,)
    return v if isinstance(v, index.Var) and v.step == 1 else None


def forms(x):
    """The Pieces of a node, from its arguments' on; or None."""
    v = variable(x)
    if v is None:
        return None
    known = {}
    for n in walk(x):
        args = [known[a] for a in n.args]
        if None in args or (n.dtype.kind not in "iu" and n.dtype != BOOL):
            return None
        found = form(n, args, v)
        if found is None or len(found) > 2 * MOST or not fit(found, n.dtype):
            return None
        known[n] = joined(found)
    return known[x]


def form(n, args, v):
    """The Pieces of a node, given those of its arguments; or None."""
    match n.op:
        case "const":
            return [Piece(0, v.extent, 0, int(n.data))]
        case "index":
            return [Piece(0, v.extent, index.stride(n.data, v), n.data.const)]
        case "cast" if n.dtype != BOOL:
            return args[0]
        case "add" | "sub" | "mul" if n.dtype != BOOL:
            return combined(n.op, *args)
        case "div" | "rem":
            return divided(n.op, *args)
        case "neg" | "abs":
            found = [Piece(p.lo, p.hi, -p.slope, -p.first) for p in args[0]]
            return found if n.op == "neg" else extremes(args[0], found, True)
        case "min" | "max":
            return extremes(*args, n.op == "max")
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne":
            return [Piece(p.lo, p.hi, 0, SIGNS[n.op][1 + sign(p, q)]) for p, q in apart(*args)]
        case "and" | "or" if n.dtype == BOOL:
            either = max if n.op == "or" else min
            return [Piece(p.lo, p.hi, 0, either(p.first, q.first)) for p, q in together(*args)]
        case "not" if n.dtype == BOOL:
            return [p._replace(first=not p.first) for p in args[0]]
        case "select":
            return [q if p.first else r for p, q, r in together(*args)]
    return None


def together(*args):
    """The pieces of several nodes, side by side where their ends are cut to one another's."""
    ends = sorted({end for found in args for p in found for end in (p.lo, p.hi)})
    out = []
    for lo, hi in zip(ends, ends[1:]):
        out.append([next(p for p in found if p.lo <= lo < p.hi)._replace(lo=lo, hi=hi)
                    for found in args])
    return out


def apart(a, b):
    """The same of two nodes, cut where one begins to be larger than the other, or equal to it."""
    out = []
    for p, q in together(a, b):
        slope, first = p.slope - q.slope, p.first - q.first
        ends = {p.lo, p.hi}
        if slope:
            zero = -first // slope                       # the last place at or in front of it
            ends |= {k for k in (zero, zero + 1) if p.lo < k < p.hi}
        ends = sorted(ends)
        out += [(p._replace(lo=lo, hi=hi), q._replace(lo=lo, hi=hi))
                for lo, hi in zip(ends, ends[1:])]
    return out


def sign(p, q):
    """-1, 0 or 1: how two pieces that are `apart` compare."""
    a, b = p.at(p.lo), q.at(p.lo)
    return (a > b) - (a < b)


def extremes(a, b, largest):
    """The larger, or the smaller, of two; where they are equal, the one that goes on."""
    out = []
    for p, q in apart(a, b):
        way = sign(p, q) or (1 if bool(p.slope) == largest else -1)
        out.append(p if (way > 0) == largest else q)
    return out


def combined(op, a, b):
    """A sum, a difference, or a product by a number; or None."""
    out = []
    for p, q in together(a, b):
        if op == "mul":
            p, q = (p, q) if not q.slope else (q, p)
            if q.slope:
                return None
            out.append(Piece(p.lo, p.hi, p.slope * q.first, p.first * q.first))
        else:
            c = 1 if op == "add" else -1
            out.append(Piece(p.lo, p.hi, p.slope + c * q.slope, p.first + c * q.first))
    return out


def divided(op, a, b):
    """A quotient or remainder by a number, of what is not negative and passes few multiples."""
    out = []
    for p, q in together(a, b):
        n, ends = q.first, sorted([p.at(p.lo), p.at(p.hi - 1)])
        if q.slope or n <= 0 or ends[0] < 0 or ends[1] // n - ends[0] // n >= MOST:
            return None
        parts = [p]
        for k in range(ends[0] // n + 1, ends[1] // n + 1):      # cut where it comes to k * n
            parts = [r for s in parts for r, _ in apart([s], [Piece(s.lo, s.hi, 0, k * n)])]
        for s in parts:
            k = s.at(s.lo) // n
            out.append(Piece(s.lo, s.hi, 0, k) if op == "div" else
                       s._replace(first=s.first - k * n))
    return out


def joined(found):
    """Pieces, with neighbours that are one in one; a single place belongs to what goes on there."""
    out = []
    for p in found:
        last = out.pop() if out else p._replace(hi=p.lo)
        if last[2:] == p[2:] or last.hi - last.lo > 1 == p.hi - p.lo and agree(last, p, p.lo):
            out.append(last._replace(hi=p.hi))
        elif last.hi - last.lo == 1 and agree(last, p, last.lo):
            out.append(p._replace(lo=last.lo))
        else:
            out += [last, p]
    return out


def agree(p, q, v):
    """Do two pieces have the same value at a place?"""
    return p.at(v) == q.at(v)


def fit(found, dtype):
    """Does the dtype hold all values?"""
    if dtype == BOOL:
        return True
    limits = np.iinfo(dtype)
    return all(limits.min <= p.at(k) <= limits.max for p in found for k in (p.lo, p.hi - 1))
