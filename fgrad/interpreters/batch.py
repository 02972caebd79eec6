"""Batching: the same function over one more axis of its arguments.

`Batch` is the interpreter, `Batched` its tracer, `batch` the way in.  Relies on core;
`transforms.vmap`, `call` and custom rules rely on it.
"""

from __future__ import annotations

from .. import slots
from ..core import Interpreter, Tracer, as_value, bound_axes, current, with_axes
from ..errors import ConcretizationError
from .stage import asking


class Batched(Tracer):
    """A value with one more axis, at `dim`."""
    __slots__ = ("value", "dim", "_shape", "_dtype")

    def __init__(self, owner, value, dim):
        self.owner, self.value, self.dim = owner, value, dim
        self._shape = value.shape[:dim] + value.shape[dim + 1:]
        self._dtype = value.dtype

    def inner(self):
        return self.value

    def describe(self):
        return f"{self.type}<one of {self.owner.size} in vmap>"

    def value_for(self, what):
        raise ConcretizationError(
            f"{asking(what)} needs one value, but inside of vmap there are {self.owner.size} of "
            "them.",
            given=f"{self.type}, a different one for each of the {self.owner.size} elements that "
                  "vmap maps over",
            fix=["choose with fgrad.numpy.where(condition, a, b)",
                 "or loop in Python instead of vmap"])


slots.read_only(Batched, "shape", "dtype")


class Axis:
    """The axis of a vmap; collective operations call it by its name."""

    def __init__(self, size, name=None):
        self.size, self.name = size, name

    def __eq__(self, other):
        return isinstance(other, Axis) and (self.size, self.name) == (other.size, other.name)

    def __hash__(self):
        return hash((self.size, self.name))


class Batch(Interpreter):
    """The same over one more axis.  What names the axis is claimed, batched arguments or not."""
    title = "vmap"

    def __init__(self, below, axis):
        self.below, self.axis, self.size = below, axis, axis.size

    def process(self, op, args, params):
        own = [a.__class__ is Batched and a.owner is self for a in args]
        if True not in own and (self.axis.name is None
                                or self.axis.name not in op.axis_names(params)):
            return self.below.process(op, args, params)
        values = [a.value if o else a for a, o in zip(args, own)]
        dims = tuple([a.dim if o else None for a, o in zip(args, own)])
        out, dim = self.below.run(op.batch_over, self.axis, dims, values, params)
        if op.multiple:
            each = dim if isinstance(dim, tuple) else (dim,) * len(out)
            return tuple([self.tracer(x, d) for x, d in zip(out, each)])
        return self.tracer(out, dim)

    def tracer(self, x, dim):
        """x with its batch axis at `dim`; the same for all where that is None."""
        return x if dim is None else Batched(self, x, dim)


def batch(function, values, dims, axis):
    """(values, dims) of function(*values), a list, over an Axis; per value `dims` says where the
    batch axis is, or None.
    """
    owner = Batch(current(), axis)
    names = bound_axes() if axis.name is None else {**bound_axes(), axis.name: axis.size}
    args = [owner.tracer(x, d) for x, d in zip(values, dims)]
    try:
        outs = [as_value(x) for x in with_axes(names, owner.run, function, *args)]
    finally:
        owner.finish()
    own = [x.__class__ is Batched and x.owner is owner for x in outs]
    return ([x.value if o else x for x, o in zip(outs, own)],
            [x.dim if o else None for x, o in zip(outs, own)])
