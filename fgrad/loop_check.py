"""Is a Plan well formed?  Names before use, known buffers, indices within bounds, types that agree.

`check_plan` and `check_kernel` raise CheckError: a mistake in fgrad or in a hand-written kernel.
Tests run them behind every pass.
"""

from __future__ import annotations

from math import prod

import numpy as np

from . import index, scalar
from .errors import CheckError
from .index import Dynamic
from .loop import (
    Accumulate, Call, Contract, For, Let, Loop, Start, Store, feeding, whole_turns)
from .scalar import INSTRUCTIONS, REDUCTIONS
from .types import BOOL, I64, computed

TRIED = 1 << 16            # places at which an index is computed to see how far it reaches


def check_plan(plan):
    """The Plan itself, if it is well formed."""
    known = {*plan.inputs, *(b for b, _ in (*plan.constants, *plan.tables))}
    for step in plan.steps:
        for b in step.params:
            if hasattr(b, "type") and b not in known and b.type.size:
                raise CheckError(f"{step.name} reads {b.name}, which nothing has written.",
                                 where=None)
        if isinstance(step, Loop):
            for inner in step.plans:
                check_plan(inner)
        elif not isinstance(step, Call):
            check_kernel(step)
        known.update(step.outputs)
    for b in plan.outputs:
        if b not in known and b.type.size:
            raise CheckError(f"{plan.name}: nothing writes the result {b.name}.", where=None)
    check_memory(plan)
    return plan


def check_memory(plan):
    """Raises CheckError where two temporaries that are alive together overlap by mistake."""
    lives, shared = {}, {out: b for s in plan.steps for out, b in getattr(s, "aliases", ())}
    for step, (first, last) in zip(plan.steps, whole_turns(plan.steps)):
        for b in (*step.params, *step.outputs):
            if b in plan.offsets:
                lives[b] = lives.get(b, (first,))[0], last
    spans = sorted(lives, key=plan.offsets.get)
    for n, a in enumerate(spans):
        end = plan.offsets[a] + plan.room(a, lives[a][0])
        if end > plan.arena:
            raise CheckError(f"{a.name} ends behind the arena of {plan.name}.", where=None)
        for b in spans[n + 1:]:
            if plan.offsets[b] >= end:
                break
            if meet(lives[a], lives[b]) and not (
                    a in written_over(b, shared) or b in written_over(a, shared)):
                raise CheckError(f"{a.name} and {b.name} overlap in the arena of {plan.name}.",
                                 where=None)


def written_over(b, shared):
    """The buffers in whose place b stands, one after another."""
    found = []
    while (b := shared.get(b)) is not None:
        found.append(b)
    return found


def meet(a, b):
    return a[0] <= b[1] and b[0] <= a[1]


def check_kernel(kernel):
    """The Kernel itself, if it is well formed."""
    with kernel.space:
        Check(kernel).body(kernel.body, 0, {})
    return kernel


class Check:
    """The rules of one kernel."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.readable = {*kernel.params, *kernel.outputs, *kernel.scratch}
        self.writable = {*kernel.outputs, *kernel.scratch}
        self.apart = []                          # the parallel loops that are open

    def fail(self, sentence):
        raise CheckError(f"kernel {self.kernel.name}: {sentence}", where=None)

    def body(self, statements, mask, names):
        """names: name → dtype of what is bound; accumulators are bound by Start."""
        names = dict(names)
        for k, s in enumerate(statements):
            if isinstance(s, (Start, Let)) and s.name in names:
                self.fail(f"{s.name} is named twice.")
            match s:
                case For():
                    self.loop(s, statements, k, mask, names)
                case Contract():
                    self.contract(s, mask, names)
                case Start():
                    names[s.name] = s.dtype
                case Let():
                    self.expression(s.expr, mask, names)
                    names[s.name] = s.expr.dtype
                case Accumulate():
                    self.expression(s.expr, mask, names)
                    if names.get(s.name) != s.expr.dtype:
                        self.fail(f"{s.name} is fed a {s.expr.dtype}, and is {names.get(s.name)}.")
                case Store():
                    self.store(s, mask, names)

    def loop(self, s, statements, k, mask, names):
        if s.kind == "parallel" and mask == 0 and k != len(statements) - 1:
            self.fail(f"statements follow the parallel loop over {s.var.name}.")
        if s.width > 1 and any(isinstance(t, For) and t.width > 1 for t in s.body):
            self.fail(f"the loop over {s.var.name} has lanes and holds another loop that has.")
        for name, around in feeding(s).items():
            widths = {t.width for t in around}
            if len(widths) > 1:
                self.fail(f"{name} is fed by {' and '.join(map(str, sorted(widths)))} lanes within "
                          f"the loop over {s.var.name}.")
        if mask & s.var.bit:
            self.fail(f"{s.var.name} is looped over twice.")
        if s.var.name in names:
            self.fail(f"the loop over {s.var.name} is named as something around it.")
        alone = s.kind == "parallel" and s.var.extent > s.step
        if alone:
            self.apart.append(s.var)
        self.body(s.body, mask | s.var.bit, names | {s.var.name: I64})
        if alone:
            self.apart.pop()

    def contract(self, s, mask, names):
        outer = mask | sum(v.bit for v in (*s.batch, *s.rows, *s.columns))
        inner = outer | sum(v.bit for v in s.k)
        for n in (s.a, s.b):
            self.expression(n, inner, names)
            if n.dtype != s.dtype:
                self.fail(f"an operand of {s.name} is {n.dtype}, not {s.dtype}.")
        if any(s.a.free & v.bit for v in s.columns) or any(s.b.free & v.bit for v in s.rows):
            self.fail(f"an operand of {s.name} knows the rows or columns of the other.")
        bound = {s.name, *s.of_column}
        self.body(s.body, outer, names | dict.fromkeys(bound, s.dtype))

    def store(self, s, mask, names):
        self.expression(s.expr, mask, names)
        if s.buffer not in self.writable:
            self.fail(f"{s.buffer.name} is stored to, and is no output.")
        if s.expr.dtype != computed(s.buffer.type.dtype):
            self.fail(f"a {s.expr.dtype} is stored in {s.buffer.name}: {s.buffer.type}.")
        if s.how is not None and s.how not in REDUCTIONS:
            self.fail(f"nothing is known of {s.how}.")
        for x, _, _ in s.when:
            self.index(x, mask, names)
        self.index(s.index, mask, names)
        self.bounds(s.buffer, s.index, s.when)
        fixed = [x for x, lo, hi in s.when if hi == lo + 1]     # each value of x has one iteration
        known = {v for x in (s.index, *fixed) for a, _ in x.terms if not isinstance(a, Dynamic)
                 for v in self.apart if index.of(a).free & v.bit}
        if s.buffer.kind != "local" and len(known) < len(self.apart):
            self.fail(f"{s.buffer.name}[{index.text(s.index)}] may be one element in two "
                      "iterations of a parallel loop.")

    def index(self, x, mask, names):
        if x.free & ~mask:
            self.fail(f"the index {index.text(x)} knows a loop that is not open.")
        for n in x.nodes:
            self.expression(n, mask, names)

    def bounds(self, buffer, x, ranges):
        low, high = limits(x, ranges)
        if low < 0 or high >= buffer.type.size:
            low, high = tried(x, ranges) or (low, high)
        if low < 0 or high >= buffer.type.size:
            self.fail(f"{buffer.name}[{index.text(x)}] reaches {low}..{high} of {buffer.type}.")

    def expression(self, root, mask, names):
        """Checks a scalar expression; loads behind a guard may rely on its ranges."""
        if root.free & ~mask:
            self.fail(f"{root} knows a loop that is not open.")
        stack, seen = [(root, ())], set()
        while stack:
            n, ranges = stack.pop()
            if (n, ranges) in seen:
                continue
            seen.add((n, ranges))
            self.node(n, mask, names, ranges)
            if n.op == "guard":
                stack += [(n.args[0], ranges + n.data), (n.args[1], ranges)]
                stack += [(d, ranges) for d in scalar.index_nodes(n)]
            else:
                stack += [(a, ranges) for a in n.below]

    def node(self, n, mask, names, ranges):
        match n.op:
            case "name":
                if names.get(n.data) != n.dtype:
                    self.fail(f"{n.data} is read as {n.dtype}, and is {names.get(n.data)}.")
            case "load":
                if n.data[0] not in self.readable:
                    self.fail(f"{n.data[0].name} is read, and is no parameter.")
                self.bounds(*n.data, ranges)
            case "reduce":
                self.fail("a reduction was not lowered.")
            case "select":
                self.same(n, n.args[1:])
                if n.args[0].dtype != BOOL:
                    self.fail(f"{n} selects by a {n.args[0].dtype}.")
            case op if op in INSTRUCTIONS and op not in ("shl", "shr"):
                self.same(n, n.args)

    def same(self, n, args):
        if len({a.dtype for a in args}) != 1:
            self.fail(f"the arguments of {n} differ in dtype.")


# ---------------------------------------------------------------------------- what ranges say

def limits(x, ranges):
    """The lowest and highest value of an Ix where the ranges (Ix, lo, hi) hold.

    Each range narrows the atoms it knows; then x is seen as a sum of multiples of the ranges' Ixs.
    (0, -1) where ranges contradict each other: nothing is read there.
    """
    atoms = narrowed(ranges)
    if any(first > last for first, last in atoms.values()):
        return 0, -1
    low, high = span(x, atoms)
    for order in (ranges, ranges[::-1]):         # of ranges that know the same, the first counts
        left, base_low, base_high = x, 0, 0
        for y, lo, hi in order:
            k = shared_factor(left, y)
            if k:
                ends = k * lo, k * (hi - 1)
                base_low, base_high = base_low + min(ends), base_high + max(ends)
                left = index.combine([(left, 1), (y, -k)])
                rest = span(left, atoms)
                low, high = max(low, base_low + rest[0]), min(high, base_high + rest[1])
    return low, high


def tried(x, ranges):
    """The same, found by trying all values of all loop variables; None where these are many, or
    what an index reads matters.  Quotients of sums are more than `limits` sees through.
    """
    variables = {}
    for y in (x, *[y for y, _, _ in ranges]):
        if y.nodes:
            return None
        variables |= dict.fromkeys(variables_of(y))
    if prod(v.hi // v.step + 1 for v in variables) > TRIED:
        return None
    grid = np.ix_(*[np.arange(0, v.hi + 1, v.step) for v in variables])
    values = dict(zip(variables, grid))
    inside = np.ones((), bool)
    for y, lo, hi in ranges:
        at = value_of(y, values)
        inside = inside & (lo <= at) & (at < hi)
    inside, found = np.broadcast_arrays(inside, value_of(x, values))
    return (found[inside].min(), found[inside].max()) if inside.any() else (0, -1)


def variables_of(x):
    """The loop variables of an Ix, those within its quotients too."""
    for a, _ in x.terms:
        if isinstance(a, index.Quot):
            yield from variables_of(a.ix)
        else:
            yield a


def value_of(x, values):
    """An Ix for values of its variables."""
    total = x.const
    for a, c in x.terms:
        if isinstance(a, index.Quot):
            inner = value_of(a.ix, values)
            total = total + c * (inner // a.n if a.op == "/" else inner % a.n)
        else:
            total = total + c * values[a]
    return total


def narrowed(ranges):
    """Atom → (lowest, highest), as the ranges say."""
    atoms = {}
    for _ in range(3 if len(ranges) > 1 else 1):
        for y, lo, hi in ranges:
            low, high = span(y, atoms)
            for a, c in y.terms:
                first, last = atom_span(a, atoms)
                ends = sorted((c * first, c * last))
                least, most = lo - (high - ends[1]), hi - 1 - (low - ends[0])
                if c < 0:
                    least, most = -most, -least
                atoms[a] = max(first, -(-least // abs(c))), min(last, most // abs(c))
                low, high = span(y, atoms)
    return atoms


def span(x, atoms):
    """The range of an Ix, with the ranges of its atoms as far as they are known."""
    low = high = x.const
    for a, c in x.terms:
        first, last = atom_span(a, atoms)
        low, high = low + min(c * first, c * last), high + max(c * first, c * last)
    return low, high


def atom_span(a, atoms):
    """The range of an atom; that of a quotient follows from what is divided."""
    first, last = atoms.get(a, (a.lo, a.hi))
    if isinstance(a, index.Quot):
        low, high = span(a.ix, atoms)
        if a.op == "/":
            first, last = max(first, low // a.n), min(last, high // a.n)
        elif low // a.n == high // a.n:
            first, last = max(first, low % a.n), min(last, high % a.n)
    return first, last


def shared_factor(x, y):
    """The integer by which every atom of y stands in x, or 0."""
    terms = dict(x.terms)
    factors = {terms.get(a, 0) / c for a, c in y.terms}
    factor = factors.pop() if len(factors) == 1 else 0
    return int(factor) if factor == int(factor) else 0
