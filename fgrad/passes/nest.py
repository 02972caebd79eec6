"""Nesting: the Programs of loops and branches become Plans of their own, with room to work in.

A step of a scan or while writes over the carry it reads wherever its kernels allow that (`donated`
in the inner Plan); a carry that is not touched is not written; any other has a second buffer, and
the two change places after each step.  The temporaries of inner Plans lie in one `block` of the
outer arena.  It relies on memory.py; backends run the Loops.
"""

from __future__ import annotations

from ..control import barrier
from ..ir import Equation, Program, Var
from ..loop import Buffer, Loop
from ..types import BOOL, I32, U8, ArrayType
from .memory import plan_memory


def nest(plan, make, prepared, called):
    """Gives every Loop of the Plan its inner Plans.  Changes it in place.

    make(program, donate) → a Plan without memory; inputs of the positions `donate` may be
    overwritten.  prepared(program): the Program, simplified.  called: Program → Plan, of those that
    are called; what is new is added.
    """
    for step in plan.steps:
        if not isinstance(step, Loop):
            continue
        if step.kind == "call":
            (program,) = step.programs
            if program not in called:
                called[program] = inner(step, 0, make, prepared)
            step.plans = (called[program],)
        else:
            step.plans = tuple([inner(step, k, make, prepared) for k in range(len(step.programs))])
        furnish(step)


def inner(loop, k, make, prepared):
    """The Plan of Program k of a loop, with its memory."""
    program = prepared(loop.programs[k])
    at = len(loop.consts)
    if loop.kind in ("cond", "call"):
        return plan_memory(make(separate(program, program.inputs, {})))
    carry = dict(enumerate(program.inputs[at:at + len(loop.starts)]))
    if loop.kind == "while" and k == 0:
        return plan_memory(make(separate(program, program.inputs, {})))
    positions = [at + j for j in carry]
    plan = make(separate(program, program.inputs, carry), positions)
    partner = {plan.inputs[at + j]: plan.outputs[j] for j in carry}
    return plan_memory(plan, positions, partner)


def separate(program, given, own):
    """The Program with every result a variable of its own, save that result k may be own[k].

    An argument that is a result, or a result that comes twice, is copied.
    """
    taken, eqns, outputs = set(given), [], []
    for k, v in enumerate(program.outputs):
        if v in taken and own.get(k) is not v:
            copy = Var(v.type, v.name)
            eqns.append(Equation(barrier, (v,), {}, (copy,)))
            v = copy
        taken.add(v)
        outputs.append(v)
    return Program(program.name, program.inputs, (*program.eqns, *eqns), outputs, program.hidden)


def furnish(loop):
    """Gives the loop the buffers that it works in."""
    arena = max(p.arena for p in loop.plans)
    if arena:
        loop.block = Buffer(f"{loop.name}_block", ArrayType(U8, (arena,)))
    if loop.kind == "while":
        loop.flag = Buffer(f"{loop.name}_flag", ArrayType(BOOL, ()))
    if any(x is None for x in loop.xs):
        loop.counter = Buffer(f"{loop.name}_counter", ArrayType(I32, ()))
    if loop.kind != "cond":
        body, at = loop.plans[-1], len(loop.consts)
        for j, end in enumerate(loop.ends):
            carry, out = body.inputs[at + j], body.outputs[j]
            if carry is not out and body.donated.get(out) is not carry:
                loop.others[j] = Buffer(f"{end.name}_other", end.type)
