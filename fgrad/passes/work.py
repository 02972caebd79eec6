"""What a kernel has to do, whatever runs it: the operations that it computes, the bytes it moves.

    operations(kernel)     additions, multiplications, exponentials …, each as one
    moved(kernel)          buffer → how many bytes of it are read or written, once

Relies on the loop IR; the emitter of the CPU backend and the profiler rely on it.
"""

from __future__ import annotations

from math import prod

from .. import scalar
from ..loop import Contract, For, Start, of_columns, of_elements
from .turns import uses_of


def operations(kernel):
    """How many operations on numbers a kernel computes; a multiply-add counts two."""
    return sum(map(operations_of, kernel.body))


def operations_of(s):
    """Those of one statement."""
    match s:
        case For():
            return s.var.extent // s.step * sum(map(operations_of, s.body))
        case Contract():
            return contracted(s)
        case Start():
            return 0
    return int(getattr(s, "how", None) is not None) + arithmetic(s.expr)


def contracted(s):
    """Those of a Contract: of its factors, its products, then of its body for each of these."""
    batch, rows, columns, depth = [prod(v.extent for v in vs)
                                   for vs in (s.batch, s.rows, s.columns, s.k)]
    each = sum(map(operations_of, of_elements(s)))
    return (batch * rows * columns * (2 * depth + each)
            + batch * depth * (rows * arithmetic(s.a) + columns * arithmetic(s.b))
            + columns * sum(map(operations_of, of_columns(s, s.of_column))))


def arithmetic(expr):
    """The operations of an expression, each of its nodes once."""
    return sum(n.cost > 0 for n in scalar.walk(expr))


def moved(kernel):
    """Buffer → the bytes of it that a kernel reads or writes.

    What is read at places known at run time alone may be little, and does not count.
    """
    found = dict.fromkeys((*kernel.params, *kernel.outputs), 0)
    for b, x, _ in uses_of(kernel):
        if b in found and not x.nodes:
            size = (x.hi - x.lo + 1) * b.type.dtype.itemsize
            found[b] = max(found[b], min(size, b.type.nbytes))
    return found
