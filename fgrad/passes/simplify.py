"""Simplifying array programs: identities that hold for every value, NaN, infinities and -0.0
included.

    x * 1, x - 0, x / 1, --x  →  x          x + -y  →  x - y         x / 4  →  x * 0.25
    transpose of a product that nothing else reads  →  the product with its axes in that order
    transpose of transpose, reshape of reshape, broadcast of broadcast  →  one of them
    any operation on constants alone  →  a constant
    1 / broadcast x, broadcast x + broadcast y  →  broadcast of 1 / x, of x + y
    reductions along the axis of a stack of x and y  →  max(x, y), x * y, …

x * 0 is not 0 (NaN) and x + 0.0 is not x (-0.0), so they stay.  One walk forwards applies RULES,
one walk backwards drops what nothing reads: linear in the number of equations.
"""

from __future__ import annotations

import functools
import math
from collections import Counter

import numpy as np

from ..core import PRIMITIVES, array_in, array_of, memory_of, numpy_rule
from ..ir import Equation, Program, Var
from ..ops.elementwise import Elementwise
from ..ops.reduce import Reduce
from ..scalar import REDUCTIONS, highest, lowest
from ..types import (
    BOOL, I32, SCALARS, ArrayType, computed, finfo, held_as, is_exact, without)
from .prune import without_dead

AGAIN = 8                  # times that one equation is rewritten
COMBINED = 32              # parts of a stack up to which a reduction combines them one by one
WRITTEN_OUT = 16           # elements of a row up to which parts of merged rows are put together
CUT = 1 << 13              # multiply-adds of a convolution from which a part of it is worth cutting


def simplify(program):
    """The Program with RULES applied, without dead equations."""
    walk = Walk(program)
    for eqn in program.eqns:
        walk.add(eqn)
    outputs = [walk.now(v) for v in program.outputs]
    return without_dead(Program(program.name, program.inputs, walk.eqns, outputs, program.hidden))


class Walk:
    """Equations so far; `makers` of their results; what has become of variables that are gone;
    `read`, the variables that others than reductions read; `uses`, how often each is read;
    `products`, how many there are of the same operands.
    """

    def __init__(self, program):
        self.eqns, self.makers, self.instead = [], {}, {}
        self.read = {v for eqn in program.eqns if not isinstance(eqn.op, Reduce)
                     for v in eqn.variables}
        self.uses = Counter(v for eqn in program.eqns for v in eqn.variables)
        self.uses.update(program.outputs)
        self.program = program
        self.results = frozenset(program.outputs)
        self.products = Counter(e.args for e in program.eqns if e.op.name == "dot_general")

    @functools.cached_property
    def wanted(self):
        """Variable → how many elements of it are read, for each part by itself."""
        found = Counter({v: v.type.size for v in self.results if v.__class__ is Var})
        for eqn in reversed(self.program.eqns):
            for a in dict.fromkeys(eqn.variables):
                size = a.type.size
                found[a] += min(found[eqn.outs[0]], size) if eqn.op.name in MOVES else size
        return found

    def now(self, a):
        """An argument as it is now."""
        return self.instead.get(a, a) if a.__class__ is Var else a

    def add(self, eqn):
        """Adds the equation, as simple as the rules make it."""
        eqn = with_args(eqn, [self.now(a) for a in eqn.args])
        for _ in range(AGAIN):
            found = self.rewritten(eqn)
            if found is None:
                break
            if found.__class__ is Var:
                self.instead[eqn.outs[0]] = found
                return
            eqn = found
        self.eqns.append(eqn)
        for v in eqn.outs:
            self.makers[v] = eqn

    def rewritten(self, eqn):
        """A simpler Equation with the same results, a Var that is the result, or None."""
        rule = RULES.get(eqn.op.name)
        found = rule(self, eqn) if rule is not None else None
        if found is None and isinstance(eqn.op, Elementwise) and eqn.args:
            found = self.folded(eqn) or self.spread(eqn)
        return found

    def maker(self, a, name):
        """The equation called `name` that makes the argument, or None."""
        eqn = self.makers.get(a) if a.__class__ is Var else None
        return eqn if eqn is not None and eqn.op.name == name else None

    def number(self, a):
        """The Python number that an argument holds everywhere, or None."""
        if a.__class__ in SCALARS:
            return a
        full = self.maker(a, "full")
        return full.params["value"] if full is not None else None

    def folded(self, eqn):
        """The equation of a row of elementwise.py as `full`, if all it reads is constant."""
        numbers = [self.number(a) for a in eqn.args]
        dtypes = {a.dtype for a in eqn.variables}
        if None in numbers or len(dtypes) != 1:
            return None
        (dtype,), (out,) = dtypes, eqn.outs
        args = [memory_of(array_in(x, dtype)) for x in numbers]
        types = [ArrayType(d, ()) for d in (*[dtype] * len(args), out.dtype)]
        with np.errstate(all="ignore"):
            (value,) = numpy_rule(eqn.op, args, types, eqn.params)
        return full_like(eqn, array_of(np.asarray(value, held_as(out.dtype)), out.dtype).item())

    def spread(self, eqn):
        """The equation of a row of elementwise.py as `broadcast`, if what it reads is broadcast
        alike: each element is computed once.
        """
        (out,), makers = eqn.outs, [self.maker(a, "broadcast") for a in eqn.variables]
        if not makers or None in makers or any(m.params != makers[0].params for m in makers):
            return None
        narrow = {m.outs[0]: m.args[0] for m in makers}
        shapes = {a.shape for a in narrow.values() if a.__class__ is Var}
        if len(shapes) != 1:
            return None
        args = [narrow.get(a, a) if a.__class__ is Var else a for a in eqn.args]
        once = in_front(self, eqn, eqn.op, args, eqn.params, ArrayType(out.dtype, *shapes))
        return instead(eqn, "broadcast", once, **makers[0].params)


def with_args(eqn, args):
    """The equation with other arguments."""
    if all(a is b for a, b in zip(args, eqn.args)):
        return eqn
    return Equation(eqn.op, args, eqn.params, eqn.outs, eqn.source, eqn.mark)


def instead(eqn, name, *args, **params):
    """The operation `name` in place of an equation's."""
    return Equation(PRIMITIVES[name], args, params, eqn.outs, eqn.source, eqn.mark)


def before(walk, eqn, name, *args, **params):
    """The result of the operation `name`, added in front of an equation that is being rewritten."""
    op = PRIMITIVES[name]
    return in_front(walk, eqn, op, args, params, op.type(*[a.type for a in args], **params))


def in_front(walk, eqn, op, args, params, type):
    """The same for an operation at hand, whose result has this type."""
    v = Var(type)
    walk.add(Equation(op, args, params, [v], eqn.source, eqn.mark))
    return walk.now(v)


def full_like(eqn, value):
    """A constant in place of an equation's operation."""
    (out,) = eqn.outs
    return instead(eqn, "full", shape=out.shape, value=value, dtype=out.dtype)


def same_number(a, b):
    """Are two numbers equal, and of one sign if 0?"""
    return a is not None and a == b and math.copysign(1, a) == math.copysign(1, b)


# ---------------------------------------------------------------------------- arithmetic

def simple_add(walk, eqn):
    x, y = eqn.args
    for a, b in ((x, y), (y, x)):
        n = walk.number(b)
        zero = n == 0 and (eqn.outs[0].dtype.kind != "f" or same_number(n, -0.0))
        if zero and a.__class__ is Var:
            return a
    if x.__class__ is y.__class__ is Var:
        negated = walk.maker(y, "neg")
        if negated is not None:
            return instead(eqn, "sub", x, negated.args[0])
        negated = walk.maker(x, "neg")
        if negated is not None:
            return instead(eqn, "sub", y, negated.args[0])
        return woven(walk, eqn, x, y)
    return None


def woven(walk, eqn, x, y):
    """x and y with zeros between their elements, where the other has its own: what the gradient of
    x[::2] and x[1::2] adds up is a stack of both.
    """
    pads = [walk.maker(v, "pad") for v in (x, y)]
    if None in pads or any(walk.number(p.args[1]) != 0 for p in pads):
        return None
    pads.sort(key=lambda p: p.params["low"], reverse=True)
    (a, _), (b, _) = [p.args for p in reversed(pads)]
    *_, axis = [k for k, n in enumerate(pads[0].params["interior"]) if n] or [None]
    if axis is None or a.type is not b.type or 0 in a.shape or a.dtype == BOOL:
        return None
    unit = tuple(int(k == axis) for k in range(len(a.shape)))
    none = (0,) * len(unit)
    want = [(unit, none, unit), (none, unit, unit)]
    if [tuple(p.params[name] for name in ("low", "high", "interior")) for p in pads] != want:
        return None
    shape = (*a.shape[:axis + 1], 1, *a.shape[axis + 1:])
    sums = [in_front(walk, eqn, eqn.op, (v, 0), {}, v.type) for v in (a, b)]      # of -0.0, too
    parts = [before(walk, eqn, "reshape", v, shape=shape) for v in sums]
    whole = before(walk, eqn, "concatenate", *parts, axis=axis + 1)
    return instead(eqn, "reshape", whole, shape=eqn.outs[0].shape)


def simple_sub(walk, eqn):
    x, y = eqn.args
    if x.__class__ is Var and same_number(walk.number(y), 0):
        return x
    negated = walk.maker(y, "neg")
    if negated is not None:
        return instead(eqn, "add", x, negated.args[0])
    return None


def simple_mul(walk, eqn):
    x, y = eqn.args
    for a, b in ((x, y), (y, x)):
        if a.__class__ is Var and walk.number(b) == 1:
            return a
        if a.__class__ is Var and walk.number(b) == -1 and a.dtype.kind in "if":
            return instead(eqn, "neg", a)
    return None


def simple_div(walk, eqn):
    x, y = eqn.args
    n = walk.number(y)
    if x.__class__ is not Var or n is None:
        return None
    if n == 1:
        return x
    if x.dtype.kind == "f" and exact_inverse(n, x.dtype):
        return instead(eqn, "mul", x, 1 / n)
    return None


def exact_inverse(n, dtype):
    """Is n a power of two, with an inverse that is a normal number too?"""
    info = finfo(dtype)
    if not math.isfinite(n) or n == 0 or abs(math.frexp(n)[0]) != 0.5:
        return False
    return float(info.tiny) <= abs(1 / n) <= float(info.max) and float(info.tiny) <= abs(n)


def simple_extreme(identity):
    """A rule for max or min: with the lowest or highest number, which changes nothing."""
    def rule(walk, eqn):
        x, y = eqn.args
        for a, b in ((x, y), (y, x)):
            if a.__class__ is Var and walk.number(b) == identity(a.dtype):
                return a
        return None
    return rule


def simple_neg(walk, eqn):
    inner = walk.maker(eqn.args[0], "neg")
    return inner.args[0] if inner is not None else None


def simple_integer_pow(walk, eqn):
    n, (x,) = eqn.params["n"], eqn.args
    return x if n == 1 else instead(eqn, "mul", x, x) if n == 2 else None


def simple_select(walk, eqn):
    _, x, y = eqn.args
    held = walk.maker(y, "stop_gradient")        # what a lane's branch reads, see cond
    y = y if held is None else held.args[0]
    return x if x is y and x.__class__ is Var and x.type is eqn.outs[0].type else None


def simple_convert(walk, eqn):
    (x,) = eqn.args
    if x.type is eqn.outs[0].type:
        return x
    inner = walk.maker(x, "convert")
    if inner is not None and is_exact(inner.args[0].dtype, x.dtype):
        return instead(eqn, "convert", inner.args[0], **eqn.params)
    return None


# ---------------------------------------------------------------------------- movement

def moved(change):
    """A rule for movement: nothing moved, a constant moved, else `change`."""
    def rule(walk, eqn):
        (x,), (out,) = eqn.args[:1], eqn.outs
        n = walk.number(x)
        if n is not None:
            return full_like(eqn, n)
        return change(walk, eqn, x, out)
    return rule


def simple_reshape(walk, eqn, x, out):
    if x.type is out.type:
        return x
    inner = walk.maker(x, "reshape")
    return instead(eqn, "reshape", inner.args[0], **eqn.params) if inner is not None else None


def simple_transpose(walk, eqn, x, out):
    perm = eqn.params["perm"]
    if perm == tuple(range(len(perm))):
        return x
    product = walk.maker(x, "dot_general")
    if product is not None and walk.uses[x] == 1 and walk.products[product.args] < 2:
        labels = product.params | {"to": "".join(product.params["to"][p] for p in perm)}
        return instead(eqn, "dot_general", *product.args, **labels)
    inner = walk.maker(x, "transpose")
    if inner is None:
        return None
    both = tuple(inner.params["perm"][p] for p in perm)
    return instead(eqn, "transpose", inner.args[0], perm=both)


def simple_broadcast(walk, eqn, x, out):
    axes = eqn.params["axes"]
    if not axes:
        return x
    inner = walk.maker(x, "broadcast")
    if inner is None:
        return None
    kept = [a for a in range(len(out.shape)) if a not in axes]
    added = sorted([*axes, *(kept[a] for a in inner.params["axes"])])
    return instead(eqn, "broadcast", inner.args[0], shape=out.shape, axes=tuple(added))


def simple_rev(walk, eqn, x, out):
    inner = walk.maker(x, "rev")
    if not eqn.params["axes"]:
        return x
    return inner.args[0] if inner is not None and inner.params == eqn.params else None


def simple_slice(walk, eqn, x, out):
    """A part of what is made of parts needs parts of these: less is computed, and less is moved."""
    if x.type is out.type:
        return x
    if max(eqn.params["stride"], default=1) > 1 or 0 in out.shape:
        return None
    maker = walk.makers.get(x)
    part = PARTS.get(maker.op.name) if maker is not None else None
    return part(walk, maker, eqn) if part is not None else None


def sliced(walk, eqn, x, start, stop):
    """x from `start` to `stop`, in front of an equation."""
    return before(walk, eqn, "slice", x, start=tuple(start), stop=tuple(stop),
                  stride=(1,) * len(start))


def part_of_slice(walk, inner, eqn):
    """One slice for two."""
    computed = inner.args[0] in walk.makers
    if max(inner.params["stride"]) > 1 or computed and inner.outs[0] in walk.results:
        return None
    first = inner.params["start"]
    start, stop = [tuple(a + b for a, b in zip(first, eqn.params[name]))
                   for name in ("start", "stop")]
    return instead(eqn, "slice", *inner.args, start=start, stop=stop, stride=eqn.params["stride"])


def part_of_pad(walk, inner, eqn):
    """pad with less around, of a part of the array."""
    x, start, stop = inner.args[0], eqn.params["start"], eqn.params["stop"]
    if any(inner.params["interior"]) or min((*inner.params["low"], *inner.params["high"])) < 0:
        return None
    spans = list(zip(inner.params["low"], x.shape, start, stop))
    first = [min(max(a - low, 0), n) for low, n, a, _ in spans]
    last = [min(max(b - low, 0), n) for low, n, _, b in spans]
    outside = any(a >= b for a, b in zip(first, last))
    value = walk.number(inner.args[1]) if outside else None
    if value is not None:
        return full_like(eqn, value)
    if outside or x.__class__ is not Var:
        return None
    low = tuple(max(low - a, 0) for low, _, a, _ in spans)
    high = tuple(max(b - low - n, 0) for low, n, _, b in spans)
    part = sliced(walk, eqn, x, first, last)
    return instead(eqn, "pad", part, *inner.args[1:], low=low, high=high,
                   interior=inner.params["interior"])


def part_of_concatenate(walk, inner, eqn):
    """Parts of the arrays that lie in it; not where several slices of most of it are one stack's,
    which is put together once.
    """
    (whole,), axis, at, parts = inner.outs, inner.params["axis"], 0, []
    start, stop = list(eqn.params["start"]), list(eqn.params["stop"])
    uncut = (start[axis], stop[axis]) == (0, whole.shape[axis])
    if uncut and walk.uses[whole] > 2 and 2 * eqn.outs[0].type.size > whole.type.size:
        return None
    for x in inner.args:
        n = x.shape[axis]
        first, last = max(start[axis] - at, 0), min(stop[axis] - at, n)
        if first < last and x.__class__ is Var:
            parts.append(sliced(walk, eqn, x, [*start[:axis], first, *start[axis + 1:]],
                                [*stop[:axis], last, *stop[axis + 1:]]))
        elif first < last:
            return None
        at += n
    return instead(eqn, "concatenate", *parts, axis=axis)


def part_of_reshape(walk, inner, eqn):
    """Of an array with one axis put in or two neighbours made one: a part of the array itself."""
    x, whole = inner.args[0], inner.outs[0].shape
    start, stop = list(eqn.params["start"]), list(eqn.params["stop"])
    for k in range(len(whole)):
        if whole[k] == 1 and x.shape == (*whole[:k], *whole[k + 1:]):
            part = sliced(walk, eqn, x, start[:k] + start[k + 1:], stop[:k] + stop[k + 1:])
            return instead(eqn, "reshape", part, shape=eqn.outs[0].shape)
    for k in range(len(whole)):
        if len(x.shape) == len(whole) + 1 and whole == (
                *x.shape[:k], x.shape[k] * x.shape[k + 1], *x.shape[k + 2:]):
            return part_of_merged(walk, eqn, x, k, start, stop)
    return None


def part_of_merged(walk, eqn, x, k, start, stop):
    """x[…,m,s,…] with axes k and k + 1 as one: whole rows of s, from whichever element on.

    Rows that begin at element p of a row are the ends of rows, beside the beginnings of the next.
    """
    s, size = x.shape[k + 1], stop[k] - start[k]
    q, p = divmod(start[k], s)
    if size % s or not 1 < s <= WRITTEN_OUT:
        return None
    pieces = []
    for first, a, b in ((q, p, s), (q + 1, 0, p)):
        if a < b:
            pieces.append(sliced(walk, eqn, x, [*start[:k], first, a, *start[k + 1:]],
                                 [*stop[:k], first + size // s, b, *stop[k + 1:]]))
    both = before(walk, eqn, "concatenate", *pieces, axis=k + 1)
    return instead(eqn, "reshape", both, shape=eqn.outs[0].shape)


def part_of_convolution(walk, inner, eqn):
    """The convolution of what the windows of the part see; None where other axes are cut too, all
    of it is little work, or its parts, each by itself, are more.
    """
    p, (x, w), (out,) = inner.params, inner.args, inner.outs
    whole, size = out.shape, out.type.size
    terms = math.prod(n for c, n in zip(p["rhs"], w.shape) if c in p["window"] or c not in p["to"])
    if walk.wanted[out] > size or terms * size < CUT:
        return None
    start, stop = [dict(zip(p["to"], eqn.params[name])) for name in ("start", "stop")]
    if any(c not in p["window"] and (start[c], stop[c]) != (0, n) for c, n in zip(p["to"], whole)):
        return None
    steps = {c: (s, (w.shape[p["rhs"].index(c)] - 1) * d)
             for c, s, d in zip(p["window"], p["stride"], p["dilation"])}
    low = [start[c] * steps[c][0] if c in steps else 0 for c in p["lhs"]]
    high = [(stop[c] - 1) * steps[c][0] + steps[c][1] + 1 if c in steps else n
            for c, n in zip(p["lhs"], x.shape)]
    return instead(eqn, "conv_general", sliced(walk, eqn, x, low, high), w, **p)


MOVES = {"slice": part_of_slice, "pad": part_of_pad, "concatenate": part_of_concatenate,
         "reshape": part_of_reshape}
PARTS = {**MOVES, "conv_general": part_of_convolution}


def simple_pad(walk, eqn):
    x, (out,) = eqn.args[0], eqn.outs
    return x if x.__class__ is Var and x.type is out.type and not any(eqn.params["low"]) else None


def simple_concatenate(walk, eqn):
    args = [a for a in eqn.args if a.shape[eqn.params["axis"]]] or eqn.args[:1]
    if len(args) == 1 and args[0].type is eqn.outs[0].type:
        return args[0]
    axis = eqn.params["axis"]
    flat = joined(walk, eqn, [b for a in args for b in parts_along(walk, a, axis)], axis)
    if len(flat) == 1 and flat[0].type is eqn.outs[0].type:
        return flat[0]
    return instead(eqn, "concatenate", *flat, **eqn.params) if len(flat) != len(eqn.args) else None


def parts_along(walk, x, axis):
    """The arrays that a concatenated one is made of along the axis, or the array itself."""
    inner = walk.maker(x, "concatenate")
    return inner.args if inner is not None and inner.params["axis"] == axis else (x,)


def joined(walk, eqn, parts, axis):
    """The parts, of neighbouring slices of one array one."""
    out = parts[:1]
    for x in parts[1:]:
        before, behind = walk.maker(out[-1], "slice"), walk.maker(x, "slice")
        if before is not None and behind is not None and adjoin(before, behind, axis):
            out[-1] = sliced(walk, eqn, behind.args[0], before.params["start"],
                             behind.params["stop"])
        else:
            out.append(x)
    return out


def adjoin(before, behind, axis):
    """Does a slice go on along an axis where the one before it ends?"""
    if before.args[0] is not behind.args[0] or max(
            before.params["stride"] + behind.params["stride"]) > 1:
        return False
    spans = [list(zip(e.params["start"], e.params["stop"])) for e in (before, behind)]
    alike = all(a == b for k, (a, b) in enumerate(zip(*spans)) if k != axis)
    return alike and spans[0][axis][1] == spans[1][axis][0]


def simple_reduction(walk, eqn):
    x, axes = eqn.args[0], eqn.params["axes"]
    stack = walk.maker(x, "concatenate")
    if not axes:
        return x
    return combined(walk, eqn, stack) if stack is not None else None


def combined(walk, eqn, stack):
    """A reduction along the axis of a stack: its parts, combined element by element.

    reduce_max(stack a b c)  →  max(max(a, b), c), of which other axes are reduced

    A sum begins with 0.0, as sums do: one of -0.0 alone is 0.0.  None for sums and products of
    short floats, which a reduction rounds once, and for a stack that others than reductions read:
    they would combine the parts again for each part.
    """
    axis, axes, how = stack.params["axis"], eqn.params["axes"], eqn.op.how
    rounds = how in ("sum", "prod") and computed(eqn.outs[0].dtype) is not eqn.outs[0].dtype
    if axis not in axes or rounds or stack.outs[0] in walk.read:
        return None
    if len(stack.args) > COMBINED or any(x.shape[axis] != 1 for x in stack.args):
        return None
    shape = stack.outs[0].type.without((axis,)).shape
    out, *rest = [before(walk, eqn, "reshape", x, shape=shape) for x in stack.args]
    zero = 0.0 if out.dtype.kind == "f" else 0
    for x in [zero, *rest] if how == "sum" and axes == (axis,) else rest:
        out = in_front(walk, eqn, PRIMITIVES[REDUCTIONS[how][0]], [out, x], {}, out.type)
    others = tuple([a - (a > axis) for a in axes if a != axis])
    return instead(eqn, eqn.op.name, out, axes=others) if others else out


def simple_position(walk, eqn):
    """argmax and argmin: the best along the axis, then its place; of one element, that is 0."""
    x, axis = eqn.args[0], eqn.params["axis"]
    if x.__class__ is not Var:
        return None
    if x.shape[axis] == 1:
        return instead(eqn, "full", shape=eqn.outs[0].shape, value=0, dtype=I32)
    dtype = I32 if x.dtype == BOOL else computed(x.dtype)
    if dtype is not x.dtype:
        x = before(walk, eqn, "convert", x, dtype=dtype)
    best = before(walk, eqn, "reduce_" + eqn.op.name[3:], x, axes=(axis,))
    wide = before(walk, eqn, "broadcast", best, shape=x.shape, axes=(axis,))
    is_best, is_nan = before(walk, eqn, "eq", x, wide), before(walk, eqn, "ne", x, x)
    found = before(walk, eqn, "or", is_best, is_nan)
    place = before(walk, eqn, "iota", shape=x.shape, axis=axis, dtype=I32)
    nowhere = before(walk, eqn, "full", shape=x.shape, value=x.shape[axis], dtype=I32)
    chosen = before(walk, eqn, "select", found, place, nowhere)
    return instead(eqn, "reduce_min", chosen, axes=(axis,))


def simple_scatter_add(walk, eqn):
    return simple_update(walk, eqn) or wide_sums(walk, eqn)


def wide_sums(walk, eqn):
    """Many 16-bit floats added into a constant array, as the gradient of rows of a table is: in 32
    bits, rounded once.  Each sum would stop where its rounding takes all that is added.
    """
    x, *indices, u = eqn.args
    (out,), wide = eqn.outs, computed(eqn.outs[0].dtype)
    start = walk.number(x)
    if wide == out.dtype or start is None or u.__class__ is not Var:
        return None
    zeros = before(walk, eqn, "full", shape=out.shape, value=start, dtype=wide)
    u = before(walk, eqn, "convert", u, dtype=wide)
    total = before(walk, eqn, "scatter_add", zeros, *indices, u, **eqn.params)
    return instead(eqn, "convert", total, dtype=out.dtype)


def simple_update(walk, eqn):
    """One element of each row of a constant array, added to or set, as a comparison: so it is
    computed where it is read, as in the gradient of a cross entropy.

        scatter_add zeros (iota of rows) y u   →   select(y == iota of columns, u, 0)
    """
    x, *indices, u = eqn.args
    axes, mode, shape = eqn.params["axes"], eqn.params.get("mode", "clip"), eqn.outs[0].shape
    start = walk.number(x)
    adds = eqn.op.name == "scatter_add"
    if start is None or adds and start != 0 or axes != tuple(range(len(shape))) or 0 in shape:
        return None
    axis = next((a for a in axes if is_row_by_row(walk, indices, a, shape)), None)
    y = None if axis is None else indices[axis]
    if y.__class__ is not Var or y.dtype.kind != "i" or u.__class__ is not Var:
        return None
    rows, last = without(shape, (axis,)), shape[axis] - 1
    y, u = [v if v.shape == rows else before(walk, eqn, "reshape", v, shape=rows) for v in (y, u)]
    if y.dtype.itemsize < 4:
        y = before(walk, eqn, "convert", y, dtype=I32)
    low, high = (0, last) if mode == "clip" else (-1, last + 1)
    y = before(walk, eqn, "min", before(walk, eqn, "max", y, constant(walk, eqn, low, y)),
               constant(walk, eqn, high, y))
    if y.dtype != I32:
        y = before(walk, eqn, "convert", y, dtype=I32)
    if adds and u.dtype.kind == "f":
        u = in_front(walk, eqn, PRIMITIVES["add"], [u, 0.0], {}, u.type)             # of -0.0, too
    y, u = [before(walk, eqn, "broadcast", v, shape=shape, axes=(axis,)) for v in (y, u)]
    place = before(walk, eqn, "iota", shape=shape, axis=axis, dtype=I32)
    rest = constant(walk, eqn, start, u)
    return instead(eqn, "select", before(walk, eqn, "eq", y, place), u, rest)


def constant(walk, eqn, value, like):
    """An array of one number, of the type of another."""
    return before(walk, eqn, "full", shape=like.shape, value=value, dtype=like.dtype)


def is_row_by_row(walk, indices, axis, shape):
    """Is there one index along `axis` for each place of the other axes, by counters along these?"""
    given, rows = indices[0].shape, without(shape, (axis,))
    kept = len(given) == len(shape)
    if given != ((*shape[:axis], 1, *shape[axis + 1:]) if kept else rows):
        return False
    return all(counts(walk, i, a if kept or a < axis else a - 1)
               for a, i in enumerate(indices) if a != axis)


def counts(walk, x, axis):
    """Is an index 0, 1, 2, … along an axis, or would be if it were negative?"""
    chosen = walk.maker(x, "select")
    if chosen is not None:
        test, x = walk.maker(chosen.args[0], "lt"), chosen.args[2]
        if test is None or test.args[0] is not x or walk.number(test.args[1]) != 0:
            return False
    count = walk.maker(x, "iota")
    return (count is not None and count.params["axis"] == axis
            and count.params["dtype"].itemsize >= 4)                 # of 8 bits they begin again


RULES = {
    "add": simple_add, "sub": simple_sub, "mul": simple_mul, "div": simple_div, "neg": simple_neg,
    "max": simple_extreme(lowest), "min": simple_extreme(highest),
    "integer_pow": simple_integer_pow, "select": simple_select, "convert": simple_convert,
    "reshape": moved(simple_reshape), "transpose": moved(simple_transpose),
    "broadcast": moved(simple_broadcast), "rev": moved(simple_rev), "slice": moved(simple_slice),
    "pad": simple_pad, "concatenate": simple_concatenate,
    "argmax": simple_position, "argmin": simple_position,
    "scatter_add": simple_scatter_add, "scatter_set": simple_update,
    "reduce_sum": simple_reduction, "reduce_max": simple_reduction, "reduce_min": simple_reduction,
    "reduce_prod": simple_reduction, "reduce_and": simple_reduction,
    "reduce_or": simple_reduction,
}
