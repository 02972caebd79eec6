"""Which loop fetches the rows of a large array before they are used.

Loops behind each other often read the same row: its maximum, a sum of powers, quotients.  All but
the first find it in the cache, and while they compute, memory has time for a later row.  Relies on
`loop` and on the passes for the cost of a loop; `values` and `emit` rely on it.

    fetchers(kernel.body)      # {(buffer, row): (the first For, the one that fetches it)}
"""

from __future__ import annotations

from ... import index, scalar
from ...loop import For, Store
from ...passes.parts import cost_of

LARGE = 1 << 20            # bytes of an array that the second cache may lack


def row_of(x, v):
    """The index of the first element of the row that x runs along with v."""
    return index.ix({a: c for a, c in x.terms if a is not v}, x.const)


def is_large_row(buffer, x):
    """Is it worth while to fetch what lies at an index?"""
    return buffer.type.nbytes >= LARGE and not x.nodes


def fetchers(body):
    """(buffer, row) → (the first vector loop that uses it, the one that fetches it), for rows that
    several of them use.

    That is the one with most work among the first and those that sum up: they store little.
    """
    uses = {}
    for loop in vector_loops(body):
        for buffer, x in dict.fromkeys(used_by(loop.body)):
            if is_large_row(buffer, x) and index.is_affine(x, loop.var):
                uses.setdefault((buffer, row_of(x, loop.var)), {})[id(loop)] = loop
    return {row: chosen(list(loops.values())) for row, loops in uses.items() if len(loops) > 1}


def chosen(loops):
    """The first of the loops that use a row, and the one that fetches it."""
    first, *others = loops
    return first, max([first, *(s for s in others if s.kind == "reduce")],
                      key=lambda loop: cost_of(loop.body))


def vector_loops(body):
    """The loops of vectors in some statements, in order."""
    for s in body:
        if isinstance(s, For):
            yield from [s] if s.width > 1 else vector_loops(s.body)


def used_by(statements):
    """(buffer, index) of what statements read and store, in order."""
    for s in statements:
        if hasattr(s, "expr"):
            yield from (n.data for n in scalar.walk(s.expr) if n.op == "load")
        if isinstance(s, Store):
            yield s.buffer, s.index
