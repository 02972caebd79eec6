"""Unroll and jam: the loops within several iterations of the loop around them run as one.

    parallel i in 0..1024                        parallel i in 0..1024 (4 rows at once)
      t: f32 = 0.0                                 t: f32 = 0.0
      reduce j in 0..1024 (16 lanes, 4 at once) →  reduce j in 0..1024 (16 lanes, 2 at once)
        t += a[i,j] * x[j]                           t += a[i,j] * x[j]
      y[i] = t                                     y[i] = t

Rows that read the same load it once, and the lanes of several sums are added up together: worth it
where rows share what they read, or are so short that adding up the lanes is much of their work;
elementary functions of long rows have other use for registers.  Running sums of a row wait for each
other, those of several rows do not.
Of rows that come from memory, not from a cache, it is so only where much is computed, if they come
fastest in order; processors that see several streams better than one (`Target.streams`) read the
rows of sums side by side.  schedule.py calls `with_rows`; a backend that emits them writes
`together` in place of the loop.  Relies on parts.py for substitution.
"""

from __future__ import annotations

from .. import index, scalar
from ..loop import Accumulate, For, Let, Start, Store, accumulators, nodes_of
from ..records import replace
from ..scalar import EXPENSIVE
from ..types import BOOL
from .parts import substituted

FEW, MANY = 4, 8           # rows at once: of long ones, or elementary functions, and of short ones
VECTORS, DEAR = 48, 24     # of a row up to which adding up its lanes counts; of dear functions
NEAR = 20 << 10            # bytes of the rows at once, which the first cache is to hold
FROM_MEMORY = 8            # vectors of a row that no cache holds,
LOOPS = 3                  # and in how many loops it is computed then, unless by dear functions
CHAINS = 8                 # additions that do not wait for each other: enough, and the most
NODES = 60                 # of what is computed for a row, at most


def with_rows(body, how):
    """The statements, with several rows at once in loops where that is worth it, by a Schedule."""
    out = []
    for s in body:
        if isinstance(s, For):
            s = replace(s, body=with_rows(s.body, how))
            rows = rows_of(s, how)
            if rows > 1:
                grain = -(-s.grain // rows) * rows
                inner = [beside(t, rows, how.lanes) for t in s.body]
                s = replace(s, rows=rows, grain=grain, body=inner)
        out.append(s)
    return out


def beside(s, rows, lanes):
    """A statement of a row, with fewer vectors side by side, and sums in turn: those of other rows
    run beside it.
    """
    if not isinstance(s, For):
        return s
    width = max(min(s.width, lanes), s.width // rows)
    chains = rows * max(1, len(accumulators(s)))
    return replace(s, width=width, unroll=min(s.unroll, max(1, CHAINS // chains)))


def rows_of(loop, how):
    """How many rows of a loop run at once; 1 where that is not worth it."""
    v, inner = loop.var, [s for s in loop.body if isinstance(s, For)]
    sums, running = [s for s in inner if s.kind == "reduce"], all(map(is_running, inner))
    if loop.kind == "reduce" or loop.width > 1 or loop.step > 1 or not inner or (
            v.extent < 2 * FEW or accumulators(loop) or not (sums or running)):
        return 1
    statements = within(loop)
    if not all((running or s.width > 1) and s.step == 1 for s in inner) or not all(
            is_of_row(s, v) for s in statements):
        return 1
    nodes, own = nodes_of(loop.body), own_rows(loop)
    written = {s.buffer for s in statements if isinstance(s, Store)}
    reads = [n.data for n in nodes if n.op == "load" and n.data[0] in written]
    if len(nodes) > NODES or not all(b in own and not x.nodes for b, x in reads):
        return 1
    if running:
        return FEW
    dear = any(n.cost >= EXPENSIVE for n in nodes)
    moved = {n.data[0] for n in nodes if n.op == "load"} | written
    vectors, most = DEAR if dear else VECTORS, CHAINS // max(len(accumulators(s)) for s in sums)
    if sum(b.type.nbytes for b in moved if b.kind != "local") > how.jam:
        if not dear and len(inner) < LOOPS:
            return max(1, min(how.streams, most)) if len(inner) == 1 else 1
        vectors = FROM_MEMORY
    brief = [is_short(s, vectors, how.lanes) for s in sums]
    short = all(brief)
    if not short and (dear or inner != sums or not all(
            b or shares(s, v) for b, s in zip(brief, sums))):
        return 1
    if not short:
        return max(1, min(FEW, most))
    most = min(most, FEW if dear else MANY, NEAR // bytes_of_row(loop))
    return next(n for n in (MANY, FEW, 2, 1) if n <= max(1, most))


def is_running(loop):
    """Does a loop store what it has added up so far?  Each addition waits for the one before."""
    return loop.kind == "serial" and loop.width == 1 and bool(accumulators(loop)) and not any(
        isinstance(s, For) for s in loop.body)


def bytes_of_row(loop):
    """About how many bytes the loops within one iteration of a loop read and write, each once."""
    found = {}
    for inner in loop.body:
        for s in inner.body if isinstance(inner, For) else ():
            used = [n.data for n in scalar.walk(s.expr) if n.op == "load"]
            used += [(s.buffer, s.index)] if isinstance(s, Store) else []
            found.update((b, inner.var.extent * b.type.dtype.itemsize) for b, x in used
                         if x.free & loop.var.bit or b.kind == "local")
    return max(1, sum(found.values()))


def within(loop):
    """The statements of a loop and of the loops in it, without these."""
    inner = [t for s in loop.body if isinstance(s, For) for t in s.body]
    return [s for s in loop.body if not isinstance(s, For)] + inner


def is_of_row(s, v):
    """Does a statement concern one row alone, or add to what all of them do?"""
    if not isinstance(s, Store):
        return not isinstance(s, For)
    if is_shared(s, v):
        return True
    own = s.buffer.kind == "local" and not s.index.free & v.bit
    return not s.how and not s.when and not s.index.nodes and (
        own or index.is_affine(s.index, v) and bool(index.stride(s.index, v)))


def is_shared(s, v):
    """Does a statement add up what each row has, by columns?"""
    return (isinstance(s, Store) and bool(s.how) and not s.when and not s.index.nodes
            and s.buffer.kind != "local" and not s.index.free & v.bit)


def own_rows(loop):
    """The scratch rows that each iteration of a loop writes anew."""
    return {s.buffer for s in within(loop) if isinstance(s, Store) and s.buffer.kind == "local"
            and not s.index.free & loop.var.bit}


def is_short(loop, vectors, lanes):
    """Is adding up the lanes much of a loop's work, of at most so many vectors?  Those of bools
    are bits of one number.
    """
    bools = all(s.expr.dtype == BOOL for s in loop.body if isinstance(s, Accumulate))
    return loop.var.extent <= (1 if bools else vectors) * min(loop.width, lanes)


def shares(loop, v):
    """Does a loop read vectors that are the same for each v?"""
    loads = [n.data for s in loop.body for n in scalar.walk(s.expr) if n.op == "load"]
    return any(x.free & loop.var.bit and not x.free & v.bit for _, x in loads)


# ---------------------------------------------------------------------------- written out

def together(loop, start, rows, another):
    """The statements of so many rows from `start` on, the loops in them as one.

    another(buffer, k): a scratch row for the k-th row, in place of this one.  Names get a dot.
    """
    made = [s.name for s in within(loop) if isinstance(s, (Let, Start))]
    copies = []
    for k in range(rows):
        body = substituted(loop.body, {loop.var: index.plus(start, k)})
        if k:
            to = {b: another(b, k) for b in own_rows(loop)} | {n: f"{n}.{k}" for n in made}
            body = renamed(body, to)
        copies.append(body)
    out = []
    for s, same in zip(loop.body, zip(*copies)):
        out += [in_one(s, same, loop.var)] if isinstance(s, For) else same
    return out


def in_one(inner, copies, v):
    """The loop whose body are those of several rows' loops; what they add up is added at once."""
    body, last = [], []
    for s, same in zip(inner.body, zip(*[c.body for c in copies])):
        if is_shared(s, v):
            last.append(replace(same[0], expr=scalar.pairwise(s.how, [t.expr for t in same])))
    for c in copies:
        body += [t for s, t in zip(inner.body, c.body) if not is_shared(s, v)]
    return replace(copies[0], body=body + last)


def renamed(body, to):
    """The statements with other names and scratch rows in place of those in `to`."""
    out = []
    for s in body:
        if isinstance(s, For):
            out.append(replace(s, body=renamed(s.body, to)))
            continue
        if not isinstance(s, Start):
            s = replace(s, expr=scalar.rewrite(s.expr, {}, others(s.expr, to), {}))
        key = "buffer" if isinstance(s, Store) else "name"
        old = getattr(s, key)
        out.append(replace(s, **{key: to.get(old, old)}))
    return out


def others(expr, to):
    """What replaces the names, and the reads of scratch rows, in an expression."""
    found = {}
    for n in scalar.walk(expr):
        if n.op == "name" and n.data in to:
            found[n] = scalar.name(to[n.data], n.dtype, n.free)
        elif n.op == "load" and n.data[0] in to:
            found[n] = scalar.load(to[n.data[0]], n.data[1])
    return found
