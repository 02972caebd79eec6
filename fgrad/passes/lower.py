"""Lowering: the steps that fuse.py decided on, as kernels of loop IR and calls.

Each kind of step has its function: a Nest becomes loops (levels.py) shared out into parts (parts.py), or
one Contract statement; a scan becomes a serial loop; a push becomes a copy and a loop over updates; what
has no pull becomes a Call of its NumPy rule.
"""

from __future__ import annotations

from .. import index, scalar
from ..ir import Var
from ..loop import Accumulate, Call, Contract, For, Kernel, Let, Start, Store
from ..types import F16, F32
from .collapse import collapse
from .fuse import PRODUCT, Nest
from .levels import Levels, guards_inward, inner_nodes
from .names import Names, name_buffers, name_loops
from .parts import cost_of, split, spread
from .pull import Puller


def lower(fused, target):
    """The steps of a fused Program, as a list of Kernels and Calls."""
    names = name_buffers(fused.graph)
    out = []
    for number, step in enumerate(fused.steps):
        name = f"{fused.program.name}{number}"
        if isinstance(step, Nest):
            with step.space:
                out += lower_nest(step, name, fused, names, target)
        else:
            out += STEPS[step.kind](step.eqn, name, fused, names, target)
    return out


class Maker:
    """Makes Kernels of statements; knows the buffers and names of the Plan."""

    def __init__(self, fused, names, space, scratch=()):
        self.graph, self.names, self.space, self.scratch = fused.graph, names, space, list(scratch)
        self.buffer, self.source = fused.graph.buffer, fused.graph.source

    def __call__(self, name, body):
        body = name_shared(body, 0, self.graph, Names(words_of(body)))
        params, outputs, loops, words = {}, {}, {}, set()
        survey(body, params, outputs, loops, words)
        scratch = [b for b in self.scratch if b in outputs]
        for b in scratch:
            outputs.pop(b)
            params.pop(b, None)
        reads = [b for b in params if b not in outputs]
        used = words | {b.name for b in (*params, *outputs, *scratch)}
        name_loops(loops, used)
        return Kernel(name, reads, list(outputs), scratch, body, self.space)


def survey(body, params, outputs, loops, words):
    """Collects the buffers read and written, the loop variables and the names of some statements."""
    nodes = {}
    for s in body:
        match s:
            case For():
                loops[s.var] = None
                survey(s.body, params, outputs, loops, words)
                continue
            case Contract():
                loops.update(dict.fromkeys((*s.batch, *s.rows, *s.columns, *s.k)))
                words.add(s.name)
                scalar.walk(s.b, scalar.walk(s.a, nodes))
                survey(s.body, params, outputs, loops, words)
                continue
            case Store():
                outputs[s.buffer] = None
                for n in (*scalar.dynamic_nodes(s.index), *(m for x, _, _ in s.when
                                                           for m in scalar.dynamic_nodes(x))):
                    scalar.walk(n, nodes)
            case _:
                words.add(s.name)
        if not isinstance(s, Start):
            scalar.walk(s.expr, nodes)
    params.update(dict.fromkeys(n.data[0] for n in nodes if n.op == "load"))


def words_of(body):
    """The names that some statements bind, and those of the buffers they write."""
    out = set()
    for s in body:
        match s:
            case For():
                out |= words_of(s.body)
            case Contract():
                out |= {s.name} | words_of(s.body)
            case Store():
                out.add(s.buffer.name)
            case _:
                out.add(s.name)
    return out


# ---------------------------------------------------------------------------- shared expressions get names

def name_shared(body, mask, graph, names):
    """The statements, with a Let for every expression that they use more than once."""
    shared = shared_nodes(body)
    named, memo, out = {}, {}, []
    for s in body:
        match s:
            case For():
                s.body = name_shared(s.body, mask | s.var.bit, graph, names)
            case Contract():
                inner = mask | sum(v.bit for v in (*s.batch, *s.rows, *s.columns))
                s.body = name_shared(s.body, inner, graph, names)
            case Let() | Accumulate() | Store() if shared:
                whole = s.expr
                for n in scalar.walk(whole):
                    if n in shared and n not in named and not (n is whole and isinstance(s, Let)):
                        out.append(let(n, named, memo, graph, names))
                        named[n] = scalar.name(out[-1].name, n.dtype, mask)
                s.expr = scalar.rewrite(whole, {}, named, memo)
                if isinstance(s, Let):
                    named[whole] = scalar.name(s.name, whole.dtype, mask)
        out.append(s)
    return out


def let(n, named, memo, graph, names):
    """A Let for the expression n."""
    origin = n.origin
    word = names.fresh(graph.name(origin) or names.numbered("t"))
    return Let(word, scalar.rewrite(n, {}, named, memo), graph.source(origin) if origin else None)


def shared_nodes(body):
    """Expressions that the statements of one body use more than once, other than those behind guards."""
    return {n for n, k in count_uses(body).items() if k > 1 and n.args}


def count_uses(body):
    """How often each node is used outside of guards by the statements of one body."""
    counts, stack = {}, [s.expr for s in body if isinstance(s, (Let, Accumulate, Store))]
    while stack:
        n = stack.pop()
        counts[n] = counts.get(n, 0) + 1
        if counts[n] == 1:
            stack.extend(inner_nodes(n))
    return counts


# ---------------------------------------------------------------------------- nests

def lower_nest(nest, name, fused, names, target):
    """The kernels of a Nest: loops, or a Contract."""
    collapse(nest)
    graph = fused.graph
    if nest.product is not None:
        return [lower_product(nest, name, fused, names)]
    used = {graph.buffer(v).name for v in nest.reads | {r.value for r in nest.roots}}
    levels = Levels(nest, graph, Names(used))
    body = levels.statements()
    return split(name, body, nest, target, Maker(fused, names, nest.space, levels.scratch))


def lower_product(nest, name, fused, names):
    """The kernel of a product and its epilogue: one Contract."""
    p, graph = nest.product, fused.graph
    body = []
    for r in nest.roots:
        at = index.flat(r.index, r.value.shape)
        expr = scalar.cast(guards_inward(r.expr), r.value.dtype)
        body.append(Store(graph.buffer(r.value), at, expr, None, (), graph.source(r.value)))
    contract = Contract(p.batch, p.rows, p.columns, p.k, p.a, p.b, PRODUCT, p.dtype, body,
                        graph.source(nest.first))
    return Maker(fused, names, nest.space)(name, [contract])


# ---------------------------------------------------------------------------- scans

def lower_scan(eqn, name, fused, names, target):
    """A running reduction: per row an accumulator that a serial loop feeds and stores."""
    how, axis, reverse = eqn.op.scan(**eqn.params)
    graph, (x,), (out,) = fused.graph, eqn.args, eqn.outs
    if 0 in x.shape:
        return []
    space = index.Space()
    with space:
        loops = [space.variable(n) for n in x.shape]
        k = index.of(loops[axis])
        if reverse:
            k = index.combine([(k, -1)], x.shape[axis] - 1)
        at = tuple(k if a == axis else index.of(v) for a, v in enumerate(loops))
        expr = Puller(graph, fused.stored)(x, at)
        wide = F32 if x.dtype == F16 and how in ("sum", "prod") else x.dtype
        mask = sum(v.bit for v in loops if v.extent != 1)
        total = scalar.cast(scalar.name("acc", wide, mask), out.dtype)
        source = graph.source(out)
        body = [Start("acc", how, wide),
                For(loops[axis], [Accumulate("acc", how, scalar.cast(expr, wide), source),
                                  Store(graph.buffer(out), index.flat(at, out.shape), total, None, (), source)],
                    "serial")]
        return [outer_loops(name, body, [v for a, v in enumerate(loops) if a != axis and v.extent != 1],
                            Maker(fused, names, space), target)]


def outer_loops(name, body, loops, make, target):
    """A kernel of independent iterations of `body`, over `loops`."""
    for v in reversed(loops):
        body = [For(v, body, "serial")]
    if loops and (target.kind == "gpu" or target.threads > 1 and cost_of(body) >= target.region_cost):
        spread(body[0], target)
    return make(name, body)


def lower_call(eqn, name, fused, names, target):
    """The NumPy rule of an operation, called on buffers."""
    graph = fused.graph
    params = [graph.buffer(a) if a.__class__ is Var else a for a in eqn.args]
    outputs = [graph.buffer(v) for v in eqn.outs]
    return [Call(name, eqn.op, eqn.params, params, outputs, (eqn.source, eqn.mark))]


STEPS = {"scan": lower_scan, "call": lower_call}
