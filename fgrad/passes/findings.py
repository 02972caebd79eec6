"""What should have been stored, as a kernel shows when a value becomes part of it.

Relies on `recompute.py`, `reduction_forms.py` and `product.py`; `fuse.py` begins again with what is
found.
"""

from __future__ import annotations

import itertools
from math import prod

from .. import index, scalar
from ..scalar import EXPENSIVE
from .product import operand_factors, read_around, unguarded
from .pull import uncast
from .recompute import hidden, holes, looks_up, met_at_places, prologue_cost, reads_again
from .reduction_forms import accumulates, adds_columns

PACKED_ONCE = 256                  # columns up to which an operand is computed about once
PROLOGUE = 16                      # cost up to which an operand is computed where it is packed
FEW, LONG = 16, 64                 # most rows and columns, and least terms, of dot products


class Findings:
    """Values to store.  found: for certain.  inside: value → what to store instead: itself without
    its border.
    """

    def __init__(self, graph, target):
        self.graph, self.target, self.found, self.inside = graph, target, set(), {}

    def certain(self):
        """What is to be stored, whatever else is found."""
        return self.found | {v for padded, v in self.inside.items() if padded not in self.found}

    def judge(self, g, root, nodes):
        """Notes values that should be stored before `root`."""
        self.found |= {n.origin for n in hidden(nodes) if n.origin is not None}
        mask = sum(v.bit for v in root.nest)
        for n in nodes:
            if n.op != "reduce":
                continue
            top = n is uncast(root.expr)
            own = adds_columns if root.how else accumulates
            if not (n.free & ~mask or top) and own(n, root.nest, self.target):
                self.found.add(n.origin)
        if g.product is not None:
            self.judge_product(g, root, nodes)
        else:
            lookups = set() if self.target.kind == "cpu" else None
            holes(root.expr, root.nest, self.found, g.passes, g.judged, lookups)
            for n in lookups or ():
                self.found.update(self.looked_up(g, n))
            self.found |= met_at_places(root.expr, root.nest)

    def judge_product(self, g, root, nodes):
        """Reductions are stored before a product, and what packing would compute many times.

        An array in a border of zeros is not, where the target reads it as it lies, or is stored
        without it, if no other product needs it.
        """
        p = g.product
        mask = sum(v.bit for v in root.nest)             # nothing leaves the loops of a product
        self.found |= {n.origin for n in nodes if n.cost >= EXPENSIVE and n.free & mask != mask}
        self.found.discard(None)
        self.found |= {n.origin for n in nodes if n.op == "reduce" and n.origin is not None}
        if g.roots:
            return
        if self.target.kind == "cpu" and is_long(p):
            sides = [self.along_sums(g, uncast(side)) for side in (p.a, p.b)]
            if None not in sides:
                self.found.update(itertools.chain(*sides))
        for side, other in ((p.a, p.columns), (p.b, p.rows)):
            around = side is p.a and self.target.borders
            if around and read_around(side, p):
                continue
            dear = [n for n in operand_factors(side) if prologue_cost(n) > PROLOGUE]
            if not dear and reads_again(side, (*p.batch, *p.rows, *p.columns, *p.k)):
                dear = [side]
            for n in dear:
                padded, inside = uncast(n).origin, around and self.inside_border(g, n)
                if inside:
                    self.inside[padded] = inside
                else:
                    self.found.add(padded)
            if not dear and looks_up(side, p.k):
                dear = self.looked_up(g, uncast(side))
                self.found.update(dear)
            if dear:
                continue
            many = prod(v.extent for v in other) > PACKED_ONCE
            for n in scalar.walk(side):
                again = many or len(self.graph.readers.get(n.origin, ())) > 1
                dear = n.cost >= EXPENSIVE and again
                if dear and n.origin is not None:
                    self.found.add(n.origin)

    def inside_border(self, g, side):
        """The value that, once stored, product g reads as its operand, around a border; or None."""
        n, ranges = unguarded(side)
        v = n.origin
        if not ranges or v is None or v.type.size > side.origin.type.size:
            return None
        for (w, at), m in g.puller.memo.items():
            if w is v and m is n:
                load = scalar.load(self.graph.buffer(v), index.flat(at, v.shape))
                if read_around(scalar.rewrite(side, {}, {n: load}, {}), g.product):
                    return v
        return None

    def along_sums(self, g, n):
        """What is to be stored, in a list, so that product g reads an operand along its sums; None
        where it would read it otherwise.
        """
        last = g.product.k[-1]
        if n.op == "load":
            return [] if index.stride(n.data[1], last) == 1 else None
        found = [v for (v, at), m in g.puller.memo.items()
                 if m is n and index.stride(index.flat(at, v.shape), last) == 1]
        return found[-1:] or None

    def looked_up(self, g, n):
        """The value, in a list, that is to be stored for an operand of product g that is looked up:
        before its axes become one, which vectors step through, and before it is repeated.
        """
        found = [v for (v, _), m in g.puller.memo.items()
                 if m is n and self.graph.makers[v][0].op.name != "reshape"]
        least = min([v.type.size for v in found], default=0)
        return [v for v in found if v.type.size == least][-1:]


def is_long(p):
    """Has a product few rows, many terms, and few columns, or a right operand that is there?  Its
    sums are dot products then, where nothing is computed of what they are of.
    """
    rows, columns, terms = [prod(v.extent for v in axes) for axes in (p.rows, p.columns, p.k)]
    return rows <= FEW and terms >= LONG and (columns <= FEW or uncast(p.b).op == "load")
