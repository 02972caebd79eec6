"""The table of operations: which of the six rules each has, and where a rule comes from.

    stated     written in the operation's own block
    derived    from its row, from `linear_in`, from `jvp`, or from the class that it is one of
    none       with the reason
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core import PRIMITIVES, Primitive
from .collective import Collective
from .elementwise import Elementwise

PRIMITIVES.load()          # so that the table has them all
RULES = ("type", "numpy", "jvp", "transpose", "batch", "pull")


@dataclass(frozen=True)
class Source:
    """Where a rule comes from: "stated", "derived" or "none"; from what, or why there is none."""
    kind: str
    reason: str = ""

    def __str__(self):
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


STATED = Source("stated")
ROW = {"type": "row", "jvp": "partials", "transpose": "partials", "batch": "row",
       "pull": "instruction"}


def source_of(op, rule):
    """The Source of one rule of an operation."""
    if rule in ("jvp", "transpose") and not op.differentiable:
        return Source("none", "not differentiable")
    if rule == "pull" and op.pull is None:
        return pull_replaced(op)
    if isinstance(op, Elementwise) and rule in ROW:
        return STATED if rule == "pull" and callable(op.scalar) else Source("derived", ROW[rule])
    if isinstance(op, Elementwise):
        return Source("derived", "instruction") if op.scalar == op.name else STATED
    if rule == "transpose" and not op.linear_in:
        return Source("derived", "jvp")
    if rule == "transpose" and not hasattr(op, "transpose"):
        return Source("none", "missing")
    if getattr(op, rule, None) is None:
        return Source("none", "no arguments" if rule == "batch" else "missing")
    owner = next(c for c in type(op).__mro__ if rule in vars(c))
    if owner is Primitive:
        return Source("derived", "linear_in")
    siblings = [p for p in PRIMITIVES.values() if isinstance(p, owner)]
    return STATED if len(siblings) == 1 else Source("derived", owner.__name__)


def pull_replaced(op):
    """What compiled code does for an operation that has no pull."""
    if isinstance(op, Collective):
        return Source("none", "vmap makes other operations of it")
    if hasattr(op, "scan"):
        return Source("none", "a serial loop, from scan")
    if hasattr(op, "push"):
        return Source("none", "written where push says")
    return Source("none", "calls the NumPy rule")


def table():
    """Per operation, in the order of definition: its name and the Source of each rule."""
    return [(name, [source_of(op, rule) for rule in RULES]) for name, op in PRIMITIVES.items()]


def table_text():
    """The table as aligned text."""
    rows = [("operation", *RULES), *((name, *map(str, sources)) for name, sources in table())]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
