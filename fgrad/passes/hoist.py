"""Hoisting: what a loop would compute anew in every step, though it never changes, moves out of it.

    scan[body] w h            body: p = exp w;  h = mul p h      →      p = exp w;  scan[body] p h

An equation of a body that depends on consts alone moves if it is worth storing its result: a
product, a reduction, a factorisation, a loop, a function that costs more than a load.  Cheap ones
stay, and are computed again where they are read; so do other NumPy rules, which may raise, and
effects.
Relies on the operations of control flow.
"""

from __future__ import annotations

from .. import scalar
from ..control.scan import fixed_equations
from ..ir import Equation, Program, Var
from ..ops.elementwise import Elementwise
from ..ops.reduce import Reduce
from ..scalar import EXPENSIVE

STORED = frozenset("""called cholesky conv_general dot_general eigh eigvalsh kept
    lu pinv pivots_to_permutation qr scan slogdet solve svd svdvals triangular_solve""".split())


def hoist(program):
    """The Program with the fixed parts of its loops in front of them; itself if there are none."""
    return program.rewritten(lambda eqn: hoisted(eqn) if eqn.op.nested else [eqn])


def hoisted(eqn):
    """The equations of a loop, or of a call: what moves in front of it, and itself."""
    before = eqn.op.programs(eqn.params)
    programs = [p.derive(hoist) for p in before]
    params = eqn.params
    if any(p is not q for p, q in zip(programs, before)):
        params = eqn.op.replaced(params, programs)
        eqn = Equation(eqn.op, eqn.args, params, eqn.outs, eqn.source, eqn.mark)
    if eqn.op.loop == "cond":
        return [eqn]
    n, body = params.get("n_consts", 0), programs[-1]
    front, new, rest = body.derive(parted, n)
    if not new:
        return [eqn]
    front, made = copied(front, dict(zip(body.inputs, eqn.args[:n])))
    others = [with_consts(p, n, [Var(v.type) for v in new], p.eqns) for p in programs[:-1]]
    args = (*eqn.args[:n], *[made[v] for v in new], *eqn.args[n:])
    params = eqn.op.replaced(params, [*others, rest])
    if "n_consts" in params:
        params["n_consts"] = n + len(new)
    return [*front, Equation(eqn.op, args, params, eqn.outs, eqn.source, eqn.mark)]


def parted(body, n):
    """(the equations that move in front of a body, their results that it reads, the body without
    them, which is given these behind its first n inputs).
    """
    fixed = fixed_equations(body, n)
    worth = [e for e in fixed if is_worth(e)]
    inside = [e for e in body.eqns if not any(e is w for w in worth)]
    read = {v for e in inside for v in e.variables} | set(body.outputs)
    new = [v for e in worth for v in e.outs if v in read]
    return needed(worth, fixed), new, with_consts(body, n, new, inside)


def is_worth(eqn):
    """Does it cost more to compute the result again than to load it?"""
    op = eqn.op
    if op.name in STORED or isinstance(op, Reduce):
        return True
    if isinstance(op, Elementwise) and isinstance(op.scalar, str):
        return scalar.INSTRUCTIONS[op.scalar].cost >= EXPENSIVE
    return False


def needed(worth, fixed):
    """The fixed equations that these need, in order."""
    makers = {v: e for e in fixed for v in e.outs}
    found, todo = {}, list(worth)
    while todo:
        e = todo.pop()
        if id(e) not in found:
            found[id(e)] = e
            todo += [makers[v] for v in e.variables if v in makers]
    return [e for e in fixed if id(e) in found]


def copied(eqns, env):
    """(the equations over other variables, body variable → that variable)."""
    env, out = dict(env), []
    for e in eqns:
        args = [env[a] if a.__class__ is Var else a for a in e.args]
        env.update((v, Var(v.type, v.name)) for v in e.outs)
        out.append(Equation(e.op, args, e.params, [env[v] for v in e.outs], e.source, e.mark))
    return out, env


def with_consts(program, n, new, eqns):
    """The Program with further consts, behind the first n inputs."""
    inputs = (*program.inputs[:n], *new, *program.inputs[n:])
    return Program(program.name, inputs, eqns, program.outputs, program.hidden)
