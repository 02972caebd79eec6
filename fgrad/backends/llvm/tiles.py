"""Register tiles: how much of a product fits in the registers, and the kernels that compute it.

A kernel adds `depth` outer products into a tile of rows × vectors accumulators.  Each step reads
the vectors of one row of B and multiplies them by one element of every row of A, so a tile of r × v
needs r·v + v + 1 registers and loads r + v values for r·v multiply-adds.  Sizes and strides are
arguments, save the row stride of A in tall tiles, which have no registers for multiples of it;
equal kernels have equal names, so that a module holds each once.  Relies on `text`; `packing` and
`contract` rely on it.
"""

from __future__ import annotations

from ...records import frozen, replace
from .text import BYTES, Function, mangled, vector

FLOATS = ("float", "double")
TALL = 9                   # rows from which their stride is a constant: 14 × 2 would spill
AHEAD = 8                  # steps that rows of B are fetched in advance, where they are far apart
ONE_STREAM = 2             # tiles in a row of a result, up to which a processor sees all its rows
STREAM = 2                 # words of a stream: where it begins, and how many bytes a step goes
ATTRIBUTES = "nounwind noinline align 64"   # where a module had them made up to 6 % of the speed
KERNEL_PARAMETERS = ("i64 %depth, ptr noalias readonly %a, i64 %as, ptr noalias readonly %b, "
                     "i64 %bs, ptr noalias %c, i64 %cs, i1 %add")
PACKING = ", ptr noalias %to"          # of kernels that pack
FETCHING = ", ptr noalias readonly %streams"     # of kernels that fetch, behind that
KERNEL_TYPES = ("i64", "ptr", "i64", "ptr", "i64", "ptr", "i64", "i1")


@frozen
class Machine:
    """What the engine knows of a processor: its vectors, and from them its caches, in bytes.

    slow_third: its third cache gives less than tiles can multiply, although it fetches what lies
    ahead of the rows that they read, however short these are (Intel's with AVX-512).
    """
    vector_bytes: int
    registers: int
    slow_third: bool = False

    @property
    def masks(self):
        """Whether masked loads and stores are single instructions."""
        return self.vector_bytes >= 32

    def lanes(self, type):
        """Of a whole vector."""
        return self.vector_bytes // BYTES[type]

    @property
    def l1(self):
        return 48 << 10 if self.vector_bytes == 64 else 32 << 10

    @property
    def l2(self):
        return 1 << 20 if self.vector_bytes == 64 else 512 << 10


@frozen
class Tile:
    """rows × vectors accumulators of `lanes` elements of an LLVM type."""
    type: str
    lanes: int
    rows: int
    vectors: int

    @property
    def width(self):
        return self.lanes * self.vectors

    @property
    def vector(self):
        return vector(self.type, self.lanes)


def shapes(machine):
    """(rows, vectors) of the tiles worth trying, the best for large products first."""
    if machine.registers == 16 and machine.vector_bytes == 16:
        return [(3, 2), (5, 1)]                  # products need registers: nothing is fused
    if machine.registers == 16:
        return [(6, 2), (4, 3), (5, 2), (4, 2), (3, 3), (7, 1)]      # (8, 1) would spill
    if machine.vector_bytes == 16:
        return [(8, 3), (7, 3), (12, 2), (10, 2), (8, 2), (5, 4), (16, 1)]
    return [(6, 4), (14, 2), (13, 2), (12, 2), (8, 3), (5, 4), (10, 2), (8, 2), (2, 8), (3, 6),
            (16, 1), (24, 1)]


def step_cycles(rows, vectors):
    """Cycles of one step of a tile, fitted to measurements on AVX-512: two multiply-adds a cycle, a
    tenth lost per load, and no less than the latency of a multiply-add."""
    return max(4.2, rows * vectors / 2 + 0.1 * (rows + vectors) + 0.6)


def multiply_add(fn, type, lanes, x, y, sum):
    """x·y + sum, fused where the processor can."""
    v = vector(type, lanes)
    if type in FLOATS:
        return fn.call(f"llvm.fmuladd.{mangled(type, lanes)}", (v, x), (v, y), (v, sum), result=v)
    return fn.op(f"add {v} {fn.op(f'mul {v} {x}, {y}')}, {sum}")


def added(fn, type, lanes, x, y):
    return fn.op(f"{'fadd' if type in FLOATS else 'add'} {vector(type, lanes)} {x}, {y}")


@frozen
class Rows:
    """A is read along its rows: element (r, k) at r·stride + k.

    stride: a constant, or None where it is an argument.
    """
    stride: int | None = None
    places: tuple = ()

    @classmethod
    def of(cls, tile, stride):
        """(the form for a tile, its argument) of rows so far apart."""
        return (cls(), stride) if tile.rows < TALL else (cls(stride), 0)

    @property
    def name(self):
        return "rows" if self.stride is None else f"rows{self.stride}"

    def begin(self, fn, tile, a, stride):
        """(the form that knows how far its rows are from the first, where A begins)."""
        apart = stride if self.stride is None else self.stride
        return replace(self, places=tuple(fn.mul(apart, r) for r in range(tile.rows))), a

    def at(self, fn, pointer):
        return pointer

    def element(self, fn, type, pointer, r):
        return fn.gep(type, pointer, self.places[r])

    def advance(self, fn, type, pointer, stride):
        return fn.gep(type, pointer, 1)


@frozen
class Columns:
    """A is read along its columns: element (r, k) at r + k·stride; the stride is an argument."""
    name = "columns"

    def begin(self, fn, tile, a, stride):
        return self, a

    def at(self, fn, pointer):
        return pointer

    def element(self, fn, type, pointer, r):
        return fn.gep(type, pointer, r)

    def advance(self, fn, type, pointer, stride):
        return fn.gep(type, pointer, stride)


@frozen
class Offsets:
    """A is read through tables, as windows are: element (r, k) at address[r] + offset[k].

    `a` is the address of the tile's row addresses, the stride the address of the offsets, counted
    in elements.  Of `run` rows only the first address is loaded, the others lie `step` apart: an
    address takes a register, and there are few.
    """
    run: int = 1
    step: int = 0
    bases: tuple = ()

    @property
    def name(self):
        return "offsets" + (f"{self.run}by{self.step}" if self.run > 1 else "")

    def begin(self, fn, tile, a, stride):
        """(the form that knows its rows, the address of the first offset)."""
        bases = tuple(fn.load("ptr", fn.gep("ptr", a, r)) for r in range(0, tile.rows, self.run))
        return replace(self, bases=bases), fn.op(f"inttoptr i64 {stride} to ptr")

    def at(self, fn, pointer):
        return fn.load("i64", pointer)

    def element(self, fn, type, offset, r):
        first = fn.gep(type, self.bases[r // self.run], offset)
        return fn.gep(type, first, r % self.run * self.step)

    def advance(self, fn, type, pointer, stride):
        return fn.gep("i64", pointer, 1)


@frozen
class Runs:
    """A is read by runs of steps that lie behind each other: element (r, k) of one at place[r] + k.

    `a` is the address of the places of the tile's rows in the first run, `stride` places before
    those in the next.  The stride of A is the place of a run of zeros: where all rows are there,
    the run is left out.  Of `rows` rows only the first has a place, the others lie `step` elements
    apart.
    """
    steps: int
    stride: int
    rows: int = 1
    step: int = 0
    places: tuple = ()

    @property
    def name(self):
        apart = f".{self.rows}by{self.step}" if self.rows > 1 else ""
        return f"runs{self.steps}by{self.stride}{apart}"

    def begin(self, fn, tile, a, stride):
        """(the form that knows its places, the first step of a run)."""
        count = -(-tile.rows // self.rows)
        places = tuple(fn.load("ptr", fn.gep("ptr", a, n)) for n in range(count))
        return replace(self, places=places), 0

    def some(self, fn, zeros):
        """Is the place of any row another than that of zeros?"""
        apart = None
        for place in self.places:
            other = fn.op(f"xor i64 {fn.op(f'ptrtoint ptr {place} to i64')}, {zeros}")
            apart = fn.op(f"or i64 {apart}, {other}") if apart else other
        return fn.compare("ne", apart, 0)

    def at(self, fn, step):
        return step

    def element(self, fn, type, step, r):
        first = fn.gep(type, self.places[r // self.rows], step)
        return fn.gep(type, first, r % self.rows * self.step)

    def advance(self, fn, type, step, stride):
        return fn.add(step, 1)


@frozen
class Segments:
    """A is read by segments, of steps that lie `step` elements apart, and rows behind each other.

    `a` is the address of the first: three i64, the place of its first row and step, the step of B
    that this is, and how many steps there are.  The stride of A says how many rows of them are
    before the tile's first, the depth how many segments there are.
    """
    step: int
    words = 3

    @property
    def name(self):
        return f"segments{self.step}"

    def at(self, fn, pointer):
        return pointer

    def element(self, fn, type, pointer, r):
        return fn.gep(type, pointer, r)

    def advance(self, fn, type, pointer, stride):
        return fn.gep(type, pointer, self.step)


class Steps:
    """Writes the steps of a tile into a function.

    a_form: Rows, Columns, Offsets, Runs or Segments.  `count`: the valid lanes of the last vector,
    or None.  far: B is read where it lies, so that its rows may be pages apart; they are fetched in
    advance.  panel: how many elements apart the rows of B are written that `run` is told to pack.
    streams: how many are fetched, of a function with the parameter %streams.
    """

    def __init__(self, fn, tile, a_form, a_stride, b_stride, count=None, far=False, panel=0,
                 streams=0):
        self.fn, self.tile, self.a_form, self.panel, self.streams = fn, tile, a_form, panel, streams
        self.a_stride, self.b_stride, self.count, self.far = a_stride, b_stride, count, far

    def b_vectors(self, b):
        tile, last = self.tile, self.tile.vectors - 1
        places = [self.fn.gep(tile.type, b, q * tile.lanes) for q in range(tile.vectors)]
        if self.far:
            ahead = self.fn.gep(tile.type, b, self.fn.mul(self.b_stride, AHEAD))
            for line in range(0, tile.width, 64 // BYTES[tile.type]):
                self.fn.prefetch(self.fn.gep(tile.type, ahead, line))
        return [self.fn.vector_load(tile.type, tile.lanes, place, self.count if q == last else None)
                for q, place in enumerate(places)]

    def step(self, state):
        """(a, b, *to, *sums) after one more k."""
        fn, tile = self.fn, self.tile
        a, b, *sums = state
        columns = self.b_vectors(b)
        to = self.packed(columns, sums.pop(0)) if self.panel else []
        at = self.a_form.at(fn, a)
        for r in range(tile.rows):
            x = fn.load(tile.type, self.a_form.element(fn, tile.type, at, r))
            x = fn.splat(tile.type, tile.lanes, x)
            for q, y in enumerate(columns):
                n = r * tile.vectors + q
                sums[n] = multiply_add(fn, tile.type, tile.lanes, x, y, sums[n])
        return [self.a_form.advance(fn, tile.type, a, self.a_stride),
                fn.gep(tile.type, b, self.b_stride), *to, *sums]

    def packed(self, columns, to):
        """Writes a row of B into its panel; gives the place of the next one."""
        fn, tile = self.fn, self.tile
        for q, y in enumerate(columns):
            fn.vector_store(tile.type, tile.lanes, y, fn.gep(tile.type, to, q * tile.lanes))
        return [fn.gep(tile.type, to, self.panel)]

    def run(self, a, b, depth, odd, to=None):
        """The sums after `depth` steps, two an iteration; `odd`: the depth may be odd.

        to: where B's rows are packed, if they are.
        """
        start = [a, b, *[to] * self.packs, *["zeroinitializer"] * self.accumulators]
        if isinstance(self.a_form, Runs):
            return self.runs(start, depth)[2:]
        if isinstance(self.a_form, Segments):
            return self.segments(start, depth)
        self.a_form, start[0] = self.a_form.begin(self.fn, self.tile, a, self.a_stride)
        return self.pairs("ptr", start, depth, odd)[2 + self.packs:]

    def run_beside(self, a, b, depth, each, beside):
        """The sums after `depth` steps, a constant; `beside` writes what is done between `each`."""
        fn, start = self.fn, [a, b, *["zeroinitializer"] * self.accumulators]
        self.a_form, start[0] = self.a_form.begin(fn, self.tile, a, self.a_stride)
        left = depth % each
        with fn.loop(0, depth - left, each, list(zip(self.types("ptr"), start))) as loop:
            loop.next = self.pairs("ptr", loop.values, each, False)
            beside()
        state = self.pairs("ptr", loop.values, left, left % 2 == 1) if left else loop.values
        return state[2:]

    @property
    def packs(self):
        return int(self.panel > 0)

    @property
    def accumulators(self):
        return self.tile.rows * self.tile.vectors

    def runs(self, start, depth):
        """The state after `depth` steps of whole runs."""
        fn, form = self.fn, self.a_form
        types = self.types("ptr")
        with fn.loop(0, depth, form.steps, list(zip(types, start))) as loop:
            a, b, *sums = loop.values
            self.a_form, first = form.begin(fn, self.tile, a, self.a_stride)
            with fn.if_(self.a_form.some(fn, self.a_stride), list(zip(types[2:], sums))) as branch:
                run = self.pairs("i64", [first, b, *sums], form.steps, form.steps % 2 == 1)
                branch.next = run[2:]
            after = fn.gep(self.tile.type, b, fn.mul(self.b_stride, form.steps))
            loop.next = [fn.gep("ptr", a, form.stride), after, *branch.values]
        return loop.values

    def segments(self, start, count):
        """The sums after so many segments."""
        fn, words = self.fn, self.a_form.words
        first, b, *sums = start
        types = ["ptr", *self.types("ptr")[2:]]
        with fn.loop(0, count, 1, list(zip(types, [first, *sums]))) as loop:
            at, *sums = loop.values
            place, step, steps = (fn.load(type, fn.gep("i64", at, word))
                                  for word, type in enumerate(("ptr", "i64", "i64")))
            a = fn.gep(self.tile.type, place, self.a_stride)
            row = fn.gep(self.tile.type, b, fn.mul(step, self.b_stride))
            loop.next = [fn.gep("i64", at, words),
                         *self.pairs("ptr", [a, row, *sums], steps, True)[2:]]
        return loop.values[1:]

    def types(self, first):
        """The types of a state: of where A is, of where B is, and goes, of the sums."""
        return [first, *["ptr"] * (1 + self.packs), *[self.tile.vector] * self.accumulators]

    def pairs(self, first, start, depth, odd):
        """The state after `depth` steps, two an iteration."""
        fn, types = self.fn, self.types(first)
        pairs = fn.sub(depth, fn.rem(depth, 2)) if odd else depth
        with fn.loop(0, pairs, 2, list(zip(types, start))) as loop:
            self.fetch(loop.index)
            loop.next = self.step(self.step(loop.values))
        if not odd:
            return loop.values
        left = fn.compare("slt", pairs, depth)
        with fn.if_(left, list(zip(types, loop.values))) as branch:
            branch.next = self.step(loop.values)
        return branch.values

    def fetch(self, step):
        """Fetches a line of each stream, into the second cache."""
        fn = self.fn
        for n in range(self.streams):
            first, rate = (fn.load(type, fn.gep("i64", "%streams", STREAM * n + word))
                           for word, type in enumerate(("ptr", "i64")))
            fn.prefetch(fn.gep("i8", first, fn.mul(step, rate)), near=False)


@frozen
class Kernel:
    """A shareable function that computes one tile.

    void (depth, a, a stride, b, b stride, c, c stride, add, to, streams): the tile at c becomes
    A·B, or, with `adds` and add, A·B is added to it.  read, written: how many lanes of the last
    vector of B are read, and of C are written, or None for all.  `odd`: the depth may be odd.
    `far`, `panel`: see Steps; `to`: where a panel is packed.  `streams`: how many are fetched, each
    of STREAM words.
    """
    tile: Tile
    a_form: Rows | Columns | Offsets | Runs | Segments
    read: int | None = None
    written: int | None = None
    adds: bool = False
    odd: bool = False
    far: bool = False
    panel: int = 0
    streams: int = 0

    @property
    def name(self):
        t = self.tile
        flags = "".join(f".{n}" for n in ("adds", "odd", "far") if getattr(self, n))
        flags += f".reads{self.read}" if self.read else ""
        flags += f".writes{self.written}" if self.written else ""
        flags += f".packs{self.panel}" if self.panel else ""
        flags += f".streams{self.streams}" if self.streams else ""
        return f"fg.tile.{mangled(t.type, t.lanes)}.{t.rows}x{t.vectors}.{self.a_form.name}{flags}"

    def text(self):
        """The kernel as a Function."""
        tile = self.tile
        parameters = KERNEL_PARAMETERS + (PACKING if self.panel else "") + (
            FETCHING if self.streams else "")
        fn = Function(self.name, parameters, linkage="internal", attributes=ATTRIBUTES)
        rows = [fn.gep(tile.type, "%c", fn.mul("%cs", r)) for r in range(tile.rows)]
        with fn.if_(fn.compare("sgt", "%cs", ONE_STREAM * tile.width)):
            for row in rows:
                for line in range(0, tile.width, 64 // BYTES[tile.type]):
                    fn.prefetch(fn.gep(tile.type, row, line), write=True)
        steps = Steps(fn, tile, self.a_form, "%as", "%bs", self.read, self.far, self.panel,
                      self.streams)
        sums = steps.run("%a", "%b", "%depth", self.odd, "%to")
        places = [(fn.gep(tile.type, row, q * tile.lanes),
                   self.written if q == tile.vectors - 1 else None)
                  for row in rows for q in range(tile.vectors)]
        if self.adds:
            sums = self.added_to(fn, sums, places)
        for value, (pointer, valid) in zip(sums, places):
            fn.vector_store(tile.type, tile.lanes, value, pointer, valid)
        return fn.ret()

    def added_to(self, fn, sums, places):
        tile = self.tile
        with fn.if_("%add", [(tile.vector, s) for s in sums]) as branch:
            branch.next = [
                added(fn, tile.type, tile.lanes,
                      fn.vector_load(tile.type, tile.lanes, pointer, valid), s)
                for s, (pointer, valid) in zip(sums, places)]
        return branch.values
