"""Steps of random programs that move elements: shapes, slices, positions, updates.

A move takes a Writer of `strategies.py` and gives (text, the values whose error it carries on[, how
much that error may grow]), or None where no value of the program fits.
"""


def moved(w):
    x = w.any("fib", 1)
    if x is None:
        return None
    perm = w.random.sample(range(len(x.shape)), len(x.shape))
    how = w.one((f"fnp.transpose({x.name}, {tuple(perm)})", f"{x.name}.T",
                 f"fnp.flip({x.name}, {w.axis(x)})", f"{x.name}.reshape(-1)",
                 f"fnp.roll({x.name}, {w.number(-2, 3)}, {w.axis(x)})", f"{x.name}[..., None]",
                 f"fnp.squeeze({x.name})", f"fnp.moveaxis({x.name}, 0, -1)",
                 f"fnp.concatenate([{x.name}, {x.name}[::-1]], axis={w.axis(x)})",
                 f"fnp.stack([{x.name}, {x.name}])", f"fnp.tile({x.name}, 2)",
                 f"fnp.repeat({x.name}, 2, axis={w.axis(x)})",
                 f"fnp.broadcast_to({x.name}, (2, *{x.name}.shape))",
                 f"fnp.expand_dims({x.name}, 0)"))
    return how, [x], 1.0


def reshaped(w):
    x = w.any("fib")
    n = x.value.size
    d = w.one([d for d in range(1, n + 1) if n % d == 0] or [1])
    return f"{x.name}.reshape({d}, {n // d})", [x], 1.0


def woven(w):
    """Two values in turns along an axis."""
    x = w.any("fib", 1)
    if x is None:
        return None
    y = w.one([v for v in w.values if v.shape == x.shape and v.kind == x.kind])
    k = w.axis(x)
    shape = (*x.shape[:k], 2 * x.shape[k], *x.shape[k + 1:])
    return f"fnp.stack([{x.name}, {y.name}], {k + 1}).reshape({shape})", [x, y], 1.0


def folded(w):
    """An axis in two, all of them in another order, and two of these in one."""
    x = w.any("fib", 1)
    if x is None:
        return None
    k = w.axis(x)
    n = x.shape[k]
    d = w.one([d for d in range(1, n + 1) if n % d == 0] or [1])
    split = (*x.shape[:k], d, n // d, *x.shape[k + 1:])
    perm = tuple(w.random.sample(range(len(split)), len(split)))
    turned = [split[a] for a in perm]
    at = w.number(0, len(turned) - 2)
    shape = (*turned[:at], turned[at] * turned[at + 1], *turned[at + 2:])
    return f"fnp.transpose({x.name}.reshape({split}), {perm}).reshape({shape})", [x], 1.0


def sliced(w):
    x = w.any("fib", 1)
    if x is None:
        return None
    parts = []
    for n in x.shape:
        a = w.number(0, n)
        b = w.number(a, n)
        one = [str(w.number(-n, n - 1))] if n else []
        parts.append(w.one((":", f"{a}:{b}", f"{a}:{b}:2", "::-1", "::2", *one)))
    return f"{x.name}[{', '.join(parts)}]", [x], 1.0


def padded(w):
    x = w.any("fi", 1)
    if x is None:
        return None
    triples = [(w.number(0, 2), w.number(0, 2), w.number(0, 1)) for _ in x.shape]
    low, high, interior = (tuple(t[k] for t in triples) for k in range(3))
    number = w.one([0, 1, 2.5 if x.kind == "f" else 2])
    return f"ops.pad({x.name}, {number}, low={low}, high={high}, interior={interior})", [x], 1.0


def triangle(w):
    x = w.any("fi", 2)
    return x and (f"fnp.{w.one(['tril', 'triu'])}({x.name}, {w.number(-1, 1)})", [x], 1.0)


def taken(w):
    """Rows by constant or computed positions."""
    x = w.any("fib", 1)
    if x is None or 0 in x.shape:
        return None
    i = w.any("i")
    n = x.shape[0]
    if i is not None and w.coin():
        return f"{x.name}[fnp.clip({i.name}.astype('int32'), {-n}, {n - 1})]", [x], 1.0
    where = [w.number(-n, n - 1) for _ in range(w.number(0, 4))]
    return f"{x.name}[np.array({where}, 'int32')]", [x], 1.0


def neighbours(w):
    """Elements at places that are computed from counters: shifted, around or not, steps, frames."""
    x = w.any("fib", 1)
    if x is None or 0 in x.shape:
        return None
    a = w.axis(x)
    n, k = x.shape[a], w.number(-3, 3)
    i = f"fnp.arange({w.number(1, n + 2)})"
    at = w.one((f"({i} + {k}) % {n}", f"fnp.clip({i} + {k}, 0, {n - 1})", f"{i} - {k}",
                f"fnp.abs({i} + {k})", f"{w.number(1, 3)} * {i} + {k}", f"{n - 1} - {i}",
                f"fnp.where({i} < {k}, {i} + {n}, {i} - 1)", f"({i} + {k}) // 2",
                f"{i}[:, None] * {w.number(1, 3)} + fnp.arange({w.number(1, 3)})"))
    return f"fnp.take({x.name}, {at}, axis={a}, mode='clip')", [x], 1.0


def taken_along(w):
    x = w.any("fi", 1, exact=True)
    if x is None or 0 in x.shape or not w.host:
        return None
    a = w.axis(x)
    return f"fnp.take_along_axis({x.name}, fnp.argsort({x.name}, axis={a}), axis={a})", [x], 1.0


def ordered(w):
    x = w.any("fi", 1)
    return x and w.host and (f"fnp.sort({x.name}, axis={w.axis(x)})", [x], 1.0) or None


def updated(w):
    x = w.any("fi", 1)
    if x is None or x.shape[0] == 0:
        return None
    n = x.shape[0]
    where = [w.number(-n, n - 1) for _ in range(w.number(1, 3))]
    at = w.one((f"[{where[0]}]", f"[np.array({where}, 'int32')]", "[::2]", "[1:]"))
    how = w.one(("set", "add", "multiply", "min", "max"))
    value = w.one(("0.5", f"{x.name}{at}", "-1") if x.kind == "f" else ("2", f"{x.name}{at}", "1"))
    return f"{x.name}.at{at}.{how}({value})", [x], 2 + 3 * x.top


def block(w):
    """A slice at a computed place, or an update there."""
    x, i = w.any("fi", 1), w.any("i")
    if x is None or i is None or 0 in x.shape or i.value.size == 0:
        return None
    starts = ", ".join(f"fnp.ravel({i.name})[0]" for _ in x.shape)
    sizes = tuple(w.number(1, n) for n in x.shape)
    if w.coin():
        return f"ops.dynamic_slice({x.name}, {starts}, sizes={sizes})", [x], 1.0
    part = ", ".join(f":{n}" for n in sizes)
    return f"ops.dynamic_update_slice({x.name}, -{x.name}[{part}], {starts})", [x], 1.0


def ramp(w):
    n, dtype = w.number(0, 5), w.float
    how = w.one((f"fnp.arange({n})", f"fnp.linspace(0, 1, {n}, dtype='{dtype}')",
                 f"fnp.ones(({n}, 2), '{dtype}')", f"fnp.eye({n}, dtype='{dtype}')"))
    return how, [], 1.0
