"""map and associative_scan: a function for each element, and running combinations in log n steps.

Relies on `scan.py` and on vmap; users rely on it.
"""

from __future__ import annotations

from .. import config, tree
from ..arguments import check_function, check_takes, is_array, lifted, place_of, tree_text
from ..errors import ArgumentError, AxisError, ShapeError, TreeError, boundary
from ..ops import concatenate, pad, reshape, rev, slice, transpose
from ..ops.move import to_front
from ..transforms import vmap
from .bodies import whole
from .checkpoint import kept
from .scan import scanned

SHORT = 8                  # elements up to which associative_scan is one expression


@boundary
def map(f, xs, *, batch_size=None):
    """f applied to each element along the leading axis of xs, one after the other; results stacked.

    xs: a pytree of arrays of one leading size.  batch_size: so many elements at a time, by vmap.
    Raises ShapeError when leading sizes differ.

    >>> import fgrad.numpy as fnp
    >>> map(lambda x: x * x, fnp.array([1.0, 2.0, 3.0]))
    Array([1., 4., 9.], f32[3])
    """
    check_function(f, "map", "f")
    check_takes(f, 1, "map")
    if batch_size is None:
        return scanned("map", f, each(f), None, xs)[1]
    batch_size = whole("map", "batch_size", batch_size, 1)
    leaves, structure = tree.flatten(xs)
    leaves = [lifted(x) for x in leaves]
    n = leading(leaves)
    even = n // batch_size * batch_size
    parts = []
    if even:
        blocks = [reshape(rows(x, 0, even), shape=(even // batch_size, batch_size, *x.shape[1:]))
                  for x in leaves]
        made = scanned("map", f, each(vmap(f)), None, tree.unflatten(structure, blocks))[1]
        parts.append(tree.map(lambda y: reshape(y, shape=(even, *y.shape[2:])), made))
    if even < n or not parts:
        parts.append(vmap(f)(tree.unflatten(structure, [rows(x, even, n) for x in leaves])))
    return parts[0] if len(parts) == 1 else tree.map(lambda *ys: concatenate(*ys, axis=0), *parts)


def each(f):
    """The body of a scan that carries nothing."""
    return lambda _, x: (None, f(x))


def leading(leaves):
    """The one leading size."""
    sizes = {x.shape[:1] for x in leaves}
    if len(sizes) != 1 or () in sizes:
        raise ShapeError("map needs arrays of one leading size.",
                         given=[str(x.type) for x in leaves])
    return sizes.pop()[0]


def rows(x, start, stop, axis=0, stride=1):
    """x[start:stop:stride] along one axis."""
    along = [(start, stop, stride) if a == axis else (0, n, 1) for a, n in enumerate(x.shape)]
    starts, stops, strides = zip(*along)
    return slice(x, start=starts, stop=stops, stride=strides)


# ---------------------------------------------------------------------------- associative_scan

@boundary
def associative_scan(fn, elems, reverse=False, axis=0):
    """Per place along `axis`, all elements up to it combined by fn.

    fn(a, b): associative, on pytrees like elems, elementwise along `axis`; a comes before b in the
    order of the scan.  reverse: from the end, so a is what was combined behind b, as in JAX.
    On the CPU one element after the other, which touches each once; on other devices, and up to
    SHORT elements, in 2 log₂ n calls of fn (Blelloch, Prefix sums and their applications, 1990).
    Raises ShapeError when sizes along the axis differ, and TreeError when fn returns another tree
    or other dtypes than it is given.

    >>> import fgrad.numpy as fnp
    >>> associative_scan(lambda a, b: a * b, fnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([ 1.,  2.,  6., 24.], f32[4])
    """
    leaves, structure = tree.flatten(elems)
    if not leaves or not all(is_array(x) for x in leaves):
        raise ArgumentError("associative_scan needs arrays to combine.")
    check_takes(fn, 2, "associative_scan")
    leaves = [lifted(x) for x in leaves]
    axis = whole("associative_scan", "axis", axis)
    if any(not -x.ndim <= axis < x.ndim for x in leaves):
        raise AxisError(f"associative_scan along axis {axis} needs arrays that have it.",
                        given=[str(x.type) for x in leaves])
    at = [axis % x.ndim for x in leaves]
    if len({x.shape[a] for x, a in zip(leaves, at)}) > 1:
        raise ShapeError(f"associative_scan needs one size along axis {axis}.",
                         given=[str(x.type) for x in leaves])

    def combine(first, second):
        out = fn(tree.unflatten(structure, first), tree.unflatten(structure, second))
        return combined(fn, structure, first, out)
    if leaves[0].shape[at[0]] > SHORT and config.device() == "cpu":
        return tree.unflatten(structure, in_order(fn, combine, leaves, at, reverse))
    turned = [rev(x, axes=(a,)) for x, a in zip(leaves, at)] if reverse else leaves
    found = prefixes(combine, turned, at)
    if reverse:
        found = [rev(x, axes=(a,)) for x, a in zip(found, at)]
    return tree.unflatten(structure, found)


def combined(fn, structure, elems, out):
    """The leaves of what fn returned for some parts of elems.  Raises TreeError unless they are
    such as these are.
    """
    found, other = tree.flatten(out)
    found = [lifted(x).settled() for x in found]
    if other != structure or [x.type for x in found] != [x.type for x in elems]:
        same = other == structure and [x.shape for x in found] == [x.shape for x in elems]
        given = [x.type for x in (*elems, *found)]
        n = len(elems)
        raise TreeError(
            f"associative_scan: {place_of(fn)} must return what it combines: the tree, the shapes "
            "and the dtypes of its arguments.",
            given=[f"arguments {tree_text(tree.unflatten(structure, given[:n]))}",
                   f"out       {tree_text(tree.unflatten(other, given[n:]))}"],
            fix="convert elems to the dtype of the result before" if same else None)
    return found


def in_order(fn, combine, xs, at, reverse):
    """The same by a scan: combine, made of fn, gets one element at a time, which keeps its axis."""
    n = xs[0].shape[at[0]]
    first, start, stop = (n - 1, 0, n - 1) if reverse else (0, 1, n)

    def step(carry, row):
        carry = combine(carry, [reshape(x, shape=c.shape) for x, c in zip(row, carry)])
        return carry, carry
    turned = [kept(to_front(x, a)) if a else x for x, a in zip(xs, at)]
    begin = [reshape(rows(x, first, first + 1), shape=(*x.shape[1:a + 1], 1, *x.shape[a + 1:]))
             for x, a in zip(turned, at)]
    _, found = scanned("associative_scan", fn, step, begin, [rows(x, start, stop) for x in turned],
                       None, reverse)
    out = []
    for x, y, a in zip(begin, found, at):
        shape = (*x.shape[:a], *x.shape[a + 1:])
        parts = [reshape(x, shape=(1, *shape)), reshape(y, shape=(n - 1, *shape))]
        y = concatenate(*(parts[::-1] if reverse else parts), axis=0)
        back = (*range(1, a + 1), 0, *range(a + 1, y.ndim))
        out.append(transpose(kept(y), perm=back) if a else y)
    return out


def prefixes(combine, xs, at):
    """Pairs are combined, their prefixes found, and those of the other places follow from them."""
    n = xs[0].shape[at[0]]
    if n < 2:
        return xs

    def part(values, start, stop, stride=1):
        return [rows(x, start, stop, a, stride) for x, a in zip(values, at)]
    odd = prefixes(combine, combine(part(xs, 0, n - 1, 2), part(xs, 1, n, 2)), at)
    even = part(xs, 0, 1)
    if n > 2:
        later = part(xs, 2, n, 2)
        m = later[0].shape[at[0]]
        more = combine(part(odd, 0, m), later)
        even = [concatenate(x, y, axis=a) for x, y, a in zip(even, more, at)]
    return [interleaved(x, y, a) for x, y, a in zip(even, odd, at)]


def interleaved(even, odd, axis):
    """even[0], odd[0], even[1], odd[1], …"""
    n, m = even.shape[axis], odd.shape[axis]
    if m < n:
        none = (0,) * odd.ndim
        high = tuple(n - m if a == axis else 0 for a in range(odd.ndim))
        odd = pad(odd, False if odd.dtype.kind == "b" else 0, low=none, high=high, interior=none)
    shape = (*even.shape[:axis + 1], 1, *even.shape[axis + 1:])
    both = concatenate(reshape(even, shape=shape), reshape(odd, shape=shape), axis=axis + 1)
    flat = reshape(both, shape=(*even.shape[:axis], 2 * n, *even.shape[axis + 1:]))
    return rows(flat, 0, n + m, axis)
