"""Steps of random programs that are control flow: loops, branches, recomputation.

A move takes a Writer of `strategies.py` and gives (text, the values whose error it carries on[, how
much that error may grow]), or None where no value of the program fits.
"""


def scanned(w):
    """A running mean over the rows, and what each step gives out."""
    x = w.any("f", 1)
    if x is None or x.shape[0] == 0:
        return None
    step = "lambda c, r: (c * 0.5 + r, fnp.sin(c) + r)"
    return f"lax.scan({step}, {x.name}[0] * 0, {x.name}, reverse={w.coin()})[1]", [x], 12


def looped(w):
    x = w.any("f")
    return x and (f"lax.fori_loop(0, {w.number(0, 4)}, lambda k, a: a * 0.5 + k, {x.name})", [x], 4)


def repeated(w):
    """A loop whose condition is known when it runs; bounded, so that it has both derivatives."""
    x = w.any("f")
    if x is None:
        return None
    body = "lambda s: (s[0] + 1, fnp.sin(s[1]))"
    return (f"lax.while_loop(lambda s: s[0] < {w.number(0, 3)}, {body}, (0, {x.name}), "
            "max_steps=4)[1]"), [x], 4


def branched(w):
    """One of two branches, by a value without error."""
    x, p = w.any("f"), w.any("ib")
    if x is None or p is None:
        return None
    return (f"lax.cond(fnp.any({p.name}), lambda a: fnp.sin(a), lambda a: a * 0.5, {x.name})",
            [x, p], 2)


def recomputed(w):
    x = w.any("f")
    return x and (f"checkpoint(lambda a: fnp.tanh(a) * a)({x.name})", [x], 4 * (1 + x.top))
