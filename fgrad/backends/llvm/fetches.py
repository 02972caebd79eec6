"""Which loop fetches the rows of a large array before they are used, and which rows.

Loops behind each other often read the same row: its maximum, a sum of powers, quotients.  All but
the first find it in the cache, and while they compute, memory has time for a later row.  A loop
that reads several short rows in turns, of a window of pixels, say, fetches those that are new.
Relies on `loop` and on the passes for the cost of a loop; `values` and `emit` rely on it.

    fetchers(kernel.body)      # {(buffer, row): (the first For, the one that fetches it)}
    rows_ahead(loop)           # {(buffer, index): bytes behind it}
    USUAL                      # how far ahead, and whether at all: a Fetching
"""

from __future__ import annotations

from ... import index, scalar
from ...loop import For, Store
from ...passes.parts import cost_of
from ...records import frozen

LARGE = 1 << 20            # bytes of an array that the second cache may lack
PAGE = 4096                # bytes
AHEAD = PAGE + PAGE // 2   # bytes behind a vector that are fetched, where no row says better
SHORT = 1024               # bytes of rows in which the processor sees no stream
WORK = 8                   # operations for each vector that is fetched, to hide behind


@frozen
class Fetching:
    """What is fetched: what lies `ahead` bytes behind a vector of an array of `least` bytes or
    more, of LARGE without it; 0 for nothing.  stores: where it is written, too?
    """
    ahead: int = AHEAD
    stores: bool = True
    least: int | None = None


USUAL = Fetching()         # of loops


def row_of(x, v):
    """The index of the first element of the row that x runs along with v."""
    return index.ix({a: c for a, c in x.terms if a is not v}, x.const)


def step_of(row):
    """How many elements the closest rows lie apart, for the index of a row; 0 for one alone."""
    return min([c for a, c in row.terms if isinstance(a, index.Var) and c > 0], default=0)


def is_large_row(buffer, x, least=None):
    """Is it worth while to fetch what lies at an index?"""
    return buffer.type.nbytes >= (LARGE if least is None else least) and not x.nodes


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


def rows_ahead(loop):
    """(buffer, index) → how many bytes behind it to fetch, for a vector loop over windows: of the
    short rows of large arrays that it reads several of in turns, those that it has not read before.

    Rows that lie behind each other are a stream that the processor sees.  Of a loop that computes
    little of each row, memory is kept busy without.
    """
    v, rows, ahead, again = loop.var, {}, {}, False
    for buffer, x in dict.fromkeys(read_by(loop.body)):
        size = v.extent * buffer.type.dtype.itemsize
        if size <= SHORT and is_large_row(buffer, x) and runs_along(x, v):
            row = row_of(x, v)
            rows.setdefault((buffer, row.terms), {})[row.const] = x
    for (buffer, terms), found in rows.items():
        starts = apart(sorted(found), v.extent)
        steps = [c * a.step for a, c in terms if isinstance(a, index.Var) and c >= v.extent]
        if len(starts) == 1 or min(steps, default=0) <= v.extent:
            continue
        step = min(steps) * buffer.type.dtype.itemsize
        new = [t for t in starts
               if not any(abs(t + s - u) < v.extent for s in steps for u in starts)]
        again = again or len(new) < len(starts)
        ahead |= {(buffer, found[t]): -(-AHEAD // step) * step for t in new}
    return ahead if again and cost_of(loop.body) >= WORK * len(ahead) else {}


def runs_along(x, v):
    """Are the elements at index x side by side as v runs?"""
    return index.is_affine(x, v) and index.stride(x, v) == 1


def apart(numbers, distance):
    """Those of sorted numbers that are as far as this behind the last one that was taken."""
    taken = []
    for n in numbers:
        if not taken or n - taken[-1] >= distance:
            taken.append(n)
    return taken


def vector_loops(body):
    """The loops of vectors in some statements, in order."""
    for s in body:
        if isinstance(s, For):
            yield from [s] if s.width > 1 else vector_loops(s.body)


def read_by(statements):
    """(buffer, index) of what statements read, in order."""
    for s in statements:
        if hasattr(s, "expr"):
            yield from (n.data for n in scalar.walk(s.expr) if n.op == "load")


def used_by(statements):
    """(buffer, index) of what statements read and store, in order."""
    for s in statements:
        yield from read_by([s])
        if isinstance(s, Store):
            yield s.buffer, s.index
