"""The printed form of the loop IR.

    kernel k0(x: f32[8,3], w: f32[3,2]) -> t: f32[8,2]
      parallel i in 0..8
        serial j in 0..2 (2 lanes)
          t[i,j] = tanh(acc)                           │ model.py:5   tanh

The right column gives the user's line where it differs from the line above; ∂ marks derivatives.
Relied on by inspection and by tests.
"""

from __future__ import annotations

import os

from . import index, source
from .loop import Accumulate, Call, Contract, For, Kernel, Let, Loop, Start, Store
from .scalar import REDUCTIONS, at_text, number_text, text
from .types import SHORT

COLUMN = 50                # where the user's lines begin, at the earliest
SIGNS = {None: "=", "sum": "+=", "prod": "*=", "and": "&=", "or": "|="}


def sign(how):
    """=, +=, max=, …"""
    return SIGNS.get(how) or f"{how}="


def typed(b):
    """`x: f32[8,3]`"""
    return f"{b.name}: {b.type}"


def kernel_text(kernel):
    """The kernel as printed, with the user's lines beside it."""
    with kernel.space:
        lines = rows(kernel.body, "  ")
    turns = kernel.turns and f"in {kernel.turns.count} turns: {', '.join(kernel.turns.names)}"
    notes = [(f"  {note}", None) for note in (turns, kernel.note) if note]
    return "\n".join(beside([(head_text(kernel), None), *notes, *lines], kernel.scratch))


def head_text(kernel):
    params = ", ".join(map(typed, kernel.params))
    outputs = ", ".join(map(typed, kernel.outputs))
    return f"kernel {kernel.name}({params}) -> {outputs}"


def rows(body, pad):
    """(line, source) pairs of some statements."""
    out = []
    for s in body:
        match s:
            case For():
                out.append((pad + for_text(s), None))
                out += rows(s.body, pad + "  ")
            case Contract():
                out.append((pad + contract_text(s), None))
                product = f"{s.name}: {SHORT[s.dtype]} += {text(s.a)} * {text(s.b)}"
                out.append((f"{pad}  {product}", s.source))
                if s.total is not None:
                    total = f"{s.total}: {SHORT[s.dtype]} += {text(s.b)}"
                    out.append((f"{pad}  {total}", s.source))
                out += rows([Start(name, "sum", s.dtype) for name in s.sums], pad + "  ")
                out += rows(s.body, pad + "  ")
            case _:
                out.append((pad + statement_text(s), getattr(s, "source", None)))
    return out


def statement_text(s):
    """A Let, Start, Accumulate or Store."""
    match s:
        case Let():
            return f"{s.name}: {SHORT[s.expr.dtype]} = {text(s.expr)}"
        case Start():
            start = number_text(REDUCTIONS[s.how][1](s.dtype), s.dtype)
            return f"{s.name}: {SHORT[s.dtype]} = {start}"
        case Accumulate():
            return f"{s.name} {sign(s.how)} {text(s.expr)}"
        case Store():
            when = " and ".join(f"{lo} <= {index.text(x)} < {hi}" for x, lo, hi in s.when)
            tail = f" if {when}" if when else ""
            return f"{at_text(s.buffer, s.index)} {sign(s.how)} {text(s.expr)}{tail}"


def for_text(s):
    """The head of a loop."""
    step = f" step {s.step}" if s.step > 1 else ""
    notes = [f"{s.width} lanes"] * (s.width > 1) + [f"{s.unroll} at once"] * (s.unroll > 1)
    notes += [f"{s.rows} rows at once"] * (s.rows > 1)
    notes += [f"parts of {s.grain}"] * (s.kind == "parallel" and s.grain > 1)
    note = f" ({', '.join(notes)})" if notes else ""
    return f"{s.kind} {s.var.name} in 0..{s.var.extent}{step}{note}"


def contract_text(s):
    """The head of a contraction: its batch, rows, columns and summed variables with extents."""
    groups = [("batch", s.batch), ("rows", s.rows), ("columns", s.columns), ("sum", s.k)]
    parts = [f"{title} " + ",".join(f"{v.name} in 0..{v.extent}" for v in vs)
             for title, vs in groups if vs]
    return "contract " + "; ".join(parts)


def beside(lines, scratch=()):
    """The lines, scratch rows behind the head, with the user's lines in a column at the right."""
    head, *rest = lines
    lines = [head, *[(f"  local {typed(b)}", None) for b in scratch], *rest]
    width = max([COLUMN, *(len(t) + 1 for t, s in lines if s is not None)])
    out, before = [], (None, None)
    for t, where in lines:
        note, before = note_text(where, before)
        out.append(f"{t:{width}}│ {note}".rstrip() if where is not None and note else t)
    return out


def note_text(where, before):
    """(what the right column says, the (file, line) it stands at)."""
    code, mark = where if where is not None else (None, None)
    place = source.place(mark if mark is not None else code)
    if place is None or not place.file:
        return "", before
    here = place.file, place.line, mark is not None
    if here == before:
        return "", before
    name = os.path.basename(place.file)
    at = f"{name if before[0] != place.file else '':{len(name)}}:{place.line}"
    words = "∂ " if mark is not None else ""
    return f"{words}{at}   {'' if mark is not None else place.words}".rstrip(), here


def call_text(call):
    """A Call as printed."""
    params = " ".join(b.name if hasattr(b, "name") else str(b) for b in call.params)
    inside = " ".join(f"{k}={v}" for k, v in call.op_params.items())
    inside = f"[{inside}]" if inside else ""
    made = f"{', '.join(map(typed, call.outputs))} = " if call.outputs else ""
    return f"call {made}{call.op.name}{inside} {params}"


def plan_text(plan):
    """All steps of a Plan, one after the other."""
    inputs, outputs = (", ".join(map(typed, bs)) for bs in (plan.inputs, plan.outputs))
    tables = [f"\n  table {typed(b)}" for b, _ in plan.tables]
    out = ["".join([f"plan {plan.name}({inputs}) -> {outputs}", *tables])]
    called = set()
    for s in plan.steps:
        known = isinstance(s, Loop) and s.kind == "call" and s.plans[:1]
        out.append(loop_text(s, ()) if known and known in called else STEPS[type(s)](s))
        called.add(known)
    return "\n\n".join(out)


def loop_head(loop):
    """The first line of a Loop."""
    match loop.kind:
        case "scan":
            return f"scan {loop.name} {loop.length} times" + " backwards" * loop.reverse
        case "while":
            return f"while {loop.name}"
        case "call":
            return f"run {loop.programs[0].name}"
    return f"cond {loop.name} by {loop.index.name}"


def loop_text(loop, plans=None):
    """A Loop as printed: what goes round, and its inner Plans, indented, if they are not given."""
    def names(buffers):
        return " ".join("counter" if b is None else b.name for b in buffers) or "nothing"
    head = beside([(loop_head(loop), loop.source)]) if loop.kind == "call" else [loop_head(loop)]
    lines = [*head, f"  const {names(loop.consts)}"]
    if loop.kind in ("scan", "while"):
        lines.append(f"  carry {names(loop.starts)} -> {', '.join(map(typed, loop.ends))}")
    if loop.kind == "scan":
        lines.append(f"  along {names(loop.xs)}")
    if loop.ys:
        lines.append(f"  {'stack' if loop.kind == 'scan' else 'gives'} "
                     f"{', '.join(map(typed, loop.ys))}")
    for plan in loop.plans if plans is None else plans:
        lines += ["", *("  " + line if line else "" for line in plan_text(plan).split("\n"))]
    return "\n".join(lines)


STEPS = {Kernel: kernel_text, Call: call_text, Loop: loop_text}
