"""einsum: sums of products by labels, operands taken two at a time in an order that costs little.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import ops
from ..arguments import lifted
from ..errors import ArgumentError, ShapeError
from ..types import BOOL
from .axes import typed
from .contract import LETTERS, factors, in_type, product
from .matrices import diagonal


def einsum(subscripts, *operands, optimize="greedy", preferred_element_type=None):
    """The sum of products that the labels say: einsum("ij,jk->ik", a, b) is a @ b.

    A label that the result lacks is summed; "..." stands for further axes, which broadcast. 
    Without "->" the result has the labels that occur once, in alphabetical order.  As in NumPy,
    labels may be lists of ints behind each operand, the result's last.  optimize: how the order of
    three operands and more is found, "greedy" or "optimal"; False: from left to right.
    preferred_element_type: as for `matmul`.  Raises ShapeError when one label has two sizes,
    ArgumentError for labels that do not fit the operands.

    >>> einsum("i,i->", [1, 2], [3, 4]).item()
    11
    >>> einsum([1, 2], [0], [3, 4], [0], []).item()
    11
    """
    if not isinstance(subscripts, str):
        subscripts, operands = in_letters((subscripts, *operands))
    operands = in_type(preferred_element_type, *operands)
    xs = factors(*operands if len(operands) > 1 else map(lifted, operands))
    labels, to = parsed(subscripts, xs)
    xs, labels = map(list, zip(*[without_repeats(x, s) for x, s in zip(xs, labels)]))
    check_sizes(subscripts, xs, labels)
    sizes = sizes_of(xs, labels)
    xs, labels = map(list, zip(*[without_ones(x, s, sizes) for x, s in zip(xs, labels)]))
    for places in path_of(xs, labels, to, optimize):
        group = [(xs.pop(k), labels.pop(k)) for k in sorted(places, reverse=True)][::-1]
        while len(group) > 1:
            (x, a), (y, b), *rest = group
            later = set(to).union(*labels, *[s for _, s in rest])
            kept = "".join(c for c in dict.fromkeys(a + b) if c in later)
            kept = to if not rest and not xs and set(kept) == set(to) else kept
            group = [(product(x, y, lhs=a, rhs=b, to=kept), kept), *rest]
        xs.append(group[0][0])
        labels.append(group[0][1])
    return finished(xs[0], labels[0], to)


def path_of(xs, labels, to, optimize):
    """Which operands are multiplied, step by step; a product comes behind those that are left."""
    if optimize not in (True, False, "greedy", "optimal"):
        raise ArgumentError("einsum finds an order greedily, or the optimal one.",
                            given=f"optimize={optimize!r}",
                            expected='"greedy", "optimal", True or False')
    if len(xs) < 3 or not optimize:
        return [tuple(range(len(xs)))]
    return found_path(f"{','.join(labels)}->{to}", tuple(x.shape for x in xs), optimize)


@functools.lru_cache(maxsize=256)
def found_path(subscripts, shapes, optimize):
    """NumPy's path for operands of these shapes."""
    empty = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    return np.einsum_path(subscripts, *empty, optimize=optimize)[0][1:]


def finished(x, labels, to):
    """x with its labels summed and ordered as in `to`."""
    axes = tuple(k for k, c in enumerate(labels) if c not in to)
    if axes:
        x = (ops.reduce_or if x.dtype == BOOL else ops.reduce_sum)(x, axes=axes)
        labels = "".join(c for c in labels if c in to)
    if labels == to:
        return x
    return ops.transpose(x, perm=tuple(labels.index(c) for c in to))


# ---------------------------------------------------------------------------- labels

def in_letters(given):
    """(labels as a text, operands) of operands that are followed by lists of ints each."""
    lists = [*given[1::2], *(given[-1:] if len(given) % 2 else ())]
    if not all(isinstance(s, (list, tuple)) and all(c is ... or isinstance(c, int) for c in s)
               for s in lists):
        raise ArgumentError("einsum needs labels first, or ints behind each operand.",
                            given=repr(given[0])[:60],
                            expected='such as "ij,jk->ik", a, b or a, [0, 1], b, [1, 2], [0, 2]')
    known = sorted({c for s in lists for c in s if c is not ...})
    letters = dict(zip(known, sorted(LETTERS))) | {...: "..."}
    if len(known) > len(LETTERS):
        raise ArgumentError(f"einsum has at most {len(LETTERS)} labels.", given=f"{len(known)}")
    texts = ["".join(letters[c] for c in s) for s in lists]
    count = len(given) // 2
    return "->".join([",".join(texts[:count]), *texts[count:]]), given[:2 * count:2]


def parsed(subscripts, xs):
    """(labels of each operand, labels of the result), with "..." written out."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(xs):
        raise ArgumentError(f"einsum has labels for {len(parts)} operands, and {len(xs)} operands.",
                            given=subscripts)
    free = [c for c in LETTERS if c not in text]
    dots = max([x.ndim - len(p.replace("...", "")) for p, x in zip(parts, xs) if "..." in p],
               default=0)
    more = "".join(free[:max(dots, 0)])
    labels = [written_out(p, x, more, subscripts) for p, x in zip(parts, xs)]
    if not arrow:
        every = "".join(labels)
        to = more + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in more))
    else:
        to = right.replace("...", more)
    if len(set(to)) != len(to) or set(to) - set("".join(labels)):
        raise ArgumentError("einsum has a label in its result twice, or one that no operand has.",
                            given=subscripts)
    return labels, to


def written_out(part, x, more, subscripts):
    """The labels of one operand, one per axis."""
    if "..." in part:
        count = x.ndim - len(part.replace("...", ""))
        part = part.replace("...", more[len(more) - count:] if count > 0 else "")
    if not all(c.isalpha() for c in part):
        raise ArgumentError("the labels of einsum are letters.", given=subscripts)
    if len(part) != x.ndim:
        raise ArgumentError(f"einsum has {len(part)} labels for an operand of {x.ndim} axes.",
                            given=[subscripts, typed(x)])
    return part


def without_repeats(x, labels):
    """x and its labels, each once: a label that occurs twice takes the diagonal."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(f"einsum needs equal sizes for label {c}.", given=typed(x))
            x = diagonal(x, 0, first, second)
            labels = "".join(k for j, k in enumerate(labels) if j not in (first, second)) + c
    return x, labels


def sizes_of(xs, labels):
    """label → the size it has, 1 only where it is 1 everywhere."""
    sizes = {}
    for x, s in zip(xs, labels):
        for c, n in zip(s, x.shape):
            if sizes.get(c, 1) == 1:
                sizes[c] = n
    return sizes


def check_sizes(subscripts, xs, labels):
    """Raises ShapeError unless every label has one size, or 1."""
    sizes = sizes_of(xs, labels)
    for x, s in zip(xs, labels):
        for c, n in zip(s, x.shape):
            if n not in (1, sizes[c]):
                raise ShapeError(f"einsum needs equal sizes for label {c}, not {sizes[c]} and {n}.",
                                 given=[subscripts,
                                        *[f"operand {k + 1}: {typed(v)}" for k,
                                          v in enumerate(xs)]])


def without_ones(x, labels, sizes):
    """x without the axes of size 1 whose label is larger elsewhere: they broadcast."""
    kept = [k for k, c in enumerate(labels) if x.shape[k] == sizes[c]]
    if len(kept) == len(labels):
        return x, labels
    return ops.reshape(x, shape=tuple(x.shape[k] for k in kept)), "".join(labels[k] for k in kept)
