"""Pulling: how one element of a variable is read, composed from the `pull` rules of its operations.

A Graph answers who makes and who reads each variable of a Program.  A Puller composes pulls within
one kernel: stored variables are loads, all others are computed in place.  `probe` pulls one
operation alone, to see whether it reduces, and whether it reads its arguments at its own index
only.

    softmax:  max, broadcast, sub, exp, sum, broadcast, div
    y at i,j  exp(x[i,j] - M) / S      M = max r: x[i,r]      S = sum r: exp(x[i,r] - M)
"""

from __future__ import annotations

import functools

from .. import index, scalar
from ..ir import Var
from ..ir_text import stored, variable_names
from ..loop import Buffer
from ..records import frozen
from ..types import computed
from .names import Words


DEEP, COUNTED = 12, 36     # pulls that call each other before placeholders are used: of any value,
                           # and of integers; as many make an index that is known to be affine
MOVED = 2                  # scalar operations at most of an element that is moved or cast
CHAIN = 16                 # pushes one after the other that are looked at
WINDOW = 4                 # elements of an argument, written out one by one, that make a window


class Graph:
    """A Program with its makers, readers and buffers looked up by variable."""

    def __init__(self, program, donated=()):
        self.program = program
        self.makers, self.readers = {}, {}
        self.probes, self.kinds = {}, {}                     # Var → Probe; what decides it → Probe
        self.functions, self.turn = {}, Turn()               # Var → its pull, see `function`
        self.buffers, self.variables = {}, {}                # Var → Buffer, and back
        self.names = {}                                      # Var → its printed name, once named
        self.given = {*program.inputs, *(v for v, _ in program.hidden)}
        self.outputs, self.kept = set(program.outputs), self.given.difference(donated)
        self.compared = set()            # sums that both sides of a comparison have: computed once
        self.joined = set()              # what many arrays are joined to
        self.after = dict(zip(program.eqns, program.eqns[1:]))
        for eqn in program.eqns:
            for k, v in enumerate(eqn.outs):
                self.makers[v] = eqn, k
            for a in dict.fromkeys(eqn.variables):
                self.readers.setdefault(a, []).append(eqn)
        for v in (*program.inputs, *(v for v, _ in program.hidden), *program.outputs):
            self.buffer(v)

    @functools.cached_property
    def counted(self):
        """The integers and conditions that are computed from no argument, by few operations."""
        known = {}
        for eqn in self.program.eqns:
            deep = 1 + max([known.get(a, COUNTED) for a in eqn.variables], default=0)
            if step_of(eqn.op) == "pull" and deep <= COUNTED and all(
                    v.dtype.kind in "iub" for v in eqn.outs):
                known.update(dict.fromkeys(eqn.outs, deep))
        return frozenset(known)

    def buffer(self, v):
        """The Buffer that holds v, if v is stored."""
        found = self.buffers.get(v)
        if found is None:
            found = self.buffers[v] = Buffer(self.names.get(v, v.name), v.type)
            self.variables[found] = v
        return found

    def loaded(self, nodes):
        """The variables whose buffers the nodes load."""
        return {self.variables[n.data[0]] for n in nodes if n.op == "load"}

    def source(self, v):
        """The (source, mark) of the equation that makes v."""
        eqn, _ = self.makers.get(v, (None, 0))
        return (eqn.source, eqn.mark) if eqn is not None else None

    def overwritten(self, eqn, stored):
        """The stored values whose memory a push may take over: of what it changes, and of what
        that was made from by pushes.
        """
        found = set()
        while eqn is not None and step_of(eqn.op) == "push" and len(found) < CHAIN:
            v = eqn.args[0]
            if v not in stored or v in self.kept:
                break
            found.add(v)
            eqn, _ = self.makers.get(v, (None, 0))
        return found

    def name(self, v):
        """The user's name of a variable, or None."""
        if v is None or v.name:
            return v and v.name
        eqn, _ = self.makers[v]
        if len(eqn.outs) > 1 or eqn.mark is not None:
            return None
        return stored(eqn, self.after.get(eqn), eqn)

    def name_buffers(self):
        """Gives the buffers the names that the printed Program gives its variables."""
        self.names = variable_names(self.program)
        for v, buffer in self.buffers.items():
            buffer.name = self.names[v]
        return Words(self.names.values())

    def function(self, v):
        """The pull of v, index → element: one for all Pullers, whose turn it then is."""
        found = self.functions.get(v)
        if found is None:
            eqn, k = self.makers[v]
            pulled = eqn.op.pull(*self.arguments(eqn), **eqn.params)
            found = self.functions[v] = pulled[k] if eqn.op.multiple else pulled
        return found

    def arguments(self, eqn):
        """What the rules of an equation's operation read: Elements, and Python numbers."""
        return [Element(self.turn, a) if a.__class__ is Var else a for a in eqn.args]

    def probe(self, v):
        """What the operation that makes v does, as a Probe."""
        found = self.probes.get(v)
        if found is None:
            found = self.probes[v] = self.probe_of(*self.makers[v])
        return found

    def reduced(self, v):
        """The extents that an element of v reduces over, if need be before it is moved or cast."""
        while v in self.makers and step_of(self.makers[v][0].op) == "pull":
            found, inputs = self.probe(v), self.makers[v][0].variables
            if found.reduces or found.size > MOVED or len(inputs) != 1:
                return found.reduces
            v = inputs[0]
        return ()

    def probe_of(self, eqn, k):
        """The Probe of result k of an equation, one for all that have equal types."""
        types = tuple(a.type if a.__class__ is Var else (a.__class__, a) for a in eqn.args)
        key = eqn.op, k, types, tuple(eqn.params.items())
        try:
            found = self.kinds.get(key)
        except TypeError:                         # a parameter that cannot be hashed
            return probe(eqn, k)
        if found is None:
            found = self.kinds[key] = probe(eqn, k)
        return found


def step_of(op):
    """How an operation runs: "pull", "scan", "push", "loop" or "call" (its NumPy rule)."""
    for how in ("pull", "scan", "push", "loop"):
        if getattr(op, how, None) is not None:
            return how
    return "call"


# ---------------------------------------------------------------------------- one operation alone

@frozen
class Probe:
    """reduces: the extents over which the element is a reduction, or none.  pointwise: arguments of
    its shape are read at its index only.  windows: the arguments of which it reads many elements,
    and each for several indices.  size, cost: scalar operations that one element takes, and these
    in additions.
    """
    reduces: tuple
    pointwise: bool
    windows: tuple
    size: int
    cost: int


class ProbeArgument:
    """An argument whose elements are placeholders."""
    __slots__ = ("type", "shape", "dtype", "read")

    def __init__(self, v):
        self.type, self.shape, self.dtype, self.read = v.type, v.shape, v.dtype, []

    def __call__(self, at):
        self.read.append(at)
        free = 0
        for x in at:
            free |= x.free
        return scalar.node("element", (), (self, at), computed(self.dtype), free)


def probe(eqn, k):
    """The Probe of result k of an equation."""
    v = eqn.outs[k]
    with index.Space() as space:
        args = [ProbeArgument(a) if a.__class__ is Var else a for a in eqn.args]
        at = tuple(index.of(space.variable(n)) for n in v.shape)
        pulled = eqn.op.pull(*args, **eqn.params)
        out = (pulled[k] if eqn.op.multiple else pulled)(at)
        reads = [(a.shape, x) for a in args if a.__class__ is ProbeArgument for x in a.read]
        nodes = scalar.walk(out)
        size, cost = len(nodes), sum([n.cost for n in nodes])
    again = tuple(k for k, a in enumerate(args) if a.__class__ is ProbeArgument and slides(a, v))
    pointwise = all(s == v.shape and x == at for s, x in reads)
    whole = uncast(out)
    reduces = tuple([v.extent for v in whole.data[1]]) if whole.op == "reduce" else ()
    return Probe(reduces, pointwise, again, size, cost)


def slides(a, v):
    """Are elements of the argument a read for several indices of v: by a window, or a cut index?"""
    reads = set(a.read)
    cut = any(index.divides(x) for at in reads for x in at)
    return len(reads) * v.type.size > 2 * a.type.size and (len(reads) >= WINDOW or cut)


def uncast(n):
    """n without the cast around it: the sum in f32 that is kept as another dtype."""
    return n.args[0] if n.op == "cast" else n


# ---------------------------------------------------------------------------- a kernel's elements

class Turn:
    """Whose turn it is: the Puller that computes an element now, or None."""
    __slots__ = ("puller",)

    def __init__(self):
        self.puller = None


class Element:
    """An argument of a pull rule: called with an index it gives the element, of whatever kernel it
    is the turn.
    """
    __slots__ = ("turn", "var", "type", "shape", "dtype")

    def __init__(self, turn, v):
        self.turn, self.var = turn, v
        self.type, self.shape, self.dtype = v.type, v.shape, v.dtype

    def __call__(self, at):
        return self.turn.puller(self.var, at)


class Puller:
    """Elements of variables within one kernel.

    `memo` also holds the values that the kernel itself stores, at their own index.  From DEEP
    nested pulls on placeholders stand for elements; they are computed one after the other, at the
    end, so that Python's stack holds few of our frames.
    """

    def __init__(self, graph, stored):
        self.graph, self.stored = graph, stored
        self.memo = {}
        self.depth, self.pending, self.since = 0, {}, []     # since: keys of memo, for `settle`

    def __call__(self, v, at):
        found = self.memo.get((v, at))
        if found is not None:
            return found
        if v in self.stored:
            return scalar.load(self.graph.buffer(v), index.flat(at, v.shape))
        if self.depth >= DEEP and (self.depth >= COUNTED or v.dtype.kind == "f"):
            return self.placeholder(v, at)
        return self.inside(v, at)

    def inside(self, v, at):
        """The element computed, even if v is stored."""
        self.depth += 1
        try:
            out = self.asked(self.graph.function(v), at)
        finally:
            self.depth -= 1
        mark(out, v)
        self.memo[v, at] = out
        self.since.append((v, at))
        if self.depth == 0:
            if self.pending:
                self.settle()
                out = self.memo[v, at]
            self.since = []
        return out

    def asked(self, function, at):
        """What a function makes at an index of Elements, which are then of this kernel."""
        turn = self.graph.turn
        before, turn.puller = turn.puller, self
        try:
            return function(at)
        finally:
            turn.puller = before

    def placeholder(self, v, at):
        free = 0
        for x in at:
            free |= x.free
        out = scalar.node("element", (), (v, at), computed(v.dtype), free)
        self.pending[out] = None
        return out

    def settle(self):
        """Computes what placeholders stand for, and puts it in their place in the memo."""
        computed, final, memo = {}, {}, {}
        while self.pending:
            n, _ = self.pending.popitem()
            if n not in computed:
                self.depth = 1
                computed[n] = self(*n.data)
                self.depth = 0
        stack = list(computed)
        while stack:
            n = stack[-1]
            missing = [m for m in placeholders(computed[n]) if m not in final]
            if missing and n not in final:
                stack += missing
                continue
            stack.pop()
            if n not in final:
                final[n] = scalar.rewrite(computed[n], {}, final, {})
        for key in self.since:
            self.memo[key] = scalar.rewrite(self.memo[key], {}, final, memo)


def placeholders(root):
    """The placeholders below an expression."""
    return [n for n in scalar.walk(root) if n.op == "element"]


LEAVES = {"const", "name", "index", "load", "element"}


def mark(out, v):
    """Nodes that the pull of v made get v as their origin."""
    stack = [out]
    while stack:
        n = stack.pop()
        if n.origin is None and n.op not in LEAVES:
            n.origin = v
            stack.extend(n.args)
