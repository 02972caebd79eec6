"""Vectors of an operand that lies in pieces, such as the rows of an image, between zeros.

Along a flat index a vector runs over the end of a row of 28 pixels into the next one.  Within a row
elements lie behind each other, so each piece is one read under a mask; the index is worked out once
for a piece, where it would be for each lane.

    steps_of(x, v)       between which multiples of v an index grows evenly, and by how much
    pieces(n, v, …)      the Pieces that an operand is along v, or None
    pulled(found, …)     the code of a vector of it

Relies on `text` and the emitter it is given; `product` relies on it.
"""

from __future__ import annotations

import math

from ... import index
from ...passes.product import unguarded
from ...records import frozen
from .text import BYTES, Mask, iota, mangled, vector

MOST = 4                   # pieces of a vector; of more, lanes are read one by one


@frozen
class Pieces:
    """An operand that is `load` where all `ranges` hold, and zero elsewhere.

    Between multiples of `period` of a variable the load's index grows by one with it, and those of
    the ranges by their `slopes`, one or none.
    """
    load: object
    ranges: tuple
    slopes: tuple
    period: int


def pieces(n, variable, dtype, lanes):
    """The Pieces that an operand is along a variable, for vectors that no period holds whole."""
    n, ranges = unguarded(n)
    if n.op != "load" or n.data[0].type.dtype != dtype or n.data[1].nodes:
        return None
    if any(x.nodes for x, _, _ in ranges):
        return None
    period, step = steps_of(n.data[1], variable)
    found = [steps_of(x, variable) for x, _, _ in ranges]
    period = math.gcd(period, *[each for each, _ in found])
    slopes = tuple(slope for _, slope in found)
    few = period % lanes and count_of(period, lanes) <= MOST
    return Pieces(n, ranges, slopes, period) if few and step == 1 and {*slopes} <= {0, 1} else None


def count_of(period, lanes):
    """Of how many pieces a vector is at most."""
    return 1 - (1 - lanes) // period


def pulled(fn, found, emitter_at, start, extent, lanes, type, count):
    """A vector from `start` on, below the variable's extent; from `count` on, or where it is a Mask
    that is off, zero, and not read.

    emitter_at(value): an emitter where the variable has this value.
    """
    period, on = found.period, count if isinstance(count, Mask) else None
    into = fn.rem(start, period)
    value = "zeroinitializer"
    end = lanes if count is None or on else fn.min(count, lanes)
    for m in range(count_of(period, lanes)):
        first = fn.sub(m * period, into) if m else 0
        behind = fn.sub((m + 1) * period, into)
        at = fn.min(fn.add(start, first), extent - 1) if m else start
        value = piece(fn, found, emitter_at(at), first, fn.min(behind, end), lanes, type, value, on)
    return value


def piece(fn, found, emitter, first, stop, lanes, type, others, on):
    """The lanes from `first` to `stop` of a vector that are on, and the others as they are.

    The emitter is at the element that lane `first` has.  on: a Mask, or None for all.
    """
    buffer, x = found.load.data
    base, shift = emitter.address(buffer, x), fn.sub(0, first)
    for (y, lo, hi), slope in zip(found.ranges, found.slopes):
        at = emitter.index(y)
        if slope:
            begin, end = (fn.add(first, fn.sub(limit, at)) for limit in (lo, hi))
            first, stop = fn.max(first, begin), fn.min(stop, end)
        else:
            inside = fn.op(f"icmp ult i64 {fn.sub(at, lo)}, {hi - lo}")
            stop = fn.select(inside, "i64", stop, 0)
    there = fn.op(f"getelementptr {type}, ptr {base}, i64 {shift}")
    v, flags, mask = vector(type, lanes), vector("i1", lanes), between(fn, lanes, first, stop)
    mask = mask if on is None else Mask(fn.op(f"and {flags} {mask}, {on}"))
    return fn.call(f"llvm.masked.load.{mangled(type, lanes)}.p0", ("ptr", there),
                   ("i32", BYTES[type]), (flags, mask), (v, others), result=v)


def between(fn, lanes, first, stop):
    """The Mask of the lanes from `first` on, which is not negative, to `stop`."""
    size = fn.max(fn.sub(stop, first), 0)
    low, wide = (fn.splat("i32", lanes, narrow(fn, x)) for x in (first, size))
    t = vector("i32", lanes)
    behind = fn.op(f"sub {t} {iota('i32', lanes)}, {low}")
    return Mask(fn.op(f"icmp ult {t} {behind}, {wide}"))


def narrow(fn, x):
    """An i64 as an i32."""
    return x if isinstance(x, int) else fn.op(f"trunc i64 {x} to i32")


# ---------------------------------------------------------------------------- how an index steps

def steps_of(x, variable):
    """(period, step): between multiples of the period x grows by `step` with the variable."""
    found = [step_of(a, variable) for a, _ in x.terms if a.free & variable.bit]
    if None in found:
        return 1, 0
    slopes = [c for a, c in x.terms if a.free & variable.bit]
    return math.gcd(*[period for period, _ in found]), sum(
        c * step for c, (_, step) in zip(slopes, found))


def step_of(atom, variable):
    """The same of one atom of an index, or None where it is more than quotients of the variable."""
    if atom is variable:
        return variable.extent, 1
    if not isinstance(atom, index.Quot) or len(atom.ix.terms) != 1 or atom.ix.const:
        return None
    ((inner, c),) = atom.ix.terms
    found = step_of(inner, variable) if c == 1 else None
    if found is None or found[1] == 0:
        return found
    return (atom.n, int(atom.op == "%")) if found[0] % atom.n == 0 or inner is variable else None
