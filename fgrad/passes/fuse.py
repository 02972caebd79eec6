"""Fusing: which values are stored, and which stored values share a kernel.

An array is a function from index to scalar, so by default nothing is stored: pulls compose.  Stored
are

    results, products, arguments and results of library calls,
    every value whose inlined depth passes 50 with two readers, or 100, and what is dear and moved
    to many places,
    what would be computed again: a reduction or expensive scalar that misses a loop around it
    (a hole), that two kernels want, or that stands under a guard, and what an element needs at
    several places, as steps of a stencil within each other do,
    what several kernels compute from more memory than it takes to keep it, or by much work,
    and operands of products that are looked up along their sums.

Of a value in a border of zeros, the value is stored where all products can read around the border.

A stored value's nest is its own axes (row form); or, where a reduction reads memory along a kept
axis, reduced axes outside and kept axes inside, accumulating (column form); or the first reduced
axis, for a reduction to one number (outer form); see reduction_forms.py.  Axes that a reduction
does not know come last.  Short ones that dear parts of it do not know (coordinates of points) are
written out: a Root for each place.

Values join the latest kernel that fits: one nest is a prefix of the other, they share something,
and everything else is made earlier.  A product's kernel takes later values at its own index, or at
that of a reshape, as an epilogue, sums of these over its rows (the moments of a batch norm), and
the sums over k of its right operand (a bias's gradient) as its "total".
Deciding is repeated until nothing more is stored; kernels that have nothing to do with what was
found stay as they are.

    layernorm(x) with gradient         one kernel, nest i,j:  dx[i,j] =,  dg[j] +=,  db[j] +=

It relies on reduction_forms.py, pull.py, product.py, recompute.py and stored.py; lower.py turns
its groups into loops.
"""

from __future__ import annotations

import itertools
from collections import Counter
from math import prod

from .. import index, scalar
from ..ir import Program
from ..records import new, record
from ..scalar import EXPENSIVE
from .collapse import collapse_reduction, in_order_of_memory, rewrite_root
from .pull import Graph, Puller, step_of, uncast
from .product import TOTAL, operand_factors, product_of, read_around, total_of, unguarded
from .recompute import (hidden, holes, looks_up, met_at_places, prologue_cost, read_again,
                        read_often, reads_again)
from .reduction_forms import (axes_missed, column_form, columns_across, is_shared_out, outer_form,
                              short_sums_written_out, written_out_axes)
from .stored import initially_stored

SIZE = 400                         # scalar nodes of one kernel
LOOKBACK = 4                       # kernels tried for joining
PACKED_ONCE = 256                  # columns up to which an operand is computed about once
PROLOGUE = 16                      # cost up to which an operand is computed where it is packed
PRODUCT = "acc"                    # the name of a product within its kernel
NONE = frozenset()


# ---------------------------------------------------------------------------- records

@record
class Root:
    """A stored value: value[index] = expr (or how= expr) in the loops `nest`, outermost first."""
    value: object
    nest: tuple
    index: tuple
    expr: scalar.Node
    how: str = None


@record
class Nest:
    """A kernel to be: stored values that share loops.

    product: the kernel is a contraction.  first: the value it was started for.  passes, judged:
    see recompute.holes.  known: root → (what it reads, its nodes, the sums it computes).  again:
    the kernel of the attempt before that this one repeats.
    """
    number: int
    space: index.Space
    puller: Puller
    nest: tuple
    roots: list = new(list)
    reads: set = new(set)
    size: int = 0
    product: object = None
    first: object = None
    passes: dict = new(dict)
    judged: set = new(set)
    known: dict = new(dict)
    again: object = None


@record
class Step:
    """An equation that is a step of its own.  kind: "scan", "push", "call" or "loop"."""
    number: int
    kind: str
    eqn: object


@record
class Fused:
    """A Program shared out into steps."""
    program: object
    graph: Graph
    stored: set
    steps: list


# ---------------------------------------------------------------------------- what is stored

def fuse(program, target, donated=()):
    """The Program as Nests and Steps, in order.  donated: inputs that may be overwritten."""
    graph = Graph(numbers_first(program), donated)
    products = {}
    stored = initially_stored(graph, products, lambda v, stored: Attempt(
        graph, stored, target, {v: True}).product(v))
    kept = {}
    while True:
        attempt = Attempt(graph, stored, target, products, kept)
        more = attempt.run()
        if not more:
            return Fused(program, graph, stored, unstore(attempt))
        stored |= more
        kept = attempt.untouched(more)


def numbers_first(program):
    """The Program with numbers that need no array in front (a step's count, a rate): what is
    computed from them may then join any kernel.
    """
    known = {v for v in (*program.inputs, *(v for v, _ in program.hidden)) if v.type.size == 1}
    early, late = [], []
    for eqn in program.eqns:
        ready = step_of(eqn.op) == "pull" and known.issuperset(eqn.variables) and all(
            v.type.size == 1 for v in eqn.outs)
        (early if ready else late).append(eqn)
        if ready:
            known.update(eqn.outs)
    return Program(program.name, program.inputs, early + late, program.outputs, program.hidden)


def unstore(attempt):
    """The steps, where a value that is only used inside its own kernel is not stored."""
    wanted = set(attempt.graph.outputs)
    for step in attempt.steps:
        if isinstance(step, Nest):
            made = {r.value for r in step.roots}
            wanted |= {v for v in step.reads if v not in made}
        else:
            wanted |= set(step.eqn.variables)
    wanted |= attempt.read_by_steps
    for step in attempt.steps:
        if isinstance(step, Nest):
            step.roots = [r for r in step.roots if r.value in wanted]
            if step.product is None:                 # loops that nothing is left in are none
                step.nest = max([r.nest for r in step.roots], key=len, default=())
    return [s for s in attempt.steps if not isinstance(s, Nest) or s.roots]


# ---------------------------------------------------------------------------- one attempt

class Attempt:
    """Shares stored values out into kernels; collects what should have been stored too.

    kept: what the attempt before has made of values, see `untouched`.
    """

    def __init__(self, graph, stored, target, products, kept={}):
        self.graph, self.stored, self.target, self.products = graph, stored, target, products
        self.kept, self.again = kept, {}         # a kernel of the attempt before → it, once more
        self.steps, self.home, self.shelves = [], {}, {}
        self.by_columns, self.sums = {}, {}      # extents → kernels of products, of one sum
        self.found, self.twice, self.owner = set(), set(), {}
        self.inside = {}               # value → what to store instead: itself without its border
        self.origins = {}              # value → the latest stored values it is computed from
        self.read_by_steps = set()
        self.pulled = []               # (the number of a step, the nodes of what it reads)

    def run(self):
        """What must be stored as well; nothing when the steps are final."""
        for eqn in self.graph.program.eqns:
            if step_of(eqn.op) != "pull":
                self.step(eqn)
            for v in eqn.outs:
                self.trace(v, eqn)
                if v in self.stored and v not in self.home and 0 not in v.shape:
                    self.store(v)
        self.found |= {v for padded, v in self.inside.items() if padded not in self.found}
        if self.found - self.stored:                         # first what is certain
            return self.found - self.stored
        known = self.stored | self.graph.counted             # indices are not worth reading again
        return self.twice - self.stored | read_again(self.computed(), known)

    def computed(self):
        """Pairs (a kernel's or step's number, the nodes that it computes)."""
        yield from self.pulled
        for g in self.steps:
            if isinstance(g, Nest):
                operands = (g.product.a, g.product.b) if g.product is not None else ()
                nodes = {}
                for n in (*operands, *(r.expr for r in g.roots)):
                    scalar.walk(n, nodes)
                yield g.number, nodes

    def trace(self, v, eqn):
        """Notes the kernels that v is computed from: where it may join."""
        found = []
        for a in eqn.variables:
            found += [a] if a in self.stored else self.origins.get(a, [])
        latest = sorted(dict.fromkeys(a for a in found if a in self.home), key=self.home.get)
        self.origins[v] = latest[-LOOKBACK:]

    def step(self, eqn):
        """A step of its own; what it reads by pulling is checked like a kernel of its own."""
        kind = step_of(eqn.op)
        step = Step(len(self.steps), kind, eqn)
        self.steps.append(step)
        for v in eqn.outs:
            self.home[v] = step.number
        if kind not in ("call", "loop"):
            self.prepare(eqn, step.number)

    def prepare(self, eqn, number):
        """Stores arguments of a scan or push that are not plain to read, or are read from what the
        push overwrites.  number: that of its step.
        """
        over = self.graph.overwritten(eqn, self.stored)
        for v in eqn.variables:
            with index.Space() as space:
                at = tuple(index.of(space.variable(n)) for n in v.shape)
                root = Puller(self.graph, self.stored)(v, at)
                nodes = scalar.walk(root)
                loaded, dear = self.graph.loaded(nodes), {n.op for n in nodes} & {"reduce", "guard"}
                if dear or loaded & over or any(n.cost >= EXPENSIVE for n in nodes):
                    self.found.add(v)
                self.found |= read_often(root, v.type.size)
                self.read_by_steps |= loaded
                self.pulled.append((number, nodes))

    def untouched(self, more):
        """value → (its kernel, its Roots), of kernels that stay as they are when `more` is stored.
        The next attempt need not pull and judge them again.
        """
        found, left = {}, {g for g in self.again.values() if g.again is None}
        for g in self.steps:
            if isinstance(g, Nest) and g not in left and (
                    more.isdisjoint([v for v, _ in g.puller.memo])):
                for root in g.roots:
                    found.setdefault(root.value, (g, []))[1].append(root)
        return found

    def store(self, v):
        """v joins a kernel, or starts one."""
        nest, roots = self.found_place(v)
        if nest is None:
            nest, roots = self.start_again(v) or self.start(v)
            self.steps.append(nest)
            for key in self.keys(nest):
                self.shelves.setdefault(key, []).append(nest)
            if nest.product is not None:
                self.by_columns.setdefault(extents(nest.product.columns), []).append(nest)
            elif roots[0].how == "sum" or uncast(roots[0].expr).op == "reduce":
                self.sums.setdefault(wide(v.shape), []).append(nest)
        self.leave(v, nest)
        with nest.space:
            before = frozenset(nest.reads)
            for root in roots:
                self.add(nest, root)
            self.adopt(nest, nest.reads - before)

    def found_place(self, v):
        """(a kernel that v joins, its one Root there), or (None, None)."""
        for g in self.by_columns.get(wide(v.shape), ())[-LOOKBACK:]:
            root = self.tried(g, v, self.total)
            if root is not None:
                return g, [root]
        for g in self.candidates(v):
            root = self.tried(g, v, self.join)
            if root is not None:
                return g, [root]
        return None, None

    def tried(self, g, v, way):
        """The Root that v would be in kernel g by way(g, v), or None: as the attempt before has
        found, where v and the kernel are what they were.
        """
        home, roots = self.kept.get(v, (None, (None,)))
        root = roots[0]
        known = home is not None and g.again is not None
        if known and g.again is not home:
            return None
        if not known or g.product is None and any(a is not b for a, b in zip(g.nest, root.nest)):
            with g.space:
                return way(g, v)
        if self.latest(g.known[root][0]) >= g.number:
            return None
        if g.product is None:
            g.nest = max(g.nest, root.nest, key=len)
        return root

    def start_again(self, v):
        """(a kernel for v once more, its Roots), or None: the attempt before has none to repeat."""
        home, roots = self.kept.get(v, (None, None))
        if home is None or home.first is not v:
            return None
        g = self.again[home] = Nest(
            len(self.steps), home.space, home.puller, roots[0].nest, product=home.product, first=v,
            passes=home.passes, judged=home.judged, known=home.known, again=home)
        for root in home.roots:                  # it has none of them so far
            g.puller.memo.pop((root.value, root.index), None)
        return g, roots

    def leave(self, v, nest):
        """v is not part of the kernel that it was part of in the attempt before, if not of `nest`:
        others cannot read it there any more.
        """
        g = self.again.get(self.kept.get(v, (None, None))[0])
        if g is not None and g is not nest and g.again:
            g.again = None
            g.puller.memo = {(r.value, r.index): r.expr for r in g.roots if r.how is None}

    def total(self, g, v):
        """The Root of v where it sums the columns of what product g multiplies, or None."""
        if not self.target.totals or v in self.products:
            return None
        p, reduced = g.product, self.graph.reduced(v)
        if not reduced or Counter(reduced) - Counter(extents(p.k)):
            return None
        at = place_of(v, p.columns)
        expr = g.puller.inside(v, at)
        del g.puller.memo[v, at]
        total = total_of(p, uncast(expr))
        return None if total is None else Root(v, p.columns, at, scalar.cast(total, expr.dtype),
                                               TOTAL)

    def adopt(self, g, new):
        """Sums that are kernels of their own, and read what kernel g reads as well by now, become
        part of g where they fit: over the columns of what a product multiplies, over g's loops.
        """
        for nest in self.sums_beside(g):
            if len(nest.roots) != 1 or nest is g or not nest.reads & new or g.size > SIZE:
                continue
            v = nest.first
            if any(v in read_by(step) for step in self.steps[nest.number + 1:g.number + 1]):
                continue
            root = self.total(g, v) if g.product is not None else self.join(g, v)
            if root is not None:
                self.dissolve(nest)
                self.add(g, root)

    def sums_beside(self, g):
        """The latest kernels of one sum that kernel g may compute beside what it computes."""
        if g.product is not None:
            return self.sums.get(extents(g.product.columns), ())[-LOOKBACK:]
        inner = [extents(g.nest)[k:] for k in range(1, len(g.nest))]
        return [nest for shape in inner for nest in self.sums.get(shape, ())[-LOOKBACK:]]

    def dissolve(self, nest):
        """A kernel ends: what it made becomes part of another one."""
        nest.roots.clear()
        for key in self.keys(nest):
            self.shelves[key].remove(nest)
        self.owner = {v: k for v, k in self.owner.items() if k != nest.number}

    def product(self, v):
        """What should be stored before v if it is a product, with what is stored so far; or None.
        """
        if 0 in v.shape:
            return None
        nest, roots = self.start(v)
        if nest.product is None:
            return None
        with nest.space:
            self.add(nest, *roots)
        return self.found

    def candidates(self, v):
        """Kernels that v may join, the likeliest first.  A product has a kernel of its own."""
        if v in self.products:
            return []
        makers = [self.steps[self.home[a]] for a in reversed(self.origins[v])]
        shelf = [g for key in {wide(v.shape)[:1], *self.reduced(v)}
                 for g in self.shelves.get(key, ())[-LOOKBACK:]]
        near = sorted(shelf, key=lambda g: -g.number)
        nests = dict.fromkeys(g for g in makers + near if isinstance(g, Nest))
        latest = makers[0].number if makers else 0
        return [g for g in nests if g.size <= SIZE and g.number >= latest]

    def keys(self, nest):
        """The shelves on which a kernel waits for others: by the extent of its first loop, which
        may be several merged ones.
        """
        return {extents(nest.nest[:1]), *self.reduced(nest.first)}

    def reduced(self, v):
        """The first extents of what v is a reduction of, if it is one."""
        if not self.graph.probe(v).reduces:
            return ()
        return [wide(a.shape)[:1] for a in self.graph.makers[v][0].variables]

    def start(self, v):
        """(a new kernel for v, its Roots), in the form that its expression asks for."""
        space = index.Space()
        with space:
            axes = tuple(space.variable(n) for n in v.shape)
            puller = Puller(self.graph, self.stored)
            at = tuple(index.of(a) for a in axes)
            expr = puller.inside(v, at)
            del puller.memo[v, at]
            kept = tuple(a for a in axes if a.extent != 1)
            product = product_of(expr, kept) if v in self.products else None
            if product is not None:
                roots = [Root(v, kept, at, value_of_product(product, expr))]
            else:
                roots = self.forms(v, kept, at, expr)
        nest = roots[0].nest
        return Nest(len(self.steps), space, puller, nest, product=product, first=v), roots

    def forms(self, v, axes, at, expr):
        """The Root, or one for each place of the axes that are written out."""
        short = written_out_axes(expr, axes)
        if not short:
            return [self.form(v, axes, at, expr)]
        long, expr = tuple(a for a in axes if a not in short), short_sums_written_out(expr)
        one = Root(v, long, at, expr) if long else self.form(v, (), at, expr)
        roots = []
        for place in itertools.product(*[range(a.extent) for a in short]):
            roots.append(Root(v, one.nest, at, one.expr, one.how))
            rewrite_root(roots[-1], dict(zip(short, map(index.of, place))), {})
        return roots

    def form(self, v, axes, at, expr):
        """The Root in row, column or outer form."""
        n = uncast(expr)
        if n.op != "reduce":
            return Root(v, self.inward(expr, axes), at, expr)
        n = collapse_reduction(in_order_of_memory(n), index.space())
        how, variables = n.data
        if self.adds_columns(n, axes):
            return Root(v, variables + axes, at, n.args[0], how)
        if outer_form(n, axes, self.target):
            first, *rest = variables
            body = scalar.node("reduce", n.args, (how, tuple(rest)), n.dtype) if rest else n.args[0]
            return Root(v, (first,), at, body, how)
        return Root(v, axes, at, scalar.cast(n, expr.dtype))

    def inward(self, expr, axes):
        """The axes, with those last that a reduction along the other ones does not know."""
        if not self.target.across:
            return axes
        missed = axes_missed(expr, axes, self.target)
        return tuple(a for a in axes if a not in missed) + tuple(a for a in axes if a in missed)

    def join(self, g, v):
        """The Root that v would be in kernel g, or None."""
        if g.product is not None:
            if wide(v.shape) == extents(g.nest):
                return self.joined(g, v, None, g.nest, ())
            return self.reshaped(g, v) or self.summed(g, v)
        if self.graph.probe(v).reduces and any(r.value in self.graph.joined for r in g.roots):
            return None                          # what it sums were chosen from many, each time
        for how, nest, reduced in self.fitting(g, v):
            root = self.joined(g, v, how, nest, reduced)
            if root is not None:
                g.nest = max(g.nest, root.nest, key=len)
                return root
        return None

    def reshaped(self, g, v):
        """The Root of v at the elements of product g, which lie in its order, or None.

        Rows of v are whole vectors, unless what it reads goes along with the product's columns.
        """
        if v.type.size != prod(extents(g.nest)) or self.graph.probe(v).reduces:
            return None
        at = index.reindex(tuple(map(index.of, g.nest)), extents(g.nest), v.shape)
        root = self.joined(g, v, None, g.nest, (), at)
        if root is None or not g.nest or wide(v.shape)[-1] % self.target.lanes(v.dtype) == 0:
            return root
        loads = [n for n in scalar.walk(root.expr) if n.op == "load"]
        return root if all(index.is_affine(n.data[1], g.nest[-1]) for n in loads) else None

    def summed(self, g, v):
        """The Root of v as sums, over the rows of product g, of what is computed there; or None."""
        p, count = g.product, len(g.product.rows)
        fits = (self.target.totals and g.nest == p.rows + p.columns
                and wide(v.shape) == extents(p.columns) and self.graph.probe(v).reduces)
        root = self.joined(g, v, "sum", g.nest[count:], g.nest[:count]) if fits else None
        return root if root and root.how == "sum" and root.expr.dtype == p.dtype else None

    def fitting(self, g, v):
        """Ways in which v fits the loops of g: (how, loops of kept axes, loops of reduced ones)."""
        shape = wide(v.shape)
        out = []
        if self.graph.probe(v).reduces and self.target.kind == "cpu":
            out += self.accumulating(g, shape)
        have = extents(g.nest)
        if shape[:len(have)] == have[:len(shape)]:
            more = tuple(g.space.variable(n) for n in shape[len(have):])
            out.append((None, (g.nest + more)[:len(shape)], ()))
        return out

    def accumulating(self, g, shape):
        """What has this shape as a sum over the outer loops of g, one addition per iteration."""
        for k in range(1, len(g.nest)):
            if extents(g.nest)[k:] == shape and prod(shape) > 1:
                return [("reduce", g.nest[k:], g.nest[:k])]
        if not shape and (len(g.nest) >= 2 or g.nest and all(r.how for r in g.roots)):
            return [("reduce", (), g.nest[:1])]
        return []

    def joined(self, g, v, how, kept, reduced, at=None):
        """The Root of v in kernel g with these loops, or None if it does not belong there.

        at: which element, if not that of the loops of its axes.
        """
        at = at or place_of(v, kept)
        expr = g.puller.inside(v, at)
        del g.puller.memo[v, at]
        if how:
            if kept and not column_form(uncast(expr), kept):
                return None
            expr, how = self.accumulated(uncast(expr), reduced)
            if expr is None:
                return None
            expr = scalar.rewrite(expr, {}, self.own_values(g), {})
        elif (written_out_axes(expr, kept) or self.inward(expr, kept) != kept
              or g.product is None and self.has_other_form(uncast(expr), kept)):
            return None
        nodes = scalar.walk(expr)
        latest = self.latest_read(nodes)
        if latest == g.number and not how and g.product is None and g.nest:
            expr = self.over_own_rows(g, expr, nodes, kept)
            nodes = scalar.walk(expr)
            latest = self.latest_read(nodes)
        if latest >= g.number or hidden(nodes):
            return None
        reads = self.graph.loaded(nodes)
        if g.product is not None and any(n.op == "reduce" for n in nodes):
            return None
        made = {r.value for r in g.roots}
        if not (reads & g.reads or any(n.origin in made or n.op == "name" for n in nodes)):
            return None
        return Root(v, reduced + kept, at, expr, how)

    def accumulated(self, n, reduced):
        """The body of a reduction with its first variables replaced by loops of the kernel."""
        if n.op != "reduce":
            return None, None
        count = len(reduced)
        if extents(n.data[1][:count]) != extents(reduced):         # its loops may be merged ones
            n = collapse_reduction(n, index.space())
        how, variables = n.data
        if extents(variables[:count]) != extents(reduced):
            return None, None
        to = {r: index.of(v) for r, v in zip(variables, reduced)}
        body = scalar.rewrite(n.args[0], to, {}, {})
        rest = variables[count:]
        return (scalar.node("reduce", (body,), (how, rest), n.dtype) if rest else body), how

    def latest_read(self, nodes):
        """The number of the last kernel that makes something the nodes load, or -1."""
        return self.latest(self.graph.loaded(nodes))

    def latest(self, values):
        """The number of the last kernel that makes one of the values, or -1."""
        return max([self.home.get(v, -1) for v in values], default=-1)

    def over_own_rows(self, g, expr, nodes, kept):
        """The expression with reductions over rows that g stores, over g's innermost loop instead.

        What they read is then at its own index, so it need not be loaded.  Where that loop is one
        of the expression's own, `kept`, a reduction must be known outside of it.
        """
        last, new = g.nest[-1], {}
        own = self.own_values(g, self.graph.compared)
        outside = sum(v.bit for v in kept[:kept.index(last)]) if last in kept else -1
        for n in nodes:
            if n.op != "reduce" or extents(n.data[1]) != (last.extent,):
                continue
            if n.args[0].free & last.bit or n.free & ~outside:
                continue
            body = scalar.rewrite(n.args[0], {n.data[1][0]: index.of(last)}, {}, {})
            body = scalar.rewrite(body, {}, own, {})
            if any(m.op == "reduce" and m.free & last.bit for m in scalar.walk(body)):
                continue                                   # it would be computed again
            new[n] = scalar.node("reduce", (body,), (n.data[0], (last,)), n.dtype)
            new[n].origin = n.origin
        return scalar.rewrite(expr, {}, new, {})

    def own_values(self, g, but=NONE):
        """The loads of what kernel g stores, at its own index → the expressions stored."""
        return {scalar.load(self.graph.buffer(r.value), index.flat(r.index, r.value.shape)): r.expr
                for r in g.roots if r.how is None and r.value not in but}

    def add(self, g, root):
        """root becomes part of kernel g; what it would compute again is noted."""
        if root not in g.known:
            nodes = scalar.walk(root.expr)
            if g.product is not None and not g.roots:
                scalar.walk(g.product.b, scalar.walk(g.product.a, nodes))
            self.judge(g, root, nodes)
            sums = [n.origin for n in nodes if n.op == "reduce" and n.origin]
            g.known[root] = self.graph.loaded(nodes), len(nodes), sums
        reads, size, sums = g.known[root]
        self.twice.update([v for v in sums if self.owner.setdefault(v, g.number) != g.number])
        g.reads |= reads
        g.size += size
        g.roots.append(root)
        if root.how is None:
            g.puller.memo[root.value, root.index] = root.expr
        self.home[root.value] = g.number

    def judge(self, g, root, nodes):
        """Notes values that should be stored before `root`."""
        self.found |= {n.origin for n in hidden(nodes) if n.origin is not None}
        mask = sum(v.bit for v in root.nest)
        for n in nodes:
            if n.op != "reduce":
                continue
            top = n is uncast(root.expr)
            own = self.adds_columns if root.how else self.accumulates
            if not (n.free & ~mask or top) and own(n, root.nest):
                self.found.add(n.origin)
        if g.product is not None:
            self.judge_product(g, root, nodes)
        else:
            holes(root.expr, root.nest, self.found, g.passes, g.judged,
                  vectors=self.target.kind == "cpu")
            self.found |= met_at_places(root.expr, root.nest)

    def accumulates(self, n, nest):
        """Is a reduction in these loops one for a kernel of its own, which adds up in memory?"""
        known = tuple(a for a in nest if n.free & a.bit)
        if len(known) == len(nest):
            return self.in_columns(n, known) or outer_form(n, known, self.target)
        across = self.target.across and known == nest[:len(known)]
        return self.in_columns(n, known) and not (
            across and columns_across(n, known, self.target))

    def adds_columns(self, n, axes):
        """Is it a reduction in column form?"""
        if n.op != "reduce" or not axes:
            return False
        across = self.target.across and columns_across(n, axes, self.target)
        return not across and self.in_columns(n, axes)

    def has_other_form(self, n, axes):
        """Is it a reduction in column form, or one to a number that threads share?"""
        return self.adds_columns(n, axes) or n.op == "reduce" and not axes and is_shared_out(
            n, self.target)

    def in_columns(self, n, axes):
        return self.target.kind == "cpu" and column_form(n, axes)

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

    def looked_up(self, g, n):
        """The value, in a list, that is to be stored for an operand of product g that is looked up:
        before its axes become one, which vectors step through, and before it is repeated.
        """
        found = [v for (v, _), m in g.puller.memo.items()
                 if m is n and self.graph.makers[v][0].op.name != "reshape"]
        least = min([v.type.size for v in found], default=0)
        return [v for v in found if v.type.size == least][-1:]

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


def value_of_product(product, expr):
    """The element in terms of the contraction's result, named "acc"."""
    mask = sum(v.bit for v in (*product.batch, *product.rows, *product.columns))
    out = scalar.name(PRODUCT, product.dtype, mask)
    if product.scale is not None:
        out = scalar.apply("mul", out, scalar.cast(product.scale, product.dtype))
    return scalar.cast(out, expr.dtype)


def sums_columns(nest):
    """Does the kernel of a product also sum the columns of what it multiplies?"""
    return any(r.how == TOTAL for r in nest.roots)


def read_by(step):
    """The stored values that a step reads."""
    return step.reads if isinstance(step, Nest) else step.eqn.variables


def place_of(v, loops):
    """The element of v at these loops, one for each axis that is longer than 1."""
    loops = iter(loops)
    return tuple(index.of(next(loops)) if n != 1 else index.of(0) for n in v.shape)


def wide(shape):
    """The extents of the axes that are longer than 1."""
    return tuple(n for n in shape if n != 1)


def extents(variables):
    """The extents of some loop variables."""
    return tuple(v.extent for v in variables)
