"""The functions that formulas are written in: a formula takes them first; the rest are operators.

    def softsign(m, x):                  m = OF_ARRAYS: x is an array of NumPy's
        return x / (1 + abs(x))          m = OF_TERMS: x is a Term, a node of compiled code

A Term may hold something else than a node: `passes/series.py` has such of operations.
Relies on `scalar`; `special`, `incomplete` and `integrals` rely on it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from .. import scalar


class Dual(NamedTuple):
    """A value of a formula, and its derivative; what is no Dual is constant.  A pytree."""
    value: object
    slope: object
    __array_ufunc__ = None                       # an array beside one leaves the operator to it

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def __add__(self, other):
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        return Dual(self.value + other, self.slope)

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if isinstance(other, Dual):
            return Dual(self.value * other.value,
                        self.slope * other.value + self.value * other.slope)
        return Dual(self.value * other, self.slope * other)

    def __truediv__(self, other):
        if isinstance(other, Dual):
            return self * (1 / other)
        return Dual(self.value / other, self.slope / other)

    def __rtruediv__(self, other):
        inverse = 1 / self.value
        value = other * inverse
        return Dual(value, -(value * inverse) * self.slope)

    __radd__, __rmul__ = __add__, __mul__


class Term:
    """A node with the operators that formulas are written in; Python numbers are constants."""
    __slots__ = ("node",)

    def __init__(self, node):
        self.node = node

    @property
    def dtype(self):
        return self.node.dtype

    def of(self, name, *nodes):
        """The Term that an instruction makes of nodes."""
        return Term(scalar.apply(name, *nodes))

    def constant(self, x):
        """The node of another operand."""
        return x.node if isinstance(x, Term) else scalar.const(x, self.node.dtype)

    def __neg__(self):
        return self.of("neg", self.node)

    def __abs__(self):
        return self.of("abs", self.node)


def operator(name, swapped=False):
    """The operator of Terms that an instruction is."""
    def apply(self, other):
        if isinstance(other, Dual):
            return NotImplemented
        a, b = self.node, self.constant(other)
        return self.of(name, *((b, a) if swapped else (a, b)))
    return apply


for symbol, name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}.items():
    setattr(Term, f"__{symbol}__", operator(name))
    setattr(Term, f"__r{symbol}__", operator(name, swapped=True))
for name in ("lt", "le", "gt", "ge", "eq", "and", "or"):
    setattr(Term, f"__{name}__", operator(name))


def where(condition, x, y):
    """The Term that is x where the condition holds, else y; one of them may be a number."""
    like = x if isinstance(x, Term) else y
    return like.of("select", condition.node, like.constant(x), like.constant(y))


def function(name):
    """The function of Terms that an instruction is."""
    return lambda x: x.of(name, x.node)


NAMES = ("exp", "log", "log1p", "sin", "tan", "sqrt", "floor", "sign", "erf", "round")
OF_TERMS = SimpleNamespace(where=where, **{n: function(n) for n in NAMES})
OF_ARRAYS = SimpleNamespace(where=np.where, **{n: scalar.INSTRUCTIONS[n].numpy for n in NAMES})
