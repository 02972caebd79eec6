"""Simplifying array programs: identities that hold for every value, NaN, infinities and -0.0
included.

    x * 1, x - 0, x / 1, --x  →  x          x + -y  →  x - y         x / 4  →  x * 0.25
    transpose of transpose, reshape of reshape, broadcast of broadcast  →  one of them
    any operation on constants alone  →  a constant

x * 0 is not 0 (NaN) and x + 0.0 is not x (-0.0), so they stay.  One walk forwards applies RULES,
one walk backwards drops what nothing reads: linear in the number of equations.
"""

from __future__ import annotations

import math

import numpy as np

from ..core import PRIMITIVES, array_in, array_of, memory_of, numpy_rule
from ..ir import Equation, Program, Var
from ..ops.elementwise import Elementwise
from ..types import SCALARS, ArrayType, finfo, held_as, is_exact
from .prune import without_dead

AGAIN = 8                  # times that one equation is rewritten


def simplify(program):
    """The Program with RULES applied, without dead equations."""
    walk = Walk()
    for eqn in program.eqns:
        walk.add(eqn)
    outputs = [walk.now(v) for v in program.outputs]
    return without_dead(Program(program.name, program.inputs, walk.eqns, outputs, program.hidden))


class Walk:
    """Equations so far; `makers` of their results; what has become of variables that are gone."""

    def __init__(self):
        self.eqns, self.makers, self.instead = [], {}, {}

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
        return found if found is not None else self.folded(eqn)

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
        """The equation as `full`, if it is a row of elementwise.py and all it reads is constant."""
        if not isinstance(eqn.op, Elementwise) or not eqn.args:
            return None
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


def with_args(eqn, args):
    """The equation with other arguments."""
    if all(a is b for a, b in zip(args, eqn.args)):
        return eqn
    return Equation(eqn.op, args, eqn.params, eqn.outs, eqn.source, eqn.mark)


def instead(eqn, name, *args, **params):
    """The operation `name` in place of an equation's."""
    return Equation(PRIMITIVES[name], args, params, eqn.outs, eqn.source, eqn.mark)


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
    return None


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


def simple_neg(walk, eqn):
    inner = walk.maker(eqn.args[0], "neg")
    return inner.args[0] if inner is not None else None


def simple_integer_pow(walk, eqn):
    n, (x,) = eqn.params["n"], eqn.args
    return x if n == 1 else instead(eqn, "mul", x, x) if n == 2 else None


def simple_select(walk, eqn):
    _, x, y = eqn.args
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
    """A part of a padded array is less padded; that of a convolution needs a part of its array."""
    if x.type is out.type:
        return x
    if max(eqn.params["stride"], default=1) > 1:
        return None
    inner = walk.maker(x, "pad")
    if inner is not None:
        return part_of_pad(inner, eqn)
    inner = walk.maker(x, "conv_general")
    return part_of_convolution(walk, inner, eqn) if inner is not None else None


def part_of_pad(inner, eqn):
    """pad with less around, or None where the part leaves elements of the array away."""
    x, start, stop = inner.args[0], eqn.params["start"], eqn.params["stop"]
    low = tuple(a - b for a, b in zip(inner.params["low"], start))
    high = tuple(a - (n - b) for a, n, b in zip(inner.params["high"], inner.outs[0].shape, stop))
    if any(inner.params["interior"]) or min((*low, *high)) < 0 or x.__class__ is not Var:
        return None
    return instead(eqn, "pad", *inner.args, low=low, high=high, interior=inner.params["interior"])


def part_of_convolution(walk, inner, eqn):
    """The convolution of what the windows of the part see, or None where other axes are cut too."""
    p, (x, w), whole = inner.params, inner.args, inner.outs[0].shape
    start, stop = [dict(zip(p["to"], eqn.params[name])) for name in ("start", "stop")]
    if any(c not in p["window"] and (start[c], stop[c]) != (0, n)
           for c, n in zip(p["to"], whole)) or (
            0 in eqn.outs[0].shape):
        return None
    steps = {c: (s, (w.shape[p["rhs"].index(c)] - 1) * d)
             for c, s, d in zip(p["window"], p["stride"], p["dilation"])}
    low = tuple(start[c] * steps[c][0] if c in steps else 0 for c in p["lhs"])
    high = tuple((stop[c] - 1) * steps[c][0] + steps[c][1] + 1 if c in steps else n
                 for c, n in zip(p["lhs"], x.shape))
    seen = Var(x.type.with_shape(b - a for a, b in zip(low, high)))
    walk.add(Equation(PRIMITIVES["slice"], [x], dict(start=low, stop=high, stride=(1,) * len(low)),
                      [seen], inner.source, inner.mark))
    return instead(eqn, "conv_general", walk.now(seen), w, **p)


def simple_pad(walk, eqn):
    x, (out,) = eqn.args[0], eqn.outs
    return x if x.__class__ is Var and x.type is out.type and not any(eqn.params["low"]) else None


def simple_concatenate(walk, eqn):
    args = [a for a in eqn.args if a.shape[eqn.params["axis"]]] or eqn.args[:1]
    if len(args) == 1 and args[0].type is eqn.outs[0].type:
        return args[0]
    return instead(eqn, "concatenate", *args, **eqn.params) if len(args) < len(eqn.args) else None


def simple_reduction(walk, eqn):
    return eqn.args[0] if not eqn.params["axes"] else None


RULES = {
    "add": simple_add, "sub": simple_sub, "mul": simple_mul, "div": simple_div, "neg": simple_neg,
    "integer_pow": simple_integer_pow, "select": simple_select, "convert": simple_convert,
    "reshape": moved(simple_reshape), "transpose": moved(simple_transpose),
    "broadcast": moved(simple_broadcast), "rev": moved(simple_rev), "slice": moved(simple_slice),
    "pad": simple_pad, "concatenate": simple_concatenate,
    "reduce_sum": simple_reduction, "reduce_max": simple_reduction, "reduce_min": simple_reduction,
    "reduce_prod": simple_reduction,
}
