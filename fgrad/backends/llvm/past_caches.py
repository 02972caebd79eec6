"""Which results a kernel writes past the caches, and which stores of a loop do it.

A result that no cache holds in the end would be read from memory line by line before it is written,
and would take the place of what is still needed.  Only whole lines go past the caches, so a loop's
vectors have to begin at lines: of rows as long as whole lines they do, in others only from the
first line on.  Relies on `loop`; `emit` writes the loops.

    large = not_held(kernel, cache)    # buffers
    by_lines(loop, large)              # those whose vectors begin at lines, if they do
    ragged(loop, large)                # the stores of a loop over rows that begin anywhere
"""

from __future__ import annotations

from ...aligned import LINE
from ...loop import Store, accumulators
from ...passes.short_loops import whole_steps
from ...passes.turns import uses_of
from ...passes.work import moved
from .fetches import runs_along

HELD_OF_CACHE = 3 / 4      # the last cache's part that a kernel has for what it moves
LARGE_OF_CACHE = 1 / 8     # outputs as large are worth a way of their own
LONG = 1 << 12             # bytes of rows that begin anywhere, from which it is worth one


def not_held(kernel, cache):
    """The large outputs that a kernel does not read, if a cache of so many bytes holds little of
    them in the end: processors share it, and what the kernel has moved in between goes through it.
    """
    read = {b for b, _ in kernel.aliases} | {b for b, _, writes in uses_of(kernel) if not writes}
    if sum(moved(kernel).values()) < HELD_OF_CACHE * cache:
        return frozenset()
    return {b for b in kernel.outputs if b.type.nbytes >= LARGE_OF_CACHE * cache and b not in read}


def by_lines(loop, large):
    """The large buffers of which each vector that a loop writes begins at a line, if they do."""
    stores, found = in_order(loop, large)
    others = {t.buffer for t in stores if t not in found or not is_by_lines(t, loop)}
    return dict.fromkeys(t.buffer for t in found if t.buffer not in others)


def ragged(loop, large):
    """The stores of a loop over long rows that begin anywhere, if all of them write large buffers,
    a row of each: so it does no harm to write an element twice.
    """
    stores, found = in_order(loop, large)
    if not found or found != stores or all(is_by_lines(t, loop) for t in stores):
        return []
    sizes = {t.buffer.type.dtype.itemsize for t in stores}
    alone = len(sizes) == 1 and len({t.buffer for t in stores}) == len(stores)
    return stores if alone and loop.var.extent * min(sizes) >= LONG else []


def lines_of(loop, buffers):
    """Buffer → the bytes of a line, or of a vector of the loop, where that is shorter."""
    return {b: min(LINE, loop.width * b.type.dtype.itemsize) for b in buffers}


def within_lines(loop, stores):
    """How many elements behind the first vector lie in whole lines, at least, of rows that begin
    anywhere: all but those of the last vector and of less than a line.
    """
    line = LINE // stores[0].buffer.type.dtype.itemsize
    return loop.var.extent - 2 * loop.width - min(line, loop.width)


def in_order(loop, large):
    """(the stores of a vector loop, those that write large buffers element after element), none
    where something is carried.
    """
    stores = [t for t in loop.body if isinstance(t, Store)]
    if not large or accumulators(loop) or whole_steps(loop.body, loop.var):
        return stores, []
    return stores, [t for t in stores if t.buffer in large and not t.how and not t.when
                    and not t.index.nodes and runs_along(t.index, loop.var)]


def is_by_lines(store, loop):
    """Does each vector of a store begin at a line, if its buffer does?"""
    others = [c for a, c in store.index.terms if a is not loop.var]
    return all(n % loop.width == 0 for n in (store.index.const, *others))
