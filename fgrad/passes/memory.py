"""Memory: where every buffer of a Plan lives.

Temporaries share one arena.  A temporary lives from the step that first writes it to the last that
reads it, kernels that take turns being one step; offsets are found first-fit among those alive,
in order of birth.  Of what only kernels that take turns use, there is one share for each of their
groups.  A result may take the storage of an argument that dies in the same kernel, if the kernel
reads each of its elements before it writes the one in its place; donated inputs are taken over
likewise.
"""

from __future__ import annotations

import bisect
import heapq
import math

from .. import scalar, text
from ..aligned import LINE
from ..loop import (Call, Contract, For, Kernel, Loop, Store, is_idle, of_columns, turns_of,
                    whole_turns)


def aligned(n):
    """Bytes, rounded up to a whole number of cache lines."""
    return -(-n // LINE) * LINE


def plan_memory(plan, donate=(), partner=None):
    """The Plan with offsets, arena size, aliases and donations filled in.  Changes it in place.

    donate: positions of inputs whose storage may be taken over.  partner: donated input → the only
    output that may live in its storage; without it any may.
    """
    births, deaths = lifetimes(plan)
    blocks, spans = {}, whole_turns(plan.steps)
    root = in_place(plan, births, deaths, spans, donate, partner)
    for b in births:
        if b.kind == "temporary":
            r, birth, death = root.get(b, b), spans[births[b]][0], spans[deaths[b]][1]
            first, last = blocks.get(r, (birth, death))
            blocks[r] = min(first, birth), max(last, death)
    owned = {r: span for r, span in blocks.items() if r.kind == "temporary"}
    plan.shares = shares(plan, births, deaths, spans, root, owned)
    place, plan.arena = first_fit(owned, {b: plan.room(b, owned[b][0]) for b in owned})
    plan.offsets = {b: place[root.get(b, b)] for b in births
                    if b.kind == "temporary" and root.get(b, b) in place}
    return plan


def lifetimes(plan):
    """Per buffer the first step that writes it, and the last that uses it."""
    births, deaths = {}, {}
    for k, step in enumerate(plan.steps):
        for b in step.outputs:
            births.setdefault(b, k)
            deaths[b] = k
        for b in step.params:
            deaths[b] = k
    return births, deaths


def shares(plan, births, deaths, spans, root, owned):
    """Buffer → bytes of a share, of temporaries that nobody needs but kernels which take turns.

    owned: those with a place of their own → (first step, last step).  spans: see `whole_turns`.
    """
    alike, found = {}, {}
    for b in births:
        if root.get(b, b) in owned:
            alike.setdefault(root.get(b, b), []).append(b)
    for r, buffers in alike.items():
        turns = turns_of(plan.steps[owned[r][0]])
        if turns is not None and spans[owned[r][0]] == owned[r]:
            share = r.type.nbytes // turns.count
            if share % LINE == 0 and all(births[b] < deaths[b] for b in buffers):
                found.update(dict.fromkeys(buffers, share))
    return found


def first_fit(spans, sizes):
    """(buffer → offset, bytes in all) for {buffer: (first step, last step)} and {buffer: bytes}."""
    place, total = {}, 0
    holes, alive = [(0, math.inf)], []              # sorted (offset, end); heap of (last step, …)
    for b, (first, last) in sorted(spans.items(), key=lambda t: t[1][0]):
        while alive and alive[0][0] < first:
            _, at, end = heapq.heappop(alive)
            release(holes, at, end)
        size = aligned(sizes[b])
        k, (at, end) = next((k, h) for k, h in enumerate(holes) if h[1] - h[0] >= size)
        holes[k:k + 1] = [(at + size, end)] if at + size < end else []
        heapq.heappush(alive, (last, at, at + size))
        place[b] = at
        total = max(total, at + size)
    return place, total


def release(holes, at, end):
    """Adds a hole, which becomes one with those that it touches."""
    k = bisect.bisect(holes, (at,))
    if k < len(holes) and holes[k][0] == end:
        end = holes.pop(k)[1]
    if k and holes[k - 1][1] == at:
        holes[k - 1] = holes[k - 1][0], end
    elif at < end:
        holes.insert(k, (at, end))


# ---------------------------------------------------------------------------- in place

def in_place(plan, births, deaths, spans, donate, partner):
    """Buffer → the buffer whose storage it takes.  Fills in kernel aliases and plan.donated."""
    given = {plan.inputs[k]: None for k in donate}
    protected = set(plan.outputs)
    root, taken = {}, set()
    for k, step in enumerate(plan.steps):
        if isinstance(step, Call):
            continue
        least = -1 if turns_of(step) is None else spans[k][0]      # before, a share may read others
        candidates = [b for b in step.params if deaths[b] == k and b not in protected
                      and (b.kind == "temporary" or b in given) and b not in taken
                      and births.get(b, -1) >= least]
        for out in step.outputs:
            if births[out] != k or not candidates:
                continue
            match = next((b for b in candidates if FITS[type(step)](out, b, step, root)
                          and suits(out, root.get(b, b), partner)), None)
            if match is not None:
                candidates.remove(match)
                taken.add(match)
                step.aliases.append((out, match))
                if is_idle(step):
                    step.note = "in place: nothing to copy"
                take(plan, out, match, root)
    donate_rest(plan, births, deaths, spans, [b for b in given if b not in taken], partner)
    return root


def fits(out, b, kernel, root):
    """May `out` take the storage of `b`, which dies in this kernel?"""
    if out.type != b.type or out.type.size == 0:
        return False
    if out.kind == "output" and root.get(b, b).kind == "temporary":
        return False                                # results do not live in the arena
    return elementwise(kernel.body, out, b)


def continues(out, b, loop, root):
    """May a loop begin and end a carry in one place: is b the start of `out`, and nothing else?"""
    if out not in loop.ends or out.type.size == 0:
        return False
    if out.kind == "output" and root.get(b, b).kind == "temporary":
        return False
    start = loop.starts[loop.ends.index(out)]
    others = [loop.index, *loop.consts, *loop.xs, *loop.starts]
    return b is start and sum(x is b for x in others) == 1


FITS = {Kernel: fits, Loop: continues}


def suits(out, origin, partner):
    """May a result live in the storage of a donated input?"""
    return partner is None or out.kind != "output" or partner.get(origin) is out


def take(plan, out, b, root):
    origin = root.get(b, b)
    root[out] = origin
    if out.kind == "output" and origin.kind == "input":
        plan.donated[out] = origin


def donate_rest(plan, births, deaths, spans, given, partner):
    """Donated inputs that die before a result of their size is born give it their storage."""
    for out in dict.fromkeys(plan.outputs):
        if out.kind != "output" or out in plan.donated or out not in births:
            continue
        for b in given:
            if b.type == out.type and b not in plan.outputs and deaths.get(
                    b, -1) < spans[births[out]][0] and suits(out, b, partner):
                plan.donated[out] = b
                given.remove(b)
                break


def elementwise(body, out, b):
    """Is every read of b at the index of the store to out, before it, in the same loop body?

    And is it stored once: what is in front of a loop that is cut into parts runs for each of them.
    """
    before = [s for s in body if not is_cut(s)]
    if len(before) < len(body) and any(s.buffer is out for s in stores_of(before)):
        return False
    homes, stores, late = set(), [], False
    stack = [body]
    while stack:
        current = stack.pop()
        for s in current:
            match s:
                case For():
                    stack.append(s.body)
                    continue
                case Contract():
                    behind = [t for t in of_columns(s, s.of_column) if isinstance(t, Store)]
                    if reads(s.a, b) or reads(s.b, b) or any(t.buffer is out for t in behind):
                        return False
                    stack.append(s.body)
                    continue
                case Store() if s.buffer is out:
                    if s.how or s.when:
                        return False
                    stores.append(s)
                    homes.add(id(current))
                    late = late or reads_after(current, s, b)
            if hasattr(s, "expr") and reads(s.expr, b):
                homes.add(id(current))
    if len(stores) != 1 or len(homes) != 1 or late:
        return False
    at = stores[0].index
    return all(x is at for x in loaded_at(body, b))


def is_cut(s):
    """May a statement be run in parts?"""
    return isinstance(s, Contract) or isinstance(s, For) and s.kind == "parallel"


def stores_of(body):
    """The stores among some statements, those in loops too."""
    for s in body:
        if isinstance(s, Store):
            yield s
        elif isinstance(s, (For, Contract)):
            yield from stores_of(s.body)


def reads(expr, b):
    return any(n.op == "load" and n.data[0] is b for n in scalar.walk(expr))


def reads_after(body, store, b):
    after = body[body.index(store) + 1:]
    return any(hasattr(s, "expr") and reads(s.expr, b) for s in after)


def loaded_at(body, b):
    """The Ixs at which b is loaded anywhere in some statements."""
    stack = [body]
    while stack:
        for s in stack.pop():
            if isinstance(s, (For, Contract)):
                stack.append(s.body)
            elif hasattr(s, "expr"):
                yield from (n.data[1] for n in scalar.walk(s.expr)
                            if n.op == "load" and n.data[0] is b)


def memory_text(plan):
    """Where every buffer of a Plan lives, and what it is: the table that `show` prints."""
    rows = [("buffer", "type", "bytes", "place")]
    taken = {out: b for step in plan.steps for out, b in getattr(step, "aliases", ())}
    for b in dict.fromkeys(b for step in plan.steps for b in (*step.params, *step.outputs)):
        if not hasattr(b, "kind"):
            continue
        place = f"arena {plan.offsets[b]}" if b in plan.offsets else b.kind
        if b in plan.shares:
            place += ", a share at a time"
        if b in plan.donated or b in taken:
            place += f", in place of {(plan.donated.get(b) or taken[b]).name}"
        rows.append((b.name, str(b.type), str(b.type.nbytes), place))
    return "\n".join([*text.columns(rows, gap="  "), f"arena: {plan.arena} bytes"])
