"""Loops that indices cut are taken apart, so that the inner one of the two reads in a row.

    serial j in 0..1600                          serial j in 0..40
      d[i,j] = a[i/40,j/40] * b[i%40,j%40]  →      serial k in 0..40
                                                     d[i,40*j+k] = a[i/40,j] * b[i%40,k]

Tiles, repeated rows and pixels, Kronecker products, sums over a flat array: what `reshape` merges.
An inner loop that is short is written out at once.  A loop around others is taken apart where
guards ask which part of a step it is at: rows that are stacked in turns.  Relies on parts.py for
substitution and on short_loops.py; schedule.py calls `taken_apart`.
"""

from __future__ import annotations

from .. import index
from ..loop import Accumulate, For, Let, Store, nodes_of, statements
from ..records import replace
from .collapse import indices
from .parts import substituted
from .short_loops import chooses, written_out


def taken_apart(body, space, words):
    """The statements, with loops in two where that leaves no index of the inner one cut.

    words: the kernel's names.
    """
    out = []
    for s in body:
        if isinstance(s, For):
            s = replace(s, body=taken_apart(s.body, space, words))
            out += [in_two(part, space, words) for part in by_cuts(s)]
        else:
            out.append(s)
    return out


def by_cuts(loop):
    """The loop, or one of its stores whose indices are cut and one of the others, if these choose
    by its variable: the halves of rows are cut elsewhere.
    """
    if loop.kind == "reduce" or not all(isinstance(s, Store) for s in loop.body):
        return [loop]
    cut, others = [], []
    for s in loop.body:
        (cut if cuts([s], loop.var) else others).append(s)
    read = {n.data[0] for n in nodes_of(loop.body) if n.op == "load"}
    mine, other = ({s.buffer for s in some} for some in (cut, others))
    if not cut or not chooses(others, loop.var.bit) or read & (mine | other) or mine & other:
        return [loop]
    return [replace(loop, body=cut), replace(loop, body=others)]


def in_two(loop, space, words):
    """The loop, or two in its place."""
    v = loop.var
    innermost = all(isinstance(s, (Let, Store, Accumulate)) for s in loop.body)
    plain = loop.step == 1 and (innermost or loop.kind != "reduce" and asks(loop.body, v))
    for n in sorted(cuts(loop.body, v), reverse=True) if plain else ():
        if 1 < n < v.extent and v.extent % n == 0:
            outer, inner = space.variable(v.extent // n), space.variable(n)
            at = index.combine([(index.of(outer), n), (index.of(inner), 1)])
            body = substituted(loop.body, {v: at})
            if not cuts(body, inner):
                grain = -(-loop.grain // n)
                kind = "reduce" if loop.kind == "reduce" else "serial"
                made = For(outer, [For(inner, body, kind)], loop.kind, grain=grain)
                return made if chooses(body, outer.bit) else written_out(made, words, gathers=True)
    return loop


def asks(body, v):
    """Do guards ask for the rest of a division of v?"""
    return any(isinstance(a, index.Quot) and a.op == "%" and a.ix is index.of(v)
               for n in nodes_of(body) if n.op == "guard" for x, _, _ in n.data for a, _ in x.terms)


def cuts(body, v):
    """The numbers by which the indices of some statements divide what depends on v."""
    found = set()
    stack = [*indices(nodes_of(body)), *[s.index for s in statements(body) if isinstance(s, Store)]]
    while stack:
        for a, _ in stack.pop().terms:
            if isinstance(a, index.Quot) and a.free & v.bit:
                found.add(a.n)
                stack.append(a.ix)
    return found
