"""A `loop.Contract` as a product of the contraction engine: flat indices, operands, epilogue.

An operand that is a plain load of unit stride is read where it lies, and so are windows over an
array, with a border of zeros or without; any other is computed, vector by vector, where it is
packed.  Relies on `contract`, `emit` and `flat_product`.
"""

from __future__ import annotations

import itertools
import math

from ... import index, scalar
from ...loop import Contract, Store, of_elements
from ...passes.product import bordered, strips, windows
from ...records import replace
from ..flat_product import FlatProduct
from . import contract, contract_emit, operands
from .contract_plan import Product
from .emit import Emitter
from .fetches import USUAL, used_by
from .instructions import element, number
from .late_tiles import fetching, is_late
from .pieces import pieces, pulled, steps_of
from .tiles import Machine
from .winograd import LONGEST, Windows
from .winograd_emit import WindowWriter

BORDER = 1 / 16            # share of steps in a border from which its rows are brought together
COUNTED = 1 << 12          # places along an axis that are counted
IN_PIECES = 24             # scalar operations that an element of a vector in pieces costs
WITHIN = 32                # bytes of a row of the columns that a batch has at least
VECTOR, SQUARE = 64, 32    # bytes of the longest vector, and of the side of a square in packing


def emitted(name, kernel, statement, target):
    """The engine's functions for one Contract of a kernel, and the vmath functions they use."""
    with kernel.space:
        product = loop_product(kernel, statement, target)
        plan = planned(product, target, kernel.turns)
        if plan.windows:
            product = LoopProduct(kernel, statement, product.windows)
            product.out_form()                   # which says where the result is
            return WindowWriter(plan, product, name).emitted(), product.used
        product.fetching = fetching(plan)
        return contract_emit.emit(plan, product, name), product.used


def described(kernel, target):
    """How the engine runs the Contract of a kernel, in words; nothing for any other kernel."""
    for statement in kernel.body:
        if isinstance(statement, Contract):
            with kernel.space:
                product = loop_product(kernel, statement, target)
                plan = planned(product, target, kernel.turns)
            parts = "×".join(map(str, plan.grid))
            how = [f", {x}" for x, on in (("A packed", plan.pack_a), ("B packed", plan.pack_b),
                                          ("stored a row of tiles later", is_late(plan)),
                                          ("Winograd's algorithm", plan.windows)) if on]
            return f"{plan.tile.rows}x{plan.width} tiles, {parts} parts{''.join(how)}"
    return ""


def loop_product(kernel, statement, target):
    """The engine's Product for a Contract, whose rows are ordered for it; windows are those of rows
    in their own order."""
    found = windows(statement.a, statement.rows, statement.k, statement.dtype, LONGEST)
    return LoopProduct(kernel, in_batches(ordered(statement, target)), found)


def in_batches(statement):
    """The Contract whose columns lie evenly apart in its result: those further out are batches.

    As pixels of many images do, where channels come before them.  A vector of the result would run
    from one image into the next, and its elements be stored one by one.
    """
    store, lead, columns = statement.body[-1], [], [*statement.columns]
    least = WITHIN // statement.dtype.itemsize
    if statement.of_column or not isinstance(store, Store) or store.index.nodes:
        return statement
    while len(columns) > 1:
        outer, within = columns[0], math.prod(v.extent for v in columns[1:])
        if within < least:
            break
        lead.append(columns.pop(0))
        x = store.index
        if index.is_affine(x, outer) and index.stride(x, outer) != within * index.stride(
                x, columns[-1]):
            return replace(statement, batch=(*statement.batch, *lead), columns=tuple(columns))
    return statement


def planned(product, target, turns):
    """The engine's Plan for a product; one that takes turns is cut by batches alone."""
    statement = product.statement
    plan = contract.plan(
        product.rows.extent, product.columns.extent, product.depth.extent,
        element(statement.dtype),
        product.form(product.a, product.rows, "m", product.depth, "k"),
        product.form(product.b, product.depth, "k", product.columns, "n"),
        machine=machine(target), batch=product.batch.extent, out=product.out_form(),
        epilogue=product.out_form() is None, threads=1 if turns else target.threads,
        rank=statement.rank, total=statement.total is not None, sums=len(statement.sums),
        windows=None if turns or product.batch.extent > 1 else product.windows_form(),
        moved=product.epilogue_bytes())
    if turns is None:
        return plan
    return plan.but(grid=(turns.count, 1, 1, 1), turns=turns.count // turns.groups)


def machine(target):
    """The engine's description of the host."""
    return Machine(target.vector_bytes, target.registers, target.slow_third)


def ordered(statement, target):
    """The Contract with rows behind each other that stand at one place in their borders.

    Rows of one place in many images: what is zero in one is zero in all, and is left out.  Only
    where that is much, and the second cache holds the windows of all of them.
    """
    found = bordered(statement.a, statement.k, statement.dtype)
    if found is None or outside(found.ranges) < BORDER:
        return statement
    buffer, x = found.load.data
    mask = 0
    for y, _, _ in found.ranges:
        mask |= y.free
    alike = [v for v in statement.rows if not v.free & mask]
    window = 1 + sum(abs(c) * (a.hi - a.lo) for v in statement.k
                     for a, c in x.terms if a.free & v.bit)
    size = window * math.prod(v.extent for v in alike) * buffer.type.dtype.itemsize
    if size > machine(target).l2:
        return statement
    return replace(statement, rows=(*[v for v in statement.rows if v.free & mask], *alike))


def outside(ranges):
    """About which share of a product's steps lies outside of some range; 0 for large ones."""
    inside = 1
    for x, lo, hi in ranges:
        values = [x.const]
        for a, c in x.terms:
            if len(values) * (a.hi - a.lo + 1) > COUNTED:
                return 0
            values = [v + c * k for v in values for k in range(a.lo, a.hi + 1)]
        inside *= sum(lo <= v < hi for v in values) / len(values)
    return 1 - inside


class Pointers(dict):
    """Buffer → its pointer, loaded from %buffers where it is first asked for in a function."""

    def __init__(self, fn, places):
        super().__init__()
        self.fn, self.places = fn, places

    def __missing__(self, buffer):
        self[buffer] = self.fn.load("ptr", self.fn.gep("ptr", "%buffers", self.places[buffer]))
        return self[buffer]


class LoopProduct(FlatProduct, Product):
    """The callbacks of one Contract statement; its four indices are flat variables."""

    def __init__(self, kernel, statement, found=None):
        super().__init__(statement)
        self.used, self.windows, self.held = set(), found, {}
        buffers = [*kernel.params, *kernel.outputs]
        self.places = {b: k for k, b in enumerate(buffers)}
        self.given = {b: k for k, b in enumerate(kernel.params)}
        self.work, self.fetching = len(buffers), USUAL
        a, rows, k, dtype = statement.a, statement.rows, statement.k, statement.dtype
        self.bordered = self.flat_border(bordered(a, k, dtype))
        self.strips = None if self.bordered else self.flat_border(strips(a, rows, k, dtype))

    # -- forms ----------------------------------------------------------------------------------

    def form(self, n, first, first_name, second, second_name):
        """Strided where the operand is a plain load of a unit stride, else Pulled along that."""
        if n.op == "load" and n.data[0].type.dtype == self.statement.dtype:
            strides = self.strides(n.data[1], first, second)
            if strides is not None:
                return operands.Strided(*strides)
            if n is self.a and self.columns.extent > 1 and self.in_tables(n.data[1]):
                stretches = (self.stretch(n.data[1], v) for v in (first, second))
                return operands.Offset(*stretches, *steps_of(n.data[1], first))
        if n is self.a and self.bordered and self.columns.extent > 1:
            return self.bordered_form()
        if n is self.a and self.strips and self.columns.extent > 1:
            return self.strips_form()
        pieced = n is self.b and self.columns.extent > 1 and self.pieced_form()
        if pieced:
            return pieced
        unit = self.unit(n, first, second)
        name, variable = (first_name, first) if unit else (second_name, second)
        if pieces(n, variable, self.statement.dtype, VECTOR // self.statement.dtype.itemsize):
            return operands.Pulled(name, IN_PIECES, by_panel=True)
        return operands.Pulled(name, int(sum(m.cost for m in scalar.walk(n))) + 1)

    def strides(self, x, first, second):
        """(stride of first, of second), one of them 1, where x steps evenly through a batch."""
        if not self.is_even(x):
            return None
        s, t = index.stride(x, first), index.stride(x, second)
        if t == 1 or second.extent == 1:
            return s, 1
        if s == 1 or first.extent == 1:
            return 1, t
        return None

    def is_even(self, x):
        """Is each term of the index a variable, or known by the batch alone?"""
        return not x.nodes and all(isinstance(a, index.Var) or not a.free & ~self.batch.bit
                                   for a, _ in x.terms)

    def in_tables(self, x):
        """Is each term of the index known by row, by depth, or by batch alone?"""
        bits = [v.bit for v in (self.rows, self.depth, self.batch)]
        static = not x.nodes and all(
            not isinstance(a, index.Dynamic) for a, _ in x.terms)
        return static and all(sum(bool(a.free & bit) for bit in bits) <= 1 for a, _ in x.terms)

    def pieced_form(self):
        """The form of b where it is a plain load that lies in pieces, or None."""
        if self.b.op != "load" or self.b.data[0].type.dtype != self.statement.dtype:
            return None
        x = self.b.data[1]
        if self.behind(x, self.columns, VECTOR):
            return operands.Pieced("n")
        whole = not self.strips and (not self.bordered or self.whole(self.bordered.run, SQUARE))
        if whole and self.behind(x, self.depth, SQUARE) and index.is_affine(x, self.columns):
            return operands.Pieced("k", index.stride(x, self.columns))
        return None

    def behind(self, x, variable, size):
        """Do elements between multiples of so many bytes lie behind each other?"""
        period, step = steps_of(x, variable)
        return step == 1 and self.whole(period, size) and not x.nodes

    def whole(self, count, size):
        """Are so many elements a multiple of so many bytes?"""
        return count * self.statement.dtype.itemsize % size == 0

    def flat_border(self, found):
        """A Bordered operand, or Strips, over the flat variables."""
        return found and replace(found, load=self.moved(found.load), ranges=tuple(
            (index.substitute(x, self.to), lo, hi) for x, lo, hi in found.ranges))

    def bordered_form(self):
        """The form of a, which is Bordered."""
        found = self.bordered
        stretches = (self.stretch(found.load.data[1], v) for v in (self.rows, self.depth))
        limits = tuple(hi - lo for _, lo, hi in found.ranges)
        return operands.Bordered(*stretches, found.run, limits, *self.alike())

    def alike(self):
        """(period, step): rows between multiples of the period have one place in the border, and
        lie evenly apart."""
        period, step = steps_of(self.bordered.load.data[1], self.rows)
        for x, _, _ in self.bordered.ranges:
            one, slope = steps_of(x, self.rows)
            period = math.gcd(period, 1 if slope else one)
        return (period, step) if step > 0 else (1, 0)

    def strips_form(self):
        """The form of a, which is Strips."""
        found = self.strips
        stretches = (self.stretch(found.load.data[1], v) for v in (self.rows, self.depth))
        return operands.Strips(*stretches, found.rows, found.steps, found.step)

    def windows_form(self):
        """The form of a where it is Windows, or None."""
        found = self.windows
        if not found or found.load.dtype.kind != "f":
            return None
        outer = math.prod(v.extent for v in found.outer)
        sizes, taps = (tuple(v.extent for v in some) for some in (found.places, found.taps))
        return Windows(outer, sizes, taps, found.channel.extent, found.turned,
                       *map(tuple, zip(*found.steps)))

    def stretch(self, x, variable):
        """Over how many elements an index goes while only this variable changes."""
        return 1 + sum(abs(c) * (a.hi - a.lo) for a, c in x.terms if a.free & variable.bit)

    def out_form(self):
        """The result's strides, when all that happens to a sum is that it is stored."""
        body = of_elements(self.statement)
        if len(body) != 1 or not isinstance(body[0], Store):
            return None
        (s,) = body
        plain = (s.expr.op == "name" and s.expr.dtype == self.statement.dtype
                 and s.buffer.type.dtype == s.expr.dtype and not s.how and not s.when)
        x = index.substitute(s.index, self.to) if self.to else s.index
        if not plain or not self.is_even(x):
            return None
        if self.columns.extent > 1 and index.stride(x, self.columns) != 1:
            return None
        self.out = s.buffer, x
        return operands.Strided(index.stride(x, self.rows), 1)

    def epilogue_bytes(self):
        """Of what the statements for a sum read and write, all in all."""
        return sum(b.type.nbytes for b in {b for b, _ in used_by(of_elements(self.statement))})

    # -- callbacks ------------------------------------------------------------------------------

    def workspace(self, fn):
        return fn.load("ptr", fn.gep("ptr", "%buffers", self.work))

    def emitter(self, fn, **at):
        """An Emitter whose flat variables have these values."""
        env = {getattr(self, name): (value, 0) if isinstance(value, str) else (None, value)
               for name, value in at.items()}
        pointers = Pointers(fn, self.places)
        pointers.update(self.held.get(fn, {}))
        emitter = Emitter(fn, pointers, env)
        emitter.given = self.given
        return emitter

    def pointer(self, fn, buffer, x, b):
        """The address of a load's first element in batch b."""
        emitter = self.emitter(fn, batch=b, rows=0, columns=0, depth=0)
        return emitter.address(buffer, x)

    def hold_pointers(self, fn):
        self.held[fn] = Pointers(fn, self.places)
        for buffer, _ in used_by(of_elements(self.statement)):
            self.held[fn][buffer]

    def a_pointer(self, fn, b):
        return self.pointer(fn, *self.a.data, b)

    def b_pointer(self, fn, b):
        return self.pointer(fn, *self.b.data, b)

    def b_place(self, fn, b, k, j):
        return self.emitter(fn, batch=b, depth=k, columns=j).address(*self.b.data)

    def out_pointer(self, fn, b):
        return self.pointer(fn, *self.out, b)

    def a_element(self, fn, b, i, k):
        value, _ = self.emitter(fn, batch=b, rows=i, depth=k).value(self.a)
        return value

    def window_places(self, fn, outer, firsts, zeros):
        found, form = self.windows, self.windows_form()
        variables = [index.space().variable(n + 1) for n in (form.outer - 1, *form.last_firsts)]
        one, *along = map(index.of, variables)
        to = dict(zip(found.outer, index.unflat(one, [v.extent for v in found.outer])))
        to.update([*zip(found.places, along), (found.channel, index.of(0))])
        emitter = self.emitter(fn)
        emitter.env.update({v: (name, 0) if isinstance(name, str) else (None, name)
                            for v, name in zip(variables, (outer, *firsts))})
        emitter.scopes[0].mask = -1

        def place(steps):
            at = to | dict(zip(found.taps, map(index.of, steps)))
            buffer, x = found.load.data
            ranges = [(index.substitute(y, at), lo, hi) for y, lo, hi in found.ranges]
            ranges += form.read_by_places(along, steps)
            test = emitter.ranges([(y, lo, hi) for y, lo, hi in ranges if y.lo < lo or y.hi >= hi])
            there = emitter.address(buffer, index.substitute(x, at))
            return there if test is None else fn.select(test, "ptr", there, zeros)
        return [place(steps) for steps in itertools.product(*map(range, form.elements))]

    def row_addresses(self, fn, b, i, count, to):
        buffer, x = self.a.data
        rows = index.ix({a: c for a, c in x.terms if not a.free & self.depth.bit}, x.const)
        with fn.loop(0, count) as row:
            emitter = self.emitter(fn, batch=b, rows=fn.add(i, row.index))
            fn.store("ptr", emitter.address(buffer, rows), fn.gep("ptr", to, row.index))

    def step_offsets(self, fn, k, count, to):
        x = index.ix({a: c for a, c in self.a.data[1].terms if a.free & self.depth.bit})
        with fn.loop(0, count) as step:
            emitter = self.emitter(fn, depth=fn.add(k, step.index))
            fn.store("i64", emitter.index(x), fn.gep("i64", to, step.index))

    def row_places(self, fn, b, i):
        buffer, x = self.bordered.load.data
        emitter = self.emitter(fn, batch=b, rows=i)
        start = fn.op(f"ptrtoint ptr {emitter.pointers[buffer]} to i64")
        at = fn.mul(emitter.index(self.known(x, False)), buffer.type.dtype.itemsize)
        return [fn.add(start, at), *[emitter.index(index.plus(self.known(x, False), -lo))
                                     for x, lo, _ in self.bordered.ranges]]

    def run_places(self, fn, k):
        buffer, x = self.bordered.load.data
        emitter = self.emitter(fn, depth=k)
        at = fn.mul(emitter.index(self.known(x, True)), buffer.type.dtype.itemsize)
        return [at, *[emitter.index(self.known(x, True)) for x, _, _ in self.bordered.ranges]]

    def strip(self, fn, b, i, k):
        buffer, x = self.strips.load.data
        emitter = self.emitter(fn, batch=b, rows=i, depth=k)
        first, stop = 0, self.strips.steps
        for (y, lo, hi), slope in zip(self.strips.ranges, self.strips.slopes):
            at = emitter.index(y)
            begin, end = (self.passed(fn, fn.sub(limit, at), slope) for limit in (lo, hi))
            first, stop = fn.max(first, begin), fn.min(stop, end)
        first = fn.min(first, self.strips.steps)
        count = fn.max(fn.sub(stop, first), 0)
        start = fn.op(f"ptrtoint ptr {emitter.pointers[buffer]} to i64")
        at = fn.add(emitter.index(x), fn.mul(first, self.strips.step))
        return fn.add(start, fn.mul(at, buffer.type.dtype.itemsize)), first, count

    def passed(self, fn, distance, slope):
        """After how many steps of this slope a distance is passed; all of them if never."""
        if slope == 0:
            return fn.select(fn.compare("sgt", distance, 0), "i64", self.strips.steps, 0)
        return fn.div(fn.add(fn.max(distance, 0), slope - 1), slope)

    def known(self, x, by_depth):
        """What the depth alone adds to an index, or all the rest of it."""
        terms = {a: c for a, c in x.terms if bool(a.free & self.depth.bit) == by_depth}
        return index.ix(terms, 0 if by_depth else x.const)

    def pack_a(self, fn, b, i, k, lanes, along, count):
        at = {"batch": b, "rows": i, "depth": k}
        return self.packed(fn, self.a, at, "rows" if along == "m" else "depth", lanes, count)

    def pack_b(self, fn, b, k, j, lanes, along, count):
        at = {"batch": b, "depth": k, "columns": j}
        return self.packed(fn, self.b, at, "columns" if along == "n" else "depth", lanes, count)

    def packed(self, fn, n, at, moving, lanes, count):
        """A vector of the operand along what moves; from `count` on zero, and not read."""
        dtype, along = self.statement.dtype, getattr(self, moving)
        found = pieces(n, along, dtype, lanes)
        if found:
            return pulled(fn, found, lambda value: self.emitter(fn, **at | {moving: value}),
                          at[moving], along.extent, lanes, element(dtype), count)
        emitter = self.emitter(fn, **at)
        emitter.vec, emitter.count = (along, lanes), lanes
        if count is not None:
            emitter.mask = fn.mask(lanes, count)
        value = emitter.splat(emitter.value(scalar.cast(n, dtype)), dtype)
        self.used |= emitter.instructions.used
        if count is None:
            return value
        zero = number(0, dtype, lanes)
        return emitter.instructions.select(emitter.mask, value, zero, dtype, lanes)

    def epilogue(self, fn, b, i, j, lanes, values, count, along, sums):
        """The statement's body for neighbouring sums of a row ("n") or column ("m"), by vectors."""
        names, sums = self.statement.sums, list(sums)
        for q, value in enumerate(values):
            left = lanes if count is None else min(lanes, count - q * lanes)
            if left <= 0:
                break
            at = (fn.add(i, q * lanes), j) if along == "m" else (i, fn.add(j, q * lanes))
            emitter = self.emitter(fn, batch=b, rows=at[0], columns=at[1])
            emitter.vec, emitter.count = (self.rows if along == "m" else self.columns, lanes), left
            emitter.names[self.statement.name] = value, True
            emitter.fetching = self.fetching
            of_vector = slice(q * len(names), (q + 1) * len(names))
            emitter.slots.update({name: [x] for name, x in zip(names, sums[of_vector])})
            emitter.body(self.epilogue_body())
            sums[of_vector] = [emitter.slots[name][0] for name in names]
            self.used |= emitter.instructions.used
        return sums

    def total(self, fn, j, lanes, value, count):
        """The same for neighbouring sums of columns."""
        self.columns_done(fn, j, lanes, {self.statement.total: value}, count)

    def sums(self, fn, j, lanes, values, count):
        """The same for what the epilogue has added up over the rows."""
        self.columns_done(fn, j, lanes, dict(zip(self.statement.sums, values)), count)

    def columns_done(self, fn, j, lanes, values, count):
        """What the statement's body does with these values of neighbouring columns."""
        emitter = self.emitter(fn, columns=j)
        emitter.vec, emitter.count = (self.columns, lanes), count or lanes
        emitter.names.update({name: (value, True) for name, value in values.items()})
        emitter.body(self.column_body(values))
        self.used |= emitter.instructions.used
