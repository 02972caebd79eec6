"""Parts: who runs which iterations of a kernel's outermost loop, and partial results of sums over
it.

    for i in 0..512: for j: db[j] += dy[i,j]           (fused: nest i,j, accumulating over i)

    k: parallel p in 0..2                              k_sum: for j in 0..256
         for j: part[p,j] = 0                                   acc = sum p: part[p,j]
         for i in 0..256: for j: part[p,j] += …                 db[j] = acc

A kernel whose work does not pay for a parallel region stays serial.  Results are the same for the
same number of parts.  A sum of many rows to one number has more of them than threads: one number
that grows by 10⁶ others, one after another, loses three digits.  lower.py calls `split`; everything
is said in loop IR, so backends need no notion of it.
"""

from __future__ import annotations

from math import prod

from .. import index, scalar
from ..loop import Accumulate, Buffer, For, Start, Store
from ..records import replace
from ..scalar import REDUCTIONS
from ..types import ArrayType
from .names import loops_of

APART = 128                # bytes from which two threads do not wait for each other's writes
WRITTEN_OUT = 64           # partial results that are added in one expression
ALONE = 1 << 15            # additions that one group of a GPU does as fast as several would
ROWS = 1 << 10             # additions to one number after another, which lose little
COLUMNS = (512, 384, 320, 256, 192, 128, 96, 64)      # columns of a block of column sums


def cost_of(body):
    """The work of some statements, in additions; a load counts 1."""
    total = 0
    for s in body:
        if isinstance(s, For):
            total += (s.var.extent // s.step) * cost_of(s.body)
        elif not isinstance(s, Start):
            total += 1 + cost_of_one(s.expr)
    return total


def cost_of_one(expr):
    """The work of computing a scalar once."""
    return sum(max(n.cost, 1) for n in scalar.walk(expr) if n.op not in ("const", "name"))


def substituted(body, to, values=None):
    """The statements with loop variables replaced by Ixs.  values: name → what replaces it."""
    memo, out = {}, []

    def inside(n):
        known = {m: values[m.data] for m in scalar.walk(n)
                 if m.op == "name" and m.data in values} if values else {}
        return scalar.rewrite(n, to, known, memo)

    def place(x):
        return index.substitute(x, to, inside)
    for s in body:
        match s:
            case For():
                out.append(replace(s, body=substituted(s.body, to, values)))
            case Start():
                out.append(s)
            case Store():
                when = tuple((place(x), lo, hi) for x, lo, hi in s.when)
                out.append(replace(s, expr=inside(s.expr), index=place(s.index), when=when))
            case _:
                out.append(replace(s, expr=inside(s.expr)))
    return out


def blocks_of(loop, size, space, body):
    """The loop over blocks of `size` iterations, and a block of those that are left over.

    body(start, size): the statements of a block of so many that starts at an Ix.
    """
    n, out = loop.var.extent, []
    for first, count, size in (0, n // size, size), (n // size * size, 1, n % size):
        if not count * size:
            continue
        v = space.variable(count)
        made = body(index.plus(index.combine([(index.of(v), size)]), first), size)
        if count == 1 and loop.kind == "serial":
            out += made
        else:
            out.append(replace(loop, var=v, body=made, grain=-(-loop.grain // size)))
    return out


def own_loops(body, space):
    """The statements with loop variables of their own: those of two kernels have names in each."""
    own = {v: space.variable(v.extent, step=v.step) for v in dict.fromkeys(loops_of(body))}
    body = substituted(body, {v: index.of(w) for v, w in own.items()})

    def renamed(body):
        return [replace(s, var=own[s.var], body=renamed(s.body)) if isinstance(s, For) else s
                for s in body]
    return renamed(body)


def substitute(x, to):
    """An Ix with loop variables replaced; run-time indices inside of it too."""
    return index.substitute(x, to, lambda n: scalar.rewrite(n, to, {}, {}))


def split(name, body, nest, target, make):
    """The kernels of a Nest: make(name, body) → Kernel for each.

    `body` ends in the loop over nest.nest[0] if the Nest has loops; roots with `how` add up over
    it.
    """
    sums = [r for r in nest.roots if r.how]
    work = cost_of(body)
    large = target.kind != "cpu" or work >= target.region_cost
    if not sums:
        if nest.nest and large:
            spread(body[-1], nest.nest, target)
        return [make(name, body)]
    loop = body[-1]
    enough = target.kind == "cpu" or work >= ALONE
    wanted = max(target.cut if large and enough else 1, stretches(loop, sums, target))
    parts = parts_of(loop.var.extent, wanted) if wanted > 1 else 1
    narrow = any(r.expr.dtype != r.value.dtype for r in sums)
    if parts == 1 and not narrow:
        inside = in_accumulators(loop) or starts(sums, nest, make) + [loop]
        return [make(name, body[:-1] + inside)]
    blocked = column_blocks(loop, nest) if not narrow else None
    if blocked and loop.var.extent < 4 * target.cut:
        return [make(name, body[:-1] + [blocked(sums, make)])]
    return partial_kernels(name, body, loop, sums, nest, parts, target, make)


def spread(loop, independent, target):
    """Makes a loop parallel, and on a GPU the perfect nest below it.

    independent: the variables of loops whose iterations may run in any order.
    """
    each = max(1, cost_of(loop.body))
    loop.kind = "parallel"
    loop.grain = max(1, -(-target.region_cost // each)) if target.kind == "cpu" else 1
    if target.kind == "gpu" and len(loop.body) == 1 and isinstance(loop.body[0], For):
        inner = loop.body[0]
        if inner.var in independent and inner.kind == "serial":
            spread(inner, independent, target)


def stretches(loop, sums, target):
    """How many partial results keep a sum of many rows to one number exact: one for so many rows.

    Where nothing but numbers are added, `stretches.py` does the same.
    """
    if target.kind != "cpu" or any(
            r.how != "sum" or r.expr.dtype.kind != "f" or prod(r.value.shape) > 1 for r in sums):
        return 1
    if all(is_of_one_number(s, loop) for s in loop.body):
        return 1
    return min(loop.var.extent, additions(loop) // ROWS)


def additions(loop):
    """How many values a loop adds, one after another, to an element outside of it."""
    return loop.var.extent * max(
        [additions(s) if isinstance(s, For) else int(isinstance(s, Store) and bool(s.how))
         for s in loop.body], default=0)


def parts_of(extent, wanted):
    """The number of parts of a loop: `wanted`, or a divisor of the extent near it."""
    for parts in range(wanted, min(4 * wanted, extent) + 1):
        if extent % parts == 0:
            return parts
    return max(1, min(wanted, extent))


def starts(sums, nest, make):
    """Loops that set the sums to the identity of their reductions."""
    out = []
    for r in sums:
        buffer = make.buffer(r.value)
        out.append(fill(buffer, index.ix({}), buffer.type.size, r, nest.space))
    return out


def fill(buffer, offset, size, r, space, identity=None):
    """buffer[offset + e] = identity of the reduction, or this one, for e below size."""
    e = space.variable(size)
    if identity is None:
        identity = REDUCTIONS[r.how][1](r.expr.dtype)
    store = Store(buffer, index.plus(offset, index.of(e)), scalar.const(identity, r.expr.dtype))
    return For(e, [store], "serial") if size != 1 else store


def in_accumulators(loop, mask=0):
    """The loop with its sums to one number in accumulators; None where it has none, or holds loops
    or other sums.

    mask: of the variables around the loop.
    """
    sums = [s for s in loop.body if is_of_one_number(s, loop)]
    if not sums or any(isinstance(s, For) or isinstance(s, Store) and s.how and not any(
            s is t for t in sums) for s in loop.body):
        return None
    before, inside, after = [], [], []
    for s in loop.body:
        if not any(s is t for t in sums):
            inside.append(s)
            continue
        name = f"acc{len(before) + 1 if before else ''}"
        before.append(Start(name, s.how, s.expr.dtype))
        inside.append(Accumulate(name, s.how, s.expr, s.source))
        after.append(replace(s, expr=scalar.name(name, s.expr.dtype, mask), how=None))
    return before + [replace(loop, body=inside, kind="reduce")] + after


def is_of_one_number(s, loop):
    """Does a statement of the loop add to one number?"""
    return isinstance(s, Store) and bool(s.how) and not s.index.free & loop.var.bit


def column_blocks(loop, nest):
    """A function that makes the parallel loop over blocks of columns, or None if it cannot be."""
    inner = loop
    while len(inner.body) == 1 and isinstance(inner.body[0], For):
        inner = inner.body[0]
    j = inner.var
    width = next((w for w in COLUMNS if j.extent % w == 0 and j.extent > w), None)
    perfect = all(isinstance(s, Store) and s.how and s.index.free & j.bit for s in inner.body)
    flat = all(len(r.index) == 1 for r in nest.roots)
    if width is None or not perfect or inner is loop or not flat:
        return None

    def block(sums, make):
        b, jj = nest.space.variable(j.extent // width), nest.space.variable(width)
        to = {j: index.combine([(index.of(b), width), (index.of(jj), 1)])}
        start = index.combine([(index.of(b), width)])
        fills = [fill(make.buffer(r.value), start, width, r, nest.space) for r in sums]
        rows = renamed(loop, j, jj, to)
        return For(b, fills + [rows], "parallel")
    return block


def renamed(loop, old, new, to):
    """The loops with one variable replaced by another of smaller extent."""
    if loop.var is old:
        return replace(loop, var=new, body=substituted(loop.body, to))
    return replace(loop, body=[renamed(s, old, new, to) for s in loop.body])


def partial_kernels(name, body, loop, sums, nest, parts, target, make):
    """The kernel of partial results, one for iterations left over, and one that adds them up."""
    chunk = loop.var.extent // parts
    rest = loop.var.extent - chunk * parts
    rows = parts + bool(rest)
    partial = {r.value: Buffer(make.names.unique("part"), ArrayType(
        r.expr.dtype, (rows, row_of(r, target)))) for r in sums}
    p, i = nest.space.variable(parts), nest.space.variable(chunk)
    at = [(index.of(p), chunk), (index.of(i), 1)]
    before = body[:-1]
    again = own_loops(before, nest.space) if rest else []
    rows = part(loop, index.combine(at), i, index.of(p), sums, partial, nest, make)
    kernels = [make(name, before + [For(p, rows, "parallel")])]
    if rest:
        t = nest.space.variable(rest)
        at = index.plus(index.of(t), chunk * parts)
        left = part(loop, at, t, index.of(parts), sums, partial, nest, make)
        kernels.append(make(name + "_rest", again + own_loops(left, nest.space)))
    return kernels + [make(name + "_sum", added(sums, partial, nest, make))]


def row_of(r, target):
    """How many elements the partial results of a part take.

    On a CPU whole lines of the cache (two, for the prefetcher): no two threads write to one line.
    """
    size, line = prod(r.value.shape), APART // r.expr.dtype.itemsize
    return -(-size // line) * line if size > 1 and target.kind == "cpu" else max(1, size)


def part(loop, at, i, p, sums, partial, nest, make):
    """One part: its partial results set to the identity, then its iterations."""
    rows = {make.buffer(r.value): partial[r.value] for r in sums}
    fills = [fill(buffer, index.combine([(p, buffer.type.shape[1])]), prod(r.value.shape), r,
                  nest.space) for r in sums for buffer in [rows[make.buffer(r.value)]]]
    body = redirected(substituted(loop.body, {loop.var: at}), rows, p)
    inner = For(i, body, "serial")
    return in_accumulators(inner, p.free) or fills + [inner]


def redirected(body, rows, p):
    """The statements with sums stored into row p of their partial results."""
    out = []
    for s in body:
        if isinstance(s, For):
            out.append(replace(s, body=redirected(s.body, rows, p)))
        elif isinstance(s, Store) and s.how and s.buffer in rows:
            buffer = rows[s.buffer]
            at = index.combine([(p, buffer.type.shape[1]), (s.index, 1)])
            out.append(replace(s, buffer=buffer, index=at))
        else:
            out.append(s)
    return out


def added(sums, partial, nest, make):
    """Loops that add the partial results up."""
    out = []
    for k, r in enumerate(sums):
        buffer, size = partial[r.value], max(1, prod(r.value.shape))
        e = nest.space.variable(size)
        total, before = total_of(buffer, size, e, r, nest.space, f"acc{k + 1 if k else ''}")
        total = scalar.held(total, r.value.dtype)
        store = Store(make.buffer(r.value), index.of(e), total, None, (), make.source(r.value))
        out += [For(e, [*before, store], "serial")] if size != 1 else [*before, store]
    return out


def total_of(buffer, size, e, r, space, name):
    """(the sum of element e over all parts, statements before it): written out, or as a loop."""
    parts, row = buffer.type.shape
    if parts <= WRITTEN_OUT:
        found = [scalar.load(buffer, index.plus(index.of(e), k * row)) for k in range(parts)]
        return scalar.pairwise(r.how, found), []
    p = space.variable(parts)
    at = index.combine([(index.of(p), row), (index.of(e), 1)])
    loop = For(p, [Accumulate(name, r.how, scalar.load(buffer, at))], "reduce")
    total = scalar.name(name, r.expr.dtype, e.bit if size != 1 else 0)
    return total, [Start(name, r.how, r.expr.dtype), loop]


def in_copies(name, loop, r, space, target, make):
    """The kernels of a loop that updates a root's value at computed places: of its parts, each in a
    copy of its own, of the updates left over, and of what all make together.

    A copy of a sum begins with -0.0, as 0.0 would make 0.0 of zeros that nothing is added to.
    """
    out, parts, size = make.buffer(r.value), target.threads, prod(r.value.shape)
    chunk = loop.var.extent // parts
    rest = loop.var.extent - chunk * parts
    buffer = Buffer(make.names.unique("part"), ArrayType(r.expr.dtype, (parts, row_of(r, target))))
    p, i, e = space.variable(parts), space.variable(chunk), space.variable(size)
    zero = -0.0 if r.how == "sum" and r.expr.dtype.kind == "f" else None
    fills = fill(buffer, index.combine([(index.of(p), buffer.type.shape[1])]), size, r, space, zero)
    at = index.combine([(index.of(p), chunk), (index.of(i), 1)])
    own = redirected(substituted(loop.body, {loop.var: at}), {out: buffer}, index.of(p))
    kernels = [make(name, [For(p, [fills, For(i, own, "serial")], "parallel")])]
    if rest:
        t = space.variable(rest)
        left = substituted(loop.body, {loop.var: index.plus(index.of(t), chunk * parts)})
        kernels.append(make(name + "_rest", own_loops([For(t, left, "serial")], space)))
    total, before = total_of(buffer, size, e, r, space, "acc")
    store = Store(out, index.of(e), total, r.how, (), make.source(r.value))
    return [*kernels, make(name + "_sum", [For(e, [*before, store], "serial")])]
