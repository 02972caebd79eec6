"""Index expressions: hash-consed affine forms with ranges.

    Ix = constant + Σ coefficient · atom

An atom is a loop variable (Var), a quotient or remainder that would not simplify (Quot), or a value
computed at run time that is known to lie in a range (Dynamic: a gather's index).  Ranges let the
div and mod of reshapes vanish.  Each kernel has one Space, which holds its table and hands out its
variables, one bit of the `free` masks each; nodes of different kernels never meet.
"""

from __future__ import annotations

import math
import threading
from types import MappingProxyType


class Space:
    """The hash-consing table and the variables of one kernel; `with space:` makes it current."""

    def __init__(self):
        self.table, self.count, self.before = {}, 0, []

    def variable(self, extent, name=None, step=1):
        """A new loop variable 0 <= v < extent."""
        self.count += 1
        return Var(name or f"r{self.count}", extent, 1 << self.count, step)

    def __enter__(self):
        self.before.append(getattr(_local, "space", None))
        _local.space = self
        return self

    def __exit__(self, *_):
        _local.space = self.before.pop()


_local = threading.local()
LATER = 1 << 40            # the order of atoms: variables, then others as they were made


def space():
    """The current Space."""
    return _local.space


class Var:
    """A loop variable, 0 <= v < extent, in steps of `step`.  Compared by identity."""
    __slots__ = ("name", "extent", "bit", "step", "order", "free", "hi")
    lo, nodes = 0, ()

    def __init__(self, name, extent, bit, step=1):
        self.name, self.extent, self.bit = name, extent, bit
        self.order, self.free = bit.bit_length(), bit
        self.go_by(step)

    def go_by(self, step):
        """Lets it run in steps; `hi` is its last value."""
        self.step, self.hi = step, max(0, (self.extent - 1) // step * step)

    def __repr__(self):
        return self.name


class Quot:
    """ix // n (op "/") or ix % n (op "%"), ix >= 0."""
    __slots__ = ("op", "ix", "n", "lo", "hi", "free", "nodes", "order")

    def __init__(self, op, ix, n, lo, hi):
        self.op, self.ix, self.n, self.lo, self.hi = op, ix, n, lo, hi
        self.free, self.nodes = ix.free, ix.nodes
        self.order = LATER + len(_local.space.table)


class Dynamic:
    """The value of a scalar node of an integer dtype, known to lie in [0, extent)."""
    __slots__ = ("node", "lo", "hi", "free", "nodes", "order")

    def __init__(self, node, extent):
        self.node, self.lo, self.hi, self.free, self.nodes = node, 0, extent - 1, node.free, (node,)
        self.order = LATER + len(_local.space.table)


class Ix:
    """constant + Σ coefficient · atom, with the range it can take.  Made by `whole` only.

    nodes: the scalar nodes that it contains, as run-time indices.
    """
    __slots__ = ("terms", "const", "free", "lo", "hi", "nodes")

    def __init__(self, terms, const):
        free, lo, hi, nodes = 0, const, const, ()
        for a, c in terms:
            free |= a.free
            nodes += a.nodes
            if c > 0:
                lo += c * a.lo
                hi += c * a.hi
            else:
                lo += c * a.hi
                hi += c * a.lo
        self.terms, self.const, self.free, self.nodes = terms, const, free, nodes
        self.lo, self.hi = lo, hi

    def __repr__(self):
        return text(self)


def ix(terms, const=0):
    """The Ix of {atom: coefficient} plus a constant."""
    terms = [(a, c) for a, c in terms.items() if c]
    if len(terms) > 1:
        terms.sort(key=lambda t: t[0].order)
    return whole(tuple(terms), const)


def whole(terms, const=0):
    """The Ix of (atom, coefficient) pairs in order, plus a constant."""
    table, key = _local.space.table, ("ix", terms, const)
    found = table.get(key)
    if found is None:
        found = table[key] = Ix(terms, const)
    return found


def of(atom):
    """An atom, or an int, as an Ix.  A variable that can only be 0 is 0."""
    if isinstance(atom, int):
        return whole((), atom)
    return whole(()) if atom.hi == atom.lo == 0 else whole(((atom, 1),))


def combine(parts, const=0):
    """const + the sum of coefficient · Ix over (Ix, coefficient) pairs."""
    terms = {}
    for x, k in parts:
        const += k * x.const
        for a, c in x.terms:
            terms[a] = terms.get(a, 0) + k * c
    return ix(terms, const) if len(terms) < 2 else ix(*rejoined(terms, const))


def rejoined(terms, const):
    """(terms, constant) with c·n·(x/n) + c·(x%n) put together as c·x, and c·n·((x/n)%m) + c·(x%n)
    as c·(x%mn).

    A flat index that was cut up is flat again.
    """
    rests = [a for a in terms if a.__class__ is Quot and a.op == "%"]
    while rests:
        a = rests.pop()
        if not terms.get(a):
            continue
        rest, joined = go_on(a, terms)
        if joined is None:
            continue
        del terms[rest]
        c = terms.pop(a)
        const += c * joined.const
        for b, d in joined.terms:
            terms[b] = terms.get(b, 0) + c * d
        rests = [b for b in terms if b.__class__ is Quot and b.op == "%"]
    return terms, const


def go_on(a, terms):
    """(the atom among the terms of a sum that goes on where the remainder `a` ends, an Ix for
    both), or Nones.
    """
    c, quotient = terms[a] * a.n, divide(a.ix, a.n)[0]
    for b, d in terms.items():
        if d == c and of(b) is quotient:
            return b, a.ix
        if d == c and b.__class__ is Quot and b.op == "%" and b.ix is quotient:
            return b, of(quotient_atom("%", a.ix, a.n * b.n))
    return None, None


def plus(x, n):
    """x + n for an int or Ix n."""
    return combine([(x, 1)], n) if isinstance(n, int) else combine([(x, 1), (n, 1)])


def dynamic(node, extent):
    """The Ix of a scalar node whose value lies in [0, extent); the caller has clamped it."""
    table, key = _local.space.table, ("dynamic", node, extent)
    if key not in table:
        table[key] = Dynamic(node, extent)
    return ix({}) if extent <= 1 else ix({table[key]: 1})


def quotient_atom(op, x, n):
    table, key = _local.space.table, (op, x, n)
    if key not in table:
        lo, hi = (x.lo // n, x.hi // n) if op == "/" else (0, n - 1)
        table[key] = Quot(op, x, n, lo, hi)
    return table[key]


def divide(x, n):
    """(x // n, x % n).  Terms that n divides leave; nothing is divided if the rest is in [0, n)."""
    if n == 1:
        return x, ix({})
    out = {a: c // n for a, c in x.terms if c % n == 0}
    rest = ix({a: c for a, c in x.terms if c % n}, x.const % n)
    if rest.lo < 0:                                            # then Quot would be negative
        rest = ix(dict(rest.terms), rest.const + -(rest.lo // n) * n)
    quotient = ix(out, (x.const - rest.const) // n)
    if 0 <= rest.lo and rest.hi < n:
        return quotient, rest
    for g in sorted({math.gcd(n, c) for _, c in rest.terms} - {1}, reverse=True):
        small = ix({a: c for a, c in rest.terms if c % g}, rest.const % g)
        if 0 <= small.lo and small.hi < g:                     # (g·i + j) / gm = i/m for j < g
            large = ix({a: c // g for a, c in rest.terms if c % g == 0}, rest.const // g)
            q, r = divide(large, n // g)
            return combine([(quotient, 1), (q, 1)]), combine([(r, g), (small, 1)])
    q, r = digits(rest, n)
    return combine([(quotient, 1), (q, 1)]), r


def digits(x, n):
    """(x // n, x % n) where no part of x leaves: of a quotient or remainder its own quotient."""
    if len(x.terms) == 1 and x.const == 0:
        (a, c), = x.terms
        if isinstance(a, Quot) and c == 1:
            if a.op == "/":                                    # (y/k)/n = y/kn
                return divide(a.ix, a.n * n)[0], of(quotient_atom("%", x, n))
            if a.n % n == 0:                                   # (y%kn)/n = (y/n)%k, (y%kn)%n = y%n
                q, r = divide(a.ix, n)
                return divide(q, a.n // n)[1], r
    return of(quotient_atom("/", x, n)), of(quotient_atom("%", x, n))


def flat(index, shape):
    """The row-major offset of an index; along an axis of one element that is always 0."""
    stride, parts = 1, []
    for x, n in zip(reversed(index), reversed(shape)):
        if n != 1:
            parts.append((x, stride))
        stride *= n
    return combine(parts)


def unflat(x, shape):
    """The index at a row-major offset."""
    out = []
    for n in reversed(shape[1:]):
        x, r = divide(x, max(n, 1))
        out.append(r)
    return (x, *reversed(out)) if shape else ()


def reindex(index, old, new):
    """The index into `new` of the element that `index` reads in `old`: shapes of equal size.

    Both shapes are cut into runs of axes with equal products first, so that a reshape that keeps
    leading or trailing axes needs no division for them.
    """
    if 0 in old or 0 in new:
        return (ix({}),) * len(new)                                      # nothing is ever read
    out, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        i0, j0, a, b = i, j, 1, 1
        while True:
            if a == b and (i > i0 or j > j0):
                break
            if j >= len(new) or (i < len(old) and a <= b):
                a, i = a * old[i], i + 1
            else:
                b, j = b * new[j], j + 1
        while i < len(old) and old[i] == 1:
            i += 1
        while j < len(new) and new[j] == 1:
            j += 1
        out += unflat(flat(index[i0:i], old[i0:i]), new[j0:j])
    return tuple(out)


def substitute(x, to, inside=None):
    """x with each Var in `to` replaced by its Ix, and the node of each Dynamic by inside(node)."""
    if (inside is None or not x.nodes) and not any([x.free & v.bit for v in to]):
        return x
    parts = []
    for a, c in x.terms:
        if isinstance(a, Var):
            new = to.get(a)
            parts.append((of(a) if new is None else new, c))
        elif isinstance(a, Dynamic):
            parts.append((of(a) if inside is None else dynamic(inside(a.node), a.hi + 1), c))
        else:
            q, r = divide(substitute(a.ix, to, inside), a.n)
            parts.append((q if a.op == "/" else r, c))
    return combine(parts, x.const)


def stride(x, v):
    """The coefficient of the variable v in x."""
    return next((c for a, c in x.terms if a is v), 0)


def is_affine(x, v):
    """Is v in x only as a plain term, not inside a quotient, remainder or run-time index?"""
    return not any(a.free & v.bit for a, _ in x.terms if not isinstance(a, Var))


def divides(x):
    """Does x hold a quotient or remainder?"""
    return any(isinstance(a, Quot) for a, _ in x.terms)


NO_TEXTS = MappingProxyType({})


def text(x, known=NO_TEXTS):
    """`4*i+j+1`.  known: scalar nodes → their texts; of others they are worked out."""
    out = []
    for a, c in sorted(x.terms, key=lambda t: (-t[1], repr(t[0]) if isinstance(t[0], Var) else "")):
        match a:
            case Var(): s = a.name
            case Quot():
                inner = text(a.ix, known)
                s = f"({f'({inner})' if '+' in inner else inner}{a.op}{a.n})"
            case _: s = f"<{known.get(a.node) or a.node}>"
        out.append(s if c == 1 else f"{c}*{s}")
    return "+".join(out + [str(x.const)] * (x.const != 0 or not out)).replace("+-", "-")
