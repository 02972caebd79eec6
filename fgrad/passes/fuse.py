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

Which form a value has in a kernel says forms.py; what a kernel shows should have been stored,
findings.py.  It relies on them, on pull.py, product.py, recompute.py and stored.py; lower.py turns
its Nests into loops.
"""

from __future__ import annotations

from .. import index, scalar
from ..ir import Program
from ..scalar import EXPENSIVE
from .findings import Findings
from .forms import Forms, value_of_product
from .nests import Fused, Nest, Root, Step, extents, read_by, wide
from .product import product_of
from .pull import Graph, Puller, step_of, uncast
from .recompute import read_again, read_often
from .stored import initially_stored

SIZE = 400                         # scalar nodes of one kernel
LOOKBACK = 4                       # kernels tried for joining


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
        self.forms, self.findings = Forms(graph, target, self.home), Findings(graph, target)
        self.twice, self.owner = set(), {}
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
        found = self.findings.certain() - self.stored
        if found:
            return found
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
                    self.findings.found.add(v)
                self.findings.found |= read_often(root, v.type.size)
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
        products = () if v in self.products else self.by_columns.get(wide(v.shape), ())
        for g in products[-LOOKBACK:]:
            root = self.tried(g, v, self.forms.total)
            if root is not None:
                return g, [root]
        for g in self.candidates(v):
            root = self.tried(g, v, self.forms.join)
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
        if self.forms.latest(g.known[root][0]) >= g.number:
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
            root = (self.forms.total if g.product is not None else self.forms.join)(g, v)
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
        return self.findings.found

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
                roots = self.forms.roots(v, kept, at, expr)
        nest = roots[0].nest
        return Nest(len(self.steps), space, puller, nest, product=product, first=v), roots

    def add(self, g, root):
        """root becomes part of kernel g; what it would compute again is noted."""
        if root not in g.known:
            nodes = scalar.walk(root.expr)
            if g.product is not None and not g.roots:
                scalar.walk(g.product.b, scalar.walk(g.product.a, nodes))
            self.findings.judge(g, root, nodes)
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
