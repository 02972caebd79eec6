"""Borders: a loop is cut where its guards change, so that they are decided in each piece.

    serial k in 0..28                            serial k in 0..1      … 0.0 …
      … (x[k-1] if 0 <= k-1 < 28 else 0.0) …  →  serial k in 0..27     … x[k] …

A convolution with padding that is written out over its window then tests nothing in the middle,
and the parts of a concatenation are loops of their own.  Relies on parts.py for substitution and
costs; schedule.py calls `cut`.
"""

from __future__ import annotations

from dataclasses import replace

from .. import index, scalar
from ..loop import For, Let, Start
from .jam import renamed
from .parts import cost_of, substituted

GUARDS = 2                 # of a loop from which it is worth cutting
LONG = 64                  # iterations of pieces that are worth it, however many
PARTS = 16                 # pieces of a parallel loop, each a kernel
NODES = 600                # scalar nodes that all copies of a loop's body may have


def cut(body, space, region, words, copies=None):
    """The statements with loops cut; each may be written so many times.

    region: the cost of a part of a parallel loop.  words: the kernel's names.
    """
    out = []
    for s in body:
        if isinstance(s, For):
            size = sum(len(scalar.walk(e)) for e in expressions(s.body))
            most = NODES // max(size, 1) if copies is None else copies
            out += pieces(s, space, region, words, most)
        else:
            out.append(s)
    return out


def pieces(loop, space, region, words, copies):
    """The loop in pieces, or whole, with the loops inside of it cut.

    Those of a parallel loop become kernels, others stand side by side: with names of their own.
    """
    ends = [] if loop.kind == "reduce" or loop.step != 1 else places(loop)
    count, sizes = len(ends) - 1, [b - a for a, b in zip(ends, ends[1:])]
    most = min(copies, PARTS) if loop.kind == "parallel" else copies
    small = count > 1 and min(sizes) * iterations(loop.body) < LONG
    if not 2 <= count <= most or small and 2 * max(sizes) < ends[-1]:
        return [replace(loop, body=cut(loop.body, space, region, words, copies))]
    out, own = [], list(names_of(loop.body))
    for start, end in zip(ends, ends[1:]):
        v = space.variable(end - start)
        body = substituted(loop.body, {loop.var: index.plus(index.of(v), start)})
        if start and loop.kind != "parallel":
            body = renamed(body, {name: words.unique(name) for name in own})
        piece = replace(loop, var=v, body=cut(body, space, region, words, copies // count))
        out.append(inner_parallel(piece, region) if loop.kind == "parallel" else piece)
    return out


def iterations(body):
    """How often the innermost statements run at most."""
    return max([s.var.extent * iterations(s.body) for s in body if isinstance(s, For)], default=1)


def inner_parallel(loop, region):
    """A parallel loop in parts that are worth it; if it runs once, the one inside of it."""
    once = loop.var.extent == 1 and len(loop.body) == 1 and isinstance(loop.body[0], For)
    if once and loop.body[0].kind == "serial":
        return inner_parallel(replace(loop.body[0], kind="parallel"), region)
    return replace(loop, grain=-(-region // max(1, cost_of(loop.body))))


def names_of(body):
    """The names that statements give, of values and of sums that start there."""
    for s in body:
        if isinstance(s, For):
            yield from names_of(s.body)
        elif isinstance(s, (Let, Start)):
            yield s.name


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
