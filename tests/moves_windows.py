"""Steps of random programs that look at several places or rows at once: convolutions, pooling,
normalized rows, sums by segments, recurrences with weights.

A move takes a Writer of `strategies.py` and gives (text, the values whose error it carries on[, how
much that error may grow]), or None where no value of the program fits.
"""

COLUMNS = (1, 2, 3, 8, 16, 17)


def convolved(w):
    """Images (channels last) by a window that is made of another value."""
    x, y = w.any("f", 2), w.any("f")
    if x is None or 0 in x.shape or len(x.shape) > 4:
        return None
    one_axis = len(x.shape) == 2 or len(x.shape) == 3 and w.coin()
    more = "" if one_axis == (len(x.shape) == 3) else "[..., None]" if one_axis else "[None]"
    shape = {"": x.shape, "[..., None]": (*x.shape, 1), "[None]": (1, *x.shape)}[more]
    channels, columns, count = shape[-1], w.one(COLUMNS), len(shape) - 2
    stride, dilation, spacing = [tuple(w.one((1, 1, 2)) for _ in range(count)) for _ in range(3)]
    taps, pads = [], []
    for n, d, s in zip(shape[1:], dilation, spacing):
        t, low, high = w.number(1, 3), w.number(-1, 2), w.number(-1, 2)
        if (n - 1) * s + 1 + low + high < (t - 1) * d + 1:
            t, low, high = 1, 0, 0
        taps.append(t)
        pads.append((low, high))
    groups = w.one([g for g in (1, channels) if columns % g == 0])
    kernel = (*taps, channels // groups, columns)
    n = channels * columns
    for t in taps:
        n *= t
    ramp = f"fnp.arange({n // groups}, dtype='{x.value.dtype}').reshape{kernel}"
    labels = ("NLC", "LIO", "NLC") if one_axis else ("NHWC", "HWIO", "NHWC")
    return (f"lax.conv_general_dilated({x.name}{more}, "
            f"({ramp} % 5 - 2) * 0.25 + fnp.sum(fnp.ravel({y.name})[:1]) * 0.125, "
            f"{stride}, {pads}, {spacing}, {dilation}, {labels}, {groups})"), [x, y], 2 * n * (
                1 + x.top + y.top)


def pooled(w):
    x = w.any("fi", 1)
    if x is None or 0 in x.shape:
        return None
    window = tuple(w.number(1, min(3, n)) for n in x.shape)
    stride = tuple(w.one((1, n)) for n in window)
    pads = [(w.number(0, n // 2), w.number(0, n // 2)) for n in window]
    how = w.one(("max", "min", "sum"))
    return f"reduce_window({x.name}, '{how}', {window}, {stride}, {pads})", [x], 40


def normalized(w):
    """Rows less their mean, over the root of their variance."""
    x = w.any("f", 1)
    if x is None or 0 in x.shape:
        return None
    a = w.axes(x)
    less = f"({x.name} - fnp.mean({x.name}, axis={a}, keepdims=True))"
    return (f"{less} / fnp.sqrt(fnp.var({x.name}, axis={a}, keepdims=True) + 0.5)", [x],
            20 * (1 + x.top) ** 2)


def log_of_sum(w):
    x = w.any("f", 1)
    if x is None or 0 in x.shape:
        return None
    return f"logsumexp({x.name}, axis={w.axes(x)}, keepdims={w.coin()})", [x], 4


def segments(w):
    """Rows added to the segments that integers name; some may be out of them."""
    x, i = w.any("fi", 1), w.any("i", 1)
    if x is None or i is None or x.shape[0] != i.shape[0]:
        return None
    count = w.number(1, 4)
    return (f"fnp.zeros(({count}, *{x.name}.shape[1:]), {x.name}.dtype)"
            f".at[{i.name}.reshape(len({i.name}), -1)[:, 0] % {count}].add({x.name})"
            if i.value.size else f"{x.name} * 2", [x], 2 * max(x.shape[0], 1))


def composed(w):
    """Affine maps composed along an axis: a recurrence with weights."""
    x = w.any("f", 1)
    if x is None or x.shape[0] == 0:
        return None
    y = w.one([v for v in w.values if v.value.dtype == x.value.dtype and v.shape == x.shape])
    maps = "lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])"
    return (f"lax.associative_scan({maps}, (fnp.sin({x.name}) * 0.5, {y.name}), "
            f"reverse={w.coin()})[1]"), [x, y], 40 * (1 + y.top)


def recurrent(w):
    """A loop over the rows whose state goes through a product with a matrix of the program."""
    x = w.any("f", 2)
    if x is None or len(x.shape) != 2 or 0 in x.shape:
        return None
    n = x.shape[1]
    step = f"fnp.tanh(c @ (m * {0.5 / n:.4f}) + r)"
    return (f"lax.scan(lambda c, r: (lambda m: ({step}, c))(fnp.outer({x.name}[0], {x.name}[-1])), "
            f"{x.name}[0] * 0, {x.name}, reverse={w.coin()})"
            f"[{w.number(0, 1)}]"), [x], 10 * (1 + x.top) ** 2 * n


def largest(w):
    """The k largest, in order."""
    x = w.any("f", 1, exact=True)
    if x is None or x.shape[-1] == 0 or not w.host:
        return None
    return f"lax.top_k({x.name}, {w.number(1, x.shape[-1])})[0]", [x], 1
