"""Which loops write their rows one row late, while the next row is computed.

    parallel i in 0..64                              parallel i in 0..64, and once more
      reduce j in 0..50257                             reduce j in 0..50257
        t4: f32 = exp((x[i,j] - t1))                     t4: f32 = exp((x[i,j] - t1))
        row[j] = t4                                      row[j] = t4
        t2 += t4                               →         t2 += t4
      t3: f32 = (1.0 / t2)                               m[i-1,j] = (row'[j] * t3')
      serial j in 0..50257                             t3: f32 = (1.0 / t2)
        m[i,j] = (row[j] * t3)

A core takes as long to write past the caches as for much arithmetic, and it can do both at once:
so the last loop of a row, which writes and computes little, runs beside a sum of the next row.  Of
short rows it does so by itself, which looks some hundred instructions ahead; of long ones the
second cache must hold two and what else is read.  Relies on `past_caches` and on the passes for
rows and costs; `emit` writes the loops.

    late = late_rows(loop, large, another)    # LateRows, or None
"""

from __future__ import annotations

from ... import index
from ...loop import For, Let, Start, Store, accumulators, names
from ...passes.jam import own_rows, renamed
from ...passes.parts import cost_of, substituted
from ...records import record
from .fetches import read_by, used_by
from .past_caches import by_lines, ragged

LEAST, MOST = 1 << 14, 1 << 18   # bytes of rows for which it is worth it
LITTLE = 10                # additions for an element that do not take as long as writing it
STACK = 7 << 16            # bytes of scratch rows; some systems give a thread 8 << 16
LATE = ".late"             # what names of the row before end in


@record
class LateRows:
    """The body of a loop whose last statement, a loop, runs for the row before.

    v, before: the variables of the row and of the row before.  first: what is done for a row, with
    `host` in it, beside which `last` runs for the row before.  stores: those that write `past`, the
    buffers past the caches, if its rows begin anywhere.  kept: the names that it uses of the row
    before, and their dtypes.  scratch: the rows that it reads → those of the row before.

    The emitter fills in: ends, the rows from which to which it runs.  memory: what is kept → its
    address.  off: 0 if the stores can pass the caches.  start, taken: the element from which on,
    and how many, `last` writes beside its host.
    """
    v: index.Var
    before: index.Var
    first: list
    host: For
    last: For
    stores: list
    past: dict
    kept: dict
    scratch: dict
    ends: tuple = ()
    memory: dict = None
    off: str = "0"
    start: str = "0"
    taken: str = "0"


def late_rows(loop, large, another):
    """The LateRows of a loop over rows; None where rows are written in time.

    large: see `past_caches`.  another(buffer, k): a scratch row like this one.
    """
    *first, last = loop.body
    if not large or loop.block > 1 or loop.kind == "reduce" or accumulators(loop) or (
            not is_plain(last) or not is_apart(first, last, loop)):
        return None
    past = by_lines(last, large) or dict.fromkeys(t.buffer for t in ragged(last, large))
    sizes = [last.var.extent * b.type.dtype.itemsize for b in past]
    hosts = [s for s in first if is_plain(s) and s.kind == "reduce"
             and s.var.extent == last.var.extent]
    if not hosts or not past or not LEAST <= min(sizes) <= max(sizes) <= MOST or (
            cost_of(last.body) > LITTLE):
        return None
    own, reads = own_rows(loop), dict.fromkeys(b for b, _ in read_by(last.body))
    if sum(b.type.nbytes * (1 + (b in reads)) for b in own) > STACK:
        return None
    used = {n for s in last.body for n in names(s.expr)}
    kept = {s.name: s.dtype if isinstance(s, Start) else s.expr.dtype
            for s in first if isinstance(s, (Let, Start)) and s.name in used}
    scratch = {b: another(b, 1) for b in reads if b in own}
    before = index.space().variable(loop.var.extent)
    (late,) = renamed(substituted([last], {loop.var: index.of(before)}),
                      scratch | {n: n + LATE for n in kept})
    return LateRows(loop.var, before, first, max(hosts, key=lambda s: cost_of(s.body)), late,
                    ragged(late, large), past, kept, scratch)


def is_plain(s):
    """Is it a loop of vectors, without others in it?"""
    return (isinstance(s, For) and s.width > 1 and s.step == 1
            and not any(isinstance(t, For) for t in s.body))


def is_apart(first, last, loop):
    """Can the last loop wait, while the other statements run for another row?

    Then neither writes what the other one uses, but for scratch rows, of which each has its own.
    """
    others = [t for s in first for t in (s.body if isinstance(s, For) else [s])]
    own, written = own_rows(loop), [[s.buffer for s in body if isinstance(s, Store)]
                                    for body in (others, last.body)]
    used = [{b for b, _ in used_by(body)} - own for body in (others, last.body)]
    return not (used[0].intersection(written[1]) or used[1].intersection(written[0])
                or own.intersection(written[1]) or any(isinstance(t, For) for t in others)
                or any(t.index.nodes for t in last.body if isinstance(t, Store)))
