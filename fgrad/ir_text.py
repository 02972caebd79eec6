"""The text of array programs: `show` prints, `parse` reads it back, `canonical` is the key of
caches.

    loss(w: f32[3,2], x: f32[8,3]) -> f32[]
      h: f32[8,2] = dot_general[ij,jk->ik] x w   │ two_lines.py:5   @ w
      a: f32[]    = reduce_sum[axes=(0,1)] h     │             :6   sum
      return a

Names the user wrote are kept, others are letters.  The right column has the user's line where it
differs from the line above; ∂ marks the derivative of that line.  Closed-over arrays print as
further inputs. Programs that are parameters of operations print below, as blocks of their own.
Relies on `ir.py`; passes, caches and users rely on it.
"""

from __future__ import annotations

import math

import numpy as np

from . import later, source, text
from .bf16 import BFloat16
from .ir import Program, Var, programs_in
from .types import LONG, SHORT

WORDS = {"True": True, "False": False, "None": None, "inf": math.inf, "nan": math.nan}
RESERVED = {*WORDS, *LONG, "return"}
__getattr__, __dir__ = later.names(__name__, {"ir_parse": "parse"})


# ---------------------------------------------------------------------------- print

def show(program):
    """The text of a program and of the programs in it."""
    blocks = all_programs(program)
    names = text.Names(RESERVED)
    titles = {id(p): names.unique(text.identifier(p.name)) for p in blocks}
    return "\n\n".join(block(p, titles) for p in blocks)


def all_programs(program):
    """The program, and those in parameters of its equations, once each, users before what they use.
    """
    done = {}

    def visit(p):
        if id(p) not in done:
            inner = [q for eqn in p.eqns for v in eqn.params.values() for q in programs_in(v)]
            for q in reversed(inner):
                visit(q)
            done[id(p)] = p
    visit(program)
    return list(done.values())[::-1]


def block(program, titles):
    """The text of one program."""
    names = variable_names(program)

    def typed(v):
        return f"{names[v]}: {v.type}"
    inputs = ", ".join(map(typed, every_input(program)))
    results = ", ".join(str(v.type) for v in program.outputs)
    head = f"{titles[id(program)]}({inputs}) -> {results or '()'}"
    lines = equations([", ".join(map(typed, eqn.outs)) for eqn in program.eqns],
                      [right_side(eqn, names, titles) for eqn in program.eqns])
    notes = margin(program.eqns)
    if any(notes):
        width = max(map(len, lines), default=0)
        lines = [f"{line:{width}} │ {note}".rstrip() for line, note in zip(lines, notes)]
    last = "  return " + " ".join(names[v] for v in program.outputs)
    return "\n".join([head, *lines, last.rstrip()])


def equations(lefts, rights):
    """`left = right` per equation, with the = below each other, or `right` where nothing is left;
    several results do not widen the column.
    """
    width = max([len(left) for left in lefts if ", " not in left] or [0])
    return [f"  {left:{width}} = {right}" if left else f"  {right}"
            for left, right in zip(lefts, rights)]


def right_side(eqn, names, titles):
    """`op[params] args`."""
    inside = bracket(eqn.params, titles)
    args = "".join(" " + (names[a] if a.__class__ is Var else repr(a)) for a in eqn.args)
    return f"{eqn.op.name}{f'[{inside}]' if inside else ''}{args}"


def bracket(params, titles):
    """The parameters: labels of a contraction as `ij,jk->ik`, others as key=value."""
    if params.keys() == {"lhs", "rhs", "to"}:
        return "{lhs},{rhs}->{to}".format(**params)
    return " ".join(f"{k}={value_text(v, titles)}" for k, v in params.items())


def value_text(v, titles):
    """A parameter without blanks, save in quoted strings."""
    if v.__class__ is tuple:
        parts = [value_text(p, titles) for p in v]
        return f"({','.join(parts)}{',' if len(parts) == 1 else ''})"
    if v.__class__ is Program:
        return titles[id(v)]
    if isinstance(v, (np.dtype, BFloat16)):
        return SHORT[v]
    if callable(v):
        return f"<{getattr(v, '__name__', type(v).__name__)}>"
    return repr(v)


def every_input(program):
    """The inputs, then the variables of closed-over arrays."""
    return (*program.inputs, *(v for v, _ in program.hidden))


def variable_names(program):
    """Variable → its name: the argument's, the one that the user stored the value in, or a letter.
    """
    names, found = text.Names(RESERVED), {}
    inputs = every_input(program)
    for v in inputs:
        if v.name:
            found[v] = names.unique(text.identifier(v.name))
    first = None                                 # equation of the user's operation
    for eqn, after in zip(program.eqns, (*program.eqns[1:], None)):
        first = eqn if first is None or place_of(first) != place_of(eqn) else first
        for v in eqn.outs:
            name = v.name or (stored(eqn, after, first) if len(eqn.outs) == 1 else None)
            if name:
                found[v] = names.unique(text.identifier(name))
    for v in (*inputs, *(v for eqn in program.eqns for v in eqn.outs)):
        if v not in found:
            found[v] = names.letter()
    return found


def stored(eqn, after, first):
    """The name that the user's line gives to the result: the last equation of an operation has it.

    In a loop the line comes again, and begins with the operation of its `first` equation.
    """
    same_line = after is not None and place_of(after) == place_of(eqn)
    if same_line and (eqn.mark or after.op is not first.op):
        return None
    return source.stored_name(eqn.source) if eqn.source.__class__ is tuple else None


def place_of(eqn):
    """What the equations of one operation of the user's have in common."""
    return eqn.source, eqn.mark is not None


def margin(eqns):
    """Per equation: the user's line and the words there, where they differ from the line above."""
    notes, last, file = [], None, None
    marked = any(eqn.mark for eqn in eqns)
    for eqn in eqns:
        where = source.place(eqn.mark or eqn.source)
        here = where, bool(eqn.mark)
        if where is None or here == last:
            notes.append("")
        else:
            name = where.short.rpartition(":")[0]
            shown = name if where.file != file else " " * len(name)
            flag = ("∂ " if eqn.mark else "  ") if marked else ""
            notes.append(f"{flag}{shown}:{where.line}   {where.words}".rstrip())
            file = where.file
        last = here
    return notes


# ---------------------------------------------------------------------------- compare

def canonical(program):
    """Text that is equal for programs that differ in names and sources only."""
    order = {id(p): k for k, p in enumerate(all_programs(program))}
    if len(order) == 1:
        return one_canonical(program, order)
    return "\n\n".join(one_canonical(p, order) for p in all_programs(program))


def one_canonical(program, order):
    inputs = every_input(program)
    number = {v: str(k) for k, v in enumerate(inputs)}
    lines = [" ".join([str(v.type) for v in inputs])]
    n = len(inputs)
    for eqn in program.eqns:
        args = [number[a] if a.__class__ is Var else repr(a) + "!" for a in eqn.args]
        for v in eqn.outs:
            number[v] = str(n)
            n += 1
        params = canonical_params(eqn.params, order) if eqn.params else ""
        lines.append(f"{eqn.op.name}{params} {' '.join(args)}")
    lines.append(" ".join([number[v] for v in program.outputs]))
    return "\n".join(lines)


def canonical_params(params, order):
    parts = [f"{k}={canonical_value(params[k], order)}" for k in sorted(params)]
    return f"[{' '.join(parts)}]"


def canonical_value(v, order):
    kind = v.__class__
    if kind is str or kind is int or kind is float or kind is bool:
        return repr(v)
    if kind is tuple:
        if not v or v[0].__class__ is int:
            return repr(v)
        return "(" + ",".join([canonical_value(p, order) for p in v]) + ")"
    if kind is Program:
        return f"@{order[id(v)]}"
    if isinstance(v, (np.dtype, BFloat16)):
        return SHORT[v]
    return f"{v!r}#{id(v)}" if callable(v) else repr(v)


def same(p, q):
    """Are two programs equal up to names, sources, and the values of closed-over arrays?"""
    return canonical(p) == canonical(q)
