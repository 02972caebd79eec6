"""Dead code: equations whose results nothing reads, and what loops carry for nobody.

A loop or branch loses the results that nothing reads, and with them carries, arguments and
equations of its body that only they needed; what has an effect stays, with all that it reads.
A factorisation of which only the values are read computes no vectors.
Relies on the operations of control flow; simplify.py relies on it.
"""

from __future__ import annotations

from ..interpreters.call import chosen
from ..ir import Equation, Program, operation


def without_dead(program):
    """The Program without equations whose results nothing reads, save those with an effect."""
    wanted, kept = set(program.outputs), []
    for eqn in reversed(program.eqns):
        if any(v in wanted for v in eqn.outs) or eqn.effect:
            eqn = pruned(eqn, wanted)
            kept.append(eqn)
            wanted.update(eqn.variables)
    return Program(program.name, program.inputs, reversed(kept), program.outputs, program.hidden)


def pruned(eqn, wanted):
    """A loop, branch or factorisation without the results that nobody wants; other equations as
    they are.
    """
    alone = getattr(eqn.op, "alone", None)
    if alone is not None and [v for v in eqn.outs if v in wanted] == [eqn.outs[alone[0]]]:
        return Equation(operation(alone[1]), eqn.args, {}, (eqn.outs[alone[0]],), eqn.source,
                        eqn.mark)
    prune = PRUNE.get(eqn.op.loop) if eqn.op.nested else None
    if prune is None:
        return eqn
    keep = tuple([v in wanted for v in eqn.outs])
    args, outs, params = prune(eqn.params, keep)
    if all(args) and all(outs):
        return eqn
    return Equation(eqn.op, chosen(eqn.args, args), params, chosen(eqn.outs, outs), eqn.source,
                    eqn.mark)


def read_by(program):
    """Per input: does the Program read it?"""
    read = {v for eqn in program.eqns for v in eqn.variables} | set(program.outputs)
    return [v in read for v in program.inputs]


def only(program, outputs):
    """The Program with some of its outputs, and what these need."""
    return without_dead(Program(program.name, program.inputs, program.eqns,
                                chosen(program.outputs, outputs), program.hidden))


def narrowed(program, inputs):
    """The Program without the inputs where the mask is false, which it does not read."""
    return Program(program.name, chosen(program.inputs, inputs), program.eqns, program.outputs,
                   program.hidden)


# Each gives (mask of arguments, mask of results, parameters).

def prune_scan(params, keep):
    body, n, m = params["body"], params["n_consts"], params["n_carry"]
    carry = keep[:m]
    while True:
        small = only(body, (*carry, *keep[m:]))
        read = read_by(small)
        grown = tuple([a or b for a, b in zip(carry, read[n:n + m])])
        if grown == carry:
            break
        carry = grown
    args = (*read[:n], *carry, *read[n + m:])
    made = {**params, "body": narrowed(small, args), "n_consts": sum(read[:n]),
            "n_carry": sum(carry)}
    return args, (*carry, *keep[m:]), made


def prune_while(params, keep):
    test, body, n = params["cond"], params["body"], params["n_consts"]
    asked = read_by(test)
    carry = tuple([a or b for a, b in zip(keep, asked[n:])])
    while True:
        small = only(body, carry)
        read = read_by(small)
        grown = tuple([a or b for a, b in zip(carry, read[n:])])
        if grown == carry:
            break
        carry = grown
    consts = tuple([a or b for a, b in zip(asked[:n], read[:n])])
    args = (*consts, *carry)
    return args, carry, dict(cond=narrowed(test, args), body=narrowed(small, args),
                             n_consts=sum(consts))


def prune_cond(params, keep):
    small = [only(b, keep) for b in params["branches"]]
    args = [any(read) for read in zip(*map(read_by, small))]
    return (True, *args), keep, {"branches": tuple([narrowed(b, args) for b in small])}


def prune_call(params, keep):
    small = params["program"].derive(only, keep)
    args = tuple(read_by(small))
    return args, keep, {"program": small.derive(narrowed, args)}


PRUNE = {"scan": prune_scan, "while": prune_while, "cond": prune_cond, "call": prune_call}
