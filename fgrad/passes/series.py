"""Series and continued fractions become loops that compile, in place of calls of NumPy's rules.

    y = gammainc a x     →     y = scan over blocks of some hundred elements:
                                       while a change is felt: a step of the series

An operation that is `Iterated` has one formula; here its values are operations', its m.limit is a
while loop.  A block's arrays stay in the nearest cache, and it ends when its own elements have
converged.  Only for Targets whose loops of little work are `native_loops`.  The pipeline calls
`in_series`.
"""

from __future__ import annotations

from functools import lru_cache

from .. import ops, tree
from ..control import map as each, while_loop
from ..interpreters.stage import stage
from ..ops.iterated import STEPS, Iterated, mathematics
from ..ops.mathematics import OF_TERMS, Term
from ..types import F64
from .matrices import in_place_of

BLOCK, LANES = 256, 8      # elements of a block at most; a multiple of which are in every one


class Value(Term):
    """An array with the operators that formulas are written in."""
    __slots__ = ()

    def of(self, name, *arrays):
        """The Value that an operation makes of arrays."""
        return Value(getattr(ops, RENAMED.get(name, name))(*arrays))

    def constant(self, x):
        """The array, or the number, of another operand."""
        return x.node if isinstance(x, Term) else x


RENAMED = {"and": "and_", "or": "or_"}


def full(like, x):
    """A Value of the other's shape, all x."""
    return Value(ops.full(shape=like.node.shape, value=x, dtype=F64))


def limit(step, state, fixed, needed):
    """What state[0] comes to, where it is needed: see `ops.iterated`."""
    shape = needed.node.shape

    def going(carry):
        n, felt, _ = carry
        return ops.and_(ops.lt(n, float(STEPS)), ops.reduce_or(felt, axes=(0,)))

    def following(carry):
        n, felt, state = carry
        state, still = step(Value(ops.broadcast(n, shape=shape, axes=(0,))),
                            tree.map(Value, state), fixed)
        return ops.add(n, 1.0), ops.and_(felt, still.node), nodes(state)

    one = ops.full(shape=(), value=1.0, dtype=F64)
    return tree.map(Value, while_loop(going, following, (one, needed.node, nodes(state)))[2][0])


def nodes(values):
    """A tree of Values as one of their arrays."""
    return tree.map(lambda x: x.node, values)


def in_series(program):
    """The Program with what is found by iteration as loops."""
    return program.rewritten(lambda eqn: in_place_of(
        eqn, traced, (eqn.op, eqn.args[0].type)) if iterates(eqn) else [eqn])


def iterates(eqn):
    """Is it an operation whose iteration compiles?"""
    return isinstance(eqn.op, Iterated) and eqn.op.compiles and eqn.args[0].type.size > 0


@lru_cache(maxsize=256)
def traced(op, type):
    """The Program that computes an operation on arrays of this type."""
    blocks = -(-type.size // BLOCK)
    block = type.size if blocks == 1 else -(-type.size // (blocks * LANES)) * LANES
    m = mathematics(OF_TERMS, limit, full, type.dtype)

    def one(arrays):
        wide = [Value(ops.convert(x, dtype=F64)) for x in arrays]
        return ops.convert(op.formula(m, *wide).node, dtype=type.dtype)

    def run(*arrays):
        flat = [ops.reshape(x, shape=(type.size,)) for x in arrays]
        if blocks == 1:
            return ops.reshape(one(flat), shape=type.shape)
        rest = blocks * block - type.size
        flat = [ops.pad(x, 0.0, low=(0,), high=(rest,), interior=(0,)) for x in flat]
        rows = each(one, tuple([ops.reshape(x, shape=(blocks, block)) for x in flat]))
        out = ops.slice(ops.reshape(rows, shape=(blocks * block,)), start=(0,), stop=(type.size,),
                        stride=(1,))
        return ops.reshape(out, shape=type.shape)
    return stage(run, (type,) * len(op.partials), name=op.name).program
