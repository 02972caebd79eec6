"""What is stored before kernels are tried, by looking at one operation after the other.

Arguments, results, what steps of their own read and give, products with their operands and
epilogues, what is too deep to be computed where it is read or is moved to many places, and sums
that are compared with themselves, by == or by argmax.  fuse.py begins with it, and adds what
kernels would compute again.
"""

from __future__ import annotations

import heapq
from collections import Counter

from .. import affine, index, piecewise
from ..types import I32, SCALARS
from .pull import Puller, step_of

DEPTH, DEPTH_SHARED = 100, 50      # inlined operations, a reduction counts 20
REDUCTION_DEPTH = 20
LARGE = 4                          # scalar operations that count as one more in depth
WRITE = 1 << 20                    # bytes of what is better computed again, if from columns' sums
READS = 64                         # elements of other arrays that one is computed from, inlined
JOINED, STACKED = 8, 16            # arrays that are joined, and elements along that axis, unstored
PLACES, WRITTEN = 4, 40            # places that read a value, and their operations, to store it
WINDOW_DEPTH = 3                   # inlined operations under a window that slides over them
EPILOGUE = 30                      # operations in a row that are drawn into a product's kernel
EXACT = {"reduce_max", "reduce_min"}   # reductions that give the same in any order
NONE = frozenset()


def initially_stored(graph, products, operands):
    """Inputs, results, what steps read and give, products, what they want to read stored, and
    their epilogues, deep values, and sums and quotients that are compared with themselves.

    products: the values that are products, filled in.  operands(v, stored): what should be stored
    before v if it is a product, or None.

    A sum over the same in another order may differ in its last bit, a quotient by something known
    in front of a loop too (it is a product there): computed again, the largest of some sums would
    not equal any of them.
    """
    stored = graph.given | graph.outputs
    for eqn in graph.program.eqns:
        kind = step_of(eqn.op)
        assert eqn.op.name != "call", "programs are inlined before they are compiled"
        if kind in ("call", "loop"):
            stored.update(stored_arguments(graph, eqn))
        if kind != "pull" or eqn.op.keeps:
            stored.update(eqn.outs)
    depths, sums, reads = {}, {}, Reads(graph)
    for eqn in graph.program.eqns:
        for a in windowed(graph, eqn):
            if depths.get(a, 0) > WINDOW_DEPTH:
                stored.add(a)
                depths[a] = 0
        below = 1 + max([depths.get(a, 0) for a in eqn.variables], default=0)
        for v in eqn.outs:
            depths[v] = inlined_depth(graph, v, below, stored, products, operands)
            if joins_many(eqn):
                graph.joined.add(v)
            if v in graph.joined or reads.of(v, stored) > READS and not is_merged(graph, v):
                stored.add(v)
                depths[v] = 0
        inside = [NONE if a in stored else sums.get(a, NONE) - stored for a in eqn.variables]
        if eqn.op.compares:
            graph.compared |= shared_of(inside * eqn.op.compares)
            stored |= graph.compared
        for v in eqn.outs:
            own = [v] if rounds(graph, v) else []
            sums[v] = NONE if v in stored else NONE.union(*inside, own)
    return stored


def is_counted(graph, v, stored):
    """Is an element of v an index itself, maybe in pieces?  What is read by it needs no v then."""
    if v not in graph.counted or v.dtype.kind == "b":
        return False
    with index.Space() as space:
        element = Puller(graph, stored)(v, tuple([index.of(space.variable(n)) for n in v.shape]))
        return affine.index_of(element) is not None or piecewise.forms(element) is not None


def is_merged(graph, v):
    """Is v a stack, all of which becomes an array of another shape?  That is stored in its place.
    """
    eqn, readers = graph.makers[v][0], graph.readers.get(v, ())
    return (eqn.op.name == "concatenate" and v.shape[eqn.params["axis"]] == len(eqn.args)
            and v not in graph.outputs and len(readers) == 1 and readers[0].op.name == "reshape")


def joins_many(eqn):
    """Are so many arrays joined that to choose one for each element would take long?

    Stored, each part is a loop of its own; those of a short stack are chosen where it is written
    out.
    """
    return (eqn.op.name == "concatenate" and len(eqn.args) > JOINED
            and eqn.outs[0].shape[eqn.params["axis"]] > STACKED)


class Reads:
    """How many elements of other arrays an element is computed from, where nothing is stored.

    Elements at one index are computed once, however often they are used; what is moved (a slice, a
    broadcast, a reduction) is read at an index of its own, and so is all that it is computed from:
    halves of halves of halves make a number that doubles with each.
    """

    def __init__(self, graph):
        self.graph = graph
        self.moved, self.each = {}, {}       # value → what moves, at its index; → the reads of that
        self.steps = {}                      # value → the step in memory of what it reads inlined
        self.number = {}                     # what moves → how many came before it

    def of(self, v, stored):
        """The number for v, whose arguments came before; 0 if it is stored.

        What is read in many places, and dear to compute in each, is stored: added to `stored`.
        """
        self.number[v] = len(self.number)
        eqn, _ = self.graph.makers[v]
        if step_of(eqn.op) != "pull":
            self.moved[v] = NONE
            return 0
        self.step(v, eqn, stored)
        if self.graph.probe(v).pointwise:
            self.moved[v] = NONE.union(*[self.moved[a] for a in self.inside(v, stored)])
        else:
            self.moved[v] = frozenset((v,))
            self.each[v] = self.reads(v, stored)
        if self.count(v) >= PLACES:
            self.store_between(v, stored, PLACES)
        if self.count(v) > READS:
            self.store_between(v, stored, 2)
        if v in stored:
            self.moved[v] = NONE
        return self.count(v)

    def step(self, v, eqn, stored):
        """Notes the step of v; every second element of every second one is read from what has been
        stored, since a vector of it is picked from two, not from four or eight.
        """
        own = eqn.params["stride"][-1] if eqn.op.name == "slice" and v.shape else 1
        below = max([self.steps.get(a, 1) for a in self.inside(v, stored)], default=1)
        if own > 1 and below > 1:
            stored.update(eqn.variables)
            below = 1
        self.steps[v] = own * below

    def inside(self, v, stored):
        """The arguments of v that are computed where it is."""
        return [a for a in self.graph.makers[v][0].variables
                if a not in stored and a in self.moved]

    def reads(self, v, stored):
        return 1 + sum([self.count(a) for a in self.inside(v, stored)])

    def count(self, v):
        return sum([self.each[m] for m in self.moved[v]])

    def store_between(self, v, stored, places):
        """Stores what the formula of v computes in `places`, with many operations or reads in all.

        The last comes first: by then all places that read it are known.
        """
        times = Counter(self.moved[v])
        queue, moves, found = [(-self.number[m], m) for m in times], [], False
        heapq.heapify(queue)
        while queue:
            x = heapq.heappop(queue)[1]
            if x in self.each:
                moves.append(x)
                below = self.inside(x, stored)
            elif times[x] >= places and self.is_much(x, times[x], stored):
                stored.add(x)
                found = True
                continue
            else:
                below = self.moved[x]
            for a in [self.base(a, stored) for a in below]:
                if a not in times:
                    heapq.heappush(queue, (-self.number[a], a))
                times[a] += times[x]
        for m in reversed(moves) if found else ():
            self.each[m] = self.reads(m, stored)

    def is_much(self, x, times, stored):
        """Is an element of x, computed so many times, many operations or reads?"""
        much = times * self.cost(x, stored) >= WRITTEN or times * self.count(x) > READS
        return much and not is_counted(self.graph, x, stored)

    def base(self, v, stored):
        """What v is one operation away from, at the same index: of -x, 2 * x, … it is x."""
        while self.moved[v] and v not in self.each and self.graph.probe(v).cost <= 1:
            inside = self.inside(v, stored)
            if len(inside) != 1:
                break
            v = inside[0]
        return v

    def cost(self, v, stored):
        """The operations of an element of v, in additions, where nothing is stored on the way."""
        seen, stack, total = {v}, [v], 0
        while stack and total < WRITTEN:
            x = stack.pop()
            total += self.graph.probe(x).cost
            below = [a for a in self.inside(x, stored) if a not in seen]
            seen.update(below)
            stack += below
        return total


def shared_of(groups):
    """What is in more than one of some sets."""
    counts = Counter(x for group in groups for x in group)
    return {x for x, n in counts.items() if n > 1}


def rounds(graph, v):
    """Is v a sum whose bits depend on the order of its terms, or a quotient by what is known late?
    """
    eqn = graph.makers[v][0]
    if v.dtype.kind != "f" or eqn.op.name in EXACT or step_of(eqn.op) != "pull":
        return False
    if eqn.op.name == "div":
        return eqn.args[1].__class__ not in SCALARS
    return bool(graph.probe(v).reduces)


def windowed(graph, eqn):
    """The arguments over which a written-out window slides: each element is used several times."""
    if step_of(eqn.op) != "pull":
        return ()
    found = {eqn.args[k] for v in eqn.outs for k in graph.probe(v).windows}
    return [a for a in eqn.variables if a in found]


def stored_arguments(graph, eqn):
    """The arguments that a call or loop reads from memory: not a scan's counters."""
    if step_of(eqn.op) == "call":
        return eqn.variables
    return [a for a, c in zip(eqn.args, counters(graph, eqn)) if not c]


def counters(graph, eqn):
    """Per argument of a loop: is it one of the xs of a scan, and 0, 1, 2, … as i32?"""
    if eqn.op.loop != "scan":
        return [False] * len(eqn.args)
    at = eqn.params["n_consts"] + eqn.params["n_carry"]
    makers = [graph.makers.get(a, (None, 0))[0] for a in eqn.args[at:]]
    return [False] * at + [m is not None and m.op.name == "iota" and len(m.outs[0].shape) == 1
                           and m.outs[0].dtype == I32 for m in makers]


def inlined_depth(graph, v, below, stored, products, operands):
    """The depth of v after it has been stored or not: products and values that are too deep are."""
    if v in stored and not (step_of(graph.makers[v][0].op) == "pull" and graph.probe(v).reduces):
        return 0
    if graph.probe(v).reduces:
        product = operands(v, stored)
        if product is not None:
            products[v] = True
            stored |= {v, epilogue_end(graph, v, stored), *product}
            return 0
        below += REDUCTION_DEPTH - 1
    elif v not in stored:
        below += graph.probe(v).size // LARGE
        if repeats_columns(graph, v):
            below -= max(below - REDUCTION_DEPTH, 0) // 2
    shared = len(graph.readers.get(v, ())) > 1 and not graph.probe(v).reduces
    limit = DEPTH_SHARED if shared else DEPTH
    if v in stored:
        return 0
    if below > limit:
        maker = graph.makers[v][0]
        stored.add(maker.args[0] if maker.op.name == "broadcast" else v)    # the smaller one
        return 0
    return below


def repeats_columns(graph, v):
    """Is v large, and something of each of its columns, repeated?  A sum in that will be stored."""
    eqn = graph.makers[v][0]
    return (eqn.op.name == "broadcast" and v.type.nbytes >= WRITE
            and len(v.shape) - 1 not in eqn.params["axes"])


def epilogue_end(graph, v, stored):
    """The last of the only readers of v, each at its own index: what is stored instead of v."""
    for _ in range(EPILOGUE):
        if v in graph.outputs:
            break
        readers = graph.readers.get(v, ())
        if len(readers) != 1 or step_of(readers[0].op) != "pull" or readers[0].op.multiple:
            return v
        (w,) = readers[0].outs
        wider = w.dtype.itemsize > v.dtype.itemsize
        if w.shape != v.shape or wider or not graph.probe(w).pointwise:
            return v
        v = w
        if v in stored:
            return v
    return v
