"""Names in lowered programs: the user's where known, else letters in order; no name twice.

Buffers have the names that the printed Program gives its variables.  Lets, accumulators, rows and
loops are named per kernel.
"""

from __future__ import annotations

import itertools

from .. import scalar, text
from ..loop import Contract, For, Store, nodes_of
from .memory import stores_of

LOOPS = "ijklmnopqrsuvwxyz"


class Words(text.Names):
    """Names within one kernel."""

    def numbered(self, stem):
        """stem1, stem2, …: the next that is free."""
        while True:
            self.counts[stem, "#"] = k = self.counts.get((stem, "#"), 0) + 1
            if f"{stem}{k}" not in self.used:
                return self.unique(f"{stem}{k}")


def name_loops(kernel):
    """Gives the loop variables of a kernel letters of their own, in the order they appear."""
    buffers = (*kernel.params, *kernel.outputs, *kernel.scratch)
    letter(loops_of(kernel.body), {*words_of(kernel.body), *(b.name for b in buffers)})


def letter(variables, used):
    """Gives variables letters in order, but for those that are used as names."""
    letters = itertools.chain(LOOPS, (c + str(k) for k in itertools.count(2) for c in LOOPS))
    free = (c for c in letters if c not in used)
    for v in dict.fromkeys(variables):
        v.name = next(free)


def loops_of(body):
    """The loop variables of some statements, outermost first."""
    for s in body:
        match s:
            case For():
                yield s.var
                yield from loops_of(s.body)
            case Contract():
                yield from (*s.batch, *s.rows, *s.columns, *s.k)


def words_of(body):
    """The names that some statements bind, and those of the buffers they write."""
    out = set()
    for s in body:
        match s:
            case For():
                out |= words_of(s.body)
            case Contract():
                out |= {s.name, s.total, *s.sums} | words_of(s.body)
            case Store():
                out.add(s.buffer.name)
            case _:
                out.add(s.name)
    return out


def names_used(body):
    """The names that some statements use, in the places and conditions of stores, too."""
    nodes = nodes_of(body)
    for s in stores_of(body):
        for root in (*s.index.nodes, *[d for x, _, _ in s.when for d in x.nodes]):
            scalar.walk(root, nodes)
    return {n.data for n in nodes if n.op == "name"}
