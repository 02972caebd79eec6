"""Linearization: runs a function on real values and records the linear equations between tangents.

One row (op, out, args, params, active) is recorded per equation that depends on an input; `active`
says per argument which row its tangent comes from, or -1.  `backward.py` transposes the rows.  For
`y = sin(x) * x` the rows are

    0  None                            x, an input
    1  sin, sin(x), (x,),        (0,)
    2  mul, y,      (sin(x), x), (1, 0)

A coefficient of an equation, such as cos(x), is computed when and where the row is transposed, so
recording never changes the current interpreter.  Rows refer to rows by number: a chain of 100,000
operations is a flat list, and nothing recurses.  Relies on core; backward, transforms and `call`
rely on it.
"""

from __future__ import annotations

from .. import slots
from ..core import Interpreter, as_value, current
from ..types import INEXACT_KINDS
from .carried import Carried


class Linear(Carried):
    """A value, and the number of the row that defines its tangent."""
    __slots__ = ("node", "_shape", "_dtype")

    def __init__(self, owner, primal, node):
        self.owner = owner
        self.primal = primal
        self.node = node
        self._shape = primal.shape
        self._dtype = primal.dtype


slots.read_only(Linear, "shape", "dtype")
item = object()            # the operation of a row that is one result of a row with several


class Linearize(Interpreter):
    """Runs on real values, and records."""
    title = "grad"
    derives = True

    def __init__(self, below):
        self.below = below
        self.rows = []
        self.inputs = 0                          # they are the first rows

    def input(self, x):
        """x as an input: its tangent is given from outside."""
        self.rows.append(None)
        self.inputs += 1
        return Linear(self, x, len(self.rows) - 1)

    def process(self, op, args, params):
        if len(args) == 1:
            (a,) = args
            if not (a.__class__ is Linear and a.owner is self):
                return self.below.process(op, args, params)
            primals, active = (a.primal,), (a.node,)
        elif len(args) == 2:
            x, y = args
            first = x.__class__ is Linear and x.owner is self
            second = y.__class__ is Linear and y.owner is self
            if not (first or second):
                return self.below.process(op, args, params)
            primals = (x.primal if first else x, y.primal if second else y)
            active = (x.node if first else -1, y.node if second else -1)
        else:
            own = [a.__class__ is Linear and a.owner is self for a in args]
            if True not in own:
                return self.below.process(op, args, params)
            primals = tuple([a.primal if o else a for a, o in zip(args, own)])
            active = tuple([a.node if o else -1 for a, o in zip(args, own)])
        if not op.differentiable:
            return self.below.process(op, primals, params)
        if op.multiple:
            return self.several(*op.linearize(self.below, primals, active, params))
        out = self.below.process(op, primals, params)
        if out.dtype.kind not in INEXACT_KINDS:
            return out
        rows = self.rows
        rows.append((op, out, primals, params, active))
        return Linear(self, out, len(rows) - 1)

    @property
    def operations(self):
        """The operations of the rows."""
        return [row[0] for row in self.rows if row is not None and row[0] is not item]

    def several(self, outs, row):
        """The results of an operation that has several."""
        rows, node = self.rows, len(self.rows)
        rows.append(row)
        rows.extend([(item, x, (), k, (node,)) for k, x in enumerate(outs)])
        return tuple([Linear(self, x, node + 1 + k) if x.dtype.kind in INEXACT_KINDS else x
                      for k, x in enumerate(outs)])

    def value(self, x):
        """What a value is outside of this interpreter."""
        return x.primal if x.__class__ is Linear and x.owner is self else x


def record(function, primals):
    """(owner, results) of function(*primals), a list of Values; the inputs are rows 0, 1, …"""
    owner = Linearize(current())
    inputs = [owner.input(x) for x in primals]
    try:
        results = [as_value(x) for x in owner.run(function, *inputs)]
    finally:
        owner.finish()
    return owner, results
