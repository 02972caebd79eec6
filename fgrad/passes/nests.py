"""What fusing makes of a Program: kernels to be, and the steps between them.

`fuse.py` makes them, with `forms.py` and `findings.py`; `lower.py` turns them into loops.
"""

from __future__ import annotations

from .. import index, scalar
from ..records import new, record
from .product import TOTAL
from .pull import Graph, Puller


@record
class Root:
    """A stored value: value[index] = expr (or how= expr) in the loops `nest`, outermost first."""
    value: object
    nest: tuple
    index: tuple
    expr: scalar.Node
    how: str = None


@record
class Nest:
    """A kernel to be: stored values that share loops.

    product: the kernel is a contraction.  first: the value it was started for.  passes, judged:
    see recompute.holes.  known: root → (what it reads, its nodes, the sums it computes).  again:
    the kernel of the attempt before that this one repeats.
    """
    number: int
    space: index.Space
    puller: Puller
    nest: tuple
    roots: list = new(list)
    reads: set = new(set)
    size: int = 0
    product: object = None
    first: object = None
    passes: dict = new(dict)
    judged: set = new(set)
    known: dict = new(dict)
    again: object = None


@record
class Step:
    """An equation that is a step of its own.  kind: "scan", "push", "call" or "loop"."""
    number: int
    kind: str
    eqn: object


@record
class Fused:
    """A Program shared out into steps."""
    program: object
    graph: Graph
    stored: set
    steps: list


def read_by(step):
    """The stored values that a step reads."""
    return step.reads if isinstance(step, Nest) else step.eqn.variables


def sums_columns(nest):
    """Does the kernel of a product also sum the columns of what it multiplies?"""
    return any(r.how == TOTAL for r in nest.roots)


def wide(shape):
    """The extents of the axes that are longer than 1."""
    return tuple(n for n in shape if n != 1)


def extents(variables):
    """The extents of some loop variables."""
    return tuple(v.extent for v in variables)
