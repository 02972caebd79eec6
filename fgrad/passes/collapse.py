"""Collapsing: adjacent loops that every access steps through as one become one loop.

    for i in 0..m: for j in 0..n: y[n*i+j] = f(x[n*i+j])      for i in 0..m*n: y[i] = f(x[i])

It rewrites the Nests of fuse.py before they are lowered.
"""

from __future__ import annotations

from math import prod

from .. import index, scalar


def indices(nodes):
    """The Ixs in some nodes; those inside of run-time indices belong to nodes of their own."""
    for n in nodes:
        match n.op:
            case "load":
                yield n.data[1]
            case "index":
                yield n.data
            case "guard":
                yield from (x for x, _, _ in n.data)


def as_one(x, i, j):
    """Does x step through i and j as through one variable v of extent i.extent * j.extent?

    What it knows of i, a multiple of j's extent J, may be a quotient or a remainder too: i/n is
    v/nJ, and J·(i%n) + j is v%nJ.
    """
    if not x.free & (i.bit | j.bit):
        return True
    own = [c for a, c in x.terms if a is i or is_part(a, i, "%")]
    if len(own) > 1 or sum(own) != index.stride(x, j) * j.extent:
        return False
    return all(as_one(a.ix, i, j) for a, _ in x.terms
               if isinstance(a, index.Quot) and not is_part(a, i))


def is_part(a, i, ops="/%"):
    """Is an atom the quotient, or the rest, of a division of i?"""
    return isinstance(a, index.Quot) and a.op in ops and a.ix is index.of(i)


def divided(x, loops):
    """Is one of the loops divided alone in x?"""
    return any(isinstance(a, index.Quot) and (any(is_part(a, i) for i in loops)
               or divided(a.ix, loops)) for a, _ in x.terms)


def runs(loops, found, ends=()):
    """The loops in runs that every Ix of `found` steps through as one; a run ends behind `ends`."""
    out = [[v] for v in loops[:1]]
    for i, j in zip(loops, loops[1:]):
        if i not in ends and all(as_one(x, i, j) for x in found):
            out[-1].append(j)
        else:
            out.append([j])
    return out


def merged(loops, found, space, ends=()):
    """(new loops, substitution): runs of several loops become one."""
    new, to = [], {}
    for run in runs(loops, found, ends):
        if len(run) == 1:
            new += run
            continue
        v = space.variable(prod(a.extent for a in run), run[0].name)
        if any(divided(x, run[:-1]) for x in found):
            to.update(zip(run, index.unflat(index.of(v), [a.extent for a in run])))
        else:                                            # so it is quicker
            to.update({a: index.ix({}) for a in run})
            to[run[-1]] = index.of(v)
        new.append(v)
    return tuple(new), to


def collapse(nest):
    """The Nest with its loops merged where every access allows it.  Changes its roots in place."""
    found = {index.flat(r.index, r.value.shape) for r in nest.roots}
    nodes = {}
    for r in nest.roots:
        scalar.walk(r.expr, nodes)
    if nest.product is not None:
        return collapse_product(nest, nodes, found)
    ends = {r.nest[-1] for r in nest.roots if r.nest}    # a root is in all loops of a run, or none
    # a reduction over a loop's own variable is one over that loop alone
    reduced = {v for n in nodes if n.op == "reduce" for v in n.data[1]}
    ends |= reduced | {i for i, j in zip(nest.nest, nest.nest[1:]) if j in reduced}
    nodes = widen_guards(nest, nodes, found, ends)
    found.update(indices(nodes))
    loops, to = merged(nest.nest, found, nest.space, ends)
    if to:
        memo = {}
        for r in nest.roots:
            r.nest = tuple(v for v in loops if v in r.nest or any(x is not None and x.free & v.bit
                           for x in (to.get(a) for a in r.nest)))
            rewrite_root(r, to, memo)
        nest.nest = loops
    return nest


def widen_guards(nest, nodes, found, ends):
    """The nodes of the Nest, whose guards know two loops where nothing else tells these apart.

        x[i] … if 0 <= i-1 < 30     for j in 0..3    →    … if 0 <= 3*i+j-3 < 90

    found: the Ixs of the stores.  Changes the roots in place.
    """
    for i, j in zip(nest.nest, nest.nest[1:]):
        guards = [n for n in nodes if n.op == "guard"]
        told = [x for n in guards for x, _, _ in n.data if not as_one(x, i, j)]
        if not told or i in ends or not all(is_wider(x, i, j) for x in told) or not all(
                as_one(x, i, j) for x in (*found, *indices(nodes)) if x not in told):
            continue
        new = {}
        for n in guards:                                 # those inside of others come first
            ranges = tuple((wider(x, i, j), lo * j.extent, hi * j.extent) if x in told
                           else (x, lo, hi) for x, lo, hi in n.data)
            new[n] = scalar.guard(ranges, *[scalar.rewrite(a, {}, new, {}) for a in n.args])
            new[n].origin = new[n].origin or n.origin
        nodes = {}
        for r in nest.roots:
            r.expr = scalar.rewrite(r.expr, {}, new, {})
            scalar.walk(r.expr, nodes)
    return nodes


def is_wider(x, i, j):
    """Does x go by ones along i, and not know j?"""
    return not x.free & j.bit and index.is_affine(x, i) and abs(index.stride(x, i)) == 1


def wider(x, i, j):
    """What lies from lo * j.extent to hi * j.extent where x lies from lo to hi: x, and then j."""
    ahead = index.stride(x, i) > 0
    return index.combine([(x, j.extent), (index.of(j), 1 if ahead else -1)],
                         0 if ahead else j.extent - 1)


def rewrite_root(r, to, memo):
    r.expr = scalar.rewrite(r.expr, to, {}, memo)
    r.index = tuple(index.substitute(x, to) for x in r.index)


def collapse_product(nest, nodes, found):
    """A product's rows, columns, batch and k are merged within each of these."""
    p = nest.product
    scalar.walk(p.b, scalar.walk(p.a, nodes))
    found.update(indices(nodes))
    to, parts = {}, {}
    for part in ("batch", "rows", "columns", "k"):
        parts[part], more = merged(getattr(p, part), found, nest.space)
        to.update(more)
    if to:
        memo = {}
        for r in nest.roots:
            rewrite_root(r, to, memo)
        a, b = (scalar.rewrite(n, to, {}, memo) for n in (p.a, p.b))
        nest.product = type(p)(a, b, p.scale, parts["k"], parts["rows"], parts["columns"],
                               parts["batch"], p.dtype)
        nest.nest = parts["batch"] + parts["rows"] + parts["columns"]
    return nest


def as_in_memory(variables, exprs):
    """The variables of a reduction, outermost first as the largest array that it reads lies."""
    if len(variables) < 2:
        return variables
    loads = [n.data for e in exprs for n in scalar.walk(e) if n.op == "load"
             and all(index.is_affine(n.data[1], v) for v in variables)]
    spans = [[abs(index.stride(x, v)) for v in variables] for _, x in loads]
    far = max(zip([b.type.size for b, _ in loads], spans), default=(0, None))[1]
    if not far or not all(far):
        return variables
    return tuple(sorted(variables, key=lambda v: -far[variables.index(v)]))


def in_order_of_memory(n):
    """A reduce node with its variables in the order of `as_in_memory`."""
    how, variables = n.data
    out = scalar.node("reduce", n.args, (how, as_in_memory(variables, n.args)), n.dtype)
    out.origin = out.origin or n.origin
    return out


def collapse_reduction(n, space):
    """A reduce node with its variables merged where every access allows it."""
    how, variables = n.data
    new, to = merged(variables, set(indices(scalar.walk(n.args[0]))), space)
    if not to:
        return n
    out = scalar.node("reduce", (scalar.rewrite(n.args[0], to, {}, {}),), (how, new), n.dtype)
    out.origin = n.origin
    return out
