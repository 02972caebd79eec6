"""Tables: what depends on no argument is computed once, when the Program is compiled.

    angle = mul 0.1 iota[shape=(64,)];  w = cos angle;  y = mul x w      →      y = mul x w, given w

Only what is dear is worth memory and reading it: elementary functions, reductions, what NumPy's
rules compute.  Masks and counters stay, and are part of the kernels that use them.  A table is kept
where it is smallest: in front of what spreads or moves it, and of what puts smaller ones together.
Fourier transforms have their roots of unity so, and the user's windows, grids and encodings of
places are no work.  Relies on the operations' NumPy rules and on `pull`.
"""

from __future__ import annotations

from ..core import EVALUATE
from ..ir import Program, Var
from ..scalar import EXPENSIVE
from .prune import without_dead
from .pull import MOVED, Graph, step_of

FEW = 2                    # elements that a table has, or is computed from, at least
MOST = 1 << 18             # elements of what is computed on the way
BYTES = 1 << 22            # of all tables of a Program
PARTS = 16                 # times as large is a table at most as a part of it that is read


def with_tables(program):
    """(the Program with its tables as further hidden arrays, these pairs of a Var and an Array).

    The very same Program where it has none.
    """
    known = {}                                   # Var → the equation that makes it
    for eqn in program.eqns:
        if is_plain(eqn) and all(v in known for v in eqn.variables):
            known.update((v, eqn) for v in eqn.outs)
    read = dict.fromkeys(v for eqn in program.eqns if not known.keys() & set(eqn.outs)
                         for v in eqn.variables if v in known) if known else {}
    if not read:
        return program, ()
    wanted = Wanted(program, known)
    tables = dict.fromkeys(t for v in read for t in wanted.of(v))
    made = computed(tables, known) if tables else ()
    if not made:
        return program, ()
    given = {v for v, _ in made}
    eqns = [eqn for eqn in program.eqns if not eqn.outs or eqn.outs[0] not in given]
    return without_dead(Program(program.name, program.inputs, eqns, program.outputs,
                                (*program.hidden, *made))), made


def is_plain(eqn):
    """Is it an equation of one result that NumPy's rule gives, for which there is room?"""
    op = eqn.op
    return (not op.effect and not op.nested and not op.multiple and op.numpy is not None
            and eqn.outs[0].type.size <= MOST and not op.axis_names(eqn.params))


class Wanted:
    """Which tables make known values cheap."""

    def __init__(self, program, known):
        self.graph, self.known, self.found = Graph(program), known, {}

    def of(self, v):
        """The tables that v is cheap to compute from: none, itself, or smaller ones before it."""
        if v not in self.found:
            self.found[v] = self.chosen(v)
        return self.found[v]

    def chosen(self, v):
        eqn = self.known[v]
        below = tuple(dict.fromkeys(t for a in eqn.variables for t in self.of(a)))
        dear, moves = self.kind_of(v, eqn)
        if not dear and not below or v in self.graph.outputs:
            return ()
        size, before = v.type.size, sum(t.type.size for t in below)
        if not dear and not keeps(eqn) and (
                before <= PARTS * size if moves else 2 * before <= size):
            return below
        return (v,) if max(a.type.size for a in (*eqn.variables, v)) >= FEW else ()

    def kind_of(self, v, eqn):
        """(is its last operation dear?  Does it but move elements?)"""
        if step_of(eqn.op) != "pull":
            return True, False
        probe = self.graph.probe(v)
        dear = bool(probe.reduces) or probe.cost >= EXPENSIVE
        return dear, not dear and probe.size <= MOVED and len(eqn.variables) == 1


def keeps(eqn):
    """Is it there to have a value in memory?"""
    return getattr(eqn.op, "keeps", False)


def computed(tables, known):
    """(Var, Array) of the tables, as many as there is room for."""
    values, room, made = {}, BYTES, []
    for v in tables:
        if v.type.nbytes <= room:
            room -= v.type.nbytes
            made.append((v, value(v, known, values)))
    return tuple(made)


def value(v, known, values):
    """The Array of a known value.  values: of those that are computed already."""
    stack = [v]
    while stack:
        eqn = known[stack[-1]]
        missing = [a for a in eqn.variables if a not in values]
        stack += missing
        if not missing:
            args = [values[a] if a.__class__ is Var else a for a in eqn.args]
            values[stack.pop()] = EVALUATE.process(eqn.op, args, eqn.params)
    return values[v]
