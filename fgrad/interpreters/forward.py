"""Forward derivatives: a tangent beside each value.

`Forward` is the interpreter, `Dual` its tracer, `push` the way in.  Relies on core;
`transforms.jvp`, `call` and custom rules rely on it.
"""

from __future__ import annotations

import functools

from ..core import Interpreter, Primitive, as_value, current
from ..ops import zeros_like
from ..types import INEXACT_KINDS
from .carried import Carried
from .stage import staging


class Dual(Carried):
    """A value and its tangent."""
    __slots__ = ("tangent",)

    def __init__(self, owner, primal, tangent):
        self.owner, self.primal, self.tangent = owner, primal, tangent

    shape = property(lambda self: self.primal.shape)
    dtype = property(lambda self: self.primal.dtype)


class Forward(Interpreter):
    """Carries a tangent beside each value."""
    title = "jvp"

    def __init__(self, below):
        self.below, self.stage = below, staging(below)

    def process(self, op, args, params):
        mine = [a.__class__ is Dual and a.owner is self for a in args]
        primals = tuple([a.primal if own else a for a, own in zip(args, mine)])
        if True not in mine or not op.differentiable:
            return self.below.process(op, primals, params)
        tangents = [a.tangent if own else None for a, own in zip(args, mine)]
        if self.stage is None or type(op).forward is not Primitive.forward:
            out, t = self.below.run(op.forward, primals, tangents, params)
        else:
            out = self.below.process(op, primals, params)
            t = self.stage.marked(out, self.below.run, functools.partial(op.jvp, **params), out,
                                  primals, tangents)
        if op.multiple:
            return tuple([Dual(self, x, dx) if dx is not None and x.dtype.kind in INEXACT_KINDS
                          else x for x, dx in zip(out, t)])
        return out if t is None else Dual(self, out, t)


def push(function, primals, tangents):
    """(values, tangents) of function(*primals), a list of Values; a tangent None is zero.

    A tangent of the result is None where it is zero.
    """
    owner = Forward(current())
    args = [x if t is None else Dual(owner, x, t) for x, t in zip(primals, tangents)]
    try:
        outs = [as_value(x) for x in owner.run(function, *args)]
    finally:
        owner.finish()
    own = [x.__class__ is Dual and x.owner is owner for x in outs]
    return ([x.primal if o else x for x, o in zip(outs, own)],
            [x.tangent if o else None for x, o in zip(outs, own)])


def filled(values, tangents):
    """The tangents, or cotangents, with zeros for None."""
    return [zeros_like(x) if t is None else t for x, t in zip(values, tangents)]
