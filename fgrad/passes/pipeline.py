"""The compiler's middle, start to end: a Program becomes a Plan, or the printed forms on its way.

    simplify → share → fuse → lower → schedule → memory

`plan` is called by the compile driver; `stages` by what shows programs.
"""

from __future__ import annotations

from ..loop import Plan
from .fuse import fuse
from .lower import lower
from .memory import plan_memory
from .schedule import schedule, schedule_for
from .target import CPU


def plan(program, target=CPU, donate=()):
    """The Program as a Plan for the target.

    donate: positions of inputs whose storage results may take over.
    """
    fused = fuse(prepared(program), target)
    out = planned(fused, lower(fused, target))
    schedule(out.steps, schedule_for(target))
    return plan_memory(out, donate)


def prepared(program):
    """The Program after the passes over the array IR."""
    return program


def planned(fused, steps):
    """The Plan of these steps, without its memory."""
    graph, program = fused.graph, fused.program
    kinds(graph, program)
    inputs = [graph.buffer(v) for v in program.inputs]
    constants = [(graph.buffer(v), x) for v, x in program.hidden]
    return Plan(program.name, inputs, [graph.buffer(v) for v in program.outputs], constants, steps)


def kinds(graph, program):
    """Says of every buffer what it is: input, constant, output or temporary."""
    for v in program.outputs:
        graph.buffer(v).kind = "output"
    for v in program.inputs:
        graph.buffer(v).kind = "input"
    for v, _ in program.hidden:
        graph.buffer(v).kind = "constant"
