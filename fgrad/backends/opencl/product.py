"""A `loop.Contract` as a tiled OpenCL kernel: its operands and epilogue as texts for `contract`.

An operand that is a plain load is put in as it stands; any other becomes a function of the kernel,
as does an epilogue.  Relies on `contract` and `tiles` for the schemes and `emit` for expressions.
"""

from __future__ import annotations

from ... import scalar
from ...scalar import EXPENSIVE
from ...types import ArrayType
from .. import flat_product
from . import contract, tiles
from .emit import Emitter, Written, arguments, indented, needs_long
from .instructions import Instructions, type_text
from .names import Names


def written(name, kernel, statement, record):
    """The Written of a kernel that is one Contract."""
    with kernel.space:
        return Product(name, kernel, statement).written(record)


class Product:
    """The texts of one Contract statement."""

    def __init__(self, name, kernel, statement):
        assert not statement.of_column, "the Target of a device says totals=False"
        self.name, self.kernel, self.statement = name, kernel, statement
        self.flat = flat_product.FlatProduct(statement)
        self.names, self.instructions = Names(), Instructions()
        self.pointers, self.params = arguments(kernel, self.names)
        self.wide = needs_long(kernel)
        self.functions = []

    def written(self, record):
        f, dtype = self.flat, self.statement.dtype
        sizes = tuple(v.extent for v in (f.batch, f.rows, f.columns, f.depth))
        unit_a = "m" if f.unit(f.a, f.rows, f.depth) else "k"
        unit_b = "k" if f.unit(f.b, f.depth, f.columns) else "n"
        scheme, tile = contract.choose(record, *sizes[1:], sizes[0], dtype=dtype, unit_a=unit_a,
                                       unit_b=unit_b)
        load_a, load_b = self.operand("A", f.a, "bmk"), self.operand("B", f.b, "bkn")
        lanes = tile.lanes if scheme == "thread" and self.expensive() else 1
        text, size, local = contract.source(
            self.name, sizes, load_a, load_b, self.epilogue(1), self.params, dtype=dtype,
            scheme=scheme, tile=tile, unit_a=unit_a, unit_b=unit_b, wide=self.wide or None,
            store_vector=self.epilogue(lanes) if lanes > 1 else "")
        text = "\n".join([*self.functions, text])
        room = then = None
        if scheme == "sliced":
            name, results = f"{self.name}Sum", sizes[0] * sizes[1] * sizes[2]
            more, *counts = tiles.adding(name, sizes, self.epilogue(1), self.params, dtype=dtype,
                                         tile=tile, wide=self.wide)
            text, room = text + more, ArrayType(dtype, (tile.slices * results,))
            then = Written(name, "", counts[0][0], counts[1][0])
        return Written(self.name, text, size[0], local[0], self.instructions.used, room, then)

    def emitter(self, letters):
        """An Emitter in which the flat indices have their letters."""
        f = self.flat
        places = {"b": f.batch, "m": f.rows, "n": f.columns, "k": f.depth}
        env = {places[c]: (c, 0) if places[c].extent > 1 else (None, 0) for c in letters}
        return Emitter(self.pointers, self.names, self.instructions, env=env, wide_index=self.wide)

    def operand(self, side, n, letters):
        """The expression of an operand's element: a plain load, or a call of a function."""
        emitter = self.emitter(letters)
        if n.op == "load" and n.data[0].type.dtype == n.dtype:
            text, _ = emitter.value(n)
            if not emitter.out:
                return text
            emitter = self.emitter(letters)
        text, _ = emitter.value(n)
        return self.function(side, emitter, letters, text, type_text(n.dtype), [])

    def function(self, side, emitter, letters, text, result, more):
        """A call of a new function of the indices `letters` and the kernel's buffers."""
        index = "long" if self.wide else "int"
        name = f"{self.name}{side}"
        params = ", ".join([*(f"const {index} {c}" for c in letters), *more, self.params])
        lines = "\n".join(indented([*emitter.out, *([f"return {text};"] if text else [])], 1))
        self.functions.append(f"{result} {name}({params}) {{\n{lines}\n}}\n")
        passed = [*letters, *(p.rpartition(" ")[2] for p in more), *self.pointers.values()]
        return f"{name}({', '.join(passed)})"

    def expensive(self):
        """Does the epilogue hold what a compiler makes no vectors of?"""
        return any(n.cost >= EXPENSIVE for s in self.statement.body for n in scalar.walk(s.expr))

    def epilogue(self, lanes):
        """The statement that stores a finished sum `x`, or `lanes` of them along the columns."""
        emitter, dtype = self.emitter("bmn"), self.statement.dtype
        if lanes > 1:
            emitter.vec, emitter.count = (self.flat.columns, lanes), lanes
        emitter.values[self.statement.name] = "x", lanes > 1
        emitter.body(self.flat.epilogue_body())
        if len(emitter.out) == 1 and "//" not in emitter.out[0]:
            return emitter.out[0]
        x = f"const {type_text(dtype, lanes)} x"
        side = f"Store{lanes if lanes > 1 else ''}"
        return self.function(side, emitter, "bmn", "", "void", [x]) + ";"
