"""Loops behind each other that read the same are one loop, which reads it once.

    serial j in 0..256                        serial j in 0..256
      y[0,j] = x[0,j] + x[1,j]           →      y[0,j] = x[0,j] + x[1,j]
    serial j in 0..256                          y[1,j] = x[0,j] - x[1,j]
      y[1,j] = x[0,j] - x[1,j]

What a stack or concatenation is made of is cut into such loops: the stages of a Fourier transform,
butterflies.  What they compute alike is computed once, too.  Relies on borders.py, which cuts
loops, and on parts.py; schedule.py calls `joined`.
"""

from __future__ import annotations

from .. import index
from ..loop import For, Let, Store, nodes_of
from ..records import replace
from .borders import with_own_names
from .parts import cost_of, substituted

NODES = 240                # scalar nodes of one loop, at most
PLACES = 32                # vectors that an iteration reads and writes, at most
SHARED = 0.75              # of the vectors that several loops read, those that one would, at most


def joined(body, region, words):
    """The statements, with loops behind each other in one where these read the same.

    region: the cost of a part of a parallel loop.  words: the kernel's names.
    """
    out = []
    for s in body:
        if isinstance(s, For):
            s = replace(s, body=joined(s.body, region, words))
            one = in_one(out[-1], s, region, words) if out else None
            if one is not None:
                out[-1] = one
                continue
        out.append(s)
    return out


def in_one(first, second, region, words):
    """Both loops as one; None where they are not alike, or share little."""
    if not (is_plain(first) and is_plain(second)) or first.kind != second.kind or (
            first.var.extent != second.var.extent):
        return None
    body = substituted(second.body, {second.var: index.of(first.var)})
    written = [{s.buffer for s in part if isinstance(s, Store)} for part in (first.body, body)]
    reads = [vectors_read(part, first.var) for part in (first.body, body)]
    used = [{n.data[0] for n in nodes_of(part) if n.op == "load"} for part in (first.body, body)]
    if written[0] & used[1] or written[1] & used[0] or not all(
            keep_order(s, t, first.var) for s in first.body for t in body):
        return None
    every, both = reads[0] | reads[1], [*first.body, *body]
    stores = sum(isinstance(s, Store) for s in both)
    if len(every) > SHARED * sum(map(len, reads)) or len(every) + stores > PLACES or (
            len(nodes_of(both)) > NODES):
        return None
    if names_of(first.body) & names_of(body):
        both = [*first.body, *with_own_names(body, words)]
    grain = -(-region // max(1, cost_of(both))) if first.kind == "parallel" else first.grain
    return replace(first, body=both, grain=grain)


def keep_order(s, t, v):
    """Does no later iteration of v write with statement s what an earlier one wrote with t?"""
    if not (isinstance(s, Store) and isinstance(t, Store)) or s.buffer is not t.buffer:
        return True
    step, apart = index.stride(s.index, v), index.combine([(s.index, 1), (t.index, -1)])
    if apart.terms or not step or not index.is_affine(s.index, v):
        return False
    return bool(apart.const % step) or not 0 < -apart.const // step < v.extent


def is_plain(s):
    """Is it an innermost loop that names and stores elements?"""
    return isinstance(s, For) and s.kind != "reduce" and s.step == 1 and all(
        isinstance(t, Let) or isinstance(t, Store) and not t.how and not t.when for t in s.body)


def names_of(body):
    return {s.name for s in body if isinstance(s, Let)}


def vectors_read(body, v):
    """The (buffer, index) pairs that some statements read along v."""
    return {n.data for n in nodes_of(body) if n.op == "load" and n.data[1].free & v.bit}
