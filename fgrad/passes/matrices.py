"""Matrices, solved and factorised by loops that compile, in place of calls of LAPACK.

    y = solve a b        →        a, b = scan 0 … n-1: exchange rows, eliminate a column
                                  y    = scan n-1 … 0: substitute

Up to some tens of rows a call of NumPy's costs more than the work, and a loop with such a call in
its body is no longer one native function.  A stack of matrices lies along the last axis meanwhile:
[n, n, stack], so that vectors run over the stack; a short one is a loop over its matrices.  Large
triangles are taken BLOCK rows at once, with products in front of them.  Where there is no answer
the results are NaN, as those of the NumPy rules.  Only for Targets whose loops of little work are
`native_loops`; of complex numbers the calls stay.

Sources: G. Golub, C. Van Loan, "Matrix computations" (4th ed. 2013), 3.1 (substitution by blocks),
3.4 (partial pivoting), 4.2 (Cholesky by blocks).  The pipeline calls `in_loops`; it relies on the
operations and on control flow.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .. import ops
from ..control import fori_loop, map as each
from ..interpreters.stage import stage
from ..ir import Equation, Program
from ..types import F32, F64, I32
from .hoist import copied

STACK = 16                 # matrices from which vectors run over them
BLOCK = 16                 # rows of a block
# Rows, and multiply-adds of a matrix of a stack, up to which loops are faster than LAPACK.
LARGE, ELIMINATION, SUBSTITUTION, CHOLESKY = 2048, 1 << 18, 1 << 20, 1 << 16


def in_loops(program):
    """The Program with operations on matrices as loops where these are faster."""
    if not any(is_faster(eqn) for eqn in program.eqns):
        return program
    eqns = []
    for eqn in program.eqns:
        eqns += written_out(eqn) if is_faster(eqn) else [eqn]
    return Program(program.name, program.inputs, eqns, program.outputs, program.hidden)


def is_faster(eqn):
    """Is it an operation on matrices that loops compute faster?"""
    if eqn.op.name not in RULES:
        return False
    a, columns = eqn.args[0].type, eqn.args[-1].type.shape[-1]
    if a.dtype not in (F32, F64) or not (a.size and columns):
        return False
    _, work, most, by_blocks = RULES[eqn.op.name]
    few = a.size < STACK * a.shape[-1]**2
    return by_blocks and few and a.shape[-1] <= LARGE or work(a.shape[-1], columns) <= most


def written_out(eqn):
    """The equations in place of one, with its line of the user's."""
    types = tuple([a.type for a in eqn.args])
    made = traced(eqn.op.name, types, tuple(sorted(eqn.params.items())))
    eqns, known = copied(made.eqns, dict(zip(made.inputs, eqn.args)))
    back = {known[v]: w for v, w in zip(made.outputs, eqn.outs)}
    return [Equation(e.op, e.args, e.params, [back.get(v, v) for v in e.outs], eqn.source, eqn.mark)
            for e in eqns]


@lru_cache(maxsize=256)
def traced(name, types, params):
    """The Program of a rule: with the matrices of a stack behind the axes that it works on."""
    rule = RULES[name][0]
    lead = types[0].shape[:-2]
    count = math.prod(lead)

    def one(*arrays):
        return rule(*arrays, **dict(params))

    def run(*arrays):
        flat = [ops.reshape(x, shape=(count, *x.shape[-2:])) for x in arrays]
        if count == 1:
            out = one(*[ops.reshape(x, shape=x.shape[1:]) for x in flat])
        elif count < STACK:
            out = each(lambda args: one(*args), tuple(flat))
        else:
            out = one(*[ops.transpose(x, perm=(1, 2, 0)) for x in flat])
            out = [last_to_front(x) for x in out]
        return tuple([ops.reshape(x, shape=(*lead, *x.shape[1 if count > 1 else 0:])) for x in out])
    return stage(run, types, name=name).program


def last_to_front(x):
    return ops.transpose(x, perm=(x.ndim - 1, *range(x.ndim - 1)))


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
    return ops.reduce_sum(ops.select(ops.eq(numbers(a), numbers(a, 1)), a, 0.0), axes=(0,))


# ---------------------------------------------------------------------------- elimination

def eliminated(a, b, without_pivot):
    """(upper triangle of a, b, sign of the exchanges) after elimination with partial pivoting.

    without_pivot: what a column without any is divided by.  b: None, or f[n,c,*b].
    """
    def step(k, carry):
        a, *b, sign = carry
        column = at(a, k, 1)
        below = ops.ge(numbers(column), all_over(k, column))
        largest = ops.argmax(ops.select(below, ops.abs(column), -1.0), axis=0)
        a, top = exchanged(a, k, largest)
        pivot = at(top, k, 0)
        pivot = ops.select(ops.eq(pivot, 0.0), without_pivot, pivot)
        column = at(a, k, 1)
        factor = ops.div(column, all_over(pivot, column, 0))
        out = [ops.select(beneath(a, k), minus_product(a, factor, top), a)]
        for x in b:
            x, row = exchanged(x, k, largest)
            out.append(ops.select(beneath(x, k), minus_product(x, factor, row), x))
        same = ops.eq(largest, all_over(k, largest))
        return (*out, ops.select(same, sign, ops.neg(sign)))
    one = ops.full(shape=a.shape[2:], value=1.0, dtype=a.dtype)
    start = (a, one) if b is None else (a, b, one)
    return in_order(a.shape[0], step, start)


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
        row = ops.reduce_sum(ops.select(ops.eq(rows, there), x, 0.0), axes=(0,))
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
    """The same with BLOCK rows a step: what is known is subtracted by one product."""
    n = a.shape[0]
    a, b = in_blocks(a, 1.0), in_blocks(b)
    count = a.shape[0] // BLOCK

    def step(j, y):
        k = ops.mul(j if lower else ops.sub(count - 1, j), BLOCK)
        rows = part(a, k, 0)
        index, here = numbers(rows, 1), all_over(k, rows)
        known = ops.lt(index, here) if lower else ops.ge(index, ops.add(here, BLOCK))
        right = ops.sub(part(b, k, 0), product(ops.select(known, rows, 0.0), y))
        return put(y, substituted(part(rows, k, 1), right, lower, unit), k)
    return first_rows(in_order(count, step, ops.zeros_like(b)), n)


def in_blocks(x, diagonal=0.0):
    """A matrix with zeros behind its rows up to whole blocks, as a square one behind its columns;
    diagonal: what is on the diagonal there.
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
    return ops.select(behind, diagonal, out)


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
    a, sign = eliminated(a, None, 1.0)
    pivots = diagonal(a)
    sign = ops.mul(sign, ops.reduce_prod(ops.sign(pivots), axes=(0,)))
    return sign, ops.reduce_sum(ops.log(ops.abs(pivots)), axes=(0,))


def cholesky(a):
    """L with L Lᵀ = (a + aᵀ) / 2; all of it NaN unless positive definite."""
    n, turned = a.shape[0], ops.transpose(a, perm=(1, 0, *range(2, a.ndim)))
    a = ops.mul(ops.add(a, turned), 0.5)
    out = blocks_of_root(a) if a.ndim == 2 and n > BLOCK else columns_of_root(a)
    end = ops.full(shape=(), value=n - 1, dtype=I32)
    last = at(at(out, end, 0), end, 0)
    return (ops.select(all_matrix(ops.ne(last, last), out), math.nan, out),)


def columns_of_root(a):
    """L, a column a step; NaN from where the matrix is not positive definite."""
    def step(k, carry):
        a, out = carry
        column = at(a, k, 1)
        pivot = at(column, k, 0)
        root = ops.select(ops.gt(pivot, 0.0), ops.sqrt(pivot), math.nan)
        column = ops.div(column, all_over(root, column, 0))
        here = ops.ge(numbers(column), all_over(k, column))
        column = ops.select(here, column, 0.0)
        mine = ops.eq(numbers(out, 1), all_over(k, out))
        return minus_product(a, column, column), ops.select(mine, all_over(column, out, 1), out)
    return in_order(a.shape[0], step, (a, ops.zeros_like(a)))[1]


def blocks_of_root(a):
    """L, BLOCK columns a step: those of a without the products of what is known of L."""
    n, a = a.shape[0], in_blocks(a, 1.0)

    def step(j, out):
        k = ops.mul(j, BLOCK)
        columns = ops.sub(part(a, k, 1), product(out, turned(part(out, k, 0))))
        root = columns_of_root(part(columns, k, 0))
        one = ops.convert(ops.eq(numbers(root), numbers(root, 1)), dtype=a.dtype)
        inverse = substituted(root, one, lower=True, unit=False)
        columns = product(columns, turned(inverse))
        row, column = numbers(columns), numbers(columns, 1)
        here = ops.ge(row, ops.add(column, all_over(k, columns)))
        return put(out, ops.select(here, columns, 0.0), k, 1)
    out = in_order(a.shape[0] // BLOCK, step, ops.zeros_like(a))
    return ops.slice(out, start=(0, 0), stop=(n, n), stride=(1, 1))


def product(a, b):
    return ops.dot_general(a, b, lhs="ij", rhs="jk", to="ik")


def turned(a):
    return ops.transpose(a, perm=(1, 0))


# name → (rule, multiply-adds of n rows and as many columns on the right, the most of them, has it
# a form by blocks?)
RULES = {
    "solve": (solve, lambda n, columns: n * n * (n + columns), ELIMINATION, False),
    "slogdet": (slogdet, lambda n, columns: n**3, ELIMINATION, False),
    "triangular_solve": (triangular_solve, lambda n, columns: n * n * columns, SUBSTITUTION, True),
    "cholesky": (cholesky, lambda n, columns: n**3, CHOLESKY, True),
}
