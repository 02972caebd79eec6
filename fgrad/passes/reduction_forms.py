"""In which loops a reduction is computed, and the axes of what is computed from it.

    row form        y[i] = Σⱼ x[i,j]              for i: t = Σⱼ …; y[i] = t
    column form     y[j] = Σᵢ x[i,j]              for i: for j: y[j] += x[i,j]
    across          y[b,l] = Σⱼ x[b,j,l]          for b: for vectors of l: t = Σⱼ …; y[b,l] = t
    outer form      s = Σᵢ Σⱼ x[i,j]              for i: s += Σⱼ …
    written out     y[i,c] = Σⱼ d[i,j,c] w[i,j]   for i: t₁, t₂, t₃ = Σⱼ …; y[i,1] = t₁; …

Relies on `scalar`, `index` and `collapse`; `fuse` relies on it.
"""

from __future__ import annotations

import functools
import itertools
from functools import partial
from math import prod

from .. import index, scalar
from ..scalar import EXPENSIVE, REDUCTIONS
from .collapse import indices, runs
from .parts import cost_of_one
from .pull import uncast

PLACES, FEW = 4, 8                 # of axes that are written out, and elements of short sums
WIDE, MOST = 8, 8                  # columns that make a vector; vectors for a thread
SHORT, DEEP = 32, 2048             # elements of columns that are added up across, always or if
NEAR = 1 << 17                     # all of these are no more
CHEAP = 32                         # additions of a short sum that is written out
STEP = 4                           # elements from one to the next of a vector that is picked
ALONE = 5                          # regions' work of a sum that joins no kernel of numbers


def column_form(reduction, axes):
    """Is the largest read under the reduction contiguous along a kept axis, or nearly so?

    Or does it know none of them, and would be gathered along the reduction's own?
    """
    best = 0, False, False                       # elements, are they apart, are columns better
    mask, every = [sum(a.bit for a in some) for some in (reduction.data[1], axes)]
    for n in scalar.walk(reduction.args[0]):
        if n.op != "load" or not n.data[1].free & mask:
            continue
        buffer, x = n.data
        size = prod(a.extent for a, _ in x.terms if isinstance(a, index.Var))
        size, unit = min(size, buffer.type.size), [a for a, c in x.terms if c == 1]
        if not unit and x.free & every:
            least = min([abs(c) for _, c in x.terms])
            unit = [a for a, c in x.terms if c == least <= STEP
                    and isinstance(a, index.Var) and a.extent >= WIDE]
        if unit or axes and not x.free & every:
            best = max(best, (size, not unit, not unit or unit[0] in axes), key=lambda b: b[:2])
    return best[2]


def columns_across(reduction, axes, target):
    """Are columns better added up one vector of them after the other, than row by row?

    Where they are short or near each other, and there are enough vectors for all threads.
    """
    mask, steps = 0, 1
    for r in reduction.data[1]:
        mask, steps = mask | r.bit, steps * r.extent
    found = list(indices(scalar.walk(reduction.args[0])))
    *outer, row = runs(axes, found) or [[]]
    columns, rows = prod(a.extent for a in row), prod(a.extent for r in outer for a in r)
    near = steps <= SHORT or outer and steps <= DEEP and steps * columns <= NEAR
    many = rows * (columns // WIDE) >= (target.threads if outer else MOST * target.threads)
    return near and many and columns >= WIDE and any(
        x.free & mask and index.is_affine(x, row[-1])
        and 0 < index.stride(x, row[-1]) <= STEP for x in found)


def outer_form(reduction, axes, target):
    """Is it a reduction to one number, over several axes, rows that reduce, or much for one thread?
    """
    if axes:
        return False
    first, *rest = reduction.data[1]
    if rest or steps_cost(reduction) >= 2 * target.region_cost:
        return True
    return any(n.op == "reduce" and n.free & first.bit for n in scalar.walk(reduction.args[0]))


def is_shared_out(reduction, target):
    """Is a reduction to one number worth a kernel of its own, for several threads, even where it
    might join one of other passes over what it reads?
    """
    return steps_cost(reduction) >= ALONE * target.region_cost


def steps_cost(reduction):
    """The work of a reduction to one number."""
    return prod(v.extent for v in reduction.data[1]) * (1 + cost_of_one(reduction.args[0]))


def axes_missed(root, axes, target):
    """The axes that a reduction does not know, whose elements are all computed from columns.

    y[b,j,l] = x[b,j,l] / Σₖ x[b,k,l] is computed for (b, l), and there for all j.
    """
    reductions = [n for n in scalar.walk(root) if n.op == "reduce"]
    every = sum(a.bit for a in axes)
    for n in reductions:
        missed = tuple(a for a in axes if not n.free & a.bit)
        known = tuple(a for a in axes if n.free & a.bit)
        if not n.free & ~every and missed and axes[:len(known)] != known and (
                columns_across(n, known, target)):
            return missed
    return ()


def written_out_axes(root, axes):
    """The short axes that a reduction knows, but not all that is dear of what it adds up
    (coordinates, and distances of points): with a sum for each of their places, that is computed
    once.  And those along which its terms lie side by side: vectors of three are none, if theirs
    do not go on along another axis.

    None where columns of the other axes are added up, or these have few elements.
    """
    every = sum(a.bit for a in axes)
    most = PLACES if len(axes) > 1 else WIDE - 1       # columns alone: what makes no vector
    short, found = {a for a in axes if a.extent <= most}, set()
    reductions = [n for n in scalar.walk(root) if n.op == "reduce" and not n.free & ~every
                  and prod(r.extent for r in n.data[1]) > FEW] if short else ()
    for n in reductions:
        mask = sum(r.bit for r in n.data[1])
        dear = [m.free for m in scalar.walk(n.args[0]) if m.free & mask and m.free & every
                and (m.op == "reduce" or m.cost >= EXPENSIVE)]
        found |= {a for a in short if n.free & a.bit and not all(f & a.bit for f in dear)}
        found |= {a for a in short if column_form(n, (a,)) and not goes_on(n, axes, a)}
    rest = tuple(a for a in axes if a not in found)
    many = prod(a.extent for a in found) > most
    few = rest and prod(a.extent for a in rest) < PLACES
    if many or few or any(column_form(n, rest) for n in reductions):
        return ()
    return tuple(a for a in axes if a in found)


def goes_on(reduction, axes, last):
    """Is the last of some axes the end of a row of at least a vector, in all that is read?"""
    *_, row = runs(axes, list(indices(scalar.walk(reduction.args[0]))))
    return last in row and len(row) > 1 and prod(a.extent for a in row) >= WIDE


def short_sums_written_out(root):
    """The reduction, each short and cheap one inside of it as one expression."""
    new = {}
    for n in scalar.walk(root):
        if n.op == "reduce" and n is not uncast(root):
            how, variables = n.data
            extents = [range(v.extent) for v in variables]
            count = prod(map(len, extents))
            if count <= PLACES and count * sum(m.cost for m in scalar.walk(n.args[0])) <= CHEAP:
                body = scalar.rewrite(n.args[0], {}, new, {})
                terms = [scalar.rewrite(body, dict(zip(variables, map(index.of, at))), {}, {})
                         for at in itertools.product(*extents)]
                new[n] = functools.reduce(partial(scalar.apply, REDUCTIONS[how][0]), terms[1:],
                                          scalar.begun(how, terms[0]))
                new[n].origin = new[n].origin or n.origin
    return scalar.rewrite(root, {}, new, {})


def accumulates(n, nest, target):
    """Is a reduction in these loops one for a kernel of its own, which adds up in memory?"""
    known = tuple(a for a in nest if n.free & a.bit)
    if len(known) == len(nest):
        return in_columns(n, known, target) or outer_form(n, known, target)
    across = target.across and known == nest[:len(known)]
    return in_columns(n, known, target) and not (
        across and columns_across(n, known, target))


def adds_columns(n, axes, target):
    """Is it a reduction in column form?"""
    if n.op != "reduce" or not axes:
        return False
    across = target.across and columns_across(n, axes, target)
    return not across and in_columns(n, axes, target)


def has_other_form(n, axes, target):
    """Is it a reduction in column form, or one to a number that threads share?"""
    return adds_columns(n, axes, target) or n.op == "reduce" and not axes and is_shared_out(
        n, target)


def in_columns(n, axes, target):
    return target.kind == "cpu" and column_form(n, axes)
