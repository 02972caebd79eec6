"""Elimination, substitution, Cholesky's factors and reflections as loops over rows and columns.

Each works on matrices [n, n], or on a stack of them that lies along the last axis: [n, n, stack],
so that vectors run over the stack.  Large triangles are taken BLOCK rows at once, with products in
front of them.  Where there is no answer the results are NaN, as those of the NumPy rules.

Sources: G. Golub, C. Van Loan, "Matrix computations" (4th ed. 2013), 3.1 (substitution by blocks),
3.4 (partial pivoting), 4.2 (Cholesky by blocks), 5.1 (reflections).  `matrices` puts these in
place of equations; they rely on the operations and on control flow.
"""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..control import fori_loop, kept
from ..ops.index import take_along
from ..ops.linalg import product, turned
from ..transforms import vmap
from ..types import BOOL, I32

BLOCK = 16                 # rows of a block


def in_order(n, step, start):
    """step(n - 1, … step(1, step(0, start))), of i32[] numbers."""
    return fori_loop(np.int32(0), np.int32(n), step, start)


# ---------------------------------------------------------------------------- rows and columns

def at(x, k, axis):
    """The elements at k along an axis, which is gone; k: i32[]."""
    return ops.reshape(part(x, k, axis, 1), shape=(*x.shape[:axis], *x.shape[axis + 1:]))


def part(x, k, axis, count=BLOCK):
    """`count` elements from k on along an axis."""
    return ops.dynamic_slice(x, *starts(x, k, axis),
                             sizes=(*x.shape[:axis], count, *x.shape[axis + 1:]))


def put(x, new, k, axis=0):
    """x with other elements from k on along an axis."""
    return ops.dynamic_update_slice(x, new, *starts(x, k, axis))


def starts(x, k, axis):
    """k along an axis, and 0 along the others."""
    zero = ops.full(shape=(), value=0, dtype=I32)
    return [k if a == axis else zero for a in range(x.ndim)]


def numbers(like, axis=0):
    """The index along an axis, in the shape of an array.   → i32[*s]"""
    return ops.iota(shape=like.shape, axis=axis, dtype=I32)


def all_over(x, like, axis=None):
    """x in the shape of an array: for every index along an axis, or a number (None) for all."""
    axes = tuple(range(like.ndim)) if axis is None else (axis,)
    return ops.broadcast(x, shape=like.shape, axes=axes)


def minus_product(x, column, row):
    """x[i,j] - column[i] row[j]."""
    return ops.sub(x, ops.mul(all_over(column, x, 1), all_over(row, x, 0)))


def diagonal(a):
    """The diagonal.   f[n,n,*b] → f[n,*b]"""
    n, rest = a.shape[0], a.shape[2:]
    rows = ops.reshape(a, shape=(n * n, *rest))
    strides = (n + 1, *[1 for _ in rest])
    return ops.slice(rows, start=(0,) * rows.ndim, stop=rows.shape, stride=strides)


# ---------------------------------------------------------------------------- elimination

def eliminated(a, b, without_pivot, factors=False):
    """(upper triangle of a, b, pivots) after elimination with partial pivoting.

    b: None, or f[n,c,*b].  without_pivot: what a column without any is divided by.  factors: are
    these kept below the triangle?  pivots: i32[n,*b], as of `ops.lu`.
    """
    def step(k, carry):
        a, *b, pivots = carry
        column = at(a, k, 1)
        below = ops.ge(numbers(column), all_over(k, column))
        largest = ops.argmax(ops.select(below, ops.abs(column), -1.0), axis=0)
        a, top = exchanged(a, k, largest)
        pivot = at(top, k, 0)
        pivot = ops.select(ops.eq(pivot, 0.0), without_pivot, pivot)
        column = at(a, k, 1)
        factor = ops.div(column, all_over(pivot, column, 0))
        rest = minus_product(a, factor, top)
        if factors:
            index, here = numbers(a, 1), all_over(k, a)
            known = ops.select(ops.eq(index, here), all_over(factor, a, 1), a)
            rest = ops.select(ops.gt(index, here), rest, known)
        out = [ops.select(beneath(a, k), rest, a)]
        for x in b:
            x, row = exchanged(x, k, largest)
            out.append(ops.select(beneath(x, k), minus_product(x, factor, row), x))
        return (*out, put(pivots, ops.reshape(largest, shape=(1, *largest.shape)), k))
    n = a.shape[0]
    pivots = ops.full(shape=(n, *a.shape[2:]), value=0, dtype=I32)
    start = (a, pivots) if b is None else (a, b, pivots)
    return in_order(n, step, start)


def beneath(x, k):
    """Is it in a row behind row k?"""
    return ops.gt(numbers(x), all_over(k, x))


def exchanged(x, k, p):
    """(x with rows k and p exchanged, its row k then).   f[n,c,*b] i32[] i32[*b]"""
    rows, here, there = numbers(x), all_over(k, x), p
    if p.ndim == 0:
        there, row = all_over(p, x), at(x, p, 0)
    else:
        there = ops.broadcast(p, shape=x.shape, axes=(0, 1))
        row = ops.reduce_sum(ops.select(ops.eq(rows, there), x, 0), axes=(0,))
    other = ops.select(ops.eq(rows, there), all_over(at(x, k, 0), x, 0), x)
    return ops.select(ops.eq(rows, here), all_over(row, x, 0), other), row


def solve(a, b):
    """y with a y = b."""
    a, b, _ = eliminated(a, b, math.nan)
    return (substituted(a, b, lower=False, unit=False),)


def substituted(a, b, lower, unit):
    """y with a y = b for a triangle of a, row by row; NaN from where its diagonal is 0."""
    n = a.shape[0]

    def step(j, y):
        k = j if lower else ops.sub(n - 1, j)
        factors, right = at(a, k, 0), at(b, k, 0)
        index, here = numbers(factors), all_over(k, factors)
        known = ops.lt(index, here) if lower else ops.gt(index, here)
        known = all_over(ops.select(known, factors, 0.0), y, 1)
        right = ops.sub(right, ops.reduce_sum(ops.mul(known, y), axes=(0,)))
        if not unit:
            pivot = at(factors, k, 0)
            pivot = ops.select(ops.eq(pivot, 0.0), math.nan, pivot)
            right = ops.div(right, all_over(pivot, right, 0))
        return put(y, ops.reshape(right, shape=(1, *right.shape)), k)
    return in_order(n, step, ops.zeros_like(b))


def by_blocks(a, b, lower, unit):
    """The same with BLOCK rows a step, by products: what is known is subtracted, and the rest is
    multiplied by the inverse of the block on the diagonal.
    """
    n = a.shape[0]
    a, b = in_blocks(a, 1.0), in_blocks(b)
    count = a.shape[0] // BLOCK
    inverses = inverse_blocks(a, lower, unit)

    def step(j, y):
        j = j if lower else ops.sub(count - 1, j)
        k = ops.mul(j, BLOCK)
        rows = part(a, k, 0)
        index, here = numbers(rows, 1), all_over(k, rows)
        known = ops.lt(index, here) if lower else ops.ge(index, ops.add(here, BLOCK))
        right = ops.sub(part(b, k, 0), product(ops.select(known, rows, 0.0), y))
        return put(y, product(at(inverses, j, 0), right), k)
    return first_rows(in_order(count, step, ops.zeros_like(b)), n)


def inverse_blocks(a, lower, unit):
    """The inverses of the blocks on the diagonal, all at once.   f[n,n] → f[n/BLOCK,BLOCK,BLOCK]"""
    count = a.shape[0] // BLOCK
    blocks = ops.reshape(a, shape=(count, BLOCK, count, BLOCK))
    blocks = diagonal(ops.transpose(blocks, perm=(0, 2, 1, 3)))
    one = identity(ops.full(shape=(BLOCK, BLOCK), value=0, dtype=a.dtype))
    return vmap(lambda block: substituted(block, one, lower, unit))(blocks)


def identity(like):
    """Ones on the diagonal, and zeros beside it, in the shape of a matrix."""
    return ops.convert(ops.eq(numbers(like), numbers(like, 1)), dtype=like.dtype)


def in_blocks(x, diagonal=0.0):
    """A matrix with zeros behind its rows up to whole blocks; diagonal: a square one that is stored
    so, with zeros behind its columns too but for the diagonal.
    """
    more = -x.shape[0] % BLOCK
    if not more:
        return x
    wide = more if diagonal else 0
    out = ops.pad(x, 0, low=(0, 0), high=(more, wide), interior=(0, 0))
    if not diagonal:
        return out
    row, column = numbers(out), numbers(out, 1)
    behind = ops.and_(ops.eq(row, column), ops.ge(row, x.shape[0]))
    return kept(ops.select(behind, diagonal, out))


def first_rows(x, n):
    """The first n rows of a matrix."""
    return ops.slice(x, start=(0, 0), stop=(n, x.shape[1]), stride=(1, 1))


def triangular_solve(a, b, *, lower, unit):
    """y with a y = b for a triangle of a; all of it NaN where its diagonal has a 0."""
    by = by_blocks if a.ndim == 2 and a.shape[0] > BLOCK else substituted
    out = by(a, b, lower, unit)
    if unit:
        return (out,)
    least = ops.reduce_min(ops.abs(diagonal(a)), axes=(0,))
    return (ops.select(all_matrix(ops.eq(least, 0.0), out), math.nan, out),)


def all_matrix(x, like):
    """x[*b] for every element of matrices [n,c,*b]."""
    return ops.broadcast(x, shape=like.shape, axes=(0, 1))


def slogdet(a):
    """(sign, log |det a|)."""
    a, pivots = eliminated(a, None, 1.0)
    entries = diagonal(a)
    same = ops.eq(pivots, numbers(pivots))
    signs = ops.select(same, ops.sign(entries), ops.neg(ops.sign(entries)))
    return (ops.reduce_prod(signs, axes=(0,)),
            ops.reduce_sum(ops.log(ops.abs(entries)), axes=(0,)))


def lu(a):
    """(L and U in one, pivots)."""
    return eliminated(a, None, 1.0, factors=True)


def cholesky(a):
    """L with L Lᵀ = (a + aᵀ) / 2; all of it NaN unless positive definite."""
    n, other = a.shape[0], ops.transpose(a, perm=(1, 0, *range(2, a.ndim)))
    a = ops.mul(ops.add(a, other), 0.5)
    out = blocks_of_root(a) if a.ndim == 2 and n > BLOCK else columns_of_root(a)
    end = ops.full(shape=(), value=n - 1, dtype=I32)
    last = at(at(out, end, 0), end, 0)
    return (ops.select(all_matrix(ops.ne(last, last), out), math.nan, out),)


def columns_of_root(a):
    """L, a column a step; NaN from where the matrix is not positive definite."""
    def step(k, out):
        column, _ = next_column(a, out, at(out, k, 0), k)
        return put(out, column, k, 1)
    return in_order(a.shape[0], step, ops.zeros_like(a))


def inverse_of_root(a):
    """The inverse of L, a row a step, beside L itself."""
    one = identity(a)

    def step(k, carry):
        out, inverse = carry
        row = at(out, k, 0)
        column, root = next_column(a, out, row, k)
        known = ops.reduce_sum(ops.mul(all_over(row, inverse, 1), inverse), axes=(0,))
        right = ops.sub(at(one, k, 0), known)
        right = ops.div(right, all_over(root, right))
        return put(out, column, k, 1), put(inverse, ops.reshape(right, shape=(1, len(row))), k)
    return in_order(a.shape[0], step, (ops.zeros_like(a), ops.zeros_like(a)))[1]


def next_column(a, out, row, k):
    """(column k of L, f[n,1,*b], its element on the diagonal); out: L so far, row: its row k, which
    has zeros from column k on.
    """
    known = ops.reduce_sum(ops.mul(out, ops.broadcast(row, shape=out.shape, axes=(0,))), axes=(1,))
    column = ops.sub(at(a, k, 1), known)
    pivot = at(column, k, 0)
    root = ops.select(ops.gt(pivot, 0.0), ops.sqrt(pivot), math.nan)
    column = ops.div(column, all_over(root, column, 0))
    column = ops.select(ops.ge(numbers(column), all_over(k, column)), column, 0.0)
    return ops.reshape(column, shape=(column.shape[0], 1, *column.shape[1:])), root


def blocks_of_root(a):
    """L, BLOCK columns a step: those of a without the products of what is known of L."""
    n, a = a.shape[0], in_blocks(a, 1.0)

    def step(j, out):
        k = ops.mul(j, BLOCK)
        columns = ops.sub(part(a, k, 1), product(out, turned(part(out, k, 0))))
        inverse = inverse_of_root(part(columns, k, 0))
        columns = product(columns, turned(inverse))
        row, column = numbers(columns), numbers(columns, 1)
        here = ops.ge(row, ops.add(column, all_over(k, columns)))
        return put(out, ops.select(here, columns, 0.0), k, 1)
    out = in_order(a.shape[0] // BLOCK, step, ops.zeros_like(a))
    return ops.slice(out, start=(0, 0), stop=(n, n), stride=(1, 1))


def pivots_to_permutation(pivots):
    """The order of rows after exchanges."""
    order = numbers(pivots)
    pivots = ops.min(ops.max(pivots, 0), pivots.shape[0] - 1)
    order = ops.reshape(order, shape=(order.shape[0], 1, *order.shape[1:]))
    order = in_order(pivots.shape[0], lambda k, order: exchanged(order, k, at(pivots, k, 0))[0],
                     order)
    return (ops.reshape(order, shape=pivots.shape),)


# ---------------------------------------------------------------------------- the pseudo-inverse

def pinv(x, *, rtol):
    """V diag(1/s) Uᵀ, where singular values up to rtol times the largest count as 0."""
    u, s, vt = ops.svd(x, full=False)
    largest = ops.reduce_max(s, axes=(0,))
    large = ops.gt(s, ops.mul(rtol, ops.broadcast(largest, shape=s.shape, axes=(0,))))
    inverse = ops.select(large, ops.div(1.0, s), 0.0)
    scaled = ops.mul(turned(vt), ops.broadcast(inverse, shape=vt.shape[::-1], axes=(0,)))
    return (product(scaled, turned(u)),)


# ---------------------------------------------------------------------------- orders

def sort(x):
    """x along the first axis in order."""
    return (take_along(x, order(x)[0], 0),)


def order(*keys):
    """The places along the first axis in the order of the keys, of which the first decides first:
    each goes where as many are before it.
    """
    shape = (keys[0].shape[0], *keys[0].shape)
    rows, columns = (ops.iota(shape=shape, axis=axis, dtype=I32) for axis in (0, 1))
    before = ops.lt(columns, rows)
    for x in reversed(keys):
        mine, other = (ops.broadcast(x, shape=shape, axes=(axis,)) for axis in (1, 0))
        less, equal = ops.lt(other, mine), ops.eq(other, mine)
        if x.dtype.kind == "f":
            nan, other_nan = ops.ne(mine, mine), ops.ne(other, other)
            less = ops.or_(less, ops.and_(nan, ops.not_(other_nan)))
            equal = ops.or_(equal, ops.and_(nan, other_nan))
        before = ops.or_(less, ops.and_(equal, before))
    place = ops.reduce_sum(ops.convert(before, dtype=I32), axes=(1,))
    here = ops.eq(ops.broadcast(place, shape=shape, axes=(0,)), rows)
    return (ops.reduce_sum(ops.select(here, columns, 0), axes=(1,)),)


# ---------------------------------------------------------------------------- the largest

def top_k(x, *, k):
    """(the k largest along the first axis, their places): the largest of what is left, k times."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min

    def step(n, carry):
        taken, values, places = carry
        left = ops.select(taken, lowest, x)
        best, place = ops.reduce_max(left, axes=(0,)), ops.argmax(left, axis=0)
        first = ops.argmin(ops.convert(taken, dtype=I32), axis=0)
        place = ops.select(ops.eq(best, lowest), first, place)       # all that is left is lowest
        mine = ops.eq(numbers(x), all_over(place, x, 0))
        value = ops.reduce_max(ops.select(mine, x, lowest), axes=(0,))
        found = [ops.reshape(v, shape=(1, *v.shape)) for v in (value, place)]
        return ops.or_(taken, mine), put(values, found[0], n), put(places, found[1], n)
    none = ops.full(shape=x.shape, value=False, dtype=BOOL)
    start = [ops.full(shape=(k, *x.shape[1:]), value=0, dtype=dtype) for dtype in (x.dtype, I32)]
    return in_order(k, step, (none, *start))[1:]


# ---------------------------------------------------------------------------- reflections

def qr(a, *, full=False):
    """(Q, R) by reflections I - t v vᵀ; R has the signs that LAPACK gives it."""
    (m, n), stack = a.shape[:2], a.shape[2:]
    count = min(m, n)

    def step(k, carry):
        a, vectors, factors = carry
        v, t = reflection(at(a, k, 1), k)
        mine = ops.eq(numbers(vectors, 1), all_over(k, vectors))
        vectors = ops.select(mine, all_over(v, vectors, 1), vectors)
        factors = ops.select(ops.eq(numbers(factors), all_over(k, factors)),
                             all_over(t, factors, 0), factors)
        return reflected(a, v, t), vectors, factors
    vectors, factors, start = [ops.full(shape=(*shape, *stack), value=0, dtype=a.dtype)
                               for shape in ((m, count), (count,), (m, m if full else n))]
    r, vectors, factors = in_order(count, step, (a, vectors, factors))
    start = ops.select(ops.eq(numbers(start), numbers(start, 1)), 1.0, start)

    def back(j, q):
        k = ops.sub(count - 1, j)
        return reflected(q, at(vectors, k, 1), at(factors, k, 0))
    q = in_order(count, back, start)
    r = ops.select(ops.gt(numbers(r), numbers(r, 1)), 0.0, r)
    rows = m if full else n
    return q, ops.slice(r, start=(0,) * r.ndim, stop=(rows, *r.shape[1:]), stride=(1,) * r.ndim)


def reflection(column, k):
    """(v, t) of the reflection that makes the elements behind k zeros: 1 at k, and 0 before."""
    index, here = numbers(column), all_over(k, column)
    below = ops.select(ops.gt(index, here), column, 0.0)
    first = at(column, k, 0)
    largest = ops.reduce_max(ops.abs(below), axes=(0,))
    nothing = ops.eq(largest, 0.0)
    largest = ops.max(largest, ops.abs(first))
    scale = ops.select(ops.eq(largest, 0.0), 1.0, largest)
    parts = ops.div(below, all_over(scale, below, 0))
    length = ops.add(ops.reduce_sum(ops.square(parts), axes=(0,)),
                     ops.square(ops.div(first, scale)))
    length = ops.mul(scale, ops.sqrt(length))
    to = ops.select(ops.lt(first, 0.0), length, ops.neg(length))
    t = ops.select(nothing, 0.0, ops.div(ops.sub(to, first), to))
    by = ops.select(nothing, 1.0, ops.sub(first, to))
    v = ops.div(below, all_over(by, below, 0))
    return ops.select(ops.eq(index, here), 1.0, v), t


def reflected(x, v, t):
    """x - t v (vᵀ x)."""
    inner = ops.reduce_sum(ops.mul(all_over(v, x, 1), x), axes=(0,))
    return minus_product(x, v, ops.mul(all_over(t, inner, 0), inner))
