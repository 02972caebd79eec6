"""Levels: every scalar of a kernel at its loop level.

A scalar belongs to the outermost loop that knows its variables, so a row reduction needs no rule:
it is loop-invariant.  Reductions of one block become passes; passes of one stage over equal extents
share a loop.  What two passes over a row both compute, dearly, is kept in a scratch row.  A guard's
reads stay behind it.  It relies on fuse.py's Nests; lower.py makes kernels of it.

    y[i,j] = exp(x[i,j] - M) / S        for i: m = max …; s = sum …; for j: y[i,j] = …
"""

from __future__ import annotations

import numpy as np

from .. import index, scalar
from ..loop import Accumulate, Buffer, For, Let, Start, Store
from ..records import record
from ..text import identifier
from ..types import ArrayType
from .collapse import as_in_memory

KEEP = 8                   # additions; what costs less is computed again rather than kept
LAST = 1 << 30             # the stage of the stores, behind every pass


class Block:
    """A loop body to be: Lets and passes by stage, then stores, then the inner loop."""

    def __init__(self, mask, variables):
        self.mask, self.variables = mask, variables
        self.lets, self.passes, self.stores = {}, {}, []   # by stage; by (stage, variables)


@record
class Pass:
    """One loop nest over the variables of a block, with the accumulators it feeds."""
    block: Block
    accumulates: list


class Levels:
    """The statements of one Nest that is no product, loop by loop."""

    def __init__(self, nest, graph, names, room):
        self.nest, self.graph, self.names = nest, graph, names
        self.scratch, self.room = [], room       # rows, and the bytes that they may take
        masks = [0]
        for v in nest.nest:
            masks.append(masks[-1] | v.bit)
        self.path = [Block(m, ()) for m in masks]
        self.memo, self.stage = {}, {}
        self.same, self.canonical = {}, {}

    # ------------------------------------------------------------ equal reductions, one variable

    def canon(self, root):
        """root with equal-sized reductions of a level over the same variables, if it can be."""
        for n in scalar.walk(root):
            if n not in self.canonical:
                self.canonical[n] = self.canonized(n) if n.args or scalar.index_nodes(n) else n
        return self.canonical[root]

    def canonized(self, n):
        out = scalar.rebuilt(n, {}, self.canonical.__getitem__)
        if n.op == "reduce":
            how, variables = n.data
            to = self.variables_for(n.free, variables)
            body = out.args[0]
            if to != variables and not any(body.free & v.bit for v in to):
                new = {r: index.of(v) for r, v in zip(variables, to)}
                body = scalar.rewrite(body, new, {}, {})
                out = scalar.node("reduce", (body,), (how, to), n.dtype)
        out.origin = out.origin or n.origin
        return out

    def variables_for(self, free, variables):
        key = free, tuple(r.extent for r in variables)
        if key not in self.same:
            loops = self.nest.nest
            inner = loops[-1:] if loops and free == self.path[-2].mask else ()
            fits = tuple(v.extent for v in inner) == key[1]
            self.same[key] = inner if fits else variables
        return self.same[key]

    # -------------------------------------------------------------------- placing

    def place(self, root, path):
        """The expression that stands for `root` in the last block of `path`.

        What belongs to an outer block becomes a Let there.
        """
        at = path[-1]
        for n in self.order(root):
            if (n, self.level(n, path)) not in self.memo:
                self.build(n, path)
        return self.reference(root, at, path)

    def order(self, root):
        """Nodes below root, arguments first, without those behind a guard or under a reduction."""
        return scalar.walk(root, below=lambda n: () if n.op == "reduce" else inner_nodes(n)[::-1])

    def level(self, n, path):
        """The outermost block that knows the variables of n."""
        return next(b for b in path if not n.free & ~b.mask)

    def build(self, n, path):
        """The expression of n in its own block, and the stage at which it is known there."""
        depth = next(k for k, b in enumerate(path) if not n.free & ~b.mask)
        at = path[depth]
        if n.op == "reduce":
            self.memo[n, at] = self.reduction(n, path[:depth + 1])
            return
        below = inner_nodes(n)
        self.stage[n, at] = max([self.stage_in(a, at, path) for a in below], default=0)
        new = {a: self.reference(a, at, path) for a in below}
        if n.op == "guard":                        # what is guarded knows the same indices
            known = {a: new[a] for a in scalar.index_nodes(n)}
            new[n.args[0]] = scalar.rewrite(n.args[0], {}, known, {}) if known else n.args[0]
        out = scalar.rebuilt(n, {}, lambda a: new.get(a, a)) if below else n
        out.origin = out.origin or n.origin
        self.memo[n, at] = out

    def stage_in(self, n, at, path):
        """The stage of n within block `at`: 0 if it is known outside."""
        return self.stage[n, at] if self.level(n, path) is at else 0

    def reference(self, n, at, path):
        """n as seen from block `at`: its expression, or the name of a Let further out."""
        home = self.level(n, path)
        out = self.memo[n, home]
        if home is at or out.op in ("const", "name"):
            return out
        key = n, home, "let"
        if key not in self.memo:
            self.memo[key] = self.let(home, self.stage[n, home], out)
        return self.memo[key]

    def let(self, at, stage, expr):
        name = self.fresh(expr)
        at.lets.setdefault(stage, []).append(Let(name, expr, self.source(expr)))
        return scalar.name(name, expr.dtype, at.mask)

    def reduction(self, n, path):
        """The accumulator of a reduction that belongs to the last block of path."""
        at, (how, variables) = path[-1], n.data
        body = Block(at.mask | sum(r.bit for r in variables), variables)
        expr = self.place(n.args[0], path + [body])
        stage = 1 + max([self.stage.get((m, at), 0) for m in scalar.walk(n.args[0])
                         if not m.free & ~at.mask], default=0)
        nested = bool(body.lets or body.passes)                  # a reduction inside a reduction
        slot = stage, variables, n.id if nested else 0
        found = at.passes.setdefault(slot, Pass(body, []))
        name = self.fresh(n)
        found.accumulates.append(Accumulate(name, how, expr, self.source(n)))
        self.stage[n, at] = stage
        return scalar.name(name, n.dtype, at.mask)

    def fresh(self, n):
        """A name: the user's, where n is the element of a value that has one."""
        word = self.graph.name(n.origin)
        return self.names.unique(identifier(word)) if word else self.names.numbered("t")

    def source(self, n):
        return self.graph.source(n.origin) if n.origin is not None else None

    # -------------------------------------------------------------------- the whole kernel

    def statements(self):
        """The loops of the Nest; values accumulated over outer loops are Stores with `how`."""
        for r in self.nest.roots:
            path = self.path[:len(r.nest) + 1]
            expr = self.place(guards_inward(self.canon(r.expr)), path)
            at = index.flat(r.index, r.value.shape)
            buffer = self.graph.buffer(r.value)
            if r.how is None:
                expr = scalar.held(expr, r.value.dtype)
            path[-1].stores.append(Store(buffer, at, expr, r.how, (), self.graph.source(r.value)))
        self.keep_rows()
        return self.written(0, self.path[0])

    def written(self, level, block):
        """The statements of a block; `level` counts the loops of the Nest, None within passes."""
        out = []
        for stage in sorted({*block.lets, *(slot[0] for slot in block.passes)}):
            for slot, p in block.passes.items():
                if slot[0] == stage:
                    out += self.pass_written(p)
            out += block.lets.get(stage, [])
        out += block.stores
        if level is not None and level + 1 < len(self.path):
            inner = self.written(level + 1, self.path[level + 1])
            out.append(For(self.nest.nest[level], inner, "serial"))
        return out

    def pass_written(self, p):
        accumulators = [a for a in p.accumulates if isinstance(a, Accumulate)]
        body = self.written(None, p.block) + p.accumulates
        for v in reversed(as_in_memory(p.block.variables, [a.expr for a in p.accumulates])):
            body = [For(v, body, "reduce")]
        return [Start(a.name, a.how, a.expr.dtype) for a in accumulators] + body

    # -------------------------------------------------------------------- scratch rows

    def keep_rows(self):
        """What two passes over a row both compute, and dearly, the first keeps in a scratch row."""
        levels = [(self.path[-1], None)]
        if len(self.path) > 1:
            levels.append((self.path[-2], self.path[-1]))
        for at, inner in levels:
            loops = [(slot[0], p.block.variables, p.accumulates) for slot, p in at.passes.items()
                     if not p.block.passes]
            if inner is not None and not inner.passes and not inner.lets:
                loops.append((LAST, self.nest.nest[-1:], inner.stores))
            self.keep_in(sorted(loops, key=lambda t: t[0]))

    def keep_in(self, loops):
        made, kept = {}, {}            # node → the first pass that makes it; → its row's element
        for _, variables, statements in loops:
            if len(variables) == 1:
                v = variables[0]
                self.replace(statements, kept)
                for s in list(statements):
                    self.keep(s.expr, v, made, kept)
                self.replace(statements, kept)
                for s in statements:
                    for n in outside_guards(s.expr):
                        made.setdefault((n, v), statements)

    def replace(self, statements, kept):
        for s in statements:
            if kept and not (isinstance(s, Store) and s.buffer in self.scratch):
                s.expr = scalar.rewrite(s.expr, {}, kept, {})

    def fits(self, size):
        """Is there room for one more scratch row?"""
        return size + sum(row.type.nbytes for row in self.scratch) <= self.room

    def keep(self, root, v, made, kept):
        """Rows for the largest parts of root that an earlier pass made too."""
        done, stack = set(), [root]
        while stack:
            n = stack.pop()
            if n in done or n in kept or not n.free & v.bit:
                continue
            done.add(n)
            maker = made.get((n, v))
            if maker is None:
                stack.extend(inner_nodes(n))
            elif n.args and cost_below(n, v) >= KEEP and self.fits(v.extent * n.dtype.itemsize):
                row = Buffer(self.names.unique("row"), ArrayType(n.dtype, (v.extent,)), "local")
                self.scratch.append(row)
                first = sum(isinstance(s, Store) and s.buffer in self.scratch for s in maker)
                maker.insert(first, Store(row, index.of(v), n))
                kept[n] = scalar.load(row, index.of(v))


def inner_nodes(n):
    """The arguments of n that may be computed outside of it: not what a guard guards."""
    if n.op == "guard":
        return (n.args[1], *scalar.index_nodes(n))
    return n.below


def outside_guards(root):
    """Nodes below root, without those behind guards."""
    return scalar.walk(root, below=inner_nodes)


def cost_below(n, v):
    """The cost of what varies with v below n, in additions."""
    return sum(m.cost for m in scalar.walk(n) if m.free & v.bit)


def guards_inward(root):
    """root with every reduction under a guard replaced by one whose body is guarded.

    Where the guard fails its reductions are not used, so their bodies may give anything: 0.
    """
    for n in scalar.walk(root):
        if n.op == "guard":
            reductions = [m for m in scalar.walk(n.args[0]) if m.op == "reduce"]
            if reductions:
                return guards_inward(pushed(root, n, reductions))
    return root


def pushed(root, guard, reductions):
    """root with `guard` pushed into the bodies of the reductions under it, and gone around them."""
    inside = {}
    for m in reductions:
        body = scalar.rewrite(m.args[0], {}, inside, {})
        zero = scalar.const(0, body.dtype)
        new = scalar.node("reduce", (scalar.guard(guard.data, body, zero),), m.data, m.dtype)
        inside[m] = new
    value = scalar.rewrite(guard.args[0], {}, inside, {})
    return scalar.rewrite(root, {}, {guard: value_where(guard, value)}, {})


def value_where(guard, value):
    """`value` where the guard holds, else its other value; nothing is read without a guard."""
    test = None
    for x, lo, hi in guard.data:
        at = scalar.index_value(x, np.dtype("int64"))
        inside = scalar.apply("and", scalar.apply("ge", at, scalar.const(lo, at.dtype)),
                              scalar.apply("lt", at, scalar.const(hi, at.dtype)))
        test = inside if test is None else scalar.apply("and", test, inside)
    loads = [m for m in scalar.walk(value) if m.op == "load" and unguarded(value, m)]
    safe = {m: scalar.guard(guard.data, m, scalar.const(0, m.dtype)) for m in loads}
    return scalar.apply("select", test, scalar.rewrite(value, {}, safe, {}), guard.args[1])


def unguarded(root, load):
    return load in outside_guards(root)
