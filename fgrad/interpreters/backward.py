"""Reverse derivatives: the rows of a Linearize, transposed from last to first.

`backward` gives the cotangents of inputs from those of results, in one loop: nothing recurses.  The
rule of an operation is `pullback` where it has one; else it transposes what it is linear in; else
its `jvp`, which is linear in the tangents, is recorded and transposed.  None is a zero cotangent.
Relies on partial; transforms, `call` and custom rules rely on it.
"""

from __future__ import annotations

from ..core import Value, as_value, current
from ..errors import GradientError
from ..ir import evaluate_types
from ..ops import add, plus, zeros_like
from ..types import SCALARS
from . import partial
from .partial import Linear, Linearize, item
from .stage import staging


def backward(owner, results, cts):
    """The cotangents of the owner's inputs, a list, given those of `results`, which are values of
    its.
    """
    rows, found = owner.rows, [None] * len(owner.rows)
    for x, ct in zip(results, cts):
        if ct is not None and x.__class__ is Linear and x.owner is owner:
            found[x.node] = plus(found[x.node], ct)
    stage = staging(current())
    before = stage and stage.mark
    for node in range(len(rows) - 1, -1, -1):
        ct, row = found[node], rows[node]
        if ct is None or row is None:
            continue
        found[node] = None
        op, out, args, params, active = row
        if op is item:
            (parent,) = active
            found[parent] = found[parent] or [None] * siblings(rows, parent)
            found[parent][params] = ct
            continue
        if stage is not None:
            stage.derivative_of(out[0] if op.multiple else out)
        for parent, part in zip(active, pullback(op, ct, out, args, active, params)):
            if parent >= 0 and part is not None:
                have = found[parent]
                found[parent] = part if have is None else add(have, part)
    if stage is not None:
        stage.mark = before
    return found[:owner.inputs]


def siblings(rows, node):
    """The number of results of the row."""
    return len(rows[node][1])


def pullback(op, ct, out, args, active, params):
    """Per argument of a row its cotangent, or None.  `ct` is a list where the operation has several
    results.
    """
    if op.pullback is not None:
        return op.pullback(ct, out, args, active, params)
    if not op.linear_in:
        return transposed_jvp(op, ct, out, args, active, params)
    parts = [None] * len(active)
    for i, node in enumerate(active):
        if node >= 0 and i in op.linear_in:
            parts[i] = op.transpose(ct, i, *args, **params)
    return parts


def transposed_jvp(op, ct, out, args, active, params):
    """The pullback of an operation by its jvp, which is linear in the tangents."""
    record = Record(current())
    tangents = [None if node < 0 else record.input(a) for a, node in zip(args, active)]
    t = record.run(lambda: op.jvp(out, args, tangents, **params))
    results, cts = (t, ct) if op.multiple else ((t,), (ct,))
    found = iter(backward(record, results, cts))
    return [None if node < 0 else next(found) for node in active]


class Unknown(Value):
    """The value of something that is only known to be linear in the inputs of a Record."""
    __slots__ = ("shape", "dtype")

    def __init__(self, like):
        self.shape, self.dtype = like.shape, like.dtype

    @property
    def np(self):
        raise self.leaked()

    def value_for(self, what):
        raise self.leaked()

    def leaked(self):
        """The error for using it in a way that is not linear."""
        return GradientError(
            "a derivative rule is not linear in its tangents, so it has no reverse.",
            given=f"a tangent {self.type} is multiplied by another, or its value is used",
            fix="compute with tangents by +, -, and products with values that are no tangents")

    def __repr__(self):
        return f"{self.type}<tangent>"


class Record(Linearize):
    """Records a function that is linear in its inputs; values that are not its own go below."""
    title = "a derivative rule"

    def input(self, x):
        return super().input(Unknown(x))

    def process(self, op, args, params):
        own = [a.__class__ is Linear and a.owner is self for a in args]
        if True not in own:
            return self.below.process(op, args, params)
        primals = tuple([a.primal if o else a for a, o in zip(args, own)])
        active = tuple([a.node if o else -1 for a, o in zip(args, own)])
        outs = [Unknown(t) for t in evaluate_types(op, [type_of(a) for a in primals], params)]
        if op.multiple:
            found = self.several(outs, op.record(outs, primals, active, params))
            if op.depends is None or all(live := op.depends(tuple(own), params)):
                return found
            zeros = [zeros_like(a) if o else a for a, o in zip(primals, own)]
            known = self.below.process(op, zeros, params)        # whatever the inputs may be
            return tuple([x if depends else k for x, k, depends in zip(found, known, live)])
        self.rows.append((op, outs[0], primals, params, active))
        return Linear(self, outs[0], len(self.rows) - 1)


def type_of(a):
    """The type of a value; a Python number stands for itself."""
    return a if a.__class__ in SCALARS else as_value(a).type


def transposed(function, likes, cts):
    """The cotangents of the inputs of a function that is linear, given those of its results.

    likes: Values with the shapes and dtypes of the inputs.  None is zero.
    """
    owner = Record(current())
    inputs = [owner.input(x) for x in likes]
    results = owner.run(function, *inputs)
    owner.finish()
    return backward(owner, results, cts)


def pull(function, primals):
    """(values, pulled) of function(*primals); pulled(cts) gives the cotangents of the primals."""
    owner, results = partial.record(function, primals)

    def pulled(cts):
        return backward(owner, results, cts)
    return [owner.value(x) for x in results], pulled
