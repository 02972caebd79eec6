"""Steps of random programs that reduce: sums, extrema, running sums, products.

A move takes a Writer of `strategies.py` and gives (text, the values whose error it carries on[, how
much that error may grow]), or None where no value of the program fits.
"""

LABELLINGS = ("ij,ij->i", "ij,ij->j", "ij,ij->", "ij,kj->ik", "ij,ik->kj", "ij,ik->jk", "ij,kj->ki",
              "ij,ij->ji", "ij,kl->ijkl")
OF_BATCHES = ("bij,bkj->bik", "bij,bik->bjk", "bij,bij->b", "bij,bkj->kbi", "bij,bij->ij",
              "bij,bij->j", "bij,bkj->ik", "bij,cij->bc", "bij,bcj->ibc", "bij,bij->bji")


def reduced(w):
    x = w.any("f")
    if x is None:
        return None
    how = w.one(("sum", "sum", "mean", "max", "min", "var"))
    axes = w.axes(x)
    if how in ("max", "min", "mean", "var") and 0 in x.shape:
        return None
    gain = {"sum": max(x.value.size, 1), "var": 8 * (1 + x.top)}.get(how, 2)
    return f"fnp.{how}({x.name}, axis={axes}, keepdims={w.coin()})", [x], gain


def reduced_whole(w):
    x = w.any("ib")
    if x is None or 0 in x.shape:
        return None
    how = w.one(("sum", "prod", "max", "min", "any", "all", "count_nonzero"))
    return f"fnp.{how}({x.name}, axis={w.axes(x)})", [x]


def product_of(w):
    x = w.any("f")
    return x and (f"fnp.prod({x.name} * 0.5 + 1, axis={w.axes(x)})", [x], 40 * x.value.size + 1)


def position(w):
    x = w.any("fi", 1, exact=True)
    if x is None or 0 in x.shape:
        return None
    return f"fnp.{w.one(['argmax', 'argmin'])}({x.name}, axis={w.axis(x)})", [x]


def running(w):
    x = w.any("fi", 1)
    if x is None:
        return None
    axis, n = w.axis(x), max(x.value.size, 1)
    how = w.one(("fnp.cumsum({}, axis={})", "fnp.cumprod({} * 0.25 + 1, axis={})",
                 "ops.cummax({}, axis={}, reverse=False)", "ops.cumsum({}, axis={}, reverse=True)",
                 "ops.cummin({}, axis={}, reverse=True)"))
    if x.kind == "i" and "prod" in how or x.kind == "f" and "cumm" in how and 0 in x.shape:
        return None
    return how.format(x.name, axis), [x], 10 * n


def softmax(w):
    x = w.any("f", 1)
    if x is None or 0 in x.shape:
        return None
    a = w.axis(x)
    e = f"ops.exp({x.name} - fnp.max({x.name}, axis={a}, keepdims=True))"
    return f"{e} / fnp.sum({e}, axis={a}, keepdims=True)", [x], 6


def matrix_product(w):
    x = w.any("fi", 1)
    if x is None:
        return None
    pairs = [y for y in w.values if y.kind == x.kind and fits(w, x.shape, y.shape)]
    if not pairs:
        how = "{0} @ fnp.swapaxes({0}, -1, -2)" if len(x.shape) > 1 else "fnp.outer({0}, {0})"
        return how.format(x.name), [x], 4 * (1 + x.top) * max(x.value.size, 1)
    y = w.one(pairs)
    gain = (1 + x.top + y.top) * max(x.value.size, 1)
    return f"{x.name} @ {y.name}", [x, y], gain


def fits(w, a, b):
    """May matmul multiply these shapes?"""
    if not a or not b or a[-1] != b[max(len(b) - 2, 0)]:
        return False
    return w.broadcastable(a[:-2], b[:-2])


def contraction(w):
    return contracted(w, 2, LABELLINGS)


def products_of_batch(w):
    return contracted(w, 3, OF_BATCHES)


def contracted(w, ndim, labellings):
    """A product of two values of so many axes, summed over the labels that the result lacks."""
    x = w.any("fi", ndim)
    if x is None or len(x.shape) != ndim:
        return None
    y = w.one([v for v in w.values if v.kind == x.kind and v.shape == x.shape])
    how = w.one(labellings)
    gain = (1 + x.top + y.top) * max(x.value.size, 1)
    return f"fnp.einsum('{how}', {x.name}, {y.name})", [x, y], gain


def tensor(w):
    x = w.any("fi", 1)
    if x is None:
        return None
    y = w.one([v for v in w.values if v.kind == x.kind and v.shape == x.shape])
    axes = w.number(0, len(x.shape))
    if axes and x.shape[len(x.shape) - axes:] != y.shape[:axes]:
        return None
    gain = (1 + x.top + y.top) * max(x.value.size, 1)
    return f"fnp.tensordot({x.name}, {y.name}, {axes})", [x, y], gain
