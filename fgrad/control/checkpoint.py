"""checkpoint: a function whose intermediate values are computed again in reverse instead of kept.

    loss = lambda p, x: checkpoint(block)(p, x).sum()

`checkpoint` is an operation that means its Program.  Its reverse derivative splits the Program as
any other (residuals, then cotangents), but keeps only the arguments and what a policy says; the
second Program begins with the equations that make the other residuals.  What it computes them from
goes through `barrier`, an identity that keeps the compiler from sharing them with the forward pass.
Relies on `call`; `loops.py` and users rely on it.
"""

from __future__ import annotations

import functools

from .. import arguments, tree
from ..arguments import lifted
from ..core import EVALUATE, Primitive, current
from ..errors import ArgumentError, boundary
from ..interpreters.call import Call, call, recorded, vjp_program
from ..interpreters.stage import stage
from ..ir import Equation, Program, Var


# ---------------------------------------------------------------------------- operations

class Identity(Primitive):
    """x itself.   n[*s] → n[*s]"""
    linear_in = (0,)

    def type(self, x, /, **params):
        return x

    def numpy(self, x, /, **params):
        return x

    def transpose(self, ct, i, x, /, **params):
        return ct

    def batch(self, dims, x, /, **params):
        return self(x, **params), dims[0]

    def pull(self, x, /, **params):
        return x


class Barrier(Identity):
    """x itself, which the compiler takes for another value: nothing is shared across it."""


class Kept(Identity):
    """x itself, which compiled code has in memory: it is computed once for all that read it."""
    keeps = True


class Named(Identity):
    """x itself, under a name that checkpoint policies can speak of."""

    def type(self, x, /, *, name):
        return x


barrier = Barrier("barrier")
barrier.__doc__ = "x itself, which the compiler takes for another value.   n[*s] → n[*s]"
kept = Kept("kept")
named = Named("named")


class Checkpoint(Call):
    """The results of a Program; `policy` says which of its values are kept for the derivative."""

    def __call__(self, *args, program, policy):
        return current().process(self, args, {"program": program, "policy": policy})

    def type(self, *types, program, policy):
        return program.out_types

    def evaluate(self, args, params):
        return self.run(args, {"program": params["program"]})

    def linearize(self, below, args, active, params):
        program, mask = params["program"], tuple([node >= 0 for node in active])
        both = program.derive(recomputing, mask, params["policy"])
        return recorded(below, args, active, both, len(program.outputs))

    def record(self, outs, args, active, params):
        return call.record(outs, args, active, {"program": params["program"]})


checkpointed = Checkpoint("checkpoint")


def recomputing(program, mask, policy):
    """(forward, backward), as of a `call`; backward begins with what forward has not kept.

    kept: the arguments that are read again, and the values of equations that the policy names.
    """
    first, second = program.derive(vjp_program, mask)
    m = len(program.outputs)
    wanted, again, kept = set(first.outputs[m:]), [], {}
    makers = {v: eqn for eqn in first.eqns for v in eqn.outs}
    for v in first.outputs[m:]:
        if v not in makers:
            kept[v] = None
    constants = {v for v, _ in first.hidden}
    for eqn in reversed(first.eqns):
        mine = [v for v in eqn.outs if v in wanted]
        if not mine:
            continue
        if policy is not None and policy(eqn.op, *[getattr(a, "type", a) for a in eqn.args],
                                         **eqn.params):
            kept.update(dict.fromkeys(mine))
            continue
        again.append(eqn)
        for a in eqn.variables:
            wanted.add(a)
            if a not in makers and a not in constants:
                kept[a] = None
    inputs = {v: Var(v.type, v.name) for v in kept}
    through = [Equation(barrier, (inputs[v],), {}, (v,)) for v in kept]
    cts = second.inputs[len(first.outputs) - m:]
    eqns = [*through, *reversed(again), *second.eqns]
    hidden = {v: (v, a) for v, a in (*first.hidden, *second.hidden)}
    used = {v for eqn in eqns for v in eqn.variables} | set(second.outputs)
    back = Program(second.name, (*inputs.values(), *cts), eqns, second.outputs,
                   [pair for v, pair in hidden.items() if v in used])
    forward = Program(first.name, first.inputs, first.eqns, (*first.outputs[:m], *kept),
                      first.hidden)
    return forward, back


# ---------------------------------------------------------------------------- what users call

def checkpoint(f=None, *, policy=None, prevent_cse=True, static_argnums=(), static_argnames=()):
    """The function f; in reverse its intermediate values are computed again instead of kept.

    policy: which values are kept all the same, one of `checkpoint_policies` or a function
    (operation, *types, **params) → bool; None keeps nothing but the arguments.  static_argnums,
    static_argnames: positions and names of numbers that reach f as they are; leaves that are no
    arrays always do.  prevent_cse is accepted as JAX's: the compiler never shares the second
    computation with the first.

    >>> from fgrad.transforms import grad
    >>> grad(checkpoint(lambda x: x * x))(3.0)
    Array(6., f32[])
    """
    if f is None:
        return functools.partial(checkpoint, policy=policy, static_argnums=static_argnums,
                                 static_argnames=static_argnames)
    arguments.check_function(f, "checkpoint")
    fixed = arguments.positions(f, "checkpoint", "static_argnums", static_argnums)
    named = arguments.several("checkpoint", "static_argnames", static_argnames, str,
                              "a name, or a tuple of names")
    fixed += tuple([k for k, n in enumerate(arguments.positional_names(f)[0]) if n in named])

    @boundary
    @functools.wraps(f, updated=())
    def checkpoint_f(*args, **kwargs):
        if current() is EVALUATE:
            return f(*args, **kwargs)
        given = (tuple([Fixed(a) if k in fixed else a for k, a in enumerate(args)]),
                 {n: Fixed(x) if n in named else x for n, x in kwargs.items()})
        leaves, structure = tree.flatten(given)
        values = [lifted(x).settled() for x in leaves if arguments.is_array(x)]

        def function(*xs):
            args, kwargs = tree.unflatten(structure, arguments.put_arrays(leaves, xs))
            return f(*map(inside, args), **{n: inside(x) for n, x in kwargs.items()})
        names = arguments.leaf_names(f, *given)
        names = [n for n, x in zip(names, leaves) if arguments.is_array(x)]
        trace = stage(function, [v.type for v in values], name=arguments.name_of(f), names=names)
        found = checkpointed(*values, *trace.captured, program=trace.program, policy=policy)
        return tree.unflatten(trace.out, found)
    return checkpoint_f


class Fixed:
    """A static argument, as a leaf."""

    def __init__(self, value):
        self.value = value


def inside(x):
    """The value of a static argument; any other as it is."""
    return x.value if x.__class__ is Fixed else x


def checkpoint_name(x, name):
    """The pytree x, whose leaves `save_only_these_names(name)` keeps.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> def f(x):
    ...     return fnp.cos(fgrad.checkpoint_name(fnp.sin(x), "inner"))
    >>> keep = fgrad.checkpoint_policies.save_only_these_names("inner")
    >>> fgrad.grad(fgrad.checkpoint(f, policy=keep))(0.0)
    Array(-0., f32[])
    """
    return tree.map(lambda leaf: named(lifted(leaf), name=name), x)


class checkpoint_policies:
    """What checkpoint keeps besides the arguments.

    nothing_saveable: nothing.  everything_saveable: everything, as without checkpoint.
    dots_saveable: results of products.  dots_with_no_batch_dims_saveable: of those without a batch.
    save_only_these_names(*names): what was given to checkpoint_name under one of these.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> layer = lambda w: fnp.sum(fnp.square(w @ w))
    >>> keep = fgrad.checkpoint_policies.dots_saveable         # w @ w is not computed again
    >>> fgrad.grad(fgrad.checkpoint(layer, policy=keep))(fnp.eye(2))
    Array([[4., 0.],
           [0., 4.]], f32[2,2])
    """

    @staticmethod
    def nothing_saveable(op, *types, **params):
        return False

    @staticmethod
    def everything_saveable(op, *types, **params):
        return True

    @staticmethod
    def dots_saveable(op, *types, **params):
        return op.name == "dot_general"

    @staticmethod
    def dots_with_no_batch_dims_saveable(op, *types, **params):
        return op.name == "dot_general" and not set(params["lhs"]) & set(params["rhs"]) & set(
            params["to"])

    @staticmethod
    def save_only_these_names(*names):
        if not names or not all(isinstance(n, str) for n in names):
            raise ArgumentError("save_only_these_names takes names.", given=repr(names))

        def policy(op, *types, **params):
            return op is named and params["name"] in names
        return policy
