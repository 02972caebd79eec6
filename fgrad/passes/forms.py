"""The form of a stored value in the loops of a kernel: of one of its own, or of one that is there.

    y = max(x @ w + b, 0)     in the kernel of the product:    y[i,j] = max(acc + b[j], 0)
    s = Σᵢ x[i,j]             in one over i, j:                s[j] += x[i,j]

Relies on `reduction_forms.py`, `pull.py` and `product.py`; `fuse.py` asks it for each stored value.
"""

from __future__ import annotations

import itertools
from collections import Counter
from math import prod

from .. import index, scalar
from .collapse import collapse_reduction, in_order_of_memory, rewrite_root
from .nests import Root, extents, wide
from .product import TOTAL, total_of
from .pull import uncast
from .recompute import hidden
from .reduction_forms import (adds_columns, axes_missed, column_form, has_other_form, outer_form,
                              short_sums_written_out, written_out_axes)

PRODUCT = "acc"                    # the name of a product within its kernel
NONE = frozenset()


class Forms:
    """Finds Roots of stored values.  home: stored value → the number of the step that makes it."""

    def __init__(self, graph, target, home):
        self.graph, self.target, self.home = graph, target, home

    # -- in a kernel of its own ------------------------------------------------------------------

    def roots(self, v, axes, at, expr):
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
        if adds_columns(n, axes, self.target):
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

    # -- in a kernel that is there ---------------------------------------------------------------

    def total(self, g, v):
        """The Root of v where it sums the columns of what product g multiplies, or None."""
        if not self.target.totals:
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
              or g.product is None and has_other_form(uncast(expr), kept, self.target)):
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

    def over_own_rows(self, g, expr, nodes, kept):
        """The expression with reductions over rows that g stores, over g's innermost loop instead.

        What they read is then at its own index, so it need not be loaded.  A reduction must be
        known by the expression's own loops, `kept`, outside of g's innermost one: another one would
        compute it again and again.
        """
        last, new = g.nest[-1], {}
        own = self.own_values(g, self.graph.compared)
        outside = sum(v.bit for v in (kept[:kept.index(last)] if last in kept else kept))
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

    def latest_read(self, nodes):
        """The number of the last kernel that makes something the nodes load, or -1."""
        return self.latest(self.graph.loaded(nodes))

    def latest(self, values):
        """The number of the last kernel that makes one of the values, or -1."""
        return max([self.home.get(v, -1) for v in values], default=-1)


def value_of_product(product, expr):
    """The element in terms of the contraction's result, named "acc"."""
    mask = sum(v.bit for v in (*product.batch, *product.rows, *product.columns))
    out = scalar.name(PRODUCT, product.dtype, mask)
    if product.scale is not None:
        out = scalar.apply("mul", out, scalar.cast(product.scale, product.dtype))
    return scalar.cast(out, expr.dtype)


def place_of(v, loops):
    """The element of v at these loops, one for each axis that is longer than 1."""
    loops = iter(loops)
    return tuple(index.of(next(loops)) if n != 1 else index.of(0) for n in v.shape)
