"""The text of a sort by comparing, a vector of words at a time.

    quick: few words lie in registers and go through a network; more are parted by a pivot: those up
           to it go to where they belong, those above it to other memory, and both are sorted
    row:   the same of elements that are not words yet, which stay as they are
    count, move: a vector that several threads sort, cut into sides: each thread parts its share by
           the splitters, then brings what it has of each side to that of the others

Vectors of 64 bytes are parted by compressing them; in shorter ones a table says for every outcome
of the comparisons in which order the lanes come.  Where pivots are bad, the radix sort takes over:
time is never quadratic.  Relies on `text`, and on `networks` for what is compared; `radix_text`
relies on it, and knows what words are.
"""

from __future__ import annotations

from . import networks
from .text import Function, Mask, constant, iota, mangled, vector

COUNTS = (1, 2, 4, 8, 12, 16)        # vectors that a network sorts
COMPRESSES = 64            # bytes of a vector from which processors compress one
DEPTH = 2                  # times that of perfect pivots; deeper down the radix sort takes over

PICK = "llvm.x86.avx2.permd"

MAPS = "word %mask, word %top, word %last_mask, word %last_top"


def functions(name, kind, fields, sides, vector_bytes):
    """Their texts, for a kind of words.

    fields: the names of those of a job, in order; sides: into how many a vector is cut.
    """
    writer = Writer(name, kind, fields, sides, vector_bytes)
    made = [writer.orders(), *map(writer.leaf, COUNTS), *writer.parts(), writer.quick(),
            writer.row(), writer.split(), writer.count(), writer.move()]
    return [str(f) for f in made]


class Writer:
    """Writes the functions of one kind of words."""

    def __init__(self, name, kind, fields, sides, vector_bytes):
        self.name, self.bits, self.place = name, kind.bits, kind.place
        self.fields, self.sides = fields, sides
        self.word, self.lanes = f"i{self.bits}", 8 * vector_bytes // self.bits
        self.compresses = vector_bytes >= COMPRESSES
        self.vector, self.flags = vector(self.word, self.lanes), vector("i1", self.lanes)

    def function(self, stem, parameters, result="void", linkage="internal"):
        parameters = parameters.replace("word", self.word)
        return Function(f"{stem}.{self.name}", parameters, result=result, linkage=linkage)

    def call(self, fn, stem, *arguments, result="void"):
        """Calls a function of this kind; given (type, value) pairs."""
        return fn.call(f"{stem}.{self.name}", *arguments, result=result)

    def leave(self, fn):
        """Returns from within a block."""
        fn.ret()
        fn.label(fn.fresh("rest")[1:])

    def splats(self, fn, *names):
        return [fn.splat(self.word, self.lanes, name) for name in names]

    def mapped(self, fn, x, mask, top):
        """The words of elements; see radix_text."""
        sign = fn.op(f"ashr {self.vector} {x}, {self.all(self.bits - 1)}")
        flips = fn.op(f"and {self.vector} {sign}, {mask}")
        return fn.op(f"xor {self.vector} {fn.op(f'xor {self.vector} {x}, {flips}')}, {top}")

    def unmapped(self, fn, x, mask, top):
        """The elements of words, or their places."""
        if self.place:
            return fn.op(f"and {self.vector} {x}, {self.all(self.place)}")
        return self.mapped(fn, fn.op(f"xor {self.vector} {x}, {top}"), mask, "zeroinitializer")

    def all(self, number):
        return f"splat ({self.word} {number})"

    # -- networks ----------------------------------------------------------------------------------

    def leaf(self, count):
        """void(from, target, n, maps): sorts n elements, at most as many as `count` vectors hold.
        """
        fn = self.function(f"leaf{count}", f"ptr %from, ptr %target, i64 %n, {MAPS}")
        mask, top, last_mask, last_top = self.splats(fn, "%mask", "%top", "%last_mask", "%last_top")
        full = max((fewer for fewer in COUNTS if fewer < count), default=0)
        valid = [None if v < full else fn.mask(self.lanes, fn.sub("%n", v * self.lanes))
                 for v in range(count)]
        places = [v * self.lanes for v in range(count)]
        words = []
        for on, at in zip(valid, places):
            x = fn.vector_load(self.word, self.lanes, fn.gep(self.word, "%from", at), on)
            x = self.mapped(fn, x, mask, top)
            words.append(x if on is None else self.chosen(fn, on, x, self.all(-1)))
        for on, at, x in zip(valid, places, self.network(fn, words)):
            x = self.unmapped(fn, x, last_mask, last_top)
            fn.vector_store(self.word, self.lanes, x, fn.gep(self.word, "%target", at), on)
        return fn.ret()

    def chosen(self, fn, mask, x, y):
        return fn.op(f"select {vector('i1', self.lanes)} {mask}, {self.vector} {x}, "
                     f"{self.vector} {y}")

    def least(self, fn, x, y):
        return self.of_two(fn, "umin", x, y)

    def greatest(self, fn, x, y):
        return self.of_two(fn, "umax", x, y)

    def of_two(self, fn, which, x, y):
        return fn.call(f"llvm.{which}.{mangled(self.word, self.lanes)}", (self.vector, x),
                       (self.vector, y), result=self.vector)

    def network(self, fn, words):
        """Sorts the elements of vectors, which are in order then."""
        if len(words) == 1:
            return [self.alone(fn, *words)]
        for stage in networks.stages(len(words), self.lanes):
            words = [self.taken(fn, words, *lanes) for lanes in stage.taken]
            for i, j in stage.pairs:
                x, y = words[i], words[j]
                words[i], words[j] = self.least(fn, x, y), self.greatest(fn, x, y)
        return words

    def taken(self, fn, words, first, second, picks):
        if picks is None:
            return words[first]
        return fn.shuffle(self.word, self.lanes, words[first], words[second], picks)

    def alone(self, fn, x):
        """One vector, in order: every lane is compared with another, from which it differs in these
        bits.
        """
        for _, differ in networks.merges(1, self.lanes):
            partner = [lane ^ differ for lane in range(self.lanes)]
            y = fn.shuffle(self.word, self.lanes, x, "poison", partner)
            lower = constant("i1", [str(k < other).lower() for k, other in enumerate(partner)])
            x = self.chosen(fn, lower, self.least(fn, x, y), self.greatest(fn, x, y))
        return x

    # -- quicksort ---------------------------------------------------------------------------------

    def parts(self):
        """i64(from, low, high, n, pivot) parts n words: those up to the pivot go to `low`, the
        others to `high`; gives how many are up to it.

        `low` or `high` may be `from`: a vector is written as a whole, and what it has too much is
        overwritten, as there is room for all words that are still to come.
        """
        return [self.parting("part", up=True), self.parting("part", up=True, maps=True),
                self.parting("ends", up=False), self.parting("ends", up=False, maps=True)]

    def parting(self, stem, up, maps=False):
        """The functions part and part.maps, the same of elements that are not words yet; of ends
        and ends.maps the high words go to the end of n words at `high`, which may be `low`.

        What is no whole vector comes first: behind it there is always room for whole ones.
        """
        fn = self.function(stem + ".maps" * maps, "ptr %from, ptr %low, ptr %high, i64 %n, word "
                           "%pivot" + ", word %mask, word %top" * maps, "i64")
        fixed = self.splats(fn, "%mask", "%top") if maps else ()
        [pivot] = self.splats(fn, "%pivot")
        left = fn.rem("%n", self.lanes)
        x = fn.vector_load(self.word, self.lanes, "%from", self.first(fn, left))
        x = self.mapped(fn, x, *fixed) if maps else x
        begun = self.parted(fn, x, pivot, up, 0, 0 if up else "%n", left)
        with fn.loop(left, "%n", self.lanes, [("i64", end) for end in begun]) as loop:
            x = fn.vector_load(self.word, self.lanes, fn.gep(self.word, "%from", loop.index))
            x = self.mapped(fn, x, *fixed) if maps else x
            loop.next = self.parted(fn, x, pivot, up, *loop.values)
        return fn.ret(loop.values[0])

    def parted(self, fn, x, pivot, up, low, high, valid=None):
        """(how many words are low, where the high ones end, or begin) after a vector, of which
        `valid` words count, all if None.
        """
        above = fn.op(f"icmp ugt {self.vector} {x}, {pivot}")
        on = self.first(fn, self.lanes if valid is None else valid)
        if valid is not None:
            above = fn.op(f"and {self.flags} {above}, {on}")
        many = self.count_of(fn, above)
        few = fn.sub(self.lanes if valid is None else valid, many)
        ends = [fn.add(low, few), fn.add(high, many) if up else fn.sub(high, many)]
        if not up and not self.compresses:
            self.store_ordered(fn, x, above, low, high, few, valid)
            return ends
        below = fn.op(f"xor {self.flags} {above}, {on}")
        fn.vector_store(self.word, self.lanes, self.front(fn, x, below),
                        fn.gep(self.word, "%low", low),
                        None if valid is None else self.first(fn, few))
        fn.vector_store(self.word, self.lanes, self.front(fn, x, above),
                        fn.gep(self.word, "%high", high if up else ends[1]),
                        None if valid is None and up else self.first(fn, many))
        return ends

    def front(self, fn, x, mask):
        """A vector whose lanes that are on come first; those behind hold anything."""
        if self.compresses:
            return self.compressed(fn, x, mask)
        return self.ordered(fn, x, self.not_(fn, mask))

    def store_ordered(self, fn, x, above, low, high, few, valid):
        """The lanes that are on come last, and the whole vector is written at both ends: what is
        too much lies where words are still to come.
        """
        behind, count = above, self.lanes if valid is None else valid
        if valid is not None:
            behind = fn.op(f"or {self.flags} {above}, {self.not_(fn, self.first(fn, valid))}")
        x = self.ordered(fn, x, behind)
        at = fn.gep(self.word, "%low", low), fn.gep(self.word, "%high", fn.sub(high, count))
        on = (None, None)
        if valid is not None:
            lows, both = self.first(fn, few), self.first(fn, valid)
            on = lows, Mask(fn.op(f"xor {self.flags} {lows}, {both}"))
        for place, mask in zip(at, on):
            fn.vector_store(self.word, self.lanes, x, place, mask)

    def ordered(self, fn, x, behind):
        """A vector whose lanes that are on come behind the others."""
        bits = f"i{self.lanes}"
        outcome = fn.op(f"zext {bits} {fn.op(f'bitcast {self.flags} {behind} to {bits}')} to i64")
        order = fn.gep("i64", f"@order.{self.name}", outcome)
        picks = fn.op(f"zext <8 x i8> {fn.load('<8 x i8>', order, 8)} to <8 x i32>")
        parts = fn.op(f"bitcast {self.vector} {x} to <8 x i32>")
        picked = fn.call(PICK, ("<8 x i32>", parts), ("<8 x i32>", picks), result="<8 x i32>")
        return fn.op(f"bitcast <8 x i32> {picked} to {self.vector}")

    def orders(self):
        """The table of these orders: a byte for every 32 bits of a vector."""
        if self.compresses:
            return ""
        each = self.bits // 32
        rows = []
        for outcome in range(1 << self.lanes):
            lanes = sorted(range(self.lanes), key=lambda lane: outcome >> lane & 1)
            picks = [each * lane + part for lane in lanes for part in range(each)]
            rows.append(f"i64 {int.from_bytes(bytes(picks), 'little')}")
        return (f"@order.{self.name} = private unnamed_addr constant [{len(rows)} x i64] "
                f"[{', '.join(rows)}], align 64")

    def count_of(self, fn, mask):
        """How many lanes are on."""
        bits = f"i{self.lanes}"
        many = fn.op(f"bitcast {self.flags} {mask} to {bits}")
        many = fn.call(f"llvm.ctpop.{bits}", (bits, many), result=bits)
        return fn.op(f"zext {bits} {many} to i64")

    def not_(self, fn, mask):
        return fn.op(f"xor {self.flags} {mask}, splat (i1 true)")

    def first(self, fn, count):
        """The mask of so many lanes, by bits: fewer instructions than comparing."""
        if count == self.lanes:
            return "splat (i1 true)"
        long = fn.op(f"shl i64 1, {count}")
        bits = fn.op(f"trunc i64 {fn.sub(long, 1)} to i{self.lanes}")
        return Mask(fn.op(f"bitcast i{self.lanes} {bits} to {vector('i1', self.lanes)}"))

    def compressed(self, fn, x, mask):
        """The lanes of a vector that are on, next to each other; those behind hold anything."""
        return fn.call(f"llvm.experimental.vector.compress.{mangled(self.word, self.lanes)}",
                       (self.vector, x), (vector("i1", self.lanes), mask), (self.vector, "poison"),
                       result=self.vector)

    def quick(self):
        """void(from, target, room, counts, n, depth, last maps): sorts words at `from`, which is
        `target` or `room`, to `target`.
        """
        fn = self.function("quick", "ptr %from, ptr %target, ptr %room, ptr %counts, i64 %n, "
                                    "i64 %depth, word %last_mask, word %last_top")
        self.leaves(fn, "%from", 0, 0)
        with fn.if_(fn.compare("eq", "%depth", 0)):
            self.give_up(fn)
            self.leave(fn)
        depth, pivot = fn.sub("%depth", 1), self.pivot(fn, "%from", lambda x: x)
        low = self.part(fn, "%from", pivot)
        with fn.if_(fn.compare("eq", low, "%n")):        # the pivot is the greatest: out with it
            zero = fn.compare("eq", pivot, 0, self.word)
            before = fn.op(f"sub {self.word} {pivot}, 1")
            less = fn.select(zero, "i64", 0, self.part(fn, "%target", before))
            self.fill(fn, pivot, less)
            self.low(fn, less, depth)
            self.leave(fn)
        self.high(fn, low, depth)
        self.low(fn, low, depth)
        return fn.ret()

    def leaves(self, fn, source, mask, top):
        """Few words, or elements, are sorted by a network."""
        for count in COUNTS:
            with fn.if_(fn.compare("sle", "%n", count * self.lanes)):
                self.call(fn, f"leaf{count}", ("ptr", source), ("ptr", "%target"), ("i64", "%n"),
                          *self.words(mask, top, "%last_mask", "%last_top"))
                self.leave(fn)

    def part(self, fn, source, pivot):
        """The words at a place are parted: the low ones are at the target now, the high ones in the
        room; gives how many are low.
        """
        return self.call(fn, "part", ("ptr", source), ("ptr", "%target"), ("ptr", "%room"),
                         ("i64", "%n"), (self.word, pivot), result="i64")

    def high(self, fn, low, depth):
        """Sorts the words in the room, once there are so many low ones."""
        self.again(fn, "%room", fn.gep(self.word, "%target", low), fn.sub("%n", low), depth)

    def low(self, fn, low, depth):
        """Sorts the low words, after the high ones, as it needs their room."""
        self.again(fn, "%target", "%target", low, depth)

    def again(self, fn, source, target, count, depth):
        self.call(fn, "quick", *[("ptr", p) for p in (source, target, "%room", "%counts")],
                  ("i64", count), ("i64", depth), *self.words("%last_mask", "%last_top"))

    def pivot(self, fn, source, mapped):
        """The median of some words."""
        w, lanes = self.word, self.lanes
        step = fn.splat("i64", lanes, fn.div("%n", lanes))
        steps = fn.op(f"mul {vector('i64', lanes)} {step}, {iota('i64', lanes)}")
        places = fn.op(f"getelementptr {w}, ptr {source}, {vector('i64', lanes)} {steps}")
        x = fn.call(f"llvm.masked.gather.{mangled(w, lanes)}.v{lanes}p0",
                    (vector("ptr", lanes), places), ("i32", self.bits // 8),
                    (vector("i1", lanes), "splat (i1 true)"), (self.vector, "poison"),
                    result=self.vector)
        [x] = self.network(fn, [mapped(x)])
        return fn.op(f"extractelement {self.vector} {x}, i64 {lanes // 2 - 1}")

    def fill(self, fn, word, start):
        """The target from `start` on is this word's element."""
        mask, top, x = self.splats(fn, "%last_mask", "%last_top", word)
        x = self.unmapped(fn, x, mask, top)
        with fn.loop(start, "%n", self.lanes) as loop:
            fn.vector_store(self.word, self.lanes, x, fn.gep(self.word, "%target", loop.index),
                            fn.mask(self.lanes, fn.sub("%n", loop.index)))

    def give_up(self, fn):
        """The radix sort of the words at `from`."""
        size = fn.mul("%n", self.bits // 8)
        fn.call("llvm.memmove.p0.p0.i64", ("ptr", "%target"), ("ptr", "%from"), ("i64", size),
                ("i1", "false"))
        self.call(fn, "row", ("ptr", "%target"), ("ptr", "%target"), ("ptr", "%room"),
                  ("ptr", "%counts"), ("i64", "%n"), *self.words(0, 0, "%last_mask", "%last_top"))

    def row(self):
        """What @row of the radix sort does: elements at `source` are sorted to `target`, which may
        be the source, by way of `room`.
        """
        fn = self.function("quick.row", "ptr %source, ptr %target, ptr %room, ptr %counts, i64 %n, "
                           + MAPS)
        self.leaves(fn, "%source", "%mask", "%top")
        mask, top = self.splats(fn, "%mask", "%top")
        pivot = self.pivot(fn, "%source", lambda x: self.mapped(fn, x, mask, top))
        low = self.call(fn, "part.maps", ("ptr", "%source"), ("ptr", "%target"), ("ptr", "%room"),
                        ("i64", "%n"), *self.words(pivot, "%mask", "%top"), result="i64")
        zeros = fn.call("llvm.ctlz.i64", ("i64", "%n"), ("i1", "true"), result="i64")
        depth = fn.mul(fn.sub(64, zeros), DEPTH)
        with fn.if_(fn.compare("ne", low, "%n")):
            self.high(fn, low, depth)
        self.low(fn, low, depth)
        return fn.ret()

    def words(self, *names):
        return [(self.word, name) for name in names]

    # -- a vector that several threads sort --------------------------------------------------------

    def split(self):
        """void(from, to, other, n, first, sides, splitters, counts): words are parted into so many
        sides, from the `first` one on: by turns to `to` and `other`, two or eight sides to `to`.
        """
        fn = self.function("split", "ptr %from, ptr %to, ptr %other, i64 %n, i64 %first, "
                                    "i64 %sides, ptr %splitters, ptr %counts")
        with fn.if_(fn.compare("eq", "%sides", 1)):
            fn.store("i64", "%n", fn.gep("i64", "%counts", "%first"))
            self.leave(fn)
        half = fn.div("%sides", 2)
        middle = fn.add("%first", half)
        pivot = fn.load(self.word, fn.gep(self.word, "%splitters", fn.sub(middle, 1)))
        low = self.call(fn, "ends", ("ptr", "%from"), ("ptr", "%to"), ("ptr", "%to"),
                        ("i64", "%n"), (self.word, pivot), result="i64")
        own = "%splitters", "%counts"
        self.split_again(fn, "%to", "%other", 0, low, "%first", half, *own)
        self.split_again(fn, "%to", "%other", low, fn.sub("%n", low), middle, half, *own)
        return fn.ret()

    def split_again(self, fn, source, to, start, count, first, sides, splitters, counts):
        places = [("ptr", fn.gep(self.word, p, start)) for p in (source, to, source)]
        self.call(fn, "split", *places, ("i64", count), ("i64", first), ("i64", sides),
                  ("ptr", splitters), ("ptr", counts))

    def count(self):
        """void(job, part): the words of a part's elements, by sides, in %work; %counts has how many
        are of each side.
        """
        fn = self.function("count", "ptr %job, i64 %part", linkage="")
        source, target, work, counts, splitters, mask, top = self.read(
            fn, "source target work counts splitters mask top")
        start, count = self.share(fn)
        pivot = fn.load(self.word, fn.gep(self.word, splitters, self.sides // 2 - 1))
        source, target, work = (fn.gep(self.word, p, start) for p in (source, target, work))
        low = self.call(fn, "ends.maps", ("ptr", source), ("ptr", target), ("ptr", target),
                        ("i64", count), *self.words(pivot, mask, top), result="i64")
        half, counts = self.sides // 2, fn.gep("i64", counts, fn.mul("%part", self.sides))
        self.split_again(fn, target, work, 0, low, 0, half, splitters, counts)
        self.split_again(fn, target, work, low, fn.sub(count, low), half, half, splitters, counts)
        return fn.ret()

    def move(self):
        """void(job, part): they go to their sides in %target, where %counts says; `given` says how
        many they are.
        """
        fn = self.function("move", "ptr %job, i64 %part", linkage="")
        target, work, counts, given = self.read(fn, "target work counts given")
        start, _ = self.share(fn)
        row = fn.mul("%part", self.sides)
        with fn.loop(0, self.sides, 1, [("i64", start)]) as loop:
            at = fn.add(row, loop.index)
            count, place = (fn.load("i64", fn.gep("i64", p, at)) for p in (given, counts))
            fn.call("llvm.memcpy.p0.p0.i64", ("ptr", fn.gep(self.word, target, place)),
                    ("ptr", fn.gep(self.word, work, *loop.values)),
                    ("i64", fn.mul(count, self.bits // 8)), ("i1", "false"))
            loop.next = [fn.add(*loop.values, count)]
        return fn.ret()

    def read(self, fn, names):
        """The fields of the job; masks are words."""
        types = {"n": "i64", "parts": "i64", "mask": self.word, "top": self.word}
        return [fn.load(types.get(name, "ptr"), fn.gep("i64", "%job", self.fields.index(name)))
                for name in names.split()]

    def share(self, fn):
        """(where the part's share of the vector starts, how many elements it has)."""
        n, parts = self.read(fn, "n parts")
        start = fn.div(fn.mul(n, "%part"), parts)
        return start, fn.sub(fn.div(fn.mul(n, fn.add("%part", 1)), parts), start)
