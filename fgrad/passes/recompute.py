"""What a kernel would compute again.

Expressions of scalars say what is evaluated more than once under some loops, or by every part of a
kernel; fuse stores such values.  Relies on `scalar`, `index` and `pull`; `fuse` relies on it.
"""

from __future__ import annotations

from itertools import product
from math import prod
from operator import attrgetter

from .. import index, scalar
from ..scalar import EXPENSIVE
from .pull import uncast
from .short_loops import SHORT

OFTEN, MANY = 16, 1 << 14          # times a small value is read, and operations, to be stored
GATHERED, CHEAP = 4, 2             # times an element is gathered, if it costs more, to be stored
PARTS, SOME = 3, 1 << 10           # reads among which so many elements choose, to be stored
STEP = 8                           # elements of a loop of vectors for one operation beside it
ROOT = 6                           # the cost of what is worth storing: a square root
KEPT = 1 << 20                     # bytes of a value that is worth storing to be read again
AGAIN = 24                         # operations and reads that storing a value spares an element
SPARED = 1 << 15                   # the same that it spares other kernels, over all elements
NOWHERE = ()                       # within no guard
WRITTEN = 1 << 12                  # nodes up to which short loops are written out to count places
TREE = 200                         # nodes of an expression under a guard, written out as a tree


def holes(root_expr, nest, found, passes, seen, lookups=None):
    """Origins of reductions and dear values evaluated more than once per index under `nest`.

    And of reductions that several passes over a row evaluate for each of its elements: stored once,
    they leave these passes to vectors.  passes: of the kernel so far, filled in: origin → the
    passes that evaluate it, each the loops around it and the reduction that it is.  seen: what has
    been judged in the kernel so far, filled in.  lookups: filled in, reads that `is_looked_up`
    finds; None where there are no vectors, which what chooses among reads would not be.
    """
    order = tuple([(v,) for v in nest])        # the variables of a reduction are one level
    judged, levels, own = set(), {}, set()
    stack = [(root_expr, order, bits(order), None, NOWHERE)]
    while stack:
        n, order, mask, inside, within = stack.pop()
        key = n, order, inside, within
        if not (n.args or n.free) or key in seen or key in own:
            continue
        # the root's own terms are judged again where another root has them
        (own if n.origin is root_expr.origin else seen).add(key)
        depth, again = len(order), 1
        if n.free & mask != mask:
            if (order, n.free) not in levels:
                levels[order, n.free] = repeated(order, n.free)
            depth, again = levels[order, n.free]
        if n.op == "reduce" or n.cost >= EXPENSIVE:
            alone = n.op == "reduce" and depth == 0 and order      # every part would do it again
            if n.origin is not None and (
                    alone or again > 1 or is_met_again(n, order[:depth], within)):
                found.add(n.origin)
                continue                               # its own kernel is judged next time
            if n.op == "reduce":
                if n.origin is not None and depth == len(order):
                    passes.setdefault(n.origin, {})[order, inside] = None
                order, inside = (*order[:depth], n.data[1]), n
                mask = bits(order)
        elif n.op != "load" and n.origin is not None and (
                again >= OFTEN and is_small(n, again, order[:depth])
                or is_gathered(n, order, depth, judged)
                or lookups is not None and is_chosen(n, order)
                or is_read_often(n, iterations(order[:depth]))
                or n.origin not in (root_expr.origin, inside and inside.origin)   # a term of it
                and is_dear_again(n, order[:depth], within)):
            found.add(n.origin)
            continue
        elif n.op == "load" and lookups is not None and is_looked_up(n, order, again, depth):
            lookups.add(n)
        guarded = n.args[0] if n.op == "guard" else None
        stack.extend([(a, order, mask, inside, narrowed(within, n) if a is guarded else within)
                      for a in n.below])
    found.update(origin for origin, these in passes.items() if len(these) > 1)


def bits(order):
    """The mask of the variables of some levels."""
    return sum([v.bit for level in order for v in level])


def repeated(order, free):
    """(how many levels of loops lead to a value, how often it is computed for each index)."""
    depth = max([k for k, level in enumerate(order, 1) if any(v.bit & free for v in level)],
                default=0)
    return depth, prod(v.extent for level in order[:depth] for v in level if not v.bit & free)


def is_met_again(n, order, within):
    """Do the loops meet elements twice, by an index such as i // 2 or table[i]?

    within: what guards let through of their iterations, see `narrowed`.
    """
    return met(order, within) >= 2 * n.origin.type.size


def met(order, within):
    """How often the loops compute what is inside of the guards."""
    share = prod((hi - lo) / (x.hi - x.lo + 1) for x, lo, hi in within)
    return share * iterations(order)


def is_dear_again(n, order, within):
    """Do the loops it depends on meet each element so often that storing it takes less?

    What a window is over, say, each element of which is needed at all places of the window.
    """
    size = n.origin.type.size
    if iterations(order) < 2 * size:
        return False
    own = [tuple([v for v in level if v.bit & n.free]) for level in order]
    again = met(own, within) / size - 1 if size else 0
    if again < 1:
        return False
    spared = again * (work_of(n) - 1)
    return spared >= AGAIN and spared * size >= MANY


def iterations(order):
    """How often what is inside of these levels of loops runs."""
    return prod(v.extent for level in order for v in level)


def narrowed(within, guard):
    """The ranges of indices, as (Ix, lo, hi) each, that this guard lets through as well."""
    known = {x: (lo, hi) for x, lo, hi in within}
    for x, lo, hi in guard.data:
        low, high = known.get(x, (x.lo, x.hi + 1))
        lo = max(lo, low)
        known[x] = (lo, max(min(hi, high), lo))
    return tuple((x, lo, hi) for x, (lo, hi) in known.items())


def is_small(n, again, order):
    """Is a value worth storing for being read `again` times, and no larger than it must be?"""
    whole = iterations(order)
    if n.origin.type.size * again > whole:
        return False
    cost = sum(m.cost for m in scalar.walk(n))
    return cost >= ROOT and whole * cost >= MANY


def is_gathered(n, order, depth, judged):
    """Is a value of single reads beside a loop of vectors dearer than that loop?

    Stored, it is computed by vectors itself.  judged: the nodes of those that were too cheap, whose
    parts are cheaper still, filled in.
    """
    if n in judged or not 0 < depth == len(order) - 1:
        return False
    inner = prod(v.extent for v in order[-1])
    if inner * n.origin.type.size < MANY:
        return False
    nodes = scalar.walk(n)
    judged.update(nodes)
    single = any(m.op == "load" and index.divides(m.data[1]) for m in nodes)
    return single and prologue_cost(n) * STEP > inner and all(m.op != "reduce" for m in nodes)


def is_chosen(n, order):
    """Is a value put together of several parts, among which each of its elements, at places known
    at run time, would choose?  Stored, it is one read there: a crop of a padded image.
    """
    if not chooses(n) or iterations(order) < max(SOME, n.origin.type.size // 2):
        return False
    return sum(m.op == "load" for m in scalar.walk(n, below=attrgetter("args"))) >= PARTS


def is_looked_up(n, order, again, depth):
    """Does a read go from lane to lane by places known at run time, `again` and again to the same
    elements?  Stored, they lie side by side: rows of a table, each beside each other one.
    """
    places = n.data[1].nodes
    if not places or again < GATHERED or iterations(order[:depth]) < MANY:
        return False
    lanes = [v for level in order for v in level if v.extent > SHORT][-1:]
    return any(d.free & v.bit for d in places for v in lanes)


def read_often(root, times):
    """The origins of the largest parts of an expression that `is_read_often` finds."""
    found, stack, seen = set(), [root], set()
    while stack:
        n = stack.pop()
        if is_read_often(n, times):
            found.add(n.origin)
        elif n not in seen:
            seen.add(n)
            stack.extend(n.below)
    return found


def is_read_often(n, times):
    """Is a value read `times`, at places known at run time, much more often than it has elements?

    Stored, it is one read at such a place instead of several, or of what is computed from one.
    """
    if n.op == "load" or n.origin is None or times < max(GATHERED * n.origin.type.size, SOME):
        return False
    nodes = scalar.walk(n, below=attrgetter("args"))
    placed = [m for m in nodes if m.op == "load" and m.data[1].nodes]
    cost = sum(m.cost for m in nodes) + sum(8 if index.divides(m.data[1]) else 1 for m in placed)
    return (bool(placed) and cost > CHEAP and (times >= MANY or times * cost >= 2 * MANY)
            and all(m.op != "reduce" for m in nodes))


def met_at_places(root, loops):
    """Origins of values that each element needs at several places, neighbours of its own, where
    that takes more than to store them: steps of a stencil within each other, functions of a shift.

    Of values within each other those that just do.  loops: the variables around.
    """
    groups, dear, rows, nodes = {}, {}, {}, scalar.walk(root)
    for n in nodes:
        if n.op == "reduce":
            loops += n.data[1]
        if n.args and n.origin is not None:
            groups.setdefault((n.origin, n.free), []).append(n)
    for (v, free), found in groups.items():
        around = [a for a in loops if a.bit & free]
        times = iterations([around])
        often = max(1, v.type.size * (1 if chooses(found[0]) else 1.5))
        if len(found) == 1 or len(found) * times < often:
            continue
        found = outermost(found)
        each, short = work_of(found[0]), tuple([a for a in around if a.extent <= SHORT])
        most = (len(found) - 1) * each
        if most < AGAIN or not short and not is_much(most, v):
            continue
        places = at_once(nodes, found)
        if short and (places - 1) * each >= AGAIN:
            places = int(places * apart(root, v, short, rows) / len(found))
        if is_much((places - 1) * each, v) and places * times >= often:
            dear.update(dict.fromkeys(found, v))
    return {v for n, v in dear.items() if not any(
        dear.get(m, v) is not v for m in scalar.walk(n))}


def is_much(work, v):
    """Is it worth storing v to spare each of its elements so many operations?"""
    return work >= AGAIN and work * v.type.size >= MANY


def apart(root, v, short, rows):
    """At how many places each turn of short loops needs a value, where these loops are written out.

    What a row of three reads in turn is then computed once for the three.  rows: short loops →
    the expression for each of their turns, filled in.
    """
    turns = iterations([short])
    if short not in rows:
        many = turns * len(scalar.walk(root)) > WRITTEN
        rows[short] = [] if many else [
            scalar.rewrite(root, dict(zip(short, map(index.of, at))), {}, {})
            for at in product(*(range(a.extent) for a in short))]
    nodes = {n for one in rows[short] for n in scalar.walk(one) if n.args and n.origin is v}
    return len(nodes) / turns


def outermost(nodes):
    """Those of some nodes that none of the others contains."""
    inside = {}
    for n in nodes:
        for a in n.below:
            if a not in inside:
                scalar.walk(a, inside)
    return [n for n in nodes if n not in inside]


def work_of(n):
    """The operations and reads of a scalar without reductions; none for one with such.

    A choice by a place known at run time keeps many loops from vectors, and counts as AGAIN.
    """
    nodes = scalar.walk(n)
    if any(m.op == "reduce" for m in nodes):
        return 0
    return sum(AGAIN if chooses(m) else m.cost + (m.op == "load") for m in nodes)


def chooses(n):
    """Is a scalar one of two by a place known at run time?"""
    return n.op == "guard" and any(x.nodes for x, _, _ in n.data)


def at_once(nodes, found):
    """How many of those found are computed for one element at most: of a guard's sides, of one.

    nodes: of the whole expression, arguments first.
    """
    used, bit = {}, {n: 1 << k for k, n in enumerate(found)}
    for n in nodes:
        sides = [used[a] for a in n.args]
        here = bit.get(n, 0)
        if n.op == "guard":
            here |= max(sides, key=int.bit_count)
        else:
            for side in sides:
                here |= side
        used[n] = here
    return used[n].bit_count()


def read_again(computed, stored):
    """Large values that several kernels compute from more bytes than to store and read them takes,
    or by much more work.

    computed: pairs (a kernel, the nodes it computes).  The largest savings first, and none that is
    computed from another.
    """
    places = {}
    for number, nodes in computed:
        for n in nodes:
            if n.args and n.origin is not None and n.origin.type.size >= SOME:
                places.setdefault(n.origin, {})[number] = n
    saved = {}
    for v, at in places.items():
        if len(at) > 1 and v not in stored:
            n = next(iter(at.values()))
            gain = max(bytes_spared(n, len(at)), work_spared(n, len(at)))
            if gain > 0:
                saved[n] = gain
    out, known = set(), set()
    for n in sorted(saved, key=saved.get, reverse=True):
        inside = {m.origin for m in scalar.walk(n)}
        if not inside & out and n.origin not in known:
            out.add(n.origin)
            known |= inside
    return out


def bytes_spared(n, kernels):
    """The bytes that so many kernels need not read if one of them stores a large value; or none."""
    size, reads = n.origin.type.nbytes, {m.data[0] for m in scalar.walk(n) if m.op == "load"}
    if size < KEPT:
        return 0
    return (kernels - 1) * (sum(b.type.nbytes for b in reads) - size) - 2 * size


def work_spared(n, kernels):
    """The operations and reads that so many kernels are spared if one of them stores a value; none
    where they are few.
    """
    spared = ((kernels - 1) * (work_of(n) - 1) - 2 * AGAIN) * n.origin.type.size
    return spared if spared >= SPARED else 0


def reads_again(side, variables):
    """Is an operand a window over something computed, each element of which many others read?

    Then it is stored: with its padding, so that all windows lie inside of it; but not with zeros
    between its elements.
    """
    side = uncast(side)
    dilated = side.op == "guard" and any(index.divides(x) for x, _, _ in side.data)
    if side.op == "load" or side.origin is None or dilated:
        return False
    loads = [n.data for n in scalar.walk(side) if n.op == "load"]
    if any(x.nodes for _, x in loads):           # of what is gathered, not of the whole table
        largest = side.origin.type.size
    else:
        largest = max([b.type.size for b, _ in loads], default=0)
    return prod(v.extent for v in variables if side.free & v.bit) >= 2 * largest > 0


def looks_up(side, variables):
    """Is each element of an operand looked up along its sum, where no two lie side by side?

    Stored, it is looked up by vectors, and once for all products that read it.
    """
    mask = sum([v.bit for v in variables])
    return any(d.free & mask for n in scalar.walk(side) if n.op == "load" for d in n.data[1].nodes)


def prologue_cost(side):
    """What an element of an operand costs where it is packed.

    A load counts as two operations, or eight where its index is cut, which is read lane by lane.
    What is expensive alone is judged alone.
    """
    if side.origin is None:
        return 0
    nodes = scalar.walk(side)
    if len(nodes) == 1:
        return 0
    loads = sum(8 if index.divides(n.data[1]) else 2 for n in nodes if n.op == "load")
    return loads + sum(n.cost for n in nodes if n.cost < EXPENSIVE)


def hidden(nodes):
    """Nodes that should not be under a guard: reductions, and expressions that share too much."""
    under, out = {}, set()
    for n in nodes:
        if n.op == "guard":
            inside = scalar.walk(n.args[0])
            under.update(inside)
            if tree_size(inside) > TREE:
                out.add(n.args[0])
    return out | {n for n in under if n.op == "reduce"}


def tree_size(nodes):
    """The nodes of the last of `nodes` (arguments first), and its indices, written as a tree."""
    size, out = {}, 0
    for n in nodes:
        out = size[n] = 1 + sum(size[a] for a in n.below)
    return out
