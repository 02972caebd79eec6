"""Tails: what is computed for a row beside its loops, with vectors, for many rows at once.

    serial i in 0..48                          serial i in 0..48
      t: f32 = 0.0                               t: f32 = 0.0
      reduce k in 0..16                          reduce k in 0..16
        t += w[i,k] * h[k]              →          t += w[i,k] * h[k]
      y[i] = tanh(t)                             row[i] = t
                                               serial j in 0..48 (16 lanes)
                                                 y[j] = tanh(row[j])

Worth it where an elementary function is called and a row is short: of one number these take as long
as of a vector.  Such stretches may stand between loops or in front of them, too, as that of z in
y[j] += w[i,j] * z[i] does, if they compute more than a logarithm; or without such a function, if
they are long: where pixels are looked up at places that take many operations, or random bits decide
what becomes of a sum.  What is added up over the rows (a loss beside its gradient) is added behind
them.  Long loops are cut into blocks, each with rows of its own.  Relies on parts.py for
substitution; schedule.py calls `apart`.
"""

from __future__ import annotations

import itertools

from .. import index, scalar
from ..loop import Accumulate, Buffer, For, Let, Start, Store, accumulators, nodes_of
from ..records import replace
from ..scalar import EXPENSIVE
from ..types import ArrayType
from .memory import stores_of
from .names import names_used
from .parts import blocks_of, cost_of, substituted
from .short_loops import is_sum

LEAST, FEWEST = 4, 8       # rows from which vectors gain, behind loops and elsewhere
WORK = 4096                # cost of a row up to which its tail counts
LONG, MANY = 32, 16        # the same of one without elementary functions, and its rows
LANES = 4                  # operations at once, about, in the loops within a row
WITHIN = 2 * EXPENSIVE     # the least cost of a stretch that loops follow
BLOCK, BLOCKS = 64, 8      # rows of a block; blocks that threads share at least


def apart(loop, space, words, arranged):
    """The loops in place of one over rows with stretches that have vectors; else the loop alone.

    words: names of the kernel, for what a row hands on.  arranged(loop): the statements for one.
    """
    rows, sums = sums_apart(with_names(loop, words), loop.var, words)
    parts = stretches(rows, loop.var)
    dear = [dear for dear, _ in parts]
    least = FEWEST if any(dear[:-1]) else LEAST
    others = [s for dear, part in parts if not dear for s in part]
    gains = any(dear) and len(parts) + bool(sums) > 1 and cost_of(others) <= WORK
    if loop.step != 1 or loop.var.extent < least or accumulators(loop) or not (
            gains and are_separate(parts)):
        return [loop]
    n, serial = loop.var.extent, loop.kind == "serial"
    size = n if serial and n <= BLOCK else block_of(n, loop.kind)
    return blocks_of(loop, size, space, lambda start, size: of_block(
        loop.var, start, size, parts, sums, space, words, arranged))


def with_names(loop, words):
    """The statements of a loop, with names for what loops inside of it compute of a row again and
    again: elementary functions that do not know their variables.
    """
    out = []
    for s in loop.body:
        if isinstance(s, For):
            inside = [t for t in s.body if not isinstance(t, (For, Start))]
            made = {t.name for t in s.body if isinstance(t, (Let, Start, Accumulate))}
            found = {}
            for t in inside:
                for n in known_before(t.expr, loop.var, s.var, made):
                    found.setdefault(n, Let(words.unique("front"), n, t.source))
            out += found.values()
            names = {n: scalar.name(let.name, n.dtype, n.free) for n, let in found.items()}
            if names:
                s = replace(s, body=[replace(t, expr=scalar.rewrite(t.expr, {}, dict(names), {}))
                                     if t in inside else t for t in s.body])
        out.append(s)
    return out


def sums_apart(body, v, words):
    """(the other statements, those that add a value of each row to an element that all rows share).

    Nothing else reads or writes such an element, so that they may be last, in any order.
    """
    shared = [s for s in body if is_sum(s, v)]
    busy = read(body) | {s.buffer for s in stores_of([s for s in body if s not in shared])}
    sums, out = [], []
    for s in body:
        if s not in shared or s.buffer in busy:
            out.append(s)
            continue
        if s.expr.op != "name":
            out.append(Let(words.unique("term"), s.expr, s.source))
            s = replace(s, expr=scalar.name(out[-1].name, s.expr.dtype, s.expr.free))
        sums.append(s)
    return out, sums


def in_accumulators(sums, v, words, outside=0):
    """(what starts accumulators, what feeds them along v, what adds them to memory) for such sums.

    outside: the mask of what else the loop over v depends on.
    """
    fed = [Accumulate(words.unique("total"), s.how, s.expr, s.source) for s in sums]
    return [Start(a.name, a.how, a.expr.dtype) for a in fed], fed, [
        replace(s, expr=scalar.name(a.name, a.expr.dtype, (a.expr.free | outside) & ~v.bit))
        for s, a in zip(sums, fed)]


def known_before(expr, v, inner, made):
    """The largest parts of an expression with an elementary function that know v, but neither
    `inner` nor what is made inside of its loop, and are in no guard.
    """
    dear, own = set(), set()
    for n in scalar.walk(expr):                  # arguments first
        if n.cost >= EXPENSIVE or any(a in dear for a in n.below):
            dear.add(n)
        if n.op == "name" and n.data in made or any(a in own for a in n.below):
            own.add(n)
    found, stack, seen = [], [expr], set()
    while stack:
        n = stack.pop()
        if n in seen or n not in dear:
            continue
        seen.add(n)
        if n.free & v.bit and not n.free & inner.bit and n not in own:
            found.append(n)
        else:
            stack.extend(n.args[1:] if n.op == "guard" else n.args)
    return found


def stretches(body, v):
    """The statements as (is it one that has vectors?, stretch) pairs.

    Those are of named values and of what is stored for each row, with an elementary function, or
    long and in front of all others or behind them.
    """
    out = []
    for rows, part in itertools.groupby(body, lambda s: is_of_rows(s, v)):
        part = [*part]
        last = part[-1] is body[-1]
        at_one_end = last != (not out)
        dear = rows and (is_dear(part) and (last or cost_of(part) >= WITHIN) or
                         at_one_end and is_long(part, body, v))
        if out and not dear and not out[-1][0]:
            out[-1][1].extend(part)
        else:
            out.append((dear, part))
    return out


def block_of(n, kind):
    """The rows of a block: as many as leave blocks for the threads, and no rest if that is near."""
    most = BLOCK
    while kind == "parallel" and most > 16 and n // most < BLOCKS:
        most //= 2
    whole = [k for k in range(most, most // 2, -8) if n % k == 0]
    return whole[0] if whole else min(most, n)


def is_dear(part):
    """Do some statements call elementary functions?"""
    return any(n.cost >= EXPENSIVE for s in part for n in scalar.walk(s.expr))


def is_long(part, body, v):
    """Do these statements of a loop over many rows take most of its time?"""
    cost, loops = cost_of(part), cost_of([s for s in body if isinstance(s, For)])
    return v.extent >= MANY and cost >= LONG and 2 * cost >= cost_of(body) - loops + loops // LANES


def is_of_rows(s, v):
    """Does a statement only name a value, or store one for each row?"""
    return isinstance(s, Let) or isinstance(s, Store) and not s.how and not s.when and (
        not s.index.nodes and index.is_affine(s.index, v) and index.stride(s.index, v) != 0)


def are_separate(parts):
    """Does none of them read or write what another one writes, or add to what it starts?"""
    made = [{s.buffer for s in stores_of(part)} for _, part in parts]
    used = [read(part) for _, part in parts]
    return all(made[p].isdisjoint(made[q]) and made[p].isdisjoint(used[q])
               for p, q in itertools.permutations(range(len(parts)), 2)) and all(
        added(part) <= {s.name for s in part if isinstance(s, Start)} for _, part in parts)


def added(body):
    """The names that some statements, and the loops among them, add to."""
    return {s.name for s in body if isinstance(s, Accumulate)}.union(
        *(accumulators(s) for s in body if isinstance(s, For)))


def read(body):
    """The buffers that some statements read."""
    return {n.data[0] for n in nodes_of(body) if n.op == "load"}


def handed_over(part, behind):
    """The names that a part makes and others use, with their dtypes."""
    made = {s.name: s.dtype if isinstance(s, Start) else s.expr.dtype
            for s in part if isinstance(s, (Start, Let))}
    used = {name for _, others in behind for name in names_used(others)}
    return {name: dtype for name, dtype in made.items() if name in used}


def of_block(v, start, size, parts, sums, space, words, arranged):
    """Loops for each part, over `size` rows from `start` on, and for the sums; v: the variable of
    rows.
    """
    rows, out = {}, []
    for p, (_, part) in enumerate(parts):
        i = space.variable(size)
        known = {name: scalar.load(row, index.of(i)) for name, row in rows.items()}
        keep = []
        for name, dtype in handed_over(part, [*parts[p + 1:], (False, sums)]).items():
            rows[name] = Buffer(words.unique(f"{name}_row"), ArrayType(dtype, (size,)), "local")
            keep.append(Store(rows[name], index.of(i), scalar.name(name, dtype, index.of(i).free)))
        body = substituted(part, {v: index.combine([(start, 1), (index.of(i), 1)])}, known)
        out += arranged(For(i, [*body, *keep], "serial"))
    if sums:
        i = space.variable(size)
        sums = [replace(s, expr=scalar.load(rows[s.expr.data], index.of(i))) for s in sums]
        starts, fed, stores = in_accumulators(sums, i, words, start.free)
        out += [*starts, *arranged(For(i, fed, "reduce")), *stores]
    return out
