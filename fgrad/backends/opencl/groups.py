"""Loop IR as OpenCL C for a GPU: an iteration of the parallel loops is a work-item's, or a team's.

    parallel i in 0..64                     float m = -INFINITY;
      m = -inf                              for (int j = lane; j < 50257; j += 1024)
      reduce j in 0..50257           →        m = max(m, x[i * 50257 + j]);
        m max= x[i,j]                       part[lane] = m; … ; m = part[0];

The lanes of a team share the iterations of the loops inside that may run in any order; what else
there is all of them compute, and the first one stores.  A group holds several teams where that
makes neighbours read what lies side by side.  Sums are added in a tree, the same in every run.
Relies on `emit`; `backend` relies on it.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod

from ... import index, scalar
from ...index import Dynamic, Quot
from ...loop import Accumulate, For, Let, Store, accumulators
from ...passes.parts import cost_of
from ...records import frozen, replace
from ...scalar import REDUCTIONS
from ...types import BOOL
from .emit import Emitter, Written, arguments, function_text, needs_long, nothing
from .instructions import Instructions, number, type_text
from .names import Names

GROUP = 128                # work-items of a group, where each has an iteration for itself
TEAM = 256                 # lanes of a team, unless there are too few teams to keep a GPU busy
LEAST = 8                  # fewer lanes are not worth a barrier
BUSY = 1024                # work-items for each unit of a GPU that keep it busy
FULL = 2048                # work-items for each unit of a GPU that it runs at a time
TURNS = 4                  # iterations of an item at most: a GPU begins 1.6 groups a nanosecond
UNROLLED = 100             # work of an iteration up to which those of an item are written out
FEWEST, MOST = 16, 256     # work-items of a group that look for their places together
TAKEN = "item", "lane", "team", "reach", "first", "turn", "own", "left"     # names of this file's
SIDE = 32                  # work-items that read together: what they read lies side by side


@frozen
class Team:
    """How the work-items of a group share iterations of a kernel's parallel loops.

    A group has `teams` teams, one for an iteration, of `lanes` work-items.  side: neighbouring
    work-items are of neighbouring teams, and not neighbouring lanes.
    """
    teams: int
    lanes: int
    side: bool = False

    @property
    def size(self):
        return self.teams * self.lanes


# ---------------------------------------------------------------------------- what lanes can share

def dividable(loop):
    """May the iterations of a loop run in any order, by several lanes at once?"""
    if loop.kind == "serial" and accumulators(loop):
        return False
    stores = list(of_kind(Store, loop.body))
    apart = all(index.is_affine(s.index, loop.var) and index.stride(s.index, loop.var)
                for s in stores)
    return apart and all(s.index is x for b, x in loads(loop.body) for s in stores
                         if s.buffer is b)


def of_kind(kind, body):
    """The statements of one kind, in all loops."""
    for s in body:
        if isinstance(s, For):
            yield from of_kind(kind, s.body)
        elif isinstance(s, kind):
            yield s


def loads(body):
    """(buffer, index) of everything that statements read."""
    seen = {}
    for s in of_kind((Let, Accumulate, Store), body):
        scalar.walk(s.expr, seen)
    return [n.data for n in seen if n.op == "load"]


def nest_in(loop):
    """The loops of a perfect nest whose iterations may run in any order, outermost first."""
    nest = [loop] if dividable(loop) else []
    while nest and len(nest[-1].body) == 1 and isinstance(nest[-1].body[0], For) and \
            dividable(nest[-1].body[0]):
        nest += nest[-1].body
    return nest


def divided(body):
    """The nests of loops that a team can share: (their statement, the loops)."""
    for s in body:
        if isinstance(s, For):
            nest = nest_in(s)
            if nest:
                yield s, nest
            else:
                yield from divided(s.body)


def nest_of(body):
    """The perfect nest of parallel loops that ends a kernel's body."""
    nest = [s for s in body[-1:] if isinstance(s, For) and s.kind == "parallel"]
    while nest and len(nest[-1].body) == 1 and isinstance(nest[-1].body[0], For) and \
            nest[-1].body[0].kind == "parallel":
        nest += nest[-1].body
    return nest


def team_of(kernel, record):
    """The Team of a kernel, or None: an iteration for each work-item."""
    nest = nest_of(kernel.body)
    body = nest[-1].body if nest else kernel.body
    found = [s for s, _ in divided(body)]
    if not found or 4 * cost_of(found) < 3 * cost_of(body):
        return None
    team = arranged(prod(f.var.extent for f in nest), max(found, key=lambda s: cost_of([s])),
                    nest[-1].var if nest else None, bool(kernel.scratch), record)
    room = record.local_memory - sum(b.type.nbytes for b in kernel.scratch)
    parts = max(len(accumulators(s)) for s in found)
    while team.lanes >= LEAST and 8 * team.size * parts > room:
        team = replace(team, lanes=team.lanes // 2)
    return team if team.lanes >= LEAST else None


def arranged(teams, loop, across, alone, record):
    """The Team for so many iterations, most of whose work `loop` is.

    across: the variable that neighbouring teams differ in.  alone: a group holds one team.
    """
    most, for_each = record.max_group, max(1, record.units * BUSY // teams)
    nest = nest_in(loop)
    inner, extent = nest[-1], prod(s.var.extent for s in nest)
    even = teams & -teams                        # the largest power of two that divides them
    if across and not alone and beside(inner.body, across) > beside(inner.body, inner.var):
        count = min(SIDE, even, max(SIDE // 8, floor(2 * teams // record.units)))
        return Team(count, floor(min(most // count, extent // 2, for_each)), side=True)
    lanes = floor(min(extent, max(TEAM, for_each), most))
    return Team(1 if alone else min(max(1, GROUP // max(1, lanes)), even), lanes)


def beside(body, v):
    """How many reads and writes of neighbouring iterations of v lie side by side."""
    places = [x for _, x in loads(body)] + [s.index for s in of_kind(Store, body)]
    return sum(index.is_affine(x, v) and abs(index.stride(x, v)) == 1 for x in places)


def floor(n):
    """The largest power of two up to n; 0 of 0."""
    return 1 << n.bit_length() - 1 if n else 0


# ---------------------------------------------------------------------------- what items look for

def is_search(loop, alike):
    """Does a loop go through places of which few are an item's own, the same ones for all items
    that agree in the variables `alike`, a mask?
    """
    tests = [s.when for s in loop.body if isinstance(s, Store)]
    lets = {s.name: s.expr.free for s in loop.body if isinstance(s, Let)}
    known = alike | loop.var.bit
    return (loop.kind == "serial" and loop.step == 1 and loop.var.extent > FEWEST
            and all(isinstance(s, (Let, Store)) for s in loop.body)
            and bool(tests) and bool(tests[0]) and all(t == tests[0] for t in tests)
            and not any(variables(x, lets) & ~known for x, _, _ in tests[0]))


def variables(x, lets):
    """A mask of the variables that an Ix depends on; lets: name → those of its value."""
    mask = 0
    for atom, _ in x.terms:
        if isinstance(atom, Quot):
            mask |= variables(atom.ix, lets)
        elif isinstance(atom, Dynamic) and atom.node.op == "name":
            mask |= lets.get(atom.node.data, atom.free)
        else:
            mask |= atom.free
    return mask


def searching(nest, most):
    """The group size with which items of a nest look for their places together, or None.

    A group's items must agree in what is looked for: they differ in inner variables of the nest.
    """
    for k in range(1, len(nest)):
        alike = sum(f.var.bit for f in nest[:k])
        inner = prod(f.var.extent for f in nest[k:])
        size = max(n for n in range(1, min(most, MOST, inner) + 1) if inner % n == 0)
        loops = [s for s in nest[-1].body if isinstance(s, For)]
        if size >= FEWEST and any(is_search(s, alike) for s in loops):
            return size, alike
    return None


# ---------------------------------------------------------------------------- text

class GroupEmitter(Emitter):
    """Writes a kernel for a GPU.

    `team`: the Team, or None.  `together`: do all lanes run what is being written?  `read`: the
    buffers that the kernel reads.  `unfed`: accumulators that hold nothing yet.  `shares`: do the
    lanes of a group share what the kernel keeps for itself?  `alike`: a mask of the variables in
    which the items of a group agree, where they look for places together.
    """

    def __init__(self, *args, team, read, **more):
        super().__init__(*args, **more)
        self.team, self.read = team, read
        self.together = self.shares = team is not None
        self.unfed, self.parts_of, self.group, self.groups = set(), {}, 1, 1
        self.alike = 0

    # -- who does what

    def kernel(self, body, record):
        """The statements of a kernel; its parallel loops are the work-items, or the teams."""
        nest = nest_of(body)
        total = prod(f.var.extent for f in nest)
        if self.team:
            self.group, self.groups = self.team.size, total // self.team.teams
            self.number_team(bool(nest))
            self.body(body[:-1] if nest else body)
            if nest:
                self.iteration(nest)
            return
        self.group = min(GROUP, record.max_group, 1 << (total - 1).bit_length())
        turns = max(1, min(TURNS, floor(total // (record.units * FULL))))
        found = searching(nest, record.max_group)
        if found:
            turns, (self.group, self.alike) = 1, found
        self.groups = -(-total // (self.group * turns))
        if not nest:
            self.body(body)
            return
        self.by_group(body[:-1])
        self.turns(nest, total, turns)

    def turns(self, nest, total, turns):
        """The parallel loops, of which a work-item has so many iterations, a group's apart."""
        if turns == 1:
            self.line(f"const {self.int} item = get_global_id(0);")
            with self.block(f"if (item < {total})") if total % self.group else nothing():
                self.iteration(nest)
            return
        share = self.group * turns
        self.line(f"const {self.int} first = ({self.int})get_group_id(0) * {share} + "
                  "get_local_id(0);")
        if cost_of(nest[-1].body) <= UNROLLED:
            self.line("#pragma unroll")
        with self.block(f"for (int turn = 0; turn < {turns}; turn++)"):
            self.line(f"const {self.int} item = first + turn * {self.group};")
            with self.block(f"if (item < {total})") if total % share else nothing():
                self.iteration(nest)

    def number_team(self, many):
        """The numbers of the lane, of the team in its group and, if there are many, of the item."""
        team, text = self.team, "get_local_id(0)"
        lane, own = f"{text} % {team.lanes}", f"{text} / {team.lanes}"
        if team.side:
            lane, own = f"{text} / {team.teams}", f"{text} % {team.teams}"
        alone = team.teams == 1
        self.line(f"const int lane = {text if alone else lane};")
        if not alone:
            self.line(f"const int team = {own};")
        if many:
            inside = "" if alone else f" * {team.teams} + team"
            self.line(f"const {self.int} item = get_group_id(0){inside};")

    def by_group(self, body):
        """What stands before the parallel loops; its loops are shared within each group."""
        if any(isinstance(s, For) for s in body):
            self.team, self.together, self.shares = Team(1, self.group), True, True
            self.number_team(False)
            self.body(body)
            self.team, self.together = None, False
        else:
            self.body(body)

    def search(self, s):
        """A loop whose places a group looks for together, an item at each; then each item goes
        through those that were found, in their order.
        """
        n, size, words = s.var.extent, self.group, -(-self.group // 32)
        start, name, word = [self.cnames(x) for x in (f"{s.var.name}From", s.var.name, "word")]
        test = next(t.when for t in s.body if isinstance(t, Store))
        fence = "barrier(CLK_LOCAL_MEM_FENCE);"
        with self.block(f"for ({self.int} {start} = 0; {start} < {n}; {start} += {size})"):
            self.line(f"if (get_local_id(0) < {words}) own[get_local_id(0)] = 0;")
            self.line(fence)
            self.line(f"const {self.int} {name} = {start} + (int)get_local_id(0);")
            with self.block(f"if ({name} < {n})" if n % size else ""):
                self.env[s.var] = name, 0
                self.body([t for t in s.body if isinstance(t, Let) and not t.expr.free
                           & ~(self.alike | s.var.bit)])
                with self.block(f"if ({self.conditions(test)})"):
                    self.line("atomic_or(&own[get_local_id(0) / 32], "
                              "1u << get_local_id(0) % 32);")
            self.line(fence)
            with self.block(f"for (int {word} = 0; {word} < {words}; {word}++)"), self.block(
                    f"for (uint left = own[{word}]; left; left &= left - 1)"):
                self.line(f"const {self.int} {name} = {start} + {word} * 32 + 31 - "
                          "clz(left & -left);")
                self.body([replace(t, when=()) if isinstance(t, Store) else t for t in s.body])
            self.line(fence)
        for x in (start, name, word):
            self.cnames.release(x)

    def iteration(self, nest):
        """The body of the parallel loops, for the iteration of the item's number."""
        self.places(nest, "item")
        self.body(nest[-1].body)

    def places(self, nest, number):
        """The variables of a nest of loops where all its iterations are numbered."""
        for k, f in enumerate(nest):
            below = prod(g.var.extent for g in nest[k + 1:])
            text = f"{number} / {below}" if below > 1 else number
            text = f"{text} % {f.var.extent}" if k else text
            name = self.cnames(f.var.name)
            self.line(f"const {self.int} {name} = {text};")
            self.env[f.var] = name, 0

    def loop(self, s):
        nest = nest_in(s) if self.together else []
        if not nest:
            if self.alike and is_search(s, self.alike):
                self.search(s)
            else:
                super().loop(s)
            return
        feeds = sorted(accumulators(s))
        for name in feeds:
            self.begin(name)
        with self.fenced({t.buffer for t in of_kind(Store, s.body)}):
            self.together = False
            self.deal(nest)
            self.together = True
        if feeds:
            self.combine(feeds)

    def deal(self, nest):
        """A perfect nest, its iterations dealt out to the lanes in turn."""
        total, alone = prod(f.var.extent for f in nest), len(nest) == 1
        name = self.cnames(nest[0].var.name if alone else "turn")
        with self.block(f"for ({self.int} {name} = lane; {name} < {total}; "
                        f"{name} += {self.team.lanes})"):
            if alone:
                self.env[nest[0].var] = name, 0
            else:
                self.places(nest, name)
            self.body(nest[-1].body)
        self.cnames.release(name)

    def store(self, s):
        if not self.together:
            super().store(s)
            return
        with self.fenced({s.buffer}), self.block("if (lane == 0)"):
            super().store(s)

    @contextmanager
    def fenced(self, buffers):
        """Around statements that write what other lanes may read."""
        fence = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
        if buffers & self.read:
            self.line(fence)
        yield
        if buffers & self.read:
            self.line(fence)

    # -- accumulators

    def start(self, s):
        super().start(s)
        self.unfed.add(s.name)

    def begin(self, name):
        """What an accumulator holds already counts once: the first lane's."""
        if name not in self.unfed:
            s = self.started[name]
            identity = number(REDUCTIONS[s.how][1](s.dtype), s.dtype)
            self.line(f"{self.word(name)} = lane ? {identity} : {self.word(name)};")
        self.unfed.discard(name)

    def combine(self, names):
        """The accumulators of all lanes of a team, added in a tree; every lane has the result."""
        team, at = self.team, "get_local_id(0)"
        apart = team.teams if team.side else 1
        first = "0" if team.teams == 1 else "team" if team.side else f"team * {team.lanes}"
        parts = [(self.word(n), self.part(self.started[n].dtype, k), self.started[n])
                 for k, n in enumerate(names)]
        for word, part, _ in parts:
            self.line(f"{part}[{at}] = {word};")
        self.line("barrier(CLK_LOCAL_MEM_FENCE);")
        with self.block(f"for (int reach = {team.lanes // 2}; reach > 0; reach /= 2)"):
            with self.block("if (lane < reach)"):
                other = f"{at} + reach" + (f" * {apart}" if apart > 1 else "")
                for word, part, s in parts:
                    total = self.instructions.apply(
                        REDUCTIONS[s.how][0], [word, f"{part}[{other}]"], s.dtype, 1)
                    self.line(f"{word} = {total};")
                    self.line(f"{part}[{at}] = {word};")
            self.line("barrier(CLK_LOCAL_MEM_FENCE);")
        for word, part, _ in parts:
            self.line(f"{word} = {part}[{first}];")
        self.line("barrier(CLK_LOCAL_MEM_FENCE);")

    def part(self, dtype, k):
        """The name of the local array in which lanes meet."""
        text = element(dtype)
        if (text, k) not in self.parts_of:
            self.parts_of[text, k] = self.cnames("lanes"), text
        return self.parts_of[text, k][0]


def element(dtype):
    """The C type of an element of a local array."""
    return "uchar" if dtype == BOOL else type_text(dtype)


def written(name, kernel, record):
    """The Written of a kernel without a Contract, for a GPU."""
    names, instructions = Names(TAKEN), Instructions()
    pointers, params = arguments(kernel, names)
    pointers.update((b, names(b.name)) for b in kernel.scratch)
    with kernel.space:
        team = team_of(kernel, record)
        emitter = GroupEmitter(pointers, names, instructions, wide_index=needs_long(kernel),
                               team=team, read={b for b, _ in loads(kernel.body)})
        emitter.kernel(kernel.body, record)
    kept = [(element(b.type.dtype), pointers[b], max(1, b.type.size)) for b in kernel.scratch]
    shared = [(text, part, emitter.group) for part, text in emitter.parts_of.values()]
    where = "__local " if emitter.shares else ""
    lines = [f"{where}{text} {word}[{size}];" for text, word, size in kept]
    lines += [f"__local {text} {part}[{size}];" for text, part, size in shared]
    if emitter.alike:
        lines.append(f"__local uint own[{-(-emitter.group // 32)}];")
    return Written(name, function_text(name, params, lines + emitter.out, emitter.group),
                   emitter.groups * emitter.group, emitter.group, instructions.used)
