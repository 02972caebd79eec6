"""Operations on matrices, and short sorts, become loops that compile, in place of calls of NumPy's.

    y = solve a b        →        a, b = scan 0 … n-1: exchange rows, eliminate a column
                                  y    = scan n-1 … 0: substitute

Up to some tens of rows a call of NumPy's costs more than the work, and a loop with such a call in
its body is no longer one native function; triangles by blocks are faster up to a thousand.  A
stack of small matrices lies along the last axis meanwhile, so that vectors run over it; a short
one, and one of larger matrices, is a loop over them.  Rows are sorted side by side.  Large matrices
are LAPACK's, and what stands around its call, as in `pinv`, is compiled.  Only for Targets whose
loops of little work are `native_loops`; of complex numbers the calls stay.  The pipeline calls
`in_halves` and `in_loops`; the loops are those of `matrix_loops`.
"""

from __future__ import annotations

import math
from functools import lru_cache

from .. import ops
from ..control import map as each
from ..control.scan import fixed_equations
from ..interpreters.stage import stage
from ..ir import Equation, Program
from ..ops import fortran
from ..records import frozen
from ..transforms import vmap
from ..types import F32, F64, I32
from . import matrix_loops as loops
from .hoist import copied

STACK = 16                 # matrices from which vectors run over them
LU = 48                    # rows up to which loops are faster than LAPACK


def in_loops(program):
    """The Program with operations on matrices as loops where these are faster."""
    return program.rewritten(lambda eqn: written_out(eqn) if is_faster(eqn) else [eqn])


def in_halves(program):
    """The Program whose loops factorise a matrix that never changes apart from solving with it:
    that half moves out of them.
    """
    return program.rewritten(lambda eqn: [with_halves(eqn) if eqn.op.nested else eqn])


def with_halves(eqn):
    """A loop or branch with the solutions in its bodies taken apart."""
    before = eqn.op.programs(eqn.params)
    programs = [p.derive(in_halves) for p in before]
    if eqn.op.loop not in ("cond", "call"):
        programs[-1] = apart(programs[-1], eqn.params["n_consts"])
    if all(p is q for p, q in zip(programs, before)):
        return eqn
    params = eqn.op.replaced(eqn.params, programs)
    return Equation(eqn.op, eqn.args, params, eqn.outs, eqn.source, eqn.mark)


def apart(body, n_consts):
    """The body of a loop; `solve` of a matrix of its consts is `lu` of that, and two triangles; one
    by blocks is written out, of which the blocks' inverses move.
    """
    steady = {*body.inputs[:n_consts], *(v for v, _ in body.hidden)}
    steady.update(v for e in fixed_equations(body, n_consts) for v in e.outs)

    def change(eqn):
        a, b = eqn.args if eqn.op in (ops.solve, ops.triangular_solve) else (None, None)
        if a not in steady or b in steady or len(a.shape) != 2 or a.dtype not in (F32, F64):
            return [eqn]
        if eqn.op is ops.solve:
            return in_place_of(eqn, by_triangles, (a.type, b.type))
        return written_out(eqn) if is_faster(eqn) else [eqn]
    return body.rewritten(change)


@lru_cache(maxsize=256)
def by_triangles(*types):
    """The Program that solves by `lu`."""
    def run(a, b):
        factors, pivots = ops.lu(a)
        b = ops.gather(b, ops.pivots_to_permutation(pivots), axes=(0,))
        b = ops.triangular_solve(factors, b, lower=True, unit=True)
        return ops.triangular_solve(factors, b, lower=False, unit=False)
    return stage(run, types, name="solve").program


def is_faster(eqn):
    """Is it an operation on matrices that loops compute faster?"""
    if eqn.op.name not in RULES:
        return False
    rule, types = RULES[eqn.op.name], [a.type for a in eqn.args]
    if not all(t.size and t.dtype in (F32, F64, I32) for t in types):
        return False
    return rule.work(*types, **eqn.params) <= rule.most


def written_out(eqn):
    """The equations in place of one that is faster as loops."""
    params = tuple(sorted(eqn.params.items()))
    return in_place_of(eqn, traced, (eqn.op.name, tuple([a.type for a in eqn.args]), params))


def in_place_of(eqn, made, key):
    """The equations of the Program made(*key) in place of one, with its line of the user's."""
    program = made(*key)
    eqns, known = copied(program.eqns, dict(zip(program.inputs, eqn.args)))
    back = {known[v]: w for v, w in zip(program.outputs, eqn.outs)}
    return [at_line_of(eqn, e, [back.get(v, v) for v in e.outs]) for e in eqns]


def at_line_of(eqn, e, outs):
    """Equation e with these outs and the line of another one, inside of it too."""
    params = e.params
    if e.op.nested:
        params = e.op.replaced(params, [
            Program(p.name, p.inputs, [at_line_of(eqn, inner, inner.outs) for inner in p.eqns],
                    p.outputs, p.hidden) for p in e.op.programs(params)])
    return Equation(e.op, e.args, params, outs, eqn.source, eqn.mark)


@lru_cache(maxsize=256)
def traced(name, types, params):
    """The Program of a rule: with the matrices of a stack behind the axes that it works on, or one
    after the other.
    """
    rule, options = RULES[name], dict(params)
    axis, end = options.pop("axis", None), types[0].ndim - 1
    lead = moved(types[0].shape, axis, end)[:-rule.axes]
    count = math.prod(lead)

    def one(*arrays):
        return rule.function(*arrays, **options)

    def run(*arrays):
        arrays = [turned(x, axis, end) for x in arrays]
        flat = [ops.reshape(x, shape=(count, *x.shape[-rule.axes:])) for x in arrays]
        if rule.side_by_side:
            out = vmap(one)(*flat)
        elif count == 1:
            out = [ops.reshape(x, shape=(1, *x.shape))
                   for x in one(*[ops.reshape(x, shape=x.shape[1:]) for x in flat])]
        elif count < STACK or flat[0].shape[-1] > rule.stacked:
            out = each(lambda args: one(*args), tuple(flat))
        else:
            out = one(*[ops.transpose(x, perm=(*range(1, x.ndim), 0)) for x in flat])
            out = [turned(x, x.ndim - 1, 0) for x in out]
        out = [ops.reshape(x, shape=(*lead, *x.shape[1:])) for x in out]
        return tuple([turned(x, end, axis) for x in out])
    return stage(run, types, name=name).program


def turned(x, axis, to):
    """x with an axis moved to another place; as it is where the operation has no axis."""
    if axis is None or to is None or axis == to:
        return x
    return ops.transpose(x, perm=moved(tuple(range(x.ndim)), axis, to))


def moved(values, axis, to):
    """A tuple, the value at `axis` moved to another place."""
    if axis is None:
        return values
    rest = [*values[:axis], *values[axis + 1:]]
    return (*rest[:to], values[axis], *rest[to:])


# ---------------------------------------------------------------------------- the operations

@frozen
class Rule:
    """How an operation is written: function(*matrices, **params), of [n, n] or [n, n, stack].

    work: its multiply-adds, of the types of its arguments, for one matrix; most: for how many loops
    are faster.  stacked: columns up to which vectors over a stack are better than one matrix after
    the other.  side_by_side: neither, each loop works on all.  axes: those of the arguments.
    """
    function: object
    work: object
    most: int
    stacked: int = 12
    axes: int = 2
    side_by_side: bool = False


def cubed(a, b=None, **params):
    """n² times n and the columns on the right."""
    n = a.shape[-1]
    return n * n * (n + (b.shape[-1] if b is not None else 0))


def per_column(a, b, **params):
    """n² times the columns on the right."""
    return a.shape[-1]**2 * b.shape[-1]


def eliminated(a):
    """As `cubed`; large matrices are LAPACK's where it has LU itself."""
    return math.inf if a.shape[-1] > LU and fortran.found() else cubed(a)


def always(*types, **params):
    """0: what stands around a call of LAPACK is better compiled, whatever the size."""
    return 0


def squared(pivots):
    return pivots.shape[-1]**2


def passes(x, k):
    """The elements times the passes over them; none and many are NumPy's."""
    return x.shape[-1] * k if 0 < k <= 16 else math.inf


def pairs(alone):
    """The pairs of elements that all rows compare, less those for which a row takes NumPy as long
    as for a call: `alone`.
    """
    def work(*keys, axis):
        n = keys[0].shape[axis]
        return len(keys) * (keys[0].size // n * (n**2 - alone))
    return work


def of_rows(a, **params):
    """The rows times the square of the columns."""
    return a.shape[-2] * a.shape[-1]**2


RULES = {
    "solve": Rule(loops.solve, cubed, 1 << 17),
    "slogdet": Rule(loops.slogdet, cubed, 1 << 17),
    "lu": Rule(loops.lu, eliminated, 1 << 25),
    "triangular_solve": Rule(loops.triangular_solve, per_column, 1 << 30, stacked=64),
    "cholesky": Rule(loops.cholesky, cubed, 1 << 21, stacked=24),
    "pivots_to_permutation": Rule(loops.pivots_to_permutation, squared, 1 << 16, stacked=64,
                                  axes=1),
    "sort": Rule(loops.sort, pairs(100), 40_000, axes=1, side_by_side=True),
    "order": Rule(loops.order, pairs(1024), 40_000, axes=1, side_by_side=True),
    "top_k": Rule(loops.top_k, passes, 1 << 30, axes=1, side_by_side=True),
    "pinv": Rule(loops.pinv, always, 0, side_by_side=True),
    "qr": Rule(loops.qr, of_rows, 1 << 16, stacked=32),
}
