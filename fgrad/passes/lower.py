"""Lowering: the steps that fuse.py decided on, as kernels of loop IR and calls.

Each kind of step has its function: a Nest becomes loops (levels.py) shared out into parts
(parts.py), or one Contract statement; a scan becomes a serial loop; a push becomes a copy and a
loop over updates; what has no pull becomes a Call of its NumPy rule.
"""

from __future__ import annotations

from math import prod

from .. import index, scalar
from ..ir import Var
from ..loop import Accumulate, Call, Contract, For, Kernel, Let, Loop, Start, Store
from ..records import replace
from ..scalar import REDUCTIONS
from ..text import identifier
from .collapse import collapse
from .forms import PRODUCT
from .lets import name_shared
from .levels import Levels, guards_inward
from .names import Words, words_of
from .nests import Nest, Root, sums_columns
from .parts import cost_of, in_copies, split, spread
from .product import TOTAL
from .pull import Puller
from .stored import counters

SHARES = 1 << 16           # work-items of a GPU that share updates, each by its own places
COPY = 1 << 19             # bytes of a result of which each thread may have a copy
UPDATES = 4                # times as many are worth it as copies have elements,
EACH, REGIONS = 64, 4      # and so many for each thread, and so many times a region's cost


def lower(fused, target):
    """The steps of a fused Program, as a list of Kernels and Calls."""
    names = fused.graph.name_buffers()
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
        words = Words(words_of(body))
        body = name_shared(body, 0, lambda n: self.described(n.origin, words), words)
        params, outputs = {}, {}
        survey(body, params, outputs)
        scratch = [b for b in self.scratch if b in outputs]
        local = set(scratch)
        reads = [b for b in params if b not in outputs]
        written = [b for b in outputs if b not in local]
        return Kernel(name, reads, written, scratch, body, self.space)

    def described(self, origin, words):
        """The name of what is an element of a value, the user's, and its source; None for neither.
        """
        word = self.graph.name(origin)
        return words.unique(identifier(word)) if word else None, origin and self.source(origin)


def survey(body, params, outputs):
    """Collects the buffers that some statements read and write."""
    nodes = {}
    for s in body:
        match s:
            case For():
                survey(s.body, params, outputs)
                continue
            case Contract():
                scalar.walk(s.b, scalar.walk(s.a, nodes))
                survey(s.body, params, outputs)
                continue
            case Store():
                outputs[s.buffer] = None
                for x in (s.index, *(x for x, _, _ in s.when)):
                    for n in x.nodes:
                        scalar.walk(n, nodes)
        if not isinstance(s, Start):
            scalar.walk(s.expr, nodes)
    params.update(dict.fromkeys(n.data[0] for n in nodes if n.op == "load"))


# ---------------------------------------------------------------------------- nests

def lower_nest(nest, name, fused, names, target):
    """The kernels of a Nest: loops, or a Contract."""
    collapse(nest)
    graph = fused.graph
    if nest.product is not None:
        return [lower_product(nest, name, fused, names)]
    used = {graph.buffer(v).name for v in nest.reads | {r.value for r in nest.roots}}
    levels = Levels(nest, graph, Words(used), target.scratch)
    body = levels.statements()
    return split(name, body, nest, target, Maker(fused, names, nest.space, levels.scratch))


def lower_product(nest, name, fused, names):
    """The kernel of a product and its epilogue: one Contract."""
    p, graph = nest.product, fused.graph
    body, sums, columns = [], [], sum(v.bit for v in p.columns)
    for r in nest.roots:
        at, source = index.flat(r.index, r.value.shape), graph.source(r.value)
        expr = guards_inward(r.expr)
        if r.how == "sum":
            sums.append(f"sum{len(sums) + 1}")
            body.append(Accumulate(sums[-1], r.how, expr, source))
            expr = scalar.name(sums[-1], p.dtype, columns)
        expr = scalar.held(expr, r.value.dtype)
        body.append(Store(graph.buffer(r.value), at, expr, None, (), source))
    total = TOTAL if sums_columns(nest) else None
    contract = Contract(p.batch, p.rows, p.columns, p.k, p.a, p.b, PRODUCT, p.dtype, body,
                        graph.source(nest.first), total, tuple(sums))
    return Maker(fused, names, nest.space)(name, [contract])


# ---------------------------------------------------------------------------- scans

def lower_scan(eqn, name, fused, names, target):
    """A running reduction: per row an accumulator that a serial loop feeds and stores."""
    taken, when, axis, reverse = eqn.op.scan(**eqn.params)
    graph, (out,) = fused.graph, eqn.outs
    if 0 in out.shape:
        return []
    space = index.Space()
    with space:
        loops = [space.variable(n) for n in out.shape]
        k = index.of(loops[axis])
        if reverse:
            k = index.combine([(k, -1)], out.shape[axis] - 1)
        at = tuple(k if a == axis else index.of(v) for a, v in enumerate(loops))
        puller, source = Puller(graph, fused.stored), graph.source(out)
        fed = [Accumulate("acc", how, puller(eqn.args[i], at), source) for i, how in taken]
        dtype = fed[0].expr.dtype
        total = scalar.name("acc", dtype, sum(v.bit for v in loops if v.extent != 1))
        store = Store(graph.buffer(out), index.flat(at, out.shape), total, None, (), source)
        inside = [*fed[:when], store, *fed[when:]]
        body = [Start("acc", dict(taken)[0], dtype), For(loops[axis], inside, "serial")]
        others = [v for a, v in enumerate(loops) if a != axis and v.extent != 1]
        return [outer_loops(name, body, others, Maker(fused, names, space), target)]


def outer_loops(name, body, loops, make, target):
    """A kernel of independent iterations of `body`, over `loops`."""
    body = nested(body, loops)
    large = target.threads > 1 and cost_of(body) >= target.region_cost
    if loops and (target.kind == "gpu" or large):
        spread(body[0], loops, target)
    return make(name, body)


# ---------------------------------------------------------------------------- pushes

def lower_push(eqn, name, fused, names, target):
    """Updates written into a copy: a kernel that copies, and one that loops over the updates, in
    order; of many updates for a small result on a CPU, as many loops as threads.

    On a GPU axes along which every update goes to elements of its own come first, in parallel, and
    before them shares of the places that the others go to.
    """
    graph, (out,) = fused.graph, eqn.outs
    if 0 in out.shape:
        return []
    kernels = push_copy(eqn.args[0], out, name + "_copy", fused, names, target)
    shape, push = eqn.op.push(*graph.arguments(eqn), **eqn.params)
    if 0 in shape:
        return kernels
    space = index.Space()
    with space:
        loops = [space.variable(n) for n in shape]
        at, when, value = Puller(graph, fused.stored).asked(push, tuple(map(index.of, loops)))
        offset = index.flat(at, out.shape)
        when = tuple((x, lo, hi) for x, lo, hi in when if x.lo < lo or x.hi >= hi)
        how = None if eqn.op.how == "set" else eqn.op.how
        value = scalar.held(value, out.dtype)
        store = Store(graph.buffer(out), offset, value, how, when, graph.source(out))
        loops = [v for v in loops if v.extent != 1]
        own = private(loops, offset, at) if target.kind == "gpu" else []
        order = own + [v for v in loops if v not in own]
        if target.kind == "gpu" and len(order) > len(own):
            share, when = in_shares(out.shape, at, when, own, space)
            own, order = share + own, share + order
            store = replace(store, when=when)
        body, make = indexed(store, order, len(own)), Maker(fused, names, space)
        if is_shared_out(store, body, prod(shape), target):
            root = Root(out, (), (), store.expr, store.how)
            return kernels + in_copies(name, body[0], root, space, target, make)
        return kernels + [outer_loops(name, body, own, make, target)]


def is_shared_out(store, body, updates, target):
    """Is it worth while that each thread makes its part of the updates in a copy of its own?

    Where they are many for the result, which is small, and combine in any order.
    """
    if target.kind != "cpu" or target.threads < 2 or store.how not in REDUCTIONS or not (
            len(body) == 1 and isinstance(body[0], For)):
        return False
    type, parts = store.buffer.type, target.threads
    plain = type.dtype.kind in "fiu" and type.dtype.itemsize >= 4
    return (plain and body[0].var.extent >= EACH * parts and type.nbytes <= COPY
            and updates >= UPDATES * parts * type.size
            and cost_of(body) >= REGIONS * target.region_cost)


def indexed(store, loops, outside):
    """The store in the loops behind the first `outside`; run-time indices are Lets there."""
    masks = [sum(v.bit for v in loops[:k]) for k in range(len(loops) + 1)]
    lets, known = {}, {}
    for x in (store.index, *(x for x, _, _ in store.when)):
        for n in x.nodes:
            if n not in known:
                depth = max(outside, next(k for k, mask in enumerate(masks) if not n.free & ~mask))
                word = f"at{len(known) + 1}"
                known[n] = scalar.name(word, n.dtype, masks[depth])
                lets.setdefault(depth, []).append(Let(word, n))

    def moved(x):
        return index.substitute(x, {}, known.__getitem__)
    when = tuple((moved(x), lo, hi) for x, lo, hi in store.when)
    expr = scalar.rewrite(store.expr, {}, known, {})
    body = [*lets.get(len(loops), ()),
            Store(store.buffer, moved(store.index), expr, store.how, when, store.source)]
    for depth in range(len(loops) - 1, outside - 1, -1):
        body = [*lets.get(depth, ()), For(loops[depth], body, "serial")]
    return body


def private(loops, offset, at):
    """The loops whose variable is, alone, an index of its own into the result."""
    return [v for v in loops if index.is_affine(offset, v)
            and sum(bool(x.free & v.bit) for x in at) == 1
            and any(x is index.of(v) for x in at)]


def in_shares(shape, at, when, own, space):
    """([the loop over shares of the places], the ranges of `when` and that of a share), or ([],
    when): work-items that each walk over all updates, and make those of their own places.

    own: the loops that are parallel anyway.
    """
    axis = max([k for k, x in enumerate(at) if x.nodes], key=shape.__getitem__, default=None)
    count = 0 if axis is None else min(shape[axis], SHARES // prod(v.extent for v in own))
    if count < 2:
        return [], when
    share = space.variable(count)
    place = index.plus(at[axis], -at[axis].lo)
    _, mine = index.divide(place, count)
    return [share], (*when, (index.combine([(mine, 1), (index.of(share), -1)]), 0, 1))


def push_copy(x, out, name, fused, names, target):
    """The kernels that start the result as a copy of x."""
    graph, space = fused.graph, index.Space()
    with space:
        axes = tuple(space.variable(n) for n in out.shape)
        at, kept = tuple(map(index.of, axes)), tuple(v for v in axes if v.extent != 1)
        puller = Puller(graph, fused.stored)
        root = Root(out, kept, at, puller(x, at))
        nest = Nest(0, space, puller, kept, [root], graph.loaded(scalar.walk(root.expr)), first=out)
        return lower_nest(nest, name, fused, names, target)


def nested(body, loops):
    """The statements in serial loops, outermost first."""
    for v in reversed(loops):
        body = [For(v, body, "serial")]
    return body


def lower_call(eqn, name, fused, names, target):
    """The NumPy rule of an operation, called on buffers."""
    graph = fused.graph
    params = [graph.buffer(a) if a.__class__ is Var else a for a in eqn.args]
    outputs = [graph.buffer(v) for v in eqn.outs]
    return [Call(name, eqn.op, eqn.params, params, outputs, (eqn.source, eqn.mark))]


# ---------------------------------------------------------------------------- loops

def lower_loop(eqn, name, fused, names, target):
    """A loop over nested Programs; nest.py plans them."""
    buffer, p, kind = fused.graph.buffer, eqn.params, eqn.op.loop
    args = [None if c else buffer(a) for a, c in zip(eqn.args, counters(fused.graph, eqn))]
    outs = [buffer(v) for v in eqn.outs]
    source = eqn.source, eqn.mark
    programs = eqn.op.programs(p)
    if kind == "call":
        return [Loop(name, kind, programs, args, [], [], [], outs, source=source)]
    if kind == "cond":
        return [Loop(name, kind, programs, args[1:], [], [], [], outs, index=args[0],
                     source=source)]
    n = p["n_consts"]
    if kind == "while":
        return [Loop(name, kind, programs, args[:n], args[n:], outs, [], [], source=source)]
    at, m = n + p["n_carry"], p["n_carry"]
    return [Loop(name, kind, programs, args[:n], args[n:at], outs[:m], args[at:], outs[m:],
                 p["length"], p["reverse"], source=source)]


STEPS = {"scan": lower_scan, "push": lower_push, "call": lower_call, "loop": lower_loop}
