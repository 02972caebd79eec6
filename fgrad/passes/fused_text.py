"""The printed form of what fuse decided: per kernel its loops, what it stores, and how."""

from __future__ import annotations

from .. import index, scalar
from ..loop_text import sign
from .names import letter
from .nests import Nest, sums_columns
from .product import TOTAL
from .recompute import tree_size

LONGEST = 2000             # nodes of an expression that is printed


def fused_text(fused):
    """One paragraph per step."""
    fused.graph.name_buffers()
    return "\n\n".join([nest_text(s, fused) if isinstance(s, Nest) else step_text(s, fused)
                        for s in fused.steps])


def step_text(step, fused):
    """An equation that is a step of its own."""
    buffer = fused.graph.buffer
    outs = ", ".join(f"{buffer(v).name}: {v.type}" for v in step.eqn.outs)
    args = " ".join([buffer(a).name if a in fused.stored else f"({a.type})"
                     for a in step.eqn.variables])
    return f"{step.number} {step.kind}\n  {outs} = {step.eqn.op.name} {args}"


def nest_text(nest, fused):
    """The loops of a kernel, and one line per stored value."""
    with nest.space:
        letter(loops_of(nest), {fused.graph.buffer(v).name for v in nest.reads | {
            r.value for r in nest.roots}})
        loops = ", ".join(f"{v.name} in 0..{v.extent}" for v in nest.nest) or "one element"
        lines = [f"{nest.number} {'product' if nest.product else 'nest'} over {loops}"]
        if nest.product is not None:
            p = nest.product
            ks = ",".join(v.name for v in p.k)
            lines.append(f"  acc = sum {ks}: {short_text(p.a)} * {short_text(p.b)}")
            if sums_columns(nest):
                lines.append(f"  total = sum {ks}: {short_text(p.b)}")
        lines += [root_text(r, fused.graph.buffer(r.value)) for r in nest.roots]
    return "\n".join(lines)


def loops_of(nest):
    """The variables of a kernel: its own, those of a product, and those of its reductions."""
    yield from nest.nest
    product = nest.product
    if product is not None:
        yield from (*product.batch, *product.rows, *product.columns, *product.k)
    for r in nest.roots:
        for n in scalar.walk(r.expr):
            yield from n.data[1] if n.op == "reduce" else ()


def root_text(r, buffer):
    at = ",".join(index.text(x) for x in r.index)
    how = None if r.how == TOTAL else r.how
    return f"  {buffer.name}[{at}] {sign(how)} {short_text(r.expr)}"


def short_text(root):
    """The expression; of a very long one, only what it reads and how much it computes."""
    nodes = scalar.walk(root)
    if tree_size(nodes) <= LONGEST:
        return scalar.text(root)
    reads = sorted({n.data[0].name for n in nodes if n.op == "load"})
    return f"({len(nodes)} operations on {', '.join(reads) or 'indices'})"
