"""A `loop.Contract` over four flat indices: batch, row, column and depth.

Contraction engines count flat; the operands' expressions use loop variables, several of which may
make up one index.  Here they become quotients and remainders of it.  Relied on by the products of
the backends.
"""

from __future__ import annotations

from math import prod

from .. import index, scalar
from ..loop import Store, of_columns, of_elements
from ..passes.reduction_forms import STEP
from ..records import replace


class FlatProduct:
    """batch, rows, columns, depth: a variable each; a, b: the operands over them.

    Made inside of the kernel's Space.
    """

    def __init__(self, statement):
        self.statement, self.to = statement, {}
        self.batch = self.flat(statement.batch, "batch")
        self.rows = self.flat(statement.rows, "row")
        self.columns = self.flat(statement.columns, "column")
        self.depth = self.flat(statement.k, "depth")
        self.a, self.b = self.moved(statement.a), self.moved(statement.b)

    def flat(self, variables, name):
        """One variable for several: theirs become quotients and remainders of it."""
        if len(variables) == 1:
            return variables[0]
        extents = tuple(v.extent for v in variables)
        one = index.space().variable(prod(extents), name)
        self.to.update(zip(variables, index.unflat(index.of(one), extents)))
        return one

    def moved(self, n):
        return scalar.rewrite(n, self.to, {}, {}) if self.to else n

    def unit(self, n, first, second):
        """Does the largest load of n lie along `first`, or in smaller steps than along `second`?"""
        best = (0, False)
        for m in scalar.walk(n):
            if m.op == "load":
                size = prod(v.extent for v, _ in m.data[1].terms if isinstance(v, index.Var))
                step, other = [index.stride(m.data[1], v) for v in (first, second)]
                best = max(best, (size, 0 < step <= STEP and (not other or step < abs(other))))
        return best[1]

    def epilogue_body(self):
        """What the statement's body does for each element, over the flat variables."""
        return self.flattened(of_elements(self.statement))

    def column_body(self, names):
        """What it does for each column with these names: the total, or the sums."""
        return self.flattened(of_columns(self.statement, names))

    def flattened(self, body):
        return [moved_statement(s, self.to) for s in body] if self.to else body


def moved_statement(s, to):
    """A Let, Accumulate or Store with its variables substituted."""
    def inside(n):
        return scalar.rewrite(n, to, {}, {})
    if not isinstance(s, Store):
        return replace(s, expr=inside(s.expr))
    when = tuple((index.substitute(x, to, inside), lo, hi) for x, lo, hi in s.when)
    return replace(s, expr=inside(s.expr), index=index.substitute(s.index, to, inside), when=when)
