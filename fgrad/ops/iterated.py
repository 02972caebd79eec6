"""Elementwise operations by series and continued fractions, which run until they have converged.

How long that takes depends on the values, so there is no pull.  A formula (`mathematics`) gets two
functions more: m.limit repeats a step where elements are needed, and m.felt says where a change
still counts: relative to a total by 2 units of f64's last place, which the factors of a fraction
fall below, or by far less than one of the result's.  Here they are those of NumPy's arrays, for
eager calls and for devices whose code calls NumPy's rules; `passes/series.py` has those of compiled
loops.  All dtypes are computed in f64 and rounded once.  Relies on `elementwise`; `incomplete` and
`integrals` rely on it.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np

from .. import tree
from ..errors import GradientError
from ..types import F32, F64, FLOATS
from .elementwise import Elementwise
from .mathematics import OF_ARRAYS, Dual
from .silence import quiet

STEPS = 20_000             # at most; about 10 √a of those of `incomplete` are needed
BLOCK, CHECK = 4096, 4     # elements that take their steps together; steps until some may leave
TINY = 1e-300


class Iterated(Elementwise):
    """A row whose value is found by iteration; there is no derivative where a partial is None.

    formula: a function of a mathematics and f64 values.  once_in: arguments that it has a first
    derivative by, and no second.  compiles: the formula is one of real numbers.
    """
    pull = None
    numbers = False

    def __init__(self, name, formula, partials, once_in=(), compiles=True, doc=None):
        self.formula, self.once_in, self.compiles = formula, once_in, compiles
        self.constant_in = tuple(k for k, partial in enumerate(partials) if partial is None)
        known = [partial or (lambda *args, k=k: self.refuse(k))
                 for k, partial in enumerate(partials)]
        super().__init__(name, FLOATS, doc, numpy=in_double(formula), scalar="add",
                         partials=known)

    def refuse(self, k):
        """Raises GradientError: the derivative by argument k is not known."""
        raise GradientError(f"{self.name} has no derivative by its argument {k + 1}.",
                            fix="fgrad.stop_gradient(a) holds it constant")


def in_double(formula):
    """The function of arrays of any float dtype that computes in f64."""
    @quiet
    def numpy(*args):
        dtype = np.asarray(args[0]).dtype
        wide = np.broadcast_arrays(*[np.asarray(x, F64) for x in args])
        flat = [x.ravel() for x in wide]
        return formula(OF_LIMITS[dtype == F64], *flat).reshape(wide[0].shape).astype(dtype)
    return numpy


def limit(step, state, fixed, needed):
    """What state[0] comes to, where it is needed.

    step: (n, state, fixed) → (state, where it changes still), for n = 1, 2, …; state, fixed:
    tuples of arrays of one axis, or of Duals.  Elements leave their block when they have converged.
    """
    out = tree.map(np.copy, state[0])
    places = np.flatnonzero(needed)
    for start in range(0, len(places), BLOCK):
        at = places[start:start + BLOCK]
        now, constants = taken((state, fixed), at)
        for n in range(1, STEPS):
            now, going = step(n, now, constants)
            if n % CHECK == 0 and not going.all():
                put(out, at[~going], taken(now[0], ~going))
                at, now, constants = taken((at, now, constants), going)
                if not at.size:
                    break
        put(out, at, now[0])
    return out


def taken(arrays, at):
    """A tree of arrays, some elements of each."""
    return tree.map(lambda x: x[at], arrays)


def put(out, at, values):
    """Stores elements of a tree of arrays."""
    tree.map(lambda x, y: x.__setitem__(at, y), out, values)


def felt(bound, change, total):
    """Where a change of the total is above the bound, or of a Dual that of the derivative."""
    if not isinstance(total, Dual):
        return abs(change) > bound * abs(total)
    size = abs(total.value)
    return (abs(change.value) > bound * size) | (
        abs(change.slope) > bound * (abs(total.slope) + size))


def mathematics(of, limit, full, dtype):
    """The functions that the formula of a result of this dtype gets."""
    return SimpleNamespace(**vars(of), limit=limit, full=full,
                           felt=partial(felt, 4e-16 if dtype == F64 else 1e-10))


OF_LIMITS = [mathematics(OF_ARRAYS, limit, np.full_like, dtype) for dtype in (F32, F64)]


def lentz(total, above, below, a, b):
    """One step of a continued fraction … a / (b + …), by Lentz' method: (total, above, below).

    Nothing is divided by 0: TINY is less than rounding, but for 0.
    """
    below = 1 / (b + a * below + TINY)
    above = b + a / above + TINY
    return total * (above * below), above, below


def fraction(m, start, above, step, fixed, needed):
    """The continued fraction 1 / (start + …); step: (n, (total, above, below), fixed) → the next
    three.  above: the numerator of the first of them.
    """
    def advance(n, state, fixed):
        after = step(n, state, fixed)
        return after, m.felt(after[0] - state[0], after[0])
    below = 1 / (start + TINY)
    return m.limit(advance, (below, 0.0 * below + above, below), fixed, needed)
