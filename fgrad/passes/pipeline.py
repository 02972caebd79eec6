"""The compiler's middle, start to end: a Program becomes a Plan, or the printed forms on its way.

    tabled       calls                                               what is planned once for all
    prepared     matrices, hoist, series, branches, simplify, share  of the Program
    tabled       tables                                              what depends on nothing
    in_kernels   updates, fuse                                       steps, which share buffers
    lowered      lower, updates                                      loops
    arranged     schedule, turns                                     in another order
    nested       nest                                                Plans inside of it
    plan         memory                                              where every buffer lives

hoist, branches and nest are about control flow: what moves in front of a loop, branches that are
computed side by side, the Plans inside; updates about arrays of which a part is overwritten.
matrices makes loops of what NumPy's LAPACK does else: it halves operations before hoist, so that
what never changes can move, and writes the loops behind it; series writes those of what is found
by iteration.
`plan` is called by the compile driver; `stages` by what shows programs.
"""

from __future__ import annotations

from ..loop import Plan
from ..loop_text import plan_text
from .branches import flat_branches
from .calls import once
from .fuse import fuse
from .fused_text import fused_text
from .hoist import hoist
from .lower import lower
from .matrices import in_halves, in_loops
from .memory import memory_text, plan_memory
from .nest import nest
from .share import share
from .simplify import simplify
from .schedule import schedule, schedule_for
from .series import in_series
from .slices import in_slices
from .tables import with_tables
from .target import CPU
from .turns import in_turns
from .updates import behind_readers, block_writes, stores_last


def plan(program, target=CPU, donate=(), tuner=None):
    """The Program as a Plan for the target.

    donate: positions of inputs whose storage results may take over.  tuner: see `schedule`.
    """
    ready, tables = tabled(program, target)
    return apart(plan_memory(without_memory(ready, target, tuner, donate, {}), donate), tables)


def without_memory(program, target, tuner, donate, called, inner=False):
    """The Plan of a prepared Program, whose nested Plans have their memory.

    donate: positions of inputs that may be overwritten.  called: see `nest`.  inner: it is the body
    of a loop, with a carry, whose kernels store last.
    """
    fused = in_kernels(program, target, donate)
    steps = lowered(fused, target)
    if inner:
        stores_last(steps)
    return nested(planned(fused, arranged(steps, target, tuner)), target, tuner, called)


def nested(plan, target, tuner, called):
    """The Plan itself, whose Loops have Plans of their own."""
    nest(plan, lambda p, donate=(): without_memory(p, target, tuner, donate, called, bool(donate)),
         lambda p: prepared(p, target), called)
    return plan


def in_kernels(program, target, donate=()):
    """The Program shared out into steps."""
    donated = [program.inputs[k] for k in donate]
    return fuse(block_writes(program, donated), target, donated)


def lowered(fused, target):
    """The steps of a fused Program, in loops."""
    return behind_readers(lower(fused, target), {fused.graph.buffer(v) for v in fused.graph.kept})


def arranged(steps, target, tuner):
    """The steps with their loops arranged, and kernels that take turns."""
    return in_turns(schedule(steps, schedule_for(target), tuner), target)


def stages(program, target=CPU, tuner=None):
    """The printed forms of a Program on its way: stage name → text."""
    ready, tables = tabled(program, target)
    fused = in_kernels(ready, target)
    steps = lowered(fused, target)
    loops = plan_text(apart(nested(planned(fused, steps), target, tuner, {}), tables))
    kernels = fused_text(fused)                  # before their loops are arranged
    scheduled = apart(planned(fused, arranged(steps, target, tuner)), tables)
    return {"ir": str(program), "simplified": str(ready), "fused": kernels,
            "loops": loops, "schedule": plan_text(scheduled),
            "memory": memory_text(plan_memory(scheduled))}


def prepared(program, target):
    """The Program after the passes over the array IR."""
    if not target.native_loops:
        program = program.derive(hoist)
    else:
        program = program.derive(in_halves).derive(hoist).derive(in_loops).derive(in_series)
    simple = simplify(flat_branches(program))
    sliced = in_slices(simple)
    return share(simple if sliced is simple else simplify(sliced))


def tabled(program, target):
    """(the Program after the passes over the array IR, its tables): see tables.py."""
    ready = prepared(once(program, target), target)
    return with_tables(ready) if target.tables else (ready, ())


def apart(plan, tables):
    """The Plan itself, the last of whose constants are these tables.  Changes it in place."""
    count = len(plan.constants) - len(tables)
    plan.constants, plan.tables = plan.constants[:count], plan.constants[count:]
    return plan


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
