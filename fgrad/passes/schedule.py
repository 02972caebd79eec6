"""Schedules: vector lanes, accumulators, tiles.  Only For statements are rewritten.

    serial j in 0..1024                        serial j in 0..1024 (8 lanes, 2 at once)

A Schedule is data, so it can be printed and searched.  Rows of a column sum are added several at
once; a read that is contiguous along the outer loop is tiled; places of a window that read the same
are computed together.  It relies on parts.py for substitution.
"""

from __future__ import annotations

import itertools
from functools import partial
from math import prod

from .. import index, scalar
from ..loop import Accumulate, Contract, For, Kernel, Let, Store, nodes_of, statements
from ..records import frozen, replace
from ..scalar import EXPENSIVE
from . import across, borders, computed_places
from .collapse import as_one, indices
from .cut_loops import taken_apart
from .jam import CHAINS, with_rows
from .join_loops import joined
from .memory import stores_of
from .names import Words, name_loops, words_of
from .parts import blocks_of, own_loops, substituted
from .short_loops import named, written_out
from .stretches import in_stretches
from .tails import apart, in_accumulators, sums_apart

WINDOW = 36                # elements of a window up to which the sums of all are fed in one loop
SUMS = 2                   # vectors of a sum that are computed side by side
PLACES = 4                 # places of a window that are computed at once, where they share reads
READS, SHARED = 6, 0.6     # the least reads of one place, and the most of all for one of each's


@frozen
class Schedule:
    """lanes: of a vector of 4-byte elements.  light, heavy: copies of a vector loop's body.

    side: vectors computed side by side where a loop calls elementary functions, which hides their
    latency.  rows: added at once into a column sum.  tile: side of the tile of a transposed read.
    grain: times as many iterations in a part as its cost asks for.  rank: which of the contraction
    engine's ways, cheapest first.  across: have loops that hold loops vectors?  jam: bytes
    that a cache holds of what is moved where the loops of several rows run as one; 0: they do not.
    streams: rows that sums read from memory side by side.
    region: the cost of a part that is worth a thread, in additions.
    """
    lanes: int = 8
    light: int = 4
    heavy: int = 2
    side: int = 1
    rows: int = 4
    tile: int = 16
    grain: int = 1
    rank: int = 0
    across: bool = False
    jam: int = 0
    streams: int = 1
    region: int = 25_000


def schedule_for(target):
    """The Schedule of a target."""
    if target.kind == "gpu":
        return Schedule(lanes=1, light=1, heavy=1, rows=1, tile=0)
    return Schedule(lanes=target.vector_bytes // 4, side=target.side, across=target.across,
                    jam=target.jam, streams=target.streams, region=target.region_cost)


@frozen
class Choice:
    """The Schedule of one kernel, and what is to be said of it."""
    how: Schedule
    note: str = ""


def schedule(steps, how, tuner=None):
    """The steps with the loops of their kernels arranged.

    tuner(kernels, how) → {kernel: Choice}, for the kernels that another Schedule may suit better.
    """
    kernels = [k for k in steps if isinstance(k, Kernel)]
    chosen = tuner(kernels, how) if tuner else {}
    out = []
    for k in steps:
        if isinstance(k, Kernel):
            choice = chosen.get(k, Choice(how))
            first, *rest = arranged(k, choice.how)
            out += [replace(first, note=choice.note), *rest]
        else:
            out.append(k)
    return out


def arranged(kernel, how):
    """The kernel, or several: each holds at most one parallel loop, and it comes last."""
    with kernel.space:
        given = kernel.body
        words = Words({*words_of(given), *(b.name for b in (*kernel.params, *kernel.outputs))})
        if how.lanes > 1:
            given = taken_apart(given, kernel.space, words)
            given = borders.cut(given, kernel.space, how.region, words)
        given = flattened(given)
        if how.lanes > 1 and not kernel.aliases:
            given = joined(given, how.region, words)
        body = each_arranged(given, how, kernel.space, words)
        body = [coarser(s, how) for s in (with_rows(body, how) if how.jam else body)]
        if how.lanes > 1:
            body = flattened(borders.sums_of_choices(body, kernel.space, words))
    written = dict.fromkeys(s.buffer for s in stores_of(body))
    kernel = replace(kernel, scratch=[b for b in written if b.kind == "local"])
    loops = [s for s in body if isinstance(s, For) and s.kind == "parallel"]
    found = [replace(kernel, body=body)]
    if len(loops) > 1:
        before = [s for s in body if not any(s is t for t in loops)]
        with kernel.space:
            found = [replace(kernel, name=kernel.name + (f"_rest{k}" if k else ""),
                             body=own_loops([*needed(before, s), s], kernel.space) if k
                             else [*before, s]) for k, s in enumerate(loops)]
    for k in found:
        name_loops(k)
    return found


def needed(before, loop):
    """Those statements in front of a loop that it needs: what others read is stored, and what they
    sum is summed, once.
    """
    used, count, out = uses([loop]), 0, []
    while len(used) > count:                     # what a loop adds to may be read at its beginning
        count = len(used)
        out = those_that_make(used, before)
    return out


def those_that_make(used, body):
    """The statements that make what is used; to it comes what they read."""
    out = []
    for s in reversed(body):
        if isinstance(s, For):
            inside = those_that_make(used, s.body)
            out += [replace(s, body=inside)] if inside else []
        elif (s.buffer if isinstance(s, Store) else s.name) in used:
            out.append(s)
            used |= uses([s])
    return out[::-1]


def uses(body):
    """The names, and the buffers, that some statements read."""
    return {n.data if n.op == "name" else n.data[0]
            for n in nodes_of(body) if n.op in ("name", "load")}


def coarser(s, how):
    """A parallel loop in larger parts, a contraction run in another way."""
    if isinstance(s, Contract):
        return replace(s, rank=how.rank)
    parallel = isinstance(s, For) and s.kind == "parallel"
    return replace(s, grain=s.grain * how.grain) if parallel else s


def flattened(body):
    """The statements, without loops that run once."""
    out = []
    for s in body:
        if isinstance(s, For):
            inner = flattened(s.body)
            out += inner if s.var.extent == 1 and s.kind != "parallel" else [replace(s, body=inner)]
        else:
            out.append(s)
    return out


def each_arranged(body, how, space, words):
    """The statements, each loop arranged."""
    return [s for t in body
            for s in (arrange(t, how, space, words) if isinstance(t, For) else [t])]


def arrange(loop, how, space, words):
    """The loop, and the loops that its remainder needs, arranged.  words: the kernel's names."""
    if how.lanes > 1:
        stretches = in_stretches(loop, how, space, words)
        if stretches != [loop]:
            return each_arranged(flattened(stretches), how, space, words)
        short, loop = loop, written_out(loop, words)
        if loop is not short and loop.kind == "serial":
            fed = feeding(loop, words)
            if fed != [loop]:
                return each_arranged(fed, how, space, words)
        loop = replace(loop, body=flattened(borders.cut_short(loop.body, space, words)))
    return by_its_loops(without_names(loop), how, space, words)


def feeding(loop, words):
    """A serial loop that adds to elements which all iterations share, as one that feeds
    accumulators, between their statements; else the loop alone.
    """
    body, sums = sums_apart(loop.body, loop.var, words)
    if not sums:
        return [loop]
    starts, fed, stores = in_accumulators(sums, loop.var, words)
    return [*starts, replace(loop, body=body + fed, kind="reduce"), *stores]


def with_inner(loop, space):
    """The loop and the one inside of it as one, where all that is read and written is stepped
    through so: what `tails` leaves of rows.
    """
    while len(loop.body) == 1 and isinstance(loop.body[0], For) and loop.step == 1:
        (inner,) = loop.body
        whens = [x for s in statements(inner.body) if isinstance(s, Store)
                 for x in (s.index, *(x for x, _, _ in s.when))]
        if inner.kind != "serial" or inner.step != 1 or any(
                isinstance(s, (For, Accumulate)) for s in inner.body) or not all(
                as_one(x, loop.var, inner.var) for x in (*whens, *indices(nodes_of(inner.body)))):
            break
        v = space.variable(loop.var.extent * inner.var.extent)
        body = substituted(inner.body, {loop.var: index.ix({}), inner.var: index.of(v)})
        loop = replace(loop, var=v, body=body, grain=loop.grain * inner.var.extent)
    return loop


def by_its_loops(loop, how, space, words):
    """The same of a loop that is not written out: by what loops it holds."""
    inner = [s for s in loop.body if isinstance(s, For)]
    if not inner:
        if how.lanes == 1 or not carries(loop):
            return [vectorised(loop, how)]
        return flattened(computed_places.in_blocks(
            loop, space, words, partial(vectorised, how=how)))
    if how.across and across.is_across(loop):
        return flattened(across.in_blocks(loop, how.lanes, space, words))
    parts = apart(loop, space, words, lambda part: by_its_loops(
        with_inner(part, space), how, space, words)) if how.lanes > 1 else [loop]
    if parts != [loop]:
        return flattened(parts)
    if len(loop.body) == 1:
        inner = [windows_written_out(loop, inner[0])]
        loop = replace(loop, body=inner)
    if len(loop.body) == 1 and not any(isinstance(s, For) for s in inner[0].body):
        if is_column_sum(loop, inner[0]):
            return rows_at_once(loop, inner[0], how, space)
        if how.tile and is_crossed(loop, inner[0]):
            return tiled(loop, inner[0], how, space)
        if how.lanes > 1 and reads_again(loop, inner[0]):
            return places_at_once(loop, inner[0], how, space)
    return [replace(loop, body=each_arranged(loop.body, how, space, words))]


def vectorised(loop, how):
    """An innermost loop with lanes and copies of its body."""
    if how.lanes == 1 or carries(loop):
        return loop
    nodes = nodes_of(loop.body)
    widest = max([n.dtype.itemsize for n in nodes] + [4 if not nodes else 1])
    lanes = max(1, 4 * how.lanes // max(widest, 4))
    width = min(lanes, 1 << (loop.var.extent - 1).bit_length())
    heavy = sum(n.cost for n in nodes) >= EXPENSIVE
    side = side_by_side(nodes, width, loop, how)
    width *= side
    chains = sum(isinstance(s, Accumulate) for s in loop.body)
    light = min(how.light, CHAINS // max(chains, 1)) if loop.kind == "reduce" else how.heavy
    unroll = 1 if side > 1 else how.heavy if heavy else light
    unroll = max(1, min(unroll, loop.var.extent // max(width, 1)))
    grain = loop.grain
    if loop.kind == "parallel":
        grain = -(-grain // (width * unroll)) * width * unroll
    return replace(loop, width=width, unroll=unroll, grain=grain)


def side_by_side(nodes, width, loop, how):
    """How many vectors of a loop are computed as one: more than one where functions are called.

    More sums than SUMS do not stay in registers beside what the functions need.
    """
    if not any(n.cost >= EXPENSIVE for n in nodes):
        return 1
    side = min(how.side, SUMS) if loop.kind == "reduce" else how.side
    while side > 1 and loop.var.extent < 2 * side * width:
        side //= 2
    return side


def carries(loop):
    """Must the iterations stay in order?

    Those of a serial loop that feeds an accumulator, adds to one element, or stores where only the
    run knows.
    """
    if loop.kind == "reduce":
        return False
    return any(isinstance(s, Accumulate) or isinstance(s, Store) and scatters(s, loop.var)
               for s in loop.body)


def scatters(store, v):
    """May two iterations of v store to one element, or not at all?"""
    if any(x.free & v.bit for x, _, _ in store.when) or not index.is_affine(store.index, v):
        return True
    return index.stride(store.index, v) == 0


# ---------------------------------------------------------------------------- column sums

def is_column_sum(loop, inner):
    return loop.kind == "serial" and all(
        isinstance(s, Store) and s.how and not s.when and not s.index.free & loop.var.bit
        and s.index.free & inner.var.bit for s in inner.body)


def without_names(loop):
    """A column sum with its named values in place, so that several rows can be put together."""
    if not loop.body:
        return loop
    *names, inner = loop.body
    plain = isinstance(inner, For) and all(isinstance(s, Let) for s in names)
    if not plain or not any(isinstance(s, Let) for s in (*names, *inner.body)) or any(
            not isinstance(s, (Let, Store)) for s in inner.body):
        return loop
    values, stores = {}, []
    for s in (*names, *inner.body):
        if isinstance(s, Let):
            values[s.name] = named(s.expr, values)
        else:
            stores.append(replace(s, expr=named(s.expr, values)))
    inner = replace(inner, body=stores)
    return replace(loop, body=[inner]) if is_column_sum(loop, inner) else loop


def windows_written_out(loop, inner):
    """The loop inside of a column sum, without short loops between the two (a window): their bodies
    one after the other, so that a row is read once for all of them.
    """
    short, deepest = [], inner
    while len(deepest.body) == 1 and isinstance(deepest.body[0], For):
        short.append(deepest.var)
        deepest = deepest.body[0]
    places = prod(v.extent for v in short)
    if not 1 < places <= WINDOW or any(isinstance(s, For) for s in deepest.body) or (
            not is_column_sum(loop, deepest)):
        return inner
    at = itertools.product(*[range(v.extent) for v in short])
    bodies = [substituted(deepest.body, dict(zip(short, map(index.of, where)))) for where in at]
    return replace(deepest, body=[s for body in bodies for s in body])


def rows_at_once(loop, inner, how, space):
    """Several rows are combined before the one read and write of the sum; what is left over of
    them follows.
    """
    if loop.step != 1:
        return [replace(loop, body=[vectorised(inner, how)])]
    extent, rows = loop.var.extent, how.rows
    rows = next((r for r in (rows, 3) if r <= rows and extent % r == 0), rows)
    main = extent // rows * rows
    shares = [(0, main, rows), (main, extent - main, extent - main)]
    return flattened([combined(loop, inner, *share, how, space) for share in shares if share[1]])


def combined(loop, inner, start, count, rows, how, space):
    """The loop over `count` rows from `start`, of which so many are added up first."""
    v, body = space.variable(count, loop.var.name), []
    v.go_by(rows)                                # before others: row + 3 then lies within the loop
    for s in inner.body:
        found = [scalar.rewrite(s.expr, {loop.var: index.plus(index.of(v), start + k)}, {}, {})
                 for k in range(rows)]
        body.append(replace(s, expr=scalar.pairwise(s.how, found)))
    return replace(loop, var=v, step=rows, body=[vectorised(replace(inner, body=body), how)])


# ---------------------------------------------------------------------------- windows

def reads_again(loop, inner):
    """Do neighbouring iterations of `loop` read much of the same, as the places of a window do?"""
    plain = all(isinstance(s, Store) and not s.how and not s.when for s in inner.body)
    if loop.kind != "serial" or loop.step != 1 or not plain or inner.kind != "serial":
        return False
    one = reads_of(inner.body)
    places = [at_place(loop, inner, index.of(loop.var), k) for k in range(PLACES)]
    every = reads_of([s for body in places for s in body])
    return len(one) >= READS and len(every) <= SHARED * PLACES * len(one)


def reads_of(body):
    """What some statements read: (buffer, index) pairs."""
    return {n.data for n in nodes_of(body) if n.op == "load"}


def at_place(loop, inner, first, k):
    """The body of `inner` for the k-th iteration of `loop` from `first`."""
    return substituted(inner.body, {loop.var: index.plus(first, k)})


def places_at_once(loop, inner, how, space):
    """Several iterations of the outer loop in one body: what they share is read once."""
    def of_block(start, count):
        body = [s for k in range(count) for s in at_place(loop, inner, start, k)]
        return [replace(vectorised(replace(inner, body=body), how), unroll=1)]
    return flattened(blocks_of(loop, PLACES, space, of_block))


# ---------------------------------------------------------------------------- transposed reads

def is_crossed(loop, inner):
    """Is something read contiguously along the outer loop, but not along the inner one?"""
    i, j = loop.var, inner.var
    plain = all(isinstance(s, Store) and not s.how and not s.when for s in inner.body)
    if loop.step != 1 or inner.kind != "serial" or not plain:
        return False
    reads = [n.data[1] for n in nodes_of(inner.body) if n.op == "load"]
    return any(index.stride(x, i) == 1 and index.stride(x, j) > 1 for x in reads)


def tiled(loop, inner, how, space):
    """Square tiles, then the rows and columns that are left over."""
    i, j, n = loop.var, inner.var, how.tile
    rows, columns = i.extent // n * n, j.extent // n * n
    if not rows or not columns:
        return [replace(loop, body=[vectorised(inner, how)])]
    out = flattened([tiles(loop, inner, rows, columns, how, space)])
    if columns < j.extent:
        out += rest(loop, inner, 0, rows, columns, j.extent, how, space)
    if rows < i.extent:
        out += rest(loop, inner, rows, i.extent, 0, j.extent, how, space)
    return out


def tiles(loop, inner, rows, columns, how, space):
    n = how.tile
    it, jt = space.variable(rows // n), space.variable(columns // n)
    ii, jj = space.variable(n), space.variable(n)
    to = {loop.var: index.combine([(index.of(it), n), (index.of(ii), 1)]),
          inner.var: index.combine([(index.of(jt), n), (index.of(jj), 1)])}
    body = substituted(inner.body, to)
    deepest = vectorised(For(jj, body, "serial"), how)
    grain = max(1, loop.grain // n)
    inner = For(jt, [For(ii, [deepest], "serial")], "serial")
    return For(it, flattened([inner]), loop.kind, grain=grain)


def rest(loop, inner, row, rows_end, column, columns_end, how, space):
    i, j = space.variable(rows_end - row), space.variable(columns_end - column)
    to = {loop.var: index.plus(index.of(i), row), inner.var: index.plus(index.of(j), column)}
    deepest = vectorised(For(j, substituted(inner.body, to), "serial"), how)
    return flattened([replace(loop, var=i, body=[deepest])])
