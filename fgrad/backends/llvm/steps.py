"""A Plan's steps as words for the native runner: slots for buffers, and instructions.

A slot of the running call's table holds a pointer, or the count of a loop.  Kernels read their
arguments from slots, so a loop only moves pointers: a slice of xs is a slot that advances, carries
change places by swapping slots.  Inner inputs for consts are the outer slots themselves.

    scan      copies of the carry, first slices, count
              → body → next slices, swaps, again unless counted down
    while     copies → cond → unless flag: out → body → swaps → back

Relies on `runner.py` for the instructions; `module.py` relies on it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

from ...loop import Loop, Turns
from .runner import Op

MOVING = 3                 # arguments that are set anew in each step rather than all of them


class Workspace(NamedTuple):
    """Memory that a product works in, behind the arena, and so many bytes further."""
    place: int


class Layout:
    """The slot of every buffer, inner Plans' included.

    external: the Buffers that a call gives pointers of, None for one of no Buffer.  places: offsets
    in the arena of the slots behind; those that instructions fill have 0.  shares: see Plan.
    whole: Loops that are one function, which knows what is in them.
    """

    def __init__(self, plan, external, whole=()):
        self.number, self.whole = {b: k for k, b in enumerate(external) if b is not None}, whole
        self.first, self.places, self.shares, self.arena = len(external), [], {}, plan.arena
        self.inside = {}                         # call → where the arena of its Plan begins
        self.add(plan, 0)

    def slot(self, place=0):
        """A slot of its own."""
        self.places.append(place)
        return self.first + len(self.places) - 1

    def of(self, b):
        """The slot of a buffer; one without elements is written and read by nobody: any will do."""
        known = b in self.number
        if isinstance(b, Workspace) and not known:
            known = self.number[b] = self.slot(self.arena + b.place)
        assert known or b.type.size == 0, f"{b.name} has no memory"
        return self.number[b] if known else 0

    def add(self, plan, base):
        """Slots for the temporaries of a Plan, whose arena begins at `base`, and of its loops."""
        self.shares.update(plan.shares)
        for b, offset in plan.offsets.items():
            self.number[b] = self.slot(base + offset)
        for b, origin in plan.origins.items():
            if b not in plan.offsets:
                self.number[b] = self.of(origin)
        for step in plan.steps:
            if isinstance(step, Loop) and step not in self.whole:
                inside = base + plan.offsets[step.block] if step.block is not None else 0
                if step.kind == "call":
                    self.inside[step] = inside
                    continue
                self.bind(step)
                for inner in step.plans:
                    self.add(inner, inside)

    def enter(self, call):
        """Slots for what is called, from here on: those of its Plan's buffers in an earlier call
        are no longer known.
        """
        self.bind(call)
        self.add(call.plans[0], self.inside[call])

    def bind(self, loop):
        """Slots for the inputs and outputs of a loop's inner Plans."""
        at, number = len(loop.consts), self.number
        for plan in loop.plans:
            number.update((b, self.of(a)) for b, a in zip(plan.inputs, loop.consts))
        if loop.kind in ("cond", "call"):
            for plan in loop.plans:
                number.update((b, self.of(y)) for b, y in zip(plan.outputs, loop.ys))
            return
        body, n = loop.plans[-1], len(loop.ends)
        for carry, out, start, end in zip(body.inputs[at:], body.outputs, loop.starts, loop.ends):
            if carry is out:
                number[carry] = self.of(start)
            elif body.donated.get(out) is carry:
                number[carry] = number[out] = self.of(end)
            else:
                number[carry], number[out] = self.slot(), self.slot()
        for b, x in zip(body.inputs[at + n:], loop.xs):
            number[b] = self.of(loop.counter) if x is None else self.slot()
        number.update((b, self.slot()) for b in body.outputs[n:])
        if loop.kind == "while":
            test = loop.plans[0]
            number[test.outputs[0]] = self.of(loop.flag)
            number.update((b, number[c]) for b, c in zip(test.inputs[at:], body.inputs[at:]))


class Open(NamedTuple):
    """A loop that is being written: the slots it moves, and instructions to go before it."""
    moving: set
    before: list


def swapped(swaps):
    """The slots of some SWAPs."""
    return {s for k, s in enumerate(swaps) if k % 3}


class Words:
    """Instructions for the steps of a Module.

    address(step): of the function of a kernel's name or of a loop.Call.
    """

    def __init__(self, layout, address):
        self.layout, self.of, self.address = layout, layout.of, address
        self.most = 1                            # arguments of a call
        self.open = []                           # the loops that are being written, innermost last

    def steps(self, steps):
        """The words of some steps: see Module.  The parts of a function in Python are PYTHON."""
        out = []
        for first, *rest in steps:
            if first in self.layout.whole:
                out += self.whole(first, *rest)
            elif isinstance(first, Loop):
                out += getattr(self, "cond" if first.kind == "cond" else first.kind + "_")(
                    first, *rest)
            elif isinstance(first, Turns):
                out += self.turns(first, *rest)
            else:
                out += self.call(first, *rest)
        return out

    def turns(self, turns, steps):
        """Functions that take turns, as a list for the runner's @turns."""
        most = max(len(buffers) for _, _, buffers in steps)
        out, slots = [turns.count // turns.groups, len(steps), most], []
        for function, _, buffers in steps:
            out += [self.address(function), len(buffers)]
            for b in buffers:
                slots.append(len(out))
                out += [self.of(b), self.layout.shares.get(b, 0)]
        self.most = max(self.most, len(out))
        return [Op.TURNS, turns.groups, len(out), *out, len(slots), *slots]

    def call(self, function, parts, buffers):
        """A call; in a loop that moves few of a kernel's arguments, these are put together once."""
        slots, address = [self.of(b) for b in buffers], self.address(function)
        moving = [s for s in slots if self.open and s in self.open[-1].moving]
        if not self.open or parts != 1 or len(moving) > MOVING:
            self.most = max(self.most, len(slots))
            return [Op.CALL, address, parts, len(slots), *slots]
        first, out = self.in_a_row(slots)
        return [*out, Op.ENTER, address, first]

    def in_a_row(self, slots):
        """(the first of slots of their own in a row, words that point them to what these do).

        What the loop around does not move is put there once, in front of it.
        """
        own = [self.layout.slot() for _ in slots]
        out = []
        for mine, s in zip(own, slots):
            once = self.open and s not in self.open[-1].moving
            (self.open[-1].before if once else out).extend([Op.SET, mine, s, 0])
        return own[0] if own else 0, out

    def whole(self, loop, function, buffers):
        """A loop that is one function, whose carries are where it ends."""
        first, words = self.in_a_row([self.of(b) for b in buffers])
        return [*self.begun(loop), *words, Op.LOOP, self.address(function), first]

    @contextmanager
    def inside(self, moving):
        """While the steps of a loop are written, which moves these slots; gives what comes before
        it.
        """
        self.open.append(Open(moving, []))
        yield self.open[-1].before
        self.open.pop()

    def copy(self, to, b):
        if not b.type.nbytes or self.of(to) == self.of(b):
            return []
        return [Op.COPY, self.of(to), self.of(b), b.type.nbytes]

    def begun(self, loop):
        """The carries of a loop, copied to where it ends."""
        return [w for start, end in zip(loop.starts, loop.ends) for w in self.copy(end, start)]

    def scan_(self, loop, inner):
        """A loop that is counted down."""
        before, after, swaps = self.carries(loop, loop.length % 2 == 1)
        if not loop.length:
            return self.begun(loop)
        with self.inside({*[s for s, _ in self.slices(loop)], *swapped(swaps)}) as once:
            body, step = self.steps(inner[0]), -1 if loop.reverse else 1
        first = loop.length - 1 if loop.reverse else 0
        for slot, b in self.slices(loop):
            size = b.type.nbytes // loop.length
            before += [Op.SET, slot, self.of(b), first * size]
            body += [Op.SET, slot, slot, step * size]
        if loop.counter is not None:
            before += [Op.WRITE, self.of(loop.counter), first]
            body += [Op.BUMP, self.of(loop.counter), step]
        body += swaps
        count = self.layout.slot()
        return [*before, *once, Op.PUT, count, loop.length, *body,
                Op.AGAIN, count, -(len(body) + 3), *after]

    def slices(self, loop):
        """(slot of the slice, stacked buffer) of xs and ys with elements."""
        at, n = len(loop.consts) + len(loop.starts), len(loop.ends)
        body = loop.plans[0]
        pairs = [*zip(body.inputs[at:], loop.xs), *zip(body.outputs[n:], loop.ys)]
        return [(self.of(a), b) for a, b in pairs if b is not None and b.type.nbytes]

    def while_(self, loop, inner):
        """A loop that looks at its flag."""
        before, after, swaps = self.carries(loop, False)
        with self.inside(swapped(swaps)) as once:
            test, body = self.steps(inner[0]), [*self.steps(inner[1]), *swaps]
        at, plan = len(loop.consts), loop.plans[1]
        for j in loop.others:                    # the carry may lie in either buffer now
            after += self.copy(loop.ends[j], plan.inputs[at + j])
        back = len(test) + 3 + len(body) + 2
        return [*before, *once, *test, Op.UNLESS, self.of(loop.flag), len(body) + 2,
                *body, Op.JUMP, -back, *after]

    def carries(self, loop, odd):
        """(instructions before the loop, behind it, at the end of each step) for its carries.

        odd: the number of steps is odd, so that a carry with two buffers begins in the other.
        """
        before, after, swaps = [], [], []
        at, body = len(loop.consts), loop.plans[-1]
        for j, (start, end) in enumerate(zip(loop.starts, loop.ends)):
            carry, out = body.inputs[at + j], body.outputs[j]
            if carry is out:
                after += self.copy(end, start)
            elif j not in loop.others:
                before += self.copy(end, start)
            elif end.type.nbytes:
                first, second = (loop.others[j], end) if odd else (end, loop.others[j])
                before += [*self.copy(first, start), Op.SET, self.of(carry), self.of(first), 0,
                           Op.SET, self.of(out), self.of(second), 0]
                swaps += [Op.SWAP, self.of(carry), self.of(out)]
        return before, after, swaps

    def call_(self, loop, inner):
        """The steps of what is called."""
        self.layout.enter(loop)
        return self.steps(inner[0])

    def cond(self, loop, inner):
        """One of several lists of steps."""
        branches = [self.steps(steps) for steps in inner]
        ends, total = [], 0
        for b in branches:
            ends.append(total)
            total += len(b) + 2
        out = [Op.CHOOSE, self.of(loop.index), len(branches), *ends]
        for b in branches:
            total -= len(b) + 2
            out += [*b, Op.JUMP, total]
        return out
