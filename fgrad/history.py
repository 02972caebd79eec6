"""The signatures a jitted function has been traced for: why each one was, and when there are too
many.

It answers `explain()`, gives the notice after five traces, and raises where `max_traces` or the
number of values of one static Python number is passed.  Relies on the keys of `signature.py`; jit
relies on it.
"""

from __future__ import annotations

from collections import deque, namedtuple

from .errors import ConcretizationError, notice
from .signature import Static, difference
from .text import counted
from .types import SHORT

VALUES = 8                 # of one Python number that may be specialised on
NOTICE = 5                 # traces after which the user is told why
KEPT = 100                 # records kept; older ones are only counted


class Record(namedtuple("Record", "structure keys axes context paths captured")):
    """One trace: its signature, and whether it closed over values of a transformation.

    axes: (name, size) of those that a vmap around it names.  context: types.rules(), and
    with it the device, where that is not the CPU.
    """
    __slots__ = ()

    def distance(self, other):
        """In how many things the signatures differ; a different structure outweighs all else."""
        if self.structure != other.structure:
            return float("inf")
        return (sum(a != b for a, b in zip(self.keys, other.keys)) + (self.axes != other.axes)
                + (self.context != other.context))


class History:
    """The traces of one function.  Its owner, a Jitted, guards it with its lock."""

    def __init__(self, name, leaf_name, max_traces):
        self.name, self.leaf_name, self.max_traces = name, leaf_name, max_traces
        self.clear()

    def clear(self):
        """Forgets every trace."""
        self.count, self.records = 0, deque(maxlen=KEPT)
        self.values = {}                         # (structure, leaf number) → {Static, …} traced for

    def add(self, record, static_leaves):
        """Keeps a trace, and tells the user when it is the fifth.

        static_leaves: the numbers of the leaves that are Python numbers and static.
        """
        self.count += 1
        self.records.append(record)
        for leaf in static_leaves:
            self.values.setdefault((record.structure, leaf), set()).add(record.keys[leaf])
        if self.count == NOTICE:
            notice((id(self), "traces"),
                   f"`{self.name}` has been traced {NOTICE} times; {self.why(-1)}. Each trace is "
                   f"compiled anew: {advice(record, closest(record, list(self.records)[:-1]))}")

    def check(self, record, static_leaves):
        """Raises ConcretizationError when there may be no trace of this signature."""
        self.check_values(record, static_leaves)
        if self.max_traces is not None and self.count >= self.max_traces:
            raise ConcretizationError(
                f"{self.name} may be traced {counted(self.max_traces, 'time')}, and is about to be "
                f"traced again: {self.reason(record, list(self.records))}.",
                fix="call it with the same shapes and dtypes, or raise max_traces")

    def check_values(self, record, static_leaves):
        """Raises when a Python number is about to be compiled for a ninth value."""
        for leaf in static_leaves:
            seen, key = self.values.get((record.structure, leaf), ()), record.keys[leaf]
            if len(seen) >= VALUES and key not in seen:
                name = self.leaf_name(record.paths[leaf])
                raise ConcretizationError(
                    f"`{self.name}` needs the value of `{name}`, and has been compiled for "
                    f"{VALUES} values of it.",
                    given=f"{name} = {key}, after " + ", ".join(sorted(map(repr, seen))),
                    fix=[f"static_argnames={name!r}, if it takes few values",
                         "or pass an array of a fixed shape instead"])

    def why(self, k):
        """In words, what made the k-th of the records necessary."""
        records = list(self.records)
        k = range(len(records))[k]
        return self.reason(records[k], records[:k])

    def reason(self, record, before):
        """How a signature differs from the closest one before it; of equals the latest."""
        if not before:
            first = self.count <= len(self.records)
            return "it is the first trace" if first else "the traces before it are not kept"
        old = closest(record, before)
        if old.distance(record):
            return (difference(old[:2], record[:2], old.paths, record.paths, self.leaf_name)
                    or ("the axes that vmap names around it changed"
                        if old.axes != record.axes else None)
                    or change_of_rules(old.context, record.context))
        if old.captured:
            return "it closes over a value of a transformation around it"
        return "the trace of this signature had been dropped"

    def lines(self):
        """One line of text per record."""
        first = self.count - len(self.records) + 1
        return [f"  {first + k}. {self.why(k)}" for k in range(len(self.records))]


def change_of_rules(old, new):
    """In words, how the rules of two traces differ."""
    (before, device), (after, other) = rules_and_device(old), rules_and_device(new)
    if device != other:
        return f"the device changed {device} -> {other}"
    before, after = [c[0] if isinstance(c, tuple) else c for c in (before, after)]
    if before == after:
        return "strict_promotion was switched"
    return f"the default dtype changed {SHORT[before]} -> {SHORT[after]}"


def rules_and_device(context):
    """The parts of a record's context."""
    if isinstance(context, tuple) and isinstance(context[1], str):
        return context
    return context, "cpu"


def closest(record, before):
    """The record before it whose signature differs least; of equals the latest."""
    return min(reversed(before), key=record.distance)


def advice(record, old):
    """How to keep the number of traces down."""
    if record.captured:
        return "pass what it closes over as an argument"
    for a, b in zip(old.keys, record.keys) if old.structure == record.structure else ():
        if a != b and isinstance(b, Static):
            return ("give it the same function object each time" if callable(b.value) else
                    "give a static argument few values, or let it be traced, as an array or float")
    return "keep shapes and dtypes equal (pad the last batch, or drop it)"


def static_numbers(keys, leaves):
    """Those of the leaf numbers whose key is a value."""
    return [leaf for leaf in leaves if isinstance(keys[leaf], Static)]
