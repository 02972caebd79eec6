"""Updates in place: what writes a part of an array does not copy the rest, where nobody needs it.

A push begins with a copy of the array it changes.  memory.py drops the copy where the array dies in
it: a temporary, a donated argument, the carry of a loop.  For that

    block_writes   lets `dynamic_update_slice` of such an array be a push, not a select over all
    behind_readers lets steps that overwrite an array come behind those that still read it
    stores_last    lets kernels of loops compute everything before they store

and fuse.py stores what a push writes before it overwrites what that is computed from.
"""

from __future__ import annotations

from .. import scalar
from ..ir import Equation, Program
from ..loop import Call, For, Kernel, Let, Loop, Store, copied
from ..ops import dynamic_update_slice, update_slice
from .names import Words, words_of
from .pull import step_of

PART = 4                   # times as large as the block is an array that is written in place


def block_writes(program, donated):
    """The Program, where blocks are written into arrays that may be overwritten.

    donated: inputs whose memory may be taken over.
    """
    spent, kept = set(donated), set(program.outputs)
    for eqn in program.eqns:
        if step_of(eqn.op) != "pull" or eqn.op is dynamic_update_slice:
            kept.update(eqn.variables)
    eqns = []
    for eqn in program.eqns:
        if eqn.op is dynamic_update_slice:
            x, block = eqn.args[:2]
            if x in spent and eqn.outs[0] in kept and PART * block.type.size <= x.type.size:
                eqn = Equation(update_slice, eqn.args, eqn.params, eqn.outs, eqn.source, eqn.mark)
        if step_of(eqn.op) != "pull":
            spent.update(eqn.outs)
        eqns.append(eqn)
    return Program(program.name, program.inputs, eqns, program.outputs, program.hidden)


def behind_readers(steps, kept):
    """The steps, where those that may overwrite an array come behind all that read it and do not
    need what they make.

    kept: Buffers that may not be overwritten.
    """
    steps, last = list(steps), last_readers(steps)
    for k in reversed(range(len(steps))):
        step, at = steps[k], k
        for b in overwritten(step):
            if last[b] > at and b not in kept:
                steps[at:] = put_off(steps[at:], last[b] + 1 - at)
                last, at = last_readers(steps), steps.index(step, at)
    return steps


def last_readers(steps):
    """Buffer → the number of the last step that reads it."""
    return {b: k for k, s in enumerate(steps) for b in s.params if hasattr(b, "kind")}


def overwritten(step):
    """The buffers that a step copies first, to change the copy."""
    if isinstance(step, Loop):
        return step.starts
    b = copied(step)
    return [b] if b is not None else []


def put_off(steps, count):
    """The steps, those of the first `count` that do not need the first one in front of it.

    Effects keep their order: behind one that is put off come all later ones.
    """
    made, effects, before, behind = set(steps[0].outputs), False, [], []
    for s in steps[:count]:
        effect = has_effect(s)
        if s is steps[0] or effects and effect or not made.isdisjoint((*s.params, *s.outputs)):
            made.update(s.outputs)
            effects = effects or effect
            behind.append(s)
        else:
            before.append(s)
    return before + behind + steps[count:]


def has_effect(step):
    """Does a step do more than give its results?"""
    if isinstance(step, Loop):
        return any(p.effect for p in step.programs)
    return isinstance(step, Call) and step.op.effect


def stores_last(steps):
    """Lets kernels compute everything before they store, so that more may be written over.

        a[] = i[] + 1               t1 = i[] + 1;  t2 = s0[] + i[]
        s[] = s0[] + i[]      →     a[] = t1;  s[] = t2
    """
    for kernel in steps:
        if not isinstance(kernel, Kernel):
            continue
        with kernel.space:
            kernel.body = stored_last(kernel.body, Words(words_of(kernel.body)))


def stored_last(body, words):
    """The statements, with plain stores behind everything that is computed."""
    for s in body:
        if isinstance(s, For):
            s.body = stored_last(s.body, words)
    plain = [s for s in body if isinstance(s, Store) and not s.how and not s.when
             and not s.index.nodes]
    if len(plain) < 2 or not all(isinstance(s, Let) or s in plain for s in body):
        return body
    out = []
    for s in body:
        if isinstance(s, Let) or s.expr.op in ("name", "const"):
            out += [s] if isinstance(s, Let) else []
            continue
        word = words.numbered("t")
        out.append(Let(word, s.expr, s.source))
        s.expr = scalar.name(word, s.expr.dtype, s.expr.free)
    return out + plain
