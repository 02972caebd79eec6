"""Convolutions and pooling as functions: strides, padding, dilation, groups, layouts by labels.

Channels come last unless labels say otherwise: "nhwc" for x and the result, "hwio" for w.  Padding
is "SAME", "VALID", a number, or a number or pair (before, after) per window axis.  All becomes
`pad`, `conv_general` and reductions over windows; relies on `ops`, and `fgrad.nn` relies on it.
"""

from __future__ import annotations

from math import prod

from . import ops
from .core import as_value
from .errors import ArgumentError, ShapeError
from .numpy.contract import in_type
from .numpy.promotion import cast, join, kind
from .ops.convolve import extent, fitted, places, spread
from .scalar import highest, lowest


MANY, SEEN = 8, 18         # channels, or elements that a window sees, from which channels come last
                           # inside: a window's lie side by side


# ---------------------------------------------------------------------------- arguments

def per_axis(value, count, name):
    """`count` ints of at least 1, of an int or a tuple of ints."""
    out = (value,) * count if isinstance(value, int) else tuple(value)
    if len(out) != count or any(not isinstance(n, int) or n < 1 for n in out):
        raise ArgumentError(f"{name} needs an int of at least 1, or {count} of them.",
                            given=f"{name}={value!r}")
    return out


def is_window(sizes):
    """Is it a tuple of sizes?"""
    return isinstance(sizes, tuple) and all(isinstance(k, int) and k > 0 for k in sizes)


def padding_pairs(padding, sizes, window, stride, dilation):
    """A pair (before, after) per window axis; "SAME": as many places as ⌈size / stride⌉."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "SAME_LOWER", "VALID"):
            raise ArgumentError(f"there is no padding {padding!r}.", expected='"SAME" or "VALID"',
                                fix="or numbers: an int, or a pair (before, after) per axis")
        if padding.upper() == "VALID":
            return ((0, 0),) * len(sizes)
        rows = zip(sizes, window, stride, dilation)
        missing = [max(0, (-(-n // s) - 1) * s + extent(k, d) - n) for n, k, s, d in rows]
        lower = padding.upper() == "SAME_LOWER"
        return tuple((m - m // 2, m // 2) if lower else (m // 2, m - m // 2) for m in missing)
    if isinstance(padding, int):
        padding = (padding,) * len(sizes)
    pairs = tuple((p, p) if isinstance(p, int) else tuple(p) for p in padding)
    if len(pairs) != len(sizes) or any(len(p) != 2 for p in pairs):
        raise ArgumentError(f"padding needs a number or a pair for each of {len(sizes)} axes.",
                            given=f"padding={padding!r}")
    return pairs


def labels_of(dimension_numbers, ndim):
    """(labels of x, of w, of the result), as ("NHWC", "HWIO", "NHWC"); None: channels first."""
    if dimension_numbers is None:
        axes = "DHW"[-(ndim - 2):] if ndim <= 5 else "".join(map(str, range(ndim - 2)))
        axes = axes if ndim > 2 else ""
        return "NC" + axes, "OI" + axes, "NC" + axes
    labels = tuple(dimension_numbers)
    if len(labels) != 3 or not all(isinstance(s, str) for s in labels):
        raise ArgumentError("dimension_numbers are three strings of labels.",
                            given=repr(dimension_numbers), expected='as ("NHWC", "HWIO", "NHWC")')
    axes = set(labels[1]) - set("OI")
    if any(sorted(s) != sorted({*"NC", *axes}) for s in (labels[0], labels[2])) or (
            not {"O", "I"} <= set(labels[1]) or len(set(labels[1])) != len(labels[1])):
        raise ArgumentError("dimension_numbers do not belong together.", given=repr(labels),
                            expected="N and C, O and I, N and C, and equal labels of the window")
    return labels


# ---------------------------------------------------------------------------- convolution

def conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None,
                         dimension_numbers=None, feature_group_count=1, batch_group_count=1,
                         preferred_element_type=None):
    """A convolution with everything: JAX's `lax.conv_general_dilated`.

    dimension_numbers: labels of lhs, rhs and the result, as ("NHWC", "HWIO", "NHWC"); None:
    channels first.  lhs_dilation puts zeros between elements of lhs, rhs_dilation of the window.
    Groups of features see groups of channels; groups of the batch are seen by groups of features.
    preferred_element_type: the dtype in which products are made and added up, and of the result.
    Raises ShapeError where sizes do not agree, ArgumentError for parameters that do not fit.

    >>> import fgrad.numpy as fnp
    >>> conv_general_dilated(fnp.ones((1, 1, 4)), fnp.ones((1, 1, 3)), (1,), "VALID").tolist()
    [[[3.0, 3.0]]]
    """
    x, w = [as_value(v) for v in in_type(preferred_element_type, lhs, rhs)]
    dtype = join([kind(x), kind(w)])
    x, w = cast(x, dtype), cast(w, dtype)
    lhs, rhs, to = labels_of(dimension_numbers, x.ndim)
    if len(lhs) != x.ndim or len(rhs) != w.ndim:
        raise ShapeError(f"a convolution of {len(lhs) - 2} axes needs arrays of {len(lhs)} axes.",
                         given=[f"x: {x.type}", f"w: {w.type}"])
    window = "".join(c for c in rhs if c not in "OI")
    count = len(window)
    stride = per_axis(window_strides, count, "window_strides")
    spacing = per_axis(1 if lhs_dilation is None else lhs_dilation, count, "lhs_dilation")
    dilation = per_axis(1 if rhs_dilation is None else rhs_dilation, count, "rhs_dilation")
    check_groups(x, w, lhs, rhs, feature_group_count, batch_group_count)
    asked = to
    taps = [w.shape[rhs.index(c)] for c in window]
    groups = feature_group_count * batch_group_count
    if lhs[-1] != "C" and sees_many(x.shape[lhs.index("C")], taps, groups):
        inside = channels_last(window)
        x, w = relabelled(x, lhs, inside[0]), relabelled(w, rhs, inside[1])
        lhs, rhs, to = inside
    sizes = [extent(x.shape[lhs.index(c)], s) for c, s in zip(window, spacing)]
    pairs = padding_pairs(padding, sizes, taps, stride, dilation)
    x, lhs, w, rhs, wide = grouped(x, lhs, w, rhs, to, feature_group_count, batch_group_count)
    params = dict(lhs=lhs, rhs=rhs, to=wide, window=window)
    if any(s > 1 for s in spacing) and 0 not in x.shape:
        out = between_zeros(x, w, pairs, stride, spacing, dilation, **params)
    else:
        axes, starts = [lhs.index(c) for c in window], [-a for a, _ in pairs]
        x = fitted(x, axes, starts, [max(0, a + n + b) for (a, b), n in zip(pairs, sizes)])
        out = ops.conv_general(x, w, **params, stride=stride, dilation=dilation)
    return relabelled(merged(out, wide), to, asked)


def sees_many(channels, taps, groups):
    """Is a convolution with this window of these channels faster where they come last?"""
    return channels >= MANY or groups == 1 and channels * prod(taps) >= SEEN


def relabelled(x, labels, to):
    """x with its axes in another order."""
    if labels == to:
        return x
    return ops.transpose(x, perm=tuple(labels.index(c) for c in to))


def conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation=None,
                                 rhs_dilation=None, dimension_numbers=None):
    """What a window of filter_shape sees, place by place: JAX's function of that name.

    n[N,C,*s] → n[N,C·k,*t], where k is the number of elements of the window; those that belong to
    one channel stand together.  dimension_numbers: labels as of `conv_general_dilated`.
    Raises ShapeError and ArgumentError as that does.

    >>> import fgrad.numpy as fnp
    >>> conv_general_dilated_patches(fnp.arange(4.0)[None, None], (2,), (1,), "VALID")[0].tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]
    """
    x = as_value(lhs)
    lhs, rhs, to = labels_of(dimension_numbers, x.ndim)
    if len(lhs) != x.ndim:
        raise ShapeError(f"windows of {len(lhs) - 2} axes need an array of {len(lhs)} axes.",
                         given=f"x: {x.type}")
    window = "".join(c for c in rhs if c not in "OI")
    taps, stride, spacing, dilation = (
        per_axis(1 if value is None else value, len(window), name) for value, name in (
            (filter_shape, "filter_shape"), (window_strides, "window_strides"),
            (lhs_dilation, "lhs_dilation"), (rhs_dilation, "rhs_dilation")))
    x = relabelled(x, lhs, "NC" + window)
    x = ops.pad(x, 0, low=(0,) * x.ndim, high=(0,) * x.ndim,
                interior=(0, 0, *[s - 1 for s in spacing]))
    pairs = padding_pairs(padding, x.shape[2:], taps, stride, dilation)
    x = fitted(x, range(2, x.ndim), [-a for a, _ in pairs],
               [max(0, a + n + b) for (a, b), n in zip(pairs, x.shape[2:])])
    out = tuple(places(n, k, s, d) for n, k, s, d in zip(x.shape[2:], taps, stride, dilation))
    for axis, step in enumerate(zip(taps, out, stride, dilation), 2):
        x = seen_along(x, axis, *step)
    return relabelled(x, "NC" + window, to)


def seen_along(x, axis, taps, out, stride, dilation):
    """What the elements of a window along one axis see, behind each channel.

    A window of 8 × 8 is 16 slices, one axis after the other; of its elements there are 64.
    """
    parts = []
    for tap in range(taps):
        start, stop = [0] * x.ndim, list(x.shape)
        start[axis], stop[axis] = tap * dilation, tap * dilation + max(0, (out - 1) * stride + 1)
        steps = [stride if a == axis else 1 for a in range(x.ndim)]
        part = ops.slice(x, start=tuple(start), stop=tuple(stop), stride=tuple(steps))
        parts.append(ops.reshape(part, shape=(*part.shape[:2], 1, *part.shape[2:])))
    x = ops.concatenate(*parts, axis=2)
    return ops.reshape(x, shape=(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:]))


def check_groups(x, w, lhs, rhs, groups, batch_groups):
    """Raises ShapeError unless channels, batch and features are shared out evenly among groups."""
    channels, features = x.shape[lhs.index("C")], w.shape[rhs.index("O")]
    given = [f"x: {x.type} [{lhs}]", f"w: {w.type} [{rhs}]"]
    if groups < 1 or batch_groups < 1 or (groups > 1 and batch_groups > 1):
        raise ArgumentError("a convolution has groups of features, or of the batch, at least one.",
                            given=f"groups={groups} batch_groups={batch_groups}")
    batch, count = x.shape[lhs.index("N")], groups * batch_groups
    if channels % groups or features % count or batch % batch_groups:
        raise ShapeError(f"{count} groups do not divide the channels, batch and features.",
                         given=given)
    if w.shape[rhs.index("I")] != channels // groups:
        raise ShapeError(f"the window expects {w.shape[rhs.index('I')]} channels, and x has "
                         f"{channels}" + (f" in {groups} groups." if groups > 1 else "."),
                         given=given, expected=f"{channels // groups} channels of w",
                         fix=layout_of(x, groups * w.shape[rhs.index("I")], lhs, rhs)
                         or in_groups(channels, w.shape[rhs.index("I")], features))


def in_groups(channels, wanted, features):
    """How a window of fewer channels than x has would fit, or None."""
    if not wanted or not channels or channels % wanted or features % (channels // wanted):
        return None
    return (f"feature_group_count={channels // wanted}, where each group of {wanted} channels has "
            "its windows")


def layout_of(x, channels, lhs, rhs):
    """What to do where another axis of x has as many elements as w expects channels, or None."""
    at = lhs.index("C")
    found = [a for a in range(1, x.ndim) if x.shape[a] == channels]
    if not found:
        return None
    if at == 1:
        labels = channels_last("".join(c for c in rhs if c not in "OI"))
        return f"dimension_numbers={labels}, where channels come last"
    order = [a for a in range(x.ndim) if a != found[0]]
    order.insert(at, found[0])
    return f"x.transpose{tuple(order)}, since channels are axis {at} here"


def grouped(x, lhs, w, rhs, to, groups, batch_groups):
    """x, w and their labels in the letters of `conv_general`; groups are a label G of all three."""
    lhs, rhs, to = lhs.replace("C", "I"), rhs, to.replace("C", "O")
    count, axis = (groups, "I") if groups > 1 else (batch_groups, "N")
    if count > 1:
        x, lhs = with_group(x, lhs, axis, count)
        w, rhs = with_group(w, rhs, "O", count)
        to = to.replace("O", "GO")
    return x, lhs, w, rhs, to


def with_group(x, labels, c, count):
    """x with its axis c cut into `count` groups, a label G of their own."""
    a = labels.index(c)
    shape = (*x.shape[:a], count, x.shape[a] // count, *x.shape[a + 1:])
    return ops.reshape(x, shape=shape), labels.replace(c, "G" + c)


def merged(out, labels):
    """The result with the axes of its groups merged with the features."""
    if "G" not in labels:
        return out
    a = labels.index("G")
    return ops.reshape(out, shape=(*out.shape[:a], prod(out.shape[a:a + 2]), *out.shape[a + 2:]))


def between_zeros(x, w, pairs, stride, spacing, dilation, *, lhs, rhs, to, window):
    """The convolution of x with zeros between its elements, none of which is multiplied."""
    sizes = [extent(x.shape[lhs.index(c)], s) for c, s in zip(window, spacing)]
    taps = [w.shape[rhs.index(c)] for c in window]
    reversed_w = ops.rev(w, axes=tuple(sorted(rhs.index(c) for c in window)))
    out = spread(x, reversed_w, lhs, rhs, to, window, spacing, dilation)
    starts = [(k - 1) * d - a for k, d, (a, _) in zip(taps, dilation, pairs)]
    counts = [places(n + a + b, k, 1, d) for n, k, d, (a, b) in zip(sizes, taps, dilation, pairs)]
    out = fitted(out, [to.index(c) for c in window], starts, counts)
    steps = tuple(stride[window.index(c)] if c in window else 1 for c in to)
    if max(steps) == 1:
        return out
    return ops.slice(out, start=(0,) * out.ndim, stop=out.shape, stride=steps)


def conv(x, w, *, stride=1, padding="VALID", dilation=1, groups=1):
    """The convolution of x with w, channels last: f[n,*s,in] f[*k,in/groups,out] → f[n,*t,out].

    stride, dilation: an int, or one per window axis.  padding: "SAME", "VALID", or numbers.
    As everywhere in machine learning the window is not reversed.

    >>> import fgrad.numpy as fnp
    >>> conv(fnp.ones((1, 4, 4, 1)), fnp.ones((3, 3, 1, 2)), padding="SAME").shape
    (1, 4, 4, 2)
    """
    x, w = as_value(x), as_value(w)
    count = w.ndim - 2
    stride, dilation = per_axis(stride, count, "stride"), per_axis(dilation, count, "dilation")
    labels = channels_last(window_axes(w.ndim))
    return conv_general_dilated(x, w, stride, padding, None, dilation, labels, groups)


def window_axes(ndim):
    """The labels of the window's axes, of arrays with `ndim`."""
    return labels_of(None, ndim)[0][2:]


def channels_last(axes):
    """The labels of arrays with these axes of the window, channels last."""
    return "N" + axes + "C", axes + "IO", "N" + axes + "C"


def conv_transpose(lhs, rhs, strides, padding, rhs_dilation=None, dimension_numbers=None,
                   transpose_kernel=False):
    """The transposed convolution, with JAX's arguments: strides are between elements of the result.

    "SAME" gives size · stride places, "VALID" size · stride + max(0, extent of the window -
    stride).  Labels are channels last unless given.  transpose_kernel: the window is reversed,
    and its O and I change places, which makes it the gradient of a convolution.

    >>> import fgrad.numpy as fnp
    >>> conv_transpose(fnp.ones((1, 3, 1)), fnp.ones((2, 1, 1)), 2, "VALID").shape
    (1, 6, 1)
    """
    x, w = as_value(lhs), as_value(rhs)
    last = channels_last(window_axes(w.ndim))
    labels = last if dimension_numbers is None else labels_of(dimension_numbers, w.ndim)
    window = [a for a, c in enumerate(labels[1]) if c not in "OI"]
    stride = per_axis(strides, len(window), "strides")
    dilation = per_axis(1 if rhs_dilation is None else rhs_dilation, len(window), "rhs_dilation")
    if isinstance(padding, str):
        padding = [transposed_padding(extent(w.shape[a], d), s, padding)
                   for a, s, d in zip(window, stride, dilation)]
    if transpose_kernel:
        w = ops.rev(w, axes=tuple(window))
        labels = labels[0], labels[1].translate(str.maketrans("OI", "IO")), labels[2]
    return conv_general_dilated(x, w, 1, padding, stride, dilation, labels)


def transposed_padding(k, s, padding):
    """The pair around x for "SAME" or "VALID", as JAX has it."""
    if padding.upper() == "SAME":
        total = k + s - 2
        before = k - 1 if s > k - 1 else -(-total // 2)
    elif padding.upper() == "VALID":
        total, before = k + s - 2 + max(k - s, 0), k - 1
    else:
        raise ArgumentError(f"there is no padding {padding!r}.", expected='"SAME" or "VALID"')
    return before, total - before


# ---------------------------------------------------------------------------- windows

REDUCE_WINDOW = {"max": ops.reduce_window_max, "min": ops.reduce_window_min,
                 "sum": ops.reduce_window_sum}


def reduce_window(x, how, window, stride=1, padding="VALID", dilation=1):
    """x reduced over sliding windows: how is "max", "min" or "sum".

    window: an entry for each axis of x; stride, dilation: one for all, or for each.  Padding counts
    as the identity of `how`: of floats -inf, inf or 0, of integers the least, the largest or 0.

    >>> import fgrad.numpy as fnp
    >>> reduce_window(fnp.arange(5.0), "sum", (2,)).tolist()
    [1.0, 3.0, 5.0, 7.0]
    """
    x = as_value(x)
    if how not in REDUCE_WINDOW:
        raise ArgumentError(f"reduce_window has no {how!r}.", expected=" ".join(REDUCE_WINDOW))
    window = per_axis(window, x.ndim, "window")
    stride, dilation = per_axis(stride, x.ndim, "stride"), per_axis(dilation, x.ndim, "dilation")
    pairs = padding_pairs(padding, x.shape, window, stride, dilation)
    value = 0 if how == "sum" else (lowest if how == "max" else highest)(x.dtype)
    x = fitted(x, range(x.ndim), [-a for a, _ in pairs],
               [max(0, a + n + b) for (a, b), n in zip(pairs, x.shape)], value)
    return REDUCE_WINDOW[how](x, window=window, stride=stride, dilation=dilation)
