"""Names in lowered programs: the user's where known, else letters in order; no name twice.

Buffers are named once for the whole Plan; Lets, accumulators, rows and loops once per kernel.
"""

from __future__ import annotations

import itertools
import keyword
import string

from .. import source


def letters():
    """a, b, …, z, aa, ab, …"""
    for length in itertools.count(1):
        for word in itertools.product(string.ascii_lowercase, repeat=length):
            yield "".join(word)


class Names:
    """Hands out names that are not in use yet."""

    def __init__(self, used=()):
        self.used, self.counts, self.letters = set(used), {}, letters()

    def fresh(self, wanted=None, letters=None):
        """`wanted`, or with a number behind it if it is taken; or the next free letter."""
        if wanted is None or not wanted.isidentifier() or keyword.iskeyword(wanted):
            source = self.letters if letters is None else letters
            wanted = next(w for w in source if w not in self.used)
        name = wanted
        while name in self.used:
            self.counts[wanted] = k = self.counts.get(wanted, 1) + 1
            name = f"{wanted}{k}"
        self.used.add(name)
        return name


    def numbered(self, stem):
        """stem1, stem2, …: a name that is free."""
        while True:
            self.counts[stem, "#"] = k = self.counts.get((stem, "#"), 0) + 1
            if f"{stem}{k}" not in self.used:
                return f"{stem}{k}"


def user_name(v, eqn):
    """The user's name of a variable, or None."""
    if v.name is not None:
        return v.name
    if eqn is not None and eqn.mark is None and eqn.source is not None:
        return source.stored_name(eqn.source)
    return None


def name_buffers(graph):
    """Names every buffer of the graph, in program order: inputs, hidden, then what equations make."""
    names = Names()
    program = graph.program
    order = [*program.inputs, *(v for v, _ in program.hidden)]
    order += [v for eqn in program.eqns for v in eqn.outs]
    for v in order:
        buffer = graph.buffers.get(v)
        if buffer is not None:
            buffer.name = names.fresh(graph.name(v))
    return names


LOOPS = "ijklmnopqrsuvwxyz"


def name_loops(loops, used):
    """Gives the loop variables of a kernel letters of their own, outermost first."""
    names = Names(used)
    letters = itertools.chain(LOOPS, (c + str(k) for k in itertools.count(2) for c in LOOPS))
    for v in dict.fromkeys(loops):
        v.name = names.fresh(letters=letters)
