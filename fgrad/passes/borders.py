"""Borders: a serial loop is cut where its guards change, so that they are decided in each piece.

    serial k in 0..28                            serial k in 0..1      … 0.0 …
      … (x[k-1] if 0 <= k-1 < 28 else 0.0) …  →  serial k in 0..27     … x[k] …

A convolution with padding that is written out over its window then tests nothing in the middle.
Relies on parts.py for substitution; schedule.py calls `cut`.
"""

from __future__ import annotations

from dataclasses import replace

from .. import index, scalar
from ..loop import For, Start, Store
from .parts import substituted

GUARDS = 3                 # of a loop from which it is worth cutting
NODES = 600                # scalar nodes that all copies of a loop's body may have


def cut(body, space, copies=None):
    """The statements with serial loops cut; each may be written so many times."""
    out = []
    for s in body:
        if isinstance(s, For):
            size = sum(len(scalar.walk(e)) for e in expressions(s.body))
            out += pieces(s, space, NODES // max(size, 1) if copies is None else copies)
        else:
            out.append(s)
    return out


def pieces(loop, space, copies):
    """The loop in pieces, or whole, with the loops inside of it cut."""
    whole = loop.kind != "serial" or loop.step != 1 or names_values(loop.body)
    ends = [] if whole else places(loop)
    count = len(ends) - 1
    if not 2 <= count <= copies or 2 * max(b - a for a, b in zip(ends, ends[1:])) < ends[-1]:
        return [replace(loop, body=cut(loop.body, space, copies))]
    out = []
    for start, end in zip(ends, ends[1:]):
        v = space.variable(end - start)
        body = substituted(loop.body, {loop.var: index.plus(index.of(v), start)})
        out.append(replace(loop, var=v, body=cut(body, space, copies // count)))
    return out


def names_values(body):
    """Does a statement name a value, which copies side by side would do again?"""
    return any(names_values(s.body) if isinstance(s, For) else not isinstance(s, Store)
               for s in body)


def places(loop):
    """0, where guards that depend on the loop's variable alone change, and its end; or nothing."""
    v, found = loop.var, []
    nodes = {}
    for e in expressions(loop.body):
        scalar.walk(e, nodes)
    for n in nodes:
        if n.op == "guard":
            found += [r for r in n.data if r[0].free == v.bit and index.is_affine(r[0], v)]
    if len(found) < GUARDS:
        return []
    ends = {0, v.extent}
    for x, lo, hi in found:
        a = index.stride(x, v)
        for bound in (lo, hi):                       # the first k that lies on its other side
            at = -((x.const - bound) // a) if a > 0 else (x.const - bound) // -a + 1
            ends.add(min(max(at, 0), v.extent))
    return sorted(ends)


def expressions(body):
    """The scalar expressions of all statements within."""
    for s in body:
        if isinstance(s, For):
            yield from expressions(s.body)
        elif not isinstance(s, Start):
            yield s.expr
