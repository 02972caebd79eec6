"""Recognising products: sums of a·b, where `a` knows the rows and `b` the columns.

A dot_general, a convolution and a reduce_sum of broadcast factors all pull to the same expression,
a sum over k of a product.  The factors are told apart by the variables they know.  fuse asks; the
result becomes a Contract statement, which the contraction engine of a backend runs.

    sum k: (x[i,k] * 2.0) * w[k,j]        a = x[i,k]   b = w[k,j]   rows i   columns j   scale 2.0
"""

from __future__ import annotations

from itertools import permutations
from math import gcd, inf, prod

from .. import index, scalar
from ..records import frozen, replace
from ..types import BOOL, F32, I8, U8
from .pull import uncast

RUNS = 16, 256             # the fewest and the most steps of a run of a bordered operand
WINDOW = 12                # the fewest rows of a window that is read in strips
STRIPS = 6, 256            # the fewest and the most steps of a strip
AXES = 3                   # along which windows move at most
SMALL = 512                # multiply-adds; smaller products are ordinary reductions
TINY = 4                   # multiply-adds for a row that is computed; fewer are better beside that
MILD = 2.0 ** -24, 2.0 ** 24       # constants by which a sum may be multiplied, not its terms
EXACT = 1 << 24            # up to which f32 has every integer
EVERY = None               # rows and columns: every factor is told apart
FACTORS = 8                # of one product; more are not a contraction
TOTAL = "total"            # the name of the sum over k of b within a product's kernel


@frozen
class Product:
    """The sum over k of a · b, times `scale` (a Node, or None), for every batch, row and column."""
    a: scalar.Node
    b: scalar.Node
    scale: object
    k: tuple
    rows: tuple
    columns: tuple
    batch: tuple
    dtype: object


def product_of(expr, axes):
    """The Product that the element at `axes` (variables) is, or None."""
    n = uncast(expr)
    if n.op != "reduce" or n.data[0] != "sum":
        return None
    k = n.data[1]
    masks = apart(factors(n.args[0], n.dtype), k, axes)
    found = masks and sides(factors(n.args[0], n.dtype, *masks), masks[1], k, axes, n.dtype)
    return found and in_floats(found)


def in_floats(p):
    """The Product, of f32 where it is one of bytes whose sums are integers that f32 has: processors
    multiply and add these in one instruction.
    """
    if p.dtype.kind not in "iu" or p.dtype.itemsize < 4 or p.scale is not None:
        return p
    sides = [uncast(x) for x in (p.a, p.b)]
    most = prod([v.extent for v in p.k] + [largest(x.dtype, p.dtype) for x in sides])
    if most > EXACT:
        return p
    a, b = (scalar.cast(x, F32) for x in sides)
    return replace(p, a=a, b=b, dtype=F32)


def largest(dtype, wide):
    """The largest magnitude of bytes as integers of another dtype; infinite for what is none."""
    return {I8: 128 if wide.kind == "i" else inf, U8: 255, BOOL: 1}.get(dtype, inf)


def factors(n, dtype, rows=EVERY, columns=EVERY):
    """The factors of a product, cast to `dtype`, or None; looks through casts to wider floats.

    What does not know both some of these rows and some of these columns (masks of variables) stays
    one factor: x · s of x · s · y is what the program multiplies first, and in range.  Mild
    constants are factors of their own.
    """
    out, stack = [], [n]
    while stack:
        n = stack.pop()
        inner = n.args[0] if n.op == "cast" else None
        mixed = rows is EVERY or n.free & rows and n.free & columns
        if n.op == "mul" and (mixed or any(map(is_mild, n.args))):
            stack += reversed(n.args)
        elif n.op == "neg":
            out.append(scalar.const(-1, dtype))
            stack.append(n.args[0])
        elif mixed and n.op == "cast" and inner.op in ("mul", "neg") and widens(
                inner.dtype, n.dtype):
            stack.append(inner)
        else:
            out.append(scalar.cast(n, dtype))
        if len(out) > FACTORS:
            return None
    return out if dtype.kind in "fiu" else None


def widens(narrow, wide):
    """Is every product of two `narrow` floats a float of `wide`?"""
    return narrow.kind == wide.kind == "f" and 2 * narrow.itemsize <= wide.itemsize


def apart(found, k, axes):
    """(the rows, the columns) that only a, and only b, of a product know, as masks; or None."""
    ks = sum(v.bit for v in k)
    inner = [f for f in found or () if f.free & ks]
    groups = split(inner, [v for v in axes if v.extent != 1])
    if groups is None:
        return None
    a, b = map(known, groups)
    return a & ~b & ~ks, b & ~a & ~ks


def sides(found, columns, k, axes, dtype):
    """The factors shared out between a and b by the variables they know, as a Product or None."""
    ks = sum(v.bit for v in k)
    inner = [f for f in found if f.free & ks]
    groups = ([f for f in inner if not f.free & columns], [f for f in inner if f.free & columns])
    if not all(groups):
        return None
    outer = [f for f in found if not f.free & ks and not put_within(f, *groups)]
    a, b = (multiply(g) for g in groups)
    if not all(a.free & v.bit and b.free & v.bit for v in k):
        return None
    rows = tuple(v for v in axes if a.free & v.bit and not b.free & v.bit)
    columns = tuple(v for v in axes if b.free & v.bit and not a.free & v.bit)
    batch = tuple(v for v in axes if a.free & b.free & v.bit)
    work = prod(v.extent for v in (*rows, *columns, *batch, *k))
    if not rows or not columns or work < SMALL:
        return None
    long, short = (a, columns) if prod(v.extent for v in rows) > TINY else (b, rows)
    if not batch and long.op != "load" and prod(v.extent for v in (*short, *k)) <= TINY:
        return None
    known = {*rows, *columns, *batch}
    if any(v not in known and v.extent != 1 for v in axes):
        return None
    scale = multiply(outer) if outer else None
    return Product(a, b, scale, in_memory_order(k, a, b), rows, columns, batch, dtype)


def put_within(f, a, b):
    """Adds a factor that does not know the sum to those of a or b, if it knows nothing else.

    x / max(x) @ y must not overflow where x @ y does: only integers, and constants by which no sum
    comes near the end of its dtype, are multiplied behind the sum.
    """
    for group in (a, b) if f.dtype.kind == "f" and not is_mild(f) else ():
        if not f.free & ~known(group):
            group.append(f)
            return True
    return False


def is_mild(f):
    """Is a factor a constant by which no sum comes near the end of its dtype?"""
    return f.op == "const" and MILD[0] <= abs(float(f.data)) <= MILD[1]


def known(group):
    """The variables that some factors know."""
    mask = 0
    for f in group:
        mask |= f.free
    return mask


def in_memory_order(k, a, b):
    """The variables of a sum, outermost first, as both operands lie in memory, if they agree."""
    at = [n.data[1] for n in scalar.walk(b, scalar.walk(a)) if n.op == "load"]
    at = [x for x in at if any(x.free & v.bit for v in k)]
    if any(not index.is_affine(x, v) for x in at for v in k):
        return k
    orders = {tuple(sorted(k, key=lambda v: -index.stride(x, v))) for x in at}
    return orders.pop() if len(orders) == 1 else k


def split(found, axes):
    """(factors of a, of b): b holds what knows the last axis that not every factor knows."""
    if len(found) < 2:
        return None
    partial = [v for v in axes if not all(f.free & v.bit for f in found)]
    if not partial:
        return None
    last = partial[-1]
    b = [f for f in found if f.free & last.bit]
    a = [f for f in found if not f.free & last.bit]
    if not b or not a:
        return None
    return a, b


def total_of(product, n):
    """A sum in terms of the product's "total", the sum over k of b, for every column; or None.

    It is that sum, times what does not depend on k.
    """
    if n.op != "reduce" or n.data[0] != "sum" or n.dtype != product.dtype or product.batch:
        return None
    found, mask = factors(n.args[0], n.dtype, 0, 0), sum(v.bit for v in n.data[1])
    inner = [f for f in found or () if f.free & mask]
    if not inner:
        return None
    for k in permutations(product.k):
        if [v.extent for v in k] == [v.extent for v in n.data[1]]:
            to = {v: index.of(w) for v, w in zip(n.data[1], k)}
            if scalar.rewrite(multiply(inner), to, {}, {}) is product.b:
                columns = sum(v.bit for v in product.columns)
                outer = [f for f in found if not f.free & mask]
                return multiply([scalar.name(TOTAL, n.dtype, columns), *outer])
    return None


@frozen
class Bordered:
    """An operand that is `load` where all `ranges` hold, and zero elsewhere: a padded array.

    Every `run` steps along the last variable of k lie behind each other, all inside or all outside.
    """
    load: scalar.Node
    ranges: tuple
    run: int


def bordered(n, k, dtype):
    """The Bordered that an operand is, or None.

    Each term of its index and of its ranges is known by k alone, or without k.
    """
    n, ranges = unguarded(n)
    if not ranges or n.op != "load" or n.data[0].type.dtype != dtype:
        return None
    mask, last, at = sum(v.bit for v in k), k[-1], n.data[1]
    indices = [at, *[x for x, _, _ in ranges]]
    apart = not any(x.nodes or any(a.free & mask and a.free & ~mask for a, _ in x.terms)
                    for x in indices)
    behind = index.is_affine(at, last) and index.stride(at, last) == 1 and not any(
        x.free & last.bit for x, _, _ in ranges)
    run = whole_parts(last.extent, RUNS[1])
    return Bordered(n, ranges, run) if apart and behind and run >= RUNS[0] else None


def unguarded(n):
    """(what a node is inside of a border of zeros, the ranges of indices that are inside)."""
    ranges = ()
    while n.op == "guard" and n.args[1].op == "const" and not n.args[1].data:
        n, ranges = n.args[0], ranges + n.data
    return n, ranges


@frozen
class Strips:
    """An operand that is `load` where all `ranges` hold, and zero elsewhere: a padded array.

    Along the last variable of the rows, a window's, all `rows` lie behind each other, inside or
    outside; every `steps` along the last one of k, a strip, lie `step` elements apart, and what is
    inside is one stretch, since the indices of the ranges grow by `slopes`.
    """
    load: scalar.Node
    ranges: tuple
    slopes: tuple
    rows: int
    steps: int
    step: int


def strips(n, rows, k, dtype):
    """The Strips that an operand is, or None."""
    n, ranges = unguarded(n)
    if not ranges or n.op != "load" or n.data[0].type.dtype != dtype:
        return None
    channel, pixel, at = rows[-1], k[-1], n.data[1]
    indices = [x for x, _, _ in ranges]
    affine = all(index.is_affine(x, pixel) and not x.nodes for x in (at, *indices))
    if not affine or not index.is_affine(at, channel) or index.stride(at, channel) != 1:
        return None
    slopes = tuple(index.stride(x, pixel) for x in indices)
    fits = min(slopes) >= 0 and not any(x.free & channel.bit for x in indices)
    steps = whole_parts(pixel.extent, STRIPS[1])
    large = channel.extent >= WINDOW and steps >= STRIPS[0]
    return Strips(n, ranges, slopes, channel.extent, steps,
                  index.stride(at, pixel)) if fits and large else None


@frozen
class Windows:
    """An operand that is `load` where all `ranges` hold, and zero elsewhere, and that knows each of
    the `places` and the one of the `taps` beside it by stride · place + dilation · tap alone.

    steps: (stride, dilation) of each, one of which is 1.  `channel` lies along memory.  outer:
    variables of other places.  turned: taps and channel are rows, places are summed over, as in the
    gradient of a convolution's kernel.
    """
    load: scalar.Node
    ranges: tuple
    outer: tuple
    places: tuple
    taps: tuple
    channel: index.Var
    turned: bool
    steps: tuple


def windows(n, rows, k, dtype, longest):
    """The Windows that an operand is, of up to `longest` taps along an axis, or None."""
    n, ranges = unguarded(n)
    if n.op != "load" or n.data[0].type.dtype != dtype:
        return None
    if n.data[1].nodes or any(x.nodes for x, _, _ in ranges):    # rows that were gathered
        return None
    for turned, (seen, other) in enumerate(((rows, k), (k, rows))):
        load, (*taps, channel) = apart_from_taps(n, ranges, seen[-1], other)
        outer, places = seen[:-len(taps)], seen[-len(taps):]
        indices = [load.data[1], *[x for x, _, _ in ranges]]
        if not 1 <= len(taps) <= min(AXES, len(seen)) or not along(channel, *indices):
            continue
        steps = tuple(steps_between(v, w, indices) for v, w in zip(places, taps))
        if None not in steps and all(2 <= v.extent <= longest for v in taps):
            return Windows(load, ranges, outer, places, tuple(taps), channel, bool(turned), steps)
    return None


def apart_from_taps(n, ranges, place, other):
    """(the load, the variables) with channels, which are one variable with the last taps where both
    lie behind each other, as one of their own."""
    buffer, at = n.data
    last, channels = other[-1], index.stride(at, place)
    one = along(last, at, *[x for x, _, _ in ranges])
    if not one or channels < 2 or last.extent <= channels or last.extent % channels:
        return n, other
    tap, channel = (index.space().variable(e) for e in (last.extent // channels, channels))
    both = index.combine([(index.of(tap), channels), (index.of(channel), 1)])
    load = scalar.load(buffer, index.substitute(at, {last: both}))
    return load, (*other[:-1], tap, channel)


def along(channel, at, *ranges):
    """Is a variable known by the index of a load alone, and lies along memory there?"""
    return (index.is_affine(at, channel) and index.stride(at, channel) == 1
            and not any(x.free & channel.bit for x in ranges))


def steps_between(place, tap, indices):
    """(stride, dilation), one of which is 1, by which all these indices know a place and a tap; or
    None."""
    if not all(index.is_affine(x, v) for x in indices for v in (place, tap)):
        return None
    found = {(index.stride(x, place), index.stride(x, tap)) for x in indices} - {(0, 0)}
    ratios = {(s // gcd(s, d), d // gcd(s, d)) for s, d in found}
    ((stride, dilation),) = ratios if len(ratios) == 1 else [(0, 0)]
    return (stride, dilation) if min(stride, dilation) == 1 else None


def whole_parts(extent, most):
    """The largest number, up to `most`, that divides an extent."""
    return max(n for n in range(1, most + 1) if extent % n == 0)


def read_around(side, p):
    """Does product p read its left operand where it lies, around a border of zeros?"""
    return bordered(side, p.k, p.dtype) or strips(side, p.rows, p.k, p.dtype)


def multiply(found):
    """The product of some nodes."""
    out = found[0]
    for f in found[1:]:
        out = scalar.apply("mul", out, f)
    return out


def operand_factors(side):
    """What an operand is the product of, where that is no value of the program; or it alone."""
    n = uncast(side)
    if n.op == "mul" and n.origin is None:
        return [f for a in n.args for f in operand_factors(a)]
    return [side]
