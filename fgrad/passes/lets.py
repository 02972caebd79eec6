"""Names for what statements compute more than once.

    y[i] = exp(x[i]) * exp(x[i])      →      t1 = exp(x[i]);  y[i] = t1 * t1

lower.py names what it has made so, short_loops.py what it has written out.
"""

from __future__ import annotations

from .. import scalar
from ..loop import Accumulate, Contract, For, Let, Store
from .levels import inner_nodes


def name_shared(body, mask, describe, words):
    """The statements, with a Let for every expression that they use more than once.

    mask: of the variables around them.  describe(node) → (its name or None, its source).  words:
    the kernel's names.
    """
    shared = shared_nodes(body)
    named, memo, out = {}, {}, []
    for s in body:
        match s:
            case For():
                bit = s.var.bit if s.var.extent != 1 else 0        # loops that run once will vanish
                s.body = name_shared(s.body, mask | bit, describe, words)
            case Contract():
                inner = mask | sum(v.bit for v in (*s.batch, *s.rows, *s.columns))
                s.body = name_shared(s.body, inner, describe, words)
            case Let() | Accumulate() | Store() if shared:
                whole = s.expr
                for n in scalar.walk(whole):
                    if n in shared and n not in named and not (n is whole and isinstance(s, Let)):
                        word, source = describe(n)
                        expr = scalar.rewrite(n, {}, named, memo)
                        out.append(Let(word or words.numbered("t"), expr, source))
                        named[n] = scalar.name(out[-1].name, n.dtype, mask)
                s.expr = scalar.rewrite(whole, {}, named, memo)
                if isinstance(s, Let):
                    named[whole] = scalar.name(s.name, whole.dtype, mask)
        out.append(s)
    return out


def shared_nodes(body):
    """Expressions that the statements of one body use more than once outside of guards."""
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
