"""The tracer that carries a value of the interpreter below: what derivatives have in common.

Relies on core; `forward` and `partial` build on it.
"""

from __future__ import annotations

from operator import attrgetter

from ..core import Tracer


class Carried(Tracer):
    """A value, `primal`, with something that its owner knows about it; Python may read it."""
    __slots__ = ("primal",)

    is_number = property(attrgetter("primal.is_number"))

    def inner(self):
        return self.primal

    def known(self):
        return self.primal.known() if isinstance(self.primal, Tracer) else self.primal

    def value_for(self, what):
        return self.primal.value_for(what)
