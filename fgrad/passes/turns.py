"""Turns: neighbouring kernels run share by share, so that each finds in the cache what the one
before it has left.

    scores of all heads              scores of head 0, their softmax, its product with v
    softmax of all scores      →     scores of head 1, …
    its product with v               …

Every kernel is cut along its outermost axis into as many shares.  They take turns where a share
uses, of what another of these kernels writes, only the part that the same share writes: a stretch
of the array, as the order of its elements is that of the shares.  Worth it for arrays that the
cache does not hold, and for shares that it holds.  Relies on the loop IR; memory keeps what the
kernels use apart while any of them runs, and backends run them.
"""

from __future__ import annotations

from math import prod

from .. import index, scalar
from ..loop import Contract, For, Kernel, Store, Turns
from ..records import frozen, replace

MOST = 16                  # kernels that take turns
FINEST = 1024              # shares
GROUPS = 4                 # times as many groups of shares as threads, so that threads balance


def in_turns(steps, target):
    """The steps, in which kernels that take turns say so."""
    if not target.cache:
        return steps
    out, k = [], 0
    while k < len(steps):
        found = longest(steps[k:k + MOST], target)
        out += found.kernels() if found else steps[k:k + 1]
        k += len(found.sliced) if found else 1
    return out


def longest(steps, target):
    """The Chain of the most kernels from the first of some steps on that is worth it, or None."""
    best, chain = None, Chain(target, (), ())
    for step in steps:
        sliced = isinstance(step, Kernel) and step.turns is None and slice_of(step, target)
        chain = sliced and chain.with_(sliced)
        if not chain:
            break
        if len(chain.sliced) > 1:
            best = chain
    return best


@frozen
class Sliced:
    """A kernel that can be cut along `variables`, outermost first, into shares of whole blocks.

    uses: (buffer, index, is it written) of all it reads and writes.
    """
    kernel: Kernel
    variables: tuple
    block: int
    uses: tuple

    @property
    def extent(self):
        return prod(v.extent for v in self.variables)

    def cuts(self, count):
        """Can it be cut into so many shares?"""
        return self.extent % count == 0 and self.extent // count % self.block == 0

    def is_own(self, x, size, count):
        """Does share k of so many use, by an index, only stretch k of so many of a buffer?"""
        leading = next(n for n in range(1, len(self.variables) + 1)
                       if prod(v.extent for v in self.variables[:n]) % count == 0)
        *outer, last = self.variables[:leading]
        inner, each = index.stride(x, last), last.extent
        for v in reversed(outer):
            if index.stride(x, v) != inner * each:
                return False
            each *= v.extent
        each //= count
        low = high = x.const
        for a, c in x.terms:
            if a not in self.variables[:leading]:          # of a computed place only its bounds
                low, high = low + min(c * a.lo, c * a.hi), high + max(c * a.lo, c * a.hi)
        return (size % count == 0 and inner * each == size // count
                and low >= 0 and high + inner * (each - 1) < size // count)


def slice_of(kernel, target):
    """The Sliced of a kernel of one loop, or of products, that the cache cannot hold; else None."""
    buffers = {*kernel.params, *kernel.outputs}
    if len(kernel.body) != 1 or sum(b.type.nbytes for b in buffers) < target.cache * target.threads:
        return None
    match kernel.body[0]:
        case For(kind="parallel") as s:
            variables, block = (s.var,), s.block
        case Contract() as s if s.batch and not s.of_column and s.rank == 0:
            variables, block = s.batch, 1
        case _:
            return None
    return Sliced(kernel, variables, block, tuple(uses_of(kernel)))


def uses_of(kernel):
    """(buffer, index, is it written) of all that a kernel reads and writes."""
    stores, nodes = contents(kernel)
    for s in stores:
        yield s.buffer, s.index, True
        if s.how:
            yield s.buffer, s.index, False
    for n in nodes:
        if n.op == "load":
            yield *n.data, False


def contents(kernel):
    """(the Store statements, the scalar nodes) of a kernel."""
    stores, nodes, stack = [], {}, list(kernel.body)
    while stack:
        s = stack.pop()
        match s:
            case For():
                stack += s.body
            case Contract():
                stack += s.body
                scalar.walk(s.a, nodes)
                scalar.walk(s.b, nodes)
            case Store():
                stores.append(s)
                for n in (s.expr, *s.index.nodes, *[n for x, _, _ in s.when for n in x.nodes]):
                    scalar.walk(n, nodes)
            case _ if hasattr(s, "expr"):
                scalar.walk(s.expr, nodes)
    return stores, nodes


@frozen
class Chain:
    """Kernels that can take turns, by each of `counts` shares."""
    target: object
    sliced: tuple
    counts: tuple

    def with_(self, other):
        """The chain with one more kernel, which uses what the others use, or None."""
        sliced = (*self.sliced, other)
        if not self.sliced:
            counts = tuple(shares(other.extent, self.target.threads))
        elif any(b in self.buffers() for b, *_ in other.uses):
            counts = self.counts
        else:
            return None
        made = Chain(self.target, sliced, counts)
        kept = tuple(n for n in counts if other.cuts(n) and made.apart(n) and made.fits(n))
        return kept and replace(made, counts=kept)

    def buffers(self):
        """Buffer → which of the kernels use it, and whether any writes it."""
        found = {}
        for k, one in enumerate(self.sliced):
            for b, _, writes in one.uses:
                users, written = found.get(b, (frozenset(), False))
                found[b] = users | {k}, written or writes
        return found

    def apart(self, count):
        """Do shares that run at the same time, or before each other, leave each other alone?"""
        found = self.buffers()
        shared = {b for b, (users, written) in found.items() if written and len(users) > 1}
        return all(one.is_own(x, b.type.size, count)
                   for one in self.sliced for b, x, _ in one.uses if b in shared)

    def fits(self, count):
        """Does the cache hold what one share of all kernels uses?"""
        moving = {b for one in self.sliced for b, x, _ in one.uses
                  if any(x.free & v.bit for v in one.variables)}
        return sum(b.type.nbytes // (count if b in moving else 1)
                   for b in self.buffers()) <= self.target.cache // 2

    def kernels(self):
        """The kernels, which take turns by the fewest shares."""
        count, threads = min(self.counts), self.target.threads
        groups = max(n for n in range(1, GROUPS * threads + 1)
                     if n % threads == 0 and count % n == 0) if threads > 1 else 1
        turns = Turns(count, groups, tuple(one.kernel.name for one in self.sliced))
        return [replace(one.kernel, turns=turns) for one in self.sliced]


def shares(extent, threads):
    """Into how many shares an axis may be cut, each thread the same number of them."""
    return [n for n in range(2, min(extent, FINEST) + 1) if extent % n == 0 and n % threads == 0]
