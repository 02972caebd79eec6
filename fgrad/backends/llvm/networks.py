"""Networks that sort vectors: which are compared, and which lanes are brought together before.

Elements lie across the vectors first: a column, a lane of all vectors, is sorted by comparing whole
vectors (Batcher's merge exchange: Knuth, The Art of Computer Programming, 5.2.2, algorithm M).
Columns are merged two by two (Batcher's bitonic merges, 1968), by steps that compare elements whose
numbers differ in a bit.  Where that bit tells vectors apart, whole vectors are compared; where it
tells lanes apart, it is exchanged, by a shuffle of two vectors for each, for a bit of the vectors
that is needed later than the others.  So each comparison is made once, and not for both its lanes.

There may be three times as many vectors as a power of two.  Then the bits are those of an element's
third part, and the last step of a merge sorts three whole vectors.  Relies on nothing; `quick_text`
writes the networks.

    stages(16, 16)             # what sorts 256 elements in 16 vectors
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class Stage(NamedTuple):
    """Vectors are made of the lanes of others; then, of two, the first gets the lesser one of every
    lane and the second the greater.

    taken: for each vector (first, second, picks), as of a shuffle; without picks it is the first
    pairs: the numbers of the two vectors of each comparison
    """
    taken: tuple
    pairs: tuple


@lru_cache
def stages(count, lanes):
    """Those that sort so many vectors: a power of two, or three times one, and no odd number."""
    held = Held(count, lanes)
    made = [held.stage(held.vectors, pairs) for pairs in exchanges(count)]
    two = tuple((v, v + 1) for v in range(0, count, 2))
    steps = list(merges(count // held.parts, count * lanes // held.parts))
    for k, (bit, differ) in enumerate(steps):
        lower = held.without(bit, [later for later, _ in steps[k + 1:]])
        made.append(held.stage(held.beside(lower, differ), two))
        if held.parts > 1 and differ == 1:
            made += [held.stage(held.vectors, pairs) for pairs in held.thirds()]
    while held.vectors != held.final:
        made.append(held.stage(held.nearer_order(), ()))
    return tuple(made)


def exchanges(count):
    """The pairs of each step that sorts a column of so many elements."""
    least = top = 1 << (count - 1).bit_length() >> 1
    while least:
        apart, rest, p = least, 0, top
        while True:
            yield tuple((i, i + apart) for i in range(count - apart) if i & least == rest)
            if p == least:
                break
            apart, rest, p = p - least, least, p // 2
        least //= 2


def merges(width, size):
    """The steps that merge columns of this width two by two, until one is left: of each (the
    highest bit in which two elements that are compared differ, all of them).
    """
    while width < size:
        yield width.bit_length() - 1, 2 * width - 1
        apart = width // 2
        while apart:
            yield apart.bit_length() - 1, apart
            apart //= 2
        width *= 2


class Held:
    """The elements that vectors hold, by their lanes.

    parts: into how many equal ones the elements of a column are numbered: element e is in the part
           e % parts, and its bits are those of e // parts
    apart: the bits in which the elements of each vector agree; they are of one part, too
    final: the vectors in order, and in which bits they agree
    """

    def __init__(self, count, lanes):
        self.lanes, self.parts = lanes, 3 if count % 3 == 0 else 1
        self.vectors = [[lane * count + v for lane in range(lanes)] for v in range(count)]
        self.final = [[v * lanes + lane for lane in range(lanes)] for v in range(count)]
        bits = (count // self.parts).bit_length() - 1
        size = bits + lanes.bit_length() - 1
        self.apart, self.final_apart = set(range(bits)), set(range(size - bits, size))

    def has(self, e, bit):
        return e // self.parts >> bit & 1

    def flipped(self, e, bits):
        """The element that differs in these bits."""
        return (e // self.parts ^ bits) * self.parts + e % self.parts

    def beside(self, vectors, differ):
        """Each with the vector of those that its elements are compared with, which differ in these
        bits: in all where a merge begins, from the ends of two columns, and then in the part, too.
        """
        ends = bool(differ & differ - 1)
        return [x for lower in vectors
                for x in (lower, [self.flipped(e, differ) + ends * self.opposite(e)
                                  for e in lower])]

    def opposite(self, e):
        """From the part of an element to the one that lies as far from the other end."""
        return self.parts - 1 - 2 * (e % self.parts)

    def without(self, bit, later):
        """Vectors of all elements that lack a bit; given the bits that are compared later on."""
        if bit not in self.apart:
            later = [*later, *self.final_apart]
            last = max(self.apart, key=lambda b: later.index(b) if b in later else len(later))
            return self.exchanged(bit, last)
        return [x for x in self.vectors if not self.has(x[0], bit)]

    def exchanged(self, bit, out):
        """The same, once their lanes lack the bit `out` no more."""
        both = 1 << bit | 1 << out
        lower = [[self.flipped(e, both) if self.has(e, bit) else e for e in x]
                 for x in self.without(out, ())]
        self.apart = self.apart - {out} | {bit}
        return lower

    def thirds(self):
        """The pairs of each step that sorts the three parts."""
        found = {}
        for v, x in enumerate(self.vectors):
            found.setdefault(tuple(e // 3 for e in x), {})[x[0] % 3] = v
        for i, j in ((0, 2), (0, 1), (1, 2)):
            yield tuple((three[i], three[j]) for three in found.values())

    def nearer_order(self):
        """Vectors that are in order, or nearer to it."""
        missing = self.final_apart - self.apart
        if len(missing) > (self.parts == 1):
            bit = max(missing)
            return self.beside(self.exchanged(bit, min(self.apart - self.final_apart)), 1 << bit)
        if self.parts == 1 or len(self.vectors) > len(self.final):
            return self.final
        first = [[e if e % 3 < 2 else None for e in x] for x in self.final]
        return first + [x for x in self.vectors if x[0] % 3 == 2]

    def stage(self, vectors, pairs):
        """The stage that makes these vectors, each of two at most; None is any lane."""
        where = {e: (v, lane) for v, x in enumerate(self.vectors) for lane, e in enumerate(x)}
        taken = tuple(self.picked([where.get(e) for e in x]) for x in vectors)
        self.vectors = vectors
        return Stage(taken, pairs)

    def picked(self, places):
        """(first, second, picks) of the lanes at these places, (vector, lane)."""
        used = sorted({v for v, _ in filter(None, places)})
        picks = [0 if at is None else at[1] + self.lanes * used.index(at[0]) for at in places]
        return used[0], used[-1], picks if picks != list(range(self.lanes)) else None
