"""What tiles fetch while they multiply: the operands of the next batch, each tile a share.

Between small matrices a processor sees no stream: it would wait for the first lines of each, where
the second cache lacks them.  Relies on `contract` for the Plan and on `tiles`; `contract_emit`
relies on it.
"""

from __future__ import annotations

from ...aligned import LINE
from .text import BYTES
from .tiles import STREAM


class Streams:
    """The streams of a product's tiles: of A and of B, into the second cache.

    `table`: what a kernel reads, see `tiles.Kernel`.
    """
    count = 2

    def __init__(self, fn, plan, product):
        self.fn, self.plan, self.product = fn, plan, product
        self.table = fn.alloca("i64", STREAM * self.count)
        self.tiles = plan.rows // plan.tile.rows * -(-plan.columns // plan.width)
        self.shares = [-(-n * plan.depth * BYTES[plan.type] // self.tiles // LINE) * LINE
                       for n in (plan.rows, plan.columns)]

    def begin(self, b):
        """Of batch b; the last one is its own next."""
        fn, product = self.fn, self.product
        b = fn.min(fn.add(b, 1), self.plan.batch - 1)
        self.firsts = [product.a_pointer(fn, b), product.b_pointer(fn, b)]
        for n, share in enumerate(self.shares):
            rate = fn.gep("i64", self.table, STREAM * n + 1)
            fn.store("i64", -(-share // self.plan.depth), rate)

    def of_tile(self, i, j):
        """Writes where the shares of the tile at row i, column j begin."""
        fn, p = self.fn, self.plan
        row = fn.mul(fn.div(i, p.tile.rows), -(-p.columns // p.width))
        tile = fn.add(row, fn.div(j, p.width))
        for n, (first, share) in enumerate(zip(self.firsts, self.shares)):
            place = fn.gep("i8", first, fn.mul(tile, share))
            fn.store("ptr", place, fn.gep("i64", self.table, STREAM * n))
