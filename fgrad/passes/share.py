"""Sharing: equations that compute the same thing become one.

    a = mul x x;  b = mul x x;  c = add a b      →      a = mul x x;  c = add a a

Operations are pure, so equal operations on equal arguments with equal parameters have equal
results; those with an effect stay as they are. One walk, linear in the number of equations.
"""

from __future__ import annotations

from ..ir import Program, Var
from ..ir_text import canonical_params
from .simplify import with_args


def share(program):
    """The Program with each distinct equation once."""
    known, instead, eqns = {}, {}, []
    for eqn in program.eqns:
        eqn = with_args(eqn, [instead.get(a, a) if a.__class__ is Var else a for a in eqn.args])
        key = key_of(eqn) if not eqn.effect else eqn
        found = known.setdefault(key, eqn)
        if found is eqn:
            eqns.append(eqn)
        else:
            instead.update(zip(eqn.outs, found.outs))
    outputs = [instead.get(v, v) for v in program.outputs]
    return Program(program.name, program.inputs, eqns, outputs, program.hidden)


def key_of(eqn):
    """Equal for equations that compute the same; numbers are told apart by class and sign."""
    args = tuple([a if a.__class__ is Var else repr(a) for a in eqn.args])
    params = canonical_params(eqn.params, Blocks()) if eqn.params else ""
    return eqn.op, args, params


class Blocks(dict):
    """Programs among parameters are told apart by identity."""

    def __missing__(self, key):
        return key
