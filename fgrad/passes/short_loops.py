"""Short loops, written out: the loop around them has the vectors then.

    parallel i in 0..1000                     parallel i in 0..1000 (16 lanes)
      t: f32 = 0.0                              y[i] = x[i,0] * x[i,0] + x[i,1] * x[i,1] + …
      reduce k in 0..3 (4 lanes)       →
        t += x[i,k] * x[i,k]
      y[i] = t

Guards on a short loop's variable (the parts of a stack) are decided so; what is added up of these
parts over the outer loop has accumulators then (`feeding`, in schedule.py).  Worth it where vectors
of the outer loop read and write memory in small steps, of which backends read and write whole
vectors.
In a loop over steps a kernel of short loops alone is better without any: `in_straight_lines`, which
the CPU backend calls.  Relies on parts.py for substitution; schedule.py calls `written_out`.
"""

from __future__ import annotations

from math import inf

from .. import index, scalar
from ..loop import Accumulate, For, Let, Start, Store, nodes_of, statements
from ..records import replace
from ..scalar import REDUCTIONS
from ..types import F32, F64
from .lets import name_shared
from .names import Words, words_of
from .parts import substituted
from .updates import stored_last

SHORT, COPIES = 8, 16      # iterations of a short loop, and of all within one another
LONG = 4                   # iterations of the loop around them
FEW, LINES = 4, 64         # iterations of loops that are written as straight lines, and these
NODES = 400                # scalar nodes of the body that comes out
STEPS = (2, 3, 4)          # elements between the lanes of a vector that is picked from others
STORED = (*STEPS, 5, 6, 8, 16)  # the same of vectors that are stored together: parts of stacks
ADDED = (F32, F64)         # dtypes of those that may be added to, as memory holds them


def written_out(loop, words, gathers=False):
    """The loop without short loops inside of it, or sums of one value, where it can have vectors
    then; else itself.

    words: the kernel's names.  gathers: may it read lane by lane, since it would do so anyway?
    """
    short = any(isinstance(s, (For, Start)) for s in loop.body) and copies(loop.body) <= COPIES
    if not short or loop.step != 1 or loop.var.extent < LONG or fills_a_row(loop):
        return loop
    out, said = [], {}
    if not write(loop.body, {}, out, said) or not is_near(
            out, loop.var, gathers, parts_look_up(loop.body)):
        return loop
    if any(is_sum(s, loop.var) for s in out) and not chooses(loop.body, 0):
        return loop
    wide = any(len(steps) > max(STEPS) for steps in whole_steps(out, loop.var))
    if wide and not chooses(loop.body, 0, numbers=True):       # rows of 8 are vectors themselves
        return loop
    return replace(loop, body=with_names(out, loop.var.bit, said, words))


def fills_a_row(loop):
    """Does it store scratch rows along its variable, which are read behind it?"""
    return any(isinstance(s, Store) and s.buffer.kind == "local" and s.index.free & loop.var.bit
               for s in statements(loop.body))


def chooses(body, mask, numbers=False):
    """Do guards choose by the variable of a short loop, as in a stack?  mask: of those around.

    numbers: does what is computed from the variable as a number count, too?
    """
    for s in body:
        if isinstance(s, For):
            if chooses(s.body, mask | s.var.bit, numbers):
                return True
        elif not isinstance(s, Start):
            for n in scalar.walk(s.expr):
                asked = [x for x, _, _ in n.data] if n.op == "guard" else (
                    [n.data] if numbers and n.op == "index" else ())
                if any(x.free & mask for x in asked):
                    return True
    return False


def parts_look_up(body, mask=0):
    """Does what is read at places that only the run knows depend on the variable of a short loop?
    mask: of those around.
    """
    for s in body:
        if isinstance(s, For):
            if not parts_look_up(s.body, mask | s.var.bit):
                return False
        elif not isinstance(s, Start) and any(
                n.op == "load" and n.data[1].nodes and not any(
                    m.free & mask for m in n.data[1].nodes) for n in scalar.walk(s.expr)):
            return False
    return True


def in_straight_lines(kernel):
    """The kernel without loops, where all of them are of few iterations; else itself.

    What it computes is in variables then, of which none is an array: worth it within a loop.
    """
    if not any(isinstance(s, For) for s in kernel.body) or lines(kernel.body) > LINES:
        return kernel
    out, said = [], {}
    with kernel.space:
        if not write(kernel.body, {}, out, said):
            return kernel
        nodes = nodes_of(out)
        stores, words = [s for s in out if isinstance(s, Store)], Words(words_of(kernel.body))
        if len(nodes) > NODES or kernel.aliases and any(s.how for s in stores) or not {
                s.buffer for s in stores}.isdisjoint(n.data[0] for n in nodes if n.op == "load"):
            return kernel
        body = with_names(out, 0, said, words)
        if kernel.aliases:                       # all is read before anything is written over
            body = stored_last(body, words)
    return replace(kernel, body=body, scratch=[])


def lines(body):
    """How many statements are written for some, or infinitely many where a loop is long.

    A loop over four elements, without loops or sums, is one vector.
    """
    total = 0
    for s in body:
        if isinstance(s, For):
            plain = all(isinstance(t, (Let, Store)) for t in s.body)
            few = s.var.extent < FEW or s.var.extent == FEW and not plain
            total += s.var.extent * lines(s.body) if few and s.step == 1 else inf
        else:
            total += 1
    return total


def with_names(body, mask, said, words):
    """The statements, with names for what they use more than once.

    mask: of the variables around them.  said: node → (its name, its source), of what had one; the
    first of several keeps it.
    """
    taken = set()
    for s in body:
        mask |= s.expr.free

    def describe(n):
        word, source = said.get(n, (None, None))
        if word:
            word = words.unique(word) if word in taken else word
            taken.add(word)
        return word, source
    return name_shared(body, mask, describe, words)


def copies(body):
    """How often the innermost statements are written; more than COPIES for a loop that is long."""
    most = 1
    for s in body:
        if isinstance(s, For):
            plain = s.var.extent <= SHORT and s.step == 1
            most = max(most, s.var.extent * copies(s.body) if plain else COPIES + 1)
    return most


def write(body, values, out, said):
    """Adds the Stores of some statements, and what feeds accumulators from outside, to `out`.

    values: name → its node, of the accumulators that start here (their Start, until something is
    added) and all that is named, and (buffer, index) → that of a scratch row's element.  said: see
    `with_names`; filled in.  False where that is not possible.
    """
    for s in body:
        match s:
            case Start():
                values[s.name] = s
            case For():
                for k in range(s.var.extent):
                    if not write(substituted(s.body, {s.var: index.of(k)}), values, out, said):
                        return False
            case Store() if s.when or s.index.nodes or s.how and s.buffer.kind == "local":
                return False
            case Store() if s.buffer.kind == "local":
                values[s.buffer, s.index] = named(s.expr, values)
            case Let() | Accumulate() | Store():
                expr = named(s.expr, values)
                if isinstance(s, Store) or isinstance(s, Accumulate) and s.name not in values:
                    out.append(replace(s, expr=expr))
                elif isinstance(s, Let):
                    values[s.name] = expr
                    said.setdefault(expr, (s.name, s.source))
                else:
                    values[s.name] = accumulated(values[s.name], s.how, expr)
            case _:
                return False
    return True


def accumulated(so_far, how, expr):
    """An accumulator after one more value; what begins with another identity, as a recurrence may,
    has that to begin with.
    """
    if isinstance(so_far, Start) and so_far.how == how:
        return scalar.begun(how, expr)
    return scalar.apply(REDUCTIONS[how][0], value_of(so_far), expr)


def value_of(found):
    """The node of an accumulator, or of something named."""
    if isinstance(found, Start):
        return scalar.const(REDUCTIONS[found.how][1](found.dtype), found.dtype)
    return found


def named(expr, values):
    """The expression with what its names and its reads of scratch rows stand for."""
    new = {n: value_of(values[n.data]) for n in scalar.walk(expr)
           if n.op in ("name", "load") and n.data in values}
    return scalar.rewrite(expr, {}, new, {})


def is_near(body, v, gathers, lookups):
    """May all that some statements read and write along v be whole vectors?  And is nothing read
    that they write: stores of whole steps wait for the last of them.  gathers, lookups: may they
    read lane by lane, at all, or where only the run knows?
    """
    nodes, whole = nodes_of(body), [s for steps in whole_steps(body, v) for s in steps]
    written = {s.buffer for s in body if isinstance(s, Store)}
    for s in body:
        if isinstance(s, Store) and s not in whole and not (
                is_stride(s.index, v, (1,)) or is_sum(s, v)):
            return False
    masked = {m for n in nodes if n.op == "guard" and any(x.free & v.bit for x, _, _ in n.data)
              for m in scalar.walk(n.args[0])}
    return len(nodes) <= NODES and all(
        b not in written and (gathers or lookups and x.nodes or is_stride(x, v, (0, 1))
                              or n not in masked and is_picked(b, x, v))
        for n in nodes if n.op == "load" for b, x in [n.data])


def is_sum(s, v):
    """Does a statement add to one element, for all v, in the dtype that it has in memory?"""
    return isinstance(s, Store) and bool(s.how) and not s.when and is_stride(s.index, v, (0,)) and (
        s.buffer.type.dtype == s.expr.dtype)


def is_stride(x, v, strides):
    return not x.nodes and index.is_affine(x, v) and index.stride(x, v) in strides


def is_picked(buffer, x, v):
    """Is x, along v, the same place of step after step of an array of whole steps, or backwards?"""
    if not is_stride(x, v, (-1, *STEPS, *[-step for step in STEPS])):
        return False
    step = abs(index.stride(x, v))
    return buffer.type.size % step == 0 and all(c % step == 0 for _, c in x.terms)


def whole_steps(body, v):
    """Lists of stores which together write, or add to, whole steps along v: its elements in order.
    """
    found = {}
    for s in body:
        if isinstance(s, Store) and not s.when and is_stride(s.index, v, STORED) and (
                not s.how or s.buffer.type.dtype in ADDED):
            rest = s.buffer, index.plus(s.index, -s.index.const), index.stride(s.index, v), s.how
            found.setdefault(rest, {})[s.index.const] = s
    return [[by[c + k] for k in range(step)] for (_, _, step, _), by in found.items()
            for c in sorted(by) if c % step == 0 and all(c + k in by for k in range(step))]
