"""Small matrices, solved and factorised by loops that compile, in place of calls of LAPACK.

    y = solve a b        →        a, b = scan 0 … n-1: exchange rows, eliminate a column
                                  y    = scan n-1 … 0: substitute

Up to some tens of rows a call of NumPy's costs more than the work, and a loop with such a call in
its body is no longer one native function.  A stack of matrices lies along the last axis meanwhile:
[n, n, stack], so that vectors run over the stack; a short one is a loop over its matrices.  Where
there is no answer the results are NaN, as those of the NumPy rules.  Only for Targets whose loops
of little work are `native_loops`; of complex numbers the calls stay.

Sources: G. Golub, C. Van Loan, "Matrix computations" (4th ed. 2013), 3.4 (partial pivoting), 4.2
(Cholesky).  The pipeline calls `in_loops`; it relies on the operations and on control flow.
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
# Multiply-adds of a matrix up to which loops are faster than LAPACK, with a call.
ELIMINATION, SUBSTITUTION, CHOLESKY = 1 << 18, 1 << 20, 1 << 16


def in_loops(program):
    """The Program with operations on small matrices as loops; itself if there are none."""
    if not any(is_small(eqn) for eqn in program.eqns):
        return program
    eqns = []
    for eqn in program.eqns:
        eqns += written_out(eqn) if is_small(eqn) else [eqn]
    return Program(program.name, program.inputs, eqns, program.outputs, program.hidden)


def is_small(eqn):
    """Is it an operation on matrices so small that loops are faster?"""
    if eqn.op.name not in RULES:
        return False
    a = eqn.args[0].type
    work, most = RULES[eqn.op.name][1:]
    columns = eqn.args[-1].type.shape[-1]
    return a.dtype in (F32, F64) and a.size > 0 < columns and work(a.shape[-1], columns) <= most


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
    starts = [ops.full(shape=(), value=0, dtype=I32)] * x.ndim
    starts[axis] = k
    sizes = (*x.shape[:axis], 1, *x.shape[axis + 1:])
    return ops.reshape(ops.dynamic_slice(x, *starts, sizes=sizes),
                       shape=(*x.shape[:axis], *x.shape[axis + 1:]))


def put(x, row, k):
    """x with another row k."""
    zero = ops.full(shape=(), value=0, dtype=I32)
    return ops.dynamic_update_slice(x, ops.reshape(row, shape=(1, *row.shape)), k,
                                    *[zero] * (x.ndim - 1))


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
        return put(y, right, k)
    return in_order(n, step, ops.zeros_like(b))


def triangular_solve(a, b, *, lower, unit):
    """y with a y = b for a triangle of a; all of it NaN where its diagonal has a 0."""
    out = substituted(a, b, lower, unit)
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

    def step(k, carry):
        a, out = carry
        column = at(a, k, 1)
        pivot = at(column, k, 0)
        root = ops.select(ops.gt(pivot, 0.0), ops.sqrt(pivot), math.nan)
        column = ops.div(column, all_over(root, column, 0))
        here = ops.ge(numbers(column), all_over(k, column))
        column = ops.select(here, column, 0.0)
        put = ops.eq(numbers(out, 1), all_over(k, out))
        return minus_product(a, column, column), ops.select(put, all_over(column, out, 1), out)
    out = in_order(n, step, (a, ops.zeros_like(a)))[1]
    last = ops.reshape(ops.slice(out, start=(n - 1, n - 1, *[0] * (a.ndim - 2)), stop=a.shape,
                                 stride=(1,) * a.ndim), shape=a.shape[2:])
    return (ops.select(all_matrix(ops.ne(last, last), out), math.nan, out),)


# name → (rule, multiply-adds of n rows and as many columns on the right, the most of them)
RULES = {
    "solve": (solve, lambda n, columns: n * n * (n + columns), ELIMINATION),
    "slogdet": (slogdet, lambda n, columns: n**3, ELIMINATION),
    "triangular_solve": (triangular_solve, lambda n, columns: n * n * columns, SUBSTITUTION),
    "cholesky": (cholesky, lambda n, columns: n**3, CHOLESKY),
}
