"""The loop IR: kernels of statements over scalar expressions, and the Plan they make up.

    kernel softmax(x: f32[1024,1024]) -> y: f32[1024,1024]
      parallel i in 0..1024
        m: f32 = -inf
        reduce j in 0..1024 (16 lanes, 4 at once)
          m max= x[i,j]
        ...

Lowering writes it, scheduling rewrites its For statements, and every backend emits it.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from .index import Ix, Space, Var
from .later import lazily
from .records import new, record
from .scalar import Node, walk
from .types import ArrayType

printed = lazily("fgrad.loop_text")     # which relies on this module


@record
class Buffer:
    """Storage of an array.  kind: "input", "constant", "output", "temporary" or "local"."""
    name: str
    type: ArrayType
    kind: str = "temporary"


# ---------------------------------------------------------------------------- statements

@record
class Let:
    """name = expr, once per run of its body."""
    name: str
    expr: Node
    source: tuple = None               # (source, mark) of the Equation, as everywhere below


@record
class Start:
    """name: dtype = identity of `how`; an accumulator."""
    name: str
    how: str
    dtype: np.dtype


@record
class Accumulate:
    """name how= expr"""
    name: str
    how: str
    expr: Node
    source: tuple = None


@record
class Store:
    """buffer[index] = expr, or buffer[index] how= expr; only where every range of `when` holds."""
    buffer: Buffer
    index: Ix
    expr: Node
    how: str = None
    when: tuple = ()
    source: tuple = None


@record
class For:
    """for var in 0..extent by step: body.  kind: "parallel", "serial" or "reduce".

    parallel: outermost in the kernel, iterations are independent; on a "gpu" target a perfect nest
    of them.  It is cut into parts of at least `grain` iterations, at multiples of `grain`.
    reduce: accumulators started right before the loop (nest) are fed in it, in any order.
    serial: in order; an accumulator it feeds is carried from iteration to iteration (cumsum).
    width: vector lanes; within such a loop there are only loops without, whose accumulators are
    vectors where they start inside of it.  unroll: copies of the vector body, with an accumulator
    each.  rows: iterations of which the loops inside run as one.
    """
    var: Var
    body: list
    kind: str
    width: int = 1
    unroll: int = 1
    step: int = 1
    grain: int = 1
    rows: int = 1

    @property
    def block(self):
        """How many iterations always run together."""
        return self.width * self.unroll if self.width > 1 else max(self.step, self.rows)


def statements(body):
    """All that are no loops, those in loops too."""
    for s in body:
        if isinstance(s, For):
            yield from statements(s.body)
        else:
            yield s


def nodes_of(body):
    """The scalar nodes of all statements within, arguments first, as the keys of a dict."""
    nodes = {}
    for s in statements(body):
        if not isinstance(s, Start):
            walk(s.expr, nodes)
    return nodes


def feeding(loop):
    """What starts outside of the loop and accumulates in it: name → the Fors around, of each
    statement that feeds it.
    """
    found, stack, inner = {}, [(loop, s) for s in loop.body], set()
    while stack:
        around, s = stack.pop()
        match s:
            case Start():
                inner.add(s.name)
            case Accumulate():
                found.setdefault(s.name, []).append(around)
            case For():
                stack.extend((s, t) for t in s.body)
    return {name: around for name, around in found.items() if name not in inner}


def accumulators(loop):
    """The same with one For for each name."""
    return {name: around for name, (*_, around) in feeding(loop).items()}


@record
class Contract:
    """name = Σ over `k` of a · b, for every index of batch, rows and columns; then `body` for each.

    `a` knows (batch, rows, k), `b` (batch, k, columns): index variables, outermost first.  Both
    have dtype `dtype`, and either may be any expression of loads, without reductions.
    It stands for a whole nest of loops; the contraction engine of a backend chooses how to run it.
    body holds Let and Store statements that use `name`, an accumulator of `dtype`.
    total: the name, in body, of Σ over `k` of b for the column, or None.
    sums: names, in body, of sums over the rows: Accumulate statements feed them, and what uses them
    runs once for a column, behind all rows.  A total or sums need a product of one batch.
    rank: which of the engine's ways to run it, 0 for the cheapest by its estimate.
    """
    batch: tuple
    rows: tuple
    columns: tuple
    k: tuple
    a: Node
    b: Node
    name: str
    dtype: np.dtype
    body: list
    source: tuple = None
    total: str = None
    sums: tuple = ()
    rank: int = 0

    @property
    def of_column(self):
        """The names that stand for one value of a column."""
        return {self.total, *self.sums} - {None}


def of_columns(contract, known):
    """The statements of a Contract's body that work on these names of its columns: its total, or
    its sums.  They run once for a column.
    """
    using, wanted, out = using_names(contract, known), set(), []
    for s in reversed(contract.body):
        if s in using or isinstance(s, Let) and s.name in wanted:
            wanted |= names(s.expr)
            out.insert(0, s)
    return out


def of_elements(contract):
    """The statements of a Contract's body that run for each element."""
    using = using_names(contract, contract.of_column)
    return [s for s in contract.body if s not in using]


def using_names(contract, known):
    """The statements that use these names, or what is named from them."""
    known, out = set(known), []
    for s in contract.body:
        if names(s.expr) & known:
            out.append(s)
            if isinstance(s, Let):
                known.add(s.name)
    return out


def names(expr):
    """The names that an expression uses."""
    return {n.data for n in walk(expr) if n.op == "name"}


@record
class Turns:
    """Kernels behind each other that run share by share: all of them for one, then for the next.

    count: shares, which `groups` parallel parts have equally many of.  names: of the kernels.
    """
    count: int
    groups: int
    names: tuple


@record
class Kernel:
    """Statements over buffers: loop nests in order, or one Contract.

    params are read only.  outputs are written, and read where the kernel has written them before,
    or where a `Store.how` accumulates.  scratch: rows local to one iteration of the parallel loop.
    aliases: (output, param) pairs that share storage, elements being read before they are written.
    note: what is to be said of its schedule.  turns: the Turns that it is part of, or None.
    """
    name: str
    params: list
    outputs: list
    scratch: list
    body: list
    space: Space
    aliases: list = new(list)
    note: str = ""
    turns: Turns = None

    def __str__(self):
        return printed().kernel_text(self)


@record
class Call:
    """Results by the NumPy rule of an operation that has no pull (sort, linear algebra)."""
    name: str
    op: object
    op_params: dict
    params: list
    outputs: list
    source: tuple = None


@record
class Loop:
    """Plans that are run again and again ("scan", "while"), one of several ("cond"), or one that
    others run too ("call").

    scan: plans (body,); length, reverse.   while: plans (cond, body).   cond: plans, one a branch.
    call: plans (plan,), the same one for all who call it.
    An inner Plan's inputs are consts, carry, xs; its outputs carry, ys; those of a while's cond one
    bool; those of a branch or a call the `ys`.  Inner inputs for consts are the outer buffers
    themselves.

    starts, ends: the carry before and behind the loop; starts are read only.  xs: stacked inputs;
    None stands for a counter 0, 1, … of the steps.  ys: stacked outputs.  index: what a cond
    chooses by.  work: what the loop needs while it runs: `block` (bytes for the temporaries of
    inner Plans), `others` (per carry a second buffer, where a step cannot write over the carry it
    reads), `flag` (a while's bool), `counter` (i32[]).  aliases: (end, start) pairs of carries that
    share storage.
    """
    name: str
    kind: str
    programs: tuple
    consts: list
    starts: list
    ends: list
    xs: list
    ys: list
    length: int = 0
    reverse: bool = False
    index: Buffer = None
    plans: tuple = ()
    block: Buffer = None
    others: dict = new(dict)
    flag: Buffer = None
    counter: Buffer = None
    source: tuple = None
    aliases: list = new(list)

    @property
    def params(self):
        """The buffers it reads."""
        index = [self.index] if self.index is not None else []
        return list(dict.fromkeys([*index, *self.consts, *self.starts,
                                   *(x for x in self.xs if x is not None)]))

    @property
    def outputs(self):
        """The buffers it writes: results, then what it works in."""
        work = [b for b in (self.block, self.flag, self.counter) if b is not None]
        return [*self.ends, *self.ys, *work, *self.others.values()]


@record
class Plan:
    """What a Program becomes: steps in order over buffers.

    inputs, outputs: Buffers in the order of the call (an output may be an input, or another
    output). constants: (Buffer, Array) pairs of closed-over arrays.  tables: the same of what
    depends on nothing, and is part of the executable.  offsets: of temporaries in one
    arena of `arena` bytes, 64-byte aligned.  donated: (output Buffer, input Buffer) pairs that
    share storage.  shares: buffer → bytes of a share, of a temporary that only kernels which take
    turns use: of it there is one share for each of their groups.
    """
    name: str
    inputs: list
    outputs: list
    constants: list
    steps: list
    offsets: dict = new(dict)
    arena: int = 0
    donated: dict = new(dict)
    shares: dict = new(dict)
    tables: list = new(list)

    def __str__(self):
        return printed().plan_text(self)

    @property
    def origins(self):
        """Buffer → the one whose storage it takes over, to the end of the chain."""
        out = {}
        for step in self.steps:
            for b, param in getattr(step, "aliases", ()):
                out[b] = out.get(param, param)
        return {**out, **self.donated}

    def room(self, b, k):
        """The bytes that a temporary needs which step k writes first."""
        return self.shares[b] * self.steps[k].turns.groups if b in self.shares else b.type.nbytes


def whole_turns(steps):
    """Per step the first and the last of those that it takes turns with: itself where none."""
    spans = []
    for turns, found in groupby(steps, key=turns_of):
        n, first = len(list(found)), len(spans)
        spans += ([(k, k) for k in range(first, first + n)] if turns is None
                  else [(first, first + n - 1)] * n)
    return spans


def turns_of(step):
    """The Turns of a step, or None."""
    return getattr(step, "turns", None)


def copied(step):
    """The buffer that a kernel only copies, element by element, or None."""
    body = step.body if isinstance(step, Kernel) else ()
    while len(body) == 1 and isinstance(body[0], For):
        body = body[0].body
    if len(body) != 1 or not isinstance(body[0], Store):
        return None
    (s,) = body
    plain = s.expr.op == "load" and s.how is None and not s.when
    b, at = s.expr.data if plain else (None, None)
    return b if at is s.index and b is not None and b.type == s.buffer.type else None


def is_idle(step):
    """Does a step only copy an array onto itself?"""
    b = copied(step)
    return b is not None and (step.outputs[0], b) in step.aliases
