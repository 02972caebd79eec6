"""Borders: a loop is cut where its guards change, so that they are decided in each piece.

    serial k in 0..28                            serial k in 0..1      … 0.0 …
      … (x[k-1] if 0 <= k-1 < 28 else 0.0) …  →  serial k in 0..27     … x[k] …

A convolution with padding that is written out over its window then tests nothing in the middle,
and the parts of a concatenation are loops of their own.  Relies on parts.py for substitution and
costs; schedule.py calls `cut`, and `cut_short` and `sums_of_choices` for loops that could have been
written out.
"""

from __future__ import annotations

from .. import index, scalar
from ..loop import Accumulate, For, Let, Start, Store, nodes_of, statements
from ..records import replace
from .jam import renamed
from .parts import cost_of, substituted
from .short_loops import COPIES, copies

OFTEN = 64                 # runs of its statements from which it is, too
CHUNK = 16                 # short pieces of an inner loop that share one around them
PIECES = 256               # of a loop, at most
NODES = 600                # scalar nodes that all pieces of a loop may have
LONG, LARGER = 32, 3       # iterations of a loop, of none or short ones, whose pieces may have,
                           # together, so many times what it has
RUN = 8                    # elements that pieces of an innermost loop have at least, in the mean,
                           # where they end with quotients


def cut(body, space, region, words, room=NODES, times=1):
    """The statements with loops cut, into pieces that have so many scalar nodes in all.

    region: the cost of a part of a parallel loop.  words: the kernel's names.  times: how often
    the statements run.
    """
    out = []
    for s in body:
        out += pieces(s, space, region, words, room, times) if isinstance(s, For) else [s]
    return out


def pieces(loop, space, region, words, room, times):
    """The loop in pieces, or whole, with the loops inside of it cut.

    Those of a parallel loop become kernels, others stand side by side: with names of their own.
    """
    ends = places(loop) if loop.step == 1 else []
    if ends and loop.var.extent >= LONG and copies(loop.body) <= COPIES:
        room = max(room, LARGER * size_of(loop.body))
    for at in (ends, about_largest(ends)) if is_worth_it(loop, ends, times) else ():
        found, sizes = fitting(loop, at, room, space, words)
        if found:
            break
    else:
        if made := in_chunks(loop, space, words):
            return in_kernels(made, region, space, words) if loop.kind == "parallel" else made
        found, sizes = [loop], [size_of(loop.body)]
    left, made = max(room - sum(sizes), 0), list(found)
    for k in sorted(range(len(found)), key=lambda k: -found[k].var.extent):
        if found[k].kind != "reduce":            # one loop within feeds its accumulators
            runs = times * found[k].var.extent
            body = cut(found[k].body, space, region, words, sizes[k] + left, runs)
            left -= max(size_of(body) - sizes[k], 0)
            made[k] = replace(found[k], body=body)
    several = loop.kind == "parallel" and len(made) > 1
    return in_kernels(made, region, space, words) if several else made


def cut_short(body, space, words):
    """The statements with short loops around others cut, which are too short to be cut before it
    is known that they are not written out.
    """
    out = []
    for s in body:
        short = isinstance(s, For) and s.kind == "serial" and copies([s]) <= COPIES
        ends = places(s) if short and any(isinstance(t, For) for t in s.body) else ()
        out += in_pieces(s, ends, space, words) if len(ends) > 2 else [s]
    return out


def sums_of_choices(body, space, words, others=frozenset()):
    """The statements, where short sums choose what they add up, another thing each time: written
    out, unless lanes or several rows at once run around them.

    others: the names of what is added to elsewhere, maybe by lanes.
    """
    out = []
    for s in body:
        if isinstance(s, For) and accumulated([s]):
            inner, fed = s.body, others | fed_beside(s, body)
            if s.rows == 1 and s.width == 1:
                inner = [t for part in inner for t in (
                    pieces_of_sum(part, fed | fed_beside(part, inner), space, words)
                    if isinstance(part, For) else [part])]
            s = replace(s, body=sums_of_choices(inner, space, words, fed))
        out.append(s)
    return out


def fed_beside(s, body):
    """The names of all that the other statements of a body add to."""
    return frozenset().union(*[accumulated([t]) for t in body if t is not s])


def pieces_of_sum(s, others, space, words):
    """A short sum in pieces without lanes, where most of these are of one element; or as it is.

    others: the names of what is added to elsewhere.
    """
    if s.kind != "reduce" or s.step != 1 or copies([s]) > COPIES:
        return [s]
    ends = places(s)
    if len(ends) < 3 or not are_short(ends) or not others.isdisjoint(accumulated([s])):
        return [s]
    return [replace(t, width=1, unroll=1) for t in in_pieces(s, ends, space, words)]


def accumulated(body):
    """The names of all that some statements add to."""
    return {t.name for t in statements(body) if isinstance(t, Accumulate)}


def in_chunks(loop, space, words):
    """Loops over the same, each with a chunk of the short pieces of the loop inside; or nothing.

    Of arrays stacked along a last axis, many read and write one element each: of some of them, at
    least, the reads are vectors.
    """
    if loop.kind == "reduce" or len(loop.body) != 1 or not are_apart(inner := loop.body[0]):
        return []
    ends = places(inner)
    if len(ends) - 1 <= CHUNK or not are_short(ends):
        return []
    count = -(-(len(ends) - 1) // CHUNK)
    ends = [ends[(len(ends) - 1) * k // count] for k in range(count + 1)]
    return [replace(loop, body=[s]) for s in in_pieces(inner, ends, space, words)]


def are_short(ends):
    """Are pieces with these ends mostly of one element?"""
    return ends[-1] < 2 * (len(ends) - 1)


def are_apart(loop):
    """Is it an innermost loop of stores that nothing in it reads?"""
    if not isinstance(loop, For) or loop.kind != "serial" or loop.step != 1 or any(
            not isinstance(s, Store) or s.how or s.when for s in loop.body):
        return False
    written = {s.buffer for s in loop.body}
    return not any(n.op == "load" and n.data[0] in written for n in nodes_of(loop.body))


def is_worth_it(loop, ends, times):
    """May the loop be cut at these ends, and does what it holds run often?  It is not so short that
    it may be written out; elements that are stored one by one are better chosen in vectors.
    """
    if not 2 <= len(ends) - 1 <= PIECES or copies([loop]) <= COPIES:
        return False
    each = iterations(loop.body)
    one_by_one = loop.kind != "reduce" and each == 1 and are_short(ends)
    return not one_by_one and times * loop.var.extent * each >= OFTEN


def about_largest(ends):
    """The ends of the largest piece, and of what is before it and behind it."""
    _, start, end = max((b - a, a, b) for a, b in zip(ends, ends[1:]))
    return sorted({0, start, end, ends[-1]})


def in_pieces(loop, ends, space, words):
    """A loop from each of these ends to the next, one after another."""
    for start, end in zip(ends, ends[1:]):
        v = space.variable(end - start)
        body = substituted(loop.body, {loop.var: index.plus(index.of(v), start)})
        if start and loop.kind != "parallel":
            body = with_own_names(body, words)
        yield replace(loop, var=v, body=body)


def fitting(loop, ends, room, space, words):
    """(the pieces of a loop, how many scalar nodes each has), or nothing where that is too much."""
    found, sizes = [], []
    for piece in in_pieces(loop, ends, space, words):
        found.append(piece)
        sizes.append(size_of(piece.body))
        if sum(sizes) > room:
            return [], []
    return found, sizes


def size_of(body):
    """How many scalar nodes the statements within have, each on its own; at least one."""
    return sum(len(scalar.walk(s.expr)) for s in statements(body) if not isinstance(s, Start)) or 1


def in_kernels(loops, region, space, words):
    """Parallel loops: those that are too small to be shared out follow each other in one."""
    loops = [t for s in loops for t in shared_out(s)]
    small = [s for s in loops if cost_of([s]) < region]
    large = [replace(s, grain=-(-region // max(1, cost_of(s.body))))
             for s in loops if not any(s is t for t in small)]
    if len(small) > 1:
        inside = [replace(s, kind="serial", body=with_own_names(s.body, words) if k else s.body)
                  for k, s in enumerate(small)]
        small = [For(space.variable(1), inside, "parallel")]
    return small + large


def shared_out(loop):
    """A parallel loop, or those inside of it in its place where it runs once."""
    once = loop.var.extent == 1 and all(
        isinstance(s, For) and s.kind == "serial" for s in loop.body)
    inside = [t for s in loop.body for t in shared_out(replace(s, kind="parallel"))] if once else ()
    return inside or [loop]


def iterations(body):
    """How often the innermost statements run at most."""
    return max([s.var.extent * iterations(s.body) for s in body if isinstance(s, For)], default=1)


def with_own_names(body, words):
    """The statements with other names for values, and for sums that start there."""
    names = [s.name for s in statements(body) if isinstance(s, (Let, Start))]
    return renamed(body, {name: words.unique(name) for name in names})


def places(loop):
    """0, where guards that depend on the loop's variable alone change, and its end; or nothing.

    A guard of a quotient may change with it: between these ends the quotient is one number.
    """
    v, found = loop.var, []
    for n in nodes_of(loop.body):
        if n.op == "guard":
            found += [r for r in n.data if r[0].free == v.bit and not r[0].nodes]
    if not found:
        return []
    shortest = 1 if any(isinstance(s, For) for s in loop.body) else RUN
    ends = {0, v.extent}
    for x, lo, hi in dict.fromkeys(found):
        ends.update(changes(x, lo, hi, v, shortest))
    return sorted(ends)


def changes(x, lo, hi, v, shortest):
    """The values of v before which lo <= x < hi changes, or a digit of v in x; nothing where these
    are less than `shortest` apart, or more than digits are divided.
    """
    divided = [a for a, _ in x.terms if isinstance(a, index.Quot)]
    if not all(is_digit(a, v) for a in divided):
        return set()
    steps = sorted({0, v.extent}.union(*(steps_of(a, v) for a in divided)))
    if len(steps) > 2 and v.extent < shortest * (len(steps) - 1):
        return set()
    ends = set(steps)
    for start, end in zip(steps, steps[1:]):
        first = value(x, v, start)
        a = value(x, v, start + 1) - first if end - start > 1 else 0
        for bound in (lo, hi) if a else ():          # the first k that lies on its other side
            at = -((first - bound) // a) if a > 0 else (first - bound) // -a + 1
            ends.add(min(max(start + at, start), end))
    return ends


def is_digit(a, v):
    """Is it x/n, x%n or (x/n)%m, for an x that v is no quotient in, and of not too many steps?"""
    if len(a.ix.terms) == 1 and a.op == "%" and not index.is_affine(a.ix, v):
        (b, c), = a.ix.terms
        return b.op == "/" and c == 1 and not a.ix.const and is_digit(b, v)
    return index.is_affine(a.ix, v) and (a.ix.hi - a.ix.lo) // a.n <= PIECES


def steps_of(a, v):
    """The values of v before which the quotient within a digit steps."""
    x, n, c = a.ix, a.n, index.stride(a.ix, v)
    if not index.is_affine(x, v):
        return steps_of(x.terms[0][0], v)
    return {-((x.const - bound) // c) if c > 0 else (x.const - bound) // -c + 1
            for bound in range((x.lo // n + 1) * n, x.hi + 1, n)}


def value(x, v, k):
    """The value of an Ix of v alone where v is k."""
    return index.substitute(x, {v: index.of(k)}).const
